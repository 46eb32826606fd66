"""A plan and a problem → what was found: all eigenvalues, a low rank, or quadrature; and from one to the next."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from vendimeter._arrays import blocks
from vendimeter._devices import DEVICE_BYTES, as_like, concat, namespace
from vendimeter._matrix_checks import tolerance_of, unit_of
from vendimeter.errors import InputError
from vendimeter.similarity import Features, Matrix, Pairwise, Similarity
from vendimeter.solvers import exact, lanczos, lowrank
from vendimeter.solvers.exact import Solution, validated
from vendimeter.solvers.gram import gram
from vendimeter.solvers.operators import (
    SINGLE,
    Blocks,
    Dense,
    Operator,
    Rows,
    Sparse,
    SparseRows,
    compact,
    fill,
    side_by_side,
)
from vendimeter.solvers.plan import BASE_MEMORY, Plan, Problem

__all__ = ["carry_out"]

Report = Callable[[float, str], None]

FILLED = 0.4  # of the progress bar: what storing the matrix takes


def carry_out(problem: Problem, plan: Plan, report: Report | None = None) -> Solution:
    """Solve a prepared problem as planned."""
    if plan.method == "exact":
        return exact.solve(problem, plan)
    # Whatever a user gave is checked once, here; from now on it is a similarity matrix.
    similarity = problem.similarity
    if isinstance(similarity, Matrix):
        similarity = similarity.checked(problem.policy)
    else:
        similarity.policy = problem.policy | similarity.policy
    problem = replace(problem, similarity=similarity, tol=plan.tol)
    if plan.method == "lanczos":
        return _lanczos(problem, plan, report)
    return _lowrank(problem, plan, report)


def _lowrank(problem: Problem, plan: Plan, report: Report | None) -> Solution:
    tried = lowrank.solve(
        problem.taken,
        problem.weights,
        tol=plan.tol or 0.0,
        orders=problem.orders,
        most=plan.rank,
        pivots=problem.pivots,  # type: ignore[arg-type]
        rng=problem.rng,
        names=problem.index,
        worthwhile=None if plan.otherwise is None else plan.rank,
        report=report,
    )
    notes: dict[str, Any] = {"rank": tried.factor.rank, "evaluations": tried.factor.evaluations}
    if tried.met or plan.otherwise is None:
        return Solution(tried.spectrum, "lowrank", notes | {"residual": tried.spectrum.residual})
    tried_first = (
        f"low rank, given up at rank {tried.factor.rank} with a relative half-width of {tried.width:.1e}"
    )
    if plan.otherwise.method == "lanczos":
        start = tried.factor.leading(min(64, tried.factor.rank))
        solution = _lanczos(problem, plan.otherwise, report, start)
    else:
        solution = exact.solve(problem, plan.otherwise)
    found = dict(solution.notes)
    found["evaluations"] = int(found.get("evaluations", plan.otherwise.evaluations)) + notes["evaluations"]
    return replace(solution, notes=found | {"reason": plan.otherwise.reason, "tried_first": tried_first})


def _lanczos(problem: Problem, plan: Plan, report: Report | None, start: Any = None) -> Solution:
    operator, stored = _operator(problem, plan, report)
    similarity = problem.similarity
    tolerance = operator.error
    if not similarity.trusted:
        # A user's entries are rounded ones of a matrix without negative eigenvalues.
        norm = math.sqrt(operator.squares or 1.0)
        tolerance += float(tolerance_of(similarity.precision, norm))
        operator.error += unit_of(similarity.precision) * norm
    after = FILLED if stored else 0.0
    spare = max(problem.budget - BASE_MEMORY - stored, 8.0 * operator.size * 64)
    with side_by_side(operator):
        found = lanczos.solve(
            operator,
            tol=plan.tol or 0.0,
            orders=problem.orders,
            confidence=problem.confidence,
            rng=problem.rng,
            start=start,
            most_bytes=spare,
            tolerance=tolerance,
            report=None if report is None else lambda done, note: report(after + (1 - after) * done, note),
        )
    spectrum = found.spectrum
    if plan.precision == "float32":
        spectrum = replace(spectrum, level="estimated")
        found.notes["precision"] = "float32 products, whose rounding is not in the bounds"
    notes = found.notes | {"storage": plan.storage}
    if isinstance(similarity, Pairwise) and plan.storage != "blocks":
        notes["evaluations"] = problem.size * (problem.size + 1) // 2
    return Solution(spectrum, "lanczos", notes)


def _operator(problem: Problem, plan: Plan, report: Report | None) -> tuple[Operator, float]:
    """ρ as something that multiplies, and the bytes that it takes."""
    similarity, weights = problem.taken, problem.weights
    products = plan.precision
    if isinstance(similarity, Matrix):
        error = similarity.rounding
        if similarity.sparse:
            return Sparse(similarity.data, weights, error=error), 0.0
        if plan.storage == "float32":
            return _rounded(compact(similarity.data), weights, error, products)
        return Dense(similarity.data, weights, error=error, products=products), 0.0
    if isinstance(similarity, Features):
        if similarity.sparse:
            rows = similarity.rows(slice(None))
            terms = int(np.diff(rows.indptr).max(initial=0))
            error = 2 * similarity.rounding + (terms + 8) * 2.0**-53
            return SparseRows(rows, weights, error=error), 40.0 * rows.nnz
        if plan.storage == "features":
            return Rows(similarity, weights), 0.0
        if similarity.width <= similarity.n:
            found = gram(similarity, weights, precision="float64", rng=problem.rng)
            return Dense(found.matrix, scaled=True, error=found.error), 8.0 * similarity.width**2
    if plan.storage == "blocks":
        return _blocks(problem, similarity, weights), 0.0
    return _stored(problem, plan, similarity, weights, products, report)


def _stored(
    problem: Problem,
    plan: Plan,
    similarity: Similarity,
    weights: np.ndarray | None,
    products: str,
    report: Report | None,
) -> tuple[Operator, float]:
    n, single = similarity.n, plan.storage == "float32"
    error = similarity.entry_error
    if isinstance(similarity, Pairwise) and not similarity.trusted:
        # A user's function: as for the exact answer, all of it is looked at.
        matrix, checked = validated(similarity.dense(), similarity, problem.index)
        error = checked.entry_error
        if single:
            matrix = namespace(matrix).astype(matrix, namespace(matrix).float32)
    elif similarity.like is not None:
        matrix = _on_device(similarity, single)
    else:
        progress = None if report is None else lambda part: report(FILLED * part, "similarities")
        matrix = fill(similarity, np.float32 if single else np.float64, progress)
    if single:
        return _rounded(matrix, weights, error, products)
    return Dense(matrix, weights, error=error, products=products), 8.0 * n * n


def _rounded(matrix: Any, weights: np.ndarray | None, error: float, products: str) -> tuple[Operator, float]:
    """A matrix whose entries were each rounded to float32 once."""
    operator = Dense(matrix, weights, error=error, products=products)
    operator.error += SINGLE * math.sqrt(operator.squares or 1.0)
    return operator, 4.0 * operator.size**2


def _on_device(similarity: Similarity, single: bool) -> Any:
    if not single:
        return similarity.dense()
    xp = namespace(similarity.like)
    parts = blocks(similarity.n, similarity.n, most=DEVICE_BYTES)
    whole = slice(0, similarity.n)
    return concat([
        xp.astype(as_like(similarity.block(part, whole), similarity.like), xp.float32) for part in parts
    ])  # fmt: skip


def _blocks(problem: Problem, similarity: Similarity, weights: np.ndarray | None) -> Operator:
    policy = problem.policy | similarity.policy
    if not similarity.trusted and (policy.normalize or policy.symmetrize):
        raise InputError(
            f"the {similarity.n}×{similarity.n} matrix of a function does not fit into memory, and normalize=True or "
            "symmetrize=True needs all of it; expected a function that needs no mending, or more memory."
        )
    return Blocks(similarity, weights)
