"""Options as users write them: numbers of any kind, checked, or an error that names the option."""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import Any

import numpy as np

from vendimeter.errors import InputError
from vendimeter.messages import brief

__all__ = [
    "COSINE",
    "SEED",
    "as_number",
    "byte_count",
    "check_confidence",
    "check_flag",
    "check_progress",
    "check_rng",
    "generator",
    "whole_number",
]


class _DefaultName(str):
    """A name that is the default of an option: it can be told from the same name that a user writes."""


class _DefaultNumber(int):
    """A number that is the default of an option: it can be told from the same number that a user writes."""


COSINE = _DefaultName("cosine")  # the kernel where none is named
SEED = _DefaultNumber(0)  # `rng` where none is given


def as_number(value: Any) -> float:
    """A real number of any type as a float; NaN for anything else, a truth value included."""
    if getattr(value, "shape", None) == ():  # a scalar of any array library
        value = value.item() if hasattr(value, "item") else float(value)
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
        raise InputError(f"{name}={brief(value)}; expected a whole number from 1 up.", option=name)
    return int(number)


def check_rng(rng: Any, name: str = "rng") -> int:
    """A seed: a whole number from 0 up."""
    number = as_number(rng)
    if not (0 <= number < math.inf and number == int(number)):
        raise InputError(f"{name}={brief(rng)}; expected a seed, a whole number from 0 up.", option=name)
    return int(rng)


def check_confidence(confidence: Any) -> float:
    """A probability with which something holds: from 0.5 up and below 1."""
    number = as_number(confidence)
    if not 0.5 <= number < 1:
        raise InputError(
            f"confidence={brief(confidence)}; expected a probability from 0.5 up and below 1, such as 0.95.",
            option="confidence",
        )
    return number


def check_flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}={brief(value)}; expected True or False.", option=name)
    return bool(value)


def check_progress(progress: Any) -> None:
    """Whether to show progress: always, never, or None for only on a terminal."""
    if progress is not None and not isinstance(progress, bool | np.bool_):
        raise InputError(
            f"progress={brief(progress)}; expected True, False, or None for only on a terminal.",
            option="progress",
        )


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Random numbers for one purpose.

    Samples are often made with ``default_rng(0)``. Probes from the same stream would be the samples themselves, and
    every bound rests on their being independent.
    """
    return np.random.default_rng([seed, *purpose.encode()])


_UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def byte_count(value: Any, name: str) -> int:
    """A number of bytes: a whole number, or a text such as "500 MB" or "4 GiB"."""
    number, unit = as_number(value), ""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", value)
        unit = next((u for u in _UNITS if found and u.lower() == found[2].lower()), "?")
        try:
            number = float(found[1]) if found else math.nan
        except ValueError:
            number = math.nan
    if not 1 <= number < 2**60 or unit not in _UNITS:
        raise InputError(
            f"{name}={brief(value)}; expected a number of bytes, or a text such as '4 GiB'.", option=name
        )
    return int(number * _UNITS[unit])
