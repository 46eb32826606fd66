"""Tables as the user has them: a frame, an Arrow table, a dict of columns, a list of records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vendimeter._arrays import is_table, length
from vendimeter._suggest import unknown
from vendimeter.errors import EmptyError, InputError


def is_records(samples: Any) -> bool:
    """Whether this is a list of records (mappings from column to value)."""
    return isinstance(samples, list | tuple) and len(samples) > 0 and isinstance(samples[0], Mapping)


def has_columns(samples: Any) -> bool:
    """Whether columns can be read by name."""
    return is_table(samples) or isinstance(samples, Mapping) or is_records(samples)


def names(table: Any) -> list[Any]:
    """The names of the columns."""
    if is_records(table):
        return list(table[0])
    if isinstance(table, Mapping):
        return list(table)
    # An Arrow table has its columns under .columns and their names under .column_names.
    return list(getattr(table, "column_names", None) or table.columns)


def column(table: Any, name: Any) -> Any:
    """One column by name."""
    if not has_columns(table):
        if isinstance(table, list | tuple) and len(table) == 0:
            raise EmptyError("samples is empty; the diversity of nothing is undefined.")
        raise InputError(
            f"the kernel reads the column {name!r} and samples is a {type(table).__name__}; expected a "
            "table: a pandas, "
            "polars or Arrow table, a dict of columns, or a list of records."
        )
    if is_records(table):
        return [_field(record, name, i) for i, record in enumerate(table)]
    if name not in names(table):
        raise unknown("column", name, names(table))
    if isinstance(table, Mapping):
        length(table)  # all columns have one length, or an error that says which do not
    return table[name]


def _field(record: Any, name: Any, position: int) -> Any:
    if not isinstance(record, Mapping):
        raise InputError(
            f"item {position} is a {type(record).__name__} and item 0 a record; expected records throughout."
        )
    if name not in record:
        raise unknown(f"field (in record {position})", name, record)
    return record[name]


def records(table: Any) -> list[dict[Any, Any]]:
    """A table as a list of records, for kernels that are functions of two items."""
    if is_records(table):
        return list(table)
    columns = {name: list(column(table, name)) for name in names(table)}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
