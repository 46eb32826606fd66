"""Kernels of vectors: inner products (cosine, polynomial) and functions of the distance (RBF, Laplacian).

The scale of the latter may be fitted by the median heuristic: it is the median distance between distinct items.
"""

from __future__ import annotations

import functools
import math
import operator
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, as_rows, blocks, is_sparse
from vendimeter.data.devices import (
    DEVICE_BYTES,
    concat,
    double,
    is_foreign,
    move,
    namespace,
    row_norms,
    select,
    to_host,
    transposed,
)
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel, multiply, multiply_features
from vendimeter.messages import brief
from vendimeter.options import as_number, whole_number
from vendimeter.similarity import FeatureRows, Features, Pairwise, Similarity, row_keys
from vendimeter.spectrum import UNIT

__all__ = ["RBF", "Cosine", "Laplacian", "Polynomial", "check_scale", "not_finite", "unit_rows"]

MEDIAN_ITEMS = 2000  # the median heuristic looks at all pairs of at most this many distinct items
DIRECT_WIDTH = 32  # up to this many columns differences are taken directly: as fast, and nothing cancels
STEEPEST = 1000  # degree of a polynomial kernel: the product of so many


@dataclass(frozen=True)
class Cosine(Kernel):
    """Cosine similarity of vectors: k(a, b) = a·b / (‖a‖ ‖b‖).

    The rows are used where they lie, dense or sparse; they are normalised block by block.

    Examples
    --------
    >>> import vendimeter as vm
    >>> round(vm.score([[1, 0], [2, 0], [0, 3]], vm.kernels.Cosine()), 4)
    1.8899
    """

    name: ClassVar[str] = "cosine"

    @property
    def needs_all(self) -> None:
        """Nothing: features of different batches add up."""
        return None

    def build(self, samples: Any, rng: int) -> Features:
        """Features: the rows, normalised."""
        rows = as_rows(samples, kernel="the cosine kernel")
        if rows.shape[1] == 1:
            raise InputError(
                "samples has a single column, and the cosine similarity of two numbers is only ever 1 or "
                f"−1. For {rows.shape[0]} numbers use kernel=vendimeter.kernels.RBF(σ) or Laplacian(scale); "
                "for vectors expected at least two columns.",
                option="kernel",
            )
        return FeatureRows(rows, unit_rows, rounding=(rows.shape[1] / 2 + 4) * UNIT, upcasts=True)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """Normalised polynomial kernel: k(a, b) = ((a·b + c) / √((a·a + c)(b·b + c)))^degree.

    Parameters
    ----------
    degree : int
        A whole number from 1 up.
    offset : float
        The constant c ≥ 0.

    Examples
    --------
    >>> import vendimeter as vm
    >>> round(vm.score([[1, 0], [1, 1], [0, 1]], vm.kernels.Polynomial(2, offset=0)), 4)
    2.4947
    """

    degree: int = 3
    offset: float = 1.0
    name: ClassVar[str] = "polynomial"

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole_number(self.degree, "degree"))
        if self.degree > STEEPEST:
            raise InputError(
                f"degree={self.degree}; expected one up to {STEEPEST}. For a similarity that falls faster take RBF.",
                option="degree",
            )
        if not 0 <= as_number(self.offset) < math.inf:
            raise InputError(
                f"offset={brief(self.offset)}; expected a finite number from 0 up.", option="offset"
            )

    @property
    def needs_all(self) -> None:
        """Nothing: features of different batches add up."""
        return None

    def build(self, samples: Any, rng: int) -> Similarity:
        """Features where they are no wider than the matrix, blocks otherwise."""
        return multiply([self._base(samples)] * self.degree)

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """All products of `degree` columns."""
        return multiply_features([self._base(samples)] * self.degree).with_kernel(self)

    def _base(self, samples: Any) -> Features:
        rows = as_rows(samples, kernel="the polynomial kernel")
        width = int(rows.shape[1]) + (self.offset > 0)
        return FeatureRows(rows, self._prepare, width=width, rounding=(width / 2 + 4) * UNIT)

    def _prepare(self, rows: Any, positions: np.ndarray) -> Any:
        if self.offset > 0:
            column = move(np.full((rows.shape[0], 1), math.sqrt(self.offset)), rows)
            if is_sparse(rows):
                from scipy import sparse

                rows = sparse.csr_array(sparse.hstack([rows, sparse.csr_array(column)], format="csr"))
            else:
                rows = concat([rows, column], axis=1)
        return unit_rows(rows, positions)


