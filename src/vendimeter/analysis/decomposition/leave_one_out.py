"""The exact change of the score when one item is removed, for all items at the speed of matrix products.

An item with coordinates y in the eigenbasis of ρ (see `solvers.eigenvectors`) and the weight α is taken away:
ρ′ = ρ − α φφᵀ, which is then divided by its trace 1 − τ, τ = α Σ y². Its eigenvalues λ′ are the zeros of
1 − αF, F(t) = Σ_a y_a²/(λ_a + t), at −t: det(ρ′ + t)/det(ρ + t) = 1 − αF(t). No single λ′ is computed. For every f
that vanishes at 0, Σ f(λ′) − Σ f(λ) is an integral over log(1 − αF), and F at all nodes of a quadrature is one product
of the squares y² with a matrix.

Order 1, and all orders 0 < q < 2. Write −log(1 − x) = x + r(x). The part x = αF gives the change to first order in α
in closed form, and r ≥ 0 is what is left: nothing cancels. With f(λ) = (λ^q − λ)/(1 − q), or −λ log λ, T = Σ f(λ),
g = f(λ)/λ, c = Σ y² g and ν = Σ y²,

    T′ − T = α(ν + (1 − q)c − c) − q · sin π(1 − q)/(π(1 − q)) · ∫₀^∞ t^(q−1) r(αF(t)) dt,

from ∫₀^∞ t^(q−1) log(1 + λ/t) dt = π λ^q/(q sin πq), continued beyond q = 1. At q = 1 this says that the entropy
−tr ρ′ log ρ′ differs from −tr ρ log ρ by α(ν − c) − ∫ r dt. In s = log t the integrand is analytic for |Im s| < π,
since 1 − αF has zeros and poles on the negative half-line only, and the trapezoidal rule with step h is right to
exp(−2π²/h): 7·10⁻¹⁸ for h = ½. Beyond the last node r is τ²/(2t²); before the first it is constant, or falls as −log t
where the item is alone in a direction: these ends are geometric series. For q < 1 the small eigenvalues count, so that
1 − αF(t) is taken as (1 − αF(0)) + αt Σ y²/(λ(λ + t)) where it is small: a sum without cancellation, except for
1 − αF(0), which is 0 where the item is alone in a direction. That is decided as order 0 decides on the rank: where the
smallest λ′, (1 − αF(0))/(α Σ y²/λ²), is within the threshold of the rank.

Orders q ≥ 2. Whole ones up to 16 by moments: Σ_m (Σλ^m − Σλ′^m) z^m/m = log(1 + α Σ_k s_k z^(k+1)) with s_k = Σ y² λ^k.
Others by Cauchy's integral, Σ λ′^q − Σ λ^q = −(1/2πi) ∮ q z^(q−1) log(1 + α Σ y²/(z − λ)) dz around all eigenvalues,
again less its first order. For q < 8 on the circle z = λ₁(1 + g)/(1 − ig sinh u), g = min(1, 2/q), which goes through
0; beyond on z = λ₁ exp(2(1 + iu)²/q). Whatever the eigenvalues are, the singularities in u lie on |Im u| = π/2, and on
or beyond Im u = 1: with the trapezoidal rule some 30 to 120 nodes do. Where Σ λ′^q is so little of Σ λ^q that it would
be lost in the difference (fewer than 2q items can even halve it), the eigenvalues of diag(λ) − α y yᵀ are computed
after all. Order ∞ is by the largest root of the secular equation, q = 0 by whether the item is alone in a direction.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from vendimeter.data.devices import move, namespace, to_host

__all__ = ["Removal", "removal"]

LOG_STEP = 0.5  # of the trapezoidal rule in log t …
CIRCLE_STEP = 0.16  # … and on the circle, where exp(−2πd/step) times |z^q| at Im u = −d is below 10⁻¹⁷
LOG_PRECISION = 39.0  # −log of 10⁻¹⁷
MAX_CIRCLE_ORDER = 8.0  # upper bound of the orders that are integrated on the circle
SERIES_BELOW = 1 / 32  # below it, r(x) is computed by its series …
SERIES_TERMS = 11  # … with so many terms
MAX_MOMENT_ORDER = 16  # upper bound of the whole orders that are computed by moments
MIN_REMAINING = 1e-3  # fraction of Σλ^q below which a difference loses too many digits
MIN_WEIGHT = 1e-20  # weights below it do not change an eigenvalue in float64
MAX_ITERATIONS = 100  # of the search for a root, which takes about 5


def removal(values: np.ndarray, q: float, threshold: float, min_weight: float) -> Removal:
    """The function that computes how removing an item changes the score of order q.

    Parameters
    ----------
    values : ndarray, shape (r,)
        The eigenvalues above 0, from large to small; their sum is 1. For q < 1 those that count for the rank.
    q : float
        The order.
    threshold : float
        Eigenvalues up to this cannot be told from 0.
    min_weight : float
        The least weight above 0 that will be taken away.
    """
    if q == 0:
        return _Rank(values, threshold)
    if q < 2:
        return _Integral(values, q, threshold, min_weight)
    if math.isinf(q):
        return _Largest(values)
    return _Moments(values, int(q)) if q == int(q) and q <= MAX_MOMENT_ORDER else _Contour(values, q)


class Removal(ABC):
    """log(VS′/VS) for items that are removed, from the squares of their coordinates.

    Attributes
    ----------
    width : int
        Numbers in memory for an item while that is computed.
    """

    width: int = 1

    def __init__(self, values: np.ndarray, *constants: np.ndarray):
        self.values = values
        self._constants = [np.ascontiguousarray(array) for array in constants]
        self._moved_constants: list[Any] = []

    @abstractmethod
    def __call__(self, squares: Any, removed_weights: np.ndarray) -> np.ndarray:
        """For items with these y² (rows, one column an eigenvalue) and weights; on the host.

        A weight of 0 takes nothing away. Where all weight is taken away, the answer is not a number.
        """

    def _constants_like(self, squares: Any) -> list[Any]:
        """The constants on the device of the squares; they are moved once."""
        if not self._moved_constants:
            self._moved_constants = [move(array, squares) for array in self._constants]
        return self._moved_constants


def _log_remaining_trace(removed_weights: np.ndarray, norm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """τ, and log(1 − τ), which is NaN where nothing would be left."""
    tau = removed_weights * norm
    with np.errstate(invalid="ignore", divide="ignore"):
        return tau, np.where(tau < 1 - 1e-12, np.log1p(-tau), np.nan)


def _is_alone(lever: np.ndarray, slope: np.ndarray, threshold: float) -> np.ndarray:
    """Whether an item is alone in a direction: αF(0) is 1 as far as can be told, with −F′(0) α = slope."""
    return (slope > 0) & (1 - lever <= slope * threshold)


class _Rank(Removal):
    """Order 0."""

    width = 2

    def __init__(self, values: np.ndarray, threshold: float):
        super().__init__(values, np.stack([1 / values, values**-2.0, np.ones_like(values)], axis=1))
        self._threshold = threshold

    def __call__(self, squares: Any, removed_weights: np.ndarray) -> np.ndarray:
        lever, slope, norm = to_host(squares @ self._constants_like(squares)[0]).T
        _, logs = _log_remaining_trace(removed_weights, norm)
        alone = _is_alone(removed_weights * lever, removed_weights * slope, self._threshold)
        with np.errstate(divide="ignore"):
            fewer = np.log1p(-1.0 / len(self.values))
        return np.where(alone, fewer, 0.0) + 0.0 * logs


class _Integral(Removal):
    """Orders 0 < q < 2."""

    def __init__(self, values: np.ndarray, q: float, threshold: float, min_weight: float):
        self.q, self._threshold = q, threshold
        logs, column = np.log(values), values[:, None]
        self._surprise = -logs if q == 1 else -np.expm1((q - 1) * logs) / (q - 1)
        high = float(logs[0]) + LOG_PRECISION / (3 - q)
        if q < 1:
            low = math.log(max(min(threshold, float(values[-1])), 1e-300)) - LOG_PRECISION / (1 + q)
        else:  # smaller nodes do not matter beside α
            low = math.log(max(min_weight, MIN_WEIGHT)) - LOG_PRECISION - 4
        self._nodes = nodes = np.exp(low + LOG_STEP * np.arange(math.ceil((high - low) / LOG_STEP) + 1))
        self.width = (6 if q < 1 else 4) * len(nodes)
        columns = np.concatenate(
            [np.ones_like(column), self._surprise[:, None], 1 / (column + nodes)], axis=1
        )
        if q < 1:
            extra = np.concatenate([1 / column, column**-2.0, nodes / (column * (column + nodes))], axis=1)
        else:  # det(ρ′ + t)/det(ρ + t) ≥ t/(λ₁ + t), by interlacing, which rounding must not undercut
            extra = np.maximum(nodes / (values[0] + nodes), 2.0**-53)
        super().__init__(values, columns, LOG_STEP * nodes**q, extra)

    def __call__(self, squares: Any, removed_weights: np.ndarray) -> np.ndarray:
        q, nodes = self.q, self._nodes
        columns, node_weights, extra = self._constants_like(squares)
        alpha = move(removed_weights, squares)[:, None]
        products = squares @ columns
        norm, mean_surprise = to_host(products[:, :2]).T
        x = products[:, 2:] * alpha
        tau, logs = _log_remaining_trace(removed_weights, norm)
        if q < 1:
            extra_products = squares @ extra
            lever, slope = (removed_weights * column for column in to_host(extra_products[:, :2]).T)
            alone = _is_alone(lever, slope, self._threshold)
            start = move(np.where(alone, 0.0, 1 - lever), squares)[:, None]
            excess = _excess(x, start + extra_products[:, 2:] * alpha)
        else:
            alone = np.zeros(len(removed_weights), dtype=bool)
            excess = _excess(x, namespace(x).where(1 - x > extra, 1 - x, extra))
        integral = to_host(excess @ node_weights)
        ratio = math.exp(-LOG_STEP * (2 - q))
        integral = integral + LOG_STEP * tau**2 / 2 * nodes[-1] ** (q - 2) * ratio / (1 - ratio)
        if q < 1:
            ratio = math.exp(-LOG_STEP * q)
            first_excess = to_host(excess[:, 0])
            ends = first_excess * ratio / (1 - ratio) + np.where(
                alone, LOG_STEP * ratio / (1 - ratio) ** 2, 0.0
            )
            integral = integral + LOG_STEP * nodes[0] ** q * ends
        change = removed_weights * (norm - q * mean_surprise) - q * float(np.sinc(1 - q)) * integral
        return self._logarithm(change, tau, logs)

    def _logarithm(self, change: np.ndarray, tau: np.ndarray, logs: np.ndarray) -> np.ndarray:
        """From T′ − T, not yet divided by the trace, to the logarithm of the scores' ratio."""
        q = self.q
        total = float(self.values @ self._surprise)
        growth = np.expm1(-q * logs)  # (1 − τ)^−q − 1
        shift = logs if q == 1 else np.expm1((1 - q) * logs) / (1 - q)
        difference = change * (1 + growth) + total * growth + shift
        if q == 1:
            return difference
        return np.log1p((1 - q) * difference / (1 + (1 - q) * total)) / (1 - q)


