"""The analyses behind a report, each computed once, on demand, and on no more items than it can afford."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from vendimeter.analysis.comparison.comparison import Comparison, compare
from vendimeter.analysis.decomposition.contributions import Contributions, contributions
from vendimeter.analysis.eigenmodes import Modes, modes
from vendimeter.analysis.near_copies.near_copies import Duplicates, duplicates
from vendimeter.analysis.rarefaction.rarefaction import Rarefaction, rarefy
from vendimeter.data.arrays import to_python
from vendimeter.errors import UnansweredError, VendimeterError
from vendimeter.options import generator
from vendimeter.reports.sample import SampledCollection, Subject, is_narrow
from vendimeter.results.score import Profile, Score
from vendimeter.scoring import plan, score, score_groups
from vendimeter.similarity import Features
from vendimeter.solvers.groups import subset_scores
from vendimeter.spectrum.entropy import Answer

__all__ = ["Analyses", "Copies", "ItemContributions"]

CURVE_ITEMS = 1024  # items of the matrix of a rarefaction, whose eigenvalues are computed some thirty times
MIN_SLOW_WIDTH, MAX_SLOW_WIDTH = 1400, 2048  # numbers of features between which that would take minutes
MAX_SHARED_ITEMS = 50_000  # items of all collections, up to which copies are searched for across them
MAX_CURVES = 8  # collections that have a curve
# Comparisons up to which differences are tested: with more, no adjusted p-value of 999 permutations could be small.
MAX_TESTED = 20
PERMUTATIONS = 999
SUBSETS_PER_GROUP = 5  # for orders other than the first
MODE_COUNT = 8
MAX_LEFT_OUT = 3000  # items that are left out in turn, where this takes eigenvectors of the similarity matrix
MAX_WORK = 4e10  # operations for the same with features
CHEAP_ITEMS, CHEAP_WORK = 1500, 4e9  # items, and operations, up to which that is done for every order


@dataclass(frozen=True)
class Copies:
    """The near copies of one collection."""

    collection: SampledCollection
    duplicates: Duplicates


@dataclass(frozen=True)
class ItemContributions:
    """What each item contributes to the score, for all items or a random sample."""

    items: np.ndarray
    by_order: dict[float, Contributions]


class Analyses:
    """The analyses of a report.

    Parameters
    ----------
    subject : Subject
        What the report is about.
    orders : list of float
        The orders that were asked for, the first of them first.
    threshold : float
        The similarity of near copies.
    reference : hashable, optional
        The name of the group, or collection, that others are compared with.
    """

    def __init__(self, subject: Subject, orders: Sequence[float], threshold: float, reference: Any = None):
        self.subject, self.threshold, self.reference = subject, threshold, reference
        self.unanswered = [] if self._is_exact(subject.collections) else [q for q in orders if q == 0]
        if orders[0] in self.unanswered:
            raise UnansweredError(
                f"q=0, the rank, needs all eigenvalues, which would take too long for {subject.n:,} items; expected "
                "fewer items (some of the samples, or --limit on the command line), or another order first, as q=1."
            )
        self.orders = [q for q in orders if q not in self.unanswered]
        self.first_order = self.orders[0]

    def _is_exact(self, collections: Sequence[SampledCollection]) -> bool:
        """Whether all eigenvalues are computed: order 0 would ask for them whatever that takes."""
        subject = self.subject
        plans = [
            plan(
                collection.items,
                subject.position_kernel,
                weights=collection.weights,
                tol=subject.tol,
                rng=subject.rng,
            )
            for collection in collections
        ]
        return all(solver_plan.method == "exact" for solver_plan in plans)

    def _score(self, items: np.ndarray, weights: np.ndarray | None, orders: Sequence[float]) -> Profile:
        subject = self.subject
        return score(
            items,
            subject.position_kernel,
            q=list(orders),
            weights=weights,
            tol=subject.tol,
            rng=subject.rng,
            progress=False,
        )

    # ------------------------------------------------------------------------------------------------------ scores

    @cached_property
    def scores(self) -> list[Profile]:
        """The scores of each collection, of all orders; order 1 is there even if it was not asked for."""
        orders = self.orders if 1.0 in self.orders else [*self.orders, 1.0]
        profiles = []
        for collection in self.subject.collections:
            samples = collection.samples
            left_out = getattr(getattr(samples, "skipped", None), "count", 0)
            profile = self._score(collection.items, collection.weights, orders)
            profiles.append(profile.noted(left_out=left_out) if left_out else profile)
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
    def curves(self) -> list[tuple[SampledCollection, Rarefaction | VendimeterError]]:
        """The curve of each collection, or why there is none."""
        by_collection: list[tuple[SampledCollection, Rarefaction | VendimeterError]] = []
        for collection in self.subject.collections[:MAX_CURVES]:
            try:
                by_collection.append((collection, self._curve(collection)))
            except VendimeterError as error:
                by_collection.append((collection, error))
        return by_collection

    def _curve(self, collection: SampledCollection) -> Rarefaction:
        subject = self.subject
        items, weights = collection.items, collection.weights
        if self.is_subsampled(collection):
            drawn = generator(subject.rng, "report curve").choice(len(items), CURVE_ITEMS, replace=False)
            items = items[np.sort(drawn)]
        return rarefy(
            items,
            subject.position_kernel,
            q=self.first_order,
            weights=weights,
            most=CURVE_ITEMS,
            rng=subject.rng,
        )

    def is_subsampled(self, collection: SampledCollection) -> bool:
        """Whether a curve is of a sample: features too many for their matrix, and too few for that of the items."""
        similarity = self.subject.similarity
        wide = isinstance(similarity, Features) and MIN_SLOW_WIDTH < similarity.width <= MAX_SLOW_WIDTH
        return wide and len(collection.items) > CURVE_ITEMS and collection.weights is None

    # ------------------------------------------------------------------------------------------------------ groups

    @cached_property
    def comparison(self) -> Comparison | None:
        """The groups side by side."""
        subject = self.subject
        groups = subject.groups
        if groups is None or subject.labels is None:
            return None
        labels = [to_python(label) for label in groups.labels]
        reference = self.reference if self.reference in labels else None
        return compare(
            np.arange(subject.n),
            subject.position_kernel,
            by=subject.labels,
            q=self.first_order,
            weights=subject.weights,
            reference=reference,
            permutations=PERMUTATIONS if len(labels) - 1 <= MAX_TESTED else 0,
            rng=subject.rng,
        )

    @cached_property
    def group_scores(self) -> dict[float, np.ndarray]:
        """The scores of the groups at the common size, for every order; those of the first are the comparison's."""
        subject, comparison = self.subject, self.comparison
        assert comparison is not None
        assert subject.groups is not None
        by_order = {self.first_order: comparison.fair}
        others = [q for q in self.orders if q != self.first_order]
        if not others:
            return by_order
        if comparison.size is None:  # weights: as they are
            labels, items = subject.labels, np.arange(subject.n)
            scores = score_groups(
                items, subject.position_kernel, by=labels, q=others, weights=subject.weights, rng=subject.rng
            ).scores
        else:
            scores = self._rarefied_scores(comparison.size, others)
        return by_order | {q: scores[:, i] for i, q in enumerate(others)}

    def _rarefied_scores(self, size: int, orders: list[float]) -> np.ndarray:
        groups = self.subject.groups
        assert groups is not None
        draws = generator(self.subject.rng, "report groups")
        subsets, owner = [], []
        for g in range(len(groups.labels)):
            members = groups.items[groups.starts[g] : groups.starts[g + 1]]
            for _ in range(1 if len(members) == size else SUBSETS_PER_GROUP if len(members) > size else 0):
                subsets.append(
                    members if len(members) == size else draws.choice(members, size, replace=False)
                )
                owner.append(g)
        scores = subset_scores(self.subject.similarity, subsets, orders, rng=self.subject.rng)
        means = np.full((len(groups.labels), len(orders)), np.nan)
        for g in set(owner):
            means[g] = scores[np.array(owner) == g].mean(axis=0)
        return means

    # ---------------------------------------------------------------------------------------- modes, copies, items

    @cached_property
    def modes(self) -> Modes:
        """The leading modes of all items."""
        subject = self.subject
        return modes(
            np.arange(subject.n),
            subject.position_kernel,
            k=MODE_COUNT,
            by=subject.labels,
            weights=subject.weights,
            rng=subject.rng,
        )

    @cached_property
    def copies(self) -> list[Copies]:
        """The near copies in each collection, with what they cost."""
        return [
            Copies(collection, self._find_copies(collection, i))
            for i, collection in enumerate(self.subject.collections)
        ]

    def _find_copies(self, collection: SampledCollection, i: int) -> Duplicates:
        subject = self.subject
        near_copies = duplicates(
            collection.items,
            subject.position_kernel,
            threshold=self.threshold,
            weights=collection.weights,
            scores=False,
            rng=subject.rng,
        )
        full_score = self.scores[i][self.first_order]
        if not near_copies.copies:
            return replace(near_copies, score=full_score, without=full_score)
        weights = None
        if collection.weights is not None:
            weights = collection.weights[near_copies.kept] / collection.weights[near_copies.kept].sum()
        kept_profile = self._score(collection.items[near_copies.kept], weights, [self.first_order])
        return replace(near_copies, score=full_score, without=kept_profile[self.first_order])

    @cached_property
    def shared_counts(self) -> np.ndarray | None:
        """How many items of each collection (rows) have a near copy in each other one, and in any other (last column).

        None where that would take long.
        """
        subject = self.subject
        if not subject.has_several or subject.n > MAX_SHARED_ITEMS:
            return None
        collection_of = np.empty(subject.n, dtype=np.int64)
        for i, collection in enumerate(subject.collections):
            collection_of[collection.items] = i
        try:
            near_copies = duplicates(
                np.arange(subject.n),
                subject.position_kernel,
                threshold=self.threshold,
                weights=subject.weights,
                scores=False,
                rng=subject.rng,
            )
        except VendimeterError:
            return None
        copies_shared = np.zeros((len(subject.collections), len(subject.collections) + 1), dtype=np.int64)
        for cluster in near_copies.clusters:
            cluster_counts = np.bincount(collection_of[cluster], minlength=len(subject.collections))
            is_present = cluster_counts > 0
            copies_shared[:, :-1] += np.where(
                is_present[None, :] & ~np.eye(len(cluster_counts), dtype=bool), cluster_counts[:, None], 0
            )
            copies_shared[:, -1] += cluster_counts if is_present.sum() > 1 else 0
        return copies_shared

    @cached_property
    def contributions(self) -> ItemContributions:
        """What items contribute to the score of all of them together."""
        subject, similarity = self.subject, self.subject.similarity
        narrow = is_narrow(similarity)
        width = similarity.width if narrow else 0  # type: ignore[attr-defined]
        affordable = int(MAX_WORK / width**2) if narrow else MAX_LEFT_OUT
        items = subject.sample_positions(max(affordable, MAX_LEFT_OUT), "contributions")
        cheap = len(items) * width**2 <= CHEAP_WORK if narrow else len(items) <= CHEAP_ITEMS
        weights = subject.weights_at(items)
        by_order = {
            q: contributions(items, subject.position_kernel, q=q, weights=weights, rng=subject.rng)
            for q in (self.orders if cheap else [self.first_order])
        }
        return ItemContributions(items, by_order)
