"""What to read: a file, plain or gzipped, a folder, several of them, a pattern, or standard input."""

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

from vendimeter.errors import EmptyError, InputError, brief, printable
from vendimeter.options import bytes_shown

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
    "files_of",
    "guarded",
    "is_pipe",
    "note",
    "sniff",
    "telling",
]

MAX_RECORD = 64 << 20  # bytes of one record, unless the user says otherwise …
# … and of what packed files stand for beyond this many times their own: texts pack 3 to 50 times, a bomb 1,000.
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
BINARY = {  # by their first bytes
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
    b"PK\x05\x06": ".npz",
    b"ARROW1\0\0": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",  # the stream format
}


def is_pipe(path: Path) -> bool:
    """Whether there is something at a path that is neither a file nor a folder."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


_tell: ContextVar[Callable[[File], None] | None] = ContextVar("tell", default=None)


@contextmanager
def telling(tell: Callable[[File], None] | None) -> Iterator[None]:
    """Within this block, a pipe, or standard input, from which nothing comes for two seconds is told of, once.

    `tell` is called with it in a thread, which has ended when the first byte or an exception comes.
    """
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


@contextmanager
def _awaited(file: File) -> Iterator[None]:
    tell = _tell.get()
    if tell is None or not file.is_pipe:
        yield
        return
    timer = threading.Timer(PATIENCE, tell, [file])
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
        named = path.with_suffix("") if path.suffix.lower() == ".gz" else path
        return cls(path, named.suffix.lower() if ending is None else ending)

    def __str__(self) -> str:
        return "standard input" if self.path is None else repr(printable(self.path))

    @property
    def is_folder(self) -> bool:
        """Whether this is a folder."""
        return self.path is not None and self.path.is_dir()

    @property
    def is_pipe(self) -> bool:
        """Whether this is standard input, a pipe or a device: it can be read once, and may have to be waited for."""
        path = self.path
        return path is None or is_pipe(path)

    def line(self, number: int) -> str:
        """The place of a line, for messages."""
        return f"line {number} of {self}"

    def row(self, number: int) -> str:
        """The place of a record of a file without lines, for messages; they count from 0, as arrays do."""
        return f"row {number} of {self}"

    def open(self) -> Any:
        """The bytes, unpacked where they are gzipped. What can be read once goes on where it was left."""
        if isinstance(self.stream, _Once):
            return self._opened()
        with _awaited(self):  # to open a pipe waits for somebody who writes to it
            return self._opened()

    def _opened(self) -> Any:
        if self.path is not None and self.stream is None:
            try:
                plain: Any = self.path.open("rb")
            except (OSError, ValueError) as error:  # a ValueError: a NUL in the name
                why = getattr(error, "strerror", None) or error
                raise InputError(
                    f"{self} could not be opened: {why}. Expected a file that may be read."
                ) from None
            if plain.seekable():
                return _Unpacked(plain, self) if plain.peek(2)[:2] == GZIP else plain
            self.stream = plain
        if not isinstance(self.stream, _Once):
            self.stream = _Once(self.stream, owned=self.path is not None)
        with guarded(self):
            if self.stream.unpacked is None and self.stream.peek(2) == GZIP:
                self.stream.unpacked = _Unpacked(self.stream, self)
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
                yield number, "", self.too_large(most=block)
                continue
            if number == 0:
                self._check_text(block)
                block = block.removeprefix(BOM)
            try:
                clean, texts = b"\0" not in block, block.decode("utf-8").split("\n")
            except UnicodeDecodeError:
                clean, texts = False, block.decode("utf-8", "surrogateescape").split("\n")
            most = self.most
            small = len(block) <= most
            if clean and small:  # most by far
                for text in texts:
                    number += 1
                    yield number, text, ""
                continue
            for text in texts:
                number += 1
                if not small and len(text.encode("utf-8", "surrogateescape")) > most:
                    yield number, "", self.too_large()
                else:
                    yield number, text, "" if clean else _fault(text)

    @property
    def most(self) -> int:
        """The most that the record at hand may have."""
        return self.max_record if self.packed is None else self.most_of(self.packed)

    def too_large(self, seen: float | None = None, most: int | None = None) -> str:
        """What is wrong with a record of so many bytes, or of more than may be, after its place in a message."""
        allowed = bytes_shown(self.most if most is None else most)
        size = f"more than {allowed}" if seen is None else bytes_shown(seen)
        return f"has {size}; expected a record of at most {allowed}, unless {RAISED}"

    def most_of(self, packed: int) -> int:
        """The most that a record may have which comes from so many packed bytes."""
        return min(self.max_record, max(self.max_record // RECORD_PART, RECORD_RATIO * packed))

    def crowded(self, text: str, mark: str = ",") -> str:
        """What is wrong with a record whose values would take far more memory than its text; "" as a rule.

        `mark` is what stands between values.
        """
        if len(text) <= self.max_record // RECORD_PART:
            return ""
        values, most = text.count(mark) + 1, self.most_values
        if values <= most:
            return ""
        return f"holds {values:,} values; expected a record of at most {most:,} of them, unless {RAISED}"

    @property
    def most_values(self) -> int:
        """The most values that one record may hold."""
        return MOST_VALUES * self.max_record // VALUE_MEMORY

    def _check_text(self, start: bytes) -> None:
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{self} is UTF-16 text; expected UTF-8. Save it as UTF-8.")
        found = next((ending for magic, ending in BINARY.items() if start.startswith(magic)), None)
        if found is not None:
            raise InputError(
                f"{self} is no text: it begins as a file of the form {found}; expected UTF-8 text. Say what it is by "
                "its ending."
            )

    def _blocks(self, separator: bytes) -> Iterator[bytes | int]:
        """The bytes cut at ends of lines, all of which are line feeds now; the end at a cut is left out.

        A line that is too large for a record is passed over without being held; in its place is what it might have had.
        """
        pieces: list[bytes] = []
        held, returned, begun, over = 0, False, False, False
        with self.open() as file:
            while chunk := _some(file, self):
                if isinstance(file, _Unpacked):  # of other files nothing is counted
                    self.packed = file.packed_bytes
                    file.note(chunk.count(b"\n") + (chunk.count(separator) if separator else 0))
                if returned:  # a line's end that fell between two chunks
                    chunk = chunk.removeprefix(b"\n")
                returned = chunk.endswith(b"\r")
                if b"\r" in chunk:
                    chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                if over:
                    end = chunk.find(b"\n")
                    if end < 0:
                        continue
                    over, chunk = False, chunk[end + 1 :]
                cut = chunk.rfind(b"\n")
                if cut >= 0:
                    pieces.append(chunk[:cut])
                    yield b"".join(pieces)
                    pieces, begun, held, chunk = [], True, 0, chunk[cut + 1 :]
                pieces.append(chunk)
                held += len(chunk)
                if held > self.most:
                    if not begun:
                        self._check_text(pieces[0])
                    pieces, held, begun, over = [], 0, True, True
                    yield self.most
        if held:
            yield b"".join(pieces)


def note(opened: Any, values: int) -> None:
    """Say of an opened file that so many values were made of what was just read, which matters if it is packed."""
    if isinstance(opened, _Unpacked):
        opened.note(values)


def _some(file: Any, name: File) -> bytes:
    with guarded(name):
        return file.read(CHUNK)


def _fault(text: str) -> str:
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
    """Trouble of the machine while a file is read (a disk, a network, a folder under the name) as our error."""

    def __init__(self, file: File):
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, OSError):
            raise InputError(f"{self._file} could not be read: {error.strerror or error}.") from None


class _Once:
    """A stream that can be looked into before it is read; standard input is left open."""

    def __init__(self, stream: Any, owned: bool):
        self._stream, self._owned, self._held = stream, owned, b""
        self._ended = False  # then a terminal is not asked again: every time would take a Ctrl-D of its own
        self.unpacked: _Unpacked | None = None

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay there; fewer only at the end."""
        if len(self._held) < size:
            self._held += self._more(size - len(self._held))
        return self._held[:size]

    def _more(self, size: int) -> bytes:
        """So many bytes of the stream; fewer only at its end."""
        pieces: list[bytes] = []
        full = isinstance(
            self._stream, io.BufferedIOBase
        )  # these give less than was asked for at the end only
        while size > 0 and not self._ended:
            pieces.append(self._stream.read(size) or b"")
            self._ended = len(pieces[-1]) < size if full else not pieces[-1]
            size -= len(pieces[-1])
        return b"".join(pieces)

    def read(self, size: int = -1) -> bytes:
        """So many bytes; all of them for −1."""
        if size < 0:
            held, self._held = self._held, b""
            return held if self._ended else held + self._stream.read()
        held, self._held = self._held[:size], self._held[size:]
        return held + self._more(size - len(held)) if len(held) < size else held

    def close(self) -> None:
        """Close the stream if it was opened here."""
        if self._owned:
            self._stream.close()

    def __enter__(self) -> _Once:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Counted(io.RawIOBase):
    """The packed bytes, counted as they are taken: standard input does not say its size."""

    def __init__(self, packed: Any):
        self._packed, self.count = packed, 0

    def read(self, size: int = -1) -> bytes:
        """So many bytes; all of them for −1."""
        data = self._packed.read(size)
        self.count += len(data)
        return data


