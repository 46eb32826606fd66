"""The family of the Vendi Score: quality-weighted, truncated, conditional on prompts, and the information of prompts.

The order q of the score itself is another member each: ``vendimeter.score(samples, q=2)`` is the RKE score
1/‖K/n‖_F² of Jalali, Li and Farnia (NeurIPS 2023), and all orders are in ``vendimeter.profile``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vendimeter.analysis.selection.rules import qualities
from vendimeter.data import frames
from vendimeter.data.arrays import refuse_set
from vendimeter.data.collection import Collection
from vendimeter.data.devices import wide_mode
from vendimeter.data.tables import check_alignment
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError, TooLargeError
from vendimeter.kernels import On
from vendimeter.kernels.base import multiply
from vendimeter.messages import about
from vendimeter.options import COSINE, SEED, whole_number
from vendimeter.results.base import Figure
from vendimeter.results.score import Score, scored, to_score
from vendimeter.similarity import Pairwise, Similarity
from vendimeter.solvers.exact import Solution
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import EXACT_SIDE, Plan, choose, prepared
from vendimeter.solvers.solve import run
from vendimeter.spectrum import UNIT, Eigenvalues, Level, parse_order
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


# ----------------------------------------------------------------------------------------- conditional on what is given

LEVELS: tuple[Level, ...] = ("deterministic", "probabilistic", "estimated", "none")  # from strong to weak


@dataclass(frozen=True, repr=False, eq=False)
class Conditional(Figure):
    """The diversity of samples apart from that of what they were given; a float.

    Attributes
    ----------
    value : float
        The score of pairs over that of what was given.
    bounds : tuple of float
        (low, high), from those of the two scores.
    level : str
        What is claimed of the bounds, as of a `Score`: the weaker claim of the two.
    confidence : float
        The probability with which both hold; NaN where nothing is claimed.
    joint : Score
        Of the pairs of a sample and what it was given, by the product of their similarities.
    given : Score
        Of what was given.
    """

    value: float
    bounds: tuple[float, float]
    level: Level
    confidence: float
    joint: Score
    given: Score


@dataclass(frozen=True, repr=False, eq=False)
class Information(Figure):
    """How much of the diversity of samples what they were given explains; a float.

    Attributes
    ----------
    value : float
        The score of the samples times that of what was given, over that of pairs.
    bounds, level, confidence
        As of `Conditional`.
    samples : Score
        Of the samples alone.
    given : Score
        Of what was given.
    joint : Score
        Of the pairs.
    """

    value: float
    bounds: tuple[float, float]
    level: Level
    confidence: float
    samples: Score
    given: Score
    joint: Score


def conditional(
    samples: Any,
    given: Any,
    kernel: Any = COSINE,
    given_kernel: Any = None,
    *,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    tol: float | None = None,
    rng: int = SEED,
) -> Conditional:
    """The conditional Vendi Score: how diverse answers are apart from how diverse the prompts are.

    exp[H(K_X∘K_T/n) − H(K_T/n)] with the similarities K_X of the answers and K_T of the prompts: the effective number
    of different pairs for each different prompt. It is 1 where the prompt settles the answer, and the score of
    the answers where they have nothing to do with the prompts.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The answers, as for `vendimeter.score`.
    given : array, list, table, Collection or Diversity, or name of a column
        The prompt of each answer, in the same order: one for each, repeated where it was asked more than once.
    kernel : str, Kernel or callable
        What makes two answers similar.
    given_kernel : str, Kernel or callable, optional
        What makes two prompts similar; as for answers by default, and that of a `Diversity` of prompts. With
        ``"match"`` a prompt is like itself alone.
    q : float or str
        The order: H is the logarithm of the score of that order, the matrix-based Rényi entropy.
    weights, counts : array of shape (n,), optional
        Probabilities of the pairs, or how often each occurs.
    tol, rng
        As for `vendimeter.score`, for each of the two scores.

    Returns
    -------
    Conditional
        A float with bounds, and its two parts.

    Notes
    -----
    A product of similarities is a similarity, and multiplying never makes a collection less diverse: the figure is at
    least 1 for every order (Bapat and Sunder: the eigenvalues of K_X∘K_T are majorised by those of K_T).
    ``conditional * given`` is the score of the pairs. For q = 1, ``score(samples) = conditional · information``: the
    diversity of the answers is that of the model times what the prompts bring (`information`). Where prompts are like
    themselves alone (``given_kernel="match"``), and were asked equally often, it is the geometric mean of the scores of
    the answers to each. Features are multiplied where their number allows, so that it scales as `vendimeter.score`
    does; else blocks of similarities are.

    With kernels under which most prompts are somewhat alike, the answers to other prompts count as answers to this
    one, to that degree.

    References
    ----------
    Jalali, Ospanov, Gohari, Farnia: Conditional Vendi Score: an information-theoretic approach to diversity evaluation
    of prompt-based generative models, 2024. Sanchez Giraldo, Rao, Príncipe: Measures of entropy from data using
    infinitely divisible kernels, 2015. Bapat and Sunder: On majorization and Schur products, 1985.

    Examples
    --------
    >>> import vendimeter as vm
    >>> answers, prompts = ["yes", "no", "red", "red"], ["sure?", "sure?", "colour?", "colour?"]
    >>> found = vm.family.conditional(answers, prompts, "match")
    >>> round(found, 4), round(found.joint, 4), round(found.given, 4)
    (1.4142, 2.8284, 2.0)
    """
    answers = diversity_of(samples, kernel, weights=weights, counts=counts, rng=rng)
    asked = _given(answers, given, kernel, given_kernel)
    with answers.asked(), wide_mode("float64", asked.samples):
        pairs = _Pairs(answers, asked, q, tol)
        joint, prompts = pairs.joint_score(), pairs.given_score()
        if not pairs.trusts_samples:  # a product may be positive semidefinite where its factor is not
            pairs.samples_score()
    low, high = joint.bounds[0] / prompts.bounds[1], joint.bounds[1] / prompts.bounds[0]
    if not pairs.projected:  # a product has no less than its factors
        low, high = _clip_below(low, 1.0), _clip_below(high, 1.0)
    return Conditional(*_combine_claims(joint / prompts, low, high, (joint, prompts)), joint, prompts)


def information(
    samples: Any,
    given: Any,
    kernel: Any = COSINE,
    given_kernel: Any = None,
    *,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    tol: float | None = None,
    rng: int = SEED,
) -> Information:
    """The information Vendi Score: how much of the diversity of answers the prompts explain.

    exp[H(X) + H(T) − H(X, T)], the exponential of the mutual information of answers and prompts: 1 where they have
    nothing to do with each other, and the score of the prompts where every prompt has its own answer.

    Parameters
    ----------
    samples, given, kernel, given_kernel, q, weights, counts, tol, rng
        As for `conditional`.

    Returns
    -------
    Information
        A float with bounds, and its three parts.

    Notes
    -----
    It is at most the smaller of the two scores. For q = 1 it is at least 1 (subadditivity of entropy); for other orders
    it may fall below.

    References
    ----------
    As of `conditional`.

    Examples
    --------
    >>> import vendimeter as vm
    >>> prompts = ["sure?", "sure?", "colour?", "colour?"]
    >>> round(vm.family.information(["yes", "yes", "red", "red"], prompts, "match"), 4)
    2.0
    >>> round(vm.family.information(["yes", "no", "yes", "no"], prompts, "match"), 4)
    1.0
    """
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, rng=rng)
    asked = _given(diversity, given, kernel, given_kernel)
    with diversity.asked(), wide_mode("float64", asked.samples):
        pairs = _Pairs(diversity, asked, q, tol)
        scores = answers, prompts, joint = pairs.samples_score(), pairs.given_score(), pairs.joint_score()
    low = answers.bounds[0] * prompts.bounds[0] / joint.bounds[1]
    high = answers.bounds[1] * prompts.bounds[1] / joint.bounds[0]
    if not pairs.projected:
        high = min(high, answers.bounds[1], prompts.bounds[1])
        low = _clip_below(low, 1.0) if pairs.order == 1 else low
    return Information(
        *_combine_claims(answers * prompts / joint, low, high, scores), answers, prompts, joint
    )


class _Pairs:
    """Samples, what they were given, and both together, with the weights of the samples."""

    def __init__(self, samples: Diversity, given: Diversity, q: Any, tol: float | None):
        self.order, self.tol, self.samples, self.given = parse_order(q), tol, samples, given
        similarity = _evaluated_once(samples)
        with about("given"):
            given_similarity = _evaluated_once(given)
        if similarity.n != given_similarity.n:
            raise InputError(
                f"there are {similarity.n} samples and {given_similarity.n} of what was given; expected one for "
                "each sample, in the same order."
            )
        joint = On("samples", similarity.kernel) * On("given", given_similarity.kernel)
        self.joint = multiply([similarity, given_similarity]).with_kernel(joint)
        self.trusts_samples = similarity.trusted
        self.projected = similarity.policy.project or given_similarity.policy.project

    def samples_score(self) -> Score:
        """Of the samples alone."""
        return self.samples.score(self.order, tol=self.tol, progress=False)

    def given_score(self) -> Score:
        """Of what was given alone."""
        if self.samples.weights is None:
            return self.given.score(self.order, tol=self.tol, progress=False)
        return self._scored(self.given.similarity)

    def joint_score(self) -> Score:
        """Of the pairs."""
        return self._scored(self.joint)

    def _scored(self, similarity: Similarity) -> Score:
        samples = self.samples
        solver = samples.solver if self.tol is None else replace(samples.solver, tol=self.tol)
        return scored(similarity, samples.weights, self.order, samples.count, solver=solver, rng=samples.rng)


# ------------------------------------------------------------------------------------------------------ what is given


def _given(samples: Diversity, given: Any, kernel: Any, given_kernel: Any) -> Diversity:
    """What the samples were given, seen through its own kernel, or that of the samples."""
    if isinstance(given, Diversity):
        with about("given"):
            diversity = diversity_of(given, COSINE if given_kernel is None else given_kernel)
        if diversity.weighting is not None:
            raise _own_weights("given")
    else:
        given = _resolved(samples, given, "given")
        if given_kernel is None:
            given_kernel = samples.kernel if samples.keeps else kernel
        with about("given"):
            diversity = diversity_of(given, given_kernel, solver=samples.solver, rng=samples.rng)
    with about("given"):
        refuse_set(diversity.samples, "its items")
    check_alignment(samples.samples, diversity.samples, "given")
    return diversity


def _resolved(samples: Diversity, given: Any, name: str) -> Any:
    """What is given for each sample: itself, or the column of the samples that it names."""
    if isinstance(given, Collection):
        if given.weights is not None:
            raise _own_weights(name)
        return given.one()
    column = samples.column(given) if isinstance(given, str) else None
    return frames.known(given) if column is None else column


def _own_weights(name: str) -> InputError:
    return InputError(f"{name} has weights of its own; expected them with the samples, as weights=…")


def _evaluated_once(diversity: Diversity) -> Similarity:
    """The similarities; those of a user's function as a matrix, if it fits into memory: it is called once a pair."""
    similarity = diversity.similarity
    return diversity.subsets if isinstance(similarity, Pairwise) and not similarity.trusted else similarity


