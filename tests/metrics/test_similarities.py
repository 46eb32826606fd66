"""Internal diversity, mean similarity, Leinster and Cobbold: against the formulas, one pair after another."""

from __future__ import annotations

import functools
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import vendimeter as vm
from vendimeter.data.collection import Collection
from vendimeter.errors import AsymmetryError, DiagonalError, EmptyError, InputError, MatrixError
from vendimeter.kernels import RBF, Cosine, FromFunction, Match, Morgan, NGram, Polynomial, Precomputed
from vendimeter.metrics.similarities import SimilarityProfile, intdiv, leinster_cobbold, mean_similarity
from vendimeter.solvers import sums

RNG = np.random.default_rng(4)
ROWS = RNG.random((40, 6))
SIGNED = RNG.standard_normal((40, 6))
TEXTS = ["red car", "red car", "blue car", "a blue boat", "boats", "red", "red car"]
P = RNG.dirichlet(np.ones(40))
COUNTS = RNG.integers(0, 4, 40)
ORDERS = [0, 0.3, 1 - 1e-9, 1, 1 + 1e-9, 1.4, 2, 3, 40, 1e4, math.inf]


def cosines(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T


K = cosines(ROWS)


def expected_intdiv(K, p=1, diagonal=True, weights=None, counts=None):
    """One pair after another; with counts every copy is an item of its own."""
    if counts is not None:
        each = np.repeat(np.arange(len(K)), counts)
        return expected_intdiv(K[np.ix_(each, each)], p, diagonal)
    w = np.full(len(K), 1 / len(K)) if weights is None else np.asarray(weights)
    pairs = [(i, j) for i in range(len(K)) for j in range(len(K)) if diagonal or i != j]
    total = math.fsum(w[i] * w[j] for i, j in pairs)
    return 1 - (math.fsum(w[i] * w[j] * K[i, j] ** p for i, j in pairs) / total) ** (1 / p)


def expected_means(K, diagonal=True, weights=None, counts=None):
    if counts is not None:
        each = np.repeat(np.arange(len(K)), counts)
        leave = np.arange(len(K)) if not diagonal else np.full(len(K), -1)
        means = []
        for i in range(len(K)):
            others = list(each)
            if leave[i] in others:
                others.remove(i)
            means.append(np.mean(K[i, others]))
        return np.array(means)
    w = np.full(len(K), 1 / len(K)) if weights is None else np.asarray(weights)
    off = np.zeros(len(K)) if diagonal else w * np.diag(K)
    return (K @ w - off) / (1 - (0 if diagonal else w))


def expected_diversity(K, q, weights=None):
    p = np.full(len(K), 1 / len(K)) if weights is None else np.asarray(weights)
    K, p = K[np.ix_(p > 0, p > 0)], p[p > 0]
    x = K @ p
    if q == 1:
        return math.exp(-np.sum(p * np.log(x)))
    if math.isinf(q):
        return 1 / x.max()
    return np.sum(p * x ** (q - 1)) ** (1 / (1 - q))


def weighings():
    return [{}, {"weights": P}, {"counts": COUNTS}]


# ------------------------------------------------------------------------------------------------ internal diversity


def test_internal_diversity_by_hand():
    assert intdiv(["a", "a", "b", "b"], "match") == 0.5
    assert intdiv(["a", "a", "b", "b"], "match", diagonal=False) == pytest.approx(2 / 3)
    assert intdiv(["a", "b"], "match", counts=[2, 2], diagonal=False) == pytest.approx(2 / 3)
    # As probabilities the two items are two, and of no similarity.
    assert intdiv(["a", "b"], "match", weights=[0.5, 0.5], diagonal=False) == 1
    assert intdiv([[1, 0.6], [0.6, 1]], "precomputed", p=2) == pytest.approx(1 - math.sqrt((1 + 0.36) / 2))
    assert intdiv([[1, 0.6], [0.6, 1]], "precomputed", p=2, diagonal=False) == pytest.approx(0.4)
    assert type(intdiv(ROWS)) is float


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("weighing", weighings(), ids=["plain", "weights", "counts"])
@pytest.mark.parametrize("p", [1, 2, 3, 1.5, 20, 100.5])
def test_internal_diversity_is_that_of_the_formula_by_every_way(p, weighing, diagonal):
    right = pytest.approx(expected_intdiv(K, p, diagonal, **weighing), rel=1e-11)
    options = {"p": p, "diagonal": diagonal, **weighing}
    assert intdiv(ROWS, **options) == right
    assert intdiv(sparse.csr_array(ROWS), **options) == right
    assert intdiv(ROWS, Polynomial(1, offset=0), **options) == right
    assert intdiv(K, "precomputed", **options) == right
    assert intdiv(sparse.coo_array(K), "precomputed", **options) == right
    assert intdiv(3 * K, Precomputed(normalize=True), **options) == right
    assert intdiv(ROWS, lambda a, b: a @ b / math.sqrt((a @ a) * (b @ b)), **options) == right
    assert intdiv(ROWS, FromFunction(lambda A, B: A @ B.T, block=True, normalize=True), **options) == right
    assert intdiv(np.hstack([ROWS, np.zeros((40, 60))]), **options) == right  # more columns than rows


@pytest.mark.parametrize("p", [1, 2, 2.5])
def test_identical_items_are_compared_once_and_counted_as_often_as_they_are(p):
    calls = []

    def shared(a, b):
        calls.append((a, b))
        return len(set(a.split()) & set(b.split())) / len(set(a.split()) | set(b.split()))

    matrix = np.array([[shared(a, b) for b in TEXTS] for a in TEXTS])
    for diagonal in (True, False):
        calls.clear()
        right = expected_intdiv(matrix, p, diagonal)
        assert intdiv(TEXTS, shared, p=p, diagonal=diagonal) == pytest.approx(right, rel=1e-12)
        assert len(calls) == 5 * 5  # of seven texts two are copies
        np.testing.assert_allclose(
            mean_similarity(TEXTS, shared, diagonal=diagonal), expected_means(matrix, diagonal), rtol=1e-12
        )


def test_blocks_of_one_row_at_the_end():
    rows = RNG.random((1025, 3))
    matrix = np.exp(-((rows[:, None] - rows[None]) ** 2).sum(axis=2) / 2)
    for p in (1, 3):
        power = np.mean(matrix**p) ** (1 / p)
        assert intdiv(rows, RBF(1.0), p=p) == pytest.approx(1 - power, rel=1e-12)
    np.testing.assert_allclose(mean_similarity(rows, RBF(1.0)), matrix.mean(axis=1), rtol=1e-13)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert intdiv(rows, p=3) == pytest.approx(1 - np.mean((unit @ unit.T) ** 3) ** (1 / 3), rel=1e-12)


def test_strips_of_features(monkeypatch):
    monkeypatch.setattr(sums, "BLOCK_BYTES", 8 * 6 * 13)  # 13 rows, so that the last strip has one
    monkeypatch.setattr(sums, "SPARSE_ROWS", 13)
    for rows in (ROWS, sparse.csr_array(ROWS)):
        np.testing.assert_allclose(mean_similarity(rows), K.mean(axis=1), rtol=1e-13)
        assert intdiv(rows) == pytest.approx(1 - K.mean(), rel=1e-13)


def test_the_way_of_features_is_left_where_rounding_would_show(monkeypatch):
    """Orthogonal rows and a light copy of one: what is left without the diagonal is 10⁻⁹ of the sum."""
    turned, _ = np.linalg.qr(RNG.standard_normal((8, 8)))
    rows = np.vstack([turned, turned[:1]])  # no more columns than rows: the way of the 8×8 matrix
    weights = np.full(9, 1 / 8)
    weights[[0, 8]] = 1 / 8 - 1e-11, 1e-11
    right = 1 - math.sqrt(2 * weights[0] * 1e-11 / np.sum(weights * (1 - weights)))
    assert intdiv(rows, p=2, weights=weights, diagonal=False) == pytest.approx(right, abs=1e-13)
    assert intdiv(turned, p=2, diagonal=False) == pytest.approx(1, abs=1e-15)
    monkeypatch.setattr(sums, "LEFT", -1.0)  # otherwise eight digits would be lost
    assert intdiv(rows, p=2, weights=weights, diagonal=False) != pytest.approx(right, abs=1e-13)


def test_large_powers_do_not_vanish():
    matrix = np.full((5, 5), 0.5) + 0.5 * np.eye(5)
    for p in (16, 17, 2000, 1e6):
        for form in (np.array, sparse.csr_array):
            diversity = intdiv(form(matrix), "precomputed", p=p, diagonal=False)
            assert diversity == pytest.approx(0.5, rel=1e-13)
    assert intdiv(np.eye(5), "precomputed", p=2000, diagonal=False) == 1
    assert intdiv(sparse.eye_array(5), "precomputed", p=2000, diagonal=False) == 1
    matrix[0, 1] = matrix[1, 0] = 0.9  # the largest comes to rule, wherever it stands
    right = 1 - 0.9 * (2 / 20) ** (1 / 5000)
    assert intdiv(matrix, "precomputed", p=5000, diagonal=False) == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("rest", [1e-3, 1e-9, 1e-15])
def test_an_item_that_has_nearly_all_the_weight(rest):
    """What the others weigh is added up, not found as the difference from 1."""
    weights = np.array([rest / 4, 1 - rest, 3 * rest / 4])
    others = weights[[0, 2]] / (weights[0] + weights[2]) @ K[[0, 2], 1]
    between = 2 * weights[0] * weights[2]
    across = 2 * weights[1] * (weights[0] + weights[2])
    right = 1 - (across * others + between * K[0, 2]) / (across + between)
    for given_ in ((ROWS[:3],), (sparse.csr_array(ROWS[:3]),), (K[:3, :3], "precomputed")):
        options = {"weights": weights, "diagonal": False}
        assert mean_similarity(*given_, **options)[1] == pytest.approx(others, rel=1e-12)
        assert intdiv(*given_, **options) == pytest.approx(right, rel=1e-12)


def test_negative_similarities_have_whole_powers_only():
    signed = cosines(SIGNED)
    for p in (1, 2, 4):
        assert intdiv(SIGNED, p=p) == pytest.approx(1 - np.mean(signed**p) ** (1 / p), rel=1e-11)
    assert intdiv(SIGNED, p=3) == pytest.approx(1 - np.mean(signed**3) ** (1 / 3), rel=1e-11)
    for given_ in ((SIGNED,), (signed, "precomputed"), (sparse.csr_array(signed), "precomputed")):
        with pytest.raises(InputError, match=r"a similarity is -0\.\d+, and its power p=2\.5 is not a real"):
            intdiv(*given_, p=2.5)
    negative = np.array([[1, -0.5], [-0.5, 1]])
    assert intdiv(negative, "precomputed", diagonal=False) == 1.5
    for p in (3, 51):
        with pytest.raises(InputError, match=rf"to the power p={p} is \(-0\.5\d*\)\^{p}, and has no root"):
            intdiv(negative, "precomputed", p=p, diagonal=False)
    # A zero that rounding has made negative is a zero.
    assert intdiv([[1, -1e-16], [-1e-16, 1]], "precomputed", p=1.5) == pytest.approx(1 - 0.5 ** (1 / 1.5))
    for seed in range(4):
        turned, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((8, 8)))
        for p in (3, 17):
            assert intdiv(turned, p=p, diagonal=False) == pytest.approx(1, abs=1e-15)


