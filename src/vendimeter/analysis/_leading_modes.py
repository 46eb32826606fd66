"""The leading eigenvectors of ρ, and the coordinates of all items along them.

Where the smaller side of the problem (rows or features) is small, all eigenvectors are taken. Beyond, a block Krylov
space grows until the leading Ritz vectors have settled; its residuals ‖ρu − θu‖ say how far each is from an
eigenvector. A block finds eigenvalues that occur several times, up to its width, where a single vector finds one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import DEVICE_BYTES, to_host
from vendimeter.errors import IndefiniteError
from vendimeter.options import generator
from vendimeter.similarity import Features, Matrix, Similarity
from vendimeter.similarity.base import positions_of
from vendimeter.similarity.checks import mending, tolerance_of
from vendimeter.solvers.eigenvectors import decompose
from vendimeter.solvers.krylov import Krylov, gaussian
from vendimeter.solvers.operators import Blocks, Operator, operator_of, side_by_side
from vendimeter.solvers.plan import DEVICE_MEMORY, EXACT_SIDE
from vendimeter.solvers.shapes import collapse

__all__ = ["Leading", "leading"]

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
