"""Exact solvers: all eigenvalues of ρ, or the one norm that an order needs, with an error that is rounding alone.

ρ = diag(√p) K diag(√p) is formed on its smaller side: the d×d matrix of features, the n×n matrix of items, or a sparse
matrix, whose connected components are solved one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES
from vendimeter.data.devices import move
from vendimeter.errors import IndefiniteError, TooLargeError
from vendimeter.similarity import Features, Matrix, Pairwise, Similarity, checked_matrix
from vendimeter.similarity.checks import mending, tolerance_of
from vendimeter.solvers import dense
from vendimeter.solvers.dense import eigen_error, eigenvalues
from vendimeter.solvers.gram import Gram, gram
from vendimeter.solvers.plan import SPARSE_FILL, SPARSE_LIMIT, Plan, Problem, check_size
from vendimeter.spectrum import UNIT, Eigenvalues, Moment, Spectrum

__all__ = [
    "Solution",
    "WeightedMatrix",
    "clean",
    "component_eigenvalues",
    "drop_negative",
    "of_gram",
    "solve",
    "weighted_matrix",
]

SHORTCUT_WIDTH = 1e-8  # a shortcut whose bounds are wider than this, relatively, gives way to the eigenvalues
SPARSE_ROWS = 65_536  # rows of sparse features that are worked on at a time


@dataclass(frozen=True)
class Solution:
    """A spectrum, the method that found it, and notes for the diagnostics."""

    spectrum: Spectrum
    method: str
    notes: dict[str, Any] = field(default_factory=dict)


def solve(problem: Problem, plan: Plan) -> Solution:
    """Solve a prepared problem as planned."""
    similarity, weights, orders, rng = problem.similarity, problem.weights, problem.orders, problem.rng
    if isinstance(similarity, Matrix):
        similarity = similarity.checked()
    if plan.side == "rows":
        return _solve_rows(similarity, problem.index, weights, orders, rng)
    if plan.side == "sparse" and isinstance(similarity, Features):
        return _solve_sparse_features(similarity, problem.index, weights, orders, rng)
    if problem.index is not None:
        similarity = similarity.take(problem.index)
    if plan.side == "sparse":
        return _solve_sparse_matrix(similarity, weights)  # type: ignore[arg-type]
    return _solve_columns(similarity, weights, plan, orders, rng)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------- from a similarity to ρ


def _solve_columns(
    features: Features, weights: np.ndarray | None, plan: Plan, orders: Sequence[float], rng: int
) -> Solution:
    check_size(features.width, "the matrix of features")
    return of_gram(gram(features, weights, precision=plan.precision, rng=rng), plan.precision, orders, rng)


def of_gram(found: Gram, precision: str, orders: Sequence[float], rng: int) -> Solution:
    """The spectrum of the d×d matrix of features."""
    notes: dict[str, Any] = {"precision": precision}
    if found.confidence < 1:
        notes["confidence"] = found.confidence
    return _solve_dense(found.matrix, found.error, orders, rng, "gram", notes, confidence=found.confidence)


def _solve_rows(
    similarity: Similarity,
    index: np.ndarray | None,
    weights: np.ndarray | None,
    orders: Sequence[float],
    rng: int,
) -> Solution:
    rho = weighted_matrix(similarity, index, weights)
    return _solve_dense(
        rho.matrix,
        rho.error,
        orders,
        rng,
        "eigh",
        {},
        precision=rho.precision,
        uniform=weights is None,
        project=rho.project,
    )


class WeightedMatrix(NamedTuple):
    """ρ = diag(√p) K diag(√p) as a dense matrix, a bound on its error, and what is known of where it came from.

    `precision` is the dtype of a user's similarities, and None for those of this package; `project` says whether
    negative eigenvalues are to be dropped.
    """

    matrix: Any
    error: float
    precision: np.dtype | None
    project: bool


def weighted_matrix(
    similarity: Similarity, index: np.ndarray | None, weights: np.ndarray | None
) -> WeightedMatrix:
    """The dense ρ of the items at `index`; a user's similarities are checked and mended as the policy allows."""
    size = similarity.n if index is None else len(index)
    check_size(size, "the similarity matrix")
    matrix = similarity.dense(index)
    if isinstance(similarity, Pairwise) and not similarity.trusted:
        similarity = checked_matrix(matrix, similarity, index)
        matrix = similarity.data
    if weights is None:
        matrix /= size
    else:
        roots = move(np.sqrt(weights), matrix)
        matrix *= roots[:, None]
        matrix *= roots
    precision = None if similarity.trusted else similarity.precision
    return WeightedMatrix(matrix, similarity.entry_error + 4 * UNIT, precision, similarity.policy.project)


