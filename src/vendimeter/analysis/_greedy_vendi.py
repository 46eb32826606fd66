"""Greedy choice for the Vendi Score of the chosen set: what each candidate would add, for many of them at once.

For a fixed number of items the score of order q grows with ∓tr K^q (− above 1, −tr K log K at 1), which is submodular
for q from 0 to 2. Let σ = Σ φφᵀ = Σ_a μ_a v_a v_aᵀ over the chosen items, φ a candidate of norm 1 with coordinates
y_a = v_aᵀφ, and L(t) = log det(σ + φφᵀ + t) − log det(σ + t) = log(1 + φᵀ(σ + t)⁻¹φ). Since tr(σ + t)⁻¹ is the
derivative of log det(σ + t), and x^q = (sin πq/π) ∫ t^(q−1) x/(x + t) dt below 1 (similarly up to 2),

    Δ tr σ^q = 1 − (q sin πq/π) J_q,   Δ tr σ log σ = J_1,   J_q = ∫₀^∞ t^(q−1) (L₀(t) − L(t)) dt,

after integration by parts, with L₀(t) = log(1 + 1/t), the L of the first item, which adds 1. So for every order from 0
to 2 the best candidate is that of the smallest J_q. In coordinates L₀ − L = −log(1 − w), where

    w(t) = Σ_a y_a² μ_a/((μ_a + t)(1 + t)),   1 − w(t) = (1 − Σ y_a²) + Σ_a y_a² t (1 + μ_a + t)/((μ_a + t)(1 + t)):

all terms are positive, and a product of the matrix of y² with a table gives w or 1 − w at all nodes. With t = e^s the
integrand is analytic in a strip of half-width π, so that the trapezoidal rule of step h is off by about exp(−2π²/h).
Where t is large, w = m₁/t² − (m₁ + m₂)/t³ + …, m_j = Σ y_a² μ_a^j, and the rest of the sum is a geometric one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from vendimeter.analysis._greedy_items import Items
from vendimeter.analysis._greedy_objectives import Eigenbasis, Objective
from vendimeter.data.devices import move, namespace, to_host
from vendimeter.spectrum import Eigenvalues

__all__ = ["VendiGain", "deficits"]

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
