"""A report reads one Diversity: what it computes once, what it keeps for others, and the call that it shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from reports.reading import blocks, columns, section, text_of
from vendimeter.data.collection import Collection
from vendimeter.errors import InputError
from vendimeter.reports import sample
from vendimeter.reports.document import Code, Gallery, Table
from vendimeter.reports.report import Report
from vendimeter.solvers import eigenvectors

CAPTIONS = ["a dog", "a dog runs", "two boats at sea", "a boat", "one tree", "a tree in a field"] * 4


def code_of(page: Report) -> str:
    (code,) = blocks(page.document, "method", Code)
    return code.text


def test_a_function_is_called_once_a_pair_whatever_is_in_the_report():
    calls = []

    def near(a, b):
        calls.append((a, b))
        return float(np.exp(-abs(a - b)))

    places = [0.5 * i for i in range(30)]
    diversity = vm.Diversity(places, near, by=["x", "y", "z"] * 10)
    diversity.report()
    assert len(calls) == 900  # all pairs of so few items in both orders, as a check
    diversity.report(q=[2, "inf"])
    diversity.contributions()
    assert len(calls) == 900


def test_an_encoder_runs_once():
    texts = []

    def encoder(samples):
        texts.extend(samples)
        return np.array([[len(text), text.count("a"), 1.0] for text in samples])

    vm.report(CAPTIONS, vm.kernels.Embed(encoder), by=["x", "y"] * 12)
    assert texts == CAPTIONS


def test_all_orders_modes_and_the_score_share_one_decomposition(monkeypatch):
    decomposed = []
    eigenpairs = eigenvectors.eigenpairs
    monkeypatch.setattr(
        eigenvectors, "eigenpairs", lambda matrix: decomposed.append(len(matrix)) or eigenpairs(matrix)
    )
    diversity = vm.Diversity([f"{text} {i}" for i, text in enumerate(CAPTIONS)], "ngram")
    diversity.report(q=[1, 0, 0.5, 2, "inf"])
    assert decomposed == [24]


def test_a_report_of_a_diversity_is_that_of_its_samples():
    made = vm.report(CAPTIONS, "ngram", by=["x", "y"] * 12, rng=3)
    asked = vm.report(vm.Diversity(CAPTIONS, "ngram", by=["x", "y"] * 12, rng=3))
    assert asked.document.headline == made.document.headline
    for one in made.document.sections[:-1]:
        assert section(asked.document, one.key) == one
    joined = vm.Diversity.of({"one": CAPTIONS[:9], "two": CAPTIONS[9:]}, "ngram").report(reference="one")
    several = vm.report({"one": CAPTIONS[:9], "two": CAPTIONS[9:]}, "ngram", reference="one")
    for one in several.document.sections[:-1]:
        assert section(joined.document, one.key) == one


def test_the_call_that_is_shown_is_the_one_that_was_made():
    diversity = vm.Diversity(CAPTIONS, "ngram", by=["x", "y"] * 12)
    assert code_of(diversity.report(q=2)) == (
        "import vendimeter as vm\n\n"
        'vm.Diversity(samples, kernel=NGram(1, 4), by=labels).report("report.html", q=2)'
    )
    joined = vm.Diversity.of({"one": CAPTIONS, "two": CAPTIONS}, "match", rng=2)
    assert code_of(vm.report(joined, reference="one")) == (
        "import vendimeter as vm\n\n"
        "vm.Diversity.of(collections, kernel=Match(), rng=2).report(\"report.html\", reference='one')"
    )
    assert code_of(vm.report(CAPTIONS, "match", q=[1, 2])) == (
        "import vendimeter as vm\n\nvm.report(samples, kernel='match', q=[1, 2]).write(\"report.html\")"
    )


def test_what_a_diversity_has_is_not_given_beside_it():
    diversity = vm.Diversity(CAPTIONS, "ngram")
    given: Any
    for given in ({"kernel": "match"}, {"by": ["x"] * 24}, {"rng": 0}, {"weights": np.full(24, 1 / 24)}):
        with pytest.raises(InputError, match="beside a Diversity"):
            vm.report(diversity, **given)


def test_items_of_counts_are_drawn_as_copies():
    items, counts = ["ape", "bee", "cat", "dog", "eel", "fox"], [9, 4, 7, 3, 12, 5]
    by = ["x", "y", "x", "y", "x", "y"]
    page = vm.Diversity(items, "match", counts=counts, by=by).report(q=[1, 2])
    repeated = vm.report(
        np.repeat(items, counts).tolist(), "match", by=np.repeat(by, counts).tolist(), q=[1, 2]
    )
    assert page.document.headline == repeated.document.headline
    found, expected = (columns(blocks(one.document, "groups", Table)[0]) for one in (page, repeated))
    assert found["group"] == expected["group"]
    assert found["items"] == expected["items"]
    assert found["score"] == pytest.approx(expected["score"])
    assert found["q=2"] == pytest.approx(expected["q=2"], rel=0.1)  # other random copies


def test_a_sample_keeps_the_collections_and_their_weights(monkeypatch):
    monkeypatch.setattr(sample, "DENSE_ITEMS", 60)
    monkeypatch.setattr(sample, "SAMPLE_SIZES", (50, 20))
    rng = np.random.default_rng(5)
    weights = rng.random(80)
    page = vm.report(
        {"one": rng.normal(size=(80, 3)), "two": rng.normal(size=(40, 3))},
        vm.kernels.RBF(1.0),
        weights={"one": weights / weights.sum()},
    )
    table = columns(blocks(page.document, "answer", Table)[0])
    assert table["items"] == [80, 40]
    assert table["looked at"] == [25, 25]
    answer = text_of(page.document, "answer")
    assert "a random sample of 50 of the 120 items, as many of each collection as can be" in answer
    assert "one was not estimated" not in answer
    assert "two would" in answer or "two cannot" in answer or "behind two" in answer


def test_items_without_weight_are_no_reason_to_speak_of_a_sample():
    weights = np.full(24, 1 / 22)
    weights[[3, 8]] = 0
    page = vm.report([f"{text} {i}" for i, text in enumerate(CAPTIONS)], "ngram", weights=weights)
    assert "random sample" not in text_of(page.document, "items")
    captions = [item.caption for one in blocks(page.document, "items", Gallery) for item in one.items]
    assert not {"item 3", "item 8"} & set(captions)


def test_empty_lists_and_collections_are_left_out():
    lists = Collection([["a cat", "a dog"], [], ["one cat", "two cats", "a boat"]], labels=["x", "y", "z"])
    page = vm.Diversity(lists, "ngram").report()
    assert page.document.subtitle == "5 texts in 2 lists, compared by NGram(1, 4)"
    assert "1 of the 3 lists are empty, and have no score." in text_of(page.document, "answer")
    joined = vm.Diversity.of({"one": ["a", "b"], "none": [], "two": ["b", "c", "c"]}, "match").report()
    assert columns(blocks(joined.document, "answer", Table)[0])["collection"] == ["one", "two"]
    assert "The collection 'none' is empty, and left out." in text_of(joined.document, "answer")


def test_a_file_that_is_there_is_refused_before_any_work(tmp_path):
    def function(a, b):
        raise AssertionError("asked before the file was looked at")

    path = tmp_path / "page.html"
    path.write_text("mine")
    for target in (path, tmp_path, tmp_path / "no" / "page.html"):
        with pytest.raises(vm.errors.InputError):
            vm.Diversity([1.0, 2.0], function).report(target)
    assert path.read_text() == "mine"
    page = vm.Diversity(["a dog", "a cat"], "ngram").report(tmp_path / "new.html")
    assert (tmp_path / "new.html").read_text(encoding="utf-8") == page.html
    assert page.write(path, overwrite=True) == path
