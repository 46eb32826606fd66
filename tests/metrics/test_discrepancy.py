"""The kernel distance: by hand, against sums over all pairs, against torchmetrics; and how often its interval holds."""

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
from vendimeter.errors import AsymmetryError, InputError, UnknownNameError
from vendimeter.kernels import RBF, FromFunction, Match, NGram, On
from vendimeter.metrics import KernelDistance, discrepancy, kernel_distance


def normal(n, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def cube(left, right):
    return (left @ right.T / left.shape[1] + 1) ** 3


def estimate(left, right, kernel=cube):
    """The formula, with matrices of all pairs."""
    n, m = len(left), len(right)
    within = kernel(left, left), kernel(right, right)
    result = [
        (matrix.sum() - np.trace(matrix)) / (k * (k - 1)) for matrix, k in zip(within, (n, m), strict=True)
    ]
    return sum(result) - 2 * kernel(left, right).mean()


def error_of(left, right, kernel=cube):
    """The standard error: the jackknife by leaving out one item after another, and the doubly centred kernel."""
    n, m = len(left), len(right)
    without = [estimate(np.delete(left, i, 0), right, kernel) for i in range(n)]
    variance = (n - 1) / n * np.sum((without - np.mean(without)) ** 2)
    without = [estimate(left, np.delete(right, i, 0), kernel) for i in range(m)]
    variance += (m - 1) / m * np.sum((without - np.mean(without)) ** 2)
    for rows, k in ((left, n), (right, m)):
        centring = np.eye(k) - 1 / k
        centred = centring @ kernel(rows, rows) @ centring
        np.fill_diagonal(centred, 0)
        variance += 2 * np.sum(centred**2) / (k * (k - 1)) ** 2
    across = (np.eye(n) - 1 / n) @ kernel(left, right) @ (np.eye(m) - 1 / m)
    return math.sqrt(variance + 4 * np.sum(across**2) / ((n - 1) * (m - 1) * n * m))


# ------------------------------------------------------------------------------------------------------------ by hand


def test_by_hand():
    """k = (xy + 1)²: within {0, 1, 2} 1, 1, 9; within {1, 3, 3} 16, 16, 100; across 146 over 9 pairs."""
    distance = kernel_distance([[0.0], [1.0], [2.0]], [[1.0], [3.0], [3.0]], degree=2)
    assert isinstance(distance, KernelDistance)
    assert distance == pytest.approx(11 / 3 + 44 - 2 * 146 / 9, rel=1e-14)
    assert (distance.n, distance.m, distance.subsets, distance.spread, distance.level) == (
        3,
        3,
        None,
        None,
        "estimated",
    )


def test_two_items_have_an_estimate_and_no_interval():
    distance = kernel_distance([[0.0], [1.0]], [[1.0], [3.0], [2.0]], degree=1)
    assert distance == pytest.approx(1 + (4 + 3 + 7) / 3 - 2 * (3 + 9) / 6, rel=1e-14)
    assert math.isnan(distance.std)
    assert math.isnan(distance.low)
    assert distance.level == "none"
    assert distance.to_dict()["high"] is None


def test_an_error_beyond_the_range_of_numbers_is_not_known():
    distance = kernel_distance(1e40 * normal(9), 1e40 * normal(9, seed=1))
    assert abs(distance) > 1e200
    assert math.isnan(distance.std)
    assert distance.level == "none"


def test_it_may_be_negative():
    values = [kernel_distance(normal(20, seed=2 * i), normal(20, seed=2 * i + 1)) for i in range(20)]
    assert 4 <= sum(value < 0 for value in values) <= 18
    rows = normal(20)
    assert kernel_distance(rows, rows) < 0  # the pairs of an item with itself are in one term only


# --------------------------------------------------------------------------------------------------------- formula


@given(st.integers(3, 9), st.integers(3, 9), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_against_sums_over_all_pairs(n, m, d, degree, seed):
    left, right = normal(n, d, seed), normal(m, d, seed + 1) + 0.5

    def kernel(a, b):
        return (0.7 * a @ b.T + 2) ** degree

    distance = kernel_distance(left, right, degree=degree, gamma=0.7, coef=2)
    size = np.abs(kernel(left, right)).max()
    assert distance == pytest.approx(estimate(left, right, kernel), rel=1e-10, abs=1e-12 * size)
    assert distance.std == pytest.approx(error_of(left, right, kernel), rel=1e-8)
    assert distance == pytest.approx(
        kernel_distance(right, left, degree=degree, gamma=0.7, coef=2), rel=1e-10
    )


def test_the_interval_is_that_of_students_t():
    from scipy.stats import t

    left, right = normal(12), normal(9, seed=1)
    for confidence in (0.5, 0.95, 0.999):
        distance = kernel_distance(left, right, confidence=confidence)
        reach = t.ppf((1 + confidence) / 2, 8) * distance.std
        assert distance.interval == pytest.approx((distance - reach, distance + reach), rel=1e-12)
        assert distance.confidence == confidence


def test_a_constant_in_the_kernel_changes_nothing():
    left, right = normal(30), normal(30, seed=1)
    linear = kernel_distance(left, right, degree=1, coef=0)
    shifted = kernel_distance(left, right, degree=1, coef=1e6)
    assert shifted == pytest.approx(linear, abs=1e-9)
    assert shifted.std == pytest.approx(linear.std, rel=1e-6)


@pytest.mark.parametrize("side", [1, 2, 7, 1000])
def test_small_blocks(monkeypatch, side):
    """Down to blocks of one item, and a last one of one."""
    left, right = normal(15), normal(22, seed=1)
    monkeypatch.setattr(discrepancy, "SIDE", side)
    distance = kernel_distance(left, right)
    assert distance == pytest.approx(estimate(left, right), rel=1e-11)
    assert distance.std == pytest.approx(error_of(left, right), rel=1e-11)


def test_identical_items():
    distance = kernel_distance(np.ones((5, 3)), np.ones((7, 3)))
    assert (distance, distance.std) == (0, 0)
    distant = kernel_distance(np.ones((5, 3)), np.zeros((7, 3)))  # 8 + 1 − 2
    assert distant == pytest.approx(7, rel=1e-14)
    assert distant.std == pytest.approx(0, abs=1e-7)


def test_the_error_of_tight_sets_that_are_far_apart():
    """Similarities of 1e6 that vary by 1e-9 of it: their squares would cancel to nothing."""
    left, right = 10 + 1e-9 * normal(60, 2), -10 + 1e-9 * normal(50, 2, seed=1)
    distance = kernel_distance(left, right)
    exact = error_of(left.astype(np.longdouble), right.astype(np.longdouble))
    assert distance.std == pytest.approx(float(exact), rel=1e-5)


def test_a_figure_travels():
    distance = kernel_distance(normal(9), normal(8, seed=1))
    moved = pickle.loads(pickle.dumps(distance))
    assert type(moved) is KernelDistance
    assert moved.to_dict() == distance.to_dict()


# --------------------------------------------------------------------------------------------------------- sampling


def coverage(draw, truth, repeats=120):
    covered, errors, values = 0, [], []
    for seed in range(repeats):
        distance = kernel_distance(*draw(np.random.default_rng([seed, 7])))
        covered += distance.low <= truth <= distance.high
        errors.append(distance.std)
        values.append(float(distance))
    return covered / repeats, np.mean(np.square(errors)) / np.var(values)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (10, 40), (60, 60)])
