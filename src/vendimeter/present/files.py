"""Files and folders that are written whole or not at all, and replace nothing unless told.

What is written has another name, beside that of the target, until all of it is on the disk. A program that is killed
leaves what was there before, or what is new, and nothing in between; on any error, an interruption included, what was
written goes again.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["write_whole", "write_whole_folder"]


@contextmanager
def write_whole(target: Path, *, overwrite: bool = False, partial: Path | None = None) -> Iterator[Path]:
    """An empty file for the block to write, which gets the name of the target at its end.

    A link is written through. A new file gets the permissions of any other that the user makes, one that replaces
    another the permissions of that.

    Parameters
    ----------
    target : Path
        The file.
    overwrite : bool
        Whether a file that is there may be replaced.
    partial : Path, optional
        What the file is called until it is complete, for a writer that is the only one and clears away what was left of
        it when it was killed; by default a name that nobody else has.

    Raises
    ------
    FileExistsError
        Where there is such a file, even one that was made meanwhile, and it may not be replaced; or a device.
    OSError
        Where it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> target = Path(folder.name, "a.txt")
    >>> with write_whole(target) as partial:
    ...     _ = partial.write_text("all of it")
    >>> target.read_text()
    'all of it'
    >>> folder.cleanup()
    """
    target = Path(os.path.realpath(target))
    replaced = _mode(target)
    if stat.S_ISDIR(replaced):
        raise _system_error(errno.EISDIR, target)
    if replaced and not (overwrite and stat.S_ISREG(replaced)):
        raise _system_error(errno.EEXIST, target)
    unfinished = _name_beside(target) if partial is None else partial
    try:
        if partial is not None:
            partial.unlink(missing_ok=True)
        try:
            _create(unfinished, 0o600 if replaced else 0o666)  # what replaces a secret is one, too
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from None
        yield unfinished
        _wait_for_disk(unfinished)
        if replaced:
            unfinished.chmod(stat.S_IMODE(replaced))
        if overwrite:
            os.replace(unfinished, target)
        else:
            _give_free_name(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def write_whole_folder(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """An empty folder for the block to write files into, which gets the name of the target at its end.

    With `overwrite` a folder that is there is replaced with all that is in it, without it only an empty one; see
    `write_whole`.
    """
    target = Path(os.path.realpath(target))
    replaced = _mode(target)
    if replaced and not stat.S_ISDIR(replaced):
        raise _system_error(errno.ENOTDIR, target)
    unfinished = _name_beside(target)
    try:
        unfinished.mkdir()
        yield unfinished
        for file in unfinished.iterdir():
            _wait_for_disk(file)
        if overwrite and target.exists():
            _replace_folder(unfinished, target)
        else:
            if os.name == "nt":  # elsewhere an empty folder is replaced, and no other
                with suppress(FileNotFoundError):
                    target.rmdir()
            os.rename(unfinished, target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _mode(path: Path) -> int:
    """What is there and what may be done with it, as `os.stat` has it; 0 where nothing is there."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return 0


def _system_error(code: int, path: Path) -> OSError:
    return OSError(code, os.strerror(code), str(path))


def _name_beside(target: Path) -> Path:
    """A free name; short, and not made from the target's, since a long one may leave no room for more."""
    return target.parent / f".vendimeter-{secrets.token_hex(8)}.part"


def _create(file: Path, mode: int) -> None:
    """Make an empty file, where there is none; unlike those of tempfile it has the permissions that the user gives."""
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))


def _wait_for_disk(file: Path) -> None:
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())


def _give_free_name(unfinished: Path, target: Path) -> None:
    """Rename a file, and fail where somebody else has made a file of that name meanwhile."""
    try:
        os.link(unfinished, target)
    except FileExistsError:
        raise
    except OSError:  # a disk that has no links: the name is taken by an empty file first
        _create(target, 0o666)
        try:
            os.replace(unfinished, target)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    else:
        unfinished.unlink()


def _replace_folder(unfinished: Path, target: Path) -> None:
    backup = unfinished.with_suffix(".old")
    os.replace(target, backup)
    try:
        os.replace(unfinished, target)
    except BaseException:
        os.replace(backup, target)
        raise
    shutil.rmtree(backup, ignore_errors=True)
