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

Every message says what was seen, what was expected and what to do next.
"""

from __future__ import annotations

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
    """Base class of every error that Vendimeter raises on purpose."""


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

    __str__ = Exception.__str__  # a KeyError would put the message in quotes


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
