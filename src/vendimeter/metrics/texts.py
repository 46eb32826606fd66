"""Texts in groups, means over groups, and n-gram counts: what the metrics of texts share.

The n-grams are numbered and counted in whole arrays; a text with fewer than n tokens has none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.data import frames
from vendimeter.data.arrays import is_frame_column, is_table, length, refuse_set, to_list
from vendimeter.data.collection import Collection
from vendimeter.data.groups import Grouping, read, split
from vendimeter.data.tokens import Tokenizer, check, texts_of, tokens_of
from vendimeter.diversity import Diversity
from vendimeter.errors import EmptyError, InputError
from vendimeter.messages import brief, in_group, shape_of
from vendimeter.metrics.samples import refuse_weights
from vendimeter.options import check_flag, whole_number
from vendimeter.results.base import Figure

__all__ = [
    "LONGEST",
    "Grouped",
    "Overlap",
    "TextCounts",
    "check_length",
    "check_pairs",
    "count_in_texts",
    "grouped",
    "mean_over_groups",
    "ngrams_by_length",
    "number_tokens",
]


# ------------------------------------------------------------------------------------------------------------ groups


@dataclass(frozen=True)
class Grouped:
    """Texts, one group after another.

    Attributes
    ----------
    texts : list
        Strings, or tuples of tokens throughout.
    labels : sequence
        The names of the groups.
    starts : ndarray, shape (groups + 1,)
        Group g has the texts starts[g] … starts[g+1].
    in_groups : bool
        Whether there are groups, be it one; else all texts are one collection.
    """

    texts: list[Any]
    labels: Sequence[Hashable]
    starts: np.ndarray
    in_groups: bool = False

    @property
    def sizes(self) -> np.ndarray:
        """Texts in each group."""
        return np.diff(self.starts)

    @property
    def group(self) -> np.ndarray:
        """The group of each text."""
        return np.repeat(np.arange(len(self.labels)), self.sizes)

    def naming(self, g: int) -> AbstractContextManager[None]:
        """Put the name of a group in front of errors about its texts, where there are several groups."""
        return in_group(self.labels[g]) if len(self.labels) > 1 else nullcontext()


def grouped(samples: Any, metric: str, *, by: Any = None, groups: Any = None) -> Grouped:
    """Texts in groups: by labels, as a mapping or list of groups, all of them in one, or grouped already.

    A `Collection` has groups where its samples are lists of texts, a `Diversity` has its own with ``groups=True``.

    Examples
    --------
    >>> grouped({"x": ["a b", "c"], "y": ["d"]}, "self_bleu").starts.tolist()
    [0, 2, 3]
    >>> grouped(["a b", "c", "d"], "self_bleu", by=["x", "y", "x"]).texts
    ['a b', 'd', 'c']
    """
    if isinstance(samples, Grouped):
        return samples
    if groups is not None:
        groups = check_flag(groups, "groups")
    if isinstance(samples, Collection):
        by = None if by is None else samples.labels_by(by)
        groups = samples.is_group if groups is None else groups
    if by is not None and groups:
        raise InputError(
            "by and groups=True are both given; expected one label a text (by=), or texts that lie in groups "
            "already (groups=True)."
        )
    if isinstance(samples, Collection) and samples.is_group and groups:
        return _read_groups(list(samples.groups(range(len(samples))).values()), metric)
    refuse_weights(samples, metric)
    if isinstance(samples, Diversity):
        if groups:
            return _arranged(_texts(samples.samples, metric, ambiguous=False), samples.required_groups())
        samples, groups = samples.samples, False
    samples = samples.samples if isinstance(samples, Collection) else frames.known(samples)
    if by is not None:
        return _group_by_labels(samples, metric, by, groups)
    if groups or (groups is None and isinstance(samples, Mapping)):
        return _read_groups(samples, metric)
    texts = _texts(samples, metric, ambiguous=groups is None)
    return Grouped(texts, range(1), np.array([0, len(texts)]))


def _texts(samples: Any, metric: str, *, ambiguous: bool) -> list[Any]:
    """One collection of texts; with `ambiguous` lists of strings are refused, which may be groups as well."""
    texts = texts_of(samples, metric, who=metric)
    token_list = next(
        (i for i, text in enumerate(texts) if not isinstance(text, str) and _any_string(text)), None
    )
    if ambiguous and token_list is not None:
        raise InputError(
            f"item {token_list} is a list of strings, {brief(list(texts[token_list]))}, which may be the tokens of one "
            "text or the texts of one group; pass groups=False for tokens, or groups=True for groups.",
            item=token_list,
        )
    return texts


def _any_string(tokens: Sequence[Any]) -> bool:
    return any(isinstance(token, str) for token in tokens)


def _group_by_labels(samples: Any, metric: str, by: Any, groups: bool | None) -> Grouped:
    refuse_set(samples, "labels")
    texts = _texts(samples, metric, ambiguous=groups is None)
    return _arranged(texts, read(by, len(texts), None))


def _arranged(texts: list[Any], groups: Grouping) -> Grouped:
    """Texts one group after another."""
    return Grouped([texts[i] for i in groups.items.tolist()], groups.labels, groups.starts, in_groups=True)


def _read_groups(samples: Any, metric: str) -> Grouped:
    """Groups that the user has separated, each a list of texts or of lists of tokens."""
    if isinstance(samples, str | bytes) or is_table(samples) or not hasattr(samples, "__len__"):
        raise InputError(
            f"samples is {brief(samples)}; {metric} expected groups of texts: a mapping label → texts, or a list of "
            "lists of texts."
        )
    if isinstance(samples, np.ndarray) and samples.ndim != 1:
        raise InputError(
            f"samples has shape {shape_of(samples.shape)}; {metric} expected groups of texts. Pass samples.tolist()."
        )
    labels, parts = split(to_list(samples) if is_frame_column(samples) else samples)
    texts: list[Any] = []
    sizes = []
    for label, group in zip(labels, parts, strict=True):
        with in_group(label):
            group_texts = texts_of(group, metric, who=metric) if length(group) else []
            if group_texts and texts and isinstance(group_texts[0], str) != isinstance(texts[0], str):
                raise InputError(
                    f"item 0 is a {_kind(group_texts[0])}, and earlier groups hold {_kind(texts[0])}s; {metric} "
                    "expected texts (strings), or lists of tokens throughout."
                )
        texts += group_texts
        sizes.append(len(group_texts))
    if not texts:
        raise EmptyError("every group is empty; expected at least one text.")
    return Grouped(texts, labels, np.concatenate([[0], np.cumsum(sizes)]), in_groups=True)


def _kind(text: Any) -> str:
    return "text" if isinstance(text, str) else "list of tokens"


def check_pairs(texts: Grouped, metric: str) -> None:
    """Refuse texts of which no group has two to compare."""
    if texts.sizes.max() < 2:
        whose = "samples has one text" if len(texts.labels) == 1 else "no group has more than one text"
        raise InputError(f"{whose}; {metric} compares texts with each other and expected two at least.")


# ------------------------------------------------------------------------------------------------------------- means


def mean_over_groups(values: np.ndarray) -> tuple[float, float, int]:
    """The mean of the values that are not NaN, its standard error (NaN for a single one), and how many are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> mean_over_groups(np.array([1.0, 2.0, np.nan]))
    (1.5, 0.5, 1)
    """
    valid = values[~np.isnan(values)]
    error = float(np.std(valid, ddof=1) / np.sqrt(len(valid))) if len(valid) > 1 else float("nan")
    return float(valid.mean()), error, len(values) - len(valid)


@dataclass(frozen=True, repr=False, eq=False)
class Overlap(Figure):
    """How much texts are like each other; a float.

    Attributes
    ----------
    value : float
        The figure; with groups the mean over them.
    texts, groups : int
        How many there are; one collection is one group.
    left_out : int
        Groups of fewer than two texts, which have no value.
    standard_error : float
        Of the mean over groups (the standard deviation over the root of their number); NaN for one group.
    values : ndarray, shape (groups,)
        The figure of each group, NaN for those left out.
    """

    value: float
    texts: int
    groups: int
    left_out: int
    standard_error: float
    values: np.ndarray = field(repr=False)

    @classmethod
    def over(cls, texts: Grouped, values: np.ndarray) -> Overlap:
        """The mean over groups."""
        mean, error, left_out = mean_over_groups(values)
        return cls(mean, len(texts.texts), len(values), left_out, error, values)


# --------------------------------------------------------------------------------------------------------------- grams

LONGEST = 1000  # n-grams: there is one figure a length, and longer ones say nothing


def check_length(n: Any, name: str) -> int:
    """The length of the longest n-grams."""
    if whole_number(n, name) > LONGEST:
        raise InputError(f"{name}={brief(n)}; expected a whole number from 1 to {LONGEST:,}.")
    return int(n)


def number_tokens(texts: Grouped, tokenizer: Tokenizer, lowercase: Any) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of all texts as numbers, and where each text begins; numbers of different groups differ.

    So n-grams of different groups differ as well, and all groups are counted at once.
    """
    check(tokenizer)
    ids, starts, vocabulary = tokens_of(texts.texts, tokenizer, lowercase=check_flag(lowercase, "lowercase"))
    if len(texts.labels) > 1:
        group = np.repeat(texts.group, np.diff(starts))
        ids = np.unique(group * len(vocabulary) + ids, return_inverse=True)[1]
    return ids, starts


