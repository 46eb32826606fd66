"""Frames beyond pandas, polars and Arrow → one of these; and columns of vectors → rows.

Everything that narwhals knows (polars' LazyFrame, Modin, cuDF, DuckDB, Ibis, Dask, Spark, its own wrappers), and what
hands over Arrow data by `__arrow_c_stream__`. What an object is, is told by its class, without an import: who has such
an object has imported its library already.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np

from vendimeter.data import arrow
from vendimeter.errors import InputError
from vendimeter.optional import require

__all__ = ["is_strange_column", "is_strange_table", "known", "vectors"]

# Libraries that narwhals reads, by the module that their classes are of.
_NARWHALS = frozenset(
    [
        "modin",
        "cudf",
        "dask",
        "dask_expr",
        "duckdb",
        "_duckdb",
        "ibis",
        "pyspark",
        "sqlframe",
        "fireducks",
        "narwhals",
    ]
)
_TABLES = frozenset(["DataFrame", "LazyFrame", "DuckDBPyRelation", "Table"])
_COLUMNS = frozenset(["Series"])
# Libraries whose objects are taken as they are, or are no frames.
_NATIVE = frozenset(["pandas", "polars", "pyarrow", "numpy", "builtins"])


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def is_strange_table(value: Any) -> bool:
    """Whether this is a table of another library than pandas, polars and Arrow, or one that is still to be computed."""
    return _kind(value) == "table"


def is_strange_column(value: Any) -> bool:
    """Whether this is a column of another library than pandas, polars and Arrow."""
    return _kind(value) == "column"


def _kind(value: Any) -> str | None:
    library, bases = _library(value), type(value).__mro__
    if library in ("builtins", "numpy"):
        return None
    # A class that is made of one of pandas, as GeoPandas' are, is one of pandas.
    native = {base.__module__.partition(".")[0] for base in bases} & _NATIVE
    names = {base.__name__ for base in bases}
    if native - {"builtins"}:
        return "table" if "polars" in native and "LazyFrame" in names else None
    if library in _NARWHALS:
        return "table" if names & _TABLES else "column" if names & _COLUMNS else None
    if hasattr(value, "__narwhals_dataframe__") or hasattr(value, "__narwhals_lazyframe__"):
        return "table"
    if hasattr(value, "__narwhals_series__"):
        return "column"
    # What iterates over batches is a stream of them, and can be read only once.
    if not hasattr(value, "__arrow_c_stream__") or hasattr(value, "__next__") or isinstance(value, type):
        return None
    return "table" if _is_records(value) else "column"


def _is_records(value: Any) -> bool:
    """Whether a stream of Arrow data consists of records; only its schema is looked at."""
    pa = arrow.library()
    try:
        pa.RecordBatchReader.from_stream(value)
    except (TypeError, ValueError, pa.ArrowException):
        return False  # Arrow takes nothing but records for a stream of batches
    return True


def known(value: Any) -> Any:
    """A table or column of any library as one of pandas, polars or Arrow, computed if it is lazy; others as they are.

    Examples
    --------
    >>> import polars as pl
    >>> known(pl.LazyFrame({"a": [1, 2]}).filter(pl.col("a") > 1)).shape
    (1, 1)
    """
    kind = _kind(value)
    if kind is None:
        return value
    library = _library(value)
    by_narwhals = library == "polars" or library in _NARWHALS or not hasattr(value, "__arrow_c_stream__")
    if not by_narwhals:
        pa = arrow.library()
        return pa.table(value) if kind == "table" else pa.chunked_array(value)
    narwhals = require("narwhals", extra="frames", purpose=f"reading a {type(value).__name__} of {library}")
    try:
        # Wrappers of any version of narwhals unwrap themselves.
        frame = value if library == "narwhals" else narwhals.from_native(value, allow_series=True)
    except TypeError:
        raise InputError(
            f"samples is a {type(value).__name__} of {library}, which narwhals does not read; expected a table. Turn "
            "it into a pandas, polars or Arrow table first."
        ) from None
    if hasattr(frame, "collect"):
        frame = frame.collect()
    native = frame.to_native()
    return native if _library(native) in _NATIVE else frame.to_arrow()


# ----------------------------------------------------------------------------------------------- columns of vectors


def vectors(column: Any, kernel: str) -> np.ndarray | None:
    """A column of vectors of polars or Arrow as rows of an array, without a loop over them; None for other columns."""
    library = _library(column)
    if library == "pandas":  # whose columns may be Arrow's
        arrow_type = getattr(getattr(column, "dtype", None), "pyarrow_dtype", None)
        if arrow_type is None or not arrow.is_vectors(arrow_type):
            return None
        column = column.array.__arrow_array__()
    if library == "polars":
        return _polars_vectors(column, kernel)
    if not hasattr(column, "type") or not arrow.is_vectors(column.type):
        return None
    return arrow.column(column, lambda row, reason: _refuse(row, reason, kernel))[0]


def _refuse(row: int, reason: str, kernel: str) -> NoReturn:
    raise InputError(
        f"item {row} {reason}; {kernel} expected vectors of one length. Fill or drop it.", item=row
    )


def _polars_vectors(column: Any, kernel: str) -> np.ndarray | None:
    polars = sys.modules["polars"]
    lists = (polars.List, polars.Array)
    leaf = column.dtype
    while isinstance(leaf, lists):
        leaf = leaf.inner
    if not isinstance(column.dtype, lists) or not (leaf.is_numeric() or leaf == polars.Boolean):
        return None
    level, shape = column, []
    while isinstance(level.dtype, lists):
        per_item = len(level) // len(column)  # entries of this level an item
        _check_gaps(
            level, per_item, kernel, "is missing (null)" if not shape else "has a gap (null) in its list"
        )
        if isinstance(level.dtype, polars.Array):
            width = level.dtype.size
        else:
            lengths = level.list.len().to_numpy()
            width = int(lengths[0]) if len(lengths) else 0
            deviating = np.flatnonzero(lengths != width)
            if len(deviating):
                reason = f"has a vector of length {lengths[deviating[0]]} and item 0 has length {width}"
                _refuse(int(deviating[0]) // per_item, reason, kernel)
        shape.append(width)
        if width == 0:  # polars explodes an empty list into a gap
            return np.zeros((len(column), *shape))
        level = level.explode()
    _check_gaps(level, len(level) // len(column), kernel, "has a gap (null) in its list")
    rows = (level.cast(polars.Float64) if leaf.is_decimal() else level).to_numpy()
    return rows.reshape(len(column), *shape)


def _check_gaps(level: Any, per_item: int, kernel: str, reason: str) -> None:
    if level.null_count():
        _refuse(int(level.is_null().arg_max()) // per_item, reason, kernel)
