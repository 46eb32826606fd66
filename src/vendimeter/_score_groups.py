"""The front door for groups: score_groups."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from vendimeter import _tables
from vendimeter._arrays import is_frame_column, is_sparse, is_table, length
from vendimeter._matrix_checks import Policy
from vendimeter._membership import Membership, join, read, split
from vendimeter._score import run, similarity_of
from vendimeter._suggest import unknown
from vendimeter.errors import InputError, MatrixError
from vendimeter.groups import Columns, GroupScores
from vendimeter.kernels import FromDistances, Kernel, Precomputed, as_kernel
from vendimeter.similarity import Matrix, Similarity
from vendimeter.solvers.batched import SMALL, batches
from vendimeter.solvers.exact import clean
from vendimeter.solvers.plan import METHODS, PRECISIONS
from vendimeter.spectrum import Spectrum, parse_orders

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
    samples : array, sparse array, list, table, or groups of them
        One collection, grouped by `by`; or, without `by`, a mapping from label to samples or a list of groups.
    kernel : str, Kernel or callable
        As for `vendimeter.score`; parameters that come from data are fitted once on all items.
    by : list, array, or name of a column
        One label an item; or one set (or list) of labels an item, so that groups may overlap; or, for a table,
        the name of the column with the labels. With `weights` or `counts` of shape (groups, n): the names of
        their rows.
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
    GroupScores(2 groups, q=1: x 2, y 1)
    >>> groups["x"].n
    2
    """
    for given, known, what in ((method, METHODS, "method"), (precision, PRECISIONS, "precision")):
        if given not in known:
            raise unknown(what, given, known)
    options = {"precision": precision, "policy": Policy(normalize, symmetrize, project), "rng": rng}
    orders, several = parse_orders(q)
    if by is None and np.ndim(weights if counts is None else counts) != 2:
        return _separate(samples, kernel, orders, several, weights, counts, options)
    if isinstance(by, str) and _tables.has_columns(samples):
        by = _tables.column(samples, by)
    similarity = similarity_of(samples, kernel, rng)
    return _solve(similarity, read(by, similarity.n, weights, counts), orders, several, **options)


def _separate(
    groups: Any,
    kernel: Any,
    orders: list[float],
    several: bool,
    weights: Any,
    counts: Any,
    options: dict[str, Any],
) -> GroupScores:
    """Groups that come one by one: a mapping or a list."""
    if (
        is_table(groups)
        or is_sparse(groups)
        or is_frame_column(groups)
        or not isinstance(groups, Mapping | list | tuple | np.ndarray)
    ):
        raise InputError(
            "samples is one collection and by is missing; expected by=labels, a mapping label → samples, or "
            "a list of groups."
        )
    if isinstance(groups, np.ndarray) and groups.ndim == 2:
        raise InputError(
            "samples is one array and by is missing; expected by=labels, a mapping label → samples, or a "
            "list of groups (such as an "
            "array of shape groups × items × columns)."
        )
    if weights is not None or counts is not None:
        raise InputError(
            "weights and counts go with one collection; expected by=labels with them, one number an item. "
            "For groups given one by one, "
            "join them into one collection first."
        )
    chosen: Kernel = as_kernel(kernel)
    labels, parts = split(groups)
    # Large groups are scored where they lie, without a joint copy; matrices cannot be joined at all. But a kernel whose
    # parameters come from data must see all items at once.
    if isinstance(chosen, Precomputed | FromDistances) or (chosen.fitted and min(map(length, parts)) > SMALL):
        return _one_by_one(labels, parts, chosen, orders, several, options)
    samples, sizes = join(parts)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    similarity = similarity_of(samples, chosen, options["rng"])
    return _solve(
        similarity, Membership(labels, starts, np.arange(starts[-1]), None, sizes), orders, several, **options
    )


def _one_by_one(
    labels: Sequence[Hashable],
    parts: list[Any],
    kernel: Kernel,
    orders: list[float],
    several: bool,
    options: dict[str, Any],
) -> GroupScores:
    """Each group by itself, with its own similarity."""
    found = Columns(len(labels), orders)
    for g, part in enumerate(parts):
        if length(part) == 0:
            continue
        similarity = kernel.similarity(part, rng=options["rng"])
        _one(found, g, labels[g], similarity, None, orders, options)
        found.sizes[g] = similarity.n
    return found.result(labels, orders, several, repr(kernel))


def _solve(
    similarity: Similarity,
    groups: Membership,
    orders: list[float],
    several: bool,
    *,
    precision: str,
    policy: Policy,
    rng: int,
) -> GroupScores:
    kernel = repr(similarity.kernel)
    if isinstance(similarity, Matrix):
        similarity = similarity.checked(policy)
    elif not similarity.trusted:
        similarity.policy = similarity.policy | policy
    project = similarity.policy.project or policy.project
    found = Columns(len(groups.labels), orders)
    found.sizes[:] = groups.sizes
    for batch in batches(similarity, groups.starts, groups.items, groups.weights):
        values = batch.eigenvalues
        if project:
            values = np.maximum(values, 0.0)
            values /= values.sum(axis=-1, keepdims=True)
        else:
            low = values[:, -1] < -np.maximum(batch.tolerance, batch.error)
            if low.any():
                worst = int(np.flatnonzero(low)[0])
                with _naming(groups.labels[batch.groups[worst]]):
                    clean(values[worst], float(batch.error[worst]), "batched", {}, tolerance=batch.tolerance)
        error = batch.error + (np.linalg.norm(np.minimum(values, 0), axis=-1) if batch.tolerance else 0.0)
        found.add(batch.groups, np.maximum(values, 0.0), error, orders)
    for g in np.flatnonzero(np.diff(groups.starts) > SMALL).tolist():
        part = slice(groups.starts[g], groups.starts[g + 1])
        weights = None if groups.weights is None else groups.weights[part]
        options = {"precision": precision, "policy": policy, "rng": rng}
        _one(found, g, groups.labels[g], similarity.take(groups.items[part]), weights, orders, options)
    return found.result(groups.labels, orders, several, kernel)


def _one(
    found: Columns,
    g: int,
    label: Hashable,
    part: Similarity,
    weights: np.ndarray | None,
    orders: list[float],
    options: dict[str, Any],
) -> None:
    """A group that is solved by itself; all its eigenvalues are kept, so that its Score answers every order."""
    with _naming(label):
        _, solution = run(part, weights, [1.0, *orders], options["policy"], method="auto", tol=None,
                          precision=options["precision"], rng=options["rng"])  # fmt: skip
    spectrum = solution.spectrum
    assert isinstance(spectrum, Spectrum)
    found.add(np.array([g]), spectrum.eigenvalues[None], np.array([spectrum.error]), orders)
    found.level[g], found.confidence[g], found.method[g] = (
        spectrum.level,
        spectrum.confidence,
        solution.method,
    )


class _naming:
    """Puts the name of the group in front of an error about its matrix."""

    def __init__(self, label: Hashable):
        self.label = label

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, MatrixError):
            raise type(error)(f"group {self.label!r}: {error}") from None
