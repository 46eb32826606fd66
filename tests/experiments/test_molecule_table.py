"""The rerun of the molecule table: numbers, checked without the library; files; verdicts; the HMM that is fitted."""

from __future__ import annotations

import gzip
import json
import shutil
from argparse import Namespace
from importlib.util import find_spec
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from reruns import DATA, RESULTS, rerun, script, verdicts

FOLDER = DATA / "molecules"
needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason="the data folder is not there")
needs_rdkit = pytest.mark.skipif(find_spec("rdkit") is None, reason="RDKit is not installed")
QUICK = ["--size", "60", "--seeds", "0"]
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4189f5\nsize 1087111\n"


@pytest.fixture(scope="module")
def source() -> dict[str, Any]:
    return script("_molecules")


@pytest.fixture(scope="module")
def hmm() -> dict[str, Any]:
    return script("_hmm")


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    return json.loads((RESULTS / "molecules.json").read_text(encoding="utf-8"))


def lines(name: str) -> list[str]:
    with gzip.open(FOLDER / name, "rt") as file:
        return file.read().splitlines()


def matrix(texts: list[str], count: int) -> tuple[list[str], np.ndarray]:
    """The first texts that RDKit can read, and their similarities by its bulk function."""
    chem = pytest.importorskip("rdkit.Chem")
    from rdkit import DataStructs, rdBase
    from rdkit.Chem import rdFingerprintGenerator

    generator, smiles, prints = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024), [], []
    with rdBase.BlockLogs():
        for text in texts:
            molecule = chem.MolFromSmiles(text)
            if molecule is not None and len(smiles) < count:
                smiles.append(text)
                prints.append(generator.GetFingerprint(molecule))
    return smiles, np.array([DataStructs.BulkTanimotoSimilarity(one, prints) for one in prints])


def dense(similarity: np.ndarray) -> tuple[float, float]:
    """IntDiv and VS by NumPy's eigenvalues."""
    values = np.linalg.eigvalsh(similarity / len(similarity))
    values = values[values > 0]
    return 1 - similarity.mean(), float(np.exp(-np.sum(values * np.log(values))))


def kept_row(kept: dict[str, Any], sample: str) -> dict[str, Any]:
    return next(row for row in kept["rows"] if row["sample"] == sample)


@needs_data
def test_the_row_of_the_original_is_to_the_digit(kept):
    intdiv, vs = dense(matrix(lines("moses_test.csv.gz")[1:1501], 1500)[1])
    assert (round(intdiv, 4), round(vs, 2)) == (0.8551, 403.93)
    row = kept_row(kept, "original")
    assert (row["intdiv"], row["vs"]) == (pytest.approx(intdiv, abs=1e-9), pytest.approx(vs, rel=1e-9))


@needs_data
def test_the_row_of_the_jtn_both_ways(kept):
    """The published file has no header, and the authors' loader drops its first line, which is a molecule."""
    smiles = lines("moses_jtn_3.csv.gz")
    found, similarity = matrix(smiles[:1501], 1501)
    assert found == smiles[:1501]
    without, whole = dense(similarity[1:, 1:]), dense(similarity[:1500, :1500])
    assert (round(without[0], 4), round(without[1], 2)) == (0.8556, 489.54)
    assert (round(whole[0], 4), round(whole[1], 2)) == (0.8557, 489.75)
    row = kept_row(kept, "jtn")
    for (intdiv, vs), held in ((without, row), (whole, row["with_first_line"])):
        assert (held["intdiv"], held["vs"]) == (pytest.approx(intdiv, abs=1e-9), pytest.approx(vs, rel=1e-9))


