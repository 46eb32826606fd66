"""The same calls on the arrays of every library give the same answers: one set of test bodies, run over all of them.

"shared" libraries hand their arrays in main memory to NumPy without a copy, as users get it; "own" ones compute
everything themselves, which is the code that runs on a GPU.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from array_libraries import Library
from vendimeter.data import devices
from vendimeter.errors import AsymmetryError, DiagonalError, EmptyError, IndefiniteError, InputError
from vendimeter.kernels import (
    RBF,
    Cosine,
    Embed,
    FromDistances,
    FromFunction,
    Jaccard,
    Laplacian,
    Match,
    On,
    Polynomial,
    Precomputed,
    ProbabilityProduct,
)  # fmt: skip

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 7)) + 0.5
WIDE = RNG.standard_normal((9, 40))
UNIT = X / np.linalg.norm(X, axis=1, keepdims=True)
K = UNIT @ UNIT.T
D = np.linalg.norm(X[:, None] - X[None], axis=2)
P = RNG.dirichlet(np.ones(60))
BITS = RNG.random((40, 30)) < 0.3
COUNTS = RNG.integers(0, 9, (40, 30))
PROBABILITIES = RNG.dirichlet(np.ones(6), size=50)
ORDERS = [0, 0.5, 1, 1.5, 2, 3, "inf"]


def same(found: vm.Profile, expected: vm.Profile) -> None:
    """The same scores to 10⁻¹⁰, each inside the bounds of the other."""
    for q, score in expected.items():
        assert float(found[q]) == pytest.approx(float(score), rel=1e-10)
        assert found[q].level == score.level
        assert found[q].bounds[0] <= score * (1 + 1e-12)
        assert found[q].bounds[1] >= score * (1 - 1e-12)
        assert found[q].n == score.n


CASES: dict[str, tuple[np.ndarray, Any]] = {
    "cosine, tall": (X, "cosine"),
    "cosine, wide": (WIDE, "cosine"),
    "cosine, float32": (X.astype(np.float32), "cosine"),
    "cosine, whole numbers": (COUNTS[:, :5] + 1, "cosine"),
    "cosine, huge and tiny rows": (X * np.geomspace(1e-200, 1e200, 60)[:, None], "cosine"),
    "probability product": (PROBABILITIES, ProbabilityProduct()),
    "polynomial as features": (X[:, :3], Polynomial(2)),
    "polynomial in blocks": (WIDE, Polynomial(3, offset=0.5)),
    "rbf, narrow": (X, RBF(2.0)),
    "rbf, wide": (WIDE, RBF(6.0)),
    "rbf, numbers": (X[:, 0], RBF(0.5)),
    "rbf, median": (X, RBF()),
    "laplacian": (X, Laplacian(3.0)),
    "laplacian, median": (WIDE, Laplacian()),
    "jaccard, bits": (BITS, Jaccard()),
    "jaccard, 0 and 1": (BITS.astype(np.int64), Jaccard()),
    "jaccard, counts": (COUNTS, Jaccard()),
    "jaccard, numbers": (np.abs(X), Jaccard()),
    "match": (COUNTS[:, 0], Match()),
    "match, fraction": (COUNTS[:, :3], Match(fraction=True)),
    "precomputed": (K, Precomputed()),
    "precomputed, normalised": (X @ X.T, Precomputed(normalize=True)),
    "precomputed, whole numbers": (np.eye(5, dtype=np.int64), Precomputed()),
    "distances": (D, FromDistances(2.0)),
    "distances, median, gaussian": (D, FromDistances(form="gaussian")),
    "sum of features": (X, 0.25 * Cosine() + 0.75 * Polynomial(2)),
    "sum of features and blocks": (X, 0.25 * Cosine() + 0.75 * RBF(2.0)),
    "product": (X, Cosine() * RBF(2.0)),
    "product of features": (X[:, :4], Polynomial(1) * Cosine()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_kernels(library: Library, case: str) -> None:
    samples, kernel = CASES[case]
    same(vm.profile(library.array(samples), kernel, q=ORDERS), vm.profile(samples, kernel, q=ORDERS))


@pytest.mark.parametrize("case", ["cosine, tall", "cosine, wide", "rbf, narrow", "precomputed"])
def test_weights_and_counts(library: Library, case: str) -> None:
    samples, kernel = CASES[case]
    n = len(samples)
    p = P[:n] / P[:n].sum()
    p[3] = 0.0
    p /= p.sum()
    same(
        vm.profile(library.array(samples), kernel, q=ORDERS, weights=library.array(p)),
        vm.profile(samples, kernel, q=ORDERS, weights=p),
    )
    counts = np.arange(n) % 4
    same(
        vm.profile(library.array(samples), kernel, q=ORDERS, counts=library.array(counts)),
        vm.profile(samples, kernel, q=ORDERS, counts=counts),
    )


@pytest.mark.parametrize("q", [2, 3, 4, 5, "inf"])
@pytest.mark.parametrize("kernel", ["cosine", "precomputed"])
def test_shortcuts_of_single_orders(library: Library, q: Any, kernel: str) -> None:
    rows = np.random.default_rng(1).standard_normal((600, 700))
    samples = rows if kernel == "cosine" else np.corrcoef(rows)
    found = vm.score(library.array(samples), kernel, q=q)
    expected = vm.score(samples, kernel, q=[1, q])[q]
    assert float(found) == pytest.approx(float(expected), rel=1e-10)
    assert found.bounds[0] <= expected * (1 + 1e-12)
    assert found.bounds[1] >= expected * (1 - 1e-12)


def test_many_blocks_and_float32_products(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(2).standard_normal((3000, 20)).astype(np.float32)
    for module in (vm.solvers.gram, vm.similarity.base):  # type: ignore[attr-defined]
        monkeypatch.setattr(module, "DEVICE_BYTES", 100_000)
    for precision, level in (("float64", "deterministic"), ("float32", "probabilistic")):
        expected = vm.score(rows.astype(np.float64))
        found = vm.score(library.array(rows), precision=precision)
        assert found.level == level
        assert found.bounds[0] <= expected <= found.bounds[1]
        assert float(found) == pytest.approx(float(expected), rel=1e-5)
    assert vm.score(library.array(rows)).level == "deterministic"  # by default float64


def test_functions_of_the_users_own(library: Library) -> None:
    def pair(a: Any, b: Any) -> float:
        return math.exp(-abs(float(a[0]) - float(b[0])))

    def block(a: Any, b: Any) -> Any:
        xp = devices.namespace(a)
        return xp.exp(-xp.abs(a[:, 0][:, None] - b[:, 0][None, :]))

    expected = vm.profile(X, FromFunction(block, block=True), q=ORDERS)
    same(vm.profile(library.array(X), FromFunction(block, block=True), q=ORDERS), expected)
    found = vm.score(library.array(X), pair)
    assert float(found) == pytest.approx(float(expected[1]), rel=1e-10)


def test_encoders_that_give_arrays_of_the_library(library: Library) -> None:
    texts = [f"{'ab' * (i % 3)}{'c' * i}" for i in range(1, 12)]

    def encode(batch: Any) -> list[list[float]]:
        return [[text.count("a") + 1.0, text.count("c") + 1.0, len(text) ** 0.5] for text in batch]

    expected = vm.profile(texts, Embed(encode), q=ORDERS)
    for size in (None, 4):
        kernel = Embed(lambda batch: library.array(np.asarray(encode(batch))), batch_size=size)
        same(vm.profile(texts, kernel, q=ORDERS), expected)


def test_tables_with_columns_of_arrays(library: Library) -> None:
    kernel = 0.5 * On("vector", Cosine()) + 0.5 * On("label", Match())
    labels = (COUNTS[:, 0] % 3).tolist() * 2
    table = {"vector": X, "label": labels[:60]}
    same(
        vm.profile({"vector": library.array(X), "label": labels[:60]}, kernel, q=ORDERS),
        vm.profile(table, kernel, q=ORDERS),
    )


def test_a_list_of_arrays(library: Library) -> None:
    same(vm.profile([library.array(row) for row in X], q=ORDERS), vm.profile(X, q=ORDERS))


@pytest.mark.parametrize("kernel", ["cosine", RBF(2.0), Polynomial(2), "jaccard"], ids=str)
def test_groups_by_label(library: Library, kernel: Any) -> None:
    rows = np.abs(np.random.default_rng(3).standard_normal((700, 6)))
    by = np.random.default_rng(4).integers(0, 9, 700)
    by[:200] = 9  # one group beyond the batches
    p = np.random.default_rng(5).dirichlet(np.ones(700))
    for weights in (None, p):
        expected = vm.score_groups(rows, kernel, by=by, q=[0.5, 1, 2], weights=weights)
        given = None if weights is None else library.array(weights)
        found = vm.score_groups(
            library.array(rows), kernel, by=library.array(by), q=[0.5, 1, 2], weights=given
        )
        assert found.labels == expected.labels
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-10)
        assert (found.low <= expected.scores * (1 + 1e-12)).all()
        assert (found.high >= expected.scores * (1 - 1e-12)).all()


def test_groups_of_one_matrix(library: Library) -> None:
    by = np.arange(60) % 7
    np.testing.assert_allclose(
        vm.score_groups(library.array(K), "precomputed", by=by).scores,
        vm.score_groups(K, "precomputed", by=by).scores,
        rtol=1e-10,
    )
    sites = np.random.default_rng(6).dirichlet(np.ones(60), size=5)
    np.testing.assert_allclose(
        vm.score_groups(library.array(K), "precomputed", weights=library.array(sites)).scores,
        vm.score_groups(K, "precomputed", weights=sites).scores,
        rtol=1e-10,
    )


def test_groups_given_one_by_one(library: Library) -> None:
    stack = np.random.default_rng(7).standard_normal((20, 8, 5))
    expected = [float(vm.score(part)) for part in stack]
    parts = [library.array(part) for part in stack]
    for groups in (library.array(stack), parts, dict(enumerate(parts))):
        np.testing.assert_allclose(vm.score_groups(groups).scores, expected, rtol=1e-10)
    uneven = [parts[0], parts[1][:3, :], parts[2][:5, :]]
    np.testing.assert_allclose(
        vm.score_groups(uneven).scores,
        [expected[0], float(vm.score(stack[1, :3])), float(vm.score(stack[2, :5]))],
        rtol=1e-10,
    )


def test_a_stack_of_similarity_matrices(library: Library) -> None:
    rows = np.random.default_rng(8).standard_normal((30, 6, 4))
    unit = rows / np.linalg.norm(rows, axis=2, keepdims=True)
    stack = unit @ unit.swapaxes(1, 2)
    found = vm.score_groups(library.array(stack), "precomputed", q=[0, 1, 2])
    expected = np.array([vm.profile(K, "precomputed", q=[0, 1, 2]).scores for K in stack])
    np.testing.assert_allclose(found.scores, expected, rtol=1e-10)
    assert (found.low <= expected * (1 + 1e-12)).all()
    assert (found.high >= expected * (1 - 1e-12)).all()
    scaled = vm.score_groups(library.array(stack * 3), Precomputed(normalize=True))
    np.testing.assert_allclose(scaled.scores, expected[:, 1], rtol=1e-10)
    spoilt = stack.copy()
    spoilt[7, 0, 1] += 0.1
    with pytest.raises(AsymmetryError, match=r"group 7: K is not symmetric: K\[0, 1\]"):
        vm.score_groups(library.array(spoilt), "precomputed")
    spoilt[7] = np.where(np.eye(6, dtype=bool), 1.0, -0.9)
    with pytest.raises(IndefiniteError, match="group 7"):
        vm.score_groups(library.array(spoilt), "precomputed")
    projected = vm.score_groups(library.array(spoilt), Precomputed(project=True))
    assert projected.at(7).diagnostics["removed_mass"] > 0


def test_the_samples_are_left_as_they_are(library: Library) -> None:
    for case in (
        "cosine, tall",
        "precomputed, normalised",
        "distances",
        "probability product",
        "jaccard, counts",
    ):
        samples, kernel = CASES[case]
        given = library.array(samples)
        vm.score(given, kernel)
        np.testing.assert_array_equal(devices.to_host(given), samples)


BAD: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "nan": (np.where(np.arange(420).reshape(60, 7) == 213, np.nan, X), "cosine", InputError, "item 30 holds"),
    "infinite": (np.where(np.arange(420).reshape(60, 7) == 213, np.inf, X), RBF(1.0), InputError, "item 30 holds"),
    "zero row": (np.where(np.arange(60)[:, None] == 5, 0.0, X), "cosine", InputError, "item 5 is all zeros"),
    "complex": (X + 1j, "cosine", InputError, "expected real numbers"),
    "empty": (np.zeros((0, 3)), "cosine", EmptyError, "empty"),
    "three axes": (np.zeros((2, 3, 4)), "cosine", InputError, r"\(2, 3, 4\)"),
    "one axis": (np.arange(3.0), "cosine", InputError, r"\(3,\)"),
    "one column": (np.ones((4, 1)), "cosine", InputError, "single column"),
    "a matrix by mistake": (K, "cosine", InputError, "similarity matrix"),
    "distances by mistake": (D, "cosine", InputError, "looks like distances"),
    "not square": (X, "precomputed", InputError, "square"),
    "asymmetric": (K + np.eye(60, k=1) * 0.1, "precomputed", AsymmetryError, r"K\[\d+, \d+\] = "),
    "diagonal": (2 * K, "precomputed", DiagonalError, "expected every item"),
    "indefinite": (np.where(np.eye(4, dtype=bool), 1.0, -0.9), "precomputed", IndefiniteError, "not positive"),
    "nan in a matrix": (np.where(np.eye(60, k=2) > 0, np.nan, K), "precomputed", InputError, r"K\[0, 2\] is nan"),
    "negative distance": (D - 1.0, FromDistances(1.0), InputError, "expected a number from 0 up"),
    "not probabilities": (X, ProbabilityProduct(), InputError, "holds the probability"),
    "sum is not 1": (np.abs(X), ProbabilityProduct(), InputError, "sum to"),
    "negative counts": (X, Jaccard(), InputError, "finite numbers from 0 up"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_rubbish_gets_the_same_errors(library: Library, case: str) -> None:
    samples, kernel, error, message = BAD[case]
    with pytest.raises(error, match=message):
        vm.score(library.array(samples), kernel)


def test_random_bad_weights(library: Library) -> None:
    with pytest.raises(InputError, match="sum to"):
        vm.score(library.array(X), weights=library.array(P * 2))


def test_lists_of_scalars_and_rows_of_the_library(library: Library) -> None:
    """Values and labels are told apart by what they hold, not by which objects they are."""
    assert float(vm.score([library.array(v) for v in (1, 1, 2)], "match")) == pytest.approx(1.8899, abs=1e-4)
    assert vm.score([library.array([1, 2]), library.array([1, 2])], "match") == 1
    groups = vm.score_groups(library.array(X), by=[library.array(i % 3) for i in range(60)])
    assert groups.labels == [0, 1, 2]
    weights = [library.array(1 / 60) for _ in range(60)]
    assert float(vm.score(library.array(X), weights=weights)) == pytest.approx(float(vm.score(X)), rel=1e-12)
    kernel = Embed(lambda batch: [library.array(np.array([len(t), 1.0])) for t in batch])
    expected = float(vm.score([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]))
    assert float(vm.score(["a", "bb", "ccc"], kernel)) == pytest.approx(expected, rel=1e-12)


def test_a_function_gets_the_arrays_that_were_passed(library: Library) -> None:
    given = library.array(X)
    seen: set[type] = set()

    def pair(a: Any, b: Any) -> float:
        seen.update({type(a), type(b)})
        return float(abs(float(a[0]) - float(b[0])) < 1)

    def encoder(rows: Any) -> Any:
        seen.add(type(rows))
        return rows

    vm.score(given, FromFunction(pair, project=True))
    vm.score(given, Embed(encoder))
    assert seen == {type(given)}


def test_options_may_be_scalars_of_the_library(library: Library) -> None:
    assert vm.score(X, RBF(library.array(2.0)), q=library.array(2.0)) == vm.score(X, RBF(2.0), q=2)


@pytest.mark.parametrize(
    "kernel", [RBF(2.0), RBF(8.0), Laplacian(4.0), Jaccard(), RBF(2.0) * Laplacian(4.0)], ids=str
)
@pytest.mark.parametrize("width", [6, 40])
def test_groups_of_kernels_without_features(library: Library, kernel: Any, width: int) -> None:
    rows = np.abs(np.random.default_rng(9).standard_normal((120, width)))
    by = np.random.default_rng(10).integers(0, 20, 120)
    np.testing.assert_allclose(
        vm.score_groups(library.array(rows), kernel, by=by).scores,
        vm.score_groups(rows, kernel, by=by).scores,
        rtol=1e-10,
    )


def test_an_indefinite_matrix_is_not_taken_for_a_shortcut(library: Library) -> None:
    matrix = np.full((600, 600), -0.5 / 599)
    matrix[:2, :2] = [[1, 1.5], [1.5, 1]]
    np.fill_diagonal(matrix, 1.0)
    with pytest.raises(IndefiniteError):
        vm.score(library.array(matrix), "precomputed", q=2)


# --------------------------------------------------------------------------------------- what single libraries have


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax")


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute with the library of the arrays, as on a device."""
    monkeypatch.setattr(devices, "SHARE_HOST", False)


