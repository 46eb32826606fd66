"""Pictures of the scores of groups."""

from __future__ import annotations

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import EmptyError, InputError, UnknownNameError

NAMES = ["$x^2$", "_hidden", "<script>", "a\x1b[1mb"]


def some(q=1):
    samples = {
        NAMES[0]: list("ab"),
        NAMES[1]: list("abcd"),
        NAMES[2]: list("aa"),
        "none": [],
        NAMES[3]: list("abc"),
    }
    return vm.score_groups(samples, "match", q=q)


def test_groups_are_ranked_with_their_names_as_they_stand(ax):
    drawn = some().plot(ax=ax)
    assert drawn.ax_ is ax
    ax.figure.canvas.draw()
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == ["_hidden", "a\\x1b[1mb", "$x^2$", "<script>"]
    assert not any(label.get_parse_math() for label in labels)
    points = next(line for line in ax.lines if line.get_marker() == "o")
    np.testing.assert_allclose(points.get_xdata(), [4, 3, 2, 1])
    np.testing.assert_allclose(points.get_ydata(), [0, 1, 2, 3])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the highest on top
    assert "1 empty group not shown" in ax.get_title(loc="right")
    assert [text.get_text() for text in ax.texts] == ["4", "3", "2", "1"]


def test_bounds_are_error_bars(ax):
    found = vm.score_groups({"x": list("ab"), "y": list("aab")}, "match")
    found.plot(ax=ax)
    (bars,) = ax.collections[1:]
    spans = sorted((segment[:, 0].min(), segment[:, 0].max()) for segment in bars.get_segments())
    np.testing.assert_allclose(spans, sorted(zip(found.low, found.high, strict=True)))


def test_the_order_can_be_chosen(ax):
    found = some(q=[0, 1, 2])
    vm.plots.groups(found, ax=ax, q=2)
    assert ax.get_xlabel() == "score of order 2"
    with pytest.raises(UnknownNameError, match="'0', '1', '2'"):
        vm.plots.groups(found, ax=ax, q=3)


def test_one_is_the_order_of_several_where_it_is_there(ax):
    some(q=[0, 1]).plot(ax=ax)
    assert ax.get_xlabel() == "Vendi Score"


def test_many_groups_are_a_distribution_with_names_at_both_ends(ax):
    rng = np.random.default_rng(0)
    samples = {f"$g_{i}$": [str(x) for x in rng.integers(9, size=8)] for i in range(60)}
    found = vm.score_groups(samples, "match")
    found.plot(ax=ax)
    ax.figure.canvas.draw()
    assert sum(bar.get_height() for bar in ax.patches) == 60
    lowest, highest = (text.get_text().split("\n") for text in ax.texts[-2:])
    at = np.argsort(found.scores, kind="stable")
    assert lowest[0] == "lowest"
    assert f"{found.scores[at[0]]:.3g}" in lowest[1]
    assert highest[1].startswith(f"$g_{np.argsort(-found.scores, kind='stable')[0]}$: ")
    assert not any(text.get_parse_math() for text in ax.texts[-2:])
    assert "mean" in ax.texts[0].get_text()


def test_what_cannot_be_drawn():
    with pytest.raises(InputError, match="expected the groups"):
        vm.plots.groups([1, 2])
    found = vm.score_groups(["a", "b"], "match", by=["x", "y"], weights=np.array([[0.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(EmptyError, match="every group is empty"):
        found.plot()
