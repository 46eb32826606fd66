"""The paper's theorem of properties (Friedman and Dieng 2023, section 3.2 and appendix A), on every path.

A collection is an array `rows` of small whole numbers, in which equal and dependent rows are common. Each path views
the same rows through another kernel and another solver: what the theorem says of a collection is checked on all of
them.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.linalg import logm
from scipy.spatial.distance import cdist

import vendimeter as vm
from vendimeter.kernels import RBF, Cosine, FromFunction, Jaccard, Laplacian, Match, NGram, Precomputed

INF = math.inf
ORDERS = (0, 0.25, 0.5, 0.9, 1, 1.5, 2, 3, 7.5, INF)
EXAMPLES = settings(max_examples=15, deadline=None)
WIDTH = 3

# ------------------------------------------------------------------------------------------------------------ paths


class Path(NamedTuple):
    """How rows become samples and a kernel, and rows of `count` mutually dissimilar items on this path."""

    view: Callable[[np.ndarray], tuple[Any, Any]]
    dissimilar: Callable[[int], tuple[Any, Any]]


def _nonzero(rows):
    """Feature rows that are never 0, of full column rank in general: (1, x, y, z, …)."""
    return np.hstack([np.ones((len(rows), 1)), rows])


def _wide(rows):
    """More columns than there are rows."""
    angles = rows @ np.random.default_rng(0).integers(1, 5, size=(rows.shape[1], 40))
    return np.hstack([np.cos(angles / 5), np.sin(angles / 5)])


def _hats(rows):
    """Π max(0, 1 − |a − b|/2): positive semidefinite, and 0 for rows that are far apart."""
    gaps = np.abs(rows[:, None, :] - rows[None, :, :])
    return np.maximum(0, 1 - gaps / 2).prod(axis=2)


def _gaussian(rows):
    return np.exp(-cdist(rows, rows, "sqeuclidean") / 2)


def _similarity_of_two(a, b):
    return math.exp(-0.7 * sum(abs(float(x) - float(y)) for x, y in zip(a, b, strict=True)))


def _similarity_of_blocks(A, B):
    return np.exp(-0.7 * cdist(A, B, "cityblock"))


def _texts(rows):
    words = ["a", "small", "dog", "runs", "to", "the", "sea"]
    return [" ".join(words[int(value) + 3] for value in row) for row in rows]


def _one_hot(n, width=None):
    """Mutually orthogonal rows of different lengths."""
    return (1.0 + np.arange(n))[:, None] * np.eye(n, width)


def _far_apart(n, width):
    return 1000.0 * np.arange(n)[:, None] + np.zeros((n, width))


PATHS = {
    "features, d < n": Path(
        lambda rows: (_nonzero(rows)[:, :3], Cosine()), lambda n: (_one_hot(n, n + (n == 1)), Cosine())
    ),
    "features, n < d": Path(lambda rows: (_wide(rows), Cosine()), lambda n: (_one_hot(n, n + 5), Cosine())),
    "float32 features": Path(
        lambda rows: (_nonzero(rows).astype(np.float32), Cosine()),
        lambda n: (_one_hot(n, n + 1).astype(np.float32), Cosine()),
    ),
    "sparse features, d < n": Path(
        lambda rows: (sparse.csr_array(_nonzero(rows)), Cosine()),
        lambda n: (sparse.csr_array(_one_hot(n, n + (n == 1))), Cosine()),
    ),
    "sparse features, n < d": Path(
        lambda rows: (sparse.csr_array(np.where(_wide(rows) > 0.3, _wide(rows), 0.0) + _last(80)), Cosine()),
        lambda n: (sparse.csr_array(_one_hot(n, n + 5)), Cosine()),
    ),
    "dense K": Path(lambda rows: (_gaussian(rows), "precomputed"), lambda n: (np.eye(n), "precomputed")),
    "sparse K": Path(
        lambda rows: (sparse.csr_array(_hats(rows)), "precomputed"),
        lambda n: (sparse.eye_array(n).tocsr(), "precomputed"),
    ),
    "rbf": Path(lambda rows: (rows, RBF(1.5)), lambda n: (_far_apart(n, 1), RBF(1.0))),
    "wide rbf": Path(lambda rows: (np.tile(rows, 12), RBF(4.0)), lambda n: (_far_apart(n, 40), RBF(1.0))),
    "laplacian": Path(lambda rows: (rows, Laplacian(2.0)), lambda n: (_far_apart(n, 2), Laplacian(1.0))),
    "function": Path(
        lambda rows: (rows.tolist(), _similarity_of_two),
        lambda n: (list(range(n)), lambda a, b: float(a == b)),
    ),
    "function of blocks": Path(
        lambda rows: (rows, FromFunction(_similarity_of_blocks, block=True)),
        lambda n: (_far_apart(n, 2), FromFunction(_similarity_of_blocks, block=True)),
    ),
    "jaccard": Path(
        lambda rows: (rows + 7, Jaccard()), lambda n: ([{i, -i - 1} for i in range(n)], Jaccard())
    ),
    "match": Path(lambda rows: (_texts(rows), Match()), lambda n: ([f"item {i}" for i in range(n)], "match")),
    "match, fraction": Path(
        lambda rows: ([tuple(row) for row in rows.tolist()], Match(fraction=True)),
        lambda n: ([(i, str(i), -i) for i in range(n)], Match(fraction=True)),
    ),
    "ngram": Path(
        lambda rows: (_texts(rows), NGram(1, 2)), lambda n: ([chr(97 + i) * 3 for i in range(n)], NGram())
    ),
    "sum of kernels": Path(
        lambda rows: (rows, 0.5 * RBF(1.0) + 0.5 * Laplacian(3.0)),
        lambda n: (_far_apart(n, 2), 0.5 * RBF(1.0) + 0.5 * Laplacian(1.0)),
    ),
    "product of kernels": Path(
        lambda rows: (_nonzero(rows), Cosine() * RBF(3.0)),
        lambda n: (_one_hot(n, n + 1), Cosine() * Cosine()),
    ),
}


def _last(width):
    """A row with a single 1, in the last column: added, it keeps every row from being 0."""
    return np.eye(1, width, width - 1)


every_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
every_order = pytest.mark.parametrize("q", ORDERS)


def rows_of(minimum=1, maximum=9):
    whole = st.integers(-3, 3).map(float)
    return st.integers(minimum, maximum).flatmap(lambda n: arrays(np.float64, (n, WIDTH), elements=whole))


def weights_of(n):
    """Probabilities of n items, some of them 0."""
    parts = st.lists(st.integers(0, 20), min_size=n, max_size=n).filter(any)
    return parts.map(lambda numbers: np.array(numbers, dtype=float) / sum(numbers))


def profile(view, **options):
    samples, kernel = view
    return vm.score(samples, kernel, q=ORDERS, **options)


def assert_same(first, second):
    """Two computations of one thing: within 1e-9 of each other, and with bounds that have a point in common.

    Below order 1 a score depends on eigenvalues that rounding can reach: there the two may differ by as much as their
    bounds say.
    """
    assert list(first) == list(second)
    for q in first:
        a, b = first[q], second[q]
        blur = a.half_width + b.half_width if q < 1 else 0.0
        assert abs(a - b) <= 1e-9 * max(a, b) + blur, q
        assert max(a.bounds[0], b.bounds[0]) <= min(a.bounds[1], b.bounds[1]), q


def hill_number(p, q):
    """The definition, for probabilities."""
    p = np.asarray(p, dtype=float)
    p = p[p > 0]
    if q == 1:
        return math.exp(-float(np.sum(p * np.log(p))))
    if math.isinf(q):
        return 1 / float(p.max())
    return float(np.sum(p**q)) ** (1 / (1 - q))


# ------------------------------------------------------------------------------------------------- effective number


@every_path
@EXAMPLES
@given(n=st.integers(1, 12))
def test_dissimilar_items_score_their_number(path, n):
    for q, score in profile(path.dissimilar(n)).items():
        assert score == pytest.approx(n, rel=1e-12), q
        assert score.bounds[0] <= n <= score.bounds[1]


@every_path
@EXAMPLES
@given(row=rows_of(1, 1), n=st.integers(1, 12))
def test_copies_of_one_item_score_one(path, row, n):
    for q, score in profile(path.view(np.repeat(row, n, axis=0))).items():
        assert score == pytest.approx(1, rel=1e-12), q
        assert score.bounds[0] <= 1 <= score.bounds[1]


@every_path
@EXAMPLES
@given(modes=st.integers(1, 5), copies=st.integers(1, 4))
def test_doubling_the_number_of_modes_doubles_the_score(path, modes, copies):
    def of(count):
        return profile(path.dissimilar(count), counts=[copies] * count)

    few, many = of(modes), of(2 * modes)
    for q in ORDERS:
        assert many[q] == pytest.approx(2 * few[q], rel=1e-12)


@EXAMPLES
@given(rows=rows_of(2, 6), q=st.sampled_from(ORDERS))
def test_a_dissimilar_second_collection_of_the_same_spectrum_doubles_the_score(rows, q):
    X = _nonzero(rows)
    both = np.block([[X, np.zeros_like(X)], [np.zeros_like(X), 2 * X]])
    one, two = vm.score(X, Cosine(), q=q), vm.score(both, Cosine(), q=q)
    blur = 2 * one.half_width + two.half_width if q < 1 else 0.0
    assert two == pytest.approx(2 * one, rel=1e-9, abs=blur)


# ------------------------------------------------------------------------------------------------ identical elements


@every_path
@EXAMPLES
@given(data=st.data())
def test_copies_merged_into_weights_change_nothing(path, data):
    rows = data.draw(rows_of(1, 6))
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=12))
    p = data.draw(weights_of(len(chosen)))
    merged = np.bincount(chosen, weights=p, minlength=len(rows))
    assert_same(profile(path.view(rows[chosen]), weights=p), profile(path.view(rows), weights=merged))


@every_path
@EXAMPLES
@given(data=st.data())
def test_weight_may_move_between_identical_items(path, data):
    rows = data.draw(rows_of(2, 8))
    i, j = data.draw(st.permutations(range(len(rows))))[:2]
    rows[j] = rows[i]
    p = data.draw(weights_of(len(rows)))
    moved = p.copy()
    moved[i], moved[j] = p[i] + p[j], 0.0
    assert_same(profile(path.view(rows), weights=p), profile(path.view(rows), weights=moved))


@every_path
@EXAMPLES
@given(data=st.data())
def test_counts_equal_repetition(path, data):
    rows = data.draw(rows_of(1, 6))
    counts = data.draw(st.lists(st.integers(0, 4), min_size=len(rows), max_size=len(rows)).filter(any))
    counted = profile(path.view(rows), counts=counts)
    repeated = profile(path.view(np.repeat(rows, counts, axis=0)))
    assert_same(counted, repeated)
    assert counted[1].n == repeated[1].n == sum(counts)


@every_path
@EXAMPLES
@given(rows=rows_of(), times=st.integers(2, 4))
def test_repeating_the_whole_collection_changes_nothing(path, rows, times):
    assert_same(profile(path.view(rows)), profile(path.view(np.tile(rows, (times, 1)))))


# ------------------------------------------------------------------------------------------------------ partitioning


def _features_apart(parts):
    """Each part has columns of its own."""
    blocks = [_nonzero(part) for part in parts]
    width = blocks[0].shape[1]
    whole = np.zeros((sum(map(len, blocks)), width * len(blocks)))
    start = 0
    for i, block in enumerate(blocks):
        whole[start : start + len(block), i * width : (i + 1) * width] = block
        start += len(block)
    return whole


def _matrix_apart(parts):
    return sparse.block_diag([_gaussian(part) for part in parts], format="csr")


def _rows_apart(parts, distance=1e4):
    return np.vstack([part + distance * i for i, part in enumerate(parts)])


def _tagged(parts):
    return [(i, *row) for i, part in enumerate(parts) for row in part.tolist()]


def _tagged_similarity(a, b):
    return _similarity_of_two(a[1:], b[1:]) if a[0] == b[0] else 0.0


PARTITIONS = {
    "features": (_features_apart, Cosine()),
    "sparse features": (lambda parts: sparse.csr_array(_features_apart(parts)), Cosine()),
    "dense K": (lambda parts: _matrix_apart(parts).toarray(), "precomputed"),
    "sparse K": (_matrix_apart, "precomputed"),
    "rbf": (_rows_apart, RBF(1.5)),
    "wide rbf": (lambda parts: np.tile(_rows_apart(parts, 25.0), 12), RBF(4.0)),
    "laplacian": (_rows_apart, Laplacian(2.0)),
    "function": (_tagged, _tagged_similarity),
}


def expected_of_partition(shares, scores, q):
    """The score of the whole from those of parts without similarity between them."""
    if q == 1:
        return math.exp(
            sum(pi * (math.log(score) - math.log(pi)) for pi, score in zip(shares, scores, strict=True))
        )
    if math.isinf(q):
        return min(score / pi for pi, score in zip(shares, scores, strict=True))
    powers = sum(pi**q * score ** (1 - q) for pi, score in zip(shares, scores, strict=True))
    return powers ** (1 / (1 - q))


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("weighted", [False, True], ids=["uniform", "weighted"])
@EXAMPLES
@given(data=st.data())
def test_score_of_dissimilar_parts_follows_from_their_scores_and_shares(name, weighted, data):
    build, kernel = PARTITIONS[name]
    parts = data.draw(st.lists(rows_of(1, 5), min_size=1, max_size=4))
    n = sum(map(len, parts))
    if weighted:
        p = data.draw(
            st.lists(st.integers(1, 20), min_size=n, max_size=n).map(lambda x: np.array(x) / sum(x))
        )
    else:
        p = np.full(n, 1 / n)
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    places = [slice(start, stop) for start, stop in itertools.pairwise(starts)]
    shares = [float(p[place].sum()) for place in places]
    whole = vm.score(build(parts), kernel, q=ORDERS, weights=p if weighted else None)
    each = [
        vm.score(build([part]), kernel, q=ORDERS, weights=p[place] / share if weighted else None)
        for part, place, share in zip(parts, places, shares, strict=True)
    ]
    for q in ORDERS:
        expected = expected_of_partition(shares, [float(profile[q]) for profile in each], q)
        blur = whole[q].half_width + sum(profile[q].half_width for profile in each) if q < 1 else 0.0
        assert whole[q] == pytest.approx(expected, rel=1e-9, abs=len(parts) * blur)


# ---------------------------------------------------------------------------------------------------------- symmetry


@every_path
@EXAMPLES
@given(data=st.data())
def test_order_of_the_items_does_not_matter(path, data):
    rows = data.draw(rows_of(2, 9))
    order = data.draw(st.permutations(range(len(rows))))
    assert_same(profile(path.view(rows)), profile(path.view(rows[order])))
    p = data.draw(weights_of(len(rows)))
    assert_same(profile(path.view(rows), weights=p), profile(path.view(rows[order]), weights=p[order]))


@EXAMPLES
@given(data=st.data())
def test_order_of_rows_and_columns_of_a_matrix_does_not_matter(data):
    rows = data.draw(rows_of(2, 9))
    order = data.draw(st.permutations(range(len(rows))))
    K = _gaussian(rows)
    shuffled = K[np.ix_(order, order)]
    assert_same(profile((K, "precomputed")), profile((shuffled, "precomputed")))
    assert_same(profile((K, "precomputed")), profile((sparse.csc_array(shuffled), "precomputed")))


# ------------------------------------------------------------------------------------ definitions and their equals


@EXAMPLES
@given(data=st.data())
def test_score_is_the_exponential_of_the_von_neumann_entropy(data):
    rows = data.draw(rows_of(1, 8))
    n = len(rows)
    K = 0.7 * _gaussian(rows) + 0.3 * np.eye(n)  # full rank, for the logarithm
    p = data.draw(st.none() | weights_of(n).filter(lambda p: p.min() > 0))
    roots = np.sqrt(np.full(n, 1 / n) if p is None else p)
    rho = roots[:, None] * K * roots
    expected = math.exp(-float(np.trace(rho @ logm(rho)).real))
    assert vm.score(K, "precomputed", weights=p) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@EXAMPLES
@given(data=st.data())
def test_dissimilar_items_with_weights_score_the_hill_number_of_the_weights(container, data):
    n = data.draw(st.integers(1, 12))
    p = data.draw(weights_of(n))
    for q, score in profile((container(np.eye(n)), "precomputed"), weights=p).items():
        assert score == pytest.approx(hill_number(p, q), rel=1e-9), q


@every_path
@EXAMPLES
@given(data=st.data())
def test_dissimilar_items_with_weights_score_the_hill_number_on_every_path(path, data):
    n = data.draw(st.integers(1, 10))
    p = data.draw(weights_of(n))
    for q, score in profile(path.dissimilar(n), weights=p).items():
        assert score == pytest.approx(hill_number(p, q), rel=1e-9), q


@EXAMPLES
@given(data=st.data())
def test_features_and_their_explicit_matrix_score_the_same(data):
    rows = data.draw(rows_of(1, 9))
    X = _nonzero(rows) if data.draw(st.booleans(), label="narrow") else _wide(rows)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    K = unit @ unit.T
    p = data.draw(st.none() | weights_of(len(rows)))
    dual, primal = profile((X, Cosine()), weights=p), profile((K, Precomputed()), weights=p)
    assert_same(dual, primal)
    assert_same(dual, profile((sparse.csr_array(X), Cosine()), weights=p))


PAIRS_OF_PATHS = {
    "rbf, matrix": (lambda rows: (rows, RBF(1.0)), lambda rows: (_gaussian(rows), "precomputed")),
    "rbf, wide rbf": (
        lambda rows: (rows, RBF(1.0)),
        lambda rows: (np.tile(rows, 12), RBF(math.sqrt(12))),
    ),
    "laplacian, function": (
        lambda rows: (rows, Laplacian(1 / 0.7)),
        lambda rows: (rows.tolist(), _similarity_of_two),
    ),
    "function, function of blocks": (
        lambda rows: (rows.tolist(), _similarity_of_two),
        lambda rows: (rows, FromFunction(_similarity_of_blocks, block=True)),
    ),
    "dense K, sparse K": (
        lambda rows: (_hats(rows), "precomputed"),
        lambda rows: (sparse.csr_array(_hats(rows)), "precomputed"),
    ),
    "features, features turned": (
        lambda rows: (_nonzero(rows), Cosine()),
        lambda rows: (3 * np.hstack([_nonzero(rows), np.zeros((len(rows), 30))]) @ _turn(34), Cosine()),
    ),
    "match, function": (
        lambda rows: ([tuple(row) for row in rows.tolist()], Match()),
        lambda rows: ([tuple(row) for row in rows.tolist()], lambda a, b: float(a == b)),
    ),
    "match fraction, function": (
        lambda rows: ([tuple(row) for row in rows.tolist()], Match(fraction=True)),
        lambda rows: (rows, FromFunction(lambda A, B: (A[:, None] == B[None]).mean(axis=2), block=True)),
    ),
    "float64 and float32 rows of whole numbers": (
        lambda rows: (_nonzero(rows), Cosine()),
        lambda rows: (_nonzero(rows).astype(np.float32), Cosine()),
    ),
}


def _turn(size):
    """A fixed rotation."""
    return np.linalg.qr(np.random.default_rng(1).standard_normal((size, size)))[0]


@pytest.mark.parametrize("pair", PAIRS_OF_PATHS.values(), ids=PAIRS_OF_PATHS.keys())
@EXAMPLES
@given(data=st.data())
def test_two_paths_to_one_collection_agree_and_their_bounds_intersect(pair, data):
    rows = data.draw(rows_of())
    p = data.draw(st.none() | weights_of(len(rows)))
    first, second = (view(rows) for view in pair)
    assert_same(profile(first, weights=p), profile(second, weights=p))


@settings(max_examples=50, deadline=None)
@given(rows=rows_of(5, 12), q=st.sampled_from([q for q in ORDERS if q >= 1]))
def test_bounds_of_float32_and_float64_products_intersect(rows, q):
    X = _nonzero(rows)
    single, double = (vm.score(X, Cosine(), q=q, precision=one) for one in ("float32", "float64"))
    assert single.level == "probabilistic"
    assert double.level == "deterministic"
    assert max(single.bounds[0], double.bounds[0]) <= min(single.bounds[1], double.bounds[1])
    assert single == pytest.approx(float(double), rel=1e-4)


# ------------------------------------------------------------------------------------------------ range and the orders


@every_path
@EXAMPLES
@given(data=st.data())
def test_score_lies_within_its_bounds_and_between_one_and_the_number_of_items(path, data):
    rows = data.draw(rows_of())
    p = data.draw(st.none() | weights_of(len(rows)))
    distinct = len(np.unique(rows[p > 0] if p is not None else rows, axis=0))
    for q, score in profile(path.view(rows), weights=p).items():
        assert 1 <= score.bounds[0] <= score <= score.bounds[1] <= len(rows), q
        assert score <= distinct * (1 + 1e-9) + (score.half_width if q < 1 else 0), q


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@EXAMPLES
@given(rows=rows_of(1, 12))
def test_score_is_at_most_the_number_of_columns(container, rows):
    for score in profile((container(_nonzero(rows)), Cosine())).values():
        assert 1 <= score <= min(len(rows), WIDTH + 1)
        assert score.bounds[1] <= min(len(rows), WIDTH + 1)


@every_path
@EXAMPLES
@given(data=st.data())
def test_score_does_not_rise_with_the_order(path, data):
    rows = data.draw(rows_of())
    p = data.draw(st.none() | weights_of(len(rows)))
    scores = profile(path.view(rows), weights=p).scores
    assert (np.diff(scores) <= 1e-9 * scores[:-1]).all()


@EXAMPLES
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 20),
    rank=st.integers(1, 4),
    orders=st.lists(st.floats(0.01, 50), min_size=2, max_size=6, unique=True),
)
def test_score_of_rank_deficient_features_does_not_rise_with_the_order(seed, n, rank, orders):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, 6))
    profile = vm.score(X, Cosine(), q=[0, *sorted(orders), INF])
    assert (np.diff(profile.scores) <= 1e-9 * profile.scores[:-1]).all()
    assert profile[0] == min(n, rank)


@EXAMPLES
@given(rows=rows_of(2, 9))
def test_each_order_alone_scores_as_in_a_profile(rows):
    whole = profile((rows, RBF(1.5)))
    alone = {q: vm.score(rows, RBF(1.5), q=q) for q in ORDERS}
    assert_same(whole, alone)


# ------------------------------------------------------------------------------------------------------------- groups


def assert_groups_match(groups, parts, view, **options):
    """Each group scores as it would by itself; `parts` maps labels to what `view` takes, an empty one to NaN."""
    assert set(groups.labels) == set(parts)
    for label, part in parts.items():
        if part is None:
            assert all(math.isnan(score) for score in groups[label].values())
            assert {score.level for score in groups[label].values()} == {"none"}
        else:
            weights = options.get(label)
            assert_same(groups[label], profile(view(part), weights=weights))


def pick(samples, places):
    if isinstance(samples, list):
        return [samples[i] for i in places]
    return samples[places]


MATRICES = {"dense K", "sparse K"}  # groups of these are parts of one matrix, not collections of their own


def score_by(path, rows, **options):
    samples, kernel = path.view(rows)
    return vm.score_groups(samples, kernel, q=ORDERS, **options)


@every_path
@EXAMPLES
@given(data=st.data())
def test_groups_by_label_score_as_each_would_alone(path, data):
    rows = data.draw(rows_of(1, 14))
    labels = data.draw(st.lists(st.sampled_from("abcd"), min_size=len(rows), max_size=len(rows)))
    groups = score_by(path, rows, by=labels)
    parts = {label: rows[[one == label for one in labels]] for label in labels}
    assert_groups_match(groups, parts, path.view)
    assert groups.labels == list(dict.fromkeys(labels))
    assert groups.sizes.tolist() == [len(parts[label]) for label in groups.labels]


@every_path
@EXAMPLES
@given(data=st.data())
def test_overlapping_groups_score_as_each_would_alone(path, data):
    rows = data.draw(rows_of(1, 10))
    sets = st.sets(st.sampled_from("abc"))
    labels = data.draw(st.lists(sets, min_size=len(rows), max_size=len(rows)).filter(any))
    groups = score_by(path, rows, by=labels)
    parts = {label: rows[[label in one for one in labels]] for label in set().union(*labels)}
    assert_groups_match(groups, parts, path.view)


@every_path
@EXAMPLES
@given(data=st.data())
def test_weighted_groups_score_as_each_would_alone(path, data):
    rows = data.draw(rows_of(1, 12))
    labels = data.draw(st.lists(st.sampled_from("abc"), min_size=len(rows), max_size=len(rows)))
    p = data.draw(weights_of(len(rows)))
    groups = score_by(path, rows, by=labels, weights=p)
    parts, weights = {}, {}
    for label in labels:
        inside = np.array([one == label for one in labels])
        total = p[inside].sum()
        parts[label] = rows[inside] if total > 0 else None
        weights[label] = p[inside] / total if total > 0 else None
    assert_groups_match(groups, parts, path.view, **weights)


@every_path
@EXAMPLES
@given(data=st.data())
def test_groups_with_counts_score_as_repeated_items(path, data):
    rows = data.draw(rows_of(1, 8))
    labels = data.draw(st.lists(st.sampled_from("ab"), min_size=len(rows), max_size=len(rows)))
    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    groups = score_by(path, rows, by=labels, counts=counts)
    repeated = {
        label: np.repeat(rows, counts * np.array([one == label for one in labels]), axis=0)
        for label in labels
    }
    assert_groups_match(
        groups, {label: part if len(part) else None for label, part in repeated.items()}, path.view
    )
    assert groups.sizes.tolist() == [len(repeated[label]) for label in groups.labels]


@every_path
@EXAMPLES
@given(data=st.data())
def test_rows_of_weights_over_one_collection_score_as_each_would_alone(path, data):
    rows = data.draw(rows_of(1, 8))
    table = data.draw(st.lists(weights_of(len(rows)) | st.just(np.zeros(len(rows))), min_size=1, max_size=4))
    groups = score_by(path, rows, weights=np.array(table))
    parts = {g: rows if p.any() else None for g, p in enumerate(table)}
    assert groups.labels == list(range(len(table)))
    for g, p in enumerate(table):
        if parts[g] is None:
            assert math.isnan(groups[g][1])
            assert groups[g][1].level == "none"
        else:
            assert_same(groups[g], profile(path.view(rows), weights=p))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rows_of_rounded_weights_are_taken_as_a_single_one_is(dtype):
    p = np.random.default_rng(0).random((2, 300))
    p = (p / p.sum(axis=1, keepdims=True)).astype(dtype)
    K = np.eye(300)
    groups = vm.score_groups(K, "precomputed", weights=p)
    for g in range(2):
        assert groups[g] == pytest.approx(float(vm.score(K, "precomputed", weights=p[g])), rel=1e-12)


SEPARATE = {name: path for name, path in PATHS.items() if name not in MATRICES}


@pytest.mark.parametrize("path", SEPARATE.values(), ids=SEPARATE.keys())
@EXAMPLES
@given(data=st.data())
def test_mappings_and_lists_of_groups_score_as_each_would_alone(path, data):
    parts = data.draw(st.lists(rows_of(1, 6), min_size=1, max_size=4))
    names = [f"group {i}" for i in range(len(parts))]
    samples = [path.view(part)[0] for part in parts]
    kernel = path.view(parts[0])[1]
    mapping = vm.score_groups(dict(zip(names, samples, strict=True)), kernel, q=ORDERS)
    assert_groups_match(mapping, dict(zip(names, parts, strict=True)), path.view)
    listed = vm.score_groups(samples, kernel, q=ORDERS)
    assert_groups_match(listed, dict(enumerate(parts)), path.view)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@EXAMPLES
@given(parts=st.lists(rows_of(1, 6), min_size=1, max_size=4))
def test_one_matrix_a_group_scores_as_each_would_alone(container, parts):
    matrices = {f"group {i}": container(_hats(part)) for i, part in enumerate(parts)}
    groups = vm.score_groups(matrices, "precomputed", q=ORDERS)
    assert_groups_match(groups, matrices, lambda matrix: (matrix, "precomputed"))


@EXAMPLES
@given(parts=st.lists(rows_of(1, 5) | st.just(np.zeros((0, WIDTH))), min_size=1, max_size=5))
def test_empty_groups_of_a_list_are_not_a_number(parts):
    assume(any(len(part) for part in parts))
    groups = vm.score_groups(parts, RBF(1.5), q=ORDERS)
    expected = {i: part if len(part) else None for i, part in enumerate(parts)}
    assert_groups_match(groups, expected, lambda part: (part, RBF(1.5)))
    assert groups.sizes.tolist() == [len(part) for part in parts]


UNEQUAL = (1, 2, 1, 129, 128, 5, 300, 1)  # up to 128 items a group is solved in a batch, beyond by itself


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
@pytest.mark.parametrize("weighted", [False, True], ids=["uniform", "weighted"])
def test_very_unequal_groups_score_as_each_would_alone(path, weighted):
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(len(UNEQUAL)), UNEQUAL)
    rng.shuffle(labels)
    rows = rng.integers(-3, 4, size=(len(labels), WIDTH)).astype(float)
    raw = rng.integers(1, 9, size=len(labels)).astype(float)
    groups = score_by(path, rows, by=labels, weights=raw / raw.sum() if weighted else None)
    for label in range(len(UNEQUAL)):
        inside = labels == label
        alone = profile(
            path.view(rows[inside]), weights=raw[inside] / raw[inside].sum() if weighted else None
        )
        assert groups[label][1].n == UNEQUAL[label]
        assert_same(groups[label], alone)


def test_fitted_parameters_of_a_kernel_are_those_of_all_items_together():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 2)) * rng.choice([0.1, 10.0], size=(40, 1))
    labels = rng.integers(3, size=40)
    sigma = float(np.median(cdist(X, X)[np.triu_indices(40, 1)]))
    groups = vm.score_groups(X, "rbf", by=labels, q=ORDERS)
    for label in set(labels.tolist()):
        assert_same(groups[label], profile((X[labels == label], RBF(sigma))))
