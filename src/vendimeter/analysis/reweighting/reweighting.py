"""The weights of greatest diversity: what each item should count for a collection to be as diverse as it can be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.family import scored
from vendimeter.analysis.reweighting.search import Items, Search, search
from vendimeter.data.devices import namespace
from vendimeter.errors import InputError, ToleranceWarning, brief, warn
from vendimeter.intake import collected, measured
from vendimeter.options import as_number, check_progress, check_rng, whole_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import Result, frozen
from vendimeter.results.score import Score, number, order_name
from vendimeter.similarity import FeatureRows, Features, Matrix, Similarity
from vendimeter.solvers.eigenvectors import SPARSE_WIDTH, decompose
from vendimeter.solvers.groups import held
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import EXACT_SIDE, same_items
from vendimeter.spectrum import UNIT, parse_order

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["Reweighting", "reweight"]

DROPPED = (
    10.0,
    1.0,
    0.1,
    1e-3,
    0.0,
)  # times the tolerance: the least weights, up to this sum, that may be left out
MOST_DROPPED = 0.05


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
        wanted = as_number(share)
        if not 0 < wanted <= 1:
            raise InputError(f"share={brief(share)}; expected a share of the weight, above 0 and up to 1.")
        total = np.cumsum(-np.sort(-self.weights))
        return min(int(np.searchsorted(total, wanted - 1e-9)) + 1, self.support)

    def summary(self) -> str:
        """The score that is reached, what is the most, and how the weight is spread."""
        q = "" if self.score.q == 1 else f" of order {order_name(self.score.q)}"
        n = len(self.weights)
        reached = f"a Vendi Score{q} of {number(self.score)}, against {number(self.uniform)} before"
        parts = [
            f"The weights of greatest diversity have {reached}",
            f"no weights have more than {_above(float(self.score) * (1 + self.gap))}, {self.gap:.1e} above that",
            f"{self.support:,} of {n:,} items have weight, and half of it is on {self.items_for(0.5):,}",
        ]
        if not self.met:
            parts.append(f"the tolerance of {self.tol:g} was not met")
        return "; ".join(parts) + "."

    def _columns(self) -> dict[str, Any]:
        order = np.argsort(-self.weights, kind="stable")
        weights = self.weights[order]
        return {"item": order, "weight": weights, "together": np.cumsum(weights)}

    def plot(self, ax: Any = None) -> Display:
        """The share of the weight that the heaviest items hold together, against how many they are."""
        from vendimeter.plots.bars import plot_weights

        return plot_weights(self, ax)


@collected
def reweight(
    samples: Any,
    kernel: Any = "cosine",
    *,
    q: Any = 1,
    tol: float = 1e-3,
    max_iterations: int = 200,
    weights: Any = None,
    counts: Any = None,
    rng: int = 0,
    progress: bool | None = None,
) -> Reweighting:
    """The weights of greatest diversity, with a certificate of how near they are to the best.

    Weights p maximise the Vendi Score of ρ = Σ pᵢ φᵢφᵢᵀ. Items of which there are too many, copies above all, lose
    weight; those that nothing else is like gain it, and many end with none: what they show the others show together.

    Parameters
    ----------
    samples : array, sparse array, list, table or Collection
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
    order, tolerance, most = _checked(q, tol, max_iterations, progress)
    similarity, shares, n = measured(samples, kernel, weights, counts, rng)
    if similarity.policy.project:
        raise InputError(
            "the kernel drops negative eigenvalues (project=True), and which they are depends on the weights; expected "
            "a positive semidefinite one. Project the similarity matrix once, divide it by √(K_ii K_jj), and pass that."
        )
    group, joint, part = _distinct(similarity, shares)
    items = _items(part)
    with Progress("weights", progress) as bar:
        found = search(
            items, joint, order, tolerance, most, lambda k, gap: bar.step(None, f"step {k}, gap {gap:.1e}")
        )

    def score_with(chosen: np.ndarray, size: int) -> Score:
        return _score(part, chosen, order, size, similarity.kernel, rng)

    chosen, score = _without_least(found, tolerance, lambda kept: score_with(kept, similarity.n))
    gap = max(math.exp(found.upper - math.log(score)) - 1, 0.0) if found.upper < 700 else math.inf
    if gap > tolerance:
        _warn(gap, tolerance, found.exhausted)
    spread = chosen[group] * np.where(shares > 0, shares / joint[group], 0.0)
    return Reweighting(
        frozen(spread / spread.sum()),
        score,
        score_with(joint, n),
        gap,
        (score.bounds[0], math.nan if score.level == "none" else float(score) * (1 + gap)),
        int(np.count_nonzero(spread)),
        found.spent,
        gap <= tolerance,
        tolerance,
    )


