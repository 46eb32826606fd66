"""A look at the data before anything is computed: identical items, and what sparse data hang together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.similarity import Features, Matrix, Similarity

__all__ = ["SparseShape", "collapse", "same_items", "sparse_shape"]


def collapse(
    similarity: Similarity, index: np.ndarray | None, weights: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Identical items become one with their joint weight: the paper's identical-elements property, exactly."""
    places = np.arange(similarity.n) if index is None else index
    position, group = same_items(similarity, places)
    if len(position) == len(places):
        return index, weights
    counts = np.bincount(group)
    if weights is None:
        return places[position], counts / len(places)
    # Summed in pairs, not one after the other: a million small weights would lose four digits.
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(counts)
    joint = np.array(
        [weights[order[end - count : end]].sum() for end, count in zip(ends, counts, strict=True)]
    )
    return places[position], joint


def same_items(similarity: Similarity, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of the items at these places are the first of their kind, and which of those each is identical to."""
    keys = similarity.keys(places)
    if keys is None:
        return np.arange(len(places)), np.arange(len(places))
    first: dict[Any, int] = {}
    group = np.array([first.setdefault(key, len(first)) for key in keys], dtype=np.int64)
    return np.unique(group, return_index=True)[1], group


@dataclass(frozen=True)
class SparseShape:
    """What a sparse K, or sparse features, hold together.

    Attributes
    ----------
    entries : float
        Non-zero entries.
    largest : int
        The size of the largest connected component, on its smaller side.
    cubes : float
        Σ of the cubes of the sizes of the components.
    work : float
        Multiplications for the sparse product of the smaller side.
    fill : float
        A bound on its non-zero entries.
    """

    entries: float
    largest: int
    cubes: float
    work: float
    fill: float


def sparse_shape(similarity: Similarity, index: np.ndarray | None) -> SparseShape:
    """Components of the graph of items (and columns), without multiplying anything."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    if isinstance(similarity, Matrix):
        matrix = similarity.data if index is None else similarity.data[index][:, index]
        entries = float(matrix.nnz)
        count, label = connected_components(matrix, directed=False)
        sizes = np.bincount(label, minlength=count).astype(np.float64)
        return SparseShape(entries, int(sizes.max()), float(np.sum(sizes**3)), 0.0, entries)
    assert isinstance(similarity, Features)
    rows = similarity.rows(slice(None) if index is None else index)
    n, d = rows.shape
    # Items and columns are the two sides of one graph; an entry joins an item and a column.
    joined = sparse.coo_array((np.ones(rows.nnz, dtype=np.int8), rows.nonzero()), shape=(n, d))
    graph = sparse.block_array([[None, joined], [joined.T, None]], format="csr")
    count, label = connected_components(graph, directed=False)
    items = np.bincount(label[:n], minlength=count).astype(np.float64)
    columns = np.bincount(label[n:], minlength=count).astype(np.float64)
    sizes = np.minimum(items, columns) if n > d else items
    per_row, per_column = np.diff(rows.indptr).astype(float), np.bincount(rows.indices, minlength=d)
    work = float(np.sum(per_column.astype(float) ** 2)) if n <= d else float(np.sum(per_row**2))
    return SparseShape(
        float(rows.nnz),
        int(sizes.max()),
        float(np.sum(sizes**3)),
        work,
        min(work, float(min(n, d)) ** 2),
    )
