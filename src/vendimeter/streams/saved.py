"""Files of accumulators, from which they go on: arrays and a header in JSON, in one .npz archive, never pickle.

A file is written beside its final name and moved there when it is complete, so that a program that is killed leaves the
old file or the new one, and nothing in between. What is read is checked before it is used: the archive has a checksum
of every array, and the header says which array has which, so that none can take the place of another.
"""

from __future__ import annotations

import copy
import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from vendimeter.errors import InputError, SavedStateError, VendimeterError
from vendimeter.messages import brief, shape_of
from vendimeter.present.files import write_whole

__all__ = ["Archive", "opened", "write"]

VERSION = 2  # 2: the probes of float32 sums are drawn from a stream of their own
HEADER = "header.json"
CLASSES = {"accumulator": "Accumulator", "group accumulator": "GroupAccumulator"}  # of each kind of file


def write(
    path: Any,
    kind: str,
    header: dict[str, Any],
    arrays: Iterable[tuple[str, np.ndarray]],
    *,
    overwrite: bool = True,
    partial: Path | None = None,
) -> None:
    """Write a header and arrays under names, all or nothing; options are those of `write_whole`."""
    target = _as_path(path)
    try:
        with (
            write_whole(target, overwrite=overwrite, partial=partial) as unfinished,
            zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive,
        ):
            sums = {}
            for key, array in arrays:
                with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
                sums[key] = archive.getinfo(f"{key}.npy").CRC
            full_header = {"format": f"vendimeter {kind}", "version": VERSION, **header, "arrays": sums}
            archive.writestr(HEADER, json.dumps(full_header, ensure_ascii=True))
    except (OSError, ValueError) as error:
        if isinstance(error, VendimeterError):
            raise
        raise _write_error(target, error) from None


def _as_path(path: Any) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise InputError(f"path={brief(path)}; expected the path of a file, as a text or a Path.") from None


def _write_error(target: Path, error: Exception) -> SavedStateError:
    return SavedStateError(
        f"{str(target)!r} cannot be written: {getattr(error, 'strerror', None) or error}. Expected a file in a folder "
        "that exists, may be written to and has room; what was there before is as it was."
    )


