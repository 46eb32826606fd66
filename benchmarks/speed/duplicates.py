"""Near copies: time, memory beside the data, and what share of planted copies is found and said to be found.

Of vectors one in a hundred is a copy of another at just the threshold. "even" ones point anywhere, so that hardly any
other two are near; "crowded" ones are rectified mixtures of 64 directions of falling weight, as embeddings are, and
have near copies of their own by the thousand. Each case runs in a process of its own. scikit-learn's radius neighbours
stand beside the comparison of all pairs, and RDKit's bulk similarities beside that of molecules, at sizes that they can
do.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measure import DATA, extra_memory, table

BLOCK = 50_000  # rows that are made at a time
ABOVE = 1e-6  # by which planted copies are above the threshold: float32 rounds rows


# ------------------------------------------------------------------------------------------------------------- the data


def vectors(n: int, columns: int, kind: str, threshold: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, and the positions of originals and of their copies."""
    rng = np.random.default_rng([1, n, columns])
    weights = rng.standard_normal((64, columns), dtype=np.float32)
    weights *= (np.arange(1, 65, dtype=np.float32) ** -0.75)[:, None]
    rows = np.empty((n, columns), dtype=np.float32)
    for start in range(0, n, BLOCK):
        part = rows[start : start + BLOCK]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32)
        if kind == "crowded":
            part *= 0.1
            part += rng.standard_normal((len(part), 64), dtype=np.float32) @ weights + np.float32(0.3)
            np.maximum(part, 0, out=part)
    places = rng.permutation(n)[: 2 * (n // 100)]
    originals, copies = places[: n // 100], places[n // 100 :]
    for part in np.array_split(np.arange(len(copies)), max(1, len(copies) // 5000)):
        left = rows[originals[part]].astype(np.float64)
        left /= np.linalg.norm(left, axis=1, keepdims=True)
        away = rng.standard_normal(left.shape)
        away -= np.sum(away * left, axis=1, keepdims=True) * left
        away /= np.linalg.norm(away, axis=1, keepdims=True)
        cosine = threshold + ABOVE
        rows[copies[part]] = cosine * left + np.sqrt(1 - cosine**2) * away
    return rows, originals, copies


def molecules(count: int) -> list[str]:
    """SMILES of the MOSES test set."""
    with gzip.open(DATA / "molecules" / "moses_test.csv.gz", "rt") as lines:
        return [row["SMILES"] for row in islice(csv.DictReader(lines), count)]


# ------------------------------------------------------------------------------------------------------------ the cases


def of_vectors(options: argparse.Namespace) -> tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]:
    """`vendimeter.duplicates` of vectors, and what it found of the planted copies."""
    import vendimeter as vm

    rows, originals, copies = vectors(options.rows, options.columns, options.kind, options.threshold)
    vm.duplicates(rows[:200], method="approximate")  # imports first

    def case() -> Any:
        return vm.duplicates(rows, threshold=options.threshold, method=options.method)

    def look(found: Any) -> dict[str, Any]:
        labels = found.labels
        together = float(np.mean((labels[originals] == labels[copies]) & (labels[originals] >= 0)))
        recall = found.recall
        return {
            "found": f"{100 * together:.2f}%",
            "said": "all"
            if found.method == "exact"
            else f"{100 * recall.low:.1f} – {100 * recall.high:.1f}%",
            "items with all": "–"
            if not recall.checked
            else f"{100 * recall.sampled:.1f}% of {recall.checked}",
            "copies": f"{found.copies:,}",
            "tables": str(recall.tables or "–"),
        }

    return case, look


def of_molecules(options: argparse.Namespace) -> tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]:
    """`vendimeter.duplicates` of SMILES by Morgan fingerprints, all pairs, with or without the scores."""
    import vendimeter as vm

    smiles = molecules(options.rows)
    vm.duplicates(smiles[:50], "morgan")
    scores = options.kind == "with scores"
    return lambda: vm.duplicates(
        smiles, "morgan", threshold=options.threshold, scores=scores
    ), lambda found: {
        "copies": f"{found.copies:,}",
        "pairs": f"{found.pairs:,}",
    }


def by_radius(options: argparse.Namespace) -> tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]:
    """scikit-learn's radius neighbours of the same vectors."""
    from sklearn.neighbors import NearestNeighbors

    rows, originals, copies = vectors(options.rows, options.columns, options.kind, options.threshold)

    def case() -> Any:
        found = NearestNeighbors(metric="cosine", algorithm="brute").fit(rows)
        return found.radius_neighbors_graph(rows, radius=1 - options.threshold)

    return case, lambda graph: {
        "found": f"{100 * float(np.mean(np.asarray(graph[originals, copies]) > 0)):.2f}%"
    }


def by_bulk(options: argparse.Namespace) -> tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]:
    """RDKit's bulk similarities of the same molecules, an item at a time."""
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    smiles = molecules(options.rows)

    def case() -> int:
        make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024).GetFingerprint
        bits = [make(Chem.MolFromSmiles(text)) for text in smiles]
        pairs = 0
        for i, one in enumerate(bits):
            pairs += int(
                np.sum(np.array(DataStructs.BulkTanimotoSimilarity(one, bits[:i])) >= options.threshold)
            )
        return pairs

    return case, lambda pairs: {"pairs": f"{pairs:,}"}


