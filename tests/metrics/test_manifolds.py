"""Precision and recall, density and coverage, memorisation: by hand, in whole numbers, against prdc and the rest."""

from __future__ import annotations

import contextlib
import io
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import vendimeter as vm
from vendimeter.data import devices
from vendimeter.errors import EmptyError, InputError, UnknownNameError
from vendimeter.metrics import distances
from vendimeter.metrics.manifolds import (
    DensityCoverage,
    PrecisionRecall,
    density_coverage,
    memorization,
    precision_recall,
)

ALL = [precision_recall, density_coverage, memorization]
GRID = np.array(list(itertools.product(range(10), range(10))), float)


def squares(x, y):
    """Squared distances in whole numbers, exact."""
    x, y = np.asarray(x, np.int64), np.asarray(y, np.int64)
    return (x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1) - 2 * (x @ y.T)


def radii(x, k):
    own_squares = squares(x, x)
    np.fill_diagonal(own_squares, np.iinfo(np.int64).max)
    return np.sort(own_squares, axis=1)[:, k - 1]


def reference_figures(x, y, k):
    """Precision, recall, density and coverage of whole numbers."""
    cross = squares(x, y)
    within = cross <= radii(y, k)
    recall = (cross <= radii(x, k)[:, None]).any(axis=0)
    return within.any(axis=1).mean(), recall.mean(), within.sum() / (k * len(x)), within.any(axis=0).mean()


def figures(x, y, k, **options):
    first, second = precision_recall(x, y, k=k, **options), density_coverage(x, y, k=k, **options)
    return first.precision, first.recall, second.density, second.coverage


def prdc_figures(x, y, k):
    prdc = pytest.importorskip("prdc")
    with contextlib.redirect_stdout(io.StringIO()):
        theirs = prdc.compute_prdc(y, x, nearest_k=k)
    return tuple(float(theirs[name]) for name in ("precision", "recall", "density", "coverage"))


# ------------------------------------------------------------------------------------------------------------- by hand


def test_figures_by_hand():
    # Balls of the reference: 0 ± 2, 2 ± 1, 3 ± 1; of the samples: 0 ± 1, 1 ± 1, 9 ± 8.
    x, y = [[0.0], [1.0], [9.0]], [[0.0], [2.0], [3.0]]
    figures = precision_recall(x, y, k=1)
    assert (figures.precision, figures.recall) == (2 / 3, 1)
    assert (figures.k, figures.n, figures.m) == (1, 3, 3)
    figures = density_coverage(x, y, k=1)  # 0 is in one ball, 1 in two, 9 in none; the ball round 3 is empty
    assert (figures.density, figures.coverage) == (1, 2 / 3)


def test_rims_belong_to_balls():
    assert precision_recall([[3.0], [9.0]], [[0.0], [1.5], [3.0], [4.5]], k=1).precision == 0.5
    assert precision_recall([[6.0], [20.0]], [[0.0], [1.5], [3.0], [4.5]], k=1).precision == 0.5
    assert (
        precision_recall([[np.nextafter(6.0, 7)], [20.0]], [[0.0], [1.5], [3.0], [4.5]], k=1).precision == 0
    )


def test_memorization_by_hand():
    # d1, d2, and the distance of the nearest point to its own neighbour: 0 5 5, 1 2 1, 14 15 1, 0.5 4.5 5.
    result = memorization([[0.0], [4.0], [20.0], [0.5]], [[0.0], [5.0], [6.0]])
    assert (result.rate, result.copies, result.authenticity) == (0.5, 0.25, 0.25)
    assert result.nearest.tolist() == [0, 1, 14, 0.5]
    assert result.indices.tolist() == [0, 1, 2, 0]
    assert (result.n, result.m, result.ratio) == (4, 3, 1 / 3)


