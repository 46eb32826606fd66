"""Tags: lists, texts and binary rows against the formula, on real odours and faces too."""

from __future__ import annotations

import csv
import gzip
import math
from ast import literal_eval
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter.errors import EmptyError, InputError
from vendimeter.kernels import Cosine, On, Tags
from vendimeter.kernels.description import describe, rebuild
from vendimeter.similarity import Features

RNG = np.random.default_rng(5)
NAMES = ("sweet", "floral", "green", "woody", "smoky", "citrus")
BINARY = RNG.random((40, 6)) < 0.3
BINARY[[3, 17]] = False  # two items without tags
LISTS = [[NAMES[c] for c in np.flatnonzero(row)] for row in BINARY]


def formula(a, b) -> float:
    a, b = set(a), set(b)
    if not a or not b:
        return float(not a and not b)
    return len(a & b) / math.sqrt(len(a) * len(b))


EXPECTED = np.array([[formula(a, b) for b in LISTS] for a in LISTS])


def test_the_data_has_what_the_tests_are_about():
    assert sum(not tags for tags in LISTS) >= 2
    assert max(map(len, LISTS)) > 2


@pytest.mark.parametrize(
    ("samples", "kernel"),
    [
        (LISTS, Tags()),
        ([tuple(tags) for tags in LISTS], Tags()),
        ([set(tags) for tags in LISTS], Tags()),
        ([frozenset(tags) for tags in LISTS], Tags()),
        ([np.array(tags, dtype=object) for tags in LISTS], Tags()),
        ([tags + tags[:1] for tags in LISTS], Tags()),  # repeated
        ([";".join(tags) for tags in LISTS], Tags(separator=";")),
        ([" , ".join(tags) + ", ," for tags in LISTS], Tags(separator=",")),
        (np.array([";".join(tags) for tags in LISTS]), Tags(separator=";")),
        (pd.Series([";".join(tags) for tags in LISTS]), Tags(separator=";")),
        (pd.Series(LISTS), Tags()),
        (pl.Series(LISTS), Tags()),
        (pa.array(LISTS), Tags()),
        (BINARY, Tags()),
        (BINARY.astype(float), Tags()),
        (BINARY.astype(np.int8), Tags()),
        (sparse.csr_array(BINARY), Tags()),
        (sparse.coo_matrix(BINARY.astype(float)), Tags()),
        (LISTS, Tags(vocabulary=NAMES)),
        (LISTS, Tags(vocabulary=[*NAMES, "unheard of"])),
        (BINARY, Tags(vocabulary=NAMES)),
        (sparse.csr_array(BINARY), Tags(vocabulary=NAMES)),
        ([[NAMES.index(tag) for tag in tags] for tags in LISTS], Tags()),  # numbers are tags too
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, Tags) else repr(x)[:30],
)
def test_every_form_is_the_cosine_of_indicators(samples, kernel):
    similarity = kernel.similarity(samples)
    assert isinstance(similarity, Features)
    np.testing.assert_allclose(similarity.dense(), EXPECTED, rtol=0, atol=1e-14)
    np.testing.assert_allclose(similarity.dense(), EXPECTED, rtol=0, atol=similarity.entry_error)


