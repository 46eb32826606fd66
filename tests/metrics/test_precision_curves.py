"""PRD: known distributions, its formula at every angle, scikit-learn's clusters, and samples on every library."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vendimeter.errors import InputError
from vendimeter.metrics import PrecisionRecallCurve, precision_curves, precision_recall_curve

FAR = 100 * np.eye(5)  # centres of five modes


def modes(counts, seed=0):
    """So many points round each of some centres that lie far apart."""
    return np.repeat(FAR[: len(counts)], counts, axis=0) + np.random.default_rng(seed).normal(
        size=(sum(counts), 5)
    )


def at_angles(q, p, beta):
    """The formula of the paper on a fine grid of angles, written out."""
    slopes = np.tan(np.linspace(1e-10, np.pi / 2 - 1e-10, 20_001))[:, None]
    precision = np.minimum(slopes * p, q).sum(axis=1)
    recall = np.minimum(p, q / slopes).sum(axis=1)
    with np.errstate(invalid="ignore"):
        scores = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    return precision, recall, np.nanmax(scores)


def f_score(precision, recall, beta):
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


def test_equal_and_disjoint():
    same = PrecisionRecallCurve.of([0.2, 0.3, 0.5], [0.2, 0.3, 0.5])
    assert (same.f_precision, same.f_recall, same.highest_precision, same.highest_recall) == (1, 1, 1, 1)
    assert [result.tolist() for result in same.at([1.0])] == [[1], [1]]
    disjoint = PrecisionRecallCurve.of([1, 0, 0], [0, 0.5, 0.5])
    assert (disjoint.f_precision, disjoint.f_recall, disjoint.highest_precision, disjoint.highest_recall) == (
        0,
        0,
        0,
        0,
    )
    assert not np.any(disjoint.points())
    assert PrecisionRecallCurve.of([1.0], [1.0]).f_recall == 1


def test_modes_dropped_and_invented():
    p = np.array([0.25, 0.25, 0.25, 0.25, 0, 0])
    dropped = PrecisionRecallCurve.of([0.5, 0.5, 0, 0, 0, 0], p)
    assert (dropped.highest_precision, dropped.highest_recall) == (1, 0.5)
    # Its corner has a precision of 1 and a recall of ½.
    assert dropped.f_recall == pytest.approx(f_score(1, 0.5, 8), rel=1e-15)
    assert dropped.f_precision == pytest.approx(f_score(1, 0.5, 1 / 8), rel=1e-15)
    invented = PrecisionRecallCurve.of(np.full(6, 1 / 6), p)
    assert (invented.highest_precision, invented.highest_recall) == pytest.approx((2 / 3, 1))
    assert invented.f_recall == pytest.approx(f_score(2 / 3, 1, 8), rel=1e-15)
    assert invented.f_precision == pytest.approx(f_score(2 / 3, 1, 1 / 8), rel=1e-15)
    half = PrecisionRecallCurve.of([0.5, 0.5, 0], [0, 0.5, 0.5])
    assert [result.tolist() for result in half.at([0, 0.5, 1, 2, math.inf])] == [
        [0, 0.25, 0.5, 0.5, 0.5],
        [0.5, 0.5, 0.5, 0.25, 0],
    ]
    assert half.f_recall == pytest.approx(0.5) == half.f_precision


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8),
    st.sampled_from([1.5, 8, 20]),
)
def test_against_the_formula(counts, beta):
    q, p = np.array(counts, dtype=float).T
    if not (q.any() and p.any()):
        return
    q, p = q / q.sum(), p / p.sum()
    curve = PrecisionRecallCurve.of(q, p, beta=beta)
    ratios = np.tan(np.linspace(1e-10, np.pi / 2 - 1e-10, 20_001))
    precision, recall, f_recall = at_angles(q, p, beta)
    np.testing.assert_allclose(curve.at(ratios), (precision, recall), rtol=1e-9, atol=1e-12)
    f_precision = at_angles(q, p, 1 / beta)[2]
    # The exact maximum is never less than that over angles, and no more than a step between two of them away.
    for exact, seen in ((curve.f_recall, f_recall), (curve.f_precision, f_precision)):
        assert np.nan_to_num(seen) - 1e-12 <= exact <= np.nan_to_num(seen) * 1.02 + 1e-12
    # Samples and reference exchanged exchange precision and recall.
    back = PrecisionRecallCurve.of(p, q, beta=beta)
    assert (back.f_recall, back.highest_recall) == pytest.approx((curve.f_precision, curve.highest_precision))


def test_the_maximum_in_fractions():
    q, p = [Fraction(k, 10) for k in (1, 2, 3, 4)], [Fraction(k, 10) for k in (4, 4, 1, 1)]
    best = Fraction(0)
    for ratio in (a / b for a, b in zip(q, p, strict=True)):
        alpha = sum(min(ratio * b, a) for a, b in zip(q, p, strict=True))
        recall = alpha / ratio
        best = max(best, 65 * alpha * recall / (64 * alpha + recall))
    curve = PrecisionRecallCurve.of(np.array(q, dtype=float), np.array(p, dtype=float))
    assert curve.f_recall == pytest.approx(float(best), rel=1e-14)


def test_points_go_from_end_to_end():
    curve = PrecisionRecallCurve.of([0.5, 0.25, 0.25], [0.25, 0.25, 0.5])
    precision, recall = curve.points(101)
    assert (precision[0], recall[-1]) == (0, 0)
    assert (precision[-1], recall[0]) == pytest.approx((curve.highest_precision, curve.highest_recall))
    assert (np.diff(precision) >= 0).all()
    assert (np.diff(recall) <= 0).all()
    assert len(curve.points()[0]) == 1001


# -------------------------------------------------------------------------------------------------------- from samples


def test_modes_far_apart_are_clusters():
    p, q = [40, 60, 100, 0, 0], [30, 0, 30, 40, 0]
    curve = precision_recall_curve(modes(q, 1), modes(p, 2), clusters=4, runs=3)
    expected = PrecisionRecallCurve.of(np.array(q) / 100, np.array(p) / 200)
    for name in ("f_precision", "f_recall", "highest_precision", "highest_recall"):
        assert getattr(curve, name) == pytest.approx(getattr(expected, name), rel=1e-12)
    assert (curve.n, curve.m, curve.of_samples.shape) == (100, 200, (3, 4))
    assert sorted(curve.of_samples[0].tolist()) == [0, 0.3, 0.3, 0.4]
    same = precision_recall_curve(modes(p), modes(p), clusters=7)
    assert (same.f_precision, same.f_recall) == pytest.approx((1, 1))


def test_clusters_of_scikit_learn():
    cluster = pytest.importorskip("sklearn.cluster")
    x, y = modes([50, 20, 30], 3), modes([10, 60, 10, 20], 4)
    labels = cluster.KMeans(4, n_init=5, random_state=0).fit(np.concatenate([x, y])).labels_
    q, p = (np.bincount(part, minlength=4) / len(part) for part in (labels[:100], labels[100:]))
    curve = precision_recall_curve(x, y, clusters=4, runs=2)
    expected = PrecisionRecallCurve.of(q, p)
    assert (curve.f_precision, curve.f_recall) == pytest.approx((expected.f_precision, expected.f_recall))


def test_runs_are_averaged_at_every_ratio():
    draws = np.random.default_rng(0)
    curve = precision_recall_curve(
        draws.normal(size=(60, 2)), draws.normal(size=(90, 2)) + 0.5, clusters=6, runs=4
    )
    ratios = np.array([0.1, 0.7, 1.0, 3.0])
    each = [
        PrecisionRecallCurve.of(q, p).at(ratios)
        for q, p in zip(curve.of_samples, curve.of_reference, strict=True)
    ]
    np.testing.assert_allclose(curve.at(ratios), np.mean(each, axis=0), rtol=1e-12)
    assert not np.array_equal(curve.of_samples[0], curve.of_samples[1])
    # The largest F of the averaged curve, on many angles.
    alpha, beta = curve.points(20_001)
    with np.errstate(invalid="ignore"):
        assert (
            np.nanmax(f_score(alpha, beta, 8)) <= curve.f_recall <= 1.001 * np.nanmax(f_score(alpha, beta, 8))
        )


def test_centres_are_fitted_to_some_points_of_each_set(monkeypatch):
    """Equally many: a set that is ten times larger than the other does not take all centres for itself."""
    monkeypatch.setattr(precision_curves, "MOST_FITTED", 30)
    monkeypatch.setattr(precision_curves, "BLOCK_BYTES", 8 * 5 * 11)
    x, y = modes([0, 0, 0, 30, 30], 5), modes([200, 200, 200], 6)
    curve = precision_recall_curve(x, y, clusters=5)
    assert (curve.f_precision, curve.f_recall) == (0, 0)
    assert curve.of_reference.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1, 1e9, 1e300])
def test_scale_and_place_change_nothing(scale):
    x, y = modes([30, 20], 1), modes([20, 20, 10], 2)
    expected = precision_recall_curve(x, y, clusters=3).to_dict()
    assert precision_recall_curve(x * scale, y * scale, clusters=3).to_dict() == expected
    assert precision_recall_curve(x + 1e9, y + 1e9, clusters=3).to_dict() == expected


def test_few_points():
    alone = precision_recall_curve([[1.0]], [[1.0]], clusters=2, runs=1)
    assert (alone.f_precision, alone.f_recall) == (1, 1)
    assert precision_recall_curve([[1.0]], [[2.0]], clusters=2, runs=1).f_recall == 0
    assert precision_recall_curve(np.ones((5, 2)), np.ones((7, 2)), clusters=4).f_precision == 1


def test_arrays_of_every_library(library):
    x, y = modes([30, 20], 1).astype(np.float32), modes([20, 20, 10], 2).astype(np.float32)
    before = x.copy()
    curve = precision_recall_curve(library.array(x), library.array(y), clusters=3, runs=2)
    assert curve.to_dict() == precision_recall_curve(x, y, clusters=3, runs=2).to_dict()
    assert np.array_equal(x, before)
    assert PrecisionRecallCurve.of(library.array([0.5, 0.5]), [0.5, 0.5]).f_recall == 1


@pytest.mark.parametrize(("call", "message"), [
    (lambda: precision_recall_curve(FAR, FAR, clusters=11), "clusters=11, of sets of 5 and 5 points; expected 10"),
    (lambda: precision_recall_curve(FAR, FAR, clusters=0), "clusters=0"),
    (lambda: precision_recall_curve(FAR, FAR, runs=0), "runs=0"),
    (lambda: precision_recall_curve(FAR, FAR, beta=1), "beta=1; expected a number above 1"),
    (lambda: precision_recall_curve(FAR, FAR, clusters=2, rng=-1), "rng=-1"),
    (lambda: precision_recall_curve(FAR, FAR, clusters=2, progress=1), "progress=1"),
    (lambda: precision_recall_curve(FAR, FAR * math.nan, clusters=2), "reference: item 0 holds nan"),
    (lambda: PrecisionRecallCurve.of([0.5, 0.6], [1, 0]), "samples sums to 1.1; expected probabilities that sum to 1"),
    (lambda: PrecisionRecallCurve.of([1, 0], [1.5, -0.5]), r"reference\[1\] is -0.5"),
    (lambda: PrecisionRecallCurve.of([1, 0], [math.nan, 1]), r"reference\[0\] is nan"),
    (lambda: PrecisionRecallCurve.of([1, 0], [1]), "samples has 2 outcomes and reference 1"),
    (lambda: PrecisionRecallCurve.of([[1, 0]], [1]), "the probabilities of the outcomes"),
    (lambda: PrecisionRecallCurve.of([], []), "samples sums to 0"),
    (lambda: PrecisionRecallCurve.of([1.0], [1.0]).at([-1]), "from 0 up"),
    (lambda: PrecisionRecallCurve.of([1.0], [1.0]).at("a"), "ratios='a'; expected numbers from 0 up"),
])  # fmt: skip
def test_what_cannot_be_used(call, message):
    with pytest.raises(InputError, match=message):
        call()
