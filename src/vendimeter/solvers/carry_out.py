"""A plan and a problem → what was found: all eigenvalues, a low rank, or quadrature; and from one to the next."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from vendimeter.similarity import Matrix, Pairwise
from vendimeter.similarity.checks import tolerance_of, unit_of
from vendimeter.solvers import exact, lanczos, lowrank
from vendimeter.solvers.exact import Solution
from vendimeter.solvers.operators import operator_of, side_by_side
from vendimeter.solvers.plan import BASE_MEMORY, Plan, Problem

__all__ = ["carry_out"]

Report = Callable[[float, str], None]

FILLED = 0.4  # of the progress bar: what storing the matrix takes


def carry_out(problem: Problem, plan: Plan, report: Report | None = None) -> Solution:
    """Solve a prepared problem as planned."""
    if plan.method == "exact":
        return exact.solve(problem, plan)
    similarity = problem.similarity
    if isinstance(similarity, Matrix):  # checked once, here; from now on it is a similarity matrix
        problem = replace(problem, similarity=similarity.checked())
    if plan.method == "lanczos":
        return _lanczos(problem, plan, report)
    return _lowrank(problem, plan, report)


def _lowrank(problem: Problem, plan: Plan, report: Report | None) -> Solution:
    tried = lowrank.solve(
        problem.taken,
        problem.weights,
        replace(problem.solver, tol=plan.tol),
        orders=problem.orders,
        most=plan.rank,
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
    similarity = problem.similarity
    operator = operator_of(
        problem.taken,
        problem.weights,
        plan.storage,
        products=plan.precision,
        names=problem.index,
        progress=None if report is None else lambda part: report(FILLED * part, "similarities"),
        rng=problem.rng,
    )
    tolerance = operator.error
    if not similarity.trusted:
        # A user's entries are rounded ones of a matrix without negative eigenvalues.
        norm = math.sqrt(operator.squares or 1.0)
        tolerance += float(tolerance_of(similarity.precision, norm))
        operator.error += unit_of(similarity.precision) * norm
    after = FILLED if operator.stored else 0.0
    spare = max(problem.budget - BASE_MEMORY - operator.stored, 8.0 * operator.size * 64)
    with side_by_side(operator):
        found = lanczos.solve(
            operator,
            replace(problem.solver, tol=plan.tol),
            orders=problem.orders,
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
