"""The base of readers of Arrow record batches, which become parts: columns that kernels take, without broken records.

What a file says is not trusted. Offsets are validated before anything is read; what rows stand for is counted, since
entries of dictionaries, which rows share, may stand for far more than the file has; and paths that a file names are
followed only inside its folder.
"""

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
from vendimeter.data.collection import Broken, Place
from vendimeter.errors import InputError
from vendimeter.io.base import Part, Reader
from vendimeter.io.sources import LARGEST_RATIO, RAISED, VALUE_BYTES, File
from vendimeter.messages import brief
from vendimeter.present.numbers import format_bytes
from vendimeter.present.text import printable

__all__ = [
    "RecordBatches",
    "check_names",
    "feature_type",
    "first_line",
    "path_within",
    "read_json",
    "reading",
]

LARGEST_JSON = 16 << 20  # bytes of a description: a larger one is none
# What rows share is copied for each of them, but for texts of dictionaries: so many times the bytes of a record, and of
# the file.
COPIED, COPIED_RATIO = 8, 16
SHORT = 4096  # bytes of a row whose values, where they are shared, are not counted again and again
PORTION_BYTES = 64 << 20  # that the rows of a part may stand for, unless a single one stands for more


class RecordBatches(Reader):
    """A reader of Arrow record batches.

    Where Hugging Face's description of the columns is there, classes are given by their names, and a single column of
    pictures is that of the samples.
    """

    def __init__(self, file: File, broken: Broken):
        super().__init__(file, broken)
        self._cached_schema: Any = None  # the schema
        self._description: dict[str, Any] | None = None
        self._shapes: dict[str, tuple[int, ...]] = {}  # of the first vector of each column
        self._unpacked_bytes = 0  # that all rows so far stand for
        self._copied_bytes = 0  # that those rows stand for which share what they have

    @abstractmethod
    def _schema(self) -> Any:
        """The schema of the file, or None for an empty one."""

    @abstractmethod
    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        """Record batches of at most `size` rows with at least these columns."""

    def _feature_descriptions(self) -> dict[str, Any]:
        if self._description is None:
            self._description = self._read_description()
        return self._description

    def _read_description(self) -> dict[str, Any]:
        """Hugging Face's description of the columns: name → what it is."""
        text = (self._head().metadata or {}).get(b"huggingface", b"{}")
        try:
            features = json.loads(text)["info"]["features"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return {}
        return features if isinstance(features, dict) else {}

    def _head(self) -> Any:
        if self._cached_schema is None:
            with reading(self.file):
                schema = self._schema()
            self._cached_schema = arrow.library().schema([]) if schema is None else schema
        return self._cached_schema

    def names(self) -> list[str]:
        """The columns in order."""
        with reading(self.file):
            names = list(self._head().names)
        repeated_name = next((name for name, count in Counter(names).items() if count > 1), None)
        if repeated_name is not None:
            raise InputError(
                f"{self.file} has the column {brief(repeated_name)} twice; expected different names. Rename one."
            )
        pictures = [name for name in names if feature_type(self._feature_descriptions().get(name)) == "Image"]
        if len(pictures) == 1:
            self.samples, self.kind = pictures[0], "images"
        return names

    def parts(self, columns: Sequence[str] | None, size: int) -> Iterator[Part]:
        """Parts with these columns, the only ones that are decoded."""
        names = self.names()  # in any case: the head is read before the rest
        columns_read = names if columns is None else list(columns)
        batches, start = iter(self._batches(columns_read, size)), 0
        while True:
            with reading(self.file):
                batch = next(batches, None)
            if batch is None:
                return
            for at in range(0, batch.num_rows, size):
                rows = batch.slice(at, size)
                arrays = {name: self._validate(rows.column(name), name) for name in columns_read}
                for portion in self._portions(arrays, rows.num_rows, start + at):
                    portion_arrays = {name: column[portion] for name, column in arrays.items()}
                    part = self._make_part(
                        portion_arrays, portion.stop - portion.start, start + at + portion.start
                    )
                    if part is not None:
                        yield part
            start += batch.num_rows

    def _portions(self, columns: dict[str, Any], count: int, start: int) -> Iterator[slice]:
        """Slices of rows that may be decoded at once, without those that are too large for a record.

        Entries that rows share, as those of a dictionary, may stand for far more than the file has.
        """
        shared = {name: column for name, column in columns.items() if arrow.may_share(column.type)}
        unpacked = sum(column.nbytes for name, column in columns.items() if name not in shared)
        file_bytes = self._file_bytes()
        record_limit = self.file.max_record if file_bytes is None else self.file.record_limit_of(file_bytes)
        longest_entries = [
            arrow.longest_entry(column) if arrow.is_texts_once(column.type) else PORTION_BYTES + 1
            for column in shared.values()
        ]
        at_most = unpacked + count * sum(longest_entries)
        if at_most <= min(PORTION_BYTES, record_limit) and max(longest_entries, default=0) <= SHORT:
            self._count_bytes(unpacked, count)
            yield slice(0, count)
            return
        row_bytes = np.zeros(count, dtype=np.int64)
        for name, column in columns.items():
            column_row_bytes = arrow.row_bytes(column)
            row_bytes += column_row_bytes
            if name in shared and arrow.is_texts_once(column.type):  # of a dictionary each text is made once
                unpacked += int(column_row_bytes[column_row_bytes > SHORT].sum())
            elif name in shared:
                self._copied_bytes += int(column_row_bytes.sum())
                unpacked += int(column_row_bytes.sum())
        self._count_bytes(unpacked, count)
        too_large = [*np.flatnonzero(row_bytes > record_limit).tolist(), count]
        ends, position = np.cumsum(row_bytes), 0
        while position < count:
            if position == too_large[0]:
                self.broken.add(
                    self._place(start + position), self.file.too_large(int(row_bytes[position]), record_limit)
                )
                too_large.pop(0)
                position += 1
                continue
            end = PORTION_BYTES + (int(ends[position - 1]) if position else 0)
            stop = min(too_large[0], max(position + 1, int(np.searchsorted(ends, end, "right"))))
            yield slice(position, stop)
            position = stop

    def _count_bytes(self, size: int, rows: int) -> None:
        """Count bytes and rows that were unpacked, and refuse a file whose rows stand for far more than it has."""
        file_bytes = self._file_bytes()
        self._unpacked_bytes += size + VALUE_BYTES * rows
        if file_bytes is None:
            return
        is_too_much = self._unpacked_bytes > self.file.max_record + LARGEST_RATIO * file_bytes
        if is_too_much or self._copied_bytes > COPIED * self.file.max_record + COPIED_RATIO * file_bytes:
            total, ratio = (
                (self._unpacked_bytes, LARGEST_RATIO) if is_too_much else (self._copied_bytes, COPIED_RATIO)
            )
            raise InputError(
                f"{self.file} has {format_bytes(file_bytes)} and its rows stand for {format_bytes(total)} "
                "so far, more than "
                f"{ratio} times as much: it may be made to fill the memory, and is refused unless {RAISED}."
            )

    def _file_bytes(self) -> int | None:
        """The bytes of the file; None of a pipe."""
        path = self.file.path
        return path.stat().st_size if path is not None and path.is_file() else None

    def _make_part(self, columns: dict[str, Any], count: int, start: int) -> Part | None:
        for name, column in columns.items():
            if self._is_beside_samples(name):
                continue
            if name not in self._shapes and (shape := arrow.shape(column)) is not None:
                self._shapes[name] = shape
        usable = np.ones(count, dtype=bool)
        for name, column in columns.items():
            for row, reason in self._row_faults(column, name, start):
                if usable[row]:  # a record is broken once, however many of its values are
                    self.broken.add(self._place(start + row), f"cannot be used: {brief(name)} {reason}")
                usable[row] = False
        rows = start + np.flatnonzero(usable)
        if not len(rows):
            return None
        return Part(
            {
                name: self._convert(arrow.kept_rows(column, usable), name, start)
                for name, column in columns.items()
            },
            lambda i: self._place(int(rows[i])),
        )

    def _is_beside_samples(self, name: str) -> bool:
        """Whether a column is not that of the samples, so that its lists need not be vectors of one length."""
        return self.uniform_column is not None and name != self.uniform_column

    def _place(self, row: int) -> Place:
        return self.file.row(row)

    def _folder_of_row(self, row: int) -> Path | None:
        """The folder of the file that a row is in; None where it came through a pipe."""
        return None if self.file.path is None else self.file.path.parent

    def _validate(self, column: Any, name: str) -> Any:
        """The column, after a check of its offsets: to read one that points out of the file would crash the process."""
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
        feature = self._feature_descriptions().get(name) or {}
        names = feature.get("names") if feature_type(feature) == "ClassLabel" else None
        return (
            names
            if isinstance(names, list) and all(isinstance(name_of_class, str) for name_of_class in names)
            else None
        )

    def _row_faults(self, column: Any, name: str, start: int) -> Iterator[tuple[int, str]]:
        flaws = arrow.flaws(column, self._shapes.get(name))
        if flaws is not None:
            yield from ((row, flaws.reason(row)) for row in flaws.rows.tolist())
        if arrow.is_pictures(column.type):
            folder = self._folder_of_row(start)
            for row, path in arrow.pathed(column):
                reason = _path_fault(folder, path)
                if reason is not None:
                    yield row, reason
        classes = self._classes(name)
        if classes is not None and arrow.library().types.is_integer(column.type):
            numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
            for row in np.flatnonzero((numbers < 0) | (numbers >= len(classes))).tolist():
                yield row, f"is class {numbers[row]}, and there are {len(classes)}"

    def _convert(self, column: Any, name: str, start: int) -> Any:
        try:
            lists = self._is_beside_samples(name) and arrow.is_vectors(column.type)
            values = column.to_pylist() if lists else arrow.values(column, self._shapes.get(name))
        except UnicodeDecodeError:
            raise InputError(
                f"{self.file} has texts in the lists or records of {brief(name)} that are not UTF-8; expected UTF-8."
            ) from None
        if arrow.is_pictures(column.type):
            folder = self._folder_of_row(start)
            for row, path in arrow.pathed(column):
                assert folder is not None, "flaws were not left out"
                assert path is not None, "flaws were not left out"
                values[row] = folder / path
        classes = self._classes(name)
        if classes is not None and isinstance(values, np.ndarray) and values.dtype.kind in "iu":
            return [classes[number] for number in values.tolist()]
        return values


def feature_type(feature: Any) -> Any:
    """The type of a column by Hugging Face's description of it, such as "Image"."""
    return feature.get("_type") if isinstance(feature, dict) else None


def first_line(error: BaseException) -> str:
    """The first line of an error's message, for ours."""
    return printable((str(error).splitlines() or [type(error).__name__])[0], 200).rstrip(".")


@contextmanager
def reading(file: File) -> Iterator[None]:
    """Turn errors of Arrow into one that says that the file is damaged, and why."""
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
    """The object in a JSON file that describes a dataset."""
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise InputError(
                f"{printable(path)!r} has more than {format_bytes(LARGEST_JSON)}, which is no description."
            )
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{printable(path)!r} could not be read as JSON: {printable(error, 200)}. Save the dataset again."
        ) from None
    if not isinstance(value, dict):
        raise InputError(
            f"{printable(path)!r} holds {brief(value)}; expected an object, as save_to_disk writes it."
        )
    return value


def check_names(names: Any, path: Path, what: str) -> list[str]:
    """The names of a description, which must be a list of texts."""
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"{printable(path)!r} has {brief(names)} as {what}; expected a list of names.")
    return names


def _path_fault(folder: Path | None, path: str | None) -> str | None:
    """Why the path of a picture is not followed, if so: a file could otherwise make us open any other."""
    if path is None:
        return "holds no picture: it has neither bytes nor a path"
    try:
        is_inside = folder is not None and (folder / path).resolve().is_relative_to(folder.resolve())
        exists = folder is not None and is_inside and (folder / path).is_file()
    except (OSError, ValueError, RuntimeError):  # a name that is none, or links in a circle
        is_inside, exists = True, False
    if not is_inside:
        return f"holds no picture but a path, which leads out of its folder: {brief(path)}"
    return None if exists else f"holds no picture but a path, where there is no file: {brief(path)}"


def path_within(folder: Path, name: str, what: str) -> Path:
    """The path of a name in a folder; a name or a link that leads out of it could make us read anything."""
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
