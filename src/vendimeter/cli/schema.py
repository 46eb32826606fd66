"""The command ``vendi schema``."""

from __future__ import annotations

from importlib import resources

import click

from vendimeter.cli.options import Command

__all__ = ["schema", "schema_text"]


def schema_text() -> str:
    """The JSON Schema of what --json gives, as it is shipped with the package."""
    return resources.files("vendimeter.cli").joinpath("schema/result-2.json").read_text(encoding="utf-8")


@click.command(
    cls=Command,
    short_help="The JSON Schema of what --json gives.",
    examples=[
        "vendi schema > result-2.json",
        "vendi score captions.txt --json | check-jsonschema --schemafile result-2.json -",
    ],
)
def schema() -> None:
    """Print the JSON Schema (draft 2020-12) of what every command gives with --json.

    Its version is in the field "schema" of the result. A field is never removed, nor its meaning changed, without a new
    version.
    """
    click.echo(schema_text().rstrip("\n"))
