"""The score as a function of the scale of a kernel of distances, and what scale it suggests."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vendimeter.errors import InputError

__all__ = [
    "Curve",
    "Suggestion",
    "default_scales",
    "distances",
    "informative_range",
    "sensitivity",
    "suggest",
]

POINTS = 28  # scales of the default grid
DIRECT_WIDTH = 1024  # columns up to which differences are taken one by one; products of matrices beyond
LOW, HIGH = 1.1, 0.9  # a score is informative from this up, and up to this part of the highest
NEAR_ONE, NEAR_ALL = (
    0.05,
    0.98,
)  # the default grid reaches an entropy of the first, and this part of the highest score
ALIKE = 0.01  # distances that differ by no more than this part are alike
DIP = 0.5  # a plateau changes at most half as fast as what lies on both sides of it
WIDEST = 80.0  # powers of two on either side of the median, at most, in the search for the ends of the grid


def distances(rows: np.ndarray, metric: Literal["euclidean", "cityblock"]) -> np.ndarray:
    """All distances of rows that differ."""
    from scipy.spatial.distance import pdist, squareform

    rows = np.asarray(rows, dtype=np.float64)
    largest = float(np.abs(rows).max(initial=0.0))
    # Multiplying by a power of two is exact, and squares cannot overflow after it.
    unit = math.ldexp(1.0, min(-math.frexp(largest)[1], 1000)) if largest else 1.0
    rows = rows * unit
    if metric == "cityblock" or rows.shape[1] <= DIRECT_WIDTH:
        return _in_units(squareform(pdist(rows, metric)), unit)
    rows = rows - rows.mean(axis=0)
    squares = rows @ rows.T
    own = np.diagonal(squares).copy()
    squares *= -2
    squares += own[:, None]
    squares += own
    np.fill_diagonal(squares, 0.0)
    return _in_units(np.sqrt(np.maximum(squares, 0.0)), unit)


def _in_units(found: np.ndarray, unit: float) -> np.ndarray:
    if not float(found.max(initial=0.0)) < sys.float_info.max * unit:
        raise InputError(
            "items lie farther apart than a float64 can say, beyond 1.8e308; expected smaller numbers. Divide them by "
            "a constant: scales are divided by it, too."
        )
    return found / unit


@dataclass(frozen=True)
class Curve:
    """Distances of items that differ, their weights, and the kernel as a function of distance and scale.

    Attributes
    ----------
    distances : ndarray, shape (n, n)
        Of the items.
    weights : ndarray, shape (n,)
        Their probabilities.
    power : int
        2 for k = exp(−(d/s)²/2), 1 for k = exp(−d/s).
    """

    distances: np.ndarray
    weights: np.ndarray
    power: int

    def kernel(self, scale: float) -> np.ndarray:
        """The similarities at a scale."""
        with np.errstate(over="ignore"):
            ratios = self.distances / scale
            if self.power == 2:
                ratios *= ratios
                ratios *= 0.5
        np.negative(ratios, out=ratios)
        return np.exp(ratios, out=ratios)

    @property
    def apart(self) -> np.ndarray:
        """The distances of different items, each once."""
        return self.distances[np.triu_indices(len(self.distances), 1)]

    def contrast(self, scale: float) -> float:
        """The variance of the similarity of two items that are drawn at random and differ."""
        k, weights = self.kernel(scale), self.weights
        pairs = np.outer(weights, weights)
        np.fill_diagonal(pairs, 0.0)
        total = pairs.sum()
        mean = float(np.sum(pairs * k) / total)
        return float(np.sum(pairs * (k - mean) ** 2) / total)

    def mixed(self, scale: float) -> float:
        """A bound on the entropy from above: with λ₁ ≥ Σ p p k = 1 − ε it is at most h(ε) + ε log (n − 1)."""
        rest = 1 - float(self.weights @ self.kernel(scale) @ self.weights)
        rest = min(max(rest, 0.0), 0.5)
        if rest == 0:
            return 0.0
        own = -rest * math.log(rest) - (1 - rest) * math.log1p(-rest)
        return own + rest * math.log(max(len(self.weights) - 1, 1))

    def purity(self, scale: float) -> float:
        """Σ p p k², which is 1 over the score of order 2: a bound on the score from below."""
        k = self.kernel(scale)
        return float(self.weights @ (k * k) @ self.weights)


def default_scales(curve: Curve) -> np.ndarray:
    """A geometric grid, from where nearly all items count as different to where nearly all count as one."""
    middle = float(np.median(curve.apart))
    separate = float(curve.weights @ curve.weights)  # the purity at a scale of 0
    low = _end(lambda power: curve.purity(middle * 2.0**-power) * NEAR_ALL <= separate)
    high = _end(lambda power: curve.mixed(middle * 2.0**power) <= NEAR_ONE)
    return np.geomspace(middle * 2.0**-low, middle * 2.0**high, POINTS)


def _end(reached: Callable[[float], bool]) -> float:
    """The least power of two, to a quarter, at which something is reached."""
    power = 0.25
    while not reached(power) and power < WIDEST:
        power *= 2
    low = power / 2
    while power - low > 0.25:
        middle = (low + power) / 2
        low, power = (low, middle) if reached(middle) else (middle, power)
    return power


# ---------------------------------------------------------------------------------------------------- what it suggests


def sensitivity(scales: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The slope d log score / d log scale, by central differences; NaN for a single scale."""
    if len(scales) < 2:
        return np.full(len(scales), math.nan)
    return np.gradient(np.log(scores), np.log(scales))


