"""Readers of text: lines, SMILES, FASTA, JSON and tables of cells, against readers of other libraries."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vendimeter.data.collection import Broken
from vendimeter.errors import InputError
from vendimeter.io import json as json_module
from vendimeter.io import sources
from vendimeter.io.json import Json
from vendimeter.io.sources import File
from vendimeter.io.text import Delimited, Fasta, Lines, Smiles
from vendimeter.io.text_forms import numbers, vectors

READERS = {
    ".txt": Lines, ".smi": Smiles, ".fasta": Fasta, ".jsonl": Json, ".json": Json, ".csv": Delimited, ".tsv": Delimited,
}  # fmt: skip


def reader(ending: str, data: bytes | str, skip: bool = False):
    data = data.encode() if isinstance(data, str) else data
    return READERS[ending](File(None, ending, io.BytesIO(data)), Broken(skip))


def read(ending: str, data: bytes | str, columns=None, size: int = 1000, skip: bool = False):
    """All columns, the places of all records, and the broken ones."""
    found = reader(ending, data, skip)
    found.names()
    columns_of, places = {}, []
    for part in found.parts(columns, size):
        lengths = {len(column) for column in part.columns.values()}
        assert len(lengths) == 1
        assert 1 <= lengths.copy().pop() <= size
        for name, column in part.columns.items():
            columns_of.setdefault(name, []).extend(
                column.tolist() if isinstance(column, np.ndarray) else column
            )
        places.extend(part.place(i) for i in range(lengths.pop()))
    return columns_of, places, found.broken


def line_numbers(places: list[str]) -> list[int]:
    return [int(place.split("line ")[1].split()[0].rstrip(")")) for place in places]


# -------------------------------------------------------------------------------------------------------- all of them

GOOD = {
    ".txt": ("a dog\n\n  \ntwo boats \n", {"text": ["a dog", "two boats "]}, [1, 4]),
    ".smi": ("# made up\nCanonical_SMILES\tID\nCCO\n\nC[C@H](N)O  l alanine \n", {
        "smiles": ["CCO", "C[C@H](N)O"], "name": ["", "l alanine"]}, [3, 5]),
    ".fasta": (";x\n>a one  two\nMK V\nla\n*\n\n>b\nMK*\n", {
        "sequence": ["MKVla", "MK"], "id": ["a", "b"], "description": ["one  two", ""]}, [2, 7]),
    ".jsonl": ('{"t": "a", "v": [1, 2.5]}\n\n{"v": [0, -1e3], "t": "é\\ud83d\\ude00"}\n', {
        "t": ["a", "é😀"], "v": [[1, 2.5], [0, -1000]]}, [1, 3]),
    ".json": ('\n [{"t": "a", "g": ["x"]},\n\n{"g": [], "t": "b]"} ]\n', {
        "t": ["a", "b]"], "g": [["x"], []]}, [2, 4]),
    ".csv": ('t,"n, m"\n"a\n""b""",1\n\nc,\n5" pipe,x\n', {
        "t": ['a\n"b"', "c", '5" pipe'], "n, m": ["1", "", "x"]}, [2, 5, 6]),
    ".tsv": ('t\tn\na,b\t1\n"c\td"\t2\n', {"t": ["a,b", "c\td"], "n": ["1", "2"]}, [2, 3]),
}  # fmt: skip


@pytest.mark.parametrize("ending", GOOD)
@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 20])
def test_columns_and_places_wherever_the_chunks_and_parts_fall(monkeypatch, ending, chunk):
    monkeypatch.setattr(sources, "CHUNK", chunk)
    monkeypatch.setattr(json_module, "CHUNK", chunk)
    text, columns, lines = GOOD[ending]
    for size in (1, 2, 100):
        found, places, broken = read(ending, text, size=size)
        assert found == columns
        assert line_numbers(places) == lines
        assert broken.count == 0
    for data in (
        text.replace("\n", "\r\n"),
        "\ufeff" + text,
        text.rstrip("\n"),
        gzip.compress(text.encode()),
    ):
        assert read(ending, data)[0] == columns
    one = list(columns)[-1]
    assert read(ending, text, [one])[0] == {one: columns[one]}


