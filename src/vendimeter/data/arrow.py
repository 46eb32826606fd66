"""Arrow arrays → what kernels take: vectors as rows of one array, texts and records as lists.

Nothing is executed: an extension type is read as what it is stored in. Vectors in lists are neither looped over nor
copied: the numbers of all rows lie one after another, and only their lengths and gaps are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from vendimeter.messages import shape_of
from vendimeter.optional import require

__all__ = [
    "Flaws",
    "chunks",
    "column",
    "flaws",
    "is_pictures",
    "is_texts_once",
    "is_vectors",
    "kept_rows",
    "library",
    "longest_entry",
    "may_share",
    "pathed",
    "row_bytes",
    "shape",
    "unwrap",
    "values",
]

MISSING, GAP, LENGTH, ENCODING = 1, 2, 3, 4  # what is wrong with a row


def library() -> Any:
    """The module pyarrow."""
    return require("pyarrow", extra="files", purpose="reading Arrow data")


class Flaws(NamedTuple):
    """Rows that cannot be used, in order, and what is wrong with each, as in "item 3 …"."""

    rows: np.ndarray
    reason: Callable[[int], str]


# ---------------------------------------------------------------------------------------------------------- types


def _is_list(kind: Any) -> bool:
    types = library().types
    return (
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def _is_number(kind: Any) -> bool:
    types = library().types
    return (
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    )


def _is_text(kind: Any) -> bool:
    types = library().types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _is_bytes(kind: Any) -> bool:
    types = library().types
    return types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)


def _stored_type(kind: Any) -> Any:
    while hasattr(kind, "storage_type") or _is_nested_dictionary(kind):
        kind = kind.storage_type if hasattr(kind, "storage_type") else kind.value_type
    return kind


def _is_nested_dictionary(kind: Any) -> bool:
    types = library().types
    return types.is_dictionary(kind) and types.is_nested(kind.value_type)


def _leaf(kind: Any) -> Any:
    """What lists of lists hold in the end."""
    kind = _stored_type(kind)
    while _is_list(kind):
        kind = _stored_type(kind.value_type)
    return kind


def is_vectors(kind: Any) -> bool:
    """Whether a column of this type holds vectors: lists of numbers, or lists of such lists."""
    return _is_list(_stored_type(kind)) and _is_number(_leaf(kind))


def is_pictures(kind: Any) -> bool:
    """Whether a column of this type holds pictures as Hugging Face has them: records of bytes and a path."""
    kind = _stored_type(kind)
    names = {field.name for field in kind} if library().types.is_struct(kind) else set()
    return bool(names) and names <= {"bytes", "path"}


def unwrap(array: Any) -> Any:
    """An array without what wraps it: extension types, runs of equal values, a dictionary of lists."""
    pa = library()
    types = pa.types
    while True:
        if hasattr(array.type, "storage_type"):
            array = array.storage
        elif _is_nested_dictionary(array.type):
            array = array.dictionary_decode()
        elif types.is_string_view(array.type) or types.is_binary_view(array.type):
            # As bytes first: a cast of texts stops at what is no UTF-8, and such rows are named one by one.
            binary = array.cast(pa.binary_view()).cast(pa.large_binary())
            array = binary.view(pa.large_string()) if types.is_string_view(array.type) else binary
        elif types.is_run_end_encoded(array.type):
            compute = require("pyarrow.compute", extra="files", purpose="reading Arrow data")
            array = compute.run_end_decode(array)
        else:
            return array


def _decode_dictionary(array: Any) -> Any:
    """A dictionary array as its values; Arrow itself cannot do so for texts in views, as Polars has them."""
    return unwrap(array.dictionary).take(array.indices)


def _lengths(lists: Any) -> np.ndarray:
    """The length of each list; 0 where there is none."""
    if library().types.is_fixed_size_list(lists.type):
        full = np.full(len(lists), lists.type.list_size, dtype=np.int64)
        return full * lists.is_valid().to_numpy(zero_copy_only=False) if lists.null_count else full
    lengths = lists.value_lengths()
    return (lengths.fill_null(0) if lengths.null_count else lengths).to_numpy()


# ------------------------------------------------------------------------------------------------- bytes per row


def may_share(kind: Any) -> bool:
    """Whether rows of this type may stand for the same bytes, so that they take more memory than they have."""
    types = library().types
    while hasattr(kind, "storage_type"):
        kind = kind.storage_type
    if types.is_list_view(kind) or types.is_large_list_view(kind) or _is_shared(kind):
        return True
    return any(may_share(kind.field(i).type) for i in range(kind.num_fields))


def _is_shared(kind: Any) -> bool:
    types = library().types
    ends = types.is_dictionary(kind) or types.is_run_end_encoded(kind) or types.is_union(kind)
    return ends or types.is_string_view(kind) or types.is_binary_view(kind)


def is_texts_once(kind: Any) -> bool:
    """Whether a column of this type is a dictionary of plain values, each of which is made once."""
    types = library().types
    return types.is_dictionary(kind) and not types.is_nested(kind.value_type)


def longest_entry(array: Any) -> int:
    """The bytes of the longest entry of a dictionary."""
    return int(row_bytes(array.dictionary).max(initial=0))


def row_bytes(array: Any) -> np.ndarray:
    """How many bytes each row stands for, without making any of them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> row_bytes(pa.DictionaryArray.from_arrays([0, 1, 0], ["a text", "b"])).tolist()
    [6, 1, 6]
    >>> row_bytes(pa.array([[1.0, 2.0], None, [3.0]])).tolist()
    [16, 0, 8]
    """
    types, n = library().types, len(array)
    while hasattr(array.type, "storage_type"):
        array = array.storage
    kind = array.type
    width = _width(kind)
    if width is not None:
        return np.full(n, width, dtype=np.int64)
    if types.is_dictionary(kind):
        entry_bytes = row_bytes(array.dictionary)
        indices = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return entry_bytes[indices] if len(entry_bytes) else np.zeros(n, dtype=np.int64)
    if types.is_run_end_encoded(kind):
        ends = array.run_ends.to_numpy(zero_copy_only=False).astype(np.int64)
        return row_bytes(array.values)[
            np.searchsorted(ends, np.arange(array.offset, array.offset + n), "right")
        ]
    if types.is_string_view(kind) or types.is_binary_view(kind):
        view_words = np.frombuffer(array.buffers()[1], np.int32) if n else np.zeros(0, np.int32)
        return view_words[4 * array.offset : 4 * (array.offset + n) : 4].astype(np.int64)
    if _is_list(kind) or types.is_map(kind):
        return _list_bytes(array) if n else np.zeros(0, dtype=np.int64)
    if types.is_struct(kind):
        return sum((row_bytes(array.field(i)) for i in range(kind.num_fields)), np.ones(n, dtype=np.int64))
    if types.is_union(kind):
        return _union_bytes(array)
    # Texts and bytes, between their offsets.
    offset_type = np.int64 if types.is_large_string(kind) or types.is_large_binary(kind) else np.int32
    offset_buffer = array.buffers()[1]
    if not (n and offset_buffer):
        return np.zeros(n, dtype=np.int64)
    offsets = np.frombuffer(offset_buffer, offset_type)[array.offset : array.offset + n + 1]
    return np.diff(offsets).astype(np.int64)


def _width(kind: Any) -> int | None:
    """The bytes of every row of this type; None where they differ."""
    types = library().types
    while hasattr(kind, "storage_type"):
        kind = kind.storage_type
    if types.is_null(kind):
        return 1  # each becomes a reference
    if types.is_fixed_size_list(kind):
        width = _width(kind.value_type)
        return None if width is None else kind.list_size * width
    if types.is_dictionary(kind) or types.is_nested(kind):
        return None
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:
        return None


def _list_bytes(array: Any) -> np.ndarray:
    """How many bytes each list stands for; its entries are counted in each list that they belong to."""
    types, kind, n = library().types, array.type, len(array)
    if types.is_fixed_size_list(kind):
        entry_bytes = row_bytes(array.values.slice(array.offset * kind.list_size, n * kind.list_size))
        return entry_bytes.reshape(n, kind.list_size).sum(axis=1)
    is_large = types.is_large_list(kind) or types.is_large_list_view(kind)
    offset_type = np.int64 if is_large else np.int32
    is_view = types.is_list_view(kind) or types.is_large_list_view(kind)
    offsets = np.frombuffer(array.buffers()[1], offset_type)
    if is_view:
        starts = offsets[array.offset : array.offset + n].astype(np.int64)
        sizes = np.frombuffer(array.buffers()[2], offset_type)[array.offset : array.offset + n]
        stops = np.where(array.is_valid().to_numpy(zero_copy_only=False), starts + sizes, starts)
    else:
        ends = offsets[array.offset : array.offset + n + 1].astype(np.int64)
        starts, stops = ends[:-1], ends[1:]
    entries = array.values
    if types.is_map(kind):
        entries = library().StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    width = _width(entries.type)
    if width is not None:
        return (stops - starts) * width
    # Lists that follow each other need no more than their own entries.
    low, high = (0, len(entries)) if is_view else (int(starts[0]), int(stops[-1]))
    cumulated = np.concatenate([[0], np.cumsum(row_bytes(entries.slice(low, high - low)))])
    return cumulated[stops - low] - cumulated[starts - low]


def _union_bytes(array: Any) -> np.ndarray:
    n, is_dense = len(array), array.type.mode == "dense"
    if not n:
        return np.zeros(0, dtype=np.int64)
    buffers, rows = array.buffers(), slice(array.offset, array.offset + n)
    codes = np.frombuffer(buffers[1], np.int8)[rows]
    offsets = np.frombuffer(buffers[2], np.int32)[rows] if is_dense else np.arange(n)
    sizes = np.zeros(n, dtype=np.int64)
    for i, code in enumerate(array.type.type_codes):
        has_code = codes == code
        sizes[has_code] = row_bytes(array.field(i))[offsets[has_code]]
    return sizes


# ------------------------------------------------------------------------------------------------- unusable rows


def shape(array: Any) -> tuple[int, ...] | None:
    """The shape of the first vector without a gap; None where there is none, or the column holds no vectors."""
    if not is_vectors(array.type):
        return None
    for part in chunks(array):
        for row in np.flatnonzero(unwrap(part).is_valid().to_numpy(zero_copy_only=False)).tolist():
            level, widths = unwrap(part).slice(row, 1), []
            while _is_list(level.type) and not level.null_count and len(level):
                lengths = _lengths(level)
                if (lengths != lengths[0]).any():
                    break
                widths.append(int(lengths[0]))
                level = unwrap(level.flatten())
            else:
                if not level.null_count:
                    return tuple(widths)
    return None


def chunks(array: Any) -> list[Any]:
    """The arrays that a column consists of."""
    return array.chunks if hasattr(array, "chunks") else [array]


def flaws(array: Any, expected: tuple[int, ...] | None = None) -> Flaws | None:
    """The rows of an array that have no value, a gap in a list, or a vector of another shape than `expected`."""
    array = unwrap(array)
    types = library().types
    if types.is_dictionary(array.type) and array.dictionary.null_count:
        array = _decode_dictionary(array)
    codes = np.zeros(len(array), dtype=np.int8)
    seen_lengths = np.zeros(len(array), dtype=np.int64)
    if is_vectors(array.type):
        if expected is None or _stack(array, expected) is None:
            _mark_vectors(array, expected or (), codes, seen_lengths)
    else:
        _mark_gaps(array, codes)
    texts = unwrap(array.dictionary) if types.is_dictionary(array.type) else array
    if _is_text(texts.type):
        undecodable = _undecodable(texts)
        if texts is not array and len(undecodable):
            indices = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            undecodable = np.flatnonzero(np.isin(indices, undecodable))
        codes[undecodable] = np.where(codes[undecodable] == 0, ENCODING, codes[undecodable])
    rows = np.flatnonzero(codes)
    if not len(rows):
        return None

    def reason(row: int) -> str:
        if codes[row] == LENGTH:
            if expected is not None and len(expected) > 1:
                first = shape_of(expected)
                return f"has a list of length {seen_lengths[row]} in it and the first is of shape {first}"
            first_length = expected[0] if expected else 0
            return f"has a vector of length {seen_lengths[row]} and the first has length {first_length}"
        return {
            MISSING: "is missing (null)",
            GAP: "has a gap (null) in its list",
            ENCODING: "is not UTF-8 text",
        }[int(codes[row])]

    return Flaws(rows, reason)


def _mark_vectors(array: Any, expected: tuple[int, ...], codes: np.ndarray, seen_lengths: np.ndarray) -> None:
    level, owner = array, np.arange(len(array))  # of each entry of the level, the row that it belongs to
    for depth in range(len(expected) or 1):
        if not _is_list(level.type):
            break
        _mark_nulls(level, owner, codes, MISSING if depth == 0 else GAP)
        lengths = _lengths(level)
        if expected:
            differs = (lengths != expected[depth]) & level.is_valid().to_numpy(zero_copy_only=False)
            first_flaw = differs & (codes[owner] == 0)
            seen_lengths[owner[first_flaw]] = lengths[first_flaw]
            codes[owner[first_flaw]] = LENGTH
        owner = np.repeat(owner, lengths)
        level = unwrap(level.flatten())
    if not _is_list(level.type):
        _mark_nulls(level, owner, codes, GAP)


def _mark_gaps(array: Any, codes: np.ndarray) -> None:
    """Missing values, and missing entries of lists of plain values; records may well leave a field open."""
    types = library().types
    nested = _is_list(array.type) and not types.is_struct(_leaf(array.type))
    level, owner, code = array, np.arange(len(array)), MISSING
    while True:
        _mark_nulls(level, owner, codes, code)
        if not (nested and _is_list(level.type)):
            return
        owner, level, code = np.repeat(owner, _lengths(level)), unwrap(level.flatten()), GAP


def _mark_nulls(level: Any, owner: np.ndarray, codes: np.ndarray, code: int) -> None:
    if level.null_count:
        rows = owner[level.is_null().to_numpy(zero_copy_only=False)]
        codes[rows] = np.where(codes[rows] == 0, code, codes[rows])


def _undecodable(texts: Any) -> np.ndarray:
    """The rows whose bytes are no UTF-8: files say that a column is text, and nothing makes it so."""
    pa = library()
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        contents = texts.cast(pa.large_binary()).to_pylist()
        return np.array(
            [i for i, content in enumerate(contents) if _is_invalid_utf8(content)], dtype=np.int64
        )
    return np.zeros(0, dtype=np.int64)


def _is_invalid_utf8(content: bytes | None) -> bool:
    try:
        (content or b"").decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


# -------------------------------------------------------------------------------------------------------- values


def values(array: Any, expected: tuple[int, ...] | None = None) -> Any:
    """An array without flaws as a NumPy array (numbers, vectors) or a list.

    Points in time are texts in ISO form, durations whole numbers of their unit, decimals numbers.
    """
    pa = library()
    # The one extension type whose storage does not say its shape.
    if isinstance(array.type, pa.FixedShapeTensorType):
        return array.to_numpy_ndarray()
    array = unwrap(array)
    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        # Only the entries that occur here: a batch of a file comes with the dictionary of many batches.
        used_entries, positions = _find_used(array.indices.to_numpy(), len(array.dictionary))
        entries = values(unwrap(array.dictionary).take(pa.array(used_entries)), expected)
        if isinstance(entries, np.ndarray):
            return entries[positions]
        return [entries[i] for i in positions.tolist()]
    if is_vectors(kind):
        rows = _stack(array, expected if expected is not None else shape(array) or (0,))
        assert rows is not None, "flaws were not left out"
        return rows
    if _is_number(kind):
        return _to_numbers(array)
    if types.is_date(kind) or types.is_timestamp(kind):
        zone = "UTC" if types.is_timestamp(kind) and kind.tz is not None else "naive"
        days = array.cast(pa.date32()) if types.is_date(kind) else array
        return np.datetime_as_string(days.to_numpy(zero_copy_only=False), timezone=zone).tolist()
    if types.is_time(kind):
        return array.cast(pa.string()).to_pylist()
    if types.is_duration(kind):
        return array.cast(pa.int64()).to_numpy()
    return array.to_pylist()


def _find_used(indices: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The entries of a dictionary that occur, in order, and for each index which of them it is."""
    if count > 4 * len(indices):
        return np.unique(indices, return_inverse=True)
    occurs = np.zeros(count, dtype=bool)
    occurs[indices] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[indices]


