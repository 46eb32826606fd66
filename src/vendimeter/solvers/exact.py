"""Exact solvers: a Similarity with weights → a Spectrum whose error is rounding alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter._matrix_checks import Policy
from vendimeter.errors import IndefiniteError, TooLargeError
from vendimeter.similarity import Features, Matrix, Pairwise, Similarity
from vendimeter.solvers import dense
from vendimeter.solvers.components import component_eigenvalues
from vendimeter.solvers.gram import gram
from vendimeter.solvers.plan import SPARSE_FILL, SPARSE_LIMIT, Plan, check_size
from vendimeter.spectrum import UNIT, MomentSpectrum, Spectrum

__all__ = ["Solution", "clean", "projected", "solve"]


@dataclass(frozen=True)
class Solution:
    """What a solver found, and how."""

    spectrum: Spectrum | MomentSpectrum
    method: str
    notes: dict[str, Any] = field(default_factory=dict)


def solve(
    similarity: Similarity,
    weights: np.ndarray | None,
    plan: Plan,
    orders: Sequence[float],
    policy: Policy,
    rng: int,
) -> Solution:
    """Carry out the plan. `weights` are probabilities, or None for uniform ones."""
    if isinstance(similarity, Matrix):
        similarity = similarity.checked(policy)
    if plan.side == "columns":
        return _columns(similarity, weights, plan, orders, rng)  # type: ignore[arg-type]
    if plan.side == "sparse":
        if isinstance(similarity, Features):
            return _sparse_features(similarity, weights, orders, rng)
        return _sparse_matrix(similarity, weights)  # type: ignore[arg-type]
    return _rows(similarity, weights, orders, policy, rng)


# ------------------------------------------------------------------------------------------------- the three sides


def _columns(
    features: Features, weights: np.ndarray | None, plan: Plan, orders: Sequence[float], rng: int
) -> Solution:
    check_size(features.width, "the matrix of features")
    found = gram(features, weights, precision=plan.precision, rng=rng)
    notes: dict[str, Any] = {"precision": plan.precision}
    if found.confidence < 1:
        notes["confidence"] = found.confidence
    return _of_dense(found.matrix, found.error, orders, rng, "gram", notes, confidence=found.confidence)


def _rows(
    similarity: Similarity, weights: np.ndarray | None, orders: Sequence[float], policy: Policy, rng: int
) -> Solution:
    n = similarity.n
    notes: dict[str, Any] = {}
    index: np.ndarray | None = None
    if weights is not None and not weights.all():
        index = np.flatnonzero(weights)  # items of no weight need no row
        weights = weights[index]
    if not isinstance(similarity, Matrix):
        index, weights = collapse(similarity, index, weights)
    size = n if index is None else len(index)
    if size < n:
        notes["distinct"] = size
    check_size(size, "the similarity matrix")
    policy = similarity.policy = policy | similarity.policy
    matrix = similarity.dense(index)
    tolerance = 0.0
    if not similarity.trusted:
        if isinstance(similarity, Pairwise):
            checked = Matrix(matrix, policy=policy, rounding=similarity.rounding, what="k").checked(
                names=index
            )
            matrix, similarity = checked.data, checked
        tolerance = similarity.tolerance  # type: ignore[attr-defined]
    if weights is None:
        matrix /= size
    else:
        roots = np.sqrt(weights)
        matrix *= roots[:, None]
        matrix *= roots
    error = similarity.entry_error + 4 * UNIT
    return _of_dense(
        matrix,
        error,
        orders,
        rng,
        "eigh",
        notes,
        trusted=similarity.trusted,
        tolerance=tolerance,
        project=policy.project,
    )


def _sparse_matrix(matrix: Matrix, weights: np.ndarray | None) -> Solution:
    values, rounding, count, widest = component_eigenvalues(_scaled(matrix.data, weights, both=True))
    notes = {"components": count, "largest_component": widest}
    return clean(
        values,
        matrix.rounding + rounding + 4 * UNIT,
        "components",
        notes,
        tolerance=matrix.tolerance,
        project=matrix.policy.project,
    )


def _sparse_features(
    features: Features, weights: np.ndarray | None, orders: Sequence[float], rng: int
) -> Solution:
    index: np.ndarray | None = None
    if features.n <= features.width:
        index, weights = collapse(features, None, weights)
    rows = features.rows(slice(None) if index is None else index)
    size = min(rows.shape)
    short = rows.shape[0] <= rows.shape[1]
    per_row, per_column = np.diff(rows.indptr), np.bincount(rows.indices, minlength=rows.shape[1])
    # Terms in the longest inner product, and a bound on the entries of the product.
    terms, fill = (per_row.max(), (per_column.astype(float) ** 2).sum()) if short else (
        per_column.max(), (per_row.astype(float) ** 2).sum())  # fmt: skip
    error = 2 * features.rounding + (int(terms) + 8) * UNIT
    notes: dict[str, Any] = {"distinct": len(index)} if index is not None and len(index) < features.n else {}
    rows = _scaled(rows, weights)
    if size <= 64 or fill > SPARSE_FILL * float(size) ** 2:
        check_size(size, "the product of the sparse features")
        return _of_dense(_dense_product(rows, short), error, orders, rng, "eigh" if short else "gram", notes)
    if fill > SPARSE_LIMIT:
        raise TooLargeError(
            f"the product of the sparse features ({features.n} rows, {features.width} columns) has up to "
            f"{fill:.1e} entries, and the limit is {SPARSE_LIMIT:.0e}. Score a random subset, or use "
            "features that share fewer columns."
        )
    values, rounding, count, widest = component_eigenvalues(rows @ rows.T if short else rows.T @ rows)
    notes |= {"components": count, "largest_component": widest}
    return clean(values, error + rounding, "components", notes)


def _scaled(matrix: Any, weights: np.ndarray | None, *, both: bool = False) -> Any:
    """Rows (and columns) of a sparse matrix times √p, or 1/√n."""
    from scipy import sparse

    n = matrix.shape[0]
    roots = np.full(n, 1 / math.sqrt(n)) if weights is None else np.sqrt(weights)
    data = matrix.data * np.repeat(roots, np.diff(matrix.indptr))
    if both:
        data *= roots[matrix.indices]
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _dense_product(rows: Any, short: bool) -> np.ndarray:
    """R Rᵀ or Rᵀ R of sparse rows as a dense matrix, a block of rows at a time."""
    if short:
        size = rows.shape[0]
        matrix = np.empty((size, size))
        other = rows.T.tocsr()
        for start in range(0, size, 1024):
            matrix[start : start + 1024] = (rows[start : start + 1024] @ other).toarray()
        return matrix
    matrix = np.zeros((rows.shape[1], rows.shape[1]))
    for start in range(0, rows.shape[0], 65536):
        part = rows[start : start + 65536]
        matrix += (part.T @ part).toarray()
    return matrix


def collapse(
    similarity: Similarity, index: np.ndarray | None, weights: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Identical items become one with their joint weight: the paper's identical-elements property, exactly."""
    places = np.arange(similarity.n) if index is None else index
    keys = similarity.keys(places)
    if keys is None:
        return index, weights
    first: dict[Any, int] = {}
    group = np.array([first.setdefault(key, len(first)) for key in keys])
    if len(first) == len(places):
        return index, weights
    share = np.full(len(places), 1 / len(places)) if weights is None else weights
    _, position = np.unique(group, return_index=True)
    return places[position], np.bincount(group, weights=share)


