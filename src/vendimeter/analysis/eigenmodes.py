"""The leading modes of a collection: eigenvectors of its similarities, with the items at both ends of each."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vendimeter.analysis.orderings import ordering
from vendimeter.data.groups import Grouping
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.options import COSINE, SEED, as_number, whole_number
from vendimeter.present.plain import plain
from vendimeter.present.text import printable
from vendimeter.results.base import Result, frozen

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["Ends", "Modes", "modes"]


SUMMARY_COUNT = 3  # modes, and labels of a mode, that a summary names
DEGENERATE_GAP = 1e-6  # relative difference below which eigenvalues count as equal


class Ends(NamedTuple):
    """Positions of the items with the highest and with the lowest loadings of a mode, the utmost first."""

    high: np.ndarray
    low: np.ndarray


@dataclass(frozen=True, repr=False, eq=False)
class Modes(Result):
    """The leading modes of a collection; from `vendimeter.modes`. Modes are counted from 0.

    Attributes
    ----------
    diversity : Diversity
        What they are the modes of.
    shares : ndarray, shape (k,)
        The eigenvalues, which sum to 1 over all modes, from large to small.
    loadings : ndarray, shape (items, k)
        The coordinates y of the items along the modes; the squares of a row sum to 1 over all modes. The loading of
        largest size is positive in every mode.
    residuals : ndarray, shape (k,)
        Bounds on ‖ρu − λu‖: how far each is from an eigenvector, rounding among it.
    degenerate : ndarray of bool, shape (k,)
        Whether the eigenvalue cannot be told from the one before or after, so that the vector is arbitrary within the
        space that they span.
    composition : ndarray, shape (k, labels), or None
        Which labels a mode is made of: the share of each in Σ p y². A row sums to 1; an item of several labels is
        divided among them, and one of none is in none.
    label_loadings : ndarray, shape (k, labels), or None
        The mean loading of the items of each label: at which end it lies.
    shown : int
        How many exemplars at each end frames, dicts and pictures show.
    method : str
        "gram" (all eigenvectors of the d×d matrix of features), "eigh" (of the n×n matrix) or "krylov" (leading ones).
    settled : bool
        Whether the residuals of "krylov" got as small as they were meant to.

    Examples
    --------
    >>> import vendimeter as vm
    >>> found = vm.modes(["a", "a", "b"], "match", by=["x", "y", "y"])
    >>> print(found)
    2 leading modes hold 100% of the spectrum of 3 items: 66.7%, 33.3%. Mode 0: 50% x, 50% y. Mode 1: 100% y.
    """

    diversity: Diversity = field(repr=False)
    shares: np.ndarray = field(repr=False)
    loadings: np.ndarray = field(repr=False)
    residuals: np.ndarray = field(repr=False)
    degenerate: np.ndarray = field(repr=False)
    composition: np.ndarray | None = field(repr=False)
    label_loadings: np.ndarray | None = field(repr=False)
    shown: int = field(repr=False)
    method: str
    settled: bool

    def __len__(self) -> int:
        return len(self.shares)

    @property
    def n(self) -> int:
        """How many items there are; with counts, their sum."""
        return self.diversity.count

    @property
    def weights(self) -> np.ndarray:
        """The probabilities of the items."""
        return frozen(self.diversity.shares)

    @property
    def labels(self) -> list[Hashable] | None:
        """The labels, in order of first appearance; None where there are none."""
        return None if self.diversity.groups is None else list(self.diversity.groups.labels)

    @property
    def kernel(self) -> str:
        """The kernel with its fitted parameters."""
        return repr(self.diversity.similarity.kernel)

    @property
    def vectors(self) -> np.ndarray:
        """The eigenvectors u of ρ as columns of length 1, of shape (items, k): √(p/λ) times the loadings."""
        return np.sqrt(self.weights)[:, None] * self.loadings / np.sqrt(self.shares)

    @property
    def one_sided(self) -> np.ndarray:
        """Of each mode, whether no loading is below 0 but by rounding: its low end has nothing of it."""
        return self.loadings.min(axis=0) >= -1e-9

    def exemplars(self, mode: int, count: int | None = None) -> Ends:
        """Positions of the items at the high and at the low end of a mode, the utmost first; none is at both.

        Parameters
        ----------
        mode : int
            From 0.
        count : int, optional
            How many at each end; `shown` by default. With fewer than twice as many items, half of them.

        Examples
        --------
        >>> import vendimeter as vm
        >>> found = vm.modes([[1.0, 0.1], [1.0, -0.1], [1.0, 0.5]])
        >>> found.exemplars(1, 1)
        Ends(high=array([2]), low=array([1]))
        """
        mode_index = self._check_mode(mode)
        count = self.shown if count is None else whole_number(count, "count")
        present = np.flatnonzero(self.weights)
        order = present[np.argsort(-self.loadings[present, mode_index], kind="stable")]
        half = (len(order) + 1) // 2
        low = order[max(half, len(order) - count) :][::-1]
        return Ends(order[: min(half, count)], low)

    def _check_mode(self, mode: Any) -> int:
        number = as_number(mode)
        if not (0 <= number < len(self) and number == int(number)):
            raise InputError(f"mode={brief(mode)}; expected a whole number from 0 to {len(self) - 1}.")
        return int(number)

    @cached_property
    def order(self) -> np.ndarray:
        """Positions of the items such that like ones are beside each other: the leaves of a tree of their loadings.

        Average linkage with the best order of the leaves; of more than 1,000 items a random 1,000 make the tree, and
        the others go beside those they are nearest to.
        """
        return frozen(self.ordering("modes"))

    def ordering(self, order: Any = "modes") -> np.ndarray:
        """Positions of the items in some order.

        Parameters
        ----------
        order : str or array
            "modes" (see `order`), "lexicographic" (by the items themselves, as the paper sorts molecules by SMILES),
            "labels" (label by label, within each by modes), "given", or positions.
        """
        if isinstance(order, str) and order == "modes" and "order" in self.__dict__:
            return self.order
        return ordering(
            order,
            len(self.weights),
            coordinates=lambda: self.loadings,
            items=self.diversity.samples,
            groups=self.diversity.groups,
            rng=self.diversity.rng,
        )

    # ------------------------------------------------------------------------------------------------- in words

    def summary(self) -> str:
        """The modes in a few sentences."""
        shares = ", ".join(f"{share:.1%}" for share in self.shares[:SUMMARY_COUNT])
        shares += ", …" if len(self) > SUMMARY_COUNT else "."
        count = f"{len(self)} leading modes hold" if len(self) > 1 else "1 leading mode holds"
        items = f"{self.n:,} items" if self.n > 1 else "1 item"
        percent = 100 * min(float(self.shares.sum()), 1.0)
        sentences = [f"{count} {percent:.3g}% of the spectrum of {items}: {shares}"]
        if self.degenerate.any():
            degenerate = ", ".join(map(str, np.flatnonzero(self.degenerate)[:6]))
            more = ", …" if np.count_nonzero(self.degenerate) > 6 else ""
            sentences.append(
                f"Eigenvalues of modes {degenerate}{more} are as good as equal to a neighbour's: their vectors are "
                "arbitrary within the space they span."
            )
        if not self.settled:
            sentences.append(f"The vectors have not settled: residuals are up to {self.residuals.max():.1e}.")
        if self.composition is not None:
            sentences.extend(
                f"Mode {a}: {self._describe_labels(a)}." for a in range(min(SUMMARY_COUNT, len(self)))
            )
        return " ".join(sentences)

    def _describe_labels(self, mode: int) -> str:
        """The labels with the largest shares in a mode, with the end at which each lies if there are two ends."""
        assert self.composition is not None
        assert self.label_loadings is not None
        assert self.labels is not None
        shares, means = self.composition[mode], self.label_loadings[mode]
        top_labels = np.argsort(-shares, kind="stable")[:SUMMARY_COUNT]
        two_ended = not self.one_sided[mode]
        descriptions = []
        for label in top_labels[shares[top_labels] >= 0.005]:
            end = (" (high)" if means[label] > 0 else " (low)") if two_ended else ""
            descriptions.append(f"{shares[label]:.0%} {printable(self.labels[label], 40)}{end}")
        return ", ".join(descriptions)

    def __repr__(self) -> str:
        listed = ", ".join(f"{share:.4g}" for share in self.shares[:SUMMARY_COUNT]) + (
            ", …" if len(self) > SUMMARY_COUNT else ""
        )
        return f"Modes({len(self)} of {self.n:,} items, shares {listed}; method={self.method!r})"

    def _columns(self) -> dict[str, Any]:
        ends = [self.exemplars(a) for a in range(len(self))]
        columns: dict[str, Any] = {
            "mode": list(range(len(self))),
            "share": self.shares.tolist(),
            "cumulative": np.cumsum(self.shares).tolist(),
            "residual": self.residuals.tolist(),
            "degenerate": self.degenerate.tolist(),
            "high": [end.high.tolist() for end in ends],
            "low": [end.low.tolist() for end in ends],
        }
        if self.labels is not None:
            columns["labels"] = [self._describe_labels(a) for a in range(len(self))]
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Plain values ready for JSON: all but the loadings and the items."""
        columns = self._columns()
        named = {} if self.labels is None else {"labels": plain(self.labels)}
        parts = {} if self.composition is None else {"composition": plain(self.composition)}
        return {
            "n": self.n,
            "kernel": self.kernel,
            "method": self.method,
            "settled": self.settled,
            **named,
            **parts,
            "modes": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        }

    # --------------------------------------------------------------------------------------------- in pictures

    def plot(self, ax: Any = None) -> Display:
        """Bars of the shares of the modes; see `vendimeter.plots.modes`."""
        from vendimeter.plots.mode_ends import modes

        return modes(self, ax=ax)

    def plot_exemplars(
        self,
        items: Any = None,
        *,
        modes: int = 5,
        count: int | None = None,
        kind: str | None = None,
        ax: Any = None,
    ) -> Display:
        """The items at both ends of each mode, a row a mode; see `vendimeter.plots.exemplars`."""
        from vendimeter.plots.mode_ends import exemplars

        return exemplars(self, items, modes=modes, count=count, kind=kind, ax=ax)

    def plot_matrix(self, ax: Any = None, *, order: Any = "modes", most: int = 1000) -> Display:
        """The matrix of similarities in an order that makes it readable; see `vendimeter.plots.kernel_matrix`."""
        from vendimeter.plots.matrices import matrix_of

        return matrix_of(self.diversity, self.ordering(order), named=order, most=most, ax=ax)


