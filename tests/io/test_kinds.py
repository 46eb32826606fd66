"""What the command takes samples for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vendimeter.data.collection import KINDS, Collection
from vendimeter.errors import InputError
from vendimeter.io.kinds import guess
from vendimeter.kernels import by_name

RNG = np.random.default_rng(0)

CASES = {
    "captions": (["a dog runs", "two boats at sea"], "texts"),
    "single different words": (["dog", "cat", "boat", "sea"], "texts"),
    "words made of letters of elements": (["soon", "spoon", "boson", "pinch", "onion", "nob"], "texts"),
    "smiles": (["CCO", "c1ccccc1", "CC(=O)O", "C[C@H](N)C(=O)O", "[Na+].[Cl-]"], "molecules"),
    "smiles of alkanes": (["CCCC", "CCCCC", "CC"], "molecules"),
    "dna": (["ACGTACGTACGTTTGACA", "ACGGGTACGTNACGTACG"], "sequences"),
    "small dna": (["acgtacgtacgtttgaca", "acgggtacgtnacgtacg"], "sequences"),
    "protein": (["MKVLAAGIVGLCAKDEWQPR", "MSTNPKPQRKTKRNTNRRPQ"], "sequences"),
    "a headline": (["BREAKING NEWS FROM LONDON", "STORM IN THE NORTH"], "texts"),
    "capital words": (["DOG", "CAT", "TAG"], "texts"),
    "colours again and again": (["red", "blue", "red", "red", "blue"] * 4, "categories"),
    "one caption again and again": (["a man rides a wave"] * 12, "texts"),
    "numbers of classes": (np.array([1, 2, 2, 1]), "categories"),
    "vectors": (RNG.standard_normal((20, 5)), "vectors"),
    "half precision": (RNG.standard_normal((20, 5)).astype(np.float16), "vectors"),
    "softmax": (RNG.dirichlet(np.ones(10), 20), "probabilities"),
    "softmax in half precision": (RNG.dirichlet(np.ones(10), 20).astype(np.float16), "probabilities"),
    "bits": (RNG.random((20, 8)) < 0.5, "tags"),
    "pictures": (np.zeros((3, 8, 8, 3), dtype=np.uint8), "images"),
    "grey pictures": (np.zeros((3, 28, 28), dtype=np.uint8), "images"),
    "feature maps": (np.zeros((3, 8, 8)), "vectors"),
    "files of pictures": ([Path("a.png"), Path("b.png")], "images"),
    "encoded pictures": ([{"bytes": b"", "path": None}], "images"),
    "answers": ([["yes, it is", "no it is not at all"], ["maybe"]], "texts"),
    "tags": ([["fruity", "sweet"], ["sweet"], ["fruity", "green"], ["green", "sweet"]], "tags"),
}


@pytest.mark.parametrize("case", CASES)
def test_guesses(case):
    samples, kind = CASES[case]
    assert guess(Collection(samples)).kind == kind


def test_what_is_said_is_not_guessed():
    assert guess(Collection(["CCO"], kind="texts"))[:2] == ("texts", "so said")
    assert guess(Collection({"a": [1], "b": [2]})).kind == "table"


def test_what_cannot_be_told_is_said():
    with pytest.raises(InputError, match=r"such as \{'a': 1\}, which the command cannot tell.*--kind"):
        guess(Collection([{"a": 1}]))


def test_every_kind_has_a_kernel():
    assert set(KINDS.values()) <= set(by_name())
