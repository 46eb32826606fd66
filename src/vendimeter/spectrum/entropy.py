"""Entropy and the score: f(x) = (x^q − x)/(1−q), and the way from Σf(λ) or ‖λ‖_q to the score.

f is concave for every q > 0, vanishes at 0 and 1, and VS_q = (1 + (1−q) Σf(λ))^(1/(1−q)) rises with T = Σf(λ): bounds
on T are bounds on the score.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["concave", "from_norm", "from_sum", "hill", "norm", "slope", "truncated"]


def concave(x: np.ndarray, q: float) -> np.ndarray:
    """(x^q − x)/(1−q), or −x log x at q = 1, exact at 0 and stable near q = 1."""
    log = np.log(np.where(x > 0, x, 1.0))
    if q == 1:
        return -x * log
    if abs(q - 1) < 0.5:
        return x * np.expm1((q - 1) * log) / (1 - q)
    return np.where(x > 0, np.exp(q * log) - x, 0.0) / (1 - q)


def slope(x: np.ndarray, q: float) -> np.ndarray:
    """The derivative of `concave`; infinite at 0, where no tangent is taken."""
    log = np.log(np.where(x > 0, x, 1.0))
    with np.errstate(over="ignore"):
        tangent = -1 - log if q == 1 else -1 + q * np.expm1((q - 1) * log) / (1 - q)
    return np.where(x > 0, tangent, np.inf)


def from_sum(total: np.ndarray, q: float, most: np.ndarray | float) -> np.ndarray:
    """The score of order 0 < q < 2 from T = Σf(λ), at most `most`."""
    if q == 1:
        return np.minimum(np.exp(np.minimum(total, np.log(most))), most)
    inner = (1 - q) * total
    with np.errstate(divide="ignore", over="ignore"):
        score = np.exp(np.log1p(np.maximum(inner, -1.0)) / (1 - q))
    return np.minimum(score, most)


def norm(values: np.ndarray, q: float) -> np.ndarray:
    """The q-norm over the last axis, 1 < q ≤ ∞, without under- or overflow."""
    top = values.max(axis=-1)
    if math.isinf(q):
        return top
    ratio = values / np.where(top > 0, top, 1.0)[..., None]
    return top * np.sum(ratio**q, axis=-1) ** (1 / q)


def from_norm(size: np.ndarray, q: float) -> np.ndarray:
    """The score of order q > 1 from ‖λ‖_q; infinite where it is 0."""
    power = -1.0 if math.isinf(q) else q / (1 - q)
    with np.errstate(divide="ignore", over="ignore"):
        return np.exp(power * np.log(np.maximum(size, 0.0)))


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
    most = np.maximum(np.count_nonzero(x, axis=-1), 1)  # which rounding would pass where all are equal
    if q < 1.5:  # beyond, the sum of powers is small, and would be lost beside the 1 of this form
        return from_sum(concave(x, q).sum(axis=-1), q, most)
    if q <= 16:  # no underflow worth speaking of, and exact where the sum is: 1/(¼ + ¼) is 2
        return np.minimum(np.sum(x**q, axis=-1) ** (1 / (1 - q)), most)
    return np.minimum(from_norm(norm(x, q), q), most)


def truncated(eigenvalues: np.ndarray, t: int) -> np.ndarray:
    """The t largest eigenvalues, with the mass of all others spread evenly over them: λ_i + (1 − Σ_{j≤t} λ_j)/t.

    The score of these is the t-truncated Vendi Score, which needs samples in proportion to t alone, whatever the kernel
    and the population. With t or fewer eigenvalues it is the score itself.

    Parameters
    ----------
    eigenvalues : ndarray, shape (..., m)
        Non-negative, from large to small along the last axis; they are divided by their sum.
    t : int
        How many to keep, from 1 up.

    Returns
    -------
    ndarray, shape (..., min(t, m))

    Examples
    --------
    >>> import numpy as np
    >>> truncated(np.array([0.5, 0.3, 0.1, 0.1]), 2)
    array([0.6, 0.4])
    """
    x = eigenvalues / eigenvalues.sum(axis=-1, keepdims=True)
    kept = x[..., :t]
    return kept + x[..., t:].sum(axis=-1, keepdims=True) / kept.shape[-1]
