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

from vendimeter.analysis.comparison.groups import Draw, Groups
from vendimeter.data.arrays import is_sparse
from vendimeter.data.devices import to_host
from vendimeter.errors import TooLargeError
from vendimeter.options import generator
from vendimeter.similarity import Features, Pairwise, Similarity, span
from vendimeter.solvers import dense
from vendimeter.solvers.groups import materialize_for_subsets
from vendimeter.solvers.plan import EXACT_SIDE
from vendimeter.spectrum import hill
from vendimeter.threads import run, workers

__all__ = ["BLOCKS", "Pool", "Rarefied", "rarefy_groups", "side_of", "standard_error", "t_quantile"]

BLOCKS = 20  # of the jackknife
WINDOWS_PER_ORDER = 20  # windows of one random order, or more where it takes more to cover all items
WINDOWS_PER_ITEM = 2  # how many windows each item is in where a block is left out
USED = 2048  # upper bound of the items of a group whose similarities are kept at hand …
USED_MULTIPLE = 20  # … or so many times the common size, where few features are
WORK = 1e12  # of the jackknife of all groups, in cubes of the sides of matrices

# Below this (score − 1) × size, about the number of items that are unlike the others, a log scale is of no use.
FEW_ODD_ITEMS = 10
STACK_BYTES = 16 << 20  # of matrices that one thread solves at a time
SPARSE_WIDTH = 1024  # columns of sparse features up to which rows are made dense

