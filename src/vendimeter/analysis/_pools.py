"""Scores of thousands of random subsets of a few hundred items, whose similarities are made once and kept at hand.

All subsets are of one size, so that their matrices are stacked and solved together, a Python thread a core with BLAS on
one thread each. The smallest of three matrices is solved: that of the subset's items, that of the distinct items with
their multiplicities (where counts make many copies of few), or that of the features.
"""

from __future__ import annotations

import functools

import numpy as np

from vendimeter.data.arrays import is_sparse
from vendimeter.data.devices import to_host
from vendimeter.errors import TooLargeError
from vendimeter.similarity import Features, Pairwise, Similarity, span
from vendimeter.solvers import dense
from vendimeter.solvers.groups import held
from vendimeter.solvers.plan import EXACT_SIDE
from vendimeter.spectrum import hill
from vendimeter.threads import run, workers

__all__ = ["Pool", "side_of"]

STACK_BYTES = 16 << 20  # of matrices that one thread solves at a time
SPARSE_WIDTH = 1024  # columns of sparse features up to which rows are made dense


def side_of(similarity: Similarity, size: int) -> int:
    """The side of the matrix whose eigenvalues the score of a subset of this size takes."""
    if isinstance(similarity, Features) and not (similarity.sparse and similarity.width > SPARSE_WIDTH):
        return min(size, similarity.width)
    return size


class Pool:
    """Some items of a collection, for the scores of many subsets of them.

    Parameters
    ----------
    similarity : Similarity
        Of the whole collection; a user's matrix has been checked.
    items : ndarray
        Positions of the items in it, each once.
    size : int
        About how many items the subsets have.

    Examples
    --------
    >>> import numpy as np
    >>> from vendimeter.similarity import FeatureRows, Features
    >>> pool = Pool(FeatureRows(np.eye(5)), np.array([1, 3, 4]), size=2)
    >>> pool.scores(np.array([[0, 1], [2, 2]]), 1.0)
    array([2., 1.])
    """

    def __init__(self, similarity: Similarity, items: np.ndarray, size: int):
        self.error = similarity.entry_error
        self._matrix = self._rows = None
        if side_of(similarity, size) < min(size, len(items)):
            assert isinstance(similarity, Features)
            rows = similarity.rows(span(items))
            self._rows = rows.toarray() if is_sparse(rows) else to_host(rows)
        elif len(items) > EXACT_SIDE:
            raise TooLargeError(
                f"subsets of size={size} items take {len(items)}×{len(items)} similarities at a time, and the limit is "
                f"{EXACT_SIDE}×{EXACT_SIDE}; expected a smaller size, or a kernel with fewer features than that."
            )
        elif isinstance(similarity, Pairwise) and not similarity.trusted:
            matrix = held(similarity.take(items))
            self.error, self._matrix = matrix.entry_error, to_host(matrix.dense())
        else:
            self._matrix = to_host(similarity.dense(items))

    def scores(self, subsets: np.ndarray, q: float) -> np.ndarray:
        """The scores of order q of subsets, of shape (subsets, size): places in this pool, copies allowed."""
        count, size = subsets.shape
        known = self._rows if self._matrix is None else self._matrix
        assert known is not None
        entries = size * known.shape[1] if self._matrix is None else min(size, len(known)) ** 2
        step = max(1, min(STACK_BYTES // (8 * entries), -(-count // 8)))
        parts = [slice(first, first + step) for first in range(0, count, step)]
        found = np.empty(count)
        with workers(len(parts)) as threads:
            run([
                functools.partial(self._fill, found, subsets, parts[i::threads], q) for i in range(threads)
            ])  # fmt: skip
        return found

    def _fill(self, found: np.ndarray, subsets: np.ndarray, parts: list[slice], q: float) -> None:
        for part in parts:
            stack = self._stack(subsets[part])
            values = dense.eigenvalues(stack)
            error = self.error + dense.eigen_error(stack.shape[-1], values[:, 0])
            # A principal submatrix has no eigenvalue below those of the whole, which was looked at: what is negative
            # here is rounding, or was to be projected away.
            found[part] = hill(np.maximum(values, 0.0), q, zero_below=2 * error)

    def _stack(self, subsets: np.ndarray) -> np.ndarray:
        """The matrices ρ of some subsets."""
        count, size = subsets.shape
        if self._rows is not None:
            rows = self._rows[subsets]
            return rows.transpose(0, 2, 1) @ rows / size
        assert self._matrix is not None
        known = len(self._matrix)
        if known < size:
            flat = (subsets + known * np.arange(count)[:, None]).ravel()
            copies = np.bincount(flat, minlength=known * count).reshape(count, known)
            roots = np.sqrt(copies / size)
            return self._matrix * roots[:, :, None] * roots[:, None, :]
        return self._matrix[subsets[:, :, None], subsets[:, None, :]] / size
