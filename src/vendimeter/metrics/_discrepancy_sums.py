"""Sums of a kernel over all pairs within and between two sets, and the estimate of their discrepancy from these."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES
from vendimeter.data.devices import diagonal, namespace, to_host
from vendimeter.errors import AsymmetryError, InputError
from vendimeter.similarity import Index

__all__ = ["METRIC", "PairSums"]

METRIC = "the kernel distance"
SIDE, DEVICE_SIDE = 1024, 8192  # of a block of the kernel on the host and on a device, at most


class PairSums:
    """Sums of a kernel over all pairs within two sets and between them, by rows: all that the estimate needs.

    From the similarities within each set, and from those between the sets, the mean of their first block is taken away:
    the error does not depend on such a constant, and squares of what is left cancel less.
    """

    def __init__(self, source: Any, left: Index, right: Index, step: Callable[[float], None] | None = None):
        self.source, self.step = source, step
        parts = _parts(left, source), _parts(right, source)
        self.sizes = tuple(sum(map(_size, part)) for part in parts)
        self.done, self.pairs = 0, sum(self.sizes) ** 2 / 2
        self.within = [self._within(part) for part in parts]
        self.across, self.back, self.squares, self.shift = self._across(*parts)

    def _block(self, rows: Index, cols: Index, shift: float | None) -> tuple[Any, float]:
        """A block less a shift, which is its mean for the first of many."""
        block = self.source.block(rows, cols)
        self.done += _size(rows) * _size(cols)
        if self.step is not None:
            self.step(self.done / self.pairs)
        if shift is None:
            shift = float(namespace(block).mean(block))
        return block - shift, shift

    def _within(self, parts: list[Index]) -> _Within:
        """Of each item with all others of its set; blocks below the diagonal are mirrored."""
        ends = np.cumsum([0, *map(_size, parts)])
        places = [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]
        totals, own, squares, shift = np.zeros(ends[-1]), np.empty(ends[-1]), 0.0, None
        for i, rows in enumerate(parts):
            block, shift = self._block(rows, rows, shift)
            self._check_symmetry(block, shift)
            own[places[i]] = diagonal(block)
            totals[places[i]] += _total(block, 1)
            squares += _squared(block)
            for j in range(i + 1, len(parts)):
                block, shift = self._block(rows, parts[j], shift)
                totals[places[i]] += _total(block, 1)
                totals[places[j]] += _total(block, 0)
                squares += 2 * _squared(block)
        return _Within(totals, own, squares, shift or 0.0)

    def _across(self, left: list[Index], right: list[Index]) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Of each sample with the whole reference, and the other way round; the squares, and the shift."""
        rows, squares, shift = [], 0.0, None
        back = [np.zeros(_size(cols)) for cols in right]
        for part in left:
            total = np.zeros(_size(part))
            for j, cols in enumerate(right):
                block, shift = self._block(part, cols, shift)
                total += _total(block, 1)
                back[j] += _total(block, 0)
                squares += _squared(block)
            rows.append(total)
        return np.concatenate(rows), np.concatenate(back), squares, shift or 0.0

    def _check_symmetry(self, block: Any, shift: float) -> None:
        """What a user's function gives is checked where both orders of a pair are asked for."""
        if self.source.trusted:
            return
        host = to_host(block)
        apart = float(np.abs(host - host.T).max())
        if apart > 1e-6 * max(float(np.abs(host + shift).max()), 1.0):
            raise AsymmetryError(
                f"k(a, b) and k(b, a) differ by {apart:.2g}; {METRIC} expected a symmetric kernel."
            )

    def value(self) -> float:
        """The estimate."""
        (n, m), (left, right) = self.sizes, self.within
        found = left.others.sum() / (n * (n - 1)) + right.others.sum() / (m * (m - 1))
        found = float(found - 2 * self.across.sum() / (n * m) + (left.shift + right.shift - 2 * self.shift))
        if not math.isfinite(found):
            raise InputError(
                f"{METRIC} came out as {found}: similarities are missing or beyond the range of numbers. Expected "
                "smaller features, or a kernel that gives finite numbers."
            )
        return found

    def variance(self) -> float:
        """An estimate of the variance of the estimate, on the large side; NaN for two items, or beyond the range."""
        (n, m), (left, right) = self.sizes, self.within
        if min(n, m) < 3:
            return math.nan
        jackknife = left.jackknife(self.across, m) + right.jackknife(self.back, n)
        rows, cols = self.across / m, self.back / n
        apart = self.squares - m * np.sum(rows**2) - n * np.sum(cols**2) + n * m * np.mean(rows) ** 2
        between = 4 * max(float(apart), 0.0) / ((n - 1) * (m - 1) * n * m)
        variance = jackknife + left.second_order() + right.second_order() + between
        return variance if math.isfinite(variance) else math.nan


@dataclass(frozen=True)
class _Within:
    """Sums over the pairs within a set, less a shift: by rows with the item itself, the items themselves, squares."""

    totals: np.ndarray
    own: np.ndarray
    squares: float
    shift: float

    @property
    def others(self) -> np.ndarray:
        return self.totals - self.own

    def jackknife(self, across: np.ndarray, m: int) -> float:
        """The variance from the estimates without one item each, of which this set's part is all that changes."""
        n, others = len(self.own), self.others
        without = (others.sum() - 2 * others) / ((n - 1) * (n - 2)) - 2 * (across.sum() - across) / (
            (n - 1) * m
        )
        return float((n - 1) / n * np.sum((without - without.mean()) ** 2))

    def second_order(self) -> float:
        """The variance that the doubly centred kernel brings, from pairs of different items."""
        n, means = len(self.own), self.totals / len(self.own)
        mean = means.mean()
        whole = self.squares - 2 * n * np.sum(means**2) + n**2 * mean**2
        rest = whole - np.sum((self.own - 2 * means + mean) ** 2)
        return 2 * max(float(rest), 0.0) / (n * (n - 1)) ** 2


def _parts(index: Index, source: Any) -> list[Index]:
    """The positions in blocks: on the host so large that rows of features fit the cache, on a device much larger."""
    side = DEVICE_SIDE
    if source.like is None:
        side = min(SIDE, max(64, 2 * BLOCK_BYTES // (8 * getattr(source, "width", 1))))
    return [_cut(index, start, start + side) for start in range(0, _size(index), side)]


def _cut(index: Index, start: int, stop: int) -> Index:
    """Some of the positions, by their place among them."""
    if isinstance(index, slice):
        return slice(index.start + start, min(index.start + stop, index.stop))
    return index[start:stop]


def _size(index: Index) -> int:
    return index.stop - index.start if isinstance(index, slice) else len(index)


def _total(block: Any, axis: int) -> np.ndarray:
    return to_host(namespace(block).sum(block, axis=axis))


def _squared(block: Any) -> float:
    if isinstance(block, np.ndarray):
        return float(np.vdot(block, block))
    return float(namespace(block).sum(block * block))
