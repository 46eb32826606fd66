"""The weights of greatest diversity: against an independent solver, closed forms, and what must hold of any optimum."""

from __future__ import annotations

import json
import math

import matplotlib
import numpy as np
import pytest
from scipy.optimize import minimize

import vendimeter as vm
from vendimeter.analysis.reweighting import search as searching
from vendimeter.analysis.reweighting.orders import Order, State, widen
from vendimeter.data.collection import Collection
from vendimeter.errors import InputError, MatrixError, ToleranceWarning, TooLargeError
from vendimeter.kernels import RBF, Match, NGram, On, Precomputed, RandomFeatures, as_kernel

matplotlib.use("Agg")

INF = float("inf")


def rows(n, d, seed=0, mean=0.0):
    return np.random.default_rng(seed).standard_normal((n, d)) + mean


def hill_of(K, p, q):
    """The score, straight from its definition."""
    values = np.linalg.eigvalsh(np.sqrt(np.outer(p, p)) * K)
    values = values[values > 1e-14]
    values /= values.sum()
    if q == 1:
        return math.exp(-np.sum(values * np.log(values)))
    if math.isinf(q):
        return 1 / values.max()
    return float(np.sum(values**q) ** (1 / (1 - q)))


def best_by_slsqp(K, q):
    """The largest score, by a solver that knows nothing of the problem but its values."""
    n, best = len(K), 0.0
    for start in (np.full(n, 1 / n), np.random.default_rng(1).dirichlet(np.ones(n))):
        found = minimize(
            lambda p: -math.log(hill_of(K, np.maximum(p, 0) / np.maximum(p, 0).sum(), q)),
            start,
            method="SLSQP",
            bounds=[(0, 1)] * n,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-13, "maxiter": 500},
        )
        best = max(best, math.exp(-found.fun))
    return best


TEXTS = ["a b c", "a b d", "a b c d", "e f g h", "e f", "x y", "x", "a"]
BITS = np.random.default_rng(1).random((12, 20)) < 0.3
BITS[:, 0] = True
CASES = {
    "narrow rows": (rows(12, 4, mean=0.7), "cosine"),
    "wide rows": (rows(7, 40, mean=0.4), "cosine"),
    "few directions": (rows(10, 2) @ rows(2, 5), "cosine"),
    "sparse rows": (TEXTS, NGram(1, 2)),
    "one column each": (list("aabbbcd"), Match()),
    "pairs": (rows(9, 2), RBF(1.0)),
    "bits": (BITS, "jaccard"),
    "a matrix": (np.corrcoef(rows(8, 30, mean=1.0)), Precomputed()),
    "a function": ([1.0, 2.0, 2.5, 7.0], lambda a, b: float(np.exp(-abs(a - b)))),
}


@pytest.mark.parametrize("q", [0.5, 1, 1.5, 3])
@pytest.mark.parametrize("name", CASES)
def test_no_other_solver_finds_better_weights(name, q):
    samples, kernel = CASES[name]
    K = as_kernel(kernel).similarity(samples).dense()
    found = vm.reweight(samples, kernel, q=q, tol=1e-5)
    assert found.met
    assert 0 <= found.gap <= 1e-5
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1, abs=1e-14)
    assert hill_of(K, found.weights, q) == pytest.approx(float(found.score), rel=1e-9)
    best = best_by_slsqp(K, q)
    assert found.score >= best * (1 - 2e-5)
    assert best <= found.bounds[1] * (1 + 1e-12)
    assert found.bounds[0] <= found.score <= found.bounds[1]
    assert found.score == pytest.approx(
        float(vm.score(samples, kernel, weights=found.weights, q=q)), rel=1e-12
    )
    assert found.uniform == pytest.approx(float(vm.score(samples, kernel, q=q)), rel=1e-12)
    assert found.uniform <= found.score * (1 + 1e-12)


