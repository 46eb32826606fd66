"""The mean and the covariance of feature rows, as sums that merge; and a factor of a covariance, whatever its rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter._arrays import BLOCK_BYTES, blocks
from vendimeter._devices import DEVICE_BYTES, gram_product, is_foreign, namespace, to_host
from vendimeter._messages import brief, digits, shape_of
from vendimeter._options import as_number, bytes_shown
from vendimeter.errors import (
    AsymmetryError,
    EmptyError,
    IndefiniteError,
    InputError,
    MismatchError,
    TooLargeError,
)
from vendimeter.metrics._inputs import collected, feature_rows, wide_block

__all__ = ["Moments", "block_bytes", "centred", "factor", "moments_of", "out_of_range"]

WIDEST = 16_384  # columns, at most: the matrix takes 2 GiB there
EPSILON = float(np.finfo(np.float64).eps)
LEAST_NOISE = 512  # units of rounding in a covariance, at least: sums over many rows gather some


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
        Relative error of the entries of the covariance; by default that of its dtype. One that was computed in float32
        and stored as float64 needs it said, about 1e-6.

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
    Chan, Golub, LeVeque: Algorithms for computing the sample variance, The American Statistician 1983, eq. 2.1.

    Examples
    --------
    >>> from vendimeter.metrics.moments import Moments
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
        centre, spread = _numbers(mean, "mean", 1), _numbers(covariance, "covariance", 2)
        own = float(np.finfo(spread.dtype).eps) if spread.dtype.kind == "f" else EPSILON
        error = own if rounding is None else as_number(rounding)
        if not 0 <= error <= 0.01:
            raise InputError(f"rounding={brief(rounding)}; expected a relative error from 0 to 0.01.")
        count = None if n is None else as_number(n)
        if count is not None and not (2 <= count < math.inf and count == int(count)):
            raise InputError(
                f"n={brief(n)}; expected a whole number from 2 up, or None where it is not known."
            )
        if spread.shape != (len(centre), len(centre)):
            raise InputError(
                f"mean has {len(centre)} entries and covariance the shape {shape_of(spread.shape)}; expected one row "
                "and one column an entry."
            )
        _check_width(len(centre))
        error = max(error, EPSILON)
        scatter = _checked(spread, error)
        if count is not None:
            scatter *= count - 1
        self._hold(centre.astype(np.float64), scatter, None if count is None else int(count), error)

    def _hold(self, mean: np.ndarray, scatter: np.ndarray, n: int | None, rounding: float) -> Moments:
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
        total = _Sum()
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
        if isinstance(batches, str | bytes) or not isinstance(batches, Iterable):
            raise InputError(f"batches is {brief(batches)}; expected an iterable of batches of samples.")
        total = _Sum()
        for batch in batches:
            try:
                moments(batch, total, features=features)
            except EmptyError:  # the last batch of a stream may be
                continue
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
        total = _Sum()
        total.merge(self.n, self.mean, self.scatter.copy())
        total.merge(other.n, other.mean, other.scatter.copy())
        return total.moments(max(self.rounding, other.rounding))

    __radd__ = __add__

    def __repr__(self) -> str:
        return f"Moments(columns={self.columns}, n={self.n})"


# --------------------------------------------------------------------------------------------------------------- sums


class _Sum:
    """Moments that grow, on the host."""

    def __init__(self) -> None:
        self.n = 0
        self.mean = self.scatter = np.empty(0)

    def add(self, rows: Any, what: str, step: Callable[[float], None] | None = None) -> None:
        """Add rows, block by block, each around its own mean; if one is refused, nothing is added."""
        n, width = map(int, rows.shape)
        _check_width(width)
        grown = _Sum()
        with np.errstate(over="ignore", invalid="ignore"):
            for part in blocks(n, width, most=block_bytes(rows)):
                block, mean = centred(wide_block(rows, part, what))
                grown.merge(part.stop - part.start, mean, np.array(to_host(gram_product(block))))
                if step is not None:
                    step(part.stop / n)
            if not np.isfinite(np.trace(grown.scatter)):
                raise out_of_range(what)
            self.merge(grown.n, grown.mean, grown.scatter)

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
        apart = mean - self.mean
        total = self.n + n
        self.mean = self.mean + apart * (n / total)
        self.scatter += scatter
        if apart.any():
            apart *= math.sqrt(self.n / total * n)
            self.scatter += np.outer(apart, apart, out=scatter)
        self.n = total

    def moments(self, rounding: float = EPSILON) -> Moments:
        return object.__new__(Moments)._hold(self.mean.copy(), self.scatter, self.n, rounding)


@collected
def moments(samples: Any, total: _Sum, *, features: Any = None) -> None:
    """Add samples to a sum."""
    total.add(feature_rows(samples, "moments", features=features), "samples")


def moments_of(rows: Any, what: str, step: Callable[[float], None]) -> Moments:
    """The moments of feature rows; `what` they are called in messages, and `step` is told how far it is."""
    total = _Sum()
    total.add(rows, what, step)
    return total.moments()


def centred(block: Any) -> tuple[Any, np.ndarray]:
    """A float64 block, overwritten on the host, around the mean of its rows; and that mean, on the host.

    The first row is taken away before the mean is taken, so that nothing large cancels and a constant column becomes
    exactly 0.
    """
    first = block[:1, :] + 0.0
    block = _less(block, first)
    rest = namespace(block).mean(block, axis=0, keepdims=True)
    return _less(block, rest), np.array(to_host(first + rest)[0])


def _less(block: Any, row: Any) -> Any:
    if not isinstance(block, np.ndarray):
        return block - row
    block -= row
    return block


def block_bytes(rows: Any) -> int:
    """Bytes of a block of rows: a product into a d×d matrix wants about as many rows as columns."""
    if is_foreign(rows):
        return DEVICE_BYTES
    return min(max(BLOCK_BYTES, 8 * rows.shape[1] ** 2), 4 * BLOCK_BYTES)


def out_of_range(what: str) -> InputError:
    """The error for features whose squares overflow."""
    return InputError(
        f"the squares of {what} are beyond the range of numbers; expected smaller features. Divide all by one number, "
        "and multiply the distance by its square."
    )


def _check_width(width: int) -> None:
    if width > WIDEST:
        raise TooLargeError(
            f"the features have {width} columns, and a matrix of {width}×{width} would take "
            f"{bytes_shown(8 * width**2)}; expected at most {WIDEST} columns. Reduce them first, for example by a "
            "random projection."
        )


# -------------------------------------------------------------------------------------------------------- covariances


def factor(covariance: np.ndarray, rounding: float) -> np.ndarray:
    """S with SSᵀ the covariance, of as many columns as its rank: by Cholesky with pivots, of the correlations.

    What is left when no pivot is above the noise is noise, and left out: the root of a variance of rounding size would
    be far larger than rounding, 1e-8 of 1e-16. In correlations every column has its own scale, so that small ones are
    not taken for noise beside large ones.
    """
    from scipy.linalg import get_lapack_funcs

    deviations = np.sqrt(np.diagonal(covariance))
    inverse = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    correlation = covariance * inverse
    correlation *= inverse[:, None]
    (cholesky,) = get_lapack_funcs(("pstrf",), (correlation,))
    noise = _noise(len(deviations), rounding)
    found, order, rank, _ = cholesky(correlation.T, tol=noise, lower=1, overwrite_a=1)
    roots = np.zeros((len(deviations), rank))
    roots[order - 1] = np.tril(found)[:, :rank]
    roots *= deviations[:, None]
    return roots


def _noise(columns: int, rounding: float) -> float:
    """How far a correlation of 1 may be off, by the rounding of the sums it came of and of its factor."""
    return rounding * max(columns, LEAST_NOISE)


def _numbers(given: Any, name: str, dimensions: int) -> np.ndarray:
    """An array of someone else's on the host."""
    try:
        array = to_host(given) if is_foreign(given) else np.asarray(given)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "buif" or array.ndim != dimensions or array.size == 0:
        shape = "(columns,)" if dimensions == 1 else "(columns, columns)"
        raise InputError(f"{name} is {brief(given)}; expected an array of real numbers, of shape {shape}.")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds {array[~np.isfinite(array)][0]}; expected finite numbers.")
    return array


