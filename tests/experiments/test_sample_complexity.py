"""How the score grows with n: populations whose spectrum is known."""

from __future__ import annotations

import numpy as np
import pytest
from reruns import DATA, rerun, script, verdicts


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return rerun("sample_complexity", tmp_path_factory.mktemp("sample_complexity"), "--repeats", "6")


def test_what_holds_and_what_does_not(results):
    found = verdicts(results)
    assert found["below"] == "reproduced"
    assert found["rate"] == "not reproduced"  # heavy tails converge more slowly …
    slopes = {name: row["slope"] for name, row in results["rows"].items()}
    assert {name for name, slope in slopes.items() if slope > -0.33} == {
        "classes with frequencies ∝ 1/k^1.5",
        "classes with frequencies ∝ 1/k^1.2",
    }
    assert found["constant"] == "not reproduced"  # … and a constant of 1 is too small
    assert found["MNIST"] == ("reproduced" if DATA.exists() else "could not be run")


def test_populations_are_what_they_are_said_to_be():
    """The score of infinitely many samples, against that of very many."""
    names = script("sample_complexity")
    rng = np.random.default_rng(1)
    for population in names["populations"]():
        if "1/k" in population.name:
            continue
        drawn = population.draw(rng, 20_000)
        if isinstance(drawn, list):
            share = np.bincount(drawn) / len(drawn)
            share = share[share > 0]
            found = np.exp(-np.sum(share * np.log(share)))
        elif drawn.ndim == 2:
            drawn = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
            values = np.linalg.eigvalsh(drawn.T @ drawn / len(drawn))
            found = np.exp(-np.sum(values * np.log(values)))
        else:
            some = drawn[:2500]
            values = np.linalg.eigvalsh(np.exp(-((some[:, None] - some) ** 2) / 2) / len(some))
            values = values[values > 1e-15]
            found = np.exp(-np.sum(values * np.log(values)))
        assert found == pytest.approx(population.score, rel=0.03)


@pytest.mark.parametrize("exponent", [2.0, 1.5, 1.2])
def test_classes_without_end(exponent):
    """Their score by a sum with an integral for the rest, and the shares of the first ones among very many."""
    names = script("sample_complexity")
    k = np.arange(1, 2_000_001, dtype=float)
    end, less = k[-1] + 0.5, exponent - 1  # the midpoint rule: the rest begins half-way to the next one
    total = (k**-exponent).sum() + end**-less / less
    logarithms = (k**-exponent * np.log(k)).sum() + end**-less * (np.log(end) / less + 1 / less**2)
    score = total * np.exp(exponent * logarithms / total)
    assert names["score_of_zipf"](exponent) == pytest.approx(score, rel=1e-9)
    (population,) = [one for one in names["populations"]() if one.name.endswith(f"1/k^{exponent:g}")]
    assert population.score == names["score_of_zipf"](exponent)
    drawn = np.array(population.draw(np.random.default_rng(2), 40_000))
    for first in (1, 2, 3):
        share = first**-exponent / total
        assert (drawn == first).mean() == pytest.approx(share, abs=4 * np.sqrt(share / len(drawn)))


def test_the_slope_of_a_power_is_its_exponent():
    sizes = [50, 100, 400]
    names = script("sample_complexity")
    assert names["slope_of"](3 / np.array(sizes) ** 0.7, sizes) == pytest.approx(-0.7)
    n = np.array(names["SIZES"][1:], dtype=float)
    assert names["slope_of"](np.log(n) / np.sqrt(n), n) == pytest.approx(names["SHALLOW"], abs=0.005)
