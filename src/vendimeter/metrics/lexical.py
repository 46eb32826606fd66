"""Diversity of wording: distinct n-grams, and how far the texts compress."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.data.tokens import Tokenizer, texts_of
from vendimeter.errors import EmptyError, InputError
from vendimeter.messages import brief, check_characters, unknown
from vendimeter.metrics.samples import opened, placed
from vendimeter.metrics.texts import (
    LONGEST,
    grouped,
    mean_over_groups,
    ngrams_by_length,
    number_tokens,
)
from vendimeter.options import as_number
from vendimeter.results.base import Figure

__all__ = ["CompressionRatio", "NgramDiversity", "compression_ratio", "ngram_diversity"]

AT_ONCE = 1 << 20  # bytes that a compressor gets at a time
# Each writes no time, no name and nothing else that differs between runs.
_COMPRESSORS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.compressobj(9, zlib.DEFLATED, 31),
    "xz": lzma.LZMACompressor,
    "bz2": bz2.BZ2Compressor,
}


@dataclass(frozen=True, repr=False, eq=False)
class NgramDiversity(Figure):
    """The share of n-grams that are distinct; a float.

    Attributes
    ----------
    value : float
        The mean over the lengths of n-gram that occur; with groups the mean over them.
    by_length : dict
        n → distinct-n, with groups the mean over those that have such n-grams; NaN where no text has n tokens.
    tokens, texts, groups : int
        How many there are; one collection is one group.
    left_out : int
        Groups without a single n-gram, which have no value.
    standard_error : float
        Of the mean over groups (the standard deviation over the root of their number); NaN for one group.
    values : ndarray, shape (groups,)
        The diversity of each group, NaN for those left out.
    """

    value: float
    by_length: dict[int, float]
    tokens: int
    texts: int
    groups: int
    left_out: int
    standard_error: float
    values: np.ndarray = field(repr=False)


def ngram_diversity(
    samples: Any,
    *,
    low: int = 1,
    high: int = 4,
    tokenizer: Tokenizer = None,
    lowercase: bool = True,
    by: Any = None,
    groups: bool | None = None,
) -> NgramDiversity:
    """N-gram diversity: distinct n-grams over all n-grams of the collection, mean over n = low … high.

    distinct-n = |set of n-grams| / number of n-grams, over all texts together. It is 1 where no n-gram comes twice,
    and near 0 where all is repetition: higher is more diverse.

    Parameters
    ----------
    samples : list of texts, Collection, or groups of texts
        Strings, or lists of tokens throughout. Groups (answers to one prompt, captions of one image) are a mapping
        label → texts, a list of lists with ``groups=True``, or one collection with `by`.
    low, high : int
        The shortest and the longest n-grams; the Vendi Score paper takes 1 to 4, Li et al. 1 and 2.
    tokenizer : str or callable, optional
        What splits a text, as for `vendimeter.kernels.NGram`: ``"words"`` by default.
    lowercase : bool
        Whether to ignore case. Tokens are taken as they are.
    by : list or array, optional
        One label a text, which makes groups; for a Collection also the name of a column.
    groups : bool, optional
        Whether each sample is a group. A list of lists of strings is refused without it, since each may be the tokens
        of a text (False) or the texts of a group (True).

    Returns
    -------
    NgramDiversity
        A float, with the figure of each length and of each group.

    Notes
    -----
    N-grams do not reach from one text into the next, and a text with fewer than n tokens has no n-gram. Lengths for
    which there is none are left out of the mean and are NaN in `by_length`.

    It falls with the number of texts and tokens (words run out), so that only collections of like size compare. It also
    mixes repetition within a text with overlap between texts: one long text raises it, and one text that repeats itself
    lowers it, whatever the others are. The Vendi Score with `vendimeter.kernels.NGram` is free of both.

    References
    ----------
    Li, Galley, Brockett, Gao, Dolan: A diversity-promoting objective function for neural conversation models, NAACL
    2016 (distinct-1, distinct-2). Friedman, Dieng: The Vendi Score, TMLR 2023 (n-gram diversity, n = 1 … 4).

    Examples
    --------
    >>> from vendimeter.metrics import ngram_diversity
    >>> found = ngram_diversity(["a dog runs", "a dog sits"], high=2)
    >>> round(found, 4), {n: round(value, 4) for n, value in found.by_length.items()}
    (0.7083, {1: 0.6667, 2: 0.75})
    >>> ngram_diversity({"first": ["a b", "a b"], "second": ["a b", "c d"]}, high=2)
    NgramDiversity(0.75, by_length={1: 0.75, 2: 0.75}, tokens=8, texts=4, groups=2, left_out=0, standard_error=0.25)
    """
    low, high = _check_lengths(low, high)
    with placed(samples):
        texts = grouped(samples, "ngram_diversity", by=by, groups=groups)
        ids, starts = number_tokens(texts, tokenizer, lowercase)
        group, count = texts.group, len(texts.labels)
        shares = np.full((high - low + 1, count), np.nan)
        for n, gram, text in ngrams_by_length(ids, starts, high):
            if not len(gram):
                break
            if n >= low:
                total = np.bincount(group[text], minlength=count)
                # No n-gram number is in two groups, so that any of its texts tells the group.
                group_of_gram = np.empty(int(gram.max()) + 1, dtype=np.int64)
                group_of_gram[gram] = group[text]
                np.divide(
                    np.bincount(group_of_gram, minlength=count), total, out=shares[n - low], where=total > 0
                )
        values = _nan_means(shares, axis=0)
        if np.isnan(values).all():
            tokens = "a token" if low == 1 else f"{low} tokens"
            raise EmptyError(
                f"no text has {tokens}, so that there are no n-grams; expected one text that has."
            )
        mean, error, left_out = mean_over_groups(values)
        by_length = dict(zip(range(low, high + 1), _nan_means(shares, axis=1).tolist(), strict=True))
        return NgramDiversity(mean, by_length, len(ids), len(texts.texts), count, left_out, error, values)


def _check_lengths(low: Any, high: Any) -> tuple[int, int]:
    first, last = as_number(low), as_number(high)
    if not (1 <= first <= last <= LONGEST and first == int(first) and last == int(last)):
        raise InputError(
            f"low={brief(low)}, high={brief(high)}; expected whole numbers with 1 ≤ low ≤ high ≤ {LONGEST:,}: the "
            "shortest and the longest n-grams."
        )
    return int(first), int(last)


def _nan_means(values: np.ndarray, axis: int) -> np.ndarray:
    """Means of the values that are not NaN; NaN where all are."""
    valid = ~np.isnan(values)
    count = valid.sum(axis=axis)
    means = np.full(count.shape, np.nan)
    return np.divide(np.where(valid, values, 0.0).sum(axis=axis), count, out=means, where=count > 0)


# ------------------------------------------------------------------------------------------------------- compression


@dataclass(frozen=True, repr=False, eq=False)
class CompressionRatio(Figure):
    """How many times smaller the compressed texts are; a float.

    Attributes
    ----------
    value : float
        size / compressed.
    size, compressed : int
        Bytes of the texts, joined by newlines, and of what the compressor made of them.
    method : str
        The compressor.
    """

    value: float
    size: int
    compressed: int
    method: str


def compression_ratio(samples: Any, *, method: str = "gzip") -> CompressionRatio:
    """Compression ratio: bytes of the texts over their bytes when compressed.

    CR = |t₁⏎t₂⏎…⏎tₙ| / |compressed(t₁⏎t₂⏎…⏎tₙ)|, in bytes of UTF-8. Repeated wording compresses: higher is less
    diverse.

    Parameters
    ----------
    samples : list of texts or Collection
        Strings; tokens are not taken, since it is about the bytes of the texts.
    method : str
        ``"gzip"`` (level 9; Shaib et al.), ``"xz"`` or ``"bz2"``.

    Returns
    -------
    CompressionRatio
        A float, with both sizes.

    Notes
    -----
    The texts are compressed once, in memory, a block at a time, and the result is the same on every run. The file
    format itself takes 20 bytes with gzip, 14 with bz2 and 32 with xz, so that a collection of a few hundred bytes
    looks more diverse than it is; and every ratio grows with the size of the collection, so that only like sizes
    compare. gzip sees what lies within 32 KiB, bz2 within 900 kB and xz within 8 MiB: repetition further apart goes
    unseen, and the order of the texts matters.

    References
    ----------
    Shaib, Barrow, Sun, Siu, Wallace, Nenkova: Standardizing the measurement of text diversity, arXiv:2403.00553, 2024.

    Examples
    --------
    >>> from vendimeter.metrics import compression_ratio
    >>> compression_ratio(["a dog runs on the beach"] * 20) > 4 * compression_ratio(["a dog", "two boats at sea"])
    True
    """
    if not isinstance(method, str) or method not in _COMPRESSORS:
        raise unknown("method", method, _COMPRESSORS)
    with opened(samples, "compression_ratio") as samples:
        texts = texts_of(samples, "compression_ratio", who="compression_ratio")
        if not isinstance(texts[0], str):
            raise InputError(
                f"item 0 is a list, {brief(list(texts[0]))}; compression_ratio expected texts (strings). Join tokens "
                "to a text, or pass the texts of each group by themselves."
            )
        compressor = _COMPRESSORS[method]()
        size = compressed = 0
        for block in _utf8_blocks(texts):
            size += len(block)
            compressed += len(compressor.compress(block))
        compressed += len(compressor.flush())
        if not size:
            raise EmptyError("samples holds one text without characters; the ratio of nothing is undefined.")
        return CompressionRatio(size / compressed, size, compressed, method)


def _utf8_blocks(texts: list[str]) -> Iterator[bytes]:
    """The texts in UTF-8 with newlines between them, in blocks, so that memory holds no copy of all."""
    block = bytearray()
    for i, text in enumerate(texts):
        if i:
            block += b"\n"
        check_characters(text, f"item {i}", item=i)
        block += text.encode()
        if len(block) >= AT_ONCE:
            yield bytes(block)
            block.clear()
    yield bytes(block)
