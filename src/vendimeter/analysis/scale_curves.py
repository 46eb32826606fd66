"""The score as a function of the scale of a distance kernel, and the scale that this curve suggests."""

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

GRID_SIZE = 28  # scales of the default grid
DIRECT_WIDTH = 1024  # columns up to which differences are taken directly; products of matrices beyond
LOW, HIGH = 1.1, 0.9  # a score is informative from this up, and up to this part of the highest
# The default grid reaches down to this entropy, and up to this share of the highest score.
LEAST_ENTROPY, MOST_DISTINCT = 0.05, 0.98
EQUAL_DISTANCES = 0.01  # relative spread up to which all distances count as equal
PLATEAU_RATIO = 0.5  # a plateau is at most half as steep as the curve somewhere on both sides of it
# Most powers of two on either side of the median in the search for the ends of the grid.
MOST_DOUBLINGS = 80.0


def distances(rows: np.ndarray, metric: Literal["euclidean", "cityblock"]) -> np.ndarray:
    """Compute the matrix of distances between distinct rows."""
    from scipy.spatial.distance import pdist, squareform

    rows = np.asarray(rows, dtype=np.float64)
    largest = float(np.abs(rows).max(initial=0.0))
    # Multiplying by a power of two is exact, and squares cannot overflow after it.
    unit = math.ldexp(1.0, min(-math.frexp(largest)[1], 1000)) if largest else 1.0
    rows = rows * unit
    if metric == "cityblock" or rows.shape[1] <= DIRECT_WIDTH:
        return _unscale(squareform(pdist(rows, metric)), unit)
    rows = rows - rows.mean(axis=0)
    squares = rows @ rows.T
    norms = np.diagonal(squares).copy()
    squares *= -2
    squares += norms[:, None]
    squares += norms
    np.fill_diagonal(squares, 0.0)
    return _unscale(np.sqrt(np.maximum(squares, 0.0)), unit)


def _unscale(scaled: np.ndarray, unit: float) -> np.ndarray:
    """Divide scaled distances by their unit, and refuse those that overflow."""
    if not float(scaled.max(initial=0.0)) < sys.float_info.max * unit:
        raise InputError(
            "items lie farther apart than a float64 can say, beyond 1.8e308; expected smaller numbers. Divide them by "
            "a constant: scales are divided by it, too."
        )
    return scaled / unit


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
        """Compute the similarities at a scale."""
        with np.errstate(over="ignore"):
            ratios = self.distances / scale
            if self.power == 2:
                ratios *= ratios
                ratios *= 0.5
        np.negative(ratios, out=ratios)
        return np.exp(ratios, out=ratios)

    @property
    def pair_distances(self) -> np.ndarray:
        """The distances of all pairs of items, each once."""
        return self.distances[np.triu_indices(len(self.distances), 1)]

    def contrast(self, scale: float) -> float:
        """The variance of the similarity of two items that are drawn at random and differ."""
        k, weights = self.kernel(scale), self.weights
        pairs = np.outer(weights, weights)
        np.fill_diagonal(pairs, 0.0)
        total = pairs.sum()
        mean = float(np.sum(pairs * k) / total)
        return float(np.sum(pairs * (k - mean) ** 2) / total)

    def entropy_bound(self, scale: float) -> float:
        """An upper bound on the entropy: with λ₁ ≥ Σ p p k = 1 − ε it is at most h(ε) + ε log (n − 1)."""
        remainder = 1 - float(self.weights @ self.kernel(scale) @ self.weights)
        remainder = min(max(remainder, 0.0), 0.5)
        if remainder == 0:
            return 0.0
        binary_entropy = -remainder * math.log(remainder) - (1 - remainder) * math.log1p(-remainder)
        return binary_entropy + remainder * math.log(max(len(self.weights) - 1, 1))

    def purity(self, scale: float) -> float:
        """The purity Σ p p k²: its inverse is the score of order 2, a lower bound on the score."""
        k = self.kernel(scale)
        return float(self.weights @ (k * k) @ self.weights)


def default_scales(curve: Curve) -> np.ndarray:
    """A geometric grid, from where nearly all items count as different to where nearly all count as one."""
    median = float(np.median(curve.pair_distances))
    separate = float(curve.weights @ curve.weights)  # the purity at a scale of 0
    low = _least_power(lambda power: curve.purity(median * 2.0**-power) * MOST_DISTINCT <= separate)
    high = _least_power(lambda power: curve.entropy_bound(median * 2.0**power) <= LEAST_ENTROPY)
    return np.geomspace(median * 2.0**-low, median * 2.0**high, GRID_SIZE)


def _least_power(is_reached: Callable[[float], bool]) -> float:
    """The least power of two, to a quarter, at which a monotone condition holds, by bisection."""
    power = 0.25
    while not is_reached(power) and power < MOST_DOUBLINGS:
        power *= 2
    low = power / 2
    while power - low > 0.25:
        middle = (low + power) / 2
        low, power = (low, middle) if is_reached(middle) else (middle, power)
    return power


