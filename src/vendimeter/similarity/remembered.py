"""Similarities of pairs that are computed once and kept: of a user's function, or of a kernel without features."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

import numpy as np

from vendimeter.similarity.base import Index, Similarity, parts_of, positions_of
from vendimeter.similarity.matrix import Matrix, checked_matrix
from vendimeter.similarity.pairwise import CHECKED_FULLY, Pairwise

__all__ = ["Remembered", "distinct_count"]


class Remembered(Pairwise):
    """The same similarities as another `Pairwise`, which is asked for each pair only once.

    A user's function is never called again for two items in the same order; of the package's own kernels all
    similarities are kept once all were needed. Items with equal keys are one item. What is taken shares the memory.

    Parameters
    ----------
    source : Pairwise
        On the host.

    Examples
    --------
    >>> import numpy as np
    >>> calls = []
    >>> def function(rows, cols):
    ...     calls.append(len(rows) * len(cols))
    ...     return np.eye(4)[np.ix_(rows, cols)]
    >>> similarity = Remembered(Pairwise(4, function, trusted=False))
    >>> for columns in (2, 3):
    ...     _ = similarity.block(slice(0, 2), slice(0, columns))
    >>> calls
    [4, 2]
    """

    _memory: _Memory
    _index: np.ndarray

    def __init__(self, source: Pairwise, memory: _Memory | None = None, index: np.ndarray | None = None):
        index = np.arange(source.n) if index is None else index
        super().__init__(
            len(index),
            source.block,
            kernel=source.kernel,
            policy=source.policy,
            trusted=source.trusted,
            rounding=source.rounding,
            keys=None,
            triangle=source._triangle,
            cost=source.cost,
            parts=source._sources,
            counter=source.counter,
        )
        vars(self).update(_memory=_Memory(source) if memory is None else memory, _index=index, stacks=False)

    @property
    def is_complete(self) -> bool:
        """Whether all similarities are known."""
        return self._memory.is_complete

    @property
    def bytes(self) -> int:
        """What is kept, in bytes."""
        values = self._memory.values
        return 0 if values is None else values.nbytes

    @property
    def called_by_pair(self) -> bool:
        """Whether each similarity is a call of a user's function, of which some were not made yet."""
        return super().called_by_pair and not self.is_complete

    def complete(self) -> None:
        """Compute all similarities of these items that are not known; some items of a kernel of ours are not kept."""
        self._memory.complete(self._index)

    def block(self, rows: Index, cols: Index) -> np.ndarray:
        """A block: what is known of it is looked up, the rest computed."""
        rows, cols = self._index[positions_of(rows, self.n)], self._index[positions_of(cols, self.n)]
        return self._memory.block(rows, cols)

    def dense(self, index: np.ndarray | None = None) -> np.ndarray:
        """All of K, or its submatrix at `index`; half of it is mirrored, and a sample of that checked."""
        return self._memory.dense(self._index if index is None else self._index[index])

    def take(self, index: np.ndarray) -> Remembered:
        """The similarities among the items at these positions, with the same memory."""
        return Remembered(self._memory.source.with_kernel(self.kernel), self._memory, self._index[index])

    def keys(self, index: Index) -> list[Hashable] | None:
        """The number of each distinct item, where the items can be told apart."""
        memory = self._memory
        if memory.group is None:
            return None
        return list(memory.group[self._index[positions_of(index, self.n)]].tolist())

    def matrix(self) -> Similarity:
        """All similarities as a checked matrix, once they are known and no two items are the same; else this."""
        memory = self._memory
        if not memory.is_complete or memory.group is not None or self.n != memory.source.n:
            return self
        assert memory.values is not None
        if not self.trusted:
            return checked_matrix(memory.values, self)
        rounding = self.entry_error
        return Matrix(memory.values, policy=self.policy, trusted=True, rounding=rounding, kernel=self.kernel)


def distinct_count(source: Pairwise) -> int:
    """How many different items there are, as far as their keys tell."""
    keys = source.keys(slice(0, source.n))
    return source.n if keys is None else len(set(keys))


