"""The command `vendi`. Nothing numerical is imported before a command runs, so that --help answers at once."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; bad input ends with a message and exit code 2, never with a traceback."""
    try:
        from vendimeter.cli.commands import INTERRUPTED, install_signal_handlers, run, vendi
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print(
            f"The command needs the library {error.name!r}; install it with: pip install 'vendimeter[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    install_signal_handlers()
    try:
        sys.exit(run(vendi))
    except KeyboardInterrupt:  # a second one, while the first was being answered
        sys.exit(INTERRUPTED)
