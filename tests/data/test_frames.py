"""Frames of every library and columns of vectors go into the same calls, and give what a NumPy array gives."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.data import frames
from vendimeter.data.arrays import as_rows, is_frame_column, is_table
from vendimeter.errors import EmptyError, InputError, MissingDependencyError
from vendimeter.kernels import RBF, Cosine, Match, On

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
nw = pytest.importorskip("narwhals")

X = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
GROUP = ["a", "b"] * 20
TABLE = pa.table(
    {"vector": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4), "group": GROUP, "x": X[:, 0]}
)


class Capsule:
    """An object of some library that hands over Arrow data, and can do nothing else."""

    def __init__(self, held: Any):
        self._held = held

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._held.__arrow_c_stream__(requested_schema)


# ------------------------------------------------------------------------------------------------------------- tables


TABLES: dict[str, Callable[[Any], Any]] = {
    "Arrow table": lambda table: table,
    "Arrow record batch": lambda table: pa.record_batch(
        [column.combine_chunks() for column in table.columns], schema=table.schema
    ),
    "pandas": lambda table: table.to_pandas(),
    "pandas, with Arrow's types": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars, lazy": lambda table: pl.from_arrow(table).lazy(),
    "polars, a query": lambda table: pl.from_arrow(table).lazy().with_columns(y=pl.lit(2)).drop("y"),
    "narwhals of pandas": lambda table: nw.from_native(table.to_pandas()),
    "narwhals of polars": lambda table: nw.from_native(pl.from_arrow(table)),
    "narwhals of Arrow": lambda table: nw.from_native(table),
    "narwhals, lazy": lambda table: nw.from_native(pl.from_arrow(table).lazy()),
    "narwhals' stable version, lazy": lambda table: _stable(pl.from_arrow(table).lazy()),
    "a capsule": Capsule,
    "DuckDB": lambda table: pytest.importorskip("duckdb").from_arrow(table),
    "Dask": lambda table: pytest.importorskip("dask.dataframe").from_pandas(table.to_pandas(), npartitions=2),
    "Modin": lambda table: pytest.importorskip("modin.pandas").DataFrame(table.to_pandas()),
    "Ibis": lambda table: pytest.importorskip("ibis").memtable(table),
}


def _stable(frame: Any) -> Any:
    from narwhals.stable import v1

    return v1.from_native(frame)


@pytest.mark.parametrize("library", TABLES)
def test_tables_of_every_library(library: str) -> None:
    table = TABLES[library](TABLE)
    assert is_table(table)
    assert not is_frame_column(table)
    kernel = 0.5 * On("vector", Cosine()) + 0.5 * On("group", Match())
    records = {"vector": X, "group": GROUP}
    assert float(vm.score(table, kernel)) == pytest.approx(float(vm.score(records, kernel)), rel=1e-12)
    assert float(vm.score(table, On("x", RBF(1.0)))) == float(vm.score(X[:, 0], RBF(1.0)))
    groups = vm.score_groups(table, On("vector", Cosine()), by="group")
    expected = vm.score_groups(X, by=GROUP)
    assert groups.labels == expected.labels
    np.testing.assert_allclose(groups.scores, expected.scores, rtol=1e-12)
    total = vm.Accumulator(On("vector", Cosine()))
    total.update(table)
    assert float(total.score()) == pytest.approx(float(vm.score(X)), rel=1e-10)
    assert vm.score(table, lambda a, b: float(a["group"] == b["group"])) == pytest.approx(2)


@pytest.mark.parametrize("library", TABLES)
def test_matrices_and_weights_in_tables_of_every_library(library: str) -> None:
    similar = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    table = TABLES[library](pa.table({name: similar[:, i] for i, name in enumerate("abc")}))
    assert float(vm.score(table, "precomputed")) == float(vm.score(similar, "precomputed"))
    sites = TABLES[library](pa.table({"a": [0.5, 1.0], "b": [0.5, 0.0], "c": [0.0, 0.0]}))
    found = vm.score_groups(similar, "precomputed", weights=sites)
    expected = vm.score_groups(similar, "precomputed", weights=np.array([[0.5, 0.5, 0], [1, 0, 0]]))
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-12)


@pytest.mark.parametrize("library", TABLES)
def test_mistakes_with_tables_of_every_library(library: str) -> None:
    table = TABLES[library](TABLE)
    with pytest.raises(InputError, match=r"no column 'vectr'.*Did you mean 'vector'"):
        vm.score(table, On("vectr", Cosine()))
    with pytest.raises(InputError, match="which column"):
        vm.score(table)
    with pytest.raises(EmptyError):
        vm.score(TABLES[library](TABLE.slice(0, 0)), On("vector", Cosine()))


def test_known_frames_are_left_as_they_are() -> None:
    for frame in (
        TABLE,
        TABLE.to_pandas(),
        pl.from_arrow(TABLE),
        X,
        [1, 2],
        {"a": 1},
        "text",
        None,
        TABLE["x"],
    ):
        assert frames.known(frame) is frame


def test_a_class_made_of_pandas_own_is_one_of_pandas() -> None:
    class Frame(pd.DataFrame):
        pass

    frame = Frame({"a": ["x", "y", "y"]}, index=[5, 6, 7])
    assert frames.known(frame) is frame
    weights = pd.Series([0.5, 0.25, 0.25], index=[7, 6, 5])
    with pytest.raises(InputError, match="another order"):  # its index counts, as that of pandas' own does
        vm.score(frame, On("a", Match()), weights=weights)


def test_a_stream_of_batches_is_no_table() -> None:
    """It can be read once, by those who take batches."""
    reader = TABLE.to_reader()
    assert not is_table(reader)
    assert not is_frame_column(reader)
    assert reader.read_all().num_rows == 40


def test_narwhals_is_asked_for_only_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import sys, polars, pandas, pyarrow, vendimeter as vm; from vendimeter.kernels import *; "
        "kinds = pandas.DataFrame, polars.DataFrame, pyarrow.table; "
        "[vm.score(kind({'a': ['x', 'y']}), On('a', Match())) for kind in kinds]; "
        "print('narwhals' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(
        MissingDependencyError, match=r"LazyFrame of polars needs the library 'narwhals'.*\[frames\]"
    ):
        vm.score(pl.LazyFrame({"a": ["x", "y"]}), On("a", Match()))


# --------------------------------------------------------------------------------------------------- columns of vectors


def arrow_lists(rows: np.ndarray, kind: Any) -> Any:
    flat = pa.array(rows.ravel())
    ends = np.arange(0, rows.size + 1, rows.shape[1])
    return kind.from_arrays(pa.array(ends, pa.int64() if kind is pa.LargeListArray else pa.int32()), flat)


VECTORS: dict[str, Callable[[np.ndarray], Any]] = {
    "pandas, arrays": lambda rows: pd.Series(list(rows)),
    "pandas, Arrow lists": lambda rows: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.chunked_array([arrow_lists(rows, pa.ListArray)]))
    ),
    "polars, lists": lambda rows: pl.Series(list(rows)),
    "polars, arrays": lambda rows: pl.Series(rows),
    "Arrow, fixed lists": lambda rows: pa.FixedSizeListArray.from_arrays(
        pa.array(rows.ravel()), rows.shape[1]
    ),
    "Arrow, lists": lambda rows: arrow_lists(rows, pa.ListArray),
    "Arrow, large lists": lambda rows: arrow_lists(rows, pa.LargeListArray),
    "Arrow, in chunks": lambda rows: pa.chunked_array(
        [arrow_lists(rows[:7], pa.ListArray), arrow_lists(rows[7:], pa.ListArray)]
    ),
    "narwhals of polars": lambda rows: nw.from_native(pl.Series(list(rows)), series_only=True),
    "narwhals of pandas": lambda rows: nw.from_native(pd.Series(list(rows)), series_only=True),
    "a capsule": lambda rows: Capsule(pa.chunked_array([arrow_lists(rows, pa.ListArray)])),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8])
@pytest.mark.parametrize("library", VECTORS)
def test_columns_of_vectors_keep_their_dtype(library: str, dtype: Any) -> None:
    rows = (np.abs(X) * 20 + 1).astype(dtype)
    column = VECTORS[library](rows)
    assert is_frame_column(column)
    found = as_rows(column, kernel="the kernel")
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, rows)
    assert float(vm.score(column)) == float(vm.score(rows))


@pytest.mark.parametrize("library", [name for name in VECTORS if name.startswith(("pandas", "Arrow"))])
def test_half_precision_is_kept(library: str) -> None:
    rows = X.astype(np.float16)
    found = as_rows(VECTORS[library](rows), kernel="the kernel")
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, rows)


def test_lists_of_python_numbers_in_pandas() -> None:
    assert float(vm.score(pd.Series(X.tolist()))) == float(vm.score(X.astype(np.float64)))
    frame = pd.DataFrame({"e": X.tolist()}, index=np.arange(40)[::-1])
    assert float(vm.score(frame, On("e", Cosine()))) == float(vm.score(X.astype(np.float64)))


def test_arrow_and_polars_are_not_looped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """No vector becomes an object of its own."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a vector was looked at by itself")

    monkeypatch.setattr("vendimeter.data.arrays._stack", refuse)
    for library in VECTORS:
        if library not in ("pandas, arrays", "narwhals of pandas"):
            np.testing.assert_array_equal(as_rows(VECTORS[library](X), kernel="k"), X)
    flat = pa.array(X.ravel())
    assert np.shares_memory(as_rows(pa.FixedSizeListArray.from_arrays(flat, 4), kernel="k"), flat.to_numpy())


