"""Values as JSON can write them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["plain", "plain_order"]


def plain(value: Any) -> Any:
    """A value of any kind, such as a result, a label or an array, in the types that JSON has.

    A number that is missing or infinite is None, a tuple a list, and what is no text and no number becomes text, keys
    included. A result, a score with its bounds among them, is the dictionary that it gives itself.

    Examples
    --------
    >>> plain({("cat", 1): float("nan"), 2: [{True}, b"x"]})
    {"('cat', 1)": None, '2': [[True], "b'x'"]}
    """
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    elif hasattr(value, "tolist"):  # an array, or a number of NumPy
        value = value.tolist()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    return [plain(entry) for entry in value] if isinstance(value, list | tuple) else str(value)


def plain_order(q: float) -> float | str:
    """An order as JSON can write it, where infinity is a text."""
    return "inf" if math.isinf(q) else q
