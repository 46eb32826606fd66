"""The reference of a click command, as its own help has it: the directive ``command-page``.

Its argument is ``module:object``. Options stand under the headings that the command gives them, and its examples last.
"""

from __future__ import annotations

import importlib
import re
from typing import Any, ClassVar

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class CommandPage(SphinxDirective):
    """What the group says of itself, then a section for each command."""

    required_arguments = 1
    option_spec: ClassVar[Any] = {}

    def run(self) -> list[nodes.Node]:
        """Ask the command."""
        try:
            return self._page(self.arguments[0])
        except ImportError as error:
            raise self.error(f"the command cannot be imported: {error}") from None

    def _page(self, path: str) -> list[nodes.Node]:
        module, _, name = path.partition(":")
        command = getattr(importlib.import_module(module), name)
        context = click.Context(command, info_name=command.name, terminal_width=100)
        found = self._body(command, context)
        for below in command.list_commands(context):
            inner = command.get_command(context, below)
            if inner is None or inner.hidden:
                continue
            section = nodes.section(ids=[f"vendi-{below}"], names=[f"vendi {below}"])
            section += nodes.title("", "", nodes.literal("", f"{command.name} {below}"))
            section += self._body(inner, click.Context(inner, info_name=below, parent=context))
            self.state.document.note_explicit_target(section)
            found.append(section)
        return found

    def _body(self, command: click.Command, context: click.Context) -> list[nodes.Node]:
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        found: list[nodes.Node] = [_code(usage)]
        found += _prose(command.help or "")
        headed: dict[str, list[tuple[str, str]]] = {}
        for parameter in command.params:  # not --help, which every command has
            record = parameter.get_help_record(context)
            if record is not None and record[1]:  # arguments are in the text
                headed.setdefault(getattr(parameter, "heading", "Options"), []).append(record)
        for heading, records in headed.items():
            found += [nodes.rubric("", heading), _options(records)]
        examples = _examples(command, context)
        if examples:
            found += [nodes.rubric("", "Examples"), _code("\n".join(examples))]
        return found


def _examples(command: click.Command, context: click.Context) -> list[str]:
    """Those of the command, or the lines under the heading Examples at the end of a group's help."""
    own = getattr(command, "examples", None)
    if own is not None:
        return list(own)
    formatter = click.HelpFormatter(width=200)
    command.format_epilog(context, formatter)
    return [
        line.strip() for line in formatter.getvalue().partition("Examples:")[2].splitlines() if line.strip()
    ]


def _code(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="sh")


def _prose(text: str) -> list[nodes.Node]:
    r"""Paragraphs; one that begins with \b keeps its lines, which are examples or a list."""
    found: list[nodes.Node] = []
    for part in re.split(r"\n\s*\n", text.replace("\r", "").strip()):
        lines = [line.strip() for line in part.split("\n")]
        if lines and lines[0] == "\b":
            found.append(_code("\n".join(lines[1:])))
        elif any(lines):
            found.append(nodes.paragraph("", " ".join(lines)))
    return found


def _options(records: list[tuple[str, str]]) -> nodes.definition_list:
    items = []
    for names, text in records:
        term = nodes.term("", "", nodes.literal("", names))
        items.append(nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", text))))
    return nodes.definition_list("", *items, classes=["options"])


def setup(app: Any) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("command-page", CommandPage)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
