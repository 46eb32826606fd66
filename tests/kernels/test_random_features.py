"""Random Fourier features: unbiased for the kernel, at the rate 1/√features; biased low for the score; no claim."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import vendimeter as vm
from vendimeter.errors import InputError
from vendimeter.kernels import RBF, Cosine, Embed, Laplacian, On, RandomFeatures

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 3))
KERNELS = {
    "rbf": (RBF(1.5), np.exp(-cdist(X, X, "sqeuclidean") / (2 * 1.5**2))),
    "laplacian": (Laplacian(4.0), np.exp(-cdist(X, X, "cityblock") / 4.0)),
}


def similarities(kernel: RandomFeatures, rows: Any = X) -> np.ndarray:
    features = kernel.batch_features(rows).rows(slice(None))
    return features @ features.T


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("count", [2, 64, 1000])
def test_rows_of_norm_1(name: str, count: int) -> None:
    features = RandomFeatures(KERNELS[name][0], features=count).batch_features(X)
    rows = features.rows(slice(None))
    assert rows.shape == (60, count) == (60, features.width)
    np.testing.assert_allclose((rows**2).sum(axis=1), 1.0, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
def test_the_mean_over_seeds_is_the_kernel(name: str) -> None:
    """Each entry has a variance of at most 1/(2 pairs) · … ≤ 1/pairs, so that the mean over seeds is within 5σ."""
    kernel, exact = KERNELS[name]
    seeds, pairs = 100, 32
    mean = np.mean([similarities(RandomFeatures(kernel, 2 * pairs, seed)) for seed in range(seeds)], axis=0)
    assert np.abs(mean - exact).max() < 5 / math.sqrt(seeds * pairs)
    off = np.abs(mean - exact)[~np.eye(60, dtype=bool)]
    assert off.mean() > 0.05 / math.sqrt(seeds * pairs)  # and no better than chance allows


@pytest.mark.parametrize("name", KERNELS)
def test_the_error_falls_with_the_root_of_their_number(name: str) -> None:
    kernel, exact = KERNELS[name]
    errors = [
        np.mean(
            [
                np.sqrt(np.mean((similarities(RandomFeatures(kernel, count, seed)) - exact) ** 2))
                for seed in range(12)
            ]
        )
        for count in (64, 1024)
    ]
    assert 3.2 < errors[0] / errors[1] < 5.0  # √16 = 4
    assert errors[0] < 1 / math.sqrt(64 / 2)


@pytest.mark.parametrize("name", KERNELS)
def test_many_features_give_the_score_and_few_a_lower_one(name: str) -> None:
    kernel, exact = KERNELS[name]
    expected = float(vm.score(exact, "precomputed"))
    assert expected == pytest.approx(float(vm.score(X, kernel)), rel=1e-9)
    scores = {
        count: np.mean([float(vm.score(X, RandomFeatures(kernel, count, seed))) for seed in range(6)])
        for count in (4, 16, 64, 8192)
    }
    assert scores[4] < scores[16] < scores[64] < scores[8192]
    assert scores[64] < expected  # biased low
    assert scores[8192] == pytest.approx(expected, rel=0.02)
    assert scores[4] <= 4


def test_numbers_are_items() -> None:
    exact = np.exp(-((X[:, :1] - X[:, 0]) ** 2) / 2)
    kernel = RandomFeatures(RBF(1.0), features=8192)
    np.testing.assert_allclose(similarities(kernel, X[:, 0]), exact, rtol=0, atol=0.08)
    np.testing.assert_array_equal(similarities(kernel, X[:, 0]), similarities(kernel, X[:, :1]))


def test_the_same_in_every_batch_and_process() -> None:
    kernel = RandomFeatures(RBF(1.5), features=16, seed=4)
    whole = kernel.batch_features(X).rows(slice(None))
    parts = [kernel.batch_features(part).rows(slice(None)) for part in np.array_split(X, 7)]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-13)
    again = RandomFeatures(RBF(1.5), features=16, seed=4).batch_features(X).rows(slice(None))
    np.testing.assert_array_equal(whole, again)
    # For good: saved sums are continued with them. From np.random.default_rng(4).standard_normal((1, 8)) / 1.5.
    angles = np.random.default_rng(4).standard_normal((1, 8)) / 1.5
    expected = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / math.sqrt(8)
    np.testing.assert_allclose(kernel.batch_features([1.0]).rows(slice(None)), expected, rtol=0, atol=1e-15)
    assert not np.allclose(whole, RandomFeatures(RBF(1.5), 16, 5).batch_features(X).rows(slice(None)))
    assert not np.allclose(whole, RandomFeatures(RBF(1.6), 16, 4).batch_features(X).rows(slice(None)))
    assert not np.allclose(whole, RandomFeatures(Laplacian(1.5), 16, 4).batch_features(X).rows(slice(None)))


def test_a_median_scale_is_fitted_on_all_items() -> None:
    kernel = RandomFeatures(RBF(), features=256)
    fixed = RandomFeatures(RBF().fit(X), features=256)
    assert not kernel.fitted
    assert fixed.fitted
    score = vm.score(X, kernel)
    assert float(score) == float(vm.score(X, fixed))
    assert score.diagnostics["kernel"] == repr(fixed)
    assert kernel.fit(X) == fixed
    with pytest.raises(InputError, match="median over all items"):
        vm.Accumulator(kernel)
    assert vm.Accumulator(kernel.fit(X)).kernel == fixed


# --------------------------------------------------------------------------------------------- nothing is claimed

KERNEL = RandomFeatures(RBF(1.5), features=64)
WAYS = {
    "score": lambda: vm.score(X, KERNEL),
    "score, float32 products": lambda: vm.score(X, KERNEL, precision="float32"),
    "score, fewer items than features": lambda: vm.score(X[:20], KERNEL),
    "score of order 2": lambda: vm.score(X, KERNEL, q=2),
    "score of order ∞": lambda: vm.score(X, KERNEL, q="inf"),
    "score of order 0": lambda: vm.score(X, KERNEL, q=0),
    "a tolerance": lambda: vm.score(X, KERNEL, tol=1e-3),
    "profile": lambda: vm.profile(X, KERNEL)[2],
    "groups": lambda: vm.score_groups(X, KERNEL, by=np.arange(60) % 2).at(0),
    "large groups": lambda: vm.score_groups(np.tile(X, (5, 1)), KERNEL, by=[0] * 300).at(0),
    "groups one by one": lambda: vm.score_groups([X, X[:5]], KERNEL).at(1),
    "groups in an array": lambda: vm.score_groups(X.reshape(6, 10, 3), KERNEL).at(1),
    "accumulator, rows": lambda: _accumulated(20).score(),
    "accumulator, sum": lambda: _accumulated(60).score(),
    "group accumulator, rows": lambda: _grouped(20).at(0),
    "group accumulator, sum": lambda: _grouped(60).at(0),
    "stream": lambda: vm.score_stream([X], KERNEL),
    "embed": lambda: vm.score(X, Embed(np.asarray, KERNEL)),
    "on": lambda: vm.score({"a": X.tolist()}, On("a", KERNEL)),
    "sum": lambda: vm.score(X, 0.5 * KERNEL + 0.5 * Cosine()),
    "product": lambda: vm.score(X, KERNEL * Cosine()),
    "product with a matrix of pairs": lambda: vm.score(X, KERNEL * RBF(2.0)),
}


def _accumulated(n: int) -> vm.Accumulator:
    total = vm.Accumulator(KERNEL)
    total.update(X[:n])
    return total


def _grouped(n: int) -> vm.GroupScores:
    total = vm.GroupAccumulator(KERNEL)
    total.update(X[:n], by=["a"] * n)
    return total.score()


@pytest.mark.parametrize("way", WAYS)
def test_scores_have_no_bounds(way: str) -> None:
    score = WAYS[way]()
    assert score.level == "none"
    assert math.isnan(score.bounds[0])
    assert math.isnan(score.bounds[1])
    assert 1 <= score <= 64
    assert "level='none'" in repr(score)
    assert "±" not in repr(score)
    assert "nan" not in repr(score)
    values = json.loads(json.dumps(score.to_dict(), allow_nan=False))
    assert values["low"] is values["high"] is None
    assert values["score"] == float(score)
    assert values["level"] == "none"
    html = score._repr_html_()
    assert "none" in html
    assert "nan" not in html.lower()


def test_profiles_and_groups_have_no_bounds() -> None:
    profile = vm.profile(X, KERNEL)
    json.dumps(profile.to_dict(), allow_nan=False)
    assert "level='none'" in repr(profile)
    assert profile._repr_html_()
    groups = vm.score_groups(X, KERNEL, by=np.arange(60) % 2, q=[0, 1])
    assert np.isnan(groups.low).all()
    assert np.isnan(groups.high).all()
    assert groups.levels == ["none", "none"]
    assert np.isfinite(groups.scores).all()
    json.dumps(groups.to_dict(), allow_nan=False)
    assert repr(groups)
    assert groups._repr_html_()


# ------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("count", [0, -2, 3, 2.5, "many", math.inf, True])
def test_numbers_of_features(count: Any) -> None:
    with pytest.raises(InputError, match="features="):
        RandomFeatures(RBF(1.0), features=count)


@pytest.mark.parametrize("seed", [-1, 0.5, None, "a"])
def test_seeds(seed: Any) -> None:
    with pytest.raises(InputError, match="expected a seed"):
        RandomFeatures(RBF(1.0), seed=seed)


@pytest.mark.parametrize("kernel", [Cosine(), "rbf", None, RBF, 1.0])
def test_kernels_that_have_no_such_features(kernel: Any) -> None:
    with pytest.raises(InputError, match="expected an RBF or Laplacian kernel"):
        RandomFeatures(kernel)


def test_rows_that_are_none() -> None:
    with pytest.raises(InputError, match="item 3 holds the value nan"):
        vm.score(np.where(X[3, 1] == X, math.nan, X), KERNEL)
    with pytest.raises(InputError, match="item 7 holds values too large beside the scale"):
        vm.score(np.where(X[7, 1] == X, 1e308, X), RandomFeatures(RBF(1e-3)))
    with pytest.raises(InputError, match="needs dense vectors"):
        vm.score(sparse.csr_array(X), KERNEL)
    with pytest.raises(InputError, match="strings"):
        vm.score(["a", "b"], KERNEL)


def test_numbers_of_any_kind_as_parameters() -> None:
    kernel = RandomFeatures(RBF(1.0), features=np.int64(8), seed=np.int32(3))  # type: ignore[arg-type]
    assert kernel == RandomFeatures(RBF(1), features=8, seed=3)
    assert (type(kernel.features), type(kernel.seed)) == (int, int)
    assert hash(kernel) == hash(RandomFeatures(RBF(1), features=8, seed=3))
