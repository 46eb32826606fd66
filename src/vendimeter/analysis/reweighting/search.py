"""The search for weights of greatest diversity over any number of items, with a bound on how much better any can be.

Up to a few thousand items all of them are worked on at once, by Newton's method (`_reweighting_newton`). Of more, most
end without weight. Quasi-Newton steps over all items (L-BFGS on √p), which cost a pass over the data each, find out
which; Newton's method then works on those, with all others together as one item. A pass over all items gives the bound,
and the items whose slope is larger than it should be join in: the fully corrective Frank–Wolfe method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.analysis.reweighting.orders import Order, Spread, widened
from vendimeter.data.arrays import blocks, is_sparse
from vendimeter.data.devices import DEVICE_BYTES, as_like, move, namespace, to_host, transposed
from vendimeter.similarity import Features
from vendimeter.solvers.eigenvectors import eigenpairs
from vendimeter.solvers.gram import gram

__all__ = ["Active", "Items", "Search", "climb", "search"]


# -------------------------------------------------------------------------------------------------- reweighting newton

# Weights of greatest diversity among some items, by Newton's method with a barrier (a primal-dual interior point).
#
# The best weights p have slopes d = ν − s, s ≥ 0, p s = 0: all items that have weight have the same slope, and no
# other a
# larger one. The conditions p s = μ with a falling μ are solved instead, one Newton step each. On the way Σ p s = mμ is
# the gap that is left, so that a dozen steps do, whatever the data; each costs the curvature of all pairs of items,
# O(m² r), and a Cholesky factorisation.
#
# The curvature of −F that is used is q(B − hhᵀ): that of ‖ρ‖_q, which is homogeneous, so that one step goes as far for
# a
# high order as for a low one. It is 0 along p, where no step leads, since weights sum to 1; a multiple of 11ᵀ changes
# no
# such step and keeps the matrix positive definite.

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


# -------------------------------------------------------------------------------------------------- reweighting search

FEW = 256  # up to so many items, or twice the features, all are worked on at once
ACTIVE = 2048  # items that Newton's method works on at once; twice the features, where that is more
PAIRS = 15  # steps that L-BFGS remembers
HEAVY = 0.999  # Newton's method takes over when its items can hold this much of the weight, …
FIRST_PASSES = 8  # … after this many passes
SLACK = 0.7  # of the tolerance that the search aims for: the rest is for weights that are dropped afterwards


@dataclass(frozen=True)
class Items:
    """Distinct items by features of unit length, and how far these may be off.

    Attributes
    ----------
    features : Features
        Of r columns; nothing larger than r×r is made of all of them.
    off : float
        Bound on ‖φφᵀ − φ̂φ̂ᵀ‖₁, φ an item and φ̂ its features.
    size : int
        The most dimensions that the items span, which no score exceeds.
    drift : float
        Bound on the trace norm by which ρ of any weights is off besides.
    """

    features: Features
    off: float
    size: int
    drift: float = 0.0

    @property
    def n(self) -> int:
        return self.features.n

    def rows(self, index: np.ndarray) -> Any:
        """Some of them, dense."""
        rows = self.features.rows(index)
        return rows.toarray() if is_sparse(rows) else rows

    def moment(self, weights: np.ndarray) -> Any:
        """Σ p φφᵀ, of trace 1, for weights of any sum."""
        present = np.flatnonzero(weights)
        if len(present) == self.n:
            return gram(self.features, weights, precision="float64").matrix
        return gram(self.features.take(present), weights[present], precision="float64").matrix

    def slopes(self, vectors: Any, coefficients: np.ndarray) -> np.ndarray:
        """Σ_a (v_aᵀφ)² c_a of every item, on the host."""
        features, found = self.features, np.empty(self.n)
        coefficients = move(coefficients, features.like) if features.like is not None else coefficients
        size = {} if features.like is None else {"most": DEVICE_BYTES}
        for part in blocks(self.n, 2 * features.width, **size):
            along = features.rows(part) @ vectors
            found[part] = to_host((along * along) @ coefficients)
        return found


class View:
    """All items under some weights: what they make of ρ, and the slope of every item."""

    def __init__(self, items: Items, weights: np.ndarray, order: Order):
        values, vectors = eigenpairs(items.moment(weights))
        self.weights, self.spread = weights, Spread(values, order)
        self.slopes = items.slopes(vectors, self.spread.slopes)
        self.steepest = float(self.slopes.max())
        upper = self.spread.upper(self.steepest, items.off)
        self.upper = min(widened(upper, order.q, items.drift, items.size), math.log(items.size))

    @property
    def mean(self) -> float:
        return float(self.weights @ self.slopes)


@dataclass
class Search:
    """What was found: the weights of greatest diversity so far, and the least bound.

    Attributes
    ----------
    value, upper : float
        log VS of the weights, and a bound on that of any weights.
    spent : int
        Eigendecompositions so far.
    """

    tol: float
    most: int
    report: Callable[[int, float], None]
    weights: np.ndarray
    value: float = -math.inf
    upper: float = math.inf
    spent: int = 0

    @property
    def gap(self) -> float:
        """By how much any weights can be better, relative to the score."""
        return math.expm1(self.upper - self.value) if self.upper < math.inf else math.inf

    def see(self, view: View) -> None:
        """Take in another look at all items."""
        self.count()
        self.upper = min(self.upper, view.upper)
        if view.spread.value > self.value:
            self.value, self.weights = view.spread.value, view.weights

    def count(self) -> None:
        """One more eigendecomposition."""
        self.spent += 1
        self.report(self.spent, self.gap)

    @property
    def exhausted(self) -> bool:
        """Whether too few eigendecompositions are left for another turn: its start, a step, and a look at all items."""
        return self.spent > self.most - 3

    def over(self) -> bool:
        """Whether the tolerance is met, or the work set aside for it spent."""
        return self.gap <= SLACK * self.tol or self.exhausted


def search(
    items: Items,
    start: np.ndarray,
    q: float,
    tol: float,
    most: int,
    report: Callable[[int, float], None],
) -> Search:
    """Weights of greatest diversity.

    Parameters
    ----------
    items : Items
        Distinct ones.
    start : ndarray
        Weights to start from, all above 0, with sum 1.
    q : float
        The order, 0 < q ≤ ∞.
    tol : float
        By how much any weights may be better, relatively.
    most : int
        Eigendecompositions, at most.
    report : callable
        Called with how many there were and the gap that is left.
    """
    order, found = Order(q), Search(tol, most, report, start)
    view = View(items, start, order)
    found.see(view)
    width = items.features.width
    room, some = max(ACTIVE, 2 * width), items.n > max(FEW, 2 * width)
    if some:
        view = _over_all(items, view, found, room)
    active = np.arange(items.n)
    for turn in range(most):
        if found.over():
            break
        if some:
            active = _active(view, active, room, found.tol, first=turn == 0)
        before = view
        view = _newton(items, view, active, found)
        found.see(view)
        raw = math.expm1(min(view.spread.climb(view.steepest), 700.0))
        order = view.spread.order
        if raw <= 0.3 * found.gap and not order.last:
            view = View(items, view.weights, order.raised())
            found.see(view)
            continue
        if raw <= min(0.3 * found.gap, 0.1 * tol):  # what is left is rounding
            break
        if np.array_equal(before.weights, view.weights):
            break
    return found


def _newton(items: Items, view: View, active: np.ndarray, found: Search) -> View:
    """Newton's method on some items, with the others as one."""
    order, weights = view.spread.order, view.weights
    others = weights.copy()
    others[active] = 0.0
    rest = float(others.sum())
    here = weights[active]
    alone = rest <= 1e-12
    if not alone:
        here = np.concatenate([[rest], here])
    here = np.maximum(here, 1e-2 * found.tol / len(here))
    rows = items.rows(active)
    problem = Active(rows, None if alone else items.moment(others))
    all_in = len(active) == items.n
    stage_gap = math.expm1(min(view.spread.climb(view.steepest), 700.0))
    target = 0.5 * found.tol if all_in else max(0.2 * found.tol, 0.1 * stage_gap)
    if not order.last:
        target = 0.2 * min(found.gap, 1.0)

    def enough(point: Point) -> bool:
        return math.expm1(min(point.spread.climb(point.steepest), 700.0)) <= target

    point = climb(problem, here / here.sum(), order, enough, found.most - found.spent - 1, found.count)
    weights = others * (0.0 if alone else point.weights[0] / rest)
    weights[active] = point.weights[-len(active) :]
    return View(items, weights / weights.sum(), order)


