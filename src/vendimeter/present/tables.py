"""Tables of results as text: CSV, LaTeX, Markdown, HTML and plain columns.

There are two kinds. A table of figures has rows of `Cell` under `Column`: numbers with what stands behind their ±, and
columns of which some are better when they are larger; it is written by `markdown`, `latex`, `html_page` and
`plain_text`. A `Sheet` has columns of any values, as the command prints them; it is written by
`as_csv`, `as_markdown` and `as_latex`, with the texts of `cells_of` for people.

Names and texts are the user's, and never markup.
"""

from __future__ import annotations

import csv
import io
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vendimeter.optional import require
from vendimeter.present.notes import Note
from vendimeter.present.text import (
    html_escaped,
    label_as_text,
    latex_escaped,
    markdown_escaped,
    on_one_line,
    printable,
)

__all__ = [
    "COMPUTED",
    "DIGITS",
    "DOWN",
    "NEITHER",
    "OVER_GROUPS",
    "OVER_SPLITS",
    "SAMPLED",
    "UP",
    "Cell",
    "Column",
    "Sheet",
    "are_numbers",
    "as_csv",
    "as_latex",
    "as_markdown",
    "cells_of",
    "column_texts",
    "data_frame",
    "decimals_of",
    "grid",
    "html_page",
    "html_table",
    "latex",
    "markdown",
    "notes_on",
    "plain_text",
    "ranked",
]


# Which way figures of a column are better.
UP, DOWN, NEITHER = "up", "down", ""
ARROWS = {UP: " ↑", DOWN: " ↓", NEITHER: ""}
LATEX_ARROWS = {UP: r" $\uparrow$", DOWN: r" $\downarrow$", NEITHER: ""}
LATEX_SPECIAL = {"–": "--", "∞": r"$\infty$", "−∞": r"$-\infty$"}  # what is written in the place of a number
DIGITS = 4  # significant ones, of the smallest figure of a column
MOST_DECIMALS = 6

# What stands behind ±.
OVER_GROUPS = "the standard error of the mean over groups"
OVER_SPLITS = "the standard deviation over splits"
COMPUTED = "the bounds of the computation"
SAMPLED = "the interval of the sampling error"


@dataclass(frozen=True)
class Column:
    """A column: its name in a frame, its title for people, and which way is better."""

    name: str
    title: str
    better: str = NEITHER
    whole: bool = False  # a count: no digits after the point


@dataclass(frozen=True)
class Cell:
    """A figure of a table: the value, and how far it may be off where that is known; None where there is none."""

    value: float | int | None = None
    low: float | None = None
    high: float | None = None
    spread: float | None = None  # what stands behind ± …
    behind: str = ""  # … and what that is


def decimals_of(cells: Sequence[Cell], digits: int) -> int:
    """How many digits after the point show `digits` significant ones of the smallest figure of a column.

    No more than show two of the largest error that matters to these.

    Examples
    --------
    >>> decimals_of([Cell(102.9), Cell(4.39)], 3), decimals_of([Cell(0.8551)], 4)
    (2, 4)
    >>> decimals_of([Cell(0.38), Cell(0.1, spread=0.12)], 4)
    2
    """
    finite = [abs(cell.value) for cell in cells if cell.value is not None and math.isfinite(cell.value)]
    # What is smaller is 0 in any case.
    sizes = [size for size in finite if size >= 0.5 * 10.0**-MOST_DECIMALS]
    if not sizes:
        return digits - 1
    decimals = min(MOST_DECIMALS, max(0, digits - 1 - math.floor(math.log10(min(sizes)))))
    largest = max((cell.spread for cell in cells if cell.spread and math.isfinite(cell.spread)), default=0.0)
    if largest >= 0.5 * 10.0**-decimals:
        decimals = min(decimals, max(0, 1 - math.floor(math.log10(largest))))
    if max(sizes) >= 0.1:
        decimals = min(decimals, digits)  # a share of 0.05 beside one of 0.9 needs no more
    while decimals >= digits and all(
        math.isclose(size, round(size, decimals - 1), abs_tol=1e-12) for size in sizes
    ):
        decimals -= 1  # zeros at the end of every figure, as shares of a hundred items have them
    return decimals


