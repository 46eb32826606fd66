"""Low-rank spectra: lower bounds on the leading eigenvalues and the trace of the rest, hence bounds for every order.

What is known. A solver has M = FFᵀ + R with both parts positive semidefinite and ρ ⪯ M ⪯ ρ + shift·I, where the shift
is rounding (see `vendimeter.solvers.cholesky`), and the r eigenvalues μ of FFᵀ. By Weyl each λ_i ≥ μ′_i = max(μ_i −
shift, 0). So λ = μ′ + δ with δ ≥ 0 and Σδ = ε = 1 − Σμ′. That difference is of the numbers as they are stored, and
exact to one rounding; since μ′ lies below the true eigenvalues it never loses what is left over.

Upper, from the water level: λ_i = max(μ′_i, c) is the least concentrated choice, with c such that the sum is 1. The
proof holds for any c ≤ μ′_k, which makes rounding harmless. With f concave (see `entropy`), tangents at μ′_i and c,
and λ_i ≥ μ′_i for the k largest, Σf(λ) ≤ Σ_{i≤k} f(μ′_i) + (N−k) f(c) + f′(c)·(1 − Σ_{i≤k} μ′_i − (N−k)c), and the last
bracket is rounding.

Upper, from the diagonal of R: Tr M^q is at most (q < 1) or at least (q > 1) Tr(FFᵀ)^q + Tr R^q, and entropy is
subadditive. In terms of f that is Σf(λ(M)) ≤ Σf(μ) + Σf(λ(R)) for every q, and by Schur Σf(λ(R)) ≤ Σf(R_ii). From
M to ρ eigenvalues fall by at most the shift, which raises f only beyond x*, at a slope of at most 1, and at most 1/x*
of them lie there. For q ≥ 2 the gain is nothing worth having, and the norm takes the place of the sum.

Lower: (μ′_1 + ε, μ′_2, …) is the most concentrated choice. With φ ≥ ‖R‖_F, Ky Fan's inequality gives Σ_{i≤k} λ_i ≤
Σ_{i≤k} μ_i + √k φ, hence λ ≺ μ′ + d with d_1 + … + d_k = min(ε, √k φ + k·shift). And for q = 1, as M is a mixture of
FFᵀ/s and R/e with s = tr FFᵀ, e = tr R and t = s + e ≥ 1: S(M) ≥ S(FFᵀ) − f(s) + e log(e²/φ²) + f(t), because the
entropy of R/e is at least log(e²/φ²); S(ρ) ≥ S(M) − N f(shift).

Rényi entropies are Schur-concave, so one majorisation serves every order. All ends are widened by what evaluating
them may lose, a multiple of N·u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

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
)

__all__ = ["LowRank"]


@dataclass(frozen=True)
class LowRank(Spectrum):
    """Lower bounds on the leading eigenvalues of ρ, and how much the eigenvalues are larger in all.

    Attributes
    ----------
    eigenvalues : ndarray, shape (r,)
        From large to small; each is at most the true eigenvalue of its place.
    residual : float
        By how much the sum of all true eigenvalues, which is 1, exceeds the sum of these.
    size : int
        How many eigenvalues there are in all, zeros included.
    diagonal : ndarray, optional
        Upper bounds on the diagonal of the residual matrix; tightens the upper bounds.
    frobenius : float, optional
        Upper bound on the Frobenius norm of the residual matrix; tightens the lower bounds.
    shift : float
        How far rounding may put the eigenvalues of the factor above `eigenvalues`, each of them.
    level : str
        What may be claimed of the bounds; see `Level`.
    confidence : float
        The probability with which they hold.

    Examples
    --------
    >>> import numpy as np
    >>> spectrum = LowRank(np.array([0.5, 0.3, 0.1]), 0.1, size=10)
    >>> value, low, high = spectrum.score(2)
    >>> round(low, 4), round(high, 4)
    (2.1739, 2.8455)
    """

    eigenvalues: np.ndarray
    residual: float
    size: int
    diagonal: np.ndarray | None = field(default=None, repr=False)
    frobenius: float | None = None
    shift: float = 0.0
    level: Level = "deterministic"
    confidence: float = 1.0

    def score(self, q: float | str) -> Answer:
        """The middle of the bounds (their geometric mean) and the bounds; order 0 raises `UnansweredError`."""
        q = parse_order(q)
        if q == 0:
            raise UnansweredError(
                "q=0 is the number of eigenvalues that are not 0, and a factor of low rank says nothing about the "
                "smallest ones; expected an order above 0. For q=0 pass method='exact'."
            )
        low, high = 1.0, float(self.size)
        if q < 2:
            # Rounding of the map from the sum to the score.
            mapping_error = 8 * UNIT * (1 + math.log(self.size))
            low = max(low, float(from_sum(np.array(self._lower_sum(q)), q, high)) * (1 - mapping_error))
            high = min(high, float(from_sum(np.array(self._upper_sum(q)), q, high)) * (1 + mapping_error))
        if q > 1:  # between 1 and 2 both hold
            level, kept = self._water_level()
            flat_norm = _norm(np.append(self.eigenvalues[:kept], level), self.size - kept, q)
            concentrated_norm = _norm(self._most_concentrated(), 1, q)
            # A norm is right to a few (r + 16) u, and enters the score with a power of q/(q − 1).
            power = 1.0 if math.isinf(q) else q / (q - 1)
            rounding = 2 * (len(self.eigenvalues) + self.size + 16) * UNIT * (1 + power)
            low = max(low, float(from_norm(np.array(concentrated_norm), q)) * (1 - rounding))
            high = min(high, float(from_norm(np.array(flat_norm), q)) * (1 + rounding))
        low = min(low, high)
        value = min(max(math.sqrt(low) * math.sqrt(high), low), high)
        return Answer(value, math.nan, math.nan) if self.level == "none" else Answer(value, low, high)

    def _water_level(self) -> tuple[float, int]:
        """The level c of the least concentrated eigenvalues, and how many known ones lie above it."""
        x, size = self.eigenvalues, self.size
        tail = np.append(np.cumsum(x[::-1])[::-1], 0.0)
        splits = np.arange(min(len(x), size - 1) + 1)
        levels = (tail[splits] + self.residual) / (size - splits)
        kept = int(np.argmax(levels >= np.append(x, 0.0)[splits]))
        level = float(levels[kept])
        return (min(level, float(x[kept - 1])) if kept else level), kept

    def _most_concentrated(self) -> np.ndarray:
        """The most concentrated eigenvalues that are possible, from large to small."""
        x, rest, bound = self.eigenvalues, self.residual, self.frobenius
        count = max(len(x), 1)
        if bound is None or not 0 < bound < rest:
            eigenvalues = np.append(x, np.zeros(count - len(x)))
            eigenvalues[0] += rest
            return eigenvalues
        count = min(self.size, max(count, math.ceil((rest / bound) ** 2)))
        ranks = np.arange(1, count + 1)
        added = np.minimum(rest, np.sqrt(ranks) * bound + ranks * self.shift)
        added[-1] = rest
        return np.append(x, np.zeros(count - len(x))) + np.diff(added, prepend=0.0)

    def _rounding(self, total: float) -> float:
        """Bound on the rounding error of adding up to N + r terms f, of which `total` is the sum."""
        return (self.size + len(self.eigenvalues) + 16) * UNIT * (1 + abs(total))

    def _upper_sum(self, q: float) -> float:
        """Upper bound on Σf(λ), 0 < q < 2."""
        maximizer = math.exp(-1) if q == 1 else q ** (1 / (1 - q))  # where f has its maximum
        level, kept = self._water_level()
        flat_part = float(concave(np.array(level), q)) * (self.size - kept)
        upper = float(concave(self.eigenvalues[:kept], q).sum()) + flat_part
        if self.diagonal is not None:
            factor_sum = concave(np.clip(maximizer, self.eigenvalues, self.eigenvalues + self.shift), q)
            residual_sum = concave(np.minimum(self.diagonal, maximizer), q)
            upper = min(
                upper,
                float(factor_sum.sum()) + float(residual_sum.sum()) + 2 * self.shift * (1 + 1 / maximizer),
            )
        return upper + self._rounding(upper)

    def _lower_sum(self, q: float) -> float:
        """Lower bound on Σf(λ), 0 < q < 2."""
        lower = float(concave(self._most_concentrated(), q).sum())
        if q == 1 and self.frobenius is not None:
            lower = max(lower, self._entropy_lower_bound(self.frobenius))
        return max(lower - self._rounding(lower), 0.0)

    def _entropy_lower_bound(self, bound: float) -> float:
        """Lower bound on the entropy, from the concavity of entropy and the Frobenius norm of the residual matrix."""
        x, shift = self.eigenvalues, self.shift
        slack, factor_trace = len(x) * shift, float(x.sum())
        residual = self.residual - slack
        if not 0 < bound < residual:
            return 0.0

        def f(value: float) -> float:
            return -value * math.log(value) if value > 0 else 0.0

        factor_entropy = float(np.minimum(concave(x, 1.0), concave(x + shift, 1.0)).sum())
        mixing_term = f(min(max(math.exp(-1), factor_trace), factor_trace + slack))
        trace_term = f(1 + self.size * shift)
        return (
            factor_entropy
            - mixing_term
            + 2 * residual * math.log(residual / bound)
            + trace_term
            - self.size * f(min(shift, math.exp(-1)))
        )


def _norm(values: np.ndarray, repeats: int, q: float) -> float:
    """The q-norm, 1 < q ≤ ∞, of values from large to small, the last of them occurring several times."""
    top = float(values[0])
    if math.isinf(q) or top == 0:
        return top
    powers = (values / top) ** q
    return top * float(powers[:-1].sum() + repeats * powers[-1]) ** (1 / q)
