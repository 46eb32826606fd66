"""What each of a million rows contributes, beside the score alone, and beside leaving rows out one by one.

Each case runs in a process of its own, which reports by how much it grew beyond the data. The file is written with one
column of vectors, and read in batches.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import extra_memory, table

TRIED = 20  # rows that are left out one by one, to tell how long all would take


def made(rows: int, columns: int) -> np.ndarray:
    """Rows whose eigenvalues fall by a factor of about 100."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((rows, columns), dtype=np.float32)
    data *= np.geomspace(1, 0.1, columns, dtype=np.float32)
    return data


def scored(data: np.ndarray) -> str:
    return f"{vm.score(data, precision='float64'):.4f}"


def shared(data: np.ndarray, **options: object) -> str:
    found = vm.contributions(data, **options)
    return f"Σ shares − log(score) = {abs(found.values.sum() - np.log(found.score)):.0e}"


def one_by_one(data: np.ndarray) -> str:
    """From the matrix of all, which is the quickest plain way: take a row away, and find all eigenvalues again."""
    unit = data / np.linalg.norm(data, axis=1, keepdims=True)
    whole = unit.T.astype(np.float64) @ unit
    start = time.perf_counter()
    for row in unit[:TRIED].astype(np.float64):
        values = np.linalg.eigvalsh((whole - np.outer(row, row)) / (len(data) - 1))
        np.exp(-np.sum(values * np.log(values)))
    each = (time.perf_counter() - start) / TRIED
    return f"{each * 1000:.1f} ms a row: {each * len(data) / 3600:.1f} h for all"


def written(path: Path, **options: object) -> str:
    out = path.parent / "out.parquet"
    found = vm.write_contributions(path, out, samples="v", overwrite=True, **options)
    return f"{found.rows:,} rows, {out.stat().st_size / 1e9:.2f} GB written"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--case", help="run this case alone and report its time, growth and answer")
    parser.add_argument("--path", type=Path)
    options = parser.parse_args()
    cases = {
        "the score alone, float64": scored,
        "contributions": shared,
        "contributions, leave_one_out=False": lambda data: shared(data, leave_one_out=False),
        "contributions, q = 0.5": lambda data: shared(data, q=0.5),
        "contributions, q = 2": lambda data: shared(data, q=2),
        "contributions, q = 2.5": lambda data: shared(data, q=2.5),
        "contributions, q = ∞": lambda data: shared(data, q="inf"),
        "left out one by one": one_by_one,
        "write_contributions": lambda path: written(path),
    }
    if options.case:
        given = options.path if options.case.startswith("write") else made(options.rows, options.columns)
        vm.contributions(made(5000, options.columns), q=0.5)  # imports and thread buffers first
        answer: list[str] = []
        start = time.perf_counter()
        memory = extra_memory(lambda: answer.append(cases[options.case](given)))
        print(f"{time.perf_counter() - start:.1f}|{memory:.0f}|{answer[0]}")
        return
    size = ["--rows", str(options.rows), "--columns", str(options.columns)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        _write(path, made(options.rows, options.columns))
        rows = []
        for name in cases:
            command = [sys.executable, __file__, *size, "--case", name, "--path", str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
            rows.append([name, *done.split("|")])
            print(rows[-1], file=sys.stderr, flush=True)
    print(f"\n{options.rows:,} rows of float32, {options.columns} columns\n")
    print(table(["", "seconds", "extra MiB", ""], rows))


def _write(path: Path, data: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(data.reshape(-1)), data.shape[1])
    pq.write_table(pa.table({"v": vectors}), path, row_group_size=65_536)


if __name__ == "__main__":
    main()
