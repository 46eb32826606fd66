"""Near copies against all pairs in float64: clusters, what they cost, and how much hashing finds."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from itertools import islice

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

import vendimeter as vm
from vendimeter.analysis.near_copies import hashing, near_copies
from vendimeter.analysis.near_copies import pairs as pair_search
from vendimeter.analysis.near_copies.hashing import interval
from vendimeter.errors import EmptyError, IndefiniteError, InputError, TooLargeError, UnknownNameError
from vendimeter.kernels import RBF, Cosine, Jaccard, NGram, On, Polynomial


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def with_copies(n=220, d=24, seed=0):
    """Random vectors, of which some are near copies of others, some identical, and some multiples of another."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    for first, size, noise in ((3, 6, 0.05), (40, 3, 0.2), (90, 12, 0.25), (150, 2, 0.01)):
        rows[first + 1 : first + size] = rows[first] + noise * rng.standard_normal((size - 1, d))
    rows[200], rows[5], rows[210], rows[211] = rows[10], rows[12], 3 * rows[20], rows[20]
    return rows


def reference(K, level):
    """Components of at least two items of the graph K ≥ level, largest first; and how many edges there are."""
    near = level - 1e-12 <= K
    labels = connected_components(sparse.csr_array(near), directed=False)[1]
    found = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    found = sorted((places for places in found if len(places) > 1), key=lambda p: (-len(p), p[0]))
    return [places.tolist() for places in found], int(np.triu(near, 1).sum())


def listed(clusters):
    assert all(type(i) is int for places in clusters for i in places)
    return [list(places) for places in clusters]


def check(found, K, threshold):
    """Everything that a result says of pairs, against K."""
    clusters, pairs = reference(K, threshold)
    assert listed(found.clusters) == clusters
    assert listed(found.exact) == reference(K, 1.0)[0]
    assert found.pairs == pairs
    assert found.sizes.tolist() == [len(places) for places in clusters]
    assert found.redundant.tolist() == sorted(i for places in clusters for i in places[1:])
    assert found.kept.tolist() == sorted({*range(len(K))} - {*found.redundant.tolist()})
    assert found.copies == len(found.redundant)
    assert found.identical == sum(len(places) - 1 for places in found.exact)
    assert found.recall == 1
    assert found.method == "exact"


ROWS = with_copies()


# -------------------------------------------------------------------------------------------------------- all pairs


