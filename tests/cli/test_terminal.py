"""What a terminal gets: colours and progress there only, no escape codes of the user's, tables that fit its width."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from cli.command_data import STRANGE
from cli.command_runs import SCRIPT, Warm, environment, vendi

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals on this system")

# What the command itself may send: bold, italic, cyan and the end of it; for progress, what moves and hides the cursor.
OURS = re.compile(r"\x1b\[(?:0|1|3|36)m")
PROGRESS = re.compile(r"\x1b\[K|\x1b\[\?25[lh]|\x1b\[\d*m")


def on_terminal(
    *arguments: str,
    cwd: Path,
    width: int = 80,
    streams: tuple[int, ...] = (1, 2),
    **env: str,
) -> tuple[int, str]:
    """Run the command on a pseudo-terminal: how it ended, and what was shown."""
    import fcntl
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = subprocess.Popen(
        [SCRIPT, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, env=environment(**env),
        stdout=theirs if 1 in streams else subprocess.DEVNULL,
        stderr=theirs if 2 in streams else subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs)
    found = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        found += part
    os.close(ours)
    return process.wait(timeout=60), found.decode().replace("\r\n", "\n")


def cells(line: str) -> int:
    """How many cells of a terminal a line takes."""
    return sum(
        0 if unicodedata.combining(mark) else 2 if unicodedata.east_asian_width(mark) in "WF" else 1
        for mark in line
    )


def test_colours_are_for_terminals_that_want_them(samples: Path, warm: Warm) -> None:
    line = ["score", "sets.csv", "--column", "text", "--by", "set"]
    code, shown = on_terminal(*line, cwd=samples)
    assert code == 0
    assert "\x1b[1mgroup  items  score\x1b[0m" in shown
    assert "\x1b[36m████████████████████████\x1b[0m" in shown
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal(*line, cwd=samples, **env)[1]
    assert OURS.sub("", shown).endswith(warm(*line, cwd=samples).out)  # but for that, it is the same
    assert "\x1b" not in warm(*line, cwd=samples, FORCE_COLOR="1").out
    # A result that goes into a file has no colours either, though somebody looks on.
    assert "\x1b" not in on_terminal(*line, cwd=samples, streams=(2,))[1]


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_tables_fit_the_width(width: int, samples: Path) -> None:
    code, shown = on_terminal("explain", "captions.txt", "--top", "3", cwd=samples, width=width)
    assert code == 0
    lines = OURS.sub("", shown).split("\n")
    assert max(map(cells, lines)) <= max(width, 40)
    assert any(line.startswith("Rarest") for line in lines)
    assert max(map(cells, lines)) >= min(width, 100) - 10  # and make use of it


def test_wide_letters_are_aligned(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,g\nx,日本語\ny,abc\nz,é\nw,e\u0301\n", encoding="utf-8")
    shown = OURS.sub("", on_terminal("score", "a.csv", "--column", "t", "--by", "g", cwd=tmp_path)[1])
    rows = [line for line in shown.split("\n") if "1.000" in line]
    assert len(rows) == 4
    assert {cells(row[: row.index("1.000")]) for row in rows} == {15}


def test_text_of_the_user_is_no_markup_and_no_escape_code(samples: Path, tmp_path: Path) -> None:
    name = "evil\x1b[31m\u202e[bold].csv"
    (tmp_path / name).write_bytes((samples / "strange.csv").read_bytes())
    for line in (
        ["score", name, "--column", "text", "--by", "lab\x1b[1mel"],
        ["select", name, "--column", "text", "-k", "15", "--only"],
        ["score", name, "--column", "\x1b[31mno\u202e"],
        ["score", "\x1b[31mno\u202e.txt"],
        ["score", name, "--kernel", "\x1b[31mno\u202e(1)"],
        ["\x1b[31mno"],
    ):
        code, shown = on_terminal(*line, cwd=tmp_path, width=200)
        assert code in (0, 2)
        assert shown.strip()
        rest = OURS.sub("", shown).replace("\n", "")
        assert rest.isprintable(), sorted({mark for mark in rest if not mark.isprintable()})
        if line[0] == "score" and "--by" in line:
            for _, label in STRANGE:
                whole = "".join(
                    mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in label
                )
                assert re.search(rf"^{re.escape(whole)} ", rest := OURS.sub("", shown), re.M), whole
        if line[0] == "select":
            assert "c1cc[nH]c1" in shown
            assert "[bold]x[/bold]" in shown
            assert ":smile: 🙂" in shown


# Progress is shown after a second; here it is shown at once, so that the tests need not be slow to see it.
AT_ONCE = "import vendimeter.present.progress as progress\nprogress.FIRST = progress.BETWEEN = 0.0\n"


def test_progress_is_shown_on_terminals_only_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(AT_ONCE)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((20_000, 3)))
    line = ["score", "x.npy", "--save", "sum.vendi", "--force"]
    code, shown = on_terminal(*line, cwd=tmp_path, width=120, PYTHONPATH=str(tmp_path))
    assert code == 0
    drawn = re.findall(r"\r([^\r\n]*items/s[^\r\n]*)", shown)
    assert drawn
    assert all(cells(PROGRESS.sub("", one)) <= 120 for one in drawn)
    assert (
        PROGRESS.sub("", shown.split("items/s")[-1]).split("\r")[-1].startswith("20,000 items\nVendi Score")
    )
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")  # the cursor is there again
    for asked in ({"streams": (1,)}, {"TERM": "dumb"}):
        code, shown = on_terminal(*line, cwd=tmp_path, PYTHONPATH=str(tmp_path), **asked)
        assert (code, "items/s" in shown) == (0, False)
    code, shown = on_terminal(*line, "--quiet", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert shown.startswith("\x1b[1mVendi Score")
    done = vendi(*line, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (done.code, "items/s" in done.err, "\r" in done.err) == (0, False, False)


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
def test_messages_are_wrapped_between_words(samples: Path) -> None:
    code, shown = on_terminal("score", "captions.txt", "--column", "nothing", cwd=samples, width=40)
    assert code == 2
    assert shown == "Error: there is no column in\n'captions.txt' called 'nothing'. There\nare: 'text'.\n"
