"""Weights (probabilities) and counts (frequencies): read, checked, normalised."""

from __future__ import annotations

import math
from collections.abc import ValuesView
from typing import Any

import numpy as np

from vendimeter.data.arrays import is_frame_column, is_sparse, is_table, refuse_masked, to_numpy, unwrapped
from vendimeter.data.devices import is_foreign, local, numpy_dtype, to_host
from vendimeter.data.tables import matrix
from vendimeter.errors import InputError
from vendimeter.messages import brief, shape_of
from vendimeter.present.numbers import digits

__all__ = ["Weights", "check_sum", "probabilities", "raw_weights"]


class Weights:
    """Weights or counts as given: finite float64 numbers from 0 up, the name of the option, and its precision.

    Attributes
    ----------
    values : ndarray
        One number an item, or one row of them a group.
    name : str
        "weights" or "counts".
    tolerance : float
        How far probabilities of the given dtype may sum from 1 by rounding.
    """

    def __init__(self, values: np.ndarray, name: str, tolerance: float):
        self.values, self.name, self.tolerance = values, name, tolerance

    def part(self, positions: np.ndarray) -> Weights:
        """Those of the items at these positions."""
        return Weights(self.values[positions], self.name, self.tolerance)

    def size(self) -> int:
        """How many items they stand for."""
        return int(self.values.sum()) if self.name == "counts" else len(self.values)


def raw_weights(weights: Any, counts: Any, *, dimensions: int = 1) -> Weights | None:
    """Whichever of the two was given, checked entry by entry."""
    if weights is not None and counts is not None:
        raise InputError(
            "both weights and counts were given; expected one: weights are probabilities, counts are "
            "frequencies.",
            option="weights",
        )
    name, numbers = ("weights", weights) if counts is None else ("counts", counts)
    if numbers is None:
        return None
    refuse_masked(numbers, name, option=name)
    expected = (
        "numbers, one an item" if dimensions == 1 else "numbers, one an item or one row of them a group"
    )
    if is_frame_column(numbers):
        numbers = to_numpy(numbers)
    elif is_table(numbers):
        numbers = matrix(numbers)
    if isinstance(numbers, ValuesView):  # of a Counter, say
        numbers = list(numbers)
    numbers = unwrapped(numbers)
    # Before NumPy sees it, which lacks bfloat16 and shorter.
    dtype = numpy_dtype(numbers) if is_foreign(numbers) else None
    numbers = to_host(local(numbers)) if is_foreign(numbers) else numbers
    try:
        array = np.asarray(numbers)
    except ValueError:
        array = np.array(None)
    if is_sparse(numbers) or array.dtype.kind not in "buif":
        raise InputError(f"{name}={brief(numbers)}; expected {expected}, in an array or list.", option=name)
    if array.ndim == 0 or array.ndim > dimensions:
        raise InputError(f"{name} has shape {shape_of(array.shape)}; expected {expected}.", option=name)
    values = array.astype(np.float64)
    _check_entries(values, ~(np.isfinite(values) & (values >= 0)), name, "finite numbers from 0 up.")
    if name == "counts":
        _check_entries(values, values % 1 != 0, name, "whole numbers. For probabilities use weights=.")
    if float(values.max(initial=0.0)) > 1e300:
        raise InputError(
            f"{name} go up to {values.max():g}, and their sum cannot be represented; expected smaller ones.",
            option=name,
        )
    dtype = dtype or array.dtype
    tolerance = {2: 1e-2, 4: 1e-4}.get(dtype.itemsize, 1e-6) if dtype.kind == "f" else 1e-6
    return Weights(values, name, tolerance)


def _check_entries(values: np.ndarray, bad: np.ndarray, name: str, expected: str) -> None:
    if bad.any():
        position = tuple(int(k) for k in np.argwhere(bad)[0])
        indices = ", ".join(map(str, position))
        raise InputError(f"{name}[{indices}] is {digits(values[position])}; expected {expected}", option=name)


def check_sum(total: float, weights: Weights, of: str = "weights") -> None:
    """Weights are probabilities and sum to 1."""
    if not math.isclose(total, 1, rel_tol=0, abs_tol=weights.tolerance):
        raise InputError(
            f"{of} sum to {digits(total)}; expected probabilities that sum to 1. Divide them by their sum, "
            "or pass frequencies as counts=, where that is taken.",
            option=weights.name,
        )


def probabilities(weights: Any, counts: Any, n: int) -> tuple[np.ndarray | None, int]:
    """Probabilities p (None if uniform) and the number of items they stand for."""
    checked = raw_weights(weights, counts)
    if checked is None:
        return None, n
    values, name = checked.values, checked.name
    if len(values) != n:
        raise InputError(
            f"{name} has {len(values)} entries and there are {n} items; expected one an item.", option=name
        )
    total = float(values.sum())
    if total == 0:
        raise InputError(f"{name} are all 0; expected at least one positive entry.", option=name)
    if name == "weights":
        check_sum(total, checked)
    return values / total, n if name == "weights" else int(total)
