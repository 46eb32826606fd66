"""Files of sums that can be continued: a header in JSON and plain arrays, in one .npz archive, never pickle.

A file is written beside its final name and moved there when it is complete, so that a program that is killed leaves the
old file or the new one, and nothing in between. What is read is checked before it is used.
"""

from __future__ import annotations

import copy
import io
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from vendimeter._messages import brief, shape_of
from vendimeter.errors import SavedStateError

__all__ = ["Archive", "opened", "write"]

VERSION = 1
HEADER = "header.json"
HEADER_BYTES = 1 << 24  # more than any honest header: a forged one does not fill the memory


def write(path: Any, kind: str, header: dict[str, Any], arrays: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write a header and arrays under names, all or nothing."""
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent or None)
    except OSError as error:
        raise SavedStateError(
            f"{str(target)!r} cannot be written: {error.strerror or error}. Expected a folder that exists and may be "
            "written to."
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                text = json.dumps(
                    {"format": f"vendimeter {kind}", "version": VERSION, **header}, ensure_ascii=True
                )
                archive.writestr(HEADER, text)
                for key, array in arrays:
                    with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class Archive:
    """A file that was opened for reading: its header, and arrays that are checked as they are read."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, kind: str):
        self.path, self._archive = path, archive
        try:
            if archive.getinfo(HEADER).file_size > HEADER_BYTES:
                raise self.damaged("its header is too long")
            header = json.loads(archive.read(HEADER))
        except (KeyError, ValueError, UnicodeDecodeError):
            raise self.damaged("it has no header") from None
        if not isinstance(header, dict) or not str(header.get("format", "")).startswith("vendimeter "):
            raise self.damaged("it has no header")
        if header["format"] != f"vendimeter {kind}":
            raise self.damaged(f"it holds a {header['format'].partition(' ')[2]}, not a {kind}")
        if header.get("version") != VERSION:
            raise SavedStateError(
                f"{str(path)!r} has version {brief(header.get('version'))} of the format and this is version "
                f"{VERSION}; expected a file of the same version. Use the release of Vendimeter that wrote it."
            )
        self.header: dict[str, Any] = header
        self._prefix = ""

    def part(self, prefix: str, header: dict[str, Any]) -> Archive:
        """The same file, read under other names."""
        other = copy.copy(self)
        other._prefix, other.header = prefix, header
        return other

    def damaged(self, why: str) -> SavedStateError:
        """The error for a file that is not what it should be."""
        return SavedStateError(
            f"{str(self.path)!r} is not a file written by save(), or is damaged: {why}. Expected an intact one; go "
            "back to an earlier copy."
        )

    def number(self, name: str, *, least: float = 0.0) -> float:
        """A finite number of the header."""
        value = self.header.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
            raise self.damaged(f"{name} is {brief(value)}")
        return float(value)

    def whole(self, name: str, *, least: int = 0) -> int:
        """A whole number of the header."""
        value = self.number(name, least=least)
        if value != int(value):
            raise self.damaged(f"{name} is {brief(value)}")
        return int(self.header[name])

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of a few words of the header."""
        value = self.header.get(name)
        if value not in choices:
            raise self.damaged(f"{name} is {brief(value)}")
        return str(value)

    def array(self, name: str, shape: tuple[int | None, ...], kind: str = "f") -> np.ndarray:
        """An array of this shape (None for any length) of finite float64 numbers, or of whole ones."""
        try:
            with self._archive.open(f"{self._prefix}{name}.npy") as member:
                self._check_shape(member, name, shape, kind)
            array = np.lib.format.read_array(
                io.BytesIO(self._archive.read(f"{self._prefix}{name}.npy")), allow_pickle=False
            )
        except KeyError:
            raise self.damaged(f"it lacks {name}") from None
        except (ValueError, EOFError, zipfile.BadZipFile, OSError):
            raise self.damaged(f"{name} cannot be read") from None
        if kind == "f" and not np.isfinite(array).all():
            raise self.damaged(f"{name} holds numbers that are not finite")
        return array

    def _check_shape(self, member: Any, name: str, shape: tuple[int | None, ...], kind: str) -> None:
        """From the header of the array alone, before its data is read."""
        version = np.lib.format.read_magic(member)
        reader = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        found, _, dtype = reader(member)
        wanted = {"f": np.dtype(np.float64), "i": np.dtype(np.int64)}[kind]
        matches = len(found) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, found, strict=True)
        )
        if dtype != wanted or not matches:
            raise self.damaged(f"{name} is {dtype} of shape {shape_of(found)}")


@contextmanager
def opened(path: Any, kind: str) -> Iterator[Archive]:
    """Open a file for reading."""
    target = Path(path)
    try:
        archive = zipfile.ZipFile(target)
    except (OSError, zipfile.BadZipFile) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is no archive"
        raise SavedStateError(
            f"{str(target)!r} cannot be read: {why}. Expected a file written by save()."
        ) from None
    with archive:
        yield Archive(target, archive, kind)
