"""Maximisation of the Vendi Score over weights of the items, with an upper bound on what any weights reach.

Up to a few hundred items all of them are worked on at once, by Newton's method (`newton_ascent`). Of more, most end
without weight. Quasi-Newton steps over all items (L-BFGS on √p), which cost a pass over the data each, find out which;
Newton's method then works on those that have weight, with all others together as one item. A pass over all items gives
the bound, and the items whose slope is larger than it should be join in: the fully corrective Frank–Wolfe method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.analysis.reweighting.orders import Order, State, widen
from vendimeter.data.arrays import blocks, is_sparse
from vendimeter.data.devices import DEVICE_BYTES, as_like, move, namespace, to_host, transposed
from vendimeter.similarity import Features
from vendimeter.solvers.eigenvectors import eigenpairs
from vendimeter.solvers.gram import gram

__all__ = ["Items", "Search", "search"]

FEW = 256  # number of items, or twice the features if more, up to which all are worked on at once
ACTIVE = 2048  # items that Newton's method works on at once; twice the features, if that is more
LBFGS_PAIRS = 15  # steps that L-BFGS remembers
HEAVY = 0.999  # Newton's method takes over when its items can hold this much of the weight, …
FIRST_PASSES = 8  # … after this many passes
TOLERANCE_SHARE = 0.7  # of the tolerance for the search; the rest is for weights that are dropped afterwards


@dataclass(frozen=True)
class Items:
    """Distinct items by features of unit length, and bounds on the errors of these.

    Attributes
    ----------
    features : Features
        Of r columns; nothing larger than r×r is made of all of them.
    feature_error : float
        Bound on ‖φφᵀ − φ̂φ̂ᵀ‖₁, φ an item and φ̂ its features.
    size : int
        The most dimensions that the items span, which no score exceeds.
    drift : float
        Bound on the trace norm by which ρ of any weights is off besides.
    """

    features: Features
    feature_error: float
    size: int
    drift: float = 0.0

    @property
    def n(self) -> int:
        """The number of items."""
        return self.features.n

    def rows(self, index: np.ndarray) -> Any:
        """Features of some items, dense."""
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
        features, slopes = self.features, np.empty(self.n)
        coefficients = move(coefficients, features.like) if features.like is not None else coefficients
        block_size = {} if features.like is None else {"most": DEVICE_BYTES}
        for block in blocks(self.n, 2 * features.width, **block_size):
            coordinates = features.rows(block) @ vectors
            slopes[block] = to_host((coordinates * coordinates) @ coefficients)
        return slopes


class View:
    """All items under some weights: the state ρ, the slope of every item, and the upper bound that follows."""

    def __init__(self, items: Items, weights: np.ndarray, order: Order):
        values, vectors = eigenpairs(items.moment(weights))
        self.weights, self.state = weights, State(values, order)
        self.slopes = items.slopes(vectors, self.state.slopes)
        self.steepest = float(self.slopes.max())
        upper = self.state.upper(self.steepest, items.feature_error)
        self.upper = min(widen(upper, order.q, items.drift, items.size), math.log(items.size))

    @property
    def mean(self) -> float:
        """The mean slope under the weights."""
        return float(self.weights @ self.slopes)


@dataclass
class Search:
    """The progress of a search: the best weights so far, and the least upper bound.

    Attributes
    ----------
    value, upper : float
        log VS of the weights, and a bound on that of any weights.
    decompositions : int
        Eigendecompositions so far.
    """

    tol: float
    max_decompositions: int
    report: Callable[[int, float], None]
    weights: np.ndarray
    value: float = -math.inf
    upper: float = math.inf
    decompositions: int = 0

    @property
    def gap(self) -> float:
        """An upper bound on how much better any weights are, relative to the score."""
        return math.expm1(self.upper - self.value) if self.upper < math.inf else math.inf

    def update(self, view: View) -> None:
        """Update best weights and bound by another view of all items."""
        self.count_decomposition()
        self.upper = min(self.upper, view.upper)
        if view.state.value > self.value:
            self.value, self.weights = view.state.value, view.weights

    def count_decomposition(self) -> None:
        """Count an eigendecomposition, and report it."""
        self.decompositions += 1
        self.report(self.decompositions, self.gap)

    @property
    def exhausted(self) -> bool:
        """Whether too few eigendecompositions are left for another turn: its start, a step, and a view of all items."""
        return self.decompositions > self.max_decompositions - 3

    def is_over(self) -> bool:
        """Whether the tolerance is met, or the eigendecompositions are spent."""
        return self.gap <= TOLERANCE_SHARE * self.tol or self.exhausted


def search(
    items: Items,
    start: np.ndarray,
    q: float,
    tol: float,
    max_decompositions: int,
    report: Callable[[int, float], None],
) -> Search:
    """Search for the weights of greatest diversity.

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
    max_decompositions : int
        Eigendecompositions, at most.
    report : callable
        Called with the number of eigendecompositions and the gap after each.
    """
    order, result = Order(q), Search(tol, max_decompositions, report, start)
    view = View(items, start, order)
    result.update(view)
    width = items.features.width
    capacity, partial = max(ACTIVE, 2 * width), items.n > max(FEW, 2 * width)
    if partial:
        view = _lbfgs(items, view, result, capacity)
    active = np.arange(items.n)
    for turn in range(max_decompositions):
        if result.is_over():
            break
        if partial:
            active = _choose_active(view, active, capacity, result.tol, first=turn == 0)
        previous = view
        view = _newton(items, view, active, result)
        result.update(view)
        stage_gap = math.expm1(min(view.state.possible_rise(view.steepest), 700.0))
        order = view.state.order
        if stage_gap <= 0.3 * result.gap and not order.is_last:
            view = View(items, view.weights, order.next_stage())
            result.update(view)
            continue
        if stage_gap <= min(0.3 * result.gap, 0.1 * tol):  # what is left is rounding
            break
        if np.array_equal(previous.weights, view.weights):
            break
    return result


def _newton(items: Items, view: View, active: np.ndarray, result: Search) -> View:
    """Apply Newton's method to the active items, with the others together as one."""
    order, weights = view.state.order, view.weights
    others = weights.copy()
    others[active] = 0.0
    rest_weight = float(others.sum())
    start = weights[active]
    all_weight_active = rest_weight <= 1e-12
    if not all_weight_active:
        start = np.concatenate([[rest_weight], start])
    start = np.maximum(start, 1e-2 * result.tol / len(start))
    rows = items.rows(active)
    problem = Active(rows, None if all_weight_active else items.moment(others))
    all_active = len(active) == items.n
    stage_gap = math.expm1(min(view.state.possible_rise(view.steepest), 700.0))
    target = 0.5 * result.tol if all_active else max(0.2 * result.tol, 0.1 * stage_gap)
    if not order.is_last:
        target = 0.2 * min(result.gap, 1.0)

    def is_good_enough(point: Point) -> bool:
        return math.expm1(min(point.state.possible_rise(point.steepest), 700.0)) <= target

    point = newton_ascent(
        problem,
        start / start.sum(),
        order,
        is_good_enough,
        result.max_decompositions - result.decompositions - 1,
        result.count_decomposition,
    )
    weights = others * (0.0 if all_weight_active else point.weights[0] / rest_weight)
    weights[active] = point.weights[-len(active) :]
    return View(items, weights / weights.sum(), order)


