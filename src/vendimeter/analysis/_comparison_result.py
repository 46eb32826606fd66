"""What comparing groups gives back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis._differences import Differences
from vendimeter.errors import UnansweredError, group_name
from vendimeter.results.base import Result
from vendimeter.results.groups import _plain
from vendimeter.results.score import Score, data_frame, number, order_name, percentage

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["Comparison"]


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
