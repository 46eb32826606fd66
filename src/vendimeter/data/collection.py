"""Samples that came from files, with what belongs to each: a label, a weight, a name, and where it was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import numpy as np

from vendimeter.data.arrays import take, to_list
from vendimeter.errors import InputError
from vendimeter.messages import brief, shape_of, unknown
from vendimeter.present.text import printable

__all__ = ["KINDS", "Broken", "Collection", "Place", "joined"]

KEPT = 1000  # records that are remembered by place and reason; more are only counted

# Each kind with the kernel that the command takes for it.
KINDS = {
    "vectors": "cosine",
    "numbers": "rbf",
    "texts": "ngram",
    "images": "pixels",
    "molecules": "morgan",
    "sequences": "kmer",
    "probabilities": "probability-product",
    "tags": "tags",
    "tokens": "ngram",
    "categories": "match",
    "table": "match",
}


class Place(str):
    """Where a record was read, as text; `record` is which one it is, and `source` the path of the file it is in.

    Examples
    --------
    >>> place = Place("line 7 of 'data/captions.txt'", "line 7", "data/captions.txt")
    >>> place, place.record, place.source
    ("line 7 of 'data/captions.txt'", 'line 7', 'data/captions.txt')
    """

    record: str  # "" where the file is the record, such as a picture
    source: str  # "" where it was read from no file

    def __new__(cls, text: str, record: str = "", source: str = "") -> Self:
        """Make the text, with its parts."""
        place = super().__new__(cls, text)
        place.record, place.source = record, source
        return place


_F = TypeVar("_F", bound=Callable[..., Any])


class Collection:
    """Samples from files; made by `vendimeter.read`, and taken by `score` and all its like in place of samples.

    It is a sequence of the samples. `collection["name"]` is a column of the file, `collection[3]` a sample, and
    `collection[:100]` a smaller collection. Weights of the file are used as weights, labels as groups.

    Attributes
    ----------
    samples : array, list or dict
        What kernels take: an array of numbers, a list of texts, paths or others; a dict of columns where no column was
        named as that of the samples.
    labels, weights, ids : list, array or None
        A label, weight and name a sample, where the file has such columns.
    columns : dict
        Every column that was read, by name.
    kind : str or None
        "vectors", "texts", "images", "molecules", "sequences", "tags", …: what the file, or the user, says they are.
    told_by : str or None
        What told the kind, where it was guessed.
    skipped : Broken
        How many records were left out (`count`), and the places and reasons of the first of them (`records`).
    source : str
        What was read.

    Examples
    --------
    >>> import vendimeter as vm
    >>> captions = Collection(["a dog", "a cat", "a cat"], labels=["x", "x", "y"])
    >>> len(captions), captions[1]
    (3, 'a cat')
    >>> vm.score_groups(captions, "ngram")["y"].n
    1
    """

    def __init__(
        self,
        samples: Any,
        *,
        labels: Any = None,
        weights: Any = None,
        ids: Any = None,
        columns: dict[str, Any] | None = None,
        kind: str | None = None,
        told_by: str | None = None,
        skipped: Broken | None = None,
        source: str = "",
        place: Callable[[int], Place] | None = None,
        nested: bool | None = None,
    ):
        self.samples, self.labels, self.weights, self.ids = samples, labels, weights, ids
        self.columns = columns or {}
        self.kind, self.told_by = kind, told_by
        self.skipped = skipped or Broken()
        self.source = source
        self._place = place
        self._nested = nested

    @property
    def is_table(self) -> bool:
        """Whether the samples are records: no column was named as that of the samples, and there are several."""
        return isinstance(self.samples, dict)

    @property
    def is_nested(self) -> bool:
        """Whether each sample is a list of texts, such as the answers to one prompt: groups, then."""
        if self._nested is None:
            items = self.samples if isinstance(self.samples, list) else []
            lists = [item for item in items if isinstance(item, list)]
            texts = all(isinstance(text, str) for item in lists for text in item)
            self._nested = len(lists) == len(items) > 0 and texts
        return self._nested

    @property
    def is_group(self) -> bool:
        """Whether each sample is a group by itself: a list of texts that is no list of tags or tokens."""
        return self.kind not in ("tags", "tokens") and self.is_nested

    def place(self, position: int) -> Place:
        """Where a sample was read, such as "line 7 of 'captions.txt'"."""
        item = f"item {position}"
        return self._place(position) if self._place else Place(item, item)

    def __len__(self) -> int:
        column = next(iter(self.samples.values()), ()) if self.is_table else self.samples
        return len(column)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            if index not in self.columns:
                raise unknown("column", index, self.columns)
            return self.columns[index]
        if isinstance(index, int | np.integer):
            if not -len(self) <= index < len(self):
                raise IndexError(f"sample {index} of {len(self)}")
            if self.is_table:
                return {name: column[index] for name, column in self.samples.items()}
            return self.samples[index]
        positions = np.arange(len(self))[index]

        def select(column: Any) -> Any:
            if isinstance(index, slice) and isinstance(column, np.ndarray):
                return column[index]  # a view: a file that is mapped into memory stays there
            return None if column is None else take(column, positions)

        samples = (
            {name: select(column) for name, column in self.samples.items()}
            if self.is_table
            else select(self.samples)
        )
        return Collection(
            samples,
            labels=select(self.labels),
            weights=select(self.weights),
            ids=select(self.ids),
            columns={name: select(column) for name, column in self.columns.items()},
            kind=self.kind,
            told_by=self.told_by,
            skipped=self.skipped,
            source=self.source,
            place=lambda i: self.place(int(positions[i])),
            nested=self._nested,
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.is_table:
            raise InputError("the collection is a table; expected one column. Take it by its name.")
        return np.array(self.samples, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        if self.is_table:
            content = f"records of {', '.join(map(brief, list(self.samples)[:6]))}"
        elif isinstance(self.samples, np.ndarray):
            content = f"samples, {self.samples.dtype} of shape {shape_of(self.samples.shape)}"
        else:
            content = self.kind or f"samples, such as {brief(self.samples[0])}" if len(self) else "samples"
        extras = [
            name
            for name, values in (("labels", self.labels), ("weights", self.weights), ("ids", self.ids))
            if values is not None
        ]
        with_extras = f", with {', '.join(extras)}" if extras else ""
        left_out = f", {self.skipped.count:,} left out" if self.skipped.count else ""
        return f"Collection({len(self):,} {content}{with_extras}{left_out}, from {printable(self.source) or 'memory'})"

    @classmethod
    def joined(cls, batches: Sequence[Collection]) -> Collection:
        """Batches of one source, one after another."""
        if len(batches) == 1:
            return batches[0]
        first = batches[0]
        starts = np.cumsum([0, *map(len, batches)])

        def place(position: int) -> Place:
            i = int(np.searchsorted(starts, position, side="right")) - 1
            return batches[i].place(position - int(starts[i]))

        def concatenate(columns: list[Any], name: str) -> Any:
            return None if columns[0] is None else joined(columns, name, place)

        samples = (
            {name: concatenate([batch.samples[name] for batch in batches], name) for name in first.samples}
            if first.is_table
            else concatenate([batch.samples for batch in batches], "samples")
        )
        return cls(
            samples,
            labels=concatenate([batch.labels for batch in batches], "labels"),
            weights=concatenate([batch.weights for batch in batches], "weights"),
            ids=concatenate([batch.ids for batch in batches], "ids"),
            columns={name: concatenate([b.columns[name] for b in batches], name) for name in first.columns},
            kind=first.kind,
            told_by=first.told_by,
            skipped=first.skipped,
            source=first.source,
            place=place,
            nested=first._nested,
        )

    # ----------------------------------------------------------------- for functions that take a collection

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Say of errors where the item that they are about was read."""
        try:
            yield
        except InputError as error:
            self.locate(error)
            raise

    def locate(self, error: InputError) -> None:
        """Say in an error where the item that it is about was read."""
        if self._place is not None and error.item is not None and error.item < len(self):
            error.at(place=self._place(error.item))

    def refuse_default(self, kernel: Any) -> None:
        """The default kernel takes vectors; a collection that is known to be of another kind has its own."""
        default = KINDS.get(self.kind or "vectors", "cosine")
        is_array = isinstance(self.samples, np.ndarray)  # of which it may well be meant
        if isinstance(kernel, str) and kernel == "cosine" != default and not is_array:
            raise InputError(
                f"the samples are {self.kind} and no kernel is named; expected one for them, such as "
                f"kernel={default!r}.",
                option="kernel",
            )

    def one(self) -> Any:
        """The samples, for functions that score one collection."""
        if self.is_group:
            raise InputError(
                f"each of the {len(self):,} samples is a list of texts, such as {brief(self.samples[0])}; expected one "
                "text a sample. Score each list as a group with vendimeter.score_groups, or read them with kind='tags' "
                "or 'tokens' if each list is one sample."
            )
        return self.samples

    def labels_by(self, by: Any) -> Any:
        """The labels: the column that `by` names, `by` itself, or without it those of the collection."""
        if by is None:
            return self.labels
        if isinstance(by, str) and by in self.columns:
            return self.columns[by]
        if isinstance(by, str) and not self.is_table:
            raise unknown("column", by, self.columns)
        several = isinstance(by, list | tuple) and len(by) > 0
        if several and all(isinstance(name, str) and name in self.columns for name in by):
            return list(zip(*(to_list(self.columns[name]) for name in by), strict=True))
        return by

    def groups(self, by: Any = None) -> dict[Any, list[str]]:
        """Lists of texts by their labels, or by their positions; an empty list is an empty group."""
        if self.weights is not None:
            raise InputError(
                "each sample is a list of texts, and there is one weight a list; expected texts of equal weight. "
                "Leave the weights away."
            )
        labels = self.labels_by(by)
        names: Sequence[Any] = range(len(self)) if labels is None else to_list(labels)
        if len(names) != len(self):
            raise InputError(
                f"by has {len(names)} labels and there are {len(self)} lists of texts; expected one a list."
            )
        texts_by_label: dict[Any, list[str]] = {}
        for i, (name, texts) in enumerate(zip(names, self.samples, strict=True)):
            if isinstance(name, list | dict | set):
                raise InputError(
                    f"the label {brief(name)} ({self.place(i)}) is a {type(name).__name__}; expected one label a list "
                    "of texts."
                )
            if name in texts_by_label:
                raise InputError(
                    f"the label {brief(name)} is that of several lists of texts, {self.place(i)} among them; expected "
                    "one a list, since each is a group. Take several columns, such as by=['model', 'prompt'], and "
                    "average the groups with mean(by=…)."
                )
            texts_by_label[name] = texts
        return texts_by_label

    def probabilities(self) -> np.ndarray | None:
        """The weights, divided by their sum."""
        if self.weights is None:
            return None
        weights = np.asarray(self.weights, dtype=np.float64)
        with np.errstate(over="ignore"):
            total = weights.sum()
        return weights / total if 0 < total < np.inf else weights


