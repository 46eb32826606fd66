"""Tables as lines of a terminal: numbers stay whole, text is wrapped, and columns that find no room go below.

Bars are drawn only where there is room for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.text import Text

__all__ = ["TextColumn", "table"]

GAP = 2  # cells between two columns
BAR, SHORT_BAR = 24, 8  # cells of the longest bar, and of the longest where there is little room
TEXT_CELLS = 30  # cells that a column of text keeps before the bars have to go
LEAST_TEXT_CELLS = 12  # cells that a column of text keeps in any case
MOST_LINES = 3  # of a text in one cell


@dataclass(frozen=True)
class TextColumn:
    """The heading and the cells of a column, as they are to be shown."""

    heading: str
    cells: Sequence[str]
    right: bool = False  # of numbers, which are never cut

    @property
    def widest(self) -> int:
        """Cells of the terminal that its contents take."""
        return max(map(cell_len, self.cells), default=0)

    @property
    def natural(self) -> int:
        """The width at which nothing is wrapped."""
        return max(cell_len(self.heading), self.widest)

    @property
    def least(self) -> int:
        """The width below which it cannot be read."""
        heading = max(map(cell_len, _heading_pieces(self.heading)), default=0)
        return max(heading, self.widest if self.right else min(self.widest, LEAST_TEXT_CELLS))


def table(
    columns: Sequence[TextColumn],
    width: int | None = None,
    *,
    bars: Sequence[float] | None = None,
    notes: Mapping[int, str] | None = None,
    bar: str = "█",
) -> Text:
    r"""A table of at most this width, or of its natural width.

    Parameters
    ----------
    columns : list of TextColumn
        What is shown; where they do not fit beside each other, those that are left go below, with the first column once
        more.
    width : int, optional
        Cells of the terminal; without it nothing is wrapped.
    bars : list of float, optional
        Lengths of bars, one a row, as shares of the longest.
    notes : mapping, optional
        Lines that stand before the row of a number.
    bar : str
        What bars are drawn with.

    Examples
    --------
    >>> columns = [TextColumn("group", ["a very long name", "b"]), TextColumn("score", ["2.0", "1.5"], right=True)]
    >>> table(columns, 19).plain.split("\n")
    ['group         score', 'a very long     2.0', 'name', 'b               1.5']
    """
    if width is None:
        natural = [column.natural for column in columns]
        return Text("\n").join(_table_lines(columns, natural, bars, BAR, notes, bar))
    widths, room = _widths(columns, width, bars is not None)
    if widths is not None:
        return Text("\n").join(_table_lines(columns, widths, bars if room else None, room, notes, bar))
    first, *others = columns
    lines: list[Text] = []
    while others:
        fitting = [first, others.pop(0)]
        while others and _least_width([*fitting, others[0]]) <= width:
            fitting.append(others.pop(0))
        fitted_widths = _widths(fitting, width, False)[0] or [column.least for column in fitting]
        lines += [Text(""), *_table_lines(fitting, fitted_widths, None, 0, notes, bar)]
    return Text("\n").join(lines[1:])


def _least_width(columns: Sequence[TextColumn]) -> int:
    return sum(column.least for column in columns) + GAP * (len(columns) - 1)


def _widths(columns: Sequence[TextColumn], width: int, barred: bool) -> tuple[list[int] | None, int]:
    """The widths of columns, and of the bars; None where they do not fit beside each other."""
    if len(columns) > 1 and _least_width(columns) > width:
        return None, 0
    natural = [column.natural for column in columns]
    gaps = GAP * (len(columns) - 1)
    for bar_width in (BAR, SHORT_BAR) if barred else (-GAP,):
        if sum(natural) + gaps + GAP + bar_width <= width:
            return natural, min(BAR, width - sum(natural) - gaps - GAP) if barred else 0
    # Headings of numbers are wrapped; then texts, the widest first; bars go where texts would have too little.
    widths = [column.least if column.right else column.natural for column in columns]
    texts = [i for i, column in enumerate(columns) if not column.right]
    room = width - gaps - sum(size for i, size in enumerate(widths) if i not in texts)
    bars_fit = sum(min(widths[i], TEXT_CELLS) for i in texts) + GAP + SHORT_BAR <= room
    bar_cells = 0
    if barred and bars_fit:
        bar_cells = min(BAR, max(SHORT_BAR, room - GAP - sum(widths[i] for i in texts)))
        room -= GAP + bar_cells
    for i, size in zip(texts, _shrink_widest([columns[i] for i in texts], room), strict=True):
        widths[i] = size
    spare = width - gaps - sum(widths) - (GAP + bar_cells if bar_cells else 0)
    for i, column in enumerate(columns):  # headings that have room after all
        missing = min(max(spare, 0), column.natural - widths[i]) if column.right else 0
        if missing == column.natural - widths[i]:
            widths[i], spare = widths[i] + missing, spare - missing
    return widths, bar_cells


def _shrink_widest(columns: Sequence[TextColumn], room: int) -> list[int]:
    """Widths of columns of text that fit into this room together: the widest are made narrower first."""
    widths = [column.natural for column in columns]
    least = [column.least for column in columns]
    while sum(widths) > room:
        shrinkable = [i for i in range(len(widths)) if widths[i] > least[i]]
        if not shrinkable:
            break
        widths[max(shrinkable, key=widths.__getitem__)] -= 1
    return widths


def _table_lines(
    columns: Sequence[TextColumn],
    widths: Sequence[int],
    bars: Sequence[float] | None,
    room: int,
    notes: Mapping[int, str] | None,
    bar: str,
) -> list[Text]:
    """The lines of a table whose columns stand beside each other."""
    headings = [
        _fill_lines(_heading_pieces(column.heading), size)
        for column, size in zip(columns, widths, strict=True)
    ]
    heading_lines = max(map(len, headings))
    padded = [[""] * (heading_lines - len(lines)) + lines for lines in headings]
    lines_of_table = _row_lines(padded, columns, widths, "bold")
    for i in range(len(columns[0].cells)):
        if notes and i in notes:
            lines_of_table.append(Text(notes[i]))
        cells = [_wrap_cell(column.cells[i], size) for column, size in zip(columns, widths, strict=True)]
        lines = _row_lines(cells, columns, widths)
        if bars is not None and (length := round(room * bars[i])):
            table_width = sum(widths) + GAP * len(widths)
            lines[0].append(" " * (table_width - cell_len(lines[0].plain)))
            lines[0].append(bar * length, style="cyan")
        lines_of_table += lines
    return lines_of_table


def _row_lines(
    cells: Sequence[Sequence[str]], columns: Sequence[TextColumn], widths: Sequence[int], style: str = ""
) -> list[Text]:
    """The lines of one row, of cells of one or more lines beside each other."""
    rendered = []
    for k in range(max(map(len, cells))):
        line = ""
        for lines, column, size in zip(cells, columns, widths, strict=True):
            text = lines[k] if k < len(lines) else ""
            padding = " " * (size - cell_len(text))
            line += (padding + text if column.right else text + padding) + " " * GAP
        rendered.append(Text(line.rstrip(), style=style))
    return rendered


def _heading_pieces(heading: str) -> list[str]:
    """The pieces between which a heading may be wrapped: after spaces and underscores."""
    return re.findall(r"[^ _]+_*|_+", heading)


def _fill_lines(pieces: Sequence[str], width: int) -> list[str]:
    """Lines of at most this width, filled with the pieces of a heading."""
    lines = [""]
    for piece in pieces:
        glue = "" if not lines[-1] or lines[-1].endswith("_") else " "
        if lines[-1] and cell_len(lines[-1] + glue + piece) > width:
            lines.append(piece)
        else:
            lines[-1] += glue + piece
    return lines


def _wrap_cell(text: str, width: int) -> list[str]:
    """Text in a few lines of at most this width, broken at spaces where possible; a cut at the end is marked."""
    if cell_len(text) <= width:
        return [text]
    lines = [""]
    for word in re.findall(r" *[^ ]+", text):
        if cell_len(lines[-1] + word) <= width:
            lines[-1] += word
            continue
        word = word.lstrip(" ") if lines[-1] else word
        if cell_len(word) <= width:
            lines.append(word)
            continue
        # A word that is too long for a line begins where it stands, and goes on in the next.
        start = (
            " " * (cell_len(lines[-1]) + 1)
            if lines[-1] and cell_len(lines[-1]) + LEAST_TEXT_CELLS < width
            else ""
        )
        first, *rest = chop_cells(start + word, width)
        if start:
            lines[-1] += first[len(start) - 1 :]
        else:
            lines.append(first)
        lines += rest
    lines = [line for line in lines if line]
    if len(lines) <= MOST_LINES:
        return lines
    last = lines[MOST_LINES - 1]
    while cell_len(last) > width - 1:
        last = last[:-1]
    return [*lines[: MOST_LINES - 1], last + "…"]