Report = Callable[[float], None]


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
    contributions, second_differences : ndarray of shape (groups, BLOCKS), or None
        What each block contributes to the score, and the second differences of each block and the next.
    """

    size: int
    scores: np.ndarray
    used: np.ndarray
    contributions: np.ndarray | None = None
    second_differences: np.ndarray | None = None

    @property
    def nearly_uniform(self) -> np.ndarray:
        """Groups whose items are alike but for a few: the sampling distribution of the log score is too skewed there.

        With a handful of odd items, or none, the jackknife of a logarithm near 0 says next to nothing.
        """
        return (self.scores - 1) * self.size < FEW_ODD_ITEMS


def rarefy_groups(
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
    rarefied_scores = np.where(groups.sizes == size, scores, np.nan)
    large_enough = np.flatnonzero(groups.sizes >= size)
    used = np.zeros(count, dtype=np.int64)
    used[large_enough] = np.minimum(groups.sizes[large_enough], _max_items(groups, size, len(large_enough)))
    random_state = generator(rng, "common size")
    to_draw = large_enough if jackknife else np.flatnonzero(groups.sizes > size)
    draws = {g: groups.draw(g, int(used[g]), random_state) for g in to_draw.tolist()}
    block_lists = _assign_blocks(list(draws.values()), random_state) if jackknife else [None] * len(draws)
    contributions, second_differences = (np.full((count, BLOCKS), np.nan) for _ in range(2))
    for done, ((g, draw), block) in enumerate(zip(draws.items(), block_lists, strict=True)):
        report(done / len(draws))
        positions, local = np.unique(draw.items, return_inverse=True)
        pool = Pool(groups.similarity, positions, size)
        if math.isnan(rarefied_scores[g]):
            subsets = local[_random_subsets(len(local), size, repeats, random_state)]
            rarefied_scores[g] = pool.scores(subsets, q).mean()
        if block is None:
            continue
        if len(local) == size:
            contributions[g], second_differences[g] = _jackknife_all(
                pool, local, block, q, rarefied_scores[g]
            )
        else:
            order = random_state.permutation(len(local))
            contributions[g] = _jackknife_windows(
                pool, local[order], block[order], size, q, rarefied_scores[g]
            )
            second_differences[g] = 0.0
    return Rarefied(
        size, rarefied_scores, used, *((contributions, second_differences) if jackknife else (None, None))
    )


def _max_items(groups: Groups, size: int, count: int) -> int:
    """Upper bound of the items of a group that are used: beyond it they bring little, or cost too much."""
    side = side_of(groups.similarity, size)
    multiple = USED_MULTIPLE if side < size else USED / size
    affordable = WORK / (BLOCKS * WINDOWS_PER_ITEM * max(count, 1) * float(side) ** 3)
    return int(size * max(1.0, min(multiple, affordable)))


def _random_subsets(n: int, size: int, repeats: int, rng: np.random.Generator) -> np.ndarray:
    """Random subsets of n items, of shape (repeats or more, size); one subset, all items, if size is n."""
    if n == size:
        return np.arange(n)[None]
    to_cover = math.ceil(n / size)
    per_order = min(n, max(WINDOWS_PER_ORDER, to_cover))  # a circle of n items has n windows
    orders = math.ceil(max(repeats, to_cover) / per_order)
    return np.concatenate([_windows(rng.permutation(n), size, per_order) for _ in range(orders)])


def _windows(order: np.ndarray, size: int, count: int) -> np.ndarray:
    """Windows of one size on the circle of these items, evenly spaced, of shape (count, size)."""
    n = len(order)
    if n == size:
        return order[None]
    starts = np.arange(count) * n // count
    return order[(starts[:, None] + np.arange(size)) % n]


# ------------------------------------------------------------------------------------------------------------ jackknife


def _assign_blocks(draws: Sequence[Draw], rng: np.random.Generator) -> list[np.ndarray]:
    """Random blocks of nearly equal size in every group; a copy of an item has one block in all groups."""
    starts = np.cumsum([0, *(len(draw.copies) for draw in draws)])
    _, copy_ids = np.unique(np.concatenate([draw.copies for draw in draws]), return_inverse=True)
    block_of_copy = np.full(int(copy_ids.max()) + 1, -1)
    group_copies = [copy_ids[starts[i] : starts[i + 1]] for i in range(len(draws))]
    for ids in sorted(group_copies, key=len):  # small groups first: unequal blocks matter most there
        assigned = block_of_copy[ids]
        unassigned = ids[assigned < 0]
        counts = np.bincount(assigned[assigned >= 0], minlength=BLOCKS)
        # The free slots of each block up to the capacity; those of the emptiest blocks are filled first.
        capacity = max(int(counts.max()), -(-len(ids) // BLOCKS)) + 1
        slot_ranks = np.concatenate([np.arange(counts[b], capacity) for b in range(BLOCKS)])
        slot_blocks = np.repeat(np.arange(BLOCKS), capacity - counts)
        chosen_slots = np.lexsort((rng.random(len(slot_ranks)), slot_ranks))[: len(unassigned)]
        block_of_copy[rng.permutation(unassigned)] = slot_blocks[chosen_slots]
    return [block_of_copy[ids] for ids in group_copies]


def _jackknife_all(
    pool: Pool, local: np.ndarray, block: np.ndarray, q: float, score: float
) -> tuple[np.ndarray, np.ndarray]:
    """Jackknife over blocks where the score is that of all items: contributions and second differences."""
    following = (np.arange(BLOCKS) + 1) % BLOCKS
    subsets = [local[block != b] for b in range(BLOCKS)]
    subsets += [local[(block != b) & (block != following[b])] for b in range(BLOCKS)]
    scores = _scores_by_size(pool, subsets, q)
    without, without_two = scores[:BLOCKS], scores[BLOCKS:]
    sizes = np.bincount(block, minlength=BLOCKS)
    size_products = sizes * sizes[following]
    second_differences = score - without - without[following] + without_two
    second_differences -= size_products * (second_differences.sum() / max(size_products.sum(), 1))
    return _contributions(score - without, sizes, np.column_stack([sizes, sizes**2])), second_differences


def _scores_by_size(pool: Pool, subsets: list[np.ndarray], q: float) -> np.ndarray:
    """The scores of subsets of different sizes, those of one size together."""
    sizes = np.array([len(subset) for subset in subsets])
    scores = np.empty(len(subsets))
    for size in np.unique(sizes):
        of_size = np.flatnonzero(sizes == size)
        scores[of_size] = pool.scores(np.stack([subsets[i] for i in of_size]), q)
    return scores


def _jackknife_windows(
    pool: Pool, local: np.ndarray, block: np.ndarray, window_size: int, q: float, score: float
) -> np.ndarray:
    """Jackknife over blocks where the score is a mean over windows of items in this order: contributions."""
    block_sizes = np.bincount(block, minlength=BLOCKS)
    window_size = min(window_size, len(local) - int(block_sizes.max()))
    subsets = []
    for b in range(BLOCKS):
        remaining = local[block != b]
        subsets.append(
            _windows(remaining, window_size, math.ceil(WINDOWS_PER_ITEM * len(remaining) / window_size))
        )
    lengths = [len(windows) for windows in subsets]
    scores = pool.scores(np.concatenate(subsets), q)
    without = np.add.reduceat(scores, np.cumsum([0, *lengths[:-1]])) / lengths
    without *= score / without.mean()
    return _contributions(score - without, block_sizes, np.ones((BLOCKS, 1)))


def _contributions(drops: np.ndarray, block_sizes: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """D_b of the module's docstring: residuals of θ − θ_b after regression on functions of the block size."""
    coefficients, _, rank, _ = np.linalg.lstsq(columns, drops, rcond=None)
    residuals = drops - columns @ coefficients
    return (1 - block_sizes / block_sizes.sum()) * residuals * math.sqrt(BLOCKS / (BLOCKS - rank))