@settings(max_examples=40)
@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=12))
def test_internal_diversity_of_labels_is_that_of_gini_and_simpson(labels):
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    assert intdiv(labels, "match") == pytest.approx(1 - np.sum(shares**2), abs=1e-14)
    assert intdiv(labels, "match", p=2) == pytest.approx(1 - math.sqrt(np.sum(shares**2)), abs=1e-14)
    names, counts = np.unique(labels, return_counts=True)
    assert intdiv(names, Match(), counts=counts) == pytest.approx(intdiv(labels, "match"), abs=1e-14)
    # 1 − IntDiv = 1/VS₂ where similarities are 0 or 1.
    assert 1 / (1 - intdiv(labels, "match")) == pytest.approx(float(vm.score(labels, "match", q=2)))
    assert leinster_cobbold(labels, "match") == pytest.approx(float(vm.score(labels, "match")))


def test_items_without_weight_are_left_out():
    weights = np.where(np.arange(40) < 10, 0.1, 0)
    signed = np.vstack([ROWS[:10], -ROWS[10:]])  # of which only those without weight are negative
    for p in (1, 1.5, 2):
        for diagonal in (True, False):
            right = expected_intdiv(K[:10, :10], p, diagonal)
            assert intdiv(signed, p=p, weights=weights, diagonal=diagonal) == pytest.approx(right, rel=1e-12)
    assert leinster_cobbold(signed, weights=weights) == pytest.approx(expected_diversity(K[:10, :10], 1))
    broken = signed.copy()
    broken[20] = np.nan
    assert leinster_cobbold(broken, weights=weights) == leinster_cobbold(signed, weights=weights)
    for measure in (intdiv, leinster_cobbold):  # and messages go by the user's own positions
        with pytest.raises(MatrixError, match=r"k\[1, 1\] is nan"):
            measure([4, 5, 6], lambda a, b: math.nan if 5 in (a, b) else 1.0, weights=[0, 0.5, 0.5])


