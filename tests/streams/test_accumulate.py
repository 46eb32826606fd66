"""Accumulators beside the score of all items at once, over the libraries of arrays; and what they refuse."""

from __future__ import annotations

import copy
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from accumulators import X, filled, hashing, state
from array_libraries import Library
from vendimeter.data import devices
from vendimeter.errors import (
    EmptyError,
    InputError,
    MismatchError,
    TooLargeError,
    UnknownNameError,
)
from vendimeter.kernels import (
    RBF,
    Cosine,
    Embed,
    FromDistances,
    FromFunction,
    Jaccard,
    Laplacian,
    Match,
    NGram,
    On,
    Polynomial,
    Precomputed,
    ProbabilityProduct,
    RandomFeatures,
)
from vendimeter.streams.accumulator import HELD, WIDEST

ORDERS = [0, 0.5, 1, 2, 3, "inf"]
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(5), size=90)
W = RNG.random(90) + 0.1
TEXTS = [f"{a} {b} {c}" for a in ("red", "blue", "green") for b in ("cat", "dog") for c in "uvwxyz"]


def double_columns(rows: Any) -> np.ndarray:
    return np.hstack([rows, np.square(rows)])


def negated(rows: Any) -> np.ndarray:
    return -np.asarray(rows)


def agrees(found: vm.Profile, expected: vm.Profile) -> None:
    for q, score in expected.items():
        assert float(found[q]) == pytest.approx(float(score), rel=1e-10)
        assert found[q].level == score.level
        assert found[q].n == score.n
        if score.level != "none":
            assert found[q].bounds[0] <= score.bounds[1]
            assert score.bounds[0] <= found[q].bounds[1]


# ----------------------------------------------------------------------------------------------------------- kernels


def part_of(samples: Any, start: int, stop: int) -> Any:
    if isinstance(samples, dict):
        return {name: column[start:stop] for name, column in samples.items()}
    return samples[start:stop]


TABLE = {"vector": X.tolist(), "classes": P.tolist(), "colour": ["red"] * 90}
KERNELS: dict[str, tuple[Any, Callable[[], Any]]] = {
    "cosine by name": (X, lambda: "cosine"),
    "cosine, float32": (X.astype(np.float32), Cosine),
    "cosine, whole numbers": (np.round(9 * X).astype(np.int32) + 50, Cosine),
    "cosine, lists": (X.tolist(), Cosine),
    "cosine, sparse": (sparse.csr_array(np.where(np.abs(X) > 0.4, X, 0.0) + np.eye(90, 6)), Cosine),
    "cosine, huge and tiny rows": (X * np.geomspace(1e-200, 1e200, 90)[:, None], Cosine),
    "cosine, wide": (RNG.standard_normal((40, 200)), Cosine),
    "polynomial": (X[:, :3], lambda: Polynomial(2)),
    "polynomial, degree 1": (X, lambda: Polynomial(1, offset=0)),
    "polynomial, sparse": (sparse.csr_array(X), lambda: Polynomial(1)),
    "polynomial, wider than there are items": (X[:30], lambda: Polynomial(2)),
    "probability product": (P, ProbabilityProduct),
    "embed": (X, lambda: Embed(double_columns)),
    "embed, batches": (X, lambda: Embed(double_columns, Polynomial(2, offset=0), batch_size=7)),
    "embed, hashed texts": (TEXTS, lambda: Embed(hashing().transform)),
    "on": (TABLE, lambda: On("vector", Cosine())),
    "sum": (X, lambda: 0.25 * Cosine() + 0.75 * Polynomial(2)),
    "sum over a table": (
        TABLE,
        lambda: 0.5 * On("vector", Cosine()) + 0.5 * On("classes", ProbabilityProduct()),
    ),
    "product": (X[:, :4], lambda: Cosine() * Polynomial(1)),
    "product over a table": (TABLE, lambda: On("vector", Cosine()) * On("classes", ProbabilityProduct())),
    "random features": (X, lambda: RandomFeatures(RBF(2.0), features=64)),
    "random features of a column": (
        TABLE,
        lambda: On("vector", RandomFeatures(Laplacian(2.0), features=32)),
    ),
    "random features of numbers": (X[:, 0], lambda: RandomFeatures(RBF(1.0), features=32)),
    "sum with random features": (X, lambda: 0.5 * Cosine() + 0.5 * RandomFeatures(RBF(2.0), features=16)),
}


