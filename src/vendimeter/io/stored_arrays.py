"""Arrays in files, whatever the format: columns of rows, mapped or read piece by piece.

Plain files are mapped, a map for every part, so that the pages of the one before are given back; a map keeps a file
open, so that small parts are read, and others too where many are held at once. What is packed is unpacked as it is
read. What a header claims is checked against the bytes that are there before memory is taken for it.
"""

from __future__ import annotations

import io
import math
import os
import struct
import weakref
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.collection import Broken
from vendimeter.errors import InputError, VendimeterError
from vendimeter.io.base import Part, Reader
from vendimeter.io.sources import CHUNK, RAISED, File, guarded
from vendimeter.messages import brief, shape_of

__all__ = ["Arrays", "Mapped", "Stored", "Streamed", "Unreadable", "read_exactly"]

# The last code point of Unicode, and the first of the surrogates, which are halves of pairs and no letters.
_LAST_CODE_POINT, _SURROGATES = 0x10FFFF, 0xD800
PART_BYTES = 128 << 20  # of all columns of a part, unless a single row is larger …
TEXT_COST = 32  # … in which texts count so many times: they are decoded one by one
READ_BYTES = 1 << 20  # smaller pieces are read: nothing is gained by a map
MOST_MAPS = 64  # that are held at once: each keeps a file open, and of those a process may have 256 or 1,024
_live_maps: weakref.WeakSet[Any] = weakref.WeakSet()


@dataclass(frozen=True)
class Stored:
    """An array as it lies in a file."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int  # of its first byte, in the file or the member
    fortran: bool = False
    is_bfloat: bool = False  # upper halves of float32 numbers
    fault: str = ""  # what else makes it unusable

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def text_count(self) -> int:
        """How many texts it holds: each becomes a value of Python."""
        return math.prod(self.shape) if self.dtype.kind in "SU" else 0

    @property
    def claim(self) -> str:
        """What the header says, for messages."""
        return f"{self.dtype} of shape {shape_of(self.shape)}"

    def unusable_reason(self) -> str:
        """Why its rows cannot be samples; "" where they can."""
        if self.fault:
            return self.fault
        if self.dtype.hasobject:
            return "holds Python objects, which are never unpickled; expected plain numbers or texts"
        if not self.shape:
            return "is a single value; expected an array with one row a sample"
        if self.dtype.kind == "V" and self.dtype.names is None:
            return f"holds raw bytes ({self.dtype}), as NumPy saves bfloat16; expected numbers. Save it as float32"
        if self.shape[0] and not self.row_bytes:
            return f"has rows without numbers ({self.claim}); expected at least one column"
        return ""


class Mapped:
    """Rows of a plain file: a map of its own for each piece, one for all where many are held, or read."""

    def __init__(self, source: Any, stored: Stored):
        self._source, self._stored, self._at = source, stored, 0
        self._shared: np.ndarray | None = None

    def all(self) -> np.ndarray:
        """All rows, in one map."""
        return self._map(self._stored.offset, self._stored.shape)

    def take(self, count: int) -> np.ndarray:
        """The next rows."""
        stored, start = self._stored, self._at
        self._at += count
        if stored.fortran:
            return np.array(self.all()[start : self._at], order="C")
        shape, offset = (count, *stored.shape[1:]), stored.offset + start * stored.row_bytes
        if count * stored.row_bytes >= READ_BYTES:
            if self._shared is None and len(_live_maps) < MOST_MAPS:
                return np.asarray(self._map(offset, shape))
            if self._shared is None and len(_live_maps) < 2 * MOST_MAPS:
                self._shared = self.all()
            if self._shared is not None:
                return np.asarray(self._shared[start : self._at])
        self._source.seek(offset)
        rows = np.frombuffer(
            read_exactly(self._source.read, count * stored.row_bytes, stored.claim), stored.dtype
        )
        return rows.reshape(shape)

    def _map(self, offset: int, shape: tuple[int, ...]) -> np.memmap:
        order = "F" if self._stored.fortran else "C"
        rows = np.memmap(self._source, self._stored.dtype, "r", offset=offset, shape=shape, order=order)
        _live_maps.add(rows._mmap)  # type: ignore[attr-defined] # what all views of it hold
        return rows

    def finish(self) -> None:
        """Nothing to check: the size of the file is known."""


class Streamed:
    """Rows that are read one after another; in Fortran's order a row is complete only with the last byte."""

    def __init__(self, read: Callable[[int], bytes], stored: Stored, to_end: bool = True):
        self._read, self._stored, self._to_end = read, stored, to_end
        self._all: np.ndarray | None = None
        self._at = 0

    def take(self, count: int) -> np.ndarray:
        """The next rows."""
        stored = self._stored
        if not stored.fortran or len(stored.shape) == 1:
            rows = np.frombuffer(
                read_exactly(self._read, count * stored.row_bytes, stored.claim), stored.dtype
            )
            return rows.reshape(count, *stored.shape[1:])
        if self._all is None:
            flat = np.frombuffer(read_exactly(self._read, stored.nbytes, stored.claim), stored.dtype)
            self._all = flat.reshape(stored.shape, order="F")
        self._at += count
        return np.ascontiguousarray(self._all[self._at - count : self._at])

    def finish(self) -> None:
        """Check that nothing follows; an archive compares its checksum at its end."""
        if self._to_end and self._read(1):
            raise Unreadable(f"there is more after what its header says, {self._stored.claim}")


