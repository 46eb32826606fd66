"""The command `vendi`. Nothing numerical is imported before a command runs, so that --help answers at once."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; bad input ends with a message and exit code 2, never with a traceback."""
    from vendimeter.errors import MissingDependencyError

    try:
        from vendimeter.cli.commands import vendi
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit("The command needs the library 'click'; install it with: pip install 'vendimeter[cli]'")
    try:
        vendi.main(standalone_mode=True)
    except MissingDependencyError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
