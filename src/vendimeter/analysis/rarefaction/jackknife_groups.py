"""A collection dealt at random into groups, and the spectra of unions of the groups and of random subsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from vendimeter.data.devices import namespace
from vendimeter.data.groups import Grouping
from vendimeter.errors import InputError, TooLargeError
from vendimeter.similarity import Features, Similarity
from vendimeter.solvers import dense
from vendimeter.solvers.batched import SMALL
from vendimeter.solvers.eigenvectors import SPARSE_WIDTH
from vendimeter.solvers.gram import GramSum
from vendimeter.solvers.groups import materialize_for_subsets, solve_groups
from vendimeter.solvers.plan import EXACT_SIDE, sparse_shape
from vendimeter.spectrum import UNIT

__all__ = [
    "Split",
    "Subset",
    "SubsetSpectrum",
    "deal_groups",
    "draw_subset",
    "is_fragmented",
    "solve_subsets",
]

KEPT_BYTES = 512 << 20  # of the sums of all groups; beyond, a group is read again when it is needed
STACK_BYTES = 32 << 20  # of matrices whose eigenvalues are found together
MOST_COPIES = 10**9  # the largest sum of counts that random numbers are drawn for


@dataclass(frozen=True)
class Subset:
    """Some items of a collection: their positions, and the number of copies of each, or None for one of each."""

    items: np.ndarray
    counts: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Number of items, copies counted."""
        return len(self.items) if self.counts is None else int(self.counts.sum())


@dataclass(frozen=True)
class SubsetSpectrum:
    """Eigenvalues of ρ from large to small, none negative, and a bound on their error."""

    eigenvalues: np.ndarray
    error: float


