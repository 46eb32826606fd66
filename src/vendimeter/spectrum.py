"""What is known of the eigenvalues of ρ, and what follows for the score of every order.

ρ is the similarity matrix with trace one, K/n or diag(√p) K diag(√p). Its eigenvalues λ sum to one. The score of
order q is the Hill number VS_q = (Σ λ^q)^(1/(1−q)): q = 0 is the rank, q = 1 the Vendi Score exp(−Σ λ log λ),
q = 2 is 1/‖ρ‖_F² and q = ∞ is 1/λ_max. Only this module knows entropy.

How the bounds come about
-------------------------
Computed eigenvalues λ̂ differ from the true λ. A solver supplies one number, ``error``, with Σ(λ − λ̂)² ≤ error²
(by Hoffman–Wielandt, any bound on the Frobenius norm of the perturbation will do). Put
f(x) = (x^q − x)/(1−q), with −x log x at q = 1: it is concave for every q > 0, vanishes at 0 and 1, and
VS_q = (1 + (1−q) Σf(λ))^(1/(1−q)) rises with T = Σf(λ). So bounds on T are bounds on the score.

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
from typing import Any, Literal, NamedTuple

import numpy as np

from vendimeter._messages import brief
from vendimeter._options import as_number
from vendimeter.errors import InputError, UnansweredError

__all__ = ["Level", "MomentSpectrum", "Spectrum", "bracket", "hill", "parse_order", "parse_orders"]

Level = Literal["deterministic", "probabilistic", "estimated", "none"]
"""What may be claimed of the bounds.

