"""The defects of the packages before this one, each as a test that passes here.

Every docstring says what the official package (vendi-score 0.0.3) or its R counterpart answers in the same case;
`benchmarks/calibration/defects.py` asks it again. The right answers here come from NumPy's eigenvalues and the formula
alone.
"""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter.errors import AsymmetryError, DiagonalError, EmptyError, IndefiniteError, InputError
from vendimeter.kernels import RBF, Cosine, Embed, FromDistances, FromFunction, Precomputed

X = np.random.default_rng(0).normal(size=(30, 5))
UNIT_ROWS = X / np.linalg.norm(X, axis=1, keepdims=True)
K = UNIT_ROWS @ UNIT_ROWS.T  # 30 items, rank 5


def expected(matrix, q=1.0, p=None, rank=None):
    """The score by the book: all eigenvalues of diag(√p) K diag(√p), those beyond `rank` being zero."""
    matrix = np.asarray(matrix, dtype=np.float64)
    root = np.sqrt(np.full(len(matrix), 1 / len(matrix)) if p is None else np.asarray(p, dtype=np.float64))
    values = np.linalg.eigvalsh(matrix * np.outer(root, root))[::-1][:rank]
    values = values[values > 0]
    if q == 1:
        return float(np.exp(-np.sum(values * np.log(values))))
    if math.isinf(q):
        return float(1 / values.max())
    return float(np.sum(values**q) ** (1 / (1 - q)))


# ------------------------------------------------------------------------------------------------------ the order q


@pytest.mark.parametrize("q", [0.1, 0.5, 2, 3, 7.5, math.inf])
def test_the_order_counts_for_embeddings(q):
    """score_X ignores q: it answers 4.5544, the score of order 1, whatever the order."""
    assert vm.score(X, q=q) == pytest.approx(expected(K, q, rank=5), rel=1e-12)
    assert vm.score(X, q=q) != pytest.approx(vm.score(X), rel=1e-3)


@pytest.mark.parametrize("infinity", [math.inf, np.inf, "inf", "infinity", np.float32("inf")])
def test_order_infinity_is_a_number(infinity):
    """score_K(K, q=inf) is nan, with two warnings; only the string "inf" works."""
    assert vm.score(np.eye(3), "precomputed", q=infinity) == pytest.approx(3, rel=1e-12)
    assert vm.score(K, "precomputed", q=infinity) == pytest.approx(expected(K, math.inf), rel=1e-12)
    assert vm.score(X, q=infinity) == pytest.approx(expected(K, math.inf), rel=1e-12)


@pytest.mark.parametrize("samples", ["matrix", "single", "rows"])
def test_order_zero_does_not_count_rounding_noise(samples):
    """A rank-5 kernel of 30 items scores 17 at q = 0."""
    given, kernel = {
        "matrix": (K, Precomputed()),
        "single": (K.astype(np.float32), Precomputed()),
        "rows": (X, Cosine()),
    }[samples]
    score = vm.score(given, kernel, q=0)
    assert score == 5
    assert score.diagnostics["rank_threshold"] > 0


def test_low_orders_do_not_raise_rounding_noise_to_a_power():
    """score_K of the float32 matrix at q = 0.1 is 7.888; the exact score is 4.949."""
    assert vm.score(K.astype(np.float32), "precomputed", q=0.1) == pytest.approx(
        expected(K, 0.1, rank=5), rel=1e-6
    )


@pytest.mark.parametrize("off", [1e-15, -1e-15, 1e-12, 1e-9])
def test_orders_next_to_one_are_continuous(off):
    """score_K([[1, .5], [.5, 1]], q=1+1e-15) is 1.822 by cancellation; the score there is 1.7548."""
    pair = [[1, 0.5], [0.5, 1]]
    assert vm.score(pair, "precomputed", q=1 + off) == pytest.approx(expected(pair), rel=1e-8)


def test_a_negative_order_is_an_error():
    """score_K(I₂, q=−1) answers 2.0, though the score is defined for q ≥ 0 only."""
    with pytest.raises(InputError, match=r"q=-1 .*from 0 up"):
        vm.score(np.eye(2), "precomputed", q=-1)


# --------------------------------------------------------------------------------------------------- sparse matrices


def test_a_sparse_identity_scores_its_size():
    """score_K(csr_matrix(I₂₀)) is 2.456: six eigenvalues of twenty, not even renormalised."""
    assert vm.score(sparse.csr_matrix(sparse.eye_array(20)), "precomputed") == pytest.approx(20, rel=1e-12)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_matrix, sparse.csc_array, sparse.lil_matrix])
