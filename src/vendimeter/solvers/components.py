"""Eigenvalues of a sparse symmetric matrix: those of its connected components, together."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES
from vendimeter.solvers.dense import eigen_error, eigenvalues
from vendimeter.solvers.plan import check_size

__all__ = ["component_eigenvalues"]


def component_eigenvalues(matrix: Any) -> tuple[np.ndarray, float, int, int]:
    """Eigenvalues from large to small, their rounding error, the number of components and the size of the largest.

    Items of different components have similarity 0, so the spectrum is the union of the spectra of the components (the
    paper's partitioning property). Components of one size are solved together in a batch.
    """
    from scipy.sparse.csgraph import connected_components

    matrix = matrix.tocsr(copy=True)  # it may share its arrays with the user's own
    matrix.eliminate_zeros()
    count, label = connected_components(matrix, directed=False)
    sizes = np.bincount(label, minlength=count)
    check_size(int(sizes.max()), "a connected component of the similarity matrix")
    # Position of each item inside its component.
    order = np.argsort(label, kind="stable")
    starts = np.cumsum(sizes) - sizes
    inside = np.empty(len(label), dtype=np.int64)
    inside[order] = np.arange(len(label)) - np.repeat(starts, sizes)

    # Entries in the order of their components, so that the entries of some components are a slice.
    entries = matrix.tocoo()
    by_component = np.argsort(label[entries.row], kind="stable")
    rows, cols, data = entries.row[by_component], entries.col[by_component], entries.data[by_component]
    first_entry = np.concatenate([[0], np.cumsum(np.bincount(label[entries.row], minlength=count))])
    spectra: list[np.ndarray] = []
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        step = max(1, BLOCK_BYTES // (8 * int(size) ** 2))
        for first in range(0, len(members), step):
            chosen = members[first : first + step]
            counts = first_entry[chosen + 1] - first_entry[chosen]
            slot = np.repeat(np.arange(len(chosen)), counts)
            mine = np.arange(len(slot)) + np.repeat(
                first_entry[chosen] - (np.cumsum(counts) - counts), counts
            )
            stack = np.zeros((len(chosen), size, size))
            stack[slot, inside[rows[mine]], inside[cols[mine]]] = data[mine]
            values = stack[:, 0, :] if size == 1 else eigenvalues(stack[0] if len(stack) == 1 else stack)
            spectra.append(np.ravel(values))
    values = np.sort(np.concatenate(spectra))[::-1]
    # Each component contributes its own error, a multiple of its own largest eigenvalue: together at most that of ‖λ‖₂.
    error = float(eigen_error(int(sizes.max()), float(np.linalg.norm(values))))
    return values, error, int(count), int(sizes.max())
