"""Blocks of similarities on demand, for kernels without finite features."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Unpack

import numpy as np

from vendimeter.data.devices import diagonal
from vendimeter.errors import AsymmetryError
from vendimeter.present.numbers import digits
from vendimeter.similarity.base import Common, Index, Similarity, parts_of, positions_of
from vendimeter.similarity.checks import mending

__all__ = ["Pairwise"]

CHECKED_FULLY = 64  # up to this many items a user's function is called for both orders of each pair
DIAGONAL_BLOCK = 8  # items a block of the diagonal, of functions that compute blocks at once


class Pairwise(Similarity):
    """Blocks of similarities, computed when asked for.

    Parameters
    ----------
    n : int
        How many items.
    function : callable
        (rows, cols), two arrays of positions → the block of similarities.
    keys : callable, optional
        positions → something hashable an item; items with equal keys are identical.
    triangle : callable, optional
        positions → the square block among them, only its upper triangle (with the diagonal) filled in; for
        functions so slow that the other half should be mirrored.
    stacks : bool
        Whether `function` also takes stacks of positions, of shape (groups, items), and gives a stack of blocks.
    cost : float
        Of one similarity, in floating-point operations: for the planner.
    parts : sequence of Similarity
        Similarities that the blocks are computed from.
    **common
        As of every similarity: `kernel`, `policy`, `trusted`, `rounding`, `like` (an array on the device on which
        `function` computes its blocks) and `counter` (where `function` counts its calls, if it is a user's).
    """

    stacks: bool
    _cost: float
    _function: Callable[[np.ndarray, np.ndarray], Any]
    _keys: Callable[[np.ndarray], list[Hashable] | None] | None
    _triangle: Callable[[np.ndarray], np.ndarray] | None
    _sources: Sequence[Similarity]

    def __init__(
        self,
        n: int,
        function: Callable[[np.ndarray, np.ndarray], Any],
        *,
        keys: Callable[[np.ndarray], list[Hashable] | None] | None = None,
        triangle: Callable[[np.ndarray], np.ndarray] | None = None,
        stacks: bool = False,
        cost: float = 64.0,
        parts: Sequence[Similarity] = (),
        **common: Unpack[Common],
    ):
        super().__init__(
            n,
            stacks=stacks,
            _cost=cost,
            _function=function,
            _keys=keys,
            _triangle=triangle,
            _sources=parts,
            **common,
        )

    @property
    def cost(self) -> float:
        """Operations for one similarity, as its kernel estimates them."""
        return self._cost

    def block(self, rows: Index, cols: Index) -> Any:
        """Compute a block."""
        return self._function(positions_of(rows, self.n), positions_of(cols, self.n))

    def look(self, index: Index) -> None:
        """Check the similarities that the blocks are computed from; other samples were checked when this was made."""
        for source in {id(source): source for source in self._sources}.values():
            source.look(index)

    @property
    def called_by_pair(self) -> bool:
        """Whether each similarity is a call of a user's function."""
        return not self.trusted and self._triangle is not None

    @property
    def diagonal_block(self) -> int:
        """Items of a block for which `diagonal` calls a user's function: the calls or values it takes for each item."""
        return 1 if self._triangle is not None else DIAGONAL_BLOCK

    def diagonal(self) -> np.ndarray:
        """The similarity of each item with itself: a user's function of two items is called once an item for it."""
        if self.trusted:
            return super().diagonal()
        diagonals = [diagonal(self.block(part, part)) for part in parts_of(self.n, self.diagonal_block)]
        return np.concatenate(diagonals)

    def take(self, index: np.ndarray) -> Pairwise:
        """The similarities among the items at these positions, computed when asked for."""
        triangle = self._triangle
        return Pairwise(
            len(index),
            lambda rows, cols: self.block(index[rows], index[cols]),
            kernel=self.kernel,
            policy=self.policy,
            trusted=self.trusted,
            rounding=self.rounding,
            keys=lambda positions: self.keys(index[positions]),
            triangle=None if triangle is None else lambda positions: triangle(index[positions]),
            like=self.like,
            stacks=self.stacks,
            cost=self._cost,
            counter=self.counter,
        )

    def dense(self, index: np.ndarray | None = None) -> Any:
        """All of K; for a user's function beyond 64 items half is mirrored, and a sample of it checked."""
        if self.trusted or self.like is not None:
            return super().dense(index)
        positions = np.arange(self.n) if index is None else index
        matrix = np.empty((len(positions), len(positions)))
        is_mirrored = len(positions) > CHECKED_FULLY and not self.policy.symmetrize
        strips = parts_of(len(positions))
        for i, rows in enumerate(strips):
            for cols in strips[i if is_mirrored else 0 :]:
                if rows is cols and is_mirrored and self._triangle is not None:
                    upper = np.triu(self._triangle(positions[rows]))
                    matrix[rows, cols] = upper + np.triu(upper, 1).T
                else:
                    matrix[rows, cols] = self.block(positions[rows], positions[cols])
                    if is_mirrored and rows is not cols:
                        matrix[cols, rows] = matrix[rows, cols].T
        if is_mirrored:
            self._spot_check(matrix, positions)
        return matrix

    def _spot_check(self, matrix: np.ndarray, positions: np.ndarray) -> None:
        """Half of the matrix was mirrored: compute a random 32×32 block of that half and compare."""
        chosen = np.sort(np.random.default_rng(0).choice(len(positions), CHECKED_FULLY, replace=False))
        cols, rows = np.split(chosen, 2)  # below the diagonal, where no pair was computed
        block, mirrored = self.block(positions[rows], positions[cols]), matrix[np.ix_(rows, cols)]
        self.compare(block, mirrored, positions[rows], positions[cols])

    def compare(self, values: np.ndarray, swapped: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> None:
        """Raise `AsymmetryError` if k(row, col), `values`, and k(col, row), `swapped` of the same shape, differ."""
        difference = np.nan_to_num(np.abs(values - swapped))  # what is not finite is reported elsewhere
        if difference.max() > (1e-12 if self.precision.itemsize >= 8 else 1e-5):
            a, b = np.unravel_index(difference.argmax(), difference.shape)
            i, j = rows[a], cols[b]
            raise AsymmetryError(
                f"the function is not symmetric: it gives {digits(float(values[a, b]))} for items {i} and {j}, and "
                f"{digits(float(swapped[a, b]))} for items {j} and {i}. Expected one value; mend the function, or "
                f"{mending('symmetrize')} to average the two.",
                option="symmetrize",
            )

    def keys(self, index: Index) -> list[Hashable] | None:
        """Keys of the items, where they have any."""
        return self._keys(positions_of(index, self.n)) if self._keys else None
