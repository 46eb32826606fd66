"""Eigenvalues and moments of a dense symmetric matrix, with the bound of what rounding does to them.

LAPACK's eigenvalues are those of a matrix within a modest multiple of n·u·λ_max of the given one (u the unit
roundoff); the multiple `EIGEN` was set from measurements against 40-digit arithmetic, where the error stayed ten
times smaller and less. The certificates of `largest` and `semidefinite` rest on the backward error bound of the
Cholesky factorisation (Higham, Accuracy and Stability of Numerical Algorithms, theorem 10.3).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vendimeter.data.devices import identity, is_gpu, is_torch, namespace, raising, to_host
from vendimeter.options import generator
from vendimeter.solvers.tridiagonal import batched_eigenvalues
from vendimeter.spectrum import UNIT

__all__ = ["eigen_error", "eigenvalues", "largest", "norm_of", "power_norm", "semidefinite"]

EIGEN = 10.0
SHORTCUT_ABOVE = 512  # below this an eigensolve is so quick that no shortcut is worth it
STEP_ABOVE, STEP_COUNT = 32, 256  # stacks on a GPU of at least so many larger matrices are solved in step
SHORTCUT_POWER = 6  # integer orders up to this take at most two matrix products


def eigen_error(size: int | np.ndarray, largest: float | np.ndarray) -> float | np.ndarray:
    """Bound on the Euclidean distance between computed and true eigenvalues of a size×size matrix."""
    return EIGEN * (size + 4) * UNIT * largest


def eigenvalues(matrix: Any) -> np.ndarray:
    """Eigenvalues on the host, from large to small, of (a stack of) symmetric matrices; a large one is overwritten."""
    if not isinstance(matrix, np.ndarray):
        return _on_device(matrix)
    if matrix.ndim == 2 and len(matrix) >= SHORTCUT_ABOVE:
        from scipy.linalg import eigvalsh

        # The transpose of a C-ordered symmetric matrix is itself in the order LAPACK works in: no copy.
        return eigvalsh(matrix.T, overwrite_a=True, check_finite=False, driver="evd")[::-1]
    return np.linalg.eigvalsh(matrix)[..., ::-1]


def _on_device(matrix: Any) -> np.ndarray:
    """By the array's own library, or in step where that would take many matrices one after another."""
    if matrix.ndim == 3 and in_step(matrix):
        return to_host(batched_eigenvalues(matrix))
    return to_host(namespace(matrix).linalg.eigvalsh(matrix))[..., ::-1]


def in_step(stack: Any) -> bool:
    """Whether a GPU is faster at a stack of matrices with all of them in step.

    CuPy and JAX do that themselves, PyTorch up to 32×32. Beyond, it takes 0.3 ms and more for each, and the first
    matrix in step costs as much as some hundred of them.
    """
    count, size, _ = stack.shape
    return size > STEP_ABOVE and count >= STEP_COUNT and is_torch(stack) and is_gpu(stack)


def semidefinite(matrix: Any, tolerance: float) -> bool:
    """Whether no eigenvalue of a matrix of trace 1 lies below −tolerance, certified by a Cholesky factorisation."""
    size = matrix.shape[0]
    slack = _cholesky_slack(size, 1.0 + size * tolerance)
    return slack < tolerance and _factors(matrix, 1.0, tolerance - slack)


def power_norm(matrix: Any, q: int) -> tuple[float, float]:
    """‖λ‖_q of a positive semidefinite matrix, q = 2 … 6, from the trace of a power, and its rounding."""
    size = matrix.shape[0]
    frobenius = norm_of(matrix)
    if q == 2:
        return frobenius, (size + 16) * UNIT * frobenius
    square = matrix @ matrix
    if q == 3:
        left, right = square, matrix
    elif q == 4:
        left, right = square, square
    else:
        left, right = square @ matrix, square if q == 5 else None
        right = left if right is None else right
    trace = _dot(left, right)
    error = 4 * q * (size + 16) * UNIT * frobenius**q
    norm = max(trace, 0.0) ** (1 / q)
    return norm, error / (q * max(trace - error, np.finfo(float).tiny) ** ((q - 1) / q))


def norm_of(matrix: Any) -> float:
    """The Frobenius norm."""
    return math.sqrt(_dot(matrix, matrix))


def largest(matrix: Any, rng: int = 0) -> tuple[float, float] | None:
    """The largest eigenvalue of a positive semidefinite matrix and a bound on its error, or None if not certified.

    Lanczos finds a Ritz value θ, which is never above λ_max; that nothing lies above θ + δ is certified by factorising
    (θ + δ)I − ρ. Not on a device, where the eigenvalues are as quick.
    """
    if not isinstance(matrix, np.ndarray):
        return None
    from scipy.sparse.linalg import ArpackError, eigsh

    start = generator(rng, "largest").standard_normal(len(matrix))
    try:
        _, vectors = eigsh(matrix, k=1, which="LA", v0=start, tol=1e-10)  # type: ignore[arg-type]
    except ArpackError:
        return None
    vector = vectors[:, 0] / np.linalg.norm(vectors[:, 0])
    image = matrix @ vector
    ritz = float(vector @ image)
    residual = float(np.linalg.norm(image - ritz * vector))
    size = len(matrix)
    slack = _cholesky_slack(size, size * ritz * 1.01)
    delta = max(2 * residual, 1e-12 * ritz) + slack
    if delta > 0.01 * ritz or not _factors(matrix, -1.0, ritz + delta - slack):
        return None
    return ritz, delta + (size + 16) * UNIT * ritz


def _cholesky_slack(size: int, trace: float) -> float:
    """A factorisation that succeeds is that of a matrix within this of the given one, whose trace is `trace`."""
    return (size + 2) * UNIT * trace * 1.01


def _factors(matrix: Any, sign: float, shift: float) -> bool:
    """Whether sign·matrix + shift·I has a Cholesky factorisation."""
    if not isinstance(matrix, np.ndarray):
        return _factors_on_device(matrix, sign, shift)
    from scipy.linalg import LinAlgError, cholesky

    shifted = sign * matrix
    shifted.flat[:: len(matrix) + 1] += shift
    try:
        cholesky(shifted.T, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def _factors_on_device(matrix: Any, sign: float, shift: float) -> bool:
    xp = namespace(matrix)
    shifted = sign * matrix + shift * identity(matrix.shape[0], matrix)
    try:
        with raising(matrix):
            return bool(
                xp.all(xp.isfinite(xp.linalg.cholesky(shifted)))
            )  # libraries differ in how they say no
    except (RuntimeError, np.linalg.LinAlgError):  # PyTorch's error is a RuntimeError
        return False


def _dot(a: Any, b: Any) -> float:
    """tr(a b) of symmetric matrices, summed row by row."""
    if not isinstance(a, np.ndarray):
        return float(namespace(a).sum(namespace(a).sum(a * b, axis=1)))
    return float(np.einsum("ij,ij->i", a, b).sum())