- ``"deterministic"``: they contain the exact score, always (up to the stated rounding bound);
- ``"probabilistic"``: they contain it with the stated confidence, all constants rigorous;
- ``"estimated"``: a confidence interval whose constants were themselves estimated;
- ``"none"``: there is no interval.
"""

UNIT = float(np.finfo(np.float64).eps) / 2  # unit roundoff u of float64


class Answer(NamedTuple):
    """A score of one order with the interval that contains it."""

    value: float
    low: float
    high: float


def parse_order(q: Any) -> float:
    """The order q as a float ≥ 0; accepts numbers and the strings "inf" and "infinity"."""
    order = as_number(q)
    if isinstance(q, str):
        try:
            order = float(q)
        except ValueError:
            order = math.nan
    if math.isnan(order) or order < 0 or (math.isinf(order) and isinstance(q, int)):
        raise InputError(f"q={brief(q)} is not an order; expected a number from 0 up, or 'inf'.")
    return order


def parse_orders(q: Any) -> tuple[list[float], bool]:
    """The orders asked for, and whether several were asked for (a list, tuple or array)."""
    if getattr(q, "ndim", 0) == 1 and hasattr(q, "tolist"):  # an array of any library
        q = q.tolist()
    several = isinstance(q, list | tuple | range)
    orders = [parse_order(one) for one in q] if several else [parse_order(q)]
    if not orders:
        raise InputError("q is an empty list; expected at least one order, such as q=[0, 1, 2, 'inf'].")
    if len(set(orders)) < len(orders):
        raise InputError(f"q={brief(list(q))} names an order twice; expected each order once.")
    return orders, several


def _f(x: np.ndarray, q: float) -> np.ndarray:
    """(x^q − x)/(1−q), or −x log x at q = 1, exact at 0 and stable near q = 1."""
    log = np.log(np.where(x > 0, x, 1.0))
    if q == 1:
        return -x * log
    if abs(q - 1) < 0.5:
        return x * np.expm1((q - 1) * log) / (1 - q)
    return np.where(x > 0, np.exp(q * log) - x, 0.0) / (1 - q)


def _slope(x: np.ndarray, q: float) -> np.ndarray:
    """The derivative of `_f`; infinite at 0, where no tangent is taken."""
    log = np.log(np.where(x > 0, x, 1.0))
    with np.errstate(over="ignore"):
        slope = -1 - log if q == 1 else -1 + q * np.expm1((q - 1) * log) / (1 - q)
    return np.where(x > 0, slope, np.inf)


def _from_sum(total: np.ndarray, q: float, most: np.ndarray | float) -> np.ndarray:
    """The score of order 0 < q < 2 from T = Σf(λ), at most `most`."""
    if q == 1:
        return np.minimum(np.exp(np.minimum(total, np.log(most))), most)
    inner = (1 - q) * total
    with np.errstate(divide="ignore", over="ignore"):
        score = np.exp(np.log1p(np.maximum(inner, -1.0)) / (1 - q))
    return np.minimum(score, most)


def _norm(values: np.ndarray, q: float) -> np.ndarray:
    """The q-norm over the last axis, 1 < q ≤ ∞, without under- or overflow."""
    top = values.max(axis=-1)
    if math.isinf(q):
        return top
    ratio = values / np.where(top > 0, top, 1.0)[..., None]
    return top * np.sum(ratio**q, axis=-1) ** (1 / q)


def _from_norm(norm: np.ndarray, q: float) -> np.ndarray:
    """The score of order q > 1 from ‖λ‖_q; infinite where the norm is 0."""
    power = -1.0 if math.isinf(q) else q / (1 - q)
    with np.errstate(divide="ignore", over="ignore"):
        return np.exp(power * np.log(np.maximum(norm, 0.0)))


def hill(eigenvalues: np.ndarray, q: float, *, zero_below: np.ndarray | float = 0.0) -> np.ndarray:
    """The Hill number of order q of (batches of) eigenvalues along the last axis.

    Parameters
    ----------
    eigenvalues : ndarray, shape (..., m)
        Non-negative; they are divided by their sum.
    q : float
        The order, 0 ≤ q ≤ ∞.
    zero_below : ndarray or float
        For q < 1, where rounding noise would otherwise count, eigenvalues up to this are taken as 0.

    Returns
    -------
    ndarray, shape (...)

    Examples
    --------
    >>> import numpy as np
    >>> float(hill(np.array([0.5, 0.25, 0.25]), 2.0).round(4))
    2.6667
    """
    x = eigenvalues
    if q < 1:
        above = x > np.asarray(zero_below)[..., None]
        if q == 0:
            return np.maximum(np.count_nonzero(above, axis=-1), 1).astype(np.float64)
        x = np.where(above | (x == x.max(axis=-1, keepdims=True)), x, 0.0)
    x = x / x.sum(axis=-1, keepdims=True)
    if q < 2:
        return _from_sum(_f(x, q).sum(axis=-1), q, float(x.shape[-1]))
    if q <= 16:  # no underflow worth speaking of, and exact where the sum is: 1/(¼ + ¼) is 2
        return np.sum(x**q, axis=-1) ** (1 / (1 - q))
    return _from_norm(_norm(x, q), q)


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
        mapped = 8 * UNIT * (1 + math.log(m))  # what the way from the sum to the score may lose
        low = np.maximum(low, _from_sum(total_low, q, float(m)) * (1 - mapped))
        high = np.minimum(high, _from_sum(total_high, q, float(m)) * (1 + mapped))
    if q > 1:  # between 1 and 2 both hold
        norm = _norm(x, q)
        reach = e * m ** max(1 / q - 0.5, 0.0)
        # The norm is right to (m + 16) u, and enters the score with a power of q/(q − 1).
        lost = (m + 16) * UNIT * (1 + (1.0 if math.isinf(q) else q / (q - 1)))
        low = np.maximum(low, _from_norm(norm + reach, q) * (1 - lost))
        high = np.minimum(high, _from_norm(norm - reach, q) * (1 + lost))
    return low, high


def _bracket_sum(x: np.ndarray, e: np.ndarray, q: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on T = Σf(λ) for 0 < q < 2, widened by what evaluating them may lose."""
    m = x.shape[-1]
    e = e[..., None]
    zero = np.zeros((*x.shape[:-1], 1))
    value = np.concatenate([zero, np.cumsum(_f(x, q), axis=-1)], axis=-1)
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.concatenate([zero, np.sqrt(np.cumsum(_slope(x, q) ** 2, axis=-1))], axis=-1)
        first_order = np.where(e > 0, e * slope, 0.0)  # at every split k = 0 … m: the k largest are "big"
    lost = (m + 16) * UNIT * (1 + value[..., -1])

    small = m - np.arange(m + 1)
    tail = np.concatenate([np.cumsum(x[..., ::-1], axis=-1)[..., ::-1], zero], axis=-1)
    best = math.exp(-1) if q == 1 else q ** (1 / (1 - q))
    mean = np.minimum((tail + np.sqrt(small) * e) / np.maximum(small, 1), best)
    upper = value + first_order + small * _f(mean, q)

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        second_order = np.where(e > 0, 0.5 * e**2 * q * (x - e) ** (q - 2), 0.0)
        lower = np.where(x > 2 * e, value[..., 1:] - first_order[..., 1:] - second_order, 0.0)
    return np.maximum(lower.max(axis=-1) - lost, 0.0), upper.min(axis=-1) * (1 + (m + 16) * UNIT) + lost


@dataclass(frozen=True)
class Spectrum:
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
        value = hill(self.eigenvalues, q, zero_below=self.rank_threshold)
        if self.level == "none":
            return Answer(float(value), math.nan, math.nan)
        low, high = bracket(self.eigenvalues, self.error, q)
        return Answer(float(np.clip(value, low, high)), float(low), float(high))


@dataclass(frozen=True)
class MomentSpectrum:
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
            float(_from_norm(np.array(max(norm, 0.0)), q))
            for norm in (self.norm, self.norm + self.error, self.norm - self.error)
        )
        if self.level == "none":
            return Answer(value, math.nan, math.nan)
        low, high = max(low * (1 - 16 * UNIT), 1.0), min(high * (1 + 16 * UNIT), float(self.size))
        return Answer(min(max(value, low), high), low, high)
