"""Sheets of items: those at the ends of modes, and galleries of classes."""

from __future__ import annotations

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import EmptyError, InputError, UnknownNameError
from vendimeter.kernels import RBF, NGram, Pixels
from vendimeter.plots import Display


def rows(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


PICTURES = np.random.default_rng(0).integers(0, 256, (30, 5, 5), dtype=np.uint8)


def pictures_in(ax):
    """The drawn pictures, row by row from the upper left."""
    images = sorted(ax.images, key=lambda image: (round(image.get_extent()[3], 3), image.get_extent()[0]))
    return [np.asarray(image.get_array()) for image in images]


def test_shares_of_modes_are_bars(ax):
    found = vm.modes(rows(20, 4))
    drawn = found.plot(ax=ax)
    assert isinstance(drawn, Display)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], found.shares)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.cumsum(found.shares))
    assert [bar.get_hatch() for bar in ax.patches] == [None] * 4
    assert len(ax.get_legend().get_texts()) == 2


def test_modes_of_arbitrary_vectors_are_hatched(ax):
    vm.modes(list("aaabbc"), "match").plot(ax=ax)
    assert [bar.get_hatch() for bar in ax.patches] == [None] * 3
    ax.clear()
    vm.modes(list("aaabbcc"), "match").plot(ax=ax)
    assert [bar.get_hatch() for bar in ax.patches] == [None, "////", "////"]
    assert "arbitrary" in ax.get_legend().get_texts()[-1].get_text()


def test_all_modes_arbitrary(ax):
    vm.modes(list("abc"), "match").plot(ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "sum so far",
        "arbitrary: equal eigenvalues",
    ]


def test_a_row_a_mode_with_the_high_end_at_the_left(ax):
    found = vm.modes(PICTURES, Pixels(None))
    drawn = found.plot_exemplars(modes=3, count=4, ax=ax)
    assert drawn.ax_ is ax
    seen = pictures_in(ax)
    assert len(seen) == 24
    for a in range(3):
        ends = found.exemplars(a, 4)
        for place, i in enumerate([*ends.high, *ends.low]):
            np.testing.assert_array_equal(seen[8 * a + place], PICTURES[i])
    words = [text.get_text() for text in ax.texts]
    assert words[:2] == ["highest loadings", "lowest loadings"]
    assert words[2] == f"mode 0\n{found.shares[0]:.1%}"
    ax.figure.canvas.draw()


def test_other_items_stand_for_the_samples(ax):
    found = vm.modes(rows(30, 4))
    found.plot_exemplars(PICTURES, modes=[2, 0], count=1, ax=ax)
    expected = [found.exemplars(a, 1)[end][0] for a in (2, 0) for end in (0, 1)]
    for picture, i in zip(pictures_in(ax), expected, strict=True):
        np.testing.assert_array_equal(picture, PICTURES[i])
    with pytest.raises(InputError, match="items has 3 entries and there are 30 samples"):
        found.plot_exemplars(PICTURES[:3], ax=ax)
    for wrong in ([], [4], 0, "a"):
        with pytest.raises(InputError):
            found.plot_exemplars(modes=wrong, ax=ax)
    with pytest.raises(UnknownNameError):
        found.plot_exemplars(kind="picture", ax=ax)


def test_texts_at_the_ends_of_modes_stay_as_they_are(ax):
    texts = ["$a$ b", "_c d", "<i> b", "$a$ d", r"\frac x", "y z"]
    found = vm.modes(texts, NGram(1, 1))
    found.plot_exemplars(count=3, modes=1, ax=ax)
    ends = found.exemplars(0, 3)
    drawn = ax.texts[3:]
    assert [text.get_text() for text in drawn] == [texts[i] for i in [*ends.high, *ends.low]]
    assert not any(text.get_parse_math() for text in ax.texts)
    ax.figure.canvas.draw()


def test_a_sheet_without_axes_is_as_large_as_it_needs():
    found = vm.modes(PICTURES, Pixels(None))
    small, large = (found.plot_exemplars(modes=2, count=count).figure_ for count in (2, 8))
    assert large.get_size_inches()[0] > small.get_size_inches()[0]
    assert found.plot_exemplars(modes=5, count=2).figure_.get_size_inches()[1] > small.get_size_inches()[1]


def test_kinds_of_collections_are_known(ax):
    collection = vm.Collection(["CCO", "CCC", "c1ccccc1"], kind="molecules")
    found = vm.modes(collection, "match")
    found.plot_exemplars(modes=1, ax=ax)
    assert len(ax.images) == 3


# ---------------------------------------------------------------------------------------------------------- galleries


