"""Readers of arrays: .npy, .npz and safetensors, against NumPy and the library of safetensors."""

from __future__ import annotations

import gc
import gzip
import io
import json
import os
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from vendimeter.data.collection import Broken
from vendimeter.errors import InputError, UnknownNameError
from vendimeter.io import stored_arrays
from vendimeter.io.arrays import Npy, Npz, Safetensors
from vendimeter.io.sources import MAX_RECORD, File

READERS = {".npy": Npy, ".npz": Npz, ".safetensors": Safetensors}
RNG = np.random.default_rng(0)


def npy(array, **options) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array, **options)
    return sink.getvalue()


def npz(packed: bool = False, **arrays) -> bytes:
    sink = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(sink, **arrays)
    return sink.getvalue()


def archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as file:
        for name, data in members:
            file.writestr(name, data)
    return sink.getvalue()


def tensors(header, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


WAYS = ["file", "gzipped", "stream", "gzipped stream"]


def opened(way: str, folder: Path, ending: str, data: bytes, most: int = MAX_RECORD):
    data = gzip.compress(data, 1) if way.startswith("gzipped") else data
    if way.endswith("stream"):
        return READERS[ending](File(None, ending, io.BytesIO(data), most), Broken())
    path = folder / f"x{ending}{'.gz' if way == 'gzipped' else ''}"
    path.write_bytes(data)
    return READERS[ending](File(path, ending, max_record=most), Broken())


def columns_of(reader, wanted=None, size: int = 3) -> dict[str, np.ndarray]:
    """All rows, checked for the sizes of parts and their places."""
    parts, start = list(reader.parts(wanted, size)), 0
    for part in parts:
        lengths = {len(column) for column in part.columns.values()}
        assert len(lengths) == 1
        assert 1 <= next(iter(lengths)) <= size
        assert part.place(0) == f"row {start} of {reader.file}"
        start += lengths.pop()
    return {
        name: np.concatenate([part.columns[name] for part in parts])
        for name in (parts[0].columns if parts else ())
    }


ARRAYS = {
    "float64": RNG.standard_normal((10, 4)),
    "float16": RNG.standard_normal((10, 4)).astype(np.float16),
    "Fortran's order": np.asfortranarray(RNG.standard_normal((10, 3, 2))),
    "one axis": np.arange(10),
    "pictures": RNG.integers(256, size=(10, 4, 4, 3), dtype=np.uint8),
    "truth values": RNG.random((10, 3)) < 0.5,
    "complex": RNG.standard_normal((10, 2)) + 1j,
    "dates": np.arange("2020-01-01", "2020-01-11", dtype="datetime64[D]"),
    "texts": np.array([f"é{i}" for i in range(10)]),
    "other order of bytes": np.arange(20.0).reshape(10, 2).astype(">f4"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ARRAYS)
def test_a_single_array(tmp_path, way, name):
    array = ARRAYS[name]
    for size in (3, 100):
        reader = opened(way, tmp_path, ".npy", npy(array))
        assert (reader.names(), reader.samples) == (["data"], "data")
        found = columns_of(reader, size=size)["data"]
        assert found.dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("packed", [False, True])
def test_the_arrays_of_an_archive(tmp_path, way, packed):
    data = npz(
        packed, **{name.replace(" ", "_"): array for name, array in ARRAYS.items()}, short=np.arange(3), one=7
    )
    reader = opened(way, tmp_path, ".npz", data)
    names = [name.replace(" ", "_") for name in ARRAYS]
    assert reader.names() == [*names, "short"]
    assert reader.lengths() == {**dict.fromkeys(names, 10), "short": 3}
    found = columns_of(reader, names)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name.replace(" ", "_")], array)
    few = columns_of(opened(way, tmp_path, ".npz", data), ["texts", "one_axis"], 4)
    assert list(few) == ["texts", "one_axis"]
    assert few["texts"].tolist() == ARRAYS["texts"].tolist()


@pytest.mark.parametrize(("ending", "data"), [(".npz", npy(np.eye(4))), (".npy", npz(data=np.eye(4)))])
def test_either_form_under_the_name_of_the_other(tmp_path, ending, data):
    for way in WAYS:
        assert columns_of(opened(way, tmp_path, ending, data))["data"].tolist() == np.eye(4).tolist()


