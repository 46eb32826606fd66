"""A similarity matrix, as a user has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vendimeter._arrays import is_sparse
from vendimeter._devices import diagonal, double, is_foreign, numpy_dtype, select, transposed
from vendimeter._matrix_checks import Policy, check
from vendimeter.similarity.base import Index, Similarity, positions_of

__all__ = ["Matrix"]


class Matrix(Similarity):
    """A similarity matrix, dense or sparse, as a user has it.

    Parameters
    ----------
    data : array or sparse array, shape (n, n)
        The similarities, on the host or on a device.
    policy : Policy
        What to mend; without it a matrix that is not a similarity matrix is an error.
    trusted : bool
        Whether the matrix is known to be a similarity matrix.
    rounding : float
        Bound on the error of its entries.
    what : str
        What to call the matrix in messages.
    """

    def __init__(
        self,
        data: Any,
        *,
        policy: Policy | None = None,
        trusted: bool = False,
        rounding: float = 0.0,
        precision: np.dtype | None = None,
        what: str = "K",
    ):
        self.data = data
        self.n = int(data.shape[0])
        self.sparse = is_sparse(data)
        self.like = data if is_foreign(data) else None
        self.policy = policy or Policy()
        self.trusted = trusted
        self.rounding = rounding
        self.what = what
        self.precision = numpy_dtype(data) if precision is None else precision

    def block(self, rows: Index, cols: Index) -> Any:
        """A dense block of the matrix."""
        if self.sparse:
            return self.data[rows][:, cols].toarray().astype(np.float64)
        if self.like is not None:
            return double(self._part(rows, cols))
        return self.data[np.ix_(positions_of(rows, self.n), positions_of(cols, self.n))].astype(np.float64)

    def diagonal(self) -> np.ndarray:
        """The diagonal as it is, on the host."""
        return self.data.diagonal().astype(np.float64) if self.sparse else diagonal(self.data)

    def take(self, index: np.ndarray) -> Matrix:
        """The matrix of the items at these positions."""
        data = self.data[np.ix_(index, index)] if self._plain else self._part(index, index)
        return self._like(data)

    @property
    def _plain(self) -> bool:
        return not self.sparse and self.like is None

    def _part(self, rows: Index, cols: Index) -> Any:
        """Some rows and columns of a sparse matrix, or of one on a device."""
        if self.sparse:
            return self.data[rows][:, cols]
        return transposed(select(transposed(select(self.data, rows)), cols))

    def _like(self, data: Any, *, policy: Policy | None = None, slack: float = 0.0) -> Matrix:
        """Another matrix that came of this one, with the precision of the user's own dtype."""
        other = Matrix(
            data,
            policy=policy or self.policy,
            trusted=self.trusted,
            rounding=self.rounding + slack,
            precision=self.precision,
            what=self.what,
        )
        other.kernel = self.kernel
        return other

    def dense(self, index: np.ndarray | None = None) -> Any:
        """A float64 copy of the whole, both triangles as they are."""
        part = self.data if index is None else self.take(index).data
        return part.toarray().astype(np.float64) if self.sparse else double(part)

    def look(self, index: Index, policy: Policy) -> None:
        """Check the whole matrix, as it will be, and mend nothing."""
        if not self.trusted:
            check(self.data, self.policy | policy, self.what, self.precision, mend=False)

    def checked(self, policy: Policy | None = None, names: np.ndarray | None = None) -> Matrix:
        """The matrix, checked and mended as the policy allows; its rounding then covers what was tolerated."""
        policy = self.policy | (policy or Policy())
        if self.trusted:
            return self
        data, slack = check(self.data, policy, self.what, self.precision, names)
        return self._like(data, policy=replace(policy, normalize=False), slack=slack)