def test_memory_of_the_host_is_shared_not_copied(torch: Any, jax: Any) -> None:
    tensor = torch.ones(3, 2, requires_grad=True)
    assert devices.local(tensor).__array_interface__["data"][0] == tensor.data_ptr()
    array = jax.numpy.ones((64, 64))
    assert np.shares_memory(devices.local(array), np.asarray(array))


@pytest.mark.parametrize("share", [True, False])
def test_gradients_half_precision_and_strides(
    torch: Any, share: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "SHARE_HOST", share)
    tensor = torch.tensor(X, requires_grad=True)
    assert float(vm.score(tensor)) == pytest.approx(float(vm.score(X)), rel=1e-12)
    assert tensor.grad is None
    for dtype in (torch.bfloat16, torch.float16):
        half = tensor.detach().to(dtype)
        assert float(vm.score(half)) == pytest.approx(float(vm.score(half.double().numpy())), rel=1e-12)
    assert float(vm.score(tensor.T)) == pytest.approx(float(vm.score(X.T)), rel=1e-12)
    assert float(vm.score(tensor[::3])) == pytest.approx(float(vm.score(X[::3])), rel=1e-12)


def test_bfloat16_is_as_coarse_as_it_is(torch: Any) -> None:
    """Tolerances are those of the dtype that was passed, whether or not another library taught it to NumPy."""
    matrix = torch.tensor(np.corrcoef(X)).to(torch.bfloat16)
    assert float(vm.score(matrix, "precomputed")) == pytest.approx(
        float(vm.score(np.corrcoef(X), "precomputed")), rel=0.1
    )
    assert vm.score(torch.softmax(torch.tensor(X), 1).to(torch.bfloat16), ProbabilityProduct()) > 1
    weights = torch.full((60,), 1 / 60, dtype=torch.bfloat16)
    assert float(vm.score(X, weights=weights)) == pytest.approx(float(vm.score(X)), rel=1e-12)


