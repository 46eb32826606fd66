"""Compare groups: rarefied scores with intervals, differences with tests, the partition of diversity, and overlaps.

`compare` chooses the common size, runs the parts (`common_size`, `differences`, `partition`), and puts their results
into a `Comparison`, together with notes on what was done, what was not computed, and why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.comparison.common_size import (
    BLOCKS,
    Rarefied,
    rarefy_groups,
    standard_error,
    t_quantile,
)
from vendimeter.analysis.comparison.differences import Differences, PairOptions, choose_pairs, compare_pairs
from vendimeter.analysis.comparison.groups import Groups, group_name, quoted
from vendimeter.analysis.comparison.partition import overlap_cost, overlaps, partition
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError, UnansweredError
from vendimeter.messages import brief, unknown
from vendimeter.options import COSINE, SEED, as_number, check_confidence, check_flag, whole_number
from vendimeter.present.notes import Advice, Audience, Note, sentences
from vendimeter.present.numbers import format_confidence, order_name, short_number
from vendimeter.present.progress import Progress
from vendimeter.present.tables import data_frame
from vendimeter.results.base import Result, frozen
from vendimeter.results.score import Score
from vendimeter.solvers.groups import solve_groups
from vendimeter.spectrum import parse_order

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["Comparison", "compare"]

DEFAULT_SIZE = 500  # items: upper bound of the default common size
MIN_SIZE = BLOCKS  # items: the least common size with intervals and tests
MIN_ORDER = 0.5  # the least order whose intervals keep their level
MANY_GROUPS = 500  # groups: beyond, no intervals and no similarity of groups by default
MAX_OVERLAP_COST = 1e12  # operations: beyond, no similarity of groups by default
TIE_TOLERANCE = 1e-12  # relative difference up to which two scores have the same rank


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
    notes : tuple of Note
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
    notes: tuple[Note, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def fair(self) -> np.ndarray:
        """What groups are ranked by: the rarefied scores, or with weights the scores as they are."""
        return self.scores if self.size is None else self.rarefied

    def summary(self, audience: Audience = "python") -> str:
        """Which groups are highest and lowest, how much lies within and between them, and which differ."""
        count = f"{len(self):,} group{'s' * (len(self) > 1)}"
        order = "" if self.q == 1 else f" (order {order_name(self.q)})"
        found = [
            f"{count}{order}."
            if self.size is None
            else f"{count}, rarefied to {self.size:,} item{'s' * (self.size > 1)} each{order}."
        ]
        if not np.isnan(self.fair).all():
            high, low = int(np.nanargmax(self.fair)), int(np.nanargmin(self.fair))
            found.append(
                f"Highest: {self._describe_group(high)}"
                + ("." if high == low else f"; lowest: {self._describe_group(low)}.")
            )
        found.append(
            f"{short_number(self.alpha)} effectively different items within a group × {short_number(self.beta)} "
            f"effectively distinct groups = {short_number(self.gamma)} in all{self._describe_bounds()}."
        )
        if len(self.differences):
            found.append(self.differences.found())
        return " ".join([*found, *sentences([*self.differences.notes, *self.notes], audience)])

    def _describe_group(self, g: int) -> str:
        low, high = self.rarefied_low[g], self.rarefied_high[g]
        interval = (
            ""
            if math.isnan(low)
            else f" ({format_confidence(self.confidence)} interval {low:.4g} to {high:.4g})"
        )
        return f"{group_name(self.labels[g])} with {self.fair[g]:.4g}{interval}"

    def _describe_bounds(self) -> str:
        """What the computation leaves open, where it is more than rounding."""
        low, high = self.gamma.bounds
        if high - low <= 1e-6 * self.gamma:
            return ""
        if math.isnan(high - low):
            return " (without bounds)"
        return f" (between {short_number(low)} and {short_number(high)}, level {self.gamma.level!r})"

    def _columns(self) -> dict[str, Any]:
        names = ("score", "low", "high", "rarefied", "rarefied_low", "rarefied_high", "used", "rank", "share")
        columns = (
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
            **{name: column.tolist() for name, column in zip(names, columns, strict=True)},
        }

    def similarity_frame(self) -> Any:
        """The similarity of the groups as a pandas frame, with their labels on both sides."""
        matrix = self._require_similarity()
        frame = data_frame({str(i): column for i, column in enumerate(matrix.T)})
        frame.index = frame.columns = list(self.labels)
        return frame

    def _require_similarity(self) -> np.ndarray:
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

        return similarity(self._require_similarity(), self.labels, ax)


def compare(
    samples: Any,
    kernel: Any = COSINE,
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
    rng: int = SEED,
) -> Comparison:
    """Compare groups: fair scores at a common size, differences with intervals and tests, and how the groups overlap.

    A score grows with the number of items, so that scores of groups of different sizes cannot be compared as they are.
    Here all groups are rarefied to a common size first: the mean score of random subsets of each.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection, Diversity, or groups of them
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
    few items: of 25, down to 79% of intervals of 95% held. `benchmarks/calibration/differences.py` has what they
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
    diversity = diversity_of(
        samples, kernel, weights=weights, counts=counts, by=by, rng=rng, lists=True, several=True
    )
    return diversity.compare(
        q=q,
        reference=reference,
        pairs=pairs,
        size=size,
        repeats=repeats,
        permutations=permutations,
        confidence=confidence,
        group_weights=group_weights,
        similarity=similarity,
    )


