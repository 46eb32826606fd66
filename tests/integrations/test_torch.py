"""The differentiable score: its values are those of vendimeter.score, its gradients those of finite differences."""

from __future__ import annotations

import math
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import (
    AsymmetryError,
    DiagonalError,
    EmptyError,
    IndefiniteError,
    InputError,
    MatrixError,
    MissingDependencyError,
    UnansweredError,
    UnknownNameError,
)

torch = pytest.importorskip("torch")

from vendimeter.integrations.torch import vendi_score  # noqa: E402 — it needs torch

ROOT = Path(__file__).resolve().parents[2]
ORDERS = [0.5, 0.9, 1, 1.0001, 1.5, 2, 3, "inf"]
MORE_ORDERS = [0.05, 0.25, 0.999999, 1 + 1e-12, 1.49, 1.51, 7, 40, 1000, *ORDERS]
NAN, INF = math.nan, math.inf


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(X: torch.Tensor) -> torch.Tensor:
    rows = X / X.norm(dim=-1, keepdim=True)
    return rows @ rows.mT


def rbf(x: torch.Tensor, sigma: float = 1.0) -> torch.Tensor:
    return torch.exp(-(x.unsqueeze(-2) - x.unsqueeze(-3)).square().sum(-1) / (2 * sigma**2))


def similarity(A: torch.Tensor) -> torch.Tensor:
    """A matrix that may be moved in every entry and stays symmetric with a diagonal of 1."""
    eye = torch.eye(A.shape[-1], dtype=A.dtype)
    return torch.where(eye == 1, 1.0, (A + A.mT) / 2)


def reference(X: Any, q: Any, kernel: Any = None, weights: Any = None) -> float:
    """The score by vendimeter.score, with `Cosine()` because a square X is meant as rows here."""
    p = None if weights is None else weights.numpy()
    return float(vm.score(X.numpy(), kernel or vm.kernels.Cosine(), q=q, weights=p))


def gradient(f: Callable[[torch.Tensor], torch.Tensor], X: torch.Tensor) -> torch.Tensor:
    X = X.detach().clone().requires_grad_()
    f(X).sum().backward()
    assert X.grad is not None
    return X.grad


def difference(
    f: Callable[[torch.Tensor], torch.Tensor], X: torch.Tensor, way: torch.Tensor, h: float
) -> float:
    """The derivative of f along `way` by central differences of fourth order."""
    near, far = (f(X + k * way) - f(X - k * way) for k in (h, 2 * h))
    return float((8 * near - far).sum() / (12 * h))


# --------------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("q", MORE_ORDERS)
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (5, 5), (1, 4), (40, 12), (12, 40)])
def test_values_are_those_of_score(q, shape):
    X = normal(*shape)
    p = torch.softmax(normal(shape[0], seed=1), 0)
    for weights in (None, p):
        expected = reference(X, q, weights=weights)
        assert vendi_score(X, q, weights=weights).item() == pytest.approx(expected, rel=1e-12)
        matrix = vendi_score(cosine(X), q, kernel="precomputed", weights=weights).item()
        assert matrix == pytest.approx(expected, rel=1e-10)


def test_batches_are_scores_one_by_one():
    X, weights = normal(2, 3, 6, 4), torch.softmax(normal(2, 3, 6, seed=1), -1)
    each, shared = vendi_score(X, weights=weights), vendi_score(X, weights=weights[1, 2])
    matrices = vendi_score(cosine(X), kernel="precomputed", weights=weights)
    assert each.shape == shared.shape == matrices.shape == (2, 3)
    assert vendi_score(X[:0]).shape == (0, 3)
    for at in np.ndindex(2, 3):
        assert each[at].item() == pytest.approx(reference(X[at], 1, weights=weights[at]), rel=1e-12)
        assert shared[at].item() == pytest.approx(reference(X[at], 1, weights=weights[1, 2]), rel=1e-12)
        assert matrices[at].item() == pytest.approx(each[at].item(), rel=1e-12)


