"""The Vendi Score of a collection and of its groups: `score`, `profile`, `plan` and `score_groups`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from vendimeter.data import frames
from vendimeter.data.collection import Collection
from vendimeter.data.devices import is_real, namespace, wide_mode
from vendimeter.data.groups import Grouping, join
from vendimeter.diversity import ORDERS, Diversity, diversity_of
from vendimeter.errors import EmptyError, InputError
from vendimeter.intake import Named, is_several, known_groups, named_groups, refuse_matrix, weights_within
from vendimeter.kernels import FromDistances, Kernel, Precomputed, as_kernel
from vendimeter.messages import in_group, unknown
from vendimeter.options import COSINE, SEED, check_rng
from vendimeter.results.groups import GroupScores
from vendimeter.results.score import Profile, Score
from vendimeter.similarity import Similarity
from vendimeter.solvers.batched import SMALL, matrix_batches
from vendimeter.solvers.groups import SolvedGroups, add_batch, add_large, solve_groups
from vendimeter.solvers.options import PRECISIONS, Solver
from vendimeter.solvers.plan import Plan, Problem
from vendimeter.spectrum import parse_orders

__all__ = []


# --------------------------------------------------------------------------------------------------------------- score

# The front door: score and profile.


@overload
def score(
    samples: Any,
    kernel: Any = ...,
    *,
    q: float | str = ...,
    weights: Any = ...,
    counts: Any = ...,
    tol: float | None = ...,
    confidence: float = ...,
    method: str = ...,
    pivots: str = ...,
    memory: int | str | None = ...,
    precision: str = ...,
    rng: int = ...,
    progress: bool | None = ...,
) -> Score: ...
@overload
def score(
    samples: Any,
    kernel: Any = ...,
    *,
    q: Sequence[float | str] | np.ndarray,
    weights: Any = ...,
    counts: Any = ...,
    tol: float | None = ...,
    confidence: float = ...,
    method: str = ...,
    pivots: str = ...,
    memory: int | str | None = ...,
    precision: str = ...,
    rng: int = ...,
    progress: bool | None = ...,
) -> Profile: ...
def score(
    samples: Any,
    kernel: Any = COSINE,
    *,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    tol: float | None = None,
    confidence: float = 0.95,
    method: str = "auto",
    pivots: str = "random",
    memory: int | str | None = None,
    precision: str = "auto",
    rng: int = SEED,
    progress: bool | None = None,
) -> Score | Profile:
    """The Vendi Score: how many effectively different items there are.

    VS_q = (Σ λ^q)^(1/(1−q)), with λ the eigenvalues of K/n, or of diag(√p) K diag(√p) for weights p; the Vendi Score
    proper is the order q = 1, exp(−Σ λ log λ). It lies between 1 (all items alike) and n (all different).

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items: rows of an array of shape (n, d), a SciPy sparse array, a list of anything the kernel can compare,
        a table (pandas, polars, Arrow, dict of columns, list of records) for kernels that name columns, or what
        `vendimeter.read` gives, with its weights. With ``kernel="precomputed"`` the similarity matrix. Or a
        `Diversity`, which has its own kernel, weights, solver and rng, and answers from what it keeps.
    kernel : str, Kernel or callable
        What makes two items similar: a name (``"cosine"``, ``"rbf"``, ``"ngram"``, ``"jaccard"``, …), a kernel from
        `vendimeter.kernels`, or a function k(a, b) of two items.
    q : float, str or list of them
        The order, from 0 up to ``"inf"``. Rare items count fully at q = 0 (the numerical rank, with its threshold
        in the diagnostics) and hardly at q = ∞.
        A list gives a `Profile` from one spectrum.
    weights : array of shape (n,), optional
        Probabilities of the items; they sum to 1.
    counts : array of shape (n,), optional
        How often each item occurs: whole numbers.
    tol : float, optional
        The relative half-width that the bounds may have: the cheapest method that gets there is taken. Without it the
        answer is exact where no dense matrix beyond 8,192×8,192 needs its eigenvalues (any number of rows with up to
        8,192 columns; 8,192 items otherwise), and 10⁻³ is the tolerance beyond.
    confidence : float
        The probability with which the bounds hold, where the method is "lanczos"; of each order by itself.
    method : {"auto", "exact", "lowrank", "lanczos", "random-features"}
        Force a method instead. "exact" takes all eigenvalues. "lowrank" computes some columns of the similarity matrix
        (pivoted Cholesky, the Nyström approximation of the paper) with bounds that always hold: for smooth kernels and
        slow functions. "lanczos" multiplies by the matrix, with bounds that hold with `confidence`: for all others.
        "random-features" replaces an RBF, Laplacian or Jaccard kernel by `kernels.RandomFeatures`, without bounds.
        `vendimeter.plan` tells what would be done.
    pivots : {"random", "greedy"}
        How "lowrank" picks columns: at random in proportion to what they leave unexplained, or the worst explained.
    memory : int or str, optional
        Working memory beside the samples, in bytes or as a text such as "2 GiB"; 4 GiB by default (32 GiB on a
        device), except with method="exact", which takes what it needs.
    precision : {"auto", "float64", "float32"}
        Of products. "float64" upcasts block by block. "float32" for features measures its error in the same pass, level
        "probabilistic" (1 − 10⁻⁶); "auto" takes it for float32 and float16 rows with n·d² above 10¹¹ and orders from
        1 up. "float32" with "lanczos" does not bound the rounding of products, level "estimated".
    rng : int
        Seed of everything random (probes, pivots, the subsample of a median heuristic).
    progress : bool, optional
        Show a progress bar on stderr: always or never; by default only on a terminal. Work of less than a second shows
        nothing.

    Returns
    -------
    Score or Profile
        A `Score` is a float with `bounds`, `level`, `method`, `spectrum` and `diagnostics`.

    Notes
    -----
    Bounds of "lowrank" and "lanczos" assume that the similarity matrix is positive semidefinite. Kernels of this
    package give such matrices; of a user's matrix or function, what shows otherwise is an error, and "exact" looks at
    all of it. Those of "lanczos" assume besides that the generator's numbers are independent and normal; they hold with
    `confidence` for each order by itself, whatever the data made the method do, and negative eigenvalues within the
    rounding of a user's entries are in them by an estimate. The derivation is in `vendimeter.spectrum.quadrature`.

    References
    ----------
    Friedman and Dieng: The Vendi Score, a diversity evaluation metric for machine learning, TMLR 2023, eq. 1.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> vm.score(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]))
    Score(1.88988 ± ...e-14, q=1, n=3, method='gram', level='deterministic')
    >>> round(vm.score(["red", "red", "blue"], kernel="match"), 4)
    1.8899
    >>> round(vm.score([1, 2, 9], kernel=lambda a, b: float(a % 2 == b % 2)), 4)
    1.8899
    """
    solver = Solver(tol, confidence, method, pivots, memory, precision)  # type: ignore[arg-type]
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, solver=solver, rng=rng)
    return diversity.score(q, tol=tol, progress=progress)


def profile(
    samples: Any,
    kernel: Any = COSINE,
    *,
    q: Any = ORDERS,
    weights: Any = None,
    counts: Any = None,
    tol: float | None = None,
    confidence: float = 0.95,
    method: str = "auto",
    pivots: str = "random",
    memory: int | str | None = None,
    precision: str = "auto",
    rng: int = SEED,
    progress: bool | None = None,
) -> Profile:
    """Scores of all orders q from one spectrum: the diversity profile of the collection.

    Parameters
    ----------
    samples, kernel, weights, counts
        As for `vendimeter.score`.
    q : list of float or str
        The orders.
    tol, confidence, method, pivots, memory, precision, rng, progress
        As for `vendimeter.score`.

    Examples
    --------
    >>> import vendimeter as vm
    >>> vm.profile(["a", "a", "b", "c"], kernel="match", q=[0, 1, 2, "inf"])
    Profile({0: 3, 1: 2.82843, 2: 2.66667, inf: 2}, n=4, method='gram', level='deterministic')
    """
    solver = Solver(tol, confidence, method, pivots, memory, precision)  # type: ignore[arg-type]
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, solver=solver, rng=rng)
    return diversity.profile(q, tol=tol, progress=progress)


def plan(
    samples: Any,
    kernel: Any = COSINE,
    *,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    tol: float | None = None,
    confidence: float = 0.95,
    method: str = "auto",
    pivots: str = "random",
    memory: int | str | None = None,
    precision: str = "auto",
    rng: int = SEED,
) -> Plan:
    """What `score` would do with the same arguments, and why, before anything is computed.

    The samples are looked at (identical items, how sparse data hang together), and what `score` would refuse in them is
    refused here, too, which takes one pass over them: rows with NaN or infinity, zero rows where the kernel takes none,
    a matrix that is not of similarities. No similarity is computed and no function of yours called for one, so that
    what only they or the eigenvalues show is not known yet.

    Parameters
    ----------
    samples, kernel, q, weights, counts
        As for `vendimeter.score`.
    tol, confidence, method, pivots, memory, precision, rng
        As for `vendimeter.score`.

    Returns
    -------
    Plan
        The method with its reason, and estimates of operations, bytes and similarities to compute; printed, it also
        says what else was weighed.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> rows = np.random.default_rng(0).standard_normal((1000, 64))
    >>> print(vm.plan(rows))
    exact: 64 columns are no more than 1000 rows: the 64×64 matrix of features
      about 5.4e+06 operations, 96.1 MiB
    """
    solver = Solver(tol, confidence, method, pivots, memory, precision)  # type: ignore[arg-type]
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, solver=solver, rng=rng)
    return diversity.plan(q, tol=tol)


# -------------------------------------------------------------------------------------------------------- score groups


def score_groups(
    samples: Any,
    kernel: Any = COSINE,
    *,
    by: Any = None,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    method: str = "auto",
    precision: str = "auto",
    rng: int = SEED,
) -> GroupScores:
    """The score of every group of a collection, thousands of them at once.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection, or groups of them
        One collection, grouped by `by`; or, without `by`, a mapping from label to samples or a list of groups. What
        `vendimeter.read` gives is grouped by its labels, or by its lists where each sample is a list of texts.
    kernel : str, Kernel or callable
        As for `vendimeter.score`; parameters that come from data are fitted once on all items.
    by : list, array, or name of a column
        One label an item; or one set (or list) of labels an item, so that groups may overlap; or, for a table,
        the name of the column with the labels, or a list of names for each combination of them. With `weights` or
        `counts` of shape (groups, n): the names of their rows.
    q : float, str or list of them
        The order or orders.
    weights, counts : array, optional
        As for `vendimeter.score`, normalised within each group; or of shape (groups, n), one row a group over all items
        (sites × species over one shared similarity).
    method, precision, rng
        As for `vendimeter.score`.

    Returns
    -------
    GroupScores
        Scores by label; an empty group is NaN with level "none".

    Examples
    --------
    >>> import vendimeter as vm
    >>> groups = vm.score_groups(["a", "b", "a", "a"], kernel="match", by=["x", "x", "y", "y"])
    >>> groups
    GroupScores(2 groups, q=1; x: 2, y: 1)
    >>> groups["x"].n
    2
    """
    for given, known, what in ((method, ("auto", "exact"), "method"), (precision, PRECISIONS, "precision")):
        if given not in known:
            raise unknown(what, given, known).at(option=what)
    orders, several = parse_orders(q)
    request = Request(orders, precision, check_rng(rng))
    left_out = 0
    if isinstance(samples, Collection) and samples.is_group:
        samples.refuse_default(kernel)
        left_out = samples.skipped.count
        is_several(None, None, weights, counts)
        samples, by = samples.groups(by), None
    elif isinstance(samples, Diversity | Collection) or not is_several(samples, by, weights, counts):
        solver = Solver(method=method, precision=precision)
        diversity = diversity_of(
            samples, kernel, weights=weights, counts=counts, by=by, solver=solver, rng=rng
        )
        return diversity.group_scores(q)
    samples = frames.known(samples)
    with wide_mode(precision, samples):
        return GroupScores(*_separate(samples, kernel, request), several, left_out)


Found = tuple[
    Sequence[Hashable], SolvedGroups, Kernel
]  # the labels, what was found, and the kernel as fitted


@dataclass(frozen=True)
class Request:
    """What was asked for, apart from the samples."""

    orders: list[float]
    precision: str
    rng: int

    def solved(self, similarity: Similarity, groups: Grouping) -> SolvedGroups:
        """The groups of one collection."""
        return solve_groups(similarity, groups, self.orders, precision=self.precision, rng=self.rng)


def _separate(groups: Any, asked: Any, request: Request) -> Found:
    """Groups that come one by one: a mapping, a list, or an array of groups × items × columns."""
    kernel: Kernel = as_kernel(asked)
    groups = known_groups(groups)
    is_stack = len(getattr(groups, "shape", ())) == 3
    if is_stack and kernel.fitted and not isinstance(kernel, Precomputed | FromDistances):
        if isinstance(asked, str) and asked == "cosine":
            with in_group(0):
                refuse_matrix(groups[0, ...])
        return _stacked(groups, kernel, request)
    if is_stack and isinstance(kernel, Precomputed):
        matrices = _stacked_matrices(groups, kernel, request)
        if matrices is not None:
            return range(len(matrices.sizes)), matrices, kernel
    named = named_groups(groups, asked)
    found = SolvedGroups(len(named), request.orders)
    # Large groups are scored where they lie, without a joint copy, and matrices cannot be joined at all. But a kernel
    # whose parameters come from data must see all items at once.
    alone = isinstance(kernel, Precomputed | FromDistances)
    together: list[int] = []
    for g, group in enumerate(named):
        if group.size and (alone or (kernel.fitted and group.size > SMALL)):
            _by_itself(found, g, group, kernel, request)
        elif group.size:
            together.append(g)
    if together:
        kernel = _together(found, together, named, kernel, request)
    elif not found.sizes.any():
        raise EmptyError("every group is empty; expected at least one item.")
    return [group.name for group in named], found, kernel


def _stacked(groups: Any, kernel: Kernel, request: Request) -> Found:
    """An array of groups × items × columns: one collection of all items, without a copy where it lies in order."""
    count, size, width = groups.shape
    labels = range(count)
    rows = namespace(groups).reshape(groups, (count * size, width))
    starts = np.arange(count + 1) * size
    members = Grouping(labels, starts, np.arange(count * size), None, np.full(count, size))
    similarity = kernel.similarity(rows, rng=request.rng)
    try:
        return labels, request.solved(similarity, members), similarity.kernel
    except InputError as error:
        failure = error
    # Positions in the joint collection mean nothing to the user: find the group that fails by itself.
    found = SolvedGroups(count, request.orders)
    for g in labels:
        _by_itself(found, g, Named(g, None, groups[g, ...], size), kernel, request)
    raise failure


def _stacked_matrices(stack: Any, kernel: Precomputed, request: Request) -> SolvedGroups | None:
    """An array of groups × items × items of similarities; None where each must be looked at by itself."""
    count, size, columns = stack.shape
    ready = count and 0 < size == columns <= SMALL and is_real(stack)
    solved = matrix_batches(stack) if ready and not (kernel.normalize or kernel.symmetrize) else None
    if solved is None:
        return None
    found = SolvedGroups(count, request.orders)
    found.sizes[:] = size
    for batch in solved:
        add_batch(found, batch, range(count), project=kernel.project, uniform=True, trusted=False)
    return found


def _together(
    found: SolvedGroups, chosen: list[int], named: Sequence[Named], kernel: Kernel, request: Request
) -> Kernel:
    """Small groups as one collection; gives the kernel as it was fitted on them."""
    small = [named[g] for g in chosen]
    joined, sizes = join([group.items for group in small])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    members = Grouping(
        [group.name for group in small], starts, np.arange(starts[-1]), weights_within(small), sizes
    )
    try:
        similarity = kernel.similarity(joined, rng=request.rng)
        found.put(np.array(chosen), request.solved(similarity, members))
        return similarity.kernel
    except InputError as error:
        failure = error
    # Positions in the joint collection mean nothing to the user: find the group that fails by itself.
    for g, group in zip(chosen, small, strict=True):
        _by_itself(found, g, group, kernel, request)
    raise failure


def _by_itself(found: SolvedGroups, g: int, group: Named, kernel: Kernel, request: Request) -> None:
    solver = Solver(method="exact", precision=request.precision)
    with group.located():
        similarity = kernel.similarity(group.items, rng=request.rng)
        found.sizes[g] = similarity.n
        add_large(found, g, Problem(similarity, group.weights, request.orders, solver, request.rng))
