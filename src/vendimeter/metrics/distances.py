"""Euclidean distances between many rows, as exact as they are asked for, at the speed of matrix products.

The squared distance of two rows is Σ(x−y)² in float64, differences first, added up in one order that depends on the
number of columns alone. So d(x, y) = d(y, x), equal rows lie at distance 0, and no result depends on how the work was
cut into blocks, on the library, or on how a product of matrices rounds.

A product gives every pair only bounds, low ≤ d² ≤ high, from ‖x‖² + ‖y‖² − 2 x·y and what rounding can do to it: on the
host first in float32, then, where that leaves much in doubt, in float64. Pairs that are still in doubt are computed by
the formula. For whole numbers that are small enough the products themselves are exact and nothing is in doubt.

A tile of pairs of rows holds −low/2 = x·y − (‖x‖² + ‖y‖²)/2 + error/2: one product and two subtractions. All questions
to it are comparisons with one number a row or a column, so that nothing else of the size of a tile is ever in floating
point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import (
    DEVICE_BYTES,
    concat,
    double,
    evened,
    identity,
    is_foreign,
    is_gpu,
    move,
    namespace,
    positions,
    select,
    to_host,
    transposed,
)
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.metrics.features import wide_block
from vendimeter.present.numbers import format_bytes
from vendimeter.present.progress import Progress

__all__ = ["Bounds", "Points", "Precision", "Space", "Tile", "along", "length"]

# Bytes beside the rows; a GPU has more and wants larger tiles.
MEMORY, GPU_MEMORY = 256 << 20, 4 << 30
# Rows on each side of a product, at most: on the host its 4 MiB stay in the cache while they are compared.
TILE, GPU_TILE = 1024, 4096
# Of differences that are squared and summed at a time: they stay in the cache.
DIRECT_BYTES = 1 << 20
# A tile is computed again in float64 where more than one pair in so many is in doubt.
PAIRS_PER_DOUBT = 64
# Binary exponents of the largest entry, up or down, that need no scaling.
MAX_UNSCALED_EXPONENT = 20

Masks = tuple[Any, ...]  # masks of a tile and, last, how many pairs they mark


class Space:
    """One or two sets of rows with a common centre and a common unit, and the budget of the work on them.

    Parameters
    ----------
    sets : dict
        Rows by the name of the argument: NumPy's, or all of one other library.
    memory : int, optional
        Bytes that the work may take beside the rows and a few numbers for each of them and of its neighbours.
    progress : Progress, optional
        What is told how far the work is.
    pairs : float
        How many pairs there are to look at, for the progress.

    Attributes
    ----------
    computed : int
        How many squared distances the formula gave so far.
    """

    def __init__(
        self,
        sets: dict[str, Any],
        memory: int | None = None,
        progress: Progress | None = None,
        pairs: float = 1.0,
    ):
        like = next(iter(sets.values()))
        self.width = int(like.shape[1])
        self._like, self._foreign, gpu = like, is_foreign(like), is_gpu(like)
        memory = memory or (GPU_MEMORY if gpu else MEMORY)
        min_memory = 128 * self.width + 4096
        if memory < min_memory:
            raise InputError(
                f"memory={brief(memory)}; expected at least {format_bytes(min_memory)} for rows of {self.width} "
                "columns."
            )
        self._block_bytes = min(DEVICE_BYTES if gpu else BLOCK_BYTES, memory // 8)
        self._direct_bytes = min(DEVICE_BYTES // 4 if gpu else DIRECT_BYTES, memory // 8)
        self.tile = max(
            1, min(GPU_TILE if gpu else TILE, memory // (128 * self.width), math.isqrt(memory // 160))
        )
        self.pairs_held = memory // 512
        self._strip_bytes = memory // 4
        self._progress, self._pairs, self._done = progress, pairs, 0.0
        self.computed = 0
        self._measure(sets)

    # ------------------------------------------------------------------------------------------- centre, unit, norms

    def _measure(self, sets: dict[str, Any]) -> None:
        """Set centre, unit, norms and precisions from all entries: the largest decides on the unit."""
        largest_entry, all_whole = 0.0, True
        for name, rows in sets.items():
            for span in self._blocks(rows):
                block = wide_block(rows, span, name)
                xp = namespace(block)
                largest_entry = max(largest_entry, float(xp.max(block)), -float(xp.min(block)))
                all_whole = all_whole and bool(xp.all(block == xp.round(block)))
        exponent = math.frexp(largest_entry)[1]
        # d² of the formula must neither overflow nor vanish, and products must fit into float32.
        self._scale = 0 if abs(exponent) <= MAX_UNSCALED_EXPONENT else -exponent
        # The lower median of each column: no outlier moves it, and integer data stay integer.
        centre = np.quantile(self._sample_rows(sets), 0.5, axis=0, method="lower")
        self._centre = _scaled(double(move(centre, self._like)), self._scale)
        self.sets, start = [], 0
        for rows in sets.values():
            stop = start + rows.shape[0]
            self.sets.append(Points(rows, self._norms(rows), np.arange(start, stop)))
            start = stop
        self._label_equal_rows()
        self.precisions = self._precisions(all_whole and exponent <= 53)

    def _sample_rows(self, sets: dict[str, Any]) -> np.ndarray:
        """Some rows of each set, evenly spread."""
        max_rows = max(1, self._block_bytes // (16 * self.width))
        steps = {name: -(-rows.shape[0] // max_rows) for name, rows in sets.items()}
        row_samples = [
            to_host(double(select(rows, slice(0, None, steps[name])))) for name, rows in sets.items()
        ]
        return np.concatenate(row_samples)

    def _norms(self, rows: Any) -> np.ndarray:
        norms = np.empty(rows.shape[0])
        for span in self._blocks(rows):
            block = self._centred(rows, span)
            if isinstance(block, np.ndarray):
                norms[span] = np.einsum("ij,ij->i", block, block)
            else:
                norms[span] = to_host(namespace(block).sum(block * block, axis=1))
        return norms

    def _label_equal_rows(self) -> None:
        """Give each row the label of an earlier equal one: such pairs are at distance 0, which no bounds tell."""
        norms = np.concatenate([points.norms for points in self.sets])
        _, firsts, groups = np.unique(norms, return_index=True, return_inverse=True)
        earlier = np.split(firsts[groups.reshape(-1)], [len(self.sets[0])])
        starts = [points.labels[0] for points in self.sets]
        for points, candidates in zip(self.sets, earlier, strict=False):
            for others, start in zip(self.sets, starts, strict=True):
                indices = candidates - start
                rows = np.flatnonzero((indices >= 0) & (indices < len(others)) & (candidates < points.labels))
                equal = rows[self.squares(points, rows, others, indices[rows]) == 0]
                points.labels[equal] = candidates[equal]

    def _precisions(self, all_whole: bool) -> list[Precision]:
        """The precisions of products to try, one after the other, with their error bounds."""
        largest_norm, d = max(float(points.norms.max()) for points in self.sets), self.width
        largest_norm = math.ldexp(largest_norm, -2 * self._scale) if all_whole else math.inf
        unit32, unit64 = float(np.finfo(np.float32).eps) / 2, float(np.finfo(np.float64).eps) / 2
        # Roundings an entry: the product and its casts d + 2, the norms d + 2; the centre, the comparison and the
        # formula itself fewer than 128, for any d. The absolute part is for underflow.
        error = (2 * d + 128) * unit64
        double_precision = Precision(np.float64, error, d * 2.0**-990)
        if largest_norm <= 2**50:
            double_precision = Precision(np.float64, 0.0, 0.0)
        if self._foreign or (d + 16) * unit32 > 0.01:
            return [double_precision]
        if largest_norm <= 2**21:
            return [Precision(np.float32, 0.0, 0.0)]
        rounding = (d + 16) * unit32 / (1 - (d + 16) * unit32)
        return [Precision(np.float32, rounding + error, d * 2.0**-100), double_precision]

    def _blocks(self, rows: Any) -> list[slice]:
        return blocks(rows.shape[0], self.width, most=self._block_bytes)

    def _centred(self, rows: Any, span: slice) -> Any:
        block = _scaled(double(select(rows, span)), self._scale)
        block -= self._centre
        return block

    def cast(self, points: Points, span: slice, dtype: Any) -> Any:
        """Some rows from the common centre, in the dtype of a product."""
        if self._foreign:
            return self._centred(points.rows, span)
        rows = points.rows[span]
        block = np.empty(rows.shape, dtype)
        for piece in self._blocks(rows):
            block[piece] = self._centred(rows, piece)
        return block

    # -------------------------------------------------------------------------------------------------- the formula

    def squares(self, left: Points, i: np.ndarray, right: Points, j: np.ndarray) -> np.ndarray:
        """The squared distances of pairs of rows by the formula, in the scale of `lengths`."""
        squared_distances = np.empty(len(i))
        self.computed += len(i)
        for span in blocks(len(i), self.width, most=self._direct_bytes):
            rows, others = (evened(indices[span], self._like) for indices in (i, j))
            difference = _scaled(double(select(left.rows, rows)), self._scale)
            difference -= _scaled(double(select(right.rows, others)), self._scale)
            difference *= difference
            squared_distances[span] = to_host(_row_sums(difference))[: length(span)]
        return squared_distances

    def lengths(self, squares: np.ndarray) -> np.ndarray:
        """Distances in the unit of the data; what is beyond float64 is infinite."""
        with np.errstate(over="ignore"):
            return np.ldexp(np.sqrt(squares), -self._scale)

    # --------------------------------------------------------------------------------------------------------- tiles

    def tiles(self, left: Points, right: Points) -> Iterator[Tile]:
        """All pairs, tile by tile; of a set with itself, each pair of tiles once, columns of a row in their order."""
        same_set, dtype = left is right, self.precisions[0].dtype
        strip_rows = self._strip_bytes // (self.width * np.dtype(dtype).itemsize)
        for strip in _slices(0, len(left), max(1, strip_rows // self.tile) * self.tile):
            strip_block = self.cast(left, strip, dtype)
            for columns in _slices(strip.start if same_set else 0, len(right), self.tile):
                column_block = (
                    strip_block[_relative_slice(columns, strip), :]
                    if same_set and columns.stop <= strip.stop
                    else self.cast(right, columns, dtype)
                )
                for rows in _slices(strip.start, strip.stop, self.tile):
                    if same_set and rows.start > columns.start:
                        break
                    yield Tile(
                        self,
                        left,
                        rows,
                        right,
                        columns,
                        (strip_block[_relative_slice(rows, strip), :], column_block),
                    )
                    self._advance((1 + (same_set and rows != columns)) * length(rows) * length(columns))

    def _advance(self, pairs: int) -> None:
        self._done += pairs
        if self._progress is not None:
            self._progress.step(self._done / self._pairs)


# ----------------------------------------------------------------------------------------------------- tiles and bounds


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
    """Pairs of a block of rows with a block of columns; `blocks` are both in the first precision."""

    space: Space
    left: Points
    rows: slice
    right: Points
    columns: slice
    blocks: tuple[Any, Any]

    @property
    def diagonal(self) -> bool:
        """Whether the tile lies on the diagonal, where each row is compared with itself."""
        return self.left is self.right and self.rows == self.columns

    def side(self, axis: int) -> tuple[Points, slice]:
        """The set that lies along an axis, and which of its rows."""
        return (self.right, self.columns) if axis else (self.left, self.rows)

    def bounds_and_masks(
        self, make_masks: Callable[[Bounds], list[Masks]], min_marks: int = 0
    ) -> tuple[Bounds, list[Masks]]:
        """Bounds precise enough to leave few pairs in doubt, and the masks made of them.

        Parameters
        ----------
        make_masks : callable
            Gives masks and, last, how many pairs they mark.
        min_marks : int
            How many pairs are marked however precise the bounds are.
        """
        for i, precision in enumerate(self.space.precisions):
            factors = self.blocks if i == 0 else tuple(self._cast(axis, precision) for axis in (0, 1))
            bounds = Bounds(self, precision, self._half_distances(factors, precision))
            masks = make_masks(bounds)
            if not bounds.too_many(max(marks for *_, marks in masks) - min_marks):
                return bounds, masks
        raise AssertionError("the last precision is never too crowded")

    def _cast(self, axis: int, precision: Precision) -> Any:
        return self.space.cast(*self.side(axis), precision.dtype)

    def _half_distances(self, factors: tuple[Any, ...], precision: Precision) -> Any:
        """−low/2 for every pair, and −∞ for a row with itself."""
        half = factors[0] @ transposed(factors[1])
        for axis in (0, 1):
            points, span = self.side(axis)
            share = 0.5 * (1 - precision.relative) * points.norms[span] - 0.25 * precision.absolute
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
    """The bounds that a product gives of the squared distances in a tile: −low/2 in `half`."""

    tile: Tile
    precision: Precision
    half: Any

    def at_least(self, thresholds: np.ndarray, axis: int) -> Any:
        """Where `half` reaches the threshold of its row (axis 0) or column (axis 1)."""
        return self.half >= along(thresholds, axis, self.half)

    def slack(self, axis: int) -> np.ndarray:
        """An upper bound of high − low for each row (axis 0) or column (axis 1)."""
        points, span = self.tile.side(axis)
        others, other_part = self.tile.side(1 - axis)
        norms = points.norms[span] + others.norms[other_part].max()
        return 2 * (self.precision.relative * norms + self.precision.absolute)

    def pairs_at(self, mask: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The pairs at the marks of a mask: positions in the left and the right set, lower and upper bounds of d²."""
        half, precision, tile = self.half, self.precision, self.tile
        flat_positions = positions(mask)
        xp = namespace(half)
        values = to_host(xp.take(xp.reshape(half, (-1,)), move(evened(flat_positions, half), half), axis=0))
        # 0 − x, so that a distance of 0 has no sign.
        low = 0.0 - 2.0 * values[: len(flat_positions)].astype(np.float64)
        rows, columns = np.divmod(flat_positions, length(tile.columns))
        rows, columns = rows + tile.rows.start, columns + tile.columns.start
        norms = tile.left.norms[rows] + tile.right.norms[columns]
        high = low + 2 * (precision.relative * norms + precision.absolute)
        equal = tile.left.labels[rows] == tile.right.labels[columns]
        low[equal] = high[equal] = 0.0
        return rows, columns, low, high

    def too_many(self, marks: int) -> bool:
        """Whether so many pairs in doubt are worth a more precise product."""
        last = self.precision is self.tile.space.precisions[-1]
        return not last and marks > math.prod(self.half.shape) // PAIRS_PER_DOUBT


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