def _excess(x: Any, rest: Any) -> Any:
    """r(x) = −log(1 − x) − x for x from 0 to 1, where `rest` is 1 − x; x falls from left to right in each row."""
    xp = namespace(x)
    # Logarithms take time on the host only; on a device blocks of one shape are worth more.
    split = int(np.count_nonzero(x.max(axis=0) >= SERIES_BELOW)) if isinstance(x, np.ndarray) else x.shape[1]
    right = x[:, split:]
    series = right * right * _series(right)
    if not split:
        return series
    left = x[:, :split]
    logs = xp.where(left < 0.5, xp.log1p(-xp.where(left < 0.5, left, 0.0 * left)), xp.log(rest[:, :split]))
    left = xp.where(left < SERIES_BELOW, left * left * _series(left), -logs - left)
    return left if split == x.shape[1] else xp.concat([left, series], axis=1)


def _series(x: Any) -> Any:
    """The sum of 1/2 + x/3 + x²/4 + …, for small x."""
    total = 0.0 * x + 1 / (SERIES_TERMS + 1)
    for term in range(SERIES_TERMS, 1, -1):
        total = total * x + 1 / term
    return total


class _Power(Removal):
    """Finite orders from 2 up, from the power sum Σ λ^q that remains."""

    def __init__(self, values: np.ndarray, q: float, *constants: np.ndarray):
        super().__init__(values, *constants)
        self.q = q
        self._scaled = values / values[0]
        self._sum = float(np.sum(self._scaled**q))

    @abstractmethod
    def _lost(self, squares: Any, scaled_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ν, and what Σ (λ/λ₁)^q loses, for weights in units of λ₁."""

    def __call__(self, squares: Any, removed_weights: np.ndarray) -> np.ndarray:
        scaled_weights = removed_weights / self.values[0]
        norm, lost = self._lost(squares, scaled_weights)
        _, logs = _log_remaining_trace(removed_weights, norm)
        with np.errstate(invalid="ignore", divide="ignore"):
            change = np.log1p(np.maximum(-lost / self._sum, -1.0))
        for i in np.flatnonzero((lost > (1 - MIN_REMAINING) * self._sum) & np.isfinite(logs)):
            change[i] = self._log_remaining_power(
                to_host(squares[int(i) : int(i) + 1, :])[0], float(scaled_weights[i])
            )
        return (change - self.q * logs) / (1 - self.q)

    def _log_remaining_power(self, squares: np.ndarray, scaled_weight: float) -> float:
        """The logarithm of the fraction of Σ λ^q that remains, by the eigenvalues themselves, where it is tiny."""
        y = np.sqrt(squares)
        remaining = np.linalg.eigvalsh(np.diag(self._scaled) - scaled_weight * np.outer(y, y))
        top = float(remaining[-1])
        total = float(np.sum((np.maximum(remaining, 0.0) / top) ** self.q))
        return self.q * math.log(top) + math.log(total / self._sum)


class _Moments(_Power):
    """Whole orders from 2 up to `MAX_MOMENT_ORDER`, by moments."""

    def __init__(self, values: np.ndarray, q: int):
        super().__init__(values, q, (values / values[0])[:, None] ** np.arange(q))
        self.width = 3 * q

    def _lost(self, squares: Any, scaled_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moments = to_host(squares @ self._constants_like(squares)[0]).T
        # log(1 + B) has the coefficients D/m with D_m = m b_m − Σ_{j<m} D_j b_{m−j}.
        series = scaled_weights * moments
        lost: list[np.ndarray] = []
        for m in range(1, len(moments) + 1):
            convolution = sum(
                (lost[j - 1] * series[m - j - 1] for j in range(1, m)), start=np.zeros_like(scaled_weights)
            )
            lost.append(m * series[m - 1] - convolution)
        return moments[0], lost[-1]


class _Contour(_Power):
    """Other finite orders from 2 up, by Cauchy's integral."""

    def __init__(self, values: np.ndarray, q: float):
        nodes, node_weights = _circle(q) if q <= MAX_CIRCLE_ORDER else _parabola(q)
        node_weights[0] /= 2  # the two halves of the path share this node
        scaled = values / values[0]
        inverse = 1 / (nodes + (1 - scaled)[:, None])
        slope = scaled[:, None] ** (q - 1)
        columns = np.concatenate([np.ones_like(slope), slope, np.real(inverse), np.imag(inverse)], axis=1)
        super().__init__(values, q, columns, np.real(node_weights), np.imag(node_weights))
        self.width = 10 * len(node_weights)

    def _lost(self, squares: Any, scaled_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        columns, *node_weights = self._constants_like(squares)
        products = squares @ columns
        norm, mean_power = to_host(products[:, :2]).T
        count = len(self._constants[1])
        alpha = move(scaled_weights, squares)[:, None]
        x, y = products[:, 2 : 2 + count] * alpha, products[:, 2 + count :] * alpha
        xp = namespace(x)
        size = x * (2 + x) + y * y  # |1 + x + iy|² − 1
        size = xp.where(size > -1 + 2.0**-52, size, 0.0 * size - (1 - 2.0**-52))
        real, imaginary = 0.5 * xp.log1p(size) - x, xp.atan2(y, 1 + x) - y
        integral = to_host(real @ node_weights[0] - imaginary @ node_weights[1])
        return norm, scaled_weights * self.q * mean_power + integral


def _circle(q: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes z/λ₁ − 1 on the upper half of the circle, and their weights."""
    gap = min(1.0, 2 / q)
    # |z/λ₁|^q falls to 10⁻¹⁷ of its largest value, (1 + g)^q ≤ 8, where (1 + w²)^(−q/2) does.
    reach = math.sqrt(math.expm1(2 * (LOG_PRECISION + 2) / q))
    u = CIRCLE_STEP * np.arange(math.ceil(math.asinh(reach / gap) / CIRCLE_STEP) + 2)
    scaled_sinh = gap * np.sinh(u)
    z = (1 + gap) / (1 - 1j * scaled_sinh)
    weights = q * CIRCLE_STEP / (math.pi * (1 + gap)) * gap * np.cosh(u) * z ** (q + 1)
    return (gap + 1j * scaled_sinh) / (1 - 1j * scaled_sinh), weights


def _parabola(q: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on a path that is a parabola in log z, for orders from about 8 up."""
    step = 2 * math.pi / (LOG_PRECISION + 2)
    u = step * np.arange(math.ceil(math.sqrt(1 + (LOG_PRECISION + 2) / 2) / step) + 2)
    logs = 2 * (1 + 1j * u) ** 2
    return np.expm1(logs / q), 4 * step / math.pi * np.exp(logs) * (1 + 1j * u)


class _Largest(Removal):
    """Order ∞."""

    def __init__(self, values: np.ndarray):
        gaps = (values[0] - values) / values[0]
        super().__init__(values, gaps[1:])
        self.width = 3 * len(values)
        # Upper bound of the fall of the largest eigenvalue: the next one stays where it is.
        self._room = float(gaps[1]) if len(gaps) > 1 else 1.0

    def __call__(self, squares: Any, removed_weights: np.ndarray) -> np.ndarray:
        xp = namespace(squares)
        scaled_weights = move(removed_weights / self.values[0], squares)
        other_weights = squares[:, 1:] * scaled_weights[:, None]
        (gaps,), room = self._constants_like(squares), self._room
        pull = squares[:, 0] * scaled_weights
        fall = 0.0 * pull
        # 1 + ψ(δ) = αy₁²/δ for the fall δ of the largest eigenvalue, ψ = Σ αy²/(gap − δ). With ψ ≈ c₀ + c₁/(room − δ),
        # which has its value and slope at the last δ and is never less than it, this is a quadratic equation: its
        # roots rise towards that of the true one, faster and faster.
        for _ in range(MAX_ITERATIONS):
            gaps_left = gaps - fall[:, None]
            gaps_left = xp.where(gaps_left > 1e-300, gaps_left, 0.0 * gaps_left + 1e-300)
            weights = other_weights / gaps_left
            level = xp.sum(weights, axis=1)
            ahead = room - fall
            tangent = xp.sum(weights / gaps_left, axis=1) * ahead if room else 0.0 * level
            base, pole = 1 + level - tangent, tangent * ahead
            base = xp.where(base > 1, base, 0.0 * base + 1)
            middle = base * room + pole + pull
            discriminant = (base * room - pull) ** 2 + pole * (2 * base * room + 2 * pull + pole)
            bottom = middle + xp.sqrt(discriminant)
            next_fall = 2 * pull * room / xp.where(bottom > 0, bottom, 0.0 * bottom + 1)
            next_fall = xp.where(next_fall > fall, next_fall, fall)
            has_moved = bool(xp.any(next_fall > fall * (1 + 4e-16)))
            fall = next_fall
            if not has_moved:
                break
        _, logs = _log_remaining_trace(removed_weights, to_host(xp.sum(squares, axis=1)))
        with np.errstate(divide="ignore"):
            return logs - np.log1p(-to_host(fall))