def test_every_sparse_format_will_do(kind):
    """score_K of any sparse format but csr_matrix raises "object arrays are not supported"."""
    assert vm.score(kind(np.eye(20)), "precomputed") == pytest.approx(20, rel=1e-12)


def _unit_gram(rows):
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scaled = sparse.csr_array(sparse.diags_array(1 / norms) @ rows)
    return sparse.csr_array(scaled @ scaled.T)


def _blocks():
    rng = np.random.default_rng(1)
    parts = []
    for size in [1, 2, 3, 5, 8, 13, 21, 5, 5, 40]:
        rows = rng.normal(size=(size, 6))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        parts.append(rows @ rows.T)
    shuffled = rng.permutation(sum(len(part) for part in parts))
    return sparse.csr_array(sparse.block_diag(parts, format="csr")[shuffled][:, shuffled])


def _scattered():
    rng = np.random.default_rng(2)
    rows = sparse.random_array((200, 900), density=0.004, rng=rng, format="csr")
    return _unit_gram(sparse.csr_array(rows + sparse.eye_array(200, 900)))


def _connected():
    rng = np.random.default_rng(3)
    rows = sparse.random_array((200, 50), density=0.08, rng=rng, format="csr")
    return _unit_gram(sparse.csr_array(rows + sparse.csr_array(np.eye(200, 50) + np.eye(200, 50, -50))
                                       + sparse.csr_array(np.outer(np.ones(200), np.eye(50)[0]))))  # fmt: skip


@pytest.mark.parametrize("make", [_blocks, _scattered, _connected])
@pytest.mark.parametrize("q", [0.5, 1, 2, math.inf])
def test_sparse_and_dense_agree(make, q):
    """score_K scores the six largest eigenvalues only, at every order but infinity."""
    matrix = make()
    dense = matrix.toarray()
    weights = np.random.default_rng(4).dirichlet(np.ones(len(dense)))
    rank = int(np.linalg.matrix_rank(dense, hermitian=True))
    assert rank > 6
    assert vm.score(matrix, "precomputed", q=q) == pytest.approx(expected(dense, q, rank=rank), rel=1e-9)
    assert vm.score(matrix, "precomputed", q=q, weights=weights) == pytest.approx(
        expected(dense, q, weights, rank=rank), rel=1e-9
    )


def test_sparse_embeddings_go_through_the_small_side():
    """score_dual of sparse rows raises "object arrays are not supported"."""
    rows = sparse.random_array((400, 12), density=0.4, rng=np.random.default_rng(5), format="csr")
    rows = sparse.csr_array(rows + 0.1 * sparse.csr_array(np.eye(12)[np.arange(400) % 12]))
    assert vm.score(rows) == pytest.approx(expected(_unit_gram(rows).toarray(), rank=12), rel=1e-9)


# --------------------------------------------------------------------------- matrices that are not similarity matrices


def test_a_diagonal_that_is_not_one_is_an_error_and_is_mended_on_request():
    """score_K(5·I₃) is 0.078, below the least score there is."""
    with pytest.raises(DiagonalError, match=r"K\[0, 0\] = 5; .*normalize=True"):
        vm.score(5 * np.eye(3), "precomputed")
    with pytest.raises(DiagonalError, match=r"K\[0, 0\] = 5; .*normalize=True"):
        vm.score(sparse.csr_array(5 * np.eye(3)), "precomputed")
    assert vm.score(5 * np.eye(3), Precomputed(normalize=True)) == pytest.approx(3, rel=1e-12)
    assert vm.score(sparse.csr_array(5 * np.eye(3)), Precomputed(normalize=True)) == pytest.approx(
        3, rel=1e-12
    )


def test_distances_are_not_taken_for_similarities():
    """score_K([[0, 1], [1, 0]]) is 1.414; nothing says that these are distances."""
    distances = np.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(DiagonalError, match=r"look like distances.*FromDistances"):
        vm.score(distances, "precomputed")
    assert vm.score(distances, FromDistances(scale=1.0)) == pytest.approx(
        expected(np.exp(-distances)), rel=1e-12
    )


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_an_asymmetric_matrix_is_an_error_that_names_the_place(container):
    """score_K reads the lower triangle alone: 2.0 for this matrix and 1.220 for its transpose."""
    lopsided = np.array([[1.0, 0.9], [0.0, 1.0]])
    for matrix, there, back in ((lopsided, "0.9", "0"), (lopsided.T.copy(), "0", "0.9")):
        with pytest.raises(AsymmetryError, match=rf"K\[0, 1\] = {there} but K\[1, 0\] = {back}\."):
            vm.score(container(matrix), "precomputed")
        assert vm.score(container(matrix), Precomputed(symmetrize=True)) == pytest.approx(
            expected([[1, 0.45], [0.45, 1]]), rel=1e-12
        )


