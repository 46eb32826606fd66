"""The commands of `vendi`, each in a module of its own, imported when it is asked for."""

from __future__ import annotations

import importlib

import click

from vendimeter import __version__

__all__ = ["vendi"]

COMMANDS = {
    "score": "scoring",
    "compare": "comparing",
    "rarefy": "rarefying",
    "explain": "explaining",
    "select": "selecting",
    "report": "reporting",
    "merge": "putting_together",
    "plan": "planning",
    "kernels": "listing",
    "schema": "describing",
    "completion": "completing",
    "demo": "demonstrating",
}


class Commands(click.Group):
    """A group whose commands are imported when they are asked for, listed in the order in which one meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        return getattr(importlib.import_module(f"vendimeter.cli.{COMMANDS[cmd_name]}"), cmd_name)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples."""
        with formatter.section("Examples"):
            for example in (
                "vendi demo",
                "vendi score captions.txt",
                "vendi score images/ --by folder",
                "vendi compare real/ generated/",
                "vendi report embeddings.npy -o report.html",
                "vendi explain captions.txt",
            ):
                formatter.write(f"  {example}\n")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="vendi")
def vendi() -> None:
    """Measure diversity: how many different things are in here.

    The score of a collection is the effective number of different items in it: twelve captions that share nothing score
    12, twelve copies of one caption score 1. What counts as similar is up to the kernel, which goes by the kind of data
    unless you say otherwise.

    Exit codes: 0 well, 1 a failure, 2 bad input or usage, 3 a gate that was not met.
    """