@pytest.mark.parametrize("name", ["wide rows", "bits", "a matrix", "a function"])
def test_order_2_has_a_closed_form(name):
    samples, kernel = CASES[name]
    K = as_kernel(kernel).similarity(samples).dense()
    # ‖ρ‖² = Σ p p k², the least of a quadratic form: where all have weight, (K∘K) p is constant.
    p = np.linalg.solve(K**2, np.ones(len(K)))
    assert p.min() > 0
    found = vm.reweight(samples, kernel, q=2, tol=1e-8)
    assert found.score == pytest.approx(p.sum(), rel=2e-8)
    np.testing.assert_allclose(found.weights, p / p.sum(), atol=1e-3)


@pytest.mark.parametrize("name", ["narrow rows", "pairs", "a matrix", "sparse rows"])
def test_the_least_largest_eigenvalue(name):
    samples, kernel = CASES[name]
    K = as_kernel(kernel).similarity(samples).dense()
    found = vm.reweight(samples, kernel, q="inf", tol=1e-3)
    assert found.met
    assert math.isinf(found.score.q)
    assert found.score == pytest.approx(hill_of(K, found.weights, INF), rel=1e-9)
    # An independent bound: λ_max(ρ) ≥ tr ρτ ≥ min φᵀτφ for any state τ, here the best of many on the top eigenvectors.
    best_high = vm.reweight(samples, kernel, q=40, tol=1e-4)
    assert hill_of(K, best_high.weights, INF) <= found.bounds[1] * (1 + 1e-12)
    for p in np.random.default_rng(2).dirichlet(np.ones(len(K)), size=200):
        assert hill_of(K, p, INF) <= found.bounds[1]


@pytest.mark.parametrize("q", [0.3, 1, 1 + 1e-14, 2, 7, 1e5, INF])
def test_items_without_anything_in_common_get_the_same(q):
    found = vm.reweight(list("aaaaabbc"), "match", q=q, tol=1e-6)
    assert found.score == pytest.approx(3, rel=1e-6)
    shares = [found.weights[:5].sum(), found.weights[5:7].sum(), found.weights[7]]
    np.testing.assert_allclose(shares, 1 / 3, atol=2e-3)
    assert np.ptp(found.weights[:5]) < 1e-15
    assert np.ptp(found.weights[5:7]) < 1e-15


def test_copies_share_what_one_would_get():
    data = rows(10, 4, mean=0.7)
    once = vm.reweight(data, tol=1e-6)
    index = np.array([0, 0, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 9])
    copied = vm.reweight(data[index], tol=1e-6)
    assert copied.score == pytest.approx(float(once.score), rel=1e-6)
    np.testing.assert_allclose(np.bincount(index, weights=copied.weights), once.weights, atol=1e-3)
    for i in (0, 2, 9):
        assert np.ptp(copied.weights[index == i]) < 1e-15


def test_what_has_no_weight_gets_none_and_counts_are_where_it_starts():
    data = rows(12, 4, mean=0.7)
    p = np.r_[0.0, 0.0, np.full(10, 0.1)]
    some, left = vm.reweight(data, weights=p, tol=1e-6), vm.reweight(data[2:], tol=1e-6)
    assert (some.weights[:2] == 0).all()
    assert some.score == pytest.approx(float(left.score), rel=1e-6)
    assert some.uniform == pytest.approx(float(vm.score(data, weights=p)))
    counts = np.r_[5, np.ones(11, dtype=int)]
    counted = vm.reweight(data, counts=counts)
    assert counted.uniform == pytest.approx(float(vm.score(data, counts=counts)))
    assert counted.uniform.n == 16
    assert counted.score.n == 12
    # Identical samples share their weight as they did before.
    shared = vm.reweight(["a", "a", "b"], "match", counts=[3, 1, 4])
    assert shared.weights[0] == pytest.approx(3 * shared.weights[1])


