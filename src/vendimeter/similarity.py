"""The three kinds of similarity, between a kernel and a solver.

- `Features`: vectors φ with K = ΦΦᵀ. Nothing n×n is built unless that is the smaller side.
- `Matrix`: K itself, dense or sparse.
- `Pairwise`: blocks of k(A, B) on demand.

Each offers ``block(rows, cols)``, a dense float64 block of K, and ``rounding``, a bound on the error of its entries
against the mathematical kernel of the given samples. A similarity made by a kernel of this package is *trusted*: its
diagonal is 1, and it is symmetric and positive semidefinite by construction. What a user supplies is checked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vendimeter._arrays import blocks, is_sparse
from vendimeter.errors import AsymmetryError, DiagonalError, InputError, MatrixError
from vendimeter.spectrum import UNIT

__all__ = ["Features", "Matrix", "Pairwise", "Policy", "Similarity", "combine", "multiply"]

Index = slice | np.ndarray
CHECKED_FULLY = 64  # up to this many items a user's function is called for both orders of each pair
PRODUCT_WIDTH = 4096  # beyond this many columns dense features are not multiplied, but their kernels are


@dataclass(frozen=True)
class Policy:
    """How a user's matrix that is not quite a similarity matrix is mended; nothing is mended unasked."""

    normalize: bool = False
    symmetrize: bool = False
    project: bool = False

    def __or__(self, other: Policy) -> Policy:
        return Policy(
            self.normalize or other.normalize,
            self.symmetrize or other.symmetrize,
            self.project or other.project,
        )


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

    @abstractmethod
    def block(self, rows: Index, cols: Index) -> np.ndarray:
        """The similarities of some items with some others, dense, float64."""

    @property
    def entry_error(self) -> float:
        """Bound on the error of an entry of `block`."""
        return self.rounding

    def keys(self, index: Index) -> list[Hashable] | None:
        """Something hashable for each item such that items with equal keys are identical, or None."""
        return None

    def take(self, index: np.ndarray) -> Similarity:
        """The similarities among the items at these positions."""
        part = Pairwise(
            len(index),
            lambda rows, cols: self.block(index[rows], index[cols]),
            rounding=self.rounding,
            trusted=self.trusted,
            policy=self.policy,
            keys=lambda places: self.keys(index[places]),
        )
        part.kernel = self.kernel
        return part

    def dense(self, index: np.ndarray | None = None) -> np.ndarray:
        """The whole of K, or of its part at `index`, from blocks of its upper triangle."""
        places = np.arange(self.n) if index is None else index
        size = len(places)
        matrix = np.empty((size, size))
        parts = [slice(start, min(start + 1024, size)) for start in range(0, size, 1024)]
        for i, rows in enumerate(parts):
            for cols in parts[i:]:
                part = self.block(places[rows], places[cols])
                matrix[rows, cols] = part
                if cols is not rows:
                    matrix[cols, rows] = part.T
        return matrix


class Features(Similarity):
    """Vectors with K = ΦΦᵀ, from the user's own rows without a copy of them.

    Parameters
    ----------
    data : ndarray or csr_array, shape (n, d)
        The rows as the user has them, of any real dtype.
    prepare : callable, optional
        Turns a float64 block of rows (and their positions, for messages) into feature rows of norm 1. It may work in
        place. Without it the rows are features already.
    width : int, optional
        How many columns the prepared rows have, when not those of `data`.
    rounding : float
        Bound on the relative error that `prepare` leaves in a row.

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
    ):
        self.data = data
        self.n = int(data.shape[0])
        self.width = int(data.shape[1]) if width is None else width
        self.sparse = is_sparse(data)
        self.rounding = rounding
        self._prepare = prepare

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the user's rows."""
        return self.data.dtype

    @property
    def entry_error(self) -> float:
        """Bound on the error of an inner product of two rows: theirs, and that of adding up its terms."""
        return 2 * self.rounding + (self.width + 8) * UNIT

    def rows(self, index: Index, out: np.ndarray | None = None) -> Any:
        """Feature rows in float64, dense or CSR as the data is; the caller may overwrite them.

        `out` is a buffer of enough rows that may be used for dense ones: fresh memory for every block costs more
        than the arithmetic on it.
        """
        block = self.data[index]
        if self.sparse:
            block = block.astype(np.float64)
        elif out is not None and out.shape[1] == self.data.shape[1]:
            buffer = out[: len(block)]
            buffer[...] = block
            block = buffer
        else:
            block = np.array(block, dtype=np.float64, order="C")
        return block if self._prepare is None else self._prepare(block, _positions(index, self.n))

    def take(self, index: np.ndarray) -> Features:
        """The features of the items at these positions."""
        return _Taken(self, index)

    def block(self, rows: Index, cols: Index) -> np.ndarray:
        """Similarities as inner products of feature rows."""
        product = self.rows(rows) @ self.rows(cols).T
        return product.toarray() if self.sparse else product

    def keys(self, index: Index) -> list[Hashable] | None:
        """The bytes of the feature rows: equal features are identical items."""
        places = _positions(index, self.n)
        keys: list[Hashable] = []
        for part in blocks(len(places), self.width if not self.sparse else 64):
            rows = self.rows(places[part])
            if self.sparse:
                ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
                keys.extend((rows.indices[a:b].tobytes(), rows.data[a:b].tobytes()) for a, b in ends)
            else:
                keys.extend(row.tobytes() for row in rows)
        return keys