def test_one_wrong_entry_of_a_large_matrix_is_found():
    """score_K never looks at the upper triangle."""
    matrix = np.eye(1500)
    matrix[3, 1200] = 0.25
    with pytest.raises(AsymmetryError, match=r"K\[3, 1200\] = 0.25 but K\[1200, 3\] = 0\."):
        vm.score(matrix, "precomputed")


@pytest.mark.parametrize("count", [3, 100])
def test_an_asymmetric_function_is_an_error(count):
    """score(samples, k) calls k(a, b) for one order of each pair and mirrors it: 1.338 for three items."""

    def before(a, b):
        return 1.0 if a == b else 0.9 if a < b else 0.0

    with pytest.raises(AsymmetryError, match=r"0\.9"):
        vm.score(list(range(count)), before)
    kernel = FromFunction(before, symmetrize=True)
    mended = np.full((count, count), 0.45) + 0.55 * np.eye(count)
    assert vm.score(list(range(count)), kernel) == pytest.approx(expected(mended), rel=1e-9)


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_negative_eigenvalues_are_an_error_that_says_by_how_much(container):
    """score_K drops them in silence and does not renormalise the rest: 1.780."""
    chain = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])
    lowest = 1 - 0.9 * math.sqrt(2)
    with pytest.raises(IndefiniteError) as caught:
        vm.score(container(chain), "precomputed")
    assert f"lowest eigenvalue is {lowest:.4g}" in str(caught.value)
    assert f"hold {-lowest / 3:.4g} of a total of 1" in str(caught.value)
    assert "project=True" in str(caught.value)
    projected = vm.score(container(chain), Precomputed(project=True))
    kept = np.array([1 + 0.9 * math.sqrt(2), 1.0])
    kept /= kept.sum()
    assert projected == pytest.approx(np.exp(-np.sum(kept * np.log(kept))), rel=1e-12)
    assert projected.diagnostics["removed_mass"] == pytest.approx(-lowest / 3, rel=1e-9)


def test_groups_record_the_mass_they_lost():
    """The official package has no groups; here nothing is dropped in silence either."""
    chain = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])
    groups = vm.score_groups(chain, Precomputed(project=True), by=["a", "a", "a"])
    assert groups["a"] == pytest.approx(vm.score(chain, Precomputed(project=True)), rel=1e-12)
    assert groups["a"].diagnostics["removed_mass"] == pytest.approx((0.9 * math.sqrt(2) - 1) / 3, rel=1e-9)


def test_a_negative_eigenvalue_of_order_two_is_not_overlooked_by_the_shortcut():
    """score_K at q = 2 drops negative eigenvalues too."""
    size = 600  # large enough for the solver that takes no eigenvalues
    matrix = np.eye(size)
    matrix[:3, :3] = [[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]]
    for q in (2, 3, math.inf):
        with pytest.raises(IndefiniteError, match=r"lowest eigenvalue is -0\.2728"):
            vm.score(matrix, "precomputed", q=q)


def test_a_zero_vector_has_no_cosine():
    """score_X and score_dual of [[1, 0], [0, 0]] are 1.414: a similarity of 0 of the item with itself."""
    for rows in ([[1.0, 0.0], [0.0, 0.0]], sparse.csr_array([[1.0, 0.0], [0.0, 0.0]])):
        with pytest.raises(InputError, match="item 1 is all zeros"):
            vm.score(rows)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_large_and_small_embeddings_have_directions_too(size):
    """score_X(1e200·I₃) is 1.0, because the squares over- or underflow; the score is 3."""
    assert vm.score(size * np.eye(3)) == pytest.approx(3, rel=1e-12)
    assert vm.score(sparse.csr_array(size * np.eye(3))) == pytest.approx(3, rel=1e-12)


def test_half_precision_rows_are_computed_in_full():
    """score_X of float16 rows is 4.5642: it multiplies and solves in low precision; the score is 4.5544."""
    half = X.astype(np.float16)
    exact = half.astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    assert vm.score(half) == pytest.approx(expected(exact @ exact.T, rank=5), rel=1e-12)


# ----------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("samples", [np.eye(3), sparse.csr_array(np.eye(3))])
def test_weights_that_are_not_probabilities_are_an_error(samples):
    """score_K(I₃, p=[1, 1, 1]) is 1.0; the three items are entirely different."""
    with pytest.raises(InputError, match=r"weights sum to 3; .*sum to 1.*counts="):
        vm.score(samples, "precomputed", weights=[1, 1, 1])
    assert vm.score(samples, "precomputed", counts=[1, 1, 1]) == pytest.approx(3, rel=1e-12)


