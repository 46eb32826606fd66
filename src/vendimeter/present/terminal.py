"""Results for a terminal. User text is data: control characters are shown, and nothing in it is markup."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from rich.cells import cell_len, chop_cells
from rich.text import Text

from vendimeter.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from vendimeter.cli.output import Answer
    from vendimeter.present.tables import Sheet

__all__ = [
    "Column",
    "console",
    "encodable",
    "is_terminal",
    "printable",
    "printable_lines",
    "say",
    "shown",
    "table",
    "wrapped",
]

ENDS = 10  # rows shown from either end of a long table
NARROWEST, WIDEST = 40, 140  # cells of a terminal that are reckoned with
UNLIMITED = 100_000  # where the output is no terminal, nothing is cut or wrapped


def printable_lines(text: str) -> str:
    """Several lines of text, each without control characters."""
    return "\n".join(printable(line) for line in text.split("\n"))


def say(text: str, quiet: bool = False) -> None:
    """Something beside the result, on standard error."""
    if not quiet:
        shown = printable_lines(text)
        with contextlib.suppress(OSError):  # nobody can be told, and the result matters more
            click.echo(wrapped(shown, sys.stderr) if is_terminal(sys.stderr) else shown, err=True)


def is_terminal(stream: Any) -> bool:
    """Whether somebody looks at what is written there."""
    try:
        return bool(stream.isatty())
    except Exception:  # closed, or none at all
        return False


def encodable(text: str, stream: Any) -> bool:
    """Whether a stream can write a text; click takes UTF-8 where the encoding is that of no language at all."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True