class _Unpacked:
    """A gzipped file, unpacked as it is read; a small one that stands for far too much is an error.

    It may stand for 400 times as many bytes as were read of it, and for those of one record beyond.
    """

    def __init__(self, packed: Any, file: File):
        self.packed, self._file = packed, file
        self._counted = _Counted(packed)
        self._gzip = gzip.GzipFile(fileobj=self._counted, mode="rb")  # type: ignore[arg-type]
        self._given = 0

    def read(self, size: int = -1) -> bytes:
        """So many bytes; all of them for −1."""
        if size < 0:
            return b"".join(iter(lambda: self.read(CHUNK), b""))
        try:
            data = self._gzip.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{self._file} is damaged or was cut short: {error}. Get it again.") from None
        self._take(len(data))
        return data

    def note(self, values: int) -> None:
        """Take into account that so many values were made of what was unpacked."""
        self._take(VALUE_BYTES * values)

    @property
    def packed_bytes(self) -> int:
        """The bytes that were read so far, packed."""
        return self._counted.count

    def _take(self, size: int) -> None:
        self._given += size
        if self._given > self._file.max_record + LARGEST_RATIO * self._counted.count:
            raise InputError(
                f"{self._file} unpacks to more than {LARGEST_RATIO} times its size, as no text does: it may be made "
                f"to fill the memory. If you trust it, unpack it yourself, or see that {RAISED}."
            )

    def close(self) -> None:
        """Close the file."""
        self._gzip.close()
        self.packed.close()

    def __enter__(self) -> _Unpacked:
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
    for magic, ending in BINARY.items():
        if head.startswith(magic):
            return ending
    if head.startswith(b"PAR1") and not (
        head[4:5].isspace() or b" " <= head[4:5] <= b"~"
    ):  # no word of a text
        return ".parquet"
    # The length of a header in JSON, and its first character.
    if head[8:9] == b"{" and head[4:8] == bytes(4):
        return ".safetensors"
    lines = head.removeprefix(BOM).lstrip().splitlines() or [b""]
    first, *others = (line.decode("utf-8", "replace") for line in lines)
    cut = (
        not others and len(head) >= HEAD // 2
    )  # what is packed may unpack to a little less than was asked for
    if first.startswith(">") and (cut or (others and _SEQUENCE.fullmatch(others[0].strip()))):
        return ".fasta"
    if first.startswith(("{", "[")):
        return _json(first, cut, any(line.strip() for line in others))
    return ".txt"


