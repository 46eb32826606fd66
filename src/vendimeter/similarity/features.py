"""Vectors with K = ΦΦᵀ: nothing n×n is built unless that is the smaller side."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks, is_sparse
from vendimeter.data.devices import (
    DEVICE_BYTES,
    double,
    is_foreign,
    is_single,
    numpy_dtype,
    select,
    transposed,
)
from vendimeter.similarity.base import Index, Similarity, positions_of, span
from vendimeter.spectrum import UNIT

__all__ = ["FeatureRows", "Features", "row_keys"]


class Features(Similarity):
    """Vectors φ with K = ΦΦᵀ: nothing n×n is built unless that is the smaller side.

    A subclass says how rows are made (`rows`), their `dtype`, and what tells items apart (`keys`).

    Attributes
    ----------
    width : int
        Columns of the features.
    sparse : bool
        Whether rows are CSR.
    """

    width: int
    sparse: bool

    def __init__(self, n: int, width: int, *, sparse: bool = False, **attributes: Any):
        super().__init__(n, width=width, sparse=sparse, **attributes)

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """The dtype of the user's rows, in NumPy's terms."""

    @abstractmethod
    def rows(self, index: Index, out: np.ndarray | None = None) -> Any:
        """Feature rows in float64, dense or CSR as `sparse` says; the caller may overwrite them, but not on a device.

        `out` is a buffer of enough rows that may be used for dense ones: fresh memory for every block costs more
        than the arithmetic on it.
        """

    def quick_rows(self, index: Index, flags: list[Any]) -> Any:
        """Rows like `rows`, but without waiting for the device: they are valid only if all flags turn out true.

        Where they do not, `rows` raises the error, or computes the rows with more care.
        """
        return self.rows(index)

    @property
    def entry_error(self) -> float:
        """Bound on the error of an inner product of two rows: theirs, and that of adding up its terms."""
        return 2 * self.rounding + (self.width + 8) * UNIT

    @property
    def cost(self) -> float:
        """Operations for an inner product of two rows."""
        return 2.0 * (64 if self.sparse else self.width)

    @property
    def step(self) -> int:
        """Fewer of very wide rows, which would add up to a copy of the data."""
        return 1024 if self.sparse else max(64, min(1024, 2 * BLOCK_BYTES // (8 * self.width)))

    def take(self, index: np.ndarray) -> Features:
        """The features of the items at these positions, without a copy."""
        return TakenFeatures(self, index)

    def block(self, rows: Index, cols: Index) -> Any:
        """Similarities as inner products of feature rows."""
        left = self.rows(rows)
        right = left if cols is rows else self.rows(cols)
        return (left @ right.T).toarray() if self.sparse else left @ transposed(right)


class FeatureRows(Features):
    """Features from the user's own rows, without a copy of them.

    Parameters
    ----------
    data : array or csr_array, shape (n, d)
        The rows as the user has them, of any real dtype; those of another library than NumPy stay on their device.
    prepare : callable, optional
        Turns a float64 block of rows (and their positions, for messages) into feature rows of norm 1. It may work in
        place. Without it the rows are features already.
    width : int, optional
        How many columns the prepared rows have, when not those of `data`.
    rounding : float
        Bound on the relative error that `prepare` leaves in a row.
    keys : callable, optional
        positions → something hashable an item; items with equal keys are identical. By default the bytes of the row
        as the user has it: rows that only rounding makes equal are not identical.
    upcasts : bool
        Whether `prepare` makes new rows on a device and leaves those it gets alone, which may be float32 where the
        library is good at that; and takes a list of flags, to which it adds what would have to be waited for.
    kernel : Kernel, optional
        The kernel they came from.

    Examples
    --------
    >>> import numpy as np
    >>> FeatureRows(np.eye(3)).block(slice(0, 2), slice(1, 3))
    array([[0., 0.],
           [1., 0.]])
    """

    data: Any
    _prepare: Callable[..., Any] | None
    _keys: Callable[[np.ndarray], list[Hashable] | None] | None
    _upcasts: bool

    def __init__(
        self,
        data: Any,
        prepare: Callable[..., Any] | None = None,
        *,
        width: int | None = None,
        rounding: float = 0.0,
        keys: Callable[[np.ndarray], list[Hashable] | None] | None = None,
        upcasts: bool = False,
        kernel: Any = None,
    ):
        super().__init__(
            int(data.shape[0]),
            int(data.shape[1]) if width is None else width,
            sparse=is_sparse(data),
            rounding=rounding,
            like=data if is_foreign(data) else None,
            kernel=kernel,
            data=data,
            _prepare=prepare,
            _keys=keys,
            _upcasts=upcasts,
        )

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the user's rows, in NumPy's terms."""
        return numpy_dtype(self.data)

    def rows(self, index: Index, out: np.ndarray | None = None) -> Any:
        """The rows, upcast and prepared."""
        if self.like is not None:
            return self._device_rows(index)
        block = self.data[index]
        if self.sparse:
            block = block.astype(np.float64)
        elif out is not None and out.shape[1] == self.data.shape[1]:
            buffer = out[: len(block)]
            buffer[...] = block
            block = buffer
        else:
            block = double(block)
        return block if self._prepare is None else self._prepare(block, positions_of(index, self.n))

    def quick_rows(self, index: Index, flags: list[Any]) -> Any:
        """The rows; their checks are left to the flags where `prepare` supports that."""
        if self.like is None or not self._upcasts:
            return self.rows(index)
        return self._prepare(self._device_block(index), positions_of(index, self.n), flags)  # type: ignore[misc]

    def _device_rows(self, index: Index) -> Any:
        """The prepared rows, on their device."""
        block = self._device_block(index)
        return block if self._prepare is None else self._prepare(block, positions_of(index, self.n))

    def _device_block(self, index: Index) -> Any:
        """The rows in the precision that `prepare` takes, on their device."""
        block = select(self.data, index)
        if not (self._upcasts and is_single(block)):
            block = double(block, copy=self._prepare is not None and not self._upcasts)
        return block

    def look(self, index: Index) -> None:
        """Prepare all rows once, or have them checked where that is less work than to prepare them."""
        if self._prepare is None:
            return
        check, positions = getattr(self._prepare, "check", None), positions_of(index, self.n)
        block_bytes = BLOCK_BYTES if self.like is None else DEVICE_BYTES
        for part in blocks(len(positions), 64 if self.sparse else int(self.data.shape[1]), most=block_bytes):
            rows = span(positions[part])
            if check is None:
                self.rows(rows)
            else:
                check(select(self.data, rows), positions[part])

    def keys(self, index: Index) -> list[Hashable] | None:
        """What tells the items apart; nothing does on a device, where looking at every byte would cost a transfer."""
        if self.like is not None:
            return None
        positions = positions_of(index, self.n)
        if self._keys is not None:
            return self._keys(positions)
        keys: list[Hashable] = []
        for part in blocks(len(positions), self.width if not self.sparse else 64):
            keys.extend(row_keys(self.data[positions[part]]))
        return keys


