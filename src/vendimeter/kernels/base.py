"""The base class of kernels, their sums and products, and kernels on one column of a table.

A kernel holds parameters and no samples; `build` turns samples into a `Similarity`. Where kernels are added or
multiplied, features stay features where that is exact and no wider than needed; all others become blocks.
"""

from __future__ import annotations

import functools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from vendimeter.data import tables
from vendimeter.data.arrays import is_sparse
from vendimeter.data.devices import as_like, concat, namespace
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.options import as_number
from vendimeter.present.numbers import digits
from vendimeter.similarity import Calls, FeatureRows, Features, Index, Matrix, Pairwise, Similarity
from vendimeter.similarity.checks import Policy
from vendimeter.spectrum import UNIT

__all__ = ["Kernel", "On", "Product", "Sum", "combine", "kernel_by_name", "multiply", "multiply_features"]

PRODUCT_ENTRIES = 10_000_000  # a product of sparse features may have this many entries in any case
PRODUCT_WIDTH = 4096  # beyond this many columns dense features are not multiplied, but their kernels are


class Kernel(ABC):
    """A similarity function k with k(a, a) = 1.

    A new kernel is a frozen dataclass with a `name` and a method `build`. Kernels add up with coefficients that
    sum to one and multiply: ``0.5*a + 0.5*b``, ``a*b``.
    """

    name: ClassVar[str] = ""

    @abstractmethod
    def build(self, samples: Any, rng: int) -> Similarity:
        """The similarities of these samples; parameters that come from data are fitted here, on all of them."""

    def similarity(self, samples: Any, *, rng: int = 0) -> Similarity:
        """The similarities of these samples; its `kernel` is this one with every parameter fitted and fixed."""
        similarity = self.build(samples, rng)
        return similarity.with_kernel(self) if similarity.kernel is None else similarity

    def fit(self, samples: Any, *, rng: int = 0) -> Kernel:
        """The kernel with the parameters that come from data fixed by these samples.

        Examples
        --------
        >>> import vendimeter as vm
        >>> vm.kernels.RBF("median").fit([[0.0], [3.0], [4.0]])
        RBF(sigma=3.0)
        """
        return self.similarity(samples, rng=rng).kernel

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that this one is made of."""
        return ()

    @property
    def fitted(self) -> bool:
        """Whether no parameter waits for data."""
        return all(part.fitted for part in self.parts)

    @property
    def approximate(self) -> bool:
        """Whether it only stands in for another kernel, so that no bound holds for the score."""
        return any(part.approximate for part in self.parts)

    @property
    def caveat(self) -> str | None:
        """What to know about a score with this kernel, where it is only approximate."""
        return next((part.caveat for part in self.parts if part.caveat is not None), None)

    @property
    def needs_all(self) -> str | None:
        """Why all items are needed at once, and what to do instead; None where `batch_features` will do."""
        if not self.parts:
            return "it does not say that its features mean the same in every batch. Score all items at once"
        return next((part.needs_all for part in self.parts if part.needs_all is not None), None)

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """Features whose columns mean the same for every batch of samples; only where `needs_all` is None."""
        similarity = self.similarity(samples, rng=rng)
        assert isinstance(similarity, Features)
        return similarity

    def __add__(self, other: Any) -> Sum:
        if not isinstance(other, Kernel):
            return NotImplemented
        return Sum(_terms(self) + _terms(other))

    def __radd__(self, other: Any) -> Kernel:
        return self if other == 0 else NotImplemented  # so that sum(kernels) works

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return _product(self, other)
        if isinstance(other, Real) and not isinstance(other, bool):
            if not 0 < float(other) < float("inf"):
                raise InputError(
                    f"a kernel was multiplied by {brief(other)}; expected a coefficient above 0."
                )
            return Sum(tuple((float(other) * weight, kernel) for weight, kernel in _terms(self)))
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Kernel:
        number = as_number(other)
        return NotImplemented if math.isnan(number) or number == 0 else self * (1 / number)

    def __pow__(self, power: Any) -> Kernel:
        number = as_number(power)
        if not (1 <= number < math.inf and number == int(number)):
            raise InputError(
                f"a kernel was raised to the power {brief(power)}; expected a whole number from 1 up."
            )
        return math.prod([self] * (int(number) - 1), start=self)  # type: ignore[arg-type, return-value]


@dataclass(frozen=True)
class Sum(Kernel):
    """A weighted mean of kernels; made by ``0.5*a + 0.5*b``.

    Examples
    --------
    >>> from vendimeter.kernels import Match, On
    >>> 0.5 * On("shape", Match()) + 0.5 * On("colour", Match())
    0.5*On('shape', Match()) + 0.5*On('colour', Match())
    """

    terms: tuple[tuple[float, Kernel], ...]
    name: ClassVar[str] = "sum"

    def __repr__(self) -> str:
        return " + ".join(f"{weight:g}*{_parenthesize(kernel)}" for weight, kernel in self.terms)

    def _check(self) -> None:
        total = sum(weight for weight, _ in self.terms)
        if abs(total - 1) > 1e-9:
            raise InputError(
                f"the coefficients of {self!r} sum to {digits(total)}; expected 1, so that every item has "
                f"similarity 1 with itself. Multiply the sum by {digits(1 / total)}."
            )

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels of the terms."""
        return tuple(kernel for _, kernel in self.terms)

    def build(self, samples: Any, rng: int) -> Similarity:
        """The weighted mean of the similarities of the parts."""
        return self._combine_parts([kernel.similarity(samples, rng=rng) for _, kernel in self.terms])

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """The features of the parts, side by side."""
        features = self._combine_parts([kernel.batch_features(samples, rng=rng) for _, kernel in self.terms])
        assert isinstance(features, Features)
        return features

    def _combine_parts(self, parts: Sequence[Similarity]) -> Similarity:
        self._check()
        weights = [weight for weight, _ in self.terms]
        similarity = combine(parts, [weight / sum(weights) for weight in weights])
        return similarity.with_kernel(
            Sum(tuple((weight, part.kernel) for weight, part in zip(weights, parts, strict=True)))
        )


