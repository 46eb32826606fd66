"""Contributions: shares add up to the entropy, and what is left without a sample is what its removal leaves."""

from __future__ import annotations

import json
import math

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pytest
from matplotlib import pyplot

import vendimeter as vm
from vendimeter.errors import AsymmetryError, InputError, TooLargeError
from vendimeter.kernels import RBF, Jaccard, Match, NGram, Precomputed, as_kernel


def rows(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


TEXTS = ["a b c", "a b d", "a b c", "e f g h", "e f", "x", "x", "a"]
BITS = np.random.default_rng(1).random((20, 12)) < 0.4
BITS[:, 0] = True
CASES = {
    "dense, wide": (rows(9, 30), "cosine"),
    "dense, narrow": (rows(30, 5), "cosine"),
    "fewer directions than columns": (rows(25, 3) @ rows(3, 9), "cosine"),
    "sparse, wide": (TEXTS, NGram(1, 2)),
    "sparse, narrow": (list("aabbbcccdddde"), Match()),
    "pairwise": (rows(15, 3), RBF(1.0)),
    "copies": (np.repeat(rows(6, 3), 3, axis=0), RBF(1.0)),
    "bits": (BITS, Jaccard()),
    "matrix": (np.corrcoef(rows(12, 30)), Precomputed()),
    "function": ([1.0, 2.0, 2.5, 7.0], lambda a, b: float(np.exp(-abs(a - b)))),
    "two items": ([[1.0, 0.2], [0.3, 1.0]], "cosine"),
}


def similarities(samples, kernel):
    return np.array(as_kernel(kernel).similarity(samples).dense(), dtype=np.float64)


def eigen(K, p):
    root = np.sqrt(p)
    values, vectors = np.linalg.eigh(K * root[:, None] * root)
    return values[::-1], vectors[:, ::-1]


def score(values, q):
    """By the definition, with eigenvalues below 1e-12 taken as 0."""
    values = values[values > 1e-12]
    if q == 0:
        return float(len(values))
    if q == 1:
        return math.exp(-float(np.sum(values * np.log(values))))
    return 1 / float(values[0]) if math.isinf(q) else float(np.sum(values**q) ** (1 / (1 - q)))


def removed(K, p, i, part):
    """The eigenvalues of what is left, where a part of the weight of item i is taken away."""
    left = p.copy()
    left[i] = max(left[i] - part, 0.0) if part < p[i] * (1 - 1e-9) else 0.0
    keep = left > 0
    return eigen(K[np.ix_(keep, keep)], left[keep] / left[keep].sum())[0]


@pytest.mark.parametrize("how", ["uniform", "weights", "counts"])
@pytest.mark.parametrize("name", CASES)
def test_shares_add_up_and_removals_are_those_of_brute_force(name, how):
    samples, kernel = CASES[name]
    K = similarities(samples, kernel)
    n = len(K)
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 4, n)
    p, given = np.full(n, 1 / n), {}
    if how == "weights":
        p = rng.random(n) + 0.05
        p /= p.sum()
        given = {"weights": p}
    elif how == "counts":
        p, given = counts / counts.sum(), {"counts": counts}
    values, vectors = eigen(K, p)
    squares = np.maximum(values, 0) / p[:, None] * vectors**2
    part = 1 / counts.sum() if how == "counts" else 1.0
    left = [removed(K, p, i, part) for i in range(n)]
    for q in (0, 0.5, 1, 1.7, 2, 2.6, math.inf):
        found = vm.contributions(samples, kernel, q=q, **given)
        expected = vm.score(samples, kernel, q=q, **given)
        assert found.score == pytest.approx(float(expected), rel=1e-12)
        assert (found.n, found.q) == (expected.n, q)
        assert found.values.sum() == pytest.approx(math.log(expected), abs=1e-13)
        assert found.values.min() >= 0
        assert p @ found.rarity == pytest.approx(math.log(expected), abs=1e-13)
        np.testing.assert_allclose(found.mean_similarity, K @ p, atol=1e-12)
        np.testing.assert_allclose(found.weights, p, rtol=1e-14)
        if q == 1:
            there = values > 1e-12
            np.testing.assert_allclose(found.rarity, -squares[:, there] @ np.log(values[there]), atol=1e-10)
        change = [score(others, q) - score(values, q) for others in left]
        np.testing.assert_allclose(found.leave_one_out, change, rtol=1e-9, atol=1e-11, err_msg=f"q={q}")
        quick = vm.contributions(samples, kernel, q=q, leave_one_out=False, **given)
        assert quick.leave_one_out is None
        np.testing.assert_array_equal(quick.values, found.values)


