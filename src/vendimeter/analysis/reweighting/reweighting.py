"""Weights of greatest diversity: what each item should count for a collection to be as diverse as it can be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.reweighting.search import Items, Search, search
from vendimeter.data.devices import namespace
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError, ToleranceWarning
from vendimeter.messages import brief, warn
from vendimeter.options import COSINE, SEED, as_number, check_progress, whole_number
from vendimeter.present.numbers import order_name, order_suffix, short_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import Result, frozen
from vendimeter.results.score import Score, scored
from vendimeter.similarity import FeatureRows, Features, Similarity
from vendimeter.solvers.eigenvectors import SPARSE_WIDTH, decompose
from vendimeter.solvers.groups import materialize_for_subsets
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import EXACT_SIDE
from vendimeter.spectrum import UNIT, parse_order

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["Reweighting", "reweight"]

# Sums of the least weights that are set to 0, in tolerances: the first one that the score does not miss.
DROPPED_TOLERANCES = (10.0, 1.0, 0.1, 1e-3, 0.0)
MOST_DROPPED = 0.05  # upper bound of such a sum


@dataclass(frozen=True, repr=False, eq=False)
class Reweighting(Result):
    """Weights of greatest diversity.

    Attributes
    ----------
    weights : ndarray of shape (n,)
        Probabilities, one a sample, which sum to 1.
    score : Score
        The score of the collection with these weights.
    uniform : Score
        The score before: of equal weights, or of `weights` or `counts` where they were given.
    gap : float
        No weights reach more than ``score * (1 + gap)``: a certificate, whatever the search did.
    bounds : tuple of float
        The largest score of any weights lies between these; NaN where the kernel only stands in for another.
    support : int
        How many samples have weight.
    iterations : int
        How many eigendecompositions it took.
    met : bool
        Whether `gap` is at most the tolerance that was asked for, …
    tol : float
        … which was this.

    Examples
    --------
    >>> import vendimeter as vm
    >>> found = vm.reweight(["a", "a", "a", "b"], "match")
    >>> found.weights.round(4), round(found.score, 4), round(found.uniform, 4)
    (array([0.1667, 0.1667, 0.1667, 0.5   ]), 2.0, 1.7548)
    """

    weights: np.ndarray = field(repr=False)
    score: Score
    uniform: Score
    gap: float
    bounds: tuple[float, float]
    support: int
    iterations: int
    met: bool
    tol: float = field(repr=False)

    def items_for(self, share: float) -> int:
        """How few samples hold this share of the weight.

        Examples
        --------
        >>> import vendimeter as vm
        >>> vm.reweight(["a", "a", "a", "b"], "match").items_for(0.4)
        1
        """
        target = as_number(share)
        if not 0 < target <= 1:
            raise InputError(f"share={brief(share)}; expected a share of the weight, above 0 and up to 1.")
        cumulative = np.cumsum(-np.sort(-self.weights))
        return min(int(np.searchsorted(cumulative, target - 1e-9)) + 1, self.support)

    def summary(self) -> str:
        """The score that is reached, what is the most, and how the weight is spread."""
        order = order_suffix(self.score.q, order_name)
        n = len(self.weights)
        comparison = (
            f"a Vendi Score{order} of {short_number(self.score)}, against {short_number(self.uniform)} before"
        )
        phrases = [
            f"The weights of greatest diversity have {comparison}",
            f"no weights have more than {_round_up(float(self.score) * (1 + self.gap))}, {self.gap:.1e} above that",
            f"{self.support:,} of {n:,} items have weight, and half of it is on {self.items_for(0.5):,}",
        ]
        if not self.met:
            phrases.append(f"the tolerance of {self.tol:g} was not met")
        return "; ".join(phrases) + "."

    def _columns(self) -> dict[str, Any]:
        order = np.argsort(-self.weights, kind="stable")
        weights = self.weights[order]
        return {"item": order, "weight": weights, "together": np.cumsum(weights)}

    def plot(self, ax: Any = None) -> Display:
        """The share of the weight that the heaviest items hold together, against how many they are."""
        from vendimeter.plots.bars import plot_weights

        return plot_weights(self, ax)


def reweight(
    samples: Any,
    kernel: Any = COSINE,
    *,
    q: Any = 1,
    tol: float = 1e-3,
    max_iterations: int = 200,
    weights: Any = None,
    counts: Any = None,
    rng: int = SEED,
    progress: bool | None = None,
) -> Reweighting:
    """The weights of greatest diversity, with a certificate of how near they are to the best.

    Weights p maximise the Vendi Score of ρ = Σ pᵢ φᵢφᵢᵀ. Items of which there are too many, copies above all, lose
    weight; those that nothing else is like gain it, and many end with none: what they show the others show together.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items, as for `vendimeter.score`.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    q : float or str
        The order of the score, above 0 and up to ``"inf"``.
    tol : float
        By how much other weights may be better, relative to the score.
    max_iterations : int
        Eigendecompositions, at most. If the tolerance is not met by then there is a `ToleranceWarning`, and the result
        says how far it is.
    weights : array of shape (n,), optional
        Probabilities of the items at present, to start from. Items without weight are not there, and get none.
    counts : array of shape (n,), optional
        How often each item occurs at present, likewise.
    rng : int
        Seed of what is random in a kernel; the search is not.
    progress : bool, optional
        Show a progress bar on stderr: always or never; by default only on a terminal.

    Returns
    -------
    Reweighting
        The weights, their score, and a bound on that of any others.

    Notes
    -----
    The problem is concave: S(Σ pᵢ φᵢφᵢᵀ) for q = 1, −‖ρ‖_q for q > 1, tr ρ^q for q < 1. At the optimum every item that
    has weight has the same slope gᵢ = −φᵢᵀ log(ρ) φᵢ, and no other a larger one. No weights have more than exp(max gᵢ),
    whatever state the slopes are taken at, so that the bound needs no faith in the search; other orders have bounds of
    the same kind from Hölder's inequality, and rounding is in all of them. Order ∞, 1/λ_max, is reached through
    higher and higher finite ones. Order 0 is an error: it counts directions, however little weight they have, so that
    all weights without zeros are optimal.

    The search is Newton's method with a barrier, over all items at once where they are no more than 256 or twice the
    features: about ten iterations. Of more, some ten quasi-Newton steps over all items, O(nd²) each, tell which end
    without weight; Newton's method then works on the others, some thousands at most, and all items are looked at again.
    Without features, or with more of them than items, features come from the eigenvectors of the n×n similarity matrix,
    up to 8,192 items.

    The best ρ is unique for q from 1 up (below ∞), the weights need not be: of items that are alike up to rounding, any
    may get what they get together. Identical samples share it as they did before. The least weights are 0 where the
    score does not miss them: a tenth of the tolerance may be lost to that.

    **The most diverse weighting is not the best one to train on.** What is unlike everything else is often broken; look
    at the heaviest items.

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023, with weights. Berns, Colton, Guckelsberger: Towards mode balancing
    of generative models via diversity weights, ICCC 2023. Pasarkar and Dieng: The Vendiscope, 2025. Nagaoka: Algorithms
    of Arimoto–Blahut type for computing quantum channel capacity, ISIT 1998 (slopes and the bound for q = 1).
    Audenaert: A sharp Fannes-type inequality for the von Neumann entropy, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> rng = np.random.default_rng(0)
    >>> rows = np.repeat(np.eye(3), [90, 9, 1], axis=0) + 0.1 * rng.standard_normal((100, 3))
    >>> found = vm.reweight(rows)
    >>> round(found.uniform, 2), round(found.score, 2), found.met
    (1.5, 3.0, True)
    >>> np.add.reduceat(found.weights, [0, 90, 99]).round(1)  # of the kind with 90 items, with 9, and with 1
    array([0.3, 0.3, 0.3])
    """
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, rng=rng)
    return diversity.reweight(q=q, tol=tol, max_iterations=max_iterations, progress=progress)


def reweighting_of(
    diversity: Diversity, *, q: Any, tol: Any, max_iterations: Any, progress: Any
) -> Reweighting:
    """The weights of greatest diversity; see `reweight`."""
    order, tolerance, max_decompositions = _check_options(q, tol, max_iterations, progress)
    if diversity.similarity.policy.project:
        raise InputError(
            "the kernel drops negative eigenvalues (project=True), and which they are depends on the weights; expected "
            "a positive semidefinite one. Project the similarity matrix once, divide it by √(K_ii K_jj), and pass that."
        )
    shares, group = diversity.shares, diversity.distinct[1]
    distinct_of_sample = np.zeros(diversity.n, dtype=np.int64)
    distinct_of_sample[shares > 0] = group
    item_weights = np.bincount(group, weights=shares[shares > 0])
    item_weights /= item_weights.sum()
    distinct = _distinct(diversity)
    items = _feature_items(distinct, diversity)
    with Progress("weights", progress) as bar:
        result = search(
            items,
            item_weights,
            order,
            tolerance,
            max_decompositions,
            lambda k, gap: bar.step(None, f"step {k}, gap {gap:.1e}"),
        )

    def score_with(candidate: np.ndarray, size: int) -> Score:
        """The exact score of the distinct items with these weights."""
        solver = Solver(method="exact", precision="float64")
        return scored(distinct, candidate, order, size, solver=solver, rng=diversity.rng)

    best, score = _drop_least(result, tolerance, lambda trial: score_with(trial, diversity.n))
    gap = max(math.exp(result.upper - math.log(score)) - 1, 0.0) if result.upper < 700 else math.inf
    if gap > tolerance:
        _warn(gap, tolerance, result.exhausted)
    sample_weights = best[distinct_of_sample] * np.where(
        shares > 0, shares / item_weights[distinct_of_sample], 0.0
    )
    before = (
        diversity.score(order, progress=False)
        if diversity.keeps
        else score_with(item_weights, diversity.count)
    )
    return Reweighting(
        frozen(sample_weights / sample_weights.sum()),
        score,
        before,
        gap,
        (score.bounds[0], math.nan if score.level == "none" else float(score) * (1 + gap)),
        int(np.count_nonzero(sample_weights)),
        result.decompositions,
        gap <= tolerance,
        tolerance,
    )


def _check_options(q: Any, tol: Any, max_iterations: Any, progress: Any) -> tuple[float, float, int]:
    order = parse_order(q)
    if order == 0:
        raise InputError(
            "q=0 counts directions however little weight they have, so that all weights without zeros are optimal and "
            "there is nothing to search; expected an order above 0, such as q=0.5."
        )
    if not 0 < as_number(tol) < 1:
        raise InputError(f"tol={brief(tol)}; expected by how much other weights may be better, such as 1e-3.")
    check_progress(progress)
    return order, as_number(tol), whole_number(max_iterations, "max_iterations")


def _distinct(diversity: Diversity) -> Similarity:
    """The similarities of the distinct items of positive weight."""
    first, similarity = diversity.distinct[0], diversity.similarity
    if len(first) == diversity.n:
        return diversity.subsets
    return materialize_for_subsets(similarity.take(first))


def _feature_items(distinct: Similarity, diversity: Diversity) -> Items:
    """Represent the distinct items by features, with bounds on the errors of these."""
    if isinstance(distinct, Features):
        widest = SPARSE_WIDTH if distinct.sparse else EXACT_SIDE
        if distinct.width <= min(distinct.n, widest):
            return Items(distinct, 2 * distinct.rounding + 8 * UNIT, distinct.width)
    is_whole = distinct.n == diversity.n and diversity.weights is None
    decomposition = diversity.decomposition() if is_whole else decompose(distinct, None)
    rows, rank, dropped = decomposition.coordinates(slice(None)), decomposition.rank, 0.0
    if rank < rows.shape[1]:  # beyond the rank, directions may be rounding alone
        xp, rest = namespace(rows), rows[:, rank:]
        dropped = float(xp.max(xp.sum(rest * rest, axis=1)))
        rows = rows[:, :rank] if decomposition.like is not None else np.ascontiguousarray(rows[:, :rank])
    # The error of K is at most n times that of K/n; so is that of diag(√p) K diag(√p) in the trace norm, for any p.
    drift = distinct.n * decomposition.solution.spectrum.error + 2 * dropped  # type: ignore[attr-defined]
    return Items(FeatureRows(rows), (rank + 8) * UNIT, distinct.n, drift)


def _drop_least(
    result: Search, tol: float, score_of: Callable[[np.ndarray], Score]
) -> tuple[np.ndarray, Score]:
    """Set as many of the least weights to 0 as the score does not miss; return the weights and their score."""
    order = np.argsort(result.weights, kind="stable")
    sums = np.cumsum(result.weights[order])
    chosen, score = result.weights, None
    for factor in DROPPED_TOLERANCES:
        chosen = result.weights.copy()
        chosen[order[sums <= min(factor * tol, MOST_DROPPED)]] = 0.0
        chosen /= chosen.sum()
        score = score_of(chosen)
        if math.log(score) >= result.value - 0.1 * tol:
            break
    assert score is not None
    return chosen, score


def _warn(gap: float, tol: float, exhausted: bool) -> None:
    reason = (
        "the iterations set aside for it were spent. Allow more with max_iterations, or a wider tol."
        if exhausted
        else "rounding in the given numbers allows no better. Pass more precise numbers, or a wider tol."
    )
    warn(
        f"other weights may be better by {gap:.1e} of the score, more than tol={tol:g}: {reason}",
        ToleranceWarning,
    )


def _round_up(value: float) -> str:
    """Format six digits, rounded up: an upper bound stays one."""
    if not 0 < value < math.inf:
        return short_number(value)
    step = 10.0 ** (math.floor(math.log10(value)) - 5)
    return short_number(math.ceil(value / step) * step)