@pytest.mark.parametrize("ending", GOOD)
def test_a_file_is_read_as_its_stream_is_and_only_once(tmp_path, ending):
    text, columns, _ = GOOD[ending]
    path = tmp_path / f"x{ending}"
    path.write_bytes(text.encode())
    found = READERS[ending](File.of(path), Broken())
    assert found.names() == list(columns)
    assert [list(part.columns.values()) for part in found.parts(None, 1)]
    with pytest.raises(RuntimeError, match="read already"):
        next(found.parts(None, 1))
    assert READERS[ending](File.of(path), Broken()).names() == list(columns)  # and closed without being read


@pytest.mark.parametrize("ending", GOOD)
@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_columns_and_no_parts(ending, data):
    found = reader(ending, data)
    assert found.names() == []
    assert list(found.parts(None, 10)) == []


def test_only_a_header(tmp_path):
    found = reader(".csv", "a,b\n")
    assert found.names() == ["a", "b"]
    assert list(found.parts(None, 10)) == []
    assert reader(".json", "[ ]\n").names() == []
    assert reader(".smi", "SMILES\n").names() == []


# Broken records: the form, the data, a word of the message, the line, and the records that are left.
BROKEN = [
    (".txt", b"a\nb\xff\nc\n", "is not UTF-8 text .byte 2 of the line", 2, 2),
    (".txt", b"a\nb\0\nc\n", "NUL byte", 2, 2),
    (".txt", bytes(range(1, 10)) + b"\0\x80\n", "NUL byte", 1, 0),
    (".smi", b"CC\nC\xff\n", "UTF-8", 2, 1),
    (".smi", b"CC a\nCCO,ethanol\nC\n", "comma in 'CCO,ethanol'.*white space.*csv", 2, 2),
    (".fasta", b"MK\nMK\n>a\nMK\n", "'MK' and stands before any header", 1, 1),
    (".fasta", b">a\n>b\nMK\n", "header without a sequence", 1, 1),
    (".fasta", b">b\nMK\n>a\n\n", "header without a sequence", 3, 1),
    (".fasta", b">a\n*\n>b\nMK\n", "header without a sequence", 1, 1),
    (".fasta", b">a\nMK\nM-K\nMK\n>b\nMK\n", "has '-' in a sequence.*gaps of an alignment", 3, 1),
    (".fasta", b">a\nM*K\n>b\nMK\n", "'\\*' inside a sequence", 2, 1),
    (".fasta", b">a\nMK*\nMK\n>b\nMK\n", "'\\*' inside a sequence", 3, 1),
    (".fasta", b">a\nMK9\n>b\nMK\n", "has '9' in a sequence", 2, 1),
    (".fasta", b">a\nMK\n>\xff\nMK\n>b\nMK\n", "UTF-8", 3, 2),
    (".fasta", b">a\nMK\nM\xff\n>b\nMK\n", "UTF-8", 3, 1),
    (".fasta", b"\xff\n>b\nMK\n", "UTF-8", 1, 1),
    (".jsonl", b'{"a": 1}\n{"a": \n', "line 2 of .*not valid JSON: Expecting value", 2, 1),
    (".jsonl", b'{"a": 1}\n{"a": 1} {"a": 2}\n', "Extra data", 2, 1),
    (".jsonl", b'{"a": 1}\n{"a": "\xff"}\n', "UTF-8", 2, 1),
    (".jsonl", b'{"a": 1}\n{"a": ' + b"[" * 100000 + b"\n", "nested too deeply", 2, 1),
    (".jsonl", b'{"a": 1}\n{"a": 2, "a": 3}\n', "has the field 'a' twice", 2, 1),
    (".jsonl", b'{"a": {"b": 1}}\n{"a": {"b": 2, "b": 3}}\n', "has the field 'b' twice", 2, 1),
    (".jsonl", b'{"a": 1}\n{"a": NaN}\n', "holds NaN, which is no JSON", 2, 1),
    (".jsonl", b'{"a": 1}\n{"a": [1, -Infinity]}\n', "holds -Infinity", 2, 1),
    (".jsonl", b'{"a": 1}\n{"a": 1e999}\n', "beyond any float64", 2, 1),
    (".jsonl", b'{"a": [1]}\n{"a": [1e999]}\n', "beyond any float64", 2, 1),
    (".jsonl", b'{"a": [1]}\n{"a": [1' + b"0" * 400 + b"]}\n", "beyond any float64", 2, 1),
    (".jsonl", b'{"a": [1]}\n{"a": [1' + b"0" * 5000 + b"]}\n", "a number that cannot be read", 2, 1),
    (".jsonl", b'{"a": 1}\n{"a": null}\n', "has null in the field 'a'", 2, 1),
    (".jsonl", b'{"a": 1}\n{"b": 1}\n', "differs from other records in its fields: 'a', 'b'", 2, 1),
    (".jsonl", b'{"a": 1}\n{}\n', "an object without fields", 2, 1),
    (".jsonl", b'{"a": 1}\n[1]\n', "is \\[1\\] and other records are objects", 2, 1),
    (".jsonl", b'{"a": 1}\ntrue\n', "is true; expected an object", 2, 1),
    (".jsonl", b'"a"\n{"a": 1}\n', "expected one form", 2, 1),
    (".jsonl", b'"a"\n7\n', "has a number, 7, in the field 'text' and other records a text", 2, 1),
    (".jsonl", b'{"a": "x"}\n{"a": 3}\n', "has a number, 3, in the field 'a' and other records a text", 2, 1),
    (".jsonl", b'{"a": [1, 2]}\n{"a": [1]}\n', "has 1 numbers .* other records 2 numbers; expected one length", 2, 1),
    (".jsonl", b'{"a": [1, 2]}\n{"a": [1, true]}\n', "no list of numbers", 2, 1),
    (".jsonl", b'{"a": "x"}\n{"a": "\\ud83d"}\n', "half of a surrogate pair", 2, 1),
    (".jsonl", b'[\n{"a": 1}\n', "one array of records in a .json file", 1, 1),
    (".json", b'[{"a": 1},\n{"a": NaN}, {"a": 2}]', "record 2 .line 2. of .*NaN", 2, 2),
    (".json", b'[{"a": 1},\n{"b": 2}]', "record 2 .line 2. of .*differs", 2, 1),
    (".csv", b"a,b\n1,2\n3\n", "has 1 cells and the first line names 2 columns", 3, 1),
    (".csv", b"a,b\n1,2,3\n4,5\n", "has 3 cells.*double quotes", 2, 1),
    (".csv", b'a,b\n"1\n2,",3,4\n4,5\n', "has 3 cells", 2, 1),
    (".csv", b'a,b\n"1"x,2\n4,5\n', "has 'x' after the quote that ends a cell", 2, 1),
    (".csv", b"a,b\n\xff,2\n4,5\n", "UTF-8", 2, 1),
    (".csv", b'a,b\n"1\n\xff",2\n4,5\n', "UTF-8", 2, 1),
]  # fmt: skip