@pytest.mark.parametrize("q", [0.5, 1, 2, 8])
def test_many_items_are_worked_on_a_few_at_a_time(q, monkeypatch):
    data = rows(400, 6) * np.arange(1, 7) ** -1.0 + 0.3
    once = vm.reweight(data[:, :], q=q, tol=1e-4)
    monkeypatch.setattr(searching, "FEW", 4000)
    at_once = vm.reweight(data, q=q, tol=1e-4)
    monkeypatch.setattr(searching, "FEW", 16)
    monkeypatch.setattr(searching, "ACTIVE", 40)
    monkeypatch.setattr(searching, "FIRST_PASSES", 2)
    monkeypatch.setattr(searching, "HEAVY", 0.2)  # so that most of the weight is left with the rest
    by_parts = vm.reweight(data, q=q, tol=1e-4)
    for found in (at_once, by_parts):
        assert found.met
        assert found.score == pytest.approx(float(once.score), rel=1e-4)
    assert by_parts.score <= at_once.bounds[1]
    assert at_once.score <= by_parts.bounds[1]


def test_steps_over_all_items_alone_get_there(monkeypatch):
    monkeypatch.setattr(searching, "FIRST_PASSES", 10**6)
    data = rows(600, 8)  # nearly uniform weights are the best: all items keep some
    found = vm.reweight(data)
    assert found.met
    assert found.score > 7.99
    assert found.support > 300


def test_few_iterations_leave_a_gap_that_still_holds():
    data = rows(200, 5, mean=0.5) * np.arange(1, 6) ** -1.0
    with pytest.warns(
        ToleranceWarning, match=r"better by .* more than tol=0.001: the iterations .* max_iterations"
    ):
        found = vm.reweight(data, max_iterations=6)
    best = vm.reweight(data, tol=1e-5)
    assert not found.met
    assert found.gap > 1e-3
    assert found.iterations <= 6
    assert found.score < best.score <= found.bounds[1]
    assert "not met" in found.summary()


def test_rounding_that_allows_no_better_is_said():
    with pytest.warns(ToleranceWarning, match="rounding in the given numbers"):
        found = vm.reweight(rows(40, 2), RBF(3.0), q=0.2, tol=1e-3)
    assert not found.met
    assert found.iterations < 100
    assert found.score <= found.bounds[1]
    K = np.corrcoef(rows(6, 30)).astype(np.float32)  # a coarse matrix is no hindrance by itself
    K[np.diag_indices(6)] = 1
    assert vm.reweight(K, "precomputed").met


# ----------------------------------------------------------------------------------------------------- the certificate


@pytest.mark.parametrize("q", [0.2, 0.9999, 1, 1.0001, 2, 3.5, 30, INF])
def test_every_state_gives_a_bound(q):
    X = rows(15, 4, seed=3, mean=0.4)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    K = X @ X.T
    rng = np.random.default_rng(5)
    best = max(hill_of(K, p, q) for p in rng.dirichlet(np.ones(15), size=300))
    for _ in range(20):  # states that no weights make
        values, vectors = rng.dirichlet(np.ones(4)), np.linalg.qr(rng.standard_normal((4, 4)))[0]
        values = np.sort(values)[::-1]
        state = State(values, Order(q))
        slopes = (X @ vectors) ** 2 @ state.slopes
        assert state.upper(float(slopes.max()), 1e-15) >= math.log(best)
        assert state.value == pytest.approx(
            math.log(hill_of(np.diag(values) * 4, np.full(4, 0.25), q)), abs=1e-9
        )