def begins_object(text: str) -> bool:
    """Whether a line begins as an object of JSON does."""
    return _OBJECT.match(text) is not None


def _json(line: str, cut: bool, more: bool) -> str:
    """The ending for a text that begins with a brace or a bracket: of JSON, or of lines such as "[sigh] ok".

    A value on a line of its own with more after it is one of many; a line of JSON that is not yet complete belongs to
    an array.
    """
    one = ".jsonl" if line.startswith("{") else ".json"
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        near = len(line.rstrip()) - (_LONGEST_TOKEN if cut else 0)
        open_text = cut and error.msg.startswith("Unterminated string")
        broken = begins_object(line.removeprefix("["))  # its reader says what is wrong
        return one if broken or open_text or error.pos >= near else ".txt"
    except (ValueError, RecursionError):  # it is JSON, if none that can be read
        return one
    return ".jsonl" if more else one


def files_of(source: Any, form: str | None = None) -> list[File]:
    """The files that are meant: one, a list of them, or those that match a pattern, in order of their names.

    Examples
    --------
    >>> from importlib.resources import files
    >>> [file.ending for file in files_of(str(files("vendimeter.cli") / "data" / "*.c?v"))]
    ['.csv']
    """
    if isinstance(source, list | tuple):
        if not source:
            raise EmptyError("no file was named; expected at least one.")
        return [file for one in source for file in files_of(one, form)]
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
    found: Sequence[str] = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else []
    if found:
        return [File.of(name, form) for name in found]
    what = "file that matches" if glob.has_magic(pattern) else "file or folder"
    raise InputError(f"there is no {what} {str(source)!r}; check the name and the folder.")