# ---------------------------------------------------------------------------------------------------- mean similarity


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("weighing", weighings(), ids=["plain", "weights", "counts"])
def test_mean_similarity_is_that_of_the_formula_by_every_way(weighing, diagonal):
    right = expected_means(K, diagonal, **weighing)
    for given_ in (
        (ROWS,),
        (sparse.csr_array(ROWS),),
        (K, "precomputed"),
        (sparse.csc_array(K), "precomputed"),
        (ROWS, lambda a, b: a @ b / math.sqrt((a @ a) * (b @ b))),
    ):
        means = mean_similarity(*given_, diagonal=diagonal, **weighing)
        np.testing.assert_allclose(means, right, rtol=1e-12)
        assert type(means) is np.ndarray
        assert means.dtype == np.float64


def test_the_mean_of_mean_similarities_is_what_internal_diversity_lacks():
    assert P @ mean_similarity(ROWS, weights=P) == pytest.approx(1 - intdiv(ROWS, weights=P), rel=1e-13)
    means = mean_similarity(ROWS, diagonal=False)
    assert means.mean() == pytest.approx(1 - intdiv(ROWS, diagonal=False), rel=1e-13)


def test_an_item_that_has_all_the_weight_has_no_others():
    with pytest.raises(InputError, match="item 1 has all the weight, and diagonal=False"):
        mean_similarity(ROWS[:3], weights=[0, 1, 0], diagonal=False)
    np.testing.assert_allclose(mean_similarity(ROWS[:3], weights=[0, 1, 0]), K[1, :3], rtol=1e-14)
    with pytest.raises(InputError, match="item 0 has all the weight"):
        mean_similarity(["a"], "match", diagonal=False)
    assert mean_similarity(["a"], "match", counts=[2], diagonal=False) == [1.0]


