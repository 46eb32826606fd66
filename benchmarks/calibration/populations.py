"""Do intervals hold? Populations whose score is known, sampled again and again: how often the interval contains it.

``python benchmarks/calibration/populations.py [--runs 300] [--q 1] [--only NAME …]``. A row is a population and a
number of samples: how often the interval was refused, and of those given how many contain the score of the population,
and how many lie below it. The last rows of the first table are populations that no sample of such a size tells of:
heavy tails and rare modes, where intervals have to be refused; one of them shows a limit, which 300 samples cannot
tell.

The rules by which intervals are refused were chosen while looking at the populations of the first table, so that what
they cover there flatters them. Those of `HELD_OUT` were not looked at, and have a table and a total of their own.
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
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import table

FEW = 20  # intervals in a row, below which a share of them says little

Sampler = Callable[[int, np.random.Generator], tuple[Any, Any]]


@dataclass(frozen=True)
class Distribution:
    """A population: how to sample from it, the eigenvalues of its operator, and numbers of samples worth a look."""

    sampler: Sampler
    eigenvalues: Callable[[], np.ndarray]
    sizes: Sequence[int] = field(default=())

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """(samples, kernel)."""
        return self.sampler(n, rng)

    def truth(self, q: float = 1) -> float:
        """The score of the population."""
        values = self.eigenvalues()
        values = values[values > 0] / values.sum()
        if q == 1:
            return float(np.exp(-np.sum(values * np.log(values))))
        return float(1 / values.max()) if np.isinf(q) else float(np.sum(values**q) ** (1 / (1 - q)))


# ------------------------------------------------------------------------------------------------------- categories


def categories(weights: Any, sizes: Sequence[int]) -> Distribution:
    """Categories with known probabilities, none like another: the eigenvalues are the probabilities."""
    shares = np.asarray(weights, dtype=float) / np.sum(weights)
    ends = np.cumsum(shares)[:-1]

    def sampler(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        return np.searchsorted(ends, rng.random(n)), "match"

    return Distribution(sampler, lambda: shares, sizes)


def common_and_rare(common: int, rare: int, share: float) -> np.ndarray:
    """A few common categories, and a share of the mass on many rare ones."""
    return np.concatenate([np.full(common, (1 - share) / common), np.full(rare, share / rare)])


# ---------------------------------------------------------------------------------------------------------- vectors


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def sphere(width: int, sizes: Sequence[int]) -> Distribution:
    """Directions without preference: all eigenvalues are 1/d."""
    return Distribution(
        lambda n, rng: (rng.standard_normal((n, width)), vm.kernels.Cosine()), lambda: np.ones(width), sizes
    )


def gaussian(variances: np.ndarray, sizes: Sequence[int]) -> Distribution:
    """Normal vectors under the cosine kernel: λ_i = E[x_i²/Σx²] = ∫ s_i/(1+2s_i t) Π(1+2s_j t)^(−½) dt."""

    @cache
    def eigenvalues() -> np.ndarray:
        nodes, weights = np.polynomial.legendre.leggauss(2000)
        u = (nodes + 1) / 2
        t, step = u / (1 - u), weights / 2 / (1 - u) ** 2
        shrunk = np.exp(-0.5 * np.log1p(2 * np.outer(t, variances)).sum(axis=1))
        return (variances / (1 + 2 * np.outer(t, variances)) * (shrunk * step)[:, None]).sum(axis=0)

    def sampler(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        return rng.standard_normal((n, len(variances))) * np.sqrt(variances), vm.kernels.Cosine()

    return Distribution(sampler, eigenvalues, sizes)


def subspaces(shares: Sequence[float], width: int, sizes: Sequence[int]) -> Distribution:
    """Modes that are orthogonal to each other, with directions of their own inside: π_k/d, each d times."""

    def sampler(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        rows = np.zeros((n, len(shares), width))
        mode = rng.choice(len(shares), n, p=shares)
        rows[np.arange(n), mode] = rng.standard_normal((n, width))
        return rows.reshape(n, -1), vm.kernels.Cosine()

    return Distribution(sampler, lambda: np.repeat(np.asarray(shares) / width, width), sizes)


def bits(width: int, share: float, sizes: Sequence[int]) -> Distribution:
    """Sparse independent bits under the cosine kernel; exchangeable, so that two eigenvalues say it all."""
    from scipy.stats import binom

    count = np.arange(1, width + 1)
    chance = binom.pmf(count, width, share)
    chance = chance / chance.sum()
    joint = float(np.sum((count - 1) * chance)) / (width * (width - 1))

    def sampler(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        places = rng.random((n, width)).argsort(axis=1).argsort(axis=1)
        return (places < rng.choice(count, n, p=chance)[:, None]).astype(float), vm.kernels.Cosine()

    ones = np.full(width - 1, 1 / width - joint)
    return Distribution(sampler, lambda: np.append(ones, 1 / width + (width - 1) * joint), sizes)


def blobs(modes: int, width: int, spread: float, sizes: Sequence[int]) -> Distribution:
    """Clusters about random directions; the operator from four million samples, right to some 10⁻⁴ in the score."""
    centres = _unit(np.random.default_rng(0).standard_normal((modes, width)))

    def rows(n: int, rng: np.random.Generator) -> np.ndarray:
        noise = rng.standard_normal((n, width)) * (spread / np.sqrt(width))
        return _unit(centres[rng.integers(modes, size=n)] + noise)

    @cache
    def eigenvalues() -> np.ndarray:
        rng, total = np.random.default_rng(1), np.zeros((width, width))
        for _ in range(40):
            part = rows(100_000, rng)
            total += part.T @ part
        return np.linalg.eigvalsh(total)

    return Distribution(lambda n, rng: (rows(n, rng), vm.kernels.Cosine()), eigenvalues, sizes)


# ------------------------------------------------------------------------------------------- kernels on the circle


def _bessel(kappa: float, highest: int) -> np.ndarray:
    from scipy.special import ive

    return ive(np.arange(highest + 1), kappa)


def circle(sigma: float, sizes: Sequence[int]) -> Distribution:
    """The RBF kernel on points of a circle, through the n×n matrix: its eigenvalues are Bessel functions of 1/σ²."""

    def sampler(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        angle = 2 * np.pi * rng.random(n)
        return np.column_stack([np.cos(angle), np.sin(angle)]), vm.kernels.RBF(sigma)

    def eigenvalues() -> np.ndarray:
        found = _bessel(1 / sigma**2, 200)
        return np.concatenate([found[:1], np.repeat(found[1:], 2)])

    return Distribution(sampler, eigenvalues, sizes)


def _waves(angle: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features of a stationary kernel on the circle, and its eigenvalues: one of order 0, two of each other."""
    each = np.concatenate([values[:1], np.repeat(values[1:], 2)])
    phase = np.outer(angle, np.arange(1, len(values)))
    rows = np.empty((len(angle), len(each)))
    rows[:, 0] = 1.0
    rows[:, 1::2], rows[:, 2::2] = np.sqrt(2) * np.cos(phase), np.sqrt(2) * np.sin(phase)
    return rows * np.sqrt(each), each


