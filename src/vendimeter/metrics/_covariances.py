"""Covariances: factors of them, whatever their rank, and those of someone else's, checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vendimeter.data.arrays import refuse_masked
from vendimeter.data.devices import is_foreign, to_host
from vendimeter.errors import AsymmetryError, IndefiniteError, InputError, brief, digits

__all__ = ["EPSILON", "as_numbers", "checked", "correlations", "factor", "noise_of"]

EPSILON = float(np.finfo(np.float64).eps)


def factor(covariance: np.ndarray, rounding: float) -> tuple[np.ndarray, float]:
    """S with SSᵀ the covariance, of as many columns as its rank: by Cholesky with pivots, of the correlations.

    And the least pivot: 1 where no column is correlated with others, 0 where the rank is below the number of columns.
    What is left when no pivot is above the noise is noise, and left out: the root of a variance of rounding size would
    be far larger than rounding, 1e-8 of 1e-16. In correlations every column has its own scale, so that small ones are
    not taken for noise beside large ones.
    """
    from scipy.linalg import get_lapack_funcs

    correlation, deviations, _ = correlations(covariance)
    (cholesky,) = get_lapack_funcs(("pstrf",), (correlation,))
    found, order, rank, _ = cholesky(
        correlation.T, tol=noise_of(len(deviations), rounding), lower=1, overwrite_a=1
    )
    roots = np.zeros((len(deviations), rank))
    roots[order - 1] = np.tril(found)[:, :rank]
    roots *= deviations[:, None]
    whole = rank == np.count_nonzero(deviations)
    return roots, float(np.min(np.diagonal(found)[:rank] ** 2, initial=1.0)) if whole else 0.0


def correlations(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlations, 0 for a constant column; the standard deviations, and their inverse, 0 for such."""
    deviations = np.sqrt(np.diagonal(covariance))
    inverse = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    correlation = covariance * inverse
    correlation *= inverse[:, None]
    return correlation, deviations, inverse


def noise_of(columns: int, rounding: float) -> float:
    """How large a pivot may be that is rounding alone, of the sums and of the factor: several times what was seen."""
    return rounding * (32 + 8 * math.sqrt(columns))


def as_numbers(given: Any, name: str, dimensions: int) -> np.ndarray:
    """An array of someone else's on the host."""
    refuse_masked(given, name)
    try:
        array = to_host(given) if is_foreign(given) else np.asarray(given)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind not in "buif" or array.ndim != dimensions or array.size == 0:
        shape = "(columns,)" if dimensions == 1 else "(columns, columns)"
        raise InputError(f"{name} is {brief(given)}; expected an array of real numbers, of shape {shape}.")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds {array[~np.isfinite(array)][0]}; expected finite numbers.")
    return array


def checked(given: np.ndarray, rounding: float) -> np.ndarray:
    """A covariance of someone else's in float64: symmetric, and without negative variances in any direction."""
    covariance = given.astype(np.float64)
    variances = np.diagonal(covariance)
    if variances.min() < 0:
        at = int(variances.argmin())
        raise IndefiniteError(
            f"the covariance has the variance {digits(variances[at])} in column {at}; expected none below 0."
        )
    noise = 8 * noise_of(len(variances), rounding)
    gap = _relative(covariance - covariance.T, variances)
    if not gap.max() <= noise:
        i, j = (int(place) for place in np.unravel_index(int(gap.argmax()), gap.shape))
        raise AsymmetryError(
            f"the covariance has {digits(covariance[i, j])} at ({i}, {j}) and {digits(covariance[j, i])} at "
            f"({j}, {i}); expected a symmetric matrix."
        )
    covariance = covariance / 2 + covariance.T / 2
    roots, _ = factor(covariance, rounding)
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