@needs_data
def test_the_row_of_the_hmm_and_its_kernel_matrix(kept):
    """250.89 and 55.8 by RDKit of 2022, which writes a few fingerprints otherwise."""
    smiles, similarity = matrix(lines("moses_hmm_3.csv.gz")[1:], 1500)
    intdiv, vs = dense(similarity)
    row, matrices = kept_row(kept, "hmm"), kept["matrices"]["hmm"]
    assert (row["intdiv"], row["vs"]) == (pytest.approx(intdiv, abs=1e-9), pytest.approx(vs, rel=1e-9))
    assert vs == pytest.approx(250.89, rel=7e-4)
    order = np.argsort(np.array(smiles))[:250]
    for rows, held in ((order, "first in the order"), (np.arange(250), "as they come")):
        intdiv, vs = dense(similarity[np.ix_(rows, rows)])
        assert matrices[held]["intdiv"] == pytest.approx(intdiv, abs=1e-9)
        assert matrices[held]["vs"] == pytest.approx(vs, rel=1e-9)


def test_the_kept_results_follow_from_their_numbers(kept):
    rows, said = {row["sample"]: row for row in kept["rows"]}, verdicts(kept)
    names = script("_molecules")
    assert set(rows) == set(names["SHA256"])
    for model, (intdiv, vs) in names["PAPER"].items():
        # The HMM's VS is 0.06 % off by today's RDKit.
        expected = "reproduced in direction" if model == "hmm" else "reproduced"
        assert said[f"table, {names['NAMES'][model]}"] == expected
        exact = model not in ("combinatorial", "hmm", "ngram")
        if exact:
            assert (round(rows[model]["intdiv"], 4), round(rows[model]["vs"], 2)) == (intdiv, vs)
        assert rows[model]["intdiv"] == pytest.approx(intdiv, rel=1e-3)
        assert rows[model]["vs"] == pytest.approx(vs, rel=1e-3)
    assert [name for name, row in rows.items() if not row["is"].startswith("the published file")] == [
        "combinatorial"
    ]
    assert rows["original"]["larger"]["n"] == 2500
    assert rows["original"]["larger"]["vs"] == pytest.approx(515.38, abs=0.01)
    assert (rows["hmm"]["valid"], rows["hmm"]["rows"], rows["hmm"]["larger"]) == (1582, 30_000, None)
    assert said["table, size"] == "not reproduced"
    assert kept["original_at_random"]["vs"]["mean"] > 470
    assert said["table, Original below the models"] == "reproduced in direction"
    hmm = [rows[name] for name in ("hmm_1", "hmm_2", "hmm")]
    assert [row["rank_vs"] for row in hmm] == [8, 8, 8]
    assert [row["rank_intdiv"] for row in hmm] == [8, 3, 3]
    assert (said["HMM, VS"], said["HMM, IntDiv"]) == ("reproduced", "reproduced in direction")
    for model, (intdiv, vs) in names["PICTURE"].items():
        found = kept["matrices"][model]["first in the order"]
        assert (found["intdiv"], found["vs"]) == (
            pytest.approx(intdiv, abs=5e-4),
            pytest.approx(vs, abs=0.07),
        )
    assert said["kernel matrices, numbers"] == "reproduced"
    assert len(json.dumps(kept)) < 60_000


# ---------------------------------------------------------------------------------------------------------- files


@needs_data
def test_files_are_told_by_their_hash(source):
    files = source["sample_files"](Namespace(samples=None, data=DATA))
    assert set(files) == set(source["SHA256"])
    for sample, path in files.items():
        is_published = (
            source["published"](sample, source["content_of"](path)) == "the published file, by sha256"
        )
        assert is_published == (sample != "combinatorial")
    assert source["published"]("aae", source["content_of"](files["vae"])).startswith("not the published file")


@needs_rdkit
@pytest.mark.parametrize("header", ["SMILES\n", "SMILES,SPLIT\n", "\ufeffSMILES\n", "SMILES\r\n", ""])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_header_may_be_missing(source, tmp_path, header, ending):
    smiles, path = ["CCO", "C1CC", "c1ccccc1", "CC(=O)N"], tmp_path / f"jtn_3{ending}"
    end = ("\r\n" if "\r" in header else "\n") if "," not in header else ",test\n"
    content = (header + "".join(text + end for text in smiles)).encode()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    row, molecules = source["table_row"]("jtn", path, 2, 3)
    if header:
        assert molecules == ["CCO", "c1ccccc1"]
        assert row["with_first_line"] is None
    else:  # as the authors' loader reads it: without the first line
        assert molecules == ["c1ccccc1", "CC(=O)N"]
        assert row["with_first_line"]["vs"] == pytest.approx(source["scores"](["CCO", "c1ccccc1"])["vs"])
    assert (row["valid"], row["rows"]) == (3, 4)