class _Taken(Features):
    """Some of the rows of other features, read through them."""

    def __init__(self, whole: Features, index: np.ndarray):
        self._whole, self._index = whole, index
        self.n, self.width, self.sparse = len(index), whole.width, whole.sparse
        self.rounding, self.kernel = whole.rounding, whole.kernel

    @property
    def dtype(self) -> np.dtype:
        return self._whole.dtype

    def rows(self, index: Index, out: np.ndarray | None = None) -> Any:
        return self._whole.rows(self._index[index], out)


class _Stacked(Features):
    """Dense features side by side, each scaled: the features of a weighted sum of kernels."""

    def __init__(self, parts: Sequence[Features], scales: Sequence[float]):
        self._parts, self._scales = parts, scales
        self.n, self.width, self.sparse = parts[0].n, sum(part.width for part in parts), False
        self.rounding = max(part.rounding for part in parts) + 2 * UNIT

    @property
    def dtype(self) -> np.dtype:
        return np.result_type(*(part.dtype for part in self._parts))

    def rows(self, index: Index, out: np.ndarray | None = None) -> np.ndarray:
        return np.hstack(
            [scale * _full(part.rows(index)) for part, scale in zip(self._parts, self._scales, strict=True)]
        )


class _Multiplied(Features):
    """All products of two features' columns: the features of a product of kernels."""

    def __init__(self, left: Features, right: Features):
        self._left, self._right = left, right
        self.n, self.width, self.sparse = left.n, left.width * right.width, False
        self.rounding = left.rounding + right.rounding + 2 * UNIT

    @property
    def dtype(self) -> np.dtype:
        return np.result_type(self._left.dtype, self._right.dtype)

    def rows(self, index: Index, out: np.ndarray | None = None) -> np.ndarray:
        left, right = _full(self._left.rows(index)), _full(self._right.rows(index))
        return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


def _full(rows: Any) -> np.ndarray:
    return rows.toarray() if is_sparse(rows) else rows


