"""The family of the score: each member against a direct dense evaluation of its formula, and what must hold of it."""

from __future__ import annotations

import gzip
import json
import math

import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter.analysis import family
from vendimeter.data.collection import Collection
from vendimeter.errors import EmptyError, InputError, TooLargeError, UnknownNameError
from vendimeter.kernels import RBF, Cosine, Match, NGram, On, Precomputed, RandomFeatures, as_kernel
from vendimeter.solvers import plan as planning
from vendimeter.spectrum.entropy import truncated as truncated_values

ORDERS = [0.5, 1, 2, 4.5, float("inf")]


def rows(n, d, seed=0, mean=0.3):
    return np.random.default_rng(seed).standard_normal((n, d)) + mean


def hill(values, q):
    """The score of eigenvalues, straight from its definition."""
    values = np.asarray(values)
    values = values[values > 1e-14]
    if q == 1:
        return math.exp(-np.sum(values * np.log(values)))
    return 1 / values.max() if math.isinf(q) else float(np.sum(values**q) ** (1 / (1 - q)))


def dense(samples, kernel):
    return as_kernel(kernel).similarity(samples).dense()


def eigenvalues(K, p=None):
    p = np.full(len(K), 1 / len(K)) if p is None else p
    return np.maximum(np.linalg.eigvalsh(np.sqrt(np.outer(p, p)) * K), 0)


TEXTS = ["a b c", "a b d", "a b c", "e f g h", "e f", "x y", "x", "a", "a b", "h"]
PROMPTS = ["p q", "p q", "p r", "p r", "s", "s", "s t", "u", "u", "p q"]
CASES = {
    "narrow rows": (rows(10, 2), "cosine"),
    "wide rows": (rows(10, 30), "cosine"),
    "sparse rows": (TEXTS, NGram(1, 2)),
    "labels": (list("aabbbcdddd"), Match()),
    "pairs": (rows(10, 2), RBF(1.0)),
    "a matrix": (np.corrcoef(rows(10, 30)), Precomputed()),
    "a function": (np.arange(10.0).tolist(), lambda a, b: float(np.exp(-abs(a - b)))),
}
GIVEN = {
    "texts": (PROMPTS, NGram(1, 1)),
    "labels": (PROMPTS, "match"),
    "rows": (rows(10, 2, seed=4), Cosine()),
    "a function": ([0, 0, 0, 1, 1, 1, 2, 2, 2, 2], lambda a, b: float(a == b)),
}
WEIGHTS = np.random.default_rng(3).dirichlet(np.ones(10))


# ------------------------------------------------------------------------------------------------------------- quality


@pytest.mark.parametrize("name", CASES)
def test_quality_times_score(name):
    samples, kernel = CASES[name]
    quality = np.random.default_rng(1).random(10)
    for p in (None, WEIGHTS):
        share = np.full(10, 0.1) if p is None else p
        for q in ORDERS:
            found = family.quality_weighted(samples, quality, kernel, q=q, weights=p)
            expected = (share @ quality) * hill(eigenvalues(dense(samples, kernel), p), q)
            assert found == pytest.approx(expected, rel=1e-9)
            assert found.quality == pytest.approx(share @ quality)
            assert found == pytest.approx(found.quality * found.score, rel=1e-15)
            assert found.bounds[0] <= expected * (1 + 1e-13)
            assert expected <= found.bounds[1] * (1 + 1e-13)


def test_quality_with_counts_and_columns():
    counted = family.quality_weighted(["a", "b"], [1.0, 0.0], "match", counts=[3, 1])
    assert counted.quality == 0.75
    assert counted.score.n == 4
    table = {"colour": ["r", "g", "b"], "stars": [1, 2, 3]}
    assert family.quality_weighted(table, "stars", On("colour", Match())) == pytest.approx(6)
    read = Collection(["r", "g", "b"], columns={"stars": np.array([1.0, 2.0, 3.0])})
    assert family.quality_weighted(read, "stars", "match") == pytest.approx(6)
    with pytest.raises(UnknownNameError, match=r"no column 'star'.*'stars'"):
        family.quality_weighted(read, "star", "match")


