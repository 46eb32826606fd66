"""Check that a user's matrix is a similarity matrix; mend it only where the user asked for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks, is_sparse
from vendimeter.data.devices import (
    DEVICE_BYTES,
    diagonal,
    double,
    move,
    namespace,
    numpy_dtype,
    to_host,
    transposed,
)
from vendimeter.errors import AsymmetryError, DiagonalError, MatrixError
from vendimeter.options import check_flag
from vendimeter.present.numbers import digits
from vendimeter.spectrum import UNIT

__all__ = [
    "Policy",
    "check",
    "check_diagonal",
    "check_stack",
    "entry_tolerance",
    "mending",
    "not_finite",
    "tolerance_of",
]


@dataclass(frozen=True)
class Policy:
    """How a user's matrix that is not quite a similarity matrix is mended; nothing is mended unasked."""

    normalize: bool = False
    symmetrize: bool = False
    project: bool = False

    def __post_init__(self) -> None:
        for name in ("normalize", "symmetrize", "project"):
            check_flag(getattr(self, name), name)


def mending(option: str) -> str:
    """How to have a matrix or function mended: the phrase of error messages that names the option."""
    distances = "for distances FromDistances(project=True), " if option == "project" else ""
    ways = f"Precomputed({option}=True), {distances}or for a function FromFunction(k, {option}=True),"
    return f"take kernel=vendimeter.kernels.{ways}"


def entry_tolerance(dtype: np.dtype) -> float:
    """Threshold for the error of entries of this dtype that is put down to rounding."""
    return max(16 * unit_of(dtype), 1e-12)


def unit_of(dtype: np.dtype) -> float:
    """Unit roundoff of entries of this dtype; integers count as float64."""
    return float(np.finfo(dtype).eps) / 2 if dtype.kind == "f" else UNIT


def tolerance_of(dtype: np.dtype, norm: Any) -> Any:
    """Threshold for negative eigenvalues put down to rounding of the entries, for a matrix of this Frobenius norm."""
    return max(16 * unit_of(dtype), 1e-10) * norm


def check(
    data: Any,
    policy: Policy,
    what: str,
    precision: np.dtype,
    names: np.ndarray | None = None,
    *,
    mend: bool = True,
) -> tuple[Any, float]:
    """Check that a matrix is finite and symmetric with a diagonal of 1: the mended matrix, and its error by rounding.

    Parameters
    ----------
    data : ndarray or csr_array, shape (n, n)
        Not changed; returned itself where nothing had to be mended.
    policy : Policy
        What may be mended.
    what : str
        What to call the matrix in messages.
    precision : dtype
        The coarsest dtype that the entries came in; it says how far they may be off by rounding.
    names : ndarray, optional
        The user's own positions of the items, for messages, where some items were left out.
    mend : bool
        Whether a dense matrix is made symmetric; without it there is no copy for that.
    """
    tolerance = entry_tolerance(precision)
    if is_sparse(data):
        return _check_sparse(data, policy, what, tolerance, names)
    return _check_dense(data, policy, what, tolerance, names, mend)


def _check_dense(
    data: Any, policy: Policy, what: str, tolerance: float, names: np.ndarray | None, mend: bool
) -> tuple[Any, float]:
    n, xp = int(data.shape[0]), namespace(data)
    names = np.arange(n) if names is None else names
    strips = blocks(n, n, most=BLOCK_BYTES if isinstance(data, np.ndarray) else DEVICE_BYTES)
    if xp.isdtype(data.dtype, "real floating"):
        for rows in strips:
            finite = xp.isfinite(data[rows, :])
            if not bool(xp.all(finite)):
                i, j = (int(k[0]) for k in xp.nonzero(~finite))
                raise not_finite(float(data[i + rows.start, j]), names[i + rows.start], names[j], what)
    entries = diagonal(data)
    slack = check_diagonal(entries, what, policy, tolerance, names)
    if policy.normalize:
        scale = move(1 / np.sqrt(entries), data)
        data = double(data)
        data *= scale[:, None]
        data *= scale
        slack += 4 * UNIT
    largest_difference, worst_entry = 0.0, (0, 0)
    for rows in strips:  # what lies left of a strip was compared with the strips before it
        first = rows.start
        difference = double(data[rows, first:])
        difference -= transposed(double(data[first:, rows]))
        difference = xp.reshape(xp.abs(difference), (-1,))
        flat_index = int(xp.argmax(difference))
        if float(difference[flat_index]) > largest_difference:
            i, j = divmod(flat_index, n - first)
            largest_difference, worst_entry = float(difference[flat_index]), (i + first, j + first)
    if largest_difference > 0:
        if largest_difference > tolerance and not policy.symmetrize:
            raise _asymmetry_error(data, worst_entry, names, what)
        if not mend:
            return data, slack
        data = double(data)
        data = data + transposed(data)
        data *= 0.5
        slack += UNIT + (0.0 if policy.symmetrize else largest_difference / 2)
    return data, slack


