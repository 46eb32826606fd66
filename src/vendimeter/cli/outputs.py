"""A result for whoever asked: text, JSON, CSV, LaTeX or Markdown, to standard output or whole into a file."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from vendimeter import __version__
from vendimeter.cli.options import Output

__all__ = ["SCHEMA", "Answer", "Sheet", "Source", "check_target", "emit", "written"]

SCHEMA = "vendimeter-result-1"  # the name and version of what --json gives; see schema/result-1.json
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets take for the beginning of a formula


@dataclass(frozen=True)
class Sheet:
    """A table of a result: columns of values by name; texts among them are user text."""

    name: str
    columns: Mapping[str, Sequence[Any]]
    title: str = ""
    digits: int = 6
    # For a terminal: which of the columns, under what headings, in what order of rows, with bars of which column, and how
    # many rows.
    visible: Sequence[str] | None = None
    headings: Mapping[str, str] = field(default_factory=dict)
    order: Sequence[int] | None = None
    bar: str | None = None
    shown: int | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows."""
        return zip(*self.columns.values(), strict=True)


@dataclass(frozen=True)
class Source:
    """What was read, and how it was taken."""

    files: Sequence[str]
    kind: str | None = None
    guessed: bool = False
    kernel: str = ""
    items: int | None = None
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "files": [str(name) for name in self.files],
            "kind": self.kind,
            "guessed": self.guessed,
            "kernel": self.kernel,
            "items": self.items,
            "left_out": self.left_out,
        }


@dataclass
class Answer:
    """What a command found: words, tables, and everything as plain values."""

    command: str
    result: Mapping[str, Any]
    words: str = ""
    sheets: Sequence[Sheet] = ()
    source: Source | None = None
    seed: int | None = None
    warnings: list[str] = field(default_factory=list)
    gate: Mapping[str, Any] | None = None
    text: str | None = None  # for the terminal, where it is not words and tables


def check_target(output: Output) -> None:
    """Refuse to overwrite, before the work is done."""
    if output.out is not None:
        from vendimeter.cli.merging import refuse_existing

        refuse_existing(output.out, output.force)


def emit(answer: Answer, output: Output) -> None:
    """Give the answer in the form that was asked for."""
    text = rendered(answer, output)
    if output.out is None:
        click.echo(_for_stream(text, output.form))
        return
    with written(output.out, overwrite=output.force) as beside:
        # Names of files may hold bytes that are no text.
        beside.write_bytes((text + "\n").encode("utf-8", "backslashreplace"))


def _for_stream(text: str, form: str) -> str:
    """Text for standard output: a terminal is shown control characters, and nothing is lost on an old encoding."""
    from vendimeter.cli.terminal import encodable, is_terminal, printable_lines

    if form == "csv" and is_terminal(sys.stdout):
        text = printable_lines(text)
    if encodable(text, sys.stdout):
        return text
    if form == "json":
        return _json_escaped(text, lambda mark: False)
    coding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(coding, "backslashreplace").decode(coding)