def test_rows_of_any_length_and_any_memory_layout():
    X = normal(4, 6)
    expected = vendi_score(X).item()
    for scale in (1e-300, 1e-150, 1e150, 1e300):
        assert vendi_score(X * scale).item() == pytest.approx(expected, rel=1e-13)
    wide = torch.zeros(6, 8, dtype=torch.float64)
    wide[:, ::2] = X.T
    assert not wide.T[::2].is_contiguous()
    assert vendi_score(wide.T[::2]).item() == pytest.approx(expected, rel=1e-13)
    assert vendi_score(X[:1].expand(5, 6)).item() == pytest.approx(1, abs=1e-12)


def test_items_of_weight_0_are_absent_so_sets_can_be_padded():
    X = normal(3, 5, 8)
    sizes = torch.tensor([5, 2, 3])
    padded = torch.arange(5) >= sizes[:, None]
    weights = torch.where(padded, 0.0, 1.0 / sizes[:, None]).double()
    for filling in (0.0, NAN, INF, 7.0):
        rows = X.masked_fill(padded[..., None], filling)
        found = vendi_score(rows, weights=weights)
        moved = gradient(lambda rows: vendi_score(rows, weights=weights), rows)
        matrices = cosine(X).masked_fill(padded[..., None] | padded[:, None, :], filling)
        of_matrices = vendi_score(matrices, kernel="precomputed", weights=weights)
        for i, size in enumerate(sizes.tolist()):
            assert found[i].item() == pytest.approx(reference(X[i, :size], 1), rel=1e-12)
            assert of_matrices[i].item() == pytest.approx(found[i].item(), rel=1e-12)
            torch.testing.assert_close(moved[i, :size], gradient(vendi_score, X[i, :size]))
            assert not moved[i, size:].any()


# ------------------------------------------------------------------------------------------------------------ gradients


@pytest.mark.parametrize("q", ORDERS)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 2), (2, 2, 2, 3)])
def test_gradient_of_rows(q, shape):
    X = normal(*shape).requires_grad_()
    weights = torch.softmax(normal(*shape[:-1], seed=1), -1)
    assert torch.autograd.gradcheck(lambda X: vendi_score(X, q), X)
    assert torch.autograd.gradcheck(lambda X: vendi_score(X, q, weights=weights), X)


@pytest.mark.parametrize("q", ORDERS)
@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 4)])
def test_gradient_of_a_matrix(q, shape):
    # The entries are moved one by one: `similarity` keeps the matrix symmetric and its diagonal at 1.
    A = cosine(normal(*shape)).requires_grad_()
    weights = torch.softmax(normal(*shape[:-1], seed=1), -1)
    assert torch.autograd.gradcheck(lambda A: vendi_score(similarity(A), q, kernel="precomputed"), A)
    assert torch.autograd.gradcheck(
        lambda A: vendi_score(similarity(A), q, kernel="precomputed", weights=weights), A
    )


@pytest.mark.parametrize("q", ORDERS)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 3)])
def test_gradient_of_weights(q, shape):
    X = normal(*shape)
    free = normal(*shape[:-1], seed=1).requires_grad_()
    shared = normal(shape[-2], seed=2).requires_grad_()
    for logits in (free, shared):
        assert torch.autograd.gradcheck(lambda a: vendi_score(X, q, weights=torch.softmax(a, -1)), logits)
        assert torch.autograd.gradcheck(
            lambda a: vendi_score(cosine(X), q, kernel="precomputed", weights=torch.softmax(a, -1)), logits
        )


def test_gradient_of_weights_is_that_of_weights_divided_by_their_sum():
    X, p = normal(5, 3), torch.softmax(normal(5, seed=1), 0).requires_grad_()
    # A step of 1e-7 leaves the sum within the tolerance for it.
    assert torch.autograd.gradcheck(lambda p: vendi_score(X, weights=p), p, eps=1e-7, atol=1e-5)
    assert torch.autograd.gradcheck(lambda X, p: vendi_score(X, weights=p), (X.requires_grad_(), p), eps=1e-7)
    assert abs(gradient(lambda p: vendi_score(X, weights=p), p.detach()) @ p.detach()) < 1e-12


