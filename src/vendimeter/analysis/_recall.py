"""How much of what is there a search finds, as far as that was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vendimeter.results.base import Figure

__all__ = ["Recall", "interval"]


@dataclass(frozen=True, repr=False, eq=False)
class Recall(Figure):
    """The share of near copies that a search finds: a float, with how it was measured.

    Attributes
    ----------
    value : float
        Of copies that were planted at exactly the threshold, the hardest to find, the share that was found; 1 where
        all pairs were compared.
    low, high : float
        Its 95% confidence interval (Clopper and Pearson).
    planted : int
        How many were planted; 0 where all pairs were compared.
    sampled : float
        Of items drawn at random that were compared with all others and have a near copy, the share whose near copies
        are all in their cluster; NaN where none has one.
    sampled_low, sampled_high : float
        Its 95% confidence interval.
    checked : int
        How many of the drawn items have a near copy.
    tables : int
        How many tables there were.
    target : float
        The share that was asked for; NaN where all pairs were compared.
    """

    value: float
    low: float = 1.0
    high: float = 1.0
    planted: int = 0
    sampled: float = math.nan
    sampled_low: float = math.nan
    sampled_high: float = math.nan
    checked: int = 0
    tables: int = 0
    target: float = math.nan


def interval(found: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a probability.

    Examples
    --------
    >>> [round(end, 4) for end in interval(9, 10)]
    [0.555, 0.9975]
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = betaincinv(found, trials - found + 1, tail) if found else 0.0
    high = betaincinv(found + 1, trials - found, 1 - tail) if found < trials else 1.0
    return float(low), float(high)
