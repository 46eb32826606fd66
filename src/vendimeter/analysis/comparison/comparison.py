"""Groups side by side: compare."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.comparison.common_size import BLOCKS, Rarefied, quantile, rarefied, standard_error
from vendimeter.analysis.comparison.differences import Differences, Wanted, differences_of, pairs_of
from vendimeter.analysis.comparison.groups import Groups, gathered
from vendimeter.analysis.comparison.partition import overlap_cost, overlaps, partition
from vendimeter.data.collection import Collection
from vendimeter.data.devices import wide_mode
from vendimeter.errors import InputError, UnansweredError, brief, group_name, unknown
from vendimeter.options import as_number, check_confidence, check_flag, check_rng, whole_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import Result, frozen
from vendimeter.results.groups import _plain
from vendimeter.results.score import Score, data_frame, number, order_name, percentage
from vendimeter.solvers.groups import SolvedGroups, solve_groups
from vendimeter.spectrum import parse_order

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = [
    "COMMON",
    "LEAST",
    "LOWEST",
    "MANY",
    "Comparison",
    "common_size",
    "compare",
    "first_notes",
    "no_intervals",
    "used_notes",
]


# ---------------------------------------------------------------------------------------------------- comparison notes

# At what size groups are compared, and what the result of a comparison says was done, and was not, and why.

COMMON = 500  # items: the largest common size that is taken without being asked for
LEAST = BLOCKS  # items at which intervals and tests begin
LOWEST = 0.5  # the order from which on intervals hold what they promise
MANY = 500  # groups: beyond, intervals and the similarity of groups wait to be asked for


def first_notes(groups: Groups) -> list[str]:
    notes = []
    empty = [groups.labels[g] for g in np.flatnonzero(np.diff(groups.members.starts) == 0).tolist()]
    if empty:
        notes.append(f"{_named(empty)} {'is' if len(empty) == 1 else 'are'} empty.")
    if groups.shared:
        notes.append("Groups share items; an item of several groups counts in each of them.")
    if groups.left_out:
        notes.append(f"{groups.left_out:,} records were left out on reading.")
    return notes


def common_size(groups: Groups, size: Any) -> tuple[int | None, list[str]]:
    """The common size, and what there is to say about it."""
    sizes, labels = groups.sizes, groups.labels
    if groups.given == "weights":
        if size is not None:
            raise InputError(
                f"size={brief(size)} was given with weights, which are probabilities and no samples to draw from; "
                "expected counts=, or no size."
            )
        return None, []
    notes = []
    if size is not None:
        common = whole_number(size, "size")
        if common > sizes.max():
            largest = brief(labels[int(sizes.argmax())])
            raise InputError(
                f"size={common:,} and the largest group, {largest}, has {sizes.max():,} items; expected a size up to "
                "that."
            )
    else:
        several = sizes[sizes >= 2]
        smallest = int(several.min()) if len(several) else 1
        common = min(smallest, COMMON)
        if common < smallest:
            notes.append(
                f"All groups have {smallest:,} items or more; the common size is {COMMON} by default, so as not to "
                "take long. Pass size= (--size) for another."
            )
        elif common < LEAST and sizes.max() >= LEAST:
            at = brief(labels[int(np.flatnonzero(sizes == smallest)[0])])
            notes.append(
                f"The smallest group of two items or more, {at}, sets the common size to {common}; pass size= to "
                "compare larger groups at more items."
            )
    small = [labels[g] for g in np.flatnonzero((sizes < common) & (sizes > 0)).tolist()]
    if small:
        notes.append(
            f"{_named(small)} {'has' if len(small) == 1 else 'have'} fewer than {common:,} items, and so no rarefied "
            "score and no rank."
        )
    return common, notes


def no_intervals(size: int | None, q: float, able: int, *, asked: bool) -> list[str]:
    """Why there are no intervals (and tests); nothing where there are.

    Parameters
    ----------
    size : int or None
        The common size; None with weights.
    q : float
        The order.
    able : int
        How many groups can be compared.
    asked : bool
        Whether comparisons were asked for.
    """
    if size is None:
        note = (
            "Weights are probabilities and no samples: nothing is rarefied, and there are no intervals or tests. The "
            "groups are ranked by their scores as they are. For frequencies pass counts=."
        )
        return [note]
    if size < LEAST:
        return [
            f"A common size of {size} is too small for intervals and tests, which begin at {LEAST} items."
        ]
    if q < LOWEST:
        return [
            f"Orders below {LOWEST} have no intervals, which would not hold what they promise; the tests do."
        ]
    if able > MANY and not asked:
        return [
            f"With more than {MANY} groups there are no intervals by default: pass reference= or pairs=True."
        ]
    return []


def used_notes(groups: Groups, common: Rarefied) -> list[str]:
    notes = []
    fewer = np.flatnonzero((common.used > 0) & (common.used < groups.sizes))
    if len(fewer):
        notes.append(
            f"Of {len(fewer):,} large group{'s' * (len(fewer) > 1)}, {common.used[fewer].min():,} random items or more "
            "were used for the rarefied scores."
        )
    few = [groups.labels[g] for g in np.flatnonzero(common.few).tolist()]
    if few and common.shifts is not None:
        notes.append(
            f"The items of {_named(few)} are nearly all alike, and intervals of such scores and of ratios with them "
            "would not hold; those of differences do."
        )
    return notes


def _named(labels: list[Any]) -> str:
    """Some labels, and how many more there are."""
    shown = ", ".join(brief(label) for label in labels[:3])
    return shown if len(labels) <= 3 else f"{shown} and {len(labels) - 3:,} more groups"


# --------------------------------------------------------------------------------------------------- comparison result

# What comparing groups gives back.


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Result):
    """Groups side by side; made by `vendimeter.compare`.

    Attributes
    ----------
    labels : tuple
        The labels of the groups, in order of first appearance; all arrays below are in this order.
    sizes : ndarray of int
        Items in each group, copies counted.
    scores, low, high : ndarray
        The score of each group as it is, which grows with its size, and the bounds of the computation.
    size : int or None
        The common size; None with weights, which cannot be rarefied.
    rarefied, rarefied_low, rarefied_high : ndarray
        The fair score: that of `size` items in the mean, and its interval, which is about sampling. NaN for groups of
        fewer items, and where there is no interval.
    used : ndarray of int
        How many items of each group the rarefied score is from.
    rank : ndarray
        1 for the highest rarefied score, the same for equal ones; NaN where there is none.
    alpha, beta : float
        Effectively different items within a group, and effectively distinct groups.
    beta_bounds : tuple of float
        Between which beta lies, as far as the computation goes.
    gamma : Score
        Effectively different items in all groups together, alpha × beta.
    shares : ndarray
        The weight of each group in alpha, beta and gamma.
    similarity : ndarray of shape (groups, groups), or None
        How alike any two groups are, from 0 to 1; None where it was not computed.
    differences : Differences
        Pairs of groups compared, with intervals and tests.
    q, confidence : float
        The order, and the confidence of each interval by itself.
    kernel : str
        What items were compared by.
    notes : tuple of str
        What was done, and what was not computed and why.
    """

    labels: tuple[Any, ...] = field(repr=False)
    sizes: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    low: np.ndarray = field(repr=False)
    high: np.ndarray = field(repr=False)
    size: int | None
    rarefied: np.ndarray
    rarefied_low: np.ndarray = field(repr=False)
    rarefied_high: np.ndarray = field(repr=False)
    used: np.ndarray = field(repr=False)
    rank: np.ndarray = field(repr=False)
    alpha: float
    beta: float
    beta_bounds: tuple[float, float] = field(repr=False)
    gamma: Score
    shares: np.ndarray = field(repr=False)
    similarity: np.ndarray | None = field(repr=False)
    differences: Differences = field(repr=False)
    q: float
    confidence: float = field(repr=False)
    kernel: str = field(repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def fair(self) -> np.ndarray:
        """What groups are ranked by: the rarefied scores, or with weights the scores as they are."""
        return self.scores if self.size is None else self.rarefied

    def summary(self) -> str:
        """Which groups are highest and lowest, how much lies within and between them, and which differ."""
        count = f"{len(self):,} group{'s' * (len(self) > 1)}"
        order = "" if self.q == 1 else f" (order {order_name(self.q)})"
        words = [
            f"{count}{order}."
            if self.size is None
            else f"{count}, rarefied to {self.size:,} item{'s' * (self.size > 1)} each{order}."
        ]
        if not np.isnan(self.fair).all():
            high, low = int(np.nanargmax(self.fair)), int(np.nanargmin(self.fair))
            words.append(
                f"Highest: {self._one(high)}" + ("." if high == low else f"; lowest: {self._one(low)}.")
            )
        words.append(
            f"{number(self.alpha)} effectively different items within a group × {number(self.beta)} effectively "
            f"distinct groups = {number(self.gamma)} in all{self._open()}."
        )
        if len(self.differences):
            words.append(self.differences.found())
        # What holds for both is said once.
        return " ".join(dict.fromkeys([*words, *self.differences.notes, *self.notes]))

    def _one(self, g: int) -> str:
        low, high = self.rarefied_low[g], self.rarefied_high[g]
        interval = (
            "" if math.isnan(low) else f" ({percentage(self.confidence)} interval {low:.4g} to {high:.4g})"
        )
        return f"{group_name(self.labels[g])} with {self.fair[g]:.4g}{interval}"

    def _open(self) -> str:
        """What the computation leaves open, where it is more than rounding."""
        low, high = self.gamma.bounds
        if high - low <= 1e-6 * self.gamma:
            return ""
        if math.isnan(high - low):
            return " (without bounds)"
        return f" (between {number(low)} and {number(high)}, level {self.gamma.level!r})"

    def _columns(self) -> dict[str, Any]:
        names = ("score", "low", "high", "rarefied", "rarefied_low", "rarefied_high", "used", "rank", "share")
        held = (
            self.scores,
            self.low,
            self.high,
            self.rarefied,
            self.rarefied_low,
            self.rarefied_high,
            self.used,
            self.rank,
            self.shares,
        )
        return {
            "group": self.labels,
            "n": self.sizes.tolist(),
            **{name: column.tolist() for name, column in zip(names, held, strict=True)},
        }

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values ready for JSON (a missing number is None)."""
        q = "inf" if math.isinf(self.q) else self.q
        return super().to_dict() | {"labels": list(map(_plain, self.labels)), "q": q}

    def similarity_frame(self) -> Any:
        """The similarity of the groups as a pandas frame, with their labels on both sides."""
        matrix = self._known_similarity()
        frame = data_frame({str(i): column for i, column in enumerate(matrix.T)})
        frame.index = frame.columns = list(self.labels)
        return frame

    def _known_similarity(self) -> np.ndarray:
        if self.similarity is None:
            raise UnansweredError(
                f"the similarity of the {len(self):,} groups was not computed; expected a comparison with it. Compare "
                "them with similarity=True."
            )
        return self.similarity

    def plot(self, ax: Any = None) -> Display:
        """The groups by rank: rarefied scores with their intervals, and the scores as they are."""
        from vendimeter.plots.comparison import ranking

        return ranking(self, ax)

    def plot_similarity(self, ax: Any = None) -> Display:
        """How alike any two groups are, as a matrix of colours with like groups beside each other."""
        from vendimeter.plots.comparison import similarity

        return similarity(self._known_similarity(), self.labels, ax)


