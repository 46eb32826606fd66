"""Groups side by side: against direct evaluations, enumerations, and real data."""

import gzip
import itertools
import json
import math

import matplotlib
import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter.analysis.comparison import common_size, differences
from vendimeter.analysis.comparison.common_size import Pool
from vendimeter.analysis.comparison.groups import Groups
from vendimeter.data.collection import Collection
from vendimeter.errors import EmptyError, InputError, TooLargeError, UnansweredError, UnknownNameError
from vendimeter.similarity import FeatureRows, Matrix, Pairwise

matplotlib.use("Agg")

ORDERS = (0, 0.5, 1, 1.0001, 2, 3, 40, math.inf)


def noted(found):
    """The notes of a comparison, or of differences: kind → values."""
    return {note.kind: dict(note.values) for note in found.notes}


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def some(n, d, seed=0, decay=0.5):
    return unit(np.random.default_rng(seed).standard_normal((n, d)) * np.arange(1.0, d + 1) ** -decay)


def hill(values, q):
    values = np.maximum(values, 0.0)
    values = values[values > 1e-11]
    if q == 1:
        return float(np.exp(-np.sum(values * np.log(values))))
    if math.isinf(q):
        return float(1 / values.max())
    return float(np.sum(values**q) ** (1 / (1 - q)))


def operator(rows, p):
    return (rows * p[:, None]).T @ rows


def direct(rows, table, w, q):
    """alpha, beta, gamma from d×d matrices; `table` has a row of probabilities a group."""
    operators = [operator(rows, p) for p in table]
    gamma = hill(np.linalg.eigvalsh(sum(share * one for share, one in zip(w, operators, strict=True))), q)
    spectra = [np.linalg.eigvalsh(one) for one in operators]
    scores = np.array([hill(one, q) for one in spectra])
    if q == 1:
        alpha = math.exp(float(w @ np.log(scores)))
    elif math.isinf(q):
        alpha = 1 / max(one.max() for one in spectra)
    else:
        traces = np.array([np.sum(one[one > 1e-11] ** q) for one in spectra])
        alpha = float(w @ traces) ** (1 / (1 - q))
    return scores, alpha, gamma / alpha, gamma


def overlap(rows, table):
    operators = [operator(rows, p) for p in table]
    inner = np.array([[np.sum(a * b) for b in operators] for a in operators])
    own = np.sqrt(np.diagonal(inner))
    return inner / own[:, None] / own


def table_of(by, n, labels):
    sets = [one if isinstance(one, set | list) else {one} for one in by]
    table = np.array([[float(label in one) for one in sets] for label in labels])
    return table / table.sum(axis=1, keepdims=True)


# ------------------------------------------------------------------------------------------- within, between, in all


@pytest.mark.parametrize("q", ORDERS)
def test_groups_that_share_nothing_are_as_many_as_there_are(q):
    rows = np.concatenate(
        [np.kron(np.eye(3)[g], np.eye(4)) for g in range(3)]
    )  # 3 groups of 4 orthogonal items
    by = np.repeat(list("abc"), 4)
    found = vm.compare(rows, vm.kernels.Cosine(), by=by, q=q)
    assert found.beta == pytest.approx(3, rel=1e-9)
    assert found.alpha == pytest.approx(4, rel=1e-9)
    assert found.alpha * found.beta == pytest.approx(found.gamma, rel=1e-12)


@pytest.mark.parametrize("q", ORDERS)
def test_groups_that_are_alike_are_one(q):
    rows = some(10, 6)
    found = vm.compare({"x": rows, "y": rows, "z": np.tile(rows, (2, 1))}, q=q)
    assert found.beta == pytest.approx(1, rel=1e-9)
    assert found.similarity == pytest.approx(np.ones((3, 3)))


@pytest.mark.parametrize("q", ORDERS)
@pytest.mark.parametrize("share", ["size", "equal"])
@pytest.mark.parametrize("overlapping", [False, True])
def test_against_the_operators(q, share, overlapping):
    rng = np.random.default_rng(3)
    rows = some(30, 7)
    by = [set(rng.choice(4, rng.integers(1, 4), replace=False).tolist()) for _ in range(30)]
    if not overlapping:
        by = [min(one) for one in by]
    found = vm.compare(rows, by=by, q=q, group_weights=share, permutations=0)
    table = table_of(by, 30, found.labels)
    w = found.sizes / found.sizes.sum() if share == "size" else np.full(len(found), 1 / len(found))
    scores, alpha, beta, gamma = direct(rows, table, w, q)
    assert found.scores == pytest.approx(scores, rel=1e-9)
    assert (found.alpha, found.beta, found.gamma) == pytest.approx((alpha, beta, gamma), rel=1e-8)
    assert found.similarity == pytest.approx(overlap(rows, table), abs=1e-12)
    assert found.shares == pytest.approx(w)
    low, high = found.beta_bounds
    assert low <= found.beta <= high
    assert found.beta >= 1 - 1e-9


