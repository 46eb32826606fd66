"""Options as users write them: numbers of any kind, checked, or an error that names the option."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from vendimeter._messages import brief
from vendimeter.errors import InputError

__all__ = ["as_number", "check_rng", "whole_number"]


def as_number(value: Any) -> float:
    """A real number of any type as a float; NaN for anything else, a truth value included."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf  # type: ignore[operator]


def whole_number(value: Any, name: str) -> int:
    """A whole number from 1 up."""
    number = as_number(value)
    if not (1 <= number < math.inf and number == int(number)):
        raise InputError(f"{name}={brief(value)}; expected a whole number from 1 up.")
    return int(number)


def check_rng(rng: Any) -> int:
    """A seed: a whole number from 0 up."""
    number = as_number(rng)
    if not (0 <= number < math.inf and number == int(number)):
        raise InputError(f"rng={brief(rng)}; expected a seed, a whole number from 0 up.")
    return int(rng)