def _active(view: View, before: np.ndarray, room: int, tol: float, *, first: bool) -> np.ndarray:
    """The items for Newton's method: those with weight, and those whose slope is too large."""
    weights, slopes = view.weights, view.slopes
    if first:
        return np.sort(np.argsort(-weights, kind="stable")[: min(room, _heavy(weights))])
    kept = before[weights[before] > 1e-3 * tol / len(before)]
    outside = np.ones(len(weights), dtype=bool)
    outside[kept] = False
    steep = np.flatnonzero(outside & (slopes > view.mean + 0.25 * (view.steepest - view.mean)))
    joining = steep[np.argsort(-slopes[steep], kind="stable")][: max(room // 4, 2 * room - len(kept))]
    return np.sort(np.concatenate([kept, joining]))


# ------------------------------------------------------------------------------------------------- steps over all items


def _over_all(items: Items, view: View, found: Search, room: int) -> View:
    """L-BFGS on √p, until few enough items hold the weight."""
    roots, pairs = np.sqrt(view.weights), []
    while not found.over():
        if found.spent >= FIRST_PASSES and _heavy(view.weights) <= room:
            break
        slope = _along(roots, view)
        step = _direction(slope, pairs)
        rise = float(step @ slope)
        if not rise > 0:
            pairs, step = [], 0.5 * slope
            rise = float(step @ slope)
        length, height = 1.0, view.spread.height
        while True:
            taken = roots + length * step
            taken /= np.linalg.norm(taken)
            there = View(items, taken**2, view.spread.order)
            found.see(there)
            gain = there.spread.height - height
            if gain >= 1e-4 * length * rise or found.exhausted:
                break
            if length * rise < 1e-13 * (1 + abs(height)):  # rounding: nothing is left to be gained this way
                return view
            shrunk = -length * length * rise / (2 * (gain - length * rise))
            length = min(max(shrunk, 0.1 * length), 0.5 * length)
        moved, bent = taken - roots, slope - _along(taken, there)
        if moved @ bent > 1e-10 * np.linalg.norm(moved) * np.linalg.norm(bent):
            pairs = [*pairs, (moved, bent, 1 / float(moved @ bent))][-PAIRS:]
        roots, view = taken, there
    return view


def _along(roots: np.ndarray, view: View) -> np.ndarray:
    """The slope of F in √p."""
    return 2 * roots * (view.slopes - view.mean)


def _direction(slope: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray, float]]) -> np.ndarray:
    """The step of L-BFGS: the slope times what the last steps tell of the inverse curvature."""
    step, shares = slope.copy(), []
    for moved, bent, scale in reversed(pairs):
        shares.append(scale * float(moved @ step))
        step -= shares[-1] * bent
    step *= 1 / (pairs[-1][2] * float(pairs[-1][1] @ pairs[-1][1])) if pairs else 0.5
    for (moved, bent, scale), share in zip(pairs, reversed(shares), strict=True):
        step += (share - scale * float(bent @ step)) * moved
    return step


def _heavy(weights: np.ndarray) -> int:
    """How many items hold nearly all of the weight."""
    return int(np.searchsorted(np.cumsum(-np.sort(-weights)), HEAVY)) + 1