def modes(
    samples: Any,
    kernel: Any = COSINE,
    *,
    k: int = 10,
    exemplars: int = 8,
    by: Any = None,
    weights: Any = None,
    counts: Any = None,
    rng: int = SEED,
) -> Modes:
    """The leading modes of a collection: eigenvectors of its similarities, their shares, and the items at their ends.

    The score counts how many eigenvalues of ρ = diag(√p) K diag(√p) matter; this says what they stand for. Each
    eigenvector is a direction in which items vary, its eigenvalue the share of the whole that lies in it, and the items
    with the highest and the lowest entries show what the direction is about.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items, as for `vendimeter.score`.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    k : int
        How many modes; fewer are given where fewer eigenvalues are above rounding.
    exemplars : int
        How many items at each end of a mode frames, dicts and pictures show.
    by : list, array, or name of a column, optional
        One label (or set of labels) an item, as for `vendimeter.score_groups`: then the result says which labels each
        mode is made of. The labels of a collection are taken without it.
    weights : array of shape (n,), optional
        Probabilities of the items; they sum to 1.
    counts : array of shape (n,), optional
        How often each item occurs.
    rng : int
        Seed of everything random.

    Returns
    -------
    Modes
        With `shares`, `loadings`, `exemplars(mode)`, `order`, `composition`, `plot()`, `plot_exemplars()` and
        `plot_matrix()`.

    Notes
    -----
    ρ = Σ λ_a v_a v_aᵀ, and the loading of item i in mode a is y_ia = v_aᵀφ_i = √(λ_a/p_i) u_ia, for eigenvectors u of
    ρ. y_ia² is the share of the item that lies in the mode: Σ_a y_ia² = 1 over all modes, and Σ_i p_i y_ia² = λ_a. An
    eigenvector has no sign of its own; here the loading of largest size is positive. Where no similarity is negative,
    the entries of the first eigenvector have one sign: its high end are the items that are similar to most others, its
    low end those that are similar to few. The other modes part the items along different dimensions.

    Vectors of eigenvalues that are equal, or nearer than 10⁻⁶, are arbitrary within the space they span; `degenerate`
    marks them.

    Features of up to 1,024 columns, and up to 1,024 distinct items, have all their eigenvectors computed. Beyond, a
    block Krylov space grows until the residuals ‖ρu − λu‖ are below 10⁻⁸ of the largest eigenvalue (`residuals`): some
    ten products with ρ, through the features where there are any. Else the n×n matrix is held, in float32 from 11,585
    items on; from 32,768 on its blocks are computed again for each of about five products, until 10⁻⁶. A kernel that
    drops negative eigenvalues needs all of them, and takes up to 8,192 items.

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023, the figure of cats along the top eigenvectors of two kernels, with
    the four images of highest and lowest entries each.

    Examples
    --------
    >>> import vendimeter as vm
    >>> words = ["ape", "ape", "ape", "bee", "bee", "cat"]
    >>> found = vm.modes(words, "match")
    >>> found.shares.round(4)
    array([0.5   , 0.3333, 0.1667])
    >>> [words[i] for i in found.exemplars(1, 2).high]
    ['bee', 'bee']
    """
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, by=by, rng=rng)
    return diversity.modes(k=k, exemplars=exemplars)