# ---------------------------------------------------------------------------------------- Leinster and Cobbold


@pytest.mark.parametrize("weights", [None, P, np.where(np.arange(40) % 3, 0, 1 / 14)])
@pytest.mark.parametrize("q", [0, 0.3, 0.999, 1, 1.4, 2, 3, 17.5, 40])
def test_diversity_is_that_of_the_formula_by_every_way(q, weights):
    right = pytest.approx(expected_diversity(K, q, weights), rel=1e-11)
    assert leinster_cobbold(ROWS, q=q, weights=weights) == right
    assert leinster_cobbold(K, "precomputed", q=q, weights=weights) == right
    assert leinster_cobbold(sparse.csr_array(K), "precomputed", q=q, weights=weights) == right
    assert (
        leinster_cobbold(ROWS, lambda a, b: a @ b / math.sqrt((a @ a) * (b @ b)), q=q, weights=weights)
        == right
    )


def test_orders_near_one_and_very_high_ones():
    """In 60 digits, of very uneven items: a rare item that is like no other beside a cluster."""
    mpmath = pytest.importorskip("mpmath")
    matrix = np.full((30, 30), 0.9) + 0.1 * np.eye(30)
    matrix[-1, :-1] = matrix[:-1, -1] = 0
    weights = np.append(np.full(29, (1 - 1e-6) / 29), 1e-6)
    with mpmath.workdps(60):
        shares = mpmath.matrix(weights)
        shares /= mpmath.fsum(shares)  # near order 1, what they lack of 1 would be all that is seen
        x = mpmath.matrix(matrix) * shares
        for q in (1 - 1e-3, 1 - 1e-9, 1 + 1e-15, 1 + 1e-9, 1 + 1e-4, 0.6, 1.3, 1.49, 100, 1e5, 1e12):
            t = mpmath.mpf(q) - 1
            total = mpmath.fsum(w * v**t for w, v in zip(shares, x, strict=True))
            right = float(total ** (-1 / t))
            diversity = leinster_cobbold(matrix, "precomputed", q=q, weights=weights)
            assert diversity == pytest.approx(right, rel=1e-14), q
    assert leinster_cobbold(matrix, "precomputed", q="inf", weights=weights) == pytest.approx(right, rel=1e-9)


def test_diversities_fall_with_the_order():
    profile = leinster_cobbold(ROWS, q=ORDERS, weights=P)
    assert (np.diff(profile.diversities) <= 1e-12).all()
    assert profile[0] > profile["inf"] > 1