def _format_figure(cell: Cell, column: Column, decimals: int) -> tuple[str, str]:
    """A figure as text, and what stands behind its ±, "" where that rounds to 0."""
    if cell.value is None:
        return "", ""
    if math.isnan(cell.value):
        return "–", ""
    if math.isinf(cell.value):
        return "∞" if cell.value > 0 else "−∞", ""
    if column.whole and float(cell.value).is_integer() and not cell.spread:
        return f"{int(cell.value):,}", ""
    spread = cell.spread if cell.spread is not None and math.isfinite(cell.spread) else 0.0
    spread_text = f"{spread:.{decimals}f}" if spread >= 0.5 * 10.0**-decimals else ""
    return f"{cell.value:z.{decimals}f}", spread_text


def grid(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], digits: int
) -> list[list[tuple[str, str]]]:
    """The figures as texts, each with what stands behind ±; all of a column with as many digits after the point."""
    decimals = [decimals_of([row[j] for row in rows], digits) for j in range(len(columns))]
    return [
        [
            _format_figure(cell, column, count)
            for cell, column, count in zip(row, columns, decimals, strict=True)
        ]
        for row in rows
    ]


def best_of(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], digits: int, apart: int | None
) -> list[set[int]]:
    """For each column the rows with the best figure, rounded as it is shown, where there is a better and a worse.

    The row that is set `apart`, that of the reference, takes no part.
    """
    best_rows: list[set[int]] = []
    for j, column in enumerate(columns):
        decimals = decimals_of([row[j] for row in rows], digits)
        values = {i: row[j].value for i, row in enumerate(rows) if i != apart}
        comparable = {
            i: round(value, decimals)
            for i, value in values.items()
            if value is not None and not math.isnan(value)
        }
        if not column.better or len(set(comparable.values())) < 2:
            best_rows.append(set())
            continue
        best = (max if column.better == UP else min)(comparable.values())
        best_rows.append({i for i, value in comparable.items() if value == best})
    return best_rows


def notes_on(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], groups: Sequence[int]
) -> Iterator[Note]:
    """What a reader of the figures should know; `groups` are the sizes of the groups of texts, where there are any."""
    sizes = [int(row[0].value or 0) for row in rows]
    smallest, largest = min(sizes), max(sizes)
    if smallest < largest:
        text = (
            f"The collections have {smallest:,} to {largest:,} samples, and scores and distances depend on that; "
            "compare samples of one size."
        )
        yield Note("sizes-differ", text, {"smallest": smallest, "largest": largest})
    if groups:
        titles: dict[bool, list[str]] = {True: [], False: []}
        for j, column in enumerate(columns[1:], 1):
            if any(row[j].value is not None for row in rows):
                titles[any(row[j].behind == OVER_GROUPS for row in rows)].append(column.title)
        text = f"{', '.join(titles[True])}: means over groups, and ± is their standard error."
        yield Note("means-over-groups", text, {"columns": tuple(titles[True])})
        if titles[False]:
            text = f"{', '.join(titles[False])}: of all groups together."
            yield Note("all-groups-together", text, {"columns": tuple(titles[False])})
        if min(groups) < 2:
            text = "Groups that are too small for a figure are left out of its mean."
            yield Note("small-groups-left-out", text)
    spread_meanings = {
        column.title: row[j].behind
        for row, texts in zip(rows, grid(columns, rows, DIGITS), strict=True)
        for j, column in enumerate(columns)
        if texts[j][1] and not (groups and row[j].behind == OVER_GROUPS)
    }
    for j, column in enumerate(columns):
        lower_ends = [row[j].low for row in rows if row[j].value == math.inf]
        lows = tuple(low for low in lower_ends if low is not None and math.isfinite(low))
        if lows:
            ends = "end of the interval is" if len(lows) == 1 else "ends of the intervals are"
            shown = ", ".join(f"{low:,.4g}" for low in lows)
            text = f"{column.title}: where it is ∞, the lower {ends} {shown}."
            yield Note("infinite", text, {"column": column.title, "low": lows})
    if spread_meanings:
        listed = "; for ".join(f"{title}: {behind}" for title, behind in spread_meanings.items())
        yield Note("plus-minus", f"± is, for {listed}.", spread_meanings)


