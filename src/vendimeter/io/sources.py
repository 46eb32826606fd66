"""Sources of data: files, plain or gzipped, folders, patterns of them, and standard input.

`files_of` turns what the user named into `File` objects, which open them, tell where a record stands, and limit what a
record and a packed file may stand for: a small file must not fill the memory. `sniff` tells the form of a file without
an ending by its first bytes.
"""

from __future__ import annotations

import glob
import gzip
import io
import json
import os
import re
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vendimeter.data.collection import Place
from vendimeter.errors import EmptyError, InputError
from vendimeter.messages import brief
from vendimeter.present.numbers import format_bytes
from vendimeter.present.text import printable

__all__ = [
    "CHUNK",
    "LARGEST_RATIO",
    "MAX_RECORD",
    "RAISED",
    "RECORD_PART",
    "VALUE_BYTES",
    "VALUE_MEMORY",
    "File",
    "begins_object",
    "count_values",
    "files_of",
    "guarded",
    "is_pipe",
    "sniff",
    "telling",
]

MAX_RECORD = 64 << 20  # bytes of one record, unless the user says otherwise …
# … and of what packed files unpack to, beyond this many times their own bytes: texts pack 3 to 50 times, a bomb 1,000.
LARGEST_RATIO = 400
# A single record of a packed file may have so many times the bytes that were read of it, or this part of what it may
# have elsewhere: kernels take 20 to 100 bytes for a letter.
RECORD_RATIO, RECORD_PART = 50, 8
# What a value counts for beside its own bytes: in memory it takes 16 to 100, and may be a single letter.
VALUE_BYTES = 8
# What a value takes at most, as a short text of Python (a list takes twice as much), and how many times the bytes of a
# record those of one may take.
VALUE_MEMORY, MOST_VALUES = 80, 4
RAISED = "max_record (--max-record) is raised"
CHUNK = 1 << 20
PATIENCE = 2.0  # seconds after which it is told that nothing has come from a pipe yet
HEAD = 4096  # bytes that are looked at to tell what a file is

GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
_OBJECT = re.compile(r'\s*\{\s*["}]')
_SEQUENCE = re.compile(r"[A-Za-z*-]*[A-Za-z][A-Za-z*-]*")  # with gaps, of which the reader says what to do
_LONGEST_TOKEN = 16  # characters of JSON besides texts: an error this near a cut comes from it
MAGIC_ENDINGS = {  # by their first bytes
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
    b"PK\x05\x06": ".npz",
    b"ARROW1\0\0": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",  # the stream format
}


