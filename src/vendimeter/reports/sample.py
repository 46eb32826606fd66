"""Which items a report is about: all of them, or a random sample where all would take too long."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from vendimeter.data.collection import Collection
from vendimeter.data.groups import Grouping
from vendimeter.diversity import Diversity
from vendimeter.intake import Named
from vendimeter.kernels import Kernel
from vendimeter.messages import brief
from vendimeter.options import generator
from vendimeter.reports.words import label_name
from vendimeter.similarity import Features, Pairwise, Similarity

__all__ = ["DENSE_ITEMS", "Part", "Sample", "is_narrow", "take_sample"]

DENSE_ITEMS = 5000  # items up to which the similarities of a kernel without features are computed, and kept
NARROW_WIDTH = 1024  # number of features up to which their matrix is small, whatever the number of items
TOLERANCES = (None, 1e-3, 1e-2)
LIMIT, SPARSE_LIMIT = 1e12, 1.5e11  # operations of a score: half a minute or so
# Sizes of the sample that are tried, largest first, where all items would take too long.
SAMPLE_SIZES = (20_000, 10_000, 7_500, 5_000, 3_000, 2_000, 1_000)


@dataclass(frozen=True)
class Part:
    """One of the collections of a report.

    Attributes
    ----------
    label : hashable
        Its name as the user has it; None where there is only one.
    diversity : Diversity
        Its items that are looked at.
    positions : ndarray
        Positions of these among all items that are looked at.
    n : int
        How many items it has, those that are not looked at among them.
    samples : Any
        What the user passed: a Collection or samples, all of them.
    """

    label: Hashable
    diversity: Diversity
    positions: np.ndarray
    n: int
    samples: Any

    @property
    def name(self) -> str:
        """Its name for people."""
        return "all items" if self.label is None else label_name(self.label, 60)

    @property
    def left_out(self) -> int:
        """How many broken records were left out on reading."""
        return self.samples.skipped.count if isinstance(self.samples, Collection) else 0


@dataclass(frozen=True)
class Sample:
    """The items that are looked at.

    Attributes
    ----------
    diversity : Diversity
        These items.
    parts : list of Part
        The collections that they come from; empty ones are left out.
    origin : ndarray
        The position of each among all items.
    tol : float or None
        The tolerance of scores.
    notes : list of str
        What was left out.
    """

    diversity: Diversity
    parts: list[Part]
    origin: np.ndarray
    tol: float | None
    notes: list[str]

    @property
    def lists(self) -> Collection | None:
        """The only collection, where its samples are lists of texts: each is a group by itself."""
        return self.diversity.source.lists

    @cached_property
    def groups(self) -> Grouping | None:
        """Which items are in which group, those without weight among them; None where there are no groups."""
        source = self.diversity.source
        if not source.has_groups:
            return None
        collections = tuple(replace(one, weights=None) for one in source.collections)
        unweighted = replace(source, weights=None, counts=None, collections=collections)
        return unweighted.groups(self.diversity.n)

    @property
    def kernel(self) -> Kernel:
        """The kernel with all its parameters."""
        return self.diversity.similarity.kernel

    @property
    def names(self) -> list[Any]:
        """What a reference may be called: the collections, or the groups."""
        if len(self.parts) > 1:
            return [part.label for part in self.parts]
        return [] if self.groups is None else list(self.groups.labels)

    def is_name(self, reference: Any) -> bool:
        """Whether a reference is a name, and not samples; a group of several columns has a tuple for a label."""
        if isinstance(reference, tuple):
            return all(map(np.isscalar, reference)) and reference in self.names
        return bool(np.isscalar(reference))

    @property
    def total(self) -> int:
        """How many items there are, those that are not looked at among them."""
        return sum(part.n for part in self.parts)


def is_narrow(similarity: Similarity) -> bool:
    """Whether the matrix of features is small, so that the number of items hardly matters."""
    return isinstance(similarity, Features) and similarity.width <= min(similarity.n, NARROW_WIDTH)


def take_sample(diversity: Diversity, orders: Sequence[float]) -> Sample:
    """All items, or a random sample of them whose scores of these orders are affordable in a report."""
    total, passed, notes = diversity.n, _collections(diversity), []
    empty = [one.name for one in diversity.source.collections if not one.size]
    if empty:
        diversity, lists = diversity.take(slice(None)), diversity.source.lists
        notes = (
            [f"The collection {brief(name)} is empty, and left out." for name in empty]
            if lists is None
            else [f"{len(empty):,} of the {len(lists):,} lists are empty, and have no score."]
        )
    affordable, tol = _affordable_tol(diversity, orders)
    looked_at, origin = diversity, np.arange(total)
    sizes = [size for size in SAMPLE_SIZES if size < total]
    while not affordable and sizes:
        origin = _draw(diversity, [one.size for one in passed], sizes.pop(0))
        looked_at = diversity.take(origin)
        affordable, tol = _affordable_tol(looked_at, orders)
    if len(origin) < total:
        sampling = "" if len(passed) == 1 else ", as many of each collection as can be"
        notes.append(
            f"All that follows is about a random sample of {len(origin):,} of the {total:,} items{sampling}: with this "
            "kernel all of them would take too long for a report. The functions vendimeter.score and compare take all."
        )
    ends = np.cumsum([one.size for one in passed])
    owners = np.searchsorted(ends, origin, side="right")
    parts = []
    for i, one in enumerate(passed):
        positions = np.flatnonzero(owners == i)
        part = looked_at if len(passed) == 1 else looked_at.take(positions)
        parts.append(Part(one.name, part, positions, one.size, one.samples))
    return Sample(looked_at, parts, origin, tol, notes)


def _collections(diversity: Diversity) -> list[Named]:
    """The collections that are not empty; lists of texts are one."""
    source = diversity.source
    if source.lists is not None:
        return [Named(None, source.lists, None, diversity.n)]
    if not source.collections:
        return [Named(None, diversity.samples, None, diversity.n)]
    return [one for one in source.collections if one.size]


def _affordable_tol(diversity: Diversity, orders: Sequence[float]) -> tuple[bool, float | None]:
    """Whether a score of all items is affordable in a report, and the tolerance to compute it with."""
    similarity = diversity.similarity
    if isinstance(similarity, Pairwise) and similarity.n > DENSE_ITEMS:
        return False, None  # every analysis would compute all similarities anew
    limit = SPARSE_LIMIT if getattr(similarity, "sparse", False) else LIMIT
    for tol in TOLERANCES:
        plan = diversity.plan(list(orders), tol=tol)
        work = plan.flops + (plan.otherwise.flops if plan.otherwise is not None else 0.0)
        if work <= limit:
            return True, tol
    return False, TOLERANCES[-1]


def _draw(diversity: Diversity, sizes: Sequence[int], size: int) -> np.ndarray:
    """Positions of a random sample, about as many of each collection; of weighted ones those of some weight."""
    draws = generator(diversity.rng, "report sample")
    starts, weights, drawn = np.concatenate([[0], np.cumsum(sizes)]), diversity.weights, []
    for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        candidates = np.arange(start, end)
        candidates = candidates if weights is None else candidates[weights[start:end] > 0]
        limit = max(1, size // len(sizes))
        drawn.append(
            candidates
            if len(candidates) <= limit
            else np.sort(draws.choice(candidates, limit, replace=False))
        )
    return np.concatenate(drawn)
