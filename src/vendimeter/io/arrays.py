"""Files of arrays: .npy, .npz and .safetensors. Rows are samples; nothing is ever unpickled.

Safetensors are read with NumPy alone: a length, a header in JSON, and bytes. Their library gives NumPy no bfloat16.
"""

from __future__ import annotations

import io
import json
import os
import tokenize
import warnings
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeGuard

import numpy as np

from vendimeter.data.collection import Broken
from vendimeter.errors import InputError
from vendimeter.io.sources import LARGEST_RATIO, RAISED, VALUE_BYTES, File
from vendimeter.io.stored_arrays import Arrays, Mapped, Stored, Streamed, Unreadable, read_exactly
from vendimeter.messages import brief, shape_of

__all__ = ["Npy", "Npz", "Safetensors"]

LONGEST_HEADER = 100_000  # bytes, of a .npy file …
LONGEST_LIST = 100_000_000  # … and of safetensors, as their library has it
# What NumPy lets through of the ways in which a header can be wrong.
_HEADER_ERRORS = (
    ValueError, TypeError, SyntaxError, KeyError, OverflowError, RecursionError, MemoryError, tokenize.TokenError,
)  # fmt: skip
_MAGIC = b"\x93NUMPY"
_SPARSE = {"data", "format", "shape"}  # what scipy.sparse.save_npz writes, among others
# Of features, beside the images in the reference batches of ADM.
_STATISTICS = ("mu", "sigma", "mu_s", "sigma_s")
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1", "C64": "<c8",
}  # fmt: skip


class Npy(Arrays):
    """A file written by np.save: the column "data", or the fields of a structured array as columns.

    Numbers keep their type, float16 too. An archive under this name is read as one.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO()
    >>> np.save(stream, np.eye(3, dtype=np.float16))
    >>> reader = Npy(File(None, ".npy", io.BytesIO(stream.getvalue())), Broken())
    >>> [part.columns["data"].tolist() for part in reader.parts(None, 2)]
    [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]]
    """

    def __init__(self, file: File, broken: Broken):
        super().__init__(file, broken)
        self._members: dict[str, zipfile.ZipInfo] | None = None  # None for a single array

    def _damaged(self, why: str) -> InputError:
        return InputError(
            f"{self.file} could not be read as a NumPy file: {why}. Expected one written by np.save or np.savez "
            "without objects; write or fetch it again."
        )

    def _scan(self) -> list[Stored]:
        if self.file.head().startswith(b"PK"):
            return self._scan_archive()
        with ExitStack() as stack:
            source = self.file.open()
            if self.file.stream is None:
                stack.enter_context(source)
            stored = _read_header(source.read, "data")
            if self._is_plain:
                _check_size(stored, os.fstat(source.fileno()).st_size)
        return [stored]

    def _scan_archive(self) -> list[Stored]:
        stored_arrays: list[Stored] = []
        with ExitStack() as stack:
            source, size = self._seekable(stack)
            archive = stack.enter_context(zipfile.ZipFile(source))
            infos = [info for info in archive.infolist() if info.filename.endswith(".npy")]
            self._members = {info.filename.removesuffix(".npy"): info for info in infos}
            if not infos:
                raise Unreadable("it is a ZIP archive without arrays")
            if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in infos):
                raise Unreadable("it is packed in a way that NumPy does not write")
            if len(self._members) < len(infos):
                raise Unreadable("it holds two arrays of one name")
            if self._members.keys() > _SPARSE:
                raise InputError(
                    f"{self.file} holds a sparse matrix, written by scipy.sparse.save_npz; expected arrays with a row "
                    "a sample. Load it with scipy.sparse.load_npz and pass what that gives."
                )
            if sum(info.compress_size for info in infos) > size:
                raise Unreadable("its arrays claim more bytes than it has")
            unpacked_bytes = packed_bytes = 0
            for name, info in self._members.items():
                with archive.open(info) as member:
                    stored = _read_header(member.read, name)
                if not stored.dtype.hasobject:
                    _check_size(stored, info.file_size)
                # Texts and labels become values of Python.
                unpacked_bytes += info.file_size + VALUE_BYTES * max(stored.text_count, *stored.shape[:1], 0)
                packed_bytes = self._packed or packed_bytes + info.compress_size
                if unpacked_bytes > self.file.max_record + LARGEST_RATIO * packed_bytes:
                    raise InputError(
                        f"{brief(name)} in {self.file} unpacks to more than {LARGEST_RATIO} times its size: it may be "
                        "made to fill the memory. If you trust it, load it yourself and save it with np.savez, or see "
                        f"that {RAISED}."
                    )
                stored_arrays.append(stored)
        return stored_arrays

    def _open_rows(self, stack: ExitStack) -> Callable[[Stored], Mapped | Streamed]:
        if self._members is not None:
            members, (source, _) = self._members, self._seekable(stack)
            archive = stack.enter_context(zipfile.ZipFile(source))

            def open_member(stored: Stored) -> Streamed:
                member = stack.enter_context(archive.open(members[stored.name]))
                read_exactly(member.read, stored.offset, "a header")
                return Streamed(member.read, stored)

            return open_member
        source, is_plain = stack.enter_context(self.file.open()), self._is_plain

        def open_single(stored: Stored) -> Mapped | Streamed:
            if is_plain:
                return Mapped(source, stored)
            if self.file.stream is None:  # it was opened anew
                read_exactly(source.read, stored.offset, "a header")
            return Streamed(source.read, stored)

        return open_single


