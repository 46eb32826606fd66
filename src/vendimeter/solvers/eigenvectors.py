"""All eigenvalues of ρ with their eigenvectors, and the items in that basis.

With features φ, ρ is the operator Σ p φφᵀ = Σ λ v vᵀ. What an item has to do with the spectrum is in its coordinates
y_a = v_aᵀφ alone: Σ_a y_a² = 1, and Σ_i p_i y_ia² = λ_a. The operator is found from its smaller side: the d×d matrix of
features, or the n×n matrix diag(√p) K diag(√p) = U diag(λ) Uᵀ, whose items have the coordinates √λ_a u_ia/√p_i; those
that have no weight, ⟨k(·, i) √p, u_a⟩/√λ_a.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import DEVICE_BYTES, as_like, move, namespace, select, to_host, transposed
from vendimeter.errors import TooLargeError
from vendimeter.similarity import Features, Index, Matrix, Similarity
from vendimeter.similarity.base import positions_of
from vendimeter.similarity.checks import tolerance_of
from vendimeter.solvers import dense
from vendimeter.solvers.exact import Solution, clean, weighted
from vendimeter.solvers.gram import gram
from vendimeter.solvers.plan import EXACT_SIDE
from vendimeter.solvers.shapes import same_items

__all__ = ["Decomposition", "decompose"]

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
