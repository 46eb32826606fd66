"""Scores of large collections through the front door: each method against the exact score, and what comes with it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from array_libraries import Library
from vendimeter.errors import InputError, ToleranceWarning
from vendimeter.kernels import RBF, Cosine, FromFunction, Jaccard, NGram
from vendimeter.present import progress as progress_module

RNG = np.random.default_rng(41)
POINTS = RNG.standard_normal((300, 2))
WIDE = RNG.standard_normal((150, 400)) * np.geomspace(1, 1e-2, 400)
FAMILIES = RNG.random((15, 128)) < 0.3
BITS = np.where(
    RNG.random((400, 128)) < 0.25, RNG.random((400, 128)) < 0.15, FAMILIES[RNG.integers(15, size=400)]
)
ORDERS = [0.5, 1, 1.5, 2, 4, "inf"]


def bits_of_families(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    mixed = rng.random((count, 128)) < 0.25
    return np.where(mixed, rng.random((count, 128)) < 0.15, FAMILIES[rng.integers(15, size=count)])


def contains(found: vm.Score, exact: vm.Score) -> bool:
    """Whether the bounds hold the exact score, which is itself known to its own bounds."""
    return found.bounds[0] <= exact.bounds[1] and exact.bounds[0] <= found.bounds[1]


# ------------------------------------------------------------------------------------------- every method, every input


INPUTS: dict[str, tuple[Any, Any]] = {
    "precomputed": (RBF(1.0).similarity(POINTS).dense(), "precomputed"),
    "sparse matrix": (
        sparse.csr_array(sparse.block_diag([RBF(1.0).similarity(POINTS[:60]).dense()] * 4)),
        "precomputed",
    ),
    "rbf": (POINTS, RBF(1.0)),
    "jaccard": (BITS, "jaccard"),
    "wide rows": (WIDE, Cosine()),
    "narrow rows": (WIDE[:, :60], Cosine()),
    "sparse rows": (sparse.csr_array(np.where(np.abs(WIDE) > 0.5, WIDE, 0.0) + np.eye(150, 400)), Cosine()),
    "texts": ([f"{a} {b} {c}" for a in "abcdefg" for b in "hijklm" for c in "nopq"], NGram()),
    "function": (
        POINTS[:150],
        FromFunction(lambda a, b: np.exp(-((a[:, None] - b) ** 2).sum(-1) / 2), block=True),
    ),
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("method", ["lanczos", "lowrank"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_of_every_order_contain_the_exact_score(name: str, method: str, weighted: bool) -> None:
    samples, kernel = INPUTS[name]
    n = samples.shape[0] if hasattr(samples, "shape") else len(samples)
    weights = np.random.default_rng(1).dirichlet(np.ones(n)) if weighted else None
    exact = vm.score(samples, kernel, q=ORDERS, weights=weights, method="exact")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ToleranceWarning)  # not every spectrum is of low rank
        found = vm.score(samples, kernel, q=ORDERS, weights=weights, method=method, tol=1e-2)
    for q in exact:
        assert contains(found[q], exact[q]), q
        assert found[q].bounds[0] <= found[q] <= found[q].bounds[1]
        assert found[q].method == method
        assert found[q].n == exact[q].n
        assert found[q].level == ("deterministic" if method == "lowrank" else "probabilistic")
        assert found[q].confidence == (1.0 if method == "lowrank" else 0.95)


SMALL: dict[str, tuple[Any, Any]] = {
    "precomputed": (RBF(2.0).similarity(POINTS[:100]).dense(), "precomputed"),
    "rbf": (POINTS[:100], RBF(1.0)),
    "wide rows": (WIDE[:60, :90] * np.geomspace(1, 1e-5, 90), Cosine()),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("method", ["lanczos", "lowrank"])
def test_every_library_gives_bounds_that_contain_the_exact_score(
    library: Library, name: str, method: str
) -> None:
    samples, kernel = SMALL[name]
    exact = vm.score(samples, kernel, method="exact")
    found = vm.score(library.array(samples), kernel, method=method, tol=5e-2)
    assert contains(found, exact)
    assert found.method == method
    assert found.half_width <= 5e-2 * found
    if method == "lowrank":  # the same pivots everywhere; products are of other widths on a device
        host = vm.score(samples, kernel, method=method, tol=5e-2)
        assert float(found) == pytest.approx(float(host), rel=1e-9)


def test_a_function_on_a_device_is_scored_there() -> None:
    torch = pytest.importorskip("torch")
    points = torch.tensor(POINTS[:100])
    seen = []

    def similar(a: Any, b: Any) -> Any:
        seen.append(type(a))
        return torch.exp(-(torch.cdist(a, b) ** 2) / 2)

    exact = vm.score(POINTS[:100], RBF(1.0), method="exact")
    for method in ("lanczos", "lowrank"):
        found = vm.score(points, FromFunction(similar, block=True), method=method, tol=5e-2)
        assert abs(found - exact) <= found.half_width + 1e-6 * exact
    assert set(seen) == {torch.Tensor}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_negative_eigenvalues_that_are_rounding_of_a_users_matrix_are_in_the_bounds(dtype: Any) -> None:
    rows = np.random.default_rng(5).standard_normal((250, 30))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    K = rows @ rows.T
    np.fill_diagonal(K, 1.0)
    K = K.astype(dtype)  # of rank 30 but for rounding, which is of either sign
    assert np.linalg.eigvalsh(K.astype(np.float64))[0] < -1e-8
    orders = [0.5, 1, 1.5, 1.9, 2, 3, "inf"]
    exact = vm.score(K, "precomputed", q=orders, method="exact")
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ToleranceWarning
        )  # so coarse numbers allow no narrow bounds at low orders
        found = vm.score(K, "precomputed", q=orders, method="lanczos", tol=3e-2)
    for q in exact:
        assert contains(found[q], exact[q]), q


@pytest.mark.parametrize("method", ["lanczos", "lowrank"])
@pytest.mark.parametrize("q", [1, 3, "inf"])
def test_a_matrix_that_is_not_positive_semidefinite_is_found_out(method: str, q: Any) -> None:
    K = np.eye(600)
    K[0, 1:4] = K[1:4, 0] = 0.9  # three items close to one, and far from each other: impossible
    with pytest.raises(vm.errors.IndefiniteError):
        vm.score(K, "precomputed", q=q, method=method, tol=1e-2)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("method", ["lanczos", "lowrank"])
def test_a_handful_of_items(n: int, method: str) -> None:
    for samples, kernel in (
        (POINTS[:n], RBF(1.0)),
        (np.ones((n, n)), "precomputed"),
        (np.eye(n), "precomputed"),
    ):
        exact = vm.score(samples, kernel, q=[0.5, 1, 2, "inf"], method="exact")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ToleranceWarning)
            found = vm.score(samples, kernel, q=[0.5, 1, 2, "inf"], method=method, tol=1e-2)
        for q in exact:
            assert contains(found[q], exact[q])


def test_the_same_seed_gives_the_same_score_and_another_another() -> None:
    for method in ("lanczos", "lowrank"):
        a, b, c = (vm.score(BITS, Jaccard(), method=method, tol=0.3, rng=seed) for seed in (1, 1, 2))
        assert (float(a), a.bounds) == (float(b), b.bounds)
        assert float(a) != float(c)


# --------------------------------------------------------------------------------------------------------- tolerances


@pytest.mark.parametrize("tol", [3e-2, 1e-2, 3e-3, 1e-3])
@pytest.mark.parametrize("kernel", ["rbf", "jaccard"])
def test_the_tolerance_is_met_without_a_warning(tol: float, kernel: str) -> None:
    # Warnings are errors here. Beyond 3,000 items all eigenvalues are no longer the quickest way.
    rng = np.random.default_rng(2)
    samples: Any = rng.standard_normal((3200, 2)) if kernel == "rbf" else bits_of_families(3200)
    found = vm.score(samples, RBF(1.0) if kernel == "rbf" else kernel, tol=tol)
    assert found.half_width <= tol * found
    assert found.method == ("lowrank" if kernel == "rbf" else "lanczos")
    assert ("tried_first" in found.diagnostics) == (kernel == "jaccard")
    assert "tol" not in found.diagnostics


def test_a_tolerance_that_a_low_rank_cannot_meet_is_a_warning() -> None:
    flat = RNG.standard_normal((800, 1000))
    with pytest.warns(ToleranceWarning, match=r"more than tol=0.001: .*not of low rank.*method='lanczos'"):
        found = vm.score(flat, method="lowrank", tol=1e-3, memory="97 MiB")
    assert contains(found, vm.score(flat, method="exact"))
    assert found.diagnostics["tol"].half_width == pytest.approx(found.half_width / found)
    assert found.half_width > 1e-3 * found
    assert found.to_dict()["diagnostics"]["tol"] == str(found.diagnostics.tol)


def test_the_warning_points_to_the_caller() -> None:
    with pytest.warns(ToleranceWarning) as caught:
        vm.score(RNG.standard_normal((800, 1000)), method="lowrank", tol=1e-3, memory="97 MiB")
    assert caught[0].filename == __file__


def test_several_orders_have_bounds_each_within_the_tolerance() -> None:
    exact = vm.score(BITS, "jaccard", q=[0.5, 1, 1.5, 2], method="exact")
    found = vm.score(BITS, "jaccard", q=[0.5, 1, 1.5, 2], method="lanczos", tol=5e-3)
    assert isinstance(found, vm.Profile)
    assert list(found) == [0.5, 1, 1.5, 2]
    for q, score in found.items():
        assert contains(score, exact[q])
        assert score.half_width <= 5e-3 * score
    assert found[2].half_width < 1e-9  # ‖ρ‖ is known
    assert len({score.half_width / score for score in found.values()}) == 4


def test_order_2_alone_is_certain_and_takes_no_probes() -> None:
    found = vm.score(BITS, "jaccard", q=2, method="lanczos")
    assert (found.level, found.confidence, found.diagnostics["products"]) == ("deterministic", 1.0, 0)
    assert float(found) == pytest.approx(float(vm.score(BITS, "jaccard", q=2)), rel=1e-10)


@pytest.mark.parametrize("tol", [0, 1, -1e-3, 2, math.nan, math.inf, "1e-3", True, [1e-3]])
def test_tolerances_that_are_none(tol: Any) -> None:
    with pytest.raises(InputError, match=r"tol=.*between 0 and 1"):
        vm.score(BITS, "jaccard", tol=tol)
    with pytest.raises(InputError, match=r"tol=.*between 0 and 1"):
        vm.plan(BITS, "jaccard", tol=tol)


@pytest.mark.parametrize("confidence", [0, 0.49, 1, 95, -0.95, math.nan, "0.95", None, True])
def test_confidences_that_are_none(confidence: Any) -> None:
    with pytest.raises(InputError, match=r"confidence=.*0\.95"):
        vm.score(BITS, "jaccard", confidence=confidence)
    with pytest.raises(InputError, match=r"confidence=.*0\.95"):
        vm.plan(BITS, "jaccard", confidence=confidence)


def test_the_confidence_is_that_which_was_asked_for() -> None:
    sure, unsure = (
        vm.score(BITS, "jaccard", method="lanczos", tol=0.2, confidence=confidence)
        for confidence in (0.999, 0.5)
    )
    assert (sure.confidence, unsure.confidence) == (0.999, 0.5)
    assert sure.diagnostics["confidence"] == 0.999
    assert sure.diagnostics["probes"] == unsure.diagnostics["probes"]
    assert sure.half_width > 1.5 * unsure.half_width
    assert "with 99.9% confidence" in sure.summary()


# -------------------------------------------------------------------------------------------------- what comes with it


def test_diagnostics_of_products_with_the_matrix() -> None:
    found = vm.score(BITS, "jaccard", method="lanczos", tol=1e-2).diagnostics
    assert found["evaluations"] == 400 * 401 // 2
    assert found["storage"] == "float32"
    assert found["rank"] > 0
    assert found["probes"] >= 8
    assert found["products"] > found["passes"] > 5
    assert found["confidence"] == 0.95
    assert found["seconds"] > 0
    json.dumps(dict(found))


def test_diagnostics_of_a_low_rank() -> None:
    found = vm.score(POINTS, RBF(1.0), method="lowrank", tol=1e-2)
    notes = found.diagnostics
    assert notes["rank"] == len(found.spectrum.eigenvalues)  # type: ignore[union-attr]
    assert notes["evaluations"] < 300 * 301 / 2
    assert 0 < notes["residual"] < 1e-2
    assert notes["seconds"] > 0
    json.dumps(found.to_dict())


def test_what_was_tried_first_is_told_and_what_an_exact_answer_would_take() -> None:
    found = vm.score(bits_of_families(3200), "jaccard", tol=1e-2)
    assert found.method == "lanczos"
    assert found.diagnostics.tried_first.rank > 0
    assert found.diagnostics.tried_first.half_width > 1e-2
    assert str(found.diagnostics.tried_first).startswith("low rank, given up at rank ")
    assert found.diagnostics["evaluations"] > 3200 * 3201 / 2  # those of the low rank too
    assert found.diagnostics["exact_seconds"] > 0
    summary = found.summary()
    assert " effectively different items of 3,200: between " in summary
    assert "with 95% confidence; " in summary
    assert "; exact would take about " in summary
    certain = vm.score(RNG.standard_normal((3200, 2)), RBF(1.0), tol=1e-2).summary()
    assert ", for certain; " in certain
    assert "; exact would take about " in certain
    assert "exact would take" not in vm.score(BITS, "jaccard").summary()


def test_memory_may_be_a_text_and_decides_how_the_matrix_is_kept() -> None:
    bits = bits_of_families(2000)
    found = [
        vm.score(bits, "jaccard", method="lanczos", tol=2e-2, memory=memory)
        for memory in ("1 GiB", "124 MiB", 105 << 20)
    ]
    assert [score.diagnostics["storage"] for score in found] == ["float32", "float32", "blocks"]
    exact = vm.score(bits, "jaccard", method="exact")
    for score in found:
        assert contains(score, exact)
        assert score.half_width <= 2e-2 * score
        assert score.level == "probabilistic"
    assert found[2].diagnostics["evaluations"] > 5 * found[0].diagnostics["evaluations"]
    with pytest.raises(vm.errors.TooLargeError, match="MiB"):
        vm.score(bits, "jaccard", tol=1e-2, memory="1 MB")


def test_products_in_float32_are_an_estimate() -> None:
    found = vm.score(BITS, "jaccard", method="lanczos", tol=1e-2, precision="float32")
    assert found.level == "estimated"
    assert "float32" in found.diagnostics["precision"]
    assert float(found) == pytest.approx(
        float(vm.score(BITS, "jaccard", method="lanczos", tol=1e-2)), rel=1e-4
    )


def test_random_features_claim_nothing() -> None:
    found = vm.score(POINTS, RBF(1.0), method="random-features")
    exact = vm.score(POINTS, RBF(1.0))
    assert found.level == "none"
    assert math.isnan(found.bounds[0])
    assert math.isnan(found.confidence)
    assert float(found) == pytest.approx(float(exact), rel=0.05)
    assert "no interval" in found.summary()
    assert vm.score(POINTS, RBF(1.0), method="random-features", rng=1) != found


def test_progress_is_shown_when_asked_for_and_only_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "FIRST", 0.0)  # not after a second: the test is not to take one
    for method in ("lanczos", "lowrank"):
        for progress, shown in ((True, True), (False, False), (None, False)):  # this is no terminal
            vm.score(BITS, "jaccard", method=method, tol=0.3, progress=progress)
            out, err = capsys.readouterr()
            assert bool(err) == shown, (method, progress)
            assert not out
            if shown:
                assert "vendimeter" in err
                assert "%" in err
                assert err.endswith("\r")  # nothing is left standing


# --------------------------------------------------------------------------------------------- functions that are slow


def test_a_function_of_two_items_is_called_for_few_pairs() -> None:
    points = np.random.default_rng(3).standard_normal((2000, 2)).tolist()
    calls = 0

    def similar(a: list[float], b: list[float]) -> float:
        nonlocal calls
        calls += 1
        return math.exp(-((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) / 2)

    found = vm.score(points, similar, tol=1e-2)
    assert found.method == "lowrank"
    assert found.half_width <= 1e-2 * found
    assert contains(found, vm.score(np.array(points), RBF(1.0), method="exact"))
    assert found.diagnostics["evaluations"] == pytest.approx(calls, rel=0.01)
    assert calls <= 0.15 * 2000**2 / 2


def test_a_function_that_is_not_of_low_rank_is_called_for_all_pairs_once_more_at_most() -> None:
    rows = np.random.default_rng(4).standard_normal((300, 400))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    items = list(rows)
    calls = 0

    def similar(a: np.ndarray, b: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        return float(a @ b)

    found = vm.score(items, similar, tol=1e-3)
    assert found.method == "eigh"
    assert found.diagnostics.tried_first is not None
    assert contains(found, vm.score(rows, method="exact"))
    assert calls <= 2 * 300 * 301 / 2 + 1024
    assert found.diagnostics["evaluations"] == pytest.approx(calls, rel=0.05)


# ---------------------------------------------------------------------------------------------------------- real data


@pytest.fixture(scope="module")
def digits(shared_data: Path) -> np.ndarray:
    with np.load(shared_data / "images" / "mnist_test.npz") as file:
        return file["images"][:1500].reshape(1500, 784)


@pytest.mark.parametrize(("method", "tol"), [("lanczos", 3e-3), ("lanczos", 1e-3), ("lowrank", 5e-2)])
def test_digits(digits: np.ndarray, method: str, tol: float) -> None:
    exact = vm.score(digits, RBF("median"), method="exact")
    found = vm.score(digits, RBF("median"), method=method, tol=tol)
    assert contains(found, exact)
    assert found.half_width <= tol * found
    assert abs(float(found) - exact) <= found.half_width * 1.0001 or method == "lowrank"


# ------------------------------------------------------------------------------------------------------------- memory


GROWTH = """
import sys, threading, time, warnings
from pathlib import Path
import numpy as np
import vendimeter as vm

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

