"""Writing columns of batches to Parquet files, which appear when they are complete, and not before."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from vendimeter.errors import InputError
from vendimeter.io.pictures import ENDINGS as PICTURES
from vendimeter.io.sources import File
from vendimeter.messages import brief
from vendimeter.optional import require
from vendimeter.options import check_flag
from vendimeter.present.files import write_whole, write_whole_folder
from vendimeter.present.text import printable

__all__ = ["Layout", "Output"]

ENDINGS = (".parquet", ".pq")
GROUP_BYTES = 32 << 20  # of a row group: rows are held back until there are so many


def _library() -> Any:
    return require("pyarrow", extra="files", purpose="writing Parquet files")


# ----------------------------------------------------------------------------------------------------------- columns


class Layout:
    """The columns of all batches, by the types that hold what is in any of them.

    Examples
    --------
    >>> layout = Layout()
    >>> layout.add({"v": np.eye(2), "name": [None, None]}, "a.npy")
    >>> layout.add({"v": np.eye(2, dtype=int), "name": ["x", "y"]}, "b.npy")
    >>> layout.table({"v": np.eye(2), "name": ["x", None]}, {"share": np.ones(2)}).column_names
    ['v', 'name', 'share']
    >>> [str(kind) for kind in layout.schema.types]
    ['fixed_size_list<item: double>[2]', 'string']
    """

    def __init__(self) -> None:
        self.schema: Any = None

    def add(self, columns: Mapping[str, Any], place: str) -> None:
        """Take note of the types of a batch that was read at this place."""
        pa = _library()
        fields = [(str(name), _to_arrow(str(name), column, place).type) for name, column in columns.items()]
        batch_schema = pa.schema(fields)
        if self.schema is None:
            self.schema = batch_schema
            return
        if set(batch_schema.names) != set(self.schema.names):
            differing = sorted(set(batch_schema.names) ^ set(self.schema.names))
            raise InputError(
                f"{place} and what was read before differ in their columns, such as "
                f"{brief(differing[0])}; expected the same "
                "columns throughout. Name the ones to keep with columns=."
            )
        if batch_schema == self.schema:
            return
        merged = []
        for field in self.schema:
            both = [pa.schema([field]), pa.schema([batch_schema.field(field.name)])]
            try:
                merged.append(pa.unify_schemas(both, promote_options="permissive").field(0))
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                raise InputError(
                    f"{place} holds {batch_schema.field(field.name).type} in the column {brief(field.name)}, which was "
                    f"{field.type} before; expected one type throughout. Mend it, or leave it out: name the columns to "
                    "keep with columns=."
                ) from None
        self.schema = pa.schema(merged)

    def refuse(self, names: Sequence[str]) -> None:
        """The names of new columns must be free."""
        conflicts = [name for name in names if name in self.schema.names]
        if conflicts:
            raise InputError(
                f"the source has a column {conflicts[0]!r} of its own; expected none of that name, "
                "because it is written "
                "beside the others. Leave it out: name the columns to keep with columns=."
            )

    def table(self, columns: Mapping[str, Any], extra: Mapping[str, np.ndarray]) -> Any:
        """The columns of a batch with more beside them, as an Arrow table."""
        pa = _library()
        arrays = []
        for field in self.schema:
            array = _to_arrow(field.name, columns[field.name], "the batch", field.type)
            arrays.append(array if array.type == field.type else array.cast(field.type))
        return pa.table([*arrays, *map(pa.array, extra.values())], names=[*self.schema.names, *extra])

    def with_numbers(self, names: Sequence[str]) -> Any:
        """The schema with columns of numbers behind."""
        pa = _library()
        return pa.schema([*self.schema, *(pa.field(name, pa.float64()) for name in names)])


def _to_arrow(name: str, column: Any, place: str, kind: Any = None) -> Any:
    """A column as an Arrow array; vectors as lists of one length."""
    pa = _library()
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        column = column.astype(column.dtype.newbyteorder("="), copy=False)
        array = pa.array(np.ascontiguousarray(column).reshape(-1))
        for size in column.shape[:0:-1]:
            array = pa.FixedSizeListArray.from_arrays(array, size)
        return array
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    values = [str(value) if isinstance(value, os.PathLike) else value for value in values]
    try:
        return pa.array(values) if kind is None else pa.array(values, type=kind)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
        raise InputError(
            f"the column {brief(name)} of {place} cannot be written as Parquet ({printable(error, 120)}); expected "
            "values of one kind. Leave it out: name the columns to keep with columns=."
        ) from None


# ------------------------------------------------------------------------------------------------------------- files


class Output:
    """A Parquet file, or a folder of them with one for each file that is read, which replaces nothing by accident.

    Parameters
    ----------
    out : str or Path
        The file, which ends in .parquet or .pq, or the folder.
    files : list of File
        What will be read.
    overwrite : bool
        Whether a file or folder that exists is replaced.
    """

    def __init__(self, out: Any, files: Sequence[File], overwrite: bool):
        try:
            self.target = Path(out).expanduser()
        except TypeError:
            raise InputError(f"out={brief(out)}; expected the path of a .parquet file or a folder.") from None
        check_flag(overwrite, "overwrite")
        ending = self.target.suffix.lower()
        self.single = ending in ENDINGS and not self.target.is_dir()
        if not self.single and not self.target.is_dir() and (ending or self.target.exists()):
            raise InputError(
                f"out={brief(str(out))} is no .parquet file and no folder that exists; expected one of them. Name a "
                f"file such as {printable(self.target.with_suffix('.parquet').name)!r}, or make the folder first."
            )
        if not self.target.absolute().parent.is_dir():
            raise InputError(
                f"the folder {printable(self.target.parent)!r} does not exist; expected one that does. Make it first."
            )
        self._overwrite = bool(overwrite)
        self._check(files)
        self._names = None if self.single else _output_names(files)
        self.paths: tuple[str, ...] = ()  # what was written

    def _check(self, files: Sequence[File]) -> None:
        """Nothing that is read, and nothing else that is there, may be replaced unasked."""
        target = self.target.resolve()
        for file in files:
            assert file.path is not None
            read = file.path.resolve()
            if read == target or target in read.parents or (file.is_folder and read in target.parents):
                raise InputError(
                    f"out={brief(str(self.target))} is, holds or lies in {file}, which is read; expected another "
                    "place."
                )
        if not self.target.exists():
            return
        entries = [] if self.single else sorted(self.target.iterdir())
        if not self.single and not entries:
            return
        if not self._overwrite:
            raise InputError(
                f"{printable(self.target)!r} exists{'' if self.single else ' and is not empty'}; expected a new name. "
                "Pass overwrite=True to replace it."
            )
        foreign = [entry for entry in entries if entry.suffix.lower() not in ENDINGS or not entry.is_file()]
        if foreign:
            raise InputError(
                f"{printable(self.target)!r} holds {printable(foreign[0].name)!r}, which is no .parquet file, and the "
                "folder would be replaced with all that is in it; expected a folder of .parquet files. Name another."
            )

    @contextmanager
    def writing(self, schema: Any) -> Iterator[_Writer]:
        """Write beside the target, and move it there at the end; on an error nothing of it stays."""
        write = write_whole if self.single else write_whole_folder
        with ExitStack() as unfinished:
            with _reporting_errors(self.target):
                partial = unfinished.enter_context(write(self.target, overwrite=self._overwrite))
            writer = _Writer(partial, self.target, self._names, schema)
            unfinished.callback(writer.abandon)
            yield writer
            with _reporting_errors(self.target):
                names = writer.close()
                unfinished.close()
        self.paths = (str(self.target),) if self.single else tuple(str(self.target / name) for name in names)


@contextmanager
def _reporting_errors(target: Path) -> Iterator[None]:
    """Turn errors of the disk, and types that Parquet does not have, into an `InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{printable(target)!r} cannot be written: {error.strerror or error}. Expected a place that may be written "
            "to and has room; what was there before is as it was."
        ) from None
    except _library().ArrowException as error:
        raise InputError(
            f"a column cannot be written as Parquet ({printable(error, 160)}); expected types that it has. Leave it "
            "out: name the columns to keep with columns=."
        ) from None


def _output_names(files: Sequence[File]) -> list[str]:
    """The name of the output for each file: its own, or a number where those are not all different; pictures share one.

    Examples
    --------
    >>> _output_names([File.of("a/x.csv.gz"), File.of("a/y.csv.gz")])
    ['x.parquet', 'y.parquet']
    >>> _output_names([File.of("a/x.csv"), File.of("b/x.csv")])
    ['part-00000.parquet', 'part-00001.parquet']
    """
    if all(file.ending in PICTURES for file in files):  # a file for each would have one row
        return ["part-00000.parquet"] * len(files)
    paths = [file.path for file in files if file.path is not None]
    unpacked = [path.with_suffix("") if path.suffix.lower() == ".gz" else path for path in paths]
    names = [f"{path.stem or path.resolve().name}.parquet" for path in unpacked]
    if len({name.lower() for name in names}) < len(names):
        return [f"part-{i:05d}.parquet" for i in range(len(names))]
    return names


class _Writer:
    """Tables → one Parquet file, or files of a folder."""

    def __init__(self, partial: Path, target: Path, names: Sequence[str] | None, schema: Any):
        self._partial, self._target, self._names, self._schema = partial, target, names, schema
        self._parquet = require("pyarrow.parquet", extra="files", purpose="writing Parquet files")
        self._open: Any = None
        self._tables: list[Any] = []
        self._written: list[str] = []

    def write(self, table: Any, file: int) -> None:
        """Add rows that belong to the file of this number."""
        with _reporting_errors(self._target):
            name = "" if self._names is None else self._names[file]
            if name not in self._written[-1:]:
                self._finish()
                self._written.append(name)
                self._open = self._parquet.ParquetWriter(self._partial / name, self._schema)
            self._tables.append(table)
            if sum(table.nbytes for table in self._tables) >= GROUP_BYTES:
                self._flush()

    def _flush(self) -> None:
        if self._tables:
            pa = _library()
            self._open.write_table(pa.concat_tables(self._tables))
            self._tables = []

    def _finish(self) -> None:
        if self._open is not None:
            self._flush()
            self._open.close()
            self._open = None

    def close(self) -> list[str]:
        """Write all that was held back; the names of the files, in order."""
        self._finish()
        return self._written

    def abandon(self) -> None:
        """Close what is open; it will be deleted."""
        self._tables = []
        if self._open is not None:
            with suppress(Exception):  # of a full disk, say: the first error is the one that matters
                self._open.close()
