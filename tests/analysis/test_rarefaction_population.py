"""Intervals for the population: they hold where they are given, and are refused where none would."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.analysis.rarefaction.population import Jackknife, estimate_population

with pytest.MonkeyPatch.context() as _patch:
    _patch.syspath_prepend(Path(__file__).resolve().parents[2] / "benchmarks" / "calibration")
    from populations import DISTRIBUTIONS, calibrate

HELD = [
    ("20 equal categories", 120),
    ("geometric, ratio 0.8", 150),
    ("3% unlike the rest", 300),
    ("directions in 16 dimensions", 128),
    ("normal, variances 1/i², d = 48", 100),
    ("5 subspaces of 4 dimensions", 120),
    ("sparse bits, d = 40", 320),
    ("RBF on a circle, σ = 0.2", 110),
]
REFUSED = [
    ("5,000 equally rare categories", 500),
    ("5,000 equally rare categories", 2000),
    ("10 common, half in 5,000 rare", 300),
    ("Zipf, exponent 1, 10,000 words", 1000),
    ("power law, exponent 1.5", 1000),
    ("10 common, 2% in 2,000 rare", 3000),
    ("200 equal categories", 400),
    ("sparse bits, d = 40", 100),
]


def test_intervals_hold() -> None:
    found = [calibrate(name, n, 1.0, 36) for name, n in HELD]
    given = np.array([one.given for one in found])
    covered = np.array([one.covered for one in found])
    assert given.min() >= 20
    assert given.sum() > 250
    assert 0.90 <= covered @ given / given.sum() <= 0.99
    assert covered.min() > 0.8  # of 20 to 36 each
    # The estimate is better than the score itself, which lacks some percent in all of them.
    assert all(abs(one.bias) < 0.5 * abs(one.plugin_bias) for one in found if one.plugin_bias < -0.02)


@pytest.mark.parametrize(("name", "n"), REFUSED)
def test_intervals_are_refused_where_none_would_hold(name: str, n: int) -> None:
    assert calibrate(name, n, 1.0, 3).given == 0


def test_truths_of_the_benchmark() -> None:
    """Against large samples: closed forms are easily wrong."""
    for name in (
        "normal, variances 1/i², d = 48",
        "sparse bits, d = 40",
        "5 subspaces of 4 dimensions",
        "RBF on a torus",
    ):
        samples, kernel = DISTRIBUTIONS[name].sample(40_000, np.random.default_rng(0))
        assert float(vm.score(samples, kernel)) == pytest.approx(DISTRIBUTIONS[name].truth(), rel=0.01), name
    samples, kernel = DISTRIBUTIONS["RBF on a circle, σ = 0.2"].sample(1500, np.random.default_rng(0))
    assert float(vm.score(samples, kernel)) == pytest.approx(
        DISTRIBUTIONS["RBF on a circle, σ = 0.2"].truth(), rel=0.03
    )


def made(**changes: Any) -> Jackknife:
    """A jackknife whose interval is fine: 1,000 samples of a population that scores e², with a bias that halves."""
    fields: dict[str, Any] = {
        "plugin": 1.99,
        "estimate": 2.0,
        "standard_error": 0.03,
        "skew_error": 0.0,
        "groups": 20,
        "left_out": np.full(20, 1.989),
        "sizes": np.full(20, 50),
        "gains": (0.01, 0.02),
    }
    return Jackknife(**fields | changes)


def test_interval() -> None:
    from scipy.stats import t

    found = estimate_population(made(), 0.9, None)
    assert found == found.estimate == pytest.approx(math.exp(2))
    assert found.refused is None
    reach = t.ppf(0.95, 19) * 0.03
    assert found.interval == pytest.approx((math.exp(2 - reach), math.exp(2 + reach)))
    assert (found.n, found.standard_error, found.confidence, found.remaining) == (1000, 0.03, 0.9, 0)
    assert found.bias == pytest.approx(0.01)
    # a bias that falls as 1/√n leaves as much as was corrected, and raises the upper end alone
    slow = estimate_population(made(gains=(0.01, 0.01 * math.sqrt(2))), 0.9, None)
    assert slow.remaining == pytest.approx(0.01)
    assert slow.interval == pytest.approx((math.exp(2 - reach), math.exp(2 + reach + 0.01)))
    assert estimate_population(made(skew_error=0.04), 0.9, None).standard_error == pytest.approx(0.05)
    low = estimate_population(made(plugin=0.005, estimate=0.01), 0.95, None)
    assert low.interval is not None
    assert low.interval[0] == 1.0


@pytest.mark.parametrize(
    ("changes", "kind", "values"),
    [
        ({"standard_error": 0.0}, "no-spread", {}),
        ({"estimate": math.log(251)}, "too-few-per-item", {"n": 1000, "estimate": 251, "needed": 2008}),
        ({"gains": (0.01, 0.012)}, "heavy-tail", {"gain_to_half": 0.0121, "gain_to_all": 0.0101}),
        ({"gains": (0.01, 0.005)}, "heavy-tail", {"gain_to_half": 0.0050, "gain_to_all": 0.0101}),
        ({"plugin": 1.8}, "uncertain-bias", {"bias": 0.2214, "error": 0.0305}),
    ],
)
def test_refusals(changes: dict[str, Any], kind: str, values: dict[str, float]) -> None:
    found = estimate_population(made(**changes), 0.95, None)
    assert found.interval is None
    assert found.refused is not None
    assert found.refused.kind == kind
    assert found.refused.values == pytest.approx(values, abs=1e-4)
    assert "No interval" in found.summary()
    assert found.to_dict()["interval"] is None


def test_nothing_to_gain_is_no_heavy_tail() -> None:
    assert made(gains=(0.0, 0.0)).exponent == 1
    assert made(gains=(-1e-9, 0.1)).remaining == 0
    assert made(plugin=2.01, gains=(0.01, 0.01)).remaining == 0
    assert made(gains=(0.01, 0.02)).gain() == pytest.approx(0.005)
    assert made(gains=(0.01, 0.02)).gain(1) == pytest.approx(0.0025)


@pytest.mark.parametrize(
    ("q", "given"), [(0, False), (0.5, False), (1, True), (2, True), (3, True), ("inf", False)]
)
def test_orders(q: Any, given: bool) -> None:
    labels = np.random.default_rng(0).choice(5, p=[0.4, 0.3, 0.15, 0.1, 0.05], size=400)
    found = vm.rarefy(labels, "match", q=q, repeats=2)
    assert (found.population.interval is not None) == given
    assert found.scores[-1] == pytest.approx(float(vm.score(labels, "match", q=q)))
    if not given:
        assert found.population.refused is not None
        assert found.population.refused.advice is not None
        assert found.population.refused.advice.option == "q"
        assert found.population.refused.kind == "order"
        assert found.population.refused.values == {"q": q}
        assert found.to_dict()["q"] == q


def test_growth_is_that_of_twice_as_many_samples() -> None:
    rng = np.random.default_rng(3)
    draws = [rng.integers(60, size=800) for _ in range(20)]
    said = np.mean([vm.rarefy(labels[:400], "match", sizes=[400]).growth for labels in draws])
    grown = np.mean([float(vm.score(labels, "match")) for labels in draws])
    before = np.mean([float(vm.score(labels[:400], "match")) for labels in draws])
    assert said == pytest.approx(grown / before - 1, rel=0.1)


def test_verdicts() -> None:
    assert vm.rarefy(np.arange(30) % 5, "match").verdict == "too-few"
    assert vm.rarefy(np.arange(400) % 5, "match").verdict == "converged"
    assert vm.rarefy(np.arange(200), "match", sizes=[9]).verdict == "grows"
