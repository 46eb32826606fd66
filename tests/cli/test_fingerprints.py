"""What a long run reads, and how: what is the same input, what is another one, and how much it is."""

from __future__ import annotations

import io
import itertools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.long_runs import RNG, run, ten_files, unfinished
from vendimeter.cli import fingerprints
from vendimeter.cli.checkpoints import reading_fingerprint
from vendimeter.data.collection import Collection
from vendimeter.errors import InputError
from vendimeter.kernels import Polynomial

pytestmark = pytest.mark.usefixtures("default_signals")


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A folder with ten files of vectors."""
    return ten_files(tmp_path / "in")


def _swap(folder: Path) -> None:
    (folder / "part-3.npy").rename(folder / "other.npy")
    (folder / "part-4.npy").rename(folder / "part-3.npy")
    (folder / "other.npy").rename(folder / "part-4.npy")


CHANGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "other content of the same size": (
        lambda folder: np.save(folder / "part-7.npy", np.ones((9, 4))),
        "'in/part-7.npy' has other contents",
    ),
    "a longer file": (
        lambda folder: np.save(folder / "part-7.npy", np.ones((10, 4))),
        "'in/part-7.npy' had 416 bytes and has 448",
    ),
    "one more": (
        lambda folder: np.save(folder / "part-a.npy", np.ones((9, 4))),
        "there were 10 files and there are 11; 'in/part-a.npy' was not there",
    ),
    "one less": (
        lambda folder: (folder / "part-9.npy").unlink(),
        "there were 10 files and there are 9; 'in/part-9.npy' is not there any more",
    ),
    "another name": (
        lambda folder: (folder / "part-9.npy").rename(folder / "part-99.npy"),
        "'in/part-99.npy' was not there",
    ),
    "names swapped": (_swap, "'in/part-3.npy' has other contents"),
}


@pytest.mark.parametrize("case", CHANGES)
@pytest.mark.parametrize("finished", [True, False])
def test_other_files_are_refused(case: str, finished: bool, shards: Path, tmp_path: Path) -> None:
    change, message = CHANGES[case]
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    if finished:
        run(files, checkpoint)
    else:
        unfinished(files, checkpoint)
    before = checkpoint.read_bytes()
    change(shards)
    with pytest.raises(InputError) as caught:
        run(files, checkpoint)
    assert message in str(caught.value)
    assert "delete it, or give another name with --checkpoint" in str(caught.value)
    assert checkpoint.read_bytes() == before


def test_other_options_are_refused(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    unfinished(files, checkpoint, reading={"limit": 80})
    others: list[tuple[dict[str, Any], str]] = [
        ({}, "limit was 80 and is not given"),
        ({"reading": {"limit": 81}}, "limit was 80 and is 81"),
        ({"reading": {"limit": 80, "size": 5}}, "size was not given and is 5"),
        ({"reading": {"limit": 80}, "kernel": Polynomial(2)}, "the kernel was Cosine() and is Polynomial(2)"),
        ({"reading": {"limit": 80}, "seed": 1}, "the seed was 0 and is 1"),
        ({"reading": {"limit": 80}, "grouped": True}, "groups were asked for"),
    ]
    for options, message in others:
        with pytest.raises(InputError) as caught:
            run(files, checkpoint, **options)
        assert message in str(caught.value)
    with pytest.raises(InputError, match="come in another order"):
        run([str(shards / "part-[1-9].npy"), str(shards / "part-0.npy")], checkpoint, reading={"limit": 80})
    with monkeypatch.context() as patch:
        patch.setattr(fingerprints, "__version__", "999.0")
        with pytest.raises(InputError, match=r"written by Vendimeter '.*', and this is '999\.0'"):
            run(files, checkpoint, reading={"limit": 80})
    assert run(files, checkpoint, reading={"limit": 80}) == run(files, reading={"limit": 80})


def test_what_makes_no_difference(shards: Path, tmp_path: Path) -> None:
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    unfinished(files, checkpoint)
    os.utime(shards / "part-2.npy")  # small files are known by what is in them
    (shards / "notes.md").write_text("not read")
    moved = tmp_path / "elsewhere" / "in"
    moved.parent.mkdir()
    shards.rename(moved)
    answer = run(str(moved / "*.npy"))
    assert run(sorted(map(str, moved.glob("*.npy"))), checkpoint, memory="2 GiB") == answer


def test_large_files(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "FULL_DIGEST_BYTES", 100)
    monkeypatch.setattr(fingerprints, "END_BYTES", 150)
    files, checkpoint, path = str(shards / "*.npy"), tmp_path / "run.npz", shards / "part-6.npy"
    unfinished(files, checkpoint)
    held, times = path.read_bytes(), path.stat()
    path.write_bytes(held[:200] + bytes(8) + held[208:])  # in the middle, which is not looked at
    with pytest.raises(InputError, match=r"'in/part-6\.npy' has been written since"):
        run(files, checkpoint)
    path.write_bytes(held[:-8] + bytes(8))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(InputError, match=r"'in/part-6\.npy' has other contents"):
        run(files, checkpoint)


def test_many_files(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [str(shards / "*.npy")]
    monkeypatch.setattr(fingerprints, "MAX_LISTED", 9)
    monkeypatch.setattr(fingerprints, "FULL_DIGEST_TOTAL", 9 * 416)  # too much to read all of it
    before = reading_fingerprint(files, {}, "cosine")
    assert before["files"]["count"] == 10
    assert before == reading_fingerprint(files, {}, "cosine")
    np.save(shards / "part-0.npy", np.zeros((9, 4)))
    found = fingerprints.difference(before, reading_fingerprint(files, {}, "cosine"))
    assert found == "one of the 10 files has another name, size, content or time of change"
    np.save(shards / "part-a.npy", np.zeros((9, 4)))
    found = fingerprints.difference(before, reading_fingerprint(files, {}, "cosine"))
    assert found == "there were 10 files and there are 11"


def test_other_batches_are_refused(shards: Path, tmp_path: Path) -> None:
    """Whatever the fingerprint does not show: the number of items is compared where the run goes on."""
    files, checkpoint = str(shards / "*.npy"), tmp_path / "run.npz"
    unfinished(files, checkpoint)
    for count in (8, 10):
        other = (Collection(np.ones((count, 4))) for _ in range(10))
        message = "its first 5 batches held 45 items, and now they hold"
        with pytest.raises(InputError, match=message):
            run(files, checkpoint, batches=lambda _, other=other: other)
    with pytest.raises(InputError, match="and now they hold 27"):
        run(files, checkpoint, batches=lambda batches: itertools.islice(batches, 3))


def test_folders(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for name in ("cats/a.png", "cats/b.png", "dogs/c.png"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (4, 4), (len(name), 7, 90)).save(tmp_path / "photos" / name)
    files = [str(tmp_path / "photos")]
    before = reading_fingerprint(files, {}, "cosine")
    assert [entry["name"] for entry in before["files"]] == [
        "photos/cats/a.png", "photos/cats/b.png", "photos/dogs/c.png",
    ]  # fmt: skip
    (tmp_path / "photos" / "notes.txt").write_text("no picture")
    assert reading_fingerprint(files, {}, "cosine") == before
    image.new("RGB", (4, 4)).save(tmp_path / "photos" / "cats" / "b.png")
    found = fingerprints.difference(before, reading_fingerprint(files, {}, "cosine"))
    assert found is not None
    assert "'photos/cats/b.png'" in found


def test_datasets_of_hugging_face(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"text": ["a dog", "a cat"]})
    with pa.ipc.new_stream(str(tmp_path / "data.arrow"), table.schema) as stream:
        stream.write_table(table)
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    (tmp_path / "cache-123.arrow").write_bytes(b"not a part of it")
    found = reading_fingerprint([str(tmp_path)], {}, "cosine")["files"]
    assert [entry["name"].partition("/")[2] for entry in found] == ["state.json", "data.arrow"]


def test_what_cannot_be_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a dog\n")))
    with pytest.raises(InputError, match="standard input cannot be read a second time"):
        reading_fingerprint(["-"], {}, "cosine")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.txt")
        with pytest.raises(InputError, match="is no plain file but a pipe"):
            reading_fingerprint([str(tmp_path / "pipe.txt")], {}, "cosine")


def test_a_checkpoint_among_the_files(shards: Path, tmp_path: Path) -> None:
    message = "is among the files that are read"
    for pattern in (shards / "*.npy", shards / "part-?.npy", tmp_path / "**" / "*.npy", tmp_path / "*" / "*"):
        with pytest.raises(InputError, match=message):
            reading_fingerprint([str(pattern)], {}, "cosine", shards / "part-x.npy")
    with pytest.raises(InputError, match=message):
        reading_fingerprint([str(shards / "part-1.npy")], {}, "cosine", shards / "part-1.npy")
    for fine in (shards / "run.npz", shards / "deeper" / "part-x.npy", tmp_path / "part-x.npy"):
        assert reading_fingerprint([str(shards / "*.npy")], {}, "cosine", fine)


def test_items_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fingerprints.items_expected
    rows = RNG.standard_normal((50, 3))
    np.save(tmp_path / "a.npy", rows)
    np.savez(tmp_path / "a.npz", rows=rows, mean=rows[0])
    (tmp_path / "a.txt").write_text("".join(f"line {i}\n" for i in range(100_000)))
    (tmp_path / "a.fasta").write_text(">one\nACGT\nACG\n>two\nAC\n")
    (tmp_path / "a.json").write_text('[{"a": 1}]')
    assert expected([str(tmp_path / "a.npy")]) == 50
    assert expected([str(tmp_path / "a.np?")]) == 100
    assert expected([str(tmp_path / "a.npy")], None, 20) == 20
    assert expected([str(tmp_path / "a.fasta")]) == 2
    assert expected([str(tmp_path / "a.txt")]) == 100_000
    monkeypatch.setattr(fingerprints, "PIECE_BYTES", 1000)  # of a megabyte
    estimate = expected([str(tmp_path / "a.txt")])
    assert estimate == pytest.approx(100_000, rel=0.05)
    for name in ("a.json", "none.npy"):
        assert expected([str(tmp_path / name)]) is None
    for i in range(90):
        np.save(tmp_path / f"part-{i}.npy", rows[: 40 + i % 2])
    many = expected([str(tmp_path / "part-*.npy")])
    assert many == pytest.approx(90 * 40.5, rel=0.03)
    parquet = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    parquet.write_table(pa.table({"x": list(range(70))}), tmp_path / "a.parquet")
    assert expected([str(tmp_path / "a.parquet")]) == 70