@pytest.mark.parametrize("case", KERNELS)
@pytest.mark.parametrize("batch", [4, 1000])
def test_kernels(case: str, batch: int) -> None:
    samples, make = KERNELS[case]
    kernel = make()
    n = 90 if isinstance(samples, dict) else samples.shape[0] if hasattr(samples, "shape") else len(samples)
    total = vm.Accumulator(kernel)
    for i in range(0, n, batch):
        total.update(part_of(samples, i, i + batch))
    agrees(
        total.score(ORDERS),
        vm.profile(samples, Cosine() if kernel == "cosine" else kernel, q=ORDERS),
    )
    assert total.score().diagnostics["kernel"] == repr(total.kernel)


@pytest.mark.parametrize("case", ["cosine by name", "cosine, sparse", "cosine, wide", "random features"])
def test_weights_and_counts(case: str) -> None:
    samples, make = KERNELS[case]
    n = samples.shape[0]
    weights, counts = W[:n] / W[:n].sum(), np.arange(n) % 4
    for name, given in (("weights", weights), ("counts", counts)):
        total = vm.Accumulator(make())
        for i in range(0, n, 7):
            total.update(samples[i : i + 7], **{name: given[i : i + 7]})
        agrees(total.score(ORDERS), vm.profile(samples, make(), q=ORDERS, **{name: given}))
        assert total.mass == pytest.approx(given.sum())


def test_tables_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"vector": list(X), "other": 1})
    total = vm.Accumulator(On("vector", Cosine()))
    for i in range(0, 90, 30):
        total.update(table[i : i + 30], weights=pandas.Series(W[i : i + 30], index=table.index[i : i + 30]))
    total.update(table[:0])
    agrees(total.score(ORDERS), vm.profile(X, q=ORDERS, weights=W / W.sum()))
    with pytest.raises(InputError, match="another order"):
        total.update(table, weights=pandas.Series(W, index=table.index[::-1]))


# ----------------------------------------------------------------------------------------- what it says of itself


def test_any_order_at_any_time() -> None:
    total = vm.Accumulator()
    for i in range(0, 90, 9):
        total.update(X[i : i + 9])
        for q in (0, 0.3, 1, 2, 1e6, "inf", math.inf):
            assert float(total.score(q)) == pytest.approx(float(vm.score(X[: i + 9], q=q)), rel=1e-10)
        assert list(total.score([0, 1])) == [0, 1]
        assert len(total.profile()) == 8
    with pytest.raises(InputError, match="not an order"):
        total.score(-1)


def test_numbers_of_itself() -> None:
    total = vm.Accumulator()
    assert (total.n, total.updates, total.mass, total.width, total.nbytes) == (0, 0, 0.0, None, 0)
    assert repr(total) == "Accumulator(Cosine(), n=0)"
    total.update(X[:2])
    assert (total.n, total.updates, total.mass, total.width, total.held) == (2, 1, 2.0, 6, "dense")
    assert total.nbytes == 8 * 2 * 6
    total.update(X[2:10], weights=np.full(8, 0.5))
    assert (total.n, total.updates, total.mass, total.held) == (10, 2, 6.0, "sum")
    assert total.nbytes == 8 * 6 * 6
    total.update(X[:2], counts=[3, 4])
    assert (total.n, total.updates, total.mass) == (17, 3, 13.0)
    total.update(X[:0])
    assert (total.n, total.updates, total.mass) == (17, 4, 13.0)
    assert repr(total) == "Accumulator(Cosine(), n=17, width=6)"
    assert "6×6 matrix of features, accumulated over 4 updates" in total.score().diagnostics["reason"]