# ------------------------------------------------------------------------------------------------ from ρ to Spectrum


def _of_dense(
    matrix: np.ndarray,
    error: float,
    orders: Sequence[float],
    rng: int,
    method: str,
    notes: dict[str, Any],
    *,
    trusted: bool = True,
    tolerance: float = 0.0,
    project: bool = False,
    confidence: float = 1.0,
) -> Solution:
    """A dense ρ → its spectrum, or the one norm that the single order needs."""
    level = "deterministic" if confidence == 1 else "probabilistic"
    size, q = len(matrix), orders[0]
    single = len(orders) == 1 and size >= dense.SHORTCUT_ABOVE and not project
    quick = math.isinf(q) or (2 <= q <= dense.SHORTCUT_POWER and q == int(q))
    if single and quick and (trusted or dense.semidefinite(matrix, tolerance)):
        found = dense.largest(matrix, rng) if math.isinf(q) else dense.power_norm(matrix, int(q))
        if found is not None:
            norm, rounding = found
            spectrum = MomentSpectrum(q, norm, 2 * error + rounding + tolerance, size, level, confidence)
            return Solution(spectrum, "largest" if math.isinf(q) else "trace", notes)
    values = dense.eigenvalues(matrix)
    error += float(dense.eigen_error(size, abs(values[0])))
    return clean(values, error, method, notes, tolerance=tolerance, project=project, confidence=confidence)


def clean(
    values: np.ndarray,
    error: float,
    method: str,
    notes: dict[str, Any],
    *,
    tolerance: float = 0.0,
    project: bool = False,
    confidence: float = 1.0,
) -> Solution:
    """Sorted eigenvalues → a Spectrum; a negative one is rounding, or projected away on request, or an error."""
    negative = np.minimum(values, 0.0)
    mass = -float(negative.sum())
    if project:
        notes = {**notes, "removed_mass": mass}
        values, error = projected(values, error)  # type: ignore[assignment]
    elif values[-1] < -max(tolerance, error):
        raise indefinite(float(values[-1]), mass, len(values))
    elif mass > 0 and tolerance > 0:
        error += float(np.linalg.norm(negative))
    level = "deterministic" if confidence == 1 else "probabilistic"
    return Solution(Spectrum(np.maximum(values, 0.0), error, level, confidence), method, notes)


def projected(values: np.ndarray, error: np.ndarray | float) -> tuple[np.ndarray, np.ndarray | float]:
    """Eigenvalues along the last axis without the negative ones, with sum 1 again, and the error that leaves."""
    values = np.maximum(values, 0.0)
    total = values.sum(axis=-1)
    # The sum is off by at most √n times the error, and everything is divided by it.
    spread = 1 + math.sqrt(values.shape[-1]) * np.linalg.norm(values, axis=-1) / total
    return values / total[..., None], error * spread / total + 4 * UNIT


def indefinite(lowest: float, mass: float, size: int) -> IndefiniteError:
    """The error for a matrix with negative eigenvalues."""
    return IndefiniteError(
        f"the similarity matrix is not positive semidefinite: its lowest eigenvalue is {lowest * size:.4g} "
        f"(expected ≥ 0), and its negative eigenvalues hold {mass:.4g} of a total of 1. Use a positive "
        "semidefinite kernel, or pass project=True to drop them and have the removed mass recorded."
    )
