"""Groups side by side: compare."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vendimeter.analysis._common_size import Rarefied, quantile, rarefied, standard_error
from vendimeter.analysis._compared_groups import Groups, gathered
from vendimeter.analysis._comparison_notes import (
    LEAST,
    MANY,
    common_size,
    first_notes,
    no_intervals,
    used_notes,
)
from vendimeter.analysis._comparison_result import Comparison
from vendimeter.analysis._differences import Wanted, differences_of, pairs_of
from vendimeter.analysis._partition import overlap_cost, overlaps, partition
from vendimeter.data.collection import Collection
from vendimeter.data.devices import wide_mode
from vendimeter.errors import InputError, brief, unknown
from vendimeter.options import as_number, check_confidence, check_flag, check_rng, whole_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import frozen
from vendimeter.solvers.groups import SolvedGroups, solve_groups
from vendimeter.spectrum import parse_order

__all__ = ["Comparison", "compare"]

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
