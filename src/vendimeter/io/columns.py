"""Columns of parts of files: one after another, and as what kernels take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vendimeter._messages import brief, digits, shape_of
from vendimeter.errors import InputError

__all__ = ["as_numbers", "from_cells", "joined"]

Place = Callable[[int], str]


def joined(columns: Sequence[Any], name: str, place: Place) -> Any:
    """One column of several parts; vectors must agree in their shape."""
    if len(columns) == 1:
        return columns[0]
    if all(isinstance(column, np.ndarray) for column in columns):
        at = 0
        for column in columns:
            if column.shape[1:] != columns[0].shape[1:]:
                raise InputError(
                    f"{place(at)} has {name!r} of shape {shape_of(column.shape[1:])} and {place(0)} of shape "
                    f"{shape_of(columns[0].shape[1:])}; expected one shape throughout."
                )
            at += len(column)
        kinds = {column.dtype.kind for column in columns}
        if len(kinds) == 1 or kinds <= set("buif"):
            return np.concatenate(columns)
    return [
        value
        for column in columns
        for value in (column.tolist() if isinstance(column, np.ndarray) else column)
    ]


def as_numbers(column: Any, name: str, place: Place) -> np.ndarray:
    """A column of weights as numbers from 0 up."""
    values = np.empty(len(column))
    for i, value in enumerate(column.tolist() if isinstance(column, np.ndarray) else column):
        try:
            values[i] = float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"{place(i)} has {brief(value)} in the column {name!r} of weights; expected a number from 0 up."
            ) from None
        if not 0 <= values[i] < np.inf:
            raise InputError(
                f"{place(i)} has the weight {digits(values[i])}; expected a finite number from 0 up."
            )
    return values


def from_cells(column: Any, name: str, place: Place) -> Any:
    """Texts as the numbers or vectors that they stand for, where all of them do; as they are otherwise."""
    from vendimeter.io.text_files import numbers, vectors

    return vectors(numbers(column, name, place), name, place)