def modes_of(diversity: Diversity, *, k: Any, exemplars: Any) -> Modes:
    """The leading modes of a collection; see `modes`."""
    k, exemplars = whole_number(k, "k"), whole_number(exemplars, "exemplars")
    groups, shares = diversity.groups, diversity.shares
    eigen = diversity.eigenvectors(k)
    count = min(k, len(eigen.values))
    loadings = eigen.coordinates[:, :count]
    peaks = loadings[np.abs(loadings).argmax(axis=0), np.arange(count)]
    loadings = loadings * np.where(peaks < 0, -1.0, 1.0)
    composition = label_loadings = None
    if groups is not None:
        composition, label_loadings = map(frozen, _label_composition(groups, loadings, shares))
    return Modes(
        diversity=diversity,
        shares=frozen(eigen.values[:count]),
        loadings=frozen(loadings),
        residuals=frozen(eigen.residuals[:count]),
        degenerate=frozen(_degenerate(eigen.values, eigen.residuals)[:count]),
        composition=composition,
        label_loadings=label_loadings,
        shown=exemplars,
        method=eigen.method,
        settled=eigen.settled,
    )


def _degenerate(values: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Mask of eigenvalues that cannot be told from a neighbour, so that their vectors are arbitrary in a subspace."""
    near = values[:-1] - values[1:] <= np.maximum(
        DEGENERATE_GAP * values[:-1], residuals[:-1] + residuals[1:]
    )
    return np.r_[False, near] | np.r_[near, False]


def _label_composition(
    groups: Grouping, loadings: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The share of each label in each mode, and the mean loading of each label; both (modes, labels)."""
    count, items = len(groups.labels), groups.items
    entry_labels = np.repeat(np.arange(count), np.diff(groups.starts))
    # An item of several labels is divided among them.
    label_counts = np.bincount(items, minlength=len(shares))[items]
    item_weights = shares[items]
    label_weights = np.bincount(entry_labels, item_weights, minlength=count)
    composition, mean_loadings = np.empty((loadings.shape[1], count)), np.empty((loadings.shape[1], count))
    for a, column in enumerate(loadings.T):
        mode_share = float(shares @ column**2)
        parts = item_weights * column[items] ** 2 / label_counts
        composition[a] = np.bincount(entry_labels, parts, minlength=count) / mode_share
        with np.errstate(invalid="ignore"):
            sums = np.bincount(entry_labels, item_weights * column[items], minlength=count)
            mean_loadings[a] = sums / label_weights
    return composition, mean_loadings