# ---------------------------------------------------------------------------------------------------------- comparison

TIED = 1e-12  # scores that differ by a smaller part of themselves have the same rank
COSTLY = 1e12  # operations: beyond, so does the similarity of groups


def compare(
    samples: Any,
    kernel: Any = "cosine",
    *,
    by: Any = None,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    reference: Any = None,
    pairs: bool = False,
    size: int | None = None,
    repeats: int = 20,
    permutations: int = 999,
    confidence: float = 0.95,
    group_weights: str = "size",
    similarity: bool | None = None,
    rng: int = 0,
) -> Comparison:
    """Compare groups: fair scores at a common size, differences with intervals and tests, and how the groups overlap.

    A score grows with the number of items, so that scores of groups of different sizes cannot be compared as they are.
    Here all groups are rarefied to a common size first: the mean score of random subsets of each.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection, or groups of them
        As for `vendimeter.score_groups`: one collection with `by`, or a mapping from label to samples, or a list of
        groups. Groups given one by one are joined into one collection, and are compared by one kernel.
    kernel : str, Kernel or callable
        As for `vendimeter.score`; parameters that come from data are fitted once on all items.
    by : list, array, or name of a column
        One label an item, or one set of labels an item (groups may overlap), or the name of a column; with `weights`
        or `counts` of shape (groups, n) the names of their rows.
    q : float or str
        The order.
    weights, counts : array, optional
        Probabilities or frequencies, one an item or, over one shared similarity, one row a group. Weights are no
        samples: with them nothing is rarefied, and there are neither intervals nor tests.
    reference : label, optional
        The group that all others are compared with; the first by default.
    pairs : bool
        Compare all pairs of groups instead.
    size : int, optional
        The common size; by default that of the smallest group of two items or more, and at most 500. Groups of fewer
        items have no rarefied score.
    repeats : int
        How many subsets of a larger group are scored, at least.
    permutations : int
        How many random deals a permutation test makes; 0 for no tests.
    confidence : float
        Of each interval by itself.
    group_weights : {"size", "equal"}
        What each group weighs in the whole: as many items (or counts, or weights) as it has, or all the same.
    similarity : bool, optional
        Whether to compute how alike any two groups are; by default where that is cheap, and for up to 500 groups.
    rng : int
        Seed of everything random.

    Returns
    -------
    Comparison
        One row a group; its `differences` have one row a comparison.

    Notes
    -----
    *Rarefied scores.* The mean score of subsets of m of the n items estimates without bias what m items from where the
    group came from score in the mean. Intervals and differences are of that, and not of a score without end: they are
    about groups of m items. Of very large groups 2,048 items are used, or 20 times the common size where features are
    few, and fewer where there are many groups; `used` says how many.

    *Intervals* come of a delete-group jackknife with 20 blocks of items, corrected for what it counts twice, with
    Student's t. The blocks are of all groups together, so that items in both groups of a difference are left out of
    both. On a log scale for scores and ratios. There are none below 20 items, nor for orders below 0.5, nor (of scores
    and ratios) for groups whose items are nearly all alike, (score − 1) · m < 10, where they do not hold what they
    promise; and none knows of what is so rare that a group has nothing of it. At q = ∞ they fall short for groups of
    few items: of 25, down to 79% of intervals of 95% held. `benchmarks/calibration_differences.py` has what they
    cover.

    *Tests.* Items that are in one of two groups only are dealt out anew among them, those in both stay in both. The
    p-value is that of the hypothesis that the two come from one population; adjusted by Holm's method for the number
    of comparisons. Tests of more than some hundred items a group take that many of them (`Differences.tested_size`).

    *Within, between, in all.* Each group has a density operator ρ_g = Σ p φφᵀ, and gamma is the score of the mixture
    Σ w_g ρ_g (an item of several groups counts in each). alpha = (Σ w_g tr ρ_g^q)^(1/(1−q)), which is exp Σ w_g S_g at
    q = 1 and the least score of a group at q = ∞. beta = gamma/alpha is how many effectively distinct groups there are:
    never below 1, which it is if all groups are alike, and at q = 1, or with equal weights, never above the number of
    groups, which it is if weights are equal and no item is like one of another group. At q = 1, log beta is the Holevo
    information of the groups. With unequal weights and another order beta may exceed the number of groups.

    *Similarity of groups*: tr(ρ_g ρ_h)/√(tr ρ_g² tr ρ_h²), the mean of squared similarities between their items, over
    that within them: 1 for groups of the same composition, 0 where nothing is alike.

    *Cost.* An eigensolve a group, 20 to 40 more at the common size for its interval, and one for the whole; a test
    takes 2 × `permutations` eigensolves of the common size. Up to 100 comparisons are made without being asked for.

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023. Efron and Stein: The jackknife estimate of variance, Annals of
    Statistics 9, 1981. Holm: A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6, 1979. Jost: Partitioning diversity into independent alpha and beta components, Ecology 88, 2007.

    Examples
    --------
    >>> import vendimeter as vm
    >>> found = vm.compare({"x": ["a", "b", "a"], "y": ["c", "c", "c", "c"]}, "match")
    >>> found.rarefied.round(3), found.size
    (array([1.89, 1.  ]), 3)
    >>> round(found.alpha, 3), round(found.beta, 3), round(found.gamma, 3)
    (1.314, 1.98, 2.6)
    >>> found.similarity
    array([[1., 0.],
           [0., 1.]])
    """
    order = parse_order(q)
    rng = check_rng(rng)
    confidence = check_confidence(confidence)
    repeats = whole_number(repeats, "repeats")
    if not (0 <= as_number(permutations) < math.inf and as_number(permutations) % 1 == 0):
        raise InputError(f"permutations={brief(permutations)}; expected a whole number, or 0 for no tests.")
    permutations = int(permutations)
    if group_weights not in ("size", "equal"):
        raise unknown("kind of group_weights", group_weights, ("size", "equal"))
    check_flag(pairs, "pairs")
    if similarity is not None:
        check_flag(similarity, "similarity")
    given = samples.samples if isinstance(samples, Collection) else samples
    with wide_mode("float64", given), Progress("groups") as bar:
        groups = gathered(samples, kernel, by, weights, counts, rng)
        notes: list[str] = first_notes(groups)
        at, words = common_size(groups, size)
        able = groups.sizes >= at if at is not None else np.diff(groups.members.starts) > 0
        compared, left_away = pairs_of(groups.labels, able, reference, bool(pairs))
        reasons = no_intervals(at, order, int(able.sum()), asked=reference is not None or bool(pairs))
        notes += [*words, *reasons]
        scores = _scores(groups, order, rng)
        raw = scores.value[:, 0]
        shares = groups.mass if group_weights == "size" else (groups.mass > 0).astype(np.float64)
        shares = shares / shares.sum()
        bar.step(0.05, "all items")
        bounds = np.column_stack([scores.value, scores.low, scores.high])
        parts = partition(groups.similarity, groups.members, shares, bounds, order, rng)
        common = None
        if at is not None:
            common = rarefied(
                groups,
                raw,
                at,
                order,
                repeats=repeats,
                jackknife=not reasons,
                rng=rng,
                report=lambda done: bar.step(0.2 + 0.2 * done, "rarefaction"),
            )
            notes += used_notes(groups, common)
        tests = permutations if at is not None and at >= LEAST else 0
        found = differences_of(
            groups,
            raw if common is None else common.scores,
            common,
            order,
            Wanted(compared, tests, confidence, rng),
            [*left_away, *reasons],
            lambda done: bar.step(0.4 + 0.5 * done, "permutation tests"),
        )
        bar.step(0.9, "similarity of groups")
        alike, words = _alike(groups, similarity)
        notes += words
    low, high = _intervals(common, confidence, len(raw))
    fair = raw if common is None else common.scores
    return Comparison(
        labels=tuple(groups.labels),
        sizes=frozen(groups.sizes),
        scores=frozen(raw),
        low=frozen(scores.low[:, 0]),
        high=frozen(scores.high[:, 0]),
        size=at,
        rarefied=frozen(np.full(len(raw), np.nan) if common is None else fair),
        rarefied_low=frozen(low),
        rarefied_high=frozen(high),
        used=frozen(np.zeros(len(raw), dtype=np.int64) if common is None else common.used),
        rank=frozen(_ranks(fair)),
        alpha=parts.alpha,
        beta=parts.beta,
        beta_bounds=parts.bounds,
        gamma=parts.gamma,
        shares=frozen(shares),
        similarity=None if alike is None else frozen(alike),
        differences=found,
        q=order,
        confidence=confidence,
        kernel=repr(groups.similarity.kernel),
        notes=tuple(notes),
    )