class Archive:
    """A file that was opened for reading: its header, and arrays that are checked as they are read."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, kind: str | None):
        self.path, self._archive = path, archive
        try:
            header = json.loads(self._bytes(HEADER))
        except (KeyError, ValueError, RecursionError) as error:
            if isinstance(error, VendimeterError):
                raise
            raise self.damaged("it has no header") from None
        if not isinstance(header, dict) or not str(header.get("format", "")).startswith("vendimeter "):
            raise self.damaged("it has no header")
        self.kind: str = header["format"].partition(" ")[2]
        class_name = CLASSES.get(self.kind)
        if class_name is None:
            raise self.damaged(f"its format is {brief(header['format'])}")
        if kind is not None and self.kind != kind:
            raise SavedStateError(
                f"{str(path)!r} was written by {class_name}.save(); expected a file of {CLASSES[kind]}.save(). Use "
                f"{class_name}.load."
            )
        if header.get("version") != VERSION:
            raise SavedStateError(
                f"{str(path)!r} has version {brief(header.get('version'))} of the format and this is version "
                f"{VERSION}; expected a file of the same version. Use the release of Vendimeter that wrote it."
            )
        self.header: dict[str, Any] = header
        sums = header.get("arrays")
        if not isinstance(sums, dict):
            raise self.damaged("it does not list its arrays")
        self._sums: dict[str, Any] = sums
        self._prefix = ""

    def part(self, prefix: str, header: dict[str, Any]) -> Archive:
        """A view of the file: the arrays below a prefix, with a header of their own."""
        view = copy.copy(self)
        view._prefix, view.header = prefix, header
        return view

    def damaged(self, why: str) -> SavedStateError:
        """The error for a file that is not what it should be."""
        return SavedStateError(
            f"{str(self.path)!r} is not a file written by save(), or is damaged: {why}. Expected an intact one; go "
            "back to an earlier copy."
        )

    def number(self, name: str, *, least: float = 0.0) -> float:
        """A finite number of the header."""
        return self.numbers(name, [self.header.get(name)], least=least)[0]

    def numbers(self, name: str, values: Any, *, least: float = 0.0) -> list[float]:
        """Finite numbers of the header."""
        if not isinstance(values, list):
            raise self.damaged(f"{name} is {brief(values)}")
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e308:
                raise self.damaged(f"{name} is {brief(value)}")
        return [float(value) for value in values]

    def whole(self, name: str, *, least: int = 0) -> int:
        """A whole number of the header."""
        return self.wholes(name, [self.header.get(name)], least=least)[0]

    def wholes(self, name: str, values: Any, *, least: int = 0) -> list[int]:
        """Whole numbers of the header."""
        for value in self.numbers(name, values, least=least):
            if value % 1:
                raise self.damaged(f"{name} is {brief(value)}")
        return [int(value) for value in values]

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of a few words of the header."""
        value = self.header.get(name)
        if value not in choices:
            raise self.damaged(f"{name} is {brief(value)}")
        return str(value)

    def array(self, name: str, shape: tuple[int | None, ...], kind: str = "f") -> np.ndarray:
        """An array of this shape (None for any length) of finite float64 numbers, or of whole ones from 0 up."""
        key = f"{self._prefix}{name}"
        try:
            if self._sums.get(key) != self._archive.getinfo(f"{key}.npy").CRC:
                raise self.damaged(f"{name} is not the array that was written")
            # Compares the checksum, so that the rest is as written.
            file = io.BytesIO(self._bytes(f"{key}.npy"))
            self._check_shape(file, name, shape, kind)
            file.seek(0)
            array = np.lib.format.read_array(file, allow_pickle=False)
        except KeyError:
            raise self.damaged(f"it lacks {name}") from None
        except (ValueError, EOFError) as error:
            if isinstance(error, VendimeterError):
                raise
            raise self.damaged(f"{name} cannot be read") from None
        if kind == "f" and not np.isfinite(array).all():
            raise self.damaged(f"{name} holds numbers that are not finite")
        if kind == "i" and array.min(initial=0) < 0:
            raise self.damaged(f"{name} holds negative numbers")
        return array

    def _bytes(self, name: str) -> bytes:
        """A member as it was written; one that was packed is not ours, and may hold more than the memory does."""
        info = self._archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise self.damaged(f"{name} is compressed")
        try:
            return self._archive.read(info)
        except Exception:  # whatever the library finds in a broken archive
            raise self.damaged(f"{name} cannot be read") from None

    def _check_shape(self, member: Any, name: str, shape: tuple[int | None, ...], kind: str) -> None:
        """From the header of the array alone, before its data is read."""
        version = np.lib.format.read_magic(member)
        reader = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        found_shape, _, dtype = reader(member)
        wanted = {"f": np.dtype(np.float64), "i": np.dtype(np.int64)}[kind]
        matches = len(found_shape) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, found_shape, strict=True)
        )
        if dtype != wanted or not matches:
            raise self.damaged(f"{name} is {dtype} of shape {shape_of(found_shape)}")


def _begins_as_archive(path: Path) -> bool:
    """Whether a file has the first bytes of an archive, as many as are there."""
    try:
        with open(path, "rb") as file:
            return b"PK\x03\x04".startswith(file.read(4))
    except (OSError, ValueError):
        return False


@contextmanager
def opened(path: Any, kind: str | None) -> Iterator[Archive]:
    """Open a file of a kind (None for any) for reading; whatever is wrong with it becomes an error that says so."""
    target = _as_path(path)
    # A pipe might wait for ever.
    if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
        raise SavedStateError(
            f"{str(target)!r} is no plain file but a pipe or a device; expected a file written by save()."
        )
    try:
        archive = zipfile.ZipFile(target)
    except Exception as error:  # the library raises many kinds over a broken archive
        # An archive has the list of its contents at its end.
        if not isinstance(error, OSError) and _begins_as_archive(target):
            raise SavedStateError(
                f"{str(target)!r} is cut short: its end is missing or damaged. Expected a whole file written by "
                "save(); go back to an earlier copy."
            ) from None
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is no archive"
        raise SavedStateError(
            f"{str(target)!r} cannot be read: {why}. Expected a file written by save()."
        ) from None
    with archive:
        opened_archive = Archive(target, archive, kind)
        try:
            yield opened_archive
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            if isinstance(error, VendimeterError):
                raise
            raise opened_archive.damaged("its header makes no sense") from error