@pytest.mark.parametrize("q", [0.3, 0.8, 1, 1.3, 2, 6, INF])
def test_the_bound_allows_for_similarities_that_are_off(q):
    rng = np.random.default_rng(7)
    for _ in range(200):
        values = rng.dirichlet(np.full(6, 0.3))
        off = 10 ** rng.uniform(-8, -1)
        change = rng.standard_normal(6) * (values > 0)
        change -= change.mean()
        other = np.maximum(values + 0.5 * off * change / np.abs(change).sum(), 0)
        other /= other.sum()
        moved = np.abs(values - other).sum()
        here, there = (math.log(hill_of(np.diag(v) * 6, np.full(6, 1 / 6), q)) for v in (values, other))
        assert widen(here, q, moved * (1 + 1e-12) + 1e-15, 6) >= there - 1e-9


@pytest.mark.parametrize("q", [0.5, 1, 2, 2.5, 9])
def test_curvature_is_that_of_differences(q):
    X = rows(10, 4, seed=8, mean=0.2)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    p = np.random.default_rng(0).dirichlet(np.ones(10))

    def slopes(p):
        values, vectors = np.linalg.eigh((X * p[:, None]).T @ X)
        state = State(values[::-1], Order(q))
        return (X @ vectors[:, ::-1]) ** 2 @ state.slopes, state, X @ vectors[:, ::-1]

    here, state, along = slopes(p)
    found, columns = state.curvature()
    matrix = sum(e * ((along * u) @ along.T) ** 2 for e, u in zip(found, columns.T, strict=True))
    step = np.random.default_rng(1).standard_normal(10)
    step -= step.mean()
    # d of T/M is d²T/M − d dT/M², of which the second part is left out, but for a multiple of the slopes.
    ahead, behind = slopes(p + 1e-6 * step)[0], slopes(p - 1e-6 * step)[0]
    change = (ahead - behind) / 2e-6
    other = (1 - q) / q * float((here - state.mean) @ step) * q  # of log M along the step
    powers = here if abs(q - 1) >= 0.5 else here + (q / (1 - q) * math.exp(-state.log_sum) if q != 1 else 0)
    expected = -q * matrix @ step - other * powers
    np.testing.assert_allclose(
        change - change.mean(), expected - expected.mean(), rtol=0.05, atol=0.05 * np.abs(change).max()
    )


# ---------------------------------------------------------------------------------------------------------- real data


def test_digits(shared_data):
    pytest.importorskip("sklearn")
    from sklearn.datasets import load_digits

    digits = load_digits()
    found = vm.reweight(digits.data)
    assert found.met
    assert found.iterations <= 60
    assert found.uniform == pytest.approx(4.6776, abs=1e-3)
    assert found.score == pytest.approx(7.546, abs=5e-3)
    assert found.support < 300
    by_label = np.bincount(digits.target, weights=found.weights)
    assert by_label.min() > 0.02  # every digit gets some; sevens, fours and ones get most, threes least
    assert set(np.argsort(by_label)[-3:]) == {1, 4, 7}
    assert by_label.argmin() == 3


def test_copies_planted_among_embeddings(shared_data):
    with np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as held:
        data = held["emb"][::10].astype(np.float64)
    planted = np.concatenate([data, np.repeat(data[:1], 100, axis=0)])
    alone, found = vm.reweight(data), vm.reweight(planted)
    assert found.met
    assert found.uniform < 0.7 * alone.uniform
    assert found.score == pytest.approx(float(alone.score), rel=1e-3)
    copies = np.r_[0, np.arange(len(data), len(planted))]
    assert np.ptp(found.weights[copies]) < 1e-15
    assert found.weights[copies].sum() == pytest.approx(alone.weights[0], abs=2e-3)


# ------------------------------------------------------------------------------------------------- what comes and goes


def test_arrays_of_every_library(library):
    data = rows(30, 4, mean=0.5)
    here = vm.reweight(data)
    there = vm.reweight(library.array(data))
    assert there.score == pytest.approx(float(here.score), rel=1e-3)
    assert isinstance(there.weights, np.ndarray)
    assert there.weights.sum() == pytest.approx(1)
    pairwise = vm.reweight(library.array(data), RBF(1.5), q=2)
    assert pairwise.score == pytest.approx(float(vm.reweight(data, RBF(1.5), q=2).score), rel=1e-3)


