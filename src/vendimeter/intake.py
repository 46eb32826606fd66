"""What users pass, as everything else takes it: samples with their weights, labels, and the places they were read at.

`source_of` takes one collection, `joined_source` several, which it joins. Collections that were read, tables and frames
of any library, arrays on a device, and groups given one by one are told apart here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vendimeter.data import frames, tables
from vendimeter.data.arrays import blocks, csr, is_sparse, is_table, length, refuse_set, take, to_list
from vendimeter.data.collection import Collection
from vendimeter.data.devices import (
    diagonal,
    double,
    is_foreign,
    is_real,
    local,
    namespace,
    transposed,
    wide_mode,
)
from vendimeter.data.groups import Grouping, join, read, split, with_weights
from vendimeter.data.tables import check_alignment
from vendimeter.data.tokens import Texts
from vendimeter.data.weights import probabilities, raw_weights
from vendimeter.errors import EmptyError, InputError
from vendimeter.kernels import FromDistances, Kernel, Precomputed, as_kernel
from vendimeter.messages import brief, in_group, shape_of, unknown
from vendimeter.present.numbers import count_of
from vendimeter.similarity import Features

__all__ = [
    "Named",
    "Source",
    "is_several",
    "joined_source",
    "joint_weights",
    "known_groups",
    "named_groups",
    "refuse_matrix",
    "source_of",
    "taken",
    "weighted_error",
    "weights_within",
]


@dataclass(frozen=True, eq=False)
class Source:
    """Samples, with what came with them.

    Attributes
    ----------
    samples : Any
        What a kernel takes; of several collections, those of all of them, one after another. None for some of the
        samples of another source.
    by : Any
        The labels as they were passed, or those of a collection; the names of rows of weights.
    weights, counts : Any
        As they were passed, not checked yet; one of them is None.
    collections : tuple of Named
        What was passed: one collection without a name, or several with theirs.
    left_out : int
        Records that were left out on reading.
    lists : Collection or None
        A collection of lists of texts, which are the collections.
    """

    samples: Any
    by: Any = None
    weights: Any = None
    counts: Any = None
    collections: tuple[Named, ...] = ()
    left_out: int = 0
    lists: Collection | None = None

    @property
    def weighting(self) -> str | None:
        """Which were given: "weights", "counts", or neither."""
        return "weights" if self.weights is not None else None if self.counts is None else "counts"

    @property
    def has_rows(self) -> bool:
        """Whether there is a row of weights, or counts, for each group."""
        return _dimensions(self.weights if self.counts is None else self.counts) == 2

    @property
    def collection(self) -> Collection | None:
        """The only collection, if it is one that was read."""
        samples = self.collections[0].samples if len(self.collections) == 1 else None
        return samples if isinstance(samples, Collection) else None

    @property
    def is_joined(self) -> bool:
        """Whether collections were passed by their names, one or several."""
        return len(self.collections) > 1 or any(one.name is not None for one in self.collections)

    @property
    def has_groups(self) -> bool:
        """Whether something says of which group the items are."""
        return self.is_joined or self.by is not None or self.has_rows

    def groups(self, n: int) -> Grouping:
        """Which items are in which group, where there are groups."""
        if self.is_joined:
            sizes = np.array([one.size for one in self.collections], dtype=np.int64)
            starts = np.concatenate([[0], np.cumsum(sizes)])
            labels, items = [one.name for one in self.collections], np.arange(starts[-1])
            weights = weights_within(self.collections)
            if weights is None:
                return Grouping(labels, starts, items, None, sizes)
            return with_weights(labels, starts, items, weights, "weights")
        numbers, by = self.weights if self.counts is None else self.counts, self.by
        refuse_set(self.samples, "labels")
        if self.has_rows:
            if by is None and hasattr(numbers, "index") and hasattr(numbers, "columns"):
                by = numbers.index  # the rows of a pandas frame have names
        else:
            check_alignment(self.samples, by, "by")
        return read(by, n, raw_weights(self.weights, self.counts, dimensions=2))

    def take(self, positions: np.ndarray, weights: np.ndarray | None) -> Source:
        """What came with some of the samples; weights are those of all n, and are divided by their sum."""
        counts = None
        if self.has_rows:
            rows = raw_weights(self.weights, self.counts, dimensions=2)
            assert rows is not None
            values = rows.values[:, positions]
            totals = np.maximum(values.sum(axis=1, keepdims=True), np.finfo(float).tiny)
            weights, counts = (values / totals, None) if self.counts is None else (None, values)
            return Source(None, self.by, weights, counts, left_out=self.left_out)
        if self.is_joined:
            return self._take_joined(positions, weights)
        if self.counts is not None:
            counts, weights = take(raw_weights(None, self.counts).values, positions), None  # type: ignore[union-attr]
        elif weights is not None:
            weights = weights[positions] / weights[positions].sum()
        labels = self.by
        if labels is not None:
            labels = take(labels if is_indexed(labels) else to_list(labels), positions)
        return Source(None, labels, weights, counts, left_out=self.left_out)

    def _take_joined(self, positions: np.ndarray, weights: np.ndarray | None) -> Source:
        """Some of the samples of several collections, each of which weighs as much as it has items of these."""
        owners = np.searchsorted(np.cumsum([one.size for one in self.collections]), positions, side="right")
        if (np.diff(owners) < 0).any():  # no longer one after another
            shares = None if weights is None else weights[positions] / weights[positions].sum()
            labels = [self.collections[g].name for g in owners.tolist()]
            return Source(None, labels, shares, None, left_out=self.left_out)
        collections = []
        for g in np.unique(owners).tolist():
            members, one = positions[owners == g], self.collections[g]
            shares = None
            if one.weights is not None and weights is not None:
                shares = weights[members] / (weights[members].sum() or 1.0)
            collections.append(replace(one, size=len(members), weights=shares))
        return Source(
            None,
            weights=joint_weights(collections),
            collections=tuple(collections),
            left_out=_left_out(collections) if self.lists is None else self.left_out,
            lists=self.lists,
        )

    def column(self, name: str) -> Any:
        """A column that came with the samples, by its name; None where they have no columns."""
        if self.collection is not None:
            return self.collection[name]
        return tables.column(self.samples, name) if tables.has_columns(self.samples) else None

    def refuse_matrix(self, kernel: Any) -> None:
        """Under the default kernel, refuse a matrix of similarities or distances."""
        if isinstance(kernel, str) and kernel == "cosine" and not self.is_joined:
            refuse_matrix(self.samples)

    def locate(self, error: InputError, kernel: Kernel, rng: int, is_new: bool = True) -> None:
        """Say in an error where its item was read; of several collections, raise that of the one which fails alone.

        Which one that is, is looked for only where the error may be about an item: one that is named, or, if `is_new`,
        any, as none has been seen by the kernel.
        """
        if not self.is_joined:
            if self.collection is not None:
                self.collection.locate(error)
            return
        if error.item is None and (error.option is not None or not is_new):  # it is not about the samples
            return
        # Positions in the joint samples mean nothing to the user.
        for one in self.collections:
            if one.size:
                one.look(kernel, rng)

    def describe(self) -> str:
        """How many samples there are, and what they are."""
        samples, count = self.samples, length(self.samples)
        shape = getattr(samples, "shape", None)
        kind = None if self.collection is None else self.collection.kind
        if shape is not None and len(shape) > 1 and not is_table(samples):
            return f"{'×'.join(f'{size:,}' for size in shape)} {'sparse' if is_sparse(samples) else samples.dtype}"
        if kind is None and isinstance(samples, list | tuple) and samples and isinstance(samples[0], str):
            kind = "text" if count == 1 else "texts"
        return f"{count:,} {kind or ('item' if count == 1 else 'items')}"

    def describe_groups(self) -> str:
        """How many groups there are, as far as that is known without a look at the labels."""
        if len(self.collections) > 1:
            return f", {len(self.collections)} collections"
        if self.by is None:
            return f", by rows of {self.weighting}" if self.has_rows else ""
        try:
            count = len(set(to_list(self.by)))
        except TypeError:  # sets of labels
            return ", by sets of labels"
        return f", by {count_of(count, 'group')}"


@dataclass(frozen=True, eq=False)
class Named:
    """One of several collections.

    Attributes
    ----------
    name : label
        Its name; None for the only one.
    samples : Any
        What was passed for it.
    items : Any
        The same as kernels take it.
    size : int
        How many items it has.
    weights : ndarray or None
        The probability of each of its items, where it is one of several; None if uniform.
    """

    name: Hashable
    samples: Any
    items: Any
    size: int
    weights: np.ndarray | None = None

    @contextmanager
    def located(self) -> Iterator[None]:
        """Say in errors which collection they are about, and where the item was read."""
        try:
            yield
        except InputError as error:
            if isinstance(self.samples, Collection):
                self.samples.locate(error)
            error.at(collection=f"group {brief(self.name)}")
            raise

    def look(self, kernel: Kernel, rng: int) -> None:
        """Raise the error of a collection that fails by itself."""
        with self.located():
            similarity = kernel.similarity(self.items, rng=rng)
            if isinstance(similarity, Features):  # to read rows is to check them
                for block in blocks(similarity.n, 64 if similarity.sparse else similarity.width):
                    similarity.rows(block)


def taken(samples: Any, positions: np.ndarray) -> Any:
    """The samples at these positions, of a table too."""
    if isinstance(samples, Texts):
        return samples.take(positions)
    if tables.is_records(samples) or not tables.has_columns(samples):
        return take(samples if is_indexed(samples) else to_list(samples), positions)
    return {name: take(column, positions) for name, column in tables.columns(samples).items()}


def is_indexed(samples: Any) -> bool:
    """Whether a sample is at its position: not in a column of a frame, which may have an index of its own."""
    return isinstance(samples, np.ndarray | list | tuple) or is_sparse(samples) or is_foreign(samples)


def _dimensions(numbers: Any) -> int:
    """Of weights or counts: 1, or 2 for a row a group."""
    if numbers is None:
        return 0
    shape = getattr(numbers, "shape", None)
    if shape is not None:
        return len(shape)
    first = next(iter(numbers), None) if isinstance(numbers, list | tuple) else None
    return 1 + (isinstance(first, list | tuple) or getattr(first, "ndim", 0) > 0)


# ------------------------------------------------------------------------------------------------------ one collection


def source_of(samples: Any, kernel: Any, by: Any = None, weights: Any = None, counts: Any = None) -> Source:
    """One collection, as users pass it.

    Lists of texts of a collection that was read are its groups: then all texts are the samples.
    """
    weights, counts = frames.known(weights), frames.known(counts)
    if isinstance(samples, Collection):
        samples.refuse_default(kernel)
        left_out, labels = samples.skipped.count, samples.labels_by(by)
        if samples.is_group:
            if weights is not None or counts is not None:
                raise InputError(
                    "each sample is a list of texts, and weights or counts were given; expected texts of equal weight. "
                    "Leave them away."
                )
            return replace(joined_source(samples.groups(by), kernel), left_out=left_out, lists=samples)
        if weights is None and counts is None:
            weights = samples.probabilities()
        collection = Named(None, samples, samples.samples, len(samples))
        source = Source(samples.samples, labels, weights, counts, (collection,), left_out)
    else:
        samples = frames.known(samples)
        if by is not None and tables.has_columns(samples):
            by = tables.labels(samples, by)
        source = Source(samples, by, weights, counts)
    if source.weighting is not None:
        refuse_set(samples, source.weighting)
        numbers = weights if counts is None else counts
        check_alignment(source.samples, numbers, source.weighting, by_column=source.has_rows)
    return source


# ----------------------------------------------------------------------------------------------- several collections


def joined_source(groups: Any, kernel_option: Any, weights: Any = None, rng: int = 0) -> Source:
    """One collection of a mapping, a list, or an array of groups × items × columns; empty ones are groups, too."""
    kernel: Kernel = as_kernel(kernel_option)
    groups = known_groups(groups)
    if isinstance(kernel, Precomputed | FromDistances):
        raise InputError(
            "the groups have a matrix each, which tells nothing of how similar items of different groups are; expected "
            "one matrix of all items, and by=labels. For the score of each by itself use vendimeter.score_groups."
        )
    collections = named_groups(groups, kernel_option, weights)
    if len(getattr(groups, "shape", ())) == 3:  # a reshape makes no copy
        count, size, width = groups.shape
        joined = namespace(groups).reshape(groups, (count * size, width))
    else:
        items = [one.items for one in collections]
        with wide_mode("float64", items):
            joined, _ = join(items)
    return Source(joined, None, joint_weights(collections), None, collections, _left_out(collections))


def known_groups(groups: Any) -> Any:
    """Groups given one by one: an array of them, else a mapping; an error for anything else."""
    stack: Any = local(groups)
    if isinstance(stack, np.ndarray) or is_foreign(stack):
        has_groups = len(stack.shape) >= 3
    else:
        has_groups = isinstance(groups, Mapping | list | tuple)
    if not has_groups or is_table(groups) or is_sparse(groups) or tables.is_records(groups):
        raise InputError(
            f"samples is one collection ({brief(groups)}) and by is missing; expected by=labels (or the name of a "
            "column), a mapping label → samples, a list of groups, or an array of groups × items × columns."
        )
    if isinstance(groups, list | tuple):
        return dict(enumerate(groups))
    if isinstance(groups, Mapping):
        return groups
    if 0 in stack.shape:
        raise EmptyError(f"samples has shape {shape_of(stack.shape)}; expected at least one group and item.")
    return stack


def named_groups(groups: Any, kernel: Any, weights: Any = None) -> tuple[Named, ...]:
    """Each of the groups that `known_groups` gave, after the checks of the default kernel.

    Weights are a mapping of those of some; a collection that was read may have its own.
    """
    passed, items_by_name = groups, groups
    if isinstance(groups, Mapping):
        passed = {name: _opened(name, samples, kernel) for name, samples in groups.items()}
        items_by_name = {
            name: samples.samples if isinstance(samples, Collection) else samples
            for name, samples in passed.items()
        }
    labels, parts = split(items_by_name)
    if isinstance(kernel, str) and kernel == "cosine":
        for label, items in zip(labels, parts, strict=True):
            with in_group(label):
                refuse_matrix(items)
    if weights is not None and not isinstance(weights, Mapping):
        raise InputError(f"weights={brief(weights)}; expected a mapping from the names of the collections.")
    unexpected = next((name for name in weights or () if name not in labels), None)
    if unexpected is not None:
        raise unknown("collection (in weights)", unexpected, labels)
    collections = []
    for label, items in zip(labels, parts, strict=True):
        samples, size, shares = passed[label] if isinstance(passed, Mapping) else items, length(items), None
        given = samples.probabilities() if isinstance(samples, Collection) else None
        given = weights.get(label, given) if weights else given
        if given is not None and size:
            with in_group(label):
                shares, _ = probabilities(given, None, size)
        collections.append(Named(label, samples, items, size, shares))
    return tuple(collections)


def weights_within(collections: Sequence[Named]) -> np.ndarray | None:
    """The probability of each item within its collection, one collection after another; None if all are uniform."""
    if all(one.weights is None for one in collections):
        return None
    return np.concatenate(
        [
            np.full(one.size, 1 / max(one.size, 1)) if one.weights is None else one.weights
            for one in collections
        ]
    )


def joint_weights(collections: Sequence[Named]) -> np.ndarray | None:
    """The probability of each item, where each collection weighs as much as it has items; None if all are uniform."""
    shares, sizes = weights_within(collections), np.array([one.size for one in collections])
    if shares is None:
        return None
    shares = shares * np.repeat(sizes / sizes.sum(), sizes)
    return shares / shares.sum()


def _left_out(collections: Sequence[Named]) -> int:
    """Records of these collections that were left out on reading."""
    return sum(one.samples.skipped.count for one in collections if isinstance(one.samples, Collection))


def is_several(samples: Any, by: Any, weights: Any, counts: Any) -> bool:
    """Whether samples are groups given one by one: nothing says of which group the items of one collection are."""
    if by is not None or isinstance(samples, Collection):
        return False
    raw = raw_weights(weights, counts, dimensions=2)
    if raw is not None and raw.values.ndim == 1:
        raise InputError(
            f"{raw.name} go with one collection; expected by=labels with them, one number an item. For groups "
            "given one by one, join them into one collection first.",
            option=raw.name,
        )
    return raw is None


def _opened(name: Any, samples: Any, kernel: Any) -> Any:
    """A collection that was read as it is, after its checks; frames of any library as one that is known."""
    if not isinstance(samples, Collection):
        return frames.known(samples)
    with in_group(name):
        samples.refuse_default(kernel)
        samples.one()
    return samples


# --------------------------------------------------------------------------------------------------- what is refused


def weighted_error(what: str, metric: str, weighting: str = "weights") -> InputError:
    """The error for weights or counts of samples, where a metric counts every sample once."""
    return InputError(
        f"the {what} has {weighting}, and {metric} counts every sample once; expected samples of equal weight. Pass "
        f"{what}.samples to leave the {weighting} away."
    )


def refuse_matrix(samples: Any) -> None:
    """Rows of a matrix of similarities or distances are no embeddings; under the default kernel it is a mistake."""
    rows = _square(samples)
    if rows is None:
        return
    sparse, xp = is_sparse(rows), None if is_sparse(rows) else namespace(rows)
    own = rows.diagonal() if sparse else diagonal(rows)
    if is_foreign(rows):  # not all libraries find the largest of all dtypes
        rows = double(rows, copy=False)
    highest = float(rows.max() if sparse else xp.max(rows))  # type: ignore[union-attr]
    like_one, like_zero = np.allclose(own, 1, rtol=0, atol=1e-6), np.abs(own).max() <= 1e-6 * highest
    if not (like_one or like_zero):
        return
    wide = rows.astype(np.float64) if sparse else double(rows)
    gap = abs(wide - (wide.T if sparse else transposed(wide)))
    if not float(gap.max() if sparse else xp.max(gap)) <= 1e-6:  # type: ignore[union-attr]
        return
    lowest = float(rows.min() if sparse else xp.min(rows))  # type: ignore[union-attr]
    size = f"{rows.shape[0]}×{rows.shape[1]}"
    if like_one:
        raise InputError(
            f"samples is a symmetric {size} array with a diagonal of 1, which looks like a similarity "
            "matrix; the default kernel expected embeddings. Pass kernel='precomputed', or "
            "kernel=vendimeter.kernels.Cosine() if its rows are embeddings.",
            option="kernel",
        )
    if lowest > -1e-6 and highest > 0:
        raise InputError(
            f"samples is a symmetric {size} array with a diagonal of 0, which looks like distances; the "
            "default kernel expected embeddings. Pass kernel=vendimeter.kernels.FromDistances(), or "
            "Cosine() if its rows are embeddings.",
            option="kernel",
        )


def _square(samples: Any) -> Any:
    """The samples as a square array of numbers, if they are one; the first item of a list tells at once."""
    if is_sparse(samples):
        rows = csr(samples)
    elif is_foreign(samples):
        rows = local(samples)
    elif isinstance(samples, np.ndarray) or is_table(samples):
        rows = np.asarray(samples)
    elif isinstance(samples, list | tuple) and samples and isinstance(samples[0], list | tuple | np.ndarray):
        try:
            rows = np.asarray(samples) if len(samples[0]) == len(samples) else np.empty(0)
        except (ValueError, TypeError):
            return None
    else:
        return None
    square = len(rows.shape) == 2 and rows.shape[0] == rows.shape[1] > 1
    return rows if square and is_real(rows) else None