class _Radial(Kernel):
    """What the RBF and the Laplacian kernel share: rows, a scale, and a function of the distance."""

    metric: ClassVar[Literal["euclidean", "cityblock"]]
    parameter: ClassVar[str]  # the name of the scale

    @abstractmethod
    def _blocks(self, rows: Any, unit: float, scale: float) -> Pairwise:
        """Blocks of the kernel of `rows` times `unit`, at a scale in the same units."""

    def __post_init__(self) -> None:
        object.__setattr__(self, self.parameter, check_scale(self._scale, self.parameter))

    @property
    def _scale(self) -> Any:
        return getattr(self, self.parameter)

    @property
    def fitted(self) -> bool:
        """Whether the scale is a number."""
        return self._scale != "median"

    @property
    def needs_all(self) -> str:
        """Infinitely many features."""
        fitted = repr(self) if self.fitted else f"{type(self).__name__}('median').fit(sample)"
        return f"its features are infinitely many. Put RandomFeatures({fitted}) in its place, which stands in for it"

    def build(self, samples: Any, rng: int) -> Similarity:
        """Blocks on demand; a median scale is fitted first, on all samples."""
        rows = self._rows(samples)
        if not self.fitted:
            scale = _median_distance(rows, self.metric, rng)
            return replace(self, **{self.parameter: scale}).similarity(rows)  # type: ignore[type-var]
        return self._blocks(rows, *_fit_scale(rows, self._scale, self.parameter))

    def _rows(self, samples: Any) -> Any:
        rows = as_rows(samples, kernel=f"the {self.name} kernel", scalars=True, dense=True)
        xp = namespace(rows)
        if not xp.isdtype(rows.dtype, "real floating"):
            return rows
        for part in _row_blocks(rows):
            finite = xp.isfinite(double(rows[part, :], copy=False) if is_foreign(rows) else rows[part, :])
            if not bool(xp.all(finite)):
                i = int(np.flatnonzero(~to_host(finite).all(axis=1))[0]) + part.start
                raise not_finite(to_host(rows[i, :]).astype(np.float64), i)
        return rows


@dataclass(frozen=True)
class RBF(_Radial):
    """Gaussian kernel: k(a, b) = exp(−‖a − b‖² / 2σ²).

    Parameters
    ----------
    sigma : float or "median"
        The bandwidth σ. ``"median"``, the default, takes the median distance between distinct items (of 2,000 drawn
        with `rng` when there are more); it is fitted once on all items and reported in the diagnostics.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> round(vm.score(np.array([0.0, 0.0, 100.0]), vm.kernels.RBF(10.0)), 4)
    1.8899
    """

    sigma: float | Literal["median"] = "median"
    name: ClassVar[str] = "rbf"
    metric: ClassVar[Literal["euclidean", "cityblock"]] = "euclidean"
    parameter: ClassVar[str] = "sigma"

    def _blocks(self, rows: Any, unit: float, scale: float) -> Pairwise:
        # By differences for narrow rows, by matrix products of centred rows for wide ones.
        width, xp = int(rows.shape[1]), namespace(rows)
        if width <= DIRECT_WIDTH:
            # x e⁻ˣ ≤ 1/e: a relative error of the exponent is an absolute one of the kernel of no more than that.
            distance = _distances(rows, unit, "sqeuclidean")
            return _make_pairwise(
                rows, lambda i, j: xp.exp(distance(i, j) / (-2 * scale**2)), (width + 6) * UNIT
            )

        parts = _row_blocks(rows)
        sums = [xp.sum(_as_double(rows[part, :], unit), axis=0) for part in parts]
        centre = functools.reduce(operator.add, sums) / rows.shape[0]
        radius = max(
            float(xp.max(_squared_norms(x)))
            for x in (_as_double(rows[part, :], unit) - centre for part in parts)
        )

        def product(i: np.ndarray, j: np.ndarray) -> Any:
            a, b = (_as_double(select(rows, k), unit) - centre for k in (i, j))
            squares = a @ transposed(b)
            squares *= -2
            squares += _squared_norms(a)[..., :, None]
            squares += _squared_norms(b)[..., None, :]
            identical = move(i, squares)[..., :, None] == move(j, squares)[..., None, :]
            squares = xp.where((squares > 0) & ~identical, squares, 0.0)
            squares /= -2 * scale**2
            return xp.exp(squares)

        rounding = (2 * width + 8) * UNIT * 4 * radius / (2 * scale**2) + 4 * UNIT
        return _make_pairwise(rows, product, min(rounding, 1.0))


