"""Permutation tests: how often two groups differ as much when their items are dealt out at random.

The items that are in one of the two groups only are dealt out anew among the two; those in both stay in both. Every
deal is as likely as the true one if the groups come from one population, whatever it is, so that the p-value
(1 + deals that differ as much)/(1 + deals) is right for any kernel, order and size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vendimeter.analysis._compared_groups import Groups
from vendimeter.analysis._pools import Pool, side_of
from vendimeter.options import generator

__all__ = ["holm", "items_tested", "permutation_test"]

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
