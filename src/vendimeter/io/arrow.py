"""Files of Arrow's family: Parquet, Arrow IPC (also called Feather), and datasets that Hugging Face saved to disk."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vendimeter.data import arrow
from vendimeter.data.collection import Broken, Place
from vendimeter.errors import InputError
from vendimeter.io.packed_batches import Blocks, Limit, Mapped, Messages
from vendimeter.io.parquet_pages import plan_of
from vendimeter.io.record_batches import RecordBatches, check_names, path_within, read_json
from vendimeter.io.sources import GZIP, File, guarded
from vendimeter.messages import brief
from vendimeter.optional import require
from vendimeter.present.text import printable

__all__ = ["Arrow", "HuggingFace", "Parquet"]

LARGEST_HEAD = 64 << 20  # bytes of the schema of an Arrow stream
READ_AHEAD = 1 << 20  # bytes of a column of a Parquet file that are read at a time


def _path_of(file: File) -> Path:
    """The path of a Parquet file; a folder, a pipe or a gzipped file is an error, as its contents stand at its end."""
    if file.is_folder:
        raise _folder_error(file, ".parquet")
    if file.path is not None and not file.path.exists():
        raise InputError(f"there is no file {file}; check its name and folder.")
    if file.path is None or not file.path.is_file():
        raise InputError(
            f"{file} cannot be read as Parquet, whose table of contents is at its end, where no stream can go. Save "
            "it in a file first."
        )
    with guarded(file), file.path.open("rb") as opened:
        if opened.read(2) == GZIP:
            raise InputError(
                f"{file} is gzipped, and Parquet is read from its end. Unpack it first, with gunzip."
            )
    return file.path


def _folder_error(file: File, ending: str) -> InputError:
    assert file.path is not None
    return InputError(
        f"{file} is a folder; expected a file. For all files in it pass the pattern "
        f"{printable(file.path / f'*{ending}')!r}, or with '**/*{ending}' those in its subfolders."
    )


class Parquet(RecordBatches):
    """A Parquet file, read column by column and batch by batch.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet
    >>> folder = tempfile.TemporaryDirectory()
    >>> pa.parquet.write_table(pa.table({"text": ["a", "b", "c"], "x": [1, 2, 3]}), folder.name + "/a.parquet")
    >>> reader = Parquet(File.of(folder.name + "/a.parquet"), Broken())
    >>> reader.names(), [part.columns for part in reader.parts(["text"], 2)]
    (['text', 'x'], [{'text': ['a', 'b']}, {'text': ['c']}])
    >>> folder.cleanup()
    """

    _opened: Any = None

    def _schema(self) -> Any:
        opened = self._open()
        return None if opened is None else opened.schema_arrow

    def _open(self, texts: Sequence[str] = ()) -> Any:
        path = _path_of(self.file)
        size = path.stat().st_size
        if size == 0:
            return None
        with path.open("rb") as opened:
            head = opened.read(4)
            opened.seek(max(0, size - 4))
            tail = opened.read(4)
        if b"PARE" in (head, tail):
            raise InputError(
                f"{self.file} is encrypted; expected a plain Parquet file. Decrypt it first, with pyarrow and your key."
            )
        if head != b"PAR1":
            raise InputError(
                f"{self.file} is no Parquet file: it begins with {head!r}; expected {b'PAR1'!r}. Say with format= "
                "(--format) what it is."
            )
        if tail != b"PAR1" or size < 12:
            raise InputError(
                f"{self.file} was cut short: it ends without the mark of Parquet's end. Get it again."
            )
        parquet = require("pyarrow.parquet", extra="files", purpose="reading Parquet files")
        # Columns are read a piece at a time: a row group may be larger than memory.
        return parquet.ParquetFile(
            path,
            pre_buffer=False,
            buffer_size=READ_AHEAD,
            page_checksum_verification=True,
            read_dictionary=list(texts),
        )

    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        opened = self._open()
        if opened is None:
            return
        self._check(opened)
        path, schema = _path_of(self.file), self._head()
        texts = [name for name in columns if _is_text(schema.field(name).type)]
        with path.open("rb") as source:
            plan = plan_of(source, path.stat().st_size, columns, texts, size, self.file)
        # A text that stands for a million rows takes the memory of one in a dictionary. To build one for texts that do
        # not repeat would take several times as long as to read them.
        if plan.texts:
            opened.close()
            opened = self._open(plan.texts)
        try:
            for group, rows in enumerate(plan.rows[: opened.num_row_groups]):
                yield from opened.iter_batches(batch_size=rows, row_groups=[group], columns=list(columns))
        finally:
            opened.close()

    def _check(self, opened: Any) -> None:
        """Refuse a file whose row groups have impossible sizes.

        Those of single columns are left alone: to ask a damaged file for them ends the process (pyarrow 26).
        """
        for number in range(opened.num_row_groups):
            group = opened.metadata.row_group(number)
            if group.total_byte_size < 0 or group.num_rows < 0:
                raise InputError(
                    f"{self.file} is damaged: row group {number} has a negative size. Get it again."
                )


def _is_text(kind: Any) -> bool:
    types = arrow.library().types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind)


class Arrow(RecordBatches):
    """An Arrow IPC file or stream, mapped into memory.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.feather
    >>> folder = tempfile.TemporaryDirectory()
    >>> pa.feather.write_feather(pa.table({"v": [[1.0, 0.0], [0.0, 1.0]]}), folder.name + "/a.arrow")
    >>> reader = Arrow(File.of(folder.name + "/a.arrow"), Broken())
    >>> [part.columns["v"].tolist() for part in reader.parts(None, 10)]
    [[[1.0, 0.0], [0.0, 1.0]]]
    >>> folder.cleanup()
    """

    _unpacked: Any = None  # the stream of a gzipped file or a pipe
    _stream: Any = None  # of standard input, which is opened once
    _blocks: Blocks | None = None  # of a file, which has a table of contents
    _limit: Limit | None = None

    def _schema(self) -> Any:
        opened = self._open(None)
        schema = None if opened is None else opened.schema
        self._close()
        return schema

    def _open(self, columns: Sequence[str] | None) -> Any:
        """A reader of the file or stream; None for an empty one."""
        if self._stream is not None:
            return self._stream
        if self.file.is_folder:
            raise _folder_error(self.file, ".arrow")
        pa, ipc = arrow.library(), require("pyarrow.ipc", extra="files", purpose="reading Arrow files")
        head = self.file.head()[:8]
        if not head:
            return None
        self._check(head)
        opened = self.file.open()
        if not isinstance(opened, io.BufferedReader):
            self._unpacked = opened
            if head[:6] == b"ARROW1":
                self._close()
                raise InputError(
                    f"{self.file} is an Arrow file, whose table of contents is at its end; expected an Arrow stream "
                    "where it is gzipped or piped. Pass the path of the plain file."
                )
            limit = self._limit = Limit(self.file, stream=opened)
            stream = ipc.open_stream(pa.PythonFile(Messages(opened, limit), mode="r"))
            self._stream = stream if self.file.stream is not None else None
            return stream
        opened.close()
        options = ipc.IpcReadOptions()
        if columns is not None:
            field_positions = {name: position for position, name in enumerate(self._head().names)}
            options.included_fields = [field_positions[name] for name in columns]
        mapped = pa.memory_map(str(self.file.path)).read_buffer()
        data, limit = memoryview(mapped).cast("B"), Limit(self.file, mapped.size)
        if head[:6] != b"ARROW1":
            messages = Mapped(data, limit)
            return ipc.open_stream(pa.PythonFile(messages, mode="r"), options=options)
        self._blocks = Blocks(data, limit)
        # To pick columns, the reader of files copies what is mapped; that pays only where they are packed.
        is_packed = columns is not None and self._blocks.is_packed()
        return ipc.open_file(pa.BufferReader(mapped), options=options if is_packed else None)

    def _file_bytes(self) -> int | None:
        return super()._file_bytes() if self._limit is None else self._limit.packed

    def _close(self) -> None:
        """Close a gzipped file; what comes from a pipe stays open until its end."""
        if self._unpacked is not None and self.file.stream is None:
            self._unpacked.close()
            self._unpacked = None

    def _check(self, head: bytes) -> None:
        if head[:4] == b"FEA1":
            raise InputError(
                f"{self.file} is of Feather's first version; expected the second, which is Arrow's own. Write it again "
                "with pyarrow.feather.write_feather."
            )
        # A message begins with a mark of continuation and its length; before version 0.15 there was no mark.
        length = int.from_bytes(head[4:8] if head[:4] == b"\xff" * 4 else head[:4], "little")
        if head[:6] != b"ARROW1" and not (len(head) == 8 and 0 < length < LARGEST_HEAD):
            raise InputError(
                f"{self.file} is no Arrow file: it begins with {head!r}; expected {b'ARROW1'!r}, or an Arrow stream. "
                "Say with format= (--format) what it is."
            )

    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        opened = self._open(columns)
        if opened is None:
            return
        if self._blocks is not None:
            for i in range(opened.num_record_batches):
                self._blocks.check(i)
                yield opened.get_batch(i)
            return
        try:
            yield from opened
        finally:
            self._close()


class HuggingFace(RecordBatches):
    """A folder that `datasets.Dataset.save_to_disk` wrote, read without that library.

    Of a folder with several splits all are read, one after another, with their names in the column "split"; the path of
    a split's own folder reads that one. Classes are given by their names.

    Examples
    --------
    >>> import json, pathlib, tempfile, pyarrow as pa
    >>> folder = tempfile.TemporaryDirectory()
    >>> table = pa.table({"text": ["a dog", "a cat"]})
    >>> with pa.ipc.new_stream(folder.name + "/data.arrow", table.schema) as stream:
    ...     stream.write_table(table)
    >>> state = pathlib.Path(folder.name, "state.json")
    >>> _ = state.write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    >>> [part.columns for part in HuggingFace(File.of(folder.name), Broken()).parts(None, 10)]
    [{'text': ['a dog', 'a cat']}]
    >>> folder.cleanup()
    """

    def __init__(self, file: File, broken: Broken):
        super().__init__(file, broken)
        if file.path is None or not file.is_folder:
            raise InputError(f"{file} is a file; expected the folder that save_to_disk wrote.")
        self._folder = file.path
        self._splits: list[str] | None = None
        splits_file = self._folder / "dataset_dict.json"
        if splits_file.exists():
            self._splits = check_names(read_json(splits_file).get("splits"), splits_file, "splits")
        self._starts: list[tuple[int, str, File]] = []  # first row, split and file of each shard read

    def _folders(self) -> list[tuple[str, Path]]:
        if self._splits is None:
            return [("", self._folder)]
        return [(name, path_within(self._folder, name, "the split")) for name in self._splits]

    def _shards(self) -> list[tuple[str, Path]]:
        shards = []
        for split, folder in self._folders():
            state_file = folder / "state.json"
            if not state_file.exists():
                raise InputError(
                    f"{printable(folder)!r} has no state.json, so that its data files are not known; expected a folder "
                    "that save_to_disk wrote. If it is a cache of Hugging Face, load it and save it with save_to_disk."
                )
            state = read_json(state_file)
            if state.get("_indices_files") or state.get("_indices_data_files"):
                raise InputError(
                    f"{printable(folder)!r} selects rows by an indices mapping, which is not read here; expected the "
                    "rows themselves. Load it with datasets, and save the result of flatten_indices()."
                )
            entries = state.get("_data_files")
            entries = [entry.get("filename") if isinstance(entry, dict) else None for entry in entries or ()]
            names = check_names(entries, state_file, "_data_files")
            shards += [(split, path_within(folder, name, "the data file")) for name in names]
        return shards

    def _read_description(self) -> dict[str, Any]:
        for _, folder in self._folders()[:1]:
            info = folder / "dataset_info.json"
            features = read_json(info).get("features") if info.exists() else None
            if isinstance(features, dict):
                return features
        return super()._read_description()

    def _schema(self) -> Any:
        shards = self._shards()
        if not shards:
            return None
        pa = arrow.library()
        schema = self._shard(shards[0][1])._head()
        if self._splits is None:
            return schema
        if "split" in schema.names:
            raise InputError(
                f"{self.file} has a column 'split' of its own, beside its splits; expected another name. Read one "
                f"split by its folder, such as {printable(self._folder / self._splits[0])!r}."
            )
        return schema.append(pa.field("split", pa.string()))

    def _shard(self, path: Path) -> Arrow:
        return Arrow(File(path, ".arrow", max_record=self.file.max_record), self.broken)

    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        pa = arrow.library()
        stored_columns = [name for name in columns if self._splits is None or name != "split"]
        expected = {name: self._head().field(name).type for name in stored_columns}
        start = 0
        for split, path in self._shards():
            shard = self._shard(path)
            schema = shard._head()
            names = set(schema.names)
            for name, expected_type in expected.items():
                found_type = schema.field(name).type if name in names else "nothing"
                if found_type != expected_type:
                    raise InputError(
                        f"{shard.file} has {found_type} in the column {brief(name)} and the first data "
                        f"file {expected_type}; expected "
                        "one type throughout. Read the splits one by one."
                    )
            self._starts.append((start, split, shard.file))
            for batch in shard._batches(stored_columns or schema.names[:1], size):
                start += batch.num_rows
                arrays = [batch.column(name) for name in stored_columns]
                if len(stored_columns) < len(columns):
                    arrays.append(
                        pa.DictionaryArray.from_arrays(pa.array([0] * batch.num_rows, pa.int8()), [split])
                    )
                yield pa.record_batch(
                    arrays, names=stored_columns + ["split"] * (len(columns) - len(stored_columns))
                )

    def _place(self, row: int) -> Place:
        first, _, file = self._start(row)
        return file.row(row - first)

    def _folder_of_row(self, row: int) -> Path | None:
        path = self._start(row)[2].path
        return None if path is None else path.parent

    def _file_bytes(self) -> int:
        return sum(file.path.stat().st_size for _, _, file in self._starts if file.path is not None)

    def _start(self, row: int) -> tuple[int, str, File]:
        return next(start for start in reversed(self._starts) if start[0] <= row)
