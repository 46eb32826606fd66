"""Eigenvectors: coordinates of the items reproduce similarities, eigenvalues and scores, for every kind of them."""

from __future__ import annotations

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.data.devices import to_host
from vendimeter.errors import TooLargeError
from vendimeter.kernels import RBF, Jaccard, Match, NGram, Precomputed, as_kernel
from vendimeter.solvers.eigenvectors import decompose


def rows(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


TEXTS = ["a b c", "a b d", "a b c", "e f g h", "e f", "x", "x", "a"]
BITS = np.random.default_rng(1).random((30, 20)) < 0.3
BITS[:, 0] = True
CASES = {
    "dense, wide": (rows(12, 40), "cosine"),
    "dense, narrow": (rows(60, 7), "cosine"),
    "fewer directions than columns": (rows(40, 3) @ rows(3, 9), "cosine"),
    "sparse, wide": (TEXTS, NGram(1, 2)),
    "sparse, narrow": (list("aabbbcccdddd"), Match()),
    "pairwise": (rows(25, 3), RBF(1.0)),
    "copies": (np.repeat(rows(6, 3), 4, axis=0), RBF(1.0)),
    "bits": (BITS, Jaccard()),
    "matrix": (np.corrcoef(rows(15, 30)), Precomputed()),
    "function": ([1.0, 2.0, 2.5, 7.0], lambda a, b: float(np.exp(-abs(a - b)))),
}


def weights_of(n, how):
    if how == "uniform":
        return None
    weights = np.random.default_rng(5).random(n) + 0.1
    if how == "some are 0":
        weights[[0, n // 2]] = 0.0
    return weights / weights.sum()


@pytest.mark.parametrize("how", ["uniform", "weights", "some are 0"])
@pytest.mark.parametrize("name", CASES)
def test_coordinates_are_those_of_the_items_in_the_eigenbasis(name, how):
    samples, kernel = CASES[name]
    similarity = as_kernel(kernel).similarity(samples)
    n = similarity.n
    weights = weights_of(n, how)
    found = decompose(similarity, weights)
    y = np.concatenate([to_host(found.coordinates(part)) for part in found.parts()])
    p = np.full(n, 1 / n) if weights is None else weights
    np.testing.assert_allclose((y**2).T @ p, found.values, atol=1e-13)
    np.testing.assert_allclose((y * p[:, None]).T @ y, np.diag(found.values), atol=1e-13)
    present = np.flatnonzero(p)
    K = as_kernel(kernel).similarity(samples).dense()
    np.testing.assert_allclose(y[present] @ y[present].T, K[np.ix_(present, present)], atol=1e-10)
    # An item without weight is projected onto what the others span: its similarities with them stay.
    np.testing.assert_allclose(y @ y[present].T, K[:, present], atol=1e-7)
    expected = vm.score(samples, kernel, weights=weights, q=[1, 2])
    for q in (1, 2):
        assert found.solution.spectrum.score(q).value == pytest.approx(float(expected[q]), rel=1e-12)
    assert found.rank == round(vm.score(samples, kernel, weights=weights, q=0))


def test_negative_eigenvalues_are_dropped_where_that_is_asked_for():
    K = np.array([[1, 0.9, -0.2], [0.9, 1, 0.7], [-0.2, 0.7, 1]])
    found = decompose(Precomputed(project=True).similarity(K), None)
    y = found.coordinates(slice(None))
    np.testing.assert_allclose((y**2).mean(axis=0), found.values, atol=1e-14)
    assert found.values.sum() == pytest.approx(1)
    # With no weight an item is put among the others by its similarities with them.
    weights = np.array([0.5, 0.5, 0.0])
    part = decompose(Precomputed(project=True).similarity(K), weights)
    np.testing.assert_allclose(
        part.coordinates(slice(None)) @ part.coordinates(slice(0, 2)).T, K[:, :2], atol=1e-12
    )


@pytest.mark.parametrize("light", [1e-15, 1e-30, 1e-310])
def test_items_of_hardly_any_weight_have_coordinates_all_the_same(light):
    data = rows(20, 3)
    weights = np.ones(20)
    weights[[2, 7]] = light
    weights /= weights.sum()
    found = decompose(RBF(1.0).similarity(data), weights)
    y = found.coordinates(slice(None))
    K = RBF(1.0).similarity(data).dense()
    heavy = np.setdiff1d(np.arange(20), [2, 7])
    np.testing.assert_allclose(y[[2, 7]] @ y[heavy].T, K[np.ix_([2, 7], heavy)], atol=1e-9)


def test_arrays_of_every_library_give_the_same_coordinates(library):
    data = rows(40, 6)
    there = decompose(as_kernel("cosine").similarity(library.array(data)), None)
    here = decompose(as_kernel("cosine").similarity(data), None)
    np.testing.assert_allclose(there.values, here.values, rtol=1e-12)
    np.testing.assert_allclose(
        np.abs(to_host(there.coordinates(np.array([3, 1])))),
        np.abs(here.coordinates(np.array([3, 1]))),
        atol=1e-10,
    )
    pairwise = decompose(RBF(2.0).similarity(library.array(data)), np.r_[0.0, np.full(39, 1 / 39)])
    np.testing.assert_allclose(
        to_host(pairwise.coordinates(slice(None)))[1:] ** 2 @ np.ones(len(pairwise.values)), 1, atol=1e-10
    )


def test_a_matrix_that_is_too_large_is_refused_with_what_to_do():
    with pytest.raises(TooLargeError, match=r"30×30.*limit is 20×20.*RandomFeatures"):
        decompose(RBF(1.0).similarity(rows(30, 2)), None, most=20)