def test_stored_zeros_of_a_sparse_array_are_no_tags():
    rows = sparse.csr_array(
        (np.array([1.0, 0.0, 1.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2)
    )
    np.testing.assert_allclose(Tags().similarity(rows).dense(), np.eye(2))
    assert rows.nnz == 3  # and the user's own array is as it was


def test_on_arrays_of_every_library(library):
    rows = library.array(BINARY.astype(float))
    assert vm.score(rows, Tags()) == pytest.approx(vm.score(LISTS, Tags()), rel=1e-12)
    with pytest.raises(InputError, match="item 1 holds the value 3"):
        vm.score(library.array(np.array([[1.0, 0.0], [3.0, 0.0]])), Tags())


def test_with_a_vocabulary_batches_add_up():
    kernel = Tags(vocabulary=NAMES)
    assert kernel.needs_all is None
    total = vm.Accumulator(kernel)
    for i in range(0, 40, 7):
        total.update(LISTS[i : i + 7])
    assert total.score() == pytest.approx(vm.score(LISTS, Tags()), rel=1e-12)
    with pytest.raises(InputError, match="vocabulary"):
        vm.Accumulator(Tags())


def test_with_a_vocabulary_nothing_is_guessed():
    torch = pytest.importorskip("torch")
    total, kernel = vm.Accumulator(Tags(vocabulary=(0, 1, 2))), Tags(vocabulary=(0, 1, 2))
    batches = [[[0, 1], [1, 2]], [[0, 1], [1, 0]], [(0, 1, 0)], [torch.tensor([0, 1])], pa.array([[1, 0, 1]])]
    for batch in batches:  # lists of tags, also where they hold nothing but 0 and 1
        total.update(batch)
    items = [{0, 1}, {1, 2}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}]
    assert total.score() == pytest.approx(vm.score(items, Tags()), rel=1e-12)
    rows = np.array([[0, 1, 0], [1, 0, 1]])  # and an array is rows
    np.testing.assert_allclose(kernel.similarity(rows).dense(), np.eye(2), atol=1e-15)
    np.testing.assert_allclose(kernel.similarity(torch.tensor(rows)).dense(), np.eye(2), atol=1e-15)


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (list, "numpy.stack(samples)"),
        (pd.Series, "numpy.stack(samples.to_list())"),
        (pl.Series, "numpy.stack(samples.to_list())"),
        (pa.array, "numpy.stack(samples.to_pylist())"),
        (lambda rows: pa.chunked_array([rows]), "numpy.stack(samples.to_pylist())"),
        (lambda rows: pd.Series([np.array(row) for row in rows]), "numpy.stack(samples.to_list())"),
    ],
)
def test_the_advice_for_rows_in_lists_works(make, call):
    rows = [[0, 1, 1], [1, 1, 0]]
    with pytest.raises(InputError) as caught:
        vm.score(make(rows), Tags())
    assert f"Pass {call} for rows" in str(caught.value)
    found = eval(call, {"numpy": np, "samples": make(rows)})
    assert vm.score(found, Tags()) == vm.score(np.array(rows), Tags())


def test_tags_are_a_column_of_a_table():
    table = pd.DataFrame({"odour": [";".join(tags) for tags in LISTS], "x": range(40)})
    assert vm.score(table, On("odour", Tags(separator=";"))) == pytest.approx(
        vm.score(LISTS, Tags()), rel=1e-12
    )


def test_a_kernel_is_known_by_its_name_and_comes_back_from_its_description():
    assert vm.kernels.as_kernel("tags") == Tags()
    for kernel in (Tags(), Tags(separator=";"), Tags(vocabulary=["a", 2])):
        assert rebuild(describe(kernel)) == kernel
    assert hash(Tags(vocabulary=["a", "b"])) == hash(Tags(vocabulary=("a", "b")))
    assert repr(Tags()) == "Tags()"


NAN = float("nan")


