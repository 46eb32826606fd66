"""The three kinds of similarity, between a kernel and a solver.

- `Features`: vectors φ with K = ΦΦᵀ. Nothing n×n is built unless that is the smaller side.
- `Matrix`: K itself, dense or sparse.
- `Pairwise`: blocks of k(A, B) on demand.

Each offers ``block(rows, cols)``, a dense float64 block of K, and ``rounding``, a bound on the error of its entries
against the mathematical kernel of the given samples. A similarity made by a kernel of this package is *trusted*: its
diagonal is 1, and it is symmetric and positive semidefinite by construction. What a user supplies is checked.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from vendimeter._arrays import BLOCK_BYTES, blocks, is_sparse
from vendimeter._devices import (
    DEVICE_BYTES,
    as_like,
    concat,
    double,
    is_foreign,
    is_single,
    numpy_dtype,
    select,
    transposed,
)
from vendimeter._matrix_checks import Policy, check
from vendimeter._messages import digits
from vendimeter.errors import AsymmetryError
from vendimeter.spectrum import UNIT

__all__ = ["Features", "Index", "Matrix", "Pairwise", "Similarity", "row_keys"]

Index = slice | np.ndarray
CHECKED_FULLY = 64  # up to this many items a user's function is called for both orders of each pair


def _positions(index: Index, n: int) -> np.ndarray:
    """The positions that an index of n items stands for."""
    return np.arange(*index.indices(n)) if isinstance(index, slice) else index


class Similarity(ABC):
    """How similar the n items are to each other."""

    n: int
    rounding: float = 0.0
    trusted: bool = True
    policy: Policy = Policy()
    kernel: Any = None  # the kernel it came from, with every parameter fitted
    like: Any = None  # an array on the device where blocks are computed; None for the host
    precision: np.dtype = np.dtype(np.float64)  # the coarsest dtype that entries came in

    @abstractmethod
    def block(self, rows: Index, cols: Index) -> Any:
        """The similarities of some items with some others, dense, float64, where `like` is."""

    @property
    def entry_error(self) -> float:
        """Bound on the error of an entry of `block`."""
        return self.rounding

    def keys(self, index: Index) -> list[Hashable] | None:
        """Something hashable for each item such that items with equal keys are identical, or None."""
        return None

    @property
    def _step(self) -> int:
        """How many rows of K to compute at a time."""
        return 1024

    @abstractmethod
    def take(self, index: np.ndarray) -> Similarity:
        """The similarities among the items at these positions."""

    def dense(self, index: np.ndarray | None = None) -> Any:
        """The whole of K, or of its part at `index`, from blocks of its upper triangle."""
        places = np.arange(self.n) if index is None else index
        if self.like is not None:  # in strips of rows, because not all libraries can write into an array
            strips = blocks(len(places), max(len(places), getattr(self, "width", 1)), most=DEVICE_BYTES)
            return concat([as_like(self.block(places[strip], places), self.like) for strip in strips])
        matrix = np.empty((len(places), len(places)))
        parts = _parts(len(places), self._step)
        for i, rows in enumerate(parts):
            left = places[rows]
            for cols in parts[i:]:
                part = self.block(left, left if cols is rows else places[cols])
                matrix[rows, cols] = part
                matrix[cols, rows] = part.T
        return matrix


def _parts(size: int, step: int = 1024) -> list[slice]:
    """Blocks of a square matrix: large enough for BLAS, small enough to stay clear of a second copy."""
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


class Features(Similarity):
    """Vectors with K = ΦΦᵀ, from the user's own rows without a copy of them.

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
        library is good at that.

    Examples
    --------
    >>> import numpy as np
    >>> Features(np.eye(3)).block(slice(0, 2), slice(1, 3))
    array([[0., 0.],
           [1., 0.]])
    """

    def __init__(
        self,
        data: Any,
        prepare: Callable[[Any, np.ndarray], Any] | None = None,
        *,
        width: int | None = None,
        rounding: float = 0.0,
        keys: Callable[[np.ndarray], list[Hashable] | None] | None = None,
        upcasts: bool = False,
    ):
        self.data = data
        self._upcasts = upcasts
        self._keys = keys
        self.n = int(data.shape[0])
        self.width = int(data.shape[1]) if width is None else width
        self.sparse = is_sparse(data)
        self.like = data if is_foreign(data) else None
        self.rounding = rounding
        self._prepare = prepare

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the user's rows, in NumPy's terms."""
        return numpy_dtype(self.data)

    @property
    def entry_error(self) -> float:
        """Bound on the error of an inner product of two rows: theirs, and that of adding up its terms."""
        return 2 * self.rounding + (self.width + 8) * UNIT

    @property
    def _step(self) -> int:
        """Fewer of very wide rows, which would add up to a copy of the data."""
        return 1024 if self.sparse else max(64, min(1024, 2 * BLOCK_BYTES // (8 * self.width)))

    def rows(self, index: Index, out: np.ndarray | None = None) -> Any:
        """Feature rows in float64, dense or CSR as the data is; the caller may overwrite them, but not on a device.

        `out` is a buffer of enough rows that may be used for dense ones: fresh memory for every block costs more
        than the arithmetic on it.
        """
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
        return block if self._prepare is None else self._prepare(block, _positions(index, self.n))

    def _device_rows(self, index: Index) -> Any:
        block = select(self.data, index)
        if not (self._upcasts and is_single(block)):
            block = double(block, copy=self._prepare is not None and not self._upcasts)
        return block if self._prepare is None else self._prepare(block, _positions(index, self.n))

    def take(self, index: np.ndarray) -> Features:
        """The features of the items at these positions."""
        return _Taken(self, index)

    def block(self, rows: Index, cols: Index) -> Any:
        """Similarities as inner products of feature rows."""
        left = self.rows(rows)
        right = left if cols is rows else self.rows(cols)
        return (left @ right.T).toarray() if self.sparse else left @ transposed(right)

    def keys(self, index: Index) -> list[Hashable] | None:
        """What tells the items apart; nothing does on a device, where looking at every byte would cost a transfer."""
        if self.like is not None:
            return None
        places = _positions(index, self.n)
        if self._keys is not None:
            return self._keys(places)
        keys: list[Hashable] = []
        for part in blocks(len(places), self.width if not self.sparse else 64):
            keys.extend(row_keys(self.data[places[part]]))
        return keys


def row_keys(rows: Any) -> list[Hashable]:
    """A digest of the bytes of each row of a dense or CSR array; 16 bytes, so that keys are no copy of wide rows."""
    if is_sparse(rows):
        ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        return [_digest(rows.indices[a:b].tobytes() + rows.data[a:b].tobytes()) for a, b in ends]
    return [_digest(row.tobytes()) for row in np.ascontiguousarray(rows)]


def _digest(data: bytes) -> bytes:
    return data if len(data) <= 16 else hashlib.blake2b(data, digest_size=16).digest()


class _Taken(Features):
    """Some of the rows of other features, read through them."""

    def __init__(self, whole: Features, index: np.ndarray):
        self._whole, self._index = whole, index
        self.n, self.width, self.sparse = len(index), whole.width, whole.sparse
        self.rounding, self.kernel, self.like = whole.rounding, whole.kernel, whole.like

    @property
    def dtype(self) -> np.dtype:
        return self._whole.dtype

    def rows(self, index: Index, out: np.ndarray | None = None) -> Any:
        return self._whole.rows(self._index[index], out)

    def keys(self, index: Index) -> list[Hashable] | None:
        return self._whole.keys(self._index[index])


class Matrix(Similarity):
    """A similarity matrix, dense or sparse, as a user has it.

    Parameters
    ----------
    data : array or sparse array, shape (n, n)
        The similarities, on the host or on a device.
    policy : Policy
        What to mend; without it a matrix that is not a similarity matrix is an error.
    trusted : bool
        Whether the matrix is known to be a similarity matrix.
    rounding : float
        Bound on the error of its entries.
    what : str
        What to call the matrix in messages.
    """

    def __init__(
        self,
        data: Any,
        *,
        policy: Policy | None = None,
        trusted: bool = False,
        rounding: float = 0.0,
        precision: np.dtype | None = None,
        what: str = "K",
    ):
        self.data = data
        self.n = int(data.shape[0])
        self.sparse = is_sparse(data)
        self.like = data if is_foreign(data) else None
        self.policy = policy or Policy()
        self.trusted = trusted
        self.rounding = rounding
        self.what = what
        self.precision = numpy_dtype(data) if precision is None else precision

    def block(self, rows: Index, cols: Index) -> Any:
        """A dense block of the matrix."""
        if self.sparse:
            return self.data[rows][:, cols].toarray().astype(np.float64)
        if self.like is not None:
            return double(self._part(rows, cols))
        return self.data[np.ix_(_positions(rows, self.n), _positions(cols, self.n))].astype(np.float64)

    def take(self, index: np.ndarray) -> Matrix:
        """The matrix of the items at these positions."""
        data = self.data[np.ix_(index, index)] if self._plain else self._part(index, index)
        return self._like(data)

    @property
    def _plain(self) -> bool:
        return not self.sparse and self.like is None

    def _part(self, rows: Index, cols: Index) -> Any:
        """Some rows and columns of a sparse matrix, or of one on a device."""
        if self.sparse:
            return self.data[rows][:, cols]
        return transposed(select(transposed(select(self.data, rows)), cols))

    def _like(self, data: Any, *, policy: Policy | None = None, slack: float = 0.0) -> Matrix:
        """Another matrix that came of this one, with the precision of the user's own dtype."""
        other = Matrix(
            data,
            policy=policy or self.policy,
            trusted=self.trusted,
            rounding=self.rounding + slack,
            precision=self.precision,
            what=self.what,
        )
        other.kernel = self.kernel
        return other

    def dense(self, index: np.ndarray | None = None) -> Any:
        """A float64 copy of the whole, both triangles as they are."""
        part = self.data if index is None else self.take(index).data
        return part.toarray().astype(np.float64) if self.sparse else double(part)

    def checked(self, policy: Policy | None = None, names: np.ndarray | None = None) -> Matrix:
        """The matrix, checked and mended as the policy allows; its rounding then covers what was tolerated."""
        policy = self.policy | (policy or Policy())
        if self.trusted:
            return self
        data, slack = check(self.data, policy, self.what, self.precision, names)
        return self._like(data, policy=replace(policy, normalize=False), slack=slack)


class Pairwise(Similarity):
    """Blocks of similarities, computed when asked for.

    Parameters
    ----------
    n : int
        How many items.
    function : callable
        (rows, cols), two arrays of positions → the block of similarities.
    keys : callable, optional
        positions → something hashable an item; items with equal keys are identical.
    triangle : callable, optional
        positions → the square block among them, only its upper triangle (with the diagonal) filled in; for
        functions so slow that the other half should be mirrored.
    like : array, optional
        An array on the device on which `function` computes its blocks.
    """

    def __init__(
        self,
        n: int,
        function: Callable[[np.ndarray, np.ndarray], Any],
        *,
        rounding: float = 0.0,
        trusted: bool = True,
        policy: Policy | None = None,
        precision: np.dtype | None = None,
        keys: Callable[[np.ndarray], list[Hashable] | None] | None = None,
        triangle: Callable[[np.ndarray], np.ndarray] | None = None,
        like: Any = None,
    ):
        self.n = n
        self.like = like
        self._function = function
        self._keys = keys
        self._triangle = triangle
        self.rounding = rounding
        self.trusted = trusted
        self.policy = policy or Policy()
        self.precision = np.dtype(np.float64) if precision is None else precision

    def block(self, rows: Index, cols: Index) -> Any:
        """Compute a block."""
        return self._function(_positions(rows, self.n), _positions(cols, self.n))

    def take(self, index: np.ndarray) -> Pairwise:
        """The similarities among the items at these positions, computed when asked for."""
        triangle = self._triangle
        part = Pairwise(
            len(index),
            lambda rows, cols: self.block(index[rows], index[cols]),
            rounding=self.rounding,
            trusted=self.trusted,
            policy=self.policy,
            precision=self.precision,
            keys=lambda places: self.keys(index[places]),
            triangle=None if triangle is None else lambda places: triangle(index[places]),
            like=self.like,
        )
        part.kernel = self.kernel
        return part

    def dense(self, index: np.ndarray | None = None) -> Any:
        """The whole of K; of a user's function beyond 64 items half is mirrored, and a sample of it checked."""
        if self.trusted or self.like is not None:
            return super().dense(index)
        places = np.arange(self.n) if index is None else index
        matrix = np.empty((len(places), len(places)))
        mirror = len(places) > CHECKED_FULLY and not self.policy.symmetrize
        parts = _parts(len(places))
        for i, rows in enumerate(parts):
            for cols in parts[i if mirror else 0 :]:
                if rows is cols and mirror and self._triangle is not None:
                    upper = np.triu(self._triangle(places[rows]))
                    matrix[rows, cols] = upper + np.triu(upper, 1).T
                else:
                    matrix[rows, cols] = self.block(places[rows], places[cols])
                    if mirror and rows is not cols:
                        matrix[cols, rows] = matrix[rows, cols].T
        if mirror:
            self._spot_check(matrix, places)
        return matrix

    def _spot_check(self, matrix: np.ndarray, places: np.ndarray) -> None:
        """Half of the matrix was mirrored: compute a random 32×32 part of it as it stands, and compare."""
        rows, cols = np.random.default_rng(0).integers(len(places), size=(2, 32))
        again, mirrored = self.block(places[rows], places[cols]), matrix[np.ix_(rows, cols)]
        gap = np.nan_to_num(np.abs(again - mirrored))  # what is not finite is reported elsewhere
        if gap.max() > (1e-12 if self.precision.itemsize >= 8 else 1e-5):
            a, b = np.unravel_index(gap.argmax(), gap.shape)
            i, j = places[rows[a]], places[cols[b]]
            raise AsymmetryError(
                f"the function is not symmetric: it gives {digits(float(again[a, b]))} for items {i} and {j}, and "
                f"{digits(float(mirrored[a, b]))} for items {j} and {i}. Expected one value; mend the function, or "
                "pass symmetrize=True to average the two."
            )

    def keys(self, index: Index) -> list[Hashable] | None:
        """Keys of the items, where they have any."""
        return self._keys(_positions(index, self.n)) if self._keys else None