warnings.simplefilter("ignore")
memory = None if sys.argv[2] == "none" else sys.argv[2]
rng = np.random.default_rng(0)
square = np.ones((1500, 1500))
square @ square  # BLAS has its buffers now
del square
vm.score(rng.random((300, 64)) < 0.3, "jaccard", method="lanczos", tol=0.1)  # SciPy is loaded now
vm.score(rng.standard_normal((300, 2)), vm.kernels.RBF(1.0), method="lowrank", tol=0.1)
if sys.argv[1] == "lanczos":
    samples, kernel, tol = rng.random((4800, 64)) < 0.3, "jaccard", 2e-2
else:
    samples, kernel, tol = rng.standard_normal((60_000, 2)), vm.kernels.RBF(0.5), 1e-4
before, peak, done = resident(), 0, False

def watch():
    global peak
    while not done:
        peak = max(peak, resident())
        time.sleep(0.001)

watcher = threading.Thread(target=watch)
watcher.start()
score = vm.score(samples, kernel, method=sys.argv[1], tol=tol, memory=memory)
done = True
watcher.join()
print(peak - before, float(score), *score.bounds, score.diagnostics.get("storage", "columns"))
"""


def growth(method: str, memory: str) -> tuple[int, float, float, float, str]:
    """Bytes by which a process grows while it computes a score, and the score with its bounds."""
    run = subprocess.run(
        [sys.executable, "-c", GROWTH, method, memory],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={
            name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"
        },  # as users have it
    )
    grown, score, low, high, storage = run.stdout.split()
    return int(grown), float(score), float(low), float(high), storage


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc, as Linux has it"
)
@pytest.mark.parametrize(
    ("method", "caps"),
    [("lanczos", {"120 MB": "blocks", "240 MB": "float32"}), ("lowrank", {"150 MB": "columns"})],
)
def test_memory_stays_below_what_was_allowed(method: str, caps: dict[str, str]) -> None:
    freely, *exact = growth(method, "none")
    for cap, kept in caps.items():
        capped, score, low, high, storage = growth(method, cap)
        assert storage == kept
        assert capped <= float(cap.split()[0]) * 1e6
        assert low <= exact[2]
        assert exact[1] <= high
        assert low <= score <= high
    assert freely > float(next(iter(caps)).split()[0]) * 1e6  # otherwise the cap would have changed nothing


# ------------------------------------------------------------------------------- what a hostile reader of it all found


OPPOSED = np.where(
    np.eye(60) > 0, 1.0, -0.5
)  # λ_min = −28.5; after two pivots nothing is left on the diagonal
CLUSTERS = (lambda label: 1.0 * (label[:, None] == label))(
    np.r_[np.repeat(np.arange(30), 10), np.arange(30, 230)]
)


def test_an_indefinite_matrix_that_leaves_nothing_on_the_diagonal_is_found_out() -> None:
    with pytest.raises(vm.errors.IndefiniteError, match="more similar to each other than to themselves"):
        vm.score(OPPOSED, "precomputed", method="lowrank", tol=1e-2)
    with pytest.raises(vm.errors.IndefiniteError, match="more similar to each other than to themselves"):
        vm.score(list(range(60)), lambda a, b: float(OPPOSED[a, b]), method="lowrank", tol=1e-2)
    with pytest.raises(vm.errors.IndefiniteError):
        vm.score(OPPOSED, "precomputed", method="lanczos", q=2)


def test_a_matrix_kept_in_float32_is_not_taken_for_an_indefinite_one() -> None:
    points = np.random.default_rng(0).standard_normal((3000, 2))
    found = vm.score(points, "rbf", method="lanczos", tol=1e-2, memory="170 MB")
    assert found.diagnostics["storage"] == "float32"
    assert contains(found, vm.score(points, "rbf", tol=1e-5, method="lowrank"))


def test_the_rounding_of_storage_is_not_taken_for_a_trace_that_is_off() -> None:
    rows = np.random.default_rng(5).standard_normal((1500, 40)) * np.geomspace(3, 0.05, 40)
    found = vm.score(rows, "rbf", method="lanczos", tol=1e-3)  # ‖ρ‖_F is large, and what is left of it small
    assert found.diagnostics["storage"] == "float32"
    assert found.half_width <= 1e-3 * found
    assert contains(found, vm.score(rows, "rbf", method="exact"))


def test_a_tolerance_beyond_all_means_gives_the_bounds_there_are() -> None:
    rows = np.random.default_rng(0).standard_normal((120, 200))
    with pytest.warns(vm.errors.ToleranceWarning):
        found = vm.score(rows, method="lanczos", tol=1e-15)
    assert contains(found, vm.score(rows, method="exact"))


def test_a_few_eigenvalues_many_times_need_few_probes() -> None:
    found = vm.score(CLUSTERS, "precomputed", method="lanczos", tol=1e-2)
    assert contains(found, vm.score(CLUSTERS, "precomputed", method="exact"))
    assert found.diagnostics["products"] < 300
    with pytest.warns(vm.errors.ToleranceWarning):  # an order that cannot be had does not spoil the others
        both = vm.score(CLUSTERS, "precomputed", method="lanczos", tol=1e-2, q=[1, "inf"])
    assert both[1].half_width <= 1e-2 * both[1]


@pytest.mark.parametrize("q", [float(np.nextafter(1, 2)), 1 - 1e-9, 1 + 1e-6])
def test_orders_next_to_1_are_as_1(q: float) -> None:
    near, at = (vm.score(WIDE, method="lanczos", tol=1e-2, q=order) for order in (q, 1))
    assert near.bounds == pytest.approx(at.bounds, rel=1e-5)
    assert near.diagnostics["probes"] == at.diagnostics["probes"]


def test_progress_is_yes_no_or_as_it_fits() -> None:
    with pytest.raises(vm.errors.InputError, match="progress='x'; expected True, False, or None"):
        vm.score(WIDE, progress="x")  # type: ignore[call-overload]


def test_a_gap_in_a_function_that_is_called_again_at_every_pass_is_told() -> None:
    def gap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a, b = np.asarray(a), np.asarray(b)
        return np.where((a[:, None] == 3) & (b == 3000), np.nan, np.exp(-abs(a[:, None] - b)))

    kernel = vm.kernels.FromFunction(gap, block=True)
    with pytest.raises(vm.errors.MatrixError, match=r"k\[3, 3000\] is nan"):
        vm.score(np.arange(3200.0), kernel, method="lanczos", tol=1e-2, memory="110 MB")


@pytest.mark.parametrize("method", ["exact", "lanczos", "lowrank", "auto"])
def test_every_call_of_a_function_is_counted(method: str) -> None:
    calls = 0

    def k(a: float, b: float) -> float:
        nonlocal calls
        calls += 1
        return math.exp(-50 * abs(a - b))

    found = vm.score(np.random.default_rng(2).random(200).tolist(), k, method=method, tol=1e-2)
    assert found.diagnostics["evaluations"] == calls


def test_samples_made_with_the_same_seed_as_the_probes_are_independent_of_them() -> None:
    rows = np.random.default_rng(0).standard_normal((1200, 900))
    exact = vm.score(rows, method="exact")
    for seed in range(3):
        assert contains(vm.score(rows, method="lanczos", tol=2e-2, rng=seed), exact)
