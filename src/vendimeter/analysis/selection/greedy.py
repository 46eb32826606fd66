"""Lazy greedy choice: an item is looked at again only while what it once could add might still make it the best.

For a submodular objective an item never adds more than it once did, so that what was found earlier is an upper bound.
Every step evaluates items from the top of these bounds until the best of those that are up to date beats all other
bounds: that is the item a full search would take. So that a step does not have to go through a million bounds, it
works on a pool of the highest ones. When the best of the pool falls below the highest bound outside, all items that
could be the best within the next steps are bounded anew, and the pool is filled again.
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
from vendimeter.solvers.plan import SLOW
from vendimeter.spectrum import Eigenvalues
from vendimeter.threads import workers

__all__ = ["Chosen", "Eigenbasis", "Greedy", "Objective", "VendiGain", "Worth", "deficits", "sample_size"]


# --------------------------------------------------------------------------------------------------- greedy objectives

# What a greedy method asks of an objective, and the basis that several of them share.

NOTHING = 1e-13  # eigenvalues below this share of the largest are rounding, or too little to matter


class Objective(ABC):
    """What an item adds to the chosen ones: never more, the more of them there are.

    Attributes
    ----------
    ceiling : float
        What no item can add more than.
    rough : bool
        Whether `bound` is quicker than `evaluate`, and not exact.
    notes : list of str
        What there is to say of how it was computed.
    """

    ceiling: float
    rough = False

    def __init__(self, items: Items):
        self.items = items
        self.notes: list[str] = []

    @abstractmethod
    def evaluate(self, index: np.ndarray) -> np.ndarray:
        """What each of the items would add now."""

    def bound(self, index: np.ndarray) -> np.ndarray:
        """At least what each would add now."""
        return self.evaluate(index)

    def slow_down(self) -> bool:
        """Rough bounds turned out too low: have none from now on. False if there were none."""
        was, self.rough = self.rough, False
        return was

    @abstractmethod
    def add(self, item: int) -> float:
        """Choose an item; how far that takes the method, in terms that mean something to people."""

    def go_on(self, best: float) -> bool:
        """No item adds more than `best`: whether the objective has become another one, so that bounds are void."""
        return False

    @property
    @abstractmethod
    def work(self) -> float:
        """Operations to evaluate one item now."""


class Eigenbasis:
    """The eigenvalues of Σ φφᵀ over the chosen items that are not 0, and their eigenvectors in the terms of rows."""

    def __init__(self, items: Items):
        self._items = items
        self.values = np.zeros(0)
        self.vectors = np.zeros((items.width, 0))

    def update(self) -> None:
        """Find them anew, from the smaller side."""
        items, m = self._items, len(self._items.chosen)
        wide = items.scatter is not None and m > len(items.scatter)
        values, vectors = np.linalg.eigh(items.scatter if wide else items.gram[:m, :m])  # type: ignore[arg-type]
        keep = values > NOTHING * m * values[-1]
        self.values, vectors = values[keep], vectors[:, keep]
        self.vectors = np.ascontiguousarray(
            vectors if wide else items.vectors(vectors / np.sqrt(self.values))
        )


# -------------------------------------------------------------------------------------------------------------- greedy

PROBED = 16  # rough bounds that are checked at a time, the highest
WIDE = (
    512  # items to choose from which on BLAS is most of the work for similarities, too, and keeps its threads
)
MANY = 64  # threads, if there are so many cores
POOL = 8192  # items that a step goes through
BATCH, SLOW_BATCH, DEVICE_BATCH = (
    64,
    4,
    1024,
)  # items that are evaluated at a time at first; few where that takes long
AHEAD = 32  # steps for which bounds are made anew
LIMIT = 2e13  # operations for bounds and evaluations after which candidates are drawn at random …
MISS = 0.01  # … so many that the guarantee loses this much
TIE = 1e-13  # within which two are worth the same; the first is taken, whatever the rounding of a machine
LOOSE = 1e-9  # how far above its bound an item may turn out to be by rounding


def sample_size(n: int, k: int) -> int:
    """Candidates a step such that greedy choice from them keeps its guarantee less `MISS`, in the mean."""
    return min(n, math.ceil(n / k * math.log(1 / MISS)))


@dataclass
class Chosen:
    """What was chosen: positions, what each step was worth, and how it went."""

    order: np.ndarray
    gains: np.ndarray
    exact: bool = True
    copies: int = 0
    notes: list[str] = field(default_factory=list)


class Worth:
    """What a step is worth: what the item adds to the objective, and its quality.

    With qualities s and a weight τ the objective is the score of the k chosen items times their mean quality to the
    power τ. Its logarithm, −tr K log K/k + τ log Σ s but for a constant, is submodular.
    """

    def __init__(self, k: int, quality: np.ndarray | None, trade_off: float):
        self._k, self._trade_off = k, trade_off
        self._quality = None if quality is None else quality / quality.max()  # only ratios count
        self._total = 0.0

    def of(self, gains: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
        """The worth of items, or an upper bound of it where the gain is one."""
        if self._quality is None:
            return gains
        quality = self._quality if index is None else self._quality[index]
        if self._total:
            return gains / self._k + self._trade_off * np.log1p(quality / self._total)
        return gains / self._k + self._trade_off * np.log(np.maximum(quality, np.finfo(float).tiny))

    def add(self, item: int) -> None:
        """An item is chosen."""
        if self._quality is not None:
            self._total += float(self._quality[item])


class Greedy:
    """A greedy choice of `rules.k` items.

    Parameters
    ----------
    items : Items
        None of them chosen.
    objective : Objective
        What is to be as high as possible.
    rules : Rules
        Who may be chosen.
    worth : Worth
        What else counts.
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
        self._limit = {True: math.inf, False: -1.0, None: LIMIT}[exact]
        self._bounds = np.full(items.n, objective.ceiling)
        self._looked = np.full(items.n, -1, dtype=np.int32)  # the step at which a gain was up to date
        self._bounded = self._looked.copy()  # the step at which it was bounded last
        self._copy = np.zeros(items.n, dtype=bool)
        self._free = False  # whether copies of chosen items may be chosen, because there is nothing else
        self._pool = np.zeros(0, dtype=np.int64)
        self._outside = math.inf  # what nothing outside the pool is worth more than
        self._worths: list[float] = []
        self._spent, self._step = 0.0, 0
        self._batch = (
            SLOW_BATCH if items.cost >= SLOW else BATCH if items.similarity.like is None else DEVICE_BATCH
        )
        self._found = Chosen(np.zeros(rules.k, dtype=np.int64), np.zeros(rules.k))

    def run(self, report: Callable[[float, str], None]) -> Chosen:
        """Choose all of them."""
        alone = self._items.parallel or self._rules.k < WIDE
        with workers(MANY if alone else 1) as self._items.threads:
            return self._run(report)

    def _run(self, report: Callable[[float, str], None]) -> Chosen:
        found, k = self._found, self._rules.k
        for item in self._rules.required:
            self._take(item)
        while self._step < k:
            report(self._step / k, f"{self._step:,} of {k:,}")
            if self._spent > self._limit and found.exact:
                found.exact = False
                size = sample_size(self._items.n, k)
                found.notes.append(
                    f"the last {k - self._step:,} items are each the best of {size:,} drawn at random, not of all "
                    "(stochastic greedy): a full search would have taken too long; exact=True makes it"
                    if self._step
                    else f"every item is the best of {size:,} drawn at random, not of all (stochastic greedy)"
                )
            item, worth = self._best() if found.exact else self._best_of_sample()
            if self._objective.go_on(float(self._bounds[item])):
                self._forget()
                continue
            self._worths.append(worth)
            found.copies += self._free
            self._take(item)
        found.notes += self._objective.notes + self._items.notes
        if found.copies:
            copies = "is a copy of another" if found.copies == 1 else "are copies of others"
            found.notes.append(
                f"{found.copies:,} of the chosen items {copies} chosen before: there was nothing else left"
            )
        return found

    def _forget(self) -> None:
        """No bound holds any longer."""
        self._bounds[:] = self._objective.ceiling
        self._looked[:] = self._bounded[:] = -1
        self._pool, self._outside = self._pool[:0], math.inf
        self._worths.clear()

    def _take(self, item: int) -> None:
        self._found.order[self._step] = item
        self._found.gains[self._step] = self._objective.add(item)
        self._worth.add(item)
        self._rules.take(item)
        self._step += 1

    def _allowed(self) -> np.ndarray:
        """Who may be chosen now; copies of chosen items only where nothing else may."""
        allowed = self._rules.open if self._free else self._rules.open & ~self._copy
        if not allowed.any() and not self._free:
            self._free = True
            self._pool, self._outside = self._pool[:0], math.inf
            return self._rules.open
        return allowed

    # ------------------------------------------------------------------------------------------------ the best of all

    def _best(self) -> tuple[int, float]:
        """The item that is worth most, and its worth."""
        checked = 1
        while True:
            pool = self._pool[self._may(self._pool)]
            self._pool = pool
            item, worth = self._best_of(pool)
            if worth < self._outside or item < 0:
                self._refill(worth)
                continue
            if self._free or not self._mark_copies(np.array([item])):
                return item, worth
            # Where there is one copy there may be many: look at more and more of the highest bounds at once.
            checked = min(4 * checked, len(self._bounds))
            values = self._worth.of(self._bounds[pool], pool)
            self._mark_copies(pool[np.argsort(-values, kind="stable")[:checked]])
            if checked > POOL:
                self._mark_copies(np.flatnonzero(self._allowed()))

    def _may(self, index: np.ndarray) -> np.ndarray:
        return self._rules.open[index] & (self._free | ~self._copy[index])

    def _mark_copies(self, index: np.ndarray) -> bool:
        """Whether one of these items is the same as a chosen one; those that are wait until nothing else is left."""
        same = self._items.copies(index)
        self._copy[index[same]] = True
        return bool(same.any())

    def _best_of(self, pool: np.ndarray) -> tuple[int, float]:
        """The best of the pool, after as many evaluations as that takes; (−1, −∞) if the pool is empty."""
        batch, bounds = self._batch, self._bounds[pool]
        while len(pool):
            values = self._worth.of(bounds, pool)
            known = self._looked[pool] == self._step
            top = float(values[known].max(initial=-math.inf))
            stale = np.flatnonzero(~known & (values > top))
            if not len(stale):
                best = int(np.argmax(known & (values >= top - TIE * (1 + abs(top)))))
                return int(pool[best]), top
            stale = stale[np.argsort(-values[stale], kind="stable")[:batch]]
            batch *= 2
            if not self._evaluate(pool[stale]):
                return -1, -math.inf
            bounds = self._bounds[pool]
        return -1, -math.inf

    def _evaluate(self, index: np.ndarray) -> bool:
        """Bring gains up to date; False if bounds turned out too low, which are void then."""
        gains = self._objective.evaluate(index)
        self._count(len(index))
        low = gains > self._bounds[index] + LOOSE * (1 + np.abs(gains))
        if low.any() and self._objective.slow_down():
            self._forget()
            return False
        self._bounds[index] = gains
        self._looked[index] = self._bounded[index] = self._step
        return True

    def _count(self, looks: int) -> None:
        self._spent += looks * self._objective.work

    def _refill(self, worth: float) -> None:
        """Bound anew all items that could be worth more than the best known one, now or soon, and fill the pool."""
        allowed = self._allowed()
        values = np.where(allowed, self._worth.of(self._bounds), -math.inf)
        ahead = self._worths[-AHEAD] - self._worths[-1] if len(self._worths) >= AHEAD else 0.0
        need = np.flatnonzero((values > worth - max(ahead, 0.0)) & (self._bounded != self._step))
        if self._items.bulk and len(need) > POOL // 8:
            if not self._bound(need):
                return
            values[need] = self._worth.of(self._bounds[need], need)
        self._pool, self._outside = _highest(values, POOL)

    def _bound(self, index: np.ndarray) -> bool:
        """Bound many items anew; False if bounds turned out too low, which are void then."""
        if not self._objective.rough:
            return self._evaluate(index)
        self._bounds[index] = np.minimum(self._bounds[index], self._objective.bound(index))
        self._bounded[index] = self._step
        self._count(len(index))
        return self._evaluate(index[_highest(self._bounds[index], PROBED)[0]])

    # ------------------------------------------------------------------------------------------- the best of a sample

    def _best_of_sample(self) -> tuple[int, float]:
        while True:
            allowed = np.flatnonzero(self._allowed())
            size = min(sample_size(self._items.n, self._rules.k), len(allowed))
            drawn = np.sort(self._rng.choice(allowed, size=size, replace=False))
            gains = self._objective.evaluate(drawn)
            self._count(len(drawn))
            self._bounds[drawn] = gains
            values = self._worth.of(gains, drawn)
            for place in np.argsort(-values, kind="stable").tolist():
                item = int(drawn[place])
                if self._free or not self._mark_copies(np.array([item])):
                    return item, float(values[place])