def ngrams_by_length(
    ids: np.ndarray, starts: np.ndarray, high: int
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """For n = 1 … high: n, the n-grams of all texts as numbers from 0 up, and the text of each, in order.

    They never reach from one text into the next, and a text with fewer than n tokens has none.

    Examples
    --------
    >>> import numpy as np
    >>> for n, gram, text in ngrams_by_length(np.array([0, 1, 0, 1, 1]), np.array([0, 4, 5]), 2):
    ...     print(n, gram.tolist(), text.tolist())
    1 [0, 1, 0, 1, 1] [0, 0, 0, 0, 1]
    2 [0, 1, 0] [0, 0, 0]
    """
    lengths = np.diff(starts)
    text = np.repeat(np.arange(len(lengths)), lengths)
    positions = np.arange(len(ids))
    distinct = int(ids.max(initial=-1)) + 1
    gram = ids
    for n in range(1, high + 1):
        if n > 1:
            keep = positions + n <= starts[text + 1]
            positions, text = positions[keep], text[keep]
            # There are fewer grams than tokens, so that the number of a pair is below 2⁶³.
            gram = np.unique(gram[keep] * distinct + ids[positions + (n - 1)], return_inverse=True)[1]
        yield n, gram, text


@dataclass(frozen=True)
class TextCounts:
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


def count_in_texts(gram: np.ndarray, text: np.ndarray) -> TextCounts:
    """Count n-grams within texts.

    Examples
    --------
    >>> import numpy as np
    >>> counts = count_in_texts(np.array([0, 1, 0, 0, 1]), np.array([0, 0, 0, 1, 1]))
    >>> counts.text.tolist(), counts.times.tolist(), counts.first.tolist(), counts.size.tolist()
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
    return TextCounts(text[order], times[order], np.repeat(starts, sizes), np.repeat(sizes, sizes))


def _changes(values: np.ndarray) -> np.ndarray:
    """Whether each value differs from the one before it; the first does."""
    changed = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed
