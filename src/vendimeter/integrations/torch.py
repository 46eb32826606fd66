"""The Vendi Score of PyTorch tensors, with its gradient: a loss, a regulariser, a number to log.

The score depends on the items through ρ = Σ p φφᵀ alone (the n×n matrix √p_i K_ij √p_j has the same eigenvalues; the
smaller of the two is solved). With λ the eigenvalues of ρ divided by their sum, U its eigenvectors and VS the score,

    ∂VS/∂ρ = U diag(m) Uᵀ,    m = VS q ((λ VS)^(q−1) − 1)/(1−q),    which is −VS log(λ VS) at q = 1.

No eigenvector is differentiated, so equal eigenvalues are harmless. The −1 comes from the division by the sum: a factor
on ρ changes nothing. What needs a convention:

- q = ∞: 1/λ_max has a kink where λ_max is multiple. The mean over its eigenspace is taken, a subgradient.
- Directions without weight, λ at the level of rounding. Where the score is differentiable their m has no effect, since
  no item leaves the span of the items to first order; so it only has to be harmless. For q ≥ 1 it is taken at the level
  of rounding (the limit for q > 1; at q = 1 the derivative into such a direction is infinite). For q < 1 that would
  be huge and enlarge rounding, and it is 0.

Everything is computed in float64, whatever the dtype of the input. Autocast leaves float64 alone, so it needs no care.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vendimeter._messages import brief, digits, shape_of, unknown
from vendimeter._optional import require
from vendimeter.errors import (
    AsymmetryError,
    DiagonalError,
    EmptyError,
    IndefiniteError,
    InputError,
    MatrixError,
    UnansweredError,
    UnknownNameError,
)
from vendimeter.spectrum import UNIT, parse_order

if TYPE_CHECKING:
    import torch
else:
    torch = require("torch", extra="torch", purpose="vendimeter.integrations.torch")

__all__ = ["vendi_score"]

KERNELS = ("cosine", "precomputed")
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
# How far weights may sum from 1, and how far a similarity matrix may be off, by rounding of their dtype. A matrix that
# was computed with ‖a‖² + ‖b‖² − 2ab is off by many roundings, and a training run should not stop for that.
SUM_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
ENTRY_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}


def vendi_score(
    X: torch.Tensor, q: float | str = 1, *, kernel: str = "cosine", weights: torch.Tensor | None = None
) -> torch.Tensor:
    """The Vendi Score of the rows of a tensor, differentiable once.

    Parameters
    ----------
    X : Tensor of shape (..., n, d), or (..., n, n) if precomputed
        The items, one a row, or their similarities. Leading dimensions are a batch: one score each.
    q : float or str
        The order, above 0 and up to ``"inf"``. At ``"inf"`` the gradient is a subgradient where the largest eigenvalue
        is multiple.
    kernel : {"cosine", "precomputed"}
        ``"cosine"`` divides each row by its norm. With ``"precomputed"``, `X` is a symmetric, positive semidefinite
        matrix with a diagonal of 1, which you compute with PyTorch from whatever you wish to move.
    weights : Tensor of shape (n,) or (..., n), optional
        Probabilities of the items; they sum to 1. The gradient is that of the score of weights/Σweights. Items of
        weight 0 are absent, and what stands in their rows is not looked at: sets of different sizes can be padded.

    Returns
    -------
    Tensor of shape (...)
        On the device of `X` and of its dtype; float32 if that is float16 or bfloat16. Computed in float64.

    Raises
    ------
    InputError
        If X or the weights cannot be used; the message names the place. `EmptyError` without items, `MatrixError` if
        the matrix is not a similarity matrix.

    Notes
    -----
    Time grows with n d · min(n, d) and memory with n d, and checking the input reads one value from the device. Under
    ``torch.no_grad()``, or if nothing requires a gradient, no eigenvectors are computed.

    Examples
    --------
    >>> import torch
    >>> from vendimeter.integrations.torch import vendi_score
    >>> X = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], requires_grad=True)
    >>> score = vendi_score(X)
    >>> print(f"{score.item():.4f}")
    1.8899
    >>> score.backward()
    >>> vendi_score(X.detach() + 0.1 * X.grad) > score
    tensor(True)
    """
    order = parse_order(q)
    if order == 0:
        raise InputError(
            "q=0 is the rank, which is constant almost everywhere, so it has no useful gradient; expected an order "
            "above 0. Take a small one, such as q=0.1, or vendimeter.score(…, q=0) for the rank as a number."
        )
    _check_kernel(kernel)
    _check_tensor(X, "X")
    _check_shape(X, kernel)
    if weights is not None:
        _check_tensor(weights, "weights")
        _check_weights(weights, X)
    wanted = [torch.is_grad_enabled() and t is not None and t.requires_grad for t in (X, weights)]
    return _VendiScore.apply(X, weights, order, kernel == "cosine", *wanted)[0]  # type: ignore[index]


# ---------------------------------------------------------------------------------- what can be checked without reading


def _check_kernel(kernel: Any) -> None:
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


def _check_tensor(value: Any, name: str) -> None:
    if not isinstance(value, torch.Tensor):
        raise InputError(
            f"{name} is a {type(value).__name__}; expected a torch.Tensor. Convert it with torch.as_tensor, or use "
            "vendimeter.score, which takes anything."
        )
    if value.dtype not in DTYPES or value.layout != torch.strided or value.is_nested:
        raise InputError(
            f"{name} is a tensor of {value.dtype} with layout {value.layout}; expected a dense one of float64, "
            f"float32, float16 or bfloat16. Convert it, for example with {name}.to_dense() or {name}.float()."
        )


def _check_shape(X: torch.Tensor, kernel: str) -> None:
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


def _check_weights(weights: torch.Tensor, X: torch.Tensor) -> None:
    try:
        fits = weights.shape[-1:] == X.shape[-2:-1] and weights.expand(X.shape[:-1]) is not None
    except RuntimeError:
        fits = False
    if not fits:
        raise InputError(
            f"weights has shape {shape_of(weights.shape)} and X has shape {shape_of(X.shape)}; expected one weight an "
            f"item, {shape_of(X.shape[-2:-1])} for all sets alike or {shape_of(X.shape[:-1])}."
        )
    if weights.device != X.device:
        raise InputError(f"weights is on {weights.device} and X on {X.device}; move both to one device.")


def _double(value: torch.Tensor, name: str) -> torch.Tensor:
    try:
        return value.to(torch.float64)
    except TypeError as error:  # what devices without float64 say, mps above all
        raise InputError(
            f"{name} is on {value.device}, which has no float64, and the score needs it; expected another device. Pass "
            f"{name}.cpu(): gradients flow back through the copy."
        ) from error


# --------------------------------------------------------------------------------------- what must be read


class _Faults:
    """What is wrong with the numbers: found on the device, read from it once, and put in words only if there is any."""

    def __init__(self) -> None:
        self._found: list[tuple[torch.Tensor, Callable[[tuple[int, ...]], InputError]]] = []

    def add(self, where: torch.Tensor, explain: Callable[[tuple[int, ...]], InputError]) -> None:
        """Places that are at fault, and the error for one of them."""
        self._found.append((where, explain))

    def raise_any(self) -> None:
        """Raise the error for the first place of the first fault, if there is one."""
        if not torch.stack([where.any() for where, _ in self._found]).any():  # the one read
            return
        for where, explain in self._found:
            if where.any():
                raise explain(tuple(where.nonzero()[0].tolist()))


def _place(name: str, index: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def _probabilities(weights: torch.Tensor | None, X: torch.Tensor, faults: _Faults) -> torch.Tensor:
    """The weights divided by their sum, which is 1 up to rounding; equal ones if there are none."""
    if weights is None:
        n = X.shape[-2]
        return _double(X.new_full((n,), 1.0), "X") / n
    values = _double(weights, "weights")
    bad = ~((values >= 0) & (values < math.inf))
    faults.add(
        bad,
        lambda at: InputError(
            f"{_place('weights', at)} is {digits(weights[at].item())}; expected finite numbers from 0 up."
        ),
    )
    values = values.masked_fill(bad, 0.0)
    total = values.sum(dim=-1, keepdim=True)
    faults.add(
        ((total - 1).abs() > SUM_TOLERANCE[weights.dtype]).squeeze(-1),
        lambda at: InputError(
            f"{_place('weights', at)} sum to {digits(total[at].item())}; expected probabilities that sum to 1. "
            "Divide them by their sum, or take torch.softmax of free parameters."
        ),
    )
    # A sum of 0 is reported with the other faults, later; until then nothing may be NaN, which eigensolvers refuse.
    return values / total.clamp(min=torch.finfo(torch.float64).tiny)


def _is_wide(X: torch.Tensor) -> bool:
    """Whether the n×n side is the smaller one."""
    return X.shape[-2] <= X.shape[-1]


def _roots(p: torch.Tensor) -> torch.Tensor:
    """√p as a column."""
    return p.sqrt().unsqueeze(-1)


def _unit_rows(X: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Rows divided by their norms, the norms in two factors, and which rows have none; those become 0."""
    rows = _double(X, "X")
    # The largest entry first: squares of the entries may over- or underflow, and it tells of NaN, infinity and 0.
    largest = torch.linalg.vector_norm(rows, math.inf, dim=-1, keepdim=True)
    bad = ~((largest > 0) & (largest < math.inf))
    largest = largest.masked_fill(bad, 1.0)
    rows = rows / largest
    rows.masked_fill_(bad, 0.0)
    length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True).masked_fill(bad, 1.0)
    rows /= length
    return rows, (largest, length), bad.squeeze(-1)


