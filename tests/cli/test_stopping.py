"""Runs that are told to stop: Ctrl-C, and SIGTERM. They say so, end with 130 or 143, and leave nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cli.command_runs import SCRIPT, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")

# The run waits where its output lies beside its place, and is to be moved there: what a signal in the middle of a write
# meets, only not by chance.
WAITING = """
import os, time

def waiting(*given, **more):
    with open("waiting", "w") as file:
        file.write("\\\\n".join(os.listdir(".")))
    while True:
        time.sleep(0.01)

os.link = os.replace = os.fsync = waiting
"""
WRITING = [
    "score captions.txt -o out",
    "score captions.txt --json -o old --force",
    "score rows.npy --save out",
    "score rows.npy --save old --force",
    "explain rows.npy --write out.parquet",
    "report captions.txt -o out",
    "report captions.txt -o old --force",
]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def started(line: str, folder: Path, patch: str = "") -> subprocess.Popen[str]:
    (folder / "patches").mkdir()
    (folder / "patches" / "sitecustomize.py").write_text(patch)
    (folder / "captions.txt").write_text("a dog\na cat\na dog runs\n")
    (folder / "old").write_text("old")
    np.save(folder / "rows.npy", np.random.default_rng(0).standard_normal((50, 4)))
    return subprocess.Popen(
        [SCRIPT, *line.split()], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=environment(PYTHONPATH=str(folder / "patches")),
    )  # fmt: skip


def ended(process: subprocess.Popen[str], number: int) -> tuple[int, str, str]:
    """How a process ends that gets a signal."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("line", "number"),
    [(line, number) for line in WRITING for number in CODES if number == signal.SIGINT or "old" not in line],
)
def test_nothing_is_left_half_written(line: str, number: signal.Signals, tmp_path: Path) -> None:
    if "parquet" in line:
        pytest.importorskip("pyarrow")
    process = started(line, tmp_path, WAITING)
    names = sorted(os.listdir(tmp_path))
    while not (tmp_path / "waiting").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    time.sleep(0.05)
    beside = set((tmp_path / "waiting").read_text().split()) - set(names)
    assert beside  # something was there, half written
    code, out, err = ended(process, number)
    assert code == CODES[number]
    assert out == ""
    assert "Traceback" not in err
    assert ("Interrupted. Nothing was written." in err) == (number == signal.SIGINT)
    (tmp_path / "waiting").unlink()
    assert sorted(os.listdir(tmp_path)) == names
    assert (tmp_path / "old").read_text() == "old"


@pytest.mark.parametrize("number", CODES)
def test_while_it_waits_for_input(number: signal.Signals, tmp_path: Path) -> None:
    process = started("score - -o out", tmp_path)
    assert process.stdin is not None
    process.stdin.write("a dog\n")
    process.stdin.flush()
    time.sleep(1.0)
    code, out, err = ended(process, number)
    assert (code, out) == (CODES[number], "")
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_while_it_computes(tmp_path: Path) -> None:
    np.save(tmp_path / "big.npy", np.random.default_rng(0).standard_normal((6000, 200)))
    process = subprocess.Popen(
        [SCRIPT, "score", "big.npy", "--kernel", "laplacian", "-o", "out"], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert process.stderr is not None
    said = [process.stderr.readline(), process.stderr.readline()]
    assert said[1] == "6,000 items\n"
    time.sleep(0.3)
    code, out, err = ended(process, signal.SIGINT)
    assert (code, out, err.strip()) == (130, "", "Interrupted. Nothing was written.")
    assert not (tmp_path / "out").exists()


def test_as_soon_as_it_starts(tmp_path: Path) -> None:
    """A Ctrl-C while the libraries are imported is answered like any other."""
    for pause in (0.25, 0.4):
        process = subprocess.Popen(
            [SCRIPT, "score", "-"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        time.sleep(pause)
        code, out, err = ended(process, signal.SIGINT)
        assert out == ""
        assert code in (130, -signal.SIGINT)  # the latter before any line of ours was run
        assert code != 130 or "Traceback" not in err
