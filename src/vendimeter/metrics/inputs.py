"""The rows of a table: each a collection, seen through the kernels, with what else the metrics read of it."""

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
from vendimeter.data.tokens import Texts
from vendimeter.diversity import Diversity
from vendimeter.errors import EmptyError, InputError
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
from vendimeter.messages import about, brief, unknown
from vendimeter.metrics.features import feature_rows
from vendimeter.metrics.texts import Grouped, grouped
from vendimeter.present.notes import Note

__all__ = [
    "CLASSES",
    "MOLECULES",
    "OF_MOLECULES",
    "OF_VECTORS",
    "SIMILARITY",
    "TEXTS",
    "VECTORS",
    "Row",
    "diversities_by_name",
    "in_collection",
    "kernels_by_name",
    "refuse_matrices",
    "sample_kinds",
    "split_collections",
    "table_rows",
]

SIMILARITY = "similarity"
VECTORS, TEXTS, MOLECULES, CLASSES = "vectors", "texts", "molecules", "classes"

OF_VECTORS = (Cosine, RBF, Laplacian, Polynomial, RandomFeatures)
OF_MOLECULES = (Morgan, RDKitFingerprint, MACCS)


@dataclass(frozen=True, eq=False)
class Row:
    """A collection, and what a `Diversity` of it does not have; what several metrics need is made once.

    Nothing in a table asks how similar items of two collections are. So each row has a `Diversity` of its own for each
    kernel, fitted on all of them: joined, they would be a copy of all samples, with as many similarities as the square
    of their number.

    Attributes
    ----------
    samples : Any
        The items; lists of texts where `groups` says so.
    kernels : tuple of Kernel
        All of them, with every parameter fitted.
    rng : int
        The seed of everything random.
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
    original : Any
        The user's argument: a Collection, or the items with those among them that are no molecules.
    reference : Row, optional
        What the collection is compared with.
    """

    samples: Any
    kernels: tuple[Kernel, ...]
    rng: int = 0
    weights: Any = None
    features: Any = None
    probabilities: Any = None
    logits: bool = False
    groups: bool | None = None
    original: Any = None
    reference: Row | None = None
    _diversities: dict[int, Diversity] = field(default_factory=dict, repr=False)
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
    def holds_lists(self) -> bool:
        """Whether each sample is a list: a group of texts, or the tokens of one."""
        return isinstance(next(iter(self.samples)), list | tuple | np.ndarray)

    def first_kernel(self, *kinds: type[Kernel]) -> Any:
        """The first kernel of these kinds; None where there is none."""
        return next((kernel for kernel in self.kernels if isinstance(kernel, kinds)), None)

    def diversity(self, kernel: Kernel) -> Diversity:
        """The items, seen through one of the kernels; by the groups that they lie in, where they do."""
        key = id(kernel)
        if key not in self._diversities:
            if isinstance(kernel, Embed):
                items, kernel = self.embeddings(kernel), kernel.kernel
            else:
                items = self.texts if isinstance(kernel, NGram | BLEU) else self.items
            by = [g for g, group in enumerate(self.samples) for _ in group] if self.groups else None
            self._diversities[key] = Diversity(items, kernel, weights=self.weights, by=by, rng=self.rng)
        return self._diversities[key]

    def embeddings(self, kernel: Embed) -> Any:
        """The vectors of the encoder of a kernel, which runs only once."""
        key = id(kernel.encoder)
        if key not in self._encoded:
            self._encoded[key] = kernel.encode(self.items)
        return self._encoded[key]

    @cached_property
    def vectors(self) -> Any:
        """The rows that distances are measured between: of `features`, or of the first kernel of vectors."""
        kernel = self.first_kernel(Embed, *OF_VECTORS)
        if self.features is None and isinstance(kernel, Embed):
            return self.embeddings(kernel)
        rows = feature_rows(self.items, "a metric of features", features=self.features)
        if rows.shape[0] != self.n:
            raise InputError(
                f"features= gave {rows.shape[0]} rows for {self.n} samples; expected one a sample."
            )
        return rows

    @cached_property
    def texts(self) -> Texts:
        """The items as texts, which are split into tokens only once."""
        kernel = self.first_kernel(NGram, BLEU)
        return Texts.of(self.items, "" if kernel is None else kernel.name)

    def grouped_texts(self, metric: str) -> Grouped:
        """The texts for a metric of them, in their groups."""
        return replace(grouped(self.samples, metric, groups=self.groups), texts=self.texts)

    def forget(self) -> None:
        """Drop what no other row needs."""
        self._diversities.clear()
        vars(self).pop("texts", None)

    def required_reference(self, metric: str) -> Row:
        """The reference; an error where there is none, or where it has weights."""
        if self.reference is None:
            raise InputError(
                f"{metric} compares with a reference, and there is none; expected reference=, samples or the name of a "
                "collection in the table."
            )
        with about("reference"):
            self.reference.refuse_weights(metric)
        return self.reference

    def refuse_weights(self, metric: str) -> None:
        """Refuse weights, which this metric does not take."""
        if self.weights is not None:
            raise InputError(
                f"the collection has weights, and {metric} counts every sample once in a table; expected samples of "
                "equal weight. Pass collection.samples, or name the metrics that take weights: metrics=['intdiv']."
            )

    def required_probabilities(self, metric: str) -> Any:
        """The class probabilities; an error where there are none."""
        if self.probabilities is None:
            raise InputError(
                f"{metric} needs the probabilities of classes; expected probabilities={{name: array of shape (samples, "
                "classes)}, or kernel='probability-product' for samples that are such rows."
            )
        return self.probabilities


