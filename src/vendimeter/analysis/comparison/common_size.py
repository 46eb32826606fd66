"""Groups rarefied to a common size, and how much their rarefied scores would vary from one sample to another.

The rarefied score of n items is the mean score of their subsets of m items. It estimates, without bias, what m items of
the population score in the mean: groups of different n become comparable. Subsets are windows of a random order of the
items, evenly spaced on a circle, so that every item is in as many of them as any other.

Its standard error is that of a delete-group jackknife with 20 blocks of items. θ_b is the score without block b, and

    D_b = (1 − c_b/n)(θ − θ_b − a·c_b − b·c_b²)

is what the c_b items of the block contribute to θ, a and b fitted to what a score loses with any items. Σ D² is the
variance as far as contributions add up. Where they do not, it counts what two blocks do together twice, and what three
do three times (Efron and Stein 1981). The second differences of pairs of blocks, θ − θ_b − θ_b' + θ_bb', tell how much
that is: their variance is that of what two blocks do together, and three times that of what three do. Half of it is
taken off, which leaves a little more than there is; and only where n = m, since the mean of subsets is additive but for
little, and the noise of drawing them would be taken for it.

Blocks are made of the items of all groups together: what a block contributes to each of two groups that share items is
subtracted from each other before it is squared.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vendimeter.analysis.comparison.groups import Drawn, Groups
from vendimeter.data.arrays import is_sparse
from vendimeter.data.devices import to_host
from vendimeter.errors import TooLargeError
from vendimeter.options import generator
from vendimeter.similarity import Features, Pairwise, Similarity, span
from vendimeter.solvers import dense
from vendimeter.solvers.groups import held
from vendimeter.solvers.plan import EXACT_SIDE
from vendimeter.spectrum import hill
from vendimeter.threads import run, workers

__all__ = ["BLOCKS", "Pool", "Rarefied", "quantile", "rarefied", "side_of", "standard_error"]


# --------------------------------------------------------------------------------------------------------------- pools

# Scores of thousands of random subsets of a few hundred items, whose similarities are made once and kept at hand.
#
# All subsets are of one size, so that their matrices are stacked and solved together, a Python thread a core with BLAS
# on
# one thread each. The smallest of three matrices is solved: that of the subset's items, that of the distinct items with
# their multiplicities (where counts make many copies of few), or that of the features.

STACK_BYTES = 16 << 20  # of matrices that one thread solves at a time
SPARSE_WIDTH = 1024  # columns of sparse features up to which rows are made dense


def side_of(similarity: Similarity, size: int) -> int:
    """The side of the matrix whose eigenvalues the score of a subset of this size takes."""
    if isinstance(similarity, Features) and not (similarity.sparse and similarity.width > SPARSE_WIDTH):
        return min(size, similarity.width)
    return size


class Pool:
    """Some items of a collection, for the scores of many subsets of them.

    Parameters
    ----------
    similarity : Similarity
        Of the whole collection; a user's matrix has been checked.
    items : ndarray
        Positions of the items in it, each once.
    size : int
        About how many items the subsets have.

    Examples
    --------
    >>> import numpy as np
    >>> from vendimeter.similarity import FeatureRows, Features
    >>> pool = Pool(FeatureRows(np.eye(5)), np.array([1, 3, 4]), size=2)
    >>> pool.scores(np.array([[0, 1], [2, 2]]), 1.0)
    array([2., 1.])
    """

    def __init__(self, similarity: Similarity, items: np.ndarray, size: int):
        self.error = similarity.entry_error
        self._matrix = self._rows = None
        if side_of(similarity, size) < min(size, len(items)):
            assert isinstance(similarity, Features)
            rows = similarity.rows(span(items))
            self._rows = rows.toarray() if is_sparse(rows) else to_host(rows)
        elif len(items) > EXACT_SIDE:
            raise TooLargeError(
                f"subsets of size={size} items take {len(items)}×{len(items)} similarities at a time, and the limit is "
                f"{EXACT_SIDE}×{EXACT_SIDE}; expected a smaller size, or a kernel with fewer features than that."
            )
        elif isinstance(similarity, Pairwise) and not similarity.trusted:
            matrix = held(similarity.take(items))
            self.error, self._matrix = matrix.entry_error, to_host(matrix.dense())
        else:
            self._matrix = to_host(similarity.dense(items))

    def scores(self, subsets: np.ndarray, q: float) -> np.ndarray:
        """The scores of order q of subsets, of shape (subsets, size): places in this pool, copies allowed."""
        count, size = subsets.shape
        known = self._rows if self._matrix is None else self._matrix
        assert known is not None
        entries = size * known.shape[1] if self._matrix is None else min(size, len(known)) ** 2
        step = max(1, min(STACK_BYTES // (8 * entries), -(-count // 8)))
        parts = [slice(first, first + step) for first in range(0, count, step)]
        found = np.empty(count)
        with workers(len(parts)) as threads:
            run([
                functools.partial(self._fill, found, subsets, parts[i::threads], q) for i in range(threads)
            ])  # fmt: skip
        return found

    def _fill(self, found: np.ndarray, subsets: np.ndarray, parts: list[slice], q: float) -> None:
        for part in parts:
            stack = self._stack(subsets[part])
            values = dense.eigenvalues(stack)
            error = self.error + dense.eigen_error(stack.shape[-1], values[:, 0])
            # A principal submatrix has no eigenvalue below those of the whole, which was looked at: what is negative
            # here is rounding, or was to be projected away.
            found[part] = hill(np.maximum(values, 0.0), q, zero_below=2 * error)

    def _stack(self, subsets: np.ndarray) -> np.ndarray:
        """The matrices ρ of some subsets."""
        count, size = subsets.shape
        if self._rows is not None:
            rows = self._rows[subsets]
            return rows.transpose(0, 2, 1) @ rows / size
        assert self._matrix is not None
        known = len(self._matrix)
        if known < size:
            flat = (subsets + known * np.arange(count)[:, None]).ravel()
            copies = np.bincount(flat, minlength=known * count).reshape(count, known)
            roots = np.sqrt(copies / size)
            return self._matrix * roots[:, :, None] * roots[:, None, :]
        return self._matrix[subsets[:, :, None], subsets[:, None, :]] / size


# --------------------------------------------------------------------------------------------------------- common size

BLOCKS = 20
ORDER = 20  # windows of one random order, or more where it takes more to have every item in one
COVERS = 2  # how many windows each item is in where a block is left out
USED = 2048  # items of a group whose similarities are kept at hand …
TIMES = 20  # … or so many times the common size, where few features are
WORK = 1e12  # of the jackknife of all groups, in cubes of the sides of matrices

Report = Callable[[float], None]
FEW = (
    10  # (score − 1) × size, about the items that are unlike the others, below which a log scale is of no use
)


@dataclass(frozen=True)
class Rarefied:
    """Scores at a common size.

    Attributes
    ----------
    size : int
        The common size.
    scores : ndarray, shape (groups,)
        NaN for groups of fewer items.
    used : ndarray, shape (groups,)
        How many items of each group were drawn for it.
    shifts, bends : ndarray of shape (groups, BLOCKS), or None
        What each block contributes to the score, and the second differences of each block and the next.
    """

    size: int
    scores: np.ndarray
    used: np.ndarray
    shifts: np.ndarray | None = None
    bends: np.ndarray | None = None

    @property
    def few(self) -> np.ndarray:
        """Groups that are all alike but for a few items: what these do to the logarithm of a score is too skewed.

        With a handful of odd items, or none, the jackknife of a logarithm near 0 says next to nothing.
        """
        return (self.scores - 1) * self.size < FEW


def rarefied(
    groups: Groups,
    scores: np.ndarray,
    size: int,
    q: float,
    *,
    repeats: int,
    jackknife: bool,
    rng: int,
    report: Report = lambda done: None,
) -> Rarefied:
    """The scores of order q of all groups, rarefied to a size, with their jackknife on request.

    Parameters
    ----------
    groups : Groups
        All groups.
    scores : ndarray
        The score of each as it is, which is its rarefied one where it has just so many items.
    size : int
        The common size; groups of fewer items have no rarefied score.
    q : float
        The order.
    repeats : int
        How many subsets of a larger group are scored, at least.
    jackknife : bool
        Whether what blocks contribute is wanted.
    rng : int
        Seed.
    report : callable
        Is told how far it is.
    """
    count = len(groups.sizes)
    found = np.where(groups.sizes == size, scores, np.nan)
    enough = np.flatnonzero(groups.sizes >= size)
    used = np.zeros(count, dtype=np.int64)
    used[enough] = np.minimum(groups.sizes[enough], _most(groups, size, len(enough)))
    draws = generator(rng, "common size")
    work = enough if jackknife else np.flatnonzero(groups.sizes > size)
    drawn = {g: groups.draw(g, int(used[g]), draws) for g in work.tolist()}
    blocks = _dealt(list(drawn.values()), draws) if jackknife else [None] * len(drawn)
    shifts, bends = (np.full((count, BLOCKS), np.nan) for _ in range(2))
    for done, ((g, items), block) in enumerate(zip(drawn.items(), blocks, strict=True)):
        report(done / len(drawn))
        places, local = np.unique(items.items, return_inverse=True)
        pool = Pool(groups.similarity, places, size)
        if math.isnan(found[g]):
            found[g] = pool.scores(local[_subsets(len(local), size, repeats, draws)], q).mean()
        if block is None:
            continue
        if len(local) == size:
            shifts[g], bends[g] = _of_all(pool, local, block, q, found[g])
        else:
            order = draws.permutation(len(local))
            shifts[g], bends[g] = _of_windows(pool, local[order], block[order], size, q, found[g]), 0.0
    return Rarefied(size, found, used, *((shifts, bends) if jackknife else (None, None)))


def _most(groups: Groups, size: int, count: int) -> int:
    """How many items of a group are used at most: as many as bring something, and are cheap enough."""
    side = side_of(groups.similarity, size)
    times = TIMES if side < size else USED / size
    affordable = WORK / (BLOCKS * COVERS * max(count, 1) * float(side) ** 3)
    return int(size * max(1.0, min(times, affordable)))


def _subsets(n: int, size: int, repeats: int, rng: np.random.Generator) -> np.ndarray:
    """Random subsets of n items, of shape (repeats or more, size); all of them are one where there is no choice."""
    if n == size:
        return np.arange(n)[None]
    least = math.ceil(n / size)
    each = min(n, max(ORDER, least))  # windows of one order: a circle of n items has no more than n
    orders = math.ceil(max(repeats, least) / each)
    return np.concatenate([_windows(rng.permutation(n), size, each) for _ in range(orders)])


def _windows(order: np.ndarray, size: int, count: int) -> np.ndarray:
    """Windows of one size on the circle of these items, evenly spaced, of shape (count, size)."""
    n = len(order)
    if n == size:
        return order[None]
    starts = np.arange(count) * n // count
    return order[(starts[:, None] + np.arange(size)) % n]


def _dealt(drawn: Sequence[Drawn], rng: np.random.Generator) -> list[np.ndarray]:
    """The block of each item of each group: at random, of nearly equal sizes in every group, and the same in all."""
    starts = np.cumsum([0, *(len(one.copies) for one in drawn)])
    _, names = np.unique(np.concatenate([one.copies for one in drawn]), return_inverse=True)
    block = np.full(int(names.max()) + 1, -1)
    own = [names[starts[i] : starts[i + 1]] for i in range(len(drawn))]
    for i in sorted(range(len(drawn)), key=lambda i: len(own[i])):  # small groups first: they need it most
        waiting = own[i][block[own[i]] < 0]
        held = np.bincount(block[own[i]][block[own[i]] >= 0], minlength=BLOCKS)
        # The free places of each block up to a level, the lowest ones first.
        level = max(int(held.max()), -(-len(own[i]) // BLOCKS)) + 1
        places = np.concatenate([np.arange(held[b], level) for b in range(BLOCKS)])
        where = np.repeat(np.arange(BLOCKS), level - held)
        first = np.lexsort((rng.random(len(places)), places))[: len(waiting)]
        block[rng.permutation(waiting)] = where[first]
    return [block[names] for names in own]


def _of_all(
    pool: Pool, local: np.ndarray, block: np.ndarray, q: float, score: float
) -> tuple[np.ndarray, np.ndarray]:
    """Contributions of blocks and their second differences, where the score is that of all items."""
    after = (np.arange(BLOCKS) + 1) % BLOCKS
    left = [local[block != b] for b in range(BLOCKS)]
    left += [local[(block != b) & (block != after[b])] for b in range(BLOCKS)]
    found = _by_size(pool, left, q)
    without, without_two = found[:BLOCKS], found[BLOCKS:]
    counts = np.bincount(block, minlength=BLOCKS)
    together = counts * counts[after]
    bends = score - without - without[after] + without_two
    bends -= together * (bends.sum() / max(together.sum(), 1))
    return _contributions(score - without, counts, np.column_stack([counts, counts**2])), bends


def _by_size(pool: Pool, subsets: list[np.ndarray], q: float) -> np.ndarray:
    sizes = np.array([len(subset) for subset in subsets])
    found = np.empty(len(subsets))
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        found[same] = pool.scores(np.stack([subsets[i] for i in same]), q)
    return found


def _of_windows(
    pool: Pool, local: np.ndarray, block: np.ndarray, size: int, q: float, score: float
) -> np.ndarray:
    """Contributions of blocks, where the score is the mean of subsets of items in this order."""
    counts = np.bincount(block, minlength=BLOCKS)
    size = min(size, len(local) - int(counts.max()))
    subsets = []
    for b in range(BLOCKS):
        rest = local[block != b]
        subsets.append(_windows(rest, size, math.ceil(COVERS * len(rest) / size)))
    lengths = [len(part) for part in subsets]
    found = pool.scores(np.concatenate(subsets), q)
    without = np.add.reduceat(found, np.cumsum([0, *lengths[:-1]])) / lengths
    without *= score / without.mean()
    return _contributions(score - without, counts, np.ones((BLOCKS, 1)))


def _contributions(drops: np.ndarray, counts: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """What is left of θ − θ_b without what depends on the size of the block alone, which is fitted by columns."""
    fitted, _, rank, _ = np.linalg.lstsq(shape, drops, rcond=None)
    left = drops - shape @ fitted
    return (1 - counts / counts.sum()) * left * math.sqrt(BLOCKS / (BLOCKS - rank))


def standard_error(shifts: np.ndarray, bends: np.ndarray) -> np.ndarray:
    """The standard error of what blocks contribute to, over the last axis; see above."""
    additive = np.sum(shifts**2, axis=-1)
    together = (
        BLOCKS / 2 * np.sum(bends**2, axis=-1)
    )  # BLOCKS·(BLOCKS − 1)/2 pairs, of which BLOCKS were looked at
    # What is counted twice is at most half of the whole.
    return np.sqrt(np.maximum(additive - together / 2, additive / 2))


def quantile(confidence: float) -> float:
    """How many standard errors an interval reaches to either side: Student's t with BLOCKS − 1 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(BLOCKS - 1, (1 + confidence) / 2))
