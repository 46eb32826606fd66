"""The score against the number of samples: the rarefaction curve, and the score of the population."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.rarefaction.jackknife_groups import (
    Split,
    Subset,
    SubsetSpectrum,
    deal_groups,
    draw_subset,
    is_fragmented,
    solve_subsets,
)
from vendimeter.analysis.rarefaction.population import (
    Population,
    check_groups,
    estimate_population,
    jackknife_of_split,
    no_estimate,
    refusal_in_advance,
)
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.options import COSINE, SEED, check_confidence, generator, whole_number
from vendimeter.present.notes import Advice, Audience, Note, sentences
from vendimeter.present.numbers import format_percent
from vendimeter.present.progress import Progress
from vendimeter.results.base import Result, frozen
from vendimeter.results.score import Score, to_score
from vendimeter.similarity import Features, Similarity
from vendimeter.solvers.plan import EXACT_SIDE
from vendimeter.spectrum import hill, parse_order
from vendimeter.spectrum.entropy import truncated

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["Population", "Rarefaction", "Verdict", "rarefy"]

MOST = 3072  # default of `most`, items whose similarity matrix is solved: some thirty times
MAX_WIDTH = 2048  # features up to which their d×d matrix is solved instead, for any number of items
LADDER = 12  # default number of sizes of the curve
SMALLEST_SIZE = 8  # of the curve by default
BAND = (0.05, 0.95)  # quantiles of the repeats
CONVERGED = 0.01  # threshold of the growth by doubling the samples, below which a score has converged


class Verdict(StrEnum):
    """Whether a score has converged."""

    CONVERGED = "converged"  # twice as many samples would change it by less than 1%
    GROWS = "grows"
    TOO_FEW = "too-few"  # samples to say
    POPULATION = "population"  # the weights are one themselves, and nothing is left to converge to


@dataclass(frozen=True, repr=False, eq=False)
class Rarefaction(Result):
    """The score against the number of samples, from `vendimeter.rarefy`.

    Attributes
    ----------
    score : Score
        That of all samples, with its bounds.
    population : Population
        The score of the population: a float, with its `interval` or the reason why it is `refused`.
    growth : float
        By how much of itself the score would grow if twice as many samples were drawn: 0.02 is 2%. NaN where there are
        too few samples to say.
    verdict : Verdict
        "converged" where that is less than 1%, "grows", "too-few" (samples to say), or "population" for weights, which
        are one themselves.
    verdict_text : str
        The same in words, with the growth.
    sizes : ndarray
        Numbers of samples.
    scores : ndarray
        The mean score of random subsets of each size.
    low, high : ndarray
        The 5% and 95% quantiles of these scores: the spread of subsets of *these* samples. It is no confidence interval
        for anything.
    truncated : ndarray
        The mean t-truncated score of the same subsets.
    truncated_score : float
        That of all samples.
    t : int
        How many eigenvalues the truncated score keeps.
    q : float
        The order.
    n : int
        How many samples there are; with counts, their sum.
    used : int
        How many of them the curve and the population come of.
    repeats, groups : int
        Subsets of each size, and groups of the jackknife.
    notes : tuple of Note
        What was done otherwise than asked for, and why.
    """

    score: Score
    population: Population
    growth: float
    sizes: np.ndarray
    scores: np.ndarray
    low: np.ndarray = field(repr=False)
    high: np.ndarray = field(repr=False)
    truncated: np.ndarray = field(repr=False)
    truncated_score: float
    t: int
    q: float
    n: int
    used: int
    repeats: int = field(repr=False)
    groups: int = field(repr=False)
    notes: tuple[Note, ...] = field(default=(), repr=False)

    @property
    def verdict(self) -> Verdict:
        """Whether the score has converged."""
        if self.population.n == 0:
            return Verdict.POPULATION
        if math.isnan(self.growth):
            return Verdict.TOO_FEW
        return Verdict.CONVERGED if self.growth < CONVERGED else Verdict.GROWS

    @property
    def verdict_text(self) -> str:
        """Whether the score has converged, and by how much it would grow with twice as many samples."""
        grows = f"by about {format_percent(self.growth)} if twice as many samples were drawn"
        return {
            Verdict.CONVERGED: f"converged: it would grow {grows}",
            Verdict.GROWS: f"still grows {grows}",
            Verdict.TOO_FEW: "too few samples to say whether the score has converged",
            Verdict.POPULATION: "the weights are a population themselves, and the score is its own",
        }[self.verdict]

    def summary(self, audience: Audience = "python") -> str:
        """The score, whether it has converged, and the population, in a few sentences."""
        lines = [
            f"{self.score.summary()}. The score: {self.verdict_text}.",
            self.population.summary(audience),
        ]
        return " ".join([*lines, *sentences(self.notes, audience)])

    def _columns(self) -> dict[str, Any]:
        return {
            "size": self.sizes,
            "score": self.scores,
            "low": self.low,
            "high": self.high,
            "truncated": self.truncated,
        }

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values ready for JSON (a missing number is None)."""
        verdict = {"kind": self.verdict.value, "text": self.verdict_text}
        return super().to_dict() | {"verdict": verdict}

    def plot(self, ax: Any = None) -> Display:
        """The curve with its band, and the population beside it; see `vendimeter.plots.rarefaction`."""
        from vendimeter.plots.curves import curve

        return curve(self, ax)