def _checked(given: np.ndarray, rounding: float) -> np.ndarray:
    """A covariance of someone else's in float64: symmetric, and without negative variances in any direction."""
    covariance = given.astype(np.float64)
    variances = np.diagonal(covariance)
    if variances.min() < 0:
        at = int(variances.argmin())
        raise IndefiniteError(
            f"the covariance has the variance {digits(variances[at])} in column {at}; expected none below 0."
        )
    noise = 8 * _noise(len(variances), rounding)
    gap = _relative(covariance - covariance.T, variances)
    if not gap.max() <= noise:
        i, j = (int(place) for place in np.unravel_index(int(gap.argmax()), gap.shape))
        raise AsymmetryError(
            f"the covariance has {digits(covariance[i, j])} at ({i}, {j}) and {digits(covariance[j, i])} at "
            f"({j}, {i}); expected a symmetric matrix."
        )
    covariance = (covariance + covariance.T) / 2
    roots = factor(covariance, rounding)
    off = float(_relative(covariance - roots @ roots.T, variances).max())
    if not off <= noise:
        raise IndefiniteError(
            f"the covariance is not positive semidefinite: as correlations, {off:.2g} of it belongs to no rows, and "
            f"rounding leaves {noise:.2g} at most. Expected the covariance of some rows; for one that was computed in "
            "float32 pass rounding=1e-6."
        )
    return covariance


def _relative(difference: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The size of differences of covariances, as of correlations; inf beside a column of no variance."""
    deviations = np.sqrt(variances)
    scale = deviations[:, None] * deviations
    size = np.abs(difference)
    with np.errstate(over="ignore"):
        return np.divide(size, scale, out=np.where(size > 0, np.inf, 0.0), where=scale > 0)
