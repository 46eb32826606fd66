"""Large collections: low rank and Lanczos beside dense eigenvalues and the official package, time, memory, answers.

Each case runs in a process of its own, which reports by how much it grew. Real data is looked for in ``../shared/data``
or in the folder of ``--data``; cases whose data is missing are left out, and said so. Molecules need RDKit.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import DATA, exponent, extra_memory, table
from vendimeter.kernels import RBF, Jaccard, NGram

SCRATCH = Path(tempfile.gettempdir()) / "vendimeter-scale"


# ------------------------------------------------------------------------------------------------------------- the data


def molecules(data: Path, n: int) -> np.ndarray:
    """Morgan fingerprints (radius 2, 1,024 bits) of the first molecules of the MOSES test set, kept on disk."""
    kept = SCRATCH / f"molecules-{n}.npy"
    if not kept.exists():
        from rdkit import Chem
        from rdkit.Chem import rdFingerprintGenerator

        make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024).GetFingerprintAsNumPy
        bits: list[np.ndarray] = []
        with gzip.open(data / "molecules" / "moses_test.csv.gz", "rt") as file:
            for row in list(csv.reader(file))[1:]:
                molecule = Chem.MolFromSmiles(row[0])
                if molecule is not None:
                    bits.append(make(molecule).astype(bool))
                if len(bits) == n:
                    break
        SCRATCH.mkdir(exist_ok=True)
        np.save(kept, np.array(bits))
    return np.load(kept)


def captions(data: Path, n: int) -> list[str]:
    with gzip.open(data / "text" / "coco_val2017_captions.jsonl.gz", "rt") as file:
        return [caption for line in file for caption in json.loads(line)["captions"]][:n]


def mnist(data: Path, n: int) -> np.ndarray:
    with np.load(data / "images" / "mnist_test.npz") as file:
        return file["images"][:n].reshape(n, -1) / 255.0


def tanimoto(bits: np.ndarray) -> np.ndarray:
    return Jaccard().similarity(bits).dense()


def points(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, d))


# ------------------------------------------------------------------------------------------------------------ the cases


def shown(score: vm.Score) -> str:
    half = score.half_width / score
    return f"{float(score):.6g} ± {half:.1e}, {score.level}"


def dense(matrix: np.ndarray) -> str:
    from scipy.linalg import eigvalsh

    values = eigvalsh(matrix / len(matrix), overwrite_a=True, check_finite=False)
    values = values[values > 0]
    return f"{np.exp(-np.sum(values * np.log(values))):.6g}"


def official(matrix: np.ndarray) -> str:
    from vendi_score import vendi

    return f"{vendi.score_K(matrix):.6g}"


class Case:
    """A thing to time: `make` prepares, and is not counted; `run` is."""

    def __init__(self, name: str, make: Callable[[Path], Any], run: Callable[[Any], Any]):
        self.name, self.make, self.run = name, make, run


def precomputed(tol: float) -> Callable[[np.ndarray], vm.Score]:
    return lambda K: vm.score(K, "precomputed", tol=tol)


def similar(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.exp(-0.5 * ((a - b) ** 2).sum()))


def cases() -> dict[str, list[Case]]:
    return {
        "10,000 molecules, the Tanimoto matrix ready made": [
            Case("eigvalsh (SciPy)", lambda d: tanimoto(molecules(d, 20_000)[:10_000]), dense),
            Case("official `score_K`", lambda d: tanimoto(molecules(d, 20_000)[:10_000]), official),
            Case("`tol=3e-3`", lambda d: tanimoto(molecules(d, 20_000)[:10_000]), precomputed(3e-3)),
            Case("`tol=1e-3`", lambda d: tanimoto(molecules(d, 20_000)[:10_000]), precomputed(1e-3)),
            Case(
                "`tol=3e-3, precision='float32'`",
                lambda d: tanimoto(molecules(d, 20_000)[:10_000]),
                lambda K: vm.score(K, "precomputed", tol=3e-3, precision="float32"),
            ),
        ],
        "10,000 molecules, from fingerprints": [
            Case("matrix, then eigvalsh", lambda d: molecules(d, 20_000)[:10_000], lambda x: dense(tanimoto(x))),
            Case("`tol=3e-3`", lambda d: molecules(d, 20_000)[:10_000], lambda x: vm.score(x, "jaccard", tol=3e-3)),
            Case("`tol=1e-3`", lambda d: molecules(d, 20_000)[:10_000], lambda x: vm.score(x, "jaccard", tol=1e-3)),
        ],
        "20,000 molecules, from fingerprints": [
            Case("`tol=3e-3`", lambda d: molecules(d, 20_000), lambda x: vm.score(x, "jaccard", tol=3e-3)),
            Case(
                "`tol=3e-3, memory='800 MB'`",
                lambda d: molecules(d, 20_000),
                lambda x: vm.score(x, "jaccard", tol=3e-3, memory="800 MB"),
            ),
        ],
        "25,000 captions, n-grams, from text": [
            Case("`tol=1e-3`", lambda d: captions(d, 25_000), lambda x: vm.score(x, NGram(1, 4), tol=1e-3)),
            Case("`tol=1e-2`", lambda d: captions(d, 25_000), lambda x: vm.score(x, NGram(1, 4), tol=1e-2)),
        ],
        "6,000 captions, n-grams, from text": [
            Case("`method='exact'`", lambda d: captions(d, 6_000), lambda x: vm.score(x, NGram(1, 4), method="exact")),
            Case("`tol=1e-3`", lambda d: captions(d, 6_000), lambda x: vm.score(x, NGram(1, 4), tol=1e-3)),
        ],
        "MNIST, 10,000 pictures, RBF with the median distance": [
            Case("matrix, then eigvalsh", lambda d: mnist(d, 10_000), lambda x: dense(RBF().similarity(x).dense())),
            Case("matrix, then official", lambda d: mnist(d, 10_000), lambda x: official(RBF().similarity(x).dense())),
            Case("`tol=1e-2`", lambda d: mnist(d, 10_000), lambda x: vm.score(x, RBF(), tol=1e-2)),
            Case("`tol=1e-3`", lambda d: mnist(d, 10_000), lambda x: vm.score(x, RBF(), tol=1e-3)),
        ],
        "100,000 normal points in 3 dimensions, RBF(1)": [
            Case("`tol=1e-3`", lambda d: points(100_000, 3), lambda x: vm.score(x, RBF(1.0), tol=1e-3)),
        ],
        "2,000 points in 2 dimensions, a Python function": [
            Case("`method='exact'`", lambda d: points(2_000, 2), lambda x: vm.score(list(x), similar, method="exact")),
            Case("`tol=1e-2`", lambda d: points(2_000, 2), lambda x: vm.score(list(x), similar, tol=1e-2)),
        ],
    }  # fmt: skip


def one(group: str, name: str, data: Path) -> None:
    """Run one case in this process and print what it took."""
    case = next(case for case in cases()[group] if case.name == name)
    made = case.make(data)
    np.linalg.eigvalsh(np.eye(64) @ np.eye(64))  # threads and buffers of BLAS are there before
    found: list[Any] = []
    began = time.perf_counter()
    memory = extra_memory(lambda: found.append(case.run(made)))
    seconds = time.perf_counter() - began
    answer, notes = found[0], ""
    if isinstance(answer, vm.Score):
        d = answer.diagnostics
        spent = {k: d[k] for k in ("rank", "probes", "passes", "products", "evaluations") if k in d}
        notes = f"{answer.method}: " + ", ".join(f"{k} {v:,.0f}" for k, v in spent.items())
        answer = shown(answer)
    print(json.dumps([seconds, memory, answer, notes]))


def growth() -> str:
    """The fitted power of n in the time of each path."""
    rng = np.random.default_rng(0)
    family = rng.random((60, 1024)) < 0.06
    bits = family[rng.integers(60, size=16_000)] ^ (rng.random((16_000, 1024)) < 0.02)
    words = [" ".join(f"w{w}" for w in rng.zipf(1.3, 10) % 5000) for _ in range(32_000)]
    flat = points(64_000, 3)
    paths: dict[str, tuple[list[int], Callable[[int], Any]]] = {
        "exact, RBF in 8 dimensions": (
            [1000, 2000, 4000],
            lambda n: vm.score(points(n, 8), RBF(2.0), method="exact"),
        ),
        "low rank, RBF(1) in 3 dimensions, 1e-3": (
            [8000, 16_000, 32_000, 64_000],
            lambda n: vm.score(flat[:n], RBF(1.0), tol=1e-3, method="lowrank"),
        ),
        "Lanczos, stored Tanimoto matrix, 3e-3": (
            [4000, 8000, 16_000],
            lambda n: vm.score(bits[:n], "jaccard", tol=3e-3, method="lanczos"),
        ),
        "Lanczos, sparse n-grams, 3e-3": (
            [8000, 16_000, 32_000],
            lambda n: vm.score(words[:n], NGram(1, 2), tol=3e-3, method="lanczos"),
        ),
        "Lanczos, Tanimoto blocks again at every pass, 1e-2": (
            [4000, 8000, 16_000],
            lambda n: vm.score(bits[:n], "jaccard", tol=1e-2, method="lanczos", memory="180 MB"),
        ),
    }
    rows = []
    for name, (sizes, run) in paths.items():
        seconds = []
        for n in sizes:
            began = time.perf_counter()
            run(n)
            seconds.append(time.perf_counter() - began)
        rows.append([
            name,
            ", ".join(f"{n:,}" for n in sizes),
            ", ".join(f"{s:.2f}" for s in seconds),
            f"{exponent(sizes, seconds):.2f}",
        ])  # fmt: skip
    return table(["path", "n", "seconds", "exponent"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", default="", help="groups whose name holds this text")
    parser.add_argument("--case", nargs=2, help="run one case here: group and name")
    options = parser.parse_args()
    if options.case:
        one(*options.case, options.data)
        return
    for group, members in cases().items():
        if options.only not in group:
            continue
        rows, first = [], 0.0
        for case in members:
            command = [sys.executable, __file__, "--data", str(options.data), "--case", group, case.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                rows.append([case.name, "–", "", "", done.stderr.strip().splitlines()[-1][:90], ""])
                continue
            seconds, memory, answer, notes = json.loads(done.stdout.splitlines()[-1])
            first = first or seconds
            rows.append(
                [case.name, f"{seconds:.2f}", f"{first / seconds:.1f}×", f"{memory:.0f}", answer, notes]
            )
        print(f"\n**{group}**\n")
        print(table(["", "seconds", "faster", "extra MiB", "score", "spent"], rows), flush=True)
    if options.only in "growth":
        print(f"\n**Growth**\n\n{growth()}")


if __name__ == "__main__":
    main()
