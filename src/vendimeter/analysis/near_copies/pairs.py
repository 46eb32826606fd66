"""All pairs of items that are similar enough, tile by tile: nothing n×n is stored, and no pair is left in doubt.

Of dense features a tile is a product in float32, which rounding may have moved by a margin that is known. Pairs within
that margin of a threshold are computed again in float64; all others are on the side where the product put them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import blocks
from vendimeter.data.devices import DEVICE_BYTES, evened, namespace, to_host
from vendimeter.present.progress import Progress
from vendimeter.similarity import Features, Pairwise, Similarity
from vendimeter.similarity.base import positions_of
from vendimeter.similarity.checks import entry_tolerance
from vendimeter.solvers.edges import Entries
from vendimeter.threads import workers

__all__ = [
    "Levels",
    "Pairs",
    "in_order",
    "inner",
    "judged",
    "levels_of",
    "margin_of",
    "similar_pairs",
    "single",
    "within",
]

Pairs = tuple[
    np.ndarray, np.ndarray, np.ndarray
]  # positions i, positions j, and whether the two are identical

TILE = 1024  # rows on each side of a product: its 4 MiB stay in the cache while they are looked at
STRIP_BYTES = 512 << 20  # of rows in float32 that are held at a time
CROWDED = 64  # a tile is done again in float64 when more than one pair in so many is in doubt
INNER_BYTES = 2 << 20  # of rows whose inner products are taken at a time: they stay in the cache
SHORT = 64  # clusters of no more items than this are taken together, pair by pair
SINGLE = 2.0**-24


@dataclass(frozen=True)
class Levels:
    """The similarities from which on two items are near copies, and identical; rounding is allowed for in both."""

    near: float
    same: float


def levels_of(similarity: Similarity, threshold: float, names: np.ndarray) -> tuple[Levels, Entries]:
    """Where a similarity counts as having met the threshold, and as 1; and the similarities, checked on the way."""
    entries = Entries(similarity, names)
    given = entries.slack
    if not (isinstance(similarity, Features) or (isinstance(similarity, Pairwise) and similarity.trusted)):
        given = max(given, entry_tolerance(similarity.precision))  # as precise as a user's own numbers are
    return Levels(threshold - entries.slack, min(1 - given, 1.0)), entries


def similar_pairs(similarity: Similarity, levels: Levels, entries: Entries, label: str) -> Iterator[Pairs]:
    """Pairs i < j of items that are near copies, some at a time."""
    if isinstance(similarity, Features) and not similarity.sparse and similarity.like is None:
        yield from _from_rows(similarity, levels, label)
        return
    for i, j, k in entries.edges(levels.near, values=True, label=label):
        assert k is not None
        yield i, j, k >= levels.same


# ------------------------------------------------------------------------------------------------ from dense features


def margin_of(features: Features) -> float:
    """How far a product of rows in float32 may be off: the cast of both, d products, and d sums."""
    error = (features.width + 4) * SINGLE
    return error / (1 - error) + features.entry_error if error < 0.5 else 1.0


def single(features: Features, index: Any) -> np.ndarray:
    """Rows in float32."""
    return features.rows(index).astype(np.float32)


def _from_rows(features: Features, levels: Levels, label: str) -> Iterator[Pairs]:
    """Each pair of tiles once, side by side on all cores."""
    with workers(64) as count, ThreadPoolExecutor(count) as pool, Progress(label) as progress:
        done, whole = 0, features.n * (features.n + 1) / 2
        for size, pairs in in_order(pool, _tiles(features, levels), 2 * count):
            done += size
            progress.step(done / whole)
            yield pairs


def _tiles(features: Features, levels: Levels) -> Iterator[Callable[[], tuple[int, Pairs]]]:
    """The work on each tile, on and above the diagonal."""
    n, margin = features.n, margin_of(features)
    for strip in _cut(0, n, max(1, STRIP_BYTES // (4 * features.width * TILE)) * TILE):
        held = np.empty((strip.stop - strip.start, features.width), dtype=np.float32)
        for part in _cut(strip.start, strip.stop, TILE):
            held[part.start - strip.start : part.stop - strip.start] = single(features, part)
        for cols in _cut(strip.start, n, TILE):
            inside = cols.stop <= strip.stop
            right = (
                held[cols.start - strip.start : cols.stop - strip.start] if inside else single(features, cols)
            )
            for rows in _cut(strip.start, min(strip.stop, cols.stop), TILE):
                left = held[rows.start - strip.start : rows.stop - strip.start]
                yield _tile(features, levels, margin, (rows, left), (cols, right))


def _tile(
    features: Features,
    levels: Levels,
    margin: float,
    left: tuple[slice, np.ndarray],
    right: tuple[slice, np.ndarray],
) -> Callable[[], tuple[int, Pairs]]:
    def work() -> tuple[int, Pairs]:
        product = left[1] @ right[1].T
        upper = left[0] == right[0]
        if upper:
            product[np.tri(len(product), dtype=bool)] = -2.0
        size = product.size if not upper else len(product) * (len(product) + 1) // 2
        return size, judged(features, product, left[0], right[0], levels, margin)

    return work


def judged(
    features: Features,
    product: np.ndarray,
    rows: slice | np.ndarray,
    cols: slice | np.ndarray,
    levels: Levels,
    margin: float,
) -> Pairs:
    """The near copies among the pairs of a product in float32; what it leaves in doubt is computed in float64."""
    low = levels.near - margin
    if product.max(initial=-2.0) < low:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty, np.empty(0, dtype=bool)
    a, b = np.nonzero(product >= low)
    found = product[a, b].astype(np.float64)
    i, j = positions_of(rows, features.n)[a], positions_of(cols, features.n)[b]
    doubt = np.flatnonzero((found <= levels.near + margin) | (found >= levels.same - margin))
    if len(doubt) > product.size // CROWDED:
        found = features.block(rows, cols)[a, b]
    elif len(doubt):
        found[doubt] = inner(features, i[doubt], j[doubt])
    near = found >= levels.near
    return i[near], j[near], found[near] >= levels.same


def inner(features: Features, i: np.ndarray, j: np.ndarray, others: Features | None = None) -> np.ndarray:
    """The similarities of pairs of items, i[k] with j[k] (of `others`, where they are given), in float64."""
    others, found = others or features, np.empty(len(i))
    most = INNER_BYTES if features.like is None else DEVICE_BYTES
    for part in blocks(len(i), 128 if features.sparse else 2 * features.width, most=most):
        left, right = (which.rows(evened(at[part], which.like)) for which, at in ((features, i), (others, j)))
        if features.sparse:
            found[part] = np.asarray(left.multiply(right).sum(axis=1)).ravel()
        elif features.like is None:
            found[part] = np.einsum("ij,ij->i", left, right)
        else:
            found[part] = to_host(namespace(left).sum(left * right, axis=1))[: part.stop - part.start]
    return found


# ------------------------------------------------------------------------------------------------ pairs within clusters


def within(features: Features, labels: np.ndarray, levels: Levels, label: str) -> Iterator[Pairs]:
    """Near copies among the items with one label, for every label: those of small clusters pair by pair."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    size = sizes[labels[order]]
    short = order[(size > 1) & (size <= SHORT)]
    own, active, step = labels[short], np.arange(len(short)), 1
    while len(active):
        active = active[active + step < len(short)]
        active = active[own[active] == own[active + step]]
        # Labels stand in rising order, and positions within a label do: i < j.
        i, j = short[active], short[active + step]
        found = inner(features, i, j)
        near = found >= levels.near
        yield i[near], j[near], found[near] >= levels.same
        step += 1
    starts = np.cumsum(sizes) - sizes
    for one in np.flatnonzero(sizes > SHORT):
        places = order[starts[one] : starts[one] + sizes[one]]
        part = features.take(places)
        for i, j, same in similar_pairs(part, levels, Entries(part), label):
            yield places[i], places[j], same


# ------------------------------------------------------------------------------------------------------------- helpers


def _cut(start: int, stop: int, step: int) -> list[slice]:
    return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]


def in_order(pool: ThreadPoolExecutor, tasks: Iterable[Callable[[], Any]], ahead: int) -> Iterator[Any]:
    """What the tasks give, in their order; so many are under way at a time that results do not pile up."""
    import scipy.sparse.csgraph  # noqa: F401  # whole before there are threads: one would meet it half imported

    waiting: deque[Future[Any]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(task))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for one in waiting:
            one.cancel()
