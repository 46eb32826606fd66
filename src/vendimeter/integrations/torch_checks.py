"""Checks of tensors before they are scored: of shapes and dtypes, and of values, read from the device once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vendimeter.errors import (
    AsymmetryError,
    DiagonalError,
    EmptyError,
    IndefiniteError,
    InputError,
    MatrixError,
    UnknownNameError,
)
from vendimeter.messages import brief, shape_of, unknown
from vendimeter.optional import require
from vendimeter.present.numbers import digits

if TYPE_CHECKING:
    import torch
else:
    torch = require("torch", extra="torch", purpose="vendimeter.integrations.torch")

__all__ = [
    "ENTRY_TOLERANCE",
    "Faults",
    "check_kernel",
    "check_shape",
    "check_tensor",
    "check_weights",
    "indefinite_error",
    "probabilities",
    "row_error",
    "similarities",
    "to_float64",
]

KERNELS = ("cosine", "precomputed")
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
# How far weights may sum from 1, and how far a similarity matrix may be off, by rounding of their dtype. A matrix that
# was computed with ‖a‖² + ‖b‖² − 2ab is off by many roundings, and a training run should not stop for that.
SUM_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
ENTRY_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}


# ------------------------------------------------------------------------------------ checks that read no device memory


def check_kernel(kernel: Any) -> None:
    """Raise an error for a kernel that `vendi_score` does not have."""
    if isinstance(kernel, str) and kernel in KERNELS:
        return
    if isinstance(kernel, str):
        error = unknown("kernel", kernel, KERNELS)
        raise UnknownNameError(
            f"{error} Compute any other with PyTorch and pass the matrix as kernel='precomputed'."
        )
    raise InputError(
        f"kernel={brief(kernel)}; expected 'cosine' or 'precomputed'. Compute any other kernel with PyTorch and pass "
        "the matrix as kernel='precomputed'."
    )


def check_tensor(value: Any, name: str) -> None:
    """Raise an error for anything but a dense tensor of a floating-point dtype."""
    if not isinstance(value, torch.Tensor):
        raise InputError(
            f"{name} is a {type(value).__name__}; expected a torch.Tensor. Convert it with torch.as_tensor, or use "
            "vendimeter.score, which takes anything."
        )
    if value.dtype not in DTYPES or value.layout != torch.strided or value.is_nested:
        raise InputError(
            f"{name} is a tensor of {value.dtype} with layout {value.layout}; expected a dense one of float64, "
            f"float32, float16 or bfloat16. "
            + (
                f"Split it into {name}.real and {name}.imag."
                if value.dtype.is_complex
                else f"Convert it with {name}.float()."
                if value.layout == torch.strided and not value.is_nested
                else f"Convert it with {name}.to_dense()."
            )
        )


def check_shape(X: torch.Tensor, kernel: str) -> None:
    """Raise an error for a shape that does not fit the kernel, or has no items."""
    shape = shape_of(X.shape)
    expected = "(..., n, d)" if kernel == "cosine" else "(..., n, n)"
    if X.ndim < 2:
        raise InputError(f"X has shape {shape}; expected {expected}: items along the last but one dimension.")
    n, width = X.shape[-2:]
    if n == 0:
        raise EmptyError(f"X has shape {shape}: no items, and the diversity of nothing is undefined.")
    if kernel == "precomputed" and n != width:
        raise MatrixError(
            f"X has shape {shape}; with kernel='precomputed' expected a square matrix of similarities, {expected}. "
            "For vectors use kernel='cosine'."
        )
    if kernel == "cosine" and width < 2:
        what = "two numbers is only ever 1 or −1" if width else "vectors without entries is undefined"
        raise InputError(
            f"X has shape {shape}, and the cosine similarity of {what}; expected at least two columns. For numbers "
            "compute a kernel such as torch.exp(-(x - x.mT) ** 2) and pass it with kernel='precomputed'."
        )


def check_weights(weights: torch.Tensor, X: torch.Tensor) -> None:
    """Raise an error for weights whose shape or device does not fit the items."""
    try:
        fits = weights.shape[-1:] == X.shape[-2:-1] and weights.expand(X.shape[:-1]) is not None
    except RuntimeError:
        fits = False
    if not fits:
        raise InputError(
            f"weights has shape {shape_of(weights.shape)} and X has shape {shape_of(X.shape)}; expected one weight an "
            f"item, {shape_of(X.shape[-2:-1])}"
            + (f" for all sets alike or {shape_of(X.shape[:-1])}." if X.ndim > 2 else ".")
        )
    if weights.device != X.device:
        raise InputError(f"weights is on {weights.device} and X on {X.device}; move both to one device.")


def to_float64(value: torch.Tensor, name: str) -> torch.Tensor:
    """Convert a tensor to float64, with an error for devices that lack it."""
    try:
        return value.to(torch.float64)
    except TypeError as error:  # what devices without float64 say, mps above all
        raise InputError(
            f"{name} is on {value.device}, which has no float64, and the score needs it; expected another device. Pass "
            f"{name}.cpu(): gradients flow back through the copy."
        ) from error


# ------------------------------------------------------------------------------------- checks that read device memory


class Faults:
    """Checks of values, computed on the device and read from it once; messages are made only for faults."""

    def __init__(self) -> None:
        self._checks: list[tuple[torch.Tensor, Callable[[tuple[int, ...]], InputError]]] = []

    def add(self, where: torch.Tensor, explain: Callable[[tuple[int, ...]], InputError]) -> None:
        """Add a mask of faulty values, and a function from an index to its error."""
        self._checks.append((where, explain))

    def raise_any(self) -> None:
        """Raise the error for the first place of the first fault, if there is one."""
        if not torch.stack([where.any() for where, _ in self._checks]).any():  # the one read
            return
        for where, explain in self._checks:
            if where.any():
                raise explain(tuple(where.nonzero()[0].tolist()))


def _place(name: str, index: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def probabilities(weights: torch.Tensor | None, X: torch.Tensor, faults: Faults) -> torch.Tensor:
    """The weights divided by their sum, which is 1 up to rounding; equal ones if there are none."""
    if weights is None:
        n = X.shape[-2]
        return to_float64(X.new_full((n,), 1.0), "X") / n
    values = to_float64(weights, "weights")
    is_bad = ~((values >= 0) & (values < math.inf))
    faults.add(
        is_bad,
        lambda index: InputError(
            f"{_place('weights', index)} is {digits(weights[index].item())}; expected finite numbers from 0 up."
        ),
    )
    values = values.masked_fill(is_bad, 0.0)
    total = values.sum(dim=-1, keepdim=True)
    faults.add(
        ((total - 1).abs() > SUM_TOLERANCE[weights.dtype]).squeeze(-1),
        lambda index: InputError(
            f"{_place('weights', index)} sum to {digits(total[index].item())}; expected probabilities that sum to 1. "
            "Divide them by their sum, or take torch.softmax of free parameters."
        ),
    )
    # A sum of 0 is reported with the other faults, later; until then nothing may be NaN, which eigensolvers refuse.
    return values / total.clamp(min=torch.finfo(torch.float64).tiny)


def row_error(X: torch.Tensor, index: tuple[int, ...]) -> InputError:
    """The error for a row that is zero or not finite."""
    row = X[index]
    place = f"row {index[-1]} of {_place('X', index[:-1])}"
    if bool((row == 0).all()):
        return InputError(
            f"{place} is all zeros, and the cosine similarity of a zero vector is undefined; expected a vector. Remove "
            "it, give it the weight 0, or use another kernel."
        )
    value = row[~row.isfinite()][0].item()
    return InputError(f"{place} holds the value {value}; expected finite numbers. Remove or fill it.")


def similarities(X: torch.Tensor, present: torch.Tensor, faults: Faults) -> torch.Tensor:
    """The similarity matrix, with checks where both items are present; made finite and exactly symmetric."""
    matrix = to_float64(X, "X")
    tolerance = ENTRY_TOLERANCE[X.dtype]
    finite = matrix.isfinite()
    wrong_diagonal = (matrix.diagonal(dim1=-2, dim2=-1) - 1).abs() > tolerance
    matrix = matrix.masked_fill(~finite, 0.0)
    is_asymmetric = (matrix - matrix.mT).abs() > tolerance
    pairs = present.unsqueeze(-1) & present.unsqueeze(-2)
    faults.add(
        ~finite & pairs,
        lambda index: MatrixError(
            f"{_place('X', index)} is {X[index].item()}; expected a finite similarity. Remove or mend the item."
        ),
    )
    faults.add(
        wrong_diagonal & present,
        lambda index: DiagonalError(
            f"{_place('X', (*index, index[-1]))} = {digits(X[(*index, index[-1])].item())}; expected every item to "
            "have similarity 1 with itself. Mend the kernel, or divide each X[i, j] by √(X[i, i] X[j, j])."
        ),
    )
    faults.add(
        is_asymmetric & pairs,
        lambda index: AsymmetryError(
            f"{_place('X', index)} = {digits(X[index].item())} but "
            f"{_place('X', (*index[:-2], index[-1], index[-2]))} = {digits(X.mT[index].item())}; expected equal "
            "similarities. Mend the kernel, or pass (X + X.mT) / 2."
        ),
    )
    return matrix / 2 + matrix.mT / 2


def indefinite_error(values: torch.Tensor, index: tuple[int, ...]) -> IndefiniteError:
    """The error for a matrix that is not positive semidefinite."""
    mass = -values.clamp(max=0.0).sum().item()
    return IndefiniteError(
        f"{_place('X', index)} is not positive semidefinite: weighted and scaled to a trace of 1, its lowest "
        f"eigenvalue is {values[0].item():.4g} (expected ≥ 0), and its negative ones hold {mass:.4g} of the total. Use "
        "a positive semidefinite kernel, and pass the matrix in the precision it was computed in."
    )
