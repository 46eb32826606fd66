"""Entropy and the score of every order: what a spectrum answers, and the functions that scores and bounds rest on.

f(x) = (x^q − x)/(1−q) is concave for every q > 0 and vanishes at 0 and 1, and VS_q = (1 + (1−q) Σf(λ))^(1/(1−q)) rises
with T = Σf(λ): bounds on T are bounds on the score. For q > 1 the norm ‖λ‖_q determines the score, too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.options import as_number

__all__ = [
    "UNIT",
    "Answer",
    "Level",
    "Spectrum",
    "concave",
    "from_norm",
    "from_sum",
    "hill",
    "norm",
    "parse_order",
    "parse_orders",
    "slope",
    "truncated",
]

UNIT = float(np.finfo(np.float64).eps) / 2  # unit roundoff u of float64
Level = Literal["deterministic", "probabilistic", "estimated", "none"]
"""What may be claimed of the bounds.

- ``"deterministic"``: they contain the exact score, always (up to the stated rounding bound);
- ``"probabilistic"``: they contain it with the stated confidence, all constants rigorous;
- ``"estimated"``: a confidence interval whose constants were themselves estimated;
- ``"none"``: there is no interval.
"""


class Answer(NamedTuple):
    """A score of one order with the interval that contains it."""

    value: float
    low: float
    high: float


class Spectrum(ABC):
    """What is known of the eigenvalues of ρ.

    Attributes
    ----------
    level : str
        What may be claimed of the bounds; see `Level`.
    confidence : float
        The probability with which they hold; 1 when it is certain.
    eigenvalues : ndarray
        Those that are known, from large to small; `UnansweredError` where none are.

    Examples
    --------
    >>> import vendimeter as vm
    >>> spectrum = vm.score(["a", "a", "b", "c"], kernel="match").spectrum
    >>> spectrum.score("inf").value, spectrum.level
    (2.0, 'deterministic')
    """

    eigenvalues: Any
    level: Level
    confidence: float

    @abstractmethod
    def score(self, q: float | str) -> Answer:
        """The score of order q and the bounds that contain it; they are NaN where nothing is claimed."""

    def width(self, orders: Iterable[float]) -> float:
        """The largest relative half-width of the bounds over these orders; 0 for none."""
        answers = [self.score(q) for q in orders]
        return max(((answer.high - answer.low) / 2 / answer.value for answer in answers), default=0.0)


def parse_order(q: Any) -> float:
    """Parse the order q as a float ≥ 0; accepts numbers and the strings "inf" and "infinity"."""
    order = as_number(q)
    if isinstance(q, str):
        try:
            order = float(q)
        except ValueError:
            order = math.nan
    if math.isnan(order) or order < 0 or (math.isinf(order) and isinstance(q, int)):
        raise InputError(f"q={brief(q)} is not an order; expected a number from 0 up, or 'inf'.", option="q")
    return order


def parse_orders(q: Any) -> tuple[list[float], bool]:
    """Parse one order or several: the orders, and whether they came as a list, tuple or array."""
    if getattr(q, "ndim", 0) == 1 and hasattr(q, "tolist"):  # an array of any library
        q = q.tolist()
    is_list = isinstance(q, list | tuple | range)
    orders = [parse_order(order) for order in q] if is_list else [parse_order(q)]
    if not orders:
        raise InputError(
            "q is an empty list; expected at least one order, such as q=[0, 1, 2, 'inf'].", option="q"
        )
    if len(set(orders)) < len(orders):
        raise InputError(f"q={brief(list(q))} names an order twice; expected each order once.", option="q")
    return orders, is_list


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
        is_above = x > np.asarray(zero_below)[..., None]
        if q == 0:
            return np.maximum(np.count_nonzero(is_above, axis=-1), 1).astype(np.float64)
        x = np.where(is_above | (x == x.max(axis=-1, keepdims=True)), x, 0.0)
    x = x / x.sum(axis=-1, keepdims=True)
    count = np.maximum(np.count_nonzero(x, axis=-1), 1)  # which rounding would pass where all are equal
    if q < 1.5:  # beyond, the sum of powers is small, and would be lost beside the 1 of this form
        return from_sum(concave(x, q).sum(axis=-1), q, count)
    if q <= 16:  # no underflow worth speaking of, and exact where the sum is: 1/(¼ + ¼) is 2
        return np.minimum(np.sum(x**q, axis=-1) ** (1 / (1 - q)), count)
    return np.minimum(from_norm(norm(x, q), q), count)


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


# ------------------------------------------------------------------------------------------ from eigenvalues to a score


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


def from_sum(total: np.ndarray, q: float, largest: np.ndarray | float) -> np.ndarray:
    """The score of order 0 < q < 2 from T = Σf(λ), at most `largest`."""
    if q == 1:
        return np.minimum(np.exp(np.minimum(total, np.log(largest))), largest)
    inner = (1 - q) * total
    with np.errstate(divide="ignore", over="ignore"):
        score = np.exp(np.log1p(np.maximum(inner, -1.0)) / (1 - q))
    return np.minimum(score, largest)


def norm(values: np.ndarray, q: float) -> np.ndarray:
    """The q-norm over the last axis, 1 < q ≤ ∞, without under- or overflow."""
    top = values.max(axis=-1)
    if math.isinf(q):
        return top
    ratios = values / np.where(top > 0, top, 1.0)[..., None]
    return top * np.sum(ratios**q, axis=-1) ** (1 / q)


def from_norm(size: np.ndarray, q: float) -> np.ndarray:
    """The score of order q > 1 from ‖λ‖_q; infinite where it is 0."""
    power = -1.0 if math.isinf(q) else q / (1 - q)
    with np.errstate(divide="ignore", over="ignore"):
        return np.exp(power * np.log(np.maximum(size, 0.0)))
