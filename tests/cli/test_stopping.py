"""Runs that are told to stop, by Ctrl-C, SIGTERM or SIGHUP: they end with 128 and the number of the signal, and leave
nothing half-written. What a run was started to ignore does not stop it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cli.command_runs import SCRIPT, environment

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix"),
    pytest.mark.usefixtures("default_signals"),
]

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
# The run gets signals in the middle of a write, and goes on with it if it can.
SIGNALLED = """
import os, signal

def signalling(write):
    def signalled(*given, **more):
        for name in os.environ["SIGNALS"].split():
            os.kill(os.getpid(), getattr(signal, name))
        with open("signalled", "a") as file:
            file.write("gone on\\n")
        return write(*given, **more)
    return signalled

os.link, os.fsync = signalling(os.link), signalling(os.fsync)
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
CHECKPOINTED = "score rows.npy --checkpoint run.vendi --json -o out"


def started(
    line: str, folder: Path, patch: str = "", by: Sequence[str] = (), **env: str
) -> subprocess.Popen[str]:
    (folder / "patches").mkdir(exist_ok=True)
    (folder / "patches" / "sitecustomize.py").write_text(patch)
    (folder / "captions.txt").write_text("a dog\na cat\na dog runs\n")
    (folder / "old").write_text("old")
    np.save(folder / "rows.npy", np.random.default_rng(0).standard_normal((50, 4)))
    return subprocess.Popen(
        [*by, SCRIPT, *line.split()], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=environment(PYTHONPATH=str(folder / "patches"), **env),
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


def ended_alone(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """How a process ends that signals itself, or has no reason to end early."""
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_with_a_checkpoint_is_saved_and_goes_on(number: signal.Signals, tmp_path: Path) -> None:
    code, out, err = ended_alone(started(CHECKPOINTED, tmp_path, SIGNALLED, SIGNALS=number.name))
    assert (code, out) == (128 + number, "")
    assert "Stopping after this batch, to save it" in err
    assert "the same command goes on from there." in err
    assert (tmp_path / "run.vendi").exists()
    assert not (tmp_path / "out").exists()
    assert ended_alone(started(CHECKPOINTED, tmp_path))[0] == 0
    assert (tmp_path / "out").exists()


@pytest.mark.parametrize("line", [CHECKPOINTED, "explain rows.npy -o out"])
def test_what_is_ignored_from_the_start_stays_ignored(line: str, tmp_path: Path) -> None:
    """As shells start what runs in the background of a script, and nohup what is to outlive its terminal."""
    ignoring = 'trap \'\' INT TERM HUP; exec "$0" "$@"'
    process = started(
        line, tmp_path, SIGNALLED, ["sh", "-c", ignoring], SIGNALS="SIGINT SIGTERM SIGHUP SIGINT"
    )
    code, _, err = ended_alone(process)
    assert code == 0, err
    assert (tmp_path / "signalled").exists()  # they came, and it went on
    assert not re.search("Stopping|Interrupted|Traceback", err)
    found = (tmp_path / "out").read_bytes()
    for name in ("out", "run.vendi"):
        (tmp_path / name).unlink(missing_ok=True)
    assert ended_alone(started(line, tmp_path))[0] == 0
    assert (tmp_path / "out").read_bytes() == found
