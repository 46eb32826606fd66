"""Counts of n-grams in whole arrays: a token is a number, and an n-gram a pair of an (n−1)-gram and a token."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from vendimeter.data.arrays import plain
from vendimeter.errors import InputError, brief

__all__ = ["bags", "hashes", "unrolled"]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHORT = np.uint64(0x5851F42D4C957F2D)  # tells a text that is too short from an n-gram


def bags(
    ids: np.ndarray,
    starts: np.ndarray,
    low: int,
    high: int,
    *,
    hashed: tuple[np.ndarray, int] | None = None,
) -> list[Any]:
    """How often each n-gram occurs in each text: a CSR array of float64 counts for every n = low … high.

    A text with fewer than n tokens has one n-gram, itself, which is equal only to that of an equal text.

    Parameters
    ----------
    ids, starts : ndarray
        The tokens of all texts as whole numbers from 0 up, one after another, and where each text begins (and the last
        one ends).
    low, high : int
        The shortest and the longest n-grams.
    hashed : tuple of ndarray and int, optional
        The hash of each token, and a number of columns: n-grams go into columns by their hash, rather than as met.

    Examples
    --------
    >>> import numpy as np
    >>> [bag.toarray().tolist() for bag in bags(np.array([0, 1, 0, 1]), np.array([0, 3, 4]), 1, 2)]
    [[[2.0, 1.0], [0.0, 1.0]], [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]
    """
    lengths = np.diff(starts)
    at = np.arange(len(ids))
    room = np.repeat(starts[1:], lengths) - at  # tokens from here to the end of the text
    tokens = ids if hashed is None else hashed[0][ids]
    distinct = int(ids.max(initial=-1)) + 1
    gram = tokens
    whole = np.zeros(len(lengths), dtype=tokens.dtype)  # the number of a text that is too short
    wholes, found = 0, []
    for n in range(1, high + 1):
        ended = np.flatnonzero(lengths == n - 1)
        if len(ended):
            # Its one gram is the (n−1)-gram that it begins with; of an empty text there is only one kind.
            own = gram[np.searchsorted(at, starts[ended])] if n > 1 else whole[ended]
            if hashed is None:
                names, own = np.unique(own, return_inverse=True)
                whole[ended] = wholes + own
                wholes += len(names)
            else:
                whole[ended] = _mixed(own ^ _SHORT)
        if n > 1:
            keep = room >= n
            at, room = at[keep], room[keep]
            last = tokens[at + (n - 1)]
            if hashed is None:  # there are fewer grams than tokens, so that the number of a pair is below 2⁶³
                gram = np.unique(gram[keep] * distinct + last, return_inverse=True)[1]
            else:
                gram = _mixed(gram[keep] * _ODD + last)
        if n >= low:
            found.append(_counts(lengths, n, gram, whole, wholes, None if hashed is None else hashed[1]))
    return found


def _counts(
    lengths: np.ndarray, n: int, gram: np.ndarray, whole: np.ndarray, wholes: int, columns: int | None
) -> Any:
    """The n-grams of all texts, one after another, as counts."""
    from scipy import sparse

    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.maximum(lengths - n + 1, 1), out=indptr[1:])
    short = np.flatnonzero(lengths < n)
    long = np.ones(indptr[-1], dtype=bool)
    long[indptr[short]] = False
    indices = np.empty(indptr[-1], dtype=np.int64)
    if columns is None:
        grams = int(gram.max(initial=-1)) + 1
        width = max(grams + wholes, 1)
        indices[long], indices[~long] = gram, grams + whole[short]
    else:
        width = columns
        size = np.uint64(columns)
        indices[long], indices[~long] = gram % size, whole[short] % size
    counts = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(lengths), width))
    counts.sum_duplicates()
    return counts


def unrolled(counts: Any) -> Any:
    """Counts as binary columns [c ≥ 1], [c ≥ 2], …, as many for each as it needs: Σ min is then an inner product.

    Examples
    --------
    >>> from scipy import sparse
    >>> unrolled(sparse.csr_array([[2.0, 0.0], [1.0, 1.0]])).toarray().tolist()
    [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    from scipy import sparse

    times = counts.data.astype(np.int64)
    most = np.zeros(counts.shape[1], dtype=np.int64)
    np.maximum.at(most, counts.indices, times)
    first = np.cumsum(most) - most
    entry_ends = np.cumsum(times)
    level = np.arange(entry_ends[-1]) - np.repeat(entry_ends - times, times)
    indices = np.repeat(first[counts.indices], times) + level
    indptr = np.concatenate([[0], entry_ends])[counts.indptr]
    shape = (counts.shape[0], int(most.sum()))
    return sparse.csr_array((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=shape)


def hashes(vocabulary: Sequence[Hashable]) -> np.ndarray:
    """A number for each token, the same in every process: Python's own hash of a text is not.

    A whole number is one, of whatever type it is: NumPy's are those that lists in a column of a frame hold.

    Examples
    --------
    >>> hashes(["a", "b"]).tolist() == hashes(["a", "b"]).tolist(), len(set(hashes(["a", "b", 1]).tolist()))
    (True, 3)
    """
    found = np.empty(len(vocabulary), dtype=np.uint64)
    for i, token in enumerate(map(plain, vocabulary)):
        if not isinstance(token, str | int):
            raise InputError(
                f"hashed= met the token {brief(token)}; expected tokens that are texts or whole numbers."
            )
        kind = "s" if isinstance(token, str) else "i"
        data = f"{kind}{token if kind == 's' else int(token)}".encode("utf-8", "surrogatepass")
        found[i] = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
    return found


def _mixed(values: np.ndarray) -> np.ndarray:
    """Every bit of the result depends on every bit of the value (the end of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