def test_the_interval_holds_where_the_distributions_agree(n, m):
    covered, ratio = coverage(lambda rng: (rng.standard_normal((n, 8)), rng.standard_normal((m, 8))), 0)
    assert covered >= 0.96
    assert 1.5 < ratio < 8  # on the safe side, and not by orders of magnitude


@pytest.mark.parametrize(("n", "m"), [(8, 8), (40, 40), (60, 20)])
def test_the_interval_holds_where_they_differ(shared_data, n, m):
    """Pictures of threes and of eights, drawn from a finite set of each, so that the truth is known."""
    with np.load(shared_data / "images" / "mnist_test.npz") as archive:
        rows = archive["images"][:3000, ::2, ::2].reshape(3000, -1) / 255.0
        labels = archive["labels"][:3000]
    threes, eights = rows[labels == 3], rows[labels == 8]
    truth = cube(threes, threes).mean() + cube(eights, eights).mean() - 2 * cube(threes, eights).mean()
    covered, ratio = coverage(lambda rng: (rng.choice(threes, n), rng.choice(eights, m)), truth)
    assert covered >= 0.88
    assert 0.7 < ratio < 3


def test_the_jackknife_alone_would_vanish():
    """One column, degree 1: where both means agree by chance, leaving out one item changes nothing."""
    left = np.linspace(-1, 1, 20)[:, None]
    distance = kernel_distance(left, left + 1e-9, degree=1)
    assert distance < 0
    assert distance.high > 0


