"""What is read as Arrow record batches → parts: columns that kernels take, and the records that cannot be used."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from vendimeter.data import arrow
from vendimeter.data.collection import Broken
from vendimeter.errors import InputError, brief, printable
from vendimeter.io.base import Part, Reader
from vendimeter.io.sources import LARGEST_RATIO, RAISED, VALUE_BYTES, File
from vendimeter.options import bytes_shown

__all__ = ["RecordBatches", "first_line", "read_json", "reading", "strings", "type_of", "within"]

LARGEST_JSON = 16 << 20  # bytes of a description: a larger one is none
# What rows share is copied for each of them, but for texts of dictionaries: so many times the bytes of a record, and of
# the file.
COPIED, COPIED_RATIO = 8, 16
SHORT = 4096  # bytes of a row whose values, where they are shared, are not counted again and again
PORTION_BYTES = 64 << 20  # that the rows of a part may stand for, unless a single one stands for more


class RecordBatches(Reader):
    """What is read as Arrow record batches.

    Where Hugging Face's description of the columns is there, classes are given by their names, and a single column of
    pictures is that of the samples.
    """

    def __init__(self, file: File, broken: Broken):
        super().__init__(file, broken)
        self._known: Any = None  # the schema
        self._description: dict[str, Any] | None = None
        self._shapes: dict[str, tuple[int, ...]] = {}  # of the first vector of each column
        self._made = self._copied = (
            0  # bytes that all rows so far stand for; and those that share what they have
        )

    @abstractmethod
    def _schema(self) -> Any:
        """The schema of the file, or None for an empty one."""

    @abstractmethod
    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        """Record batches of at most `size` rows with at least these columns."""

    def _features(self) -> dict[str, Any]:
        if self._description is None:
            self._description = self._described()
        return self._description

    def _described(self) -> dict[str, Any]:
        """Hugging Face's description of the columns: name → what it is."""
        held = (self._head().metadata or {}).get(b"huggingface", b"{}")
        try:
            features = json.loads(held)["info"]["features"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return {}
        return features if isinstance(features, dict) else {}

    def _head(self) -> Any:
        if self._known is None:
            with reading(self.file):
                schema = self._schema()
            self._known = arrow.library().schema([]) if schema is None else schema
        return self._known

    def names(self) -> list[str]:
        """The columns in order."""
        with reading(self.file):
            names = list(self._head().names)
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise InputError(
                f"{self.file} has the column {brief(twice)} twice; expected different names. Rename one."
            )
        pictures = [name for name in names if type_of(self._features().get(name)) == "Image"]
        if len(pictures) == 1:
            self.samples, self.kind = pictures[0], "images"
        return names

    def parts(self, columns: Sequence[str] | None, size: int) -> Iterator[Part]:
        """Parts with these columns, the only ones that are decoded."""
        names = self.names()  # in any case: the head is read before the rest
        wanted = names if columns is None else list(columns)
        batches, start = iter(self._batches(wanted, size)), 0
        while True:
            with reading(self.file):
                batch = next(batches, None)
            if batch is None:
                return
            for at in range(0, batch.num_rows, size):
                rows = batch.slice(at, size)
                held = {name: self._sound(rows.column(name), name) for name in wanted}
                for portion in self._portions(held, rows.num_rows, start + at):
                    own = {name: column[portion] for name, column in held.items()}
                    part = self._part(own, portion.stop - portion.start, start + at + portion.start)
                    if part is not None:
                        yield part
            start += batch.num_rows

    def _portions(self, columns: dict[str, Any], count: int, start: int) -> Iterator[slice]:
        """Rows that may be made at once: not those which are too large for a record.

        What is shared, as the entries of a dictionary are, may stand for far more than the file has.
        """
        shared = {name: column for name, column in columns.items() if arrow.may_share(column.type)}
        held = sum(column.nbytes for name, column in columns.items() if name not in shared)
        size = self._size()
        most = self.file.max_record if size is None else self.file.record_limit_of(size)
        longest = [
            arrow.longest_entry(column) if arrow.is_texts_once(column.type) else PORTION_BYTES + 1
            for column in shared.values()
        ]
        if held + count * sum(longest) <= min(PORTION_BYTES, most) and max(longest, default=0) <= SHORT:
            self._take(held, count)
            yield slice(0, count)
            return
        sizes = np.zeros(count, dtype=np.int64)
        for name, column in columns.items():
            own = arrow.row_bytes(column)
            sizes += own
            if name in shared and arrow.is_texts_once(column.type):  # of a dictionary each text is made once
                held += int(own[own > SHORT].sum())
            elif name in shared:
                self._copied += int(own.sum())
                held += int(own.sum())
        self._take(held, count)
        over = [*np.flatnonzero(sizes > most).tolist(), count]
        ends, at = np.cumsum(sizes), 0
        while at < count:
            if at == over[0]:
                self.broken.add(self._place(start + at), self.file.too_large(int(sizes[at]), most))
                over.pop(0)
                at += 1
                continue
            end = PORTION_BYTES + (int(ends[at - 1]) if at else 0)
            stop = min(over[0], max(at + 1, int(np.searchsorted(ends, end, "right"))))
            yield slice(at, stop)
            at = stop

    def _take(self, size: int, rows: int) -> None:
        """Refuse a file whose rows stand for far more than it has."""
        held = self._size()
        self._made += size + VALUE_BYTES * rows
        if held is None:
            return
        over = self._made > self.file.max_record + LARGEST_RATIO * held
        if over or self._copied > COPIED * self.file.max_record + COPIED_RATIO * held:
            seen, ratio = (self._made, LARGEST_RATIO) if over else (self._copied, COPIED_RATIO)
            raise InputError(
                f"{self.file} has {bytes_shown(held)} and its rows stand for {bytes_shown(seen)} so far, more than "
                f"{ratio} times as much: it may be made to fill the memory. If you trust it, see that {RAISED}."
            )

    def _size(self) -> int | None:
        """The bytes of the file; None where nobody knows."""
        path = self.file.path
        return path.stat().st_size if path is not None and path.is_file() else None

    def _part(self, columns: dict[str, Any], count: int, start: int) -> Part | None:
        for name, column in columns.items():
            if self._goes_along(name):
                continue
            if name not in self._shapes and (found := arrow.shape(column)) is not None:
                self._shapes[name] = found
        keep = np.ones(count, dtype=bool)
        for name, column in columns.items():
            for row, reason in self._flaws(column, name, start):
                if keep[row]:  # a record is broken once, however many of its values are
                    self.broken.add(self._place(start + row), f"cannot be used: {brief(name)} {reason}")
                keep[row] = False
        rows = start + np.flatnonzero(keep)
        if not len(rows):
            return None
        return Part(
            {
                name: self._values(arrow.kept_rows(column, keep), name, start)
                for name, column in columns.items()
            },
            lambda i: self._place(int(rows[i])),
        )

    def _goes_along(self, name: str) -> bool:
        """Whether a column stands beside the samples, so that its lists need not be vectors of one length."""
        return self.uniform_column is not None and name != self.uniform_column

    def _place(self, row: int) -> str:
        return self.file.row(row)

    def _beside(self, row: int) -> Path | None:
        """The folder of the file that a row is in; None where it came through a pipe."""
        return None if self.file.path is None else self.file.path.parent

    def _sound(self, column: Any, name: str) -> Any:
        """The column; one whose offsets point out of the file would crash the process when it is read."""
        pa = arrow.library()
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            if "UTF8" not in str(error):  # such texts are named row by row
                raise InputError(
                    f"{self.file} is damaged in its column {brief(name)}: {first_line(error)}. Get it again."
                ) from None
        return column

    def _classes(self, name: str) -> list[str] | None:
        feature = self._features().get(name) or {}
        names = feature.get("names") if type_of(feature) == "ClassLabel" else None
        return names if isinstance(names, list) and all(isinstance(one, str) for one in names) else None

    def _flaws(self, column: Any, name: str, start: int) -> Iterator[tuple[int, str]]:
        found = arrow.flaws(column, self._shapes.get(name))
        if found is not None:
            yield from ((row, found.reason(row)) for row in found.rows.tolist())
        if arrow.is_pictures(column.type):
            folder = self._beside(start)
            for row, path in arrow.pathed(column):
                reason = _misled(folder, path)
                if reason is not None:
                    yield row, reason
        classes = self._classes(name)
        if classes is not None and arrow.library().types.is_integer(column.type):
            numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
            for row in np.flatnonzero((numbers < 0) | (numbers >= len(classes))).tolist():
                yield row, f"is class {numbers[row]}, and there are {len(classes)}"

    def _values(self, column: Any, name: str, start: int) -> Any:
        try:
            lists = self._goes_along(name) and arrow.is_vectors(column.type)
            values = column.to_pylist() if lists else arrow.values(column, self._shapes.get(name))
        except UnicodeDecodeError:
            raise InputError(
                f"{self.file} has texts in the lists or records of {brief(name)} that are not UTF-8; expected UTF-8."
            ) from None
        if arrow.is_pictures(column.type):
            folder = self._beside(start)
            for row, path in arrow.pathed(column):
                assert folder is not None, "flaws were not left out"
                assert path is not None, "flaws were not left out"
                values[row] = folder / path
        classes = self._classes(name)
        if classes is not None and isinstance(values, np.ndarray) and values.dtype.kind in "iu":
            return [classes[number] for number in values.tolist()]
        return values


def type_of(feature: Any) -> Any:
    return feature.get("_type") if isinstance(feature, dict) else None


def first_line(error: BaseException) -> str:
    return printable((str(error).splitlines() or [type(error).__name__])[0], 200).rstrip(".")


@contextmanager
def reading(file: File) -> Iterator[None]:
    """Say of a file that Arrow cannot read that it is damaged, and why."""
    pa = arrow.library()
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, MemoryError, OverflowError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file} could not be read; it is damaged or was cut short: {first_line(error)}. Get it again."
        ) from None


