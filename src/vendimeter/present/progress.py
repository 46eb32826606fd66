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

__all__ = ["Progress", "clock_time", "showing"]

FIRST = 1.0  # seconds of work before anything is shown: what is done by then needs no progress
BETWEEN = 0.1  # seconds between two drawings
BAR = 24  # cells of the bar, at most …
SHORT_BAR = 8  # … and where the line is too short for that
WIDEST = 120  # cells of the line: a longer one is hard to read
EIGHTHS = "▏▎▍▌▋▊▉"
HIDE, SHOW, ERASE = "\x1b[?25l", "\x1b[?25h", "\x1b[K"


_wanted: ContextVar[bool | None] = ContextVar("wanted", default=None)


@contextmanager
def showing(shown: bool | None) -> Iterator[None]:
    """Within this block, what was not told otherwise is shown always (True), never, or on terminals (None)."""
    token = _wanted.set(shown)
    try:
        yield
    finally:
        _wanted.reset(token)


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
        self._begin = clock()
        self._due = self._begin + FIRST
        self._fraction: float | None = None
        self._drawn = 0  # cells of the line that stands there now
        self._begun = False  # whether anything was written that has to be cleared away
        terminal = _is_terminal(self._stream)
        # Only a terminal is told to hide its cursor; in anything else lines are overwritten with spaces.
        self._escapes = terminal and os.environ.get("TERM") != "dumb" and os.name != "nt"
        dumb = os.environ.get("TERM") == "dumb"
        shown = _wanted.get() if shown is None else shown
        self._open = self._stream is not None and (terminal and not dumb if shown is None else bool(shown))
        self._encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._blocks = self._can_write("█░…" + EIGHTHS)
        self._label = _clean(label)

    def step(self, fraction: float | None, note: str = "") -> None:
        """Say how far it is: a fraction from 0 to 1, or None where that is not known, and what is being done now."""
        if fraction is not None and not math.isnan(fraction):
            # An estimate that falls is shown as standing still: going back helps nobody.
            self._fraction = max(self._fraction or 0.0, min(max(float(fraction), 0.0), 1.0))
        if not self._open:
            return
        now = self._clock()
        if now < self._due:
            return
        self._due = now + BETWEEN
        self._draw(now - self._begin, _clean(note))

    def close(self) -> None:
        """Erase the line; nothing is shown after that."""
        if self._begun:
            atexit.unregister(self.close)
            self._write("\r" + (ERASE + SHOW if self._escapes else " " * self._drawn + "\r"))
        self._open = self._begun = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------------- drawing

    def _draw(self, elapsed: float, note: str) -> None:
        line = self._line(elapsed, note, min(self._columns() - 1, WIDEST))  # the last column would wrap
        rest = ERASE if self._escapes else " " * max(0, self._drawn - _cells(line))
        start = "" if self._begun or not self._escapes else HIDE
        if not self._begun:
            # Before the first byte, so that the cursor comes back whatever happens, even where close() is forgotten.
            self._begun = True
            atexit.register(self.close)
        self._drawn = _cells(line)
        self._write(start + "\r" + line + rest)

    def _line(self, elapsed: float, note: str, width: int) -> str:
        """As much as fits: first the note is cut, then the bar; the label and the percentage are the last to go."""
        done = self._fraction
        spent = clock_time(elapsed)
        if done is None:
            percent, times = "", spent
        else:
            percent = f"{math.floor(100 * done):3d}%"
            left = "" if done == 0 else f", {clock_time(elapsed * (1 - done) / done)} left"
            times = spent + left
        for parts in (
            [self._label, self._bar(BAR, elapsed), percent, times],
            [self._label, self._bar(SHORT_BAR, elapsed), percent, times],
            [self._label, percent, times],
            [self._label, percent or times],
        ):
            line = "  ".join(part for part in parts if part)
            room = width - _cells(line)
            if room >= 0:
                break
        else:
            return self._cut(percent.strip() or spent if width < 12 else line, width)
        return f"{line}  {self._cut(note, room - 2)}" if note and room >= 6 else line

    def _bar(self, cells: int, elapsed: float) -> str:
        full, empty = ("█", "░") if self._blocks else ("#", "-")
        if self._fraction is None:  # a mark that moves says that it is alive
            place = round(elapsed / BETWEEN) % (2 * cells - 2)
            place = min(place, 2 * cells - 2 - place)
            return empty * place + full + empty * (cells - 1 - place)
        eighths = int(8 * cells * self._fraction)
        bar = full * (eighths // 8)
        if self._blocks and eighths % 8:
            bar += EIGHTHS[eighths % 8 - 1]
        return bar + empty * (cells - len(bar))

    def _cut(self, text: str, room: int) -> str:
        if _cells(text) <= room:
            return text
        dots = "…" if self._blocks else "..."
        if room <= len(dots):
            return dots[: max(room, 0)]
        while _cells(text) > room - len(dots):
            text = text[:-1]
        return text + dots

    # -------------------------------------------------------------------------------------------------- the stream

    def _columns(self) -> int:
        try:  # standard output may be a file while the line goes to a terminal
            own = os.get_terminal_size(self._stream.fileno())
        except Exception:
            own = os.terminal_size((80, 24))
        return max(1, shutil.get_terminal_size(fallback=(own.columns or 80, own.lines)).columns)

    def _can_write(self, text: str) -> bool:
        try:
            text.encode(self._encoding)
        except (UnicodeError, LookupError):
            return False
        return True

    def _write(self, text: str) -> None:
        if not self._can_write(text):
            text = text.encode("ascii", "replace").decode()
        try:
            self._stream.write(text)
            self._stream.flush()
        except Exception:  # closed, a broken pipe, a full disk: the computation matters, the line does not
            self._open = False


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except Exception:  # closed, or no file at all
        return False


def _clean(text: str) -> str:
    """Text on one line that moves no cursor: without escape codes and control characters."""
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", str(text))
    return " ".join("".join(c if c.isprintable() else " " if c.isspace() else "" for c in text).split())


def _cells(text: str) -> int:
    """How many cells of a terminal the text takes: two for wide characters, none for accents that combine."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def clock_time(seconds: float) -> str:
    """Seconds as on a clock: 0:07, 1:02:03, 3 d 4 h.

    Examples
    --------
    >>> clock_time(67.9), clock_time(3723), clock_time(273_600)
    ('1:07', '1:02:03', '3 d 4 h')
    """
    whole = int(min(max(seconds, 0.0), 1e12))
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    if whole < 86_400:
        return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{whole // 86_400} d {whole // 3600 % 24} h"
