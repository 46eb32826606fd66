"""What a rarefaction gives back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis._rarefaction_population import Population
from vendimeter.results.base import Result
from vendimeter.results.score import Score

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["Rarefaction"]

CONVERGED = 0.01  # growth by doubling the samples below which a score is called converged


@dataclass(frozen=True, repr=False, eq=False)
class Rarefaction(Result):
    """The score against the number of samples, from `vendimeter.rarefy`.

    Attributes
    ----------
    score : Score
        That of all samples, with its bounds.
    population : Population
        The score of the population: a float, with its `interval` or the reason why it is `refused`.
    growth : float
        By how much of itself the score would grow if twice as many samples were drawn: 0.02 is 2%. NaN where there are
        too few samples to say.
    verdict : str
        The same in words.
    sizes : ndarray
        Numbers of samples.
    scores : ndarray
        The mean score of random subsets of each size.
    low, high : ndarray
        The 5% and 95% quantiles of these scores: the spread of subsets of *these* samples. It is no confidence interval
        for anything.
    truncated : ndarray
        The mean t-truncated score of the same subsets.
    truncated_score : float
        That of all samples.
    t : int
        How many eigenvalues the truncated score keeps.
    q : float
        The order.
    n : int
        How many samples there are; with counts, their sum.
    used : int
        How many of them the curve and the population come of.
    repeats, groups : int
        Subsets of each size, and groups of the jackknife.
    notes : tuple of str
        What was done otherwise than asked for, and why.
    """

    score: Score
    population: Population
    growth: float
    sizes: np.ndarray
    scores: np.ndarray
    low: np.ndarray = field(repr=False)
    high: np.ndarray = field(repr=False)
    truncated: np.ndarray = field(repr=False)
    truncated_score: float
    t: int
    q: float
    n: int
    used: int
    repeats: int = field(repr=False)
    groups: int = field(repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def verdict(self) -> str:
        """Whether the score has converged, or by how much it would grow with twice as many samples."""
        if self.population.n == 0:
            return "the weights are a population themselves, and the score is its own"
        if math.isnan(self.growth):
            return "too few samples to say whether the score has converged"
        grows = f"by about {_percent(self.growth)} if twice as many samples were drawn"
        return f"converged: it would grow {grows}" if self.growth < CONVERGED else f"still grows {grows}"

    def summary(self) -> str:
        """The score, whether it has converged, and the population, in a few sentences."""
        lines = [f"{self.score.summary()}. The score: {self.verdict}.", self.population.summary()]
        return " ".join([*lines, *self.notes])

    def _columns(self) -> dict[str, Any]:
        return {
            "size": self.sizes,
            "score": self.scores,
            "low": self.low,
            "high": self.high,
            "truncated": self.truncated,
        }

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values ready for JSON (a missing number is None)."""
        return super().to_dict() | {
            "score": self.score.to_dict(),
            "population": self.population.to_dict(),
            "q": "inf" if math.isinf(self.q) else self.q,
            "verdict": self.verdict,
        }

    def plot(self, ax: Any = None) -> Display:
        """The curve with its band, and the population beside it; see `vendimeter.plots.rarefaction`."""
        from vendimeter.plots.rarefaction import curve

        return curve(self, ax)


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"
