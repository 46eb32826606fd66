"""A stream larger than memory: 20 GB of embeddings made on the fly, beside the bare products of the same batches.

Each case runs in a process of its own, which reports by how much it grew. ``--file`` writes the stream to a .npy file
first and scores that.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import extra_memory, table

COLUMNS = 768
ROWS = 16_384  # of a batch: 48 MiB


def batches(gigabytes: float) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    for _ in range(max(1, round(gigabytes * 1e9 / (4 * COLUMNS * ROWS)))):
        yield rng.standard_normal((ROWS, COLUMNS), dtype=np.float32)


def made(gigabytes: float) -> str:
    for _ in batches(gigabytes):
        pass
    return "–"


def bare(gigabytes: float) -> str:
    total = np.zeros((COLUMNS, COLUMNS), dtype=np.float32)
    for batch in batches(gigabytes):
        total += batch.T @ batch
    return "–"


def accumulated(gigabytes: float, precision: str) -> str:
    score = vm.score_stream(batches(gigabytes), precision=precision)
    return f"{score:.6f} ± {score.half_width:.0e}, {score.level}"


def from_file(path: str, precision: str) -> str:
    score = vm.score_stream(path, precision=precision)
    return f"{score:.6f} ± {score.half_width:.0e}, {score.level}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--file", action="store_true", help="write the stream to a .npy file and score that")
    parser.add_argument("--case", help="run this case alone and report its time, growth and answer")
    parser.add_argument("--path", default="")
    options = parser.parse_args()
    size = options.gigabytes
    cases = {
        "the making alone": lambda: made(size),
        "bare float32 products": lambda: bare(size),
        "score_stream, float64": lambda: accumulated(size, "float64"),
        "score_stream, float32": lambda: accumulated(size, "float32"),
        "the file, float64": lambda: from_file(options.path, "float64"),
        "the file, float32": lambda: from_file(options.path, "float32"),
    }
    if options.case:
        vm.score_stream(batches(0.1))  # imports and thread buffers first
        answer: list[str] = []
        start = time.perf_counter()
        memory = extra_memory(lambda: answer.append(cases[options.case]()))
        print(f"{time.perf_counter() - start:.2f}|{memory:.0f}|{answer[0]}")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.npy"
        if options.file:
            _write(path, size)
        rows = []
        for name in cases:
            if name.startswith("the file") == options.file:
                command = [
                    sys.executable,
                    __file__,
                    "--gigabytes",
                    str(size),
                    "--case",
                    name,
                    "--path",
                    str(path),
                ]
                done = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
                rows.append([name, *done.split("|")])
                print(rows[-1], flush=True)
    print(f"\n{size:g} GB of float32, {COLUMNS} columns\n")
    print(table(["", "seconds", "extra MiB", "score"], rows))


def _write(path: Path, size: float) -> None:
    count = sum(len(batch) for batch in batches(size))
    whole = np.lib.format.open_memmap(path, "w+", np.float32, (count, COLUMNS))
    for i, batch in enumerate(batches(size)):
        whole[i * ROWS : i * ROWS + len(batch)] = batch
    whole.flush()


if __name__ == "__main__":
    main()