def stationary(values: np.ndarray, sizes: Sequence[int], *, torus: bool = False) -> Distribution:
    """A stationary kernel on the circle, or its product on a torus, as features; its eigenvalues are given."""

    def rows(n: int, rng: np.random.Generator) -> np.ndarray:
        first = _waves(2 * np.pi * rng.random(n), values)[0]
        if not torus:
            return first
        second = _waves(2 * np.pi * rng.random(n), values)[0]
        return (first[:, :, None] * second[:, None, :]).reshape(n, -1)

    def eigenvalues() -> np.ndarray:
        each = _waves(np.zeros(1), values)[1]
        return np.outer(each, each).ravel() if torus else each

    return Distribution(lambda n, rng: (rows(n, rng), vm.kernels.Cosine()), eigenvalues, sizes)


_RANK = np.arange(1.0, 100_001)

DISTRIBUTIONS: dict[str, Distribution] = {
    "20 equal categories": categories(np.ones(20), (100, 160, 1000)),
    "200 equal categories": categories(np.ones(200), (400, 1600, 5000)),
    "geometric, ratio 0.8": categories(0.8 ** _RANK[:100], (100, 320, 1000)),
    "geometric, ratio 0.95": categories(0.95 ** _RANK[:600], (200, 800, 3000)),
    "2 equal categories": categories([1, 1], (100, 1000)),
    "55% and 45%": categories([55, 45], (100, 300, 1000)),
    "3% unlike the rest": categories([97, 3], (100, 300, 1000)),
    "directions in 16 dimensions": sphere(16, (100, 128, 1000)),
    "normal, variances 1/i, d = 48": gaussian(1 / _RANK[:48], (100, 300, 1000)),
    "normal, variances 1/i², d = 48": gaussian(1 / _RANK[:48] ** 2, (100, 300, 1000)),
    "5 subspaces of 4 dimensions": subspaces([0.4, 0.3, 0.15, 0.1, 0.05], 4, (100, 120, 1000)),
    "sparse bits, d = 40": bits(40, 0.05, (100, 320, 1000)),
    "8 clusters in 24 dimensions": blobs(8, 24, 0.3, (100, 320, 1000)),
    "RBF on a circle, σ = 0.2": circle(0.2, (100, 160, 320)),
    "RBF on a torus": stationary(_bessel(1.0, 6), (100, 300), torus=True),
    "Laplacian on a circle": stationary(1 / (1 + (0.1 * np.arange(60)) ** 2), (240, 480, 1000)),
    "Zipf, exponent 1, 10,000 words": categories(1 / _RANK[:10_000], (300, 3000, 30_000)),
    "power law, exponent 1.5": categories(_RANK**-1.5, (300, 1000, 3000)),
    "power law, exponent 2": categories(_RANK**-2.0, (300, 1000, 3000)),
    "5,000 equally rare categories": categories(np.ones(5000), (500, 5000, 20_000)),
    "10 common, half in 5,000 rare": categories(common_and_rare(10, 5000, 0.5), (300, 3000, 20_000)),
    "10 common, 2% in 2,000 rare": categories(common_and_rare(10, 2000, 0.02), (300, 1000, 3000)),
}