@dataclass(frozen=True)
class Product(Kernel):
    """A product of kernels; made by ``a*b``: items are similar when they are so under each.

    Examples
    --------
    >>> from vendimeter.kernels import Match, On
    >>> On("shape", Match()) * On("colour", Match())
    On('shape', Match())*On('colour', Match())
    """

    factors: tuple[Kernel, ...]
    name: ClassVar[str] = "product"

    def __repr__(self) -> str:
        return "*".join(_parenthesize(kernel) for kernel in self.factors)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The factors."""
        return self.factors

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """All products of the factors' columns."""
        parts = [kernel.batch_features(samples, rng=rng) for kernel in self.factors]
        return multiply_features(parts).with_kernel(Product(tuple(part.kernel for part in parts)))

    def build(self, samples: Any, rng: int) -> Similarity:
        """The product of the similarities of the factors."""
        parts = [kernel.similarity(samples, rng=rng) for kernel in self.factors]
        return multiply(parts).with_kernel(Product(tuple(part.kernel for part in parts)))


@dataclass(frozen=True)
class On(Kernel):
    """A kernel on one column of a table: ``On("colour", Match())``.

    Samples are a pandas, polars or Arrow table, a dict of columns, or a list of records.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from vendimeter.kernels import Match, On
    >>> table = {"shape": ["disc", "disc", "star", "star"], "colour": ["red", "blue", "red", "blue"]}
    >>> round(vm.score(table, 0.5 * On("shape", Match()) + 0.5 * On("colour", Match())), 4)
    2.8284
    """

    column: Hashable
    kernel: Kernel
    name: ClassVar[str] = "on"

    def __post_init__(self) -> None:
        if isinstance(self.kernel, str):
            object.__setattr__(self, "kernel", kernel_by_name(self.kernel))
        if not isinstance(self.kernel, Kernel):
            raise InputError(
                f"On({brief(self.column)}, …) got {brief(self.kernel)}; expected a kernel such as Match()."
            )

    def __repr__(self) -> str:
        return f"On({self.column!r}, {self.kernel!r})"

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernel of the column."""
        return (self.kernel,)

    def build(self, samples: Any, rng: int) -> Similarity:
        """The similarities of the column."""
        return self._with_kernel(self.kernel.similarity(tables.column(samples, self.column), rng=rng))

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """The features of the column."""
        return self._with_kernel(self.kernel.batch_features(tables.column(samples, self.column), rng=rng))

    def _with_kernel(self, similarity: Any) -> Any:
        return similarity.with_kernel(replace(self, kernel=similarity.kernel))


def kernel_by_name(name: str) -> Kernel:
    """The kernel of this name, for kernels that hold others; the registry imports all of them, this module too."""
    from vendimeter.kernels.registry import as_kernel

    return as_kernel(name)


def _terms(kernel: Kernel) -> tuple[tuple[float, Kernel], ...]:
    return kernel.terms if isinstance(kernel, Sum) else ((1.0, kernel),)


def _factors(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.factors if isinstance(kernel, Product) else (kernel,)


def _product(left: Kernel, right: Kernel) -> Kernel:
    """Multiply; a coefficient in front of a single factor moves to the front of the product."""
    weight = 1.0
    factors: tuple[Kernel, ...] = ()
    for kernel in (left, right):
        if isinstance(kernel, Sum) and len(kernel.terms) == 1:
            weight *= kernel.terms[0][0]
            kernel = kernel.terms[0][1]
        factors += _factors(kernel)
    product = Product(factors)
    return product if weight == 1 else Sum(((weight, product),))


def _parenthesize(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, Sum) else repr(kernel)


# ------------------------------------------------------------------------------------ similarities of sums and products


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
            return FeatureRows(
                sparse.csr_array(sparse.hstack(rows, format="csr")),
                rounding=max(part.rounding for part in features) + 2 * UNIT,
                keys=_join_keys(features),
            )
        if all(not part.sparse or part.width <= PRODUCT_WIDTH for part in features):
            return StackedFeatures(features, [float(scale) for scale in scales])
    checked, like = [_check_matrix(part) for part in parts], _shared_like(parts)

    def block(rows: np.ndarray, cols: np.ndarray) -> Any:
        terms = zip(coefficients, checked, strict=True)
        return functools.reduce(
            operator.add, (c * as_like(part.block(rows, cols), like) for c, part in terms)
        )

    error = sum(c * part.entry_error for c, part in zip(coefficients, checked, strict=True))
    return _join_pairwise(checked, block, error + len(parts) * 2 * UNIT)


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


def multiply_features(parts: Sequence[Features]) -> Features:
    """All products of the columns, however few the rows: columns that mean the same for every batch."""
    return functools.reduce(MultipliedFeatures, parts)


def _multiply_two(left: Similarity, right: Similarity) -> Similarity:
    if isinstance(left, Features) and isinstance(right, Features):
        if left.sparse and right.sparse:
            product = _multiply_sparse(left, right)
            if product is not None:
                return product
        if left.width * right.width <= min(PRODUCT_WIDTH, left.n):
            return MultipliedFeatures(left, right)
    left, right = _check_matrix(left), _check_matrix(right)
    like = _shared_like([left, right])

    def block(rows: np.ndarray, cols: np.ndarray) -> Any:
        entries = as_like(left.block(rows, cols), like)
        return entries * entries if left is right else entries * as_like(right.block(rows, cols), like)

    return _join_pairwise([left, right], block, left.entry_error + right.entry_error + 2 * UNIT)


def _multiply_sparse(left: Features, right: Features) -> Features | None:
    """Row by row, the products of the non-zero entries; only the column pairs that occur become columns.

    None where that would be larger than the similarity matrix itself.
    """
    from scipy import sparse

    a, b = left.rows(slice(None)), right.rows(slice(None))
    count_a, count_b = np.diff(a.indptr), np.diff(b.indptr)
    counts = count_a.astype(np.int64) * count_b
    if counts.sum() > max(left.n**2 // 2, PRODUCT_ENTRIES):
        return None
    row = np.repeat(np.arange(left.n), counts)
    rank = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    at_a = a.indptr[:-1][row] + rank // np.maximum(count_b, 1)[row]
    at_b = b.indptr[:-1][row] + rank % np.maximum(count_b, 1)[row]
    pair = a.indices[at_a].astype(np.int64) * right.width + b.indices[at_b]
    _, column = np.unique(pair, return_inverse=True)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    width = int(column.max()) + 1 if len(column) else 1
    data = sparse.csr_array((a.data[at_a] * b.data[at_b], column, indptr), shape=(left.n, width))
    return FeatureRows(
        data, rounding=left.rounding + right.rounding + 2 * UNIT, keys=_join_keys([left, right])
    )


def _join_pairwise(
    parts: Sequence[Similarity], block: Callable[[np.ndarray, np.ndarray], Any], error: float
) -> Pairwise:
    # Parts that are trusted have no negative eigenvalues, or project them; every other part has to allow projection.
    allowed = all(part.trusted or part.policy.project for part in parts)
    policy = Policy(
        symmetrize=any(part.policy.symmetrize for part in parts),
        project=allowed and any(part.policy.project for part in parts),
    )
    return Pairwise(
        parts[0].n,
        block,
        rounding=error,
        trusted=all(part.trusted for part in parts),
        policy=policy,
        keys=_join_keys(parts),
        like=_shared_like(parts),
        stacks=all(isinstance(part, Pairwise) and part.stacks for part in parts),
        cost=sum(part.cost for part in parts) + 100.0,
        parts=parts,
        counter=Calls(
            sources=[part.counter for part in {id(part): part for part in parts}.values() if part.counter]
        ),
    )


def _join_keys(parts: Sequence[Similarity]) -> Callable[[Any], list[Hashable] | None]:
    """The keys of items that are identical when they are so in every part."""

    def keys(index: Any) -> list[Hashable] | None:
        columns = [part.keys(index) for part in parts]
        return None if any(column is None for column in columns) else list(zip(*columns, strict=True))  # type: ignore[arg-type]

    return keys


def _shared_like(parts: Sequence[Similarity]) -> Any:
    """The array on whose device blocks of all parts are put: that of the first part that is on one."""
    return next((part.like for part in parts if part.like is not None), None)


def _check_matrix(part: Similarity) -> Similarity:
    """A part that is a user's matrix, checked and mended by itself: this cannot be done to the sum or product."""
    return part.checked() if isinstance(part, Matrix) else part


