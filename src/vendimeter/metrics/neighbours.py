"""The nearest neighbours of points, and which points lie in balls, by exact Euclidean distances.

Bounds from products of matrices rule out nearly all pairs (see `distances`). Those that they leave in doubt are kept,
and computed by the formula only if they still matter when all other pairs are decided.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.data.devices import largest, namespace, to_host, transposed
from vendimeter.metrics.distances import Bounds, Points, Space, along, length

__all__ = ["Balls", "Nearest", "fill_balls", "nearest_neighbours"]


class Nearest:
    """The k nearest others of each point: squared distances in rising order, and positions, the lowest first on ties.

    Attributes
    ----------
    squares : ndarray of shape (n, k)
        By the formula, in the scale of `Space.lengths`.
    indices : ndarray of shape (n, k)
        Positions of the neighbours in the other set.
    """

    def __init__(self, space: Space, points: Points, others: Points, k: int):
        self._space, self._points, self._others, self._k = space, points, others, k
        self.squares = np.full((len(points), k), np.inf)
        self.indices = np.full((len(points), k), len(others))
        self._limits = np.full(len(points), np.inf)  # upper bounds on the distance of the k-th nearest
        self._pending: list[tuple[np.ndarray, ...]] = []

    def masks(self, bounds: Bounds, axis: int) -> tuple[Any, int]:
        """Where a pair may be among the k nearest of the points along an axis, and how many such pairs there are."""
        mask = self._near(bounds, axis)
        marks, rows = _count(mask), bounds.tile.side(axis)[1]
        if marks > 8 * self._k * length(rows) and bounds.half.shape[1 - axis] > self._k:
            across = bounds.half if axis == 0 else transposed(bounds.half)
            kth = to_host(namespace(across).min(largest(across, self._k), axis=1)).astype(np.float64)
            self._limits[rows] = np.minimum(self._limits[rows], bounds.slack(axis) - 2 * kth)
            mask = self._near(bounds, axis)
            marks = _count(mask)
        return mask, marks

    def _near(self, bounds: Bounds, axis: int) -> Any:
        limits = self._limits[bounds.tile.side(axis)[1]]
        return bounds.at_least(bounds.precision.below(-limits / 2), axis)

    def add(self, bounds: Bounds, mask: Any, axis: int) -> None:
        """Keep the marked pairs for later; when there are too many, decide which of them are the nearest."""
        rows, columns, low, high = bounds.pairs_at(mask)
        self._pending.append((columns, rows, low, high) if axis else (rows, columns, low, high))
        if sum(len(pairs[0]) for pairs in self._pending) > self._space.pairs_held:
            self._prune()
            if len(self._pending[0][0]) > self._space.pairs_held // 2:
                self._resolve()

    def finish(self) -> None:
        """Decide on all that is still in doubt."""
        self._prune()
        self._resolve()

    def _prune(self) -> None:
        """Drop pairs that are surely farther than k others of the same point."""
        rows, columns, low, high = (np.concatenate(column) for column in zip(*self._pending, strict=True))
        order = np.lexsort((high, rows))
        kth = order[_ranks(rows[order]) == self._k - 1]
        self._limits[rows[kth]] = np.minimum(self._limits[rows[kth]], high[kth])
        keep = low <= self._limits[rows]
        self._pending = [(rows[keep], columns[keep], low[keep], high[keep])]

    def _resolve(self) -> None:
        """Compute the pending pairs by the formula, and keep the k nearest of each point."""
        rows, columns, low, high = self._pending.pop()
        in_doubt = low != high
        squares = np.where(in_doubt, 0.0, low)
        squares[in_doubt] = self._space.squares(self._points, rows[in_doubt], self._others, columns[in_doubt])
        points = np.unique(rows)
        rows = np.concatenate([rows, np.repeat(points, self._k)])
        squares = np.concatenate([squares, self.squares[points].ravel()])
        columns = np.concatenate([columns, self.indices[points].ravel()])
        order = np.lexsort((columns, squares, rows))
        order = order[_ranks(rows[order]) < self._k]
        self.squares[points] = squares[order].reshape(-1, self._k)
        self.indices[points] = columns[order].reshape(-1, self._k)
        kth = self.squares[points, -1]
        # Later pairs have higher positions, so that a tie no longer matters; and nothing is nearer than 0.
        limits = np.nextafter(kth, -np.inf, where=np.isfinite(kth), out=kth.copy())
        limits[kth == 0] = -np.inf
        self._limits[points] = np.minimum(self._limits[points], limits)
        self._pending = [tuple(np.empty(0, column.dtype) for column in (rows, columns, low, high))]


def nearest_neighbours(space: Space, points: Points, others: Points, k: int) -> Nearest:
    """The k nearest rows among the others; a row is no neighbour of itself, an equal one is."""
    nearest = Nearest(space, points, others, k)
    for tile in space.tiles(points, others):
        axes = (0, 1) if points is others and not tile.diagonal else (0,)
        min_marks = 2 * k * max(length(tile.rows), length(tile.columns))
        bounds, masks = tile.bounds_and_masks(
            lambda bounds, axes=axes: [nearest.masks(bounds, axis) for axis in axes], min_marks
        )
        for axis, (mask, marks) in zip(axes, masks, strict=True):
            if marks:
                nearest.add(bounds, mask, axis)
    nearest.finish()
    return nearest


class Balls:
    """Closed balls round the points on one side, and which points on the other side lie in them.

    Parameters
    ----------
    space : Space
        The space of both sets.
    centres, points : Points
        The two sets.
    squares : ndarray
        The squared radius of each ball, by the formula.
    axis : int
        The axis of the tiles along which the centres lie.
    counted : bool
        Whether every pair counts. If not, only `inside` is of use: a point in one ball needs no other.

    Attributes
    ----------
    inside : ndarray of bool
        Whether a point lies in some ball.
    holding : ndarray of bool
        Whether a ball holds some point.
    pairs : int
        How many pairs there are of a ball and a point in it.
    """

    def __init__(
        self, space: Space, centres: Points, points: Points, squares: np.ndarray, *, axis: int, counted: bool
    ):
        self._space, self._centres, self._points, self._axis = space, centres, points, axis
        self._squares, self._counted = squares, counted
        self.inside = np.zeros(len(points), bool)
        self.holding = np.zeros(len(centres), bool)
        self.pairs = 0
        self._pending: list[tuple[np.ndarray, ...]] = []

    def masks(self, bounds: Bounds) -> tuple[Any, Any, int]:
        """Where a point is surely in a ball, where that is in doubt and matters, and how many pairs are in doubt."""
        axis, precision = self._axis, bounds.precision
        thresholds = -self._squares[bounds.tile.side(axis)[1]] / 2
        possible = bounds.at_least(precision.below(thresholds), axis)
        sure = bounds.at_least(precision.above(thresholds + bounds.slack(axis) / 2), axis)
        in_doubt = possible ^ sure
        if not self._counted and _any(in_doubt):
            xp = namespace(sure)
            decided = xp.any(sure, axis=axis, keepdims=True)
            in_doubt = in_doubt & ~(
                decided | along(self.inside[bounds.tile.side(1 - axis)[1]], 1 - axis, decided)
            )
        return sure, in_doubt, _count(in_doubt)

    def add(self, bounds: Bounds, sure: Any, in_doubt: Any, marks: int) -> None:
        """Count the sure pairs, and keep those in doubt for later."""
        xp, axis = namespace(sure), self._axis
        total = _count(sure)
        if total:
            self.inside[bounds.tile.side(1 - axis)[1]] |= to_host(xp.any(sure, axis=axis))
            self.holding[bounds.tile.side(axis)[1]] |= to_host(xp.any(sure, axis=1 - axis))
            self.pairs += total
        if not marks:
            return
        rows, columns, low, high = bounds.pairs_at(in_doubt)
        centres, points = (columns, rows) if axis else (rows, columns)
        within = high <= self._squares[centres]
        self._count_members(centres[within], points[within])
        undecided = ~within & (low <= self._squares[centres])
        self._pending.append((centres[undecided], points[undecided]))
        if sum(len(pairs[0]) for pairs in self._pending) > self._space.pairs_held:
            self.finish()

    def _count_members(self, centres: np.ndarray, points: np.ndarray) -> None:
        self.inside[points] = True
        self.holding[centres] = True
        self.pairs += len(points)

    def finish(self) -> None:
        """Decide on all that is still in doubt, by the formula."""
        if not self._pending:
            return
        centres, points = (np.concatenate(column) for column in zip(*self._pending, strict=True))
        self._pending = []
        if self._counted:
            self._compute(centres, points)
            return
        order = np.argsort(points, kind="stable")
        centres, points = centres[order], points[order]
        ranks, start, stop = _ranks(points), 0, 1
        while start <= ranks.max(initial=-1):
            # One ball of each point, then a few, then many: for most points the first is enough.
            now = (ranks >= start) & (ranks < stop) & ~self.inside[points]
            self._compute(centres[now], points[now])
            start, stop = stop, 4 * stop

    def _compute(self, centres: np.ndarray, points: np.ndarray) -> None:
        squares = self._space.squares(self._centres, centres, self._points, points)
        within = squares <= self._squares[centres]
        self._count_members(centres[within], points[within])


def fill_balls(space: Space, left: Points, right: Points, sets: list[Balls]) -> None:
    """Decide for all pairs of two sets, in one pass, which points lie in the balls of any number of sets."""
    for tile in space.tiles(left, right):
        bounds, masks = tile.bounds_and_masks(lambda bounds: [balls.masks(bounds) for balls in sets])
        for balls, mask in zip(sets, masks, strict=True):
            balls.add(bounds, *mask)
    for balls in sets:
        balls.finish()


def _ranks(labels: np.ndarray) -> np.ndarray:
    """The rank of each entry within its run of equal entries."""
    positions = np.arange(len(labels))
    first = np.flatnonzero(np.concatenate([[True], labels[1:] != labels[:-1]])[: len(labels)])
    return positions - np.repeat(first, np.diff(np.append(first, len(labels))))


def _count(mask: Any) -> int:
    if isinstance(mask, np.ndarray):
        return int(np.count_nonzero(mask))
    xp = namespace(mask)
    return int(xp.sum(xp.astype(mask, xp.int64)))


def _any(mask: Any) -> bool:
    return bool(namespace(mask).any(mask))
