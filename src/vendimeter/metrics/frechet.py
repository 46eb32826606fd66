"""The Fréchet distance of two sets of features, as Gaussians of their moments: FID on features of Inception."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import DEVICE_BYTES, as_like, double, is_foreign, namespace, to_host, transposed
from vendimeter.errors import InputError, TooLargeError
from vendimeter.messages import about
from vendimeter.metrics.features import feature_rows, wide_block
from vendimeter.metrics.moments import (
    EPSILON,
    Moments,
    MomentSum,
    block_bytes,
    centred,
    correlations,
    factor,
    moments_of,
    out_of_range,
    pivot_noise,
)
from vendimeter.metrics.samples import opened
from vendimeter.options import byte_count
from vendimeter.present.numbers import format_bytes
from vendimeter.present.progress import Progress
from vendimeter.results.base import Figure

__all__ = ["FrechetDistance", "frechet_distance"]

METRIC = "the Fréchet distance"
MEMORY = 4 << 30  # bytes beside the features
# Of the variance of its column: a direction with less is computed from the rows, not from the covariance.
MIN_PIVOT = 1e-4


@dataclass(frozen=True, repr=False, eq=False)
class FrechetDistance(Figure):
    """A Fréchet distance: the float, and the two terms that it is the sum of.

    Attributes
    ----------
    mean_term : float
        ‖μ₁ − μ₂‖²: how far the centres are apart.
    covariance_term : float
        tr(Σ₁ + Σ₂ − 2(Σ₁Σ₂)^½): how much the spreads differ.
    n, m : int or None
        Items of the samples and of the reference; None for moments that do not say.
    columns : int
        Columns of the features.
    """

    value: float
    mean_term: float
    covariance_term: float
    n: int | None
    m: int | None
    columns: int


def frechet_distance(
    samples: Any,
    reference: Any,
    *,
    features: Any = None,
    memory: int | str | None = None,
    progress: bool | None = None,
) -> FrechetDistance:
    """Fréchet distance of two sets of features: ‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2(Σ₁Σ₂)^½).

    It is the squared 2-Wasserstein distance of the Gaussians with the means and covariances (with n − 1) of the two
    sets: 0 for equal moments, and lower is nearer. On features of Inception v3 it is the FID.

    Parameters
    ----------
    samples, reference : array, frame column, list, Collection or Moments
        Rows of features, on the host or on a device; with `features`, anything that it takes; or `Moments`.
    features : Encoder, str or callable, optional
        What turns samples into vectors: an encoder of `vendimeter.encoders`, or its name, or a function of all samples.
    memory : int or str, optional
        Working memory beside the features, in bytes or as a text such as "8 GiB"; 4 GiB by default. Where more is
        needed, that is an error.
    progress : bool, optional
        Whether to show how far it is; by default on terminals.

    Returns
    -------
    FrechetDistance
        A float, with `mean_term`, `covariance_term`, `n`, `m` and `columns`.

    Notes
    -----
    tr (Σ₁Σ₂)^½ is the sum of the singular values of S₁ᵀS₂, for any factors Σ = SSᵀ. Here S is the centred rows
    themselves where there are no more rows than columns, and else a Cholesky factor, with pivots, of the covariance.
    Where that is close to singular, the rows are read once more, to be multiplied by its inverse and factored again. No
    root of a matrix is taken and nothing becomes complex, so that covariances may be singular: few rows, constant or
    repeated columns, copies of a few items.

    Against 50 digits the error was below 1e-14 of tr(Σ₁ + Σ₂) in all these cases, where the common formulas are off by
    1e-8 of it, and about 1e-10 with a mean of 1e6 standard deviations (1e-5 from sums of squares). From `Moments` it
    may reach 1e-7 where one set has less than about 1e-13 of the variance of its columns in a direction in which the
    other set has much: in a covariance that is rounding. A distance is never negative; where rounding would make the
    covariance term so, it is 0.

    The distance is an estimate with a bias: it falls as n grows, the more columns the more so. Figures of different n
    cannot be compared, and even at equal n the bias is not the same for every set (Chong & Forsyth 2020): take many
    more items than columns. And it sees no more than means and covariances.

    References
    ----------
    Dowson, Landau: The Fréchet distance between multivariate normal distributions, Journal of Multivariate Analysis
    1982.
    Heusel, Ramsauer, Unterthiner, Nessler, Hochreiter: GANs trained by a two time-scale update rule converge to a local
    Nash equilibrium, NeurIPS 2017.
    Chong, Forsyth: Effectively unbiased FID and Inception Score and where to find them, CVPR 2020.

    Examples
    --------
    >>> from vendimeter.metrics import frechet_distance
    >>> frechet_distance([[0.0], [2.0]], [[1.0], [5.0]])
    FrechetDistance(6, mean_term=4, covariance_term=2, n=2, m=2, columns=1)
    """
    budget = MEMORY if memory is None else byte_count(memory, "memory")
    if features is not None and isinstance(samples, Moments) and isinstance(reference, Moments):
        raise InputError(
            "features was given with the moments of both sets; expected samples to apply it to. Leave it away."
        )
    with (
        opened(samples, "frechet_distance", vectors=features is None) as samples,
        opened(reference, "frechet_distance", "reference", vectors=features is None) as reference,
    ):
        left = _moments_or_rows(samples, features)
        with about("reference"):
            right = _moments_or_rows(reference, features)
        _check(left, right, budget)
        with Progress("Fréchet distance", progress) as bar, np.errstate(over="ignore", invalid="ignore"):
            first = _side(left, "samples", lambda done: bar.step(0.4 * done))
            second = _side(right, "reference", lambda done: bar.step(0.4 + 0.4 * done))
            nuclear = _nuclear_norm(first, second)
            mean_term = float(np.sum((first.mean - second.mean) ** 2))
        # Equal covariances leave a difference of rounding size, of either sign; the exact one is not negative.
        covariance_term = max(first.trace + second.trace - 2 * nuclear, 0.0)
        value = mean_term + covariance_term
        if not math.isfinite(value):
            raise out_of_range("samples or reference")
        return FrechetDistance(value, mean_term, covariance_term, first.n, second.n, len(first.mean))


def _moments_or_rows(samples: Any, features: Any) -> Any:
    """The user's moments, or the rows of features."""
    return samples if isinstance(samples, Moments) else feature_rows(samples, METRIC, features=features)