def _row_fault(X: torch.Tensor, at: tuple[int, ...]) -> InputError:
    row = X[at]
    place = f"row {at[-1]} of {_place('X', at[:-1])}"
    if bool((row == 0).all()):
        return InputError(
            f"{place} is all zeros, and the cosine similarity of a zero vector is undefined; expected a vector. Remove "
            "it, give it the weight 0, or use another kernel."
        )
    value = row[~row.isfinite()][0].item()
    return InputError(f"{place} holds the value {value}; expected finite numbers. Remove or fill it.")


def _similarities(X: torch.Tensor, present: torch.Tensor, faults: _Faults) -> torch.Tensor:
    """A matrix as given, checked where both items are present, finite and symmetric to the last digit."""
    matrix = _double(X, "X")
    tolerance = ENTRY_TOLERANCE[X.dtype]
    finite = matrix.isfinite()
    off = (matrix.diagonal(dim1=-2, dim2=-1) - 1).abs() > tolerance
    matrix = matrix.masked_fill(~finite, 0.0)
    uneven = (matrix - matrix.mT).abs() > tolerance
    pairs = present.unsqueeze(-1) & present.unsqueeze(-2)
    faults.add(
        ~finite & pairs,
        lambda at: MatrixError(
            f"{_place('X', at)} is {X[at].item()}; expected a finite similarity. Remove or mend the item."
        ),
    )
    faults.add(
        off & present,
        lambda at: DiagonalError(
            f"{_place('X', (*at, at[-1]))} = {digits(X[(*at, at[-1])].item())}; expected every item to have similarity "
            "1 with itself. Mend the kernel, or divide each X[i, j] by √(X[i, i] X[j, j])."
        ),
    )
    faults.add(
        uneven & pairs,
        lambda at: AsymmetryError(
            f"{_place('X', at)} = {digits(X[at].item())} but "
            f"{_place('X', (*at[:-2], at[-1], at[-2]))} = {digits(X.mT[at].item())}; expected equal similarities. Mend "
            "the kernel, or pass (X + X.mT) / 2."
        ),
    )
    return matrix / 2 + matrix.mT / 2