def test_what_is_no_column_says_why(tmp_path):
    reader = opened("file", tmp_path, ".npz", npz(x=np.eye(4), note="hello", none=np.ones((4, 0))))
    assert (reader.names(), reader.samples) == (["x"], "x")
    for name, word in [("note", "single value"), ("none", "rows without")]:
        with pytest.raises(InputError, match=f"'{name}' in .* {word}"):
            next(reader.parts([name], 2))
        assert word in str(reader.missing_column_error(name))
    with pytest.raises(UnknownNameError, match="'y'"):
        next(reader.parts(["y"], 2))


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
@pytest.mark.parametrize("way", WAYS)
def test_arrays_of_different_lengths_are_read_apart(tmp_path, way, ending):
    arrays = {"features": RNG.standard_normal((5, 6)), "mu": np.arange(6.0), "sigma": np.eye(6)}
    if ending == ".npz":
        data = npz(**arrays)
    else:
        ends = np.cumsum([array.nbytes for array in arrays.values()]).tolist()
        entries = {
            name: entry("F64", array.shape, (end - array.nbytes, end))
            for (name, array), end in zip(arrays.items(), ends, strict=True)
        }
        data = tensors(entries, b"".join(array.tobytes() for array in arrays.values()))
    reader = opened(way, tmp_path, ending, data)
    assert reader.lengths() == {"features": 5, "mu": 6, "sigma": 6}
    assert (reader.names(), reader.samples) == (list(arrays), None)
    for columns in (None, ["features", "mu"]):
        with pytest.raises(
            InputError, match=r"'features' in .* has 5 rows and 'mu' 6; expected columns of one length"
        ):
            next(reader.parts(columns, 2))
    with pytest.raises(InputError, match=r"'sigma' in .* has 6 rows and 'features' 5"):
        reader.mapped_part(["sigma", "features"])
    for columns in (["features"], ["sigma", "mu"]):
        found = columns_of(opened(way, tmp_path, ending, data), columns)
        assert list(found) == columns
        for name in columns:
            np.testing.assert_array_equal(found[name], arrays[name])


def test_samples_as_published_with_adm(tmp_path):
    sink = io.BytesIO()
    np.savez(sink, RNG.integers(256, size=(5, 4, 4, 3), dtype=np.uint8), np.arange(5))
    reader = opened("file", tmp_path, ".npz", sink.getvalue())
    assert (reader.names(), reader.samples, reader.label, reader.kind) == (
        ["arr_0", "arr_1"],
        "arr_0",
        "arr_1",
        "images",
    )
    other = opened("file", tmp_path, ".npz", npz(arr_0=np.eye(3)))
    assert (other.names(), other.samples, other.label, other.kind) == (["arr_0"], "arr_0", None, None)
    statistics = {"mu": np.ones(7), "sigma": np.eye(7), "mu_s": np.ones(2), "sigma_s": np.eye(2)}
    reference = opened("file", tmp_path, ".npz", npz(arr_0=np.zeros((3, 2, 2, 3), np.uint8), **statistics))
    assert (reference.names(), reference.samples, reference.kind) == (
        ["arr_0", *statistics],
        "arr_0",
        "images",
    )
    apart = opened("file", tmp_path, ".npz", npz(arr_0=np.eye(3), arr_1=np.arange(4)))
    assert (apart.names(), apart.samples, apart.label) == (["arr_0", "arr_1"], "arr_0", None)
    several = opened("file", tmp_path, ".npz", npz(a=np.eye(3), b=np.eye(3)))
    assert (several.names(), several.samples) == (["a", "b"], None)


