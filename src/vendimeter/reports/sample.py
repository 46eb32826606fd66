"""What a report is about: one collection, its groups, or several collections, as one list of items with labels.

All analyses of a report share one similarity: they are given positions of items, and a `PositionKernel` looks up the
similarities of these. Where all items would take too long, the list is a random sample of them. `subject_of` makes it
all from what a user passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.arrays import take
from vendimeter.data.collection import Collection
from vendimeter.data.groups import Grouping, read
from vendimeter.errors import InputError
from vendimeter.kernels import Kernel, as_kernel
from vendimeter.messages import brief, unknown
from vendimeter.options import generator
from vendimeter.present.text import label_as_text
from vendimeter.reports.given import ReportInput, read_input
from vendimeter.reports.items import ItemRenderer, Source, source_of
from vendimeter.reports.words import label_name
from vendimeter.scoring import plan
from vendimeter.similarity import Features, Pairwise, Similarity
from vendimeter.solvers.groups import materialize_for_subsets

__all__ = [
    "DENSE_ITEMS",
    "PositionKernel",
    "SampledCollection",
    "Subject",
    "affordable_tol",
    "is_narrow",
    "materialize",
    "subject_of",
]


DENSE_ITEMS = 5000  # items up to which their similarity matrix is kept, so that nothing is computed twice
NARROW_WIDTH = 1024  # number of features up to which their matrix is small, whatever the number of items
TOLERANCES = (None, 1e-3, 1e-2)
LIMIT, SPARSE_LIMIT = 1e12, 1.5e11  # operations of a score: half a minute or so


@dataclass(frozen=True, eq=False)
class PositionKernel(Kernel):
    """The similarities of items whose positions are the samples.

    Encoders, fingerprints and n-grams are then computed once for all analyses, and parameters that come from data are
    those of all items.
    """

    all_similarities: Similarity = field(repr=False)
    name: ClassVar[str] = "held"

    def __repr__(self) -> str:
        return repr(self.all_similarities.kernel)

    def build(self, samples: Any, rng: int) -> Similarity:
        """The similarities of the items at these positions."""
        positions = np.asarray(samples, dtype=np.int64)
        if len(positions) == self.all_similarities.n and (positions == np.arange(len(positions))).all():
            return self.all_similarities
        return self.all_similarities.take(positions)


def materialize(similarity: Similarity) -> Similarity:
    """A similarity whose values are cached where memory allows; a user's function is called, and checked, once."""
    return materialize_for_subsets(similarity, DENSE_ITEMS)


def is_narrow(similarity: Similarity) -> bool:
    """Whether the matrix of features is small, so that the number of items hardly matters."""
    return isinstance(similarity, Features) and similarity.width <= min(similarity.n, NARROW_WIDTH)


def affordable_tol(similarity: Similarity, orders: list[float], rng: int) -> tuple[bool, float | None]:
    """Whether a score of all items is affordable in a report, and the tolerance to compute it with."""
    if isinstance(similarity, Pairwise) and similarity.n > DENSE_ITEMS:
        return False, None  # every analysis would compute all similarities anew
    limit = SPARSE_LIMIT if getattr(similarity, "sparse", False) else LIMIT
    positions, kernel = np.arange(similarity.n), PositionKernel(similarity)
    for tol in TOLERANCES:
        solver_plan = plan(positions, kernel, q=orders, tol=tol, rng=rng)
        work = solver_plan.flops + (solver_plan.otherwise.flops if solver_plan.otherwise is not None else 0.0)
        if work <= limit:
            return True, tol
    return False, TOLERANCES[-1]


# ------------------------------------------------------------------------------------------------------------- subject

# Sizes of the sample that are tried, largest first, where all items would take too long.
SAMPLE_SIZES = (20_000, 10_000, 7_500, 5_000, 3_000, 2_000, 1_000)
_PLACE = re.compile(r"(.+?) of (['\"])(.*)\2", re.DOTALL)  # "line 3 of 'data/captions.txt'"
_QUOTED = re.compile(r"(['\"])(.*)\1", re.DOTALL)


@dataclass(frozen=True)
class SampledCollection:
    """One of the collections.

    Attributes
    ----------
    label : hashable
        Its name as the user has it; None where there is only one.
    items : ndarray
        Positions of its items among those that are looked at.
    n : int
        How many items it has, those that are not looked at among them.
    weights : ndarray or None
        Probabilities of the items that are looked at.
    samples : Any
        What the user gave: a Collection or samples, all of them.
    """

    label: Hashable
    items: np.ndarray
    n: int
    weights: np.ndarray | None
    samples: Any


