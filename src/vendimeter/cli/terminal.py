"""Results for a terminal. User text is data: control characters are shown, and nothing in it is markup."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from vendimeter.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from vendimeter.cli.outputs import Answer
    from vendimeter.cli.sheets import Sheet

__all__ = ["console", "encodable", "is_terminal", "printable", "printable_lines", "say", "shown", "wrapped"]

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

    from vendimeter.cli.sheets import are_numbers, cells_of
    from vendimeter.cli.tables import Column, table

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
