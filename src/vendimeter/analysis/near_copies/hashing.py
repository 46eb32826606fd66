"""Near copies among more items than can all be compared: locality-sensitive hashing, and its recall.

A table gives every item a code of 32 bits, the sides of random hyperplanes on which it lies, and sorts the items by it.
Near copies share long beginnings of their codes and come to lie near each other in some of the tables. Each item is
compared with the next few in every order, first by a sketch of 768 further bits, then by its inner product in float64:
whatever is found is true, and what a table costs does not depend on how items crowd.

Every hyperplane halves the items, so that codes tell items apart also where all of them point the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from vendimeter.analysis.near_copies.pairs import (
    Levels,
    Pairs,
    float32_error,
    float32_rows,
    inner_products,
    near_pairs,
    run_in_order,
)
from vendimeter.data.arrays import blocks
from vendimeter.data.devices import DEVICE_BYTES, move, namespace, to_host
from vendimeter.options import generator
from vendimeter.present.progress import Progress
from vendimeter.results.base import Figure
from vendimeter.similarity import FeatureRows, Features
from vendimeter.similarity.base import parts_of
from vendimeter.solvers.edges import join_components
from vendimeter.threads import workers

__all__ = ["Recall", "hashed_clusters", "interval"]

Edges = tuple[np.ndarray, np.ndarray]

CODE_BITS = 32  # of a table's code
LAST_POSITION = 2**32 - 1  # sentinel, greater than any position
SKETCH_BITS = 768  # of a sketch …
FIRST_BITS = 256  # … of which so many are compared first
WINDOW = 32  # next items in the order of a table that each item is compared with
TABLES_AT_ONCE = 8  # tables whose hyperplanes are applied in one pass over the rows …
PLANE_BYTES = 256 << 20  # … but fewer of very wide rows
MOST_TABLES = 256
MEDIAN_SAMPLE = 2048  # items whose median projection a hyperplane goes through
PLANTED = 2000  # copies that are planted to decide when to stop, and as many to estimate the recall
CHECKED = 2000  # random items that are compared with all others
SPARE_RECALL = 0.5  # fraction of 1 − recall by which planted copies must exceed the recall asked for
BLOCK = 1 << 16  # items of an order that are compared at a time
# Quantile of the sketch distances of planted copies that is the limit, of the first bits and of all: a higher one would
# cost much more.
SKETCH_QUANTILE = 0.999


@dataclass(frozen=True, repr=False, eq=False)
class Recall(Figure):
    """The share of near copies that a search finds: a float, with how it was measured.

    Attributes
    ----------
    value : float
        Of copies that were planted at exactly the threshold, the hardest to find, the share that was found; 1 where
        all pairs were compared.
    low, high : float
        Its 95% confidence interval (Clopper and Pearson).
    planted : int
        How many were planted; 0 where all pairs were compared.
    sampled : float
        Of items drawn at random that were compared with all others and have a near copy, the share whose near copies
        are all in their cluster; NaN where none has one.
    sampled_low, sampled_high : float
        Its 95% confidence interval.
    checked : int
        How many of the drawn items have a near copy.
    tables : int
        How many tables there were.
    target : float
        The share that was asked for; NaN where all pairs were compared.
    """

    value: float
    low: float = 1.0
    high: float = 1.0
    planted: int = 0
    sampled: float = math.nan
    sampled_low: float = math.nan
    sampled_high: float = math.nan
    checked: int = 0
    tables: int = 0
    target: float = math.nan


def hashed_clusters(
    features: Features, levels: Levels, threshold: float, target: float, seed: int
) -> tuple[np.ndarray, Recall]:
    """The component of each item in the graph of the near copies that were found, and the recall.

    Parameters
    ----------
    features : Features
        Of distinct items.
    levels : Levels
        What counts as near.
    threshold : float
        The similarity at which copies are planted.
    target : float
        The recall to reach; tables are added until planted copies are found so often, and real ones, as far as they
        are known, not less often.
    seed : int
        Of hyperplanes, planted copies, and items that are compared with all others.
    """
    search = _Search(features, levels, threshold, seed)
    pilot_target = target + SPARE_RECALL * (1 - target)
    with Progress("near copies") as progress:
        while True:
            while search.pilot.share < pilot_target and search.tables < MOST_TABLES:
                search.add_tables()
                progress.step(None, f"{search.tables} tables, recall {search.pilot.share:.3f}")
            n_complete, n_checked = search.check_sample()
            real_recall = interval(n_complete, n_checked) if n_checked else (math.nan, math.nan)
            if not real_recall[1] < target or search.tables >= MOST_TABLES:
                break
            pilot_target = 1 - (1 - pilot_target) / 4  # real copies are harder to find here than planted ones
    n_found, n_planted = int(search.fresh.found.sum()), len(search.fresh.originals)
    recall = Recall(
        n_found / n_planted if n_planted else math.nan,
        *(interval(n_found, n_planted) if n_planted else (math.nan, math.nan)),
        n_planted,
        n_complete / n_checked if n_checked else math.nan,
        *real_recall,
        n_checked,
        search.tables,
        target,
    )
    return search.labels, recall


def interval(found: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a probability.

    Examples
    --------
    >>> [round(end, 4) for end in interval(9, 10)]
    [0.555, 0.9975]
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = betaincinv(found, trials - found + 1, tail) if found else 0.0
    high = betaincinv(found + 1, trials - found, 1 - tail) if found < trials else 1.0
    return float(low), float(high)


class _Search:
    """The search: clusters joined so far, and planted copies that go through the same tables.

    `pilot` copies decide when to stop, `fresh` ones estimate the recall.
    """

    def __init__(self, features: Features, levels: Levels, threshold: float, seed: int):
        self._features, self._levels = features, levels
        self._hash_state = generator(seed, "hyperplanes")
        self._check_state = generator(seed, "recall")
        self.labels = np.arange(features.n)
        self.tables = 0
        self.pilot, self.fresh = self._planted = [
            _PlantedCopies(features, threshold, generator(seed, name))
            for name in ("pilot copies", "planted copies")
        ]
        item_sketches, *copy_sketches = (
            packed.view(np.uint64) for packed in self._hash(SKETCH_BITS // CODE_BITS)
        )
        self._sketches, self._first_words = (
            item_sketches,
            np.ascontiguousarray(item_sketches[:, : FIRST_BITS // 64].T),
        )
        for copies, copy_sketch in zip(self._planted, copy_sketches, strict=True):
            copies.sketches = copy_sketch
        differing = self.pilot.sketches ^ item_sketches[self.pilot.originals]
        self._first_limit, self._full_limit = (
            _distance_limit(_popcounts(bits)) for bits in (differing[:, : FIRST_BITS // 64], differing)
        )

    def _hash(self, count: int) -> list[np.ndarray]:
        """New codes for all items and both kinds of planted copies: the bits of `count` tables, packed."""
        features = self._features
        tables_at_once = max(1, PLANE_BYTES // (4 * CODE_BITS * features.width))
        packed: list[list[np.ndarray]] = [[], [], []]
        for start in range(0, count, tables_at_once):
            bits = CODE_BITS * min(tables_at_once, count - start)
            planes = self._hash_state.standard_normal((features.width, bits), dtype=np.float32)
            sample = self._hash_state.integers(features.n, size=min(features.n, MEDIAN_SAMPLE))
            offsets = np.median(_project(features, sample, _planes_for(planes, features)), axis=0)
            for chunks, source in zip(
                packed, (features, self.pilot.features, self.fresh.features), strict=True
            ):
                chunks.append(_sign_bits(source, planes, offsets.astype(np.float32)))
        return [np.concatenate(chunks, axis=1) if len(chunks) > 1 else chunks[0] for chunks in packed]

    def add_tables(self) -> None:
        """Join what some more tables find."""
        count = min(TABLES_AT_ONCE, MOST_TABLES - self.tables)
        codes = [np.ascontiguousarray(packed.view(">u4").T) for packed in self._hash(count)]

        def search_table(t: int) -> tuple[list[Edges], Edges]:
            order = _sort_keys(codes[0][t], np.arange(self._features.n))
            order.sort()
            planted = [
                self._find_copies(copies, *copies.neighbours(order, copy_codes[t]))
                for copies, copy_codes in zip(self._planted, codes[1:], strict=True)
            ]
            return planted, self._scan(_positions(order))

        for planted, (i, j) in _map_in_parallel(self._features, search_table, count):
            self.labels = join_components(self.labels, i, j)  # later tables skip what is joined
            for copies, (copy, item) in zip(self._planted, planted, strict=True):
                are_joined = self.labels[item] == self.labels[copies.originals[copy]]
                copies.found[copy[are_joined]] = True
        self.tables += count

    def _scan(self, order: np.ndarray) -> Edges:
        """Near copies not in one cluster yet, among items within a window of an order."""
        first_words, n = [words[order] for words in self._first_words], len(order)
        accepted = [(np.empty(0, dtype=np.int64),) * 2]
        for start in range(0, n, BLOCK):
            left, right = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
            for step in range(1, min(WINDOW, n - start - 1) + 1):
                stop = min(start + BLOCK, n - step)
                near = (
                    np.flatnonzero(_hamming_distances(first_words, start, stop, step) <= self._first_limit)
                    + start
                )
                left.append(order[near])
                right.append(order[near + step])
            accepted.append(self._verify(np.concatenate(left), np.concatenate(right)))
        i, j = (np.concatenate(arrays) for arrays in zip(*accepted, strict=True))
        return i, j

    def _verify(self, i: np.ndarray, j: np.ndarray) -> Edges:
        """The pairs that are near copies and not in one cluster yet, reduced to a spanning forest."""
        candidates = np.flatnonzero(self.labels[i] != self.labels[j])
        candidates = candidates[self._are_close(self._sketches, i[candidates], j[candidates])]
        i, j = i[candidates], j[candidates]
        near = inner_products(self._features, i, j) >= self._levels.near
        return _spanning_forest(i[near], j[near])

    def _are_close(self, sketches: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Whether the sketches of pairs are close: row i[k] of `sketches` and that of item j[k]."""
        close = np.empty(len(i), dtype=bool)
        for batch in blocks(len(i), 2 * SKETCH_BITS // 64):
            differing = sketches[i[batch]] ^ self._sketches[j[batch]]
            first_close = _popcounts(differing[:, : FIRST_BITS // 64]) <= self._first_limit
            close[batch] = first_close & (_popcounts(differing) <= self._full_limit)
        return close

    def _find_copies(self, copies: _PlantedCopies, copy: np.ndarray, item: np.ndarray) -> Edges:
        """Pairs of planted copies and items that would be found: sketches first, then inner products."""
        close = self._are_close(copies.sketches, copy, item)
        copy, item = copy[close], item[close]
        near = inner_products(copies.features, copy, item, self._features) >= self._levels.near
        return copy[near], item[near]

    def check_sample(self) -> tuple[int, int]:
        """Compare random items with all: how many have all near copies in their cluster, and how many have any."""
        n, labels_before = self._features.n, self.labels
        sample = np.sort(self._check_state.choice(n, min(n, CHECKED), replace=False))
        has_copies, has_missed = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        for i, j, _ in _compare_with_all(self._features, sample, self._levels):
            i, j = i[i != j], j[i != j]
            has_copies[i] = True
            has_missed[i[labels_before[i] != labels_before[j]]] = True
            self.labels = join_components(self.labels, i, j)  # near copies found here count, too
        checked = int(has_copies.sum())
        return checked - int(has_missed.sum()), checked


class _PlantedCopies:
    """Copies of random items, each at exactly the threshold, and which of them joined their original's cluster.

    Attributes
    ----------
    originals : ndarray
        The positions of the originals.
    features : Features
        The copies.
    found : ndarray
        Which of them were found so far.
    sketches : ndarray
        Their sketches, as those of the items.
    """

    def __init__(self, features: Features, threshold: float, random_state: np.random.Generator):
        self.originals = random_state.integers(features.n, size=PLANTED)
        rows, possible = _make_copies(features, self.originals, threshold, random_state)
        self.originals = self.originals[possible]
        self.features = FeatureRows(rows)
        self.found = np.zeros(len(self.originals), dtype=bool)
        self.sketches = np.empty((0, 0), dtype=np.uint64)

    @property
    def share(self) -> float:
        """The fraction that was found; 0 where no copy could be made."""
        return float(self.found.mean()) if len(self.found) else 0.0

    def neighbours(self, order: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Copies not found yet, and the items that each would be compared with in a sorted array of keys, as pairs."""
        missing = np.flatnonzero(~self.found)
        # Behind all items of the same code, as the last item of the collection would be.
        insertion = np.searchsorted(order, _sort_keys(codes[missing], np.full(len(missing), LAST_POSITION)))
        slots = insertion[:, None] + np.arange(-WINDOW, WINDOW)
        inside = (slots >= 0) & (slots < len(order))
        copies = np.broadcast_to(missing[:, None], slots.shape)[inside]
        return copies, _positions(order[slots[inside]])


def _make_copies(
    features: Features, originals: np.ndarray, threshold: float, random_state: np.random.Generator
) -> tuple[Any, np.ndarray]:
    """Copies at the threshold t: rows t·x + √(1 − t²)·u with unit u ⊥ x, and for which of the originals there is one.

    The direction u is random for dense rows. Sparse rows stay sparse: there it is that of another item.
    """
    sine = math.sqrt(max(1 - threshold**2, 0.0))
    rows = features.rows(originals)
    if features.sparse:
        from scipy import sparse

        others = features.rows(random_state.integers(features.n, size=len(originals)))
        cosines = np.asarray(rows.multiply(others).sum(axis=1)).ravel()
        orthogonal = others - sparse.dia_array((cosines[None], [0]), shape=(len(originals),) * 2) @ rows
        norms = np.sqrt(np.asarray(orthogonal.multiply(orthogonal).sum(axis=1)).ravel())
        possible = np.flatnonzero(norms > 1e-6)  # the other item is parallel: no direction
        scale = sparse.dia_array(((sine / norms[possible])[None], [0]), shape=(len(possible),) * 2)
        return sparse.csr_array(threshold * rows[possible] + scale @ orthogonal[possible]), possible
    xp = namespace(rows)
    noise = move(random_state.standard_normal((len(originals), features.width)), features.like)
    noise = noise - xp.sum(noise * rows, axis=1)[:, None] * rows
    norms = xp.sqrt(xp.sum(noise * noise, axis=1))[:, None]
    return threshold * rows + (sine / norms) * noise, np.arange(len(originals))


# --------------------------------------------------------------------------------------------------- codes and sketches


def _sort_keys(codes: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Codes and positions in one number: sorted, they are in the same order on every machine."""
    return (codes.astype(np.uint64) << np.uint64(32)) | positions.astype(np.uint64)


def _positions(keys: np.ndarray) -> np.ndarray:
    """The positions in sort keys."""
    return (keys & np.uint64(LAST_POSITION)).astype(np.int64)


def _popcounts(words: np.ndarray) -> np.ndarray:
    """How many bits are set in each row."""
    return np.bitwise_count(words).sum(axis=1, dtype=np.int64)


def _distance_limit(distances: np.ndarray) -> int:
    """The limit of sketch distances: a high quantile of those of planted copies; without any, no limit."""
    return int(np.quantile(distances, SKETCH_QUANTILE, method="higher")) if len(distances) else SKETCH_BITS


def _planes_for(planes: np.ndarray, features: Features) -> Any:
    """The hyperplanes where the rows are: in float32 on the host, in float64 on a device."""
    return planes if features.like is None else move(planes.astype(np.float64), features.like)


def _project(features: Features, index: Any, planes: Any) -> np.ndarray:
    """Inner products of rows with the normals of hyperplanes, on the host."""
    rows = features.rows(index)
    return to_host((rows if features.like is not None else rows.astype(np.float32)) @ planes)


def _sign_bits(features: Features, planes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """On which side of each hyperplane each item lies, packed into bytes."""
    packed = np.empty((features.n, planes.shape[1] // 8), dtype=np.uint8)
    device_planes = _planes_for(planes, features)
    width = planes.shape[1] + (64 if features.sparse else features.width)
    batches = blocks(features.n, width, **({} if features.like is None else {"most": DEVICE_BYTES}))

    def work(k: int) -> None:
        packed[batches[k]] = np.packbits(_project(features, batches[k], device_planes) >= offsets, axis=1)

    for _ in _map_in_parallel(features, work, len(batches)):
        pass
    return packed


def _hamming_distances(sketch: list[np.ndarray], start: int, stop: int, step: int) -> np.ndarray:
    """Hamming distances of the first bits of sketches `step` apart in an order, at most 255 (256 is counted as 255)."""
    distances = np.bitwise_count(sketch[0][start:stop] ^ sketch[0][start + step : stop + step])
    for words in sketch[1:]:
        further = np.bitwise_count(words[start:stop] ^ words[start + step : stop + step])
        np.minimum(distances, 255 - further, out=distances)
        distances += further
    return distances


# ---------------------------------------------------------------------------------------------------------------- pairs


def _compare_with_all(features: Features, sample: np.ndarray, levels: Levels) -> Iterator[Pairs]:
    """The near copies of the sampled items among all items, in batches; each item is one of its own."""
    batches = parts_of(features.n, features.step)
    use_float32 = not features.sparse and features.like is None
    left, margin = float32_rows(features, sample) if use_float32 else None, float32_error(features)

    def work(k: int) -> Pairs:
        if left is not None:
            product = left @ float32_rows(features, batches[k]).T
            return near_pairs(features, product, sample, batches[k], levels, margin)
        block = to_host(features.block(sample, batches[k]))
        a, b = np.nonzero(block >= levels.near)
        return sample[a], b + batches[k].start, block[a, b] >= levels.same

    yield from _map_in_parallel(features, work, len(batches))


def _spanning_forest(i: np.ndarray, j: np.ndarray) -> Edges:
    """Fewer pairs that join the same items: each item with the first one of its component."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    if len(i) < 2:
        return i, j
    nodes, end_indices = np.unique(np.concatenate([i, j]), return_inverse=True)
    left, right = np.split(end_indices.reshape(-1), 2)
    graph = sparse.coo_array((np.ones(len(i), dtype=bool), (left, right)), shape=(len(nodes),) * 2)
    labels = connected_components(graph.tocsr(), directed=False)[1]
    first = np.unique(labels, return_index=True)[1]
    return nodes, nodes[first[labels]]


def _map_in_parallel(features: Features, work: Callable[[int], Any], count: int) -> Iterator[Any]:
    """`work` of each number below `count`, in order, on all cores.

    In this thread alone where rows lie on a device, which has cores enough; and JAX's 64-bit mode is one of a thread.
    """
    if features.like is not None:
        yield from map(work, range(count))
        return
    with workers(64) as cores, ThreadPoolExecutor(cores) as pool:
        yield from run_in_order(pool, [partial(work, k) for k in range(count)], cores + 1)
