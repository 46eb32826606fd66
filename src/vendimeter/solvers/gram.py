"""The d×d side: G = Σ p φφᵀ from features, in one pass over the data, block by block, without a copy of it.

In float64 every block of rows is upcast and normalised in a buffer that fits the cache; the result is right to the last
digits and its rounding bound is a theorem. In float32 the block products are float32 and their sum is float64; what
that costs is not bounded beforehand but measured in the same pass: for s Gaussian vectors z, the true Gz, accumulated
in float64, is compared with Ĝz. ‖(Ĝ−G)Z‖_F² is at least ‖Ĝ−G‖_F² times a χ² variable of s degrees of freedom (a single
direction is the worst case), so its quantile gives a bound on ‖Ĝ−G‖_F that holds with probability 1 − 10⁻⁶.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.similarity import Features
from vendimeter.solvers._threads import run, workers
from vendimeter.spectrum import UNIT

__all__ = ["Gram", "gram"]

PROBES = 8
FAILURE = 1e-6  # the probability with which the measured float32 bound may fail
ROWS64 = 2048  # rows in a block of float64 products, at most
ROWS32 = 8192  # rows in a block of float32 products, at most …
PIECE = 128  # … prepared in float64 this many at a time, so that a piece stays in the cache
BUFFER_BYTES = 64 << 20  # of all threads together; wide rows come in smaller blocks
MEMORY_BYTES = 64 << 20  # for the sums of the threads
WIDE = (
    2048  # from here on BLAS is all the work, and one sum a thread would cost memory: BLAS keeps its threads
)


@dataclass(frozen=True)
class Gram:
    """G, a bound on its error in the Frobenius norm, and the confidence in that bound."""

    matrix: np.ndarray
    error: float
    confidence: float


def gram(
    features: Features, weights: np.ndarray | None, *, precision: str, rng: int = 0, probes: int = PROBES
) -> Gram:
    """Σ p φφᵀ of dense features, with `weights` p summing to 1 (or uniform), in one pass.

    Parameters
    ----------
    features : Features
        Dense, n×d.
    weights : ndarray, shape (n,), optional
        Probabilities.
    precision : "float64" or "float32"
        Of the products of blocks. The sum of blocks is float64 either way.
    rng : int
        Seed of the probes.
    probes : int
        How many; 0 leaves the float32 bound infinite (for benchmarks of the bare products).
    """
    n, d = features.n, features.width
    roots = None if weights is None else np.sqrt(weights * n)  # about 1 each, so that float32 keeps its range
    single = precision == "float32"
    vectors = np.random.default_rng(rng).standard_normal((d, probes)) if single and probes else None
    # One sum a thread: as many threads as fit a budget, and at least PIECE rows for each.
    most = min(n // PIECE, MEMORY_BYTES // (16 * d * d + 1)) if d < WIDE else 1
    with workers(most) as count:
        block = _block_rows(
            d, min(ROWS32 if single else ROWS64, -(-n // count)), (4 if single else 8) * count
        )
        cuts = [n * i // count for i in range(count + 1)]
        sums = [np.zeros((d, d)) for _ in range(count)]
        images = [np.zeros((d, probes)) for _ in range(count)]
        add = functools.partial(_add_single, vectors=vectors) if single else _add_double
        run([
            functools.partial(add, features, roots, range(cuts[i], cuts[i + 1], block), cuts[i + 1], sums[i], images[i])
            for i in range(count)
        ])  # fmt: skip
    total = functools.reduce(lambda a, b: np.add(a, b, out=a), sums)
    total /= n
    # Each entry is a sum with at most (rows in a block) + (number of blocks) roundings of terms whose absolute
    # values have, as a matrix, Frobenius norm at most Σ p ‖φ‖² = 1; the rows carry their own rounding twice.
    own = 2 * features.rounding + 8 * UNIT
    double = (min(block, n) + n / block + count) * UNIT + own
    if not single:
        return Gram(total, double, 1.0)
    if vectors is None:
        return Gram(total, math.inf, 1.0)
    image = functools.reduce(np.add, images) / n
    # The comparison is itself computed in float64; its rounding is bounded as that of the float64 sum, times ‖Z‖.
    gap = float(np.linalg.norm(total @ vectors - image)) + 2 * (PIECE + n / PIECE + d) * UNIT * float(
        np.linalg.norm(vectors)
    )
    return Gram(total, gap / math.sqrt(_chi2_quantile(probes, FAILURE)) + own, 1 - FAILURE)


def _block_rows(width: int, most: int, itemsize: int) -> int:
    return max(PIECE, min(most, BUFFER_BYTES // (width * itemsize)))


def _add_double(
    features: Features,
    roots: np.ndarray | None,
    starts: range,
    stop: int,
    total: np.ndarray,
    _image: np.ndarray,
) -> None:
    product = np.empty_like(total)
    buffer = np.empty((min(starts.step, stop), features.width))
    for first in starts:
        part = slice(first, min(first + starts.step, stop))
        rows = features.rows(part, buffer)
        if roots is not None:
            rows *= roots[part, None]
        np.matmul(rows.T, rows, out=product)  # one buffer on both sides: NumPy takes SYRK
        total += product


def _add_single(
    features: Features,
    roots: np.ndarray | None,
    starts: range,
    stop: int,
    total: np.ndarray,
    image: np.ndarray,
    *,
    vectors: np.ndarray | None,
) -> None:
    product = np.empty(total.shape, dtype=np.float32)
    buffer = np.empty((min(starts.step, stop), features.width), dtype=np.float32)
    piece = np.empty((PIECE, features.width))
    for first in starts:
        last = min(first + starts.step, stop)
        block = buffer[: last - first]
        for begin in range(first, last, PIECE):
            part = slice(begin, min(begin + PIECE, last))
            rows: Any = features.rows(part, piece)
            if roots is not None:
                rows *= roots[part, None]
            if vectors is not None:
                image += rows.T @ (rows @ vectors)
            block[begin - first : part.stop - first] = rows
        np.matmul(block.T, block, out=product)
        total += product


@functools.cache
def _chi2_quantile(degrees: int, probability: float) -> float:
    from scipy.special import gammaincinv

    return float(2 * gammaincinv(degrees / 2, probability))
