"""The groups of a comparison: one similarity of all items, who is in which group, and what each group weighs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vendimeter.data import frames, tables
from vendimeter.data.arrays import blocks, is_sparse, is_table, refuse_set
from vendimeter.data.collection import Collection
from vendimeter.data.devices import is_foreign, local, namespace
from vendimeter.data.groups import Grouping, join, read, split
from vendimeter.data.weights import Weights, raw_weights
from vendimeter.errors import EmptyError, InputError, brief, in_group, shape_of
from vendimeter.intake import refuse_matrix, similarity_of
from vendimeter.kernels import FromDistances, Kernel, Precomputed, as_kernel
from vendimeter.similarity import Features, Matrix, Pairwise, Similarity
from vendimeter.solvers.groups import held

__all__ = ["Drawn", "Groups", "gathered"]


@dataclass(frozen=True)
class Drawn:
    """Items drawn from a group: their positions, and what tells one copy of an item from another."""

    items: np.ndarray
    copies: np.ndarray


@dataclass(frozen=True)
class Groups:
    """Groups over the items of one collection.

    Attributes
    ----------
    similarity : Similarity
        Of all items; a user's matrix or function has been checked.
    members : Grouping
        Which items are in which group, with what weight.
    mass : ndarray
        What each group weighs: its items, counts, or weights, summed up.
    given : {"weights", "counts"} or None
        Which of the two there are.
    apart : bool
        Whether each group has copies of its own, as rows of counts have: then no two groups share any.
    left_out : int
        Records that were left out on reading.
    locate : callable
        Raises the error of the group that fails by itself: positions in a joint collection mean nothing to the user.
    """

    similarity: Similarity
    members: Grouping
    mass: np.ndarray
    given: str | None
    apart: bool
    left_out: int
    locate: Callable[[], None]

    @property
    def labels(self) -> list[Any]:
        """The labels, in order of first appearance."""
        return list(self.members.labels)

    @property
    def sizes(self) -> np.ndarray:
        """Items in each group, copies counted."""
        return self.members.sizes

    def part(self, g: int) -> slice:
        """The entries of a group in the columns of `members`."""
        return slice(int(self.members.starts[g]), int(self.members.starts[g + 1]))

    def items(self, g: int) -> np.ndarray:
        """Positions of the items of a group."""
        return self.members.items[self.part(g)]

    @cached_property
    def _counts(self) -> np.ndarray:
        """How many copies each entry stands for."""
        weights = self.members.weights
        if weights is None or self.given != "counts":
            return np.ones(len(self.members.items), dtype=np.int64)
        return np.rint(weights * np.repeat(self.sizes, np.diff(self.members.starts))).astype(np.int64)

    @cached_property
    def _firsts(self) -> np.ndarray:
        """The number of the first copy of each entry; entries of one item share their copies, unless groups do not."""
        if self.apart:
            return np.cumsum(self._counts) - self._counts
        copies = np.zeros(self.similarity.n, dtype=np.int64)
        copies[self.members.items] = self._counts
        return (np.cumsum(copies) - copies)[self.members.items]

    def copies(self, g: int) -> np.ndarray:
        """How many copies of each item of a group there are."""
        return self._counts[self.part(g)]

    def draw(self, g: int, size: int, rng: np.random.Generator) -> Drawn:
        """So many of the items of a group at random, without replacement."""
        counts = self.copies(g)
        ends = np.cumsum(counts)
        total = int(ends[-1])
        at = np.arange(total) if size == total else rng.choice(total, size, replace=False)
        entry = np.searchsorted(ends, at, side="right")
        first = self._firsts[self.part(g)][entry]
        return Drawn(self.items(g)[entry], first + at - (ends[entry] - counts[entry]))

    @cached_property
    def shared(self) -> bool:
        """Whether some item is in several groups."""
        return not self.apart and len(np.unique(self.members.items)) < len(self.members.items)

    def without_empty(self) -> np.ndarray:
        """Positions of the groups that have items."""
        return np.flatnonzero(np.diff(self.members.starts))


def gathered(samples: Any, kernel: Any, by: Any, weights: Any, counts: Any, rng: int) -> Groups:
    """Groups from whatever `vendimeter.score_groups` takes; those given one by one are joined into one collection."""
    left_out = 0
    if isinstance(samples, Collection):
        collection = samples
        collection.refuse_default(kernel)
        left_out, labels = collection.skipped.count, collection.labels_by(by)
        if collection.is_group:
            return _gathered(collection.groups(by), kernel, None, weights, counts, rng, left_out)
        if weights is None and counts is None:
            weights = collection.probabilities()
        with collection.placed():
            return _gathered(collection.samples, kernel, labels, weights, counts, rng, left_out)
    return _gathered(frames.known(samples), kernel, by, weights, counts, rng, left_out)


def _gathered(
    samples: Any, kernel: Any, by: Any, weights: Any, counts: Any, rng: int, left_out: int
) -> Groups:
    mass = raw_weights(weights, counts, dimensions=2)
    table = mass is not None and mass.values.ndim == 2
    if by is None and not table:
        if mass is not None:
            raise InputError(
                f"{mass.name} go with one collection; expected by=labels with them, one number an item. For groups "
                "given one by one, join them into one collection first."
            )
        similarity, members, locate = _joined(samples, kernel, rng)
        return _groups(similarity, members, None, left_out, locate)
    if tables.has_columns(samples):
        by = tables.labels(samples, by)
    refuse_set(samples, "labels")
    given = weights if counts is None else counts
    tables.check_alignment(samples, given, "weights" if counts is None else "counts", by_column=table)
    if not table:
        tables.check_alignment(samples, by, "by")
    elif by is None and hasattr(given, "index") and hasattr(given, "columns"):
        by = given.index  # the rows of a pandas frame have names
    similarity = similarity_of(samples, kernel, rng)
    return _groups(similarity, read(by, similarity.n, mass), mass, left_out)


def _groups(
    similarity: Similarity,
    members: Grouping,
    mass: Weights | None,
    left_out: int,
    locate: Callable[[], None] = lambda: None,
) -> Groups:
    if not len(members.items):
        raise EmptyError("every group is empty; expected at least one item in one group.")
    if isinstance(similarity, Matrix):
        similarity = similarity.checked()
    elif isinstance(similarity, Pairwise) and not similarity.trusted:
        similarity = held(similarity)  # a user's function is called once a pair
    masses = members.sizes.astype(np.float64)
    apart = mass is not None and mass.values.ndim == 2
    if mass is not None and mass.name == "weights":
        starts, items = members.starts, members.items
        values = np.append(mass.values[items] if not apart else members.weights, 0.0)  # type: ignore[arg-type]
        masses = np.where(np.diff(starts) > 0, np.add.reduceat(values, starts[:-1]), 0.0)
    return Groups(similarity, members, masses, None if mass is None else mass.name, apart, left_out, locate)


# -------------------------------------------------------------------------------------------- groups given one by one


def _joined(groups: Any, asked: Any, rng: int) -> tuple[Similarity, Grouping, Callable[[], None]]:
    """One collection of a mapping, a list, or an array of groups × items × columns."""
    kernel: Kernel = as_kernel(asked)
    stack: Any = local(groups)
    axes = len(stack.shape) if isinstance(stack, np.ndarray) or is_foreign(stack) else 0
    several = axes >= 3 or (axes == 0 and isinstance(groups, Mapping | list | tuple))
    if not several or is_table(groups) or is_sparse(groups) or tables.is_records(groups):
        raise InputError(
            f"samples is one collection ({brief(groups)}) and by is missing; expected by=labels (or the name of a "
            "column), a mapping label → samples, a list of groups, or an array of groups × items × columns."
        )
    if isinstance(kernel, Precomputed | FromDistances):
        raise InputError(
            "the groups have a matrix each, which tells nothing of how similar items of different groups are; expected "
            "one matrix of all items, and by=labels. For the score of each by itself use vendimeter.score_groups."
        )
    labels, parts = split(groups)
    if isinstance(asked, str) and asked == "cosine":
        for label, part in zip(labels, parts, strict=True):
            with in_group(label):
                refuse_matrix(part)
    if axes == 3 and 0 not in stack.shape:  # without a copy
        joined = namespace(stack).reshape(stack, (stack.shape[0] * stack.shape[1], stack.shape[2]))
        sizes = np.full(stack.shape[0], stack.shape[1])
    elif axes and 0 in stack.shape:
        raise EmptyError(f"samples has shape {shape_of(stack.shape)}; expected at least one group and item.")
    else:
        joined, sizes = join(parts)
    full = [(label, part) for label, part, size in zip(labels, parts, sizes.tolist(), strict=True) if size]

    def locate() -> None:
        for label, part in full:
            with in_group(label):
                _looked_through(kernel.similarity(part, rng=rng))

    starts = np.concatenate([[0], np.cumsum(sizes)])
    try:
        similarity = kernel.similarity(joined, rng=rng)
        return similarity, Grouping(labels, starts, np.arange(starts[-1]), None, sizes), locate
    except InputError as error:
        failure = error
    locate()
    raise failure


def _looked_through(similarity: Similarity) -> None:
    """Rows are looked at when they are read: read all of them, for the error that this raises."""
    if isinstance(similarity, Features):
        for part in blocks(similarity.n, 64 if similarity.sparse else similarity.width):
            similarity.rows(part)
