"""How time grows with n and d on each exact path, with the fitted exponent; and the shortcuts beside the eigensolve."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import best_times, exponent, table
from vendimeter.kernels import RBF, Jaccard


def sweep(name: str, sizes: list[int], make: Callable[[int], Callable[[], Any]]) -> list[str]:
    times = best_times({str(size): make(size) for size in sizes}, 3)
    seconds = [times[str(size)] for size in sizes]
    return [
        name,
        ", ".join(f"{s:,}" for s in sizes),
        ", ".join(f"{t:.3f}" for t in seconds),
        f"{exponent(sizes, seconds):.2f}",
    ]


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 256), dtype=np.float32)
    wide = rng.standard_normal((20_000, 1024), dtype=np.float32)
    narrow = {d: np.ascontiguousarray(wide[:, :d]) for d in (128, 256, 512, 1024)}
    points = rng.standard_normal((3_000, 8))
    bits = rng.random((3_000, 1024)) < 0.05
    rows = [
        sweep(
            "n, features of 256 columns", [12_500, 25_000, 50_000, 100_000], lambda n: lambda: vm.score(X[:n])
        ),
        sweep(
            "d, 20,000 rows",
            [128, 256, 512, 1024],
            lambda d: lambda: vm.score(narrow[d]),
        ),
        sweep(
            "n, RBF in 8 dimensions",
            [500, 1000, 2000, 3000],
            lambda n: lambda: vm.score(points[:n], RBF(2.0)),
        ),
        sweep(
            "n, Tanimoto of 1,024 bits",
            [500, 1000, 2000, 3000],
            lambda n: lambda: vm.score(bits[:n], Jaccard()),
        ),
    ]
    print("\nGrowth: time against size\n")
    print(table(["path", "sizes", "seconds", "exponent"], rows))

    K = RBF(2.0).similarity(points).dense()
    cases = {f"q = {q}": (lambda q=q: vm.score(K, "precomputed", q=q)) for q in (1, 2, 3, "inf")}
    try:
        from vendi_score import vendi
    except ImportError:
        print("The official package is not installed; `make bench` installs it.", file=sys.stderr)
    else:
        cases["official score_K, q = 1"] = lambda: vendi.score_K(K)
    times = best_times(cases, 3)
    print(
        "\nA dense 3,000 × 3,000 similarity matrix: the eigensolve and the shortcuts (checks of the matrix included)\n"
    )
    print(
        table(
            ["", "seconds", "ratio"],
            [[name, f"{t:.3f}", f"{t / times['q = 1']:.2f}×"] for name, t in times.items()],
        )
    )


if __name__ == "__main__":
    main()