def _to_numbers(array: Any) -> np.ndarray:
    pa = library()
    if pa.types.is_decimal(array.type):
        # Whole ones stay whole: they may be names of things. What is beyond 64 bits stays a number of Python's.
        if array.type.scale <= 0:
            decimals = array.to_pylist()
            try:
                return np.array([int(value) for value in decimals], dtype=np.int64)
            except OverflowError:
                return np.array([int(value) for value in decimals], dtype=object)
        array = array.cast(pa.float64())
    return array.to_numpy(zero_copy_only=False)


def _stack(array: Any, expected: tuple[int, ...]) -> np.ndarray | None:
    """Vectors of one shape as an array of rows, without a copy; None where there is a flaw."""
    level = array
    for width in expected:
        if not _is_list(level.type) or level.null_count or (_lengths(level) != width).any():
            return None
        level = unwrap(level.flatten())
    if _is_list(level.type):  # lists of no lists at all
        return np.zeros((len(array), *expected, 0)) if not len(level) else None
    if library().types.is_dictionary(level.type):
        level = level.dictionary_decode()
    return None if level.null_count else _to_numbers(level).reshape(len(array), *expected)


def pathed(array: Any) -> Iterator[tuple[int, str | None]]:
    """The records of pictures that are there but hold no bytes: each with its path, None where that is no text."""
    array, types = unwrap(array), library().types
    without_bytes = array.is_valid().to_numpy(zero_copy_only=False)
    if array.type.get_field_index("bytes") >= 0:
        contents = unwrap(array.field("bytes"))
        # What is called bytes and is text would be opened as a path.
        if _is_bytes(contents.type.value_type if types.is_dictionary(contents.type) else contents.type):
            without_bytes = without_bytes & contents.is_null().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(without_bytes)
    paths: list[bytes | None] = [None] * len(rows)
    if len(rows) and array.type.get_field_index("path") >= 0:
        path_column = unwrap(array.field("path")).take(library().array(rows))
        if types.is_dictionary(path_column.type):
            path_column = _decode_dictionary(path_column)
        if _is_text(path_column.type):
            paths = path_column.cast(library().large_binary()).to_pylist()  # nothing makes them UTF-8
    for row, path in zip(rows.tolist(), paths, strict=True):
        yield row, None if path is None else path.decode("utf-8", "surrogateescape")