def _highest(values: np.ndarray, count: int) -> tuple[np.ndarray, float]:
    """Positions of the `count` highest finite values, ascending, the first of equal ones; and the next value."""
    finite = np.flatnonzero(values > -math.inf)
    if len(finite) <= count:
        return finite, -math.inf
    some = values[finite]
    edge = float(-np.partition(-some, count)[count])  # the one after the `count` highest
    above = finite[some > edge]
    level = finite[some == edge][: count - len(above)]
    return np.sort(np.concatenate([above, level])), edge


# -------------------------------------------------------------------------------------------------------- greedy vendi

# Greedy choice for the Vendi Score of the chosen set: what each candidate would add, for many of them at once.
#
# For a fixed number of items the score of order q grows with ∓tr K^q (− above 1, −tr K log K at 1), which is submodular
# for q from 0 to 2. Let σ = Σ φφᵀ = Σ_a μ_a v_a v_aᵀ over the chosen items, φ a candidate of norm 1 with coordinates
# y_a = v_aᵀφ, and L(t) = log det(σ + φφᵀ + t) − log det(σ + t) = log(1 + φᵀ(σ + t)⁻¹φ). Since tr(σ + t)⁻¹ is the
# derivative of log det(σ + t), and x^q = (sin πq/π) ∫ t^(q−1) x/(x + t) dt below 1 (similarly up to 2),
#
#     Δ tr σ^q = 1 − (q sin πq/π) J_q,   Δ tr σ log σ = J_1,   J_q = ∫₀^∞ t^(q−1) (L₀(t) − L(t)) dt,
#
# after integration by parts, with L₀(t) = log(1 + 1/t), the L of the first item, which adds 1. So for every order from
# 0
# to 2 the best candidate is that of the smallest J_q. In coordinates L₀ − L = −log(1 − w), where
#
#     w(t) = Σ_a y_a² μ_a/((μ_a + t)(1 + t)),   1 − w(t) = (1 − Σ y_a²) + Σ_a y_a² t (1 + μ_a + t)/((μ_a + t)(1 + t)):
#
# all terms are positive, and a product of the matrix of y² with a table gives w or 1 − w at all nodes. With t = e^s the
# integrand is analytic in a strip of half-width π, so that the trapezoidal rule of step h is off by about exp(−2π²/h).
# Where t is large, w = m₁/t² − (m₁ + m₂)/t³ + …, m_j = Σ y_a² μ_a^j, and the rest of the sum is a geometric one.

