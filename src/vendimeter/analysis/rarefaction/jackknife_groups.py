"""A collection dealt at random into groups, and the spectra of unions of them and of random subsets.

Features narrower than the items are many are read once: each group has its d×d sum Σ φφᵀ, and those of unions are sums
and differences of them. All others are scored from their similarities.
"""

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
from vendimeter.solvers.groups import held, solve_groups
from vendimeter.solvers.plan import EXACT_SIDE, sparse_shape
from vendimeter.spectrum import UNIT

__all__ = ["Part", "Split", "Values", "deal", "drawn", "fragmented", "spectra"]

KEPT_BYTES = 512 << 20  # of the sums of all groups; beyond, a group is read again when it is needed
STACK_BYTES = 32 << 20  # of matrices whose eigenvalues are found together
MOST_COPIES = 10**9  # the largest sum of counts that random numbers are drawn for


@dataclass(frozen=True)
class Part:
    """Some items of a collection: their positions, and how many copies of each, or None for one of each."""

    items: np.ndarray
    counts: np.ndarray | None = None

    @property
    def size(self) -> int:
        """How many there are, all copies counted."""
        return len(self.items) if self.counts is None else int(self.counts.sum())


@dataclass(frozen=True)
class Values:
    """Eigenvalues of ρ from large to small, none negative, and a bound on their error."""

    eigenvalues: np.ndarray
    error: float


def drawn(part: Part, size: int, rng: np.random.Generator) -> Part:
    """A random subset of so many of these items, without replacement."""
    if part.counts is None:
        return Part(np.sort(rng.choice(part.items, size, replace=False)))
    check_copies(part.size)
    return _present(part, rng.multivariate_hypergeometric(part.counts, size, method="marginals"))


def _present(part: Part, counts: np.ndarray) -> Part:
    present = np.flatnonzero(counts)
    return Part(part.items[present], counts[present])


def deal(part: Part, groups: int, rng: np.random.Generator) -> list[Part]:
    """All of these items in groups whose sizes differ by at most 1, at random."""
    if groups < 2 or part.size < groups:
        raise InputError(
            f"groups={groups} and there are {part.size} items; expected two groups or more, and an item for each."
        )
    if part.counts is None:
        return [Part(np.sort(items)) for items in np.array_split(rng.permutation(part.items), groups)]
    check_copies(part.size)
    left, dealt = part.counts.astype(np.int64), []
    for j in range(groups):
        size = part.size // groups + (j < part.size % groups)
        taken = rng.multivariate_hypergeometric(left, size, method="marginals")
        left = left - taken
        dealt.append(_present(part, taken))
    return dealt


def check_copies(total: int) -> None:
    """Random numbers of the hypergeometric distribution are drawn up to a limit."""
    if total >= MOST_COPIES:
        raise TooLargeError(
            f"counts sum to {total:,}, and random subsets are drawn of fewer than {MOST_COPIES:,}; expected smaller "
            "counts. Divide them by a whole number, or draw a random sample of them."
        )


def fragmented(similarity: Similarity, positions: np.ndarray) -> bool:
    """Whether sparse features fall apart into small components, as categories do: their eigenvalues cost little."""
    if not isinstance(similarity, Features) or not similarity.sparse:
        return False
    side = min(len(positions), similarity.width)
    return side > SMALL and sparse_shape(similarity, positions).cubes <= side**3 / 1000