def test_a_third_of_the_way_is_not_nearer_than_a_third():
    for scale in (1, 7, 2.0**-700, 2.0**700):
        ties = memorization(np.array([[1.0], [2.0]]) * scale, np.array([[0.0], [4.0], [-60.0]]) * scale)
        assert ties.rate == 0, scale  # 1 and 3 away; 2 and 2 away
    assert memorization([[np.nextafter(1.0, 0)]], [[0.0], [4.0]]).rate == 1
    assert memorization([[1.0, 1.0]], [[0.0, 0.0], [4.0, 4.0]]).rate == 0  # √2 and √18
    assert memorization([[1.0]], [[0.0], [4.0]], ratio=0.5).rate == 1
    for tiny in (1e-300, 5e-324):
        assert memorization([[0.0], [1.0]], [[0.0], [4.0]], ratio=tiny).rate == 0.5
    assert memorization([[2.0], [1.9]], [[0.0], [4.0]], ratio=1).rate == 0.5


@pytest.mark.parametrize("exponent", [-500, -100, -21, 0, 400, 1020])
def test_small_differences_count_beside_a_large_entry(exponent):
    # Balls of the reference: 0 ± 1, 1 ± 1, 3 ± 2, and one that is so large that it holds all samples.
    x, y = np.array([[0.0], [2.0], [8.0]]) * 2.0**-440, np.array([[0.0], [1.0], [3.0], [0.0]]) * 2.0**-440
    y[3] = -0.75
    figures = density_coverage(np.ldexp(x, exponent), np.ldexp(y, exponent), k=1)
    assert (figures.density, figures.coverage) == ((3 + 3 + 1) / 3, 1)


def test_a_distance_of_zero_has_no_sign():
    # Rows of one norm, of which two are equal: products of whole numbers give the distance.
    rows = np.array([[1, 0], [0, 1], [0, 1], [0, -1], [-1, 0]])
    result = memorization(rows, rows)
    assert result.copies == 1
    assert not np.signbit(result.nearest).any()


def test_copies_of_what_is_twice_in_the_reference():
    doubled = [[0.0], [0.0], [9.0], [20.0]]
    copy = memorization([[0.0]], doubled)
    assert (copy.rate, copy.copies, copy.authenticity) == (1, 1, 0)
    assert copy.indices.tolist() == [0]
    near = memorization([[0.1]], doubled)  # two points equally near: the ratio finds nothing
    assert (near.rate, near.copies, near.authenticity) == (0, 0, 1)
    assert memorization([[0.0]], [[0.0], [0.0]]).rate == 1


def test_many_copies_of_one_point_are_not_authentic():
    # The code published with Alaa et al. goes the other way round and finds nearly all of them authentic.
    y = np.random.default_rng(0).standard_normal((60, 8))
    result = memorization(np.tile(y[7], (60, 1)), y)
    assert (result.rate, result.copies, result.authenticity) == (1, 1, 0)
    assert set(result.indices.tolist()) == {7}
    assert memorization(y + 100, y).authenticity == 1


def test_all_are_equal():
    same = np.full((9, 4), 0.1)
    assert figures(same, same, 3) == (1, 1, 3, 1)  # nine balls of radius 0 hold every sample: 9/3
    assert figures(same + 1, same, 3) == (0, 0, 0, 0)
    result = memorization(same, same)
    assert (result.rate, result.copies, result.authenticity) == (1, 1, 0)
    assert result.indices.tolist() == [0] * 9


def test_a_set_lies_in_its_own_manifold():
    x = np.random.default_rng(0).standard_normal((40, 3))
    assert figures(x, x, 2)[:2] == (1, 1)
    assert density_coverage(x, x).coverage == 1


def test_results_show_their_figures():
    x = GRID[:20]
    assert repr(precision_recall(x, x)) == "PrecisionRecall(precision=1, recall=1, k=3, n=20, m=20)"
    assert precision_recall(x, x) == PrecisionRecall(1.0, 1.0, k=3, n=20, m=20)
    assert isinstance(density_coverage(x, x), DensityCoverage)
    result = memorization(x, x)
    assert "nearest" not in repr(result)
    assert result.to_dict()["nearest"] == [0.0] * 20
    with pytest.raises(AttributeError):
        result.rate = 0.5


# ------------------------------------------------------------------------------------------------ references and peers