class Matrix(Similarity):
    """A similarity matrix, dense or sparse, as a user has it.

    Parameters
    ----------
    data : ndarray or sparse array, shape (n, n)
        The similarities.
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
        what: str = "K",
    ):
        self.data = data
        self.n = int(data.shape[0])
        self.sparse = is_sparse(data)
        self.policy = policy or Policy()
        self.trusted = trusted
        self.rounding = rounding
        self.what = what
        # Down to this, a negative eigenvalue of ρ is put down to the rounding of the entries.
        self.tolerance = max(_tolerance(data.dtype), 1e-10)

    def block(self, rows: Index, cols: Index) -> np.ndarray:
        """A dense block of the matrix."""
        if self.sparse:
            return self.data[rows][:, cols].toarray().astype(np.float64)
        return self.data[np.ix_(_positions(rows, self.n), _positions(cols, self.n))].astype(np.float64)

    def take(self, index: np.ndarray) -> Matrix:
        """The matrix of the items at these positions."""
        data = self.data[index][:, index] if self.sparse else self.data[np.ix_(index, index)]
        return self._like(data)

    def _like(self, data: Any, *, policy: Policy | None = None, slack: float = 0.0) -> Matrix:
        """Another matrix that came of this one, with the tolerance of the user's own dtype."""
        other = Matrix(
            data,
            policy=policy or self.policy,
            trusted=self.trusted,
            rounding=self.rounding + slack,
            what=self.what,
        )
        other.tolerance, other.kernel = self.tolerance, self.kernel
        return other

    def dense(self, index: np.ndarray | None = None) -> np.ndarray:
        """A float64 copy of the whole, both triangles as they are."""
        part = self.data if index is None else self.data[index][:, index]
        return (
            part.toarray().astype(np.float64) if self.sparse else np.array(part, dtype=np.float64, order="C")
        )

    def checked(self, policy: Policy | None = None) -> Matrix:
        """The matrix, checked and mended as the policy allows; its rounding then covers what was tolerated."""
        policy = self.policy | (policy or Policy())
        if self.trusted:
            return self
        return _checked_sparse(self, policy) if self.sparse else _checked_dense(self, policy)


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
    """

    def __init__(
        self,
        n: int,
        function: Callable[[np.ndarray, np.ndarray], np.ndarray],
        *,
        rounding: float = 0.0,
        trusted: bool = True,
        policy: Policy | None = None,
        keys: Callable[[np.ndarray], list[Hashable] | None] | None = None,
        triangle: Callable[[np.ndarray], np.ndarray] | None = None,
    ):
        self.n = n
        self._function = function
        self._keys = keys
        self._triangle = triangle
        self.rounding = rounding
        self.trusted = trusted
        self.policy = policy or Policy()

    def block(self, rows: Index, cols: Index) -> np.ndarray:
        """Compute a block."""
        return self._function(_positions(rows, self.n), _positions(cols, self.n))

    def dense(self, index: np.ndarray | None = None) -> np.ndarray:
        """The whole of K; of a user's function beyond 64 items half is mirrored, and a sample of it checked."""
        if self.trusted:
            return super().dense(index)
        places = np.arange(self.n) if index is None else index
        matrix = np.empty((len(places), len(places)))
        mirror = len(places) > CHECKED_FULLY and not self.policy.symmetrize
        parts = [slice(start, min(start + 1024, len(places))) for start in range(0, len(places), 1024)]
        for i, rows in enumerate(parts):
            for cols in parts[i if mirror else 0 :]:
                if rows is cols and mirror and self._triangle is not None:
                    matrix[rows, cols] = self._triangle(places[rows])
                else:
                    matrix[rows, cols] = self.block(places[rows], places[cols])
        if mirror:
            lower = np.tril_indices(len(places), -1)
            matrix[lower] = matrix.T[lower]
            self._spot_check(matrix, places)
        return matrix

    def _spot_check(self, matrix: np.ndarray, places: np.ndarray) -> None:
        """Half of the matrix was mirrored: compute a random 32×32 part of it as it stands, and compare."""
        rows, cols = np.random.default_rng(0).integers(len(places), size=(2, 32))
        again, mirrored = self.block(places[rows], places[cols]), matrix[np.ix_(rows, cols)]
        gap = np.nan_to_num(np.abs(again - mirrored))  # what is not finite is reported elsewhere
        if gap.max() > 1e-12:
            a, b = np.unravel_index(gap.argmax(), gap.shape)
            i, j = places[rows[a]], places[cols[b]]
            raise AsymmetryError(
                f"the function is not symmetric: it gives {again[a, b]:.6g} for items {i} and {j}, and "
                f"{mirrored[a, b]:.6g} for items {j} and {i}. Expected one value; mend the function, or pass "
                "symmetrize=True to average the two."
            )

    def keys(self, index: Index) -> list[Hashable] | None:
        """Keys of the items, where they have any."""
        return self._keys(_positions(index, self.n)) if self._keys else None


# ---------------------------------------------------------------------------------------------- sums and products


