"""The Vendi Score of order q as a function of the state ρ: value, slopes, curvature, and a bound on its maximum.

F = log VS_q of ρ = Σ p φφᵀ rises with T = Σf(λ), which is concave in p. Along φφᵀ it has the slope
d = Σ_a y_a² c_a, with the coordinates y of φ in the eigenbasis of ρ and, up to a constant, c = −log λ for q = 1 and
(q/(1−q)) λ^(q−1)/M for others, M = Σλ^q. Its mean Σ p d is d̄.

*The bound.* Let σ be any state of trace 1, whether weights can make it or not. By Hölder's inequality
tr ρσ^(q−1) ≤ ‖ρ‖_q ‖σ‖_q^(q−1) for q > 1, and ≥ for q < 1; and tr ρσ^(q−1) is a mean of φᵀσ^(q−1)φ over items. So no
weights have more than log VS_q* ≤ F(σ) + (q/(1−q)) log(G/M), where G is the largest φᵀσ^(q−1)φ of an item for q < 1
and the smallest for q > 1, either way that of the item with the largest slope. For q → 1 it becomes F + max d − d̄:
relative entropy is never negative. For q = ∞, λ_max(ρ) ≥ tr ρτ ≥ min φᵀτφ for every state τ; that of a high order,
σ^(q−1) over its trace, is a good one.

*Rounding.* The bound is that of the state V diag(λ) Vᵀ with the computed eigenvalues and vectors, whatever they are the
eigenvalues of; only that V is not quite orthogonal, that y and d are rounded, and that features are, is to be added: in
slopes, times the largest |c|. Where there are similarities only, features are made of them, and ρ of any weights may be
off by t in the trace norm. That moves the score by as much as the continuity of the order allows: Audenaert's
inequality for q = 1, |Σλ^q − Σλ̂^q| ≤ n^(1−q) t^q for q < 1, |‖λ‖_q − ‖λ̂‖_q| ≤ t for q > 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vendimeter.solvers.dense import EIGEN
from vendimeter.spectrum import UNIT

__all__ = ["Order", "State", "widen"]

# Share of the largest eigenvalue that smaller ones are raised to: the state stays positive definite.
EIGENVALUE_FLOOR = 1e-15
# Lower orders through which higher ones are reached.
FIRST_STAGE, STAGE_FACTOR, LAST_STAGE = 8.0, 2.0, 2.0**24
CURVATURE_CUTOFF = 1e-2  # terms of the curvature below this share of the largest are left out


@dataclass(frozen=True)
class Order:
    """The order to maximise, and the one of the present stage: a high order is reached through lower ones."""

    q: float
    stage: float = 0.0

    def __post_init__(self) -> None:
        if not self.stage:
            object.__setattr__(self, "stage", min(self.q, FIRST_STAGE))

    @property
    def is_last(self) -> bool:
        """Whether this is the last stage."""
        return self.stage >= min(self.q, LAST_STAGE)

    def next_stage(self) -> Order:
        """The order at its next stage."""
        return Order(self.q, min(self.q, self.stage * STAGE_FACTOR))


class State:
    """A state by its eigenvalues, made positive, with its score and slopes.

    Attributes
    ----------
    value : float
        log VS of the order to maximise.
    stage_value : float
        log VS of the order of the stage.
    slopes : ndarray
        c, one an eigenvalue.
    mean : float
        d̄ = Σ λ c.
    """

    def __init__(self, values: np.ndarray, order: Order):
        values = np.maximum(values, EIGENVALUE_FLOOR * values[0])
        self.values, self.order, q = values / values.sum(), order, order.stage
        self.logs = np.log(self.values)
        self.log_sum = self._log_sum(q)
        if q == 1:
            self.slopes = -self.logs
        elif abs(q - 1) < 0.5:  # less a constant, which would hide the rest
            self.slopes = q / (1 - q) * np.expm1((q - 1) * self.logs) * math.exp(-self.log_sum)
        else:
            self.slopes = q / (1 - q) * np.exp((q - 1) * self.logs - self.log_sum)
        self.mean = float(self.values @ self.slopes)
        self.stage_value = self._log_score(q)
        self.value = self.stage_value if order.q == q else self._log_score(order.q)

    def _log_sum(self, q: float) -> float:
        """The logarithm of Σ λ^q."""
        if abs(q - 1) < 0.5:
            return math.log1p(float(self.values @ np.expm1((q - 1) * self.logs)))
        top = float(self.logs[0])
        return q * top + math.log(float(np.sum(np.exp(q * (self.logs - top)))))

    def _log_score(self, q: float) -> float:
        if q == 1:
            return -float(self.values @ self.logs)
        return -float(self.logs[0]) if math.isinf(q) else self._log_sum(q) / (1 - q)

    def possible_rise(self, steepest: float) -> float:
        """An upper bound on the rise from `stage_value` to the largest log VS of the order of the stage."""
        return self._rise(steepest - self.mean)

    def upper(self, steepest: float, feature_error: float) -> float:
        """An upper bound, with rounding, on log VS of any weights, of the order to maximise.

        `feature_error` is a bound on ‖φφᵀ − φ̂φ̂ᵀ‖₁, for items φ whose slopes were computed from φ̂.
        """
        q, size = self.order.stage, len(self.values)
        rounding = feature_error + (2 * EIGEN * (size + 4) + 4 * size + 64) * UNIT
        rounding *= float(np.abs(self.slopes).max())
        if not math.isinf(self.order.q):  # a bound for a lower order holds, too: scores fall with the order
            return self.stage_value + self._rise(steepest - self.mean + 2 * rounding) + 64 * UNIT
        # Σ y² λ^(q−1)/M is −(q−1)/q of the slope; over Σ λ^(q−1)/M it is the mean of y² under a state.
        share = math.fsum(np.exp((q - 1) * self.logs - self.log_sum))
        smallest_mean = -(steepest + rounding) * (q - 1) / q / share * (1 - (size + 64) * UNIT)
        return -math.log(smallest_mean) if smallest_mean > 0 else math.inf

    def _rise(self, slope: float) -> float:
        q = self.order.stage
        if q == 1:
            return slope
        ratio = (1 - q) / q * slope
        return q / (1 - q) * math.log1p(ratio) if ratio > -1 else math.inf

    def norm_ratios(self, slopes: np.ndarray) -> np.ndarray:
        """Gᵢ/M of items with these slopes, the relative slopes of ‖ρ‖_q; 1 for q = 1."""
        q = self.order.stage
        return 1 + (1 - q) / q * (slopes - self.mean)

    def curvature(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients e and columns u, such that Σ_k e_k (Σ_a u_ak y_ia y_ja)² is the curvature of two items.

        It is Σ_ab y_ia y_ib y_ja y_jb E_ab/M with the divided differences E of λ^(q−1)/(q−1), or of log λ, which
        have few eigenvalues of any size.
        """
        q, logs = self.order.stage, self.logs
        larger, gaps = np.maximum(logs[:, None], logs), np.abs(logs[:, None] - logs)
        equal = gaps < 1e-9
        with np.errstate(divide="ignore", invalid="ignore"):
            differences = gaps if q == 1 else np.expm1((1 - q) * gaps) / (1 - q)
            ratio = np.where(equal, 1.0, differences / -np.expm1(-gaps))
        # Scaled so that no eigenvalue is lost beside others: by λ^(1−q/2), or √λ where only the largest matter.
        power = max(2 - q, 1.0) / 2
        scaled = np.exp((q - 2) * larger - self.log_sum + power * (logs[:, None] + logs)) * ratio
        coefficients, vectors = np.linalg.eigh(scaled)
        significant = np.abs(coefficients) > CURVATURE_CUTOFF * np.abs(coefficients).max()
        return coefficients[significant], vectors[:, significant] * np.exp(-power * logs)[:, None]


def widen(upper: float, q: float, distance: float, size: int) -> float:
    """Widen a bound on log VS_q of `size` dimensions to all states within a `distance` in the trace norm."""
    if distance == 0 or not math.isfinite(upper):
        return upper
    if q == 1:
        half = distance / 2
        if half >= 0.5:
            return math.inf
        entropy = -half * math.log(half) - (1 - half) * math.log1p(-half)
        return upper + half * math.log(max(size - 1, 1)) + entropy
    if q < 1:
        total = math.exp((1 - q) * upper)
        return upper + math.log1p(size ** (1 - q) * distance**q / total) / (1 - q)
    power = 1.0 if math.isinf(q) else q / (q - 1)
    norm = math.exp(-upper / power)
    return upper - power * math.log1p(-distance / norm) if distance < norm else math.inf
