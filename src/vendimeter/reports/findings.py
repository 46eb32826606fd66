"""What the sections of a report tell, each computed once, on demand, and on no more items than it can afford."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from vendimeter.analysis.comparison.comparison import Comparison
from vendimeter.analysis.decomposition.contributions import Contributions
from vendimeter.analysis.eigenmodes import Modes
from vendimeter.analysis.near_copies.near_copies import Duplicates
from vendimeter.analysis.rarefaction.rarefaction import Rarefaction
from vendimeter.data.arrays import to_python
from vendimeter.diversity import Diversity
from vendimeter.errors import UnansweredError, VendimeterError
from vendimeter.options import generator
from vendimeter.reports.sample import DENSE_ITEMS, Part, Sample, is_narrow
from vendimeter.results.groups import Mean
from vendimeter.results.score import Profile, Score
from vendimeter.similarity import Features, Pairwise
from vendimeter.solvers.groups import subset_scores
from vendimeter.spectrum.entropy import Answer

__all__ = ["Copies", "Findings", "ItemContributions"]

CURVE_ITEMS = 1024  # items of the matrix of a rarefaction, whose eigenvalues are computed some thirty times
MIN_SLOW_WIDTH, MAX_SLOW_WIDTH = 1400, 2048  # numbers of features between which that would take minutes
MAX_SHARED_ITEMS = 50_000  # items of all collections, up to which copies are searched for across them
MAX_CURVES = 8  # collections that have a curve
# Comparisons up to which differences are tested: with more, no adjusted p-value of 999 permutations could be small.
MAX_TESTED = 20
PERMUTATIONS = 999
SUBSETS_PER_GROUP = 5  # for orders other than the first
MODE_COUNT = 8
MAX_REMOVED = 3000  # items that are removed in turn, where this takes eigenvectors of the similarity matrix
MAX_WORK = 4e10  # operations for the same with features
CHEAP_ITEMS, CHEAP_WORK = 1500, 4e9  # items, and operations, up to which that is done for every order


@dataclass(frozen=True)
class Copies:
    """The near copies of one collection."""

    part: Part
    duplicates: Duplicates


@dataclass(frozen=True)
class ItemContributions:
    """What each item contributes to the score, for all items or a random sample: their positions, and figures."""

    items: np.ndarray
    by_order: dict[float, Contributions]


class Findings:
    """What several sections tell of the items that are looked at.

    Parameters
    ----------
    sample : Sample
        The items.
    orders : list of float
        The orders that were asked for, the first of them first.
    threshold : float
        The similarity of near copies.
    reference : hashable, optional
        The name of the group, or collection, that others are compared with.
    """

    def __init__(self, sample: Sample, orders: Sequence[float], threshold: float, reference: Any = None):
        self.sample, self.threshold, self.reference = sample, threshold, reference
        self.diversity, self.parts = sample.diversity, sample.parts
        if isinstance(self.diversity.similarity, Pairwise) and self.diversity.n <= DENSE_ITEMS:
            _ = self.diversity.subsets  # all similarities at once, which everything else only looks up
        self.unanswered = [] if self._is_exact() else [q for q in orders if q == 0]
        if orders[0] in self.unanswered:
            raise UnansweredError(
                f"q=0, the rank, needs all eigenvalues, which would take too long for {self.diversity.n:,} items; "
                "expected fewer items (some of the samples, or --limit on the command line), or another order first, "
                "as q=1."
            )
        self.orders = [q for q in orders if q not in self.unanswered]
        self.first_order = self.orders[0]

    def _is_exact(self) -> bool:
        """Whether all eigenvalues are computed: order 0 would ask for them whatever that takes."""
        return all(part.diversity.plan(tol=self.sample.tol).method == "exact" for part in self.parts)

    @property
    def has_several(self) -> bool:
        """Whether there are several collections."""
        return len(self.parts) > 1

    @property
    def are_lists(self) -> bool:
        """Whether the groups are lists of texts, each by itself."""
        return self.sample.lists is not None

    # ------------------------------------------------------------------------------------------------------ scores

    @cached_property
    def scores(self) -> list[Profile]:
        """The scores of each collection, of all orders; order 1 is there even if it was not asked for."""
        orders = self.orders if 1.0 in self.orders else [*self.orders, 1.0]
        began, profiles = time.perf_counter(), []
        # All eigenvalues come with the eigenvectors, where these will be needed for all items anyway.
        if self._removed[0] is self.diversity:
            with suppress(VendimeterError):
                self.diversity.decomposition()
        for part in self.parts:
            profile = part.diversity.score(orders, tol=self.sample.tol, progress=False)
            if not self.has_several:
                profile = profile.noted(seconds=round(time.perf_counter() - began, 4))
            profiles.append(profile.noted(left_out=part.left_out) if part.left_out else profile)
        return profiles

    @property
    def score(self) -> Score:
        """The score of the first collection, of the first order."""
        return self.scores[0][self.first_order]

    @staticmethod
    def answer(profile: Profile, q: float) -> Answer | None:
        """The score of any order with its bounds, from the same spectrum; None where that has no answer."""
        if q in profile:
            score = profile[q]
            return Answer(float(score), *score.bounds)
        spectrum = next(iter(profile.values())).spectrum
        try:
            return None if spectrum is None else spectrum.score(q)
        except UnansweredError:
            return None

    # ------------------------------------------------------------------------------------------------- convergence

    @cached_property
    def curves(self) -> list[tuple[Part, Rarefaction | VendimeterError]]:
        """The curve of each collection, or why there is none."""
        curves: list[tuple[Part, Rarefaction | VendimeterError]] = []
        for part in self.parts[:MAX_CURVES]:
            try:
                curves.append((part, self._curve(part)))
            except VendimeterError as error:
                curves.append((part, error))
        return curves

    def _curve(self, part: Part) -> Rarefaction:
        diversity = part.diversity
        if self.is_subsampled(part):
            drawn = generator(diversity.rng, "report curve").choice(diversity.n, CURVE_ITEMS, replace=False)
            diversity = diversity.take(np.sort(drawn))
        return diversity.rarefy(q=self.first_order, most=CURVE_ITEMS)

    def is_subsampled(self, part: Part) -> bool:
        """Whether a curve is of a sample: features too many for their matrix, and too few for that of the items."""
        similarity = self.diversity.similarity
        wide = isinstance(similarity, Features) and MIN_SLOW_WIDTH < similarity.width <= MAX_SLOW_WIDTH
        return wide and part.diversity.n > CURVE_ITEMS and part.diversity.weights is None

    # ------------------------------------------------------------------------------------------------------ groups

    @cached_property
    def comparison(self) -> Comparison | None:
        """The groups side by side."""
        groups = self.sample.groups
        if groups is None:
            return None
        labels = [to_python(label) for label in groups.labels]
        return self.diversity.compare(
            q=self.first_order,
            reference=self.reference if self.reference in labels else None,
            permutations=PERMUTATIONS if len(labels) - 1 <= MAX_TESTED else 0,
        )

    @cached_property
    def group_scores(self) -> dict[float, np.ndarray]:
        """The scores of the groups at the common size, for every order; those of the first are the comparison's."""
        comparison = self.comparison
        assert comparison is not None
        by_order = {self.first_order: comparison.fair}
        others = [q for q in self.orders if q != self.first_order]
        if not others:
            return by_order
        if comparison.size is None:  # weights: as they are
            scores = self.diversity.group_scores(others).scores
        else:
            scores = self._rarefied_scores(comparison.size, others)
        return by_order | {q: scores[:, i] for i, q in enumerate(others)}

    def _rarefied_scores(self, size: int, orders: list[float]) -> np.ndarray:
        groups = self.diversity.groups
        assert groups is not None
        draws = generator(self.diversity.rng, "report groups")
        subsets, weights, owner = [], [], []
        for g in range(len(groups.labels)):
            part = slice(groups.starts[g], groups.starts[g + 1])
            copies = groups.items[part]
            if groups.weights is not None:  # of counts: each copy may be drawn
                copies = np.repeat(copies, np.rint(groups.weights[part] * groups.sizes[g]).astype(np.int64))
            for _ in range(1 if len(copies) == size else SUBSETS_PER_GROUP if len(copies) > size else 0):
                drawn = copies if len(copies) == size else draws.choice(copies, size, replace=False)
                items, counts = np.unique(drawn, return_counts=True)
                subsets.append(drawn if groups.weights is None else items)
                weights.append(counts / size)
                owner.append(g)
        scores = subset_scores(
            self.diversity.subsets,
            subsets,
            orders,
            None if groups.weights is None else weights,
            rng=self.diversity.rng,
        )
        means = np.full((len(groups.labels), len(orders)), np.nan)
        for g in set(owner):
            means[g] = scores[np.array(owner) == g].mean(axis=0)
        return means

    @cached_property
    def mean_of_lists(self) -> Mean:
        """The mean score of the lists of texts, at the first order."""
        return self.diversity.group_scores(self.first_order).mean().means[0]

    # ---------------------------------------------------------------------------------------- modes, copies, items

    @cached_property
    def modes(self) -> Modes:
        """The leading modes of all items."""
        return self.diversity.modes(k=MODE_COUNT)

    @cached_property
    def copies(self) -> list[Copies]:
        """The near copies in each collection, with what they cost."""
        return [
            Copies(part, self._find_copies(part, profile[self.first_order]))
            for part, profile in zip(self.parts, self.scores, strict=True)
        ]

    def _find_copies(self, part: Part, score: Score) -> Duplicates:
        near_copies = part.diversity.duplicates(threshold=self.threshold, scores=False)
        if not near_copies.copies:
            return replace(near_copies, score=score, without=score)
        others = part.diversity.take(near_copies.kept)
        without = others.score(self.first_order, tol=self.sample.tol, progress=False)
        return replace(near_copies, score=score, without=without)

    @cached_property
    def shared_counts(self) -> np.ndarray | None:
        """How many items of each collection (rows) have a near copy in each other one, and in any other (last column).

        None where that would take long.
        """
        if not self.has_several or self.diversity.n > MAX_SHARED_ITEMS:
            return None
        part_of = np.empty(self.diversity.n, dtype=np.int64)
        for i, part in enumerate(self.parts):
            part_of[part.positions] = i
        try:
            near_copies = self.diversity.duplicates(threshold=self.threshold, scores=False)
        except VendimeterError:
            return None
        copies_shared = np.zeros((len(self.parts), len(self.parts) + 1), dtype=np.int64)
        for cluster in near_copies.clusters:
            cluster_counts = np.bincount(part_of[cluster], minlength=len(self.parts))
            is_present = cluster_counts > 0
            copies_shared[:, :-1] += np.where(
                is_present[None, :] & ~np.eye(len(cluster_counts), dtype=bool), cluster_counts[:, None], 0
            )
            copies_shared[:, -1] += cluster_counts if is_present.sum() > 1 else 0
        return copies_shared

    @cached_property
    def _removed(self) -> tuple[Diversity, np.ndarray, bool]:
        """The items that are removed in turn, their positions, and whether that is cheap enough for every order."""
        diversity, similarity = self.diversity, self.diversity.similarity
        width = similarity.width if is_narrow(similarity) else 0  # type: ignore[attr-defined]
        most = max(int(MAX_WORK / width**2), MAX_REMOVED) if width else MAX_REMOVED
        items, weighted = np.arange(diversity.n), np.flatnonzero(diversity.shares)
        if len(weighted) > most:
            draws = generator(diversity.rng, "report contributions")
            items = np.sort(draws.choice(weighted, most, replace=False))
            diversity = diversity.take(items)
        is_cheap = len(items) * width**2 <= CHEAP_WORK if width else len(items) <= CHEAP_ITEMS
        return diversity, items, is_cheap

    @cached_property
    def contributions(self) -> ItemContributions:
        """What items contribute to the score of all of them together."""
        diversity, items, is_cheap = self._removed
        orders = self.orders if is_cheap else [self.first_order]
        return ItemContributions(items, {q: diversity.contributions(q=q) for q in orders})
