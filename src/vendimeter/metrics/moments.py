"""The mean and the covariance of feature rows, as sums that merge; and factors of covariances, whatever their rank.

`Moments` is what users have: moments of their samples, or a mean and a covariance of someone else's, which are checked.
`MomentSum` adds up the blocks of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks, refuse_masked
from vendimeter.data.devices import DEVICE_BYTES, gram_product, is_foreign, namespace, to_host
from vendimeter.errors import (
    AsymmetryError,
    EmptyError,
    IndefiniteError,
    InputError,
    MismatchError,
    TooLargeError,
)
from vendimeter.messages import about, brief, shape_of
from vendimeter.metrics.features import feature_rows, wide_block
from vendimeter.metrics.samples import opened
from vendimeter.options import as_number
from vendimeter.present.numbers import digits, format_bytes

__all__ = [
    "EPSILON",
    "MomentSum",
    "Moments",
    "block_bytes",
    "centred",
    "checked_covariance",
    "correlations",
    "factor",
    "finite_array",
    "moments_of",
    "out_of_range",
    "pivot_noise",
]

EPSILON = float(np.finfo(np.float64).eps)
# Columns, at most: the matrix takes 2 GiB there.
MOST_COLUMNS = 16_384
# Relative error of a covariance, at most: a distance would be off by its root, 1 %.
MOST_ROUNDING = 1e-4


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Moments:
    """The mean and the covariance of feature rows, which is all that a Fréchet distance needs; two of them add up.

    Parameters
    ----------
    mean : array of shape (d,)
        The mean of the rows.
    covariance : array of shape (d, d)
        Their covariance, with n − 1 in the denominator, such as ``mu`` and ``sigma`` of a file of FID statistics.
    n : int, optional
        Of how many rows; it is needed to add up.
    rounding : float, optional
        Relative error of the entries of the covariance, up to 1e-4; by default that of its dtype. One that was computed
        in float32 and stored as float64 needs it said, about 1e-6.

    Attributes
    ----------
    mean : array of shape (d,)
        The mean, read only.
    scatter : array of shape (d, d)
        Σ (x − μ)(x − μ)ᵀ, read only; the covariance itself where n is not known.
    n : int or None
        Rows.
    rounding : float
        As above; of two that add up, the larger.

    Notes
    -----
    Rows are summed around their own mean, block by block, and the sums merged by the formula of Chan, Golub and
    LeVeque: features with a large mean lose no digits, and a constant column has variance exactly 0. The order in
    which moments add up changes nothing beyond rounding.

    References
    ----------
    Chan, Golub, LeVeque: Algorithms for computing the sample variance, The American Statistician 1983.

    Examples
    --------
    >>> from vendimeter.metrics import Moments
    >>> first, second = Moments.of([[0.0, 1.0], [2.0, 3.0]]), Moments.of([[4.0, 2.0]])
    >>> (first + second).mean
    array([2., 2.])
    >>> (first + second).covariance
    array([[4., 1.],
           [1., 1.]])
    >>> sum(Moments.of(batch) for batch in [[[0.0], [2.0]], [[4.0]]])
    Moments(columns=1, n=3)
    """

    mean: np.ndarray
    scatter: np.ndarray
    n: int | None
    rounding: float

    def __init__(self, mean: Any, covariance: Any, n: Any = None, *, rounding: Any = None):
        centre, matrix = finite_array(mean, "mean", 1), finite_array(covariance, "covariance", 2)
        if matrix.dtype == np.float16:
            raise InputError(
                "the covariance is of float16, which keeps too few digits for its smaller variances; expected float32 "
                "or float64. Compute it again from the features."
            )
        dtype_rounding = float(np.finfo(matrix.dtype).eps) if matrix.dtype.kind == "f" else EPSILON
        error = dtype_rounding if rounding is None else as_number(rounding)
        if not 0 <= error <= MOST_ROUNDING:
            raise InputError(
                f"rounding={brief(rounding)}; expected a relative error from 0 to {MOST_ROUNDING:g}."
            )
        count = None if n is None else as_number(n)
        if count is not None and not (2 <= count < math.inf and count == int(count)):
            raise InputError(
                f"n={brief(n)}; expected a whole number from 2 up, or None where it is not known."
            )
        if matrix.shape != (len(centre), len(centre)):
            raise InputError(
                f"mean has {len(centre)} entries and covariance the shape {shape_of(matrix.shape)}; expected one row "
                "and one column an entry."
            )
        _check_width(len(centre))
        error = max(error, EPSILON)
        scatter = checked_covariance(matrix, error)
        if count is not None:
            with np.errstate(over="ignore"):
                scatter *= count - 1
            _check_range(scatter, "the features")
        self._set(centre.astype(np.float64), scatter, None if count is None else int(count), error)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(**state)

    def _set(self, mean: np.ndarray, scatter: np.ndarray, n: int | None, rounding: float) -> Moments:
        mean.flags.writeable = scatter.flags.writeable = False
        for name, value in (("mean", mean), ("scatter", scatter), ("n", n), ("rounding", rounding)):
            object.__setattr__(self, name, value)
        return self

    @classmethod
    def of(cls, samples: Any, *, features: Any = None) -> Moments:
        """The moments of samples, which may be a single one: that has no covariance, but adds up with others.

        Parameters
        ----------
        samples : array, frame column, list or Collection
            Rows of features; with `features`, anything that it takes.
        features : Encoder, str or callable, optional
            What turns samples into vectors, as for `frechet_distance`.
        """
        total = MomentSum()
        moments(samples, total, features=features)
        return total.moments()

    @classmethod
    def of_batches(cls, batches: Iterable[Any], *, features: Any = None) -> Moments:
        """The moments of all batches together, read one after another: for features larger than memory.

        Parameters
        ----------
        batches : iterable
            Samples as for `of`; empty batches are fine.
        features : Encoder, str or callable, optional
            What turns samples into vectors, as for `frechet_distance`.
        """
        shape = getattr(batches, "shape", None)  # a scalar of an array library only seems to be iterable
        if isinstance(batches, str | bytes) or not isinstance(batches, Iterable) or shape == ():
            raise InputError(f"batches is {brief(batches)}; expected an iterable of batches of samples.")
        total = MomentSum()
        for i, batch in enumerate(batches):
            if not _is_empty(batch):  # as the last one of a stream may be
                with about(f"batch {i}"):
                    moments(batch, total, features=features)
        if total.n == 0:
            raise EmptyError("the batches hold no item; expected at least one.")
        return total.moments()

    @property
    def covariance(self) -> np.ndarray:
        """The covariance, with n − 1 in the denominator."""
        if self.n == 1:
            raise InputError("these are the moments of 1 item, which has no covariance; expected 2 or more.")
        return self.scatter if self.n is None else self.scatter / (self.n - 1)

    @property
    def columns(self) -> int:
        """Columns of the features."""
        return len(self.mean)

    def __add__(self, other: Any) -> Moments:
        if isinstance(other, int) and other == 0:  # so that sum() works
            return self
        if not isinstance(other, Moments):
            return NotImplemented
        if self.n is None or other.n is None:
            raise MismatchError(
                "moments of an unknown number of items were added up; expected to know how much each counts. Pass it: "
                "Moments(mean, covariance, n)."
            )
        total = MomentSum()
        total.merge(self.n, self.mean, self.scatter.copy())
        total.merge(other.n, other.mean, other.scatter.copy())
        _check_range(total.scatter, "the features")
        return total.moments(max(self.rounding, other.rounding))

    __radd__ = __add__

    def __repr__(self) -> str:
        return f"Moments(columns={self.columns}, n={self.n})"


# ----------------------------------------------------------------------------------------------------------------- sums


class MomentSum:
    """Sums of feature rows that give their moments, on the host."""

    def __init__(self) -> None:
        self.n = 0
        self.mean = self.scatter = np.empty(0)

    def add(self, rows: Any, what: str, step: Callable[[float], None] | None = None) -> None:
        """Add rows, block by block, each around its own mean."""
        n, width = map(int, rows.shape)
        _check_width(width)
        for span in blocks(n, width, most=block_bytes(rows)):
            with np.errstate(over="ignore", invalid="ignore"):
                block, mean = centred(wide_block(rows, span, what))
                scatter = np.array(to_host(gram_product(block)))
            self.merge(span.stop - span.start, mean, scatter)
            if step is not None:
                step(span.stop / n)
        _check_range(self.scatter, what)

    def merge(self, n: int, mean: np.ndarray, scatter: np.ndarray) -> None:
        """Add the moments of n rows, whose scatter may be overwritten."""
        if self.n == 0:
            self.n, self.mean, self.scatter = n, mean, scatter
            return
        if len(mean) != len(self.mean):
            raise MismatchError(
                f"moments of {len(self.mean)} and of {len(mean)} columns were added up; expected features of one kind, "
                "with as many columns."
            )
        total = self.n + n
        with np.errstate(over="ignore", invalid="ignore"):
            difference = mean - self.mean
            self.mean = self.mean + difference * (n / total)
            self.scatter += scatter
            if difference.any():
                difference *= math.sqrt(self.n / total * n)
                self.scatter += np.outer(difference, difference, out=scatter)
        self.n = total

    def moments(self, rounding: float = EPSILON) -> Moments:
        """The moments of all rows; the sum is not to be used after that."""
        return object.__new__(Moments)._set(self.mean.copy(), self.scatter, self.n, rounding)


def moments(samples: Any, total: MomentSum, *, features: Any = None) -> None:
    """Add samples to a sum."""
    with opened(samples, "moments", vectors=features is None) as samples:
        total.add(feature_rows(samples, "moments", features=features), "samples")


def moments_of(rows: Any, what: str, step: Callable[[float], None]) -> Moments:
    """The moments of feature rows, called `what` in messages; `step` gets the share that is done."""
    total = MomentSum()
    total.add(rows, what, step)
    return total.moments()


def _is_empty(batch: Any) -> bool:
    if hasattr(batch, "shape"):
        return 0 in batch.shape[:1]
    return isinstance(batch, Sized) and len(batch) == 0


def centred(block: Any) -> tuple[Any, np.ndarray]:
    """A float64 block less the mean of its rows, and that mean, on the host; NumPy's blocks are overwritten.

    The first row is subtracted before the mean is computed, so that nothing large cancels and a constant column becomes
    exactly 0.
    """
    first = block[:1, :] + 0.0  # a copy
    block = _subtract(block, first)
    mean = namespace(block).mean(block, axis=0, keepdims=True)
    return _subtract(block, mean), np.array(to_host(first + mean)[0])


def _subtract(block: Any, row: Any) -> Any:
    if not isinstance(block, np.ndarray):
        return block - row
    block -= row
    return block


def block_bytes(rows: Any) -> int:
    """Bytes of a block of rows: for products into a d×d matrix about as many rows as columns."""
    if is_foreign(rows):
        return DEVICE_BYTES
    return min(max(BLOCK_BYTES, 8 * rows.shape[1] ** 2), 4 * BLOCK_BYTES)


def out_of_range(what: str) -> InputError:
    """The error for features whose squares overflow."""
    return InputError(
        f"the squares of {what} are beyond the range of numbers; expected smaller features. Divide all by one number, "
        "and multiply the distance by its square."
    )


def _check_range(scatter: np.ndarray, what: str) -> None:
    if not np.isfinite(scatter.max()):
        raise out_of_range(what)


def _check_width(width: int) -> None:
    if width > MOST_COLUMNS:
        raise TooLargeError(
            f"the features have {width} columns, and a matrix of {width}×{width} would take "
            f"{format_bytes(8 * width**2)}; expected at most {MOST_COLUMNS} columns. Reduce them first, for example by "
            "a random projection."
        )


# ---------------------------------------------------------------------------------------------------------- covariances


def factor(covariance: np.ndarray, rounding: float) -> tuple[np.ndarray, float]:
    """S with SSᵀ the covariance, of as many columns as its rank, by Cholesky with pivots; and the smallest pivot.

    The smallest pivot is 1 where no column is correlated with others, and 0 where the rank is below the number of
    columns. Pivots that are not above the noise are left out: the root of a variance of rounding size would be far
    larger than rounding, 1e-8 of 1e-16. Factored are the correlations, where every column has its own scale, so that
    small ones are not taken for noise beside large ones.
    """
    from scipy.linalg import get_lapack_funcs

    correlation, deviations, _ = correlations(covariance)
    (cholesky,) = get_lapack_funcs(("pstrf",), (correlation,))
    pivoted, order, rank, _ = cholesky(
        correlation.T, tol=pivot_noise(len(deviations), rounding), lower=1, overwrite_a=1
    )
    roots = np.zeros((len(deviations), rank))
    roots[order - 1] = np.tril(pivoted)[:, :rank]
    roots *= deviations[:, None]
    full_rank = rank == np.count_nonzero(deviations)
    return roots, float(np.min(np.diagonal(pivoted)[:rank] ** 2, initial=1.0)) if full_rank else 0.0


def correlations(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlations, standard deviations and their inverses; correlations and inverses are 0 for a constant column."""
    deviations = np.sqrt(np.diagonal(covariance))
    inverse = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    correlation = covariance * inverse
    correlation *= inverse[:, None]
    return correlation, deviations, inverse


