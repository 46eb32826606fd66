"""Which solver for which input. Fixed thresholds in n and d: the same call gives the same answer on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vendimeter._messages import unknown
from vendimeter.errors import TooLargeError
from vendimeter.similarity import Features, Matrix, Similarity

__all__ = ["DENSE_LIMIT", "METHODS", "PRECISIONS", "Plan", "check_size", "choose"]

METHODS = ("auto", "exact")
PRECISIONS = ("auto", "float64", "float32")
DENSE_LIMIT = (
    32_768  # the largest dense matrix whose eigenvalues are taken: 8 GiB, and as much again to work in
)
SINGLE_ABOVE = 1e11  # n·d² from which float32 rows are multiplied in float32
SPARSE_FILL = 0.25  # a product of sparse features fuller than this is summed into a dense matrix
SPARSE_LIMIT = 3e8  # non-zero entries of a sparse product that are still worth storing


@dataclass(frozen=True)
class Plan:
    """What will be done, and why.

    Attributes
    ----------
    side : "columns", "rows" or "sparse"
        The d×d matrix of features, the n×n matrix of items, or the connected components of a sparse matrix.
    precision : "float64" or "float32"
        Of the products of features.
    reason : str
        Why, in words.
    """

    side: Literal["columns", "rows", "sparse"]
    precision: Literal["float64", "float32"]
    reason: str


def choose(
    similarity: Similarity, orders: Sequence[float], *, precision: str = "auto", method: str = "auto"
) -> Plan:
    """The plan for an exact answer."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    n = similarity.n
    if isinstance(similarity, Matrix):
        if similarity.sparse:
            return Plan(
                "sparse",
                "float64",
                f"a sparse {n}×{n} similarity matrix: one eigensolve a connected component",
            )
        return Plan("rows", "float64", f"a {n}×{n} similarity matrix")
    if not isinstance(similarity, Features):
        return Plan(
            "rows", "float64", f"the kernel has no finite features: the {n}×{n} similarity matrix is built"
        )
    d = similarity.width
    if similarity.sparse:
        return Plan(
            "sparse",
            "float64",
            f"sparse features, {n} rows and {d} columns: the sparse product of the smaller side",
        )
    if n < d:
        return Plan("rows", "float64", f"{n} rows are fewer than {d} columns: the {n}×{n} similarity matrix")
    narrow = f"{d} columns are no more than {n} rows: the {d}×{d} matrix of features"
    if precision != "auto":
        return Plan(
            "columns", "float32" if precision == "float32" else "float64", f"{narrow}; {precision} as asked"
        )
    half = similarity.dtype.kind == "f" and similarity.dtype.itemsize < 8
    if similarity.like is not None:  # a GPU made for computing is as fast in float64
        return Plan("columns", "float64", f"{narrow}, on the device of the samples")
    if not half or float(n) * d * d <= SINGLE_ABOVE:
        return Plan("columns", "float64", narrow)
    if min(orders) < 1:
        return Plan(
            "columns",
            "float64",
            f"{narrow}; in float64 because orders below 1 depend on the smallest eigenvalues",
        )
    return Plan(
        "columns",
        "float32",
        f"{narrow}; {np.dtype(similarity.dtype).name} rows with n·d² above {SINGLE_ABOVE:.0e}: float32 "
        "products, their error measured",
    )


def check_size(size: int, what: str) -> None:
    """Refuse a dense eigensolve that could not be held in memory, and say what to do instead."""
    if size > DENSE_LIMIT:
        raise TooLargeError(
            f"{what} of {size}×{size} is too large for an exact answer: it would take "
            f"{8 * size**2 / 2**30:.0f} GiB, and the limit is {DENSE_LIMIT}×{DENSE_LIMIT}. Use a kernel "
            "with features of fewer columns (such as cosine), or score a random subset."
        )
