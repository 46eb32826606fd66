"""Which kernels are the same, down to the functions in them, and kernels from their description."""

from __future__ import annotations

import copy
import functools
import json
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import InputError, MismatchError
from vendimeter.kernels import (
    Cosine,
    Embed,
    Laplacian,
    On,
    Polynomial,
    ProbabilityProduct,
    RandomFeatures,
)
from vendimeter.kernels.description import describe, fingerprint, rebuild, same, shown

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 6)) + 0.3


def double_columns(rows: Any) -> np.ndarray:
    return np.hstack([rows, np.square(rows)])


def negated(rows: Any) -> np.ndarray:
    return -np.asarray(rows)


def filled(rows: Any = X, kernel: Any = "cosine", batch: int = 20, **options: Any) -> vm.Accumulator:
    total = vm.Accumulator(kernel, **options)
    for i in range(0, len(rows), batch):
        total.update(rows[i : i + batch])
    return total


def hashing() -> Any:
    return pytest.importorskip("sklearn.feature_extraction.text").HashingVectorizer(n_features=32)


class Scaled:
    """An encoder with a state."""

    def __init__(self, factor: float):
        self.factor, self.itself = factor, self

    def __call__(self, rows: Any) -> Any:
        return np.asarray(rows) * self.factor

    def encode(self, rows: Any) -> Any:
        return self(rows)


class Slots:
    __slots__ = ("factor",)

    def __init__(self, factor: float):
        self.factor = factor

    def __call__(self, rows: Any) -> Any:
        return np.asarray(rows) * self.factor


def scaled_by(factor: float) -> Callable[[Any], Any]:
    return lambda rows: np.asarray(rows) * factor


def with_default(factor: float) -> Callable[[Any], Any]:
    def encode(rows: Any, factor: float = factor) -> Any:
        return np.asarray(rows) * factor

    return encode


