"""Hill numbers, modes, Inception Score, Jensen–Shannon diversity: against mpmath, scikit-bio, torchmetrics, SciPy."""

from __future__ import annotations

import itertools
import math
import warnings
from collections import Counter

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, special
from scipy.spatial.distance import jensenshannon

import vendimeter as vm
from vendimeter.errors import EmptyError, InputError, TooLargeError
from vendimeter.metrics import classes
from vendimeter.metrics.classes import (
    hill,
    inception_score,
    jensen_shannon_diversity,
    mode_diversity,
    number_of_modes,
)
from vendimeter.metrics.similarities import leinster_cobbold


def exact_hill(counts, q):
    """The definition, with fifty digits."""
    with mpmath.workdps(50):
        total = mpmath.fsum(map(mpmath.mpf, counts))
        p = [mpmath.mpf(x) / total for x in counts if x > 0]
        if q == math.inf:
            return float(1 / max(p))
        if q == 1:
            return float(mpmath.exp(-mpmath.fsum(x * mpmath.log(x) for x in p)))
        return float(mpmath.fsum(x ** mpmath.mpf(q) for x in p) ** (1 / (1 - mpmath.mpf(q))))


def rows_of(n, width, seed=0, sharp=2.0):
    return special.softmax(sharp * np.random.default_rng(seed).standard_normal((n, width)), axis=1)


def entropy(p):
    return -special.xlogy(p, p).sum(axis=-1)


def weighted_diversity(rows):
    """With weights that differ, as many as there are rows."""
    return jensen_shannon_diversity(rows, weights=np.arange(1, 32) / 496)


def direct_score(p):
    """exp of the mean divergence, as it is written."""
    return math.exp(special.rel_entr(p, p.mean(axis=0)).sum(axis=1).mean())


# ------------------------------------------------------------------------------------------------------- Hill numbers


@pytest.mark.parametrize(("q", "expected"), [(0, 3), (1, 2 * math.sqrt(2)), (2, 8 / 3), ("inf", 2)])
def test_hill_by_hand(q, expected):
    assert hill([2, 1, 1, 0], q=q) == pytest.approx(expected, rel=1e-15)
    assert isinstance(hill([2, 1], q=q), float)


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=12).filter(any),
    st.one_of(
        st.sampled_from([0, 0.5, 1, 1 - 1e-9, 1 + 1e-14, 1.5, 1.9999, 2, 3, 17, 1e3, 1e6, math.inf]),
        st.floats(0, 4),
    ),
)
def test_hill_against_fifty_digits(counts, q):
    assert hill(counts, q=q) == pytest.approx(exact_hill(counts, q), rel=1e-13)
    assert 1 - 1e-12 <= hill(counts, q=q) <= np.count_nonzero(counts) * (1 + 1e-12)


@pytest.mark.parametrize("q", [1.4, 1.7, 1.99])
def test_hill_of_many_species(q):
    assert hill(np.ones(10**6), q=q) == pytest.approx(1e6, rel=2e-12)


@pytest.mark.parametrize("q", [1.5, 1.6, 2, 3, 50])
def test_hill_is_never_above_the_number_of_species(q):
    assert all(hill([1.0] * n + [0.0], q=q) <= n for n in range(1, 60))


def test_hill_of_extreme_abundances():
    assert hill([1e308, 1e308, 1e308], q=2) == pytest.approx(3)
    assert hill([5e-324, 5e-324], q=1) == pytest.approx(2)
    assert hill([1e308, 5e-324], q=0) == 2


def test_sites_and_orders():
    table = np.array([[2, 1, 1, 0], [5, 5, 5, 5], [0, 0, 7, 0]])
    expected = np.array([[exact_hill(row.tolist(), q) for q in (0, 1, math.inf)] for row in table])
    for given_ in (
        table,
        table.tolist(),
        table.astype(np.float16),
        np.asfortranarray(table),
        sparse.csr_array(table),
        sparse.coo_array(table),
        pd.DataFrame(table),
        pl.DataFrame(table),
    ):
        np.testing.assert_allclose(hill(given_, q=[0, 1, "inf"]), expected, rtol=1e-14)
        np.testing.assert_allclose(hill(given_, q=1), expected[:, 1], rtol=1e-14)
    assert hill(table[0], q=[0, 1]).shape == (2,)
    assert hill(table[:1], q=[0, 1]).shape == (1, 2)
    assert hill([True, True, False], q=1) == pytest.approx(2)


