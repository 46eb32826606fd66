"""The low-rank solver: a Cholesky factor grows until its bounds meet the tolerance, or until it clearly will not.

The factorisation is in `cholesky`, the bounds are in `spectrum.lowrank`. After every few columns the bounds are
computed; how fast they narrow tells how many columns more are needed. Flat spectra have no low rank, which shows after
some dozen columns: then it stops, and what was found serves as a start for other methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from vendimeter.similarity import Features, Matrix, Similarity
from vendimeter.solvers.cholesky import Cholesky
from vendimeter.solvers.options import Solver
from vendimeter.spectrum import LowRank

__all__ = ["Run", "solve"]

FIRST_RANKS: tuple[int, ...] = (16, 32, 48, 64)
STALL_RANK = 64  # no verdict before this rank
# The residual may fall this much faster than is extrapolated: a factor given up too early is lost.
GENEROUS = 1.5
# Within this factor of the tolerance, the norm of the residual matrix may be all that is missing. It is computed where
# a row of what is multiplied has no more than `THICK` entries for each column of the factor.
NEAR, THICK = 2.0, 4


@dataclass(frozen=True)
class Run:
    """A factor that has grown, and why it stopped.

    Attributes
    ----------
    factor : Cholesky
        As it is now; it may grow on.
    spectrum : LowRank
        What is known by it.
    met : bool
        Whether the tolerance was met.
    stalled : bool
        Whether it was given up because the way to the tolerance was too long.
    width : float
        The widest relative half-width of the bounds, over all orders asked for.
    history : list of tuple
        (rank, residual trace, width) at every checkpoint.
    """

    factor: Cholesky
    spectrum: LowRank
    met: bool
    stalled: bool
    width: float
    history: list[tuple[int, float, float]] = field(repr=False)


def solve(
    similarity: Similarity,
    weights: np.ndarray | None,
    solver: Solver,
    *,
    orders: Sequence[float],
    most: int,
    rng: int = 0,
    worthwhile: int | None = None,
    names: np.ndarray | None = None,
    report: Callable[[float, str], None] | None = None,
) -> Run:
    """Let a factor grow until the bounds of every order are narrow enough.

    Parameters
    ----------
    similarity, weights, rng, names
        As for `Cholesky`.
    solver : Solver
        The relative half-width that will do, `tol`, and how columns are picked, `pivots`.
    orders : sequence of float
        The orders asked for, all above 0.
    most : int
        The largest rank.
    worthwhile : int, optional
        The largest rank that is still cheaper than the alternative. When more would be needed, as far as can be seen,
        it stops ("stalled"). None goes on to `most`.
    report : callable, optional
        Called with how much is done (0 to 1) and a note, at every checkpoint.
    """
    tol = solver.aim
    factor = Cholesky(similarity, weights, pivots=solver.pivots, rng=rng, capacity=most, names=names)
    history: list[tuple[int, float, float]] = []
    rank = FIRST_RANKS[0]
    while True:
        factor.grow(rank)
        spectrum = factor.spectrum()
        width = spectrum.width(orders)
        if tol < width <= NEAR * tol and _norm_is_cheap(factor) and factor.tighten():
            spectrum = factor.spectrum()
            width = spectrum.width(orders)
        history.append((factor.rank, spectrum.residual, width))
        if report is not None:
            report(_progress(history, tol), f"rank {factor.rank}, half-width {width:.1e}")
        met, ended = width <= tol, factor.exhausted or factor.rank >= factor.capacity
        stalled = not met and not ended and worthwhile is not None and _stalls(history, tol, worthwhile)
        if met or ended:
            factor.spot_check()
        if met or ended or stalled:
            return Run(factor, spectrum, met, stalled, width, history)
        rank = _next_rank(history, tol)


def _norm_is_cheap(factor: Cholesky) -> bool:
    """Whether `tighten` costs little compared with the factor."""
    similarity = factor.similarity
    if isinstance(similarity, Matrix):
        entries = similarity.data.nnz / similarity.n if similarity.sparse else similarity.n
        return entries <= THICK * factor.rank
    return isinstance(similarity, Features) and similarity.width <= THICK * factor.rank


def _stalls(history: list[tuple[int, float, float]], tol: float, worthwhile: int) -> bool:
    """Whether the tolerance seems out of reach of the rank that is worthwhile.

    The residual is taken to fall like exp(−c r^β), as smooth kernels have it, with β from the last two doublings of
    the rank; a power law is the limit of β → 0. The width falls with it.
    """
    rank, _, width = history[-1]
    if rank < STALL_RANK:
        return False
    ranks, residuals = (np.log([point[i] for point in history]) for i in (0, 1))
    # At the rank, at a half and at a quarter of it.
    log_residuals = np.interp(ranks[-1] - np.log([1, 2, 4]), ranks, residuals)
    last_slope, previous_slope = np.diff(-log_residuals[::-1])[::-1] / math.log(2)
    if last_slope <= 0:
        return True
    beta = min(max(math.log2(last_slope / previous_slope), 0.0), 1.0) if previous_slope > 0 else 1.0
    # At the present rank; `last_slope` is that of the last doubling.
    exponent = GENEROUS * float(last_slope) * 2 ** (beta / 2)
    return _growth(width / tol, exponent, beta) > worthwhile / rank


def _growth(ratio: float, exponent: float, beta: float = 0.0) -> float:
    """By what factor the rank must grow for the width to fall by `ratio`, its exponent growing with rank^beta."""
    if exponent <= 0:
        return math.inf
    steps = math.log(ratio) / exponent
    if beta > 0:
        steps = math.log1p(beta * steps) / beta
    return math.exp(min(steps, 700.0))


def _next_rank(history: list[tuple[int, float, float]], tol: float) -> int:
    """The next checkpoint: half as far again or a third, alternately, or sooner if that will do."""
    rank, _, width = history[-1]
    checkpoints = [*FIRST_RANKS]
    while checkpoints[-1] <= rank:
        checkpoints.append(2 * checkpoints[-2])
    next_checkpoint = next(step for step in checkpoints if step > rank)
    if len(history) < 2:
        return next_checkpoint
    previous_rank, _, previous_width = history[-2]
    exponent = math.log(previous_width / width) / math.log(rank / previous_rank)
    needed = math.ceil(min(1.02 * rank * _growth(width / tol, exponent), next_checkpoint))
    return min(next_checkpoint, max(needed, rank + max(4, rank // 32)))


def _progress(history: list[tuple[int, float, float]], tol: float) -> float:
    """The progress of the width towards the tolerance, from 0 to 1 on a logarithmic scale."""
    first, latest = history[0][2], history[-1][2]
    if latest <= tol:
        return 1.0
    return min(max(math.log(first / latest) / math.log(first / tol), 0.0), 1.0) if first > latest else 0.0