@pytest.mark.parametrize(
    ("quality", "message"),
    [
        ([1.0, 2.0], "quality has 2 entries and there are 3 items"),
        ([1.0, -2.0, 1.0], r"quality\[1\] is -2"),
        ([1.0, math.nan, 1.0], r"quality\[1\] is nan"),
        ([0.0, 0.0, 0.0], "quality is 0 for every item"),
        (None, "quality is None; expected numbers"),
        (["good", "bad", "ugly"], "expected numbers, one an item"),
    ],
)
def test_bad_quality(quality, message):
    with pytest.raises(InputError, match=message):
        family.quality_weighted(["a", "b", "c"], quality, "match")


# ---------------------------------------------------------------------------------------------------------- truncation


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("t", [1, 2, 5, 10, 40])
def test_the_truncated_score(name, t):
    samples, kernel = CASES[name]
    for p in (None, WEIGHTS):
        values = np.sort(eigenvalues(dense(samples, kernel), p))[::-1][:t]
        spread = values + (1 - values.sum()) / len(values)
        for q in ORDERS:
            found = family.truncated(samples, t, kernel, q=q, weights=p)
            expected = hill(spread, q)
            assert found == pytest.approx(expected, rel=1e-7 if q < 1 else 1e-10)
            assert found.bounds[0] <= expected * (1 + 1e-12)
            assert expected <= found.bounds[1] * (1 + 1e-12)
            assert found.n == 10
            assert found.q == q
            if t == 40:
                assert found == pytest.approx(float(vm.score(samples, kernel, q=q, weights=p)), rel=1e-9)


def test_truncation_brings_eigenvalues_no_further_apart():
    rng = np.random.default_rng(0)
    for _ in range(300):
        m, t = rng.integers(2, 12, size=2)
        left, right = (np.sort(rng.dirichlet(np.full(m, 0.4)))[::-1] for _ in range(2))
        apart = np.linalg.norm(truncated_values(left, t) - truncated_values(right, t))
        assert apart <= np.linalg.norm(left - right) + 1e-14


def test_the_truncated_score_comes_to_rest_before_the_score_does():
    data = rows(1200, 40, mean=0.0) * np.arange(1, 41) ** -0.3
    grown = [float(vm.score(data[:n], RBF(1.0))) for n in (100, 400)]
    rest = [float(family.truncated(data[:n], 10, RBF(1.0))) for n in (100, 400)]
    assert grown[1] > 2 * grown[0]
    assert rest[1] == pytest.approx(rest[0], rel=0.1)


def test_truncation_needs_all_eigenvalues(monkeypatch):
    monkeypatch.setattr(planning, "EXACT_SIDE", 50)
    monkeypatch.setattr(planning, "DENSE_LIMIT", 60)
    with pytest.raises(TooLargeError, match=r"eigenvalues of all 80 items.*random sample"):
        family.truncated(rows(80, 3), 5, RBF(1.0))
    assert family.truncated(rows(80, 3), 5, "cosine") <= 3


@pytest.mark.parametrize("t", [0, -1, 2.5, "3", None, True])
def test_bad_t(t):
    with pytest.raises(InputError, match=r"t=.*expected a whole number from 1 up"):
        family.truncated(["a", "b"], t, "match")


# ----------------------------------------------------------------------------------------------- answers given prompts


@pytest.mark.parametrize("other", GIVEN)
@pytest.mark.parametrize("name", CASES)
def test_conditional_and_information_are_what_their_formulas_say(name, other):
    (samples, kernel), (given, given_kernel) = CASES[name], GIVEN[other]
    X, T = dense(samples, kernel), dense(given, given_kernel)
    for p in (None, WEIGHTS):
        for q in (0.5, 1, 2, float("inf")):
            joint, alone, prompts = (hill(eigenvalues(K, p), q) for K in (X * T, X, T))
            found = family.conditional(samples, given, kernel, given_kernel, q=q, weights=p)
            shared = family.information(samples, given, kernel, given_kernel, q=q, weights=p)
            near = 1e-6 if q < 1 else 1e-9
            assert found == pytest.approx(joint / prompts, rel=near)
            assert shared == pytest.approx(alone * prompts / joint, rel=near)
            assert found.joint == pytest.approx(joint, rel=near)
            assert found.given == pytest.approx(prompts, rel=near)
            assert shared.samples == pytest.approx(alone, rel=near)
            for figure, expected in ((found, joint / prompts), (shared, alone * prompts / joint)):
                assert figure.level == "deterministic"
                assert figure.confidence == 1
                assert figure.bounds[0] * (1 - 1e-12) <= max(expected, 1 if figure is found else 0)
                assert expected <= figure.bounds[1] * (1 + 1e-12)
                assert figure.bounds[0] <= figure <= figure.bounds[1]
            assert found >= 1 - 1e-12
            assert found * found.given == pytest.approx(float(found.joint), rel=1e-12)
            assert shared <= min(shared.samples, shared.given) * (1 + 1e-12)
            if q == 1:
                assert shared >= 1 - 1e-12
                assert found * shared == pytest.approx(float(vm.score(samples, kernel, weights=p)), rel=1e-9)


