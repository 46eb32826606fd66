"""A line in the terminal that says how far a long computation is, and is gone when it is done.

It is for people only: nothing is written unless the stream is a terminal, nothing in the first second, and nothing
stays. No trouble with the stream is worth an error: then there is no line.
"""

from __future__ import annotations

import atexit
import math
import os
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from vendimeter.present.numbers import clock_time
from vendimeter.present.terminal import encodable, is_terminal

__all__ = ["Progress", "showing"]

FIRST = 1.0  # seconds of work before anything is shown: what is done by then needs no progress
BETWEEN = 0.1  # seconds between two drawings
BAR = 24  # cells of the bar, at most …
SHORT_BAR = 8  # … and where the line is too short for that
WIDEST = 120  # cells of the line: a longer one is hard to read
EIGHTHS = "▏▎▍▌▋▊▉"
HIDE, SHOW, ERASE = "\x1b[?25l", "\x1b[?25h", "\x1b[K"


_shown_by_default: ContextVar[bool | None] = ContextVar("shown_by_default", default=None)


@contextmanager
def showing(shown: bool | None) -> Iterator[None]:
    """Within this block, progress is shown always (True), never, or on terminals (None), unless it says otherwise."""
    token = _shown_by_default.set(shown)
    try:
        yield
    finally:
        _shown_by_default.reset(token)


class Progress:
    """How far a computation is, on one line of the terminal; use it in a ``with`` block, from one thread.

    Parameters
    ----------
    label : str
        What is being done, such as "Gram matrix".
    shown : bool, optional
        True always shows it, False never; by default it is shown where the stream is a terminal that can move its
        cursor.
    stream : file, optional
        Where to; standard error by default.
    clock : callable, optional
        What gives the time in seconds.

    Examples
    --------
    >>> with Progress("Pivots") as progress:
    ...     for i in range(10):
    ...         progress.step(i / 10, note=f"rank {i}")
    """

    def __init__(
        self,
        label: str,
        shown: bool | None = None,
        stream: Any = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._start_time = clock()
        self._next_drawing = self._start_time + FIRST
        self._fraction: float | None = None
        self._drawn_cells = 0  # cells of the line that stands there now
        self._has_drawn = False  # whether anything was written that has to be cleared away
        terminal = is_terminal(self._stream)
        # Only a terminal is told to hide its cursor; in anything else lines are overwritten with spaces.
        self._escapes = terminal and os.environ.get("TERM") != "dumb" and os.name != "nt"
        dumb = os.environ.get("TERM") == "dumb"
        shown = _shown_by_default.get() if shown is None else shown
        self._open = self._stream is not None and (terminal and not dumb if shown is None else bool(shown))
        self._label, self._has_block_characters = "", False
        if self._open:
            self._label = _clean(label)
            self._has_block_characters = encodable("█░…" + EIGHTHS, self._stream)

    def step(self, fraction: float | None, note: str = "") -> None:
        """Say how far it is: a fraction from 0 to 1, or None where that is not known, and what is being done now."""
        if fraction is not None and not math.isnan(fraction):
            # An estimate that falls is shown as standing still: going back helps nobody.
            self._fraction = max(self._fraction or 0.0, min(max(float(fraction), 0.0), 1.0))
        if not self._open:
            return
        now = self._clock()
        if now < self._next_drawing:
            return
        self._next_drawing = now + BETWEEN
        self._draw(now - self._start_time, _clean(note))

    def close(self) -> None:
        """Erase the line; nothing is shown after that."""
        if self._has_drawn:
            atexit.unregister(self.close)
            self._write("\r" + (ERASE + SHOW if self._escapes else " " * self._drawn_cells + "\r"))
        self._open = self._has_drawn = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------------- drawing

    def _draw(self, elapsed: float, note: str) -> None:
        line = self._line(elapsed, note, min(self._columns() - 1, WIDEST))  # the last column would wrap
        rest = ERASE if self._escapes else " " * max(0, self._drawn_cells - _cells(line))
        start = "" if self._has_drawn or not self._escapes else HIDE
        if not self._has_drawn:
            # Before the first byte, so that the cursor comes back whatever happens, even where close() is forgotten.
            self._has_drawn = True
            atexit.register(self.close)
        self._drawn_cells = _cells(line)
        self._write(start + "\r" + line + rest)

    def _line(self, elapsed: float, note: str, width: int) -> str:
        """The line, cut to the width: first the note, then the bar; the label and the percentage are the last to go."""
        fraction = self._fraction
        elapsed_text = clock_time(elapsed)
        if fraction is None:
            percent, time_text = "", elapsed_text
        else:
            percent = f"{math.floor(100 * fraction):3d}%"
            left = "" if fraction == 0 else f", {clock_time(elapsed * (1 - fraction) / fraction)} left"
            time_text = elapsed_text + left
        for fields in (
            [self._label, self._bar(BAR, elapsed), percent, time_text],
            [self._label, self._bar(SHORT_BAR, elapsed), percent, time_text],
            [self._label, percent, time_text],
            [self._label, percent or time_text],
        ):
            line = "  ".join(field for field in fields if field)
            free = width - _cells(line)
            if free >= 0:
                break
        else:
            return self._cut(percent.strip() or elapsed_text if width < 12 else line, width)
        return f"{line}  {self._cut(note, free - 2)}" if note and free >= 6 else line

    def _bar(self, cells: int, elapsed: float) -> str:
        full, empty = ("█", "░") if self._has_block_characters else ("#", "-")
        if self._fraction is None:  # a mark that moves says that it is alive
            position = round(elapsed / BETWEEN) % (2 * cells - 2)
            position = min(position, 2 * cells - 2 - position)
            return empty * position + full + empty * (cells - 1 - position)
        eighths = int(8 * cells * self._fraction)
        bar = full * (eighths // 8)
        if self._has_block_characters and eighths % 8:
            bar += EIGHTHS[eighths % 8 - 1]
        return bar + empty * (cells - len(bar))

    def _cut(self, text: str, room: int) -> str:
        if _cells(text) <= room:
            return text
        dots = "…" if self._has_block_characters else "..."
        if room <= len(dots):
            return dots[: max(room, 0)]
        while _cells(text) > room - len(dots):
            text = text[:-1]
        return text + dots

    # -------------------------------------------------------------------------------------------------- the stream

    def _columns(self) -> int:
        try:  # standard output may be a file while the line goes to a terminal
            stream_size = os.get_terminal_size(self._stream.fileno())
        except Exception:
            stream_size = os.terminal_size((80, 24))
        fallback = (stream_size.columns or 80, stream_size.lines)
        return max(1, shutil.get_terminal_size(fallback=fallback).columns)

    def _write(self, text: str) -> None:
        if not encodable(text, self._stream):
            text = text.encode("ascii", "replace").decode()
        try:
            self._stream.write(text)
            self._stream.flush()
        except Exception:  # closed, a broken pipe, a full disk: the computation matters, the line does not
            self._open = False


def _clean(text: str) -> str:
    """Text on one line that moves no cursor: without escape codes and control characters."""
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", str(text))
    return " ".join("".join(c if c.isprintable() else " " if c.isspace() else "" for c in text).split())


def _cells(text: str) -> int:
    """The cells of a terminal that a text takes: two for wide characters, none for accents that combine."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
