"""Checkpoints of long runs: killed at any moment, interrupted, resumed; and files that cannot be resumed from."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from cli import long_runs
from cli.long_runs import CASES, ORDERS, RNG, interrupted_at, place, run, ten_files, unfinished
from vendimeter.cli import checkpoints, streaming
from vendimeter.cli.checkpoints import Checkpoint, RunPosition
from vendimeter.cli.commands import Stopped
from vendimeter.cli.options import Saving
from vendimeter.cli.streaming import score_batches
from vendimeter.data.collection import Collection
from vendimeter.errors import InputError, MismatchError, SavedStateError
from vendimeter.kernels import as_kernel
from vendimeter.present import progress as progress_module
from vendimeter.present.progress import showing
from vendimeter.streams import saved as saved_module

pytestmark = pytest.mark.usefixtures("default_signals")


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A folder with ten files of vectors."""
    return ten_files(tmp_path / "in")


# -------------------------------------------------------------------------------------------------------------- kill -9


def program(*words: str) -> Any:
    """What the program that kills runs prints."""
    done = subprocess.run(
        [sys.executable, long_runs.__file__, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},  # the same number of threads, so that sums are the same
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no kill -9 on this system")
@pytest.mark.parametrize("case", CASES)
def test_killed_at_random_moments(case: str, tmp_path: Path) -> None:
    peace, resumed, killed, places, left, again = program(case, str(tmp_path))
    assert resumed == peace == again
    assert killed
    assert places == sorted(places)  # no run goes back behind the one before
    assert left == ["in", "run.npz"]
    result, count, left_out, records = json.loads(peace)
    assert count == {"ungrouped": 14_400, "grouped": 6000, "weighted": 9600, "broken records": 9501}[case]
    if case == "grouped":
        assert len(result["groups"]) == 16 * len(ORDERS)
    assert left_out == len(records) == (99 if case == "broken records" else 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no kill -9 on this system")
def test_killed_while_a_checkpoint_is_written(tmp_path: Path) -> None:
    (peace, *killed), resumed, beside, left = program("writes", str(tmp_path))
    assert killed == [None] * 6
    # Of the first save nothing but a part is there; from the second on the one before stays.
    assert [batches for _, batches in beside] == [0, 0, 2, 5, 6, 7]
    assert all(names == [".run.npz.lock", ".run.npz.part", "in", "run.npz"] for names, _ in beside[2:])
    assert resumed == peace
    assert left == ["in", "run.npz"]


def _holds(lock: Path, process: int) -> bool:
    try:
        return f"process {process} on " in lock.read_text()
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no kill -9 on this system")
def test_the_command_is_killed_and_interrupted(tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "rows.jsonl", tmp_path / "run.vendi"
    rows = zip(RNG.random((24_000, 20)).round(3).tolist(), RNG.integers(3, size=24_000).tolist(), strict=True)
    path.write_text("\n".join(json.dumps({"v": row, "set": label}) for row, label in rows))
    command = [
        sys.executable,
        "-m",
        "vendimeter.cli",
        "score",
        str(path),
        "--column",
        "v",
        "--by",
        "set",
        "--json",
    ]

    def begun(name: Path = checkpoint) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, "--checkpoint", str(name)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

    def stopped(number: int) -> tuple[str, str, int]:
        """How a run ended that got a signal a little after it had begun, or gone on."""
        process, lock = begun(), checkpoint.with_name(".run.vendi.lock")
        while process.poll() is None and not (checkpoint.exists() and _holds(lock, process.pid)):
            time.sleep(0.002)
        time.sleep(0.1)
        process.send_signal(number)
        return *process.communicate(timeout=60), process.returncode

    peace = begun(tmp_path / "peace.vendi").communicate(timeout=60)[0]
    assert stopped(signal.SIGKILL)[2] in (-signal.SIGKILL, 0)
    out, said, code = stopped(signal.SIGINT)
    assert (code, out) in ((130, ""), (0, peace))  # quick machines may be done by then
    if code == 130:
        assert "the same command goes on from there." in said
    process = begun()
    assert process.communicate(timeout=60)[0] == peace
    assert begun().communicate(timeout=60)[0] == peace  # at once
    assert sorted(os.listdir(tmp_path)) == ["peace.vendi", "rows.jsonl", "run.vendi"]
    path.write_text(path.read_text().replace("7", "8", 1))
    process = begun()
    assert "'rows.jsonl' has other contents" in process.communicate(timeout=60)[1].replace(
        f"{tmp_path.name}/", ""
    )
    assert process.returncode == 2


# -------------------------------------------------------------------------------------------------------- interruptions


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_waits_for_the_batch(number: int, shards: Path, tmp_path: Path) -> None:
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(files, checkpoint, batches=interrupted_at(4, number), every=1e6)
    assert "run.npz' after 45 items: the same command goes on from there." in caught.value.__notes__[0]
    assert isinstance(caught.value, Stopped)
    assert caught.value.code == 128 + number
    assert signal.getsignal(number) == before
    assert place(checkpoint).batches == 5
    assert sorted(os.listdir(tmp_path)) == ["in", "run.npz"]
    seen: list[int] = []

    def counted(batches: Iterator[Any]) -> Iterator[Any]:
        for i, batch in enumerate(batches):
            seen.append(i)
            yield batch

    assert run(files, checkpoint, batches=counted) == run(files)
    assert len(seen) == 10
    assert sorted(os.listdir(tmp_path)) == ["in", "run.npz"]


def test_a_second_interruption_comes_at_once(shards: Path, tmp_path: Path) -> None:
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt) as caught:
        run(files, checkpoint, batches=interrupted_at(4, signal.SIGINT, signal.SIGINT), every=1e6)
    assert "after 9 items" in caught.value.__notes__[0]
    assert place(checkpoint).batches == 1  # the first is always saved
    assert sorted(os.listdir(tmp_path)) == ["in", "run.npz"]
    assert run(files, checkpoint) == run(files)


def test_an_interruption_of_reading_on(shards: Path, tmp_path: Path) -> None:
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        run(files, checkpoint, batches=interrupted_at(6, signal.SIGINT))
    before = checkpoint.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        run(files, checkpoint, batches=interrupted_at(2, signal.SIGINT))
    assert checkpoint.read_bytes() == before


def test_an_interruption_without_a_checkpoint_comes_at_once(shards: Path) -> None:
    seen = []

    def coming(batches: Iterator[Any]) -> Iterator[Any]:
        for i, batch in enumerate(interrupted_at(4, signal.SIGINT)(batches)):
            seen.append(i)
            yield batch

    with pytest.raises(KeyboardInterrupt):
        run(str(shards / "*.npy"), batches=coming)
    assert seen == [0, 1, 2, 3]


# ------------------------------------------------------------------------------------------------------------- finished


def test_a_finished_run_answers_at_once(shards: Path, tmp_path: Path) -> None:
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    answer = run(files, checkpoint)
    written_at = checkpoint.stat().st_mtime_ns

    def none(_: Iterator[Any]) -> Iterator[Any]:
        raise AssertionError("it was read again")
        yield

    assert run(files, checkpoint, batches=none) == answer
    # Orders are no part of what is saved: the sum answers all of them.
    assert run(files, checkpoint, batches=none, orders=3) == run(files, orders=3)
    assert checkpoint.stat().st_mtime_ns == written_at
    assert vm.Accumulator.load(checkpoint).n == 90  # it is a file of an accumulator


def test_times_between_checkpoints(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []
    now = 0.0

    def slow(batches: Iterator[Any]) -> Iterator[Any]:
        nonlocal now
        for batch in batches:
            now += 10  # seconds a batch …
            yield batch

    def save(_: Checkpoint, total: Any, place: RunPosition) -> None:
        nonlocal now
        now += 1  # … and one a checkpoint, so that the next may come after twenty
        saved.append(place.batches)

    monkeypatch.setattr(streaming, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(Checkpoint, "save", save)
    for every, expected in ((0.0, [1, 3, 5, 7, 9, 10]), (30.0, [1, 4, 7, 10, 10]), (1e6, [1, 10])):
        run(str(shards / "*.npy"), tmp_path / "run.npz", batches=slow, every=every)
        assert saved == expected
        saved.clear()


# ----------------------------------------------------------------------------------------------- files that are no good


def test_damaged_checkpoints(shards: Path, tmp_path: Path) -> None:
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    unfinished(files, checkpoint)
    held = checkpoint.read_bytes()
    advice = "This is about --checkpoint: give another name there, or delete the file to begin anew."
    cases = [held[:size] for size in (0, 3, 100, len(held) // 2, len(held) - 1)]
    cases += [b"some text that is no archive", held.replace(b'"batches": 5', b'"batches": 6')]
    for at in range(200, len(held) - 200, 149):
        cases.append(held[:at] + bytes([held[at] ^ 0xFF]) + held[at + 1 :])
    refused = 0
    answer = run(files)
    for case in cases:
        checkpoint.write_bytes(case)
        try:
            # A byte that no checksum covers, such as a time in the archive, makes no difference.
            assert run(files, checkpoint) == answer
            continue
        except SavedStateError as error:
            notes = error.__notes__
        assert notes == [advice]
        assert checkpoint.read_bytes() == case
        refused += 1
    assert refused >= len(cases) - 3
    assert sorted(os.listdir(tmp_path)) == ["in", "run.npz"]


def test_other_versions(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    for module in (checkpoints, saved_module):
        with monkeypatch.context() as patch:
            patch.setattr(module, "VERSION", 99)
            unfinished(files, checkpoint)
        with pytest.raises(SavedStateError, match=r"has version 99 of .*Use the release (.|\n)*--checkpoint"):
            run(files, checkpoint)
        checkpoint.unlink()


def test_a_saved_sum_is_not_written_over(shards: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "sum.npz"
    total = vm.Accumulator()
    total.update(np.eye(4))
    total.save(checkpoint)
    before = checkpoint.read_bytes()
    with pytest.raises(SavedStateError, match="is a saved sum and not of a run; expected a checkpoint"):
        run(str(shards / "*.npy"), checkpoint)
    assert checkpoint.read_bytes() == before


def test_places_that_cannot_be_written(shards: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "run.npz", tmp_path, tmp_path / "in"):
        with pytest.raises(
            SavedStateError, match=r"the checkpoint '.*' cannot be written: .*Expected a file in a"
        ):
            run(str(shards / "part-1.npy"), path)


def test_one_run_at_a_time(shards: Path, tmp_path: Path) -> None:
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    with Checkpoint(checkpoint, {}):
        with pytest.raises(
            InputError, match=rf"is in use by process {os.getpid()} on .*; expected one run at a time"
        ):
            run(files, checkpoint)
        assert not checkpoint.exists()
    # A link to it is the same file, and stays a link.
    link = tmp_path / "link.npz"
    link.symlink_to(checkpoint)
    with Checkpoint(checkpoint, {}), pytest.raises(InputError, match="is in use"):
        run(files, link)
    run(files, link)
    assert link.is_symlink()
    assert place(checkpoint).finished


def test_other_models_are_refused(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished run answers without its model, but not for another one."""
    from vendimeter.streams import accumulator as accumulate

    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    monkeypatch.setattr(accumulate, "identity", lambda kernel: {"encoder": {"files": "one"}})
    run(files, checkpoint)
    monkeypatch.setattr(accumulate, "identity", lambda kernel: {"encoder": {"files": "two"}})
    with pytest.raises(MismatchError, match=r"files 'one' and 'two'(.|\n)*This is about --checkpoint"):
        run(files, checkpoint)


def test_labels_that_no_file_can_hold(tmp_path: Path) -> None:
    """It is said with the first batch, and not after hours."""
    first = Collection(np.eye(2), labels=[date(2020, 1, 1), date(2020, 1, 2)])
    given: Any = SimpleNamespace(first=first, batches=iter([first]))
    with pytest.raises(SavedStateError, match="which the file cannot hold"):
        score_batches(given, as_kernel("cosine"), 1, grouped=True, saving=Saving(tmp_path / "run.npz", {}))
    assert os.listdir(tmp_path) == []


# ------------------------------------------------------------------------------------------------------------- progress


def test_progress(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(progress_module, "FIRST", -1.0)
    monkeypatch.setattr(progress_module, "BETWEEN", 0.0)
    monkeypatch.setattr(streaming, "FIRST", 0.0)
    monkeypatch.setattr(progress_module, "WIDEST", 200)
    monkeypatch.setenv("COLUMNS", "200")
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    with showing(True):
        with pytest.raises(KeyboardInterrupt):
            run(files, checkpoint, batches=interrupted_at(4, signal.SIGINT), quiet=False)
        first = capsys.readouterr().err
        run(files, checkpoint, quiet=False)
        second = capsys.readouterr().err
        run(files, quiet=True)
    assert capsys.readouterr().err == ""
    assert "Items  " in first
    assert " 50%" in first
    assert "45 items, " in first
    assert " items/s" in first
    assert " left" in first
    assert "Reading on to where the run was" in second
    assert "Items after 45  " in second
    assert " 20%" in second  # one of the five batches that this run adds
    assert "54 items, " in second
