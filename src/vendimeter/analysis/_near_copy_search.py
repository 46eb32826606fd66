"""The search for near copies: its options, whether all pairs are compared, and the clusters that come of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.analysis._distinct_items import DistinctItems
from vendimeter.analysis._hashing import hashed_clusters
from vendimeter.analysis._neighbour_pairs import Levels, Pairs, within
from vendimeter.analysis._recall import Recall
from vendimeter.errors import InputError, TooLargeError, brief, unknown
from vendimeter.metrics.graphs import _joined
from vendimeter.options import as_number, check_flag
from vendimeter.results.score import duration
from vendimeter.similarity import Features, Pairwise, Similarity

__all__ = ["Clustering", "SearchOptions", "clustered", "hashed", "search_method"]

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