@dataclass(frozen=True)
class Subject:
    """What a report is about.

    Attributes
    ----------
    similarity : Similarity
        Of all items that are looked at.
    collections : list of SampledCollection
        The collections.
    labels : list or None
        The label of each item, or a set of them: its group, or its collection where there are several.
    origin : ndarray
        The position of each item among all items.
    renderer : ItemRenderer
        What is shown of the items.
    vectors : array or None
        What an encoder made of the items, all of them.
    nested : bool
        Whether the groups are lists of texts, each by itself.
    tol : float or None
        The tolerance of scores.
    notes : list of str
        What was done otherwise than a reader might think.
    rng : int
        The seed.
    """

    similarity: Similarity
    collections: list[SampledCollection]
    labels: list[Any] | None
    origin: np.ndarray
    renderer: ItemRenderer
    vectors: Any
    nested: bool
    tol: float | None
    notes: list[str]
    rng: int

    @property
    def n(self) -> int:
        """How many items are looked at."""
        return self.similarity.n

    @property
    def total_items(self) -> int:
        """How many items there are."""
        return sum(collection.n for collection in self.collections)

    @property
    def has_several(self) -> bool:
        """Whether there are several collections."""
        return len(self.collections) > 1

    @property
    def kernel(self) -> Kernel:
        """The kernel with all its parameters."""
        return self.similarity.kernel

    @cached_property
    def position_kernel(self) -> PositionKernel:
        """The kernel that takes positions."""
        return PositionKernel(self.similarity)

    @cached_property
    def groups(self) -> Grouping | None:
        """Which items are in which group."""
        return None if self.labels is None else read(self.labels, self.n, None)

    @cached_property
    def weights(self) -> np.ndarray | None:
        """Probabilities of all items; each collection has as much as it has items."""
        if all(collection.weights is None for collection in self.collections):
            return None
        combined = np.empty(self.n)
        for collection in self.collections:
            collection_weights = (
                np.full(len(collection.items), 1 / len(collection.items))
                if collection.weights is None
                else collection.weights
            )
            combined[collection.items] = collection_weights * (len(collection.items) / self.n)
        return combined / combined.sum()

    def sample_positions(self, limit: int, purpose: str) -> np.ndarray:
        """Positions of at most so many items, at random where there are more, in order."""
        weighted = np.arange(self.n) if self.weights is None else np.flatnonzero(self.weights)
        if len(weighted) <= limit:
            return weighted
        return np.sort(generator(self.rng, f"report {purpose}").choice(weighted, limit, replace=False))

    def weights_at(self, items: np.ndarray) -> np.ndarray | None:
        """The probabilities of some items, divided by their sum."""
        if self.weights is None:
            return None
        weights = self.weights[items]
        return weights / weights.sum()

    @property
    def names(self) -> list[Any]:
        """What a reference may be called: the collections, or the groups."""
        if self.has_several:
            return [collection.label for collection in self.collections]
        return [] if self.groups is None else list(self.groups.labels)

    def is_name(self, reference: Any) -> bool:
        """Whether a reference is a name, and not samples; a group of several columns has a tuple for a label."""
        if isinstance(reference, tuple):
            return all(map(np.isscalar, reference)) and reference in self.names
        return bool(np.isscalar(reference))

    def name_of(self, collection: SampledCollection) -> str:
        """The name of a collection for people."""
        return "all items" if collection.label is None else label_name(collection.label, 60)


# ------------------------------------------------------------------------------------------------ from what is given


def subject_of(
    samples: Any, kernel: Any, *, by: Any, weights: Any, show: Any, rng: int, orders: list[float]
) -> Subject:
    """What a report is about, from what a user passes; see `vendimeter.report`."""
    inputs, similarity, vectors = read_input(samples, kernel, by, weights, rng)
    sources = _sources(inputs, show, as_kernel(kernel))
    return _build_subject(inputs, similarity, vectors, sources, rng, orders)


def _sources(inputs: ReportInput, show: Any, kernel: Kernel) -> list[Source]:
    """What is shown of each collection."""
    if inputs.names == [None]:
        samples = inputs.items if inputs.nested else inputs.samples[0]
        return [source_of(samples, show, kernel, inputs.sizes[0])]
    if show is not None and not isinstance(show, Mapping):
        raise InputError(f"show={brief(show)}; expected a mapping from the names of the collections.")
    unexpected = next((name for name in show or () if name not in inputs.names), None)
    if unexpected is not None:
        raise unknown("collection (in show)", unexpected, inputs.names)
    return [
        source_of(samples, (show or {}).get(name), kernel, size, f"[{name!r}]")
        for name, samples, size in zip(inputs.names, inputs.samples, inputs.sizes, strict=True)
    ]


