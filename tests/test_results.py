"""Score and Profile: floats that know how they came about."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import UnansweredError, UnknownNameError

K = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1.0]])


@pytest.fixture
def score():
    return vm.score(K, kernel="precomputed")


def test_a_score_is_a_float_and_arithmetic_gives_plain_floats(score):
    assert isinstance(score, float)
    for result in (score + 1, 2 * score, score / 3, -score, abs(score), score**2, round(score, 2)):
        assert type(result) is float
    assert f"{score:.2f}" == "2.16"
    assert float(str(score)) == score
    assert np.asarray([score]).dtype == np.float64


def test_a_score_cannot_be_changed(score):
    with pytest.raises(AttributeError, match="cannot be changed"):
        score.n = 4
    with pytest.raises(TypeError):
        score.diagnostics["kernel"] = "other"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_score_survives_copying_and_pickling(score, duplicate):
    other = duplicate(score)
    assert other == score
    assert other.to_dict() == score.to_dict()
    np.testing.assert_array_equal(other.spectrum.eigenvalues, score.spectrum.eigenvalues)


def test_the_repr_is_one_line_and_says_it_all(score):
    assert repr(score) == "Score(2.1573 ± 4e-14, q=1, n=3, method='eigh', level='deterministic')"


def test_to_dict_is_ready_for_json(score):
    data = json.loads(json.dumps(score.to_dict(), allow_nan=False))
    assert data["score"] == score
    assert data["low"] <= data["score"] <= data["high"]
    assert data["level"] == "deterministic"
    assert data["diagnostics"]["kernel"].startswith("Precomputed(")
    infinite = vm.score(K, kernel="precomputed", q="inf").to_dict()
    assert json.loads(json.dumps(infinite, allow_nan=False))["q"] == "inf"


def test_html_escapes_user_text():
    hostile = "<script>alert('x')</script>"
    table = {hostile: ["a", "b"]}
    shown = vm.score(table, vm.kernels.On(hostile, vm.kernels.Match()))._repr_html_()
    assert "<script" not in shown
    assert "&lt;script" in shown
    groups = vm.score_groups(["a", "b"], kernel="match", by=[hostile, hostile])
    assert "<script" not in groups._repr_html_()
    assert "<script" not in groups.mean(by=[hostile])._repr_html_()


def test_a_profile_is_a_mapping_from_order_to_score():
    profile = vm.profile(K, kernel="precomputed", q=[0, 1, 2, "inf"])
    assert list(profile) == [0, 1, 2, math.inf]
    assert profile["inf"] == profile[math.inf]
    assert 2 in profile
    assert 3 not in profile
    with pytest.raises(UnknownNameError, match="no order in this profile 3"):
        profile[3]
    assert (np.diff(profile.scores) <= 0).all()
    frame = profile.to_frame()
    assert list(frame.columns) == ["q", "score", "low", "high", "level"]
    assert (frame["low"] <= frame["score"]).all()
    json.dumps(profile.to_dict(), allow_nan=False)
    assert "Profile({0: 3, 1: 2.1573," in repr(profile)


def test_one_spectrum_answers_every_order(score):
    direct = vm.score(K, kernel="precomputed", q=2)
    assert score.spectrum.score(2).value == pytest.approx(direct, abs=1e-14)


def test_a_shortcut_says_that_it_answers_one_order_only():
    big = np.eye(600)
    score = vm.score(big, kernel="precomputed", q=2)
    assert score == pytest.approx(600)
    assert score.method == "trace"
    with pytest.raises(UnansweredError, match="ask for several orders at once"):
        score.spectrum.score(1)
    with pytest.raises(UnansweredError, match="were not computed"):
        _ = score.spectrum.eigenvalues
    assert vm.score(big, kernel="precomputed", q=[1, 2])[2].method == "eigh"


def test_q_zero_states_its_threshold():
    score = vm.score(np.ones((5, 5)), kernel="precomputed", q=0)
    assert score == 1
    assert 0 < score.diagnostics["rank_threshold"] < 1e-12