@pytest.mark.parametrize(("ending", "data", "word", "line", "left"), BROKEN)
def test_a_broken_record_is_an_error_or_left_out(ending, data, word, line, left):
    with pytest.raises(InputError, match=f"(?s){word}.*skip_broken=True") as caught:
        read(ending, data)
    assert line_numbers([str(caught.value)]) == [line]
    columns, places, broken = read(ending, data, skip=True)
    assert (broken.count, len(places)) == (1, left)
    assert all(len(column) == left for column in columns.values())
    assert line_numbers([broken.records[0][0]]) == [line]


# What cannot be mended by leaving a record out.
DAMAGED = [
    (".txt", "a\nb\n".encode("utf-16"), "UTF-16"),
    (".txt", b"PK\x03\x04\x14\x00", "begins as a file of the form .npz"),
    (".txt", gzip.compress(b"a\n" * 999, mtime=0)[:-9], "cut short"),
    (".csv", b"a,a\n1,2\n", "line 1 of .* names the column 'a' twice"),
    (".csv", b"1,2\n3,4\n", "holds numbers; expected the names"),
    (".csv", b"01,02\n03,04\n", "holds numbers; expected the names"),
    (".csv", b'{"a": 1, "b": 2}\n{"a": 3, "b": 4}\n', "line 1 of .* JSON lines.*format=\"jsonl\""),
    (".csv", b'\n{"a":1,"b":"x"}\n', "line 2 of .* JSON lines"),
    (".tsv", b'{"a": 1}\n', "line 1 of .* JSON lines"),
    (".csv", b"a;b\n1;2\n", "is 'a;b'; expected columns separated by ','"),
    (".tsv", b"a,b\n1,2\n", r"expected columns separated by '\\t'"),
    (".csv", b"\xff,b\n1,2\n", "not UTF-8 text .*names the columns"),
    (".csv", b'a,b\n1,2\n"3,4\n5,6\n', "line 3 of .* opens a quote that is never closed"),
    (".json", b'[{"a": 1}, {"a": ', "record 2 .line 1. of standard input is not valid JSON"),
    (".json", b'[{"a": 1} {"a": 2}]', "goes on with '{' after record 1"),
    (".json", b'[{"a": 1},]', "is not valid JSON"),
    (".json", b'[{"a": 1}', "was cut short after record 1"),
    (".json", b"[1, 2]\n[3, 4]\n", "goes on after the end of its array.*jsonl"),
    (".json", b'[{"a": "\xff"}]', "is not UTF-8"),
    (".json", b"[" * 100000, "nested too deeply"),
    (".json", b'{\n "a": [1]\n}', "line 1 of .* one array of records in a .json file"),
]  # fmt: skip


