"""#Circles: known graphs, brute force, bounds that hold whatever was used, and real molecules."""

from __future__ import annotations

import gzip
import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from vendimeter.errors import EmptyError, InputError, UnansweredError
from vendimeter.kernels import FromFunction, Morgan
from vendimeter.metrics import packing
from vendimeter.metrics.packing import METHODS, circles, largest_independent

GREEDY_FAILS = 2  # a seed of random_graph


def matrix(n, edges, near=0.9):
    """Similarities with an edge of the graph wherever they are high."""
    K = np.eye(n)
    for i, j in edges:
        K[i, j] = K[j, i] = near
    return K


def cycle(n):
    return [(i, (i + 1) % n) for i in range(n)]


PETERSEN = [*cycle(5), *((i, i + 5) for i in range(5)), *((5 + i, 5 + (i + 2) % 5) for i in range(5))]


def random_graph(n, density, seed):
    rng = np.random.default_rng(seed)
    return [pair for pair in itertools.combinations(range(n), 2) if rng.random() < density]


def brute_force(n, edges):
    """The largest independent set, by asking of each vertex whether it is in."""
    near = [0] * n
    for i, j in edges:
        near[i] |= 1 << j
        near[j] |= 1 << i

    def largest(left):
        if not left:
            return 0
        v = max((v for v in range(n) if left >> v & 1), key=lambda v: (near[v] & left).bit_count())
        if not near[v] & left:
            return left.bit_count()
        return max(largest(left & ~(1 << v)), 1 + largest(left & ~near[v] & ~(1 << v)))

    return largest((1 << n) - 1)


def check(result, n, edges, expected):
    assert result.low <= expected <= result.high
    assert result.exact == (result.low == result.high)
    chosen = result.indices.tolist()
    assert len(set(chosen)) == result.low
    assert not any(i in chosen and j in chosen for i, j in edges)


def force(patch, how):
    """Leave only some of the means."""
    if how == "pass":
        patch.setattr(packing, "MOST_PAIRS", -1)
    if how == "cover":
        patch.setattr(packing, "LINEAR_EDGES", -1)
    if how in ("cover", "linear"):
        patch.setattr(packing, "EXACT_EDGES", -1)
        patch.setattr(packing, "STEPS", 5)
    if how == "exact":
        patch.setattr(packing, "ROUNDS", 0)
        patch.setattr(packing, "STEPS", 0)
    if how in ("cover", "linear", "exact"):
        patch.setattr(packing, "REDUCED_EDGES", -1)


# ------------------------------------------------------------------------------------------------------ known graphs


@pytest.mark.parametrize(("n", "edges", "expected"), [
    (1, [], 1),
    (2, [(0, 1)], 1),
    (6, [], 6),
    (5, list(itertools.combinations(range(5), 2)), 1),
    (7, list(itertools.pairwise(range(7))), 4),
    (5, cycle(5), 2),
    (6, cycle(6), 3),
    (11, cycle(11), 5),
    (10, PETERSEN, 4),
    (9, [(0, i) for i in range(1, 9)], 8),
    (10, [*cycle(5), *((i + 5, j + 5) for i, j in cycle(5))], 4),
    (8, [(i, j) for i in range(4) for j in range(4, 8)], 4),
])  # fmt: skip
@pytest.mark.parametrize("how", ["all", "exact", "linear", "cover", "pass"])
def test_known_graphs(n, edges, expected, how, monkeypatch):
    force(monkeypatch, how)
    result = circles(matrix(n, edges), "precomputed", threshold=0.5)
    check(result, n, edges, expected)
    if how in ("all", "exact"):
        assert int(result) == expected


@settings(max_examples=60)
@given(st.integers(1, 14), st.floats(0, 1), st.integers(0, 1000))
def test_bounds_hold_by_every_means(n, density, seed):
    edges = random_graph(n, density, seed)
    expected = brute_force(n, edges)
    for how in ("all", "linear", "cover", "pass", "tiles"):
        with pytest.MonkeyPatch.context() as patch:
            if how == "tiles":
                patch.setattr("vendimeter.solvers.edges.TILE", 1 + seed % 5)
            elif how != "all":
                force(patch, how)
            result = circles(matrix(n, edges), "precomputed", threshold=0.5)
        check(result, n, edges, expected)
        assert how not in ("all", "tiles") or int(result) == expected


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", ["all", "exact", "linear", "cover", "pass"])
def test_larger_random_graphs(seed, how, monkeypatch):
    edges = random_graph(32, 0.08 + 0.1 * seed, seed)
    force(monkeypatch, how)
    result = circles(matrix(32, edges), "precomputed", threshold=0.5, rng=seed)
    expected = brute_force(32, edges)
    check(result, 32, edges, expected)
    if how in ("all", "exact"):
        assert int(result) == expected