def _solve_sparse_matrix(matrix: Matrix, weights: np.ndarray | None) -> Solution:
    probabilities = np.full(matrix.n, 1 / matrix.n) if weights is None else weights
    values, rounding, component_count, largest_component = component_eigenvalues(
        _scale(matrix.data, probabilities, both=True)
    )
    notes = {"components": component_count, "largest_component": largest_component}
    return clean(
        values,
        matrix.rounding + rounding + 4 * UNIT,
        "components",
        notes,
        tolerance=tolerance_of(matrix.precision, float(np.linalg.norm(values))),
        uniform=weights is None,
        project=matrix.policy.project,
    )


def _solve_sparse_features(
    features: Features,
    index: np.ndarray | None,
    weights: np.ndarray | None,
    orders: Sequence[float],
    rng: int,
) -> Solution:
    notes: dict[str, Any] = {}
    n = features.n if index is None else len(index)
    rows_are_fewer = n <= features.width
    size = min(n, features.width)

    parts = [slice(start, min(start + SPARSE_ROWS, n)) for start in range(0, n, SPARSE_ROWS)]
    # All rows at once where all of them meet, or where they are few; else in blocks, without a copy of them all.
    all_rows = (
        features.rows(slice(None) if index is None else index) if rows_are_fewer or len(parts) == 1 else None
    )

    def rows_of(part: slice) -> Any:
        if all_rows is not None:
            return all_rows if part.stop - part.start == n else all_rows[part]
        return features.rows(part if index is None else index[part])

    def scaled(part: slice) -> Any:
        probabilities = np.full(part.stop - part.start, 1 / n) if weights is None else weights[part]
        return _scale(rows_of(part), probabilities)

    if size <= 64:  # not worth counting how full the product will be
        terms, fill = int(np.diff(rows_of(slice(0, n)).indptr).max()) if rows_are_fewer else n, math.inf
    else:
        terms, fill = _sparse_cost(map(rows_of, parts), features.width, rows_are_fewer)
    error = 2 * features.rounding + (terms + 8) * UNIT
    dense_product = fill > SPARSE_FILL * float(size) ** 2
    if dense_product:
        check_size(size, "the product of the sparse features")
    elif fill > SPARSE_LIMIT:
        raise TooLargeError(
            f"the product of the sparse features ({features.n} rows, {features.width} columns) has up to "
            f"{fill:.1e} entries, and the limit is {SPARSE_LIMIT:.0e}. Score a random subset, or use "
            "features that share fewer columns."
        )
    if rows_are_fewer:
        scaled_rows = scaled(slice(0, n))
        product = _dense_square(scaled_rows) if dense_product else scaled_rows @ scaled_rows.T
    else:
        squares = (part.T @ part for part in map(scaled, parts))
        product = np.zeros((size, size)) if dense_product else None
        for square in squares:
            if dense_product:
                product += square.toarray()
            else:
                product = square if product is None else product + square
    if dense_product:
        return _solve_dense(
            np.asarray(product), error, orders, rng, "eigh" if rows_are_fewer else "gram", notes
        )
    values, rounding, component_count, largest_component = component_eigenvalues(product)
    notes |= {"components": component_count, "largest_component": largest_component}
    return clean(values, error + rounding, "components", notes)