def _check(left: Any, right: Any, budget: int) -> None:
    """Refuse sides of different widths, with too few items, or too large for the memory."""
    (n, width), (m, other_width) = _shape(left), _shape(right)
    if width != other_width:
        raise InputError(
            f"samples has {width} columns and reference {other_width}; {METRIC} expected features of one kind, with as "
            "many columns."
        )
    for count, what in ((n, "samples"), (m, "reference")):
        if count == 1:
            raise InputError(f"{what} has 1 item, which has no covariance; {METRIC} expected at least 2.")
    gaussian = [isinstance(side, Moments) or count > width for side, count in ((left, n), (right, m))]
    sizes = [width if is_gaussian else count for is_gaussian, count in zip(gaussian, (n, m), strict=True)]
    needed = 8 * (2 * math.prod(sizes) + (sum(gaussian) + 6 * any(gaussian)) * width**2)
    if needed > budget:
        raise TooLargeError(
            f"{METRIC} of features with {width} columns needs about {format_bytes(needed)} here, and "
            f"{format_bytes(budget)} are allowed; expected fewer columns. Reduce them first, for example by a random "
            f"projection, or allow more: memory='{math.ceil(needed / 2**20)} MiB'."
        )


def _shape(side: Any) -> tuple[Any, int]:
    return (side.n, side.columns) if isinstance(side, Moments) else (int(side.shape[0]), int(side.shape[1]))


