"""The laws of a sum that merges: whatever the order, the batches and the owners, the score is that of all items.

The reference is plain NumPy on all items at once. A collection is an array of small whole numbers with a first column
of ones, so that equal and dependent rows are common and no row is 0.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import vendimeter as vm
from vendimeter.solvers.gram import GramSum

ORDERS = [0, 0.5, 1, 1.5, 2, 3, math.inf]
EXAMPLES = settings(max_examples=25)
KINDS = {
    "dense": np.asarray,
    "float32": lambda rows: np.asarray(rows, dtype=np.float32),
    "lists": lambda rows: rows.tolist(),
    "sparse": sparse.csr_array,
    "coo": sparse.coo_array,
}


class Stream(NamedTuple):
    """Items with weights, and how they come: the kind of each batch and where they are cut."""

    rows: np.ndarray
    weights: np.ndarray | None
    kinds: list[str]
    cuts: list[int]

    def batches(self) -> list[tuple[Any, np.ndarray | None]]:
        edges = [0, *self.cuts, len(self.rows)]
        parts = [slice(a, b) for a, b in itertools.pairwise(edges)]
        return [
            (KINDS[kind](self.rows[part]), None if self.weights is None else self.weights[part])
            for part, kind in zip(parts, self.kinds, strict=True)
        ]

    def accumulators(self, **options: Any) -> list[vm.Accumulator]:
        """One for each batch."""
        found = []
        for batch, weights in self.batches():
            found.append(vm.Accumulator(**options))
            found[-1].update(batch, weights=weights)
        return found


@st.composite
def streams(draw: st.DrawFn, *, weighted: bool | None = None, parts: int | None = None) -> Stream:
    width = draw(st.integers(1, 9))
    n = draw(st.integers(1, 40))  # the switch from rows to their sum is at about width/2
    rows = draw(arrays(np.int64, (n, width), elements=st.integers(-3, 3)))
    count = draw(st.integers(1, 5)) if parts is None else parts
    cuts = sorted(draw(st.lists(st.integers(0, n), min_size=count - 1, max_size=count - 1)))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=count, max_size=count))
    weights = None
    if draw(st.booleans()) if weighted is None else weighted:
        weights = draw(arrays(np.float64, n, elements=st.sampled_from([0.0, 1e-3, 0.5, 1.0, 7.0, 1e3])))
        weights[draw(st.integers(0, n - 1))] = 1.0
    return Stream(np.hstack([np.ones((n, 1)), rows]), weights, kinds, cuts)


def reference(rows: np.ndarray, weights: np.ndarray | None, q: float) -> float:
    """VS_q of the cosine kernel by plain NumPy."""
    rows = np.asarray(rows, dtype=np.float64)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    p = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    p = p / p.sum()
    values = np.linalg.eigvalsh((rows * p[:, None]).T @ rows)
    values = values[values > 1e-13]
    if q == 1:
        return float(np.exp(-(values * np.log(values)).sum()))
    return float(1 / values.max() if math.isinf(q) else (values**q).sum() ** (1 / (1 - q)))


def holds(total: vm.Accumulator, rows: np.ndarray, weights: np.ndarray | None = None) -> None:
    """The score of every order is that of all items, to 10⁻¹⁰ and within its own bounds."""
    for q, score in total.score(ORDERS).items():
        expected = reference(rows, weights, q)
        assert float(score) == pytest.approx(expected, rel=1e-10)
        assert score.bounds[0] * (1 - 1e-13) <= expected <= score.bounds[1] * (1 + 1e-13)
        assert score.level == "deterministic"
        assert score.bounds[1] - score.bounds[0] < 1e-9 * expected or q < 1


@EXAMPLES
@given(streams())
def test_batches_change_nothing(stream: Stream) -> None:
    total = vm.Accumulator()
    for batch, weights in stream.batches():
        total.update(batch, weights=weights)
    holds(total, stream.rows, stream.weights)
    assert total.n == len(stream.rows)
    assert total.updates == len(stream.kinds)
    dense = vm.profile(
        stream.rows,
        vm.kernels.Cosine(),
        q=ORDERS,
        weights=None if stream.weights is None else stream.weights / stream.weights.sum(),
    )
    for q, score in total.score(ORDERS).items():
        assert score.bounds[0] <= dense[q].bounds[1]
        assert dense[q].bounds[0] <= score.bounds[1]


@EXAMPLES
@given(streams(), st.randoms(use_true_random=False))
def test_order_changes_nothing(stream: Stream, random: Any) -> None:
    places = list(range(len(stream.rows)))
    random.shuffle(places)
    weights = None if stream.weights is None else stream.weights[places]
    total = vm.Accumulator()
    for batch, part in stream._replace(rows=stream.rows[places], weights=weights).batches():
        total.update(batch, weights=part)
    holds(total, stream.rows, stream.weights)


@EXAMPLES
@given(streams())
def test_items_one_by_one(stream: Stream) -> None:
    total = vm.Accumulator()
    for i, row in enumerate(stream.rows):
        total.update(row[None], weights=None if stream.weights is None else stream.weights[i : i + 1])
    holds(total, stream.rows, stream.weights)


@EXAMPLES
@given(streams(parts=2))
def test_merging_commutes(stream: Stream) -> None:
    a, b = stream.accumulators()
    holds(a + b, stream.rows, stream.weights)
    holds(b + a, stream.rows, stream.weights)
    assert (a + b).n == (b + a).n == len(stream.rows)
    assert (a + b).mass == pytest.approx((b + a).mass, rel=1e-14)


@EXAMPLES
@given(streams(parts=3))
def test_merging_associates(stream: Stream) -> None:
    a, b, c = stream.accumulators()
    for total in ((a + b) + c, a + (b + c), sum([a, b, c]), a.copy().merge(b, c), c.copy().merge(a).merge(b)):
        holds(total, stream.rows, stream.weights)
        assert total.updates == 3
    held = functools.reduce(operator.iadd, [a, b, c], vm.Accumulator())
    holds(held, stream.rows, stream.weights)


@EXAMPLES
@given(streams(parts=2))
def test_merging_leaves_the_others(stream: Stream) -> None:
    a, b = stream.accumulators()
    before = [(part.n, part.mass, part.updates, part.held, part.width) for part in (a, b)]
    total = a + b
    total.update(np.ones((50, stream.rows.shape[1])))
    assert before == [(part.n, part.mass, part.updates, part.held, part.width) for part in (a, b)]
    holds(a + b, stream.rows, stream.weights)


@EXAMPLES
@given(streams(parts=1))
def test_the_empty_accumulator_is_neutral_to_the_last_bit(stream: Stream) -> None:
    (a,) = stream.accumulators()
    empty = vm.Accumulator()
    for total in (a + empty, empty + a, sum([a]), a.copy(), a.copy().merge(), vm.Accumulator().merge(a)):
        assert total.score(ORDERS).to_dict() == a.score(ORDERS).to_dict()
        assert (total.n, total.mass, total.width) == (a.n, a.mass, a.width)


@EXAMPLES
@given(streams(parts=1), st.integers(1, 4))
def test_merging_with_itself(stream: Stream, times: int) -> None:
    (a,) = stream.accumulators()
    n, mass = a.n, a.mass
    a.merge(*[a] * times)
    assert a.n == (times + 1) * n
    assert a.mass == pytest.approx((times + 1) * mass, rel=1e-14)
    holds(a, stream.rows, stream.weights)


@EXAMPLES
@given(streams(parts=2))
def test_a_sum_with_itself_among_others(stream: Stream) -> None:
    a, b = stream.accumulators()
    weights = np.ones(len(stream.rows)) if stream.weights is None else stream.weights.copy()
    weights[: stream.cuts[0]] *= 3
    if weights.any():
        holds(a.copy().merge(b).merge(a, a), stream.rows, weights)
        total = a.copy()
        total.merge(total, b, total)
        holds(total, stream.rows, weights)


@EXAMPLES
@given(streams(weighted=True), st.sampled_from([1e-290, 1e-160, 1e-9, 3.0, 1e17, 1e160, 1e290]))
def test_the_scale_of_the_weights_does_not_count(stream: Stream, scale: float) -> None:
    assert stream.weights is not None
    total = vm.Accumulator()
    for batch, weights in stream.batches():
        assert weights is not None
        total.update(batch, weights=scale * weights)
    holds(total, stream.rows, stream.weights)
    assert total.mass == pytest.approx(scale * stream.weights.sum())


@EXAMPLES
@given(streams(weighted=False), st.data())
def test_counts_are_repeated_rows(stream: Stream, data: st.DataObject) -> None:
    n = len(stream.rows)
    counts = data.draw(arrays(np.int64, n, elements=st.integers(0, 4)))
    counts[0] += 1
    total = vm.Accumulator()
    edges = [0, *stream.cuts, n]
    for a, b in itertools.pairwise(edges):
        total.update(stream.rows[a:b], counts=counts[a:b])
    repeated = vm.Accumulator()
    repeated.update(np.repeat(stream.rows, counts, axis=0))
    assert total.n == repeated.n == counts.sum()
    assert total.mass == repeated.mass
    holds(total, np.repeat(stream.rows, counts, axis=0))
    holds(repeated, stream.rows, counts)


@EXAMPLES
@given(streams(weighted=True), st.sampled_from([0.5, 0.1, 1e-12]))
def test_the_weight_of_an_item_can_be_split(stream: Stream, share: float) -> None:
    assert stream.weights is not None
    total = vm.Accumulator()
    total.update(stream.rows, weights=share * stream.weights)
    total.update(stream.rows[::-1], weights=(1 - share) * stream.weights[::-1])
    holds(total, stream.rows, stream.weights)


@EXAMPLES
@given(streams(parts=3))
def test_float32_products_keep_their_bounds(stream: Stream) -> None:
    for total in (
        sum(stream.accumulators(precision="float32", rng=3)),
        vm.Accumulator(precision="float32", rng=3).merge(*stream.accumulators(precision="float32", rng=3)),
    ):
        for q, score in total.score(ORDERS).items():
            expected = reference(stream.rows, stream.weights, q)
            assert score.bounds[0] * (1 - 1e-13) <= expected <= score.bounds[1] * (1 + 1e-13)
            if q >= 1:
                assert float(score) == pytest.approx(expected, rel=1e-4)


@EXAMPLES
@given(streams(parts=1), st.sampled_from(["rows", "sum"]), st.sampled_from(["rows", "sum"]))
def test_either_side_of_the_switch(stream: Stream, mine: str, theirs: str) -> None:
    """Rows with rows, rows with a sum, a sum with rows, a sum with a sum."""
    width = stream.rows.shape[1]
    sizes = {"rows": max(1, width // 2), "sum": width + 3}
    rows = np.resize(stream.rows, (sizes[mine] + sizes[theirs], width))
    a, b = vm.Accumulator(), vm.Accumulator()
    a.update(rows[: sizes[mine]])
    b.update(rows[sizes[mine] :])
    assert (a.held == "sum") == (mine == "sum")
    assert (b.held == "sum") == (theirs == "sum")
    holds(a + b, rows)


# -------------------------------------------------------------------------------------------------- what rounding does


def test_many_small_updates() -> None:
    rng = np.random.default_rng(0)
    rows, weights = rng.standard_normal((30_000, 3)), rng.random(30_000)
    total = GramSum(3)
    unit = vm.kernels.Cosine().similarity(rows)
    for i in range(len(rows)):
        total.add(unit.take(np.array([i])), weights[i : i + 1])
    found = total.result()
    # The truth, from numbers of 80 bits or exact sums of float64.
    exact = rows.astype(np.longdouble)
    exact /= np.sqrt((exact**2).sum(axis=1, keepdims=True))
    shares = weights.astype(np.longdouble)
    true = (exact * shares[:, None]).T @ exact / shares.sum()
    off = float(np.linalg.norm((found.matrix - true).astype(np.float64)))
    assert off <= found.error < 1e-10


@pytest.mark.parametrize("scale", [5e-324, 1e-320, 1e-310, 1e-300, 1e300])
@pytest.mark.parametrize("n", [1, 3, 50])
def test_weights_at_the_ends_of_the_range(scale: float, n: int) -> None:
    """Near the smallest numbers weights are coarse: the bounds know it."""
    rows = np.random.default_rng(n).standard_normal((2 * n, 4))
    total = vm.Accumulator()
    total.update(rows[:n], weights=np.full(n, scale))
    total.update(rows[n:], weights=np.full(n, scale))
    score = total.score()
    assert score.bounds[0] <= reference(rows, None, 1) <= score.bounds[1]
    if scale in (1e-300, 1e300):
        assert score.half_width < 1e-12


def test_tiny_weights_before_others_are_rounding() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 4))
    total = vm.Accumulator()
    total.update(rows[:30], weights=np.full(30, 1e-310))
    total.update(rows[30:], weights=np.full(30, 1e300))
    holds(total, rows[30:])


def test_weights_of_one_batch_far_apart() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 4))
    weights = np.geomspace(1e-300, 1e300, 60)
    total = vm.Accumulator()
    total.update(rows, weights=weights)
    holds(total, rows, weights / weights.max())