def combine(parts: Sequence[Similarity], coefficients: Sequence[float]) -> Similarity:
    """The similarity Σ c·K of a weighted sum of kernels; features stay features."""
    sizes = {part.n for part in parts}
    if len(sizes) > 1:
        raise InputError(
            f"the parts of the kernel see {sorted(sizes)} items; expected the same items for each."
        )
    if len(parts) == 1 and coefficients[0] == 1:
        return parts[0]
    scales = np.sqrt(coefficients)
    features = [part for part in parts if isinstance(part, Features)]
    if len(features) == len(parts):
        if all(part.sparse for part in features):
            from scipy import sparse

            rows = [scale * part.rows(slice(None)) for part, scale in zip(features, scales, strict=True)]
            return Features(
                sparse.csr_array(sparse.hstack(rows, format="csr")),
                rounding=max(part.rounding for part in features) + 2 * UNIT,
            )
        if sum(part.width for part in features) <= max(
            PRODUCT_WIDTH, *(p.width for p in features if not p.sparse)
        ):
            return _Stacked(features, [float(scale) for scale in scales])
    mended = [_mended(part) for part in parts]

    def block(rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return sum(c * part.block(rows, cols) for c, part in zip(coefficients, mended, strict=True))  # type: ignore[return-value]

    error = sum(c * part.entry_error for c, part in zip(coefficients, mended, strict=True))
    return _joined(mended, block, error + len(parts) * 2 * UNIT)


def multiply(parts: Sequence[Similarity]) -> Similarity:
    """The similarity K₁∘K₂∘… of a product of kernels; features stay features where that is no wider than K."""
    sizes = {part.n for part in parts}
    if len(sizes) > 1:
        raise InputError(
            f"the factors of the kernel see {sorted(sizes)} items; expected the same items for each."
        )
    product = parts[0]
    for part in parts[1:]:
        product = _multiply_two(product, part)
    return product


def _multiply_two(left: Similarity, right: Similarity) -> Similarity:
    if isinstance(left, Features) and isinstance(right, Features):
        if left.sparse and right.sparse:
            return _multiply_sparse(left, right)
        if left.width * right.width <= min(PRODUCT_WIDTH, left.n):
            return _Multiplied(left, right)
    left, right = _mended(left), _mended(right)

    def block(rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        one = left.block(rows, cols)
        return one * one if left is right else one * right.block(rows, cols)

    return _joined([left, right], block, left.entry_error + right.entry_error + 2 * UNIT)


def _multiply_sparse(left: Features, right: Features) -> Features:
    """Row by row, the products of the non-zero entries; only the column pairs that occur become columns."""
    from scipy import sparse

    a, b = left.rows(slice(None)), right.rows(slice(None))
    count_a, count_b = np.diff(a.indptr), np.diff(b.indptr)
    counts = (count_a * count_b).astype(np.int64)
    row = np.repeat(np.arange(left.n), counts)
    inside = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    at_a = a.indptr[:-1][row] + inside // np.maximum(count_b, 1)[row]
    at_b = b.indptr[:-1][row] + inside % np.maximum(count_b, 1)[row]
    pair = a.indices[at_a].astype(np.int64) * right.width + b.indices[at_b]
    _, column = np.unique(pair, return_inverse=True)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    width = int(column.max()) + 1 if len(column) else 1
    data = sparse.csr_array((a.data[at_a] * b.data[at_b], column, indptr), shape=(left.n, width))
    return Features(data, rounding=left.rounding + right.rounding + 2 * UNIT)


def _mended(part: Similarity) -> Similarity:
    """A part with its own normalisation applied, since the whole cannot do it afterwards."""
    return part.checked() if isinstance(part, Matrix) and part.policy != Policy() else part


def _joined(
    parts: Sequence[Similarity], block: Callable[[np.ndarray, np.ndarray], np.ndarray], error: float
) -> Pairwise:
    policy = Policy(
        symmetrize=any(part.policy.symmetrize for part in parts),
        project=any(part.policy.project for part in parts),
    )

    def keys(index: np.ndarray) -> list[Hashable] | None:
        found = [part.keys(index) for part in parts]
        return None if any(key is None for key in found) else list(zip(*found, strict=True))  # type: ignore[arg-type]

    return Pairwise(
        parts[0].n,
        block,
        rounding=error,
        trusted=all(part.trusted for part in parts),
        policy=policy,
        keys=keys,
    )


# ---------------------------------------------------------------------------------------- checking a user's matrix


def _tolerance(dtype: np.dtype) -> float:
    """How far entries of this dtype may be off by honest rounding."""
    precision = float(np.finfo(dtype).eps) / 2 if dtype.kind == "f" else UNIT
    return max(16 * precision, 1e-12)


def _row_blocks(n: int) -> Iterator[slice]:
    yield from blocks(n, n)


def _checked_dense(matrix: Matrix, policy: Policy) -> Matrix:
    data, what, n = matrix.data, matrix.what, matrix.n
    tolerance = _tolerance(data.dtype)
    for rows in _row_blocks(n):
        bad = ~np.isfinite(data[rows])
        if bad.any():
            i, j = np.argwhere(bad)[0]
            i += rows.start
            raise MatrixError(
                f"{what}[{i}, {j}] is {data[i, j]}; expected a finite similarity. Remove or mend the item."
            )
    diagonal = np.array(np.diagonal(data), dtype=np.float64)
    slack = _check_diagonal(diagonal, what, policy, tolerance, n)
    if policy.normalize:
        scale = 1 / np.sqrt(diagonal)
        data = np.multiply(data, scale[:, None], dtype=np.float64)
        data *= scale
        slack += 4 * UNIT
    worst, place = 0.0, (0, 0)
    for rows in _row_blocks(n):
        gap = np.abs(np.subtract(data[rows], data[:, rows].T, dtype=np.float64))
        at = int(gap.argmax())
        if gap.flat[at] > worst:
            i, j = divmod(at, n)
            worst, place = float(gap.flat[at]), (i + rows.start, j)
    if worst > 0:
        if worst > tolerance and not policy.symmetrize:
            raise _asymmetry(data, *place, what)
        data = np.add(data, data.T, dtype=np.float64)
        data *= 0.5
        slack += UNIT + (0.0 if policy.symmetrize else worst / 2)
    return matrix._like(data, policy=replace(policy, normalize=False), slack=slack)


def _checked_sparse(matrix: Matrix, policy: Policy) -> Matrix:
    from scipy import sparse

    data, what, n = matrix.data, matrix.what, matrix.n
    tolerance = _tolerance(data.dtype)
    if not np.isfinite(data.data).all():
        at = int(np.flatnonzero(~np.isfinite(data.data))[0])
        i = int(np.searchsorted(data.indptr, at, side="right")) - 1
        raise MatrixError(
            f"{what}[{i}, {data.indices[at]}] is {data.data[at]}; expected a finite similarity. Remove or "
            "mend the item."
        )
    diagonal = data.diagonal().astype(np.float64)
    slack = _check_diagonal(diagonal, what, policy, tolerance, n)
    data = data.astype(np.float64)
    if policy.normalize:
        scale = sparse.dia_array((1 / np.sqrt(diagonal)[None], [0]), shape=(n, n))
        data = sparse.csr_array(scale @ data @ scale)
        slack += 4 * UNIT
    gap = abs(data - data.T).tocoo()
    worst = float(gap.data.max()) if gap.nnz else 0.0
    if worst > 0:
        if worst > tolerance and not policy.symmetrize:
            at = int(gap.data.argmax())
            raise _asymmetry(data, int(gap.row[at]), int(gap.col[at]), what)
        data = sparse.csr_array((data + data.T) * 0.5)
        slack += UNIT + (0.0 if policy.symmetrize else worst / 2)
    return matrix._like(data, policy=replace(policy, normalize=False), slack=slack)


def _asymmetry(data: Any, i: int, j: int, what: str) -> AsymmetryError:
    return AsymmetryError(
        f"{what} is not symmetric: {what}[{i}, {j}] = {data[i, j]:.6g} but {what}[{j}, {i}] = "
        f"{data[j, i]:.6g}. "
        "Expected equal similarities; mend the kernel, or pass symmetrize=True to average the two."
    )


def _check_diagonal(diagonal: np.ndarray, what: str, policy: Policy, tolerance: float, n: int) -> float:
    """The largest deviation of the diagonal from 1 that is put down to rounding; else an error."""
    if n and not diagonal.any():
        raise DiagonalError(
            f"the diagonal of {what} is all 0, so these look like distances; expected similarities with a "
            "diagonal of 1. "
            "Pass kernel=vendimeter.kernels.FromDistances(scale=…) to turn distances into similarities."
        )
    if policy.normalize:
        i = int(diagonal.argmin())
        if diagonal[i] <= 0:
            raise DiagonalError(
                f"{what}[{i}, {i}] = {diagonal[i]:.6g}; normalize=True divides by the square root of the "
                "diagonal and "
                "expected it to be positive."
            )
        return 0.0
    i = int(np.abs(diagonal - 1).argmax())
    off = float(abs(diagonal[i] - 1))
    if off > max(tolerance, 1e-9):
        raise DiagonalError(
            f"{what}[{i}, {i}] = {diagonal[i]:.6g}; expected every item to have similarity 1 with itself. "
            f"Mend the kernel, or pass normalize=True to divide each {what}[i, j] by √({what}[i, i] "
            f"{what}[j, j])."
        )
    return 2 * off