@pytest.mark.parametrize("q", [0.5, 1, 2, math.inf])
def test_rows_of_weights_and_of_counts(q):
    rng = np.random.default_rng(4)
    rows = some(8, 5)
    counts = rng.integers(0, 6, size=(3, 8))
    counts[1] = 0
    counts[1, 2] = 4
    table = counts / counts.sum(axis=1, keepdims=True)
    found = vm.compare(rows, by=["s", "t", "u"], counts=counts, q=q)
    w = counts.sum(axis=1) / counts.sum()
    assert (found.alpha, found.beta, found.gamma) == pytest.approx(direct(rows, table, w, q)[1:], rel=1e-8)
    assert found.sizes.tolist() == counts.sum(axis=1).tolist()
    weighted = vm.compare(rows, weights=table, q=q)
    assert weighted.shares == pytest.approx(np.full(3, 1 / 3))
    assert weighted.gamma == pytest.approx(direct(rows, table, np.full(3, 1 / 3), q)[3], rel=1e-8)
    assert weighted.similarity == pytest.approx(overlap(rows, table), abs=1e-12)


def test_weights_of_items_are_the_weights_of_groups():
    rows = some(9, 4)
    p = np.random.default_rng(0).dirichlet(np.ones(9))
    by = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    found = vm.compare(rows, by=by, weights=p)
    mass = np.array([p[by == g].sum() for g in range(3)])
    table = np.array([np.where(by == g, p, 0) / mass[g] for g in range(3)])
    assert found.shares == pytest.approx(mass)
    assert (found.alpha, found.beta, found.gamma) == pytest.approx(direct(rows, table, mass, 1)[1:])
    assert found.gamma == pytest.approx(vm.score(rows, weights=p))  # the pooled collection


def test_at_other_orders_unequal_weights_may_exceed_the_number_of_groups():
    # Stated in the documentation: a heavy group of many things and a light one of a single thing, q = 2.
    how = {"by": ["many"] * 40 + ["one"], "counts": [9] * 40 + [40], "permutations": 0}
    rows, kernel = np.eye(41), vm.kernels.Cosine()
    assert vm.compare(rows, kernel, q=2, **how).beta == pytest.approx(0.1225 / 0.03025)
    assert vm.compare(rows, kernel, q=1, **how).beta <= 2
    assert vm.compare(rows, kernel, q=2, group_weights="equal", **how).beta <= 2 + 1e-12


# ------------------------------------------------------------------------------------------------ kinds of similarity


def kinds():
    rows = some(40, 6)
    gram = rows @ rows.T
    cut = np.where(np.abs(gram) > 0, gram, 0)
    return {
        "narrow": (rows, "cosine"),
        "wide": (np.hstack([rows, np.zeros((40, 100))]), "cosine"),
        "sparse": (sparse.csr_array(rows), "cosine"),
        "matrix": (gram, "precomputed"),
        "sparse matrix": (sparse.csr_array(cut), "precomputed"),
        "function": ([row.tolist() for row in rows], lambda a, b: float(np.dot(a, b))),
    }


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_of_similarity_gives_the_same(kind):
    by = np.random.default_rng(1).integers(3, size=40)
    rows = kinds()["narrow"][0]
    plain = vm.compare(rows, by=by, size=8, permutations=0)
    found = vm.compare(*kinds()[kind], by=by, size=8, permutations=0)
    for name in ("scores", "rarefied", "similarity", "shares"):
        assert getattr(found, name) == pytest.approx(getattr(plain, name), rel=1e-8, abs=1e-10), name
    assert (found.alpha, found.gamma) == pytest.approx((plain.alpha, plain.gamma), rel=1e-8)


def test_a_kernel_of_pairs_with_intervals_and_tests():
    rows = np.random.default_rng(0).standard_normal((50, 3))
    by = np.repeat([0, 1], 25)
    kernel = vm.kernels.RBF("median")
    found = vm.compare(rows, kernel, by=by, permutations=99)
    gram = vm.kernels.RBF(vm.kernels.RBF("median").fit(rows).sigma).similarity(rows).dense()  # fitted on all
    again = vm.compare(gram, "precomputed", by=by, permutations=99)
    assert found.rarefied_low == pytest.approx(again.rarefied_low, rel=1e-8)
    assert found.differences.p.tolist() == again.differences.p.tolist()
    assert found.similarity == pytest.approx(again.similarity)
    assert "sigma" in found.kernel


def test_a_function_is_called_once_a_pair():
    calls = []

    def same(a, b):
        calls.append((a, b))
        return float(a == b)

    items = [i % 7 for i in range(60)]
    vm.compare(items, same, by=[i % 2 for i in range(60)], permutations=9)
    assert len(calls) <= 60 * 60 + 60


def test_arrays_of_every_library(library):
    rows = some(50, 8)
    by = np.repeat([0, 1], 25)
    plain = vm.compare(rows, by=by, permutations=19)
    found = vm.compare(library.array(rows), by=by, permutations=19)
    for name in ("scores", "rarefied", "rarefied_low", "similarity"):
        assert getattr(found, name) == pytest.approx(getattr(plain, name), rel=1e-9), name
    assert found.differences.p.tolist() == plain.differences.p.tolist()


def test_wide_arrays_on_a_device(library):
    rows = some(12, 40)
    found = vm.compare(library.array(rows), by=[0, 1] * 6)
    assert found.similarity == pytest.approx(overlap(rows, table_of([0, 1] * 6, 12, [0, 1])), abs=1e-12)


# -------------------------------------------------------------------------------------------------------- the input


