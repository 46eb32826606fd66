"""Kernels of a matrix that the user has: similarities, or distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from vendimeter.data import tables
from vendimeter.data.arrays import csr, is_sparse, is_table, refuse_masked
from vendimeter.data.devices import (
    diagonal,
    double,
    identity,
    is_foreign,
    is_real,
    local,
    namespace,
    numpy_dtype,
    to_host,
)
from vendimeter.errors import EmptyError, InputError
from vendimeter.kernels.base import Kernel
from vendimeter.kernels.vectors import check_scale
from vendimeter.messages import brief, shape_of
from vendimeter.present.numbers import digits
from vendimeter.similarity import Matrix
from vendimeter.similarity.checks import Policy
from vendimeter.spectrum import UNIT

__all__ = ["FromDistances", "Precomputed", "square"]


def square(samples: Any, what: str) -> Any:
    """A square matrix of real numbers, dense (not copied) or CSR."""
    refuse_masked(samples, f"the matrix of {what}")
    matrix = tables.square_matrix(samples) if is_table(samples) else local(samples)
    if not is_sparse(matrix) and not is_foreign(matrix):
        try:
            matrix = np.asarray(matrix)
        except ValueError:
            raise InputError(f"the {what} are a ragged list; expected a square matrix.") from None
    if len(matrix.shape) > 0 and matrix.shape[0] == 0:
        raise EmptyError(f"there are no {what}; the diversity of nothing is undefined.")
    if not is_real(matrix):
        raise InputError(
            f"the {what} are {brief(samples)} of dtype {matrix.dtype}; expected a square matrix of real "
            "numbers."
        )
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"the {what} have shape {shape_of(matrix.shape)}; expected a square matrix, one row and column "
            "an item."
        )
    return csr(matrix) if is_sparse(matrix) else matrix


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The samples are the similarity matrix K itself, dense or sparse.

    K must be symmetric, positive semidefinite and have a diagonal of 1, up to rounding. What is not is an error that
    says where and by how much; the options mend it.

    Parameters
    ----------
    normalize : bool
        Divide K[i, j] by √(K[i, i] K[j, j]).
    symmetrize : bool
        Take the mean of K and its transpose.
    project : bool
        Drop negative eigenvalues (project onto the positive semidefinite cone); the removed mass is recorded in
        the diagnostics of the score.

    Examples
    --------
    >>> import vendimeter as vm
    >>> K = [[2.0, 1.0], [1.0, 2.0]]
    >>> round(vm.score(K, vm.kernels.Precomputed(normalize=True)), 4)
    1.7548
    """

    normalize: bool = False
    symmetrize: bool = False
    project: bool = False
    name: ClassVar[str] = "precomputed"

    @property
    def needs_all(self) -> str:
        """A matrix of all items."""
        return "it is a matrix of all pairs of items. Pass the embeddings behind it with another kernel"

    def build(self, samples: Any, rng: int) -> Matrix:
        """The matrix, to be checked before it is used."""
        return Matrix(
            square(samples, "similarities"), policy=Policy(self.normalize, self.symmetrize, self.project)
        )


@dataclass(frozen=True)
class FromDistances(Kernel):
    """Similarities from a matrix of distances.

    Parameters
    ----------
    scale : float or "median"
        The distance s that sets what is near; ``"median"``, the default, takes the median distance between
        distinct items.
    form : "exponential", "gaussian" or "linear"
        exp(−d/s), exp(−d²/2s²) or 1 − d/s. Whether the result is positive semidefinite depends on the distances and is
        checked; for Euclidean distances the first two always are.
    project : bool
        Drop negative eigenvalues instead of raising; the removed mass is recorded.

    Examples
    --------
    >>> import vendimeter as vm
    >>> D = [[0, 100], [100, 0]]
    >>> round(vm.score(D, vm.kernels.FromDistances(scale=1.0)), 4)
    2.0
    """

    scale: float | Literal["median"] = "median"
    form: Literal["exponential", "gaussian", "linear"] = "exponential"
    project: bool = False
    name: ClassVar[str] = "from-distances"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_scale(self.scale, "scale"))
        if self.form not in ("exponential", "gaussian", "linear"):
            raise InputError(f"form={brief(self.form)}; expected 'exponential', 'gaussian' or 'linear'.")

    def _distances(self, samples: Any) -> tuple[Any, float, np.dtype]:
        """Distances from 0 up with a diagonal of 0, an upper bound on their rounding error, and their dtype."""
        matrix = square(samples, "distances")
        if is_sparse(matrix):
            raise InputError(
                "the distances are sparse, so that missing ones would count as 0; pass a dense matrix."
            )
        distances = double(matrix)
        xp, n, dtype = namespace(distances), int(distances.shape[0]), numpy_dtype(matrix)
        gaps = xp.isnan(distances)
        if bool(xp.any(gaps)):
            i, j = (int(k[0]) for k in xp.nonzero(gaps))
            raise InputError(f"the distance [{i}, {j}] is nan; expected a number from 0 up.")
        # Distances such as √(2 − 2 cos) lose half of their digits near 0.
        precision = float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
        largest = float(xp.max(xp.where(xp.isfinite(distances), xp.abs(distances), 0.0)))
        tolerance = 4 * math.sqrt(precision) * largest
        i, j = divmod(int(xp.argmin(xp.reshape(distances, (-1,)))), n)
        lowest = float(distances[i, j])
        if lowest < -tolerance:
            raise InputError(f"the distance [{i}, {j}] is {digits(lowest)}; expected a number from 0 up.")
        self_distances = np.abs(diagonal(distances))
        i = int(self_distances.argmax())
        if self_distances[i] > tolerance:
            raise InputError(
                f"the distance of item {i} from itself is {digits(self_distances[i])}; expected 0. If these are "
                "similarities, use kernel='precomputed'.",
                item=i,
                option="kernel",
            )
        error = max(float(self_distances[i]), -lowest, 0.0)
        distances = xp.where(distances > 0, distances, 0.0)
        if self_distances.any():
            distances = xp.where(identity(n, distances) > 0, 0.0, distances)
        return distances, error, dtype

    @property
    def fitted(self) -> bool:
        """Whether the scale is a number."""
        return self.scale != "median"

    @property
    def needs_all(self) -> str:
        """A matrix of all items."""
        return "it is a matrix of all pairs of items. Pass the embeddings behind it with another kernel"

    def build(self, samples: Any, rng: int) -> Matrix:
        """The matrix of similarities, to be checked before it is used."""
        distances, error, precision = self._distances(samples)
        if self.scale == "median":
            host = to_host(distances)  # a median is no operation of the standard
            positive = host[np.isfinite(host) & (host > 0)]
            fitted = replace(self, scale=float(np.median(positive)) if positive.size else 1.0)
            return fitted.similarity(samples)  # type: ignore[return-value]
        ratio, exp = distances / float(self.scale), namespace(distances).exp
        forms: dict[str, tuple[str, Callable[[Any], Any]]] = {
            "exponential": ("exp(−D/scale)", lambda x: exp(-x)),
            "gaussian": ("exp(−D²/2scale²)", lambda x: exp(-0.5 * x**2)),
            "linear": ("1 − D/scale", lambda x: 1 - x),
        }
        formula, transform = forms[self.form]
        with np.errstate(over="ignore"):
            similarities = transform(ratio)
        return Matrix(
            similarities,
            policy=Policy(project=self.project),
            rounding=4 * UNIT + error / float(self.scale),
            precision=precision,
            what=f"({formula})",
        )
