"""Parquet and Arrow files and Hugging Face's folders: what is read, what is broken, and what is refused."""

from __future__ import annotations

import datetime
import decimal
import gzip
import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.data import arrow as arrow_module
from vendimeter.data.collection import Broken
from vendimeter.errors import EmptyError, InputError
from vendimeter.io import packed_batches
from vendimeter.io.arrow import Arrow, HuggingFace, Parquet
from vendimeter.io.base import Reader
from vendimeter.io.sources import MAX_RECORD, File

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ipc = pytest.importorskip("pyarrow.ipc")

X = np.random.default_rng(0).standard_normal((30, 4))


# ------------------------------------------------------------------------------------------------------------- helpers


def write_parquet(table: Any, path: Path) -> Reader:
    pq.write_table(table, path, row_group_size=7)
    return Parquet(File.of(path), Broken())


def write_file(table: Any, path: Path, compression: str | None = None) -> Reader:
    with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=7)
    return Arrow(File.of(path), Broken())


def write_stream(table: Any, path: Path) -> Reader:
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    return Arrow(File.of(path), Broken())


WRITERS: dict[str, Callable[[Any, Path], Reader]] = {
    "parquet": write_parquet,
    "arrow file": write_file,
    "packed arrow file": lambda table, path: write_file(table, path, "zstd"),
    "arrow stream": write_stream,
}


@pytest.fixture(params=WRITERS)
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Any], Reader]:
    return lambda table: WRITERS[request.param](table, tmp_path / "data.x")


def joined(reader: Reader, columns: list[str] | None = None, size: int = 5) -> dict[str, Any]:
    """All columns, from parts that must not be too long, and as arrays where the parts are."""
    parts = list(reader.parts(columns, size))
    assert all(0 < len(column) <= size for part in parts for column in part.columns.values())
    found: dict[str, Any] = {}
    for name in parts[0].columns:
        held = [part.columns[name] for part in parts]
        arrays = isinstance(held[0], np.ndarray)
        found[name] = np.concatenate(held) if arrays else [value for one in held for value in one]
    return found


# ------------------------------------------------------------------------------------------------------- what is read


PLAIN: dict[str, tuple[Any, list[Any]]] = {
    "texts": (pa.string(), ["a", "é", "日本", ""]),
    "large texts": (pa.large_string(), ["a", "b", "a", "c"]),
    "views of texts": (pa.string_view(), ["a", "a text that is longer than twelve bytes", "", "b"]),
    "bytes": (pa.binary(), [b"a", b"\xff\0", b"", b"c"]),
    "a dictionary": (pa.dictionary(pa.int8(), pa.string()), ["x", "y", "x", "x"]),
    "lists of texts": (pa.list_(pa.string()), [["yes", "no"], [], ["maybe"], ["a", "b", "c"]]),
    "lists of lists of texts": (pa.list_(pa.list_(pa.string())), [[["a"], ["b"]], [[]], [], [["c"]]]),
    "pictures": (
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        [{"bytes": b"1", "path": None}, {"bytes": b"", "path": "/etc/passwd"}, {"bytes": b"2", "path": "b"}],
    ),
}


@pytest.mark.parametrize("case", PLAIN)
def test_values_come_as_plain_lists(write: Callable[[Any], Reader], case: str) -> None:
    kind, values = PLAIN[case]
    assert joined(write(pa.table({"c": pa.array(values, kind)})))["c"] == values


D = decimal.Decimal
UTC = datetime.UTC
CONVERTED: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "decimals": (pa.decimal128(9, 2), [D("1.10"), D("-2.25")], [1.1, -2.25]),
    "whole decimals": (pa.decimal128(18, 0), [D(10**17 + 1), D(3)], [10**17 + 1, 3]),
    "moments": (pa.timestamp("ms"), [datetime.datetime(2024, 2, 29, 12, 30)], ["2024-02-29T12:30:00.000"]),
    "moments to the nanosecond": (pa.timestamp("ns"), [1], ["1970-01-01T00:00:00.000000001"]),
    "moments of a zone": (
        pa.timestamp("ms", tz="Europe/Paris"),
        [datetime.datetime(2024, 1, 1, 12, tzinfo=UTC)],
        ["2024-01-01T12:00:00.000Z"],
    ),
    "dates": (pa.date32(), [datetime.date(2024, 2, 29)], ["2024-02-29"]),
    "times": (pa.time32("ms"), [datetime.time(1, 2, 3)], ["01:02:03.000"]),
    "durations": (pa.duration("s"), [datetime.timedelta(minutes=2)], [120]),
}  # fmt: skip


@pytest.mark.parametrize("case", CONVERTED)
def test_decimals_are_numbers_and_moments_texts_in_iso_form(tmp_path: Path, case: str) -> None:
    kind, values, expected = CONVERTED[case]
    table = pa.table({"c": pa.array(values, kind)})
    for name, writer in WRITERS.items():
        found = joined(writer(table, tmp_path / "data.x"))["c"]
        assert list(found) == expected, name


NUMBERS = [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int16, np.int64, np.uint64, np.bool_]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_and_vectors_keep_their_dtype(write: Callable[[Any], Reader], dtype: Any) -> None:
    rows = (10 * X).astype(dtype)
    flat = pa.array(rows.ravel())
    ends = np.arange(0, rows.size + 1, 4)
    pairs = pa.ListArray.from_arrays(pa.array(np.arange(0, rows.size + 1, 2), pa.int32()), flat)
    table = pa.table(
        {
            "fixed": pa.FixedSizeListArray.from_arrays(flat, 4),
            "list": pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat),
            "large": pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), flat),
            "nested": pa.FixedSizeListArray.from_arrays(pairs, 2),
            "number": rows[:, 0],
        }
    )
    found = joined(write(table))
    for name, expected in {
        "fixed": rows, "list": rows, "large": rows, "nested": rows.reshape(-1, 2, 2), "number": rows[:, 0],
    }.items():  # fmt: skip
        assert found[name].dtype == dtype
        np.testing.assert_array_equal(found[name], expected)