class Npz(Npy):
    """A file written by np.savez: its arrays are columns, unpacked as they are read.

    Only arrays of one length can be read together; others, such as names of classes, can be read by themselves. Samples
    of images as published with ADM have them in "arr_0" and labels in "arr_1". An array in Fortran's order is held
    whole.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO()
    >>> np.savez(stream, images=np.zeros((4, 2, 2)), labels=np.arange(4), classes=np.array(["cat", "dog"]))
    >>> reader = Npz(File(None, ".npz", io.BytesIO(stream.getvalue())), Broken())
    >>> reader.names()
    ['images', 'labels', 'classes']
    >>> reader.lengths()
    {'images': 4, 'labels': 4, 'classes': 2}
    >>> next(reader.parts(["labels"], 3)).columns
    {'labels': array([0, 1, 2])}
    """

    def _assign_roles(self, columns: dict[str, tuple[Stored, str | None]]) -> None:
        super()._assign_roles(columns)
        if "arr_0" not in columns or columns.keys() - {"arr_0", "arr_1", *_STATISTICS}:
            return
        self.samples = "arr_0"
        images, labels = columns["arr_0"][0], columns.get("arr_1", (None,))[0]
        if len(images.shape) == 4 and images.shape[3] == 3 and images.dtype == np.uint8:
            self.kind = "images"
        if labels is not None and labels.shape == images.shape[:1]:
            self.label = "arr_1"


def _read_header(read: Callable[[int], bytes], name: str) -> Stored:
    """The array that the header of a .npy file describes; NumPy's own functions read it, and none unpickles."""
    start = bytes(read_exactly(read, 10, "a NumPy file"))
    if not start.startswith(_MAGIC):
        raise Unreadable(f"it begins with {brief(start)}")
    version = (start[6], start[7])
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise Unreadable(f"it is of the unknown version {version[0]}.{version[1]}")
    if version != (1, 0):
        start += read_exactly(read, 2, "a header")
    length = int.from_bytes(start[8:], "little")
    if length > LONGEST_HEADER:
        raise Unreadable(f"its header claims {length:,} bytes")
    text = io.BytesIO(start[8:] + read_exactly(read, length, "a header"))
    read_array_header: Any = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            shape, fortran, dtype = read_array_header(text, max_header_size=LONGEST_HEADER)
            if version == (3, 0) and dtype.names is not None:  # as 2.0, but for the letters of names
                dtype.names = tuple(field.encode("latin1").decode("utf-8") for field in dtype.names)
    except _HEADER_ERRORS:
        raise Unreadable("its header cannot be understood") from None
    if min(shape, default=0) < 0:
        raise Unreadable(f"its header says that it has the shape {shape}")
    return Stored(name, dtype, shape, len(start) + length, bool(fortran) and len(shape) > 1)