def test_hill_of_mappings_and_columns():
    letters = Counter("abracadabra")
    expected = exact_hill(letters.values(), 1)
    for given_ in (letters, list(letters.values()), pd.Series(letters), pl.Series(list(letters.values()))):
        assert hill(given_) == pytest.approx(expected, rel=1e-14)
    assert hill(pa.array(list(letters.values()))) == pytest.approx(expected, rel=1e-14)


def test_hill_on_every_library(library):
    table = np.array([[2.0, 1.0, 1.0, 0.0], [5.0, 5.0, 5.0, 5.0]])
    np.testing.assert_allclose(hill(library.array(table), q=2), [8 / 3, 4])
    assert hill(library.array(table[0]), q=2) == pytest.approx(8 / 3)


def test_hill_in_blocks(monkeypatch):
    table = np.random.default_rng(0).integers(0, 9, (7, 5)) + 1
    expected = hill(table, q=[0, 1.7])
    monkeypatch.setattr(classes, "BLOCK_BYTES", 3 * 5 * 8)  # three rows, the last by itself
    assert np.array_equal(hill(table, q=[0, 1.7]), expected)
    table[6] = 0
    with pytest.raises(EmptyError, match="row 6 of samples holds only zeros"):
        hill(table)
    table[6, 2] = -1
    with pytest.raises(InputError, match=r"samples\[6, 2\] is -1"):
        hill(table)


def scikit_bio():
    """Its functions of one community; it leaves JAX in 64-bit mode when it is imported, where other tests look."""
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    try:
        return pytest.importorskip("skbio.diversity.alpha")
    finally:
        jax.config.update("jax_enable_x64", before)


def test_scikit_bio_agrees_and_where_it_does_not():
    alpha = scikit_bio()
    counts = np.random.default_rng(3).integers(0, 50, 200)
    for q in (0, 0.5, 1, 1.5, 2, 5, math.inf):
        assert hill(counts, q=q) == pytest.approx(alpha.hill(counts, order=q), rel=1e-12)
        alone = leinster_cobbold(np.arange(200), "match", q=q, counts=counts)
        assert alone == pytest.approx(alpha.hill(counts, order=q), rel=1e-12)
    assert hill(counts, q=0) == alpha.sobs(counts)
    assert hill(counts, q=2) == pytest.approx(alpha.inv_simpson(counts), rel=1e-13)
    assert math.log(hill(counts)) == pytest.approx(alpha.shannon(counts, base=math.e), rel=1e-13)
    assert 1 / hill(counts, q="inf") == pytest.approx(alpha.berger_parker_d(counts), rel=1e-13)
    few = np.array([1, 2, 3, 4])
    near = 1 + 1e-14
    assert hill(few, q=near) == pytest.approx(exact_hill(few.tolist(), near), rel=1e-14)
    assert abs(alpha.hill(few, order=near) - exact_hill(few.tolist(), near)) > 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert alpha.hill(few, order=2000) == math.inf
        assert math.isnan(alpha.hill(np.array([0, 0]), order=1))
    assert hill(few, q=2000) == pytest.approx(exact_hill(few.tolist(), 2000), rel=1e-13)


@pytest.mark.parametrize(("samples", "message"), [
    ([1, -1], r"samples\[1\] is -1; expected a finite count"),
    ([1.0, math.nan], r"samples\[1\] is nan"),
    ([[1.0, 2.0], [math.inf, 1.0]], r"samples\[1, 0\] is inf"),
    ([0, 0], "samples holds only zeros"),
    ([], "empty"),
    ({}, "empty"),
    ([[]], "empty"),
    (["a", "b"], "Count labels first"),
    ("abc", "samples is 'abc'"),
    (None, "samples is None"),
    (3, "samples is 3"),
    ([[1, 2], [3]], "different lengths"),
    ([[[1]]], r"shape \(1, 1, 1\)"),
    ([1, None], "dtype object"),
    ([1j, 2], "dtype complex128"),
    (np.ma.array([1, 2], mask=[True, False]), "masked"),
    ({"a": [1, 2], "b": [3, 4]}, r"samples\['a'\] is \[1, 2\]"),
    ({1, 2}, "samples is a set"),
    (pd.DataFrame(), "empty"),
    (pd.DataFrame(index=range(3)), "empty"),
    (pd.DataFrame({"a": []}), "empty"),
    (np.array([1, np.longdouble("1e400")]), r"samples\[1\] is inf"),
    (pl.DataFrame({"a": ["x"]}), "a"),
])  # fmt: skip
def test_what_hill_cannot_use(samples, message):
    with pytest.raises(InputError, match=message):
        hill(samples)


