"""The items as a greedy choice sees them: a row of numbers an item, and those chosen so far.

What a candidate φ has to do with the chosen ones is in its products with vectors of their span, Σ_j c_j φ_j. With
features a row is φ itself, and the vectors are Φ_Aᵀc. Otherwise a row is the similarities with the chosen items, which
are computed when a candidate is looked at and kept if there is room; then the vectors are the c themselves.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import DEVICE_BYTES, evened, move, namespace, to_host, transposed
from vendimeter.errors import InputError
from vendimeter.similarity import Features, Pairwise, Similarity, span
from vendimeter.threads import run

__all__ = ["Items", "items_of"]

SPARSE_WIDTH = 4096  # columns up to which chosen rows of sparse features are held dense
STEP = 2048  # rows of a block, in each thread
SAME = 1e-14  # how far below 1 rounding alone may bring the similarity of an item with a copy of itself …
COARSE = 1e-6  # … and the most that is put down to it, however coarse the numbers are


def items_of(similarity: Similarity, k: int, memory: int) -> Items:
    """The items, as features or by their similarities with the chosen ones."""
    if isinstance(similarity, Features) and not (similarity.sparse and similarity.width > SPARSE_WIDTH):
        return _Rows(similarity, k, memory)
    return _Columns(similarity, k, memory)


class Items(ABC):
    """Items and the chosen ones among them.

    Attributes
    ----------
    chosen : list of int
        In order of choice.
    k : int
        How many are to be chosen.
    gram : ndarray
        Similarities of the chosen items; with features, of no more of them than there are features.
    single : bool
        Whether `quick` gives rows in float32.
    bulk : bool
        Whether many rows at a time are cheaper than one after another: not of a user's function, where calls count.
    parallel : bool
        Whether rows may be asked for in several threads at once: not of a user's function, and not on a device.
    threads : int
        How many threads there are for `spread`.
    scatter : ndarray or None
        Σ φφᵀ of the chosen ones, where features are fewer than they may become.
    """

    def __init__(self, similarity: Similarity, k: int, most: int):
        self.similarity, self.n, self.k = similarity, similarity.n, k
        self.longest = k  # numbers that a row has in the end
        self.chosen: list[int] = []
        self.gram = np.zeros((most, most))
        self.single = self.parallel = False
        self.bulk = True
        self.threads = 1
        self.scatter: np.ndarray | None = None
        self.notes: list[str] = []

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in a row."""

    @property
    @abstractmethod
    def cost(self) -> float:
        """Operations for a similarity that is not known yet."""

    @property
    def row_cost(self) -> float:
        """Operations for a row."""
        return float(self.width)

    @abstractmethod
    def rows(self, index: np.ndarray) -> Any:
        """The rows of some items in float64, where the data lies."""

    @abstractmethod
    def vectors(self, coefficients: np.ndarray) -> np.ndarray:
        """Σ_j c_j φ_j for each column c over the chosen items, in the terms of rows."""

    @abstractmethod
    def chosen_vectors(self, first: int) -> np.ndarray:
        """The chosen items from the `first` on as columns, in the terms of rows."""

    @abstractmethod
    def metric(self, vectors: np.ndarray) -> np.ndarray:
        """What other vectors have to be multiplied by for their inner products with these."""

    @abstractmethod
    def similar(self, index: np.ndarray) -> np.ndarray:
        """Similarities of some items with the chosen ones, on the host."""

    def nearest(self, index: np.ndarray) -> np.ndarray:
        """The similarity of some items with the nearest of the chosen ones, on the host."""
        return self.similar(index).max(axis=1)

    @abstractmethod
    def against(self, others: np.ndarray) -> Callable[[np.ndarray], Any]:
        """What gives the similarities of some items with these others; on a device as `coordinates` are."""

    @abstractmethod
    def add(self, item: int) -> None:
        """Choose an item."""

    def spread(self, task: Callable[[slice], None], count: int, width: int, most: int = STEP) -> None:
        """Do something for blocks of `count` items, with `width` more numbers for each than its row has.

        Beside each other where rows allow it: with a thread a core, each with BLAS for itself, what is not BLAS runs
        on all cores, too.
        """
        bytes_ = 4 * BLOCK_BYTES if self.similarity.like is None else DEVICE_BYTES
        parts = blocks(count, self.width + width, most=bytes_)
        if self.parallel and count:
            step = max(1, min(parts[0].stop, most, -(-count // self.threads)))
            parts = [slice(start, min(start + step, count)) for start in range(0, count, step)]
        threads = max(1, min(self.threads, len(parts))) if self.parallel else 1
        if threads == 1:
            _each(task, parts)
        else:
            run([functools.partial(_each, task, parts[i::threads]) for i in range(threads)])

    def quick(self, index: np.ndarray) -> np.ndarray:
        """Rows in float32."""
        raise NotImplementedError

    def coordinates(self, index: np.ndarray, vectors: np.ndarray) -> Any:
        """Rows times vectors, where the data lies; on a device there may be more rows and columns at the end."""
        like = self.similarity.like
        rows = self.rows(index if like is None else evened(index, like))
        return rows @ move(self.padded(vectors), rows)

    def padded(self, array: np.ndarray) -> np.ndarray:
        """For a device, zeros at the end up to a power of two: some libraries compile anew for every shape."""
        if self.similarity.like is None:
            return array
        size = array.shape[-1]
        more = (1 << max(size - 1, 7).bit_length()) - size
        return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, more)])

    def copies(self, index: np.ndarray) -> np.ndarray:
        """Which of the items are the same as a chosen one, as far as their similarity tells."""
        if not self.chosen:
            return np.zeros(len(index), dtype=bool)
        least = 1 - min(max(4 * self.similarity.entry_error, SAME), COARSE)
        same = np.empty(len(index), dtype=bool)

        def task(part: slice) -> None:
            same[part] = self.nearest(index[part]) >= least

        self.spread(task, len(index), len(self.chosen))
        return same