def test_vectors_are_not_copied() -> None:
    flat = pa.array(np.arange(40, dtype=np.float16))
    for array in (
        pa.FixedSizeListArray.from_arrays(flat, 4),
        pa.ListArray.from_arrays(pa.array(np.arange(0, 41, 4), pa.int32()), flat),
    ):
        rows, kept = arrow_module.column(array.slice(3), lambda row, reason: pytest.fail(reason))
        assert kept is None
        assert np.shares_memory(rows, flat.to_numpy())
        np.testing.assert_array_equal(rows, np.arange(40).reshape(10, 4)[3:])


def test_names_and_places_and_columns_that_are_asked_for(write: Callable[[Any], Reader]) -> None:
    table = pa.table({"a": list(range(20)), "b": [f"t{i}" for i in range(20)], "a.b": X[:20, 0]})
    reader = write(table)
    assert reader.names() == ["a", "b", "a.b"]
    parts = list(reader.parts(["b", "a.b"], 6))
    assert [list(part.columns) for part in parts] == [["b", "a.b"]] * len(parts)
    texts = [text for part in parts for text in part.columns["b"]]
    assert texts == [f"t{i}" for i in range(20)]
    for part in parts:
        for i, text in enumerate(part.columns["b"]):
            assert part.place(i).startswith(f"row {text[1:]} of '")


