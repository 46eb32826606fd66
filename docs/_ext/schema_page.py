"""A JSON schema as tables of fields: the directive ``schema-page``, whose argument is the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

CODE = re.compile(r"`([^`]+)`")
REFERENCE = re.compile(r"#([\w-]+)")


def types(schema: Any, brief: bool = False) -> list[str]:
    """What a value may be, in words; a reference as #name. Briefly, an object is an object.

    Examples
    --------
    >>> types({"type": ["number", "null"]})
    ['number', 'null']
    >>> types({"type": "array", "items": {"$ref": "#/$defs/score"}})
    ['list of #score']
    >>> types({"enum": ["none", 1]})
    ['"none"', '1']
    >>> types({"properties": {"profile": {"type": "array", "items": {"$ref": "#/$defs/score"}}}})
    ['object with profile (list of #score)']
    """
    if schema is True or schema == {}:
        return ["anything"]
    if "$ref" in schema:
        return ["#" + schema["$ref"].rsplit("/", 1)[-1]]
    if "const" in schema:
        return [json.dumps(schema["const"], ensure_ascii=False)]
    if "enum" in schema:
        return [json.dumps(value, ensure_ascii=False) for value in schema["enum"]]
    for joined in ("oneOf", "anyOf"):
        if joined in schema:
            return [name for part in schema[joined] for name in types(part, brief)]
    if schema.get("properties") and not brief:
        inner = (f"{name} ({' or '.join(types(what))})" for name, what in schema["properties"].items())
        return ["object with " + ", ".join(inner)]
    given = schema.get("type", "object" if schema.get("properties") else "anything")
    found = []
    for name in given if isinstance(given, list) else [given]:
        if name == "array":
            inner = schema.get("items", schema.get("prefixItems", [True])[0])
            found.append("list of " + " or ".join(types(inner, brief)))
        else:
            found.append(name)
    return found


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """(name, schema, whether it is always there) of each field, those of nested objects with a dotted name."""
    required = set(schema.get("required", ()))
    for name, inner in schema.get("properties", {}).items():
        yield name, inner, name in required
        nested = inner.get("items", inner) if isinstance(inner, dict) else {}
        mark = "[]" if nested is not inner else ""
        for below, what, always in fields(nested if isinstance(nested, dict) else {}):
            yield f"{name}{mark}.{below}", what, always and name in required


def conditions(schema: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(condition, field, schema) of each field whose form depends on the value of another one.

    Examples
    --------
    >>> then = {"properties": {"result": {"$ref": "#/$defs/plan"}}}
    >>> list(conditions({"allOf": [{"if": {"properties": {"command": {"const": "plan"}}}, "then": then}]}))
    [('command = "plan"', 'result', {'$ref': '#/$defs/plan'})]
    """
    for rule in schema.get("allOf", ()):
        tests = rule.get("if", {}).get("properties", {}).items()
        case = " and ".join(f"{name} = {' or '.join(types(what))}" for name, what in tests)
        for name, what in rule.get("then", {}).get("properties", {}).items():
            yield case, name, what


class SchemaPage(SphinxDirective):
    """The schema's own fields, then a section for each of its definitions."""

    required_arguments = 1
    option_spec: ClassVar[Any] = {}

    def run(self) -> list[nodes.Node]:
        """Read the file and build the page."""
        _, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        try:
            schema = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self.error(f"the schema cannot be read: {error}") from None
        found: list[nodes.Node] = [*_described(schema)]
        if schema.get("properties"):
            found.append(_table(schema))
        forms = list(conditions(schema))
        if forms:
            rows = [
                ([nodes.literal("", case)], [nodes.literal("", name)], _types(what))
                for case, name, what in forms
            ]
            found += [
                nodes.paragraph("", "The form of some fields goes by the value of another one:"),
                _grid(("where", "field", "is"), (30, 15, 55), rows),
            ]
        names = schema.get("$defs", {})
        for name, inner in names.items():
            section = nodes.section(ids=[_anchor(name)], names=[name])
            section += nodes.title("", "", nodes.literal("", name))
            section += _described(inner)
            section += _table(inner) if inner.get("properties") else _may_be(inner)
            for k, part in enumerate(inner.get("oneOf", inner.get("anyOf", ()))):
                if part.get("properties"):
                    section += nodes.paragraph(
                        "", part.get("title", part.get("description", f"Form {k + 1}:"))
                    )
                    section += _table(part)
            self.state.document.note_explicit_target(section)
            found.append(section)
        return found


def _anchor(name: str) -> str:
    return "schema-" + re.sub(r"[^a-z0-9]+", "-", name.lower())


def _described(schema: dict[str, Any]) -> list[nodes.Node]:
    return [
        nodes.paragraph("", "", *_inline(schema[key]))
        for key in ("description", "$comment")
        if schema.get(key)
    ]


def _may_be(schema: dict[str, Any]) -> nodes.Node:
    return nodes.paragraph("", "", nodes.Text("One of: "), *_types(schema))


def _inline(text: str) -> list[nodes.Node]:
    """Text with what stands in backticks as code; nothing else is markup."""
    parts = CODE.split(text)
    return [nodes.literal("", part) if k % 2 else nodes.Text(part) for k, part in enumerate(parts) if part]


def _types(schema: Any, brief: bool = False) -> list[nodes.Node]:
    shown: list[nodes.Node] = []
    for k, part in enumerate(REFERENCE.split(", ".join(types(schema, brief)))):
        if k % 2:
            shown.append(nodes.reference("", part, internal=True, refid=_anchor(part)))
        elif part:
            shown.append(nodes.Text(part))
    return shown


def _table(schema: dict[str, Any]) -> nodes.table:
    rows = [
        (
            [nodes.literal("", name)],
            _types(inner, brief=True),  # the fields of an object have rows of their own
            [nodes.Text("yes" if always else "")],
            _meaning(inner),
        )
        for name, inner, always in fields(schema)
    ]
    return _grid(("field", "is", "always", "meaning"), (22, 22, 8, 48), rows)


def _grid(heads: tuple[str, ...], widths: tuple[int, ...], rows: Any) -> nodes.table:
    table, group = nodes.table(classes=["schema"]), nodes.tgroup(cols=len(heads))
    table += group
    for width in widths:
        group += nodes.colspec(colwidth=width)
    group += nodes.thead("", _row([[nodes.Text(head)] for head in heads]))
    group += nodes.tbody("", *(_row(row) for row in rows))
    return table


def _meaning(schema: Any) -> list[nodes.Node]:
    return _inline(schema.get("description", "") if isinstance(schema, dict) else "")


def _row(cells: Any) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))


def setup(app: Any) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("schema-page", SchemaPage)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
