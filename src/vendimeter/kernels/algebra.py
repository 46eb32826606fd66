"""Sums and products of similarities: features stay features where that is exact and no wider than needed."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from vendimeter.data.arrays import is_sparse
from vendimeter.data.devices import as_like, concat, namespace
from vendimeter.errors import InputError
from vendimeter.similarity import Calls, FeatureRows, Features, Index, Matrix, Pairwise, Similarity
from vendimeter.similarity.checks import Policy
from vendimeter.spectrum import UNIT

__all__ = ["combine", "multiply", "multiply_features"]

PRODUCT_ENTRIES = 10_000_000  # a product of sparse features may have this many entries in any case
PRODUCT_WIDTH = 4096  # beyond this many columns dense features are not multiplied, but their kernels are


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
                keys=_joint_keys(features),
            )
        if all(not part.sparse or part.width <= PRODUCT_WIDTH for part in features):
            return StackedFeatures(features, [float(scale) for scale in scales])
    mended, like = [_mended(part) for part in parts], _joint_like(parts)

    def block(rows: np.ndarray, cols: np.ndarray) -> Any:
        terms = zip(coefficients, mended, strict=True)
        return functools.reduce(
            operator.add, (c * as_like(part.block(rows, cols), like) for c, part in terms)
        )

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
    left, right = _mended(left), _mended(right)
    like = _joint_like([left, right])

    def block(rows: np.ndarray, cols: np.ndarray) -> Any:
        one = as_like(left.block(rows, cols), like)
        return one * one if left is right else one * as_like(right.block(rows, cols), like)

    return _joined([left, right], block, left.entry_error + right.entry_error + 2 * UNIT)


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
    inside = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    at_a = a.indptr[:-1][row] + inside // np.maximum(count_b, 1)[row]
    at_b = b.indptr[:-1][row] + inside % np.maximum(count_b, 1)[row]
    pair = a.indices[at_a].astype(np.int64) * right.width + b.indices[at_b]
    _, column = np.unique(pair, return_inverse=True)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    width = int(column.max()) + 1 if len(column) else 1
    data = sparse.csr_array((a.data[at_a] * b.data[at_b], column, indptr), shape=(left.n, width))
    return FeatureRows(
        data, rounding=left.rounding + right.rounding + 2 * UNIT, keys=_joint_keys([left, right])
    )


def _joint_like(parts: Sequence[Similarity]) -> Any:
    """Where the parts meet: on the device of the first that is on one."""
    return next((part.like for part in parts if part.like is not None), None)


def _mended(part: Similarity) -> Similarity:
    """A part that is a user's matrix, checked and mended by itself: the whole cannot do it afterwards."""
    return part.checked() if isinstance(part, Matrix) else part


def _joint_keys(parts: Sequence[Similarity]) -> Callable[[Any], list[Hashable] | None]:
    """Items are identical when they are so in every part."""

    def keys(index: Any) -> list[Hashable] | None:
        found = [part.keys(index) for part in parts]
        return None if any(key is None for key in found) else list(zip(*found, strict=True))  # type: ignore[arg-type]

    return keys


def _joined(
    parts: Sequence[Similarity], block: Callable[[np.ndarray, np.ndarray], Any], error: float
) -> Pairwise:
    # Parts that are trusted have no negative eigenvalues, or project them; any other has to allow it for the whole.
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
        keys=_joint_keys(parts),
        like=_joint_like(parts),
        stacks=all(isinstance(part, Pairwise) and part.stacks for part in parts),
        cost=sum(part.cost for part in parts) + 100.0,
        parts=parts,
        counter=Calls(
            sources=[part.counter for part in {id(part): part for part in parts}.values() if part.counter]
        ),
    )


class StackedFeatures(Features):
    """Dense features side by side, each scaled: the features of a weighted sum of kernels."""

    _parts: Sequence[Features]
    _scales: Sequence[float]

    def __init__(self, parts: Sequence[Features], scales: Sequence[float]):
        super().__init__(
            parts[0].n,
            sum(part.width for part in parts),
            rounding=max(part.rounding for part in parts) + 2 * UNIT,
            like=_joint_like(parts),
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
        return _joint_keys(self._parts)(index)

    def rows(self, index: Index, out: np.ndarray | None = None) -> Any:
        scaled = zip(self._parts, self._scales, strict=True)
        return concat([scale * as_like(_full(part.rows(index)), self.like) for part, scale in scaled], axis=1)


class MultipliedFeatures(Features):
    """All products of two features' columns: the features of a product of kernels."""

    _left: Features
    _right: Features

    def __init__(self, left: Features, right: Features):
        super().__init__(
            left.n,
            left.width * right.width,
            rounding=left.rounding + right.rounding + 2 * UNIT,
            like=_joint_like([left, right]),
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
        return _joint_keys([self._left, self._right])(index)

    def rows(self, index: Index, out: np.ndarray | None = None) -> Any:
        left, right = (as_like(_full(part.rows(index)), self.like) for part in (self._left, self._right))
        return namespace(left).reshape(left[:, :, None] * right[:, None, :], (left.shape[0], self.width))


def _full(rows: Any) -> np.ndarray:
    return rows.toarray() if is_sparse(rows) else rows
