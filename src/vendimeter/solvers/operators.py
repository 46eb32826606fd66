"""Linear operators: products ρV, from a stored matrix, from features, or from blocks computed again at every pass.

All products are float64, also where the matrix is stored in float32: a block is upcast, then multiplied. Then rounding
is negligible beside every other error here, and its bound is a theorem. With ``products="float32"`` a float32 matrix is
multiplied as it is, which is faster on a GPU; what that costs is not bounded: the level of the answer is "estimated".
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import (
    DEVICE_BYTES,
    as_like,
    concat,
    double,
    move,
    namespace,
    to_host,
    transposed,
)
from vendimeter.errors import InputError
from vendimeter.similarity import Features, Matrix, Pairwise, Similarity, materialized
from vendimeter.similarity.checks import check, not_finite
from vendimeter.solvers.gram import gram
from vendimeter.spectrum import UNIT
from vendimeter.threads import run, workers

__all__ = [
    "Blocks",
    "Dense",
    "Operator",
    "Rows",
    "Sparse",
    "SparseRows",
    "compact",
    "fill",
    "operator_of",
    "side_by_side",
]

TILE = 1024  # rows and columns of a block that is computed at a time
SIDE_BY_SIDE = 2048  # items from which a stored matrix is multiplied by several threads
SQUARES_COST = 4e9  # multiplications that ‖ρ‖_F² of sparse features may take
SINGLE = 2.0**-24  # unit roundoff of float32


def operator_of(
    similarity: Similarity,
    weights: np.ndarray | None,
    storage: str,
    *,
    products: str = "float64",
    names: np.ndarray | None = None,
    progress: Callable[[float], None] | None = None,
    rng: int = 0,
) -> Operator:
    """ρ of these items as a linear operator.

    Parameters
    ----------
    similarity : Similarity
        Of n items; a user's matrix was checked, and a user's function is checked here where all of it is stored.
    weights : ndarray or None
        Their probabilities.
    storage : {"given", "features", "float64", "float32", "blocks"}
        A matrix or sparse features as they are; products with the features; a matrix that is stored with this
        precision; similarities that are computed again at every pass.
    products : {"float64", "float32"}
        The precision of products with a stored matrix.
    names : ndarray, optional
        The user's own positions of the items, for messages.
    progress : callable, optional
        Told how much of a matrix is stored.
    rng : int
        Seed.
    """
    if isinstance(similarity, Features) and similarity.sparse:
        rows = similarity.rows(slice(None))
        terms = int(np.diff(rows.indptr).max(initial=0))
        operator: Operator = SparseRows(rows, weights, error=2 * similarity.rounding + (terms + 8) * UNIT)
        operator.stored = 40.0 * rows.nnz
        return operator
    if isinstance(similarity, Matrix) and similarity.sparse:
        return Sparse(similarity.data, weights, error=similarity.rounding)
    if isinstance(similarity, Matrix) and storage != "float32":
        return Dense(similarity.data, weights, error=similarity.rounding, products=products)
    if isinstance(similarity, Features) and storage == "features":
        return Rows(similarity, weights)
    if isinstance(similarity, Features) and similarity.width <= similarity.n:
        square = gram(similarity, weights, precision="float64", rng=rng)
        operator = Dense(square.matrix, scaled=True, error=square.error)
    elif storage == "blocks":
        return _blocks_operator(similarity, weights, names)
    else:
        matrix, error = _stored_matrix(similarity, storage, names, progress)
        operator = Dense(matrix, weights, error=error, products=products)
        if storage == "float32":  # each entry was rounded once
            operator.error += SINGLE * math.sqrt(operator.squares or 1.0)
    operator.stored = (4.0 if storage == "float32" else 8.0) * operator.size**2
    return operator


def _blocks_operator(similarity: Similarity, weights: np.ndarray | None, names: np.ndarray | None) -> Blocks:
    """ρ from blocks that are computed again at every pass, unless the policy needs the whole matrix."""
    policy = similarity.policy
    if not similarity.trusted and (policy.normalize or policy.symmetrize):
        raise InputError(
            f"the {similarity.n}×{similarity.n} matrix of a function does not fit into memory, and normalize=True or "
            "symmetrize=True needs all of it; expected a function that needs no mending, more memory, or fewer items."
        )
    return Blocks(similarity, weights, names)


def _stored_matrix(
    similarity: Similarity,
    storage: str,
    names: np.ndarray | None,
    progress: Callable[[float], None] | None,
) -> tuple[Any, float]:
    """K, where similarities are computed, and a bound on the error of an entry; a user's function is checked."""
    is_single = storage == "float32"
    if isinstance(similarity, Matrix):
        return compact(similarity.data), similarity.rounding
    if not similarity.trusted:
        checked = materialized(similarity, names)
        matrix, error = checked.data, checked.entry_error
        return (namespace(matrix).astype(matrix, namespace(matrix).float32) if is_single else matrix), error
    if similarity.like is None:
        matrix = fill(similarity, np.float32 if is_single else np.float64, progress)
    else:
        matrix = _single_on_device(similarity) if is_single else similarity.dense()
    return matrix, similarity.entry_error


