"""Kernels of vectors that are inner products: cosine and polynomial."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.arrays import as_rows, is_sparse
from vendimeter.data.devices import concat, double, is_foreign, move, namespace, row_norms, to_host
from vendimeter.errors import InputError, brief
from vendimeter.kernels.algebra import multiply, multiply_features
from vendimeter.kernels.base import Kernel
from vendimeter.options import as_number, whole_number
from vendimeter.similarity import FeatureRows, Features, Similarity
from vendimeter.spectrum import UNIT

__all__ = ["Cosine", "Polynomial", "unit_rows"]

STEEPEST = 1000  # degree of a polynomial kernel: the product of so many


def not_finite(row: np.ndarray, position: int) -> InputError:
    """The error for a row with a value that is not finite."""
    value = row[~np.isfinite(row)][0]
    return InputError(
        f"item {position} holds the value {value}; expected finite numbers. Remove or fill it.", item=position
    )


def _values(rows: Any, i: int) -> np.ndarray:
    return rows.data[rows.indptr[i] : rows.indptr[i + 1]] if is_sparse(rows) else rows[i]


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
    odd = np.flatnonzero(~((squares > 1e-250) & (squares < 1e250)))
    for i in odd.tolist():
        values = _values(rows, i)
        if not np.isfinite(values).all():
            raise not_finite(values, int(positions[i]))
        largest = np.abs(values).max(initial=0.0)
        if largest == 0:
            raise _zeros(int(positions[i]))
        values /= largest
        squares[i] = values @ values
    scale = 1 / np.sqrt(squares)
    if is_sparse(rows):
        rows.data *= np.repeat(scale, np.diff(rows.indptr))
    else:
        rows *= scale[:, None]
    return rows


def _zeros(position: int) -> InputError:
    return InputError(
        f"item {position} is all zeros, and the cosine similarity of a zero vector is undefined. Remove it, "
        "or use another kernel.",
        item=position,
    )


def _unit_rows_on_device(rows: Any, positions: np.ndarray, flags: list[Any] | None) -> Any:
    """New rows of norm 1, in float64."""
    xp = namespace(rows)
    with np.errstate(
        over="ignore", invalid="ignore", divide="ignore"
    ):  # libraries that stand on NumPy would warn
        norms = row_norms(rows)
        unit = rows / norms
    # One question to the device for the whole block: rows whose squares stay in range need no second look.
    right = xp.all((norms > 1e-125) & (norms < 1e125))
    if flags is not None:
        flags.append(right)
        return unit
    if bool(right):
        return unit
    rows = double(rows)
    largest = xp.max(xp.abs(rows), axis=1, keepdims=True)
    for i, size in enumerate(to_host(largest)[:, 0].tolist()):
        if not math.isfinite(size):
            raise not_finite(to_host(rows[i, :]), int(positions[i]))
        if size == 0:
            raise _zeros(int(positions[i]))
    rows = rows / largest
    return rows / row_norms(rows)


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