@pytest.mark.parametrize(("samples", "kernel", "words"), [
    (["ab", "cd"], Tags(), ["item 0", "'ab'", "letters", "separator"]),
    ([["a"], "cd"], Tags(), ["item 1", "'cd'", "letters"]),
    ([["a"], b"cd"], Tags(), ["item 1", "letters"]),
    ([["a"], None], Tags(), ["item 1", "None", "empty list"]),
    ([["a"], NAN], Tags(), ["item 1", "nan", "empty list"]),
    ([["a"], ["b", None]], Tags(), ["item 1", "missing (None)"]),
    ([["a"], ["b", NAN]], Tags(), ["item 1", "missing (nan)"]),
    ([["a"], [math.inf]], Tags(), ["item 1", "infinite (inf)"]),
    ([["a"], [["b"]]], Tags(), ["item 1", "hashable"]),
    ([["a"], {"b": 1}], Tags(), ["item 1", "list, tuple or set"]),
    ([["a"], 3], Tags(), ["item 1 is 3", "list, tuple or set"]),
    ([1, 2, 3], Tags(), ["item 0 is 1", "list, tuple or set"]),
    (np.array([1.0, 2.0]), Tags(), ["item 0 is 1", "list, tuple or set"]),
    ("a;b", Tags(separator=";"), ["single text"]),
    (["a", None], Tags(separator=";"), ["item 1", "None", "Fill or drop"]),
    (["a", ["b"]], Tags(separator=";"), ["item 1", "texts", "Leave the separator away"]),
    (BINARY, Tags(separator=";"), ["separator", "texts"]),
    ([[0, 1], [1, 1]], Tags(), ["0 and 1", "numpy.stack(samples)", "sets"]),
    ([[True, False]], Tags(), ["0 and 1", "numpy.stack(samples)"]),
    (np.array([[1.0, 0.0], [2.0, 0.0]]), Tags(), ["item 1", "the value 2", "cosine"]),
    (np.array([[1.0, 0.0], [NAN, 0.0]]), Tags(), ["item 1", "nan"]),
    (sparse.csr_array([[1.0, 0.0], [0.5, 0.0]]), Tags(), ["item 1", "the value 0.5"]),
    (np.zeros((2, 3, 4)), Tags(), ["(2, 3, 4)"]),
    ([["a"], ["c"]], Tags(vocabulary=("a", "b")), ["item 1", "'c'", "vocabulary of 2"]),
    (BINARY, Tags(vocabulary=("a", "b")), ["6 columns", "2 tags"]),
    (pd.DataFrame({"a": ["x"]}), Tags(), ["table", "On("]),
])  # fmt: skip
def test_bad_items_are_named(samples, kernel, words):
    with pytest.raises(InputError) as caught:
        vm.score(samples, kernel)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"vocabulary": "abc"}, "sequence of tags"),
        ({"vocabulary": 3}, "sequence of tags"),
        ({"vocabulary": ()}, "empty"),
        ({"vocabulary": ("a", "b", "a")}, "'a' twice"),
        ({"vocabulary": ("a", None)}, "None"),
        ({"vocabulary": ("a", ["b"])}, "hashable"),
        ({"vocabulary": ("a", math.inf)}, "holds inf; expected tags without gaps and infinities"),
        ({"vocabulary": (np.float64(-math.inf),)}, "holds -inf"),
        ({"separator": ""}, "separator"),
        ({"separator": 3}, "separator=3"),
    ],
)
def test_bad_options_are_named(options, word):
    with pytest.raises(InputError, match=word):
        Tags(**options)


def test_nothing_is_an_error():
    with pytest.raises(EmptyError):
        vm.score([], Tags())


def test_odours(shared_data):
    with gzip.open(shared_data / "molecules" / "goodscents_2022_behavior_sparse.csv.gz", "rt") as file:
        odours = [literal_eval(row["Tags"]) for row in csv.DictReader(file)]
    assert len(odours) == 6157
    score = vm.score(odours, Tags())
    # The same from the inner products of dense, normalised indicators.
    tags = {tag: i for i, tag in enumerate(Counter(tag for item in odours for tag in item))}
    rows = np.zeros((len(odours), len(tags) + 1))
    for i, item in enumerate(odours):
        rows[i, [tags[tag] for tag in item] or [len(tags)]] = 1
    assert score == pytest.approx(vm.score(rows, Cosine()), rel=1e-10)
    assert 50 < score < len(tags)
    assert vm.score([";".join(sorted(item)) for item in odours], Tags(separator=";")) == pytest.approx(
        score, rel=1e-12
    )


def test_faces(shared_data):
    with np.load(shared_data / "research_only" / "celeba_attributes.npz") as stored:
        faces, names = stored["attributes"], tuple(stored["names"].tolist())
    score = vm.score(faces, Tags(vocabulary=names))
    assert score.method == "gram"
    sizes = faces.sum(axis=1)
    unit = np.hstack([faces / np.sqrt(np.maximum(sizes, 1))[:, None], (sizes == 0)[:, None]])
    values = np.linalg.eigvalsh(unit.T @ unit / len(faces))
    values = values[values > 1e-14]
    assert score == pytest.approx(math.exp(-(values * np.log(values)).sum()), rel=1e-10)
    part = faces[:500]
    lists = [[names[c] for c in np.flatnonzero(row)] for row in part]
    assert vm.score(part, Tags()) == pytest.approx(vm.score(lists, Tags()), rel=1e-12)