@given(
    st.lists(st.floats(0.01, 1), min_size=1, max_size=8),
    st.sampled_from([0, 0.5, 1, 1.2, 2, 5, math.inf]),
)
def test_items_that_are_like_no_other_have_their_hill_number(parts, q):
    p = np.array(parts) / np.sum(parts)
    if q == 1:
        right = math.exp(-np.sum(p * np.log(p)))
    else:
        right = 1 / p.max() if math.isinf(q) else np.sum(p**q) ** (1 / (1 - q))
    diversity = leinster_cobbold(np.eye(len(p)), "precomputed", q=q, weights=p)
    assert diversity == pytest.approx(right, rel=1e-12)
    assert 1 - 1e-12 <= diversity <= len(p) * (1 + 1e-12)
    # All alike: one, whatever their weights.
    assert leinster_cobbold(np.ones((len(p), len(p))), "precomputed", q=q, weights=p) == pytest.approx(1)


def test_a_worked_example_of_naive_against_similarity_sensitive_diversity():
    """Two communities, of twelve species with little and with much in common: the second is less diverse."""
    groups = np.kron(np.eye(3), np.ones((4, 4)))
    near = 0.8 * groups + 0.2 * np.eye(12)
    # Every species is like the three others of its genus: (Kp) = (1 + 3·0.8)/12 for all of them, so all orders agree.
    for q in ORDERS:
        assert leinster_cobbold(near, "precomputed", q=q) == pytest.approx(12 / 3.4, rel=1e-9)
        assert leinster_cobbold(np.eye(12), "precomputed", q=q) == pytest.approx(12, rel=1e-9)
        assert leinster_cobbold(groups, "precomputed", q=q) == pytest.approx(3, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_vendi_score_is_never_below(seed):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(15, 0.5))
    rows = rng.random((15, 1 + seed)) * rng.choice([0.1, 1, 5])
    for kernel, given_ in (("rbf", rows), (Cosine(), np.hstack([rows, np.ones((15, 1))]))):
        for q in (0, 0.5, 1, 1.5, 2, 3, math.inf):
            ours = leinster_cobbold(given_, kernel, q=q, weights=weights)
            assert 1 - 1e-12 <= ours <= float(vm.score(given_, kernel, q=q, weights=weights)) * (1 + 1e-9)


def test_a_matrix_need_not_be_positive_semidefinite():
    matrix = np.array([[1, 0.9, 0], [0.9, 1, 0.9], [0, 0.9, 1]])
    with pytest.raises(InputError, match="not positive semidefinite"):
        vm.score(matrix, "precomputed")
    assert leinster_cobbold(matrix, "precomputed", q=2) == pytest.approx(9 / matrix.sum())
    assert intdiv(matrix, "precomputed") == pytest.approx(1 - matrix.mean())


def test_negative_mean_similarities_are_refused():
    pair = np.array([[1, -1], [-1, 1]])
    with pytest.raises(InputError, match=r"item 0 has a mean similarity of 0 with all items.*from 0 up"):
        leinster_cobbold(pair, "precomputed")
    with pytest.raises(InputError, match=r"of 0\.25 with all items, itself among them with 0\.5"):
        leinster_cobbold([[1, -0.5], [-0.5, 1]], "precomputed")  # a diversity of 4 for two items
    slightly = np.array([[1, -1e-9], [-1e-9, 1]], dtype=np.float32)  # which float32 cannot tell from 0
    assert leinster_cobbold(slightly, "precomputed", q=2) == pytest.approx(2)
    rows = np.vstack([SIGNED, -SIGNED])  # all of them cancel, up to rounding
    for q in (0, 1, 2, "inf"):
        with pytest.raises(InputError, match=r"item \d+ has a mean similarity of"):
            leinster_cobbold(rows, q=q)
    weights = np.array([0.0, 0.2, 0.8])
    opposite = [[1, 0], [1, 0], [-1, 0.1]]
    with pytest.raises(InputError, match=r"item 1 has a mean similarity of -0\.59"):
        leinster_cobbold(opposite, weights=weights)


def test_a_profile_is_a_mapping():
    profile = leinster_cobbold(["a", "a", "b", "c"], "match", q=[0, 1.5, "inf"])
    assert isinstance(profile, SimilarityProfile)
    assert list(profile) == [0, 1.5, math.inf]
    assert dict(profile)[1.5] == leinster_cobbold(["a", "a", "b", "c"], "match", q=1.5)
    assert profile["inf"] == profile[math.inf] == 2
    assert len(profile) == 3
    assert profile.n == 4
    with pytest.raises(InputError, match="there is no order in this profile 7"):
        profile[7]
    assert json.loads(json.dumps(profile.to_dict())) == {
        "n": 4,
        "profile": [
            {"q": 0, "diversity": 3.0},
            {"q": 1.5, "diversity": profile[1.5]},
            {"q": "inf", "diversity": 2.0},
        ],
    }
    frame = profile.to_frame()
    assert frame["diversity"].tolist() == list(profile.values())
    assert frame["q"].tolist() == [0, 1.5, math.inf]
    assert "<td>inf</td><td>2</td>" in profile._repr_html_()
    assert repr(profile) == "SimilarityProfile({0: 3, 1.5: 2.74517, inf: 2}, n=4)"
    assert leinster_cobbold(["a", "b"], "match", q=[1], counts=[30, 10]).n == 40