def _scores(groups: Groups, q: float, rng: int) -> SolvedGroups:
    """The score of every group as it is."""
    try:
        return solve_groups(groups.similarity, groups.members, [q], rng=rng)
    except InputError as error:
        failure = error
    groups.locate()
    raise failure


def _intervals(common: Rarefied | None, confidence: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the rarefied scores, on a log scale; NaN where there are none."""
    if common is None or common.shifts is None or common.bends is None:
        return np.full(count, np.nan), np.full(count, np.nan)
    reach = quantile(confidence) * standard_error(common.shifts, common.bends) / common.scores
    reach = np.where(common.few, np.nan, reach)
    return common.scores * np.exp(-reach), common.scores * np.exp(reach)


def _ranks(scores: np.ndarray) -> np.ndarray:
    """1 for the highest; equal ones, up to rounding, share the better rank."""
    ranks = np.full(len(scores), np.nan)
    known = np.flatnonzero(~np.isnan(scores))
    order = known[np.argsort(-scores[known], kind="stable")]
    rank = 0
    for i, g in enumerate(order.tolist()):
        if i == 0 or scores[order[i - 1]] - scores[g] > TIED * scores[g]:
            rank = i + 1
        ranks[g] = rank
    return ranks


def _alike(groups: Groups, asked: bool | None) -> tuple[np.ndarray | None, list[str]]:
    """How alike the groups are, or why that was not computed."""
    cost = overlap_cost(groups.similarity, groups.members)
    if asked or (asked is None and len(groups.labels) <= MANY and cost <= COSTLY):
        return overlaps(groups.similarity, groups.members), []
    if asked is not None:
        return None, []
    note = (
        f"The similarity of the groups was not computed (by default it is for up to {MANY} groups, and where it is "
        "cheap): pass similarity=True."
    )
    return None, [note]
