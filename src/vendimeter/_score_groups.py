"""The front door for groups: score_groups."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter import _frames, _tables
from vendimeter._arrays import is_sparse, is_table, length, refuse_set
from vendimeter._devices import is_foreign, is_real, local, namespace, wide_mode
from vendimeter._membership import Membership, join, read, split
from vendimeter._messages import brief, in_group, shape_of, unknown
from vendimeter._options import check_rng
from vendimeter._score import refuse_matrix, similarity_of
from vendimeter._weights import raw_weights
from vendimeter.errors import EmptyError, InputError
from vendimeter.groups import GroupScores
from vendimeter.io.collection import Collection
from vendimeter.kernels import FromDistances, Kernel, Precomputed, as_kernel
from vendimeter.similarity import Similarity
from vendimeter.solvers.batched import SMALL, matrix_batches
from vendimeter.solvers.groups import SolvedGroups, add_batch, add_large, solve_groups
from vendimeter.solvers.options import PRECISIONS, Solver
from vendimeter.solvers.plan import Problem
from vendimeter.spectrum import parse_orders

__all__ = ["score_groups"]


def score_groups(
    samples: Any,
    kernel: Any = "cosine",
    *,
    by: Any = None,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    method: str = "auto",
    precision: str = "auto",
    rng: int = 0,
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
            raise unknown(what, given, known)
    orders, several = parse_orders(q)
    request = Request(orders, precision, check_rng(rng))
    left_out = 0
    if isinstance(samples, Collection):
        collection, labels = samples, samples.labels_by(by)
        collection.refuse_default(kernel)
        left_out = collection.skipped.count
        if collection.is_group:
            found = _score_groups(collection.groups(by), kernel, None, weights, counts, request)
        else:
            own = weights is not None or counts is not None
            mass = weights if own else collection.probabilities()
            with collection.placed():
                found = _score_groups(collection.samples, kernel, labels, mass, counts, request)
    else:
        samples = _frames.known(samples)
        with wide_mode(precision, samples):
            found = _score_groups(samples, kernel, by, weights, counts, request)
    return GroupScores(*found, several, left_out)


Found = tuple[
    Sequence[Hashable], SolvedGroups, Kernel
]  # the labels, what was found, and the kernel as fitted


def _score_groups(samples: Any, kernel: Any, by: Any, weights: Any, counts: Any, request: Request) -> Found:
    mass = raw_weights(weights, counts, dimensions=2)
    if by is None and (mass is None or mass.values.ndim == 1):
        if mass is not None:
            raise InputError(
                f"{mass.name} go with one collection; expected by=labels with them, one number an item. For "
                "groups given one by one, join them into one collection first."
            )
        return _separate(samples, kernel, request)
    if _tables.has_columns(samples):
        by = _tables.labels(samples, by)
    refuse_set(samples, "labels")
    table = mass is not None and mass.values.ndim == 2
    given = weights if counts is None else counts
    _tables.check_alignment(samples, given, "weights" if counts is None else "counts", by_column=table)
    if not table:
        _tables.check_alignment(samples, by, "by")
    elif by is None and hasattr(given, "index") and hasattr(given, "columns"):
        by = given.index  # the rows of a pandas frame have names
    similarity = similarity_of(samples, kernel, request.rng)
    groups = read(by, similarity.n, mass)
    return groups.labels, request.solved(similarity, groups), similarity.kernel


@dataclass(frozen=True)
class Request:
    """What was asked for, apart from the samples."""

    orders: list[float]
    precision: str
    rng: int

    def solved(self, similarity: Similarity, groups: Membership) -> SolvedGroups:
        """The groups of one collection."""
        return solve_groups(similarity, groups, self.orders, precision=self.precision, rng=self.rng)


def _separate(groups: Any, asked: Any, request: Request) -> Found:
    """Groups that come one by one: a mapping, a list, or an array of groups × items × columns."""
    kernel: Kernel = as_kernel(asked)
    stack: Any = local(groups)
    axes = len(stack.shape) if isinstance(stack, np.ndarray) or is_foreign(stack) else 0
    several = axes >= 3 or (axes == 0 and isinstance(groups, Mapping | list | tuple))
    if not several or is_table(groups) or is_sparse(groups):
        raise InputError(
            f"samples is one collection ({brief(groups)}) and by is missing; expected by=labels, a mapping "
            "label → samples, a list of groups, or an array of groups × items × columns."
        )
    if _tables.is_records(groups):
        raise InputError(
            "samples is a list of records and by is missing; expected by=labels or the name of a column. "
            "For groups pass a mapping label → samples, or a list of groups."
        )
    if axes == 3 and kernel.fitted and not isinstance(kernel, Precomputed | FromDistances):
        if isinstance(asked, str) and asked == "cosine" and stack.shape[0]:
            with in_group(0):
                refuse_matrix(stack[0, ...])
        return _stacked(stack, kernel, request)
    if axes == 3 and isinstance(kernel, Precomputed):
        matrices = _stacked_matrices(stack, kernel, request)
        if matrices is not None:
            return range(int(stack.shape[0])), matrices, kernel
    labels, parts = split(groups)
    if isinstance(asked, str) and asked == "cosine":
        for label, part in zip(labels, parts, strict=True):
            with in_group(label):
                refuse_matrix(part)
    found = SolvedGroups(len(labels), request.orders)
    # Large groups are scored where they lie, without a joint copy, and matrices cannot be joined at all. But a kernel
    # whose parameters come from data must see all items at once.
    alone = isinstance(kernel, Precomputed | FromDistances)
    together: list[int] = []
    for g, part in enumerate(parts):
        size = length(part)
        if size and (alone or (kernel.fitted and size > SMALL)):
            _by_itself(found, g, labels[g], part, kernel, request)
        elif size:
            together.append(g)
    if together:
        kernel = _together(found, together, labels, parts, kernel, request)
    elif not found.sizes.any():
        raise EmptyError("every group is empty; expected at least one item.")
    return labels, found, kernel


def _stacked(groups: Any, kernel: Kernel, request: Request) -> Found:
    """An array of groups × items × columns: one collection of all items, without a copy where it lies in order."""
    count, size, width = groups.shape
    if not count or not size:
        raise EmptyError(f"samples has shape {shape_of(groups.shape)}; expected at least one group and item.")
    labels = range(count)
    rows = namespace(groups).reshape(groups, (count * size, width))
    starts = np.arange(count + 1) * size
    members = Membership(labels, starts, np.arange(count * size), None, np.full(count, size))
    similarity = kernel.similarity(rows, rng=request.rng)
    try:
        return labels, request.solved(similarity, members), similarity.kernel
    except InputError as error:
        failure = error
    # Positions in the joint collection mean nothing to the user: find the group that fails by itself.
    found = SolvedGroups(count, request.orders)
    for g in labels:
        _by_itself(found, g, g, groups[g, ...], kernel, request)
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
    found: SolvedGroups,
    chosen: list[int],
    labels: Sequence[Hashable],
    parts: list[Any],
    kernel: Kernel,
    request: Request,
) -> Kernel:
    """Small groups as one collection; gives the kernel as it was fitted on them."""
    joined, sizes = join([parts[g] for g in chosen])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    members = Membership([labels[g] for g in chosen], starts, np.arange(starts[-1]), None, sizes)
    try:
        similarity = kernel.similarity(joined, rng=request.rng)
        found.put(np.array(chosen), request.solved(similarity, members))
        return similarity.kernel
    except InputError as error:
        failure = error
    # Positions in the joint collection mean nothing to the user: find the group that fails by itself.
    for g in chosen:
        _by_itself(found, g, labels[g], parts[g], kernel, request)
    raise failure


def _by_itself(
    found: SolvedGroups, g: int, label: Hashable, part: Any, kernel: Kernel, request: Request
) -> None:
    solver = Solver(method="exact", precision=request.precision)
    with in_group(label):
        similarity = kernel.similarity(part, rng=request.rng)
        found.sizes[g] = similarity.n
        add_large(found, g, Problem(similarity, None, request.orders, solver, request.rng))
