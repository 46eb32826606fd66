"""How large a record may be, and how much a small file may stand for: every reader, the place, and what comes after."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import InputError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("rdkit")

LARGE = "x" * 5000
NOISE = np.random.default_rng(0).integers(97, 123, 600_000, np.uint8).tobytes().decode()


def text(path: Path, data: str) -> Path:
    path.write_text(data)
    return path


def packed(path: Path, data: str) -> Path:
    path.write_bytes(gzip.compress(data.encode(), 6 if len(data) < 1_000_000 else 1))
    return path


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def parquet(path: Path, column: Any, **options: Any) -> Path:
    pq.write_table(pa.table({"t": column}), path, **options)
    return path


def arrow(path: Path, column: Any) -> Path:
    table = pa.table({"t": column})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    return path


def dataset(path: Path, column: Any) -> Path:
    path.mkdir()
    table = pa.table({"t": column})
    with pa.ipc.new_stream(str(path / "data.arrow"), table.schema) as file:
        file.write_table(table)
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    return path


def repeated() -> Any:
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), pa.array(["a", LARGE, "b"]))


def structures() -> str:
    from rdkit import Chem

    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    return f"{block}$$$$\n{block}> <note>\n{LARGE}\n\n$$$$\n{block}$$$$\n"


# Three records, of which the second is too large: the file, the column, and the place of the record.
FILES: dict[str, tuple[Callable[[Path], Path], str | None, str]] = {
    "txt": (lambda to: text(to / "a.txt", f"a\n{LARGE}\nb\n"), None, "line 2"),
    "txt, packed": (lambda to: packed(to / "a.txt.gz", f"a\n{NOISE[:5000]}\nb\n"), None, "line 2"),
    "smi": (lambda to: text(to / "a.smi", f"CCO\nCCN {LARGE}\nCCC\n"), None, "line 2"),
    "csv": (lambda to: text(to / "a.csv", f"t,n\na,1\n{LARGE},2\nb,3\n"), "t", "line 3"),
    "csv, quoted": (lambda to: text(to / "a.csv", 't,n\na,1\n"' + "x\n" * 2500 + '",2\nb,3\n'), "t", "line 3"),
    "csv, quoted, in two cells": (
        lambda to: text(to / "a.csv", 't,u\na,1\n"' + "x\n" * 1500 + '","' + "y\n" * 1500 + '"\nb,3\n'), "t", "line 3",
    ),
    "tsv": (lambda to: text(to / "a.tsv", f"t\tn\na\t1\n{LARGE}\t2\nb\t3\n"), "t", "line 3"),
    "jsonl": (lambda to: text(to / "a.jsonl", lines({"t": "a"}, {"t": LARGE}, {"t": "b"})), "t", "line 2"),
    "json": (
        lambda to: text(
            to / "a.json", json.dumps([{"t": "a"}, {"t": LARGE, "u": [{"v": '\\"]'}]}, {"t": "b"}], indent=1)
        ),
        "t", "record 2 (line 5)",
    ),
    "fasta": (lambda to: text(to / "a.fasta", ">a\nAC\n>b\n" + "ACGT\n" * 1250 + ">c\nGT\n"), None, "line 3"),
    "fasta, one line": (lambda to: text(to / "a.fasta", f">a\nAC\n>b\n{'A' * 5000}\n>c\nGT\n"), None, "line 4"),
    "sdf": (lambda to: text(to / "a.sdf", structures()), "molecule", "structure 2 (line 12)"),
    "parquet": (lambda to: parquet(to / "a.parquet", ["a", LARGE, "b"]), "t", "row 1"),
    "parquet, plain": (lambda to: parquet(to / "a.parquet", ["a", LARGE, "b"], use_dictionary=False), "t", "row 1"),
    "parquet, lists": (lambda to: parquet(to / "a.parquet", [["a"], ["x"] * 5000, ["b"]]), "t", "row 1"),
    "parquet, vectors": (lambda to: parquet(to / "a.parquet", [[1.0], [1.0] * 600, [2.0]]), "t", "row 1"),
    "arrow": (lambda to: arrow(to / "a.arrow", ["a", LARGE, "b"]), "t", "row 1"),
    "arrow, bytes": (lambda to: arrow(to / "a.arrow", pa.array([b"a", LARGE.encode(), b"b"])), "t", "row 1"),
    "arrow, a dictionary": (lambda to: arrow(to / "a.arrow", repeated()), "t", "row 1"),
    "arrow, runs": (
        lambda to: arrow(to / "a.arrow", pa.RunEndEncodedArray.from_arrays([1, 2, 3], ["a", LARGE, "b"])), "t", "row 1",
    ),
    "arrow, views": (lambda to: arrow(to / "a.arrow", pa.array(["a", LARGE, "b"], pa.string_view())), "t", "row 1"),
    "arrow, records": (
        lambda to: arrow(to / "a.arrow", pa.array([{"k": "a"}, {"k": LARGE}, {"k": "b"}])), "t", "row 1",
    ),
    "Hugging Face": (lambda to: dataset(to / "a", ["a", LARGE, "b"]), "t", "row 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_a_record_that_is_too_large_is_a_broken_one(tmp_path: Path, case: str) -> None:
    write, column, place = FILES[case]
    path = write(tmp_path)
    assert len(vm.read(path, samples=column, kind="tags" if "lists" in case else None, skip_broken=True)) >= 2
    kind = "tags" if "lists" in case or "vectors" in case else None
    for limit in (4096, "4 KiB"):
        with pytest.raises(InputError) as caught:
            vm.read(path, samples=column, kind=kind, max_record=limit)
        message = str(caught.value)
        assert message.startswith(f"{place} of "), message
        assert "4 KiB" in message
        assert "max_record (--max-record) is raised" in message
        assert "skip_broken=True (--skip-broken)" in message
    found = vm.read(path, samples=column, kind=kind, max_record=4096, skip_broken=True)
    assert len(found) == 2
    assert found.skipped.count == 1
    assert found.skipped.records[0][0].startswith(f"{place} of ")
    batches = list(
        vm.read_batches(path, samples=column, kind=kind, max_record=4096, skip_broken=True, size=1)
    )
    assert [len(batch) for batch in batches] == [1, 1]
    assert len(vm.read(path, samples=column, kind=kind, max_record="1 MiB")) == 3


def safetensors(path: Path) -> Path:
    header = json.dumps({"t": {"dtype": "F32", "shape": [3, 2000], "data_offsets": [0, 24_000]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(24_000))
    return path


def saved(path: Path, save: Callable[..., None], *arrays: Any) -> Path:
    save(path, *arrays)
    return path


ARRAYS: dict[str, Callable[[Path], Path]] = {
    "npy": lambda to: saved(to / "a.npy", np.save, np.ones((3, 2000), np.float32)),
    "npy, texts": lambda to: saved(to / "a.npy", np.save, np.array(["a", LARGE])),
    "npz": lambda to: saved(to / "a.npz", np.savez_compressed, np.ones((3, 2000), np.float32)),
    "npz, texts": lambda to: saved(to / "a.npz", np.savez_compressed, np.full((3, 500), "a")),
    "safetensors": lambda to: safetensors(to / "a.safetensors"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_rows_of_an_array_are_all_too_large_or_none(tmp_path: Path, case: str) -> None:
    path = ARRAYS[case](tmp_path)
    for skip in (False, True):
        with pytest.raises(
            InputError, match=r"^row 0 of .* expected .*at most .*max_record \(--max-record\) is raised"
        ):
            vm.read(path, max_record=4096, skip_broken=skip)
    assert len(vm.read(path, max_record="1 MiB")) in (2, 3)


@pytest.mark.parametrize("value", [0, -1, "much", None, "4 parsecs", 1.5j])
def test_a_limit_that_is_none(tmp_path: Path, value: Any) -> None:
    with pytest.raises(InputError, match="max_record="):
        vm.read(text(tmp_path / "a.txt", "a\n"), max_record=value)


def test_it_reaches_streams_and_what_is_written(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", [[1.0] * 600, [2.0] * 600])
    with pytest.raises(InputError, match=r"row 0 of .* has 4\.69 KiB; expected a record of at most 4 KiB"):
        vm.score_stream(path, max_record=4096)
    with pytest.raises(InputError, match="expected a record of at most 4 KiB"):
        vm.write_contributions(path, tmp_path / "out.parquet", max_record=4096)
    assert vm.score_stream(path, max_record="1 MiB") == pytest.approx(1)


# ------------------------------------------------------------------------------- more than the file could stand for


def test_a_record_of_many_values_is_refused_before_they_are_made(tmp_path: Path) -> None:
    crowd = "[" + "[]," * 1000 + "[]]"
    path = text(tmp_path / "a.jsonl", lines({"t": "a"}) + f'{{"t": {crowd}}}\n' + lines({"t": "b"}))
    with pytest.raises(
        InputError, match=r"line 2 of .* holds 1,001 values; expected a record of at most 204"
    ):
        vm.read(path, samples="t", max_record=4096)
    assert len(vm.read(path, samples="t", max_record=4096, skip_broken=True)) == 2
    path = text(tmp_path / "a.csv", f"t,n\n1,2\n{'ab,' * 1000}\n3,4\n")
    with pytest.raises(InputError, match=r"line 3 of .* holds 1,001 values"):
        vm.read(path, samples="t", max_record=4096)
    assert vm.read(path, samples="t", max_record=4096, skip_broken=True).samples.tolist() == [1, 3]
    path = text(tmp_path / "a.csv", ",".join(f"c{i}" for i in range(700)) + "\n")
    with pytest.raises(InputError, match=r"line 1 of .* holds 700 values"):
        vm.read(path, max_record=4096)


def test_a_quote_that_is_never_closed_is_told_at_the_limit(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", 't\n"' + "x\n" * 5000)
    with pytest.raises(InputError, match=r"line 2 of .* goes on for more than 4 KiB in a quoted cell"):
        vm.read(path, max_record=4096)
    with pytest.raises(InputError, match=r"line 2 of .* never closed"):
        vm.read(path, max_record=4096, skip_broken=True)


def test_a_record_of_a_small_packed_file_may_be_an_eighth(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.txt.gz", "x" * 300_000 + "\nb\n")
    assert path.stat().st_size < 1000
    with pytest.raises(InputError, match=r"line 1 of .* has more than 128 KiB"):
        vm.read(path, max_record="1 MiB")
    assert len(vm.read(path, max_record="4 MiB")) == 2
    path = parquet(tmp_path / "a.parquet", ["x" * 300_000, "b"], compression="zstd")
    with pytest.raises(InputError, match=r"row 0 of .* has 293 KiB; expected a record of at most 128 KiB"):
        vm.read(path, max_record="1 MiB")
    assert len(vm.read(path, max_record="4 MiB")) == 2
    assert len(vm.read(packed(tmp_path / "a.txt.gz", NOISE), max_record="1 MiB")) == 1


COPIES = 20_000
SHARED: dict[str, Callable[[], Any]] = {
    "a dictionary": lambda: pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(COPIES, np.int8)), ["x" * 50_000]
    ),
    "a dictionary of lists": lambda: pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(COPIES, np.int8)), pa.array([list(range(10_000))])
    ),
    "runs": lambda: pa.RunEndEncodedArray.from_arrays([COPIES], ["x" * 50_000]),
    "views": lambda: pa.Array.from_buffers(
        pa.string_view(),
        COPIES,
        [
            None,
            pa.py_buffer(np.array([(50_000, b"xxxx", 0, 0)], "<i4,S4,<i4,<i4").repeat(COPIES).tobytes()),
            pa.py_buffer(b"x" * 50_000),
        ],
    ),
    "views of lists": lambda: pa.ListViewArray.from_arrays(
        pa.array(np.zeros(COPIES, np.int32)),
        pa.array(np.full(COPIES, 50_000, np.int32)),
        pa.array(np.zeros(50_000)),
    ),
    "a union": lambda: pa.UnionArray.from_dense(
        pa.array(np.zeros(COPIES, np.int8)), pa.array(np.zeros(COPIES, np.int32)), [pa.array(["x" * 50_000])]
    ),
    "gaps": lambda: pa.Array.from_buffers(pa.null(), 1 << 40, [None]),
}


@pytest.mark.parametrize("case", SHARED)
def test_rows_that_share_what_they_have_stand_for_more_than_the_file(tmp_path: Path, case: str) -> None:
    table = pa.table({"t": SHARED[case]()})
    path, options = tmp_path / "a.arrow", pa.ipc.IpcWriteOptions(allow_64bit=True)
    with pa.ipc.new_file(path, table.schema, options=options) as file:
        file.write_table(table)
    with pytest.raises(
        InputError, match=r"'.*a\.arrow' has .* (stand for|says that it holds) .* made to fill the memory"
    ):
        vm.read(path, samples="t", max_record="1 MiB", kind="tags", skip_broken=True)


def test_short_texts_may_come_again_as_often_as_they_like(tmp_path: Path) -> None:
    texts = pa.array(["positive", "negative"] * 500_000).dictionary_encode()
    for path in (parquet(tmp_path / "a.parquet", texts), arrow(tmp_path / "a.arrow", texts)):
        assert path.stat().st_size < 8_000_000
        found = vm.read(path, samples="t")
        assert len(found) == 1_000_000
        assert len({id(one) for one in found.samples[:1000]}) == 2


# ------------------------------------------------------------------------------------------------ what must not be hurt


def test_what_is_large_and_sound_is_read(tmp_path: Path) -> None:
    letters = np.random.default_rng(0).choice(list("ACGT"), 5_000_000)
    genome = "".join(letters)
    folded = "\n".join(genome[i : i + 80] for i in range(0, len(genome), 80))
    path = packed(tmp_path / "genome.fasta.gz", f">one\n{folded}\n>protein\n{'MKVLA' * 8000}\n")
    assert [len(one) for one in vm.read(path)] == [5_000_000, 40_000]
    document = "a dog runs over the hill, and sleeps; " * 140_000  # 5 MB
    assert len(vm.read(text(tmp_path / "a.jsonl", lines(*[{"t": document}] * 3)), samples="t")) == 3
    again = "a dog runs over the green hill\na cat sleeps on the mat\n" * 100_000
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(again.encode()))
    assert path.stat().st_size * 200 < len(again)
    assert len(vm.read(path)) == 200_000
    rows = np.random.default_rng(0).standard_normal((20, 100_000), dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 100_000)
    np.testing.assert_array_equal(
        vm.read(parquet(tmp_path / "wide.parquet", column), samples="t").samples, rows
    )


# ----------------------------------------------------------------------------------------- a process of its own

SCRIPT = """
import resource, sys
import vendimeter as vm
from vendimeter.errors import InputError
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
vm.score(vm.read(sys.argv[1], samples=sys.argv[4] or None), sys.argv[3])
before = peak()
try:
    print(vm.score(vm.read(sys.argv[2], samples=sys.argv[4] or None), sys.argv[3]))
