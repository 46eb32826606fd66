"""Near copies among more items than can all be compared: tables of hashes, and how much of what is there they find.

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

from vendimeter.analysis.near_copies.pairs import Levels, Pairs, in_order, inner, judged, margin_of, single
from vendimeter.data.arrays import blocks
from vendimeter.data.devices import DEVICE_BYTES, move, namespace, to_host
from vendimeter.options import generator
from vendimeter.present.progress import Progress
from vendimeter.results.base import Figure
from vendimeter.similarity import FeatureRows, Features
from vendimeter.similarity.base import parts_of
from vendimeter.solvers.edges import join_components as _joined
from vendimeter.threads import workers

__all__ = ["Recall", "hashed_clusters", "interval"]


# -------------------------------------------------------------------------------------------------------------- recall

# How much of what is there a search finds, as far as that was measured.


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


# ------------------------------------------------------------------------------------------------------------- hashing

Edges = tuple[np.ndarray, np.ndarray]

CODE = 32  # bits of a code
LAST = 2**32 - 1  # behind the position of any item
SKETCH = 768  # bits of a sketch …
FIRST = 256  # … of which so many are compared first
WINDOW = 32  # items that each is compared with in the order of a table
AT_ONCE = 8  # tables whose hyperplanes are applied in one pass over the rows …
PLANE_BYTES = 256 << 20  # … but fewer of very wide rows
MOST_TABLES = 256
CENTRED = 2048  # items whose median a hyperplane goes through
PLANTED = 2000  # copies that are planted to decide when to stop, and as many to tell how much is found
CHECKED = 2000  # items that are compared with all others
CLOSE = (
    0.999  # of planted copies whose sketches are near enough, first and as a whole: more would cost much more
)
SPARE = 0.5  # by what part of the way to 1 the planted copies must exceed the recall asked for
BLOCK = 1 << 16  # items of an order that are worked on at a time


def hashed_clusters(
    features: Features, levels: Levels, threshold: float, target: float, seed: int
) -> tuple[np.ndarray, Recall]:
    """The component of each item in the graph of the near copies that were found, and how many are.

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
    enough = target + SPARE * (1 - target)
    with Progress("near copies") as progress:
        while True:
            while search.pilot.share < enough and search.tables < MOST_TABLES:
                search.add()
                progress.step(None, f"{search.tables} tables, recall {search.pilot.share:.3f}")
            complete, checked = search.check()
            real = interval(complete, checked) if checked else (math.nan, math.nan)
            if not real[1] < target or search.tables >= MOST_TABLES:
                break
            enough = 1 - (1 - enough) / 4  # real copies are harder to find here than planted ones
    found, planted = int(search.fresh.found.sum()), len(search.fresh.places)
    recall = Recall(
        found / planted if planted else math.nan,
        *(interval(found, planted) if planted else (math.nan, math.nan)),
        planted,
        complete / checked if checked else math.nan,
        *real,
        checked,
        search.tables,
        target,
    )
    return search.labels, recall


