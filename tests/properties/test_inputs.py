"""Rubbish in, a typed error out; odd but honest input in, the right answer out and the input left as it was.

Each row of the tables below is one thing a user might pass. For rubbish: the type of the error and the words that tell
what was seen and what to do. For the rest: the right answer, from the formula or from the same data in plain form.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter.errors import (
    AsymmetryError,
    DiagonalError,
    EmptyError,
    IndefiniteError,
    InputError,
    MatrixError,
    VendimeterError,
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
)
from vendimeter.kernels.base import Kernel
from vendimeter.similarity import FeatureRows

X = np.random.default_rng(0).normal(size=(6, 3))
COUNTS = np.random.default_rng(1).integers(0, 4, size=(6, 5)) + np.eye(6, 5, dtype=np.int64)
CORRELATED = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 1.0]])
NAN, INF = math.nan, math.inf
TABLE = {"colour": ["red", "red", "blue"], "size": [1.0, 2.0, 4.0]}
FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "dict": dict,
    "records": lambda table: [
        dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)
    ],
}


def expected(matrix: Any, p: Any = None) -> float:
    """The Vendi Score by the book."""
    matrix = np.asarray(matrix, dtype=np.float64)
    root = np.sqrt(np.full(len(matrix), 1 / len(matrix)) if p is None else np.asarray(p, dtype=np.float64))
    values = np.linalg.eigvalsh(matrix * np.outer(root, root))
    values = values[values > 1e-14]
    return float(np.exp(-np.sum(values * np.log(values))))


def cosine(rows: Any) -> np.ndarray:
    rows = np.asarray(rows, dtype=np.float64)
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def jaccard(rows: np.ndarray) -> np.ndarray:
    return np.minimum(rows[:, None], rows).sum(axis=2) / np.maximum(rows[:, None], rows).sum(axis=2)


def masked(values: Any, *places: tuple[int, ...]) -> np.ma.MaskedArray:
    mask = np.zeros(np.shape(values), dtype=bool)
    for place in places:
        mask[place] = True
    return np.ma.array(values, mask=mask)


def equal(a: Any, b: Any) -> float:
    return float(a == b)


def before(a: Any, b: Any) -> float:
    """Not symmetric."""
    return 1.0 if a == b else 0.3 if a < b else 0.0


def constant(value: Any) -> Callable[[Any, Any], Any]:
    return lambda a, b: value


def encoder(vectors: Any, **options: Any) -> Embed:
    """An encoder that gives these vectors whatever it is asked."""
    return Embed(lambda items: vectors, **options)


# ---------------------------------------------------------------------------------------------------------- rubbish

SAMPLES = {
    # Not a collection.
    "None": (lambda: vm.score(None), InputError, ["NoneType", "expected"]),
    "a number": (lambda: vm.score(3), InputError, ["int", "expected"]),
    "a NumPy number": (lambda: vm.score(np.float64(3)), InputError, ["float64", "expected"]),
    "a generator": (lambda: vm.score(row for row in X), InputError, ["generator", "list"]),
    "a generator for a function": (lambda: vm.score((i for i in "ab"), equal), InputError, ["generator", "list"]),
    "a generator for match": (lambda: vm.score((i for i in "ab"), "match"), InputError, ["generator", "list"]),
    "a generator for an encoder": (lambda: vm.score((i for i in "ab"), encoder(X)), InputError, ["generator", "list"]),
    "a 0-d array": (lambda: vm.score(np.array(3.0)), InputError, ["single", "expected"]),
    "a 0-d array for rbf": (lambda: vm.score(np.array(3.0), "rbf"), InputError, ["single", "expected"]),
    "a 0-d array for match": (lambda: vm.score(np.array(3.0), "match"), InputError, ["single", "expected"]),
    "a 0-d object array": (lambda: vm.score(np.array(None)), InputError, ["expected"]),
    "a string": (lambda: vm.score("abc"), InputError, ["string", "ngram"]),
    "a string for match": (lambda: vm.score("abc", "match"), InputError, ["single text", "list"]),
    "a string for ngram": (lambda: vm.score("abc", "ngram"), InputError, ["single text", "list"]),
    "a string for a function": (lambda: vm.score("abc", equal), InputError, ["single text", "list"]),
    "a string for an encoder": (lambda: vm.score("abc", encoder(X)), InputError, ["single text", "list"]),
    "bytes": (lambda: vm.score(b"abc"), InputError, ["single text", "list"]),
    # Nothing.
    "an empty list": (lambda: vm.score([]), EmptyError, ["empty"]),
    "an empty 1-d array": (lambda: vm.score(np.array([])), EmptyError, ["empty"]),
    "no rows": (lambda: vm.score(np.zeros((0, 3))), EmptyError, ["empty"]),
    "no sparse rows": (lambda: vm.score(sparse.csr_array((0, 3))), EmptyError, ["empty"]),
    "no sparse rows for a function": (lambda: vm.score(sparse.csr_array((0, 3)), equal), EmptyError, ["empty"]),
    "no columns": (lambda: vm.score(np.zeros((3, 0))), InputError, ["3 rows", "column"]),
    "no sparse columns": (lambda: vm.score(sparse.csr_array((3, 0))), InputError, ["item 0", "zeros"]),
    "an empty vector": (lambda: vm.score([[]]), InputError, ["column"]),
    "an empty table": (lambda: vm.score({"a": []}, On("a", Match())), EmptyError, ["empty"]),
    "an empty table of numbers": (lambda: vm.score({"a": []}, On("a", RBF())), EmptyError, ["empty"]),
    "an empty table for match": (lambda: vm.score({"a": []}, "match"), EmptyError, ["empty"]),
    "an empty frame for match": (lambda: vm.score(pd.DataFrame({"a": []}), "match"), EmptyError, ["empty"]),
    "an empty table for a function": (lambda: vm.score({"a": []}, equal), EmptyError, ["empty"]),
    "a table without columns": (lambda: vm.score({}, "match"), EmptyError, ["empty"]),
    "no records": (lambda: vm.score([], On("a", Match())), EmptyError, ["empty"]),
    # The wrong shape.
    "a 1-d array": (lambda: vm.score(np.ones(5)), InputError, ["shape (5,)", "vector"]),
    "a 1-d list": (lambda: vm.score([1.0, 2.0]), InputError, ["shape (2,)", "vector"]),
    "a series": (lambda: vm.score(pd.Series([1.0, 2.0])), InputError, ["shape (2,)", "vector"]),
    "a 1-d array for jaccard": (lambda: vm.score([1, 0, 1], "jaccard"), InputError, ["shape (3,)", "jaccard"]),
    "a 1-d sparse array": (lambda: vm.score(sparse.coo_array(np.ones(3))), InputError, ["shape", "vector"]),
    "a 3-d array": (lambda: vm.score(np.ones((2, 3, 4))), InputError, ["(2, 3, 4)", "reshape"]),
    "a 3-d array for rbf": (lambda: vm.score(np.ones((2, 3, 4)), "rbf"), InputError, ["(2, 3, 4)", "reshape"]),
    "one column": (lambda: vm.score([[1.0], [2.0]]), InputError, ["single column", "RBF"]),
    "one sparse column": (lambda: vm.score(sparse.csr_array([[1.0], [2.0]])), InputError, ["single column", "RBF"]),
    "one number": (lambda: vm.score([[1.0]]), InputError, ["single column"]),
    "a ragged list": (lambda: vm.score([[1, 2], [1, 2, 3]]), InputError, ["item 1", "(3,)", "(2,)"]),
    "a ragged object array": (
        lambda: vm.score(np.array([np.ones(2), np.ones(3)], dtype=object)), InputError, ["item 1", "(3,)", "(2,)"],
    ),
    "vectors and a number": (lambda: vm.score([[1, 2], 3]), InputError, ["item 1", "(2,)"]),
    "sparse rows in a list": (lambda: vm.score([sparse.csr_array(X[:1])] * 2), InputError, ["item 0", "csr_array"]),
    # The wrong type.
    "complex": (lambda: vm.score(X + 1j), InputError, ["complex128", "real"]),
    "sparse complex": (lambda: vm.score(sparse.csr_array(X + 1j)), InputError, ["complex128", "real"]),
    "dates": (lambda: vm.score(np.array([["2020-01-01"] * 2], dtype="M8[D]")), InputError, ["datetime64", "real"]),
    "a structured array": (lambda: vm.score(np.zeros(3, dtype=[("a", float)])), InputError, ["dtype", "real"]),
    "objects": (lambda: vm.score([object(), object()]), InputError, ["item 0", "object", "k(a, b)"]),
    "an object array of records": (
        lambda: vm.score(np.array([{"a": 1}], dtype=object)), InputError, ["item 0", "dict"],
    ),
    "None inside a vector": (lambda: vm.score([[1, 2], [3, None]]), InputError, ["item 1", "None"]),
    "a number beyond int64": (lambda: vm.score([[1, 2], [3, 10**30]]), InputError, ["item 1", "number"]),
    "masked": (lambda: vm.score(masked(X, (0, 1))), InputError, ["masked", "fill"]),
    "masked for rbf": (lambda: vm.score(masked(X, (0, 1)), "rbf"), InputError, ["masked", "fill"]),
    "masked for jaccard": (lambda: vm.score(masked(COUNTS, (0, 1)), "jaccard"), InputError, ["masked", "fill"]),
    "masked rows in a list": (lambda: vm.score([masked(X[0], (1,)), X[1]]), InputError, ["masked"]),
    "masked for match": (lambda: vm.score(masked([1, 2, 3], (1,)), "match"), InputError, ["masked", "fill"]),
    # Strings under cosine.
    "strings": (lambda: vm.score(["a", "b"]), InputError, ["strings", "ngram", "match", "Embed"]),
    "a tuple of strings": (lambda: vm.score(("a", "b")), InputError, ["strings", "ngram"]),
    "an array of strings": (lambda: vm.score(np.array(["a", "b"])), InputError, ["strings", "ngram"]),
    "a set of strings": (lambda: vm.score({"a", "b"}), InputError, ["strings", "ngram"]),
    "a list of bytes": (lambda: vm.score([b"a", b"b"]), InputError, ["strings", "ngram"]),
    "a pandas column of strings": (lambda: vm.score(pd.Series(["a", "b"])), InputError, ["strings", "ngram"]),
    "a polars column of strings": (lambda: vm.score(pl.Series(["a", "b"])), InputError, ["strings", "ngram"]),
    "an Arrow column of strings": (lambda: vm.score(pa.array(["a", "b"])), InputError, ["strings", "ngram"]),
    "an Arrow chunked column": (lambda: vm.score(pa.chunked_array([["a"], ["b"]])), InputError, ["strings", "ngram"]),
    "strings for rbf": (lambda: vm.score(["a", "b"], "rbf"), InputError, ["strings", "rbf"]),
    "rows of strings": (lambda: vm.score([["1", "2"], ["3", "4"]]), InputError, ["<U1", "numbers"]),
    "numbers and a string": (lambda: vm.score([[1, 2], ["a", "b"]]), InputError, ["numbers"]),
    # Values that have no cosine.
    "NaN": (lambda: vm.score([[1, 1], [NAN, 0]]), InputError, ["item 1", "nan", "finite"]),
    "infinity": (lambda: vm.score([[1, 1], [0, -INF]]), InputError, ["item 1", "-inf", "finite"]),
    "sparse NaN": (lambda: vm.score(sparse.csr_array([[1, 1], [NAN, 0]])), InputError, ["item 1", "nan"]),
    "sparse infinity": (lambda: vm.score(sparse.csr_array([[1, 1], [INF, 0]])), InputError, ["item 1", "inf"]),
    "NaN late": (lambda: vm.score(np.r_[np.ones((5000, 2)), [[NAN, 1]]]), InputError, ["item 5000", "nan"]),
    "a zero row": (lambda: vm.score([[1, 1], [0, 0]]), InputError, ["item 1", "zeros", "undefined"]),
    "a sparse zero row": (lambda: vm.score(sparse.csr_array([[1, 1], [0, 0]])), InputError, ["item 1", "zeros"]),
    "a zero row in more columns than rows": (
        lambda: vm.score(np.eye(3, 9, k=0) * [[1], [0], [1]]), InputError, ["item 1", "zeros"],
    ),
    "NaN for rbf": (lambda: vm.score([[1, 1], [NAN, 0]], "rbf"), InputError, ["item 1", "nan"]),
    "NaN for laplacian": (lambda: vm.score([0.0, NAN], "laplacian"), InputError, ["item 1", "nan"]),
    "infinity for polynomial": (lambda: vm.score([[1, 1], [INF, 0]], "polynomial"), InputError, ["item 1", "inf"]),
    "a zero row for polynomial": (lambda: vm.score([[1, 1], [0, 0]], Polynomial(2, 0)), InputError, ["item 1", "zero"]),
    "NaN for jaccard": (lambda: vm.score([[1, 1], [NAN, 0]], "jaccard"), InputError, ["item 1", "nan"]),
    "negative for jaccard": (lambda: vm.score([[1, 1], [-2, 0]], "jaccard"), InputError, ["item 1", "-2", "counts"]),
    "negative sparse for jaccard": (
        lambda: vm.score(sparse.csr_array([[1, 1], [0, -2]]), "jaccard"), InputError, ["item 1", "-2"],
    ),
    "sparse for rbf": (lambda: vm.score(sparse.csr_array(X), "rbf"), InputError, ["sparse", "toarray"]),
    "sparse for match": (lambda: vm.score(sparse.csr_array(X), "match"), InputError, ["sparse", "toarray"]),
    "logits": (lambda: vm.score([[-1.0, 2.0]], "probability-product"), InputError, ["item 0", "-1", "logits"]),
    "probabilities that sum to 1.1": (
        lambda: vm.score([[0.5, 0.5], [0.5, 0.6]], "probability-product"), InputError, ["item 1", "1.1", "expected 1"],
    ),
    "sparse probabilities that sum to 1.1": (
        lambda: vm.score(sparse.csr_array([[0.5, 0.5], [0.5, 0.6]]), "probability-product"),
        InputError, ["item 1", "1.1"],
    ),
    "NaN probabilities": (lambda: vm.score([[NAN, 1.0]], "probability-product"), InputError, ["item 0", "nan"]),
    # Items that are not what the kernel compares.
    "numbers for ngram": (lambda: vm.score([3, 4], "ngram"), InputError, ["item 0", "int", "texts"]),
    "one number for ngram": (lambda: vm.score(["a", 4], "ngram"), InputError, ["item 1", "int", "texts"]),
    "bytes for ngram": (lambda: vm.score([b"a"], "ngram"), InputError, ["item 0", "bytes", "texts"]),
    "None for ngram": (lambda: vm.score(["a", None], "ngram"), InputError, ["item 1", "NoneType", "texts"]),
    "None for match": (lambda: vm.score(["a", None], "match"), InputError, ["item 1", "missing", "unknown"]),
    "NaN for match": (lambda: vm.score([1.0, NAN], "match"), InputError, ["item 1", "missing", "unknown"]),
    "pandas NA for match": (lambda: vm.score([1, pd.NA], "match"), InputError, ["item 1", "missing"]),
    "sets for match": (lambda: vm.score([{1}, {2}], "match"), InputError, ["item 0", "hashable"]),
    "numbers for a fraction": (lambda: vm.score([1, 2], Match(fraction=True)), InputError, ["attributes", "Match()"]),
    "tuples of two lengths": (
        lambda: vm.score([(1, 2), (1,)], Match(fraction=True)), InputError, ["same number of attributes"],
    ),
    "None among sets": (lambda: vm.score([{"a"}, None], "jaccard"), InputError, ["item 1", "None"]),
    "a text among sets": (lambda: vm.score([{"a"}, "bc"], "jaccard"), InputError, ["item 1", "bc"]),
    "unhashable members": (lambda: vm.score([{"a"}, [["b"]]], "jaccard"), InputError, ["item 1", "[['b']]", "sets"]),
    "lists of words for jaccard": (lambda: vm.score([["a"], ["b"]], "jaccard"), InputError, ["jaccard", "sets"]),
    "strings for jaccard": (lambda: vm.score(["ab", "b"], "jaccard"), InputError, ["strings", "jaccard"]),
    "a long unhashable item": (lambda: vm.score([bytearray(5000)], "match"), InputError, ["item 0", "hashable"]),
    # A set has no order that weights could follow.
    "a set with weights": (lambda: vm.score({"a", "b"}, "match", weights=[0.9, 0.1]), InputError, ["set", "order"]),
}  # fmt: skip

MATRICES = {
    # A similarity matrix under the default kernel.
    "K": (lambda: vm.score(CORRELATED), InputError, ["3×3", "precomputed", "Cosine()"]),
    "K as lists": (lambda: vm.score(CORRELATED.tolist()), InputError, ["3×3", "precomputed"]),
    "K with rounding": (lambda: vm.score(CORRELATED + 1e-9), InputError, ["3×3", "precomputed"]),
    "K as a frame": (lambda: vm.score(pd.DataFrame(CORRELATED)), InputError, ["3×3", "precomputed"]),
    "sparse K": (lambda: vm.score(sparse.csr_array(CORRELATED)), InputError, ["3×3", "precomputed"]),
    "sparse K with rounding": (
        lambda: vm.score(sparse.csr_array(CORRELATED * (1 - 1e-12))), InputError, ["3×3", "precomputed"],
    ),
    "sparse identity of bits": (
        lambda: vm.score(sparse.eye_array(3, dtype=bool)), InputError, ["3×3", "precomputed"],
    ),
    "K for profile": (lambda: vm.profile(CORRELATED), InputError, ["3×3", "precomputed"]),
    "K for groups": (lambda: vm.score_groups(CORRELATED, by=[0, 0, 1]), InputError, ["3×3", "precomputed"]),
    # Not a matrix.
    "a number": (lambda: vm.score(5, "precomputed"), InputError, ["expected", "matrix"]),
    "None": (lambda: vm.score(None, "precomputed"), InputError, ["expected", "matrix"]),
    "a text": (lambda: vm.score("abc", "precomputed"), InputError, ["expected", "matrix"]),
    "a generator": (lambda: vm.score((row for row in CORRELATED), "precomputed"), InputError, ["expected", "matrix"]),
    "a dict": (lambda: vm.score({"a": [1, 0], "b": [0, 1]}, "precomputed"), InputError, ["expected", "matrix"]),
    "a number of distances": (lambda: vm.score(5, "from-distances"), InputError, ["expected", "matrix"]),
    "nothing": (lambda: vm.score([], "precomputed"), EmptyError, ["nothing"]),
    "(0, 0)": (lambda: vm.score(np.zeros((0, 0)), "precomputed"), EmptyError, ["nothing"]),
    "sparse 0×0": (lambda: vm.score(sparse.csr_array((0, 0)), "precomputed"), EmptyError, ["nothing"]),
    "1-d": (lambda: vm.score(np.ones(3), "precomputed"), InputError, ["shape (3,)", "square"]),
    "3-d": (lambda: vm.score(np.ones((2, 2, 2)), "precomputed"), InputError, ["(2, 2, 2)", "square"]),
    "not square": (lambda: vm.score(np.ones((2, 3)), "precomputed"), InputError, ["(2, 3)", "square"]),
    "sparse, not square": (lambda: vm.score(sparse.csr_array((2, 3)), "precomputed"), InputError, ["(2, 3)", "square"]),
    "ragged": (lambda: vm.score([[1, 0], [0]], "precomputed"), InputError, ["ragged", "square"]),
    "complex": (lambda: vm.score(np.eye(2) * 1j, "precomputed"), InputError, ["complex128", "real"]),
    "strings": (lambda: vm.score([["1", "0"], ["0", "1"]], "precomputed"), InputError, ["<U1", "real"]),
    "objects": (lambda: vm.score(np.eye(2, dtype=object), "precomputed"), InputError, ["object", "real"]),
    "masked": (lambda: vm.score(masked(CORRELATED, (0, 1), (1, 0)), "precomputed"), InputError, ["masked"]),
    "masked distances": (lambda: vm.score(masked(1 - np.eye(3), (0, 1)), "from-distances"), InputError, ["masked"]),
    # Not a similarity matrix.
    "NaN": (lambda: vm.score([[1, NAN], [NAN, 1]], "precomputed"), MatrixError, ["K[0, 1]", "nan"]),
    "NaN on the diagonal": (lambda: vm.score([[1, 0], [0, NAN]], "precomputed"), MatrixError, ["K[1, 1]", "nan"]),
    "infinity": (lambda: vm.score([[1, 0], [INF, 1]], "precomputed"), MatrixError, ["K[1, 0]", "inf"]),
    "sparse NaN": (
        lambda: vm.score(sparse.csr_array([[1, 0], [NAN, 1]]), "precomputed"), MatrixError, ["K[1, 0]", "nan"],
    ),
    "sparse infinity": (
        lambda: vm.score(sparse.csc_array([[1, 0], [INF, 1]]), "precomputed"), MatrixError, ["K[1, 0]", "inf"],
    ),
    "distances": (lambda: vm.score(1 - np.eye(2), "precomputed"), DiagonalError, ["distances", "FromDistances"]),
    "zeros": (lambda: vm.score(np.zeros((2, 2)), "precomputed"), DiagonalError, ["diagonal"]),
    "sparse zeros": (lambda: vm.score(sparse.csr_array((2, 2)), "precomputed"), DiagonalError, ["diagonal"]),
    "one zero on the diagonal": (lambda: vm.score(np.diag([1.0, 0]), "precomputed"), DiagonalError, ["K[1, 1] = 0"]),
    "normalising a zero": (
        lambda: vm.score(np.diag([1.0, 0]), Precomputed(normalize=True)), DiagonalError, ["K[1, 1] = 0", "positive"],
    ),
    "normalising a negative": (
        lambda: vm.score(np.diag([1.0, -1]), Precomputed(normalize=True)), DiagonalError, ["K[1, 1] = -1", "positive"],
    ),
    "a covariance": (lambda: vm.score(np.diag([1.0, 4]), "precomputed"), DiagonalError, ["K[1, 1] = 4", "normalize"]),
    "asymmetric": (
        lambda: vm.score([[1, 0.5], [0.25, 1]], "precomputed"),
        AsymmetryError, ["K[0, 1] = 0.5", "K[1, 0] = 0.25", "symmetrize=True"],
    ),
    "sparse asymmetric": (
        lambda: vm.score(sparse.csr_array([[1, 0.5], [0, 1]]), "precomputed"),
        AsymmetryError, ["K[0, 1] = 0.5", "K[1, 0] = 0", "symmetrize=True"],
    ),
    "a similarity above 1": (lambda: vm.score([[1, 2], [2, 1]], "precomputed"), IndefiniteError, ["-1", "project"]),
    "sparse above 1": (
        lambda: vm.score(sparse.csr_array([[1, 2], [2, 1]]), "precomputed"), IndefiniteError, ["-1", "project"],
    ),
    # Distances.
    "a negative distance": (lambda: vm.score([[0, -1], [-1, 0]], "from-distances"), InputError, ["[0, 1]", "-1"]),
    "a NaN distance": (lambda: vm.score([[0, NAN], [NAN, 0]], "from-distances"), InputError, ["[0, 1]", "nan"]),
    "a distance from itself": (
        lambda: vm.score([[1, 0.5], [0.5, 1]], "from-distances"), InputError, ["item 0", "precomputed"],
    ),
    "asymmetric distances": (lambda: vm.score([[0, 1], [2, 0]], "from-distances"), AsymmetryError, ["[0, 1]"]),
    "sparse distances": (
        lambda: vm.score(sparse.csr_array([[0, 1], [1, 0]]), "from-distances"), InputError, ["sparse", "dense"],
    ),
    "embeddings for distances": (lambda: vm.score(X, "from-distances"), InputError, ["(6, 3)", "square"]),
    "distances beyond the linear range": (
        lambda: vm.score([[0, 5], [5, 0]], FromDistances(1, "linear")), IndefiniteError, ["-3", "project"],
    ),
}  # fmt: skip

WEIGHTS = {
    "not probabilities": (lambda: vm.score(X, weights=[1] * 6), InputError, ["sum to 6", "counts="]),
    "too few": (lambda: vm.score(X, weights=[0.2] * 5), InputError, ["5 entries", "6 items"]),
    "too many": (lambda: vm.score(X, counts=[1] * 7), InputError, ["7 entries", "6 items"]),
    "none at all": (lambda: vm.score(X, weights=[]), InputError, ["0 entries", "6 items"]),
    "negative": (lambda: vm.score(X, weights=[0.5, -0.1, 0.1, 0.1, 0.2, 0.2]), InputError, ["weights[1]", "-0.1"]),
    "NaN": (lambda: vm.score(X, weights=[0.2] * 5 + [NAN]), InputError, ["weights[5]", "nan"]),
    "infinite": (lambda: vm.score(X, weights=[0.2] * 5 + [INF]), InputError, ["weights[5]", "inf"]),
    "huge": (lambda: vm.score(X, weights=[1e308] * 6), InputError, ["weights", "sum"]),
    "huge counts": (lambda: vm.score(X, counts=[1e308] * 6), InputError, ["counts"]),
    "all zero": (lambda: vm.score(X, weights=[0] * 6), InputError, ["weights are all 0"]),
    "counts all zero": (lambda: vm.score(X, counts=[0] * 6), InputError, ["counts are all 0"]),
    "fractional counts": (lambda: vm.score(X, counts=[1.5] * 6), InputError, ["counts[0]", "whole", "weights="]),
    "negative counts": (lambda: vm.score(X, counts=[1, 1, -1, 1, 1, 1]), InputError, ["counts[2]", "-1"]),
    "NaN counts": (lambda: vm.score(X, counts=[1, 1, NAN, 1, 1, 1]), InputError, ["counts[2]", "nan"]),
    "both": (lambda: vm.score(X, counts=[1] * 6, weights=[1 / 6] * 6), InputError, ["both", "expected one"]),
    "a text": (lambda: vm.score(X, weights="uniform"), InputError, ["uniform", "numbers"]),
    "texts": (lambda: vm.score(X, weights=["a"] * 6), InputError, ["weights", "numbers"]),
    "a number": (lambda: vm.score(X, weights=1.0), InputError, ["weights", "one an item"]),
    "a dict": (lambda: vm.score(X, weights={"a": 1.0}), InputError, ["weights", "numbers"]),
    "a generator": (lambda: vm.score(X, weights=(1 / 6 for _ in X)), InputError, ["weights", "numbers"]),
    "two dimensions": (lambda: vm.score(X, weights=np.ones((1, 6)) / 6), InputError, ["(1, 6)", "one an item"]),
    "ragged": (lambda: vm.score(X, weights=[[1], [2, 3]]), InputError, ["weights", "numbers"]),
    "complex": (lambda: vm.score(X, weights=np.full(6, 1 / 6 + 0j)), InputError, ["weights", "numbers"]),
    "None among them": (lambda: vm.score(X, weights=[None] + [0.2] * 5), InputError, ["weights", "numbers"]),
    "masked": (lambda: vm.score(X, weights=masked([1 / 6] * 6, (1,))), InputError, ["weights", "masked"]),
    "masked counts": (lambda: vm.score(X, counts=masked([5] * 6, (1,))), InputError, ["counts", "masked"]),
    "a long list of texts": (lambda: vm.score(np.ones((3000, 2)), weights=["a"] * 3000), InputError, ["numbers"]),
    "sparse": (lambda: vm.score(X, counts=sparse.csr_array(np.ones((1, 6)))), InputError, ["counts"]),
}  # fmt: skip

OPTIONS = {
    "q as a word": (lambda: vm.score(X, q="two"), InputError, ["'two'", "inf"]),
    "negative q": (lambda: vm.score(X, q=-1), InputError, ["q=-1", "from 0 up"]),
    "NaN q": (lambda: vm.score(X, q=NAN), InputError, ["q=nan", "from 0 up"]),
    "NaN q in words": (lambda: vm.score(X, q="nan"), InputError, ["'nan'", "from 0 up"]),
    "minus infinity": (lambda: vm.score(X, q="-inf"), InputError, ["-inf", "from 0 up"]),
    "no q": (lambda: vm.score(X, q=None), InputError, ["None", "from 0 up"]),
    "q=True": (lambda: vm.score(X, q=True), InputError, ["True", "from 0 up"]),
    "complex q": (lambda: vm.score(X, q=1j), InputError, ["1j", "from 0 up"]),
    "a set of q": (lambda: vm.score(X, q={1, 2}), InputError, ["q={1, 2}", "from 0 up"]),
    "no orders": (lambda: vm.score(X, q=[]), InputError, ["empty", "at least one"]),
    "an order twice": (lambda: vm.score(X, q=[1, 1.0]), InputError, ["twice"]),
    "an order of many twice": (lambda: vm.score(X, q=[*range(1000), 7]), InputError, ["twice"]),
    "a bad order among good ones": (lambda: vm.score(X, q=[1, "x"]), InputError, ["'x'", "from 0 up"]),
    "orders in two dimensions": (lambda: vm.score(X, q=np.array([[1.0, 2.0]])), InputError, ["from 0 up"]),
    "a q beyond floats": (lambda: vm.score(X, q=10**400), InputError, ["q="]),
    "profile without orders": (lambda: vm.profile(X, q=[]), InputError, ["empty", "at least one"]),
    "profile of None": (lambda: vm.profile(X, q=None), InputError, ["None", "from 0 up"]),
    "profile of a word": (lambda: vm.profile(X, q="two"), InputError, ["'two'", "inf"]),
    "an order that was not asked for": (lambda: vm.profile(X)[7], InputError, ["7", "inf"]),
    "method misspelt": (lambda: vm.score(X, method="exat"), InputError, ["'exat'", "Did you mean 'exact'?"]),
    "no method": (lambda: vm.score(X, method=None), InputError, ["None", "'auto'"]),
    "method of groups": (lambda: vm.score_groups(X, by=[0] * 6, method="exat"), InputError, ["Did you mean 'exact'?"]),
    "precision misspelt": (lambda: vm.score(X, precision="flaot32"), InputError, ["Did you mean 'float32'?"]),
    "precision as a dtype": (lambda: vm.score(X, precision=np.float32), InputError, ["float32", "'float64'"]),
    "precision of groups": (lambda: vm.score_groups(X, by=[0] * 6, precision="x"), InputError, ["'float64'"]),
    "tol 0": (lambda: vm.score(X, tol=0), InputError, ["tol=0", "between 0 and 1"]),
    "tol 1": (lambda: vm.score(X, tol=1), InputError, ["tol=1", "between 0 and 1"]),
    "negative tol": (lambda: vm.score(X, tol=-1e-3), InputError, ["tol=-0.001", "between 0 and 1"]),
    "NaN tol": (lambda: vm.score(X, tol=NAN), InputError, ["tol=nan", "between 0 and 1"]),
    "tol as text": (lambda: vm.score(X, tol="1e-3"), InputError, ["'1e-3'", "between 0 and 1"]),
    "tol of a list": (lambda: vm.score(X, tol=[1e-3]), InputError, ["[0.001]", "between 0 and 1"]),
    "a negative seed": (lambda: vm.score(np.arange(2100.0), "rbf", rng=-1), InputError, ["rng"]),
    "a seed of text": (lambda: vm.score(X, precision="float32", rng="seed"), InputError, ["rng", "seed"]),
}  # fmt: skip

KERNELS = {
    "misspelt": (lambda: vm.score(X, "cosin"), InputError, ["'cosin'", "Did you mean 'cosine'?", "'rbf'"]),
    "another case": (lambda: vm.score(X, "Cosine"), InputError, ["Did you mean 'cosine'?"]),
    "another misspelt": (lambda: vm.score(X, "tanimato"), InputError, ["Did you mean 'tanimoto'?"]),
    "nothing like it": (lambda: vm.score(X, "zzz"), InputError, ["'zzz'", "There are: 'cosine'"]),
    "misspelt for groups": (lambda: vm.score_groups(X, "cosin", by=[0] * 6), InputError, ["Did you mean 'cosine'?"]),
    "misspelt for profile": (lambda: vm.profile(X, "cosin"), InputError, ["Did you mean 'cosine'?"]),
    "None": (lambda: vm.score(X, None), InputError, ["None", "name"]),
    "a number": (lambda: vm.score(X, 5), InputError, ["kernel=5", "name"]),
    "a list": (lambda: vm.score(X, ["cosine"]), InputError, ["['cosine']", "name"]),
    "a matrix": (lambda: vm.score(X, kernel=cosine(X)), InputError, ["kernel", "name"]),
    "a class": (lambda: vm.score(X, Cosine), InputError, ["class Cosine", "instance", "Cosine(…)"]),
    "a class on a column": (lambda: On("a", Match), InputError, ["Match"]),
    "an unknown name on a column": (lambda: On("a", "mach"), InputError, ["'mach'", "'match'"]),
    "a class behind an encoder": (lambda: encoder(X, kernel=Cosine), InputError, ["kernel", "Cosine"]),
    "a name behind an encoder": (lambda: encoder(X, kernel="cosin"), InputError, ["kernel", "cosin"]),
    # Sums.
    "coefficients that sum to 1.1": (
        lambda: vm.score(X, 0.5 * Cosine() + 0.6 * RBF()), InputError, ["sum to 1.1", "expected 1", "0.909"],
    ),
    "no coefficients": (lambda: vm.score(X, Cosine() + RBF()), InputError, ["sum to 2", "expected 1", "0.5"]),
    "one coefficient": (lambda: vm.score(X, 0.5 * Cosine()), InputError, ["sum to 0.5", "expected 1"]),
    "a negative coefficient": (lambda: -0.5 * Cosine(), InputError, ["-0.5", "above 0"]),
    "a zero coefficient": (lambda: 0 * Cosine(), InputError, ["multiplied by 0", "above 0"]),
    "a NaN coefficient": (lambda: NAN * Cosine(), InputError, ["nan", "above 0"]),
    "an infinite coefficient": (lambda: INF * Cosine(), InputError, ["inf", "above 0"]),
    # Parameters.
    "sigma 0": (lambda: RBF(0), InputError, ["sigma=0", "above 0", "median"]),
    "sigma negative": (lambda: RBF(-1), InputError, ["sigma=-1", "above 0"]),
    "sigma NaN": (lambda: RBF(NAN), InputError, ["sigma=nan", "above 0"]),
    "sigma infinite": (lambda: RBF(INF), InputError, ["sigma=inf", "above 0"]),
    "sigma misspelt": (lambda: RBF("mean"), InputError, ["'mean'", "median"]),
    "sigma None": (lambda: RBF(None), InputError, ["sigma=None", "above 0"]),
    "sigma True": (lambda: RBF(True), InputError, ["sigma=True", "above 0"]),
    "several sigmas": (lambda: RBF(np.array([1.0, 2.0])), InputError, ["sigma", "a number above 0"]),
    "scale 0": (lambda: Laplacian(0), InputError, ["scale=0", "above 0"]),
    "scale None": (lambda: Laplacian(None), InputError, ["scale=None", "above 0"]),
    "scale of distances": (lambda: FromDistances("mean"), InputError, ["'mean'", "median"]),
    "scale None of distances": (lambda: FromDistances(None), InputError, ["scale=None", "above 0"]),
    "form misspelt": (lambda: FromDistances(form="gausian"), InputError, ["'gausian'", "'gaussian'"]),
    "degree 0": (lambda: Polynomial(0), InputError, ["degree=0", "from 1 up"]),
    "degree 2.5": (lambda: Polynomial(2.5), InputError, ["degree=2.5", "whole"]),
    "degree of text": (lambda: Polynomial("x"), InputError, ["degree='x'", "whole"]),
    "degree None": (lambda: Polynomial(None), InputError, ["degree=None", "whole"]),
    "degree NaN": (lambda: Polynomial(NAN), InputError, ["degree=nan", "whole"]),
    "degree infinite": (lambda: Polynomial(INF), InputError, ["degree=inf", "whole"]),
    "offset negative": (lambda: Polynomial(2, -1), InputError, ["offset=-1", "from 0 up"]),
    "offset NaN": (lambda: Polynomial(2, NAN), InputError, ["offset=nan", "from 0 up"]),
    "offset of text": (lambda: Polynomial(2, "a"), InputError, ["offset='a'", "from 0 up"]),
    "offset None": (lambda: Polynomial(2, None), InputError, ["offset=None", "from 0 up"]),
    "grams of 0": (lambda: NGram(0, 2), InputError, ["NGram(0, 2)", "1 ≤ low ≤ high"]),
    "grams the wrong way round": (lambda: NGram(3, 2), InputError, ["NGram(3, 2)", "1 ≤ low ≤ high"]),
    "grams of text": (lambda: NGram("a", 2), InputError, ["'a'", "1 ≤ low ≤ high"]),
    "grams of None": (lambda: NGram(None), InputError, ["None", "1 ≤ low ≤ high"]),
    "a tokenizer that is none": (lambda: NGram(tokenizer=5), InputError, ["tokenizer", "5"]),
    "a tokenizer of None": (
        lambda: vm.score(["a b"], NGram(tokenizer=lambda text: None)), InputError, ["tokenizer", "None", "item 0"],
    ),
    "a tokenizer of lists": (
        lambda: vm.score(["a b"], NGram(tokenizer=lambda text: [[1]])), InputError, ["tokenizer", "hashable", "item 0"],
    ),
    # Encoders.
    "an encoder that is none": (lambda: Embed(5), InputError, ["5", "function"]),
    "an encoder of None": (lambda: vm.score(["a", "b"], encoder(None)), InputError, ["encoder", "None", "vector"]),
    "an encoder of None, in batches": (
        lambda: vm.score(["a", "b"], encoder(None, batch_size=1)), InputError, ["encoder", "vector"],
    ),
    "too few vectors": (lambda: vm.score(["a", "b"], encoder([[1, 2]])), InputError, ["(1, 2)", "2 samples"]),
    "too many vectors": (lambda: vm.score(["a", "b"], encoder(np.ones((3, 2)))), InputError, ["(3, 2)", "2 samples"]),
    "too many vectors a batch": (
        lambda: vm.score(["a", "b"], encoder(np.ones((3, 2)), batch_size=1)), InputError, ["(6, 2)", "2 samples"],
    ),
    "one number a sample": (lambda: vm.score(["a", "b"], encoder([1, 2])), InputError, ["vector"]),
    "ragged vectors": (lambda: vm.score(["a", "b"], encoder([[1], [1, 2]])), InputError, ["encoder"]),
    "vectors of two widths": (
        lambda: vm.score(["a", "bb"], Embed(lambda items: [[1] * len(items[0])], batch_size=1)),
        InputError, ["encoder", "(1,)", "(2,)"],
    ),
    "sparse vectors of two widths": (
        lambda: vm.score(
            ["a", "bb"], Embed(lambda items: sparse.csr_array(np.ones((1, len(items[0])))), batch_size=1)
        ),
        InputError, ["encoder"],
    ),
    "a NaN vector": (lambda: vm.score(["a", "b"], encoder([[1, 1], [1, NAN]])), InputError, ["item 1", "nan"]),
    "vectors of text": (lambda: vm.score(["a", "b"], encoder([["u", "v"]] * 2)), InputError, ["strings", "vectors"]),
    "batches of 0": (lambda: encoder(X, batch_size=0), InputError, ["batch_size=0", "from 1 up"]),
    "batches of 2.5": (lambda: encoder(X, batch_size=2.5), InputError, ["batch_size=2.5", "whole"]),
    "batches of text": (lambda: encoder(X, batch_size="2"), InputError, ["batch_size='2'", "whole"]),
    # Functions.
    "a function that is none": (lambda: FromFunction(5), InputError, ["5", "k(a, b)"]),
    "a function of None": (lambda: vm.score([1, 2], constant(None)), InputError, ["None", "items 0 and 0", "number"]),
    "a function of text": (lambda: vm.score([1, 2], constant("x")), InputError, ["'x'", "number"]),
    "a complex function": (lambda: vm.score([1, 2], constant(1j)), InputError, ["1j", "number"]),
    "a function of arrays": (lambda: vm.score(X, constant(np.ones(3))), InputError, ["array", "block=True"]),
    "a function of matrices": (lambda: vm.score(X, constant(cosine(X))), InputError, ["block=True"]),
    "a NaN function": (lambda: vm.score([1, 2], constant(NAN)), MatrixError, ["k[0, 0]", "nan"]),
    "an infinite function": (lambda: vm.score([1, 2], constant(INF)), MatrixError, ["k[0, 0]", "inf"]),
    "k(a, a) = 2": (lambda: vm.score([1, 2], constant(2.0)), DiagonalError, ["k[0, 0] = 2", "normalize=True"]),
    "k(a, a) = 0": (lambda: vm.score([1, 2], lambda a, b: float(a != b)), DiagonalError, ["distances"]),
    "an asymmetric function": (lambda: vm.score([1, 2, 3], before), AsymmetryError, ["0.3", "symmetrize=True"]),
    "an asymmetric function of many": (
        lambda: vm.score(list(range(100)), before), AsymmetryError, ["0.3", "symmetrize=True"],
    ),
    "an indefinite function": (
        lambda: vm.score([0, 1, 2], lambda a, b: {0: 1, 1: 0.9, 2: 0}[abs(a - b)]),
        IndefiniteError, ["-0.2728", "project=True"],
    ),
    "a function of pairs as one of blocks": (
        lambda: vm.score(X, FromFunction(lambda a, b: 1.0, block=True)), InputError, ["shape ()", "(6, 6)"],
    ),
    "a block of None": (lambda: vm.score(X, FromFunction(constant(None), block=True)), InputError, ["(6, 6)"]),
    "a ragged block": (
        lambda: vm.score(X, FromFunction(constant([[1], [1, 2]]), block=True)), InputError, ["block function"],
    ),
    # The items that a message names are those of the user, also where equal ones were joined before.
    "a NaN among equal items": (
        lambda: vm.score(["a", "a", "b", "c"], lambda a, b: NAN if a == b == "c" else equal(a, b)),
        MatrixError, ["[3, 3]", "nan"],
    ),
    "an asymmetry among equal items": (
        lambda: vm.score(["a", "a", "b", "c"], lambda a, b: 0.3 if (a, b) == ("b", "c") else equal(a, b)),
        AsymmetryError, ["[2, 3]", "0.3"],
    ),
    "an asymmetry among items of no weight": (
        lambda: vm.score(
            [0, 1, 2, 3], lambda a, b: 0.3 if (a, b) == (2, 3) else equal(a, b), weights=[0, 0.2, 0.4, 0.4]
        ),
        AsymmetryError, ["[2, 3]", "0.3"],
    ),
}  # fmt: skip

TABLES = {
    "a column on an array": (lambda: vm.score(X, On("a", Cosine())), InputError, ["'a'", "ndarray", "table"]),
    "a column on texts": (lambda: vm.score(["x"], On("a", Match())), InputError, ["'a'", "list", "table"]),
    "columns of two lengths": (
        lambda: vm.score({"a": [1, 2], "b": [1]}, On("a", Match())),
        InputError, ["'a' has 2", "'b' has 1", "one length"],
    ),
    "columns of two lengths for match": (
        lambda: vm.score({"a": [1, 2], "b": [1]}, "match"), InputError, ["'a' has 2", "'b' has 1", "one length"],
    ),
    "many columns of two lengths": (
        lambda: vm.score({f"c{i}": [0] * (2 if i < 500 else 3) for i in range(900)}, On("c0", Match())),
        InputError, ["length"],
    ),
    "a column that is a number": (lambda: vm.score({"a": 1}, On("a", Match())), InputError, ["int"]),
    "a column that is a text": (lambda: vm.score({"a": "xyz"}, On("a", Match())), InputError, ["is the text"]),
    "a record without the field": (
        lambda: vm.score([{"colour": "x"}, {"color": "x"}], On("colour", Match())),
        InputError, ["record 1", "'colour'", "Did you mean 'color'?"],
    ),
    "an item that is no record": (
        lambda: vm.score([{"colour": "x"}, 3], On("colour", Match())), InputError, ["item 1", "int", "records"],
    ),
    "a record with more fields for match": (
        lambda: vm.score([{"a": 1}, {"a": 1, "b": 2}], "match"), InputError, ["record 1", "'b'"],
    ),
    "records under cosine": (lambda: vm.score([{"a": 1}, {"a": 2}]), InputError, ["item 0", "dict"]),
    "two columns of one name": (
        lambda: vm.score(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), On("a", Match())),
        InputError, ["'a'", "column"],
    ),
    "two columns of one name for match": (
        lambda: vm.score(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "match"), InputError, ["'a'", "column"],
    ),
    "two Arrow columns of one name": (
        lambda: vm.score(pa.table([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"]), On("a", Match())),
        InputError, ["'a'", "column"],
    ),
    "two columns of one name as labels": (
        lambda: vm.score_groups(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "match", by="a"),
        InputError, ["'a'", "column"],
    ),
    "a column of vectors of two lengths": (
        lambda: vm.score(pd.DataFrame({"e": [[1, 0], [0, 1, 2]]}), On("e", Cosine())), InputError, ["item 1", "(3,)"],
    ),
    "a missing number": (
        lambda: vm.score(pl.DataFrame({"a": [1, None]}), On("a", RBF(1.0))), InputError, ["item 1", "nan"],
    ),
    "a missing number of pandas": (
        lambda: vm.score(pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), On("a", RBF(1.0))),
        InputError, ["item 1"],
    ),
    "dates under rbf": (
        lambda: vm.score(pd.DataFrame({"a": pd.to_datetime(["2020-01-01", "2021-01-01"])}), On("a", RBF())),
        InputError, ["datetime64"],
    ),
}  # fmt: skip

GROUPS = {
    "no labels": (lambda: vm.score_groups(X), InputError, ["by is missing", "by=labels"]),
    "no labels for a frame": (lambda: vm.score_groups(pd.DataFrame(TABLE)), InputError, ["by is missing"]),
    "no labels for sparse rows": (lambda: vm.score_groups(sparse.csr_array(X)), InputError, ["by is missing"]),
    "a generator": (lambda: vm.score_groups(row for row in X), InputError, ["by is missing"]),
    "too few labels": (lambda: vm.score_groups(X, by=[0] * 5), InputError, ["5 labels", "6 items"]),
    "a label that is None": (lambda: vm.score_groups(X, by=["a"] * 5 + [None]), InputError, ["by[5]", "no label"]),
    "a label that is NaN": (lambda: vm.score_groups(X, by=["a"] * 5 + [NAN]), InputError, ["by[5]", "no label"]),
    "a label that is NA": (lambda: vm.score_groups(X, by=["a"] * 5 + [pd.NA]), InputError, ["by[5]", "no label"]),
    "a masked label": (lambda: vm.score_groups(X, by=masked(range(6), (5,))), InputError, ["by[5]", "no label"]),
    "a label that is a dict": (lambda: vm.score_groups(X, by=[{"a": 1}] * 6), InputError, ["by[0]", "hashable"]),
    "labels that are arrays": (lambda: vm.score_groups(X, by=[np.arange(2)] * 6), InputError, ["by[0]", "label"]),
    "a label among sets": (lambda: vm.score_groups(X, by=[["a"]] * 5 + ["b"]), InputError, ["by[5]", "sets"]),
    "a text": (lambda: vm.score_groups(X, by="colour"), InputError, ["'colour'", "label"]),
    "a number": (lambda: vm.score_groups(X, by=5), InputError, ["by=5", "label"]),
    "a set of labels": (lambda: vm.score_groups(X, by=set(range(5000))), InputError, ["label"]),
    "labels from a generator": (lambda: vm.score_groups(X, by=(i for i in range(6))), InputError, ["label"]),
    "a column misspelt": (
        lambda: vm.score_groups(pd.DataFrame(TABLE), On("size", RBF(1.0)), by="color"),
        InputError, ["'color'", "Did you mean 'colour'?"],
    ),
    "no groups": (lambda: vm.score_groups({}), EmptyError, ["no groups"]),
    "an empty list of groups": (lambda: vm.score_groups([]), EmptyError, ["no groups"]),
    "no rows of counts": (
        lambda: vm.score_groups(np.eye(3), "precomputed", counts=np.zeros((0, 3))), EmptyError, ["no groups"],
    ),
    "only empty groups": (lambda: vm.score_groups({"a": [], "b": []}), EmptyError, ["every group is empty"]),
    "a group that is a number": (lambda: vm.score_groups({"a": 5}), InputError, ["'a'", "5", "collection"]),
    "a group that is a text": (lambda: vm.score_groups({"a": "text"}, "match"), InputError, ["'a'", "'text'"]),
    "groups of two widths": (
        lambda: vm.score_groups({"a": np.ones((2, 3)), "b": np.ones((2, 4))}), InputError, ["(3,)", "(4,)"],
    ),
    "sparse groups of two widths": (
        lambda: vm.score_groups({"a": sparse.csr_array((2, 3)), "b": sparse.csr_array((2, 4))}),
        InputError, ["3", "4"],
    ),
    "masked groups": (lambda: vm.score_groups({"a": masked(X, (0, 0)), "b": X}), InputError, ["masked"]),
    "a zero row in a group": (
        lambda: vm.score_groups({"a": [[1, 2], [3, 1]], "b": [[1, 2], [0, 0]]}), InputError, ["'b'", "zeros"],
    ),
    "weights of separate groups": (lambda: vm.score_groups({"a": X}, weights=[1 / 6] * 6), InputError, ["by=labels"]),
    "a matrix that is not square": (
        lambda: vm.score_groups({"a": np.eye(3), "b": np.ones((2, 3))}, "precomputed"), InputError, ["'b'", "(2, 3)"],
    ),
    "a matrix with a wrong diagonal": (
        lambda: vm.score_groups({"a": np.eye(3), "b": 5 * np.eye(2)}, "precomputed"), DiagonalError, ["'b'", "= 5"],
    ),
    "an indefinite matrix": (
        lambda: vm.score_groups({"a": np.eye(3), "b": [[1, 2], [2, 1]]}, "precomputed"), IndefiniteError, ["'b'", "-1"],
    ),
    "a ragged matrix": (
        lambda: vm.score_groups({"a": np.eye(3), "b": [[1], [1, 2]]}, "precomputed"), InputError, ["ragged"],
    ),
    "an asymmetric function": (
        lambda: vm.score_groups([3, 3, 1, 2], before, by=["u", "u", "v", "v"]), AsymmetryError, ["'v'", "0.3"],
    ),
    "a function with k(a, a) = 3": (
        lambda: vm.score_groups([1, 1, 1, 2], lambda a, b: 3.0 if a == b == 2 else 1.0, by=["u", "u", "v", "v"]),
        DiagonalError, ["'v'", "= 3"],
    ),
    "weights of the wrong width": (
        lambda: vm.score_groups(np.eye(3), "precomputed", weights=[[0.5, 0.5]]), InputError, ["(1, 2)", "3 items"],
    ),
    "weights that do not sum to 1": (
        lambda: vm.score_groups(np.eye(3), "precomputed", weights=[[1, 0, 0], [0, 2, 0]], by=["x", "y"]),
        InputError, ["'y'", "sum to 2"],
    ),
    "ragged weights": (
        lambda: vm.score_groups(np.eye(3), "precomputed", weights=[[1], [0.5, 0.5]]), InputError, ["weights"],
    ),
    "weights in three dimensions": (
        lambda: vm.score_groups(np.eye(3), "precomputed", weights=np.ones((1, 1, 3)) / 3, by=[0] * 3),
        InputError, ["(1, 1, 3)"],
    ),
    "sparse counts": (
        lambda: vm.score_groups(np.eye(3), "precomputed", counts=sparse.csr_array(np.eye(3))), InputError, ["counts"],
    ),
    "one name for two rows": (
        lambda: vm.score_groups(np.eye(3), "precomputed", counts=np.ones((2, 3)), by=["x", "x"]),
        InputError, ["1 different", "2 rows"],
    ),
    "a text for two rows": (
        lambda: vm.score_groups(np.eye(3), "precomputed", counts=np.ones((2, 3)), by="xy"), InputError, ["'xy'"],
    ),
    "a number for two rows": (
        lambda: vm.score_groups(np.eye(3), "precomputed", counts=np.ones((2, 3)), by=5), InputError, ["by=5"],
    ),
    "lists for two rows": (
        lambda: vm.score_groups(np.eye(3), "precomputed", counts=np.ones((2, 3)), by=[["x"], ["y"]]),
        InputError, ["by"],
    ),
    "a group that is not there": (
        lambda: vm.score_groups(X, by=list("aaabbb"))["A"], InputError, ["'A'", "Did you mean 'a'?"],
    ),
}  # fmt: skip

RUBBISH = {
    f"{name}: {row}": entry
    for name, table in {
        "samples": SAMPLES,
        "matrix": MATRICES,
        "weights": WEIGHTS,
        "options": OPTIONS,
        "kernel": KERNELS,
        "table": TABLES,
        "groups": GROUPS,
    }.items()
    for row, entry in table.items()
}


@pytest.mark.parametrize("name", RUBBISH)
def test_rubbish_gets_a_typed_error_that_says_what_was_seen(name):
    call, error, words = RUBBISH[name]
    with pytest.raises(VendimeterError) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, error)
    assert [word for word in words if word not in message] == []
    assert "\n" not in message
    assert len(message) < 600  # data is quoted in part, never in full


def test_a_plan_refuses_what_a_score_refuses(monkeypatch):
    """What only a user's function, or the eigenvalues, can tell is not known to a plan; all else is."""
    unknown = []
    for name, (call, _, _) in RUBBISH.items():
        with pytest.raises(VendimeterError) as scored:
            call()
        with monkeypatch.context() as patch:
            patch.setattr(vm, "score", vm.plan)
            try:
                call()
                planned = None
            except VendimeterError as error:
                planned = error
        if planned is None:
            unknown.append((name, scored.type))
            continue
        said = [re.sub(" at 0x[0-9a-f]+", "", str(error)) for error in (planned, scored.value)]
        assert (type(planned), said[0]) == (scored.type, said[1]), name
    assert unknown
    assert {name.partition(": ")[0] for name, error in unknown if error is not IndefiniteError} == {"kernel"}
    of_functions = ("function", "k(a, a)", "block", "among equal items", "among items of no weight")
    for name, error in unknown:
        assert error is IndefiniteError or any(words in name for words in of_functions), name


