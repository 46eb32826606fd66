"""The collections of a table as its metrics see them: samples, vectors, class probabilities, and what they are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from vendimeter.data import frames, tables
from vendimeter.data.arrays import (
    as_rows,
    is_frame_column,
    is_sparse,
    is_table,
    is_text,
    length,
    refuse_set,
    take,
    to_list,
)
from vendimeter.data.collection import Collection
from vendimeter.data.groups import join, read
from vendimeter.errors import EmptyError, InputError, about, brief, unknown
from vendimeter.intake import refuse_matrix
from vendimeter.kernels import (
    BLEU,
    MACCS,
    RBF,
    Cosine,
    Embed,
    Kernel,
    Laplacian,
    Morgan,
    NGram,
    Polynomial,
    ProbabilityProduct,
    RandomFeatures,
    RDKitFingerprint,
    as_kernel,
)
from vendimeter.metrics.features import feature_rows

__all__ = [
    "CLASSES",
    "MOLECULES",
    "OF_MOLECULES",
    "TEXTS",
    "VECTORS",
    "Given",
    "givens_of",
    "kernels_of",
    "kinds_of",
    "naming",
    "parts_of",
    "refuse_matrices",
]

VECTORS, TEXTS, MOLECULES, CLASSES = "vectors", "texts", "molecules", "classes"

OF_VECTORS = (Cosine, RBF, Laplacian, Polynomial, RandomFeatures)
OF_MOLECULES = (Morgan, RDKitFingerprint, MACCS)


@dataclass(frozen=True)
class Given:
    """One collection as the metrics of a table see it; what several of them need is made once.

    Attributes
    ----------
    samples : Any
        The items; lists of texts where `groups` says so.
    kernels : tuple of Kernel
        All of them, with every parameter fitted.
    weights : ndarray, optional
        Probabilities of the items.
    features : Any
        What turns samples into vectors, if they are none.
    probabilities : Any
        The class probabilities of the samples, a row each, if there are any.
    logits : bool
        Whether these are logits.
    groups : bool, optional
        Whether each sample is a list of texts, a group of its own; False where such lists are tokens.
    raw : Any
        What was given: a Collection, or the items with those among them that are no molecules.
    reference : Given, optional
        What the collection is compared with.
    """

    samples: Any
    kernels: tuple[Kernel, ...]
    weights: Any = None
    features: Any = None
    probabilities: Any = None
    logits: bool = False
    groups: bool | None = None
    raw: Any = None
    reference: Given | None = None
    _encoded: dict[int, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def items(self) -> Any:
        """The items; of groups, those of all of them, one after another."""
        return [text for group in self.samples for text in group] if self.groups else self.samples

    @property
    def n(self) -> int:
        """How many items there are."""
        return length(self.items)

    @property
    def lists(self) -> bool:
        """Whether each sample is a list: a group of texts, or the tokens of one."""
        return isinstance(next(iter(self.samples)), list | tuple | np.ndarray)

    def first(self, *kinds: type[Kernel]) -> Any:
        """The first kernel of these kinds; None where there is none."""
        return next((kernel for kernel in self.kernels if isinstance(kernel, kinds)), None)

    def under(self, kernel: Kernel) -> tuple[Any, Kernel]:
        """What to compare and the kernel for it: vectors where it has an encoder, which then runs only once."""
        if not isinstance(kernel, Embed):
            return self.samples, kernel
        rows = self.encoded(kernel)
        if not self.groups:
            return rows, kernel.kernel
        ends = np.cumsum([0, *map(len, self.samples)]).tolist()
        return [take(rows, slice(*ends[g : g + 2])) for g in range(len(self.samples))], kernel.kernel

    def encoded(self, kernel: Embed) -> Any:
        """The vectors of an encoder."""
        key = id(kernel.encoder)
        if key not in self._encoded:
            self._encoded[key] = kernel.encode(self.items)
        return self._encoded[key]

    @cached_property
    def vectors(self) -> Any:
        """The rows that distances are measured between: of `features`, or of the first kernel of vectors."""
        kernel = self.first(Embed, *OF_VECTORS)
        if self.features is None and isinstance(kernel, Embed):
            return self.encoded(kernel)
        rows = feature_rows(self.items, "a metric of features", features=self.features)
        if rows.shape[0] != self.n:
            raise InputError(
                f"features= gave {rows.shape[0]} rows for {self.n} samples; expected one a sample."
            )
        return rows

    def against(self, metric: str) -> Given:
        """The reference, which such a metric needs."""
        if self.reference is None:
            raise InputError(
                f"{metric} compares with a reference, and there is none; expected reference=, samples or the name of a "
                "collection in the table."
            )
        with about("reference"):
            self.reference.unweighted(metric)
        return self.reference

    def unweighted(self, metric: str) -> None:
        """Refuse weights, which a metric does not know."""
        if self.weights is not None:
            raise InputError(
                f"the collection has weights, and {metric} counts every sample once in a table; expected samples of "
                "equal weight. Pass collection.samples, or name the metrics that take weights: metrics=['intdiv']."
            )

    def classes(self, metric: str) -> Any:
        """The class probabilities, which such a metric needs."""
        if self.probabilities is None:
            raise InputError(
                f"{metric} needs the probabilities of classes; expected probabilities={{name: array of shape (samples, "
                "classes)}, or kernel='probability-product' for samples that are such rows."
            )
        return self.probabilities


def kinds_of(kernels: Sequence[Kernel], given: Given) -> set[str]:
    """What the kernels say that the samples are; only that decides which metrics are shown unasked."""
    kinds: set[str] = set()
    for kernel in kernels:
        if isinstance(kernel, NGram | BLEU):
            kinds.add(TEXTS)
        if isinstance(kernel, OF_MOLECULES):
            kinds.add(MOLECULES)
        if isinstance(kernel, Embed) or (isinstance(kernel, OF_VECTORS) and not is_sparse(given.samples)):
            kinds.add(VECTORS)
    if given.features is not None:
        kinds.add(VECTORS)
    if given.probabilities is not None:
        kinds.add(CLASSES)
    return kinds


def naming(name: Hashable) -> AbstractContextManager[None]:
    """Put the name of a collection in front of errors about it."""
    return about(f"collection {brief(name)}")


# ---------------------------------------------------------------------------------------------------- what is given


def parts_of(samples: Any, by: Any) -> tuple[list[Hashable], list[Any]]:
    """The names of the collections, and the collections."""
    if isinstance(samples, Collection):
        labels = samples.labels_by(by)
        if labels is None:
            return [samples.source or "samples"], [samples]
        places = _places(labels, len(samples))
        return list(places), [samples[where] for where in places.values()]
    if by is not None:
        samples = frames.known(samples)
        if is_table(samples) or isinstance(samples, Mapping):
            raise InputError(
                "samples is a table, or a mapping, and by= labels the items of one collection; expected a list or an "
                "array of them. Read a table with vendimeter.read, or pass a collection for each name."
            )
        refuse_set(samples, "labels")
        tables.check_alignment(samples, by, "by")
        places = _places(by, length(samples))
        return list(places), [_at(samples, where) for where in places.values()]
    if not isinstance(samples, Mapping):
        raise InputError(
            f"samples is {brief(samples)}; expected a collection for each name, such as {{'real': X, 'model': Y}}, or "
            "one collection with by=labels."
        )
    if not samples:
        raise EmptyError("there are no collections; expected at least one.")
    return list(samples), list(samples.values())


def _places(labels: Any, count: int) -> dict[Hashable, np.ndarray]:
    """The positions of each label, in the order in which they first appear."""
    found = read(labels, count, None)
    if not count:
        raise EmptyError("there are no samples; expected at least one.")
    return dict(zip(found.labels, np.split(found.items, found.starts[1:-1]), strict=True))


def _at(samples: Any, where: np.ndarray) -> Any:
    """The items at these positions; those of a column have an index of their own, which is not meant."""
    return take(to_list(samples) if is_frame_column(samples) else samples, where)


def kernels_of(kernel: Any) -> dict[str, Kernel]:
    """The kernels by their names; a single one has none."""
    if not isinstance(kernel, Mapping):
        return {"": as_kernel(kernel)}
    if not kernel:
        raise InputError("kernel is an empty mapping; expected at least one kernel.")
    found = {str(name): as_kernel(one) for name, one in kernel.items()}
    if len(found) < len(kernel):
        raise InputError(
            f"two kernels of {brief(list(kernel))} have one name as text; expected different names."
        )
    return found


def refuse_matrices(kernel: Any, names: list[Hashable], parts: list[Any]) -> None:
    """Refuse matrices of similarities where the default kernel would take them for vectors."""
    if isinstance(kernel, str) and kernel == "cosine":
        for name, part in zip(names, parts, strict=True):
            with naming(name):
                refuse_matrix(part.samples if isinstance(part, Collection) else part)


def givens_of(
    names: list[Hashable],
    parts: list[Any],
    kernels: dict[str, Kernel],
    reference: Any,
    features: Any,
    classes: tuple[Any, bool],
    groups: bool | None,
    rng: int,
) -> tuple[list[Given], list[str]]:
    """The collections as the metrics see them, each with its reference; kernels are fitted in place.

    `classes` are rows of class probabilities by the names of the collections, and whether they are logits.
    """
    probabilities, logits = classes
    if probabilities is not None and not isinstance(probabilities, Mapping):
        raise InputError(
            f"probabilities={brief(probabilities)}; expected a mapping with an array of shape (samples, classes) for "
            "each name."
        )
    odd = next((name for name in probabilities or () if name not in names), None)
    if odd is not None:
        raise unknown("collection (in probabilities)", odd, names)
    notes: list[str] = []
    listed = tuple(kernels.values())
    givens = []
    for name, part in zip(names, parts, strict=True):
        with naming(name):
            given, left_out = _given(part, listed, features, (probabilities or {}).get(name), groups)
        givens.append(replace(given, logits=logits) if name in (probabilities or {}) else given)
        notes += _no_molecules(given, left_out, brief(name))
    for title, one in kernels.items():
        if not one.fitted:
            kernels[title] = _fitted(one, givens, rng)
    listed = tuple(kernels.values())
    givens = [replace(given, kernels=listed) for given in givens]
    if len({bool(given.groups) for given in givens}) > 1:
        raise InputError(
            "some collections hold lists of texts, and others texts; expected one kind, such as lists of texts with "
            "groups=True."
        )
    if reference is None:
        return givens, notes
    try:
        own = dict(zip(names, givens, strict=True)).get(reference)
    except TypeError:  # samples, which are no name
        own = None
    if own is not None:
        return [given if given is own else replace(given, reference=own) for given in givens], notes
    if np.isscalar(reference):
        raise unknown("collection (as reference)", reference, names)
    with about("reference"):
        other, left_out = _given(reference, listed, features, None, groups)
    notes += _no_molecules(other, left_out)
    return [replace(given, reference=other) for given in givens], notes


def _no_molecules(given: Given, left_out: int, name: str = "") -> list[str]:
    """A note on what was left out of a collection; without a name, of the reference, which has no row."""
    if not left_out:
        return []
    seen = f"{left_out:,} of the {length(given.raw):,} samples of {name or 'the reference'} are no molecules"
    return [f"{seen}; {'n and all figures but Valid are of the others' if name else 'they are left out'}."]


def _fitted(kernel: Kernel, givens: Sequence[Given], rng: int) -> Kernel:
    """The kernel with the parameters that all collections together give it; encoders do not run again."""
    if isinstance(kernel, Embed):
        vectors = join([given.encoded(kernel) for given in givens])[0]
        return replace(kernel, kernel=kernel.kernel.fit(vectors, rng=rng))
    return kernel.fit(join([given.items for given in givens])[0], rng=rng)


def _given(
    part: Any, kernels: tuple[Kernel, ...], features: Any, rows: Any, groups: bool | None
) -> tuple[Given, int]:
    """One collection, and how many of its samples are no molecules though a kernel of molecules compares them."""
    weights, raw = None, part
    if isinstance(part, Collection):
        part.refuse_default(kernels[0].name if len(kernels) == 1 else None)
        weights = part.probabilities()
        groups = part.is_group if groups is None else groups
        part = part.samples
    else:
        raw = part = frames.known(part)
    if groups:
        part = _lists_of_texts(part)
        if weights is not None:
            raise InputError(
                "each sample is a list of texts, and there is one weight a list; expected texts of equal weight. Leave "
                "the weights away."
            )
    if length(part) == 0:
        raise EmptyError("there are no samples; expected at least one.")
    vectors = next((kernel for kernel in kernels if isinstance(kernel, OF_VECTORS)), None)
    if vectors is not None and is_text(part):
        as_rows(part, kernel=f"the {vectors.name} kernel")  # says which kernels there are for strings
    given = Given(part, kernels, weights, features, rows, False, groups, raw)
    own = given.first(ProbabilityProduct)
    if rows is not None:
        refuse_set(part, "probabilities")
    if rows is not None and (is_table(rows) or length(rows) != given.n):
        raise InputError(
            f"probabilities={brief(rows)}, and there are {given.n} samples; expected an array with one row a sample."
        )
    if rows is None and own is not None:
        given = replace(given, probabilities=part, logits=own.logits)
    kernel = None if groups else given.first(*OF_MOLECULES)
    if kernel is None or (keep := kernel.valid(part)).all():
        return given, 0
    if not keep.any():
        raise EmptyError("none of the samples is a molecule; expected at least one.")
    if weights is not None:
        raise InputError("some samples are no molecules, and there are weights; drop these samples first.")
    where = np.flatnonzero(keep)
    rows = None if given.probabilities is None else _at(given.probabilities, where)
    return replace(given, samples=_at(part, where), probabilities=rows), len(keep) - len(where)


def _lists_of_texts(samples: Any) -> list[list[str]]:
    """Groups of texts as lists."""
    items = to_list(samples) if is_frame_column(samples) else samples
    if isinstance(items, list | tuple):
        lists: list[Any] = [list(item) if isinstance(item, tuple) else item for item in items]
        if Collection(lists).is_nested:
            return lists
    raise InputError(f"groups=True, and the samples are {brief(samples)}; expected a list of lists of texts.")