@pytest.mark.parametrize(("ending", "data", "word"), DAMAGED)
def test_damage_of_a_file_is_an_error(ending, data, word):
    with pytest.raises(InputError, match=f"(?s){word}"):
        read(ending, data)
    if not word.startswith("line 1 of .* one array"):
        with pytest.raises(InputError, match=f"(?s){word}"):
            read(ending, data, skip=True)


# ------------------------------------------------------------------------------------------------------------- JSON


def test_values_without_names():
    assert read(".jsonl", '"a dog"\n"a cat"\n')[0] == {"text": ["a dog", "a cat"]}
    assert read(".jsonl", "[1, 2]\n[3, 4]\n")[0] == {"data": [[1, 2], [3, 4]]}
    assert read(".jsonl", "1\n2.5\n")[0] == {"data": [1, 2.5]}
    assert read(".json", '["a", "b"]')[0] == {"text": ["a", "b"]}
    bare = reader(".jsonl", '"a dog"\n')
    assert (bare.names(), bare.samples) == (["text"], "text")
    assert reader(".jsonl", '{"a": 1}\n').samples is None


def test_the_fields_are_those_of_the_first_hundred_records(monkeypatch):
    records = [
        {"id": i, **({"b": 2} if i % 2 else {"a": 1}), **({"late": 0} if i == 99 else {})} for i in range(101)
    ]
    lines = "".join(json.dumps(record) + "\n" for record in [*records, {"later": 0}])
    found = reader(".jsonl", lines)
    assert found.names() == ["id", "a", "b", "late"]
    assert found.default_columns() == ["id", "a"]
    assert read(".jsonl", lines, ["id"], skip=True)[0] == {"id": list(range(101))}
    with pytest.raises(InputError, match=r"line 1 of .* has no field 'b'"):
        read(".jsonl", lines, ["b"])
    columns, places, broken = read(".jsonl", lines, ["b"], skip=True)
    assert columns == {"b": [2] * 50}
    assert line_numbers(places) == list(range(2, 102, 2))
    assert (broken.count, line_numbers([place for place, _ in broken.records[:2]])) == (52, [1, 3])
    monkeypatch.setattr(json_module, "LOOKED_AT", 1)
    assert reader(".jsonl", lines).names() == ["id", "a"]


