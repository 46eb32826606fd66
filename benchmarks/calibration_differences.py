"""What the intervals of vm.compare cover: differences and ratios of two groups at the size of the smaller one.

The truth is the difference of what so many items of each population score in the mean, from 4,000 samples of each. It
is not that of the populations themselves: at a common size there is no bias, whatever the size.

    python benchmarks/calibration_differences.py [--runs 400] [--order 1] [--only NAME] [--sizes 50/75 …]

Ratios with a group that is all alike but for a few items have no interval: of 50 items of one mode of 97%, one time in
five none is of the rest, and nothing in the sample tells that there is one. How many were refused is in a column.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

import vendimeter as vm
from vendimeter.analysis._pools import Pool
from vendimeter.similarity import Features

Draw = Callable[[int, np.random.Generator], np.ndarray]
NOMINAL = 0.95
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
SIZES = [(25, 25), (50, 50), (100, 100), (50, 75), (50, 300)]


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def side_by_side(rows: list[np.ndarray]) -> list[np.ndarray]:
    """Rows of one width: columns of 0 change no similarity."""
    width = max(part.shape[1] for part in rows)
    return [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in rows]


def truth(draw: Draw, size: int, q: float, rng: np.random.Generator) -> float:
    """The mean score of so many items."""
    found = []
    for _ in range(TRUTH // 20):
        rows = unit(draw(20 * size, rng))
        pool = Pool(Features(rows), np.arange(20 * size), size)
        found.append(pool.scores(np.arange(20 * size).reshape(20, size), q))
    return float(np.mean(found))


def differences(
    runs: int, q: float, only: str = "", both: Sequence[tuple[int, int]] = SIZES
) -> list[tuple[str, float, float]]:
    """Coverage of differences and of ratios, one row a pair of populations and of sizes."""
    found = []
    print(f"intervals of {NOMINAL:.0%}, order {q:g}, {runs} runs each: part that covers the truth")
    print(
        f"{'':62s}{'difference':>11s}{'ratio':>7s}{'refused':>9s}{'error':>9s}{'claimed':>9s}{'seconds':>9s}"
    )
    for sizes in both:
        rng = np.random.default_rng([11, *sizes])
        size = min(sizes)
        true = {
            name: truth(POPULATIONS[name], size, q, rng) for name in {name for pair in PAIRS for name in pair}
        }
        for first, second in PAIRS:
            name = f"{first} ({sizes[0]}) − {second} ({sizes[1]})"
            if only and only not in name:
                continue
            began, hits, given, errors, claimed = time.perf_counter(), np.zeros(2), np.zeros(2), [], []
            wanted = true[first] - true[second], true[first] / true[second]
            for run in range(runs):
                drawn = [
                    POPULATIONS[name](n, rng) for name, n in zip((second, first), sizes[::-1], strict=True)
                ]
                one = vm.compare(
                    side_by_side(drawn), q=q, permutations=0, similarity=False, confidence=NOMINAL, rng=run
                ).differences
                hits += (
                    one.difference_low[0] <= wanted[0] <= one.difference_high[0],
                    one.ratio_low[0] <= wanted[1] <= one.ratio_high[0],
                )
                given += not np.isnan(one.difference_low[0]), not np.isnan(one.ratio_low[0])
                errors.append(one.difference[0] - wanted[0])
                claimed.append((one.difference_high[0] - one.difference[0]) / 2.093)
            covered = hits / np.where(given > 0, given, np.nan)
            found.append((name, *covered.tolist()))
            print(
                f"{name:62s}{covered[0]:11.3f}{covered[1]:7.3f}{1 - given[1] / runs:9.0%}{np.std(errors):9.3g}"
                f"{np.sqrt(np.mean(np.square(claimed))):9.3g}{time.perf_counter() - began:9.1f}",
                flush=True,
            )
    parts = np.array([row[1:] for row in found])
    print(f"lowest {np.nanmin(parts):.3f}, highest {np.nanmax(parts):.3f}, mean {np.nanmean(parts):.3f}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--order", type=float, default=1.0)
    parser.add_argument("--only", default="", help="pairs whose name contains this")
    parser.add_argument("--sizes", nargs="*", default=[f"{a}/{b}" for a, b in SIZES])
    given = parser.parse_args()
    chosen = [(int(a), int(b)) for a, b in (sizes.split("/") for sizes in given.sizes)]
    differences(given.runs, given.order, given.only, chosen)