FINE, COARSE = 0.65, 1.0  # steps of the rule: rounding of float64, and 3·10⁻⁹ where float32 is all there is
DEPTH, COARSE_DEPTH = 36.0, 18.0  # −log of the least t, where t·log t is below rounding
REACH, COARSE_REACH = 15.0, 8.0  # log of the largest t over that of the eigenvalues
ALLOWANCE = (
    2e-5  # for the rounding of float32 in J, as a share of 1 + J; what was measured is below a tenth of that
)

NODES = 160  # about as many as there are at most, for estimates


class _Rule(NamedTuple):
    """What y² is multiplied by, and the weights of what comes of it."""

    table: np.ndarray
    low: np.ndarray  # of nodes up to t = 1, whose columns give 1 − w
    high: np.ndarray  # of nodes beyond, whose columns give w
    tail: tuple[float, float]  # of m₁ and m₁ + m₂

    def mapped(self, function: Callable[[np.ndarray], Any]) -> _Rule:
        """The same in another precision, or on a device."""
        return _Rule(function(self.table), function(self.low), function(self.high), self.tail)


def _rule(values: np.ndarray, q: float, coarse: bool, most: float | None = None) -> _Rule:
    """The rule for these eigenvalues, or for any up to `most`."""
    h = COARSE if coarse else FINE
    depth, reach = (COARSE_DEPTH, COARSE_REACH) if coarse else (DEPTH / min(q, 1.0), REACH)
    top = math.log1p(values.max() if most is None else most)
    first, last = -math.ceil(depth / h), math.ceil((top + reach) / h)
    t = np.exp(h * np.arange(first, last + 1))
    weights = h * t**q
    mu, low, high = values[:, None], t[: 1 - first], t[1 - first :]
    table = np.concatenate(
        [
            low * (1 + mu + low) / ((mu + low) * (1 + low)),
            mu / ((mu + high) * (1 + high)),
            np.ones_like(mu),
            mu,
            mu * mu,
        ],
        axis=1,
    )
    tail = [h * float(t[-1]) ** p / math.expm1(-p * h) for p in (q - 2, q - 3)]
    return _Rule(table, weights[: len(low)], weights[len(low) :], (tail[0], tail[1]))