def test_weights_of_the_wrong_length_are_an_error():
    """score_K(I₂, p=[1]) broadcasts the one weight and answers 1.0."""
    with pytest.raises(InputError, match="weights has 1 entries and there are 2 items"):
        vm.score(np.eye(2), "precomputed", weights=[1.0])


def test_a_negative_weight_is_an_error():
    """score_K(I₂, p=[1.5, −0.5]) takes a square root of a negative number and fails in the eigensolver."""
    with pytest.raises(InputError, match=r"weights\[1\] is -0\.5"):
        vm.score(np.eye(2), "precomputed", weights=[1.5, -0.5])


@pytest.mark.parametrize("width", [3, 5, 80])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_embeddings_take_weights_on_either_side(width, form):
    """score_dual has no p: a TypeError."""
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(40, width))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    p = rng.dirichlet(np.ones(40))
    rank = min(40, width)
    for q in (0.5, 1, 2):
        assert vm.score(form(rows), q=q, weights=p) == pytest.approx(
            expected(unit @ unit.T, q, p, rank), rel=1e-9
        )


@pytest.mark.parametrize(
    "weights",
    [
        [0.1] * 10,  # their sum is 0.9999999999999999
        [1 / 3, 1 / 3, 1 / 3],
        np.full(10, 0.1, dtype=np.float32),  # 1.0000000149
        np.full(30, 1 / 30, dtype=np.float16),
        np.full(300, 1 / 300, dtype=np.float32),
        np.random.default_rng(7).dirichlet(np.ones(50)).astype(np.float32),
        [0.7, 0.2, 0.1 + 1e-12],
    ],
)
def test_probabilities_need_not_sum_to_one_exactly(weights):
    """The R package compares the sum with 1 exactly, and so rejects ten times 0.1."""
    count = len(weights)
    p = np.asarray(weights, dtype=np.float64)
    assert vm.score(np.eye(count), "precomputed", weights=weights) == pytest.approx(
        expected(np.eye(count), p=p / p.sum()), rel=1e-9
    )
    groups = vm.score_groups(np.eye(count), "precomputed", weights=np.array([weights]))
    assert groups.at(0) == pytest.approx(expected(np.eye(count), p=p / p.sum()), rel=1e-9)


# -------------------------------------------------------------------------------- internal diversity, fingerprints


def test_internal_diversity_of_embeddings_and_of_a_function():
    """intdiv_X always raises a TypeError and intdiv a NameError; only intdiv_K answers.

    The internal diversity of squared similarities, 1 − Σ pᵢpⱼKᵢⱼ², is 1 − 1/VS₂.
    """
    p = np.random.default_rng(8).dirichlet(np.ones(30))
    right = 1 - np.sum(K**2 * np.outer(p, p))
    assert 1 - 1 / vm.score(X, q=2, weights=p) == pytest.approx(right, rel=1e-12)
    function = FromFunction(lambda a, b: float(a @ b))
    assert 1 - 1 / vm.score(UNIT_ROWS, function, q=2, weights=p) == pytest.approx(right, rel=1e-12)


def test_tanimoto_of_fingerprints_is_a_matrix_product_and_not_a_loop():
    """The official package compares fingerprints two at a time in Python, two million calls for 2,000 of them."""
    fingerprints = np.random.default_rng(9).random((2000, 1024)) < 0.06
    bits = fingerprints.astype(np.float64)
    common = bits @ bits.T
    sizes = bits.sum(axis=1)
    right = expected(common / (sizes[:, None] + sizes - common))

    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        score = vm.score(fingerprints, "tanimoto")
    finally:
        sys.setprofile(before)
    assert score == pytest.approx(right, rel=1e-10)
    assert 0 < calls < 100_000  # a loop over pairs would make 2,001,000 and more


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_tanimoto_does_not_depend_on_how_fingerprints_are_stored(form):
    """Lists of indices, dense bits and sparse bits are one thing; the official helper takes RDKit objects alone."""
    bits = np.random.default_rng(10).random((60, 64)) < 0.1
    sets = [set(np.flatnonzero(row).tolist()) for row in bits]
    assert vm.score(form(bits.astype(np.uint8)), "tanimoto") == pytest.approx(
        vm.score(sets, "jaccard"), rel=1e-12
    )


# ------------------------------------------------------------------ nothing, one, and the batch that is left at the end


