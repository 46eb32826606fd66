"""Choosing 1,000 of 1,000,000 vectors, and some of real data: time, memory, and the score that each method reaches.

Each case runs in a process of its own, which reports by how much it grew beyond the data. ``--million`` names the large
cases: vectors whose variance falls as 1/rank (power), is the same in all directions (even), or comes from 2,000
clusters; ``--methods`` some of the methods; ``--small`` the real data alone, from ``../shared/data`` or the folder of
``--data``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import DATA, extra_memory, table
from vendimeter.kernels import Morgan, NGram

METHODS = ("vendi", "logdet", "farthest", "facility", "random")
WIDTH = 256


def vectors(kind: str, n: int) -> np.ndarray:
    """Float32 rows of 256 numbers."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((n, WIDTH), dtype=np.float32)
    if kind == "power":
        rows *= np.arange(1, WIDTH + 1, dtype=np.float32) ** -0.5
    elif kind == "clusters":
        rows *= 0.7
        centres = rng.standard_normal((2000, WIDTH), dtype=np.float32)
        for start in range(0, n, 65_536):
            part = rows[start : start + 65_536]
            part += centres[rng.integers(2000, size=len(part))]
    return rows


def samples_of(name: str, data: Path) -> tuple[Any, Any, int]:
    """Samples, their kernel, and how many to choose."""
    kind, _, size = name.partition(" ")
    if kind in ("power", "even", "clusters"):
        n = int(size)
        return vectors(kind, n), "cosine", 1000 if n > 100_000 else 500
    if kind == "photographs":
        with np.load(data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as file:
            return file["emb"], "cosine", 200
    if kind == "captions":
        with gzip.open(data / "text" / "coco_val2017_captions.jsonl.gz", "rt") as file:
            return [text for line in file for text in json.loads(line)["captions"]], NGram(1, 4), 200
    with gzip.open(data / "molecules" / "moses_test.csv.gz", "rt") as file:
        return [row[0] for row in list(csv.reader(file))[1:10_001]], Morgan(), 200


def run_case(name: str, method: str, data: Path) -> dict[str, Any]:
    """One choice in this process."""
    samples, kernel, k = samples_of(name, data)
    vm.select(np.eye(8), 2, vm.kernels.Cosine())  # imports and first calls are not what is measured
    found: dict[str, Any] = {}

    def case() -> None:
        start = time.perf_counter()
        found["chosen"] = vm.select(samples, k, kernel, method=method, compare=False)
        found["seconds"] = time.perf_counter() - start

    used = time.process_time()
    memory = extra_memory(case)
    used = time.process_time() - used
    chosen = found["chosen"]
    whole = None
    if method == "random":
        drawn = vm.select(samples, k, kernel, method="random", compare=["random"])
        whole = None if drawn.whole is None else float(drawn.whole)
        score, spread = drawn.comparison["random"], f" ± {drawn.random_std:.2g}"
    else:
        score, spread = float(chosen.score), ""
    return {
        "k": k,
        "n": chosen.n,
        "seconds": found["seconds"],
        "processor": used,
        "memory": memory,
        "score": f"{score:.1f}{spread}",
        "exact": chosen.exact_greedy,
        "notes": [note.text for note in chosen.notes],
        "whole": whole,
    }


def report(name: str, methods: list[str], data: Path) -> None:
    """A table of one collection."""
    lines, whole = [], None
    for method in methods:
        command = [sys.executable, __file__, "--case", name, "--method", method, "--data", str(data)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode:
            print(f"{name}, {method}: left out: {answer.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            continue
        case = json.loads(answer.stdout)
        whole = whole or case["whole"]
        remark = "" if case["exact"] else "samples"
        numbers = [
            f"{case['seconds']:.1f}",
            f"{case['processor']:.1f}",
            f"{case['memory']:,.0f}",
            case["score"],
        ]
        lines.append([f"`{method}`", *numbers, "; ".join([remark, *case["notes"]]).strip("; ")])
        size = f"{case['k']:,} of {case['n']:,}"
    if lines:
        load = os.getloadavg()[0]
        print(
            f"\n**{name.split()[0]}**, {size}, load of the machine {load:.1f}"
            + (f", all items {whole:.1f}" if whole else "")
        )
        print()
        print(table(["", "seconds", "processor seconds", "extra MiB", "score", ""], lines), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case")
    parser.add_argument("--method")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--million", nargs="*", default=["power"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(run_case(options.case, options.method, options.data)))
        return
    methods = options.methods.split(",")
    for name in ("photographs", "captions", "molecules"):
        report(name, methods, options.data)
    for kind in [] if options.small else options.million:
        report(f"{kind} 1000000", methods, options.data)


if __name__ == "__main__":
    main()