def test_the_estimate_is_unbiased():
    truth = 0.25**2 * 4 / 4  # degree 1: ‖μ − ν‖²/d
    values = [
        kernel_distance(normal(6, 4, 2 * i), normal(9, 4, 2 * i + 1) + 0.25, degree=1) for i in range(400)
    ]
    assert abs(np.mean(values) - truth) < 4 * np.std(values) / 20


# ----------------------------------------------------------------------------------------------------------- peers


def peer_of(left, right, **options):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = pytest.importorskip("torchmetrics.image.kid").KernelInceptionDistance

        class Same(torch.nn.Module):
            num_features = left.shape[1]

            def forward(self, rows):
                return rows

        metric = peer(feature=Same(), **options)
        metric.update(torch.tensor(np.array(right)), real=True)
        metric.update(torch.tensor(np.array(left)), real=False)
        return [float(value) for value in metric.compute()]


def test_torchmetrics_on_real_embeddings(shared_data):
    with np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as archive:
        rows, labels = archive["emb"], archive["label"]
    first, second = (rows[labels == label] for label in np.unique(labels)[:2])
    distance = kernel_distance(first, second)  # of float16
    assert distance == pytest.approx(estimate(first.astype(float), second.astype(float)), rel=1e-12)
    value, _ = peer_of(first.astype(float), second.astype(float), subsets=1, subset_size=100)
    assert distance == pytest.approx(value, rel=1e-12)
    single, _ = peer_of(first.astype(np.float32), second.astype(np.float32), subsets=1, subset_size=100)
    assert distance == pytest.approx(single, rel=1e-4)
    assert 0 < distance.low < distance < distance.high


def test_torchmetrics_loses_the_cubes_of_large_features():
    left, right = 30 * normal(50) + 20, 30 * normal(50, seed=1) + 20
    exact = estimate(left.astype(np.longdouble), right.astype(np.longdouble))
    narrow = left.astype(np.float32), right.astype(np.float32)
    assert kernel_distance(left, right) == pytest.approx(float(exact), rel=1e-11)
    exact = estimate(*(rows.astype(np.longdouble) for rows in narrow))
    assert kernel_distance(*narrow) == pytest.approx(float(exact), rel=1e-11)
    assert abs(peer_of(*narrow, subsets=1, subset_size=50)[0] / float(exact) - 1) > 1e-7


def test_subsets():
    left, right = normal(40), normal(50, seed=1) + 0.3
    distance = kernel_distance(left, right, subsets=25, subset_size=20)
    assert (distance.subsets, distance.level) == (25, "none")
    assert math.isnan(distance.std)
    assert math.isnan(distance.low)
    of_all = kernel_distance(left, right)
    assert abs(distance - of_all) < 4 * distance.spread / 5
    assert distance.spread > 0
    assert distance == kernel_distance(left, right, subsets=25, subset_size=20)
    assert distance != kernel_distance(left, right, subsets=25, subset_size=20, rng=1)
    all_of_it = kernel_distance(left, right[:40], subsets=3, subset_size=40)
    assert all_of_it == pytest.approx(estimate(left, right[:40]), rel=1e-12)
    assert all_of_it.spread == pytest.approx(0, abs=1e-14)


def test_a_subset_takes_no_item_twice():
    """Each item is like itself alone: within a subset there are no similar pairs, and subsets of all share all."""
    distance = kernel_distance(np.eye(12), np.eye(12), subsets=5, subset_size=12, degree=1, coef=0, gamma=1)
    assert distance == pytest.approx(-2 / 12, rel=1e-12)
    of_subsets = kernel_distance(np.eye(12), np.eye(12), subsets=5, subset_size=8, degree=1, coef=0, gamma=1)
    assert of_subsets * 5 * 32 == pytest.approx(
        round(of_subsets * 5 * 32), abs=1e-9
    )  # each is −2/64 times a number of items
    assert -2 / 8 <= of_subsets <= -2 * 4 / 64


# ------------------------------------------------------------------------------------------------- other kernels


def rbf(sigma):
    def kernel(left, right):
        return np.exp(-np.sum((left[:, None] - right[None]) ** 2, axis=2) / (2 * sigma**2))

    return kernel


@pytest.mark.parametrize("sigma", [1.0, 10.0])
def test_a_kernel_of_vendimeter(sigma):
    left, right = normal(20), normal(25, seed=1) + 0.4
    distance = kernel_distance(left, right, kernel=RBF(sigma))
    assert distance == pytest.approx(estimate(left, right, rbf(sigma)), rel=1e-9)
    assert distance.std == pytest.approx(error_of(left, right, rbf(sigma)), rel=1e-7)
    cosine = kernel_distance(left, right, kernel="cosine")
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (left, right)]
    assert cosine == pytest.approx(estimate(*unit, lambda a, b: a @ b.T), rel=1e-11)


