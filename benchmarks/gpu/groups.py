"""10,000 similarity matrices of small groups on a GPU: our batched eigenvalues beside those of the array libraries.

Needs a CUDA machine with PyTorch; CuPy and JAX join in where they can be imported. For each size, the matrices of
groups with half as many and with twice as many features as items are made on the device. Eigenvalues and scores of
every method are compared with NumPy's on the host. ``--cpu`` runs a small version on the CPU, to see that the script
works.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# Threads are ours to start: one for each part of the stack, and none inside LAPACK. JAX leaves memory to the others.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measure import table
from vendimeter.solvers import dense
from vendimeter.solvers.dense import batched_eigenvalues

CLOSE = 1e-10  # eigenvalues (which sum to one) and scores agree when they differ by less than this
THREADS = 16


def say(*words: object) -> None:
    print(*words, flush=True)


def scores(eigenvalues: np.ndarray) -> np.ndarray:
    """The Vendi Scores exp(−Σ λ log λ)."""
    values = np.where(eigenvalues > 0, eigenvalues, 1.0)
    return np.exp(-(values * np.log(values)).sum(axis=1))


def on_host(matrices: np.ndarray) -> np.ndarray:
    """NumPy's eigenvalues from large to small, in threads."""
    parts = np.array_split(matrices, THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        return np.concatenate(list(pool.map(np.linalg.eigvalsh, parts)))[:, ::-1]


class Stack:
    """The matrices of one size, and the ways to their eigenvalues: name → function from a number of matrices."""

    def __init__(self, torch: Any, device: str, count: int, size: int, features: int, jax_up_to: int) -> None:
        generator = torch.Generator(device=device).manual_seed(size * 1000 + features)
        rows = torch.randn((count, size, features), dtype=torch.float64, device=device, generator=generator)
        rows /= torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
        self.torch, self.device, self.size, self.features = torch, device, size, features
        self.matrices = rows @ rows.mT / size
        self.matrices = (self.matrices + self.matrices.mT) / 2
        self.jax_up_to = jax_up_to

    def synchronize(self) -> None:
        """Wait for the device: operations are only queued there."""
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def ours_torch(self) -> Any:
        """Our eigenvalues of PyTorch's array."""
        found = batched_eigenvalues(self.matrices)
        self.synchronize()
        return found

    def reflections(self) -> Any:
        """Our first stage alone: no bisection."""
        whole, dense.BISECTIONS = dense.BISECTIONS, 0
        try:
            return self.ours_torch()
        finally:
            dense.BISECTIONS = whole

    def library(self, backend: str, count: int | None = None) -> Any:
        """PyTorch's own, with a backend of its choice or of ours."""
        if self.device == "cuda":
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # one backend or the other is deprecated, depending on the version
                self.torch.backends.cuda.preferred_linalg_library(backend)
        found = self.torch.linalg.eigvalsh(self.matrices[:count])
        self.synchronize()
        return found.flip(-1)

    def host(self) -> np.ndarray:
        """NumPy's, the transfer from the device included."""
        return on_host(self.matrices.cpu().numpy())

    def cupy(self) -> Callable[[], Any]:
        """Our eigenvalues of CuPy's array."""
        import cupy

        stack = cupy.from_dlpack(self.matrices) if self.device == "cuda" else cupy.asarray(self.matrices)

        def solve() -> Any:
            found = batched_eigenvalues(stack)
            cupy.cuda.Device().synchronize()
            return found

        return solve

    def jax(self) -> Callable[[], Any]:
        """Our eigenvalues of JAX's array."""
        import jax

        jax.config.update("jax_enable_x64", True)
        stack = jax.dlpack.from_dlpack(self.matrices)
        if self.device == "cuda" and "cuda" not in str(stack.device).lower():
            raise RuntimeError(f"this JAX has no CUDA: the array is on {stack.device}")
        return lambda: batched_eigenvalues(stack).block_until_ready()


def as_numpy(found: Any) -> np.ndarray:
    for to_host in ("cpu", "get"):  # PyTorch's and CuPy's
        if hasattr(found, to_host):
            found = getattr(found, to_host)()
    return np.asarray(found)


def timed(case: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = case()
    return time.perf_counter() - start, found


def median(case: Callable[[], Any], repeats: int = 5) -> tuple[float, Any]:
    """The median time, after a first run that does not count, and what came out."""
    _, found = timed(case)
    return statistics.median(timed(case)[0] for _ in range(repeats)), found


class Report:
    """The times of one stack; each is printed when it is known, and what fails is a line, not the end."""

    def __init__(self, stack: Stack, truth: np.ndarray | None) -> None:
        self.stack, self.truth = stack, truth
        self.times: dict[str, float] = {}
        self.apart = {"eigenvalues": 0.0, "scores": 0.0}

    def case(self, name: str, measure: Callable[[], tuple[float, Any]], *, check: bool = True) -> None:
        """Measure one method, compare what it found with NumPy's, and print a line."""
        where = f"m = {self.stack.size}, {self.stack.features} features, {name}:"
        try:
            seconds, found = measure()
        except Exception as error:  # a missing library, a backend that cannot, memory: go on with the others
            say(where, "left out,", type(error).__name__, (str(error).splitlines() or [""])[0][:150])
            return
        self.times[name] = seconds
        verdict = ""
        if check and found is not None and self.truth is not None:
            values = as_numpy(found)
            values_apart = float(np.abs(values - self.truth).max())
            scores_apart = float(np.abs(scores(values) - scores(self.truth)).max())
            good = values_apart < CLOSE and scores_apart < CLOSE
            verdict = f"; apart from NumPy: eigenvalues {values_apart:.1e}, scores {scores_apart:.1e}"
            verdict += "" if good else "  *** DISAGREES ***"
            if name.startswith("ours"):
                self.apart["eigenvalues"] = max(self.apart["eigenvalues"], values_apart)
                self.apart["scores"] = max(self.apart["scores"], scores_apart)
        say(where, f"{seconds:.4f} s{verdict}")

    def row(self) -> list[str]:
        """The line of the table."""

        def shown(name: str) -> str:
            return f"{self.times[name]:.4f}" if name in self.times else "–"

        def over(name: str) -> str:
            known = name in self.times and "ours, PyTorch" in self.times
            return f"{self.times[name] / self.times['ours, PyTorch']:.1f}" if known else "–"

        return [
            str(self.stack.size),
            str(self.stack.features),
            *(shown(name) for name in COLUMNS),
            over("torch eigvalsh"),
            over("NumPy in threads"),
            f"{self.apart['eigenvalues']:.0e}",
            f"{self.apart['scores']:.0e}",
        ]


COLUMNS = [
    "ours, PyTorch",
    "of which reflections",
    "ours, CuPy",
    "ours, JAX",
    "torch eigvalsh",
    "torch, cusolver",
    "torch, magma",
    "NumPy in threads",
]


def slow(stack: Stack, backend: str, limit: float) -> tuple[float, Any]:
    """One run of PyTorch's own after a small one; above `limit` seconds, the small one times the number of parts."""
    total = len(stack.matrices)
    few = max(1, total // 20)
    stack.library(backend, 2)
    seconds, _ = timed(lambda: stack.library(backend, few))
    if seconds * total / few > limit:
        say(f"  ({backend}: estimated from {few} matrices)")
        return seconds * total / few, None
    return timed(lambda: stack.library(backend))


def measure(stack: Stack, limit: float) -> Report:
    try:
        truth = stack.host()
    except Exception as error:
        say("NumPy on the host failed, nothing is checked:", error)
        truth = None
    report = Report(stack, truth)
    report.case("ours, PyTorch", lambda: median(stack.ours_torch))
    report.case("of which reflections", lambda: median(stack.reflections), check=False)
    if stack.device == "cuda":
        stack.torch.cuda.reset_peak_memory_stats()
        before = stack.torch.cuda.memory_allocated()
        report.case("ours, once more for its memory", lambda: timed(stack.ours_torch), check=False)
        say(
            f"  (at most {(stack.torch.cuda.max_memory_allocated() - before) / 2**20:.0f} MiB beside the input)"
        )
    report.case("NumPy in threads", lambda: median(stack.host, 3), check=False)
    report.case("ours, CuPy", lambda: median(stack.cupy()))
    if stack.size <= stack.jax_up_to:
        report.case("ours, JAX", lambda: median(stack.jax()))
    report.case("torch eigvalsh", lambda: slow(stack, "default", limit))
    for backend in ("cusolver", "magma") if stack.device == "cuda" else ():
        report.case(f"torch, {backend}", lambda backend=backend: slow(stack, backend, limit))
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, help="matrices in a stack (10,000; on the CPU 60)")
    parser.add_argument("--sizes", type=int, nargs="+", help="(5 16 32 64 128; on the CPU 5 12)")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one run of PyTorch's own")
    parser.add_argument(
        "--jax-up-to", type=int, default=16, help="JAX compiles each step anew: sizes up to this"
    )
    parser.add_argument("--cpu", action="store_true", help="a small run on the CPU, to check the script")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        say("PyTorch is not installed; this benchmark needs it.")
        return
    if not options.cpu and not torch.cuda.is_available():
        say("There is no CUDA device here; nothing was measured (--cpu runs a small version on the CPU).")
        return
    device = "cpu" if options.cpu else "cuda"
    count = options.count or (60 if options.cpu else 10_000)
    name = "the CPU" if options.cpu else torch.cuda.get_device_name()
    say(f"PyTorch {torch.__version__} on {name}, {count:,} matrices a stack")
    rows = []
    for size in options.sizes or ([5, 12] if options.cpu else [5, 16, 32, 64, 128]):
        for features in (max(1, size // 2), 2 * size):
            try:
                stack = Stack(torch, device, count, size, features, options.jax_up_to)
                rows.append(measure(stack, options.limit).row())
            except Exception as error:
                say(f"m = {size}, {features} features: failed, {type(error).__name__}: {error}")
    heads = ["m", "features", *COLUMNS, "torch/ours", "NumPy/ours", "eigenvalues apart", "scores apart"]
    say(f"\nSeconds for {count:,} matrices on {name}\n")
    say(table(heads, rows))


if __name__ == "__main__":
    main()
