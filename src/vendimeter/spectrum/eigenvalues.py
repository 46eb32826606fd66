"""All eigenvalues with a bound on their error, and what follows for the score of every order.

Computed eigenvalues λ̂ differ from the true λ. A solver supplies one number, ``error``, with Σ(λ − λ̂)² ≤ error²
(by Hoffman–Wielandt, any bound on the Frobenius norm of the perturbation will do). With
the concave f of `entropy`, bounds on T = Σf(λ) are bounds on the score.

Upper. Split the eigenvalues into k big ones and m small ones. For the big ones take the tangent at λ̂ and
Cauchy–Schwarz; for the small ones take Jensen's inequality at their largest possible mean, but never beyond the
maximum of f at x* = q^(1/(1−q)): T ≤ Σ_big f(λ̂) + error·‖f′(λ̂_big)‖ + m f(min((Σλ̂_small + √m error)/m, x*)).
Every split is valid; the best is taken.

Lower. Keep the eigenvalues above 2·error, expand f to second order there and drop the rest, which is ≥ 0:
T ≥ Σ_kept f(λ̂) − error·‖f′(λ̂_kept)‖ − ½ error²·q·(λ̂_min − error)^(q−2). Every cut is valid; the best is taken.

For q ≥ 2 the triangle inequality of the q-norm is simpler and as sharp: |‖λ‖_q − ‖λ̂‖_q| ≤ ‖λ − λ̂‖_q ≤ error.
For q = 0 the value is the numerical rank, the number of eigenvalues above the stated threshold 2·error. Rounding
cannot tell a tiny eigenvalue from zero, so the bounds on the exact rank run from there to the number of all
eigenvalues.
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
    hill,
    norm,
    parse_order,
    slope,
)

__all__ = ["Eigenvalues", "Moment", "bracket"]


@dataclass(frozen=True)
class Eigenvalues(Spectrum):
    """Eigenvalues of ρ, all of them, with a bound on their error.

    Attributes
    ----------
    eigenvalues : ndarray, shape (m,)
        From large to small, non-negative; their sum is 1 up to `error`.
    error : float
        The Euclidean distance to the true eigenvalues is at most this.
    level : str
        What may be claimed of `error`; see `Level`.
    confidence : float
        The probability with which `error` holds; 1 when it is certain.

    Examples
    --------
    >>> import vendimeter as vm
    >>> spectrum = vm.score([[1, 0], [0, 1]], vm.kernels.Precomputed()).spectrum
    >>> spectrum.eigenvalues
    array([0.5, 0.5])
    >>> spectrum.score(2).value
    2.0
    """

    eigenvalues: np.ndarray
    error: float
    level: Level = "deterministic"
    confidence: float = 1.0

    @property
    def rank_threshold(self) -> float:
        """Eigenvalues up to this cannot be told from zero; q = 0 counts those above it."""
        return 2 * self.error

    def score(self, q: float | str) -> Answer:
        """The score of order q and the bounds that contain it; they are NaN where nothing is claimed."""
        q = parse_order(q)
        value = self.value(q)
        if self.level == "none":
            return Answer(value, math.nan, math.nan)
        low, high = bracket(self.eigenvalues, self.error, q)
        return Answer(value, min(float(low), value), max(float(high), value))

    def value(self, q: float) -> float:
        """The score alone, at a third of the cost."""
        value = float(hill(self.eigenvalues, q, zero_below=self.rank_threshold))
        return min(max(value, 1.0), float(len(self.eigenvalues)))


@dataclass(frozen=True)
class Moment(Spectrum):
    """One norm ‖λ‖_q of the eigenvalues, q ≥ 2, found without an eigensolve: it answers this order only."""

    q: float
    norm: float
    error: float
    size: int
    level: Level = "deterministic"
    confidence: float = field(default=1.0)

    @property
    def eigenvalues(self) -> np.ndarray:
        """Not computed: raises `UnansweredError`."""
        raise UnansweredError(
            f"the eigenvalues were not computed, because q={self.q:g} does not need them; ask for several "
            "orders at once, such as q=[1, 2], or use vendimeter.profile."
        )

    def score(self, q: float | str) -> Answer:
        """The score of the order that was computed; any other raises `UnansweredError`."""
        q = parse_order(q)
        if q != self.q:
            raise UnansweredError(
                f"this score was computed for q={self.q:g} alone and cannot answer q={q:g}; ask for several "
                "orders at once, such as q=[1, 2], or use vendimeter.profile."
            )
        value, low, high = (
            float(from_norm(np.array(max(norm, 0.0)), q))
            for norm in (self.norm, self.norm + self.error, self.norm - self.error)
        )
        if self.level == "none":
            return Answer(value, math.nan, math.nan)
        low, high = max(low * (1 - 16 * UNIT), 1.0), min(high * (1 + 16 * UNIT), float(self.size))
        return Answer(min(max(value, low), high), low, high)


def bracket(eigenvalues: np.ndarray, error: np.ndarray | float, q: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on the score of order q that hold for all λ ≥ 0, Σλ = 1, with ‖λ − eigenvalues‖₂ ≤ error.

    The derivation is at the top of this module. Works on batches along the last axis; `eigenvalues` must be
    non-negative and sorted from large to small.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = bracket(np.array([0.5, 0.25, 0.25]), 1e-9, 1.0)
    >>> bool(low < np.exp(1.5 * np.log(2)) < high), bool(high - low < 1e-7)
    (True, True)
    """
    x = eigenvalues
    m = x.shape[-1]
    e = np.asarray(error, dtype=np.float64)
    if q == 0:  # what lies above the threshold is certainly not zero; what lies below may be anything
        low = np.maximum(np.count_nonzero(x > 2 * e[..., None], axis=-1), 1).astype(np.float64)
        return low, np.full_like(low, float(m))
    low, high = np.ones(x.shape[:-1]), np.full(x.shape[:-1], float(m))
    if q < 2:
        total_low, total_high = _bracket_sum(x, e, q)
        mapping_error = 8 * UNIT * (1 + math.log(m))  # rounding of the map from the sum to the score
        low = np.maximum(low, from_sum(total_low, q, float(m)) * (1 - mapping_error))
        high = np.minimum(high, from_sum(total_high, q, float(m)) * (1 + mapping_error))
    if q > 1:  # between 1 and 2 both hold
        computed_norm = norm(x, q)
        norm_error = e * m ** max(1 / q - 0.5, 0.0)
        # The norm is right to (m + 16) u, and enters the score with a power of q/(q − 1).
        rounding = (m + 16) * UNIT * (1 + (1.0 if math.isinf(q) else q / (q - 1)))
        low = np.maximum(low, from_norm(computed_norm + norm_error, q) * (1 - rounding))
        high = np.minimum(high, from_norm(computed_norm - norm_error, q) * (1 + rounding))
    return low, high


