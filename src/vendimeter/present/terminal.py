"""Results as words and tables that fit a terminal.

Where the output is no terminal, nothing is cut or wrapped. User text is data: control characters are shown, and nothing
in it is markup. rich is imported when something is drawn, for `vendi --help` has to answer at once, and click when
something is said, for it comes with the command.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vendimeter.present.text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from vendimeter.present.tables import Sheet

__all__ = ["console", "encodable", "is_terminal", "printable_lines", "say", "shown", "wrap"]

ENDS = 10  # rows shown from either end of a long table
NARROWEST, WIDEST = 40, 140  # cells of a terminal that are reckoned with
UNLIMITED = 100_000  # where the output is no terminal, nothing is cut or wrapped


def printable_lines(text: str) -> str:
    """Several lines of text, each without control characters."""
    return "\n".join(printable(line) for line in text.split("\n"))


def say(text: str, quiet: bool = False) -> None:
    """Write a message on standard error, where nobody asked for quiet."""
    if not quiet:
        import click

        lines = printable_lines(text)
        with contextlib.suppress(OSError):  # nobody can be told, and the result matters more
            click.echo(wrap(lines, sys.stderr) if is_terminal(sys.stderr) else lines, err=True)


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal."""
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


def wrap(text: str, stream: Any) -> str:
    """Break lines of text between words at the width of the terminal, which would break them anywhere."""
    width = _terminal_width(stream)
    if all(len(line) < width // 2 for line in text.split("\n")):  # surely, even of wide characters
        return text
    from rich.text import Text

    page = console()
    lines = [
        wrapped_line.plain.rstrip()
        for line in text.split("\n")
        for wrapped_line in Text(line).wrap(page, width)
    ]
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
        width=_terminal_width(sys.stdout) if terminal else UNLIMITED,
        **options,
    )


def _terminal_width(stream: Any) -> int:
    import shutil

    try:  # the other stream may be a file
        stream_width = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        stream_width = 0
    return min(max(NARROWEST, shutil.get_terminal_size((stream_width or 80, 24)).columns), WIDEST)


def shown(words: str, sheets: Sequence[Sheet], *, to_file: bool = False) -> str:
    """Words and tables as text for standard output, or a file."""
    page = console(to_file)
    paragraphs = [_style_words(words)] if words else []
    tables = [_render_sheet(sheet, None if page.width == UNLIMITED else page.width) for sheet in sheets]
    for i, block in enumerate([*paragraphs, *(table for table in tables if table is not None)]):
        if i:
            page.print()
        page.print(block)
    return "\n".join(line.rstrip() for line in page.file.getvalue().rstrip("\n").split("\n"))  # type: ignore[attr-defined]


def _style_words(text: str) -> Text:
    """Text with its headlines in bold: a first line with others right below, or the words before colons."""
    from rich.text import Text

    styled = Text(printable_lines(text))
    if "\n\n" in styled.plain:
        styled.highlight_regex(r"(?m)(?:^|(?<=\n\n))[A-Z][a-z]+:", "bold")
    elif "\n" in styled.plain:
        styled.stylize("bold", 0, styled.plain.index("\n"))
    return styled


def _render_sheet(sheet: Sheet, width: int | None) -> Text | None:
    from rich.text import Text

    from vendimeter.present.tables import are_numbers, cells_of
    from vendimeter.present.terminal_tables import TextColumn, table

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
        columns.append(TextColumn(heading, [printable(texts[i]) for i in order], are_numbers(values)))
    bars = None
    if sheet.bar is not None:
        lengths = [_bar_length(value) for value in sheet.columns[sheet.bar]]
        longest = max(lengths, default=0.0)
        bars = [lengths[i] / longest for i in order] if longest > 0 else None
    mark = "█" if encodable("█", sys.stdout) else "#"
    rendered = table(columns, width, bars=bars, notes=notes, bar=mark)
    return (
        Text("\n").join([Text(printable(sheet.title), style="italic"), rendered]) if sheet.title else rendered
    )


def _bar_length(value: float | None) -> float:
    return 0.0 if value is None or value != value else max(0.0, float(value))