@pytest.mark.parametrize("q", ORDERS)
def test_answers_that_the_prompts_settle_and_those_that_ignore_them(q):
    prompts = list("aabbbc")
    settled = family.conditional([p.upper() for p in prompts], prompts, "match", q=q)
    assert settled == pytest.approx(1, rel=1e-12)
    shared = family.information([p.upper() for p in prompts], prompts, "match", q=q)
    assert shared == pytest.approx(float(vm.score(prompts, "match", q=q)), rel=1e-12)
    # Every answer of four to every prompt of three: a product of the two.
    answers, asked = [a for _ in "xyz" for a in "kkmn"], [p for p in "xyz" for _ in "kkmn"]
    free = family.conditional(answers, asked, "match", q=q)
    assert free == pytest.approx(float(vm.score(list("kkmn"), "match", q=q)), rel=1e-12)
    assert family.information(answers, asked, "match", q=q) == pytest.approx(1, rel=1e-12)


def test_counts_are_those_of_pairs():
    answers, prompts, counts = ["yes", "no", "red"], ["s", "s", "c"], [3, 1, 2]
    repeated = np.repeat(np.arange(3), counts)
    found = family.conditional(answers, prompts, "match", counts=counts)
    assert found == pytest.approx(
        family.conditional([answers[i] for i in repeated], [prompts[i] for i in repeated], "match")
    )
    assert found.joint.n == 6


def test_prompts_may_be_a_column():
    table = {"answer": ["yes", "no", "red", "red"], "prompt": ["s", "s", "c", "c"]}
    expected = family.conditional(table["answer"], table["prompt"], "match")
    assert expected == pytest.approx(math.sqrt(2))
    assert family.conditional(table, "prompt", On("answer", Match()), "match") == expected
    read = Collection(table["answer"], columns=table)
    assert family.conditional(read, "prompt", "match") == expected
    assert family.information(read, Collection(table["prompt"]), "match") == pytest.approx(2)
    with pytest.raises(UnknownNameError, match=r"no column 'prompts'.*'prompt'"):
        family.conditional(read, "prompts", "match")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table)
    assert family.conditional(frame["answer"], frame["prompt"], "match") == expected
    with pytest.raises(InputError, match="the index of given"):
        family.conditional(frame["answer"], frame["prompt"][::-1], "match")


def test_a_function_is_called_once_for_each_pair():
    calls = [0]

    def same(a, b):
        calls[0] += 1
        return float(a == b)

    family.information(list("aab"), list("xyy"), "match", same)
    assert calls[0] <= 12  # nine pairs, and three of the diagonal


def test_features_that_multiply_stay_features():
    found = family.conditional(rows(40, 3), rows(40, 4, seed=2))
    assert found.joint.method == "gram"
    assert len(found.joint.spectrum.eigenvalues) == 12
    labels = family.conditional(
        sparse.csr_array(np.eye(5)[[0, 1, 2, 3, 4, 0]]), list("aabbcc"), "cosine", "match"
    )
    assert labels == pytest.approx(2)  # six different pairs, three prompts


def test_arrays_of_every_library(library):
    data, other = rows(20, 3), rows(20, 2, seed=5)
    here = family.conditional(data, other, "cosine", RBF(1.0))
    there = family.conditional(library.array(data), library.array(other), "cosine", RBF(1.0))
    assert there == pytest.approx(float(here), rel=1e-9)
    assert family.truncated(library.array(data), 2) == pytest.approx(
        float(family.truncated(data, 2)), rel=1e-9
    )
    good = np.linspace(0, 1, 20)
    assert family.quality_weighted(library.array(data), good) == pytest.approx(
        float(family.quality_weighted(data, good)), rel=1e-9
    )


