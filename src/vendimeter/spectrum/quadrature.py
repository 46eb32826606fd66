"""Lanczos quadrature: a few eigenvalues, three exact traces and probes of the rest, with probabilistic bounds.

ρ is split by r approximate eigenvectors U, with Ritz values θ and residuals β = ‖ρu − θu‖: UᵀρU = diag(θ) on one side
and A = PρP with P = I − UUᵀ on the other, of dimension m = n − r. T = Σf(λ) with the concave f of `entropy`, 0 < q ≤ 2.

1. *The split.* T(ρ) ≤ Σf(θ) + tr f(A), because pinching raises every entropy. It raises it by at most
   Σ 2β² h[θ, β²/θ], where h = x^(q−1)/(q−1), or log x at q = 1, and h[a, b] is its divided difference: h is operator
   concave, so tr ρh(ρ) ≤ tr ρ(h(ρ′) + Dh(Δ)) with the pinched ρ′ and Δ = ρ − ρ′, which leaves tr Δ Dh(Δ) =
   Σ 2|B_ij|² h[θ_i, a_j]; and a h[θ, a] is concave in a, so that Jensen's inequality and Θ ⪰ B A⁺ Bᵀ give the rest.
   For other q the same steps hold, with h operator monotone for 0 < q ≤ 2.
2. *Known traces.* tr A⁰ = m, tr A = 1 − Σθ and, where ‖ρ‖_F is known, tr A² = ‖ρ‖_F² − Σ(θ² + 2β²). A quadratic (or
   linear) p near f, fixed before any probe is drawn, leaves only tr g(A), g = f − p, to be estimated:
   p is fitted to what the Krylov space saw, whose start vectors are independent of the probes.
3. *Probes.* For Gaussian z, zᵀg(A)z has mean tr g(A). k Lanczos steps bracket it: Gauss quadrature is an upper bound
   for f and Gauss–Radau quadrature with a node at 0 a lower one, for every 0 < q < 2, by the signs of the derivatives
   of f. Polynomials are exact.
4. *The largest eigenvalue of A.* For λ_max(A) to exceed θ/(1−ε), θ the largest Ritz value of all probes, each of them
   must have started with a component of at most 1/cosh((2k−1) artanh √ε) along the top eigenvector, and the square of
   that component is Beta(½, (m−1)/2) distributed. So M = θ/(1−ε) is an upper bound with the probability that was asked
   for, and G₊, G₋ = max ±g on [0, M] are no less than those on the true interval. (The same probes may serve for 4 and
   5: the bounds in 5 are those of the true G and F, and only grow with them; a union bound joins the two.)
5. *The statistical error.* F² = tr g(A)² ≤ (G√(x/N) + √(Ĥ + G²x/N))² with probability 1 − e⁻ˣ, where Ĥ is the mean of
   the upper brackets of zᵀg(A)²z and G = max(G₊, G₋) (the lower tail of a weighted χ², Laurent and Massart 2000). Given
   F, Chernoff's bound for quadratic forms of Gaussians (Cortinovis and Kressner 2021): the estimate is too high by more
   than e = (F²/G₊)s with probability at most exp(−(NF²/2G₊²)(s − log(1+s))), and too low likewise with G₋.

What is assumed: that ρ is positive semidefinite, that the generator's normal deviates are normal and independent, and
that rounding is as bounded in `error`. The confidences of the steps add up (union bound); those of earlier looks at the
same data are counted by the solver.

For q > 2 norms are used instead: Σλ^q ≥ Σθ^q + (tr A²)^(q−1)/(tr A)^(q−2), and ‖λ‖_q ≤ (Σθ^q + M^(q−2) tr A²)^(1/q) +
√(2Σβ²).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vendimeter.errors import UnansweredError
from vendimeter.spectrum.entropy import (
    UNIT,
    Answer,
    Level,
    Spectrum,
    concave,
    from_norm,
    from_sum,
    parse_order,
    slope,
)

__all__ = ["NOTHING", "Deflated", "Quadrature", "Runs", "ceiling", "deviations", "pinching"]

NOTHING = 1e-14  # a node below this part of the largest cannot be told from 0
NEAR_ONE = 0.25  # orders this near 1 take f² as one term: split into powers, it would cancel


@dataclass(frozen=True)
class Quadrature(Spectrum):
    """Ritz values, exact traces and probes: an answer for every order q > 0.

    Attributes
    ----------
    known : Deflated
        The split and the traces.
    top : float
        M, which bounds the eigenvalues of the rest.
    runs : tuple of Runs
        The probes.
    failures : tuple of float
        The probabilities with which the bound on F and the statistical error may fail for this batch of probes.
    error : float
        Bound on the Frobenius norm of what rounding did to ρ.
    confidence : float
        The probability with which an interval holds, each order separately.
    drift : float
        Bound on the error of an entry as computed, before it was rounded for storage: it moves the trace off 1.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> rows = np.random.default_rng(0).standard_normal((1200, 900))
    >>> spectrum = vm.score(rows, method="lanczos", tol=0.02).spectrum
    >>> low, high = spectrum.score(1)[1:]
    >>> bool(low < vm.score(rows, method="exact") < high), spectrum.level
    (True, 'probabilistic')
    """

    known: Deflated
    top: float
    runs: tuple[Runs, ...]
    failures: tuple[float, float]
    error: float = 0.0
    level: Level = "probabilistic"
    confidence: float = 0.95
    drift: float = 0.0

    @property
    def eigenvalues(self) -> np.ndarray:
        """The Ritz values: the leading eigenvalues, from below."""
        return np.sort(self.known.ritz)[::-1]

    @property
    def probes(self) -> int:
        """How many probes."""
        return sum(run.count for run in self.runs)

    def score(self, q: float | str) -> Answer:
        """The score of order q > 0 with bounds that hold with the stated confidence."""
        q = parse_order(q)
        if q == 0:
            raise UnansweredError(
                "quadrature cannot answer q=0, the rank, which depends on eigenvalues however small; expected an order "
                "above 0. Use method='exact'."
            )
        value, low, high = self._bounds_by_norm(q) if q >= 2 else self._bounds_by_sum(q)
        size = float(self.known.size)
        low, high = max(min(low, size), 1.0), max(min(high, size), 1.0)
        if self.level == "none":
            low = high = math.nan
        return Answer(min(max(value, low), high), low, high)

    # ------------------------------------------------------------------------------------------------- orders below 2

    def _bounds_by_sum(self, q: float) -> tuple[float, float, float]:
        """Value and bounds of the score of order q < 2, from bounds on T."""
        known, size = self.known, float(self.known.size)
        split_cost = float(np.sum(pinching(known.ritz, known.residual, q))) if len(known.ritz) else 0.0
        low, middle, high = self._rest_sum(q)
        total = float(np.sum(concave(known.ritz, q)))
        # |f(x + t) − f(x)| ≤ max(f(t), t) for a concave f with f(0) = 0 and f′(1) = −1; Jensen adds them up.
        mean_error = self.error / math.sqrt(size)
        rounding = size * max(float(concave(np.array(mean_error), q)), mean_error)
        rounding += 1e-12 * (1 + total + abs(high))
        sums = np.array(
            [total + middle - split_cost / 2, total + low - split_cost - rounding, total + high + rounding]
        )
        value, low, high = from_sum(np.maximum(sums, 0.0), q, size).tolist()
        return value, low * (1 - 1e-14), high * (1 + 1e-14)

    def _rest_sum(self, q: float) -> tuple[float, float, float]:
        """Lower bound, estimate and upper bound of tr f(A)."""
        known, m = self.known, self.known.rest
        if m <= 0:
            return 0.0, 0.0, 0.0
        rounding1, rounding2 = self._trace_rounding()
        # Jensen: never more than if all eigenvalues of A were equal.
        upper = m * float(concave(np.array((known.trace + rounding1) / m), q))
        if not self.probes or self.top <= 0:
            return 0.0, upper / 2, upper
        c, plus, minus = known.spans(q, self.top)
        polynomial_part = c[0] * m + c[1] * known.trace + c[2] * (known.trace2 or 0.0)
        low, high, square = (
            np.mean(np.concatenate(parts)) for parts in zip(*self.brackets(q, c), strict=True)
        )
        below, above = deviations(float(square), plus, minus, self.probes, m, self.failures)
        rounding = abs(c[1]) * rounding1 + abs(c[2]) * rounding2
        bounds = (
            float(polynomial_part + low) - below - rounding,
            float(polynomial_part + high) + above + rounding,
        )
        middle = float(polynomial_part + (low + high) / 2)
        return max(bounds[0], 0.0), min(max(middle, 0.0), upper), min(max(bounds[1], 0.0), upper)

    def _trace_rounding(self) -> tuple[float, float]:
        """Bounds on the rounding errors of tr A and tr A², which are small differences of sums near 1 and ‖ρ‖_F²."""
        known = self.known
        squares = 1.0 if known.squares is None else known.squares
        unit = (16 + known.size) * UNIT
        return unit + self.drift * math.sqrt(known.size), 4 * (unit + self.drift) * math.sqrt(squares)

    def brackets(self, q: float, c: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each batch of probes: brackets of zᵀg(A)z, and an upper one of zᵀg(A)²z."""
        for run in self.runs:
            (x, w), (y, v) = run.gauss, run.radau
            # From above: a node that rounding took away counts.
            x = np.maximum(x, NOTHING * max(run.largest, 0.0))
            f_gauss, f_radau = concave(x, q), concave(y, q)
            p = np.sum(w * np.polyval(c[::-1], x), axis=1)
            low, high = np.sum(v * f_radau, axis=1) - p, np.sum(w * f_gauss, axis=1) - p
            # g² = f² − 2pf + p². Of x^j f, Gauss is an upper bound for even j and Radau for odd ones.
            total = np.sum(w * np.polyval(c[::-1], x) ** 2, axis=1) + self._square_bounds(q, run)
            for j in range(3):
                upper = (j % 2 == 0) == (-2 * c[j] > 0)
                total += (
                    -2 * c[j] * (np.sum(w * x**j * f_gauss, 1) if upper else np.sum(v * y**j * f_radau, 1))
                )
            yield np.minimum(low, high), high, np.maximum(total, 0.0)

    def _square_bounds(self, q: float, run: Runs) -> np.ndarray:
        """Upper bounds of zᵀf(A)²z."""
        (x, w), (y, v) = run.gauss, run.radau
        x = np.maximum(x, NOTHING * max(run.largest, 0.0))
        if q == 1 or (abs(q - 1) < NEAR_ONE and _one_sign(q, run.steps, self.top)):
            # Derivatives of even order are positive: Radau is above.
            return np.sum(v * concave(y, q) ** 2, axis=1)
        # (x^2q − 2x^(q+1) + x²)/(1−q)²: Gauss is above for x^e where ⌊e⌋ is even, Radau where it is odd.
        total = np.sum(w * x**2, axis=1)
        for power, factor in ((2 * q, 1.0), (q + 1, -2.0)):
            gauss = (math.floor(power) % 2 == 0) == (factor > 0)
            total += factor * (np.sum(w * x**power, axis=1) if gauss else np.sum(v * y**power, axis=1))
        return total / (1 - q) ** 2

    # ------------------------------------------------------------------------------------------------- orders from 2 up

    def _bounds_by_norm(self, q: float) -> tuple[float, float, float]:
        """Value and bounds of the score of order q ≥ 2, from bounds on ‖λ‖_q."""
        known = self.known
        split_error = math.sqrt(2 * float(np.sum(known.residual**2)))
        slack = self.error + 1e-13
        if q == 2 and known.squares is not None:
            norms = [math.sqrt(known.squares)] * 2
            return self._score_bounds(norms[0] - slack, norms[1] + slack, q)
        largest, trace, trace2, m = (
            float(known.ritz.max(initial=0.0)),
            known.trace,
            known.trace2,
            max(known.rest, 1),
        )
        mean = trace / m  # the largest eigenvalue of A is at least that
        if math.isinf(q):
            return self._score_bounds(
                max(largest, mean) - slack, max(largest, self.top) + split_error + slack, q
            )
        # Everything relative to the largest value, so that no power is out of range.
        unit = max(largest, self.top, 1e-300)
        ritz_sum = float(np.sum((known.ritz / unit) ** q))
        rounding1, rounding2 = self._trace_rounding()
        trace += rounding1
        least_square = (
            max(trace - 2 * rounding1, 0.0) ** 2 / m if trace2 is None else max(trace2 - rounding2, 0.0)
        )
        least_square = min(least_square, self.top * trace)
        rest_below = (least_square / unit / trace) ** (q - 2) * least_square / unit**2
        square = self.top * trace if trace2 is None else min(trace2 + rounding2, self.top * trace)
        rest_above = (self.top / unit) ** (q - 2) * square / unit**2
        low, high = unit * (ritz_sum + rest_below) ** (1 / q), unit * (ritz_sum + rest_above) ** (1 / q)
        return self._score_bounds(low - slack, high + split_error + slack, q)

    @staticmethod
    def _score_bounds(low: float, high: float, q: float) -> tuple[float, float, float]:
        """Value and bounds of the score from bounds on ‖λ‖_q: the larger the norm, the smaller the score."""
        norms = np.array([max(high, 0.0), max(low, 0.0)])
        low_score, high_score = from_norm(norms, q).tolist()
        value = math.sqrt(low_score * high_score) if math.isfinite(high_score) else low_score
        return value, low_score * (1 - 1e-13), high_score * (1 + 1e-13)