def _bracket_sum(x: np.ndarray, e: np.ndarray, q: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on T = Σf(λ) for 0 < q < 2, widened by the rounding error of evaluating them."""
    m = x.shape[-1]
    e = e[..., None]
    zero = np.zeros((*x.shape[:-1], 1))
    value = np.concatenate([zero, np.cumsum(concave(x, q), axis=-1)], axis=-1)
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = np.concatenate([zero, np.sqrt(np.cumsum(slope(x, q) ** 2, axis=-1))], axis=-1)
        first_order = np.where(e > 0, e * slopes, 0.0)  # at every split k = 0 … m: the k largest are "big"
    rounding = (m + 16) * UNIT * (1 + value[..., -1])

    small_counts = m - np.arange(m + 1)
    tail_sums = np.concatenate([np.cumsum(x[..., ::-1], axis=-1)[..., ::-1], zero], axis=-1)
    maximizer = math.exp(-1) if q == 1 else q ** (1 / (1 - q))
    mean = np.minimum((tail_sums + np.sqrt(small_counts) * e) / np.maximum(small_counts, 1), maximizer)
    upper = value + first_order + small_counts * concave(mean, q)

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        second_order = np.where(e > 0, 0.5 * e**2 * q * (x - e) ** (q - 2), 0.0)
        lower = np.where(x > 2 * e, value[..., 1:] - first_order[..., 1:] - second_order, 0.0)
    return np.maximum(lower.max(axis=-1) - rounding, 0.0), upper.min(axis=-1) * (
        1 + (m + 16) * UNIT
    ) + rounding
