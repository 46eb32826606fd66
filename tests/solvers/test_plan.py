"""The plan: what is chosen at which size, for what reason, and that nothing is computed for it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter.kernels import RBF, FromFunction, Jaccard
from vendimeter.similarity import FeatureRows, Matrix, Pairwise
from vendimeter.similarity.checks import Policy
from vendimeter.solvers import plan as planning
from vendimeter.solvers.options import METHODS, Solver
from vendimeter.solvers.plan import (
    BASE_MEMORY,
    DENSE_LIMIT,
    EXACT_SIDE,
    EXACT_WITH_TOL,
    Problem,
    choose,
    prepared,
)


def never(*_):
    raise AssertionError("a similarity was computed")


def pairs(n, cost=64.0, **options):
    """Similarities of n items that must not be looked at."""
    return Pairwise(n, never, cost=cost, **options)


def rows(n, d, dtype=np.float64):
    """Rows that take no memory."""
    return FeatureRows(np.broadcast_to(np.ones(1, dtype=dtype), (n, d)))


def planned(similarity, *, q=(1.0,), **options):
    return choose(Problem(similarity, None, list(q), Solver(**options)))


# ------------------------------------------------------------------------------------------------------ the thresholds


@pytest.mark.parametrize(("n", "method"), [(10, "exact"), (EXACT_SIDE, "exact"), (EXACT_SIDE + 1, "lowrank")])
def test_without_a_tolerance_all_eigenvalues_are_taken_up_to_8192_items(n, method):
    assert EXACT_SIDE == 8192  # as the documentation says
    plan = planned(pairs(n))
    assert plan.method == method
    if method == "exact":
        assert (plan.tol, plan.otherwise, plan.considered) == (None, None, ())
        assert plan.evaluations == n * (n + 1) / 2
    else:
        assert plan.tol == 1e-3
        assert (plan.otherwise.method, [other.method for other in plan.considered]) == ("lanczos", ["exact"])
        assert plan.evaluations < plan.otherwise.evaluations == n * (n + 1) / 2


@pytest.mark.parametrize(("n", "method"), [(EXACT_WITH_TOL, "exact"), (EXACT_WITH_TOL + 1, "lowrank")])
def test_with_a_tolerance_all_eigenvalues_are_taken_where_they_are_as_quick(n, method):
    plan = planned(pairs(n), tol=1e-2)
    assert plan.method == method
    assert plan.tol == (None if method == "exact" else 1e-2)


@pytest.mark.parametrize(
    ("n", "d", "method", "side"),
    [
        (10**7, 8192, "exact", "columns"),
        (20_000, 8193, "lanczos", "rows"),
        (8192, 10_000, "exact", "rows"),
        (8193, 10_000, "lowrank", "rows"),
    ],
)
def test_features_are_exact_up_to_8192_on_the_smaller_side(n, d, method, side):
    plan = planned(rows(n, d))
    assert plan.method == method
    assert plan.side == side
    if method == "lowrank":
        assert plan.otherwise.method == "lanczos"


def test_molecules_with_a_tolerance_end_in_products_with_the_matrix():
    plan = planned(pairs(5000, 2 * 1024.0), tol=1e-2)
    # a low rank is tried first, as long as that is cheap beside it
    assert plan.method == "lowrank"
    assert plan.rank < 1500
    assert (plan.otherwise.method, plan.otherwise.storage) == ("lanczos", "float32")
    assert plan.otherwise.flops < plan.considered[0].flops / 2
    assert plan.considered[0].method == "exact"


def test_where_all_eigenvalues_cost_little_more_certainty_is_taken():
    # a slow function: its calls are what counts, and both need all of them
    plan = planned(pairs(5000, 1e6), tol=1e-2)
    assert plan.method == "lowrank"
    assert (plan.otherwise.method, plan.considered[0].method) == ("exact", "lanczos")
    assert plan.considered[0].flops < plan.otherwise.flops <= 2 * plan.considered[0].flops


def test_a_slow_function_is_asked_for_few_pairs_where_a_tolerance_allows_it():
    for n in (200, 2000):
        plan = planned(pairs(n, 1e5, trusted=False), tol=1e-2)
        assert (plan.method, plan.storage, plan.otherwise.method) == ("lowrank", "columns", "exact")
        assert plan.evaluations <= plan.otherwise.evaluations * 1.05
        assert planned(pairs(n, 1e5, trusted=False)).method == "exact"  # no tolerance, no approximation
        # a function of blocks is quick
        assert planned(pairs(n, 1e3, trusted=False), tol=1e-2).method == "exact"


def test_a_low_rank_is_not_tried_where_it_cannot_be():
    sparse_rows = FeatureRows(
        sparse.random_array((6000, 20_000), density=2e-3, rng=np.random.default_rng(0), format="csr")
    )
    assert planned(sparse_rows, tol=1e-2).method == "lanczos"
    assert planned(rows(20_000, 9000), tol=1e-2).method == "lanczos"  # columns that are as good as a low rank
    assert planned(pairs(9000), q=[2.0], tol=1e-2).method == "lanczos"  # ‖ρ‖ is all it takes
    assert planned(pairs(9000), q=[2.0, math.inf], tol=1e-2).method == "lowrank"


def test_a_million_categories_need_no_dense_matrix():
    labels = np.random.default_rng(1).integers(0, 50_000, 1_000_000)
    for tol in (None, 1e-2):
        plan = vm.plan(labels, "match", tol=tol)
        assert (plan.method, plan.side) == ("exact", "sparse")
        assert plan.bytes < 1 << 28
        assert plan.flops < 1e9
    score = vm.score(labels, "match", memory="256 MiB")
    share = np.bincount(labels) / len(labels)
    assert score == pytest.approx(math.exp(-np.sum(share * np.log(share))), rel=1e-9)
    assert score.method == "components"


def test_sparse_data_that_hang_together_are_not_solved_by_components():
    X = sparse.random_array((9000, 30_000), density=1e-3, rng=np.random.default_rng(2), format="csr")
    plan = planned(FeatureRows(X))
    assert (plan.method, plan.side, plan.storage) == ("lanczos", "sparse", "features")
    assert plan.evaluations == 0
    K = sparse.csr_array(X @ X.T)
    plan = planned(Matrix(K))
    assert (plan.method, plan.side, plan.storage) == ("lanczos", "sparse", "given")


# ----------------------------------------------------------------------------------------- what only eigenvalues answer


@pytest.mark.parametrize(("q", "policy"), [([0.0], None), ([1.0, 0.0], None), ([1.0], Policy(project=True))])
def test_the_rank_and_projections_take_all_eigenvalues(q, policy):
    large = pairs(20_000, policy=policy)
    assert planned(large, tol=1e-2, q=q).method == "exact"
    for method, words in (("lowrank", "method='lowrank' cannot"), ("lanczos", "method='lanczos' cannot")):
        with pytest.raises(vm.errors.InputError, match=f"{words}.*method='exact'"):
            planned(pairs(100, policy=policy), method=method, q=q)
    with pytest.raises(vm.errors.TooLargeError, match=r"takes about .* GiB and memory=1 GiB"):
        planned(large, tol=1e-2, memory=1 << 30, q=q)


def test_a_kernel_that_projects_takes_all_eigenvalues_too():
    items = list(range(5000))
    assert vm.plan(items, FromFunction(never, project=True), tol=1e-2).method == "exact"
    with pytest.raises(vm.errors.InputError, match="project=True"):
        vm.plan(items, FromFunction(never, project=True), method="lanczos")


@pytest.mark.parametrize("method", sorted({*METHODS} - {"auto", "random-features"}))  # which is a kernel's
def test_a_method_that_is_asked_for_is_taken(method):
    for similarity in (pairs(50), pairs(20_000), rows(50, 10), rows(10, 50), Matrix(np.eye(20))):
        assert planned(similarity, method=method).method == method
    assert planned(pairs(50), method="exact", tol=1e-2).method == "exact"


# ------------------------------------------------------------------------------------------------------------- memory


def test_memory_decides_how_the_matrix_is_kept():
    n = 5000
    kept = {4000: "float64", 400: "float64", 300: "float32", 250: "float32", 180: "blocks", 120: "blocks"}
    for memory, storage in kept.items():  # an order below 1 feels the rounding of float32
        plan = planned(pairs(n), tol=1e-2, method="lanczos", memory=memory * 10**6, q=[0.5])
        assert plan.storage == storage
        assert plan.bytes <= memory * 10**6
        assert plan.precision == "float64"  # of products; how it is kept is another matter
        assert (plan.evaluations > 5 * n**2) == (storage == "blocks")
    assert planned(pairs(n), method="lanczos", precision="float32", tol=1e-2).storage == "float32"
    # Where its rounding is nothing beside the tolerance, float32 is read faster.
    for tol, storage in ((1e-2, "float32"), (1e-6, "float64")):
        assert planned(pairs(n), method="lanczos", tol=tol).storage == storage


def test_memory_decides_whether_features_are_multiplied_out():
    wide, narrow = rows(9000, 20_000), rows(100_000, 9000)
    for similarity in (wide, narrow):
        roomy = planned(similarity, method="lanczos", memory=2 << 30)
        tight = planned(similarity, method="lanczos", memory=300 << 20)
        assert (roomy.storage, tight.storage) == ("float64", "features")
        assert tight.bytes <= 300 << 20


def test_memory_limits_the_rank():
    ranks = [
        planned(pairs(50_000), method="lowrank", memory=memory << 20).rank
        for memory in (4096, 1024, 256, 128)
    ]
    assert ranks == sorted(ranks, reverse=True)
    for rank, memory in zip(ranks, (4096, 1024, 256, 128), strict=True):
        assert 8 * 50_000 * rank <= memory << 20
    assert ranks[-1] >= 16


def test_little_memory_turns_an_exact_answer_into_an_interval():
    assert planned(pairs(5000)).method == "exact"
    plan = planned(pairs(5000), memory=200 << 20)
    assert (plan.method, plan.otherwise.method) == ("lowrank", "lanczos")
    assert plan.bytes <= 200 << 20


@pytest.mark.parametrize("method", ["auto", "exact", "lowrank", "lanczos"])
def test_memory_in_which_nothing_can_be_done_is_refused_with_a_figure(method):
    with pytest.raises(vm.errors.TooLargeError, match=r"[\d.]+ (KiB|MiB).*expected"):
        planned(pairs(5000), method=method, tol=1e-2, memory=1 << 20)


@pytest.mark.parametrize("method", ["lowrank", "lanczos"])
def test_the_least_memory_that_the_message_names_is_enough(method):
    for n in (1000, 50_000):
        with pytest.raises(vm.errors.TooLargeError) as caught:
            planned(pairs(n), method=method, memory=BASE_MEMORY)
        figure = float(str(caught.value).split("at least ")[1].split(" MiB")[0])
        assert planned(pairs(n), method=method, memory=int((figure * 1.01) * 2**20)).method == method


def test_what_is_too_large_for_all_eigenvalues_is_never_planned_so():
    plan = planned(pairs(DENSE_LIMIT + 1, 1e6), tol=1e-2)
    assert (plan.method, plan.otherwise.method) == ("lowrank", "lanczos")


# --------------------------------------------------------------------------------------------------- for the caller


@pytest.mark.parametrize("method", ["auto", "exact", "lowrank", "lanczos"])
@pytest.mark.parametrize("tol", [None, 1e-2])
def test_no_similarity_is_computed_for_a_plan(method, tol):
    items = [f"item {i}" for i in range(4000)]
    for kernel in (never, FromFunction(never, block=True)):
        plan = vm.plan(items, kernel, method=method, tol=tol, memory="2 GiB", q=[1, 2, "inf"], rng=3)
        assert plan.method == (method if method != "auto" else "exact" if tol is None else "lowrank")


def test_a_plan_sees_copies_and_items_without_weight():
    items = [i % 100 for i in range(20_000)]
    plan = vm.plan(items, never)
    assert plan.evaluations == 100 * 101 / 2
    weights = np.zeros(9000)
    weights[:50] = 0.02
    plan = vm.plan(list(range(9000)), never, weights=weights)
    assert (plan.method, plan.evaluations) == ("exact", 50 * 51 / 2)
    assert (
        vm.plan(items[:50], never, counts=np.r_[np.zeros(40, dtype=int), np.ones(10, dtype=int)]).evaluations
        == 55
    )


def test_the_plan_is_what_is_done():
    rng = np.random.default_rng(3)
    points, bits = rng.standard_normal((3500, 2)), rng.random((300, 64)) < 0.3
    assert (
        vm.plan(points, RBF(1.0), tol=1e-2).method == vm.score(points, RBF(1.0), tol=1e-2).method == "lowrank"
    )
    for method in ("lowrank", "lanczos"):
        assert vm.score(bits, Jaccard(), method=method, tol=0.5).method == method
        assert vm.plan(bits, Jaccard(), method=method, tol=0.5).method == method


def test_a_plan_for_people_and_for_json():
    plan = vm.plan(np.arange(9000.0), RBF(1.0), tol=1e-2)
    text = str(plan)
    assert text.startswith("lowrank: columns of the 9000×9000 matrix")
    assert "\n  half-width 0.01 of the score; about " in text
    assert "similarities computed" in text
    assert "\notherwise lanczos: " in text
    assert "\nnot exact: " in text
    plain = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert plain["method"] == "lowrank"
    assert plain["tol"] == 1e-2
    assert plain["otherwise"]["storage"] == "float32"
    assert [other["method"] for other in plain["considered"]] == ["exact"]
    exact = vm.plan(np.eye(5), "precomputed")
    assert "half-width" not in str(exact)
    assert json.loads(json.dumps(exact.to_dict(), allow_nan=False))["otherwise"] is None


@pytest.mark.parametrize("samples", ["sparse", "dense", "pairs"])
def test_every_plan_can_be_written_as_json(samples):
    data = {
        "sparse": (sparse.eye_array(500, 800, format="csr"), "cosine"),
        "dense": (np.ones((50, 20)), "cosine"),
        "pairs": (list(range(50)), never),
    }[samples]
    for method in ("exact", "lowrank", "lanczos"):
        plain = vm.plan(*data, method=method).to_dict()
        json.dumps(plain, allow_nan=False)
        for name in ("flops", "bytes"):
            assert 0 < plain[name] < math.inf


def test_the_same_call_gives_the_same_plan():
    similarity = pairs(12_345, 700.0)
    assert planned(similarity, tol=3e-3) == planned(similarity, tol=3e-3)
    assert planned(similarity, tol=3e-3) != planned(similarity, tol=1e-3)


def test_costs_grow_with_the_work():
    tight, loose = (planned(pairs(50_000), method="lanczos", tol=tol) for tol in (1e-3, 1e-2))
    assert tight.flops > loose.flops
    small, large = (planned(pairs(n), method="lanczos", tol=1e-2) for n in (5000, 50_000))
    assert large.flops > 50 * small.flops
    assert large.bytes > small.bytes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "lanzcos"}, r"no method 'lanzcos'.*'lanczos'"),
        ({"method": None}, r"no method None"),
        ({"pivots": "best"}, r"no pivot rule 'best'.*'random', 'greedy'"),
        ({"precision": "float16"}, r"no precision 'float16'.*'float64'"),
    ],
)
def test_options_that_there_are_not(options, message):
    with pytest.raises(vm.errors.UnknownNameError, match=message):
        vm.plan(np.eye(3), "precomputed", **options)
    with pytest.raises(vm.errors.UnknownNameError, match=message):
        vm.score(np.eye(3), "precomputed", **options)


@pytest.mark.parametrize("memory", ["many", "4 apples", "", "-1 GiB", 0, -5, 0.5, True, math.nan])
def test_memory_that_is_none(memory):
    with pytest.raises(vm.errors.InputError, match=r"memory=.*'4 GiB'"):
        vm.plan(np.eye(3), "precomputed", memory=memory)


def test_identical_items_are_collapsed_only_where_rows_would_be_computed():
    repeated = np.repeat(np.random.default_rng(4).standard_normal((5, 3)), 4, axis=0)
    assert prepared(Problem(FeatureRows(repeated), None, [1.0])).index is None
    problem = prepared(Problem(FeatureRows(repeated[:2]), None, [1.0]))  # two rows of three columns
    assert problem.collapsed
    assert problem.size == 1
    assert problem.weights.tolist() == [1.0]
    assert prepared(Problem(Matrix(np.ones((4, 4))), None, [1.0])).size == 4


def test_the_look_at_sparse_data_finds_what_hangs_together():
    K = sparse.block_diag([np.ones((3, 3)), np.ones((5, 5)), sparse.eye_array(2)], format="csr")
    shape = planning.sparse_shape(Matrix(K), None)
    assert (shape.entries, shape.largest, shape.cubes) == (36, 5, 27 + 125 + 2)
    assert planning.sparse_shape(Matrix(K), np.array([0, 1, 9])).largest == 2
    X = np.eye(4)[[0, 1, 2, 2, 2, 3]]
    X[0, 1] = 1  # the first two items share a column
    shape = planning.sparse_shape(FeatureRows(sparse.csr_array(X)), None)
    assert (shape.entries, shape.largest) == (7, 2)  # on the smaller side, columns