@pytest.mark.parametrize("q", [1, 1.5, 2, "inf"])
@pytest.mark.parametrize("shape", [(6, 3), (6, 9)])
def test_both_sides_agree_on_an_item_of_weight_0(q, shape):
    X = normal(*shape)
    X[5] = X[0] - 2 * X[1]  # an item without weight in the span of the others, where its derivative is finite
    p = torch.tensor([0.3, 0.3, 0.2, 0.1, 0.1, 0.0], dtype=torch.float64)
    found = gradient(lambda p: vendi_score(X, q, weights=p), p)
    matrix = gradient(lambda p: vendi_score(cosine(X), q, kernel="precomputed", weights=p), p)
    torch.testing.assert_close(found, matrix, rtol=1e-9, atol=1e-9)
    h = 1e-6
    way = -p
    way[5] += 1
    forward = [float(vendi_score(X, q, weights=p + k * h * way)) for k in (0, 1, 2)]
    assert (-3 * forward[0] + 4 * forward[1] - forward[2]) / (2 * h) == pytest.approx(
        float(found @ way), rel=1e-6
    )


@pytest.mark.parametrize("q", ORDERS)
@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_gradient_is_that_of_the_formula_differentiated_by_torch(q, shape):
    # Where eigenvalues are distinct and positive, torch itself differentiates through them: a check to the last digits.
    X, logits = normal(*shape).requires_grad_(), normal(shape[0], seed=1).requires_grad_()
    p = torch.softmax(logits, 0)
    values = torch.linalg.eigvalsh(cosine(X) * torch.outer(p.sqrt(), p.sqrt()))[-min(shape) :]
    order = float(q)
    score = 1 / values[-1] if q == "inf" else values.pow(order).sum() ** (1 / (1 - order)) if q != 1 else None
    score = torch.exp(-torch.xlogy(values, values).sum()) if score is None else score
    expected = torch.autograd.grad(score, (X, logits), retain_graph=True)
    found = torch.autograd.grad(vendi_score(X, q, weights=p), (X, logits))
    tolerance = 1e-9 if q == 1.0001 else 1e-11  # the plain formula loses digits near 1
    for a, b in zip(found, expected, strict=True):
        assert (a - b).norm() < tolerance * b.norm()


def simplex(n: int) -> torch.Tensor:
    """Rows with equal similarities, −1/(n−1), the least that n items can all have."""
    return torch.eye(n, dtype=torch.float64) - 1 / n


# Rows whose eigenvalues are equal, or partly zero.
DEGENERATE = {
    "orthonormal": torch.linalg.qr(normal(6, 6))[0],
    "orthonormal, n < d": torch.linalg.qr(normal(9, 4))[0].T,
    "orthonormal twice, n > d": torch.linalg.qr(normal(4, 4))[0].repeat(2, 1),
    "simplex": simplex(5),
    "opposite rows": torch.cat([normal(3, 5), -normal(3, 5)]),
}


