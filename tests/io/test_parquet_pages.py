"""What the heads of pages say of a Parquet file, beside what pyarrow says, and what is refused before it is read."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vendimeter.data.collection import Broken
from vendimeter.errors import InputError
from vendimeter.io import parquet_pages
from vendimeter.io.arrow import Parquet
from vendimeter.io.parquet_pages import plan_of
from vendimeter.io.sources import File

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

RNG = np.random.default_rng(0)
WORDS = [f"word {i} of some" for i in RNG.integers(40, size=3000)]
TABLE = pa.table({
    "n": RNG.standard_normal(3000),
    "t": WORDS,
    "l": [RNG.integers(5, size=k).tolist() if k else None for k in RNG.integers(6, size=3000).tolist()],
    "s": [{"a": i, "b": {"c": str(i), "d": [[i], [], [i, i]]}} for i in range(3000)],
    "f": pa.FixedSizeListArray.from_arrays(pa.array(RNG.standard_normal(6000).astype(np.float16)), 2),
    "m": pa.array([[("k", i)] for i in range(3000)], pa.map_(pa.string(), pa.int64())),
    "é": [None] * 1500 + [True] * 1500,
})  # fmt: skip


def contents_of(path: Path, wanted: list[str]) -> Any:
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    return parquet_pages._contents(data[-8 - length : -8], wanted)


WAYS = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "second form of pages": {"data_page_version": "2.0", "compression": "zstd"},
    "small pages": {"data_page_size": 500, "write_page_index": True},
    "long statistics": {"compression": "gzip", "write_statistics": True},
    "brotli": {"compression": "brotli"},
    "lz4": {"compression": "lz4", "version": "1.0"},
}


@pytest.mark.parametrize("way", WAYS)
def test_the_pages_are_those_that_pyarrow_knows(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=1100, **WAYS[way])
    metadata = pq.read_metadata(path)
    names = TABLE.column_names
    found = contents_of(path, names)
    assert [leaf.column for leaf in found.leaves] == [
        metadata.schema.column(i).path.split(".")[0] for i in range(metadata.num_columns)
    ]
    assert [leaf.depth for leaf in found.leaves] == [
        metadata.schema.column(i).max_repetition_level for i in range(metadata.num_columns)
    ]
    with path.open("rb") as opened:
        for g, (rows, chunks) in enumerate(found.groups):
            group = metadata.row_group(g)
            assert rows == group.num_rows
            assert list(chunks) == list(range(group.num_columns))
            for i, chunk in chunks.items():
                column, leaf = group.column(i), found.leaves[i]
                assert (chunk.values, chunk.size) == (column.num_values, column.total_compressed_size)
                pages = list(parquet_pages._pages(opened, chunk))
                assert sum(page.values for page in pages if page.kind != 2) == column.num_values
                assert pages[-1].start + pages[-1].packed == chunk.start + chunk.size
                assert sum(page.unpacked for page in pages) <= column.total_uncompressed_size
                assert any(page.kind == 2 for page in pages) == (column.dictionary_page_offset is not None)
                if leaf.depth == 1 and way != "lz4":
                    values = TABLE[leaf.column].slice(1100 * g, rows).to_pylist()
                    longest = max(max(1, len(value or ())) for value in values)
                    data = [page for page in pages if page.kind != 2]
                    assert parquet_pages._longest_list(opened, data, chunk.codec, 1) == longest
                if leaf.column == "t" and pages[0].kind == 2:
                    longest = max(map(len, WORDS[1100 * g : 1100 * g + rows]))
                    assert parquet_pages._longest_entry(opened, pages[0], chunk.codec) == longest
    only = contents_of(path, ["l"])
    assert [list(chunks) for _, chunks in only.groups] == [[2]] * 3


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_longest_list_whatever_its_levels_look_like(depth: int) -> None:
    """Against levels written out one by one: runs, groups of eight, and both across the ends of pages."""
    bits = depth.bit_length()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        levels, pages = [], []
        for _ in range(3):
            data, own = b"", []
            for _ in range(int(rng.integers(1, 6))):
                if rng.random() < 0.5:
                    count, level = int(rng.integers(1, 200)), int(rng.integers(depth + 1))
                    data += _varint(count << 1) + bytes([level])
                    own += [level] * count
                else:
                    group = rng.integers(depth + 1, size=8 * int(rng.integers(1, 4)))
                    packed = np.packbits(
                        (group[:, None] >> np.arange(bits) & 1).astype(np.uint8).ravel(), bitorder="little"
                    )
                    data += _varint((len(group) // 8) << 1 | 1) + packed.tobytes()
                    own += group.tolist()
            pages.append((data, len(own)))
            levels += own
        lists = parquet_pages._Lists(depth)
        for data, count in pages:
            lists.add(data, count)
        starts = [i for i, level in enumerate(levels) if level == 0]
        ends = [*starts, len(levels)]
        expected = max([b - a for a, b in itertools.pairwise(ends)] + [ends[0]])
        assert lists.longest == expected, seed


def _varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def plan(path: Path, columns: list[str], texts: list[str], rows: int = 4096) -> Any:
    with path.open("rb") as opened:
        return plan_of(opened, path.stat().st_size, columns, texts, rows, File.of(path))


def test_texts_stay_dictionaries_where_all_pages_are(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=1000)
    assert plan(path, ["t", "n"], ["t"]).texts == ["t"]
    assert plan(path, ["t", "n"], []).texts == []
    assert plan(path, ["t", "n"], ["t"]).rows == [4096] * 3
    # Of a dictionary that was full the rest is plain.
    mixed = pa.table({"t": [f"{i:040}" for i in range(3000)]})
    pq.write_table(mixed, path, dictionary_pagesize_limit=2000, data_page_size=1000, write_batch_size=50)
    assert plan(path, ["t"], ["t"]).texts == []
    assert plan(path, ["t"], ["t"]).rows == [4096]


def test_rows_at_a_time_go_by_the_longest_entry(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = ["x" * 200_000] + [f"{i:040}" for i in range(3000)]
    pq.write_table(
        pa.table({"t": texts}),
        path,
        dictionary_pagesize_limit=210_000,
        data_page_size=1000,
        write_batch_size=50,
    )
    assert plan(path, ["t"], ["t"]).rows == [(64 << 20) // 200_000]
    assert sum(len(part.columns["t"]) for part in Parquet(File.of(path), Broken()).parts(["t"], 4096)) == 3001
    pq.write_table(
        pa.table({"t": texts}),
        path,
        use_dictionary=False,
        column_encoding={"t": "DELTA_BYTE_ARRAY"},
        compression="none",
    )
    (rows,) = plan(path, ["t"], ["t"]).rows
    assert rows <= (64 << 20) // 200_000
    assert [
        value for part in Parquet(File.of(path), Broken()).parts(["t"], 4096) for value in part.columns["t"]
    ] == texts


def test_a_page_that_unpacks_to_far_too_much_is_refused_before_that(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"x": ["x" * (80 << 20), "y"]})
    pq.write_table(table, path, use_dictionary=False, compression="zstd")
    with pytest.raises(InputError, match=r"has a page of .* KiB in the column 'x' that unpacks to 80 MiB"):
        list(Parquet(replace(File.of(path), max_record=1 << 20), Broken(skip=True)).parts(None, 100))
    # A text that is too large for a record, in a page that is not, is left out.
    noise = RNG.integers(97, 123, 2 << 20, np.uint8).tobytes().decode()
    pq.write_table(pa.table({"x": [noise, "y"]}), path, use_dictionary=False, compression="zstd")
    broken = Broken(skip=True)
    reader = Parquet(replace(File.of(path), max_record=1 << 20), broken)
    assert [part.columns for part in reader.parts(None, 100)] == [{"x": ["y"]}]
    assert broken.records[0][1].startswith("has 2 MiB; expected a record of at most 1 MiB")


def test_a_long_list_of_a_few_bytes_is_refused_before_it_is_made(tmp_path: Path) -> None:
    path, size = tmp_path / "a.parquet", 20_000_000
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, size, size + 1], pa.int32()), pa.array(np.zeros(size + 1, np.int32))
    )
    for version in ("1.0", "2.0"):
        pq.write_table(pa.table({"v": lists}), path, data_page_version=version)
        reader = Parquet(replace(File.of(path), max_record=1 << 20), Broken(skip=True))
        with pytest.raises(
            InputError, match=r"a list of 19,999,998 values in the column 'v', among rows 0 to 2;"
        ):
            list(reader.parts(None, 100))


def test_many_short_lists_of_few_bytes_are_read(tmp_path: Path) -> None:
    """Fingerprints: 64 times as large as the file, and each a small record."""
    bits = (RNG.random((20_000, 1024)) < 0.02).astype(np.int64)
    column = pa.ListArray.from_arrays(
        pa.array(np.arange(0, bits.size + 1, 1024), pa.int32()), pa.array(bits.ravel())
    )
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": column}), path, compression="zstd", row_group_size=20_000)
    assert path.stat().st_size * 64 < bits.nbytes
    reader = Parquet(File.of(path), Broken())
    assert sum(int(part.columns["v"].sum()) for part in reader.parts(["v"], 4096)) == bits.sum()


@pytest.mark.parametrize("seed", range(4))
def test_damaged_contents_are_an_error_of_ours(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE.slice(0, 300), path)
    whole, rng = path.read_bytes(), np.random.default_rng(seed)
    length = int.from_bytes(whole[-8:-4], "little")
    for _ in range(150):
        data = bytearray(whole)
        for at in rng.integers(len(whole) - 8 - length, len(whole) - 4, int(rng.integers(1, 4))):
            data[at] = int(rng.integers(256))
        path.write_bytes(data)
        with suppress(InputError):
            plan(path, TABLE.column_names, ["t"])
