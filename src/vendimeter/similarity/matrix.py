"""A similarity matrix, as a user has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.data.arrays import is_sparse
from vendimeter.data.devices import diagonal, double, is_foreign, numpy_dtype, select, transposed
from vendimeter.similarity.base import Calls, Index, Similarity, positions_of
from vendimeter.similarity.checks import Policy, check

__all__ = ["Matrix", "checked_matrix", "materialized"]


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
    is_checked : bool
        Whether it was found finite, symmetric and with a diagonal of 1, and mended as the policy allows; negative
        eigenvalues it may still have.
    rounding : float
        Bound on the error of its entries.
    what : str
        What to call the matrix in messages.
    """

    data: Any
    what: str
    is_checked: bool

    def __init__(
        self,
        data: Any,
        *,
        policy: Policy | None = None,
        trusted: bool = False,
        is_checked: bool = False,
        rounding: float = 0.0,
        precision: np.dtype | None = None,
        what: str = "K",
        kernel: Any = None,
    ):
        super().__init__(
            int(data.shape[0]),
            kernel=kernel,
            policy=policy,
            trusted=trusted,
            rounding=rounding,
            like=data if is_foreign(data) else None,
            data=data,
            sparse=is_sparse(data),
            what=what,
            is_checked=trusted or is_checked,
            counter=Calls(numpy_dtype(data) if precision is None else precision),
        )

    def block(self, rows: Index, cols: Index) -> Any:
        """A dense block of the matrix."""
        if self.sparse:
            return self.data[rows][:, cols].toarray().astype(np.float64)
        if self.like is not None:
            return double(self._submatrix(rows, cols))
        return self.data[np.ix_(positions_of(rows, self.n), positions_of(cols, self.n))].astype(np.float64)

    def diagonal(self) -> np.ndarray:
        """The diagonal, unchecked, on the host."""
        return self.data.diagonal().astype(np.float64) if self.sparse else diagonal(self.data)

    def take(self, index: np.ndarray) -> Matrix:
        """The matrix of the items at these positions."""
        data = self.data[np.ix_(index, index)] if self._is_dense_on_host else self._submatrix(index, index)
        return self._with(data=data, n=len(index))

    @property
    def _is_dense_on_host(self) -> bool:
        return not self.sparse and self.like is None

    def _submatrix(self, rows: Index, cols: Index) -> Any:
        """Rows and columns of a sparse matrix, or of one on a device."""
        if self.sparse:
            return self.data[rows][:, cols]
        return transposed(select(transposed(select(self.data, rows)), cols))

    def dense(self, index: np.ndarray | None = None) -> Any:
        """A float64 copy, both triangles unchanged."""
        matrix = self.data if index is None else self.take(index).data
        return matrix.toarray().astype(np.float64) if self.sparse else double(matrix)

    def look(self, index: Index) -> None:
        """Check the whole matrix; nothing is mended."""
        if not self.is_checked:
            check(self.data, self.policy, self.what, self.precision, mend=False)

    def checked(self, names: np.ndarray | None = None) -> Matrix:
        """The matrix, checked and mended as its policy allows; its rounding then covers what was tolerated.

        `names` are the user's own positions of the items, for messages, where some items were left out.
        """
        if self.is_checked:
            return self
        data, slack = check(self.data, self.policy, self.what, self.precision, names)
        policy = Policy(project=self.policy.project)  # the rest is done
        return self._with(data=data, policy=policy, is_checked=True, rounding=self.rounding + slack)


def checked_matrix(matrix: Any, similarity: Similarity, names: np.ndarray | None = None) -> Matrix:
    """The matrix of a user's function, checked and mended like a user's matrix."""
    return Matrix(
        matrix,
        policy=similarity.policy,
        rounding=similarity.rounding,
        precision=similarity.precision,
        what="k",
        kernel=similarity.kernel,
    ).checked(names)


def materialized(similarity: Similarity, names: np.ndarray | None = None) -> Matrix:
    """All similarities as one matrix; what a user gave is checked: a function is called once a pair.

    `names` are the user's own positions of the items, for messages, where some items were left out.
    """
    if isinstance(similarity, Matrix):
        return similarity.checked(names)
    if not similarity.trusted:
        return checked_matrix(similarity.dense(), similarity, names)
    return Matrix(
        similarity.dense(),
        policy=similarity.policy,
        trusted=True,
        rounding=similarity.entry_error,
        kernel=similarity.kernel,
    )
