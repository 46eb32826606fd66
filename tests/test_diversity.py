"""`Diversity`: what it is made of, that each thing is computed once, and that it answers as the functions do."""

from __future__ import annotations

import gc
import inspect
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from matplotlib.figure import Figure

import vendimeter as vm
from vendimeter.errors import EmptyError, InputError
from vendimeter.similarity import Matrix

CAPTIONS = ["a dog", "a dog runs", "two boats at sea", "a boat", "the dog and the boat", "a dog"]
BY = ["x", "x", "y", "y", "x", "y"]


class Counted:
    """A function of two numbers that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.pairs: list[tuple[float, float]] = []

    def __call__(self, a: float, b: float) -> float:
        self.calls += 1
        self.pairs.append((a, b))
        return float(np.exp(-abs(a - b)))


def numbers(n: int = 120) -> np.ndarray:
    return np.random.default_rng(0).random(n) * 5


# ------------------------------------------------------------------------------------------- methods and functions

METHODS = {
    "score": "score",
    "profile": "profile",
    "plan": "plan",
    "group_scores": "score_groups",
    "compare": "compare",
    "rarefy": "rarefy",
    "contributions": "contributions",
    "duplicates": "duplicates",
    "modes": "modes",
    "select": "select",
    "reweight": "reweight",
    "report": "report",
}
# What belongs to the object, and is given when it is made.
CONSTRUCTOR = {"samples", "kernel", "weights", "counts", "by", "rng"}
SOLVER = {"confidence", "method", "pivots", "memory", "precision"}


@pytest.mark.parametrize(("method", "function"), METHODS.items())
def test_a_method_has_the_options_and_the_words_of_its_function(method: str, function: str) -> None:
    asked = inspect.signature(getattr(vm.Diversity, method)).parameters
    given = inspect.signature(getattr(vm, function)).parameters
    left = CONSTRUCTOR | (SOLVER if method in ("score", "profile", "plan", "group_scores") else {"memory"})
    expected = {name: one.default for name, one in given.items() if name not in left}
    found = {name: one.default for name, one in asked.items() if name not in ("self", "path")}
    assert list(found) == list(expected)
    assert found == expected
    documentation = inspect.getdoc(getattr(vm.Diversity, method))
    assert documentation is not None
    assert f"`vendimeter.{function}`" in documentation


def test_every_public_method_is_a_question_or_a_primitive() -> None:
    public = {name for name, _ in inspect.getmembers(vm.Diversity, inspect.isfunction) if name[0] != "_"}
    primitives = {"take", "forget", "kept", "spectrum", "eigenvectors", "neighbours"}
    assert METHODS.keys() | primitives <= public


# ----------------------------------------------------------------------------------------------------- computed once


def test_a_function_is_called_once_a_pair_whatever_is_asked_first() -> None:
    x, function = numbers(), Counted()
    d = vm.Diversity(x, function, by=np.arange(len(x)) % 3)
    half = d.take(np.arange(60))
    half.score()
    d.score()
    once = len(x) * (len(x) + 1) // 2
    assert function.calls <= once + 2 * 1024 + 60 * 60
    before = function.calls
    d.profile(), d.contributions(), d.modes(), d.duplicates(), d.group_scores(q=2), half.score(q=2)
    assert function.calls == before
    assert float(d.score()) == pytest.approx(float(vm.score(x, lambda a, b: np.exp(-abs(a - b)))), rel=1e-12)


GROUP_QUESTIONS: dict[str, Callable[[vm.Diversity], Any]] = {
    "compare": lambda d: d.compare(permutations=9, similarity=True),
    "group_scores": lambda d: d.group_scores([1, 2]),
    "gallery": lambda d: vm.plots.gallery(d, ax=Figure().subplots()),
    "kernel_matrix": lambda d: vm.plots.kernel_matrix(d, ax=Figure().subplots()),
    "score": lambda d: d.score(),
}


@pytest.mark.parametrize("first", GROUP_QUESTIONS)
@pytest.mark.parametrize("many", [120, 300])
def test_questions_about_groups_call_a_function_once_a_pair(first: str, many: int) -> None:
    x, function = numbers(many), Counted()
    d = vm.Diversity(x, function, by=np.arange(many) % 3)
    for name in (first, *GROUP_QUESTIONS):
        GROUP_QUESTIONS[name](d)
    # Groups that are scored before the whole is known are checked for symmetry one by one.
    checks = 1 + 3 * (first in ("group_scores", "gallery"))
    assert function.calls <= many * (many + 1) // 2 + checks * 1024


def test_questions_about_groups_answer_as_the_functions_do() -> None:
    x = np.random.default_rng(0).standard_normal((90, 4))
    options: dict[str, Any] = {"by": np.repeat(["x", "y", "z"], [20, 30, 40]), "counts": np.arange(90) % 4}
    d = vm.Diversity(x, "rbf", rng=3, **options)
    d.score()
    assert d.group_scores(q=2).to_dict() == vm.score_groups(x, "rbf", q=2, rng=3, **options).to_dict()
    asked = {"pairs": True, "permutations": 19, "similarity": True}
    found, alone = d.compare(**asked), vm.compare(x, "rbf", rng=3, **asked, **options)
    assert found.gamma == pytest.approx(alone.gamma, rel=1e-12)
    for name in ("scores", "rarefied", "rarefied_low", "rank", "shares", "similarity"):
        np.testing.assert_allclose(getattr(found, name), getattr(alone, name), rtol=1e-10)
    assert found.differences.p.tolist() == alone.differences.p.tolist()
    assert (found.alpha, found.beta) == pytest.approx((alone.alpha, alone.beta))

    def picture(draw: Callable[..., Any], *samples: Any, **given: Any) -> Any:
        axes = draw(*samples, ax=Figure().subplots(), **given).ax_
        return [text.get_text() for text in axes.texts], [np.asarray(one.get_array()) for one in axes.images]

    gallery, matrix = vm.plots.gallery, vm.plots.kernel_matrix
    assert picture(gallery, d, kind="other") == picture(gallery, x, "rbf", kind="other", rng=3, **options)
    labels = options["by"]
    for drawn, expected in zip(
        picture(matrix, d, order="labels")[1],
        picture(
            matrix, vm.Collection(x, labels=labels, weights=options["counts"]), "rbf", order="labels", rng=3
        )[1],
        strict=True,
    ):
        np.testing.assert_allclose(drawn, expected, rtol=1e-12)
    with pytest.raises(InputError, match="by= was given beside a Diversity"):
        gallery(d, by=labels)


def test_the_whole_of_a_comparison_is_the_score_that_is_kept() -> None:
    x, by = np.random.default_rng(0).standard_normal((60, 4)), np.repeat(["x", "y"], [20, 40])
    for options in ({}, {"counts": np.arange(60) % 5}, {"weights": np.arange(60) / 1770}):
        d = vm.Diversity(x, by=by, **options)
        score = d.score()
        assert d.compare(permutations=0).gamma.spectrum is score.spectrum
        assert d.compare(permutations=0, group_weights="equal").gamma.spectrum is not score.spectrum
    rows = vm.Diversity(x, counts=np.arange(180).reshape(3, 60) % 5)
    assert rows.compare(permutations=0).scores == pytest.approx(rows.group_scores().scores)


def test_equal_items_are_one_for_a_function() -> None:
    x, function = np.repeat(numbers(80), 3), Counted()
    d = vm.Diversity(x, function)
    d.score(), d.contributions(), d.duplicates(), d.modes()
    assert function.calls <= 80 * 81 // 2 + 1024


def test_a_lopsided_function_is_found_out() -> None:
    d = vm.Diversity(numbers(), lambda a, b: float(np.exp(-abs(a - b))) * (1.01 if a < b else 1))
    for _ in range(2):
        with pytest.raises(vm.errors.AsymmetryError):
            d.score()


def test_an_encoder_sees_each_item_once() -> None:
    seen: list[str] = []

    def encoder(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return np.array([[1.0 + text.count(letter) for letter in "aeiou"] for text in texts])

    d = vm.Diversity(CAPTIONS, vm.kernels.Embed(encoder), by=BY)
    assert d.vectors.shape == (6, 5)
    d.score(), d.contributions(), d.duplicates(), d.modes(), d.group_scores(), d.take([0, 1]).score()
    assert seen == CAPTIONS


def test_a_matrix_is_checked_once_and_not_changed() -> None:
    K = np.exp(-np.abs(np.subtract.outer(numbers(), numbers())))
    before = K.copy()
    d = vm.Diversity(K, "precomputed")
    assert isinstance(d.similarity, Matrix)
    assert d.similarity.is_checked
    assert d.similarity is d.similarity
    d.score(), d.contributions(), d.modes()
    assert (before == K).all()


def test_a_kept_spectrum_answers_where_it_is_tight_enough() -> None:
    x = np.random.default_rng(0).standard_normal((6000, 3))
    d = vm.Diversity(x, "rbf")
    rough = d.score(tol=1e-2)
    assert rough.method == "lowrank"
    assert float(d.score(tol=2e-2)) == float(rough)
    assert d.score(tol=1e-2).spectrum is rough.spectrum
    tight = d.score(tol=1e-6)
    assert tight.spectrum is not rough.spectrum
    assert tight.half_width <= 1e-6 * tight
    assert d.score(tol=1e-2).half_width <= 1e-2 * tight


def test_what_a_score_is_after_the_eigenvectors() -> None:
    d = vm.Diversity(np.random.default_rng(0).standard_normal((50, 8)))
    d.contributions()
    assert float(d.score(q=2)) == pytest.approx(float(vm.score(d.samples, q=2)), rel=1e-12)


def test_eigenvectors_of_a_stand_in_give_no_bounds() -> None:
    d = vm.Diversity(
        np.random.default_rng(0).standard_normal((50, 4)), vm.kernels.RandomFeatures(vm.kernels.RBF(1.0), 64)
    )
    d.contributions()
    assert d.score().level == d.eigenvalues().level == "none"


def test_neighbours_of_a_lower_threshold_have_those_of_a_higher_one() -> None:
    x = np.random.default_rng(0).standard_normal((60, 3))
    d = vm.Diversity(x)
    K = x @ x.T / np.linalg.norm(x, axis=1)[:, None] / np.linalg.norm(x, axis=1)
    for threshold in (0.5, 0.9, 0.3):
        pairs = d.neighbours(threshold)
        first, second = np.nonzero(np.triu(threshold <= K, 1))
        assert sorted(zip(pairs.first, pairs.second, strict=True)) == list(zip(first, second, strict=True))
        np.testing.assert_allclose(pairs.similarity, K[pairs.first, pairs.second], rtol=1e-12)
    assert [kept.name for kept in d.kept()].count("near pairs") == 1
    with pytest.raises(vm.errors.TooLargeError):
        vm.Diversity(np.ones((3000, 2)), solver=vm.Solver(memory="20 MiB")).neighbours(0.5)


def test_forgetting() -> None:
    function = Counted()
    d = vm.Diversity(numbers(), function)
    d.score()
    assert d.kept()
    d.forget()
    assert not d.kept()
    before = function.calls
    d.score()
    assert function.calls == 2 * before


# ------------------------------------------------------------------------------------------------------ what it is


def test_repr() -> None:
    assert repr(vm.Diversity(CAPTIONS, "ngram", by=BY)) == "Diversity(6 texts, NGram(1, 4), by 2 groups)"
    assert "3×2" in repr(vm.Diversity(np.ones((3, 2))))
    assert "<table>" in vm.Diversity(CAPTIONS, "ngram")._repr_html_()


def test_it_pickles_without_what_is_kept() -> None:
    d = vm.Diversity(CAPTIONS, "ngram", by=BY, rng=3)
    score = d.score()
    other = pickle.loads(pickle.dumps(d))
    assert not other.kept()
    assert float(other.score()) == float(score)
    assert other.groups.labels == ["x", "y"]
    assert other.rng == 3


@pytest.mark.parametrize("weighting", ["none", "weights", "counts"])
def test_taking_items(weighting: str) -> None:
    numbers_of = {
        "none": {},
        "weights": {"weights": np.arange(1, 7) / 21},
        "counts": {"counts": [1, 2, 3, 4, 5, 6]},
    }
    options: dict[str, Any] = numbers_of[weighting]
    d = vm.Diversity(CAPTIONS, "ngram", by=BY, **options)
    part = d.take([4, 0, 3])
    assert part.samples == [CAPTIONS[4], CAPTIONS[0], CAPTIONS[3]]
    assert part.groups is not None
    assert list(part.groups.labels) == ["x", "y"]
    assert len(part) == 3
    given = {name: np.asarray(values)[[4, 0, 3]] for name, values in options.items()}
    if "weights" in given:
        given["weights"] = given["weights"] / given["weights"].sum()
    assert float(part.score()) == pytest.approx(float(vm.score(part.samples, "ngram", **given)), rel=1e-12)
    assert float(part.take([1]).score()) == pytest.approx(1)
    with pytest.raises(EmptyError):
        d.take([])


def test_taking_items_of_rows_of_counts() -> None:
    table = np.array([[1, 2, 3, 0, 0, 0], [0, 0, 1, 1, 1, 5]])
    d = vm.Diversity(CAPTIONS, "ngram", counts=table, by=["p", "q"])
    part = d.take([0, 2, 5]).group_scores()
    expected = vm.score_groups(
        [CAPTIONS[i] for i in (0, 2, 5)], "ngram", counts=table[:, [0, 2, 5]], by=["p", "q"]
    )
    assert [float(part[name]) for name in "pq"] == pytest.approx([float(expected[name]) for name in "pq"])
    with pytest.raises(InputError):
        d.score()


def test_items_that_were_taken_are_samples_whatever_is_known_of_their_similarities() -> None:
    rows = numbers(40).reshape(20, 2)
    d = vm.Diversity(rows, "rbf")
    d.score()
    np.testing.assert_array_equal(d.take([3, 1]).samples, rows[[3, 1]])


def test_several_collections_are_groups() -> None:
    d = vm.Diversity.of({"real": CAPTIONS[:4], "model": CAPTIONS[2:]}, "ngram")
    assert len(d) == 8
    scores = d.group_scores()
    assert float(scores["real"]) == pytest.approx(float(vm.score(CAPTIONS[:4], "ngram")), rel=1e-12)
    with pytest.raises(InputError, match="group 'b': item 1"):
        vm.Diversity.of({"a": [[1.0, 0.0]], "b": [[1.0, 0.0], [np.nan, 1.0]]}).score()


@pytest.mark.parametrize("ask", [vm.score_groups, vm.compare, lambda groups: vm.Diversity.of(groups).score()])
@pytest.mark.parametrize("form", [dict, list, np.stack, "read"])
def test_an_error_in_one_of_several_collections_names_it(ask: Callable[[Any], Any], form: Any) -> None:
    good, bad = np.eye(3)[:2], np.array([[1.0, 0.0, 0.0], [np.nan, 1.0, 0.0]])
    groups: Any = [good, bad, good]
    if form == "read":
        groups = [vm.Collection(rows, place=lambda i: f"line {i + 1} of 'x.csv'") for rows in groups]
    groups = dict(enumerate(groups)) if form is dict else form(groups) if form is np.stack else groups
    with pytest.raises(InputError) as caught:
        ask(groups)
    assert caught.value.collections == ("group 1",)
    assert caught.value.item == 1
    assert caught.value.place == ("line 2 of 'x.csv'" if form == "read" else None)


def test_an_error_about_an_option_looks_at_no_collection() -> None:
    seen: list[str] = []

    def encoder(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return np.array([[1.0 + text.count(letter) for letter in "aeiou"] for text in texts])

    d = vm.Diversity.of({"x": CAPTIONS, "y": CAPTIONS[:3]}, vm.kernels.Embed(encoder))
    for wrong in ({"size": 9}, {"reference": "z"}, {"permutations": -1}, {"q": -1}):
        with pytest.raises(InputError) as caught:
            d.compare(**wrong)
        assert caught.value.option == next(iter(wrong))
    assert len(seen) <= 9
    d.score()
    for ask in (lambda: d.select(99), lambda: d.duplicates(threshold=3), lambda: d.rarefy(sizes=[99])):
        with pytest.raises(InputError):
            ask()
    assert len(seen) == 9


def test_without_groups_nothing_is_computed_for_them() -> None:
    d = vm.Diversity(CAPTIONS, "ngram")
    for ask in (d.group_scores, d.compare, lambda: vm.plots.gallery(d)):
        with pytest.raises(InputError, match="expected by=labels"):
            ask()
    assert not d.kept()


def test_what_belongs_to_the_object_is_refused_beside_it() -> None:
    d = vm.Diversity(CAPTIONS, "ngram", by=BY)
    for options in (
        {"kernel": "cosine"}, {"weights": np.ones(6) / 6}, {"counts": [1] * 6}, {"rng": 0}, {"method": "exact"}
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            vm.score(d, **options)
        assert caught.value.option == next(iter(options))
    assert float(vm.score(d, q=2, tol=1e-2)) == float(d.score(q=2))


# -------------------------------------------------------------------------------------------------------- threads


def test_two_threads_may_ask_at_once() -> None:
    x, function = numbers(), Counted()
    d = vm.Diversity(x, function)
    found: list[float] = []

    def ask(question: str) -> None:
        result = getattr(d, question)()
        found.append(float(getattr(result, "score", result)))

    threads = [
        threading.Thread(target=ask, args=[name]) for name in ("score", "contributions", "duplicates") * 3
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 9
    np.testing.assert_allclose(found, found[0], rtol=1e-10)
    assert function.calls <= len(x) * (len(x) + 1) // 2 + 1024


def test_taken_items_after_forgetting_or_pickling_are_made_anew() -> None:
    d = vm.Diversity(CAPTIONS, "ngram", by=BY)
    part = d.take([0, 2, 3])
    score = float(part.score())
    assert repr(part) == "Diversity(3 of 6 texts, NGram(1, 4), by 2 groups)"
    part.forget()
    assert float(part.score()) == score
    assert float(pickle.loads(pickle.dumps(part)).score()) == score


def test_items_of_several_collections_keep_these_and_their_weights() -> None:
    weights = np.array([0.5, 0.0, 0.25, 0.25])
    both = vm.Diversity.of(
        {"one": ["a", "b", "c", "d"], "two": ["a", "e"]}, "match", weights={"one": weights}
    )
    some = both.take(np.array([0, 2, 5]))
    assert [(one.name, one.size) for one in some.source.collections] == [("one", 2), ("two", 1)]
    assert some.shares == pytest.approx([4 / 9, 2 / 9, 1 / 3])  # each weighs as much as it has items
    assert some.groups is not None
    assert some.groups.weights == pytest.approx([2 / 3, 1 / 3, 1])
    assert both.take(np.array([4, 5])).weights is None  # that collection has none
    mixed = both.take(np.array([-1, 0]))
    assert mixed.groups is not None
    assert mixed.groups.labels == ["two", "one"]
    assert both.groups is not None
    assert both.groups.sizes.tolist() == [3, 2]  # an item without weight is in no group


def test_items_of_a_collection_too_large_to_be_kept_ask_for_each_pair_once() -> None:
    kernel = Counted()
    many = vm.Diversity(numbers(2600), kernel, solver=vm.Solver(memory="97 MiB"))
    some = many.take(np.arange(20))
    assert some.score() > some.score(q=2) > some.contributions(q=5).score > 1
    assert kernel.calls == 400
    assert [kept.bytes for kept in some.kept() if kept.name == "similarity"] == [3200]
    assert some.samples.tolist() == numbers(2600)[:20].tolist()


def test_taking_items_of_a_matrix_takes_rows_and_columns() -> None:
    K = np.exp(-np.abs(np.subtract.outer(numbers(), numbers())))
    part = vm.Diversity(K, "precomputed").take([3, 5, 8])
    assert (part.samples == K[np.ix_([3, 5, 8], [3, 5, 8])]).all()


def test_no_two_threads_wait_for_each_other() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            d = vm.Diversity(numbers(20), "rbf", by=["x", "y"] * 10)
            threads = [
                threading.Thread(target=getattr(d, name), daemon=True)
                for name in ("score", "contributions", "duplicates", "modes", "group_scores")
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert not any(thread.is_alive() for thread in threads)
    finally:
        sys.setswitchinterval(before)


def test_taken_items_of_distances_are_their_distances() -> None:
    distances = np.abs(np.subtract.outer(numbers(), numbers()))
    d = vm.Diversity(distances, vm.kernels.FromDistances(scale=1.0))
    part = d.take([3, 5, 8])
    assert (part.samples == distances[np.ix_([3, 5, 8], [3, 5, 8])]).all()
    assert float(part.score()) == pytest.approx(float(vm.score(part.samples, part.kernel)), rel=1e-12)


def test_texts_are_split_once() -> None:
    split: list[str] = []

    def tokenizer(text: str) -> list[str]:
        split.append(text)
        return text.split()

    d = vm.Diversity(CAPTIONS, vm.kernels.NGram(1, 2, tokenizer=tokenizer), by=BY)
    d.score(), d.compare(permutations=0), d.modes()
    parts = {name: d.take(np.flatnonzero(np.array(BY) == name)) for name in "xy"}
    table = vm.metrics.table(parts)
    assert split == CAPTIONS
    for name, part in parts.items():
        expected = vm.metrics.ngram_diversity(list(part.samples), low=1, high=2, tokenizer=tokenizer)
        assert table[name]["ngram_diversity"] == pytest.approx(float(expected))


def test_eigenvalues_of_float32_answer_where_they_are_tight_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vendimeter.solvers.plan.SINGLE_ABOVE", 1e4)
    x = np.random.default_rng(0).standard_normal((400, 30)).astype(np.float32)
    d = vm.Diversity(x)
    rough = d.score()
    assert d.plan().precision == "float32"
    assert d.score(q=2).spectrum is d.score(q=2, tol=1e-2).spectrum is rough.spectrum
    tight = d.score(tol=rough.half_width / rough / 10)
    assert tight.half_width < rough.half_width / 10


def test_what_can_be_made_again_makes_room_for_a_score() -> None:
    x = np.random.default_rng(0).standard_normal((1200, 3))
    for ask in (lambda d: d.neighbours(0.02), lambda d: d.decomposition()):
        d = vm.Diversity(x, "rbf", solver=vm.Solver(memory="130 MiB"))
        ask(d)
        assert len(d.kept()) == 2
        assert d.take(np.arange(500)).score().level == "deterministic"
        assert d.score(q=0).level == "deterministic"


@pytest.mark.parametrize("form", [np.asarray, list, np.float32])
def test_items_that_were_taken_of_distances_are_distances(form: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(0).random((12, 2))
    distances = np.linalg.norm(x[:, None] - x, axis=-1)
    part = vm.Diversity(form(distances), vm.kernels.FromDistances(0.5)).take([1, 3, 5]).take([2, 0])
    np.testing.assert_allclose(part.samples, distances[np.ix_([5, 1], [5, 1])], rtol=1e-6)
    other = part.with_kernel(vm.kernels.FromDistances(0.1))
    assert float(other.score()) == pytest.approx(
        float(vm.score(part.samples, vm.kernels.FromDistances(0.1))), rel=1e-9
    )
    sparse = scipy.sparse.coo_array(2 * np.eye(4))
    some = vm.Diversity(sparse, vm.kernels.Precomputed(normalize=True)).take([1, 2])
    assert (some.samples.toarray() == 2 * np.eye(2)).all()


def test_items_that_were_taken_and_forgotten_ask_for_each_pair_once() -> None:
    kernel = Counted()
    many = vm.Diversity(numbers(2600), kernel, solver=vm.Solver(memory="97 MiB"))
    some = many.take(np.arange(20))
    for calls in (400, 800):
        some.score(), some.contributions(), some.score(q=0.5)
        assert kernel.calls == calls
        some.forget()


@pytest.mark.parametrize("index", [[0, 6], [1.5], "abc", [True] * 5, 3, None, {1, 2}])
def test_positions_that_are_none_are_errors(index: Any) -> None:
    with pytest.raises(InputError, match="expected positions of items from 0 to 5") as caught:
        vm.Diversity(CAPTIONS, "ngram").take(index)
    assert caught.value.option == "index"


def test_items_without_weight_are_no_sample() -> None:
    for options in ({"weights": [0.5, 0.5, 0, 0, 0, 0]}, {"counts": [1, 1, 0, 0, 0, 0]}):
        with pytest.raises(EmptyError, match="weight 0"):
            vm.Diversity(CAPTIONS, "ngram", **options).take([2, 3])


def test_no_object_is_one_of_several_collections() -> None:
    d = vm.Diversity(CAPTIONS, "ngram")
    for ask in (vm.Diversity.of, vm.compare, vm.score_groups):
        for several in ({"x": d, "y": CAPTIONS}, [CAPTIONS, d]):
            with pytest.raises(InputError, match=r"is Diversity.*expected a collection of items"):
                ask(several, "ngram")


def test_eigenvectors_take_what_they_say() -> None:
    x = np.random.default_rng(0).random((300, 1))
    d = vm.Diversity(x, "rbf")
    d.contributions()
    [size] = [kept.bytes for kept in d.kept() if kept.name == "eigenvectors"]
    assert size == 8 * 300 * 300


def test_threads_may_take_and_forget() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    failed: list[Exception] = []
    d = vm.Diversity(numbers(30), "rbf")

    def ask() -> None:
        try:
            for _ in range(20):
                d.take([1, 2, 3]).contributions()
                d.score()
                d.modes()
                d.forget()
        except Exception as error:
            failed.append(error)

    try:
        threads = [threading.Thread(target=ask, daemon=True) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert not failed
    assert not any(thread.is_alive() for thread in threads)


def test_nothing_is_held_once_nobody_asks() -> None:
    gc.disable()
    try:
        d = vm.Diversity(numbers(30), "rbf", by=["x", "y"] * 15)
        part = d.take([1, 2, 3])
        part.score(), d.score(), d.contributions(), d.group_scores()
        held = weakref.ref(d), weakref.ref(part)
        del d, part
        assert [one() for one in held] == [None, None]
    finally:
        gc.enable()


def test_near_pairs_take_the_room_of_what_can_be_made_again() -> None:
    d = vm.Diversity(
        np.random.default_rng(0).standard_normal((1200, 3)), "rbf", solver=vm.Solver(memory="50 MiB")
    )
    d.decomposition()
    pairs = d.neighbours(1e-6)
    assert 30 << 20 < 2 * pairs.bytes < 39 << 20
    assert [kept.name for kept in d.kept()] == ["similarity", "near pairs"]


def test_to_check_for_symmetry_asks_for_no_pair_again() -> None:
    function = Counted()
    d = vm.Diversity(numbers(130), function)
    d.score(), d.contributions(), d.duplicates(), d.modes()
    assert function.calls == len(set(function.pairs)) == 130 * 131 // 2 + 1024


def test_eigenvectors_keep_to_the_memory_that_was_asked_for() -> None:
    x, memory = np.random.default_rng(0).random((2500, 3)), vm.Solver(memory="100 MiB")
    with pytest.raises(vm.errors.TooLargeError, match="2500×2500") as caught:
        vm.Diversity(x, "rbf", solver=memory).contributions()
    assert caught.value.option == "memory"
    assert vm.Diversity(x[:300], "rbf", solver=memory).contributions().n == 300
    assert vm.Diversity(x, solver=memory).contributions().n == 2500
