"""Differences between groups at a common size: how large, how sure, and whether chance would make them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vendimeter.analysis.comparison.common_size import Pool, Rarefied, quantile, side_of, standard_error
from vendimeter.analysis.comparison.groups import Groups
from vendimeter.data.arrays import plain
from vendimeter.errors import InputError, brief, group_name, unknown
from vendimeter.options import generator
from vendimeter.results.base import Result, frozen
from vendimeter.results.groups import _plain
from vendimeter.results.score import percentage

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = [
    "MOST",
    "Differences",
    "Wanted",
    "differences_of",
    "holm",
    "items_tested",
    "pairs_of",
    "permutation_test",
]


# -------------------------------------------------------------------------------------------------------- permutations

# Permutation tests: how often two groups differ as much when their items are dealt out at random.
#
# The items that are in one of the two groups only are dealt out anew among the two; those in both stay in both. Every
# deal is as likely as the true one if the groups come from one population, whatever it is, so that the p-value
# (1 + deals that differ as much)/(1 + deals) is right for any kernel, order and size.

WORK = 5e10  # of all deals of all comparisons, in cubes of the sides of matrices
LEAST = 100  # items of each group in a test, if there are so many, whatever that takes
TIES = 1e-10  # differences of entropies that rounding may have made

CHUNK = 4096  # subsets that are scored at a time


class _Part(NamedTuple):
    """Items of which there may be several copies."""

    items: np.ndarray
    copies: np.ndarray

    @property
    def size(self) -> int:
        return int(self.copies.sum())

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """So many of them at random, without replacement."""
        ends = np.cumsum(self.copies)
        return self.items[np.searchsorted(ends, rng.choice(self.size, count, replace=False), side="right")]


def items_tested(groups: Groups, size: int, comparisons: int, permutations: int) -> int:
    """How many items of each group a test takes: the common size, or fewer where that would take long."""
    deals = 2.0 * max(1, comparisons) * max(1, permutations)
    side = max(LEAST, int((WORK / deals) ** (1 / 3)))
    return size if side_of(groups.similarity, size) <= side else min(size, side)


def permutation_test(
    groups: Groups, first: int, second: int, size: int, q: float, permutations: int, rng: int
) -> float:
    """The two-sided p-value of the difference of two groups at a size; NaN where one is within the other.

    Parameters
    ----------
    groups : Groups
        All groups.
    first, second : int
        Positions of the two.
    size : int
        How many items of each are taken, at random where there are more.
    q : float
        The order.
    permutations : int
        How many deals.
    rng : int
        Seed.
    """
    draws = generator(rng, f"permutations {first} {second}")
    own, other, both = _parts(groups, first, second)
    # Each group is represented as it is: with as large a part of items that are in both.
    kept = [_kept(part.size, both.size, size) for part in (own, other)]
    alone = [size - k for k in kept]
    if min(alone) == 0:
        return float("nan")
    shared = both.draw(max(kept), draws)
    dealt = np.concatenate([own.draw(alone[0], draws), other.draw(alone[1], draws)])
    items, place = np.unique(np.concatenate([shared, dealt]), return_inverse=True)
    stay, move = place[: len(shared)], place[len(shared) :]
    pool = Pool(groups.similarity, items, size)
    found = []
    for begin in range(0, permutations + 1, CHUNK):
        count = min(CHUNK, permutations + 1 - begin)
        deals = draws.permuted(np.tile(move, (count, 1)), axis=1)
        if begin == 0:
            deals[0] = move  # as it is
        entropies = [
            np.log(pool.scores(np.column_stack([np.tile(stay[:k], (count, 1)), part]), q))
            for k, part in zip(kept, (deals[:, : alone[0]], deals[:, alone[0] :]), strict=True)
        ]
        found.append(np.abs(entropies[0] - entropies[1]))
    gaps = np.concatenate(found)
    return float(np.count_nonzero(gaps >= gaps[0] - TIES) / (permutations + 1))


def _parts(groups: Groups, first: int, second: int) -> tuple[_Part, _Part, _Part]:
    """What is only in the first, only in the second, and in both."""
    one, two = (_Part(groups.items(g), groups.copies(g)) for g in (first, second))
    if groups.apart:
        nothing = np.zeros(0, dtype=np.int64)
        return one, two, _Part(nothing, nothing)
    in_two, in_one = np.isin(one.items, two.items), np.isin(two.items, one.items)
    return (
        _Part(one.items[~in_two], one.copies[~in_two]),
        _Part(two.items[~in_one], two.copies[~in_one]),
        _Part(one.items[in_two], one.copies[in_two]),
    )


def _kept(alone: int, both: int, size: int) -> int:
    """How many of the items that are in both stand for them in one group, of which `alone` are in it only."""
    return min(both, max(size - alone, round(size * both / (alone + both))))


def holm(p: np.ndarray) -> np.ndarray:
    """p-values adjusted for their number, by Holm's method; NaN stays and does not count.

    Examples
    --------
    >>> import numpy as np
    >>> holm(np.array([0.01, 0.04, 0.03, np.nan]))
    array([0.03, 0.06, 0.06,  nan])
    """
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


# --------------------------------------------------------------------------------------------------------- differences

MOST = 100  # comparisons that are made without being asked for
ROUNDING = 1e-9  # of 1 − confidence


@dataclass(frozen=True, repr=False, eq=False)
class Differences(Result):
    """Differences and ratios of the rarefied scores of pairs of groups; the attribute of a `Comparison`.

    Attributes
    ----------
    groups, references : tuple
        The labels of the two groups of each comparison.
    difference, difference_low, difference_high : ndarray
        The rarefied score of the group less that of the reference, and its interval; NaN where there is none.
    ratio, ratio_low, ratio_high : ndarray
        The one divided by the other, and its interval.
    p, p_adjusted : ndarray
        Of the permutation test, two-sided: by itself, and adjusted by Holm's method for all comparisons that were made.
    shared : ndarray of int
        How many items the two groups share.
    confidence : float
        Of each interval by itself.
    permutations : int
        How many random deals each test made.
    size, tested_size : int or None
        How many items of each group the scores are for, and the tests.
    notes : tuple of str
        What was not computed, and why.
    """

    groups: tuple[Any, ...] = field(repr=False)
    references: tuple[Any, ...] = field(repr=False)
    difference: np.ndarray
    difference_low: np.ndarray = field(repr=False)
    difference_high: np.ndarray = field(repr=False)
    ratio: np.ndarray = field(repr=False)
    ratio_low: np.ndarray = field(repr=False)
    ratio_high: np.ndarray = field(repr=False)
    p: np.ndarray = field(repr=False)
    p_adjusted: np.ndarray
    shared: np.ndarray = field(repr=False)
    confidence: float
    permutations: int
    size: int | None
    tested_size: int | None
    notes: tuple[str, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def least(self) -> float:
        """The least adjusted p-value that so many tests of so many deals can have."""
        return np.count_nonzero(~np.isnan(self.p)) / (self.permutations + 1)

    def summary(self) -> str:
        """How many differ, which differs most, and what was not computed."""
        return " ".join([self.found(), *self.notes])

    def found(self) -> str:
        """How many differ, and which differs most."""
        if not len(self):
            return "No two groups were compared."
        count = f"{len(self):,} comparison{'s' * (len(self) > 1)}"
        largest = int(np.argmax(np.abs(np.log(self.ratio))))
        interval = ""
        if not math.isnan(self.ratio_low[largest]):
            interval = (
                f" ({percentage(self.confidence)} interval {self.ratio_low[largest]:.3g} to "
                f"{self.ratio_high[largest]:.3g})"
            )
        ratio = f"{self.ratio[largest]:.3g}"
        ratio = "1.00" if ratio == "1" else ratio  # about as diverse, and not for certain the same
        most = (
            f"{group_name(self.groups[largest])} has {ratio} times the diversity of "
            f"{group_name(self.references[largest])}{interval}"
        )
        # Of comparisons with one group alone, others may differ more from each other.
        one = len(self) > 1 and len(set(map(str, self.references))) == 1
        with_one = f", all with {group_name(self.references[0])}" if one else ""
        words = [f"{count}{with_one}; the largest difference: {most}."]
        level = 1 - self.confidence
        if np.count_nonzero(~np.isnan(self.p)) and self.least <= level + ROUNDING:
            found = int(np.count_nonzero(self.p_adjusted <= level + ROUNDING))
            words.append(
                f"{found:,} of {count} {'has' if found == 1 else 'have'} a p-value of at most {level:.2g} after Holm's "
                f"adjustment (permutation tests of {self.tested_size:,} items a group)."
            )
        return " ".join(words)

    def _columns(self) -> dict[str, Any]:
        names = ("difference", "difference_low", "difference_high", "ratio", "ratio_low", "ratio_high", "p")
        return {
            "group": self.groups,
            "reference": self.references,
            **{name: getattr(self, name).tolist() for name in names},
            "p_adjusted": self.p_adjusted.tolist(),
            "shared": self.shared.tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values ready for JSON (a missing number is None)."""
        labels = {"groups": self.groups, "references": self.references}
        return super().to_dict() | {name: list(map(_plain, held)) for name, held in labels.items()}

    def plot(self, ax: Any = None) -> Display:
        """The ratios with their intervals, the largest differences first."""
        from vendimeter.plots.comparison import differences

        return differences(self, ax)


