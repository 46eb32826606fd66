"""How messages show what was seen: briefly, on one line, with the digits that matter; and how errors name groups."""

from __future__ import annotations

import difflib
import os
import reprlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from vendimeter.errors import InputError, UnknownNameError

__all__ = [
    "about",
    "brief",
    "check_characters",
    "in_group",
    "shape_of",
    "unknown",
    "warn",
]

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
