"""Errors say in fields what they are about, and put their messages together from these."""

import copy
import inspect
import pickle
import traceback

import numpy as np
import pytest

import vendimeter as vm
from vendimeter import errors
from vendimeter.data.collection import Collection
from vendimeter.errors import (
    AsymmetryError,
    DiagonalError,
    IndefiniteError,
    InputError,
    MissingDependencyError,
    TooLargeError,
    UnknownNameError,
    VendimeterError,
)
from vendimeter.messages import about, in_group

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, VendimeterError)]
FIELDS = {"item": 3, "place": "line 4 of 'x.csv'", "collection": "reference", "option": "kernel"}


def fields_of(error: VendimeterError) -> dict[str, object]:
    return {name: getattr(error, name) for name in FIELDS}


class TwoParts(InputError):
    """An error with another signature, and without the constructor of its base."""

    def __init__(self, seen: str, expected: str):
        Exception.__init__(self, seen, expected)

    def __reduce__(self):
        return type(self), self.args, self.__dict__


# ------------------------------------------------------------------------------------------------------ the messages


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("item 3 is empty", {}, "item 3 is empty"),
        ("item 3 is empty", {"item": 3}, "item 3 is empty"),
        ("item 3 is empty", {"item": 3, "place": "line 4"}, "item 3 (line 4) is empty"),
        ("item 3: empty", {"item": 3, "place": "line 4"}, "item 3 (line 4): empty"),
        ("a gap in item 3", {"item": 3, "place": "line 4"}, "a gap in item 3 (line 4)"),
        ("item 31 and item 3 differ", {"item": 3, "place": "line 4"}, "item 31 and item 3 (line 4) differ"),
        ("item 3 and item 3", {"item": 3, "place": "line 4"}, "item 3 (line 4) and item 3"),
        ("it is empty", {"item": 3}, "item 3: it is empty"),
        ("it is empty", {"item": 3, "place": "line 4"}, "item 3 (line 4): it is empty"),
        ("'item 3.png' is empty", {"item": 3, "place": "line 4"}, "item 3 (line 4): 'item 3.png' is empty"),
        ("it is empty", {"place": "line 4"}, "line 4: it is empty"),
        ("it is empty", {"collection": "reference", "option": "by"}, "reference: it is empty"),
        ("item 3 is empty", FIELDS, "reference: item 3 (line 4 of 'x.csv') is empty"),
        ("it is empty", FIELDS, "reference: item 3 (line 4 of 'x.csv'): it is empty"),
    ],
)
def test_messages_are_put_together(text, given, message):
    assert str(InputError(text, **given)) == message
    assert str(InputError(text).at(**given)) == message


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_the_fields(kind):
    error = kind("item 3 is {odd}", **FIELDS)
    assert fields_of(error) == FIELDS
    assert str(error) == "reference: item 3 (line 4 of 'x.csv') is {odd}"
    assert error.args == ("item 3 is {odd}",)
    assert fields_of(kind("it is odd")) == dict.fromkeys(FIELDS)
    assert str(kind()) == ""


def test_what_is_known_stays():
    error = InputError("item 3 is empty", **FIELDS)
    assert error.at(item=5, place="line 6", option="by") is error
    assert fields_of(error) == FIELDS
    assert fields_of(InputError("it is empty").at().at(item=np.int64(3))) == dict.fromkeys(FIELDS) | {
        "item": 3
    }
    assert type(InputError("it is empty", item=np.int64(3)).item) is int


def test_collections_hold_one_another():
    error = InputError("it is empty", collection="group 'a'").at(collection="reference")
    assert error.collections == ("reference", "group 'a'")
    assert error.collection == "reference: group 'a'"
    assert str(error) == "reference: group 'a': it is empty"
    with (
        pytest.raises(UnknownNameError, match=r"^reference: group 3: there is no x$"),
        about("reference"),
        in_group(3),
    ):
        raise UnknownNameError("there is no x")


# ----------------------------------------------------------------------------------------------- as other exceptions


@pytest.mark.parametrize("kind", [*KINDS, TwoParts])
def test_copies_keep_everything(kind):
    error = kind("a", "b") if kind is TwoParts else kind("item 3 is empty")
    error.at(**FIELDS).add_note("Look at it.")
    for twin in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is kind
        assert fields_of(twin) == FIELDS
        assert (str(twin), twin.args, twin.__notes__) == (str(error), error.args, ["Look at it."])