# Records of which the first is not as most are: the data, a word of the message, and what is left.
ODD_FIRST = [
    ('{"x": 0}\n{"t": "a"}\n{"t": "b"}\n', "has no field 't'", {"t": ["a", "b"]}),
    ('{"t": null}\n{"t": "a"}\n', "has null in the field 't'", {"t": ["a"]}),
    ('{"t": 5}\n{"t": "a"}\n{"t": "b"}\n', "has a number, 5, .* and other records a text", {"t": ["a", "b"]}),
    ('{"t": [1]}\n{"t": [1, 2]}\n{"t": [3, 4]}\n', "has 1 numbers .* other records 2 numbers", {"t": [[1, 2], [3, 4]]}),
    ('{"t": []}\n{"t": [1, 2]}\n{"t": [3, 4]}\n', "no list of numbers.* other records 2 numbers", {
        "t": [[1, 2], [3, 4]]}),
    ('7\n{"t": "a"}\n{"t": "b"}\n', "is 7 and other records are objects", {"t": ["a", "b"]}),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "word", "left"), ODD_FIRST)
@pytest.mark.parametrize("ending", [".jsonl", ".json"])
def test_what_most_records_have_decides_and_not_the_first(ending, lines, word, left):
    data = lines if ending == ".jsonl" else f"[{lines.strip().replace(chr(10), ',' + chr(10))}]"
    with pytest.raises(InputError, match=f"line 1.* of .*{word}"):
        read(ending, data, ["t"])
    columns, _, broken = read(ending, data, ["t"], skip=True)
    assert columns == left
    assert (broken.count, line_numbers([broken.records[0][0]])) == (1, [1])


def test_bare_values_and_one_object_before_them():
    with pytest.raises(InputError, match=r"line 1 of .* is \{'t': 'a'\} and other records are none"):
        read(".jsonl", '{"t": "a"}\n"b"\n"c"\n')
    assert read(".jsonl", '{"t": "a"}\n"b"\n"c"\n', skip=True)[0] == {"text": ["b", "c"]}
    assert read(".jsonl", '7\n"b"\n"c"\n', skip=True)[0] == {"text": ["b", "c"]}


@pytest.mark.parametrize(("ending", "data"), [
    (".jsonl", '{"a": 1}\n{"a": 2}\n{"a": oops\n'),
    (".json", '[{"a": 1}, {"a": 2}, {"a": NaN}]'),
    (".json", '[{"a": 1}, {"a": 2}, oops'),
])  # fmt: skip
def test_what_was_only_looked_at_is_no_error_before_its_turn(ending, data):
    found = reader(ending, data)
    assert found.names() == ["a"]
    parts = found.parts(["a"], 1)
    assert [next(parts).columns["a"] for _ in range(2)] == [[1], [2]]
    with pytest.raises(InputError, match=r"oops|NaN|not valid JSON"):
        next(parts)


def test_sound_records_after_any_number_of_broken_ones():
    columns, places, broken = read(".jsonl", "oops\n" * 500 + '{"a": 1}\n', skip=True)
    assert (columns, line_numbers(places), broken.count) == ({"a": [1]}, [501], 500)


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_the_work_grows_with_the_columns_and_not_with_their_square(ending):
    class Name(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Name.compared += 1
            return str.__eq__(self, other)

    names = [Name(f"c{i}") for i in range(500)]
    if ending == ".csv":
        found = reader(ending, ",".join("1" * 500) + "\n")
        assert found._check_names(1, names, "") is names
        found._names = names
        next(found.parts(names, 10))
    else:
        found = reader(ending, "1\n")
        found._object([*((name, 1) for name in names), (Name("c499"), 2)])
        assert "'c499' twice" in found._fault
    assert Name.compared < 5000


def test_only_lists_of_numbers_become_arrays():
    lines = [{"v": [1, 2], "b": [True, False], "g": ["x", "y"], "n": [[1], [2]], "e": [], "o": {"k": 1}}] * 3
    part = next(reader(".jsonl", "\n".join(map(json.dumps, lines))).parts(None, 10))
    assert part.columns["v"].dtype == np.float64
    assert part.columns["v"].shape == (3, 2)
    assert {name for name, column in part.columns.items() if isinstance(column, list)} == set("bgneo")
    assert part.columns["b"][0] == [True, False]


def test_lengths_are_compared_with_the_first_record_of_the_file_not_of_the_part():
    text = "".join(json.dumps({"v": [0.5] * width}) + "\n" for width in (3, 3, 2, 2, 3))
    with pytest.raises(InputError, match=r"line 3 of .*has 2 numbers .* other records 3 numbers"):
        read(".jsonl", text, size=2)
    columns, places, broken = read(".jsonl", text, size=2, skip=True)
    assert (len(columns["v"]), line_numbers(places), broken.count) == (3, [1, 2, 5], 2)


def test_only_wanted_fields_must_be_there():
    text = '{"a": 1, "b": null}\n{"a": 2, "c": NaN}\n{"a": 3}\n{"b": 4}\n'
    with pytest.raises(InputError, match=r"line 1 of .* null in the field 'b'"):
        read(".jsonl", text)
    columns, _, broken = read(".jsonl", text, ["a"], skip=True)
    assert columns == {"a": [1, 3]}
    assert [reason.split(";")[0] for _, reason in broken.records] == [
        "holds NaN, which is no JSON",
        "has no field 'a'",
    ]


@given(
    st.lists(
        st.recursive(
            st.text(max_size=4) | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
            ),
            max_leaves=6,
        ),
        max_size=5,
    ),
    st.integers(1, 9),
    st.sampled_from([None, 1]),
)
def test_an_array_is_read_piece_by_piece_as_the_json_module_reads_it_whole(values, chunk, indent):
    text = json.dumps([{"x": value} for value in values], indent=indent, ensure_ascii=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_module, "CHUNK", chunk)
        found = [
            record["x"] for _, record in reader(".json", text.encode("utf-8", "surrogatepass")).records()
        ]
    assert found == [record["x"] for record in json.loads(text)]


