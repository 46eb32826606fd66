"""On a GPU: agreement with NumPy, one million embeddings, fifty million in chunks, ten thousand groups.

Needs a CUDA machine with PyTorch; CuPy and JAX join in where they can be imported. Each part compares in one run with
the bare products and eigensolves of the same library on the same device.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import table
from vendimeter.kernels import RBF, Jaccard, Laplacian, Polynomial, RandomFeatures


def say(*words: object) -> None:
    print(*words, flush=True)


def timed(case: Callable[[], Any], wait: Callable[[], Any], repeats: int) -> float:
    """The median of several runs in seconds, after one that warms up."""
    case()
    wait()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        case()
        wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def libraries() -> dict[str, Callable[[np.ndarray], Any]]:
    """The libraries that have a GPU here: how to put an array there."""
    found: dict[str, Callable[[np.ndarray], Any]] = {}
    try:
        import torch

        if torch.cuda.is_available():
            found["PyTorch"] = lambda x: torch.from_numpy(np.ascontiguousarray(x)).cuda()
    except ImportError:
        pass
    try:
        import cupy

        cupy.zeros(1)
        found["CuPy"] = cupy.asarray
    except Exception as error:
        say(f"CuPy: {error!r}")
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        if jax.default_backend() == "gpu":
            found["JAX"] = lambda x: jax.device_put(x, jax.devices("gpu")[0])
    except Exception as error:
        say(f"JAX: {error!r}")
    return found


def agreement() -> None:
    """The same calls on the host and on the device."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 256)) + 0.3
    few = X[:1500]
    unit = few / np.linalg.norm(few, axis=1, keepdims=True)
    by = rng.integers(0, 400, len(X))
    stack = rng.standard_normal((500, 64, 32))
    cases: dict[str, tuple[np.ndarray, Callable[[Any], Any]]] = {
        "cosine, 20,000×256": (X, lambda x: vm.profile(x).scores),
        "cosine, float32 rows": (X.astype(np.float32), lambda x: vm.profile(x).scores),
        "cosine, 200×256": (X[:200], lambda x: vm.profile(x).scores),
        "precomputed, 1,500": (unit @ unit.T, lambda x: vm.profile(x, "precomputed").scores),
        "precomputed, q = 2": (unit @ unit.T, lambda x: np.array(vm.score(x, "precomputed", q=2))),
        "RBF(20), 1,500": (few, lambda x: vm.profile(x, RBF(20.0)).scores),
        "RBF(2), 8 columns": (few[:, :8], lambda x: vm.profile(x, RBF(2.0)).scores),
        "Laplacian, 8 columns": (few[:, :8], lambda x: vm.profile(x, Laplacian(9.0)).scores),
        "Jaccard of bits": (few > 1, lambda x: vm.profile(x, Jaccard()).scores),
        "polynomial": (few[:, :20], lambda x: vm.profile(x, Polynomial(2)).scores),
        "random features": (few[:, :8], lambda x: vm.profile(x, RandomFeatures(RBF(2.0), 512)).scores),
        "groups by label": (X, lambda x: vm.score_groups(x, by=by, q=[1, 2]).scores),
        "500 groups of 64×32": (stack, lambda x: vm.score_groups(x, q=[1, 2]).scores),
    }  # fmt: skip
    rows = []
    put = libraries()
    for name, (samples, call) in cases.items():
        expected = call(samples)
        gaps = []
        for library in put:
            try:
                found = call(put[library](samples))
                gaps.append(f"{np.abs(found / expected - 1).max():.1e}")
            except Exception as error:
                gaps.append(repr(error)[:200])
        rows.append([name, *gaps])
        say(rows[-1])
    say("\nLargest relative difference from NumPy over the orders 0 … ∞, float64\n")
    say(table(["", *put], rows))


def million(rows: int, columns: int, repeats: int) -> None:
    """vm.score beside the bare Gram product and one eigvalsh."""
    found = []
    for library in libraries():
        for dtype in ("float32", "float64"):
            found.append([library, dtype, *_million(library, dtype, rows, columns, repeats)])
            say(found[-1])
    say(
        f"\n{rows:,} × {columns} on the device, median of {repeats}; bare = X.T @ X and one eigvalsh in float64\n"
    )
    say(
        table(
            ["", "rows", "bare product, ms", "bare + eigvalsh, ms", "vm.score, ms", "ratio", "bound"], found
        )
    )


