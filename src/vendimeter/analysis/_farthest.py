"""Farthest points: every item is the one that is least similar to its nearest chosen one.

‖φ_a − φ_b‖² = 2 − 2k(a, b) is the kernel's own distance. The greedy choice leaves no item farther from the chosen
ones than twice the least possible radius (Gonzalez).
"""

from __future__ import annotations

import math

import numpy as np

from vendimeter.analysis._greedy_items import Items
from vendimeter.analysis._greedy_objectives import Objective

__all__ = ["Farthest"]

DISTANCE_ALLOWANCE = 1e-5  # for the rounding of float32 in a squared distance


class Farthest(Objective):
    """The squared distance of an item from the nearest chosen one."""

    ceiling = 4.0

    def __init__(self, items: Items):
        super().__init__(items)
        self.rough = items.single
        # Of each item, its similarity with the nearest of the first `seen` chosen ones, up to the rounding of float32.
        self._nearest = np.full(items.n if self.rough else 0, -1.0)
        self._seen = np.zeros(len(self._nearest), dtype=np.int64)

    @property
    def work(self) -> float:
        return 2.0 * self.items.width + self.items.row_cost

    def evaluate(self, index: np.ndarray) -> np.ndarray:
        found = np.full(len(index), self.ceiling)
        if not self.items.chosen:
            return found

        def task(part: slice) -> None:
            found[part] = np.maximum(2 - 2 * self.items.nearest(index[part]), 0.0)

        self.items.spread(task, len(index), len(self.items.chosen))
        return found

    def bound(self, index: np.ndarray) -> np.ndarray:
        m = len(self.items.chosen)
        if not self.rough:
            return self.evaluate(index)
        if m:
            self.items.quick(index[:1])  # the copy is made before threads ask for it
            missing = self._seen[index]
            for seen in np.unique(missing[missing < m]).tolist():
                self._approach(index[missing == seen], self.items.chosen_vectors(seen).astype(np.float32))
            self._seen[index] = m
        return np.minimum(2 - 2 * self._nearest[index] + DISTANCE_ALLOWANCE, self.ceiling)

    def _approach(self, index: np.ndarray, rows: np.ndarray) -> None:
        def task(part: slice) -> None:
            some = index[part]
            similar = (self.items.quick(some) @ rows).max(axis=1)
            self._nearest[some] = np.maximum(self._nearest[some], similar)

        self.items.spread(task, len(index), rows.shape[1])

    def add(self, item: int) -> float:
        """Choose an item; its squared distance from the others."""
        gain = float(self.evaluate(np.array([item]))[0]) if self.items.chosen else math.nan
        self.items.add(item)
        return gain
