"""From a problem to its solution: the plan, the solver, and a word if the tolerance was not met."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vendimeter.errors import ToleranceWarning, warn
from vendimeter.similarity import Matrix, Pairwise
from vendimeter.similarity.checks import tolerance_of, unit_of
from vendimeter.solvers import exact, lanczos, lowrank
from vendimeter.solvers.exact import Solution
from vendimeter.solvers.operators import operator_of, side_by_side
from vendimeter.solvers.plan import BASE_MEMORY, Plan, Problem, choose, prepared
from vendimeter.spectrum import Eigenvalues, LowRank, Quadrature, Spectrum

__all__ = ["exact_seconds", "run", "solve", "unclaimed"]


# ----------------------------------------------------------------------------------------------------------- carry out

# A plan and a problem → what was found: all eigenvalues, a low rank, or quadrature; and from one to the next.

Report = Callable[[float, str], None]

FILLED = 0.4  # of the progress bar: what storing the matrix takes


def solve(problem: Problem, plan: Plan, report: Report | None = None) -> Solution:
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


# ----------------------------------------------------------------------------------------------------------------- run


def run(problem: Problem, report: Callable[[float, str], None] | None = None) -> tuple[Plan, Solution]:
    """Plan and solve; float32 products whose bound turns out wider than `tol` are done again in float64."""
    problem = prepared(problem)
    before = problem.similarity.calls
    chosen = choose(problem)
    solution = solve(problem, chosen, report)
    tol, orders = problem.solver.tol, problem.orders
    again = chosen.precision == "float32" and problem.solver.precision == "auto" and chosen.method == "exact"
    if tol is not None and again and _widest(solution, orders) > tol:
        problem = replace(problem, solver=replace(problem.solver, precision="float64"))
        chosen = choose(problem)
        solution = solve(problem, chosen, report)
    if problem.collapsed:
        solution.notes["distinct"] = problem.size
    if problem.similarity.calls > before:  # a user's function: every call counts
        solution.notes["evaluations"] = problem.similarity.calls - before
    if problem.similarity.kernel.approximate:
        return chosen, unclaimed(solution)
    tol = chosen.tol if tol is None else tol
    if tol is not None and _widest(solution, orders) > tol:
        _warn(solution, tol, orders)
    return chosen, solution


def _warn(solution: Solution, tol: float, orders: Sequence[float]) -> None:
    width = _widest(solution, orders)
    solution.notes["tol"] = f"not met: the bounds have a relative half-width of {width:.1e}"
    rounding = "rounding in the given numbers allows no better. Pass more precise numbers, or a wider tol."
    reasons = {
        "lowrank": "the similarities are not of low rank. Use method='lanczos' or 'auto', more memory, or a wider tol.",
        "lanczos": "the work or memory set aside for it was spent. Use more memory, a wider tol, or method='exact'.",
    }
    reason = rounding if _rounded(solution.spectrum, tol, orders) else reasons.get(solution.method, rounding)
    warn(
        f"the bounds have a relative half-width of {width:.1e}, more than tol={tol:g}: {reason}",
        ToleranceWarning,
    )


def _rounded(spectrum: Spectrum, tol: float, orders: Sequence[float]) -> bool:
    """Whether rounding is what keeps the bounds apart."""
    if isinstance(spectrum, LowRank):
        rank = len(spectrum.eigenvalues)
        return not rank or spectrum.shift * rank > 0.25 * spectrum.residual
    return isinstance(spectrum, Quadrature) and replace(spectrum, error=0.0).width(orders) <= tol


@functools.cache
def _speed() -> float:
    """Operations a second of a matrix product on this machine, for the estimate of what an exact answer would take."""
    block = np.ones((768, 768))
    np.matmul(block, block)  # the first one starts threads
    began = time.perf_counter()
    np.matmul(block, block)
    return 2 * 768**3 / max(time.perf_counter() - began, 1e-6)


def exact_seconds(chosen: Plan) -> dict[str, float]:
    """For the diagnostics: what an exact answer would take, where another way was chosen."""
    others = [chosen, *chosen.considered]
    if chosen.otherwise is not None:
        others.append(chosen.otherwise)
    exact = next((other for other in others if other.method == "exact"), None)
    if chosen.method == "exact" or exact is None:
        return {}
    return {"exact_seconds": float(f"{exact.flops / _speed():.2g}")}


def unclaimed(solution: Solution) -> Solution:
    """The solution for a kernel that only stands in for another: its score has no bounds."""
    return replace(solution, spectrum=replace(solution.spectrum, level="none"))  # type: ignore[type-var]


def _widest(solution: Solution, orders: Sequence[float]) -> float:
    """The widest relative half-width over the orders; exact ones below 1 depend on eigenvalues that rounding hides."""
    hidden = isinstance(solution.spectrum, Eigenvalues)
    return solution.spectrum.width(q for q in orders if q >= 1 or not hidden)