@pytest.mark.parametrize("q", [-1, math.nan, None, [], [1, 1], "two"])
def test_orders_that_are_none(q):
    with pytest.raises(InputError, match="q"):
        hill([1, 2], q=q)


# -------------------------------------------------------------------------------------------------------------- modes


def test_modes_by_hand():
    rows = [[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.8, 0.1, 0.1], [0.5, 0.5, 0.0]]
    assert number_of_modes(rows) == 2
    assert number_of_modes(rows, least=2) == 1
    assert number_of_modes(rows, least=5) == 0
    assert type(number_of_modes(rows)) is int
    mean = np.mean(rows, axis=0)
    assert mode_diversity(rows) == pytest.approx(math.exp(entropy(mean)), rel=1e-15)
    assert mode_diversity([[0, 1, 0]]) == 1
    assert mode_diversity(np.eye(5)) == pytest.approx(5)


@pytest.mark.parametrize("labels", [
    ["a", "b", "a", "c"],
    ("a", "b", "a", "c"),
    np.array(["a", "b", "a", "c"]),
    np.array(["a", "b", "a", "c"], dtype=object),
    np.array([3, 7, 3, -1]),
    np.array([3, 7, 3, 250], dtype=np.uint8),
    [3, 7, 3, 10**30],
    [1, "1", 1, b"1"],
    pd.Series(["a", "b", "a", "c"]),
    pd.Categorical(["a", "b", "a", "c"]),
    pl.Series([3, 7, 3, -1]),
    pa.array(["a", "b", "a", "c"]),
])  # fmt: skip
def test_labels(labels):
    assert number_of_modes(labels) == 3
    assert number_of_modes(labels, least=2) == 1
    assert mode_diversity(labels) == pytest.approx(2 * math.sqrt(2), rel=1e-14)
    assert mode_diversity(labels, weights=[0, 0.5, 0, 0.5]) == pytest.approx(2)


def test_truth_values_are_labels():
    assert number_of_modes([True, False, True]) == 2
    assert number_of_modes(np.array([True, True])) == 1


def test_classes_are_ranked_as_given():
    """Two probabilities may have one square root: the larger is the prediction all the same."""
    below, above = 0.45, np.nextafter(0.45, 1)
    assert np.sqrt(below) == np.sqrt(above)
    rows = np.array([[below, above, 0.1], [above, below, 0.1]])
    assert number_of_modes(rows) == 2


def test_several_classifiers():
    """The joint distribution of the channels, as for the digits of Stacked MNIST."""
    stack = np.stack([rows_of(40, 4, seed) for seed in range(3)], axis=1)
    joint = np.einsum("ia,ib,ic->iabc", *np.moveaxis(stack, 1, 0)).reshape(40, -1)
    assert number_of_modes(stack) == len({tuple(row) for row in stack.argmax(axis=2).tolist()})
    assert number_of_modes(stack) == len(set(joint.argmax(axis=1)))
    assert mode_diversity(stack) == pytest.approx(math.exp(entropy(joint.mean(axis=0))), rel=1e-13)
    assert inception_score(stack, splits=1) == pytest.approx(direct_score(joint), rel=1e-13)
    wide = np.full((2, 8, 10), 0.1)
    assert number_of_modes(wide) == 1
    for metric in (mode_diversity, inception_score):
        with pytest.raises(TooLargeError, match="100,000,000 joint classes"):
            metric(wide)


def test_logits_and_every_library(library):
    logits = 3 * np.random.default_rng(1).standard_normal((30, 6)).astype(np.float32)
    rows = special.softmax(logits.astype(np.float64), axis=1)
    given_ = library.array(logits)
    assert number_of_modes(given_, logits=True) == len(set(logits.argmax(axis=1)))
    assert mode_diversity(given_, logits=True) == pytest.approx(
        math.exp(entropy(rows.mean(axis=0))), rel=1e-12
    )
    score = inception_score(library.array(rows), splits=2, rng=None)
    expected = (direct_score(rows[:15]) + direct_score(rows[15:])) / 2
    assert score == pytest.approx(expected, rel=1e-12)
    narrow = inception_score(library.array(rows.astype(np.float32)), splits=2, rng=None)
    assert narrow == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "metric", [number_of_modes, mode_diversity, inception_score, jensen_shannon_diversity, weighted_diversity]
)
def test_blocks_change_nothing(metric, monkeypatch):
    rows = rows_of(31, 7)
    before = rows.copy()
    expected = metric(rows)
    assert metric(sparse.csr_array(rows)) == pytest.approx(expected, rel=1e-14)
    assert metric(rows.tolist()) == expected
    assert metric(pd.DataFrame(rows).to_numpy(dtype=np.float16)) == pytest.approx(expected, rel=1e-3)
    for each in (1, 3, 10):
        monkeypatch.setattr(classes, "BLOCK_BYTES", each * 7 * 8)
        assert metric(rows) == pytest.approx(expected, rel=1e-14)
    assert np.array_equal(rows, before)


