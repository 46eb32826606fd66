"""How many items fit in without coming too near to each other: #Circles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.errors import InputError, UnansweredError, brief
from vendimeter.intake import collected
from vendimeter.metrics._independent import METHODS, clique_cover, largest_independent
from vendimeter.options import as_number, byte_count, check_rng, generator
from vendimeter.present.progress import Progress
from vendimeter.results.base import Figures
from vendimeter.scoring import similarity_of
from vendimeter.similarity.base import parts_of
from vendimeter.solvers.edges import Entries, within
from vendimeter.solvers.plan import collapse

__all__ = ["Circles", "circles"]

MOST_PAIRS = 2_000_000_000  # of distinct items that are all compared: 63,000 items
EDGE_BYTES = 40  # of working memory an edge, at the most
STAR = 1024  # items around a centre that are compared with each other at a time


@dataclass(frozen=True, repr=False)
class Circles(Figures):
    """Bounds on #Circles, which are one number where it was found exactly; ``int()`` gives that number.

    Attributes
    ----------
    low, high : int
        #Circles lies between them, both included.
    exact : bool
        Whether they are equal.
    threshold : float
        Items of the set are farther than this from each other.
    method : str
        What decided: "reductions", "matching bounds" and "branch and bound" for exact numbers where the last did not
        run into its limit; "search and linear programme", "search and clique cover" or "one pass" otherwise, the
        weakest that was used.
    indices : ndarray
        The positions of `low` items that are pairwise farther apart.
    """

    low: int
    high: int
    exact: bool
    threshold: float
    method: str
    indices: np.ndarray = field(repr=False, compare=False)

    def __int__(self) -> int:
        if not self.exact:
            raise UnansweredError(
                f"#Circles was not found exactly: it lies between {self.low:,} and {self.high:,}. Use low and high, or "
                "pass a larger effort."
            )
        return self.low


@collected
def circles(
    samples: Any,
    kernel: Any = "cosine",
    *,
    threshold: float,
    effort: float = 1,
    memory: int | str = "1 GiB",
    rng: int = 0,
) -> Circles:
    """#Circles: the largest number of items that are all farther apart than a threshold.

    max |C| over subsets C of the samples with 1 − k(x, y) > `threshold` for all x ≠ y in C. It counts the circles of
    that radius that can be placed on items without one holding the centre of another. The number is at least 1, and
    rises with the part of the space that is covered, not with its density.

    Parameters
    ----------
    samples : array, sparse array, list, table or Collection
        The items, as for `vendimeter.score`.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`; their distance is 1 − k. The paper takes Tanimoto
        similarity of Morgan fingerprints, `vendimeter.kernels.Morgan`.
    threshold : float
        The distance, from 0 to 2; 0.75 is usual for molecules.
    effort : float
        What the limits of work are multiplied with: more narrows the bounds, and may take minutes for seconds.
    memory : int or str
        What the pairs within the threshold may take; where they take more, one pass over the items gives wider bounds.
    rng : int
        Seed of the search, and of what the kernel draws.

    Returns
    -------
    Circles
        `low`, `high`, `exact`, `threshold`, `method` and the `indices` of a set of `low` items. ``int(result)`` is the
        number, or `UnansweredError` where only bounds were found.

    Notes
    -----
    The number is that of a maximum independent set of the graph with an edge where 1 − k ≤ `threshold`, which is hard
    to find in general. The bounds are true in any case. For molecules at 0.75 the number is exact up to some 500 items;
    the bounds are 13 % apart at 2,000 (306 and 347) and 26 % at 5,000. Limits are counts of work, not seconds, so that
    a call gives the same answer on every machine. Identical items count once. A pair that rounding puts on either side
    of the threshold counts as within it.

    A pass through the items in their order that takes what is far from all before, as in the paper's appendix, gives a
    lower bound that depends on the order: 112 for the first 500 molecules of the MOSES test set, where the number is
    141.

    References
    ----------
    Xie, Xu, Ma, Mei: How much space has been explored? Measuring the chemical space covered by databases and
    machine-generated molecules, ICLR 2023.

    Examples
    --------
    >>> from vendimeter.metrics import circles
    >>> found = circles([[1, 0], [1, 0.1], [0, 1], [-1, 0]], threshold=0.5)
    >>> found
    Circles(low=3, high=3, exact=True, threshold=0.5, method='reductions')
    >>> int(found), found.indices.tolist()
    (3, [0, 2, 3])
    """
    radius = within(threshold, "threshold", 0, 2, "a distance 1 − k")
    work = as_number(effort)
    if not 0 < work <= 1000:
        raise InputError(f"effort={brief(effort)}; expected a number above 0, up to 1000.")
    limit, seed = byte_count(memory, "memory"), check_rng(rng)
    similarity = similarity_of(samples, kernel, seed)
    places, _ = collapse(similarity, None, None)
    if places is None:
        places = np.arange(similarity.n)
    else:
        similarity = similarity.take(places)
    entries = Entries(similarity, places)
    cut = 1 - radius - entries.slack
    graph = _graph(entries, cut, limit // EDGE_BYTES)
    if graph is None:
        indices, high, method = _one_pass(entries, cut)
    else:
        found = largest_independent(graph, effort=work, rng=generator(seed, "circles"))
        indices, high, method = found.vertices, found.high, METHODS[found.method]
    low = len(indices)
    return Circles(low, high, low == high, radius, method, np.sort(places[indices]))


def _graph(entries: Entries, cut: float, most: int) -> Any:
    """The pairs within the threshold in both directions, or None where they are too many."""
    from scipy import sparse

    n, count = entries.n, 0
    if n * (n - 1) // 2 > MOST_PAIRS:
        return None
    parts = []
    for i, j, _ in entries.edges(cut, label="circles"):
        count += len(i)
        if count > most:
            return None
        parts.append((i.astype(np.int32), j.astype(np.int32)))
    i, j = (np.concatenate(part) for part in zip(*parts, strict=True))
    parts.clear()
    upper = sparse.coo_array((np.ones(len(i), dtype=bool), (i, j)), shape=(n, n)).tocsr()
    graph = sparse.csr_array(upper + upper.T)
    graph.sort_indices()
    return graph


# -------------------------------------------------------------------------------- collections whose graph does not fit


def _one_pass(entries: Entries, cut: float) -> tuple[np.ndarray, int, str]:
    """Centres, taken in the order of the items where no earlier one is near; and cliques around them."""
    centres, owner = _centres(entries, cut)
    order = np.argsort(owner, kind="stable")
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    high = 0
    for star in np.split(order, starts[1:]):
        for part in parts_of(len(star), min(STAR, entries.step)):
            high += _cliques_among(entries, star[part], cut)
    return centres, high, "one pass"


def _centres(entries: Entries, cut: float) -> tuple[np.ndarray, np.ndarray]:
    """Items that are far from all centres before them, and for each item a centre that it is near to."""
    centres: list[int] = []
    owner = np.empty(entries.n, dtype=np.intp)
    with Progress("circles") as progress:
        for part in parts_of(entries.n, entries.step):
            left = np.arange(part.start, part.stop)
            for some in parts_of(len(centres), entries.step):
                if len(left):
                    held = np.array(centres[some])
                    near = entries.near(left, held, cut)
                    covered = near.any(axis=1)
                    owner[left[covered]] = held[near[covered].argmax(axis=1)]
                    left = left[~covered]
            if len(left):
                centres += _among(left, entries.near(left, left, cut), owner)
            progress.step(part.stop / entries.n)
    return np.array(centres), owner


def _among(items: np.ndarray, near: np.ndarray, owner: np.ndarray) -> list[int]:
    """The centres among items that are compared with each other."""
    centres, open_ = [], np.ones(len(items), dtype=bool)
    for a, item in enumerate(items.tolist()):
        if open_[a]:
            centres.append(item)
            reached = open_ & near[a]
            reached[a] = True
            owner[items[reached]] = item
            open_ &= ~reached
    return centres


def _cliques_among(entries: Entries, items: np.ndarray, cut: float) -> int:
    """How many cliques cover these items."""
    from scipy import sparse

    near = entries.near(items, items, cut)
    np.fill_diagonal(near, False)
    return len(clique_cover(sparse.csr_array(near & near.T)))