def test_all_ways_to_give_groups():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = some(20, 4)
    by = np.repeat(["x", "y"], 10)
    expected = vm.compare(rows, by=by)
    kernel = vm.kernels.Match()
    ways = [
        vm.compare({"x": rows[:10], "y": rows[10:]}),
        vm.compare([rows[:10], rows[10:]]),
        vm.compare(rows.reshape(2, 10, 4)),
        vm.compare(rows, by=by.tolist()),
        vm.compare(rows, by=pandas.Series(by)),
        vm.compare(rows, by=[{label} for label in by]),
        vm.compare(Collection(rows, labels=by)),
        vm.compare(Collection(rows, columns={"which": by}), by="which"),
    ]
    for found in ways:
        assert found.scores == pytest.approx(expected.scores)
        assert (found.alpha, found.gamma) == pytest.approx((expected.alpha, expected.gamma))
        assert found.similarity == pytest.approx(expected.similarity)
    names = {"colour": ["r", "g", "r", "b"], "who": ["x", "x", "y", "y"]}
    for table in (
        names,
        pandas.DataFrame(names),
        polars.DataFrame(names),
        [{"colour": c, "who": w} for c, w in zip(*names.values(), strict=True)],
    ):
        found = vm.compare(table, vm.kernels.On("colour", kernel), by="who")
        assert found.labels == ("x", "y")
        assert found.scores == pytest.approx([2, 2])


def test_a_collection_of_lists_and_its_weights():
    found = vm.compare(Collection([["a", "b"], ["a", "a", "c"]], ids=[1, 2]), "match")
    assert found.sizes.tolist() == [2, 3]
    held = Collection(np.eye(4), labels=["x", "x", "y", "y"], weights=[1, 3, 2, 2])
    assert vm.compare(held, vm.kernels.Cosine()).size is None


