"""Files, streams and their lines; what a stream without a name is."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vendimeter.errors import EmptyError, InputError
from vendimeter.io import sources
from vendimeter.io.sources import File, files_of, sniff


def stream(data: bytes, ending: str = "", most: int = sources.MAX_RECORD) -> File:
    return File(None, ending, io.BytesIO(data), most)


def texts(file: File) -> list[str]:
    found = list(file.lines())
    assert [number for number, _, _ in found] == list(range(1, len(found) + 1))
    return [text for _, text, _ in found]


PIECES = st.sampled_from(["a", "é", "\u2028", "\x0b", "\x85", "\n", "\r", "\r\n"])


@given(st.lists(PIECES, max_size=12), st.integers(1, 5))
def test_lines_end_as_universal_newlines_do_wherever_the_chunks_fall(pieces, chunk):
    text = "".join(pieces)
    expected = [
        line.rstrip("\n") for line in io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8", newline=None)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "CHUNK", chunk)
        assert texts(stream(text.encode())) == expected


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_and_a_stream_give_the_same_lines_packed_or_not(tmp_path, packed):
    data = "\ufeffone\r\n\ntwo é".encode()
    data = gzip.compress(data) if packed else data
    path = tmp_path / "a.txt.gz"
    path.write_bytes(data)
    assert texts(File.of(path)) == texts(stream(data)) == ["one", "", "two é"]
    assert File.of(path).ending == ".txt"


def test_standard_input_stays_open():
    source = io.BytesIO(gzip.compress(b"a\n"))
    assert texts(File(None, ".txt", source)) == ["a"]
    assert not source.closed
    plain = io.BytesIO(b"a\n")
    assert texts(File(None, ".txt", plain)) == ["a"]
    assert not plain.closed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_under_a_path_is_looked_into_and_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b'{"a": 1}\n{"a": 2}\n',))
    writer.start()
    file = File.of(path)
    assert sniff(file) == ".jsonl"
    assert texts(file) == ['{"a": 1}', '{"a": 2}']
    writer.join()


def test_a_line_that_is_no_utf8_or_has_a_nul_has_a_fault_and_the_others_none():
    found = list(stream("fine\né\n".encode() + b"ab\xffc\nn\0l\nlast").lines())
    faults = {number: fault for number, _, fault in found if fault}
    assert list(faults) == [3, 4]
    assert "not UTF-8 text (byte 3 of the line)" in faults[3]
    assert "NUL byte" in faults[4]


LONG = "has more than 1 KiB; expected a record of at most 1 KiB, unless max_record (--max-record) is raised"


@pytest.mark.parametrize("chunk", [1, 7, 100, 5000])
def test_a_long_line_has_a_fault_in_place_of_its_text_and_the_others_are_read(monkeypatch, chunk):
    monkeypatch.setattr(sources, "CHUNK", chunk)
    lines = ["b", "a" * 1024, "", "c" * 1025, "", "d", "e" * 9000, "f" * 1100, "é" * 512, "é" * 513, "g"]
    expected = [
        (i, "", LONG) if len(line.encode()) > 1024 else (i, line, "") for i, line in enumerate(lines, 1)
    ]
    for end in ("\n", "\r", "\r\n"):
        for last in ("", end):
            found = list(stream((end.join(lines) + last).encode(), most=1024).lines())
            assert [(number, text, fault) for number, text, fault in found] == expected
    assert list(stream(b"a" * 5000, most=1024).lines()) == [(1, "", LONG)]


def test_of_a_long_line_nothing_is_held(monkeypatch):
    """A line of 64 MiB in a file of which no more than a mebibyte may be held."""
    seen = []

    class Endless(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, into):
            seen.append(len(into))
            into[:] = b"a" * len(into)
            if sum(seen) > 64 << 20:
                into[-2:] = b"\nb"
                self.readinto = lambda into: 0
            return len(into)

    tracemalloc.start()
    file = File(None, ".txt", io.BufferedReader(Endless(), 1 << 16), 1 << 20)
    assert [fault[:21] for _, _, fault in file.lines()] == ["has more than 1 MiB; ", ""]
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("named", [False, True])
def test_a_gzip_bomb_is_refused_from_files_and_streams(tmp_path, named):
    bomb = gzip.compress(b"\n" * (8 << 20))
    assert len(bomb) * sources.LARGEST_RATIO < 8 << 20
    (tmp_path / "b.txt.gz").write_bytes(bomb)
    file = File.of(tmp_path / "b.txt.gz") if named else stream(bomb)
    file.max_record = 1 << 20
    with pytest.raises(InputError, match="unpacks to more than 400 times its size"):
        sum(1 for _ in file.lines())


def test_lines_and_values_count_beside_their_bytes():
    data = gzip.compress(b"a,a\n" * 100_000)  # 400 kB, and 200,000 values of 8 bytes
    assert len(data) * sources.LARGEST_RATIO < 1_000_000
    assert len(texts(stream(data, most=2_000_000))) == 100_000
    with pytest.raises(InputError, match="unpacks to more than 400 times its size"):
        sum(1 for _ in stream(data, most=1_200_000).lines(b","))
    assert sum(1 for _ in stream(data, most=1_200_000).lines()) == 100_000


def test_text_that_packs_well_is_no_bomb():
    rng = np.random.default_rng(0)
    words = "".join(f"a dog {value} runs over the green hill\n" for value in rng.integers(10, size=200_000))
    assert len(texts(stream(gzip.compress(words.encode()), most=1 << 20))) == 200_000


@pytest.mark.parametrize(("data", "word"), [
    (gzip.compress(b"a\n" * 1000, mtime=0)[:-9], "cut short"),
    (gzip.compress(b"a\n" * 1000, mtime=0)[:12] + b"\xff" * 9, "damaged"),
    (gzip.compress(b"a\n", mtime=0) + b"junk", "damaged"),
    ("a\n".encode("utf-16"), "UTF-16"),
    (b"PK\x03\x04....", "begins as a file of the form .npz"),
    (b"\x93NUMPY\x01\x00", "begins as a file of the form .npy"),
])  # fmt: skip
def test_what_is_no_text(data, word):
    with pytest.raises(InputError, match=word):
        texts(stream(data))


def _parquet() -> bytes:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2]}), sink)
    return sink.getvalue()


def _arrow(kind: str) -> bytes:
    pa = pytest.importorskip("pyarrow")
    sink, table = io.BytesIO(), pa.table({"a": [1, 2]})
    with getattr(pa.ipc, f"new_{kind}")(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _numpy(save, *arrays) -> bytes:
    sink = io.BytesIO()
    save(sink, *arrays)
    return sink.getvalue()


@pytest.mark.parametrize(("data", "ending"), [
    (b"", ".txt"),
    (b"a dog\n", ".txt"),
    (b"PAR1 is a word\n", ".txt"),
    (b"PAR1", ".parquet"),
    (_parquet, ".parquet"),
    (lambda: _arrow("file"), ".arrow"),
    (lambda: _arrow("stream"), ".arrow"),
    (lambda: _numpy(np.save, np.eye(3)), ".npy"),
    (lambda: _numpy(np.savez, np.eye(3)), ".npz"),
    (lambda: pytest.importorskip("safetensors.numpy").save({"a": np.eye(3)}), ".safetensors"),
    (b'\xef\xbb\xbf\n {"a": 1}', ".jsonl"),
    (b'{"a": "a dog', ".jsonl"),
    (b'{"a": 1,}\n{"a": 2}', ".jsonl"),
    (b'{\n "a": 1}\n', ".jsonl"),
    (b"{sigh} ok\n", ".txt"),
    (b"{a: 1}\n", ".txt"),
    (b"[1, 2]", ".json"),
    (b"[1, 2]\r\n[3, 4]\r\n", ".jsonl"),
    (b"[[1, 2],\n[3, 4]]\n", ".json"),
    (b"[1, 2,\n3]", ".json"),
    (b"[-1,\n2]", ".json"),
    (b'["a",\n"b"]', ".json"),
    (b"[\n\n1]", ".json"),
    (b"[]\n", ".json"),
    (b'[{"a": 1},\n', ".json"),
    (b'[{"a": 1, b}]\n', ".json"),
    (b"[" * 9000, ".json"),
    (b"[" + b"0.125, " * 2000 + b"1]", ".json"),
    (b'["' + "é".encode() * 9000 + b'"]', ".json"),
    (b"[1" + b"0" * 9000 + b"]", ".json"),
    (b"[" + b"true, " * 2000 + b"true]", ".json"),
    (b"[sigh] ok\n", ".txt"),
    (b"[1] Smith et al.\nok\n", ".txt"),
    (b"[[a link]] and more\n", ".txt"),
    (b'["no", he said]\n', ".txt"),
    (b"[-]\n", ".txt"),
    (b"[a note of many words" + b" and more" * 1000, ".txt"),
    (b">sp\nMKV", ".fasta"),
    (b">sp|1 a peptide\r\nMK-V*\r\n", ".fasta"),
    (b">a long header" + b" of many names" * 1000 + b"\nMKV\n", ".fasta"),
    (b">hello\n", ".txt"),
    (b"> he said\n> so\nYes\n", ".txt"),
    (b">hello\n\nworld\n", ".txt"),
    (b">hello\na whole sentence\n", ".txt"),
    (b">hello\n---\n", ".txt"),
])  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_sniff_tells_forms_apart_and_consumes_nothing(tmp_path, data, ending, packed):
    data = data() if callable(data) else data
    sent = gzip.compress(data) if packed else data
    file = stream(sent)
    assert sniff(file) == ending
    assert file.open().read() == data
    (tmp_path / "unnamed").write_bytes(sent)
    assert sniff(File.of(tmp_path / "unnamed")) == ending


def test_sniff_of_a_long_line_that_was_packed_without_being_made_smaller():
    assert sniff(stream(gzip.compress(b"[" + b"true, " * 2000 + b"true]", 0))) == ".json"
    assert sniff(stream(gzip.compress(b'["' + b"a dog " * 2000 + b'"]', 0))) == ".json"


def test_sniff_waits_for_a_pipe_that_begins_with_a_single_byte():
    reading, writing = os.pipe()
    os.write(writing, b"\x1f")
    threading.Timer(
        0.05, lambda: (os.write(writing, gzip.compress(b">a\nMK\n")[1:]), os.close(writing))
    ).start()
    with os.fdopen(reading, "rb") as source:
        file = File(None, "", source)
        assert sniff(file) == ".fasta"
        assert texts(file) == [">a", "MK"]


def test_files_of_a_pattern_a_list_and_a_name_with_brackets(tmp_path, monkeypatch):
    for name in ("b.txt", "a.txt", "c[1].txt"):
        (tmp_path / name).touch()
    assert [file.path.name for file in files_of(str(tmp_path / "?.txt"))] == ["a.txt", "b.txt"]
    assert [file.path.name for file in files_of([tmp_path / "b.txt", str(tmp_path / "a.*")])] == [
        "b.txt",
        "a.txt",
    ]
    assert [file.path.name for file in files_of(tmp_path / "c[1].txt")] == ["c[1].txt"]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files_of("~/a.txt")[0].path == tmp_path / "a.txt"
    assert files_of(tmp_path / "a.txt", form="jsonl.gz")[0].ending == ".jsonl"


@pytest.mark.parametrize(("source", "kind", "word"), [
    ([], EmptyError, "no file was named"),
    ("", InputError, "expected the path of a file"),
    (7, InputError, "expected the path of a file"),
    ("missing/x.txt", InputError, "there is no file or folder 'missing/x.txt'"),
    ("missing/*.txt", InputError, "there is no file that matches"),
    ("a\0b", InputError, "there is no file"),
])  # fmt: skip
def test_what_names_no_file(source, kind, word):
    with pytest.raises(kind, match=word):
        files_of(source)


def test_a_folder_a_missing_file_and_one_that_may_not_be_read(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"could not be opened: Is a directory"):
        File.of(tmp_path).open()
    with pytest.raises(InputError, match=r"could not be opened: No such file"):
        File.of(tmp_path / "gone.txt").open()

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"could not be opened: Permission denied"):
        File.of(tmp_path / "secret.txt").open()


def test_trouble_while_reading_names_the_file():
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError(5, "Input/output error")

    with pytest.raises(InputError, match="standard input could not be read: Input/output error"):
        next(File(None, ".txt", Broken()).lines())


def test_no_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="no standard input here"):
        File.of("-")


def test_real_standard_input():
    code = (
        "from vendimeter.io.sources import File, sniff\n"
        "file = File.of('-')\n"
        "print(sniff(file), [text for _, text, _ in file.lines()])"
    )
    data = gzip.compress(b">a\nMK\n")
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert done.stdout.decode().strip() == ".fasta ['>a', 'MK']"