@dataclass(frozen=True)
class Laplacian(_Radial):
    """Laplacian kernel: k(a, b) = exp(−‖a − b‖₁ / scale), with the sum of absolute differences.

    Parameters
    ----------
    scale : float or "median"
        The distance over which similarity falls to 1/e; ``"median"``, the default, as for `RBF`.

    Examples
    --------
    >>> import vendimeter as vm
    >>> round(vm.score([0, 0, 10, 10, 20, 20], vm.kernels.Laplacian(1.0)), 6)
    3.0
    """

    scale: float | Literal["median"] = "median"
    name: ClassVar[str] = "laplacian"
    metric: ClassVar[Literal["euclidean", "cityblock"]] = "cityblock"
    parameter: ClassVar[str] = "scale"

    def _blocks(self, rows: Any, unit: float, scale: float) -> Pairwise:
        distance, xp = _distances(rows, unit, "cityblock"), namespace(rows)
        return _make_pairwise(rows, lambda i, j: xp.exp(distance(i, j) / -scale), (rows.shape[1] + 6) * UNIT)


# ------------------------------------------------------------------------------------------------------- rows of norm 1


def unit_rows(rows: Any, positions: np.ndarray, flags: list[Any] | None = None) -> Any:
    """Each row divided by its norm, on the host in place; a zero or non-finite row is an error that names it.

    With `flags`, rows on a device are not checked: a flag that is true if they are right is added instead.
    """
    if is_foreign(rows):
        return _unit_rows_on_device(rows, positions, flags)
    with np.errstate(over="ignore", invalid="ignore"):
        if is_sparse(rows):
            squares = np.add.reduceat(np.append(rows.data**2, 0.0), rows.indptr[:-1])
            squares[np.diff(rows.indptr) == 0] = 0.0
        else:
            squares = np.einsum("ij,ij->i", rows, rows)
    # Far outside this range the squares have over- or underflowed: such rows are first divided by their largest entry.
    out_of_range = np.flatnonzero(~((squares > 1e-250) & (squares < 1e250)))
    for i in out_of_range.tolist():
        values = _row_values(rows, i)
        if not np.isfinite(values).all():
            raise not_finite(values, int(positions[i]))
        largest = np.abs(values).max(initial=0.0)
        if largest == 0:
            raise _zero_error(int(positions[i]))
        values /= largest
        squares[i] = values @ values
    scale = 1 / np.sqrt(squares)
    if is_sparse(rows):
        rows.data *= np.repeat(scale, np.diff(rows.indptr))
    else:
        rows *= scale[:, None]
    return rows


def _unit_rows_on_device(rows: Any, positions: np.ndarray, flags: list[Any] | None) -> Any:
    """New rows of norm 1, in float64."""
    xp = namespace(rows)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # of libraries that stand on NumPy
        norms = row_norms(rows)
        unit = rows / norms
    # One question to the device for the whole block: rows whose squares stay in range need no second look.
    in_range = xp.all((norms > 1e-125) & (norms < 1e125))
    if flags is not None:
        flags.append(in_range)
        return unit
    if bool(in_range):
        return unit
    rows = double(rows)
    largest = xp.max(xp.abs(rows), axis=1, keepdims=True)
    for i, size in enumerate(to_host(largest)[:, 0].tolist()):
        if not math.isfinite(size):
            raise not_finite(to_host(rows[i, :]), int(positions[i]))
        if size == 0:
            raise _zero_error(int(positions[i]))
    rows = rows / largest
    return rows / row_norms(rows)


def _row_values(rows: Any, i: int) -> np.ndarray:
    return rows.data[rows.indptr[i] : rows.indptr[i + 1]] if is_sparse(rows) else rows[i]


def not_finite(row: np.ndarray, position: int) -> InputError:
    """The error for a row with a value that is not finite."""
    value = row[~np.isfinite(row)][0]
    return InputError(
        f"item {position} holds the value {value}; expected finite numbers. Remove or fill it.", item=position
    )


def _zero_error(position: int) -> InputError:
    return InputError(
        f"item {position} is all zeros, and the cosine similarity of a zero vector is undefined. Remove it, "
        "or use another kernel.",
        item=position,
    )


# -------------------------------------------------------------------------------------------- distances and their scale


def check_scale(scale: Any, name: str) -> float | str:
    """A positive number as a float, or "median"."""
    if isinstance(scale, str) and scale == "median":
        return scale
    if 0 < as_number(scale) < math.inf:
        return as_number(scale)
    raise InputError(
        f"{name}={brief(scale)}; expected a number above 0, or 'median' for the median distance.", option=name
    )


