"""FID beside torchmetrics and SciPy's sqrtm; precision, recall, density and coverage beside prdc: time, memory, values.

Each case runs in a process of its own, on features that look like Inception's: not negative, of low effective rank, two
distributions that differ a little. A process may take 16 GiB of address space (``--limit``), so that what needs more
fails and not the machine; such a peer is compared at the largest size that it can do.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measure import extra_memory, table

Values = dict[str, float]
Case = Callable[[np.ndarray, np.ndarray, int], Values]

RANK = 64  # of what lies under the features
SMALLER = (20_000, 10_000, 5_000, 2_000)  # rows to try where a peer runs out of memory
BLOCK = 5_000  # rows that are made at a time
BATCH = 1_000  # rows of an update of torchmetrics


# ------------------------------------------------------------------------------------------------------------- the data


def features(n: int, columns: int, seed: int, shift: float = 0.0) -> np.ndarray:
    """Rectified mixtures of 64 latent directions of falling weight; `shift` moves and stretches these."""
    shared = np.random.default_rng(0)  # one network for both sets
    weights = shared.standard_normal((RANK, columns), dtype=np.float32)
    weights *= (np.arange(1, RANK + 1, dtype=np.float32) ** -0.75)[:, None]
    offset = 0.3 * shared.standard_normal(columns, dtype=np.float32)
    rng = np.random.default_rng([seed, 1])
    rows = np.empty((n, columns), dtype=np.float32)
    for start in range(0, n, BLOCK):
        part = rows[start : start + BLOCK]
        latent = (1 + shift) * rng.standard_normal((len(part), RANK), dtype=np.float32) + np.float32(shift)
        np.matmul(latent, weights, out=part)
        part += offset
        part += 0.1 * rng.standard_normal(part.shape, dtype=np.float32)
        np.maximum(part, 0, out=part)
        part *= np.float32(0.35)  # means of a few tenths, as Inception has
    return rows


# ------------------------------------------------------------------------------------------------------------ the cases


def fid(samples: np.ndarray, reference: np.ndarray, k: int) -> Values:
    from vendimeter.metrics.frechet import frechet_distance

    return {"FID": float(frechet_distance(samples, reference))}


def fid_torchmetrics(samples: np.ndarray, reference: np.ndarray, k: int) -> Values:
    import torch
    from torchmetrics.image.fid import FrechetInceptionDistance

    class Identity(torch.nn.Module):
        num_features = samples.shape[1]

        def forward(self, rows: Any) -> Any:
            return rows

    metric = FrechetInceptionDistance(feature=Identity())
    for rows, real in ((reference, True), (samples, False)):
        for start in range(0, len(rows), BATCH):
            metric.update(torch.from_numpy(rows[start : start + BATCH]), real=real)
    return {"FID": float(metric.compute())}


def fid_sqrtm(samples: np.ndarray, reference: np.ndarray, k: int) -> Values:
    """As the first implementations have it: covariances by NumPy, and the square root of their product."""
    from scipy import linalg

    left, right = np.cov(samples, rowvar=False), np.cov(reference, rowvar=False)
    apart = samples.mean(axis=0, dtype=np.float64) - reference.mean(axis=0, dtype=np.float64)
    root = linalg.sqrtm(left @ right)
    return {"FID": float(apart @ apart + np.trace(left) + np.trace(right) - 2 * np.trace(root).real)}


def manifolds(samples: np.ndarray, reference: np.ndarray, k: int) -> Values:
    from vendimeter.metrics.manifolds import density_coverage, precision_recall

    first, second = precision_recall(samples, reference, k=k), density_coverage(samples, reference, k=k)
    return {
        "precision": first.precision,
        "recall": first.recall,
        "density": second.density,
        "coverage": second.coverage,
    }


def manifolds_prdc(samples: np.ndarray, reference: np.ndarray, k: int) -> Values:
    import prdc

    found = prdc.compute_prdc(real_features=reference, fake_features=samples, nearest_k=k)
    return {name: float(found[name]) for name in ("precision", "recall", "density", "coverage")}


FAMILIES: dict[str, dict[str, Case]] = {
    "fid": {
        "`frechet_distance`": fid,
        "torchmetrics": fid_torchmetrics,
        "SciPy `sqrtm`": fid_sqrtm,
    },
    "manifolds": {"`precision_recall`, `density_coverage`": manifolds, "prdc": manifolds_prdc},
}
CASES = {name: case for family in FAMILIES.values() for name, case in family.items()}


# ---------------------------------------------------------------------------------------------------- a case by itself


def measured(case: Case, rows: int, columns: int, k: int) -> dict[str, Any]:
    """Seconds, the MiB by which the process grew, the GiB of its peak, and the values."""
    samples, reference = features(rows, columns, seed=1, shift=0.05), features(rows, columns, seed=2)
    few = min(rows, 500)
    case(
        samples[:few, : min(columns, 64)].copy(), reference[:few, : min(columns, 64)].copy(), k
    )  # imports first
    found: dict[str, Any] = {}

    def run() -> None:
        start = time.perf_counter()
        try:
            found["values"] = case(samples, reference, k)
        except Exception as error:
            found["failed"] = "out of memory" if is_shortage(error) else repr(error)[:200]
        found["seconds"] = time.perf_counter() - start

    found["extra"] = extra_memory(run)
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return found


def is_shortage(error: Exception) -> bool:
    """Whether an error means that there was not enough memory: PyTorch's is a plain RuntimeError."""
    return isinstance(error, MemoryError) or "allocate" in str(error) or "memory" in str(error).lower()


