"""How many items fit in without coming too near to each other: #Circles."""

from __future__ import annotations

import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.errors import InputError, UnansweredError, brief
from vendimeter.intake import collected, similarity_of
from vendimeter.options import as_number, byte_count, check_rng, generator
from vendimeter.present.progress import Progress
from vendimeter.results.base import Figures
from vendimeter.similarity.base import parts_of
from vendimeter.solvers.edges import Entries, within
from vendimeter.solvers.plan import collapse

__all__ = ["Circles", "Found", "circles", "clique_cover", "largest_independent"]


# --------------------------------------------------------------------------------------------------------- independent

# The largest set of vertices without an edge among them: exact where that is affordable, with true bounds elsewhere.
#
# Each connected component is treated by itself. First comes what loses nothing: a vertex whose closed neighbourhood
# holds
# that of a neighbour is left away, because the neighbour can take its place in any set; a vertex that is left alone is
# taken. For the rest a set is searched for, and the number of vertices is bounded from above by cliques, each of which
# holds at most one of the set: first by a greedy cover, then by a linear programme over many cliques, then by branch
# and
# bound over the same cliques. All limits are counts of work, not seconds: the answer is the same on every machine.

REDUCED_EDGES = 1_000_000  # of a component that is looked at for vertices to leave away
LINEAR_EDGES, LINEAR_ITEMS = 1_000_000, 8192  # of a component that gets a linear programme …
ROUNDS, LOOK = 3000, 100  # of the linear programme, and how many of them go by between two looks at its bound
EXACT_EDGES = 8_000  # … and of one that gets an integer programme, with so many nodes at most
NODES = 200
STEPS = 20_000  # of the search for a large set, a component; fewer in a small one
STEPS_EACH = 40  # a vertex
FORCED = 1000  # steps between two that put in any vertex, lest the search goes in a circle
TENURE = 7  # steps for which a vertex that was put out stays out, at least

METHODS = (
    "reductions",
    "matching bounds",
    "branch and bound",
    "search and linear programme",
    "search and clique cover",
)


@dataclass(frozen=True)
class Found:
    """A set without edges, an upper bound on the size of any, and how they were found: a place in `METHODS`."""

    vertices: np.ndarray
    high: int
    method: int


def largest_independent(graph: Any, *, effort: float, rng: np.random.Generator) -> Found:
    """A large set of vertices without an edge among them, and an upper bound on the size of any.

    Parameters
    ----------
    graph : csr_array
        Symmetric, with an entry for each edge in both directions and none on the diagonal.
    effort : float
        What the limits of work are multiplied with.
    rng : Generator
        For the search.
    """
    if _edges(graph) <= REDUCED_EDGES * effort:
        return _after_reduction(graph, effort, rng)
    found = []
    for part in _components(graph):
        inner = graph[part][:, part]
        small = _edges(inner) <= REDUCED_EDGES * effort
        found.append(_placed((_after_reduction if small else _bounded)(inner, effort, rng), part))
    return _together(found)


def _edges(graph: Any) -> int:
    return graph.nnz // 2


def _placed(found: Found, places: np.ndarray) -> Found:
    """What was found of a part of a graph, in the numbers of the whole."""
    return Found(places[found.vertices], found.high, found.method)


def _together(found: list[Found]) -> Found:
    vertices = np.concatenate([part.vertices for part in found])
    return Found(vertices, sum(part.high for part in found), max(part.method for part in found))


def _components(graph: Any) -> list[np.ndarray]:
    """The vertices of each connected component; those without edges come together, as the first."""
    from scipy.sparse.csgraph import connected_components

    # In a symmetric graph the strong components are the components; others are found from a transposed copy.
    count, label = connected_components(graph, connection="strong")
    order = np.argsort(label, kind="stable")
    sizes = np.bincount(label, minlength=count)
    parts = np.split(order, np.cumsum(sizes)[:-1])
    alone = [part for part in parts if len(part) == 1]
    return ([np.concatenate(alone)] if alone else []) + [part for part in parts if len(part) > 1]


def _after_reduction(graph: Any, effort: float, rng: np.random.Generator) -> Found:
    """What reductions leave of a graph falls into components again."""
    taken, left = _reduced(graph)
    found = [Found(taken, len(taken), METHODS.index("reductions"))]
    rest = graph[left][:, left]
    for part in _components(rest) if len(left) else ():
        found.append(_placed(_bounded(rest[part][:, part], effort, rng), left[part]))
    return _together(found)


