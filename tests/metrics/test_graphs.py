"""Connected components and the Laplacian: by hand, against SciPy and networkx, tile by tile, on every array library."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import connected_components, laplacian

import vendimeter as vm
from vendimeter.errors import (
    AsymmetryError,
    DiagonalError,
    EmptyError,
    InputError,
    MatrixError,
    TooLargeError,
    UnansweredError,
)
from vendimeter.kernels import RBF, FromFunction, Precomputed
from vendimeter.metrics import graphs
from vendimeter.metrics.graphs import components
from vendimeter.solvers import edges


def similarities(n, seed=0, width=3):
    rows = np.random.default_rng(seed).standard_normal((n, width))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def written_out(K, threshold):
    """W of the definition, all of it."""
    weights = np.where(threshold <= K, K, 0.0)
    np.fill_diagonal(weights, 0)
    return weights


def clusters(sizes, seed=0, spread=0.05, width=6):
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [rng.standard_normal(width) + spread * rng.standard_normal((n, width)) for n in sizes]
    )


# -------------------------------------------------------------------------------------------------------- components


def test_a_chain_joins_what_is_not_similar():
    K = np.eye(5)
    for i, j in [(0, 2), (2, 4), (1, 3)]:
        K[i, j] = K[j, i] = 0.5
    result = components(K, "precomputed", threshold=0.5, eigenvalues=0)
    assert result == 2
    assert result.labels.tolist() == [0, 1, 0, 1, 0]
    assert result.sizes.tolist() == [3, 2]
    assert result.clusters is None
    assert math.isnan(result.eigengap)
    assert len(result.laplacian) == 0
    assert components(K, "precomputed", threshold=0.51, eigenvalues=0) == 5


@settings(max_examples=60)
@given(st.integers(1, 25), st.floats(0.05, 1), st.integers(0, 50), st.integers(1, 30))
def test_against_the_matrix_written_out(n, threshold, seed, tile):
    K = similarities(n, seed)
    before = K.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges, "TILE", tile)
        result = components(K, Precomputed(), threshold=threshold, eigenvalues=n)
    weights = written_out(K, threshold)
    count, label = connected_components(weights > 0)
    assert result == count
    assert np.array_equal(result.labels, label)  # SciPy too numbers them by their first items
    assert np.array_equal(result.sizes, np.bincount(label))
    expected = np.linalg.eigvalsh(laplacian(weights, normed=True))
    np.testing.assert_allclose(result.laplacian, expected, atol=1e-13)
    assert np.count_nonzero(result.laplacian == 0) >= count
    assert (result.laplacian[count:] > 1e-12).all()
    assert np.array_equal(K, before)


@pytest.mark.parametrize("tile", [1, 3, 7, 64])
def test_tiles_change_nothing(tile, monkeypatch):
    rows = clusters([20, 13, 31])
    expected = components(rows, threshold=0.9)
    monkeypatch.setattr(edges, "TILE", tile)
    result = components(rows, threshold=0.9)
    assert result.labels.tolist() == expected.labels.tolist()
    np.testing.assert_allclose(result.laplacian, expected.laplacian, atol=1e-14)


def test_networkx_agrees():
    nx = pytest.importorskip("networkx")
    K = similarities(60, 4)
    graph = nx.from_numpy_array(written_out(K, 0.93))
    result = components(K, "precomputed", threshold=0.93, eigenvalues=60)
    assert result == nx.number_connected_components(graph)
    np.testing.assert_allclose(result.laplacian, np.sort(nx.normalized_laplacian_spectrum(graph)), atol=1e-13)


def test_every_library(library):
    rows = clusters([12, 5, 8]).astype(np.float32)
    expected = components(rows, threshold=0.9, eigenvalues=4)
    assert expected == 3
    result = components(library.array(rows), threshold=0.9, eigenvalues=4)
    assert result.labels.tolist() == expected.labels.tolist()
    np.testing.assert_allclose(result.laplacian, expected.laplacian, atol=1e-13)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_sparse_matrices(make):
    K = np.where(similarities(40) > 0.9, similarities(40), 0)
    np.fill_diagonal(K, 1)
    dense, result = (components(given, "precomputed", threshold=0.95) for given in (K, make(K)))
    assert dense.labels.tolist() == result.labels.tolist()
    np.testing.assert_allclose(result.laplacian, dense.laplacian, atol=1e-13)
    # What is not stored is a similarity of 0, and joined where the threshold allows it.
    assert components(make(np.eye(3)), "precomputed", threshold=0, eigenvalues=0) == 1


def test_identical_items_are_joined_at_a_threshold_of_one():
    rows = np.random.default_rng(0).standard_normal((40, 7))
    doubled = np.concatenate([rows, rows * 3.7])
    result = components(doubled, threshold=1)
    assert result == 40
    assert result.labels.tolist() == [*range(40)] * 2
    assert result.clusters == 40
    texts = ["a b c", "d e f", "a b c"]
    assert components(texts, "ngram", threshold=1).labels.tolist() == [0, 1, 0]


def test_ties_meet_the_threshold():
    sets = [{1, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {11}]  # 3/10
    assert components(sets, "jaccard", threshold=0.3) == 2
    assert components(sets, "jaccard", threshold=0.3 + 1e-12) == 3


@pytest.mark.parametrize("n", [1, 2, 5])
def test_all_alike_or_all_apart(n):
    equal = components(np.ones((n, 3)), threshold=1)
    assert equal == equal.clusters == 1
    distinct = components(np.eye(n), Precomputed(), threshold=0.5)
    assert distinct == distinct.clusters == n
    assert distinct.laplacian.tolist() == [0.0] * n
    assert math.isnan(distinct.eigengap)
    if n > 1:
        np.testing.assert_allclose(equal.laplacian, [0] + [n / (n - 1)] * (n - 1))
        assert equal.eigengap == pytest.approx(n / (n - 1))


def test_a_function_of_the_users(monkeypatch):
    monkeypatch.setattr(edges, "TILE", 4)
    points = [0.0, 0.1, 0.2, 5.0, 5.1, 9.0, 9.05, 9.1, 9.2]
    result = components(points, lambda a, b: math.exp(-abs(a - b)), threshold=0.8)
    assert result.labels.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    double = FromFunction(lambda a, b: 2 * math.exp(-abs(a - b)), normalize=True)
    assert components(points, double, threshold=0.8).labels.tolist() == result.labels.tolist()
    # k(a, b) is 0.3 one way and 0.7 the other: 0.5 on average.
    skew = FromFunction(lambda a, b: 1.0 if a == b else 0.3 if a < b else 0.7, symmetrize=True)
    assert components(points, skew, threshold=0.5, eigenvalues=0) == 1
    assert components(points, skew, threshold=0.51, eigenvalues=0) == len(points)


@pytest.mark.parametrize("where", [(0, 1), (1, 7)])
def test_what_a_function_gives_is_checked(where, monkeypatch):
    monkeypatch.setattr(edges, "TILE", 4)
    i, j = where

    def broken(value, back):
        def k(a, b):
            if (a, b) == (i, j):
                return value
            return back if (b, a) == (i, j) else float(a == b)

        return FromFunction(k)

    with pytest.raises(AsymmetryError, match="not symmetric"):
        components([*range(8)], broken(0.5, 0.2), threshold=0.9)
    with pytest.raises(InputError, match="finite"):
        components([*range(8)], broken(math.nan, math.nan), threshold=0.9)
    with pytest.raises(MatrixError, match="similarity of 3 in size; expected no more than 1"):
        components([*range(8)], broken(3.0, 3.0), threshold=0.9)
    with pytest.raises(DiagonalError, match=r"k\[0, 0\] = 2"):
        components([*range(8)], lambda a, b: 2.0 * (a == b), threshold=0.9)


# -------------------------------------------------------------------------------------------------------- eigenvalues


def test_the_gap_counts_loose_clusters():
    # Three cliques of five, joined by single weak edges: one component, and three clusters.
    K = np.kron(np.eye(3), np.full((5, 5), 0.9)) + 0.1 * np.eye(15)
    for i, j in [(4, 5), (9, 10)]:
        K[i, j] = K[j, i] = 0.3
    result = components(K, "precomputed", threshold=0.2)
    assert result == 1
    assert result.clusters == 3
    assert result.laplacian[2] < 0.1 < 0.9 < result.laplacian[3]
    assert result.eigengap == result.laplacian[3] - result.laplacian[2]
    assert components(K, "precomputed", threshold=0.5) == 3


def test_large_components_are_solved_by_iteration(monkeypatch):
    """The same eigenvalues with their multiplicities, a 0 for each component, and the same on every call."""
    ring = np.kron(np.eye(8), np.full((12, 12), 0.9)) + 0.1 * np.eye(96)
    for block in range(8):
        i, j = 12 * block, (12 * block + 13) % 96
        ring[i, j] = ring[j, i] = 0.3
    K = np.block([[ring, np.zeros((96, 96))], [np.zeros((96, 96)), ring]])
    expected = components(K, "precomputed", threshold=0.2, eigenvalues=16)
    monkeypatch.setattr(graphs, "DENSE", 10)
    result = components(K, "precomputed", threshold=0.2, eigenvalues=16)
    again = components(K, "precomputed", threshold=0.2, eigenvalues=16)
    assert result == 2
    assert result.clusters == 16
    np.testing.assert_allclose(result.laplacian, expected.laplacian, atol=1e-12)
    assert np.array_equal(result.laplacian, again.laplacian)


def test_more_eigenvalues_than_a_component_allows(monkeypatch):
    monkeypatch.setattr(graphs, "DENSE", 10)
    monkeypatch.setattr(graphs, "MOST_DENSE", 20)
    with pytest.raises(TooLargeError, match="of a component of 30 items"):
        components(np.ones((30, 2)), threshold=0.5, eigenvalues=10)


def test_no_convergence_is_said(monkeypatch):
    from scipy.sparse import linalg

    def fails(*args, **options):
        raise linalg.ArpackNoConvergence("no", np.empty(0), np.empty(0))

    monkeypatch.setattr(graphs, "DENSE", 10)
    monkeypatch.setattr(linalg, "eigsh", fails)
    with pytest.raises(UnansweredError, match="did not converge"):
        components(np.ones((90, 2)), threshold=0.5)


def test_edges_take_what_memory_says(monkeypatch):
    monkeypatch.setattr(graphs, "DENSE", 10)
    for groups in (1, 2):
        rows = np.repeat(np.eye(groups, 3), 1200 // groups, axis=0)
        edge_count = groups * math.comb(1200 // groups, 2)
        components(rows[::300], threshold=0.5)  # imports
        tracemalloc.start()
        try:
            assert (
                components(rows, threshold=0.5, eigenvalues=2, memory=graphs.EDGE_BYTES * edge_count)
                == groups
            )
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < graphs.EDGE_BYTES * edge_count + 8 * 1024**2  # and a tile


def test_edges_are_limited_only_where_they_are_kept():
    rows = np.ones((100, 2))
    with pytest.raises(TooLargeError, match=r"more than 15 edges.*eigenvalues=0"):
        components(rows, threshold=0.5, memory=1000)
    assert components(rows, threshold=0.5, memory=1000, eigenvalues=0) == 1


# ---------------------------------------------------------------------------------------------------------- real data


def test_real_molecules(shared_data):
    pytest.importorskip("rdkit")
    import gzip

    with gzip.open(shared_data / "molecules" / "moses_test.csv.gz", "rt") as file:
        smiles = [line.partition(",")[0].strip() for line, _ in zip(file, range(151), strict=False)][1:]
    K = vm.kernels.Morgan().similarity(smiles).dense()
    result = components(smiles, "morgan", threshold=0.4)
    count, label = connected_components(written_out(K, 0.4) > 0)
    assert result == count > 50
    assert np.array_equal(result.labels, label)
    expected = np.linalg.eigvalsh(laplacian(written_out(K, 0.4), normed=True))
    np.testing.assert_allclose(result.laplacian, expected[: len(result.laplacian)], atol=1e-12)


# ------------------------------------------------------------------------------------------------- results and errors


def test_the_result():
    result = components([[1, 0], [2, 0], [0, 1]], threshold=0.9)
    assert isinstance(result, int)
    assert repr(result) == "Components(2, threshold=0.9, sizes=<2 values>, eigengap=2, clusters=2)"
    assert result.to_dict() == {
        "value": 2,
        "threshold": 0.9,
        "sizes": [2, 1],
        "labels": [0, 0, 1],
        "laplacian": [0.0, 0.0, 2.0],
        "eigengap": 2.0,
        "clusters": 2,
    }


ROWS = [[1.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize(("samples", "options", "message"), [
    (ROWS, {"threshold": 1.5}, r"threshold=1.5; expected a similarity, a number from -1 to 1"),
    (ROWS, {"threshold": math.nan}, "threshold=nan"),
    (ROWS, {"threshold": None}, "threshold=None"),
    (ROWS, {"threshold": True}, "threshold=True"),
    (ROWS, {"threshold": "0.5"}, "threshold='0.5'"),
    (ROWS, {"threshold": 0}, "threshold=0 also joins"),
    (ROWS, {"threshold": -0.5}, "eigenvalues=0 for the components alone"),
    (ROWS, {"threshold": 0.5, "eigenvalues": -1}, "eigenvalues=-1; expected a whole number from 0 up"),
    (ROWS, {"threshold": 0.5, "eigenvalues": 1.5}, "eigenvalues=1.5"),
    (ROWS, {"threshold": 0.5, "eigenvalues": None}, "eigenvalues=None"),
    (ROWS, {"threshold": 0.5, "memory": "lots"}, "memory='lots'"),
    (ROWS, {"threshold": 0.5, "rng": -1}, "rng=-1"),
    (ROWS, {"threshold": 0.5, "kernel": "cosin"}, "cosine"),
    ([[1.0, math.nan]], {"threshold": 0.5}, "nan"),
    (["a", "b"], {"threshold": 0.5}, "strings"),
    (np.eye(3), {"threshold": 0.5}, "precomputed"),
    ([1.0, 2.0], {"threshold": 0.5}, "shape"),
])  # fmt: skip
def test_what_cannot_be_used(samples, options, message):
    with pytest.raises(InputError, match=message):
        components(samples, **options)


def test_more_that_cannot_be_used():
    with pytest.raises(EmptyError):
        components([], threshold=0.5)
    with pytest.raises(TypeError, match="threshold"):
        components(ROWS)
    with pytest.raises(MatrixError, match=r"K\[0, 1\]"):
        components([[1, math.nan], [math.nan, 1]], "precomputed", threshold=0.5)
    with pytest.raises(AsymmetryError):
        components([[1, 0.5], [0.1, 1]], "precomputed", threshold=0.5)
    for make in (np.array, sparse.csr_array):
        with pytest.raises(MatrixError, match="similarity of 3 in size"):
            components(make([[1, 3], [3, 1]]), "precomputed", threshold=0.5)
    assert components(ROWS, threshold=-1, eigenvalues=0) == 1
    assert components([[0.0], [0.5], [9.0]], RBF(1.0), threshold=0.5) == 2