@pytest.mark.parametrize("form", ["parquet", "packed arrow file"])
def test_only_the_columns_that_are_asked_for_are_decoded(tmp_path: Path, form: str) -> None:
    table = pa.table({"good": np.arange(500), "bad": np.random.default_rng(1).integers(0, 2**60, 500)})
    path = tmp_path / "data.x"
    if form == "parquet":
        pq.write_table(table, path, use_dictionary=False, compression="none", write_page_checksum=True)
    else:
        with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
    data = bytearray(path.read_bytes())
    mark = table["bad"].chunk(0).buffers()[1].to_pybytes()[800:840]
    if form == "parquet":
        at = data.index(mark)
        data[at : at + 8] = b"\xff" * 8
    else:
        spot = data.rindex(b"\x28\xb5\x2f\xfd")  # the frame of the second column
        data[spot : spot + 4] = b"\0\0\0\0"
    path.write_bytes(data)
    make = Parquet if form == "parquet" else Arrow
    found = joined(make(File.of(path), Broken()), ["good"], 100)
    np.testing.assert_array_equal(found["good"], np.arange(500))
    with pytest.raises(InputError, match=r"damaged or was cut short"):
        list(make(File.of(path), Broken()).parts(["bad"], 100))


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """Two shards of 500,000 × 64 numbers of float32, each one row group of 128 MB."""
    rows = np.random.default_rng(0).standard_normal((500_000, 64), dtype=np.float32)
    table = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 64)})
    for i in range(2):
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=len(rows), use_dictionary=False)
    script = """
import resource, sys
import numpy as np, pyarrow.parquet
from vendimeter.io.arrow import Parquet
from vendimeter.data.collection import Broken
from vendimeter.io.sources import File
before, total, n = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0.0, 0
for path in sys.argv[1:]:
    for part in Parquet(File.of(path), Broken()).parts(["v"], 8192):
        total += float(part.columns["v"].sum(dtype=np.float64))
        n += len(part.columns["v"])
print(n, total, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    shards = [str(tmp_path / f"{i}.parquet") for i in range(2)]
    done = subprocess.run([sys.executable, "-c", script, *shards], capture_output=True, text=True, check=True)
    n, total, grown = done.stdout.split()
    assert int(n) == 1_000_000
    assert float(total) == pytest.approx(2 * rows.sum(dtype=np.float64), rel=1e-9)
    if sys.platform == "linux":  # elsewhere ru_maxrss is in other units
        assert float(grown) < 125


def test_a_repeated_text_takes_the_memory_of_one(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": ["x" * 1000] * 5000 + ["y"]}), path)
    part = next(Parquet(File.of(path), Broken()).parts(["t"], 10_000))
    assert len(part.columns["t"]) == 5001
    assert part.columns["t"][0] is part.columns["t"][4999]
    assert part.columns["t"][5000] == "y"


def test_streams_come_through_a_pipe_and_gzipped(tmp_path: Path) -> None:
    table = pa.table({"v": list(X), "t": [str(i) for i in range(30)]})
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=8)
    reader = Arrow(File(None, ".arrow", io.BytesIO(sink.getvalue())), Broken())
    assert reader.names() == ["v", "t"]
    np.testing.assert_array_equal(joined(reader, ["v"])["v"], X)
    path = tmp_path / "a.arrow.gz"
    path.write_bytes(gzip.compress(sink.getvalue()))
    assert joined(Arrow(File.of(path), Broken()), ["t"])["t"] == [str(i) for i in range(30)]


def test_files_without_rows_and_without_bytes(tmp_path: Path) -> None:
    for name, writer in WRITERS.items():
        reader = writer(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "a")
        assert (reader.names(), list(reader.parts(None, 10))) == (["a"], []), name
    (tmp_path / "b").write_bytes(b"")
    for make in (Parquet, Arrow):
        assert make(File.of(tmp_path / "b"), Broken()).names() == []
        assert list(make(File.of(tmp_path / "b"), Broken()).parts(None, 10)) == []


def test_real_embeddings_survive_a_file(tmp_path: Path, shared_data: Path) -> None:
    rows = np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz")["emb"][:300]
    pq.write_table(
        pa.table({"e": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])}),
        tmp_path / "e.parquet",
    )
    found = joined(Parquet(File.of(tmp_path / "e.parquet"), Broken()), size=64)["e"]
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, rows)
    assert float(vm.score(found)) == float(vm.score(rows))


# ------------------------------------------------------------------------------------------------------ broken records


BROKEN: dict[str, tuple[Any, list[Any], dict[int, str]]] = {
    "a missing text": (pa.string(), ["a", None, "b"], {1: "missing"}),
    "a missing number": (pa.float64(), [1.0, 2.0, None], {2: "missing"}),
    "a missing entry of a dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", None, "a"], {1: "missing"}),
    "a missing vector": (pa.list_(pa.float32(), 2), [[1, 2], None, [3, 4]], {1: "missing"}),
    "a gap in a vector": (pa.list_(pa.float32()), [[1, 2], [None, 1], [3, 4]], {1: "gap"}),
    "a gap in a fixed vector": (pa.list_(pa.int64(), 2), [[1, 2], [3, 4], [1, None]], {2: "gap"}),
    "ragged vectors": (
        pa.list_(pa.float64()), [[1, 2], [1], [3, 4], [], [1, 2, 3]],
        {1: "length 1 and the first has length 2", 3: "length 0", 4: "length 3"},
    ),
    "ragged matrices": (
        pa.list_(pa.list_(pa.int8())), [[[1, 2], [3, 4]], [[1, 2]], [[1, 2], [3]], [[1, 2], None], [[5, 6], [7, 8]]],
        {1: "length 1 in it", 2: "shape (2, 2)", 3: "gap"},
    ),
    "a gap in a list of texts": (pa.list_(pa.string()), [["a"], ["b", None], ["c"]], {1: "gap"}),
    "a missing picture": (
        pa.struct([("bytes", pa.binary())]), [{"bytes": b"1"}, None, {"bytes": None}],
        {1: "missing", 2: "neither bytes nor a path"},
    ),
    "a path of a picture out of the folder": (
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        [{"bytes": b"1", "path": None}, {"bytes": None, "path": "/etc/passwd"}, {"bytes": None, "path": "../a.png"},
         {"bytes": b"2", "path": "x"}, {"bytes": None, "path": "none.png"}, {"bytes": None, "path": "a\0b"}],
        {1: "leads out of its folder: '/etc/passwd'", 2: "out of its folder", 4: "there is no file", 5: "no file"},
    ),
    "a path that is called bytes": (
        pa.struct([("bytes", pa.string()), ("path", pa.string())]),
        [{"bytes": "/etc/passwd", "path": None}, {"bytes": "/etc/passwd", "path": "/etc/hosts"}],
        {0: "neither bytes nor a path", 1: "/etc/hosts"},
    ),
    "a path that stands alone": (
        pa.struct([("path", pa.dictionary(pa.int8(), pa.string()))]), [{"path": "/etc/passwd"}],
        {0: "out of its folder"},
    ),
    "nothing but gaps": (pa.string(), [None, None], {0: "missing", 1: "missing"}),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_records_are_named_by_their_row_or_left_out(tmp_path: Path, case: str) -> None:
    kind, values, expected = BROKEN[case]
    table = pa.table({"c": pa.array(values, kind), "n": list(range(len(values)))})
    for name, writer in WRITERS.items():
        reader = writer(table, tmp_path / "data.x")
        first = min(expected)
        with pytest.raises(InputError) as caught:
            list(reader.parts(["c"], 10))
        for word in (f"row {first} of", "'c'", expected[first], "skip_broken"):
            assert word in str(caught.value), name
        reader.broken = broken = Broken(skip=True)
        parts = list(type(reader)(reader.file, broken).parts(None, 2))
        kept = [n for part in parts for n in part.columns["n"].tolist()]
        assert kept == [i for i in range(len(values)) if i not in expected], name
        assert [place.split(" of ")[0] for place, _ in broken.records] == [
            f"row {row}" for row in expected
        ], name
        for (_, reason), word in zip(broken.records, expected.values(), strict=True):
            assert word in reason, name
        found = [value for part in parts for value in part.columns["c"]]
        sound = [value for i, value in enumerate(values) if i not in expected]
        assert [np.asarray(v).tolist() if isinstance(v, np.ndarray) else v for v in found] == sound, name
        # A column that is not asked for may have gaps.
        assert len(joined(type(reader)(reader.file, Broken()), ["n"])["n"]) == len(values), name


def test_texts_that_are_no_utf8_are_broken_records(tmp_path: Path) -> None:
    texts = pa.array([b"good", b"\xff\xfe", b"fine"]).view(pa.string())
    for name, writer in WRITERS.items():
        reader = writer(pa.table({"t": texts}), tmp_path / "data.x")
        with pytest.raises(InputError, match=r"row 1 of .* not UTF-8"):
            list(reader.parts(None, 10))
        broken = Broken(skip=True)
        assert joined(type(reader)(reader.file, broken))["t"] == ["good", "fine"], name
        assert broken.count == 1


PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def test_a_picture_beside_the_file_is_given_by_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    (folder / "in").mkdir(parents=True)
    for path in (folder / "in" / "a.png", tmp_path / "secret.png"):
        path.write_bytes(b"")
    (folder / "link.png").symlink_to(folder / "in" / "a.png")
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "circle.png").symlink_to(folder / "circle.png")
    good = ["in/a.png", "in/../in/a.png", "link.png", str(folder / "in" / "a.png")]
    bad = ["out.png", "circle.png", "../secret.png", "in", str(tmp_path / "secret.png")]
    records = [{"bytes": b"x", "path": "secret"}, *({"bytes": None, "path": path} for path in good + bad)]
    table = pa.table({"c": pa.array(records, PICTURE)})
    expected = [records[0], *(folder / path for path in good)]
    for name, writer in WRITERS.items():
        reader = writer(table, folder / "data.x")
        broken = Broken(skip=True)
        assert joined(type(reader)(reader.file, broken), size=2)["c"] == expected, name
        assert broken.count == len(bad), name
    # Of a dataset on disk each data file has a folder of its own; what comes through a pipe has none.
    splits = {"train": ["in/a.png", "../test/b.png"], "test": ["b.png"]}
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))
    for split, paths in splits.items():
        (folder / split / "in").mkdir(parents=True)
        (folder / split / "in" / "a.png").write_bytes(b"")
        (folder / split / "b.png").write_bytes(b"")
        held = pa.array([{"bytes": None, "path": path} for path in paths], PICTURE)
        write_stream(pa.table({"c": held}), folder / split / "a.arrow")
        (folder / split / "state.json").write_text(json.dumps(state_of("a.arrow")))
    broken = Broken(skip=True)
    found = joined(HuggingFace(File.of(folder), broken), ["c"])["c"]
    assert found == [folder / "train" / "in" / "a.png", folder / "test" / "b.png"]
    assert [place.split(" of ")[0] for place, _ in broken.records] == ["row 1"]
    piped = io.BytesIO((folder / "test" / "a.arrow").read_bytes())
    with pytest.raises(InputError, match=r"row 0 of standard input .* leads out of its folder"):
        list(Arrow(File(None, ".arrow", piped), Broken()).parts(None, 10))


def test_a_path_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    path = pa.array([b"\xff.png"]).view(pa.string())
    column = pa.StructArray.from_arrays([pa.nulls(1, pa.binary()), path], names=["bytes", "path"])
    with pytest.raises(InputError, match="there is no file"):
        list(write_stream(pa.table({"c": column}), tmp_path / "a").parts(None, 10))


class _Counting(str):
    """A text that counts how often it is compared."""

    count = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        type(self).count += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("form", [*WRITERS, "Hugging Face"])
def test_work_grows_with_the_columns_and_not_with_their_square(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 300
    names = [_Counting(f"column {i}") for i in range(n)]
    table = pa.table({str(name): [1, 2] for name in names})
    if form == "Hugging Face":
        folder_of(tmp_path / "d", state_of("a.arrow"))
        write_stream(table, tmp_path / "d" / "a.arrow")
        reader: Reader = HuggingFace(File.of(tmp_path / "d"), Broken())
    else:
        reader = WRITERS[form](table, tmp_path / "data.x")
    schemas = 0
    made = pq.ParquetFile.schema_arrow.fget

    def counted(self: Any) -> Any:
        nonlocal schemas
        schemas += 1
        return made(self)

    monkeypatch.setattr(pq.ParquetFile, "schema_arrow", property(counted))
    _Counting.count = 0
    assert [len(part.columns) for part in reader.parts(names, 10)] == [n]
    assert _Counting.count < 20 * n
    assert schemas < 10  # each is made of all columns


def test_to_look_for_a_name_that_comes_twice_takes_a_glance_at_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = write_stream(pa.table({"a": [1]}), tmp_path / "a")
    names = [_Counting(f"column {i}") for i in range(300)]
    schema = type("Schema", (), {"names": names, "metadata": None})
    monkeypatch.setattr(reader, "_head", lambda: schema)
    _Counting.count = 0
    assert reader.names() == [str(name) for name in names]
    assert _Counting.count < 20 * len(names)


# ------------------------------------------------------------------------------------------------------------ bad files


def a_parquet(path: Path) -> bytes:
    pq.write_table(pa.table({"a": list(range(1000)), "t": [str(i) for i in range(1000)]}), path)
    return path.read_bytes()


def an_arrow(path: Path) -> bytes:
    write_file(pa.table({"a": list(range(1000)), "t": [str(i) for i in range(1000)]}), path)
    return path.read_bytes()


def twice(path: Path, form: str) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, path) if form == "parquet" else write_file(table, path)


def a_folder(path: Path) -> None:
    path.mkdir()
    a_parquet(path / "0.parquet")


TEXT = b"text,label\na,b\n"
JUNK = b"\xff\xff\xff\xff\x30\0\0\0" + bytes(range(96))
# What is made of a whole file of that form, and words of the message.
BAD: dict[str, tuple[type[Reader], Callable[[bytes], bytes], list[str]]] = {
    "a Parquet file cut short": (Parquet, lambda whole: whole[:-300], ["cut short"]),
    "the start of a Parquet file": (Parquet, lambda whole: whole[:5], ["cut short"]),
    "text under the name of Parquet": (Parquet, lambda whole: TEXT, ["no Parquet", "b'text'"]),
    "encrypted Parquet": (Parquet, lambda whole: b"PARE" + whole[4:-4] + b"PARE", ["encrypted", "Decrypt"]),
    "gzipped Parquet": (Parquet, gzip.compress, ["gzipped", "gunzip"]),
    "junk in the footer of Parquet": (
        Parquet, lambda whole: whole[:-200] + b"\xff" * 192 + b"\x40\0\0\0PAR1", ["could not be read"],
    ),
    "a footer longer than the file": (
        Parquet, lambda whole: whole[:-8] + b"\xff\xff\xff\x7fPAR1", ["could not be read"],
    ),
    "an Arrow file cut short": (Arrow, lambda whole: whole[:-300], ["could not be read"]),
    "the start of an Arrow file": (Arrow, lambda whole: whole[:40], ["could not be read"]),
    "text under the name of Arrow": (Arrow, lambda whole: TEXT, ["no Arrow", "ARROW1"]),
    "a few bytes under the name of Arrow": (Arrow, lambda whole: b"abc", ["no Arrow"]),
    "Feather's first version": (
        Arrow, lambda whole: b"FEA1" + bytes(60) + b"FEA1", ["first version", "write_feather"],
    ),
    "a stream of junk": (Arrow, lambda whole: JUNK, ["could not be read"]),
    "a gzipped Arrow file": (Arrow, gzip.compress, ["at its end", "plain file"]),
}  # fmt: skip
BAD_PATHS: dict[str, tuple[type[Reader], Callable[[Path], Any], list[str]]] = {
    "a folder under the name of Parquet": (Parquet, a_folder, ["is a folder", "*.parquet"]),
    "a column twice in Parquet": (Parquet, lambda path: twice(path, "parquet"), ["'a' twice", "Rename"]),
    "a folder under the name of Arrow": (Arrow, a_folder, ["is a folder", "*.arrow"]),
    "a column twice in Arrow": (Arrow, lambda path: twice(path, "arrow"), ["'a' twice"]),
    "an Arrow file that is not there": (Arrow, lambda path: None, ["could not be opened"]),
    "a Parquet file that is not there": (Parquet, lambda path: None, ["there is no file"]),
}


def read_all(make: type[Reader], path: Path) -> None:
    reader = make(File.of(path), Broken(skip=True))
    list(reader.parts(reader.names(), 100))


def check_message(error: BaseException, words: list[str]) -> None:
    message = str(error)
    assert [word for word in words if word not in message] == []
    assert "\n" not in message
    assert len(message) < 700


@pytest.mark.parametrize("case", BAD)
def test_bad_files_get_an_error_that_says_what_was_seen(tmp_path: Path, case: str) -> None:
    make, spoil, words = BAD[case]
    path = tmp_path / "data.x"
    whole = a_parquet(path) if make is Parquet else an_arrow(path)
    read_all(make, path)  # it is as it should be
    path.write_bytes(spoil(whole))
    with pytest.raises(InputError) as caught:
        read_all(make, path)
    check_message(caught.value, words)


@pytest.mark.parametrize("case", BAD_PATHS)
def test_bad_paths_get_an_error_that_says_what_was_seen(tmp_path: Path, case: str) -> None:
    make, prepare, words = BAD_PATHS[case]
    prepare(tmp_path / "data.x")
    with pytest.raises(InputError) as caught:
        read_all(make, tmp_path / "data.x")
    check_message(caught.value, words)


def test_parquet_needs_a_file_that_can_be_gone_back_in(tmp_path: Path) -> None:
    data = a_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"standard input cannot be read as Parquet.*Save it"):
        Parquet(File(None, ".parquet", io.BytesIO(data)), Broken()).names()


def test_every_single_flipped_byte_is_read_or_refused_but_never_crashes(tmp_path: Path) -> None:
    """Damage anywhere gives our error or values, and nothing else."""
    rng = np.random.default_rng(0)
    table = pa.table({"v": list(X), "t": [f"text {i}" for i in range(30)], "l": [["a", "b"]] * 30})
    path = tmp_path / "data.x"
    refused = 0
    for writer in WRITERS.values():
        make = type(writer(table, path))
        whole = path.read_bytes()
        for at in rng.integers(0, len(whole), 60):
            data = bytearray(whole)
            data[at] ^= 1 << int(rng.integers(8))
            path.write_bytes(data)
            try:
                reader = make(File.of(path), Broken(skip=True))
                names = reader.names()
                list(reader.parts([name for name in names if name in ("v", "t", "l")], 100))
            except InputError:
                refused += 1
    assert refused > 20


def test_a_small_file_that_stands_for_far_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    table = pa.table({"bomb": np.zeros(1 << 20)})
    pq.write_table(table, path, use_dictionary=False, compression="zstd", row_group_size=1 << 20)
    assert (
        sum(1 for _ in Parquet(File.of(path), Broken()).parts(["bomb"], 1 << 18)) == 4
    )  # 8 MiB are no danger
    parts = Parquet(limited(path, 1 << 20), Broken()).parts(["bomb"], 1000)
    with pytest.raises(InputError, match=r"KiB and its rows stand for .* MiB so far, more than 400 times"):
        list(parts)


# ----------------------------------------------------------------------------------------------------- packed batches


def limited(path: Path, most: int) -> File:
    """A file whose records may have so many bytes."""
    return replace(File.of(path), max_record=most)


def packed(table: Any, form: str, compression: str = "zstd") -> bytes:
    """The bytes of an Arrow file or stream of one record batch."""
    sink = io.BytesIO()
    make = ipc.new_file if form == "file" else ipc.new_stream
    with make(sink, table.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def readers_of(
    data: bytes, form: str, folder: Path, most: int = MAX_RECORD
) -> dict[str, Callable[[], Reader]]:
    """All ways in which the bytes of an Arrow file or stream come here."""
    path = folder / "data.arrow"
    path.write_bytes(data)
    ways: dict[str, Callable[[], Reader]] = {"mapped": lambda: Arrow(limited(path, most), Broken())}
    if form == "stream":
        (folder / "data.arrow.gz").write_bytes(gzip.compress(data))
        (folder / "state.json").write_text(json.dumps(state_of("data.arrow")))
        ways["gzipped"] = lambda: Arrow(limited(folder / "data.arrow.gz", most), Broken())
        ways["piped"] = lambda: Arrow(File(None, ".arrow", io.BytesIO(data), most), Broken())
        ways["Hugging Face"] = lambda: HuggingFace(limited(folder, most), Broken())
    return ways


def a_dictionary(n: int) -> Any:
    """One short entry and one of n bytes: what is large is in the message of the dictionary."""
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array(["a", "b" * n]))


BOMBS: dict[str, tuple[Any, str]] = {
    "numbers": (np.zeros(1 << 20), "zstd"),
    "numbers packed by lz4": (np.zeros(1 << 24), "lz4"),
    "a dictionary": (a_dictionary(8 << 20), "zstd"),
    "a text": (["x" * (8 << 20)], "zstd"),
}


@pytest.mark.parametrize("form", ["file", "stream"])
@pytest.mark.parametrize("case", BOMBS)
def test_a_small_batch_that_stands_for_far_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, case: str
) -> None:
    column, compression = BOMBS[case]
    table = pa.table({"good": np.zeros(len(column), np.int8), "bomb": column})
    monkeypatch.setattr(packed_batches, "LARGEST_RATIO", 100)  # lz4 packs 255 times at most
    for name, make in readers_of(packed(table, form, compression), form, tmp_path, 256 << 20).items():
        assert len(joined(make(), ["bomb"], 1 << 30)["bomb"]) == len(column), name  # 8 MiB are no danger
    for name, make in readers_of(packed(table, form, compression), form, tmp_path, 1 << 20).items():
        with pytest.raises(InputError, match=r"record batch of .* unpacks to .* MiB, more than 100 times"):
            list(make().parts(["bomb"], 100))
        assert len(make().names()) == 2, name


@pytest.mark.parametrize("form", ["file", "stream"])
def test_what_batches_stand_for_is_added_up(tmp_path: Path, form: str) -> None:
    sink = io.BytesIO()
    table = pa.table({"a": np.zeros(1 << 16)})  # half a mebibyte each
    options = ipc.IpcWriteOptions(compression="zstd")
    with (ipc.new_file if form == "file" else ipc.new_stream)(sink, table.schema, options=options) as writer:
        for _ in range(5):
            writer.write_table(table)
    for name, make in readers_of(sink.getvalue(), form, tmp_path, 3 << 20).items():
        parts = make().parts(None, 1 << 20)
        assert [len(next(parts).columns["a"]) for _ in range(2)] == [1 << 16] * 2, name
        with pytest.raises(InputError, match=r"more than (400 times|that can stand for)"):
            list(parts)


def test_a_table_of_contents_may_not_name_a_batch_again_and_again(tmp_path: Path) -> None:
    sink = io.BytesIO()
    table = pa.table({"a": np.arange(1 << 14)})
    with ipc.new_file(sink, table.schema) as writer:
        for _ in range(1000):
            writer.write_table(table.slice(0, 1))
        writer.write_table(table)
    data = bytearray(sink.getvalue())
    end = len(data) - 10
    footer = end - int.from_bytes(data[end : end + 4], "little")
    contents = packed_batches._Table.root(bytes(data[footer:end])).records(3, packed_batches.BLOCK)
    assert len(contents) == 1001
    at = data.index(contents.tobytes(), footer)
    data[at : at + contents.nbytes] = np.repeat(contents[-1:], 1001).tobytes()
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(InputError, match=r"KiB and its rows stand for .* MiB so far, more than 400 times"):
        list(Arrow(limited(tmp_path / "a", 1 << 20), Broken()).parts(None, 1 << 20))


TABLES: dict[str, Callable[[], Any]] = {
    "numbers": lambda: pa.table({"a": np.arange(1000), "b": np.zeros(1000, np.float32)}),
    "texts": lambda: pa.table({"t": [f"text {i}" for i in range(1000)], "l": [["a", "b"]] * 1000}),
    "gaps": lambda: pa.table({"t": pa.array([None, "b"] * 500), "e": pa.array([""] * 1000)}),
    "views": lambda: pa.table({"t": pa.array(["a text of more than twelve bytes"] * 1000, pa.string_view())}),
}


@pytest.mark.parametrize("form", ["file", "stream"])
@pytest.mark.parametrize("case", TABLES)
def test_a_batch_stands_for_the_bytes_that_arrow_makes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, case: str
) -> None:
    data = packed(TABLES[case](), form)
    (tmp_path / "a").write_bytes(data)
    opened = ipc.open_file(data) if form == "file" else ipc.open_stream(data)
    batch = next(iter(opened)) if form == "stream" else opened.get_batch(0)
    size = sum(buffer.size for column in batch.columns for buffer in column.buffers() if buffer is not None)
    monkeypatch.setattr(packed_batches, "LARGEST_RATIO", 0)
    names = batch.schema.names

    def read(most: int) -> int:
        reader = Arrow(limited(tmp_path / "a", most), Broken(True))
        return sum(len(part.columns[names[0]]) for part in reader.parts(names, 100))

    assert read(size) == 1000 - 500 * (case == "gaps")
    with pytest.raises(InputError, match="unpacks to"):
        read(size - 1)


def test_buffers_that_are_stored_as_they_are_stand_for_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(0).integers(0, 1 << 64, 1000, dtype=np.uint64)
    data = bytearray(packed(pa.table({"a": rows}), "file"))
    at = data.index(b"\x28\xb5\x2f\xfd")  # a frame of zstd, which is no shorter than what it holds
    data[at - 8 : at] = b"\xff" * 8
    data[at : at + rows.nbytes] = rows.tobytes()
    (tmp_path / "a").write_bytes(data)
    monkeypatch.setattr(packed_batches, "LARGEST_RATIO", 1)
    np.testing.assert_array_equal(joined(Arrow(limited(tmp_path / "a", 8000), Broken()))["a"], rows)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_what_another_writer_writes_is_read(tmp_path: Path, compression: Any) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": list(range(1000)), "t": [f"text {i % 9}" for i in range(1000)]})
    frame = frame.with_columns(c=polars.col("t").cast(polars.Categorical))
    for write in (frame.write_ipc, frame.write_ipc_stream):
        write(tmp_path / "a.arrow", compression=compression)
        found = joined(Arrow(File.of(tmp_path / "a.arrow"), Broken()))
        assert found["a"].tolist() == list(range(1000))
        assert found["t"] == found["c"] == [f"text {i % 9}" for i in range(1000)]


def test_a_claim_is_refused_before_memory_is_taken_for_it(tmp_path: Path) -> None:
    rows = np.arange(1000)
    claim = (8000).to_bytes(8, "little")
    for form in ("file", "stream"):
        data = packed(pa.table({"a": rows}), form)
        assert data.count(claim) == 1
        for name, make in readers_of(
            data.replace(claim, (1 << 44).to_bytes(8, "little")), form, tmp_path
        ).items():
            with pytest.raises(InputError, match="unpacks to 16 TiB"):
                list(make().parts(None, 10))
            assert make().names() == ["a"], name
        bad = data.replace(claim, (-2).to_bytes(8, "little", signed=True))
        for make in readers_of(bad, form, tmp_path).values():
            with pytest.raises(InputError, match=r"damaged .* negative length"):
                list(make().parts(None, 10))


@pytest.mark.parametrize("form", ["file", "stream"])
def test_the_older_mark_of_packed_buffers_is_known(tmp_path: Path, form: str) -> None:
    batch = pa.record_batch({"a": [1 << 44] + [0] * 99})  # the first number is taken as the length
    options = ipc.IpcWriteOptions(metadata_version=ipc.MetadataVersion.V4)
    sink = io.BytesIO()
    with (ipc.new_file if form == "file" else ipc.new_stream)(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch, custom_metadata={"ARROW:experimental_compression": "zstd"})
    data = sink.getvalue()
    with pytest.raises((MemoryError, pa.ArrowException, OSError)):  # Arrow itself believes it
        (ipc.open_file(data) if form == "file" else ipc.open_stream(data)).read_all()
    for make in readers_of(data, form, tmp_path).values():
        with pytest.raises(InputError, match="unpacks to 16 TiB"):
            list(make().parts(None, 10))


def test_damage_of_messages_is_our_error_and_no_other() -> None:
    """Without Arrow behind it: what the parser itself makes of thousands of damaged files."""
    rng = np.random.default_rng(0)
    table = pa.table({"a": np.arange(50), "t": ["x"] * 50, "d": a_dictionary(20).take(pa.array([0, 1] * 25))})
    for form in ("file", "stream"):
        whole = packed(table, form)
        refused = 0
        for trial in range(3000):
            data = bytearray(whole)
            for at in rng.integers(0, len(data) - 4, rng.integers(1, 4)):
                odd = rng.integers(0, 256, 4, dtype=np.uint8).tobytes()
                data[at : at + 4] = [odd, b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f"][trial % 4]
            if trial % 5 == 0:
                del data[int(rng.integers(0, len(data))) :]
            view, limit = memoryview(data), packed_batches.Limit(File(None, ""), len(data))
            try:
                if form == "file":
                    blocks = packed_batches.Blocks(view, limit)
                    blocks.is_packed()
                    blocks.check(0)
                else:
                    messages = packed_batches.Mapped(view, limit)
                    while len(messages.read(int(rng.integers(1, 100)))):
                        pass
            except InputError:
                refused += 1
        assert 300 < refused < 3000, form


class _Evil:
    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    """Pickles in the metadata of extension types and of pandas stay bytes."""
    trap = tmp_path / "trap"
    payload = pickle.dumps(_Evil(trap))
    field = pa.field(
        "a", pa.int64(),
        metadata={"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": payload},
    )  # fmt: skip
    schema = pa.schema([field], metadata={"pandas": payload, "huggingface": payload})
    table = pa.Table.from_arrays([pa.array([1, 2, 3])], schema=schema)
    for name, writer in WRITERS.items():
        assert joined(writer(table, tmp_path / "data.x"))["a"].tolist() == [1, 2, 3], name
        assert not trap.exists()
    pickle.loads(payload)  # the trap works: had anything unpickled it, it would be there
    assert trap.exists()


# --------------------------------------------------------------------------------------------------------- Hugging Face


@pytest.fixture
def dataset() -> Any:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "vector": datasets.List(datasets.Value("float16"), length=4),
            "matrix": datasets.Array2D((2, 2), "float32"),
            "answers": datasets.List(datasets.Value("string")),
        }
    )
    return datasets.Dataset.from_dict(
        {
            "text": [f"text {i}" for i in range(30)],
            "label": [i % 2 for i in range(30)],
            "vector": X.astype(np.float16),
            "matrix": X.reshape(30, 2, 2).astype(np.float32),
            "answers": [[str(i)] * (i % 3) for i in range(30)],
        },
        features=features,
    )


def check_dataset(found: dict[str, Any], rows: slice = slice(None)) -> None:
    assert found["text"] == [f"text {i}" for i in range(30)][rows]
    assert found["label"] == (["cat", "dog"] * 15)[rows]
    assert (found["vector"].dtype, found["matrix"].dtype) == (np.float16, np.float32)
    np.testing.assert_array_equal(found["vector"], X.astype(np.float16)[rows])
    np.testing.assert_array_equal(found["matrix"], X.reshape(30, 2, 2).astype(np.float32)[rows])
    assert found["answers"] == [[str(i)] * (i % 3) for i in range(30)][rows]


def test_a_dataset_saved_to_disk(dataset: Any, tmp_path: Path) -> None:
    dataset.save_to_disk(tmp_path / "d", num_shards=3)
    reader = HuggingFace(File.of(tmp_path / "d"), Broken())
    assert reader.names() == ["text", "label", "vector", "matrix", "answers"]
    check_dataset(joined(reader, size=7))
    part = list(HuggingFace(File.of(tmp_path / "d"), Broken()).parts(["text"], 7))[-1]
    assert part.place(0).startswith("row ")
    assert "data-00002-of-00003.arrow'" in part.place(0)


def test_a_selection_of_a_dataset_is_saved_as_its_rows(dataset: Any, tmp_path: Path) -> None:
    dataset.select(range(5, 20)).save_to_disk(tmp_path / "d")
    check_dataset(joined(HuggingFace(File.of(tmp_path / "d"), Broken())), slice(5, 20))


def test_splits_come_one_after_another_or_one_by_its_path(dataset: Any, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    both = {"train": dataset.select(range(20)), "test": dataset.select(range(20, 30))}
    datasets.DatasetDict(both).save_to_disk(tmp_path / "d")
    reader = HuggingFace(File.of(tmp_path / "d"), Broken())
    assert reader.names()[-1] == "split"
    found = joined(reader)
    assert found.pop("split") == ["train"] * 20 + ["test"] * 10
    check_dataset(found)
    assert (
        joined(HuggingFace(File.of(tmp_path / "d"), Broken()), ["split"])["split"]
        == ["train"] * 20 + ["test"] * 10
    )
    check_dataset(joined(HuggingFace(File.of(tmp_path / "d" / "test"), Broken())), slice(20, 30))


def test_it_needs_no_datasets_library(dataset: Any, tmp_path: Path) -> None:
    dataset.save_to_disk(tmp_path / "d")
    script = (
        "import sys; from vendimeter.io.arrow import HuggingFace as H; from vendimeter.data.collection import Broken; "
        "from vendimeter.io.sources import File; "
        "p = list(H(File.of(sys.argv[1]), Broken()).parts(None, 100)); "
        "print(p[0].columns['matrix'].shape, 'datasets' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "d")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "(30, 2, 2) False"


def test_pictures_of_a_dataset_are_its_samples(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    image = pytest.importorskip("PIL.Image")
    pictures = [image.fromarray(np.full((4, 4, 3), 20 * i, dtype=np.uint8)) for i in range(5)]
    held = datasets.Dataset.from_dict(
        {"photo": pictures, "label": [0, 1, 0, 1, 0]},
        features=datasets.Features(
            {"photo": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])}
        ),
    )
    held.save_to_disk(tmp_path / "d")
    held.to_parquet(tmp_path / "d.parquet")
    for reader in (
        HuggingFace(File.of(tmp_path / "d"), Broken()),
        Parquet(File.of(tmp_path / "d.parquet"), Broken()),
    ):
        reader.names()
        assert (reader.samples, reader.kind) == ("photo", "images")
        found = joined(reader)
        assert found["label"] == ["a", "b", "a", "b", "a"]
        decoded = [np.asarray(image.open(io.BytesIO(record["bytes"]))) for record in found["photo"]]
        np.testing.assert_array_equal(decoded, [np.asarray(picture) for picture in pictures])


def test_a_class_without_a_name_is_a_broken_record(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"label": datasets.ClassLabel(names=["a", "b"])})
    datasets.Dataset.from_dict({"label": [0, -1, 1]}, features=features).save_to_disk(tmp_path / "d")
    with pytest.raises(InputError, match=r"row 1 of .* 'label' is class -1, and there are 2"):
        list(HuggingFace(File.of(tmp_path / "d"), Broken()).parts(None, 10))
    broken = Broken(skip=True)
    assert joined(HuggingFace(File.of(tmp_path / "d"), broken))["label"] == ["a", "b"]
    assert broken.count == 1


def folder_of(path: Path, state: Any, files: dict[str, Any] | None = None, splits: Any = None) -> Path:
    """A folder as save_to_disk writes it, with a state of our own."""
    path.mkdir()
    for name, values in (files or {}).items():
        table = pa.table({"a": values})
        with ipc.new_stream(path / name, table.schema) as writer:
            writer.write_table(table)
    if state is not None:
        (path / "state.json").write_text(state if isinstance(state, str) else json.dumps(state))
    if splits is not None:
        (path / "dataset_dict.json").write_text(json.dumps({"splits": splits}))
    return path


def state_of(*names: Any) -> dict[str, Any]:
    return {"_data_files": [{"filename": name} for name in names]}


def a_link(path: Path) -> Path:
    folder = folder_of(path, state_of("a.arrow"))
    folder_of(path.with_name("other"), None, {"a.arrow": [1]})
    (folder / "a.arrow").symlink_to(path.with_name("other") / "a.arrow")
    return folder


BAD_FOLDERS: dict[str, tuple[Callable[[Path], Path], list[str]]] = {
    "no state": (lambda p: folder_of(p, None), ["no state.json", "save_to_disk"]),
    "a state that is no JSON": (lambda p: folder_of(p, "{"), ["state.json", "JSON"]),
    "a state that is a list": (lambda p: folder_of(p, [1]), ["[1]", "expected an object"]),
    "a state without files": (lambda p: folder_of(p, {"_data_files": [{"name": 1}]}), ["_data_files", "list of names"]),
    "a file in a folder above": (lambda p: folder_of(p, state_of("../a.arrow")), ["../a.arrow", "out of the folder"]),
    "a file by its full path": (lambda p: folder_of(p, state_of("/etc/passwd")), ["/etc/passwd", "out of the folder"]),
    "a link out of the folder": (a_link, ["a.arrow", "out of the folder"]),
    "a file that is not there": (lambda p: folder_of(p, state_of("a.arrow")), ["a.arrow", "not there"]),
    "an indices mapping": (
        lambda p: folder_of(p, state_of("a.arrow") | {"_indices_files": [{"filename": "i.arrow"}]}, {"a.arrow": [1]}),
        ["indices mapping", "flatten_indices"],
    ),
    "files of different types": (
        lambda p: folder_of(p, state_of("a.arrow", "b.arrow"), {"a.arrow": [1], "b.arrow": ["x"]}),
        ["b.arrow", "string", "int64"],
    ),
    "a split above": (lambda p: folder_of(p, None, splits=["../.."]), ["../..", "out of the folder"]),
    "splits that are no names": (lambda p: folder_of(p, None, splits=[1]), ["splits", "list of names"]),
    "a split that is not there": (lambda p: folder_of(p, None, splits=["train"]), ["'train'", "not there"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FOLDERS)
def test_bad_folders_get_an_error_that_says_what_was_seen(tmp_path: Path, case: str) -> None:
    prepare, words = BAD_FOLDERS[case]
    folder = prepare(tmp_path / "d")
    with pytest.raises(InputError) as caught:
        read_all(HuggingFace, folder)
    check_message(caught.value, words)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(InputError, match="save_to_disk"):
        HuggingFace(File.of(tmp_path / "a"), Broken())


def test_they_are_read_by_the_front_door(tmp_path: Path) -> None:
    table = pa.table({"v": list(X), "set": ["a", "b"] * 15})
    for i in range(2):
        pq.write_table(table.slice(15 * i, 15), tmp_path / f"{i}.parquet")
    whole = vm.read(str(tmp_path / "*.parquet"), samples="v", label="set")
    assert float(vm.score(whole)) == pytest.approx(float(vm.score(X)), rel=1e-12)
    groups = vm.score_groups(whole)
    assert float(groups["a"]) == pytest.approx(float(vm.score(X[::2])), rel=1e-12)
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(EmptyError):
        vm.read(tmp_path / "empty.parquet")
