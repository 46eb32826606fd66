"""Identical items and near copies: which there are, which to drop, and what they cost in diversity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.near_copies.distinct import DistinctItems
from vendimeter.analysis.near_copies.hashing import Recall, hashed_clusters
from vendimeter.analysis.near_copies.pairs import Levels, Pairs, levels_of, similar_pairs, within
from vendimeter.errors import InputError, TooLargeError, brief, unknown
from vendimeter.intake import collected, measured
from vendimeter.options import as_number, check_flag, check_rng
from vendimeter.results.base import Result, frozen
from vendimeter.results.score import Score, duration, number, percentage
from vendimeter.similarity import Features, Pairwise, Similarity
from vendimeter.solvers.edges import join_components as _joined
from vendimeter.spectrum import parse_orders

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = [
    "Clustering",
    "Duplicates",
    "Recall",
    "SearchOptions",
    "clustered",
    "duplicates",
    "hashed",
    "search_method",
]


# ---------------------------------------------------------------------------------------------------- near copy search

# The search for near copies: its options, whether all pairs are compared, and the clusters that come of it.

METHODS = ("auto", "exact", "approximate")
EXACT_ITEMS = 100_000  # distinct items with features up to which "auto" compares all pairs
MOST_WORK = 2e13  # operations for all pairs of other kernels, at the speed of a matrix product: some minutes
MOST_WITHIN = 5e9  # pairs within the clusters that hashing found, up to which they are counted
SPEED = 5e10  # operations a second, for the estimate in a message


# ------------------------------------------------------------------------------------------------------------- options


@dataclass(frozen=True)
class SearchOptions:
    """The options of the search, checked."""

    threshold: float
    method: str
    recall: float
    scores: bool

    @classmethod
    def of(cls, threshold: Any, method: Any, recall: Any, scores: Any) -> SearchOptions:
        level, target = as_number(threshold), as_number(recall)
        if not 0 < level <= 1:
            raise InputError(
                f"threshold={brief(threshold)}; expected the similarity from which on two items are near copies, above "
                "0 and up to 1."
            )
        if not 0 < target < 1:
            raise InputError(
                f"recall={brief(recall)}; expected the share that hashing should find, above 0 and below 1, such as "
                "0.99. For all of it pass method='exact'."
            )
        if method not in METHODS:
            raise unknown("method", method, METHODS)
        return cls(level, method, target, check_flag(scores, "scores"))


def search_method(similarity: Similarity, method: str) -> str:
    """Whether to compare all pairs; an error where that would take too long and nothing else can be done."""
    hashable = isinstance(similarity, Features)
    if method == "approximate" and not hashable:
        raise InputError(
            f"method='approximate' hashes feature vectors, and {similarity.kernel!r} has none; expected a kernel with "
            "features, such as 'cosine' or 'ngram', or method='exact'."
        )
    if method != "auto":
        return method
    if hashable:
        return "approximate" if similarity.n > EXACT_ITEMS else "exact"
    work = similarity.n**2 / 2 * similarity.cost
    if isinstance(similarity, Pairwise) and work > MOST_WORK:
        raise TooLargeError(
            f"{similarity.n:,} distinct items are {similarity.n**2 / 2:.2g} pairs, and {similarity.kernel!r} has no "
            f"features that could be hashed; all pairs would take about {duration(work / SPEED)}. Pass method='exact' "
            "to compare them all the same, or take a kernel with features ('cosine', 'ngram', or RandomFeatures in "
            "place of RBF, Laplacian and Jaccard), or a random sample."
        )
    return "exact"


# -------------------------------------------------------------------------------------------------------- the clusters


@dataclass(frozen=True)
class Clustering:
    """The cluster of each distinct item, its group of identical items, and the number of pairs of all items."""

    near: np.ndarray
    same: np.ndarray
    pairs: int | None


def clustered(pairs: Iterator[Pairs], repeats: np.ndarray, near: np.ndarray | None = None) -> Clustering:
    """Join pairs as they come; those of identical items that were taken together are counted, too."""
    total = sum(count * (count - 1) // 2 for count in repeats[repeats > 1].tolist())
    labels = np.arange(len(repeats)) if near is None else near
    same = np.arange(len(repeats))
    for i, j, identical in pairs:
        total += int(np.dot(repeats[i], repeats[j]))
        if near is None:
            labels = _joined(labels, i, j)
        same = _joined(same, i[identical], j[identical])
    return Clustering(labels, same, total)


def hashed(
    items: DistinctItems, levels: Levels, options: SearchOptions, seed: int
) -> tuple[Clustering, Recall]:
    """By hashing; then all pairs within the clusters are looked at, where they are not too many."""
    features = items.similarity
    assert isinstance(features, Features)
    labels, measure = hashed_clusters(features, levels, options.threshold, options.recall, seed)
    sizes = np.bincount(labels).astype(np.float64)
    if float(np.sum(sizes * (sizes - 1))) / 2 > MOST_WITHIN:
        return Clustering(labels, np.arange(len(labels)), None), measure
    return clustered(within(features, labels, levels, "pairs"), items.repeats, labels), measure


# --------------------------------------------------------------------------------------------------------- near copies


@dataclass(frozen=True, repr=False, eq=False)
class Duplicates(Result):
    """Items that are the same to the kernel and near copies of a collection, and what they cost in diversity.

    Attributes
    ----------
    n : int
        How many items: the number of samples of positive weight, or the sum of the counts.
    threshold : float
        The similarity from which on two items are near copies.
    copies : int
        How many items are left out when one of each cluster is kept.
    identical : int
        How many of these the kernel cannot tell from an item before them: they are identical, or have a similarity of 1
        up to rounding, as different molecules of one fingerprint have.
    score : Score or None
        The score as it is; None where it was not asked for.
    without : Score or None
        The score without the copies: of the items `kept`.
    pairs : int or None
        How many pairs of items have a similarity of at least the threshold; those that belong to clusters that were
        found where the search was approximate, and None where that are too many to count.
    method : str
        "exact" or "approximate".
    recall : Recall
        The share of near copies that the search finds: 1, or measured with a confidence interval.
    clusters : list of lists of int
        Positions of the items of each cluster of at least two items, in rising order; the largest cluster first. With
        counts a cluster may be a single position.
    exact : list of lists of int
        The same for items that are identical, or have a similarity of 1 up to rounding.
    sizes : ndarray
        How many items each cluster has; with counts their sum.
    redundant : ndarray
        Positions to drop: of each cluster all but the first.
    kept : ndarray
        All other positions of items that have weight.
    positions : int
        How many samples were given, those without weight among them.
    """

    n: int
    threshold: float
    copies: int
    identical: int
    score: Score | None
    without: Score | None
    pairs: int | None
    method: str
    recall: Recall
    clusters: list[list[int]] = field(repr=False)
    exact: list[list[int]] = field(repr=False)
    sizes: np.ndarray = field(repr=False)
    redundant: np.ndarray = field(repr=False)
    kept: np.ndarray = field(repr=False)
    positions: int = field(repr=False)

    @property
    def cost(self) -> float:
        """By how much the score would rise without the copies: the effectively different items that they cost."""
        if self.score is None or self.without is None:
            return math.nan
        return float(self.without) - float(self.score)

    @property
    def labels(self) -> np.ndarray:
        """The cluster of each position, −1 for those in none."""
        labels = np.full(self.positions, -1)
        for cluster, places in enumerate(self.clusters):
            labels[places] = cluster
        return labels

    def summary(self) -> str:
        """How many copies there are, what the score would be without them, and how much of them was found."""
        what = f"similarity of {self.threshold:g}{' or more' if self.threshold < 1 else ''}"
        if not self.copies:
            text = f"none of {_counted(self.n, 'item')} is a near copy of another ({what})"
            if self.score is not None:
                text += f"; the score is {number(self.score)}"
            return f"{text}.{self._found()}"
        text = (
            f"{self.copies:,} of {self.n:,} items {'is a near copy' if self.copies == 1 else 'are near copies'}: each "
            f"is joined to one that is kept by a {what}, or by a chain of such; {self.identical:,} the same to this "
            f"kernel. "
            f"{_counted(len(self.clusters), 'cluster').capitalize()}, the largest of {self.sizes[0]:,}"
        )
        return f"{text}.{self._cost_in_words()}{self._found()}"

    def _cost_in_words(self) -> str:
        if self.score is None or self.without is None:
            return ""
        them = "it" if self.copies == 1 else "them"
        now, then = number(self.score), number(self.without)
        change = f"{then} instead of {now}" if now != then else f"{then} as it is now, to six digits"
        text = f" Without {them} the score would be {change}"
        if "none" in (self.score.level, self.without.level):
            return f"{text}, both without bounds."
        low, high = sorted((self.score, self.without))
        apart = low.bounds[1] < high.bounds[0]
        return f"{text}." if apart else f"{text}, a difference within their bounds."

    def _found(self) -> str:
        if self.method == "exact":
            return ""
        found = self.recall
        text = " Not all pairs were compared"
        if found.planted:
            text += (
                f": of copies planted at that similarity {_share(found)} were found ({_share(found.low)} to "
                f"{_share(found.high)}, {percentage(0.95)} confidence)"
            )
        if found.checked:
            ends = f"{_share(found.sampled_low)} to {_share(found.sampled_high)}"
            text += (
                f", and of {found.checked:,} items drawn at random that have near copies {_share(found.sampled)} are "
                f"together with all of them ({ends})"
            )
        if found.high < found.target:
            text += f"; {_share(found.target)} were asked for, and the most tables there are find less"
        return text + "."

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values ready for JSON, the scores with their bounds."""
        return super().to_dict() | {"recall": self.recall.to_dict()}

    def _columns(self) -> dict[str, Any]:
        """One row for each item of a cluster."""
        items = np.concatenate([np.empty(0, dtype=np.int64), *self.clusters])
        same = np.concatenate([np.empty(0, dtype=np.int64), *self.exact])
        return {
            "item": items,
            "cluster": np.repeat(np.arange(len(self.clusters)), [len(places) for places in self.clusters]),
            "kept": ~np.isin(items, self.redundant),
            "identical": np.isin(items, same),
        }

    def plot(self, ax: Any = None) -> Display:
        """Draw the sizes of the clusters; see `vendimeter.plots`."""
        from vendimeter.plots.bars import plot_duplicates

        return plot_duplicates(self, ax)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _share(value: float) -> str:
    """A share in percent; only all is 100%."""
    return "100%" if value == 1 else f"{math.floor(1000 * value) / 10:.1f}%"


