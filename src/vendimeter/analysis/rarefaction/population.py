"""What a sample says of its population: an estimate, an interval, or the reason why there is none.

The rules by which an interval is refused, and what each is for, are measured in ``benchmarks/calibration.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vendimeter.analysis.rarefaction.jackknife_groups import Part, Split, Values, deal
from vendimeter.errors import InputError
from vendimeter.results.base import Figure
from vendimeter.results.score import number, percentage
from vendimeter.similarity import Similarity
from vendimeter.spectrum import hill

__all__ = [
    "GROUPS",
    "Jackknife",
    "Population",
    "check_groups",
    "entropy",
    "halvings",
    "jackknife",
    "of_split",
    "population_of",
    "refusal_beforehand",
    "without",
]


# ----------------------------------------------------------------------------------------------------------- jackknife

# The delete-group jackknife of log VS_q: the bias of a finite sample, its standard error, and how fast it falls.
#
# The entropy Ŝ of n items drawn from a population lies below that of the population, by about b/n. Without the group of
# m_j items at a time it is Ŝ_(j), and gŜ − Σ (1 − m_j/n) Ŝ_(j) is free of the term b/n: the jackknife estimate (with
# groups of different sizes: Busing, Meijer and van der Leeden, Delete-m jackknife for unequal m, 1999). Its pseudo-
# values
# h_j Ŝ − (h_j − 1) Ŝ_(j), h_j = n/m_j, scatter about it, and their scatter gives its variance V.
#
# To second order, Ŝ is a mean over the groups, and a mean over pairs of groups. V counts the pairs twice (Efron and
# Stein: The jackknife estimate of variance, 1981), which doubles it where a population has no first order: one whose
# modes are equally common. What the pairs vary by is seen in halves. Ŝ less the mean of the two halves of a random
# halving is Σ ±φ_jk over pairs of groups, with the signs that the halving gives them, and a constant: its variance over
# halvings is that of the pairs, P, and is taken off V. It is itself noisy, so that at most a third of V is.
#
# Where the pairs matter and come of few directions, as in a population of two or three equally common modes, the error
# is
# as lopsided as χ² with k = 2 bias²/P degrees of freedom (which has this mean and variance), and an interval of normal
# errors too short: 2/k of P is added again, (P/bias)².
#
# The halvings are those of a Hadamard matrix (balanced repeated replication: McCarthy, 1969), in which any two groups
# are
# as often together as they can be, and four quarters come of any two halvings. All pairs cancel in the mean over them:
# what Ŝ gains by the last doubling of n, and by the one before, is free of noise to second order. If it gains D₁ and
# D₂,
# its bias falls as n^−α with 2^α = D₂/D₁; and where α < 1, the jackknife, which knows 1/n alone, leaves a bias of
# (1/α − 1) times what it has corrected.

GROUPS = (8, 12, 20, 24, 32, 44, 48)  # numbers of groups with a Hadamard matrix of Paley's
LEAST_SHARE = 2 / 3  # of the variance of the pseudo-values that stays, whatever is taken off for pairs
SLOWEST = 0.05  # the lowest exponent: a curve that does not bend at all has none


@dataclass(frozen=True)
class Jackknife:
    """The entropy of a collection without its bias, by leaving out a group of items at a time.

    Attributes
    ----------
    plugin : float
        log VS_q of the collection.
    estimate : float
        The same without the part of its bias that falls as 1/n: log VS_q of the population.
    standard_error : float
        Of the estimate, with `groups` − 1 degrees of freedom.
    lopsided : float
        What is to be added to it, in squares, for an interval that takes the error for a normal one.
    groups : int
        How many groups.
    left_out : ndarray, shape (groups,)
        log VS_q without each group.
    sizes : ndarray, shape (groups,)
        Items in each group, copies counted.
    gains : tuple of float
        What log VS_q gains, in the mean, from half of the items to all of them, and from a quarter to half.
    """

    plugin: float
    estimate: float
    standard_error: float
    lopsided: float
    groups: int
    left_out: np.ndarray
    sizes: np.ndarray
    gains: tuple[float, float]

    @property
    def n(self) -> int:
        """How many items there are, copies counted."""
        return int(self.sizes.sum())

    @property
    def bias(self) -> float:
        """What the entropy of the collection lacks, by this estimate."""
        return self.estimate - self.plugin

    @property
    def exponent(self) -> float:
        """The α of a bias that falls as n^−α; 1 where there is no gain, and so no bias to speak of."""
        last, before = self.gains
        if last <= 0:
            return 1.0
        return max(math.log2(before / last), SLOWEST) if before > 0 else SLOWEST

    @property
    def remaining(self) -> float:
        """What the estimate may still lack, because the bias falls more slowly than 1/n."""
        return max(self.bias, 0.0) * max(1 / self.exponent - 1, 0.0)

    def gain(self, doublings: float = 0.0) -> float:
        """What log VS_q would gain from twice as many samples, after so many doublings, if the gains go on as last."""
        return max(self.gains[0], 0.0) * 2 ** (-self.exponent * (1 + doublings))


def entropy(values: Values, q: float) -> float:
    """The logarithm of VS_q."""
    return float(np.log(hill(values.eigenvalues, q, zero_below=2 * values.error)))


def jackknife(
    similarity: Similarity,
    items: np.ndarray,
    q: float,
    *,
    counts: np.ndarray | None = None,
    groups: int = 20,
    rng: np.random.Generator,
) -> Jackknife:
    """The delete-group jackknife of log VS_q over some items of a collection.

    Parameters
    ----------
    similarity : Similarity
        Of all items of the collection. One that takes a matrix of more than 8,192 items is a `TooLargeError`.
    items : ndarray
        Positions of the items, each at most once.
    q : float
        The order.
    counts : ndarray, optional
        How many copies of each of these items there are. Copies are samples of their own: those of one item are spread
        over the groups at random.
    groups : int
        How many groups, one of `GROUPS`; there must be as many items.
    rng : numpy.random.Generator
        Deals the items out.

    Examples
    --------
    >>> import numpy as np
    >>> from vendimeter.similarity import FeatureRows, Features
    >>> rng = np.random.default_rng(0)
    >>> rows = np.eye(10)[rng.integers(10, size=500)]
    >>> found = jackknife(FeatureRows(rows), np.arange(500), 1.0, rng=rng)
    >>> bool(found.plugin < found.estimate), round(float(np.exp(found.estimate)), 2)
    (True, 9.99)
    """
    return of_split(Split(similarity, deal(Part(items, counts), check_groups(groups), rng)), q)


def of_split(split: Split, q: float, report: Callable[[float], None] | None = None) -> Jackknife:
    """The jackknife over the groups of a collection that is dealt out already; `report` is told how far it is."""
    g = len(split.parts)
    every = np.arange(g)
    halves, quarters = halvings(g)
    unions = [every, *(np.delete(every, j) for j in range(g))]
    unions += [np.flatnonzero(half) for half in np.concatenate([*halves, *quarters])]
    done = np.cumsum([float(len(union)) ** 3 for union in unions])
    found = np.empty(len(unions))
    for i, values in enumerate(split.spectra(unions)):
        found[i] = entropy(values, q)
        if report is not None:
            report(done[i] / done[-1])
    plugin, left_out = float(found[0]), found[1 : 1 + g]
    half = found[1 + g : 1 + g + 2 * (g - 1)].reshape(-1, 2).mean(axis=1)
    quarter = found[1 + g + 2 * (g - 1) :]

    n = split.sizes.sum()
    weight = n / split.sizes - 1  # h − 1
    pseudo = (weight + 1) * plugin - weight * left_out
    estimate = float(g * plugin - np.sum((1 - split.sizes / n) * left_out))
    variance = float(np.mean((pseudo - estimate) ** 2 / weight))
    pairs = float(np.var(half, ddof=1)) * (g / (g - 1)) ** 2
    variance = max(variance - pairs, LEAST_SHARE * variance)
    lopsided = pairs / (estimate - plugin) if estimate > plugin else 0.0
    gains = (float(plugin - half.mean()), float(half.mean() - quarter.mean()))
    return Jackknife(plugin, estimate, math.sqrt(variance), lopsided, g, left_out, split.sizes, gains)


def check_groups(groups: int) -> int:
    """A number of groups for which there are balanced halvings."""
    if groups not in GROUPS:
        raise InputError(
            f"groups={groups}; expected one of {', '.join(map(str, GROUPS))}, which can be halved in a balanced way."
        )
    return groups


def halvings(groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Balanced halves of the groups, and quarters of them, by Paley's Hadamard matrix.

    Returns
    -------
    halves : ndarray of bool, shape (groups − 1, 2, groups)
        Which groups are in the two halves of each halving.
    quarters : ndarray of bool, shape (groups − 1, 4, groups)
        The halves, cut in two by the next halving.

    Examples
    --------
    >>> halves, quarters = halvings(20)
    >>> int(halves.sum(axis=2).min()), int(quarters.sum(axis=2).min())
    (10, 5)
    """
    prime = groups - 1
    square = np.isin(np.arange(prime), np.arange(1, prime) ** 2 % prime)
    turned = (np.arange(prime)[None, :] - np.arange(prime)[:, None]) % prime
    first = np.concatenate([square[turned], np.ones((prime, 1), dtype=bool)], axis=1)
    halves = np.stack([first, ~first], axis=1)
    following = np.roll(halves, -1, axis=0)
    quarters = halves[:, :, None, :] & following[:, None, :, :]
    return halves, quarters.reshape(prime, 4, groups)


# ---------------------------------------------------------------------------------------------- rarefaction population

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