except InputError as error:
    print(error)
print(peak() - before)
"""


def a_line(path: Path) -> Path:
    member = gzip.compress(b"a" * (32 << 20), mtime=0)
    path.write_bytes(member * 32)  # a gibibyte
    return path


BOMBS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], Path], str, str, str]] = {
    "a gzip of one endless line": (
        lambda to: text(to / "small.txt", "a\nb\n"), lambda to: a_line(to / "bomb.txt.gz"), "ngram", "",
        r"line 1 of '.*bomb\.txt\.gz' has more than",
    ),
    "a text in the dictionary of a Parquet file": (
        lambda to: parquet(to / "small.parquet", ["a", "b"]),
        lambda to: parquet(to / "bomb.parquet", pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(1_000_000, np.int8)), ["ab " * 350_000])),
        "ngram", "t", r"'.*bomb\.parquet' has .* and its rows stand for",
    ),
    "a molecule of 100,000 atoms": (
        lambda to: text(to / "small.smi", "CCO\nCCN\n"),
        lambda to: text(to / "bomb.smi", "CCO\n" + "C" * 100_000 + "\n"),
        "morgan", "", r"item 1 \(line 2 of '.*bomb\.smi'\), .* has 100,000 characters",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BOMBS)
def test_a_bomb_takes_little_memory(tmp_path: Path, case: str) -> None:
    small, bomb, kernel, column, expected = BOMBS[case]
    command = [sys.executable, "-c", SCRIPT, str(small(tmp_path)), str(bomb(tmp_path)), kernel, column]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *said, grown = done.stdout.splitlines()
    assert re.search(expected, said[0])
    if sys.platform == "linux":  # elsewhere ru_maxrss is in other units
        assert float(grown) < 200


READ = """
import re, sys
import vendimeter as vm
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
def length(path):
    return len(str(vm.read(path, format=sys.argv[1])[0]))
length(sys.argv[2])
before = peak()
try:
    print(length(sys.argv[3]))
except vm.errors.InputError as error:
    print(error)
print(peak() - before)
"""
SHORT_LINES = "xy\n" * 4_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
@pytest.mark.parametrize(
    ("form", "small", "large", "expected"),
    [
        ("fasta", ">a\nxy\n", f">a\n{SHORT_LINES}", "8000000"),
        ("csv", 't\n"a"\n', f't\n"{SHORT_LINES}"\n', "12000000"),
        ("sdf", structures(), SHORT_LINES, "structure 1 .* has no end"),
    ],
)
def test_a_record_of_many_short_lines_takes_what_its_text_takes(
    tmp_path: Path, form: str, small: str, large: str, expected: str
) -> None:
    files = [text(tmp_path / "small", small), text(tmp_path / "large", large)]
    command = [sys.executable, "-c", READ, form, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *said, grown = done.stdout.splitlines()
    assert re.search(expected, said[0])
    assert float(grown) < 170
