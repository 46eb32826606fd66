"""Identical items and near copies: which there are, which to drop, and what they cost in diversity.

Identical items are taken together first (`distinct`). Then either all pairs are compared (`pairs`) or hashing proposes
pairs (`hashing`); the connected components of the near copies are the clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.near_copies.distinct import DistinctItems
from vendimeter.analysis.near_copies.hashing import Recall, hashed_clusters
from vendimeter.analysis.near_copies.pairs import Levels, Pairs, choose_levels, pairs_within, similar_pairs
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError, TooLargeError
from vendimeter.messages import brief, unknown
from vendimeter.options import COSINE, SEED, as_number, check_flag
from vendimeter.present.numbers import (
    count_of,
    floor_percent,
    format_confidence,
    format_duration,
    short_number,
)
from vendimeter.results.base import Result, frozen
from vendimeter.results.score import Score
from vendimeter.similarity import Features, Pairwise, Similarity
from vendimeter.solvers.edges import join_components
from vendimeter.solvers.options import Solver
from vendimeter.spectrum import parse_orders

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = [
    "Clustering",
    "Duplicates",
    "Recall",
    "SearchOptions",
    "cluster_by_hashing",
    "duplicates",
    "join_pairs",
    "search_method",
]

METHODS = ("auto", "exact", "approximate")
EXACT_ITEMS = 100_000  # distinct items with features up to which "auto" compares all pairs
MOST_WORK = 2e13  # operations: upper bound for all pairs of other kernels, some minutes
MOST_WITHIN = 5e9  # pairs within the clusters found by hashing: upper bound of those that are counted
SPEED = 5e10  # operations a second, for the estimate in a message


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
        for cluster, positions in enumerate(self.clusters):
            labels[positions] = cluster
        return labels

    def summary(self) -> str:
        """How many copies there are, what the score would be without them, and how much of them was found."""
        similarity_words = f"similarity of {self.threshold:g}{' or more' if self.threshold < 1 else ''}"
        if not self.copies:
            text = f"none of {count_of(self.n, 'item')} is a near copy of another ({similarity_words})"
            if self.score is not None:
                text += f"; the score is {short_number(self.score)}"
            return f"{text}.{self._found()}"
        text = (
            f"{self.copies:,} of {self.n:,} items {'is a near copy' if self.copies == 1 else 'are near copies'}: each "
            f"is joined to one that is kept by a {similarity_words}, or by a chain of such; {self.identical:,} the "
            f"same to this kernel. "
            f"{count_of(len(self.clusters), 'cluster').capitalize()}, the largest of {self.sizes[0]:,}"
        )
        return f"{text}.{self._cost_in_words()}{self._found()}"

    def _cost_in_words(self) -> str:
        if self.score is None or self.without is None:
            return ""
        them = "it" if self.copies == 1 else "them"
        now, then = short_number(self.score), short_number(self.without)
        change = f"{then} instead of {now}" if now != then else f"{then} as it is now, to six digits"
        text = f" Without {them} the score would be {change}"
        if "none" in (self.score.level, self.without.level):
            return f"{text}, both without bounds."
        low, high = sorted((self.score, self.without))
        separate = low.bounds[1] < high.bounds[0]
        return f"{text}." if separate else f"{text}, a difference within their bounds."

    def _found(self) -> str:
        if self.method == "exact":
            return ""
        recall = self.recall
        text = " Not all pairs were compared"
        if recall.planted:
            text += (
                f": of copies planted at that similarity {floor_percent(recall)} were found "
                f"({floor_percent(recall.low)} to {floor_percent(recall.high)}, {format_confidence(0.95)} confidence)"
            )
        if recall.checked:
            ends = f"{floor_percent(recall.sampled_low)} to {floor_percent(recall.sampled_high)}"
            text += (
                f", and of {recall.checked:,} items drawn at random that have near copies "
                f"{floor_percent(recall.sampled)} are together with all of them ({ends})"
            )
        if recall.high < recall.target:
            text += (
                f"; {floor_percent(recall.target)} were asked for, and the most tables there are find less"
            )
        return text + "."

    def _columns(self) -> dict[str, Any]:
        """One row for each item of a cluster."""
        items = np.concatenate([np.empty(0, dtype=np.int64), *self.clusters])
        same = np.concatenate([np.empty(0, dtype=np.int64), *self.exact])
        return {
            "item": items,
            "cluster": np.repeat(
                np.arange(len(self.clusters)), [len(positions) for positions in self.clusters]
            ),
            "kept": ~np.isin(items, self.redundant),
            "identical": np.isin(items, same),
        }

    def plot(self, ax: Any = None) -> Display:
        """Draw the sizes of the clusters; see `vendimeter.plots`."""
        from vendimeter.plots.bars import plot_duplicates

        return plot_duplicates(self, ax)


def duplicates(
    samples: Any,
    kernel: Any = COSINE,
    *,
    threshold: float = 0.95,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    method: str = "auto",
    recall: float = 0.99,
    scores: bool = True,
    tol: float | None = None,
    rng: int = SEED,
) -> Duplicates:
    """Identical items and near copies: clusters of them, which items to drop, and what they cost in diversity.

    Two items are near copies where k(a, b) ≥ `threshold`. A cluster is a connected component of that graph (single
    linkage): its items are joined by chains of near copies, and those at the two ends of a chain may be less similar.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
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
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, rng=rng)
    return diversity.duplicates(
        threshold=threshold, q=q, method=method, recall=recall, scores=scores, tol=tol
    )


