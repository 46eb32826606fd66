"""The front door for groups: score_groups."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter import _frames, _tables
from vendimeter._arrays import is_sparse, is_table, length, refuse_set
from vendimeter._devices import is_foreign, is_real, local, namespace, wide_mode
from vendimeter._matrix_checks import Policy
from vendimeter._membership import Membership, join, read, split
from vendimeter._messages import brief, in_group, shape_of, unknown
from vendimeter._options import check_rng
from vendimeter._run import run
from vendimeter._score import mended, refuse_matrix, similarity_of
from vendimeter._weights import raw_weights
from vendimeter.errors import EmptyError, InputError
from vendimeter.groups import Columns, GroupScores
from vendimeter.io.collection import Collection
from vendimeter.kernels import FromDistances, Kernel, Precomputed, as_kernel
from vendimeter.similarity import Matrix, Similarity
from vendimeter.solvers.batched import SMALL, Batch, batches, matrix_batches
from vendimeter.solvers.exact import clean, projected
from vendimeter.solvers.plan import PRECISIONS, Problem
from vendimeter.spectrum import Eigenvalues, Level, parse_orders

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
    normalize: bool = False,
    symmetrize: bool = False,
    project: bool = False,
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
    method, precision, normalize, symmetrize, project, rng
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
    request = Request(orders, precision, Policy(normalize, symmetrize, project), check_rng(rng))
    if isinstance(samples, Collection):
        collection, labels = samples, samples.labels_by(by)
        collection.refuse_default(kernel)
        if collection.is_group:
            found = _score_groups(collection.groups(by), kernel, None, weights, counts, request)
        else:
            own = weights is not None or counts is not None
            mass = weights if own else collection.probabilities()
            with collection.placed():
                found = _score_groups(collection.samples, kernel, labels, mass, counts, request)
        if collection.skipped.count:
            found.notes["left_out"] = collection.skipped.count
        return found.result(several)
    samples = _frames.known(samples)
    with wide_mode(precision, samples):
        return _score_groups(samples, kernel, by, weights, counts, request).result(several)


def _score_groups(samples: Any, kernel: Any, by: Any, weights: Any, counts: Any, request: Request) -> Columns:
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
    found = Columns(groups.labels, request.orders, repr(similarity.kernel))
    found.notes |= mended(request.policy)
    solve_groups(found, np.arange(len(groups.labels)), similarity, groups, request)
    return found


@dataclass(frozen=True)
class Request:
    """What was asked for, apart from the samples."""

    orders: list[float]
    precision: str
    policy: Policy
    rng: int


def _separate(groups: Any, asked: Any, request: Request) -> Columns:
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
            return matrices
    labels, parts = split(groups)
    if isinstance(asked, str) and asked == "cosine":
        for label, part in zip(labels, parts, strict=True):
            with in_group(label):
                refuse_matrix(part)
    found = Columns(labels, request.orders, repr(kernel))
    found.notes |= mended(request.policy)
    # Large groups are scored where they lie, without a joint copy, and matrices cannot be joined at all. But a kernel
    # whose parameters come from data must see all items at once.
    alone = isinstance(kernel, Precomputed | FromDistances)
    together: list[int] = []
    for g, part in enumerate(parts):
        size = length(part)
        if size and (alone or (kernel.fitted and size > SMALL)):
            _by_itself(found, g, part, kernel, request)
        elif size:
            together.append(g)
    if together:
        _together(found, together, parts, kernel, request)
    elif not found.sizes.any():
        raise EmptyError("every group is empty; expected at least one item.")
    return found


def _stacked(groups: Any, kernel: Kernel, request: Request) -> Columns:
    """An array of groups × items × columns: one collection of all items, without a copy where it lies in order."""
    count, size, width = groups.shape
    if not count or not size:
        raise EmptyError(f"samples has shape {shape_of(groups.shape)}; expected at least one group and item.")
    found = Columns(range(count), request.orders, repr(kernel))
    found.notes |= mended(request.policy)
    rows = namespace(groups).reshape(groups, (count * size, width))
    starts = np.arange(count + 1) * size
    similarity = kernel.similarity(rows, rng=request.rng)
    found.kernel = repr(similarity.kernel)
    try:
        solve_groups(
            found,
            np.arange(count),
            similarity,
            Membership(found.labels, starts, np.arange(count * size), None, np.full(count, size)),
            request,
        )
    except InputError:
        # Positions in the joint collection mean nothing to the user: find the group that fails by itself.
        for g in range(count):
            _by_itself(found, g, groups[g, ...], kernel, request)
        raise
    return found


def _stacked_matrices(stack: Any, kernel: Precomputed, request: Request) -> Columns | None:
    """An array of groups × items × items of similarities; None where each must be looked at by itself."""
    count, size, columns = stack.shape
    policy = request.policy | Policy(kernel.normalize, kernel.symmetrize, kernel.project)
    ready = count and 0 < size == columns <= SMALL and is_real(stack)
    found = matrix_batches(stack) if ready and not (policy.normalize or policy.symmetrize) else None
    if found is None:
        return None
    groups = Columns(range(count), request.orders, repr(kernel))
    groups.notes |= mended(request.policy)
    groups.sizes[:] = size
    for batch in found:
        _take(
            groups,
            np.arange(count),
            batch,
            groups.labels,
            project=policy.project,
            uniform=True,
            trusted=False,
        )
    return groups


def _together(found: Columns, chosen: list[int], parts: list[Any], kernel: Kernel, request: Request) -> None:
    """Small groups as one collection."""
    joined, sizes = join([parts[g] for g in chosen])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    groups = Membership([found.labels[g] for g in chosen], starts, np.arange(starts[-1]), None, sizes)
    try:
        similarity = kernel.similarity(joined, rng=request.rng)
        solve_groups(found, np.array(chosen), similarity, groups, request)
    except InputError:
        # Positions in the joint collection mean nothing to the user: find the group that fails by itself.
        for g in chosen:
            _by_itself(found, g, parts[g], kernel, request)
        raise
    found.kernel = repr(similarity.kernel)


def _by_itself(found: Columns, g: int, part: Any, kernel: Kernel, request: Request) -> None:
    with in_group(found.labels[g]):
        similarity = kernel.similarity(part, rng=request.rng)
    found.sizes[g] = similarity.n
    _one(found, g, similarity, None, request)


def solve_groups(
    found: Columns, places: np.ndarray, similarity: Similarity, groups: Membership, request: Request
) -> None:
    """Score the groups of one collection; group g of `groups` goes to row places[g] of the result."""
    if isinstance(similarity, Matrix):
        similarity = similarity.checked(request.policy)
    elif not similarity.trusted:
        similarity.policy = similarity.policy | request.policy
    project = similarity.policy.project or request.policy.project
    level: Level = "none" if similarity.kernel.approximate else "deterministic"
    found.sizes[places] = groups.sizes
    for batch in batches(similarity, groups.starts, groups.items, groups.weights, groups.labels):
        uniform, trusted = groups.weights is None, similarity.trusted
        _take(
            found,
            places,
            batch,
            groups.labels,
            project=project,
            uniform=uniform,
            trusted=trusted,
            level=level,
        )
    for g in np.flatnonzero(np.diff(groups.starts) > SMALL).tolist():
        part = slice(groups.starts[g], groups.starts[g + 1])
        weights = None if groups.weights is None else groups.weights[part]
        _one(found, int(places[g]), similarity.take(groups.items[part]), weights, request)


def _take(
    found: Columns,
    places: np.ndarray,
    batch: Batch,
    labels: Sequence[Hashable],
    *,
    project: bool,
    uniform: bool,
    trusted: bool,
    level: Level = "deterministic",
) -> None:
    """Eigenvalues of many groups; a negative one is rounding, or projected away on request, or an error."""
    values, error, mass = batch.eigenvalues, batch.error, None
    if project:
        mass = 0.0 - np.minimum(values, 0.0).sum(axis=-1)
        values, error = projected(values, error)
    else:
        low = values[:, -1] < -np.maximum(batch.tolerance, error)
        if low.any():
            worst = int(np.flatnonzero(low)[0])
            with in_group(labels[batch.groups[worst]]):
                slack = float(batch.tolerance[worst])
                clean(values[worst], float(error[worst]), "batched", {}, tolerance=slack, uniform=uniform)
        if not trusted:
            error = error + np.linalg.norm(np.minimum(values, 0), axis=-1)
    found.add(places[batch.groups], np.maximum(values, 0.0), np.asarray(error), removed=mass, level=level)


def _one(found: Columns, g: int, part: Similarity, weights: np.ndarray | None, request: Request) -> None:
    """A group that is solved by itself; all its eigenvalues are kept, so that its Score answers every order."""
    orders = [1.0, *request.orders]
    with in_group(found.labels[g]):
        _, solution = run(
            Problem(
                part,
                weights,
                orders,
                request.policy,
                method="exact",
                precision=request.precision,
                rng=request.rng,
            )
        )
    spectrum = solution.spectrum
    assert isinstance(spectrum, Eigenvalues)
    removed = solution.notes.get("removed_mass")
    mass = None if removed is None else np.array([removed])
    found.add(
        np.array([g]),
        spectrum.eigenvalues[None],
        np.array([spectrum.error]),
        removed=mass,
        level=spectrum.level,
    )
    found.confidence[g] = spectrum.confidence
    found.method[g] = solution.method
