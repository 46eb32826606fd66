"""Batched eigenvalues in plain array operations: every library, against LAPACK and 40-digit arithmetic."""

from __future__ import annotations

import contextlib
import importlib
import tracemalloc

import numpy as np
import pytest
from array_api_compat import numpy as np_namespace
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vendimeter.errors import InputError
from vendimeter.solvers import dense as tridiagonal
from vendimeter.solvers.dense import batched_eigenvalues, eigen_error

LIBRARIES = ["numpy", "array_api_strict", "torch", "jax"]


@contextlib.contextmanager
def library(name):
    """A function that takes NumPy arrays to this library, with float64 where that has to be asked for."""
    xp = pytest.importorskip("jax.numpy" if name == "jax" else name)
    asked = contextlib.nullcontext()
    if name == "jax":
        jax = importlib.import_module("jax")
        asked = jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()
    with asked:
        yield xp.asarray


def solve(name, matrices):
    with library(name) as convert:
        given = convert(matrices)
        found = batched_eigenvalues(given)
        assert type(found) is type(given)
        assert found.dtype == given.dtype
        assert tuple(found.shape) == matrices.shape[:2]
        assert np.array_equal(np.asarray(given), matrices, equal_nan=True)  # not overwritten
        return np.asarray(found)


def symmetric(a):
    return a + np.swapaxes(a, -1, -2)


def with_spectrum(values, rng):
    """Dense matrices with (about) these eigenvalues."""
    q, _ = np.linalg.qr(rng.standard_normal((*values.shape, values.shape[-1])))
    a = (q * values[..., None, :]) @ np.swapaxes(q, -1, -2)
    return symmetric(a) / 2


def tridiagonal_matrix(d, e):
    return np.diag(np.asarray(d, dtype=float)) + np.diag(e, 1) + np.diag(e, -1)


