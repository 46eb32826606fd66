"""What tests of long runs share: files, runs over them, and ways to interrupt and kill them.

Run as a program, this file kills runs of its own making: ``python long_runs.py CASE FOLDER``. (A program by itself may
fork; the tests have threads.)
"""

from __future__ import annotations

import io
import itertools
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.cli import streaming
from vendimeter.cli.checkpoints import RunPosition, reading_fingerprint
from vendimeter.cli.options import Saving
from vendimeter.cli.streaming import score_batches
from vendimeter.kernels import Kernel, as_kernel
from vendimeter.streams import saved

RNG = np.random.default_rng(5)
ORDERS = [0, 1, 2, "inf"]
KILLS = 10

# ----------------------------------------------------------------------------------------------------- what is read

CASES: dict[str, dict[str, Any]] = {
    "ungrouped": {},
    # Memory for a third of the labels: the others lie in files while the run goes on.
    "grouped": {"reading": {"samples": "data", "label": "label"}, "memory": 6000},
    "weighted": {"reading": {"samples": "v", "weight": "w", "size": 8}},
    "broken records": {"reading": {"samples": "v", "skip_broken": True, "size": 8}},
}


def written(case: str, folder: Path, count: int = 1200) -> str:
    """Files for a case, of many small batches; the pattern that names them."""
    folder.mkdir()
    if case == "ungrouped":
        for i in range(count):
            np.save(folder / f"part-{i:04}.npy", RNG.standard_normal((12, 10)).astype(np.float32))
        return str(folder / "part-*.npy")
    if case == "grouped":
        for i in range(300):  # labels come in runs, as in sorted files
            labels = [f"label {k}" for k in i // 20 + RNG.integers(2, size=20)]
            np.savez(folder / f"part-{i:04}.npz", data=RNG.standard_normal((20, 5)), label=np.array(labels))
        return str(folder / "part-*.npz")
    lines = [
        json.dumps({"v": row, "w": w})
        for row, w in zip(RNG.random((9600, 7)).round(3).tolist(), RNG.random(9600), strict=True)
    ]
    if case == "broken records":
        lines = [line[:-9] if i % 97 == 5 else line for i, line in enumerate(lines)]
    (folder / "all.jsonl").write_text("\n".join(lines))
    return str(folder / "*.jsonl")


def run(
    files: str | list[str],
    checkpoint: Path | None = None,
    *,
    reading: dict[str, Any] | None = None,
    kernel: Kernel | str = "cosine",
    orders: Any = ORDERS,
    batches: Callable[[Iterator[Any]], Iterator[Any]] = iter,
    **options: Any,
) -> str:
    """The whole answer of a run as a text, to the last digit, with what was left out."""
    reading = reading or {}
    files = [files] if isinstance(files, str) else files
    coming = vm.read_batches(files, **reading)
    first = next(coming)
    given: Any = SimpleNamespace(first=first, batches=batches(itertools.chain([first], coming)))
    options = {"grouped": "label" in reading, "quiet": True, "files": files, **options}
    fingerprint = None if checkpoint is None else reading_fingerprint(files, reading, kernel, checkpoint)
    saving = Saving(checkpoint, fingerprint, every=options.pop("every", 0.0))
    result, count = score_batches(given, as_kernel(kernel), orders, saving=saving, **options)
    return json.dumps([result.to_dict(), count, first.skipped.count, first.skipped.records])


def place(path: Path) -> RunPosition:
    with saved.opened(path, None) as archive:
        found = RunPosition.of(archive)
    assert found is not None
    return found


def ten_files(folder: Path) -> Path:
    """A new folder with ten files of nine vectors each, part-0.npy to part-9.npy."""
    folder.mkdir()
    for i in range(10):
        np.save(folder / f"part-{i}.npy", RNG.standard_normal((9, 4)))
    return folder


def interrupted_at(number: int, *signals: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The batches, with signals to this process before one of them is given."""

    def coming(batches: Iterator[Any]) -> Iterator[Any]:
        for i, batch in enumerate(batches):
            if i == number:
                for one in signals:
                    os.kill(os.getpid(), one)
            yield batch

    return coming


def unfinished(files: str | list[str], checkpoint: Path, **options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(files, checkpoint, batches=interrupted_at(4, signal.SIGINT), **options)


# -------------------------------------------------------------------------------------------------------------- kill -9


def in_child(work: Callable[[], str], after: float | None = None) -> str | None:
    """What the work gives in a process of its own; None where that was killed, by itself or after so many seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.write(writing, b".")  # it has begun
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(work().encode())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        pipe.read(1)
        if after is not None:
            time.sleep(after)
            os.kill(child, signal.SIGKILL)
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status == 0:
        return answer.decode()
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    raise RuntimeError(f"the run ended by itself, with {status}")


def dying_in(name: str, call: int, work: Callable[[], str]) -> Callable[[], str]:
    """The work, with a function of the module os that kills the process when it is called for the so-manieth time."""
    calls = itertools.count(1)
    before = getattr(os, name)

    def instead(*given: Any, **more: Any) -> Any:
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return before(*given, **more)

    def patched() -> str:
        setattr(os, name, instead)
        return work()

    return patched


def dying_in_archive(size: int, work: Callable[[], str]) -> Callable[[], str]:
    """The work, killed in the middle of writing a file: when the second one has so many bytes."""

    class Dying(io.BufferedRandom):
        def write(self, data: Any) -> int:
            done = super().write(data)
            self.flush()
            if self.tell() > size:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

    def patched() -> str:
        opened, before = itertools.count(1), io.open

        def instead(file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
            found: Any = before(file, mode, *more, **options)
            return Dying(found.detach()) if mode == "w+b" and next(opened) == 2 else found

        io.open = instead
        return work()

    return patched


def kill_runs(case: str, folder: Path) -> None:
    """Print the answer of a run in peace, and of runs that were killed and resumed, with how they went."""
    options = CASES[case]
    files, checkpoint = written(case, folder / "in"), folder / "run.npz"
    streaming.SAVE_SPACING = 1  # a checkpoint every few batches

    def work() -> str:
        return run(files, checkpoint, **options)

    begin = time.monotonic()
    peace = in_child(lambda: run(files, **options))
    length = time.monotonic() - begin
    moments = random.Random(case)
    killed, places = 0, []
    for i in range(KILLS):
        killed += in_child(work, after=moments.random() * length * (i + 1) / KILLS) is None
        places.append(place(checkpoint).batches if checkpoint.exists() else 0)
    print(json.dumps([peace, in_child(work), killed, places, sorted(os.listdir(folder)), in_child(work)]))


def kill_in_writes(folder: Path) -> None:
    """Print the answer in peace, and of runs that were killed by their own writing, each resumed by the next."""
    files, checkpoint = written("ungrouped", folder / "in", 20), folder / "run.npz"
    streaming.SAVE_SPACING = 0  # a checkpoint a batch

    def work() -> str:
        return run(files, checkpoint)

    found = [in_child(lambda: run(files))]
    beside = []
    for dying in (
        dying_in("fsync", 1, work),
        dying_in("replace", 1, work),
        dying_in("fsync", 3, work),
        dying_in("replace", 4, work),
        dying_in_archive(700, work),
        dying_in_archive(1500, work),
    ):
        found.append(in_child(dying))
        beside.append([sorted(os.listdir(folder)), place(checkpoint).batches if checkpoint.exists() else 0])
    print(json.dumps([found, in_child(work), beside, sorted(os.listdir(folder))]))


if __name__ == "__main__":
    which, where = sys.argv[1:]
    if which == "writes":
        kill_in_writes(Path(where))
    else:
        kill_runs(which, Path(where))