def _side(data: Any, what: str, step: Callable[[float], None]) -> _Gaussian | _Rows:
    if isinstance(data, Moments):
        return _Gaussian(data)
    has_few_rows = data.shape[0] <= data.shape[1]
    return _Rows(data, what) if has_few_rows else _Gaussian(moments_of(data, what, step), data)


class _Gaussian:
    """One side of a distance, from its moments: a factor of the covariance, refined by the rows if they are known."""

    def __init__(self, moments: Moments, rows: Any = None):
        covariance = moments.covariance
        self.n, self.mean = moments.n, moments.mean
        self.trace = float(np.trace(covariance))
        self.factor, smallest_pivot = factor(covariance, moments.rounding)
        if rows is not None and smallest_pivot < MIN_PIVOT:
            del covariance, self.factor  # each as large as the refined factor
            self.factor = _refined_factor(rows, moments)
        self.size = self.factor.shape[1]

    def columns(self, span: slice) -> np.ndarray:
        """Some columns of Sᵀ."""
        return self.factor[span].T


def _refined_factor(rows: Any, moments: Moments) -> np.ndarray:
    """S as of `factor`, also exact in directions in which the covariance is rounding (CholeskyQR with a shift).

    The rows are multiplied by the inverse of a rough factor. The products have variances near 1 in almost all
    directions, and in their covariance the small variances are not lost in rounding.
    """
    from scipy.linalg import cholesky, solve_triangular

    correlation, deviations, inverse = correlations(moments.covariance)
    np.fill_diagonal(correlation, np.diagonal(correlation) + 4 * pivot_noise(len(deviations), EPSILON))
    rough_factor = cholesky(correlation, lower=True, overwrite_a=True)
    whitening = solve_triangular(rough_factor, np.diag(inverse).T, lower=True, overwrite_b=True).T
    whitened = MomentSum()
    for span in blocks(*rows.shape, most=DEVICE_BYTES if is_foreign(rows) else BLOCK_BYTES):
        block = wide_block(rows, span)
        like = block if is_foreign(block) else None
        whitened.add((block - as_like(moments.mean, like)) @ as_like(whitening, like), "samples")
    del whitening
    refined = rough_factor @ factor(whitened.moments().covariance, EPSILON)[0]
    refined *= deviations[:, None]
    return refined


class _Rows:
    """One side of a distance, of no more rows than columns: the centred rows are the factor, and no d×d is built."""

    def __init__(self, rows: Any, what: str):
        self.rows, self.size = rows, int(rows.shape[0])
        self.n = self.size
        self.mean, self.trace = np.empty(rows.shape[1]), 0.0
        for span in blocks(self.size, rows.shape[1], most=block_bytes(rows)):
            wide_block(rows, span, what)  # for its checks alone

    def columns(self, span: slice) -> Any:
        """Some columns of Sᵀ, whose means and variances are set on the way."""
        block, self.mean[span] = centred(double(self.rows[:, span]))
        block = block / math.sqrt(self.size - 1)
        self.trace += float(namespace(block).sum(block * block))
        return block


def _nuclear_norm(first: Any, second: Any) -> float:
    """The nuclear norm of S₁ᵀS₂, the sum of its singular values, from blocks of the columns of both."""
    from scipy.linalg import svdvals

    cross = np.zeros((first.size, second.size))
    foreign = any(isinstance(side, _Rows) and is_foreign(side.rows) for side in (first, second))
    for span in blocks(
        len(first.mean), first.size + second.size, most=DEVICE_BYTES if foreign else 4 * BLOCK_BYTES
    ):
        first_columns, second_columns = first.columns(span), second.columns(span)
        if foreign:
            second_columns = as_like(second_columns, first_columns if is_foreign(first_columns) else None)
        cross += to_host(first_columns @ transposed(second_columns))
    if not (np.isfinite(cross).all() and math.isfinite(first.trace + second.trace)):
        raise out_of_range("samples or reference")
    return float(np.sum(svdvals(cross, overwrite_a=True, check_finite=False))) if cross.size else 0.0