# ------------------------------------------------------------------------------------------ every kind of samples


def test_every_library(library):
    rows, matrix = library.array(ROWS), library.array(K)
    for given_, p, diagonal in (
        ((rows,), 1, False),
        ((rows,), 2, True),
        ((matrix, "precomputed"), 20.5, False),
    ):
        right = pytest.approx(expected_intdiv(K, p, diagonal, weights=P), rel=1e-11)
        assert intdiv(*given_, p=p, diagonal=diagonal, weights=P) == right
    for given_ in ((rows,), (matrix, "precomputed")):
        means = mean_similarity(*given_, diagonal=False)
        assert type(means) is np.ndarray
        np.testing.assert_allclose(means, expected_means(K, diagonal=False), rtol=1e-11)
    block = FromFunction(lambda A, B: A @ B.T, block=True, normalize=True)
    assert intdiv(rows, block) == pytest.approx(1 - K.mean(), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint16, bool])
def test_every_dtype_is_upcast_and_left_alone(dtype):
    rows = (10 * ROWS).astype(dtype)
    rows[:, 0] = 1
    before = rows.copy()
    right = cosines(rows.astype(np.float64))
    for p in (1, 2, 3):
        assert intdiv(rows, p=p) == pytest.approx(np.float64(1 - np.mean(right**p) ** (1 / p)), abs=1e-14)
    np.testing.assert_allclose(mean_similarity(rows), right.mean(axis=1), rtol=1e-14)
    assert rows.dtype == dtype
    np.testing.assert_array_equal(rows, before)


def test_nothing_given_is_changed(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS.astype(np.float32))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    matrix = K.copy()
    thin = sparse.csr_array(np.where(K > 0.8, K, 0))
    copy, weights = thin.copy(), P.copy()
    for measure in (
        intdiv,
        functools.partial(intdiv, p=3, diagonal=False),
        mean_similarity,
        leinster_cobbold,
    ):
        measure(rows, weights=weights)
        measure(matrix, "precomputed", weights=weights)
        measure(thin, "precomputed", weights=weights)
    np.testing.assert_array_equal(matrix, K)
    np.testing.assert_array_equal(weights, P)
    assert abs(thin - copy).max() == 0


def test_large_sparse_matrices_are_never_dense():
    n = 60_000
    matrix = sparse.csr_array(sparse.diags_array([0.3, 1, 0.3], offsets=[-1, 0, 1], shape=(n, n)))
    right = (n + 0.6 * (n - 1)) / n**2
    assert intdiv(matrix, "precomputed") == pytest.approx(1 - right, rel=1e-14)
    assert intdiv(matrix, "precomputed", p=2, diagonal=False) == pytest.approx(
        1 - math.sqrt(2 * 0.09 / n), rel=1e-14
    )
    assert leinster_cobbold(matrix, "precomputed", q=2) == pytest.approx(1 / right, rel=1e-12)
    texts = [f"word{i} word{i + 1}" for i in range(20_000)]
    assert intdiv(texts, NGram(1, 1), p=2) == pytest.approx(
        1 - math.sqrt((20_000 + 2 * 19_999 * 0.25) / 4e8), rel=1e-12
    )


def test_collections_bring_their_weights():
    weighted = Collection(list("abc"), weights=np.array([1, 1, 2]))
    assert intdiv(weighted, "match") == pytest.approx(1 - (1 + 1 + 4) / 16)
    assert leinster_cobbold(weighted, "match", q="inf") == pytest.approx(2)
    np.testing.assert_allclose(mean_similarity(weighted, "match"), [0.25, 0.25, 0.5])
    assert intdiv(weighted, "match", counts=[1, 1, 1]) == pytest.approx(2 / 3)


