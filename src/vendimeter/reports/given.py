"""The input of a report: one collection, lists of texts, or several collections, as one list of items."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vendimeter.data import frames, tables
from vendimeter.data.arrays import blocks, is_sparse, length, refuse_set, to_list
from vendimeter.data.collection import Collection
from vendimeter.data.groups import join, read, split
from vendimeter.data.weights import probabilities
from vendimeter.errors import EmptyError, InputError
from vendimeter.intake import refuse_matrix, similarity_of
from vendimeter.kernels import Embed, FromDistances, Kernel, On, Precomputed, as_kernel
from vendimeter.messages import brief, in_group, unknown
from vendimeter.similarity import Features, Matrix, Similarity

__all__ = ["ReportInput", "read_input"]


@dataclass(frozen=True)
class ReportInput:
    """Items of all collections, one after another, with their names, labels and weights.

    Attributes
    ----------
    names : list
        The names of the collections; None for the only one.
    samples : list
        What was passed for each.
    items : Any
        The items of all of them, one after another.
    sizes : list of int
        How many items each has.
    labels : Any
        The label of each item, if there are any.
    weights : list
        Probabilities of the items of each collection, or None.
    nested : bool
        Whether the only collection is one of lists of texts, which are its groups.
    notes : tuple of str
        What was left out.
    """

    names: list[Hashable]
    samples: list[Any]
    items: Any
    sizes: list[int]
    labels: Any
    weights: list[np.ndarray | None]
    nested: bool = False
    notes: tuple[str, ...] = ()

    def similarities(self, kernel: Any, parsed_kernel: Kernel, rng: int) -> tuple[Similarity, Any]:
        """The similarity of all items, checked, and the vectors of an encoder; an error says where its item is."""
        try:
            similarity, vectors = _compute_similarity(self.items, kernel, parsed_kernel, rng)
            if isinstance(similarity, Matrix):
                similarity = similarity.checked()
            _looked_through(similarity)
            return similarity, vectors
        except InputError as error:
            failure = error  # of all collections together, where positions mean nothing to the user
        for name, collection in zip(self.names, self.samples, strict=True):
            samples = collection.samples if isinstance(collection, Collection) else collection
            try:
                _looked_through(
                    _compute_similarity(self.items if self.nested else samples, kernel, parsed_kernel, rng)[0]
                )
            except InputError as error:
                if isinstance(collection, Collection) and not self.nested:
                    collection.locate(error)
                error.at(collection=f"group {brief(name)}" if len(self.names) > 1 else None)
                raise
        raise failure


def _looked_through(similarity: Similarity) -> None:
    """Read all rows of features, which checks them and raises the error of a bad one."""
    if isinstance(similarity, Features):
        for block in blocks(similarity.n, 64 if similarity.sparse else similarity.width):
            similarity.rows(block)


def read_input(
    samples: Any, kernel: Any, by: Any, weights: Any, rng: int
) -> tuple[ReportInput, Similarity, Any]:
    """The input of a report, the similarity of all its items, and the vectors of an encoder, if it has one."""
    parsed_kernel = as_kernel(kernel)
    if isinstance(samples, Collection):
        samples.refuse_default(kernel)
        inputs = _read_nested(samples, by, weights) if samples.is_group else _read_one(samples, by, weights)
    else:
        samples = frames.known(samples)
        is_several = _is_several(samples, parsed_kernel)
        inputs = (
            _read_several(samples, kernel, parsed_kernel, by, weights)
            if is_several
            else _read_one(samples, by, weights)
        )
    similarity, vectors = inputs.similarities(kernel, parsed_kernel, rng)
    if inputs.labels is not None:
        refuse_set(inputs.items, "labels")
        tables.check_alignment(inputs.items, inputs.labels, "by")
        inputs = replace(inputs, labels=_check_labels(inputs.labels, similarity.n))
    return inputs, similarity, vectors


def _is_several(samples: Any, kernel: Kernel) -> bool:
    """Whether a mapping has a collection for each name; for a kernel that reads columns it is one table."""
    if not isinstance(samples, Mapping) or is_sparse(samples):
        return False
    are_tables = [
        isinstance(collection, Collection) or tables.has_columns(collection)
        for collection in samples.values()
    ]
    return not _reads_columns(kernel) or (len(are_tables) > 0 and all(are_tables))


def _reads_columns(kernel: Kernel) -> bool:
    return isinstance(kernel, On) or any(map(_reads_columns, kernel.parts))


def _read_one(samples: Any, by: Any, weights: Any) -> ReportInput:
    if isinstance(samples, Collection):
        labels, items = samples.labels_by(by), samples.one()
        weights = samples.probabilities() if weights is None else weights
    else:
        items, labels = samples, by
        if by is not None and tables.has_columns(samples):
            labels = tables.labels(samples, by)
    count = length(items)
    if not count:
        raise EmptyError("there are no samples; expected at least one.")
    if weights is not None:
        refuse_set(items, "weights")
        tables.check_alignment(items, weights, "weights")
    shares, _ = probabilities(weights, None, count)
    return ReportInput([None], [samples], items, [count], labels, [shares])


def _read_nested(samples: Collection, by: Any, weights: Any) -> ReportInput:
    """Flatten lists of texts into all texts, each labelled with the name of its list."""
    if weights is not None:
        raise InputError(
            "each sample is a list of texts, and weights were given; expected texts of equal weight. Leave the weights "
            "away."
        )
    groups = samples.groups(by)
    items, sizes = join(list(groups.values()))
    labels = [name for name, size in zip(groups, sizes.tolist(), strict=True) for _ in range(size)]
    empty = int(np.count_nonzero(sizes == 0))
    notes = (f"{empty:,} of the {len(groups):,} lists are empty, and have no score.",) if empty else ()
    return ReportInput([None], [samples], items, [int(sizes.sum())], labels, [None], nested=True, notes=notes)


def _read_several(
    samples: Mapping[Any, Any], kernel: Any, parsed_kernel: Kernel, by: Any, weights: Any
) -> ReportInput:
    if by is not None:
        raise InputError(
            "samples is a mapping of several collections, and by= groups the items of one; expected one of the two."
        )
    if isinstance(parsed_kernel, Precomputed | FromDistances):
        raise InputError(
            "the collections have a matrix each, which tells nothing of how similar items of different ones are; "
            "expected one matrix of all items, and by=labels."
        )
    if weights is not None and not isinstance(weights, Mapping):
        raise InputError(f"weights={brief(weights)}; expected a mapping from the names of the collections.")
    unexpected = next((name for name in weights or () if name not in samples), None)
    if unexpected is not None:
        raise unknown("collection (in weights)", unexpected, list(samples))
    samples_by_name: dict[Any, Any] = {}
    weights_by_name: dict[Any, Any] = {}
    for name, collection in samples.items():
        with in_group(name):
            if isinstance(collection, Collection):
                collection.refuse_default(kernel)
            samples_by_name[name] = (
                collection.one() if isinstance(collection, Collection) else frames.known(collection)
            )
            default_weights = collection.probabilities() if isinstance(collection, Collection) else None
            weights_by_name[name] = (weights or {}).get(name, default_weights)
    names, collections = split(samples_by_name)
    items, sizes = join(collections)  # an error where all are empty
    filled = [i for i, size in enumerate(sizes.tolist()) if size]
    empty = [name for name, size in zip(names, sizes.tolist(), strict=True) if not size]
    shares: list[np.ndarray | None] = []
    for i in filled:
        with in_group(names[i]):
            if isinstance(kernel, str) and kernel == "cosine":
                refuse_matrix(collections[i])
            shares.append(probabilities(weights_by_name[names[i]], None, int(sizes[i]))[0])
    kept_names = [names[i] for i in filled]
    return ReportInput(
        kept_names,
        [samples[name] for name in kept_names],
        items,
        [int(sizes[i]) for i in filled],
        [names[i] for i in filled for _ in range(int(sizes[i]))],
        shares,
        notes=tuple(f"The collection {brief(name)} is empty, and left out." for name in empty),
    )


def _compute_similarity(items: Any, kernel: Any, parsed_kernel: Kernel, rng: int) -> tuple[Similarity, Any]:
    """The similarity of the items, and the vectors of an encoder, which runs only once."""
    if not isinstance(parsed_kernel, Embed):
        return similarity_of(items, kernel, rng), None
    vectors = parsed_kernel.encode(items)
    similarity = parsed_kernel.kernel.similarity(vectors, rng=rng)
    return similarity.with_kernel(replace(parsed_kernel, kernel=similarity.kernel)), vectors


def _check_labels(labels: Any, n: int) -> list[Any]:
    """One label, or set of labels, per item, after a check that raises errors about them."""
    read(labels, n, None)
    return to_list(labels)
