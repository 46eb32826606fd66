"""What each sample contributes to the score: contributions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis._shares import Shares
from vendimeter.data.devices import move, to_host
from vendimeter.intake import collected, measured
from vendimeter.options import check_flag, whole_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import Result, frozen, score_of
from vendimeter.results.score import Score, number, order_name
from vendimeter.similarity import Features, Similarity
from vendimeter.solvers.eigenvectors import Decomposition, decompose
from vendimeter.solvers.sums import present, row_sums
from vendimeter.spectrum import parse_order
from vendimeter.threads import run, workers

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["HEAVY", "Contributions", "contributions", "in_order", "shares_of"]

HEAVY = 0.5  # an item with more of the weight is left out for real: what is left would be a small difference
RISE = 1e-12  # by which part of itself the score has to change for that to be more than rounding


@collected
def contributions(
    samples: Any,
    kernel: Any = "cosine",
    *,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    leave_one_out: bool = True,
    rng: int = 0,
) -> Contributions:
    """What each sample contributes to the score: its share of the entropy, and the score without it.

    The entropy log VS is a sum over the samples: Σ pᵢ cᵢ with cᵢ = −φᵢᵀ log ρ φᵢ, where ρ = Σ pᵢ φᵢφᵢᵀ and φᵢ is the
    sample in the space of the kernel. pᵢ cᵢ is its share, cᵢ its rarity. Besides, every sample is removed in turn, and
    the change of the score is computed exactly.

    Parameters
    ----------
    samples : array, sparse array, list, table or Collection
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
    only, and is right to rounding for every order (`vendimeter.analysis._leave_one_out` has the derivation). Only an
    item with more than half of all weight is left out for real, and for orders beyond 2 one that holds nearly all of
    Σ λ^q. Without uniform weights, removing a heavy item that is like all others may change the score more than
    removing a rare one of little weight.

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
    order = parse_order(q)
    leave_one_out = check_flag(leave_one_out, "leave_one_out")
    similarity, shares, n = measured(samples, kernel, weights, counts, rng)
    uniform = weights is None and counts is None
    found = decompose(similarity, None if uniform else shares)
    taken = shares if counts is None else np.where(shares > 0, 1 / n, 0.0)
    parts = Shares(found.solution, order, float(taken[taken > 0].min()), leave_one_out)
    with Progress("contributions") as bar:
        values, rarity, change = shares_of(found, parts, shares, taken, bar.step)
    heavy = int(taken.argmax())
    if change is not None and taken[heavy] > HEAVY:
        change[heavy] = _without(similarity, shares, heavy, order) - parts.score
    return Contributions(
        score=score_of(
            found.solution, order, n, similarity.kernel, "the eigenvectors tell what each item contributes"
        ),
        n=n,
        q=order,
        values=frozen(values),
        rarity=frozen(rarity),
        leave_one_out=None if change is None else frozen(change),
        mean_similarity=frozen(_mean_similarity(similarity, found, shares)),
        weights=frozen(shares),
    )


def shares_of(
    found: Decomposition,
    parts: Shares,
    shares: np.ndarray,
    taken: np.ndarray,
    step: Callable[[float], None] = lambda done: None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Shares of the entropy, rarities and changes of the score, of all items."""
    values, rarity = np.empty(found.n), np.empty(found.n)
    change = np.empty(found.n) if parts.removes else None
    blocks = found.parts(parts.width)

    def work(own: list[slice], step: Callable[[float], None] | None = None) -> None:
        for i, part in enumerate(own):
            if step is not None:
                step(i / len(own))
            values[part], rarity[part], changes = parts(found.coordinates(part), shares[part], taken[part])
            if change is not None:
                change[part] = changes

    # Half of the work is element by element, which BLAS's threads would not share.
    with workers(len(blocks) if found.like is None else 1) as count:
        first, *others = (blocks[i::count] for i in range(count))
        run([functools.partial(work, first, step), *(functools.partial(work, own) for own in others)])
    return values, rarity, change


def _without(similarity: Similarity, shares: np.ndarray, item: int, q: float) -> float:
    """The score of all others, by their own eigenvalues; not a number where there are none."""
    lighter = shares.copy()
    lighter[item] = 0.0
    if not lighter.any():
        return float("nan")
    others, places = present(similarity, lighter)
    found = decompose(others, lighter[places] / lighter[places].sum())
    return found.solution.spectrum.score(q).value


def _mean_similarity(similarity: Similarity, found: Decomposition, shares: np.ndarray) -> np.ndarray:
    """K p: from features directly, else by the eigenvectors, so that no similarity is computed twice."""
    if isinstance(similarity, Features):
        return row_sums(similarity, shares, shares)
    mean = np.zeros(len(found.values))
    for part in found.parts():
        mean += to_host(move(shares[part], found.like) @ found.coordinates(part))
    products = [found.coordinates(part) @ move(mean, found.like) for part in found.parts()]
    return np.concatenate([to_host(product) for product in products])


def in_order(rarity: np.ndarray, change: np.ndarray | None, sign: int) -> np.ndarray:
    """Positions of samples from the rarest on (sign 1), or from the most redundant on (−1); of equal ones in order."""
    return np.lexsort((-sign * rarity, -sign * rarity if change is None else sign * change))


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
        return self._ordered(-1)[: whole_number(k, "k")]

    def rarest(self, k: int = 10) -> np.ndarray:
        """Positions of the k samples that are missed most: the score falls most without them; see `redundant`.

        Parameters
        ----------
        k : int
            How many; fewer where there are no more.
        """
        return self._ordered(1)[: whole_number(k, "k")]

    def _ordered(self, sign: int) -> np.ndarray:
        there = np.flatnonzero(self.weights)
        change = None if self.leave_one_out is None else self.leave_one_out[there]
        return there[in_order(self.rarity[there], change, sign)]

    def summary(self) -> str:
        """What was found, in a few sentences."""
        name = "entropy" if self.q == 1 else f"entropy of order {order_name(self.q)}"
        there, total = int(np.count_nonzero(self.weights)), float(self.values.sum())
        items = f"item{'' if number(self.score) == '1' else 's'} of {self.n:,}"
        text = f"{number(self.score)} effectively different {items}"
        if not total:
            return f"{text}: there is no other, and none adds diversity."
        text += f": an {name} of {number(total)}, {number(total / there)} a sample in the mean."
        low, high = int(self.redundant(1)[0]), int(self.rarest(1)[0])
        if self.leave_one_out is None:
            return (
                f"{text} Item {high} is the rarest ({number(self.rarity[high])}), item {low} the least rare "
                f"({number(self.rarity[low])})."
            )
        change = self.leave_one_out[self.weights > 0]
        if np.ptp(change) <= RISE * self.score:
            return f"{text} Without any one of them the score {_moves(self.leave_one_out[high])}."
        rising = int(np.count_nonzero(self.leave_one_out > RISE * self.score))
        return (
            f"{text} Without item {high} the score {_moves(self.leave_one_out[high])}, the most of all; without item "
            f"{low} it {_moves(self.leave_one_out[low])}. It rises without any one of {rising:,} of them."
        )

    def _columns(self) -> dict[str, Any]:
        found = {"share": self.values, "rarity": self.rarity}
        if self.leave_one_out is not None:
            found["leave_one_out"] = self.leave_one_out
        return found | {"mean_similarity": self.mean_similarity, "weight": self.weights}

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
        from vendimeter.plots.contributions import plot_contributions

        return plot_contributions(self, ax, names=names, k=k)


def _moves(change: float) -> str:
    return f"{'rises' if change > 0 else 'falls'} by {abs(change):.3g}" if change else "is the same"
