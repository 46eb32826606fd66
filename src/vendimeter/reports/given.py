"""What a user passes to a report: one collection, lists of texts, or several collections, as one list of items."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vendimeter.analysis.comparison.groups import _looked_through
from vendimeter.data import frames
from vendimeter.data import tables as _tables
from vendimeter.data.arrays import is_sparse, length, refuse_set, to_list
from vendimeter.data.collection import Collection
from vendimeter.data.groups import join, read, split
from vendimeter.data.weights import probabilities
from vendimeter.errors import EmptyError, InputError, brief, in_group, unknown
from vendimeter.intake import refuse_matrix, similarity_of
from vendimeter.kernels import Embed, FromDistances, Kernel, On, Precomputed, as_kernel
from vendimeter.similarity import Matrix, Similarity

__all__ = ["Given", "given_of"]


@dataclass(frozen=True)
class Given:
    """What was passed.

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

    def similarities(self, kernel: Any, chosen: Kernel, rng: int) -> tuple[Similarity, Any]:
        """Those of all items, checked, and what an encoder made of these; an error says where its item is."""
        try:
            similarity, vectors = _similar(self.items, kernel, chosen, rng)
            if isinstance(similarity, Matrix):
                similarity = similarity.checked()
            _looked_through(similarity)
            return similarity, vectors
        except InputError as error:
            failure = error  # of all collections together, where positions mean nothing to the user
        for name, part in zip(self.names, self.samples, strict=True):
            own = part.samples if isinstance(part, Collection) else part
            try:
                _looked_through(_similar(self.items if self.nested else own, kernel, chosen, rng)[0])
            except InputError as error:
                if isinstance(part, Collection) and not self.nested:
                    part.locate(error)
                error.at(collection=f"group {brief(name)}" if len(self.names) > 1 else None)
                raise
        raise failure


def given_of(samples: Any, kernel: Any, by: Any, weights: Any, rng: int) -> tuple[Given, Similarity, Any]:
    """What was passed, the similarities of all items, and what an encoder made of them."""
    chosen = as_kernel(kernel)
    if isinstance(samples, Collection):
        samples.refuse_default(kernel)
        given = _nested(samples, by, weights) if samples.is_group else _one(samples, by, weights)
    else:
        samples = frames.known(samples)
        several = _is_several(samples, chosen)
        given = _several(samples, kernel, chosen, by, weights) if several else _one(samples, by, weights)
    similarity, vectors = given.similarities(kernel, chosen, rng)
    if given.labels is not None:
        refuse_set(given.items, "labels")
        _tables.check_alignment(given.items, given.labels, "by")
        given = replace(given, labels=_labels(given.labels, similarity.n))
    return given, similarity, vectors


def _is_several(samples: Any, kernel: Kernel) -> bool:
    """Whether a mapping has a collection for each name; for a kernel that reads columns it is one table."""
    if not isinstance(samples, Mapping) or is_sparse(samples):
        return False
    tables = [isinstance(part, Collection) or _tables.has_columns(part) for part in samples.values()]
    return not _reads_columns(kernel) or (len(tables) > 0 and all(tables))


def _reads_columns(kernel: Kernel) -> bool:
    return isinstance(kernel, On) or any(map(_reads_columns, kernel.parts))


def _one(samples: Any, by: Any, weights: Any) -> Given:
    if isinstance(samples, Collection):
        labels, items = samples.labels_by(by), samples.one()
        weights = samples.probabilities() if weights is None else weights
    else:
        items, labels = samples, by
        if by is not None and _tables.has_columns(samples):
            labels = _tables.labels(samples, by)
    count = length(items)
    if not count:
        raise EmptyError("there are no samples; expected at least one.")
    if weights is not None:
        refuse_set(items, "weights")
        _tables.check_alignment(items, weights, "weights")
    shares, _ = probabilities(weights, None, count)
    return Given([None], [samples], items, [count], labels, [shares])


def _nested(samples: Collection, by: Any, weights: Any) -> Given:
    """Lists of texts: all texts, each with the name of its list."""
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
    return Given([None], [samples], items, [int(sizes.sum())], labels, [None], nested=True, notes=notes)


def _several(samples: Mapping[Any, Any], kernel: Any, chosen: Kernel, by: Any, weights: Any) -> Given:
    if by is not None:
        raise InputError(
            "samples is a mapping of several collections, and by= groups the items of one; expected one of the two."
        )
    if isinstance(chosen, Precomputed | FromDistances):
        raise InputError(
            "the collections have a matrix each, which tells nothing of how similar items of different ones are; "
            "expected one matrix of all items, and by=labels."
        )
    if weights is not None and not isinstance(weights, Mapping):
        raise InputError(f"weights={brief(weights)}; expected a mapping from the names of the collections.")
    odd = next((name for name in weights or () if name not in samples), None)
    if odd is not None:
        raise unknown("collection (in weights)", odd, list(samples))
    plain: dict[Any, Any] = {}
    own: dict[Any, Any] = {}
    for name, part in samples.items():
        with in_group(name):
            if isinstance(part, Collection):
                part.refuse_default(kernel)
            plain[name] = part.one() if isinstance(part, Collection) else frames.known(part)
            usual = part.probabilities() if isinstance(part, Collection) else None
            own[name] = (weights or {}).get(name, usual)
    names, parts = split(plain)
    items, sizes = join(parts)  # an error where all are empty
    there = [i for i, size in enumerate(sizes.tolist()) if size]
    empty = [name for name, size in zip(names, sizes.tolist(), strict=True) if not size]
    shares: list[np.ndarray | None] = []
    for i in there:
        with in_group(names[i]):
            if isinstance(kernel, str) and kernel == "cosine":
                refuse_matrix(parts[i])
            shares.append(probabilities(own[names[i]], None, int(sizes[i]))[0])
    kept = [names[i] for i in there]
    return Given(
        kept,
        [samples[name] for name in kept],
        items,
        [int(sizes[i]) for i in there],
        [names[i] for i in there for _ in range(int(sizes[i]))],
        shares,
        notes=tuple(f"The collection {brief(name)} is empty, and left out." for name in empty),
    )


def _similar(items: Any, kernel: Any, chosen: Kernel, rng: int) -> tuple[Similarity, Any]:
    """The similarities of the items, and what an encoder made of them, which runs only once."""
    if not isinstance(chosen, Embed):
        return similarity_of(items, kernel, rng), None
    vectors = chosen.encode(items)
    similarity = chosen.kernel.similarity(vectors, rng=rng)
    return similarity.with_kernel(replace(chosen, kernel=similarity.kernel)), vectors


def _labels(labels: Any, n: int) -> list[Any]:
    """One label, or set of labels, an item; what is wrong with them is said here."""
    read(labels, n, None)
    return to_list(labels)
