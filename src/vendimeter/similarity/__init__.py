"""The three kinds of similarity, between a kernel and a solver.

- `Features`: vectors φ with K = ΦΦᵀ, most often `FeatureRows`. Nothing n×n is built unless that is the smaller side.
- `Matrix`: K itself, dense or sparse.
- `Pairwise`: blocks of k(A, B) on demand; `Remembered` computes each pair only once.

Each offers ``block(rows, cols)``, a dense float64 block of K, and ``rounding``, a bound on the error of its entries
against the mathematical kernel of the given samples. A similarity made by a kernel of this package is *trusted*: its
diagonal is 1, and it is symmetric and positive semidefinite by construction. What a user supplies is checked.
"""

from __future__ import annotations

from vendimeter.similarity.base import Calls, Index, Similarity, coarsest, parts_of, positions_of, span
from vendimeter.similarity.features import FeatureRows, Features, row_keys
from vendimeter.similarity.matrix import Matrix, checked_matrix, materialized
from vendimeter.similarity.pairwise import Pairwise
from vendimeter.similarity.remembered import Remembered

__all__ = [
    "Calls",
    "FeatureRows",
    "Features",
    "Index",
    "Matrix",
    "Pairwise",
    "Remembered",
    "Similarity",
    "checked_matrix",
    "coarsest",
    "materialized",
    "parts_of",
    "positions_of",
    "row_keys",
    "span",
]
