"""What each sample contributes to the score: its share of the entropy, its rarity, and the score without it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.decomposition.leave_one_out import Removal, removal
from vendimeter.data.devices import move, namespace, to_host
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.options import COSINE, SEED, check_flag, whole_number
from vendimeter.present.numbers import effective_items, order_name, order_suffix, short_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import Result, frozen, score_of
from vendimeter.results.score import Score
from vendimeter.similarity import Features, Similarity
from vendimeter.solvers.eigenvectors import Decomposition, decompose
from vendimeter.solvers.exact import Solution
from vendimeter.solvers.sums import present, row_sums
from vendimeter.spectrum import Eigenvalues, parse_order
from vendimeter.threads import run, workers

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["HEAVY", "Contributions", "EntropyShares", "compute_shares", "contributions", "removal_order"]

HEAVY = 0.5  # an item with more of the weight is really left out: the rest would be a difference with cancellation
RISE_TOLERANCE = 1e-12  # relative change of the score up to which it is rounding
OUTSIDE_TOLERANCE = 1e-8  # squared part of an item outside the span of the others up to which it is rounding
ZERO_ENTROPY = 1e-12  # an entropy up to this is rounding, where the rank is 1


def contributions(
    samples: Any,
    kernel: Any = COSINE,
    *,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    leave_one_out: bool = True,
    rng: int = SEED,
) -> Contributions:
    """What each sample contributes to the score: its share of the entropy, and the score without it.

    The entropy log VS is a sum over the samples: Σ pᵢ cᵢ with cᵢ = −φᵢᵀ log ρ φᵢ, where ρ = Σ pᵢ φᵢφᵢᵀ and φᵢ is the
    sample in the space of the kernel. pᵢ cᵢ is its share, cᵢ its rarity. Besides, every sample is removed in turn, and
    the change of the score is computed exactly.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items, as for `vendimeter.score`.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    q : float or str
        The order, from 0 up to ``"inf"``.
    weights : array of shape (n,), optional
        Probabilities of the items; they sum to 1.
    counts : array of shape (n,), optional
        How often each item occurs.
    leave_one_out : bool
        Whether to compute `Contributions.leave_one_out`, which takes about half of the time.
    rng : int
        Seed of what is random in a kernel.

    Returns
    -------
    Contributions

    Notes
    -----
    Shares of other orders are those of the Tsallis entropy, pᵢ (1 − φᵢᵀ ρ^(q−1) φᵢ)/(q − 1), multiplied by one number
    so that they add up to log VS_q. They are never negative, and at q = 1 the two agree. For q < 1 only eigenvalues
    that count for the rank are in them (`Score.diagnostics` has the threshold). The higher the order, the less they
    differ; at q = ∞ they are in proportion to pᵢ times the part of φᵢ outside the eigenspace of the largest eigenvalue.

    Leaving out costs no eigensolve an item: an integral over log det(ρ − αφφᵀ + t)/det(ρ + t) needs matrix products
    only, and is right to rounding for every order (`vendimeter.analysis.decomposition.leave_one_out` has the
    derivation). Only an item with more than half of all weight is left out for real, and for orders beyond 2 one that
    holds nearly all of Σ λ^q. Without uniform weights, removing a heavy item that is like all others may change the
    score more than removing a rare one of little weight.

    Features of d columns take O(nd²) operations and memory for some blocks and d×d; nothing n×n is built. Kernels
    without features take the eigenvectors of the n×n matrix of distinct items, up to 8,192 of them (`TooLargeError`
    beyond); there the eigenvalue of an item with a weight below about 10⁻¹⁴ is lost in rounding, and its rarity says
    nothing. Arrays on a device are worked on there.

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023, for the entropy. Golub: Some modified matrix eigenvalue problems,
    SIAM Review 15, 1973, for eigenvalues after a change of rank one.

    Examples
    --------
    >>> import vendimeter as vm
    >>> found = vm.contributions(["red", "red", "red", "blue"], "match")
    >>> found.rarity.round(4)
    array([0.2877, 0.2877, 0.2877, 1.3863])
    >>> found.leave_one_out.round(4)
    array([ 0.1351,  0.1351,  0.1351, -0.7548])
    >>> found.rarest(1), found.redundant(2)
    (array([3]), array([0, 1]))
    """
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, rng=rng)
    return diversity.contributions(q=q, leave_one_out=leave_one_out)


def contributions_of(diversity: Diversity, *, q: Any, leave_one_out: Any) -> Contributions:
    """What each sample contributes to the score; see `contributions`."""
    order, leave_one_out = parse_order(q), check_flag(leave_one_out, "leave_one_out")
    similarity, shares, n = diversity.similarity, diversity.shares, diversity.count
    decomposition = diversity.decomposition()
    has_counts = diversity.weighting == "counts"
    removed_weights = np.where(shares > 0, 1 / n, 0.0) if has_counts else shares
    entropy_shares = EntropyShares(
        decomposition.solution, order, float(removed_weights[removed_weights > 0].min()), leave_one_out
    )
    with Progress("contributions") as bar:
        values, rarity, change = compute_shares(
            decomposition, entropy_shares, shares, removed_weights, bar.step
        )
    heaviest = int(removed_weights.argmax())
    if change is not None and removed_weights[heaviest] > HEAVY:
        change[heaviest] = _score_without(similarity, shares, heaviest, order) - entropy_shares.score
    return Contributions(
        score=score_of(
            decomposition.solution,
            order,
            n,
            similarity.kernel,
            "the eigenvectors tell what each item contributes",
        ),
        n=n,
        q=order,
        values=frozen(values),
        rarity=frozen(rarity),
        leave_one_out=None if change is None else frozen(change),
        mean_similarity=frozen(_mean_similarity(similarity, decomposition, shares)),
        weights=frozen(shares),
    )


@dataclass(frozen=True, repr=False, eq=False)
class Contributions(Result):
    """What each sample contributes; made by `vendimeter.contributions`.

    Attributes
    ----------
    score : Score
        The score of all samples, with its bounds.
    n : int
        How many items: the number of samples, or the sum of the counts.
    q : float
        The order.
    values : ndarray
        The share of each sample in the entropy, in order; from 0 up, and their sum is log(score). All are 0 where all
        samples are alike.
    rarity : ndarray
        The share for each unit of weight, −φᵀ log ρ φ at q = 1: how surprising the sample is. Its weighted mean is the
        entropy. A sample of no weight has one, too; it is infinite, for q ≤ 1, where the sample lies outside of what
        the others span.
    leave_one_out : ndarray or None
        By how much the score changes when a sample is removed and the weights of the others sum to 1 again: negative
        where it adds diversity, positive where it is redundant. With counts one copy is removed. NaN for the only
        sample, 0 for one without weight; None if it was not asked for.
    mean_similarity : ndarray
        How similar each sample is to all in the mean, itself among them.
    weights : ndarray
        The probability of each sample.
    """

    score: Score
    n: int
    q: float
    values: np.ndarray = field(repr=False)
    rarity: np.ndarray = field(repr=False)
    leave_one_out: np.ndarray | None = field(repr=False)
    mean_similarity: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)

    def redundant(self, k: int = 10) -> np.ndarray:
        """Positions of the k samples that are missed least: the score rises most, or falls least, without them.

        By `leave_one_out`, the rarity where that is equal; by the lowest rarity, where it was not computed. Samples of
        no weight are left out. Copies of one thing are each as redundant as the other, but not all of them together:
        after removing some, ask again, or take `vendimeter.duplicates`.

        Parameters
        ----------
        k : int
            How many; fewer where there are no more.
        """
        return self._removal_order(-1)[: whole_number(k, "k")]

    def rarest(self, k: int = 10) -> np.ndarray:
        """Positions of the k samples that are missed most: the score falls most without them; see `redundant`.

        Parameters
        ----------
        k : int
            How many; fewer where there are no more.
        """
        return self._removal_order(1)[: whole_number(k, "k")]

    def _removal_order(self, sign: int) -> np.ndarray:
        """`removal_order` of the samples with weight."""
        positive = np.flatnonzero(self.weights)
        change = None if self.leave_one_out is None else self.leave_one_out[positive]
        return positive[removal_order(self.rarity[positive], change, sign)]

    def summary(self) -> str:
        """The score, the rarest and the most redundant item, in a few sentences."""
        name = f"entropy{order_suffix(self.q, order_name)}"
        n_positive, total = int(np.count_nonzero(self.weights)), float(self.values.sum())
        text = effective_items(short_number(self.score), self.n)
        if not total:
            return f"{text}: there is no other, and none adds diversity."
        text += (
            f": an {name} of {short_number(total)}, {short_number(total / n_positive)} a sample in the mean."
        )
        low, high = int(self.redundant(1)[0]), int(self.rarest(1)[0])
        if self.leave_one_out is None:
            return (
                f"{text} Item {high} is the rarest ({short_number(self.rarity[high])}), item {low} the least rare "
                f"({short_number(self.rarity[low])})."
            )
        change = self.leave_one_out[self.weights > 0]
        if np.ptp(change) <= RISE_TOLERANCE * self.score:
            return f"{text} Without any one of them the score {_change_in_words(self.leave_one_out[high])}."
        rising = int(np.count_nonzero(self.leave_one_out > RISE_TOLERANCE * self.score))
        return (
            f"{text} Without item {high} the score {_change_in_words(self.leave_one_out[high])}, the most of all; "
            f"without item {low} it {_change_in_words(self.leave_one_out[low])}. It rises without "
            f"any one of {rising:,} of them."
        )

    def _columns(self) -> dict[str, Any]:
        columns = {"share": self.values, "rarity": self.rarity}
        if self.leave_one_out is not None:
            columns["leave_one_out"] = self.leave_one_out
        return columns | {"mean_similarity": self.mean_similarity, "weight": self.weights}

    def plot(self, ax: Any = None, *, names: Any = None, k: int = 3) -> Display:
        """Draw the shares in order of their size; see `vendimeter.plots.contributions`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        names : list, optional
            A name for each sample; the rarest and the most redundant are listed by it.
        k : int
            How many of each are pointed out.
        """
        from vendimeter.plots.bars import plot_contributions

        return plot_contributions(self, ax, names=names, k=k)


def _change_in_words(change: float) -> str:
    """A change of the score as a verb with its amount."""
    return f"{'rises' if change > 0 else 'falls'} by {abs(change):.3g}" if change else "is the same"


def removal_order(rarity: np.ndarray, change: np.ndarray | None, sign: int) -> np.ndarray:
    """Positions of samples from the rarest on (sign 1) or from the most redundant on (−1); the sort is stable."""
    return np.lexsort((-sign * rarity, -sign * rarity if change is None else sign * change))


# ---------------------------------------------------------------------------------------------------------- computation


class EntropyShares:
    """The contributions of items to the entropy of one collection, computed block by block: share, rarity, removal.

    Every entropy here is a sum Σ λ g(λ) over the eigenvalues, and λ_a = Σ_i p_i y_ia² for the coordinates y of the
    items in the eigenbasis, so that it is also a sum over the items, of p_i Σ_a y_ia² g(λ_a). For q = 1, g = −log λ,
    and an item's sum is −φᵀ log ρ φ. For other orders it is that of Tsallis, g = (1 − λ^(q−1))/(q − 1), whose shares
    are multiplied by one number so that they add up to log VS_q. At q = ∞ this would tell no items apart, and g is 0
    for the largest eigenvalue and 1 for all others (1 for all, where all are the largest).

    Parameters
    ----------
    solution : Solution
        All eigenvalues of the collection.
    q : float
        The order.
    min_weight : float
        The least weight above 0 of an item.
    leave_one_out : bool
        Whether to compute the change of the score when an item is removed.
    """

    def __init__(self, solution: Solution, q: float, min_weight: float, leave_one_out: bool):
        spectrum = solution.spectrum
        assert isinstance(spectrum, Eigenvalues)
        eigenvalues, threshold = spectrum.eigenvalues, spectrum.rank_threshold
        self.q, self.score = q, spectrum.score(q).value
        self.rank = max(1, int(np.count_nonzero(eigenvalues > threshold)))
        # For orders below 1 eigenvalues that are rounding would count, from 1 up they do not.
        self._n_used = self.rank if q < 1 else int(np.count_nonzero(eigenvalues > 0))
        used = eigenvalues[: self._n_used]
        self._total = float(used.sum())
        used, threshold = used / self._total, threshold / self._total
        self._surprise, self._surprise_at_zero = _surprise_values(used, q, threshold)
        self.entropy, unscaled = math.log(self.score), float(used @ self._surprise)
        all_alike = self.rank == 1 and self.entropy < ZERO_ENTROPY
        self._scale = 0.0 if all_alike or not unscaled > 0 else self.entropy / unscaled
        self._removal: Removal | None = removal(used, q, threshold, min_weight) if leave_one_out else None

    @property
    def removes(self) -> bool:
        """Whether the change of the score when an item is removed is computed."""
        return self._removal is not None

    @property
    def width(self) -> int:
        """Numbers in memory for an item, besides its coordinates."""
        return self._n_used + (2 if self._removal is None else self._removal.width)

    def __call__(
        self, coordinates: Any, shares: np.ndarray, removed_weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The shares of the entropy, the rarities, and the changes of the score, of some items, on the host.

        Parameters
        ----------
        coordinates : array, shape (items, r)
            Of the items in the eigenbasis.
        shares : ndarray, shape (items,)
            Their probabilities.
        removed_weights : ndarray, shape (items,)
            How much of its probability removing an item takes away.
        """
        squares = coordinates * coordinates
        used = squares if squares.shape[1] == self._n_used else squares[:, : self._n_used]
        rarity = to_host(used @ move(self._surprise, used)) * (self._scale / self._total)
        weightless = np.flatnonzero(shares == 0)
        if len(weightless):
            rarity = np.where(shares == 0, self._rarity_without_weight(squares), rarity)
        rarity = np.maximum(rarity, 0.0)
        values = np.where(shares > 0, shares * np.where(shares > 0, rarity, 0.0), 0.0)
        if self._removal is None:
            return values, rarity, None
        change = self.score * np.expm1(self._removal(used, removed_weights / self._total))
        return values, rarity, np.rint(change) if self.q == 0 else change

    def _rarity_without_weight(self, squares: Any) -> np.ndarray:
        """The rarity of items without weight, which may lie outside the span of the others."""
        inside_squares = squares[:, : self.rank]
        outside = np.maximum(1 - to_host(namespace(inside_squares).sum(inside_squares, axis=1)), 0.0)
        inside_rarity = (
            to_host(inside_squares @ move(self._surprise[: self.rank], inside_squares)) * self._scale
        )
        if self._scale == 0:
            outside_rarity = math.inf if self.q <= 1 else 0.0
            return np.where(outside > OUTSIDE_TOLERANCE, outside_rarity, 0.0)
        if math.isinf(self._surprise_at_zero):
            return np.where(outside > OUTSIDE_TOLERANCE, math.inf, inside_rarity)
        return inside_rarity + outside * self._surprise_at_zero * self._scale


