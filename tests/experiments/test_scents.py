"""The rerun of the categories of scents: the data as they are read, scores without the library, and the p-value."""

from __future__ import annotations

import ast
import csv
import gzip
import json
from argparse import Namespace
from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from reruns import DATA, RESULTS, rerun, script, verdicts
from scipy import stats

FOLDER = DATA / "molecules"
needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason="the data folder is not there")


@pytest.fixture(scope="module")
def scents() -> dict[str, Any]:
    return script("scents")


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    return json.loads((RESULTS / "scents.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> dict[str, Any]:
    if not FOLDER.is_dir():
        pytest.skip("the data folder is not there")
    pytest.importorskip("rdkit")
    out = tmp_path_factory.mktemp("scents")
    found = rerun("scents", out, "--quick", "--galleries", str(out / "galleries"))
    assert not (out / "galleries").exists()
    assert (out / "scents.png").read_bytes().startswith(b"\x89PNG")
    return found


def raw(name: str) -> list[dict[str, str]]:
    with gzip.open(FOLDER / f"goodscents_2022_{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fatty_records() -> list[tuple[str, tuple[str, ...]]]:
    """All records of one tag, joined in another way than the script does it."""
    smiles = {row["CID"]: row["IsomericSMILES"] for row in raw("molecules")}
    pairs = {(row["TGSC ID"], row["CID"]) for row in raw("identifiers")}
    found = []
    for row in raw("behavior_sparse"):
        tags = tuple(sorted(ast.literal_eval(row["Tags"])))
        if "fatty" in tags:
            found += [(smiles[cid], tags) for material, cid in pairs if material == row["TGSC ID"]]
    return found


def vendi(similarity: np.ndarray) -> float:
    values = np.linalg.eigvalsh(similarity / len(similarity))
    values = values[values > 1e-14]
    return float(np.exp(-np.sum(values * np.log(values))))


@needs_data
def test_seven_tags_have_five_hundred_records(scents):
    records, molecules = scents["read"](Namespace(data=DATA))
    counts = Counter(tag for item in records for tag in item.tags)
    assert sum(count >= 500 for count in counts.values()) == 7
    assert scents["most_common"](records, 7) == [
        "fruity",
        "green",
        "sweet",
        "floral",
        "woody",
        "herbal",
        "waxy",
    ]
    assert counts["fatty"] == 474
    assert (
        sum(count >= 500 for count in Counter(tag for item in molecules for tag in item.tags).values()) == 6
    )
    assert len(molecules) == len({item.smiles for item in molecules}) == 4421


@needs_data
def test_scores_agree_with_eigenvalues(kept):
    chem = pytest.importorskip("rdkit.Chem")
    from rdkit import DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    found = fatty_records()
    row = next(row for row in kept["records"] if row["tag"] == "fatty")
    assert row["n"] == row["pool"] == len(found) == 474  # all of them: nothing is random
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024)
    prints = [generator.GetFingerprint(chem.MolFromSmiles(smiles)) for smiles, _ in found]
    tanimoto = np.array([DataStructs.BulkTanimotoSimilarity(one, prints) for one in prints])
    every = sorted({tag for _, tags in found for tag in tags})
    indicators = np.array([[tag in tags for tag in every] for _, tags in found], float)
    indicators /= np.linalg.norm(indicators, axis=1, keepdims=True)
    assert row["molecules"]["mean"] == pytest.approx(vendi(tanimoto), rel=1e-6)
    assert row["tags"]["mean"] == pytest.approx(vendi(indicators @ indicators.T), rel=1e-6)


def test_the_p_value_is_exact(scents):
    x, y = [3.0, 1.0, 2.0, 5.0, 4.0, 7.0, 6.0], [2.0, 1.0, 4.0, 3.0, 5.0, 6.0, 7.0]
    rows = [{"molecules": {"mean": a}, "tags": {"mean": b}} for a, b in zip(x, y, strict=True)]
    found = scents["correlation"](rows)
    true = stats.spearmanr(x, y).statistic
    assert found["spearman"] == pytest.approx(true)
    as_much = [np.corrcoef(x, order)[0, 1] >= true - 1e-9 for order in permutations(y)]
    assert found["p"] == pytest.approx(np.mean(as_much))


def test_many_orders_are_drawn(scents):
    rng = np.random.default_rng(1)
    x, y = rng.random(30), rng.random(30)
    y += 0.3 * x
    rows = [{"molecules": {"mean": a}, "tags": {"mean": b}} for a, b in zip(x, y, strict=True)]
    expected = stats.spearmanr(x, y, alternative="greater")
    assert scents["correlation"](rows)["p"] == pytest.approx(expected.pvalue, abs=0.01)


def test_waxy_and_fatty_are_lowest(quick, kept):
    for found in (quick, kept):
        for rows in (found["records"], found["molecules"]):
            for kernel in ("molecules", "tags"):
                ordered = sorted(rows, key=lambda row: row[kernel]["mean"])
                assert {row["tag"] for row in ordered[:2]} == {"waxy", "fatty"}
        assert verdicts(found)["scents, high and low"] == "reproduced"


def test_the_kept_verdicts_follow_from_their_numbers(kept):
    seven = kept["records"][:7]
    scores = [[row[kernel]["mean"] for row in seven] for kernel in ("molecules", "tags")]
    found = stats.spearmanr(*scores)
    assert kept["correlations"]["seven, by records"]["spearman"] == pytest.approx(found.statistic)
    assert found.statistic > 0
    p = kept["correlations"]["seven, by records"]["p"]
    assert verdicts(kept)["scents, correlation"] == ("reproduced" if p < 0.05 else "reproduced in direction")
    many = kept["all_tags"]
    larger = stats.spearmanr(*([row[kernel]["mean"] for row in many] for kernel in ("molecules", "tags")))
    assert kept["correlations"]["all with 100, by molecules"]["spearman"] == pytest.approx(larger.statistic)
    assert all(row["n"] == 100 and row["pool"] >= 100 for row in many)
    for row in kept["molecules"]:
        for kernel in ("molecules", "tags"):
            assert row[kernel]["low"] < row[kernel]["mean"] < row[kernel]["high"]
    assert len(json.dumps(kept)) < 60_000


def test_without_data_it_says_so(tmp_path):
    found = rerun("scents", tmp_path, "--data", str(tmp_path))
    assert verdicts(found) == {"scents": "could not be run"}
    assert "pyrfume" in found["claims"][0]["measured"]