def along(values: np.ndarray, axis: int, like: Any) -> Any:
    """One number a row (axis 0) or a column (axis 1), on the device of a matrix and shaped to broadcast with it."""
    return move(values[:, None] if axis == 0 else values[None, :], like)


def length(rows: slice) -> int:
    """How many rows a slice takes."""
    return rows.stop - rows.start


# -------------------------------------------------------------------------------------------------------------- helpers


def _scaled(block: Any, exponent: int) -> Any:
    """Rows times a power of two, in place; in two steps where the power itself is beyond float64."""
    for power in (exponent,) if abs(exponent) < 1000 else (exponent // 2, exponent - exponent // 2):
        if power:
            block *= 2.0**power
    return block


def _row_sums(terms: Any) -> Any:
    """The sum of each row by pairwise summation: halves are added to each other until one column is left.

    Only whole arrays are added, so that every library on every device rounds alike, whatever the number of rows.
    """
    width = int(terms.shape[1])
    half = 1 << (width - 1).bit_length() >> 1
    while half:
        upper_half = terms[:, half:width]
        if isinstance(terms, np.ndarray):
            terms[:, : width - half] += upper_half
        else:
            terms = concat([terms[:, : width - half] + upper_half, terms[:, width - half : half]], axis=1)
        width, half = half, half // 2
    return terms[:, 0]


def _slices(start: int, stop: int, step: int) -> list[slice]:
    return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]


def _relative_slice(inner: slice, outer: slice) -> slice:
    return slice(inner.start - outer.start, inner.stop - outer.start)
