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

from vendimeter._messages import brief, printable
from vendimeter.errors import EmptyError, InputError

__all__ = ["CHUNK", "File", "begins_object", "files_of", "guarded", "is_pipe", "sniff", "telling"]

LONGEST_LINE = 256 << 20  # bytes of one line: what is longer is no record
FREE_BYTES = 256 << 20  # a packed file may stand for so many bytes in any case …
LARGEST_RATIO = 400  # … and beyond for so many times its own: texts pack 3 to 50 times, a bomb 1,000
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

    def lines(self) -> Iterator[tuple[int, str, str]]:
        r"""Lines without their ends, each with its number from 1 and what is wrong with it: "" as a rule.

        "\n", "\r\n" and "\r" end a line and nothing else. A line with bytes that are no UTF-8, or with a NUL, has a
        fault that follows its place in a message; what is no text at all is an error.
        """
        number = 0
        for block in self._blocks():
            if number == 0:
                self._check_text(block)
                block = block.removeprefix(BOM)
            try:
                clean, texts = b"\0" not in block, block.decode("utf-8").split("\n")
            except UnicodeDecodeError:
                clean, texts = False, block.decode("utf-8", "surrogateescape").split("\n")
            for text in texts:
                number += 1
                yield number, text, "" if clean else _fault(text)

    def _check_text(self, start: bytes) -> None:
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{self} is UTF-16 text; expected UTF-8. Save it as UTF-8.")
        found = next((ending for magic, ending in BINARY.items() if start.startswith(magic)), None)
        if found is not None:
            raise InputError(
                f"{self} is no text: it begins as a file of the form {found}; expected UTF-8 text. Say what it is by "
                "its ending."
            )

    def _blocks(self) -> Iterator[bytes]:
        """The bytes cut at ends of lines, all of which are line feeds now; the end at a cut is left out."""
        pieces: list[bytes] = []
        held, returned = 0, False
        with self.open() as file:
            while chunk := _some(file, self):
                if returned:  # a line's end that fell between two chunks
                    chunk = chunk.removeprefix(b"\n")
                returned = chunk.endswith(b"\r")
                if b"\r" in chunk:
                    chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                cut = chunk.rfind(b"\n")
                if cut >= 0:
                    pieces.append(chunk[:cut])
                    yield b"".join(pieces)
                    pieces, held, chunk = [], 0, chunk[cut + 1 :]
                pieces.append(chunk)
                held += len(chunk)
                if held > LONGEST_LINE:
                    raise InputError(
                        f"{self} has a line of more than {LONGEST_LINE >> 20} MiB, which is no record; expected text "
                        "with line ends."
                    )
        if held:
            yield b"".join(pieces)


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
    """A gzipped file, unpacked as it is read; a small one that stands for far too much is an error."""

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
        self._given += len(data)
        if self._given > FREE_BYTES and self._given > LARGEST_RATIO * self._counted.count:
            raise InputError(
                f"{self._file} unpacks to more than {LARGEST_RATIO} times its size, as no text does: it may be made "
                "to fill the memory. Unpack it yourself if you trust it."
            )
        return data

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
