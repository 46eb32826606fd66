"""The rerun of the molecule table: the paper's numbers, checked without the library, and the HMM that is fitted."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from reruns import DATA, RESULTS, rerun, script, verdicts

FOLDER = DATA / "molecules"
needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason="the data folder is not there")
TINY = ["--rows", "200", "--states", "8", "--iterations", "3", "--seeds", "1"]


@pytest.fixture(scope="module")
def source() -> dict[str, Any]:
    return script("_molecules")


@pytest.fixture(scope="module")
def hmm() -> dict[str, Any]:
    return script("_hmm")


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    return json.loads((RESULTS / "molecules.json").read_text(encoding="utf-8"))


def dense(smiles: list[str]) -> tuple[float, float]:
    """IntDiv and VS by RDKit's bulk function and NumPy's eigenvalues."""
    chem = pytest.importorskip("rdkit.Chem")
    from rdkit import DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024)
    prints = [generator.GetFingerprint(chem.MolFromSmiles(text)) for text in smiles]
    similarity = np.array([DataStructs.BulkTanimotoSimilarity(one, prints) for one in prints])
    values = np.linalg.eigvalsh(similarity / len(prints))
    values = values[values > 0]
    return 1 - similarity.mean(), float(np.exp(-np.sum(values * np.log(values))))


def test_the_original_row_is_that_of_the_paper_to_the_digit(kept):
    pytest.importorskip("rdkit")
    if not FOLDER.is_dir():
        pytest.skip("the data folder is not there")
    with gzip.open(FOLDER / "moses_test.csv.gz", "rt") as file:
        smiles = [line.strip() for line in file][1:1501]
    intdiv, vs = dense(smiles)
    assert (round(intdiv, 4), round(vs, 2)) == (0.8551, 403.93)
    row = next(row for row in kept["rows"] if row["model"] == "original")
    assert (row["intdiv"], row["vs"]) == (pytest.approx(intdiv, abs=1e-9), pytest.approx(vs, rel=1e-9))


def test_the_kept_results_follow_from_their_numbers(kept):
    rows, said = {row["model"]: row for row in kept["rows"]}, verdicts(kept)
    assert set(rows) == {"original", "ngram", "combinatorial"}
    for name in ("Original", "N-gram", "Combinatorial"):
        assert said[f"table, {name}"] == "reproduced"
    for row in rows.values():
        assert row["vs"] == pytest.approx(row["paper_vs"], rel=5e-4)
        assert row["intdiv"] == pytest.approx(row["paper_intdiv"], abs=1e-4)
    assert rows["original"]["larger"]["n"] == 2500
    assert rows["original"]["larger"]["vs"] == pytest.approx(515.38, abs=0.01)
    assert said["table, size"] == "not reproduced"
    assert kept["original_at_random"]["vs"]["mean"] > 470
    assert said["table, Original below the models"] == "reproduced in direction"
    others = [479.91, 536.86, 501.05, 482.44, 489.54, 486.4, 475.28]
    assert max(stage["vs"] for stage in kept["hmm"]) < min(others)
    assert said["HMM, VS"] == "reproduced"
    assert len(json.dumps(kept)) < 60_000


@needs_data
@pytest.mark.parametrize(
    ("model", "name", "said"),
    [
        ("original", "moses_test.csv.gz", "the published file, by sha256"),
        ("ngram", "moses_ngram_3.csv.gz", "the published file, by sha256"),
        (
            "combinatorial",
            "moses_combinatorial_3_regenerated.csv.gz",
            "not the published file: another sha256",
        ),
    ],
)
def test_files_are_told_by_their_hash(source, model, name, said):
    assert source["published"](model, FOLDER / name) == said


@needs_data
def test_samples_by_path_and_pointers_to_them(tmp_path):
    folder = tmp_path / "samples"
    (folder / "ngram").mkdir(parents=True)
    with gzip.open(FOLDER / "moses_ngram_3.csv.gz") as file:
        (folder / "ngram" / "ngram_3.csv").write_bytes(file.read())
    (folder / "hmm_3.csv").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:4189f5\nsize 1087111\n"
    )
    found = rerun(
        "molecules", tmp_path, "--samples", str(folder), "--galleries", str(tmp_path), "--size", "60", *TINY
    )
    rows = {row["model"]: row for row in found["rows"]}
    assert set(rows) == {"original", "ngram", "combinatorial"}
    assert rows["ngram"]["file"] == "ngram_3.csv"
    assert rows["ngram"]["is"] == "the published file, by sha256"
    with gzip.open(FOLDER / "moses_test.csv.gz", "rt") as file:
        smiles = [line.strip() for line in file][1:61]
    intdiv, vs = dense(smiles)
    assert (rows["original"]["intdiv"], rows["original"]["vs"]) == (pytest.approx(intdiv), pytest.approx(vs))
    assert verdicts(found) == {"all": "could not be run"}  # the paper has 1,500 molecules
    for name in ("molecules.png", "molecules-kernels.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert found["hmm"]  # and once more, with the HMM that was kept
    again = rerun("molecules", tmp_path, "--galleries", str(tmp_path), "--size", "60", *TINY)
    assert again["hmm"] == found["hmm"]


def test_without_data_it_says_so(tmp_path):
    pytest.importorskip("rdkit")
    found = rerun("molecules", tmp_path, "--data", str(tmp_path))
    assert set(verdicts(found).values()) == {"could not be run"}
    assert found["rows"] == found["hmm"] == []


def stage(seed, iteration, intdiv, vs, *, matched, last):
    return {"seed": seed, "iteration": iteration, "intdiv": intdiv, "vs": vs, "unique": 0.6, "largest_share": 0.05,
            "matched": matched, "last": last}  # fmt: skip


@pytest.mark.parametrize(
    ("at_validity", "at_last", "verdict"),
    [
        ([0.88, 0.88, 0.88], [0.88, 0.88, 0.88], "reproduced"),
        ([0.88, 0.88, 0.85], [0.83, 0.83, 0.83], "reproduced in direction"),
        ([0.85, 0.85, 0.88], [0.88, 0.88, 0.88], "not reproduced"),
    ],
)
def test_the_rank_of_the_hmm(at_validity, at_last, verdict):
    stages = [
        stage(seed, iteration, intdiv, 200.0, matched=iteration == 30, last=iteration == 75)
        for iteration, values in ((30, at_validity), (75, at_last)) for seed, intdiv in enumerate(values)
    ]  # fmt: skip
    names = script("molecules")
    claims = script("_common")["Claims"]()
    names["check_hmm"](stages, {}, claims)
    said = verdicts({"claims": claims.records})
    assert said == {"HMM, VS": "reproduced", "HMM, IntDiv": verdict, "HMM, repeats": "reproduced"}
    stages[0]["vs"] = 490.0
    claims = script("_common")["Claims"]()
    names["check_hmm"](stages, {}, claims)
    assert verdicts({"claims": claims.records})["HMM, VS"] == "not reproduced"


# ------------------------------------------------------------------------------------------- the hidden Markov model

TEXTS = ["ab", "a", "abba", "bab", "aab", "cab", "ba", "abc"]


def likelihood(model: Any, text: str) -> float:
    """The probability of a text, path by path."""
    marks, total = [model.alphabet.index(mark) for mark in text], 0.0
    for path in product(range(len(model.start)), repeat=len(text)):
        p = model.start[path[0]] * model.step[path[-1], -1]
        p *= np.prod([model.emit[state, mark] for state, mark in zip(path, marks, strict=True)])
        total += p * np.prod([model.step[a, b] for a, b in pairwise(path)])
    return total


def test_the_likelihood_is_the_sum_over_all_paths(hmm):
    model = hmm["first_model"]("abc", 3, 1)
    model, _ = hmm["improved"](model, hmm["batches"](TEXTS, "abc", size=3))
    _, found = hmm["improved"](model, hmm["batches"](TEXTS, "abc", size=3))
    assert found == pytest.approx(sum(np.log(likelihood(model, text)) for text in TEXTS), rel=1e-5)


def test_an_iteration_is_that_of_baum_and_welch(hmm):
    """Against expected counts, path by path."""
    model, _ = hmm["improved"](hmm["first_model"]("abc", 2, 5), hmm["batches"](TEXTS, "abc"))
    start, step, emit = np.zeros(2), np.zeros((2, 3)), np.zeros((2, 3))
    for text in TEXTS:
        whole = likelihood(model, text)
        for path in product(range(2), repeat=len(text)):
            p = model.start[path[0]] * model.step[path[-1], -1]
            p *= np.prod([model.emit[s, model.alphabet.index(m)] for s, m in zip(path, text, strict=True)])
            p *= np.prod([model.step[a, b] for a, b in pairwise(path)]) / whole
            start[path[0]] += p
            step[path[-1], -1] += p
            for a, b in pairwise(path):
                step[a, b] += p
            for s, m in zip(path, text, strict=True):
                emit[s, model.alphabet.index(m)] += p
    found, _ = hmm["improved"](model, hmm["batches"](TEXTS, "abc"))
    for part, counts in (("step", step), ("emit", emit)):
        assert getattr(found, part) == pytest.approx(counts / counts.sum(axis=1, keepdims=True), abs=1e-5)
    assert found.start == pytest.approx(start / start.sum(), abs=1e-5)


def test_training_never_makes_it_worse(hmm):
    data, model, worth = hmm["batches"](TEXTS * 5, "abc"), hmm["first_model"]("abc", 4, 2), []
    for _ in range(12):
        model, found = hmm["improved"](model, data)
        worth.append(found)
    assert (np.diff(worth) > -1e-3).all()
    assert worth[-1] > worth[0]


def test_strings_come_as_often_as_the_model_says(hmm):
    model = hmm["first_model"]("abc", 3, 1)
    for _ in range(5):
        model, _ = hmm["improved"](model, hmm["batches"](TEXTS, "abc"))
    count = 20_000
    drawn = hmm["strings"](model, count, np.random.default_rng(0))
    for text in ("a", "ab", "aab"):
        expected = likelihood(model, text)
        slack = 5 * np.sqrt(expected * (1 - expected) / count)
        assert drawn.count(text) / count == pytest.approx(expected, abs=slack)
