"""N-grams of texts in whole arrays, for metrics: a text with fewer than n tokens has none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.tokens import Tokenizer, check, tokens_of
from vendimeter.errors import InputError, brief
from vendimeter.metrics._texts import Grouped
from vendimeter.options import check_flag, whole_number

__all__ = ["LONGEST", "Runs", "check_length", "grams_of", "numbered", "runs_of"]

LONGEST = 1000  # n-grams: there is one figure a length, and longer ones say nothing


def check_length(n: Any, name: str) -> int:
    """The length of the longest n-grams."""
    if whole_number(n, name) > LONGEST:
        raise InputError(f"{name}={brief(n)}; expected a whole number from 1 to {LONGEST:,}.")
    return int(n)


def numbered(texts: Grouped, tokenizer: Tokenizer, lowercase: Any) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of all texts as numbers, and where each text begins; numbers of different groups differ.

    So n-grams of different groups differ as well, and all groups are counted at once.
    """
    check(tokenizer)
    ids, starts, vocabulary = tokens_of(texts.texts, tokenizer, lowercase=check_flag(lowercase, "lowercase"))
    if len(texts.labels) > 1:
        group = np.repeat(texts.group, np.diff(starts))
        ids = np.unique(group * len(vocabulary) + ids, return_inverse=True)[1]
    return ids, starts


def grams_of(ids: np.ndarray, starts: np.ndarray, high: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """For n = 1 … high: n, the n-grams of all texts as numbers from 0 up, and the text of each, in order.

    They never reach from one text into the next, and a text with fewer than n tokens has none.

    Examples
    --------
    >>> import numpy as np
    >>> for n, gram, text in grams_of(np.array([0, 1, 0, 1, 1]), np.array([0, 4, 5]), 2):
    ...     print(n, gram.tolist(), text.tolist())
    1 [0, 1, 0, 1, 1] [0, 0, 0, 0, 1]
    2 [0, 1, 0] [0, 0, 0]
    """
    lengths = np.diff(starts)
    text = np.repeat(np.arange(len(lengths)), lengths)
    at = np.arange(len(ids))
    distinct = int(ids.max(initial=-1)) + 1
    gram = ids
    for n in range(1, high + 1):
        if n > 1:
            keep = at + n <= starts[text + 1]
            at, text = at[keep], text[keep]
            # There are fewer grams than tokens, so that the number of a pair is below 2⁶³.
            gram = np.unique(gram[keep] * distinct + ids[at + (n - 1)], return_inverse=True)[1]
        yield n, gram, text


@dataclass(frozen=True)
class Runs:
    """How often each n-gram occurs in each text that has it: by n-gram, and within one by count, rising.

    Attributes
    ----------
    text, times : ndarray
        The text, and how often it has the n-gram.
    first, size : ndarray
        Where the entries of the n-gram of each entry begin, and how many there are.
    """

    text: np.ndarray
    times: np.ndarray
    first: np.ndarray
    size: np.ndarray


def runs_of(gram: np.ndarray, text: np.ndarray) -> Runs:
    """Count n-grams within texts.

    Examples
    --------
    >>> import numpy as np
    >>> runs = runs_of(np.array([0, 1, 0, 0, 1]), np.array([0, 0, 0, 1, 1]))
    >>> runs.text.tolist(), runs.times.tolist(), runs.first.tolist(), runs.size.tolist()
    ([1, 0, 0, 1], [1, 2, 1, 1], [0, 0, 2, 2], [2, 2, 2, 2])
    """
    order = np.argsort(gram, kind="stable")  # texts rise within a gram
    gram, text = gram[order], text[order]
    start = np.flatnonzero(_changes(gram) | _changes(text))
    times = np.diff(np.append(start, len(gram)))
    gram, text = gram[start], text[start]
    order = np.lexsort((times, gram))
    starts = np.flatnonzero(_changes(gram))
    sizes = np.diff(np.append(starts, len(gram)))
    return Runs(text[order], times[order], np.repeat(starts, sizes), np.repeat(sizes, sizes))


def _changes(values: np.ndarray) -> np.ndarray:
    """Whether each value differs from the one before it; the first does."""
    changed = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed
