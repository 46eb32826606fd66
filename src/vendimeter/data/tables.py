"""Tables as the user has them: a frame, an Arrow table, a dict of columns, a list of records."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from vendimeter.data.arrays import EMPTY, is_sparse, is_table, length, to_list, to_numpy
from vendimeter.data.frames import known
from vendimeter.errors import EmptyError, InputError
from vendimeter.messages import brief, unknown

__all__ = [
    "check_alignment",
    "column",
    "columns",
    "has_columns",
    "is_records",
    "labels",
    "matrix",
    "records",
    "square_matrix",
]


def is_records(samples: Any) -> bool:
    """Whether this is a list of records (mappings from column to value)."""
    return isinstance(samples, list | tuple) and len(samples) > 0 and isinstance(samples[0], Mapping)


def has_columns(samples: Any) -> bool:
    """Whether columns can be read by name."""
    # One sparse format is a dict.
    return (
        is_table(samples) or is_records(samples) or (isinstance(samples, Mapping) and not is_sparse(samples))
    )


def _column_names(table: Any) -> list[Any]:
    """The names of the columns, each once."""
    if is_records(table):
        return list(table[0])
    if isinstance(table, Mapping):
        return list(table)
    # A table of Arrow has the columns themselves under `columns`.
    is_arrow = type(table).__module__.partition(".")[0] == "pyarrow"
    names = list(table.schema.names if is_arrow else table.columns)
    has_duplicates = len(set(names)) < len(names)
    repeated = next((name for name in names if names.count(name) > 1), None) if has_duplicates else None
    if repeated is not None:
        raise InputError(
            f"the table has the column {brief(repeated)} twice; expected different names. Rename one."
        )
    return names


def column(table: Any, name: Any) -> Any:
    """One column by name."""
    table = known(table)
    if not has_columns(table):
        if isinstance(table, list | tuple) and len(table) == 0:
            raise EmptyError(EMPTY)
        raise InputError(
            f"the kernel reads the column {brief(name)} and samples is a {type(table).__name__}; expected a "
            "table: a pandas, polars or Arrow table, a dict of columns, or a list of records."
        )
    if is_records(table):
        return [_field(record, name, i) for i, record in enumerate(table)]
    names = _column_names(table)
    if not _is_among(name, names):
        raise unknown("column", name, names)
    if isinstance(table, Mapping):
        if isinstance(table[name], str | bytes):
            raise InputError(
                f"column {brief(name)} is the text {brief(table[name])}; expected one value a row, in a list."
            )
        length(table)  # all columns have one length, or an error that says which do not
    return table[name]


def labels(table: Any, by: Any) -> Any:
    """Labels of the rows of a table: the column or the combination of columns that `by` names, or `by` itself."""
    table = known(table)
    if isinstance(by, str):
        return column(table, by)
    names = _column_names(table)
    if (
        isinstance(by, list | tuple)
        and 0 < len(by) != _row_count(table)
        and all(_is_among(name, names) for name in by)
    ):
        return list(zip(*(to_list(column(table, name)) for name in by), strict=True))
    return by


def _row_count(table: Any) -> int:
    return length(table) if isinstance(table, Mapping) else len(table)


def _is_among(name: Any, names: list[Any]) -> bool:
    try:
        return name in names
    except TypeError:
        return False


def _field(record: Any, name: Any, position: int) -> Any:
    if not isinstance(record, Mapping):
        raise InputError(
            f"item {position} is a {type(record).__name__} and item 0 a record; expected records throughout.",
            item=position,
        )
    if name not in record:
        raise unknown(f"field (in record {position})", name, record)
    return record[name]


def check_alignment(samples: Any, other: Any, what: str, *, by_column: bool = False) -> None:
    """Labels of pandas objects on both sides must agree: positions would silently pair what belongs apart."""
    if not (_is_pandas(samples) and _is_pandas(other)):
        return
    mine, theirs = samples.index, other.columns if by_column else other.index
    if len(mine) == len(theirs) and not mine.equals(theirs) and set(mine) == set(theirs):
        axis = "columns" if by_column else "index"
        raise InputError(
            f"the {axis} of {what} and the index of samples hold the same labels in another order; expected "
            "one order. Put them in order first, with "
            f"{'reindex(columns=samples.index)' if by_column else 'reindex(samples.index)'}, or pass plain "
            "arrays.",
            option=what,
        )


def _is_pandas(value: Any) -> bool:
    pandas = sys.modules.get("pandas")  # classes made of its own, as GeoPandas', are among them
    return pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series)


def columns(table: Any) -> dict[Any, list[Any]]:
    """All columns as lists of plain values; records must agree in their fields."""
    table = known(table)
    names = _column_names(table)
    if is_records(table):
        for i, record in enumerate(table):
            extra = [name for name in record if name not in table[0]] if isinstance(record, Mapping) else []
            if extra:
                raise InputError(
                    f"record {i} has the field {brief(extra[0])}, which record 0 has not; expected the same "
                    "fields throughout."
                )
    values_by_name = {name: to_list(column(table, name)) for name in names}
    if not values_by_name or not len(next(iter(values_by_name.values()))):
        raise EmptyError(EMPTY)
    return values_by_name


def records(table: Any) -> list[dict[Any, Any]]:
    """A table as a list of records, for kernels that are functions of two items."""
    if is_records(table):
        return list(table)
    values_by_name = columns(table)
    rows = zip(*values_by_name.values(), strict=True)
    return [dict(zip(values_by_name, row, strict=True)) for row in rows]


def square_matrix(table: Any) -> np.ndarray:
    """A frame or Arrow table of similarities or distances as an array; its labels must be in one order."""
    table = known(table)
    if _is_pandas(table) and not table.columns.equals(table.index) and set(table.columns) == set(table.index):
        raise InputError(
            "the index and the columns of the matrix hold the same labels in another order; expected one order. Use "
            "frame.reindex(columns=frame.index)."
        )
    return matrix(table)


def matrix(table: Any) -> np.ndarray:
    """A frame or Arrow table of numbers as an array."""
    table = known(table)
    arrays = [to_numpy(column(table, name)) for name in _column_names(table)]
    if not arrays:
        raise EmptyError(EMPTY)
    return np.column_stack(arrays)