def _sparse_cost(blocks: Iterable[Any], width: int, rows_are_fewer: bool) -> tuple[int, float]:
    """The terms of the longest inner product, and a bound on the non-zero entries of the product."""
    per_column = np.zeros(width)
    longest, row_squares, n = 0, 0.0, 0
    for rows in blocks:
        per_row = np.diff(rows.indptr).astype(np.float64)
        longest = max(longest, int(per_row.max()))
        row_squares += float((per_row**2).sum())
        per_column += np.bincount(rows.indices, minlength=width)
        n += rows.shape[0]
    if (per_column.max() if rows_are_fewer else longest) <= 1:  # nothing is shared: the product is diagonal
        return longest if rows_are_fewer else int(per_column.max()), float(min(n, width))
    return (longest, float((per_column**2).sum())) if rows_are_fewer else (int(per_column.max()), row_squares)


def _scale(matrix: Any, weights: np.ndarray, *, both: bool = False) -> Any:
    """Rows (and columns) of a sparse matrix times √p."""
    from scipy import sparse

    roots = np.sqrt(weights)
    data = matrix.data * np.repeat(roots, np.diff(matrix.indptr))
    if both:
        data *= roots[matrix.indices]
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _dense_square(rows: Any) -> np.ndarray:
    """R Rᵀ of sparse rows as a dense matrix, a block of rows at a time."""
    matrix = np.empty((rows.shape[0], rows.shape[0]))
    columns = rows.T.tocsr()
    for start in range(0, len(matrix), 1024):
        matrix[start : start + 1024] = (rows[start : start + 1024] @ columns).toarray()
    return matrix