class _Rows(Items):
    """Items that have features: dense on the host or a device, or sparse with few columns."""

    def __init__(self, features: Features, k: int, memory: int):
        super().__init__(features, k, min(k, features.width))
        self._features, self.longest = features, features.width
        self._held = np.zeros((k, features.width))
        if k > features.width:
            self.scatter = np.zeros((features.width, features.width))
        self._copy: np.ndarray | None = None
        self.parallel = features.like is None
        self.single = self.parallel and not features.sparse
        self._fits = self.single and 4 * features.n * features.width <= memory // 2

    @property
    def width(self) -> int:
        return self._features.width

    @property
    def cost(self) -> float:
        return 2.0 * self.width

    def rows(self, index: np.ndarray) -> Any:
        return self._features.rows(span(index))

    def vectors(self, coefficients: np.ndarray) -> np.ndarray:
        return self._held[: len(self.chosen)].T @ coefficients

    def chosen_vectors(self, first: int) -> np.ndarray:
        return np.ascontiguousarray(self._held[first : len(self.chosen)].T)

    def metric(self, vectors: np.ndarray) -> np.ndarray:
        return vectors

    def similar(self, index: np.ndarray) -> np.ndarray:
        vectors = self.chosen_vectors(0)
        return to_host(self.coordinates(index, vectors))[: len(index), : vectors.shape[1]]

    def nearest(self, index: np.ndarray) -> np.ndarray:
        if self._features.like is None:
            return super().nearest(index)
        m = len(self.chosen)
        more = (1 << (m - 1).bit_length()) - m  # of zeros one might be the nearest
        found = self.coordinates(index, np.pad(self._held[:m].T, ((0, 0), (0, more)), mode="edge"))
        return to_host(namespace(found).max(found[:, : m + more], axis=1))[: len(index)]

    def against(self, others: np.ndarray) -> Callable[[np.ndarray], Any]:
        rows, like = self.rows(others), self._features.like
        turned = rows.toarray().T if self._features.sparse else transposed(rows)
        return lambda index: self.rows(index if like is None else evened(index, like)) @ turned

    def add(self, item: int) -> None:
        m = len(self.chosen)
        row = self._features.rows(np.array([item]))
        row = row.toarray()[0] if self._features.sparse else to_host(row)[0]
        self._held[m] = row
        if m < len(self.gram):
            self.gram[m, : m + 1] = self.gram[: m + 1, m] = self._held[: m + 1] @ row
        if self.scatter is not None:
            self.scatter += row[:, None] * row
        self.chosen.append(item)

    def quick(self, index: np.ndarray) -> np.ndarray:
        """Rows in float32: of a copy that is made once, if that takes no more than half of the memory."""
        places = span(index)
        if not self._fits:
            return self._features.rows(places).astype(np.float32)
        if self._copy is None:
            self._copy = np.empty((self.n, self.width), dtype=np.float32)
            self.spread(self._fill, self.n, 0)
        return self._copy[places]

    def _fill(self, part: slice) -> None:
        self._copy[part] = self._features.rows(part)  # type: ignore[index]


