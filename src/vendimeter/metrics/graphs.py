"""The graph of a collection: its connected components, and the eigenvalues of its Laplacian."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError, TooLargeError, UnansweredError
from vendimeter.messages import brief
from vendimeter.options import COSINE, SEED, as_number, byte_count, generator
from vendimeter.present.numbers import digits, format_bytes
from vendimeter.results.base import Count
from vendimeter.solvers.edges import Entries, join_components, within

__all__ = ["Components", "components"]

TIED_GAP = 1e-9  # gaps between eigenvalues that differ relatively by less are equal
DENSE = 1024  # items of a component up to which its Laplacian is a dense matrix
MOST_DENSE = 8192  # and up to which it may be one, where many eigenvalues are wanted
EDGE_BYTES = 64  # of working memory an edge, at most: both directions, with copies while they are sorted


@dataclass(frozen=True, repr=False, eq=False)
class Components(Count):
    """The number of connected components, with their sizes and the eigenvalues of the graph.

    Attributes
    ----------
    value : int
        How many components there are.
    threshold : float
        The similarity from which on two items are joined.
    sizes : ndarray
        How many items each component has.
    labels : ndarray
        The component of each item; they are numbered in order of first appearance.
    laplacian : ndarray
        The smallest eigenvalues of the normalised Laplacian, in rising order: a 0 for each component, then as many
        beyond as were asked for. Empty where none were.
    eigengap : float
        The largest gap between two that follow one another; NaN where there is none.
    clusters : int or None
        How many eigenvalues lie below that gap.
    """

    value: int
    threshold: float
    sizes: np.ndarray
    labels: np.ndarray = field(repr=False)
    laplacian: np.ndarray = field(repr=False)
    eigengap: float
    clusters: int | None


def components(
    samples: Any,
    kernel: Any = COSINE,
    *,
    threshold: float,
    eigenvalues: int = 10,
    memory: int | str = "2 GiB",
    rng: int = SEED,
) -> Components:
    """How many groups fall apart when items are joined from a similarity on: connected components, and the eigengap.

    The graph has an edge between two items where k(x, y) ≥ `threshold`. A component is a set of items that are joined
    by chains of edges. Beside it stand the smallest eigenvalues of the normalised Laplacian I − D^(−1/2) W D^(−1/2),
    with W the similarities on the edges, 0 elsewhere and on the diagonal, and D its row sums. A component has the
    eigenvalue 0 exactly once; clusters that only hang together loosely have eigenvalues near 0, and their number is
    guessed where the next eigenvalue is far up.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items, as for `vendimeter.score`.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    threshold : float
        The similarity from which on two items are joined, from −1 to 1. It has no default, because what counts as
        similar depends on the kernel and the data.
    eigenvalues : int
        How many eigenvalues of the Laplacian above 0 to compute; 0 for none, which saves keeping the edges.
    memory : int or str
        What the edges may take, where eigenvalues are wanted.
    rng : int
        Seed of what the kernel draws, and of the first vector of the eigensolver.

    Returns
    -------
    Components
        An int with `threshold`, `sizes`, `labels`, `laplacian`, `eigengap` and `clusters`.

    Notes
    -----
    Similarities are computed in float64, a tile at a time, and the components found on the way; the edges are kept
    only for the eigenvalues. A similarity that rounding may have pushed below the threshold counts as having met it,
    so that ``threshold=1`` joins identical items. The allowance is the error bound of the kernel, of the order of
    10⁻¹⁴ for vectors.

    One chain of similar items joins two clusters: the number of components falls with n at a fixed threshold. An
    item without an edge has the eigenvalue 0, as in SciPy's ``csgraph.laplacian``.

    References
    ----------
    von Luxburg: A tutorial on spectral clustering, Statistics and Computing 2007, propositions 3 and 4 and section 8.3.

    Examples
    --------
    >>> from vendimeter.metrics import components
    >>> found = components([[1, 0], [2, 0.1], [0, 1], [0.1, 3]], threshold=0.9)
    >>> found
    Components(2, threshold=0.9, sizes=<2 values>, eigengap=2, clusters=2)
    >>> found + 1, found.labels.tolist()
    (3, [0, 0, 1, 1])
    """
    level = within(threshold, "threshold", -1, 1, "a similarity")
    count = as_number(eigenvalues)
    if not (0 <= count < math.inf and count == int(count)):
        raise InputError(f"eigenvalues={brief(eigenvalues)}; expected a whole number from 0 up.")
    diversity = diversity_of(samples, kernel, rng=rng)
    diversity.refuse_weights("components")
    with diversity.asked():
        return _components(diversity, level, int(count), byte_count(memory, "memory"))


def _components(diversity: Diversity, level: float, count: int, memory: int) -> Components:
    """The components of a threshold, and so many eigenvalues beyond those that are 0."""
    entries = Entries(diversity.similarity)
    min_similarity = level - entries.slack
    if count and min_similarity <= 0:
        raise InputError(
            f"threshold={digits(level)} also joins items of similarity 0 or less, and the Laplacian expected positive "
            "weights; pass a threshold above 0, or eigenvalues=0 for the components alone."
        )
    labels = np.arange(entries.n)
    edges = _EdgeList(memory // EDGE_BYTES, memory)
    for i, j, k in entries.edges(min_similarity, values=count > 0, label="components"):
        labels = join_components(labels, i, j)
        if k is not None:
            edges.add(i, j, k)
    labels, sizes = _renumber(labels)
    if not count:
        return Components(len(sizes), level, sizes, labels, np.empty(0), math.nan, None)
    values = _smallest_eigenvalues(edges.matrix(entries.n), labels, sizes, count, diversity.rng)
    # The gaps among the zeros are 0, so that the largest lies behind the last of these.
    gap, clusters = math.nan, len(sizes)
    if len(values) > len(sizes):
        gaps = np.diff(values)
        gap = float(gaps.max())
        # The first of several equal gaps: rounding is not to pick one.
        clusters = int(np.argmax(gaps > gap * (1 - TIED_GAP))) + 1
    return Components(len(sizes), level, sizes, labels, values, gap, clusters)


def _renumber(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels in order of first appearance, and how often each occurs."""
    _, first, inverse, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[inverse], counts[order]


