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
from vendimeter.errors import EmptyError, InputError
from vendimeter.intake import refuse_matrix, similarity_of
from vendimeter.kernels import FromDistances, Kernel, Precomputed, as_kernel
from vendimeter.messages import brief, in_group, shape_of
from vendimeter.similarity import Features, Matrix, Pairwise, Similarity
from vendimeter.solvers.groups import materialize_for_subsets

__all__ = ["Draw", "Groups", "gather_groups"]


@dataclass(frozen=True)
class Draw:
    """Items drawn from a group: their positions, and an identifier of each copy."""

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
    weighting : {"weights", "counts"} or None
        Which of the two were passed.
    separate_copies : bool
        Whether each group has copies of its own, as rows of counts have: then no two groups share any.
    left_out : int
        Records that were left out on reading.
    raise_group_error : callable
        Raises the error of the group that fails by itself: positions in a joint collection mean nothing to the user.
    """

    similarity: Similarity
    members: Grouping
    mass: np.ndarray
    weighting: str | None
    separate_copies: bool
    left_out: int
    raise_group_error: Callable[[], None]

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
        if weights is None or self.weighting != "counts":
            return np.ones(len(self.members.items), dtype=np.int64)
        return np.rint(weights * np.repeat(self.sizes, np.diff(self.members.starts))).astype(np.int64)

    @cached_property
    def _firsts(self) -> np.ndarray:
        """The number of the first copy of each entry; entries of one item share their copies, unless groups do not."""
        if self.separate_copies:
            return np.cumsum(self._counts) - self._counts
        copies = np.zeros(self.similarity.n, dtype=np.int64)
        copies[self.members.items] = self._counts
        return (np.cumsum(copies) - copies)[self.members.items]

    def copies(self, g: int) -> np.ndarray:
        """How many copies of each item of a group there are."""
        return self._counts[self.part(g)]

    def draw(self, g: int, size: int, rng: np.random.Generator) -> Draw:
        """A random sample of the items of a group, without replacement."""
        counts = self.copies(g)
        ends = np.cumsum(counts)
        total = int(ends[-1])
        copies = np.arange(total) if size == total else rng.choice(total, size, replace=False)
        entry = np.searchsorted(ends, copies, side="right")
        first_copy = self._firsts[self.part(g)][entry]
        return Draw(self.items(g)[entry], first_copy + copies - (ends[entry] - counts[entry]))

    @cached_property
    def shared(self) -> bool:
        """Whether some item is in several groups."""
        return not self.separate_copies and len(np.unique(self.members.items)) < len(self.members.items)


def gather_groups(samples: Any, kernel: Any, by: Any, weights: Any, counts: Any, rng: int) -> Groups:
    """Groups from whatever `vendimeter.score_groups` takes; those given one by one are joined into one collection."""
    left_out = 0
    if isinstance(samples, Collection):
        collection = samples
        collection.refuse_default(kernel)
        left_out, labels = collection.skipped.count, collection.labels_by(by)
        if collection.is_group:
            return _gather(collection.groups(by), kernel, None, weights, counts, rng, left_out)
        if weights is None and counts is None:
            weights = collection.probabilities()
        with collection.placed():
            return _gather(collection.samples, kernel, labels, weights, counts, rng, left_out)
    return _gather(frames.known(samples), kernel, by, weights, counts, rng, left_out)


def _gather(samples: Any, kernel: Any, by: Any, weights: Any, counts: Any, rng: int, left_out: int) -> Groups:
    """Groups from samples that are no Collection."""
    raw = raw_weights(weights, counts, dimensions=2)
    by_rows = raw is not None and raw.values.ndim == 2
    if by is None and not by_rows:
        if raw is not None:
            raise InputError(
                f"{raw.name} go with one collection; expected by=labels with them, one number an item. For groups "
                "given one by one, join them into one collection first."
            )
        similarity, members, raise_group_error = _join_groups(samples, kernel, rng)
        return _checked_groups(similarity, members, None, left_out, raise_group_error)
    if tables.has_columns(samples):
        by = tables.labels(samples, by)
    refuse_set(samples, "labels")
    numbers = weights if counts is None else counts
    tables.check_alignment(samples, numbers, "weights" if counts is None else "counts", by_column=by_rows)
    if not by_rows:
        tables.check_alignment(samples, by, "by")
    elif by is None and hasattr(numbers, "index") and hasattr(numbers, "columns"):
        by = numbers.index  # the rows of a pandas frame have names
    similarity = similarity_of(samples, kernel, rng)
    return _checked_groups(similarity, read(by, similarity.n, raw), raw, left_out)


def _checked_groups(
    similarity: Similarity,
    members: Grouping,
    raw: Weights | None,
    left_out: int,
    raise_group_error: Callable[[], None] = lambda: None,
) -> Groups:
    """Groups with a checked similarity and the mass of each."""
    if not len(members.items):
        raise EmptyError("every group is empty; expected at least one item in one group.")
    if isinstance(similarity, Matrix):
        similarity = similarity.checked()
    elif isinstance(similarity, Pairwise) and not similarity.trusted:
        similarity = materialize_for_subsets(similarity)  # a user's function is called once a pair
    group_masses = members.sizes.astype(np.float64)
    by_rows = raw is not None and raw.values.ndim == 2
    if raw is not None and raw.name == "weights":
        starts, items = members.starts, members.items
        values = np.append(raw.values[items] if not by_rows else members.weights, 0.0)  # type: ignore[arg-type]
        group_masses = np.where(np.diff(starts) > 0, np.add.reduceat(values, starts[:-1]), 0.0)
    return Groups(
        similarity,
        members,
        group_masses,
        None if raw is None else raw.name,
        by_rows,
        left_out,
        raise_group_error,
    )


# -------------------------------------------------------------------------------------- groups passed one by one


def _join_groups(
    groups: Any, kernel_option: Any, rng: int
) -> tuple[Similarity, Grouping, Callable[[], None]]:
    """One collection of a mapping, a list, or an array of groups × items × columns."""
    kernel: Kernel = as_kernel(kernel_option)
    stack: Any = local(groups)
    axes = len(stack.shape) if isinstance(stack, np.ndarray) or is_foreign(stack) else 0
    has_groups = axes >= 3 or (axes == 0 and isinstance(groups, Mapping | list | tuple))
    if not has_groups or is_table(groups) or is_sparse(groups) or tables.is_records(groups):
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
    if isinstance(kernel_option, str) and kernel_option == "cosine":
        for label, samples in zip(labels, parts, strict=True):
            with in_group(label):
                refuse_matrix(samples)
    if axes == 3 and 0 not in stack.shape:  # a reshape makes no copy
        joined = namespace(stack).reshape(stack, (stack.shape[0] * stack.shape[1], stack.shape[2]))
        sizes = np.full(stack.shape[0], stack.shape[1])
    elif axes and 0 in stack.shape:
        raise EmptyError(f"samples has shape {shape_of(stack.shape)}; expected at least one group and item.")
    else:
        joined, sizes = join(parts)
    present = [
        (label, samples) for label, samples, size in zip(labels, parts, sizes.tolist(), strict=True) if size
    ]

    def raise_group_error() -> None:
        for label, samples in present:
            with in_group(label):
                _looked_through(kernel.similarity(samples, rng=rng))

    starts = np.concatenate([[0], np.cumsum(sizes)])
    try:
        similarity = kernel.similarity(joined, rng=rng)
        return similarity, Grouping(labels, starts, np.arange(starts[-1]), None, sizes), raise_group_error
    except InputError as error:
        failure = error
    raise_group_error()
    raise failure


def _looked_through(similarity: Similarity) -> None:
    """Read all rows of features, which checks them and raises the error of a bad one."""
    if isinstance(similarity, Features):
        for block in blocks(similarity.n, 64 if similarity.sparse else similarity.width):
            similarity.rows(block)