@dataclass(frozen=True)
class Deflated:
    """A split of ρ and the traces of the rest: what is known before any probe.

    Attributes
    ----------
    size : int
        n, the dimension of ρ.
    ritz, residual : ndarray, shape (r,)
        θ and β of the vectors that were split off.
    squares : float or None
        ‖ρ‖_F².
    nodes, weights : ndarray
        An estimate of the density of the eigenvalues of A that is independent of the probes; p is fitted to it.
    """

    size: int
    ritz: np.ndarray
    residual: np.ndarray
    squares: float | None
    nodes: np.ndarray
    weights: np.ndarray

    @property
    def rest(self) -> int:
        """m, the dimension of A."""
        return self.size - len(self.ritz)

    @property
    def trace(self) -> float:
        """The trace of A."""
        return max(1 - float(np.sum(self.ritz)), 0.0)

    @property
    def trace2(self) -> float | None:
        """The trace of A², unless it is unknown or little more than the rounding of ‖ρ‖_F²."""
        if self.squares is None:
            return None
        trace2 = self.squares - float(np.sum(self.ritz**2 + 2 * self.residual**2))
        return trace2 if trace2 > 1e5 * UNIT * self.squares else None

    def fit(self, q: float) -> np.ndarray:
        """The coefficients of p = c₀ + c₁ x + c₂ x², nearest to f in the mean square over the density."""
        degree = 1 if self.trace2 is None else 2
        # Where the density is poor (all that was seen is split off, or is one eigenvalue many times) the traces place
        # a few points by mean and spread; elsewhere these weigh nothing.
        mean = self.trace / max(self.rest, 1)
        spread = (
            0.0 if self.trace2 is None else math.sqrt(max(self.trace2 / max(self.rest, 1) - mean**2, 0.0))
        )
        nodes = np.concatenate(
            [self.nodes, np.maximum(mean + spread * np.array([-1.0, 0.0, 1.0]), 0.0), [0.0]]
        )
        weights = np.concatenate([self.weights, self.rest * np.array([1e-4, 1e-4, 1e-4, 1e-6])])
        scale = float(nodes.max())
        if scale <= 0:
            return np.zeros(3)
        powers = (nodes / scale)[:, None] ** np.arange(degree + 1)
        roots = np.sqrt(np.maximum(weights, 0.0))
        coefficients = np.linalg.lstsq(powers * roots[:, None], concave(nodes, q) * roots, rcond=1e-12)[0]
        return np.concatenate([coefficients / scale ** np.arange(degree + 1), np.zeros(2 - degree)])

    def spans(self, q: float, top: float) -> tuple[np.ndarray, float, float]:
        """The coefficients of p, and G₊, G₋ = max of g and of −g on [0, top]."""
        c = self.fit(q)
        grid = np.concatenate([[0.0], np.geomspace(1e-14, 1.0, 1500), 1 - np.geomspace(1e-6, 0.5, 300)])
        x = np.sort(grid) * top
        g = concave(x, q) - np.polyval(c[::-1], x)
        # f′ − p′ is convex, so that g has at most two turning points; the largest error between two points of the grid
        # is that of half a step at the local slope.
        with np.errstate(invalid="ignore"):
            slopes = np.abs(slope(x, q) - c[1] - 2 * c[2] * x)
        slack = np.zeros_like(x)
        slack[1:-1] = np.minimum(slopes[1:-1], 1e300) * np.maximum(np.diff(x)[1:], np.diff(x)[:-1])
        is_turning = np.zeros(len(x), dtype=bool)
        is_turning[1:-1] = (np.diff(g)[1:] * np.diff(g)[:-1]) <= 0
        margin = np.where(is_turning, slack, 0.0)
        rounding = 1e-12 * float(np.abs(g).max()) + 1e-300
        return c, float(np.max(g + margin)) + rounding, float(np.max(margin - g)) + rounding

    def needed(self, q: float, top: float, width: float, failures: tuple[float, float]) -> float:
        """How many probes bring the statistical half-width of T to `width`, if the density is as estimated."""
        c, plus, minus = self.spans(q, top)
        g = concave(np.maximum(self.nodes, 0.0), q) - np.polyval(c[::-1], self.nodes)
        square = float(np.sum(self.weights * g**2))
        low, high = 1.0, 1.0
        while sum(deviations(square, plus, minus, int(high), self.rest, failures)) / 2 > width:
            low, high = high, 2 * high
            if high > 1e7:
                return math.inf
        while high - low > 1:
            middle = (low + high) // 2
            is_wide = sum(deviations(square, plus, minus, int(middle), self.rest, failures)) / 2 > width
            low, high = (middle, high) if is_wide else (low, middle)
        return high

    def power_sum(self, q: float) -> float:
        """An estimate of Σλ^q = 1 + (1−q)T: divided by it, an error in T is a relative error in the score."""
        total = float(np.sum(concave(self.ritz, q)))
        total += float(np.sum(self.weights * concave(np.maximum(self.nodes, 0.0), q)))
        return max(1 + (1 - q) * total, 1e-12)