def test_a_plan_looks_at_each_row_once_and_at_those_with_weight_only():
    seen = []

    def prepare(rows, positions):
        seen.extend(positions.tolist())
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    class Noting(Kernel):
        def build(self, samples, rng):
            return FeatureRows(np.asarray(samples), prepare)

    vm.plan(np.r_[np.ones((3000, 40)), np.eye(40)], Noting())
    assert seen == list(range(3040))
    rows = np.array([[1.0, 2], [NAN, 1], [2, 1]])
    assert vm.plan(rows, weights=[0.5, 0, 0.5]).method == "exact"
    nearly = CORRELATED.astype(np.float32)
    nearly[0, 1] += 1e-7  # rounding, which a score evens out
    assert vm.plan(nearly, "precomputed").method == "exact"


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("kernel", ["cosine", "rbf", "jaccard", "ngram"])
def test_a_table_needs_the_name_of_a_column(frame, kernel):
    """What is not a function of records or an equality of them reads one column, and has to be told which."""
    with pytest.raises(InputError, match=r"column|dict"):
        vm.score(FRAMES[frame]({"text": ["a b", "c d"], "other": ["e", "f"]}), kernel)


@pytest.mark.parametrize("frame", FRAMES)
def test_an_encoder_never_takes_the_names_of_the_columns_for_the_items(frame):
    """An encoder of a table gets its records, as a function does, or there is an error: name the column."""
    seen = []

    def remember(items):
        seen.extend(items)
        return np.eye(len(items), 4) + 1

    refused = None
    try:
        vm.score(FRAMES[frame]({"text": ["a b", "c d", "e f"], "other": [1, 2, 3]}), Embed(remember))
    except InputError as error:
        refused = str(error)
    if refused is None:
        assert [item["text"] for item in seen] == ["a b", "c d", "e f"]
    else:
        assert "column" in refused
        assert seen == []


