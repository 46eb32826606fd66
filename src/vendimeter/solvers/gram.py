"""The second-moment matrix Σ w φφᵀ of features (d×d), in one pass over the data, by blocks, without a copy of it.

In float64 every block of rows is upcast and normalised in a buffer that fits the cache; the result is right to the last
digits and its rounding bound is a theorem. In float32 the block products are float32 and their sum is float64; what
that costs is not bounded beforehand but measured in the same pass: for s Gaussian vectors z, the true Gz, accumulated
in float64, is compared with Ĝz. ‖(Ĝ−G)Z‖_F² is at least ‖Ĝ−G‖_F² times a χ² variable of s degrees of freedom (a single
direction is the worst case), so its quantile gives a bound on ‖Ĝ−G‖_F that holds with probability 1 − 10⁻⁶.

Everything here adds up, the products, the probes' images and the bounds alike: sums of different batches, made in
different places, merge into the sum of all.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import blocks
from vendimeter.data.devices import (
    DEVICE_BYTES,
    as_like,
    double,
    gram_product,
    move,
    namespace,
    to_host,
    transposed,
)
from vendimeter.options import generator
from vendimeter.similarity import Features
from vendimeter.spectrum import UNIT
from vendimeter.threads import run, workers

__all__ = ["Gram", "GramSum", "gram"]

PROBES = 8
SMALLEST = 5e-324  # the smallest number above 0
FAILURE = 1e-6  # the probability with which the measured float32 bound may fail
ROWS64 = 2048  # rows in a block of float64 products, at most
ROWS32 = 8192  # rows in a block of float32 products, at most …
PIECE = 128  # … prepared in float64 this many at a time, so that a piece stays in the cache
BUFFER_BYTES = 64 << 20  # of all threads together; wide rows come in smaller blocks
MEMORY_BYTES = 64 << 20  # for the sums of the threads
# From this width on BLAS is all the work, and one sum a thread would cost memory: BLAS keeps its threads.
WIDE = 2048


@dataclass(frozen=True)
class Gram:
    """G of trace 1, a bound on its error in the Frobenius norm, and the confidence in that bound."""

    matrix: Any
    error: float
    confidence: float


class GramSum:
    """Σ w φφᵀ with Σ w and a bound on its error; it grows by batches, and two of them add up.

    Parameters
    ----------
    width : int
        The number of features d.
    precision : "float64" or "float32"
        Of the products of blocks. The sum of blocks is float64 either way.
    rng : int
        Seed of the probes that measure what float32 costs.
    probes : int
        How many; 0 leaves the float32 bound infinite (for benchmarks of the bare products).

    Attributes
    ----------
    total : array or None
        Σ w φφᵀ, on the device of the first batch.
    image : array or None
        Σ w φ(φᵀZ) for the probes Z, in float64.
    mass : float
        Σ w.
    error, image_error : float
        What rounding in float64 may have done to `total` (by itself, float32 products aside), and to `image` as a
        multiple of ‖Z‖.
    """

    def __init__(self, width: int, *, precision: str = "float64", rng: int = 0, probes: int = PROBES):
        self.width, self.precision, self.rng = width, precision, rng
        self.probes = probes if precision == "float32" else 0
        self.total: Any = None
        self.image: Any = None
        self.mass = self.error = self.image_error = 0.0

    @functools.cached_property
    def vectors(self) -> np.ndarray | None:
        """The probes Z."""
        if not self.probes:
            return None
        return generator(self.rng, "gram").standard_normal((self.width, self.probes))

    def add(self, features: Features, weights: np.ndarray | None = None) -> None:
        """Add a batch of dense or sparse features; `weights` are masses of any scale, 1 each by default."""
        n = features.n
        mass = float(n) if weights is None else float(weights.sum())
        if mass == 0:
            return
        # Relative to their mean, so that float32 keeps its range whatever the scale of the weights. (First divided,
        # because n / mass may be more than the largest number.)
        roots = None if weights is None else np.sqrt(weights / mass * n)
        if features.sparse:
            sums = self._sum_sparse(features, roots)
        else:
            sums = (self._sum_on_host if features.like is None else self._sum_on_device)(features, roots)
        total, image, terms, image_terms = sums
        scale = mass / n
        if scale != 1:
            total *= scale
            image = None if image is None else image * scale
        # Each entry is a sum with at most `terms` roundings of products whose absolute values have, as a matrix, a
        # Frobenius norm of at most Σ w ‖φ‖²; the rows carry their own rounding twice. Σ w is itself added up, in pairs
        # of blocks; and weights near the smallest numbers round to a multiple of these.
        relative_error = 2 * features.rounding + 10 * UNIT
        if weights is not None:
            relative_error += (24 + math.log2(n)) * UNIT
        underflow = 2.0 * (n + self.width) * SMALLEST
        self._add_sum(
            total,
            image,
            mass,
            mass * (terms * UNIT + relative_error) + underflow,
            mass * (image_terms * UNIT + relative_error) + underflow,
        )

    def merge(self, other: GramSum) -> None:
        """Add the sum of another, which is left unchanged."""
        if other.total is not None:
            like = other.total if self.total is None else self.total
            like = None if isinstance(like, np.ndarray) else like
            image = None if other.image is None else as_like(other.image, like) + 0.0
            self._add_sum(as_like(other.total, like) + 0.0, image, other.mass, other.error, other.image_error)

    def copy(self) -> GramSum:
        """A copy, equal to the last bit."""
        other = copy.copy(self)
        other.total = None if self.total is None else double(self.total)
        other.image = None if self.image is None else double(self.image)
        return other

    def _add_sum(self, total: Any, image: Any, mass: float, error: float, image_error: float) -> None:
        """Add a sum whose arrays may be kept."""
        if self.total is None:
            self.total, self.image, self.mass = total, image, mass
            self.error, self.image_error = error, image_error
            return
        like = None if isinstance(self.total, np.ndarray) else self.total
        self.total += as_like(total, like)
        if image is not None:
            self.image = self.image + as_like(image, like)
        self.mass += mass
        # The addition rounds once, relative to the sum, and so does that of the masses, by which all is divided.
        self.error += error + 2.02 * UNIT * self.mass
        self.image_error += image_error + 2.02 * UNIT * self.mass

    def result(self) -> Gram:
        """G = Σ w φφᵀ / Σ w; what was summed up stays as it is."""
        matrix = self.total / self.mass
        if not isinstance(matrix, np.ndarray):  # a product on a GPU need not be symmetric to the last digit
            matrix = 0.5 * (matrix + transposed(matrix))
        error = self.error / self.mass + 4 * UNIT
        if self.precision == "float64":
            return Gram(matrix, error, 1.0)
        if self.vectors is None or self.image is None:
            return Gram(matrix, math.inf, 1.0)
        image = to_host(self.image) / self.mass
        product = to_host(matrix) @ self.vectors
        # The comparison is itself computed in float64; its rounding is bounded as that of the float64 sum, times ‖Z‖.
        rounding = 2 * (self.image_error / self.mass + self.width * UNIT)
        difference = float(np.linalg.norm(product - image)) + rounding * float(np.linalg.norm(self.vectors))
        return Gram(matrix, difference / math.sqrt(_chi2_quantile(self.probes, FAILURE)) + error, 1 - FAILURE)

    # ------------------------------------- the three kinds of batch: (total, image, terms of a sum in each of the two)

    def _sum_on_host(
        self, features: Features, roots: np.ndarray | None
    ) -> tuple[np.ndarray, Any, float, float]:
        n, d = features.n, self.width
        is_single = self.precision == "float32"
        # One sum a thread: as many threads as fit a budget, and at least PIECE rows for each.
        max_threads = min(n // PIECE, MEMORY_BYTES // (16 * d * d + 1)) if d < WIDE else 1
        with workers(max_threads) as count:
            block = _block_rows(
                d, min(ROWS32 if is_single else ROWS64, -(-n // count)), (4 if is_single else 8) * count
            )
            edges = [n * i // count for i in range(count + 1)]
            sums = [np.zeros((d, d)) for _ in range(count)]
            images = [np.zeros((d, self.probes)) for _ in range(count)]
            add = functools.partial(_add_single, vectors=self.vectors) if is_single else _add_double
            spans = [range(edges[i], edges[i + 1], block) for i in range(count)]
            run([
                functools.partial(add, features, roots, span, edges[i + 1], sums[i], images[i])
                for i, span in enumerate(spans)
            ])  # fmt: skip
        total = functools.reduce(lambda a, b: np.add(a, b, out=a), sums)
        image = functools.reduce(np.add, images) if self.probes else None
        return total, image, min(block, n) + n / block + count, PIECE + n / PIECE + count

    def _sum_on_device(self, features: Features, roots: np.ndarray | None) -> tuple[Any, Any, float, float]:
        # Nothing is transferred from the device before the end: if the flags then fail, all is computed again.
        flags: list[Any] = []
        with np.errstate(over="ignore", invalid="ignore"):  # libraries that stand on NumPy would warn
            sums = self._device_pass(features, roots, lambda block: features.quick_rows(block, flags))
        if flags and not bool(namespace(features.like).all(namespace(features.like).stack(flags))):
            sums = self._device_pass(features, roots, features.rows)
        return sums

    def _device_pass(
        self, features: Features, roots: np.ndarray | None, rows_of: Callable[[slice], Any]
    ) -> tuple[Any, Any, float, float]:
        xp = namespace(features.like)
        vectors = None if self.vectors is None else move(self.vectors, features.like)
        total, image, row_blocks = None, None, blocks(features.n, features.width, most=DEVICE_BYTES)
        for block in row_blocks:
            rows = rows_of(block)
            if roots is not None:
                rows = rows * move(roots[block], features.like)[:, None]
            if vectors is not None:
                block_image = transposed(rows) @ (rows @ vectors)
                image = block_image if image is None else image + block_image
            if self.precision == "float32":
                rows = xp.astype(rows, xp.float32)
            product = gram_product(rows)
            if self.precision == "float32":
                product = double(product)
            if total is None:
                total = product
            else:
                total += product
        terms = row_blocks[0].stop + len(row_blocks)
        return total, image, terms, terms

    def _sum_sparse(
        self, features: Features, roots: np.ndarray | None
    ) -> tuple[np.ndarray, Any, float, float]:
        rows = features.rows(slice(None))
        if roots is not None:
            rows.data *= np.repeat(roots, np.diff(rows.indptr))
        columns = rows.T.tocsr()
        image = None if self.vectors is None else columns @ (rows @ self.vectors)
        terms = float(np.diff(columns.indptr).max(initial=0)) + 1
        return (columns @ rows).toarray(), image, terms, terms


def gram(
    features: Features, weights: np.ndarray | None, *, precision: str, rng: int = 0, probes: int = PROBES
) -> Gram:
    """Σ p φφᵀ of dense features, with `weights` p (or uniform), in one pass; the options are those of `GramSum`."""
    total = GramSum(features.width, precision=precision, rng=rng, probes=probes)
    total.add(features, weights)
    return total.result()


def _block_rows(width: int, max_rows: int, itemsize: int) -> int:
    """How many rows a block has, so that the buffers of all threads keep to their budget."""
    return max(PIECE, min(max_rows, BUFFER_BYTES // (width * itemsize)))


def _add_double(
    features: Features,
    roots: np.ndarray | None,
    starts: range,
    stop: int,
    total: np.ndarray,
    _image: np.ndarray,
) -> None:
    """Add the float64 products of the blocks that begin at `starts` to `total`."""
    product = np.empty_like(total)
    buffer = np.empty((min(starts.step, stop), features.width))
    for first in starts:
        block = slice(first, min(first + starts.step, stop))
        rows = features.rows(block, buffer)
        if roots is not None:
            rows *= roots[block, None]
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
    """Add the float32 products of the blocks that begin at `starts` to `total`, and their float64 images to `image`."""
    product = np.empty(total.shape, dtype=np.float32)
    buffer = np.empty((min(starts.step, stop), features.width), dtype=np.float32)
    piece = np.empty((PIECE, features.width))
    for first in starts:
        last = min(first + starts.step, stop)
        block = buffer[: last - first]
        for begin in range(first, last, PIECE):
            rows_slice = slice(begin, min(begin + PIECE, last))
            rows: Any = features.rows(rows_slice, piece)
            if roots is not None:
                rows *= roots[rows_slice, None]
            if vectors is not None:
                image += rows.T @ (rows @ vectors)
            block[begin - first : rows_slice.stop - first] = rows
        np.matmul(block.T, block, out=product)
        total += product


@functools.cache
def _chi2_quantile(degrees: int, probability: float) -> float:
    """The quantile of the χ² distribution."""
    from scipy.special import gammaincinv

    return float(2 * gammaincinv(degrees / 2, probability))