def normal_points(sigma: float, width: int, sizes: Sequence[int]) -> Distribution:
    """The RBF kernel on standard normal points, through the n×n matrix: geometric eigenvalues, by Mehler's formula."""

    def sampler(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        return rng.standard_normal((n, width)), vm.kernels.RBF(sigma)

    def eigenvalues() -> np.ndarray:
        a, b = 0.25, 0.5 / sigma**2
        total = a + b + np.sqrt(a * a + 2 * a * b)
        line = np.sqrt(2 * a / total) * (b / total) ** np.arange(80)
        found = line
        for _ in range(width - 1):
            found = np.outer(found, line).ravel()
        return found

    return Distribution(sampler, eigenvalues, sizes)


# Fixed, with their numbers of samples, before the first of them was run; no rule was changed afterwards.
_DRAW = np.random.default_rng(2024)
HELD_OUT: dict[str, Distribution] = {
    "80 categories, log-normal": categories(np.exp(1.5 * _DRAW.standard_normal(80)), (100, 400, 1500)),
    "60 categories, Dirichlet 0.3": categories(_DRAW.gamma(0.3, size=60), (100, 400, 1500)),
    "Poisson counts, mean 12": categories(np.cumprod(np.append(1.0, 12 / _RANK[:60])), (100, 400, 1500)),
    "sticks broken 1 to 9": categories(np.cumprod(_DRAW.beta(9, 1, size=300)), (100, 400, 1500)),
    "3 equal categories": categories(np.ones(3), (100, 400)),
    "90%, 6% and 4%": categories([90, 6, 4], (100, 400)),
    "directions in 5 dimensions": sphere(5, (100, 400)),
    "normal, variances 0.8^i, d = 30": gaussian(0.8 ** _RANK[:30], (100, 400)),
    "12 subspaces of 3 dimensions": subspaces([0.25, 0.2, 0.15, *([0.4 / 9] * 9)], 3, (100, 400)),
    "RBF on normal points in a plane, σ = 0.5": normal_points(0.5, 2, (120, 300)),
    "20% in 400 rare": categories(common_and_rare(6, 400, 0.2), (100, 400, 1500)),
    "power law, exponent 1.7": categories(_RANK**-1.7, (100, 400, 1500)),
}
DISTRIBUTIONS |= HELD_OUT


# ------------------------------------------------------------------------------------------------ of the population


@dataclass(frozen=True)
class Outcome:
    """What many samples of one size from one population gave."""

    n: int
    truth: float
    refused: float
    covered: float
    below: float
    width: float
    bias: float
    plugin_bias: float
    given: int


def one_run(name: str, n: int, q: float, seed: int) -> tuple[float, float, float, float]:
    """(score, estimate, low, high) of one sample; NaN for a refused interval."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), n, seed])
    samples, kernel = DISTRIBUTIONS[name].sample(n, rng)
    found = vm.rarefy(samples, kernel, q=q, sizes=[n], rng=seed)
    low, high = found.population.interval or (np.nan, np.nan)
    return float(found.score), found.population.estimate, low, high


def calibrate(name: str, n: int, q: float, runs: int, pool: Any = None) -> Outcome:
    """Many runs of one population and number of samples."""
    mapped = map if pool is None else partial(pool.map, chunksize=10)
    found = np.array(list(mapped(partial(one_run, name, n, q), range(runs))))
    score, estimate, low, high = found.T
    truth = DISTRIBUTIONS[name].truth(q)
    given = ~np.isnan(low)
    inside = (low <= truth) & (truth <= high)
    share = float(inside[given].mean()) if given.any() else np.nan
    below = float((high < truth)[given].mean()) if given.any() else np.nan
    width = float((high - low)[given].mean() / truth) if given.any() else np.nan
    return Outcome(
        n,
        truth,
        1 - float(given.mean()),
        share,
        below,
        width,
        float(np.log(estimate / truth).mean()),
        float(np.log(score / truth).mean()),
        int(given.sum()),
    )


def populations(runs: int, q: float, names: Sequence[str], pool: Any) -> None:
    """The intervals of `vendimeter.rarefy` for these populations: a table, and what it comes to."""
    rows: list[list[str]] = []
    found: list[Outcome] = []
    for name in names:
        for n in DISTRIBUTIONS[name].sizes:
            one = calibrate(name, n, q, runs, pool)
            found.append(one)
            shown, below = f"{one.covered:.3f}", f"{one.below:.3f}"
            if one.given < FEW:
                shown = "–" if not one.given else f"({one.covered * one.given:.0f} of {one.given})"
                below = "–" if not one.given else f"({one.below * one.given:.0f} of {one.given})"
            width = "–" if not one.given else f"{100 * one.width:.1f}%"
            rows.append([
                name, f"{n:,}", f"{one.truth:.2f}", f"{n / one.truth:.1f}", f"{100 * one.plugin_bias:+.1f}%",
                f"{100 * one.bias:+.1f}%", f"{100 * one.refused:.0f}%", shown, below, width,
            ])  # fmt: skip
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    head = ["population", "n", "score", "n/score", "bias of samples", "of estimate", "refused", "covered"]
    head += ["too low", "width"]
    print(table(head, rows))
    print("\n" + total(found), flush=True)


def total(found: Sequence[Outcome]) -> str:
    """All intervals of a table together, and its lowest row."""
    some = [one for one in found if one.given]
    given = sum(one.given for one in some)
    if not given:
        return "No interval was given."
    covered, below = (sum(getattr(one, part) * one.given for one in some) for part in ("covered", "below"))
    rows = [one.covered for one in found if one.given >= FEW]
    words = f"Covered: {covered:,.0f} of {given:,} intervals, {covered / given:.3f}; too low: {below / given:.3f}."
    if rows:
        low = f"{sum(share < 0.9 for share in rows)} of {len(rows)} below 0.9"
        words += f" Rows of {FEW} intervals or more: {min(rows):.3f} to {max(rows):.3f}, {low}."
    return words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--q", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=list(DISTRIBUTIONS))
    given = parser.parse_args()
    print(f"Intervals of vm.rarefy for the population, q = {given.q:g}, nominal 95%, {given.runs} runs a row")
    with ProcessPoolExecutor() as pool:
        for title, held_out in (("The rules were chosen on these", False), ("Held out", True)):
            names = [name for name in given.only if (name in HELD_OUT) == held_out]
            if names:
                print(f"\n{title}\n")
                populations(given.runs, given.q, names, pool)


if __name__ == "__main__":
    main()