def test_fields_of_structured_arrays(tmp_path):
    array = np.zeros(5, dtype=[("name", "S3"), ("v", ">f4", (2,)), ("größe €", "i2")])
    array["name"], array["v"], array["größe €"] = b"\xc3\xa9", np.arange(10).reshape(5, 2), np.arange(5)
    with pytest.warns(UserWarning, match="format 3.0"):
        data = npy(array)
    for way in WAYS:
        reader = opened(way, tmp_path, ".npy", data)
        assert reader.names() == ["name", "v", "größe €"]
        found = columns_of(reader, size=2)
        assert found["name"].tolist() == ["é"] * 5
        assert (found["v"].dtype, found["v"].tolist()) == (np.float32, array["v"].tolist())
        assert found["größe €"].tolist() == [0, 1, 2, 3, 4]
    plain = np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    assert opened("file", tmp_path, ".npz", npz(t=plain, y=np.ones(1))).names() == ["t.a", "t.b", "y"]


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_plain_file_is_mapped_whole_or_in_parts(tmp_path, order):
    X = np.array(RNG.standard_normal((50, 8)).astype(np.float16), order=order)
    reader = opened("file", tmp_path, ".npy", npy(X))
    reader.names()
    part = reader.mapped_part(["data"])
    assert part is not None
    assert isinstance(part.columns["data"], np.memmap)
    assert part.columns["data"].dtype == np.float16
    np.testing.assert_array_equal(part.columns["data"], X)
    assert part.place(7).startswith("row 7 of ")
    for way in WAYS[1:]:
        other = opened(way, tmp_path, ".npy", npy(X))
        assert other.mapped_part(["data"]) is None
        np.testing.assert_array_equal(columns_of(other)["data"], X)
    assert opened("file", tmp_path, ".npz", npz(data=X)).mapped_part(["data"]) is None
    assert opened("file", tmp_path, ".npy", npy(X.astype(">f2"))).mapped_part(["data"]) is None


def test_large_rows_make_small_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_arrays, "PART_BYTES", 1000)
    X = RNG.standard_normal((10, 50))  # 400 bytes a row
    for ending, data in [(".npy", npy(X)), (".npz", npz(data=X))]:
        parts = list(opened("file", tmp_path, ending, data).parts(None, 100))
        assert [len(part.columns["data"]) for part in parts] == [2] * 5
    monkeypatch.setattr(stored_arrays, "PART_BYTES", 1)
    assert len(list(opened("file", tmp_path, ".npy", npy(X)).parts(None, 100))) == 10