def _surprise_values(values: np.ndarray, q: float, threshold: float) -> tuple[np.ndarray, float]:
    """The function g of `EntropyShares` at the eigenvalues, and at 0."""
    if math.isinf(q):
        others = (values < values[0] - threshold).astype(np.float64)
        return others if others.any() else np.ones_like(values), 1.0
    logs = np.log(values)
    if q == 1:
        return -logs, math.inf
    return -np.expm1((q - 1) * logs) / (q - 1), 1 / (q - 1) if q > 1 else math.inf


def compute_shares(
    decomposition: Decomposition,
    entropy_shares: EntropyShares,
    shares: np.ndarray,
    removed_weights: np.ndarray,
    step: Callable[[float], None] = lambda done: None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Shares of the entropy, rarities and changes of the score of all items."""
    values, rarity = np.empty(decomposition.n), np.empty(decomposition.n)
    change = np.empty(decomposition.n) if entropy_shares.removes else None
    blocks = decomposition.parts(entropy_shares.width)

    def work(thread_blocks: list[slice], step: Callable[[float], None] | None = None) -> None:
        for i, block in enumerate(thread_blocks):
            if step is not None:
                step(i / len(thread_blocks))
            values[block], rarity[block], changes = entropy_shares(
                decomposition.coordinates(block), shares[block], removed_weights[block]
            )
            if change is not None:
                change[block] = changes

    # Half of the work is element by element, which BLAS does not distribute over its threads.
    with workers(len(blocks) if decomposition.like is None else 1) as count:
        first, *others = (blocks[i::count] for i in range(count))
        run(
            [
                functools.partial(work, first, step),
                *(functools.partial(work, thread_blocks) for thread_blocks in others),
            ]
        )
    return values, rarity, change


def _score_without(similarity: Similarity, shares: np.ndarray, item: int, q: float) -> float:
    """The score of all other items by their own eigenvalues; NaN where there are none."""
    other_shares = shares.copy()
    other_shares[item] = 0.0
    if not other_shares.any():
        return float("nan")
    others, positions = present(similarity, other_shares)
    decomposition = decompose(others, other_shares[positions] / other_shares[positions].sum())
    return decomposition.solution.spectrum.score(q).value


def _mean_similarity(similarity: Similarity, decomposition: Decomposition, shares: np.ndarray) -> np.ndarray:
    """K p: directly from features, else from the eigenvectors, so that no similarity is computed twice."""
    if isinstance(similarity, Features):
        return row_sums(similarity, shares, shares)
    weighted_coordinates = np.zeros(len(decomposition.values))
    for block in decomposition.parts():
        weighted_coordinates += to_host(
            move(shares[block], decomposition.like) @ decomposition.coordinates(block)
        )
    products = [
        decomposition.coordinates(block) @ move(weighted_coordinates, decomposition.like)
        for block in decomposition.parts()
    ]
    return np.concatenate([to_host(product) for product in products])