@pytest.mark.parametrize("tile", [1, 2, 7])
@pytest.mark.parametrize("seed", range(3))
def test_one_pass_in_blocks(tile, seed, monkeypatch):
    force(monkeypatch, "pass")
    monkeypatch.setattr("vendimeter.solvers.edges.TILE", tile)
    edges = random_graph(25, 0.3, seed)
    result = circles(matrix(25, edges), "precomputed", threshold=0.5)
    check(result, 25, edges, brute_force(25, edges))
    # The paper's greedy order: an item is taken where it is far from all that were taken before.
    greedy = []
    for i in range(25):
        if not any((j, i) in edges for j in greedy):
            greedy.append(i)
    assert result.indices.tolist() == greedy
    assert result.method == "one pass"


def test_the_search_finds_what_greedy_does_not():
    edges = random_graph(40, 0.15, GREEDY_FAILS)
    graph = sparse.csr_array(matrix(40, edges) - np.eye(40) > 0)
    greedy = packing._greedy_set(graph)
    best = packing._search(graph, 40, 500, np.random.default_rng(0))
    expected = brute_force(40, edges)
    assert len(greedy) < expected
    assert len(best) == expected


def test_components_of_a_graph_too_large_to_reduce(monkeypatch):
    monkeypatch.setattr(packing, "REDUCED_EDGES", 10)  # the path is reduced, the other is not
    edges = [*PETERSEN, *((i, i + 1) for i in range(10, 17))]
    result = circles(matrix(20, edges), "precomputed", threshold=0.5)
    check(result, 20, edges, 10)
    assert int(result) == 10


def test_effort_narrows_the_bounds():
    edges = random_graph(60, 0.1, 1)
    graph = sparse.csr_array(matrix(60, edges) - np.eye(60) > 0)
    little = largest_independent(graph, effort=1e-3, rng=np.random.default_rng(0))
    much = largest_independent(graph, effort=1, rng=np.random.default_rng(0))
    assert len(little.vertices) <= len(much.vertices) == much.high < little.high
    assert METHODS[little.method] == "search and linear programme"
    assert METHODS[much.method] == "branch and bound"


@pytest.mark.parametrize("answer", ["nothing", "edges"])
def test_a_solver_is_not_believed(answer, monkeypatch):
    """A set with an edge in it is no answer; without a bound there is the one that was there before."""
    from scipy import optimize

    monkeypatch.setattr(packing, "ROUNDS", 0)
    x = None if answer == "nothing" else np.ones(11)
    reply = optimize.OptimizeResult(x=x, mip_dual_bound=None)
    monkeypatch.setattr(optimize, "milp", lambda *args, **options: reply)
    result = circles(matrix(11, cycle(11)), "precomputed", threshold=0.5)
    check(result, 11, cycle(11), 5)
    assert (result.low, result.high) == (5, 6)


# ------------------------------------------------------------------------------------------------------------- inputs


def test_distances_are_greater_than_the_threshold():
    points = [[math.cos(a), math.sin(a)] for a in np.radians([0, 60, 120, 180])]
    assert int(circles(points, threshold=0.5)) == 2  # 1 − cos 60° = 0.5 is not farther than 0.5
    assert int(circles(points, threshold=0.5 - 1e-12)) == 4
    assert int(circles(points, threshold=2)) == 1
    sets = [{1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}]  # 1 − 0.7 is above 0.3 in floating point
    assert int(circles(sets, "jaccard", threshold=0.3)) == 1


def test_identical_items_count_once():
    rows = np.random.default_rng(0).standard_normal((30, 5))
    result = circles(np.concatenate([rows, rows, 2 * rows]), threshold=0)
    assert int(result) == 30
    assert circles(["a", "b", "a"], "match", threshold=0).indices.tolist() == [0, 1]
    assert int(circles(np.ones((50, 3)), threshold=0)) == 1


def test_every_library(library):
    rows = np.random.default_rng(1).standard_normal((40, 4)).astype(np.float32)
    expected = circles(rows, threshold=0.4)
    result = circles(library.array(rows), threshold=0.4)
    assert result == expected
    assert result.indices.tolist() == expected.indices.tolist()


def test_calls_repeat():
    rows = np.random.default_rng(1).standard_normal((200, 8))
    first, second = (circles(rows, threshold=0.5, effort=0.01, rng=3) for _ in range(2))
    assert first == second
    assert np.array_equal(first.indices, second.indices)


