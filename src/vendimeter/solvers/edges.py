"""The threshold graph of a collection: pairs of items above a similarity, tile by tile, never the whole matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from vendimeter.data.devices import to_host
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.options import as_number
from vendimeter.present.progress import Progress
from vendimeter.similarity import Index, Matrix, Pairwise, Remembered, Similarity
from vendimeter.similarity.base import parts_of, positions_of
from vendimeter.similarity.checks import check_diagonal, entry_tolerance, not_finite
from vendimeter.solvers.sums import check_largest
from vendimeter.spectrum import UNIT

__all__ = ["Entries", "join_components", "within"]

TILE = 1024  # items on a side of a tile, at most: 8 MiB of similarities
CALLED_TILE = 64  # the same where each similarity is a call, and those on both sides of the diagonal are two
BOTH_WAYS = 8  # items of a tile on each side for which a user's function is asked in both orders

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def within(value: Any, name: str, low: float, high: float, what: str) -> float:
    """Check that a number lies between two others."""
    number = as_number(value)
    if not low <= number <= high:
        raise InputError(f"{name}={brief(value)}; expected {what}, a number from {low:g} to {high:g}.")
    return number


class Entries:
    """Blocks of similarities; those of a user's matrix or function are checked on the way.

    Parameters
    ----------
    similarity : Similarity
        How similar the items are.
    names : ndarray, optional
        The user's own positions of the items, for messages, where some items were left out.

    Attributes
    ----------
    slack : float
        How far a similarity may be off by rounding; a pair that is this close to a threshold counts as having met it.
    """

    def __init__(self, similarity: Similarity, names: np.ndarray | None = None):
        self.n = similarity.n
        self._names = np.arange(self.n) if names is None else names
        self._scale: np.ndarray | None = None
        diagonal_error = 0.0
        if isinstance(similarity, Matrix):
            similarity = similarity.checked()
        elif isinstance(similarity, Remembered):
            similarity.complete()
        self._inner = similarity
        self._is_user_function = isinstance(similarity, Pairwise) and not similarity.trusted
        if self._is_user_function:
            diagonal_error = self._check_diagonal(similarity)
        self.slack = similarity.entry_error + diagonal_error + 4 * UNIT

    @property
    def step(self) -> int:
        """How many items a tile has on a side: fewer of very wide rows, and where each similarity is a call."""
        similarity = self._inner
        called = isinstance(similarity, Pairwise) and similarity.called_by_pair
        return max(1, min(CALLED_TILE if called else TILE, similarity.step))

    def block(self, rows: Index, cols: Index) -> Any:
        """Similarities in float64, on the device of the samples."""
        values = self._inner.block(rows, cols)
        if self._is_user_function:
            values = self._check_and_mend(to_host(values), rows, cols)
        if not self._inner.trusted:
            check_largest(values, self._inner)
        return values

    def near(self, rows: Index, cols: Index, cut: float) -> np.ndarray:
        """Which similarities are at least `cut`, on the host."""
        return to_host(self.block(rows, cols) >= cut)

    def edges(self, cut: float, *, values: bool = False, label: str = "graph") -> Iterator[Pairs]:
        """Pairs i < j with a similarity of at least `cut`, some at a time, with their similarities where wanted."""
        if isinstance(self._inner, Matrix) and self._inner.sparse and cut > 0:  # what is not stored is 0
            check_largest(self._inner.data, self._inner)
            entries = self._inner.data.tocoo()
            kept = (entries.data >= cut) & (entries.row < entries.col)
            yield entries.row[kept], entries.col[kept], entries.data[kept] if values else None
            return
        strips = parts_of(self.n, self.step)
        with Progress(label) as progress:
            for number, rows in enumerate(strips):
                for cols in strips[number:]:
                    yield self._tile(rows, cols, cut, values)
                left = len(strips) - number - 1
                progress.step(1 - left * (left + 1) / (len(strips) * (len(strips) + 1)))

    def _tile(self, rows: slice, cols: slice, cut: float, values: bool) -> Pairs:
        """The pairs i < j of one tile with a similarity of at least `cut`."""
        similarities = self.block(rows, rows if rows == cols else cols)
        is_edge = to_host(similarities >= cut)
        i, j = np.nonzero(np.triu(is_edge, 1) if rows == cols else is_edge)
        return i + rows.start, j + cols.start, to_host(similarities)[i, j] if values else None

    # ------------------------------------------------------------------------------------- what a user's function gives

    def _check_diagonal(self, similarity: Similarity) -> float:
        """How far the diagonal of a user's function is off 1 by rounding; beyond that it is an error."""
        diagonal = similarity.diagonal()
        if not np.isfinite(diagonal).all():
            i = int(np.flatnonzero(~np.isfinite(diagonal))[0])
            raise not_finite(diagonal[i], self._names[i], self._names[i], "k")
        if similarity.policy.normalize:
            self._scale = 1 / np.sqrt(diagonal)
        tolerance = entry_tolerance(similarity.precision)
        return check_diagonal(diagonal, "k", similarity.policy, tolerance, self._names)

    def _check_and_mend(self, block: np.ndarray, rows: Index, cols: Index) -> np.ndarray:
        """Check that a block is finite and, on a sample, symmetric; average and normalise where the kernel says so."""
        similarity = self._inner
        assert isinstance(similarity, Pairwise)
        if not np.isfinite(block).all():
            i, j = (int(k) for k in np.argwhere(~np.isfinite(block))[0])
            a, b = self._names[positions_of(rows, self.n)[i]], self._names[positions_of(cols, self.n)[j]]
            raise not_finite(float(block[i, j]), a, b, "k")
        i, j = positions_of(rows, self.n), positions_of(cols, self.n)
        if similarity.policy.symmetrize:
            block = (block + (block if cols is rows else to_host(similarity.block(cols, rows))).T) / 2
        elif cols is rows:
            similarity.compare(block, block.T, self._names[i], self._names[j])
        else:
            first, last = i[:BOTH_WAYS], j[-BOTH_WAYS:]
            mirrored = to_host(similarity.block(last, first)).T
            similarity.compare(
                block[:BOTH_WAYS, -BOTH_WAYS:], mirrored, self._names[first], self._names[last]
            )
        if self._scale is not None:
            block = block * self._scale[i][:, None] * self._scale[j]
        return block


def join_components(labels: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Update the labels of connected components for more edges, of which few join two components."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    left, right = labels[i], labels[j]
    joins_two = left != right
    if not joins_two.any():
        return labels
    count = int(labels.max()) + 1
    left, right = left[joins_two], right[joins_two]
    graph = sparse.coo_array((np.ones(len(left), dtype=bool), (left, right)), shape=(count, count))
    return connected_components(graph.tocsr(), directed=False)[1][labels]