class _Memory:
    """The similarities that are known, of distinct items; NaN where they are not.

    Attributes
    ----------
    source : Pairwise
        What computes them.
    first : ndarray
        The first position of each distinct item.
    group : ndarray or None
        Which distinct item each item is; None where all of them are.
    values : ndarray or None
        The similarities; None before any is kept.
    is_complete : bool
        Whether all are known.
    """

    def __init__(self, source: Pairwise):
        self.source = source
        self.first, self.group = np.arange(source.n), None
        keys = source.keys(slice(0, source.n))
        if keys is not None:
            numbers: dict[Any, int] = {}
            group = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
            if len(numbers) < source.n:
                self.first, self.group = np.unique(group, return_index=True)[1], group
        self.values: np.ndarray | None = None
        self.is_complete = False
        self._checked: set[bytes] = set()  # which items have been compared with each other in both orders
        self._lock = threading.RLock()

    def _distinct(self, positions: np.ndarray) -> np.ndarray:
        return positions if self.group is None else self.group[positions]

    def block(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The similarities of items at some positions with those at others."""
        if self.source.trusted and not self.is_complete:
            return self.source.block(rows, cols)
        left, right = self._distinct(rows), self._distinct(cols)
        if not self.is_complete:
            with self._lock:
                self._fill(np.unique(left), np.unique(right))
        return self._values[np.ix_(left, right)]

    def dense(self, positions: np.ndarray) -> np.ndarray:
        """The similarities of items at some positions with each other."""
        if not self.complete(positions):
            return self.source.dense(positions)
        items = self._distinct(positions)
        return self._values[np.ix_(items, items)]

    def complete(self, positions: np.ndarray) -> bool:
        """Compute what is not known of the similarities of items at some positions; False where they are not kept."""
        distinct = np.unique(self._distinct(positions))
        with self._lock:
            if not self.is_complete:
                if self.source.trusted and len(distinct) < len(self.first):
                    return False
                self._complete(distinct)
        return True

    @property
    def _values(self) -> np.ndarray:
        if self.values is None:
            self.values = np.full((len(self.first), len(self.first)), np.nan)
        return self.values

    def _fill(self, rows: np.ndarray, cols: np.ndarray, wanted: np.ndarray | None = None) -> None:
        """Compute what is not known of a block, or of what is wanted of it: in one call for rows that lack the same."""
        values = self._values
        missing = np.isnan(values[np.ix_(rows, cols)])
        if wanted is not None:
            missing &= wanted
        if missing.all():
            values[np.ix_(rows, cols)] = self.source.block(self.first[rows], self.first[cols])
        elif missing.any():
            patterns, pattern_of_row = np.unique(missing, axis=0, return_inverse=True)
            for number, pattern in enumerate(patterns):
                if pattern.any():
                    some_rows, some_cols = rows[pattern_of_row.ravel() == number], cols[pattern]
                    block = self.source.block(self.first[some_rows], self.first[some_cols])
                    values[np.ix_(some_rows, some_cols)] = block

    def _complete(self, items: np.ndarray) -> None:
        """Compute what is not known of the similarities of these distinct items with each other."""
        if items.tobytes() in self._checked:
            return
        everything = len(items) == len(self.first)
        square = np.ix_(items, items)
        source = self.source
        if self.values is None or np.isnan(self.values[square]).all():
            everything_of_source = everything and len(items) == source.n
            block = source.dense(None if everything_of_source else self.first[items])
            if everything:
                self.values = block
            else:
                self._values[square] = block
        elif len(items) <= CHECKED_FULLY or source.policy.symmetrize:
            self._fill(items, items)
            if not source.policy.symmetrize:
                block = self.values[square]
                source.compare(block, block.T, self.first[items], self.first[items])
        else:
            self._complete_triangle(items)
        self._checked.add(items.tobytes())
        if everything:
            self.is_complete = True

    def _complete_triangle(self, items: np.ndarray) -> None:
        """Compute the pairs of which neither order is known, mirror the others, and check a sample."""
        values = self._values
        strips = parts_of(len(items))
        for i, strip in enumerate(strips):
            for other in strips[i:]:
                rows, cols = items[strip], items[other]
                block, mirrored = values[np.ix_(rows, cols)], values[np.ix_(cols, rows)].T
                values[np.ix_(rows, cols)] = np.where(np.isnan(block), mirrored, block)
                self._fill(rows, cols, np.triu(np.ones(block.shape, dtype=bool)) if other is strip else None)
                block, mirrored = values[np.ix_(rows, cols)], values[np.ix_(cols, rows)].T
                values[np.ix_(cols, rows)] = np.where(np.isnan(mirrored), block, mirrored).T
        self.source._spot_check(values[np.ix_(items, items)], self.first[items])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())