def test_columns_and_tables_of_frames():
    column = pd.Series(["red", "red", "blue"], index=[7, 8, 9])
    assert intdiv(column, "match") == pytest.approx(1 - 5 / 9)
    weights = pd.Series([0.25, 0.25, 0.5], index=[7, 8, 9])
    assert intdiv(column, "match", weights=weights) == 0.5
    with pytest.raises(InputError, match="same labels in another order"):
        intdiv(column, "match", weights=weights[::-1])
    assert intdiv(pd.DataFrame({"colour": column}), vm.kernels.On("colour", Match())) == pytest.approx(4 / 9)
    assert intdiv(pd.DataFrame(K), "precomputed") == pytest.approx(1 - K.mean(), rel=1e-13)


# ------------------------------------------------------------------------------------------------------------ bad input


MEASURES = [intdiv, mean_similarity, leinster_cobbold]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("args", "options", "error", "match"),
    [
        (([],), {}, EmptyError, "empty"),
        ((np.zeros((0, 3)),), {}, EmptyError, "empty"),
        ((np.eye(3),), {}, InputError, "similarity matrix"),
        ((["a", "b"],), {}, InputError, "strings"),
        ((None,), {}, InputError, "NoneType"),
        (([[1, np.nan], [1, 2]],), {}, InputError, "item 0 holds the value nan"),
        (([[1, np.inf], [1, 2]],), {}, InputError, "item 0 holds the value inf"),
        (([[0, 0], [1, 2]],), {}, InputError, "item 0 is all zeros"),
        (([1, 2, 3],), {}, InputError, "one vector a row"),
        ((ROWS, "no such"), {}, InputError, "no kernel"),
        ((5 * np.eye(3), "precomputed"), {}, DiagonalError, "normalize=True"),
        (([[1, 0.5], [0.1, 1]], "precomputed"), {}, AsymmetryError, "not symmetric"),
        (([[1, 0.5]], "precomputed"), {}, InputError, "square"),
        ((pd.DataFrame(index=range(3)), "precomputed"), {}, EmptyError, "empty"),
        (([1, 2], lambda a, b: a - b + 1.0), {}, AsymmetryError, "not symmetric"),
        (
            ([[1, 1.5], [1.5, 1]], "precomputed"),
            {},
            MatrixError,
            "similarity of 1.5 in size; expected no more",
        ),
        ((sparse.csr_array([[1, -2], [-2, 1]]), "precomputed"), {}, MatrixError, "similarity of 2 in size"),
        (([1, 2], lambda a, b: 1.0 + (a != b)), {}, MatrixError, "similarity of 2 in size"),
        (([1, 2], lambda a, b: "x"), {}, InputError, "expected a number"),
        (([1, 2], lambda a, b: math.nan), {}, InputError, "nan"),
        ((ROWS,), {"weights": P, "counts": COUNTS}, InputError, "both weights and counts"),
        ((ROWS,), {"weights": P[:-1]}, InputError, "39 entries and there are 40"),
        ((ROWS,), {"weights": 2 * P}, InputError, "sum to 2"),
        ((ROWS,), {"counts": np.zeros(40)}, InputError, "all 0"),
        ((ROWS,), {"counts": np.full(40, 0.5)}, InputError, "whole numbers"),
        (({"a", "b"}, "match"), {"counts": [1, 2]}, InputError, "set"),
        ((ROWS,), {"rng": -1}, InputError, "rng=-1"),
        ((ROWS,), {"rng": None}, InputError, "rng=None"),
    ],
)
def test_bad_input_is_a_typed_error(measure, args, options, error, match):
    with pytest.raises(error, match=match):
        measure(*args, **options)


@pytest.mark.parametrize("p", [0, 0.5, -1, math.inf, math.nan, "2", None, True, [1, 2]])
def test_a_power_is_a_number_from_one_up(p):
    with pytest.raises(
        InputError, match=r"^p=.*; expected the power of the similarities, a number from 1 up"
    ):
        intdiv(ROWS, p=p)


@pytest.mark.parametrize("diagonal", [None, 1, "no"])
def test_the_diagonal_is_there_or_not(diagonal):
    for measure in (intdiv, mean_similarity):
        with pytest.raises(InputError, match=r"diagonal=.*; expected True or False"):
            measure(ROWS, diagonal=diagonal)


@pytest.mark.parametrize("q", [-1, math.nan, "x", None, True, [], [1, 1]])
def test_an_order_is_a_number_from_zero_up(q):
    with pytest.raises(InputError, match="q"):
        leinster_cobbold(ROWS, q=q)


