"""Columns of parts of files: one after another, and as what kernels take."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vendimeter._messages import brief, shape_of
from vendimeter.errors import InputError

__all__ = ["from_cells", "joined", "lists_of_texts", "stacked"]

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


def from_cells(column: Any, name: str, place: Place) -> Any:
    """Texts as the numbers or vectors that they stand for, where all of them do; as they are otherwise."""
    from vendimeter.io.text_files import numbers, vectors

    return vectors(numbers(column, name, place), name, place)


def lists_of_texts(cells: Any) -> Any:
    """Cells such as ["fruity", "sweet"] as the lists that they stand for, where all of them do."""
    try:
        found = [json.loads(cell) for cell in cells]
    except (ValueError, RecursionError):
        return cells
    return found if all(isinstance(item, list) for item in found) else cells


def stacked(columns: Mapping[str, Any], place: Place) -> np.ndarray:
    """Columns of numbers side by side, as vectors."""
    for name, column in columns.items():
        if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype.kind not in "buif":
            raise InputError(
                f"the column {name!r} holds {brief(column[0])} ({place(0)}); expected numbers in each column of "
                "samples."
            )
    return np.column_stack(list(columns.values()))