def test_a_function_of_the_users():
    words = ["tree", "trees", "boat", "boats", "sea", "tree"]
    result = circles(words, lambda a, b: len(set(a) & set(b)) / len(set(a) | set(b)), threshold=0.5)
    assert int(result) == 3
    near = FromFunction(lambda A, B: np.exp(-abs(np.subtract.outer(A, B))), block=True)
    assert int(circles(np.arange(10.0), near, threshold=1 - math.exp(-1.5))) == 5


def test_the_result():
    result = circles(matrix(5, cycle(5)), "precomputed", threshold=0.5)
    assert repr(result) == "Circles(low=2, high=2, exact=True, threshold=0.5, method='matching bounds')"
    assert result.to_dict()["indices"] == result.indices.tolist()
    bounds = packing.Circles(3, 1_200, False, 0.5, "one pass", np.arange(3))
    with pytest.raises(UnansweredError, match="between 3 and 1,200"):
        int(bounds)


def test_pairs_take_what_memory_says(monkeypatch):
    monkeypatch.setattr(packing, "REDUCED_EDGES", 1000)
    rows = np.random.default_rng(0).standard_normal((1200, 3))
    circles(rows[:9], threshold=0.5)  # imports
    tracemalloc.start()
    try:
        assert circles(rows, threshold=2, memory=packing.EDGE_BYTES * math.comb(1200, 2)).method != "one pass"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < packing.EDGE_BYTES * math.comb(1200, 2) + 8 * 1024**2  # and a tile


def test_memory_decides_for_one_pass():
    rows = np.random.default_rng(0).standard_normal((100, 3))
    assert circles(rows, threshold=0.5, memory=100).method == "one pass"
    assert circles(rows, threshold=0.5).method != "one pass"


ROWS = [[1.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize(("samples", "options", "message"), [
    (ROWS, {"threshold": -0.1}, "threshold=-0.1; expected a distance 1 − k, a number from 0 to 2"),
    (ROWS, {"threshold": 75}, "threshold=75"),
    (ROWS, {"threshold": math.inf}, "threshold=inf"),
    (ROWS, {"threshold": None}, "threshold=None"),
    (ROWS, {"threshold": [0.5]}, "threshold="),
    (ROWS, {"threshold": 0.5, "effort": 0}, "effort=0; expected"),
    (ROWS, {"threshold": 0.5, "effort": "high"}, "effort='high'"),
    (ROWS, {"threshold": 0.5, "memory": 0}, "memory=0"),
    (ROWS, {"threshold": 0.5, "rng": None}, "rng=None"),
    ([[math.inf, 1.0]], {"threshold": 0.5}, "inf"),
    (None, {"threshold": 0.5}, "samples"),
    ("CCO", {"threshold": 0.5}, "string|text"),
    ([[1, 0.5], [0.2, 1]], {"kernel": "precomputed", "threshold": 0.5}, "not symmetric"),
    ([[1, 2], [2, 1]], {"kernel": "precomputed", "threshold": 0.5}, "similarity of 2 in size"),
    (["CCO", "C(C"], {"kernel": "morgan", "threshold": 0.5}, "item 1"),
])  # fmt: skip
def test_what_cannot_be_used(samples, options, message):
    if options.get("kernel") == "morgan":
        pytest.importorskip("rdkit")
    with pytest.raises(InputError, match=message):
        circles(samples, **options)


def test_nothing_has_no_circles():
    with pytest.raises(EmptyError):
        circles([], threshold=0.5)


# ---------------------------------------------------------------------------------------------------------- real data


def molecules(shared_data, n):
    pytest.importorskip("rdkit")
    with gzip.open(shared_data / "molecules" / "moses_test.csv.gz", "rt") as file:
        return [line.partition(",")[0].strip() for line, _ in zip(file, range(n + 1), strict=False)][1:]


def test_real_molecules(shared_data):
    smiles = molecules(shared_data, 250)
    result = circles(smiles, "morgan", threshold=0.75)
    K = Morgan().similarity(smiles).dense()
    assert result.exact
    chosen = K[np.ix_(result.indices, result.indices)]
    assert (1 - chosen[~np.eye(len(chosen), dtype=bool)] > 0.75).all()
    greedy = []
    for i in range(len(smiles)):
        if (1 - K[i, greedy] > 0.75).all():
            greedy.append(i)
    assert int(result) > len(greedy)


def test_bounds_of_many_real_molecules(shared_data):
    smiles = molecules(shared_data, 900)
    result = circles(smiles, Morgan(), threshold=0.75, effort=0.25)
    assert result.method == "search and linear programme"
    assert 199 < result.low <= result.high < 225
