"""What a sample says of its population: an estimate, an interval, or the reason why there is none.

The rules by which an interval is refused, and what each is for, are measured in ``benchmarks/calibration.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vendimeter.analysis._jackknife import Jackknife
from vendimeter.results.base import Figure
from vendimeter.results.score import number, percentage

__all__ = ["Population", "population_of", "refusal_beforehand", "without"]

HIGHEST = 3  # the order up to which intervals were found to hold
PER_GROUP = 5  # samples in each group: with fewer, intervals of populations of few modes are too short
PER_MODE = 4  # samples for each effectively different item of the population
REMAINING = 0.75  # standard errors that the estimate may still lack, by which the interval is then longer


@dataclass(frozen=True, repr=False, eq=False)
class Population(Figure):
    """The score of the population that the samples were drawn from, as far as they tell: a float, the estimate.

    Attributes
    ----------
    value : float
        The estimate: the score of the samples, corrected for what it lacks because they are finitely many. NaN where
        nothing was estimated. Without an interval it is no more than a guess, and mostly too low.
    interval : tuple of float or None
        (low, high), an interval that contains the score of the population with `confidence`; None where it is refused.
    refused : str or None
        Why there is no interval.
    standard_error : float
        Of the logarithm of the estimate.
    confidence : float
        Of the interval.
    n : int
        How many samples it comes of.
    bias : float
        The logarithm of the estimate less that of the score of the samples.
    remaining : float
        What the logarithm of the estimate may still lack, because the bias falls more slowly than 1/n. The upper end of
        the interval is raised by it.
    """

    value: float
    interval: tuple[float, float] | None
    refused: str | None
    standard_error: float
    confidence: float
    n: int
    bias: float
    remaining: float

    @property
    def estimate(self) -> float:
        """The estimate as a plain float."""
        return float(self)

    def summary(self) -> str:
        """The estimate and its interval in a sentence, or why there is none."""
        if self.interval is None:
            return f"No interval for the population: {self.refused}"
        low, high = self.interval
        return (
            f"The population has about {number(self)}, between {number(low)} and {number(high)} with "
            f"{percentage(self.confidence)} confidence."
        )


def without(reason: str, confidence: float, n: int) -> Population:
    """Nothing is estimated, for a reason."""
    nan = math.nan
    return Population(nan, None, reason, nan, confidence, n, nan, nan)


def refusal_beforehand(q: float, n: int, groups: int) -> str | None:
    """Why no interval would hold, before anything is computed."""
    if q < 1:
        return (
            f"the order {q:g} counts rare modes by their number, and samples do not tell how many there are that none "
            "of them has hit. Take q=1 or more."
        )
    if q > HIGHEST:
        return (
            f"the order {q:g} depends on the largest eigenvalues alone, and where these are nearly equal the bias of "
            f"the largest one falls as slowly as its error. Take q={HIGHEST} or less."
        )
    if n < PER_GROUP * groups:
        there = "is 1 sample" if n == 1 else f"are {n:,} samples"
        return (
            f"there {there}, and the error is told from {groups} groups of {PER_GROUP} or more. Take "
            f"{PER_GROUP * groups:,} samples or more."
        )
    return None


def population_of(found: Jackknife, confidence: float, refused: str | None) -> Population:
    """The population by the jackknife of its samples."""
    from scipy.special import stdtrit

    error, remaining = math.hypot(found.standard_error, found.lopsided), found.remaining
    reach = float(stdtrit(found.groups - 1, (1 + confidence) / 2)) * error
    refused = refused or _refusal(found)
    interval = None
    if refused is None:  # the entropy of a population is never below 0
        ends = max(found.estimate - reach, 0.0), found.estimate + reach + remaining
        interval = math.exp(ends[0]), math.exp(ends[1])
    return Population(
        math.exp(found.estimate), interval, refused, error, confidence, found.n, found.bias, remaining
    )


def _refusal(found: Jackknife) -> str | None:
    """Why the interval of a jackknife would not hold."""
    n, error, score = found.n, found.standard_error, math.exp(found.estimate)
    if n < PER_MODE * score:
        return (
            f"the score still grows with n: {n:,} samples are fewer than {PER_MODE} for each of about {score:,.3g} "
            f"effectively different items of the population. Take {math.ceil(2 * PER_MODE * score):,} samples or more."
        )
    if error <= 1e-9:
        return (
            "the samples do not differ in a way that tells the error: all groups of them score the same. More samples "
            "may show what is rare."
        )
    if found.remaining > REMAINING * error:
        return (
            "the score still grows with n, and its growth does not slow down enough: there are rare modes, or a heavy "
            f"tail. From a quarter to half of the samples it gains {_percent(found.gains[1])}, and from half to all of "
            f"them {_percent(found.gains[0])}, where half of that was expected. Take many more samples, or q=2, for "
            "which rare modes count less."
        )
    if found.bias**2 > error:
        return (
            f"the score of the samples lacks about {_percent(found.bias)}, and what is unknown of that is not small "
            f"beside the error of {_percent(error)}. Take twice as many samples."
        )
    return None


def _percent(entropy: float) -> str:
    return f"{100 * math.expm1(max(entropy, 0.0)):.2g}%"