def _single_on_device(similarity: Similarity) -> Any:
    """K in float32 on its device, from strips of rows, so that it never lies there in float64."""
    xp = namespace(similarity.like)
    strips = blocks(similarity.n, similarity.n, most=DEVICE_BYTES)
    all_columns = slice(0, similarity.n)
    return concat([
        xp.astype(as_like(similarity.block(strip, all_columns), similarity.like), xp.float32) for strip in strips
    ])  # fmt: skip


class Operator(ABC):
    """The linear operator ρ = diag(√p) K diag(√p): products with blocks of vectors.

    Attributes
    ----------
    size : int
        The dimension.
    like : array or None
        An array on the device where vectors live.
    error : float
        Bound on the Frobenius norm of the difference between what is multiplied by and ρ.
    drift : float
        The part of it that is not the rounding of a matrix that was stored: the traces feel it.
    stored : float
        Bytes of a matrix that was made for it.
    overhead : float
        What a pass costs beside the multiplications, in columns: reading the matrix, or computing it.
    passes, columns, evaluations : int
        What was spent: passes over the matrix, columns multiplied, similarities computed.
    """

    size: int
    like: Any = None
    stored: float = 0.0
    overhead: float = 2.0
    threads: int = 1  # of Python, each with one of BLAS; see `side_by_side`

    def __init__(self, error: float):
        self.error = self.drift = error
        self.passes = self.columns = self.evaluations = 0
        self._squares: float | None = None

    def apply(self, vectors: Any) -> Any:
        """ρV, for a block V of shape (size, columns)."""
        self.passes += 1
        self.columns += int(vectors.shape[1])
        return self._apply(vectors)

    @abstractmethod
    def _apply(self, vectors: Any) -> Any: ...

    @functools.cached_property
    def squares(self) -> float | None:
        """‖ρ‖_F², or None where it would cost more than it is worth."""
        return self._sum_of_squares()

    @abstractmethod
    def _sum_of_squares(self) -> float | None: ...