@pytest.mark.parametrize(
    ("samples", "kernel"),
    [
        ([], lambda a, b: 1.0),
        (np.zeros((0, 0)), "precomputed"),
        (sparse.csr_array((0, 0)), "precomputed"),
        (np.zeros((0, 4)), "cosine"),
        (sparse.csr_array((0, 4)), "cosine"),
        (np.zeros((0, 4)), "rbf"),
        ([], "match"),
        ([], "ngram"),
        ([], "jaccard"),
        ([], Embed(lambda items: np.zeros((len(items), 2)))),
    ],
)
def test_nothing_has_no_score(samples, kernel):
    """score([], k) and score_K of a 0×0 matrix answer 1.0; score_X fails in scikit-learn."""
    with pytest.raises(EmptyError, match="nothing"):
        vm.score(samples, kernel)


@pytest.mark.parametrize(
    ("sample", "kernel"),
    [
        ([[3.0, 4.0]], "cosine"),
        (sparse.csr_array([[3.0, 4.0]]), "cosine"),
        ([[3.0, 4.0]], "rbf"),
        ([[3.0, 4.0]], "laplacian"),
        ([[3.0, 4.0]], "polynomial"),
        ([[0.25, 0.75]], "probability-product"),
        ([[1.0]], "precomputed"),
        ([[0.0]], "from-distances"),
        (["a text"], "ngram"),
        ([""], "ngram"),
        (["a"], "match"),
        ([{"a"}], "jaccard"),
        ([set()], "jaccard"),
        (["a"], lambda a, b: 1.0),
    ],
)
def test_a_single_sample_scores_one(sample, kernel):
    """score_X of one row is 0.9999999999999998; the image helpers break on a batch of one."""
    for q in (0, 0.5, 1, 2, "inf"):
        score = vm.score(sample, kernel, q=q)
        assert float(score) == 1.0
        assert score.n == 1


@pytest.mark.parametrize("batch_size", [1, 2, 4, 8, 9, 100])
def test_the_last_batch_may_hold_one_item(batch_size):
    """The image helpers squeeze away the axis of a last batch of one image and break."""
    seen = []

    def encoder(items):
        seen.append(len(items))
        return np.array([X[item] for item in items])

    score = vm.score(list(range(9)), Embed(encoder, batch_size=batch_size))
    assert score == pytest.approx(expected(K[:9, :9], rank=5), rel=1e-12)
    assert sum(seen) == 9
    assert max(seen) <= batch_size


@pytest.mark.parametrize("count", [2047, 2048, 2049, 4097])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_block_of_one_row_is_a_block(count, precision):
    """Rows go through blocks of a fixed size; what is left at the end counts like the rest."""
    rows = np.random.default_rng(11).normal(size=(count, 3))
    rows[-1] = [1.0, 0.0, 0.0]
    weights = np.full(count, 0.5 / (count - 1))
    weights[-1] = 0.5  # so that the last row cannot be lost unnoticed
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    values = np.linalg.eigvalsh((unit * weights[:, None]).T @ unit)
    right = np.exp(-np.sum(values * np.log(values)))
    tolerance = 1e-12 if precision == "float64" else 1e-5
    assert vm.score(rows, weights=weights, precision=precision) == pytest.approx(right, rel=tolerance)


def test_a_block_of_one_pair_is_a_block():
    """Similarities are built in blocks of 1,024 items; the item after that counts like the rest."""
    points = np.append(np.linspace(0, 3, 1024), 1000.0)
    weights = np.append(np.full(1024, 0.5 / 1024), 0.5)
    matrix = np.exp(-0.5 * np.subtract.outer(points, points) ** 2)
    assert vm.score(points, RBF(1.0), weights=weights) == pytest.approx(expected(matrix, p=weights), rel=1e-9)


def test_groups_of_none_and_of_one():
    """The official package has no groups; a loop over them meets score([], k) = 1.0."""
    groups = vm.score_groups({"none": [], "one": ["a"], "two": ["a", "b"]}, kernel="match")
    assert math.isnan(groups["none"])
    assert groups["none"].level == "none"
    assert groups["none"].n == 0
    assert groups["one"] == 1.0
    assert groups["two"] == pytest.approx(2, rel=1e-12)
    assert json.loads(json.dumps(groups.to_dict(), allow_nan=False))["groups"][0]["score"] is None


def test_a_site_without_a_species_is_an_empty_group():
    """As above, for counts over one shared matrix."""
    groups = vm.score_groups(np.eye(3), "precomputed", counts=[[0, 0, 0], [0, 4, 0], [1, 1, 2]])
    assert math.isnan(groups.at(0))
    assert groups.at(1) == 1.0
    assert groups.at(2) == pytest.approx(2**1.5, rel=1e-12)
    assert groups.sizes.tolist() == [0, 4, 4]
