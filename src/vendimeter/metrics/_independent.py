"""The largest set of vertices without an edge among them: exact where that is affordable, with true bounds elsewhere.

Each connected component is treated by itself. First comes what loses nothing: a vertex whose closed neighbourhood holds
that of a neighbour is left away, because the neighbour can take its place in any set; a vertex that is left alone is
taken. For the rest a set is searched for, and the number of vertices is bounded from above by cliques, each of which
holds at most one of the set: first by a greedy cover, then by a linear programme over many cliques, then by branch and
bound over the same cliques. All limits are counts of work, not seconds: the answer is the same on every machine.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Found", "clique_cover", "largest_independent"]

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
