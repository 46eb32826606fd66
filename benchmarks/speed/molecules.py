"""From SMILES to a score beside the official package, the parts of it, and ways to compare fingerprints.

The molecules are those of the MOSES test set, in ``../shared/data`` or the folder of ``--data``. The official way
calls RDKit for each pair; it is run up to 2,000 molecules, and 5,000 with ``--all`` (half a minute more).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rdkit import Chem, rdBase

import vendimeter as vm
from measure import DATA, best_times, table
from vendimeter.kernels import Jaccard, Morgan


def official(smiles: list[str]) -> Callable[[], Any] | None:
    """The official package from SMILES to score, parsing as it does; None where it is not installed."""
    try:
        from vendi_score import molecule_utils, vendi
    except ImportError:
        return None
    rdBase.DisableLog("rdApp.*")  # as it does itself; a deprecated call would write a line for each molecule

    def run() -> float:
        molecules = [molecule_utils.get_mol(text) for text in smiles]
        return vendi.score_K(molecule_utils.get_tanimoto_K(molecules))

    return run


def by_bits(packed: np.ndarray) -> Callable[[], np.ndarray]:
    """All similarities by counting bits of 64-bit words, in tiles that stay in the cache; half of them mirrored."""
    words = np.ascontiguousarray(packed.view(np.uint64).T)
    sizes = np.bitwise_count(words).sum(axis=0, dtype=np.float64)
    n = len(sizes)

    def run() -> np.ndarray:
        matrix = np.empty((n, n))
        for top in range(0, n, 128):
            rows = slice(top, top + 128)
            for left in range(top - top % 1024, n, 1024):
                cols = slice(left, left + 1024)
                both = sizes[rows, None] + sizes[cols]
                common = np.zeros(both.shape, dtype=np.uint16)
                for word in words:
                    common += np.bitwise_count(word[rows, None] & word[cols])
                part = common / (both - common)
                matrix[rows, cols] = part
                matrix[cols, rows] = part.T
        return matrix

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--all", action="store_true", help="the official package at 5,000 molecules too")
    options = parser.parse_args()
    path = options.data / "molecules" / "moses_test.csv.gz"
    if not path.exists():
        print(f"{path} is not there; the benchmark of molecules is left out.", file=sys.stderr)
        return
    with gzip.open(path, "rt") as file:
        smiles = [row[0] for row in islice(csv.reader(file), 1, 5_001)]

    rows = []
    for n in (2_000, 5_000):
        texts = smiles[:n]
        cases: dict[str, Callable[[], Any]] = {
            "`vm.score(smiles, Morgan())`": lambda texts=texts: vm.score(texts, Morgan()),
            "`tol=1e-2`": lambda texts=texts: vm.score(texts, Morgan(), tol=1e-2),
        }
        theirs = official(texts)
        if theirs is not None and (n <= 2_000 or options.all):
            cases["official, a call of RDKit a pair"] = theirs
        times = best_times(cases, 3 if n <= 2_000 else 2)
        whole = times["`vm.score(smiles, Morgan())`"]
        rows += [[f"{n:,}", name, f"{t:.2f}", f"{t / whole:.2f}×"] for name, t in times.items()]
        if theirs is not None and n <= 2_000:
            gap = abs(theirs() - vm.score(texts, Morgan()))
            assert gap < 1e-6, f"the scores differ by {gap}"
    print("\nFrom SMILES to score, both with parsing; best of 3 (5,000: of 2)\n")
    print(table(["molecules", "", "seconds", "ratio"], rows))

    molecules = [Chem.MolFromSmiles(text) for text in smiles[:2_000]]
    fingerprints = Morgan().fingerprints(molecules)
    parts = best_times(
        {
            "parsing (RDKit, one thread)": lambda: Morgan().valid(smiles[:2_000]),
            "parsing and fingerprints": lambda: Morgan().fingerprints(smiles[:2_000]),
            "similarities": lambda: Jaccard().similarity(fingerprints).dense(),
            "similarities and eigenvalues": lambda: vm.score(fingerprints, Jaccard()),
        },
        5,
    )
    print("\nThe parts at 2,000 molecules, best of 5\n")
    print(table(["", "seconds"], [[name, f"{t:.3f}"] for name, t in parts.items()]))

    rng, rows = np.random.default_rng(0), []
    for n, width in ((2_000, 1024), (2_000, 2048), (5_000, 1024), (5_000, 2048)):
        bits = rng.random((n, width)) < 0.05
        count = by_bits(np.packbits(bits, axis=1))
        np.testing.assert_array_equal(count(), Jaccard().similarity(bits).dense())  # bit for bit
        times = best_times(
            {"BLAS": lambda bits=bits: Jaccard().similarity(bits).dense(), "counting bits": count}, 3
        )
        rows.append([f"{n:,} × {width:,}", *(f"{t:.3f}" for t in times.values())])
    print("\nAll similarities of random fingerprints, best of 3\n")
    print(table(["", *times], rows))


if __name__ == "__main__":
    main()
