"""Effective rank and log-determinant: against dense decompositions, and 50 digits where these are at their end."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import vendimeter as vm
from vendimeter.data.collection import Collection
from vendimeter.errors import DiagonalError, EmptyError, IndefiniteError, InputError, TooLargeError
from vendimeter.kernels import RBF, FromFunction, Precomputed, RandomFeatures
from vendimeter.metrics import spectra
from vendimeter.metrics.spectra import LogDet, effective_rank, log_det

RNG = np.random.default_rng(8)
ROWS = RNG.standard_normal((60, 7)) * np.geomspace(5, 0.01, 7)


def expected_rank(matrix):
    values = np.linalg.svd(np.asarray(matrix, dtype=np.float64), compute_uv=False)
    shares = values[values > 0] / values.sum()
    return math.exp(-np.sum(shares * np.log(shares)))


def cosines(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T


# ------------------------------------------------------------------------------------------------------ effective rank


def test_effective_rank_by_hand():
    assert effective_rank([[3, 0], [0, 3], [0, 0]]) == 2
    assert effective_rank([[1, 2, 3], [2, 4, 6]]) == pytest.approx(1, abs=1e-13)
    assert effective_rank([[2, 0], [0, 1]]) == pytest.approx(3 / 2 ** (2 / 3))
    assert effective_rank([[5.0]]) == effective_rank([[5], [3]]) == 1
    assert type(effective_rank(ROWS)) is float


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (40, 40), (101, 7), (7, 101), (33, 32), (32, 33)])
@pytest.mark.parametrize("step", [1, 64, 10_000])
def test_blocks_of_every_size_give_the_dense_answer(shape, step, monkeypatch):
    monkeypatch.setattr(spectra, "BLOCK_BYTES", step)
    matrix = RNG.standard_normal(shape)
    right = pytest.approx(expected_rank(matrix), rel=1e-12)
    assert effective_rank(matrix) == right
    assert effective_rank(matrix.T) == right
    assert effective_rank(np.asfortranarray(matrix)) == right
    assert effective_rank(sparse.csr_array(matrix)) == right
    assert effective_rank(sparse.coo_array(matrix.T)) == right


def test_every_library(library):
    for matrix in (ROWS, ROWS.T):
        assert effective_rank(library.array(matrix)) == pytest.approx(expected_rank(matrix), rel=1e-12)
    with pytest.raises(InputError, match="item 2 holds nan in column 1"):
        effective_rank(library.array(np.array([[1.0, 2], [1, 2], [3, np.nan]])))
    result = log_det(library.array(ROWS), shift=0.5)
    right = np.linalg.slogdet(cosines(ROWS) + 0.5 * np.eye(60))[1]
    assert result == pytest.approx(right, rel=1e-11)
    assert result.bounds[0] <= right <= result.bounds[1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int16, bool])
def test_every_dtype_is_upcast_and_left_alone(dtype, tmp_path):
    matrix = (3 * ROWS).astype(dtype)
    np.save(tmp_path / "rows.npy", matrix)
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    before = matrix.copy()
    right = pytest.approx(expected_rank(matrix.astype(np.float64)), rel=1e-12)
    assert effective_rank(matrix) == effective_rank(stored) == right
    assert effective_rank(sparse.csr_array(matrix.astype(np.float32))) == right
    np.testing.assert_array_equal(matrix, before)


def test_small_singular_values_are_not_lost_to_squares():
    """In 50 digits: σ from 1 to 10⁻¹², whose squares no float64 matrix of products could hold."""
    mpmath = pytest.importorskip("mpmath")
    hilbert = 1.0 / (np.arange(9)[:, None] + np.arange(9) + 1)
    with mpmath.workdps(50):
        values = mpmath.svd_r(mpmath.matrix(hilbert), compute_uv=False)
        shares = [value / mpmath.fsum(values) for value in values]
        right = float(mpmath.exp(-mpmath.fsum(share * mpmath.log(share) for share in shares)))
    assert effective_rank(hilbert) == pytest.approx(right, rel=1e-13)
    for base in (1e-5, 1e-12):
        turned, _ = np.linalg.qr(RNG.standard_normal((50, 6)))
        matrix = turned * np.array([1] + 5 * [base])
        p = np.array([1] + 5 * [base]) / (1 + 5 * base)
        assert effective_rank(matrix) - 1 == pytest.approx(math.expm1(-np.sum(p * np.log(p))), rel=1e-4)


@pytest.mark.parametrize("factor", [1e-320, 1e-300, 1e-10, 7.0, 1e300, 1e307])
def test_the_scale_does_not_matter(factor):
    matrix = np.abs(ROWS) + 1
    given_ = factor * matrix
    right = expected_rank(np.round(given_ / 5e-324) if factor < 1e-310 else matrix)
    for form in (np.array, sparse.csr_array):
        assert effective_rank(form(given_)) == pytest.approx(right, rel=1e-9)
    many = np.full((300, 2), 1e308)  # whose norms overflow
    assert effective_rank(many) == pytest.approx(1, abs=1e-12)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000))
def test_effective_rank_lies_between_one_and_the_rank(n, m, seed):
    matrix = np.random.default_rng(seed).integers(-2, 3, (n, m))
    if not matrix.any():
        with pytest.raises(InputError, match="entries are 0"):
            effective_rank(matrix)
        return
    rank = effective_rank(matrix)
    assert 1 <= rank <= np.linalg.matrix_rank(matrix) * (1 + 1e-9)
    assert effective_rank(-3 * matrix[::-1]) == pytest.approx(rank, rel=1e-9)


def test_the_vendi_score_is_the_effective_rank_of_the_similarity_matrix():
    matrix = cosines(ROWS)
    assert effective_rank(matrix) == pytest.approx(float(vm.score(matrix, "precomputed")), rel=1e-9)
    unit = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    assert effective_rank(unit) > vm.score(ROWS)


@pytest.mark.parametrize(
    ("matrix", "error", "match"),
    [
        (np.zeros((3, 2)), InputError, "all 6 entries are 0"),
        (sparse.csr_array((3, 2)), InputError, "all 6 entries are 0"),
        ([], EmptyError, "empty"),
        (np.zeros((0, 3)), EmptyError, "empty"),
        (np.zeros((3, 0)), InputError, "no columns"),
        ([1, 2, 3], InputError, "one vector a row"),
        (np.ones((2, 2, 2)), InputError, "one vector a row"),
        ([[1, 2], [3]], InputError, "item 1 has shape"),
        ([["a", "b"]], InputError, "expected real numbers"),
        (["a", "b"], InputError, "strings"),
        (None, InputError, "NoneType"),
        ([[1, None]], InputError, "item 0"),
        (np.eye(2) * 1j, InputError, "complex"),
        ([[1, 2], [np.inf, 3]], InputError, "item 1 holds inf in column 0"),
        (sparse.csr_array([[1, 0, 2], [0, 0, np.nan]]), InputError, "item 1 holds nan in column 2"),
        (np.ma.masked_array([[1.0, 2]], mask=[[0, 1]]), InputError, "masked"),
    ],
)
def test_what_is_no_matrix_is_a_typed_error(matrix, error, match):
    with pytest.raises(error, match=match):
        effective_rank(matrix)


def test_two_long_sides_are_refused_before_anything_is_made():
    wide = sparse.csr_array((20_000, 30_000))
    with pytest.raises(TooLargeError, match=r"20000×30000 has 20000 singular values, and the limit is 16384"):
        effective_rank(wide)
    long = sparse.csr_array(([1.0, 1.0], ([5, 199_999], [0, 2])), shape=(200_000, 3))
    assert effective_rank(long) == pytest.approx(2)
    assert effective_rank(long.T) == pytest.approx(2)


def test_weights_of_a_collection_are_not_dropped_in_silence():
    assert effective_rank(Collection(ROWS)) == effective_rank(ROWS)
    for measure in (effective_rank, log_det):
        with pytest.raises(InputError, match="the collection has weights"):
            measure(Collection(ROWS, weights=np.full(60, 1 / 60)))


# ---------------------------------------------------------------------------------------------------- log-determinant


def test_log_determinants_by_hand():
    result = log_det([[1, 0.5], [0.5, 1]], "precomputed")
    assert result == pytest.approx(math.log(0.75), rel=1e-14)
    assert result.bounds[0] <= math.log(0.75) <= result.bounds[1]
    assert result.bounds[1] - result.bounds[0] < 1e-13
    assert (result.rank, result.n, result.shift) == (2, 2, 0)
    assert result.per_item == result / 2
    assert log_det(["a", "b", "b"], "match", shift=1) == pytest.approx(math.log(6), rel=1e-14)
    assert log_det(["a"], "match") == 0
    assert log_det(np.eye(4), "precomputed") == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("shift", [0, 1e-3, 1, 50.0])
@pytest.mark.parametrize("shape", [(30, 50), (50, 50), (50, 8)])
def test_log_determinants_are_those_of_numpy_by_every_way(shape, shift):
    rows = RNG.standard_normal(shape)
    matrix = cosines(rows)
    right = np.linalg.slogdet(matrix + shift * np.eye(len(rows)))[1]
    result = log_det(rows, shift=shift)
    if shape[1] < shape[0] and shift == 0:
        assert result == -math.inf
        assert result.bounds == (-math.inf, -math.inf)
        assert result.rank == 8
        assert right > -2000  # a number made of rounding
        return
    for other in (
        result,
        log_det(sparse.csr_array(rows), shift=shift),
        log_det(matrix, "precomputed", shift=shift),
        log_det(sparse.csr_array(matrix), "precomputed", shift=shift),
        log_det(rows, FromFunction(lambda A, B: A @ B.T, block=True, normalize=True), shift=shift),
    ):
        assert other == pytest.approx(right, rel=1e-9, abs=1e-9)
        assert other.bounds[0] - 1e-9 <= right <= other.bounds[1] + 1e-9
        assert other.bounds[0] <= other <= other.bounds[1]
        assert other.n == len(rows)


def test_bounds_hold_for_ill_conditioned_matrices_in_many_digits():
    mpmath = pytest.importorskip("mpmath")
    for sigma in (0.3, 0.7, 5.0):
        points = np.linspace(0, 3, 9)[:, None]
        matrix = RBF(sigma).similarity(points).dense()
        for shift in (0.0, 1e-12, 1e-6):
            with mpmath.workdps(60):
                shifted = mpmath.matrix(matrix) + shift * mpmath.eye(9)
                determinant = mpmath.det(shifted)
                right = float(mpmath.log(determinant)) if determinant > 0 else -math.inf
            result = log_det(matrix, "precomputed", shift=shift)
            low, high = result.bounds
            assert low <= right <= high
            assert low <= result <= high
            assert (result > -math.inf) == (result.rank == 9 or shift > 0)
    assert result.rank < 9  # the widest is beyond float64
    singular = log_det(matrix, "precomputed")
    assert singular == -math.inf
    assert math.isfinite(singular.bounds[1])
    assert singular.per_item == -math.inf


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_for_whatever_is_within_the_error(seed):
    rng = np.random.default_rng(seed)
    eigenvalues = np.sort(rng.choice([1e-3, 0.1, 1, 10], 12) * rng.random(12))[::-1]
    error, shift = 10.0 ** rng.uniform(-6, 0), rng.choice([0, 1e-3, 1])
    low, high = spectra._bounds(eigenvalues, error, float(shift))
    for _ in range(200):
        away = rng.standard_normal(12)
        if rng.random() < 0.5:  # the steepest way
            away = rng.choice([-1, 1]) / (eigenvalues + shift + 1e-9) * (1 + 0.1 * away)
        truth = np.maximum(eigenvalues + error * rng.random() ** 0.1 * away / np.linalg.norm(away), 0)
        with np.errstate(divide="ignore"):
            assert low <= np.sum(np.log(truth + shift)) <= high


def test_copies_make_the_volume_nothing():
    texts = ["red car", "blue car", "red car"]

    def shared(a, b):
        return len(set(a.split()) & set(b.split())) / len(set(a.split()) | set(b.split()))

    matrix = np.array([[shared(a, b) for b in texts] for a in texts])
    assert log_det(texts, shared) == -math.inf
    assert log_det(texts, shared).rank == 2
    assert log_det(texts, shared, shift=2) == pytest.approx(np.linalg.slogdet(matrix + 2 * np.eye(3))[1])
    assert log_det(texts[:2], shared) == pytest.approx(math.log(8 / 9))
    doubled = np.vstack([ROWS[:5], ROWS[:1]])
    assert log_det(doubled) == -math.inf
    assert log_det(ROWS[:5]) > -math.inf


def test_probabilities_of_a_determinantal_point_process_sum_to_one():
    matrix = RBF(1.0).similarity(ROWS[:4]).dense()
    normaliser = log_det(matrix, "precomputed", shift=1)
    total = math.exp(-normaliser)  # of the empty subset
    for subset in range(1, 16):
        chosen = [i for i in range(4) if subset >> i & 1]
        total += math.exp(log_det(matrix[np.ix_(chosen, chosen)], "precomputed") - normaliser)
    assert total == pytest.approx(1, rel=1e-12)


def test_a_log_determinant_is_a_float_that_knows_more():
    result = log_det([[1, 0.5], [0.5, 1]], "precomputed", shift=0.25)
    assert isinstance(result, float)
    assert isinstance(result, LogDet)
    assert type(result + 1) is float
    assert repr(result).startswith("LogDet(0.271934, bounds=(0.271934, 0.271934), per_item=0.135967, rank=2")
    as_json = json.loads(json.dumps(result.to_dict()))
    assert as_json["rank"] == 2
    assert as_json["bounds"] == list(result.bounds)
    assert log_det(["a", "a"], "match").to_dict()["value"] is None
    assert "per_item" in result._repr_html_()


def test_stand_ins_have_no_bounds():
    result = log_det(ROWS, RandomFeatures(RBF(1.0), 500), shift=1)
    assert all(math.isnan(bound) for bound in result.bounds)
    assert math.isfinite(result)


def test_what_is_no_similarity_matrix_is_refused():
    with pytest.raises(IndefiniteError, match="lowest eigenvalue is -1"):
        log_det([[1, 2], [2, 1]], "precomputed")
    with pytest.raises(DiagonalError) as caught:
        log_det([[4, 2], [2, 4]], "precomputed")
    assert "kernel=vendimeter.kernels.Precomputed(normalize=True)" in str(caught.value)
    assert log_det([[4, 2], [2, 4]], Precomputed(normalize=True)) == pytest.approx(math.log(0.75))
    mended = log_det([[1, 2], [2, 1]], Precomputed(project=True), shift=1)
    assert mended == pytest.approx(math.log(3))  # eigenvalues 2 and 0 of what is left, of trace 2


@pytest.mark.parametrize("shift", [-1, -1e-300, math.inf, math.nan, "1", None, True, [1]])
def test_a_shift_is_a_finite_number_from_zero_up(shift):
    with pytest.raises(InputError, match=r"shift=.*; expected a finite number from 0 up"):
        log_det(ROWS, shift=shift)


@pytest.mark.parametrize(
    ("args", "options", "error", "match"),
    [
        (([],), {}, EmptyError, "empty"),
        ((np.eye(3),), {}, InputError, "similarity matrix"),
        ((["a"],), {}, InputError, "strings"),
        (([[np.nan, 1], [1, 2]],), {}, InputError, "nan"),
        ((ROWS, "no such"), {}, InputError, "no kernel"),
        ((ROWS,), {"rng": "x"}, InputError, "rng='x'"),
    ],
)
def test_bad_input_is_a_typed_error(args, options, error, match):
    with pytest.raises(error, match=match):
        log_det(*args, **options)


def test_more_eigenvalues_than_are_taken():
    rows = np.ones((40_000, 2))
    rows[:, 1] = np.arange(40_000)
    with pytest.raises(TooLargeError, match=r"log_det takes all eigenvalues, and those of 40000 items"):
        log_det(rows, RBF(1.0))
    assert log_det(rows, shift=1) == pytest.approx(
        math.log1p(0) + np.linalg.slogdet(np.eye(2) + _gram(rows))[1]
    )


def _gram(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit.T @ unit


# --------------------------------------------------------------------------------------------------------- real data


def test_photographs(shared_data):
    with np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as file:
        rows = file["emb"][::10]
    wide = rows.astype(np.float64)
    assert effective_rank(rows) == pytest.approx(expected_rank(wide), rel=1e-11)
    matrix = cosines(wide)
    result = log_det(rows)
    assert result == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-10)
    assert result.rank == result.n == 200
    assert result.bounds[1] - result.bounds[0] < 1e-6
    assert log_det(rows, shift=1) == pytest.approx(np.linalg.slogdet(matrix + np.eye(200))[1], rel=1e-12)
    thin = log_det(rows[:, :96])
    assert (thin, thin.rank) == (-math.inf, 96)
    assert np.linalg.slogdet(cosines(wide[:, :96]))[1] > -2e4  # where the answer is −∞