def _check_sparse(
    data: Any, policy: Policy, what: str, tolerance: float, names: np.ndarray | None
) -> tuple[Any, float]:
    from scipy import sparse

    n = data.shape[0]
    names = np.arange(n) if names is None else names
    if not np.isfinite(data.data).all():
        entry = int(np.flatnonzero(~np.isfinite(data.data))[0])
        i = int(np.searchsorted(data.indptr, entry, side="right")) - 1
        raise not_finite(data.data[entry], names[i], names[data.indices[entry]], what)
    diagonal = data.diagonal().astype(np.float64)
    slack = check_diagonal(diagonal, what, policy, tolerance, names)
    data = data.astype(np.float64)
    if policy.normalize:
        scale = sparse.dia_array((1 / np.sqrt(diagonal)[None], [0]), shape=(n, n))
        data = sparse.csr_array(scale @ data @ scale)
        slack += 4 * UNIT
    difference = abs(data - data.T).tocoo()
    largest_difference = float(difference.data.max()) if difference.nnz else 0.0
    if largest_difference > 0:
        if largest_difference > tolerance and not policy.symmetrize:
            entry = int(difference.data.argmax())
            raise _asymmetry_error(
                data, (int(difference.row[entry]), int(difference.col[entry])), names, what
            )
        data = sparse.csr_array((data + data.T) * 0.5)
        slack += UNIT + (0.0 if policy.symmetrize else largest_difference / 2)
    return data, slack


def check_diagonal(
    diagonal: np.ndarray, what: str, policy: Policy, tolerance: float, names: np.ndarray
) -> float:
    """Check the diagonal: a bound on the error that its deviation from 1 stands for, if that may be rounding."""
    if np.abs(diagonal).max(initial=0.0) < 1e-6:
        raise DiagonalError(
            f"the diagonal of {what} is 0, so these look like distances; expected similarities with a "
            "diagonal of 1. Pass kernel=vendimeter.kernels.FromDistances(scale=…) to turn distances into "
            "similarities.",
            option="kernel",
        )
    if policy.normalize:
        i = int(diagonal.argmin())
        if diagonal[i] <= 0:
            raise DiagonalError(
                f"{what}[{names[i]}, {names[i]}] = {digits(diagonal[i])}; normalize=True divides by the "
                "square root of the diagonal and expected it to be positive.",
                option="normalize",
            )
        return 0.0
    i = int(np.abs(diagonal - 1).argmax())
    deviation = float(abs(diagonal[i] - 1))
    if deviation > max(tolerance, 1e-9):
        raise DiagonalError(
            f"{what}[{names[i]}, {names[i]}] = {digits(diagonal[i])}; expected every item to have "
            f"similarity 1 with itself. Mend the kernel, or {mending('normalize')} to divide each {what}[i, j] by "
            f"√({what}[i, i] {what}[j, j]).",
            option="normalize",
        )
    return 2 * deviation


def check_stack(stack: Any) -> np.ndarray | None:
    """Bounds on the rounding error of the entries of each matrix of a stack; None if one needs a closer check.

    For stacks of many small matrices, where checking each alone would take longer than their eigenvalues.
    """
    xp, tolerance = namespace(stack), entry_tolerance(numpy_dtype(stack))
    with np.errstate(invalid="ignore"):  # what is not finite fails the comparisons, too
        matrices = double(stack)
        asymmetry = xp.max(xp.abs(matrices - transposed(matrices)), axis=(1, 2))
        diagonal_error = xp.max(xp.abs(xp.linalg.diagonal(matrices) - 1), axis=1)
        if not bool(xp.all((asymmetry <= tolerance) & (diagonal_error <= max(tolerance, 1e-9)))):
            return None
        return to_host(2 * diagonal_error + asymmetry / 2)


def not_finite(value: Any, i: Any, j: Any, what: str) -> MatrixError:
    """The error for a similarity that is NaN or infinite."""
    return MatrixError(f"{what}[{i}, {j}] is {value}; expected a finite similarity. Remove or mend the item.")


def _asymmetry_error(data: Any, entry: tuple[int, int], names: np.ndarray, what: str) -> AsymmetryError:
    (i, j), (a, b) = entry, names[list(entry)]
    if what.startswith("("):  # a formula of distances, which have to be symmetric themselves
        return AsymmetryError(
            f"{what} is not symmetric: {what}[{a}, {b}] = {digits(data[i, j])} but {what}[{b}, {a}] = "
            f"{digits(data[j, i])}. Expected equal distances; mend D, for instance by (D + D.T) / 2."
        )
    return AsymmetryError(
        f"{what} is not symmetric: {what}[{a}, {b}] = {digits(data[i, j])} but {what}[{b}, {a}] = "
        f"{digits(data[j, i])}. Expected equal similarities; mend the kernel, or {mending('symmetrize')} to average "
        "the two.",
        option="symmetrize",
    )