@dataclass
class Broken:
    """What could not be read: an error, or where the user asked for that, left out and counted.

    Examples
    --------
    >>> broken = Broken(skip=True)
    >>> broken.add("line 3 of 'a.jsonl'", "is not valid JSON")
    >>> broken.count, broken.records
    (1, [("line 3 of 'a.jsonl'", 'is not valid JSON')])
    """

    skip: bool = False
    count: int = 0
    records: list[tuple[str, str]] = field(default_factory=list)

    def add(self, place: str, reason: str, advice: str = "") -> None:
        """Raise, or take note. The message is "`place` `reason`. `advice`", and what skips such records."""
        if not self.skip:
            more = f" {advice}" if advice else ""
            raise InputError(
                f"{place} {reason}.{more} Mend it, or leave broken records out and count them with skip_broken=True "
                "(--skip-broken).",
                option="skip_broken",
            )
        self.count += 1
        if len(self.records) < KEPT:
            self.records.append((place, reason))


def joined(columns: Sequence[Any], name: str, place: Callable[[int], str]) -> Any:
    """One column of several parts; vectors must agree in their shape."""
    if len(columns) == 1:
        return columns[0]
    if all(isinstance(column, np.ndarray) for column in columns):
        start = 0
        for column in columns:
            if column.shape[1:] != columns[0].shape[1:]:
                raise InputError(
                    f"{place(start)} has {name!r} of shape {shape_of(column.shape[1:])} and {place(0)} of shape "
                    f"{shape_of(columns[0].shape[1:])}; expected one shape throughout."
                )
            start += len(column)
        kinds = {column.dtype.kind for column in columns}
        if len(kinds) == 1 or kinds <= set("buif"):
            return np.concatenate(columns)
    return [
        value
        for column in columns
        for value in (column.tolist() if isinstance(column, np.ndarray) else column)
    ]
