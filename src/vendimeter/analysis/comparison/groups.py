"""The groups of a comparison: one similarity of all items, who is in which group, and what each group weighs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np

from vendimeter.diversity import Diversity
from vendimeter.errors import EmptyError
from vendimeter.messages import brief
from vendimeter.present.text import label_as_text
from vendimeter.similarity import Pairwise, Similarity

__all__ = ["Draw", "Groups", "group_name", "quoted"]


@dataclass(frozen=True)
class Draw:
    """Items drawn from a group: their positions, and an identifier of each copy."""

    items: np.ndarray
    copies: np.ndarray


class Groups:
    """The groups of a collection, with what is computed from them.

    Attributes
    ----------
    diversity : Diversity
        The collection.
    members : Grouping
        Which items are in which group, with what weight.
    similarity : Similarity
        Of all items; a user's matrix or function has been checked.
    separate_copies : bool
        Whether each group has copies of its own, as rows of counts have: then no two groups share any.
    """

    def __init__(self, diversity: Diversity):
        self.diversity, self.members = diversity, diversity.required_groups()
        if not len(self.members.items):
            raise EmptyError("every group is empty; expected at least one item in one group.")
        similarity: Similarity = diversity.similarity
        if isinstance(similarity, Pairwise) and not similarity.trusted:
            similarity = diversity.subsets  # a user's function is called once a pair
        self.similarity, self.separate_copies = similarity, diversity.has_rows

    @cached_property
    def mass(self) -> np.ndarray:
        """What each group weighs: its items, counts, or weights, summed up; a row of weights weighs 1."""
        members, diversity = self.members, self.diversity
        if diversity.weighting != "weights":
            return self.sizes.astype(np.float64)
        values = members.weights if diversity.has_rows else diversity.shares[members.items]
        group_of_entry = np.repeat(np.arange(len(self.sizes)), np.diff(members.starts))
        return np.bincount(group_of_entry, weights=values, minlength=len(self.sizes))

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
        if weights is None or self.diversity.weighting != "counts":
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


def quoted(label: Any) -> str:
    """A label in a sentence; one that combines several as it is in tables and pictures.

    Examples
    --------
    >>> quoted("cats"), quoted(3), quoted(("y", "p"))
    ("'cats'", '3', "'y / p'")
    """
    return brief(label_as_text(label) if isinstance(label, tuple) else label)


def group_name(label: Any) -> str:
    """The same where a number by itself would be taken for an amount.

    Examples
    --------
    >>> group_name("cats"), group_name(3)
    ("'cats'", 'group 3')
    """
    return f"group {quoted(label)}" if isinstance(label, Number) else quoted(label)
