"""The heads of the pages of a Parquet file, which tell what it really holds before any page is decoded.

A page is unpacked whole, and a few of its bytes may stand for any number of values: of one that comes again and again,
or of lists in lists. The sizes in the table of contents may be wrong; those in front of each page are what the library
takes memory by. Both are in Thrift's compact form, of which only what is needed is read here: to ask pyarrow for the
places of columns ends the process where a file is damaged.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.data import arrow
from vendimeter.errors import InputError
from vendimeter.io.sources import RAISED, VALUE_BYTES, File
from vendimeter.messages import brief
from vendimeter.present.numbers import format_bytes

__all__ = ["PART_BYTES", "Contents", "Plan", "plan_of"]

PART_BYTES = 64 << 20  # of a part: fewer records than asked for where they are larger than that
LARGEST_PAGE = 4  # times the bytes of a record that a page may unpack to …
PAGE_RATIO = 16  # … and beyond so many times its own: it is unpacked whole
# Bytes unpacked for each packed one from which on the lengths of lists are read: few may stand for one of any length.
LIST_RATIO = 64
LONG_ENTRY = 4096  # bytes of a dictionary from which on its longest entry is looked for
HEAD = 256  # bytes that are read for the head of a page; its statistics may make it longer
LONGEST_HEAD = 16 << 20

BOOLEAN, BYTES, FIXED = 0, 6, 7  # physical types
WIDTHS = {BOOLEAN: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
DATA, DICTIONARY, DATA_2 = 0, 2, 3  # types of pages
PLAIN, PLAIN_DICTIONARY, RUNS, FRONT_CODED, DICTIONARY_CODED = 0, 2, 3, 7, 8  # encodings
CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
UNPACKED = 0
REPEATED = 2


class _Damaged(Exception):
    """What is wrong with bytes that are not as the format has them."""


# ---------------------------------------------------------------------------------------------------- Thrift, compact

_STOP, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 0, 3, 7, 8, 9, 10, 11, 12
_DEEPEST = 64


class _Thrift:
    """A reader of Thrift's compact form: values one after another, from which what is not needed is skipped."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def varint(self) -> int:
        """An unsigned integer."""
        data, at = self.data, self.at
        byte = data[at]
        at += 1
        if byte < 128:
            self.at = at
            return byte
        value, shift = byte & 127, 7
        while byte > 127:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if shift > 70:
                raise _Damaged("a number is too long")
        self.at = at
        return value

    def number(self) -> int:
        """A signed integer, in zigzag form."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        """A text, as bytes."""
        size = self.varint()
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise IndexError
        return self.data[start : self.at]

    def items(self) -> tuple[int, int]:
        """The count of a list and the type of its items, which follow."""
        head = self.data[self.at]
        self.at += 1
        count = head >> 4
        return (self.varint() if count == 15 else count), head & 15

    def fields(self) -> Iterator[tuple[int, int]]:
        """The fields of a structure, each with its type; each must be read or skipped before the next."""
        name = 0
        while True:
            head = self.data[self.at]
            self.at += 1
            if head & 15 == _STOP:
                return
            name = name + (head >> 4) if head >> 4 else self.number()
            yield name, head & 15

    def skip(self, kind: int, depth: int = 0) -> None:
        """Skip a value of a type."""
        if kind <= 2:  # true or false, told by the type
            return
        if kind == _BYTE:
            self.at += 1
        elif kind < _DOUBLE:
            self.varint()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            size = self.varint()
            self.at += size
        elif depth == _DEEPEST:
            raise _Damaged("its table of contents is nested too deeply")
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (_LIST, _SET):
            count, inner = self.items()
            self._skip_items(count, (inner,), depth)
        elif kind == _MAP:
            count = self.varint()
            if count:
                self.at += 1
                kinds = self.data[self.at - 1]
                self._skip_items(count, (kinds >> 4, kinds & 15), depth)
        else:
            raise _Damaged("a value is of no known type")

    def _skip_items(self, count: int, kinds: Sequence[int], depth: int) -> None:
        if count > len(self.data) - self.at:
            raise _Damaged("a list is longer than what holds it")
        for _ in range(count):
            for kind in kinds:  # truth values take a byte in a list
                self.skip(_BYTE if kind <= 2 else kind, depth + 1)


# -------------------------------------------------------------------------------------------------- table of contents


@dataclass(frozen=True)
class Leaf:
    """A column as it is stored: one of plain values, which may be part of lists or records."""

    column: str  # that it belongs to
    kind: int
    width: int | None  # bytes of a value; None where they differ
    depth: int  # lists around it


@dataclass(frozen=True)
class Chunk:
    """The pages of a leaf in one row group."""

    codec: int
    values: int
    start: int
    size: int


@dataclass
class Contents:
    """The table of contents: leaves, and of each row group its rows and chunks of the wanted leaves."""

    leaves: list[Leaf] = field(default_factory=list)
    groups: list[tuple[int, dict[int, Chunk]]] = field(default_factory=list)


def _contents(data: bytes, columns: Sequence[str]) -> Contents:
    thrift, contents = _Thrift(data), Contents()
    names = frozenset(columns)
    chosen_leaves: list[int] = []
    for name, kind in thrift.fields():
        if name == 2 and kind == _LIST:
            count, _ = thrift.items()
            contents.leaves = _read_leaves(thrift, count)
            chosen_leaves = [i for i, leaf in enumerate(contents.leaves) if leaf.column in names]
        elif name == 4 and kind == _LIST:
            count, _ = thrift.items()
            for _ in range(count):
                contents.groups.append(_read_group(thrift, frozenset(chosen_leaves)))
        else:
            thrift.skip(kind)
    return contents


def _read_leaves(thrift: _Thrift, count: int) -> list[Leaf]:
    """The schema, which lists its nodes depth first, each with the number of those below it."""
    leaves: list[Leaf] = []
    open_nodes: list[list[Any]] = []  # how many nodes are still to come, column, lists around them
    for at in range(count):
        kind = width = repetition = children = 0
        name = b""
        for key, form in thrift.fields():
            if key == 1:
                kind = thrift.number()
            elif key == 2:
                width = thrift.number()
            elif key == 3:
                repetition = thrift.number()
            elif key == 4:
                name = thrift.binary()
            elif key == 5:
                children = thrift.number()
            else:
                thrift.skip(form)
        if at == 0:
            open_nodes.append([children, None, 0])
            continue
        if not open_nodes:
            raise _Damaged("its schema has more columns than it says")
        _, column, depth = open_nodes[-1]
        column = name.decode("utf-8", "replace") if column is None else column
        depth += repetition == REPEATED
        open_nodes[-1][0] -= 1
        if children > 0:
            open_nodes.append([children, column, depth])
        else:
            size = WIDTHS.get(kind, width if kind == FIXED else None)
            leaves.append(Leaf(column, kind, size, depth))
        while open_nodes and open_nodes[-1][0] <= 0:
            open_nodes.pop()
    return leaves


def _read_group(thrift: _Thrift, chosen: frozenset[int]) -> tuple[int, dict[int, Chunk]]:
    rows, chunks = 0, {}
    for name, kind in thrift.fields():
        if name == 1 and kind == _LIST:
            count, inner = thrift.items()
            for i in range(count):
                if i in chosen:
                    chunks[i] = _read_chunk(thrift)
                else:
                    thrift.skip(inner)
        elif name == 3:
            rows = thrift.number()
        else:
            thrift.skip(kind)
    return rows, chunks


def _read_chunk(thrift: _Thrift) -> Chunk:
    codec = values = size = start = dictionary = 0
    for name, kind in thrift.fields():
        if name != 3 or kind != _STRUCT:
            thrift.skip(kind)
            continue
        for key, form in thrift.fields():
            if key == 4:
                codec = thrift.number()
            elif key == 5:
                values = thrift.number()
            elif key == 7:
                size = thrift.number()
            elif key == 9:
                start = thrift.number()
            elif key == 11:
                dictionary = thrift.number()
            else:
                thrift.skip(form)
    return Chunk(codec, values, dictionary if 0 < dictionary < start else start, size)


# -------------------------------------------------------------------------------------------------------------- pages


@dataclass(frozen=True)
class Page:
    """The head of a page."""

    kind: int
    unpacked: int
    packed: int
    values: int
    encoding: int
    # Of lists: the bytes of their levels in the second form of pages, and how those are encoded in the first.
    levels: int
    start: int  # of what follows the head


def _read_page(data: bytes, at: int) -> Page:
    thrift = _Thrift(data)
    kind = unpacked = packed = values = encoding = levels = 0
    for name, form in thrift.fields():
        if name == 1:
            kind = thrift.number()
        elif name == 2:
            unpacked = thrift.number()
        elif name == 3:
            packed = thrift.number()
        elif name in (5, 7, 8) and form == _STRUCT:
            for key, inner in thrift.fields():
                if key == 1:
                    values = thrift.number()
                elif key == (4 if name == 8 else 2):
                    encoding = thrift.number()
                elif key == (6 if name == 8 else 4) and name != 7:
                    levels = thrift.number()
                else:
                    thrift.skip(inner)
        else:
            thrift.skip(form)
    if min(unpacked, packed, values, levels) < 0:
        raise _Damaged("a page has a negative size")
    return Page(kind, unpacked, packed, values, encoding, levels, at + thrift.at)


def _pages(file: Any, chunk: Chunk) -> Iterator[Page]:
    """The heads of the pages of a chunk, up to the last value."""
    at, end, seen = chunk.start, chunk.start + chunk.size, 0
    while seen < chunk.values and at < end:
        size = HEAD
        while True:
            file.seek(at)
            data = file.read(size)
            try:
                page = _read_page(data, at)
                if page.start <= at + len(data):
                    break
            except IndexError:
                pass
            if len(data) < size or size >= LONGEST_HEAD:
                raise _Damaged("the head of a page is cut short")
            size *= 16
        if page.packed > end - page.start:
            raise _Damaged("a page is longer than its column")
        yield page
        seen += page.values if page.kind != DICTIONARY else 0
        at = page.start + page.packed


def _unpack(file: Any, page: Page, codec: int) -> bytes | None:
    """The unpacked bytes of a page, whose size was checked; None where its codec is not known here."""
    file.seek(page.start)
    data = file.read(page.packed)
    if codec == UNPACKED:
        return data
    if codec not in CODECS:
        return None
    pa = arrow.library()
    try:
        return pa.decompress(data, decompressed_size=page.unpacked, codec=CODECS[codec], asbytes=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _Damaged(f"a page cannot be unpacked ({error})") from None


def _longest_entry(file: Any, page: Page, codec: int) -> int:
    """The bytes of the longest text in a dictionary."""
    data = _unpack(file, page, codec)
    if data is None:
        return page.unpacked
    at = longest = 0
    end, number = len(data) - 4, struct.Struct("<I").unpack_from
    while at <= end:
        (size,) = number(data, at)
        at += 4 + size
        if size > longest:
            longest = size
    return min(longest, len(data))


class _Lists:
    """The length of the longest list, from the repetition levels of consecutive pages: 0 where a list begins."""

    def __init__(self, depth: int):
        self._bits = depth.bit_length()
        self.longest = self._current = 0

    def add(self, data: bytes, values: int) -> None:
        """Add the repetition levels of one page: runs of one value, and bit-packed groups of eight."""
        thrift = _Thrift(data)
        while values > 0 and thrift.at < len(data):
            head = thrift.varint()
            if head & 1:
                size = (head >> 1) * self._bits
                packed = np.frombuffer(data[thrift.at : thrift.at + size], np.uint8)
                bits = np.unpackbits(packed, bitorder="little")
                groups = bits[: len(bits) - len(bits) % self._bits].reshape(-1, self._bits)
                levels = np.any(groups, axis=1)[:values]
                thrift.at += size
                self._add_starts(np.flatnonzero(np.logical_not(levels)), len(levels))
                values -= max(1, len(levels))
            else:
                count, size = min(head >> 1, values), -(-self._bits // 8)
                level = int.from_bytes(data[thrift.at : thrift.at + size], "little")
                thrift.at += size
                if level:
                    self._current += count
                elif count:
                    self.longest, self._current = max(self.longest, self._current), 1
                values -= max(1, count)
        self.longest = max(self.longest, self._current)

    def _add_starts(self, starts: np.ndarray, count: int) -> None:
        if not len(starts):
            self._current += count
            return
        self.longest = max(self.longest, self._current + int(starts[0]), int(np.diff(starts).max(initial=0)))
        self._current = count - int(starts[-1])


# --------------------------------------------------------------------------------------------------------------- plan


@dataclass(frozen=True)
class Plan:
    """How to read a file: the columns that stay dictionaries, and of each row group the rows to read at a time."""

    texts: list[str]
    rows: list[int]


@dataclass
class _ChunkSummary:
    """What the pages of a chunk stand for."""

    values: int = 0
    packed: int = 0
    unpacked: int = 0  # bytes of its values, each by itself
    value_bytes: float = 0.0  # bytes of a value, in the page where they are largest
    is_coded: bool = False  # whether all pages refer to a dictionary
    longest_entry: int = 0  # bytes of its longest entry
    longest_list: int | None = None  # values of the longest list, where that was looked at


def plan_of(
    opened: Any, size: int, columns: Sequence[str], texts: Sequence[str], rows: int, file: File
) -> Plan:
    """How to read the columns of a file, by the heads of their pages; refuses what would fill the memory at once.

    Parameters
    ----------
    opened : file
        The bytes, from any place.
    size : int
        How many there are.
    wanted : list of str
        The columns to read.
    texts : list of str
        Those of texts or bytes, which may stay dictionaries.
    rows : int
        The most rows to read at a time.
    file : File
        For messages.
    """
    try:
        opened.seek(size - 8)
        length = int.from_bytes(opened.read(4), "little")
        if length > size - 12:
            raise _Damaged("its table of contents is longer than the file")
        opened.seek(size - 8 - length)
        contents = _contents(opened.read(length), columns)
        summaries = [_summarize_group(opened, contents, group, file) for group in contents.groups]
    except _Damaged as error:
        raise InputError(f"{file} could not be read; it is damaged: {error}. Get it again.") from None
    except IndexError:
        raise InputError(
            f"{file} could not be read; it is damaged: its table of contents is cut short. Get it again."
        ) from None
    leaves = contents.leaves
    dictionary_leaves = {
        i
        for i, leaf in enumerate(leaves)
        if leaf.column in texts
        and all(group_summaries[i].is_coded for group_summaries in summaries if i in group_summaries)
    }
    row_steps, first_row = [], 0
    for (count, _), group_summaries in zip(contents.groups, summaries, strict=True):
        bytes_per_row = sum(
            VALUE_BYTES
            if i in dictionary_leaves
            else _bytes_per_row(summary, leaves[i], max(1, count), file, first_row)
            for i, summary in group_summaries.items()
        )
        row_steps.append(max(1, min(rows, int(PART_BYTES / max(bytes_per_row, 1)))))
        first_row += count
    return Plan([leaves[i].column for i in dictionary_leaves], row_steps)


def _bytes_per_row(summary: _ChunkSummary, leaf: Leaf, rows: int, file: File, first_row: int) -> float:
    """An upper bound on the bytes that a leaf adds to a row; a list that is too long for a record is an error."""
    if not leaf.depth:
        return summary.value_bytes
    if summary.longest_list is not None and summary.longest_list * summary.value_bytes > file.max_record:
        raise InputError(
            f"{file} has a list of {summary.longest_list:,} values in the column {brief(leaf.column)}, "
            f"among rows {first_row:,} "
            f"to {first_row + rows - 1:,}; expected a record of at most {format_bytes(file.max_record)}, "
            f"unless {RAISED}."
        )
    mean = summary.unpacked / rows
    return (
        mean
        if summary.longest_list is None
        else max(mean, min(summary.longest_list, summary.values) * summary.value_bytes)
    )


def _summarize_group(
    opened: Any, contents: Contents, group: tuple[int, dict[int, Chunk]], file: File
) -> dict[int, _ChunkSummary]:
    return {i: _summarize(opened, chunk, contents.leaves[i], file) for i, chunk in group[1].items()}


def _summarize(opened: Any, chunk: Chunk, leaf: Leaf, file: File) -> _ChunkSummary:
    """What the pages of a chunk stand for; a page that unpacks to far too much is an error."""
    summary, pages = _ChunkSummary(is_coded=True), []
    page_limit = max(PART_BYTES, LARGEST_PAGE * file.max_record)
    for page in _pages(opened, chunk):
        if page.unpacked > page_limit and page.unpacked > PAGE_RATIO * page.packed:
            raise InputError(
                f"{file} has a page of {format_bytes(page.packed)} in the column {brief(leaf.column)} that unpacks to "
                f"{format_bytes(page.unpacked)}: it may be made to fill the memory. If you trust it, see that {RAISED}."
            )
        summary.packed += page.packed
        if page.kind == DICTIONARY:
            summary.longest_entry = page.unpacked
            if leaf.width is None and page.unpacked > LONG_ENTRY:
                summary.longest_entry = _longest_entry(opened, page, chunk.codec)
        elif page.kind in (DATA, DATA_2):
            pages.append(page)
            is_coded = page.encoding in (PLAIN_DICTIONARY, DICTIONARY_CODED)
            summary.is_coded = summary.is_coded and is_coded
            value_bytes = _value_bytes(page, leaf, is_coded, summary.longest_entry)
            summary.values += page.values
            summary.unpacked += int(value_bytes * page.values)
            summary.value_bytes = max(summary.value_bytes, value_bytes)
    if leaf.depth and summary.unpacked > page_limit and summary.unpacked > LIST_RATIO * summary.packed:
        summary.longest_list = _longest_list(opened, pages, chunk.codec, leaf.depth)
    return summary


def _value_bytes(page: Page, leaf: Leaf, is_coded: bool, longest_entry: int) -> float:
    """The bytes of a value of a page: an upper bound on the mean over any run of values."""
    if leaf.width is not None:
        return leaf.width
    if is_coded:
        return longest_entry
    # In front coding a value repeats the beginning of the one before it.
    return page.unpacked if page.encoding == FRONT_CODED else page.unpacked / max(1, page.values)


def _longest_list(opened: Any, pages: Sequence[Page], codec: int, depth: int) -> int:
    """The values of the longest list in pages; all values where they cannot be unpacked here."""
    lists, total = _Lists(depth), 0
    for page in pages:
        total += page.values
        if page.kind == DATA_2:
            opened.seek(page.start)
            lists.add(opened.read(page.levels), page.values)
            continue
        data = _unpack(opened, page, codec) if page.levels == RUNS else None
        if data is None:
            return sum(page.values for page in pages)
        length = int.from_bytes(data[:4], "little")
        lists.add(data[4 : 4 + length], page.values)
    return lists.longest