class Split:
    """A collection divided into groups, and the spectra of unions of groups and of random subsets.

    Where features are narrower than the items are many, they are read once: each group has its d×d sum Σ φφᵀ, and those
    of unions are sums and differences of them. All other unions are scored from their similarities.

    Parameters
    ----------
    similarity : Similarity
        Of all items.
    groups : list of Subset
        The groups, as `deal_groups` makes them.

    Attributes
    ----------
    sizes : ndarray
        Items in each group, copies counted.
    """

    def __init__(self, similarity: Similarity, groups: list[Subset]):
        self.groups = groups
        self.sizes = np.array([group.size for group in groups])
        positions = np.unique(np.concatenate([group.items for group in groups]))
        width = similarity.width if isinstance(similarity, Features) else 0
        sparse = isinstance(similarity, Features) and similarity.sparse
        small_components = is_fragmented(similarity, positions)
        self._uses_features = (
            0 < width <= min(len(positions), SPARSE_WIDTH if sparse else EXACT_SIDE) and not small_components
        )
        self._sums: dict[int, GramSum] = {}
        self._keeps_sums = len(groups) * 8 * width**2 <= KEPT_BYTES
        if self._uses_features or small_components:
            self._similarity = similarity
            return
        if len(positions) > EXACT_SIDE:
            raise TooLargeError(
                f"this needs the eigenvalues of {len(positions)}×{len(positions)} similarity matrices, and the limit "
                f"is {EXACT_SIDE}×{EXACT_SIDE}; expected fewer items, or a kernel with at most {EXACT_SIDE} features. "
                "Take a random sample."
            )
        if len(positions) < similarity.n:
            similarity = similarity.take(positions)
            self.groups = [Subset(np.searchsorted(positions, group.items), group.counts) for group in groups]
        self._similarity = materialize_for_subsets(similarity)

    def spectra(self, unions: Sequence[np.ndarray]) -> Iterator[SubsetSpectrum]:
        """The eigenvalues of each union, which is an array of positions of groups."""
        if not self._uses_features:
            return solve_subsets(
                self._similarity, (union_of([self.groups[j] for j in union]) for union in unions)
            )
        return self._solve_in_batches(map(self._union_sum, unions))

    def subset_spectra(
        self, sizes: Sequence[int], repeats: int, rng: np.random.Generator
    ) -> Iterator[list[SubsetSpectrum]]:
        """The eigenvalues of random subsets of these sizes, from small to large, each without replacement.

        A subset is a union of groups, in an order that is random for every repeat, and a part of the next group: as
        random as any, and most of its sums are known already. The subsets of one repeat are nested, which makes for a
        smooth curve, and the smallest ones of different repeats lie in different groups.
        """
        first_groups = rng.permutation(len(self.groups))
        chains = [self._chain(sizes, int(first_groups[r % len(first_groups)]), rng) for r in range(repeats)]
        for i, size in enumerate(sizes):
            links = [chain[i] for chain in chains]
            if self._uses_features and size >= self._total_sum.width:
                yield list(self._solve_in_batches(self._link_sum(union, partial) for union, partial in links))
            else:
                subsets = (
                    union_of([*(self.groups[j] for j in union), *([partial] if partial else [])])
                    for union, partial in links
                )
                yield list(solve_subsets(self._similarity, subsets))

    def _chain(
        self, sizes: Sequence[int], first_group: int, rng: np.random.Generator
    ) -> list[tuple[np.ndarray, Subset | None]]:
        """Nested subsets, one for each size: the positions of whole groups, and a part of the next group."""
        others = rng.permutation(np.delete(np.arange(len(self.groups)), first_group))
        order = np.concatenate([[first_group], others])
        ends = np.concatenate([[0], np.cumsum(self.sizes[order])])
        links: list[tuple[np.ndarray, Subset | None]] = []
        last_n_whole, partial = -1, None
        for size in reversed(sizes):
            n_whole = int(np.searchsorted(ends, size, side="right")) - 1
            extra = int(size - ends[n_whole])
            if extra:
                source = (
                    partial
                    if n_whole == last_n_whole and partial is not None
                    else self.groups[order[n_whole]]
                )
                last_n_whole, partial = n_whole, draw_subset(source, extra, rng)
            links.append((order[:n_whole], partial if extra else None))
        return links[::-1]

    # -------------------------------------------------------------------------------------------- from sums of groups

    def _link_sum(self, union: np.ndarray, partial: Subset | None) -> GramSum:
        """The sum of a union and a part of another group."""
        total = self._union_sum(union)
        if partial is not None:
            total.merge(gram_sum_of(self._similarity, partial))
        return total

    def _group_sum(self, j: int) -> GramSum:
        if j in self._sums:
            return self._sums[j]
        gram_sum = gram_sum_of(self._similarity, self.groups[j])
        if self._keeps_sums:
            self._sums[j] = gram_sum
        return gram_sum

    @cached_property
    def _total_sum(self) -> GramSum:
        total = GramSum(self._similarity.width)  # type: ignore[attr-defined]
        for j in range(len(self.groups)):
            total.merge(self._group_sum(j))
        return total

    def _solve_in_batches(self, sums: Iterable[GramSum]) -> Iterator[SubsetSpectrum]:
        width = self._total_sum.width
        batch_size = 1 if width >= dense.SHORTCUT_ABOVE else max(1, STACK_BYTES // (8 * width**2))
        pending = iter(sums)
        while batch := list(islice(pending, batch_size)):
            yield from solve_sums(batch)

    def _union_sum(self, union: np.ndarray) -> GramSum:
        """The sum over a union: added up, or the total less the other groups, whichever takes fewer terms."""
        inside = np.zeros(len(self.groups), dtype=bool)
        inside[union] = True
        others = np.flatnonzero(~inside)
        if len(union) <= len(others):
            total = GramSum(self._total_sum.width)
            for j in union:
                total.merge(self._group_sum(int(j)))
            return total
        total = self._total_sum.copy()
        for j in others:
            group_sum = self._group_sum(int(j))
            total.total -= group_sum.total
            total.mass -= group_sum.mass
            total.error += group_sum.error + 2 * UNIT * self._total_sum.mass
        return total


def deal_groups(subset: Subset, groups: int, rng: np.random.Generator) -> list[Subset]:
    """Deal items out at random into groups whose sizes differ by at most 1."""
    if groups < 2 or subset.size < groups:
        raise InputError(
            f"groups={groups} and there are {subset.size} items; expected two groups or more, and an item for each."
        )
    if subset.counts is None:
        return [Subset(np.sort(items)) for items in np.array_split(rng.permutation(subset.items), groups)]
    check_copies(subset.size)
    remaining, dealt = subset.counts.astype(np.int64), []
    for j in range(groups):
        size = subset.size // groups + (j < subset.size % groups)
        group_counts = rng.multivariate_hypergeometric(remaining, size, method="marginals")
        remaining = remaining - group_counts
        dealt.append(_with_counts(subset, group_counts))
    return dealt


def draw_subset(subset: Subset, size: int, rng: np.random.Generator) -> Subset:
    """A random sample of `size` of these items, without replacement."""
    if subset.counts is None:
        return Subset(np.sort(rng.choice(subset.items, size, replace=False)))
    check_copies(subset.size)
    return _with_counts(subset, rng.multivariate_hypergeometric(subset.counts, size, method="marginals"))


def union_of(subsets: Sequence[Subset]) -> Subset:
    """The union of disjoint parts, the copies of an item in different ones added up."""
    items = np.concatenate([subset.items for subset in subsets])
    if subsets[0].counts is None:
        return Subset(np.sort(items))
    present, positions = np.unique(items, return_inverse=True)
    counts = np.concatenate([subset.counts for subset in subsets if subset.counts is not None])
    return Subset(present, np.bincount(positions, weights=counts).astype(np.int64))


def _with_counts(subset: Subset, counts: np.ndarray) -> Subset:
    """The items with a positive count, with these counts."""
    present = np.flatnonzero(counts)
    return Subset(subset.items[present], counts[present])


def check_copies(total: int) -> None:
    """Refuse sums of counts beyond the limit of NumPy's hypergeometric distribution."""
    if total >= MOST_COPIES:
        raise TooLargeError(
            f"counts sum to {total:,}, and random subsets are drawn of fewer than {MOST_COPIES:,}; expected smaller "
            "counts. Divide them by a whole number, or draw a random sample of them."
        )


def is_fragmented(similarity: Similarity, positions: np.ndarray) -> bool:
    """Whether sparse features have small connected components only, as categories do: these are solved cheaply."""
    if not isinstance(similarity, Features) or not similarity.sparse:
        return False
    side = min(len(positions), similarity.width)
    return side > SMALL and sparse_shape(similarity, positions).cubes <= side**3 / 1000


# ---------------------------------------------------------------------------------------------------------- eigenvalues


def gram_sum_of(similarity: Similarity, subset: Subset) -> GramSum:
    """Σ φφᵀ over some items."""
    assert isinstance(similarity, Features)
    total = GramSum(similarity.width)
    total.add(
        similarity.take(subset.items), None if subset.counts is None else subset.counts.astype(np.float64)
    )
    return total


def solve_sums(sums: Sequence[GramSum]) -> Iterator[SubsetSpectrum]:
    """The eigenvalues of d×d sums divided by their masses, found together."""
    grams = [gram_sum.result() for gram_sum in sums]
    matrices = [gram.matrix for gram in grams]
    stack = matrices[0] if len(matrices) == 1 else namespace(matrices[0]).stack(matrices)
    for values, gram in zip(np.atleast_2d(dense.eigenvalues(stack)), grams, strict=True):
        error = gram.error + float(dense.eigen_error(len(values), abs(float(values[0]))))
        yield SubsetSpectrum(np.maximum(values, 0.0), error)


def solve_subsets(similarity: Similarity, subsets: Iterable[Subset]) -> Iterator[SubsetSpectrum]:
    """The eigenvalues of each of these subsets of a collection; consecutive small ones are found together."""
    batch: list[Subset] = []
    free_entries = STACK_BYTES // 8
    for subset in subsets:
        batch.append(subset)
        free_entries -= len(subset.items) ** 2
        if free_entries <= 0:
            yield from _solve_batch(similarity, batch)
            batch, free_entries = [], STACK_BYTES // 8
    if batch:
        yield from _solve_batch(similarity, batch)


def _solve_batch(similarity: Similarity, subsets: list[Subset]) -> list[SubsetSpectrum]:
    """The eigenvalues of some subsets, found together."""
    shares = [subset.counts / subset.counts.sum() for subset in subsets if subset.counts is not None]
    groups = Grouping.of([subset.items for subset in subsets], shares or None)
    solved = solve_groups(similarity, groups, [1.0])
    found: list[SubsetSpectrum | None] = [None] * len(subsets)
    for positions, eigenvalues in solved.spectra:
        for position, values in zip(positions.tolist(), eigenvalues, strict=True):
            found[position] = SubsetSpectrum(values, float(solved.error[position]))
    return [spectrum for spectrum in found if spectrum is not None]
