"""What the analyses found, each computed once and when it is first asked for, on no more items than it can bear."""

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
from vendimeter.data.arrays import plain
from vendimeter.errors import UnansweredError, VendimeterError
from vendimeter.options import generator
from vendimeter.reports.sample import Part, Subject, is_narrow
from vendimeter.results.score import Profile, Score
from vendimeter.scoring import plan, score, score_groups
from vendimeter.similarity import Features
from vendimeter.solvers.groups import subset_scores
from vendimeter.spectrum.entropy import Answer

__all__ = ["Analyses", "Copies", "Removed"]

RAREFIED = (
    1024  # items whose matrix is worked on for the curve: its eigenvalues are found some thirty times over
)
WIDE, WIDEST = 1400, 2048  # features between which their matrix would take minutes there
SHARED = 50_000  # items of all collections, up to which copies are looked for across them
CURVES = 8  # collections that have a curve
TESTED = 20  # comparisons that are tested: with more, no adjusted p-value of 999 deals could be small
DEALS = 999
SUBSETS = 5  # of each group, for orders other than the first
MODES = 8
REMOVED = 3000  # items of which each is left out, where eigenvectors of their matrix are needed for it
WORK = 4e10  # operations for the same with features
CHEAP_SIDE, CHEAP_WORK = 1500, 4e9  # up to which that is done for every order


@dataclass(frozen=True)
class Copies:
    """The near copies of one collection."""

    part: Part
    found: Duplicates