@pytest.mark.parametrize("q", ORDERS[:-1])  # at q = ∞ these are kinks
@pytest.mark.parametrize("name", DEGENERATE)
def test_equal_eigenvalues_are_harmless(name, q):
    X = DEGENERATE[name]
    found = gradient(lambda X: vendi_score(X, q), X)
    assert found.isfinite().all()
    rank = int(torch.linalg.matrix_rank(X))
    for seed in range(3):
        way = normal(*X.shape, seed=seed)
        if rank < min(X.shape):  # a higher rank adds h² log h or worse to the score: keep the rank
            way = X @ torch.linalg.pinv(X) @ way @ torch.linalg.pinv(X) @ X
        step = difference(lambda X: vendi_score(X, q), X, way, 1e-4)
        assert float((found * way).sum()) == pytest.approx(step, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("q", ORDERS)
def test_no_gradient_where_all_rows_are_one_or_all_are_orthogonal(q):
    alike, apart = normal(1, 4).repeat(6, 1), torch.eye(5, dtype=torch.float64)
    for X in (alike, apart):
        assert gradient(lambda X: vendi_score(X, q), X).abs().max() < 1e-12
    points = normal(1, 2).repeat(4, 1)
    assert gradient(lambda x: vendi_score(rbf(x), q, kernel="precomputed"), points).abs().max() == 0


@pytest.mark.parametrize("q", ORDERS)
@pytest.mark.parametrize("shape", [(4, 3), (4, 9), (3, 40)])
def test_duplicates_move_as_one_item_with_their_joint_weight(q, shape):
    # Many zero eigenvalues; the same gradient comes from a matrix that has none.
    X, counts = normal(*shape), torch.arange(1, shape[0] + 1)
    which = torch.repeat_interleave(torch.arange(shape[0]), counts)
    merged = gradient(lambda X: vendi_score(X, q, weights=counts / counts.sum()), X)
    repeated = gradient(lambda X: vendi_score(X[which], q), X)
    torch.testing.assert_close(repeated, merged, rtol=1e-6, atol=1e-7)  # counts / sum is float32

    def f(X: torch.Tensor) -> torch.Tensor:
        return vendi_score(X[which], q)

    way = normal(*shape, seed=5)
    assert float((repeated * way).sum()) == pytest.approx(difference(f, X, way, 1e-3), rel=1e-6)


@pytest.mark.parametrize("q", ORDERS)
def test_rows_inside_a_subspace(q):
    basis = torch.linalg.qr(normal(8, 3))[0]
    inside, n_above_d = normal(5, 3), normal(20, 3)
    for Z in (inside, n_above_d):
        found = gradient(lambda Z: vendi_score(Z @ basis.T, q), Z)
        torch.testing.assert_close(found, gradient(lambda Z: vendi_score(Z, q), Z), rtol=1e-9, atol=1e-10)


def test_order_infinity_takes_the_mean_over_equal_largest_eigenvalues():
    # λ = ⅓, ⅓, ⅓: moving row 0 towards row 1 lowers the score on either side. The subgradient there is 0.
    X = torch.eye(3, dtype=torch.float64)
    assert gradient(lambda X: vendi_score(X, "inf"), X).abs().max() < 1e-14
    # λ = ½, ½: with unequal weights the larger one alone counts.
    p = torch.tensor([0.5, 0.5], dtype=torch.float64)
    found = gradient(lambda p: vendi_score(X[:2], "inf", weights=p), p)
    torch.testing.assert_close(found, torch.zeros(2, dtype=torch.float64))
    p = torch.tensor([0.6, 0.4], dtype=torch.float64)
    found = gradient(lambda p: vendi_score(X[:2], "inf", weights=p), p)
    torch.testing.assert_close(found, torch.tensor([1 / 0.6 - 1 / 0.36, 1 / 0.6], dtype=torch.float64))


@pytest.mark.parametrize("q", [0.5, 1, 2, "inf"])
def test_ascent_raises_the_score(q):
    X = (normal(8, 16) * 0.2 + 1).requires_grad_()
    optimiser = torch.optim.Adam([X], lr=0.05)
    before = vendi_score(X, q).item()
    for _ in range(300):
        optimiser.zero_grad()
        (-vendi_score(X, q)).backward()
        optimiser.step()
    assert before < 4
    assert vendi_score(X, q).item() > 7.5  # of at most 8


def test_ascent_on_weights_finds_the_most_diverse_mixture():
    # Two items alike and two apart: of the two alike it does not matter which one has the weight.
    X = torch.tensor([[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], dtype=torch.float64)
    logits = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([logits], lr=0.1)
    for _ in range(200):
        optimiser.zero_grad()
        (-vendi_score(X, weights=torch.softmax(logits, 0))).backward()
        optimiser.step()
    p = torch.softmax(logits, 0).detach()
    assert p[0] + p[1] == pytest.approx(1 / 3, abs=1e-3)
    assert vendi_score(X, weights=p).item() == pytest.approx(3, abs=1e-4)


# ------------------------------------------------------------------------------------------------- dtypes and autograd


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("q", ORDERS)
def test_low_precision_in_is_double_precision_inside(dtype, q):
    X = normal(30, 12).to(dtype)
    score = vendi_score(X, q)
    assert score.dtype == torch.float32
    assert score.item() == pytest.approx(vendi_score(X.double(), q).item(), rel=1e-7)
    found = gradient(lambda X: vendi_score(X, q), X)
    assert found.dtype == dtype
    expected = gradient(lambda X: vendi_score(X, q), X.double())
    assert (found.double() - expected).norm() < torch.finfo(dtype).eps * expected.norm()


@pytest.mark.parametrize("q", [1, 1.5, 2, "inf"])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.0])
def test_a_float32_kernel_gives_nearly_the_float64_gradient(q, sigma):
    # At σ = 3 most eigenvalues are below the rounding of float32.
    x = normal(60, 2) * 0.7
    exact = gradient(lambda x: vendi_score(rbf(x, sigma), q, kernel="precomputed"), x)
    single = gradient(lambda x: vendi_score(rbf(x.float(), sigma), q, kernel="precomputed"), x)
    assert (single - exact).norm() < 1e-4 * exact.norm()