def test_rows_of_counts_take_names_from_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[3, 1], [0, 4]], index=["site a", "site b"])
    assert vm.compare(np.eye(2), "precomputed", counts=frame).labels == ("site a", "site b")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: vm.compare(some(4, 3)), "by is missing"),
        (lambda: vm.compare([{"a": 1}], "match"), "by is missing"),
        (lambda: vm.compare(some(4, 3), by=[1, 2]), "2 labels and there are 4 items"),
        (lambda: vm.compare(some(4, 3), weights=np.full(4, 0.25)), "expected by=labels"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], q="x"), "not an order"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], q=[1, 2]), "not an order"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], size=0), "whole number from 1"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], size=3), "largest group, 1, has 2 items"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], repeats=0), "repeats=0"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], permutations=-1), "permutations=-1"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], confidence=95), "confidence=95"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], pairs="all"), "pairs='all'; expected True or False"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], similarity=1), "similarity=1"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], reference=1, pairs=True), "expected one of the two"),
        (lambda: vm.compare(some(4, 3), by=[1, 2, 2, 2], reference=1), "reference 1 has fewer items"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], rng=-1), "rng=-1"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], weights=[0.5, 0.5, 0.5, 0.5]), "sum to 2"),
        (lambda: vm.compare(some(4, 3), by=[1, 1, 2, 2], weights=[0.25] * 4, size=2), "no samples"),
        (lambda: vm.compare(2 * np.eye(3), "precomputed", by=[1, 1, 2]), r"Precomputed\(normalize=True\)"),
        (lambda: vm.compare([np.eye(2), np.eye(2)], "precomputed"), "one matrix of all items"),
        (lambda: vm.compare({"x": np.eye(3), "y": np.ones((2, 3))}), "group 'x': .*similarity matrix"),
        (lambda: vm.compare({"x": np.ones((2, 3)), "y": np.full((2, 3), np.nan)}), "group 'y'.*item 0"),
        (lambda: vm.compare({"x": np.ones((2, 3)), "y": np.zeros((2, 3))}), "group 'y'.*item 0"),
        (lambda: vm.compare({"x": ["a"], "y": "b"}, "match"), "group 'y' is 'b'"),
        (lambda: vm.compare({"x": np.ones((2, 3)), "y": np.ones((2, 4))}), "one shape"),
        (lambda: vm.compare(["a", "b"], by=[1, 2]), "text"),
    ],
)  # fmt: skip
def test_bad_input(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_bad_names_and_nothing():
    with pytest.raises(UnknownNameError, match=r"no group 'yy'\. Did you mean 'y'"):
        vm.compare(some(4, 3), by=["x", "x", "y", "y"], reference="yy")
    with pytest.raises(UnknownNameError, match="group_weights"):
        vm.compare(some(4, 3), by=[1, 1, 2, 2], group_weights="mass")
    for nothing in ({}, [], {"x": [], "y": []}):
        with pytest.raises(EmptyError):
            vm.compare(nothing, "match")
    with pytest.raises(EmptyError, match="every group is empty"):
        vm.compare(np.eye(2), "precomputed", weights=np.zeros((2, 2)))
    with pytest.raises(EmptyError):
        vm.compare(np.zeros((2, 0, 3)))


# ------------------------------------------------------------------------------------------------ rarefied scores


def test_pools_in_all_forms():
    rng = np.random.default_rng(0)
    rows = some(20, 5)
    items = np.array([3, 4, 9, 11, 15, 19])
    subsets = rng.integers(6, size=(50, 8))
    expected = [hill(np.linalg.eigvalsh(operator(rows[items[s]], np.full(8, 1 / 8))), 1) for s in subsets]
    similarity = FeatureRows(rows)
    wide = FeatureRows(np.hstack([rows, np.zeros((20, 50))]))
    matrix = Matrix(rows @ rows.T, trusted=True, kernel=vm.kernels.Cosine())
    pairs = Pairwise(20, lambda a, b: rows[a] @ rows[b].T, trusted=False, kernel=vm.kernels.Cosine())
    for one in (similarity, wide, matrix, pairs, FeatureRows(sparse.csr_array(rows))):
        pool = Pool(one, items, 8)
        assert pool.scores(subsets, 1.0) == pytest.approx(expected)
        assert pool.scores(subsets[:0], 1.0).shape == (0,)
        few = Pool(one, items, 3)  # fewer than there are features
        assert few.scores(subsets[:, :3], 2.0) == pytest.approx(
            [hill(np.linalg.eigvalsh(operator(rows[items[s]], np.full(3, 1 / 3))), 2) for s in subsets[:, :3]]
        )
    big = FeatureRows(sparse.csr_array((9000, 9001)))
    with pytest.raises(TooLargeError, match="size=9000"):
        Pool(big, np.arange(9000), 9000)


def test_windows_have_every_item_as_often():
    order = np.random.default_rng(0).permutation(30)
    windows = common_size._windows(order, 12, 25)
    assert windows.shape == (25, 12)
    assert all(len(set(window.tolist())) == 12 for window in windows)
    times = np.bincount(windows.ravel(), minlength=30)
    assert times.max() - times.min() <= 1


def test_the_rarefied_score_is_the_mean_of_all_subsets():
    rows = some(9, 4, decay=1)
    by = [0] * 9 + [1] * 4
    found = vm.compare(np.concatenate([rows, rows[:4]]), by=by, repeats=20_000)
    every = [vm.score(rows[list(part)]) for part in itertools.combinations(range(9), 4)]
    assert found.size == 4
    assert found.rarefied[0] == pytest.approx(np.mean(every), rel=2e-3)
    assert found.rarefied[1] == found.scores[1]
    assert found.used.tolist() == [9, 4]


def test_counts_are_copies():
    counts = np.array([[5, 3, 0, 2], [1, 1, 1, 9], [2, 0, 3, 25]])
    rows = some(4, 3)
    items = [np.repeat(rows, row, axis=0) for row in counts]
    found = vm.compare(rows, counts=counts, repeats=4000)
    copies = vm.compare(items, repeats=4000)
    assert found.size == copies.size == 10
    assert found.scores == pytest.approx(copies.scores)
    assert found.rarefied == pytest.approx(copies.rarefied, rel=5e-3)
    assert found.alpha == pytest.approx(copies.alpha)
    by = vm.compare(rows, by=[0, 0, 1, 1], counts=[5, 3, 4, 4])
    assert by.rarefied == pytest.approx(vm.score_groups(rows, by=[0, 0, 1, 1], counts=[5, 3, 4, 4]).scores)
    assert not np.isin(_drawn(rows, [0, 0, 1, 1], [5, 3, 4, 4]), [0, 1]).any()


def _drawn(rows, by, counts):
    groups = Groups(vm.Diversity(rows, by=by, counts=counts))
    drawn = groups.draw(1, 8, np.random.default_rng(0))
    assert sorted(drawn.copies.tolist()) == list(range(8, 16))  # the copies of the other group come first
    assert sorted(drawn.items.tolist()) == [2] * 4 + [3] * 4
    return drawn.items


def test_groups_of_one_population_are_equal_at_a_common_size():
    rng = np.random.default_rng(2)
    p = 1 / np.arange(1, 61)
    items = rng.choice(60, 3100, p=p / p.sum())
    by = np.repeat(["s", "m", "l"], [100, 600, 2400])
    found = vm.compare(items, "match", by=by, permutations=0)
    assert found.size == 100
    assert found.scores[2] > 1.25 * found.scores[0]  # as they are, large groups have more
    assert found.rarefied == pytest.approx(np.full(3, found.rarefied[2]), rel=0.12)
    assert found.rarefied_low[0] < found.rarefied[2] < found.rarefied_high[0]


def test_the_common_size():
    rows = some(100, 5)
    by = np.repeat(["one", "few", "some", "many"], [1, 5, 30, 64])
    found = vm.compare(rows, by=by)
    assert found.size == 5
    assert np.isnan(found.rarefied).tolist() == [True, False, False, False]
    assert noted(found) == {
        "common-size-of-smallest": {"group": "few", "size": 5},
        "below-common-size": {"groups": ["one"], "size": 5},
        "no-intervals-of-few-items": {"size": 5, "least": 20},
    }
    assert "to 5. Pass size= to compare larger groups" in found.summary()
    assert "to 5. Pass --size to compare larger groups" in found.summary("terminal")
    assert np.isnan(found.rank[0])
    assert sorted(found.rank[1:]) == [1, 2, 3]
    larger = vm.compare(rows, by=by, size=30, permutations=19)
    assert noted(larger) == {"below-common-size": {"groups": ["one", "few"], "size": 30}}
    assert larger.differences.groups == ("many",)
    assert larger.differences.references == ("some",)  # the first that can be compared
    assert not np.isnan(larger.differences.p).any()
    alone = vm.compare(rows[:3], by=[1, 2, 3])
    assert alone.size == 1
    assert alone.rarefied.tolist() == [1, 1, 1]
    assert alone.rank.tolist() == [1, 1, 1]


def test_large_groups_are_capped_and_that_is_said():
    rows = some(1600, 3)
    found = vm.compare(rows, by=np.repeat([0, 1], 800), permutations=9)
    assert found.size == 500
    assert noted(found)["common-size-capped"] == {"smallest": 800, "size": 500}
    assert vm.compare(rows, by=np.repeat([0, 1], 800), size=600, permutations=0).size == 600


def test_tests_of_many_items_take_fewer_and_that_is_said(monkeypatch):
    monkeypatch.setattr(differences, "WORK", 1e6)
    monkeypatch.setattr(differences, "LEAST", 12)
    found = vm.compare(some(60, 40), by=np.repeat([0, 1], 30), permutations=19)
    assert found.differences.tested_size == 29  # (10⁶/38)^⅓
    assert noted(found.differences) == {"tests-of-fewer-items": {"tested_size": 29, "size": 30}}
    narrow = vm.compare(some(60, 4), by=np.repeat([0, 1], 30), permutations=19)
    assert narrow.differences.tested_size == 30


def test_of_huge_groups_some_items_are_used(monkeypatch):
    monkeypatch.setattr(common_size, "USED", 50)
    found = vm.compare(some(120, 60), by=np.repeat([0, 1], [30, 90]), permutations=0)
    assert found.used.tolist() == [30, 50]
    assert noted(found) == {"large-groups-sampled": {"count": 1, "used": 50}}


# -------------------------------------------------------------------------------------------------------- intervals


def test_blocks_are_even_in_every_group():
    rng = np.random.default_rng(0)
    by = [set(rng.choice(3, rng.integers(1, 3), replace=False).tolist()) for _ in range(90)]
    groups = Groups(vm.Diversity(some(90, 3), by=by))
    drawn = [groups.draw(g, int(groups.sizes[g]), rng) for g in range(3)]
    blocks = common_size._assign_blocks(drawn, rng)
    of = {}
    for one, block in zip(drawn, blocks, strict=True):
        for item, b in zip(one.copies.tolist(), block.tolist(), strict=True):
            assert of.setdefault(item, b) == b  # an item is in one block, whatever the group
        times = np.bincount(block, minlength=20)
        assert times.min() >= 1
        assert times.max() - times.min() <= 2


def test_groups_of_the_same_items_do_not_differ_at_all():
    found = vm.compare(some(40, 5), by=[["x", "y"]] * 40)
    assert found.differences.difference_low == pytest.approx([0], abs=1e-12)
    assert found.differences.difference_high == pytest.approx([0], abs=1e-12)
    assert found.differences.shared.tolist() == [40]
    assert np.isnan(found.differences.p).all()
    assert noted(found.differences) == {"pairs-without-test": {"pairs": [("y", "x")]}}
    assert found.rarefied_high[0] > found.rarefied_low[0]
    assert "shared-items" in noted(found)


def test_shared_items_narrow_the_interval_of_a_difference():
    rows = some(120, 30)
    shared = [{"x"}] * 20 + [{"x", "y"}] * 40 + [{"y"}] * 20
    apart = ["x"] * 60 + ["y"] * 60
    width = [
        float(np.diff([d.difference_low, d.difference_high], axis=0)[0, 0])
        for d in (
            vm.compare(rows[:80], by=shared, permutations=0).differences,
            vm.compare(rows, by=apart, permutations=0).differences,
        )
    ]
    assert width[0] < 0.8 * width[1]


def test_differences_are_those_of_the_rarefied_scores():
    rows = some(150, 12)
    by = np.repeat([0, 1, 2], [40, 50, 60])
    found = vm.compare(rows, by=by, pairs=True, permutations=0)
    pairs = found.differences
    assert list(zip(pairs.groups, pairs.references, strict=True)) == [(1, 0), (2, 0), (2, 1)]
    a, b = found.rarefied[list(pairs.groups)], found.rarefied[list(pairs.references)]
    assert pairs.difference == pytest.approx(a - b)
    assert pairs.ratio == pytest.approx(a / b)
    assert (pairs.difference_low < pairs.difference).all()
    assert (pairs.ratio_low < pairs.ratio).all()
    assert np.log(pairs.ratio_high / pairs.ratio) == pytest.approx(np.log(pairs.ratio / pairs.ratio_low))
    assert np.isnan(pairs.p).all()
    wider = vm.compare(rows, by=by, pairs=True, permutations=0, confidence=0.99).differences
    assert (wider.difference_high > pairs.difference_high).all()


def categories(p):
    p = np.asarray(p, dtype=float)
    return lambda n, rng: rng.choice(len(p), n, p=p / p.sum())


@pytest.mark.parametrize(
    ("first", "second", "sizes"),
    [
        (categories(np.ones(12)), categories(1 / np.arange(1, 61)), (40, 40)),  # heavy-tailed
        (
            categories(np.r_[np.ones(4), np.full(200, 0.01)]),
            categories(np.ones(30)),
            (40, 60),
        ),  # many rare modes
    ],
)
def test_intervals_cover_the_difference_at_the_common_size(first, second, sizes):
    rng = np.random.default_rng(5)
    size = min(sizes)

    def expected(draw):
        items = np.stack([draw(size, rng) for _ in range(4000)])
        shares = np.stack([np.bincount(row, minlength=items.max() + 1) for row in items]) / size
        return np.exp(-np.sum(shares * np.log(np.where(shares > 0, shares, 1)), axis=1)).mean()

    truth = expected(first) - expected(second)
    hits = 0
    for run in range(60):
        a, b = first(sizes[0], rng), second(sizes[1], rng)
        found = vm.compare({"a": a, "b": b}, "match", permutations=0, similarity=False, rng=run).differences
        hits += -found.difference_high[0] <= truth <= -found.difference_low[0]
    assert hits >= 50  # 57 expected; 49 or fewer has a probability of 0.1% at 95%


# ---------------------------------------------------------------------------------------------------------- tests


def test_holm():
    # By hand: 3·0.01 = 0.03; then 2·0.02 = 0.04; then 1·0.9.
    assert differences.holm(np.array([0.9, 0.01, 0.02])) == pytest.approx([0.9, 0.03, 0.04])
    assert differences.holm(np.array([0.5, 0.6])) == pytest.approx([1.0, 1.0])
    assert differences.holm(np.array([0.04, 0.03, 0.03])) == pytest.approx([0.09, 0.09, 0.09])
    assert np.isnan(differences.holm(np.array([np.nan, 0.04]))).tolist() == [True, False]
    assert differences.holm(np.zeros(0)).shape == (0,)


def test_a_test_against_all_deals():
    rows = some(7, 4, seed=8, decay=2)
    by = [{"x"}] * 3 + [{"y"}] * 3 + [{"x", "y"}]
    groups = Groups(vm.Diversity(rows, by=by))
    found = differences.permutation_test(groups, 0, 1, 4, 1.0, 20_000, 0)

    def gap(own):
        other = [i for i in range(6) if i not in own]
        return abs(math.log(vm.score(rows[[*own, 6]])) - math.log(vm.score(rows[[*other, 6]])))

    gaps = [gap(own) for own in itertools.combinations(range(6), 3)]
    assert found == pytest.approx(np.mean(np.array(gaps) >= gap((0, 1, 2)) - 1e-12), abs=0.015)


def test_what_is_in_both_stays_in_both():
    by = [{"x"}] * 20 + [{"x", "y"}] * 10 + [{"y"}] * 20
    groups = Groups(vm.Diversity(some(50, 3), by=by))
    own, other, both = differences._split_shared(groups, 0, 1)
    assert (own.size, other.size, both.size) == (20, 20, 10)
    assert both.items.tolist() == list(range(20, 30))
    assert differences._shared_count(20, 10, 30) == 10
    assert differences._shared_count(20, 10, 15) == 5
    assert differences._shared_count(0, 10, 10) == 10  # within the other: nothing is left to be dealt out


def test_p_values_are_uniform_where_nothing_differs():
    rng = np.random.default_rng(1)
    found = []
    for run in range(120):
        groups = Groups(vm.Diversity(rng.standard_normal((50, 3)), by=np.repeat([0, 1], [20, 30])))
        found.append(differences.permutation_test(groups, 0, 1, 20, 1.0, 39, run))
    found = np.array(found)
    assert abs(found.mean() - 0.5) < 0.09  # 3.4 standard errors
    assert 2 <= np.count_nonzero(found <= 0.1) <= 24


def test_p_values_are_small_where_groups_differ():
    found = vm.compare({"flat": some(40, 20, decay=0), "steep": some(40, 20, decay=1)}, permutations=199)
    assert found.differences.p.tolist() == [1 / 200]
    same = vm.compare(np.ones((60, 3)), by=[0, 1] * 30, permutations=19)
    assert same.differences.p.tolist() == [1.0]
    # No interval on a log scale where hardly any item is unlike the others, and the result says so.
    assert np.isnan(same.rarefied_low).all()
    assert np.isnan(same.differences.ratio_low).all()
    assert same.differences.difference_low == pytest.approx([0])
    assert noted(same) == {"no-intervals-of-like-items": {"groups": [0, 1]}}


def test_adjusted_p_values_that_cannot_be_small_are_announced():
    found = vm.compare(some(120, 5), by=np.arange(120) % 6, permutations=49)
    assert found.differences.least == pytest.approx(0.1)
    too_few = {"tests": 5, "permutations": 49, "level": pytest.approx(0.05), "needed": 99}
    assert noted(found.differences) == {"tests-of-too-few-deals": too_few}
    assert "Pass permutations=99 or more" in found.summary()
    assert "Pass --permutations 99 or more" in found.summary("terminal")
    assert "after Holm's adjustment" not in found.summary()
    enough = vm.compare(some(120, 5), by=np.arange(120) % 6, permutations=99)
    assert "0 of 5 comparisons have a p-value of at most 0.05 after Holm's" in enough.summary()


def test_orders_without_intervals_still_have_tests():
    rows = some(60, 30)
    found = vm.compare(rows, by=np.repeat([0, 1], 30), q=0, permutations=9)
    assert np.isnan(found.rarefied_low).all()
    assert not np.isnan(found.differences.p).any()
    assert noted(found) == {"no-intervals-of-low-order": {"q": 0, "least": 0.5}}


def test_weights_have_no_inference():
    found = vm.compare(some(60, 5), by=np.repeat([0, 1], 30), weights=np.full(60, 1 / 60))
    assert found.size is None
    assert np.isnan(found.rarefied).all()
    assert np.isnan(found.differences.p).all()
    assert found.differences.difference == pytest.approx(found.scores[1:] - found.scores[0])
    assert sorted(found.rank) == [1, 2]
    assert noted(found) == {"weights-not-rarefied": {}}
    assert "For frequencies pass counts=." in found.summary()
    assert "frequencies" not in found.summary("terminal")  # the command has no such option


# ------------------------------------------------------------------------------------------------------ many groups


def test_many_groups():
    rows = some(1200, 6)
    found = vm.compare(rows, by=np.arange(1200) // 2)
    assert len(found) == 600
    assert found.similarity is None
    assert not len(found.differences)
    assert noted(found.differences) == {
        "no-pairs-of-many-groups": {"count": 600, "limit": 100},
        "no-intervals-of-few-items": {"size": 2, "least": 20},
    }
    assert noted(found)["similarity-not-computed"] == {"limit": 500}
    with pytest.raises(UnansweredError, match="similarity=True"):
        found.plot_similarity()
    asked = vm.compare(rows, by=np.arange(1200) // 2, reference=3, similarity=True)
    assert len(asked.differences) == 599
    assert asked.similarity.shape == (600, 600)
    assert vm.compare(rows[:4], by=[0, 0, 1, 1], similarity=False).similarity is None


def test_many_groups_have_intervals_where_they_are_asked_for():
    rows, by = some(501 * 20, 2), np.arange(501 * 20) // 20
    found = vm.compare(rows, by=by)
    assert np.isnan(found.rarefied_low).all()
    assert noted(found)["no-intervals-of-many-groups"] == {"limit": 500}
    asked = vm.compare(rows, by=by, reference=0, permutations=0)
    assert np.isfinite(asked.rarefied_low).any()
    assert "no-intervals-of-many-groups" not in noted(asked)


def test_records_that_were_left_out_are_noted(tmp_path):
    (tmp_path / "texts.jsonl").write_text(
        '{"text": "a cat", "by": 1}\n{"text": "a dog", "by": 2}\n{"text":\n'
    )
    found = vm.compare(vm.read(tmp_path / "texts.jsonl", label="by", skip_broken=True), "ngram")
    assert noted(found)["left-out"] == {"records": 1}


def test_one_group_and_empty_groups():
    found = vm.compare({"x": ["a", "b"], "none": []}, "match")
    assert found.beta == pytest.approx(1)
    assert not len(found.differences)
    assert noted(found)["empty-groups"] == {"groups": ["none"]}
    assert np.isnan(found.similarity[1]).all()
    assert math.isnan(found.scores[1])
    assert found.plot_similarity().ax_ is not None
    matplotlib.pyplot.close("all")


def test_the_same_seed_gives_the_same():
    rows, by = some(100, 20), np.repeat([0, 1], [40, 60])
    first, again, other = (vm.compare(rows, by=by, permutations=49, rng=seed) for seed in (1, 1, 2))
    assert first.rarefied.tolist() == again.rarefied.tolist()
    assert first.differences.ratio_low.tolist() == again.differences.ratio_low.tolist()
    assert first.differences.p.tolist() == again.differences.p.tolist()
    assert first.rarefied[1] != other.rarefied[1]


# ---------------------------------------------------------------------------------------------------- the results

HOSTILE = ["$x^2$", "_a", "<script>alert(1)</script>", "tab\tbell\x07", "ordinary"]


@pytest.fixture(scope="module")
def hostile():
    return vm.compare(
        some(150, 6), by=np.array(HOSTILE, dtype=object).repeat([28, 29, 30, 31, 32]), permutations=99
    )


def test_results_are_frozen_and_plain(hostile):
    with pytest.raises(AttributeError):
        hostile.alpha = 1
    for name in ("scores", "rarefied", "similarity", "rank"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(hostile, name)[0] = 0
    plain = json.loads(json.dumps(hostile.to_dict(), allow_nan=False))
    assert plain["labels"] == HOSTILE
    assert plain["differences"]["groups"] == HOSTILE[1:]
    odd = vm.compare(np.eye(3), "precomputed", by=[("a", 1), np.datetime64("2020-01-01"), ("a", 1)], q="inf")
    assert json.loads(json.dumps(odd.to_dict(), allow_nan=False))["q"] == "inf"


def test_frames(hostile):
    pytest.importorskip("pandas")
    frame = hostile.to_frame()
    assert frame["group"].tolist() == HOSTILE
    assert list(frame.columns[:5]) == ["group", "n", "score", "low", "high"]
    assert len(hostile.differences.to_frame()) == 4
    assert hostile.similarity_frame().loc["_a", "ordinary"] == hostile.similarity[1, 4]


def test_text_of_users_is_escaped(hostile):
    for result in (hostile, hostile.differences):
        assert "<script>" not in result._repr_html_()
        assert "&lt;script&gt;" in result._repr_html_()
        assert "\x07" not in str(result)
    assert "Comparison(size=28" in repr(hostile)
    assert len(hostile) == 5


def test_pictures(hostile):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for drawn in (hostile.plot(), hostile.differences.plot(), hostile.plot_similarity()):
        drawn.figure_.canvas.draw()
        text = [label.get_text() for label in drawn.ax_.get_yticklabels()]
        assert any("$x^2$" in label for label in text) or any("_a" in label for label in text)
        assert not any("\x07" in label for label in text)
    _, ax = pyplot.subplots()
    assert hostile.plot(ax).ax_ is ax
    order = [label.get_text() for label in ax.get_yticklabels()]
    best = HOSTILE[int(np.argmax(hostile.rarefied))]
    assert order[0].startswith(best[:3])
    pyplot.close("all")


def test_pictures_of_many_and_of_few():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    rows = some(300, 5)
    many = vm.compare(rows, by=np.arange(300) // 3, pairs=False)
    drawn = many.plot()
    assert len(drawn.ax_.get_yticks()) == 40
    assert any("60 more groups" in text.get_text() for text in drawn.ax_.texts)
    assert len(many.differences.plot().ax_.get_yticks()) == 40
    many.plot_similarity().figure_.canvas.draw()
    weighted = vm.compare(rows[:4], by=[0, 0, 1, 1], weights=np.full(4, 0.25))
    weighted.plot().figure_.canvas.draw()
    some_small = vm.compare(rows[:5], by=[0, 0, 1, 1, 2])
    assert "1 group of fewer items not shown" in some_small.plot().ax_.get_xlabel()
    with pytest.raises(EmptyError, match="no two groups"):
        vm.compare(rows[:4], by=[0, 0, 0, 0]).differences.plot()
    pyplot.close("all")


# ------------------------------------------------------------------------------------------------------- real data


def test_classes_of_pictures(shared_data):
    held = np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz")
    by = held["classes"][held["label"]]
    found = vm.compare(held["emb"].astype(np.float32), by=by, size=10)
    score = dict(zip(found.labels, found.scores, strict=True))
    assert (score["castle"], score["keyboard"], score["clock"]) == pytest.approx((10.6, 14.5, 18.1), abs=0.05)
    assert found.labels[int(np.argmax(found.scores))] == "clock"
    row = found.similarity[found.labels.index("sea")]
    assert found.labels[np.argsort(-row)[1]] in ("cloud", "plain")
    assert 1 < found.beta < 20


def test_classes_of_pixels(shared_data):
    held = np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz")
    by = held["classes"][held["label"]]
    some = np.isin(by, ["cockroach", "plain", "rose", "aquarium_fish"])
    pixels = np.load(shared_data / "images" / "cifar100_test.npz")["images"][held["row"][some]]
    found = vm.compare(pixels.reshape(400, -1).astype(np.float64), by=by[some], permutations=59)
    score = dict(zip(found.labels, found.rarefied, strict=True))
    assert (score["cockroach"], score["aquarium_fish"]) == pytest.approx((1.69, 4.62), abs=0.01)
    assert dict(zip(found.labels, found.rank, strict=True)) == {
        "aquarium_fish": 1, "rose": 2, "plain": 3, "cockroach": 4
    }  # fmt: skip
    p = dict(zip(found.differences.groups, found.differences.p, strict=True))
    assert p["cockroach"] == p["plain"] == 1 / 60


def test_answers_to_prompts(shared_data):
    from scipy.stats import spearmanr

    with gzip.open(shared_data / "text" / "noveltybench_curated_gemini15pro.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    found = vm.compare({row["id"]: row["generations"] for row in rows}, "ngram")
    assert len(found) == 100
    assert found.size == 10
    assert spearmanr(found.rarefied, [row["distinct"] for row in rows]).statistic > 0.6
    assert found.similarity.shape == (100, 100)


def test_captions_of_pictures(shared_data):
    with gzip.open(shared_data / "text" / "coco_val2017_captions.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(250), strict=False)]
    found = vm.compare({row["image_id"]: row["captions"] for row in rows}, "ngram")
    plain = vm.score_groups({row["image_id"]: row["captions"] for row in rows}, "ngram")
    assert found.size == 5
    assert found.scores == pytest.approx(plain.scores)
    assert 1 < found.beta < 250
    assert found.rank.max() <= 250
    assert not len(found.differences)


def test_odours_overlap(shared_data):
    pytest.importorskip("rdkit")
    import csv

    def table(name):
        with gzip.open(shared_data / "molecules" / name, "rt") as lines:
            return list(csv.DictReader(lines))

    smiles = {row["CID"]: row["IsomericSMILES"] for row in table("goodscents_molecules.csv.gz")}
    of = {row["Stimulus"]: row["CID"] for row in table("goodscents_stimuli.csv.gz")}
    wanted = {"fruity", "green", "woody"}
    tags = {}
    for row in table("goodscents_behavior.csv.gz"):
        found = wanted & set(row["Descriptors"].split(";"))
        if found and smiles.get(of.get(row["Stimulus"], ""), ""):
            tags.setdefault(smiles[of[row["Stimulus"]]], set()).update(found)
    items = sorted(tags)[:300]
    found = vm.compare(items, "morgan", by=[tags[item] for item in items], pairs=True, permutations=19)
    assert set(found.labels) == wanted
    assert found.differences.shared.min() > 0
    assert "shared-items" in noted(found)
    assert 1 < found.beta < 3
    assert (found.rarefied_low < found.rarefied).all()


@pytest.mark.parametrize("form", [dict, list])
def test_collections_with_weights_of_their_own(form):
    rows, weights = some(90, 4), np.random.default_rng(0).random(90)
    read = {
        name: vm.Collection(rows[part], weights=weights[part])
        for name, part in (("a", slice(0, 10)), ("b", slice(10, 90)))
    }
    groups = read if form is dict else list(read.values())
    scores = [float(vm.score(collection)) for collection in read.values()]
    assert vm.score_groups(groups).scores == pytest.approx(scores)
    assert vm.Diversity.of(groups).group_scores().scores == pytest.approx(scores)
    found = vm.compare(groups)
    assert found.scores == pytest.approx(scores)
    assert found.size is None  # weights are no samples to draw from
    assert found.shares == pytest.approx([1 / 9, 8 / 9])
    assert found.gamma == pytest.approx(vm.Diversity.of(groups).score())
