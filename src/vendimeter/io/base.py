"""The base classes of readers: a reader of one file gives parts, which are some of its records with their places."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from vendimeter.data.collection import Broken, Place
from vendimeter.errors import InputError
from vendimeter.io.sources import File
from vendimeter.messages import unknown

__all__ = ["Part", "Reader", "Sequential", "record_places"]


@dataclass(frozen=True)
class Part:
    """Some records of a file in order: columns of one length, and where each record stands.

    Parameters
    ----------
    columns : dict
        Name → a list, a NumPy array (vectors as rows of an array of two axes), or a list of lists for nested ones.
    place : callable
        Position in this part → where that is, such as "line 7 of 'captions.txt'", for messages.
    """

    columns: dict[str, Any]
    place: Callable[[int], Place]


class Reader(ABC):
    """One file or folder, read in parts. Nothing in it is ever executed.

    A subclass is made with the file and the collector of broken records; it may be read once. What it says of its
    columns beside their names holds after `names`.
    """

    samples: str | None = None  # the column with the samples, where the format has a fixed one …
    label: str | None = None  # … and that with their labels …
    id: str | None = None  # … and that with their names
    cells: ClassVar[bool] = False  # whether all values are texts, which may stand for numbers
    untyped: ClassVar[bool] = False  # whether they may where it is asked what they stand for
    kind: str | None = None  # "molecules", "sequences", "images": where the format itself says so

    def __init__(self, file: File, broken: Broken):
        self.file = file
        self.broken = broken

    @abstractmethod
    def names(self) -> list[str]:
        """The columns in order, from the head of the file; an empty list for an empty file."""

    @abstractmethod
    def parts(self, columns: Sequence[str] | None, size: int) -> Iterator[Part]:
        """Parts of at most `size` records with these columns (all of them for None), in the order of the file.

        Only what these columns need is read, where the format allows that. Each is known to be among `names`.
        """

    # The column of the samples, where one was settled on: its vectors must have one length, lists beside it need not.
    uniform_column: str | None = None

    def default_columns(self) -> list[str]:
        """The columns of a table where none is named: those of most records. All of them, unless records differ."""
        return self.names()

    def lengths(self) -> dict[str, int] | None:
        """The number of rows of each column where they may differ, as of arrays in one file; None elsewhere.

        `parts` and `mapped_part` take columns of one length.
        """
        return None

    def mapped_part(self, columns: Sequence[str]) -> Part | None:
        """All records at once where that costs no memory, such as a file that is mapped; None elsewhere."""
        return None

    def header_error(self) -> InputError | None:
        """The error where what should be names are plainly records; for when nobody asked for a column by its name."""
        return None

    def is_header_doubtful(self) -> bool:
        """Whether the name of the only column may be a record."""
        return False

    def header_advice(self, names: list[str]) -> str:
        """What to do where names are records."""
        return ""

    def missing_column_error(self, name: str) -> InputError:
        """The error for a column that is asked for and is not among `names`."""
        return unknown(f"column in {self.file} called", name, self.names())


class Sequential(Reader):
    """A reader of records that come one after another; the first is read to know the columns, and kept."""

    def __init__(self, file: File, broken: Broken):
        super().__init__(file, broken)
        self._records: Iterator[tuple[Any, Any]] | None = None
        self._first: list[tuple[Any, Any]] = []
        self._is_read = False

    @abstractmethod
    def records(self) -> Iterator[tuple[Any, Any]]:
        """Records in order, each after what `place` tells its place by; broken ones are reported and left out."""

    def place(self, locator: Any) -> Place:
        """The place of a record."""
        return self.file.line(locator)

    def first(self) -> Any:
        """The first record, which comes again among the remaining ones; None where there is none."""
        if self._records is None:
            self._records = self.records()
            self._first = list(itertools.islice(self._records, 1))
        return self._first[0][1] if self._first else None

    def remaining(self) -> Iterator[tuple[Any, Any]]:
        """All records, once."""
        if self._is_read:
            raise RuntimeError(f"{self.file} was read already; make a new reader")
        self.first()
        self._is_read = True
        assert self._records is not None
        return itertools.chain(self._first, self._records)

    def parts(self, columns: Sequence[str] | None, size: int) -> Iterator[Part]:
        """Parts of at most `size` records, of texts in the order of `names`."""
        column_indices = {name: i for i, name in enumerate(self.names())}
        columns_read = [
            (name, column_indices[name]) for name in (column_indices if columns is None else columns)
        ]
        remaining = self.remaining()
        while batch := list(itertools.islice(remaining, size)):
            yield Part(
                {
                    name: [record[column_indices] for _, record in batch]
                    for name, column_indices in columns_read
                },
                record_places(self, [locator for locator, _ in batch]),
            )


def record_places(reader: Sequential, locators: Sequence[Any]) -> Callable[[int], Place]:
    """The function from a position in a part to its place; the words are made only for messages."""
    return lambda position: reader.place(locators[position])