def test_a_score_is_kept_until_something_is_added() -> None:
    total = filled()
    assert total.score().spectrum is total.score(2).spectrum
    first = float(total.score())
    total.update(np.eye(6))
    assert float(total.score()) != first
    assert float((total + total).score()) == pytest.approx(float(total.score()))


def test_rows_are_those_of_the_moment() -> None:
    """The user's arrays may change afterwards."""
    for n in (2, 50):
        rows, weights, total = X[:n].copy(), W[:n].copy(), vm.Accumulator()
        total.update(rows, weights=weights)
        rows[:], weights[:] = 1.0, 1.0
        expected = vm.score(X[:n], weights=W[:n] / W[:n].sum())
        assert float(total.score()) == pytest.approx(float(expected), rel=1e-10)
    data = sparse.csr_array(X[:2])
    total = vm.Accumulator()
    total.update(data)
    data.data[:] = 1.0
    assert float(total.score()) == pytest.approx(float(vm.score(X[:2])), rel=1e-10)


@pytest.mark.parametrize("n", [2, 50])
def test_items_of_no_weight_are_absent(n: int) -> None:
    rows, weights = X[:n].copy(), W[:n].copy()
    rows[0], weights[0] = np.nan, 0.0  # as in vendimeter.score
    total = vm.Accumulator()
    total.update(rows, weights=weights)
    agrees(total.score(ORDERS), vm.profile(rows, q=ORDERS, weights=weights / weights.sum()))
    assert total.n == n


@pytest.mark.parametrize("n", [1, 50])
def test_nothing_but_no_weight(n: int, tmp_path: Path) -> None:
    total = vm.Accumulator()
    with pytest.raises(EmptyError, match="no item was added"):
        total.score()
    total.update(X[:n], weights=np.zeros(n))
    with pytest.raises(EmptyError, match="every item has weight 0"):
        total.score()
    total.save(tmp_path / "total.npz")
    total = vm.Accumulator.load(tmp_path / "total.npz")
    assert (total.n, total.mass, total.held) == (n, 0.0, "nothing")
    assert (total + total).n == 2 * n
    total.update(X)
    assert float(total.score()) == pytest.approx(float(vm.score(X)), rel=1e-10)
    total.update(X[:n], weights=np.zeros(n))
    assert float(total.score()) == pytest.approx(float(vm.score(X)), rel=1e-10)


EMPTY_BATCHES = [np.empty((0, 6)), [], (), sparse.csr_array((0, 6)), np.empty((0, 99))]


@pytest.mark.parametrize("batch", EMPTY_BATCHES, ids=lambda batch: type(batch).__name__)
def test_empty_batches(batch: Any) -> None:
    total = filled()
    before = state(total)
    total.update(batch)
    total.update(batch, weights=[])
    assert total.updates == before[0]["updates"] + 2
    total.updates -= 2
    assert state(total) == before
    with pytest.raises(InputError, match="1 entries and there are 0 items"):
        total.update(batch, weights=[1.0])


def test_empty_tables() -> None:
    total = vm.Accumulator(On("vector", Cosine()))
    total.update({"vector": []})
    total.update([])
    assert (total.n, total.updates) == (0, 2)


def test_sparse_rows_are_kept_while_they_take_less_than_their_sum() -> None:
    """Many items of few entries, before and after a dense batch; memory never grows beyond the sum's."""
    rows = sparse.random_array((600, 60), density=0.01, rng=np.random.default_rng(0), format="csr")
    rows = sparse.csr_array(rows + sparse.csr_array((np.ones(600), (np.arange(600), np.arange(600) % 60))))
    total, kinds = vm.Accumulator(), set()
    for i in range(0, 600, 10):
        total.update(rows[i : i + 10])
        kinds.add(total.held)
        assert total.nbytes <= 8 * 60 * 60
    assert kinds == {"sparse", "sum"}
    agrees(total.score(ORDERS), vm.profile(rows, q=ORDERS))

    mixed = vm.Accumulator()
    mixed.update(rows[:100])
    assert mixed.held == "sparse"
    mixed.update(rows[100:101].toarray())
    assert mixed.held == "sum"  # dense, they would take more than their sum
    agrees(mixed.score(ORDERS), vm.profile(rows[:101], q=ORDERS))
    few = vm.Accumulator()
    few.update(rows[:5])
    few.update(rows[5:10].toarray())
    few.update(rows[10:20])
    assert few.held == "dense"
    agrees(few.score(ORDERS), vm.profile(rows[:20], q=ORDERS))