def _median_distance(rows: Any, metric: Literal["euclidean", "cityblock"], rng: int) -> float:
    """The median distance between distinct items; copies of an item do not count, as they do not for the score."""
    from scipy.spatial.distance import pdist

    if is_foreign(rows):  # the same rows as on the host, so that the scale is the same
        rows = _sample(rows, rng)
    if len(rows) > MEDIAN_ITEMS:
        chosen = np.sort(np.random.default_rng(rng).choice(len(rows), MEDIAN_ITEMS, replace=False))
        # Mostly copies: look at the distinct rows instead.
        if len(np.unique(rows[chosen], axis=0)) < MEDIAN_ITEMS // 2:
            rows = np.unique(rows, axis=0)
            chosen = chosen[chosen < len(rows)] if len(rows) > MEDIAN_ITEMS else slice(None)
        rows = rows[chosen]
    distinct = np.unique(np.asarray(rows, dtype=np.float64), axis=0)
    if len(distinct) < 2:
        return 1.0  # all items are the same: any scale gives the score 1
    unit = _power_of_two(float(np.abs(distinct).max()))
    return float(np.median(pdist(distinct * unit, metric))) / unit


def _sample(rows: Any, rng: int) -> np.ndarray:
    """The rows of a device that the median heuristic looks at: all if they are few, else a sample of them."""
    if rows.shape[0] <= MEDIAN_ITEMS:
        return to_host(rows)
    chosen = np.sort(np.random.default_rng(rng).choice(rows.shape[0], MEDIAN_ITEMS, replace=False))
    sample = to_host(select(rows, chosen))
    return sample if len(np.unique(sample, axis=0)) >= MEDIAN_ITEMS // 2 else to_host(rows)


def _fit_scale(rows: Any, scale: float, name: str) -> tuple[float, float]:
    """A power of two that brings the squares of rows and scale into range when both are multiplied; the new scale."""
    unit, xp = _power_of_two(scale), namespace(rows)
    largest = max(float(xp.max(xp.abs(_as_double(rows[part, :], 1.0)))) for part in _row_blocks(rows))
    if not largest * unit < 1e300:
        raise InputError(
            f"{name}={scale:g} is too small beside values of up to {largest:g}: distances in units of it "
            "cannot be represented. Expected a larger one, or rescaled data.",
            option=name,
        )
    return unit, scale * unit


def _power_of_two(size: float) -> float:
    """A power of two that brings `size` near 1: multiplying by it is exact, and squares cannot overflow after."""
    return math.ldexp(1.0, min(-math.frexp(size)[1], 1000))


def _make_pairwise(rows: Any, block: Callable[[np.ndarray, np.ndarray], Any], rounding: float) -> Pairwise:
    """Blocks of a kernel of rows, on the host or on their device, where rows are not compared for being identical."""
    # An exponential takes as long as 400 multiplications of a matrix product, a distance by differences 20 a column.
    width = int(rows.shape[1])
    cost = 400.0 + (20.0 if width <= DIRECT_WIDTH else 2.0) * width
    if is_foreign(rows):
        return Pairwise(int(rows.shape[0]), block, rounding=rounding, like=rows, stacks=True, cost=cost)
    return Pairwise(len(rows), block, rounding=rounding, keys=lambda index: row_keys(rows[index]), cost=cost)


def _distances(
    rows: Any, unit: float, metric: Literal["sqeuclidean", "cityblock"]
) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Blocks of distances by differences, a column at a time on a device: no third axis is ever held."""
    if not is_foreign(rows):
        from scipy.spatial.distance import cdist

        return lambda i, j: cdist(_as_double(rows[i], unit), _as_double(rows[j], unit), metric)

    def block(i: np.ndarray, j: np.ndarray) -> Any:
        a, b, total = _as_double(select(rows, i), unit), _as_double(select(rows, j), unit), None
        for k in range(rows.shape[1]):
            gap = a[..., :, None, k] - b[..., None, :, k]
            term = gap * gap if metric == "sqeuclidean" else abs(gap)
            total = term if total is None else total + term
        return total

    return block


def _squared_norms(rows: Any) -> Any:
    if isinstance(rows, np.ndarray):
        return np.einsum("ij,ij->i", rows, rows)
    return namespace(rows).sum(rows * rows, axis=-1)


def _as_double(rows: Any, unit: float) -> Any:
    if isinstance(rows, np.ndarray):
        return np.multiply(rows, unit, dtype=np.float64)
    return double(rows) * unit


def _row_blocks(rows: Any) -> list[slice]:
    return blocks(
        rows.shape[0], rows.shape[1], most=BLOCK_BYTES if isinstance(rows, np.ndarray) else DEVICE_BYTES
    )
