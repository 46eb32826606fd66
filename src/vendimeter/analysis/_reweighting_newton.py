"""Weights of greatest diversity among some items, by Newton's method with a barrier (a primal-dual interior point).

The best weights p have slopes d = ν − s, s ≥ 0, p s = 0: all items that have weight have the same slope, and no other a
larger one. The conditions p s = μ with a falling μ are solved instead, one Newton step each. On the way Σ p s = mμ is
the gap that is left, so that a dozen steps do, whatever the data; each costs the curvature of all pairs of items,
O(m² r), and a Cholesky factorisation.

The curvature of −F that is used is q(B − hhᵀ): that of ‖ρ‖_q, which is homogeneous, so that one step goes as far for a
high order as for a low one. It is 0 along p, where no step leads, since weights sum to 1; a multiple of 11ᵀ changes no
such step and keeps the matrix positive definite.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from vendimeter.analysis._reweighting_order import Order, Spread
from vendimeter.data.devices import as_like, move, namespace, to_host, transposed
from vendimeter.solvers.eigenvectors import eigenpairs

__all__ = ["Active", "climb"]

FIRST_CUT, CUT = 0.3, 0.15  # what is left of μ after a step
WITHIN = 0.99  # how far a step goes towards a weight of 0, at most
SHORTEST = 1e-3  # a step that must be shorter than this leads nowhere
RIDGES = (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0, 1e2)


class Point:
    """Weights with what they make of ρ: eigenpairs, slopes of the items, and their coordinates."""

    def __init__(self, active: Active, weights: np.ndarray, order: Order):
        rows = active.rows
        own = weights[-rows.shape[0] :]
        matrix = transposed(rows * move(own, rows)[:, None]) @ rows
        if active.rest is not None:
            matrix = matrix + active.rest * float(weights[0])
        values, vectors = eigenpairs(matrix)
        self.weights, self.spread = weights, Spread(values, order)
        self.rows = rows @ vectors
        xp = namespace(rows)
        slopes = move(self.spread.slopes, rows)
        self.slopes = to_host((self.rows * self.rows) @ slopes)
        self.rest = None
        if active.rest is not None:
            self.rest = transposed(vectors) @ (active.rest @ vectors)
            first = float(xp.sum(xp.linalg.diagonal(self.rest) * slopes))
            self.slopes = np.concatenate([[first], self.slopes])

    @property
    def mean(self) -> float:
        """The slope of all weights together."""
        return float(self.weights @ self.slopes)

    @property
    def steepest(self) -> float:
        return float(self.slopes.max())

    def merit(self, barrier: float) -> float:
        """What a step is to raise."""
        return self.spread.height + barrier * float(np.log(self.weights).sum())

    def curvature(self) -> np.ndarray:
        """q(B − hhᵀ), with 11ᵀ added, on the host."""
        q = self.spread.order.stage
        found, columns = self.spread.curvature()
        rows, total = self.rows, None
        for coefficient, column in zip(found, columns.T, strict=True):
            product = (rows * move(column, rows)) @ transposed(rows)
            product = product * product * float(coefficient)
            total = product if total is None else total + product
        matrix = np.array(to_host(total))
        if self.rest is not None:
            matrix = self._with_rest(matrix, found, columns)
        matrix *= q
        if q != 1:
            high = self.spread.heights(self.slopes)
            matrix -= q * np.outer(high, high)
        matrix += q
        return matrix

    def _with_rest(self, matrix: np.ndarray, found: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The curvature with that of the rest as the first row and column."""
        xp = namespace(self.rows)
        weighed = as_like(
            (columns * found) @ columns.T, None if isinstance(self.rows, np.ndarray) else self.rows
        )
        weighed = weighed * self.rest
        with_items = to_host(xp.sum((self.rows @ weighed) * self.rows, axis=1))
        alone = float(xp.sum(weighed * self.rest))
        whole = np.empty((len(matrix) + 1,) * 2)
        whole[0, 0], whole[0, 1:], whole[1:, 0], whole[1:, 1:] = alone, with_items, with_items, matrix
        return whole


class Active:
    """The items that are worked on, and all others together as one, the first.

    Parameters
    ----------
    rows : array, shape (m, r)
        Their features.
    rest : array, shape (r, r), optional
        Σ p φφᵀ of the others, with their own weights, of trace 1.
    """

    def __init__(self, rows: Any, rest: Any = None):
        self.rows, self.rest = rows, rest


def climb(
    active: Active,
    weights: np.ndarray,
    order: Order,
    enough: Callable[[Point], bool],
    most: int,
    report: Callable[[], None],
) -> Point:
    """Weights of greater diversity.

    Parameters
    ----------
    active : Active
        The items.
    weights : ndarray
        Where to start: above 0, with sum 1; first that of the rest, if there is one.
    order : Order
        The order.
    enough : callable
        Tells of a point whether to stop there.
    most : int
        Eigendecompositions, at most.
    report : callable
        Called after each.
    """
    point, spent, size = Point(active, weights, order), 1, len(weights)
    report()
    gap = point.steepest - point.mean
    duals = np.maximum(point.steepest - point.slopes, 0.1 * gap / size / weights)
    cut = FIRST_CUT
    while spent < most and not enough(point):
        weights = point.weights
        barrier = cut * float(weights @ duals) / size
        step = _step(point, duals, barrier)
        change = barrier / weights - duals - duals / weights * step
        longest = min(1.0, WITHIN / max(float((-step / weights).max()), 1e-300))
        merit, rise = point.merit(barrier), float(step @ (point.slopes + barrier / weights))
        length, found = longest, point
        while spent < most and length > SHORTEST:
            taken = weights + length * step
            found = Point(active, taken / taken.sum(), order)
            spent += 1
            report()
            if found.merit(barrier) >= merit + 1e-4 * length * rise - 1e-12 * (1 + abs(merit)):
                break
            length, found = length / 2, point
        if found is point:
            break
        dual_length = min(1.0, WITHIN / max(float((-change / duals).max()), 1e-300))
        duals = duals + (dual_length if length == longest else min(length, dual_length)) * change
        point, cut = found, CUT
    return point


def _step(point: Point, duals: np.ndarray, barrier: float) -> np.ndarray:
    """The Newton step of the weights, with sum 0."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    weights, matrix = point.weights, point.curvature()
    own = matrix.diagonal() + duals / weights
    for ridge in RIDGES:  # terms that were left out of the curvature may have made the matrix indefinite
        matrix.flat[:: len(matrix) + 1] = own * (1 + ridge)
        with suppress(LinAlgError):
            factor = cho_factor(matrix, lower=True, check_finite=False)
            break
    else:
        raise ArithmeticError("the curvature of the weights is not finite")
    upward = point.slopes - point.steepest + barrier / weights
    both = cho_solve(factor, np.column_stack([upward, np.ones(len(weights))]), check_finite=False)
    return both[:, 0] - both[:, 0].sum() / both[:, 1].sum() * both[:, 1]