def test_one_item():
    for options in ({}, {"weights": [1.0]}, {"counts": [1]}):
        assert intdiv(["a"], "match", **options) == 0
        assert mean_similarity(["a"], "match", **options) == [1.0]
        assert leinster_cobbold(["a"], "match", **options) == 1
        with pytest.raises(InputError, match="there is one item, and diagonal=False"):
            intdiv(["a"], "match", diagonal=False, **options)
    assert intdiv(["a"], "match", counts=[3], diagonal=False) == 0
    with pytest.raises(InputError, match="there is one item"):
        intdiv(["a", "b"], "match", weights=[1, 0], diagonal=False)


def test_errors_that_name_options_of_the_kernel_say_where_they_go():
    with pytest.raises(DiagonalError) as caught:
        intdiv(5 * np.eye(3), "precomputed")
    assert "kernel=vendimeter.kernels.Precomputed(normalize=True)" in str(caught.value)
    assert intdiv(5 * np.eye(3), Precomputed(normalize=True)) == pytest.approx(2 / 3)
    assert intdiv([[1, 0.5], [0.1, 1]], Precomputed(symmetrize=True)) == pytest.approx(1 - 2.6 / 4)


def test_a_function_of_more_items_than_fit_is_checked_block_by_block(monkeypatch):
    monkeypatch.setattr(sums, "HOST_MEMORY", 8 * 1000**2)
    rows = RNG.random((1100, 4))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    function = FromFunction(lambda A, B: A @ B.T, block=True)
    assert intdiv(unit, function, p=2) == pytest.approx(1 - np.sqrt(np.mean((unit @ unit.T) ** 2)), rel=1e-12)
    with pytest.raises(DiagonalError, match="expected every item to have similarity 1"):
        intdiv(rows, function)
    with pytest.raises(InputError, match=r"1100×1100 matrix of a function does not fit.*fewer items"):
        intdiv(rows, FromFunction(lambda A, B: A @ B.T, block=True, normalize=True))
    twisted = FromFunction(lambda A, B: A @ B.T + 0.1 * (A[:, :1] - B[:, :1].T), block=True)
    with pytest.raises(AsymmetryError):
        intdiv(unit, twisted)


# --------------------------------------------------------------------------------------------------------- real data


def test_molecules_of_the_paper(shared_data):
    pytest.importorskip("rdkit")
    path = shared_data / "molecules" / "moses_test.csv.gz"
    data = vm.read(path, samples="SMILES", kind="molecules", skip_broken=True, limit=1500)
    kernel = Morgan(radius=2, bits=1024)
    assert round(intdiv(data, kernel), 4) == 0.8551  # as published
    tanimoto = kernel.similarity(data.samples).dense()
    ours, per_molecule = (
        1 - math.sqrt(np.mean(tanimoto**2)),
        1 - np.mean(np.sqrt(np.mean(tanimoto**2, axis=1))),
    )
    assert intdiv(tanimoto, "precomputed", p=2) == pytest.approx(ours, rel=1e-12)
    assert (round(ours, 4), round(float(per_molecule), 4)) == (
        0.8433,
        0.8450,
    )  # MOSES takes roots per molecule
    np.testing.assert_allclose(mean_similarity(tanimoto, "precomputed"), tanimoto.mean(axis=1), rtol=1e-12)
    profile = leinster_cobbold(tanimoto, "precomputed", q=[1, 2])
    assert profile[2] == pytest.approx(1 / tanimoto.mean(), rel=1e-12)
    assert profile[1] == pytest.approx(6.9905, abs=1e-3)  # where the Vendi Score is 403.93


def test_photographs(shared_data):
    with np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as file:
        rows, labels = file["emb"][::4], file["label"][::4]
    matrix = cosines(rows.astype(np.float64))
    weights = RNG.dirichlet(np.ones(len(rows)))
    for p in (1, 2, 2.5):
        assert intdiv(rows, p=p) == pytest.approx(1 - np.mean(matrix**p) ** (1 / p), rel=1e-12)
        right = 1 - (weights @ matrix**p @ weights) ** (1 / p)
        assert intdiv(rows, p=p, weights=weights) == pytest.approx(right, rel=1e-12)
    means = mean_similarity(rows, weights=weights)
    np.testing.assert_allclose(means, matrix @ weights, rtol=1e-12)
    profile = leinster_cobbold(rows, q=[0, 1, 2])
    for q in profile:
        assert profile[q] == pytest.approx(expected_diversity(matrix, q), rel=1e-12)
    # Photographs of one thing are more alike than those of twenty.
    assert all(intdiv(rows[labels == label]) < intdiv(rows) for label in np.unique(labels))