def test_a_tolerance_is_that_of_each_score(monkeypatch):
    monkeypatch.setattr(planning, "EXACT_WITH_TOL", 50)
    data, labels = rows(400, 6, mean=0.0), np.arange(400) % 7
    rough = family.conditional(data, labels, RBF(1.0), "match", tol=0.02)
    exact = family.conditional(data, labels, RBF(1.0), "match")
    assert rough.joint.method in ("lanczos", "lowrank")
    assert rough.level == rough.joint.level
    assert rough.bounds[0] <= exact <= rough.bounds[1]
    assert rough.bounds[1] - rough.bounds[0] < 0.1 * exact


def test_a_kernel_that_stands_in_for_another_claims_nothing():
    found = family.conditional(rows(20, 3), list("ab" * 10), RandomFeatures(RBF(1.0), 16), "match")
    assert found.level == "none"
    assert math.isnan(found.confidence)
    assert math.isnan(found.bounds[0])
    assert found > 1
    assert math.isnan(
        family.quality_weighted(rows(20, 3), np.ones(20), RandomFeatures(RBF(1.0), 16)).bounds[1]
    )
    assert family.truncated(rows(20, 3), 3, RandomFeatures(RBF(1.0), 16)).level == "none"


def test_bad_pairs():
    with pytest.raises(
        InputError, match="there are 2 samples and 3 of what was given; expected one for each"
    ):
        family.conditional(["a", "b"], ["x", "y", "z"], "match")
    with pytest.raises(EmptyError):
        family.conditional([], [], "match")
    with pytest.raises(InputError, match="given: the items are strings"):
        family.information(rows(2, 3), ["x", "y"])
    with pytest.raises(InputError, match="given: samples is a single text"):
        family.information(["a"], "x", "match")
    with pytest.raises(InputError, match="given: samples is a set, which has no order"):
        family.information(["a", "b"], {"x", "y"}, "match")
    with pytest.raises(InputError, match="is not an order"):
        family.conditional(["a"], ["x"], "match", q=[1, 2])
    with pytest.raises(InputError, match="weights sum to 3"):
        family.conditional(["a", "b"], ["x", "y"], "match", weights=[1, 2])
    with pytest.raises(InputError, match="tol=5"):
        family.conditional(["a", "b"], ["x", "y"], "match", tol=5)
    with pytest.raises(InputError, match="given has weights of its own"):
        family.conditional(["a"], Collection(["x"], weights=np.ones(1)), "match")


def test_figures_are_floats_that_can_be_stored():
    found = family.information(["<b>", "b"], ["x", "y"], "match")
    assert isinstance(found, float)
    assert type(found + 1) is float
    assert repr(found).startswith(
        "Information(2, bounds=(2, 2), level='deterministic', confidence=1, samples=2"
    )
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["joint"]["score"] == pytest.approx(2)
    assert "<b>" not in found._repr_html_()
    with pytest.raises(AttributeError):
        found.joint = 3
    assert found.joint.diagnostics["kernel"] == "On('samples', Match())*On('given', Match())"


def test_vm_family_is_this_module():
    assert vm.family is family


# ---------------------------------------------------------------------------------------------------- of a `Diversity`

WEIGHTINGS = [{}, {"weights": WEIGHTS}, {"counts": [3, 1, 2, 1, 1, 4, 1, 1, 2, 1]}]


@pytest.mark.parametrize("options", WEIGHTINGS, ids=["uniform", "weights", "counts"])
@pytest.mark.parametrize("name", CASES)
def test_of_a_diversity_they_are_what_they_are_of_its_samples(name, options):
    (samples, kernel), (given, given_kernel) = CASES[name], GIVEN["texts"]
    quality = np.arange(10.0)
    d = vm.Diversity(samples, kernel, **options)
    found = [
        family.quality_weighted(d, quality, q=2),
        family.truncated(d, 3),
        family.conditional(d, given, q=2) if name == "labels" else None,
        family.conditional(d, given, given_kernel=given_kernel),
        family.information(d, vm.Diversity(given, given_kernel), q=2),
    ]
    expected = [
        family.quality_weighted(samples, quality, kernel, q=2, **options),
        family.truncated(samples, 3, kernel, **options),
        family.conditional(samples, given, kernel, q=2, **options) if name == "labels" else None,
        family.conditional(samples, given, kernel, given_kernel, **options),
        family.information(samples, given, kernel, given_kernel, q=2, **options),
    ]
    for one, other in zip(found, expected, strict=True):
        assert one == (None if other is None else pytest.approx(float(other), rel=1e-9))
    assert found[0].score == d.score(2)
    assert found[3].joint.n == expected[3].joint.n