def is_pipe(path: Path) -> bool:
    """Whether there is something at a path that is neither a file nor a folder."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


_on_wait: ContextVar[Callable[[File], None] | None] = ContextVar("tell", default=None)


@contextmanager
def telling(tell: Callable[[File], None] | None) -> Iterator[None]:
    """Within this block, a pipe, or standard input, from which nothing comes for two seconds is told of, once.

    `tell` is called with it in a thread, which has ended when the first byte or an exception comes.
    """
    token = _on_wait.set(tell)
    try:
        yield
    finally:
        _on_wait.reset(token)


@contextmanager
def _report_wait(file: File) -> Iterator[None]:
    on_wait = _on_wait.get()
    if on_wait is None or not file.is_pipe:
        yield
        return
    timer = threading.Timer(PATIENCE, on_wait, [file])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@dataclass
class File:
    """A file, a folder or standard input, and the ending that says how to read it.

    Examples
    --------
    >>> file = File.of("shards/captions.jsonl.gz")
    >>> file.ending, str(file)
    ('.jsonl', "'shards/captions.jsonl.gz'")
    """

    path: Path | None  # None for standard input
    ending: str  # in lower case, without .gz; "" for none
    stream: Any = None  # the bytes of standard input, or of a pipe; they can be read once
    max_record: int = MAX_RECORD
    packed: int | None = None  # bytes that were read so far of one that is gzipped

    @classmethod
    def of(cls, path: str | os.PathLike[str], form: str | None = None) -> File:
        """The file at a path, of the form that its ending says or that is given; "-" is standard input."""
        ending = f".{form.lower().lstrip('.').removesuffix('.gz')}" if form else None
        if os.fspath(path) == "-":
            stream = getattr(sys.stdin, "buffer", None)
            if stream is None:
                raise InputError("there is no standard input here; expected the path of a file.")
            return cls(None, ending or "", stream)
        path = Path(path)
        unpacked_path = path.with_suffix("") if path.suffix.lower() == ".gz" else path
        return cls(path, unpacked_path.suffix.lower() if ending is None else ending)

    def __str__(self) -> str:
        return self.name if self.path is None else repr(self.name)

    @property
    def name(self) -> str:
        """Its path for people."""
        return "standard input" if self.path is None else printable(self.path)

    @property
    def is_folder(self) -> bool:
        """Whether this is a folder."""
        return self.path is not None and self.path.is_dir()

    @property
    def is_pipe(self) -> bool:
        """Whether this is standard input, a pipe or a device: it can be read once, and may have to be waited for."""
        path = self.path
        return path is None or is_pipe(path)

    def place(self, record: str) -> Place:
        """The place of a record that is called so."""
        return Place(f"{record} of {self}", record, self.name)

    def line(self, number: int) -> Place:
        """The place of a line."""
        return self.place(f"line {number}")

    def row(self, number: int) -> Place:
        """The place of a record of a file without lines; they count from 0, as arrays do."""
        return self.place(f"row {number}")

    def open(self) -> Any:
        """The bytes, unpacked where they are gzipped. What can be read once goes on where it was left."""
        if isinstance(self.stream, _PeekableStream):
            return self._open_stream()
        with _report_wait(self):  # to open a pipe waits for somebody who writes to it
            return self._open_stream()

    def _open_stream(self) -> Any:
        if self.path is not None and self.stream is None:
            try:
                opened: Any = self.path.open("rb")
            except (OSError, ValueError) as error:  # a ValueError: a NUL in the name
                reason = getattr(error, "strerror", None) or error
                raise InputError(
                    f"{self} could not be opened: {reason}. Expected a file that may be read."
                ) from None
            if opened.seekable():
                return _GzipStream(opened, self) if opened.peek(2)[:2] == GZIP else opened
            self.stream = opened
        if not isinstance(self.stream, _PeekableStream):
            self.stream = _PeekableStream(self.stream, owned=self.path is not None)
        with guarded(self):
            if self.stream.unpacked is None and self.stream.peek(2) == GZIP:
                self.stream.unpacked = _GzipStream(self.stream, self)
        return self.stream.unpacked or self.stream

    def head(self) -> bytes:
        """Some of the first bytes, unpacked where they are gzipped; nothing is consumed."""
        file = self.open()
        if self.stream is None:
            with file, guarded(self):
                return file.read(HEAD)
        raw = self.stream.peek(HEAD)
        if file is self.stream:
            return raw
        try:
            return zlib.decompressobj(wbits=31).decompress(raw, HEAD)
        except zlib.error as error:
            raise InputError(f"{self} is damaged: {error}. Get it again.") from None

    def lines(self, separator: bytes = b"") -> Iterator[tuple[int, str, str]]:
        r"""Lines without their ends, each with its number from 1 and what is wrong with it: "" as a rule.

        "\n", "\r\n" and "\r" end a line and nothing else. A line with bytes that are no UTF-8, or with a NUL, has a
        fault that follows its place in a message; what is no text at all is an error. Of a line that is too large for a
        record there is the fault alone. `separator` is what stands between the values of a line.
        """
        number = 0
        for block in self._blocks(separator):
            if isinstance(block, int):
                number += 1
                yield number, "", self.too_large(limit=block)
                continue
            if number == 0:
                self._check_text(block)
                block = block.removeprefix(BOM)
            try:
                is_clean, texts = b"\0" not in block, block.decode("utf-8").split("\n")
            except UnicodeDecodeError:
                is_clean, texts = False, block.decode("utf-8", "surrogateescape").split("\n")
            record_limit = self.record_limit
            fits = len(block) <= record_limit
            if is_clean and fits:  # most by far
                for text in texts:
                    number += 1
                    yield number, text, ""
                continue
            for text in texts:
                number += 1
                if not fits and len(text.encode("utf-8", "surrogateescape")) > record_limit:
                    yield number, "", self.too_large()
                else:
                    yield number, text, "" if is_clean else _line_fault(text)

    @property
    def record_limit(self) -> int:
        """The upper bound on the bytes of a record at this point of the file."""
        return self.max_record if self.packed is None else self.record_limit_of(self.packed)

    def too_large(self, size: float | None = None, limit: int | None = None) -> str:
        """What is wrong with a record of this many bytes, or of more than the limit, after its place in a message."""
        allowed = format_bytes(self.record_limit if limit is None else limit)
        seen = f"more than {allowed}" if size is None else format_bytes(size)
        return f"has {seen}; expected a record of at most {allowed}, unless {RAISED}"

    def record_limit_of(self, packed: int) -> int:
        """The upper bound on the bytes of a record that comes from this many packed bytes."""
        return min(self.max_record, max(self.max_record // RECORD_PART, RECORD_RATIO * packed))

    def too_many_values(self, text: str, mark: str = ",") -> str:
        """What is wrong with a record whose values would take far more memory than its text; "" as a rule.

        `mark` is what stands between values.
        """
        if len(text) <= self.max_record // RECORD_PART:
            return ""
        values, most_values = text.count(mark) + 1, self.most_values
        if values <= most_values:
            return ""
        return (
            f"holds {values:,} values; expected a record of at most {most_values:,} of them, unless {RAISED}"
        )

    @property
    def most_values(self) -> int:
        """The most values that one record may hold."""
        return MOST_VALUES * self.max_record // VALUE_MEMORY

    def _check_text(self, start: bytes) -> None:
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{self} is UTF-16 text; expected UTF-8. Save it as UTF-8.")
        ending = next((ending for magic, ending in MAGIC_ENDINGS.items() if start.startswith(magic)), None)
        if ending is not None:
            raise InputError(
                f"{self} is no text: it begins as a file of the form {ending}; expected UTF-8 text. Say what it is by "
                "its ending."
            )

    def _blocks(self, separator: bytes) -> Iterator[bytes | int]:
        """The bytes cut at ends of lines, all of which are line feeds now; the end at a cut is left out.

        A line that is too large for a record is passed over without being held; in its place is what it might have had.
        """
        pieces: list[bytes] = []
        held_bytes, ends_in_return, yielded, is_too_large = 0, False, False, False
        with self.open() as file:
            while chunk := _read_chunk(file, self):
                if isinstance(file, _GzipStream):  # of other files nothing is counted
                    self.packed = file.packed_bytes
                    file.count_values(chunk.count(b"\n") + (chunk.count(separator) if separator else 0))
                if ends_in_return:  # a line's end that fell between two chunks
                    chunk = chunk.removeprefix(b"\n")
                ends_in_return = chunk.endswith(b"\r")
                if b"\r" in chunk:
                    chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                if is_too_large:
                    end = chunk.find(b"\n")
                    if end < 0:
                        continue
                    is_too_large, chunk = False, chunk[end + 1 :]
                cut = chunk.rfind(b"\n")
                if cut >= 0:
                    pieces.append(chunk[:cut])
                    yield b"".join(pieces)
                    pieces, yielded, held_bytes, chunk = [], True, 0, chunk[cut + 1 :]
                pieces.append(chunk)
                held_bytes += len(chunk)
                if held_bytes > self.record_limit:
                    if not yielded:
                        self._check_text(pieces[0])
                    pieces, held_bytes, yielded, is_too_large = [], 0, True, True
                    yield self.record_limit
        if held_bytes:
            yield b"".join(pieces)


def count_values(opened: Any, values: int) -> None:
    """Count values that were made of what was just read of a file, which matters if it is packed."""
    if isinstance(opened, _GzipStream):
        opened.count_values(values)


def _read_chunk(file: Any, name: File) -> bytes:
    with guarded(name):
        return file.read(CHUNK)


def _line_fault(text: str) -> str:
    """What is wrong with a line that was decoded with surrogates in the place of odd bytes."""
    if "\0" in text:
        return "holds a NUL byte, as binary files and UTF-16 text do; expected UTF-8 text"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        byte = len(text[: error.start].encode("utf-8")) + 1
        return f"is not UTF-8 text (byte {byte} of the line); expected UTF-8"
    return ""


class guarded:
    """Turn an OSError while a file is read (of a disk, a network, a folder under the name) into an `InputError`."""

    def __init__(self, file: File):
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, OSError):
            raise InputError(f"{self._file} could not be read: {error.strerror or error}.") from None


class _PeekableStream:
    """A stream whose next bytes can be seen before they are read; standard input is left open."""

    def __init__(self, stream: Any, owned: bool):
        self._stream, self._owned, self._buffer = stream, owned, b""
        self._ended = False  # then a terminal is not asked again: every time would take a Ctrl-D of its own
        self.unpacked: _GzipStream | None = None

    def peek(self, size: int) -> bytes:
        """The next bytes, which are not consumed; fewer only at the end."""
        if len(self._buffer) < size:
            self._buffer += self._read_stream(size - len(self._buffer))
        return self._buffer[:size]

    def _read_stream(self, size: int) -> bytes:
        """The next bytes of the stream; fewer only at its end."""
        pieces: list[bytes] = []
        # A buffered stream gives less than was asked for at its end only.
        reads_fully = isinstance(self._stream, io.BufferedIOBase)
        while size > 0 and not self._ended:
            pieces.append(self._stream.read(size) or b"")
            self._ended = len(pieces[-1]) < size if reads_fully else not pieces[-1]
            size -= len(pieces[-1])
        return b"".join(pieces)

    def read(self, size: int = -1) -> bytes:
        """Up to this many bytes; all of them for −1."""
        if size < 0:
            data, self._buffer = self._buffer, b""
            return data if self._ended else data + self._stream.read()
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data + self._read_stream(size - len(data)) if len(data) < size else data

    def close(self) -> None:
        """Close the stream if it was opened here."""
        if self._owned:
            self._stream.close()

    def __enter__(self) -> _PeekableStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _CountingStream(io.RawIOBase):
    """A stream that counts the bytes that are read of it: standard input does not say its size."""

    def __init__(self, packed: Any):
        self._packed, self.count = packed, 0

    def read(self, size: int = -1) -> bytes:
        """Up to this many bytes; all of them for −1."""
        data = self._packed.read(size)
        self.count += len(data)
        return data


class _GzipStream:
    """A gzipped file, unpacked as it is read; a small one that stands for far too much is an error.

    It may stand for 400 times as many bytes as were read of it, and for those of one record beyond.
    """

    def __init__(self, packed: Any, file: File):
        self.packed, self._file = packed, file
        self._counting_stream = _CountingStream(packed)
        self._gzip = gzip.GzipFile(fileobj=self._counting_stream, mode="rb")  # type: ignore[arg-type]
        self._unpacked_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Up to this many bytes; all of them for −1."""
        if size < 0:
            return b"".join(iter(lambda: self.read(CHUNK), b""))
        try:
            data = self._gzip.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{self._file} is damaged or was cut short: {error}. Get it again.") from None
        self._add_bytes(len(data))
        return data

    def count_values(self, values: int) -> None:
        """Count values that were made of what was unpacked."""
        self._add_bytes(VALUE_BYTES * values)

    @property
    def packed_bytes(self) -> int:
        """The bytes that were read so far, packed."""
        return self._counting_stream.count

    def _add_bytes(self, size: int) -> None:
        self._unpacked_bytes += size
        if self._unpacked_bytes > self._file.max_record + LARGEST_RATIO * self._counting_stream.count:
            raise InputError(
                f"{self._file} unpacks to more than {LARGEST_RATIO} times its size, as no text does: it may be made "
                f"to fill the memory. If you trust it, unpack it yourself, or see that {RAISED}."
            )

    def close(self) -> None:
        """Close the file."""
        self._gzip.close()
        self.packed.close()

    def __enter__(self) -> _GzipStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sniff(file: File) -> str:
    """The ending that fits the first bytes of a file without one, which are not consumed.

    Examples
    --------
    >>> import io
    >>> file = File(None, "", io.BytesIO(b'{"text": "a dog"}'))
    >>> sniff(file), file.open().read(3)
    ('.jsonl', b'{"t')
    """
    head = file.head()
    for magic, ending in MAGIC_ENDINGS.items():
        if head.startswith(magic):
            return ending
    begins_word = head[4:5].isspace() or b" " <= head[4:5] <= b"~"  # of a text
    if head.startswith(b"PAR1") and not begins_word:
        return ".parquet"
    # The length of a header in JSON, and its first character.
    if head[8:9] == b"{" and head[4:8] == bytes(4):
        return ".safetensors"
    lines = head.removeprefix(BOM).lstrip().splitlines() or [b""]
    first, *later_lines = (line.decode("utf-8", "replace") for line in lines)
    # What is packed may unpack to a little less than was asked for.
    is_cut = not later_lines and len(head) >= HEAD // 2
    if first.startswith(">") and (is_cut or (later_lines and _SEQUENCE.fullmatch(later_lines[0].strip()))):
        return ".fasta"
    if first.startswith(("{", "[")):
        return _json_ending(first, is_cut, any(line.strip() for line in later_lines))
    return ".txt"