def test_single_precision_of_a_function_is_seen(torch: Any) -> None:
    rows = torch.tensor(X, dtype=torch.float32)
    expected = float(vm.score(X))
    cosine = lambda a, b: torch.cosine_similarity(a, b, dim=0)  # noqa: E731
    assert float(vm.score(rows, cosine)) == pytest.approx(expected, rel=1e-4)
    assert float(vm.score(list(rows), cosine)) == pytest.approx(expected, rel=1e-4)


def test_subclasses_of_tensors(torch: Any) -> None:
    class Mine(torch.Tensor):
        pass

    rows = torch.tensor(X, requires_grad=True).as_subclass(Mine)
    assert float(vm.score(rows)) == pytest.approx(float(vm.score(X)), rel=1e-12)
    assert float(vm.score(torch.nn.Parameter(torch.tensor(X)))) == pytest.approx(
        float(vm.score(X)), rel=1e-12
    )


def test_arrays_of_several_libraries_in_one_call(torch: Any, jax: Any) -> None:
    by, weights = jax.numpy.arange(60) % 4, torch.full((60,), 1 / 60)
    found = vm.score_groups(X, by=by, weights=weights)
    np.testing.assert_allclose(found.scores, vm.score_groups(X, by=np.arange(60) % 4).scores, rtol=1e-6)
    mixed = [torch.tensor(X[0]), jax.numpy.asarray(X[1]), X[2]]
    assert float(vm.score(mixed)) == pytest.approx(float(vm.score(X[:3])), rel=1e-5)
    groups = [torch.tensor(X[:5]), X[5:12]]
    np.testing.assert_allclose(
        vm.score_groups(groups).scores, [vm.score(X[:5]), vm.score(X[5:12])], rtol=1e-10
    )


