"""Metrics of a whole spectrum beside the Vendi Score: the effective rank and the logarithm of the determinant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, as_rows, blocks, is_sparse
from vendimeter.data.devices import (
    DEVICE_BYTES,
    concat,
    double,
    is_foreign,
    local,
    namespace,
    select,
    to_host,
    transposed,
)
from vendimeter.diversity import diversity_of
from vendimeter.errors import InputError, TooLargeError
from vendimeter.messages import brief
from vendimeter.metrics.features import wide_block
from vendimeter.metrics.samples import opened
from vendimeter.options import COSINE, SEED, as_number
from vendimeter.results.base import Figure
from vendimeter.solvers.plan import DENSE_LIMIT
from vendimeter.spectrum import UNIT, Eigenvalues, hill

__all__ = ["LogDet", "effective_rank", "log_det"]

# The smaller side of a matrix whose singular values are computed, at most: 2 GiB for its triangular factor.
LARGEST_SIDE = 16_384


# ------------------------------------------------------------------------------------------------------ effective rank


def effective_rank(samples: Any) -> float:
    """The effective rank of a matrix: exp(−Σ p log p), with p = σ/Σσ the singular values σ divided by their sum.

    It lies between 1, for a matrix of rank 1, and the rank, where all singular values are equal; higher is more
    spread out. It does not change when the matrix is multiplied by a number, transposed or rotated; but its rows are
    not normalised, and not centred.

    Parameters
    ----------
    samples : array, sparse array, list of lists, Collection or Diversity, shape (n, m)
        Any real matrix but zero; features, weights of a layer, a similarity matrix.

    Returns
    -------
    float

    Notes
    -----
    The Vendi Score of a similarity matrix K is the effective rank of K: the singular values of a positive semidefinite
    matrix are its eigenvalues. Of features X it is not that of X: K = XXᵀ has the squares σ², so that the Vendi Score
    is exp of the entropy of σ²/Σσ², which is never above that of X.

    Rows are read in blocks, each folded into a triangular factor by a QR decomposition, so that the memory is that of
    the smaller side squared; it may be up to 16,384. Singular values are right to about 10⁻¹⁶ of the largest one,
    because nothing is squared.

    References
    ----------
    Roy and Vetterli: The effective rank: a measure of effective dimensionality, EUSIPCO 2007, definition 1 (eq. 2–4).

    Examples
    --------
    >>> from vendimeter.metrics import effective_rank
    >>> effective_rank([[3, 0], [0, 3], [0, 0]])
    2.0
    >>> round(effective_rank([[2, 0], [0, 1]]), 4)
    1.8899
    """
    with opened(samples, "effective_rank", vectors=True) as samples:
        rows: Any = local(as_rows(samples, kernel="effective_rank"))
        if not is_sparse(rows) and not is_foreign(rows):
            rows = np.asarray(rows)
        n, m = (int(size) for size in rows.shape)
        if min(n, m) > LARGEST_SIDE:
            raise TooLargeError(
                f"the matrix of {n}×{m} has {min(n, m)} singular values, and the limit is {LARGEST_SIDE}; expected a "
                "smaller side. Take a random sample of the rows, or project the columns."
            )
        scale = _power_of_two_scale(rows)
        if m > n:
            rows = rows.T.tocsr() if is_sparse(rows) else transposed(rows)
        factor = None
        for block in _dense_blocks(rows):
            block = block * scale
            factor = _triangular_factor(block if factor is None else concat([factor, block]))
        values = to_host(namespace(factor).linalg.svdvals(factor))
        return float(hill(values, 1.0))


def _power_of_two_scale(rows: Any) -> float:
    """The power of 2 that brings the largest entry near 1, so that no norm over- or underflows; checks all entries."""
    largest = 0.0
    if is_sparse(rows):
        _check_sparse(rows)
        largest = float(np.abs(rows.data.astype(np.float64)).max(initial=0.0))
    else:
        max_bytes = DEVICE_BYTES if is_foreign(rows) else BLOCK_BYTES
        for span in blocks(*rows.shape, most=max_bytes):
            block = wide_block(rows, span)
            xp = namespace(block)
            largest = max(largest, float(xp.max(xp.abs(block))))
    if largest == 0:
        raise InputError(
            f"all {math.prod(rows.shape)} entries are 0, and the effective rank of a zero matrix is undefined; "
            "expected at least one that is not."
        )
    return 2.0 ** -max(math.frexp(largest)[1], -1022)


def _check_sparse(rows: Any) -> None:
    bad = np.flatnonzero(~np.isfinite(rows.data))
    if len(bad):
        i = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
        raise InputError(
            f"item {i} holds {rows.data[bad[0]]} in column {rows.indices[bad[0]]}; expected finite numbers. Fill it, "
            "or drop the item.",
            item=i,
        )


def _dense_blocks(rows: Any) -> Iterator[Any]:
    """Dense float64 blocks of rows of a tall matrix, of no fewer rows than columns: fewer would double the work."""
    n, m = (int(size) for size in rows.shape)
    max_bytes = DEVICE_BYTES if is_foreign(rows) else BLOCK_BYTES
    for span in blocks(n, m, most=max(max_bytes, 8 * m * m)):
        yield rows[span].toarray().astype(np.float64) if is_sparse(rows) else double(select(rows, span))


def _triangular_factor(block: Any) -> Any:
    """R of the QR decomposition, which has the singular values of the block."""
    if isinstance(block, np.ndarray):
        return np.linalg.qr(block, mode="r")
    return namespace(block).linalg.qr(block)[1]


# ------------------------------------------------------------------------------------------ the logarithmic determinant


@dataclass(frozen=True, repr=False, eq=False)
class LogDet(Figure):
    """The logarithm of a determinant: a float, with what is known of it.

    Attributes
    ----------
    value : float
        log det(K + shift·I); −∞ where K + shift·I cannot be told from a singular matrix.
    bounds : tuple of float
        What rounding leaves possible; NaN for kernels that only stand in for another.
    per_item : float
        The value divided by n, for collections of different sizes.
    rank : int
        How many eigenvalues of K are certainly above 0.
    n : int
        How many items there are.
    shift : float
        What was added to the diagonal.
    """

    value: float
    bounds: tuple[float, float]
    per_item: float
    rank: int
    n: int
    shift: float


def log_det(samples: Any, kernel: Any = COSINE, *, shift: float = 0.0, rng: int = SEED) -> LogDet:
    """The volume that items span, as log det(K + shift·I) of their similarity matrix K.

    With shift = 0 it is at most 0, which it is where no item is like another, and −∞ where one is a copy or a linear
    combination of others. Higher is more diverse; values of different n do not compare, and `per_item` does so better.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items, as for `vendimeter.score`.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    shift : float
        What is added to the diagonal, from 0 up. With 1 it is the normaliser of a determinantal point process.
    rng : int
        Seed of what is random in a kernel.

    Returns
    -------
    LogDet
        A float with `bounds`, `per_item`, `rank`, `n` and `shift`.

    Notes
    -----
    A determinantal point process with the kernel K draws the subset A with the log-probability log det K_A − log
    det(I + K): ``log_det(subset) - log_det(everything, shift=1)``.

    All eigenvalues are taken, of the n×n matrix or of the d×d one of features, up to 32,768×32,768. Vectors with fewer
    columns than rows, and identical items, leave eigenvalues that are exactly 0. What lies below the error of the
    solver cannot be told from 0: then the value is −∞ with shift = 0, and the upper bound says how large it may yet be.
    NumPy's slogdet gives a number there that is made of rounding: −13,415 for 500 vectors of 96 columns. A kernel that
    drops negative eigenvalues (project=True) has the determinant of what is left, with trace n.

    References
    ----------
    Kulesza and Taskar: Determinantal point processes for machine learning, Foundations and Trends in Machine Learning
    5, 2012, section 2.2 (theorem 2.1: the normaliser).

    Examples
    --------
    >>> from vendimeter.metrics import log_det
    >>> round(log_det([[1, 0.5], [0.5, 1]], "precomputed"), 6)
    -0.287682
    >>> found = log_det(["a", "b", "b"], "match", shift=1)
    >>> found.rank, round(found.per_item, 6)
    (2, 0.597253)
    >>> log_det(["a", "b", "b"], "match").bounds
    (-inf, -inf)
    """
    addend = as_number(shift)
    if not 0 <= addend < math.inf:
        raise InputError(f"shift={brief(shift)}; expected a finite number from 0 up.")
    diversity = diversity_of(samples, kernel, rng=rng)
    diversity.refuse_weights("log_det")
    with diversity.asked():
        try:
            return _log_det_of_spectrum(diversity.eigenvalues(), diversity.n, addend)
        except TooLargeError:
            raise TooLargeError(
                f"log_det takes all eigenvalues, and those of {diversity.n} items are more than the {DENSE_LIMIT} that "
                "are taken at once; expected fewer items, or a kernel with features of fewer columns. Take a random "
                "sample."
            ) from None


def _log_det_of_spectrum(spectrum: Eigenvalues, n: int, shift: float) -> LogDet:
    """The logarithmic determinant of K + shift·I, from the eigenvalues of K/n; those missing of n are exactly 0."""
    eigenvalues = n * spectrum.eigenvalues
    rank = int(np.count_nonzero(spectrum.eigenvalues > spectrum.rank_threshold))
    missing = n - len(eigenvalues)
    singular = shift == 0 and rank < n
    with np.errstate(divide="ignore"):
        log_of_missing = missing * float(np.log(shift)) if missing else 0.0
        value = -math.inf if singular else float(np.sum(np.log(eigenvalues + shift))) + log_of_missing
    low, high = _bounds(eigenvalues, n * spectrum.error, shift)
    rounding = 4 * UNIT * abs(log_of_missing) if math.isfinite(log_of_missing) else 0.0
    bounds = (-math.inf if singular else low + log_of_missing - rounding, high + log_of_missing + rounding)
    if spectrum.level == "none":
        bounds = (math.nan, math.nan)
    return LogDet(value, bounds, value / n, rank, n, shift)


def _bounds(eigenvalues: np.ndarray, error: float, shift: float) -> tuple[float, float]:
    """Bounds on Σ log(μ + shift) for all μ ≥ 0 within `error` of the eigenvalues found, in the Euclidean norm.

    The better of two: every eigenvalue off by the whole error, or all together by the tangent, the Cauchy–Schwarz
    inequality and the second derivative.
    """
    shifted = eigenvalues + shift
    with np.errstate(divide="ignore", invalid="ignore"):
        total = float(np.sum(np.log(shifted)))
        first_order = error * float(np.linalg.norm(1 / shifted))
        high = float(np.sum(np.log(shifted + error)))
        low = float(np.sum(np.log(np.maximum(eigenvalues - error, 0.0) + shift)))
    smallest = float(shifted.min())
    if smallest > 0:
        high = min(high, total + first_order)
    if smallest > error:
        low = max(low, total - first_order - 0.5 * (error / (smallest - error)) ** 2)
    with np.errstate(divide="ignore"):
        magnitude = float(np.sum(np.abs(np.log(np.maximum(shifted, error)))))
    rounding = UNIT * ((len(eigenvalues) + 16) * magnitude + 8 * len(eigenvalues))
    return low - rounding, high + rounding
