"""Scores of many subsets of one collection, whose similarities are made once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vendimeter.data.groups import Membership
from vendimeter.similarity import Features, Matrix, Similarity, materialized
from vendimeter.solvers.groups import solve_groups
from vendimeter.solvers.plan import EXACT_SIDE

__all__ = ["held", "subset_scores"]

CHUNK = 4096  # subsets that are scored at a time: their eigenvalues are held meanwhile


def held(similarity: Similarity, most: int = EXACT_SIDE) -> Similarity:
    """The same similarities so that subsets of them are cheap: as a matrix, where rows are fewer than features.

    A user's function is called and checked once. Beyond `most` items nothing is held, and subsets are computed when
    they are asked for.
    """
    narrow = isinstance(similarity, Features) and similarity.width <= similarity.n
    if narrow or (similarity.n > most and not isinstance(similarity, Matrix)):
        return similarity
    return materialized(similarity)


def subset_scores(
    similarity: Similarity,
    subsets: Sequence[np.ndarray],
    orders: Sequence[float],
    weights: Sequence[np.ndarray] | None = None,
    *,
    rng: int = 0,
) -> np.ndarray:
    """The scores of the items at each of these arrays of positions, of shape (subsets, orders); an empty one is NaN.

    Parameters
    ----------
    similarity : Similarity
        Of all items; see `held`.
    subsets : list of ndarray
        Positions of items, each at most once.
    orders : list of float
        The orders q.
    weights : list of ndarray, optional
        Probabilities of the items of each subset, which sum to 1; uniform by default.
    rng : int
        Seed of what is random.

    Examples
    --------
    >>> import numpy as np
    >>> from vendimeter.kernels import Cosine
    >>> subset_scores(Cosine().similarity(np.eye(4)), [np.array([0, 1]), np.arange(4)], [1.0])[:, 0]
    array([2., 4.])
    """
    found = []
    for first in range(0, len(subsets), CHUNK):
        chunk = slice(first, first + CHUNK)
        groups = Membership.of(subsets[chunk], None if weights is None else weights[chunk])
        found.append(solve_groups(similarity, groups, orders, rng=rng).value)
    return np.concatenate(found) if found else np.empty((0, len(orders)))
