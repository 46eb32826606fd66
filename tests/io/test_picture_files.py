"""Folders of pictures: which files are found, in what order, and what is left out or refused."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.data.collection import Broken
from vendimeter.errors import EmptyError, InputError
from vendimeter.io.pictures import PictureFolder
from vendimeter.io.sources import File, files_of

image = pytest.importorskip("PIL.Image")

NAMES = ["b.png", "a.JPG", "z/2.webp", "z/10.bmp", "Z/x.gif", "deep/er/p.tiff", "deep/a.ppm"]


def save(path: Path, value: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.fromarray(np.full((4, 5, 3), value, dtype=np.uint8)).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i, name in enumerate(NAMES):
        save(tmp_path / "pictures" / name, i)
    return tmp_path / "pictures"


def read(
    folder: Path, *, skip: bool = False, size: int = 3, columns: list[str] | None = None
) -> tuple[dict[str, list[Any]], Broken]:
    broken = Broken(skip=skip)
    parts = list(PictureFolder(File.of(folder), broken).parts(columns, size))
    assert all(0 < len(column) <= size for part in parts for column in part.columns.values())
    return {name: [v for part in parts for v in part.columns[name]] for name in parts[0].columns}, broken


def test_pictures_in_order_with_labels_and_names(folder: Path) -> None:
    reader = PictureFolder(File.of(folder), Broken())
    assert reader.names() == ["image", "label", "id", "folder"]
    assert (reader.samples, reader.label, reader.id, reader.kind) == ("image", "label", "id", "images")
    found, broken = read(folder)
    expected = sorted(NAMES, key=lambda name: name.split("/"))
    assert found["id"] == expected
    assert found["label"] == [name.split("/")[0] if "/" in name else folder.name for name in expected]
    assert found["image"] == [folder / name for name in expected]
    assert all(isinstance(path, Path) for path in found["image"])
    assert broken.count == 0
    part = next(PictureFolder(File.of(folder), Broken()).parts(["label"], 100))
    assert list(part.columns) == ["label"]
    assert part.place(2) == repr(str(folder / expected[2]))
    assert (part.place(2).record, part.place(2).source) == ("", str(folder / expected[2]))


def test_the_order_does_not_depend_on_the_file_system(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read(folder)[0]["id"]
    entries = PictureFolder._entries
    monkeypatch.setattr(PictureFolder, "_entries", lambda self, names: entries(self, names)[::-1])
    assert read(folder)[0]["id"] == before


def test_hidden_files_and_what_systems_leave_behind_are_left_out(folder: Path) -> None:
    for name in (
        ".hidden.png",
        ".cache/a.png",
        "__MACOSX/z/2.png",
        "Thumbs.db",
        "z/Thumbs.db",
        "desktop.ini",
        "notes.txt",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    assert len(read(folder)[0]["id"]) == len(NAMES)


def test_nothing_is_decoded_unless_broken_ones_are_to_be_left_out(folder: Path) -> None:
    (folder / "c.png").write_bytes(b"no picture")
    (folder / "d.png").write_bytes((folder / "b.png").read_bytes()[:40])
    assert len(read(folder)[0]["id"]) == len(NAMES) + 2
    found, broken = read(folder, skip=True)
    assert sorted(found["id"]) == sorted(NAMES)
    assert [place for place, _ in broken.records] == [repr(str(folder / name)) for name in ("c.png", "d.png")]
    assert all("cannot be decoded" in reason for _, reason in broken.records)


def test_links_are_followed_within_the_folder_only(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "secret" / "s.png")
    (folder / "inside.png").symlink_to(folder / "b.png")
    (folder / "z" / "loop").symlink_to(folder)
    assert read(folder)[0]["id"].count("inside.png") == 1
    assert len(read(folder)[0]["id"]) == len(NAMES) + 1
    for name, target, word in (
        ("out.png", tmp_path / "secret" / "s.png", "link out of the folder"),
        ("out", tmp_path / "secret", "link out of the folder"),
        ("gone.png", folder / "nothing.png", "link to nothing"),
        ("itself.png", folder / "itself.png", "link to nothing"),
    ):
        link = folder / "z" / name
        link.symlink_to(target)
        with pytest.raises(InputError, match=f"z/{name}' is a {word}.*skip_broken"):
            read(folder)
        found, broken = read(folder, skip=True)
        assert len(found["id"]) == len(NAMES) + 1
        assert [(place, reason) for place, reason in broken.records] == [(repr(str(link)), f"is a {word}")]
        link.unlink()


@pytest.mark.parametrize("name", ["a.jfif", "a.APNG", "a.pnm", "a.j2k"])
def test_rarer_endings_are_read(folder: Path, name: str) -> None:
    form = {".jfif": "jpeg", ".apng": "png", ".pnm": "ppm", ".j2k": "jpeg2000"}[Path(name).suffix.lower()]
    image.fromarray(np.full((4, 5, 3), 9, dtype=np.uint8)).save(folder / name, format=form)
    found, broken = read(folder, skip=True)  # so that all are decoded
    assert name in found["id"]
    assert broken.count == 0


def test_pictures_of_forms_that_are_not_read_are_broken_records(folder: Path) -> None:
    for name in ("z/x.HEIC", "logo.svg", "notes.txt", "makefile"):
        (folder / name).write_bytes(b"")
    with pytest.raises(InputError) as caught:
        read(folder)
    for word in ("logo.svg", "of a form that is not read (.svg)", "Convert it to .png", "skip_broken"):
        assert word in str(caught.value)
    found, broken = read(folder, skip=True)
    assert sorted(found["id"]) == sorted(NAMES)
    assert broken.records == [
        (repr(str(folder / name)), f"is a picture of a form that is not read ({ending})")
        for name, ending in (("logo.svg", ".svg"), ("z/x.HEIC", ".heic"))
    ]


def test_a_folder_of_such_pictures_alone_is_not_empty(tmp_path: Path) -> None:
    for name in ("a.heic", "b.heic", "labels.csv"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=r"a\.heic' is a picture of a form that is not read"):
        vm.read(tmp_path)
    with pytest.raises(EmptyError, match=r"all 2 records are broken"):
        vm.read(tmp_path, skip_broken=True)


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["0.parquet"], "*.parquet"),
        (["data/0.parquet", "logo.svg"], "**/*.parquet"),
        (["a/0.parquet", "b/c/1.parquet", "2.parquet", "notes.md"], "**/*.parquet"),
        (["A.CSV"], "*.CSV"),
    ],
)
def test_the_pattern_that_is_advised_matches(tmp_path: Path, names: list[str], pattern: str) -> None:
    folder = tmp_path / "hub [1]"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    with pytest.raises(EmptyError) as caught:
        read(folder)
    advised = re.search(r"the pattern '(.*)'\.", str(caught.value))
    assert advised is not None
    assert advised[1].endswith(f"/{pattern}")
    tables = [folder / name for name in names if name.lower().endswith((".parquet", ".csv"))]
    assert sorted(file.path for file in files_of(advised[1]) if file.path) == sorted(tables)


def nothing(folder: Path) -> None:
    folder.mkdir()


def texts(folder: Path) -> None:
    folder.mkdir()
    for name in ("a.txt", "b.txt", "c.csv"):
        (folder / name).write_text("")


def shards(folder: Path) -> None:
    folder.mkdir()
    (folder / "0.parquet").write_text("")


def hidden(folder: Path) -> None:
    folder.mkdir()
    (folder / ".a.png").write_text("")


def plain(folder: Path) -> None:
    folder.write_text("")


BAD: dict[str, tuple[Callable[[Path], None], type[Exception], list[str]]] = {
    "an empty folder": (nothing, EmptyError, ["empty folder", "pictures"]),
    "other files": (texts, EmptyError, ["3 files, none of them a picture", ".txt, .csv", "*.txt"]),
    "shards of a table": (shards, EmptyError, ["1 file, not a picture", "/*.parquet"]),
    "hidden files alone": (hidden, EmptyError, ["empty folder"]),
    "a file": (plain, InputError, ["not a folder"]),
}


@pytest.mark.parametrize("case", BAD)
def test_folders_without_pictures(tmp_path: Path, case: str) -> None:
    prepare, error, words = BAD[case]
    prepare(tmp_path / "d")
    with pytest.raises(error) as caught:
        read(tmp_path / "d")
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.skipif(
    os.name == "nt" or not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all"
)
def test_a_folder_that_may_not_be_read(folder: Path) -> None:
    (folder / "z").chmod(0)
    try:
        with pytest.raises(InputError, match=r"z' could not be opened"):
            read(folder)
    finally:
        (folder / "z").chmod(0o700)


def test_names_that_are_no_utf8_do_no_harm(folder: Path) -> None:
    try:
        (folder / os.fsdecode(b"odd\xff.png")).write_bytes(b"")
    except OSError:
        pytest.skip("this file system has names of UTF-8 only")
    found, broken = read(folder, skip=True)
    assert len(found["id"]) == len(NAMES)
    assert broken.count == 1
    broken.records[0][0].encode("utf-8")  # it can be printed