# ------------------------------------------------------------------------------------- formats of tables of figures


def markdown(
    names: Sequence[object],
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    digits: int,
    best: bool,
    apart: int | None = None,
) -> str:
    """A table in GitHub's Markdown."""
    texts = grid(columns, rows, digits)
    bold = best_of(columns, rows, digits, apart) if best else [set() for _ in columns]

    def cell(i: int, j: int) -> str:
        value, spread = texts[i][j]
        text = f"{value} ± {spread}" if spread else value
        return f"**{text}**" if i in bold[j] and text else text

    head = ["", *(markdown_escaped(column.title) + ARROWS[column.better] for column in columns)]
    body = [
        [markdown_escaped(name), *(cell(i, j) for j in range(len(columns)))] for i, name in enumerate(names)
    ]
    return _markdown_lines(head, body, [False, *(True for _ in columns)], aligned=True) + "\n"


def latex(
    names: Sequence[object],
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    digits: int,
    best: bool,
    apart: int | None = None,
    caption: str | None,
    label: str | None,
) -> str:
    """A table of LaTeX with the rules of the package booktabs; in a float where it has a caption or a label."""
    texts = grid(columns, rows, digits)
    bold = best_of(columns, rows, digits, apart) if best else [set() for _ in columns]

    def cell(i: int, j: int) -> str:
        value, spread = texts[i][j]
        figure = _latex_number(value)
        text = f"{figure} $\\pm$ {spread}" if spread else figure
        return f"\\textbf{{{text}}}" if i in bold[j] and text else text

    head = ["", *(_latex_title(column.title) + LATEX_ARROWS[column.better] for column in columns)]
    body = [[latex_escaped(name), *(cell(i, j) for j in range(len(columns)))] for i, name in enumerate(names)]
    lines = _latex_lines(head, body, [False, *(True for _ in columns)])
    if caption is not None or label is not None:
        lines = [r"\begin{table}", r"\centering", *lines]
        lines += [] if caption is None else [f"\\caption{{{latex_escaped(caption)}}}"]
        lines += [] if label is None else [f"\\label{{{label}}}"]
        lines.append(r"\end{table}")
    return "\n".join(lines) + "\n"


def _latex_title(title: str) -> str:
    """A title, with subscripts such as those of IntDiv₂ in LaTeX's own."""
    text = latex_escaped(title)
    for digit, mark in enumerate("₀₁₂₃₄₅₆₇₈₉"):
        text = text.replace(mark, f"$_{digit}$")
    return text


def html_page(
    names: Sequence[object],
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    notes: Sequence[str],
) -> str:
    """A table for a notebook; all texts are escaped."""
    head = ["", *(column.title + ARROWS[column.better] for column in columns)]
    texts = grid(columns, rows, DIGITS)
    body = [[name, *map(_with_spread, row)] for name, row in zip(names, texts, strict=True)]
    return html_table(body, head, named_rows=True) + "".join(f"<p>{html_escaped(note)}</p>" for note in notes)