@pytest.mark.parametrize("chunk", range(1, 8))
def test_a_number_is_not_cut_in_two(monkeypatch, chunk):
    monkeypatch.setattr(json_module, "CHUNK", chunk)
    assert read(".json", "[1234, 567.875,-1e10 ,0.5]")[0] == {"data": [1234, 567.875, -1e10, 0.5]}


def test_a_large_array_on_one_line_is_read_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(json_module, "CHUNK", 1 << 16)
    data = json.dumps([{"text": f"a dog number {i}"} for i in range(40_000)]).encode()
    source = reader(".json", data)
    tracemalloc.start()
    count = sum(len(part.columns["text"]) for part in source.parts(None, 100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 40_000
    assert peak < len(data) / 2 < 1 << 20  # some chunks and a part


# ----------------------------------------------------------------------------------------------- cells, and what for

CELLS = st.text(st.sampled_from(list('ab",\n; \t')), max_size=5)


@given(
    st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), max_size=6)),
    st.booleans(),
)
def test_what_the_csv_module_writes_is_read_as_it_was(rows, tabs):
    rows = [row for row in rows if row != [""]]  # an empty line
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter="\t" if tabs else ",")
    header = [f"name {i}" for i in range(len(rows[0]) if rows else 1)]
    writer.writerows([header, *rows])
    found, _, _ = read(".tsv" if tabs else ".csv", sink.getvalue())
    assert found == ({name: list(cells) for name, *cells in zip(header, *rows, strict=True)} if rows else {})


def test_cells_larger_than_the_limit_of_the_csv_module():
    large = "x" * (csv.field_size_limit() + 1)
    assert read(".csv", f'a,b\n{large},"{large}\n{large}"\n')[0] == {"a": [large], "b": [f"{large}\n{large}"]}


def test_a_column_without_a_name_as_pandas_writes_its_index():
    assert read(".csv", ",0,1\n0,5,6\n")[0] == {"": ["0"], "0": ["5"], "1": ["6"]}


@pytest.mark.parametrize(("cells", "expected"), [
    (["1", " 2.5 ", "-1e3"], [1, 2.5, -1000]),
    (["1", "two"], None),
    (["", " "], None),
    (["1", "", "x"], None),
    (["1_2", "3_4"], None),
    (["0", "0.5", "-0.25", "0e3", "+0", "10"], [0, 0.5, -0.25, 0, 0, 10]),
    (["7", "007"], None),
    (["01", "02"], None),
    (["1", " -012"], None),
    (["00.5", "1"], None),
    (["01", ""], None),
    (["nan", "NaN"], None),
    (["inf", "-inf"], None),
    (["nan", "inf", ""], None),
    (["Nan", "Ann"], None),
    ([], None),
])  # fmt: skip
def test_numbers(cells, expected):
    found = numbers(cells, "n", str)
    assert found is cells if expected is None else found.tolist() == expected


