"""Vectors on disk: what is read is what was written, by several processes, after a kill, on a full disk."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from vendimeter.encoders import Encoder, cache, cache_folder
from vendimeter.encoders.base import Encode
from vendimeter.encoders.cache import StoredVectors
from vendimeter.errors import CacheError, CacheWarning, InputError

IDENTITY = '{"model":"m"}'


def key(i: int) -> bytes:
    return hashlib.sha256(str(i).encode()).digest()


def stored(folder: Path) -> StoredVectors:
    return StoredVectors(str(folder), "demo", IDENTITY)


def fill(folder: Path, vectors: np.ndarray) -> Path:
    with stored(folder) as file:
        file.put([key(i) for i in range(len(vectors))], vectors)
    return file.path


def read(folder: Path, keys: list[bytes]) -> dict[int, np.ndarray]:
    with stored(folder) as file:
        return {
            row: vector for rows, vectors in file.get(keys) for row, vector in zip(rows, vectors, strict=True)
        }


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(cache, "_warned", set())


# -------------------------------------------------------------------------------------------------- write and read


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_vectors_come_back_as_they_were(tmp_path, dtype):
    vectors = np.random.default_rng(1).standard_normal((2500, 7)).astype(dtype)
    fill(tmp_path, vectors)
    asked = [key(i) for i in reversed(range(2400, 2600))] + [key(i) for i in range(2400)]
    found = read(tmp_path, asked)
    assert sorted(found) == list(range(100, len(asked)))  # the first hundred were never written
    for row, vector in found.items():
        i = 2599 - row if row < 200 else row - 200
        np.testing.assert_array_equal(vector, vectors[i])
        assert vector.dtype == dtype


def test_precisions_may_be_mixed_and_the_first_vector_stays(tmp_path):
    fill(tmp_path, np.full((1, 3), 1 / 3, dtype=np.float16))
    fill(tmp_path, np.full((2, 3), 1 / 3, dtype=np.float32))
    found = read(tmp_path, [key(0), key(1)])
    assert found[0].dtype == np.float16
    np.testing.assert_array_equal(found[1], np.full(3, 1 / 3, dtype=np.float32))


def test_digests_are_stored_and_no_text(tmp_path):
    path = fill(tmp_path, np.ones((5, 4), dtype=np.float32))
    content = path.read_bytes()
    assert key(3) in content
    assert IDENTITY.encode() in content
    assert [part.name for part in tmp_path.iterdir()] == [path.name]  # nothing else stays behind


@pytest.mark.parametrize("name", ["my/own: encoder", "../up", "", "é"])
def test_any_name_of_an_encoder_makes_a_file_in_the_folder(tmp_path, name):
    with StoredVectors(str(tmp_path), name, IDENTITY) as file:
        file.put([key(0)], np.ones((1, 1), dtype=np.float32))
    assert file.path.parent == tmp_path
    assert file.path.is_file()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_the_folder_is_for_its_owner_alone(tmp_path):
    path = fill(tmp_path / "new" / "folder", np.ones((1, 1), dtype=np.float32))
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_vectors_are_on_disk_before_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "PENDING_SECONDS", 0.0)
    with stored(tmp_path) as file:
        for i in range(3):
            time.sleep(0.001)
            file.put([key(i)], np.full((1, 2), i, dtype=np.float32))
            assert len(read(tmp_path, [key(j) for j in range(3)])) == i + 1


# ------------------------------------------------------------------------------------------------------- the folder


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "~/.cache/vendimeter"),
        ("linux", {"XDG_CACHE_HOME": "/x/cache"}, "/x/cache/vendimeter"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "~/.cache/vendimeter"),
        ("darwin", {"XDG_CACHE_HOME": "/x/cache"}, "~/Library/Caches/vendimeter"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/vendimeter"),
        ("win32", {}, "~/AppData/Local/vendimeter"),
        ("linux", {"VENDIMETER_CACHE": "/mine", "XDG_CACHE_HOME": "/x"}, "/mine"),
        ("win32", {"VENDIMETER_CACHE": "~/mine"}, "~/mine"),
        ("linux", {"VENDIMETER_CACHE": ""}, "~/.cache/vendimeter"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="the paths are those of POSIX")
def test_the_folder_of_each_system(monkeypatch, platform, environment, expected):
    for name in ("VENDIMETER_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cache.sys, "platform", platform)
    assert cache_folder() == os.path.expanduser(expected)


def test_no_home_is_said(monkeypatch):
    for name in ("VENDIMETER_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache.Path, "home", homeless)
    monkeypatch.setattr(cache.sys, "platform", "linux")
    with pytest.raises(InputError, match="VENDIMETER_CACHE"):
        cache_folder()


# ------------------------------------------------------------------------------------------------------- damage


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribble(path: Path) -> None:
    path.write_bytes(b"This is no database, whatever its name says. " * 100)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    place = bytes(content).index(np.full(4, 7, dtype="<f4").tobytes())
    content[place + 5] ^= 1
    path.write_bytes(content)


def shorten(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE vectors SET vector = zeroblob(5)")
    connection.close()


def widen(value: str) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute(f"UPDATE about SET value = {value} WHERE name = 'width'")
        connection.close()

    return harm


def say_in_words(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE vectors SET vector = '0123456789abcdef'")
    connection.close()


def rename(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE about SET value = '{\"model\":\"another\"}' WHERE name = 'identity'")
    connection.close()


def strange(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE pets (name TEXT)")
    connection.close()


@pytest.mark.parametrize(
    ("harm", "word"),
    [
        (cut, "damaged"),
        (scribble, "damaged"),
        (flip, "a vector is not what was written"),
        (shorten, "a vector is not what was written"),
        (say_in_words, "a vector is not what was written"),
        (widen("'four'"), "the width of its vectors is 'four'"),
        (widen("4.5"), "the width of its vectors is 4.5"),
        (widen("-4"), "the width of its vectors is -4"),
        (rename, "another model"),
        (strange, "is not a cache of this version"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, harm, word):
    path = fill(tmp_path, np.full((200, 4), 7, dtype=np.float32))
    harm(path)
    with pytest.raises(CacheError) as caught:
        read(tmp_path, [key(i) for i in range(200)])
    assert word in str(caught.value)
    assert str(path) in str(caught.value)
    assert "Delete the file" in str(caught.value)
    path.unlink()  # as it says; then all is well
    fill(tmp_path, np.full((1, 4), 7, dtype=np.float32))
    assert list(read(tmp_path, [key(0)])) == [0]


def test_no_memory_is_taken_for_a_width_that_no_vector_has(tmp_path):
    encoder = Lengths(cache=tmp_path)
    encoder(["a", "bc"])
    widen("1000000000000000")(next(tmp_path.iterdir()))
    with pytest.raises(CacheError, match="a vector is not what was written"):
        encoder(["a", "bc"])


def test_vectors_of_two_widths_do_not_mix(tmp_path):
    with stored(tmp_path) as late:
        fill(tmp_path, np.ones((1, 4), dtype=np.float32))  # by another, after the file was opened
        late.put([key(9)], np.ones((1, 5), dtype=np.float32))
        with pytest.raises(CacheError, match="vectors of 4 numbers, and the same model gave 5"):
            late._flush()


def test_an_empty_file_is_a_new_one(tmp_path):
    path = fill(tmp_path, np.ones((1, 4), dtype=np.float32))
    path.write_bytes(b"")  # what is left where the disk was full from the first
    fill(tmp_path, np.ones((2, 4), dtype=np.float32))
    assert len(read(tmp_path, [key(0), key(1)])) == 2


# ----------------------------------------------------------------------------------------- a disk that cannot be used


def the_only(caught: list[warnings.WarningMessage]) -> str:
    assert [warning.category for warning in caught] == [CacheWarning]
    return str(caught[0].message)


def test_a_folder_that_cannot_be_made_is_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            fill(tmp_path / "file" / "folder", np.ones((2, 2), dtype=np.float32))
            assert read(tmp_path / "file" / "folder", [key(0)]) == {}
    message = the_only(caught)
    assert "cannot be opened" in message
    assert "encoding goes on without" in message


@dataclass(frozen=True, repr=False)
class Lengths(Encoder):
    name: ClassVar[str] = "lengths"

    def load(self) -> Encode:
        return lambda texts: np.array([[len(text), 1.0] for text in texts])

    def identity(self) -> dict[str, Any]:
        return {"encoder": self.name}


def test_a_warning_names_the_line_that_encodes(tmp_path):
    (tmp_path / "file").write_text("")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Lengths(cache=tmp_path / "file" / "folder")(["a", "bc"])
    assert "cannot be opened" in the_only(caught)
    assert caught[0].filename == __file__


def test_a_full_disk_is_one_warning_and_nothing_is_half_written(tmp_path, monkeypatch):
    fill(tmp_path, np.zeros((10, 100), dtype=np.float32))

    def full(path: Path) -> sqlite3.Connection:
        connection = usual(path)
        connection.execute("PRAGMA max_page_count=8")
        return connection

    usual = cache._connect
    monkeypatch.setattr(cache, "_connect", full)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            with stored(tmp_path) as file:
                for start in range(100, 1000, 100):
                    file.put(
                        [key(i) for i in range(start, start + 100)], np.ones((100, 100), dtype=np.float32)
                    )
                    file._flush()
    assert "full" in the_only(caught)
    monkeypatch.setattr(cache, "_connect", usual)
    found = read(tmp_path, [key(i) for i in range(1000)])
    assert set(found) == {*range(10), *range(100, 100 + len(found) - 10)}
    assert (len(found) - 10) % 100 == 0  # whole batches only


def test_a_file_that_can_only_be_read_is_read(tmp_path, monkeypatch):
    fill(tmp_path, np.ones((2, 3), dtype=np.float32))
    monkeypatch.setattr(
        cache,
        "_connect",
        lambda path: sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None),
    )
    assert len(read(tmp_path, [key(0), key(1)])) == 2
    with pytest.warns(CacheWarning, match="cannot be written") as caught:
        fill(tmp_path, np.ones((3, 3), dtype=np.float32))
    assert len(caught) == 1
    assert len(read(tmp_path, [key(0), key(1), key(2)])) == 2


def test_a_file_that_another_holds_for_too_long_is_a_warning(tmp_path, monkeypatch):
    path = fill(tmp_path, np.ones((2, 3), dtype=np.float32))
    monkeypatch.setattr(cache, "PATIENCE", 0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    try:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.warns(CacheWarning, match="locked") as caught:
            assert read(tmp_path, [key(0)]) == {}
        assert len(caught) == 1
    finally:
        holder.close()
    assert len(read(tmp_path, [key(0)])) == 1


# ---------------------------------------------------------------------------------------------------- many processes

WORKER = """
import sys, hashlib, numpy as np
from dataclasses import dataclass
from vendimeter.encoders import Encoder, cache
cache.PENDING_SECONDS = 0.0  # every batch in a transaction of its own