def mnist(shared_data, count):
    images = np.load(shared_data / "images" / "mnist_test.npz")["images"].reshape(-1, 784)
    return images[:count], images[count : 2 * count].copy()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_pixels_in_exact_whole_numbers(shared_data, dtype):
    x, y = mnist(shared_data, 200)
    y[:20] = x[:20]
    y[20:24] = y[24]
    assert figures(x.astype(dtype), y.astype(dtype), 4) == pytest.approx(
        reference_figures(x, y, 4), rel=1e-15
    )
    cross = squares(x, y)
    result = memorization(x.astype(dtype), y.astype(dtype))
    np.testing.assert_array_equal(result.indices, cross.argmin(axis=1))
    np.testing.assert_array_equal(result.nearest, np.sqrt(cross.min(axis=1)))
    first, second = np.sort(cross, axis=1)[:, :2].T
    assert result.rate == np.mean((9 * first < second) | (first == 0))
    assert result.copies == np.mean(first == 0) >= 20 / 200
    assert result.authenticity == np.mean(first > radii(y, 1)[cross.argmin(axis=1)])


@pytest.mark.parametrize("high", [2, 4, 2000])
def test_ties_in_exact_whole_numbers(high):
    rng = np.random.default_rng(high)
    x, y = rng.integers(-high, high, (80, 3)), rng.integers(-high, high, (90, 3))
    for k in (1, 5):
        assert figures(x, y, k) == pytest.approx(reference_figures(x, y, k), rel=1e-15)
        assert figures(x * 0.25, y * 0.25, k, memory=10_000) == figures(x, y, k)


def test_embeddings_as_prdc_has_them(shared_data):
    rows = np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz")
    embeddings = rows["emb"]
    order = np.random.default_rng(0).permutation(len(embeddings))[:600]
    halves = embeddings[order[:300]], embeddings[order[300:]]
    first, second = (embeddings[rows["label"] == label] for label in np.unique(rows["label"])[:2])
    for (x, y), k in ((halves, 3), ((first, second), 5)):
        expected = prdc_figures(x.astype(float), y.astype(float), k)
        assert figures(x, y, k) == pytest.approx(expected, rel=1e-14)


def test_neighbours_as_scikit_learn_has_them(shared_data):
    neighbors = pytest.importorskip("sklearn.neighbors")
    rows = np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz")["emb"]
    x, y = rows[:300], rows[300:800]
    result = memorization(x, y)
    theirs, positions = (
        neighbors.NearestNeighbors(n_neighbors=1, algorithm="kd_tree")
        .fit(y.astype(float))
        .kneighbors(x.astype(float))
    )
    np.testing.assert_array_equal(result.indices, positions[:, 0])
    np.testing.assert_allclose(result.nearest, theirs[:, 0], rtol=1e-13)


def test_where_prdc_goes_wrong():
    # Balls without their rim: a set of equal points does not lie in its own manifold.
    ones = np.ones((10, 3))
    assert prdc_figures(ones, ones, 3) == (0, 0, 0, 0)
    assert figures(ones, ones, 3) == pytest.approx((1, 1, 10 / 3, 1))
    # A grid moved by one step: 8 of 100 points lie on rims.
    moved = GRID + np.array([1, 0])
    assert prdc_figures(moved, GRID, 3)[0] == pytest.approx(0.92)
    assert figures(moved, GRID, 3)[0] == 1 == reference_figures(moved, GRID, 3)[0]
    # Four copies of each point: the rounding of ‖x‖² + ‖y‖² − 2x·y decides.
    copies = np.repeat(np.random.default_rng(0).standard_normal((25, 8)), 4, axis=0)
    assert prdc_figures(copies, copies, 3)[0] < 0.5
    assert figures(copies, copies, 3) == pytest.approx((1, 1, 4 / 3, 1))


# ---------------------------------------------------------------------------------------------------------- properties


tables = arrays.arrays(
    np.float64,
    st.tuples(st.integers(3, 8), st.just(2)),
    elements=st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, -2.5, 1e6, 1e-12]),
)


@settings(max_examples=25)
@given(tables, tables, st.integers(1, 2), st.randoms(use_true_random=False))
def test_order_roles_scale_and_blocks_do_not_matter(x, y, k, random):
    expected = figures(x, y, k)
    mixed = [np.array(random.sample(rows.tolist(), len(rows))) for rows in (x, y)]
    assert figures(*mixed, k) == expected
    assert figures(x * 2.0**-30, y * 2.0**-30, k) == expected
    swapped = precision_recall(y, x, k=k)
    assert (swapped.recall, swapped.precision) == expected[:2]
    assert precision_recall(x, x, k=k).precision == 1
    assert figures(x, y, k, memory=4_700) == expected