def test_matrices_off_by_rounding_are_taken():
    x = normal(50, 8).float()
    squares = x.square().sum(-1)
    K = torch.exp(
        -(squares[:, None] + squares - 2 * x @ x.T) / 8
    )  # the quick formula; its diagonal is not quite 1
    expected = vendi_score(rbf(x.double(), 2.0), kernel="precomputed").item()
    assert vendi_score(K, kernel="precomputed").item() == pytest.approx(expected, rel=1e-5)
    for dtype in (torch.float16, torch.bfloat16):
        rounded = vendi_score(K.to(dtype), kernel="precomputed")
        assert rounded.dtype == torch.float32
        assert rounded.item() == pytest.approx(expected, rel=1e-2)


def test_autocast_does_not_touch_the_products():
    X = normal(20, 6).float()
    expected, moved = vendi_score(X), gradient(vendi_score, X)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(vendi_score(X), expected)
        assert torch.equal(gradient(vendi_score, X), moved)
        assert vendi_score(torch.nn.functional.linear(X, X)).dtype == torch.float32


def test_without_gradients_no_eigenvectors_are_computed(monkeypatch):
    X = normal(5, 3).requires_grad_()
    expected = vendi_score(X)
    monkeypatch.setattr(torch.linalg, "eigh", None)
    with torch.no_grad():
        assert vendi_score(X).item() == pytest.approx(expected.item(), rel=1e-14)
    with torch.inference_mode():
        assert vendi_score(X).item() == pytest.approx(expected.item(), rel=1e-14)
    assert not vendi_score(X.detach()).requires_grad


def test_only_what_is_asked_for_gets_a_gradient():
    X, p = normal(5, 3), torch.full((5,), 0.2)
    score = vendi_score(X, weights=p.requires_grad_())
    score.backward()
    assert X.grad is None
    assert p.grad is not None
    assert p.grad.dtype == torch.float32
    # The upstream gradient scales it, one factor for each set of the batch.
    X = normal(2, 5, 3).requires_grad_()
    found = torch.autograd.grad(vendi_score(X), X, torch.tensor([2.0, 0.0], dtype=torch.float64))[0]
    torch.testing.assert_close(found[0], 2 * gradient(vendi_score, X[0]))
    assert not found[1].any()


def test_the_input_is_left_as_it_is():
    X, p = normal(4, 5), torch.softmax(normal(4), 0)
    before = X.clone(), p.clone()
    gradient(lambda X: vendi_score(X, weights=p), X)
    vendi_score(X, weights=p)
    K = cosine(X)
    kept = K.clone()
    vendi_score(K, kernel="precomputed")
    assert torch.equal(X, before[0])
    assert torch.equal(p, before[1])
    assert torch.equal(K, kept)


def test_functional_gradient():
    X, p = normal(5, 3), torch.softmax(normal(5), 0)
    torch.testing.assert_close(torch.func.grad(vendi_score)(X), gradient(vendi_score, X))
    of_p = torch.func.grad(lambda p: vendi_score(X, weights=p))(p)
    torch.testing.assert_close(of_p, gradient(lambda p: vendi_score(X, weights=p), p))


@pytest.mark.parametrize("kernel", ["cosine", "precomputed"])
def test_a_second_derivative_is_refused_and_never_silently_zero(kernel):
    x = normal(4, 3).requires_grad_()
    p = torch.full((4,), 0.25, dtype=torch.float64, requires_grad=True)
    score = vendi_score(x if kernel == "cosine" else rbf(x), kernel=kernel, weights=p)
    first = torch.autograd.grad(score, (x, p), create_graph=True)
    torch.testing.assert_close(
        first[0],
        gradient(lambda x: vendi_score(x if kernel == "cosine" else rbf(x), kernel=kernel), x),
    )
    for one in first:
        with pytest.raises(UnansweredError, match="second derivative"):
            torch.autograd.grad(one.square().sum(), (x, p), retain_graph=True, allow_unused=True)


