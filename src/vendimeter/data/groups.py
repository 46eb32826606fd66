"""Groups in any form that a user has them → which items are in which group, with what weight."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data import tables
from vendimeter.data.arrays import is_frame_column, is_missing, is_sparse, length, to_list, to_numpy
from vendimeter.data.collection import Collection
from vendimeter.data.devices import concat, is_foreign, local, namespace, to_host
from vendimeter.data.weights import Weights, check_sum
from vendimeter.errors import EmptyError, InputError
from vendimeter.messages import brief, shape_of

__all__ = ["Grouping", "join", "read", "split", "with_weights"]


@dataclass(frozen=True)
class Grouping:
    """Groups as rows of a sparse matrix over the items.

    Attributes
    ----------
    labels : sequence
        In order of first appearance.
    starts : ndarray, shape (groups + 1,)
        Group g has the entries starts[g] … starts[g+1].
    items : ndarray
        Positions of items.
    weights : ndarray or None
        Their probabilities, which sum to 1 in each group; None if uniform.
    sizes : ndarray
        How many items each group stands for (the sum of its counts, if there are counts).
    """

    labels: Sequence[Hashable]
    starts: np.ndarray
    items: np.ndarray
    weights: np.ndarray | None
    sizes: np.ndarray

    @classmethod
    def of(cls, parts: Sequence[np.ndarray], weights: Sequence[np.ndarray] | None = None) -> Grouping:
        """Groups from the positions of the items of each, and their probabilities; a label is the group's position."""
        sizes = np.array([len(part) for part in parts], dtype=np.int64)
        return cls(
            range(len(parts)),
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate(parts).astype(np.int64),
            None if weights is None else np.concatenate(weights),
            sizes,
        )

    @property
    def shares(self) -> np.ndarray:
        """The probability of each entry within its group."""
        if self.weights is not None:
            return self.weights
        counts = np.diff(self.starts)
        return np.repeat(1 / np.maximum(counts, 1), counts)


def read(by: Any, n: int, weights: Weights | None) -> Grouping:
    """Groups of n items from labels, sets of labels, or rows of weights or counts."""
    if weights is not None and weights.values.ndim == 2:
        return _from_rows(by, weights, n)
    if weights is not None and len(weights.values) != n:
        raise InputError(
            f"{weights.name} has {len(weights.values)} entries and there are {n} items; expected one an item."
        )
    if is_foreign(by):
        by = to_host(local(by))
    if isinstance(by, np.ndarray) and by.ndim == 0:
        raise InputError(f"by is the single label {brief(by[()])}; expected one label an item.")
    labels, starts, items = _from_array(by, n) if _is_simple_array(by) else _from_labels(by, n)
    if weights is None:
        return Grouping(labels, starts, items, None, np.diff(starts))
    if weights.name == "weights":
        check_sum(float(weights.values.sum()), weights)
    return with_weights(labels, starts, items, weights.values[items], weights.name)


def _as_list(by: Any, expected: str) -> list[Any]:
    """Labels as a list, whatever ordered thing they came in."""
    if isinstance(by, str | bytes | set | frozenset | Mapping) or not hasattr(by, "__len__") or is_sparse(by):
        raise InputError(f"by={brief(by)}; expected {expected}, in a list.")
    return to_list(by)


def _is_simple_array(by: Any) -> bool:
    """Whether labels can be told apart by NumPy, without a look at each."""
    return type(by) is np.ndarray and by.ndim == 1 and by.dtype.kind in "biuUS"


def _from_array(by: np.ndarray, n: int) -> tuple[list[Hashable], np.ndarray, np.ndarray]:
    _check_length(by, n)
    values, first, group = np.unique(by, return_index=True, return_inverse=True)
    order = np.argsort(first)  # of first appearance
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    items = np.argsort(rank[group], kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(rank[group], minlength=len(order)))])
    return values[order].tolist(), starts, items


def _check_length(by: Any, n: int) -> None:
    if len(by) != n:
        raise InputError(f"by has {len(by)} labels and there are {n} items; expected one label an item.")


def _from_labels(by: Any, n: int) -> tuple[list[Hashable], np.ndarray, np.ndarray]:
    if getattr(by, "ndim", 1) > 1:
        raise InputError(
            f"by is {brief(by)}; expected one label an item. For one-hot labels pass by.argmax(axis=1)."
        )
    by = _as_list(by, "one label an item, or one set of labels an item")
    _check_length(by, n)
    items_by_label: dict[Hashable, list[int]] = {}
    has_sets = any(isinstance(label, list | set | frozenset) for label in by)
    for i, label in enumerate(by):
        if has_sets and not isinstance(label, list | set | frozenset | tuple):
            raise InputError(
                f"by[{i}] is the label {brief(label)} where others are sets of labels; expected sets "
                "throughout."
            )
        try:
            for name in dict.fromkeys(label) if has_sets else (label,):
                if is_missing(name):
                    raise InputError(
                        f"by[{i}] is {brief(name)}: item {i} has no label. Fill it, for example with "
                        "'unknown', or drop it.",
                        item=i,
                    )
                items_by_label.setdefault(name, []).append(i)  # type: ignore[arg-type]
        except TypeError:
            raise InputError(
                f"by[{i}] is {brief(label)}; expected a hashable label such as a text or a number."
            ) from None
    groups = list(items_by_label.values())
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    items = np.array([item for group in groups for item in group], dtype=np.int64)
    return list(items_by_label), starts, items