def rarefy(
    samples: Any,
    kernel: Any = COSINE,
    *,
    q: float | str = 1,
    counts: Any = None,
    weights: Any = None,
    sizes: Any = None,
    repeats: int = 20,
    groups: int = 20,
    confidence: float = 0.95,
    t: int | None = None,
    most: int = MOST,
    rng: int = SEED,
) -> Rarefaction:
    """The score against the number of samples: whether it has converged, and what the whole population would score.

    A score of few samples is too low, because they do not show all there is. The curve is the mean score of random
    subsets; the population's score is estimated by a jackknife, with a confidence interval where one holds.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items, as for `vendimeter.score`. They are taken to be drawn independently from one population.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    q : float or str
        The order.
    counts : array of shape (n,), optional
        How often each item was drawn: every copy is a sample.
    weights : array of shape (n,), optional
        Probabilities of the items. They are a population themselves and not samples of one: the curve is then that of
        samples drawn from it, with replacement, and no other population is estimated.
    sizes : list of int, optional
        Numbers of samples for the curve, from 1 up to all; by default 12 from 8 to all of them, in even steps of the
        logarithm.
    repeats : int
        Random subsets of each size.
    groups : {8, 12, 20, 24, 32, 44, 48}
        Groups of the jackknife, each of which is left out once.
    confidence : float
        Of the interval for the population.
    t : int, optional
        How many eigenvalues the truncated score keeps; a tenth of the samples by default, rounded up.
    most : int
        Where the similarity matrix is worked on, because the kernel has no features or more than 2,048, a random sample
        of so many items stands for all of them, 8,192 at most. The time grows with its cube.
    rng : int
        Seed of everything random.

    Returns
    -------
    Rarefaction
        With `score` (of all samples), `population`, `growth`, `verdict`, and the curve: `sizes`, `scores`, `low` and
        `high`.

    Notes
    -----
    *The curve.* Subsets are drawn without replacement. Its band is the spread of subsets of these samples, which share
    most of their items as they get larger; it closes at n, where there is one subset, and says nothing of the error.

    *The population.* With S = log VS_q and g groups, S_pop ≈ g Ŝ − (g−1) mean Ŝ_(−j), where Ŝ_(−j) leaves a group out.
    This removes the part of the bias that falls as 1/n. The standard error is that of the pseudo-values, without what
    it counts twice, and longer where a few equally common modes make it lopsided. The interval is S_pop ± the t
    quantile times that error, exponentiated. If the bias falls more slowly, as n^−α (told from subsets of n/4, n/2 and
    n), (1/α − 1) times the correction may still be missing: the upper end is raised by it. The naive bootstrap would
    double the bias, and is not used.

    *No interval* is given with weights; for q < 1 or q > 3; with fewer than 5 samples a group; with fewer than 4
    samples for each effectively different item of the population; where samples do not differ; where what may be
    missing exceeds 0.75 standard errors (heavy tails, many rare modes); and where the square of the correction
    exceeds the standard error. Of those given at 95% and q = 1, 94.8% of 12,933 held over the 22 populations of
    ``benchmarks/calibration/populations.py`` that these rules were chosen on, and 95.9% of 5,735 over 12 that were
    held out; by population and number of samples, where 20 or more were given, 2 of 45 cases and 1 of 21 were below
    90%. No sample shows what is too rare to be in it: if 2% of a population is spread over 2,000 modes, 300 samples
    hold six of them, look much as if there were ten such modes, and the interval is too low; 29% held. The rule of 4
    samples knows the estimate only, and lets those pass that are too low: with fewer than 4 in truth, 34 of 47 held.

    *The growth* continues the curve: what doubling gained last, times the ratio of the last gain to the one before.

    *The truncated score* keeps the t largest eigenvalues and spreads the mass of all others over them evenly,
    λ_i + (1 − Σ_{j≤t} λ_j)/t. It needs samples in proportion to t, whatever the population, and answers a coarser
    question: where its curve is flat and that of the score is not, what still grows is the tail.

    Parameters of the kernel that come from data (a median bandwidth) are fitted once, on all samples.

    *Cost.* With d features, d ≤ 2,048: about four passes over the samples and some 300 eigensolves of d×d; nothing n×n
    is built. Otherwise some thirty eigensolves of `most` items.

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023. Efron and Stein: The jackknife estimate of variance, Annals of
    Statistics 9, 1981. Busing, Meijer, van der Leeden: Delete-m jackknife for unequal m, Statistics and Computing 9,
    1999. Gotelli and Colwell: Quantifying biodiversity, Ecology Letters 4, 2001 (rarefaction). Ospanov and Farnia: Do
    Vendi scores converge with finite samples? arXiv:2410.21719, 2024 (the truncated score).

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> rng = np.random.default_rng(1)
    >>> dice = rng.integers(1, 7, size=200)
    >>> found = vm.rarefy(dice, "match", sizes=[10, 50, 200])
    >>> found.scores.round(2)
    array([4.29, 5.65, 5.97])
    >>> round(found.population, 2), [round(end, 2) for end in found.population.interval]
    (6.06, [5.92, 6.2])
    >>> found.verdict == "converged", found.verdict_text
    (True, 'converged: it would grow by about 0.79% if twice as many samples were drawn')
    >>> vm.rarefy(np.arange(200), "match").population.refused.kind
    'too-few-per-item'
    """
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, rng=rng)
    return diversity.rarefy(
        q=q, sizes=sizes, repeats=repeats, groups=groups, confidence=confidence, t=t, most=most
    )