class _Planted:
    """Copies of random items, each at exactly the threshold, and which of them joined the cluster of their original.

    Attributes
    ----------
    places : ndarray
        The positions of the originals.
    features : Features
        The copies.
    found : ndarray
        Which of them were found so far.
    sketch : ndarray
        Their sketches, as of the items.
    """

    def __init__(self, features: Features, threshold: float, draws: np.random.Generator):
        self.places = draws.integers(features.n, size=PLANTED)
        rows, kept = _perturbed(features, self.places, threshold, draws)
        self.places = self.places[kept]
        self.features = FeatureRows(rows)
        self.found = np.zeros(len(self.places), dtype=bool)
        self.sketch = np.empty((0, 0), dtype=np.uint64)

    @property
    def share(self) -> float:
        """The share of those that were found; 0 where no copy could be made."""
        return float(self.found.mean()) if len(self.found) else 0.0

    def around(self, order: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Copies that were not found yet, and the items that each would be compared with in an order of keys."""
        missing = np.flatnonzero(~self.found)
        # After all items of the same code, as the last of the collection would be.
        at = np.searchsorted(order, _key(codes[missing], np.full(len(missing), LAST)))
        near = at[:, None] + np.arange(-WINDOW, WINDOW)
        inside = (near >= 0) & (near < len(order))
        copies = np.broadcast_to(missing[:, None], near.shape)[inside]
        return copies, _places(order[near[inside]])


class _Search:
    """Tables, what they have joined so far, and the planted copies that go through the same tables."""

    def __init__(self, features: Features, levels: Levels, threshold: float, seed: int):
        self._features, self._levels = features, levels
        self._draws = generator(seed, "hyperplanes")
        self._checks = generator(seed, "recall")
        self.labels = np.arange(features.n)
        self.tables = 0
        self.pilot, self.fresh = self._planted = [
            _Planted(features, threshold, generator(seed, name))
            for name in ("pilot copies", "planted copies")
        ]
        whole, *planted = (packed.view(np.uint64) for packed in self._hashed(SKETCH // CODE))
        self._sketch, self._words = whole, np.ascontiguousarray(whole[:, : FIRST // 64].T)
        for copies, sketch in zip(self._planted, planted, strict=True):
            copies.sketch = sketch
        apart = self.pilot.sketch ^ whole[self.pilot.places]
        self._first, self._limit = (_quantile(_bits(part)) for part in (apart[:, : FIRST // 64], apart))

    def _hashed(self, count: int) -> list[np.ndarray]:
        """New codes for all items and both kinds of planted copies: the bits of `count` tables, packed."""
        features = self._features
        most = max(1, PLANE_BYTES // (4 * CODE * features.width))
        parts: list[list[np.ndarray]] = [[], [], []]
        for start in range(0, count, most):
            bits = CODE * min(most, count - start)
            planes = self._draws.standard_normal((features.width, bits), dtype=np.float32)
            some = self._draws.integers(features.n, size=min(features.n, CENTRED))
            offsets = np.median(_projected(features, some, _placed(planes, features)), axis=0)
            for held, which in zip(parts, (features, self.pilot.features, self.fresh.features), strict=True):
                held.append(_signs(which, planes, offsets.astype(np.float32)))
        return [np.concatenate(held, axis=1) if len(held) > 1 else held[0] for held in parts]

    def add(self) -> None:
        """Some more tables."""
        count = min(AT_ONCE, MOST_TABLES - self.tables)
        codes = [np.ascontiguousarray(packed.view(">u4").T) for packed in self._hashed(count)]

        def table(t: int) -> tuple[list[Edges], Edges]:
            order = _key(codes[0][t], np.arange(self._features.n))
            order.sort()
            planted = [
                self._copies_near(copies, *copies.around(order, own[t]))
                for copies, own in zip(self._planted, codes[1:], strict=True)
            ]
            return planted, self._scanned(_places(order))

        for planted, (i, j) in _side_by_side(self._features, table, count):
            self.labels = _joined(self.labels, i, j)  # what one table has joined, later ones need not look at
            for copies, (copy, item) in zip(self._planted, planted, strict=True):
                joined = self.labels[item] == self.labels[copies.places[copy]]
                copies.found[copy[joined]] = True
        self.tables += count

    def _scanned(self, order: np.ndarray) -> Edges:
        """Near copies that are not known to belong together, among items that are near in an order."""
        first, n = [words[order] for words in self._words], len(order)
        accepted = [(np.empty(0, dtype=np.int64),) * 2]
        for start in range(0, n, BLOCK):
            left, right = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
            for step in range(1, min(WINDOW, n - start - 1) + 1):
                stop = min(start + BLOCK, n - step)
                near = np.flatnonzero(_distance(first, start, stop, step) <= self._first) + start
                left.append(order[near])
                right.append(order[near + step])
            accepted.append(self._verified(np.concatenate(left), np.concatenate(right)))
        i, j = (np.concatenate(part) for part in zip(*accepted, strict=True))
        return i, j

    def _verified(self, i: np.ndarray, j: np.ndarray) -> Edges:
        """Those of the pairs that are near copies and not in one cluster yet, without what would join them twice."""
        apart = np.flatnonzero(self.labels[i] != self.labels[j])
        apart = apart[self._close(self._sketch, i[apart], j[apart])]
        i, j = i[apart], j[apart]
        near = inner(self._features, i, j) >= self._levels.near
        return _forest(i[near], j[near])

    def _close(self, sketch: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Whether the sketches of pairs are near enough; those of the j[k] are the items'."""
        close = np.empty(len(i), dtype=bool)
        for part in blocks(len(i), 2 * SKETCH // 64):
            apart = sketch[i[part]] ^ self._sketch[j[part]]
            first = _bits(apart[:, : FIRST // 64]) <= self._first
            close[part] = first & (_bits(apart) <= self._limit)
        return close

    def _copies_near(self, copies: _Planted, copy: np.ndarray, item: np.ndarray) -> Edges:
        """Pairs of planted copies and items that would be found: sketches first, then inner products."""
        close = self._close(copies.sketch, copy, item)
        copy, item = copy[close], item[close]
        near = inner(copies.features, copy, item, self._features) >= self._levels.near
        return copy[near], item[near]

    def check(self) -> tuple[int, int]:
        """Compare random items with all: how many have all their near copies in their cluster, of how many with any."""
        n, before = self._features.n, self.labels
        some = np.sort(self._checks.choice(n, min(n, CHECKED), replace=False))
        any_, missed = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        for i, j, _ in _against_all(self._features, some, self._levels):
            i, j = i[i != j], j[i != j]
            any_[i] = True
            missed[i[before[i] != before[j]]] = True
            self.labels = _joined(self.labels, i, j)  # what is known is not thrown away
        checked = int(any_.sum())
        return checked - int(missed.sum()), checked


# ------------------------------------------------------------------------------------------------------------- hashes


def _key(codes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Codes and positions in one number, so that sorting it gives one order on every machine."""
    return (codes.astype(np.uint64) << np.uint64(32)) | places.astype(np.uint64)


def _places(keys: np.ndarray) -> np.ndarray:
    return (keys & np.uint64(LAST)).astype(np.int64)


def _bits(words: np.ndarray) -> np.ndarray:
    """How many bits are set in each row."""
    return np.bitwise_count(words).sum(axis=1, dtype=np.int64)


def _quantile(distances: np.ndarray) -> int:
    """Within what distance nearly all are; without any, all there can be."""
    return int(np.quantile(distances, CLOSE, method="higher")) if len(distances) else SKETCH


def _placed(planes: np.ndarray, features: Features) -> Any:
    return planes if features.like is None else move(planes.astype(np.float64), features.like)


def _projected(features: Features, index: Any, planes: Any) -> np.ndarray:
    rows = features.rows(index)
    return to_host((rows if features.like is not None else rows.astype(np.float32)) @ planes)


def _signs(features: Features, planes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """On which side of each hyperplane each item lies, eight of them a byte."""
    packed = np.empty((features.n, planes.shape[1] // 8), dtype=np.uint8)
    there = _placed(planes, features)
    width = planes.shape[1] + (64 if features.sparse else features.width)
    parts = blocks(features.n, width, **({} if features.like is None else {"most": DEVICE_BYTES}))

    def work(k: int) -> None:
        packed[parts[k]] = np.packbits(_projected(features, parts[k], there) >= offsets, axis=1)

    for _ in _side_by_side(features, work, len(parts)):
        pass
    return packed


def _distance(sketch: list[np.ndarray], start: int, stop: int, step: int) -> np.ndarray:
    """In how many first bits the sketches of items differ from those so many steps on; 256 are 255."""
    apart = np.bitwise_count(sketch[0][start:stop] ^ sketch[0][start + step : stop + step])
    for words in sketch[1:]:
        more = np.bitwise_count(words[start:stop] ^ words[start + step : stop + step])
        np.minimum(apart, 255 - more, out=apart)
        apart += more
    return apart


def _perturbed(
    features: Features, places: np.ndarray, threshold: float, draws: np.random.Generator
) -> tuple[Any, np.ndarray]:
    """Rows t·x + √(1 − t²)·u with unit u ⊥ x, and for which of the places there is one.

    The direction u is random for dense rows. Sparse rows stay sparse: there it is that of another item.
    """
    rest = math.sqrt(max(1 - threshold**2, 0.0))
    rows = features.rows(places)
    if features.sparse:
        from scipy import sparse

        others = features.rows(draws.integers(features.n, size=len(places)))
        along = np.asarray(rows.multiply(others).sum(axis=1)).ravel()
        away = others - sparse.dia_array((along[None], [0]), shape=(len(places),) * 2) @ rows
        norms = np.sqrt(np.asarray(away.multiply(away).sum(axis=1)).ravel())
        kept = np.flatnonzero(norms > 1e-6)  # an item in the direction of another says nothing
        scale = sparse.dia_array(((rest / norms[kept])[None], [0]), shape=(len(kept),) * 2)
        return sparse.csr_array(threshold * rows[kept] + scale @ away[kept]), kept
    xp = namespace(rows)
    noise = move(draws.standard_normal((len(places), features.width)), features.like)
    noise = noise - xp.sum(noise * rows, axis=1)[:, None] * rows
    norms = xp.sqrt(xp.sum(noise * noise, axis=1))[:, None]
    return threshold * rows + (rest / norms) * noise, np.arange(len(places))


# ---------------------------------------------------------------------------------------------------------- the check


def _against_all(features: Features, places: np.ndarray, levels: Levels) -> Iterator[Pairs]:
    """The near copies of some items among all of them, some at a time; an item is one of its own."""
    parts = parts_of(features.n, features.step)
    plain = not features.sparse and features.like is None
    left, margin = single(features, places) if plain else None, margin_of(features)

    def work(k: int) -> Pairs:
        if left is not None:
            product = left @ single(features, parts[k]).T
            return judged(features, product, places, parts[k], levels, margin)
        block = to_host(features.block(places, parts[k]))
        a, b = np.nonzero(block >= levels.near)
        return places[a], b + parts[k].start, block[a, b] >= levels.same

    yield from _side_by_side(features, work, len(parts))


def _forest(i: np.ndarray, j: np.ndarray) -> Edges:
    """Fewer pairs that join the same items: each with the first one of its component."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    if len(i) < 2:
        return i, j
    nodes, ends = np.unique(np.concatenate([i, j]), return_inverse=True)
    left, right = np.split(ends.reshape(-1), 2)
    graph = sparse.coo_array((np.ones(len(i), dtype=bool), (left, right)), shape=(len(nodes),) * 2)
    labels = connected_components(graph.tocsr(), directed=False)[1]
    first = np.unique(labels, return_index=True)[1]
    return nodes, nodes[first[labels]]


def _side_by_side(features: Features, work: Callable[[int], Any], count: int) -> Iterator[Any]:
    """What the work gives for each number below `count`, in their order, on all cores.

    In this thread alone where rows lie on a device, which has cores enough; and JAX's 64-bit mode is one of a thread.
    """
    if features.like is not None:
        yield from map(work, range(count))
        return
    with workers(64) as cores, ThreadPoolExecutor(cores) as pool:
        yield from in_order(pool, [partial(work, k) for k in range(count)], cores + 1)
