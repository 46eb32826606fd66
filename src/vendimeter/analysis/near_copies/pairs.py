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
    "choose_levels",
    "float32_error",
    "float32_rows",
    "inner_products",
    "near_pairs",
    "pairs_within",
    "run_in_order",
    "similar_pairs",
]

# Positions i, positions j, and whether the two are identical.
Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]

TILE = 1024  # rows on each side of a product: its 4 MiB stay in the cache
STRIP_BYTES = 512 << 20  # of rows in float32 in memory at a time
MAX_DOUBTFUL = 64  # a tile is computed again in float64 where more than one pair in so many is in doubt
INNER_BYTES = 2 << 20  # of rows whose inner products are taken at a time: they stay in the cache
SMALL_CLUSTER = 64  # items: clusters up to this are compared pair by pair, all of them together
FLOAT32_UNIT = 2.0**-24  # unit roundoff of float32


@dataclass(frozen=True)
class Levels:
    """The similarities from which on two items are near copies, and identical; rounding is allowed for in both."""

    near: float
    same: float


def choose_levels(similarity: Similarity, threshold: float, names: np.ndarray) -> tuple[Levels, Entries]:
    """The levels from which on similarities meet the threshold and count as 1, and the entries, which check them."""
    entries = Entries(similarity, names)
    slack = entries.slack
    if not (isinstance(similarity, Features) or (isinstance(similarity, Pairwise) and similarity.trusted)):
        slack = max(slack, entry_tolerance(similarity.precision))  # the precision of a user's own numbers
    return Levels(threshold - entries.slack, min(1 - slack, 1.0)), entries


def similar_pairs(similarity: Similarity, levels: Levels, entries: Entries, label: str) -> Iterator[Pairs]:
    """Pairs i < j of items that are near copies, in batches."""
    if isinstance(similarity, Features) and not similarity.sparse and similarity.like is None:
        yield from _pairs_from_rows(similarity, levels, label)
        return
    for i, j, k in entries.edges(levels.near, values=True, label=label):
        assert k is not None
        yield i, j, k >= levels.same


# ------------------------------------------------------------------------------------------------ from dense features


def float32_error(features: Features) -> float:
    """Error bound of an inner product in float32: the cast of both rows, d products, and d sums."""
    error = (features.width + 4) * FLOAT32_UNIT
    return error / (1 - error) + features.entry_error if error < 0.5 else 1.0


def float32_rows(features: Features, index: Any) -> np.ndarray:
    """Rows in float32."""
    return features.rows(index).astype(np.float32)


def _pairs_from_rows(features: Features, levels: Levels, label: str) -> Iterator[Pairs]:
    """Each pair of tiles once, in parallel."""
    with workers(64) as count, ThreadPoolExecutor(count) as pool, Progress(label) as progress:
        done, all_pairs = 0, features.n * (features.n + 1) / 2
        for n_pairs, pairs in run_in_order(pool, _tiles(features, levels), 2 * count):
            done += n_pairs
            progress.step(done / all_pairs)
            yield pairs


