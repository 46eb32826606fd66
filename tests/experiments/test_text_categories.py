"""The rerun of categories of text: draws, ranks and chance counted anew, files of the paper's data by path."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from reruns import DATA, RESULTS, rerun, script, verdicts

FOLDER = DATA / "research_only"
IN_DIRECTION = "reproduced in direction"


@pytest.fixture(scope="module")
def names():
    return script("text_categories")


@pytest.fixture(scope="module")
def common():
    return script("_common")


def test_the_verdicts_that_are_kept():
    """Of the paper's corpus and kernel; and what stands in is in direction at best."""
    kept = json.loads((RESULTS / "text_categories.json").read_text(encoding="utf-8"))
    found = verdicts(kept)
    assert list(found) == [
        "XNLI, Slate", "XNLI, fiction", "Amazon, n-grams", "Amazon, MiniLM, five stars", "Amazon, MiniLM, three stars",
        "Brown, fiction", "Brown, he said",
    ]  # fmt: skip
    assert found["Amazon, n-grams"] == "reproduced"
    assert found["XNLI, Slate"] == found["Amazon, MiniLM, three stars"] == IN_DIRECTION
    stars, genres = kept["rows"]["Amazon"], kept["rows"]["XNLI"]
    assert {row["texts"] for row in stars.values()} == {2000}
    assert {row["texts"] for row in genres.values()} == {250}
    for name in ("n-grams", "n-grams of pieces"):
        assert max(stars, key=lambda one: stars[one][name]["mean"]) == "5 stars"
        assert stars["5 stars"][name]["highest"] == 1
        gaps = kept["stars"]["differences"]["n-grams"][name]
        assert list(gaps) == ["1 star", "2 stars", "3 stars", "4 stars"]
        assert all(gap["size"] == 500 and gap["low"] > 0 for gap in gaps.values())
    assert stars["5 stars"]["n-grams"]["mean"] == pytest.approx(387.6, abs=0.05)
    assert max(genres, key=lambda one: genres[one]["MiniLM"]["mean"]) == "slate"
    assert all(found[name] != "reproduced" for name in found if name != "Amazon, n-grams")


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


def letters(texts):
    """A stand-in for an encoder: counts of letters."""
    return np.array([[text.count(letter) + 0.01 for letter in "abc0123456789"] for text in texts])


def kernels(names, encode=letters):
    return {"n-grams": (None, names["NGRAMS"]), "letters": (encode, names["vm"].kernels.Cosine())}


def test_scores_are_of_the_texts_that_were_drawn(names):
    rng = np.random.default_rng(0)
    texts = {"a": made("a", 20, 3, rng), "b": made("b", 20, 9, rng)}
    rows = names["measure"]("Brown", texts, kernels(names), Namespace(items=20, repeats=3)).rows
    for name, own in texts.items():  # all twenty are drawn each time
        assert rows[name]["n-grams"]["mean"] == pytest.approx(dense(own), abs=6e-4)
        assert rows[name]["n-grams"]["sd"] == 0
        vectors = letters(own)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        values = np.linalg.eigvalsh(vectors @ vectors.T / 20)
        values = values[values > 1e-12]
        expected = np.exp(-np.sum(values * np.log(values)))
        assert rows[name]["letters"]["mean"] == pytest.approx(expected, abs=6e-4)
        assert rows[name]["words"] == 7
    assert rows["b"]["n-grams"] | {"rank": 1, "highest": 1.0, "lowest": 0.0} == rows["b"]["n-grams"]
    assert rows["a"]["n-grams"] | {"rank": 2, "highest": 0.0, "lowest": 1.0} == rows["a"]["n-grams"]


@pytest.mark.parametrize("count", [60, 50])
def test_vectors_stay_with_their_texts(names, count):
    """The encoder sees what was drawn, once; draws share no text where there are enough."""
    seen = []

    def encode(texts):
        seen.extend(texts)
        return letters(texts)

    own = made("a", count, 9, np.random.default_rng(1))
    found = names["measure"]("Brown", {"a": own}, kernels(names, encode), Namespace(items=20, repeats=3))
    draws = names["draws_of"](count, 20, 3, 0)
    assert sorted(seen) == sorted({own[i] for draw in draws for i in draw})
    assert (len(seen) == 60) == (count == 60)
    assert all(len(set(draw)) == 20 for draw in draws)
    scores = [float(names["vm"].score(letters([own[i] for i in draw]))) for draw in draws]
    assert found.rows["a"]["letters"]["mean"] == pytest.approx(np.mean(scores), abs=6e-4)
    assert found.rows["a"]["letters"]["sd"] == pytest.approx(np.std(scores, ddof=1), abs=6e-4)