# ------------------------------------------------------------------------------------------------------- the suggestion


def sensitivity(scales: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The slope d log score / d log scale, by central differences; NaN for a single scale."""
    if len(scales) < 2:
        return np.full(len(scales), math.nan)
    return np.gradient(np.log(scores), np.log(scales))


def informative_range(scales: np.ndarray, scores: np.ndarray, highest: float) -> tuple[float, float]:
    """The scales between which the score is neither nearly the highest nor nearly 1; NaN where there are none."""
    informative = np.flatnonzero((scores >= LOW) & (scores <= HIGH * highest))
    if not len(informative):
        return math.nan, math.nan
    first, last = int(informative[0]), int(informative[-1])
    low, high = float(scales[first]), float(scales[last])
    if first > 0:
        low = _crossing(scales, scores, first - 1, HIGH * highest)
    if last < len(scales) - 1:
        high = _crossing(scales, scores, last, LOW)
    return low, high


def _crossing(scales: np.ndarray, scores: np.ndarray, i: int, level: float) -> float:
    """The scale between two neighbours at which the score crosses a level, interpolated on logarithmic axes."""
    x, y = np.log(scales[i : i + 2]), np.log(scores[i : i + 2])
    fraction = (math.log(level) - y[0]) / (y[1] - y[0]) if y[1] != y[0] else 0.0
    return float(np.exp(x[0] + min(max(fraction, 0.0), 1.0) * (x[1] - x[0])))


@dataclass(frozen=True)
class Suggestion:
    """A suggested scale with the rule that led to it, or the reason why there is none.

    Attributes
    ----------
    scale : float
        NaN where there is none.
    rule : str
        "plateau", "contrast", "alike" (all distances are equal), "saturated" (no score is informative), "identical".
    ends : tuple of float
        Of the plateau.
    value : float
        The sensitivity on the plateau, or the standard deviation of similarities.
    """

    scale: float
    rule: str
    ends: tuple[float, float] = (math.nan, math.nan)
    value: float = math.nan


def suggest(curve: Curve, scales: np.ndarray, scores: np.ndarray, highest: float) -> Suggestion:
    """Where the score changes least, on a plateau; without one, where similarities differ most."""
    informative = np.flatnonzero((scores >= LOW) & (scores <= HIGH * highest))
    if not len(informative):
        return Suggestion(math.nan, "saturated")
    pair_distances = curve.pair_distances
    if np.subtract(*np.quantile(pair_distances, [0.99, 0.01])) <= EQUAL_DISTANCES * np.median(pair_distances):
        return Suggestion(math.nan, "alike")
    steepness = -sensitivity(scales, scores)
    plateau = _plateau(scales, steepness, informative)
    if plateau is not None:
        first, last = plateau
        flattest = first + int(np.argmin(steepness[first : last + 1]))
        scale = _vertex(np.log(scales[flattest - 1 : flattest + 2]), steepness[flattest - 1 : flattest + 2])
        ends = float(scales[first]), float(scales[last])
        return Suggestion(scale, "plateau", ends, -float(steepness[flattest]))
    contrasts = np.array([curve.contrast(float(scale)) for scale in scales[informative]])
    top = int(np.argmax(contrasts))
    scale = float(scales[informative[top]])
    if 0 < top < len(informative) - 1:
        neighbours = slice(top - 1, top + 2)
        scale = _vertex(np.log(scales[informative[neighbours]]), -contrasts[neighbours])
    return Suggestion(scale, "contrast", value=math.sqrt(curve.contrast(scale)))


def _vertex(x: np.ndarray, y: np.ndarray) -> float:
    """The scale at the vertex of the parabola through three points, between the outer two: finer than the grid."""
    low, high = np.diff(y) / np.diff(x)
    bend = (high - low) / (x[2] - x[0])
    if not bend > 0:
        return float(np.exp(x[1]))
    lowest = (x[0] + x[1]) / 2 - low / (2 * bend)
    return float(np.exp(min(max(lowest, x[0]), x[2])))


def _plateau(scales: np.ndarray, steepness: np.ndarray, informative: np.ndarray) -> tuple[int, int] | None:
    """The first and last scale of the widest plateau: the score falls slowly, and twice as fast on both sides."""
    plateaus: list[tuple[float, int, int]] = []
    candidates = {*informative.tolist()} & {*range(1, len(scales) - 1)}
    for i in candidates:
        threshold = PLATEAU_RATIO * min(steepness[:i].max(), steepness[i + 1 :].max())
        if steepness[i] > threshold:
            continue
        first = last = i
        while first - 1 in candidates and steepness[first - 1] <= threshold:
            first -= 1
        while last + 1 in candidates and steepness[last + 1] <= threshold:
            last += 1
        plateaus.append((math.log(scales[last] / scales[first]), first, last))
    return max(plateaus)[1:] if plateaus else None
