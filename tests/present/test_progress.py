"""The progress line: for people at a terminal only, never in the way, and gone when the work is done."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from vendimeter.present.progress import BETWEEN, FIRST, Progress


class Terminal(io.StringIO):
    """A stream that remembers what was written, and what a reader would see."""

    def __init__(self, tty: bool = True, encoding: str | None = "utf-8"):
        super().__init__()
        self.tty, self.name_of_encoding = tty, encoding

    def isatty(self) -> bool:
        return self.tty

    @property
    def encoding(self) -> Any:  # type: ignore[override]
        return self.name_of_encoding

    @property
    def lines(self) -> list[str]:
        """What was drawn, one text a drawing."""
        plain = re.sub(r"\x1b\[[?0-9]*[A-Za-z]", "", self.getvalue())
        return [line for line in plain.split("\r") if line.strip()]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def terminal_of_80(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")


def started(stream: Any, label: str = "Gram", shown: bool | None = None) -> tuple[Progress, Clock]:
    """A progress that has been at work for two seconds."""
    clock = Clock()
    progress = Progress(label, shown, stream, clock=clock)
    clock.now += 2
    return progress, clock


def drawn(fraction: float | None, note: str = "", **options: Any) -> str:
    stream = options.pop("stream", None) or Terminal()
    progress, _ = started(stream, **options)
    progress.step(fraction, note)
    progress.close()
    return stream.lines[0]


# ------------------------------------------------------------------------------------------------- where it is shown


def test_only_a_terminal_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for tty, term, shown, seen in [
        (True, "xterm", None, True),
        (True, "xterm", False, False),
        (True, "xterm", True, True),
        (False, "xterm", None, False),
        (False, "xterm", True, True),
        (True, "dumb", None, False),
        (True, "dumb", True, True),
    ]:
        monkeypatch.setenv("TERM", term)
        stream = Terminal(tty)
        progress, _ = started(stream, shown=shown)
        progress.step(0.5)
        progress.close()
        assert bool(stream.getvalue()) == seen, (tty, term, shown)
        escapes = tty and term != "dumb" and os.name != "nt"
        assert ("\x1b" in stream.getvalue()) == (seen and escapes)


def test_standard_error_is_the_usual_place(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    clock = Clock()
    with Progress("Gram", clock=clock) as progress:
        clock.now += 5
        progress.step(0.1)
    assert stream.lines
    monkeypatch.setattr(sys, "stderr", None)  # as under pythonw
    with Progress("Gram", shown=True, clock=clock) as progress:
        clock.now += 5
        progress.step(0.1)


def test_nothing_in_the_first_second_and_little_after() -> None:
    stream, clock = Terminal(), Clock()
    with Progress("Gram", stream=stream, clock=clock) as progress:
        for _ in range(99):
            clock.now += FIRST / 100
            progress.step(0.3)
        assert stream.getvalue() == ""
        times = 0
        for _ in range(1000):  # two seconds in steps of 2 ms
            before = stream.getvalue()
            clock.now += 0.002
            progress.step(0.4)
            times += stream.getvalue() != before
        assert 15 <= times <= 2 / BETWEEN + 1
    quick = Terminal()
    with Progress("Gram", stream=quick, clock=clock) as progress:
        progress.step(1.0)
    assert quick.getvalue() == ""


# ---------------------------------------------------------------------------------------------------- what it shows


def test_the_line() -> None:
    assert drawn(0.5, "block 3 of 6") == "Gram  ████████████░░░░░░░░░░░░   50%  0:02, 0:02 left  block 3 of 6"
    assert drawn(0.99999).startswith("Gram  ███████████████████████▉   99%")  # not before it is done
    assert drawn(1.0).startswith("Gram  ████████████████████████  100%  0:02, 0:00 left")
    assert drawn(0.0) == "Gram  ░░░░░░░░░░░░░░░░░░░░░░░░    0%  0:02"
    assert drawn(0.01)[6:8] == "▏░"
    assert drawn(0.002).endswith("0:02, 16:38 left")
    assert re.fullmatch(r"Gram  ░*█░*  0:02  warming up", drawn(None, "warming up"))


def test_fractions_that_are_none() -> None:
    for fraction in (float("nan"), None):
        assert "%" not in drawn(fraction)
    assert " 100%" in drawn(float("inf"))
    assert "   0%" in drawn(-0.5)


def test_it_never_goes_back() -> None:
    stream = Terminal()
    progress, clock = started(stream)
    for fraction in (0.5, 0.2, None, float("nan"), 0.6):
        progress.step(fraction)
        clock.now += 1
    progress.close()
    assert [re.findall(r"\d+%", line)[0] for line in stream.lines] == ["50%", "50%", "50%", "50%", "60%"]


def test_a_mark_moves_where_nothing_is_known() -> None:
    stream = Terminal()
    progress, clock = started(stream)
    for _ in range(100):
        progress.step(None)
        clock.now += 0.13
    progress.close()
    places = [line.index("█") for line in stream.lines]
    assert len(set(places)) > 15
    assert all(line.count("█") == 1 and line.count("░") == 23 for line in stream.lines)


@pytest.mark.parametrize("columns", [1, 2, 5, 9, 10, 20, 30, 40, 60, 80, 81, 200, 500])
@pytest.mark.parametrize("note", ["", "x" * 300, "拡散モデル" * 40, "é" * 200])
@pytest.mark.parametrize("fraction", [None, 0.123])
def test_it_fits_the_terminal(
    columns: int, note: str, fraction: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for label in ("Gram", "a label that is rather long for a line", ""):
        stream = Terminal()
        progress, _ = started(stream, label=label)
        progress.step(fraction, note)
        for line in stream.lines:
            wide = sum(1 + (c in "拡散モデル") - (c == "\u0301") for c in line)
            assert wide <= columns - 1
        if columns >= 10 and fraction:
            assert "12%" in stream.lines[0] or label
        if columns >= 60 and fraction:
            assert "12%" in stream.lines[0]
        progress.close()


def test_notes_cannot_move_the_cursor() -> None:
    nasty = "a\x1b[2Jb\x1b]0;title\x07c\r\nd\te\x00f\u202eg\x9bh"
    line = drawn(0.5, nasty, label="la\x1b[31mbel\n")
    assert line.startswith("label  █")
    assert line.endswith("ab]0;titlec d efgh")
    assert all(c.isprintable() for c in line)


def test_ascii_where_the_encoding_has_no_blocks() -> None:
    for encoding in ("ascii", "latin-1", "cp1252", "no such encoding"):
        line = drawn(0.5, "é" * 100, stream=Terminal(encoding=encoding))
        assert line.startswith("Gram  ############------------   50%")
        assert line.endswith("...")
        if encoding == "ascii":
            line.encode("ascii")
    assert "█" in drawn(0.5, stream=Terminal(encoding=None))
    assert drawn(0.5, "λ → µ", stream=Terminal(encoding="ascii")).endswith("? ? ?")


# ----------------------------------------------------------------------------------------------- how it goes away


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt, SystemExit])
def test_the_line_is_erased_and_the_cursor_is_back(error: type[BaseException] | None) -> None:
    stream, clock = Terminal(), Clock()

    def work() -> None:
        with Progress("Gram", stream=stream, clock=clock) as progress:
            for i in range(5):
                clock.now += 1
                progress.step(i / 5)
            assert stream.getvalue().startswith("\x1b[?25l\rGram")
            if error is not None:
                raise error("stop")

    if error is None:
        work()
    else:
        with pytest.raises(error, match="stop"):
            work()
    assert stream.getvalue().endswith("\r\x1b[K\x1b[?25h")
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h") == 1


def test_without_escapes_it_is_overwritten_with_spaces() -> None:
    stream = Terminal(tty=False)
    progress, clock = started(stream, shown=True)
    progress.step(0.25, "a long note")
    clock.now += 1
    progress.step(0.5)
    progress.close()
    first, second = stream.getvalue().split("\r")[1:3]
    assert len(second) == len(first)
    assert second.rstrip().endswith("left")
    assert stream.getvalue().endswith("\r" + " " * len(second.rstrip()) + "\r")


def test_nothing_after_it_is_closed() -> None:
    stream = Terminal()
    progress, clock = started(stream)
    progress.step(0.5)
    progress.close()
    before = stream.getvalue()
    clock.now += 10
    progress.step(0.6)
    progress.close()
    assert stream.getvalue() == before


class Broken(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


class Flushing(Terminal):
    def flush(self) -> None:
        raise OSError(28, "No space left on device")


class Bare:
    """Hardly a stream."""


@pytest.mark.parametrize("kind", [Broken, Flushing, Bare])
@pytest.mark.parametrize("shown", [None, True])
def test_trouble_with_the_stream_is_no_error(kind: type, shown: bool | None) -> None:
    progress, clock = started(kind(), shown=shown)
    for _ in range(3):
        progress.step(0.5)
        clock.now += 1
    progress.close()


def test_a_stream_that_is_closed_is_no_error() -> None:
    stream = Terminal()
    progress, clock = started(stream)
    progress.step(0.5)
    stream.close()
    clock.now += 1
    progress.step(0.6)
    progress.close()
    with Progress("Gram", stream=stream, shown=True) as progress:
        progress.step(0.5)


def test_in_a_real_terminal(tmp_path: Any) -> None:
    pty = pytest.importorskip("pty")
    import fcntl
    import struct
    import termios

    program = (
        "import sys, time\n"
        "from vendimeter.present import progress as module\n"
        "module.FIRST = 0.0\n"
        "with module.Progress('Gram') as progress:\n"
        "    for i in range(4):\n"
        "        progress.step(i / 4, 'x' * 100)\n"
        "        time.sleep(0.11)\n"
        "    if len(sys.argv) > 1: raise KeyboardInterrupt\n"
        "progress = module.Progress('forgotten')\n"
        "progress.step(0.5)\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    environment |= {"TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    for arguments in ([], ["stop"]):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
        command = [sys.executable, "-c", program, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=slave, env=environment)
        os.close(slave)
        written = b""
        while True:
            try:
                read = os.read(master, 4096)
            except OSError:  # how Linux says that the other end is closed
                break
            if not read:
                break
            written += read
        process.wait()
        os.close(master)
        text = written.decode()
        lines = [part.partition("\x1b")[0] for part in text.partition("Traceback")[0].split("\r")]
        assert max(map(len, lines)) == 49  # of 50 columns
        assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 2 - len(arguments)
        assert "\n" not in text.partition("Traceback")[0]
        end = text.partition("Traceback")[0]
        assert end.endswith("\r\x1b[K\x1b[?25h")
        assert ("KeyboardInterrupt" in text) == bool(arguments)
