"""Class probabilities: logits, several classifiers side by side, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse, special

import vendimeter as vm
from vendimeter.errors import InputError
from vendimeter.kernels import ProbabilityProduct
from vendimeter.kernels.description import describe, rebuild
from vendimeter.similarity import Features, Pairwise

RNG = np.random.default_rng(11)
LOGITS = 3 * RNG.standard_normal((30, 7))
INF, NAN = float("inf"), float("nan")


def bhattacharyya(p: np.ndarray) -> np.ndarray:
    return np.sqrt(p) @ np.sqrt(p).T


def dense_score(K: np.ndarray) -> float:
    values = np.linalg.eigvalsh(K / len(K))
    values = values[values > 1e-15]
    return math.exp(-(values * np.log(values)).sum())


def joint(stack: np.ndarray) -> np.ndarray:
    """The distribution over all tuples of classes, written out."""
    whole = stack[:, 0]
    for c in range(1, stack.shape[1]):
        whole = (whole[:, :, None] * stack[:, None, c]).reshape(len(stack), -1)
    return whole


def digits(n: int, channels: int = 3, classes: int = 10) -> np.ndarray:
    return special.softmax(4 * RNG.standard_normal((n, channels, classes)), axis=-1)


def test_logits_are_the_softmax(library):
    expected = bhattacharyya(special.softmax(LOGITS, axis=1))
    similarity = ProbabilityProduct(logits=True).similarity(library.array(LOGITS))
    from vendimeter.data.devices import to_host

    np.testing.assert_allclose(to_host(similarity.dense()), expected, rtol=0, atol=1e-14)
    score = vm.score(library.array(LOGITS), ProbabilityProduct(logits=True))
    assert score == pytest.approx(dense_score(expected), rel=1e-10)


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_logits_of_any_size_are_stable(shift, dtype):
    logits = np.rint(LOGITS + shift).astype(dtype)
    expected = bhattacharyya(special.softmax(np.rint(LOGITS), axis=1))
    similarity = ProbabilityProduct(logits=True).similarity(logits)
    np.testing.assert_allclose(similarity.dense(), expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.diag(similarity.dense()), 1, atol=similarity.entry_error)


def test_a_class_that_is_ruled_out():
    logits = np.array([[0.0, -INF, -INF], [-INF, 0.0, 800.0], [-INF, -INF, -900.0]])
    expected = [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    np.testing.assert_allclose(
        ProbabilityProduct(logits=True).similarity(logits).dense(), expected, atol=1e-15
    )
    assert logits[1, 2] == 800  # nothing was changed in place


def test_the_largest_logits_there_are(library):
    from vendimeter.data.devices import to_host

    logits = np.array([[1e308, -1e308, 1e308], [-1.7e308, 1.7e308, 0.0], [-1e308, -1e308, -1e308]])
    half, third = math.sqrt(1 / 2), math.sqrt(1 / 3)
    features = np.array([[half, 0, half], [0, 1, 0], [third, third, third]])
    found = ProbabilityProduct(logits=True).similarity(library.array(logits)).dense()
    np.testing.assert_allclose(to_host(found), features @ features.T, atol=1e-15)


def test_more_axes_than_channels_and_classes():
    for samples in (np.full((3, 2, 2, 2), 0.5), np.full((3, 2, 2, 2), 0.5).tolist()):
        with pytest.raises(InputError, match=r"\(3, 2, 2, 2\).*\(items, channels, classes\)") as caught:
            vm.score(samples, ProbabilityProduct())
        assert "-1" not in str(caught.value)  # to join channels and classes would be another kernel


def test_the_error_bound_of_logits_holds():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 40
    logits = 200 * RNG.standard_normal((6, 50))
    similarity = ProbabilityProduct(logits=True).similarity(logits)
    found = similarity.rows(slice(None))
    for row, logit in zip(found, logits, strict=True):
        top = max(map(mpmath.mpf, logit))
        weights = [mpmath.exp(mpmath.mpf(x) - top) for x in logit]
        exact = [mpmath.sqrt(w / mpmath.fsum(weights)) for w in weights]
        gap = mpmath.sqrt(mpmath.fsum((mpmath.mpf(x) - y) ** 2 for x, y in zip(row, exact, strict=True)))
        assert gap <= similarity.rounding


@pytest.mark.parametrize(
    ("n", "kind", "width"), [(60, Pairwise, None), (400, Pairwise, None), (1200, Features, 1000)]
)
def test_three_classifiers_are_one_of_a_thousand_classes(n, kind, width):
    stack = digits(n)
    similarity = ProbabilityProduct().similarity(stack)
    assert isinstance(similarity, kind)  # neither 1,000 columns for few items, nor n×n for many
    if width is not None:
        assert similarity.width == width
    np.testing.assert_allclose(similarity.dense(), bhattacharyya(joint(stack)), rtol=0, atol=1e-13)
    assert vm.score(stack, ProbabilityProduct()) == pytest.approx(
        vm.score(joint(stack), ProbabilityProduct()), rel=1e-9
    )


@pytest.mark.parametrize("n", [20, 150])
def test_channels_on_every_library(library, n):
    logits = 3 * RNG.standard_normal((n, 2, 5))
    expected = dense_score(bhattacharyya(joint(special.softmax(logits, axis=-1))))
    assert vm.score(library.array(logits), ProbabilityProduct(logits=True)) == pytest.approx(
        expected, rel=1e-9
    )
    probabilities = library.array(special.softmax(logits, axis=-1))
    assert vm.score(probabilities, ProbabilityProduct()) == pytest.approx(expected, rel=1e-9)


def test_channels_in_lists_and_columns():
    stack = digits(12, 2, 4)
    expected = vm.score(joint(stack), ProbabilityProduct())
    lists = stack.tolist()
    columns = (
        pd.Series(list(stack)),
        pd.Series(lists),
        pa.array(lists),
        pa.chunked_array([lists[:5], lists[5:]]),
        pa.table({"x": lists}).to_pandas()["x"],  # arrays of arrays
        pl.Series(lists),
        pl.Series(lists, dtype=pl.Array(pl.Float64, (2, 4))),
    )
    for samples in (lists, list(stack), tuple(stack), *columns):
        assert vm.score(samples, ProbabilityProduct()) == pytest.approx(expected, rel=1e-12)
    assert vm.score(stack[:, :1], ProbabilityProduct()) == vm.score(stack[:, 0], ProbabilityProduct())


def test_channels_in_batches():
    stack = digits(90, 3, 4)
    total = vm.Accumulator(ProbabilityProduct())
    for part in np.array_split(stack, 8):
        total.update(part)
    assert total.score() == pytest.approx(vm.score(joint(stack), ProbabilityProduct()), rel=1e-9)
    assert ProbabilityProduct().batch_features(stack[:3]).width == 64


@pytest.mark.parametrize(("samples", "kernel", "words"), [
    ([[0.5, 0.5], [-1.0, 2.0]], ProbabilityProduct(), ["item 1", "-1", "logits=True"]),
    ([[0.5, 0.5], [3.0, 2.0]], ProbabilityProduct(), ["item 1", "sum to 5", "logits=True"]),
    ([[0.5, 0.5], [1e308, 1e308]], ProbabilityProduct(), ["item 1", "sum to inf"]),
    ([[0.5, 0.5], [NAN, 2.0]], ProbabilityProduct(), ["item 1", "nan", "Remove or fill"]),
    ([[0.5, 0.5], [NAN, 2.0]], ProbabilityProduct(logits=True), ["item 1", "logit nan"]),
    ([[0.5, 0.5], [INF, 2.0]], ProbabilityProduct(logits=True), ["item 1", "logit inf"]),
    ([[0.5, 0.5], [-INF, -INF]], ProbabilityProduct(logits=True), ["item 1", "only logits of −∞"]),
    ([[[0.5, 0.5], [0.5, 0.6]]], ProbabilityProduct(), ["item 0", "channel 1", "sum to 1.1"]),
    ([[[0.5, 0.5], [-0.5, 1.5]]], ProbabilityProduct(), ["item 0", "-0.5", "channel 1"]),
    ([[[0.5, 0.5], [NAN, 0.6]]], ProbabilityProduct(logits=True), ["item 0", "nan in channel 1"]),
    (np.zeros((3, 0, 2)), ProbabilityProduct(), ["(3, 0, 2)", "at least one channel"]),
    (np.zeros((3, 2, 2, 2)), ProbabilityProduct(), ["(3, 2, 2, 2)"]),
    (sparse.csr_array(np.eye(2)), ProbabilityProduct(logits=True), ["sparse", "toarray"]),
    (["a", "b"], ProbabilityProduct(), ["strings"]),
    ("abc", ProbabilityProduct(), ["strings"]),
    ([[[0.5, 0.5]], [[0.5, 0.5], [1.0, 0.0]]], ProbabilityProduct(), ["item 1"]),
])  # fmt: skip
def test_bad_samples_are_named(samples, kernel, words):
    with pytest.raises(InputError) as caught:
        vm.score(samples, kernel)
    for word in words:
        assert word in str(caught.value)


def test_the_option_is_a_truth_value():
    assert repr(ProbabilityProduct()) == "ProbabilityProduct()"
    assert repr(ProbabilityProduct(logits=np.True_)) == "ProbabilityProduct(logits=True)"  # type: ignore[arg-type]
    assert rebuild(describe(ProbabilityProduct(logits=True))) == ProbabilityProduct(logits=True)
    with pytest.raises(InputError, match="Samples go into"):
        ProbabilityProduct(LOGITS)  # type: ignore[arg-type]


def test_it_has_moved():
    from vendimeter.kernels import vectors

    assert not hasattr(vectors, "ProbabilityProduct")
