"""Eigenvectors of ρ, all or the leading ones, and the coordinates of the items along them.

With features φ, ρ is the operator Σ p φφᵀ = Σ λ v vᵀ. What an item has to do with the spectrum is in its coordinates
y_a = v_aᵀφ alone: Σ_a y_a² = 1, and Σ_i p_i y_ia² = λ_a. The operator is found from its smaller side: the d×d matrix of
features, or the n×n matrix diag(√p) K diag(√p) = U diag(λ) Uᵀ, whose items have the coordinates √λ_a u_ia/√p_i; those
that have no weight, ⟨k(·, i) √p, u_a⟩/√λ_a.

`decompose` takes all eigenvectors, `leading` a few. Where the smaller side of the problem (rows or features) is small,
the latter takes all of them, too. Beyond, a block Krylov space grows until the leading Ritz vectors have settled; its
residuals ‖ρu − θu‖ say how far each is from an eigenvector. A block finds eigenvalues that occur several times, up to
its width, where a single vector finds one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import DEVICE_BYTES, as_like, move, namespace, select, to_host, transposed
from vendimeter.errors import IndefiniteError, TooLargeError
from vendimeter.options import generator
from vendimeter.similarity import Features, Index, Matrix, Similarity
from vendimeter.similarity.base import positions_of
from vendimeter.similarity.checks import mending, tolerance_of
from vendimeter.solvers import dense
from vendimeter.solvers.exact import Solution, clean, weighted_matrix
from vendimeter.solvers.gram import gram
from vendimeter.solvers.krylov import Krylov, gaussian
from vendimeter.solvers.operators import Blocks, Operator, operator_of, side_by_side
from vendimeter.solvers.plan import DEVICE_MEMORY, EXACT_SIDE, collapse, same_items

__all__ = ["Decomposition", "Leading", "decompose", "leading", "takes_all"]

SPARSE_WIDTH = 4096  # columns of sparse features up to which their d×d matrix is dense
LIGHT = 1e-8  # of the mean weight: the coordinates of lighter items come from their similarities
SMALL = 1024  # side up to which all eigenvectors are taken: about as quick as some of them
# The residual, relative to the largest eigenvalue, at which a Ritz vector has settled, and the columns of a block
# beyond the eigenvectors wanted: where ρ is stored or multiplied through features, and where each pass recomputes it.
SETTLED, SETTLED_RECOMPUTED = 1e-8, 1e-6
EXTRA_COLUMNS, EXTRA_COLUMNS_RECOMPUTED = 16, 112
STORED_DOUBLE, STORED_SINGLE = 1 << 30, 4 << 30  # bytes of a matrix that is kept in float64, in float32
BASIS_BYTES = 1 << 30  # vectors that are kept before the space starts again from the best of them
MOST_PASSES, MOST_PASSES_RECOMPUTED = 120, 24  # products with ρ, each with a block of vectors


class Decomposition(ABC):
    """Eigenvalues and eigenvectors of ρ.

    Attributes
    ----------
    n : int
        How many items there are, those without weight among them.
    solution : Solution
        All eigenvalues with the bound on their error, as for a score.
    values : ndarray, shape (r,)
        The eigenvalues above 0, from large to small, on the host.
    rank : int
        How many of them rounding cannot have made: those above the threshold that order 0 counts by.
    like : array or None
        An array on the device where coordinates are; None for the host.
    """

    def __init__(self, n: int, solution: Solution, like: Any):
        self.n, self.solution, self.like = n, solution, like
        spectrum = solution.spectrum
        eigenvalues = spectrum.eigenvalues
        self.values = eigenvalues[: int(np.count_nonzero(eigenvalues > 0))]
        self.rank = max(1, int(np.count_nonzero(eigenvalues > spectrum.rank_threshold)))  # type: ignore[attr-defined]

    @abstractmethod
    def coordinates(self, index: Index, count: int | None = None) -> Any:
        """Y of shape (items, r), for the items at `index`: float64, where `like` is; the first `count` columns."""

    def parts(self, width: int = 0) -> list[slice]:
        """Blocks of items whose coordinates, with `width` more numbers for each, are worked on at a time."""
        block_bytes = 4 * BLOCK_BYTES if self.like is None else DEVICE_BYTES
        return blocks(self.n, len(self.values) + self._working_numbers + width, most=block_bytes)

    @property
    def _working_numbers(self) -> int:
        """Numbers of working memory an item needs while its coordinates are computed."""
        return 0

    @property
    def bytes(self) -> int:
        """The memory that the eigenvectors take."""
        return 0

    def leading(self, count: int) -> Leading:
        """The `count` leading eigenpairs and the one after, or as many as are not 0."""
        spectrum: Any = self.solution.spectrum
        kept_count = _kept_count(spectrum.eigenvalues, spectrum.rank_threshold, count)
        coordinates = np.empty((self.n, kept_count))
        for block in self.parts():
            coordinates[block] = to_host(self.coordinates(block, kept_count))
        errors = np.full(kept_count, spectrum.error)
        return Leading(spectrum.eigenvalues[:kept_count], coordinates, errors, True, self.solution.method)


def decompose(
    similarity: Similarity, weights: np.ndarray | None, *, most: int | None = None
) -> Decomposition:
    """All eigenvalues and eigenvectors of ρ.

    Parameters
    ----------
    similarity : Similarity
        Of n items.
    weights : ndarray of shape (n,), optional
        Their probabilities.
    most : int, optional
        The largest side of a dense matrix that is decomposed; `TooLargeError` beyond.
    """
    most = EXACT_SIDE if most is None else most
    if isinstance(similarity, Features):
        wide = SPARSE_WIDTH if similarity.sparse else most
        if similarity.width <= min(similarity.n, wide):
            return _decompose_columns(similarity, weights)
    if isinstance(similarity, Matrix):
        similarity = similarity.checked()
    return _decompose_rows(similarity, weights, most)


def _decompose_columns(features: Features, weights: np.ndarray | None) -> Decomposition:
    present = features
    if weights is not None and not weights.all():
        index = np.flatnonzero(weights)
        present, weights = features.take(index), weights[index]
    moments = gram(present, weights, precision="float64")
    values, vectors = eigenpairs(moments.matrix)
    error = moments.error + float(dense.eigen_error(features.width, abs(float(values[0]))))
    solution = clean(values, error, "gram", {"precision": "float64"})
    return _ColumnDecomposition(features, solution, vectors)


def _decompose_rows(similarity: Similarity, weights: np.ndarray | None, most: int) -> Decomposition:
    present = np.arange(similarity.n) if weights is None else np.flatnonzero(weights)
    first_copies, group = same_items(similarity, present)
    index = present[first_copies]
    if len(index) > most:
        raise TooLargeError(
            f"this needs the eigenvectors of the {len(index)}×{len(index)} similarity matrix, and the limit is "
            f"{most}×{most}; expected fewer distinct items, or a kernel with at most {most} features. Take a random "
            "sample, embed the items (kernel=vendimeter.kernels.Embed), or let vendimeter.kernels.RandomFeatures stand "
            "in for the kernel."
        )
    probabilities = np.full(len(present), 1 / len(present)) if weights is None else weights[present]
    joint_weights = np.bincount(group, weights=probabilities, minlength=len(index))
    rho = weighted_matrix(similarity, index, joint_weights)
    tolerance = 0.0 if rho.precision is None else tolerance_of(rho.precision, dense.norm_of(rho.matrix))
    values, vectors = eigenpairs(rho.matrix)
    error = rho.error + float(dense.eigen_error(len(index), max(abs(values[0]), abs(values[-1]))))
    solution = clean(
        values,
        error,
        "eigh",
        {"distinct": len(index)} if len(index) < len(present) else {},
        tolerance=float(tolerance),
        uniform=weights is None,
        project=rho.project,
    )
    row_of_item = np.full(similarity.n, -1)
    row_of_item[present] = group
    scale = float(np.maximum(values, 0.0).sum()) if rho.project else 1.0
    return _RowDecomposition(similarity, solution, vectors, index, joint_weights, row_of_item, scale)


class _ColumnDecomposition(Decomposition):
    """Eigenvectors of the d×d matrix of features."""

    def __init__(self, features: Features, solution: Solution, vectors: Any):
        super().__init__(features.n, solution, features.like)
        self._features = features
        self._vectors = vectors[:, : len(self.values)]

    @property
    def _working_numbers(self) -> int:
        return 0 if self._features.sparse else self._features.width

    @property
    def bytes(self) -> int:
        # Those of negative eigenvalues too: they are of one array with the others.
        return 8 * int(self._vectors.shape[0]) ** 2

    def coordinates(self, index: Index, count: int | None = None) -> Any:
        return self._features.rows(index) @ self._vectors[:, :count]


class _RowDecomposition(Decomposition):
    """Eigenvectors of the n×n matrix of the distinct items that have weight."""

    def __init__(
        self,
        similarity: Similarity,
        solution: Solution,
        vectors: Any,
        index: np.ndarray,
        weights: np.ndarray,
        row_of_item: np.ndarray,
        scale: float,
    ):
        super().__init__(similarity.n, solution, similarity.like)
        self._similarity, self._index, self._weights = similarity, index, weights
        self._scale = scale  # what all eigenvalues were divided by, where negative ones were dropped
        self._vectors = vectors[:, : len(self.values)]
        # Where an item weighs next to nothing, 1/√p would make coordinates of what rounding left in the vectors.
        is_light = weights < LIGHT / len(weights)
        self._row_of_item = (
            np.where(is_light[row_of_item], -1, row_of_item) if is_light.any() else row_of_item
        )

    @property
    def bytes(self) -> int:
        # Those of negative eigenvalues too: they are of one array with the others.
        return 8 * int(self._vectors.shape[0]) ** 2

    def coordinates(self, index: Index, count: int | None = None) -> Any:
        items = positions_of(index, self.n)
        rows = self._row_of_item[items]
        safe_rows = np.maximum(rows, 0)
        roots = np.sqrt(
            self.values[None, :count] / np.where(rows < 0, 1.0, self._weights[safe_rows])[:, None]
        )
        coordinates = select(self._vectors[:, :count], safe_rows) * move(roots, self._vectors)
        return (
            coordinates
            if rows.min(initial=0) >= 0
            else self._with_absent_items(coordinates, items, rows, count)
        )

    def _with_absent_items(
        self, coordinates: Any, items: np.ndarray, rows: np.ndarray, count: int | None
    ) -> Any:
        """The coordinates, filled in for items without weight, which are not in the matrix, or with next to none."""
        host, absent = np.array(to_host(coordinates)), np.flatnonzero(rows < 0)
        # Of λ = 0 up to rounding, nothing is known: the direction stays out.
        values = self.values[:count]
        divisor = np.where(values > values[0] * 1e-14, np.sqrt(values) * self._scale, np.inf)
        vectors = to_host(self._vectors[:, :count]) * np.sqrt(self._weights)[:, None]
        for block in blocks(len(absent), len(self._index)):
            similarities = to_host(self._similarity.block(items[absent[block]], self._index))
            host[absent[block]] = (similarities @ vectors) / divisor
        return as_like(host, self.like)


def eigenpairs(matrix: Any) -> tuple[np.ndarray, Any]:
    """Eigenvalues on the host, from large to small, and the eigenvectors as columns; the matrix may be overwritten."""
    if not isinstance(matrix, np.ndarray):
        values, vectors = namespace(matrix).linalg.eigh(0.5 * (matrix + transposed(matrix)))
        return to_host(values)[::-1], namespace(vectors).flip(vectors, axis=1)
    from scipy.linalg import eigh

    values, vectors = eigh(matrix.T, overwrite_a=True, check_finite=False, driver="evd")
    return values[::-1], np.ascontiguousarray(vectors[:, ::-1])


# --------------------------------------------------------------------------------------------------- leading eigenpairs


@dataclass(frozen=True)
class Leading:
    """Leading eigenpairs.

    Attributes
    ----------
    values : ndarray, shape (m,)
        Eigenvalues from large to small: one more than asked for where there is one, to see how far apart they are.
    coordinates : ndarray, shape (n, m)
        y_ia, on the host: Σ_i p_i y_ia² = λ_a.
    residuals : ndarray, shape (m,)
        Bounds on ‖ρu_a − λ_a u_a‖, rounding among them; of each, an eigenvalue lies within this.
    settled : bool
        Whether the residuals are as small as they were meant to be.
    method : str
        "gram" (all eigenvectors of the d×d matrix), "eigh" (of the n×n matrix) or "krylov".
    """

    values: np.ndarray
    coordinates: np.ndarray
    residuals: np.ndarray
    settled: bool
    method: str


def leading(similarity: Similarity, shares: np.ndarray, count: int, rng: int) -> Leading:
    """The `count` leading eigenpairs of ρ and the one after, or as many as are not 0."""
    if isinstance(similarity, Matrix):
        similarity = similarity.checked()
    index: np.ndarray | None = None if shares.all() else np.flatnonzero(shares)
    weights: np.ndarray | None = shares if index is None else shares[index]
    narrow = isinstance(similarity, Features) and similarity.width < similarity.n
    if not isinstance(similarity, Matrix) and not narrow:
        index, weights = collapse(similarity, index, weights)
    if takes_all(similarity, similarity.n if index is None else len(index)):
        uniform = bool((shares == shares[0]).all())
        return decompose(similarity, None if uniform else shares).leading(count)
    assert weights is not None
    return _leading_by_products(similarity, shares, index, weights, count, rng)


def takes_all(similarity: Similarity, distinct: int) -> bool:
    """Whether some eigenvectors are found by computing all; `distinct` is how many different items there are."""
    narrow = isinstance(similarity, Features) and similarity.width < similarity.n
    if isinstance(similarity, Features) and similarity.width <= min(similarity.n, SMALL):
        return True
    return (distinct <= SMALL and not narrow) or similarity.policy.project


def _leading_by_products(
    similarity: Similarity,
    shares: np.ndarray,
    index: np.ndarray | None,
    weights: np.ndarray,
    count: int,
    rng: int,
) -> Leading:
    present = similarity if index is None else similarity.take(index)
    operator = operator_of(present, weights, _storage(present), names=index)
    with side_by_side(operator):
        values, vectors, residuals, settled = _leading_ritz_pairs(operator, count, similarity, rng)
    if isinstance(similarity, Features) and operator.size == similarity.width < present.n:
        coordinates = _project_features(similarity, vectors, len(values))
    else:
        coordinates_of_present = to_host(vectors) * np.sqrt(values / weights[:, None])
        coordinates = _coordinates_of_all(similarity, coordinates_of_present, values, shares, index, weights)
    # What rounding makes of vectors is made good here: the weighted squares of a mode add up to its eigenvalue.
    coordinates *= np.sqrt(values / (shares @ coordinates**2))
    return Leading(values, coordinates, residuals + operator.error, settled, "krylov")


def _storage(similarity: Similarity) -> str:
    """How to store ρ: features and matrices as they are; else a matrix while it fits, or blocks of it."""
    if isinstance(similarity, Features):
        return "features"
    if isinstance(similarity, Matrix):
        return "given"
    double_bytes = 8 * similarity.n**2
    if not similarity.trusted or similarity.like is not None:  # a user's function is asked for all of it
        return (
            "float64"
            if double_bytes <= (STORED_SINGLE if similarity.like is None else DEVICE_MEMORY)
            else "blocks"
        )
    if double_bytes <= STORED_DOUBLE:
        return "float64"
    return "float32" if double_bytes <= 2 * STORED_SINGLE else "blocks"


def _leading_ritz_pairs(
    operator: Operator, count: int, similarity: Similarity, rng: int
) -> tuple[np.ndarray, Any, np.ndarray, bool]:
    """Ritz values from large to small, unit vectors, residuals, and whether all residuals are small."""
    is_recomputed = isinstance(operator, Blocks)
    wanted = min(count + 1, operator.size)
    width = min(operator.size, wanted + (EXTRA_COLUMNS_RECOMPUTED if is_recomputed else EXTRA_COLUMNS))
    max_passes, tolerance = (
        (MOST_PASSES_RECOMPUTED, SETTLED_RECOMPUTED) if is_recomputed else (MOST_PASSES, SETTLED)
    )
    max_space_passes = max(
        4, BASIS_BYTES // (8 * operator.size * width)
    )  # passes before the space starts again
    start = gaussian(generator(rng, "modes"), operator.size, width, operator.like)
    space, passes = Krylov(operator, start, 0), 0
    while True:
        space.extend()
        passes += 1
        values, coefficients, residuals = space.ritz()
        _refuse_negative(float(values[-1]), operator, similarity)
        is_positive = values > max(operator.error, 1e-13 * values[0])
        kept_count = max(1, min(wanted, int(np.count_nonzero(is_positive))))
        settled = bool((residuals[:kept_count] <= tolerance * values[0]).all()) and (
            len(values) > kept_count or space.exhausted
        )
        if settled or space.exhausted or passes >= max_passes:
            vectors = space.vectors(coefficients[:, :kept_count])
            return (
                values[:kept_count].copy(),
                vectors,
                residuals[:kept_count].copy(),
                settled or space.exhausted,
            )
        if space.passes >= max_space_passes:
            space = Krylov(operator, space.vectors(coefficients[:, :width]), 0)


def _refuse_negative(lowest: float, operator: Operator, similarity: Similarity) -> None:
    """Refuse a user's function or matrix that shows a negative eigenvalue beyond rounding."""
    tolerance = max(operator.error, 1e-12)
    if not similarity.trusted:
        tolerance += float(tolerance_of(similarity.precision, 1.0))
    if lowest < -tolerance:
        raise IndefiniteError(
            "the similarity matrix is not positive semidefinite: with trace 1, it has an eigenvalue of "
            f"{lowest:.4g} or below (expected ≥ 0). Use a positive semidefinite kernel, or {mending('project')} to "
            "drop negative eigenvalues.",
            option="project",
        )