@settings(max_examples=25)
@given(st.data())
def test_translation_that_rounds_nothing_does_not_matter(data):
    integers = st.integers(-40, 40)
    rows = arrays.arrays(np.int64, st.tuples(st.integers(3, 9), st.just(2)), elements=integers)
    x, y, shift = data.draw(rows), data.draw(rows), data.draw(st.integers(-(2**40), 2**40))
    assert figures(x + shift, y + shift, 2) == figures(x, y, 2)
    assert figures((x + shift) / 8, (y + shift) / 8, 2) == figures(x, y, 2)


def test_more_neighbours_make_larger_balls():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((80, 5)) + 0.5, rng.standard_normal((90, 5))
    result = [figures(x, y, k) for k in (1, 2, 4, 8, 16)]
    for first, next_one in itertools.pairwise(result):
        assert all(a <= b for a, b in zip(first[:2], next_one[:2], strict=True))
        assert first[3] <= next_one[3]


def test_one_distribution_has_the_expected_figures():
    rng = np.random.default_rng(0)
    figures = density_coverage(rng.standard_normal((1500, 2)), rng.standard_normal((1500, 2)), k=3)
    assert figures.density == pytest.approx(1, abs=0.06)
    assert figures.coverage == pytest.approx(1 - 2**-3, abs=0.03)


@pytest.mark.parametrize("tile", [8, 16])
def test_the_last_block_may_hold_one_row(tile, monkeypatch):
    rng = np.random.default_rng(tile)
    x, y = rng.integers(0, 4, (17, 3)), rng.integers(0, 4, (33, 3))
    expected = reference_figures(x, y, 2)
    monkeypatch.setattr(distances, "TILE", tile)
    assert figures(x / 3, y / 3, 2) == pytest.approx(figures(x * 1.0 / 3, y * 1.0 / 3, 2, memory=8_000))
    assert figures(x, y, 2) == pytest.approx(expected, rel=1e-15)


# --------------------------------------------------------------------------------------------------------------- inputs


def test_arrays_of_all_libraries(library):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 3, (6, 3)) * 0.1, rng.integers(0, 3, (6, 3)) * 0.1
    y[:2] = x[:2]
    rows, others = library.array(x), library.array(y)
    assert precision_recall(rows, others) == precision_recall(x, y)
    result, expected = memorization(rows, others), memorization(x, y)
    assert result.to_dict() == expected.to_dict()  # bitwise
    np.testing.assert_array_equal(devices.to_host(rows), x)  # nothing was written into


def test_sets_of_different_libraries():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((12, 2)), rng.standard_normal((15, 2))
    for left, right in [
        (torch.tensor(x, requires_grad=True), y),
        (x, torch.tensor(y)),
        (x.tolist(), torch.tensor(y)),
    ]:
        assert density_coverage(left, right) == density_coverage(x, y)
        assert memorization(left, right).authenticity == memorization(x, y).authenticity


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint64, bool, np.longdouble])
def test_any_real_dtype(dtype):
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 2, (20, 6)).astype(dtype), rng.integers(0, 2, (25, 6)).astype(dtype)
    before = x.copy()
    assert figures(x, y, 2) == pytest.approx(reference_figures(x, y, 2), rel=1e-15)
    np.testing.assert_array_equal(x, before)


def test_files_lists_and_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((12, 4)).astype(np.float32), rng.standard_normal((14, 4)).astype(np.float32)
    expected = precision_recall(x, y)
    np.save(tmp_path / "x.npy", x)
    assert precision_recall(np.load(tmp_path / "x.npy", mmap_mode="r"), y) == expected
    assert precision_recall(vm.read(tmp_path / "x.npy"), y) == expected
    assert precision_recall(x.tolist(), pandas.Series(list(y))) == expected
    assert precision_recall(x[::-1][::-1], np.asfortranarray(y)) == expected
    frozen = x.copy()
    frozen.flags.writeable = False
    assert precision_recall(frozen, y) == expected


