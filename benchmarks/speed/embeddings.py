"""200,000 float32 embeddings of 768 columns: the library beside bare BLAS and the official package, in one run."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import best_times, extra_memory, table
from vendimeter.solvers.gram import gram


def cases(X: np.ndarray) -> dict[str, Callable[[], Any]]:
    features = vm.kernels.Cosine().similarity(X)
    found: dict[str, Callable[[], Any]] = {
        "bare X.T @ X": lambda: X.T @ X,
        "Gram stage, float32 products": lambda: gram(features, None, precision="float32", probes=0),
        "score, float32 with certificate": lambda: vm.score(X, precision="float32"),
        'score, precision="float64"': lambda: vm.score(X, precision="float64"),
    }
    try:
        from vendi_score import vendi
    except ImportError:
        print("The official package is not installed; `make bench` installs it.", file=sys.stderr)
    else:
        found["official score_dual (no bound)"] = lambda: vendi.score_dual(X)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory-of", help="measure the memory of this case alone, in a fresh process")
    options = parser.parse_args()
    X = np.random.default_rng(0).standard_normal((options.rows, options.columns), dtype=np.float32)
    if options.memory_of:
        warm, whole = cases(X[:3000]), cases(X)
        warm[options.memory_of]()  # imports and thread buffers first
        print(f"{extra_memory(whole[options.memory_of]):.0f}")
        return
    timed = cases(X)
    times = best_times(timed, options.repeats)
    bare = times["bare X.T @ X"]
    rows = []
    for name, case in timed.items():
        answer = case()
        bound = f"±{answer.half_width:.1e} ({answer.level})" if isinstance(answer, vm.Score) else "–"
        command = [sys.executable, __file__, f"--rows={options.rows}", f"--columns={options.columns}"]
        memory = subprocess.run(
            [*command, "--memory-of", name], check=True, capture_output=True, text=True
        ).stdout.strip()
        rows.append([name, f"{times[name]:.3f}", f"{times[name] / bare:.2f}×", memory, bound])
    print(
        f"\n{options.rows:,} × {options.columns} float32, best of {options.repeats} (ratios to the bare product)\n"
    )
    print(table(["", "seconds", "ratio", "extra MiB", "bound"], rows))


if __name__ == "__main__":
    main()