def alone(name: str, rows: int, options: argparse.Namespace) -> dict[str, Any]:
    """The case in a process of its own, or why it has no result."""
    command = [sys.executable, __file__, f"--rows={rows}", f"--columns={options.columns}", f"--k={options.k}"]
    command += [f"--limit={options.limit}", "--case", name]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    try:
        return json.loads(done.stdout.splitlines()[-1])  # prdc prints lines of its own
    except (json.JSONDecodeError, IndexError):
        # Libraries in C end the process where an allocation fails.
        last = (done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1]
        return {"failed": "out of memory" if "memory" in last.lower() else last[:200]}


# ----------------------------------------------------------------------------------------------------------- the report


def compare(family: dict[str, Case], options: argparse.Namespace) -> None:
    """Ours and the peers at the full size; a peer that cannot do it at the largest that it can, beside ours there."""
    (ours, *peers), results = family, []
    whole = alone(ours, options.rows, options)
    kept = {options.rows: whole}
    results.append(line(ours, options.rows, whole, whole))
    for peer in peers:
        for rows in (options.rows, *(size for size in SMALLER if size < options.rows)):
            found = alone(peer, rows, options)
            if rows not in kept and "failed" not in found:
                kept[rows] = alone(ours, rows, options)
                results.append(line(ours, rows, kept[rows], kept[rows]))
            results.append(line(peer, rows, found, kept.get(rows, {})))
            if found.get("failed") != "out of memory":
                break
    names = list(whole.get("values", {}))
    head = ["", "rows", "seconds", "ratio", "extra MiB", "peak GiB", *names, "largest difference"]
    print(table(head, [row + ["–"] * (len(head) - len(row)) for row in results]), flush=True)


def line(name: str, rows: int, found: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """A row of the table; ratios and differences are those to ours of the same size."""
    start = [name, f"{rows:,}"]
    if "failed" in found:
        return [*start, found["failed"]]
    ratio = f"{found['seconds'] / ours['seconds']:.2f}×" if "seconds" in ours else "–"
    values = found["values"]
    gap = max(abs(value - ours["values"][key]) for key, value in values.items()) if "values" in ours else None
    figures = [f"{value:.8g}" for value in values.values()]
    memory = [f"{found['extra']:,.0f}", f"{found['peak']:.1f}"]
    same = "–" if found is ours or gap is None else f"{gap:.1e}"
    return [*start, f"{found['seconds']:.1f}", ratio, *memory, *figures, same]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=list(FAMILIES), help="fid, manifolds, or both")
    parser.add_argument("--rows", type=int, default=50_000, help="of either set")
    parser.add_argument("--columns", type=int, default=2_048)
    parser.add_argument("--k", type=int, default=5, help="which neighbour gives the radius of a ball")
    parser.add_argument("--limit", type=float, default=16, help="GiB of address space of a case")
    parser.add_argument("--case", choices=list(CASES), help="this case alone, with JSON as the answer")
    options = parser.parse_args()
    if options.case:
        most = int(options.limit * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        print(json.dumps(measured(CASES[options.case], options.rows, options.columns, options.k)))
        return
    for family in options.families:
        if family not in FAMILIES:
            parser.error(f"there is no family {family!r}; there are: {', '.join(FAMILIES)}")
        print(f"\n{family}: two sets of {options.rows:,} × {options.columns:,} float32\n", flush=True)
        compare(FAMILIES[family], options)


if __name__ == "__main__":
    main()
