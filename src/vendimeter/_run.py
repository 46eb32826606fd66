"""From a problem to its solution: the plan, the solver, and a word if the tolerance was not met."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from vendimeter.errors import ToleranceWarning, warn
from vendimeter.solvers.carry_out import carry_out
from vendimeter.solvers.exact import Solution
from vendimeter.solvers.plan import Plan, Problem, choose, prepared
from vendimeter.spectrum import Eigenvalues, LowRank, Quadrature, Spectrum

__all__ = ["exact_seconds", "run", "unclaimed"]


def run(problem: Problem, report: Callable[[float, str], None] | None = None) -> tuple[Plan, Solution]:
    """Plan and solve; float32 products whose bound turns out wider than `tol` are done again in float64."""
    problem = prepared(problem)
    before = problem.similarity.calls
    chosen = choose(problem)
    solution = carry_out(problem, chosen, report)
    tol, orders = problem.solver.tol, problem.orders
    again = chosen.precision == "float32" and problem.solver.precision == "auto" and chosen.method == "exact"
    if tol is not None and again and _widest(solution, orders) > tol:
        problem = replace(problem, solver=replace(problem.solver, precision="float64"))
        chosen = choose(problem)
        solution = carry_out(problem, chosen, report)
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
