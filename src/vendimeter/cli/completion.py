"""The command ``vendi completion``."""

from __future__ import annotations

import click

from vendimeter.cli.options import Command

__all__ = ["completion"]

SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Command,
    short_help="Completion of commands and options for a shell.",
    examples=[
        'eval "$(vendi completion bash)"          # in ~/.bashrc',
        'eval "$(vendi completion zsh)"           # in ~/.zshrc',
        "vendi completion fish > ~/.config/fish/completions/vendi.fish",
    ],
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that makes a SHELL (bash, zsh or fish) complete the commands and options of vendi."""
    from click.shell_completion import get_completion_class

    from vendimeter.cli.commands import vendi

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(vendi, {}, "vendi", "_VENDI_COMPLETE").source())
