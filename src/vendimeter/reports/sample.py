"""What a report is about: one collection, its groups, or several collections, as one list of items with labels."""

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
from vendimeter.errors import InputError, brief, unknown
from vendimeter.kernels import Kernel, as_kernel
from vendimeter.options import generator
from vendimeter.reports.given import Given, given_of
from vendimeter.reports.items import Shown, Source, source_of
from vendimeter.reports.words import joined, named
from vendimeter.scoring import plan
from vendimeter.similarity import Features, Pairwise, Similarity
from vendimeter.solvers.groups import held as dense_held

__all__ = ["DENSE", "Held", "Part", "Subject", "affordable_tol", "is_narrow", "kept", "subject_of"]


# ---------------------------------------------------------------------------------------------------------------- held

# One similarity for all analyses of a report: they are given positions, and this kernel looks them up.

DENSE = 5000  # items whose matrix is held, so that nothing is computed twice
NARROW = 1024  # features of which the matrix is small, whatever the number of items
TOLERANCES = (None, 1e-3, 1e-2)
LIMIT, SPARSE_LIMIT = 1e12, 1.5e11  # operations of a score: half a minute or so


@dataclass(frozen=True, eq=False)
class Held(Kernel):
    """The similarities of items whose positions are the samples.

    Encoders, fingerprints and n-grams are then computed once for all analyses, and parameters that come from data are
    those of all items.
    """

    whole: Similarity = field(repr=False)
    name: ClassVar[str] = "held"

    def __repr__(self) -> str:
        return repr(self.whole.kernel)

    def build(self, samples: Any, rng: int) -> Similarity:
        """The similarities of the items at these positions."""
        places = np.asarray(samples, dtype=np.int64)
        if len(places) == self.whole.n and (places == np.arange(len(places))).all():
            return self.whole
        return self.whole.take(places)


def kept(similarity: Similarity) -> Similarity:
    """The similarity so that asking again costs little; a user's function is called, and checked, once."""
    return dense_held(similarity, DENSE)


def is_narrow(similarity: Similarity) -> bool:
    """Whether the matrix of features is small, so that the number of items hardly matters."""
    return isinstance(similarity, Features) and similarity.width <= min(similarity.n, NARROW)


def affordable_tol(similarity: Similarity, orders: list[float], rng: int) -> tuple[bool, float | None]:
    """Whether a score of all items takes no longer than a report may, and to what tolerance it is computed then."""
    if isinstance(similarity, Pairwise) and similarity.n > DENSE:
        return False, None  # every analysis would compute all similarities anew
    limit = SPARSE_LIMIT if getattr(similarity, "sparse", False) else LIMIT
    places, kernel = np.arange(similarity.n), Held(similarity)
    for tol in TOLERANCES:
        found = plan(places, kernel, q=orders, tol=tol, rng=rng)
        work = found.flops + (found.otherwise.flops if found.otherwise is not None else 0.0)
        if work <= limit:
            return True, tol
    return False, TOLERANCES[-1]


# ------------------------------------------------------------------------------------------------------------- subject

SIZES = (
    20_000,
    10_000,
    7_500,
    5_000,
    3_000,
    2_000,
    1_000,
)  # of the sample, where all items would take too long


_PLACE = re.compile(r"(.+?) of (['\"])(.*)\2", re.DOTALL)  # "line 3 of 'data/captions.txt'"
_QUOTED = re.compile(r"(['\"])(.*)\1", re.DOTALL)


@dataclass(frozen=True)
class Part:
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
    parts : list of Part
        The collections.
    labels : list or None
        The label of each item, or a set of them: its group, or its collection where there are several.
    origin : ndarray
        The position of each item among all items.
    shown : Shown
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
    parts: list[Part]
    labels: list[Any] | None
    origin: np.ndarray
    shown: Shown
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
    def all(self) -> int:
        """How many items there are."""
        return sum(part.n for part in self.parts)

    @property
    def several(self) -> bool:
        """Whether there are several collections."""
        return len(self.parts) > 1

    @property
    def kernel(self) -> Kernel:
        """The kernel with all its parameters."""
        return self.similarity.kernel

    @cached_property
    def held(self) -> Held:
        """The kernel that takes positions."""
        return Held(self.similarity)

    @cached_property
    def groups(self) -> Grouping | None:
        """Which items are in which group."""
        return None if self.labels is None else read(self.labels, self.n, None)

    @cached_property
    def weights(self) -> np.ndarray | None:
        """Probabilities of all items; each collection has as much as it has items."""
        if all(part.weights is None for part in self.parts):
            return None
        found = np.empty(self.n)
        for part in self.parts:
            own = np.full(len(part.items), 1 / len(part.items)) if part.weights is None else part.weights
            found[part.items] = own * (len(part.items) / self.n)
        return found / found.sum()

    def some(self, most: int, purpose: str) -> np.ndarray:
        """Positions of at most so many items, at random where there are more, in order."""
        there = np.arange(self.n) if self.weights is None else np.flatnonzero(self.weights)
        if len(there) <= most:
            return there
        return np.sort(generator(self.rng, f"report {purpose}").choice(there, most, replace=False))

    def weights_at(self, items: np.ndarray) -> np.ndarray | None:
        """The probabilities of some items, divided by their sum."""
        if self.weights is None:
            return None
        found = self.weights[items]
        return found / found.sum()

    @property
    def names(self) -> list[Any]:
        """What a reference may be called: the collections, or the groups."""
        if self.several:
            return [part.label for part in self.parts]
        return [] if self.groups is None else list(self.groups.labels)

    def is_name(self, reference: Any) -> bool:
        """Whether a reference is a name, and not samples; a group of several columns has a tuple for a label."""
        if isinstance(reference, tuple):
            return all(map(np.isscalar, reference)) and reference in self.names
        return bool(np.isscalar(reference))

    def what(self, part: Part) -> str:
        """The name of a collection for people."""
        return "all items" if part.label is None else named(part.label, 60)


