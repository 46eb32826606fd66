"""Exact solvers: a Similarity with weights → a Spectrum whose error is rounding alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES
from vendimeter.data.devices import move
from vendimeter.errors import IndefiniteError, TooLargeError
from vendimeter.similarity import Features, Matrix, Pairwise, Similarity, validated
from vendimeter.similarity.checks import mending, tolerance_of
from vendimeter.solvers import dense
from vendimeter.solvers.dense import eigen_error, eigenvalues
from vendimeter.solvers.gram import Gram, gram
from vendimeter.solvers.plan import SPARSE_FILL, SPARSE_LIMIT, Plan, Problem, check_size
from vendimeter.spectrum import UNIT, Eigenvalues, Moment, Spectrum

__all__ = [
    "Solution",
    "Weighted",
    "clean",
    "component_eigenvalues",
    "of_gram",
    "projected",
    "solve",
    "weighted",
]


# ---------------------------------------------------------------------------------------------------------- components

# Eigenvalues of a sparse symmetric matrix: those of its connected components, together.


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
    inside = np.empty(len(label), dtype=np.int64)
    inside[order] = np.arange(len(label)) - np.repeat(starts, sizes)

    # Entries in the order of their components, so that the entries of some components are a slice.
    entries = matrix.tocoo()
    by_component = np.argsort(label[entries.row], kind="stable")
    rows, cols, data = entries.row[by_component], entries.col[by_component], entries.data[by_component]
    first_entry = np.concatenate([[0], np.cumsum(np.bincount(label[entries.row], minlength=count))])
    spectra: list[np.ndarray] = []
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        step = max(1, BLOCK_BYTES // (8 * int(size) ** 2))
        for first in range(0, len(members), step):
            chosen = members[first : first + step]
            counts = first_entry[chosen + 1] - first_entry[chosen]
            slot = np.repeat(np.arange(len(chosen)), counts)
            mine = np.arange(len(slot)) + np.repeat(
                first_entry[chosen] - (np.cumsum(counts) - counts), counts
            )
            stack = np.zeros((len(chosen), size, size))
            stack[slot, inside[rows[mine]], inside[cols[mine]]] = data[mine]
            values = stack[:, 0, :] if size == 1 else eigenvalues(stack[0] if len(stack) == 1 else stack)
            spectra.append(np.ravel(values))
    values = np.sort(np.concatenate(spectra))[::-1]
    # Each component contributes its own error, a multiple of its own largest eigenvalue: together at most that of ‖λ‖₂.
    error = float(eigen_error(int(sizes.max()), float(np.linalg.norm(values))))
    return values, error, int(count), int(sizes.max())


# --------------------------------------------------------------------------------------------------------------- exact

SHORTCUT_WIDTH = 1e-8  # a shortcut whose bounds are wider than this, relatively, gives way to the eigenvalues
SPARSE_ROWS = 65_536  # rows of sparse features that are worked on at a time


@dataclass(frozen=True)
class Solution:
    """What a solver found, and how."""

    spectrum: Spectrum
    method: str
    notes: dict[str, Any] = field(default_factory=dict)


def solve(problem: Problem, plan: Plan) -> Solution:
    """Carry out the plan for a prepared problem."""
    similarity, weights, orders, rng = problem.similarity, problem.weights, problem.orders, problem.rng
    if isinstance(similarity, Matrix):
        similarity = similarity.checked()
    if plan.side == "rows":
        return _rows(similarity, problem.index, weights, orders, rng)
    if plan.side == "sparse" and isinstance(similarity, Features):
        return _sparse_features(similarity, problem.index, weights, orders, rng)
    if problem.index is not None:
        similarity = similarity.take(problem.index)
    if plan.side == "sparse":
        return _sparse_matrix(similarity, weights)  # type: ignore[arg-type]
    return _columns(similarity, weights, plan, orders, rng)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- the three sides


def _columns(
    features: Features, weights: np.ndarray | None, plan: Plan, orders: Sequence[float], rng: int
) -> Solution:
    check_size(features.width, "the matrix of features")
    return of_gram(gram(features, weights, precision=plan.precision, rng=rng), plan.precision, orders, rng)


def of_gram(found: Gram, precision: str, orders: Sequence[float], rng: int) -> Solution:
    """The d×d matrix of features → its spectrum."""
    notes: dict[str, Any] = {"precision": precision}
    if found.confidence < 1:
        notes["confidence"] = found.confidence
    return _of_dense(found.matrix, found.error, orders, rng, "gram", notes, confidence=found.confidence)


def _rows(
    similarity: Similarity,
    index: np.ndarray | None,
    weights: np.ndarray | None,
    orders: Sequence[float],
    rng: int,
) -> Solution:
    given = weighted(similarity, index, weights)
    return _of_dense(
        given.matrix,
        given.error,
        orders,
        rng,
        "eigh",
        {},
        precision=given.precision,
        uniform=weights is None,
        project=given.project,
    )


class Weighted(NamedTuple):
    """ρ = diag(√p) K diag(√p) as a dense matrix, a bound on its error, and what is known of where it came from.

    `precision` is the dtype of a user's similarities, and None for those of this package; `project` says whether
    negative eigenvalues are to be dropped.
    """

    matrix: Any
    error: float
    precision: np.dtype | None
    project: bool


def weighted(similarity: Similarity, index: np.ndarray | None, weights: np.ndarray | None) -> Weighted:
    """The matrix ρ of the items at `index`, those of a user checked and mended as the policy allows."""
    size = similarity.n if index is None else len(index)
    check_size(size, "the similarity matrix")
    matrix = similarity.dense(index)
    if isinstance(similarity, Pairwise) and not similarity.trusted:
        similarity = validated(matrix, similarity, index)
        matrix = similarity.data
    if weights is None:
        matrix /= size
    else:
        roots = move(np.sqrt(weights), matrix)
        matrix *= roots[:, None]
        matrix *= roots
    precision = None if similarity.trusted else similarity.precision
    return Weighted(matrix, similarity.entry_error + 4 * UNIT, precision, similarity.policy.project)


def _sparse_matrix(matrix: Matrix, weights: np.ndarray | None) -> Solution:
    share = np.full(matrix.n, 1 / matrix.n) if weights is None else weights
    values, rounding, count, widest = component_eigenvalues(_scaled(matrix.data, share, both=True))
    notes = {"components": count, "largest_component": widest}
    return clean(
        values,
        matrix.rounding + rounding + 4 * UNIT,
        "components",
        notes,
        tolerance=tolerance_of(matrix.precision, float(np.linalg.norm(values))),
        uniform=weights is None,
        project=matrix.policy.project,
    )


def _sparse_features(
    features: Features,
    index: np.ndarray | None,
    weights: np.ndarray | None,
    orders: Sequence[float],
    rng: int,
) -> Solution:
    notes: dict[str, Any] = {}
    n = features.n if index is None else len(index)
    short = n <= features.width
    size = min(n, features.width)

    parts = [slice(start, min(start + SPARSE_ROWS, n)) for start in range(0, n, SPARSE_ROWS)]
    # All rows at once where all of them meet, or where they are few; else in blocks, without a copy of them all.
    once = features.rows(slice(None) if index is None else index) if short or len(parts) == 1 else None

    def rows(part: slice) -> Any:
        if once is not None:
            return once if part.stop - part.start == n else once[part]
        return features.rows(part if index is None else index[part])

    def scaled(part: slice) -> Any:
        share = np.full(part.stop - part.start, 1 / n) if weights is None else weights[part]
        return _scaled(rows(part), share)

    if size <= 64:  # not worth counting how full the product will be
        terms, fill = int(np.diff(rows(slice(0, n)).indptr).max()) if short else n, math.inf
    else:
        terms, fill = _sparse_cost(map(rows, parts), features.width, short)
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
    if short:
        whole = scaled(slice(0, n))
        product = _dense_square(whole) if dense_product else whole @ whole.T
    else:
        squares = (part.T @ part for part in map(scaled, parts))
        product = np.zeros((size, size)) if dense_product else None
        for square in squares:
            if dense_product:
                product += square.toarray()
            else:
                product = square if product is None else product + square
    if dense_product:
        return _of_dense(np.asarray(product), error, orders, rng, "eigh" if short else "gram", notes)
    values, rounding, count, widest = component_eigenvalues(product)
    notes |= {"components": count, "largest_component": widest}
    return clean(values, error + rounding, "components", notes)


def _sparse_cost(parts: Iterable[Any], width: int, short: bool) -> tuple[int, float]:
    """The terms of the longest inner product, and a bound on the non-zero entries of the product."""
    per_column = np.zeros(width)
    longest, squares, n = 0, 0.0, 0
    for rows in parts:
        per_row = np.diff(rows.indptr).astype(np.float64)
        longest = max(longest, int(per_row.max()))
        squares += float((per_row**2).sum())
        per_column += np.bincount(rows.indices, minlength=width)
        n += rows.shape[0]
    if (per_column.max() if short else longest) <= 1:  # nothing is shared: the product is diagonal
        return longest if short else int(per_column.max()), float(min(n, width))
    return (longest, float((per_column**2).sum())) if short else (int(per_column.max()), squares)


def _scaled(matrix: Any, weights: np.ndarray, *, both: bool = False) -> Any:
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
    turned = rows.T.tocsr()
    for start in range(0, len(matrix), 1024):
        matrix[start : start + 1024] = (rows[start : start + 1024] @ turned).toarray()
    return matrix


# ------------------------------------------------------------------------------------------------ from ρ to Spectrum


def _of_dense(
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
    """A dense ρ → its spectrum, or the one norm that the single order needs."""
    level = "deterministic" if confidence == 1 else "probabilistic"
    size, q = matrix.shape[0], orders[0]
    single = len(orders) == 1 and size >= dense.SHORTCUT_ABOVE and not project
    # With a precision, the matrix is a user's, and may have negative eigenvalues within what that allows.
    tolerance = 0.0 if precision is None else tolerance_of(precision, dense.norm_of(matrix))
    quick = math.isinf(q) or (2 <= q <= dense.SHORTCUT_POWER and q == int(q))
    if single and quick and (precision is None or dense.semidefinite(matrix, tolerance)):
        found = dense.largest(matrix, rng) if math.isinf(q) else dense.power_norm(matrix, int(q))
        if found is not None:
            norm, rounding = found
            # Negative eigenvalues within the tolerance touch neither the largest one nor, beyond rounding, the sum of
            # squares; in higher traces they count a little.
            extra = 0.0
            if tolerance and 2 < q < math.inf:  # |Σ λ^q| over the negative ones ≤ tolerance^(q−2) Σ λ²
                squares = dense.norm_of(matrix) ** 2
                extra = 2 * tolerance ** (q - 2) * squares / (q * norm ** (q - 1))
            spectrum = Moment(q, norm, 2 * error + rounding + extra, size, level, confidence)
            value, low, high = spectrum.score(q)
            if high - low <= max(
                SHORTCUT_WIDTH * value, 8 * error * value / norm
            ):  # else eigenvalues are sharper
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
    """Sorted eigenvalues → a Spectrum; a negative one is rounding, or projected away on request, or an error."""
    negative = np.minimum(values, 0.0)
    mass = 0.0 - float(negative.sum())  # 0, not −0, where there is none
    if project:
        notes = {**notes, "removed_mass": mass}
        values, error = projected(values, error)  # type: ignore[assignment]
    elif values[-1] < -max(tolerance, error):
        raise indefinite(float(values[-1]), mass, len(values) if uniform else 0)
    elif mass > 0 and tolerance > 0:
        error += float(np.linalg.norm(negative))
    level = "deterministic" if confidence == 1 else "probabilistic"
    return Solution(Eigenvalues(np.maximum(values, 0.0), error, level, confidence), method, notes)


def projected(values: np.ndarray, error: np.ndarray | float) -> tuple[np.ndarray, np.ndarray | float]:
    """Eigenvalues along the last axis without the negative ones, with sum 1 again, and the error that leaves."""
    values = np.maximum(values, 0.0)
    total = values.sum(axis=-1)
    # The sum is off by at most √n times the error, and everything is divided by it.
    spread = 1 + math.sqrt(values.shape[-1]) * np.linalg.norm(values, axis=-1) / total
    return values / total[..., None], error * spread / total + 4 * UNIT


def indefinite(lowest: float, mass: float, size: int) -> IndefiniteError:
    """The error for a matrix with negative eigenvalues: n of K/n, or 0 if it was weighted otherwise."""
    what = (
        f"its lowest eigenvalue is {lowest * size:.4g}"
        if size
        else f"weighted, its lowest eigenvalue is {lowest:.4g}"
    )
    return IndefiniteError(
        f"the similarity matrix is not positive semidefinite: {what} (expected ≥ 0), and its negative "
        f"eigenvalues hold {mass:.4g} of a total of 1. Use a positive semidefinite kernel, or {mending('project')} "
        "to drop them and have the removed mass recorded.",
        option="project",
    )
