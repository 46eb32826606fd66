"""Distinct items with their multiplicities, the clusters they form, and scores with and without copies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from vendimeter.diversity import Diversity
from vendimeter.results.score import Score, scored
from vendimeter.similarity import Pairwise, materialized
from vendimeter.solvers.plan import EXACT_SIDE

__all__ = ["Clusters", "DistinctItems"]


@dataclass(frozen=True)
class Clusters:
    """Clusters of samples.

    Attributes
    ----------
    members : list of ndarray
        Positions of the samples of each cluster of at least two items, the largest cluster first.
    sizes : ndarray
        How many items each of these has.
    firsts : ndarray
        The first position of every cluster, of one item or more.
    """

    members: list[np.ndarray]
    sizes: np.ndarray
    firsts: np.ndarray


class DistinctItems:
    """The samples of positive weight, identical ones taken together.

    Parameters
    ----------
    diversity : Diversity
        The samples.

    Attributes
    ----------
    similarity : Similarity
        Of the distinct items.
    first_positions : ndarray
        The first position of each among the samples.
    repeats : ndarray
        Multiplicity of each.
    n : int
        How many items there are in all.
    """

    def __init__(self, diversity: Diversity):
        self._diversity, self._shares = diversity, diversity.shares
        self._weighted = diversity.weighting == "weights"
        self._present = np.flatnonzero(self._shares)
        self.first_positions, self._distinct_index = diversity.distinct
        similarity = diversity.similarity
        self.similarity = (
            similarity if len(self.first_positions) == similarity.n else similarity.take(self.first_positions)
        )
        counted = diversity.weighting == "counts"
        ones = np.ones(len(self._present))
        self._counts = np.rint(self._shares[self._present] * diversity.count) if counted else ones
        self.repeats = np.bincount(self._distinct_index, self._counts).astype(np.int64)
        self.n = int(self.repeats.sum())

    def materialize(self) -> None:
        """Replace a similarity without features by its matrix, checked, if the matrix is not too large to be solved."""
        similarity = self.similarity
        if not isinstance(similarity, Pairwise) or similarity.n > EXACT_SIDE:
            return
        self.similarity = materialized(similarity, self.first_positions)

    def clusters_of(self, labels: np.ndarray) -> Clusters:
        """The clusters of samples whose distinct items have the same label."""
        sample_labels = labels[self._distinct_index]
        order = np.argsort(sample_labels, kind="stable")  # positions of a cluster stay in rising order
        starts = np.flatnonzero(np.diff(sample_labels[order], prepend=-1))
        sizes = np.add.reduceat(self._counts[order], starts).astype(np.int64)
        positions = self._present[order]
        firsts = positions[starts]
        ends = np.append(starts[1:], len(positions))
        several = np.flatnonzero(sizes > 1)
        several = several[np.lexsort((firsts[several], -sizes[several]))]
        return Clusters([positions[starts[k] : ends[k]] for k in several], sizes[several], firsts)

    def scores(self, firsts: np.ndarray, q: float, tol: float | None) -> tuple[Score, Score]:
        """The score of all items, and the score of the samples at `firsts` alone."""
        uniform = not self._weighted and (self.repeats == self.repeats[0]).all()
        joint_weights = None
        if not uniform:
            order = np.argsort(self._distinct_index, kind="stable")
            sizes = np.bincount(self._distinct_index)
            # Pairwise summation: a running sum of a million small weights would lose four digits.
            joint_weights = np.add.reduceat(self._shares[self._present][order], np.cumsum(sizes) - sizes)
        diversity = self._diversity
        solver, rng = (
            replace(diversity.solver, tol=diversity.solver.tol if tol is None else tol),
            diversity.rng,
        )
        if diversity.keeps:
            score = diversity.score(q, tol=tol, progress=False)
        else:
            score = scored(self.similarity, joint_weights, q, diversity.count, solver=solver, rng=rng)
        if len(firsts) == self.n:
            return score, score
        weights = None
        if self._weighted:
            weights = self._shares[firsts] / self._shares[firsts].sum()
        distinct_positions = self._distinct_index[np.searchsorted(self._present, firsts)]
        kept_similarity = (
            self.similarity
            if len(distinct_positions) == self.similarity.n
            else self.similarity.take(np.sort(distinct_positions))
        )
        if weights is not None:
            weights = weights[np.argsort(distinct_positions)]
        return score, scored(kept_similarity, weights, q, len(firsts), solver=solver, rng=rng)
