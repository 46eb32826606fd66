"""The score of a similarity that is at hand, by the way that the planner picks."""

from __future__ import annotations

import numpy as np

from vendimeter._matrix_checks import Policy
from vendimeter._run import problem_of, run
from vendimeter._score import to_score
from vendimeter.results import Score
from vendimeter.similarity import Similarity

__all__ = ["scored"]


def scored(
    similarity: Similarity,
    weights: np.ndarray | None,
    q: float,
    n: int,
    *,
    tol: float | None = None,
    rng: int = 0,
) -> Score:
    """The score of order q as of `vendimeter.score`; `weights` are probabilities, or None for uniform ones."""
    problem = problem_of(similarity, weights, [q], Policy(), "auto", "auto", tol, 0.95, None, "random", rng)
    chosen, solution = run(problem)
    return to_score(solution, chosen, Policy(), q, n, similarity.kernel)