def test_a_median_is_that_of_both_sets():
    left, right = normal(20), normal(25, seed=1) + 3
    sigma = RBF("median").fit(np.concatenate([left, right])).sigma
    expected = estimate(left, right, rbf(sigma))
    assert kernel_distance(left, right, kernel=RBF("median")) == pytest.approx(expected, rel=1e-9)


def test_kernels_of_other_items():
    left, right = ["a b c", "a b", "c d"], ["a b c", "x y", "z", "y z"]
    matrix = NGram(1, 2).similarity([*left, *right]).dense()
    expected = (
        (np.sum(matrix[:3, :3]) - 3) / 6 + (np.sum(matrix[3:, 3:]) - 4) / 12 - 2 * matrix[:3, 3:].mean()
    )
    for make in (list, tuple, pd.Series, np.array):
        assert kernel_distance(make(left), make(right), kernel=NGram(1, 2)) == pytest.approx(
            expected, rel=1e-12
        )
    table, other = pd.DataFrame({"colour": ["r", "r", "g"]}), pd.DataFrame({"colour": ["g", "g", "b"]})
    assert kernel_distance(table, other, kernel=On("colour", Match())) == pytest.approx(
        2 / 3 - 4 / 9, rel=1e-12
    )
    calls = kernel_distance([1, 2, 4], [2, 3, 7], kernel=lambda a, b: math.exp(-abs(a - b)))
    expected = (
        sum(math.exp(-abs(a - b)) for s in ([1, 2, 4], [2, 3, 7]) for a, b in itertools.combinations(s, 2))
        / 3
    )
    expected -= 2 / 9 * sum(math.exp(-abs(a - b)) for a in (1, 2, 4) for b in (2, 3, 7))
    assert calls == pytest.approx(expected, rel=1e-12)


def test_subsets_of_a_kernel_of_vendimeter():
    left, right = normal(20), normal(20, seed=1) + 0.4
    distance = kernel_distance(left, right, kernel=RBF(1.0), subsets=2, subset_size=20)
    assert distance == pytest.approx(estimate(left, right, rbf(1.0)), rel=1e-9)


def test_features_and_collections(tmp_path):
    words, others = ["a", "bb", "ccc"], ["aa", "bbbb", "b"]

    def sizes(texts):
        return [[len(text), text.count("b")] for text in texts]

    rows = sizes(words), sizes(others)
    assert kernel_distance(words, others, features=sizes) == kernel_distance(*rows)
    assert kernel_distance(words, others, features=sizes, kernel=RBF(1.0)) == kernel_distance(
        *rows, kernel=RBF(1.0)
    )
    np.save(tmp_path / "left.npy", normal(9))
    left = vm.read(tmp_path / "left.npy")
    assert kernel_distance(left, normal(8, seed=1)) == kernel_distance(normal(9), normal(8, seed=1))
    assert kernel_distance(normal(8, seed=1), left, kernel=RBF(1.0)) == pytest.approx(
        kernel_distance(normal(9), normal(8, seed=1), kernel=RBF(1.0)), rel=1e-12
    )


# ------------------------------------------------------------------------------------------------------------- inputs


def test_arrays_of_every_library(library):
    left, right = normal(12).astype(np.float32), normal(12, seed=1).astype(np.float32)
    wide = left.astype(float), right.astype(float)
    moved = library.array(left), library.array(right)
    for pair in (moved, (moved[0], right), (left, moved[1])):
        distance = kernel_distance(*pair)
        assert distance == pytest.approx(estimate(*wide), rel=1e-11)
        assert distance.std == pytest.approx(error_of(*wide), rel=1e-9)
    subsets = kernel_distance(*moved, subsets=2, subset_size=12)
    assert subsets == pytest.approx(estimate(*wide), rel=1e-10)
    distance = kernel_distance(*moved, kernel=RBF(2.0))
    assert distance == pytest.approx(estimate(*wide, rbf(2.0)), rel=1e-5)  # distances of float32


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16"])
def test_dtypes_and_containers(tmp_path, dtype):
    left, right = (3 * normal(20)).astype(dtype), (3 * normal(30, seed=1)).astype(dtype)
    before = left.copy()
    left.flags.writeable = False
    expected = estimate(left.astype(float), right.astype(float))
    np.save(tmp_path / "rows.npy", left)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    pairs = (left, right), (mapped, np.asfortranarray(right)), (left.tolist(), pd.Series(list(right)))
    for pair in pairs:
        assert kernel_distance(*pair) == pytest.approx(expected, rel=1e-11)
    np.testing.assert_array_equal(left, before)


