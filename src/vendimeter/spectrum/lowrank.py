"""A factor of low rank: lower bounds on the leading eigenvalues and the trace of the rest, so bounds for every order.

What is known. A solver has M = FFᵀ + R with both parts positive semidefinite and ρ ⪯ M ⪯ ρ + shift·I, where the
shift is rounding (see `vendimeter.solvers.lowrank`), and the r eigenvalues μ of FFᵀ. By Weyl each λ_i ≥ μ′_i =
max(μ_i − shift, 0). So λ = μ′ + δ with δ ≥ 0 and Σδ = ε = 1 − Σμ′. That difference is of the numbers as they are
stored, and exact to one rounding; since μ′ lies below the true eigenvalues it never loses what is left over.

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
        Upper bounds on the diagonal of what the factor leaves over; tightens the upper bounds.
    frobenius : float, optional
        Upper bound on the Frobenius norm of what the factor leaves over; tightens the lower bounds.
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
            mapped = 8 * UNIT * (1 + math.log(self.size))  # what the way from the sum to the score may lose
            low = max(low, float(from_sum(np.array(self._least(q)), q, high)) * (1 - mapped))
            high = min(high, float(from_sum(np.array(self._most(q)), q, high)) * (1 + mapped))
        if q > 1:  # between 1 and 2 both hold
            level, kept = self._water_level()
            flat = _norm(np.append(self.eigenvalues[:kept], level), self.size - kept, q)
            steep = _norm(self._heaviest(), 1, q)
            # A norm is right to a few (r + 16) u, and enters the score with a power of q/(q − 1).
            power = 1.0 if math.isinf(q) else q / (q - 1)
            lost = 2 * (len(self.eigenvalues) + self.size + 16) * UNIT * (1 + power)
            low = max(low, float(from_norm(np.array(steep), q)) * (1 - lost))
            high = min(high, float(from_norm(np.array(flat), q)) * (1 + lost))
        low = min(low, high)
        return Answer(min(max(math.sqrt(low) * math.sqrt(high), low), high), low, high)

    def _water_level(self) -> tuple[float, int]:
        """The level c of the least concentrated eigenvalues, and how many known ones lie above it."""
        x, size = self.eigenvalues, self.size
        tail = np.append(np.cumsum(x[::-1])[::-1], 0.0)
        splits = np.arange(min(len(x), size - 1) + 1)
        levels = (tail[splits] + self.residual) / (size - splits)
        kept = int(np.argmax(levels >= np.append(x, 0.0)[splits]))
        level = float(levels[kept])
        return (min(level, float(x[kept - 1])) if kept else level), kept

    def _heaviest(self) -> np.ndarray:
        """The most concentrated eigenvalues that are possible, from large to small."""
        x, rest, bound = self.eigenvalues, self.residual, self.frobenius
        count = max(len(x), 1)
        if bound is None or not 0 < bound < rest:
            heaviest = np.append(x, np.zeros(count - len(x)))
            heaviest[0] += rest
            return heaviest
        count = min(self.size, max(count, math.ceil((rest / bound) ** 2)))
        places = np.arange(1, count + 1)
        reached = np.minimum(rest, np.sqrt(places) * bound + places * self.shift)
        reached[-1] = rest
        return np.append(x, np.zeros(count - len(x))) + np.diff(reached, prepend=0.0)

    def _lost(self, total: float) -> float:
        """What adding up to N + r terms f, of which `total` is the sum, may lose."""
        return (self.size + len(self.eigenvalues) + 16) * UNIT * (1 + abs(total))

    def _most(self, q: float) -> float:
        """Upper bound on Σf(λ), 0 < q < 2."""
        best = math.exp(-1) if q == 1 else q ** (1 / (1 - q))  # where f has its maximum
        level, kept = self._water_level()
        flat = float(concave(np.array(level), q)) * (self.size - kept)
        most = float(concave(self.eigenvalues[:kept], q).sum()) + flat
        if self.diagonal is not None:
            factor = concave(np.clip(best, self.eigenvalues, self.eigenvalues + self.shift), q)
            rest = concave(np.minimum(self.diagonal, best), q)
            most = min(most, float(factor.sum()) + float(rest.sum()) + 2 * self.shift * (1 + 1 / best))
        return most + self._lost(most)

    def _least(self, q: float) -> float:
        """Lower bound on Σf(λ), 0 < q < 2."""
        least = float(concave(self._heaviest(), q).sum())
        if q == 1 and self.frobenius is not None:
            least = max(least, self._least_entropy(self.frobenius))
        return max(least - self._lost(least), 0.0)

    def _least_entropy(self, bound: float) -> float:
        """Lower bound on the entropy, from the concavity of entropy and the Frobenius norm of what is left over."""
        x, shift = self.eigenvalues, self.shift
        slack, held = len(x) * shift, float(x.sum())
        rest = self.residual - slack
        if not 0 < bound < rest:
            return 0.0

        def f(value: float) -> float:
            return -value * math.log(value) if value > 0 else 0.0

        factor = float(np.minimum(concave(x, 1.0), concave(x + shift, 1.0)).sum())
        mixed = f(min(max(math.exp(-1), held), held + slack))
        trace = f(1 + self.size * shift)
        return (
            factor
            - mixed
            + 2 * rest * math.log(rest / bound)
            + trace
            - self.size * f(min(shift, math.exp(-1)))
        )


def _norm(values: np.ndarray, times: int, q: float) -> float:
    """The q-norm, 1 < q ≤ ∞, of values from large to small, the last of them occurring several times."""
    top = float(values[0])
    if math.isinf(q) or top == 0:
        return top
    powers = (values / top) ** q
    return top * float(powers[:-1].sum() + times * powers[-1]) ** (1 / q)