def sample_kinds(row: Row) -> set[str]:
    """What metrics can read of a row, as its kernels say; this alone decides which are shown by default."""
    kinds = {SIMILARITY}
    for kernel in row.kernels:
        if isinstance(kernel, NGram | BLEU):
            kinds.add(TEXTS)
        if isinstance(kernel, OF_MOLECULES):
            kinds.add(MOLECULES)
        if isinstance(kernel, Embed) or (isinstance(kernel, OF_VECTORS) and not is_sparse(row.samples)):
            kinds.add(VECTORS)
    if row.features is not None:
        kinds.add(VECTORS)
    if row.probabilities is not None:
        kinds.add(CLASSES)
    return kinds


def in_collection(name: Hashable) -> AbstractContextManager[None]:
    """Put the name of a collection in front of errors about it."""
    return about(f"collection {brief(name)}")


# ---------------------------------------------------------------------------------------------- arguments of the user's


def split_collections(samples: Any, by: Any) -> dict[Hashable, Any]:
    """The collections by their names."""
    if isinstance(samples, Collection):
        labels = samples.labels_by(by)
        if labels is None:
            return {samples.source or "samples": samples}
        positions = _label_positions(labels, len(samples))
        return {name: samples[indices] for name, indices in positions.items()}
    if by is not None:
        samples = frames.known(samples)
        if is_table(samples) or isinstance(samples, Mapping):
            raise InputError(
                "samples is a table, or a mapping, and by= labels the items of one collection; expected a list or an "
                "array of them. Read a table with vendimeter.read, or pass a collection for each name."
            )
        refuse_set(samples, "labels")
        tables.check_alignment(samples, by, "by")
        positions = _label_positions(by, length(samples))
        return {name: _take_items(samples, indices) for name, indices in positions.items()}
    if not isinstance(samples, Mapping):
        raise InputError(
            f"samples is {brief(samples)}; expected a collection for each name, such as {{'real': X, 'model': Y}}, or "
            "one collection with by=labels."
        )
    if not samples:
        raise EmptyError("there are no collections; expected at least one.")
    return dict(samples)


def _label_positions(labels: Any, count: int) -> dict[Hashable, np.ndarray]:
    """The positions of each label, in the order in which they first appear."""
    groups = read(labels, count, None)
    if not count:
        raise EmptyError("there are no samples; expected at least one.")
    return dict(zip(groups.labels, np.split(groups.items, groups.starts[1:-1]), strict=True))


def _take_items(samples: Any, positions: np.ndarray) -> Any:
    """The items at these positions, of a column too, whose own index is ignored."""
    return take(to_list(samples) if is_frame_column(samples) else samples, positions)


def kernels_by_name(kernel: Any) -> dict[str, Kernel]:
    """The kernels by their names; the name of a single one is an empty text."""
    if not isinstance(kernel, Mapping):
        return {"": as_kernel(kernel)}
    if not kernel:
        raise InputError("kernel is an empty mapping; expected at least one kernel.")
    kernels = {str(name): as_kernel(value) for name, value in kernel.items()}
    if len(kernels) < len(kernel):
        raise InputError(
            f"two kernels of {brief(list(kernel))} have one name as text; expected different names."
        )
    return kernels


