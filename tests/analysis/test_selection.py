"""Choosing diverse items: every step against a full search, sets against all sets, rules, similarities, messages."""

from __future__ import annotations

import datetime
import itertools
import json
import math

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter.analysis.selection import greedy, items, methods, selection
from vendimeter.data import devices as devices_module
from vendimeter.data.collection import Collection
from vendimeter.errors import (
    AsymmetryError,
    DiagonalError,
    EmptyError,
    IndefiniteError,
    InputError,
    TooLargeError,
    UnknownNameError,
)
from vendimeter.kernels import RBF, Cosine, FromFunction, NGram

matplotlib.use("Agg")
RNG = np.random.default_rng(7)
ROWS = RNG.standard_normal((70, 6)) * np.arange(1, 7) ** -0.5
TEXTS = [
    " ".join(RNG.choice(["red", "blue", "car", "boat", "a", "sea", "tree", "sky"], 4)) for _ in range(60)
]
GREEDY = ["vendi", "logdet", "farthest", "facility"]


def cosines(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T


def rbf(a, b):
    return math.exp(-float(np.sum((np.asarray(a) - np.asarray(b)) ** 2)) / 2)


def score(K, q=1.0):
    values = np.linalg.eigvalsh(K / len(K))
    values = values[values > 1e-14]
    if q == 1:
        return math.exp(-np.sum(values * np.log(values)))
    return np.sum(values**q) ** (1 / (1 - q))


def values(chosen, kind):
    """The values of the only note of a kind."""
    (note,) = (note for note in chosen.notes if note.kind == kind)
    return note.values


def worths(K, chosen, method, q=1.0, quality=None, trade_off=1.0, k=None):
    """What a full search would see: the worth of every item, by the eigenvalues of every set that it would make."""
    before = K[:, chosen].max(axis=1, initial=-np.inf)
    if method == "farthest":
        return np.minimum(2 - 2 * before, 4)
    if method == "facility":
        return np.maximum(np.maximum(before[:, None], K), 0).sum(axis=0)
    sets = np.array([[*chosen, i] for i in range(len(K))])
    values = np.linalg.eigvalsh(K[sets[:, :, None], sets[:, None, :]])
    positive = values > (1e-9 if method == "logdet" else 1e-14)
    logs = np.log(np.where(positive, values, 1))
    if method == "logdet":
        return 1e6 * positive.sum(axis=1) + logs.sum(axis=1)  # first the rank, then the volume
    entropy = -np.sum(np.where(positive, values * logs, 0), axis=1)
    if quality is not None:
        return entropy / k + trade_off * np.log(np.maximum(quality[sets].sum(axis=1), 1e-300))
    return entropy if q == 1 else np.sum(np.where(positive, np.abs(values) ** q, 0), axis=1) / (1 - q)


def check_steps(K, chosen, method, *, skip=0, allowed=None, noise=1e-9, **how):
    """Every step took an item that nothing allowed is better than, up to ties."""
    indices = chosen.indices.tolist()
    assert len(set(indices)) == len(indices)
    for step in range(skip, len(indices)):
        before = indices[:step]
        free = np.ones(len(K), dtype=bool) if allowed is None else allowed(before)
        free[before] = False
        copies = free & (K[:, before].max(axis=1, initial=-1) > 1 - 1e-12)
        if (free & ~copies).any():
            free &= ~copies
        assert free[indices[step]]
        values = worths(K, before, method, k=len(indices), **how)
        best = values[free].max()
        assert values[indices[step]] >= best - noise * max(1, abs(best)), (method, step)


# ---------------------------------------------------------------------------------------- every step is the best step


KINDS = {
    "features": (ROWS, "cosine", cosines(ROWS)),
    "float32": (ROWS.astype(np.float32), "cosine", cosines(ROWS.astype(np.float32).astype(float))),
    "wide": (ROWS[:20] @ RNG.standard_normal((6, 40)) + RNG.standard_normal((20, 40)), "cosine", None),
    "sparse": (sparse.csr_array(np.where(np.abs(ROWS) > 0.3, ROWS, 0)[:50] + np.eye(50, 6)), Cosine(), None),
    "n-grams": (TEXTS, NGram(1, 2), None),
    "matrix": (cosines(ROWS), "precomputed", cosines(ROWS)),
    "sparse matrix": (
        sparse.csr_array(np.kron(np.eye(12), np.full((4, 4), 0.5)) + 0.5 * np.eye(48)),
        "precomputed",
        None,
    ),
    "pairwise": (ROWS, RBF(0.7), None),
    "function": (list(ROWS[:40]), rbf, None),
    "block function": (
        ROWS[:40],
        FromFunction(lambda a, b: a @ b.T, block=True, normalize=True),
        cosines(ROWS[:40]),
    ),
}


def dense_of(samples, kernel, K):
    if K is not None:
        return K
    if callable(kernel) and not isinstance(kernel, vm.kernels.Kernel):
        return np.array([[kernel(a, b) for b in samples] for a in samples])
    return vm.kernels.as_kernel(kernel).similarity(samples, rng=0).dense()


@pytest.mark.parametrize("method", GREEDY)
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_equals_full_search(kind, method, monkeypatch):
    monkeypatch.setattr(greedy, "POOL", 16)  # so that pools are filled again and again
    monkeypatch.setattr(items, "SPARSE_WIDTH", 6)
    samples, kernel, K = KINDS[kind]
    K = dense_of(samples, kernel, K)
    chosen = vm.select(samples, 14, kernel, method=method, compare=False)
    check_steps(K, chosen, method)
    assert chosen.exact_greedy
    assert chosen.score == pytest.approx(score(K[np.ix_(chosen.indices, chosen.indices)]), rel=1e-9)
    low, high = chosen.score.bounds
    assert low <= chosen.score <= high
    assert chosen.score.level == "deterministic"


@pytest.mark.parametrize("q", [0.5, 0.8, 1, 1.4, 1.95, 2])
@pytest.mark.parametrize("k", [5, 25])
def test_orders(q, k):
    chosen = vm.select(ROWS, k, q=q, compare=False)
    check_steps(cosines(ROWS), chosen, "vendi", q=q, noise=1e-6 if q < 0.8 else 1e-9)
    assert chosen.score.q == q
    assert np.sum(chosen.gains) == pytest.approx(chosen.score, rel=1e-9)


@pytest.mark.parametrize("method", GREEDY)
def test_many_items_in_few_dimensions(method, monkeypatch):
    """Far beyond the rank, with float32 bounds, blocks and pools that do not hold all items."""
    monkeypatch.setattr(greedy, "POOL", 64)
    monkeypatch.setattr(items, "STEP", 32)
    monkeypatch.setattr(methods, "ALL", 100)
    monkeypatch.setattr(methods, "POINTS", 400)
    rows = RNG.standard_normal((400, 4)).astype(np.float32)
    chosen = vm.select(rows, 30, method=method, compare=False, memory="30 kB")  # too little for a copy
    check_steps(cosines(rows.astype(float)), chosen, method)
    again = vm.select(rows, 30, method=method, compare=False)
    assert (again.indices == chosen.indices).all()


@pytest.mark.parametrize("eigenvalues", [1e-12, 1e-3, 1.0, 300.0])
@pytest.mark.parametrize("q", [0.6, 1.0, 1.7])
def test_gains_are_exact(eigenvalues, q):
    """The integral against eigenvalues, in the span and out of it, with small and large eigenvalues."""
    directions = np.linalg.qr(RNG.standard_normal((7, 7)))[0][:, :4]
    values = eigenvalues * np.array([1, 0.3, 2e-2, 1])
    sigma = (directions * values) @ directions.T
    candidates = RNG.standard_normal((5, 7))
    candidates[0] = directions @ RNG.standard_normal(4)
    candidates[1] = np.linalg.qr(np.column_stack([directions, candidates[1]]))[0][:, 4]
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
    found = greedy.deficits((candidates @ directions) ** 2, greedy._quadrature(values, q, coarse=False))

    def total(matrix):
        mu = np.linalg.eigvalsh(matrix)
        mu = mu[mu > 0]
        return np.sum(mu * np.log(mu)) if q == 1 else np.sum(mu**q)

    rise = np.array([total(sigma + np.outer(x, x)) for x in candidates]) - total(sigma)
    expected = rise if q == 1 else (1 - rise) * math.pi / (q * math.sin(math.pi * q))
    # Of eigenvalues that are 0 the reference has rounding, which it takes to the power q.
    assert found == pytest.approx(expected, abs=3e-7 if q < 1 else 1e-11 * (1 + rise.max()))


def test_bounds_that_turn_out_too_low_are_given_up(monkeypatch):
    monkeypatch.setattr(greedy, "POOL", 24)
    monkeypatch.setattr(greedy, "ALLOWANCE", -0.05)
    chosen = vm.select(ROWS, 20, compare=False)
    check_steps(cosines(ROWS), chosen, "vendi")


def test_gains_mean_what_they_say():
    K = cosines(ROWS)
    vendi = vm.select(ROWS, 9, compare=False)
    A = vendi.indices
    assert np.cumsum(vendi.gains) == pytest.approx([score(K[np.ix_(A[:m], A[:m])]) for m in range(1, 10)])
    logdet = vm.select(ROWS, 5, method="logdet", compare=False)
    A = logdet.indices
    dets = [np.linalg.det(K[np.ix_(A[:m], A[:m])]) for m in range(1, 6)]
    assert np.cumprod(logdet.gains) == pytest.approx(dets)
    farthest = vm.select(ROWS, 5, method="farthest", compare=False)
    A = farthest.indices
    assert math.isnan(farthest.gains[0])
    assert farthest.gains[3] == pytest.approx(2 - 2 * K[A[3], A[:3]].max())
    facility = vm.select(ROWS, 5, method="facility", compare=False)
    reached = np.maximum(K[:, facility.indices].max(axis=1), 0).mean()
    assert facility.gains.sum() == pytest.approx(reached)


# ------------------------------------------------------------------------------------------------- against all subsets


@pytest.mark.parametrize("seed", range(6))
def test_against_all_subsets(seed):
    rows = np.random.default_rng(seed).standard_normal((11, 4))
    K, k = cosines(rows), 5
    subsets = list(itertools.combinations(range(11), k))
    chosen = vm.select(rows, k, compare=False)
    shift = k * (1 + math.log(2 * k))  # makes −tr K log K grow with every item

    def objective(A):
        return k * (math.log(score(K[np.ix_(A, A)])) - math.log(k)) + shift

    best = max(objective(A) for A in subsets)
    assert (1 - 1 / math.e) * best <= objective(chosen.indices) <= best + 1e-9
    assert chosen.score >= 0.9 * max(score(K[np.ix_(A, A)]) for A in subsets)

    def represented(A):
        return np.maximum(K[:, list(A)].max(axis=1), 0).sum()

    facility = vm.select(rows, k, method="facility", compare=False).indices
    assert represented(facility) >= (1 - 1 / math.e) * max(map(represented, subsets)) - 1e-9

    def radius(A):
        return np.sqrt(np.maximum(2 - 2 * K[:, list(A)].max(axis=1), 0)).max()

    farthest = vm.select(rows, k, method="farthest", compare=False).indices
    assert radius(farthest) <= 2 * min(map(radius, subsets)) + 1e-9


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("trade_off", [0.0, 0.5, 1.0, 3.0])
def test_quality(seed, trade_off):
    rng = np.random.default_rng(seed)
    rows, quality = rng.standard_normal((11, 4)), rng.random(11)
    quality[0] = 0.0
    K, k = cosines(rows), 5
    chosen = vm.select(rows, k, quality=quality, trade_off=trade_off, compare=False)
    check_steps(K, chosen, "vendi", quality=quality, trade_off=trade_off)
    assert (chosen.quality == quality[chosen.indices]).all()

    def objective(A):
        return score(K[np.ix_(A, A)]) * quality[list(A)].mean() ** trade_off

    best = max(objective(A) for A in itertools.combinations(range(11), k))
    assert 0.88 * best <= objective(chosen.indices) <= best * (1 + 1e-9)


def test_quality_decides():
    quality = np.zeros(70)
    quality[:20] = 1.0
    chosen = vm.select(ROWS, 10, quality=quality, trade_off=50, compare=False)
    assert chosen.indices.max() < 20
    alike = vm.select(ROWS, 10, quality=np.full(70, 0.3), compare=False)
    assert (alike.indices == vm.select(ROWS, 10, compare=False).indices).all()


# ---------------------------------------------------------------------------------------------------------- the rules


@pytest.mark.parametrize("method", [*GREEDY, "random"])
def test_quotas_and_required(method):
    labels = np.array(["a"] * 40 + ["b"] * 20 + ["c"] * 10)
    quotas = {"a": 3, "b": 5, "c": 2}
    chosen = vm.select(ROWS, quotas=quotas, by=labels, required=[69, 1], method=method, compare=False)
    assert chosen.group_counts == quotas
    assert chosen.labels == tuple(labels[chosen.indices])
    assert chosen.indices[:2].tolist() == [69, 1]
    assert chosen.k == 10

    def allowed(before):
        used = {label: sum(labels[before] == label) for label in quotas}
        return np.array([used[label] < quotas[label] for label in labels])

    if method != "random":
        check_steps(cosines(ROWS), chosen, method, skip=2, allowed=allowed)


def test_quotas_in_other_ways():
    labels = ["x", "y"] * 35
    each = vm.select(ROWS, quotas=4, by=labels, compare=False)
    assert each.group_counts == {"x": 4, "y": 4}
    rest = vm.select(ROWS, 9, quotas={"x": 2}, by=labels, compare=False)
    assert rest.group_counts == {"x": 2, "y": 7}
    none = vm.select(ROWS, quotas={"x": 0, "y": 3}, by=labels, compare=False)
    assert none.group_counts == {"y": 3}
    table = pd.DataFrame({"tag": labels, "text": [TEXTS[i % 60] for i in range(70)]})
    by_name = vm.select(table, kernel=vm.kernels.On("text", NGram()), quotas=1, by="tag", compare=False)
    assert by_name.group_counts == {"x": 1, "y": 1}
    collection = Collection(TEXTS, labels=(["x", "y"] * 30))
    read = vm.select(collection, kernel=NGram(), quotas=2, compare=False)
    assert read.group_counts == {"x": 2, "y": 2}
    assert len(collection[read.indices].samples) == 4


def test_many_are_chosen_without_a_matrix_of_them():
    rows = RNG.standard_normal((900, 3))
    similarity = Cosine().similarity(rows)
    assert items.items_of(similarity, 900, 1 << 30).gram.shape == (3, 3)
    for method in GREEDY:  # items that must be in may lie in the span of others, and outnumber its dimensions
        chosen = vm.select(rows[:60], 46, method=method, required=list(range(40)), compare=False)
        check_steps(cosines(rows[:60]), chosen, method, skip=40)


def test_required_alone():
    K = cosines(ROWS)
    chosen = vm.select(ROWS, 8, required=[5, 9, 60], compare=False)
    assert chosen.indices[:3].tolist() == [5, 9, 60]
    check_steps(K, chosen, "vendi", skip=3)
    whole = vm.select(ROWS, 3, required=np.array([5, 9, 60]), compare=False)
    assert whole.indices.tolist() == [5, 9, 60]


@pytest.mark.parametrize("method", GREEDY)
def test_copies_come_last(method):
    """Five different directions in 200 rows, some of them only scaled."""
    kinds = RNG.standard_normal((5, 8))
    rows = kinds[RNG.integers(5, size=200)] * RNG.integers(1, 4, size=200)[:, None]
    rows[:5] = kinds
    chosen = vm.select(rows, 12, method=method, compare=False)
    K = cosines(rows)
    first = K[np.ix_(chosen.indices[:5], chosen.indices[:5])]
    assert (first - np.eye(5)).max() < 1 - 1e-9
    assert len(set(chosen.indices.tolist())) == 12
    assert values(chosen, "copies") == {"copies": 7}


def test_a_copy_waits_even_where_it_would_be_worth_more():
    crowd = np.eye(1, 30) + 1e-3 * RNG.standard_normal((30, 30))
    rows = np.vstack([crowd, np.eye(1, 30, 29), np.eye(1, 30, 29)])  # and a lonely item twice
    chosen = vm.select(rows, 31, compare=False)
    assert {30, 31} - set(chosen.indices.tolist()) == {31}
    assert not any(note.kind == "copies" for note in chosen.notes)


@pytest.mark.parametrize("method", GREEDY)
def test_of_equals_the_first_is_taken_whatever_the_batch(method, monkeypatch):
    for seed in range(5):
        rows = (
            np.random.default_rng(seed).integers(-1, 2, (40, 3)).astype(float)
        )  # where many are worth the same
        rows = rows[rows.any(axis=1)]
        found = []
        for batch, pool in ((1, 8192), (64, 8192), (64, 4)):
            monkeypatch.setattr(greedy, "BATCH", batch)
            monkeypatch.setattr(greedy, "POOL", pool)
            found.append(vm.select(rows, 8, method=method, compare=False).indices.tolist())
        assert found[0] == found[1] == found[2]


def test_all_items_alike():
    chosen = vm.select(np.ones((50, 3)), 4)
    assert chosen.indices.tolist() == [0, 1, 2, 3]
    assert chosen.score == pytest.approx(1)


def test_extremes():
    one = vm.select(ROWS, 1)
    assert one.indices.tolist() == [0]
    assert one.score == pytest.approx(1)
    for method in [*GREEDY, "random"]:
        every = vm.select(ROWS[:40], 40, method=method, compare=["whole"])
        assert sorted(every.indices.tolist()) == list(range(40))
        assert every.score == pytest.approx(every.whole)
    assert vm.select([[1.0, 2.0]], 1).indices.tolist() == [0]


# ------------------------------------------------------------------------------------------------- samples and limits


def test_stochastic_greedy():
    rows = RNG.standard_normal((600, 12))
    chosen = vm.select(rows, 60, exact=False, compare=["random"])
    assert not chosen.exact_greedy
    assert values(chosen, "stochastic-greedy") == {"items": 60, "candidates": 47}
    best = vm.select(rows, 60, exact=True, compare=False)
    assert chosen.comparison["random"] < chosen.score <= best.score
    assert chosen.score > 0.95 * best.score
    assert best.exact_greedy
    assert (vm.select(rows, 60, exact=False, compare=False).indices == chosen.indices).all()
    assert (vm.select(rows, 60, exact=False, compare=False, rng=1).indices != chosen.indices).any()


def test_the_limit_of_work(monkeypatch):
    monkeypatch.setattr(greedy, "LIMIT", 3e6)
    chosen = vm.select(RNG.standard_normal((500, 12)), 50, compare=False)
    assert not chosen.exact_greedy
    assert 0 < values(chosen, "stochastic-greedy")["items"] < 50
    assert chosen.notes[0].advice.option == "exact"
    assert vm.select(RNG.standard_normal((500, 12)), 50, exact=True, compare=False).exact_greedy


def test_samples_keep_the_rules():
    rows = np.repeat(RNG.standard_normal((30, 5)), 3, axis=0)
    labels = np.arange(90) % 2
    chosen = vm.select(rows, quotas={0: 20, 1: 10}, by=labels, required=[4], exact=False, compare=False)
    assert chosen.group_counts == {0: 20, 1: 10}
    assert chosen.indices[0] == 4
    distinct = np.unique(chosen.indices // 3)
    assert len(distinct) == 30


def test_facility_location_of_a_sample(monkeypatch):
    monkeypatch.setattr(methods, "ALL", 50)
    monkeypatch.setattr(methods, "POINTS", 40)
    chosen = vm.select(ROWS, 5, method="facility", compare=False)
    assert values(chosen, "represented-sample") == {"represented": 40, "n": 70}


def test_beyond_the_rank_the_determinant_says_so():
    chosen = vm.select(ROWS, 20, method="logdet", compare=False)
    assert values(chosen, "beyond-the-span") == {"items": 6}
    assert not vm.select(ROWS, 6, method="logdet", compare=False).notes
    # The figures of NUMERICS: poor beyond the rank, unless the choice goes on with a purpose.
    rows = np.random.default_rng(0).standard_normal((500, 16))
    found = vm.select(rows, 40)
    assert found.comparison["random"] < 0.95 * found.comparison["logdet"]
    assert found.comparison["logdet"] == pytest.approx(found.score, rel=0.01)


# ---------------------------------------------------------------------------------------------- functions and devices


def test_a_function_is_called_as_rarely_as_possible():
    calls = 0

    def counted(a, b):
        nonlocal calls
        calls += 1
        return rbf(a, b)

    points = list(RNG.standard_normal((120, 2)) * 4)
    chosen = vm.select(points, 8, counted, compare=False)
    # A check of 8 items, the similarities with those chosen, and the matrix of the chosen ones.
    assert calls <= 64 + 8 + 120 * 8 + 2 * 64
    K = np.array([[rbf(a, b) for b in points] for a in points])
    check_steps(K, chosen, "vendi")
    lazy = calls
    calls = 0
    vm.select(points, 8, counted)
    assert calls <= 5 * lazy  # each comparison takes no more than the choice


def test_functions_that_are_no_similarity():
    with pytest.raises(DiagonalError):
        vm.select([1.0, 2.0, 3.0], 2, lambda a, b: a * b)
    with pytest.raises(AsymmetryError):
        vm.select([1.0, 2.0, 3.0], 2, lambda a, b: 1.0 if a == b else a / 10)
    with pytest.raises(IndefiniteError):
        vm.select([0, 1, 2], 3, lambda a, b: 1.0 if a == b else -0.9)
    random = np.random.default_rng(0).uniform(-1, 1, (60, 60))
    signs = np.triu(random, 1) + np.triu(random, 1).T + np.eye(60)
    with pytest.raises(IndefiniteError):
        vm.select(list(range(60)), 30, lambda a, b: signs[a, b])
    signs[50, 0] = signs[0, 50] = math.nan
    with pytest.raises(InputError, match="the similarity of items 50 and 0 is nan"):
        vm.select(list(range(60)), 30, lambda a, b: signs[a, b])
    mended = vm.select([1.0, 2.0, -3.0], 2, FromFunction(lambda a, b: a * b + 1, normalize=True))
    assert mended.indices.tolist() == [0, 2]
    averaged = FromFunction(lambda a, b: 1.0 if a == b else (0.2 if a < b else 0.4), symmetrize=True)
    assert vm.select([1, 2, 3], 2, averaged).score == pytest.approx(score(np.array([[1, 0.3], [0.3, 1]])))


@pytest.mark.parametrize("method", GREEDY)
def test_libraries(library, method):
    chosen = vm.select(library.array(ROWS), 8, method=method, compare=False)
    check_steps(cosines(ROWS), chosen, method)
    matrix = vm.select(library.array(cosines(ROWS)), 8, "precomputed", method=method, compare=False)
    check_steps(cosines(ROWS), matrix, method)
    assert matrix.score == pytest.approx(chosen.score)


def test_other_orders_and_comparisons_on_a_device(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(devices_module, "SHARE_HOST", False)
    host = vm.select(ROWS, 6, q=2)
    chosen = vm.select(torch.tensor(ROWS), 6, q=2)
    assert chosen.comparison == pytest.approx(host.comparison)
    assert chosen.whole == pytest.approx(host.whole)
    assert (vm.select(torch.tensor(cosines(ROWS)), 6, "precomputed", q=2).indices == host.indices).all()


def test_memory_for_similarities_that_are_not_kept():
    chosen = vm.select(list(ROWS), 6, rbf, compare=False, memory="1 kB")
    assert values(chosen, "similarities-computed-anew") == {"n": 70, "k": 6}
    assert (chosen.indices == vm.select(list(ROWS), 6, rbf, compare=False).indices).all()


# --------------------------------------------------------------------------------------------------------- comparison


def test_comparison():
    chosen = vm.select(ROWS, 10)
    assert list(chosen.comparison) == ["vendi", "logdet", "farthest", "facility", "random"]
    assert chosen.comparison["vendi"] == pytest.approx(chosen.score)
    assert chosen.whole == pytest.approx(score(cosines(ROWS)))
    assert chosen.random_std > 0
    for method in ("logdet", "farthest", "facility"):
        alone = vm.select(ROWS, 10, method=method)
        assert alone.score == pytest.approx(chosen.comparison[method])
        assert alone.comparison == pytest.approx(chosen.comparison)
    assert (np.diff(chosen.sizes) > 0).all()
    assert chosen.sizes[-1] == 10
    assert all(len(curve) == len(chosen.sizes) for curve in chosen.curves.values())
    assert chosen.curves["vendi"] == pytest.approx(np.cumsum(chosen.gains)[chosen.sizes - 1])
    some = vm.select(ROWS, 10, compare=["random"])
    assert list(some.comparison) == ["vendi", "random"]
    none = vm.select(ROWS, 10, compare=False)
    assert list(none.comparison) == ["vendi"]
    assert none.whole is None
    assert math.isnan(none.random_std)
    draws = vm.select(ROWS, 10, method="random")
    assert draws.comparison["random"] == pytest.approx(chosen.comparison["random"])
    assert draws.score != draws.comparison["random"]
    assert "vendi" not in vm.select(ROWS, 10, method="farthest", q=3).comparison


def test_comparisons_that_take_long_are_left_out_and_said(monkeypatch):
    monkeypatch.setattr(selection, "CHEAP", 0.0)
    chosen = vm.select(ROWS, 10)
    assert list(chosen.comparison) == ["vendi"]
    assert chosen.whole is None
    assert values(chosen, "not-compared")["methods"][-2:] == ("random", "whole")
    assert chosen.to_dict()["notes"][-1]["option"] == "compare"
    assert chosen.summary().endswith(
        " random choice, the whole collection. compare=[…] asks for them by name."
    )
    assert chosen.summary("terminal").endswith(" random choice, the whole collection.")
    asked = vm.select(ROWS, 10, compare="facility")
    assert list(asked.comparison) == ["vendi", "facility"]
    assert asked.whole is None
    assert not asked.notes
    assert vm.select(ROWS, 10, compare=["whole"]).whole == pytest.approx(score(cosines(ROWS)))


def test_only_what_is_named_is_compared():
    assert vm.select(ROWS, 10, compare=["logdet"]).whole is None
    with pytest.raises(InputError, match=r"compare=\['vendi'\] with q=5; .* an order from 0.5 to 2"):
        vm.select(ROWS, 10, method="farthest", q=5, compare=["vendi"])
    named = vm.select(ROWS, 10, method="farthest", q=5, compare=["logdet", "whole"])
    assert list(named.comparison) == ["logdet", "farthest"]
    assert named.whole == pytest.approx(vm.score(ROWS, q=5))


def test_of_a_diversity():
    labels = ["x", "y"] * 35
    for kernel in ("cosine", RBF(0.7), rbf):
        samples = list(ROWS) if kernel is rbf else ROWS
        d = vm.Diversity(samples, kernel, by=labels)
        for method in (*GREEDY, "random"):
            alone = vm.select(samples, 6, kernel, method=method, compare=["random", "whole"])
            found = d.select(6, method=method, compare=["random", "whole"])
            assert found.indices.tolist() == alone.indices.tolist()
            assert found.comparison == pytest.approx(alone.comparison, rel=1e-12)
            assert found.whole == pytest.approx(alone.whole, rel=1e-12)
        quotas = d.select(quotas={"x": 1, "y": 3}, compare=False)
        assert quotas.group_counts == {"x": 1, "y": 3}
        assert vm.select(d, quotas=2, compare=False).group_counts == {"x": 2, "y": 2}
    with pytest.raises(InputError, match="by= was given beside a Diversity"):
        vm.select(d, 3, by=labels)
    with pytest.raises(InputError, match="quotas were given without groups"):
        vm.Diversity(ROWS).select(quotas=2)
    with pytest.raises(InputError, match="the Diversity has counts, and select counts every sample once"):
        vm.Diversity(ROWS, counts=[2] * 70).select(3)


def test_a_diversity_calls_a_function_once_a_pair():
    calls = []

    def counted(a, b):
        calls.append(1)
        return rbf(a, b)

    d = vm.Diversity(list(ROWS), counted)
    chosen = d.select(5)
    assert len(calls) <= 70**2
    assert d.select(5).comparison == chosen.comparison
    d.score()
    before = len(calls)
    assert before <= 70**2
    everything = d.select(5)
    assert len(calls) == before
    assert everything.indices.tolist() == chosen.indices.tolist()
    assert everything.whole == float(d.score())


def test_rivals_keep_the_rules():
    chosen = vm.select(ROWS, 5, required=[3, 4], compare=["facility", "random"])
    start = score(cosines(ROWS[[3, 4]]))
    for curve in chosen.curves.values():
        assert curve[1] == pytest.approx(start)


# ---------------------------------------------------------------------------------------------------------- real data


def test_digits():
    data = pytest.importorskip("sklearn.datasets").load_digits()
    chosen = vm.select(data.data, 40)
    assert chosen.score > 1.25 * chosen.comparison["random"]
    assert max(chosen.comparison, key=chosen.comparison.get) == "vendi"
    assert chosen.score > chosen.whole  # few that differ are more diverse than all of them
    per_class = vm.select(data.data, quotas=4, by=data.target, compare=["random"])
    assert set(per_class.group_counts.values()) == {4}
    assert per_class.comparison["random"] < per_class.score <= chosen.score


def test_photographs(shared_data):
    with np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as file:
        rows = file["emb"]
    chosen = vm.select(rows, 30)
    assert chosen.score > 1.3 * chosen.comparison["random"]
    assert max(chosen.comparison, key=chosen.comparison.get) == "vendi"
    assert chosen.comparison["facility"] < chosen.comparison["farthest"]


# ------------------------------------------------------------------------------------------------------------ results


def test_result():
    labels = ["<script>alert(1)</script>", "$x^2$"] * 35
    chosen = vm.select(ROWS, quotas=3, by=labels, quality=np.linspace(0, 1, 70), compare=["random"])
    with pytest.raises(ValueError, match="read-only"):
        chosen.indices[0] = 1
    with pytest.raises(AttributeError):
        chosen.method = "other"
    data = json.loads(json.dumps(chosen.to_dict()))
    assert data["indices"] == chosen.indices.tolist()
    assert data["score"]["low"] <= data["score"]["score"] == chosen.score
    days = [datetime.date(2020, 1, 1), (1, 2)] * 35
    assert json.loads(json.dumps(vm.select(ROWS, quotas=1, by=days).to_dict()))["labels"] == [
        "2020-01-01",
        [1, 2],
    ]
    frame = chosen.to_frame()
    assert list(frame.columns) == ["item", "gain", "group", "quality"]
    assert len(frame) == 6
    page = chosen._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "6 of 70 items, chosen by greedy Vendi Score" in str(chosen)
    assert "mean quality" in chosen.summary()
    assert "without regard to quality" in chosen.summary()
    assert repr(chosen).startswith("Selection(method='vendi', score=")
    json.dumps(vm.select(ROWS, 3, method="random").to_dict())
    json.dumps(vm.select(ROWS, 3, method="farthest").to_dict())


def test_plot():
    from matplotlib import pyplot

    chosen = vm.select(ROWS, 30)
    display = chosen.plot()
    assert len(display.ax_.get_lines()) == 6
    assert display.ax_.get_ylabel() == "Vendi Score"
    pyplot.close(display.figure_)
    figure, ax = pyplot.subplots()
    assert vm.select(ROWS, 1, q=2, compare=False).plot(ax).ax_ is ax
    assert ax.get_ylabel() == "Vendi Score of order 2"
    pyplot.close(figure)


# ----------------------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, InputError, "k is missing"),
        ({"k": "rbf"}, InputError, "The kernel comes after it"),
        ({"k": RBF(1.0)}, InputError, "The kernel comes after it"),
        ({"k": rbf}, InputError, "The kernel comes after it"),
        ({"k": 0}, InputError, "k=0; expected a whole number"),
        ({"k": 2.5}, InputError, "k=2.5"),
        ({"k": True}, InputError, "k=True"),
        ({"k": 71}, InputError, "k=71 and there are 70 items"),
        ({"k": 5, "method": "best"}, UnknownNameError, "no method 'best'"),
        ({"k": 5, "q": 3}, InputError, "an order from 0.5 to 2"),
        ({"k": 5, "q": "inf"}, InputError, "an order from 0.5 to 2"),
        ({"k": 5, "compare": ["vendy"]}, UnknownNameError, "Did you mean 'vendi'"),
        ({"k": 5, "compare": 3}, InputError, "compare=3"),
        ({"k": 5, "exact": "yes"}, InputError, "exact='yes'"),
        ({"k": 5, "rng": -1}, InputError, "rng=-1"),
        ({"k": 5, "memory": "much"}, InputError, "memory='much'"),
        ({"k": 5, "by": ["a"] * 70}, InputError, "by was given without quotas"),
        ({"k": 5, "quotas": 3}, InputError, "quotas were given without groups"),
        ({"quotas": 3, "by": ["a"] * 69}, InputError, "69 labels and there are 70 items"),
        ({"quotas": {"z": 3}, "by": ["a"] * 70}, UnknownNameError, "no group 'z'"),
        ({"quotas": {"a": 71}, "by": ["a"] * 70}, InputError, "is 71 and it has 70 items"),
        ({"quotas": {"a": -1}, "by": ["a"] * 70}, InputError, "whole number from 0 up"),
        ({"quotas": {"a": 0}, "by": ["a"] * 70}, InputError, "at least one item"),
        ({"k": 4, "quotas": {"a": 5}, "by": ["a"] * 70}, InputError, "add up to 5 and k=4"),
        (
            {"k": 6, "quotas": 5, "by": ["a"] * 70},
            InputError,
            "the other 1 have to come from groups without a quota",
        ),
        ({"quotas": "few", "by": ["a"] * 70}, InputError, "quotas='few'"),
        ({"quotas": 1, "by": [["a", "b"]] * 70}, InputError, "one label an item"),
        ({"k": 5, "required": [70]}, InputError, "the position 70"),
        ({"k": 5, "required": [-1]}, InputError, "the position -1"),
        ({"k": 5, "required": [3, 3]}, InputError, "the position 3 twice"),
        ({"k": 2, "required": [1, 2, 3]}, InputError, "required has 3 items and k=2"),
        ({"k": 2, "required": [0.5]}, InputError, "positions of items"),
        ({"k": 2, "required": np.ones(70, dtype=bool)}, InputError, "flatnonzero"),
        ({"quotas": {"a": 1}, "by": ["a"] * 70, "required": [1]}, None, ""),
        (
            {"quotas": {"a": 1, "b": 1}, "by": ["a", "b"] * 35, "required": [0, 2]},
            InputError,
            "2 items of group 'a'",
        ),
        ({"k": 5, "quality": [1.0] * 69}, InputError, "69 entries and there are 70 items"),
        ({"k": 5, "quality": [math.nan] + [1.0] * 69}, InputError, r"quality\[0\] is nan"),
        ({"k": 5, "quality": [-1.0] + [1.0] * 69}, InputError, r"quality\[0\] is -1"),
        ({"k": 5, "quality": [1e305] * 70}, InputError, "cannot be represented"),
        ({"k": 5, "quality": [[1.0], [2.0, 3.0]]}, InputError, "numbers in a plain list"),
        ({"k": 5, "quality": [0.0] * 70}, InputError, "0 for every item"),
        ({"k": 5, "quality": ["good"] * 70}, InputError, "numbers, one an item"),
        ({"k": 5, "quality": np.ones((70, 2))}, InputError, "numbers, one an item"),
        ({"k": 5, "quality": [1.0] * 70, "method": "logdet"}, InputError, "expected method='vendi' and q=1"),
        ({"k": 5, "quality": [1.0] * 70, "q": 2}, InputError, "expected method='vendi' and q=1"),
        ({"k": 5, "trade_off": 2}, InputError, "without quality"),
        ({"k": 5, "quality": [1.0] * 70, "trade_off": -1}, InputError, "trade_off=-1"),
    ],
)
def test_messages(options, error, message):
    if error is None:
        assert vm.select(ROWS, **options).k == 1
        return
    with pytest.raises(error, match=message):
        vm.select(ROWS, **options)


def test_samples_that_cannot_be_used(monkeypatch):
    with pytest.raises(EmptyError):
        vm.select([], 3)
    with pytest.raises(InputError, match="item 1 holds the value nan"):
        vm.select([[1.0, 2.0], [math.nan, 1.0]], 1)
    with pytest.raises(InputError, match="precomputed"):
        vm.select(cosines(ROWS), 3)
    with pytest.raises(InputError, match="strings"):
        vm.select(TEXTS, 3)
    with pytest.raises(TypeError, match="weights"):
        vm.select(ROWS, 3, weights=np.full(70, 1 / 70))  # type: ignore[call-arg]
    with pytest.raises(InputError, match="has weights, and select counts every sample once"):
        vm.select(Collection(TEXTS, weights=np.full(60, 1 / 60)), 3, NGram())
    texts = pd.Series(TEXTS + TEXTS[:10], index=range(70))
    with pytest.raises(InputError, match="another order"):
        vm.select(texts, 3, NGram(), quality=pd.Series(1.0, index=range(69, -1, -1)))
    monkeypatch.setattr("vendimeter.analysis.selection.methods.EXACT_SIDE", 5)
    with pytest.raises(TooLargeError, match="farthest"):
        vm.select(ROWS, 20)
