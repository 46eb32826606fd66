"""How large a population is, from how often two samples of it are the same: the birthday paradox."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.analysis.near_copies.hashing import interval
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.options import COSINE, SEED, as_number, generator, whole_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import Figure
from vendimeter.similarity import Similarity
from vendimeter.solvers.edges import Entries, within

__all__ = ["BirthdayParadox", "birthday_paradox"]

LEAST_CONFIDENCE = 0.85  # below, a Poisson variable has the lighter lower tail


@dataclass(frozen=True, repr=False, eq=False)
class BirthdayParadox(Figure):
    """The effective number of items of a population by its collisions, and a bound on how many there are.

    Attributes
    ----------
    value : float
        1 over the probability p that two samples collide, as estimated; infinite where none do.
    low, high : float
        The interval of 1/p.
    support : int
        With this confidence the population has at least so many different items: a bound, not an estimate.
    confidence : float
        Of the interval, which has two sides, and of the bound, which has one.
    threshold : float
        The similarity from which on two samples collide.
    collisions, trials : int
        How many pairs collide, and how many there are; with `batch` how many batches have a collision, and of how many.
    n : int
        How many samples there are.
    batch : int or None
        The size of the batches.
    """

    value: float
    low: float
    high: float
    support: int
    confidence: float
    threshold: float
    collisions: int
    trials: int
    n: int
    batch: int | None = None

    @property
    def even_odds(self) -> float:
        """The size of a batch in which a collision is about as likely as none, where none of the items is frequent."""
        return (1 + math.sqrt(1 + 8 * math.log(2) * float(self))) / 2


def birthday_paradox(
    samples: Any,
    kernel: Any = COSINE,
    *,
    threshold: float,
    batch: int | None = None,
    confidence: float = 0.95,
    rng: int = SEED,
) -> BirthdayParadox:
    """How many different items a model can make, by the birthday paradox: from how often two samples are the same.

    Two samples collide where k(x, y) ≥ `threshold`. With p the probability that two samples drawn independently
    collide, 1/p is the effective number of items: N for N equally frequent ones, and the Hill number of order 2 of
    their probabilities in general. It is estimated by pairs / colliding pairs.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        Independent samples of one population, two or more, such as what a model generates; as for `vendimeter.score`.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`; "match" for equal ones.
    threshold : float
        The similarity from which on two samples collide, from −1 to 1; 1 for equal ones. It has no default, because
        what counts as the same depends on the kernel and the data: look at pairs near it.
    batch : int, optional
        The published test instead of all pairs: samples are shuffled and cut into disjoint batches of this size (a rest
        is left away), and batches with a collision are counted. The estimate is then s(s − 1)/2 / −log(1 − γ), with γ
        their share.
    confidence : float
        Of the interval of 1/p, and of the bound, from 0.85 up.
    rng : int
        Seed of the shuffle, and of what the kernel draws.

    Returns
    -------
    BirthdayParadox
        A float with `low`, `high`, `support`, `collisions`, `trials` and `even_odds`, the batch size at which a
        collision has a probability of one half.

    Notes
    -----
    What is a bound. A batch of s samples of a population of N items, however uneven, has a collision with a probability
    of at least 1 − exp(−s(s − 1)/2N), and the number of colliding pairs is smallest, in distribution, where all N are
    equally frequent (Rinott 1973). So few collisions show that N is large. `support` is pairs over the upper limit of
    the mean of a Poisson variable of which `collisions` was seen; the true law has the lighter lower tail, which errs
    to the safe side, from a confidence of 0.85 up. With `batch` it is s(s − 1)/2 over −log(1 − γ) at the upper limit of
    γ, by the binomial distribution of the batches. For a threshold below 1, N is the least number of groups of mutually
    similar items that cover all that the model makes.

    What is no bound. Many collisions do not show that N is small: one item of probability 0.1 makes p at least 0.01
    whatever else there is. They show that some items are frequent: one has probability p or more. That a batch size
    with even odds, s, means a support of at most about s² (0.72 s², in fact) takes all items for about equally
    frequent, as its authors say.

    The interval is of 1/p. From pairs it is that of a Poisson variable, widened by the variance that the number of
    colliding pairs has because pairs share samples. Intervals of 95 % held the truth in 90 to 100 % of draws of 30 to
    3,000 samples from uniform, exponential, geometric and Zipf populations, and `support` was below the true size in
    95 to 100 %. Only 80 % hold it where nearly all collisions are of one item that is met a few times, and 77 % where
    19 in 20 samples are one item and n is 30. With `batch` the interval is that of Clopper and Pearson for γ, exact,
    but wider, and one of 1/p only where items are about equally frequent (for Zipf's law and batches of 30 it missed
    four times in five) and many more than a batch holds: the estimate is too low by about s/3 items, and misses where
    there are enough batches to see that (1,000 batches of 10 from 50 equally frequent items: in 36 % of draws).
    `support` stays true. Where every batch collides there is no estimate, and 1 stands for it: take smaller batches.

    All this is about independent samples of one population. Where near copies were removed from a collection, the
    figure is too large; where items were repeated by hand, too small. All pairs are compared in tiles, and no matrix of
    them is held; batches take n·s/2 of them instead of n²/2. A similarity that rounding may have pushed below the
    threshold counts as having met it.

    References
    ----------
    Arora, Risteski, Zhang: Do GANs learn the distribution? Some theory and empirics, ICLR 2018: batches, with people
    who look at the most similar pairs. Arora, Zhang: Do GANs actually learn the distribution? An empirical study,
    arXiv:1706.08224, 2017. Rinott: Multivariate majorization and rearrangement inequalities with some applications to
    probability and statistics, Israel Journal of Mathematics 1973.

    Examples
    --------
    >>> from vendimeter.metrics import birthday_paradox
    >>> found = birthday_paradox(["a", "b", "a", "c", "d", "b"], "match", threshold=1)
    >>> found.collisions, found.trials, float(found)
    (2, 15, 7.5)
    >>> found.support, round(found.low, 2), round(found.high, 2)
    (3, 2.08, 61.93)
    """
    min_similarity = within(threshold, "threshold", -1, 1, "a similarity")
    share = as_number(confidence)
    if not LEAST_CONFIDENCE <= share < 1:
        raise InputError(
            f"confidence={brief(confidence)}; expected a probability from {LEAST_CONFIDENCE} up and below 1, such as "
            "0.95. Below, the bound on the support would be wrong more often than it says."
        )
    size = None if batch is None else whole_number(batch, "batch")
    if size == 1:
        raise InputError("batch=1, and there is no pair in one sample; expected 2 or more.")
    diversity = diversity_of(samples, kernel, rng=rng)
    diversity.refuse_weights("birthday_paradox")
    with diversity.asked():
        n = diversity.n
        if n < 2:
            raise InputError("there is 1 item, and no pair that could collide; expected 2 or more.")
        if size is None:
            figures, count, trials = _estimate_from_pairs(diversity, min_similarity, share)
        else:
            if size > n:
                raise InputError(f"batch={size} and there are {n} items; expected as many or fewer.")
            order = generator(diversity.rng, "birthday batches").permutation(n)
            batches = order[: n - n % size].reshape(-1, size)
            figures, count, trials = _estimate_from_batches(
                diversity.similarity, batches, min_similarity, share
            )
    value, low, high, support_bound = (max(1.0, figure) for figure in figures)
    support = math.ceil(support_bound * (1 - 1e-12))  # rounding up must not add an item to a whole number
    return BirthdayParadox(value, low, high, support, share, min_similarity, count, trials, n, size)


def _estimate_from_pairs(
    diversity: Diversity, min_similarity: float, confidence: float
) -> tuple[list[float], int, int]:
    """From all pairs: 1/p with its interval and the bound on the support; colliding pairs, and all pairs."""
    from scipy.special import gammaincinv

    n, similarity = diversity.n, diversity.similarity
    positions, group = diversity.distinct  # equal samples are one item
    repeats = np.bincount(group)
    entries = Entries(similarity if len(positions) == n else similarity.take(positions), positions)
    others = repeats - 1  # with how many others a sample collides
    for i, j, _ in entries.edges(min_similarity - entries.slack, label="birthday paradox"):
        others += np.bincount(i, repeats[j], len(positions)).astype(np.int64)
        others += np.bincount(j, repeats[i], len(positions)).astype(np.int64)
    count, pairs = int(repeats @ others) // 2, n * (n - 1) // 2
    # Pairs share samples: the variance of their number is Σ others² − count, less what p² takes away.
    squares = float(np.sum(repeats * others.astype(np.float64) ** 2))
    variance = squares - count - (4 * n - 6) / (n * (n - 1)) * float(count) ** 2
    spread = max(1.0, variance / count) if count else 1.0
    tail = (1 - confidence) / 2
    low = spread * float(gammaincinv(count / spread, tail)) if count else 0.0
    high = spread * float(gammaincinv(count / spread + 1, 1 - tail))
    largest = float(gammaincinv(count + 1, confidence))
    return [_ratio(pairs, collisions) for collisions in (count, high, low, largest)], count, pairs


def _estimate_from_batches(
    similarity: Similarity, batches: np.ndarray, min_similarity: float, confidence: float
) -> tuple[list[float], int, int]:
    """The same from the share of batches with a collision; batches with one, and all batches."""
    count = 0
    with Progress("birthday paradox") as progress:
        for step, batch in enumerate(batches):
            progress.step(step / len(batches))
            positions = np.sort(batch)
            entries = Entries(similarity.take(positions), positions)
            count += any(len(i) for i, _, _ in entries.edges(min_similarity - entries.slack))
    trials, pairs = len(batches), batches.shape[1] * (batches.shape[1] - 1) / 2
    low, high = interval(count, trials, confidence)
    _, largest = interval(count, trials, 2 * confidence - 1)  # one side of two
    shares = (count / trials, high, low, largest)
    return [_ratio(pairs, -math.log1p(-share) if share < 1 else math.inf) for share in shares], count, trials


def _ratio(pairs: float, collisions: float) -> float:
    return pairs / collisions if collisions else math.inf
