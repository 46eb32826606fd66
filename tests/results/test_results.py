"""Score and Profile: floats that know how they came about."""

from __future__ import annotations

import copy
import html
import json
import math
import pickle
import re
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import UnansweredError, UnknownNameError
from vendimeter.spectrum import Eigenvalues

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


def test_bounds_are_those_of_the_spectrum_whenever_they_are_read(score, monkeypatch):
    copied = pickle.loads(pickle.dumps(score))  # before anyone read them
    assert copied.bounds == score.bounds == score.spectrum.score(1)[1:]
    assert score.bounds[0] <= score <= score.bounds[1]
    monkeypatch.setattr(Eigenvalues, "score", None)
    assert score.bounds == copied.bounds  # computed once
    assert vm.score(K, kernel="precomputed") == score  # and not for the score


def test_diagnostics_are_attributes_and_a_mapping_of_those_that_apply(score):
    diagnostics = score.diagnostics
    assert diagnostics.kernel == diagnostics["kernel"]
    assert diagnostics.removed_mass is None
    assert "removed_mass" not in diagnostics
    with pytest.raises(KeyError):
        diagnostics["removed_mass"]
    assert dict(diagnostics) == {name: getattr(diagnostics, name) for name in diagnostics}
    more = score.noted(left_out=2, mine="text").diagnostics
    assert (more.left_out, more.other, more["mine"]) == (2, {"mine": "text"}, "text")
    assert pickle.loads(pickle.dumps(more)) == more != diagnostics


def test_a_claim_has_numbers_and_a_text_for_each_reader():
    exact = made(403.93041, 403.93041 - 2.1e-11, 403.93041 + 2.9e-11, method="gram", n=1500).claim
    assert (exact.kind, exact.error, exact.interval) == ("rounding", 3e-11, None)
    assert exact.shown("page") == "exact up to rounding (±3·10⁻¹¹)"
    assert exact.shown("terminal") == "The exact score is within 3e-11 of that (deterministic)."
    wide = made(554.512, 552.99, 556.01, "probabilistic", 0.95).claim
    assert (wide.kind, wide.number, wide.interval) == ("probable", "554.5", ("552.9", "556.1"))
    assert wide.shown("terminal") == "The exact score lies between 552.9 and 556.1 (with 95% confidence)."
    none = made(66.0, level="none", diagnostics={"caveat": "8 stand in"}).claim
    assert (none.kind, none.caveat, none.number) == ("none", "8 stand in", "about 66")


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


# ------------------------------------------------------------------------------------------------------ in a sentence


def made(
    value: float,
    low: float = math.nan,
    high: float = math.nan,
    level: Any = "deterministic",
    confidence: float | None = None,
    **options: Any,
) -> vm.Score:
    """A score with a spectrum of this confidence."""
    spectrum = None
    if confidence is not None:
        spectrum = Eigenvalues(np.ones(1), 0.0, level, confidence)
    options = {"q": 1.0, "n": 10_000, "method": "lanczos"} | options
    return vm.Score(value, bounds=(low, high), level=level, spectrum=spectrum, **options)