def refuse_matrices(kernel: Any, collections: Mapping[Hashable, Any]) -> None:
    """Refuse matrices of similarities where the default kernel would take them for vectors."""
    if isinstance(kernel, str) and kernel == "cosine":
        for name, collection in collections.items():
            with in_collection(name):
                refuse_matrix(collection.samples if isinstance(collection, Collection) else collection)


def diversities_by_name(samples: Any) -> dict[Hashable, Diversity] | None:
    """Those of a mapping, or the groups of a single one, or all of it where there are none; None for other samples."""
    if isinstance(samples, Mapping) and any(isinstance(value, Diversity) for value in samples.values()):
        kernel = next(value.similarity.kernel for value in samples.values() if isinstance(value, Diversity))
        for name, value in samples.items():
            with in_collection(name):
                if not isinstance(value, Diversity):
                    raise InputError(f"it is {brief(value)}, and others are Diversities; expected one kind.")
                if value.similarity.kernel != kernel:
                    raise InputError(
                        f"it has the kernel {value.similarity.kernel!r}, and another Diversity {kernel!r}; expected "
                        "one kernel. Join them with vendimeter.Diversity.of({name: samples, …}, kernel)."
                    )
        return dict(samples)
    if not isinstance(samples, Diversity):
        return None
    groups = samples.groups
    if groups is None:
        return {"samples": samples}
    parts: dict[Hashable, Diversity] = {}
    for name, positions in zip(groups.labels, np.split(groups.items, groups.starts[1:-1]), strict=True):
        with in_collection(name):
            parts[name] = samples.take(positions)
    return parts


def table_rows(
    collections: Mapping[Hashable, Any],
    kernels: dict[str, Kernel],
    reference: Any,
    features: Any,
    classes: tuple[Any, bool],
    groups: bool | None,
    rng: int,
) -> tuple[list[Row], list[Note]]:
    """The rows, each with its reference, and what to note of them; kernels are fitted in place.

    `classes` are rows of class probabilities by the names of the collections, and whether they are logits.
    """
    names = list(collections)
    probabilities, logits = classes
    if probabilities is not None and not isinstance(probabilities, Mapping):
        raise InputError(
            f"probabilities={brief(probabilities)}; expected a mapping with an array of shape (samples, classes) for "
            "each name."
        )
    unknown_name = next((name for name in probabilities or () if name not in names), None)
    if unknown_name is not None:
        raise unknown("collection (in probabilities)", unknown_name, names)
    notes: list[Note] = []
    unfitted = tuple(kernels.values())
    rows = []
    for name, collection in collections.items():
        with in_collection(name):
            own = (probabilities or {}).get(name)
            row, left_out = _row(collection, unfitted, features, own, groups, rng)
        rows.append(replace(row, logits=logits) if name in (probabilities or {}) else row)
        notes += _left_out_notes(row, left_out, name)
    for title, kernel in kernels.items():
        if not kernel.fitted:
            kernels[title] = _fit(kernel, rows, rng)
    fitted_kernels = tuple(kernels.values())
    rows = [replace(row, kernels=fitted_kernels) for row in rows]
    if len({bool(row.groups) for row in rows}) > 1:
        raise InputError(
            "some collections hold lists of texts, and others texts; expected one kind, such as lists of texts with "
            "groups=True."
        )
    if reference is None:
        return rows, notes
    try:
        named_row = dict(zip(names, rows, strict=True)).get(reference)
    except TypeError:  # samples, which are no name
        named_row = None
    if named_row is not None:
        return [row if row is named_row else replace(row, reference=named_row) for row in rows], notes
    if np.isscalar(reference):
        raise unknown("collection (as reference)", reference, names)
    if isinstance(reference, Diversity):
        reference = Collection(reference.samples, weights=reference.weights, nested=False)
    with about("reference"):
        reference_row, left_out = _row(reference, fitted_kernels, features, None, groups, rng)
    notes += _left_out_notes(reference_row, left_out)
    return [replace(row, reference=reference_row) for row in rows], notes


