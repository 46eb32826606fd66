"""Rarefaction: the curve, what weights and counts mean, odd input, and what the result can be turned into."""

import json
import math
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import vendimeter as vm
from vendimeter.analysis.rarefaction import rarefaction
from vendimeter.data.collection import Collection
from vendimeter.errors import EmptyError, InputError, TooLargeError
from vendimeter.spectrum.entropy import hill, truncated

RNG = np.random.default_rng(11)
ROWS = RNG.standard_normal((131, 6))
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
KERNEL = ROWS @ ROWS.T


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def test_curve_of_every_kind_of_similarity_is_the_same() -> None:
    from scipy import sparse

    options: dict[str, Any] = {"sizes": [1, 5, 40, 90, 131], "repeats": 6, "groups": 8, "rng": 3}
    first = vm.rarefy(ROWS, **options)
    assert first.scores[0] == pytest.approx(1)
    assert first.low[0] == pytest.approx(1)
    assert first.scores[-1] == pytest.approx(float(vm.score(ROWS)), rel=1e-12) == first.high[-1]
    assert (np.diff(first.scores) > 0).all()
    assert (first.low <= first.high).all()
    others = [
        vm.rarefy(KERNEL, "precomputed", **options),
        vm.rarefy(list(ROWS), lambda a, b: float(a @ b), **options),
        vm.rarefy(sparse.csr_array(ROWS), **options),
        vm.rarefy(np.hstack([ROWS, np.zeros((131, 200))]), **options),
    ]
    for other in others:
        assert other.scores == pytest.approx(first.scores, rel=1e-9)
        assert other.low == pytest.approx(first.low, rel=1e-9)
        assert other.population == pytest.approx(first.population, rel=1e-9)
        assert other.population.interval == pytest.approx(first.population.interval, rel=1e-6)
        assert other.growth == pytest.approx(first.growth, rel=1e-6)


def test_mean_is_that_of_random_subsets() -> None:
    found = vm.rarefy(ROWS, sizes=[12, 60], repeats=200)
    rng = np.random.default_rng(8)
    for size, mean in zip(found.sizes, found.scores, strict=True):
        direct = [float(vm.score(ROWS[rng.choice(131, size, replace=False)])) for _ in range(300)]
        assert mean == pytest.approx(np.mean(direct), abs=5 * float(np.std(direct)) / math.sqrt(200))


def test_library_arrays(library: Any) -> None:
    found = vm.rarefy(library.array(ROWS), sizes=[10, 90], repeats=1, groups=8)
    same = vm.rarefy(ROWS, sizes=[10, 90], repeats=1, groups=8)
    assert found.scores == pytest.approx(same.scores, rel=1e-9)
    assert found.population.interval == pytest.approx(same.population.interval, rel=1e-6)


def test_categories_fall_apart_and_are_as_dense() -> None:
    labels = np.random.default_rng(0).integers(300, size=900)
    apart = vm.rarefy(labels, "match", sizes=[30, 400, 900], repeats=4, groups=8)
    dense = vm.rarefy(np.eye(300)[labels], vm.kernels.Cosine(), sizes=[30, 400, 900], repeats=4, groups=8)
    assert apart.scores == pytest.approx(dense.scores, rel=1e-9)
    assert apart.population.interval == dense.population.interval is None
    assert apart.population == pytest.approx(dense.population, rel=1e-9)


def test_counts_are_samples() -> None:
    counts = np.array([120, 60, 15, 0, 5])
    found = vm.rarefy(np.eye(5), vm.kernels.Cosine(), counts=counts, sizes=[40, 200])
    same = vm.rarefy(np.repeat(np.arange(5), counts), "match", sizes=[40, 200])
    assert found.n == same.n == found.used == 200
    assert found.score == pytest.approx(float(same.score))
    assert found.scores[-1] == pytest.approx(float(found.score))
    assert found.population.interval is not None
    assert same.population.interval is not None
    assert found.population == pytest.approx(same.population, rel=0.01)  # dealt otherwise
    assert found.scores[0] == pytest.approx(same.scores[0], rel=0.2)
    with pytest.raises(TooLargeError, match="counts sum to 2,000,000,000"):
        vm.rarefy(np.eye(2), vm.kernels.Cosine(), counts=[10**9, 10**9])