def test_shares_of_orders_near_1_approach_those_of_order_1():
    data = rows(40, 6)
    one = vm.contributions(data).values
    for q in (1 - 1e-7, 1 + 1e-7):
        np.testing.assert_allclose(vm.contributions(data, q=q).values, one, rtol=1e-6)
    far = vm.contributions(data, q=2)
    K = similarities(data, "cosine")
    tsallis = (1 - np.einsum("ij,ij->i", K, K) / 40) / 40  # 1 − φᵀρφ = 1 − Σ k²/n
    np.testing.assert_allclose(far.values, tsallis * far.values.sum() / tsallis.sum(), rtol=1e-12)


def test_order_infinity_shares_by_what_lies_outside_of_the_largest_eigenvalue():
    data = rows(40, 6)
    found = vm.contributions(data, q="inf")
    x = data / np.linalg.norm(data, axis=1, keepdims=True)
    top = np.linalg.eigh(x.T @ x / 40)[1][:, -1]
    outside = 1 - (x @ top) ** 2
    np.testing.assert_allclose(found.values, outside * math.log(found.score) / outside.sum(), rtol=1e-10)
    # Where all eigenvalues are the largest, every item is as rare as the other.
    np.testing.assert_allclose(vm.contributions(np.eye(4) * 2, q="inf").values, math.log(4) / 4)


def test_samples_that_are_alike_share_nothing():
    for samples, kernel in ((np.ones((6, 3)), "cosine"), (["a"] * 5, "match"), (np.ones((5, 9)), RBF(1.0))):
        for q in (0, 0.5, 1, 2, "inf"):
            found = vm.contributions(samples, kernel, q=q)
            assert not found.values.any()
            assert not found.rarity.any()
            np.testing.assert_allclose(found.leave_one_out, 0, atol=1e-13)
        assert "none adds diversity" in found.summary()


def test_the_only_sample_leaves_nothing():
    assert np.isnan(vm.contributions([[1.0, 2.0]]).leave_one_out).all()
    found = vm.contributions(["a", "b"], "match", weights=[1, 0])
    assert math.isnan(found.leave_one_out[0])
    assert found.leave_one_out[1] == 0
    assert math.isnan(vm.contributions(["a", "b"], "match", counts=[1, 0]).leave_one_out[0])
    # One copy of several is not the only one.
    assert vm.contributions(["a", "b"], "match", counts=[3, 0]).leave_one_out[0] == pytest.approx(
        0, abs=1e-14
    )


@pytest.mark.parametrize("kernel", ["cosine", RBF(2.0), lambda a, b: float(np.exp(-((a - b) ** 2).sum()))])
def test_one_sample_with_nearly_all_weight_is_left_out_for_real(kernel):
    data = rows(30, 40)
    heavy = 1 - 1e-9
    p = np.r_[heavy, np.full(29, (1 - heavy) / 29)]
    found = vm.contributions(data, kernel, weights=p)
    expected = vm.score(list(data[1:]) if callable(kernel) else data[1:], kernel)
    assert found.score + found.leave_one_out[0] == pytest.approx(float(expected), rel=1e-12)