class _EdgeList:
    """Edges with their similarities, up to as many as the memory holds."""

    def __init__(self, max_edges: int, memory: int):
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._count, self._max_edges, self._memory = 0, max_edges, memory

    def add(self, i: np.ndarray, j: np.ndarray, k: np.ndarray) -> None:
        self._count += len(i)
        if self._count > self._max_edges:
            raise TooLargeError(
                f"the graph has more than {self._max_edges:,} edges, and memory={format_bytes(self._memory)} holds no "
                "more of them; expected fewer. Raise the threshold, or memory, or pass eigenvalues=0: the components "
                "alone need no edges in memory."
            )
        self._parts.append((i.astype(np.int32), j.astype(np.int32), k))

    def matrix(self, n: int) -> Any:
        """W, the symmetric sparse matrix of the similarities; empties the list."""
        from scipy import sparse

        i, j, k = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        self._parts.clear()
        upper = sparse.coo_array((k, (i, j)), shape=(n, n)).tocsr()
        del i, j, k
        return upper + upper.T.tocsr()


# --------------------------------------------------------------------------------------------------------- eigenvalues


def _smallest_eigenvalues(
    weights: Any, labels: np.ndarray, sizes: np.ndarray, count: int, seed: int
) -> np.ndarray:
    """The smallest eigenvalues of the Laplacian: a 0 for each component, and `count` above; one component at a time."""
    order = np.argsort(labels, kind="stable")
    if len(sizes) > 1:  # rows, then columns, so that no more than two copies are held
        weights = weights[order]
        weights = weights[:, order]
    starts = np.cumsum(sizes) - sizes
    positive = [np.empty(0)]
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        if size > 1:
            block = weights[start : start + size, start : start + size] if len(sizes) > 1 else weights
            positive.append(_positive_eigenvalues(block, min(count, size - 1), seed))
    return np.concatenate([np.zeros(len(sizes)), np.sort(np.concatenate(positive))[:count]])


def _positive_eigenvalues(weights: Any, count: int, seed: int) -> np.ndarray:
    """The smallest eigenvalues but for the first, which is 0, of the Laplacian of a connected graph.

    `weights` is overwritten with D^(−1/2) W D^(−1/2): a copy may be as large as all that the edges may take.
    """
    from scipy.linalg import eigh

    normalized, size, degrees = weights, weights.shape[0], np.asarray(weights.sum(axis=1)).ravel()
    scale = 1 / np.sqrt(degrees)
    normalized.data *= np.repeat(scale, np.diff(normalized.indptr))
    normalized.data *= scale[normalized.indices]
    if size > DENSE and 4 * count < size:
        top_vector = np.sqrt(degrees / degrees.sum())
        return np.maximum(1 - _lanczos_eigenvalues(normalized, top_vector, count, seed), 0)
    if size > MOST_DENSE:
        raise TooLargeError(
            f"eigenvalues={count} are wanted of a component of {size:,} items; expected fewer than a quarter of them."
        )
    laplacian = np.eye(size) - normalized.toarray()
    values = eigh(laplacian, eigvals_only=True, subset_by_index=(0, count), overwrite_a=True)
    return np.maximum(values[1:], 0)  # the Laplacian has no negative eigenvalue; rounding may give one


def _lanczos_eigenvalues(normalized: Any, top_vector: np.ndarray, count: int, seed: int) -> np.ndarray:
    """The largest eigenvalues of D^(−1/2) W D^(−1/2) but for the first, 1, which is deflated to −1."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def product(vector: np.ndarray) -> np.ndarray:
        vector = vector.ravel()
        return normalized @ vector - (2 * (top_vector @ vector)) * top_vector

    draws = generator(seed, "laplacian")
    operator = LinearOperator(normalized.shape, matvec=product, dtype=np.float64)  # type: ignore[call-arg]
    options: dict[str, Any] = {
        "v0": draws.standard_normal(len(top_vector)),
        "ncv": min(len(top_vector), max(4 * count, 40)),
    }
    # SciPy from 1.17 on draws again where a subspace is exhausted.
    if "rng" in inspect.signature(eigsh).parameters:
        options["rng"] = draws
    try:
        return np.asarray(eigsh(operator, count, which="LA", return_eigenvectors=False, **options))
    except ArpackNoConvergence:
        raise UnansweredError(
            f"{count} eigenvalues of a component of {len(top_vector):,} items did not converge; expected them to lie "
            "apart. Ask for more of them or fewer, or pass eigenvalues=0."
        ) from None