def rarefaction_of(
    diversity: Diversity, *, q: Any, sizes: Any, repeats: Any, groups: Any, confidence: Any, t: Any, most: Any
) -> Rarefaction:
    """The score against the number of samples; see `rarefy`."""
    options = _Options(
        parse_order(q),
        whole_number(repeats, "repeats"),
        check_groups(whole_number(groups, "groups")),
        check_confidence(confidence),
        None if t is None else whole_number(t, "t"),
        _check_most(most),
        diversity.rng,
    )
    similarity, shares, n = diversity.similarity, diversity.shares, diversity.count
    present = np.arange(diversity.n) if diversity.weights is None else np.flatnonzero(shares)
    fragmented = is_fragmented(similarity, present)
    if not fragmented:
        similarity = diversity.subsets
    has_counts = diversity.weighting == "counts"
    subset = Subset(present, np.rint(shares[present] * n).astype(np.int64) if has_counts else None)
    with Progress("vendimeter") as bar:
        bar.step(0.0, "score of all samples")
        plan, solution = diversity.solve([options.q])
        score = to_score(solution, plan, options.q, n, similarity.kernel)
        rarefaction_type = _WeightedCurve if diversity.weighting == "weights" else _SampledCurve
        return rarefaction_type(similarity, subset, shares[present], n, options, fragmented, bar.step).result(
            score, sizes
        )