def test_memory_that_does_not_suffice_is_not_called_a_lack_of_float64(torch: Any, own: None) -> None:
    huge = torch.zeros(1, 1).expand(3_000_000, 3_000_000)
    with pytest.raises(RuntimeError, match="allocate"):
        vm.score(huge, FromDistances(1.0))


def test_one_label_for_all_is_refused(torch: Any) -> None:
    with pytest.raises(InputError, match="one label an item"):
        vm.score_groups(X, by=torch.tensor(1))


def test_jax_arrays_on_several_devices() -> None:
    code = """
import jax, numpy as np, vendimeter as vm
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from vendimeter.data import devices
devices.SHARE_HOST = False
jax.config.update("jax_enable_x64", True)
rows = np.random.default_rng(0).standard_normal((40, 6))
given = jax.device_put(rows, NamedSharding(Mesh(np.array(jax.devices()), ("x",)), PartitionSpec("x")))
assert len(given.devices()) == 2
p = np.arange(1, 41) / 820
for kernel in ("cosine", vm.kernels.RBF(2.0), vm.kernels.Polynomial(2)):
    for weights in (None, p):
        assert abs(vm.score(given, kernel, weights=weights) - vm.score(rows, kernel, weights=weights)) < 1e-10
by = np.arange(40) % 7
assert np.allclose(vm.score_groups(given, by=by).scores, vm.score_groups(rows, by=by).scores)
"""
    pytest.importorskip("jax")
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def test_tensors_without_dense_data_are_refused(torch: Any) -> None:
    with pytest.raises(InputError, match="to_dense"):
        vm.score(torch.eye(4).to_sparse())
    with pytest.raises(InputError, match="meta"):
        vm.score(torch.ones(3, 2, device="meta"))