@dataclass(frozen=True)
class Removed:
    """What items contribute: of all of them, or of a random sample."""

    items: np.ndarray
    found: dict[float, Contributions]  # by order


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
        self.unanswered = [] if self._is_exact(subject.parts) else [q for q in orders if q == 0]
        if orders[0] in self.unanswered:
            raise UnansweredError(
                f"q=0, the rank, needs all eigenvalues, which would take too long for {subject.n:,} items; expected "
                "fewer items (some of the samples, or --limit on the command line), or another order first, as q=1."
            )
        self.orders = [q for q in orders if q not in self.unanswered]
        self.main = self.orders[0]

    def _is_exact(self, parts: Sequence[Part]) -> bool:
        """Whether all eigenvalues are computed: order 0 would ask for them whatever that takes."""
        subject = self.subject
        found = [
            plan(part.items, subject.held, weights=part.weights, tol=subject.tol, rng=subject.rng)
            for part in parts
        ]
        return all(one.method == "exact" for one in found)

    def _score(self, items: np.ndarray, weights: np.ndarray | None, orders: Sequence[float]) -> Profile:
        subject = self.subject
        return score(
            items,
            subject.held,
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
        found = []
        for part in self.subject.parts:
            samples = part.samples
            left_out = getattr(getattr(samples, "skipped", None), "count", 0)
            profile = self._score(part.items, part.weights, orders)
            found.append(profile.noted(left_out=left_out) if left_out else profile)
        return found

    @property
    def score(self) -> Score:
        """The score of the first collection, of the first order."""
        return self.scores[0][self.main]

    @staticmethod
    def answer(profile: Profile, q: float) -> Answer | None:
        """The score of any order with its bounds, from the same spectrum; None where that has no answer."""
        if q in profile:
            found = profile[q]
            return Answer(float(found), *found.bounds)
        spectrum = next(iter(profile.values())).spectrum
        try:
            return None if spectrum is None else spectrum.score(q)
        except UnansweredError:
            return None

    # ------------------------------------------------------------------------------------------------- convergence

    @cached_property
    def curves(self) -> list[tuple[Part, Rarefaction | VendimeterError]]:
        """The curve of each collection, or why there is none."""
        found: list[tuple[Part, Rarefaction | VendimeterError]] = []
        for part in self.subject.parts[:CURVES]:
            try:
                found.append((part, self._curve(part)))
            except VendimeterError as error:
                found.append((part, error))
        return found

    def _curve(self, part: Part) -> Rarefaction:
        subject = self.subject
        items, weights = part.items, part.weights
        if self.is_thinned(part):
            chosen = generator(subject.rng, "report curve").choice(len(items), RAREFIED, replace=False)
            items = items[np.sort(chosen)]
        return rarefy(items, subject.held, q=self.main, weights=weights, most=RAREFIED, rng=subject.rng)

    def is_thinned(self, part: Part) -> bool:
        """Whether a curve is of a sample: features too many for their matrix, and too few for that of the items."""
        similarity = self.subject.similarity
        wide = isinstance(similarity, Features) and WIDE < similarity.width <= WIDEST
        return wide and len(part.items) > RAREFIED and part.weights is None

    # ------------------------------------------------------------------------------------------------------ groups

    @cached_property
    def comparison(self) -> Comparison | None:
        """The groups side by side."""
        subject = self.subject
        groups = subject.groups
        if groups is None or subject.labels is None:
            return None
        known = [plain(label) for label in groups.labels]
        reference = self.reference if self.reference in known else None
        return compare(
            np.arange(subject.n),
            subject.held,
            by=subject.labels,
            q=self.main,
            weights=subject.weights,
            reference=reference,
            permutations=DEALS if len(known) - 1 <= TESTED else 0,
            rng=subject.rng,
        )

    @cached_property
    def ranked(self) -> dict[float, np.ndarray]:
        """The scores of the groups at the common size, for every order; those of the first are the comparison's."""
        subject, comparison = self.subject, self.comparison
        assert comparison is not None
        assert subject.groups is not None
        found, others = {self.main: comparison.fair}, [q for q in self.orders if q != self.main]
        if not others:
            return found
        if comparison.size is None:  # weights: as they are
            labels, items = subject.labels, np.arange(subject.n)
            scores = score_groups(
                items, subject.held, by=labels, q=others, weights=subject.weights, rng=subject.rng
            ).scores
        else:
            scores = self._at_common_size(comparison.size, others)
        return found | {q: scores[:, i] for i, q in enumerate(others)}

    def _at_common_size(self, size: int, orders: list[float]) -> np.ndarray:
        groups = self.subject.groups
        assert groups is not None
        draws = generator(self.subject.rng, "report groups")
        subsets, owner = [], []
        for g in range(len(groups.labels)):
            own = groups.items[groups.starts[g] : groups.starts[g + 1]]
            for _ in range(1 if len(own) == size else SUBSETS if len(own) > size else 0):
                subsets.append(own if len(own) == size else draws.choice(own, size, replace=False))
                owner.append(g)
        scores = subset_scores(self.subject.similarity, subsets, orders, rng=self.subject.rng)
        found = np.full((len(groups.labels), len(orders)), np.nan)
        for g in set(owner):
            found[g] = scores[np.array(owner) == g].mean(axis=0)
        return found

    # ---------------------------------------------------------------------------------------- modes, copies, items

    @cached_property
    def modes(self) -> Modes:
        """The leading modes of all items."""
        subject = self.subject
        return modes(
            np.arange(subject.n),
            subject.held,
            k=MODES,
            by=subject.labels,
            weights=subject.weights,
            rng=subject.rng,
        )

    @cached_property
    def copies(self) -> list[Copies]:
        """The near copies in each collection, with what they cost."""
        return [Copies(part, self._copies(part, i)) for i, part in enumerate(self.subject.parts)]

    def _copies(self, part: Part, i: int) -> Duplicates:
        subject = self.subject
        found = duplicates(
            part.items,
            subject.held,
            threshold=self.threshold,
            weights=part.weights,
            scores=False,
            rng=subject.rng,
        )
        whole = self.scores[i][self.main]
        if not found.copies:
            return replace(found, score=whole, without=whole)
        weights = None
        if part.weights is not None:
            weights = part.weights[found.kept] / part.weights[found.kept].sum()
        without = self._score(part.items[found.kept], weights, [self.main])[self.main]
        return replace(found, score=whole, without=without)

    @cached_property
    def shared(self) -> np.ndarray | None:
        """How many items of each collection (rows) have a near copy in each other one, and in any other (last column).

        None where that would take long.
        """
        subject = self.subject
        if not subject.several or subject.n > SHARED:
            return None
        part_of = np.empty(subject.n, dtype=np.int64)
        for i, part in enumerate(subject.parts):
            part_of[part.items] = i
        try:
            found = duplicates(
                np.arange(subject.n),
                subject.held,
                threshold=self.threshold,
                weights=subject.weights,
                scores=False,
                rng=subject.rng,
            )
        except VendimeterError:
            return None
        counts = np.zeros((len(subject.parts), len(subject.parts) + 1), dtype=np.int64)
        for cluster in found.clusters:
            own = np.bincount(part_of[cluster], minlength=len(subject.parts))
            there = own > 0
            counts[:, :-1] += np.where(there[None, :] & ~np.eye(len(own), dtype=bool), own[:, None], 0)
            counts[:, -1] += own if there.sum() > 1 else 0
        return counts

    @cached_property
    def removed(self) -> Removed:
        """What items contribute to the score of all of them together."""
        subject, similarity = self.subject, self.subject.similarity
        narrow = is_narrow(similarity)
        side = similarity.width if narrow else 0  # type: ignore[attr-defined]
        most = int(WORK / side**2) if narrow else REMOVED
        items = subject.some(max(most, REMOVED), "contributions")
        cheap = len(items) * side**2 <= CHEAP_WORK if narrow else len(items) <= CHEAP_SIDE
        weights = subject.weights_at(items)
        found = {
            q: contributions(items, subject.held, q=q, weights=weights, rng=subject.rng)
            for q in (self.orders if cheap else [self.main])
        }
        return Removed(items, found)