@pytest.mark.parametrize("frame", FRAMES)
def test_a_missing_column_is_an_error_with_the_nearest_name(frame):
    table = FRAMES[frame](TABLE)
    with pytest.raises(InputError, match=r"'color'.*Did you mean 'colour'\?"):
        vm.score(table, On("color", Match()))
    with pytest.raises(InputError, match=r"'color'.*Did you mean 'colour'\?"):
        vm.score_groups(table, On("size", RBF(1.0)), by="color")


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("kernel", [On("colour", Match()), Match(), Match(fraction=True)])
def test_a_missing_value_is_not_a_value(frame, kernel):
    table = FRAMES[frame]({"colour": ["red", None, "red", None]})
    with pytest.raises(InputError, match="item 1 has a missing value"):
        vm.score(table, kernel)


@pytest.mark.parametrize(
    ("call", "nonsense"),
    [
        (lambda: vm.score(np.diag([1, 1 + 1.2e-7]), "precomputed"), "K[1, 1] = 1;"),
        (lambda: vm.score([[1, 0.5], [0.5 + 1e-8, 1]], "precomputed"), "K[1, 0] = 0.5."),
        (lambda: vm.score(np.eye(2), "precomputed", weights=[0.5, 0.5 + 3e-6]), "sum to 1;"),
        (lambda: vm.score(np.eye(2), "precomputed", counts=[1 + 1e-7, 1]), "counts[0] is 1;"),
        (lambda: vm.score(X, 0.5 * Cosine() + (0.5 + 1e-7) * RBF()), "sum to 1;"),
        (lambda: vm.score([[0.5, 0.5 + 3e-6]], "probability-product"), "sum to 1;"),
        (lambda: vm.score(list(range(80)), lambda a, b: 0.5 * (a != b) + 1.0 * (a == b) + 1e-9 * (a < b)),
         "0.5 for items 7 and 68."),
    ],
    ids=["diagonal", "asymmetry", "weights", "counts", "coefficients", "probabilities", "function"],
)  # fmt: skip
def test_a_message_shows_the_digits_that_are_wrong(call, nonsense):
    """Never «is 1; expected 1»: what differs in the eighth digit is shown with eight digits, or as a difference."""
    with pytest.raises(InputError) as caught:
        call()
    assert nonsense not in str(caught.value)