@pytest.fixture
def few_files():
    """A process that may have few files open."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("read_below", [1, 1 << 20])
def test_parts_of_many_files_are_held_with_few_of_them_open(tmp_path, monkeypatch, few_files, read_below):
    monkeypatch.setattr(stored_arrays, "READ_BYTES", read_below)
    X = RNG.standard_normal((600, 5))
    for i in range(300):
        np.save(tmp_path / f"{i}.npy", X[2 * i : 2 * i + 2])
    readers = [Npy(File.of(tmp_path / f"{i}.npy"), Broken()) for i in range(300)]
    parts = [part for reader in readers for part in reader.parts(None, 1)]
    np.testing.assert_array_equal(np.concatenate([part.columns["data"] for part in parts]), X)
    assert [part.place(0) for part in parts[598:]] == [f"row {row} of {readers[299].file}" for row in (0, 1)]


def test_many_parts_of_one_file_are_held_with_few_files_open(tmp_path, monkeypatch, few_files):
    monkeypatch.setattr(stored_arrays, "READ_BYTES", 1)
    X = RNG.standard_normal((600, 5))
    np.save(tmp_path / "x.npy", X)
    parts = list(Npy(File.of(tmp_path / "x.npy"), Broken()).parts(None, 1))
    np.testing.assert_array_equal(np.concatenate([part.columns["data"] for part in parts]), X)
    # In maps, all of them: what is held in memory would be there twice once it is joined.
    assert not any(part.columns["data"].flags.writeable for part in parts)


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
@pytest.mark.parametrize("read_below", [1, 1 << 20])
def test_many_arrays_of_one_file_are_read_with_few_files_open(
    tmp_path, monkeypatch, few_files, ending, read_below
):
    monkeypatch.setattr(stored_arrays, "READ_BYTES", read_below)
    arrays = {f"a{i:03}": RNG.standard_normal(4) for i in range(300)}
    entries = {name: entry("F64", (4,), (32 * i, 32 * i + 32)) for i, name in enumerate(arrays)}
    joined = b"".join(array.tobytes() for array in arrays.values())
    reader = opened("file", tmp_path, ending, npz(**arrays) if ending == ".npz" else tensors(entries, joined))
    assert reader.mapped_part(reader.names()) is None
    found = columns_of(reader)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
@pytest.mark.parametrize("early", [False, True])
def test_what_was_unpacked_is_given_back_when_it_was_read(tmp_path, ending, early):
    X = np.zeros((1 << 17, 8), np.uint8)  # 1 MiB
    data = npz(x=X) if ending == ".npz" else tensors({"x": entry("U8", X.shape, (0, X.nbytes))}, X.tobytes())
    readers = [opened("gzipped", tmp_path, ending, data) for _ in range(20)]
    gc.collect()
    tracemalloc.start()
    for reader in readers:
        parts = reader.parts(["x"], 1 << 16)
        assert len(next(parts).columns["x"]) == 1 << 16
        if early:
            parts.close()
        else:
            assert sum(len(part.columns["x"]) for part in parts) == 1 << 16
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 3 * X.nbytes  # of 20


@pytest.mark.parametrize("ending", READERS)
def test_empty_files_and_arrays(tmp_path, ending):
    assert opened("file", tmp_path, ending, b"").names() == []
    empty = np.zeros((0, 3))
    data = {
        ".npy": npy(empty), ".npz": npz(data=empty),
        ".safetensors": tensors({"data": {"dtype": "F64", "shape": [0, 3], "data_offsets": [0, 0]}}),
    }[ending]  # fmt: skip
    for way in WAYS:
        reader = opened(way, tmp_path, ending, data)
        assert reader.names() == ["data"]
        assert list(reader.parts(None, 10)) == []
        assert reader.mapped_part(["data"]) is None


# ------------------------------------------------------------------------------------------------------ safetensors


@pytest.mark.parametrize("way", WAYS)
def test_tensors_as_the_library_writes_them(tmp_path, way):
    library = pytest.importorskip("safetensors.numpy")
    types = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "bool", "c8"]
    arrays = {kind: (RNG.random((7, 3)) * 100).astype(kind) for kind in types}
    data = library.save({**arrays, "short": np.ones(2), "value": np.array(1.0)}, metadata={"made": "up"})
    reader = opened(way, tmp_path, ".safetensors", data)
    assert sorted(reader.names()) == sorted([*types, "short"])
    assert reader.lengths()["short"] == 2
    found = columns_of(reader, types)
    for kind, array in arrays.items():
        assert found[kind].dtype == array.dtype
        np.testing.assert_array_equal(found[kind], array)
    with pytest.raises(InputError, match=r"'value' in .* is a single value"):
        next(reader.parts(["value"], 2))


def test_bfloat16_becomes_float32_exactly(tmp_path):
    torch, library = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    rows = torch.cat([torch.randn(20, 4), torch.tensor([[0.0, -0.0, torch.inf, 1e-40]])]).to(torch.bfloat16)
    for way in WAYS:
        found = columns_of(opened(way, tmp_path, ".safetensors", library.save({"x": rows})))["x"]
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, rows.float().numpy())
    eight = library.save({"x": rows.to(torch.float8_e5m2)})
    with pytest.raises(InputError, match=r"'x' in .* numbers of the type 'F8_E5M2'.* Save it as F32"):
        opened("file", tmp_path, ".safetensors", eight).names()


def test_tensors_are_mapped_whole_where_they_are_aligned(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    X = RNG.standard_normal((9, 2))
    part = opened("file", tmp_path, ".safetensors", library.save({"x": X})).mapped_part(["x"])
    assert part is not None
    assert isinstance(part.columns["x"], np.memmap)
    np.testing.assert_array_equal(part.columns["x"], X)
    header = b'{"x":{"dtype":"F64","shape":[9,2],"data_offsets":[0,144]}}'
    odd = opened(
        "file", tmp_path, ".safetensors", tensors(header + b" " * (1 - len(header) % 2), X.tobytes())
    )
    assert odd.mapped_part(["x"]) is None
    found = next(odd.parts(None, 100)).columns["x"]
    assert found.flags.aligned
    np.testing.assert_array_equal(found, X)


# ------------------------------------------------------------------------------------------------- what goes wrong


def with_header(text: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    body = text.encode("latin1") + b"\n"
    return b"\x93NUMPY" + version + len(body).to_bytes(2 if version[0] == 1 else 4, "little") + body + data


def claim(shape: str, descr: str = "'<f8'", order: bool = False) -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


class Evil:
    """Unpickling this would leave a file behind."""

    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


PICKLED = npy(np.array([Evil()], dtype=object), allow_pickle=True)
GOOD = npy(np.eye(3))


def entry(kind="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": kind, "shape": list(shape), "data_offsets": list(offsets)}


def bad_sum() -> bytes:
    data = bytearray(archive(("a.npy", GOOD), method=zipfile.ZIP_STORED))
    data[data.index(np.eye(3).tobytes())] ^= 1
    return bytes(data)


def locked() -> bytes:
    data = bytearray(npz(x=np.eye(3)))
    data[6] |= 1  # the flag of the member …
    data[data.index(b"PK\x01\x02") + 8] |= 1  # … and of its entry in the list
    return bytes(data)


BAD = [
    (".npy", b"rubbish, and more", "could not be read as a NumPy file: it begins with b'rubbish"),
    (".npy", b"\x93NUM", "cut short"),
    (".npy", GOOD[:30], "cut short"),
    (".npy", GOOD[:-1], "cut short: .*float64 of shape .3, 3., which makes 200 bytes, and there are 199"),
    (".npy", GOOD + GOOD, "which makes 200 bytes, and there are 400"),
    (".npy", b"\x93NUMPY\x07\x00" + GOOD[8:], "unknown version 7.0"),
    (".npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "header claims 4,294,967,295 bytes"),
    (".npy", with_header("no dictionary"), "header cannot be understood"),
    (".npy", with_header("(" * 3000), "header cannot be understood"),
    (".npy", with_header(claim("(3,)", "'<x9'")), "header cannot be understood"),
    (".npy", with_header(claim("(-1, 2)")), "shape .-1, 2."),
    (".npy", with_header(claim("(1000000000000000, 8)")), "makes 64,000,000,000,000,0.. bytes"),
    (".npy", with_header(claim("(1, 1000000000000000)"), bytes(80)), "cut short"),
    (".npy", with_header(claim("(1000000000000000, 0)")), "rows without numbers"),
    (".npy", with_header(claim("(1000000000000000,)", "'<U0'")), "rows without numbers"),
    (".npy", with_header(claim("(4,)", "'|V2'"), bytes(8)), "raw bytes .*bfloat16.*float32"),
    (".npy", with_header(claim("(2,)", "'<U1'"), b"a\0\0\0\xff\xff\xff\xff"), "row 1 of 'data' is no text"),
    (".npy", npy(np.array(3.0)), "'data' in .* is a single value; expected an array with one row"),
    (".npy", npy(np.array([b"\xff\xfe"])), "row 0 of .* no UTF-8"),
    (".npy", npy(np.zeros(2, dtype=[("a", [("b", "f4")])])), "the field 'a' .* has fields itself"),
    (".npy", PICKLED, "holds Python objects, which are never unpickled"),
    (".npz", npz(x=np.eye(3))[:-30], "could not be read as a NumPy file: it is damaged or was cut short"),
    (".npz", b"PK\x03\x04rubbish", "could not be read as a NumPy file"),
    (".npz", archive(("a.txt", b"hello")), "ZIP archive without arrays"),
    (".npz", archive(), "ZIP archive without arrays"),
    (".npz", archive(("a.npy", b"rubbish, and more")), "begins with b'rubbish"),
    (".npz", archive(("a.npy", PICKLED)), "'a' in .* never unpickled"),
    (".npz", archive(("a.npy", GOOD[:-8])), "cut short: the header of 'a'"),
    (".npz", archive(("a.npy", GOOD + b"more")), "the header of 'a' says"),
    (".npz", archive(("a.npy", with_header(claim("(1000000000000000, 8)")))), "cut short"),
    (".npz", archive(("a.npy", with_header(claim("(2, 1000000000000000)", order=True)))), "cut short"),
    (".npz", archive(("a.npy", GOOD), method=zipfile.ZIP_BZIP2), "packed in a way that NumPy does not write"),
    (".npz", bad_sum(), "Bad CRC"),
    (".npz", locked(), "locked with a password"),
    (".safetensors", b"1234", "could not be read as safetensors: it was cut short"),
    (".safetensors", b"\xff" * 8 + b"{}", "claims a header of 18,446,744,073,709,551,615"),
    (".safetensors", tensors(b"{not json"), "header is not valid JSON"),
    (".safetensors", tensors(b"[" * 100000), "header is not valid JSON"),
    (".safetensors", tensors(b"[1]"), "header is no object"),
    (".safetensors", tensors(b'{"x": 1, "x": 2}'), "header is not valid JSON"),
    (".safetensors", tensors({"x": 1}), "entry of 'x' in its header"),
    (".safetensors", tensors({"x": entry(shape=(-2,))}, bytes(8)), "entry of 'x' in its header"),
    (".safetensors", tensors({"x": entry(shape=(2.0,))}, bytes(8)), "entry of 'x' in its header"),
    (".safetensors", tensors({"x": entry(offsets=(8, 0))}, bytes(8)), "ends before it begins"),
    (".safetensors", tensors({"x": entry(shape=(3,))}, bytes(8)), "which makes 12 bytes, and has 8"),
    (".safetensors", tensors({"x": entry(shape=(10**15, 10**15))}, bytes(8)), "bytes, and has 8"),
    (".safetensors", tensors({"x": entry()}, bytes(7)), "tensors end at byte"),
    (".safetensors", tensors({"x": entry()}, bytes(9)), "tensors end at byte"),
    (".safetensors", tensors({"x": entry(), "y": entry(offsets=(4, 12))}, bytes(12)), "overlap at byte 4"),
    (".safetensors", tensors({"x": entry(), "y": entry(offsets=(12, 20))}, bytes(20)), "leave gaps at byte 12"),
    (".safetensors", tensors({"x": entry(shape=(10**15, 0), offsets=(0, 0))}), "rows without numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("ending", "data", "word"), BAD)
@pytest.mark.parametrize("way", ["file", "stream"])
def test_bad_files(tmp_path, monkeypatch, way, ending, data, word):
    monkeypatch.chdir(tmp_path)
    reader = opened(way, tmp_path, ending, data)
    if way == "stream":  # without the size of the file only what is missing is known
        word = word.partition("cut short: ")[0] + "cut short" if "cut short: " in word else word
        word = word.replace("which makes 200 bytes, and there are 400", "there is more after")
        word = word.replace("makes 64,000,000,000,000,0.. bytes", "cut short")
        word = "row 0 .* has .* TiB; expected" if b"(1, 1000000000000000)" in data else word
    with pytest.raises(InputError, match=f"(?s){word}"):
        columns_of(reader)
    assert not (tmp_path / "unpickled").exists()


def test_a_sparse_matrix_is_told_apart(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz(tmp_path / "x.npz", sparse.eye_array(4, format="csr"))
    with pytest.raises(InputError, match=r"sparse matrix.*scipy\.sparse\.load_npz"):
        Npz(File.of(tmp_path / "x.npz"), Broken()).names()


def test_an_archive_that_names_an_array_twice(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = archive(("a.npy", GOOD), ("a.npy", GOOD))
    with pytest.raises(InputError, match="two arrays of one name"):
        opened("file", tmp_path, ".npz", data).names()


def test_a_bomb_is_refused_by_what_it_claims(tmp_path):
    bomb = npz(True, x=np.zeros((1 << 20, 4)))
    assert len(bomb) < (32 << 20) / 400
    with pytest.raises(InputError, match=r"'x' in .* more than 400 times its size"):
        opened("file", tmp_path, ".npz", bomb, 1 << 20).names()
    assert opened("file", tmp_path, ".npz", bomb).names() == ["x"]  # 32 MiB are no danger
    fine = npz(True, x=RNG.integers(4, size=(1 << 20, 4)).astype(float))
    assert opened("file", tmp_path, ".npz", fine, 1 << 20).names() == ["x"]


def test_members_that_share_their_bytes_are_refused(tmp_path):
    """As in the worst archives, where one small piece is the content of all members."""
    data = bytearray(archive(("a.npy", npy(np.zeros(1000))), ("b.npy", GOOD), method=zipfile.ZIP_STORED))
    second = data.rindex(b"PK\x01\x02")
    for place in (second + 20, second + 24):  # its sizes, packed and not
        data[place : place + 4] = (20_000).to_bytes(4, "little")
    with pytest.raises(InputError, match="claim more bytes than it has"):
        opened("file", tmp_path, ".npz", bytes(data)).names()


def test_bytes_that_change_on_the_way_are_an_error_or_are_read_and_nothing_else(tmp_path):
    rng = np.random.default_rng(1)
    names = {name.replace(" ", "_"): array for name, array in ARRAYS.items()}
    seeds = [(".npy", npy(array)) for array in ARRAYS.values()]
    seeds += [(".npz", npz(packed, **names)) for packed in (False, True)] * 3
    seeds += [(".safetensors", tensors({"x": entry(), "y": entry("BF16", (2, 2), (8, 16))}, bytes(16)))] * 4
    errors = 0
    for _ in range(600):
        ending, data = seeds[rng.integers(len(seeds))]
        changed = bytearray(data)
        # Headers lie at both ends, and most of what can go wrong is there.
        near = min(int(rng.exponential(60)), len(data) - 1)
        changed[near if rng.random() < 0.5 else -1 - near] = rng.choice([0, 255, ord("9"), rng.integers(256)])
        if rng.random() < 0.2:
            del changed[rng.integers(len(data)) :]
        try:
            columns_of(opened(["file", "stream"][rng.integers(2)], tmp_path, ending, bytes(changed)))
        except InputError:
            errors += 1
    assert 100 < errors < 600


def test_the_trouble_of_a_folder_under_the_name(tmp_path):
    for ending, reader in READERS.items():
        with pytest.raises(InputError, match="could not be opened: Is a directory"):
            reader(File(tmp_path, ending), Broken()).names()


PEAK = """
import resource, sys
import numpy as np
from vendimeter.io.arrays import Npy, Npz
from vendimeter.data.collection import Broken
from vendimeter.io.sources import File
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
before, total = peak(), 0
for part in (Npz if sys.argv[1].endswith("z") else Npy)(File.of(sys.argv[1]), Broken()).parts(None, 1000):
    total += int(part.columns[sys.argv[2]].sum(dtype=np.int64))
