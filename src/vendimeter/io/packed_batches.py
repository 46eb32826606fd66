"""Arrow's messages, checked before they are decoded: a few packed bytes may stand for more than the memory holds.

A message is a head, a flatbuffer, and a body with the buffers of its columns. A packed buffer begins with the number of
bytes that it stands for, for which Arrow takes memory without a second look.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from vendimeter.errors import InputError
from vendimeter.io.sources import LARGEST_RATIO, RAISED, VALUE_BYTES, File
from vendimeter.present.numbers import format_bytes

__all__ = ["Blocks", "Limit", "Mapped", "Messages"]

MAGIC = b"ARROW1"
CONTINUATION = b"\xff" * 4  # in front of a message's length, since version 0.15
DICTIONARY, BATCH = 2, 3  # what the head of a message is about
# How version 0.17 said that buffers are packed; Arrow reads it still.
OLD_MARK = b"ARROW:experimental_compression"
PIECE = 16 << 20  # bytes of a stream that are read at a time: a message may claim more than there are
BUFFER = np.dtype([("offset", "<i8"), ("length", "<i8")])
BLOCK = np.dtype([("offset", "<i8"), ("head", "<i4"), ("padding", "<i4"), ("body", "<i8")])


class _Damaged(ValueError):
    """What is wrong with bytes that are no message of Arrow's."""


@contextmanager
def _refuse_damaged(file: File) -> Iterator[None]:
    try:
        yield
    except _Damaged as error:
        raise InputError(
            f"{file} could not be read; it is damaged or was cut short: {error}. Get it again."
        ) from None


# ---------------------------------------------------------------------------------------------------------- flatbuffers


class _Table:
    """A table of a flatbuffer; every offset in it is checked, since all of them come from the file."""

    def __init__(self, data: Any, position: int):
        self._data, self._position = data, position
        self._fields = position - _number(data, "<i", position)
        self._end = self._fields + _number(data, "<H", self._fields)

    @classmethod
    def root(cls, data: Any) -> _Table:
        """The table that a buffer holds."""
        return cls(data, _number(data, "<I", 0))

    def _field_position(self, field: int) -> int | None:
        entry = self._fields + 4 + 2 * field
        offset = _number(self._data, "<H", entry) if entry + 2 <= self._end else 0
        return self._position + offset if offset else None

    def _target_position(self, field: int) -> int | None:
        position = self._field_position(field)
        return None if position is None else position + _number(self._data, "<I", position)

    def number(self, field: int, form: str) -> int:
        """The number in a field; 0 where the field is left out."""
        position = self._field_position(field)
        return 0 if position is None else _number(self._data, form, position)

    def table(self, field: int) -> _Table | None:
        """The table that a field refers to."""
        position = self._target_position(field)
        return None if position is None else _Table(self._data, position)

    def records(self, field: int, kind: np.dtype) -> np.ndarray:
        """The list of records of fixed size that a field refers to."""
        position = self._target_position(field)
        if position is None:
            return np.zeros(0, kind)
        count = _number(self._data, "<I", position)
        if count * kind.itemsize > len(self._data) - position - 4:
            raise _Damaged("a list in the head of a message is longer than the head")
        return np.frombuffer(self._data, kind, count, position + 4)


def _number(data: Any, form: str, position: int) -> int:
    if not 0 <= position <= len(data) - struct.calcsize(form):
        raise _Damaged("the head of a message points out of itself")
    return struct.unpack_from(form, data, position)[0]


# ------------------------------------------------------------------------------------------------------------- messages


def _body_length(head: Any) -> int:
    length = _Table.root(head).number(3, "<q")
    if length < 0:
        raise _Damaged("a message has a negative length")
    return length


def _record_batch(head: Any) -> _Table | None:
    """The record batch that a message is, or that holds the entries of its dictionary; None where it is neither."""
    message = _Table.root(head)
    kind, batch = message.number(1, "<B"), message.table(2)
    if batch is not None and kind == DICTIONARY:
        batch = batch.table(1)
    elif kind != BATCH:
        return None
    if batch is None:
        raise _Damaged("a message has no head")
    return batch