@dataclass(frozen=True)
class Runs:
    """Tridiagonal matrices of Lanczos runs, one a start vector: all of the same number of steps.

    Attributes
    ----------
    diagonal, off_diagonal : ndarray, shape (runs, steps)
        α₁ … α_k, and β₁ … β_k of which the last leads out of the k×k matrix.
    mass : ndarray, shape (runs,)
        The squared lengths of the start vectors.
    """

    diagonal: np.ndarray
    off_diagonal: np.ndarray
    mass: np.ndarray

    @property
    def count(self) -> int:
        """How many runs."""
        return len(self.mass)

    @property
    def steps(self) -> int:
        """How many Lanczos steps each."""
        return self.diagonal.shape[1]

    def _matrices(self) -> np.ndarray:
        """The tridiagonal matrices as dense ones, (runs, steps, steps)."""
        k = self.steps
        stack = np.zeros((self.count, k, k))
        index = np.arange(k)
        stack[:, index, index] = self.diagonal
        stack[:, index[1:], index[:-1]] = stack[:, index[:-1], index[1:]] = self.off_diagonal[:, :-1]
        return stack

    @cached_property
    def gauss(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights, (runs, steps) each, of Gauss quadrature."""
        nodes, vectors = np.linalg.eigh(self._matrices())
        return nodes, vectors[:, 0, :] ** 2 * self.mass[:, None]

    @cached_property
    def radau(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights, (runs, steps + 1) each, of Gauss–Radau quadrature with a node at 0."""
        k = self.steps
        gauss_matrices = self._matrices()
        nodes, vectors = np.linalg.eigh(gauss_matrices)
        # The last diagonal entry that makes 0 an eigenvalue; never above the largest eigenvalue of A but by rounding.
        # Where a node is at 0 already, because the rank is exhausted, the Gauss rule is a Radau rule as it stands.
        top = np.maximum(nodes[:, -1:], 1e-200)
        has_zero_node = nodes[:, 0] <= NOTHING * top[:, 0]
        inverse = np.sum(vectors[:, -1, :] ** 2 / np.maximum(nodes, NOTHING * top), axis=1)
        last_diagonal = np.minimum(self.off_diagonal[:, -1] ** 2 * inverse, 4 * top[:, 0])
        stack = np.zeros((self.count, k + 1, k + 1))
        stack[:, :k, :k] = gauss_matrices
        stack[:, k, k - 1] = stack[:, k - 1, k] = np.where(has_zero_node, 0.0, self.off_diagonal[:, -1])
        stack[:, k, k] = np.where(has_zero_node, 0.0, last_diagonal)
        nodes, vectors = np.linalg.eigh(stack)
        nodes = np.where(nodes > NOTHING * top, nodes, 0.0)
        nodes[:, 0] = 0.0  # exactly: powers below 1 feel what rounding leaves there
        return nodes, vectors[:, 0, :] ** 2 * self.mass[:, None]

    @property
    def largest(self) -> float:
        """The largest Ritz value."""
        return float(self.gauss[0].max())

    @property
    def smallest(self) -> float:
        """The smallest Ritz value: below 0 only by rounding, or for a matrix that is indefinite."""
        return float(self.gauss[0].min())


def ceiling(runs: Sequence[Runs], size: int, failure: float) -> float:
    """An upper bound M on λ_max(A) that fails with probability `failure` at most; `size` is the dimension of A."""
    from scipy.special import betaincinv

    top = max(max(run.largest for run in runs), 0.0)
    steps, count = min(run.steps for run in runs), sum(run.count for run in runs)
    if size <= steps or top == 0:
        return top * (1 + 1e-9)
    # All of them must have started with so small a component: the probabilities multiply.
    component = math.sqrt(float(betaincinv(0.5, (size - 1) / 2, failure ** (1 / count))))
    root = math.tanh(math.acosh(1 / component) / (2 * steps - 1))
    return top / max(1 - root**2, 1e-15)


# --------------------------------------------------------------------------------------------------------------- bounds


def pinching(ritz: np.ndarray, residual: np.ndarray, q: float) -> np.ndarray:
    """Bounds on how much the split raises T: 2β² h[θ, β²/θ] for each Ritz pair, to be summed."""
    other = np.maximum(residual**2, 1e-300) / ritz
    return 2 * residual**2 * _divided_difference(ritz, other, q)


def _divided_difference(a: np.ndarray, b: np.ndarray, q: float) -> np.ndarray:
    """The divided difference of x^(q−1)/(q−1), or of log x at q = 1; the derivative x^(q−2) where a and b meet."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    log_ratio = np.log(high / low)
    is_near = log_ratio < 1e-6
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if q == 1:
            difference = log_ratio
        elif abs(q - 1) < 0.5:
            difference = low ** (q - 1) * np.expm1((q - 1) * log_ratio) / (q - 1)
        else:
            difference = (high ** (q - 1) - low ** (q - 1)) / (q - 1)
        quotient = difference / (high - low)
    return np.where(is_near, low ** (q - 2.0), quotient)


def deviations(
    square: float, plus: float, minus: float, count: int, rest: int, failures: tuple[float, float]
) -> tuple[float, float]:
    """How far the mean over `count` probes may be too high, and too low; `square` is the mean of zᵀg(A)²z."""
    x_f, x = math.log(1 / failures[0]), math.log(2 / failures[1])
    span = max(plus, minus)
    linear_part = span * math.sqrt(x_f / count)
    deviation = min(linear_part + math.sqrt(square + linear_part**2), span * math.sqrt(rest))
    return _tail(deviation, plus, count, x), _tail(deviation, minus, count, x)


def _tail(deviation: float, span: float, count: int, x: float) -> float:
    """The error e with (N F²/2G²)(s − log(1+s)) = x, s = eG/F²: exceeded with probability e⁻ˣ at most."""
    if deviation <= 0:
        return 0.0
    level = 2 * x * max(span, 0.0) ** 2 / (count * deviation**2)
    if level < 1e-12:  # the limit of a small span; beyond, s − log(1+s) would cancel
        return 2 * deviation * math.sqrt(x / count) * (1 + 1e-5)
    s = level + math.sqrt(level**2 + 2 * level)  # from above, since s − log(1+s) ≥ s²/(2(1+s))
    for _ in range(60):
        step = (s - math.log1p(s) - level) * (1 + s) / s
        s -= step
        if abs(step) <= 1e-14 * s:
            break
    return deviation**2 / span * s * (1 + 1e-9)


def _one_sign(q: float, steps: int, top: float) -> bool:
    """Whether the derivatives of f² that the brackets rest on have one sign on (0, top]: those of order 2k + 1 < 0.

    (1−q)² f² = x^2q − 2x^(q+1) + x². The derivative of order j of x^e is e(e−1)…(e−j+1) x^(e−j): the two terms are
    compared at `top`, where they are nearest to each other, since their ratio is a power of x.
    """
    order, near = 2 * steps + 1, q - 1  # exactly: 2q − 2 and q + 1 − 2 are small, and all that counts
    first, second = (_falling_factorial(times * near, order) for times in (2, 1))
    at_top = first[0] * math.exp(first[1] - second[1] + (q - 1) * math.log(top)) - 2 * second[0]
    at_zero = first[0] if q < 1 else -2 * second[0]
    return at_top < 0 and at_zero < 0


def _falling_factorial(beyond: float, order: int) -> tuple[float, float]:
    """The falling factorial e (e − 1) … (e − order + 1) of e = 2 + beyond: its sign and logarithm."""
    factors = beyond + (2.0 - np.arange(order))
    return float(np.prod(np.sign(factors))), float(np.sum(np.log(np.abs(factors))))