def begins_object(text: str) -> bool:
    """Whether a line begins as an object of JSON does."""
    return _OBJECT.match(text) is not None


def _json_ending(line: str, is_cut: bool, has_more: bool) -> str:
    """The ending for a text that begins with a brace or a bracket: of JSON, or of lines such as "[sigh] ok".

    A value on a line of its own with more after it is one of many; a line of JSON that is not yet complete belongs to
    an array.
    """
    ending = ".jsonl" if line.startswith("{") else ".json"
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        error_threshold = len(line.rstrip()) - (_LONGEST_TOKEN if is_cut else 0)
        in_open_text = is_cut and error.msg.startswith("Unterminated string")
        is_object = begins_object(line.removeprefix("["))  # its reader says what is wrong
        return ending if is_object or in_open_text or error.pos >= error_threshold else ".txt"
    except (ValueError, RecursionError):  # it is JSON, if none that can be read
        return ending
    return ".jsonl" if has_more else ending


def files_of(source: Any, form: str | None = None) -> list[File]:
    """The files that a path, a list of paths or a pattern names, in order of their names.

    Examples
    --------
    >>> from importlib.resources import files
    >>> [file.ending for file in files_of(str(files("vendimeter.cli") / "data" / "*.c?v"))]
    ['.csv']
    """
    if isinstance(source, list | tuple):
        if not source:
            raise EmptyError("no file was named; expected at least one.")
        return [file for entry in source for file in files_of(entry, form)]
    if not isinstance(source, str | os.PathLike) or not os.fspath(source):
        raise InputError(
            f"path={brief(source)}; expected the path of a file or folder, a pattern, or a list."
        )
    if os.fspath(source) == "-":
        return [File.of("-", form)]
    if os.path.lexists(source):
        return [File.of(source, form)]
    pattern = os.path.expanduser(os.fspath(source))
    if os.path.lexists(pattern):
        return [File.of(pattern, form)]
    matches: Sequence[str] = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else []
    if matches:
        return [File.of(name, form) for name in matches]
    description = "file that matches" if glob.has_magic(pattern) else "file or folder"
    raise InputError(f"there is no {description} {str(source)!r}; check the name and the folder.")