ROWS = normal(9)
MISSING = ROWS.copy()
MISSING[5, 2] = np.nan


@pytest.mark.parametrize(("samples", "reference", "message"), [
    (ROWS[:1], ROWS, "samples has 1 item"),
    (ROWS, ROWS[:1], "reference has 1 item"),
    ([], ROWS, "samples is empty"),
    (ROWS, np.empty((0, 6)), "reference: samples is empty"),
    (np.empty((5, 0)), ROWS, "no columns"),
    (ROWS, ROWS[:, :3], "6 columns and reference of 3"),
    (MISSING, ROWS, "^item 5 holds nan in column 2"),
    (ROWS, MISSING, "^reference: item 5 holds nan in column 2"),
    (ROWS, -np.inf * np.ones((4, 6)), "^reference: item 0 holds -inf"),
    (ROWS[:, 0], ROWS, "one vector a row"),
    (ROWS.astype(complex), ROWS, "real numbers"),
    (["a", "b"], ROWS, "strings"),
    (None, ROWS, "samples is None"),
    (ROWS, 3.0, "^reference: "),
    (ROWS * 1e120, ROWS, "beyond the range"),
])  # fmt: skip
def test_bad_sets(samples, reference, message):
    with pytest.raises(InputError, match=message):
        kernel_distance(samples, reference)


@pytest.mark.parametrize(("options", "message"), [
    ({"degree": 0}, "degree=0"),
    ({"degree": 101}, "degree=101; expected a whole number from 1 to 100"),
    ({"degree": 2.5}, "degree=2.5"),
    ({"degree": True}, "degree=True"),
    ({"gamma": 0}, "gamma=0"),
    ({"gamma": np.nan}, "gamma=nan"),
    ({"gamma": "auto"}, "gamma='auto'"),
    ({"coef": -1}, "coef=-1"),
    ({"coef": None}, "coef=None"),
    ({"coef": np.inf}, "coef=inf"),
    ({"confidence": 95}, "confidence=95"),
    ({"confidence": 1}, "confidence=1"),
    ({"confidence": True}, "confidence=True"),
    ({"rng": -1}, "rng=-1"),
    ({"rng": None}, "rng=None"),
    ({"subsets": 0}, "subsets=0"),
    ({"subsets": "all"}, "subsets='all'"),
    ({"subset_size": 0}, "subset_size=0"),
    ({"subset_size": 5}, "subset_size=5 without subsets"),
    ({"subsets": 3}, "subset_size=1000 and samples has 9 items"),
    ({"subsets": 3, "subset_size": 1}, "subset_size=1"),
    ({"kernel": 3}, "kernel=3"),
    ({"kernel": RBF}, "class RBF"),
    ({"kernel": RBF(1.0), "degree": 2}, "one or the other"),
    ({"kernel": RBF(1.0), "coef": 0}, "one or the other"),
    ({"kernel": RBF(1.0), "gamma": 0.1}, "one or the other"),
    ({"features": 3}, "features=3"),
    ({"kernel": "precomputed"}, "square"),
])  # fmt: skip
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        kernel_distance(ROWS, ROWS, **options)


def test_bad_items_for_a_kernel():
    with pytest.raises(UnknownNameError, match="no kernel 'rfb'"):
        kernel_distance(ROWS, ROWS, kernel="rfb")
    with pytest.raises(InputError, match=r"^reference: samples is a single text"):
        kernel_distance(["a", "b"], "abc", kernel=NGram(1, 2))
    with pytest.raises(InputError, match="reference has 1 item"):
        kernel_distance(["a", "b"], ["abc"], kernel=NGram(1, 2))
    with pytest.raises(InputError, match=r"samples of shape \(6,\) and reference of \(3,\)"):
        kernel_distance(ROWS, ROWS[:, :3], kernel=RBF(1.0))
    with pytest.raises(AsymmetryError, match="differ by 2"):
        kernel_distance(
            [1.0, 2.0], [3.0, 5.0], kernel=FromFunction(lambda a, b: 1 + a - b if a != b else 1.0)
        )
    with pytest.raises(InputError, match="missing or beyond"):
        kernel_distance([1.0, 2.0], [3.0, 5.0], kernel=lambda a, b: math.nan)