def _packed_buffers(head: Any) -> np.ndarray | None:
    """The positions in the body of the packed buffers of a message; None where they are not packed."""
    batch = _record_batch(head)
    if batch is None or (batch.table(3) is None and OLD_MARK not in bytes(head)):
        return None
    return batch.records(2, BUFFER)


def _row_count(head: Any) -> int:
    """The number of rows of a message, which may take no byte of it where they are all the same."""
    batch = _record_batch(head)
    return 0 if batch is None else batch.number(0, "<q")


def _unpacked_size(head: Any, body: Any) -> int:
    """The bytes that a message takes when it is decoded, by what it says of itself."""
    buffers = _packed_buffers(head)
    if buffers is None:
        return len(body)
    offsets, lengths = buffers["offset"][buffers["length"] != 0], buffers["length"][buffers["length"] != 0]
    if (offsets < 0).any() or (lengths < 8).any() or (offsets > len(body) - lengths).any():
        raise _Damaged("a packed buffer does not lie in its message")
    if not len(offsets):
        return 0
    lengths_unpacked = np.frombuffer(body, np.uint8)[offsets[:, None] + np.arange(8)].view("<i8")[:, 0]
    if (lengths_unpacked < -1).any():
        raise _Damaged("a packed buffer has a negative length")
    # The sentinel −1 stands before a buffer that is stored as it is.
    return sum(np.where(lengths_unpacked == -1, lengths, lengths_unpacked).tolist())


class Limit:
    """How much the messages of a file may unpack to, each by itself and all of them together.

    Parameters
    ----------
    file : File
        For messages.
    size : int, optional
        The bytes of the file; without it, those that were read so far.
    stream : Any, optional
        A gzipped stream that the messages come from.
    """

    def __init__(self, file: File, size: int | None = None, stream: Any = None):
        self.file, self._size, self._stream = file, size, stream
        self._packed_bytes = self._unpacked_bytes = self._rows = 0

    def take(self, head: Any, body: Any) -> None:
        """Raise where a message is damaged, or stands for far too much."""
        with _refuse_damaged(self.file):
            unpacked_bytes, rows = _unpacked_size(head, body), _row_count(head)
        self._check(f"{self.file} has a record batch of", unpacked_bytes, len(body))
        self._unpacked_bytes += unpacked_bytes
        self._packed_bytes += len(body)
        self._rows += rows
        packed = self.packed
        self._check(f"{self.file} has", self._unpacked_bytes, packed)
        if rows < 0 or VALUE_BYTES * self._rows > self.file.max_record + LARGEST_RATIO * packed:
            raise InputError(
                f"{self.file} has {format_bytes(packed)} and says that it holds {self._rows:,} rows, more than that "
                f"can stand for: it may be made to fill the memory. If you trust it, see that {RAISED}."
            )

    @property
    def packed(self) -> int:
        """The packed bytes that were read: those of the gzipped stream, where the messages come from one."""
        return getattr(self._stream, "packed_bytes", self._packed_bytes if self._size is None else self._size)

    def _check(self, beginning: str, unpacked_bytes: int, packed: int) -> None:
        if unpacked_bytes > self.file.max_record + LARGEST_RATIO * packed:
            raise InputError(
                f"{beginning} {format_bytes(packed)} and says that it unpacks to "
                f"{format_bytes(unpacked_bytes)}, more than "
                f"{LARGEST_RATIO} times as much: it may be made to fill the memory. If you trust it, write it again "
                f"without compression, or see that {RAISED}."
            )


def _next_message(read: Callable[[int], Any]) -> list[Any]:
    """The next message of a stream in pieces: marks and lengths, head, body; no head and body at the end of it."""
    marks = [read(4)]
    if bytes(marks[0]) == CONTINUATION:
        marks.append(read(4))
    if len(marks[-1]) < 4:
        if len(marks) > 1 or len(marks[0]):
            raise _Damaged("it ends within a message")
        return []
    length = int.from_bytes(marks[-1], "little", signed=True)
    if length == 0:
        return marks
    head = read(length) if length > 0 else b""
    if len(head) != length:
        raise _Damaged("it ends within the head of a message")
    body = read(_body_length(head))
    if len(body) != _body_length(head):
        raise _Damaged("it ends within a message")
    return [*marks, head, body]