SENTENCES: dict[str, tuple[vm.Score, str]] = {
    "probabilistic": (
        made(
            554.512,
            552.93,
            556.07,
            "probabilistic",
            0.95,
            diagnostics={"seconds": 4.13, "exact_seconds": 40.2},
        ),
        (
            "554.5 effectively different items of 10,000: between 552.9 and 556.1 with 95% confidence; 4.1 s; "
            "exact would take about 40 s"
        ),
    ),
    "rounded outwards": (
        made(554.512, 552.99, 556.01, "probabilistic", 0.999999),
        "554.5 effectively different items of 10,000: between 552.9 and 556.1 with 99.9999% confidence",
    ),
    "no spectrum": (
        made(554.512, 552.93, 556.07, "probabilistic"),
        "554.5 effectively different items of 10,000: between 552.9 and 556.1",
    ),
    "certain": (
        made(20.1234, 20.12, 20.13, method="lowrank", diagnostics={"seconds": 0.0421}),
        "20.1234 effectively different items of 10,000: between 20.1200 and 20.1300, for certain; 42 ms",
    ),
    "certain and wide": (
        made(1500.2, 1000.5, 20_000.25, method="lowrank", n=100_000),
        "1,500 effectively different items of 100,000: between 1,000 and 20,001, for certain",
    ),
    "certain, of whole numbers": (
        made(3.0, 3.0, 5.0, q=0.0, method="eigh", n=5),
        "3 effectively different items (of order 0) of 5: between 3 and 5, for certain",
    ),
    "narrow, but not from rounding": (
        made(20.0, 20.0 - 1e-9, 20.0 + 1e-9, method="lowrank"),
        "20.0000000000 effectively different items of 10,000: between 19.9999999989 and 20.0000000011, for certain",
    ),
    "exact": (
        made(403.93041, 403.93041 - 2.1e-11, 403.93041 + 2.9e-11, method="gram", n=1500),
        "403.93 effectively different items of 1,500, exact up to rounding (±3e-11)",
    ),
    "exact, of order 2": (
        made(2 + 2 / 3, 2 + 2 / 3, 2 + 2 / 3, q=2.0, method="trace", n=4, diagnostics={"seconds": 1e-5}),
        "2.6667 effectively different items (of order 2) of 4, exact; less than 0.1 ms",
    ),
    "exact, of order infinity": (
        made(2.0, 2.0 - 4e-15, 2.0, q=math.inf, method="largest", n=4),
        "2 effectively different items (of order inf) of 4, exact up to rounding (±4e-15)",
    ),
    "one item": (
        made(1.0, 1.0, 1.0, method="gram", n=1),
        "1 effectively different item of 1, exact",
    ),
    "many items": (
        made(1_234_567.8, 1_234_567.7, 1_234_567.9, method="gram", n=2_000_000),
        "1,234,568 effectively different items of 2,000,000, exact up to rounding (±0.2)",
    ),
    "estimated": (
        made(554.512, 552.93, 556.07, "estimated", 0.95),
        (
            "554.5 effectively different items of 10,000: probably between 552.9 and 556.1 (an estimate: 95% "
            "confidence, if its constants are right)"
        ),
    ),
    "none": (
        made(66.123, level="none", method="gram", confidence=1.0, diagnostics={"seconds": 130}),
        "about 66.12 effectively different items of 10,000, no interval; 2.2 min",
    ),
    "none, with a caveat": (
        made(66.0, level="none", q=2.0, method="gram", diagnostics={"caveat": "8 <b> stand in"}),
        "about 66 effectively different items (of order 2) of 10,000, no interval (8 <b> stand in)",
    ),
    "empty": (vm.Score.empty(1.0), "no items, and so no score"),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_score_in_a_sentence(name: str) -> None:
    score, sentence = SENTENCES[name]
    assert score.summary() == sentence
    assert f"<p>{html.escape(sentence, quote=True)}</p>" in score._repr_html_()
    assert "<b>" not in score._repr_html_()
    assert pickle.loads(pickle.dumps(score)).summary() == sentence


def test_the_sentence_of_real_scores(score):
    assert re.fullmatch(
        r"2\.1573 effectively different items of 3, exact up to rounding \(±\de-14\).*", score.summary()
    )
    rows = np.random.default_rng(0).standard_normal((500, 8)).astype(np.float32)
    single = vm.score(rows, precision="float32")
    assert single.level == "probabilistic"
    assert re.search(r"of 500: between [\d.]+ and [\d.]+ with 99\.9999% confidence", single.summary())
    random = vm.score(rows, vm.kernels.RandomFeatures(vm.kernels.RBF(1.0), 16))
    assert re.match(
        r"about [\d.]+ effectively .*, no interval \(16 random features stand in for", random.summary()
    )
    groups = vm.score_groups(["a", "b", "b"], "match", by=["x", "y", "y"])
    assert groups["y"].summary().startswith("1 effectively different item of 2, exact")


@pytest.mark.parametrize("places", range(0, 12, 3))
def test_shown_bounds_hold(places: int) -> None:
    rng = np.random.default_rng(places)
    for _ in range(100):
        value = float(rng.uniform(2, 1000))
        low, high = value - rng.random() * 10.0**-places, value + rng.random() * 10.0**-places
        text = made(value, low, high, "probabilistic", 0.99).summary()
        found = re.match(r"([\d.]+) .*between ([\d.]+) and ([\d.]+) with", text)
        assert found is not None
        first, shown_low, shown_high = map(float, found.groups())
        assert shown_low <= low
        assert high <= shown_high
        assert shown_low <= first <= shown_high
        assert shown_high - shown_low <= 1.25 * (high - low) + 1e-12  # and not much wider


def test_confidence(score):
    assert score.confidence == 1.0
    assert made(2.0, 1.0, 3.0, "probabilistic", 0.95).confidence == 0.95
    assert made(2.0, 1.0, 3.0, "estimated", 0.9).confidence == 0.9
    assert math.isnan(made(2.0, level="none", confidence=1.0).confidence)
    assert math.isnan(made(2.0, 1.0, 3.0, "probabilistic").confidence)
    assert math.isnan(vm.Score.empty(1.0).confidence)