def test_other_signatures():
    with pytest.raises(TwoParts) as caught, about("reference", item=2):
        raise TwoParts("a list", "a text")
    assert str(caught.value) == "reference: item 2: ('a list', 'a text')"


def test_builtin_kinds_keep_what_they_have():
    assert MissingDependencyError("install it").msg == "install it"
    assert isinstance(TooLargeError("too large"), MemoryError)
    assert isinstance(UnknownNameError("no x"), KeyError)


def test_the_traceback_and_the_cause_survive():
    def fails():
        raise InputError("item 0 is empty", item=0) from OSError("no disk")

    with (
        pytest.raises(InputError) as caught,
        Collection(["a"], place="line {}".format).placed(),
        about("reference"),
    ):
        fails()
    assert str(caught.value) == "reference: item 0 (line 0) is empty"
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fails"
    assert isinstance(caught.value.__cause__, OSError)


# -------------------------------------------------------------------------------------------------- what raises them


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        (lambda: vm.score([[1.0, 2.0], [np.nan, 1.0]]), InputError, {"item": 1}),
        (lambda: vm.score([{"a"}, 3], "jaccard"), InputError, {"item": 1}),
        (lambda: vm.score(["a", "b"], "match", weights=[1, 1]), InputError, {"option": "weights"}),
        (lambda: vm.score(["a", "b"], "match", counts=[1, 0.5]), InputError, {"option": "counts"}),
        (lambda: vm.score(["a", "b"]), InputError, {"option": "kernel"}),
        (lambda: vm.score(2 * np.eye(2), "precomputed"), DiagonalError, {"option": "normalize"}),
        (lambda: vm.score([[1, 0.5], [0, 1]], "precomputed"), AsymmetryError, {"option": "symmetrize"}),
        (
            lambda: vm.score(2 * np.ones((3, 3)) - np.eye(3), "precomputed"),
            IndefiniteError,
            {"option": "project"},
        ),
        (lambda: vm.score(["a"], "match", rng=-1), InputError, {"option": "rng"}),
        (
            lambda: vm.score_groups({"a": [[1.0, 2.0]], "b": [[0.0, 1.0], [0.0, 0.0]]}),
            InputError,
            {"item": 1, "collection": "group 'b'"},
        ),
        (
            lambda: vm.metrics.frechet_distance(np.eye(3), [[0.0, 1.0, 2.0], [0.0, 1.0, np.inf]]),
            InputError,
            {"item": 1, "collection": "reference"},
        ),
        (
            lambda: vm.score_stream([np.eye(3), np.zeros((1, 3))]),
            InputError,
            {"item": 0, "collection": "shard 1"},
        ),
    ],
)
def test_what_errors_are_about(call, kind, expected):
    with pytest.raises(kind) as caught:
        call()
    assert fields_of(caught.value) == dict.fromkeys(FIELDS) | expected


@pytest.mark.parametrize(
    ("call", "collection"),
    [
        (lambda good, bad: vm.score(vm.read(bad)), None),
        (lambda good, bad: vm.score_stream(bad), None),
        (lambda good, bad: vm.metrics.frechet_distance(vm.read(bad), vm.read(good)), None),
        (lambda good, bad: vm.metrics.frechet_distance(vm.read(good), vm.read(bad)), "reference"),
        (lambda good, bad: vm.report({"x": vm.read(good), "y": vm.read(bad)}), "group 'y'"),
    ],
)
def test_items_of_files_have_their_places(call, collection, tmp_path):
    good, bad = tmp_path / "good.npy", tmp_path / "bad.npy"
    np.save(good, [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    np.save(bad, [[0.0, 1.0, 2.0], [0.0, 1.0, np.inf]])
    with pytest.raises(InputError) as caught:
        call(good, bad)
    place = f"row 1 of {str(bad)!r}"
    assert fields_of(caught.value) == {"item": 1, "place": place, "collection": collection, "option": None}
    assert str(caught.value).startswith((f"{collection}: " if collection else "") + f"item 1 ({place}) holds")