class StackedFeatures(Features):
    """Dense features side by side, each scaled: the features of a weighted sum of kernels."""

    _parts: Sequence[Features]
    _scales: Sequence[float]

    def __init__(self, parts: Sequence[Features], scales: Sequence[float]):
        super().__init__(
            parts[0].n,
            sum(part.width for part in parts),
            rounding=max(part.rounding for part in parts) + 2 * UNIT,
            like=_shared_like(parts),
            _parts=parts,
            _scales=scales,
        )

    @property
    def dtype(self) -> np.dtype:
        return np.result_type(*(part.dtype for part in self._parts))

    def look(self, index: Index) -> None:
        for part in self._parts:
            part.look(index)

    def keys(self, index: Index) -> list[Hashable] | None:
        return _join_keys(self._parts)(index)

    def rows(self, index: Index, out: np.ndarray | None = None) -> Any:
        scaled = zip(self._parts, self._scales, strict=True)
        return concat(
            [scale * as_like(_as_dense(part.rows(index)), self.like) for part, scale in scaled], axis=1
        )


class MultipliedFeatures(Features):
    """All products of two features' columns: the features of a product of kernels."""

    _left: Features
    _right: Features

    def __init__(self, left: Features, right: Features):
        super().__init__(
            left.n,
            left.width * right.width,
            rounding=left.rounding + right.rounding + 2 * UNIT,
            like=_shared_like([left, right]),
            _left=left,
            _right=right,
        )

    @property
    def dtype(self) -> np.dtype:
        return np.result_type(self._left.dtype, self._right.dtype)

    def look(self, index: Index) -> None:
        for part in {id(part): part for part in (self._left, self._right)}.values():
            part.look(index)

    def keys(self, index: Index) -> list[Hashable] | None:
        return _join_keys([self._left, self._right])(index)

    def rows(self, index: Index, out: np.ndarray | None = None) -> Any:
        left, right = (as_like(_as_dense(part.rows(index)), self.like) for part in (self._left, self._right))
        return namespace(left).reshape(left[:, :, None] * right[:, None, :], (left.shape[0], self.width))


def _as_dense(rows: Any) -> np.ndarray:
    return rows.toarray() if is_sparse(rows) else rows
