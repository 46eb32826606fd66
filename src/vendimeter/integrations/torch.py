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
from typing import TYPE_CHECKING, Any

from vendimeter.errors import InputError, UnansweredError
from vendimeter.integrations.torch_checks import (
    ENTRY_TOLERANCE,
    Faults,
    check_kernel,
    check_shape,
    check_tensor,
    check_weights,
    indefinite_error,
    probabilities,
    row_error,
    similarities,
    to_float64,
)
from vendimeter.optional import require
from vendimeter.spectrum import UNIT, parse_order

if TYPE_CHECKING:
    import torch
else:
    torch = require("torch", extra="torch", purpose="vendimeter.integrations.torch")

__all__ = ["vendi_score"]


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
    check_kernel(kernel)
    check_tensor(X, "X")
    check_shape(X, kernel)
    if weights is not None:
        check_tensor(weights, "weights")
        check_weights(weights, X)
    needs_gradient = [
        torch.is_grad_enabled() and tensor is not None and tensor.requires_grad for tensor in (X, weights)
    ]
    return _VendiScore.apply(X, weights, order, kernel == "cosine", *needs_gradient)[0]  # type: ignore[index]


# ------------------------------------------------------------------------------------------------- score and derivative


def _is_wide(X: torch.Tensor) -> bool:
    """Whether the n×n side is the smaller one."""
    return X.shape[-2] <= X.shape[-1]


def _sqrt_column(p: torch.Tensor) -> torch.Tensor:
    """√p as a column."""
    return p.sqrt().unsqueeze(-1)


def _unit_rows(X: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Rows divided by their norms, the norms in two factors, and which rows have none; those become 0."""
    rows = to_float64(X, "X")
    # The largest entry first: squares of the entries may over- or underflow, and it tells of NaN, infinity and 0.
    largest = torch.linalg.vector_norm(rows, math.inf, dim=-1, keepdim=True)
    is_bad = ~((largest > 0) & (largest < math.inf))
    largest = largest.masked_fill(is_bad, 1.0)
    rows = rows / largest
    rows.masked_fill_(is_bad, 0.0)
    length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True).masked_fill(is_bad, 1.0)
    rows /= length
    return rows, (largest, length), is_bad.squeeze(-1)


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


def _eigenvalue_gradient(
    x: torch.Tensor, log_score: torch.Tensor, q: float, noise: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The m of the module's docstring, and its value for directions without weight."""
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
        needs_X: bool,
        needs_weights: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        faults = Faults()
        p = probabilities(weights, X, faults)
        present = (p > 0).expand(X.shape[:-1])
        if cosine:
            items, _, bad_rows = _unit_rows(X)
            faults.add(bad_rows & present, lambda at: row_error(X, at))
        else:
            items = similarities(X, present, faults)
        dual = not cosine or _is_wide(X)
        if dual:
            items = items @ items.mT if cosine else items
            rho = _sqrt_column(p) * items * _sqrt_column(p).mT
        else:
            rho = items.mT @ (items * p.unsqueeze(-1))

        if needs_X or needs_weights:
            values, vectors = torch.linalg.eigh(rho)
        else:
            values, vectors = torch.linalg.eigvalsh(rho), None
        # How far the eigenvalues are off: what the eigensolver may do, and what rounding of the entries did, which
        # shows in negative ones. It is the rule of Eigenvalues.rank_threshold.
        negative = torch.linalg.vector_norm(values.clamp(max=0.0), dim=-1, keepdim=True)
        noise = 2 * (10 * (values.shape[-1] + 4) * UNIT * values[..., -1:] + negative)
        if not cosine:
            tolerance = ENTRY_TOLERANCE[X.dtype] * torch.linalg.vector_norm(values, dim=-1)
            faults.add(values[..., 0] < -tolerance, lambda at: indefinite_error(values[at], at))
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

        m, outside = _eigenvalue_gradient(x, log_score, q, noise)
        slope = item_gradient = None
        if needs_X:
            slope = (vectors * (m / trace).unsqueeze(-2)) @ vectors.mT
        if needs_weights:  # φᵀ (∂VS/∂ρ) φ of each item
            if dual:
                # From the n×n side, φᵀ times the k-th eigenvector of ρ is (K √p u)_k / √λ_k. Unlike a division by p,
                # this holds for items of weight 0 too.
                projections = (items * _sqrt_column(p).mT) @ vectors
                m = torch.where(values > noise, (m - outside) / values, 0.0)
            else:
                projections, outside = items @ vectors, 0.0
            item_gradient = (outside + (projections.square() * m.unsqueeze(-2)).sum(dim=-1)) / trace
        return score, slope, item_gradient

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        X, weights, _, ctx.cosine, _, _ = inputs
        _, slope, item_gradient = output
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(tensor for tensor in (slope, item_gradient) if tensor is not None))
        # Unit rows are computed again from X, which is there anyway, rather than kept as a float64 copy.
        ctx.save_for_backward(X, weights, slope, item_gradient)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[torch.Tensor | None, ...]:
        if grads[0] is None:  # undefined, which stands for 0
            return (None,) * 6
        X, weights, slope, item_gradient = ctx.saved_tensors
        X_gradient = weight_gradient = None
        with torch.no_grad():
            upstream = grads[0].to(torch.float64).unsqueeze(-1)
            if slope is not None:
                p = probabilities(weights, X, Faults())
                X_gradient = (
                    _embedding_gradient(X, p, slope)
                    if ctx.cosine
                    else _sqrt_column(p) * slope * _sqrt_column(p).mT
                )
                X_gradient = (X_gradient * upstream.unsqueeze(-1)).to(X.dtype)
            if item_gradient is not None:
                total = weights.to(torch.float64).sum(dim=-1, keepdim=True)
                weight_gradient = (
                    (item_gradient / total * upstream).sum_to_size(weights.shape).to(weights.dtype)
                )
        if torch.is_grad_enabled():  # create_graph=True
            X_gradient = None if X_gradient is None else _OnceDifferentiable.apply(X_gradient, X)
            weight_gradient = (
                None if weight_gradient is None else _OnceDifferentiable.apply(weight_gradient, weights)
            )
        return X_gradient, weight_gradient, None, None, None, None  # type: ignore[return-value]


def _embedding_gradient(X: torch.Tensor, p: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    """∂VS/∂X from ∂VS/∂ρ, where ρ is computed from unit rows."""
    rows, norms, _ = _unit_rows(X)
    scaled_rows = _sqrt_column(p) * rows
    gradient = 2 * _sqrt_column(p) * (slope @ scaled_rows if _is_wide(X) else scaled_rows @ slope)
    gradient -= rows * (rows * gradient).sum(dim=-1, keepdim=True)  # the length of a row does not matter
    return gradient.div_(norms[0]).div_(norms[1])


class _OnceDifferentiable(torch.autograd.Function):
    """The identity on a gradient, with an error in place of its own derivative, which would be silently 0 otherwise."""

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