@dataclass(frozen=True, repr=False)
class Hashed(Encoder):
    name = "hashed"
    def load(self):
        def encode(texts):
            rows = [np.frombuffer(hashlib.sha512(text.encode()).digest() * 8, np.uint8) for text in texts]
            return np.array(rows, dtype=np.float32)
        return encode
    def identity(self):
        return {"encoder": "hashed"}

folder, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
texts = [str(i) for i in np.random.default_rng(seed).permutation(count)]
print("ready", flush=True)
vectors = Hashed(batch_size=16, cache=folder)(texts)
expected = np.array([np.frombuffer(hashlib.sha512(text.encode()).digest() * 8, np.uint8) for text in texts])
assert (vectors == expected).all()
"""


def worker(folder: Path, seed: int, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WORKER, str(folder), str(seed), str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def check_whole(folder: Path) -> int:
    (path,) = folder.glob("hashed-*.sqlite")
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = connection.execute("SELECT key, vector FROM vectors").fetchall()
    finally:
        connection.close()
    known = {hashlib.sha256(f"text\0{i}".encode()).digest(): str(i) for i in range(4000)}
    for found, vector in rows:
        digest = hashlib.sha512(known[found].encode()).digest() * 8
        np.testing.assert_array_equal(np.frombuffer(vector, "<f4"), np.frombuffer(digest, np.uint8))
    return len(rows)


def test_four_processes_write_one_file(tmp_path):
    workers = [worker(tmp_path, seed, 600) for seed in range(4)]
    for process in workers:
        _, said = process.communicate(timeout=100)
        assert process.returncode == 0, said
    assert check_whole(tmp_path) == 600


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_a_killed_process_leaves_nothing_half_written(tmp_path):
    kept = []
    for delay in (0.02, 0.11, 0.23):
        process = worker(tmp_path, 5, 4000)
        assert process.stdout is not None
        process.stdout.readline()
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("*.sqlite")) and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode == -signal.SIGKILL:  # a fast machine may be done
            kept.append(check_whole_or_new(tmp_path))
    assert kept == sorted(kept)  # what was written once stays
    last = worker(tmp_path, 5, 4000)
    _, said = last.communicate(timeout=100)
    assert last.returncode == 0, said
    assert check_whole(tmp_path) == 4000


def check_whole_or_new(folder: Path) -> int:
    """As `check_whole`; a process may have been killed before its first table."""
    (path,) = folder.glob("hashed-*.sqlite")
    connection = sqlite3.connect(path)
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    finally:
        connection.close()
    return check_whole(folder) if tables else 0