@dataclass(frozen=True)
class Wanted:
    """What was asked for: pairs of positions (group, reference), deals of a test, the confidence, and the seed."""

    pairs: list[tuple[int, int]]
    permutations: int
    confidence: float
    rng: int


def pairs_of(
    labels: list[Any], able: np.ndarray, reference: Any, every: bool
) -> tuple[list[tuple[int, int]], list[str]]:
    """Which groups to compare, (group, reference) by position, and what is left away.

    Parameters
    ----------
    labels : list
        Of all groups.
    able : ndarray of bool
        Which of them can be compared.
    reference : label, optional
        The one to compare with; the first of those that can be compared by default.
    every : bool
        Whether to compare all pairs instead.
    """
    chosen = np.flatnonzero(able).tolist()
    if every:
        if reference is not None:
            raise InputError(
                f"pairs=True compares all pairs, and reference={brief(reference)} was given; expected one of the two."
            )
        return [(j, i) for i, j in combinations(chosen, 2)], []
    if reference is None:
        first = chosen[0] if chosen else 0
    else:
        try:
            first = labels.index(plain(reference))
        except ValueError:
            raise unknown("group", reference, labels) from None
        if not able[first]:
            raise InputError(
                f"the reference {brief(reference)} has fewer items than the others are compared at; expected a larger "
                "group. Take another reference, or a smaller size."
            )
    pairs = [(g, first) for g in chosen if g != first]
    if reference is None and len(pairs) > MOST:
        note = (
            f"With {len(chosen):,} groups, no two were compared (by default up to {MOST} comparisons are made): "
            "pass reference= a label to compare all with it, or pairs=True for all pairs."
        )
        return [], [note]
    return pairs, []