def _indefinite(values: torch.Tensor, at: tuple[int, ...]) -> IndefiniteError:
    mass = -values.clamp(max=0.0).sum().item()
    return IndefiniteError(
        f"{_place('X', at)} is not positive semidefinite: weighted and scaled to a trace of 1, its lowest eigenvalue "
        f"is {values[0].item():.4g} (expected ≥ 0), and its negative ones hold {mass:.4g} of the total. Use a positive "
        " semidefinite kernel, and pass the matrix in the precision it was computed in."
    )


# ------------------------------------------------------------------------------------------------- score and derivative


def _log_score(x: torch.Tensor, q: float) -> torch.Tensor:
    """The logarithm of the score from eigenvalues ≥ 0 with sum 1; as in `vendimeter.spectrum`, stable near q = 1."""
    if math.isinf(q):
        return -x.amax(dim=-1).log()
    if q == 1:
        return -torch.xlogy(x, x).sum(dim=-1)
    if abs(q - 1) < 0.5:
        log = torch.where(x > 0, x, 1.0).log()
        return torch.log1p((x * torch.expm1((q - 1) * log)).sum(dim=-1)) / (1 - q)
    return torch.logsumexp(q * x.log(), dim=-1) / (1 - q)


def _slopes(
    x: torch.Tensor, log_score: torch.Tensor, q: float, noise: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The m at the head of this module, and its value for directions without weight."""
    log_score = log_score.unsqueeze(-1)
    score = log_score.exp()
    if math.isinf(q):
        ties = x >= x.amax(dim=-1, keepdim=True) - noise
        return score - score.square() * ties / ties.sum(dim=-1, keepdim=True), score

    def m(x: torch.Tensor) -> torch.Tensor:
        log = x.log() + log_score
        return -score * log if q == 1 else score * q * torch.expm1((q - 1) * log) / (1 - q)

    outside = m(noise) if q >= 1 else torch.zeros_like(noise)
    return torch.where(x > noise, m(torch.maximum(x, noise)), outside), outside


class _VendiScore(torch.autograd.Function):
    """(X, weights) → the score, and what the backward pass needs: ∂VS/∂ρ and ∂VS/∂p, as far as they are wanted."""

    @staticmethod
    def forward(
        X: torch.Tensor,
        weights: torch.Tensor | None,
        q: float,
        cosine: bool,
        want_X: bool,
        want_weights: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        faults = _Faults()
        p = _probabilities(weights, X, faults)
        present = (p > 0).expand(X.shape[:-1])
        if cosine:
            items, _, bad = _unit_rows(X)
            faults.add(bad & present, lambda at: _row_fault(X, at))
        else:
            items = _similarities(X, present, faults)
        dual = not cosine or _is_wide(X)
        if dual:
            items = items @ items.mT if cosine else items
            rho = _roots(p) * items * _roots(p).mT
        else:
            rho = items.mT @ (items * p.unsqueeze(-1))

        if want_X or want_weights:
            values, vectors = torch.linalg.eigh(rho)
        else:
            values, vectors = torch.linalg.eigvalsh(rho), None
        # How far the eigenvalues are off: what the eigensolver may do, and what rounding of the entries did, which
        # shows in negative ones. It is the rule of Spectrum.rank_threshold.
        negative = torch.linalg.vector_norm(values.clamp(max=0.0), dim=-1, keepdim=True)
        noise = 2 * (10 * (values.shape[-1] + 4) * UNIT * values[..., -1:] + negative)
        if not cosine:
            tolerance = ENTRY_TOLERANCE[X.dtype] * torch.linalg.vector_norm(values, dim=-1)
            faults.add(values[..., 0] < -tolerance, lambda at: _indefinite(values[at], at))
        faults.raise_any()

        x = values.clamp(min=0.0)
        if q < 1:  # there rounding would count
            x = torch.where((x > noise) | (x == x.amax(dim=-1, keepdim=True)), x, 0.0)
        trace = x.sum(dim=-1, keepdim=True)
        x = x / trace
        log_score = _log_score(x, q)
        score = log_score.exp().to(X.dtype if X.dtype.itemsize >= 4 else torch.float32)
        if vectors is None:
            return score, None, None

        m, outside = _slopes(x, log_score, q, noise)
        slope = to_items = None
        if want_X:
            slope = (vectors * (m / trace).unsqueeze(-2)) @ vectors.mT
        if want_weights:  # φᵀ (∂VS/∂ρ) φ of each item
            if dual:
                # From the n×n side, φᵀ times the k-th eigenvector of ρ is (K √p u)_k / √λ_k. Unlike a division by p,
                # this holds for items of weight 0 too.
                share = (items * _roots(p).mT) @ vectors
                m = torch.where(values > noise, (m - outside) / values, 0.0)
            else:
                share, outside = items @ vectors, 0.0
            to_items = (outside + (share.square() * m.unsqueeze(-2)).sum(dim=-1)) / trace
        return score, slope, to_items

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        X, weights, _, ctx.cosine, _, _ = inputs
        _, slope, to_items = output
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(t for t in (slope, to_items) if t is not None))
        # Unit rows are computed again from X, which is there anyway, rather than kept as a float64 copy.
        ctx.save_for_backward(X, weights, slope, to_items)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[torch.Tensor | None, ...]:
        if grads[0] is None:  # undefined, which stands for 0
            return (None,) * 6
        X, weights, slope, to_items = ctx.saved_tensors
        to_X = to_weights = None
        with torch.no_grad():
            upstream = grads[0].to(torch.float64).unsqueeze(-1)
            if slope is not None:
                p = _probabilities(weights, X, _Faults())
                to_X = _rows_slope(X, p, slope) if ctx.cosine else _roots(p) * slope * _roots(p).mT
                to_X = (to_X * upstream.unsqueeze(-1)).to(X.dtype)
            if to_items is not None:
                total = weights.to(torch.float64).sum(dim=-1, keepdim=True)
                to_weights = (to_items / total * upstream).sum_to_size(weights.shape).to(weights.dtype)
        if torch.is_grad_enabled():  # create_graph=True
            to_X = None if to_X is None else _Once.apply(to_X, X)
            to_weights = None if to_weights is None else _Once.apply(to_weights, weights)
        return to_X, to_weights, None, None, None, None  # type: ignore[return-value]


def _rows_slope(X: torch.Tensor, p: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    """∂VS/∂X from ∂VS/∂ρ, where ρ is of unit rows."""
    rows, norms, _ = _unit_rows(X)
    pulled = _roots(p) * rows
    moved = 2 * _roots(p) * (slope @ pulled if _is_wide(X) else pulled @ slope)
    moved -= rows * (rows * moved).sum(dim=-1, keepdim=True)  # the length of a row does not matter
    return moved.div_(norms[0]).div_(norms[1])


class _Once(torch.autograd.Function):
    """The gradient as it is, with an error in place of its own derivative, which would be silently 0 otherwise."""

    @staticmethod
    def forward(gradient: torch.Tensor, _of: torch.Tensor) -> torch.Tensor:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise UnansweredError(
            "a second derivative of vendi_score was asked for, and it has only a first one; expected no backward pass "
            "through its gradient. Detach the gradient if it is meant as a constant."
        )
