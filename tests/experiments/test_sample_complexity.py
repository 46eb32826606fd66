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
    assert found["below"] == found["rate"] == "reproduced"
    assert found["constant"] == "not reproduced"  # a constant of 1 is too small
    assert found["MNIST"] == ("reproduced" if DATA.exists() else "could not be run")


def test_populations_are_what_they_are_said_to_be():
    """The score of infinitely many samples, against that of very many."""
    names = script("sample_complexity")
    rng = np.random.default_rng(1)
    for population in names["populations"]():
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


def test_the_slope_of_a_power_is_its_exponent():
    sizes = [50, 100, 400]
    assert script("sample_complexity")["slope_of"](3 / np.array(sizes) ** 0.7, sizes) == pytest.approx(-0.7)