def _from_rows(by: Any, weights: Weights, n: int) -> Grouping:
    """Sites × species: each row of weights is a group over all items."""
    values, name = weights.values, weights.name
    if values.shape[1] != n:
        raise InputError(
            f"{name} has shape {shape_of(values.shape)} and there are {n} items; expected one row a group "
            "and one column an item."
        )
    if not len(values):
        raise EmptyError(f"{name} has no rows, so there are no groups; expected at least one.")
    labels = list(range(len(values))) if by is None else _as_list(by, f"one name a row of {name}")
    try:
        distinct = len(set(labels))
    except TypeError:
        raise InputError(f"by={brief(labels)}; expected a hashable name for each row of {name}.") from None
    if len(labels) != len(values) or distinct != len(labels):
        raise InputError(
            f"by names {distinct} different groups and {name} has {len(values)} rows; expected one name a "
            "row."
        )
    groups, items = np.nonzero(values)
    starts = np.searchsorted(groups, np.arange(len(values) + 1))
    if name == "weights":
        for label, total in zip(labels, values.sum(axis=1).tolist(), strict=True):
            if total:
                check_sum(total, weights, f"the weights of group {brief(label)}")
    return with_weights(labels, starts, items, values[groups, items], name)


def with_weights(
    labels: Sequence[Hashable], starts: np.ndarray, items: np.ndarray, values: np.ndarray, name: str
) -> Grouping:
    """Groups whose entries have weights or counts (as `name` says), divided by their sum in each group."""
    totals = np.add.reduceat(np.append(values, 0.0), starts[:-1]) if len(labels) else np.zeros(0)
    totals[np.diff(starts) == 0] = 0.0
    # A group whose members have no weight is as empty as one without members.
    keep = np.repeat(totals > 0, np.diff(starts)) & (values > 0)
    group = np.repeat(np.arange(len(labels)), np.diff(starts))[keep]
    counts = np.bincount(group, minlength=len(labels))
    sizes = np.rint(totals).astype(np.int64) if name == "counts" else counts
    return Grouping(
        labels, np.concatenate([[0], np.cumsum(counts)]), items[keep], values[keep] / totals[group], sizes
    )


def split(groups: Any) -> tuple[Sequence[Hashable], list[Any]]:
    """Groups given one by one, as a mapping or a list → their labels and their items."""
    if is_foreign(groups):
        groups = [groups[g, ...] for g in range(groups.shape[0])]
    labels = list(groups) if isinstance(groups, Mapping) else list(range(len(groups)))
    parts = list(groups.values()) if isinstance(groups, Mapping) else list(groups)
    if not parts:
        raise EmptyError("there are no groups; expected at least one.")
    for label, part in zip(labels, parts, strict=True):
        if isinstance(part, str | bytes) or not (
            (hasattr(part, "__len__") and (hasattr(part, "__getitem__") or hasattr(part, "__iter__")))
            or is_sparse(part)
            or is_foreign(part)
        ):
            raise InputError(
                f"group {brief(label)} is {brief(part)}; expected a collection of items. To group the items "
                "of one collection pass by=labels."
            )
        if isinstance(part, Collection) and part.weights is not None:
            raise InputError(
                f"group {brief(label)} is a collection with weights of its own; expected samples of equal weight. Read "
                "all groups as one collection, with by= the column of their labels, or pass collection.samples to "
                "leave the weights away."
            )
    return labels, [tables.records(part) if _is_table_like(part) else part for part in parts]


def join(parts: list[Any]) -> tuple[Any, np.ndarray]:
    """The items of all groups in one collection, and the number of items of each."""
    sizes = np.array([length(part) for part in parts], dtype=np.int64)
    nonempty = [part for part, size in zip(parts, sizes, strict=True) if size]
    if not nonempty:
        raise EmptyError("every group is empty; expected at least one item.")
    return _concatenate(nonempty), sizes


def _is_table_like(part: Any) -> bool:
    return not tables.is_records(part) and tables.has_columns(part)


def _concatenate(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    parts = [local(part) for part in parts]
    if all(is_foreign(part) for part in parts) and len({namespace(part) for part in parts}) == 1:
        _check_one_shape({tuple(part.shape[1:]) for part in parts})
        return concat(parts)
    parts = [to_host(part) if is_foreign(part) else part for part in parts]
    if any(is_sparse(part) for part in parts):
        from scipy import sparse

        _check_one_shape({part.shape[1:] for part in parts})
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    if all(isinstance(part, np.ndarray) and part.dtype != object for part in parts):
        _check_one_shape({part.shape[1:] for part in parts})
        return np.concatenate(parts)
    return [item for part in parts for item in _items(part)]


def _check_one_shape(shapes: set[tuple[int, ...]]) -> None:
    if len(shapes) > 1:
        names = ", ".join(sorted(map(shape_of, shapes)))
        raise InputError(f"the groups have items of shapes {names}; expected one shape.")


def _items(part: Any) -> Iterable[Any]:
    return to_numpy(part) if is_frame_column(part) else part