@collected
def duplicates(
    samples: Any,
    kernel: Any = "cosine",
    *,
    threshold: float = 0.95,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    method: str = "auto",
    recall: float = 0.99,
    scores: bool = True,
    tol: float | None = None,
    rng: int = 0,
) -> Duplicates:
    """Identical items and near copies: clusters of them, which items to drop, and what they cost in diversity.

    Two items are near copies where k(a, b) ≥ `threshold`. A cluster is a connected component of that graph (single
    linkage): its items are joined by chains of near copies, and those at the two ends of a chain may be less similar.

    Parameters
    ----------
    samples : array, sparse array, list, table or Collection
        The items, as for `vendimeter.score`.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    threshold : float
        The similarity from which on two items are near copies, above 0 and up to 1. Two items with a similarity of
        0.95, the default, count as 1.12 effectively different ones at q = 1; with 0.9 as 1.22, with 0.5 as 1.75. What
        looks like a copy depends on the kernel: look at some clusters, and take 1 for identical items alone.
    q : float or str
        The order of the scores.
    weights, counts : array of shape (n,), optional
        Probabilities, or frequencies, of the items, as for `vendimeter.score`. Items of no weight take no part.
        Frequencies stand for items that are repeated: all but one of them are copies.
    method : {"auto", "exact", "approximate"}
        "exact" compares all pairs. "approximate" hashes, for kernels with features (such as cosine and n-grams): what
        it finds is true, and how much it misses is measured. "auto" compares all pairs of up to 100,000 distinct items
        with features and hashes beyond; for other kernels it compares all pairs as long as that takes minutes.
    recall : float
        The share of pairs at the threshold that hashing should find; tables are added until it does, up to 256.
    scores : bool
        Whether to compute the scores. Without features they may take longer than the search.
    tol : float, optional
        The relative half-width of the bounds of the scores, as for `vendimeter.score`.
    rng : int
        Seed of the hashing, its check, the scores, and what the kernel draws.

    Returns
    -------
    Duplicates
        `clusters`, `exact`, `redundant`, `kept`, `pairs`, `score`, `without`, `cost`, `recall`, and a picture.

    Notes
    -----
    Of a cluster the first item is kept: put first what you would rather keep. `without` is the score of the samples
    at `kept`, of equal weight; with weights each keeps its own, and they are divided by their sum. (With their joint
    weight identical items would cost nothing, since the score does not tell them from one heavy item.) It may be lower
    than the score: near copies of rare items raise it.

    Similarities of dense features are products in float32, tile by tile, on all cores; pairs near the threshold are
    computed again in float64, so that the result is that of float64. A similarity that rounding may have pushed below
    the threshold counts as having met it, as in `vendimeter.metrics.components`. Identical items are taken together
    first, and no list of pairs is ever held. All pairs of n vectors of d numbers take n²d operations: some 40 seconds
    of one core for 100,000×256.

    The approximate search sorts the items by the signs of random projections, in as many orders as `recall` needs, and
    compares each with the next 32 in every order. How much it finds is measured twice: by copies of random items
    planted at exactly the threshold, and by comparing 2,000 random items with all others. Pairs that are more
    similar than the threshold are found more often, pairs in crowded regions less often. A million vectors of 256
    numbers take one core 45 seconds, and three minutes where a tenth of them have near copies.

    References
    ----------
    Charikar: Similarity estimation techniques from rounding algorithms, STOC 2002: signs of random projections, and
    sorted orders of them. Abbas et al.: SemDeDup: data-efficient learning at web-scale through semantic deduplication,
    arXiv:2303.09540, 2023.

    Examples
    --------
    >>> import vendimeter as vm
    >>> found = vm.duplicates([[1, 0, 0], [1, 0.1, 0], [0, 1, 0], [2, 0, 0], [0, 0, 1]])
    >>> found.clusters, found.exact
    ([[0, 1, 3]], [[0, 3]])
    >>> found.kept.tolist(), round(found.cost, 4)
    ([0, 2, 4], 0.4108)
    >>> print(vm.duplicates(["a", "a", "b", "c"], "match"))
    1 of 4 items is a near copy: each is joined to one that is kept by a similarity of 0.95 or more, or by a ...
    """
    options = SearchOptions.of(threshold, method, recall, scores)
    orders, several = parse_orders(q)
    if several:
        raise InputError(f"q={brief(q)}; expected one order, such as 1 or 'inf'.")
    seed = check_rng(rng)
    similarity, shares, n = measured(samples, kernel, weights, counts, seed)
    items = DistinctItems(similarity, shares, n, weighted=weights is not None, counted=counts is not None)
    chosen = search_method(items.similarity, options.method)
    if options.scores:
        items.hold()
    levels, entries = levels_of(items.similarity, options.threshold, items.names)
    if chosen == "exact":
        pairs = similar_pairs(items.similarity, levels, entries, "near copies")
        found, measure = clustered(pairs, items.repeats), Recall(1.0)
    else:
        found, measure = hashed(items, levels, options, seed)
    groups, same = items.groups(found.near), items.groups(found.same)
    redundant = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *(one[1:] for one in groups.members)]))
    score, without = items.scores(groups.firsts, orders[0], tol, seed) if options.scores else (None, None)
    return Duplicates(
        items.n,
        options.threshold,
        items.n - len(groups.firsts),
        items.n - len(same.firsts),
        score,
        without,
        found.pairs,
        chosen,
        measure,
        [places.tolist() for places in groups.members],
        [places.tolist() for places in same.members],
        frozen(groups.sizes),
        frozen(redundant),
        frozen(np.setdiff1d(np.flatnonzero(shares), redundant, assume_unique=True)),
        similarity.n,
    )
