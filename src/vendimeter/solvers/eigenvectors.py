"""All eigenvalues of ρ with their eigenvectors, and the items in that basis.

With features φ, ρ is the operator Σ p φφᵀ = Σ λ v vᵀ. What an item has to do with the spectrum is in its coordinates
y_a = v_aᵀφ alone: Σ_a y_a² = 1, and Σ_i p_i y_ia² = λ_a. The operator is found from its smaller side: the d×d matrix of
features, or the n×n matrix diag(√p) K diag(√p) = U diag(λ) Uᵀ, whose items have the coordinates √λ_a u_ia/√p_i; those
that have no weight, ⟨k(·, i) √p, u_a⟩/√λ_a.
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
from vendimeter.solvers.exact import Solution, clean, weighted
from vendimeter.solvers.gram import gram
from vendimeter.solvers.krylov import Krylov, gaussian
from vendimeter.solvers.operators import Blocks, Operator, operator_of, side_by_side
from vendimeter.solvers.plan import DEVICE_MEMORY, EXACT_SIDE, collapse, same_items

__all__ = ["Decomposition", "Leading", "decompose", "leading"]

SPARSE_WIDTH = 4096  # columns of sparse features up to which their d×d matrix is dense
LIGHT = 1e-8  # of the mean weight: lighter items have their coordinates from their similarities


class Decomposition(ABC):
    """ρ by its eigenvalues and eigenvectors.

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
        every = spectrum.eigenvalues
        self.values = every[: int(np.count_nonzero(every > 0))]
        self.rank = max(1, int(np.count_nonzero(every > spectrum.rank_threshold)))  # type: ignore[attr-defined]

    @abstractmethod
    def coordinates(self, index: Index, count: int | None = None) -> Any:
        """Y of shape (items, r), for the items at `index`: float64, where `like` is; the first `count` columns."""

    def parts(self, width: int = 0) -> list[slice]:
        """Blocks of items whose coordinates, with `width` more numbers for each, are worked on at a time."""
        most = 4 * BLOCK_BYTES if self.like is None else DEVICE_BYTES
        return blocks(self.n, len(self.values) + self._held + width, most=most)

    @property
    def _held(self) -> int:
        """Numbers an item that are held while its coordinates are made."""
        return 0


class _Columns(Decomposition):
    """From the d×d matrix of features."""

    def __init__(self, features: Features, solution: Solution, vectors: Any):
        super().__init__(features.n, solution, features.like)
        self._features = features
        self._vectors = vectors[:, : len(self.values)]

    @property
    def _held(self) -> int:
        return 0 if self._features.sparse else self._features.width

    def coordinates(self, index: Index, count: int | None = None) -> Any:
        return self._features.rows(index) @ self._vectors[:, :count]


class _Rows(Decomposition):
    """From the n×n matrix of the items that have weight and are distinct."""

    def __init__(
        self,
        similarity: Similarity,
        solution: Solution,
        vectors: Any,
        index: np.ndarray,
        weights: np.ndarray,
        place: np.ndarray,
        scale: float,
    ):
        super().__init__(similarity.n, solution, similarity.like)
        self._similarity, self._index, self._weights = similarity, index, weights
        self._scale = scale  # what all eigenvalues were divided by, where negative ones were dropped
        self._vectors = vectors[:, : len(self.values)]
        # Where an item weighs next to nothing, 1/√p would make coordinates of what rounding left in the vectors.
        light = weights < LIGHT / len(weights)
        self._place = np.where(light[place], -1, place) if light.any() else place

    def coordinates(self, index: Index, count: int | None = None) -> Any:
        items = positions_of(index, self.n)
        places = self._place[items]
        safe = np.maximum(places, 0)
        roots = np.sqrt(self.values[None, :count] / np.where(places < 0, 1.0, self._weights[safe])[:, None])
        found = select(self._vectors[:, :count], safe) * move(roots, self._vectors)
        return found if places.min(initial=0) >= 0 else self._with_absent(found, items, places, count)

    def _with_absent(self, found: Any, items: np.ndarray, places: np.ndarray, count: int | None) -> Any:
        """Coordinates where some of the items have no weight, which are not in the matrix, or next to none."""
        host, absent = np.array(to_host(found)), np.flatnonzero(places < 0)
        # Of λ = 0 up to rounding, nothing is known: the direction stays out.
        values = self.values[:count]
        divisor = np.where(values > values[0] * 1e-14, np.sqrt(values) * self._scale, np.inf)
        vectors = to_host(self._vectors[:, :count]) * np.sqrt(self._weights)[:, None]
        for part in blocks(len(absent), len(self._index)):
            similar = to_host(self._similarity.block(items[absent[part]], self._index))
            host[absent[part]] = (similar @ vectors) / divisor
        return as_like(host, self.like)


