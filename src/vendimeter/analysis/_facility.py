"""Facility location: the chosen items are to represent all items, F(A) = Σ_i max(0, max_{j∈A} k(i, j)).

F is monotone and submodular; greedy choice reaches 1 − 1/e of the best. An item adds Σ_i max(0, k(i, j) − c_i), with
c_i the similarity of i with its nearest chosen one.
"""

from __future__ import annotations

import numpy as np

from vendimeter.analysis._greedy_items import Items
from vendimeter.analysis._greedy_objectives import Objective
from vendimeter.data.devices import move, namespace, to_host
from vendimeter.similarity import Matrix, Pairwise

__all__ = ["Facility", "points_of"]

ALL = 8192  # items up to which all of them are to be represented
POINTS = 4096  # beyond, so many drawn at random, or four times the number of chosen ones
SIMILARITY_ALLOWANCE = 4e-7  # for the rounding of float32 in a similarity


def points_of(n: int, k: int) -> int:
    """How many items are to be represented."""
    return n if n <= ALL else min(n, max(POINTS, 4 * k))


class Facility(Objective):
    """How well the chosen items represent all items, or a random sample of them."""

    def __init__(self, items: Items, k: int, memory: int, rng: np.random.Generator):
        super().__init__(items)
        size = points_of(items.n, k)
        self._points = (
            np.arange(items.n) if size == items.n else np.sort(rng.choice(items.n, size, replace=False))
        )
        self.ceiling = float(size)
        self._covered = np.zeros(size)
        self._held: np.ndarray | None = None
        self._rows: np.ndarray | None = None
        if size < items.n:
            self.notes.append(
                f"facility location represents {size:,} items that were drawn at random, not all {items.n:,}"
            )
        self._similar = items.against(self._points)
        given = isinstance(items.similarity, Matrix) or (items.similarity.like is not None and items.bulk)
        if not given and 8 * items.n * size <= memory // 2:
            self._held = self._all()
        self.rough = items.single and self._held is None
        if self.rough:
            self._rows = np.ascontiguousarray(items.quick(self._points).T)

    def _all(self) -> np.ndarray:
        """All similarities that are needed, once."""
        items, similarity = self.items, self.items.similarity
        if isinstance(similarity, Pairwise) and not similarity.trusted:
            policy = similarity.policy
            plain = not (policy.normalize or policy.symmetrize)
            if plain and len(self._points) == items.n and similarity.like is None:
                return similarity.dense()  # the user's function is called once a pair
        held = np.empty((items.n, len(self._points)))

        def task(part: slice) -> None:
            held[part] = to_host(self._similar(np.arange(part.start, part.stop)))[: part.stop - part.start]

        items.spread(task, items.n, len(self._points))
        return held

    @property
    def work(self) -> float:
        return len(self._points) * (2.0 if self._held is not None else self.items.cost)

    def evaluate(self, index: np.ndarray) -> np.ndarray:
        found = np.empty(len(index))

        def task(part: slice) -> None:
            some = index[part]
            if self._held is not None:
                found[part] = np.maximum(self._held[some] - self._covered, 0.0).sum(axis=1)
                return
            above = self._similar(some)
            above = above - move(self._covered, above)
            xp = namespace(above)
            found[part] = to_host(xp.sum(0.5 * (above + xp.abs(above)), axis=1))[: len(some)]

        self.items.spread(task, len(index), 2 * len(self._points))
        return found

    def bound(self, index: np.ndarray) -> np.ndarray:
        if not self.rough:
            return self.evaluate(index)
        found = np.empty(len(index))
        covered = self._covered.astype(np.float32)

        def task(part: slice) -> None:
            above = self.items.quick(index[part]) @ self._rows
            above -= covered
            np.maximum(above, 0.0, out=above)
            found[part] = above.sum(axis=1, dtype=np.float64)

        self.items.spread(task, len(index), len(self._points), most=512)
        return found + SIMILARITY_ALLOWANCE * len(self._points)

    def _row(self, item: int) -> np.ndarray:
        return to_host(self._similar(np.array([item])))[0] if self._held is None else self._held[item]

    def add(self, item: int) -> float:
        """Choose an item; by how much it raises the mean similarity of items with their nearest chosen one."""
        before = float(self._covered.mean())
        self._covered = np.maximum(self._covered, self._row(item))
        self.items.add(item)
        return float(self._covered.mean()) - before
