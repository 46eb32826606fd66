"""The family of the Vendi Score: with quality, truncated, given prompts, and the information that prompts hold.

The order q of the score itself is another member each: ``vendimeter.score(samples, q=2)`` is the RKE score
1/‖K/n‖_F² of Jalali, Li and Farnia (NeurIPS 2023), and all orders are in ``vendimeter.profile``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.analysis._family_pairs import (
    Conditional,
    Information,
    conditional,
    given_weights,
    information,
    named,
)
from vendimeter.analysis._greedy_rules import qualities
from vendimeter.analysis._scored import scored
from vendimeter.errors import InputError, TooLargeError
from vendimeter.intake import collected, measured
from vendimeter.options import check_rng, whole_number
from vendimeter.results.base import Figure
from vendimeter.results.score import Score
from vendimeter.scoring import to_score
from vendimeter.solvers.exact import Solution
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import EXACT_SIDE, Problem, choose, prepared
from vendimeter.solvers.solve import run
from vendimeter.spectrum import UNIT, Eigenvalues, parse_order
from vendimeter.spectrum.entropy import truncated as truncated_values

__all__ = [
    "Conditional",
    "Information",
    "QualityWeighted",
    "conditional",
    "information",
    "quality_weighted",
    "truncated",
]


@dataclass(frozen=True, repr=False, eq=False)
class QualityWeighted(Figure):
    """The quality-weighted Vendi Score; a float.

    Attributes
    ----------
    value : float
        The mean quality times the score.
    quality : float
        The mean quality, under the weights.
    score : Score
        The Vendi Score.
    bounds : tuple of float
        (low, high), as of the score and at its level; NaN where it claims nothing.
    """

    value: float
    quality: float
    score: Score
    bounds: tuple[float, float]


def quality_weighted(
    samples: Any,
    quality: Any,
    kernel: Any = "cosine",
    *,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    tol: float | None = None,
    rng: int = 0,
) -> QualityWeighted:
    """The quality-weighted Vendi Score: (mean quality) · VS_q, for collections that are to be both good and diverse.

    Parameters
    ----------
    samples : array, sparse array, list, table or Collection
        The items, as for `vendimeter.score`.
    quality : array of shape (n,), or name of a column
        How good each item is, from 0 up.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    q : float or str
        The order of the score.
    weights, counts : array of shape (n,), optional
        Probabilities of the items, or how often each occurs: of the score and of the mean.
    tol, rng
        As for `vendimeter.score`.

    Returns
    -------
    QualityWeighted
        A float, with its two factors.

    Notes
    -----
    It is in the units of quality: scales that differ by a factor give figures that differ by it. `vendimeter.select`
    chooses items by it.

    References
    ----------
    Nguyen and Dieng: Quality-weighted Vendi Scores and their application to diverse experimental design, ICML 2024.

    Examples
    --------
    >>> import vendimeter as vm
    >>> vm.family.quality_weighted(["a", "a", "b", "b"], [1.0, 0.5, 0.0, 0.5], "match")
    QualityWeighted(1, quality=0.5, score=2, bounds=(1, 1))
    """
    return _quality_weighted(samples, named(samples, quality), kernel, q, weights, counts, tol, rng)


def _with_quality(
    samples: Any, quality: Any, kernel: Any, q: Any, weights: Any, counts: Any, tol: Any, rng: Any
) -> QualityWeighted:
    order = parse_order(q)
    similarity, shares, n = measured(samples, kernel, weights, counts, rng)
    values = qualities(samples, quality, similarity.n)
    if values is None:
        raise InputError("quality is None; expected numbers from 0 up, one an item.")
    mean = math.fsum(shares * values)
    score = scored(
        similarity, given_weights(shares, weights, counts), order, n, solver=Solver(tol), rng=check_rng(rng)
    )
    low, high = score.bounds
    slack = 8 * UNIT
    return QualityWeighted(mean * score, mean, score, (mean * low * (1 - slack), mean * high * (1 + slack)))


_with_quality.__name__ = "quality_weighted"  # what messages call it
_quality_weighted = collected(_with_quality)


@collected
def truncated(
    samples: Any,
    t: int,
    kernel: Any = "cosine",
    *,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    rng: int = 0,
) -> Score:
    """The t-truncated Vendi Score: that of the t largest eigenvalues, over which the mass of all others is spread.

    λ̂ᵢ = λᵢ + (1 − Σ_{j≤t} λⱼ)/t for i ≤ t. The Vendi Score itself grows with the number of samples for as long as new
    ones show something new; the truncated one comes to rest with samples in proportion to t.

    Parameters
    ----------
    samples, kernel, weights, counts, rng
        As for `vendimeter.score`.
    t : int
        How many eigenvalues to keep. With as many as there are it is the score itself.
    q : float or str
        The order of the score.

    Returns
    -------
    Score
        With bounds: the truncation brings eigenvalues no further apart, so that what rounding does to them all is a
        bound for it, too. Its `spectrum` has the t eigenvalues.

    Notes
    -----
    It lies between 1 and t, so that scores of different t cannot be compared, and those of collections with one t can,
    whatever their sizes. The order 0 is the number of those t that are not 0. All eigenvalues are computed, of a matrix
    of up to 8,192 rows or features (or larger where the planner of `vendimeter.score` takes them all);
    `vendimeter.rarefy` shows the truncated score against the number of samples.

    References
    ----------
    Ospanov and Farnia: Do Vendi scores converge with finite samples? Truncated Vendi Score for finite-sample
    convergence guarantees, UAI 2025.

    Examples
    --------
    >>> import vendimeter as vm
    >>> vm.family.truncated(["a", "a", "b", "c"], 2, "match")  # ½, ¼, ¼ become 0.625, 0.375
    Score(1.93782 ± ..., q=1, n=4, method='gram', level='deterministic')
    """
    kept, order = whole_number(t, "t"), parse_order(q)
    similarity, shares, n = measured(samples, kernel, weights, counts, rng)
    orders = [1.0]  # for which no norm alone will do
    problem = Problem(similarity, given_weights(shares, weights, counts), orders, rng=check_rng(rng))
    _refuse_too_large(problem)
    plan, solution = run(problem)
    spectrum = solution.spectrum
    assert isinstance(spectrum, Eigenvalues)
    values = spectrum.eigenvalues
    # x − mean(x) + 1/t of the t largest is no further from the truth than these are; dividing by the sum, which is off
    # by √m times the error, adds to that.
    error = spectrum.error * (1 + math.sqrt(len(values)) * float(np.linalg.norm(values))) + 4 * UNIT
    short = Eigenvalues(truncated_values(values, kept), error, spectrum.level, spectrum.confidence)
    notes = solution.notes | {"truncated": kept, "eigenvalues": len(values)}
    return to_score(Solution(short, solution.method, notes), plan, order, n, similarity.kernel)


def _refuse_too_large(problem: Problem) -> None:
    chosen = choose(prepared(problem))
    if chosen.method != "exact":
        raise TooLargeError(
            f"the truncated score needs the eigenvalues of all {problem.similarity.n:,} items, and those of a matrix "
            f"beyond {EXACT_SIDE:,} rows and features are not computed; expected fewer. Take a random sample, for "
            "which the truncated score is made, or let vendimeter.kernels.RandomFeatures stand in for the kernel."
        )