def test_an_error_of_the_users_own_function_passes_through():
    """What goes wrong in there is theirs to see, as it is."""
    with pytest.raises(ZeroDivisionError):
        vm.score([1, 2], lambda a, b: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        vm.score([1, 2], Embed(lambda items: 1 / 0))


def test_a_mapping_of_orders_answers_like_a_mapping():
    profile = vm.profile(X, q=[1, 2])
    assert 2 in profile
    assert 3 not in profile
    assert profile.get(3) is None


# -------------------------------------------------------------------------------------- honest input, the right answer

TWO_KINDS = expected([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
THIRD = expected([[1, 1 / 3], [1 / 3, 1]])
QUARTER = expected(np.eye(2), [0.25, 0.75])
ALLOWED = {
    "one row": (lambda: vm.score([[3.0, 4.0]]), 1.0),
    "lists": (lambda: vm.score(X.tolist()), expected(cosine(X))),
    "tuples": (lambda: vm.score(tuple(map(tuple, X))), expected(cosine(X))),
    "arrays in a list": (lambda: vm.score(list(X)), expected(cosine(X))),
    "arrays in an object array": (
        lambda: vm.score(np.array([*X, None], dtype=object)[:-1]), expected(cosine(X)),
    ),
    "series in a list": (lambda: vm.score([pd.Series(row) for row in X]), expected(cosine(X))),
    "a deque": (lambda: vm.score(deque(X.tolist())), expected(cosine(X))),
    "numbers for rbf": (lambda: vm.score([0.0, 1.0], RBF(1.0)), expected([[1, math.exp(-0.5)], [math.exp(-0.5), 1]])),
    "a set": (lambda: vm.score({"a", "b", "c"}, "match"), 3.0),
    "an object array of numbers": (
        lambda: vm.score(np.array([[1, 2], [3, 4]], dtype=object)), expected(cosine([[1, 2], [3, 4]])),
    ),
    "lists for match": (lambda: vm.score([[[1, 2]], [[1, 2]], [[3]]], "match"), TWO_KINDS),
    "a range": (lambda: vm.score(range(5), "match"), 5.0),
    "keys": (lambda: vm.score({"a": 1, "b": 2}.keys(), "match"), 2.0),
    "arrays for match": (lambda: vm.score([np.ones(2), np.ones(2), np.zeros(2)], "match"), TWO_KINDS),
    "empty texts": (lambda: vm.score(["", "", "a"], "ngram"), TWO_KINDS),
    "empty sets": (lambda: vm.score([set(), set(), {1}], "jaccard"), TWO_KINDS),
    "sets in a pandas column": (
        lambda: vm.score(pd.DataFrame({"tags": [{1, 2}, {2, 3}]}), On("tags", Jaccard())), THIRD,
    ),
    "sets in a list of records": (
        lambda: vm.score([{"tags": {1, 2}}, {"tags": {2, 3}}], On("tags", Jaccard())), THIRD,
    ),
    "sparse rows for a function": (
        lambda: vm.score(sparse.coo_array(X), FromFunction(lambda A, B: cosine(np.r_[A.toarray(), B.toarray()])[
            : A.shape[0], A.shape[0] :], block=True)), expected(cosine(X)),
    ),
    "sparse rows for an encoder": (
        lambda: vm.score(sparse.coo_array(X), Embed(lambda items: items.toarray(), batch_size=4)), expected(cosine(X)),
    ),
    "a similarity matrix as embeddings": (
        lambda: vm.score(CORRELATED, Cosine()), expected(cosine(CORRELATED)),
    ),
    "K": (lambda: vm.score(CORRELATED, "precomputed"), expected(CORRELATED)),
    "K as lists": (lambda: vm.score(CORRELATED.tolist(), "precomputed"), expected(CORRELATED)),
    "K in pandas": (lambda: vm.score(pd.DataFrame(CORRELATED), "precomputed"), expected(CORRELATED)),
    "K in polars": (lambda: vm.score(pl.DataFrame(CORRELATED), "precomputed"), expected(CORRELATED)),
    "K in Arrow": (
        lambda: vm.score(pa.table(dict(zip("abc", CORRELATED, strict=True))), "precomputed"), expected(CORRELATED),
    ),
    "K with a little asymmetry": (
        lambda: vm.score(CORRELATED + 1e-13 * np.triu(np.ones((3, 3)), 1), "precomputed"), expected(CORRELATED),
    ),
    "K of bits": (lambda: vm.score(np.eye(3, dtype=bool), "precomputed"), 3.0),
    "K of bytes": (lambda: vm.score(np.eye(3, dtype=np.uint8), "precomputed"), 3.0),
    "sparse K of bits": (lambda: vm.score(sparse.eye_array(3, dtype=bool), "precomputed"), 3.0),
    "K of one": (lambda: vm.score([[1.0]], "precomputed"), 1.0),
    "infinite distances": (lambda: vm.score([[0, INF], [INF, 0]], "from-distances"), 2.0),
    "distances with rounding": (
        lambda: vm.score([[-2e-16, 0.5], [0.5, 2e-16]], FromDistances(1.0)),
        expected([[1, math.exp(-0.5)], [math.exp(-0.5), 1]]),
    ),
    "no distances": (lambda: vm.score(np.zeros((3, 3)), "from-distances"), 1.0),
    "weights in pandas": (lambda: vm.score(np.eye(2), "precomputed", weights=pd.Series([0.25, 0.75])), QUARTER),
    "weights in polars": (lambda: vm.score(np.eye(2), "precomputed", weights=pl.Series([0.25, 0.75])), QUARTER),
    "weights in Arrow": (lambda: vm.score(np.eye(2), "precomputed", weights=pa.array([0.25, 0.75])), QUARTER),
    "weights with zeros": (lambda: vm.score(np.eye(3), "precomputed", weights=[0.5, 0, 0.5]), 2.0),
    "weights next to zero": (lambda: vm.score(np.eye(2), "precomputed", weights=[1 - 1e-300, 1e-300]), 1.0),
    "counts": (lambda: vm.score(np.eye(2), "precomputed", counts=[1, 3]), QUARTER),
    "counts as floats": (lambda: vm.score(np.eye(2), "precomputed", counts=[1.0, 3.0]), QUARTER),
    "counts beyond 2⁵³": (lambda: vm.score(np.eye(2), "precomputed", counts=[2**60, 3 * 2**60]), QUARTER),
    "q as text": (lambda: vm.score(np.eye(2), "precomputed", q="1"), 2.0),
    "q as a 0-d array": (lambda: vm.score(np.eye(2), "precomputed", q=np.array(2.0)), 2.0),
    "a huge q": (lambda: vm.score(np.eye(2), "precomputed", q=1e300), 2.0),
    "tol of NumPy": (lambda: vm.score(X, tol=np.float32(1e-3)), expected(cosine(X))),
    "an integer of NumPy for profile": (lambda: vm.profile(np.eye(2), "precomputed", q=np.int64(2))[2], 2.0),
    "a 0-d array for profile": (lambda: vm.profile(np.eye(2), "precomputed", q=np.array(2.0))[2], 2.0),
    "whole floats for ngram": (
        lambda: vm.score(["a b", "b c"], NGram(1.0, 2.0)), lambda: vm.score(["a b", "b c"], NGram(1, 2)),
    ),
    "a coefficient of NumPy": (
        lambda: vm.score(X, np.float32(0.5) * Cosine() + 0.5 * Cosine()), expected(cosine(X)),
    ),
    "a wide bandwidth": (lambda: vm.score(X, RBF(1e200)), 1.0),
    "a narrow bandwidth": (lambda: vm.score(X, RBF(1e-200)), 6.0),
    "a function of booleans": (lambda: vm.score([1, 1, 2], lambda a, b: a == b), TWO_KINDS),
    "a function of rows of Arrow": (
        lambda: vm.score(pa.table({"a": [0.0, 1.0]}), lambda r, s: math.exp(-abs(r["a"] - s["a"]))),
        expected([[1, math.exp(-1)], [math.exp(-1), 1]]),
    ),
    "a function mended": (
        lambda: vm.score([0, 1], FromFunction(before, symmetrize=True)), expected([[1, 0.15], [0.15, 1]]),
    ),
    "a function of many mended": (
        lambda: vm.score(list(range(80)), FromFunction(before, symmetrize=True)), expected(0.15 + 0.85 * np.eye(80)),
    ),
    "labels in a pandas categorical": (
        lambda: vm.score_groups(list("aabc"), "match", by=pd.Categorical(["u", "u", "v", "v"]))["v"], 2.0,
    ),
    "empty matrices among groups": (
        lambda: vm.score_groups({"a": np.eye(3), "b": sparse.csr_array((0, 0))}, "precomputed")["a"], 3.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOWED)
def test_honest_input_gets_the_right_answer(name):
    call, right = ALLOWED[name]
    assert float(call()) == pytest.approx(right() if callable(right) else right, rel=1e-9)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize(
    "kernel",
    ["cosine", "rbf", "laplacian", "polynomial", "jaccard", Match(), Precomputed(), FromDistances(1.0)],
    ids=str,
)
def test_numpys_old_matrix_class_is_an_array_like_any_other(kernel):
    plain = COUNTS
    if isinstance(kernel, Precomputed | FromDistances):
        plain = CORRELATED if isinstance(kernel, Precomputed) else 1 - CORRELATED
    assert vm.score(np.asmatrix(plain), kernel) == pytest.approx(vm.score(plain, kernel), rel=1e-9)


@pytest.mark.parametrize("frame", FRAMES)
def test_every_kind_of_table_gives_the_same_answer(frame):
    table = FRAMES[frame](TABLE)
    sizes = np.exp(-0.5 * np.subtract.outer(TABLE["size"], TABLE["size"]) ** 2)
    colours = np.equal.outer(TABLE["colour"], TABLE["colour"])
    both = 0.5 * On("colour", Match()) + 0.5 * On("size", RBF(1.0))
    assert vm.score(table, On("colour", Match())) == pytest.approx(expected(colours), rel=1e-9)
    assert vm.score(table, On("size", RBF(1.0))) == pytest.approx(expected(sizes), rel=1e-9)
    assert vm.score(table, both) == pytest.approx(expected((sizes + colours) / 2), rel=1e-9)
    assert vm.score(table, On("colour", NGram(1, 1))) == pytest.approx(expected(colours), rel=1e-9)
    assert vm.score(table, "match") == pytest.approx(3, rel=1e-9)
    function = vm.score(table, lambda a, b: equal(a["colour"], b["colour"]))
    assert function == pytest.approx(expected(colours), rel=1e-9)
    groups = vm.score_groups(table, On("size", RBF(1.0)), by="colour")
    assert groups.labels == ["red", "blue"]
    assert groups["red"] == pytest.approx(expected(sizes[:2, :2]), rel=1e-9)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_column_of_embeddings(frame):
    table = FRAMES[frame]({"name": list("abcdef"), "vector": X.tolist()})
    assert vm.score(table, On("vector", Cosine())) == pytest.approx(expected(cosine(X)), rel=1e-9)


@pytest.mark.parametrize("size", [1e200, 1e-200, 1e150, 1e-150, 1e-300])
@pytest.mark.parametrize(
    ("kernel", "rows"),
    [
        (Cosine(), X),
        (Cosine(), sparse.csr_array(X)),
        (Cosine(), np.tile(X, (1, 20))),
        (RBF(), X),
        (RBF(), np.tile(X, (1, 20))),
        (Laplacian(), X),
        (Polynomial(2, 0), X),
        (Jaccard(), np.abs(X)),
    ],
    ids=["cosine", "sparse cosine", "wide cosine", "rbf", "wide rbf", "laplacian", "polynomial", "jaccard"],
)
def test_the_unit_of_measurement_does_not_matter(kernel, rows, size):
    """These kernels depend on ratios only (the bandwidth is the median distance), however large the numbers."""
    assert vm.score(rows * size, kernel) == pytest.approx(vm.score(rows, kernel), rel=1e-9)


def test_one_row_may_be_large_and_another_small():
    scaled = X * np.array([[1e200], [1e-200], [1.0], [1e-300], [1e300], [1e-160]])
    assert vm.score(scaled) == pytest.approx(expected(cosine(X)), rel=1e-12)
    assert vm.score(sparse.csr_array(scaled)) == pytest.approx(expected(cosine(X)), rel=1e-12)


# ---------------------------------------------------------------------------------------- sparse formats, array layouts

FORMATS = [
    getattr(sparse, f"{name}_{kind}")
    for name in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
    for kind in ("array", "matrix")
]


def insides(matrix: Any) -> dict[str, Any]:
    """Copies of all that a sparse matrix holds, in its own format."""
    names = ("data", "indices", "indptr", "row", "col", "offsets", "rows")
    held = {name: getattr(matrix, name, None) for name in names}
    kept = {name: value.copy() for name, value in held.items() if isinstance(value, np.ndarray)}
    return {**kept, "dense": matrix.toarray(), "format": matrix.format, "dtype": matrix.dtype}


def assert_same(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for name, value in left.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, right[name])
        else:
            assert value == right[name]


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("kernel", "dense", "right"),
    [
        (Cosine(), COUNTS.astype(np.float64), expected(cosine(COUNTS))),
        (Cosine(), COUNTS, expected(cosine(COUNTS))),
        (Jaccard(), COUNTS, expected(jaccard(COUNTS))),
        (Precomputed(), CORRELATED, expected(CORRELATED)),
        (Precomputed(normalize=True), 4 * CORRELATED, expected(CORRELATED)),
        (Precomputed(symmetrize=True), np.triu(CORRELATED * 2 - np.eye(3)), expected(CORRELATED)),
    ],
    ids=["cosine", "cosine of integers", "jaccard", "precomputed", "normalized", "symmetrized"],
)
def test_every_sparse_format_is_right_and_left_as_it_was(kind, kernel, dense, right):
    matrix = kind(dense)
    kept = insides(matrix)
    weights = np.full(len(dense), 1 / len(dense))
    assert vm.score(matrix, kernel) == pytest.approx(right, rel=1e-9)
    assert vm.score(matrix, kernel, weights=weights, q=[0.5, 1])[1] == pytest.approx(right, rel=1e-9)
    assert vm.score_groups(matrix, kernel, by=[0] * len(dense))[0] == pytest.approx(right, rel=1e-9)
    assert_same(insides(matrix), kept)


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.__name__)
def test_the_default_kernel_takes_every_sparse_format(kind):
    rows = kind(COUNTS.astype(np.float64))
    assert vm.score(rows) == pytest.approx(expected(cosine(COUNTS)), rel=1e-9)
    with pytest.raises(InputError, match="precomputed"):
        vm.score(kind(CORRELATED))
    with pytest.raises(InputError, match="precomputed"):
        vm.score(kind(np.eye(3)))


def _untidy() -> dict[str, Any]:
    """The same 3×3 matrix with entries out of order, given twice, or stored though zero."""
    dense = CORRELATED
    row, col = np.nonzero(np.ones((3, 3)))
    zeros = sparse.csr_array((dense.ravel().copy(), col.copy(), np.array([0, 3, 6, 9])), shape=(3, 3))
    unsorted = sparse.csr_array(
        (dense[:, ::-1].ravel().copy(), col.reshape(3, 3)[:, ::-1].ravel().copy(), np.array([0, 3, 6, 9])),
        shape=(3, 3),
    )
    twice = sparse.csr_array(
        (np.repeat(dense.ravel() / 2, 2), np.repeat(col, 2), np.array([0, 6, 12, 18])), shape=(3, 3)
    )
    pairs = sparse.coo_array(
        (np.tile(dense.ravel() / 2, 2), (np.tile(row, 2), np.tile(col, 2))), shape=(3, 3)
    )
    return {"zeros": zeros, "unsorted": unsorted, "twice": twice, "coo twice": pairs}


@pytest.mark.parametrize("name", _untidy())
@pytest.mark.parametrize(
    ("kernel", "right"),
    [(Precomputed(), expected(CORRELATED)), (Cosine(), expected(cosine(CORRELATED)))],
    ids=["precomputed", "cosine"],
)
def test_untidy_sparse_matrices_are_right_and_left_as_they_were(name, kernel, right):
    matrix = _untidy()[name]
    kept = insides(matrix)
    for _ in range(2):
        assert vm.score(matrix, kernel) == pytest.approx(right, rel=1e-9)
        assert vm.score_groups(matrix, kernel, by=[0, 0, 0])[0] == pytest.approx(right, rel=1e-9)
    assert_same(insides(matrix), kept)


def frozen(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def spread(array: np.ndarray) -> np.ndarray:
    """The same values in every second row and column of a larger array."""
    large = np.full((2 * array.shape[0], 2 * array.shape[1]), 77, dtype=array.dtype)
    large[::2, ::2] = array
    return large[::2, ::2]


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": spread,
    "reversed": lambda array: array[::-1].copy()[::-1],
    "read-only": frozen,
    "read-only Fortran": lambda array: frozen(np.asfortranarray(array)),
    "broadcast": lambda array: np.broadcast_to(array, (1, *array.shape))[0],
    "swapped bytes": lambda array: array.astype(array.dtype.newbyteorder()),
}
DTYPES = [np.float64, np.float32, np.float16, np.longdouble, np.int8, np.int64, np.uint8, np.uint64, np.bool_]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "kernel", ["cosine", "rbf", "laplacian", "polynomial", "jaccard", "match", "function"]
)
def test_every_dtype_and_layout_of_rows_is_right_and_left_as_it_was(dtype, layout, kernel):
    plain = COUNTS.astype(dtype).astype(np.float64)
    rows = LAYOUTS[layout](COUNTS.astype(dtype))
    kept = rows.copy()
    chosen = FromFunction(lambda a, b: float(np.array_equal(a, b))) if kernel == "function" else kernel
    right = vm.score(plain, chosen)
    assert vm.score(rows, chosen) == pytest.approx(right, rel=1e-9)
    assert vm.score(rows, chosen, weights=np.full(6, 1 / 6)) == pytest.approx(right, rel=1e-9)
    assert vm.score_groups(rows, chosen, by=[0] * 6)[0] == pytest.approx(right, rel=1e-9)
    np.testing.assert_array_equal(rows, kept)
    assert rows.dtype == kept.dtype


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "options", [{}, {"normalize": True}, {"symmetrize": True}, {"project": True}], ids=str
)
@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.float16, np.longdouble], ids=lambda dtype: dtype.__name__
)
def test_every_layout_of_a_matrix_is_right_and_left_as_it_was(layout, options, dtype):
    matrix = LAYOUTS[layout](CORRELATED.astype(dtype))  # all entries are exact in float16
    kept = matrix.copy()
    kernel = Precomputed(**options)
    assert vm.score(matrix, kernel) == pytest.approx(expected(CORRELATED), rel=1e-9)
    assert vm.score(matrix, kernel, weights=[0.5, 0.25, 0.25]) == pytest.approx(
        expected(CORRELATED, [0.5, 0.25, 0.25]), rel=1e-9
    )
    groups = vm.score_groups(matrix, kernel, by=[0, 0, 0])
    assert groups[0] == pytest.approx(expected(CORRELATED), rel=1e-9)
    np.testing.assert_array_equal(matrix, kept)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", ["exponential", "gaussian", "linear"])