def informative_range(scales: np.ndarray, scores: np.ndarray, most: float) -> tuple[float, float]:
    """The scales between which the score is neither nearly the highest nor nearly 1; NaN where there are none."""
    inside = np.flatnonzero((scores >= LOW) & (scores <= HIGH * most))
    if not len(inside):
        return math.nan, math.nan
    first, last = int(inside[0]), int(inside[-1])
    low, high = float(scales[first]), float(scales[last])
    if first > 0:
        low = _crossing(scales, scores, first - 1, HIGH * most)
    if last < len(scales) - 1:
        high = _crossing(scales, scores, last, LOW)
    return low, high


def _crossing(scales: np.ndarray, scores: np.ndarray, i: int, level: float) -> float:
    """Where the score passes a level between a scale and the next, on logarithmic axes."""
    x, y = np.log(scales[i : i + 2]), np.log(scores[i : i + 2])
    part = (math.log(level) - y[0]) / (y[1] - y[0]) if y[1] != y[0] else 0.0
    return float(np.exp(x[0] + min(max(part, 0.0), 1.0) * (x[1] - x[0])))


@dataclass(frozen=True)
class Suggestion:
    """A scale, and why it: "plateau", "contrast", or the reason why there is none.

    Attributes
    ----------
    scale : float
        NaN where there is none.
    rule : str
        "plateau", "contrast", "alike" (all distances are), "saturated" (no score is informative).
    ends : tuple of float
        Of the plateau.
    value : float
        The sensitivity on the plateau, or the standard deviation of similarities.
    """

    scale: float
    rule: str
    ends: tuple[float, float] = (math.nan, math.nan)
    value: float = math.nan


def suggest(curve: Curve, scales: np.ndarray, scores: np.ndarray, most: float) -> Suggestion:
    """Where the score changes least, on a plateau; without one, where similarities differ most."""
    inside = np.flatnonzero((scores >= LOW) & (scores <= HIGH * most))
    if not len(inside):
        return Suggestion(math.nan, "saturated")
    apart = curve.apart
    if np.subtract(*np.quantile(apart, [0.99, 0.01])) <= ALIKE * np.median(apart):
        return Suggestion(math.nan, "alike")
    steepness = -sensitivity(scales, scores)
    plateau = _plateau(scales, steepness, inside)
    if plateau is not None:
        first, last = plateau
        flat = first + int(np.argmin(steepness[first : last + 1]))
        scale = _vertex(np.log(scales[flat - 1 : flat + 2]), steepness[flat - 1 : flat + 2])
        ends = float(scales[first]), float(scales[last])
        return Suggestion(scale, "plateau", ends, -float(steepness[flat]))
    contrasts = np.array([curve.contrast(float(scale)) for scale in scales[inside]])
    top = int(np.argmax(contrasts))
    scale = float(scales[inside[top]])
    if 0 < top < len(inside) - 1:
        near = slice(top - 1, top + 2)
        scale = _vertex(np.log(scales[inside[near]]), -contrasts[near])
    return Suggestion(scale, "contrast", value=math.sqrt(curve.contrast(scale)))


def _vertex(x: np.ndarray, y: np.ndarray) -> float:
    """Where a parabola through three points is lowest, between the outer two: the grid decides less that way."""
    low, high = np.diff(y) / np.diff(x)
    bend = (high - low) / (x[2] - x[0])
    if not bend > 0:
        return float(np.exp(x[1]))
    lowest = (x[0] + x[1]) / 2 - low / (2 * bend)
    return float(np.exp(min(max(lowest, x[0]), x[2])))


def _plateau(scales: np.ndarray, steepness: np.ndarray, inside: np.ndarray) -> tuple[int, int] | None:
    """The first and last scale of the widest part where the score falls slowly, and twice as fast on both sides."""
    found: list[tuple[float, int, int]] = []
    within = {*inside.tolist()} & {*range(1, len(scales) - 1)}
    for i in within:
        level = DIP * min(steepness[:i].max(), steepness[i + 1 :].max())
        if steepness[i] > level:
            continue
        first = last = i
        while first - 1 in within and steepness[first - 1] <= level:
            first -= 1
        while last + 1 in within and steepness[last + 1] <= level:
            last += 1
        found.append((math.log(scales[last] / scales[first]), first, last))
    return max(found)[1:] if found else None