class Unreadable(Exception):
    """Why bytes are not what they should be."""


def read_exactly(read: Callable[[int], bytes], size: int, claim: str) -> bytearray:
    """Exactly this many bytes; memory grows with what is there, whatever a header claims."""
    data = bytearray()
    while len(data) < size:
        piece = read(min(CHUNK, size - len(data)))
        if not piece:
            raise Unreadable(
                f"it was cut short: its header says {claim}, and {size - len(data):,} bytes are missing"
            )
        data += piece
    return data


class Arrays(Reader):
    """A reader of arrays, the base of all formats: arrays are columns, and parts are rows of those of one length."""

    def __init__(self, file: File, broken: Broken):
        super().__init__(file, broken)
        self._columns: dict[str, tuple[Stored, str | None]] | None = (
            None  # with the field of a structured array
        )
        self._left_out: dict[str, str] = {}  # arrays that are no columns, and why
        self._buffer: bytes | None = None  # an archive that came through a pipe
        self._packed = 0  # bytes of such an archive as it came, where it is gzipped

    def names(self) -> list[str]:
        """The arrays whose rows may be samples, in the order of the file; their lengths may differ."""
        if self._columns is None:
            with self._naming_errors():
                self._columns = self._usable_columns(self._scan() if self.file.head() else [])
            self._assign_roles(self._columns)
        return list(self._columns)

    def lengths(self) -> dict[str, int]:
        """The number of rows of each array."""
        self.names()
        return {name: stored.shape[0] for name, (stored, _) in (self._columns or {}).items()}

    def missing_column_error(self, name: str) -> InputError:
        """The reason why an array is no column, or that there is none of that name."""
        if name in self._left_out:
            return InputError(f"{brief(name)} in {self.file} {self._left_out[name]}.")
        return super().missing_column_error(name)

    @abstractmethod
    def _scan(self) -> list[Stored]:
        """The arrays that the file claims to hold."""

    @abstractmethod
    def _open_rows(self, stack: ExitStack) -> Callable[[Stored], Mapped | Streamed]:
        """Open the file, once for all: array → its rows from the first on. What is opened goes into the stack."""

    @abstractmethod
    def _damaged(self, why: str) -> InputError:
        """The error for a file that is not what it should be."""

    def _assign_roles(self, columns: dict[str, tuple[Stored, str | None]]) -> None:
        """Say which column holds the samples: the only one."""
        self.samples = next(iter(columns)) if len(columns) == 1 else None

    def _usable_columns(self, stored_arrays: list[Stored]) -> dict[str, tuple[Stored, str | None]]:
        """The columns by name: arrays whose rows can be samples, and fields of structured ones."""
        self._left_out = {
            stored.name: stored.unusable_reason() for stored in stored_arrays if stored.unusable_reason()
        }
        usable = [stored for stored in stored_arrays if stored.name not in self._left_out]
        if stored_arrays and not usable:
            raise self.missing_column_error(stored_arrays[0].name)
        columns: dict[str, tuple[Stored, str | None]] = {}
        for stored in usable:
            if stored.dtype.names is None:
                columns[stored.name] = (stored, None)
            else:
                prefix = "" if len(stored_arrays) == 1 else f"{stored.name}."
                columns |= {f"{prefix}{field}": (stored, field) for field in stored.dtype.names}
        return columns

    def parts(self, columns: Sequence[str] | None, size: int) -> Iterator[Part]:
        """Rows of all wanted arrays, which must be of one length; fewer than `size` where they are large."""
        names = self.names()
        selected, length = self._select(names if columns is None else columns)
        arrays = {stored.name: stored for stored, _ in selected.values()}
        bytes_per_row = sum(
            stored.row_bytes * (TEXT_COST if stored.text_count else 1) for stored in arrays.values()
        )
        step = max(1, min(size, PART_BYTES // max(1, bytes_per_row)))
        with ExitStack() as stack:
            stack.callback(self._free)
            with self._naming_errors():
                open_rows = self._open_rows(stack)
                sources = {name: open_rows(stored) for name, stored in arrays.items()}
            for start in range(0, length, step):
                count = min(step, length - start)
                with self._naming_errors():
                    rows = {name: source.take(count) for name, source in sources.items()}
                    if start + count == length:
                        for source in sources.values():
                            source.finish()
                yield Part(
                    {
                        name: self._convert(rows[stored.name], stored, field, start)
                        for name, (stored, field) in selected.items()
                    },
                    lambda position, start=start: self.file.row(start + position),
                )

    def mapped_part(self, columns: Sequence[str]) -> Part | None:
        """The arrays as they lie in a plain file, where nothing must be converted."""
        self.names()
        selected, length = self._select(columns)
        if (
            not 0 < len(selected) <= MOST_MAPS
            or not length
            or any(
                field is not None
                or stored.is_bfloat
                or stored.dtype.kind in "SU"
                or not stored.dtype.isnative
                for stored, field in selected.values()
            )
        ):
            return None
        with ExitStack() as stack:
            mapped, open_rows = {}, self._open_rows(stack) if self._is_plain else None
            for name, (stored, _) in selected.items():
                source = open_rows and open_rows(stored)
                if not isinstance(source, Mapped):
                    return None
                mapped[name] = source.all()
        if not all(rows.flags.aligned for rows in mapped.values()):
            return None
        return Part(mapped, self.file.row)

    def _select(self, names: Sequence[str]) -> tuple[dict[str, tuple[Stored, str | None]], int]:
        """The columns of these names and their number of rows, checked for one length and for the size of a row."""
        assert self._columns is not None
        first, length = "", None
        for name in names:
            if name not in self._columns:
                raise self.missing_column_error(name)
            rows = self._columns[name][0].shape[0]
            if length is None:
                first, length = name, rows
            elif rows != length:
                raise InputError(
                    f"{brief(first)} in {self.file} has {length:,} rows and {brief(name)} {rows:,}; expected columns "
                    "of one length, a row a sample. Name those that belong together."
                )
        selected, count = {name: self._columns[name] for name in names}, length or 0
        arrays = {stored.name: stored for stored, _ in selected.values()}.values()
        bytes_per_row = sum(stored.row_bytes for stored in arrays)
        text_count = sum(stored.text_count for stored in arrays)
        fault = self.file.too_large(bytes_per_row) if bytes_per_row > self.file.max_record else ""
        if text_count > count * self.file.most_values:
            fault = f"holds {text_count // count:,} texts; expected at most {self.file.most_values:,}, unless {RAISED}"
        if fault and count:
            raise InputError(f"{self.file.row(0)} {fault}.")
        return selected, count

    def _convert(self, rows: np.ndarray, stored: Stored, field: str | None, start: int) -> np.ndarray:
        """Rows as kernels take them: in the machine's order of bytes, bfloat16 as float32, bytes as texts."""
        if stored.is_bfloat:
            return (rows.astype(np.uint32) << 16).view(np.float32)
        if field is not None:
            rows = np.ascontiguousarray(rows[field])
            if rows.dtype.kind == "V":
                raise InputError(
                    f"the field {brief(field)} in {self.file} has fields itself; expected plain ones."
                )
        if rows.dtype.kind == "S":
            for position, value in enumerate(rows.reshape(len(rows), -1).tolist()):
                try:
                    b"".join(value).decode("utf-8")
                except UnicodeDecodeError:
                    raise InputError(
                        f"{self.file.row(start + position)} has bytes in {brief(stored.name)} that are no UTF-8 text; "
                        "expected texts or numbers."
                    ) from None
            return np.char.decode(rows, "utf-8")
        if not rows.dtype.isnative or not rows.flags.aligned:
            rows = rows.astype(rows.dtype.newbyteorder("="))
        if rows.dtype.kind == "U":
            codes = np.ascontiguousarray(rows).view(np.uint32).reshape(len(rows), -1)
            is_invalid = ((codes > _LAST_CODE_POINT) | (codes >> 11 == _SURROGATES >> 11)).any(axis=1)
            if is_invalid.any():
                raise self._damaged(
                    f"row {start + int(is_invalid.argmax())} of {brief(stored.name)} is no text"
                )
        return rows

    # ------------------------------------------------------------------------------------------ bytes, and errors

    @property
    def _is_plain(self) -> bool:
        """Whether the file can be mapped."""
        if self.file.stream is not None:
            return False
        with self.file.open() as source:
            return isinstance(source, io.BufferedReader)

    def _seekable(self, stack: ExitStack) -> tuple[Any, int]:
        """The whole file to be read from any place, in memory where it is packed or a pipe; and its size."""
        data = self._buffer
        if data is None and self._is_plain:
            source = stack.enter_context(self.file.open())
            return source, os.fstat(source.fileno()).st_size
        if data is None:
            with self.file.open() as source, guarded(self.file):
                data = self._buffer = source.read()
                self._packed = getattr(source, "packed_bytes", 0)
        return io.BytesIO(data), len(data)

    def _free(self) -> None:
        """Free the archive that was held in memory."""
        self._buffer = None

    @contextmanager
    def _naming_errors(self) -> Iterator[None]:
        """Turn whatever is wrong with the bytes into an error that names the file."""
        try:
            with guarded(self.file):
                yield
        except Unreadable as error:
            raise self._damaged(str(error)) from None
        except VendimeterError:
            raise
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            ValueError,
            struct.error,
        ) as error:
            raise self._damaged(f"it is damaged or was cut short ({error})") from None
        except RuntimeError:  # of zipfile, which has no type of its own for this
            raise self._damaged("it is locked with a password") from None