def read_json(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise InputError(
                f"{printable(path)!r} has more than {bytes_shown(LARGEST_JSON)}, which is no description."
            )
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{printable(path)!r} could not be read as JSON: {printable(error, 200)}. Save the dataset again."
        ) from None
    if not isinstance(held, dict):
        raise InputError(
            f"{printable(path)!r} holds {brief(held)}; expected an object, as save_to_disk writes it."
        )
    return held


def strings(held: Any, path: Path, what: str) -> list[str]:
    if not isinstance(held, list) or not all(isinstance(one, str) and one for one in held):
        raise InputError(f"{printable(path)!r} has {brief(held)} as {what}; expected a list of names.")
    return held


def _misled(folder: Path | None, path: str | None) -> str | None:
    """Why the path of a picture is not followed: it comes from a file, which could make us open anything."""
    if path is None:
        return "holds no picture: it has neither bytes nor a path"
    try:
        inside = folder is not None and (folder / path).resolve().is_relative_to(folder.resolve())
        there = folder is not None and inside and (folder / path).is_file()
    except (OSError, ValueError, RuntimeError):  # a name that is none, or links in a circle
        inside, there = True, False
    if not inside:
        return f"holds no picture but a path, which leads out of its folder: {brief(path)}"
    return None if there else f"holds no picture but a path, where there is no file: {brief(path)}"


def within(folder: Path, name: str, what: str) -> Path:
    """A file or folder right in a folder; a name or a link that leads out of it could make us read anything."""
    path = folder / name
    if os.path.isabs(name) or not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(
            f"{printable(folder)!r} names {what} {brief(name)}, which leads out of the folder; expected one in it. The "
            "folder may be made to read other files."
        )
    if not path.exists():
        raise InputError(
            f"{printable(folder)!r} names {what} {brief(name)}, which is not there; the folder was copied in part. Get "
            "it again."
        )
    return path
