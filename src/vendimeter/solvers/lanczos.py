"""Deflation, control variates and Lanczos quadrature: the score from products with ρ alone.

The mathematics is in `spectrum.quadrature`; here is how the work is spent. A block Krylov space grows pass by pass; the
density it has seen says how many probes would be needed if it ended there, and it grows while that saves more than it
costs. All probes then run in one batch, so that every pass over the matrix serves all of them, for as many steps as
their brackets need. If the interval is still too wide, probes are added, or more is split off and new probes drawn,
whichever is cheaper. How many probes there may be is a ladder that is fixed before the first is drawn, and every rung
has its own share of the probability of failure, as has every split: the bound holds whichever of them the data stop at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.data.devices import concat, move, namespace, to_host, transposed
from vendimeter.errors import IndefiniteError
from vendimeter.options import generator
from vendimeter.similarity.checks import mending
from vendimeter.solvers.krylov import Krylov, gaussian
from vendimeter.solvers.operators import Operator
from vendimeter.solvers.options import Solver
from vendimeter.spectrum.quadrature import Deflated, Quadrature, Runs, ceiling

__all__ = ["Result", "solve"]

LEAST = 12  # probes at least
STEPS_LEAST, STEPS, STEPS_MOST = 5, 10, 48  # of a probe: at least, usually, at most
AIM = 0.9  # of the tolerance: what probes are planned for, so that the first batch usually suffices
SPLIT = 0.08  # of the tolerance: what the split may cost
# Of the tolerance: how far brackets may be apart, where columns and where passes cost.
GAP, WIDE_GAP = 0.2, 0.4
RUNG = 1.5  # how many times more probes the next rung of the ladder has
# Of the probability of failure: the share of the first split and of its first rung; then the same of what is left.
FIRST = 0.85


@dataclass
class Result:
    """The spectrum, its widest relative half-width, whether that meets the tolerance, and what was spent."""

    spectrum: Quadrature
    width: float
    met: bool
    notes: dict[str, Any] = field(default_factory=dict)


def solve(
    operator: Operator,
    solver: Solver,
    *,
    orders: Sequence[float],
    rng: int = 0,
    start: Any = None,
    budget: int = 8192,
    most_bytes: float = math.inf,
    tolerance: float = 0.0,
    report: Callable[[float, str], None] | None = None,
) -> Result:
    """The spectrum of ρ by quadrature, narrow enough for the tolerance (relative, on the score) at each order.

    Parameters
    ----------
    operator : Operator
        ρ.
    solver : Solver
        The relative half-width to reach, `tol`, and the probability with which the interval of an order holds.
    orders : list of float
        Those for which it is to be reached, q > 0.
    rng : int
        Seed.
    start : array, shape (n, w), optional
        Vectors near the leading eigenvectors, to start from.
    budget : int
        How many columns may be multiplied.
    most_bytes : float
        How much memory vectors may take.
    tolerance : float
        How negative a Ritz value may be by honest rounding of the entries of a user's matrix.
    report : callable, optional
        (fraction, note), for a progress bar.
    """
    search = _Search(operator, solver, orders, rng, start, budget, most_bytes, tolerance, report)
    return search.run()


class _Search:
    """The state of one solve: a Krylov space that grows, splits of it, and the budget that is left."""

    def __init__(
        self,
        operator: Operator,
        solver: Solver,
        orders: Sequence[float],
        rng: int,
        start: Any,
        budget: int,
        most_bytes: float,
        tolerance: float,
        report: Callable[[float, str], None] | None,
    ):
        self.operator, self.confidence = operator, solver.confidence
        self.tol = solver.aim
        self.aim = self.tol  # what work is planned for: the tolerance, or what can be afforded
        self.orders = list(orders)
        self.sum_orders = [q for q in orders if q < 2]
        self.norm_orders = [q for q in orders if q > 2 or (q == 2 and operator.squares is None)]
        # Fewer steps with more probes, where a pass costs more than its columns.
        self.gap = GAP + (WIDE_GAP - GAP) * operator.overhead / (operator.overhead + 16)
        self.generator = generator(rng, "lanczos")
        self.budget, self.tolerance, self.report = budget, tolerance, report
        # A vector of length n takes 8n bytes. The space takes up to three times its dimension while it grows, and half
        # as much again for what is split off; the rest is for probes.
        vector_count = max(48, int(min(most_bytes / (8 * operator.size), 1e6)))
        self.max_dimension = min(vector_count // 5, max(operator.size // 2, min(operator.size, 256)))
        self.probe_vectors = vector_count // 3
        self.splits = self.rung = 0
        self.krylov = self._start_krylov(start)

    # ------------------------------------------------------------------------------------------------ the Krylov space

    def _start_krylov(self, start: Any) -> Krylov:
        """The Krylov space of Gaussian start vectors, and of `start` where it is given."""
        size = self.operator.size
        # As wide as the tolerance wants it, and wide enough that a pass is worth its overhead.
        width = max(5.0 * (1e-2 / self.tol) ** 0.6, self.operator.overhead)
        width = int(min(width, 128, max(4, size // 8), max(4, self.max_dimension // 6)))
        block = gaussian(self.generator, size, width, self.operator.like)
        random_columns = width
        if start is not None and int(start.shape[1]):
            random_columns = max(4, width // 2)
            block = concat([start[:, : max(1, width - random_columns)], block[:, :random_columns]], axis=1)
        return Krylov(self.operator, block, random_columns)

    def _split_budgets(self, split: Deflated | None = None) -> dict[float, float]:
        """What the split may cost in T, for each order: over Σλ^q, an error in T is a relative one in the score."""
        return {q: SPLIT * self.aim * (1.0 if split is None else split.power_sum(q)) for q in self.sum_orders}

    def _split(self) -> tuple[Deflated, np.ndarray]:
        """Split off the Ritz vectors that cost little enough: what is then known, and their coefficients."""
        max_residual = 2 * SPLIT * self.aim if self.norm_orders else math.inf
        split, vectors = self.krylov.deflate(self._split_budgets(), max_residual)
        if any(q != 1 for q in self.sum_orders):  # Σλ^q is known roughly now
            split, vectors = self.krylov.deflate(self._split_budgets(split), max_residual)
        return split, vectors

    def _norms_are_narrow(self, split: Deflated) -> bool:
        """Whether the orders above 2 would be narrow enough, if the density is as estimated."""
        if not self.norm_orders:
            return True
        top = 1.1 * float(split.nodes.max(initial=0.0))
        spectrum = Quadrature(split, top, (), (0.5, 0.5), self.operator.error)
        return bool(len(split.ritz)) and spectrum.width(self.norm_orders) <= AIM * self.tol

    def _probes_needed(self, split: Deflated) -> float:
        """How many probes the tolerance takes, if the density is as estimated."""
        if split.trace <= 1e-14:
            return LEAST
        top = float(split.nodes.max(initial=0.0)) * 1.1
        if top <= 0:
            return LEAST
        shares = self._failure_shares()
        fixed = SPLIT / 2 + self.gap / 2
        counts = [
            split.needed(q, top, (AIM - fixed) * self.aim * split.power_sum(q), shares)
            for q in self.sum_orders
        ]
        return max([float(LEAST), *counts])

    def grow(self, more: int = 0) -> tuple[Deflated, np.ndarray]:
        """Grow the space while that saves more than it costs, and at least by `more` passes."""
        krylov, previous_costs = self.krylov, (math.inf, 0.0)
        max_dimension = self.max_dimension
        target_passes = max(6, krylov.passes + more)
        while True:
            while (
                krylov.passes < target_passes
                and not krylov.exhausted
                and krylov.dimension + krylov.width <= max_dimension
            ):
                krylov.extend()
                self._report(0.05 + 0.45 * min(1.0, krylov.passes / 24), f"pass {self.operator.passes}")
            if not krylov.dimension:
                krylov.extend()
            split, vectors = self._split()
            # Does the growth since the last check pay? It saves probes, STEPS passes of them, and costs columns.
            probing_cost = STEPS * (self.operator.overhead + self._probes_needed(split))
            growing_cost = krylov.passes * (self.operator.overhead + krylov.width)
            # Growth continues, too, while probes would cost twice all growth so far: the space may soon be invariant.
            pays = (
                previous_costs[0] - probing_cost > growing_cost - previous_costs[1]
                or probing_cost > 2 * growing_cost
            )
            previous_costs = probing_cost, growing_cost
            is_full = krylov.exhausted or krylov.dimension + krylov.width > max_dimension
            is_done = len(split.ritz) and not pays and self._norms_are_narrow(split)
            if is_full or self.operator.columns >= self.budget // 2 or is_done:
                return split, vectors
            target_passes = krylov.passes + max(2, krylov.passes // 8)

    # ------------------------------------------------------------------------------------------------------- the probes

    def run(self) -> Result:
        """Split, probe and bound; again until the tolerance holds or the budget is spent."""
        if not self.sum_orders and not self.norm_orders:
            return self._solve_order_two()
        split, coefficients = self._affordable_split(*self.grow())
        while True:
            result, advice = self._probe(split, coefficients)
            if result.met or advice == "stop":
                break
            self.splits, self.rung = self.splits + 1, 0
            split, coefficients = self._affordable_split(*self.grow(more=max(4, self.krylov.passes)))
        return self._with_costs(result)

    def _affordable_split(self, split: Deflated, vectors: np.ndarray) -> tuple[Deflated, np.ndarray]:
        """The split for a wider aim, where the tolerance would take more probes than can be paid for.

        An aim that cannot be met would split nothing off, and spend all on probes.
        """
        while self.aim < 0.25 and self._probes_needed(split) * STEPS > max(self._columns_left(), 0):
            self.aim *= 1.5
            split, vectors = self._split()
        return split, vectors

    def _with_costs(self, result: Result) -> Result:
        """The result with what was spent in its notes."""
        result.notes |= {
            "rank": len(result.spectrum.known.ritz),
            "probes": result.spectrum.probes,
            "passes": self.operator.passes,
            "products": self.operator.columns,
            "confidence": result.spectrum.confidence,
        }
        if self.operator.evaluations:
            result.notes["evaluations"] = self.operator.evaluations
        return result

    def _solve_order_two(self) -> Result:
        """The order 2 from ‖ρ‖_F alone; a user's matrix is probed for negative eigenvalues."""
        if self.tolerance > self.operator.error:
            batch = _Batch(self.operator, None, self._draw(LEAST))
            for _ in range(min(STEPS, self.operator.size)):
                batch.advance()
            self._refuse_negative([batch.runs()])
        empty = np.zeros(0)
        split = Deflated(self.operator.size, empty, empty, self.operator.squares, empty, empty)
        spectrum = Quadrature(split, 1.0, (), (0.5, 0.5), self.operator.error, "deterministic", 1.0)
        return self._with_costs(Result(spectrum, spectrum.width(self.orders), True))

    def _failure_probability(self) -> float:
        """The probability of failure allotted to this split and rung: over all of them, less than 1 − confidence."""
        return (1 - self.confidence) * FIRST**2 * (1 - FIRST) ** (self.splits + self.rung)

    def _failure_shares(self) -> tuple[float, float]:
        """The parts of it for the bound on F and for the statistical error; the rest is for the largest eigenvalue."""
        return 0.2 * self._failure_probability(), 0.76 * self._failure_probability()

    def _probe(self, split: Deflated, coefficients: np.ndarray) -> tuple[Result, str]:
        """Draw probes until the tolerance is met ("done"), the budget spent ("stop") or growth cheaper ("grow")."""
        basis = self.krylov.vectors(coefficients) if coefficients.shape[1] else None
        first_count = max(LEAST, math.ceil(min(self._probes_needed(split), self._columns_left() // STEPS)))
        batch = _Batch(self.operator, basis, self._draw(min(first_count, self._max_batch())))
        self._run_steps(batch, split)
        runs, steps = [batch.runs()], batch.steps
        del batch
        runs += self._run_probes(basis, first_count - runs[0].count, steps)
        while True:
            self._refuse_negative(runs)
            top = min(ceiling(runs, split.rest, 0.04 * self._failure_probability()), split.trace + 1e-12)
            error = self.operator.error + self._negative_error(runs, split.rest)
            spectrum = Quadrature(
                split,
                top,
                tuple(runs),
                self._failure_shares(),
                error,
                confidence=self.confidence,
                drift=self.operator.drift,
            )
            width = spectrum.width(self.orders)
            result = Result(spectrum, width, width <= self.tol)
            if result.met:
                return result, "done"
            self._report(0.6, f"half-width {width:.1e}, wanted {self.tol:.1e}")
            more = self._more_probes(spectrum)
            is_cheap = more * steps <= max(self.krylov.dimension, 24 * steps)
            # No number of probes makes the bounds of norms narrower.
            wants_growth = spectrum.width(self.norm_orders) > self.tol or not is_cheap
            if wants_growth and self._can_grow() and self._columns_left() > 2 * self.krylov.dimension:
                return result, "grow"
            # The rung that is high enough, or the highest that can be paid for.
            target = spectrum.probes + min(more, self._columns_left() // steps)
            rungs = [math.ceil(first_count * RUNG**j) for j in range(self.rung + 1, self.rung + 24)]
            affordable = [
                j for j, rung in enumerate(rungs) if rung <= spectrum.probes + self._columns_left() // steps
            ]
            if not affordable or not more:
                return result, "stop"
            rung_index = next((j for j in affordable if rungs[j] >= target), affordable[-1])
            self.rung += rung_index + 1
            runs += self._run_probes(basis, rungs[rung_index] - spectrum.probes, steps)

    def _run_probes(self, basis: Any, count: int, steps: int) -> list[Runs]:
        """Run `count` more probes, in batches that memory can hold."""
        runs = []
        while count > 0:
            batch = _Batch(self.operator, basis, self._draw(min(count, self._max_batch())))
            for _ in range(steps):
                batch.advance()
            runs.append(batch.runs())
            count -= batch.count
        return runs

    def _draw(self, count: int) -> Any:
        return gaussian(self.generator, self.operator.size, count, self.operator.like)

    def _max_batch(self) -> int:
        """How many probes memory can hold at a time, at the usual number of steps and with what a step takes."""
        return max(2, self.probe_vectors // (STEPS + 6))

    def _columns_left(self) -> int:
        return self.budget - self.operator.columns

    def _can_grow(self) -> bool:
        krylov = self.krylov
        return not krylov.exhausted and krylov.dimension + 2 * krylov.width <= self.max_dimension

    def _run_steps(self, batch: _Batch, split: Deflated) -> None:
        """Take Lanczos steps until the brackets of the probes are narrow relative to the tolerance."""
        while True:
            batch.advance()
            self._report(0.5 + 0.4 * min(1.0, batch.steps / 12), f"{batch.count} probes, step {batch.steps}")
            if batch.steps < STEPS_LEAST:
                continue
            is_full = batch.count * (batch.steps + 6) > self.probe_vectors and batch.steps >= STEPS
            max_steps = min(STEPS_MOST, split.rest)
            if batch.steps >= max_steps or batch.dead or is_full or self._columns_left() < batch.count:
                return
            runs = batch.runs()
            spectrum = Quadrature(split, max(runs.largest, 1e-300), (runs,), (0.5, 0.5))
            gaps = [
                float(np.mean(high - low)) / split.power_sum(q)
                for q in self.sum_orders
                for low, high, _ in spectrum.brackets(q, np.zeros(3))
            ]
            if max(gaps, default=0.0) <= self.gap * self.aim:
                return

    def _negative_error(self, runs: list[Runs], size: int) -> float:
        """Bound on the norm of negative eigenvalues within the tolerance, where it exceeds the known rounding error.

        None is taken to be much below the smallest Ritz value: that is an assumption about a user's matrix.
        """
        lowest = -min(run.smallest for run in runs)
        return 1.5 * math.sqrt(size) * lowest if lowest > self.operator.error else 0.0

    def _refuse_negative(self, runs: list[Runs]) -> None:
        lowest = min(run.smallest for run in runs)
        if lowest < -max(self.tolerance, 1e-12):
            raise IndefiniteError(
                "the similarity matrix is not positive semidefinite: with trace 1, it has an eigenvalue of "
                f"{lowest:.4g} or below (expected ≥ 0). Use a positive semidefinite kernel, or {mending('project')} to "
                "drop negative eigenvalues and have their mass recorded, with method='exact'.",
                option="project",
            )

    def _more_probes(self, spectrum: Quadrature) -> float:
        """How many more probes meet the tolerance: the statistical part shrinks with the root of their number."""
        more = 0.0
        for q in self.sum_orders:
            width = spectrum.width([q])
            fixed = (SPLIT / 2 + self.gap / 2) * self.tol
            target = AIM * self.tol - fixed
            if width > self.tol:
                more = max(more, spectrum.probes * ((max(width - fixed, 0.0) / target) ** 2 - 1))
        return float(math.ceil(more))

    def _report(self, fraction: float, note: str) -> None:
        if self.report is not None:
            self.report(fraction, note)


class _Batch:
    """Lanczos runs in one batch on A = PρP, P the projection off `basis`; each with full reorthogonalisation."""

    def __init__(self, operator: Operator, basis: Any, start: Any):
        self._operator, self._basis = operator, basis
        start = self._project(start)
        self._mass = self._column_sums(start * start)
        self._vectors = [start / self._as_row(np.sqrt(np.maximum(self._mass, 1e-300)), start)]
        self._diagonal: list[np.ndarray] = []
        self._off_diagonal: list[np.ndarray] = []
        self.dead = False

    @property
    def count(self) -> int:
        return len(self._mass)

    @property
    def steps(self) -> int:
        return len(self._diagonal)

    def _project(self, block: Any) -> Any:
        if self._basis is None:
            return block
        for _ in range(2):
            block = block - self._basis @ (transposed(self._basis) @ block)
        return block

    @staticmethod
    def _column_sums(block: Any) -> np.ndarray:
        return to_host(namespace(block).sum(block, axis=0))

    @staticmethod
    def _as_row(values: np.ndarray, like: Any) -> Any:
        return move(values[None, :], like)

    def advance(self) -> None:
        """One step of all runs: one pass over the matrix."""
        last = self._vectors[-1]
        image = self._project(self._operator.apply(last))
        diagonal = np.zeros(self.count)
        for _ in range(2):
            for i in range(len(self._vectors) - 1, -1, -1):
                overlap = self._column_sums(self._vectors[i] * image)
                image = image - self._vectors[i] * self._as_row(overlap, image)
                if i == len(self._vectors) - 1:
                    diagonal += overlap
        length = np.sqrt(np.maximum(self._column_sums(image * image), 0.0))
        # Shorter than rounding: the Krylov space of the run is invariant.
        scale = np.maximum(np.abs(diagonal), max((float(np.max(b)) for b in self._off_diagonal), default=0.0))
        length = np.where(length > 1e-13 * np.maximum(scale, 1e-300), length, 0.0)
        self._diagonal.append(diagonal)
        self._off_diagonal.append(length)
        self.dead = bool((length == 0).all())
        self._vectors.append(
            image * self._as_row(np.where(length > 0, 1 / np.maximum(length, 1e-300), 0.0), image)
        )

    def runs(self) -> Runs:
        """Their tridiagonal matrices."""
        return Runs(np.stack(self._diagonal, axis=1), np.stack(self._off_diagonal, axis=1), self._mass)