def pivot_noise(columns: int, rounding: float) -> float:
    """An upper bound on a pivot that is rounding alone, of the sums and of the factor: several times what was seen."""
    return rounding * (32 + 8 * math.sqrt(columns))


def finite_array(values: Any, name: str, dimensions: int) -> np.ndarray:
    """The user's array on the host; an error where it has another shape, or entries that are not finite numbers."""
    refuse_masked(values, name)
    try:
        array = to_host(values) if is_foreign(values) else np.asarray(values)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind not in "buif" or array.ndim != dimensions or array.size == 0:
        shape = "(columns,)" if dimensions == 1 else "(columns, columns)"
        raise InputError(f"{name} is {brief(values)}; expected an array of real numbers, of shape {shape}.")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds {array[~np.isfinite(array)][0]}; expected finite numbers.")
    return array


def checked_covariance(matrix: np.ndarray, rounding: float) -> np.ndarray:
    """The user's covariance in float64; an error where it is not symmetric or not positive semidefinite."""
    covariance = matrix.astype(np.float64)
    variances = np.diagonal(covariance)
    if variances.min() < 0:
        at = int(variances.argmin())
        raise IndefiniteError(
            f"the covariance has the variance {digits(variances[at])} in column {at}; expected none below 0."
        )
    noise = 8 * pivot_noise(len(variances), rounding)
    asymmetry = _as_correlations(covariance - covariance.T, variances)
    if not asymmetry.max() <= noise:
        i, j = (int(place) for place in np.unravel_index(int(asymmetry.argmax()), asymmetry.shape))
        raise AsymmetryError(
            f"the covariance has {digits(covariance[i, j])} at ({i}, {j}) and {digits(covariance[j, i])} at "
            f"({j}, {i}); expected a symmetric matrix."
        )
    covariance = covariance / 2 + covariance.T / 2
    roots, _ = factor(covariance, rounding)
    residual = float(_as_correlations(covariance - roots @ roots.T, variances).max())
    if not residual <= noise:
        raise IndefiniteError(
            f"the covariance is not positive semidefinite: as correlations, {residual:.2g} of it belongs to no rows, "
            f"and rounding leaves {noise:.2g} at most. Expected the covariance of some rows; for one that was computed "
            "in float32 pass rounding=1e-6."
        )
    return covariance


def _as_correlations(difference: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Absolute differences of covariances on the scale of correlations; inf beside a column of no variance."""
    deviations = np.sqrt(variances)
    scale = deviations[:, None] * deviations
    size = np.abs(difference)
    with np.errstate(over="ignore"):
        return np.divide(size, scale, out=np.where(size > 0, np.inf, 0.0), where=scale > 0)