@pytest.mark.parametrize(("cells", "expected"), [
    (["[1, 2.5]", " [3,4] "], [[1, 2.5], [3, 4]]),
    (["[1, 2]", "a dog"], None),
    (["[sigh]", "[1]"], None),
    (['["a"]', '["b"]'], None),
    (["[]", "[]"], None),
    (["", ""], None),
    ([], None),
    (np.eye(2), None),
])  # fmt: skip
def test_vectors(cells, expected):
    found = vectors(cells, "v", str)
    assert found is cells if expected is None else (found.dtype, found.tolist()) == (np.float64, expected)


@pytest.mark.parametrize(("function", "cells", "word"), [
    (numbers, ["1", ""], "line 1 has no value in the column 'x' of numbers"),
    (numbers, ["1", "nan"], "line 1 has no value"),
    (numbers, ["1", "2", " NaN "], "line 2 has no value"),
    (numbers, ["1", "2", "-inf"], "line 2 has '-inf' .* expected a finite number"),
    (vectors, ["[1, 2]", "[3]"], "line 1 has a vector of 1 numbers in the column 'x' and line 0 one of 2"),
    (vectors, ["[1, 2]", ""], "line 1 has '' in the column 'x' of vectors"),
    (vectors, ["[1, 2]", "[3, true]"], "line 1 has"),
    (vectors, ["[1, 2]", "[3, NaN]"], "line 1 has"),
    (vectors, ["[1, 2]", "[3, 1" + "0" * 400 + "]"], "line 1 has"),
    (vectors, ["[1, 2]", "[3, 4"], "line 1 has"),
    (vectors, ["[0.1 0.2]", "[0.3 0.4]"], "line 0 has .* write tolist"),
])  # fmt: skip
def test_cells_that_stand_for_nothing(function, cells, word):
    with pytest.raises(InputError, match=word):
        function(cells, "x", lambda i: f"line {i}")


# --------------------------------------------------------------------------------------------------------- real files


def test_captions_of_coco(shared_data):
    path = shared_data / "text" / "coco_val2017_captions.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        expected = [json.loads(line) for line in file]
    parts = list(Json(File.of(path), Broken()).parts(None, 999))
    assert len(parts) == 6
    for name in ("image_id", "captions"):
        assert [v for part in parts for v in part.columns[name]] == [record[name] for record in expected]
    assert parts[5].place(4) == f"line 5000 of {str(path)!r}"


def test_answers_of_a_benchmark(shared_data):
    path = shared_data / "text" / "noveltybench_curated_gemini15pro.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        expected = [json.loads(line) for line in file]
    part = next(Json(File.of(path), Broken()).parts(["generations", "partition"], 1000))
    assert part.columns["generations"] == [record["generations"] for record in expected]
    assert part.columns["partition"].tolist() == [record["partition"] for record in expected]


def test_molecules_of_moses(shared_data):
    path = shared_data / "molecules" / "moses_test.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        expected = [row["SMILES"] for row in csv.DictReader(file)]
    parts = Delimited(File.of(path), Broken()).parts(["SMILES"], 50_000)
    found = [text for part in parts for text in part.columns["SMILES"]]
    assert len(found) == 176_074
    assert found == expected


def test_orchids(shared_data):
    seq_io = pytest.importorskip("Bio.SeqIO")
    path = shared_data / "sequences" / "ls_orchid.fasta"
    with path.open() as file:
        expected = list(seq_io.parse(file, "fasta"))
    part = next(Fasta(File.of(path), Broken()).parts(None, 1000))
    assert part.columns["sequence"] == [str(record.seq) for record in expected]
    assert part.columns["id"] == [record.id for record in expected]
    whole = [f"{a} {b}" for a, b in zip(part.columns["id"], part.columns["description"], strict=True)]
    assert whole == [record.description for record in expected]
