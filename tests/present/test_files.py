"""Files and folders that are written whole or not at all."""

import os
import stat
import sys
from pathlib import Path

import pytest

from vendimeter.present import files
from vendimeter.present.files import write_whole, write_whole_folder

unix = pytest.mark.skipif(sys.platform == "win32", reason="permissions of Unix")


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "a"
    with write_whole(target) as partial:
        partial.write_text("new")
        assert not target.exists()
        assert partial.parent == tmp_path
    assert os.listdir(tmp_path) == ["a"]
    assert target.read_text() == "new"


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
def test_on_an_error_nothing_stays(error: type[BaseException], overwrite: bool, tmp_path: Path) -> None:
    target = tmp_path / "a"
    if overwrite:
        target.write_text("old")
    before = os.listdir(tmp_path)

    def fail(file: Path) -> None:
        file.write_text("half")
        raise error

    with pytest.raises(error), write_whole(target, overwrite=overwrite) as partial:
        fail(partial)
    with pytest.raises(error), write_whole_folder(tmp_path / "folder") as partial:
        fail(partial / "b")
    assert os.listdir(tmp_path) == before
    assert not overwrite or target.read_text() == "old"


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_nothing_is_replaced_unasked(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    if not links:
        monkeypatch.setattr(files.os, "link", refused)
    target = tmp_path / "a"
    with write_whole(target) as partial:
        partial.write_text("first")
    with pytest.raises(FileExistsError), write_whole(target):
        raise AssertionError
    target.unlink()
    with pytest.raises(FileExistsError), write_whole(target):
        target.write_text("made meanwhile")
    assert target.read_text() == "made meanwhile"
    with write_whole(target, overwrite=True) as partial:
        partial.write_text("mine")
    assert target.read_text() == "mine"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("failing", ["fsync", "replace", "link"])
def test_an_error_at_the_end_leaves_what_was_there(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    target = tmp_path / "a"
    if failing == "replace":
        target.write_text("old")
    monkeypatch.setattr(files.os, failing, interrupted)
    with pytest.raises(KeyboardInterrupt), write_whole(target, overwrite=failing == "replace") as partial:
        partial.write_text("new")
    assert os.listdir(tmp_path) == ["a"] * (failing == "replace")
    assert failing != "replace" or target.read_text() == "old"


@unix
def test_permissions(tmp_path: Path) -> None:
    target, other = tmp_path / "a", tmp_path / "other"
    other.touch()
    with write_whole(target) as partial:
        partial.write_text("new")
    assert target.stat().st_mode == other.stat().st_mode
    target.chmod(0o440)
    with write_whole(target, overwrite=True) as partial:
        assert stat.S_IMODE(partial.stat().st_mode) == 0o600
        partial.write_text("newer")
    assert stat.S_IMODE(target.stat().st_mode) == 0o440


@unix
def test_links_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    for text in ("new", "newer"):
        with write_whole(tmp_path / "link", overwrite=text == "newer") as partial:
            partial.write_text(text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real").read_text() == text


def test_only_its_like_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(IsADirectoryError), write_whole(tmp_path / "folder", overwrite=True):
        raise AssertionError
    with pytest.raises(NotADirectoryError), write_whole_folder(tmp_path / "file", overwrite=True):
        raise AssertionError
    with pytest.raises(FileExistsError), write_whole(Path(os.devnull), overwrite=True):
        raise AssertionError


def test_a_long_name_and_a_name_for_the_time_being(tmp_path: Path) -> None:
    target, left = tmp_path / ("x" * 255), tmp_path / "left"
    left.write_text("of a run that was killed")
    with write_whole(target, partial=left) as partial:
        assert (partial, partial.read_text()) == (left, "")
    assert os.listdir(tmp_path) == [target.name]


def test_a_folder(tmp_path: Path) -> None:
    target = tmp_path / "folder"

    def write(name: str, overwrite: bool) -> None:
        with write_whole_folder(target, overwrite=overwrite) as partial:
            (partial / name).touch()

    write("new", False)
    with pytest.raises(OSError, match="not empty"):
        write("more", False)
    assert os.listdir(target) == ["new"]
    write("instead", True)
    assert os.listdir(target) == ["instead"]
    (target / "instead").unlink()
    write("into an empty one", False)
    assert os.listdir(target) == ["into an empty one"]
    assert os.listdir(tmp_path) == ["folder"]