def differences_of(
    groups: Groups,
    scores: np.ndarray,
    common: Rarefied | None,
    q: float,
    wanted: Wanted,
    notes: list[str],
    report: Callable[[float], None] = lambda done: None,
) -> Differences:
    """Compare pairs of groups.

    Parameters
    ----------
    groups : Groups
        All groups.
    scores : ndarray
        What is compared, one a group.
    common : Rarefied, optional
        Where these come from; without it, or without its jackknife, there are no intervals.
    q : float
        The order.
    wanted : Wanted
        What was asked for.
    notes : list of str
        What was not computed.
    report : callable
        Is told how far it is.
    """
    pairs, labels = wanted.pairs, groups.labels
    one, two = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    difference, ratio = scores[one] - scores[two], scores[one] / scores[two]
    reach, log_reach = (np.full(len(pairs), np.nan) for _ in range(2))
    if common is not None and common.shifts is not None and common.bends is not None:
        times = quantile(wanted.confidence)
        shifts, bends = common.shifts, common.bends
        reach = times * standard_error(shifts[one] - shifts[two], bends[one] - bends[two])
        shifts, bends = (held / scores[:, None] for held in (shifts, bends))
        log_reach = times * standard_error(shifts[one] - shifts[two], bends[one] - bends[two])
        log_reach[common.few[one] | common.few[two]] = np.nan
    p = np.full(len(pairs), np.nan)
    tested = None
    if common is not None and wanted.permutations and pairs:
        tested = items_tested(groups, common.size, len(pairs), wanted.permutations)
        for i, (g, h) in enumerate(pairs):
            report(i / len(pairs))
            p[i] = permutation_test(groups, g, h, tested, q, wanted.permutations, wanted.rng)
        notes = notes + _tested(groups, wanted, p, common.size, tested)
    return Differences(
        groups=tuple(labels[g] for g in one.tolist()),
        references=tuple(labels[g] for g in two.tolist()),
        difference=frozen(difference),
        difference_low=frozen(difference - reach),
        difference_high=frozen(difference + reach),
        ratio=frozen(ratio),
        ratio_low=frozen(ratio * np.exp(-log_reach)),
        ratio_high=frozen(ratio * np.exp(log_reach)),
        p=frozen(p),
        p_adjusted=frozen(holm(p)),
        shared=frozen(_shared(groups, pairs)),
        confidence=wanted.confidence,
        permutations=wanted.permutations,
        size=None if common is None else common.size,
        tested_size=tested,
        notes=tuple(notes),
    )


def _shared(groups: Groups, pairs: list[tuple[int, int]]) -> np.ndarray:
    if not groups.shared:
        return np.zeros(len(pairs), dtype=np.int64)
    found = [
        int(groups.copies(g)[np.isin(groups.items(g), groups.items(h))].sum()) for g, h in pairs
    ]  # copies of an item are shared with it
    return np.array(found, dtype=np.int64)


def _tested(groups: Groups, wanted: Wanted, p: np.ndarray, size: int, tested: int) -> list[str]:
    """What there is to say about the tests."""
    notes = []
    if tested < size:
        notes.append(
            f"The tests took {tested:,} items of each group, not {size:,}, so as not to take long (the differences and "
            "intervals are those of the common size)."
        )
    made, level = int(np.count_nonzero(~np.isnan(p))), 1 - wanted.confidence
    if made > (wanted.permutations + 1) * (level + ROUNDING):
        needed = math.ceil(made / level - ROUNDING) - 1
        notes.append(
            f"{made:,} tests of {wanted.permutations:,} deals cannot have an adjusted p-value of {level:.2g} or less; "
            f"pass permutations={needed} or more, or compare fewer groups."
        )
    without = [wanted.pairs[i] for i in np.flatnonzero(np.isnan(p)).tolist()]
    if without:
        g, h = (brief(groups.labels[place]) for place in without[0])
        more = f" (and {len(without) - 1:,} other pairs)" if len(without) > 1 else ""
        notes.append(
            f"There is no test of {g} against {h}{more}: (nearly) all items of one are in the other, and only items of "
            "one of them can be dealt out anew."
        )
    return notes