def _check_size(stored: Stored, size: int) -> None:
    """Refuse a file or member whose size is not what the header of its array says."""
    claimed = stored.offset + stored.nbytes
    if stored.dtype.hasobject or claimed == size:
        return
    cause = "it was cut short: " if claimed > size else ""
    raise Unreadable(
        f"{cause}the header of {brief(stored.name)} says {stored.claim}, which makes {claimed:,} bytes, and there are "
        f"{size:,}"
    )


class Safetensors(Arrays):
    """A file of safetensors: its tensors are columns; those of one length can be read together.

    bfloat16 becomes float32, exactly; other numbers keep their type.

    Examples
    --------
    >>> import io
    >>> header = b'{"x": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}}'
    >>> data = len(header).to_bytes(8, "little") + header + np.array([1, 2], "<f4").tobytes()
    >>> reader = Safetensors(File(None, ".safetensors", io.BytesIO(data)), Broken())
    >>> next(reader.parts(None, 100)).columns["x"].tolist()
    [[1.0], [2.0]]
    """

    def _damaged(self, why: str) -> InputError:
        return InputError(
            f"{self.file} could not be read as safetensors: {why}. Expected a file written by their library; write or "
            "fetch it again."
        )

    def _open_rows(self, stack: ExitStack) -> Callable[[Stored], Mapped | Streamed]:
        source, _ = self._seekable(stack)
        data = self._buffer

        def rows(stored: Stored) -> Mapped | Streamed:
            if data is None:
                return Mapped(source, stored)
            stream = io.BytesIO(data)  # with a place of its own in the same bytes
            stream.seek(stored.offset)
            return Streamed(stream.read, stored, to_end=False)

        return rows

    def _scan(self) -> list[Stored]:
        with ExitStack() as stack:
            source, size = self._seekable(stack)
            length = int.from_bytes(read_exactly(source.read, 8, "the length of a header"), "little")
            if length > min(LONGEST_LIST, size - 8):
                raise Unreadable(f"it has {size:,} bytes and claims a header of {length:,}")
            text = source.read(length)
        try:
            header_text = text.decode("utf-8")
            fault = self.file.too_many_values(header_text)
            if fault:
                raise Unreadable(f"its header {fault}")
            header = json.loads(header_text, object_pairs_hook=_unique_names)
        except (ValueError, RecursionError):
            raise Unreadable("its header is not valid JSON") from None
        if not isinstance(header, dict):
            raise Unreadable("its header is no object")
        start, end = 8 + length, 0
        tensors, ranges = [], []
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            tensors.append(_tensor(name, entry, start))
            ranges.append(entry["data_offsets"])
        for first, stop in sorted(ranges):
            if first != end:
                raise Unreadable(
                    f"its tensors {'overlap' if first < end else 'leave gaps'} at byte {first:,}"
                )
            end = stop
        if start + end != size:
            raise Unreadable(f"its tensors end at byte {start + end:,}, and it has {size:,}")
        return tensors


def _tensor(name: str, entry: Any, start: int) -> Stored:
    """A tensor by its entry in the header, which must fit its bytes."""
    entry = entry if isinstance(entry, dict) else {}
    kind, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not (isinstance(kind, str) and _are_counts(shape) and _are_counts(offsets) and len(offsets) == 2):
        raise Unreadable(f"the entry of {brief(name)} in its header cannot be understood")
    if offsets[1] < offsets[0]:
        raise Unreadable(f"{brief(name)} ends before it begins, at byte {offsets[1]:,}")
    if kind not in _DTYPES:
        fault = (
            f"holds numbers of the type {brief(kind)}; expected one of {', '.join(_DTYPES)}. Save it as F32"
        )
        return Stored(name, np.dtype("V1"), tuple(shape), start + offsets[0], fault=fault)
    stored = Stored(name, np.dtype(_DTYPES[kind]), tuple(shape), start + offsets[0], is_bfloat=kind == "BF16")
    if stored.nbytes != offsets[1] - offsets[0]:
        raise Unreadable(
            f"{brief(name)} is {kind} of shape {shape_of(shape)}, which makes {stored.nbytes:,} bytes, and has "
            f"{offsets[1] - offsets[0]:,}"
        )
    return stored


def _are_counts(values: Any) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, with an error for a name that comes twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name twice")
    return fields
