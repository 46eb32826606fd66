"""Greedy choice for the determinant: log det K_A, the most likely set of a determinantal point process.

An item adds the logarithm of its share outside the span of the chosen ones, 1 − ‖Qᵀφ‖² with an orthonormal basis Q of
that span, which grows by one vector an item. Once the span holds all items the determinant is 0 whatever is chosen.
What goes on growing is the product of the eigenvalues that are not 0, those of σ = Σ φφᵀ within the span: an item
multiplies it by 1 + φᵀσ⁺φ (a D-optimal design). Neither rises as more items are chosen.
"""

from __future__ import annotations

import math

import numpy as np

from vendimeter.analysis._greedy_items import Items
from vendimeter.analysis._greedy_objectives import Eigenbasis, Objective
from vendimeter.data.devices import move, to_host

__all__ = ["LogDet"]

NOTHING = 1e-10  # a share outside the span that rounding may have left
SHARE_ALLOWANCE = 1e-5  # for the rounding of float32 in a share


class LogDet(Objective):
    """The determinant of the chosen items' similarities, and beyond their rank the product of its eigenvalues."""

    ceiling = 1.0

    def __init__(self, items: Items):
        super().__init__(items)
        self.rough = items.single
        self._directions = np.zeros((items.longest, min(items.k, items.longest)))
        self._rank = 0
        self._beyond: Eigenbasis | None = None
        # Of each item, its share outside the span of the first `seen` directions, up to the rounding of float32.
        self._share = np.ones(items.n) if self.rough else np.zeros(0)
        self._seen = np.zeros(len(self._share), dtype=np.int64)

    @property
    def work(self) -> float:
        return 2.0 * max(len(self.items.chosen), 1) * self.items.width + self.items.row_cost

    def evaluate(self, index: np.ndarray) -> np.ndarray:
        found = np.ones(len(index))
        if not self.items.chosen:
            return found
        vectors = self._vectors() if self._beyond is None else self._beyond.vectors
        vectors = np.ascontiguousarray(vectors)
        weights = np.ones(vectors.shape[1]) if self._beyond is None else 1 / self._beyond.values
        weights = self.items.padded(weights)

        def task(part: slice) -> None:
            coordinates = self.items.coordinates(index[part], vectors)
            seen = to_host((coordinates * coordinates) @ move(weights, coordinates))[: part.stop - part.start]
            found[part] = np.maximum(1 - seen, 0.0) if self._beyond is None else seen

        self.items.spread(task, len(index), vectors.shape[1])
        return found

    def bound(self, index: np.ndarray) -> np.ndarray:
        if not self.rough:
            return self.evaluate(index)
        if self._rank:
            self.items.quick(index[:1])  # the copy is made before threads ask for it
            directions = self._vectors().astype(np.float32)
            missing = self._seen[index]
            for seen in np.unique(missing[missing < self._rank]).tolist():
                self._reduce(index[missing == seen], directions[:, seen:])
            self._seen[index] = self._rank
        return np.minimum(self._share[index] + SHARE_ALLOWANCE, 1.0)

    def _reduce(self, index: np.ndarray, directions: np.ndarray) -> None:
        def task(part: slice) -> None:
            seen = self.items.quick(index[part]) @ directions
            self._share[index[part]] -= np.einsum("ij,ij->i", seen, seen)

        self.items.spread(task, len(index), directions.shape[1])

    def add(self, item: int) -> float:
        """Choose an item; its share outside the span, or beyond the rank φᵀσ⁺φ."""
        gain = float(self.evaluate(np.array([item]))[0])
        self.items.add(item)
        if self._beyond is not None:
            self._beyond.update()
            return gain
        vector = self.items.chosen_vectors(len(self.items.chosen) - 1)[:, 0]
        before = self._vectors()
        for _ in range(2):  # twice, so that the directions are orthogonal to the last digits
            vector = vector - before @ (before.T @ self.items.metric(vector))
        square = float(vector @ self.items.metric(vector))
        if square > NOTHING and self._rank < self._directions.shape[1]:
            self._directions[: len(vector), self._rank] = vector / math.sqrt(square)
            self._rank += 1
        return gain

    def _vectors(self) -> np.ndarray:
        """An orthonormal basis of the span of the chosen items, in the terms of rows."""
        return self._directions[: self.items.width, : self._rank]

    def go_on(self, best: float) -> bool:
        if self._beyond is not None or best > NOTHING:
            return False
        m = len(self.items.chosen)
        self.notes.append(
            f"after {m:,} {'item' if m == 1 else 'items'} none was left outside their span, where every determinant is "
            "0; from there on the product of the eigenvalues other than 0 was made as large as possible"
        )
        self._beyond, self.rough, self.ceiling = Eigenbasis(self.items), False, math.inf
        self._beyond.update()
        return True
