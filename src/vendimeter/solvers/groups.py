"""Scores of many groups or subsets of one collection, in arrays with a row a group: the similarities are made once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from vendimeter.data.groups import Grouping
from vendimeter.messages import in_group
from vendimeter.similarity import Features, Matrix, Similarity, materialized
from vendimeter.solvers.batched import SMALL, Batch, batches
from vendimeter.solvers.exact import clean, drop_negative
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import EXACT_SIDE, Problem
from vendimeter.solvers.solve import is_approximate, run
from vendimeter.spectrum import Eigenvalues, Level, bracket, hill

__all__ = [
    "SolvedGroups",
    "add_batch",
    "add_large",
    "materialize_for_subsets",
    "solve_groups",
    "subset_scores",
]

CHUNK = 4096  # subsets that are scored at a time: their eigenvalues are in memory meanwhile


class SolvedGroups:
    """Scores of groups in arrays, with the eigenvalues behind them; a group that is not filled in is empty.

    Attributes
    ----------
    orders : list of float
        The orders.
    value, low, high : ndarray, shape (groups, orders)
        The scores and their bounds, NaN where there are none.
    error : ndarray, shape (groups,)
        Bounds on the error of the eigenvalues.
    removed : ndarray, shape (groups,)
        The mass of negative eigenvalues that were projected away; NaN where none were to be.
    sizes : ndarray, shape (groups,)
        How many items each group stands for.
    level, confidence, method : list
        Of each group, as of a score; "empty" is the method of an empty one.
    spectra : list of (ndarray, ndarray)
        Positions of groups, and their eigenvalues, a row each.
    """

    def __init__(self, count: int, orders: Sequence[float]):
        shape = (count, len(orders))
        self.orders = list(orders)
        self.value, self.low, self.high = (np.full(shape, np.nan) for _ in range(3))
        self.error, self.removed = np.full(count, np.nan), np.full(count, np.nan)
        self.sizes = np.zeros(count, dtype=np.int64)
        self.level: list[Level] = ["none"] * count
        self.confidence = [1.0] * count
        self.method = ["empty"] * count
        self.spectra: list[tuple[np.ndarray, np.ndarray]] = []

    def add(
        self,
        groups: np.ndarray,
        eigenvalues: np.ndarray,
        error: np.ndarray,
        *,
        removed: np.ndarray | None = None,
        level: Level = "deterministic",
    ) -> None:
        """Fill in groups with the same number of eigenvalues."""
        for k, q in enumerate(self.orders):
            self.value[groups, k] = value = hill(eigenvalues, q, zero_below=2 * error)
            if level != "none":
                low, high = bracket(eigenvalues, error, q)
                self.low[groups, k], self.high[groups, k] = low, high
                self.value[groups, k] = np.clip(value, low, high)
        self.error[groups] = error
        eigenvalues.flags.writeable = False
        if removed is not None:
            self.removed[groups] = removed
        self.spectra.append((groups, eigenvalues))
        for g in groups.tolist():
            self.level[g], self.method[g] = level, "batched"

    def put(self, positions: np.ndarray, others: SolvedGroups) -> None:
        """Fill in the groups at these positions from others that were solved separately."""
        for name in ("value", "low", "high", "error", "removed", "sizes"):
            getattr(self, name)[positions] = getattr(others, name)
        for name in ("level", "confidence", "method"):
            mine, theirs = getattr(self, name), getattr(others, name)
            for position, value in zip(positions.tolist(), theirs, strict=True):
                mine[position] = value
        self.spectra += [(positions[rows], eigenvalues) for rows, eigenvalues in others.spectra]


def solve_groups(
    similarity: Similarity,
    groups: Grouping,
    orders: Sequence[float],
    *,
    precision: str = "float64",
    rng: int = 0,
) -> SolvedGroups:
    """Score the groups of one collection: small ones in batches, large ones one by one.

    Parameters
    ----------
    similarity : Similarity
        Of all items.
    groups : Grouping
        Which items are in which group; its labels are for messages.
    orders : list of float
        The orders.
    precision : {"auto", "float64", "float32"}
        Of products of large groups, as for `vendimeter.score`.
    rng : int
        Seed of what is random.

    Examples
    --------
    >>> from vendimeter.kernels import Cosine
    >>> halves = Grouping.of([np.array([0, 1]), np.array([2, 3])])
    >>> solve_groups(Cosine().similarity(np.eye(3)[[0, 1, 2, 2]]), halves, [1.0]).value[:, 0]
    array([2., 1.])
    """
    if isinstance(similarity, Matrix):
        similarity = similarity.checked()
    solved = SolvedGroups(len(groups.sizes), orders)
    solved.sizes[:] = groups.sizes
    level: Level = "none" if is_approximate(similarity) else "deterministic"
    for batch in batches(similarity, groups.starts, groups.items, groups.weights, groups.labels):
        add_batch(
            solved,
            batch,
            groups.labels,
            project=similarity.policy.project,
            uniform=groups.weights is None,
            trusted=similarity.trusted,
            level=level,
        )
    solver = Solver(method="exact", precision=precision)
    for g in np.flatnonzero(np.diff(groups.starts) > SMALL).tolist():
        members = slice(groups.starts[g], groups.starts[g + 1])
        weights = None if groups.weights is None else groups.weights[members]
        with in_group(groups.labels[g]):
            add_large(
                solved, g, Problem(similarity.take(groups.items[members]), weights, orders, solver, rng)
            )
    return solved


def subset_scores(
    similarity: Similarity,
    subsets: Sequence[np.ndarray],
    orders: Sequence[float],
    weights: Sequence[np.ndarray] | None = None,
    *,
    rng: int = 0,
) -> np.ndarray:
    """The scores of the items at each of these arrays of positions, of shape (subsets, orders); an empty one is NaN.

    Parameters
    ----------
    similarity : Similarity
        Of all items; see `materialize_for_subsets`.
    subsets : list of ndarray
        Positions of items, each at most once.
    orders : list of float
        The orders q.
    weights : list of ndarray, optional
        Probabilities of the items of each subset, which sum to 1; uniform by default.
    rng : int
        Seed of what is random.

    Examples
    --------
    >>> import numpy as np
    >>> from vendimeter.kernels import Cosine
    >>> subset_scores(Cosine().similarity(np.eye(4)), [np.array([0, 1]), np.arange(4)], [1.0])[:, 0]
    array([2., 4.])
    """
    scores = []
    for first in range(0, len(subsets), CHUNK):
        chunk = slice(first, first + CHUNK)
        groups = Grouping.of(subsets[chunk], None if weights is None else weights[chunk])
        scores.append(solve_groups(similarity, groups, orders, rng=rng).value)
    return np.concatenate(scores) if scores else np.empty((0, len(orders)))


def materialize_for_subsets(similarity: Similarity, most: int = EXACT_SIDE) -> Similarity:
    """The similarities in a form whose subsets are cheap: as a matrix, where rows are fewer than features.

    A user's function is called and checked once. Beyond `most` items nothing is stored, and the similarities of a
    subset are computed when it is scored.
    """
    features_are_fewer = isinstance(similarity, Features) and similarity.width <= similarity.n
    if features_are_fewer or (similarity.n > most and not isinstance(similarity, Matrix)):
        return similarity
    return materialized(similarity)


def add_batch(
    solved: SolvedGroups,
    batch: Batch,
    labels: Sequence[Hashable],
    *,
    project: bool,
    uniform: bool,
    trusted: bool,
    level: Level = "deterministic",
) -> None:
    """Fill in a batch of groups; a negative eigenvalue is rounding, or projected away on request, or an error."""
    values, error, removed = batch.eigenvalues, batch.error, None
    if project:
        removed = 0.0 - np.minimum(values, 0.0).sum(axis=-1)
        values, error = drop_negative(values, error)
    else:
        is_indefinite = values[:, -1] < -np.maximum(batch.tolerance, error)
        if is_indefinite.any():
            worst = int(np.flatnonzero(is_indefinite)[0])
            with in_group(labels[batch.groups[worst]]):
                slack = float(batch.tolerance[worst])
                clean(values[worst], float(error[worst]), "batched", {}, tolerance=slack, uniform=uniform)
        if not trusted:
            error = error + np.linalg.norm(np.minimum(values, 0), axis=-1)
    solved.add(batch.groups, np.maximum(values, 0.0), np.asarray(error), removed=removed, level=level)


def add_large(solved: SolvedGroups, g: int, problem: Problem) -> None:
    """Solve one group and fill it in with all its eigenvalues, so that its Score answers every order."""
    _, solution = run(replace(problem, orders=[1.0, *problem.orders]))
    spectrum = solution.spectrum
    assert isinstance(spectrum, Eigenvalues)
    removed = solution.notes.get("removed_mass")
    solved.add(
        np.array([g]),
        spectrum.eigenvalues[None],
        np.array([spectrum.error]),
        removed=None if removed is None else np.array([removed]),
        level=spectrum.level,
    )
    solved.confidence[g], solved.method[g] = spectrum.confidence, solution.method