def test_features_come_from_a_function():
    texts, others = ["a", "bb", "ccc", "dddd", "e"], ["a", "bb", "ccc", "dddd"]

    def lengths(items):
        return np.array([[len(item)] for item in items])

    assert precision_recall(texts, others, features=lengths).precision == 1
    assert density_coverage(texts, others, k=2, features=lengths).coverage == 1
    assert memorization(texts, others, features=lengths).copies == 1


GOOD = np.arange(24.0).reshape(8, 3)
BAD = [
    ({"samples": []}, EmptyError, "samples is empty"),
    ({"reference": []}, EmptyError, "reference: samples is empty"),
    ({"samples": np.zeros((5, 0))}, InputError, "no columns"),
    ({"samples": GOOD[:, :2]}, InputError, "rows of 2 columns and reference of 3"),
    ({"samples": GOOD[0]}, InputError, r"shape \(3,\)"),
    ({"samples": GOOD[None]}, InputError, r"shape \(1, 8, 3\)"),
    ({"samples": ["a", "b"]}, InputError, "strings"),
    ({"samples": None}, InputError, "samples is None"),
    ({"reference": GOOD * 1j}, InputError, "reference: samples has dtype complex128"),
    ({"samples": np.where(GOOD == 4, np.nan, GOOD)}, InputError, "^item 1 holds nan in column 1"),
    (
        {"reference": np.where(GOOD == 23, -np.inf, GOOD)},
        InputError,
        "^reference: item 7 holds -inf in column 2",
    ),
    ({"samples": [[1.0, None, 2.0], [1.0, 2.0, 3.0]]}, InputError, "item 0 holds None"),
    ({"features": 3}, InputError, "features=3; expected an encoder"),
    ({"features": "nonsense"}, UnknownNameError, "there is no encoder 'nonsense'"),
    ({"memory": "lots"}, InputError, "memory='lots'; expected a number of bytes"),
    ({"memory": 100}, InputError, "memory=100; expected at least"),
    ({"progress": "yes"}, InputError, "progress='yes'; expected True, False"),
    ({"progress": np.ones(2)}, InputError, "progress=<ndarray of shape"),
]


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize(("given_ones", "error", "message"), BAD, ids=[message for *_, message in BAD])
def test_what_cannot_be_used_is_refused(metric, given_ones, error, message):
    arguments = {"samples": GOOD, "reference": GOOD} | given_ones
    with pytest.raises(error, match=message):
        metric(arguments.pop("samples"), arguments.pop("reference"), **arguments)


@pytest.mark.parametrize("metric", [precision_recall, density_coverage])
@pytest.mark.parametrize("k", [0, -1, 2.5, np.nan, np.inf, "3", None, True, [3]])
def test_k_is_a_whole_number(metric, k):
    with pytest.raises(InputError, match=r"k=.*; expected a whole number from 1 up"):
        metric(GOOD, GOOD, k=k)


def test_each_point_needs_a_kth_neighbour():
    with pytest.raises(InputError, match="k=3 and samples has 3 items; expected more than k"):
        precision_recall(GOOD[:3], GOOD)
    with pytest.raises(InputError, match="k=8 and reference has 8 items; expected more than k"):
        precision_recall(np.tile(GOOD, (2, 1)), GOOD, k=8)
    with pytest.raises(InputError, match="k=5 and reference has 1 item; expected more than k"):
        density_coverage(GOOD, GOOD[:1])
    assert density_coverage(GOOD[:1], GOOD, k=7).coverage == 1  # one sample is enough
    with pytest.raises(InputError, match="reference has 1 item, and memorization compares"):
        memorization(GOOD, GOOD[:1])


@pytest.mark.parametrize("ratio", [0, -0.5, 1.5, np.nan, np.inf, "1/3", None, True])
def test_ratio_is_a_share(ratio):
    with pytest.raises(InputError, match=r"ratio=.*; expected a number above 0 and up to 1"):
        memorization(GOOD, GOOD, ratio=ratio)


def test_collections_with_weights_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,w\n1,2,3\n4,5,6\n")
    weighted = vm.read(path, samples=["a", "b"], weight="w")
    with pytest.raises(
        InputError, match="the collection has weights, and precision_recall counts every sample once"
    ):
        precision_recall(weighted, GOOD[:, :2])
