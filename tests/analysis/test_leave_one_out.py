"""What the score is without one item: all orders against the eigenvalues of the others."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from vendimeter.analysis.decomposition.leave_one_out import removal
from vendimeter.spectrum.entropy import hill

ORDERS = [
    0,
    0.05,
    0.5,
    0.9,
    1 - 1e-9,
    1,
    1 + 1e-7,
    1.3,
    1.9,
    1.999,
    2,
    2.0001,
    2.5,
    3,
    4.7,
    7.99,
    8.01,
    11.3,
    16,
    17,
]
ORDERS += [40.0, 1000.5, 1e7, math.inf]
THRESHOLD = 1e-13


def rows(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def similarities(x):
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


def weights(n, power, seed=3):
    found = np.random.default_rng(seed).random(n) ** power + 1e-6
    return found / found.sum()


def decomposed(K, p, q):
    """What `removal` takes: eigenvalues of trace 1, squares of coordinates, weights, and the score."""
    root = np.sqrt(p)
    values, vectors = np.linalg.eigh(K * root[:, None] * root)
    values, vectors = values[::-1], vectors[:, ::-1]
    used = values > (THRESHOLD if q < 1 else 0)
    total = values[used].sum()
    squares = values[used] / p[:, None] * vectors[:, used] ** 2
    score = float(hill(np.maximum(values, 0), q, zero_below=THRESHOLD))
    return values[used] / total, squares, p / total, score


def without(K, p):
    """The eigenvalues of all but one, for each item."""
    found = []
    for i in range(len(p)):
        keep = np.arange(len(p)) != i
        root = np.sqrt(p[keep] / p[keep].sum())
        found.append(np.linalg.eigvalsh(K[np.ix_(keep, keep)] * root[:, None] * root)[::-1])
    return np.maximum(found, 0)


CASES = {
    "more rows than columns": (similarities(rows(40, 6)), None),
    "fewer rows than columns": (similarities(rows(20, 60)), None),
    "two items": (similarities(rows(2, 5)), None),
    "orthogonal": (np.eye(7), None),
    "copies": (np.eye(7)[:, [0, 0, 0, 1, 2, 3, 4, 5, 6]][[0, 0, 0, 1, 2, 3, 4, 5, 6]], None),
    "rank deficient": (similarities(rows(30, 3) @ rows(3, 9)), None),
    "weights": (similarities(rows(30, 8)), weights(30, 8)),
    "half of the weight": (np.eye(41), np.r_[0.5, np.full(40, 0.0125)]),
    "alone in a small direction": (
        similarities(np.vstack([np.c_[rows(15, 3), np.zeros(15)], [1, 1, 1, 1e-2]])),
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_changes_are_those_of_the_eigenvalues_of_the_others(name):
    K, p = CASES[name]
    p = np.full(len(K), 1 / len(K)) if p is None else p
    others = without(K, p)
    for q in ORDERS:
        values, squares, taken, score = decomposed(K, p, q)
        found = score * np.expm1(removal(values, q, THRESHOLD, p.min())(squares, taken))
        expected = hill(others, q, zero_below=np.full(len(p), THRESHOLD)) - score
        np.testing.assert_allclose(found, expected, rtol=2e-11, atol=2e-12 * score, err_msg=f"q={q}")


@pytest.mark.parametrize("q", [0.3, 1, 1.6])
def test_a_smooth_spectrum_down_to_the_rounding(q):
    x = rows(30, 1)
    K, p = np.exp(-((x - x.T) ** 2)), np.full(30, 1 / 30)
    values, squares, taken, score = decomposed(K, p, q)
    found = score * np.expm1(removal(values, q, THRESHOLD, 1 / 30)(squares, taken))
    expected = hill(without(K, p), q, zero_below=np.full(30, THRESHOLD)) - score
    # Below order 1 it matters which of the tiny eigenvalues are counted.
    np.testing.assert_allclose(found, expected, rtol=1e-3 if q < 1 else 1e-11)


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5, 3.5, 20.5])
def test_small_changes_have_all_their_digits(q):
    """A million items: the score changes in the seventh digit, and the change is right in its twelfth."""
    values = np.array([0.6, 0.3, 0.1])
    y, alpha = np.sqrt(np.array([0.2, 0.3, 0.5])), 1e-6
    with mpmath.workdps(60):
        rho = mpmath.diag(list(map(mpmath.mpf, values.tolist())))
        y60 = mpmath.matrix([mpmath.mpf(float(one)) for one in y])
        rest = (rho - mpmath.mpf(alpha) * y60 * y60.T) / (1 - mpmath.mpf(alpha) * (y60.T * y60)[0])

        def log_score(eigenvalues):
            if q == 1:
                return -sum(one * mpmath.log(one) for one in eigenvalues)
            return mpmath.log(sum(one**q for one in eigenvalues)) / (1 - mpmath.mpf(q))

        apart = log_score(mpmath.eigsy(rest, eigvals_only=True)) - log_score([rho[i, i] for i in range(3)])
    found = removal(values, q, 1e-15, alpha)((y**2)[None], np.array([alpha]))
    assert found[0] == pytest.approx(float(apart), rel=1e-12)
    assert abs(float(apart)) < 1e-5


def test_an_item_that_holds_nearly_all_of_a_high_power_is_not_lost_in_the_difference():
    p = np.r_[0.5, np.full(200, 0.5 / 200)]
    for q in (16, 40.0, 300.5):
        found = removal(np.sort(p)[::-1], q, 1e-14, p.min())(np.eye(201), p)
        # Without the heavy item 200 equal ones are left, of which only 1e-32 and less of the sum is.
        assert math.exp(found[0]) * float(hill(p, q)) == pytest.approx(200, rel=1e-12)


def test_eigenvalues_that_rounding_made_do_no_harm():
    """Next to nothing, as of items that are alike, with coordinates to match or not."""
    values = np.array([0.7, 0.3 - 1e-17, 1e-17, 1e-200])
    squares = np.array([[0.6, 0.4, 1e-32, 0.0], [0.6, 0.4, 0.0, 1e-33]])
    taken = np.array([0.1, 0.2])
    for q in (1, 1.5, 2, 2.5, 12.5, math.inf):
        found = removal(values, q, 1e-15, 0.1)(squares, taken)
        expected = removal(np.array([0.7, 0.3]), q, 1e-15, 0.1)(squares[:, :2], taken)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_an_item_of_no_weight_changes_nothing_and_the_only_one_leaves_nothing():
    for q in (0, 0.5, 1, 1.5, 2, 2.5, 9.5, math.inf):
        change = removal(np.array([0.5, 0.5]), q, 1e-14, 0.5)
        assert change(np.array([[0.5, 0.5]]), np.array([0.0]))[0] == 0
        alone = removal(np.array([1.0]), q, 1e-14, 1.0)
        assert math.isnan(alone(np.array([[1.0]]), np.array([1.0]))[0])
