"""The kernel of tags: what an item was labelled with, such as the words for an odour or the attributes of a face."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.arrays import (
    as_list,
    as_rows,
    is_frame_column,
    is_missing,
    is_sparse,
    to_list,
    to_python,
    unwrapped,
)
from vendimeter.data.devices import concat, is_foreign, is_real, namespace, to_host
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel
from vendimeter.messages import brief
from vendimeter.present.numbers import digits
from vendimeter.similarity import FeatureRows, Features
from vendimeter.spectrum import UNIT

__all__ = ["Tags"]

KERNEL = "the tags kernel"


@dataclass(frozen=True)
class Tags(Kernel):
    """Shared tags: k(a, b) = |a ∩ b| / √(|a| |b|), the cosine of the indicators of the tags.

    Items are lists, tuples or sets of tags (texts, numbers, anything hashable), texts with a separator between the
    tags, or rows of an array that hold 1 for each tag and 0 for the others, dense, sparse or on a device. A tag that
    is repeated in an item counts once. Two items without any tag have similarity 1, one of them and any other 0: to
    have no tag is a tag of its own.

    Parameters
    ----------
    vocabulary : sequence of tags, optional
        All tags that there are, in the order of the columns of an array. With it batches can be added up, and any
        other tag is an error. Lists are then always lists of tags, and arrays rows; without it, lists of nothing but
        0 and 1 are refused, since they may be either.
    separator : str, optional
        Items are texts, such as "sweet;floral", and this stands between the tags. Blanks around tags are left out.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from vendimeter.kernels import Tags
    >>> round(vm.score([["sweet", "floral"], ["floral", "sweet"], ["smoky"]], Tags()), 4)
    1.8899
    >>> round(vm.score(["sweet; floral", "floral", ""], Tags(separator=";")), 4)
    2.4947
    """

    vocabulary: tuple[Hashable, ...] | None = None
    separator: str | None = None
    name: ClassVar[str] = "tags"

    def __post_init__(self) -> None:
        if self.separator is not None and not (isinstance(self.separator, str) and self.separator):
            raise InputError(f"separator={brief(self.separator)}; expected a text such as ';', or None.")
        if self.vocabulary is not None:
            object.__setattr__(self, "vocabulary", _check_vocabulary(self.vocabulary))

    def __repr__(self) -> str:
        words = [] if self.vocabulary is None else [f"vocabulary={brief(self.vocabulary)}"]
        words += [] if self.separator is None else [f"separator={self.separator!r}"]
        return f"Tags({', '.join(words)})"

    @property
    def needs_all(self) -> str | None:
        """Nothing, once the tags are known."""
        if self.vocabulary is not None:
            return None
        return (
            "its features are one column a tag, and which tags there are is known only at the end. Name them: "
            "Tags(vocabulary=(…))"
        )

    def build(self, samples: Any, rng: int) -> Features:
        """Features: the indicators of the tags, scaled to norm 1, and a column for having none."""
        rows = self._rows(samples)
        if rows is None:
            return self._features_of_lists(self._items(samples))
        if self.vocabulary is not None and rows.shape[1] != len(self.vocabulary):
            raise InputError(
                f"samples has {rows.shape[1]} columns and the vocabulary {len(self.vocabulary)} tags; {KERNEL} "
                "expected a column a tag."
            )
        if is_sparse(rows):
            return _features_of_sparse(rows)
        return FeatureRows(rows, _unit_indicators, width=int(rows.shape[1]) + 1, rounding=3 * UNIT)

    def _rows(self, samples: Any) -> Any:
        """Samples that are an array of numbers, as its rows; None where they are lists of tags."""
        items = as_list(samples, kernel=KERNEL)
        if self.vocabulary is None:
            items = unwrapped(items)
        arrays = is_sparse(items) or is_foreign(items) or isinstance(items, np.ndarray)
        if not arrays or is_frame_column(samples) or not is_real(items) or len(items.shape) < 2:
            return None
        if self.separator is not None:
            raise InputError(
                f"samples is {brief(items)}, and separator={self.separator!r} is for texts; leave it away."
            )
        return as_rows(items, kernel=KERNEL)

    def _items(self, samples: Any) -> Sequence[Any]:
        """Samples that are lists of tags, as a list."""
        items = to_list(samples if is_frame_column(samples) else as_list(samples, kernel=KERNEL))
        is_ambiguous = self.separator is None and self.vocabulary is None
        if is_ambiguous and all(_is_binary(item) for item in items):
            raise InputError(
                f"item 0 is {brief(items[0])}, and no item holds anything but 0 and 1: are these rows, with a column "
                f"a tag, or the tags 0 and 1? {KERNEL} does not guess. Pass {_array_call(samples)} for rows; for tags "
                "sets, or name them with vocabulary=."
            )
        return items

    def _features_of_lists(self, items: Sequence[Any]) -> Features:
        column_of_tag = {} if self.vocabulary is None else {tag: i for i, tag in enumerate(self.vocabulary)}
        indices: list[int] = []
        ends = [0]
        for i, item in enumerate(items):
            tags = dict.fromkeys(_check_tags(self._split(item, i), item, i))  # in their order, each once
            if self.vocabulary is None:
                columns = [column_of_tag.setdefault(tag, len(column_of_tag)) for tag in tags]
            else:
                columns = [
                    column_of_tag[tag] if tag in column_of_tag else _raise_unknown(tag, i, column_of_tag)
                    for tag in tags
                ]
            indices.extend(sorted(columns))
            ends.append(len(indices))
        return _scale_indicators(np.array(indices, dtype=np.int64), np.array(ends), len(column_of_tag))

    def _split(self, item: Any, i: int) -> Iterable[Any]:
        """The tags of an item, not yet checked."""
        if self.separator is not None:
            if not isinstance(item, str):
                raise InputError(
                    f"item {i} is {brief(item)}; Tags(separator={self.separator!r}) expected texts. "
                    + (
                        "Fill or drop it."
                        if is_missing(item)
                        else "Leave the separator away for lists of tags."
                    ),
                    item=i,
                )
            return filter(None, map(str.strip, item.split(self.separator)))
        if isinstance(item, str | bytes):
            raise InputError(
                f"item {i} is the text {brief(item)}, and list(…) of it would be its letters; {KERNEL} expected a "
                "list, tuple or set of tags. For texts with several tags pass Tags(separator=';'), for one tag an "
                "item use kernel='match'.",
                item=i,
                option="kernel",
            )
        if isinstance(item, np.ndarray) or is_foreign(item):
            item = to_host(item).tolist()
        if not isinstance(item, list | tuple | set | frozenset):
            gap = " Give items without tags an empty list, or drop them." if is_missing(item) else ""
            raise InputError(
                f"item {i} is {brief(item)}; {KERNEL} expected a list, tuple or set of tags.{gap}", item=i
            )
        return map(to_python, item)


def _check_vocabulary(vocabulary: Any) -> tuple[Hashable, ...]:
    """The tags that there are, each once."""
    if isinstance(vocabulary, str | bytes) or not isinstance(vocabulary, Iterable):
        raise InputError(
            f"vocabulary={brief(vocabulary)}; expected a sequence of tags, such as ('sweet', 'floral')."
        )
    tags = tuple(map(to_python, vocabulary))
    seen: set[Hashable] = set()
    for tag in tags:
        try:
            is_repeated = tag in seen
        except TypeError:
            raise InputError(f"the vocabulary holds {brief(tag)}; expected hashable tags.") from None
        if is_repeated or is_missing(tag) or _is_infinite(tag):
            flaw = (
                " twice; expected each tag once"
                if is_repeated
                else "; expected tags without gaps and infinities"
            )
            raise InputError(f"the vocabulary holds {brief(tag)}{flaw}.")
        seen.add(tag)
    if not tags:
        raise InputError("the vocabulary is empty; expected at least one tag.")
    return tags


def _check_tags(tags: Iterable[Any], item: Any, i: int) -> Iterator[Hashable]:
    """The tags, none of them missing and all of them hashable."""
    for tag in tags:
        if is_missing(tag) or _is_infinite(tag):
            kind = "missing" if is_missing(tag) else "infinite"
            raise InputError(
                f"item {i} holds a tag that is {kind} ({brief(tag)}); drop it from the item.", item=i
            )
        try:
            hash(tag)
        except TypeError:
            raise InputError(
                f"item {i} is {brief(item)}; {KERNEL} expected hashable tags, such as texts or numbers.",
                item=i,
            ) from None
        yield tag


def _is_infinite(tag: Any) -> bool:
    """A number that no file of JSON has, so that a description could not give it back."""
    return isinstance(tag, float) and math.isinf(tag)


def _raise_unknown(tag: Hashable, i: int, known: dict[Hashable, int]) -> int:
    raise InputError(
        f"item {i} has the tag {brief(tag)}, which is not in the vocabulary of {len(known)} tags; expected only those. "
        "Add it to the vocabulary, or leave it out of the item.",
        item=i,
    )


def _is_binary(item: Any) -> bool:
    """Whether this looks as much like a row of an array as like a list of tags."""
    values = item.tolist() if isinstance(item, np.ndarray) else item
    if not isinstance(values, list | tuple) or len(values) < 2:
        return False
    return all(isinstance(value, bool | int | float) and value in (0, 1) for value in values)


def _array_call(samples: Any) -> str:
    """The call that makes one array of the rows in a list, or in a column of a frame, whose own array has objects."""
    if is_frame_column(samples):
        names = ("to_pylist", "to_list", "tolist")
        return f"numpy.stack(samples.{next(name for name in names if hasattr(samples, name))}())"
    return "numpy.stack(samples)"


def _unit_indicators(rows: Any, positions: np.ndarray) -> Any:
    """Rows of 0 and 1, scaled to norm 1, and a column that is 1 where there is nothing else."""
    xp = namespace(rows)
    is_bad = (rows != 0) & (rows != 1)
    if bool(xp.any(is_bad)):
        position = np.argwhere(to_host(is_bad))[0]
        raise _not_binary(int(positions[position[0]]), float(to_host(rows)[tuple(position)]))
    sizes = xp.sum(rows, axis=1, keepdims=True)
    is_empty = xp.astype(sizes == 0, rows.dtype)
    return concat([rows / xp.sqrt(sizes + is_empty), is_empty], axis=1)


def _not_binary(position: int, value: float) -> InputError:
    return InputError(
        f"item {position} holds the value {digits(value)}; {KERNEL} expected 1 for each tag and 0 for the others. For "
        "counts or weights of tags use kernel='cosine'.",
        item=position,
        option="kernel",
    )


def _features_of_sparse(rows: Any) -> Features:
    """Sparse rows of 0 and 1; zeros may be stored."""
    bad = np.flatnonzero((rows.data != 0) & (rows.data != 1))
    if len(bad):
        row = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
        raise _not_binary(row, float(rows.data[bad[0]]))
    if not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    return _scale_indicators(rows.indices, rows.indptr, int(rows.shape[1]))


def _scale_indicators(indices: np.ndarray, ends: np.ndarray, width: int) -> Features:
    """Sparse features of the columns of each item; one more column for the items without any."""
    from scipy import sparse

    sizes = np.diff(ends)
    empty = np.flatnonzero(sizes == 0)
    indices = np.insert(indices, ends[empty], width)
    sizes = np.maximum(sizes, 1)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    data = np.repeat(1 / np.sqrt(sizes), sizes)
    return FeatureRows(
        sparse.csr_array((data, indices, ends), shape=(len(sizes), width + 1)), rounding=3 * UNIT
    )
