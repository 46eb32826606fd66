"""One accumulator a label beside score_groups: any labels, bounded memory, labels in files, merging, saving."""

from __future__ import annotations

import copy
import datetime
import gc
import itertools
import math
import os
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from test_accumulate_files import put, rewritten, say

import vendimeter as vm
from array_libraries import Library
from vendimeter.errors import (
    EmptyError,
    InputError,
    MismatchError,
    SavedStateError,
    TooLargeError,
    UnknownNameError,
)
from vendimeter.kernels import RBF, Cosine, Embed, On, Polynomial, ProbabilityProduct, RandomFeatures
from vendimeter.streams.grouped import LABEL_BYTES, SPARSE_LABEL_BYTES

RNG = np.random.default_rng(1)
N, D = 400, 8
X = RNG.standard_normal((N, D))
W = RNG.random(N)
BY = np.minimum(RNG.geometric(0.25, N), 14)  # from many items a label to a few
ORDERS = [0, 1, 2, "inf"]
SUM = 8 * D * D
LABEL = SUM + LABEL_BYTES  # of a label, at most


def doubled(rows: Any) -> Any:
    return 2 * np.asarray(rows)


class Lazy:
    """An encoder that sets itself up on first use."""

    def __init__(self, version: int = 1):
        self.version, self.ready = version, None

    def __call__(self, rows: Any) -> Any:
        self.ready = self.version  # type: ignore[assignment]
        return np.asarray(rows)


def filled(
    rows: Any = X,
    by: Any = BY,
    *,
    batch: int = 37,
    weights: Any = None,
    counts: Any = None,
    kernel: Any = "cosine",
    **options: Any,
) -> vm.GroupAccumulator:
    total = vm.GroupAccumulator(kernel, **options)
    for i in range(0, rows.shape[0], batch):
        part = slice(i, i + batch)
        total.update(
            rows[part],
            by=by[part],
            weights=None if weights is None else weights[part],
            counts=None if counts is None else counts[part],
        )
    return total


def agrees(found: vm.GroupScores, expected: vm.GroupScores) -> None:
    assert found.labels == expected.labels
    assert [type(label) for label in found.labels] == [type(label) for label in expected.labels]
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-10)
    full = np.isfinite(expected.low)
    np.testing.assert_array_equal(np.isfinite(found.low), full)
    assert (found.low[full] <= expected.high[full]).all()
    assert (expected.low[full] <= found.high[full]).all()
    assert found.levels == expected.levels


def state(total: vm.GroupAccumulator) -> tuple[Any, ...]:
    """Everything that is in it, to the last bit, wherever it lies."""
    parts = [(label, total._peek(label)) for label in total.labels]
    return (
        total.updates,
        total._empty.width,
        [(label, part._header(), [(k, a.tobytes()) for k, a in part._arrays()]) for label, part in parts],
    )


# ------------------------------------------------------------------------------------------------ as score_groups


@pytest.mark.parametrize("batch", [1, 37, N])
def test_as_score_groups(batch: int) -> None:
    total = filled(batch=batch)
    agrees(total.score(ORDERS), vm.score_groups(X, by=BY, q=ORDERS))
    agrees(total.score(), vm.score_groups(X, by=BY))
    assert total.labels == vm.score_groups(X, by=BY).labels
    assert len(total) == 14
    assert total.updates == math.ceil(N / batch)
    held = {total[label].held for label in total.labels}
    assert held == {"dense", "sum"}  # both sides of the switch
    for label in total.labels:
        assert (total[label].held == "sum") == ((label == BY).sum() > D / 2)
        assert float(total[label].score()) == pytest.approx(float(total.score()[label]), rel=1e-12)


def test_weights_and_counts() -> None:
    weights = W.copy()
    weights[::3] = 0.0
    weights[BY == 5] = 0.0
    expected = vm.score_groups(X, by=BY, weights=weights / weights.sum(), q=ORDERS)
    agrees(filled(weights=weights * 1e-200).score(ORDERS), expected)
    assert math.isnan(expected[5][1])
    counts = RNG.integers(0, 4, N)
    counts[BY == 7] = 0
    agrees(filled(counts=counts).score(ORDERS), vm.score_groups(X, by=BY, counts=counts, q=ORDERS))


