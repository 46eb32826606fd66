"""Items that differ, each once: what repeats them, which clusters they form, and scores with and without copies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vendimeter.analysis.family import scored
from vendimeter.results.score import Score
from vendimeter.similarity import Matrix, Pairwise, Similarity, materialized
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import EXACT_SIDE, same_items

__all__ = ["DistinctItems", "Groups"]


@dataclass(frozen=True)
class Groups:
    """Items that belong together.

    Attributes
    ----------
    members : list of ndarray
        Positions of the samples of each group of at least two items, the largest group first.
    sizes : ndarray
        How many items each of these has.
    firsts : ndarray
        The first position of every group, of one item or more.
    """

    members: list[np.ndarray]
    sizes: np.ndarray
    firsts: np.ndarray


class DistinctItems:
    """The samples of positive weight, identical ones taken together.

    Parameters
    ----------
    similarity : Similarity
        Of the samples.
    shares : ndarray
        The probability of each.
    n : int
        How many items they stand for.
    weighted, counted : bool
        Whether these came of weights, or of counts.

    Attributes
    ----------
    similarity : Similarity
        Of the distinct items.
    names : ndarray
        The first position of each among the samples.
    repeats : ndarray
        How many items each stands for.
    n : int
        How many items there are in all.
    """

    def __init__(
        self,
        similarity: Similarity,
        shares: np.ndarray,
        n: int,
        *,
        weighted: bool = False,
        counted: bool = False,
    ):
        self._shares, self._given, self._weighted = shares, n, weighted
        self._present = np.flatnonzero(shares)
        first, self._group = same_items(similarity, self._present)
        self.names = self._present[first]
        if isinstance(similarity, Matrix):
            similarity = similarity.checked()
        self.similarity = similarity if len(self.names) == similarity.n else similarity.take(self.names)
        ones = np.ones(len(self._present))
        self._items = np.rint(shares[self._present] * n) if counted else ones
        self.repeats = np.bincount(self._group, self._items).astype(np.int64)
        self.n = int(self.repeats.sum())

    def hold(self) -> None:
        """Compute a kernel without features once for all that follows, and check a user's function, where that fits."""
        part = self.similarity
        if not isinstance(part, Pairwise) or part.n > EXACT_SIDE:
            return
        self.similarity = materialized(part, self.names)

    def groups(self, labels: np.ndarray) -> Groups:
        """The groups of the samples whose distinct items have the same label."""
        own = labels[self._group]
        order = np.argsort(own, kind="stable")  # positions of a group stay in rising order
        starts = np.flatnonzero(np.diff(own[order], prepend=-1))
        sizes = np.add.reduceat(self._items[order], starts).astype(np.int64)
        places = self._present[order]
        firsts = places[starts]
        ends = np.append(starts[1:], len(places))
        several = np.flatnonzero(sizes > 1)
        several = several[np.lexsort((firsts[several], -sizes[several]))]
        return Groups([places[starts[k] : ends[k]] for k in several], sizes[several], firsts)

    def scores(self, firsts: np.ndarray, q: float, tol: float | None, rng: int) -> tuple[Score, Score]:
        """The score of all items, and that of those at `firsts` alone."""
        uniform = not self._weighted and (self.repeats == self.repeats[0]).all()
        joint = None
        if not uniform:
            order = np.argsort(self._group, kind="stable")
            sizes = np.bincount(self._group)
            # Summed in pairs, not one after the other: a million small weights would lose four digits.
            joint = np.add.reduceat(self._shares[self._present][order], np.cumsum(sizes) - sizes)
        solver = Solver(tol)
        score = scored(self.similarity, joint, q, self._given, solver=solver, rng=rng)
        if len(firsts) == self.n:
            return score, score
        weights = None
        if self._weighted:
            weights = self._shares[firsts] / self._shares[firsts].sum()
        places = self._group[np.searchsorted(self._present, firsts)]
        rest = self.similarity if len(places) == self.similarity.n else self.similarity.take(np.sort(places))
        if weights is not None:
            weights = weights[np.argsort(places)]
        return score, scored(rest, weights, q, len(firsts), solver=solver, rng=rng)
