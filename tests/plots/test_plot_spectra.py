"""Pictures of spectra and profiles: what is drawn is what was computed."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.container import BarContainer

import vendimeter as vm
from vendimeter.errors import InputError, MissingDependencyError
from vendimeter.kernels import RBF
from vendimeter.plots import Display


def rows(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_few_eigenvalues_are_bars_with_their_sum_and_the_score(ax):
    score = vm.score(list("aabcd"), kernel="match")
    drawn = score.plot(ax=ax)
    assert isinstance(drawn, Display)
    assert drawn.ax_ is ax
    assert drawn.figure_ is ax.figure
    bars = next(held for held in ax.containers if isinstance(held, BarContainer))
    np.testing.assert_allclose([bar.get_height() for bar in bars], [0.4, 0.2, 0.2, 0.2])
    np.testing.assert_allclose(drawn.axes_[1].lines[0].get_ydata(), [0.4, 0.6, 0.8, 1.0])
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [score, score])  # where the score is
    assert ax.get_yscale() == "linear"
    ax.figure.canvas.draw()


def test_many_eigenvalues_are_a_line_on_logarithmic_axes_without_rounding(ax):
    data = rows(300, 40) @ rows(40, 90, 1)
    drawn = vm.score(data).plot(ax=ax)
    line = ax.lines[0].get_ydata()
    reference = np.linalg.svd(data / np.linalg.norm(data, axis=1, keepdims=True), compute_uv=False) ** 2 / 300
    np.testing.assert_allclose(line, reference[:40], rtol=1e-9)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert "50 more are 0 but for rounding" in ax.get_xlabel()
    assert drawn.axes_[1].lines[0].get_ydata()[-1] == pytest.approx(1)


def test_eigenvalues_as_numbers(ax):
    vm.plots.spectrum([1, 3, 0], ax=ax)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], [0.75, 0.25])
    assert (
        ax.get_legend().get_texts()[2].get_text()
        == f"Vendi Score {np.exp(-0.75 * np.log(0.75) - 0.25 * np.log(0.25)):.3g}"
    )


@pytest.mark.parametrize("wrong", ["abc", [], [1, -1], [0, 0], [np.nan], None, [[1, 2], [3]]])
def test_what_are_no_eigenvalues(wrong):
    with pytest.raises(InputError, match="expected a Score, or numbers"):
        vm.plots.spectrum(wrong)


def test_of_a_low_rank_what_is_known_is_drawn_and_said(ax):
    score = vm.score(rows(800, 2), RBF(1.0), method="lowrank", tol=0.05)
    vm.plots.spectrum(score, ax=ax)
    known = score.spectrum.eigenvalues
    assert f"{len(known):,} of 800 are known, from below" in ax.get_xlabel()
    drawn = ax.lines[0].get_ydata() if ax.get_xscale() == "log" else [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(drawn, known)


def test_of_quadrature_what_is_known_is_drawn_and_said(ax):
    score = vm.score(rows(1200, 900), method="lanczos", tol=0.05)
    vm.plots.spectrum(score, ax=ax)
    assert "of 900 are known, from below" in ax.get_xlabel()
    assert ax.get_xlim()[1] > score  # the score is in the picture


def test_scores_without_eigenvalues_say_what_to_do():
    with pytest.raises(InputError, match=r"without eigenvalues.*q=1"):
        vm.score(rows(1200, 600), q=2).plot()
    with pytest.raises(InputError, match="empty group"):
        vm.score_groups({"a": ["x"], "b": []}, "match").at(1).plot()


def test_a_profile_is_drawn_at_its_orders_with_the_bounds(ax):
    found = vm.profile(rows(60, 5), q=[0, 0.5, 1, 2, "inf"])
    drawn = found.plot(ax=ax)
    assert drawn.ax_ is ax
    marks = ax.lines[-1]
    np.testing.assert_allclose(marks.get_xdata(), [0, 1 / 3, 1 / 2, 2 / 3, 1])
    np.testing.assert_allclose(marks.get_ydata(), found.scores)
    curve = ax.lines[0]
    at = np.searchsorted(curve.get_xdata(), 0.75)
    q = curve.get_xdata()[at] / (1 - curve.get_xdata()[at])
    assert curve.get_ydata()[at] == pytest.approx(float(vm.score(rows(60, 5), q=q)))
    ticks = dict(zip([t.get_text() for t in ax.get_xticklabels()], ax.get_xticks(), strict=True))
    assert ticks["∞"] == 1
    assert ticks["1"] == 0.5
    assert len(ax.collections) >= 1  # the band
    assert ax.get_legend() is None


def test_the_band_of_a_profile_is_that_of_its_bounds(ax):
    found = vm.profile(rows(1200, 900), method="lanczos", tol=0.03, q=[0.5, 1, 2])
    found.plot(ax=ax)
    corners = ax.collections[0].get_paths()[0].vertices
    for q, score in found.items():
        held = corners[np.isclose(corners[:, 0], q / (1 + q)), 1]
        assert held.min() == pytest.approx(score.bounds[0])
        assert held.max() == pytest.approx(score.bounds[1])


def test_several_profiles_differ_in_more_than_colour(ax):
    names = ["$x^2$", "_hidden", "<b>\x07"]
    vm.plots.profile({name: vm.profile(rows(20, 4, i)) for i, name in enumerate(names)}, ax=ax)
    ax.figure.canvas.draw()
    texts = ax.get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["$x^2$", "_hidden", "<b>\\x07"]
    assert not any(text.get_parse_math() for text in texts)
    handles = ax.get_legend().get_lines()
    assert len({(line.get_marker(), line.get_linestyle(), line.get_color()) for line in handles}) == 3
    assert len({line.get_marker() for line in handles}) == 3
    assert len({line.get_linestyle() for line in handles}) == 3


def test_scores_that_differ_by_orders_of_magnitude_have_a_logarithmic_axis(ax):
    vm.profile(np.vstack([np.ones((400, 80)), np.eye(80)]), vm.kernels.Cosine()).plot(ax=ax)
    assert ax.get_yscale() == "log"


@pytest.mark.parametrize("wrong", [3, {}, {"a": 1}, vm.score(["a"], "match")])
def test_what_is_no_profile(wrong):
    with pytest.raises(InputError, match="expected a Profile"):
        vm.plots.profile(wrong)


def test_without_axes_a_figure_is_made():
    drawn = vm.score(list("aab"), "match").plot()
    assert pyplot.get_fignums() == [drawn.figure_.number]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    score = vm.score(list("aab"), "match")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (
        score.plot,
        vm.profile(list("aab"), "match").plot,
        vm.score_groups({"x": ["a"]}, "match").plot,
        vm.modes(list("aab"), "match").plot,
        vm.modes(list("aab"), "match").plot_exemplars,
        vm.modes(list("aab"), "match").plot_matrix,
    ):
        with pytest.raises(MissingDependencyError, match=r"'matplotlib'.*pip install 'vendimeter\[plots\]'"):
            draw()


def test_importing_the_pictures_does_not_import_matplotlib():
    import subprocess

    code = (
        "import sys, vendimeter.plots; print('matplotlib' in sys.modules, vendimeter.plots.spectrum.__name__)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["False", "spectrum"]


def test_no_module_has_the_name_of_a_function():
    import types

    for name in vm.plots.__all__:
        assert not isinstance(getattr(vm.plots, name), types.ModuleType)