def test_a_function_is_called_once_a_pair_for_the_family_and_all_others():
    calls = [0]

    def near(a, b):
        calls[0] += 1
        return float(np.exp(-abs(a - b)))

    samples = np.random.default_rng(0).random(80) * 5
    d = vm.Diversity(samples, near)
    d.rarefy()
    once = calls[0]
    assert once <= 80 * 81 // 2 + 1024
    d.reweight(), family.truncated(d, 5), family.quality_weighted(d, np.ones(80)), d.score(2)
    family.conditional(d, np.arange(80) % 3, given_kernel="match")
    family.information(d, vm.Diversity(np.arange(80) % 3, "match"))
    assert calls[0] == once


def test_columns_are_those_of_the_samples_of_a_diversity():
    table = {"answer": ["yes", "no", "red", "red"], "prompt": ["s", "s", "c", "c"], "stars": [1, 2, 3, 4]}
    read = Collection(table["answer"], columns=table)
    for d in (vm.Diversity(table, On("answer", Match())), vm.Diversity(read, "match")):
        assert family.conditional(d, "prompt", given_kernel="match") == pytest.approx(math.sqrt(2))
        assert family.quality_weighted(d, "stars").quality == 2.5
        assert family.quality_weighted(d.take([0, 3]), "stars").quality == 2.5
    with pytest.raises(UnknownNameError, match=r"no column 'star'.*'stars'"):
        family.quality_weighted(d, "star")


def test_all_eigenvalues_are_taken_whatever_the_solver_is_content_with():
    data = rows(100, 3)
    for solver in (vm.Solver(method="lowrank", tol=0.1), vm.Solver(method="lanczos"), vm.Solver(tol=0.3)):
        d = vm.Diversity(data, RBF(1.0), solver=solver)
        d.score()
        assert family.truncated(d, 5) == pytest.approx(float(family.truncated(data, 5, RBF(1.0))), rel=1e-9)


def test_what_belongs_to_a_diversity_is_refused_beside_it():
    d = vm.Diversity(["a", "b"], "match")
    with pytest.raises(InputError, match="kernel= was given beside a Diversity"):
        family.truncated(d, 2, "match")
    with pytest.raises(InputError, match="weights= was given beside a Diversity"):
        family.conditional(d, d, weights=[0.5, 0.5])
    with pytest.raises(InputError, match="given: kernel= was given beside a Diversity"):
        family.conditional(["a", "b"], d, "match", "match")
    with pytest.raises(InputError, match="given has weights of its own"):
        family.information(["a", "b"], vm.Diversity(["a", "b"], "match", counts=[1, 2]), "match")


# ---------------------------------------------------------------------------------------------------------- real data


def test_answers_of_a_language_model(shared_data):
    path = shared_data / "text" / "noveltybench_curated_gemini15pro.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        records = [json.loads(line) for line in lines][:30]
    answers = [answer for record in records for answer in record["generations"]]
    prompts = [record["prompt"] for record in records for _ in record["generations"]]
    kernel = NGram(1, 2)
    found = family.conditional(answers, prompts, kernel)
    shared = family.information(answers, prompts, kernel)
    assert 1 < found < found.joint
    assert found * shared == pytest.approx(float(shared.samples), rel=1e-9)
    assert shared > 3 * found  # most of the diversity is that of the prompts
    # Prompts that are like themselves alone: the geometric mean of the scores of the answers to each.
    apart = family.conditional(answers, prompts, kernel, "match")
    scores = vm.score_groups(answers, kernel, by=prompts).scores
    assert apart == pytest.approx(math.exp(np.log(scores).mean()), rel=1e-9)


def test_a_factor_that_is_no_similarity_is_found_even_where_the_product_is_one():
    K = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    with pytest.raises(vm.errors.IndefiniteError):
        vm.family.conditional(K, list("abc"), "precomputed", "match")