def wrapped(text: str, stream: Any) -> str:
    """Lines of text that break between words, where the terminal would break them anywhere."""
    width = _columns(stream)
    if all(len(line) < width // 2 for line in text.split("\n")):  # surely, even of wide characters
        return text
    from rich.text import Text

    page = console()
    lines = [part.plain.rstrip() for line in text.split("\n") for part in Text(line).wrap(page, width)]
    return "\n".join(lines)


def console(to_file: bool = False) -> Console:
    """A console that takes no text for markup; it writes into memory, so that the result comes out whole or not."""
    import io

    from rich.console import Console

    terminal = not to_file and is_terminal(sys.stdout)
    plain = not terminal or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    options: dict[str, Any] = {"color_system": None} if plain else {"force_terminal": True}
    return Console(
        file=io.StringIO(),
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
        legacy_windows=False,
        width=_columns(sys.stdout) if terminal else UNLIMITED,
        **options,
    )


def _columns(stream: Any) -> int:
    import shutil

    try:  # the other stream may be a file
        own = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        own = 0
    return min(max(NARROWEST, shutil.get_terminal_size((own or 80, 24)).columns), WIDEST)


def shown(answer: Answer, *, to_file: bool = False) -> str:
    """An answer as words and tables."""
    page = console(to_file)
    if answer.text is not None:
        return answer.text if page.width == UNLIMITED else wrapped(answer.text, sys.stdout)
    words = [_words(answer.words)] if answer.words else []
    tables = [_sheet(sheet, None if page.width == UNLIMITED else page.width) for sheet in answer.sheets]
    for i, part in enumerate([*words, *(table for table in tables if table is not None)]):
        if i:
            page.print()
        page.print(part)
    return "\n".join(line.rstrip() for line in page.file.getvalue().rstrip("\n").split("\n"))  # type: ignore[attr-defined]


def _words(text: str) -> Text:
    """Words of ours and of the user's, with headlines: a first line with others right below, or words before colons."""
    from rich.text import Text

    found = Text(printable_lines(text))
    if "\n\n" in found.plain:
        found.highlight_regex(r"(?m)(?:^|(?<=\n\n))[A-Z][a-z]+:", "bold")
    elif "\n" in found.plain:
        found.stylize("bold", 0, found.plain.index("\n"))
    return found


def _sheet(sheet: Sheet, width: int | None) -> Text | None:
    from rich.text import Text

    from vendimeter.present.tables import are_numbers, cells_of

    names = list(sheet.columns) if sheet.visible is None else list(sheet.visible)
    if not names or not len(sheet):
        return None
    order = list(range(len(sheet)) if sheet.order is None else sheet.order)
    notes = {}
    if sheet.shown is not None and len(order) > sheet.shown:
        left_out = len(order) - 2 * ENDS
        order = order[:ENDS] + order[-ENDS:]
        notes[ENDS] = f"… {left_out:,} more in between; --json and --csv have all"
    columns = []
    for name in names:
        values = list(sheet.columns[name])
        texts = cells_of(sheet, name)
        heading = printable(sheet.headings.get(name, name))
        columns.append(Column(heading, [printable(texts[i]) for i in order], are_numbers(values)))
    bars = None
    if sheet.bar is not None:
        lengths = [_length(value) for value in sheet.columns[sheet.bar]]
        top = max(lengths, default=0.0)
        bars = [lengths[i] / top for i in order] if top > 0 else None
    mark = "█" if encodable("█", sys.stdout) else "#"
    found = table(columns, width, bars=bars, notes=notes, bar=mark)
    return Text("\n").join([Text(printable(sheet.title), style="italic"), found]) if sheet.title else found


def _length(value: float | None) -> float:
    return 0.0 if value is None or value != value else max(0.0, float(value))


# -------------------------------------------------------------------------------------------------------------- tables

# Tables that fit a terminal: numbers stay whole, text is wrapped, and columns that find no room go below.

GAP = 2  # cells between two columns
BAR, SHORT_BAR = 24, 8  # cells of the longest bar, and of the longest where there is little room
ROOM = 30  # cells that a column of text keeps before the bars have to go
LEAST = 12  # cells that a column of text keeps in any case
LINES = 3  # of a text in one cell


@dataclass(frozen=True)
class Column:
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
        heading = max(map(cell_len, _pieces(self.heading)), default=0)
        return max(heading, self.widest if self.right else min(self.widest, LEAST))


def table(
    columns: Sequence[Column],
    width: int | None = None,
    *,
    bars: Sequence[float] | None = None,
    notes: Mapping[int, str] | None = None,
    bar: str = "█",
) -> Text:
    r"""A table of a width, or as wide as it is.

    Parameters
    ----------
    columns : list of Column
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
    >>> columns = [Column("group", ["a very long name", "b"]), Column("score", ["2.0", "1.5"], right=True)]
    >>> table(columns, 19).plain.split("\n")
    ['group         score', 'a very long     2.0', 'name', 'b               1.5']
    """
    if width is None:
        found = _block(columns, [column.natural for column in columns], bars, BAR, notes, bar)
        return Text("\n").join(found)
    widths, room = _widths(columns, width, bars is not None)
    if widths is not None:
        return Text("\n").join(_block(columns, widths, bars if room else None, room, notes, bar))
    first, *others = columns
    lines: list[Text] = []
    while others:
        taken = [first, others.pop(0)]
        while others and _least([*taken, others[0]]) <= width:
            taken.append(others.pop(0))
        fitted = _widths(taken, width, False)[0] or [column.least for column in taken]
        lines += [Text(""), *_block(taken, fitted, None, 0, notes, bar)]
    return Text("\n").join(lines[1:])


def _least(columns: Sequence[Column]) -> int:
    return sum(column.least for column in columns) + GAP * (len(columns) - 1)


def _widths(columns: Sequence[Column], width: int, barred: bool) -> tuple[list[int] | None, int]:
    """The widths of columns, and of the bars; None where they do not fit beside each other."""
    if len(columns) > 1 and _least(columns) > width:
        return None, 0
    natural = [column.natural for column in columns]
    gaps = GAP * (len(columns) - 1)
    for wanted in (BAR, SHORT_BAR) if barred else (-GAP,):
        if sum(natural) + gaps + GAP + wanted <= width:
            return natural, min(BAR, width - sum(natural) - gaps - GAP) if barred else 0
    # Headings of numbers are wrapped; then texts, the widest first; bars go where texts would have too little.
    tight = [column.least if column.right else column.natural for column in columns]
    texts = [i for i, column in enumerate(columns) if not column.right]
    room = width - gaps - sum(size for i, size in enumerate(tight) if i not in texts)
    enough = sum(min(tight[i], ROOM) for i in texts) + GAP + SHORT_BAR <= room
    bar = 0
    if barred and enough:
        bar = min(BAR, max(SHORT_BAR, room - GAP - sum(tight[i] for i in texts)))
        room -= GAP + bar
    for i, size in zip(texts, _levelled([columns[i] for i in texts], room), strict=True):
        tight[i] = size
    spare = width - gaps - sum(tight) - (GAP + bar if bar else 0)
    for i, column in enumerate(columns):  # headings that have room after all
        more = min(max(spare, 0), column.natural - tight[i]) if column.right else 0
        if more == column.natural - tight[i]:
            tight[i], spare = tight[i] + more, spare - more
    return tight, bar


def _levelled(columns: Sequence[Column], room: int) -> list[int]:
    """Widths of columns of text that together have so much room: the widest give way first."""
    found = [column.natural for column in columns]
    least = [column.least for column in columns]
    while sum(found) > room:
        open_ones = [i for i in range(len(found)) if found[i] > least[i]]
        if not open_ones:
            break
        found[max(open_ones, key=found.__getitem__)] -= 1
    return found


def _block(
    columns: Sequence[Column],
    widths: Sequence[int],
    bars: Sequence[float] | None,
    room: int,
    notes: Mapping[int, str] | None,
    bar: str,
) -> list[Text]:
    """The lines of columns beside each other."""
    headings = [_joined(_pieces(column.heading), size) for column, size in zip(columns, widths, strict=True)]
    high = max(map(len, headings))
    padded = [[""] * (high - len(lines)) + lines for lines in headings]
    found = _lines(padded, columns, widths, "bold")
    for i in range(len(columns[0].cells)):
        if notes and i in notes:
            found.append(Text(notes[i]))
        cells = [_wrapped(column.cells[i], size) for column, size in zip(columns, widths, strict=True)]
        lines = _lines(cells, columns, widths)
        if bars is not None and (length := round(room * bars[i])):
            full = sum(widths) + GAP * len(widths)
            lines[0].append(" " * (full - cell_len(lines[0].plain)))
            lines[0].append(bar * length, style="cyan")
        found += lines
    return found


def _lines(
    cells: Sequence[Sequence[str]], columns: Sequence[Column], widths: Sequence[int], style: str = ""
) -> list[Text]:
    """Cells of one or more lines, beside each other."""
    found = []
    for k in range(max(map(len, cells))):
        line = ""
        for lines, column, size in zip(cells, columns, widths, strict=True):
            part = lines[k] if k < len(lines) else ""
            pad = " " * (size - cell_len(part))
            line += (pad + part if column.right else part + pad) + " " * GAP
        found.append(Text(line.rstrip(), style=style))
    return found


def _pieces(heading: str) -> list[str]:
    """Where a heading may be wrapped: after spaces and underscores."""
    return re.findall(r"[^ _]+_*|_+", heading)


def _joined(pieces: Sequence[str], width: int) -> list[str]:
    """The pieces of a heading in lines of a width."""
    lines = [""]
    for piece in pieces:
        glue = "" if not lines[-1] or lines[-1].endswith("_") else " "
        if lines[-1] and cell_len(lines[-1] + glue + piece) > width:
            lines.append(piece)
        else:
            lines[-1] += glue + piece
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    """Text in a few lines of a width, at spaces where there are some; what is left out at the end is marked."""
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
        start = " " * (cell_len(lines[-1]) + 1) if lines[-1] and cell_len(lines[-1]) + LEAST < width else ""
        first, *rest = chop_cells(start + word, width)
        if start:
            lines[-1] += first[len(start) - 1 :]
        else:
            lines.append(first)
        lines += rest
    lines = [line for line in lines if line]
    if len(lines) <= LINES:
        return lines
    last = lines[LINES - 1]
    while cell_len(last) > width - 1:
        last = last[:-1]
    return [*lines[: LINES - 1], last + "…"]
