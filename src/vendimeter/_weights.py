"""Weights (probabilities) and counts (frequencies): read, checked, normalised."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter._arrays import is_frame_column, to_numpy
from vendimeter.errors import InputError

__all__ = ["probabilities", "raw_weights"]


def raw_weights(weights: Any, counts: Any, *, dimensions: int = 1) -> tuple[np.ndarray | None, str]:
    """Whichever of the two was given, as a float64 array of finite numbers from 0 up, and its name."""
    if weights is not None and counts is not None:
        raise InputError(
            "both weights and counts were given; expected one: weights are probabilities, counts are "
            "frequencies."
        )
    name, given = ("weights", weights) if counts is None else ("counts", counts)
    if given is None:
        return None, name
    if is_frame_column(given):
        given = to_numpy(given)
    try:
        values = np.asarray(given)
        if values.dtype.kind not in "buif":
            raise ValueError
        values = values.astype(np.float64)
    except (ValueError, TypeError):
        raise InputError(f"{name}={given!r}; expected numbers, one an item.") from None
    if values.ndim == 0 or values.ndim > dimensions:
        expected = (
            "one number an item" if dimensions == 1 else "one number an item, or one row of them a group"
        )
        raise InputError(f"{name} has shape {values.shape}; expected {expected}.")
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        place = tuple(int(k) for k in np.argwhere(bad)[0])
        at = place[0] if len(place) == 1 else place
        raise InputError(f"{name}[{at}] is {values[place]:g}; expected finite numbers from 0 up.")
    if name == "counts" and (values % 1).any():
        place = tuple(int(k) for k in np.argwhere(values % 1)[0])
        at = place[0] if len(place) == 1 else place
        raise InputError(
            f"counts[{at}] is {values[place]:g}; expected whole numbers. For probabilities use weights=."
        )
    return values, name


def tolerance(given: Any) -> float:
    """How far probabilities of this dtype may sum from 1 by rounding."""
    dtype = np.asarray(given).dtype
    return {2: 1e-2, 4: 1e-4}.get(dtype.itemsize, 1e-6) if dtype.kind == "f" else 1e-6


def check_sum(total: float, given: Any, of: str = "weights") -> None:
    """Weights are probabilities and sum to 1."""
    if abs(total - 1) > tolerance(given):
        raise InputError(
            f"{of} sum to {total:.6g}; expected probabilities that sum to 1. Divide them by their sum, or "
            "pass frequencies as counts=."
        )


def probabilities(weights: Any, counts: Any, n: int) -> tuple[np.ndarray | None, int]:
    """Probabilities p (None if uniform) and the number of items they stand for."""
    values, name = raw_weights(weights, counts)
    if values is None:
        return None, n
    if len(values) != n:
        raise InputError(f"{name} has {len(values)} entries and there are {n} items; expected one an item.")
    total = float(values.sum())
    if total == 0:
        raise InputError(f"{name} are all 0; expected at least one positive entry.")
    if name == "weights":
        check_sum(total, weights)
    return values / total, n if name == "weights" else int(total)
