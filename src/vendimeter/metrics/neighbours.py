"""The nearest neighbours of points, and which points lie in balls, by exact Euclidean distances.

Bounds from products of matrices rule out nearly all pairs (see `_distances`). What they leave in doubt is noted, and
computed by the formula only if it still matters when the rest is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.data.devices import largest, namespace, to_host, transposed
from vendimeter.metrics.distances import Bounds, Points, Space, along, length

__all__ = ["Balls", "Nearest", "look_into", "nearest_neighbours"]


class Nearest:
    """The k nearest others of each point: squared distances in rising order, and positions, the lowest first on ties.

    Attributes
    ----------
    squares : ndarray of shape (n, k)
        By the formula, in the scale of `Space.lengths`.
    places : ndarray of shape (n, k)
        Positions of the neighbours in the other set.
    """

    def __init__(self, space: Space, points: Points, others: Points, k: int):
        self._space, self._points, self._others, self._k = space, points, others, k
        self.squares = np.full((len(points), k), np.inf)
        self.places = np.full((len(points), k), len(others))
        self._limits = np.full(len(points), np.inf)  # what is surely farther is none of the k nearest
        self._waiting: list[tuple[np.ndarray, ...]] = []

    def look(self, bounds: Bounds, axis: int) -> tuple[Any, int]:
        """Where a pair may be among the k nearest of the points along an axis, and how many such pairs there are."""
        mask = self._near(bounds, axis)
        marks, part = _count(mask), bounds.tile.side(axis)[1]
        if marks > 8 * self._k * length(part) and bounds.half.shape[1 - axis] > self._k:
            across = bounds.half if axis == 0 else transposed(bounds.half)
            kth = to_host(namespace(across).min(largest(across, self._k), axis=1)).astype(np.float64)
            self._limits[part] = np.minimum(self._limits[part], bounds.slack(axis) - 2 * kth)
            mask = self._near(bounds, axis)
            marks = _count(mask)
        return mask, marks

    def _near(self, bounds: Bounds, axis: int) -> Any:
        limits = self._limits[bounds.tile.side(axis)[1]]
        return bounds.at_least(bounds.precision.below(-limits / 2), axis)

    def add(self, bounds: Bounds, mask: Any, axis: int) -> None:
        """Note the pairs at the marks; when there are too many, sort out which of them are the nearest."""
        rows, columns, low, high = bounds.marked(mask)
        self._waiting.append((columns, rows, low, high) if axis else (rows, columns, low, high))
        if sum(len(found[0]) for found in self._waiting) > self._space.pairs_held:
            self._thin()
            if len(self._waiting[0][0]) > self._space.pairs_held // 2:
                self._resolve()

    def finish(self) -> None:
        """Decide on all that is still in doubt."""
        self._thin()
        self._resolve()

    def _thin(self) -> None:
        """Drop what k others of the point are surely nearer than."""
        rows, columns, low, high = (np.concatenate(found) for found in zip(*self._waiting, strict=True))
        order = np.lexsort((high, rows))
        kth = order[_ranks(rows[order]) == self._k - 1]
        self._limits[rows[kth]] = np.minimum(self._limits[rows[kth]], high[kth])
        keep = low <= self._limits[rows]
        self._waiting = [(rows[keep], columns[keep], low[keep], high[keep])]

    def _resolve(self) -> None:
        """Compute what is waiting by the formula, and keep the k nearest of each point."""
        rows, columns, low, high = self._waiting.pop()
        doubt = low != high
        squares = np.where(doubt, 0.0, low)
        squares[doubt] = self._space.squares(self._points, rows[doubt], self._others, columns[doubt])
        touched = np.unique(rows)
        rows = np.concatenate([rows, np.repeat(touched, self._k)])
        squares = np.concatenate([squares, self.squares[touched].ravel()])
        columns = np.concatenate([columns, self.places[touched].ravel()])
        order = np.lexsort((columns, squares, rows))
        order = order[_ranks(rows[order]) < self._k]
        self.squares[touched] = squares[order].reshape(-1, self._k)
        self.places[touched] = columns[order].reshape(-1, self._k)
        kth = self.squares[touched, -1]
        # Later pairs have higher positions, so that a tie no longer matters; and nothing is nearer than 0.
        limits = np.nextafter(kth, -np.inf, where=np.isfinite(kth), out=kth.copy())
        limits[kth == 0] = -np.inf
        self._limits[touched] = np.minimum(self._limits[touched], limits)
        self._waiting = [tuple(np.empty(0, found.dtype) for found in (rows, columns, low, high))]


def nearest_neighbours(space: Space, points: Points, others: Points, k: int) -> Nearest:
    """The k nearest rows among the others; a row is no neighbour of itself, an equal one is."""
    found = Nearest(space, points, others, k)
    for tile in space.tiles(points, others):
        axes = (0, 1) if points is others and not tile.diagonal else (0,)
        few = 2 * k * max(length(tile.rows), length(tile.columns))
        bounds, looks = tile.judged(
            lambda bounds, axes=axes: [found.look(bounds, axis) for axis in axes], few
        )
        for axis, (mask, marks) in zip(axes, looks, strict=True):
            if marks:
                found.add(bounds, mask, axis)
    found.finish()
    return found


# ---------------------------------------------------------------------------------------------------------------- balls


class Balls:
    """Closed balls round the points on one side, and which points on the other side lie in them.

    Parameters
    ----------
    space : Space
        Where all of it takes place.
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
        self._waiting: list[tuple[np.ndarray, ...]] = []

    def look(self, bounds: Bounds) -> tuple[Any, Any, int]:
        """Where a point is surely in a ball, where it is in doubt and matters, and how many of these there are."""
        axis, precision = self._axis, bounds.precision
        thresholds = -self._squares[bounds.tile.side(axis)[1]] / 2
        maybe = bounds.at_least(precision.below(thresholds), axis)
        sure = bounds.at_least(precision.above(thresholds + bounds.slack(axis) / 2), axis)
        doubt = maybe ^ sure
        if not self._counted and _any(doubt):
            xp = namespace(sure)
            known = xp.any(sure, axis=axis, keepdims=True)
            doubt = doubt & ~(known | along(self.inside[bounds.tile.side(1 - axis)[1]], 1 - axis, known))
        return sure, doubt, _count(doubt)

    def add(self, bounds: Bounds, sure: Any, doubt: Any, marks: int) -> None:
        """Count what is sure, and note what is in doubt."""
        xp, axis = namespace(sure), self._axis
        total = _count(sure)
        if total:
            self.inside[bounds.tile.side(1 - axis)[1]] |= to_host(xp.any(sure, axis=axis))
            self.holding[bounds.tile.side(axis)[1]] |= to_host(xp.any(sure, axis=1 - axis))
            self.pairs += total
        if not marks:
            return
        rows, columns, low, high = bounds.marked(doubt)
        centres, points = (columns, rows) if axis else (rows, columns)
        within = high <= self._squares[centres]
        self._put(centres[within], points[within])
        open_still = ~within & (low <= self._squares[centres])
        self._waiting.append((centres[open_still], points[open_still]))
        if sum(len(found[0]) for found in self._waiting) > self._space.pairs_held:
            self.finish()

    def _put(self, centres: np.ndarray, points: np.ndarray) -> None:
        self.inside[points] = True
        self.holding[centres] = True
        self.pairs += len(points)

    def finish(self) -> None:
        """Decide on all that is still in doubt, by the formula."""
        if not self._waiting:
            return
        centres, points = (np.concatenate(found) for found in zip(*self._waiting, strict=True))
        self._waiting = []
        if self._counted:
            self._compute(centres, points)
            return
        order = np.argsort(points, kind="stable")
        centres, points = centres[order], points[order]
        ranks, start, stop = _ranks(points), 0, 1
        while start <= ranks.max(initial=-1):
            # One ball of each point, then a few, then many: most points need no more than the first.
            now = (ranks >= start) & (ranks < stop) & ~self.inside[points]
            self._compute(centres[now], points[now])
            start, stop = stop, 4 * stop

    def _compute(self, centres: np.ndarray, points: np.ndarray) -> None:
        squares = self._space.squares(self._centres, centres, self._points, points)
        within = squares <= self._squares[centres]
        self._put(centres[within], points[within])


def look_into(space: Space, left: Points, right: Points, sets: list[Balls]) -> None:
    """Look at all pairs of two sets once, for any number of sets of balls."""
    for tile in space.tiles(left, right):
        bounds, looks = tile.judged(lambda bounds: [balls.look(bounds) for balls in sets])
        for balls, look in zip(sets, looks, strict=True):
            balls.add(bounds, *look)
    for balls in sets:
        balls.finish()


# ------------------------------------------------------------------------------------------------------------- helpers


def _ranks(labels: np.ndarray) -> np.ndarray:
    """The place of each entry among its equals, in an array where these stand together."""
    places = np.arange(len(labels))
    first = np.flatnonzero(np.concatenate([[True], labels[1:] != labels[:-1]])[: len(labels)])
    return places - np.repeat(first, np.diff(np.append(first, len(labels))))


def _count(mask: Any) -> int:
    if isinstance(mask, np.ndarray):
        return int(np.count_nonzero(mask))
    xp = namespace(mask)
    return int(xp.sum(xp.astype(mask, xp.int64)))


def _any(mask: Any) -> bool:
    return bool(namespace(mask).any(mask))
