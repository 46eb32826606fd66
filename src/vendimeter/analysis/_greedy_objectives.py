"""What a greedy method asks of an objective, and the basis that several of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from vendimeter.analysis._greedy_items import Items

__all__ = ["Eigenbasis", "Objective"]

NOTHING = 1e-13  # eigenvalues below this share of the largest are rounding, or too little to matter


class Objective(ABC):
    """What an item adds to the chosen ones: never more, the more of them there are.

    Attributes
    ----------
    ceiling : float
        What no item can add more than.
    rough : bool
        Whether `bound` is quicker than `evaluate`, and not exact.
    notes : list of str
        What there is to say of how it was computed.
    """

    ceiling: float
    rough = False

    def __init__(self, items: Items):
        self.items = items
        self.notes: list[str] = []

    @abstractmethod
    def evaluate(self, index: np.ndarray) -> np.ndarray:
        """What each of the items would add now."""

    def bound(self, index: np.ndarray) -> np.ndarray:
        """At least what each would add now."""
        return self.evaluate(index)

    def slow_down(self) -> bool:
        """Rough bounds turned out too low: have none from now on. False if there were none."""
        was, self.rough = self.rough, False
        return was

    @abstractmethod
    def add(self, item: int) -> float:
        """Choose an item; how far that takes the method, in terms that mean something to people."""

    def go_on(self, best: float) -> bool:
        """No item adds more than `best`: whether the objective has become another one, so that bounds are void."""
        return False

    @property
    @abstractmethod
    def work(self) -> float:
        """Operations to evaluate one item now."""


class Eigenbasis:
    """The eigenvalues of Σ φφᵀ over the chosen items that are not 0, and their eigenvectors in the terms of rows."""

    def __init__(self, items: Items):
        self._items = items
        self.values = np.zeros(0)
        self.vectors = np.zeros((items.width, 0))

    def update(self) -> None:
        """Find them anew, from the smaller side."""
        items, m = self._items, len(self._items.chosen)
        wide = items.scatter is not None and m > len(items.scatter)
        values, vectors = np.linalg.eigh(items.scatter if wide else items.gram[:m, :m])  # type: ignore[arg-type]
        keep = values > NOTHING * m * values[-1]
        self.values, vectors = values[keep], vectors[:, keep]
        self.vectors = np.ascontiguousarray(
            vectors if wide else items.vectors(vectors / np.sqrt(self.values))
        )
