"""What is waited for is said: a pipe that nobody writes to must not look like a long computation."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import vendimeter as vm
from cli.command_runs import SCRIPT, Warm, environment
from vendimeter.io import sources

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names"),
    pytest.mark.usefixtures("default_signals"),
]

# It is said after two seconds; here it is said at once, so that the tests need not be slow to see it.
AT_ONCE = "import vendimeter.io.sources as sources\nsources.PATIENCE = 0.05\n"
TEXTS = "a dog\na cat\na dog runs\n"


def started(folder: Path, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    (folder / "sitecustomize.py").write_text(AT_ONCE)
    if not (folder / "pipe").exists():
        os.mkfifo(folder / "pipe")
    found = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [SCRIPT, *arguments], cwd=folder, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(PYTHONPATH=found),
    )  # fmt: skip


@pytest.mark.parametrize(
    "line", ["score pipe --format txt", "plan pipe --format txt", "report pipe --format txt"]
)
def test_a_pipe_that_nobody_writes_to(line: str, tmp_path: Path) -> None:
    process = started(tmp_path, *line.split())
    assert process.stderr is not None
    assert process.stderr.readline() == "Waiting for 'pipe': nothing has been written to it yet.\n"
    (tmp_path / "pipe").write_text(TEXTS)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Waiting" not in err  # it was said once
    assert "3 items" in err


def test_a_pipe_whose_writer_says_nothing_and_one_read_in_turn(tmp_path: Path) -> None:
    process = started(tmp_path, "score", "pipe", "-", "--format", "txt", stdin=subprocess.PIPE)
    assert process.stderr is not None
    with (tmp_path / "pipe").open("w") as writer:  # opened, and nothing written
        assert process.stderr.readline().startswith("Waiting for 'pipe'")
        writer.write(TEXTS)
    assert process.stderr.readline().startswith("2 files ('pipe' … standard input): taken for texts")
    assert process.stderr.readline() == "Waiting for standard input: nothing has been written to it yet.\n"
    out, err = process.communicate("two boats\n", timeout=60)
    assert (process.returncode, "4 items" in err, "Waiting" in err) == (0, True, False), err
    assert out.startswith("Vendi Score")


def test_who_wants_no_words_gets_none(tmp_path: Path, warm: Warm) -> None:
    process = started(tmp_path, "score", "-", "--quiet", stdin=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1.5)
    _, err = process.communicate(TEXTS, timeout=60)
    assert (process.returncode, err) == (0, "")
    assert (
        "Waiting" not in warm("score", "-", cwd=tmp_path, input=TEXTS).err
    )  # which was there from the start


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_it_while_it_waits(number: signal.Signals, code: int, tmp_path: Path) -> None:
    process = started(tmp_path, "score", "pipe", "-o", "out")
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, "Traceback" in err) == (code, "", False)
    assert not (tmp_path / "out").exists()


def test_a_terminal_is_told_how_to_end_and_asked_once(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = started(tmp_path, "score", "-", stdin=theirs)
    os.close(theirs)
    assert process.stderr is not None
    told = process.stderr.readline()
    assert told.startswith("Waiting for standard input: type or paste the samples, and end with Ctrl-D")
    os.write(ours, TEXTS.encode() + b"\x04")  # one end of the file, not one for each time that it is read
    _, err = process.communicate(timeout=60)
    os.close(ours)
    assert (process.returncode, "3 items" in err) == (0, True), err


def test_the_column_of_prompts_is_not_looked_for_in_what_is_read_once(tmp_path: Path) -> None:
    process = started(tmp_path, *["score", "pipe", "--format", "jsonl", "--groups", "t", "--by", "m"])
    assert process.stderr is not None
    assert process.stderr.readline().startswith("Waiting for 'pipe'")
    (tmp_path / "pipe").write_text('{"m": "x", "t": ["a", "b"]}\n{"m": "y", "t": ["c", "d"]}\n')
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


def test_what_cannot_be_a_pipe_is_refused_without_waiting(tmp_path: Path, warm: Warm) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = warm("merge", "pipe", cwd=tmp_path)
    assert (done.code, "'pipe' is no plain file but a pipe" in done.said) == (2, True)


def test_the_library_says_nothing_and_leaves_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sources, "PATIENCE", 0.02)
    before, told = threading.active_count(), threading.Event()
    seen: list[str] = []
    os.mkfifo(tmp_path / "pipe")

    def write() -> None:
        told.wait(0.3)
        (tmp_path / "pipe").write_text(TEXTS)

    def tell(file: sources.File) -> None:
        seen.append(str(file))
        told.set()

    for teller in (None, tell):
        writer = threading.Thread(target=write)
        writer.start()
        with sources.telling(teller):
            assert len(vm.read(tmp_path / "pipe", format="txt")) == 3
            assert threading.active_count() <= before + 1  # the writer may still be at its end
        writer.join()
    assert seen == [repr(str(tmp_path / "pipe"))]
    assert threading.active_count() == before
    assert capfd.readouterr() == ("", "")
    with sources.telling(tell):  # a file is never waited for
        (tmp_path / "file.txt").write_text(TEXTS)
        monkeypatch.setattr(threading, "Timer", None)
        assert len(vm.read(tmp_path / "file.txt")) == 3


def test_nothing_is_read_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal would ask again."""

    class Terminal(io.BytesIO):
        ends = 0

        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            self.ends += len(data) < (size or 0)
            return data

    for size in (3, 5000, sources.CHUNK):
        typed = Terminal(b"x\n" * size)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(typed))
        assert len(vm.read("-")) == size
        assert typed.ends <= 1