def _bounded(graph: Any, effort: float, rng: np.random.Generator) -> Found:
    """A set and a bound for a connected graph, by search and by cliques; or for vertices without edges."""
    n = graph.shape[0]
    if _edges(graph) == 0:
        return Found(np.arange(n), n, METHODS.index("reductions"))
    high, method = len(clique_cover(graph)), METHODS.index("matching bounds")
    best = _search(graph, high, round(min(STEPS, STEPS_EACH * n) * effort), rng)
    if high > len(best):
        best, high, method = _programmes(graph, best, high, effort)
    return Found(best, high, method)


# ------------------------------------------------------------------------------------------------------- reductions


def _reduced(graph: Any) -> tuple[np.ndarray, np.ndarray]:
    """Vertices that belong to some largest set, and those about which nothing is known."""
    n, near = graph.shape[0], np.split(graph.indices, graph.indptr[1:-1])
    closed = [{v, *each.tolist()} for v, each in enumerate(near)]  # neighbourhoods, with the vertex itself
    present = np.ones(n, dtype=bool)
    queue = deque(np.argsort(np.diff(graph.indptr), kind="stable").tolist())
    queued = [True] * n
    while queue:
        u = queue.popleft()
        queued[u] = False
        for v in sorted(closed[u]):
            if v == u or v not in closed[u] or not closed[u] <= closed[v]:
                continue
            present[v] = False
            for w in sorted(closed[v] - {v}):
                closed[w].remove(v)
                if not queued[w]:
                    queued[w] = True
                    queue.append(w)
            closed[v] = set()
    alone = present & (np.array([len(each) for each in closed]) == 1)
    return np.flatnonzero(alone), np.flatnonzero(present & ~alone)


# ----------------------------------------------------------------------------------------------------------- search


def _search(graph: Any, high: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """A large set: vertices of low degree first, then one vertex in for one out, at random, until another fits.

    Nothing is larger than `high`, so that the search ends there.
    """
    n, indptr, indices = graph.shape[0], graph.indptr, graph.indices
    inside, tight, barred = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int64)

    def put(v: int, sign: int) -> None:
        inside[v] = sign > 0
        tight[indices[indptr[v] : indptr[v + 1]]] += sign  # a vertex has each neighbour once

    for v in _by_degree(graph).tolist():
        put(v, 1)
    best, most = inside.copy(), int(inside.sum())
    size = most
    draws = rng.random((steps, 2))
    for step in range(steps):
        if most >= high:
            break
        free = np.flatnonzero((tight == 0) & ~inside)
        swaps = free if len(free) else np.flatnonzero((tight == 1) & ~inside & (barred <= step))
        if len(swaps) == 0 or (len(free) == 0 and step % FORCED == 0):  # any vertex, for all its neighbours
            swaps = np.flatnonzero(~inside)
        v = int(swaps[int(draws[step, 0] * len(swaps))])
        near = indices[indptr[v] : indptr[v + 1]]
        for w in near[inside[near]].tolist():
            put(w, -1)
            barred[w] = step + TENURE + int(draws[step, 1] * len(swaps))
            size -= 1
        put(v, 1)
        size += 1
        if size > most:
            best, most = inside.copy(), size
    return np.flatnonzero(best)


def _by_degree(graph: Any) -> np.ndarray:
    """A set to begin with: always a vertex with the fewest neighbours among those that are left."""
    indptr, indices = graph.indptr, graph.indices
    degree = np.diff(indptr).astype(np.float64)
    chosen = []
    while (v := int(degree.argmin())) >= 0 and degree[v] < math.inf:
        chosen.append(v)
        near = indices[indptr[v] : indptr[v + 1]]
        gone = near[degree[near] < math.inf]
        degree[v] = math.inf
        degree[gone] = math.inf
        for w in gone.tolist():
            degree[indices[indptr[w] : indptr[w + 1]]] -= 1
    return np.array(chosen, dtype=np.intp)


# ----------------------------------------------------------------------------------------------------------- cliques


def clique_cover(graph: Any) -> list[np.ndarray]:
    """Cliques that hold every vertex once: no set without edges has more vertices than there are cliques."""
    n, indptr, indices = graph.shape[0], graph.indptr, graph.indices
    left, mark = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    degree = np.diff(indptr)
    cliques = []
    for v in np.argsort(degree, kind="stable").tolist():
        if not left[v]:
            continue
        near = indices[indptr[v] : indptr[v + 1]]
        candidates, clique = near[left[near]], [v]
        while len(candidates):
            w = int(candidates[degree[candidates].argmin()])
            clique.append(w)
            around = indices[indptr[w] : indptr[w + 1]]
            mark[around] = True
            candidates = candidates[mark[candidates]]
            mark[around] = False
        left[clique] = False
        cliques.append(np.array(clique))
    return cliques