def test_samples_of_no_weight():
    data = np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1e-3]])
    p = np.array([0.75, 0.25, 0, 0, 0])
    for kernel in ("cosine", lambda a, b: float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))):
        found = vm.contributions(data, kernel, weights=p)
        assert found.values[2:].tolist() == found.leave_one_out[2:].tolist() == [0, 0, 0]
        # Half of the third lies in either direction; the others leave what the first two span.
        assert found.rarity[2] == pytest.approx(-math.log(0.75 * 0.25) / 2, rel=1e-10)
        assert found.rarity[3:].tolist() == [math.inf, math.inf]
        np.testing.assert_allclose(found.mean_similarity[2:4], [math.sqrt(0.5), 0], atol=1e-12)
        assert 3 not in found.rarest(5)
        assert json.loads(json.dumps(found.to_dict()))["rarity"][3] is None
        # With q = 2 a direction that no other has is as rare as can be, and no rarer.
        two = vm.contributions(data, kernel, weights=p, q=2)
        scale = math.log(1 / 0.625) / (1 - 0.625)
        np.testing.assert_allclose(two.rarity[[0, 3]], [0.25 * scale, scale], rtol=1e-10)
        assert vm.contributions(data, kernel, weights=p, q=0.5).rarity[3] == math.inf


def test_negative_eigenvalues_that_were_dropped_on_request():
    K = np.array([[1, 0.9, -0.2], [0.9, 1, 0.7], [-0.2, 0.7, 1]])
    found = vm.contributions(K, Precomputed(project=True))
    values, vectors = np.linalg.eigh(K / 3)
    values = np.maximum(values, 0)
    left = (vectors * (values / values.sum())) @ vectors.T  # ρ as it is after that
    expected = []
    for i in range(3):
        keep = np.arange(3) != i
        part = left[np.ix_(keep, keep)]
        rest = np.linalg.eigvalsh(part / np.trace(part))
        rest = rest[rest > 1e-14]
        expected.append(math.exp(-float(np.sum(rest * np.log(rest)))) - found.score)
    np.testing.assert_allclose(found.leave_one_out, expected, rtol=1e-10)
    assert found.values.sum() == pytest.approx(math.log(found.score), rel=1e-12)


def test_what_is_rare_and_what_is_redundant():
    samples = ["a"] * 6 + ["b"] * 3 + ["c"]
    found = vm.contributions(samples, "match")
    assert found.rarest(1).tolist() == [9]
    assert found.rarest(4).tolist() == [9, 6, 7, 8]
    assert found.redundant(3).tolist() == [0, 1, 2]
    assert len(found.redundant(99)) == 10
    quick = vm.contributions(samples, "match", leave_one_out=False)
    assert quick.rarest(2).tolist() == [9, 6]
    assert quick.redundant(2).tolist() == [0, 1]
    # At order 0 the rest of the order is by rarity: removing an "a" or a "b" changes nothing.
    rank = vm.contributions(samples, "match", q=0)
    assert rank.leave_one_out.tolist() == [0] * 9 + [-1]
    assert rank.redundant(7).tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_arrays_of_every_library_give_the_same(library):
    data = rows(12, 4)
    for q in (0.5, 2.5, "inf"):
        here, there = vm.contributions(data, q=q), vm.contributions(library.array(data), q=q)
        for name in ("values", "rarity", "leave_one_out", "mean_similarity"):
            np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-10, atol=1e-12)
            assert isinstance(getattr(there, name), np.ndarray)
    here, there = vm.contributions(data, RBF(1.0)), vm.contributions(library.array(data), RBF(1.0))
    np.testing.assert_allclose(there.leave_one_out, here.leave_one_out, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.mean_similarity, here.mean_similarity, rtol=1e-9)


