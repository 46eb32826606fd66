"""Everything asked of one `Diversity` with little memory: what each question takes in seconds, and the peak of memory.

The peak is that of the process beside the samples, and is meant to stay within 110 % of `memory`. Run one form a
process: ``python benchmarks/speed/one_object.py rows``. A file of SMILES, one a line, stands for molecules.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import table

MEMORY = "2 GiB"
PAGE, MIB = 4096, 2.0**20


def samples(form: str, smiles: Path | None) -> tuple[Any, str]:
    """What is asked about, with its kernel."""
    rng = np.random.default_rng(0)
    if form == "molecules":
        assert smiles is not None, "molecules take a file: --smiles FILE"
        return smiles.read_text(encoding="utf-8").split()[:8000], "morgan"
    if form == "rows":
        return rng.standard_normal((20_000, 768)).astype(np.float32), "cosine"
    rows = rng.standard_normal((10_000, 30))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    matrix = rows @ rows.T
    np.fill_diagonal(matrix, 1)
    return matrix, "precomputed"


def resident() -> int:
    """Bytes of this process that are in memory; Linux only."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE


class Peak:
    """The most memory so far, looked at every five milliseconds."""

    def __init__(self) -> None:
        self.bytes = resident()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.bytes = max(self.bytes, resident())
            time.sleep(0.005)


def questions(d: vm.Diversity) -> dict[str, Callable[[], Any]]:
    """All of them, in the order in which they are asked."""
    return {
        "score": d.score,
        "profile": d.profile,
        "group_scores": d.group_scores,
        "contributions": d.contributions,
        "duplicates": d.duplicates,
        "modes": d.modes,
        "neighbours": lambda: d.neighbours(0.95),
        "compare": lambda: d.compare(permutations=99),
        "rarefy": d.rarefy,
        "reweight": d.reweight,
        "select": lambda: d.select(min(100, d.n // 2)),
        "metrics.intdiv": lambda: vm.metrics.intdiv(d),
        "score, q = 3": lambda: d.score(q=3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("form", choices=["rows", "molecules", "matrix"])
    parser.add_argument("--smiles", type=Path)
    arguments = parser.parse_args()
    items, kernel = samples(arguments.form, arguments.smiles)
    small = vm.Diversity(np.random.default_rng(1).standard_normal((60, 5)), by=np.arange(60) % 3)
    for ask in questions(small).values():  # so that what is imported is there already
        ask()
    count = len(items)
    d = vm.Diversity(items, kernel, by=np.arange(count) % 10, solver=vm.Solver(memory=MEMORY))
    before, cells = resident(), []
    for name, ask in questions(d).items():
        peak, began, note = Peak(), time.perf_counter(), ""
        try:
            ask()
        except vm.errors.TooLargeError as error:
            note = str(error).partition(";")[0]
        kept = sum(one.bytes for one in d.kept())
        seconds = f"{time.perf_counter() - began:.1f}"
        cells.append([name, seconds, f"{(peak.bytes - before) / MIB:.0f}", f"{kept / MIB:.0f}", note])
    print(table(["question", "seconds", "peak, MiB", "kept, MiB", "refused"], cells))


if __name__ == "__main__":
    main()
