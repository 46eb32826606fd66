"""What the intervals of vm.compare cover: differences and ratios of two groups at the size of the smaller one.

The truth is the difference of what so many items of each population score in the mean, from 4,000 samples of each. It
is not that of the populations themselves: at a common size there is no bias, whatever the size.

    python benchmarks/calibration/differences.py [--runs 400] [--order 1] [--only NAME] [--sizes 50/75 …]

Ratios with a group that is all alike but for a few items are refused, (score − 1)·m < 10; how many is in a column. Of
50 items of one mode of 97%, one time in five none is of the rest, and nothing in the sample tells that there is one;
where that mode is wide enough to score above 1.2 by itself, the rule does not see it either.

What is taken off the variance, and which ratios are refused, was chosen while looking at `PAIRS`, so that what is
covered there flatters it. The pairs of `HELD_OUT` were not looked at, and have a table and a total of their own.
"""

from __future__ import annotations

import os

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process a core, each with one thread

import argparse
import sys
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import table
from vendimeter.analysis.comparison.common_size import BLOCKS, Pool
from vendimeter.similarity import FeatureRows

Draw = Callable[[int, np.random.Generator], np.ndarray]
NOMINAL = 0.95
FEW = 20  # intervals in a row, below which a share of them says little
TRUTH = 4000  # samples


def kinds(p: np.ndarray) -> Draw:
    """Items that are alike or have nothing in common, with these probabilities."""
    p = p / p.sum()
    return lambda n, rng: np.eye(len(p))[rng.choice(len(p), n, p=p)]


def clusters(p: np.ndarray, spread: float, width: int) -> Draw:
    """Points about centres."""
    centres = np.random.default_rng(7).standard_normal((len(p), width))

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        return centres[rng.choice(len(p), n, p=p / p.sum())] + spread * rng.standard_normal((n, width))

    return draw


def ellipsoid(width: int, decay: float) -> Draw:
    """Normal in all directions, less and less so."""
    scale = np.arange(1.0, width + 1) ** -decay
    return lambda n, rng: rng.standard_normal((n, width)) * scale


def heavy(width: int, degrees: float) -> Draw:
    """Entries with Student's t distribution."""

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        rows = rng.standard_t(degrees, (n, width))
        rows[:, 0] += 2.0
        return rows

    return draw


POPULATIONS: dict[str, Draw] = {
    "20 equal modes": kinds(np.ones(20)),
    "Zipf, 50 modes": kinds(1 / np.arange(1.0, 51)),
    "Zipf, 400 modes": kinds(1 / np.arange(1.0, 401)),
    "5 modes and 300 rare ones": kinds(np.r_[np.full(5, 10.0), np.full(300, 0.05)]),
    "one mode of 97%": clusters(np.array([0.97, 0.03]), 0.2, 20),
    "8 clusters": clusters(np.ones(8), 0.5, 16),
    "ellipsoid, 10": ellipsoid(10, 0.5),
    "ellipsoid, 60": ellipsoid(60, 1.0),
    "Cauchy, 30": heavy(30, 1.0),
    "t with 3 degrees, 300": heavy(300, 3.0),
}
PAIRS = [
    ("20 equal modes", "Zipf, 50 modes"),
    ("Zipf, 400 modes", "5 modes and 300 rare ones"),
    ("5 modes and 300 rare ones", "5 modes and 300 rare ones"),
    ("one mode of 97%", "8 clusters"),
    ("8 clusters", "ellipsoid, 10"),
    ("ellipsoid, 10", "ellipsoid, 60"),
    ("ellipsoid, 60", "ellipsoid, 60"),
    ("Cauchy, 30", "ellipsoid, 60"),
    ("Cauchy, 30", "t with 3 degrees, 300"),
    ("t with 3 degrees, 300", "t with 3 degrees, 300"),
]
# Fixed before the first of them was run; no rule was changed afterwards.
POPULATIONS |= {
    "6 equal modes": kinds(np.ones(6)),
    "geometric, ratio 0.9": kinds(0.9 ** np.arange(120.0)),
    "80 log-normal modes": kinds(np.exp(1.5 * np.random.default_rng(2024).standard_normal(80))),
    "one mode of 90%": clusters(np.array([0.9, 0.06, 0.04]), 0.3, 12),
    "15 clusters of unequal size": clusters(0.8 ** np.arange(15.0), 0.4, 40),
    "directions in 5 dimensions": ellipsoid(5, 0.0),
    "ellipsoid, 200": ellipsoid(200, 0.7),
    "t with 2 degrees, 12": heavy(12, 2.0),
}
HELD_OUT = [
    ("6 equal modes", "geometric, ratio 0.9"),
    ("80 log-normal modes", "geometric, ratio 0.9"),
    ("80 log-normal modes", "80 log-normal modes"),
    ("one mode of 90%", "15 clusters of unequal size"),
    ("15 clusters of unequal size", "ellipsoid, 200"),
    ("directions in 5 dimensions", "t with 2 degrees, 12"),
    ("ellipsoid, 200", "t with 2 degrees, 12"),
    ("ellipsoid, 200", "ellipsoid, 200"),
]
SIZES = [(25, 25), (50, 50), (100, 100), (50, 75), (50, 300)]


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def side_by_side(rows: list[np.ndarray]) -> list[np.ndarray]:
    """Rows of one width: columns of 0 change no similarity."""
    width = max(part.shape[1] for part in rows)
    return [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in rows]