# --------------------------------------------------------------------------------------------------------------- errors


def with_entry(X: torch.Tensor, at: tuple[int, ...], value: float) -> torch.Tensor:
    X = X.clone()
    X[at] = value
    return X


X = normal(4, 3)
BATCH = normal(2, 5, 4, 3)
K = cosine(normal(4, 6))
MATRICES = cosine(normal(3, 4, 6))
INDEFINITE = torch.tensor([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])
P = torch.full((4,), 0.25)
ERRORS = {
    "a list": (([[1.0, 2.0]],), {}, InputError, "X is a list; expected a torch.Tensor"),
    "an array": ((np.ones((2, 2)),), {}, InputError, "X is a ndarray; expected a torch.Tensor"),
    "whole numbers": ((torch.ones(3, 2, dtype=torch.int64),), {}, InputError, r"torch.int64 .* X.float\(\)"),
    "complex numbers": ((torch.ones(3, 2, dtype=torch.complex64),), {}, InputError, "torch.complex64"),
    "sparse": ((torch.eye(3).to_sparse(),), {}, InputError, r"torch.sparse_coo; .* X.to_dense\(\)"),
    "one dimension": ((torch.ones(3),), {}, InputError, r"shape \(3,\); expected \(..., n, d\)"),
    "no items": ((torch.ones(2, 0, 3),), {}, EmptyError, r"shape \(2, 0, 3\): no items"),
    "no columns": ((torch.ones(3, 0),), {}, InputError, r"shape \(3, 0\).* at least two columns"),
    "numbers": ((torch.ones(3, 1),), {}, InputError, r"shape \(3, 1\).* only ever 1 or −1"),
    "zero row": ((with_entry(X, (2,), 0.0),), {}, InputError, "row 2 of X is all zeros"),
    "zero row in a batch": (
        (with_entry(BATCH, (1, 3, 2), 0.0),),
        {},
        InputError,
        r"row 2 of X\[1, 3\] is all zeros",
    ),
    "NaN": ((with_entry(BATCH, (0, 4, 1, 2), NAN),), {}, InputError, r"row 1 of X\[0, 4\] holds the value nan"),
    "infinity": ((with_entry(X, (3, 0), -INF),), {}, InputError, "row 3 of X holds the value -inf"),
    "infinite half": ((torch.full((2, 2), 1e5).half(),), {}, InputError, "row 0 of X holds the value inf"),
    "order 0": ((X, 0), {}, InputError, r"q=0 is the rank.* q=0.1"),
    "negative order": ((X, -1), {}, InputError, "q=-1 is not an order"),
    "several orders": ((X, [1, 2]), {}, InputError, r"q=\[1, 2\] is not an order"),
    "unknown kernel": ((X,), {"kernel": "cosin"}, UnknownNameError, "Did you mean 'cosine'.* 'precomputed'"),
    "other kernel": ((X,), {"kernel": "rbf"}, UnknownNameError, "Compute any other with PyTorch"),
    "kernel object": ((X,), {"kernel": vm.kernels.RBF(1.0)}, InputError, "expected 'cosine' or 'precomputed'"),
    "not square": ((X,), {"kernel": "precomputed"}, MatrixError, r"shape \(4, 3\).* square"),
    "diagonal": (
        (with_entry(MATRICES, (2, 1, 1), 0.9),),
        {"kernel": "precomputed"},
        DiagonalError,
        r"X\[2, 1, 1\] = 0.9; expected every item to have similarity 1 with itself",
    ),
    "asymmetric": (
        (with_entry(K, (1, 2), 0.5),),
        {"kernel": "precomputed"},
        AsymmetryError,
        r"X\[1, 2\] = 0.5 but X\[2, 1\] = .* \(X \+ X.mT\) / 2",
    ),
    "NaN similarity": (
        (with_entry(K, (3, 1), NAN),),
        {"kernel": "precomputed"},
        MatrixError,
        r"X\[3, 1\] is nan; expected a finite similarity",
    ),
    "infinite similarity": ((K + INF,), {"kernel": "precomputed"}, MatrixError, r"X\[0, 0\] is inf"),
    "indefinite": (
        (torch.stack([torch.eye(3), INDEFINITE]),),
        {"kernel": "precomputed"},
        IndefiniteError,
        r"X\[1\] is not positive semidefinite: .* is -0.09093",
    ),
    "list of weights": ((X,), {"weights": [0.25] * 4}, InputError, "weights is a list; expected a torch.Tensor"),
    "too many weights": (
        (X,),
        {"weights": torch.full((5,), 0.2)},
        InputError,
        r"weights has shape \(5,\) and X has shape \(4, 3\)",
    ),
    "a scalar": ((X,), {"weights": torch.tensor(1.0)}, InputError, r"weights has shape \(\)"),
    "more batches of weights": (
        (X,),
        {"weights": P.expand(3, 4)},
        InputError,
        r"weights has shape \(3, 4\) and X has shape \(4, 3\)",
    ),
    "negative weight": (
        (BATCH,),
        {"weights": with_entry(P.expand(2, 5, 4), (1, 2, 3), -0.5)},
        InputError,
        r"weights\[1, 2, 3\] is -0.5",
    ),
    "NaN weight": ((BATCH,), {"weights": with_entry(P, (1,), NAN)}, InputError, r"weights\[1\] is nan"),
    "counts": ((X,), {"weights": torch.ones(4)}, InputError, "weights sum to 4; expected probabilities"),
    "no weight at all": ((X,), {"weights": torch.zeros(4)}, InputError, "weights sum to 0"),
    "weights elsewhere": ((X,), {"weights": P.to("meta")}, InputError, "weights is on meta and X on cpu"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("grad", [False, True])
def test_errors_say_where_and_what_to_do(name, grad):
    arguments, options, error, message = ERRORS[name]
    if grad:
        arguments = tuple(
            a.detach().clone().requires_grad_()
            if isinstance(a, torch.Tensor) and a.is_floating_point()
            else a
            for a in arguments
        )
    with pytest.raises(error, match=message) as caught:
        vendi_score(*arguments, **options)
    assert caught.type is error


def test_a_device_without_float64_is_an_error_with_a_way_out(monkeypatch):
    def refuse(self: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        raise TypeError(
            "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64"
        )

    monkeypatch.setattr(torch.Tensor, "to", refuse)
    with pytest.raises(InputError, match=r"has no float64, .* X.cpu\(\)"):
        vendi_score(X)


def test_the_input_is_read_once(monkeypatch):
    # A read of a value makes the program wait for the device; one is enough for all checks.
    reads = []
    truth = torch.Tensor.__bool__
    monkeypatch.setattr(torch.Tensor, "__bool__", lambda self: (reads.append("bool"), truth(self))[1])
    for name in ("item", "tolist", "nonzero", "__float__", "__int__", "numpy", "cpu"):
        monkeypatch.setattr(torch.Tensor, name, None)
    scores = vendi_score(BATCH, weights=P), vendi_score(MATRICES, kernel="precomputed", weights=P)
    assert len(scores) == len(reads) == 2


# ----------------------------------------------------------------------------------------------------------- the module


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_package_does_not_import_torch():
    assert run("import sys, vendimeter, vendimeter.integrations; print('torch' in sys.modules)") == "False\n"


def test_without_torch_the_error_has_the_install_line():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "try:\n import vendimeter.integrations.torch\n"
        "except Exception as error:\n print(type(error).__name__, error)\n"
    )
    said = run(code)
    assert MissingDependencyError.__name__ in said
    assert "pip install 'vendimeter[torch]'" in said


def test_the_example_spreads_the_points(tmp_path):
    pytest.importorskip("matplotlib")
    script = runpy.run_path(str(ROOT / "docs" / "examples" / "spread_points.py"))
    out = tmp_path / "spread.png"
    assert script["main"](["--out", str(out), "--steps", "30"]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    start, end, scores = script["spread"](steps=30)
    assert scores[-1] > 1.5 * scores[0]
    assert end.norm(dim=1).max() <= 1 + 1e-12
    assert torch.pdist(end).min() > torch.pdist(start).min()