def test_every_layout_of_distances_is_right_and_left_as_it_was(layout, form):
    distances = LAYOUTS[layout](np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0])))
    kept = distances.copy()
    similarity = {
        "exponential": np.exp(-kept / 4),
        "gaussian": np.exp(-(kept**2) / 32),
        "linear": 1 - kept / 4,
    }[form]
    assert vm.score(distances, FromDistances(4.0, form)) == pytest.approx(expected(similarity), rel=1e-9)
    np.testing.assert_array_equal(distances, kept)


def test_lists_weights_and_labels_are_left_as_they_were():
    rows, weights, labels = (
        X.tolist(),
        [0.1, 0.1, 0.2, 0.2, 0.2, 0.2],
        [["u"], ["u", "v"], ["v"], [], ["u"], ["v"]],
    )
    kept = [list(row) for row in rows], list(weights), [list(label) for label in labels]
    vm.score_groups(rows, by=labels, weights=weights)
    vm.score(rows, weights=weights)
    assert (rows, weights, labels) == kept


# ------------------------------------------------------------------------------------- functions beyond a single block


@pytest.mark.parametrize("block", [True, False], ids=["of blocks", "of pairs"])
def test_a_function_is_checked_and_mended_beyond_the_first_block(block):
    """Similarities come in blocks of 1,024 items; an asymmetry between two blocks is one like any other."""
    first, second = 1024, 76

    def ahead(a, b):
        a, b = (a[:, None], b) if block else (a, b)
        return np.where(a == b, 1.0, np.where((a < first) & (b >= first), 0.002, 0.0))

    items = np.arange(first + second)
    with pytest.raises(AsymmetryError, match=r"0\.002"):
        vm.score(items, FromFunction(ahead, block=block))
    # The mean of the two orders is 0.001 between the blocks: two eigenvalues 1 ± 0.001·√(1024·76), the others 1.
    values = np.ones(first + second)
    values[:2] += np.array([1, -1]) * 0.001 * math.sqrt(first * second)
    values /= values.sum()
    right = float(np.exp(-np.sum(values * np.log(values))))
    score = vm.score(items, FromFunction(ahead, block=block, symmetrize=True), q=[1, "inf"])
    assert score[1] == pytest.approx(right, rel=1e-9)
    assert score["inf"] == pytest.approx(1 / values.max(), rel=1e-9)
