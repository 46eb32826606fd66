"""Blocks of similarities on demand, for kernels without finite features."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from vendimeter.data.devices import diagonal
from vendimeter.errors import AsymmetryError, digits
from vendimeter.similarity.base import Calls, Index, Similarity, parts_of, positions_of
from vendimeter.similarity.checks import Policy, mending

__all__ = ["Pairwise"]

CHECKED_FULLY = 64  # up to this many items a user's function is called for both orders of each pair
OWN_BLOCK = 8  # items a block for the diagonal, of functions that are called for whole blocks


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
    like : array, optional
        An array on the device on which `function` computes its blocks.
    stacks : bool
        Whether `function` also takes stacks of positions, of shape (groups, items), and gives a stack of blocks.
    cost : float
        Of one similarity, in floating-point operations: for the planner.
    parts : sequence of Similarity
        What the blocks are put together from.
    counter : Calls, optional
        Where `function` counts its calls, if it is a user's.
    """

    stacks: bool
    _cost: float
    _function: Callable[[np.ndarray, np.ndarray], Any]
    _keys: Callable[[np.ndarray], list[Hashable] | None] | None
    _triangle: Callable[[np.ndarray], np.ndarray] | None
    _parts: Sequence[Similarity]

    def __init__(
        self,
        n: int,
        function: Callable[[np.ndarray, np.ndarray], Any],
        *,
        rounding: float = 0.0,
        trusted: bool = True,
        policy: Policy | None = None,
        keys: Callable[[np.ndarray], list[Hashable] | None] | None = None,
        triangle: Callable[[np.ndarray], np.ndarray] | None = None,
        like: Any = None,
        stacks: bool = False,
        cost: float = 64.0,
        parts: Sequence[Similarity] = (),
        counter: Calls | None = None,
        kernel: Any = None,
    ):
        super().__init__(
            n,
            kernel=kernel,
            policy=policy,
            trusted=trusted,
            rounding=rounding,
            like=like,
            stacks=stacks,
            _cost=cost,
            _function=function,
            _keys=keys,
            _triangle=triangle,
            _parts=parts,
            counter=counter,
        )

    @property
    def cost(self) -> float:
        """Operations for one similarity, as its kernel estimates them."""
        return self._cost

    def block(self, rows: Index, cols: Index) -> Any:
        """Compute a block."""
        return self._function(positions_of(rows, self.n), positions_of(cols, self.n))

    def look(self, index: Index) -> None:
        """Look at what the blocks are put together from; samples of others were looked at when this was made."""
        for part in {id(part): part for part in self._parts}.values():
            part.look(index)

    @property
    def own_cost(self) -> int:
        """How many items at a time a user's function is asked for by `diagonal`: so many calls or values an item."""
        return 1 if self._triangle is not None else OWN_BLOCK

    def diagonal(self) -> np.ndarray:
        """The similarity of each item with itself: a user's function of two items is called once an item for it."""
        if self.trusted:
            return super().diagonal()
        own = [diagonal(self.block(part, part)) for part in parts_of(self.n, self.own_cost)]
        return np.concatenate(own)

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
            keys=lambda places: self.keys(index[places]),
            triangle=None if triangle is None else lambda places: triangle(index[places]),
            like=self.like,
            stacks=self.stacks,
            cost=self._cost,
            counter=self.counter,
        )

    def dense(self, index: np.ndarray | None = None) -> Any:
        """The whole of K; of a user's function beyond 64 items half is mirrored, and a sample of it checked."""
        if self.trusted or self.like is not None:
            return super().dense(index)
        places = np.arange(self.n) if index is None else index
        matrix = np.empty((len(places), len(places)))
        mirror = len(places) > CHECKED_FULLY and not self.policy.symmetrize
        parts = parts_of(len(places))
        for i, rows in enumerate(parts):
            for cols in parts[i if mirror else 0 :]:
                if rows is cols and mirror and self._triangle is not None:
                    upper = np.triu(self._triangle(places[rows]))
                    matrix[rows, cols] = upper + np.triu(upper, 1).T
                else:
                    matrix[rows, cols] = self.block(places[rows], places[cols])
                    if mirror and rows is not cols:
                        matrix[cols, rows] = matrix[rows, cols].T
        if mirror:
            self._spot_check(matrix, places)
        return matrix

    def _spot_check(self, matrix: np.ndarray, places: np.ndarray) -> None:
        """Half of the matrix was mirrored: compute a random 32×32 part of it as it stands, and compare."""
        rows, cols = np.random.default_rng(0).integers(len(places), size=(2, 32))
        again, mirrored = self.block(places[rows], places[cols]), matrix[np.ix_(rows, cols)]
        self.compare(again, mirrored, places[rows], places[cols])

    def compare(self, there: np.ndarray, back: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> None:
        """Raise `AsymmetryError` if k(row, col), `there`, and k(col, row), `back` of the same shape, differ."""
        gap = np.nan_to_num(np.abs(there - back))  # what is not finite is reported elsewhere
        if gap.max() > (1e-12 if self.precision.itemsize >= 8 else 1e-5):
            a, b = np.unravel_index(gap.argmax(), gap.shape)
            i, j = rows[a], cols[b]
            raise AsymmetryError(
                f"the function is not symmetric: it gives {digits(float(there[a, b]))} for items {i} and {j}, and "
                f"{digits(float(back[a, b]))} for items {j} and {i}. Expected one value; mend the function, or "
                f"{mending('symmetrize')} to average the two.",
                option="symmetrize",
            )

    def keys(self, index: Index) -> list[Hashable] | None:
        """Keys of the items, where they have any."""
        return self._keys(positions_of(index, self.n)) if self._keys else None
