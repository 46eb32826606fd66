"""Every kernel against a direct evaluation of its formula."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter.kernels import (
    RBF,
    Cosine,
    Embed,
    FromDistances,
    FromFunction,
    Jaccard,
    Laplacian,
    Match,
    NGram,
    On,
    Polynomial,
    Precomputed,
    ProbabilityProduct,
)
from vendimeter.similarity import Features, Pairwise

rng = np.random.default_rng(7)
WIDE = rng.standard_normal((9, 40)) + 3.0
NARROW = rng.standard_normal((9, 3))
COUNTS = rng.integers(0, 5, (9, 6))
PROBABILITIES = (lambda x: x / x.sum(axis=1, keepdims=True))(rng.random((9, 4)))


def cosine(a, b):
    return a @ b / math.sqrt((a @ a) * (b @ b))


def minmax(a, b):
    top = np.maximum(a, b).sum()
    return np.minimum(a, b).sum() / top if top else 1.0


CASES = [
    (Cosine(), NARROW, cosine),
    (RBF(1.7), NARROW, lambda a, b: math.exp(-((a - b) ** 2).sum() / (2 * 1.7**2))),
    (RBF(5.0), WIDE, lambda a, b: math.exp(-((a - b) ** 2).sum() / 50)),
    (Laplacian(2.0), NARROW, lambda a, b: math.exp(-np.abs(a - b).sum() / 2)),
    (
        Polynomial(3, offset=1.0),
        NARROW,
        lambda a, b: ((a @ b + 1) / math.sqrt((a @ a + 1) * (b @ b + 1))) ** 3,
    ),
    (Polynomial(2, offset=0.0), WIDE, lambda a, b: cosine(a, b) ** 2),
    (Jaccard(), COUNTS, minmax),
    (Jaccard(), COUNTS > 2, lambda a, b: minmax(a.astype(int), b.astype(int))),
    (Jaccard(), COUNTS * 100, minmax),
    (Jaccard(), COUNTS * 0.3, minmax),
    (ProbabilityProduct(), PROBABILITIES, lambda a, b: np.sqrt(a * b).sum()),
    (Match(), COUNTS[:, 0], lambda a, b: float(a == b)),
    (Match(), COUNTS[:, :2], lambda a, b: float((a == b).all())),
    (Match(fraction=True), COUNTS, lambda a, b: (a == b).mean()),
    (
        0.25 * Cosine() + 0.75 * RBF(2.0),
        NARROW,
        lambda a, b: 0.25 * cosine(a, b) + 0.75 * math.exp(-((a - b) ** 2).sum() / 8),
    ),
    (Cosine() * Cosine(), NARROW, lambda a, b: cosine(a, b) ** 2),
    (Cosine() * Laplacian(1.0), NARROW, lambda a, b: cosine(a, b) * math.exp(-np.abs(a - b).sum())),
    (0.5 * (Cosine() + Polynomial(1, offset=0.0)), NARROW, cosine),
]


@pytest.mark.parametrize(
    ("kernel", "samples", "formula"),
    CASES,
    ids=lambda x: repr(x)[:40] if isinstance(x, vm.kernels.Kernel) else "",
)
def test_kernel_is_its_formula(kernel, samples, formula):
    similarity = kernel.similarity(samples)
    expected = np.array([[formula(a, b) for b in samples] for a in samples])
    np.testing.assert_allclose(similarity.dense(), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        similarity.block(np.array([2, 0]), np.array([5, 2, 1])), expected[[2, 0]][:, [5, 2, 1]], atol=1e-12
    )
    values = np.clip(np.linalg.eigvalsh(expected / len(samples)), 1e-300, None)
    assert vm.score(samples, kernel) == pytest.approx(math.exp(-(values * np.log(values)).sum()), rel=1e-9)


@pytest.mark.parametrize(("kernel", "samples"), [
    (Cosine(), COUNTS + 1), (Polynomial(2), COUNTS), (Polynomial(2, offset=0.0), COUNTS + 1),
    (Jaccard(), COUNTS), (Jaccard(), COUNTS * 0.3),
    (ProbabilityProduct(), np.array([[1.0, 0, 0], [0, 0.5, 0.5]])),
])  # fmt: skip
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_array, sparse.coo_matrix])
def test_sparse_rows_give_what_dense_rows_give(kernel, samples, container):
    dense, thin = kernel.similarity(samples), kernel.similarity(container(samples))
    np.testing.assert_allclose(thin.dense(), dense.dense(), atol=1e-13)
    assert vm.score(container(samples), kernel) == pytest.approx(vm.score(samples, kernel), rel=1e-12)


def test_sums_and_products_of_features_stay_features():
    table = {"shape": list("ab" * 30), "colour": list("rgb" * 20), "vector": rng.standard_normal((60, 3))}
    shape, colour, vector = On("shape", Match()), On("colour", Match()), On("vector", Cosine())
    for kernel, width in (
        (0.5 * shape + 0.5 * colour, 5),
        (shape * colour, 6),
        (0.5 * shape + 0.5 * vector, 5),
        (colour * vector, 9),
        (vector * vector, 9),
    ):
        similarity = kernel.similarity(table)
        assert isinstance(similarity, Features)
        assert similarity.width == width
        parts = [part.similarity(table).dense() for part in (shape, colour, vector)]
        by_name = {"shape": parts[0], "colour": parts[1], "vector": parts[2]}
        columns = [
            k.column for k in (kernel.factors if hasattr(kernel, "factors") else [t[1] for t in kernel.terms])
        ]
        expected = (
            math.prod(by_name[c] for c in columns)
            if hasattr(kernel, "factors")
            else 0.5 * sum(by_name[c] for c in columns)
        )
        np.testing.assert_allclose(similarity.dense(), expected, atol=1e-14)


def test_a_product_wider_than_the_matrix_is_evaluated_in_blocks():
    similarity = (Cosine() * Cosine()).similarity(WIDE)
    assert isinstance(similarity, Pairwise)


def test_the_paper_toy_scores_as_a_dense_computation():
    items = list(itertools.product(["disc", "star", "cross"], ["red", "blue"]))
    table = {"shape": [s for s, _ in items], "colour": [c for _, c in items]}
    K = np.array([[0.5 * (a[0] == b[0]) + 0.5 * (a[1] == b[1]) for b in items] for a in items])
    kernel = 0.5 * On("shape", Match()) + 0.5 * On("colour", Match())
    assert vm.score(table, kernel) == pytest.approx(vm.score(K, Precomputed()), rel=1e-12)


def test_the_median_bandwidth_is_the_median_distance_and_is_reported():
    samples = np.array([0.0, 1.0, 3.0])  # distances 1, 2, 3
    score = vm.score(samples, RBF())
    assert score.diagnostics["kernel"] == "RBF(sigma=2.0)"
    assert score == vm.score(samples, RBF(2.0))
    assert vm.score(samples, Laplacian()).diagnostics["kernel"] == "Laplacian(scale=2.0)"
    doubled = vm.score(np.repeat(samples, 2), RBF())
    assert doubled.diagnostics["kernel"] == "RBF(sigma=2.0)"  # copies do not move it
    assert doubled == pytest.approx(score, rel=1e-12)
    assert vm.score(np.zeros(4), RBF()) == 1


def test_the_median_bandwidth_of_groups_is_fitted_on_all_items():
    samples = np.array([0.0, 1.0, 3.0, 10.0])
    groups = vm.score_groups(samples, RBF(), by=["a", "a", "b", "b"])
    whole = RBF().similarity(samples).kernel
    assert groups["a"] == pytest.approx(vm.score(samples[:2], whole), rel=1e-12)
    assert groups["a"].diagnostics["kernel"] == repr(whole)
    nested = vm.score_groups({"a": samples[:2], "b": samples[2:]}, RBF())
    assert nested["b"] == pytest.approx(groups["b"], rel=1e-12)


def test_ngrams_are_the_mean_cosine_of_bags_of_each_length():
    texts = ["the cat sat", "the cat sat on the mat", "dogs", "dogs", "", "cat"]

    def grams(text, n):
        tokens = text.split()
        found = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
        return found or [tuple(tokens)]

    def k(a, b):
        total = 0
        for n in (1, 2, 3):
            bags = [{g: grams(t, n).count(g) for g in grams(t, n)} for t in (a, b)]
            short = [len(t.split()) < n for t in (a, b)]
            dot = (
                sum(c * bags[1].get(g, 0) for g, c in bags[0].items())
                if short[0] == short[1] or n == 1
                else 0
            )
            total += dot / math.sqrt(math.prod(sum(c * c for c in bag.values()) for bag in bags))
        return total / 3

    expected = np.array([[k(a, b) for b in texts] for a in texts])
    np.testing.assert_allclose(NGram(1, 3).similarity(texts).dense(), expected, atol=1e-14)
    np.testing.assert_allclose(np.diagonal(expected), 1)


def test_ngram_options():
    assert vm.score(["A b", "a B"], NGram(1, 1)) == pytest.approx(1)
    assert vm.score(["A b", "a B"], NGram(1, 1, lowercase=False)) == pytest.approx(2)
    assert vm.score(["a-b", "a b"], NGram(1, 1, tokenizer=str.split)) == pytest.approx(2)
    assert NGram(1, 1, tokenizer=list).similarity(["ab", "bc"]).dense()[0, 1] == pytest.approx(0.5)


def test_jaccard_of_sets_and_of_nothing():
    sets = [{"a", "b"}, {"b", "c"}, set(), set()]
    expected = [[1, 1 / 3, 0, 0], [1 / 3, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    np.testing.assert_allclose(Jaccard().similarity(sets).dense(), expected)
    np.testing.assert_allclose(Jaccard().similarity(np.zeros((2, 3), bool)).dense(), np.ones((2, 2)))
    assert vm.kernels.Tanimoto is Jaccard


def test_distances_become_similarities_in_three_forms():
    points = np.array([0.0, 1.0, 4.0])
    D = np.abs(np.subtract.outer(points, points))
    for form, formula in (
        ("exponential", np.exp(-D / 2)),
        ("gaussian", np.exp(-(D**2) / 8)),
        ("linear", 1 - D / 8),
    ):
        scale = 8.0 if form == "linear" else 2.0
        np.testing.assert_allclose(FromDistances(scale, form=form).similarity(D).dense(), formula, atol=1e-15)
    assert vm.score(D, FromDistances()).diagnostics["kernel"].startswith("FromDistances(scale=3.0")
    assert vm.score(D, FromDistances(2.0)) == pytest.approx(vm.score(points, Laplacian(2.0)), rel=1e-12)
    with pytest.raises(vm.errors.IndefiniteError, match="project=True"):
        vm.score([[0, 1, 5], [1, 0, 1], [5, 1, 0]], FromDistances(1.0, form="linear"))


def test_functions_of_pairs_and_of_blocks_agree():
    samples = list(range(100))

    def block(A, B):
        return np.exp(-np.abs(np.subtract.outer(A, B)) / 3)

    pairwise = vm.score(samples, lambda a, b: math.exp(-abs(a - b) / 3))
    assert pairwise == pytest.approx(vm.score(samples, FromFunction(block, block=True)), rel=1e-12)
    assert pairwise == pytest.approx(vm.score(np.arange(100.0), Laplacian(3.0)), rel=1e-12)


def test_a_function_is_called_once_a_pair():
    calls = []

    def k(a, b):
        calls.append((a, b))
        return float(a == b)

    n = 200
    assert vm.score(list(range(n)), k) == pytest.approx(n)
    assert len(calls) == n * (n + 1) // 2 + 1024  # each pair once, and 1,024 again to see that k is symmetric
    calls.clear()
    assert vm.score(["a", "b"] * 100, k) == pytest.approx(2)  # equal items are identical, and compared once
    assert len(calls) == 4


def test_a_large_asymmetric_function_is_found_out():
    def k(a, b):
        return 1.0 if a == b else 0.1 + 0.001 * (a < b)

    def block(A, B):
        return np.where(np.equal.outer(A, B), 1.0, 0.1 + 0.001 * np.less.outer(A, B))

    for n in (10, 200, 1100):
        samples = list(range(n))
        for kernel in (k, FromFunction(block, block=True)):
            with pytest.raises(vm.errors.AsymmetryError, match="not symmetric"):
                vm.score(samples, kernel)
        expected = vm.score(block(samples, samples), Precomputed(symmetrize=True))
        mended = FromFunction(block, block=True, symmetrize=True)
        assert vm.score(samples, mended) == pytest.approx(expected, rel=1e-12)
        if n == 200:
            assert vm.score(samples, FromFunction(k, symmetrize=True)) == pytest.approx(expected, rel=1e-12)


def test_an_encoder_is_called_in_batches_with_a_last_batch_of_one():
    sizes = []

    def encoder(items):
        sizes.append(len(items))
        return [[item, 1.0] for item in items]

    score = vm.score(list(range(7)), Embed(encoder, batch_size=3))
    assert sizes == [3, 3, 1]
    assert score == pytest.approx(vm.score(np.column_stack([range(7), np.ones(7)])), rel=1e-12)
    fitted = vm.score([0.0, 1.0, 3.0], Embed(lambda x: np.array(x)[:, None], RBF()))
    assert fitted.diagnostics["kernel"].endswith("RBF(sigma=2.0))")
    sizes.clear()
    vm.score(list(range(7)), Embed(encoder, RBF()))
    assert sizes == [7]  # also a kernel that is fitted encodes once


def test_kernels_hold_no_samples_and_compare_by_value():
    assert Cosine() == Cosine()
    assert RBF(1.0) != RBF(2.0)
    assert hash(0.5 * Cosine() + 0.5 * RBF(1.0)) == hash(0.5 * Cosine() + 0.5 * RBF(1.0))
    assert repr(0.5 * (Cosine() + Match())) == "0.5*Cosine() + 0.5*Match()"
    assert repr(Cosine() * Match()) == "Cosine()*Match()"
    assert sum([0.5 * Cosine(), 0.5 * Match()]) == 0.5 * Cosine() + 0.5 * Match()
    assert (Cosine() + Match()) / 2 == 0.5 * Cosine() + 0.5 * Match()
    assert Cosine() ** 2 == Cosine() * Cosine()
    assert 2 * Cosine() * (0.5 * Match()) == Cosine() * Match()