# ------------------------------------------------------------------------------------------------ from what is given


def subject_of(
    samples: Any, kernel: Any, *, by: Any, weights: Any, show: Any, rng: int, orders: list[float]
) -> Subject:
    """What a report is about, from what a user passes; see `vendimeter.report`."""
    given, similarity, vectors = given_of(samples, kernel, by, weights, rng)
    sources = _sources(given, show, as_kernel(kernel))
    return _looked_at(given, similarity, vectors, sources, rng, orders)


def _sources(given: Given, show: Any, kernel: Kernel) -> list[Source]:
    """What is shown of each collection."""
    if given.names == [None]:
        samples = given.items if given.nested else given.samples[0]
        return [source_of(samples, show, kernel, given.sizes[0])]
    if show is not None and not isinstance(show, Mapping):
        raise InputError(f"show={brief(show)}; expected a mapping from the names of the collections.")
    odd = next((name for name in show or () if name not in given.names), None)
    if odd is not None:
        raise unknown("collection (in show)", odd, given.names)
    return [
        source_of(samples, (show or {}).get(name), kernel, size, f"[{name!r}]")
        for name, samples, size in zip(given.names, given.samples, given.sizes, strict=True)
    ]


def _looked_at(
    given: Given, similarity: Similarity, vectors: Any, sources: list[Source], rng: int, orders: list[float]
) -> Subject:
    """All items, or a random sample where all would take too long."""
    starts = np.concatenate([[0], np.cumsum(given.sizes)]).astype(np.int64)
    whole, notes = similarity.n, list(given.notes)
    fine, tol = affordable_tol(similarity, orders, rng)
    origin = np.arange(whole)
    sizes = [size for size in SIZES if size < whole]
    while not fine and sizes:
        origin = _drawn(starts, given.weights, sizes.pop(0), rng)
        fine, tol = affordable_tol(similarity.take(origin), orders, rng)
    if len(origin) < whole:
        similarity = similarity.take(origin)
        each = "" if len(given.names) == 1 else ", as many of each collection as can be"
        notes.append(
            f"All that follows is about a random sample of {len(origin):,} of the {whole:,} items{each}: with this "
            "kernel all of them would take too long for a report. The functions vendimeter.score and compare take all."
        )
    similarity = kept(similarity)
    parts = []
    for i, name in enumerate(given.names):
        items = np.flatnonzero((origin >= starts[i]) & (origin < starts[i + 1]))
        weights = given.weights[i]
        if weights is not None:
            weights = weights[origin[items] - starts[i]]
            weights = weights / weights.sum()
        parts.append(Part(name, items, given.sizes[i], weights, given.samples[i]))
    labels = None if given.labels is None else [given.labels[i] for i in origin.tolist()]

    def place(position: int) -> tuple[int, int]:
        at = int(origin[position])
        part = int(np.searchsorted(starts, at, side="right")) - 1
        return part, at - int(starts[part])

    if given.nested:
        namers = [_numberer(given.labels or [])]
    else:
        namers = [_namer(samples, size) for samples, size in zip(given.samples, given.sizes, strict=True)]

    def caption(position: int) -> str:
        part, own = place(position)
        words = namers[part](own)
        label = None if labels is None else labels[position]
        if label is None:
            return words
        several = isinstance(label, list | set | frozenset)
        return f"{words} · {', '.join(map(joined, label)) if several else joined(label)}"

    return Subject(
        similarity,
        parts,
        labels,
        origin,
        Shown(sources, place, caption),
        vectors if vectors is None or len(origin) == whole else take(vectors, origin),
        given.nested,
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
    single = len({found and found[3] for found in ends}) == 1

    def name(position: int) -> str:
        place = samples.place(position)
        found = _PLACE.fullmatch(place)
        if found is not None:
            return found[1] if single else f"{found[1]} of {_base(found[3])}"
        quoted = _QUOTED.fullmatch(place)
        return place if quoted is None else _base(quoted[2])

    return name


def _base(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def _drawn(starts: np.ndarray, weights: list[np.ndarray | None], size: int, rng: int) -> np.ndarray:
    """Positions of a random sample, about as many of each collection; of weighted ones those of some weight."""
    draws = generator(rng, "report sample")
    found = []
    for i, own in enumerate(weights):
        there = np.arange(starts[i], starts[i + 1])
        there = there if own is None else there[own > 0]
        most = max(1, size // len(weights))
        found.append(there if len(there) <= most else np.sort(draws.choice(there, most, replace=False)))
    return np.concatenate(found)