def _choose_active(view: View, previous: np.ndarray, capacity: int, tol: float, *, first: bool) -> np.ndarray:
    """Choose the items for Newton's method: those with weight, and those whose slope is too large."""
    weights, slopes = view.weights, view.slopes
    if first:
        return np.sort(np.argsort(-weights, kind="stable")[: min(capacity, _heavy_count(weights))])
    kept = previous[weights[previous] > 1e-3 * tol / len(previous)]
    outside = np.ones(len(weights), dtype=bool)
    outside[kept] = False
    steep = np.flatnonzero(outside & (slopes > view.mean + 0.25 * (view.steepest - view.mean)))
    joining = steep[np.argsort(-slopes[steep], kind="stable")][: max(capacity // 4, 2 * capacity - len(kept))]
    return np.sort(np.concatenate([kept, joining]))


# ------------------------------------------------------------------------------------------------ L-BFGS over all items


def _lbfgs(items: Items, view: View, result: Search, capacity: int) -> View:
    """Apply L-BFGS to √p, until few enough items hold the weight."""
    roots, pairs = np.sqrt(view.weights), []
    while not result.is_over():
        if result.decompositions >= FIRST_PASSES and _heavy_count(view.weights) <= capacity:
            break
        slope = _root_slope(roots, view)
        step = _lbfgs_step(slope, pairs)
        directional_slope = float(step @ slope)
        if not directional_slope > 0:
            pairs, step = [], 0.5 * slope
            directional_slope = float(step @ slope)
        length, start_value = 1.0, view.state.stage_value
        while True:
            trial_roots = roots + length * step
            trial_roots /= np.linalg.norm(trial_roots)
            trial = View(items, trial_roots**2, view.state.order)
            result.update(trial)
            gain = trial.state.stage_value - start_value
            if gain >= 1e-4 * length * directional_slope or result.exhausted:
                break
            # Rounding: no rise is left in this direction.
            if length * directional_slope < 1e-13 * (1 + abs(start_value)):
                return view
            vertex = -length * length * directional_slope / (2 * (gain - length * directional_slope))
            length = min(max(vertex, 0.1 * length), 0.5 * length)
        root_change, slope_change = trial_roots - roots, slope - _root_slope(trial_roots, trial)
        if root_change @ slope_change > 1e-10 * np.linalg.norm(root_change) * np.linalg.norm(slope_change):
            pair = (root_change, slope_change, 1 / float(root_change @ slope_change))
            pairs = [*pairs, pair][-LBFGS_PAIRS:]
        roots, view = trial_roots, trial
    return view


def _root_slope(roots: np.ndarray, view: View) -> np.ndarray:
    """The gradient of F in √p."""
    return 2 * roots * (view.slopes - view.mean)


def _lbfgs_step(slope: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray, float]]) -> np.ndarray:
    """The L-BFGS step: the gradient times the inverse curvature as estimated from the last steps."""
    step, shares = slope.copy(), []
    for root_change, slope_change, scale in reversed(pairs):
        shares.append(scale * float(root_change @ step))
        step -= shares[-1] * slope_change
    step *= 1 / (pairs[-1][2] * float(pairs[-1][1] @ pairs[-1][1])) if pairs else 0.5
    for (root_change, slope_change, scale), share in zip(pairs, reversed(shares), strict=True):
        step += (share - scale * float(slope_change @ step)) * root_change
    return step