def test_blocks_and_threads_change_nothing(monkeypatch):
    data = rows(500, 8)
    whole = vm.contributions(data)
    monkeypatch.setattr("vendimeter.solvers.eigenvectors.BLOCK_BYTES", 20_000)
    parts = vm.contributions(data)
    np.testing.assert_allclose(parts.leave_one_out, whole.leave_one_out, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(parts.values, whole.values, rtol=1e-13)


def test_collections_frames_and_their_weights(tmp_path):
    pandas = pytest.importorskip("pandas")
    data = rows(6, 3)
    frame = pandas.DataFrame(data, columns=list("abc"))
    frame["w"] = [1, 2, 3, 4, 5, 5]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    read = vm.read(tmp_path / "rows.csv", samples=["a", "b", "c"], weight="w")
    expected = vm.contributions(data, weights=frame["w"] / 20)
    np.testing.assert_allclose(vm.contributions(read).values, expected.values, rtol=1e-12)
    kernel = vm.kernels.On("a", RBF(1.0))
    np.testing.assert_allclose(
        vm.contributions(frame, kernel).rarity, vm.contributions(data[:, 0], RBF(1.0)).rarity, rtol=1e-12
    )


def test_bad_input_says_what_is_wrong():
    data = rows(5, 3)
    for options, message in (
        ({"q": "many"}, "q='many' is not an order"),
        ({"q": [1, 2]}, "is not an order"),
        ({"leave_one_out": "yes"}, "leave_one_out='yes'; expected True or False"),
        ({"weights": [0.5, 0.5]}, "weights has 2 entries and there are 5 items"),
        ({"weights": [1.0] * 5}, "weights sum to 5"),
        ({"rng": -1}, "rng=-1"),
    ):
        with pytest.raises(InputError, match=message):
            vm.contributions(data, **options)
    with pytest.raises(InputError, match="nan"):
        vm.contributions([[1.0, math.nan], [1.0, 2.0]])
    with pytest.raises(AsymmetryError, match=r"Precomputed\(symmetrize=True\)"):
        vm.contributions([[1, 0.5], [0.4, 1]], "precomputed")
    with pytest.raises(TooLargeError, match="RandomFeatures"):
        vm.contributions(rows(8200, 1), RBF(1.0))
    found = vm.contributions(data)
    for k in (0, 1.5, "3"):
        with pytest.raises(InputError, match="k="):
            found.rarest(k)


def test_the_result_is_frozen_and_can_be_written_down():
    found = vm.contributions(rows(30, 4), q="inf")
    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 1
    with pytest.raises(AttributeError):
        found.n = 3
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["q"] == "inf"
    assert plain["score"]["low"] <= found.score <= plain["score"]["high"]
    assert len(plain["leave_one_out"]) == 30
    frame = found.to_frame()
    assert list(frame.columns) == ["share", "rarity", "leave_one_out", "mean_similarity", "weight"]
    assert frame["share"].sum() == pytest.approx(math.log(found.score))
    assert "… 10 more" in found._repr_html_()
    assert repr(found).startswith("Contributions(score=")
    assert "order inf" in found.summary()
    lacking = vm.contributions(rows(30, 4), leave_one_out=False)
    assert "leave_one_out" not in lacking.to_frame()
    assert lacking.to_dict()["leave_one_out"] is None
    assert "least rare" in lacking.summary()
    assert "falls by 1." in vm.contributions(["a", "b", "c"], "match").summary()


@pytest.mark.parametrize("n", [1, 2, 5, 70, 3000])
def test_the_picture_has_the_mean_and_names_as_they_stand(n):
    found = vm.contributions(rows(n, 3))
    hostile = ["$x^2$", "_a", "<b>", "\x1b[31m", "$\\frac{"]
    display = found.plot(names=[f"{hostile[i % 5]}{i}" for i in range(n)])
    display.figure_.canvas.draw()
    texts = display.ax_.get_legend().get_texts()
    assert texts[0].get_text().startswith("mean: ")
    assert len(texts) == 1 + 2 * min(3, n // 2)
    assert not any("\x1b" in text.get_text() for text in texts)
    if n == 3000:
        rare = f"{hostile[found.rarest(1)[0] % 5]}{found.rarest(1)[0]}".replace("\x1b", "\\x1b")
        assert texts[1].get_text() == f"rarest: {rare}"
    pyplot.close(display.figure_)
    _, ax = pyplot.subplots()
    assert found.plot(ax, k=1).ax_ is ax
    pyplot.close(ax.figure)
    with pytest.raises(InputError, match="expected one a sample"):
        found.plot(names=["a"] * (n + 1))


def test_real_digits_without_the_rarest_of_them(shared_data):
    with np.load(shared_data / "images" / "mnist_test.npz") as held:
        digits = held["images"][:800, ::2, ::2].reshape(800, -1)
    found = vm.contributions(digits)
    rare, spare = found.rarest(50), found.redundant(50)
    assert found.rarity[rare].min() > found.rarity[spare].max()
    for i in (int(rare[0]), int(spare[0])):
        others = float(vm.score(np.delete(digits, i, axis=0)))
        assert others - found.score == pytest.approx(found.leave_one_out[i], rel=1e-8)
