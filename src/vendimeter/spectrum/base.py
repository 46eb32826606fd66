"""What every spectrum is: an answer with bounds for an order q, and a level of claim."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

from vendimeter.errors import InputError, brief
from vendimeter.options import as_number

__all__ = ["UNIT", "Answer", "Level", "Spectrum", "parse_order", "parse_orders"]

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
        """The widest of the bounds: half their width relative to the score, over these orders; 0 for none."""
        answers = [self.score(q) for q in orders]
        return max(((answer.high - answer.low) / 2 / answer.value for answer in answers), default=0.0)