@needs_rdkit
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (POINTER.encode(), "is a git-LFS pointer and not the sample: github.com/molecularsets/moses"),
        (b"<html>Not Found</html>\n", "is no sample of molecules, with or without a column SMILES"),
        (b"id,canonical\n1,CCO\n", "has a comma in 'id,canonical'"),
        (b"SMILES\nCCO\nCCN\n", "has 2 valid molecules, and a row of the table needs 3"),
        (b"", "holds no samples"),
    ],
)
def test_what_is_no_sample_is_said_and_leaves_the_row_out(source, tmp_path, content, message):
    path = tmp_path / "aae_3.csv"
    path.write_bytes(content)
    with pytest.raises(Exception, match=r"^aae_3\.csv ") as error:
        source["table_row"]("aae", path, 3, 5)
    assert type(error.value).__name__ == "Missing"
    assert message in str(error.value)
    assert str(tmp_path) not in str(error.value)
    claims = script("_common")["Claims"]()
    script("molecules")["check_table"]({}, dict.fromkeys(source["PAPER"], str(error.value)), claims)
    assert len(claims.records) == 9
    assert all(one["verdict"] == "could not be run" and message in one["measured"] for one in claims.records)


@needs_data
@needs_rdkit
def test_samples_as_moses_lays_them_out(tmp_path, capsys):
    """Of a clone: each model has a folder; the original is beside them, with another column."""
    folder = tmp_path / "samples"
    folder.mkdir()
    for name in ("aae_3", "hmm_1", "hmm_3", "jtn_3"):
        (folder / name[:-2]).mkdir(exist_ok=True)
        with gzip.open(FOLDER / f"moses_{name}.csv.gz") as file:
            (folder / name[:-2] / f"{name}.csv").write_bytes(file.read())
    (folder / "hmm" / "hmm_2.csv").write_text(POINTER)
    shutil.copy(FOLDER / "moses_vae_3.csv.gz", folder / "vae_3.csv.gz")
    original = lines("moses_test.csv.gz")[:1000]
    split = "".join(f"{text},{'test' if i else 'SPLIT'}\n" for i, text in enumerate(original))
    (tmp_path / "test.csv").write_text(split)
    found = rerun("molecules", tmp_path, "--samples", str(folder), "--data", str(tmp_path), *QUICK)
    rows = {row["sample"]: row for row in found["rows"]}
    assert {name: row["file"] for name, row in rows.items()} == {
        "original": "test.csv", "aae": "aae_3.csv", "hmm": "hmm_3.csv", "jtn": "jtn_3.csv", "vae": "vae_3.csv.gz",
        "hmm_1": "hmm_1.csv",
    }  # fmt: skip
    assert [name for name, row in rows.items() if row["is"] != "the published file, by sha256"] == [
        "original"
    ]
    assert [name for name, row in rows.items() if row["with_first_line"]] == ["jtn"]
    printed = capsys.readouterr().out
    assert "hmm_2: hmm_2.csv is a git-LFS pointer" in printed
    assert "ngram: the sample is not there" in printed
    intdiv, vs = dense(matrix(original[1:], 60)[1])
    assert (rows["original"]["intdiv"], rows["original"]["vs"]) == (pytest.approx(intdiv), pytest.approx(vs))
    assert verdicts(found) == {"all": "could not be run"}  # the paper has 1,500 molecules
    for name in ("molecules.png", "molecules-kernels.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@needs_rdkit
def test_a_folder_without_samples_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        rerun("molecules", tmp_path, "--samples", str(tmp_path / "typo"))
    assert "there is no sample; expected files such as aae_3.csv or aae/aae_3.csv" in capsys.readouterr().err


@needs_rdkit
def test_without_data_it_says_so(tmp_path):
    found = rerun("molecules", tmp_path, "--data", str(tmp_path))
    assert set(verdicts(found).values()) == {"could not be run"}
    assert len(found["claims"]) == 9 + 3 + 2 + 1
    assert found["rows"] == found["fitted"] == []
    assert "git lfs pull" in found["claims"][0]["measured"] + found["claims"][1]["measured"]


# --------------------------------------------------------------------------------------------------------- verdicts


def sample(intdiv: float, vs: float = 200.0, unique: float = 0.6) -> dict[str, float]:
    return {"intdiv": intdiv, "vs": vs, "unique": unique, "largest_share": 0.05}


@needs_rdkit
@pytest.mark.parametrize(
    ("first", "own", "verdict"),
    [
        (0.88, 0.88, "reproduced"),
        (0.80, 0.88, "reproduced in direction"),
        (0.88, 0.80, "not reproduced"),
    ],
)
def test_a_claim_on_the_hmm_is_looked_at_in_each_sample(first, own, verdict):
    names, common = script("molecules"), script("_common")
    claims = common["Claims"]()
    names["check_hmm"]({"hmm_1": sample(first), "hmm": sample(own)}, {}, claims)
    said = verdicts({"claims": claims.records})
    assert said == {"HMM, VS": "reproduced", "HMM, IntDiv": verdict, "HMM, repeats": "reproduced"}
    claims = common["Claims"]()
    names["check_hmm"]({"hmm_1": sample(first), "hmm": sample(own, vs=490, unique=0.95)}, {}, claims)
    said = verdicts({"claims": claims.records})
    assert (said["HMM, VS"], said["HMM, repeats"]) == ("not reproduced", "not reproduced")


@needs_rdkit
@pytest.mark.parametrize(
    ("courses", "vs", "verdict"),
    [
        ([[0.89, 0.84], [0.89, 0.84]], 200, "reproduced"),
        ([[0.89, 0.84], [0.89, 0.88]], 200, "reproduced in direction"),
        ([[0.89, 0.88], [0.84, 0.84]], 200, "not reproduced"),
        ([[0.89, 0.84], [0.89, 0.84]], 490, "not reproduced"),
    ],
)
def test_the_rank_of_a_fitted_hmm(courses, vs, verdict):
    stages = [
        {"seed": seed, "iteration": iteration, "intdiv": intdiv, "vs": vs, "validity": 0.05}
        for seed, course in enumerate(courses) for iteration, intdiv in zip((20, 50), course, strict=True)
    ]  # fmt: skip
    claims = script("_common")["Claims"]()
    script("molecules")["check_fitted"](stages, {}, claims)
    assert verdicts({"claims": claims.records}) == {"fitted HMM": verdict}


@needs_data
@needs_rdkit
def test_hmms_are_fitted_where_the_training_set_is(tmp_path):
    (tmp_path / "molecules").mkdir()
    shutil.copy(FOLDER / "moses_train_first10000.csv.gz", tmp_path / "molecules")
    options = ["--rows", "200", "--states", "8", "--iterations", "3", "--seeds", "1", "--size", "60"]
    found = rerun("molecules", tmp_path, "--galleries", str(tmp_path), "--data", str(tmp_path), *options)
    assert [(one["iteration"], one["n"]) for one in found["fitted"]] == [(3, 60)]
    assert found["fitted"][0]["validity"] > 0


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


def test_a_fitted_hmm_is_kept(hmm, tmp_path):
    first = hmm["trained"](TEXTS, 3, 1, [1, 2], tmp_path)
    (kept,) = tmp_path.iterdir()
    before = kept.stat().st_mtime_ns
    again = hmm["trained"](TEXTS, 3, 1, [1, 2], tmp_path)
    assert kept.stat().st_mtime_ns == before
    for i in (1, 2):
        for part in ("start", "step", "emit"):
            np.testing.assert_array_equal(getattr(first[i], part), getattr(again[i], part))
    hmm["trained"](TEXTS, 3, 2, [1, 2], tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