def component_eigenvalues(matrix: Any) -> tuple[np.ndarray, float, int, int]:
    """Eigenvalues from large to small, their rounding error, the number of components and the size of the largest.

    Items of different components have similarity 0, so the spectrum is the union of the spectra of the components (the
    paper's partitioning property). Components of one size are solved together in a batch.
    """
    from scipy.sparse.csgraph import connected_components

    matrix = matrix.tocsr(copy=True)  # it may share its arrays with the user's own
    matrix.eliminate_zeros()
    count, label = connected_components(matrix, directed=False)
    sizes = np.bincount(label, minlength=count)
    check_size(int(sizes.max()), "a connected component of the similarity matrix")
    # Position of each item inside its component.
    order = np.argsort(label, kind="stable")
    starts = np.cumsum(sizes) - sizes
    position_inside = np.empty(len(label), dtype=np.int64)
    position_inside[order] = np.arange(len(label)) - np.repeat(starts, sizes)

    # Entries in the order of their components, so that the entries of some components are a slice.
    entries = matrix.tocoo()
    by_component = np.argsort(label[entries.row], kind="stable")
    rows, cols, data = entries.row[by_component], entries.col[by_component], entries.data[by_component]
    first_entry = np.concatenate([[0], np.cumsum(np.bincount(label[entries.row], minlength=count))])
    spectra: list[np.ndarray] = []
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        step = max(1, BLOCK_BYTES // (8 * int(size) ** 2))
        for batch_start in range(0, len(members), step):
            batch = members[batch_start : batch_start + step]
            counts = first_entry[batch + 1] - first_entry[batch]
            matrix_number = np.repeat(np.arange(len(batch)), counts)
            entry = np.arange(len(matrix_number)) + np.repeat(
                first_entry[batch] - (np.cumsum(counts) - counts), counts
            )
            stack = np.zeros((len(batch), size, size))
            stack[matrix_number, position_inside[rows[entry]], position_inside[cols[entry]]] = data[entry]
            values = stack[:, 0, :] if size == 1 else eigenvalues(stack[0] if len(stack) == 1 else stack)
            spectra.append(np.ravel(values))
    values = np.sort(np.concatenate(spectra))[::-1]
    # Each component contributes its own error, a multiple of its own largest eigenvalue: together at most that of ‖λ‖₂.
    error = float(eigen_error(int(sizes.max()), float(np.linalg.norm(values))))
    return values, error, int(count), int(sizes.max())


# ----------------------------------------------------------------------------------------------- from ρ to its spectrum


def _solve_dense(
    matrix: Any,
    error: float,
    orders: Sequence[float],
    rng: int,
    method: str,
    notes: dict[str, Any],
    *,
    precision: np.dtype | None = None,
    uniform: bool = True,
    project: bool = False,
    confidence: float = 1.0,
) -> Solution:
    """The spectrum of a dense ρ, or the one norm that a single order needs."""
    level = "deterministic" if confidence == 1 else "probabilistic"
    size, q = matrix.shape[0], orders[0]
    single_order = len(orders) == 1 and size >= dense.SHORTCUT_ABOVE and not project
    # With a precision, the matrix is a user's, and may have negative eigenvalues within what that allows.
    tolerance = 0.0 if precision is None else tolerance_of(precision, dense.norm_of(matrix))
    has_shortcut = math.isinf(q) or (2 <= q <= dense.SHORTCUT_POWER and q == int(q))
    if single_order and has_shortcut and (precision is None or dense.semidefinite(matrix, tolerance)):
        norm_and_error = dense.largest(matrix, rng) if math.isinf(q) else dense.power_norm(matrix, int(q))
        if norm_and_error is not None:
            norm, rounding = norm_and_error
            # Negative eigenvalues within the tolerance touch neither the largest one nor, beyond rounding, the sum of
            # squares; in higher traces they count a little.
            negative_part = 0.0
            if tolerance and 2 < q < math.inf:  # |Σ λ^q| over the negative ones ≤ tolerance^(q−2) Σ λ²
                squares = dense.norm_of(matrix) ** 2
                negative_part = 2 * tolerance ** (q - 2) * squares / (q * norm ** (q - 1))
            spectrum = Moment(q, norm, 2 * error + rounding + negative_part, size, level, confidence)
            value, low, high = spectrum.score(q)
            # Otherwise the eigenvalues are sharper.
            if high - low <= max(SHORTCUT_WIDTH * value, 8 * error * value / norm):
                return Solution(spectrum, "largest" if math.isinf(q) else "trace", notes)
    values = dense.eigenvalues(matrix)
    error += float(dense.eigen_error(size, max(abs(values[0]), abs(values[-1]))))
    return clean(
        values,
        error,
        method,
        notes,
        tolerance=tolerance,
        uniform=uniform,
        project=project,
        confidence=confidence,
    )


def clean(
    values: np.ndarray,
    error: float,
    method: str,
    notes: dict[str, Any],
    *,
    tolerance: float = 0.0,
    uniform: bool = True,
    project: bool = False,
    confidence: float = 1.0,
) -> Solution:
    """The solution for sorted eigenvalues; a negative one is rounding, or projected away on request, or an error."""
    negative = np.minimum(values, 0.0)
    mass = 0.0 - float(negative.sum())  # 0, not −0, where there is none
    if project:
        notes = {**notes, "removed_mass": mass}
        values, error = drop_negative(values, error)  # type: ignore[assignment]
    elif values[-1] < -max(tolerance, error):
        raise indefinite(float(values[-1]), mass, len(values) if uniform else 0)
    elif mass > 0 and tolerance > 0:
        error += float(np.linalg.norm(negative))
    level = "deterministic" if confidence == 1 else "probabilistic"
    return Solution(Eigenvalues(np.maximum(values, 0.0), error, level, confidence), method, notes)


def drop_negative(values: np.ndarray, error: np.ndarray | float) -> tuple[np.ndarray, np.ndarray | float]:
    """Drop negative eigenvalues along the last axis and divide by the new sum: the rest, and its error."""
    values = np.maximum(values, 0.0)
    total = values.sum(axis=-1)
    # The sum is off by at most √n times the error, and everything is divided by it.
    spread = 1 + math.sqrt(values.shape[-1]) * np.linalg.norm(values, axis=-1) / total
    return values / total[..., None], error * spread / total + 4 * UNIT


def indefinite(lowest: float, mass: float, size: int) -> IndefiniteError:
    """The error for a matrix with negative eigenvalues; `size` is n for K/n, or 0 if it was weighted otherwise."""
    description = (
        f"its lowest eigenvalue is {lowest * size:.4g}"
        if size
        else f"weighted, its lowest eigenvalue is {lowest:.4g}"
    )
    return IndefiniteError(
        f"the similarity matrix is not positive semidefinite: {description} (expected ≥ 0), and its negative "
        f"eigenvalues hold {mass:.4g} of a total of 1. Use a positive semidefinite kernel, or {mending('project')} "
        "to drop them and have the removed mass recorded.",
        option="project",
    )