def test_weights_are_a_population() -> None:
    weights = np.array([0.5, 0.25, 0.125, 0.125])
    found = vm.rarefy(np.eye(4), vm.kernels.Cosine(), weights=weights, sizes=[1, 4], repeats=400, t=4)
    assert found.population.interval is None
    assert math.isnan(found.population)
    assert math.isnan(found.growth)
    refused = found.population.refused
    assert refused is not None
    assert (refused.kind, refused.to_dict()["option"]) == ("weights", "counts")
    assert refused.shown("terminal") == refused.text  # the command has no counts
    assert found.verdict == "population"
    assert found.score == pytest.approx(2**1.75) == found.truncated_score
    draws = np.random.default_rng(0).multinomial(4, weights, size=4000) / 4
    logs = np.log(np.where(draws > 0, draws, 1))
    assert found.scores == pytest.approx([1.0, np.exp(-(draws * logs).sum(axis=1)).mean()], rel=0.05)
    collection = Collection([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], weights=[2, 1, 1])
    assert vm.rarefy(collection).population.refused == found.population.refused


def test_truncated_score() -> None:
    values = np.array([[0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]])
    assert truncated(values, 2) == pytest.approx(np.array([[0.55, 0.45], [0.5, 0.5]]))
    assert truncated(values, 7) == pytest.approx(values)
    assert truncated(2 * values, 1) == pytest.approx(np.ones((2, 1)))
    found = vm.rarefy(ROWS, t=3, sizes=[2, 50, 131], repeats=2)
    eigenvalues = np.linalg.eigvalsh(KERNEL / 131)[::-1]
    expected = eigenvalues[:3] + (1 - eigenvalues[:3].sum()) / 3
    assert found.t == 3
    assert found.truncated_score == pytest.approx(float(hill(expected, 1.0))) == found.truncated[-1]
    assert found.truncated[0] == pytest.approx(found.scores[0])
    assert found.truncated[-1] < found.scores[-1]
    assert vm.rarefy(ROWS, repeats=1).t == 14


def test_a_sample_stands_for_what_is_too_much() -> None:
    found = vm.rarefy(KERNEL, "precomputed", most=110, repeats=2)
    assert (found.n, found.used, found.sizes[-1], found.population.n) == (131, 110, 110, 110)
    assert found.score == pytest.approx(float(vm.score(ROWS)))
    assert found.score.n == 131
    (note,) = found.notes
    assert (note.kind, note.values) == ("sampled", {"used": 110, "n": 131})
    assert found.summary().endswith(f"{note.text} Pass most= for another number, 8,192 at most.")
    assert found.summary("terminal").endswith(note.text)  # the command has no such option
    assert found.to_dict()["notes"] == [note.to_dict()]
    assert vm.rarefy(ROWS, most=10, repeats=2).used == 131  # features have no need of it
    with pytest.raises(InputError, match=r"131 samples; expected sizes up to 110. 110 of them are worked on"):
        vm.rarefy(KERNEL, "precomputed", most=110, sizes=[120])
    counted = vm.rarefy(KERNEL, "precomputed", counts=np.full(131, 2), most=100, repeats=2)
    assert (counted.n, counted.used) == (262, 100)
    weighted = vm.rarefy(KERNEL, "precomputed", weights=np.full(131, 1 / 131), most=100, repeats=2)
    assert weighted.used == 100
    assert math.isnan(weighted.truncated_score)


def test_repeatable() -> None:
    first, same, other = (vm.rarefy(ROWS, repeats=2, rng=rng) for rng in (4, 4, 5))
    assert (first.scores == same.scores).all()
    assert first.population == same.population
    assert (first.scores[:-1] != other.scores[:-1]).all()
    assert first.population != other.population


