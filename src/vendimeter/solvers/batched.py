"""Eigenvalues of thousands of small groups: similarity matrices stacked by size, one batched eigensolve a stack."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import DEVICE_BYTES, concat, double, move, namespace, numpy_dtype, transposed
from vendimeter.messages import in_group
from vendimeter.similarity import Features, Matrix, Pairwise, Similarity, checked_matrix, span
from vendimeter.similarity.checks import check_stack, tolerance_of
from vendimeter.solvers.dense import eigen_error, eigenvalues
from vendimeter.spectrum import UNIT

__all__ = ["SMALL", "Batch", "batches", "matrix_batches"]

SMALL = 128  # groups up to this many items are stacked; larger ones get an eigensolve of their own


@dataclass(frozen=True)
class Batch:
    """Groups of one size: the eigenvalues of each, a bound on their error, and how negative they may be."""

    groups: np.ndarray
    eigenvalues: np.ndarray
    error: np.ndarray
    tolerance: np.ndarray


def batches(
    similarity: Similarity,
    starts: np.ndarray,
    items: np.ndarray,
    weights: np.ndarray | None,
    labels: Sequence[Hashable],
) -> Iterator[Batch]:
    """The spectra of all groups of 1 to SMALL items, a batch at a time."""
    sizes = np.diff(starts)
    width = similarity.width if isinstance(similarity, Features) and not similarity.sparse else 0
    for size in np.unique(sizes[(sizes > 0) & (sizes <= SMALL)]):
        groups = np.flatnonzero(sizes == size)
        if similarity.like is None:
            step = max(1, 4 * BLOCK_BYTES // (8 * int(size) * (int(size) + width)))
        else:  # as many matrices as possible: a GPU takes nearly as long for few of them
            step = max(1, 4 * DEVICE_BYTES // (8 * int(size) * min(int(size), width or int(size))))
        for first in range(0, len(groups), step):
            batch = groups[first : first + step]
            entries = starts[batch][:, None] + np.arange(size)
            members = items[entries]
            roots = (
                np.sqrt(weights[entries])
                if weights is not None
                else np.full(members.shape, 1 / np.sqrt(size))
            )
            matrices, error = _stack(similarity, members, roots, [labels[g] for g in batch.tolist()])
            values = eigenvalues(matrices)
            bound = error + eigen_error(matrices.shape[-1], np.abs(values).max(axis=-1))
            norms = np.linalg.norm(values, axis=-1)
            tolerance = (
                np.zeros_like(norms) if similarity.trusted else tolerance_of(similarity.precision, norms)
            )
            yield Batch(batch, values, np.asarray(bound), np.asarray(tolerance))


def matrix_batches(stack: Any) -> Iterator[Batch] | None:
    """The spectra of a stack of similarity matrices; None if one of them needs a closer check."""
    count, size, _ = stack.shape
    slices = blocks(
        count, size * size, most=4 * (BLOCK_BYTES if isinstance(stack, np.ndarray) else DEVICE_BYTES)
    )
    deviations = [check_stack(stack[block, ...]) for block in slices]
    if any(deviation is None for deviation in deviations):
        return None
    return (
        _matrix_batch(stack[block, ...], block, deviation)
        for block, deviation in zip(slices, deviations, strict=True)
        if deviation is not None
    )


def _matrix_batch(stack: Any, groups: slice, deviation: np.ndarray) -> Batch:
    size = stack.shape[1]
    values = eigenvalues((double(stack) + transposed(double(stack))) / (2 * size))
    bound = deviation + 8 * UNIT + eigen_error(size, np.abs(values).max(axis=-1))
    tolerance = tolerance_of(numpy_dtype(stack), np.linalg.norm(values, axis=-1))
    return Batch(np.arange(groups.start, groups.stop), values, np.asarray(bound), np.asarray(tolerance))


def _stack(
    similarity: Similarity, members: np.ndarray, roots: np.ndarray, labels: Sequence[Hashable]
) -> tuple[Any, float]:
    """The matrices ρ of the groups, and a bound on their error."""
    count, size = members.shape
    if isinstance(similarity, Features):
        if similarity.sparse:
            return _sparse_stack(similarity, members, roots)
        slices = [slice(0, count)]
        if similarity.like is not None:
            slices = blocks(count, size * similarity.width, most=DEVICE_BYTES)
        products = concat([_feature_products(similarity, members[part], roots[part]) for part in slices])
        return products, 2 * similarity.rounding + (max(size, similarity.width) + 8) * UNIT
    error = similarity.rounding
    if similarity.like is not None:
        stack, error = _device_stack(similarity, members, labels)
    elif isinstance(similarity, Matrix) and not similarity.sparse:
        stack = similarity.data[members[:, :, None], members[:, None, :]].astype(np.float64)
    elif isinstance(similarity, Pairwise) and similarity.stacks and similarity.trusted:
        stack = similarity.block(members, members)
    else:
        stack = np.empty((count, size, size))
        for matrix, group, label in zip(stack, members, labels, strict=True):
            with in_group(label):
                matrix[:] = similarity.dense(group)
                if isinstance(similarity, Pairwise) and not similarity.trusted:
                    checked = checked_matrix(matrix, similarity, group)
                    matrix[:] = checked.data
                    error = max(error, checked.rounding)
    roots = move(roots, stack)
    stack *= roots[:, :, None]
    stack *= roots[:, None, :]
    return stack, error + 4 * UNIT


def _feature_products(features: Features, members: np.ndarray, roots: np.ndarray) -> Any:
    """The smaller of ΦΦᵀ and ΦᵀΦ for the weighted features of each group."""
    count, size = members.shape
    flat = features.rows(span(members.ravel()))
    rows = namespace(flat).reshape(flat, (count, size, features.width))
    rows = rows * move(roots, rows)[:, :, None]
    columns = transposed(rows)
    return columns @ rows if features.width < size else rows @ columns


def _device_stack(
    similarity: Similarity, members: np.ndarray, labels: Sequence[Hashable]
) -> tuple[Any, float]:
    """The matrices of the groups on their device: gathered from a matrix, or made one by one."""
    if isinstance(similarity, Matrix):
        count, size = members.shape
        xp = namespace(similarity.data)
        flat = xp.reshape(similarity.data, (-1,))
        members = move(members, flat)
        positions = xp.reshape(members[:, :, None] * similarity.n + members[:, None, :], (-1,))
        stack = xp.reshape(xp.take(flat, positions, axis=0), (count, size, size))
        return double(stack), similarity.rounding
    if isinstance(similarity, Pairwise) and similarity.stacks:
        return similarity.block(members, members), similarity.rounding
    matrices, error = [], similarity.rounding
    for group, label in zip(members, labels, strict=True):
        with in_group(label):
            matrix = similarity.dense(group)
            if isinstance(similarity, Pairwise) and not similarity.trusted:
                checked = checked_matrix(matrix, similarity, group)
                matrix, error = checked.data, max(error, checked.rounding)
            matrices.append(matrix)
    return namespace(matrices[0]).stack(matrices), error


def _sparse_stack(features: Features, members: np.ndarray, roots: np.ndarray) -> tuple[np.ndarray, float]:
    """All groups in one sparse product: each group has its own copies of the columns, so that they do not mix."""
    from scipy import sparse

    count, size = members.shape
    rows = features.rows(members.ravel())
    per_row = np.diff(rows.indptr)
    rows.data *= np.repeat(roots.ravel(), per_row)
    group = np.repeat(np.arange(count), size)
    private_columns = np.repeat(group, per_row).astype(np.int64) * features.width + rows.indices
    used_columns, column = np.unique(private_columns, return_inverse=True)
    private_rows = sparse.csr_array((rows.data, column, rows.indptr), shape=(count * size, len(used_columns)))
    product = (private_rows @ private_rows.T).tocoo()
    stack = np.zeros((count, size, size))
    stack[group[product.row], product.row % size, product.col % size] = product.data
    return stack, 2 * features.rounding + (int(per_row.max()) + 8) * UNIT