def seeded(*parts: object) -> np.random.Generator:
    """The same numbers for a row whichever others are run, in whatever order."""
    return np.random.default_rng(zlib.crc32(repr(parts).encode()))


def truth(of: tuple[str, int], q: float) -> float:
    """The mean score of so many items of a population."""
    name, size = of
    rng, found = seeded("truth", name, size), []
    for _ in range(TRUTH // 20):
        rows = unit(POPULATIONS[name](20 * size, rng))
        pool = Pool(FeatureRows(rows), np.arange(20 * size), size)
        found.append(pool.scores(np.arange(20 * size).reshape(20, size), q))
    return float(np.mean(found))


@dataclass(frozen=True)
class Task:
    """Two populations by name, how many items of each, and what so many of each score in the mean."""

    names: tuple[str, str]
    sizes: tuple[int, int]
    truths: tuple[float, float]

    @property
    def title(self) -> str:
        """The two, each with its number of items."""
        return " − ".join(f"{name} ({n})" for name, n in zip(self.names, self.sizes, strict=True))


@dataclass(frozen=True)
class Row:
    """How often differences and ratios were given and how often they held; the error there was and that claimed."""

    title: str
    given: np.ndarray
    held: np.ndarray
    error: float
    claimed: float

    @property
    def covered(self) -> np.ndarray:
        """Parts of the differences and of the ratios; NaN where all were refused."""
        return self.held / np.where(self.given > 0, self.given, np.nan)


def row(task: Task, runs: int, q: float) -> Row:
    """Many comparisons of samples of the same two populations."""
    from scipy.special import stdtrit

    rng = seeded(task.names, task.sizes)
    times = float(stdtrit(BLOCKS - 1, (1 + NOMINAL) / 2))
    difference, ratio = task.truths[0] - task.truths[1], task.truths[0] / task.truths[1]
    held, given, errors, claimed = np.zeros(2), np.zeros(2), [], []
    for run in range(runs):
        drawn = [POPULATIONS[name](n, rng) for name, n in zip(task.names, task.sizes, strict=True)]
        one = vm.compare(
            side_by_side(drawn[::-1]), q=q, permutations=0, similarity=False, confidence=NOMINAL, rng=run
        ).differences
        held += (
            one.difference_low[0] <= difference <= one.difference_high[0],
            one.ratio_low[0] <= ratio <= one.ratio_high[0],
        )
        given += not np.isnan(one.difference_low[0]), not np.isnan(one.ratio_low[0])
        errors.append(one.difference[0] - difference)
        claimed.append((one.difference_high[0] - one.difference[0]) / times)
    return Row(task.title, given, held, float(np.std(errors)), float(np.sqrt(np.mean(np.square(claimed)))))


def differences(
    pairs: Sequence[tuple[str, str]],
    sizes: Sequence[tuple[int, int]],
    runs: int,
    q: float,
    pool: ProcessPoolExecutor,
) -> None:
    """What is covered, one row a pair of populations and of sizes, and what it comes to."""
    wanted = sorted({(name, min(both)) for both in sizes for pair in pairs for name in pair})
    truths = dict(zip(wanted, pool.map(partial(truth, q=q), wanted), strict=True))
    tasks = [
        Task(pair, both, (truths[pair[0], min(both)], truths[pair[1], min(both)]))
        for both in sizes
        for pair in pairs
    ]
    found, lines = [], []
    for one in pool.map(partial(row, runs=runs, q=q), tasks):
        found.append(one)
        shown = ["–" if np.isnan(share) else f"{share:.3f}" for share in one.covered]
        for i in (0, 1):
            if 0 < one.given[i] < FEW:
                shown[i] = f"({one.held[i]:.0f} of {one.given[i]:.0f})"
        lines.append(
            [one.title, *shown, f"{1 - one.given[1] / runs:.0%}", f"{one.error:.3g}", f"{one.claimed:.3g}"]
        )
        print(" | ".join(lines[-1]), file=sys.stderr, flush=True)
    print(table(["groups", "difference", "ratio", "ratios refused", "error", "claimed"], lines) + "\n")
    for i, what in enumerate(("Differences", "Ratios")):
        held, given = sum(one.held[i] for one in found), sum(one.given[i] for one in found)
        rows = [one.covered[i] for one in found if one.given[i] >= FEW]
        if rows:
            low = f"{sum(share < 0.9 for share in rows)} of {len(rows)} below 0.9"
            print(
                f"{what}: {held:,.0f} of {given:,.0f} covered, {held / given:.3f}; rows of {FEW} intervals or more: "
                f"{min(rows):.3f} to {max(rows):.3f}, {low}."
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--order", type=float, default=1.0)
    parser.add_argument("--only", default="", help="pairs with a population whose name contains this")
    parser.add_argument("--sizes", nargs="*", default=[f"{a}/{b}" for a, b in SIZES])
    given = parser.parse_args()
    sizes = [(int(a), int(b)) for a, b in (both.split("/") for both in given.sizes)]
    print(f"Intervals of vm.compare, order {given.order:g}, nominal {NOMINAL:.0%}, {given.runs} runs a row")
    with ProcessPoolExecutor() as pool:
        for title, all_pairs in (("The rules were chosen on these", PAIRS), ("Held out", HELD_OUT)):
            pairs = [pair for pair in all_pairs if any(given.only in name for name in pair)]
            if pairs:
                print(f"\n{title}\n", flush=True)
                differences(pairs, sizes, given.runs, given.order, pool)


if __name__ == "__main__":
    main()