def standard_error(contributions: np.ndarray, second_differences: np.ndarray) -> np.ndarray:
    """The jackknife standard error from the contributions of blocks (last axis); see the module's docstring."""
    additive = np.sum(contributions**2, axis=-1)
    # Scaled from the BLOCKS pairs of neighbours to all BLOCKS·(BLOCKS − 1)/2 pairs, with the jackknife's factor.
    pair_variance = BLOCKS / 2 * np.sum(second_differences**2, axis=-1)
    # The double-counted variance is capped at half of the variance.
    return np.sqrt(np.maximum(additive - pair_variance / 2, additive / 2))


def t_quantile(confidence: float) -> float:
    """How many standard errors an interval reaches to either side: Student's t with BLOCKS − 1 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(BLOCKS - 1, (1 + confidence) / 2))


# ----------------------------------------------------------------------------------------------- scores of many subsets


def side_of(similarity: Similarity, size: int) -> int:
    """The side of the matrix whose eigenvalues the score of a subset of this size takes."""
    if isinstance(similarity, Features) and not (similarity.sparse and similarity.width > SPARSE_WIDTH):
        return min(size, similarity.width)
    return size


class Pool:
    """Some items of a collection, with their similarities at hand for the scores of thousands of random subsets.

    All subsets are of one size, so that their matrices are stacked and solved together, a Python thread a core with
    BLAS on one thread each. The smallest of three matrices is solved: that of the subset's items, that of the distinct
    items with their multiplicities (where counts make many copies of few), or that of the features.

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
            matrix = materialize_for_subsets(similarity.take(items))
            self.error, self._matrix = matrix.entry_error, to_host(matrix.dense())
        else:
            self._matrix = to_host(similarity.dense(items))

    def scores(self, subsets: np.ndarray, q: float) -> np.ndarray:
        """The scores of order q of subsets, of shape (subsets, size): positions in this pool, copies allowed."""
        count, size = subsets.shape
        stored = self._rows if self._matrix is None else self._matrix
        assert stored is not None
        entries = size * stored.shape[1] if self._matrix is None else min(size, len(stored)) ** 2
        step = max(1, min(STACK_BYTES // (8 * entries), -(-count // 8)))
        batches = [slice(first, first + step) for first in range(0, count, step)]
        scores = np.empty(count)
        with workers(len(batches)) as threads:
            run([
                functools.partial(self._fill, scores, subsets, batches[i::threads], q) for i in range(threads)
            ])  # fmt: skip
        return scores

    def _fill(self, scores: np.ndarray, subsets: np.ndarray, batches: list[slice], q: float) -> None:
        """Write the scores of some batches of subsets into `scores`."""
        for batch in batches:
            stack = self._density_matrices(subsets[batch])
            values = dense.eigenvalues(stack)
            error = self.error + dense.eigen_error(stack.shape[-1], values[:, 0])
            # A principal submatrix has no eigenvalue below those of the whole matrix, which was checked: what is
            # negative here is rounding, or was to be projected away.
            scores[batch] = hill(np.maximum(values, 0.0), q, zero_below=2 * error)

    def _density_matrices(self, subsets: np.ndarray) -> np.ndarray:
        """The matrices ρ of some subsets."""
        count, size = subsets.shape
        if self._rows is not None:
            rows = self._rows[subsets]
            return rows.transpose(0, 2, 1) @ rows / size
        assert self._matrix is not None
        n_items = len(self._matrix)
        if n_items < size:
            flat = (subsets + n_items * np.arange(count)[:, None]).ravel()
            copies = np.bincount(flat, minlength=n_items * count).reshape(count, n_items)
            roots = np.sqrt(copies / size)
            return self._matrix * roots[:, :, None] * roots[:, None, :]
        return self._matrix[subsets[:, :, None], subsets[:, None, :]] / size