CASES = {
    "`vm.duplicates`": of_vectors,
    "scikit-learn": by_radius,
    "`vm.duplicates` of SMILES": of_molecules,
    "RDKit, in bulk": by_bulk,
}


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds, those of all cores together (others may use the machine), MiB beside the data, and what was found."""
    case, look = CASES[options.case](options)
    found: dict[str, Any] = {}

    def run() -> None:
        began, spent = time.perf_counter(), time.process_time()
        found["result"] = case()
        found["seconds"], found["cores"] = time.perf_counter() - began, time.process_time() - spent

    extra = extra_memory(run)
    times = {"seconds": found["seconds"], "of all cores": found["cores"]}
    return {**times, "extra": extra, **look(found["result"])}


def alone(case: str, **options: Any) -> dict[str, Any]:
    """A case in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "--case",
        case,
        *(f"--{name}={value}" for name, value in options.items()),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["failed"])[-1][:120]}
    return json.loads(done.stdout.splitlines()[-1])


# ----------------------------------------------------------------------------------------------------------- the report


def report(title: str, runs: list[tuple[str, dict[str, Any]]], columns: list[str]) -> None:
    """A table of runs, each a case with its options."""
    print(f"\n{title}\n", flush=True)
    lines = []
    for case, options in runs:
        found = alone(case, **options)
        start = [case, options.get("kind", ""), f"{options['rows']:,}", f"{options['threshold']:g}"]
        if "failed" in found:
            lines.append([*start, found["failed"], *[""] * (2 + len(columns))])
            continue
        figures = [f"{found['seconds']:.1f}", f"{found['of all cores']:.1f}", f"{found['extra']:,.0f}"]
        lines.append([*start, *figures, *(found.get(name, "–") for name in columns)])
    print(
        table(["", "", "items", "threshold", "seconds", "of all cores", "extra MiB", *columns], lines),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--threshold", type=float, default=0.95)
    parser.add_argument("--kind", default="even")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--quick", action="store_true", help="a tenth of the items, and no crowded ones")
    parser.add_argument("--case", choices=list(CASES), help="this case alone, with JSON as the answer")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measured(options)))
        return
    ours, most = "`vm.duplicates`", options.rows // 10 if options.quick else options.rows
    columns = ["found", "said", "items with all", "copies", "tables"]
    many: list[dict[str, Any]] = [
        {"rows": most, "threshold": 0.95, "kind": "even", "method": "approximate"},
        {"rows": most, "threshold": 0.9, "kind": "even", "method": "approximate"},
    ]
    if not options.quick:
        many.append({"rows": most, "threshold": 0.95, "kind": "crowded", "method": "approximate"})
    report(f"{options.columns} columns, by hashing", [(ours, one) for one in many], columns)
    some = [20_000] if options.quick else [20_000, 100_000]
    pairs = [(ours, {"rows": n, "threshold": 0.95, "kind": "even", "method": "exact"}) for n in some]
    pairs.append(("scikit-learn", {"rows": 20_000, "threshold": 0.95, "kind": "even"}))
    report(f"{options.columns} columns, all pairs", pairs, columns)
    if not DATA.is_dir():
        print("\nthe molecules are not there")
        return
    smiles = "`vm.duplicates` of SMILES"
    several: list[tuple[str, dict[str, Any]]] = [
        (smiles, {"rows": 5_000, "threshold": 0.95, "kind": "without scores"}),
        ("RDKit, in bulk", {"rows": 5_000, "threshold": 0.95, "kind": ""}),
    ]
    if not options.quick:
        several += [
            (smiles, {"rows": 30_000, "threshold": 0.95, "kind": kind})
            for kind in ("without scores", "with scores")
        ]
    report("molecules, all pairs", several, ["copies", "pairs"])


if __name__ == "__main__":
    main()
