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

import difflib
import operator
import os
import re
import reprlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Number
from typing import Any, Self, SupportsIndex

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


# ------------------------------------------------------------------------------------------------------------ messages

# How messages show what was seen: briefly, on one line, with the digits that matter.

LISTED = 30  # names that a message lists
_PACKAGE = os.path.dirname(__file__)

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60
_short.maxlist = _short.maxtuple = _short.maxset = _short.maxdict = 4


def brief(value: Any) -> str:
    """A user's value on one line of at most about 80 characters; arrays and tables by their kind and shape."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"<{type(value).__name__} of shape {shape_of(shape)}>"
    text = " ".join(_short.repr(value).split())
    return text if len(text) <= 80 else text[:79] + "…"


def group_name(label: Any) -> str:
    """A label in a sentence, where a number by itself would be taken for an amount.

    Examples
    --------
    >>> group_name("cats"), group_name(3)
    ("'cats'", 'group 3')
    """
    return f"group {brief(label)}" if isinstance(label, Number) else brief(label)


def printable(text: Any, most: int | None = None) -> str:
    """User text without control characters or escape codes, cut to a length if one is given."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))
    return shown if most is None or len(shown) <= most else shown[: most - 1] + "…"


def check_characters(text: str, what: str, item: int | None = None) -> None:
    r"""Refuse a text with half of a character in it, which cannot be written: no UTF-8 stands for it.

    What a user writes for others to read, such as a title, is refused; what data hold is shown by `printable`.

    Examples
    --------
    >>> check_characters("caf\ud83d", "title")
    Traceback (most recent call last):
    vendimeter.errors.InputError: title holds half of a character (a lone surrogate, '\ud83d' at position 3); ...
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} holds half of a character (a lone surrogate, {text[error.start]!a} at position {error.start}); "
            "expected valid Unicode: text.encode('utf-8', 'replace').decode().",
            item=item,
        ) from None


def shape_of(shape: Iterable[int]) -> str:
    """A shape as NumPy writes it, in plain whole numbers: (3, 4)."""
    return str(tuple(map(int, shape)))


def digits(value: float) -> str:
    """A number with all the digits that tell it from its neighbours: 1.0000001 must not be shown as 1."""
    value = float(value)
    short = f"{value:.6g}"
    return short if float(short) == value else repr(value)


@contextmanager
def about(collection: str | None = None, *, item: int | None = None) -> Iterator[None]:
    """Say of errors whose samples they are about, such as those of the reference, or which item."""
    try:
        yield
    except InputError as error:
        error.at(collection=collection, item=item)
        raise


@contextmanager
def in_group(label: Any) -> Iterator[None]:
    """Say of errors which group they are about."""
    try:
        yield
    except InputError as error:
        error.at(collection=f"group {brief(label)}")
        raise


def warn(message: str, category: type[Warning]) -> None:
    """Warn of something at the line of the user's that led to it, however deep in the package it came up."""
    level, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def unknown(what: str, given: object, known: Iterable[object]) -> UnknownNameError:
    """An error for a name that is not among the known ones, with the nearest of them."""
    known = list(known)
    near = difflib.get_close_matches(
        str(given).lower()[:80], [str(name).lower() for name in known], n=1, cutoff=0.6
    )
    hint = next(
        (f" Did you mean {brief(name)}?" for name in known if near and str(name).lower() == near[0]), ""
    )
    listed = ", ".join(brief(name) for name in known[:LISTED]) + (", …" if len(known) > LISTED else "")
    return UnknownNameError(f"there is no {what} {brief(given)}.{hint} There are: {listed or 'none'}.")