def test_many_items_on_a_device(library, monkeypatch):
    if library.name == "jax own":
        pytest.skip("JAX compiles anew for every number of items, which takes long")
    monkeypatch.setattr(searching, "FEW", 16)
    monkeypatch.setattr(searching, "ACTIVE", 24)
    monkeypatch.setattr(searching, "FIRST_PASSES", 2)
    monkeypatch.setattr(searching, "HEAVY", 0.2)
    data = rows(60, 3, mean=0.3)
    found = vm.reweight(library.array(data), tol=0.05)
    assert found.met
    assert found.score == pytest.approx(float(vm.reweight(data).score), rel=0.05)


def test_collections_and_frames():
    pandas = pytest.importorskip("pandas")
    data = rows(8, 3, mean=0.5)
    found = vm.reweight(Collection(data, weights=np.r_[0.0, np.ones(7)]))
    assert found.weights[0] == 0
    frame = pandas.DataFrame({"colour": list("rrgb"), "shape": list("xyxy")})
    kernel = 0.5 * On("colour", Match()) + 0.5 * On("shape", Match())
    found = vm.reweight(frame, kernel)
    assert found.score >= found.uniform
    assert found.weights[0] + found.weights[1] < 0.5


@pytest.mark.parametrize("q", [1 - 1e-12, 40, 1e6])
def test_orders_near_1_and_high_ones(q):
    data = rows(30, 4, mean=0.3)
    found = vm.reweight(data, q=q)
    assert found.met
    near = vm.reweight(data, q=1 if q < 2 else "inf")
    assert found.score == pytest.approx(float(near.score), rel=2e-3 if q != 40 else 0.1)


@pytest.mark.parametrize("tol", [0.9, 1e-11])
def test_a_wide_and_a_narrow_tolerance(tol):
    found = vm.reweight(rows(30, 4, mean=0.3), tol=tol)
    assert found.met
    assert found.gap <= tol
    assert found.weights.sum() == pytest.approx(1)


def test_one_item_and_items_that_are_all_alike():
    assert vm.reweight(["a"], "match").weights.tolist() == [1.0]
    alike = vm.reweight(np.ones((5, 3)))
    np.testing.assert_allclose(alike.weights, 0.2)
    assert alike.score == pytest.approx(1)
    assert alike.met


