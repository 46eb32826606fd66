"""Tiles of pairs of rows, and the bounds that a product of matrices gives of their squared distances.

−low/2 = x·y − (‖x‖² + ‖y‖²)/2 + error/2 is what a tile holds: one product and two subtractions. What is asked of it are
comparisons with one number a row or a column, so that nothing else of the size of a tile is ever in floating point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.data.devices import evened, identity, move, namespace, positions, to_host, transposed

if TYPE_CHECKING:
    from vendimeter.metrics._distances import Space

__all__ = ["Bounds", "Points", "Precision", "Tile", "along", "length"]

CROWDED = 64  # a tile is done again in float64 when more than one pair in so many is in doubt

Look = tuple[Any, ...]  # masks of a tile and, last, how many pairs they mark


@dataclass(frozen=True)
class Precision:
    """What a product in some dtype can be off by: `relative`·(‖x‖² + ‖y‖²) + `absolute`, on either side of d²."""

    dtype: Any
    relative: float
    absolute: float

    def below(self, bounds: np.ndarray) -> np.ndarray:
        """Numbers in this precision that are not above the given ones; above −∞, which marks a row with itself."""
        cast = bounds.astype(self.dtype)
        cast = np.where(cast > bounds, np.nextafter(cast, self.dtype(-np.inf)), cast)
        return np.maximum(cast, np.finfo(self.dtype).min)

    def above(self, bounds: np.ndarray) -> np.ndarray:
        """Numbers in this precision that are not below the given ones."""
        return -self.below(-bounds)


@dataclass(frozen=True, eq=False)
class Points:
    """Rows of one set, their squared norms from the common centre, and labels that only equal rows share."""

    rows: Any
    norms: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return int(self.rows.shape[0])


@dataclass(frozen=True, eq=False)
class Tile:
    """Pairs of a block of rows with a block of columns; `first` are both in the first precision."""

    space: Space
    left: Points
    rows: slice
    right: Points
    columns: slice
    first: tuple[Any, Any]

    @property
    def diagonal(self) -> bool:
        """Whether a row of this tile meets itself."""
        return self.left is self.right and self.rows == self.columns

    def side(self, axis: int) -> tuple[Points, slice]:
        """The set and the rows of it along an axis."""
        return (self.right, self.columns) if axis else (self.left, self.rows)

    def judged(self, look: Callable[[Bounds], list[Look]], few: int = 0) -> tuple[Bounds, list[Look]]:
        """Bounds that leave little in doubt, and what there is to see in them.

        Parameters
        ----------
        look : callable
            Gives masks and, last, how many pairs they mark.
        few : int
            How many pairs are marked in any case.
        """
        for i, precision in enumerate(self.space.precisions):
            pair = self.first if i == 0 else tuple(self._cast(axis, precision) for axis in (0, 1))
            bounds = Bounds(self, precision, self._half(pair, precision))
            looks = look(bounds)
            if not bounds.crowded(max(marks for *_, marks in looks) - few):
                return bounds, looks
        raise AssertionError("the last precision is never too crowded")

    def _cast(self, axis: int, precision: Precision) -> Any:
        return self.space.cast(*self.side(axis), precision.dtype)

    def _half(self, pair: tuple[Any, ...], precision: Precision) -> Any:
        """−low/2 for every pair, and −∞ for a row with itself."""
        half = pair[0] @ transposed(pair[1])
        for axis in (0, 1):
            points, part = self.side(axis)
            share = 0.5 * (1 - precision.relative) * points.norms[part] - 0.25 * precision.absolute
            half -= along(share.astype(precision.dtype), axis, half)
        if not self.diagonal:
            return half
        if isinstance(half, np.ndarray):
            np.fill_diagonal(half, -np.inf)
            return half
        xp = namespace(half)
        return xp.where(identity(half.shape[0], half) > 0, xp.full_like(half, -math.inf), half)


@dataclass(frozen=True, eq=False)
class Bounds:
    """What a product says of the squared distances in a tile: −low/2 in `half`."""

    tile: Tile
    precision: Precision
    half: Any

    def at_least(self, thresholds: np.ndarray, axis: int) -> Any:
        """Where `half` reaches the threshold of its row (axis 0) or column (axis 1)."""
        return self.half >= along(thresholds, axis, self.half)

    def slack(self, axis: int) -> np.ndarray:
        """An upper bound of high − low for each row (axis 0) or column (axis 1)."""
        points, part = self.tile.side(axis)
        others, other = self.tile.side(1 - axis)
        norms = points.norms[part] + others.norms[other].max()
        return 2 * (self.precision.relative * norms + self.precision.absolute)

    def marked(self, mask: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The pairs at the marks: positions in the left and the right set, low and high."""
        half, precision, tile = self.half, self.precision, self.tile
        flat = positions(mask)
        xp = namespace(half)
        found = to_host(xp.take(xp.reshape(half, (-1,)), move(evened(flat, half), half), axis=0))
        low = 0.0 - 2.0 * found[: len(flat)].astype(np.float64)  # a distance of 0 has no sign
        rows, columns = np.divmod(flat, length(tile.columns))
        rows, columns = rows + tile.rows.start, columns + tile.columns.start
        norms = tile.left.norms[rows] + tile.right.norms[columns]
        high = low + 2 * (precision.relative * norms + precision.absolute)
        equal = tile.left.labels[rows] == tile.right.labels[columns]
        low[equal] = high[equal] = 0.0
        return rows, columns, low, high

    def crowded(self, marks: int) -> bool:
        """Whether so many pairs in doubt are worth a product that is more precise."""
        last = self.precision is self.tile.space.precisions[-1]
        return not last and marks > math.prod(self.half.shape) // CROWDED


def along(values: np.ndarray, axis: int, like: Any) -> Any:
    """One number a row (axis 0) or a column (axis 1), where a matrix lies and ready to be combined with it."""
    return move(values[:, None] if axis == 0 else values[None, :], like)


def length(part: slice) -> int:
    """How many rows a slice takes."""
    return part.stop - part.start
