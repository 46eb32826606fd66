"""The matrix of similarities as a picture."""

from __future__ import annotations

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import DiagonalError, InputError, UnknownNameError
from vendimeter.kernels import RBF, Match, On


def rows(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def drawn_matrix(ax):
    return np.asarray(ax.images[0].get_array())


def test_the_matrix_is_drawn_in_the_order(ax):
    data = rows(12, 3)
    order = np.random.default_rng(1).permutation(12)
    K = RBF(1.0).similarity(data).dense()
    drawn = vm.plots.kernel_matrix(data, RBF(1.0), order=order, ax=ax)
    assert drawn.ax_ is ax
    np.testing.assert_allclose(drawn_matrix(ax), K[np.ix_(order, order)])
    assert ax.get_xlabel() == "12 items, in a given order"
    assert drawn.axes_[1].get_ylabel() == "similarity"
    ax.figure.canvas.draw()


def test_like_items_are_beside_each_other(ax):
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=40)
    vm.plots.kernel_matrix(9 * np.eye(3)[label] + rng.standard_normal((40, 3)), RBF(5.0), ax=ax)
    found = drawn_matrix(ax)
    assert np.count_nonzero(np.diff(found, axis=0).max(axis=1) > 0.5) == 2  # three blocks


def test_more_items_than_have_room_are_drawn_evenly_and_that_is_said(ax):
    texts = [f"{i:03}" for i in np.random.default_rng(0).permutation(300)]
    vm.plots.kernel_matrix(
        texts, lambda a, b: float(np.exp(-abs(int(a) - int(b)) / 300)), order="lexicographic", most=11, ax=ax
    )
    places = np.linspace(0, 299, 11).round()
    np.testing.assert_allclose(drawn_matrix(ax), np.exp(-np.abs(places[:, None] - places) / 300))
    assert ax.get_xlabel() == "11 of 300 items, evenly, in the order of the items themselves"


def test_labels_in_one_piece_have_their_names_beside_them(ax):
    by = ["$u$", "_v", "$u$", "<b>"] * 5
    vm.plots.kernel_matrix(rows(20, 3), by=by, order="labels", ax=ax)
    ax.figure.canvas.draw()
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == ["$u$", "_v", "<b>"]
    assert not any(label.get_parse_math() for label in labels)
    np.testing.assert_allclose(ax.get_yticks(), [4.5, 12, 17])
    strip = ax.images[1].get_array()
    assert strip.shape == (20, 1, 4)
    assert len(np.unique(strip.reshape(20, 4), axis=0)) == 3


def test_labels_in_several_pieces_are_in_a_legend(ax):
    vm.plots.kernel_matrix(rows(20, 3), by=["_a", "$b$"] * 10, order="given", ax=ax)
    texts = ax.get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["_a", "$b$"]
    assert not any(text.get_parse_math() for text in texts)
    ax.figure.canvas.draw()


def test_more_labels_than_colours_say_so(ax):
    vm.plots.kernel_matrix(rows(24, 3), by=[i % 12 for i in range(24)], order="given", ax=ax)
    assert "12 labels" in ax.get_ylabel()


def test_colours_of_negative_similarities_are_even_around_0(ax):
    vm.plots.kernel_matrix(rows(15, 3), ax=ax)
    low, high = ax.images[0].get_clim()
    assert low == -high
    assert ax.images[0].get_cmap().name == "PuOr"


def test_colours_begin_at_0_or_where_similarities_do(ax):
    vm.plots.kernel_matrix(list("aabc"), "match", ax=ax)
    assert ax.images[0].get_clim() == (0, 1)


def test_colours_of_similar_items_begin_at_their_lowest(ax):
    vm.plots.kernel_matrix(5 + rows(30, 4), ax=ax)
    assert 0.5 < ax.images[0].get_clim()[0] < 1


def test_the_ends_of_the_colours_can_be_given(ax):
    vm.plots.kernel_matrix(list("aabc"), "match", limits=(-0.5, 2), ax=ax)
    assert ax.images[0].get_clim() == (-0.5, 2)
    for wrong in ((1, 0), 3, (1,), "ab", (0, np.nan)):
        with pytest.raises(InputError, match="limits="):
            vm.plots.kernel_matrix(list("aabc"), "match", limits=wrong, ax=ax)


def test_a_users_matrix_is_checked(ax):
    with pytest.raises(DiagonalError):
        vm.plots.kernel_matrix(np.array([[2.0, 0], [0, 1]]), "precomputed", ax=ax)


def test_tables_and_collections(ax):
    table = {"word": ["b", "a", "b"], "class": ["u", "v", "u"]}
    vm.plots.kernel_matrix(table, On("word", Match()), by="class", order="labels", ax=ax)
    np.testing.assert_allclose(drawn_matrix(ax), [[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    collection = vm.Collection(["b", "a", "b"], labels=["u", "v", "u"], weights=[1, 2, 1])
    vm.plots.kernel_matrix(collection, "match", order="labels", ax=ax)
    with pytest.raises(UnknownNameError, match="klass"):
        vm.plots.kernel_matrix(table, On("word", Match()), by="klass", ax=ax)


def test_of_one_item(ax):
    vm.plots.kernel_matrix(["a"], "match", ax=ax)
    assert drawn_matrix(ax).tolist() == [[1.0]]
    ax.figure.canvas.draw()