def _build_subject(
    inputs: ReportInput,
    similarity: Similarity,
    vectors: Any,
    sources: list[Source],
    rng: int,
    orders: list[float],
) -> Subject:
    """All items, or a random sample where all would take too long."""
    starts = np.concatenate([[0], np.cumsum(inputs.sizes)]).astype(np.int64)
    total, notes = similarity.n, list(inputs.notes)
    affordable, tol = affordable_tol(similarity, orders, rng)
    origin = np.arange(total)
    sizes = [size for size in SAMPLE_SIZES if size < total]
    while not affordable and sizes:
        origin = _sample_positions(starts, inputs.weights, sizes.pop(0), rng)
        affordable, tol = affordable_tol(similarity.take(origin), orders, rng)
    if len(origin) < total:
        similarity = similarity.take(origin)
        sampling = "" if len(inputs.names) == 1 else ", as many of each collection as can be"
        notes.append(
            f"All that follows is about a random sample of {len(origin):,} of the {total:,} items{sampling}: with this "
            "kernel all of them would take too long for a report. The functions vendimeter.score and compare take all."
        )
    similarity = materialize(similarity)
    collections = []
    for i, name in enumerate(inputs.names):
        items = np.flatnonzero((origin >= starts[i]) & (origin < starts[i + 1]))
        weights = inputs.weights[i]
        if weights is not None:
            weights = weights[origin[items] - starts[i]]
            weights = weights / weights.sum()
        collections.append(SampledCollection(name, items, inputs.sizes[i], weights, inputs.samples[i]))
    labels = None if inputs.labels is None else [inputs.labels[i] for i in origin.tolist()]

    def locate(position: int) -> tuple[int, int]:
        origin_position = int(origin[position])
        collection = int(np.searchsorted(starts, origin_position, side="right")) - 1
        return collection, origin_position - int(starts[collection])

    if inputs.nested:
        namers = [_numberer(inputs.labels or [])]
    else:
        namers = [_namer(samples, size) for samples, size in zip(inputs.samples, inputs.sizes, strict=True)]

    def caption(position: int) -> str:
        collection, index = locate(position)
        words = namers[collection](index)
        label = None if labels is None else labels[position]
        if label is None:
            return words
        several = isinstance(label, list | set | frozenset)
        return f"{words} · {', '.join(map(label_as_text, label)) if several else label_as_text(label)}"

    return Subject(
        similarity,
        collections,
        labels,
        origin,
        ItemRenderer(sources, locate, caption),
        vectors if vectors is None or len(origin) == total else take(vectors, origin),
        inputs.nested,
        tol,
        notes,
        rng,
    )


def _numberer(labels: list[Any]) -> Callable[[int], str]:
    """The number of a text in its list; those of a list stand together."""
    first: list[int] = []
    for i, label in enumerate(labels):
        first.append(first[-1] if i and labels[i - 1] == label else i)
    return lambda position: f"text {position - first[position]}"


def _namer(samples: Any, size: int) -> Callable[[int], str]:
    """What items are called: by their names in the file, their places there, or their numbers.

    Of places in one file it is not said which, and never in which folder it is: who reads the page may not have it.
    """
    if not isinstance(samples, Collection):
        return lambda position: f"item {position}"
    if samples.ids is not None:
        return lambda position: str(samples.ids[position])
    ends = [_PLACE.fullmatch(samples.place(position)) for position in (0, size - 1)]
    single = len({match and match[3] for match in ends}) == 1

    def name(position: int) -> str:
        place = samples.place(position)
        match = _PLACE.fullmatch(place)
        if match is not None:
            return match[1] if single else f"{match[1]} of {_file_name(match[3])}"
        quoted = _QUOTED.fullmatch(place)
        return place if quoted is None else _file_name(quoted[2])

    return name


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def _sample_positions(
    starts: np.ndarray, weights: list[np.ndarray | None], size: int, rng: int
) -> np.ndarray:
    """Positions of a random sample, about as many of each collection; of weighted ones those of some weight."""
    draws = generator(rng, "report sample")
    drawn = []
    for i, collection_weights in enumerate(weights):
        candidates = np.arange(starts[i], starts[i + 1])
        candidates = candidates if collection_weights is None else candidates[collection_weights > 0]
        limit = max(1, size // len(weights))
        drawn.append(
            candidates
            if len(candidates) <= limit
            else np.sort(draws.choice(candidates, limit, replace=False))
        )
    return np.concatenate(drawn)