def decompose(similarity: Similarity, weights: np.ndarray | None, *, most: int = EXACT_SIDE) -> Decomposition:
    """All eigenvalues and eigenvectors of ρ.

    Parameters
    ----------
    similarity : Similarity
        Of n items.
    weights : ndarray of shape (n,), optional
        Their probabilities.
    most : int
        The largest side of a dense matrix that is decomposed; `TooLargeError` beyond.
    """
    if isinstance(similarity, Features):
        wide = SPARSE_WIDTH if similarity.sparse else most
        if similarity.width <= min(similarity.n, wide):
            return _of_columns(similarity, weights)
    if isinstance(similarity, Matrix):
        similarity = similarity.checked()
    return _of_rows(similarity, weights, most)


def _of_columns(features: Features, weights: np.ndarray | None) -> Decomposition:
    present = features
    if weights is not None and not weights.all():
        index = np.flatnonzero(weights)
        present, weights = features.take(index), weights[index]
    found = gram(present, weights, precision="float64")
    values, vectors = eigenpairs(found.matrix)
    error = found.error + float(dense.eigen_error(features.width, abs(float(values[0]))))
    solution = clean(values, error, "gram", {"precision": "float64"})
    return _Columns(features, solution, vectors)


def _of_rows(similarity: Similarity, weights: np.ndarray | None, most: int) -> Decomposition:
    present = np.arange(similarity.n) if weights is None else np.flatnonzero(weights)
    first, group = same_items(similarity, present)
    index = present[first]
    if len(index) > most:
        raise TooLargeError(
            f"this needs the eigenvectors of the {len(index)}×{len(index)} similarity matrix, and the limit is "
            f"{most}×{most}; expected fewer distinct items, or a kernel with at most {most} features. Take a random "
            "sample, embed the items (kernel=vendimeter.kernels.Embed), or let vendimeter.kernels.RandomFeatures stand "
            "in for the kernel."
        )
    share = np.full(len(present), 1 / len(present)) if weights is None else weights[present]
    joint = np.bincount(group, weights=share, minlength=len(index))
    given = weighted(similarity, index, joint)
    tolerance = 0.0 if given.precision is None else tolerance_of(given.precision, dense.norm_of(given.matrix))
    values, vectors = eigenpairs(given.matrix)
    error = given.error + float(dense.eigen_error(len(index), max(abs(values[0]), abs(values[-1]))))
    solution = clean(
        values,
        error,
        "eigh",
        {"distinct": len(index)} if len(index) < len(present) else {},
        tolerance=float(tolerance),
        uniform=weights is None,
        project=given.project,
    )
    place = np.full(similarity.n, -1)
    place[present] = group
    scale = float(np.maximum(values, 0.0).sum()) if given.project else 1.0
    return _Rows(similarity, solution, vectors, index, joint, place, scale)


def eigenpairs(matrix: Any) -> tuple[np.ndarray, Any]:
    """Eigenvalues on the host, from large to small, and the eigenvectors as columns; the matrix may be overwritten."""
    if not isinstance(matrix, np.ndarray):
        values, vectors = namespace(matrix).linalg.eigh(0.5 * (matrix + transposed(matrix)))
        return to_host(values)[::-1], namespace(vectors).flip(vectors, axis=1)
    from scipy.linalg import eigh

    values, vectors = eigh(matrix.T, overwrite_a=True, check_finite=False, driver="evd")
    return values[::-1], np.ascontiguousarray(vectors[:, ::-1])