def test_weights():
    rows = rows_of(5, 3)
    share = np.array([0.1, 0.2, 0.0, 0.3, 0.4])
    assert mode_diversity(rows, weights=share) == pytest.approx(math.exp(entropy(share @ rows)), rel=1e-14)
    with pytest.raises(InputError, match="5 items"):
        mode_diversity(rows, weights=[0.5, 0.5])
    with pytest.raises(InputError, match="sum to"):
        mode_diversity(rows, weights=np.ones(5))


# ---------------------------------------------------------------------------------------------------- Inception Score


def test_inception_score_by_hand():
    assert inception_score(np.eye(4), splits=1) == pytest.approx(4)
    assert inception_score(np.full((6, 3), 1 / 3), splits=2) == 1
    score = inception_score([[1, 0], [1, 0], [0, 1], [0, 1]], splits=2, rng=None)
    assert score == 1  # sorted by class, each split has one
    assert score.splits.tolist() == [1, 1]
    assert inception_score([[1, 0], [1, 0], [0, 1], [0, 1]], splits=1) == pytest.approx(2)
    assert inception_score([[0.3, 0.7]], splits=1) == 1


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 100), st.data())
def test_inception_score_against_its_formula(n, width, seed, data):
    splits = data.draw(st.integers(1, n))
    rows = rows_of(n, width, seed)
    rows[seed % n] = np.eye(width)[seed % width]
    score = inception_score(rows, splits=splits, rng=None)
    cuts = [i * n // splits for i in range(splits + 1)]
    parts = [rows[a:b] for a, b in itertools.pairwise(cuts)]
    assert sum(map(len, parts)) == n
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    np.testing.assert_allclose(score.splits, [direct_score(block) for block in parts], rtol=1e-13)
    assert score == pytest.approx(score.splits.mean())
    assert score.std == pytest.approx(score.splits.std())
    shuffled = inception_score(rows, splits=splits)
    assert 1 <= shuffled <= width
    assert 1 <= score <= width


def test_the_shuffle():
    rows = np.repeat(np.eye(10), 50, axis=0)
    assert inception_score(rows, rng=None) == 1
    first, again, other = (inception_score(rows, rng=seed) for seed in (0, 0, 1))
    assert 8.5 < first < 10
    assert first == again != other
    assert np.array_equal(first.splits, again.splits)
    assert repr(first).startswith("InceptionScore(9.")
    assert first.to_dict().keys() == {"value", "std", "splits", "n"}
    assert first.n == 500


def test_torchmetrics_agrees_where_its_chunks_are_even(monkeypatch):
    pytest.importorskip("torchmetrics")
    torch = pytest.importorskip("torch")
    from torchmetrics.image.inception import InceptionScore as Theirs

    logits = 3 * np.random.default_rng(0).standard_normal((60, 9))
    metric = Theirs.__new__(Theirs)
    torch.nn.Module.__init__(metric)

    def theirs(given_, splits):
        metric.features, metric.splits = [torch.tensor(given_)], splits
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it has no standard deviation of one split
            return [float(x) for x in Theirs.compute(metric)]

    monkeypatch.setattr(torch, "randperm", torch.arange)
    score = inception_score(logits, splits=6, logits=True, rng=None)
    value, std = theirs(logits, 6)
    assert score == pytest.approx(value, rel=1e-12)
    assert score.std * math.sqrt(6 / 5) == pytest.approx(std, rel=1e-9)
    # 12 samples in 10 chunks become 6 of 2; here they are 10 of 1 or 2.
    assert len(torch.zeros(12).chunk(10)) == 6
    assert len(inception_score(logits[:12], splits=10, logits=True).splits) == 10
    # A class that is ruled out throughout: 0 log 0 is 0.
    logits[:, 0] = -np.inf
    assert math.isnan(theirs(logits, 1)[0])
    expected = direct_score(special.softmax(logits, axis=1))
    assert inception_score(logits, splits=1, logits=True) == pytest.approx(expected, rel=1e-12)


# --------------------------------------------------------------------------------------------- Jensen–Shannon diversity


def test_diversity_of_an_ensemble_by_hand():
    assert jensen_shannon_diversity(np.eye(4)) == pytest.approx(4, rel=1e-15)
    assert jensen_shannon_diversity(np.full((3, 7), 1 / 7)) == 1
    assert jensen_shannon_diversity([[0.3, 0.7]]) == 1
    shares = np.array([0.5, 0.3, 0.2])
    disjoint = jensen_shannon_diversity(np.eye(3), weights=shares)
    assert disjoint == pytest.approx(math.exp(entropy(shares)), rel=1e-15)
    assert jensen_shannon_diversity([[1, 0], [0, 1], [0, 1]], weights=[1, 0, 0]) == 1
    # A class that nobody has, and members without weight, change nothing.
    padded = [[0.5, 0.5, 0, 0], [0.1, 0.9, 0, 0], [0, 0, 0, 1]]
    unweighted = jensen_shannon_diversity([[0.5, 0.5], [0.1, 0.9]])
    assert jensen_shannon_diversity(padded, weights=[0.5, 0.5, 0]) == pytest.approx(unweighted, rel=1e-15)


def test_distributions_over_more_outcomes_than_joint_classes_are_written_out():
    width = classes.MOST_JOINT + 2
    halves = np.repeat(np.eye(2), width // 2, axis=1) * 2 / width
    assert jensen_shannon_diversity(halves) == pytest.approx(2, rel=1e-9)


def test_divergence_of_two_is_that_of_scipy():
    p, q = rows_of(2, 9, 4)
    assert math.log(jensen_shannon_diversity([p, q])) == pytest.approx(jensenshannon(p, q) ** 2, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_diversity_of_an_ensemble_to_fifty_digits(seed):
    rows, draws = rows_of(6, 5, seed), np.random.default_rng(seed)
    rows[seed] = np.eye(5)[seed]
    shares = draws.dirichlet(np.ones(6))
    with mpmath.workdps(50):
        exact = [[mpmath.mpf(x) for x in row] for row in rows.tolist()]
        exact = [[x / mpmath.fsum(row) for x in row] for row in exact]
        weights = [mpmath.mpf(w) for w in shares.tolist()]
        weights = [w / mpmath.fsum(weights) for w in weights]

        def surprise(row):
            return -mpmath.fsum(x * mpmath.log(x) for x in row if x)

        mean = [mpmath.fsum(w * row[c] for w, row in zip(weights, exact, strict=True)) for c in range(5)]
        within = mpmath.fsum(w * surprise(row) for w, row in zip(weights, exact, strict=True))
        expected = float(mpmath.exp(surprise(mean) - within))
    diversity = jensen_shannon_diversity(rows, weights=shares)
    assert diversity == pytest.approx(expected, rel=1e-14)
    assert diversity <= math.exp(entropy(shares))
    # Holevo's bound: what a measurement tells of an ensemble of states is at most their entropy.
    assert diversity <= vm.score(rows, "probability-product", weights=shares)


def test_diversity_of_an_ensemble_is_an_inception_score(library):
    rows = rows_of(40, 6, 1)
    diversity = jensen_shannon_diversity(library.array(rows))
    assert diversity == pytest.approx(inception_score(rows, splits=1), rel=1e-13)
    uniform = jensen_shannon_diversity(library.array(rows), weights=np.full(40, 1 / 40))
    assert uniform == pytest.approx(diversity, rel=1e-13)
    logits = np.log(rows) + 5
    assert jensen_shannon_diversity(library.array(logits), logits=True) == pytest.approx(diversity, rel=1e-12)


# ---------------------------------------------------------------------------------------------------------- real data


def test_a_classifier_of_real_digits(shared_data):
    linear = pytest.importorskip("sklearn.linear_model")
    with np.load(shared_data / "images" / "mnist_test.npz") as data:
        images, labels = data["images"][:3000].reshape(3000, -1) / 255.0, data["labels"][:3000]
    coarse = images.reshape(3000, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(3000, -1)
    model = linear.LogisticRegression(C=0.1, max_iter=300).fit(coarse[:1000], labels[:1000])
    rows = model.predict_proba(coarse[1000:])
    assert number_of_modes(rows) == 10 == number_of_modes(labels)
    assert mode_diversity(rows) == pytest.approx(math.exp(entropy(rows.mean(axis=0))), rel=1e-13)
    assert 9.7 < mode_diversity(rows) <= 10
    assert 9.7 < mode_diversity(labels) <= 10
    score = inception_score(rows, splits=1)
    assert score == pytest.approx(direct_score(rows), rel=1e-13)
    assert 2 < inception_score(rows) < score < 10  # fewer samples a split, a lower score
    logits = model.decision_function(coarse[1000:])
    assert inception_score(logits, splits=1, logits=True) == pytest.approx(score, rel=1e-6)


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "metric", [number_of_modes, mode_diversity, inception_score, jensen_shannon_diversity]
)
@pytest.mark.parametrize(("samples", "message"), [
    ([[0.5, 0.6]], "item 0 sum to 1.1; expected 1"),
    ([[0.5, 0.5], [1.5, -0.5]], "item 1 holds the probability -0.5.*For logits pass logits=True"),
    ([[math.nan, 1.0]], "item 0 holds the probability nan"),
    ([[1e308, 1e308]], "item 0 sum to inf"),
    ([0.5, 0.5], "probabilities, one row a sample"),
    (np.array([0.5, 0.5]), "probabilities, one row a sample"),
    ([], "empty"),
    (np.empty((0, 3)), "empty"),
    (np.empty((3, 0)), "column"),
    ([[1.0], [0.5, 0.5]], "length"),
    (np.ones((2, 2, 2, 2)), r"shape \(2, 2, 2, 2\)"),
    (None, "samples"),
    ("cat", "samples is the single text 'cat'"),
    ([["a", "b"]], "expected real numbers"),
    (np.ma.array([[1.0]], mask=[[True]]), "masked"),
])  # fmt: skip
def test_what_cannot_be_used(metric, samples, message):
    with pytest.raises(InputError, match=message) as caught:
        metric(samples, **({"splits": 1} if metric is inception_score else {}))
    assert "ProbabilityProduct" not in str(caught.value)


@pytest.mark.parametrize("metric", [number_of_modes, mode_diversity])
@pytest.mark.parametrize(("labels", "message"), [
    (["a", None], "item 1 is missing"),
    ([None, "a"], "item 0 is missing"),
    ([1, math.nan], "item 1 is missing"),
    ([1, 2.5], "item 1 is 2.5"),
    (pd.Series(["a", None]), "item 1 is missing"),
    (np.array([], dtype=int), "empty"),
])  # fmt: skip
def test_labels_that_are_none(metric, labels, message):
    with pytest.raises(InputError, match=message):
        metric(labels)


ROWS = [[0.5, 0.5], [1.0, 0.0]]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: number_of_modes(ROWS, least=0), "least=0; expected a whole number from 1 up"),
    (lambda: number_of_modes(ROWS, logits=1), "logits=1; expected True or False"),
    (lambda: number_of_modes(["a"], logits="no"), "logits='no'"),
    (lambda: mode_diversity(ROWS, logits=None), "logits=None"),
    (lambda: jensen_shannon_diversity(ROWS, logits=None), "logits=None"),
    (lambda: jensen_shannon_diversity(ROWS, weights=[0.5, 0.6]), "weights sum to 1.1; expected probabilities"),
    (lambda: jensen_shannon_diversity(ROWS, weights=[1.0]), "weights has 1 entries and there are 2 items"),
    (lambda: jensen_shannon_diversity(["a", "b"]), "one row a sample"),
    (lambda: inception_score(ROWS, splits=3), "splits=3 and there are 2 samples; expected at least one a split"),
    (lambda: inception_score(ROWS), "splits=10"),
    (lambda: inception_score(ROWS, splits=0), "splits=0"),
    (lambda: inception_score(ROWS, splits=True), "splits=True"),
    (lambda: inception_score(ROWS, splits=1, rng=-1), "rng=-1"),
    (lambda: inception_score(["a", "b"], splits=1), "one row a sample"),
    (lambda: inception_score(np.array([1, 2]), splits=1), "one row a sample"),
    (lambda: inception_score([[math.nan, 1.0]], splits=1, logits=True), "logit nan"),
    (lambda: inception_score([[-math.inf, -math.inf]], splits=1, logits=True), "only logits of −∞"),
])  # fmt: skip
def test_options_that_cannot_be_used(call, message):
    with pytest.raises(InputError, match=message):
        call()