def comparison_of(
    diversity: Diversity,
    *,
    q: Any,
    reference: Any,
    pairs: Any,
    size: Any,
    repeats: Any,
    permutations: Any,
    confidence: Any,
    group_weights: Any,
    similarity: Any,
) -> Comparison:
    """Compare the groups of a collection; see `compare`."""
    order, rng = parse_order(q), diversity.rng
    confidence = check_confidence(confidence)
    repeats = whole_number(repeats, "repeats")
    if not (0 <= as_number(permutations) < math.inf and as_number(permutations) % 1 == 0):
        raise InputError(
            f"permutations={brief(permutations)}; expected a whole number, or 0 for no tests.",
            option="permutations",
        )
    permutations = int(permutations)
    if group_weights not in ("size", "equal"):
        raise unknown("kind of group_weights", group_weights, ("size", "equal")).at(option="group_weights")
    check_flag(pairs, "pairs")
    if similarity is not None:
        check_flag(similarity, "similarity")
    with Progress("groups") as bar:
        groups = Groups(diversity)
        notes = _group_notes(groups)
        rarefied_size, size_notes = _choose_size(groups, size)
        comparable = (
            groups.sizes >= rarefied_size if rarefied_size is not None else np.diff(groups.members.starts) > 0
        )
        compared_pairs, pair_notes = choose_pairs(groups.labels, comparable, reference, bool(pairs))
        interval_notes = _why_no_intervals(
            rarefied_size, order, int(comparable.sum()), asked=reference is not None or bool(pairs)
        )
        notes += [*size_notes, *interval_notes]
        solved = solve_groups(groups.similarity, groups.members, [order], rng=rng)
        scores = solved.value[:, 0]
        shares = groups.mass if group_weights == "size" else (groups.mass > 0).astype(np.float64)
        shares = shares / shares.sum()
        bar.step(0.05, "all items")
        score_bounds = np.column_stack([solved.value, solved.low, solved.high])
        parts = partition(groups, shares, score_bounds, order)
        rarefied = None
        if rarefied_size is not None:
            rarefied = rarefy_groups(
                groups,
                scores,
                rarefied_size,
                order,
                repeats=repeats,
                jackknife=not interval_notes,
                rng=rng,
                report=lambda done: bar.step(0.2 + 0.2 * done, "rarefaction"),
            )
            notes += _rarefaction_notes(groups, rarefied)
        deals = permutations if rarefied_size is not None and rarefied_size >= MIN_SIZE else 0
        differences = compare_pairs(
            groups,
            scores if rarefied is None else rarefied.scores,
            rarefied,
            order,
            PairOptions(compared_pairs, deals, confidence, rng),
            [*pair_notes, *interval_notes],
            lambda done: bar.step(0.4 + 0.5 * done, "permutation tests"),
        )
        bar.step(0.9, "similarity of groups")
        group_similarity, similarity_notes = _group_similarity(groups, similarity)
        notes += similarity_notes
    low, high = _intervals(rarefied, confidence, len(scores))
    ranked = scores if rarefied is None else rarefied.scores
    return Comparison(
        labels=tuple(groups.labels),
        sizes=frozen(groups.sizes),
        scores=frozen(scores),
        low=frozen(solved.low[:, 0]),
        high=frozen(solved.high[:, 0]),
        size=rarefied_size,
        rarefied=frozen(np.full(len(scores), np.nan) if rarefied is None else ranked),
        rarefied_low=frozen(low),
        rarefied_high=frozen(high),
        used=frozen(np.zeros(len(scores), dtype=np.int64) if rarefied is None else rarefied.used),
        rank=frozen(_ranks(ranked)),
        alpha=parts.alpha,
        beta=parts.beta,
        beta_bounds=parts.bounds,
        gamma=parts.gamma,
        shares=frozen(shares),
        similarity=None if group_similarity is None else frozen(group_similarity),
        differences=differences,
        q=order,
        confidence=confidence,
        kernel=repr(groups.similarity.kernel),
        notes=tuple(notes),
    )