def deficits(squares: Any, rule: _Rule) -> Any:
    """J for rows of squared coordinates, in their precision, where they lie."""
    xp = namespace(squares)
    seen = squares @ rule.table
    low, high = rule.low.shape[0], rule.high.shape[0]
    outside = 1 - seen[:, low + high]
    outside = 0.5 * (
        outside + xp.abs(outside)
    )  # of a candidate in the span only rounding is left, of either sign
    found = xp.log(seen[:, :low] + outside[:, None]) @ rule.low
    if high:
        found = found + xp.log1p(-seen[:, low : low + high]) @ rule.high
    first, second = seen[:, low + high + 1], seen[:, low + high + 2]
    return first * rule.tail[0] - (first + second) * rule.tail[1] - found


class VendiGain(Objective):
    """The Vendi Score of the chosen set; what an item adds is −J.

    Parameters
    ----------
    items : Items
        None of them chosen yet.
    q : float
        The order, above 0 and up to 2.
    """

    ceiling = 0.0

    def __init__(self, items: Items, q: float):
        super().__init__(items)
        self._q = q
        self._basis = Eigenbasis(items)
        self._rules: dict[bool, Any] = {}
        self.rough = items.single and 1 <= q < 2
        self._reached = 0.0

    @property
    def work(self) -> float:
        rank = len(self._basis.values)
        return 2.0 * rank * (self.items.width + NODES / 2) + self.items.row_cost

    def add(self, item: int) -> float:
        """Choose an item; the rise of the score."""
        self.items.add(item)
        self._basis.update()
        self._rules = {}
        before = self._reached
        spectrum = Eigenvalues(self._basis.values[::-1] / len(self.items.chosen), 0.0)
        self._reached = float(spectrum.score(self._q).value)
        return self._reached - before

    def evaluate(self, index: np.ndarray) -> np.ndarray:
        found = np.zeros(len(index))
        if not self.items.chosen:
            return found

        def task(part: slice) -> None:
            coordinates = self.items.coordinates(index[part], self._basis.vectors)
            deficit = to_host(self._deficits(coordinates * coordinates, coarse=False))
            found[part] = -deficit[: part.stop - part.start]

        self.items.spread(task, len(index), len(self._basis.values) + NODES)
        return found

    def bound(self, index: np.ndarray) -> np.ndarray:
        if not (self.rough and self.items.chosen):
            return self.evaluate(index)
        found = np.empty(len(index))
        vectors = self._basis.vectors.astype(np.float32)
        self.items.quick(index[:1])  # the copy is made before threads ask for it

        def task(part: slice) -> None:
            squares = self.items.quick(index[part]) @ vectors
            squares *= squares
            found[part] = ALLOWANCE - (1 - ALLOWANCE) * self._deficits(squares, coarse=True)

        self.items.spread(task, len(index), len(self._basis.values) + NODES)
        return found

    def _deficits(self, squares: Any, coarse: bool) -> Any:
        if self._q == 2:  # Δ tr σ² = 1 + 2 φᵀσφ
            return squares @ move(self.items.padded(self._basis.values), squares)
        return deficits(squares, self._rule(coarse, squares))

    def _rule(self, coarse: bool, like: Any) -> Any:
        if coarse not in self._rules:
            if isinstance(like, np.ndarray):
                rule = _rule(self._basis.values, self._q, coarse)
            else:  # with as many nodes at every step, as some libraries compile anew for every shape
                values = self.items.padded(self._basis.values)
                rule = _rule(values, self._q, coarse, most=self.items.k).mapped(lambda a: move(a, like))
            if coarse:
                rule = rule.mapped(lambda array: array.astype(np.float32))
            self._rules[coarse] = rule
        return self._rules[coarse]