# ------------------------------------------------------------------------------------------------------- leading modes

# The leading eigenvectors of ρ, and the coordinates of all items along them.
#
# Where the smaller side of the problem (rows or features) is small, all eigenvectors are taken. Beyond, a block Krylov
# space grows until the leading Ritz vectors have settled; its residuals ‖ρu − θu‖ say how far each is from an
# eigenvector. A block finds eigenvalues that occur several times, up to its width, where a single vector finds one.

SMALL = 1024  # side up to which all eigenvectors are taken: about as quick as some of them
# A residual, beside the largest eigenvalue, at which a Ritz vector has settled, and vectors in a block beside those
# wanted: where ρ is stored or multiplied through features, and where a pass computes all similarities again.
SETTLED, SETTLED_COARSELY = 1e-8, 1e-6
BESIDE, BESIDE_WIDE = 16, 112
STORED_DOUBLE, STORED_SINGLE = 1 << 30, 4 << 30  # bytes of a matrix that is kept in float64, in float32
BASIS_BYTES = 1 << 30  # vectors that are kept before the space starts again from the best of them
MOST_PASSES, MOST_PASSES_COARSELY = 120, 24  # products with ρ, each with a block of vectors


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
    if isinstance(similarity, Features) and similarity.width <= min(similarity.n, SMALL):
        return _from_all(similarity, shares, count)
    narrow = isinstance(similarity, Features) and similarity.width < similarity.n
    index: np.ndarray | None = None if shares.all() else np.flatnonzero(shares)
    weights: np.ndarray | None = shares if index is None else shares[index]
    if not isinstance(similarity, Matrix) and not narrow:
        index, weights = collapse(similarity, index, weights)
    size = similarity.n if index is None else len(index)
    if (size <= SMALL and not narrow) or similarity.policy.project:
        return _from_all(similarity, shares, count)
    assert weights is not None
    return _from_products(similarity, shares, index, weights, count, rng)


# ------------------------------------------------------------------------------------------------------ all of them


def _from_all(similarity: Similarity, shares: np.ndarray, count: int) -> Leading:
    uniform = bool((shares == shares[0]).all())
    found = decompose(similarity, None if uniform else shares, most=EXACT_SIDE)
    spectrum: Any = found.solution.spectrum
    kept = _kept(spectrum.eigenvalues, spectrum.rank_threshold, count)
    coordinates = np.empty((similarity.n, kept))
    for part in found.parts():
        coordinates[part] = to_host(found.coordinates(part, kept))
    errors = np.full(kept, spectrum.error)
    return Leading(spectrum.eigenvalues[:kept], coordinates, errors, True, found.solution.method)


def _kept(values: np.ndarray, threshold: float, count: int) -> int:
    """How many eigenvalues are wanted: one more than asked for, none that rounding may have made, at least one."""
    return max(1, min(count + 1, int(np.count_nonzero(values > threshold))))


def _projected(features: Features, vectors: Any, count: int) -> np.ndarray:
    """φ_i · v_a of all items, for vectors that lie where the features do."""
    found = np.empty((features.n, count))
    most = 4 * BLOCK_BYTES if features.like is None else DEVICE_BYTES
    for part in blocks(features.n, 64 if features.sparse else features.width, most=most):
        found[part] = to_host(features.rows(part) @ vectors)
    return found


# ------------------------------------------------------------------------------------------------ by products with ρ