LISTS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": lambda lists: pd.Series([None if v is None else v for v in lists], dtype=object),
    "pandas, Arrow": lambda lists: pd.Series(lists, dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
    "polars": lambda lists: pl.Series(lists, dtype=pl.List(pl.Float64)),
    "Arrow": lambda lists: pa.array(lists, pa.list_(pa.float64())),
    "Arrow, in chunks": lambda lists: pa.chunked_array([lists[:2], lists[2:]], pa.list_(pa.float64())),
    "a capsule": lambda lists: Capsule(pa.chunked_array([lists], pa.list_(pa.float64()))),
}
BAD: dict[str, tuple[list[Any], str]] = {
    "a missing vector": ([[1, 0], [0, 1], [1, 1], None], r"item 3 is missing"),
    "a gap in a vector": ([[1, 0], [0, 1], [None, 1], [1, 1]], r"item 2 (has a gap|holds None)"),
    "a short vector": ([[1, 0], [0, 1], [1], [1, 1]], r"item 2 has .*(length 1|\(1,\))"),
    "a long vector": ([[1, 0], [0, 1], [1, 1], [1, 2, 3]], r"item 3 has .*(length 3|\(3,\))"),
    "an empty vector": ([[1, 0], [], [1, 1], [1, 2]], r"item 1 has .*(length 0|\(0,\))"),
    "empty vectors": ([[], [], []], r"no columns"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("library", LISTS)
def test_gaps_and_ragged_vectors_are_named_by_item(library: str, case: str) -> None:
    lists, message = BAD[case]
    with pytest.raises(InputError, match=message):
        vm.score(LISTS[library](lists))


def test_gaps_in_arrays_of_polars_and_in_matrices() -> None:
    with pytest.raises(InputError, match="item 1 is missing"):
        vm.score(pl.Series([[1, 2], None, [3, 4]], dtype=pl.Array(pl.Float32, 2)))
    with pytest.raises(InputError, match="item 2 has a gap"):
        vm.score(pl.Series([[1, 2], [3, 4], [None, 4]], dtype=pl.Array(pl.Float32, 2)))
    nested = pl.List(pl.List(pl.Int64))
    with pytest.raises(InputError, match="item 1 has a vector of length 1"):
        vm.score(pl.Series([[[1, 2], [3, 4]], [[1, 2], [3]]], dtype=nested))
    with pytest.raises(InputError, match=r"shape \(2, 2, 2\).*reshape"):
        vm.score(pl.Series([[[1, 2], [3, 4]], [[1, 2], [3, 5]]], dtype=nested))


def test_columns_of_lists_of_texts_are_no_vectors() -> None:
    for column in (pl.Series([["a"], ["b", "c"]]), pa.array([["a"], ["b", "c"]])):
        with pytest.raises(InputError, match=r"item 0|dtype|strings"):
            vm.score(column)