def _checked(q: Any, tol: Any, max_iterations: Any, progress: Any) -> tuple[float, float, int]:
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


def _distinct(similarity: Similarity, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, Similarity]:
    """Which distinct item of positive weight each sample is (0 where it has none), their weights and similarities."""
    if isinstance(similarity, Matrix):
        similarity = similarity.checked()
    present = np.flatnonzero(shares)
    first, of_present = same_items(similarity, present)
    group = np.zeros(similarity.n, dtype=np.int64)
    group[present] = of_present
    joint = np.bincount(of_present, weights=shares[present], minlength=len(first))
    part = similarity if len(first) == similarity.n else similarity.take(present[first])
    return group, joint / joint.sum(), held(part)


def _items(part: Similarity) -> Items:
    """The distinct items by features, and how far these may be off."""
    if isinstance(part, Features):
        wide = SPARSE_WIDTH if part.sparse else EXACT_SIDE
        if part.width <= min(part.n, wide):
            return Items(part, 2 * part.rounding + 8 * UNIT, part.width)
    found = decompose(part, None)
    rows, kept, lost = found.coordinates(slice(None)), found.rank, 0.0
    if kept < rows.shape[1]:  # directions that rounding may have made
        xp, others = namespace(rows), rows[:, kept:]
        lost = float(xp.max(xp.sum(others * others, axis=1)))
        rows = rows[:, :kept] if found.like is not None else np.ascontiguousarray(rows[:, :kept])
    # K is off by at most n times what K/n is, and so is diag(√p) K diag(√p) in the trace norm, for any weights.
    drift = part.n * found.solution.spectrum.error + 2 * lost  # type: ignore[attr-defined]
    return Items(FeatureRows(rows), (kept + 8) * UNIT, part.n, drift)


def _score(part: Similarity, weights: np.ndarray, q: float, n: int, kernel: Any, rng: int) -> Score:
    """The exact score of the distinct items with these weights."""
    solver = Solver(method="exact", precision="float64")
    return scored(part.with_kernel(kernel), weights, q, n, solver=solver, rng=check_rng(rng))


def _without_least(
    found: Search, tol: float, score_of: Callable[[np.ndarray], Score]
) -> tuple[np.ndarray, Score]:
    """The weights without as many of the least ones as are not missed, and their score."""
    order = np.argsort(found.weights, kind="stable")
    sums = np.cumsum(found.weights[order])
    chosen, score = found.weights, None
    for share in DROPPED:
        chosen = found.weights.copy()
        chosen[order[sums <= min(share * tol, MOST_DROPPED)]] = 0.0
        chosen /= chosen.sum()
        score = score_of(chosen)
        if math.log(score) >= found.value - 0.1 * tol:
            break
    assert score is not None
    return chosen, score


def _warn(gap: float, tol: float, spent: bool) -> None:
    reason = (
        "the iterations set aside for it were spent. Allow more with max_iterations, or a wider tol."
        if spent
        else "rounding in the given numbers allows no better. Pass more precise numbers, or a wider tol."
    )
    warn(
        f"other weights may be better by {gap:.1e} of the score, more than tol={tol:g}: {reason}",
        ToleranceWarning,
    )


def _above(value: float) -> str:
    """Six digits, rounded up: what holds for the number holds for the one that is shown."""
    if not 0 < value < math.inf:
        return number(value)
    step = 10.0 ** (math.floor(math.log10(value)) - 5)
    return number(math.ceil(value / step) * step)
