"""Tables of a result: CSV for spreadsheets, LaTeX and Markdown for papers, and the cells that people read."""

from __future__ import annotations

import csv
import io
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vendimeter.errors import printable

__all__ = ["Sheet", "are_numbers", "as_csv", "as_latex", "as_markdown", "cells_of", "column_texts", "ranked"]

LABELS = ("group", "reference", "label", "first", "second")  # columns of labels: the year 2020 is not 2,020
FORMULA = "=+-@"  # what spreadsheets take for the beginning of a formula
# What terminals obey, and what turns the direction of writing.
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
BREAKS = ";\t\r\n"  # what may begin a cell, for a program that takes another separator, or quotes for letters


@dataclass(frozen=True)
class Sheet:
    """A table of a result: columns of values by name; texts among them are user text."""

    name: str
    columns: Mapping[str, Sequence[Any]]
    title: str = ""
    digits: int = 6
    # For a terminal: which of the columns, under what headings, in what order of rows, with bars of which column, and
    # how many rows.
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


def as_csv(sheet: Sheet) -> str:
    """RFC 4180, but with line feeds; numbers with all their digits, what is missing empty, control characters shown."""
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
    """Text that no spreadsheet takes for a formula: what begins like one gets an apostrophe in front.

    Examples
    --------
    >>> [_safe(text) for text in ("=1+1", "  +x", "a-b", "a;@x")]
    ["'=1+1", "'  +x", 'a-b', "a;'@x"]
    """
    parts = re.split(f"([{BREAKS}])", text)
    found = [parts[0], *(f"'{part}" if _is_formula(part) else part for part in parts[1:])]
    start = "'" if _is_formula(text) or text.startswith(("\t", "\r", "\n")) else ""
    return OBEYED.sub(lambda mark: printable(mark[0]), start + "".join(found))


def _is_formula(text: str) -> bool:
    """Whether a text begins like a formula, after blanks, quotes and what cannot be seen; in wide letters, too."""
    for mark in text:
        if not (mark.isspace() or mark in "\"'" or not mark.isprintable()):
            return unicodedata.normalize("NFKC", mark) in tuple(FORMULA)
    return False


def _label(value: Any) -> str:
    return " / ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _texts(sheet: Sheet) -> list[list[str]]:
    columns = [cells_of(sheet, name) for name in sheet.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def cells_of(sheet: Sheet, name: str) -> list[str]:
    """A column of a table for people."""
    values = list(sheet.columns[name])
    if name not in LABELS:
        return column_texts(values, sheet.digits)
    return ["–" if value is None else _label(value) for value in values]


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
    mixed = any(
        isinstance(value, int) and not isinstance(value, bool) for value in plain
    )  # orders: 0.5, 1, 2
    fixed = places <= digits + 2 and min(sizes, default=1.0) >= 10.0**-places and not mixed
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


def ranked(values: Sequence[float]) -> list[int]:
    """The order of rows by a column, the highest first; those that are equal up to rounding stay as they stand.

    Examples
    --------
    >>> ranked([1.0, float("nan"), 2.0, 2.0000000000000004])
    [2, 3, 0, 1]
    """
    plain = [float(f"{value:.12g}") for value in values]
    return sorted(range(len(plain)), key=lambda i: (math.isnan(plain[i]), -plain[i]))


def are_numbers(values: Sequence[Any]) -> bool:
    """Whether a column holds numbers, or nothing."""
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    return all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in plain
    )


def as_markdown(sheet: Sheet) -> str:
    """A pipe table."""
    from vendimeter._markup import markdown_escaped

    numbers = [are_numbers(list(column)) for column in sheet.columns.values()]
    head = [markdown_escaped(name) for name in sheet.columns]
    body = [
        [cell if number else markdown_escaped(cell) for cell, number in zip(row, numbers, strict=True)]
        for row in _texts(sheet)
    ]
    rule = ["---:" if number else ":---" for number in numbers]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *body])


def as_latex(sheet: Sheet) -> str:
    """A table for the package booktabs."""
    from vendimeter._markup import latex_escaped

    numbers = [are_numbers(list(column)) for column in sheet.columns.values()]

    def cell(text: str, number: bool) -> str:
        if not number:
            return latex_escaped(text)
        text = {"–": "--", "∞": r"$\infty$", "−∞": r"$-\infty$"}.get(text, text.replace(",", "{,}"))
        if "e" in text:  # 1.5e-09
            size, _, power = text.partition("e")
            return f"${size} \\times 10^{{{int(power)}}}$"
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