def _million(library: str, dtype: str, rows: int, columns: int, repeats: int) -> list[str]:
    if library == "PyTorch":
        import torch

        X: Any = torch.randn((rows, columns), dtype=getattr(torch, dtype), device="cuda")
        wait: Callable[[], Any] = torch.cuda.synchronize

        def product() -> Any:
            return X.T @ X

        def bare() -> Any:
            return torch.linalg.eigvalsh(product().double())
    elif library == "CuPy":
        import cupy

        X = cupy.random.default_rng(0).standard_normal((rows, columns), dtype=dtype)
        wait = cupy.cuda.Device().synchronize

        def product() -> Any:
            return X.T @ X

        def bare() -> Any:
            return cupy.linalg.eigvalsh(product().astype("float64"))
    else:
        import jax

        X = jax.random.normal(jax.random.key(0), (rows, columns), dtype=dtype).block_until_ready()
        last: list[Any] = [X]

        def wait() -> Any:
            last[0].block_until_ready()

        def product() -> Any:
            last[0] = jax.lax.dot(X.T, X, precision="highest")
            return last[0]

        def bare() -> Any:
            last[0] = jax.numpy.linalg.eigvalsh(product().astype("float64"))
            return last[0]

    alone, both = timed(product, wait, repeats), timed(bare, wait, repeats)
    ours = timed(lambda: vm.score(X), wait, repeats)
    score = vm.score(X)
    times = [f"{seconds * 1e3:.1f}" for seconds in (alone, both, ours)]
    return [*times, f"{ours / both:.2f}×", f"±{score.half_width:.0e}"]


def chunks(total: int, columns: int) -> None:
    """An Accumulator over chunks that are made on the device, beside the bare products of the same chunks."""
    import torch

    size = 1_000_000
    count = total // size
    generator = torch.Generator(device="cuda").manual_seed(0)

    def made() -> Any:
        return torch.randn((size, columns), device="cuda", generator=generator)

    def run(each: Callable[[Any], Any], limit: int) -> float:
        each(made())
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(limit):
            each(made())
        torch.cuda.synchronize()
        return time.perf_counter() - start

    bare: dict[str, torch.Tensor] = {}

    def single(x: Any) -> None:
        bare["float32"] = bare.get("float32", 0) + x.T @ x

    def double(x: Any) -> None:
        y = x.double()
        bare["float64"] = bare.get("float64", 0) + y.T @ y

    torch.cuda.reset_peak_memory_stats()
    acc = vm.Accumulator()
    making = run(lambda x: None, count)
    times = {
        "bare float32 products": run(single, count) - making,
        "upcast, bare float64 products": run(double, count) - making,
        "Accumulator.update (normalised, checked, float64)": run(acc.update, count) - making,
    }
    start = time.perf_counter()
    score = acc.score()
    last = time.perf_counter() - start
    say(
        f"\n{total:,} × {columns} float32, made on the device in chunks of {size:,} ({making:.2f} s for the making)\n"
    )
    base = times["upcast, bare float64 products"]
    say(
        table(["", "seconds", "ratio"], [[name, f"{t:.2f}", f"{t / base:.2f}×"] for name, t in times.items()])
    )
    peak = torch.cuda.max_memory_allocated() / 2**30
    say(f"\nscore of all {acc.n:,}: {score!r}, {last * 1e3:.0f} ms; peak {peak:.1f} GiB")


def groups(count: int, repeats: int) -> None:
    """score_groups beside the library's own eigvalsh of the same matrices."""
    rng = np.random.default_rng(0)
    rows = []
    for library, put in libraries().items():
        for size, width in ((5, 768), (16, 128), (32, 128), (64, 32), (64, 128), (64, 768), (128, 64)):
            host = rng.standard_normal((count, size, width))
            try:
                rows.append(
                    [library, f"{size} × {width}", *_groups(library, put(host), host, count, size, repeats)]
                )
            except Exception as error:
                rows.append([library, f"{size} × {width}", repr(error)[:200]])
            say(rows[-1])
    say(f"\n{count:,} groups: the whole of vm.score_groups on the device; the library's eigvalsh alone\n")
    say(table(["", "items × columns", "eigvalsh, s", "vm.score_groups, s", "faster", "difference"], rows))


def _groups(library: str, X: Any, host: np.ndarray, count: int, size: int, repeats: int) -> list[str]:
    from array_api_compat import array_namespace

    xp = array_namespace(X)
    waiting = {"PyTorch": lambda x: xp.cuda.synchronize(), "CuPy": lambda x: xp.cuda.Device().synchronize()}
    wait = waiting.get(library, lambda x: x.block_until_ready())
    unit = X / xp.linalg.vector_norm(X, axis=2, keepdims=True)
    K = unit @ xp.matrix_transpose(unit) / size
    share = 20 if size > 32 else 1  # a twentieth tells how long the slow ones take
    part = K[: count // share, ...]
    own = timed(lambda: wait(xp.linalg.eigvalsh(part)), lambda: None, 1) * share
    ours = timed(lambda: vm.score_groups(X), lambda: None, repeats)
    found = vm.score_groups(X).scores[:200]
    gap = np.abs(found / vm.score_groups(host[:200]).scores - 1).max()
    return [f"{own:.3f}", f"{ours:.3f}", f"{own / ours:.1f}×", f"{gap:.0e}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["agreement", "million", "chunks", "groups"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("--total", type=int, default=50_000_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    if not libraries():
        say("No library with a GPU was found here; this benchmark needs a CUDA machine with PyTorch.")
        return
    parts = {
        "agreement": agreement,
        "million": lambda: million(options.rows, options.columns, options.repeats),
        "chunks": lambda: chunks(options.total, options.columns),
        "groups": lambda: groups(options.groups, options.repeats),
    }
    for part in options.parts:
        say(f"\n## {part}")
        parts[part]()


if __name__ == "__main__":
    main()