def zoo(m, rng):
    """Matrices of size m that a careless implementation fails on, by name."""
    ones, rows = np.ones((m, m)), rng.standard_normal((m, m))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    narrow = unit[:, : max(1, m // 2)]
    scales = 10.0 ** -np.linspace(0, 12, m)
    sparse = np.zeros((m, m))
    sparse[0, m - 1] = sparse[m - 1, 0] = 1.0
    block = symmetric(rows)
    block[: m // 2, m // 2 :] = block[m // 2 :, : m // 2] = 0.0
    return {
        "random": symmetric(rows),
        "correlations": unit @ unit.T / m,
        "rank deficient": narrow @ narrow.T / m,
        "zero": np.zeros((m, m)),
        "negative zero": -np.zeros((m, m)),
        "identity": np.eye(m),
        "minus identity": -np.eye(m),
        "rank one": ones,
        "negative rank one": -ones / m,
        "diagonal": np.diag(rng.standard_normal(m)),
        "one entry off the diagonal": sparse,
        "two blocks": block,
        "graded down": scales[:, None] * symmetric(rows) * scales,
        "graded up": (scales[:, None] * symmetric(rows) * scales)[::-1, ::-1].copy(),
        "wildly graded": np.diag(10.0 ** -np.linspace(0, 290, m)) + 1e-200 * ones,
        "two clusters": with_spectrum(np.where(np.arange(m) % 2, 1.0, 1 + 1e-12), rng),
        "one large": with_spectrum(np.where(np.arange(m), 1e-14, 1.0), rng),
        "path": tridiagonal_matrix(np.zeros(m), np.ones(m - 1)),  # pivots of 0 at the first point
        "second difference": tridiagonal_matrix(np.full(m, 2.0), -np.ones(m - 1)),
        "Wilkinson": tridiagonal_matrix(np.abs(np.arange(m) - (m - 1) / 2), np.ones(m - 1)),
        "tiny coupling": tridiagonal_matrix(np.ones(m), np.full(m - 1, 1e-300)),
        "huge": 1e300 * symmetric(rows),
        "small": 1e-290 * symmetric(rows),
    }


def ratios(found, matrices):
    """The error of each matrix as a part of what is allowed, with LAPACK's eigenvalues as the truth."""
    scale = np.maximum(np.abs(matrices).max(axis=(1, 2)), 1e-300)
    truth = np.linalg.eigvalsh(matrices / scale[:, None, None])[:, ::-1]
    error = np.linalg.norm(found / scale[:, None] - truth, axis=1)
    allowed = eigen_error(matrices.shape[-1], np.abs(truth).max(axis=1))
    return np.where(error == 0, 0.0, error / np.where(allowed > 0, allowed, 1e-300))


# JAX compiles each step of each size anew, which takes long.
@pytest.mark.parametrize(
    ("name", "m"), [(name, m) for name in LIBRARIES for m in (2, 3, 5, 8) if name != "jax" or m in (2, 5)]
)
def test_every_library_finds_the_eigenvalues_of_every_kind(name, m):
    kinds = zoo(m, np.random.default_rng(m))
    matrices = np.stack(list(kinds.values()))
    found = solve(name, matrices)
    assert dict(zip(kinds, ratios(found, matrices) < 0.5, strict=True)) == dict.fromkeys(kinds, True)
    assert np.all(np.diff(found, axis=1) <= 0)


@pytest.mark.parametrize("name", ["numpy", "torch"])
@pytest.mark.parametrize("m", [31, 64, 128])
def test_larger_matrices(name, m):
    matrices = np.stack(list(zoo(m, np.random.default_rng(m)).values()))
    assert ratios(solve(name, matrices), matrices).max() < 0.5


@pytest.mark.parametrize("m", [3, 10])
def test_against_forty_digits(m):
    mpmath = pytest.importorskip("mpmath")
    kinds = zoo(m, np.random.default_rng(7))
    matrices = np.stack(list(kinds.values()))
    found = batched_eigenvalues(matrices)
    with mpmath.workdps(40):
        for kind, matrix, values in zip(kinds, matrices, found, strict=True):
            truth = sorted(mpmath.eigsy(mpmath.matrix(matrix.tolist()), eigvals_only=True), reverse=True)
            error = mpmath.norm([mpmath.mpf(a) - b for a, b in zip(values.tolist(), truth, strict=True)])
            largest = max(abs(b) for b in truth)
            # An all-zero matrix is answered with the smallest numbers that can be told from zero.
            assert error <= 0.5 * eigen_error(m, 1.0) * largest + 1e-300, kind


@pytest.mark.parametrize("name", LIBRARIES)
def test_one_by_one_and_none_at_all(name):
    assert solve(name, np.array([[[3.5]], [[-1.0]]])).tolist() == [[3.5], [-1.0]]
    assert solve(name, np.empty((0, 4, 4))).shape == (0, 4)


@pytest.mark.parametrize("name", LIBRARIES)
def test_what_is_not_finite_stays_with_its_own_matrix(name):
    matrices = np.stack([np.eye(3)] * 4)
    matrices[1, 2, 2] = np.nan
    matrices[2, 0, 1] = matrices[2, 1, 0] = np.inf
    found = solve(name, matrices)
    assert np.isnan(found[1:3]).all()
    assert ratios(found[::3], matrices[::3]).max() < 0.5


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_large_stack_is_worked_through_in_parts(name, monkeypatch):
    count, expected = (8, [4, 4]) if name == "jax" else (11, [3, 4, 4])
    matrices = symmetric(np.random.default_rng(3).standard_normal((count, 3, 3)))
    sizes = []
    inner = tridiagonal._eigenvalues_in_step
    monkeypatch.setattr(
        tridiagonal,
        "_eigenvalues_in_step",
        lambda xp, stack: sizes.append(stack.shape[0]) or inner(xp, stack),
    )
    monkeypatch.setattr(tridiagonal, "WORKING_BYTES", 4 * 8 * 3 * (2 * 3 + 16))  # four matrices
    assert ratios(solve(name, matrices), matrices).max() < 0.5
    assert sizes == expected


@pytest.mark.parametrize("m", [2, 5, 24, 64])
def test_working_memory_is_bounded(m, monkeypatch):
    monkeypatch.setattr(tridiagonal, "WORKING_BYTES", 4 << 20)
    monkeypatch.setattr(tridiagonal, "BISECTIONS", 2)  # as many as it takes to reach the peak
    matrices = np.broadcast_to(np.eye(m), ((12 << 20) // (8 * m * m), m, m))
    tracemalloc.start()
    try:
        batched_eigenvalues(matrices)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (4 << 20) + 2 * 8 * m * len(matrices)  # the answer itself and its parts come on top


@pytest.mark.parametrize(
    "wrong", [np.eye(3), np.ones((2, 3, 4)), np.ones((2, 3, 3), dtype=np.float32), np.ones((2, 0, 0))]
)
def test_what_is_no_stack_of_square_matrices_is_refused(wrong):
    with pytest.raises(InputError, match="expected a stack of square matrices"):
        batched_eigenvalues(wrong)


stacks = st.tuples(st.integers(1, 4), st.integers(2, 7)).flatmap(
    lambda shape: arrays(np.int8, (shape[0], shape[1], shape[1]), elements=st.integers(-2, 2))
)


@given(stacks)
@settings(max_examples=150)
def test_small_integers_whose_pivots_vanish_again_and_again(matrices):
    matrices = symmetric(matrices.astype(np.float64))
    assert ratios(batched_eigenvalues(matrices), matrices).max() < 0.5


@given(
    st.integers(2, 12).flatmap(
        lambda m: st.tuples(
            st.lists(st.sampled_from([-1.0, -0.0, 0.5, 1.0, -5e-324]), min_size=m, max_size=m),
            st.lists(st.sampled_from([0.0, 1e-200, 1e-9, 0.5, 1.0]), min_size=m - 1, max_size=m - 1),
        )
    )
)
@example(([-0.0, -1.0, -1.0, 1.0], [0.5, 0.0, 0.0]))
@example(([0.5, -1.0, -1.0, -1.0, 0.5, 0.5], [0.0] * 5))
@settings(max_examples=150)
def test_points_of_the_bisection_that_are_eigenvalues_of_leading_blocks(entries):
    d, e = (np.array(part)[:, None] for part in entries)
    # `batched_eigenvalues` scales before it bisects, and scales the eigenvalues of a matrix of zeros to 0.
    assume(max(np.abs(d).max(), e.max()) > 1e-300)
    with np.errstate(divide="ignore"):
        found = tridiagonal._bisect(np_namespace, d, e)
    assert ratios(found.T, tridiagonal_matrix(d[:, 0], e[:, 0])[None]).max() < 0.5


@given(st.integers(2, 20), st.integers(0, 2**32 - 1), st.floats(-12, 12), st.floats(0, 15))
@settings(max_examples=100)
def test_trace_and_squares_are_kept(m, seed, exponent, spread):
    rng = np.random.default_rng(seed)
    values = 10.0**exponent * rng.standard_normal((2, m)) * 10.0 ** (-spread * rng.random((2, m)))
    matrices = with_spectrum(values, rng)
    found = batched_eigenvalues(matrices)
    allowed = np.sqrt(m) * eigen_error(m, np.abs(found).max(axis=1))
    assert (np.abs(found.sum(axis=1) - np.trace(matrices, axis1=1, axis2=2)) < allowed).all()
    assert (np.abs(np.linalg.norm(found, axis=1) - np.linalg.norm(matrices, axis=(1, 2))) < allowed).all()
    assert ratios(found, matrices).max() < 0.5