print(total, peak() - before)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="memory is measured with getrusage")
@pytest.mark.parametrize(("name", "column"), [("x.npz", "images"), ("x.npy", "data")])
def test_of_a_large_file_little_is_held(tmp_path, name, column):
    images = np.tile(RNG.integers(256, size=(1, 4, 4, 3), dtype=np.uint8), (16_000, 16, 16, 1))  # 188 MiB
    data = npy(images)
    if name.endswith("z"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            file.writestr("images.npy", data)
    else:
        (tmp_path / name).write_bytes(data)
    command = [sys.executable, "-c", PEAK, tmp_path / name, column]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    total, grown = map(int, done.stdout.split())
    assert total == int(images.sum(dtype=np.int64))
    assert grown < 80  # MiB: a part of 12 MiB, the one before, and what NumPy takes


# --------------------------------------------------------------------------------------------------------- real files


@pytest.mark.parametrize(("name", "columns", "others"), [
    ("images/mnist_test.npz", ["images", "labels"], []),
    ("images/cifar100_test.npz", ["images", "labels"], ["classes"]),
    ("embeddings/cifar100_20classes_efficientnet_lite0.npz", ["emb", "row", "label"], ["classes"]),
    ("research_only/celeba_attributes.npz", ["attributes"], ["names"]),
])  # fmt: skip
def test_real_archives(shared_data, name, columns, others):
    path = shared_data / name
    if not path.exists():
        pytest.skip("this part of the data is not there")
    reader = Npz(File.of(path), Broken())
    assert sorted(reader.names()) == sorted([*columns, *others])
    found = columns_of(reader, columns, size=997)
    for column in others:
        found |= columns_of(Npz(File.of(path), Broken()), [column], size=17)
    with np.load(path) as expected:
        for column, rows in found.items():
            assert rows.dtype == expected[column].dtype
            np.testing.assert_array_equal(rows, expected[column])