# --------------------------------------------------------------------------------------------------- input and output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"groups": 10}, "groups=10; expected one of 8, 12, 20"),
        ({"repeats": 0}, "repeats=0"),
        ({"confidence": 95}, "confidence=95; expected a probability"),
        ({"sizes": [10, 500]}, "sizes go up to 500 and there are 131 samples"),
        ({"sizes": 5}, "sizes=5; expected a list"),
        ({"sizes": []}, "expected a list of whole numbers"),
        ({"sizes": [2.5]}, "sizes=2.5; expected a whole number"),
        ({"q": [1, 2]}, "is not an order"),
        ({"t": 0}, "t=0"),
        ({"most": 10_000}, "most=10000; expected 8,192"),
        ({"rng": -1}, "rng=-1"),
        ({"weights": np.ones(131)}, "weights sum to 131"),
        ({"counts": [1, 2]}, "counts has 2 entries"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        vm.rarefy(ROWS, **options)


def test_odd_collections() -> None:
    with pytest.raises(EmptyError):
        vm.rarefy([])
    one = vm.rarefy([[1.0, 2.0]])
    assert one.sizes.tolist() == [1]
    assert one.scores.tolist() == [1.0]
    assert one.population.interval is None
    alike = vm.rarefy(np.ones((200, 3)))
    assert alike.population.interval is None
    assert alike.population.refused is not None
    assert alike.population.refused.kind == "no-spread"
    few = vm.rarefy(ROWS[:60])
    assert few.population.refused is not None
    assert few.population.refused.kind == "too-few-samples"
    assert few.population.refused.values == {"n": 60, "groups": 20, "needed": 100}
    assert few.growth > 0
    with pytest.raises(InputError, match="not positive semidefinite"):
        vm.rarefy([[1, 0.9, 0], [0.9, 1, 0.9], [0, 0.9, 1]], "precomputed")


def test_result_is_frozen_and_plain() -> None:
    found = vm.rarefy(ROWS, repeats=3)
    with pytest.raises(AttributeError):
        found.growth = 1.0  # type: ignore[misc]
    for array in (found.sizes, found.scores, found.low, found.high, found.truncated):
        assert not array.flags.writeable
    told = json.loads(json.dumps(found.to_dict()))
    assert told["population"]["interval"] == list(found.population.interval or ())
    assert told["score"]["score"] == float(found.score)
    assert told["verdict"] == {"kind": found.verdict, "text": found.verdict_text}
    assert told["scores"] == found.scores.tolist()
    assert told["notes"] == []
    frame = found.to_frame()
    assert list(frame.columns) == ["size", "score", "low", "high", "truncated"]
    assert len(frame) == len(found.sizes) == rarefaction.LADDER
    assert repr(found).startswith("Rarefaction(score=")
    assert str(found) == found.summary()
    assert found.population.summary() in found.summary()
    assert found.population + 1 == pytest.approx(float(found.population) + 1)
    json.dumps(vm.rarefy(ROWS[:5]).to_dict(), allow_nan=False)


def test_html_is_escaped() -> None:
    def named(a: Any, b: Any) -> float:
        return float(a == b)

    named.__name__ = named.__qualname__ = "<script>alert(1)</script>"
    page = vm.rarefy([1, 2, 3] * 10, named)._repr_html_()
    assert "<script>" not in page
    assert "<table>" in page


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"t": 2},
        {"q": 2},
        {"q": "inf"},
        {"weights": np.full(131, 1 / 131)},
        {"counts": np.full(131, 3)},
        {"sizes": [7]},
    ],
)
def test_plot(options: dict[str, Any]) -> None:
    found = vm.rarefy(ROWS, repeats=3, **options)
    drawn_plot = found.plot()
    texts = [text.get_text() for text in drawn_plot.ax_.get_legend().get_texts()]
    assert any("mean" in text for text in texts)
    assert ("population" in " ".join(texts)) == (not math.isnan(found.population))
    assert any("truncated" in text for text in texts) == ("t" in options)
    assert drawn_plot.ax_.get_xscale() == "log"
    drawn_plot.figure_.canvas.draw()
    axes = drawn_plot.figure_.add_subplot()
    assert found.plot(ax=axes).ax_ is axes


@pytest.mark.parametrize("kind", ["narrow", "wide", "matrix", "function", "labels"])
@pytest.mark.parametrize("weighting", [None, "weights", "counts"])
def test_of_a_diversity_it_is_what_it_is_of_its_samples(kind: str, weighting: str | None) -> None:
    samples, kernel = {
        "narrow": (ROWS, "cosine"),
        "wide": (np.hstack([ROWS, np.zeros((131, 200))]), "cosine"),
        "matrix": (KERNEL, "precomputed"),
        "function": (list(ROWS), lambda a, b: float(a @ b)),
        "labels": (np.arange(131) % 9, "match"),
    }[kind]
    numbers = {
        None: {},
        "weights": {"weights": np.arange(131) / 8515},
        "counts": {"counts": np.arange(131) % 4},
    }
    given: dict[str, Any] = numbers[weighting]
    d = vm.Diversity(samples, kernel, rng=3, **given)
    found, expected = d.rarefy(repeats=3), vm.rarefy(samples, kernel, repeats=3, rng=3, **given)
    for name in ("sizes", "scores", "low", "high", "truncated"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
    assert found.population == pytest.approx(expected.population, rel=1e-9, nan_ok=True)
    assert found.score == d.score()
    assert (found.n, found.used, found.t) == (expected.n, expected.used, expected.t)
    assert vm.rarefy(d, repeats=3).scores.tolist() == found.scores.tolist()
