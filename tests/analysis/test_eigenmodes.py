"""Modes: eigenpairs against a dense reference on every way to get them, exemplars, orders, labels, and pictures."""

from __future__ import annotations

import gzip
import json

import matplotlib
import numpy as np
import pytest

import vendimeter as vm
from vendimeter.analysis import orderings
from vendimeter.errors import IndefiniteError, InputError, TooLargeError, UnknownNameError
from vendimeter.kernels import RBF, Jaccard, Match, Morgan, NGram, On, Pixels, Precomputed, as_kernel
from vendimeter.similarity import Pairwise
from vendimeter.solvers import eigenvectors

matplotlib.use("Agg")
from matplotlib.figure import Figure


def rows(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


TEXTS = ["a b c", "a b d", "a b c", "e f g h", "e f", "x", "x", "a", "b d f", "q r s"] * 3
BITS = np.random.default_rng(1).random((30, 20)) < 0.3
BITS[:, 0] = True
CASES = {
    "dense, wide": (rows(12, 40), "cosine"),
    "dense, narrow": (rows(60, 7), "cosine"),
    "fewer directions than columns": (rows(40, 3) @ rows(3, 9), "cosine"),
    "sparse, wide": (TEXTS[:10], NGram(1, 2)),
    "sparse, narrow": (TEXTS * 3, NGram(1, 2)),
    "pairwise": (rows(25, 3), RBF(1.0)),
    "copies": (np.repeat(rows(9, 3), 4, axis=0), RBF(1.0)),
    "bits": (BITS, Jaccard()),
    "matrix": (np.corrcoef(rows(15, 30)), Precomputed()),
    "function": ([1.0, 2.0, 2.5, 7.0, 7.5, 9.0, 1.5, 2.2], lambda a, b: float(np.exp(-abs(a - b)))),
}
WAYS = ["all of them", "products", "float32", "blocks"]


def weights_of(n, how):
    if how == "uniform":
        return None
    weights = np.random.default_rng(5).random(n) + 0.1
    if how == "some are 0":
        weights[[0, n // 2]] = 0.0
    return weights / weights.sum()


def by_way(monkeypatch, way):
    """Take small problems as if they were large."""
    if way != "all of them":
        monkeypatch.setattr(eigenvectors, "SMALL", 3)
    if way in ("float32", "blocks"):
        monkeypatch.setattr(eigenvectors, "STORED_DOUBLE", 0)
    if way == "blocks":
        monkeypatch.setattr(eigenvectors, "STORED_SINGLE", 0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", ["uniform", "weights", "some are 0"])
@pytest.mark.parametrize("name", CASES)
def test_modes_are_the_leading_eigenpairs(name, how, way, monkeypatch):
    by_way(monkeypatch, way)
    samples, kernel = CASES[name]
    similarity = as_kernel(kernel).similarity(samples)
    n, k = similarity.n, 4
    weights = weights_of(n, how)
    p = np.full(n, 1 / n) if weights is None else weights
    K = as_kernel(kernel).similarity(samples).dense()
    reference = np.linalg.eigvalsh(K * np.sqrt(p)[:, None] * np.sqrt(p))[::-1]
    kept = min(k, np.count_nonzero(reference > 1e-12))

    found = vm.modes(samples, kernel, k=k, weights=weights)
    # A matrix kept in float32 is another matrix, by its rounding, which the residuals admit.
    stored = way == "float32" and isinstance(similarity, Pairwise) and similarity.trusted
    slack = 1e-7 if stored else 1e-6 if way == "blocks" else 1e-9
    assert len(found) == kept
    if way != "all of them":
        assert found.method == "krylov"
    np.testing.assert_allclose(found.shares, reference[:kept], atol=slack)
    y = found.loadings
    np.testing.assert_allclose((y * p[:, None]).T @ y, np.diag(found.shares), atol=slack)
    u = found.vectors
    np.testing.assert_allclose(np.linalg.norm(u, axis=0), 1, atol=1e-9)
    error = np.linalg.norm(K * np.sqrt(p)[:, None] * np.sqrt(p) @ u - u * found.shares, axis=0)
    assert (error <= found.residuals + 1e-14).all()
    assert (error <= slack).all()
    # All items, those of no weight among them, lie where their similarities put them.
    np.testing.assert_allclose(K @ (p[:, None] * y), y * found.shares, atol=max(slack, 1e-9) * 10)
    assert (y[np.abs(y).argmax(axis=0), np.arange(kept)] > 0).all()
    assert found.settled


def test_counts_are_weights_and_copies():
    samples = rows(9, 4)
    counts = np.arange(1, 10)
    found = vm.modes(samples, counts=counts, k=3)
    assert found.n == 45
    spelt_out = vm.modes(np.repeat(samples, counts, axis=0), k=3)
    np.testing.assert_allclose(found.shares, spelt_out.shares, rtol=1e-12)
    np.testing.assert_allclose(np.repeat(found.loadings, counts, axis=0), spelt_out.loadings, atol=1e-12)


def test_arrays_of_every_library_give_the_same_modes(library, monkeypatch):
    data = rows(40, 6)
    here = vm.modes(data, RBF(2.0), k=3)
    for way in ("all of them", "products"):
        by_way(monkeypatch, way)
        there = vm.modes(library.array(data), RBF(2.0), k=3)
        assert isinstance(there.loadings, np.ndarray)
        np.testing.assert_allclose(there.shares, here.shares, rtol=1e-9)
        np.testing.assert_allclose(there.loadings, here.loadings, atol=1e-7)
        vectors = vm.modes(library.array(data), k=3)
        np.testing.assert_allclose(
            vectors.shares, np.linalg.eigvalsh(unit(data).T @ unit(data) / 40)[:2:-1], rtol=1e-9
        )


def unit(data):
    return data / np.linalg.norm(data, axis=1, keepdims=True)


def test_a_space_that_starts_again_finds_the_same(monkeypatch):
    data = rows(300, 260)
    exact = vm.modes(data, RBF(10.0), k=5)
    by_way(monkeypatch, "products")
    monkeypatch.setattr(eigenvectors, "BASIS_BYTES", 1)
    again = vm.modes(data, RBF(10.0), k=5)
    assert again.method == "krylov"
    assert again.settled
    np.testing.assert_allclose(again.shares, exact.shares, rtol=1e-9)


def test_vectors_that_have_not_settled_are_said_to_be_so(monkeypatch):
    by_way(monkeypatch, "products")
    monkeypatch.setattr(eigenvectors, "MOST_PASSES", 1)
    monkeypatch.setattr(eigenvectors, "EXTRA_COLUMNS", 1)
    found = vm.modes(rows(300, 260), k=5)
    assert not found.settled
    assert "have not settled" in found.summary()
    assert found.residuals.max() > 1e-4


def test_degenerate_eigenvalues_are_marked(monkeypatch):
    words = list("aaabbbccd")  # 3, 3, 2 and 1 of 9
    for way in ("all of them", "products"):
        by_way(monkeypatch, way)
        found = vm.modes(words, Match(), k=4)
        np.testing.assert_allclose(found.shares, np.array([3, 3, 2, 1]) / 9, atol=1e-12)
        assert found.degenerate.tolist() == [True, True, False, False]
        assert "modes 0, 1 are as good as equal" in found.summary()
    # The mode after the last counts as well: half of a pair is arbitrary.
    assert vm.modes(words, "match", k=1).degenerate.tolist() == [True]
    assert not vm.modes(list("aab"), "match").degenerate.any()


def test_fewer_modes_where_the_rank_is_lower():
    assert len(vm.modes(rows(30, 3), k=10)) == 3
    alike = vm.modes(np.ones((6, 4)), k=10)
    np.testing.assert_allclose(alike.shares, [1.0])
    assert vm.modes([[1.0, 2.0]]).exemplars(0).low.size == 0


def test_a_kernel_that_projects_needs_all_eigenvalues(monkeypatch):
    K = np.array([[1, 0.9, -0.2], [0.9, 1, 0.7], [-0.2, 0.7, 1]])
    with pytest.raises(IndefiniteError):
        vm.modes(K, "precomputed")
    kept = np.maximum(np.linalg.eigvalsh(K)[::-1], 0)
    by_way(monkeypatch, "products")
    np.testing.assert_allclose(
        vm.modes(K, Precomputed(project=True)).shares, kept[:2] / kept.sum(), atol=1e-12
    )
    monkeypatch.setattr(eigenvectors, "EXACT_SIDE", 2)
    with pytest.raises(TooLargeError):
        vm.modes(K, Precomputed(project=True))


def test_negative_eigenvalues_of_a_large_matrix_show(monkeypatch):
    by_way(monkeypatch, "products")
    K = np.eye(30)
    K[0, 1] = K[1, 0] = 2.0
    with pytest.raises(IndefiniteError, match="not positive semidefinite"):
        vm.modes(K, "precomputed")


# ---------------------------------------------------------------------------------------------------- exemplars, orders


def test_exemplars_are_at_both_ends_and_none_twice():
    data = rows(21, 4)
    found = vm.modes(data, exemplars=3)
    for a in range(4):
        order = np.argsort(-found.loadings[:, a])
        np.testing.assert_array_equal(found.exemplars(a).high, order[:3])
        np.testing.assert_array_equal(found.exemplars(a).low, order[::-1][:3])
        ends = found.exemplars(a, 50)
        assert len(ends.high) == 11
        assert sorted([*ends.high, *ends.low]) == list(range(21))
    for mode in (4, -1, 1.5, "a", None):
        with pytest.raises(InputError, match="from 0 to 3"):
            found.exemplars(mode)
    with pytest.raises(InputError, match="count=0"):
        found.exemplars(0, 0)


def test_items_of_no_weight_are_no_exemplars():
    weights = np.r_[0.0, np.full(9, 1 / 9)]
    ends = vm.modes(rows(10, 3), weights=weights).exemplars(0, 9)
    assert 0 not in [*ends.high, *ends.low]


def test_the_first_mode_of_positive_similarities_has_one_sign():
    found = vm.modes(np.abs(rows(40, 6)))
    assert found.one_sided.tolist() == [True] + [False] * 5
    means = vm.metrics.mean_similarity(np.abs(rows(40, 6)))
    assert found.exemplars(0, 1).high[0] in np.argsort(-means)[:3]  # most similar to the others


def test_the_order_puts_like_items_beside_each_other():
    rng = np.random.default_rng(0)
    label = rng.integers(4, size=80)
    found = vm.modes(8 * np.eye(4)[label] + rng.standard_normal((80, 4)), RBF(2.0))
    assert sorted(found.order) == list(range(80))
    assert np.count_nonzero(np.diff(label[found.order])) == 3
    assert np.count_nonzero(np.diff(label)) > 40
    assert not found.order.flags.writeable
    np.testing.assert_array_equal(found.ordering("modes"), found.order)
    np.testing.assert_array_equal(found.ordering("given"), np.arange(80))
    np.testing.assert_array_equal(found.ordering([5, 2]), [5, 2])


def test_the_order_of_many_items_is_as_good(monkeypatch):
    rng = np.random.default_rng(0)
    label = rng.integers(4, size=500)
    coordinates = 8 * np.eye(4)[label] + rng.standard_normal((500, 4))
    monkeypatch.setattr(orderings, "LEAVES", 50)
    order = orderings.by_coordinates(coordinates)
    assert sorted(order) == list(range(500))
    assert np.count_nonzero(np.diff(label[order])) == 3
    rough = np.linalg.norm(np.diff(coordinates, axis=0), axis=1).mean()
    assert np.linalg.norm(np.diff(coordinates[order], axis=0), axis=1).mean() < rough / 3
    np.testing.assert_array_equal(order, orderings.by_coordinates(coordinates))


def test_orders_by_item_and_by_label():
    texts = ["b x", "a y", "b z", "a x"]
    found = vm.modes(texts, NGram(1, 1), by=["u", "v", "u", "v"])
    np.testing.assert_array_equal(found.ordering("lexicographic"), [3, 1, 0, 2])
    assert [["u", "v", "u", "v"][i] for i in found.ordering("labels")] == ["u", "u", "v", "v"]
    with pytest.raises(UnknownNameError, match="'modes', 'lexicographic'"):
        found.ordering("alphabetical")
    with pytest.raises(InputError, match="needs labels"):
        vm.modes(texts, "ngram").ordering("labels")
    for wrong in ([0, 0], [4], [0.5], [], [[1]], [[1], [2, 3]]):
        with pytest.raises(InputError, match="positions from 0 to 3"):
            found.ordering(wrong)
    with pytest.raises(InputError, match="sorts the items themselves"):
        vm.modes([{"a": 1}, {"a": 2}], lambda a, b: float(a == b)).ordering("lexicographic")


# ------------------------------------------------------------------------------------------------------------- labels


def test_composition_is_the_weighted_share_of_each_label():
    data, weights = rows(30, 5), weights_of(30, "weights")
    by = ["x", "y", "z"] * 10
    found = vm.modes(data, by=by, weights=weights, k=3)
    assert found.labels == ["x", "y", "z"]
    assert found.composition.shape == (3, 3)
    np.testing.assert_allclose(found.composition.sum(axis=1), 1)
    mine = np.array(by) == "y"
    share = (weights[:, None] * found.loadings**2)[mine].sum(axis=0) / found.shares
    np.testing.assert_allclose(found.composition[:, 1], share)
    mean = (weights[:, None] * found.loadings)[mine].sum(axis=0) / weights[mine].sum()
    np.testing.assert_allclose(found.label_loadings[:, 1], mean)


def test_items_of_several_labels_are_divided_among_them():
    found = vm.modes(rows(6, 3), by=[["x", "y"], ["x"], ["y"], ["x"], ["x"], []])
    held = found.weights[:, None] * found.loadings**2 / found.shares
    np.testing.assert_allclose(found.composition[:, 1], held[0] / 2 + held[2])
    np.testing.assert_allclose(found.composition.sum(axis=1), 1 - held[5])


def test_labels_of_tables_and_collections(tmp_path):
    import pandas as pd

    table = pd.DataFrame({"word": ["a", "b", "a", "c"], "class": ["u", "v", "u", "v"]})
    kernel = On("word", Match())
    assert vm.modes(table, kernel, by="class").labels == ["u", "v"]
    collection = vm.Collection(["a", "b", "a", "c"], labels=["u", "v", "u", "v"], weights=[1, 1, 1, 3])
    found = vm.modes(collection, "match")
    assert found.labels == ["u", "v"]
    np.testing.assert_allclose(found.shares, np.array([3, 2, 1]) / 6)
    with pytest.raises(UnknownNameError):
        vm.modes(table, kernel, by="klass")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k=0"),
        ({"k": 2.5}, "k=2.5"),
        ({"exemplars": 0}, "exemplars=0"),
        ({"rng": -1}, "rng=-1"),
        ({"by": [1, 2]}, "2 labels and there are 20"),
        ({"weights": np.ones(20)}, "sum to 20"),
        ({"weights": np.ones(3) / 3}, "3"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        vm.modes(rows(20, 3), **options)


def test_samples_that_cannot_be_used():
    for samples in ([], np.empty((0, 3)), [[1.0, np.nan], [1.0, 2.0]], ["a", "b"], {"a", "b"}):
        with pytest.raises(InputError):
            vm.modes(samples)


# ------------------------------------------------------------------------------------------------------------- result

HOSTILE = ["<script>alert(1)</script>", "$x^2$", "_a\x1b[31m", "<b>"]


def hostile():
    return vm.modes(rows(12, 4), by=[HOSTILE[i % 4] for i in range(12)])


def test_the_result_is_frozen_and_plain():
    found = hostile()
    for array in (found.shares, found.loadings, found.weights, found.residuals, found.composition):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(AttributeError):
        found.n = 3
    plain = found.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert "loadings" not in plain
    assert plain["modes"][1]["high"] == found.exemplars(1).high.tolist()
    frame = found.to_frame()
    assert frame["share"].tolist() == found.shares.tolist()
    assert frame["cumulative"].iloc[-1] == pytest.approx(1)
    assert repr(found).startswith("Modes(4 of 12 items, shares 0.")
    page = found._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in found.summary()


def test_the_items_are_kept_and_not_copied():
    data = rows(30, 4)
    found = vm.modes(data)
    assert found.diversity.samples is data
    assert "diversity" not in json.dumps(found.to_dict())


def test_the_same_seed_gives_the_same_modes(monkeypatch):
    by_way(monkeypatch, "products")
    first, second, other = (vm.modes(rows(40, 30), RBF(4.0), rng=rng) for rng in (0, 0, 1))
    np.testing.assert_array_equal(first.loadings, second.loadings)
    assert (first.loadings != other.loadings).any()
    np.testing.assert_allclose(first.loadings, other.loadings, atol=1e-6)


def test_pictures_of_hostile_labels_are_drawn():
    found = hostile()
    figure = Figure()
    ax = figure.subplots()
    assert found.plot(ax=ax).ax_ is ax
    assert len(ax.patches) == 4
    for order in ("modes", "labels"):
        drawn = found.plot_matrix(Figure().subplots(), order=order)
        drawn.figure_.canvas.draw()
    names = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    assert names == ["<script>alert(1)<…", "$x^2$", "_a\\x1b[31m", "<b>"]
    matrix = drawn.ax_.images[0].get_array()
    order = found.ordering("labels")
    np.testing.assert_allclose(
        matrix, (unit(rows(12, 4)) @ unit(rows(12, 4)).T)[np.ix_(order, order)], atol=1e-12
    )


# ---------------------------------------------------------------------------------------------------------- real data


def test_modes_of_photographs(shared_data):
    held = np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz")
    names = held["classes"][held["label"]]
    found = vm.modes(held["emb"], by=names, k=5)
    assert found.method == "krylov"
    assert found.one_sided[0]
    assert found.shares[0] == pytest.approx(0.381, abs=1e-3)
    features = unit(held["emb"].astype(np.float64))
    np.testing.assert_allclose(
        found.shares, np.linalg.eigvalsh(features.T @ features / 2000)[::-1][:5], rtol=1e-9
    )
    # One mode has landscapes at one end and fruit at the other.
    ends = found.exemplars(1, 8)
    landscapes, fruit = {"plain", "sea", "cloud"}, {"apple", "orange"}
    high, low = ({str(names[i]) for i in end} for end in ends)
    assert (high <= landscapes and low & fruit) or (low <= landscapes and high & fruit)


def test_modes_of_pixels(shared_data):
    row = np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz")["row"][::5]
    pictures = np.load(shared_data / "images" / "cifar100_test.npz")["images"][row]
    found = vm.modes(pictures, Pixels(), k=3)
    assert found.shares[0] > 0.7
    assert found.one_sided[0]
    light = pictures[found.exemplars(0, 8).high].std(axis=(1, 2, 3)).mean()
    assert (
        light < pictures[found.exemplars(0, 8).low].std(axis=(1, 2, 3)).mean()
    )  # even ones are like most others
    drawn = found.plot_exemplars(modes=2, count=3, ax=Figure().subplots())
    shown = [np.asarray(image.get_array()) for image in drawn.ax_.images]
    expected = [i for a in range(2) for end in found.exemplars(a, 3) for i in end]
    assert len(shown) == 12
    for picture, i in zip(shown, expected, strict=True):
        np.testing.assert_array_equal(picture, pictures[i])


def test_molecules_in_the_order_of_their_smiles(shared_data):
    with gzip.open(shared_data / "molecules" / "moses_test.csv.gz", "rt") as lines:
        smiles = [line.split(",")[0].strip() for line in lines][1:251]
    found = vm.modes(smiles, Morgan(), k=4)
    np.testing.assert_array_equal(np.array(smiles)[found.ordering("lexicographic")], np.sort(smiles))
    K = as_kernel(Morgan()).similarity(smiles).dense()
    np.testing.assert_allclose(found.shares, np.linalg.eigvalsh(K / 250)[::-1][:4], rtol=1e-10)
    drawn = found.plot_matrix(Figure().subplots(), order="lexicographic")
    order = np.argsort(np.array(smiles), kind="stable")
    np.testing.assert_allclose(drawn.ax_.images[0].get_array(), K[np.ix_(order, order)], atol=1e-12)
    rough = np.abs(np.diff(K, axis=0)).mean()
    assert np.abs(np.diff(K[np.ix_(found.order, found.order)], axis=0)).mean() < 0.8 * rough
