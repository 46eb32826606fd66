"""Columns of parts of files: one after another, and as what kernels take."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vendimeter.errors import InputError, brief, shape_of
from vendimeter.io.text_forms import numbers, vectors

__all__ = ["FORMS", "as_numbers", "first_text", "from_cells", "joined", "lists_of_texts", "stacked"]

Place = Callable[[int], str]
FORMS = ("numbers", "vectors")  # what cells may stand for


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


def from_cells(column: Any, name: str, place: Place, forms: Sequence[str] = FORMS) -> Any:
    """Texts as the numbers or vectors that they stand for, where all of them do; as they are otherwise."""
    found = numbers(column, name, place) if "numbers" in forms else column
    return vectors(found, name, place) if "vectors" in forms else found


def lists_of_texts(cells: Any) -> Any:
    """Cells such as ["fruity", "sweet"] as the lists that they stand for, where all of them do."""
    try:
        found = [json.loads(cell) if cell.strip() else [] for cell in cells]
    except (ValueError, RecursionError):
        return cells
    return found if all(isinstance(item, list) for item in found) else cells


def as_numbers(column: Any) -> np.ndarray | None:
    """A column of single numbers as an array; None where it is none."""
    if isinstance(column, np.ndarray):
        return column if column.ndim == 1 and column.dtype.kind in "buif" else None
    if not all(type(value) in (int, float) for value in column):
        return None
    try:
        return np.array(column, dtype=np.float64)
    except OverflowError:
        return None


def first_text(cells: Any) -> int:
    """The position of the first cell that stands for no number and no vector."""
    for i, cell in enumerate(cells):
        try:
            if not isinstance(from_cells([cell], "", str), np.ndarray):
                return i
        except ValueError:
            return i
    return 0


def stacked(columns: Mapping[str, Any], place: Place) -> np.ndarray:
    """Columns of numbers side by side, as vectors."""
    found = {name: as_numbers(column) for name, column in columns.items()}
    for name, column in columns.items():
        if found[name] is None:
            at = first_text(column) if isinstance(column, list) and isinstance(column[0], str) else 0
            raise InputError(
                f"the column {name!r} holds {brief(column[at])} ({place(at)}); expected numbers in each column of "
                "samples."
            )
    return np.column_stack([column for column in found.values() if column is not None])