def _from_products(
    similarity: Similarity,
    shares: np.ndarray,
    index: np.ndarray | None,
    weights: np.ndarray,
    count: int,
    rng: int,
) -> Leading:
    part = similarity if index is None else similarity.take(index)
    operator = operator_of(part, weights, _storage(part), names=index)
    with side_by_side(operator):
        values, vectors, residuals, settled = _krylov(operator, count, similarity, rng)
    if isinstance(similarity, Features) and operator.size == similarity.width < part.n:
        coordinates = _projected(similarity, vectors, len(values))
    else:
        held_rows = to_host(vectors) * np.sqrt(values / weights[:, None])
        coordinates = _spread(similarity, held_rows, values, shares, index, weights)
    # What rounding makes of vectors is made good here: the weighted squares of a mode add up to its eigenvalue.
    coordinates *= np.sqrt(values / (shares @ coordinates**2))
    return Leading(values, coordinates, residuals + operator.error, settled, "krylov")


def _storage(similarity: Similarity) -> str:
    """Features and matrices as they are; else a matrix that is stored while it fits, or blocks of it."""
    if isinstance(similarity, Features):
        return "features"
    if isinstance(similarity, Matrix):
        return "given"
    double = 8 * similarity.n**2
    if not similarity.trusted or similarity.like is not None:  # a user's function is asked for all of it
        return (
            "float64" if double <= (STORED_SINGLE if similarity.like is None else DEVICE_MEMORY) else "blocks"
        )
    if double <= STORED_DOUBLE:
        return "float64"
    return "float32" if double <= 2 * STORED_SINGLE else "blocks"


def _krylov(
    operator: Operator, count: int, similarity: Similarity, rng: int
) -> tuple[np.ndarray, Any, np.ndarray, bool]:
    """Ritz values from large to small, unit vectors, residuals, and whether all residuals are small."""
    computed_again = isinstance(operator, Blocks)
    wanted = min(count + 1, operator.size)
    width = min(operator.size, wanted + (BESIDE_WIDE if computed_again else BESIDE))
    most, enough = (MOST_PASSES_COARSELY, SETTLED_COARSELY) if computed_again else (MOST_PASSES, SETTLED)
    longest = max(4, BASIS_BYTES // (8 * operator.size * width))  # passes before the space starts again
    start = gaussian(generator(rng, "modes"), operator.size, width, operator.like)
    space, passes = Krylov(operator, start, 0), 0
    while True:
        space.extend()
        passes += 1
        values, coefficients, residuals = space.ritz()
        _refuse_negative(float(values[-1]), operator, similarity)
        good = values > max(operator.error, 1e-13 * values[0])
        kept = max(1, min(wanted, int(np.count_nonzero(good))))
        settled = bool((residuals[:kept] <= enough * values[0]).all()) and (
            len(values) > kept or space.exhausted
        )
        if settled or space.exhausted or passes >= most:
            found = space.vectors(coefficients[:, :kept])
            return values[:kept].copy(), found, residuals[:kept].copy(), settled or space.exhausted
        if space.passes >= longest:
            space = Krylov(operator, space.vectors(coefficients[:, :width]), 0)


def _refuse_negative(lowest: float, operator: Operator, similarity: Similarity) -> None:
    """A user's function or matrix that shows a negative eigenvalue is no similarity matrix."""
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


def _spread(
    similarity: Similarity,
    rows: np.ndarray,
    values: np.ndarray,
    shares: np.ndarray,
    index: np.ndarray | None,
    weights: np.ndarray,
) -> np.ndarray:
    """Coordinates of all items from those of the distinct ones that have weight."""
    if index is None:
        return rows
    found = np.empty((similarity.n, len(values)))
    found[index] = rows
    others = np.setdiff1d(np.arange(similarity.n), index)
    keys = similarity.keys(slice(0, similarity.n))
    place = {} if keys is None else {keys[i]: at for at, i in enumerate(index.tolist())}
    copies = np.array([-1 if keys is None else place.get(keys[i], -1) for i in others.tolist()], dtype=int)
    found[others[copies >= 0]] = rows[copies[copies >= 0]]
    absent = others[copies < 0]  # without weight, and unlike all that have some
    for part in blocks(len(absent), len(index)):
        similar = to_host(similarity.block(absent[part], positions_of(index, similarity.n)))
        found[absent[part]] = (similar * weights) @ rows / values
    return found
