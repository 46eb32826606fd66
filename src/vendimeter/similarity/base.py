"""What every kind of similarity offers: blocks, the whole matrix, and what tells items apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any

import numpy as np

from vendimeter._arrays import blocks
from vendimeter._devices import DEVICE_BYTES, as_like, concat, transposed
from vendimeter._matrix_checks import Policy

__all__ = ["Index", "Similarity", "parts_of", "positions_of", "span"]

Index = slice | np.ndarray


def positions_of(index: Index, n: int) -> np.ndarray:
    """The positions that an index of n items stands for."""
    return np.arange(*index.indices(n)) if isinstance(index, slice) else index


class Similarity(ABC):
    """How similar the n items are to each other."""

    n: int
    rounding: float = 0.0
    trusted: bool = True
    policy: Policy = Policy()
    kernel: Any = None  # the kernel it came from, with every parameter fitted
    like: Any = None  # an array on the device where blocks are computed; None for the host
    precision: np.dtype = np.dtype(np.float64)  # the coarsest dtype that entries came in
    calls: int = 0  # how many similarities a user's function was asked for
    cost: float = 64.0  # of one similarity, in floating-point operations at the speed of a matrix product

    @abstractmethod
    def block(self, rows: Index, cols: Index) -> Any:
        """The similarities of some items with some others, dense, float64, where `like` is."""

    @abstractmethod
    def look(self, index: Index, policy: Policy) -> None:
        """Refuse items that cannot be compared, as far as they themselves tell: in one pass, without comparing any."""

    @property
    def entry_error(self) -> float:
        """Bound on the error of an entry of `block`."""
        return self.rounding

    def diagonal(self) -> np.ndarray:
        """The similarity of each item with itself, on the host."""
        return np.ones(self.n)

    def keys(self, index: Index) -> list[Hashable] | None:
        """Something hashable for each item such that items with equal keys are identical, or None."""
        return None

    @property
    def _step(self) -> int:
        """How many rows of K to compute at a time."""
        return 1024

    @abstractmethod
    def take(self, index: np.ndarray) -> Similarity:
        """The similarities among the items at these positions."""

    def _on_device(self, places: np.ndarray) -> Any:
        """K from blocks that are joined: not all libraries can write into an array. Half of them are mirrored."""
        width = max(getattr(self, "width", 1), len(places) // 8)
        parts = [span(places[part]) for part in blocks(len(places), width, most=DEVICE_BYTES)]
        grid: list[list[Any]] = [[None] * len(parts) for _ in parts]
        for i, rows in enumerate(parts):
            for j in range(i, len(parts)):
                block = as_like(self.block(rows, rows if i == j else parts[j]), self.like)
                if self.trusted:
                    grid[j][i] = transposed(block)
                grid[i][j] = block
            for j in range(i if not self.trusted else 0):  # a user's function is asked for both halves
                grid[i][j] = as_like(self.block(rows, parts[j]), self.like)
        return concat([concat(row, axis=1) for row in grid])

    def dense(self, index: np.ndarray | None = None) -> Any:
        """The whole of K, or of its part at `index`, from blocks of its upper triangle."""
        places = np.arange(self.n) if index is None else index
        if self.like is not None:
            return self._on_device(places)
        matrix = np.empty((len(places), len(places)))
        parts = parts_of(len(places), self._step)
        for i, rows in enumerate(parts):
            left = places[rows]
            for cols in parts[i:]:
                part = self.block(left, left if cols is rows else places[cols])
                matrix[rows, cols] = part
                matrix[cols, rows] = part.T
        return matrix


def span(places: np.ndarray) -> Index:
    """Positions that follow one another as a slice, which costs no gathering."""
    if len(places) and places[-1] - places[0] == len(places) - 1 and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def parts_of(size: int, step: int = 1024) -> list[slice]:
    """Blocks of a square matrix: large enough for BLAS, small enough to stay clear of a second copy."""
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]