def test_a_gallery_shows_classes_by_score_and_items_by_mean_similarity(ax):
    by = np.array(["x", "y", "z"])[np.arange(30) % 3]
    drawn = vm.plots.gallery(PICTURES, Pixels(None), by=by, count=7, columns=7, lowest=1, highest=1, ax=ax)
    assert drawn.ax_ is ax
    scores = vm.score_groups(PICTURES, Pixels(None), by=by)
    low, high = (scores.labels[i] for i in (scores.scores.argmin(), scores.scores.argmax()))
    assert [text.get_text() for text in ax.texts] == [
        f"{low}: {scores[low]:.3g} of 10",
        f"{high}: {scores[high]:.3g} of 10",
    ]
    expected = []
    for label in (low, high):
        mine = np.flatnonzero(by == label)
        typical = vm.metrics.mean_similarity(PICTURES[mine], Pixels(None))
        expected.extend(mine[np.argsort(-typical)][:7])
    for picture, i in zip(pictures_in(ax), expected, strict=True):
        np.testing.assert_array_equal(picture, PICTURES[i])
    ax.figure.canvas.draw()


def test_rows_of_a_gallery_follow_one_another(ax):
    vm.plots.gallery(PICTURES[:10], Pixels(None), by=["x"] * 10, count=6, columns=3, ax=ax)
    order = np.argsort(-vm.metrics.mean_similarity(PICTURES[:10], Pixels(None)))[:6]
    for picture, i in zip(pictures_in(ax), order, strict=True):
        np.testing.assert_array_equal(picture, PICTURES[i])
    tops = sorted({round(image.get_extent()[3], 3) for image in ax.images})
    assert len(tops) == 2


def test_parameters_are_fitted_on_all_items(ax):
    data = np.vstack([rows(10, 3), 20 + 5 * rows(10, 3, 1)])
    by = [0] * 10 + [1] * 10
    vm.plots.gallery(data, RBF("median"), by=by, ax=ax)
    scores = vm.score_groups(data, RBF("median"), by=by)
    assert ax.texts[0].get_text() == f"{int(scores.scores.argmin())}: {scores.scores.min():.3g} of 10"


def test_weights_change_what_is_typical(ax):
    texts = ["a b", "a c", "d e", "d f"]
    vm.plots.gallery(texts, "ngram", by=["x"] * 4, counts=[1, 1, 1, 9], ax=ax)
    assert ax.texts[1].get_text() == "d f"
    scores = vm.score_groups(texts, "ngram", by=["x"] * 4, counts=[1, 1, 1, 9])
    assert ax.texts[0].get_text() == f"x: {scores['x']:.3g} of 12"


def test_classes_can_be_named_and_hostile_ones_stay_as_they_are(ax):
    by = ["$u$", "_v", "<w>"] * 4
    vm.plots.gallery(list("abcdabcdabcd"), "match", by=by, classes=["_v", "$u$"], ax=ax)
    headings = [text.get_text() for text in ax.texts if ":" in text.get_text()]
    assert [heading.partition(":")[0] for heading in headings] == ["_v", "$u$"]
    assert not any(text.get_parse_math() for text in ax.texts)
    ax.figure.canvas.draw()
    for wrong, error in (([], InputError), ("_v", InputError), (["q"], UnknownNameError)):
        with pytest.raises(error):
            vm.plots.gallery(list("abcd") * 3, "match", by=by, classes=wrong, ax=ax)


def test_fewer_classes_than_asked_for_are_drawn_once(ax):
    vm.plots.gallery(list("abcd"), "match", by=[0, 0, 1, 1], lowest=3, highest=3, ax=ax)
    assert sum(": 2 of 2" in text.get_text() for text in ax.texts) == 2


def test_a_gallery_needs_labels_and_classes(ax):
    with pytest.raises(InputError, match="by=labels"):
        vm.plots.gallery(list("ab"), "match", ax=ax)
    with pytest.raises(EmptyError):
        vm.plots.gallery(list("ab"), "match", by=[0, 1], lowest=0, highest=0, ax=ax)
    with pytest.raises(InputError, match="lowest=-1"):
        vm.plots.gallery(list("ab"), "match", by=[0, 1], lowest=-1, ax=ax)
    with pytest.raises(InputError, match="items has 1 entries"):
        vm.plots.gallery(list("ab"), "match", by=[0, 1], items=["x"], ax=ax)


def test_galleries_of_collections_and_tables(ax):
    collection = vm.Collection(["a dog", "a cat", "two boats"], labels=["u", "u", "v"])
    vm.plots.gallery(collection, "ngram", ax=ax)
    assert ax.texts[0].get_text() == "v: 1 of 1"
    assert len(ax.texts) == 5


def test_the_poorest_and_richest_photographs_are_those_of_the_paper(shared_data, ax):
    held = np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz")
    images = np.load(shared_data / "images" / "cifar100_test.npz")["images"][held["row"]]
    names = held["classes"][held["label"]]
    vm.plots.gallery(images, Pixels(), by=names, count=9, columns=3, ax=ax)
    assert [text.get_text() for text in ax.texts] == ["cockroach: 1.69 of 100", "aquarium_fish: 4.62 of 100"]
    mine = np.flatnonzero(names == "cockroach")
    order = mine[np.argsort(-vm.metrics.mean_similarity(images[mine], Pixels()))]
    np.testing.assert_array_equal(np.asarray(ax.images[0].get_array()), images[order[0]])
    np.testing.assert_array_equal(np.asarray(ax.images[8].get_array()), images[order[8]])