def plain_text(
    names: Sequence[object],
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    notes: Sequence[str],
) -> str:
    """A table for a terminal, in columns of one width."""
    head = ["", *(on_one_line(column.title, 40) + ARROWS[column.better] for column in columns)]
    texts = grid(columns, rows, DIGITS)
    body = [[on_one_line(name, 40), *map(_with_spread, row)] for name, row in zip(names, texts, strict=True)]
    widths = [max(len(row[j]) for row in [head, *body]) for j in range(len(head))]
    lines = [
        "  ".join(
            text.ljust(width) if j == 0 else text.rjust(width)
            for j, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [head, *body]
    ]
    return "\n".join([*lines, *map(on_one_line, notes)])


def _with_spread(text: tuple[str, str]) -> str:
    """A figure with what stands behind its ±."""
    return f"{text[0]} ± {text[1]}" if text[1] else text[0]


# -------------------------------------------------------------------------------------------------------------- sheets

# Columns of labels, which are no numbers even where they look like them: the year 2020 is not 2,020.
LABELS = ("group", "reference", "label", "first", "second")
FORMULA = "=+-@"  # what spreadsheets take for the beginning of a formula
# Control characters, which terminals obey, and marks that turn the direction of writing.
CONTROL_CHARACTERS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# After these a new cell may begin, for a program that takes another separator, or quotes for letters.
CELL_STARTS = ";\t\r\n"


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
    writer.writerow([_escape_formula(name) for name in sheet.columns])
    for row in sheet.rows:
        writer.writerow([_format_csv(value) for value in row])
    return stream.getvalue().rstrip("\n")


def _format_csv(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(float(value)) if isinstance(value, float) else str(int(value))
    return _escape_formula(label_as_text(value))


def _escape_formula(text: str) -> str:
    """Text that no spreadsheet takes for a formula: what begins like one gets an apostrophe in front.

    Examples
    --------
    >>> [_escape_formula(text) for text in ("=1+1", "  +x", "a-b", "a;@x")]
    ["'=1+1", "'  +x", 'a-b', "a;'@x"]
    """
    pieces = re.split(f"([{CELL_STARTS}])", text)
    safe_pieces = [pieces[0], *(f"'{piece}" if _is_formula(piece) else piece for piece in pieces[1:])]
    prefix = "'" if _is_formula(text) or text.startswith(("\t", "\r", "\n")) else ""
    return CONTROL_CHARACTERS.sub(lambda mark: printable(mark[0]), prefix + "".join(safe_pieces))


def _is_formula(text: str) -> bool:
    """Whether a text begins like a formula, after blanks, quotes and what cannot be seen; in wide letters, too."""
    for mark in text:
        if not (mark.isspace() or mark in "\"'" or not mark.isprintable()):
            return unicodedata.normalize("NFKC", mark) in tuple(FORMULA)
    return False


def _text_rows(sheet: Sheet) -> list[list[str]]:
    columns = [cells_of(sheet, name) for name in sheet.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def cells_of(sheet: Sheet, name: str) -> list[str]:
    """The texts of a column of a sheet for people."""
    values = list(sheet.columns[name])
    if name not in LABELS:
        return column_texts(values, sheet.digits)
    return ["–" if value is None else label_as_text(value) for value in values]


def column_texts(values: Sequence[Any], digits: int) -> list[str]:
    """The cells of a column for people: numbers of one column with as many digits after the point.

    Examples
    --------
    >>> column_texts([11.7666, 2.0, None], 4), column_texts([1e-9, 0.5], 3), column_texts([1200, 7], 4)
    (['11.77', '2.00', '–'], ['1e-09', '0.5'], ['1,200', '7'])
    """
    numbers = [value.item() if hasattr(value, "item") else value for value in values]
    sizes = [abs(value) for value in numbers if isinstance(value, float) and math.isfinite(value) and value]
    are_large_integers = all(size == int(size) for size in sizes) and max(sizes, default=0.0) >= 10**digits
    largest = max(sizes, default=1.0)
    decimals = 0 if are_large_integers else max(0, digits - 1 - math.floor(math.log10(largest)))
    # As orders are: 0.5, 1, 2.
    has_integers = any(isinstance(value, int) and not isinstance(value, bool) for value in numbers)
    is_fixed = decimals <= digits + 2 and min(sizes, default=1.0) >= 10.0**-decimals and not has_integers
    return [_format_value(value, digits, decimals if is_fixed else None) for value in numbers]


def _format_value(value: Any, digits: int, decimals: int | None) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{int(value):,}"
    if isinstance(value, float):
        if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        return f"{value:.{digits}g}" if decimals is None else f"{value:,.{decimals}f}"
    return label_as_text(value)


def ranked(values: Sequence[float]) -> list[int]:
    """The order of rows by a column, the highest first; those that are equal up to rounding stay as they stand.

    Examples
    --------
    >>> ranked([1.0, float("nan"), 2.0, 2.0000000000000004])
    [2, 3, 0, 1]
    """
    rounded = [float(f"{value:.12g}") for value in values]
    return sorted(range(len(rounded)), key=lambda i: (math.isnan(rounded[i]), -rounded[i]))


def are_numbers(values: Sequence[Any]) -> bool:
    """Whether a column holds numbers, or nothing."""
    numbers = [value.item() if hasattr(value, "item") else value for value in values]
    return all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in numbers
    )


def as_markdown(sheet: Sheet) -> str:
    """A sheet as a table in GitHub's Markdown."""
    is_numeric = [are_numbers(list(column)) for column in sheet.columns.values()]
    head = [markdown_escaped(name) for name in sheet.columns]
    body = [
        [cell if numeric else markdown_escaped(cell) for cell, numeric in zip(row, is_numeric, strict=True)]
        for row in _text_rows(sheet)
    ]
    return _markdown_lines(head, body, is_numeric)


def as_latex(sheet: Sheet) -> str:
    """A sheet as a table of LaTeX with the rules of the package booktabs."""
    is_numeric = [are_numbers(list(column)) for column in sheet.columns.values()]

    head = [latex_escaped(name) for name in sheet.columns]
    body = [
        [
            _latex_number(cell) if numeric else latex_escaped(cell)
            for cell, numeric in zip(row, is_numeric, strict=True)
        ]
        for row in _text_rows(sheet)
    ]
    return "\n".join(_latex_lines(head, body, is_numeric))


# ------------------------------------------------------------------------------------------------ tables in each format


def _markdown_lines(
    head: Sequence[str], body: Sequence[Sequence[str]], is_numeric: Sequence[bool], *, aligned: bool = False
) -> str:
    """A table in GitHub's Markdown, numbers to the right; its columns may be aligned in the source, too."""
    widths = [max(3, *(len(row[j]) for row in [head, *body])) if aligned else 4 for j in range(len(head))]
    rule = [
        "-" * (width - 1) + ":" if numeric else ":" + "-" * (width - 1)
        for width, numeric in zip(widths, is_numeric, strict=True)
    ]
    rows = [head, rule, *body]
    if aligned:
        rows = [
            [
                cell.rjust(width) if numeric else cell.ljust(width)
                for cell, width, numeric in zip(row, widths, is_numeric, strict=True)
            ]
            for row in rows
        ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _latex_lines(head: Sequence[str], body: Sequence[Sequence[str]], is_numeric: Sequence[bool]) -> list[str]:
    """A table of LaTeX with the rules of the package booktabs, numbers to the right."""
    return [
        f"\\begin{{tabular}}{{{''.join('r' if numeric else 'l' for numeric in is_numeric)}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in body),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _latex_number(text: str) -> str:
    r"""A number as LaTeX sets it.

    Examples
    --------
    >>> print(*map(_latex_number, ("-1,200.5", "1.5e-09", "∞", "–")))
    $-$1{,}200.5 $1.5 \times 10^{-9}$ $\infty$ --
    """
    if text in LATEX_SPECIAL:
        return LATEX_SPECIAL[text]
    text = text.replace(",", "{,}")
    if "e" in text:
        size, _, power = text.partition("e")
        return f"${size} \\times 10^{{{int(power)}}}$"
    return (
        f"$-${text[1:]}" if text.startswith("-") else text
    )  # a minus, not a hyphen, and figures that can be bold


def html_table(
    rows: Sequence[Sequence[object]], head: Sequence[object] = (), *, named_rows: bool = False
) -> str:
    """A small HTML table; every cell is escaped, because names and kernels hold user text.

    With `named_rows` the first cell of each row is its name.
    """

    def line(cells: Sequence[object], first: str, others: str) -> str:
        tags = [first, *[others] * (len(cells) - 1)]
        texts = [f"<{tag}>{html_escaped(cell)}</{tag}>" for tag, cell in zip(tags, cells, strict=True)]
        return f"<tr>{''.join(texts)}</tr>"

    body = "".join(line(row, "th" if named_rows else "td", "td") for row in rows)
    top = f"<thead>{line(head, 'th', 'th')}</thead>" if head else ""
    return f"<table>{top}<tbody>{body}</tbody></table>"


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas frame of the columns; pandas is optional."""
    return require("pandas", extra="frames", purpose="to_frame()").DataFrame(dict(columns))
