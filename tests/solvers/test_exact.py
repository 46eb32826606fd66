"""The exact solvers: which one is taken, that they agree, and what they cost."""

from __future__ import annotations

import math
import os
import threading
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter import threads as threads_module
from vendimeter.kernels import RBF, Cosine, FromFunction, Match, On, Precomputed
from vendimeter.similarity import Features
from vendimeter.solvers import gram
from vendimeter.solvers.plan import DENSE_LIMIT

rng = np.random.default_rng(11)


def entropy_score(values, q=1.0):
    values = values[values > 1e-14]
    return (
        float(np.exp(-(values * np.log(values)).sum()))
        if q == 1
        else float((values**q).sum() ** (1 / (1 - q)))
    )


def dense_reference(X, weights=None):
    X = np.asarray(X, dtype=np.float64)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    p = np.full(len(X), 1 / len(X)) if weights is None else weights
    return np.linalg.eigvalsh(X.T @ (X * p[:, None]))


# ---------------------------------------------------------------------------------------------------- features


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8, bool])
@pytest.mark.parametrize("shape", [(5000, 7), (300, 40), (20, 60)])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_dtype_and_shape_agrees_with_a_dense_computation(dtype, shape, weighted):
    X = (rng.random(shape) < 0.5) if dtype is bool else (rng.standard_normal(shape) * 3).astype(dtype)
    X[:, 0] = 1  # no zero rows
    weights = rng.dirichlet(np.ones(shape[0])) if weighted else None
    score = vm.score(X, weights=weights)
    expected = entropy_score(dense_reference(X, weights))
    assert score == pytest.approx(expected, rel=1e-11)
    assert score.method == ("gram" if shape[0] >= shape[1] else "eigh")
    assert score.bounds[0] - 1e-11 * expected <= expected <= score.bounds[1] + 1e-11 * expected
    assert score.half_width < 1e-9 * score


def test_float32_products_are_bounded_by_the_probes_in_the_same_pass():
    X = (rng.standard_normal((30000, 48)) * np.linspace(0.2, 3, 48)).astype(np.float32)
    exact = vm.score(X, precision="float64")
    misses = 0
    for seed in range(20):
        single = vm.score(X, precision="float32", rng=seed)
        assert single.level == "probabilistic"
        assert single.spectrum.confidence == 1 - 1e-6
        misses += not single.bounds[0] <= exact <= single.bounds[1]
        assert single.half_width < 1e-5 * single
        # The bound is measured, not guessed: the true distance of the eigenvalues lies below it, and not far below.
        distance = np.linalg.norm(single.spectrum.eigenvalues - exact.spectrum.eigenvalues)
        assert 1e-4 * single.spectrum.error < distance < single.spectrum.error
    assert misses == 0


def test_float32_with_weights_and_a_rank_deficient_gram_matrix():
    base = rng.standard_normal((9000, 6)).astype(np.float32)
    X = np.hstack([base, base @ rng.standard_normal((6, 20)).astype(np.float32)])
    weights = rng.dirichlet(np.full(9000, 0.3))
    exact = vm.score(X, weights=weights, precision="float64")
    single = vm.score(X, weights=weights, precision="float32")
    assert single.bounds[0] <= exact <= single.bounds[1]
    assert exact == pytest.approx(entropy_score(dense_reference(X, weights)), rel=1e-10)


def test_float32_is_the_default_for_large_float32_rows_only(monkeypatch):
    X = rng.standard_normal((3000, 8)).astype(np.float32)
    assert vm.score(X).level == "deterministic"
    monkeypatch.setattr("vendimeter.solvers.plan.SINGLE_ABOVE", 1e5)
    assert vm.score(X).level == "probabilistic"
    assert vm.score(X.astype(np.float16)).level == "probabilistic"
    assert vm.score(X.astype(np.float64)).level == "deterministic"
    assert vm.score(X, q=[0.5, 1])[1].level == "deterministic"  # orders below 1 see the smallest eigenvalues
    assert (
        vm.score(X, tol=1e-12).level == "deterministic"
    )  # narrower than float32 can give: done again in float64
    assert vm.score(X, tol=1e-2).level == "probabilistic"


def test_the_data_is_not_copied():
    X = rng.standard_normal((60_000, 256)).astype(np.float32)  # 59 MiB
    for precision in ("float64", "float32"):
        vm.score(X[:5000], precision=precision)  # imports and caches first
        tracemalloc.start()
        vm.score(X, precision=precision)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40 << 20


