"""Deflation, control variates and Lanczos quadrature: the score from products with ρ alone.

The mathematics is in `spectrum.quadrature`; here is how the work is spent. A block Krylov space grows pass by pass; the
density it has seen says how many probes would be needed if it ended there, and it grows while that saves more than it
costs. All probes then run side by side, so that every pass over the matrix serves all of them, for as many steps as
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

__all__ = ["Found", "solve"]

LEAST = 12  # probes
STEPS_LEAST, STEPS, STEPS_MOST = 5, 10, 48  # of a probe: at least, usually, at most
AIM = 0.9  # of the tolerance: what probes are planned for, so that the first look usually suffices
SPLIT = 0.08  # of the tolerance: what the split may cost
GAP, WIDE_GAP = (
    0.2,
    0.4,
)  # of the tolerance: how far brackets may be apart, where columns and where passes cost
RUNG = 1.5  # how many times more probes the next rung of the ladder has
FIRST = 0.85  # the share in the probability of failure of the first rung, of the first split; then of what is left


@dataclass
class Found:
    """What the solver found, and what it spent."""

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
) -> Found:
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
        self.asked = list(orders)
        self.sums = [q for q in orders if q < 2]
        self.norms = [q for q in orders if q > 2 or (q == 2 and operator.squares is None)]
        # Fewer steps with more probes, where a pass costs more than its columns.
        self.gap = GAP + (WIDE_GAP - GAP) * operator.overhead / (operator.overhead + 16)
        self.generator = generator(rng, "lanczos")
        self.budget, self.tolerance, self.report = budget, tolerance, report
        # A vector of length n takes 8n bytes. The space takes up to three times its dimension while it grows, and half
        # as much again for what is split off; the rest is for probes.
        vectors = max(48, int(min(most_bytes / (8 * operator.size), 1e6)))
        self.dimensions = min(vectors // 5, max(operator.size // 2, min(operator.size, 256)))
        self.vectors = vectors // 3
        self.splits = self.rung = 0
        self.krylov = self._begin(start)

    # ------------------------------------------------------------------------------------------------ the Krylov space

    def _begin(self, start: Any) -> Krylov:
        size = self.operator.size
        # As wide as the tolerance wants it, and wide enough that a pass is worth its overhead.
        width = max(5.0 * (1e-2 / self.tol) ** 0.6, self.operator.overhead)
        width = int(min(width, 128, max(4, size // 8), max(4, self.dimensions // 6)))
        block = gaussian(self.generator, size, width, self.operator.like)
        random = width
        if start is not None and int(start.shape[1]):
            random = max(4, width // 2)
            block = concat([start[:, : max(1, width - random)], block[:, :random]], axis=1)
        return Krylov(self.operator, block, random)

    def _budgets(self, known: Deflated | None = None) -> dict[float, float]:
        """What the split may cost in T, for each order: an error in T is one of the score when divided by Σλ^q."""
        return {q: SPLIT * self.aim * (1.0 if known is None else known.power_sum(q)) for q in self.sums}

    def _split(self) -> tuple[Deflated, np.ndarray]:
        apart = 2 * SPLIT * self.aim if self.norms else math.inf
        known, vectors = self.krylov.deflate(self._budgets(), apart)
        if any(q != 1 for q in self.sums):  # Σλ^q is known roughly now
            known, vectors = self.krylov.deflate(self._budgets(known), apart)
        return known, vectors

    def _sharp(self, known: Deflated) -> bool:
        """Whether the orders above 2 would be narrow enough, if the density is as it was seen."""
        if not self.norms:
            return True
        top = 1.1 * float(known.nodes.max(initial=0.0))
        seen = Quadrature(known, top, (), (0.5, 0.5), self.operator.error)
        return bool(len(known.ritz)) and seen.width(self.norms) <= AIM * self.tol

    def _needed(self, known: Deflated) -> float:
        """How many probes the density calls for."""
        if known.trace <= 1e-14:
            return LEAST
        top = float(known.nodes.max(initial=0.0)) * 1.1
        if top <= 0:
            return LEAST
        shares = self._shares()
        fixed = SPLIT / 2 + self.gap / 2
        counts = [
            known.needed(q, top, (AIM - fixed) * self.aim * known.power_sum(q), shares) for q in self.sums
        ]
        return max([float(LEAST), *counts])

    def grow(self, more: int = 0) -> tuple[Deflated, np.ndarray]:
        """Grow the space while that saves more than it costs, and at least by `more` passes."""
        krylov, before = self.krylov, (math.inf, 0.0)
        room = self.dimensions
        goal = max(6, krylov.passes + more)
        while True:
            while krylov.passes < goal and not krylov.exhausted and krylov.dimension + krylov.width <= room:
                krylov.extend()
                self._say(0.05 + 0.45 * min(1.0, krylov.passes / 24), f"pass {self.operator.passes}")
            if not krylov.dimension:
                krylov.extend()
            known, vectors = self._split()
            # Does the growth since the last look pay? It saves probes, STEPS passes of them, and costs columns.
            probing = STEPS * (self.operator.overhead + self._needed(known))
            growing = krylov.passes * (self.operator.overhead + krylov.width)
            # (And while probes would cost twice as much as all growth so far: a rank may be near that ends it all.)
            pays = before[0] - probing > growing - before[1] or probing > 2 * growing
            before = probing, growing
            full = krylov.exhausted or krylov.dimension + krylov.width > room
            done = len(known.ritz) and not pays and self._sharp(known)
            if full or self.operator.columns >= self.budget // 2 or done:
                return known, vectors
            goal = krylov.passes + max(2, krylov.passes // 8)

    # ------------------------------------------------------------------------------------------------------- the probes

    def run(self) -> Found:
        """Split, probe, look; again until the tolerance holds or the budget is spent."""
        if not self.sums and not self.norms:
            return self._squares_only()
        known, coefficients = self._affordable(*self.grow())
        while True:
            found, advice = self._probe(known, coefficients)
            if found.met or advice == "stop":
                break
            self.splits, self.rung = self.splits + 1, 0
            known, coefficients = self._affordable(*self.grow(more=max(4, self.krylov.passes)))
        return self._told(found)

    def _affordable(self, known: Deflated, vectors: np.ndarray) -> tuple[Deflated, np.ndarray]:
        """The split for a wider aim, where the tolerance would take more probes than can be paid for.

        An aim that cannot be met would split nothing off, and spend all on probes.
        """
        while self.aim < 0.25 and self._needed(known) * STEPS > max(self._left(), 0):
            self.aim *= 1.5
            known, vectors = self._split()
        return known, vectors

    def _told(self, found: Found) -> Found:
        """With what was spent."""
        found.notes |= {
            "rank": len(found.spectrum.known.ritz),
            "probes": found.spectrum.probes,
            "passes": self.operator.passes,
            "products": self.operator.columns,
            "confidence": found.spectrum.confidence,
        }
        if self.operator.evaluations:
            found.notes["evaluations"] = self.operator.evaluations
        return found

    def _squares_only(self) -> Found:
        """The order 2 needs ‖ρ‖_F and nothing else; of a user's matrix, a look at whether it is one."""
        if self.tolerance > self.operator.error:
            batch = _Batch(self.operator, None, self._draw(LEAST))
            for _ in range(min(STEPS, self.operator.size)):
                batch.advance()
            self._refuse_negative([batch.runs()])
        none = np.zeros(0)
        known = Deflated(self.operator.size, none, none, self.operator.squares, none, none)
        spectrum = Quadrature(known, 1.0, (), (0.5, 0.5), self.operator.error, "deterministic", 1.0)
        return self._told(Found(spectrum, spectrum.width(self.asked), True))

    def _failure(self) -> float:
        """The share of this split and rung in the probability of failure: all of them add up to less than it."""
        return (1 - self.confidence) * FIRST**2 * (1 - FIRST) ** (self.splits + self.rung)

    def _shares(self) -> tuple[float, float]:
        """Of the bound on F and of the statistical error; the rest is for the largest eigenvalue."""
        return 0.2 * self._failure(), 0.76 * self._failure()

    def _probe(self, known: Deflated, coefficients: np.ndarray) -> tuple[Found, str]:
        basis = self.krylov.vectors(coefficients) if coefficients.shape[1] else None
        first = max(LEAST, math.ceil(min(self._needed(known), self._left() // STEPS)))
        batch = _Batch(self.operator, basis, self._draw(min(first, self._room())))
        self._advance(batch, known)
        runs, steps = [batch.runs()], batch.steps
        del batch
        runs += self._run(basis, first - runs[0].count, steps)
        while True:
            self._refuse_negative(runs)
            top = min(ceiling(runs, known.rest, 0.04 * self._failure()), known.trace + 1e-12)
            error = self.operator.error + self._negative(runs, known.rest)
            spectrum = Quadrature(
                known,
                top,
                tuple(runs),
                self._shares(),
                error,
                confidence=self.confidence,
                drift=self.operator.drift,
            )
            width = spectrum.width(self.asked)
            found = Found(spectrum, width, width <= self.tol)
            if found.met:
                return found, "done"
            self._say(0.6, f"half-width {width:.1e}, wanted {self.tol:.1e}")
            wanted = self._more(spectrum)
            cheap = wanted * steps <= max(self.krylov.dimension, 24 * steps)
            blunt = spectrum.width(self.norms) > self.tol  # what no number of probes will mend
            if (blunt or not cheap) and self._can_grow() and self._left() > 2 * self.krylov.dimension:
                return found, "grow"
            # The rung that is high enough, or the highest that can be paid for.
            most = spectrum.probes + min(wanted, self._left() // steps)
            rungs = [math.ceil(first * RUNG**j) for j in range(self.rung + 1, self.rung + 24)]
            paid = [j for j, rung in enumerate(rungs) if rung <= spectrum.probes + self._left() // steps]
            if not paid or not wanted:
                return found, "stop"
            step = next((j for j in paid if rungs[j] >= most), paid[-1])
            self.rung += step + 1
            runs += self._run(basis, rungs[step] - spectrum.probes, steps)

    def _run(self, basis: Any, count: int, steps: int) -> list[Runs]:
        """So many probes more, in batches that memory can hold."""
        runs = []
        while count > 0:
            batch = _Batch(self.operator, basis, self._draw(min(count, self._room())))
            for _ in range(steps):
                batch.advance()
            runs.append(batch.runs())
            count -= batch.count
        return runs

    def _draw(self, count: int) -> Any:
        return gaussian(self.generator, self.operator.size, count, self.operator.like)

    def _room(self) -> int:
        """How many probes memory can hold at a time, at the usual number of steps and with what a step takes."""
        return max(2, self.vectors // (STEPS + 6))

    def _left(self) -> int:
        return self.budget - self.operator.columns

    def _can_grow(self) -> bool:
        krylov = self.krylov
        return not krylov.exhausted and krylov.dimension + 2 * krylov.width <= self.dimensions

    def _advance(self, batch: _Batch, known: Deflated) -> None:
        """Lanczos steps until the brackets of the probes are near each other, beside the tolerance."""
        while True:
            batch.advance()
            self._say(0.5 + 0.4 * min(1.0, batch.steps / 12), f"{batch.count} probes, step {batch.steps}")
            if batch.steps < STEPS_LEAST:
                continue
            full = batch.count * (batch.steps + 6) > self.vectors and batch.steps >= STEPS
            most = min(STEPS_MOST, known.rest)
            if batch.steps >= most or batch.dead or full or self._left() < batch.count:
                return
            runs = batch.runs()
            probe = Quadrature(known, max(runs.largest, 1e-300), (runs,), (0.5, 0.5))
            apart = [
                float(np.mean(high - low)) / known.power_sum(q)
                for q in self.sums
                for low, high, _ in probe._each(q, np.zeros(3))
            ]
            if max(apart, default=0.0) <= self.gap * self.aim:
                return

    def _negative(self, runs: list[Runs], size: int) -> float:
        """What negative eigenvalues within the tolerance come to, beyond what rounding is known to do.

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

    def _more(self, spectrum: Quadrature) -> float:
        """How many probes more would do: the statistical part shrinks with the root of their number."""
        wanted = 0.0
        for q in self.sums:
            now = spectrum.width([q])
            fixed = (SPLIT / 2 + self.gap / 2) * self.tol
            target = AIM * self.tol - fixed
            if now > self.tol:
                wanted = max(wanted, spectrum.probes * ((max(now - fixed, 0.0) / target) ** 2 - 1))
        return float(math.ceil(wanted))

    def _say(self, fraction: float, note: str) -> None:
        if self.report is not None:
            self.report(fraction, note)


class _Batch:
    """Lanczos runs side by side on A = PρP, P the projection off `basis`; each with full reorthogonalisation."""

    def __init__(self, operator: Operator, basis: Any, start: Any):
        self._operator, self._basis = operator, basis
        start = self._projected(start)
        self._mass = self._sums(start * start)
        self._vectors = [start / self._row(np.sqrt(np.maximum(self._mass, 1e-300)), start)]
        self._diagonal: list[np.ndarray] = []
        self._beside: list[np.ndarray] = []
        self.dead = False

    @property
    def count(self) -> int:
        return len(self._mass)

    @property
    def steps(self) -> int:
        return len(self._diagonal)

    def _projected(self, block: Any) -> Any:
        if self._basis is None:
            return block
        for _ in range(2):
            block = block - self._basis @ (transposed(self._basis) @ block)
        return block

    @staticmethod
    def _sums(block: Any) -> np.ndarray:
        return to_host(namespace(block).sum(block, axis=0))

    @staticmethod
    def _row(values: np.ndarray, like: Any) -> Any:
        return move(values[None, :], like)

    def advance(self) -> None:
        """One step of all runs: one pass over the matrix."""
        last = self._vectors[-1]
        image = self._projected(self._operator.apply(last))
        own = np.zeros(self.count)
        for again in (False, True):
            for i in range(len(self._vectors) - 1, -1, -1):
                part = self._sums(self._vectors[i] * image)
                image = image - self._vectors[i] * self._row(part, image)
                if i == len(self._vectors) - 1:
                    own += part
            if again:
                break
        length = np.sqrt(np.maximum(self._sums(image * image), 0.0))
        # Shorter than rounding: the run has seen all there is.
        scale = np.maximum(np.abs(own), max((float(np.max(b)) for b in self._beside), default=0.0))
        length = np.where(length > 1e-13 * np.maximum(scale, 1e-300), length, 0.0)
        self._diagonal.append(own)
        self._beside.append(length)
        self.dead = bool((length == 0).all())
        self._vectors.append(
            image * self._row(np.where(length > 0, 1 / np.maximum(length, 1e-300), 0.0), image)
        )

    def runs(self) -> Runs:
        """Their tridiagonal matrices."""
        return Runs(np.stack(self._diagonal, axis=1), np.stack(self._beside, axis=1), self._mass)