def row_keys(rows: Any) -> list[Hashable]:
    """A digest of the bytes of each row of a dense or CSR array; 16 bytes, so that keys are no copy of wide rows."""
    if is_sparse(rows):
        ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        return [_digest(rows.indices[a:b].tobytes() + rows.data[a:b].tobytes()) for a, b in ends]
    return [_digest(row.tobytes()) for row in np.ascontiguousarray(rows)]


def _digest(data: bytes) -> bytes:
    """The bytes themselves if they are 16 at most, else a digest of 16."""
    return data if len(data) <= 16 else hashlib.blake2b(data, digest_size=16).digest()


class TakenFeatures(Features):
    """Selected rows of other features, without a copy of them."""

    _source: Features
    _index: np.ndarray

    def __init__(self, source: Features, index: np.ndarray):
        super().__init__(
            len(index),
            source.width,
            sparse=source.sparse,
            rounding=source.rounding,
            like=source.like,
            kernel=source.kernel,
            _source=source,
            _index=index,
        )

    @property
    def dtype(self) -> np.dtype:
        return self._source.dtype

    def rows(self, index: Index, out: np.ndarray | None = None) -> Any:
        return self._source.rows(self._index[index], out)

    def quick_rows(self, index: Index, flags: list[Any]) -> Any:
        return self._source.quick_rows(self._index[index], flags)

    def look(self, index: Index) -> None:
        self._source.look(self._index[index])

    def keys(self, index: Index) -> list[Hashable] | None:
        return self._source.keys(self._index[index])