class Split:
    """A collection in groups, and the spectra of unions of them.

    Parameters
    ----------
    similarity : Similarity
        Of all items.
    parts : list of Part
        The groups, as `deal` gives them.

    Attributes
    ----------
    sizes : ndarray
        Items in each group, copies counted.
    """

    def __init__(self, similarity: Similarity, parts: list[Part]):
        self.parts = parts
        self.sizes = np.array([part.size for part in parts])
        positions = np.unique(np.concatenate([part.items for part in parts]))
        width = similarity.width if isinstance(similarity, Features) else 0
        sparse = isinstance(similarity, Features) and similarity.sparse
        apart = fragmented(similarity, positions)
        self._narrow = 0 < width <= min(len(positions), SPARSE_WIDTH if sparse else EXACT_SIDE) and not apart
        self._kept: dict[int, GramSum] = {}
        self._keeps = len(parts) * 8 * width**2 <= KEPT_BYTES
        if self._narrow or apart:
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
            self.parts = [Part(np.searchsorted(positions, part.items), part.counts) for part in parts]
        self._similarity = held(similarity)

    def spectra(self, unions: Sequence[np.ndarray]) -> Iterator[Values]:
        """The eigenvalues of the items in the groups at these positions, for each of the unions."""
        if not self._narrow:
            return spectra(self._similarity, (joined([self.parts[j] for j in union]) for union in unions))
        return self._solved(map(self._union, unions))

    def subsets(self, sizes: Sequence[int], repeats: int, rng: np.random.Generator) -> Iterator[list[Values]]:
        """The eigenvalues of random subsets of these sizes, from small to large, each without replacement.

        A subset is a union of groups, in an order that is random for every repeat, and a part of the next group: as
        random as any, and most of its sums are there already. Those of one repeat lie in one another, which makes for a
        smooth curve, and the smallest ones of different repeats in different groups.
        """
        first = rng.permutation(len(self.parts))
        chains = [self._chain(sizes, int(first[r % len(first)]), rng) for r in range(repeats)]
        for i, size in enumerate(sizes):
            links = [chain[i] for chain in chains]
            if self._narrow and size >= self._total.width:
                yield list(self._solved(self._linked(union, rest) for union, rest in links))
            else:
                parts = (
                    joined([*(self.parts[j] for j in union), *([rest] if rest else [])])
                    for union, rest in links
                )
                yield list(spectra(self._similarity, parts))

    def _chain(
        self, sizes: Sequence[int], first: int, rng: np.random.Generator
    ) -> list[tuple[np.ndarray, Part | None]]:
        """For each size, whole groups and a part of another; of the same group, a smaller part of the larger one."""
        others = rng.permutation(np.delete(np.arange(len(self.parts)), first))
        order = np.concatenate([[first], others])
        ends = np.concatenate([[0], np.cumsum(self.sizes[order])])
        links: list[tuple[np.ndarray, Part | None]] = []
        before, rest = -1, None
        for size in reversed(sizes):
            whole = int(np.searchsorted(ends, size, side="right")) - 1
            more = int(size - ends[whole])
            if more:
                source = rest if whole == before and rest is not None else self.parts[order[whole]]
                before, rest = whole, drawn(source, more, rng)
            links.append((order[:whole], rest if more else None))
        return links[::-1]

    # -------------------------------------------------------------------------------------------- from sums of groups

    def _linked(self, union: np.ndarray, rest: Part | None) -> GramSum:
        total = self._union(union)
        if rest is not None:
            total.merge(sum_of(self._similarity, rest))
        return total

    def _sum(self, j: int) -> GramSum:
        if j in self._kept:
            return self._kept[j]
        found = sum_of(self._similarity, self.parts[j])
        if self._keeps:
            self._kept[j] = found
        return found

    @cached_property
    def _total(self) -> GramSum:
        total = GramSum(self._similarity.width)  # type: ignore[attr-defined]
        for j in range(len(self.parts)):
            total.merge(self._sum(j))
        return total

    def _solved(self, sums: Iterable[GramSum]) -> Iterator[Values]:
        width = self._total.width
        step = 1 if width >= dense.SHORTCUT_ABOVE else max(1, STACK_BYTES // (8 * width**2))
        waiting = iter(sums)
        while some := list(islice(waiting, step)):
            yield from eigenvalues_of(some)

    def _union(self, union: np.ndarray) -> GramSum:
        """The sum of the groups of a union: of those, or of all less the others, whichever are fewer."""
        inside = np.zeros(len(self.parts), dtype=bool)
        inside[union] = True
        others = np.flatnonzero(~inside)
        if len(union) <= len(others):
            total = GramSum(self._total.width)
            for j in union:
                total.merge(self._sum(int(j)))
            return total
        total = self._total.copy()
        for j in others:
            one = self._sum(int(j))
            total.total -= one.total
            total.mass -= one.mass
            total.error += one.error + 2 * UNIT * self._total.mass
        return total


def sum_of(similarity: Similarity, part: Part) -> GramSum:
    """Σ φφᵀ of some items."""
    assert isinstance(similarity, Features)
    total = GramSum(similarity.width)
    total.add(similarity.take(part.items), None if part.counts is None else part.counts.astype(np.float64))
    return total


def eigenvalues_of(sums: Sequence[GramSum]) -> Iterator[Values]:
    """The eigenvalues of some d×d sums, divided by their masses, found together."""
    grams = [one.result() for one in sums]
    matrices = [gram.matrix for gram in grams]
    stack = matrices[0] if len(matrices) == 1 else namespace(matrices[0]).stack(matrices)
    for values, gram in zip(np.atleast_2d(dense.eigenvalues(stack)), grams, strict=True):
        error = gram.error + float(dense.eigen_error(len(values), abs(float(values[0]))))
        yield Values(np.maximum(values, 0.0), error)


# --------------------------------------------------------------------------------------------------- from similarities


def joined(parts: Sequence[Part]) -> Part:
    """The union of disjoint parts, the copies of an item in different ones added up."""
    items = np.concatenate([part.items for part in parts])
    if parts[0].counts is None:
        return Part(np.sort(items))
    present, place = np.unique(items, return_inverse=True)
    counts = np.concatenate([part.counts for part in parts if part.counts is not None])
    return Part(present, np.bincount(place, weights=counts).astype(np.int64))


def spectra(similarity: Similarity, parts: Iterable[Part]) -> Iterator[Values]:
    """The eigenvalues of each of these parts of a collection; small ones that follow each other are found together."""
    waiting: list[Part] = []
    room = STACK_BYTES // 8
    for part in parts:
        waiting.append(part)
        room -= len(part.items) ** 2
        if room <= 0:
            yield from _solved(similarity, waiting)
            waiting, room = [], STACK_BYTES // 8
    if waiting:
        yield from _solved(similarity, waiting)


def _solved(similarity: Similarity, parts: list[Part]) -> list[Values]:
    shares = [part.counts / part.counts.sum() for part in parts if part.counts is not None]
    groups = Grouping.of([part.items for part in parts], shares or None)
    solved = solve_groups(similarity, groups, [1.0])
    found: list[Values | None] = [None] * len(parts)
    for places, eigenvalues in solved.spectra:
        for place, values in zip(places.tolist(), eigenvalues, strict=True):
            found[place] = Values(values, float(solved.error[place]))
    return [values for values in found if values is not None]