def test_a_memory_mapped_file_is_scored_where_it_lies(tmp_path):
    X = rng.standard_normal((500, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert vm.score(mapped) == vm.score(X)


def test_blas_has_its_threads_back_afterwards_also_after_an_error():
    switch = threads_module._switch()
    if switch is None:
        pytest.skip("NumPy's BLAS here has no thread switch")
    get, _ = switch
    before = get()
    X = rng.standard_normal((9000, 8))
    vm.score(X)
    assert get() == before
    X[8500, 3] = np.nan
    with pytest.raises(vm.errors.InputError, match="item 8500 holds the value nan"):
        vm.score(X)
    assert get() == before


def test_scores_from_several_threads_at_once_agree():
    X = rng.standard_normal((20000, 16))
    expected = vm.score(X)
    found = []
    threads = [threading.Thread(target=lambda: found.append(vm.score(X))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(found, float(expected), rtol=1e-13)


def test_wide_rows_come_in_smaller_blocks_and_agree():
    assert gram._block_rows(768, gram.ROWS32, 4) == gram.ROWS32
    assert gram._block_rows(1_000_000, gram.ROWS32, 4) == gram.PIECE
    X = rng.standard_normal((2500, 2100)).astype(np.float32)
    for precision in ("float64", "float32"):
        score = vm.score(X, precision=precision)
        assert score == pytest.approx(entropy_score(dense_reference(X)), rel=1e-5)


# ------------------------------------------------------------------------------------------ duplicates and components


def test_identical_items_are_collapsed_into_weights():
    X = rng.standard_normal((40, 50))[rng.integers(0, 12, 45)]
    score = vm.score(X)
    assert score.diagnostics["distinct"] == len(np.unique(X, axis=0))
    assert score == pytest.approx(entropy_score(dense_reference(X)), rel=1e-11)
    kernel = RBF(3.0)
    assert vm.score(X, kernel) == pytest.approx(
        vm.score(kernel.similarity(X).dense(), Precomputed()), rel=1e-11
    )


def random_blocks(sizes):
    blocks = []
    for size in sizes:
        rows = rng.standard_normal((size, max(2, size // 2)))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        blocks.append(rows @ rows.T)
    K = sparse.block_diag(blocks, format="csr")
    order = rng.permutation(K.shape[0])
    return sparse.csr_array(K[order][:, order])


@pytest.mark.parametrize("sizes", [[1] * 30, [5] * 40, [1, 2, 3, 50, 50, 120], [80]])
@pytest.mark.parametrize("q", [0, 0.5, 1, 2, "inf"])
def test_a_sparse_matrix_is_solved_by_components(sizes, q):
    K = random_blocks(sizes)
    K.setdiag(1.0)
    weights = rng.dirichlet(np.ones(K.shape[0]))
    for p in (None, weights):
        thin, thick = (
            vm.score(K, "precomputed", q=q, weights=p),
            vm.score(K.toarray(), "precomputed", q=q, weights=p),
        )
        assert thin.method == "components"
        assert thin.diagnostics["components"] == len(sizes)
        assert thin == pytest.approx(thick, rel=1e-6 if q in (0.5,) else 1e-11)
        assert max(thin.bounds[0], thick.bounds[0]) <= min(thin.bounds[1], thick.bounds[1])


def test_a_huge_sparse_matrix_of_small_components():
    n = 100_000
    pairs = sparse.block_diag([sparse.csr_array([[1.0, 0.5], [0.5, 1.0]])] * 10, format="csr")
    K = sparse.kron(sparse.eye_array(n // 20), pairs, format="csr")
    score = vm.score(K, "precomputed")
    two = vm.score([[1, 0.5], [0.5, 1]], "precomputed")
    assert score == pytest.approx(two * n / 2, rel=1e-10)


def test_many_levels_of_a_category_need_no_large_matrix():
    labels = [f"id {i % 40_000}" for i in range(120_000)]
    score = vm.score(labels, Match())
    assert score == pytest.approx(40_000, rel=1e-9)
    assert score.method == "components"


def test_dense_and_sparse_products_of_sparse_features_agree():
    for fill, method in ((0.002, "components"), (0.3, "eigh")):
        X = sparse.random_array((300, 900), density=fill, rng=rng, format="csr")
        X = sparse.csr_array(X + sparse.eye_array(300, 900))
        score = vm.score(X, Cosine())
        assert score.method == method
        assert score == pytest.approx(entropy_score(dense_reference(X.toarray())), rel=1e-10)
        turned = sparse.csr_array(X[:, :200] + sparse.csr_array(np.eye(300, 200)[np.arange(300) % 200]))
        assert vm.score(turned, Cosine()) == pytest.approx(
            entropy_score(dense_reference(turned.toarray())), rel=1e-10
        )


# ---------------------------------------------------------------------------------------------------------- limits


def test_what_would_not_fit_is_refused_with_a_way_around():
    X = np.zeros((DENSE_LIMIT + 1, 1)) + np.arange(DENSE_LIMIT + 1)[:, None]
    with pytest.raises(vm.errors.TooLargeError, match="Leave method='exact'"):
        vm.score(X, RBF(1.0), method="exact")


def test_zero_weights_need_no_row():
    X = rng.standard_normal((30, 40))
    weights = np.zeros(30)
    weights[:5] = 0.2
    assert vm.score(X, weights=weights) == pytest.approx(vm.score(X[:5]), rel=1e-12)
    X[7] = 0.0  # an item of no weight is as good as absent, on either side
    assert vm.score(X, weights=weights) == pytest.approx(vm.score(X[:5]), rel=1e-12)
    assert vm.score(X[:, :6], weights=weights) == pytest.approx(vm.score(X[:5, :6]), rel=1e-12)
    X[7] = 1.0
    K = Cosine().similarity(X).dense()
    assert vm.score(K, "precomputed", weights=weights) == pytest.approx(vm.score(X[:5]), rel=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_matrix_is_mended_only_when_asked(container):
    lopsided = np.array([[1, 0.5], [0.4, 1]])
    with pytest.raises(vm.errors.AsymmetryError, match=r"K\[0, 1\] = 0.5 but K\[1, 0\] = 0.4"):
        vm.score(container(lopsided), "precomputed")
    mended = vm.score(container(lopsided), Precomputed(symmetrize=True))
    assert mended == pytest.approx(vm.score([[1, 0.45], [0.45, 1]], "precomputed"), rel=1e-12)

    scaled = np.array([[4.0, 1.0], [1.0, 1.0]])
    with pytest.raises(vm.errors.DiagonalError, match=r"K\[0, 0\] = 4"):
        vm.score(container(scaled), "precomputed")
    mended = vm.score(container(scaled), Precomputed(normalize=True))
    assert mended == pytest.approx(vm.score([[1, 0.5], [0.5, 1]], "precomputed"), rel=1e-12)

    indefinite = np.array([[1, 0.9, 0], [0.9, 1, 0.9], [0, 0.9, 1]])
    with pytest.raises(vm.errors.IndefiniteError, match=r"lowest eigenvalue is -0\.2728"):
        vm.score(container(indefinite), "precomputed")
    values = np.linalg.eigvalsh(indefinite / 3)
    projected = vm.score(container(indefinite), Precomputed(project=True))
    kept = values[values > 0] / values[values > 0].sum()
    assert projected == pytest.approx(entropy_score(kept), rel=1e-12)
    assert projected.diagnostics["removed_mass"] == pytest.approx(-values[values < 0].sum(), rel=1e-9)


def test_rounding_in_a_users_matrix_is_forgiven_and_counted():
    X = rng.standard_normal((200, 20)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    K = X @ X.T  # float32: the diagonal is off by 1e-7, eigenvalues go below zero
    assert np.linalg.eigvalsh(K.astype(np.float64) / 200)[0] < 0
    score = vm.score(K, "precomputed")
    exact = vm.score(X)
    assert score.bounds[0] <= exact <= score.bounds[1]
    assert exact.half_width < score.half_width < 1e-3 * score


def test_an_indefinite_matrix_is_found_out_on_the_shortcuts_too():
    K = np.eye(600)
    K[0, 1:4] = K[1:4, 0] = 0.9  # three items close to one, and far from each other: impossible
    for q in (2, 3, "inf", 1):
        with pytest.raises(vm.errors.IndefiniteError):
            vm.score(K, "precomputed", q=q)


# ------------------------------------------------------------------------------------- found by an adversarial reading


@pytest.mark.parametrize("weighted", [False, True])
def test_a_million_copies_stay_within_the_bounds(weighted):
    n = 1_000_000
    values = np.arange(n) % 3 * 50.0
    shares = np.bincount(np.arange(n) % 3) / n
    weights = None
    if weighted:
        weights = np.random.default_rng(1).dirichlet(np.ones(n))
        shares = np.array([math.fsum(weights[k::3]) for k in range(3)])
    score = vm.score(values, RBF(1.0), weights=weights)
    exact = math.exp(-math.fsum(p * math.log(p) for p in shares))
    assert score.bounds[0] <= exact <= score.bounds[1]
    assert score.half_width < 1e-12


def test_a_matrix_inside_a_sum_is_checked_like_one_alone():
    table = {"K": np.eye(200), "x": ["a", "b"] * 100}
    kernel = 0.5 * On("K", Precomputed()) + 0.5 * On("x", Match())
    assert vm.score(table, kernel) > 2
    table["K"] = np.eye(200)
    table["K"][3, 150] = 0.9
    with pytest.raises(vm.errors.AsymmetryError, match=r"K\[3, 150\]"):
        vm.score(table, kernel)
    table["K"] = 2 * np.eye(200)
    with pytest.raises(vm.errors.DiagonalError):
        vm.score(table, kernel)
    rows = rng.standard_normal((200, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    table["K"] = rows @ rows.T  # float32: off by rounding, and no more
    assert vm.score(table, kernel) == pytest.approx(
        vm.score({"v": rows, "x": table["x"]}, 0.5 * On("v", Cosine()) + 0.5 * On("x", Match())), rel=1e-4
    )


def test_a_function_in_float32_has_the_rounding_of_float32():
    rows = rng.standard_normal((90, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    exact = vm.score(rows)
    for kernel in (FromFunction(lambda A, B: A @ B.T, block=True), lambda a, b: a @ b):
        score = vm.score(rows, kernel)
        assert score.bounds[0] <= exact <= score.bounds[1]
    assert vm.score_groups(rows, kernel, by=np.arange(90) // 30)[0] == pytest.approx(
        vm.score(rows[:30]), rel=1e-4
    )


def test_negative_eigenvalues_are_rounding_only_as_far_as_the_dtype_explains():
    n = 200
    K = ((1 + 1.02 / (n - 1)) * np.eye(n) - 1.02 / (n - 1)).astype(
        np.float32
    )  # lowest eigenvalue of K: −0.015
    for q in (1, 2, "inf"):
        with pytest.raises(vm.errors.IndefiniteError):
            vm.score(K, "precomputed", q=q)


def test_the_message_of_an_indefinite_weighted_matrix_does_not_claim_an_eigenvalue_of_k():
    K = np.array([[1, 0.9, 0], [0.9, 1, 0.9], [0, 0.9, 1]])
    with pytest.raises(vm.errors.IndefiniteError, match="weighted, its lowest eigenvalue"):
        vm.score(K, "precomputed", weights=[0.4, 0.2, 0.4])


def test_wide_sums_of_features_stay_features():
    X = rng.standard_normal((50, 3000))
    kernel = 0.5 * On("a", Cosine()) + 0.5 * On("b", Cosine())
    assert isinstance(kernel.similarity({"a": X, "b": X[::-1]}), Features)


def test_few_wide_rows_are_not_copied():
    X = rng.standard_normal((300, 40_000)).astype(np.float32)  # 46 MiB
    vm.score(X[:50])
    tracemalloc.start()
    vm.score(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80 << 20


def test_a_tolerance_that_cannot_be_met_is_said():
    X = rng.standard_normal((100, 5)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    with pytest.warns(vm.errors.ToleranceWarning, match="rounding in the given numbers"):
        score = vm.score(X @ X.T, "precomputed", tol=1e-12)
    assert score.diagnostics.tol.half_width > 1e-12


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:os.fork", "ignore::pytest.PytestUnraisableExceptionWarning")  # JAX warns
def test_a_child_of_a_fork_has_its_threads_back():
    if threads_module._switch() is None:
        pytest.skip("NumPy's BLAS here has no thread switch")
    get, put = threads_module._switch()
    before = get()
    put(2)
    try:
        with threads_module.workers(2) as count:
            assert count == 2
            child = os.fork()
            if child == 0:
                os._exit(0 if get() == 2 and not threads_module._lock.locked() else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        put(before)
