"""The items of a greedy choice: a row of numbers an item, and the ones chosen so far.

Objectives need inner products of a candidate φ with vectors of the span of the chosen items, Σ_j c_j φ_j. With features
a row is φ itself, and the vectors are Φ_Aᵀc. Otherwise a row is the similarities with the chosen items, which are
computed when a candidate is evaluated and cached if there is room; then the vectors are the c themselves. "In the
coordinates of rows" below means such that a product with rows gives these inner products.
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
from vendimeter.present.notes import Note
from vendimeter.similarity import Features, Pairwise, Similarity, span
from vendimeter.threads import run

__all__ = ["Items", "items_of"]

SPARSE_WIDTH = 4096  # columns up to which chosen rows of sparse features are held dense
STEP = 2048  # rows of a block, in each thread
COPY_ERROR = 1e-14  # how far below 1 rounding alone may bring the similarity of an item with its copy, …
MOST_COPY_ERROR = 1e-6  # … and its upper bound, however coarse the numbers are


def items_of(similarity: Similarity, k: int, memory: int) -> Items:
    """Represent the items by their features, or by their similarities with the chosen ones."""
    if isinstance(similarity, Features) and not (similarity.sparse and similarity.width > SPARSE_WIDTH):
        return _FeatureItems(similarity, k, memory)
    return _SimilarityItems(similarity, k, memory)


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
    has_float32 : bool
        Whether there are `float32_rows`.
    bulk : bool
        Whether many rows at a time are cheaper than one by one: not of a user's function, where calls count.
    parallel : bool
        Whether rows may be computed in several threads: not of a user's function, and not on a device.
    threads : int
        Number of threads for `run_blocks`.
    scatter : ndarray or None
        Σ φφᵀ of the chosen ones, where features are fewer than they may become.
    """

    def __init__(self, similarity: Similarity, k: int, gram_side: int):
        self.similarity, self.n, self.k = similarity, similarity.n, k
        self.max_width = k  # numbers of a row once all items are chosen
        self.chosen: list[int] = []
        self.gram = np.zeros((gram_side, gram_side))
        self.has_float32 = self.parallel = False
        self.bulk = True
        self.threads = 1
        self.scatter: np.ndarray | None = None
        self.notes: list[Note] = []

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in a row now."""

    @property
    @abstractmethod
    def cost(self) -> float:
        """Operations for a similarity that is not cached."""

    @property
    def row_cost(self) -> float:
        """Operations for a row."""
        return float(self.width)

    @abstractmethod
    def rows(self, index: np.ndarray) -> Any:
        """Rows of some items in float64, on the device of the data."""

    @abstractmethod
    def vectors(self, coefficients: np.ndarray) -> np.ndarray:
        """Σ_j c_j φ_j for each column c over the chosen items, in the coordinates of rows."""

    @abstractmethod
    def chosen_vectors(self, first: int) -> np.ndarray:
        """The chosen items from the `first` on as columns, in the coordinates of rows."""

    @abstractmethod
    def apply_metric(self, vectors: np.ndarray) -> np.ndarray:
        """Apply the metric of row coordinates, so that products with other vectors are inner products."""

    @abstractmethod
    def similarities(self, index: np.ndarray) -> np.ndarray:
        """Similarities of some items with the chosen ones, on the host."""

    def nearest_similarity(self, index: np.ndarray) -> np.ndarray:
        """The similarity of some items with the nearest of the chosen ones, on the host."""
        return self.similarities(index).max(axis=1)

    @abstractmethod
    def similarities_with(self, others: np.ndarray) -> Callable[[np.ndarray], Any]:
        """A function for the similarities of items with these others; on a device padded as `coordinates` are."""

    @abstractmethod
    def add(self, item: int) -> None:
        """Choose an item."""

    def run_blocks(self, task: Callable[[slice], None], count: int, width: int, max_rows: int = STEP) -> None:
        """Run a task for blocks of `count` items; it needs `width` numbers an item besides its row.

        In parallel where rows allow it, with one thread a core and BLAS on one thread in each, so that what is not
        BLAS runs on all cores, too.
        """
        block_bytes = 4 * BLOCK_BYTES if self.similarity.like is None else DEVICE_BYTES
        slices = blocks(count, self.width + width, most=block_bytes)
        if self.parallel and count:
            step = max(1, min(slices[0].stop, max_rows, -(-count // self.threads)))
            slices = [slice(start, min(start + step, count)) for start in range(0, count, step)]
        threads = max(1, min(self.threads, len(slices))) if self.parallel else 1
        if threads == 1:
            _run_each(task, slices)
        else:
            run([functools.partial(_run_each, task, slices[i::threads]) for i in range(threads)])

    def float32_rows(self, index: np.ndarray) -> np.ndarray:
        """Rows in float32."""
        raise NotImplementedError

    def coordinates(self, index: np.ndarray, vectors: np.ndarray) -> Any:
        """Rows times vectors, on the device of the data; there, more rows and columns may follow at the end."""
        like = self.similarity.like
        rows = self.rows(index if like is None else evened(index, like))
        return rows @ move(self.pad(vectors), rows)

    def pad(self, array: np.ndarray) -> np.ndarray:
        """Pad with zeros up to a power of two on a device, since some libraries compile anew for every shape."""
        if self.similarity.like is None:
            return array
        size = array.shape[-1]
        zeros = (1 << max(size - 1, 7).bit_length()) - size
        return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, zeros)])

    def copies(self, index: np.ndarray) -> np.ndarray:
        """Mask of the items that are copies of a chosen one, judged by their similarity."""
        if not self.chosen:
            return np.zeros(len(index), dtype=bool)
        threshold = 1 - min(max(4 * self.similarity.entry_error, COPY_ERROR), MOST_COPY_ERROR)
        is_copy = np.empty(len(index), dtype=bool)

        def task(block: slice) -> None:
            is_copy[block] = self.nearest_similarity(index[block]) >= threshold

        self.run_blocks(task, len(index), len(self.chosen))
        return is_copy


class _FeatureItems(Items):
    """Items that have features: dense on the host or a device, or sparse with few columns."""

    def __init__(self, features: Features, k: int, memory: int):
        super().__init__(features, k, min(k, features.width))
        self._features, self.max_width = features, features.width
        self._chosen_rows = np.zeros((k, features.width))
        if k > features.width:
            self.scatter = np.zeros((features.width, features.width))
        self._float32_copy: np.ndarray | None = None
        self.parallel = features.like is None
        self.has_float32 = self.parallel and not features.sparse
        self._copy_fits = self.has_float32 and 4 * features.n * features.width <= memory // 2

    @property
    def width(self) -> int:
        return self._features.width

    @property
    def cost(self) -> float:
        return 2.0 * self.width

    def rows(self, index: np.ndarray) -> Any:
        return self._features.rows(span(index))

    def vectors(self, coefficients: np.ndarray) -> np.ndarray:
        return self._chosen_rows[: len(self.chosen)].T @ coefficients

    def chosen_vectors(self, first: int) -> np.ndarray:
        return np.ascontiguousarray(self._chosen_rows[first : len(self.chosen)].T)

    def apply_metric(self, vectors: np.ndarray) -> np.ndarray:
        return vectors

    def similarities(self, index: np.ndarray) -> np.ndarray:
        vectors = self.chosen_vectors(0)
        return to_host(self.coordinates(index, vectors))[: len(index), : vectors.shape[1]]

    def nearest_similarity(self, index: np.ndarray) -> np.ndarray:
        if self._features.like is None:
            return super().nearest_similarity(index)
        count = len(self.chosen)
        repeats = (1 << (count - 1).bit_length()) - count  # repeated columns, as zeros might be the nearest
        similarities = self.coordinates(
            index, np.pad(self._chosen_rows[:count].T, ((0, 0), (0, repeats)), mode="edge")
        )
        return to_host(namespace(similarities).max(similarities[:, : count + repeats], axis=1))[: len(index)]

    def similarities_with(self, others: np.ndarray) -> Callable[[np.ndarray], Any]:
        rows, like = self.rows(others), self._features.like
        columns = rows.toarray().T if self._features.sparse else transposed(rows)
        return lambda index: self.rows(index if like is None else evened(index, like)) @ columns

    def add(self, item: int) -> None:
        m = len(self.chosen)
        row = self._features.rows(np.array([item]))
        row = row.toarray()[0] if self._features.sparse else to_host(row)[0]
        self._chosen_rows[m] = row
        if m < len(self.gram):
            self.gram[m, : m + 1] = self.gram[: m + 1, m] = self._chosen_rows[: m + 1] @ row
        if self.scatter is not None:
            self.scatter += row[:, None] * row
        self.chosen.append(item)

    def float32_rows(self, index: np.ndarray) -> np.ndarray:
        """Rows in float32, from a copy that is made once, if that takes no more than half of the memory."""
        selector = span(index)
        if not self._copy_fits:
            return self._features.rows(selector).astype(np.float32)
        if self._float32_copy is None:
            self._float32_copy = np.empty((self.n, self.width), dtype=np.float32)
            self.run_blocks(self._fill_copy, self.n, 0)
        return self._float32_copy[selector]

    def _fill_copy(self, block: slice) -> None:
        self._float32_copy[block] = self._features.rows(block)  # type: ignore[index]


class _SimilarityItems(Items):
    """Items of which only similarities are known, or whose sparse features are too wide to hold chosen ones dense."""

    def __init__(self, similarity: Similarity, k: int, memory: int):
        super().__init__(similarity, k, k)
        self._cache: np.ndarray | None = None
        is_matrix = not isinstance(similarity, Pairwise | Features)  # which needs no cache
        if not is_matrix and 8 * similarity.n * k <= memory // 2:
            self._cache = np.empty((similarity.n, k))
            self._cached_columns = np.zeros(similarity.n, dtype=np.int64)
        elif not is_matrix:
            text = (
                f"Similarities with the chosen items were computed anew at every look: {similarity.n:,} × {k:,} of "
                "them take more than half of the memory."
            )
            self.notes.append(Note("similarities-computed-anew", text, {"n": similarity.n, "k": k}))
        user_function = isinstance(similarity, Pairwise) and not similarity.trusted
        self.bulk = not user_function
        self._symmetrize = user_function and similarity.policy.symmetrize
        self._scale = (
            np.sqrt(similarity.diagonal()) if user_function and similarity.policy.normalize else None
        )

    @property
    def width(self) -> int:
        return max(len(self.chosen), 1)

    @property
    def cost(self) -> float:
        return float(self.similarity.cost)

    def pad(self, array: np.ndarray) -> np.ndarray:
        return array  # similarities are on the host

    @property
    def row_cost(self) -> float:
        return self.cost * (self.width if self._cache is None else 1)

    def rows(self, index: np.ndarray) -> np.ndarray:
        return self.similarities(index)

    def coordinates(self, index: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        coordinates = self.similarities(index) @ vectors
        # A similarity that is not positive semidefinite may make a projection longer than 1.
        if not self.similarity.trusted:
            coordinates /= np.sqrt(np.maximum(np.einsum("ij,ij->i", coordinates, coordinates), 1.0))[:, None]
        return coordinates

    def vectors(self, coefficients: np.ndarray) -> np.ndarray:
        return coefficients

    def chosen_vectors(self, first: int) -> np.ndarray:
        return np.eye(len(self.chosen))[:, first:]

    def apply_metric(self, vectors: np.ndarray) -> np.ndarray:
        return self.gram[: len(vectors), : len(vectors)] @ vectors

    def similarities(self, index: np.ndarray) -> np.ndarray:
        m = len(self.chosen)
        if self._cache is None:
            return self._cross_similarities(index, np.array(self.chosen, dtype=np.int64))
        cached_columns = self._cached_columns[index]
        # Items last evaluated about as long ago are completed together; a user's function is never called twice.
        age = np.frexp(m - cached_columns)[1] if self.bulk else m - cached_columns
        for group in np.unique(age[cached_columns < m]).tolist():
            in_group = (age == group) & (cached_columns < m)
            stale, start = index[in_group], int(cached_columns[in_group].min())
            self._cache[stale, start:m] = self._cross_similarities(stale, np.array(self.chosen[start:]))
            self._cached_columns[stale] = m
        return self._cache[index, :m]

    def similarities_with(self, others: np.ndarray) -> Callable[[np.ndarray], Any]:
        return lambda index: self._cross_similarities(index, others)

    def _cross_similarities(self, index: np.ndarray, others: np.ndarray) -> np.ndarray:
        if not len(others):
            return np.zeros((len(index), 0))
        similarities = self._raw_similarities(index, others)
        if self._symmetrize:
            similarities = 0.5 * (similarities + self._raw_similarities(others, index).T)
        if self._scale is not None:
            similarities = similarities / (self._scale[index][:, None] * self._scale[others])
        if not self.similarity.trusted and not np.isfinite(similarities).all():
            i, j = np.argwhere(~np.isfinite(similarities))[0]
            raise InputError(
                f"the similarity of items {index[i]} and {others[j]} is {similarities[i, j]}; expected a finite number."
            )
        return similarities

    def _raw_similarities(self, index: np.ndarray, others: np.ndarray) -> np.ndarray:
        like = self.similarity.like
        if like is None:
            return self.similarity.block(index, others)
        similarities = self.similarity.block(evened(index, like), evened(others, like))
        return to_host(similarities)[: len(index), : len(others)]

    def add(self, item: int) -> None:
        m = len(self.chosen)
        self.gram[m, :m] = self.gram[:m, m] = self.similarities(np.array([item]))[0]
        self.gram[m, m] = 1.0
        self.chosen.append(item)


def _run_each(task: Callable[[slice], None], blocks_: list[slice]) -> None:
    for block in blocks_:
        task(block)
