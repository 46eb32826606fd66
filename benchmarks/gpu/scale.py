"""Large collections on a GPU: a float32 similarity matrix of 50,000 items, and low rank of 200,000 points.

The matrix is the Tanimoto similarity of made-up fingerprints in families, built on the device. Beside each answer stand
the bare products that it is made of: as many passes of the same width, in float32 and in float64.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from device import libraries, say
from measure import table
from vendimeter.kernels import RBF

KNOWN = ("PyTorch", "CuPy")


def synchronize(library: str) -> None:
    if library == "PyTorch":
        import torch

        torch.cuda.synchronize()
    else:
        import cupy

        cupy.cuda.Device().synchronize()


def clock(library: str, case: Callable[[], Any]) -> tuple[float, Any]:
    synchronize(library)
    began = time.perf_counter()
    found = case()
    synchronize(library)
    return time.perf_counter() - began, found


def fingerprints(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    family = rng.random((300, 1024)) < 0.06
    return (family[rng.integers(300, size=n)] ^ (rng.random((n, 1024)) < 0.015)).astype(np.float32)


def matrix(bits: Any, library: str) -> Any:
    """Tanimoto similarities in float32, a block of rows at a time."""
    n = bits.shape[0]
    if library == "PyTorch":
        import torch

        K = torch.empty((n, n), dtype=torch.float32, device=bits.device)
    else:
        import cupy

        K = cupy.empty((n, n), dtype=np.float32)
    sizes = bits.sum(1)
    for start in range(0, n, 4096):
        part = slice(start, min(start + 4096, n))
        common = bits[part] @ bits.T
        K[part] = common / (sizes[part, None] + sizes[None, :] - common)
    return K


def matrices(n: int) -> None:
    host, rows = fingerprints(n), []
    for library, put in libraries().items():
        if library in KNOWN:
            rows += _matrix(library, put, host)
    say(f"\nfloat32 matrix of {n:,} items\n")
    say(
        table(["", "", "score", "level", "passes × width", "bare float32, s", "`vm.score`, s", "ratio"], rows)
    )


def _matrix(library: str, put: Callable[[np.ndarray], Any], host: np.ndarray) -> list[list[str]]:
    K, rows = matrix(put(host), library), []
    vm.score(K[:4096, :4096], "precomputed", tol=1e-2, method="lanczos")  # the first call compiles and loads
    vm.score(K, "precomputed", tol=1e-2)
    for options in ({"tol": 3e-3}, {"tol": 3e-3, "precision": "float32"}, {"tol": 1e-3}):
        seconds, score = clock(library, functools.partial(vm.score, K, "precomputed", **options))
        passes, products = score.diagnostics["passes"], score.diagnostics["products"]
        width = max(1, round(products / passes))
        V = put(np.random.default_rng(1).standard_normal((len(host), width)).astype(np.float32))
        bare, _ = clock(library, functools.partial(products_of, K, V, passes))
        rows.append([
            library,
            ", ".join(f"{k}={v}" for k, v in options.items()),
            f"{float(score):.5g} ± {score.half_width / score:.1e}",
            score.level,
            f"{passes} × {width}",
            f"{bare:.2f}",
            f"{seconds:.2f}",
            f"{seconds / bare:.1f}×",
        ])  # fmt: skip
    return rows


def products_of(K: Any, V: Any, count: int) -> None:
    for _ in range(count):
        K @ V


def low_rank(n: int) -> None:
    x, rows = np.random.default_rng(0).standard_normal((n, 3)), []
    for library, put in libraries().items():
        if library not in KNOWN:
            continue
        on = put(x)
        clock(library, lambda: vm.score(on[:4096], RBF(1.0), tol=1e-2, method="lowrank"))  # noqa: B023
        seconds, score = clock(library, lambda: vm.score(on, RBF(1.0), tol=1e-3, method="lowrank"))  # noqa: B023
        rank = score.diagnostics["rank"]
        panel = put(np.random.default_rng(1).standard_normal((n, rank)))
        bare, _ = clock(library, lambda: [panel.T @ panel, panel @ (panel.T @ panel)])  # noqa: B023
        rows.append([
            library,
            f"{float(score):.6g} ± {score.half_width / score:.1e}",
            f"{rank}",
            f"{bare:.3f}",
            f"{seconds:.2f}",
            f"{seconds / bare:.1f}×",
        ])  # fmt: skip
    say(f"\nRBF(1) of {n:,} normal points in 3 dimensions, tol=1e-3, low rank\n")
    say(table(["", "score", "rank", "bare FᵀF and FR, s", "`vm.score`, s", "ratio"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--points", type=int, default=200_000)
    options = parser.parse_args()
    if not libraries():
        say("No library with a GPU was found here; this benchmark needs a CUDA machine with PyTorch or CuPy.")
        return
    matrices(options.items)
    low_rank(options.points)


if __name__ == "__main__":
    main()
