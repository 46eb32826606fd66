"""Scores over bandwidths against scores at each of them; the informative range, and what is suggested."""

from __future__ import annotations

import json
import math

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, make_blobs

import vendimeter as vm
from vendimeter.analysis import scale_curves
from vendimeter.errors import EmptyError, InputError, UnknownNameError
from vendimeter.kernels import RBF, Cosine, Laplacian, NGram, On


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def points(n=60, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def blobs(centres, d, spread, n=900, seed=1):
    return make_blobs(n, n_features=d, centers=centres, cluster_std=spread, random_state=seed)[0]


# ---------------------------------------------------------------------------------------------------------- the scores


@pytest.mark.parametrize(("name", "kernel"), [("rbf", RBF), ("laplacian", Laplacian)])
@pytest.mark.parametrize("q", [0.5, 1, 2, "inf"])
def test_scores_are_those_of_the_kernel_at_each_scale(name, kernel, q):
    rows = points()
    found = vm.bandwidth(rows, name, q=q)
    for scale, score in [*zip(found.scales, found.scores, strict=True)][::6]:
        assert math.isclose(score, vm.score(rows, kernel(scale), q=q), rel_tol=1e-9)
    assert math.isclose(found.score, vm.score(rows, found.kernel, q=q), rel_tol=1e-9)
    assert math.isclose(found.median_score, vm.score(rows, kernel(), q=q), rel_tol=1e-9)
    assert found.median == getattr(kernel().fit(rows), kernel.parameter)
    assert found.score.bounds[0] <= found.score <= found.score.bounds[1]
    assert found.kernel == kernel(found.suggested)
    assert (found.parameter, found.n, found.items) == (kernel.parameter, 60, 60)


def test_the_grid_goes_from_all_different_to_all_alike():
    for rows in (
        points(),
        points(200, 40),
        points(50, 1),
        blobs(5, 2, 0.1, 200),
        np.array([[0.0], [1e-9], [1.0]]),
    ):
        found = vm.bandwidth(rows)
        assert found.scores[0] > 0.93 * len(rows)
        assert found.scores[-1] < 1.06
        assert np.all(np.diff(found.scores) < 1e-9)
        assert np.allclose(np.diff(np.log(found.scales)), np.log(found.scales[1] / found.scales[0]))


def test_sensitivity_is_the_slope_on_logarithmic_axes():
    rows = points()
    found = vm.bandwidth(rows, scales=np.geomspace(0.5, 2, 41))
    step = 1e-4
    for i in (5, 20, 35):
        scale = found.scales[i]
        above, below = (vm.score(rows, RBF(scale * math.exp(sign * step))) for sign in (1, -1))
        assert abs(found.sensitivity[i] - math.log(above / below) / (2 * step)) < 2e-3
    assert math.isnan(vm.bandwidth(rows, scales=[1.0]).sensitivity[0])


def test_the_informative_range():
    rows = points(100)
    found = vm.bandwidth(rows)
    assert math.isclose(vm.score(rows, RBF(found.low)), 90, rel_tol=0.01)
    assert math.isclose(vm.score(rows, RBF(found.high)), 1.1, rel_tol=0.01)
    assert found.low < found.suggested < found.high
    assert found.informative.sum() > 5
    assert np.all((found.scales >= found.low)[found.informative])


@pytest.mark.parametrize("factor", [10.0, 1e-3, 1e150, 1e-150])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_scales_grow_with_the_data(factor, kernel):
    rows = blobs(4, 2, 0.05, 80)
    found, larger = vm.bandwidth(rows, kernel), vm.bandwidth(factor * rows, kernel)
    for name in ("suggested", "low", "high", "median"):
        assert math.isclose(getattr(larger, name), factor * getattr(found, name), rel_tol=1e-6), name
    assert np.allclose(larger.scores, found.scores, rtol=1e-6)


def test_wide_rows(monkeypatch):
    rows = points(40, 30)
    direct = vm.bandwidth(rows)
    monkeypatch.setattr(scale_curves, "DIRECT_WIDTH", 8)
    product = vm.bandwidth(rows)
    assert np.allclose(product.scores, direct.scores, rtol=1e-9)
    assert product.scales.tolist() != []


def test_copies_are_one_item_of_more_weight():
    rows = np.repeat(points(30), 3, axis=0)
    found, once = vm.bandwidth(rows), vm.bandwidth(points(30))
    assert math.isclose(found.most, 30)
    assert np.allclose(found.scores, once.scores)
    assert math.isclose(found.suggested, once.suggested)
    weighted = vm.bandwidth(points(30), counts=np.full(30, 3))
    assert (weighted.n, weighted.items) == (90, 90)
    assert np.allclose(weighted.scores, once.scores)


def test_weights():
    rows, weights = points(50), np.random.default_rng(1).random(50)
    weights[:5] = 0
    weights /= weights.sum()
    found = vm.bandwidth(rows, weights=weights, q=2)
    for i in (3, 12, 20):
        expected = vm.score(rows, RBF(found.scales[i]), weights=weights, q=2)
        assert math.isclose(found.scores[i], expected, rel_tol=1e-9)
    assert math.isclose(found.most, 1 / np.sum(weights**2))


def test_a_random_part_of_many_items():
    rows = blobs(6, 4, 0.2, 3000)
    found = vm.bandwidth(rows, items=300)
    assert (found.n, found.items) == (3000, 300)
    assert "300 of 3,000 items, drawn at random" in str(found)
    assert np.array_equal(found.scores, vm.bandwidth(rows, items=300).scores)
    assert not np.array_equal(found.scores, vm.bandwidth(rows, items=300, rng=1).scores)
    weights = np.where(np.arange(3000) < 40, 1.0, 1e-9)  # the others are hardly ever drawn
    weights[:2] = 40.0
    weights /= weights.sum()
    heavy = vm.bandwidth(rows, weights=weights, items=300)
    assert heavy.items == 300
    assert abs(heavy.most / np.exp(-np.sum(weights * np.log(weights))) - 1) < 0.1


# --------------------------------------------------------------------------------------------------- what it suggests


@pytest.mark.parametrize(
    ("centres", "d", "spread"), [(2, 2, 0.1), (5, 10, 0.3), (10, 10, 0.3), (30, 10, 0.3), (20, 2, 0.02)]
)
def test_blobs_that_lie_apart_are_counted(centres, d, spread):
    found = vm.bandwidth(blobs(centres, d, spread), items=300)
    assert found.reason.kind == "plateau"
    assert found.reason.values["from"] < found.suggested < found.reason.values["to"]
    assert 0.85 * centres < found.score < 1.25 * centres
    assert found.low < found.suggested < found.high


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_without_groups_the_similarities_vary_most_there(kernel):
    rows = points(150, 5)
    found = vm.bandwidth(rows, kernel)
    assert found.reason.kind == "contrast"
    upper = np.triu_indices(len(rows), 1)

    def spread(scale):
        return type(found.kernel)(scale).similarity(rows).dense()[upper].std()

    assert spread(found.suggested) >= max(spread(scale) for scale in found.scales) - 1e-3
    assert found.low < found.suggested < found.high


def test_the_suggestion_hardly_depends_on_the_part_that_is_drawn():
    digits = load_digits(return_X_y=True)[0]
    found = [
        vm.bandwidth(digits, items=items, rng=rng) for items, rng in ((150, 0), (150, 1), (400, 2), (400, 3))
    ]
    scales = np.array([one.suggested for one in found])
    assert scales.max() / scales.min() < 1.15
    assert all(one.low < one.suggested < one.high for one in found)
    apart = blobs(8, 10, 0.3)
    scores = [
        float(vm.bandwidth(apart, items=items, rng=rng).score)
        for items, rng in ((150, 0), (150, 1), (300, 2))
    ]
    assert max(scores) / min(scores) < 1.1


def test_real_pictures(shared_data):
    with np.load(shared_data / "images" / "mnist_test.npz") as data:
        pictures = data[data.files[0]][:2000].reshape(2000, -1)
    found = vm.bandwidth(pictures, items=250)
    assert found.low < found.suggested < found.high
    assert 20 < found.score < 100
    part = np.sort(np.random.default_rng(3).choice(2000, 250, replace=False))
    assert math.isclose(vm.score(pictures[part], found.kernel), found.score, rel_tol=0.15)


def test_when_no_scale_says_anything():
    alike = vm.bandwidth(np.ones((20, 3)))
    assert alike.reason.kind == "identical"
    assert (alike.most, alike.kernel, alike.score) == (1, None, None)
    assert np.allclose(alike.scores, 1)
    even = vm.bandwidth(np.eye(30))
    assert even.reason.kind == "alike"
    assert math.isnan(even.suggested)
    assert not math.isnan(even.low)  # the score does depend on the scale
    outside = vm.bandwidth(points(), scales=[1e-6, 1e6])
    assert outside.reason.kind == "saturated"
    assert math.isnan(outside.low)
    assert math.isnan(vm.bandwidth([[1.0, 2.0]]).suggested)
    assert "No scale is suggested" in str(alike)


def test_two_items():
    found = vm.bandwidth([0.0, 1.0])
    assert found.reason.kind == "alike"
    assert math.isclose(found.most, 2)


# ------------------------------------------------------------------------------------------------------ several kernels


def test_kernels():
    captions = ["a dog runs", "a dog runs fast", "two boats at sea", "a red boat", "a dog runs"]
    kernels = {"words": NGram(1, 1), "four": NGram(1, 4), "equal": "match"}
    found = vm.bandwidth(captions, kernels=kernels)
    for score, kernel in zip(found.scores, kernels.values(), strict=True):
        assert math.isclose(score, vm.score(captions, kernel), rel_tol=1e-12)
    assert found.names == ("words", "four", "equal")
    assert found.kernel is None
    assert found.reason.values["informative"] == ("words", "four", "equal")
    assert found.to_frame()["kernel"].tolist() == ["words", "four", "equal"]
    listed = vm.bandwidth(points(), kernels=[RBF(), Cosine(), lambda a, b: float(np.exp(-abs(a - b).sum()))])
    assert listed.names[0].startswith("RBF(sigma=")
    assert math.isclose(listed.scores[0], vm.score(points(), "rbf"), rel_tol=1e-12)
    assert "informative range" not in str(listed)


def test_kernels_of_tables_weights_and_parts():
    table = pd.DataFrame({"v": [*points(80)], "c": list("ab" * 40)})
    counts = np.arange(80) % 3
    kernels = [
        On("v", RBF(1.0)),
        On("c", vm.kernels.Match()),
        0.5 * On("v", RBF(1.0)) + 0.5 * On("c", vm.kernels.Match()),
    ]
    found = vm.bandwidth(table, kernels=kernels, counts=counts, q=2)
    for score, kernel in zip(found.scores, kernels, strict=True):
        assert math.isclose(score, vm.score(table, kernel, counts=counts, q=2), rel_tol=1e-9)
    part = vm.bandwidth(table, kernels=kernels[1:2], items=30)
    assert (part.items, part.n) == (30, 80)
    assert 1.8 < part.scores[0] <= 2


def test_every_library(library):
    rows = points(40)
    found = vm.bandwidth(library.array(rows), scales=[0.5, 1.0, 2.0])
    assert np.allclose(found.scores, vm.bandwidth(rows, scales=[0.5, 1.0, 2.0]).scores)


def test_a_collection_with_weights(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text,w\na b,0.5\na c,0.2\nd e,0.3\n")
    data = vm.read(path, samples="text", weight="w")
    found = vm.bandwidth(data, kernels=[NGram(1, 1)])
    assert math.isclose(found.scores[0], vm.score(data, NGram(1, 1)), rel_tol=1e-9)


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "cosine"}, "'cosine' has no bandwidth to vary; expected 'rbf' or 'laplacian'"),
        ({"kernel": RBF(1.0) * Cosine()}, "kernels="),
        ({"scales": []}, "expected a list of numbers above 0"),
        ({"scales": "wide"}, "scales='wide'"),
        ({"scales": 3.0}, "scales=3.0"),
        ({"scales": [1.0, 0.0]}, r"scales\[1\] is 0.0; expected a number above 0"),
        ({"scales": [1.0, float("inf")]}, r"scales\[1\] is inf"),
        ({"scales": [[1.0]]}, r"scales\[0\] is \[1.0\]"),
        ({"q": 0}, "expected one order above 0"),
        ({"q": [1, 2]}, "expected one order above 0"),
        ({"items": 0}, "items=0; expected a whole number"),
        ({"rng": "a"}, "rng='a'"),
        ({"kernels": []}, "kernels is empty"),
        ({"kernels": "ngram"}, "kernels='ngram'; expected a list"),
        ({"kernels": [Cosine()], "scales": [1.0]}, "both scales and kernels"),
        ({"weights": [0.5, 0.5]}, "2 entries and there are 60 items"),
        ({"counts": [1.5] * 60}, "expected whole numbers"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(InputError, match=words):
        vm.bandwidth(points(), **options)


def test_bad_samples():
    with pytest.raises(EmptyError):
        vm.bandwidth([])
    with pytest.raises(UnknownNameError):
        vm.bandwidth(points(), "rbff")
    with pytest.raises(InputError, match="strings"):
        vm.bandwidth(["a", "b"])
    with pytest.raises(InputError, match="farther apart than a float64 can say"):
        vm.bandwidth([[1e308], [-1e308], [0.0]])
    rows = points()
    rows[3, 1] = np.nan
    with pytest.raises(InputError, match="item 3 holds the value nan"):
        vm.bandwidth(rows)


# --------------------------------------------------------------------------------------------------------- the result


def test_the_result():
    found = vm.bandwidth(points())
    for array in (found.scales, found.scores, found.sensitivity):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        found.suggested = 3.0
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["scores"] == found.scores.tolist()
    assert plain["score"]["low"] <= plain["score"]["score"] <= plain["score"]["high"]
    assert plain["kernel"] == repr(found.kernel)
    frame = found.to_frame()
    assert list(frame) == ["sigma", "score", "informative", "sensitivity"]
    assert repr(found).startswith("Bandwidths(n=60, items=60, q=1, most=60, suggested=")
    assert "σ = " in str(found)
    assert json.dumps(vm.bandwidth(points(), "laplacian", q="inf").to_dict(), allow_nan=False)


def test_no_text_of_the_user_is_markup():
    names = ["<script>alert(1)</script>", "$x^2$", "_a", "tab\tand \x1b[31m", "a" * 90]
    found = vm.bandwidth(list("aabc"), kernels=dict.fromkeys(names, "match"))
    assert "<script>" not in found._repr_html_()
    assert "\x1b" not in str(found)
    shown = found.plot()
    shown.figure_.canvas.draw()
    assert [label.get_text() for label in shown.ax_.get_yticklabels()][1:3] == ["$x^2$", "_a"]


@pytest.mark.parametrize("rows", [points(), np.eye(6), np.ones((5, 2)), blobs(3, 2, 0.05, 60)])
def test_plot(rows):
    found = vm.bandwidth(rows)
    shown = found.plot()
    shown.figure_.canvas.draw()
    texts = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert any("suggested" in text for text in texts)
    assert any(f"{found.median:.3g}" in text for text in texts)
    assert (not math.isnan(found.low)) == ("informative range" in texts)
    _, ax = plt.subplots()
    assert found.plot(ax).ax_ is ax


def test_plot_of_many_kernels():
    found = vm.bandwidth(points(20), kernels={f"σ = {i}": RBF(i) for i in range(1, 50)})
    found.plot().figure_.canvas.draw()


@pytest.mark.parametrize("options", [{}, {"weights": np.arange(60) / 1770}, {"counts": np.arange(60) % 3}])
def test_of_a_diversity_the_samples_and_their_weights_are_taken(options):
    d = vm.Diversity(points(), "laplacian", rng=2, **options)
    for asked in ({}, {"kernel": "laplacian", "items": 20}, {"kernels": ["rbf", Cosine()], "items": 20}):
        found, expected = vm.bandwidth(d, **asked), vm.bandwidth(points(), rng=2, **options, **asked)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-12)
        assert (found.n, found.items, found.names) == (expected.n, expected.items, expected.names)
    part = vm.bandwidth(d.take(np.arange(1, 9)), scales=[1.0])
    kept = {name: np.asarray(values)[1:9] for name, values in options.items()}
    if "weights" in kept:
        kept["weights"] = kept["weights"] / kept["weights"].sum()
    np.testing.assert_allclose(part.scores, vm.bandwidth(points()[1:9], scales=[1.0], **kept).scores)
    with pytest.raises(InputError, match="rng= was given beside a Diversity"):
        vm.bandwidth(d, rng=1)
    stand_in = vm.Diversity(points(), solver=vm.Solver(method="random-features"), kernel="rbf")
    np.testing.assert_allclose(vm.bandwidth(stand_in).scores, vm.bandwidth(points()).scores)