def duplicates_of(diversity: Diversity, options: SearchOptions, *, q: Any, tol: Any) -> Duplicates:
    """Identical items and near copies, and what they cost; see `duplicates`."""
    orders, is_list = parse_orders(q)
    if is_list:
        raise InputError(f"q={brief(q)}; expected one order, such as 1 or 'inf'.")
    items = DistinctItems(diversity)
    chosen_method = search_method(items.similarity, options.method)
    if options.scores:
        items.materialize()
    levels, entries = choose_levels(items.similarity, options.threshold, items.first_positions)
    if chosen_method == "exact":
        pairs = similar_pairs(items.similarity, levels, entries, "near copies")
        clustering, measured_recall = join_pairs(pairs, items.repeats), Recall(1.0)
    else:
        clustering, measured_recall = cluster_by_hashing(items, levels, options, diversity.rng)
    clusters, identical = items.clusters_of(clustering.near), items.clusters_of(clustering.same)
    redundant = np.sort(
        np.concatenate([np.empty(0, dtype=np.int64), *(members[1:] for members in clusters.members)])
    )
    score, without = (
        items.scores(clusters.firsts, orders[0], Solver(tol).tol) if options.scores else (None, None)
    )
    return Duplicates(
        items.n,
        options.threshold,
        items.n - len(clusters.firsts),
        items.n - len(identical.firsts),
        score,
        without,
        clustering.pairs,
        chosen_method,
        measured_recall,
        [positions.tolist() for positions in clusters.members],
        [positions.tolist() for positions in identical.members],
        frozen(clusters.sizes),
        frozen(redundant),
        frozen(np.setdiff1d(np.flatnonzero(diversity.shares), redundant, assume_unique=True)),
        diversity.n,
    )


# --------------------------------------------------------------------------------------------------------------- search


@dataclass(frozen=True)
class SearchOptions:
    """The options of the search, checked."""

    threshold: float
    method: str
    recall: float
    scores: bool

    @classmethod
    def of(cls, threshold: Any, method: Any, recall: Any, scores: Any) -> SearchOptions:
        """Check options as the user passes them."""
        threshold_value, recall_value = as_number(threshold), as_number(recall)
        if not 0 < threshold_value <= 1:
            raise InputError(
                f"threshold={brief(threshold)}; expected the similarity from which on two items are near copies, above "
                "0 and up to 1."
            )
        if not 0 < recall_value < 1:
            raise InputError(
                f"recall={brief(recall)}; expected the share that hashing should find, above 0 and below 1, such as "
                "0.99. For all of it pass method='exact'."
            )
        if method not in METHODS:
            raise unknown("method", method, METHODS)
        return cls(threshold_value, method, recall_value, check_flag(scores, "scores"))


def search_method(similarity: Similarity, method: str) -> str:
    """Whether to compare all pairs or to hash; an error where one takes too long and the other is impossible."""
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
    operations = similarity.n**2 / 2 * similarity.cost
    if isinstance(similarity, Pairwise) and operations > MOST_WORK:
        raise TooLargeError(
            f"{similarity.n:,} distinct items are {similarity.n**2 / 2:.2g} pairs, and {similarity.kernel!r} has no "
            f"features that could be hashed; all pairs would take about {format_duration(operations / SPEED)}. Pass "
            "method='exact' to compare them all the same, or take a kernel with features ('cosine', 'ngram', or "
            "RandomFeatures in place of RBF, Laplacian and Jaccard), or a random sample."
        )
    return "exact"


@dataclass(frozen=True)
class Clustering:
    """The cluster of each distinct item, its class of identical items, and the number of pairs of near copies."""

    near: np.ndarray
    same: np.ndarray
    pairs: int | None


def join_pairs(pairs: Iterator[Pairs], repeats: np.ndarray, labels: np.ndarray | None = None) -> Clustering:
    """Clusters of a stream of pairs, or with `labels` given clusters; pairs of collapsed identical items count, too."""
    total = sum(count * (count - 1) // 2 for count in repeats[repeats > 1].tolist())
    joined_labels = np.arange(len(repeats)) if labels is None else labels
    same = np.arange(len(repeats))
    for i, j, identical in pairs:
        total += int(np.dot(repeats[i], repeats[j]))
        if labels is None:
            joined_labels = join_components(joined_labels, i, j)
        same = join_components(same, i[identical], j[identical])
    return Clustering(joined_labels, same, total)


def cluster_by_hashing(
    items: DistinctItems, levels: Levels, options: SearchOptions, seed: int
) -> tuple[Clustering, Recall]:
    """Clusters by hashing; all pairs within them are compared to count near copies, if they are not too many."""
    features = items.similarity
    assert isinstance(features, Features)
    labels, recall = hashed_clusters(features, levels, options.threshold, options.recall, seed)
    sizes = np.bincount(labels).astype(np.float64)
    if float(np.sum(sizes * (sizes - 1))) / 2 > MOST_WITHIN:
        return Clustering(labels, np.arange(len(labels)), None), recall
    return join_pairs(pairs_within(features, labels, levels, "pairs"), items.repeats, labels), recall
