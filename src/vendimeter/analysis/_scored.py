"""The score of a similarity that is at hand, by the way that the planner picks."""

from __future__ import annotations

import numpy as np

from vendimeter.results.score import Score
from vendimeter.scoring import to_score
from vendimeter.similarity import Similarity
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import Problem
from vendimeter.solvers.solve import run

__all__ = ["scored"]

AUTO = Solver()


def scored(
    similarity: Similarity,
    weights: np.ndarray | None,
    q: float,
    n: int,
    *,
    solver: Solver = AUTO,
    rng: int = 0,
) -> Score:
    """The score of order q as of `vendimeter.score`; `weights` are probabilities, or None for uniform ones."""
    chosen, solution = run(Problem(similarity, weights, [q], solver, rng))
    return to_score(solution, chosen, q, n, similarity.kernel)