def test_items_of_no_weight_may_be_anything() -> None:
    rows, weights = X.copy(), W.copy()
    rows[5], weights[5] = math.nan, 0.0
    expected = vm.score_groups(rows, by=BY, weights=weights / weights.sum())
    agrees(filled(rows, weights=weights).score(), expected)


def test_batches_of_no_weight() -> None:
    shares = np.abs(X) / np.abs(X).sum(axis=1, keepdims=True)
    total = vm.GroupAccumulator(ProbabilityProduct())
    total.update(shares[:9], by=[*"aabbccdde"], weights=np.zeros(9))
    found = total.score()
    assert found.labels == [*"abcde"]
    assert found.sizes.tolist() == [0] * 5
    assert np.isnan(found.scores).all()
    total.update(shares[:9], by=[*"aabbccdde"], counts=np.arange(9) // 2)
    expected = vm.score_groups(shares[:9], ProbabilityProduct(), by=[*"aabbccdde"], counts=np.arange(9) // 2)
    agrees(total.score(), expected)


def test_items_without_labels_are_in_no_group() -> None:
    total = vm.GroupAccumulator()
    total.update(X[:2], by=[set(), set()])
    total.update(X[:2], by=[set(), set()], weights=[1, 2])
    assert (len(total), total.updates) == (0, 2)
    total.update(X[:3], by=[set(), {"a"}, {"a", "b"}])
    agrees(total.score(), vm.score_groups(X[:3], by=[set(), {"a"}, ["a", "b"]]))


LABELS: dict[str, Callable[[], Any]] = {
    "texts": lambda: [f"label {b}" for b in BY],
    "an array of texts": lambda: np.array([f"label {b}" for b in BY]),
    "whole numbers": lambda: BY.tolist(),
    "numbers": lambda: (BY / 2).tolist(),
    "an array of numbers": lambda: BY / 2,
    "truth values": lambda: BY > 3,
    "tuples": lambda: [(int(b), "even" if i % 2 else "odd") for i, b in enumerate(BY)],
    "tuples of tuples": lambda: [((int(b), None), "x") for b in BY],
    "bytes": lambda: [str(b).encode() for b in BY],
    "sets of labels": lambda: [{int(b), "all"} if b % 2 else {"all"} for b in BY],
    "lists of labels": lambda: [["a", int(b)] for b in BY],
    "dates": lambda: [datetime.date(2024, 1, int(b)) for b in BY],
    "one each": lambda: list(range(N)),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels(case: str) -> None:
    by = LABELS[case]()
    total, expected = filled(by=by), vm.score_groups(X, by=by)
    found = total.score()
    assert set(found.labels) == set(expected.labels)
    for label in expected.labels:
        assert float(found[label]) == pytest.approx(float(expected[label]), rel=1e-10)
        assert found[label].n == expected[label].n
        assert label in total


def test_a_thousand_labels() -> None:
    rng = np.random.default_rng(0)
    rows, by = rng.standard_normal((6000, 5)), rng.integers(0, 1000, 6000)
    total = filled(rows, by, batch=500)
    agrees(total.score(ORDERS), vm.score_groups(rows, by=by, q=ORDERS))
    assert total.nbytes <= 1000 * (8 * 5 * 5 + LABEL_BYTES)


def test_columns_of_tables() -> None:
    table = {"vector": X.tolist(), "group": BY.tolist(), "side": ["left", "right"] * (N // 2)}
    kernel = On("vector", Cosine())
    for by in ("group", ["group", "side"]):
        total = vm.GroupAccumulator(kernel)
        for i in range(0, N, 100):
            total.update({name: column[i : i + 100] for name, column in table.items()}, by=by)
        agrees(total.score(ORDERS), vm.score_groups(table, kernel, by=by, q=ORDERS))


def test_frames_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"vector": list(X), "group": BY})
    total = vm.GroupAccumulator(On("vector", Cosine()))
    total.update(table[:100], by="group")
    total.update(table[100:], by=table["group"][100:])
    total.update(table[:0], by="group")
    agrees(total.score(), vm.score_groups(X, by=BY.tolist()))
    for name, given in (
        ("by", {"by": table["group"][::-1]}),
        ("weights", {"by": BY, "weights": table["group"][::-1]}),
    ):
        with pytest.raises(InputError, match=f"the index of {name} .* another order"):
            total.update(table, **given)


@pytest.mark.parametrize(
    "kernel",
    [
        Polynomial(2),
        0.5 * Cosine() + 0.5 * Polynomial(1),
        Embed(doubled),
        RandomFeatures(RBF(3.0), features=16),
    ],
    ids=repr,
)
def test_kernels(kernel: Any) -> None:
    expected = vm.score_groups(X, kernel, by=BY, q=ORDERS)
    agrees(filled(kernel=kernel).score(ORDERS), expected)


def test_sparse_rows() -> None:
    rows = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0) + 0.5 * (np.arange(D) == 3))
    total = filled(rows)
    agrees(total.score(ORDERS), vm.score_groups(rows, by=BY, q=ORDERS))
    assert "sparse" in {total[label].held for label in total.labels}
    mixed = vm.GroupAccumulator()
    mixed.update(rows[:200], by=BY[:200])
    mixed.update(rows[200:].toarray(), by=BY[200:])
    agrees(mixed.score(ORDERS), vm.score_groups(rows, by=BY, q=ORDERS))


def test_libraries(library: Library, tmp_path: Path) -> None:
    total = vm.GroupAccumulator(memory=3 * LABEL, spill=tmp_path)
    for i in range(0, N, 100):
        part = slice(i, i + 100)
        total.update(library.array(X[part]), by=library.array(BY[part]), weights=library.array(W[part]))
    agrees(total.score(ORDERS), vm.score_groups(X, by=BY, weights=W / W.sum(), q=ORDERS))
    assert total.spilled


def test_float32_products() -> None:
    found, expected = filled(precision="float32", batch=N).score(), vm.score_groups(X, by=BY)
    assert (found.low * (1 - 1e-13) <= expected.scores).all()
    assert (expected.scores <= found.high * (1 + 1e-13)).all()
    assert set(found.levels) == {"deterministic", "probabilistic"}


def test_large_groups_of_wide_rows() -> None:
    """More rows than are stacked, and still fewer than half the columns."""
    rows, by = RNG.standard_normal((450, 400)), ["a"] * 150 + ["b"] * 300
    total = filled(rows, by, batch=50)
    assert [total[label].held for label in "ab"] == ["dense", "sum"]
    agrees(total.score(ORDERS), vm.score_groups(rows, by=by, q=ORDERS))


# ------------------------------------------------------------------------------------------- what it says and refuses


def test_nothing() -> None:
    total = vm.GroupAccumulator()
    with pytest.raises(EmptyError, match="no item was added"):
        total.score()
    total.update(X[:0], by=[])
    total.update([], by=np.array([]))
    assert (total.updates, len(total), total.nbytes) == (2, 0, 0)
    with pytest.raises(InputError, match="2 labels and there are 0 items"):
        total.update(X[:0], by=[1, 2])
    with pytest.raises(InputError, match="1 entries and there are 0 items"):
        total.update(X[:0], by=[], weights=[1.0])
    assert repr(total) == "GroupAccumulator(Cosine(), 0 labels, 0 bytes)"


def test_one_label() -> None:
    total = filled()
    assert 3 in total
    assert "c" not in total
    with pytest.raises(UnknownNameError, match="no label 'c'"):
        total["c"]
    part = total[3]
    before = state(total)
    part.update(X)  # a copy
    assert state(total) == before


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "too few labels": ({"by": BY[1:]}, "399 labels and there are 400 items"),
    "no labels": ({"by": None}, "expected one label an item"),
    "a text": ({"by": "x"}, "in a list"),
    "a label that is missing": ({"by": [None, *BY[1:].tolist()]}, r"by\[0\] is None"),
    "a label that is not a number": ({"by": [*BY[1:].tolist(), math.nan]}, r"by\[399\] is nan"),
    "one-hot labels": ({"by": np.eye(N)}, "argmax"),
    "a label that cannot be": ({"by": [{}, *BY[1:].tolist()]}, "hashable"),
    "not finite": ({"samples": np.where(X[9, 3] == X, math.nan, X)}, "item 9 holds the value nan"),
    "another width": ({"samples": X[:, :5]}, "5 columns and the ones before had 8"),
    "too few weights": ({"weights": W[1:]}, "399 entries and there are 400 items"),
    "weights not finite": ({"weights": np.where(W[4] == W, math.nan, W)}, r"weights\[4\] is nan"),
    "rows of weights": ({"weights": np.ones((2, N))}, "shape"),
    "weights and counts": ({"weights": W, "counts": W}, "both"),
    "more than can be counted": ({"counts": np.full(N, 1e17)}, "smaller counts"),
    "a set": ({"samples": {1, 2}, "by": [1, 2]}, "no order"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_batch_changes_nothing(case: str) -> None:
    arguments, message = REFUSED[case]
    total = filled()
    before = state(total), total.nbytes
    with pytest.raises(InputError, match=message):
        total.update(**{"samples": X, "by": BY, **arguments})
    assert (state(total), total.nbytes) == before


def test_options(tmp_path: Path) -> None:
    for memory in ("lots", 0, -1, None):
        with pytest.raises(InputError, match="memory="):
            vm.GroupAccumulator(memory=memory)  # type: ignore[arg-type]
    (tmp_path / "file").touch()
    for spill in (tmp_path / "file", 3, "", "a\0b"):
        with pytest.raises(InputError, match=r"spill=.* cannot be used"):
            vm.GroupAccumulator(spill=spill)
    with pytest.raises(InputError, match=r"there is no folder '.*mistyped'.*check the path"):
        vm.GroupAccumulator(spill=tmp_path / "mistyped" / "folder")
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(UnknownNameError):
        vm.GroupAccumulator(precision="float16")


# ------------------------------------------------------------------------------------------------- bounded memory


def test_a_batch_that_does_not_fit_is_refused() -> None:
    total = vm.GroupAccumulator(memory=4 * LABEL)
    total.update(X[:100], by=BY[:100] % 3)
    before = state(total), total.nbytes
    with pytest.raises(
        TooLargeError, match=r"17 labels would take .*larger memory=, or spill=.*Nothing of this batch"
    ):
        total.update(X, by=BY + 100)
    assert (state(total), total.nbytes) == before
    total.update(X[:100], by=BY[:100] % 3)  # what fits is still taken
    assert total.nbytes <= total.memory


@pytest.mark.parametrize("kind", ["dense", "sparse", "sum", "no weight"])
def test_what_labels_take_in_truth(kind: str) -> None:
    """Many labels of few items: most of it are objects, not numbers."""
    n, options = 3000, {"weights": np.zeros(3000)} if kind == "no weight" else {}
    rows: Any = RNG.standard_normal((n, D))
    rows = sparse.csr_array(rows) if kind == "sparse" else rows
    total = vm.GroupAccumulator()
    total.update(rows[:10], by=np.arange(10))  # what is set up once
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(5 if kind == "sum" else 1):
            total.update(rows, by=np.arange(n), **options)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert {part.held for part in list(total._accumulators.values())[10:]} == {
        kind if options == {} else "nothing"
    }
    assert 0.5 * total.nbytes <= taken <= 1.2 * total.nbytes


def test_many_labels_of_one_item_are_refused() -> None:
    n = 30_000
    total = vm.GroupAccumulator(memory="4 MB")
    rows = RNG.standard_normal((n, D))
    for options in ({}, {"weights": np.zeros(n)}):  # labels without weight take room too
        with pytest.raises(TooLargeError, match=r"30000 labels would take .*memory is 3.81 MiB"):
            total.update(rows, by=np.arange(n), **options)
    total.update(rows[:4000], by=np.arange(4000))
    assert 4000 * LABEL_BYTES < total.nbytes < 4e6


def test_memory_for_less_than_one_label() -> None:
    total = vm.GroupAccumulator(memory=LABEL - 1)
    with pytest.raises(TooLargeError, match=r"one label with features of 8 columns may take 1.28 KiB"):
        total.update(X[:1], by=["a"])
    single = vm.GroupAccumulator(memory=LABEL, precision="float32")
    with pytest.raises(TooLargeError, match=r"may take 1.78 KiB"):  # with the vectors that measure its error
        single.update(X[:1], by=["a"])
    assert len(total) == len(single) == 0


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "both"])
@pytest.mark.parametrize("memory", [3 * LABEL, 10 * LABEL])
@pytest.mark.parametrize("spills", [False, True])
def test_memory_is_never_exceeded(
    precision: str, kind: str, memory: int, spills: bool, tmp_path: Path
) -> None:
    total = vm.GroupAccumulator(memory=memory, precision=precision, spill=tmp_path if spills else None)
    refused = np.zeros(N, dtype=bool)
    rows = sparse.csr_array(np.where(np.abs(X) > 1.5, X, 0.0) + 0.5 * (np.arange(D) == 3))
    for k, i in enumerate(range(0, N, 5)):
        batch = rows[i : i + 5]
        batch = batch if kind == "sparse" or (kind == "both" and k % 2) else batch.toarray()
        try:
            total.update(batch, by=BY[i : i + 5])
        except TooLargeError:
            refused[i : i + 5] = True
        assert total.nbytes <= memory
        own = [
            SPARSE_LABEL_BYTES if part.held == "sparse" else LABEL_BYTES
            for part in total._accumulators.values()
        ]
        assert total.nbytes == sum(part.nbytes for part in total._accumulators.values()) + sum(own)
    assert refused.any() != spills
    found, expected = total.score(), vm.score_groups(rows[~refused], by=BY[~refused])
    assert found.labels == expected.labels
    assert (found.low * (1 - 1e-13) <= expected.scores).all()
    assert (expected.scores <= found.high * (1 + 1e-13)).all()


