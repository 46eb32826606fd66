"""The base class of similarities: blocks, the whole matrix, and keys that tell items apart.

A similarity is immutable, so that any number of computations may share one. The calls of a user's function are counted
by a counter of its own.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, NoReturn, Self, TypedDict

import numpy as np

from vendimeter.data.arrays import blocks
from vendimeter.data.devices import DEVICE_BYTES, as_like, concat, transposed
from vendimeter.similarity.checks import Policy

__all__ = ["Calls", "Common", "Index", "Similarity", "coarsest", "parts_of", "positions_of", "span"]

Index = slice | np.ndarray
DOUBLE = np.dtype(np.float64)
NO_MENDING = Policy()


def positions_of(index: Index, n: int) -> np.ndarray:
    """The positions that an index into n items stands for."""
    return np.arange(*index.indices(n)) if isinstance(index, slice) else index


class Calls:
    """A counter of the calls of a user's function, and of the coarsest dtype it returned.

    Parameters
    ----------
    precision : dtype
        Of the numbers that are there before any call.
    sources : sequence of Calls
        The counters of the functions in a sum or product.
    """

    def __init__(self, precision: np.dtype = DOUBLE, sources: Sequence[Calls] = ()):
        self._pairs, self._precision, self._sources = 0, precision, tuple(sources)
        self._lock = threading.Lock()

    @property
    def pairs(self) -> int:
        """Similarities that were computed so far."""
        return self._pairs + sum(source.pairs for source in self._sources)

    @property
    def similarities(self) -> int:
        """Similarities of a sum or product so far, for each of which every function in it is called once."""
        return self._pairs + max((source.similarities for source in self._sources), default=0)

    @property
    def precision(self) -> np.dtype:
        """The coarsest dtype of the numbers so far."""
        return coarsest([self._precision, *(source.precision for source in self._sources)])

    def add(self, pairs: int, dtype: np.dtype) -> None:
        """Count a call for `pairs` similarities, which returned numbers of this dtype."""
        with self._lock:
            self._pairs += pairs
            if dtype.kind == "f":
                self._precision = coarsest([self._precision, dtype])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


def coarsest(dtypes: Sequence[np.dtype]) -> np.dtype:
    """The dtype of the fewest bytes, the first of equals."""
    return min(dtypes, key=lambda dtype: dtype.itemsize)


class Common(TypedDict, total=False):
    """What every similarity may be made with; see `Similarity`."""

    kernel: Any
    policy: Policy | None
    trusted: bool
    rounding: float
    like: Any
    counter: Calls | None


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
        **attributes: Any,
    ):
        vars(self).update(
            attributes,
            n=n,
            kernel=kernel,
            policy=NO_MENDING if policy is None else policy,
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
        return self._with(kernel=kernel)

    def _with(self, **values: Any) -> Self:
        """A copy with these attributes changed."""
        other = object.__new__(type(self))
        vars(other).update(vars(self) | values)
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
        """Refuse items that cannot be compared, in one pass over them, without computing a similarity."""

    @property
    def entry_error(self) -> float:
        """Bound on the error of an entry of `block`."""
        return self.rounding

    def diagonal(self) -> np.ndarray:
        """The similarity of each item with itself, on the host."""
        return np.ones(self.n)

    def keys(self, index: Index) -> list[Hashable] | None:
        """A hashable key for each item, such that items with equal keys are identical; or None."""
        return None

    @property
    def step(self) -> int:
        """How many rows of K to compute at a time."""
        return 1024

    @abstractmethod
    def take(self, index: np.ndarray) -> Similarity:
        """The similarities among the items at these positions."""

    def _dense_on_device(self, positions: np.ndarray) -> Any:
        """K concatenated from blocks, as not all libraries can write into an array; half of a trusted K is mirrored."""
        width = max(self.width, len(positions) // 8)
        strips = [span(positions[part]) for part in blocks(len(positions), width, most=DEVICE_BYTES)]
        grid: list[list[Any]] = [[None] * len(strips) for _ in strips]
        for i, rows in enumerate(strips):
            for j in range(i, len(strips)):
                block = as_like(self.block(rows, rows if i == j else strips[j]), self.like)
                if self.trusted:
                    grid[j][i] = transposed(block)
                grid[i][j] = block
            for j in range(i if not self.trusted else 0):  # a user's function is asked for both halves
                grid[i][j] = as_like(self.block(rows, strips[j]), self.like)
        return concat([concat(row, axis=1) for row in grid])

    def dense(self, index: np.ndarray | None = None) -> Any:
        """All of K, or its submatrix at `index`, from blocks of its upper triangle."""
        positions = np.arange(self.n) if index is None else index
        if self.like is not None:
            return self._dense_on_device(positions)
        matrix = np.empty((len(positions), len(positions)))
        strips = parts_of(len(positions), self.step)
        for i, rows in enumerate(strips):
            row_positions = positions[rows]
            for cols in strips[i:]:
                block = self.block(row_positions, row_positions if cols is rows else positions[cols])
                matrix[rows, cols] = block
                matrix[cols, rows] = block.T
        return matrix


def span(positions: np.ndarray) -> Index:
    """Consecutive positions as a slice, which needs no copy; others as they are."""
    if (
        len(positions)
        and positions[-1] - positions[0] == len(positions) - 1
        and (np.diff(positions) == 1).all()
    ):
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions


def parts_of(size: int, step: int = 1024) -> list[slice]:
    """Slices of the rows of a square matrix: large enough for BLAS, small enough not to need a second copy."""
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]
