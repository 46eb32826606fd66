"""#Circles: the largest number of items that are pairwise farther apart than a threshold.

It is the size of a maximum independent set (a set of vertices without an edge among them) of the graph that joins items
within the threshold: exact where that is affordable, with true bounds elsewhere.

Each connected component of the graph is solved by itself. Reductions come first, which lose nothing: a vertex whose
closed neighbourhood contains that of a neighbour is removed, because the neighbour can take its place in any
independent set; a vertex without neighbours belongs to the set. For the rest a local search looks for a large set, and
cliques bound the size from above, since each of them has at most one vertex of the set: first by a greedy clique cover,
then by a linear programme over many cliques, then by branch and bound over the same cliques. Where the graph does not
fit into memory, one pass over the items gives wider bounds. All limits are counts of work, not seconds: the answer is
the same on every machine.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.diversity import diversity_of
from vendimeter.errors import InputError, UnansweredError
from vendimeter.messages import brief
from vendimeter.options import COSINE, SEED, as_number, byte_count, generator
from vendimeter.present.progress import Progress
from vendimeter.results.base import Figures
from vendimeter.similarity.base import parts_of
from vendimeter.solvers.edges import Entries, within

__all__ = ["Circles", "IndependentSet", "circles", "clique_cover", "largest_independent"]

# Above so many pairs of distinct items (63,000 items) no graph is built.
MOST_PAIRS = 2_000_000_000
# Of working memory an edge, at most.
EDGE_BYTES = 40
# Items around a centre that are compared with each other at a time.
STAR = 1024

# Edges of a component that is searched for reductions.
REDUCED_EDGES = 1_000_000
# Edges and items of a component that gets a linear programme, at most.
LINEAR_EDGES, LINEAR_ITEMS = 1_000_000, 8192
# Iterations of the linear programme, and how many of them lie between two checks of its bound.
ROUNDS, ROUNDS_PER_CHECK = 3000, 100
# Edges of a component that gets an integer programme, and the nodes of its search tree, at most.
EXACT_EDGES, NODES = 8_000, 200
# Steps of the local search in a component, at most; and for each vertex of a small one.
STEPS, STEPS_EACH = 20_000, 40
# Steps between two that insert any vertex, lest the search goes in a circle.
FORCED = 1000
# Steps for which a vertex that was removed stays out, at least.
TENURE = 7

# How an upper bound was found, from the strongest to the weakest.
METHODS = (
    "reductions",
    "matching bounds",
    "branch and bound",
    "search and linear programme",
    "search and clique cover",
)


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


def circles(
    samples: Any,
    kernel: Any = COSINE,
    *,
    threshold: float,
    effort: float = 1,
    memory: int | str = "1 GiB",
    rng: int = SEED,
) -> Circles:
    """#Circles: the largest number of items that are all farther apart than a threshold.

    max |C| over subsets C of the samples with 1 − k(x, y) > `threshold` for all x ≠ y in C. It counts the circles of
    that radius that can be placed on items without one holding the centre of another. The number is at least 1, and
    rises with the part of the space that is covered, not with its density.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
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
    limit = byte_count(memory, "memory")
    diversity = diversity_of(samples, kernel, rng=rng)
    diversity.refuse_weights("circles")
    with diversity.asked():
        similarity, (positions, _) = diversity.similarity, diversity.distinct
        entries = Entries(
            similarity if len(positions) == diversity.n else similarity.take(positions), positions
        )
        cut = 1 - radius - entries.slack
        graph = _graph(entries, cut, limit // EDGE_BYTES)
        if graph is None:
            indices, high, method = _one_pass(entries, cut)
        else:
            solution = largest_independent(graph, effort=work, rng=generator(diversity.rng, "circles"))
            indices, high, method = solution.vertices, solution.high, METHODS[solution.method]
    low = len(indices)
    return Circles(low, high, low == high, radius, method, np.sort(positions[indices]))


def _graph(entries: Entries, cut: float, max_edges: int) -> Any:
    """The graph of the pairs within the threshold, symmetric and without a diagonal; None where they are too many."""
    from scipy import sparse

    n, count = entries.n, 0
    if n * (n - 1) // 2 > MOST_PAIRS:
        return None
    edge_parts = []
    for i, j, _ in entries.edges(cut, label="circles"):
        count += len(i)
        if count > max_edges:
            return None
        edge_parts.append((i.astype(np.int32), j.astype(np.int32)))
    i, j = (np.concatenate(column) for column in zip(*edge_parts, strict=True))
    edge_parts.clear()
    upper = sparse.coo_array((np.ones(len(i), dtype=bool), (i, j)), shape=(n, n)).tocsr()
    graph = sparse.csr_array(upper + upper.T)
    graph.sort_indices()
    return graph


# ---------------------------------------------------------------------------------------------- maximum independent set


@dataclass(frozen=True)
class IndependentSet:
    """An independent set, an upper bound on the size of any, and how that was found: a position in `METHODS`."""

    vertices: np.ndarray
    high: int
    method: int


def largest_independent(graph: Any, *, effort: float, rng: np.random.Generator) -> IndependentSet:
    """A large independent set of a graph, and an upper bound on the size of any.

    Parameters
    ----------
    graph : csr_array
        Symmetric, with an entry for each edge in both directions and none on the diagonal.
    effort : float
        What the limits of work are multiplied with.
    rng : Generator
        For the search.
    """
    if _edge_count(graph) <= REDUCED_EDGES * effort:
        return _reduce_and_solve(graph, effort, rng)
    solutions = []
    for component in _components(graph):
        subgraph = graph[component][:, component]
        reducible = _edge_count(subgraph) <= REDUCED_EDGES * effort
        solve = _reduce_and_solve if reducible else _solve_component
        solutions.append(_renumber(solve(subgraph, effort, rng), component))
    return _union(solutions)


def _edge_count(graph: Any) -> int:
    return graph.nnz // 2


def _renumber(solution: IndependentSet, vertices: np.ndarray) -> IndependentSet:
    """The solution of a subgraph, in the numbers that its vertices have in the whole graph."""
    return IndependentSet(vertices[solution.vertices], solution.high, solution.method)


def _union(solutions: list[IndependentSet]) -> IndependentSet:
    vertices = np.concatenate([solution.vertices for solution in solutions])
    high = sum(solution.high for solution in solutions)
    method = max(solution.method for solution in solutions)
    return IndependentSet(vertices, high, method)


def _components(graph: Any) -> list[np.ndarray]:
    """The vertices of each connected component; those without edges come together, as the first."""
    from scipy.sparse.csgraph import connected_components

    # In a symmetric graph the strong components are the components; others are found from a transposed copy.
    count, label = connected_components(graph, connection="strong")
    order = np.argsort(label, kind="stable")
    sizes = np.bincount(label, minlength=count)
    components = np.split(order, np.cumsum(sizes)[:-1])
    isolated = [component for component in components if len(component) == 1]
    connected = [component for component in components if len(component) > 1]
    return ([np.concatenate(isolated)] if isolated else []) + connected


def _reduce_and_solve(graph: Any, effort: float, rng: np.random.Generator) -> IndependentSet:
    """Reduce a graph, and solve each component of what is left."""
    forced, remaining = _reduce(graph)
    solutions = [IndependentSet(forced, len(forced), METHODS.index("reductions"))]
    reduced_graph = graph[remaining][:, remaining]
    for component in _components(reduced_graph) if len(remaining) else ():
        solution = _solve_component(reduced_graph[component][:, component], effort, rng)
        solutions.append(_renumber(solution, remaining[component]))
    return _union(solutions)


def _solve_component(graph: Any, effort: float, rng: np.random.Generator) -> IndependentSet:
    """An independent set and a bound for a connected graph, by search and cliques; or for vertices without edges."""
    n = graph.shape[0]
    if _edge_count(graph) == 0:
        return IndependentSet(np.arange(n), n, METHODS.index("reductions"))
    high, method = len(clique_cover(graph)), METHODS.index("matching bounds")
    best = _search(graph, high, round(min(STEPS, STEPS_EACH * n) * effort), rng)
    if high > len(best):
        best, high, method = _solve_programmes(graph, best, high, effort)
    return IndependentSet(best, high, method)


# ----------------------------------------------------------------------------------------------------------- reductions


def _reduce(graph: Any) -> tuple[np.ndarray, np.ndarray]:
    """Vertices that belong to some maximum independent set, and those that remain undecided."""
    n, neighbours = graph.shape[0], np.split(graph.indices, graph.indptr[1:-1])
    # Closed neighbourhoods: with the vertex itself.
    closed = [{v, *adjacent.tolist()} for v, adjacent in enumerate(neighbours)]
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
    isolated = present & (np.array([len(neighbourhood) for neighbourhood in closed]) == 1)
    return np.flatnonzero(isolated), np.flatnonzero(present & ~isolated)


# --------------------------------------------------------------------------------------------------------- local search


def _search(graph: Any, high: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """A large independent set by local search: random swaps of one vertex for its neighbour until another one fits.

    It starts from the greedy set, and ends at `high`, an upper bound on the size.
    """
    n, indptr, indices = graph.shape[0], graph.indptr, graph.indices
    selected, selected_neighbours = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int32)
    barred_until = np.zeros(n, dtype=np.int64)

    def update(v: int, sign: int) -> None:
        selected[v] = sign > 0
        selected_neighbours[indices[indptr[v] : indptr[v + 1]]] += sign  # a vertex has each neighbour once

    for v in _greedy_set(graph).tolist():
        update(v, 1)
    best, best_size = selected.copy(), int(selected.sum())
    size = best_size
    draws = rng.random((steps, 2))
    for step in range(steps):
        if best_size >= high:
            break
        insertable = np.flatnonzero((selected_neighbours == 0) & ~selected)
        candidates = (
            insertable
            if len(insertable)
            else np.flatnonzero((selected_neighbours == 1) & ~selected & (barred_until <= step))
        )
        if len(candidates) == 0 or (
            len(insertable) == 0 and step % FORCED == 0
        ):  # any vertex, for all its neighbours
            candidates = np.flatnonzero(~selected)
        v = int(candidates[int(draws[step, 0] * len(candidates))])
        neighbours = indices[indptr[v] : indptr[v + 1]]
        for w in neighbours[selected[neighbours]].tolist():
            update(w, -1)
            barred_until[w] = step + TENURE + int(draws[step, 1] * len(candidates))
            size -= 1
        update(v, 1)
        size += 1
        if size > best_size:
            best, best_size = selected.copy(), size
    return np.flatnonzero(best)


def _greedy_set(graph: Any) -> np.ndarray:
    """A maximal independent set by minimum degree: always a vertex with the fewest remaining neighbours."""
    indptr, indices = graph.indptr, graph.indices
    degree = np.diff(indptr).astype(np.float64)
    chosen = []
    while (v := int(degree.argmin())) >= 0 and degree[v] < math.inf:
        chosen.append(v)
        neighbours = indices[indptr[v] : indptr[v + 1]]
        removed = neighbours[degree[neighbours] < math.inf]
        degree[v] = math.inf
        degree[removed] = math.inf
        for w in removed.tolist():
            degree[indices[indptr[w] : indptr[w + 1]]] -= 1
    return np.array(chosen, dtype=np.intp)


# -------------------------------------------------------------------------------------------------------------- cliques


def clique_cover(graph: Any) -> list[np.ndarray]:
    """A partition of the vertices into cliques: no independent set has more vertices than there are cliques."""
    n, indptr, indices = graph.shape[0], graph.indptr, graph.indices
    uncovered, mark = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    degree = np.diff(indptr)
    cliques = []
    for v in np.argsort(degree, kind="stable").tolist():
        if not uncovered[v]:
            continue
        neighbours = indices[indptr[v] : indptr[v + 1]]
        candidates, clique = neighbours[uncovered[neighbours]], [v]
        while len(candidates):
            w = int(candidates[degree[candidates].argmin()])
            clique.append(w)
            neighbours_of_w = indices[indptr[w] : indptr[w + 1]]
            mark[neighbours_of_w] = True
            candidates = candidates[mark[candidates]]
            mark[neighbours_of_w] = False
        uncovered[clique] = False
        cliques.append(np.array(clique))
    return cliques


def _edge_cliques(graph: Any) -> Any:
    """Cliques that cover all edges, as rows of a sparse array of ones: each grows where most edges are uncovered."""
    from scipy import sparse

    n = graph.shape[0]
    adjacent = graph.toarray().astype(bool)
    uncovered = adjacent.copy()
    neighbours = np.split(graph.indices, graph.indptr[1:-1])
    cliques = []
    for u in np.argsort(np.diff(graph.indptr), kind="stable").tolist():
        while uncovered[u].any():
            clique, candidates = [u], neighbours[u]
            gain = uncovered[u, candidates].astype(np.int32)
            while len(candidates):
                v = int(candidates[gain.argmax()])
                clique.append(v)
                common = adjacent[v, candidates]
                candidates = candidates[common]
                gain = gain[common] + uncovered[v, candidates]
            uncovered[np.ix_(clique, clique)] = False
            cliques.append(clique)
    sizes = [len(clique) for clique in cliques]
    columns = np.fromiter(itertools.chain.from_iterable(cliques), dtype=np.int32, count=sum(sizes))
    rows = np.repeat(np.arange(len(cliques)), sizes)
    return sparse.csr_array((np.ones(len(columns)), (rows, columns)), shape=(len(cliques), n))


# ---------------------------------------------------------------------------------------- linear and integer programmes


def _solve_programmes(graph: Any, best: np.ndarray, high: int, effort: float) -> tuple[np.ndarray, int, int]:
    """A larger set and a smaller upper bound, by programmes over cliques, where the graph is small enough."""
    edges = _edge_count(graph)
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


def _linear_bound(cliques: Any, size_found: int, rounds: int) -> int:
    """An upper bound on the size of an independent set, close to that of the linear programme over the cliques.

    Weights y ≥ 0 of the cliques bound it by Σy + Σ(1 − weight of the cliques around v)₊, whatever they are. Good ones
    come from the primal-dual method of Chambolle and Pock, restarted at its mean now and then; the simplex
    method takes thirty times as long for 5,000 molecules.
    """
    transposed = cliques.T.tocsr()
    primal_steps, dual_steps = 1 / transposed.sum(axis=1), 1 / cliques.sum(axis=1)
    x, y = np.zeros(len(primal_steps)), np.zeros(len(dual_steps))
    weight, y_sum, terms = transposed @ y, np.zeros(len(dual_steps)), 0
    best = float(len(primal_steps))
    for step in range(1, rounds + 1):
        next_x = np.maximum(x + primal_steps * (1 - weight), 0)
        y = np.maximum(y + dual_steps * (cliques @ (2 * next_x - x) - 1), 0)
        x, weight = next_x, transposed @ y
        y_sum += y
        terms += 1
        if step % ROUNDS_PER_CHECK == 0:
            mean = y_sum / terms
            weight_of_mean = transposed @ mean
            best = min(
                best,
                *(w.sum() + np.maximum(1 - v, 0).sum() for w, v in ((y, weight), (mean, weight_of_mean))),
            )
            if math.floor(best) <= size_found:
                break
            if 2 * terms >= step:
                y, weight, terms = mean, weight_of_mean, 0
                y_sum = np.zeros_like(y)
    return math.floor(best + 1e-9 * len(x))  # the allowance exceeds the rounding of the sums


def _branch_and_bound(graph: Any, cliques: Any, nodes: int) -> tuple[np.ndarray, int]:
    """An independent set, which may be empty, and an upper bound on the size of any."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    n = cliques.shape[1]
    result = milp(
        -np.ones(n),
        integrality=np.ones(n),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(cliques, -np.inf, 1)],
        options={"node_limit": nodes, "mip_rel_gap": 0.0},
    )
    bound = result.mip_dual_bound
    # The bound is a whole number within the solver's tolerance.
    high = n if bound is None or not math.isfinite(bound) else math.floor(-bound + 1e-3)
    vertices = np.empty(0, dtype=np.intp) if result.x is None else np.flatnonzero(result.x > 0.5)
    independent = graph[vertices][:, vertices].nnz == 0
    return (vertices if independent else vertices[:0]), high


# --------------------------------------------------------------------- collections whose graph does not fit into memory


def _one_pass(entries: Entries, cut: float) -> tuple[np.ndarray, int, str]:
    """An independent set, the centres; an upper bound, the number of cliques around these; and the method's name."""
    centres, owner = _centres(entries, cut)
    order = np.argsort(owner, kind="stable")
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    high = 0
    for star in np.split(order, starts[1:]):
        for block in parts_of(len(star), min(STAR, entries.step)):
            high += _count_cliques(entries, star[block], cut)
    return centres, high, "one pass"


def _centres(entries: Entries, cut: float) -> tuple[np.ndarray, np.ndarray]:
    """The centres, which are far from all centres before them; and for each item a centre that it is near to."""
    centres: list[int] = []
    owner = np.empty(entries.n, dtype=np.intp)
    with Progress("circles") as progress:
        for block in parts_of(entries.n, entries.step):
            uncovered = np.arange(block.start, block.stop)
            for centre_part in parts_of(len(centres), entries.step):
                if len(uncovered):
                    block_of_centres = np.array(centres[centre_part])
                    near = entries.near(uncovered, block_of_centres, cut)
                    covered = near.any(axis=1)
                    owner[uncovered[covered]] = block_of_centres[near[covered].argmax(axis=1)]
                    uncovered = uncovered[~covered]
            if len(uncovered):
                centres += _pick_centres(uncovered, entries.near(uncovered, uncovered, cut), owner)
            progress.step(block.stop / entries.n)
    return np.array(centres), owner


def _pick_centres(items: np.ndarray, near: np.ndarray, owner: np.ndarray) -> list[int]:
    """The centres among items whose distances from each other are at hand; sets the owners of what they cover."""
    centres, uncovered = [], np.ones(len(items), dtype=bool)
    for row, item in enumerate(items.tolist()):
        if uncovered[row]:
            centres.append(item)
            reached = uncovered & near[row]
            reached[row] = True
            owner[items[reached]] = item
            uncovered &= ~reached
    return centres


def _count_cliques(entries: Entries, items: np.ndarray, cut: float) -> int:
    """In how many cliques these items fall."""
    from scipy import sparse

    near = entries.near(items, items, cut)
    np.fill_diagonal(near, False)
    return len(clique_cover(sparse.csr_array(near & near.T)))
