"""The reruns of the paper's Figures 1 and 2: every claim comes out as the paper states it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reruns
from reruns import verdicts


def rerun(name: str, out: Path) -> dict[str, Any]:
    results = reruns.rerun(name, out)
    assert sorted(path.name for path in out.iterdir()) == [f"{name}.json", f"{name}.png"]
    assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    return results


@pytest.fixture(scope="module")
def figure1(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return rerun("figure1", tmp_path_factory.mktemp("figure1"))


@pytest.fixture(scope="module")
def figure2(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return rerun("figure2", tmp_path_factory.mktemp("figure2"))


def test_every_claim_of_figure_1_is_reproduced(figure1):
    assert verdicts(figure1) == dict.fromkeys(["1a", "1b", "1c"], "reproduced")


def test_claims_of_figure_2(figure2):
    names = ["2 row 1, VS", "2 row 2, VS", "2 row 3, VS", "2 row 3, IntDiv", "2 row 1, IntDiv"]
    # The widths of row 3 are chosen, not printed.
    assert verdicts(figure2) == dict.fromkeys(names, "reproduced") | {
        "2 row 3, VS": "reproduced in direction"
    }


def test_vs_is_the_number_of_modes(figure1):
    for row in figure1["panels"]["a"]:
        assert row["vs"] == pytest.approx(row["modes"], abs=1e-9)
        assert row["intdiv"] == pytest.approx(1 - 1 / row["modes"], abs=1e-12)


def test_combined_similarities_raise_vs_alone(figure1):
    scores = figure1["panels"]["b"]
    # Of the mean over a full 3×3 design: one eigenvalue 1/3 and four of 1/6.
    both = 3 ** (1 / 3) * 6 ** (2 / 3)
    assert [score["vs"] for score in scores.values()] == pytest.approx([3, 3, both], abs=1e-9)
    assert {score["intdiv_exact"] for score in scores.values()} == {"2/3"}


def test_correlation_lowers_vs_alone(figure1):
    rows = figure1["panels"]["c"]
    assert len(rows) == 55
    assert {row["intdiv_exact"] for row in rows} == {"2/3"}
    by_correlation = sorted(rows, key=lambda row: row["cramers_v"])
    assert by_correlation[0]["cramers_v"] == pytest.approx(0)
    assert by_correlation[0]["vs"] == max(row["vs"] for row in rows)
    assert by_correlation[-1]["cramers_v"] == pytest.approx(1)
    assert by_correlation[-1]["vs"] == pytest.approx(3, abs=1e-9)


def test_mixtures_agree_with_the_spectrum_of_the_gaussian_kernel(figure2):
    for row in [row for rows in figure2["rows"].values() for row in rows]:
        for score in (row["vs"], row["intdiv"]):
            # Half the range of ten datasets is about five standard errors of their mean; a little more for the
            # bias of a finite sample and for modes that are not quite apart.
            slack = (score["high"] - score["low"]) / 2 + 0.005 * score["expected"]
            assert abs(score["mean"] - score["expected"]) <= slack


def test_widening_modes_take_vs_from_five_to_seven(figure2):
    rows = figure2["rows"]["width"]
    vs = [row["vs"]["mean"] for row in rows]
    assert (np.diff(vs) > 0).all()
    assert (vs[0], vs[-1]) == (pytest.approx(5, rel=0.05), pytest.approx(7, rel=0.05))
    assert rows[-1]["intdiv"]["mean"] / rows[0]["intdiv"]["mean"] < 1.03