def kept_rows(array: Any, keep: np.ndarray) -> Any:
    """The rows of an array that are kept."""
    if keep.all():
        return array
    pa = library()
    storage = array if isinstance(array.type, pa.FixedShapeTensorType) else unwrap(array)
    return storage.filter(pa.array(keep))  # Arrow filters what is stored, and not every type that wraps it


def column(array: Any, refuse: Callable[[int, str], None]) -> tuple[Any, np.ndarray | None]:
    """A whole column, and where some rows cannot be used, the positions of those that can.

    Parameters
    ----------
    array : pyarrow.Array or pyarrow.ChunkedArray
        The column.
    refuse : callable
        Called with the position and the reason of each row that cannot be used; it may raise.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows, kept = column(pa.array([[1, 2], None, [3, 4]]), lambda row, reason: print(row, reason))
    1 is missing (null)
    >>> rows.tolist(), kept.tolist()
    ([[1, 2], [3, 4]], [0, 2])
    """
    expected, start = shape(array), 0
    usable_parts: list[Any] = []
    kept: list[np.ndarray] = []
    complete = True
    for part in chunks(array):
        keep = np.ones(len(part), dtype=bool)
        part_flaws = flaws(part, expected)
        if part_flaws is not None:
            for row in part_flaws.rows.tolist():
                refuse(start + row, part_flaws.reason(row))
                keep[row] = complete = False
        if keep.any():
            usable_parts.append(values(kept_rows(part, keep), expected))
        kept.append(start + np.flatnonzero(keep))
        start += len(part)
    if not usable_parts:
        usable_rows: Any = []
    elif all(isinstance(part, np.ndarray) for part in usable_parts):
        usable_rows = usable_parts[0] if len(usable_parts) == 1 else np.concatenate(usable_parts)
    else:
        usable_rows = [value for part in usable_parts for value in part]
    return usable_rows, None if complete else np.concatenate(kept)
