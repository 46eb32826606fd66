"""Lazy greedy maximisation of submodular objectives, and the Vendi Score as such an objective.

For a submodular objective the marginal gain of an item never rises, so that an earlier gain is an upper bound. Every
step evaluates items from the top of these bounds until the best of those that are up to date beats all other bounds:
that is the item a full search would take. So that a step does not have to go through a million bounds, it works on a
pool of the highest ones. When the best of the pool falls below the highest bound outside, all items that could be the
best within the next steps are bounded anew, and the pool is filled again.

`Objective` is what such a search needs to know of an objective, `Greedy` the search, `VendiGain` the objective of the
Vendi Score, and `Eigenbasis` the eigenvectors that it shares with the determinant (`methods.LogDet`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from vendimeter.analysis.selection.items import Items
from vendimeter.analysis.selection.rules import Rules
from vendimeter.data.devices import move, namespace, to_host
from vendimeter.present.notes import Advice, Note
from vendimeter.solvers.plan import SLOW
from vendimeter.spectrum import Eigenvalues
from vendimeter.threads import workers

__all__ = ["Choice", "Eigenbasis", "Greedy", "Objective", "VendiGain", "Worth", "deficits", "sample_size"]


# --------------------------------------------------------------------------------------------------------- objectives

EIGENVALUE_FLOOR = 1e-13  # eigenvalues below this share of the largest are rounding, or too little to matter


class Objective(ABC):
    """A submodular objective: the marginal gain of an item never rises as more items are chosen.

    Attributes
    ----------
    ceiling : float
        An upper bound of every gain.
    rough : bool
        Whether `bound` is cheaper than `evaluate`, and not exact.
    notes : list of Note
        What the user should know of how it was computed.
    """

    ceiling: float
    rough = False

    def __init__(self, items: Items):
        self.items = items
        self.notes: list[Note] = []

    @abstractmethod
    def evaluate(self, index: np.ndarray) -> np.ndarray:
        """Compute the marginal gains of the items now."""

    def bound(self, index: np.ndarray) -> np.ndarray:
        """Compute upper bounds of the gains of the items now."""
        return self.evaluate(index)

    def drop_rough_bounds(self) -> bool:
        """Use no rough bounds from now on, since they turned out too low; False if there were none."""
        was_rough, self.rough = self.rough, False
        return was_rough

    @abstractmethod
    def add(self, item: int) -> float:
        """Choose an item; return its gain in the terms of the method, for the user to read."""

    def switch(self, best: float) -> bool:
        """Switch to another objective if a best gain of `best` is too little for this one; True if bounds are void."""
        return False

    @property
    @abstractmethod
    def work(self) -> float:
        """Floating-point operations to evaluate one item now."""


class Eigenbasis:
    """The nonzero eigenvalues of Σ φφᵀ over the chosen items, and their eigenvectors in the coordinates of rows."""

    def __init__(self, items: Items):
        self._items = items
        self.values = np.zeros(0)
        self.vectors = np.zeros((items.width, 0))

    def update(self) -> None:
        """Compute them anew, from the smaller of Gram and scatter matrix."""
        items, count = self._items, len(self._items.chosen)
        use_scatter = items.scatter is not None and count > len(items.scatter)
        values, vectors = np.linalg.eigh(items.scatter if use_scatter else items.gram[:count, :count])  # type: ignore[arg-type]
        kept = values > EIGENVALUE_FLOOR * count * values[-1]
        self.values, vectors = values[kept], vectors[:, kept]
        self.vectors = np.ascontiguousarray(
            vectors if use_scatter else items.vectors(vectors / np.sqrt(self.values))
        )


# --------------------------------------------------------------------------------------------------------- the search

PROBES = 16  # rough bounds that are checked at a time, the highest
# Number of items to choose from which on BLAS does most of the work for similarities, too, and keeps its threads.
BLAS_BOUND = 512
MOST_THREADS = 64
POOL = 8192  # items that a step goes through
# Items that are evaluated at a time at first; few where an evaluation takes long.
BATCH, SLOW_BATCH, DEVICE_BATCH = 64, 4, 1024
AHEAD = 32  # steps for which bounds are made anew
LIMIT = 2e13  # operations for bounds and evaluations after which candidates are drawn at random …
GUARANTEE_LOSS = 0.01  # … so many that the guarantee loses this much
TIE = 1e-13  # relative difference within which two are worth the same; the first is taken, on every machine
BOUND_SLACK = 1e-9  # how far above its bound an item may turn out to be by rounding


def sample_size(n: int, k: int) -> int:
    """Candidates a step for stochastic greedy choice to keep the guarantee less `GUARANTEE_LOSS`, in the mean."""
    return min(n, math.ceil(n / k * math.log(1 / GUARANTEE_LOSS)))


@dataclass
class Choice:
    """The chosen items: their positions in order of choice, the gain of each step, and how it went."""

    order: np.ndarray
    gains: np.ndarray
    exact: bool = True
    copies: int = 0
    notes: list[Note] = field(default_factory=list)


class Worth:
    """The worth of a step: the gain of the objective, with the quality of the item.

    With qualities s and a weight τ the objective is the score of the k chosen items times their mean quality to the
    power τ. Its logarithm, −tr K log K/k + τ log Σ s but for a constant, is submodular.
    """

    def __init__(self, k: int, quality: np.ndarray | None, trade_off: float):
        self._k, self._trade_off = k, trade_off
        self._quality = None if quality is None else quality / quality.max()  # only ratios count
        self._total = 0.0

    def evaluate(self, gains: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
        """Compute the worth of items from their gains, or an upper bound of it from upper bounds."""
        if self._quality is None:
            return gains
        quality = self._quality if index is None else self._quality[index]
        if self._total:
            return gains / self._k + self._trade_off * np.log1p(quality / self._total)
        return gains / self._k + self._trade_off * np.log(np.maximum(quality, np.finfo(float).tiny))

    def add(self, item: int) -> None:
        """Choose an item."""
        if self._quality is not None:
            self._total += float(self._quality[item])


class Greedy:
    """Lazy greedy choice of `rules.k` items.

    Parameters
    ----------
    items : Items
        None of them chosen.
    objective : Objective
        To maximise.
    rules : Rules
        Which items may be chosen.
    worth : Worth
        Of a step; with quality, if that counts.
    exact : bool or None
        Whether every step takes the best item of all: always, never (the best of a random sample), or (None) until the
        limit of operations is spent.
    rng : Generator
        For samples.
    """

    def __init__(
        self,
        items: Items,
        objective: Objective,
        rules: Rules,
        worth: Worth,
        exact: bool | None,
        rng: np.random.Generator,
    ):
        self._items, self._objective, self._rules, self._worth = items, objective, rules, worth
        self._rng = rng
        self._operations_limit = {True: math.inf, False: -1.0, None: LIMIT}[exact]
        self._bounds = np.full(items.n, objective.ceiling)
        self._evaluated_at = np.full(items.n, -1, dtype=np.int32)  # the step of the last evaluation
        self._bounded_at = self._evaluated_at.copy()  # the step of the last bound
        self._is_copy = np.zeros(items.n, dtype=bool)
        self._copies_allowed = False  # until nothing else is left
        self._pool = np.zeros(0, dtype=np.int64)
        self._outside_bound = math.inf  # upper bound of the worth of all items outside the pool
        self._worth_history: list[float] = []
        self._operations, self._step = 0.0, 0
        self._batch_size = (
            SLOW_BATCH if items.cost >= SLOW else BATCH if items.similarity.like is None else DEVICE_BATCH
        )
        self._choice = Choice(np.zeros(rules.k, dtype=np.int64), np.zeros(rules.k))

    def run(self, report: Callable[[float, str], None]) -> Choice:
        """Choose the items."""
        one_blas_thread = self._items.parallel or self._rules.k < BLAS_BOUND
        with workers(MOST_THREADS if one_blas_thread else 1) as self._items.threads:
            return self._run(report)

    def _run(self, report: Callable[[float, str], None]) -> Choice:
        choice, k = self._choice, self._rules.k
        for item in self._rules.required:
            self._choose(item)
        while self._step < k:
            report(self._step / k, f"{self._step:,} of {k:,}")
            if self._operations > self._operations_limit and choice.exact:
                choice.exact = False
                sample = sample_size(self._items.n, k)
                drawn = f"the best of {sample:,} drawn at random, not of all (stochastic greedy)"
                text, advice = f"Every item is {drawn}.", None
                if self._step:
                    text = f"The last {k - self._step:,} items are each {drawn}: "
                    text += "a full search would have taken too long."
                    advice = Advice("{} makes it.", "exact", "True", python_only=True)
                values = {"items": k - self._step, "candidates": sample}
                choice.notes.append(Note("stochastic-greedy", text, values, advice))
            item, worth = self._best_of_all() if choice.exact else self._best_in_sample()
            if self._objective.switch(float(self._bounds[item])):
                self._void_bounds()
                continue
            self._worth_history.append(worth)
            choice.copies += self._copies_allowed
            self._choose(item)
        choice.notes += self._objective.notes + self._items.notes
        if choice.copies:
            copies = "is a copy of another" if choice.copies == 1 else "are copies of others"
            text = (
                f"{choice.copies:,} of the chosen items {copies} chosen before: there was nothing else left."
            )
            choice.notes.append(Note("copies", text, {"copies": choice.copies}))
        return choice

    def _void_bounds(self) -> None:
        """Forget all bounds."""
        self._bounds[:] = self._objective.ceiling
        self._evaluated_at[:] = self._bounded_at[:] = -1
        self._pool, self._outside_bound = self._pool[:0], math.inf
        self._worth_history.clear()

    def _choose(self, item: int) -> None:
        self._choice.order[self._step] = item
        self._choice.gains[self._step] = self._objective.add(item)
        self._worth.add(item)
        self._rules.take(item)
        self._step += 1

    def _allowed(self) -> np.ndarray:
        """Mask of the items that may be chosen now; copies of chosen items only where nothing else may."""
        allowed = self._rules.open if self._copies_allowed else self._rules.open & ~self._is_copy
        if not allowed.any() and not self._copies_allowed:
            self._copies_allowed = True
            self._pool, self._outside_bound = self._pool[:0], math.inf
            return self._rules.open
        return allowed

    # ----------------------------------------------------------------------------------------- full search

    def _best_of_all(self) -> tuple[int, float]:
        """Find the item of highest worth, and its worth."""
        candidates = 1
        while True:
            pool = self._pool[self._choosable(self._pool)]
            self._pool = pool
            item, worth = self._best_in_pool(pool)
            if worth < self._outside_bound or item < 0:
                self._refill_pool(worth)
                continue
            if self._outside_bound >= _least_equal(worth):
                item = self._first_of_equal(item, worth)
                if item < 0:
                    continue
            if self._copies_allowed or not self._mark_copies(np.array([item])):
                return item, worth
            # Where there is one copy there may be many: check more and more of the highest bounds at once.
            candidates = min(4 * candidates, len(self._bounds))
            worths = self._worth.evaluate(self._bounds[pool], pool)
            self._mark_copies(pool[np.argsort(-worths, kind="stable")[:candidates]])
            if candidates > POOL:
                self._mark_copies(np.flatnonzero(self._allowed()))

    def _choosable(self, index: np.ndarray) -> np.ndarray:
        return self._rules.open[index] & (self._copies_allowed | ~self._is_copy[index])

    def _mark_copies(self, index: np.ndarray) -> bool:
        """Put off copies of chosen items until nothing else is left; return whether there are any among these."""
        copies = self._items.copies(index)
        self._is_copy[index[copies]] = True
        return bool(copies.any())

    def _best_in_pool(self, pool: np.ndarray) -> tuple[int, float]:
        """Find the best item of the pool by lazy evaluation; (−1, −∞) if the pool is empty or bounds are void."""
        batch_size, bounds = self._batch_size, self._bounds[pool]
        while len(pool):
            worths = self._worth.evaluate(bounds, pool)
            current = self._evaluated_at[pool] == self._step
            best_worth = float(worths[current].max(initial=-math.inf))
            stale = np.flatnonzero(~current & (worths > best_worth))
            if not len(stale):
                equal = worths >= _least_equal(best_worth)
                first = int(np.argmax(current & equal))
                stale = np.flatnonzero(equal[:first])  # items before it that may be worth as much
                if not len(stale):
                    return int(pool[first]), best_worth
            stale = stale[np.argsort(-worths[stale], kind="stable")[:batch_size]]
            batch_size *= 2
            if not self._evaluate_gains(pool[stale]):
                return -1, -math.inf
            bounds = self._bounds[pool]
        return -1, -math.inf

    def _first_of_equal(self, item: int, worth: float) -> int:
        """The first of all items that are worth as much as the best of the pool; −1 if bounds are void."""
        batch_size, before = self._batch_size, np.arange(item)
        before = before[self._choosable(before)]
        while True:
            equal = before[self._worth.evaluate(self._bounds[before], before) >= _least_equal(worth)]
            stale = equal[self._evaluated_at[equal] != self._step]
            if not len(equal) or not len(stale) or equal[0] < stale[0]:
                return int(equal[0]) if len(equal) else item
            if not self._evaluate_gains(stale[:batch_size]):
                return -1
            batch_size *= 2

    def _evaluate_gains(self, index: np.ndarray) -> bool:
        """Bring gains up to date; False if bounds turned out too low, and all are void."""
        gains = self._objective.evaluate(index)
        self._count_operations(len(index))
        above_bound = gains > self._bounds[index] + BOUND_SLACK * (1 + np.abs(gains))
        if above_bound.any() and self._objective.drop_rough_bounds():
            self._void_bounds()
            return False
        self._bounds[index] = gains
        self._evaluated_at[index] = self._bounded_at[index] = self._step
        return True

    def _count_operations(self, evaluations: int) -> None:
        self._operations += evaluations * self._objective.work

    def _refill_pool(self, best_worth: float) -> None:
        """Tighten the bounds of all items that could be the best one now or soon, and fill the pool."""
        allowed = self._allowed()
        worths = np.where(allowed, self._worth.evaluate(self._bounds), -math.inf)
        recent_fall = (
            self._worth_history[-AHEAD] - self._worth_history[-1]
            if len(self._worth_history) >= AHEAD
            else 0.0
        )
        stale = np.flatnonzero(
            (worths > best_worth - max(recent_fall, 0.0)) & (self._bounded_at != self._step)
        )
        if self._items.bulk and len(stale) > POOL // 8:
            if not self._tighten_bounds(stale):
                return
            worths[stale] = self._worth.evaluate(self._bounds[stale], stale)
        self._pool, self._outside_bound = _highest(worths, POOL)

    def _tighten_bounds(self, index: np.ndarray) -> bool:
        """Tighten the bounds of many items; False if bounds turned out too low, and all are void."""
        if not self._objective.rough:
            return self._evaluate_gains(index)
        self._bounds[index] = np.minimum(self._bounds[index], self._objective.bound(index))
        self._bounded_at[index] = self._step
        self._count_operations(len(index))
        return self._evaluate_gains(index[_highest(self._bounds[index], PROBES)[0]])

    # ------------------------------------------------------------------------------------------- stochastic greedy

    def _best_in_sample(self) -> tuple[int, float]:
        """Find the best item of a random sample."""
        while True:
            allowed = np.flatnonzero(self._allowed())
            size = min(sample_size(self._items.n, self._rules.k), len(allowed))
            sample = np.sort(self._rng.choice(allowed, size=size, replace=False))
            gains = self._objective.evaluate(sample)
            self._count_operations(len(sample))
            self._bounds[sample] = gains
            worths = self._worth.evaluate(gains, sample)
            for position in np.argsort(-worths, kind="stable").tolist():
                item = int(sample[position])
                if self._copies_allowed or not self._mark_copies(np.array([item])):
                    return item, float(worths[position])


def _least_equal(worth: float) -> float:
    """The least worth that counts as equal to this one."""
    return worth - TIE * (1 + abs(worth))


def _highest(values: np.ndarray, count: int) -> tuple[np.ndarray, float]:
    """Positions of the `count` highest finite values, ascending, the first of equal ones; and the next value."""
    finite = np.flatnonzero(values > -math.inf)
    if len(finite) <= count:
        return finite, -math.inf
    finite_values = values[finite]
    next_value = float(-np.partition(-finite_values, count)[count])
    above = finite[finite_values > next_value]
    tied = finite[finite_values == next_value][: count - len(above)]
    return np.sort(np.concatenate([above, tied])), next_value


# ---------------------------------------------------------------------------------------------------- the Vendi Score

# Steps of the trapezoidal rule: for rounding of float64, and for 3·10⁻⁹ where float32 is all there is.
FINE_STEP, COARSE_STEP = 0.65, 1.0
DEPTH, COARSE_DEPTH = 36.0, 18.0  # −log of the least t, where t·log t is below rounding
REACH, COARSE_REACH = 15.0, 8.0  # log of the largest t over that of the eigenvalues
# For the rounding of float32 in J, as a share of 1 + J; what was measured is below a tenth of that.
ALLOWANCE = 2e-5
TYPICAL_NODES = 160  # about the most nodes that a quadrature has, for estimates


class _Quadrature(NamedTuple):
    """A quadrature of J: the table that y² is multiplied by, and the weights of the logarithms of the products."""

    table: np.ndarray
    low: np.ndarray  # of nodes up to t = 1, whose columns give 1 − w
    high: np.ndarray  # of nodes beyond, whose columns give w
    tail: tuple[float, float]  # of m₁ and m₁ + m₂

    def map(self, function: Callable[[np.ndarray], Any]) -> _Quadrature:
        """Convert it to another precision, or move it to a device."""
        return _Quadrature(function(self.table), function(self.low), function(self.high), self.tail)


def _quadrature(
    values: np.ndarray, q: float, coarse: bool, largest_eigenvalue: float | None = None
) -> _Quadrature:
    """The quadrature for these eigenvalues, or for any up to the `largest_eigenvalue`."""
    h = COARSE_STEP if coarse else FINE_STEP
    depth, reach = (COARSE_DEPTH, COARSE_REACH) if coarse else (DEPTH / min(q, 1.0), REACH)
    top = math.log1p(values.max() if largest_eigenvalue is None else largest_eigenvalue)
    first, last = -math.ceil(depth / h), math.ceil((top + reach) / h)
    t = np.exp(h * np.arange(first, last + 1))
    weights = h * t**q
    eigenvalues, low, high = values[:, None], t[: 1 - first], t[1 - first :]
    table = np.concatenate(
        [
            low * (1 + eigenvalues + low) / ((eigenvalues + low) * (1 + low)),
            eigenvalues / ((eigenvalues + high) * (1 + high)),
            np.ones_like(eigenvalues),
            eigenvalues,
            eigenvalues * eigenvalues,
        ],
        axis=1,
    )
    tail = [h * float(t[-1]) ** p / math.expm1(-p * h) for p in (q - 2, q - 3)]
    return _Quadrature(table, weights[: len(low)], weights[len(low) :], (tail[0], tail[1]))


def deficits(squares: Any, quadrature: _Quadrature) -> Any:
    """Compute J for rows of squared coordinates, in their precision and on their device."""
    xp = namespace(squares)
    products = squares @ quadrature.table
    low_count, high_count = quadrature.low.shape[0], quadrature.high.shape[0]
    nodes = low_count + high_count
    outside = 1 - products[:, nodes]
    # Of a candidate in the span only rounding is left, of either sign.
    outside = 0.5 * (outside + xp.abs(outside))
    logarithms = xp.log(products[:, :low_count] + outside[:, None]) @ quadrature.low
    if high_count:
        logarithms = logarithms + xp.log1p(-products[:, low_count:nodes]) @ quadrature.high
    first_moment, second_moment = products[:, nodes + 1], products[:, nodes + 2]
    first_tail, second_tail = quadrature.tail
    return first_moment * first_tail - (first_moment + second_moment) * second_tail - logarithms


class VendiGain(Objective):
    """The Vendi Score of the chosen set: gains of many candidates at once; the gain of an item is −J.

    Parameters
    ----------
    items : Items
        None of them chosen yet.
    q : float
        The order, above 0 and up to 2.

    Notes
    -----
    For a fixed number of items the score of order q grows with ∓tr K^q (− above 1, −tr K log K at 1), which is
    submodular for q from 0 to 2. Let σ = Σ φφᵀ = Σ_a μ_a v_a v_aᵀ over the chosen items, φ a candidate of norm 1 with
    coordinates y_a = v_aᵀφ, and L(t) = log det(σ + φφᵀ + t) − log det(σ + t) = log(1 + φᵀ(σ + t)⁻¹φ). Since
    tr(σ + t)⁻¹ is the derivative of log det(σ + t), and x^q = (sin πq/π) ∫ t^(q−1) x/(x + t) dt below 1 (similarly up
    to 2),

        Δ tr σ^q = 1 − (q sin πq/π) J_q,   Δ tr σ log σ = J_1,   J_q = ∫₀^∞ t^(q−1) (L₀(t) − L(t)) dt,

    after integration by parts, with L₀(t) = log(1 + 1/t), the L of the first item, which adds 1. So for every order
    from 0 to 2 the best candidate is that of the smallest J_q. In coordinates L₀ − L = −log(1 − w), where

        w(t) = Σ_a y_a² μ_a/((μ_a + t)(1 + t)),   1 − w(t) = (1 − Σ y_a²) + Σ_a y_a² t (1 + μ_a + t)/((μ_a + t)(1 + t)):

    all terms are positive, and a product of the matrix of y² with a table gives w or 1 − w at all nodes. With t = e^s
    the integrand is analytic in a strip of half-width π, so that the trapezoidal rule of step h is off by about
    exp(−2π²/h). Where t is large, w = m₁/t² − (m₁ + m₂)/t³ + …, m_j = Σ y_a² μ_a^j, and the rest of the sum is a
    geometric one.
    """

    ceiling = 0.0

    def __init__(self, items: Items, q: float):
        super().__init__(items)
        self._q = q
        self._basis = Eigenbasis(items)
        self._quadratures: dict[bool, Any] = {}
        self.rough = items.has_float32 and 1 <= q < 2
        self._score = 0.0

    @property
    def work(self) -> float:
        """Floating-point operations to evaluate one item now."""
        rank = len(self._basis.values)
        return 2.0 * rank * (self.items.width + TYPICAL_NODES / 2) + self.items.row_cost

    def add(self, item: int) -> float:
        """Choose an item; return the rise of the score."""
        self.items.add(item)
        self._basis.update()
        self._quadratures = {}
        previous = self._score
        spectrum = Eigenvalues(self._basis.values[::-1] / len(self.items.chosen), 0.0)
        self._score = float(spectrum.score(self._q).value)
        return self._score - previous

    def evaluate(self, index: np.ndarray) -> np.ndarray:
        """Compute the gains of the items, −J, in float64."""
        gains = np.zeros(len(index))
        if not self.items.chosen:
            return gains

        def task(block: slice) -> None:
            coordinates = self.items.coordinates(index[block], self._basis.vectors)
            deficit = to_host(self._deficits(coordinates * coordinates, coarse=False))
            gains[block] = -deficit[: block.stop - block.start]

        self.items.run_blocks(task, len(index), len(self._basis.values) + TYPICAL_NODES)
        return gains

    def bound(self, index: np.ndarray) -> np.ndarray:
        """Compute upper bounds of the gains, with float32 rows where there are any."""
        if not (self.rough and self.items.chosen):
            return self.evaluate(index)
        bounds = np.empty(len(index))
        vectors = self._basis.vectors.astype(np.float32)
        self.items.float32_rows(index[:1])  # the copy is made before threads ask for it

        def task(block: slice) -> None:
            squares = self.items.float32_rows(index[block]) @ vectors
            squares *= squares
            bounds[block] = ALLOWANCE - (1 - ALLOWANCE) * self._deficits(squares, coarse=True)

        self.items.run_blocks(task, len(index), len(self._basis.values) + TYPICAL_NODES)
        return bounds

    def _deficits(self, squares: Any, coarse: bool) -> Any:
        if self._q == 2:  # Δ tr σ² = 1 + 2 φᵀσφ
            return squares @ move(self.items.pad(self._basis.values), squares)
        return deficits(squares, self._cached_quadrature(coarse, squares))

    def _cached_quadrature(self, coarse: bool, like: Any) -> Any:
        if coarse not in self._quadratures:
            if isinstance(like, np.ndarray):
                quadrature = _quadrature(self._basis.values, self._q, coarse)
            else:  # with as many nodes at every step, as some libraries compile anew for every shape
                values = self.items.pad(self._basis.values)
                quadrature = _quadrature(values, self._q, coarse, largest_eigenvalue=self.items.k).map(
                    lambda array: move(array, like)
                )
            if coarse:
                quadrature = quadrature.map(lambda array: array.astype(np.float32))
            self._quadratures[coarse] = quadrature
        return self._quadratures[coarse]
