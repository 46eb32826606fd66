"""At what size groups are compared, and what the result of a comparison says was done, and was not, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.analysis._common_size import BLOCKS, Rarefied
from vendimeter.analysis._compared_groups import Groups
from vendimeter.errors import InputError, brief
from vendimeter.options import whole_number

__all__ = ["COMMON", "LEAST", "LOWEST", "MANY", "common_size", "first_notes", "no_intervals", "used_notes"]

COMMON = 500  # items: the largest common size that is taken without being asked for
LEAST = BLOCKS  # items at which intervals and tests begin
LOWEST = 0.5  # the order from which on intervals hold what they promise
MANY = 500  # groups: beyond, intervals and the similarity of groups wait to be asked for


def first_notes(groups: Groups) -> list[str]:
    notes = []
    empty = [groups.labels[g] for g in np.flatnonzero(np.diff(groups.members.starts) == 0).tolist()]
    if empty:
        notes.append(f"{_named(empty)} {'is' if len(empty) == 1 else 'are'} empty.")
    if groups.shared:
        notes.append("Groups share items; an item of several groups counts in each of them.")
    if groups.left_out:
        notes.append(f"{groups.left_out:,} records were left out on reading.")
    return notes


def common_size(groups: Groups, size: Any) -> tuple[int | None, list[str]]:
    """The common size, and what there is to say about it."""
    sizes, labels = groups.sizes, groups.labels
    if groups.given == "weights":
        if size is not None:
            raise InputError(
                f"size={brief(size)} was given with weights, which are probabilities and no samples to draw from; "
                "expected counts=, or no size."
            )
        return None, []
    notes = []
    if size is not None:
        common = whole_number(size, "size")
        if common > sizes.max():
            largest = brief(labels[int(sizes.argmax())])
            raise InputError(
                f"size={common:,} and the largest group, {largest}, has {sizes.max():,} items; expected a size up to "
                "that."
            )
    else:
        several = sizes[sizes >= 2]
        smallest = int(several.min()) if len(several) else 1
        common = min(smallest, COMMON)
        if common < smallest:
            notes.append(
                f"All groups have {smallest:,} items or more; the common size is {COMMON} by default, so as not to "
                "take long. Pass size= (--size) for another."
            )
        elif common < LEAST and sizes.max() >= LEAST:
            at = brief(labels[int(np.flatnonzero(sizes == smallest)[0])])
            notes.append(
                f"The smallest group of two items or more, {at}, sets the common size to {common}; pass size= to "
                "compare larger groups at more items."
            )
    small = [labels[g] for g in np.flatnonzero((sizes < common) & (sizes > 0)).tolist()]
    if small:
        notes.append(
            f"{_named(small)} {'has' if len(small) == 1 else 'have'} fewer than {common:,} items, and so no rarefied "
            "score and no rank."
        )
    return common, notes


def no_intervals(size: int | None, q: float, able: int, *, asked: bool) -> list[str]:
    """Why there are no intervals (and tests); nothing where there are.

    Parameters
    ----------
    size : int or None
        The common size; None with weights.
    q : float
        The order.
    able : int
        How many groups can be compared.
    asked : bool
        Whether comparisons were asked for.
    """
    if size is None:
        note = (
            "Weights are probabilities and no samples: nothing is rarefied, and there are no intervals or tests. The "
            "groups are ranked by their scores as they are. For frequencies pass counts=."
        )
        return [note]
    if size < LEAST:
        return [
            f"A common size of {size} is too small for intervals and tests, which begin at {LEAST} items."
        ]
    if q < LOWEST:
        return [
            f"Orders below {LOWEST} have no intervals, which would not hold what they promise; the tests do."
        ]
    if able > MANY and not asked:
        return [
            f"With more than {MANY} groups there are no intervals by default: pass reference= or pairs=True."
        ]
    return []


def used_notes(groups: Groups, common: Rarefied) -> list[str]:
    notes = []
    fewer = np.flatnonzero((common.used > 0) & (common.used < groups.sizes))
    if len(fewer):
        notes.append(
            f"Of {len(fewer):,} large group{'s' * (len(fewer) > 1)}, {common.used[fewer].min():,} random items or more "
            "were used for the rarefied scores."
        )
    few = [groups.labels[g] for g in np.flatnonzero(common.few).tolist()]
    if few and common.shifts is not None:
        notes.append(
            f"The items of {_named(few)} are nearly all alike, and intervals of such scores and of ratios with them "
            "would not hold; those of differences do."
        )
    return notes


def _named(labels: list[Any]) -> str:
    """Some labels, and how many more there are."""
    shown = ", ".join(brief(label) for label in labels[:3])
    return shown if len(labels) <= 3 else f"{shown} and {len(labels) - 3:,} more groups"