def _heavy_count(weights: np.ndarray) -> int:
    """The number of items that hold nearly all of the weight."""
    return int(np.searchsorted(np.cumsum(-np.sort(-weights)), HEAVY)) + 1


# ---------------------------------------------------------------------------------------- Newton's method on some items

FIRST_BARRIER_FACTOR, BARRIER_FACTOR = 0.3, 0.15  # by which μ falls in a step
BOUNDARY_SHARE = 0.99  # of the way to a weight of 0 that a step goes at most
SHORTEST_STEP = 1e-3  # step length below which the ascent is given up
# Shares of the diagonal that are added to it in turn until the curvature is positive definite.
RIDGES = (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0, 1e2)


class Point:
    """The state ρ at some weights of the active items, with their slopes and coordinates in its eigenbasis."""

    def __init__(self, active: Active, weights: np.ndarray, order: Order):
        rows = active.rows
        item_weights = weights[-rows.shape[0] :]
        matrix = transposed(rows * move(item_weights, rows)[:, None]) @ rows
        if active.rest is not None:
            matrix = matrix + active.rest * float(weights[0])
        values, vectors = eigenpairs(matrix)
        self.weights, self.state = weights, State(values, order)
        self.rows = rows @ vectors
        xp = namespace(rows)
        slopes = move(self.state.slopes, rows)
        self.slopes = to_host((self.rows * self.rows) @ slopes)
        self.rest = None
        if active.rest is not None:
            self.rest = transposed(vectors) @ (active.rest @ vectors)
            rest_slope = float(xp.sum(xp.linalg.diagonal(self.rest) * slopes))
            self.slopes = np.concatenate([[rest_slope], self.slopes])

    @property
    def mean(self) -> float:
        """The mean slope under the weights."""
        return float(self.weights @ self.slopes)

    @property
    def steepest(self) -> float:
        """The largest slope."""
        return float(self.slopes.max())

    def merit(self, barrier: float) -> float:
        """The merit function of the line search: F with the barrier."""
        return self.state.stage_value + barrier * float(np.log(self.weights).sum())

    def curvature(self) -> np.ndarray:
        """q(B − hhᵀ), with 11ᵀ added, on the host."""
        q = self.state.order.stage
        coefficients, columns = self.state.curvature()
        rows, total = self.rows, None
        for coefficient, column in zip(coefficients, columns.T, strict=True):
            product = (rows * move(column, rows)) @ transposed(rows)
            product = product * product * float(coefficient)
            total = product if total is None else total + product
        matrix = np.array(to_host(total))
        if self.rest is not None:
            matrix = self._add_rest(matrix, coefficients, columns)
        matrix *= q
        if q != 1:
            ratios = self.state.norm_ratios(self.slopes)
            matrix -= q * np.outer(ratios, ratios)
        matrix += q
        return matrix

    def _add_rest(self, matrix: np.ndarray, coefficients: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Border the curvature matrix with that of the rest as first row and column."""
        xp = namespace(self.rows)
        weighted = as_like(
            (columns * coefficients) @ columns.T, None if isinstance(self.rows, np.ndarray) else self.rows
        )
        weighted = weighted * self.rest
        cross = to_host(xp.sum((self.rows @ weighted) * self.rows, axis=1))
        rest_curvature = float(xp.sum(weighted * self.rest))
        bordered = np.empty((len(matrix) + 1,) * 2)
        bordered[0, 0], bordered[0, 1:], bordered[1:, 0], bordered[1:, 1:] = (
            rest_curvature,
            cross,
            cross,
            matrix,
        )
        return bordered


class Active:
    """The active items, and all others together as one, the first.

    Parameters
    ----------
    rows : array, shape (m, r)
        Their features.
    rest : array, shape (r, r), optional
        Σ p φφᵀ of the others, with their own weights, of trace 1.
    """

    def __init__(self, rows: Any, rest: Any = None):
        self.rows, self.rest = rows, rest


def newton_ascent(
    active: Active,
    weights: np.ndarray,
    order: Order,
    is_good_enough: Callable[[Point], bool],
    max_decompositions: int,
    report: Callable[[], None],
) -> Point:
    """Maximise diversity over the weights of some items, by Newton's method with a barrier.

    Parameters
    ----------
    active : Active
        The items.
    weights : ndarray
        Where to start: above 0, with sum 1; first that of the rest, if there is one.
    order : Order
        The order.
    is_good_enough : callable
        Whether to stop at a point.
    max_decompositions : int
        Eigendecompositions, at most.
    report : callable
        Called after each.

    Notes
    -----
    This is a primal-dual interior-point method. The best weights p have slopes d = ν − s, s ≥ 0, p s = 0: all items
    that have weight have the same slope, and no other a larger one. The conditions p s = μ with a falling μ are solved
    instead, one Newton step each. On the way Σ p s = mμ is the gap that is left, so that a dozen steps do, whatever the
    data; each costs the curvature of all pairs of items, O(m² r), and a Cholesky factorisation.

    The curvature of −F that is used is q(B − hhᵀ): that of ‖ρ‖_q, which is homogeneous, so that one step goes as far
    for a high order as for a low one. It is 0 along p, where no step leads, since weights sum to 1; a multiple of 11ᵀ
    changes no such step and keeps the matrix positive definite.
    """
    point, decompositions, size = Point(active, weights, order), 1, len(weights)
    report()
    gap = point.steepest - point.mean
    duals = np.maximum(point.steepest - point.slopes, 0.1 * gap / size / weights)
    barrier_factor = FIRST_BARRIER_FACTOR
    while decompositions < max_decompositions and not is_good_enough(point):
        weights = point.weights
        barrier = barrier_factor * float(weights @ duals) / size
        step = _newton_step(point, duals, barrier)
        change = barrier / weights - duals - duals / weights * step
        longest_step = min(1.0, BOUNDARY_SHARE / max(float((-step / weights).max()), 1e-300))
        merit, slope = point.merit(barrier), float(step @ (point.slopes + barrier / weights))
        length, candidate = longest_step, point
        while decompositions < max_decompositions and length > SHORTEST_STEP:
            trial_weights = weights + length * step
            candidate = Point(active, trial_weights / trial_weights.sum(), order)
            decompositions += 1
            report()
            if candidate.merit(barrier) >= merit + 1e-4 * length * slope - 1e-12 * (1 + abs(merit)):
                break
            length, candidate = length / 2, point
        if candidate is point:
            break
        dual_length = min(1.0, BOUNDARY_SHARE / max(float((-change / duals).max()), 1e-300))
        duals = duals + (dual_length if length == longest_step else min(length, dual_length)) * change
        point, barrier_factor = candidate, BARRIER_FACTOR
    return point


def _newton_step(point: Point, duals: np.ndarray, barrier: float) -> np.ndarray:
    """The Newton step of the weights, with sum 0."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    weights, matrix = point.weights, point.curvature()
    diagonal = matrix.diagonal() + duals / weights
    for ridge in RIDGES:  # terms that were left out of the curvature may have made the matrix indefinite
        matrix.flat[:: len(matrix) + 1] = diagonal * (1 + ridge)
        with suppress(LinAlgError):
            factor = cho_factor(matrix, lower=True, check_finite=False)
            break
    else:
        raise ArithmeticError("the curvature of the weights is not finite")
    upward = point.slopes - point.steepest + barrier / weights
    solutions = cho_solve(factor, np.column_stack([upward, np.ones(len(weights))]), check_finite=False)
    return solutions[:, 0] - solutions[:, 0].sum() / solutions[:, 1].sum() * solutions[:, 1]