def _intervals(rarefied: Rarefied | None, confidence: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Confidence intervals of the rarefied scores, symmetric on a log scale; NaN where there are none."""
    if rarefied is None or rarefied.contributions is None or rarefied.second_differences is None:
        return np.full(count, np.nan), np.full(count, np.nan)
    margin = (
        t_quantile(confidence)
        * standard_error(rarefied.contributions, rarefied.second_differences)
        / rarefied.scores
    )
    margin = np.where(rarefied.nearly_uniform, np.nan, margin)
    return rarefied.scores * np.exp(-margin), rarefied.scores * np.exp(margin)


def _ranks(scores: np.ndarray) -> np.ndarray:
    """1 for the highest score; scores that are equal up to rounding share the better rank."""
    ranks = np.full(len(scores), np.nan)
    scored = np.flatnonzero(~np.isnan(scores))
    order = scored[np.argsort(-scores[scored], kind="stable")]
    rank = 0
    for i, g in enumerate(order.tolist()):
        if i == 0 or scores[order[i - 1]] - scores[g] > TIE_TOLERANCE * scores[g]:
            rank = i + 1
        ranks[g] = rank
    return ranks


def _group_similarity(groups: Groups, requested: bool | None) -> tuple[np.ndarray | None, list[Note]]:
    """How alike the groups are, or why that was not computed."""
    operations = overlap_cost(groups.similarity, groups.members)
    if requested or (
        requested is None and len(groups.labels) <= MANY_GROUPS and operations <= MAX_OVERLAP_COST
    ):
        return overlaps(groups.similarity, groups.members), []
    if requested is not None:
        return None, []
    note = Note(
        "similarity-not-computed",
        f"The similarity of the groups was not computed (by default it is for up to {MANY_GROUPS} groups, and where "
        "it is cheap).",
        {"limit": MANY_GROUPS},
        Advice("Pass {} to have it.", "similarity", "True", python_only=True),
    )
    return None, [note]


# ------------------------------------------------------------------------------------------------------- size and notes


def _choose_size(groups: Groups, size: Any) -> tuple[int | None, list[Note]]:
    """The common size (None with weights, which cannot be rarefied), and what there is to say about it."""
    sizes, labels = groups.sizes, groups.labels
    if groups.diversity.weighting == "weights":
        if size is not None:
            raise InputError(
                f"size={brief(size)} was given with weights, which are probabilities and no samples to draw from; "
                "expected counts=, or no size.",
                option="size",
            )
        return None, []
    notes = []
    if size is not None:
        chosen = whole_number(size, "size")
        if chosen > sizes.max():
            largest = brief(labels[int(sizes.argmax())])
            raise InputError(
                f"size={chosen:,} and the largest group, {largest}, has {sizes.max():,} items; expected a size up to "
                "that.",
                option="size",
            )
    else:
        of_two_or_more = sizes[sizes >= 2]
        smallest = int(of_two_or_more.min()) if len(of_two_or_more) else 1
        chosen = min(smallest, DEFAULT_SIZE)
        if chosen < smallest:
            notes.append(
                Note(
                    "common-size-capped",
                    f"All groups have {smallest:,} items or more; the common size is {DEFAULT_SIZE} by default, so "
                    "as not to take long.",
                    {"smallest": smallest, "size": chosen},
                    Advice("Pass {} for another.", "size"),
                )
            )
        elif chosen < MIN_SIZE and sizes.max() >= MIN_SIZE:
            label = labels[int(np.flatnonzero(sizes == smallest)[0])]
            notes.append(
                Note(
                    "common-size-of-smallest",
                    f"The smallest group of two items or more, {quoted(label)}, sets the common size to {chosen}.",
                    {"group": label, "size": chosen},
                    Advice("Pass {} to compare larger groups at more items.", "size"),
                )
            )
    below_size = [labels[g] for g in np.flatnonzero((sizes < chosen) & (sizes > 0)).tolist()]
    if below_size:
        text = (
            f"{_list_labels(below_size)} {'has' if len(below_size) == 1 else 'have'} fewer than {chosen:,} items, "
            "and so no rarefied score and no rank."
        )
        notes.append(Note("below-common-size", text, {"groups": below_size, "size": chosen}))
    return chosen, notes


def _group_notes(groups: Groups) -> list[Note]:
    """What there is to say about the groups as they are: empty ones, overlaps, broken records."""
    notes = []
    empty = [groups.labels[g] for g in np.flatnonzero(np.diff(groups.members.starts) == 0).tolist()]
    if empty:
        text = f"{_list_labels(empty)} {'is' if len(empty) == 1 else 'are'} empty."
        notes.append(Note("empty-groups", text, {"groups": empty}))
    if groups.shared:
        text = "Groups share items; an item of several groups counts in each of them."
        notes.append(Note("shared-items", text))
    left_out = groups.diversity.left_out
    if left_out:
        text = f"{left_out:,} {'record was' if left_out == 1 else 'records were'} left out on reading."
        notes.append(Note("left-out", text, {"records": left_out}))
    return notes


def _why_no_intervals(size: int | None, q: float, comparable: int, *, asked: bool) -> list[Note]:
    """Why there are no intervals (and tests); nothing where there are.

    Parameters
    ----------
    size : int or None
        The common size; None with weights.
    q : float
        The order.
    comparable : int
        How many groups can be compared.
    asked : bool
        Whether comparisons were asked for.
    """
    if size is None:
        text = (
            "Weights are probabilities and no samples: nothing is rarefied, and there are no intervals or tests. The "
            "groups are ranked by their scores as they are."
        )
        advice = Advice("For frequencies pass {}.", "counts", python_only=True)
        return [Note("weights-not-rarefied", text, advice=advice)]
    if size < MIN_SIZE:
        text = (
            f"A common size of {size} is too small for intervals and tests, which begin at {MIN_SIZE} items."
        )
        return [Note("no-intervals-of-few-items", text, {"size": size, "least": MIN_SIZE})]
    if q < MIN_ORDER:
        text = f"Orders below {MIN_ORDER} have no intervals, which would not hold what they promise; the tests do."
        return [Note("no-intervals-of-low-order", text, {"q": q, "least": MIN_ORDER})]
    if comparable > MANY_GROUPS and not asked:
        text = f"With more than {MANY_GROUPS} groups there are no intervals by default."
        advice = Advice("Pass {} to have them.", "reference")
        return [Note("no-intervals-of-many-groups", text, {"limit": MANY_GROUPS}, advice)]
    return []


def _rarefaction_notes(groups: Groups, rarefied: Rarefied) -> list[Note]:
    """Which groups were subsampled, and which have no intervals because their items are nearly all alike."""
    notes = []
    subsampled = (rarefied.used > 0) & (rarefied.used < groups.sizes)
    if subsampled.any():
        count, used = int(subsampled.sum()), int(rarefied.used[subsampled].min())
        text = (
            f"Of {count:,} large group{'s' * (count > 1)}, {used:,} random items or more were used for the rarefied "
            "scores."
        )
        notes.append(Note("large-groups-sampled", text, {"count": count, "used": used}))
    nearly_uniform = [groups.labels[g] for g in np.flatnonzero(rarefied.nearly_uniform).tolist()]
    if nearly_uniform and rarefied.contributions is not None:
        text = (
            f"The items of {_list_labels(nearly_uniform)} are nearly all alike, and intervals of such scores and of "
            "ratios with them would not hold; those of differences do."
        )
        notes.append(Note("no-intervals-of-like-items", text, {"groups": nearly_uniform}))
    return notes


def _list_labels(labels: list[Any]) -> str:
    """The first labels, and how many more there are."""
    names = ", ".join(map(quoted, labels[:3]))
    return names if len(labels) <= 3 else f"{names} and {len(labels) - 3:,} more groups"