@pytest.mark.parametrize(("chosen", "highest", "real", "verdict"), [
    ("c", True, True, "reproduced"), ("a", False, True, "reproduced"), ("c", True, False, IN_DIRECTION),
    ("c", False, True, "not reproduced"), ("b", True, True, "not reproduced"), ("d", True, True, IN_DIRECTION),
])  # fmt: skip
def test_the_highest_is_clearly_so(names, common, chosen, highest, real, verdict):
    """d and c are of one kind: the one that happens to be higher is so in direction only."""
    rng = np.random.default_rng(5)
    texts = {name: made(name, 60, kinds, rng) for name, kinds in (("a", 2), ("b", 6), ("c", 60))}
    if chosen == "d":
        texts["d"] = made("d", 60, 60, rng)
    only = {"n-grams": (None, names["NGRAMS"])}
    found = names["measure"]("Brown", texts, only, Namespace(items=30, repeats=2))
    if chosen == "d":
        chosen = max("cd", key=lambda name: found.rows[name]["n-grams"]["mean"])
    claims = common["Claims"]()
    kept = names["check_end"](
        "x", "It is so.", found, only, chosen, highest=highest, real=real, claims=claims, paper="so"
    )["n-grams"]  # fmt: skip
    assert claims.records[0]["verdict"] == verdict
    other, gap = next(iter(kept.items()))
    whole = [dense(texts[name]) for name in (chosen, other)]
    assert gap["difference"] == pytest.approx(whole[0] - whole[1], abs=2e-3)
    assert gap["low"] < gap["difference"] < gap["high"]


def test_ranks_and_chance(names, common):
    """Both counted anew, over all choices of five of fifteen."""
    rng = np.random.default_rng(3)
    means = {"n-grams": rng.permutation(15), "letters": rng.permutation(15)}
    labels = [*names["FICTION"], *"abcdefghij"]
    rows = {
        label: {key: {"rank": int((own > own[i]).sum()) + 1} for key, own in means.items()}
        for i, label in enumerate(labels)
    }
    scores = {key: own[:, None] + np.zeros((15, 2)) for key, own in means.items()}
    claims = common["Claims"]()
    measured = names["Measured"](rows, scores, {})
    found = names["check_fiction"]("x", "It is so.", measured, "letters", names["FICTION"], False, claims)
    rise = [row["n-grams"]["rank"] - row["letters"]["rank"] for row in rows.values()]
    mine = np.mean(rise[:5])
    assert found["mean_rise"] == found["rise_by_draw"]["mean"] == pytest.approx(mine, abs=1e-3)
    every = np.array([np.mean(pick) for pick in combinations(rise, 5)])
    assert len(every) == 3003
    assert found["chance"] == pytest.approx(np.mean(every >= mine - 1e-9), abs=1e-4)
    expected = IN_DIRECTION if mine > 0 and found["chance"] < 0.05 else "not reproduced"
    assert claims.records[0]["verdict"] == expected


@pytest.mark.skipif(not FOLDER.exists(), reason="the texts by genre and by stars are not there")
def test_texts_of_the_data_folder(names):
    genres, options = names["genres"], Namespace(data=DATA, multinli=None, amazon=None)
    premises, reviews = genres.by_genre(options), genres.amazon(options)
    assert sorted(premises) == sorted(genres.NOTEBOOK)
    assert {len(set(own)) for own in premises.values()} == {250}
    assert list(reviews) == ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]
    assert {len(own) for own in reviews.values()} == {2000}
    assert {len(own) for own in genres.brown(options).values()} == {699, 700}  # two are the same sentence


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
        "text_categories", tmp_path / "out", "--data", str(tmp_path), "--multinli", str(tmp_path / "nli.jsonl"),
        "--amazon", str(tmp_path / "amazon.jsonl"), "--items", "15", "--repeats", "2",
        "--galleries", str(tmp_path / "galleries"),
    )  # fmt: skip
    assert list(found["rows"]) == ["MultiNLI", "Amazon"]
    assert found["rows"]["MultiNLI"]["slate"]["n-grams"]["rank"] == 1
    assert list(found["rows"]["Amazon"]) == ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]
    assert found["rows"]["Amazon"]["5 stars"]["n-grams"]["rank"] == 1
    decided = verdicts(found)
    assert decided["MultiNLI, Slate"] == IN_DIRECTION  # MiniLM, or none, is not SimCSE
    assert decided["Amazon, n-grams"] in ("reproduced", IN_DIRECTION)
    assert all(decided[name] != "reproduced" for name in decided if name.endswith("stars"))
    assert decided["Brown, fiction"] == "could not be run"
    assert str(tmp_path) not in json.dumps(found)
    assert (tmp_path / "galleries" / "text_categories.txt").read_text().startswith("fiction, most like")


def test_without_data_nothing_is_claimed(tmp_path):
    found = rerun("text_categories", tmp_path / "out", "--data", str(tmp_path))
    assert set(verdicts(found).values()) == {"could not be run"}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["text_categories.json"]
