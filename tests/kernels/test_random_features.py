"""Random features: unbiased for the kernel, at the rate 1/√features; biased low for the score; no claim."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import vendimeter as vm
from vendimeter.errors import InputError
from vendimeter.kernels import (
    RBF,
    Cosine,
    Embed,
    Jaccard,
    Laplacian,
    Match,
    On,
    RandomFeatures,
    random_features,
)
from vendimeter.kernels.description import describe, fingerprint, rebuild
from vendimeter.kernels.random_features import stand_in

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
    # For good: saved sums are continued with them.
    angles = np.random.default_rng([4, *b"random features"]).standard_normal((1, 8)) / 1.5
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
    with pytest.raises(InputError, match="expected an RBF, Laplacian or Jaccard kernel"):
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


# ---------------------------------------------------------------------------------------------------- sets: MinHash

BITS = np.random.default_rng(5).random((60, 40)) < 0.25
BITS[20:30] = BITS[10:20]
BITS[20:30, :4] ^= True  # some that are much alike, …
BITS[30:32] = BITS[32]  # … the same, …
BITS[40:42] = False  # … and empty
COUNTS = np.random.default_rng(6).poisson(0.5, (30, 12))
COUNTS[3] = 0
MINHASH = RandomFeatures(Jaccard(), features=64)


def as_sets(bits: np.ndarray) -> list[set[Any]]:
    names: list[Any] = [f"bit {i}" for i in range(bits.shape[1])]
    names[:6] = [7, b"seven", ("a", 1, ("b",)), 0.5, None, frozenset({"x", 2})]
    return [{names[i] for i in np.flatnonzero(row)} for row in bits]


def jaccard(rows: np.ndarray) -> np.ndarray:
    common = np.minimum(rows[:, None], rows).sum(axis=2)
    union = np.maximum(rows[:, None], rows).sum(axis=2)
    return np.where(union == 0, 1.0, common / np.maximum(union, 1))


SETS = {
    "bits": (BITS, jaccard(BITS.astype(int))),
    "sparse": (sparse.csr_array(BITS), jaccard(BITS.astype(int))),
    "counts": (COUNTS, jaccard(COUNTS)),
    "sparse counts": (sparse.csr_array(COUNTS.astype(np.float32)), jaccard(COUNTS)),
    "sets": (as_sets(BITS), jaccard(BITS.astype(int))),
}


@pytest.mark.parametrize("name", SETS)
def test_the_mean_over_seeds_is_the_overlap(name: str) -> None:
    """Every feature of a pair is ±1 with the mean J, independent of the others."""
    samples, exact = SETS[name]
    seeds, count = 60, 128
    found = [similarities(RandomFeatures(Jaccard(), count, seed), samples) for seed in range(seeds)]
    mean, variance = np.mean(found, axis=0), (1 - exact**2) / count
    np.testing.assert_allclose(mean[exact == 1], 1.0, rtol=0, atol=1e-14)  # equal sets in every feature
    apart = exact < 1
    off = (mean - exact)[apart] / np.sqrt(variance[apart] / seeds)
    assert np.abs(off).max() < 5
    assert 0.8 < off.std() < 1.25  # and no better than chance allows
    assert np.var(found, axis=0)[apart].mean() == pytest.approx(variance[apart].mean(), rel=0.05)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("count", [1, 7, 8, 1001])
def test_signs_of_norm_1(name: str, count: int) -> None:
    features = RandomFeatures(Jaccard(), features=count).batch_features(SETS[name][0])
    rows = features.rows(slice(None))
    assert rows.shape == (len(SETS[name][1]), count) == (features.n, features.width)
    assert np.ptp(np.abs(rows)) == 0
    np.testing.assert_allclose((rows**2).sum(axis=1), 1.0, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", SETS)
def test_batches_of_sets_agree(name: str) -> None:
    samples = SETS[name][0]
    n = len(SETS[name][1])
    whole = MINHASH.batch_features(samples).rows(slice(None))
    cuts = [0, 1, 9, 10, n]
    parts = [MINHASH.batch_features(samples[a:b]).rows(slice(None)) for a, b in itertools.pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    order = np.random.default_rng(0).permutation(n)
    shuffled = [samples[i] for i in order] if isinstance(samples, list) else samples[order]
    np.testing.assert_array_equal(MINHASH.batch_features(shuffled).rows(slice(None)), whole[order])


def test_all_kinds_of_rows_are_the_same_sets() -> None:
    expected = MINHASH.batch_features(BITS).rows(slice(None))
    kinds = [BITS.astype(dtype) for dtype in (np.uint8, np.int64, np.float32, np.float64)]
    wider = np.hstack([BITS, np.zeros((60, 3), dtype=bool)])  # columns that no item has
    stored = sparse.csr_array(BITS.astype(float))
    stored.data[::3] = 0.0  # zeros that are stored are no elements
    for rows in (
        *kinds,
        BITS.tolist(),
        np.asfortranarray(BITS),
        wider,
        *map(sparse.csr_array, kinds),
        sparse.coo_array(BITS),
    ):
        np.testing.assert_array_equal(MINHASH.batch_features(rows).rows(slice(None)), expected)
    gaps = MINHASH.batch_features(stored).rows(slice(None))
    np.testing.assert_array_equal(gaps, MINHASH.batch_features(stored.toarray()).rows(slice(None)))
    assert not np.array_equal(gaps, expected)
    deep = MINHASH.batch_features(COUNTS).rows(slice(None))
    np.testing.assert_array_equal(MINHASH.batch_features(COUNTS[COUNTS.max(axis=1) <= 1]).rows(slice(None)),
                                  deep[COUNTS.max(axis=1) <= 1])  # fmt: skip


def test_wide_rows_and_many_features_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = RandomFeatures(Jaccard(), features=100, seed=2)
    expected = [kernel.batch_features(samples).rows(slice(None)) for samples, _ in SETS.values()]
    monkeypatch.setattr(random_features, "TABLE_BYTES", 2000)
    monkeypatch.setattr(random_features, "CACHE_BYTES", 3000)
    blocks = random_features.blocks
    monkeypatch.setattr(
        random_features, "blocks", lambda n, width, itemsize=8, most=3000: blocks(n, width, itemsize, most)
    )
    for (samples, _), rows in zip(SETS.values(), expected, strict=True):
        np.testing.assert_array_equal(kernel.batch_features(samples).rows(slice(None)), rows)
    monkeypatch.undo()
    far = sparse.csr_array(([1.0, 1.0], ([0, 1], [3, 2**31 - 5])), shape=(2, 2**31 - 1))
    assert abs(similarities(RandomFeatures(Jaccard(), 4096), far)[0, 1]) < 0.08
    np.testing.assert_array_equal(kernel.batch_features(far).rows(slice(0, 1)),
                                  kernel.batch_features([[0, 0, 0, 1]]).rows(slice(None)))  # fmt: skip


def test_empty_sets() -> None:
    wide = RandomFeatures(Jaccard(), features=4096)
    for samples in (
        [set(), set(), {1, 2}],
        [[0, 0], [0, 0], [1, 2]],
        sparse.csr_array([[0, 0], [0, 0], [1, 2]]),
    ):
        found = similarities(wide, samples)
        np.testing.assert_allclose(found, [[1, 1, 0], [1, 1, 0], [0, 0, 1]], rtol=0, atol=0.08)
    nothing = MINHASH.batch_features([set()]).rows(slice(None))
    np.testing.assert_array_equal(nothing, MINHASH.batch_features(np.zeros((1, 5))).rows(slice(None)))
    assert float(vm.score(np.zeros((4, 3)), MINHASH)) == pytest.approx(1.0)


def test_signs_for_good() -> None:
    """Saved sums are continued with them: a direct evaluation, element by element, of what they are."""

    def mixed(z: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    def signs(elements: set[tuple[int, int]], count: int, seed: int) -> list[int]:
        hashes = np.random.SeedSequence(seed).generate_state(count, np.uint64).tolist()
        keys = [mixed((key + level * 0x9E3779B97F4A7C15) % 2**64) for key, level in elements]
        return [1 - 2 * (min(mixed((key + h) % 2**64) >> 32 for key in keys) & 1) for h in hashes]

    kernel = RandomFeatures(Jaccard(), features=33, seed=10**25)
    rows = kernel.batch_features([[0, 2, 0, 1], [0, 0, 0, 0]]).rows(slice(None)) * math.sqrt(33)
    assert rows[0].round(12).tolist() == signs({(1, 1), (1, 2), (3, 1)}, 33, 10**25)
    assert rows[1].round(12).tolist() == signs({(2**63, 1)}, 33, 10**25)
    words = [
        int.from_bytes(hashlib.blake2b(b"s" + word, digest_size=16).digest()[:8], "little")
        for word in (b"no", b"so")
    ]
    rows = kernel.batch_features([{"no", "so"}]).rows(slice(None)) * math.sqrt(33)
    assert rows[0].round(12).tolist() == signs({(word, 1) for word in words}, 33, 10**25)
    few = RandomFeatures(Jaccard(), features=5, seed=10**25).batch_features([{"no", "so"}]).rows(slice(None))
    np.testing.assert_array_equal(np.sign(few[0]), rows[0, :5].round())


def test_members_are_known_by_their_content() -> None:
    def row(members: set[Any]) -> list[float]:
        return MINHASH.batch_features([members]).rows(slice(None))[0].tolist()

    assert (
        row({1})
        == row({True})
        == row({1.0})
        == row({np.int32(1)})
        == row({np.float32(1)})
        == row({np.bool_(True)})
    )
    assert row({"a"}) == row({np.str_("a")})
    assert row({frozenset({"a", "b", "c"})}) == row({frozenset({"c", "b", "a"})})
    assert row({2**200}) == row({2.0**200})
    different: list[Any] = [
        1, "1", b"1", 0.1, None, -1, (1,), ("1",), ((1,),), (1, 1), frozenset({1}), frozenset(), (), "", b"", "\ud800",
        math.inf, -math.inf, ("ab", "c"), ("a", "bc"), "None", 10**40,
    ]  # fmt: skip
    rows = [tuple(row({member})) for member in different]
    assert len(set(rows)) == len(different)

    class Thing:
        def __repr__(self) -> str:
            return "a thing"

    for member in (Thing(), 1j, math.nan, (1, Thing())):
        with pytest.raises(InputError, match=r"know members by their content.* Put a text"):
            MINHASH.batch_features([{member}])


def test_scores_of_sets() -> None:
    families = (np.arange(60)[:, None] % 6 == np.repeat(np.arange(6), 8)) & (
        np.random.default_rng(0).random((60, 48)) < 0.9
    )
    exact = float(vm.score(families, "jaccard"))
    scores = {
        count: np.mean(
            [float(vm.score(families, RandomFeatures(Jaccard(), count, seed))) for seed in range(5)]
        )
        for count in (4, 16, 64, 8192)
    }
    assert scores[4] < scores[16] < scores[64] < scores[8192]
    assert scores[64] < exact  # biased low
    assert scores[8192] == pytest.approx(exact, rel=0.01)
    score = vm.score(families, RandomFeatures(Jaccard(), 3))
    assert score.level == "none"
    assert math.isnan(score.bounds[0])
    assert "3 random features stand in for Jaccard()" in score.diagnostics["caveat"]
    assert score.diagnostics["kernel"] == "RandomFeatures(kernel=Jaccard(), features=3, seed=0)"
    assert MINHASH.fitted
    assert MINHASH.approximate
    assert MINHASH.needs_all is None
    on = vm.score({"tags": as_sets(BITS)}, On("tags", MINHASH))
    assert float(on) == float(vm.score(as_sets(BITS), MINHASH))
    assert vm.score_groups(BITS, MINHASH, by=np.arange(60) % 2).levels == ["none", "none"]


@pytest.mark.parametrize("name", SETS)
def test_sets_are_accumulated_and_streamed(name: str, tmp_path: Any) -> None:
    samples, exact = SETS[name]
    n = len(exact)
    kernel = RandomFeatures(Jaccard(), features=24, seed=3)
    expected = float(vm.score(samples, kernel))
    total, other = vm.Accumulator(kernel), vm.Accumulator(kernel)
    for first in range(0, 20, 5):
        total.update(samples[first : first + 5])
    other.update(samples[20:n])
    total.save(tmp_path / "sum.npz")
    loaded = vm.Accumulator.load(tmp_path / "sum.npz")
    assert loaded.kernel == kernel
    for part in (total, loaded):
        score = (part + other).score()
        assert float(score) == pytest.approx(expected, rel=1e-12)
        assert score.level == "none"
    assert float(vm.score_stream([samples[:7], samples[7:n]], kernel)) == pytest.approx(expected, rel=1e-12)


def test_descriptions_of_sets() -> None:
    kernel = RandomFeatures(Jaccard(), features=7, seed=2)
    assert rebuild(json.loads(json.dumps(describe(kernel)))) == kernel
    assert fingerprint(kernel) != fingerprint(RandomFeatures(Jaccard(), features=7, seed=3))
    with pytest.raises(
        InputError, match=r"Score a random sample, or put RandomFeatures\(Jaccard\(\)\) in its place"
    ):
        vm.Accumulator("jaccard")


def test_sets_of_every_library(library: Any) -> None:
    for rows in (BITS, COUNTS, COUNTS.astype(np.float64)):
        for count in (16, 100):  # more features than items, and less
            kernel = RandomFeatures(Jaccard(), features=count)
            given = library.array(rows)
            features = kernel.batch_features(given)
            assert features.width == count
            for index in (slice(3, 9), np.array([5, 2])):
                found = np.asarray(random_features.to_host(features.rows(index)))
                np.testing.assert_array_equal(found, kernel.batch_features(rows).rows(index))
            assert float(vm.score(given, kernel)) == pytest.approx(float(vm.score(rows, kernel)), rel=1e-12)
            total = vm.Accumulator(kernel)
            total.update(given)
            assert float(total.score()) == pytest.approx(float(vm.score(rows, kernel)), rel=1e-12)
    with pytest.raises(InputError, match="item 1 holds the value -1"):
        vm.score(library.array(np.array([[1, 0], [0, -1]])), MINHASH)
    with pytest.raises(InputError, match=r"item 0 holds the value 0\.5"):
        vm.score(library.array(np.array([[1, 0.5], [0, 1]])), MINHASH)


REFUSED: dict[str, tuple[Any, str]] = {
    "real numbers": (
        [[1.0, 0.0], [0.0, 0.25]],
        r"item 1 holds the value 0\.25; .*whole counts up to 255.*rows > 0",
    ),
    "sparse real numbers": (sparse.csr_array([[1.0, 0.0], [0.0, 0.25]]), r"item 1 holds the value 0\.25"),
    "large counts": ([[1, 0], [256, 0]], "item 1 holds the value 256; .*whole counts up to 255"),
    "negative": ([[1, 0], [-1, 0]], "item 1 holds the value -1; .*from 0 up"),
    "NaN": ([[1, 0], [0, math.nan]], "item 1 holds the value nan"),
    "infinite": ([[1, 0], [0, math.inf]], "item 1 holds the value inf"),
    "strings": (["a", "b"], "strings"),
    "lists of words": ([["a"], ["b"]], "set\\(item\\)"),
    "a text among sets": ([{"a"}, "b"], "item 1 is 'b' where others are sets"),
    "numbers": ([1, 2, 3], "one vector a row"),
    "nothing": ([], "empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_set(name: str) -> None:
    samples, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        vm.score(samples, MINHASH)
    total = vm.Accumulator(MINHASH)
    if name != "nothing":
        with pytest.raises(InputError, match=message):
            total.update(samples)
        assert total.n == total.updates == 0


def test_counts_up_to_the_limit() -> None:
    rows = np.array([[255, 0], [128, 0], [255, 255]], dtype=np.uint8)
    found = similarities(RandomFeatures(Jaccard(), features=8192), rows)
    np.testing.assert_allclose(found, jaccard(rows.astype(int)), rtol=0, atol=0.05)


# ------------------------------------------------------------------------------------------------------- stand-ins


def test_stand_ins() -> None:
    for kernel in (RBF(1.0), Laplacian(2.0), Jaccard(), RBF()):
        assert stand_in(kernel) == RandomFeatures(kernel, features=2048, seed=0)
        assert stand_in(kernel, 64, 5) == RandomFeatures(kernel, features=64, seed=5)
        assert stand_in(On("a", kernel), 64) == On("a", RandomFeatures(kernel, 64))
    embed = Embed(np.asarray, RBF(1.0), batch_size=7)
    assert stand_in(embed, 8) == Embed(np.asarray, RandomFeatures(RBF(1.0), 8), batch_size=7)
    assert stand_in(On("a", embed), 8) == On("a", stand_in(embed, 8))
    assert stand_in(KERNEL) is KERNEL
    assert stand_in(On("a", KERNEL), features=8) == On("a", KERNEL)
    assert stand_in(Jaccard(), 3).features == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kernel", "hint"),
    [
        (Cosine(), "leave the method to 'auto'"),
        (On("a", Cosine()), "leave the method to 'auto'"),
        (Match(), "Score a random sample"),
        (0.5 * RBF(1.0) + 0.5 * Jaccard(), r"Put RandomFeatures\(…\) around the parts"),
        (RBF(1.0) * RBF(2.0), r"Put RandomFeatures\(…\) around the parts"),
    ],
    ids=str,
)
def test_kernels_without_stand_ins(kernel: Any, hint: str) -> None:
    with pytest.raises(InputError, match=f"RBF, Laplacian or Jaccard, alone or inside.*{hint}"):
        stand_in(kernel)
    with pytest.raises(InputError, match="even number"):
        stand_in(RBF(1.0), features=3)


@pytest.mark.parametrize("method", ["exact", "lowrank", "lanczos"])
def test_no_method_claims_bounds_for_what_only_stands_in(method):
    points = np.random.default_rng(0).standard_normal((300, 2))
    score = vm.score(points, RandomFeatures(RBF(1.0), 64), method=method, tol=1e-2)
    assert score.level == "none"
    assert np.isnan(score.bounds).all()
    assert score == pytest.approx(vm.score(points, RandomFeatures(RBF(1.0), 64)), rel=2e-2)