@dataclass(frozen=True)
class _Options:
    """The checked options of `rarefy`."""

    q: float
    repeats: int
    groups: int
    confidence: float
    t: int | None
    most: int
    rng: int


def _check_most(most: Any) -> int:
    """`most` as a whole number, at most the side that is solved exactly."""
    items = whole_number(most, "most")
    if items > EXACT_SIDE:
        raise InputError(f"most={brief(most)}; expected {EXACT_SIDE:,} items or fewer.")
    return items


class _SampledCurve:
    """The rarefaction of exchangeable samples: random subsets of them, and the jackknife."""

    def __init__(
        self,
        similarity: Similarity,
        subset: Subset,
        shares: np.ndarray,
        n: int,
        options: _Options,
        fragmented: bool,
        report: Callable[[float, str], None],
    ):
        self.similarity, self.subset, self.shares, self.n = similarity, subset, shares, n
        self.options, self.report = options, report
        self.random_state = generator(options.rng, "rarefy")
        self.used = n if fragmented else self._count_usable()
        self.t = options.t or -(-self.used // 10)

    def _count_usable(self) -> int:
        """How many of the samples are used: all of them where the similarity matrix is not needed."""
        if len(self.subset.items) <= self.options.most:
            return self.n
        narrow = isinstance(self.similarity, Features) and self.similarity.width <= MAX_WIDTH
        return self.n if narrow else min(self.options.most, self.n)

    def result(self, score: Score, sizes: Any) -> Rarefaction:
        """The curve, the population and the growth."""
        curve_sizes = _curve_sizes(sizes, self.used, self.n)
        self._deal()
        curve = np.empty((4, len(curve_sizes)))
        for i, size_spectra in enumerate(self._curve(curve_sizes.tolist())):
            self.report(0.1 + 0.2 * i / len(curve_sizes), f"subsets of {curve_sizes[i]:,}")
            scores = np.array([self._scores(spectrum) for spectrum in size_spectra])
            curve[:, i] = scores[:, 0].mean(), *np.quantile(scores[:, 0], BAND), scores[:, 1].mean()
        population, growth = self._population()
        self.report(1.0, "")
        return Rarefaction(
            score=score,
            population=population,
            growth=growth,
            sizes=frozen(curve_sizes),
            scores=frozen(curve[0]),
            low=frozen(curve[1]),
            high=frozen(curve[2]),
            truncated=frozen(curve[3]),
            truncated_score=math.nan if self._full_spectrum is None else self._scores(self._full_spectrum)[1],
            t=self.t,
            q=self.options.q,
            n=self.n,
            used=self.used,
            repeats=self.options.repeats,
            groups=self.options.groups,
            notes=self._notes(),
        )

    def _scores(self, spectrum: SubsetSpectrum) -> tuple[float, float]:
        """The score and the truncated score of a subset."""
        threshold, q = 2 * spectrum.error, self.options.q
        return (
            float(hill(spectrum.eigenvalues, q, zero_below=threshold)),
            float(hill(truncated(spectrum.eigenvalues, self.t), q, zero_below=threshold)),
        )

    def _deal(self) -> None:
        """Deal the samples used out into groups."""
        subset = (
            self.subset if self.used == self.n else draw_subset(self.subset, self.used, self.random_state)
        )
        groups = (
            deal_groups(subset, min(self.options.groups, self.used), self.random_state)
            if self.used > 1
            else [subset]
        )
        self.split = Split(self.similarity, groups)

    @cached_property
    def _full_spectrum(self) -> SubsetSpectrum | None:
        """The eigenvalues of all samples used."""
        return next(self.split.spectra([np.arange(len(self.split.groups))]))

    def _curve(self, sizes: list[int]) -> Iterator[Iterable[SubsetSpectrum]]:
        """The eigenvalues of the subsets of each size; there is one subset of all samples."""
        smaller = [size for size in sizes if size < self.used]
        yield from self.split.subset_spectra(smaller, self.options.repeats, self.random_state)
        if len(smaller) < len(sizes) and self._full_spectrum is not None:
            yield [self._full_spectrum]

    def _population(self) -> tuple[Population, float]:
        options = self.options
        reason = refusal_in_advance(options.q, self.used, options.groups)
        if reason is not None and self.used < 2 * options.groups:
            return no_estimate(reason, options.confidence, self.used), math.nan
        result = jackknife_of_split(
            self.split, options.q, lambda done: self.report(0.3 + 0.7 * done, "jackknife")
        )
        growth = math.expm1(result.gain(math.log2(self.n / self.used)))
        return estimate_population(result, options.confidence, reason), growth

    def _notes(self) -> tuple[Note, ...]:
        if self.used == self.n:
            return ()
        note = Note(
            "sampled",
            f"The curve and the population come of a random sample of {self.used:,} of the {self.n:,}, because the "
            f"kernel has no features, or more than {MAX_WIDTH:,}.",
            {"used": self.used, "n": self.n},
            Advice(f"Pass {{}} for another number, {EXACT_SIDE:,} at most.", "most", python_only=True),
        )
        return (note,)


class _WeightedCurve(_SampledCurve):
    """The rarefaction of probabilities, which are a population: samples are drawn from it with replacement."""

    def _deal(self) -> None:
        """No groups: every subset is drawn from the population."""

    @cached_property
    def _full_spectrum(self) -> SubsetSpectrum | None:
        """The eigenvalues of the population; None where a sample of the items stands for it."""
        population = Subset(self.subset.items, self.shares)
        return next(solve_subsets(self.similarity, [population])) if self.used == self.n else None

    def _curve(self, sizes: list[int]) -> Iterator[Iterable[SubsetSpectrum]]:
        """The eigenvalues of samples drawn with replacement; those of one repeat are nested."""
        largest = [self.random_state.multinomial(sizes[-1], self.shares) for _ in range(self.options.repeats)]
        chains = [[Subset(self.subset.items[counts > 0], counts[counts > 0])] for counts in largest]
        for chain in chains:
            for size in reversed(sizes[:-1]):
                chain.append(draw_subset(chain[-1], size, self.random_state))
        for i in reversed(range(len(sizes))):
            yield solve_subsets(self.similarity, [chain[i] for chain in chains])

    def _population(self) -> tuple[Population, float]:
        reason = Note(
            "weights",
            "weights are probabilities, and not samples of a population.",
            advice=Advice("For frequencies pass {}.", "counts", python_only=True),
        )
        return no_estimate(reason, self.options.confidence, 0), math.nan


def _curve_sizes(sizes: Any, used: int, n: int) -> np.ndarray:
    """The sizes of the subsets of the curve."""
    if sizes is None:
        return np.unique(np.round(np.geomspace(min(SMALLEST_SIZE, used), used, LADDER)).astype(np.int64))
    try:
        checked = [whole_number(size, "sizes") for size in sizes]
    except TypeError:
        checked = []
    if not checked:
        raise InputError(f"sizes={brief(sizes)}; expected a list of whole numbers, such as [10, 100, 1000].")
    if max(checked) > used:
        sample = "" if used == n else f" {used:,} of them are worked on; pass most= for more."
        raise InputError(
            f"sizes go up to {max(checked):,} and there are {n:,} samples; expected sizes up to {used:,}.{sample}"
        )
    return np.unique(np.array(checked, dtype=np.int64))