def _tiles(features: Features, levels: Levels) -> Iterator[Callable[[], tuple[int, Pairs]]]:
    """A task for each tile on and above the diagonal; it returns the number of pairs and the near copies."""
    n, margin = features.n, float32_error(features)
    for strip in _slices(0, n, max(1, STRIP_BYTES // (4 * features.width * TILE)) * TILE):
        strip_rows = np.empty((strip.stop - strip.start, features.width), dtype=np.float32)
        for batch in _slices(strip.start, strip.stop, TILE):
            strip_rows[batch.start - strip.start : batch.stop - strip.start] = float32_rows(features, batch)
        for cols in _slices(strip.start, n, TILE):
            inside = cols.stop <= strip.stop
            right = (
                strip_rows[cols.start - strip.start : cols.stop - strip.start]
                if inside
                else float32_rows(features, cols)
            )
            for rows in _slices(strip.start, min(strip.stop, cols.stop), TILE):
                left = strip_rows[rows.start - strip.start : rows.stop - strip.start]
                yield _tile(features, levels, margin, (rows, left), (cols, right))


def _tile(
    features: Features,
    levels: Levels,
    margin: float,
    left: tuple[slice, np.ndarray],
    right: tuple[slice, np.ndarray],
) -> Callable[[], tuple[int, Pairs]]:
    """The task of one tile; `left` and `right` are positions with their rows in float32."""

    def work() -> tuple[int, Pairs]:
        product = left[1] @ right[1].T
        upper = left[0] == right[0]
        if upper:
            product[np.tri(len(product), dtype=bool)] = -2.0
        n_pairs = product.size if not upper else len(product) * (len(product) + 1) // 2
        return n_pairs, near_pairs(features, product, left[0], right[0], levels, margin)

    return work


def near_pairs(
    features: Features,
    product: np.ndarray,
    rows: slice | np.ndarray,
    cols: slice | np.ndarray,
    levels: Levels,
    margin: float,
) -> Pairs:
    """The near copies among the pairs of a product in float32; doubtful pairs are computed again in float64."""
    lower_bound = levels.near - margin
    if product.max(initial=-2.0) < lower_bound:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty, np.empty(0, dtype=bool)
    row, col = np.nonzero(product >= lower_bound)
    similarities = product[row, col].astype(np.float64)
    i, j = positions_of(rows, features.n)[row], positions_of(cols, features.n)[col]
    doubtful = np.flatnonzero((similarities <= levels.near + margin) | (similarities >= levels.same - margin))
    if len(doubtful) > product.size // MAX_DOUBTFUL:
        similarities = features.block(rows, cols)[row, col]
    elif len(doubtful):
        similarities[doubtful] = inner_products(features, i[doubtful], j[doubtful])
    near = similarities >= levels.near
    return i[near], j[near], similarities[near] >= levels.same


def inner_products(
    features: Features, i: np.ndarray, j: np.ndarray, others: Features | None = None
) -> np.ndarray:
    """The similarities of pairs of items, i[k] with j[k] (of `others`, if passed), in float64."""
    others, products = others or features, np.empty(len(i))
    limit = INNER_BYTES if features.like is None else DEVICE_BYTES
    for batch in blocks(len(i), 128 if features.sparse else 2 * features.width, most=limit):
        left = features.rows(evened(i[batch], features.like))
        right = others.rows(evened(j[batch], others.like))
        if features.sparse:
            products[batch] = np.asarray(left.multiply(right).sum(axis=1)).ravel()
        elif features.like is None:
            products[batch] = np.einsum("ij,ij->i", left, right)
        else:
            products[batch] = to_host(namespace(left).sum(left * right, axis=1))[: batch.stop - batch.start]
    return products


# ------------------------------------------------------------------------------------------------ pairs within clusters


def pairs_within(features: Features, labels: np.ndarray, levels: Levels, label: str) -> Iterator[Pairs]:
    """Near copies within every cluster, the items of one label; small clusters are compared pair by pair."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    size = sizes[labels[order]]
    in_small = order[(size > 1) & (size <= SMALL_CLUSTER)]
    small_labels, active, step = labels[in_small], np.arange(len(in_small)), 1
    while len(active):
        active = active[active + step < len(in_small)]
        active = active[small_labels[active] == small_labels[active + step]]
        # Sorted by label, and by position within a label: i < j.
        i, j = in_small[active], in_small[active + step]
        similarities = inner_products(features, i, j)
        near = similarities >= levels.near
        yield i[near], j[near], similarities[near] >= levels.same
        step += 1
    starts = np.cumsum(sizes) - sizes
    for cluster_label in np.flatnonzero(sizes > SMALL_CLUSTER):
        start = starts[cluster_label]
        members = order[start : start + sizes[cluster_label]]
        cluster = features.take(members)
        for i, j, same in similar_pairs(cluster, levels, Entries(cluster), label):
            yield members[i], members[j], same


# -------------------------------------------------------------------------------------------------------- parallel work


def _slices(start: int, stop: int, step: int) -> list[slice]:
    return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]


def run_in_order(pool: ThreadPoolExecutor, tasks: Iterable[Callable[[], Any]], ahead: int) -> Iterator[Any]:
    """The results of the tasks, in their order; at most `ahead` are under way, so that results do not pile up."""
    # Imported before there are threads, one of which could see it half imported.
    import scipy.sparse.csgraph  # noqa: F401

    waiting: deque[Future[Any]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(task))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