@contextlib.contextmanager
def written(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A name beside `path` to write to, which takes its place when all is done; on any error nothing stays."""
    from vendimeter.cli.merging import refuse_existing

    refuse_existing(path, overwrite)
    target = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        mask = os.umask(0)
        os.umask(mask)
        beside.chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~mask)
        if overwrite:
            os.replace(beside, target)
        else:
            os.link(beside, target)  # fails where somebody else made the file meanwhile
            beside.unlink()
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()


def rendered(answer: Answer, output: Output) -> str:
    """The answer as text of a form, without the last line end."""
    if output.form == "json":
        return _json_escaped(
            json.dumps(envelope(answer), ensure_ascii=False, allow_nan=False), str.isprintable
        )
    if output.form == "text":
        from vendimeter.cli import terminal

        return terminal.shown(answer, to_file=output.out is not None)
    sheet = _sheet(answer, output.table)
    return {"csv": _csv, "latex": _latex, "markdown": _markdown}[output.form](sheet)


def _sheet(answer: Answer, name: str | None) -> Sheet:
    if not answer.sheets:
        raise click.UsageError(f"vendi {answer.command} has no table to give; expected --json, or no form.")
    if name is None:
        return answer.sheets[0]
    for sheet in answer.sheets:
        if sheet.name == name:
            return sheet
    raise click.UsageError(
        f"there is no table {name!r} in this result; it has {', '.join(sheet.name for sheet in answer.sheets)}."
    )


def envelope(answer: Answer) -> dict[str, Any]:
    """What --json gives: the result, and how it came about. Missing and infinite numbers are null."""
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "vendimeter": __version__,
        "command": answer.command,
        "source": None if answer.source is None else answer.source.to_dict(),
        "seed": answer.seed,
        "warnings": answer.warnings,
        "result": answer.result,
    }
    if answer.gate is not None:
        found["gate"] = answer.gate
    return _plain(found)


def _json_escaped(text: str, plain: Callable[[str], bool]) -> str:
    """JSON that says the same; what is not plain in its texts, such as codes that terminals obey, is written in hex."""

    def escaped(found: re.Match[str]) -> str:
        return found[0] if plain(found[0]) else json.dumps(found[0])[1:-1]

    return re.sub(r"[^\x20-\x7e]", escaped, text)


def _plain(value: Any) -> Any:
    """A value as JSON can write it; keys are texts, and what is neither text nor number is shown as text."""
    import numpy as np

    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return str(value)


# ------------------------------------------------------------------------------------------------------------ tables


def _csv(sheet: Sheet) -> str:
    """RFC 4180, but with the line ends of the system; numbers with all their digits, what is missing empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([_safe(name) for name in sheet.columns])
    for row in sheet.rows:
        writer.writerow([_csv_cell(value) for value in row])
    return stream.getvalue().rstrip("\n")


def _csv_cell(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(float(value)) if isinstance(value, float) else str(int(value))
    return _safe(_label(value))


def _safe(text: str) -> str:
    """Text that no spreadsheet takes for a formula: one that begins like it gets a quotation mark in front."""
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) or text.startswith(FORMULA) else text


def _label(value: Any) -> str:
    return " / ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _texts(sheet: Sheet) -> list[list[str]]:
    columns = [column_texts(values, sheet.digits) for values in sheet.columns.values()]
    return [list(row) for row in zip(*columns, strict=True)]


def column_texts(values: Sequence[Any], digits: int) -> list[str]:
    """The cells of a column for people: numbers of one column with as many digits after the point.

    Examples
    --------
    >>> column_texts([11.7666, 2.0, None], 4), column_texts([1e-9, 0.5], 3), column_texts([1200, 7], 4)
    (['11.77', '2.00', '–'], ['1e-09', '0.5'], ['1,200', '7'])
    """
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    sizes = [abs(value) for value in plain if isinstance(value, float) and math.isfinite(value) and value]
    whole = all(size == int(size) for size in sizes) and max(sizes, default=0.0) >= 10**digits
    places = 0 if whole else max(0, digits - 1 - math.floor(math.log10(max(sizes, default=1.0))))
    fixed = places <= digits + 2 and min(sizes, default=1.0) >= 10.0**-places
    return [_cell(value, digits, places if fixed else None) for value in plain]


def _cell(value: Any, digits: int, places: int | None) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{int(value):,}"
    if isinstance(value, float):
        if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        return f"{value:.{digits}g}" if places is None else f"{value:,.{places}f}"
    return _label(value)


def are_numbers(values: Sequence[Any]) -> bool:
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    return all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in plain
    )


def _markdown(sheet: Sheet) -> str:
    from vendimeter._markup import markdown_escaped

    numbers = [are_numbers(list(column)) for column in sheet.columns.values()]
    head = [markdown_escaped(name) for name in sheet.columns]
    body = [
        [cell if number else markdown_escaped(cell) for cell, number in zip(row, numbers, strict=True)]
        for row in _texts(sheet)
    ]
    rule = ["---:" if number else ":---" for number in numbers]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *body])


def _latex(sheet: Sheet) -> str:
    from vendimeter._markup import latex_escaped

    numbers = [are_numbers(list(column)) for column in sheet.columns.values()]

    def cell(text: str, number: bool) -> str:
        if not number:
            return latex_escaped(text)
        text = {"–": "--", "∞": r"$\infty$"}.get(text, text.replace(",", "{,}"))
        return f"$-${text[1:]}" if text.startswith("-") and text != "--" else text

    body = [[cell(text, number) for text, number in zip(row, numbers, strict=True)] for row in _texts(sheet)]
    return "\n".join([
        f"\\begin{{tabular}}{{{''.join('r' if number else 'l' for number in numbers)}}}",
        r"\toprule",
        " & ".join(latex_escaped(name) for name in sheet.columns) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in body),
        r"\bottomrule",
        r"\end{tabular}",
    ])  # fmt: skip