def _clip_below(value: float, minimum: float) -> float:
    """Raise a value to a minimum; NaN stays."""
    return minimum if value < minimum else value


def _combine_claims(
    value: float, low: float, high: float, scores: Sequence[Score]
) -> tuple[float, tuple[float, float], Level, float]:
    """The value with its bounds, and the joint level and confidence of the scores it is made of."""
    level = LEVELS[max(LEVELS.index(score.level) for score in scores)]
    confidence = math.nan if level == "none" else max(1 - sum(1 - score.confidence for score in scores), 0.0)
    slack = 8 * UNIT
    low, high = low * (1 - slack), high * (1 + slack)
    if low <= high:
        value = min(max(value, low), high)
    return float(value), (low, high), level, confidence


# ----------------------------------------------------------------------------------------------- quality and truncation


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
    kernel: Any = COSINE,
    *,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    tol: float | None = None,
    rng: int = SEED,
) -> QualityWeighted:
    """The quality-weighted Vendi Score: (mean quality) · VS_q, for collections that are to be both good and diverse.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
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
    order = parse_order(q)
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, rng=rng)
    with diversity.asked():
        n, shares = diversity.n, diversity.shares
        values = qualities(diversity.samples, _resolved(diversity, quality, "quality"), n)
        if values is None:
            raise InputError("quality is None; expected numbers from 0 up, one an item.")
        score = diversity.score(order, tol=tol, progress=False)
    mean, (low, high), slack = math.fsum(shares * values), score.bounds, 8 * UNIT
    return QualityWeighted(mean * score, mean, score, (mean * low * (1 - slack), mean * high * (1 + slack)))


def truncated(
    samples: Any,
    t: int,
    kernel: Any = COSINE,
    *,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    rng: int = SEED,
) -> Score:
    """The t-truncated Vendi Score: that of the t largest eigenvalues, over which the mass of all others is spread.

    λ̂ᵢ = λᵢ + (1 − Σ_{j≤t} λⱼ)/t for i ≤ t. The Vendi Score itself grows with the number of samples for as long as new
    ones show something new; the truncated one comes to rest with samples in proportion to t.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items, as for `vendimeter.score`.
    t : int
        How many eigenvalues to keep. With as many as there are it is the score itself.
    kernel, weights, counts, rng
        As for `vendimeter.score`.
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
    count, order = whole_number(t, "t"), parse_order(q)
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, rng=rng)
    with diversity.asked():
        plan, solution = _all_eigenvalues(diversity)
    spectrum: Any = solution.spectrum
    values = spectrum.eigenvalues
    # x − mean(x) + 1/t of the t largest is no further from the truth than these are; dividing by the sum, which is off
    # by √m times the error, adds to that.
    error = spectrum.error * (1 + math.sqrt(len(values)) * float(np.linalg.norm(values))) + 4 * UNIT
    spectrum_kept = Eigenvalues(truncated_values(values, count), error, spectrum.level, spectrum.confidence)
    notes = solution.notes | {"truncated": count, "eigenvalues": len(values)}
    solution = Solution(spectrum_kept, solution.method, notes)
    return to_score(solution, plan, order, diversity.count, diversity.similarity.kernel)


def _all_eigenvalues(diversity: Diversity) -> tuple[Plan, Solution]:
    """All eigenvalues, whatever its solver is content with, and how they were found."""
    problem = diversity.problem([1.0])  # of an order that no norm answers alone
    if choose(prepared(problem)).method == "exact":
        plan, solution = diversity.solve(problem.orders)
        if isinstance(solution.spectrum, Eigenvalues):
            return plan, solution
    problem = replace(problem, solver=Solver())
    if choose(prepared(problem)).method == "exact":
        return run(problem)
    raise TooLargeError(
        f"the truncated score needs the eigenvalues of all {problem.similarity.n:,} items, and those of a matrix "
        f"beyond {EXACT_SIDE:,} rows and features are not computed; expected fewer. Take a random sample, for "
        "which the truncated score is made, or let vendimeter.kernels.RandomFeatures stand in for the kernel."
    )