SAME: dict[str, tuple[Callable[[], Any], Callable[[], Any], bool]] = {
    "the same function": (lambda: negated, lambda: negated, True),
    "another function": (lambda: negated, lambda: double_columns, False),
    "functions of NumPy": (lambda: np.sqrt, lambda: np.square, False),
    "one function of NumPy": (lambda: np.sqrt, lambda: np.sqrt, True),
    "lambdas": (lambda: lambda x: x, lambda: lambda x: x, True),
    "other lambdas": (lambda: lambda x: x, lambda: lambda x: 2 * x, False),
    "lambdas with a name inside": (lambda: lambda x: np.sqrt(x), lambda: lambda x: np.square(x), False),
    "lambdas in lambdas": (
        lambda: lambda x: [(lambda y: y + 1)(z) for z in x],
        lambda: lambda x: [(lambda y: y + 2)(z) for z in x],
        False,
    ),
    "closures": (lambda: scaled_by(2.0), lambda: scaled_by(2.0), True),
    "closures over other values": (lambda: scaled_by(2.0), lambda: scaled_by(3.0), False),
    "closures over arrays": (lambda: scaled_by(X), lambda: scaled_by(X.copy()), True),  # type: ignore[arg-type]
    "closures over other arrays": (lambda: scaled_by(X), lambda: scaled_by(X + 1), False),  # type: ignore[arg-type]
    "defaults": (lambda: with_default(1.0), lambda: with_default(1.0), True),
    "other defaults": (lambda: with_default(1.0), lambda: with_default(2.0), False),
    "partials": (lambda: functools.partial(max, 1), lambda: functools.partial(max, 1), True),
    "partials of another function": (
        lambda: functools.partial(max, 1),
        lambda: functools.partial(min, 1),
        False,
    ),
    "partials with other values": (
        lambda: functools.partial(max, k=1),
        lambda: functools.partial(max, k=2),
        False,
    ),
    "objects": (lambda: Scaled(1.0), lambda: Scaled(1.0), True),
    "objects in another state": (lambda: Scaled(1.0), lambda: Scaled(2.0), False),
    "objects of another class": (lambda: Scaled(1.0), lambda: Slots(1.0), False),
    "objects with slots": (lambda: Slots(1.0), lambda: Slots(1.0), True),
    "objects with other slots": (lambda: Slots(1.0), lambda: Slots(2.0), False),
    "methods": (lambda: Scaled(1.0).encode, lambda: Scaled(1.0).encode, True),
    "methods of another object": (lambda: Scaled(1.0).encode, lambda: Scaled(2.0).encode, False),
    "getters": (lambda: operator.itemgetter(1), lambda: operator.itemgetter(2), False),
    "vectorizers": (lambda: hashing().transform, lambda: hashing().transform, True),
    "other vectorizers": (
        lambda: hashing().transform,
        lambda: hashing().set_params(ngram_range=(1, 2)).transform,
        False,
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_functions_are_told_apart(case: str) -> None:
    left, right, expected = SAME[case]
    assert same(Embed(left()), Embed(right())) is expected
    assert same(0.5 * Embed(left()) + 0.5 * Cosine(), 0.5 * Embed(right()) + 0.5 * Cosine()) is expected


def test_modules_of_torch_are_told_apart() -> None:
    torch = pytest.importorskip("torch")
    one, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    assert not same(Embed(one), Embed(other))
    assert same(Embed(one), Embed(copy.deepcopy(one)))
    other.load_state_dict(one.state_dict())
    assert same(Embed(one), Embed(other))


def test_kernels_that_are_no_dataclasses_are_told_apart() -> None:
    class Own(vm.kernels.Kernel):
        needs_all = None  # type: ignore[assignment]

        def __init__(self, factors: np.ndarray):
            self.factors = factors

        def build(self, samples: Any, rng: int) -> Any:
            return Cosine().build(samples * self.factors, rng)

    ones, twos = Own(np.ones(6)), Own(np.full(6, 2.0))
    assert same(ones, Own(np.ones(6)))
    assert not same(ones, twos)
    assert fingerprint(ones) == fingerprint(Own(np.ones(6))) != fingerprint(twos)
    assert (filled(kernel=ones) + filled(kernel=Own(np.ones(6)))).n == 180
    with pytest.raises(MismatchError, match="expected one kernel"):
        filled(kernel=ones) + filled(kernel=twos)


PLAIN = [
    Cosine(), Polynomial(2, offset=0.5), ProbabilityProduct(), On("a", Cosine()), On(("a", 1), Cosine()),
    0.5 * Cosine() + 0.5 * Polynomial(2), Cosine() * Polynomial(1), RandomFeatures(Laplacian(2.0), features=8),
]  # fmt: skip


@pytest.mark.parametrize("kernel", PLAIN, ids=repr)
def test_kernels_from_their_description(kernel: Any) -> None:
    text = json.dumps(describe(kernel))
    assert rebuild(json.loads(text)) == kernel
    assert fingerprint(rebuild(json.loads(text))) == fingerprint(kernel)


def test_fingerprints_do_not_depend_on_the_type_of_a_number() -> None:
    assert fingerprint(Polynomial(2, offset=1)) == fingerprint(Polynomial(2, offset=1.0))  # type: ignore[arg-type]
    assert fingerprint(Polynomial(2, offset=np.float64(1))) == fingerprint(Polynomial(2, offset=1.0))
    assert fingerprint(Polynomial(2, offset=0.5)) != fingerprint(Polynomial(2, offset=1.0))
    assert fingerprint(Embed(hashing().transform)) == fingerprint(Embed(hashing().transform))
    other = hashing().set_params(ngram_range=(1, 2))
    assert fingerprint(Embed(hashing().transform)) != fingerprint(Embed(other.transform))
    assert fingerprint(Embed(Scaled(1.0))) == fingerprint(Embed(Scaled(1.0)))  # no address in it


@pytest.mark.parametrize("kernel", PLAIN, ids=repr)
def test_what_is_shown_can_be_written(kernel: Any) -> None:
    text = shown(describe(kernel))
    assert eval(text, vars(vm.kernels)) == kernel
    assert shown(json.loads(json.dumps(describe(kernel)))) == text


def test_what_is_shown_of_functions() -> None:
    assert shown(describe(Embed(negated))).endswith("test_description.negated)")
    assert shown(describe(Embed(hashing().transform))) == (
        "Embed(sklearn.feature_extraction.text.HashingVectorizer.transform of HashingVectorizer(n_features=32))"
    )
    some = Embed(functools.partial(max, 1, key=np.ones(3)), Polynomial(2, offset=0.5), batch_size=3)
    inner = r"partial\(builtins.max, 1, key=<array <f8 \(3,\) \w{8}…>\)"
    assert re.fullmatch(
        rf"Embed\({inner}, Polynomial\(2, offset=0.5\), batch_size=3\)", shown(describe(some))
    )
    several = 0.5 * On("t", Embed(negated)) + 0.5 * On("u", Embed(double_columns, Polynomial(2)))
    assert shown(describe(several), yours=True) == (
        "0.5*On('t', Embed(your_encoder)) + 0.5*On('u', Embed(your_encoder, Polynomial(2)))"
    )
    with pytest.raises(
        InputError, match=r"own functions \(.*negated, .*double_columns\).*pass them, X.load\(path, "
    ):
        rebuild(describe(several), "X.load")


@pytest.mark.parametrize(
    "odd",
    [None, 3, [], {}, {"kernel": ["a"], "parameters": {}}, {"kernel": "sum", "parameters": {"factors": 3}},
     {"kernel": "x\n\x1b", "parameters": {"a": {"b": 1}}}, {"kernel": "embed", "parameters": {"encoder": {"with": 1}}},
     {"kernel": "own", "parameters": {"a": "b" * 1000, "c": [[1, None], {"array": 3}, {"value": "v"}]}}],
    ids=str,
)  # fmt: skip
def test_what_is_shown_of_anything(odd: Any) -> None:
    assert shown(odd).isprintable()
    assert len(shown(odd)) <= 240
    with pytest.raises(InputError, match=r"does not describe a kernel.*kernel=your_kernel"):
        rebuild(odd)


def test_estimators_are_the_same_for_what_they_are_and_have_learnt():
    """Two workers have used their own copies, which remember things that differ from process to process."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    used, fresh = text.HashingVectorizer(n_features=64), text.HashingVectorizer(n_features=64)
    used.transform(["a b"])
    used._stop_words_id = 1
    assert same(Embed(used.transform), Embed(fresh.transform))
    assert not same(Embed(used.transform), Embed(text.HashingVectorizer(n_features=32).transform))
    one, other = (
        text.TfidfVectorizer().fit(["a cat", "a dog"]),
        text.TfidfVectorizer().fit(["a cat", "the cat"]),
    )
    assert not same(Embed(one.transform), Embed(other.transform))
    again = text.TfidfVectorizer().fit(["a cat", "a dog"])
    assert same(Embed(one.transform), Embed(again.transform))