def test_jax_in_32_bit_mode(jax: Any, own: None) -> None:
    """An error that names the ways out; float64 asked for in so many words is one of them."""
    array = jax.numpy.asarray(X.astype(np.float32))
    expected = vm.score(X.astype(np.float32))
    with jax.enable_x64(False):
        with pytest.raises(InputError, match=r"jax_enable_x64.*precision='float64'"):
            vm.score(array)
        assert float(vm.score(array, precision="float64")) == pytest.approx(float(expected), rel=1e-10)
        by = np.arange(60) % 5
        found = vm.score_groups(array, by=by, precision="float64")
        np.testing.assert_allclose(
            found.scores, vm.score_groups(X.astype(np.float32), by=by).scores, rtol=1e-10
        )
        assert jax.numpy.ones(1).dtype == np.float32  # the mode is as it was


def test_jax_in_32_bit_mode_on_the_host_needs_nothing(jax: Any) -> None:
    with jax.enable_x64(False):
        array = jax.numpy.asarray(X.astype(np.float32))
        assert vm.score(array) == vm.score(X.astype(np.float32))
        half = array.astype(jax.numpy.bfloat16)
        assert float(vm.score(half)) == pytest.approx(float(vm.score(X)), rel=1e-2)


def test_jax_tracers_are_refused(jax: Any) -> None:
    with pytest.raises(InputError, match="tracer"):
        jax.jit(lambda x: vm.score(x))(jax.numpy.ones((3, 2)))


def test_no_library_is_imported_for_the_user() -> None:
    code = (
        "import sys, numpy as np, vendimeter as vm\n"
        "vm.score(np.eye(3)[:, :2] + 1); vm.score_groups([np.eye(3), np.eye(4)], 'precomputed')\n"
        "print([name for name in ('torch', 'jax', 'cupy', 'pandas', 'array_api_strict') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