def _kept_count(values: np.ndarray, threshold: float, count: int) -> int:
    """How many eigenvalues to return: one more than asked for, none that rounding may have made, at least one."""
    return max(1, min(count + 1, int(np.count_nonzero(values > threshold))))


def _project_features(features: Features, vectors: Any, count: int) -> np.ndarray:
    """φ_i · v_a of all items, for vectors on the device of the features."""
    coordinates = np.empty((features.n, count))
    block_bytes = 4 * BLOCK_BYTES if features.like is None else DEVICE_BYTES
    for block in blocks(features.n, 64 if features.sparse else features.width, most=block_bytes):
        coordinates[block] = to_host(features.rows(block) @ vectors)
    return coordinates


def _coordinates_of_all(
    similarity: Similarity,
    rows: np.ndarray,
    values: np.ndarray,
    shares: np.ndarray,
    index: np.ndarray | None,
    weights: np.ndarray,
) -> np.ndarray:
    """Coordinates of all items from `rows`, those of the distinct ones that have weight."""
    if index is None:
        return rows
    coordinates = np.empty((similarity.n, len(values)))
    coordinates[index] = rows
    other_items = np.setdiff1d(np.arange(similarity.n), index)
    keys = similarity.keys(slice(0, similarity.n))
    row_of_key = {} if keys is None else {keys[i]: row for row, i in enumerate(index.tolist())}
    copied_rows = np.array(
        [-1 if keys is None else row_of_key.get(keys[i], -1) for i in other_items.tolist()], dtype=int
    )
    coordinates[other_items[copied_rows >= 0]] = rows[copied_rows[copied_rows >= 0]]
    absent_items = other_items[copied_rows < 0]  # without weight, and unlike all that have some
    for block in blocks(len(absent_items), len(index)):
        similarities = to_host(similarity.block(absent_items[block], positions_of(index, similarity.n)))
        coordinates[absent_items[block]] = (similarities * weights) @ rows / values
    return coordinates