# ------------------------------------------------------------------------------------------------- what is refused

REFUSED: dict[str, tuple[Any, str]] = {
    "rbf": (RBF(2.0), r"RBF\(sigma=2.0\) cannot .*infinitely many.* RandomFeatures\(RBF\((sigma=)?2"),
    "rbf, median": ("rbf", r"infinitely many.* RandomFeatures\(RBF\("),
    "laplacian": (Laplacian(0.5), r"infinitely many.* RandomFeatures\(Laplacian\((scale=)?0.5\)\)"),
    "random features, median": (
        RandomFeatures(RBF()),
        r"Fix it .*first: .*kernel.fit\(sample\)",
    ),
    "jaccard": ("jaccard", "no finite features. Score a random sample"),
    "match": ("match", "one column a value.*Counter"),
    "n-gram": (NGram(), "one column an n-gram.*HashingVectorizer"),
    "precomputed": ("precomputed", "matrix of all pairs.*embeddings"),
    "distances": (FromDistances(), "matrix of all pairs.*embeddings"),
    "function": (lambda a, b: 1.0, "in pairs and has no features. Use Embed"),
    "block function": (FromFunction(negated, block=True), "in pairs"),
    "inside a column": (On("colour", Match()), "one column a value"),
    "behind an encoder": (Embed(negated, RBF(1.0)), "infinitely many"),
    "in a sum": (0.5 * Cosine() + 0.5 * Jaccard(), "no finite features"),
    "in a product": (Cosine() * Precomputed(), "matrix of all pairs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_kernels(case: str) -> None:
    kernel, message = REFUSED[case]
    for make in (vm.Accumulator, vm.GroupAccumulator, functools.partial(vm.score_stream, [X])):
        with pytest.raises(InputError, match=message) as caught:
            make(kernel)
        assert "cannot be accumulated: it" in str(caught.value)


def test_a_kernel_of_the_users_own_is_refused_unless_it_says_that_it_may() -> None:
    class Own(Cosine):
        needs_all = vm.kernels.Kernel.needs_all

    with pytest.raises(InputError, match="does not say that its features mean the same in every batch"):
        vm.Accumulator(Own())


def test_options() -> None:
    with pytest.raises(UnknownNameError, match="precision"):
        vm.Accumulator(precision="float16")
    with pytest.raises(InputError, match="rng"):
        vm.Accumulator(rng=-1)
    with pytest.raises(UnknownNameError, match="cosine"):
        vm.Accumulator("cosin")


def test_the_width_has_a_limit() -> None:
    total = vm.Accumulator()
    with pytest.raises(TooLargeError, match=f"{WIDEST + 1} columns.* 2 GiB.*random projection"):
        total.update(sparse.csr_array(np.eye(2, WIDEST + 1)))
    total = vm.Accumulator(Polynomial(4))
    with pytest.raises(TooLargeError, match="12960000 columns"):
        total.update(np.ones((3, 59)))
    assert total.width is None
    total.update(np.eye(3))
    assert total.width == 256


REFUSED_BATCHES: dict[str, tuple[dict[str, Any], str]] = {
    "not finite": ({"samples": np.where(X[5, 2] == X, np.nan, X)}, "item 5 holds the value nan"),
    "a row of zeros": ({"samples": X * (np.arange(90) != 7)[:, None]}, "item 7 is all zeros"),
    "another width": ({"samples": X[:, :5]}, "features of 5 columns and the ones before had 6"),
    "texts": ({"samples": ["a", "b"]}, "strings"),
    "numbers": ({"samples": X[:, 0]}, "one vector a row"),
    "a number": ({"samples": 3.0}, "without a length"),
    "nothing": ({"samples": None}, "without a length"),
    "too few weights": ({"samples": X, "weights": W[1:]}, "weights has 89 entries and there are 90 items"),
    "too many counts": ({"samples": X[1:], "counts": np.ones(90)}, "counts has 90 entries"),
    "weights of a set": ({"samples": {1, 2}, "weights": [1, 2]}, "no order"),
    "weights not finite": ({"samples": X[:2], "weights": [1, math.nan]}, r"weights\[1\] is nan"),
    "weights infinite": ({"samples": X[:2], "weights": [math.inf, 1]}, r"weights\[0\] is inf"),
    "weights negative": ({"samples": X[:2], "weights": [1, -1]}, r"weights\[1\] is -1"),
    "weights too large": ({"samples": X[:2], "weights": [1, 1e301]}, "1e.301"),
    "fractions as counts": ({"samples": X[:2], "counts": [1, 1.5]}, r"counts\[1\] is 1.5"),
    "weights and counts": ({"samples": X, "counts": W, "weights": W}, "both weights and counts"),
    "more than can be counted": ({"samples": X[:2], "counts": [1e19, 1]}, "1e.19 items.*weights="),
}


BEFORE = [
    (case, held) for case in REFUSED_BATCHES for held in HELD if (case, held) != ("another width", HELD[0])
]


@pytest.mark.parametrize(("case", "held"), BEFORE)
def test_a_refused_batch_changes_nothing(case: str, held: str) -> None:
    arguments, message = REFUSED_BATCHES[case]
    total = vm.Accumulator()
    if held != "nothing":
        total.update(sparse.csr_array(X[:1]) if held == "sparse" else X[: 2 if held == "dense" else 50])
    assert total.held == held
    before = state(total)
    with pytest.raises(InputError, match=message):
        total.update(**arguments)
    assert state(total) == before


def test_weights_beyond_all_range() -> None:
    total = vm.Accumulator()
    total.update(X, weights=np.full(90, 1e300))
    for _ in range(10):
        total.merge(total)
    before = state(total)
    with pytest.raises(InputError, match=r"would sum to .*divide them all by one number"):
        total.merge(total)
    assert state(total) == before
    assert float(total.score()) == pytest.approx(float(vm.score(X)), rel=1e-10)
    total = vm.Accumulator()
    total.update(X[:2], counts=[2**62, 0])
    with pytest.raises(InputError, match="smaller counts"):
        total.merge(total)
    assert total.n == 2**62


def test_a_failing_encoder_changes_nothing() -> None:
    def encoder(rows: np.ndarray) -> np.ndarray:
        if len(rows) == 3:
            raise RuntimeError("out of luck")
        return rows

    total = vm.Accumulator(Embed(encoder))
    total.update(X[:50])
    before = state(total)
    with pytest.raises(RuntimeError, match="out of luck"):
        total.update(X[:3])
    assert state(total) == before


# ---------------------------------------------------------------------------------------------------------- merging


def mates() -> Iterator[tuple[str, vm.Accumulator, Any, str]]:
    single = {"precision": "float32"}
    yield "another kernel", filled(), filled(kernel=Polynomial(1, offset=0)), "the kernels Cosine.*Polynomial"
    yield (
        "another parameter",
        filled(kernel=Polynomial(2)),
        filled(kernel=Polynomial(3)),
        "expected one kernel",
    )
    yield "another width", filled(), filled(X[:, :5]), "features of 6 and 5 columns"
    yield "another precision", filled(), filled(**single), "in float64 .* in float32"
    yield "another seed", filled(**single), filled(**single, rng=1), "rng=0 .* rng=1"
    yield "no accumulator", filled(), 3, "merged with 3"
    yield "groups", filled(), vm.GroupAccumulator(), "merged with"
    yield (
        "other features",
        filled(kernel=RandomFeatures(RBF(1.0), features=16)),
        filled(kernel=RandomFeatures(RBF(1.0), features=16, seed=1)),
        "expected one kernel",
    )


@pytest.mark.parametrize("case", list(mates()), ids=lambda case: case[0])
def test_what_does_not_belong_together(case: tuple[str, vm.Accumulator, Any, str]) -> None:
    _, left, right, message = case
    before = state(left)
    with pytest.raises(MismatchError, match=message):
        left.merge(right)
    with pytest.raises(MismatchError, match=message):
        left.merge(left.copy(), right)  # all are looked at before any is added
    assert state(left) == before
    if isinstance(right, vm.Accumulator):
        with pytest.raises(MismatchError):
            left + right
        with pytest.raises(MismatchError):
            right.merge(left)
        with pytest.raises(MismatchError):
            sum([left, right])
        assert state(left) == before


def test_widths_that_only_the_others_have() -> None:
    total = vm.Accumulator()
    with pytest.raises(MismatchError, match="6 and 5 columns"):
        total.merge(filled(), filled(X[:, :5]))
    assert total.width is None
    assert total.n == 0


def test_operators_with_other_things() -> None:
    total = filled()
    for other in (1, 1.5, "a", None, [total]):
        with pytest.raises(TypeError):
            total + other
        with pytest.raises(TypeError):
            other + total  # type: ignore[operator]
        with pytest.raises(TypeError):
            total += other
    before = state(total)
    assert state(0 + total) == state(total + 0) == before
    same = total
    same += 0
    assert same is total
    assert state(total) == before
    for several in ([total, total], (total,)):
        with pytest.raises(MismatchError, match=r"expected another accumulator. Use merge\(\*list\)"):
            total.merge(several)  # type: ignore[arg-type]


def test_merging_with_one_that_has_seen_nothing() -> None:
    """The state of a vectorizer that was used differs from that of one that was not."""
    vectorizer = pytest.importorskip("sklearn.feature_extraction.text").HashingVectorizer
    full, other, empty, blank = (
        vm.Accumulator(Embed(vectorizer(n_features=256).transform)) for _ in range(4)
    )
    texts = ["a dog runs", "two boats at sea", "a dog sleeps"]
    full.update(texts)
    other.update(texts[::-1])
    blank.update([])
    expected = full + other
    for parts in itertools.permutations([full, other, empty, blank]):
        for total in (
            sum(parts),
            vm.Accumulator(full.kernel).merge(*parts),
            parts[0].copy().merge(*parts[1:]),
        ):
            assert total.n == 6
            assert float(total.score()) == pytest.approx(float(expected.score()), rel=1e-12)
    longer = vm.Accumulator(Embed(vectorizer(n_features=512).transform))
    for one in (full, empty):
        with pytest.raises(MismatchError, match=r"n_features=256.*n_features=512.*expected one kernel"):
            one + longer


def test_kernels_that_print_alike() -> None:
    one, two = (vm.Accumulator(Embed(scaled(factor))) for factor in (1.0, 2.0))
    one.update(X)
    two.update(X)
    message = (
        r"a kernel Embed\(.*but the functions inside differ in their code or state.*Use one encoder for all"
    )
    with pytest.raises(MismatchError, match=message):
        one + two
    with pytest.raises(MismatchError, match=message):
        vm.Accumulator(Embed(scaled(1.0))).merge(one, two)  # the others have to fit each other too


def scaled(factor: float) -> Any:
    return lambda rows: factor * np.asarray(rows)


def test_batches_of_one_item_are_joined() -> None:
    """An object an item would take more than the items."""
    for rows in (RNG.standard_normal((60, 200)), sparse.random_array((60, 200), density=0.1, rng=0).tocsr()):
        total = vm.Accumulator()
        for i in range(60):
            total.update(rows[i : i + 1], weights=None if i < 20 else [0.5])
        assert [part.count for part in total._kept] == [32, 16, 8, 4]
        weights = np.where(np.arange(60) < 20, 1, 0.5)
        expected = vm.score(rows, weights=weights / weights.sum())
        assert float(total.score()) == pytest.approx(float(expected), rel=1e-12)
        assert total.mass == 40.0


def test_different_seeds_may_meet_in_float64() -> None:
    assert (filled(rng=1) + filled(rng=2)).n == 180


@pytest.mark.parametrize("duplicate", [vm.Accumulator.copy, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("n", [2, 90])
def test_copies_grow_by_themselves(duplicate: Callable[[Any], Any], n: int) -> None:
    total = filled(X[:n])
    before = state(total)
    twin = duplicate(total)
    assert state(twin) == before
    twin.update(X[:1])
    twin.update(np.eye(6))
    assert state(total) == before
    total.update(X[:3])
    assert twin.n == n + 7


# ----------------------------------------------------------------------------------------------- libraries of arrays


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("n", [20, 120])
def test_libraries(library: Library, n: int, precision: str, tmp_path: Path) -> None:
    rows, weights = RNG.standard_normal((n, 50)), RNG.random(n)
    weights[3] = 0.0
    total, plain = (vm.Accumulator(precision=precision) for _ in range(2))
    for part in np.array_split(np.arange(n), 5):
        total.update(library.array(rows[part]), weights=library.array(weights[part]))
    plain.update(rows[: n // 2], weights=weights[: n // 2])
    expected = vm.profile(rows, q=ORDERS, weights=weights / weights.sum())
    total.save(tmp_path / "total.npz")
    loaded = vm.Accumulator.load(tmp_path / "total.npz")
    assert state(loaded) == state(total)
    for found in (total, loaded, total.copy(), total + total):
        for q, score in found.score(ORDERS).items():
            assert score.bounds[0] * (1 - 1e-13) <= expected[q] <= score.bounds[1] * (1 + 1e-13)
            if q >= 1:
                exact = precision == "float64" or found.held == "dense"
                assert float(score) == pytest.approx(float(expected[q]), rel=1e-10 if exact else 1e-4)
    both = np.concatenate([weights, weights[: n // 2]])
    expected = vm.score(np.concatenate([rows, rows[: n // 2]]), weights=both / both.sum())
    for found in (total + plain, plain + total, loaded + plain):  # of different libraries
        score = found.score()
        assert score.bounds[0] * (1 - 1e-13) <= expected <= score.bounds[1] * (1 + 1e-13)


@pytest.mark.parametrize("case", ["polynomial", "probability product", "sum", "product", "random features"])
def test_kernels_of_libraries(library: Library, case: str) -> None:
    samples, make = KERNELS[case]
    total = vm.Accumulator(make())
    for i in range(0, 90, 30):
        total.update(library.array(samples[i : i + 30]))
    agrees(total.score(ORDERS), vm.profile(samples, make(), q=ORDERS))


def test_jax_in_its_32_bit_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    monkeypatch.setattr(devices, "SHARE_HOST", False)
    rows = X.astype(np.float32)
    for n in (3, 90):
        total = vm.Accumulator()
        for i in range(0, n, 2):
            total.update(jax.numpy.asarray(rows[:n][i : i + 2]))
        total.save(tmp_path / "total.npz")
        loaded, twin = vm.Accumulator.load(tmp_path / "total.npz"), total.copy()
        for found in (total, twin, total + total, loaded, loaded + total, total + loaded):
            assert float(found.score()) == pytest.approx(float(vm.score(rows[:n])), rel=1e-10)
        twin.update(rows)  # of NumPy, after those of JAX
        expected = vm.score(np.concatenate([rows[:n], rows]))
        assert float(twin.score()) == pytest.approx(float(expected), rel=1e-10)
    groups = vm.GroupAccumulator()
    groups.update(jax.numpy.asarray(rows[:50]), by=np.arange(50) % 9)
    groups.update(rows[50:], by=np.arange(50, 90) % 9)
    expected = vm.score_groups(rows, by=np.arange(90) % 9)
    np.testing.assert_allclose(groups.score().scores, expected.scores, rtol=1e-10)
    assert not jax.config.jax_enable_x64