class _Columns(Items):
    """Items of which only similarities are known, or whose features are too wide and sparse to be held."""

    def __init__(self, similarity: Similarity, k: int, memory: int):
        super().__init__(similarity, k, k)
        self._known: np.ndarray | None = None
        given = not isinstance(similarity, Pairwise | Features)  # a matrix knows them already
        if not given and 8 * similarity.n * k <= memory // 2:
            self._known = np.empty((similarity.n, k))
            self._seen = np.zeros(similarity.n, dtype=np.int64)
        elif not given:
            self.notes.append(
                f"similarities with the chosen items were computed anew at every look: {similarity.n:,} × {k:,} of "
                "them take more than half of the memory"
            )
        user = isinstance(similarity, Pairwise) and not similarity.trusted
        self.bulk = not user
        self._both = user and similarity.policy.symmetrize
        self._scale = np.sqrt(similarity.diagonal()) if user and similarity.policy.normalize else None

    @property
    def width(self) -> int:
        return max(len(self.chosen), 1)

    @property
    def cost(self) -> float:
        return float(self.similarity.cost)

    def padded(self, array: np.ndarray) -> np.ndarray:
        return array  # what is known of similarities is on the host

    @property
    def row_cost(self) -> float:
        return self.cost * (self.width if self._known is None else 1)

    def rows(self, index: np.ndarray) -> np.ndarray:
        return self.similar(index)

    def coordinates(self, index: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        found = self.similar(index) @ vectors
        if not self.similarity.trusted:  # which need not come of a space, where no item is longer than 1
            found /= np.sqrt(np.maximum(np.einsum("ij,ij->i", found, found), 1.0))[:, None]
        return found

    def vectors(self, coefficients: np.ndarray) -> np.ndarray:
        return coefficients

    def chosen_vectors(self, first: int) -> np.ndarray:
        return np.eye(len(self.chosen))[:, first:]

    def metric(self, vectors: np.ndarray) -> np.ndarray:
        return self.gram[: len(vectors), : len(vectors)] @ vectors

    def similar(self, index: np.ndarray) -> np.ndarray:
        m = len(self.chosen)
        if self._known is None:
            return self._pairs(index, np.array(self.chosen, dtype=np.int64))
        seen = self._seen[index]
        # Items that were looked at about as long ago are looked at together; a user's function is never called twice.
        age = np.frexp(m - seen)[1] if self.bulk else m - seen
        for one in np.unique(age[seen < m]).tolist():
            among = (age == one) & (seen < m)
            some, start = index[among], int(seen[among].min())
            self._known[some, start:m] = self._pairs(some, np.array(self.chosen[start:]))
            self._seen[some] = m
        return self._known[index, :m]

    def against(self, others: np.ndarray) -> Callable[[np.ndarray], Any]:
        return lambda index: self._pairs(index, others)

    def _pairs(self, index: np.ndarray, others: np.ndarray) -> np.ndarray:
        if not len(others):
            return np.zeros((len(index), 0))
        found = self._block(index, others)
        if self._both:
            found = 0.5 * (found + self._block(others, index).T)
        if self._scale is not None:
            found = found / (self._scale[index][:, None] * self._scale[others])
        if not self.similarity.trusted and not np.isfinite(found).all():
            i, j = np.argwhere(~np.isfinite(found))[0]
            raise InputError(
                f"the similarity of items {index[i]} and {others[j]} is {found[i, j]}; expected a finite number."
            )
        return found

    def _block(self, index: np.ndarray, others: np.ndarray) -> np.ndarray:
        like = self.similarity.like
        if like is None:
            return self.similarity.block(index, others)
        found = self.similarity.block(evened(index, like), evened(others, like))
        return to_host(found)[: len(index), : len(others)]

    def add(self, item: int) -> None:
        m = len(self.chosen)
        self.gram[m, :m] = self.gram[:m, m] = self.similar(np.array([item]))[0]
        self.gram[m, m] = 1.0
        self.chosen.append(item)


def _each(task: Callable[[slice], None], parts: list[slice]) -> None:
    for part in parts:
        task(part)
