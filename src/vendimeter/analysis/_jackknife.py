"""The delete-group jackknife of log VS_q: the bias of a finite sample, its standard error, and how fast it falls.

The entropy Ŝ of n items drawn from a population lies below that of the population, by about b/n. Without the group of
m_j items at a time it is Ŝ_(j), and gŜ − Σ (1 − m_j/n) Ŝ_(j) is free of the term b/n: the jackknife estimate (with
groups of different sizes: Busing, Meijer and van der Leeden, Delete-m jackknife for unequal m, 1999). Its pseudo-values
h_j Ŝ − (h_j − 1) Ŝ_(j), h_j = n/m_j, scatter about it, and their scatter gives its variance V.

To second order, Ŝ is a mean over the groups, and a mean over pairs of groups. V counts the pairs twice (Efron and
Stein: The jackknife estimate of variance, 1981), which doubles it where a population has no first order: one whose
modes are equally common. What the pairs vary by is seen in halves. Ŝ less the mean of the two halves of a random
halving is Σ ±φ_jk over pairs of groups, with the signs that the halving gives them, and a constant: its variance over
halvings is that of the pairs, P, and is taken off V. It is itself noisy, so that at most a third of V is.

Where the pairs matter and come of few directions, as in a population of two or three equally common modes, the error is
as lopsided as χ² with k = 2 bias²/P degrees of freedom (which has this mean and variance), and an interval of normal
errors too short: 2/k of P is added again, (P/bias)².

The halvings are those of a Hadamard matrix (balanced repeated replication: McCarthy, 1969), in which any two groups are
as often together as they can be, and four quarters come of any two halvings. All pairs cancel in the mean over them:
what Ŝ gains by the last doubling of n, and by the one before, is free of noise to second order. If it gains D₁ and D₂,
its bias falls as n^−α with 2^α = D₂/D₁; and where α < 1, the jackknife, which knows 1/n alone, leaves a bias of
(1/α − 1) times what it has corrected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vendimeter.analysis._jackknife_groups import Part, Split, Values, deal
from vendimeter.errors import InputError
from vendimeter.similarity import Similarity
from vendimeter.spectrum import hill

__all__ = ["GROUPS", "Jackknife", "check_groups", "entropy", "halvings", "jackknife", "of_split"]

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
