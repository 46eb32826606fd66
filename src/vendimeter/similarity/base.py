"""What every kind of similarity offers: blocks, the whole matrix, and what tells items apart.

A similarity never changes after it was made, so that any number of questions may share one. What has to be counted
while a user's function is called is in a counter of its own.
"""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, NoReturn, Self

import numpy as np

from vendimeter.data.arrays import blocks
from vendimeter.data.devices import DEVICE_BYTES, as_like, concat, transposed
from vendimeter.similarity.checks import Policy

__all__ = ["Calls", "Index", "Similarity", "coarsest", "parts_of", "positions_of", "span"]

Index = slice | np.ndarray
DOUBLE = np.dtype(np.float64)
AS_IT_IS = Policy()  # nothing is mended


def positions_of(index: Index, n: int) -> np.ndarray:
    """The positions that an index of n items stands for."""
    return np.arange(*index.indices(n)) if isinstance(index, slice) else index


class Calls:
    """How often a user's function was asked, and how coarse the numbers are that it gave.

    Parameters
    ----------
    precision : dtype
        Of the numbers that are known before any call.
    sources : sequence of Calls
        What else is asked when this is: the functions in a sum or product.
    """

    def __init__(self, precision: np.dtype = DOUBLE, sources: Sequence[Calls] = ()):
        self._pairs, self._precision, self._sources = 0, precision, tuple(sources)
        self._lock = threading.Lock()

    @property
    def pairs(self) -> int:
        """Similarities that were asked for so far."""
        return self._pairs + sum(source.pairs for source in self._sources)

    @property
    def precision(self) -> np.dtype:
        """The coarsest dtype of the numbers so far."""
        return coarsest([self._precision, *(source.precision for source in self._sources)])

    def add(self, pairs: int, dtype: np.dtype) -> None:
        """Count a call for so many pairs, which gave numbers of this dtype."""
        with self._lock:
            self._pairs += pairs
            if dtype.kind == "f":
                self._precision = coarsest([self._precision, dtype])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


def coarsest(dtypes: Sequence[np.dtype]) -> np.dtype:
    """The dtype of the fewest bytes, the first of several."""
    return min(dtypes, key=lambda dtype: dtype.itemsize)


class Similarity(ABC):
    """How similar the n items are to each other; it never changes.

    Attributes
    ----------
    n : int
        How many items.
    kernel : Kernel or None
        The kernel it came from, with every parameter fitted.
    policy : Policy
        What the kernel mends in what a user gave.
    trusted : bool
        Whether it is known to be a similarity matrix: all but what a user gave.
    rounding : float
        Bound on the error that is in what the similarities are made of.
    counter : Calls or None
        Of the calls of a user's function, shared by all that is taken of these similarities.
    precision : dtype
        The coarsest dtype that a user's similarities came in.
    like : array or None
        An array on the device where blocks are computed; None for the host.
    width : int
        Columns of features; 1 where there are none.
    sparse : bool
        Whether it is stored sparse.
    cost : float
        Of one similarity, in floating-point operations at the speed of a matrix product.
    calls : int
        How many similarities a user's function was asked for so far.
    """

    n: int
    kernel: Any
    policy: Policy
    trusted: bool
    rounding: float
    like: Any
    counter: Calls | None
    width: int = 1
    sparse: bool = False

    def __init__(
        self,
        n: int,
        *,
        kernel: Any = None,
        policy: Policy | None = None,
        trusted: bool = True,
        rounding: float = 0.0,
        like: Any = None,
        counter: Calls | None = None,
        **own: Any,
    ):
        vars(self).update(
            own,
            n=n,
            kernel=kernel,
            policy=AS_IT_IS if policy is None else policy,
            trusted=trusted,
            rounding=rounding,
            like=like,
            counter=counter,
        )

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"a {type(self).__name__} never changes: {name} cannot be set; make another one."
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} never changes: {name} cannot be deleted.")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def with_kernel(self, kernel: Any) -> Self:
        """The same similarities under the name of this kernel."""
        return self._changed(kernel=kernel)

    def _changed(self, **values: Any) -> Self:
        """The same, but for these attributes."""
        other = copy.copy(self)
        vars(other).update(values)
        return other

    @property
    def precision(self) -> np.dtype:
        """The coarsest dtype that a user's similarities came in."""
        return DOUBLE if self.counter is None else self.counter.precision

    @property
    def calls(self) -> int:
        """How many similarities a user's function was asked for so far."""
        return 0 if self.counter is None else self.counter.pairs

    @property
    def cost(self) -> float:
        """Operations for one similarity, at the speed of a matrix product."""
        return 64.0

    @abstractmethod
    def block(self, rows: Index, cols: Index) -> Any:
        """The similarities of some items with some others, dense, float64, where `like` is."""

    @abstractmethod
    def look(self, index: Index) -> None:
        """Refuse items that cannot be compared, as far as they themselves tell: in one pass, without comparing any."""

    @property
    def entry_error(self) -> float:
        """Bound on the error of an entry of `block`."""
        return self.rounding

    def diagonal(self) -> np.ndarray:
        """The similarity of each item with itself, on the host."""
        return np.ones(self.n)

    def keys(self, index: Index) -> list[Hashable] | None:
        """Something hashable for each item such that items with equal keys are identical, or None."""
        return None

    @property
    def step(self) -> int:
        """How many rows of K to compute at a time."""
        return 1024

    @abstractmethod
    def take(self, index: np.ndarray) -> Similarity:
        """The similarities among the items at these positions."""

    def _on_device(self, places: np.ndarray) -> Any:
        """K from blocks that are joined: not all libraries can write into an array. Half of them are mirrored."""
        width = max(self.width, len(places) // 8)
        parts = [span(places[part]) for part in blocks(len(places), width, most=DEVICE_BYTES)]
        grid: list[list[Any]] = [[None] * len(parts) for _ in parts]
        for i, rows in enumerate(parts):
            for j in range(i, len(parts)):
                block = as_like(self.block(rows, rows if i == j else parts[j]), self.like)
                if self.trusted:
                    grid[j][i] = transposed(block)
                grid[i][j] = block
            for j in range(i if not self.trusted else 0):  # a user's function is asked for both halves
                grid[i][j] = as_like(self.block(rows, parts[j]), self.like)
        return concat([concat(row, axis=1) for row in grid])

    def dense(self, index: np.ndarray | None = None) -> Any:
        """The whole of K, or of its part at `index`, from blocks of its upper triangle."""
        places = np.arange(self.n) if index is None else index
        if self.like is not None:
            return self._on_device(places)
        matrix = np.empty((len(places), len(places)))
        parts = parts_of(len(places), self.step)
        for i, rows in enumerate(parts):
            left = places[rows]
            for cols in parts[i:]:
                part = self.block(left, left if cols is rows else places[cols])
                matrix[rows, cols] = part
                matrix[cols, rows] = part.T
        return matrix


def span(places: np.ndarray) -> Index:
    """Positions that follow one another as a slice, which costs no gathering."""
    if len(places) and places[-1] - places[0] == len(places) - 1 and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def parts_of(size: int, step: int = 1024) -> list[slice]:
    """Blocks of a square matrix: large enough for BLAS, small enough to stay clear of a second copy."""
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]
