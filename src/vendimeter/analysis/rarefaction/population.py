"""The score of the population that samples were drawn from: the delete-group jackknife, and an interval or its refusal.

The entropy Ŝ = log VS_q of n items drawn from a population lies below that of the population, by about b/n. Without the
group of m_j items at a time it is Ŝ_(j), and gŜ − Σ (1 − m_j/n) Ŝ_(j) is free of the term b/n: the jackknife estimate
(with groups of different sizes: Busing, Meijer and van der Leeden, Delete-m jackknife for unequal m, 1999). Its
pseudo-values h_j Ŝ − (h_j − 1) Ŝ_(j), h_j = n/m_j, scatter about it, and their scatter gives its variance V.

To second order, Ŝ is a mean over the groups, and a mean over pairs of groups. V counts the pairs twice (Efron and
Stein: The jackknife estimate of variance, 1981), which doubles it where a population has no first order: one whose
modes are equally common. The variance of the pairs is estimated from halvings. Ŝ less the mean of the two halves of a
random halving is Σ ±φ_jk over pairs of groups, with the signs that the halving gives them, and a constant: its variance
over halvings is that of the pairs, P, and is taken off V. It is itself noisy, so that at most a third of V is.

Where the pairs matter and come of few directions, as in a population of two or three equally common modes, the error is
as skewed as χ² with k = 2 bias²/P degrees of freedom (which has this mean and variance), and an interval of normal
errors too short: 2/k of P is added again, (P/bias)².

The halvings are those of a Hadamard matrix (balanced repeated replication: McCarthy, 1969), in which any two groups are
as often together as they can be, and four quarters come of any two halvings. All pairs cancel in the mean over them:
what Ŝ gains by the last doubling of n, and by the one before, is free of noise to second order. If it gains D₁ and D₂,
its bias falls as n^−α with 2^α = D₂/D₁; and where α < 1, the jackknife, which knows 1/n alone, leaves a bias of
(1/α − 1) times what it has corrected.

The rules by which an interval is refused, and what each is for, are measured in
``benchmarks/calibration/populations.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vendimeter.analysis.rarefaction.jackknife_groups import Split, Subset, SubsetSpectrum, deal_groups
from vendimeter.errors import InputError
from vendimeter.present.notes import Advice, Audience, Note
from vendimeter.present.numbers import format_confidence, format_number, format_percent, short_number
from vendimeter.present.plain import plain_order
from vendimeter.results.base import Figure
from vendimeter.similarity import Similarity
from vendimeter.spectrum import hill

__all__ = [
    "GROUPS",
    "Jackknife",
    "Population",
    "check_groups",
    "entropy",
    "estimate_population",
    "halvings",
    "jackknife",
    "jackknife_of_split",
    "no_estimate",
    "refusal_in_advance",
]

GROUPS = (8, 12, 20, 24, 32, 44, 48)  # numbers of groups with a Hadamard matrix of Paley's
# Lower bound of the fraction of the pseudo-values' variance that stays when that of the pairs is taken off.
MIN_VARIANCE_SHARE = 2 / 3
MIN_EXPONENT = 0.05  # of the bias, where the curve does not bend at all
MAX_ORDER = 3  # upper bound of the orders whose intervals were found to hold
MIN_PER_GROUP = 5  # samples in each group; with fewer, intervals are too short for populations of few modes
MIN_PER_MODE = 4  # samples for each effectively different item of the population
MAX_REMAINING = 0.75  # upper bound of the remaining bias, in standard errors


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
    refused : Note or None
        Why there is no interval. Its kind is "weights", "order", "too-few-samples", "too-few-per-item" (effectively
        different), "no-spread", "heavy-tail" or "uncertain-bias".
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
    refused: Note | None
    standard_error: float
    confidence: float
    n: int
    bias: float
    remaining: float

    @property
    def estimate(self) -> float:
        """The estimate as a plain float."""
        return float(self)

    def summary(self, audience: Audience = "python") -> str:
        """The estimate and its interval in a sentence, or why there is none."""
        if self.refused is not None:
            return f"No interval for the population: {self.refused.shown(audience)}"
        assert self.interval is not None
        low, high = self.interval
        return (
            f"The population has about {short_number(self)}, between {short_number(low)} and {short_number(high)} with "
            f"{format_confidence(self.confidence)} confidence."
        )


def no_estimate(reason: Note, confidence: float, n: int) -> Population:
    """A population without estimate, and the reason."""
    nan = math.nan
    return Population(nan, None, reason, nan, confidence, n, nan, nan)


def refusal_in_advance(q: float, n: int, groups: int) -> Note | None:
    """Why no interval would hold, as far as that is clear before anything is computed; None if it is not."""
    if q < 1:
        return Note(
            "order",
            f"the order {q:g} counts rare modes by their number, and samples do not tell how many there are that none "
            "of them has hit.",
            {"q": plain_order(q)},
            Advice("Take {} or more.", "q", "1"),
        )
    if q > MAX_ORDER:
        return Note(
            "order",
            f"the order {q:g} depends on the largest eigenvalues alone, and where these are nearly equal the bias of "
            "the largest one falls as slowly as its error.",
            {"q": plain_order(q)},
            Advice("Take {} or less.", "q", str(MAX_ORDER)),
        )
    needed = MIN_PER_GROUP * groups
    if n < needed:
        verb_and_count = "is 1 sample" if n == 1 else f"are {n:,} samples"
        return Note(
            "too-few-samples",
            f"there {verb_and_count}, and the error is told from {groups} groups of {MIN_PER_GROUP} or more.",
            {"n": n, "groups": groups, "needed": needed},
            Advice(f"Take {needed:,} samples or more."),
        )
    return None


def estimate_population(result: Jackknife, confidence: float, refused: Note | None) -> Population:
    """The estimate and the interval from the jackknife of the samples."""
    from scipy.special import stdtrit

    error, remaining = math.hypot(result.standard_error, result.skew_error), result.remaining
    margin = float(stdtrit(result.groups - 1, (1 + confidence) / 2)) * error
    refused = refused or _refusal(result)
    interval = None
    if refused is None:  # the entropy of a population is never below 0
        log_low_high = max(result.estimate - margin, 0.0), result.estimate + margin + remaining
        interval = math.exp(log_low_high[0]), math.exp(log_low_high[1])
    return Population(
        math.exp(result.estimate), interval, refused, error, confidence, result.n, result.bias, remaining
    )


def _refusal(result: Jackknife) -> Note | None:
    """Why the interval of a jackknife would not hold; None if it would."""
    n, error, score = result.n, result.standard_error, math.exp(result.estimate)
    if n < MIN_PER_MODE * score:
        needed = math.ceil(2 * MIN_PER_MODE * score)
        return Note(
            "too-few-per-item",
            f"the score still grows with n: {n:,} samples are fewer than {MIN_PER_MODE} for each of about "
            f"{format_number(score, 3)} effectively different items of the population.",
            {"n": n, "estimate": score, "needed": needed},
            Advice(f"Take {needed:,} samples or more."),
        )
    if error <= 1e-9:
        return Note(
            "no-spread",
            "the samples do not differ in a way that tells the error: all groups of them score the same. More samples "
            "may show what is rare.",
        )
    if result.remaining > MAX_REMAINING * error:
        last, previous = map(_growth, result.gains)
        return Note(
            "heavy-tail",
            "the score still grows with n, and its growth does not slow down enough: there are rare modes, or a heavy "
            f"tail. From a quarter to half of the samples it gains {format_percent(previous)}, and from half to all "
            f"of them {format_percent(last)}, where half of that was expected.",
            {"gain_to_half": previous, "gain_to_all": last},
            Advice("Take many more samples, or {}, for which rare modes count less.", "q", "2"),
        )
    if result.bias**2 > error:
        bias, error = _growth(result.bias), _growth(error)
        return Note(
            "uncertain-bias",
            f"the score of the samples lacks about {format_percent(bias)}, and what is unknown of that is not small "
            f"beside the error of {format_percent(error)}.",
            {"bias": bias, "error": error},
            Advice("Take twice as many samples."),
        )
    return None


def _growth(entropy: float) -> float:
    """By how much of itself a score grows with this much entropy."""
    return math.expm1(max(entropy, 0.0))


# ------------------------------------------------------------------------------------------------------------ jackknife


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
    skew_error : float
        What is added to it, in squares, to allow for the skewness of the error in an interval of normal errors.
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
    skew_error: float
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
        last, previous = self.gains
        if last <= 0:
            return 1.0
        return max(math.log2(previous / last), MIN_EXPONENT) if previous > 0 else MIN_EXPONENT

    @property
    def remaining(self) -> float:
        """What the estimate may still lack, because the bias falls more slowly than 1/n."""
        return max(self.bias, 0.0) * max(1 / self.exponent - 1, 0.0)

    def gain(self, doublings: float = 0.0) -> float:
        """What log VS_q would gain from twice as many samples, after so many doublings, if the gains go on as last."""
        return max(self.gains[0], 0.0) * 2 ** (-self.exponent * (1 + doublings))


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
    return jackknife_of_split(
        Split(similarity, deal_groups(Subset(items, counts), check_groups(groups), rng)), q
    )


def jackknife_of_split(split: Split, q: float, report: Callable[[float], None] | None = None) -> Jackknife:
    """The jackknife over the groups of a split; `report` is called with the fraction done."""
    n_groups = len(split.groups)
    all_groups = np.arange(n_groups)
    halves, quarters = halvings(n_groups)
    unions = [all_groups, *(np.delete(all_groups, j) for j in range(n_groups))]
    unions += [np.flatnonzero(half) for half in np.concatenate([*halves, *quarters])]
    cumulative_cost = np.cumsum([float(len(union)) ** 3 for union in unions])
    entropies = np.empty(len(unions))
    for i, spectrum in enumerate(split.spectra(unions)):
        entropies[i] = entropy(spectrum, q)
        if report is not None:
            report(cumulative_cost[i] / cumulative_cost[-1])
    plugin, left_out = float(entropies[0]), entropies[1 : 1 + n_groups]
    half_means = entropies[1 + n_groups : 1 + n_groups + 2 * (n_groups - 1)].reshape(-1, 2).mean(axis=1)
    quarter_entropies = entropies[1 + n_groups + 2 * (n_groups - 1) :]

    n = split.sizes.sum()
    weight = n / split.sizes - 1  # h − 1
    pseudo = (weight + 1) * plugin - weight * left_out
    estimate = float(n_groups * plugin - np.sum((1 - split.sizes / n) * left_out))
    variance = float(np.mean((pseudo - estimate) ** 2 / weight))
    pair_variance = float(np.var(half_means, ddof=1)) * (n_groups / (n_groups - 1)) ** 2
    variance = max(variance - pair_variance, MIN_VARIANCE_SHARE * variance)
    skew_error = pair_variance / (estimate - plugin) if estimate > plugin else 0.0
    gains = (float(plugin - half_means.mean()), float(half_means.mean() - quarter_entropies.mean()))
    return Jackknife(
        plugin, estimate, math.sqrt(variance), skew_error, n_groups, left_out, split.sizes, gains
    )


def check_groups(groups: int) -> int:
    """Refuse numbers of groups for which there are no balanced halvings."""
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
    is_square = np.isin(np.arange(prime), np.arange(1, prime) ** 2 % prime)
    shifts = (np.arange(prime)[None, :] - np.arange(prime)[:, None]) % prime
    first_halves = np.concatenate([is_square[shifts], np.ones((prime, 1), dtype=bool)], axis=1)
    halves = np.stack([first_halves, ~first_halves], axis=1)
    next_halves = np.roll(halves, -1, axis=0)
    quarters = halves[:, :, None, :] & next_halves[:, None, :, :]
    return halves, quarters.reshape(prime, 4, groups)


def entropy(spectrum: SubsetSpectrum, q: float) -> float:
    """The logarithm of VS_q."""
    return float(np.log(hill(spectrum.eigenvalues, q, zero_below=2 * spectrum.error)))
