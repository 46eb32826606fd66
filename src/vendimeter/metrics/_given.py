"""The collections of a table as its metrics see them: samples, vectors, class probabilities, and what they are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from vendimeter import _frames
from vendimeter._arrays import is_sparse, is_table, length, take, to_list
from vendimeter._membership import join
from vendimeter._messages import brief, in_group, unknown
from vendimeter.errors import EmptyError, InputError
from vendimeter.io.collection import Collection
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
from vendimeter.metrics._inputs import feature_rows
from vendimeter.metrics.moments import Moments

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
    "parts_of",
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
    kernel : Kernel
        The first kernel, with every parameter fitted.
    weights : ndarray, optional
        Probabilities of the items.
    features : Any
        What turns samples into vectors, if they are none.
    probabilities : Any
        The class probabilities of the samples, if there are any.
    logits : bool
        Whether these are logits.
    groups : bool, optional
        Whether each sample is a list of texts, a group of its own; False where such lists are tokens.
    raw : Any
        The items as they were given, with those among them that are no molecules.
    reference : Given, optional
        What the collection is compared with.
    """

    samples: Any
    kernel: Kernel
    weights: Any = None
    features: Any = None
    probabilities: Any = None
    logits: bool = False
    groups: bool | None = None
    raw: Any = None
    reference: Given | None = None
    _encoded: dict[int, Any] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """How many items there are; of groups, the items of all of them."""
        return sum(map(len, self.samples)) if self.groups else length(self.samples)

    def under(self, kernel: Kernel) -> tuple[Any, Kernel]:
        """What to compare and the kernel for it: vectors where it has an encoder, which then runs only once."""
        return (self.encoded(kernel), kernel.kernel) if isinstance(kernel, Embed) else (self.samples, kernel)

    def encoded(self, kernel: Embed) -> Any:
        """The vectors of an encoder."""
        key = id(kernel.encoder)
        if key not in self._encoded:
            self._encoded[key] = kernel.encode(self.samples)
        return self._encoded[key]

    @cached_property
    def vectors(self) -> Any:
        """The rows that distances are measured between."""
        if self.features is None and isinstance(self.kernel, Embed):
            return self.encoded(self.kernel)
        return feature_rows(self.samples, "a metric of features", features=self.features)

    @cached_property
    def moments(self) -> Moments:
        """Mean and covariance of the vectors."""
        return Moments.of(self.vectors)

    def against(self, metric: str) -> Given:
        """The reference, which such a metric needs."""
        if self.reference is None:
            raise InputError(
                f"{metric} compares with a reference, and there is none; expected reference=, samples or the name of a "
                "collection in the table."
            )
        return self.reference

    def unweighted(self, metric: str) -> None:
        """Refuse weights, which a metric does not know."""
        if self.weights is not None:
            raise InputError(
                f"the collection has weights, and {metric} counts every sample once; expected samples of equal weight. "
                "Pass collection.samples, or name the metrics that take weights: metrics=['intdiv']."
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


def _class_rows(kernels: Sequence[Kernel], samples: Any) -> tuple[Any, bool]:
    """The samples as class probabilities and whether they are logits, where a kernel says that they are such rows."""
    found = next((kernel for kernel in kernels if isinstance(kernel, ProbabilityProduct)), None)
    return (None, False) if found is None else (samples, found.logits)


def _valid_only(samples: Any, kernels: Sequence[Kernel]) -> tuple[Any, int]:
    """The samples that are molecules, where a kernel is one of molecules; and how many are not."""
    kernel = next((kernel for kernel in kernels if isinstance(kernel, OF_MOLECULES)), None)
    if kernel is None:
        return samples, 0
    keep = kernel.valid(samples)
    return (samples, 0) if keep.all() else (take(list(samples), np.flatnonzero(keep)), int((~keep).sum()))


# ---------------------------------------------------------------------------------------------------- what is given


def parts_of(samples: Any, by: Any) -> tuple[list[Hashable], list[Any]]:
    """The names of the collections, and the collections."""
    if isinstance(samples, Collection):
        labels = samples.labels_by(by)
        if labels is None:
            return [samples.source or "samples"], [samples]
        places = _places(to_list(labels), len(samples))
        return list(places), [samples[where] for where in places.values()]
    if by is not None:
        samples = _frames.known(samples)
        if is_table(samples) or isinstance(samples, Mapping):
            raise InputError(
                "samples is a table, or a mapping, and by= labels the items of one collection; expected a list or an "
                "array of them. Read a table with vendimeter.read, or pass a collection for each name."
            )
        places = _places(to_list(by), length(samples))
        return list(places), [take(samples, where) for where in places.values()]
    if not isinstance(samples, Mapping):
        raise InputError(
            f"samples is {brief(samples)}; expected a collection for each name, such as {{'real': X, 'model': Y}}, or "
            "one collection with by=labels."
        )
    if not samples:
        raise EmptyError("there are no collections; expected at least one.")
    return list(samples), list(samples.values())


def _places(labels: list[Any], count: int) -> dict[Hashable, np.ndarray]:
    """The positions of each label, in the order in which they first appear."""
    if len(labels) != count:
        raise InputError(f"by has {len(labels)} labels and there are {count} samples; expected one a sample.")
    found: dict[Hashable, list[int]] = {}
    for i, label in enumerate(labels):
        if isinstance(label, list | dict | set):
            raise InputError(
                f"the label of item {i} is {brief(label)}; expected one label a sample: collections of a table do not "
                "overlap. Pass them one by one, {name: samples}."
            )
        found.setdefault(label, []).append(i)
    if not found:
        raise EmptyError("there are no samples; expected at least one.")
    return {label: np.array(where) for label, where in found.items()}


def kernels_of(kernel: Any) -> dict[str, Kernel]:
    """The kernels by their names; a single one has none."""
    if not isinstance(kernel, Mapping):
        return {"": as_kernel(kernel)}
    if not kernel:
        raise InputError("kernel is an empty mapping; expected at least one kernel.")
    return {str(name): as_kernel(one) for name, one in kernel.items()}


def givens_of(
    names: list[Hashable],
    parts: list[Any],
    kernels: dict[str, Kernel],
    reference: Any,
    features: Any,
    probabilities: Any,
    groups: bool | None,
    rng: int,
) -> tuple[list[Given], list[str]]:
    """The collections as the metrics see them, each with its reference; kernels are fitted in place."""
    if probabilities is not None and not isinstance(probabilities, Mapping):
        raise InputError(
            f"probabilities={brief(probabilities)}; expected a mapping with an array of shape (samples, classes) for "
            "each name."
        )
    odd = next((name for name in probabilities or () if name not in names), None)
    if odd is not None:
        raise unknown("collection (in probabilities)", odd, names)
    notes: list[str] = []
    listed = list(kernels.values())
    givens = []
    for name, part in zip(names, parts, strict=True):
        with in_group(name):
            given, left_out = _given(part, listed, features, groups)
        rows = None if probabilities is None else probabilities.get(name)
        givens.append(given if rows is None else replace(given, probabilities=rows, logits=False))
        if left_out:
            notes.append(
                f"{left_out:,} of the {length(given.raw):,} samples of {brief(name)} are no molecules; n and all "
                "figures but Valid are of the others."
            )
    for title, one in kernels.items():
        if not one.fitted:
            kernels[title] = one.fit(join([given.samples for given in givens])[0], rng=rng)
    first = next(iter(kernels.values()))
    givens = [replace(given, kernel=first) for given in givens]
    if reference is None:
        return givens, notes
    if isinstance(reference, str) or (isinstance(reference, Hashable) and reference in names):
        if reference not in names:
            raise unknown("collection (as reference)", reference, names)
        own = givens[names.index(reference)]
        return [given if given is own else replace(given, reference=own) for given in givens], notes
    with in_group("reference"):
        other = replace(_given(reference, listed, features, groups)[0], kernel=first)
    return [replace(given, reference=other) for given in givens], notes


def _given(part: Any, kernels: list[Kernel], features: Any, groups: bool | None) -> tuple[Given, int]:
    """One collection, and how many of its samples are no molecules though a kernel of molecules compares them."""
    weights = None
    if isinstance(part, Collection):
        part.refuse_default(kernels[0].name if len(kernels) == 1 else None)
        weights = part.probabilities()
        groups = part.is_group if groups is None else groups
        part = part.samples
    else:
        part = _frames.known(part)
    if groups and not _lists_of_texts(part):
        raise InputError(
            f"groups=True, and the samples are {brief(part)}; expected a list of lists of texts."
        )
    if length(part) == 0:
        raise EmptyError("there are no samples; expected at least one.")
    valid, left_out = (part, 0) if groups else _valid_only(part, kernels)
    if length(valid) == 0:
        raise EmptyError("none of the samples is a molecule; expected at least one.")
    if left_out and weights is not None:
        raise InputError("some samples are no molecules, and there are weights; drop these samples first.")
    rows, logits = _class_rows(kernels, part)
    return Given(valid, kernels[0], weights, features, rows, logits, groups, part), left_out


def _lists_of_texts(samples: Any) -> bool:
    """Whether the samples are groups of texts."""
    return isinstance(samples, list | tuple) and Collection(list(samples)).is_nested
