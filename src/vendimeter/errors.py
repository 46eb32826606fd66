"""What can go wrong, as types.

    VendimeterError
    ├── InputError (ValueError)          samples, weights, labels or options that cannot be used
    │   ├── EmptyError                   nothing to measure
    │   ├── MismatchError                sums that do not belong together: another kernel, width or precision
    │   ├── SavedStateError              a file of a saved sum that cannot be used
    │   ├── UnknownNameError (KeyError)  no kernel, column, group or option of that name; the message lists them
    │   └── MatrixError                  the similarities do not form a similarity matrix
    │       ├── DiagonalError            an item is not 1-similar to itself
    │       ├── AsymmetryError           k(a, b) differs from k(b, a)
    │       └── IndefiniteError          an eigenvalue is negative beyond rounding
    ├── TooLargeError (MemoryError)      the exact answer would not fit; the message names the way around
    ├── CacheError                       a file of cached vectors that is damaged; the message names it
    ├── UnansweredError (ValueError)     a result was asked for something it was not computed for
    └── MissingDependencyError (ImportError)   an optional library is needed; the message has the install line

Every message says what was seen, what was expected and what to do next. What an error is about is in its fields as
well: the item, where that was read, whose it is, and the option.
"""

from __future__ import annotations

import operator
import re
from typing import Self, SupportsIndex

__all__ = [
    "AsymmetryError",
    "CacheError",
    "CacheWarning",
    "DiagonalError",
    "EmptyError",
    "IndefiniteError",
    "InputError",
    "MatrixError",
    "MismatchError",
    "MissingDependencyError",
    "SavedStateError",
    "ToleranceWarning",
    "TooLargeError",
    "UnansweredError",
    "UnknownNameError",
    "VendimeterError",
]


class VendimeterError(Exception):
    """Base class of every error that Vendimeter raises on purpose.

    The code that raises an error passes the fields that it knows; callers that know more add the others with `at`. A
    message that is raised with an item names it, as "item 3"; its place and the collection are put in on printing.

    Attributes
    ----------
    item : int or None
        The position of the item that the error is about, in the samples, or in the collection that is named.
    place : str or None
        Where that item was read, such as "line 7 of 'captions.txt'".
    collections : tuple of str
        Whose it is, from the outermost one inwards: ("reference", "group 'a'").
    collection : str or None
        The same in words: "reference: group 'a'".
    option : str or None
        The option that the error is about, such as "normalize".

    Examples
    --------
    >>> error = InputError("item 3 is empty; expected a text.", item=3)
    >>> print(error.at(place="line 4 of 'x.txt'", collection="reference"))
    reference: item 3 (line 4 of 'x.txt') is empty; expected a text.
    """

    item: int | None = None
    place: str | None = None
    collections: tuple[str, ...] = ()
    option: str | None = None

    def __init__(
        self,
        *args: object,
        item: SupportsIndex | None = None,
        place: str | None = None,
        collection: str | None = None,
        option: str | None = None,
    ):
        super().__init__(*args)
        self.at(item=item, place=place, collection=collection, option=option)

    @property
    def collection(self) -> str | None:
        """Whose it is, in words."""
        return ": ".join(self.collections) or None

    def at(
        self,
        *,
        item: SupportsIndex | None = None,
        place: str | None = None,
        collection: str | None = None,
        option: str | None = None,
    ) -> Self:
        """Fill in what is not known yet; to collections that are known, add the one that holds them."""
        if self.item is None and item is not None:
            self.item = operator.index(item)
        self.place = place if self.place is None else self.place
        self.option = option if self.option is None else self.option
        if collection is not None:
            self.collections = (collection, *self.collections)
        return self

    def __str__(self) -> str:
        text = Exception.__str__(self)  # a KeyError would put the message in quotes
        if self.item is not None:
            item = f"item {self.item}"
            located = item if self.place is None else f"{item} ({self.place})"
            # "item 31" is another item than 3, and 'item 3.png' the name of a file.
            parts = re.split(rf"(?<!\S){item}(?=[\s:;,]|$)", text, maxsplit=1)
            text = located.join(parts) if len(parts) == 2 else f"{located}: {text}"
        elif self.place is not None:
            text = f"{self.place}: {text}"
        return ": ".join((*self.collections, text))


class InputError(VendimeterError, ValueError):
    """Samples, weights, labels or options that cannot be used as they are."""


class EmptyError(InputError):
    """There is no item to measure; the diversity of nothing is undefined."""


class MismatchError(InputError):
    """Sums, or batches of one sum, that do not belong together."""


class SavedStateError(InputError):
    """A file of a saved sum that cannot be written, or is not what it should be."""


class UnknownNameError(InputError, KeyError):
    """There is no kernel, column, group, order or option of that name."""


class MatrixError(InputError):
    """The given similarities do not form a similarity matrix."""


class DiagonalError(MatrixError):
    """The similarity of an item with itself is not 1."""


class AsymmetryError(MatrixError):
    """k(a, b) and k(b, a) differ beyond rounding."""


class IndefiniteError(MatrixError):
    """The similarity matrix has an eigenvalue that is negative beyond rounding."""


class TooLargeError(VendimeterError, MemoryError):
    """The exact computation would need more memory than it is allowed to take."""


class ToleranceWarning(UserWarning):
    """The bounds are wider than the tolerance that was asked for; the result says by how much."""


class CacheError(VendimeterError):
    """A file of cached vectors is damaged or another's, so that nothing in it can be trusted."""


class CacheWarning(UserWarning):
    """Vectors cannot be kept on disk, or not be read from there; they are computed all the same."""


class UnansweredError(VendimeterError, ValueError):
    """A result cannot answer this question because it was computed for another one."""


class MissingDependencyError(VendimeterError, ImportError):
    """An optional library is needed for this and is not installed."""