def test_a_kernel_that_stands_in_for_another_claims_nothing():
    found = vm.reweight(rows(20, 3), RandomFeatures(RBF(1.0), 16))
    assert math.isnan(found.bounds[0])
    assert math.isnan(found.bounds[1])
    assert found.score.level == "none"
    assert found.gap <= 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"q": 0}, r"q=0 counts directions .* expected an order above 0"),
        ({"q": [1, 2]}, r"q=\[1, 2\] is not an order"),
        ({"q": -1}, "q=-1 is not an order"),
        ({"tol": 0}, r"tol=0; expected by how much"),
        ({"tol": "small"}, r"tol='small'; expected"),
        ({"max_iterations": 0}, r"max_iterations=0; expected a whole number"),
        ({"weights": [0.5, 0.4, 0.0]}, r"weights sum to 0\.9"),
        ({"weights": [0.5, 0.5]}, r"weights has 2 entries and there are 3 items"),
        ({"counts": [1, 2, 0.5]}, r"counts\[2\] is 0.5"),
        ({"rng": -1}, r"rng=-1"),
        ({"progress": "yes"}, r"progress='yes'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        vm.reweight(np.eye(3) + 0.1, vm.kernels.Cosine(), **options)


def test_bad_samples():
    with pytest.raises(InputError, match="the items are strings"):
        vm.reweight(["a", "b"])
    with pytest.raises(InputError, match="empty"):
        vm.reweight(np.empty((0, 3)))
    with pytest.raises(InputError, match="item 1"):
        vm.reweight([[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(MatrixError, match=r"Precomputed\(symmetrize=True\)"):
        vm.reweight([[1, 0.5], [0.2, 1]], "precomputed")
    with pytest.raises(MatrixError, match="positive semidefinite"):
        vm.reweight([[1, 0.9, -0.2], [0.9, 1, 0.7], [-0.2, 0.7, 1]], "precomputed")
    with pytest.raises(InputError, match=r"project=True.*positive semidefinite"):
        vm.reweight(np.eye(3), Precomputed(project=True))


def test_too_many_without_features(monkeypatch):
    from vendimeter.solvers import eigenvectors

    monkeypatch.setattr(eigenvectors.decompose, "__kwdefaults__", {"most": 20})
    with pytest.raises(TooLargeError, match=r"30×30.*RandomFeatures"):
        vm.reweight(rows(30, 2), RBF(1.0))


# --------------------------------------------------------------------------------------------------------- the result


def test_the_result_can_be_read_stored_and_drawn():
    from matplotlib import pyplot

    found = vm.reweight(list("aaab"), "match")
    assert repr(found).startswith("Reweighting(score=2, uniform=1.75477, gap=")
    assert "against 1.75477 before" in str(found)
    assert "4 of 4 items have weight" in str(found)
    with pytest.raises(ValueError, match="read-only"):
        found.weights[0] = 1
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["support"] == 4
    assert len(stored["weights"]) == 4
    assert stored["met"] is True
    frame = found.to_frame()
    assert list(frame.columns) == ["item", "weight", "together"]
    assert frame["item"][0] == 3
    assert frame["together"].iloc[-1] == pytest.approx(1)
    assert "<table>" in found._repr_html_()
    assert "&lt;" not in found._repr_html_()
    assert found.items_for(1) == 4
    assert found.items_for(0.4) == 1
    with pytest.raises(InputError, match="share=2"):
        found.items_for(2)
    for drawn in (found.plot(), vm.reweight(rows(80, 3), q=2).plot()):
        drawn.figure_.canvas.draw()
        assert next(text.get_text() for text in drawn.ax_.texts).startswith("half on")
    axes = pyplot.figure().subplots()
    assert found.plot(axes).ax_ is axes
    pyplot.close("all")


def test_the_same_call_gives_the_same_weights():
    data = rows(300, 5, mean=0.4)
    np.testing.assert_array_equal(vm.reweight(data).weights, vm.reweight(data).weights)


@pytest.mark.parametrize("kind", ["narrow", "wide", "matrix", "function", "copies"])
@pytest.mark.parametrize("options", [{}, {"weights": np.arange(40) / 780}, {"counts": np.arange(40) % 3}])
def test_of_a_diversity_it_is_what_it_is_of_its_samples(kind, options):
    data = rows(40, 3, mean=0.5)
    samples, kernel = {
        "narrow": (data, "cosine"),
        "wide": (rows(40, 60, mean=0.5), "cosine"),
        "matrix": (np.exp(-np.abs(np.subtract.outer(data[:, 0], data[:, 0]))), "precomputed"),
        "function": (data[:, 0], lambda a, b: float(np.exp(-abs(a - b)))),
        "copies": (np.round(data[:, 0]), lambda a, b: float(np.exp(-abs(a - b)))),
    }[kind]
    d = vm.Diversity(samples, kernel, **options)
    for ask_before in (False, True):
        if ask_before:
            d.contributions()
        found, expected = d.reweight(), vm.reweight(samples, kernel, **options)
        assert found.score == pytest.approx(float(expected.score), rel=1e-9)
        assert found.uniform == pytest.approx(float(expected.uniform), rel=1e-9)
        assert found.uniform == d.score()
        assert found.gap == pytest.approx(expected.gap, abs=1e-6)
        assert found.weights == pytest.approx(expected.weights, abs=1e-6)