class Messages:
    """A stream of messages as Arrow reads it, each checked before any of it is given.

    Parameters
    ----------
    stream : Any
        What has `read` and `close`.
    limit : Limit
        What the messages may stand for.
    """

    closed = False

    def __init__(self, stream: Any, limit: Limit):
        self._stream, self._limit = stream, limit
        self._pieces: deque[Any] = deque()
        self._ended = False

    def read(self, size: int) -> Any:
        """Up to this many bytes, fewer at the end; not copied where they are a piece of a message."""
        pieces: list[Any] = []
        while size > 0 and self._fill():
            piece = self._pieces.popleft()
            if len(piece) > size:
                self._pieces.appendleft(memoryview(piece)[size:])
                piece = memoryview(piece)[:size]
            pieces.append(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _fill(self) -> bool:
        if not self._pieces and not self._ended:
            with _refuse_damaged(self._limit.file):
                pieces = _next_message(self._take)
            self._ended = len(pieces) < 3
            if not self._ended:
                self._limit.take(*pieces[-2:])
            self._pieces += [piece for piece in pieces if len(piece)]
        return bool(self._pieces)

    def _take(self, size: int) -> Any:
        pieces: list[Any] = []
        while size > 0 and len(piece := self._stream.read(min(size, PIECE))):
            pieces.append(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Close the stream."""
        self.closed = True
        self._stream.close()


class Mapped(Messages):
    """A stream of messages in a file that is mapped into memory: nothing is copied."""

    def __init__(self, data: memoryview, limit: Limit):
        super().__init__(None, limit)
        self._data, self._position = data, 0

    def _take(self, size: int) -> Any:
        data = self._data[self._position : self._position + size]
        self._position += len(data)
        return data

    def close(self) -> None:
        """Close nothing: the arrays that were read go on to hold the file."""
        self.closed = True


class Blocks:
    """The messages of an Arrow file in its own order, which its table of contents says, whatever lies in between.

    Parameters
    ----------
    data : memoryview
        The file.
    limit : Limit
        What the messages may stand for.
    """

    def __init__(self, data: memoryview, limit: Limit):
        self._data, self._limit = data, limit
        with _refuse_damaged(limit.file):
            self._dictionaries, self._batches = self._read_contents()
        self._has_dictionaries = False

    def _read_contents(self) -> tuple[list[Any], list[Any]]:
        end = len(self._data) - len(MAGIC) - 4
        if end < len(MAGIC) or self._data[end + 4 :] != MAGIC:
            raise _Damaged("it ends without the mark of Arrow's end")
        length = _number(self._data, "<i", end)
        if not 0 < length <= end - len(MAGIC):
            raise _Damaged("its table of contents is longer than the file")
        contents = _Table.root(self._data[end - length : end])
        return contents.records(2, BLOCK).tolist(), contents.records(3, BLOCK).tolist()

    def _message(self, block: Any) -> tuple[memoryview, memoryview]:
        start, head, _, _ = block
        if start < 0 or head < 4 or start > len(self._data) - head:
            raise _Damaged("its table of contents points out of the file")
        prefix = 8 if self._data[start : start + 4] == CONTINUATION else 4
        if prefix + _number(self._data[start : start + head], "<i", prefix - 4) != head:
            raise _Damaged("the head of a message has not the length that the table of contents says")
        head_data = self._data[start + prefix : start + head]
        length = _body_length(head_data)
        if length > len(self._data) - start - head:
            raise _Damaged("it ends within a message")
        return head_data, self._data[start + head : start + head + length]

    def is_packed(self) -> bool:
        """Whether the buffers of the first record batch are packed."""
        with _refuse_damaged(self._limit.file):
            return bool(self._batches) and _packed_buffers(self._message(self._batches[0])[0]) is not None

    def check(self, number: int) -> None:
        """Raise where a record batch, or a dictionary that comes with the first, may not be decoded."""
        blocks = self._batches[number : number + 1]
        for block in blocks if self._has_dictionaries else [*self._dictionaries, *blocks]:
            with _refuse_damaged(self._limit.file):
                message = self._message(block)
            self._limit.take(*message)
        self._has_dictionaries = True
