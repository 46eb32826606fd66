"""Differences between groups at a common size: jackknife intervals, and permutation tests with Holm's adjustment.

In a permutation test the items that are in one of the two groups only are dealt out anew among the two; those in both
stay in both. Every deal is as likely as the true one if the groups come from one population, whatever it is, so that
the p-value (1 + deals that differ as much)/(1 + deals) is right for any kernel, order and size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vendimeter.analysis.comparison.common_size import Pool, Rarefied, side_of, standard_error, t_quantile
from vendimeter.analysis.comparison.groups import Groups, group_name, quoted
from vendimeter.data.arrays import to_python
from vendimeter.errors import InputError
from vendimeter.messages import brief, unknown
from vendimeter.options import generator
from vendimeter.present.notes import Advice, Note, sentences
from vendimeter.present.numbers import format_confidence
from vendimeter.results.base import Result, frozen

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = [
    "Differences",
    "PairOptions",
    "choose_pairs",
    "compare_pairs",
    "holm",
    "items_tested",
    "permutation_test",
]

MAX_PAIRS = 100  # upper bound of comparisons by default
LEVEL_TOLERANCE = 1e-9  # absolute, of the level 1 − confidence

# Limits of the permutation tests.
WORK = 5e10  # of all deals of all comparisons, in cubes of the sides of matrices
LEAST = 100  # items of each group in a test, if there are so many, whatever the cost
TIE_TOLERANCE = 1e-10  # upper bound of differences of entropies that are rounding
DEALS_AT_ONCE = 4096  # subsets that are scored at a time


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
    notes : tuple of Note
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
    notes: tuple[Note, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def least(self) -> float:
        """The least adjusted p-value that so many tests of so many deals can have."""
        return np.count_nonzero(~np.isnan(self.p)) / (self.permutations + 1)

    def summary(self) -> str:
        """How many differ, which differs most, and what was not computed."""
        return " ".join([self.found(), *sentences(self.notes)])

    def found(self) -> str:
        """How many differ, and which differs most."""
        if not len(self):
            return "No two groups were compared."
        count = f"{len(self):,} comparison{'s' * (len(self) > 1)}"
        largest = int(np.argmax(np.abs(np.log(self.ratio))))
        interval = ""
        if not math.isnan(self.ratio_low[largest]):
            interval = (
                f" ({format_confidence(self.confidence)} interval {self.ratio_low[largest]:.3g} to "
                f"{self.ratio_high[largest]:.3g})"
            )
        ratio = f"{self.ratio[largest]:.3g}"
        ratio = "1.00" if ratio == "1" else ratio  # about as diverse, and not for certain the same
        largest_text = (
            f"{group_name(self.groups[largest])} has {ratio} times the diversity of "
            f"{group_name(self.references[largest])}{interval}"
        )
        # Of comparisons with one group alone, others may differ more from each other.
        single_reference = len(self) > 1 and len(set(map(str, self.references))) == 1
        all_with = f", all with {group_name(self.references[0])}" if single_reference else ""
        found = [f"{count}{all_with}; the largest difference: {largest_text}."]
        level = 1 - self.confidence
        if np.count_nonzero(~np.isnan(self.p)) and self.least <= level + LEVEL_TOLERANCE:
            n_significant = int(np.count_nonzero(self.p_adjusted <= level + LEVEL_TOLERANCE))
            found.append(
                f"{n_significant:,} of {count} {'has' if n_significant == 1 else 'have'} a p-value of at most "
                f"{level:.2g} after Holm's adjustment (permutation tests of {self.tested_size:,} items a group)."
            )
        return " ".join(found)

    def _columns(self) -> dict[str, Any]:
        names = ("difference", "difference_low", "difference_high", "ratio", "ratio_low", "ratio_high", "p")
        return {
            "group": self.groups,
            "reference": self.references,
            **{name: getattr(self, name).tolist() for name in names},
            "p_adjusted": self.p_adjusted.tolist(),
            "shared": self.shared.tolist(),
        }

    def plot(self, ax: Any = None) -> Display:
        """The ratios with their intervals, the largest differences first."""
        from vendimeter.plots.comparison import differences

        return differences(self, ax)


@dataclass(frozen=True)
class PairOptions:
    """Pairs of positions (group, reference), the number of deals of a test, the confidence, and the seed."""

    pairs: list[tuple[int, int]]
    permutations: int
    confidence: float
    rng: int


def choose_pairs(
    labels: list[Any], comparable: np.ndarray, reference: Any, all_pairs: bool
) -> tuple[list[tuple[int, int]], list[Note]]:
    """Which pairs of groups to compare, as positions (group, reference), and a note where none are compared.

    Parameters
    ----------
    labels : list
        Of all groups.
    comparable : ndarray of bool
        Which of them can be compared.
    reference : label, optional
        The one to compare with; the first of those that can be compared by default.
    all_pairs : bool
        Whether to compare all pairs instead.
    """
    positions = np.flatnonzero(comparable).tolist()
    if all_pairs:
        if reference is not None:
            raise InputError(
                f"pairs=True compares all pairs, and reference={brief(reference)} was given; expected one of the two.",
                option="reference",
            )
        return [(j, i) for i, j in combinations(positions, 2)], []
    if reference is None:
        reference_position = positions[0] if positions else 0
    else:
        try:
            reference_position = labels.index(to_python(reference))
        except ValueError:
            raise unknown("group", reference, labels).at(option="reference") from None
        if not comparable[reference_position]:
            raise InputError(
                f"the reference {brief(reference)} has fewer items than the others are compared at; expected a larger "
                "group. Take another reference, or a smaller size.",
                option="reference",
            )
    pairs = [(g, reference_position) for g in positions if g != reference_position]
    if reference is None and len(pairs) > MAX_PAIRS:
        note = Note(
            "no-pairs-of-many-groups",
            f"With {len(positions):,} groups, no two were compared (by default up to {MAX_PAIRS} comparisons are "
            "made).",
            {"count": len(positions), "limit": MAX_PAIRS},
            Advice("Pass {} to compare all with one group.", "reference"),
        )
        return [], [note]
    return pairs, []


def compare_pairs(
    groups: Groups,
    scores: np.ndarray,
    rarefied: Rarefied | None,
    q: float,
    options: PairOptions,
    notes: list[Note],
    report: Callable[[float], None] = lambda done: None,
) -> Differences:
    """Differences and ratios of the scores of pairs of groups, with jackknife intervals and permutation tests.

    Parameters
    ----------
    groups : Groups
        All groups.
    scores : ndarray
        What is compared, one a group.
    rarefied : Rarefied, optional
        The rarefaction that the scores come from; without it, or without its jackknife, there are no intervals.
    q : float
        The order.
    options : PairOptions
        Which pairs, and how they are tested.
    notes : list of Note
        What was not computed.
    report : callable
        Is told how far it is.
    """
    pairs, labels = options.pairs, groups.labels
    first, second = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    difference, ratio = scores[first] - scores[second], scores[first] / scores[second]
    margin, log_margin = (np.full(len(pairs), np.nan) for _ in range(2))
    if (
        rarefied is not None
        and rarefied.contributions is not None
        and rarefied.second_differences is not None
    ):
        quantile = t_quantile(options.confidence)
        contributions, second_differences = rarefied.contributions, rarefied.second_differences
        margin = quantile * standard_error(
            contributions[first] - contributions[second],
            second_differences[first] - second_differences[second],
        )
        contributions, second_differences = (
            per_block / scores[:, None] for per_block in (contributions, second_differences)
        )
        log_margin = quantile * standard_error(
            contributions[first] - contributions[second],
            second_differences[first] - second_differences[second],
        )
        log_margin[rarefied.nearly_uniform[first] | rarefied.nearly_uniform[second]] = np.nan
    p_values = np.full(len(pairs), np.nan)
    tested_size = None
    if rarefied is not None and options.permutations and pairs:
        tested_size = items_tested(groups, rarefied.size, len(pairs), options.permutations)
        for i, (g, h) in enumerate(pairs):
            report(i / len(pairs))
            p_values[i] = permutation_test(groups, g, h, tested_size, q, options.permutations, options.rng)
        notes = notes + _test_notes(groups, options, p_values, rarefied.size, tested_size)
    return Differences(
        groups=tuple(labels[g] for g in first.tolist()),
        references=tuple(labels[g] for g in second.tolist()),
        difference=frozen(difference),
        difference_low=frozen(difference - margin),
        difference_high=frozen(difference + margin),
        ratio=frozen(ratio),
        ratio_low=frozen(ratio * np.exp(-log_margin)),
        ratio_high=frozen(ratio * np.exp(log_margin)),
        p=frozen(p_values),
        p_adjusted=frozen(holm(p_values)),
        shared=frozen(_shared_counts(groups, pairs)),
        confidence=options.confidence,
        permutations=options.permutations,
        size=None if rarefied is None else rarefied.size,
        tested_size=tested_size,
        notes=tuple(notes),
    )


def _shared_counts(groups: Groups, pairs: list[tuple[int, int]]) -> np.ndarray:
    """How many items of the group the reference shares, copies counted, for each pair."""
    if not groups.shared:
        return np.zeros(len(pairs), dtype=np.int64)
    # All copies of a shared item are shared.
    counts = [int(groups.copies(g)[np.isin(groups.items(g), groups.items(h))].sum()) for g, h in pairs]
    return np.array(counts, dtype=np.int64)


def _test_notes(
    groups: Groups, options: PairOptions, p_values: np.ndarray, size: int, tested_size: int
) -> list[Note]:
    """Notes on the tests: fewer items than the common size, too few deals to be significant, pairs without a test."""
    notes = []
    if tested_size < size:
        text = (
            f"The tests took {tested_size:,} items of each group, not {size:,}, so as not to take long (the "
            "differences and intervals are those of the common size)."
        )
        notes.append(Note("tests-of-fewer-items", text, {"tested_size": tested_size, "size": size}))
    n_tests, level = int(np.count_nonzero(~np.isnan(p_values))), 1 - options.confidence
    if n_tests > (options.permutations + 1) * (level + LEVEL_TOLERANCE):
        needed = math.ceil(n_tests / level - LEVEL_TOLERANCE) - 1
        notes.append(
            Note(
                "tests-of-too-few-deals",
                f"{n_tests:,} tests of {options.permutations:,} deals cannot have an adjusted p-value of "
                f"{level:.2g} or less.",
                {"tests": n_tests, "permutations": options.permutations, "level": level, "needed": needed},
                Advice("Pass {} or more, or compare fewer groups.", "permutations", str(needed)),
            )
        )
    untested = [
        tuple(groups.labels[position] for position in options.pairs[i])
        for i in np.flatnonzero(np.isnan(p_values)).tolist()
    ]
    if untested:
        g, h = map(quoted, untested[0])
        more = f" (and {len(untested) - 1:,} other pairs)" if len(untested) > 1 else ""
        text = (
            f"There is no test of {g} against {h}{more}: (nearly) all items of one are in the other, and only items of "
            "one of them can be dealt out anew."
        )
        notes.append(Note("pairs-without-test", text, {"pairs": untested}))
    return notes


# ---------------------------------------------------------------------------------------------------- permutation tests


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
    random_state = generator(rng, f"permutations {first} {second}")
    first_only, second_only, shared = _split_shared(groups, first, second)
    # Each group is represented as it is: with the same fraction of shared items as it has.
    shared_counts = [_shared_count(single.size, shared.size, size) for single in (first_only, second_only)]
    single_counts = [size - kept for kept in shared_counts]
    if min(single_counts) == 0:
        return float("nan")
    shared_draw = shared.draw(max(shared_counts), random_state)
    single_draw = np.concatenate(
        [first_only.draw(single_counts[0], random_state), second_only.draw(single_counts[1], random_state)]
    )
    items, positions = np.unique(np.concatenate([shared_draw, single_draw]), return_inverse=True)
    stay, moving = positions[: len(shared_draw)], positions[len(shared_draw) :]
    pool = Pool(groups.similarity, items, size)
    chunks = []
    for begin in range(0, permutations + 1, DEALS_AT_ONCE):
        count = min(DEALS_AT_ONCE, permutations + 1 - begin)
        deals = random_state.permuted(np.tile(moving, (count, 1)), axis=1)
        if begin == 0:
            deals[0] = moving  # the observed assignment
        entropies = [
            np.log(pool.scores(np.column_stack([np.tile(stay[:kept], (count, 1)), dealt]), q))
            for kept, dealt in zip(
                shared_counts, (deals[:, : single_counts[0]], deals[:, single_counts[0] :]), strict=True
            )
        ]
        chunks.append(np.abs(entropies[0] - entropies[1]))
    gaps = np.concatenate(chunks)
    return float(np.count_nonzero(gaps >= gaps[0] - TIE_TOLERANCE) / (permutations + 1))


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


class _Items(NamedTuple):
    """Items with their numbers of copies."""

    items: np.ndarray
    copies: np.ndarray

    @property
    def size(self) -> int:
        """Number of items, copies counted."""
        return int(self.copies.sum())

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """A random sample without replacement, as positions of items."""
        ends = np.cumsum(self.copies)
        return self.items[np.searchsorted(ends, rng.choice(self.size, count, replace=False), side="right")]


def _split_shared(groups: Groups, first: int, second: int) -> tuple[_Items, _Items, _Items]:
    """The items of the first group only, of the second only, and of both."""
    first_items, second_items = (_Items(groups.items(g), groups.copies(g)) for g in (first, second))
    if groups.separate_copies:
        empty = np.zeros(0, dtype=np.int64)
        return first_items, second_items, _Items(empty, empty)
    in_second = np.isin(first_items.items, second_items.items)
    in_first = np.isin(second_items.items, first_items.items)
    return (
        _Items(first_items.items[~in_second], first_items.copies[~in_second]),
        _Items(second_items.items[~in_first], second_items.copies[~in_first]),
        _Items(first_items.items[in_second], first_items.copies[in_second]),
    )


def _shared_count(single: int, shared: int, size: int) -> int:
    """How many of `size` items drawn from one group are shared ones; `single` of its items are in this group only."""
    return min(shared, max(size - single, round(size * shared / (single + shared))))
