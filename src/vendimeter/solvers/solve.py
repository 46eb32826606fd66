"""From a problem to its solution: plan it, call the solver, and warn where the tolerance was not met."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vendimeter.errors import ToleranceWarning
from vendimeter.messages import warn
from vendimeter.similarity import Matrix, Pairwise, Similarity
from vendimeter.similarity.checks import tolerance_of, unit_of
from vendimeter.solvers import exact, lanczos, lowrank
from vendimeter.solvers.exact import Solution
from vendimeter.solvers.operators import operator_of, side_by_side
from vendimeter.solvers.plan import BASE_MEMORY, Plan, Problem, choose, prepared
from vendimeter.spectrum import Eigenvalues, LowRank, Quadrature, Spectrum

__all__ = ["GivenUp", "MissedTolerance", "exact_seconds", "is_approximate", "run", "solve", "unclaimed"]

Report = Callable[[float, str], None]
FILLED = 0.4  # of the progress bar: storing the matrix


@dataclass(frozen=True)
class GivenUp:
    """That a low rank was tried first, up to this rank, and left bounds of this relative half-width."""

    rank: int
    half_width: float

    def __str__(self) -> str:
        return f"low rank, given up at rank {self.rank} with a relative half-width of {self.half_width:.1e}"


@dataclass(frozen=True)
class MissedTolerance:
    """That bounds are wider than the tolerance: their relative half-width."""

    half_width: float

    def __str__(self) -> str:
        return f"not met: the bounds have a relative half-width of {self.half_width:.1e}"


def run(problem: Problem, report: Report | None = None) -> tuple[Plan, Solution]:
    """Plan and solve; float32 products whose bound turns out wider than `tol` are done again in float64."""
    problem = prepared(problem)
    calls_before = problem.similarity.calls
    plan = choose(problem)
    solution = solve(problem, plan, report)
    tol, orders = problem.solver.tol, problem.orders
    used_float32 = (
        plan.precision == "float32" and problem.solver.precision == "auto" and plan.method == "exact"
    )
    if tol is not None and used_float32 and _widest(solution, orders) > tol:
        problem = replace(problem, solver=replace(problem.solver, precision="float64"))
        plan = choose(problem)
        solution = solve(problem, plan, report)
    if problem.collapsed:
        solution.notes["distinct"] = problem.size
    if problem.similarity.calls > calls_before:  # a user's function: every call counts
        solution.notes["evaluations"] = problem.similarity.calls - calls_before
    if is_approximate(problem.similarity):
        return plan, unclaimed(solution)
    tol = plan.tol if tol is None else tol
    if tol is not None and _widest(solution, orders) > tol:
        _warn(solution, tol, orders)
    return plan, solution


def solve(problem: Problem, plan: Plan, report: Report | None = None) -> Solution:
    """Solve a prepared problem as planned."""
    if plan.method == "exact":
        return exact.solve(problem, plan)
    similarity = problem.similarity
    if isinstance(similarity, Matrix):  # checked once, here; from now on it is a similarity matrix
        problem = replace(problem, similarity=similarity.checked())
    solvers = {"lanczos": _solve_lanczos, "lowrank": _solve_lowrank}
    return solvers[plan.method](problem, plan, report)


def _solve_lowrank(problem: Problem, plan: Plan, report: Report | None) -> Solution:
    trial = lowrank.solve(
        problem.remaining,
        problem.weights,
        replace(problem.solver, tol=plan.tol),
        orders=problem.orders,
        most=plan.rank,
        rng=problem.rng,
        names=problem.index,
        worthwhile=None if plan.otherwise is None else plan.rank,
        report=report,
    )
    notes: dict[str, Any] = {"rank": trial.factor.rank, "evaluations": trial.factor.evaluations}
    if trial.met or plan.otherwise is None:
        return Solution(trial.spectrum, "lowrank", notes | {"residual": trial.spectrum.residual})
    if plan.otherwise.method == "lanczos":
        start = trial.factor.leading(min(64, trial.factor.rank))
        solution = _solve_lanczos(problem, plan.otherwise, report, start)
    else:
        solution = exact.solve(problem, plan.otherwise)
    combined_notes = dict(solution.notes)
    combined_notes["evaluations"] = (
        int(combined_notes.get("evaluations", plan.otherwise.evaluations)) + notes["evaluations"]
    )
    combined_notes |= {
        "reason": plan.otherwise.reason,
        "tried_first": GivenUp(trial.factor.rank, float(trial.width)),
    }
    return replace(solution, notes=combined_notes)


def _solve_lanczos(problem: Problem, plan: Plan, report: Report | None, start: Any = None) -> Solution:
    similarity = problem.similarity
    operator = operator_of(
        problem.remaining,
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
    start_fraction = FILLED if operator.stored else 0.0
    spare_bytes = max(problem.budget - BASE_MEMORY - operator.stored, 8.0 * operator.size * 64)
    with side_by_side(operator):
        result = lanczos.solve(
            operator,
            replace(problem.solver, tol=plan.tol),
            orders=problem.orders,
            rng=problem.rng,
            start=start,
            most_bytes=spare_bytes,
            tolerance=tolerance,
            report=None
            if report is None
            else lambda done, note: report(start_fraction + (1 - start_fraction) * done, note),
        )
    spectrum = result.spectrum
    if plan.precision == "float32":
        spectrum = replace(spectrum, level="estimated")
        result.notes["precision"] = "float32 products, whose rounding is not in the bounds"
    notes = result.notes | {"storage": plan.storage}
    if isinstance(similarity, Pairwise) and plan.storage != "blocks":
        notes["evaluations"] = problem.size * (problem.size + 1) // 2
    return Solution(spectrum, "lanczos", notes)


def _widest(solution: Solution, orders: Sequence[float]) -> float:
    """The widest relative half-width over the orders; exact ones below 1 depend on eigenvalues that rounding hides."""
    all_eigenvalues = isinstance(solution.spectrum, Eigenvalues)
    return solution.spectrum.width(q for q in orders if q >= 1 or not all_eigenvalues)


def _warn(solution: Solution, tol: float, orders: Sequence[float]) -> None:
    width = _widest(solution, orders)
    solution.notes["tol"] = MissedTolerance(width)
    rounding = "rounding in the given numbers allows no better. Pass more precise numbers, or a wider tol."
    reasons = {
        "lowrank": "the similarities are not of low rank. Use method='lanczos' or 'auto', more memory, or a wider tol.",
        "lanczos": "the work or memory set aside for it was spent. Use more memory, a wider tol, or method='exact'.",
    }
    reason = (
        rounding
        if _is_limited_by_rounding(solution.spectrum, tol, orders)
        else reasons.get(solution.method, rounding)
    )
    warn(
        f"the bounds have a relative half-width of {width:.1e}, more than tol={tol:g}: {reason}",
        ToleranceWarning,
    )


def _is_limited_by_rounding(spectrum: Spectrum, tol: float, orders: Sequence[float]) -> bool:
    """Whether rounding keeps the bounds wider than the tolerance."""
    if isinstance(spectrum, LowRank):
        rank = len(spectrum.eigenvalues)
        return not rank or spectrum.shift * rank > 0.25 * spectrum.residual
    return isinstance(spectrum, Quadrature) and replace(spectrum, error=0.0).width(orders) <= tol


def is_approximate(similarity: Similarity) -> bool:
    """Whether the kernel only stands in for another, so that no bound holds; features by themselves have none."""
    return similarity.kernel is not None and similarity.kernel.approximate


def unclaimed(solution: Solution) -> Solution:
    """The solution without bounds: for a kernel that approximates another."""
    return replace(solution, spectrum=replace(solution.spectrum, level="none"))  # type: ignore[type-var]


def exact_seconds(plan: Plan) -> dict[str, float]:
    """For the diagnostics: the seconds an exact answer would take, where another method was chosen."""
    plans = [plan, *plan.considered]
    if plan.otherwise is not None:
        plans.append(plan.otherwise)
    exact = next((candidate for candidate in plans if candidate.method == "exact"), None)
    if plan.method == "exact" or exact is None:
        return {}
    return {"exact_seconds": float(f"{exact.flops / _speed():.2g}")}


@functools.cache
def _speed() -> float:
    """Floating-point operations a second of a matrix product on this machine, measured once."""
    block = np.ones((768, 768))
    np.matmul(block, block)  # the first one starts threads
    start = time.perf_counter()
    np.matmul(block, block)
    return 2 * 768**3 / max(time.perf_counter() - start, 1e-6)