def _left_out_notes(row: Row, left_out: int, name: Hashable = None) -> list[Note]:
    """A note on what was left out of a collection; without a name, of the reference, which has no row."""
    if not left_out:
        return []
    n = length(row.original)
    whose = "the reference" if name is None else brief(name)
    then = "they are left out" if name is None else "n and all figures but Valid are of the others"
    text = f"{left_out:,} of the {n:,} samples of {whose} are no molecules; {then}."
    return [Note("no-molecules", text, {"collection": name, "left_out": left_out, "n": n})]


def _fit(kernel: Kernel, rows: Sequence[Row], rng: int) -> Kernel:
    """The kernel with the parameters that all collections together give it; encoders do not run again."""
    if isinstance(kernel, Embed):
        vectors = join([row.embeddings(kernel) for row in rows])[0]
        return replace(kernel, kernel=kernel.kernel.fit(vectors, rng=rng))
    return kernel.fit(join([row.items for row in rows])[0], rng=rng)


def _row(
    samples: Any,
    kernels: tuple[Kernel, ...],
    features: Any,
    probabilities: Any,
    groups: bool | None,
    rng: int,
) -> tuple[Row, int]:
    """One collection, and how many of its samples are no molecules though a kernel of molecules compares them."""
    weights, original, diversity = None, samples, None
    if isinstance(samples, Diversity):
        diversity, weights, groups = samples, samples.weights, False
        samples = diversity.samples
    elif isinstance(samples, Collection):
        samples.refuse_default(kernels[0].name if len(kernels) == 1 else None)
        weights = samples.probabilities()
        groups = samples.is_group if groups is None else groups
        samples = samples.samples
    else:
        original = samples = frames.known(samples)
    if groups:
        samples = _lists_of_texts(samples)
        if weights is not None:
            raise InputError(
                "each sample is a list of texts, and there is one weight a list; expected texts of equal weight. Leave "
                "the weights away."
            )
    if length(samples) == 0:
        raise EmptyError("there are no samples; expected at least one.")
    if groups and not any(samples):
        raise EmptyError("every group is empty; expected at least one text.")
    vector_kernel = next((kernel for kernel in kernels if isinstance(kernel, OF_VECTORS)), None)
    if vector_kernel is not None and is_text(samples):
        # An error that names the kernels for strings.
        as_rows(samples, kernel=f"the {vector_kernel.name} kernel")
    row = Row(samples, kernels, rng, weights, features, probabilities, False, groups, original)
    class_kernel = row.first_kernel(ProbabilityProduct)
    if probabilities is not None:
        refuse_set(samples, "probabilities")
    if probabilities is not None and (is_table(probabilities) or length(probabilities) != row.n):
        raise InputError(
            f"probabilities={brief(probabilities)}, and there are {row.n} samples; expected an array with one row a "
            "sample."
        )
    if probabilities is None and class_kernel is not None:
        row = replace(row, probabilities=samples, logits=class_kernel.logits)
    if diversity is not None:
        row._diversities.update({id(kernel): diversity for kernel in kernels})
        row._encoded.update(
            {id(kernel.encoder): diversity.vectors for kernel in kernels if isinstance(kernel, Embed)}
        )
        return row, 0
    molecule_kernel = None if groups else row.first_kernel(*OF_MOLECULES)
    if molecule_kernel is None or (keep := molecule_kernel.valid(samples)).all():
        return row, 0
    if not keep.any():
        raise EmptyError("none of the samples is a molecule; expected at least one.")
    if weights is not None:
        raise InputError("some samples are no molecules, and there are weights; drop these samples first.")
    positions = np.flatnonzero(keep)
    probabilities = None if row.probabilities is None else _take_items(row.probabilities, positions)
    row = replace(row, samples=_take_items(samples, positions), probabilities=probabilities)
    return row, len(keep) - len(positions)


def _lists_of_texts(samples: Any) -> list[list[str]]:
    """Groups of texts as lists."""
    items = to_list(samples) if is_frame_column(samples) else samples
    if isinstance(items, list | tuple):
        lists: list[Any] = [list(item) if isinstance(item, tuple) else item for item in items]
        if Collection(lists).is_nested:
            return lists
    raise InputError(f"groups=True, and the samples are {brief(samples)}; expected a list of lists of texts.")
