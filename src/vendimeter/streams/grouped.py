"""The accumulator of groups: one `Accumulator` a label, within a limit on memory, beyond which labels go into files."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vendimeter.data import frames, tables
from vendimeter.data.arrays import is_sparse, refuse_set
from vendimeter.data.collection import Collection
from vendimeter.data.devices import wide_mode
from vendimeter.data.groups import Grouping, read
from vendimeter.data.weights import Weights, raw_weights
from vendimeter.errors import EmptyError, InputError, MismatchError, SavedStateError, TooLargeError
from vendimeter.messages import brief, unknown
from vendimeter.options import byte_count
from vendimeter.present.numbers import format_bytes
from vendimeter.results.groups import GroupScores
from vendimeter.similarity import FeatureRows, Features
from vendimeter.solvers.batched import SMALL
from vendimeter.solvers.groups import SolvedGroups, solve_groups
from vendimeter.spectrum import Eigenvalues, parse_orders
from vendimeter.streams import saved
from vendimeter.streams.accumulator import (
    Accumulator,
    batch_size,
    check_growth,
    is_zero,
    several_hint,
    sum_bytes,
)
from vendimeter.streams.rows import concatenate_rows

__all__ = ["GroupAccumulator"]

CHUNK_BYTES = 64 << 20  # of kept rows that are scored together
# Bytes that a label takes beyond its numbers: the accumulator, arrays, lists and places in tables. Measured as 630 to
# 800 with CPython 3.12, and 1,310 where its rows are sparse, of which each part is an object with three arrays. With
# one item a label that is ten times the numbers, so that a limit without it would be none.
LABEL_BYTES = 800
SPARSE_LABEL_BYTES = 1400
AFTER_SPILL = 0.75  # of the memory that stays in use, so that not every update spills


class _SpilledLabel(NamedTuple):
    """The file of a label that does not fit into memory, and the bytes that it takes in memory."""

    path: Path
    nbytes: int
    held: str


class GroupAccumulator:
    """Scores of groups that grow: batches with labels in, scores of all labels out at any time.

    Each label has an `Accumulator`. One with few items holds their features, one with more than about d/2 the d×d sum,
    so that a label never takes more than about 8·d² bytes, and about 1 kB for itself. All of them together stay within
    `memory`.

    Parameters
    ----------
    kernel, precision, rng
        As for `Accumulator`.
    memory : int or str
        Bytes that may be held between updates, such as ``"4 GiB"``. They are counted as the features and sums of all
        labels and 800 bytes for every label (1,400 with sparse features). Not counted are the weights of feature rows
        (8 bytes an item), texts of labels, the batch at hand while it is added, what `score` needs while it runs, and
        about 500 bytes for each label in a file.
    spill : str or Path, optional
        A folder for what does not fit: the labels that have waited longest are put into files there, in a folder of
        their own that is removed with this object. The last folder of the path is created if it is not there; the
        one it is in must exist. Without it, a batch that would not fit is refused.

        This is one file a label, which is read when the label comes back and written again when it next has to go,
        about a millisecond for a small label (more on a slow disk). It suits labels that come in runs; where those of
        every batch are spread over all there are, more memory or coarser labels are the better way.

    Attributes
    ----------
    labels : list
        The labels, in order of first appearance.
    nbytes : int
        Bytes that are held in memory, as `memory` counts them.
    spilled : int
        How many labels lie in files.
    updates : int
        How many batches have been accepted, as for `Accumulator`.
    kernel : Kernel
        The kernel.
    memory : int
        The limit, in bytes.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> rows = np.random.default_rng(0).standard_normal((600, 8))
    >>> by = np.repeat(["a", "b", "c"], 200)
    >>> total = vm.GroupAccumulator()
    >>> for part in np.array_split(np.arange(600), 7):
    ...     total.update(rows[part], by=by[part])
    >>> total.score().labels
    ['a', 'b', 'c']
    >>> bool(np.allclose(total.score().scores, vm.score_groups(rows, by=by).scores))
    True
    """

    def __init__(
        self,
        kernel: Any = "cosine",
        *,
        precision: str = "float64",
        rng: int = 0,
        memory: int | str = "1 GiB",
        spill: Any = None,
    ):
        self._empty = Accumulator(kernel, precision=precision, rng=rng)
        self.memory = byte_count(memory, "memory")
        self.updates = 0
        self._accumulators: OrderedDict[Hashable, Accumulator] = OrderedDict()  # by last use
        self._bytes = 0
        self._order: dict[Hashable, int] = {}  # labels in order of first appearance
        self._total: tuple[int, float] = (0, 0.0)  # items and mass of all labels
        self._files: dict[Hashable, _SpilledLabel] = {}
        self._spill = spill
        self._folder: Path | None = None
        if spill is not None:
            self._folder = _make_spill_folder(self, spill)

    @property
    def kernel(self) -> Any:
        """The kernel."""
        return self._empty.kernel

    @property
    def labels(self) -> list[Hashable]:
        """The labels, in order of first appearance."""
        return list(self._order)

    @property
    def nbytes(self) -> int:
        """Bytes that are held in memory, with the overhead of every label, as `memory` counts them."""
        return self._bytes

    @property
    def spilled(self) -> int:
        """How many labels lie in files."""
        return len(self._files)

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, label: object) -> bool:
        return label in self._order

    def __getitem__(self, label: Any) -> Accumulator:
        """A copy of the accumulator of one label."""
        if label not in self._order:
            raise unknown("label", label, self._order)
        accumulator = self._peek(label).copy()
        accumulator._identity = self._empty._identity  # which is known of all labels at once
        return accumulator

    def __repr__(self) -> str:
        spilled = f", {self.spilled} in files" if self.spilled else ""
        return f"GroupAccumulator({self.kernel!r}, {len(self)} labels, {format_bytes(self._bytes)}{spilled})"

    # ------------------------------------------------------------------------------------------------------- growing

    def update(self, samples: Any, *, by: Any = None, weights: Any = None, counts: Any = None) -> None:
        """Add a batch of items with their labels; if it is refused, nothing is added.

        Parameters
        ----------
        samples : array, sparse array, list, table or Collection
            What the kernel takes, or what `vendimeter.read` gives, with its labels and weights.
        by : list, array, or name of a column
            One label an item, or one set of labels an item; for a table, the name of the column with the labels. An
            item with an empty set of labels is dropped.
        weights, counts : array, optional
            As for `Accumulator.update`.
        """
        if isinstance(samples, Collection):
            collection_weights = samples.weights if weights is None and counts is None else weights
            if samples.is_group:
                groups = samples.groups(by)
                texts = [text for group in groups.values() for text in group]
                by = [label for label, group in groups.items() for _ in group]
                self.update(texts, by=by, weights=weights, counts=counts)
                return
            with samples.placed():
                self.update(
                    samples.samples, by=samples.labels_by(by), weights=collection_weights, counts=counts
                )
            return
        samples = frames.known(samples)
        if by is None:
            raise InputError("by is missing; expected one label an item.")
        masses, name = (weights, "weights") if counts is None else (counts, "counts")
        refuse_set(samples, "labels")
        tables.check_alignment(samples, masses, name)
        mass = raw_weights(weights, counts)
        if tables.has_columns(samples):
            by = tables.labels(samples, by)
        tables.check_alignment(samples, by, "by")
        with wide_mode(self._empty.precision, samples):
            if batch_size(samples) == 0:
                _items_by_label(by, mass, 0)
                self.updates += 1
                return
            files_identity = self._empty.known_files()
            features = self.kernel.batch_features(samples, rng=self._empty.rng)
            self._empty._check_width(features.width)
            batch_labels, items = _items_by_label(by, mass, features.n)
            total = self._totals_after(batch_labels, items, mass)
            # Items of no weight are as good as absent; their labels are there all the same.
            positive_items = (
                items if mass is None else [indices[mass.values[indices] > 0] for indices in items]
            )
            positive = np.arange(features.n) if mass is None else np.flatnonzero(mass.values)
            batch = None
            if len(positive):
                # All rows are made, and so checked, before any label is touched.
                rows = features.rows(slice(None) if len(positive) == features.n else positive)
                positive_items = [np.searchsorted(positive, indices) for indices in positive_items]
                batch = FeatureRows(rows, rounding=features.rounding)
            self._check_batch_fits(
                batch_labels, positive_items, features.width, None if batch is None else batch.data
            )
            self._empty.width, self._empty._identity, self._total = features.width, files_identity, total
            try:
                for label, indices in zip(batch_labels, positive_items, strict=True):
                    features_of_label = None if batch is None or not len(indices) else batch.take(indices)
                    self._add_to_label(
                        label, features_of_label, None if mass is None else mass.part(positive[indices])
                    )
            except SavedStateError as error:
                raise SavedStateError(
                    f"{error} A part of this batch has been added already: start again from what was saved last."
                ) from None
        self.updates += 1

    def _totals_after(
        self, labels: Sequence[Hashable], items: list[np.ndarray], mass: Weights | None
    ) -> tuple[int, float]:
        """Items and mass of all labels after this batch, if that is in the range of numbers."""
        count = sum(len(indices) if mass is None else mass.part(indices).size() for indices in items)
        added_mass = sum(
            len(indices) if mass is None else float(mass.values[indices].sum()) for indices in items
        )
        total = self._total[0] + count, self._total[1] + added_mass
        check_growth(*total)
        return total

    def _add_to_label(self, label: Hashable, features: Features | None, mass: Weights | None) -> None:
        accumulator = self._bring_into_memory(label)
        bytes_before = _label_bytes(accumulator)
        if features is not None:
            accumulator.add_features(features, mass)
        self._bytes += _label_bytes(accumulator) - bytes_before
        self._make_room()

    def _bring_into_memory(self, label: Hashable) -> Accumulator:
        """The accumulator of a label, read from its file or made if need be, as the one used last."""
        if label in self._accumulators:
            self._accumulators.move_to_end(label)
            return self._accumulators[label]
        accumulator = self._peek(label) if label in self._order else self._new_accumulator()
        self._files.pop(label, None)
        self._order.setdefault(label, len(self._order))
        self._accumulators[label] = accumulator
        self._bytes += _label_bytes(accumulator)
        return accumulator

    def _peek(self, label: Hashable) -> Accumulator:
        """The accumulator of a known label, from memory or its file, without a change of either."""
        if label in self._accumulators:
            return self._accumulators[label]
        return Accumulator.load(self._files[label].path, kernel=self.kernel)

    def _new_accumulator(self) -> Accumulator:
        empty = self._empty
        return Accumulator(empty.kernel, precision=empty.precision, rng=empty.rng)

    def _check_batch_fits(
        self, labels: Sequence[Hashable], items: list[np.ndarray], width: int, rows: Any
    ) -> None:
        """Refuse a batch that would not fit into memory, before any of it is added.

        `rows` is None where no item has weight.
        """
        kind = "nothing" if rows is None else "sparse" if is_sparse(rows) else "dense"
        self._check_largest_label(width, kind)
        if self._folder is not None:
            return
        growth = 0
        entries = np.diff(rows.indptr) if rows is not None and kind == "sparse" else None
        for label, indices in zip(labels, items, strict=True):
            added_bytes = len(indices) * (8 * width if entries is None else 8)
            added_bytes += 0 if entries is None else 16 * int(entries[indices].sum())
            growth += self._growth(label, [(added_bytes, kind)] if len(indices) else [], width)
        self._check_memory(len({*labels, *self._order}), growth, "Nothing of this batch was added.")

    def _check_largest_label(self, width: int, kind: str) -> None:
        """Refuse features so wide that the sum of a single label would not fit into memory."""
        largest = sum_bytes(width, self._empty.precision) + _overhead(kind)
        if largest > self.memory:
            raise TooLargeError(
                f"one label with features of {width} columns may take {format_bytes(largest)}, and memory is "
                f"{format_bytes(self.memory)}; expected more memory, or fewer columns."
            )

    def _growth(self, label: Hashable, additions: list[tuple[int, str]], width: int) -> int:
        """An upper bound on the bytes by which a label grows with batches of these sizes and kinds."""
        bytes_now, kind = self._size_and_kind(label) if label in self._order else (0, "nothing")
        if kind == "sum":
            return 0
        bytes_after = bytes_now + sum(size for size, _ in additions)
        kinds = {kind, *(kind for _, kind in additions)} - {"nothing"}
        if len(kinds) > 1 or "sum" in kinds or not Accumulator._is_worth_keeping(bytes_after, width):
            bytes_after = sum_bytes(width, self._empty.precision)  # or less, where sparse rows become dense
            kinds = {"sum"}
        bytes_before = bytes_now + _overhead(kind) if label in self._order else 0
        return bytes_after + _overhead(*kinds) - bytes_before

    def _size_and_kind(self, label: Hashable) -> tuple[int, str]:
        """The bytes of a label, and the kind of what it holds."""
        if label in self._accumulators:
            return self._accumulators[label].nbytes, self._accumulators[label].held
        return self._files[label].nbytes, self._files[label].held

    def _check_memory(self, count: int, growth: int, outcome: str) -> None:
        if self._bytes + growth > self.memory:
            raise TooLargeError(
                f"{count} labels would take {format_bytes(self._bytes + growth)}, and memory is "
                f"{format_bytes(self.memory)}; expected less. Pass a larger memory=, or spill= with a folder for what "
                f"does not fit, or use coarser labels. {outcome}"
            )

    def _make_room(self) -> None:
        """Put the labels that have waited longest into files, where there is a folder for them."""
        if self._bytes <= self.memory or self._folder is None:
            return
        while self._bytes > AFTER_SPILL * self.memory and len(self._accumulators) > 1:
            label, accumulator = next(iter(self._accumulators.items()))
            path = self._folder / f"{self._order[label]}.npz"
            accumulator.save(path)
            self._files[label] = _SpilledLabel(path, accumulator.nbytes, accumulator.held)
            del self._accumulators[label]
            self._bytes -= _label_bytes(accumulator)

    # ------------------------------------------------------------------------------------------------------- merging

    def merge(self, *others: GroupAccumulator) -> GroupAccumulator:
        """Add what others have seen, label by label; they stay as they are.

        All of them are checked before any is added, save for labels in files that cannot be read. Merged with itself,
        every item counts twice, as for `Accumulator.merge`.

        Returns
        -------
        GroupAccumulator
            Itself.

        Raises
        ------
        MismatchError
            As for `Accumulator.merge`.
        TooLargeError
            Where the labels of all do not fit into the memory of this one, and it has no folder to spill to.
        InputError
            Where the items or weights of all would be beyond the range of numbers.
        SavedStateError
            Where a label in a file cannot be read or written.
        """
        for other in others:
            if not isinstance(other, GroupAccumulator):
                hint = "" if isinstance(other, Accumulator) else several_hint(other)
                raise MismatchError(
                    f"groups were merged with {brief(other)}; expected a GroupAccumulator.{hint}"
                )
        self._empty._check_mergeable(
            [other._empty for other in others], [member._total[0] for member in (self, *others)]
        )
        total = (
            self._total[0] + sum(other._total[0] for other in others),
            self._total[1] + sum(other._total[1] for other in others),
        )
        check_growth(*total)
        labels = list(dict.fromkeys(label for other in others for label in other.labels))
        self._check_merge_fits(labels, others)
        updates = sum(other.updates for other in others)
        self._empty.width = next(
            (member._empty.width for member in (self, *others) if member._empty.width), None
        )
        identities = (member._empty._identity for member in (self, *others))
        self._empty._identity = next((identity for identity in identities if identity is not None), None)
        # In the state in which it has been used, which the next one is compared with.
        self._empty.kernel = next(
            (member.kernel for member in (self, *others) if member._total[0]), self.kernel
        )
        self._total = total
        for label in labels:
            theirs = [other._peek(label) for other in others if label in other]
            accumulator = self._bring_into_memory(label)
            bytes_before = _label_bytes(accumulator)
            accumulator.merge(*theirs)
            self._bytes += _label_bytes(accumulator) - bytes_before
            self._make_room()
        self.updates += updates
        return self

    def _check_merge_fits(self, labels: list[Hashable], others: Sequence[GroupAccumulator]) -> None:
        """Refuse a merge that would not fit, before any of it is done."""
        width = next((member._empty.width for member in (self, *others) if member._empty.width), 1)
        if labels:
            self._check_largest_label(width, "sum")
        if self._folder is not None:
            return
        growth = sum(
            self._growth(label, [other._size_and_kind(label) for other in others if label in other], width)
            for label in labels
        )
        self._check_memory(len({*labels, *self._order}), growth, "Nothing was merged.")

    def copy(self) -> GroupAccumulator:
        """An independent copy, with a folder of its own to spill to where this one has one."""
        empty = self._empty
        duplicate = GroupAccumulator(
            empty.kernel, precision=empty.precision, rng=empty.rng, memory=self.memory, spill=self._spill
        )
        return duplicate.merge(self)

    def __copy__(self) -> GroupAccumulator:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        if self._files:
            raise InputError(
                f"{len(self._files)} labels lie in files, which belong to this object; expected all of them in memory "
                "for a pickle. Use save() and load()."
            )
        return {**self.__dict__, "_folder": None, "_spill": None}

    def __add__(self, other: Any) -> GroupAccumulator:
        if is_zero(other):
            return self.copy()
        return self.copy().merge(other) if isinstance(other, GroupAccumulator) else NotImplemented

    def __iadd__(self, other: Any) -> GroupAccumulator:
        if is_zero(other):
            return self
        return self.merge(other) if isinstance(other, GroupAccumulator) else NotImplemented

    def __radd__(self, other: Any) -> GroupAccumulator:
        return self.copy() if is_zero(other) else NotImplemented

    # ------------------------------------------------------------------------------------------------------- scoring

    def score(self, q: Any = 1) -> GroupScores:
        """The scores of all labels so far, as `vendimeter.score_groups` gives them.

        A label whose weights are all 0 has the score NaN, as there.
        """
        orders, several = parse_orders(q)
        if not self._order:
            raise EmptyError("no item was added, so there are no groups; update it first.")
        labels, solved = self.labels, SolvedGroups(len(self._order), orders)
        small_groups: list[tuple[int, FeatureRows, np.ndarray | None]] = []
        small_bytes = 0
        with wide_mode(
            self._empty.precision, *(accumulator._device_array for accumulator in self._accumulators.values())
        ):
            for g, label in enumerate(labels):
                accumulator = self._peek(label)
                solved.sizes[g] = accumulator.n  # of items with weight
                if not accumulator.mass:
                    continue  # every item of it has weight 0: an empty group
                if accumulator._sum is None:
                    features, masses = accumulator._rows()
                    if features.n <= SMALL:
                        small_groups.append((g, features, masses))
                        small_bytes += 8 * features.n * features.width
                        if small_bytes > CHUNK_BYTES:
                            self._solve_small(solved, small_groups)
                            small_groups, small_bytes = [], 0
                        continue
                _put_large(solved, g, accumulator)
            self._solve_small(solved, small_groups)
        return GroupScores(labels, solved, self.kernel, several)

    def _solve_small(
        self, solved_groups: SolvedGroups, small_groups: list[tuple[int, FeatureRows, np.ndarray | None]]
    ) -> None:
        """Solve small groups of kept rows together."""
        if not small_groups:
            return
        positions = np.array([g for g, _, _ in small_groups])
        collections = [features for _, features, _ in small_groups]
        features = FeatureRows(
            concatenate_rows([rows.data for rows in collections]),
            rounding=max(rows.rounding for rows in collections),
            kernel=collections[0].kernel,
        )
        weights = None
        if any(masses is not None for _, _, masses in small_groups):
            weights = np.concatenate([
                np.full(rows.n, 1 / rows.n) if masses is None else masses / masses.sum()
                for rows, (_, _, masses) in zip(collections, small_groups, strict=True)
            ])  # fmt: skip
        starts = np.concatenate([[0], np.cumsum([rows.n for rows in collections])])
        labels = [self.labels[g] for g in positions.tolist()]
        groups = Grouping(labels, starts, np.arange(starts[-1]), weights, solved_groups.sizes[positions])
        empty = self._empty
        solved = solve_groups(
            features, groups, solved_groups.orders, precision=empty.precision, rng=empty.rng
        )
        solved_groups.put(positions, solved)

    # -------------------------------------------------------------------------------------------- to and from disk

    def save(self, path: Any) -> None:
        """Write everything into one file, as `Accumulator.save` does; labels are texts, numbers or tuples of them.

        No suffix is added to the name, and no folder is created.
        """
        self._write(path)

    def _write(self, path: Any, more: Mapping[str, Any] | None = None, **how: Any) -> None:
        """Write the file, with more in its header; `how` are the options of `saved.write`."""
        headers: list[dict[str, Any]] = []
        for label in self.labels:
            if _label_from_json(_label_to_json(label)) != label:
                raise SavedStateError(
                    f"the label {brief(label)} is a {type(label).__name__}, which the file cannot hold; expected "
                    "texts, numbers, truth values, or tuples of them."
                )
            headers.append({"label": _label_to_json(label), **self._peek(label)._header()})
        for header in headers:
            for name in ("kernel", "fingerprint", "identity", "precision", "rng"):
                header.pop(name)
        header_of_all = self._empty._header() | {
            "updates": self.updates,
            "labels": headers,
            "memory": self.memory,
        }
        saved.write(path, "group accumulator", header_of_all | dict(more or {}), self._arrays(), **how)

    def _arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        for g, label in enumerate(self.labels):
            for name, array in self._peek(label)._arrays():
                yield f"{g}/{name}", array

    @classmethod
    def load(
        cls, path: Any, kernel: Any = None, *, memory: int | str | None = None, spill: Any = None
    ) -> GroupAccumulator:
        """Read what `save` wrote; everything is checked before it is used.

        Parameters
        ----------
        path : str or Path
            The file.
        kernel : Kernel, optional
            As for `Accumulator.load`.
        memory, spill
            As for a new one; `memory` is what it was, by default.

        Raises
        ------
        SavedStateError, MismatchError, InputError
            As for `Accumulator.load`.
        TooLargeError
            Where the labels do not fit into `memory`, and there is no `spill`.
        """
        with saved.opened(path, "group accumulator") as archive:
            empty = Accumulator._read(archive, kernel, "GroupAccumulator")
            groups = cls(
                empty.kernel,
                precision=empty.precision,
                rng=empty.rng,
                memory=archive.whole("memory", least=1) if memory is None else memory,
                spill=spill,
            )
            groups.updates, groups._empty.width = archive.whole("updates"), archive.whole("width") or None
            groups._empty._identity = empty._identity
            headers = archive.header.get("labels")
            if not isinstance(headers, list) or not all(isinstance(header, dict) for header in headers):
                raise archive.damaged("it has no labels")
            for g, header in enumerate(headers):
                label = _label_from_json(header.get("label"))
                if label is None or isinstance(label, dict) or label in groups._order:
                    raise archive.damaged(f"the label {brief(label)} is no label, or is there twice")
                label_archive = archive.part(f"{g}/", {**archive.header, **header})
                accumulator = Accumulator._read(label_archive, empty.kernel)
                if accumulator.width not in (None, groups._empty.width):
                    raise archive.damaged(f"the label {brief(label)} has other features than the rest")
                groups._order[label] = g
                groups._accumulators[label] = accumulator
                groups._bytes += _label_bytes(accumulator)
                groups._total = groups._total[0] + accumulator.n, groups._total[1] + accumulator.mass
                check_growth(*groups._total)
                groups._make_room()
                if groups._bytes > groups.memory:
                    raise TooLargeError(
                        f"the labels of {str(path)!r} take more than {format_bytes(groups.memory)}; expected less. "
                        "Pass a larger memory=, or spill= with a folder for what does not fit."
                    )
        return groups


def _overhead(held: str = "nothing") -> int:
    """Bytes of a label beyond its numbers, by the kind of what it holds."""
    return SPARSE_LABEL_BYTES if held == "sparse" else LABEL_BYTES


def _label_bytes(accumulator: Accumulator) -> int:
    """Bytes of a label in memory."""
    return accumulator.nbytes + _overhead(accumulator.held)


def _items_by_label(by: Any, mass: Weights | None, n: int) -> tuple[Sequence[Hashable], list[np.ndarray]]:
    """The labels of a batch, and the positions of the items of each."""
    if mass is not None and len(mass.values) != n:
        raise InputError(
            f"{mass.name} has {len(mass.values)} entries and there are {n} items; expected one an item."
        )
    groups = read(by, n, None)
    return groups.labels, np.split(groups.items, groups.starts[1:-1]) if len(groups.labels) else []


def _put_large(solved_groups: SolvedGroups, g: int, accumulator: Accumulator) -> None:
    """Put the solution of one large group among those of all."""
    solution = accumulator._solution()
    spectrum = solution.spectrum
    assert isinstance(spectrum, Eigenvalues)
    solved_groups.add(
        np.array([g]), spectrum.eigenvalues[None], np.array([spectrum.error]), level=spectrum.level
    )
    solved_groups.confidence[g], solved_groups.method[g] = spectrum.confidence, solution.method


def _make_spill_folder(owner: GroupAccumulator, spill: Any) -> Path:
    """Make a temporary folder inside `spill`, which is removed when the owner is collected."""
    try:
        if spill == "":  # which a Path takes for the folder at hand
            raise ValueError("it is empty")
        parent = Path(spill)
        # Only the last folder: a mistyped mount must not become a folder on a disk that has no room.
        if not parent.parent.is_dir():
            raise ValueError(f"there is no folder {str(parent.parent)!r}")
        parent.mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="vendimeter-", dir=parent))
    except (OSError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(
            f"spill={brief(spill)} cannot be used: {why}. Expected a folder that may be written to, or a new one in a "
            "folder that exists: check the path, or create the folders above it."
        ) from None
    weakref.finalize(owner, _remove, folder, os.getpid())
    return folder


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a fork of the program has the object too, but not its files
        shutil.rmtree(folder, ignore_errors=True)


def _label_to_json(label: Any) -> Any:
    """A label as JSON can write it, so that it can be told apart from others when it is read."""
    if isinstance(label, tuple):
        return [_label_to_json(entry) for entry in label]
    if isinstance(label, np.generic):
        label = label.item()
    try:
        json.dumps(label, allow_nan=False)
    except (TypeError, ValueError):
        return None
    return label if not isinstance(label, dict) else None


def _label_from_json(label: Any) -> Any:
    """A label from its form in JSON."""
    return tuple(_label_from_json(entry) for entry in label) if isinstance(label, list) else label
