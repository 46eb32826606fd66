"""The Fréchet distance: by hand, against the formula in 50 digits and by QR, against peers; and moments that add up."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vendimeter as vm
from vendimeter.errors import (
    AsymmetryError,
    EmptyError,
    IndefiniteError,
    InputError,
    MismatchError,
    TooLargeError,
)
from vendimeter.metrics import FrechetDistance, Moments, frechet, frechet_distance


def normal(n, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def by_qr(left, right):
    """The formula from triangular factors of the centred rows, with no covariance."""
    sides = [np.asarray(rows, dtype=np.float64) for rows in (left, right)]
    means = [rows.mean(axis=0) for rows in sides]
    centred = [(rows - mean) / math.sqrt(len(rows) - 1) for rows, mean in zip(sides, means, strict=True)]
    factors = [np.linalg.qr(rows, mode="r") for rows in centred]
    nuclear = np.linalg.svd(factors[0] @ factors[1].T, compute_uv=False).sum()
    spread = sum(float(np.sum(rows**2)) for rows in centred)
    return float(np.sum((means[0] - means[1]) ** 2)) + spread - 2 * float(nuclear)


def in_digits(left, right):
    """The formula in 50 digits, and tr(Σ₁ + Σ₂)."""
    mp = pytest.importorskip("mpmath")

    def moments(rows):
        n, d = rows.shape
        rows = mp.matrix(rows.tolist())
        mean = [mp.fsum(rows[i, j] for i in range(n)) / n for j in range(d)]
        centred = mp.matrix(n, d)
        for i in range(n):
            for j in range(d):
                centred[i, j] = rows[i, j] - mean[j]
        return mean, centred.T * centred / (n - 1)

    with mp.workdps(50):
        (mu, sigma), (nu, tau) = moments(left), moments(right)
        values, vectors = mp.eigsy(sigma)
        root = vectors * mp.diag([mp.sqrt(max(value, 0)) for value in values])
        nuclear = mp.fsum(
            mp.sqrt(max(value, 0)) for value in mp.eigsy(root.T * tau * root, eigvals_only=True)
        )
        trace = mp.fsum(sigma[i, i] + tau[i, i] for i in range(len(mu)))
        between = mp.fsum((a - b) ** 2 for a, b in zip(mu, nu, strict=True))
        return float(between + trace - 2 * nuclear), float(trace)


def by_peer(left, right):
    """What torchmetrics computes of features, in float64, and the common formula with a root of a matrix."""
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = pytest.importorskip("torchmetrics.image.fid").FrechetInceptionDistance

        class Same(torch.nn.Module):
            num_features = left.shape[1]

            def forward(self, rows):
                return rows

        metric = peer(feature=Same())
        metric.update(torch.tensor(np.asarray(right, dtype=np.float64)), real=True)
        metric.update(torch.tensor(np.asarray(left, dtype=np.float64)), real=False)
        return float(metric.compute())


def by_root(left, right):
    from scipy.linalg import sqrtm

    left, right = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    sigma, tau = np.cov(left, rowvar=False), np.cov(right, rowvar=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = sqrtm(sigma @ tau)
    mean = left.mean(axis=0) - right.mean(axis=0)
    return float(mean @ mean + np.trace(sigma) + np.trace(tau) - 2 * np.trace(root).real)


# ------------------------------------------------------------------------------------------------------------ by hand


def test_by_hand():
    distance = frechet_distance([[0.0], [2.0]], [[1.0], [5.0]])  # means 1 and 3, variances 2 and 8
    assert isinstance(distance, FrechetDistance)
    assert distance == pytest.approx(4 + (math.sqrt(8) - math.sqrt(2)) ** 2, rel=1e-15)
    assert (distance.mean_term, distance.n, distance.m, distance.columns) == (4.0, 2, 2, 1)
    assert distance.covariance_term == pytest.approx(2, rel=1e-15)
    assert distance.to_dict()["mean_term"] == 4.0


def test_diagonal_covariances_have_a_closed_form():
    mean, other = np.array([1.0, -2.0, 0.0]), np.array([0.0, 0.0, 0.5])
    left, right = np.array([4.0, 1.0, 0.0]), np.array([1.0, 9.0, 25.0])
    expected = np.sum((mean - other) ** 2) + np.sum((np.sqrt(left) - np.sqrt(right)) ** 2)
    distance = frechet_distance(Moments(mean, np.diag(left)), Moments(other, np.diag(right), n=50))
    assert distance == pytest.approx(expected, rel=1e-15)
    assert (distance.n, distance.m) == (None, 50)


def test_one_gaussian_without_any_spread():
    rows = normal(30)
    distance = frechet_distance(np.ones((40, 6)), rows)
    assert distance.covariance_term == pytest.approx(np.trace(np.cov(rows, rowvar=False)), rel=1e-14)
    assert frechet_distance(np.ones((40, 6)), np.ones((3, 6))) == 0.0


# ----------------------------------------------------------------------------------------------------------- accuracy


def relu(seed, dead):
    rows = np.maximum(normal(60, 8, seed), 0)
    rows[:, dead] = 0
    return rows


MIX = normal(8, 8, 9)
SCALES = 10.0 ** -np.arange(8)
HARD = {
    "full rank": (normal(40, 8) @ MIX, normal(50, 8, 1) + 1),
    "copies of four": (np.tile(normal(4, 8) @ MIX, (10, 1)), normal(50, 8, 1) @ MIX),
    "copies on both sides": (np.tile(normal(4, 8), (10, 1)), np.tile(normal(3, 8, 1), (9, 1))),
    "dead columns": (relu(0, [0, 1, 2]), relu(1, [2, 3])),
    "repeated columns": (np.tile(normal(30, 4), 2), np.tile(normal(30, 4, 1), 2)),
    "repeated in one": (np.tile(normal(30, 4), 2), normal(30, 8, 1)),
    "few rows": (normal(4, 8), normal(6, 8, 1)),
    "few against many": (normal(4, 8), normal(40, 8, 1)),
    "many against few": (normal(40, 8), normal(4, 8, 1)),
    "scales": (normal(30, 8) * SCALES, normal(30, 8, 1) * SCALES[::-1]),
    "mixed scales": (normal(30, 8) * SCALES @ MIX, normal(30, 8, 1) * SCALES[::-1] @ MIX),
    "two items": (normal(2, 8), normal(2, 8, 1)),
}


@pytest.mark.parametrize("name", HARD)
def test_against_50_digits(name):
    left, right = HARD[name]
    exact, trace = in_digits(left, right)
    assert abs(frechet_distance(left, right) - exact) < 1e-13 * trace
    from_moments = frechet_distance(
        *(Moments(rows.mean(axis=0), np.cov(rows, rowvar=False)) for rows in (left, right))
    )
    assert abs(from_moments - exact) < 1e-13 * trace


@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-7, 1e-9, 1e-12])
def test_a_direction_that_is_almost_constant_in_one_set(monkeypatch, size):
    """Its variance is the square of its size, and below rounding in a covariance; the other set varies there."""
    monkeypatch.setattr(frechet, "BLOCK_BYTES", 8 * 8 * 7)  # blocks of seven rows
    left, right = normal(40, 8), 2 * normal(50, 8, 1) + 1
    left[:, 7] = left[:, :7].sum(axis=1) + size * left[:, 7]
    exact, trace = in_digits(left, right)
    assert abs(frechet_distance(left, right) - exact) < 1e-14 * trace
    assert abs(frechet_distance(right, left) - exact) < 1e-14 * trace
    assert abs(frechet_distance(Moments.of(left), right) - exact) < 1e-7 * trace


@pytest.mark.parametrize("name", ["copies of four", "repeated columns", "few rows"])
def test_peers_are_off_by_the_root_of_rounding_where_covariances_are_singular(name):
    left, right = HARD[name]
    exact, trace = in_digits(left, right)
    for peer in (by_peer, by_root):
        assert 1e-10 * trace < abs(peer(left, right) - exact) < 1e-6 * trace


def test_a_large_mean_loses_no_digits():
    left, right = normal(40, 8) + 1e6, normal(50, 8, 1) + 1e6
    exact, trace = in_digits(left, right)
    assert abs(frechet_distance(left, right) - exact) < 1e-11 * trace
    assert abs(by_peer(left, right) - exact) > 1e-7 * trace


@pytest.mark.parametrize("n", [4, 8, 9, 300])
@pytest.mark.parametrize(
    "reorder", [lambda rows: rows, lambda rows: rows[::-1], lambda rows: np.roll(rows, 1, 0)]
)
def test_a_set_has_no_distance_from_itself(n, reorder):
    rows = np.maximum(normal(n, 8) @ MIX, 0)
    distance = frechet_distance(rows, reorder(rows))
    assert 0 <= distance < 1e-14 * np.trace(np.cov(rows, rowvar=False))


def test_a_tiny_variance_beside_large_ones_is_kept():
    """One column of 1e-18 of the variance of the others: in its own units it is like any other."""
    left, right = normal(40), normal(40, seed=1)
    left[:, 0] *= 1e-9
    assert frechet_distance(left, right) == pytest.approx(by_qr(left, right), rel=1e-14)
    exact = by_qr(left, right)
    left[:, 0] = 0
    assert abs(by_qr(left, right) - exact) > 1e-10 * exact


@given(st.integers(2, 12), st.integers(2, 12), st.integers(1, 9), st.integers(0, 99))
def test_symmetric_and_never_negative(n, m, d, seed):
    left, right = normal(n, d, seed), 2 * normal(m, d, seed + 1) + 1
    distance = frechet_distance(left, right)
    assert distance == pytest.approx(frechet_distance(right, left), rel=1e-12)
    assert distance == pytest.approx(by_qr(left, right), rel=1e-11, abs=1e-12)
    assert distance >= 0
    assert frechet_distance(3 * left, 3 * right) == pytest.approx(9 * distance, rel=1e-10, abs=1e-12)


# ------------------------------------------------------------------------------------------------------- real data


def pixels(shared_data, name, count):
    with np.load(shared_data / "images" / f"{name}_test.npz") as archive:
        return archive["images"][:count, ::3, ::3].reshape(count, -1)


def test_pixels_of_digits_against_clothes(shared_data):
    """Every ninth pixel, of which many are constant, as uint8."""
    digits, clothes = pixels(shared_data, "mnist", 600), pixels(shared_data, "fashion_mnist", 600)
    distance = frechet_distance(digits, clothes)
    assert distance == pytest.approx(by_qr(digits, clothes), rel=1e-13)
    assert by_peer(digits, clothes) == pytest.approx(distance, rel=1e-8)


def test_a_collapsed_generator(shared_data):
    """Ten pictures over and over: peers take the rounding of the null directions for spread, and come out lower."""
    real = pixels(shared_data, "mnist", 600)
    fake = np.tile(real[:10], (40, 1))
    distance = frechet_distance(fake, real)
    exact = by_qr(fake, real)
    assert distance == pytest.approx(exact, rel=1e-12)
    assert by_peer(fake, real) < exact * (1 - 1e-8)


def test_embeddings_of_one_class_against_another(shared_data):
    with np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as archive:
        rows, labels = archive["emb"][:, :120], archive["label"]  # float16
    first, two = (rows[labels == label] for label in np.unique(labels)[:2])
    distance = frechet_distance(first, two)  # 100 items each, of fewer rows than columns
    assert distance == pytest.approx(by_qr(first, two), rel=1e-13)
    assert by_peer(first, two) == pytest.approx(distance, rel=1e-6)
    assert by_root(first, two) == pytest.approx(distance, rel=1e-6)
    assert frechet_distance(first, first) == pytest.approx(0, abs=1e-12)
    assert by_peer(first, first) < -1e-9  # negative, by far more than rounding
    assert frechet_distance(rows[:600], rows[600:]) == pytest.approx(by_qr(rows[:600], rows[600:]), rel=1e-12)


# ------------------------------------------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("n", [20, 4])
def test_arrays_of_every_library(library, n):
    """More rows than columns and fewer, against a set with a repeated column."""
    left, right = normal(n).astype(np.float32), normal(20, seed=1).astype(np.float32)
    right[:, 5] = right[:, 4]
    expected = by_qr(left, right)
    assert frechet_distance(library.array(left), library.array(right)) == pytest.approx(expected, rel=1e-12)
    assert frechet_distance(library.array(left), right) == pytest.approx(expected, rel=1e-12)
    assert frechet_distance(left, library.array(right)) == pytest.approx(expected, rel=1e-12)
    assert frechet_distance(Moments.of(library.array(left)), right) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize(("n", "m"), [(29, 15), (3, 15), (3, 4)])
def test_small_blocks(monkeypatch, rows, n, m):
    """Down to blocks of one row, and a last one of one."""
    left, right = normal(n) + 1e4, normal(m, seed=1) + 1e4
    expected = by_qr(left, right)
    monkeypatch.setattr("vendimeter.metrics.moments.block_bytes", lambda given: 8 * 6 * rows)
    monkeypatch.setattr(frechet, "block_bytes", lambda given: 8 * 6 * rows)
    monkeypatch.setattr(frechet, "BLOCK_BYTES", 1)
    assert frechet_distance(left, right) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float32"])
@pytest.mark.parametrize("n", [5, 40])
def test_dtypes_and_containers(tmp_path, dtype, n):
    left, right = (3 * normal(n)).astype(dtype), (3 * normal(50, seed=1)).astype(dtype)
    before = left.copy()
    left.flags.writeable = False
    expected = by_qr(left, right)
    assert frechet_distance(left, right) == pytest.approx(expected, rel=1e-12)
    np.save(tmp_path / "rows.npy", left)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert frechet_distance(mapped, np.asfortranarray(right)) == pytest.approx(expected, rel=1e-12)
    assert frechet_distance(left.tolist(), right[::-1]) == pytest.approx(expected, rel=1e-12)
    assert frechet_distance(pd.Series(list(left)), right) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(left, before)


def test_samples_are_left_as_they_are():
    for n in (4, 20):
        left, right = normal(n), normal(30, seed=1)
        copies = left.copy(), right.copy()
        summed = Moments.of(right)
        frechet_distance(left, right)
        frechet_distance(left, summed)
        np.testing.assert_array_equal(left, copies[0])
        np.testing.assert_array_equal(right, copies[1])


def test_features_and_collections(tmp_path):
    words, others = ["a", "bb", "ccc"], ["aa", "bbbb", "b"]

    def sizes(texts):
        return [[len(text), text.count("b")] for text in texts]

    expected = frechet_distance(sizes(words), sizes(others))
    assert frechet_distance(words, others, features=sizes) == expected
    assert frechet_distance(words, Moments.of(others, features=sizes), features=sizes) == pytest.approx(
        expected
    )
    np.save(tmp_path / "left.npy", normal(9))
    np.save(tmp_path / "right.npy", normal(8, seed=1))
    left, right = vm.read(tmp_path / "left.npy"), vm.read(tmp_path / "right.npy")
    assert frechet_distance(left, right) == frechet_distance(normal(9), normal(8, seed=1))
    assert frechet_distance(Moments.of(left), right) == pytest.approx(
        frechet_distance(left, right), rel=1e-13
    )


ROWS = normal(9)
MISSING = ROWS.copy()
MISSING[5, 2] = np.nan
FEW_MISSING = MISSING[3:7]


@pytest.mark.parametrize(("samples", "reference", "message"), [
    (ROWS[:1], ROWS, "samples has 1 item"),
    (ROWS, ROWS[:1], "reference has 1 item"),
    (Moments.of(ROWS[:1]), ROWS, "samples has 1 item"),
    ([], ROWS, "samples is empty"),
    (ROWS, np.empty((0, 6)), "reference: samples is empty"),
    (np.empty((5, 0)), ROWS, "no columns"),
    (ROWS, ROWS[:, :3], "6 columns and reference 3"),
    (ROWS, Moments.of(ROWS[:, :3]), "6 columns and reference 3"),
    (MISSING, ROWS, r"^item 5 holds nan in column 2"),
    (ROWS, MISSING, r"^reference: item 5 holds nan in column 2"),
    (ROWS, FEW_MISSING, r"^reference: item 2 holds nan in column 2"),
    (FEW_MISSING, ROWS, r"^item 2 holds nan in column 2"),
    (ROWS * np.inf, ROWS, "item 0 holds"),
    (ROWS[:, 0], ROWS, "one vector a row"),
    (ROWS.astype(complex), ROWS, "real numbers"),
    (["a", "b"], ROWS, "strings"),
    (None, ROWS, "samples is None"),
    (ROWS, 3.0, "^reference: "),
    (ROWS * 1e200, ROWS, "squares of samples"),
    (ROWS, ROWS * 1e200, "squares of reference"),
    (ROWS[:4] * 1e200, ROWS, "beyond the range"),
    (np.full((9, 6), 1e200), ROWS, "beyond the range"),
    (Moments([1.3e154], [[1e308]]), Moments([0.0], [[0.0]]), "beyond the range"),  # each term is not
    (ROWS.reshape(3, 3, 6), ROWS, "one vector a row"),
])  # fmt: skip
def test_bad_sets(samples, reference, message):
    with pytest.raises(InputError, match=message):
        frechet_distance(samples, reference)


@pytest.mark.parametrize(("options", "message"), [
    ({"features": 3}, "features=3"),
    ({"features": "no-such"}, "no encoder"),
    ({"features": lambda samples: samples[:, 0]}, "one vector a row"),
    ({"features": lambda samples: samples[1:]}, "features gave 8 rows for 9 samples"),
    ({"memory": 0}, "memory=0"),
    ({"memory": True}, "memory=True"),
    ({"memory": "lots"}, "number of bytes"),
])  # fmt: skip
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        frechet_distance(ROWS, ROWS, **options)


def test_features_with_moments_on_both_sides():
    with pytest.raises(InputError, match="moments of both sets"):
        frechet_distance(Moments.of(ROWS), Moments.of(ROWS), features=lambda rows: rows)


def test_memory_is_respected_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr(frechet, "_side", None)
    with pytest.raises(TooLargeError, match=r"2\.81 KiB here, and 1 KiB are allowed.*memory='1 MiB'"):
        frechet_distance(normal(9), normal(9), memory=1024)
    with pytest.raises(TooLargeError, match="allowed"):
        frechet_distance(*[np.broadcast_to(0.0, (30_000, 30_000))] * 2)


def test_wide_features_need_no_square_matrix():
    left, right = normal(3, 50_000), normal(4, 50_000, 1)
    assert frechet_distance(left, right, memory="1 kB") == pytest.approx(by_qr(left, right), rel=1e-13)


# ------------------------------------------------------------------------------------------------------------ moments


def assert_same(left, right, tolerance=1e-13):
    assert left.n == right.n
    np.testing.assert_allclose(left.mean, right.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(
        left.covariance, right.covariance, rtol=0, atol=tolerance * np.abs(right.covariance).max()
    )


def test_moments_are_those_of_numpy():
    rows = normal(50) @ normal(6, 6, 1)
    moments = Moments.of(rows)
    assert (moments.n, moments.columns) == (50, 6)
    np.testing.assert_allclose(moments.mean, rows.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(moments.covariance, np.cov(rows, rowvar=False), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(moments.covariance, moments.covariance.T)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(0, 99), st.sampled_from([0.0, 1e6]))
def test_moments_add_up_in_any_order_and_grouping(sizes, seed, mean):
    rows = normal(sum(sizes) + 1, 4, seed) + mean
    ends = np.cumsum([0, *sizes])
    parts = [Moments.of(rows[a:b]) for a, b in itertools.pairwise(ends)] + [Moments.of(rows[-1:])]
    exact = Moments.of(rows)
    assert_same(sum(parts), exact, 1e-9 if mean else 1e-13)
    assert_same(sum(parts[::-1]), exact, 1e-9 if mean else 1e-13)
    half = len(parts) // 2
    assert_same(sum(parts[:half]) + sum(parts[half:]), exact, 1e-9 if mean else 1e-13)
    assert_same(Moments.of_batches(np.split(rows, ends[1:])), exact, 1e-9 if mean else 1e-13)


def test_moments_add_up_with_themselves():
    first = Moments.of(ROWS)
    copies = first.scatter.copy()
    assert_same(first + first, Moments.of(np.concatenate([ROWS, ROWS])))
    np.testing.assert_array_equal(first.scatter, copies)
    assert 0 + first is first
    assert first + 0 is first


def test_moments_of_far_means():
    rows = np.concatenate([normal(20), normal(30, seed=1) + 1e8])
    result = Moments.of(rows[:20]) + Moments.of(rows[20:])
    np.testing.assert_allclose(result.covariance, np.cov(rows, rowvar=False), rtol=1e-12)


def test_constant_columns_have_variance_zero():
    rows = normal(1000)
    rows[:, 2] = 0.1
    rows[:, 4] = 1e17 / 3
    result = sum(Moments.of(rows[i : i + 7]) for i in range(0, 1000, 7))
    for column in (2, 4):
        assert not result.scatter[column].any()
        assert result.mean[column] == rows[0, column]


def test_moments_cannot_be_changed():
    result = Moments.of(ROWS)
    with pytest.raises(AttributeError):
        result.n = 3
    with pytest.raises(ValueError, match="read-only"):
        result.mean[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        result.scatter[0] = 1
    given_mean, given_covariance = np.zeros(2), np.eye(2)
    result = Moments(given_mean, given_covariance)
    given_mean[0] = given_covariance[0, 0] = 5  # the user's own stay the user's own
    assert (result.mean[0], result.covariance[0, 0]) == (0, 1)


def test_moments_travel():
    moments = Moments.of(ROWS)
    loaded = pickle.loads(pickle.dumps(moments))
    assert_same(loaded, moments)
    assert not loaded.mean.flags.writeable
    assert not loaded.scatter.flags.writeable
    assert repr(moments) == "Moments(columns=6, n=9)"


def test_batches_may_be_empty_but_not_all():
    assert_same(Moments.of_batches([ROWS[:4], np.empty((0, 6)), ROWS[4:]]), Moments.of(ROWS))
    with pytest.raises(EmptyError, match="no item"):
        Moments.of_batches([np.empty((0, 6))])
    with pytest.raises(EmptyError, match="empty"):
        Moments.of([])
    for bad in ("abc", 3, None, np.array(3.0)):
        with pytest.raises(InputError, match="iterable of batches"):
            Moments.of_batches(bad)


def test_an_encoder_sees_no_empty_batch():
    moments = Moments.of_batches(
        [["a", "bb"], [], ["ccc"]], features=lambda texts: [[len(t)] for t in texts] or 1 / 0
    )
    assert_same(moments, Moments.of([[1], [2], [3]]))


def test_a_bad_batch_is_named():
    with pytest.raises(InputError, match=r"^batch 1: item 5 holds nan in column 2"):
        Moments.of_batches([ROWS, MISSING])
    with pytest.raises(EmptyError, match=r"^batch 1: "):  # one that came out of an encoder is not passed over
        Moments.of_batches([ROWS, ROWS + 1], features=lambda rows: rows if rows is ROWS else [])


@pytest.mark.parametrize("make", [
    lambda: Moments.of([[1e200]]) + Moments.of([[-1e200]]),
    lambda: Moments.of_batches([[[1e200]], [[-1e200]]]),
    lambda: Moments([0.0], [[1e200]], n=1e200),
])  # fmt: skip
def test_moments_beyond_the_range_of_numbers(make):
    with pytest.raises(InputError, match="beyond the range"):
        make()
    largest = np.full((2, 2), 1e308)
    np.testing.assert_array_equal(Moments([0.0, 0.0], largest).covariance, largest)


def test_one_item_has_no_covariance():
    with pytest.raises(InputError, match="1 item"):
        _ = Moments.of(ROWS[:1]).covariance


def test_moments_that_do_not_belong_together():
    with pytest.raises(MismatchError, match="6 and of 3 columns"):
        Moments.of(ROWS) + Moments.of(ROWS[:, :3])
    with pytest.raises(MismatchError, match=r"^batch 1: .*6 and of 3 columns"):
        Moments.of_batches([ROWS, ROWS[:, :3]])
    with pytest.raises(MismatchError, match="unknown number"):
        Moments.of(ROWS) + Moments(np.zeros(6), np.eye(6))
    with pytest.raises(TypeError):
        Moments.of(ROWS) + 1
    with pytest.raises(TooLargeError, match="16385 columns"):
        Moments.of(np.zeros((2, 16_385)))


@pytest.mark.parametrize(("mean", "covariance", "options", "error", "message"), [
    ([0.0, 0.0], np.eye(3), {}, InputError, r"2 entries and covariance the shape \(3, 3\)"),
    ([[0.0]], np.eye(1), {}, InputError, r"mean is .*shape \(columns,\)"),
    ([0.0], [1.0], {}, InputError, r"covariance is .*shape \(columns, columns\)"),
    ([], np.empty((0, 0)), {}, InputError, "mean is"),
    (["a"], np.eye(1), {}, InputError, "real numbers"),
    (None, np.eye(1), {}, InputError, "mean is None"),
    ([[1.0], [1.0, 2.0]], np.eye(1), {}, InputError, "mean is"),
    ([np.nan], np.eye(1), {}, InputError, "mean holds nan"),
    ([0.0], [[np.inf]], {}, InputError, "covariance holds inf"),
    ([0j], np.eye(1), {}, InputError, "real numbers"),
    ([0.0], np.eye(1), {"n": 1}, InputError, "n=1; expected a whole number from 2"),
    ([0.0], np.eye(1), {"n": True}, InputError, "n=True"),
    ([0.0], np.eye(1), {"n": 2.5}, InputError, "n=2.5"),
    ([0.0], np.eye(1), {"rounding": -1}, InputError, "rounding=-1"),
    ([0.0], np.eye(1), {"rounding": "x"}, InputError, "rounding='x'"),
    ([0.0], np.eye(1), {"rounding": 0.01}, InputError, "rounding=0.01; expected a relative error from 0 to 0.0001"),
    ([0.0], np.eye(1, dtype=np.float16), {}, InputError, "float16"),
    (np.ma.array([0.0]), np.eye(1), {}, InputError, "mean is a masked array"),
    ([0.0, 0.0], [[1.0, 0.5], [0.4, 1.0]], {}, AsymmetryError, r"0.5 at \(0, 1\) and 0.4 at \(1, 0\)"),
    ([0.0, 0.0], [[1.0, 0.0], [0.0, -1e-9]], {}, IndefiniteError, "variance -1e-09 in column 1"),
    ([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], {}, IndefiniteError, "not positive semidefinite"),
    ([0.0, 0.0], [[1.0, 0.1], [0.1, 0.0]], {}, IndefiniteError, "not positive semidefinite"),
])  # fmt: skip
def test_bad_moments(mean, covariance, options, error, message):
    with pytest.raises(error, match=message):
        Moments(mean, covariance, **options)


def test_indefinite_by_a_little_is_told_from_rounding():
    vectors = np.linalg.qr(normal(6))[0]
    values = np.array([3.0, 2.0, 1.0, 0.5, 0.1, 0.0])
    flat = (vectors * values) @ vectors.T
    assert Moments(np.zeros(6), flat).columns == 6
    values[-1] = -1e-9
    with pytest.raises(IndefiniteError, match="pass rounding=1e-6"):
        Moments(np.zeros(6), (vectors * values) @ vectors.T)


def test_statistics_in_single_precision():
    """A singular covariance in float32: by its dtype, or by what is said of it."""
    left, right = np.tile(normal(30, 4), 2), normal(30, 8, 1)
    exact = by_qr(left, right)
    coarse = np.cov(left, rowvar=False).astype(np.float32)
    assert frechet_distance(Moments(left.mean(axis=0), coarse), right) == pytest.approx(exact, rel=1e-5)
    told = Moments(left.mean(axis=0), coarse.astype(np.float64), rounding=1e-6)
    assert frechet_distance(told, right) == pytest.approx(exact, rel=1e-5)
    assert (told + 0).rounding == 1e-6
    assert (Moments(told.mean, coarse, n=30) + Moments.of(right)).rounding == pytest.approx(1.2e-7, rel=0.01)


@pytest.mark.parametrize("rounding", [None, 1e-6, 1e-4])
def test_rounding_cuts_no_direction_that_is_known(rounding):
    """The eigenvalues 1.8 and 0.2, against 1 and 1."""
    published = Moments([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], rounding=rounding)
    exact = (math.sqrt(1.8) - 1) ** 2 + (math.sqrt(0.2) - 1) ** 2
    assert frechet_distance(published, Moments([0.0, 0.0], np.eye(2))) == pytest.approx(exact, rel=1e-12)


def test_small_variances_in_single_precision_are_kept():
    """A direction of 4e-5 of the variance, of 100 columns in float32: far above their rounding."""
    left = normal(400, 100)
    left[:, 0] = left[:, 1] + 0.006 * left[:, 0]
    right = normal(400, 100, 1)
    coarse = Moments(left.mean(axis=0), np.cov(left, rowvar=False).astype(np.float32))
    assert frechet_distance(coarse, right) == pytest.approx(by_qr(left, right), rel=1e-6)


def test_statistics_of_a_file(tmp_path):
    rows, other = normal(50), normal(40, seed=1)
    np.savez(tmp_path / "stats.npz", mu=rows.mean(axis=0), sigma=np.cov(rows, rowvar=False))
    with np.load(tmp_path / "stats.npz") as stats:
        published = Moments(stats["mu"], stats["sigma"])
    assert frechet_distance(other, published) == pytest.approx(frechet_distance(other, rows), rel=1e-12)
    grown = Moments(published.mean, published.covariance, n=50) + Moments.of(other)
    assert_same(grown, Moments.of(np.concatenate([rows, other])))