class Dense(Operator):
    """A stored matrix, on the host or on a device.

    Parameters
    ----------
    matrix : array, shape (n, n)
        K, of any real dtype; not changed.
    weights : ndarray or None
        p.
    error : float
        Bound on the error of an entry of K.
    products : "float64" or "float32"
        In which precision to multiply.
    scaled : bool
        Whether the matrix is ρ already.
    """

    def __init__(
        self,
        matrix: Any,
        weights: np.ndarray | None = None,
        *,
        error: float = 0.0,
        products: str = "float64",
        scaled: bool = False,
    ):
        super().__init__(error)
        self.size = int(matrix.shape[0])
        self._matrix = matrix
        self.like = None if isinstance(matrix, np.ndarray) else matrix
        self._roots: Any = 1.0 if scaled else _roots(weights, self.size, matrix)
        self._single = products == "float32"
        # On a CPU a product with a few columns takes as long as reading the matrix; a GPU is idle with fewer. Measured.
        self.overhead = 64.0
        if self.like is None:
            self.overhead = 24.0 if matrix.dtype == np.float64 else 16.0

    def _apply(self, vectors: Any) -> Any:
        vectors = vectors * self._roots
        return self._product(vectors) * self._roots

    def _product(self, vectors: Any) -> Any:
        matrix = self._matrix
        xp = namespace(matrix)
        if self._single and matrix.dtype != xp.float64 and self.threads == 1:
            return double(xp.astype(matrix, xp.float32, copy=False) @ xp.astype(vectors, xp.float32))
        if self.like is not None and matrix.dtype != xp.float64:
            strips = blocks(self.size, self.size, most=DEVICE_BYTES)
            return concat([double(matrix[strip, :]) @ vectors for strip in strips])
        if matrix.dtype == xp.float64 and self.threads == 1:
            return matrix @ vectors
        # A few rows at a time, so that they are read from memory once, upcast and multiplied in the cache.
        out, vectors = np.empty(vectors.shape), np.ascontiguousarray(vectors)
        strip_rows = max(48, BLOCK_BYTES // 2 // (8 * self.size))
        edges = [self.size * i // self.threads for i in range(self.threads + 1)]
        multiply = functools.partial(self._multiply_rows, vectors, out, strip_rows)
        run([functools.partial(multiply, start, stop) for start, stop in itertools.pairwise(edges)])
        return out

    def _multiply_rows(self, vectors: np.ndarray, out: np.ndarray, step: int, start: int, stop: int) -> None:
        """Write the rows from `start` to `stop` of the product into `out`, `step` rows at a time."""
        multiplied_as_is = self._matrix.dtype == np.float64 or (
            self._single and self._matrix.dtype == np.float32
        )
        buffer = None if multiplied_as_is else np.empty((step, self.size))
        if buffer is None and self._single:
            vectors = vectors.astype(self._matrix.dtype)
        for first in range(start, stop, step):
            strip = slice(first, min(first + step, stop))
            rows = self._matrix[strip]
            if buffer is not None:
                np.copyto(buffer[: len(rows)], rows)
                rows = buffer[: len(rows)]
            if rows.dtype == np.float64:
                np.matmul(rows, vectors, out=out[strip])
            else:
                out[strip] = rows @ vectors

    def _sum_of_squares(self) -> float:
        matrix, xp = self._matrix, namespace(self._matrix)
        strip_bytes = BLOCK_BYTES if self.like is None else DEVICE_BYTES
        weights = None if isinstance(self._roots, float) else self._roots**2
        total = 0.0
        for strip in blocks(self.size, self.size, most=strip_bytes):
            block = double(matrix[strip, :], copy=False) if self.like is not None else matrix[strip]
            if self.like is None:
                if weights is None:
                    total += float(np.einsum("ij,ij->i", block, block, dtype=np.float64).sum())
                else:
                    squares = block.astype(np.float64)
                    squares *= squares
                    total += float(weights[strip, 0] @ (squares @ weights[:, 0]))
            else:
                product_squares = block * block
                if weights is not None:
                    product_squares = product_squares * weights[strip, :] * transposed(weights)
                total += float(xp.sum(product_squares))
        return total * (self._roots**4 if weights is None else 1.0)


@contextmanager
def side_by_side(operator: Operator) -> Iterator[None]:
    """Let Python threads multiply a large matrix on the host, within this context.

    BLAS has one thread meanwhile: BLAS threads that wait for work would take a core from the others.
    """
    if not isinstance(operator, Dense) or operator.like is not None or operator.size < SIDE_BY_SIDE:
        yield
        return
    with workers(operator.size // 64) as count:
        operator.threads = count
        try:
            yield
        finally:
            operator.threads = 1


class Sparse(Operator):
    """A stored sparse matrix K."""

    def __init__(self, matrix: Any, weights: np.ndarray | None, *, error: float = 0.0):
        super().__init__(error)
        self.size = int(matrix.shape[0])
        self._matrix: Any = matrix
        self._roots: Any = _roots(weights, self.size, None)

    def _apply(self, vectors: Any) -> Any:
        return (self._matrix @ (vectors * self._roots)) * self._roots

    def _sum_of_squares(self) -> float:
        if isinstance(self._roots, float):
            return float(np.sum(self._matrix.data**2)) * self._roots**4
        weights = self._roots[:, 0] ** 2
        squared = self._matrix.copy()
        squared.data **= 2
        return float(weights @ (squared @ weights))


class SparseRows(Operator):
    """Sparse features X: ρ = XXᵀ with scaled rows, or XᵀX where there are fewer columns than rows. K is never built."""

    def __init__(self, rows: Any, weights: np.ndarray | None, *, error: float = 0.0):
        from scipy import sparse

        super().__init__(error)
        n = int(rows.shape[0])
        probabilities = np.full(n, 1 / n) if weights is None else weights
        data = rows.data * np.repeat(np.sqrt(probabilities), np.diff(rows.indptr))
        scaled_rows = sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
        transpose = scaled_rows.T.tocsr()
        # Empty columns add a zero eigenvalue each: they count in the dimension and cost nothing.
        rows_are_fewer = n <= rows.shape[1]
        self._outer: Any = scaled_rows if rows_are_fewer else transpose
        self._inner: Any = transpose if rows_are_fewer else scaled_rows
        self.size = int(self._outer.shape[0])

    def _apply(self, vectors: Any) -> Any:
        return self._outer @ (self._inner @ vectors)

    def _sum_of_squares(self) -> float | None:
        # ‖XXᵀ‖_F = ‖XᵀX‖_F: the cheaper of the two, a few rows at a time.
        row_counts, column_counts = (
            np.diff(side.indptr).astype(np.float64) for side in (self._outer, self._inner)
        )
        costs = float(np.sum(row_counts**2)), float(np.sum(column_counts**2))
        if min(costs) > SQUARES_COST:
            return None
        # The rows of X that hold few entries make XᵀX cheap, and the other way round.
        left, right, other_counts = (
            (self._inner, self._outer, row_counts)
            if costs[0] <= costs[1]
            else (self._outer, self._inner, column_counts)
        )
        # Multiplications of each row of the product, to cut it into parts of bounded memory.
        pattern = left.copy()
        pattern.data = np.ones_like(pattern.data)
        multiplications = np.cumsum(pattern @ other_counts)
        total, start = 0.0, 0
        while start < left.shape[0]:
            multiplied = multiplications[start - 1] if start else 0.0
            stop = max(int(np.searchsorted(multiplications, multiplied + 4e6, side="right")), start + 1)
            total += float(np.sum((left[start:stop] @ right).data ** 2))
            start = stop
        return total


class Rows(Operator):
    """Dense features: ρ = XXᵀ from blocks of rows, two products a block, without a copy of the data.

    Where there are fewer columns than rows the vectors have that length, and one pass over the rows does both products.
    """

    def __init__(self, features: Features, weights: np.ndarray | None):
        super().__init__(features.entry_error)
        self._features, self._n = features, features.n
        self._weights = None if weights is None else weights[:, None]
        self._narrow = features.width < features.n
        self.size = min(features.n, features.width)
        self.like = features.like
        self.overhead = 8.0

    def _strips(self) -> list[slice]:
        strip_bytes = 4 * BLOCK_BYTES if self.like is None else DEVICE_BYTES
        return blocks(self._n, self._features.width, most=strip_bytes)

    def _scaled_rows(self, strip: slice) -> Any:
        """Rows of X: features times √p."""
        rows = self._features.rows(strip)
        if self._weights is None:
            return rows * math.sqrt(1 / self._n)
        return rows * move(np.sqrt(self._weights[strip]), self.like if self.like is not None else rows)

    def _apply(self, vectors: Any) -> Any:
        if self._narrow:
            products = (
                transposed(rows) @ (rows @ vectors) for rows in map(self._scaled_rows, self._strips())
            )
            return functools.reduce(lambda a, b: a + b, products)
        inner = functools.reduce(
            lambda a, b: a + b,
            (transposed(self._scaled_rows(strip)) @ vectors[strip, :] for strip in self._strips()),
        )
        return concat([self._scaled_rows(strip) @ inner for strip in self._strips()])

    def _sum_of_squares(self) -> float | None:
        return None  # as much work as the matrix of features itself


class Blocks(Operator):
    """Blocks of similarities, computed again at every pass: for a matrix that cannot be stored.

    Only the blocks on and above the diagonal are computed; each is used for both of its sides. `names` are the user's
    own positions of the items, for messages, where some items were left out.
    """

    def __init__(self, similarity: Similarity, weights: np.ndarray | None, names: np.ndarray | None = None):
        super().__init__(similarity.entry_error)
        self.size = similarity.n
        self.like = similarity.like
        self._similarity = similarity
        self._names = np.arange(self.size) if names is None else names
        self._weights = weights
        self._roots = _roots(weights, self.size, similarity.like)
        self.overhead = 512.0
        self._squares_seen: float | None = None

    def _apply(self, vectors: Any) -> Any:
        vectors = vectors * self._roots
        parts = [slice(i, min(i + TILE, self.size)) for i in range(0, self.size, TILE)]
        sums: list[Any] = [0.0] * len(parts)
        squares, is_first_pass = 0.0, self._squares_seen is None
        for i, rows in enumerate(parts):
            for j in range(i, len(parts)):
                cols = parts[j]
                block = self._similarity.block(rows, rows if i == j else cols)
                if is_first_pass:
                    self.inspect(block, rows, cols)
                    squares += (1 if i == j else 2) * self._weighted_squares(block, rows, cols)
                sums[i] = sums[i] + block @ vectors[cols, :]
                if i != j:
                    sums[j] = sums[j] + transposed(block) @ vectors[rows, :]
                self.evaluations += int(block.shape[0]) * int(block.shape[1])
        if is_first_pass:
            self._squares_seen = squares
        return concat(sums) * self._roots

    def inspect(self, block: Any, rows: slice, cols: slice) -> None:
        """Check what a user's function gives: diagonal blocks like a matrix, of others a few pairs in both orders."""
        similarity = self._similarity
        if similarity.trusted:
            return
        if rows == cols:
            _, slack = check(block, similarity.policy, "k", similarity.precision, self._names[rows])
            self.error = self.drift = max(self.error, similarity.entry_error + slack)
            return
        values = to_host(block)
        if not np.isfinite(values).all():
            i, j = np.argwhere(~np.isfinite(values))[0]
            raise not_finite(float(values[i, j]), self._names[rows][i], self._names[cols][j], "k")
        if isinstance(similarity, Pairwise):
            a, b = np.arange(rows.start, rows.stop)[:8], np.arange(cols.start, cols.stop)[-8:]
            mirrored = to_host(similarity.block(b, a)).T
            self.evaluations += mirrored.size
            similarity.compare(values[:8, -8:], mirrored, self._names[a], self._names[b])

    def _weighted_squares(self, block: Any, rows: slice, cols: slice) -> float:
        """The share of a block in ‖ρ‖_F²."""
        if self._weights is None:
            return float(namespace(block).sum(block * block)) / self.size**2
        left, right = (move(self._weights[part], block) for part in (rows, cols))
        return float(left @ ((block * block) @ right))

    def _sum_of_squares(self) -> float | None:
        if self._squares_seen is None:  # the first pass computes it
            zeros = np.zeros((self.size, 1))
            self.apply(zeros if self.like is None else move(zeros, self.like))
        return self._squares_seen


def _roots(weights: np.ndarray | None, size: int, like: Any) -> Any:
    """√p as a column, or the number √(1/n) for uniform weights."""
    if weights is None:
        return math.sqrt(1 / size)
    return move(np.sqrt(weights)[:, None], like)


def compact(matrix: np.ndarray) -> np.ndarray:
    """A copy in float32, made by all cores: most of the time goes into fresh memory."""
    copy = np.empty(matrix.shape, dtype=np.float32)
    with workers(len(matrix) // 64) as count:
        edges = [len(matrix) * i // count for i in range(count + 1)]
        strips = [slice(start, stop) for start, stop in itertools.pairwise(edges)]
        run([functools.partial(np.copyto, copy[strip], matrix[strip]) for strip in strips])
    return copy


def fill(similarity: Similarity, dtype: Any, report: Callable[[float], None] | None = None) -> np.ndarray:
    """K of a trusted similarity on the host in this dtype, from blocks of its upper triangle, several at a time."""
    n = similarity.n
    matrix = np.empty((n, n), dtype=dtype)
    strips = [slice(i, min(i + TILE, n)) for i in range(0, n, TILE)]
    pairs = [(rows, cols) for i, rows in enumerate(strips) for cols in strips[i:]]

    def fill_some(first: int, step: int) -> None:
        for done, (rows, cols) in enumerate(pairs[first::step], 1):
            block = similarity.block(rows, rows if cols is rows else cols)
            matrix[rows, cols] = block
            if cols is not rows:
                matrix[cols, rows] = block.T
            if report is not None and first == 0:  # the main thread reports for all
                report(done * step / len(pairs))

    with workers(len(pairs)) as count:
        run([functools.partial(fill_some, first, count) for first in range(count)])
    return matrix
