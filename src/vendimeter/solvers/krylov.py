"""Block Krylov spaces: Ritz pairs near the leading eigenvectors of ρ, and an estimate of its spectral density.

From a block of start vectors the space spanned by them and their images under ρ, ρ², … grows by a block a pass, with
full reorthogonalisation. Rayleigh and Ritz give values θ and vectors u in it; the residuals ‖ρu − θu‖ come with the
recurrence. Each Gaussian start vector z carries a quadrature rule besides, zᵀg(ρ)z ≈ Σ (its components)² g(θ), which
says how the eigenvalues lie before a single probe is spent.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vendimeter.data.devices import concat, move, namespace, to_host, transposed
from vendimeter.solvers.operators import Operator
from vendimeter.spectrum.quadrature import Deflated, pinching

__all__ = ["Krylov", "gaussian", "orthonormal"]

NEGLIGIBLE = 1e-11  # directions shorter than this beside the largest are rounding


def gaussian(rng: np.random.Generator, size: int, columns: int, like: Any) -> Any:
    """Independent normal deviates, drawn on the host so that they are the same on every device."""
    return move(np.ascontiguousarray(rng.standard_normal((columns, size)).T), like)


def _inner(left: Any, right: Any) -> np.ndarray:
    """LᵀR on the host."""
    return to_host(transposed(left) @ right)


def _times(block: Any, small: np.ndarray) -> Any:
    """A block of vectors times a small matrix from the host."""
    return block @ move(np.ascontiguousarray(small), block)


def orthonormal(block: Any, floor: float = 0.0) -> tuple[Any, np.ndarray]:
    """Factor a block into QB, the columns of Q orthonormal; directions no longer than `floor` are left out."""
    lengths, vectors = _directions(block)
    if lengths[0] <= floor or lengths[0] == 0:
        return block[:, :0], np.zeros((0, block.shape[1]))
    if lengths[-1] > max(1e-6 * lengths[0], floor):
        q = _times(block, vectors / lengths)
    else:  # inner products cannot tell short directions from none: take them from a proper factorisation
        q, r = namespace(block).linalg.qr(block)
        left_vectors, singular_values, _ = np.linalg.svd(to_host(r))
        q = _times(q, left_vectors[:, singular_values > max(NEGLIGIBLE * singular_values[0], floor)])
    lengths, vectors = _directions(q)  # once more: what the first round left is a rounding error
    q = _times(q, (vectors / lengths) @ vectors.T)
    return q, _inner(q, block)


def _directions(block: Any) -> tuple[np.ndarray, np.ndarray]:
    """Singular values of a block from large to small and its right singular vectors, from inner products."""
    values, vectors = np.linalg.eigh(_inner(block, block))
    return np.sqrt(np.maximum(values[::-1], 0.0)), vectors[:, ::-1]


class Basis:
    """Orthonormal vectors as the columns of one growing array: large products instead of many small ones."""

    def __init__(self, first: Any):
        self.count = 0
        self._like = None if isinstance(first, np.ndarray) else first
        self._array: Any = np.empty((first.shape[0], 0)) if self._like is None else first[:, :0]
        self.add(first)

    @property
    def vectors(self) -> Any:
        """All of them, as columns."""
        return self._array[:, : self.count]

    def add(self, block: Any) -> None:
        """Append the columns of a block."""
        width = int(block.shape[1])
        if self._like is not None:
            self._array = concat([self._array, block], axis=1) if self.count else block
        elif width:
            if self.count + width > self._array.shape[1]:
                array = np.empty((len(block), max(3 * self.count // 2, 6 * width)), order="F")
                array[:, : self.count] = self.vectors
                self._array = array
            self._array[:, self.count : self.count + width] = block
        self.count += width

    def last(self, width: int) -> Any:
        """The last `width` of them."""
        return self._array[:, self.count - width : self.count]


class Krylov:
    """A block Krylov space of an operator.

    Parameters
    ----------
    operator : Operator
        ρ.
    start : array, shape (n, w)
        Start vectors; those in the last `random` columns are Gaussian.
    random : int
        How many of the columns are Gaussian.

    Attributes
    ----------
    width : int
        Columns of the block that comes next: 0 when the space is invariant.
    passes : int
        How often it was extended.
    random : int
        How many start vectors are Gaussian.
    """

    def __init__(self, operator: Operator, start: Any, random: int):
        self._operator = operator
        first, factors = orthonormal(start)
        self._basis = Basis(first)
        # The Gaussian vectors, in terms of the first block.
        self._random = factors[:, factors.shape[1] - random :]
        self._matrix = np.zeros((0, 0))
        self._next = np.zeros((0, 0))
        self._ritz: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._scale = 0.0
        self.width, self.passes, self.random = int(first.shape[1]), 0, random

    @property
    def dimension(self) -> int:
        """Of the space in which Ritz values are taken."""
        return len(self._matrix)

    @property
    def exhausted(self) -> bool:
        """Whether the space is invariant: nothing is left to multiply."""
        return self.width == 0

    def extend(self) -> None:
        """Extend the space by one pass: multiply the last block, and orthonormalise what is new in the image."""
        image = self._operator.apply(self._basis.last(self.width))
        vectors = self._basis.vectors
        projections = np.zeros((self._basis.count, self.width))
        for _ in range(2):  # twice is enough (Kahan, Parlett)
            overlap = transposed(vectors) @ image
            image = image - vectors @ overlap
            projections += to_host(overlap)
        size = len(self._matrix)
        matrix = np.zeros((self._basis.count, self._basis.count))
        matrix[:size, :size] = self._matrix
        matrix[:, size:] = projections
        matrix[size:, :size] = projections[:size].T
        matrix[size:, size:] = (projections[size:] + projections[size:].T) / 2
        self._matrix, self._ritz = matrix, None
        self._scale = max(self._scale, float(np.linalg.norm(projections)))
        floor = NEGLIGIBLE * self._scale
        next_block, self._next = orthonormal(image, floor)
        if next_block.shape[1] and float(np.linalg.norm(self._next, axis=1).min()) < 1e-6 * self._scale:
            # A short direction is mostly rounding error along the others: orthogonalise once more.
            next_block, _ = orthonormal(next_block - vectors @ (transposed(vectors) @ next_block), 0.5)
            self._next = _inner(next_block, image)
        self._basis.add(next_block)
        self.width, self.passes = int(next_block.shape[1]), self.passes + 1

    def ritz(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ritz values from large to small, coefficients of the vectors, and residuals."""
        if self._ritz is None:
            values, vectors = np.linalg.eigh(self._matrix)
            values, vectors = values[::-1], vectors[:, ::-1]
            last_rows = vectors[len(vectors) - self._next.shape[1] :]
            residual = (
                np.linalg.norm(self._next @ last_rows, axis=0) if len(self._next) else np.zeros(len(values))
            )
            # Directions that were left out as too short add that much at most.
            self._ritz = values, vectors, np.hypot(residual, 2 * NEGLIGIBLE * self._scale)
        return self._ritz

    def deflate(
        self, budget: dict[float, float], max_residual: float = np.inf
    ) -> tuple[Deflated, np.ndarray]:
        """Split off leading Ritz vectors, while that costs no more than `budget` for each order.

        `max_residual` bounds √(2Σβ²) relative to the largest Ritz value. Gives the split with the density of the rest
        as the start vectors estimate it, and the coefficients of the vectors (see `vectors`).
        """
        values, vectors, residual = self.ritz()
        is_positive = values > max(4 * np.finfo(float).eps * abs(values[0]), 1e-300)
        kept = int(np.argmin(is_positive)) if not is_positive.all() else len(values)
        for q, max_cost in budget.items():
            cost = np.cumsum(pinching(values[:kept], residual[:kept], q)) if kept else np.zeros(0)
            kept = int(np.searchsorted(cost, max_cost, side="right"))
        kept = int(
            np.searchsorted(
                np.cumsum(2 * residual[:kept] ** 2), (max_residual * values[0]) ** 2, side="right"
            )
        )
        kept = min(kept, self._operator.size - 1)
        weights = ((vectors[: len(self._random)].T @ self._random) ** 2).mean(axis=1)
        if self.exhausted:
            # What is left are copies of eigenvalues that were split off: a vector of the space stands for an eigenvalue
            # as often as the Gaussian vectors are longer along it than along one direction.
            weights[:kept] = np.maximum(weights[:kept] - 1 - 3 * math.sqrt(2 / self.random), 0.0)
        else:
            weights[:kept] = 0.0
        has_weight = weights > 0
        split = Deflated(
            self._operator.size,
            values[:kept],
            residual[:kept],
            self._operator.squares,
            np.maximum(values[has_weight], 0.0),
            weights[has_weight],
        )
        return split, vectors[:, :kept]

    def vectors(self, coefficients: np.ndarray) -> Any:
        """The Ritz vectors with these coefficients, as columns, where the operator lives."""
        return _times(self._basis.vectors[:, : len(coefficients)], coefficients)