def _edge_cliques(graph: Any) -> Any:
    """Cliques that hold every edge, as rows of a sparse array of ones: each grows where most edges are still open."""
    from scipy import sparse

    n = graph.shape[0]
    joined = graph.toarray().astype(bool)
    open_ = joined.copy()
    near = np.split(graph.indices, graph.indptr[1:-1])
    cliques = []
    for u in np.argsort(np.diff(graph.indptr), kind="stable").tolist():
        while open_[u].any():
            clique, candidates = [u], near[u]
            gain = open_[u, candidates].astype(np.int32)
            while len(candidates):
                v = int(candidates[gain.argmax()])
                clique.append(v)
                kept = joined[v, candidates]
                candidates = candidates[kept]
                gain = gain[kept] + open_[v, candidates]
            open_[np.ix_(clique, clique)] = False
            cliques.append(clique)
    sizes = [len(clique) for clique in cliques]
    columns = np.fromiter(itertools.chain.from_iterable(cliques), dtype=np.int32, count=sum(sizes))
    rows = np.repeat(np.arange(len(cliques)), sizes)
    return sparse.csr_array((np.ones(len(columns)), (rows, columns)), shape=(len(cliques), n))


# -------------------------------------------------------------------------------------------------------- programmes


def _programmes(graph: Any, best: np.ndarray, high: int, effort: float) -> tuple[np.ndarray, int, int]:
    """A better set and a lower bound from above, by programmes over cliques, where the graph is small enough."""
    edges = _edges(graph)
    if edges > LINEAR_EDGES * effort or graph.shape[0] > LINEAR_ITEMS:
        return best, high, METHODS.index("search and clique cover")
    cliques = _edge_cliques(graph)
    high = min(high, _linear_bound(cliques, len(best), round(ROUNDS * effort)))
    if high <= len(best):
        return best, high, METHODS.index("matching bounds")
    if edges > EXACT_EDGES * effort:
        return best, high, METHODS.index("search and linear programme")
    better, bound = _branch_and_bound(graph, cliques, round(NODES * effort))
    best = better if len(better) > len(best) else best
    return best, max(min(high, bound), len(best)), METHODS.index("branch and bound")


def _linear_bound(cliques: Any, known: int, rounds: int) -> int:
    """An upper bound on the size of a set without edges: that of the linear programme over the cliques, nearly.

    Weights y ≥ 0 of the cliques bound it by Σy + Σ(1 − weight of the cliques around v)₊, whatever they are. Good ones
    come from the primal-dual method of Chambolle and Pock, which begins anew at its mean now and then; the simplex
    method takes thirty times as long for 5,000 molecules.
    """
    turned = cliques.T.tocsr()
    forth, back = 1 / turned.sum(axis=1), 1 / cliques.sum(axis=1)
    x, y = np.zeros(len(forth)), np.zeros(len(back))
    weight, total, added = turned @ y, np.zeros(len(back)), 0
    best = float(len(forth))
    for turn in range(1, rounds + 1):
        moved = np.maximum(x + forth * (1 - weight), 0)
        y = np.maximum(y + back * (cliques @ (2 * moved - x) - 1), 0)
        x, weight = moved, turned @ y
        total += y
        added += 1
        if turn % LOOK == 0:
            mean = total / added
            around = turned @ mean
            best = min(
                best, *(w.sum() + np.maximum(1 - v, 0).sum() for w, v in ((y, weight), (mean, around)))
            )
            if math.floor(best) <= known:
                break
            if 2 * added >= turn:
                y, weight, added = mean, around, 0
                total = np.zeros_like(y)
    return math.floor(best + 1e-9 * len(x))  # which is more than the rounding of the sums


def _branch_and_bound(graph: Any, cliques: Any, nodes: int) -> tuple[np.ndarray, int]:
    """A set without edges, which may be empty, and an upper bound on the size of any."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    n = cliques.shape[1]
    solved = milp(
        -np.ones(n),
        integrality=np.ones(n),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(cliques, -np.inf, 1)],
        options={"node_limit": nodes, "mip_rel_gap": 0.0},
    )
    bound = solved.mip_dual_bound
    # The bound is a whole number within the solver's tolerance.
    high = n if bound is None or not math.isfinite(bound) else math.floor(-bound + 1e-3)
    found = np.empty(0, dtype=np.intp) if solved.x is None else np.flatnonzero(solved.x > 0.5)
    independent = graph[found][:, found].nnz == 0
    return (found if independent else found[:0]), high


# ------------------------------------------------------------------------------------------------------------- packing

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
