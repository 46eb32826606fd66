"""Values as JSON can write them."""

import json
import math
from pathlib import PurePosixPath

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.present.plain import plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (np.True_, True),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (math.inf, None),
        (np.nan, None),
        (np.array([[1.0, np.nan]]), [[1.0, None]]),
        (("a", ("b", 1)), ["a", ["b", 1]]),
        ({3, 1, 2}, [1, 2, 3]),
        ({("a", 1): 2.0}, {"('a', 1)": 2.0}),
        (PurePosixPath("a/b"), "a/b"),
    ],
)
def test_values(value: object, expected: object) -> None:
    found = plain(value)
    assert (found, type(found)) == (expected, type(expected))
    json.dumps(found, allow_nan=False)


def test_a_score_has_its_bounds() -> None:
    score = vm.score(["a", "b"], "match")
    assert plain({"scores": [score]}) == {"scores": [score.to_dict()]}


def test_labels_of_several_parts_are_lists_in_every_result() -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    by = [("x", i % 2) for i in range(40)]
    expected = [["x", 0], ["x", 1]]
    assert vm.modes(X, by=by).to_dict()["labels"] == expected
    assert vm.compare(X, by=by).to_dict()["labels"] == expected
    assert [group["group"] for group in vm.score_groups(X, by=by).to_dict()["groups"]] == expected