def test_labels_in_files(tmp_path: Path) -> None:
    total = filled(weights=W, memory=2 * LABEL, spill=tmp_path, batch=3)
    assert total.spilled > 8
    assert f"{total.spilled} in files" in repr(total)
    assert state(total) == state(filled(weights=W, batch=3))
    agrees(total.score(ORDERS), vm.score_groups(X, by=BY, weights=W / W.sum(), q=ORDERS))
    held = total.spilled, total.nbytes
    assert float(total[3].score()) == float(total.score()[3])
    assert (total.spilled, total.nbytes) == held  # a look moves nothing


def test_the_files_go_with_the_object(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    total = filled(memory=2 * LABEL, spill=folder)
    other = filled(memory=2 * LABEL, spill=str(folder))
    assert len(os.listdir(folder)) == 2
    del total
    gc.collect()
    assert len(os.listdir(folder)) == 1
    assert other.score().labels == filled().labels
    del other
    gc.collect()
    assert os.listdir(folder) == []


def test_the_files_go_with_the_program(tmp_path: Path) -> None:
    program = (
        "import sys, os, numpy as np, vendimeter as vm\n"
        "total = vm.GroupAccumulator(memory=4096, spill=sys.argv[1])\n"
        "total.update(np.eye(16), by=range(16))\n"
        "total.update(np.eye(16).repeat(20, axis=0), by=list(range(16)) * 20)\n"
        "assert total.spilled and os.listdir(sys.argv[1])\n"
        "if len(sys.argv) > 2 and os.fork() == 0:\n"
        "    del total\n"
        "    sys.exit()\n"
        "if len(sys.argv) > 2:\n"
        "    os.wait()\n"
        "    assert len(total.score()) == 16\n"
    )
    for more in ([], ["fork"]):
        subprocess.run([sys.executable, "-c", program, str(tmp_path), *more], check=True)
        assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    total = filled(memory=2 * LABEL, spill=tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(
        SavedStateError, match=r"No space left on device.*part of this batch has been added already"
    ):
        total.update(X, by=BY)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    total = filled(memory=2 * LABEL, spill=tmp_path)
    for path in tmp_path.glob("*/*.npz"):
        path.unlink()
    with pytest.raises(SavedStateError, match="cannot be read: No such file"):
        total.score()


# ---------------------------------------------------------------------------------------------------------- merging


@pytest.mark.parametrize("spills", ["none", "left", "right", "both"])
def test_merging(spills: str, tmp_path: Path) -> None:
    memory = {"memory": 2 * LABEL, "spill": tmp_path}
    left = filled(X[:250], BY[:250], weights=W[:250], **(memory if spills in ("left", "both") else {}))
    right = filled(X[250:], BY[250:] + 3, weights=W[250:], **(memory if spills in ("right", "both") else {}))
    by = np.concatenate([BY[:250], BY[250:] + 3])
    expected = vm.score_groups(X, by=by, weights=W / W.sum(), q=ORDERS)
    before = state(left), state(right)
    for total in (left + right, sum([left, right]), left.copy().merge(right), copy.copy(left).merge(right)):
        agrees(total.score(ORDERS), expected)
        assert total.updates == left.updates + right.updates
        assert total.nbytes <= total.memory
    assert (state(left), state(right)) == before
    assert set((right + left).labels) == set(expected.labels)
    left += right
    agrees(left.score(ORDERS), expected)


def test_merge_laws() -> None:
    parts = [filled(X[i::3], BY[i::3]) for i in range(3)]
    expected = vm.score_groups(X, by=BY, q=ORDERS)
    for one in itertools.permutations(parts):
        found = vm.GroupAccumulator().merge(*one).score(ORDERS)
        for label in expected.labels:
            np.testing.assert_allclose(found[label].scores, expected[label].scores, rtol=1e-10)
    a, b, c = parts
    for total in ((a + b) + c, a + (b + c), a + vm.GroupAccumulator() + b + c):
        assert total.score().scores.tolist() == pytest.approx((a + b + c).score().scores.tolist(), rel=1e-12)
    assert state(a + vm.GroupAccumulator()) == state(a) == state(0 + a)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_merging_with_itself(times: int, tmp_path: Path) -> None:
    for options in ({}, {"memory": 2 * LABEL, "spill": tmp_path}):
        total = filled(**options)
        scores, sizes = total.score().scores, total.score().sizes
        total.merge(*[total] * times)
        np.testing.assert_allclose(total.score().scores, scores, rtol=1e-12)
        np.testing.assert_array_equal(total.score().sizes, (times + 1) * sizes)


def test_what_does_not_belong_together() -> None:
    total = filled()
    before = state(total)
    for other, message in (
        (filled(kernel=Polynomial(1)), "expected one kernel"),
        (filled(X[:, :5]), "features of 8 and 5 columns"),
        (filled(precision="float32"), "float32"),
        (vm.Accumulator(), "expected a GroupAccumulator"),
        (3, "merged with 3"),
        ([total], r"Use merge\(\*list\)"),
    ):
        with pytest.raises(MismatchError, match=message):
            total.merge(total.copy(), other)
    for other in (1, "a", None, vm.Accumulator()):
        with pytest.raises(TypeError):
            total + other
    assert state(total + 0) == before
    same = total
    same += 0
    assert same is total
    assert state(total) == before


def test_merging_with_one_that_has_seen_nothing() -> None:
    """The state of an encoder that was used differs from that of one that was not."""
    full, other, empty = (vm.GroupAccumulator(Embed(Lazy())) for _ in range(3))
    full.update(X, by=BY)
    other.update(X, by=BY)
    for parts in ([full, empty], [empty, full], [empty, full, other], [full, empty, other]):
        assert state(sum(parts)) == state(vm.GroupAccumulator(full.kernel).merge(*parts))  # type: ignore[arg-type]
    changed = vm.GroupAccumulator(Embed(Lazy(2)))
    changed.update(X, by=BY)
    for start in (full, empty):
        with pytest.raises(MismatchError, match=r"differ in their code or state.*one encoder for all"):
            start.copy().merge(full, changed)
    assert empty.kernel.encoder.ready is None


def test_a_merge_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    total = filled(X[:100], BY[:100] % 3, memory=4 * LABEL)
    other = filled(by=BY + 50, memory=2 * LABEL, spill=tmp_path)
    before = state(total), total.nbytes
    with pytest.raises(TooLargeError, match=r"17 labels would take .*Nothing was merged"):
        total.merge(other)
    with pytest.raises(TooLargeError):
        total + other
    assert (state(total), total.nbytes) == before
    agrees((other + total).score(), (filled(by=BY + 50) + filled(X[:100], BY[:100] % 3)).score())


def test_copies_grow_by_themselves(tmp_path: Path) -> None:
    for duplicate in (vm.GroupAccumulator.copy, copy.copy):
        total = filled(memory=2 * LABEL, spill=tmp_path)
        before = state(total)
        twin = duplicate(total)
        assert state(twin) == before
        twin.update(X, by=BY)
        assert state(total) == before
        assert twin.nbytes <= twin.memory


def test_pickle(tmp_path: Path) -> None:
    total = filled(weights=W, spill=tmp_path)
    for twin in (pickle.loads(pickle.dumps(total)), copy.deepcopy(total)):
        assert state(twin) == state(total)
        twin.update(X, by=BY)
        assert twin.merge(total).updates == 2 * total.updates + 1
    few = vm.GroupAccumulator(memory=2 * LABEL, spill=tmp_path)
    few.update(X[:2], by=[1, 2])
    twin = pickle.loads(pickle.dumps(few))
    with pytest.raises(TooLargeError, match="spill="):  # the folder is not its own
        twin.update(X, by=BY)
    assert not list(tmp_path.glob("*/*"))
    spilled = filled(memory=2 * LABEL, spill=tmp_path)
    with pytest.raises(InputError, match=r"labels lie in files.*Use save"):
        pickle.dumps(spilled)


# ------------------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("case", LABELS)
def test_files_hold_everything(case: str, tmp_path: Path) -> None:
    total, path = filled(by=LABELS[case](), weights=W), tmp_path / "total.npz"
    if case in ("bytes", "dates"):
        with pytest.raises(
            SavedStateError, match=r"is a (bytes|date), which the file cannot hold; expected texts"
        ):
            total.save(path)
        assert os.listdir(tmp_path) == []
        return
    total.save(path)
    loaded = vm.GroupAccumulator.load(path)
    assert state(loaded) == state(total)
    assert [type(label) for label in loaded.labels] == [type(label) for label in total.labels]
    assert (loaded.memory, loaded.nbytes) == (total.memory, total.nbytes)
    for one in (total, loaded):
        one.update(X, by=LABELS[case]())
    assert state(loaded) == state(total)
    agrees(loaded.score(ORDERS), total.score(ORDERS))


@pytest.mark.parametrize("label", [Fraction(1, 3), frozenset("a"), math.inf, (1, math.nan), (1, b"x"), 1j])
def test_labels_that_no_file_holds(label: Any, tmp_path: Path) -> None:
    total = vm.GroupAccumulator()
    total.update(X[:2], by=[(label,), (label,)] if isinstance(label, frozenset) else [label, label])
    assert float(total.score().at(0)) == pytest.approx(float(vm.score(X[:2])), rel=1e-10)
    with pytest.raises(SavedStateError, match="which the file cannot hold"):
        total.save(tmp_path / "total.npz")
    assert os.listdir(tmp_path) == []


def test_labels_of_all_kinds_in_one_file(tmp_path: Path) -> None:
    labels = [
        "a",
        "ü\ud800",
        "",
        1,
        -7,
        2**70,
        0.5,
        ("a", 1),
        ("a", ("b", 2.5)),
        "1",
        ("a",),
        ("x", np.int64(3)),
    ]
    total = vm.GroupAccumulator()
    total.update(np.eye(len(labels)), by=labels)
    total.save(tmp_path / "total.npz")
    assert vm.GroupAccumulator.load(tmp_path / "total.npz").labels == labels


def test_files_from_files(tmp_path: Path) -> None:
    """Spilled labels are saved, and loaded within the memory that there is."""
    total = filled(memory=2 * LABEL, spill=tmp_path / "spilled", precision="float64")
    total.save(tmp_path / "total.npz")
    with pytest.raises(TooLargeError, match="larger memory=, or spill="):
        vm.GroupAccumulator.load(tmp_path / "total.npz")
    for options in ({"spill": tmp_path / "again"}, {"memory": "1 MiB"}):
        loaded = vm.GroupAccumulator.load(tmp_path / "total.npz", **options)  # type: ignore[arg-type]
        assert loaded.nbytes <= loaded.memory
        assert state(loaded) == state(total)
        loaded.update(X, by=BY)
        agrees(loaded.score(), (filled() + filled(batch=N)).score())


def test_many_labels_in_one_file(tmp_path: Path) -> None:
    n = 3000
    total = vm.GroupAccumulator()
    total.update(
        np.tile(np.eye(3), (n // 3, 1)),
        by=[f"a rather long label for one item, number {i}" for i in range(n)],
    )
    total.save(tmp_path / "total.npz")
    assert state(vm.GroupAccumulator.load(tmp_path / "total.npz")) == state(total)


def test_files_with_functions(tmp_path: Path) -> None:
    total = filled(kernel=Embed(doubled))
    total.save(tmp_path / "total.npz")
    with pytest.raises(InputError, match=r"doubled.*pass it, GroupAccumulator.load\(path, kernel=Embed\("):
        vm.GroupAccumulator.load(tmp_path / "total.npz")
    with pytest.raises(MismatchError):
        vm.GroupAccumulator.load(tmp_path / "total.npz", Cosine())
    assert state(vm.GroupAccumulator.load(tmp_path / "total.npz", Embed(doubled))) == state(total)


def exchange(header: dict[str, Any], members: dict[str, bytes]) -> None:
    sums = [name for name in members if name.endswith("total.npy")]
    members[sums[0]], members[sums[1]] = members[sums[1]], members[sums[0]]


def in_label(**values: Any) -> Callable[..., None]:
    def changed(header: dict[str, Any], members: dict[str, bytes]) -> None:
        header["labels"][1].update(values)

    return changed


DAMAGE: dict[str, tuple[Callable[..., None], str]] = {
    "no labels": (say(labels=None), "it has no labels"),
    "odd labels": (say(labels=[1, 2]), "it has no labels"),
    "more labels": (
        lambda header, _: header["labels"].append(header["labels"][0] | {"label": "x"}),
        "it lacks",
    ),
    "a label twice": (
        lambda header, _: header["labels"][1].update(label=header["labels"][0]["label"]),
        "twice",
    ),
    "a label that is none": (in_label(label=None), "no label"),
    "a label that cannot be": (in_label(label={"a": 1}), "no label"),
    "a label inside a label": (in_label(label=[1, {"a": 1}]), "makes no sense|no label"),
    "another mass": (in_label(mass=1.0), "not fit its mass"),
    "another width": (in_label(width=3), "total is float64 of shape"),
    "no memory": (say(memory=0), "memory is 0"),
    "an array that is not finite": (put("0/total", lambda a: a * math.nan), "not finite"),
    "labels of an accumulator": (
        say(format="vendimeter accumulator"),
        "by Accumulator.save.*Use Accumulator.load",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_told(case: str, tmp_path: Path) -> None:
    change, message = DAMAGE[case]
    path = tmp_path / "total.npz"
    filled(by=BY % 2, batch=N).save(path)
    rewritten(path, lambda header, members: None)
    vm.GroupAccumulator.load(path)
    rewritten(path, change)
    with pytest.raises(SavedStateError, match=message):
        vm.GroupAccumulator.load(path)


def test_sums_that_changed_places(tmp_path: Path) -> None:
    path = tmp_path / "total.npz"
    filled(by=np.arange(N) % 2, batch=N).save(path)  # of one mass, so that only checksums tell them apart
    rewritten(path, exchange, sums=False)
    with pytest.raises(SavedStateError, match="not the array that was written"):
        vm.GroupAccumulator.load(path)


def test_damaged_bytes(tmp_path: Path) -> None:
    path = tmp_path / "total.npz"
    total = filled(by=["a", ("b", 1)] * (N // 2), batch=N)
    total.save(path)
    data, before = path.read_bytes(), state(total)
    for i in range(0, len(data), 7):
        path.write_bytes(data[:i] + bytes([data[i] ^ (1 << i % 8)]) + data[i + 1 :])
        try:
            found = state(vm.GroupAccumulator.load(path))
        except InputError:
            continue
        assert found == before, i
    for size in range(0, len(data), 211):
        path.write_bytes(data[:size])
        with pytest.raises(SavedStateError):
            vm.GroupAccumulator.load(path)


def test_the_file_is_a_plain_archive(tmp_path: Path) -> None:
    filled().save(tmp_path / "total.npz")
    with zipfile.ZipFile(tmp_path / "total.npz") as archive:
        assert all(name.endswith((".npy", "header.json")) for name in archive.namelist())
        assert archive.testzip() is None