@pytest.mark.parametrize("threshold", [0.3, 0.9, 0.95, 0.99, 1.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_rows(threshold, dtype):
    rows = ROWS.astype(dtype)
    K = unit(rows.astype(np.float64)) @ unit(rows.astype(np.float64)).T
    check(vm.duplicates(rows, threshold=threshold, scores=False), K, threshold)


@pytest.mark.parametrize(("tile", "strip"), [(16, 1), (7, 40_000), (1024, 1 << 20)])
def test_the_size_of_tiles_changes_nothing(monkeypatch, tile, strip):
    monkeypatch.setattr(pair_search, "TILE", tile)
    monkeypatch.setattr(pair_search, "STRIP_BYTES", strip)
    check(vm.duplicates(ROWS, threshold=0.9, scores=False), unit(ROWS) @ unit(ROWS).T, 0.9)


def test_every_kind_of_similarity():
    K = unit(ROWS) @ unit(ROWS).T
    for samples, kernel in (
        (sparse.csr_array(ROWS), "cosine"),
        (K, "precomputed"),
        (sparse.csr_array(np.where(K >= 0.8, K, 0) + np.diag(1 - np.diag(K))), "precomputed"),
        (ROWS, lambda a, b: float(a @ b / np.sqrt((a @ a) * (b @ b)))),
        (pd.DataFrame({"a": range(220), "v": [*ROWS]}), On("v", Cosine())),
        (pl.DataFrame({"v": ROWS.tolist()}), On("v", Cosine())),
    ):
        check(vm.duplicates(samples, kernel, threshold=0.9, scores=False), K, 0.9)


@pytest.mark.parametrize("kernel", [RBF(2.0), Polynomial(3, 1.0), 0.5 * RBF(1.0) + 0.5 * Cosine()])
def test_other_kernels(kernel):
    K = kernel.similarity(ROWS).dense()
    check(vm.duplicates(ROWS, kernel, threshold=0.8, scores=False), K, 0.8)


def test_texts_and_sets():
    texts = [
        "a dog runs fast",
        "a dog runs fast",
        "a dog runs",
        "two boats",
        "two boats at sea",
        "A dog runs fast",
    ]
    K = NGram(1, 2).similarity(texts).dense()
    check(vm.duplicates(texts, NGram(1, 2), threshold=0.8, scores=False), K, 0.8)
    sets = [{1, 2, 3}, {1, 2, 3}, {1, 2, 3, 4}, {5}, {5, 6}, set()]
    check(
        vm.duplicates(sets, "jaccard", threshold=0.7, scores=False), Jaccard().similarity(sets).dense(), 0.7
    )


def test_every_library(library):
    rows = ROWS[:60]
    found = vm.duplicates(library.array(rows), threshold=0.9)
    expected = vm.duplicates(rows, threshold=0.9)
    assert listed(found.clusters) == listed(expected.clusters)
    assert listed(found.exact) == listed(expected.exact)
    assert found.pairs == expected.pairs
    assert abs(found.score - expected.score) < 1e-9
    assert abs(found.without - expected.without) < 1e-9


def test_what_float32_leaves_in_doubt_is_told_apart():
    """Pairs whose cosine is 10⁻⁹ above or below the threshold, far within the rounding of float32."""
    rng = np.random.default_rng(1)
    left, other = unit(rng.standard_normal((2, 400, 300)).reshape(800, 300)).reshape(2, 400, 300)
    other = unit(other - np.sum(left * other, axis=1, keepdims=True) * left)
    cosines = 0.95 + 1e-9 * np.where(np.arange(400) % 2, 1, -1)
    right = cosines[:, None] * left + np.sqrt(1 - cosines**2)[:, None] * other
    found = vm.duplicates(np.concatenate([left, right]), scores=False)
    assert listed(found.clusters) == [[i, 400 + i] for i in range(1, 400, 2)]


@pytest.mark.parametrize(("more", "pairs"), [(0.0, 200 * 199 // 2), (-1e-9, 200 * 199 // 2), (1e-9, 0)])
def test_all_pairs_may_be_in_doubt(more, pairs):
    rows = np.sqrt(0.9) * np.eye(1, 201) + np.sqrt(0.1) * np.eye(201)[1:]  # all cosines are 0.9
    found = vm.duplicates(rows, threshold=0.9 + more, scores=False)
    assert (found.pairs, found.copies) == (pairs, 199 if pairs else 0)


def test_single_linkage():
    angles = np.arange(40) * np.arccos(0.95)
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)[:10]
    found = vm.duplicates(rows, scores=False)
    assert listed(found.clusters) == [[*range(10)]]
    assert found.pairs == 9


def test_many_identical_items_are_no_many_pairs():
    rows = np.concatenate([np.tile([1.0, 2.0, 3.0], (30_000, 1)), np.eye(3)])
    found = vm.duplicates(rows)
    assert found.pairs == 30_000 * 29_999 // 2
    assert found.sizes.tolist() == [30_000]
    assert len(found.exact[0]) == 30_000
    assert found.kept.tolist() == [0, 30_000, 30_001, 30_002]
    assert abs(found.without - vm.score(rows[[0, -3, -2, -1]])) < 1e-10


def test_a_matrix_of_a_coarse_dtype_has_identical_items():
    K = (unit(ROWS) @ unit(ROWS).T).astype(np.float32)
    found = vm.duplicates(K, "precomputed", threshold=0.9, scores=False)
    assert listed(found.exact) == reference(unit(ROWS) @ unit(ROWS).T, 1.0)[0]


# ------------------------------------------------------------------------------------------------- what copies cost


@pytest.mark.parametrize("q", [0.5, 1, 2, "inf"])
def test_scores(q):
    found = vm.duplicates(ROWS, threshold=0.9, q=q)
    assert abs(found.score - vm.score(ROWS, q=q)) < 1e-9
    assert abs(found.without - vm.score(ROWS[found.kept], q=q)) < 1e-9
    assert found.cost == found.without - found.score
    assert found.score.bounds[0] <= vm.score(ROWS, q=q) <= found.score.bounds[1]
    assert (found.score.n, found.without.n) == (220, len(found.kept))


def test_identical_items_have_their_joint_weight_in_the_score():
    texts = ["a", "a", "a", "b", "c"]
    found = vm.duplicates(texts, lambda a, b: float(a == b))
    assert abs(found.score - vm.score(texts, "match")) < 1e-12
    assert abs(found.without - 3) < 1e-12
    assert abs(found.cost - (3 - vm.score(texts, "match"))) < 1e-12


def test_counts_are_repeated_items():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 4, len(ROWS))
    found = vm.duplicates(ROWS, threshold=0.9, counts=counts)
    expected = vm.duplicates(np.repeat(ROWS, counts, axis=0), threshold=0.9)
    for name in ("n", "copies", "identical", "pairs"):
        assert getattr(found, name) == getattr(expected, name), name
    rows = unit(np.repeat(ROWS, counts, axis=0))
    assert found.pairs == reference(rows @ rows.T, 0.9)[1]
    assert found.sizes.tolist() == expected.sizes.tolist()
    assert abs(found.score - expected.score) < 1e-9
    assert abs(found.without - expected.without) < 1e-9
    assert found.score.n == expected.score.n == counts.sum()


def test_weights_stay_those_of_the_items_that_are_kept():
    rng = np.random.default_rng(4)
    weights = rng.random(len(ROWS))
    weights[[4, 30, 90]] = 0
    weights /= weights.sum()
    found = vm.duplicates(ROWS, threshold=0.9, weights=weights)
    present = np.flatnonzero(weights)
    plain = vm.duplicates(ROWS[present], threshold=0.9)
    assert listed(found.clusters) == [present[places].tolist() for places in plain.clusters]
    assert found.n == len(present)
    assert not {4, 30, 90} & {*found.kept.tolist(), *found.redundant.tolist()}
    kept = weights[found.kept]
    assert abs(found.score - vm.score(ROWS, weights=weights)) < 1e-9
    assert abs(found.without - vm.score(ROWS[found.kept], weights=kept / kept.sum())) < 1e-9


def test_uniform_weights_change_nothing():
    found = vm.duplicates(ROWS, threshold=0.9, weights=np.full(len(ROWS), 1 / len(ROWS)))
    expected = vm.duplicates(ROWS, threshold=0.9)
    assert listed(found.clusters) == listed(expected.clusters)
    assert abs(found.without - expected.without) < 1e-9


def test_a_function_is_called_once_for_a_pair():
    calls = []

    def cosine(a, b):
        calls.append(1)
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    vm.duplicates(ROWS[:100], cosine)
    assert len(calls) < 1.3 * 100 * 101 / 2


def test_without_scores():
    found = vm.duplicates(ROWS, scores=False)
    assert found.score is None
    assert np.isnan(found.cost)
    assert "Without" not in str(found)
    assert found.to_dict()["score"] is None
    assert found.plot().ax_.get_title(loc="left").count("\n") == 0


def test_a_kernel_that_only_stands_in_claims_nothing():
    found = vm.duplicates(ROWS, vm.kernels.RandomFeatures(RBF(3.0), 256))
    assert found.score.level == "none"
    assert "without bounds" in str(found)


def test_a_difference_within_the_bounds_is_said_to_be():
    same = vm.duplicates(np.eye(4)[[0, 1, 2, 3, 0, 1, 2, 3]] * 2)  # every item twice: nothing changes
    assert "the score would be 4 as it is now, to six digits, a difference within their bounds" in str(same)


# ---------------------------------------------------------------------------------------------------------- hashing


def planted(n=3000, d=64, copies=300, cosine=0.96, seed=5):
    """Random vectors, the last of which are copies of the first."""
    rng = np.random.default_rng(seed)
    rows = unit(rng.standard_normal((n, d)))
    left = rows[:copies]
    other = rng.standard_normal((copies, d))
    other = unit(other - np.sum(left * other, axis=1, keepdims=True) * left)
    rows[-copies:] = cosine * left + np.sqrt(1 - cosine**2) * other
    return rows


def share_together(labels, copies):
    """Of the first items, how many are in a cluster with their copies, the last ones."""
    return np.mean((labels[:copies] == labels[-copies:]) & (labels[:copies] >= 0))


def test_hashing_finds_what_it_says():
    rows = planted()
    found = vm.duplicates(rows, method="approximate")
    everything = vm.duplicates(rows, method="exact")
    together = share_together(found.labels, 300)
    assert together >= 0.98
    assert found.recall >= 0.99
    assert found.recall.low <= found.recall <= found.recall.high
    assert found.recall.planted == 2000
    assert found.recall.checked > 100
    assert found.recall.sampled_low <= together <= 1
    assert found.pairs >= 0.98 * everything.pairs
    truth = {tuple(places) for places in listed(everything.clusters)}
    assert {tuple(places) for places in listed(found.clusters)} <= truth  # pairs here: nothing false is found
    assert "Not all pairs were compared" in str(found)
    again = vm.duplicates(rows, method="approximate")
    assert listed(again.clusters) == listed(found.clusters)
    assert again.to_dict()["recall"] == found.to_dict()["recall"]


def test_hashing_finds_nothing_that_is_not_there():
    """Pairs of cosine 0.945, whose sketches are as near as those of near copies."""
    found = vm.duplicates(planted(cosine=0.945), method="approximate", scores=False)
    assert (found.copies, found.pairs, found.recall.checked) == (0, 0, 0)
    assert found.recall >= 0.99


@pytest.mark.parametrize("tables", [1, 4])
def test_too_few_tables_are_told(monkeypatch, tables):
    """The recall that is reported is the one that copies in the data have."""
    monkeypatch.setattr(hashing, "MOST_TABLES", tables)
    monkeypatch.setattr(hashing, "WINDOW", 4)
    monkeypatch.setattr(hashing, "CHECKED", 100)
    rows = planted(n=6000, copies=2000, cosine=0.95 + 1e-9)
    found = vm.duplicates(rows, method="approximate", scores=False)
    together = share_together(found.labels, 2000)
    assert found.recall.tables == tables
    assert found.recall.high < 0.99
    assert (
        abs(together - found.recall) < 0.06
    )  # 2,000 of each, in crowds that differ a little, and 100 found besides
    assert "99.0% were asked for" in str(found)


def test_hashing_sparse_rows(monkeypatch):
    monkeypatch.setattr(hashing, "PLANTED", 500)
    rng = np.random.default_rng(6)
    words = [f"w{i}" for i in range(4000)]
    texts = [" ".join(rng.choice(words, 30)) for _ in range(1500)]
    texts[-100:] = [text.rsplit(" ", 1)[0] + " changed" for text in texts[:100]]
    found = vm.duplicates(texts, NGram(1, 2), method="approximate", threshold=0.9, scores=False)
    expected = vm.duplicates(texts, NGram(1, 2), method="exact", threshold=0.9, scores=False)
    assert len(expected.clusters) == 100
    assert len({*map(tuple, listed(expected.clusters))} & {*map(tuple, listed(found.clusters))}) >= 98
    assert found.recall > 0.98


def test_hashing_where_all_point_the_same_way():
    """Cosines with each other of about 0.998: nearly every hyperplane through 0 has all of them on one side."""
    rows = planted(n=2000, copies=200, cosine=0.9) + 20 * unit(np.ones((1, 64)))
    threshold = 0.9997
    found = vm.duplicates(rows, method="approximate", threshold=threshold, scores=False)
    expected = vm.duplicates(rows, method="exact", threshold=threshold, scores=False)
    assert len(expected.clusters) > 100
    assert found.copies >= 0.97 * expected.copies
    assert found.recall.tables <= 24  # 136 with hyperplanes through 0


def test_a_crowd_does_not_blow_up():
    rng = np.random.default_rng(7)
    crowd = unit(rng.standard_normal((1, 32))) + 1e-4 * rng.standard_normal((3000, 32))
    rows = np.concatenate([crowd, rng.standard_normal((500, 32))])
    found = vm.duplicates(rows, method="approximate", scores=False)
    assert found.sizes.tolist() == [3000]
    assert found.pairs == 3000 * 2999 // 2


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_scipy_is_whole_before_threads_begin(method):
    """A thread that asks whether an array is sparse while another imports SciPy's sparse arrays would fail."""
    code = f"""
import sys
from concurrent.futures import ThreadPoolExecutor
plain = ThreadPoolExecutor.submit
def submit(*args):
    assert hasattr(sys.modules.get("scipy.sparse.csgraph"), "connected_components")
    return plain(*args)
ThreadPoolExecutor.submit = submit
import numpy as np, vendimeter as vm
print(vm.duplicates(np.random.default_rng(0).random((40, 8)), method={method!r}, scores=False).n)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "40", done.stderr


def test_pairs_that_are_too_many_are_not_counted(monkeypatch):
    monkeypatch.setattr(near_copies, "MOST_WITHIN", 10)
    found = vm.duplicates(planted(), method="approximate", scores=False)
    assert found.pairs is None
    assert found.to_dict()["pairs"] is None


def test_hashing_on_every_library(library, monkeypatch):
    for name, value in (("PLANTED", 64), ("CHECKED", 64), ("MOST_TABLES", 2)):
        monkeypatch.setattr(hashing, name, value)
    rows = planted(n=128, copies=16, d=16)
    found = vm.duplicates(library.array(rows), method="approximate", threshold=0.9, scores=False)
    expected = vm.duplicates(rows, method="exact", threshold=0.9, scores=False)
    assert found.copies >= 0.9 * expected.copies > 0


def test_when_to_hash(monkeypatch):
    monkeypatch.setattr(near_copies, "EXACT_ITEMS", 100)
    assert vm.duplicates(ROWS, scores=False).method == "approximate"
    assert vm.duplicates(ROWS[:90], scores=False).method == "exact"
    assert vm.duplicates(ROWS, method="exact", scores=False).method == "exact"
    repeated = np.repeat(ROWS[:50], 4, axis=0)  # 50 distinct items
    assert vm.duplicates(repeated, scores=False).method == "exact"


@pytest.mark.parametrize(
    ("found", "trials", "low", "high"),
    [
        (0, 7, 0.0, 0.4096164),
        (3, 7, 0.0989883, 0.8159484),
        (7, 7, 0.5903836, 1.0),
        (1990, 2000, 0.9908242, 0.9975999),
    ],
)
def test_the_interval(found, trials, low, high):
    """Ends as ``scipy.stats.binomtest(found, trials).proportion_ci(0.95, "exact")`` gives them."""
    assert np.allclose(interval(found, trials), (low, high), atol=1e-7)


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threshold": 0}, "threshold=0; expected the similarity"),
        ({"threshold": 1.01}, "threshold=1.01; expected"),
        ({"threshold": float("nan")}, "threshold=nan"),
        ({"threshold": "high"}, "threshold='high'"),
        ({"recall": 1}, "recall=1; expected the share .* method='exact'"),
        ({"scores": "yes"}, "scores='yes'; expected True or False"),
        ({"q": [1, 2]}, "expected one order"),
        ({"q": -1}, "expected"),
        ({"rng": -1}, "rng=-1; expected a seed"),
        ({"tol": 3}, "tol=3; expected"),
        ({"weights": np.full(220, 0.5)}, "sum to 110; expected probabilities"),
        ({"weights": [0.5, 0.5]}, "2 entries and there are 220 items"),
        ({"counts": np.full(220, 0.5)}, "expected whole numbers"),
        (
            {"kernel": "rbf", "method": "approximate"},
            r"RBF\(sigma=.* has none; expected a kernel with features",
        ),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(InputError, match=words):
        vm.duplicates(ROWS, **options)


def test_bad_samples():
    with pytest.raises(EmptyError):
        vm.duplicates([])
    with pytest.raises(UnknownNameError, match="Did you mean 'exact'"):
        vm.duplicates(ROWS, method="exakt")
    rows = ROWS.copy()
    rows[7, 3] = np.nan
    with pytest.raises(InputError, match="item 7 holds the value nan"):
        vm.duplicates(rows)
    with pytest.raises(InputError, match="item 1 is all zeros"):
        vm.duplicates([[1, 2], [0, 0]])
    with pytest.raises(InputError, match=r"k\[3, 5\] is nan|not symmetric"):
        vm.duplicates([0, 1, 1, 3, 3, 5], lambda a, b: np.nan if {a, b} == {3, 5} else float(a == b))
    with pytest.raises(IndefiniteError, match=r"kernel=vendimeter.kernels.Precomputed\(project=True\)"):
        vm.duplicates([[1, 0.99, -0.9], [0.99, 1, 0.99], [-0.9, 0.99, 1]], "precomputed")
    with pytest.raises(InputError, match=r"similarity of 1\.5"):
        vm.duplicates(range(100), lambda a, b: 1.0 if a == b else 1.5)


def test_what_would_take_too_long(monkeypatch):
    monkeypatch.setattr(near_copies, "MOST_WORK", 1e5)
    with pytest.raises(TooLargeError, match=r"217 distinct items are .* pairs, and RBF.* method='exact'"):
        vm.duplicates(ROWS, "rbf", scores=False)
    assert vm.duplicates(ROWS, "rbf", method="exact", scores=False).method == "exact"
    assert vm.duplicates(ROWS, scores=False).copies > 0  # features are no trouble


def test_one_item_and_all_alike():
    one = vm.duplicates([[1.0, 2.0]])
    assert (one.n, one.copies, one.pairs, one.clusters) == (1, 0, 0, [])
    for samples in ([[1.0, 2.0]], sparse.csr_array([[1.0, 2.0]])):  # no copy of one sparse row can be made
        assert vm.duplicates(samples, method="approximate").copies == 0
    assert abs(one.without - 1) < 1e-12
    alike = vm.duplicates([[1.0, 2.0]] * 50)
    assert (alike.copies, alike.identical, alike.pairs) == (49, 49, 50 * 49 // 2)
    assert abs(alike.without - 1) < 1e-12


# --------------------------------------------------------------------------------------------------------- the result


def test_the_result():
    found = vm.duplicates(ROWS, threshold=0.9)
    for array in (found.redundant, found.kept, found.sizes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        found.n = 3
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["clusters"] == listed(found.clusters)
    assert plain["score"]["score"] == float(found.score)
    assert plain["score"]["low"] <= plain["score"]["high"]
    assert plain["recall"]["value"] == 1
    frame = found.to_frame()
    assert frame["item"].tolist() == [i for places in found.clusters for i in places]
    assert set(frame["item"][~frame["kept"]]) == {*found.redundant.tolist()}
    assert set(frame["item"][frame["identical"]]) == {i for places in found.exact for i in places}
    assert frame["cluster"].is_monotonic_increasing
    assert found.labels[frame["item"]].tolist() == frame["cluster"].tolist()
    assert repr(found).startswith("Duplicates(n=220, threshold=0.9, copies=")
    assert str(found) == found.summary()
    html = found._repr_html_()
    assert "<table>" in html
    assert "more</td>" in html
    assert len(vm.duplicates(ROWS[:2]).to_frame()) == 0


def test_no_text_of_the_user_is_markup():
    def hostile(a, b):
        return float(a == b)

    hostile.__name__ = "<script>$x^2$"
    found = vm.duplicates(["<script>", "<script>", "$x^2$", "_a\x1b"], hostile)
    assert "<script>" not in found._repr_html_()
    found.plot().figure_.canvas.draw()


def test_collections_keep_their_weights_and_places(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text,w\na b,0.5\na b,0.2\nc d,0.3\n")
    data = vm.read(path, samples="text", weight="w")
    found = vm.duplicates(data, "ngram")
    assert listed(found.clusters) == [[0, 1]]
    assert abs(found.score - vm.score(["x", "y"], "match", weights=[0.7, 0.3])) < 1e-9
    assert abs(found.without - vm.score(["x", "y"], "match", weights=[0.625, 0.375])) < 1e-9


@pytest.mark.parametrize("case", ["few", "alike", "many", "very many", "none"])
def test_plot(case):
    rng = np.random.default_rng(8)
    sizes = {
        "few": [5, 3, 1],
        "alike": [2] * 30,
        "many": rng.integers(1, 5, 80),
        "very many": [*rng.integers(1, 9, 80), 300],
        "none": [1, 1],
    }[case]
    found = vm.duplicates(np.repeat(rng.standard_normal((len(sizes), 30)), sizes, axis=0))
    shown = found.plot()
    shown.figure_.canvas.draw()
    assert f"{found.copies:,} of {found.n:,} items" in shown.ax_.get_title(loc="left")
    bars = sum(bar.get_height() for bar in shown.ax_.patches)
    if case in ("few", "alike"):
        assert bars == sum(size for size in sizes if size > 1)
    _, ax = plt.subplots()
    assert found.plot(ax).ax_ is ax


# ---------------------------------------------------------------------------------------------------------- real data


def test_copies_planted_in_digits(shared_data):
    with np.load(shared_data / "images" / "mnist_test.npz") as data:
        pictures = data["images" if "images" in data else data.files[0]][:600].astype(np.float64)
    pictures = pictures.reshape(len(pictures), 28, 28)
    rng = np.random.default_rng(9)
    rows = unit(pictures.reshape(len(pictures), -1))
    lonely = np.flatnonzero((rows @ rows.T - np.eye(len(rows))).max(axis=1) < 0.85)[:40]
    assert len(lonely) == 40
    noisy = np.clip(pictures[lonely] + rng.normal(0, 12, (40, 28, 28)), 0, 255)
    brighter = np.minimum(1.1 * pictures[lonely[:20]], 255)
    moved = np.roll(pictures[lonely[:5]], 4, axis=2)  # four pixels aside: no copy for the cosine of pixels
    everything = np.concatenate([pictures, noisy, brighter, moved]).reshape(-1, 784)
    found = vm.duplicates(everything, threshold=0.93)
    expected = [[i, 600 + k, *([640 + k] if k < 20 else [])] for k, i in enumerate(lonely.tolist())]
    clusters = listed(found.clusters)
    assert all(cluster in clusters for cluster in expected)
    before = vm.duplicates(pictures.reshape(-1, 784), threshold=0.93)
    assert len(clusters) == len(before.clusters) + 40
    assert found.copies == before.copies + 60
    assert abs(found.without - vm.score(everything[found.kept])) < 1e-8


def test_repeats_in_generated_molecules(shared_data):
    pytest.importorskip("rdkit")
    with gzip.open(shared_data / "molecules" / "moses_ngram_3.csv.gz", "rt") as lines:
        smiles = [row["SMILES"] for row in islice(csv.DictReader(lines), 7000)]
    valid = vm.kernels.Morgan().valid(smiles)
    smiles = [text for text, good in zip(smiles, valid, strict=True) if good][:1500]
    found = vm.duplicates(smiles, "morgan")
    assert len(set(smiles)) == 1451
    assert found.identical >= 49
    assert (round(found.score, 2), round(found.without, 2)) == (479.91, 492.04)
    fingerprints = {row.tobytes() for row in vm.kernels.Morgan().fingerprints(smiles)}
    assert found.copies == found.identical == 1500 - len(fingerprints)  # none between 0.95 and 1


def test_items_of_no_weight_are_neither_kept_nor_dropped():
    rows = np.eye(5, 6)
    found = vm.duplicates(rows, counts=[3, 1, 1, 0, 2])
    assert found.kept.tolist() == [0, 1, 2, 4]
    assert len(found.redundant) == 0
    assert found.labels.tolist() == [0, -1, -1, -1, 1]
    assert float(found.without) == pytest.approx(vm.score(rows[found.kept]))
