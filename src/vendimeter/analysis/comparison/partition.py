"""Diversity within, between and in all groups, and how alike any two groups are.

The groups are density operators ρ_g = Σ p_i φ_i φ_iᵀ, and the whole is their mixture Σ w_g ρ_g. Everything here is
computed from their spectra, from overlaps tr(ρ_g ρ_h) = Σ p_i p_j k_ij², and from one solve for the mixture.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from vendimeter.analysis.comparison.groups import Groups
from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import DEVICE_BYTES, move, namespace, to_host, transposed
from vendimeter.data.groups import Grouping
from vendimeter.results.score import Score, to_score
from vendimeter.similarity import Features, Matrix, Similarity, span
from vendimeter.similarity.base import parts_of
from vendimeter.solvers.plan import Problem
from vendimeter.solvers.solve import run

__all__ = ["Partition", "overlap_cost", "overlaps", "partition"]

COLUMN_BYTES = 64 << 20  # upper bound of the columns of the groups' d×d matrices in memory at a time
ROUNDING = 1e-12  # relative difference up to which weights of items are the same


class Partition(NamedTuple):
    """Diversity within (alpha), between (beta) and in all groups (gamma), and the bounds of beta."""

    alpha: float
    beta: float
    gamma: Score
    bounds: tuple[float, float]


def partition(groups: Groups, shares: np.ndarray, scores: np.ndarray, q: float) -> Partition:
    """The partition of the diversity of order q into alpha, beta and gamma.

    Parameters
    ----------
    groups : Groups
        All groups.
    shares : ndarray, shape (groups,)
        The weights of the groups, which sum to 1; 0 for an empty one.
    scores : ndarray, shape (groups, 3)
        The score of each, with its lower and upper bound (NaN where there are none).
    q : float
        The order.
    """
    diversity, similarity, members = groups.diversity, groups.similarity, groups.members
    weights = mixture_weights(members, shares, similarity.n)
    own = None if diversity.has_rows else diversity.shares
    if own is not None and np.allclose(weights, own, rtol=ROUNDING, atol=0):
        plan, solution = diversity.solve([q])
    else:
        uniform = bool((weights == weights[0]).all())
        kept, solver, rng = diversity.fixed_bytes, diversity.solver, diversity.rng
        plan, solution = run(Problem(similarity, None if uniform else weights, [q], solver, rng, kept=kept))
    gamma = to_score(solution, plan, q, int(members.sizes.sum()), similarity.kernel)
    present = shares > 0
    alpha, alpha_low, alpha_high = (_alpha(column, shares[present], q) for column in scores[present].T)
    return Partition(alpha, gamma / alpha, gamma, (gamma.bounds[0] / alpha_high, gamma.bounds[1] / alpha_low))


def mixture_weights(members: Grouping, shares: np.ndarray, n: int) -> np.ndarray:
    """The weight of each item in Σ w_g ρ_g, an item of several groups counted in each of them."""
    sizes = np.diff(members.starts)
    weights = np.bincount(members.items, weights=members.shares * np.repeat(shares, sizes), minlength=n)
    return weights / weights.sum()


def _alpha(scores: np.ndarray, shares: np.ndarray, q: float) -> float:
    """(Σ w tr ρ^q)^(1/(1−q)) with tr ρ^q = VS^(1−q); exp(Σ w log VS) at q = 1, and the least VS at q = ∞."""
    if math.isinf(q):
        return float(scores.min())
    logs = np.log(scores)
    mean = float(shares @ logs)
    if q == 1:
        return math.exp(mean)
    powers = (1 - q) * (logs - mean)
    if np.abs(powers).max() < 1:  # near q = 1 the sum is close to 1
        total = math.log1p(float(shares @ np.expm1(powers)))
    else:
        top = float(powers.max())
        total = top + math.log(float(shares @ np.exp(powers - top)))
    return math.exp(mean + total / (1 - q))


# -------------------------------------------------------------------------------------------- similarity of groups


def overlaps(similarity: Similarity, members: Grouping) -> np.ndarray:
    """tr(ρ_g ρ_h)/√(tr ρ_g² tr ρ_h²) for every two groups, by the cheapest way; NaN for empty ones."""
    shares = _membership_matrix(members, similarity.n)
    if _cost_by_features(similarity, members) < _cost_by_pairs(similarity, members):
        products = _products_from_features(similarity, members, shares)  # type: ignore[arg-type]
    elif isinstance(similarity, Matrix) and similarity.sparse:
        products = (shares @ similarity.data.multiply(similarity.data) @ shares.T).toarray()
    else:
        products = _products_from_pairs(similarity, shares)
    norms = np.sqrt(np.diagonal(products))
    with np.errstate(invalid="ignore"):
        cosines = products / norms[:, None] / norms
    cosines[(np.diff(members.starts) == 0)] = np.nan
    # Rounding may violate the inequality of Cauchy and Schwarz by an ulp: identical groups are 1, not 1 + 2⁻⁵².
    cosines = np.minimum((cosines + cosines.T) / 2, 1.0)
    np.fill_diagonal(cosines, np.where(np.isnan(np.diagonal(cosines)), np.nan, 1.0))
    return cosines


def overlap_cost(similarity: Similarity, members: Grouping) -> float:
    """Floating-point operations that `overlaps` takes, about."""
    return min(_cost_by_features(similarity, members), _cost_by_pairs(similarity, members))


def _cost_by_features(similarity: Similarity, members: Grouping) -> float:
    """Operations of `_products_from_features`; infinite where that is impossible."""
    if not isinstance(similarity, Features) or similarity.sparse:
        return math.inf
    return 2.0 * similarity.width**2 * (len(members.items) + len(members.labels) ** 2 / 2)


def _cost_by_pairs(similarity: Similarity, members: Grouping) -> float:
    """Operations over all pairs of items."""
    if isinstance(similarity, Matrix) and similarity.sparse:
        return 20.0 * similarity.data.nnz
    pairs = len(np.unique(members.items)) ** 2 / 2
    return pairs * (8.0 if isinstance(similarity, Matrix) else similarity.cost)


def _membership_matrix(members: Grouping, n: int) -> Any:
    """The sparse matrix groups × items of the weights of the items in each group."""
    from scipy import sparse

    return sparse.csr_array((members.shares, members.items, members.starts), shape=(len(members.labels), n))


def _products_from_features(features: Features, members: Grouping, shares: Any) -> np.ndarray:
    """tr(ρ_g ρ_h) from the d×d matrices of the groups, some of their columns at a time."""
    count, width = len(members.labels), features.width
    limit = COLUMN_BYTES if features.like is None else DEVICE_BYTES
    step = max(1, min(width, limit // (8 * width * count)))
    total: Any = 0.0
    for first in range(0, width, step):
        columns = slice(first, min(first + step, width))
        flat = [
            _operator_columns(features, members.items[entries], shares.data[entries], columns)
            for entries in map(slice, members.starts[:-1], members.starts[1:])
        ]
        columns_of_groups = namespace(flat[0]).stack(flat)
        total = total + columns_of_groups @ transposed(columns_of_groups)
    return to_host(total)


def _operator_columns(features: Features, items: np.ndarray, weights: np.ndarray, columns: slice) -> Any:
    """Some columns of Σ p φφᵀ of a group, as one vector."""
    width = features.width
    total: Any = None
    for batch in blocks(len(items), width, most=4 * BLOCK_BYTES if features.like is None else DEVICE_BYTES):
        rows = features.rows(span(items[batch]))
        scaled = rows[:, columns] * move(weights[batch], rows)[:, None]
        product = transposed(rows) @ scaled
        total = product if total is None else total + product
    if total is None:
        like = features.rows(slice(0, 1))
        total = 0.0 * (transposed(like) @ like[:, columns])
    return namespace(total).reshape(total, (-1,))


def _products_from_pairs(similarity: Similarity, shares: Any) -> np.ndarray:
    """tr(ρ_g ρ_h) from tiles of the squared similarities of the items that are in a group."""
    items = np.unique(shares.indices)
    shares = shares[:, items]
    total = np.zeros((shares.shape[0],) * 2)
    # Rows of very wide features would add up to a copy of the data.
    width = similarity.width if isinstance(similarity, Features) and not similarity.sparse else 0
    parts = parts_of(len(items), max(64, min(1024, 2 * BLOCK_BYTES // (8 * max(width, 1)))))
    for i, rows in enumerate(parts):
        left = span(items[rows])
        for cols in parts[i:]:
            block = to_host(similarity.block(left, left if cols is rows else span(items[cols])))
            product = (shares[:, rows] @ (block * block)) @ shares[:, cols].T
            total += product if cols is rows else product + product.T
    return total
