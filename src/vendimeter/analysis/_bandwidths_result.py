"""What `vendimeter.bandwidth` gives back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis._scale_curves import HIGH, LOW
from vendimeter.kernels import RBF, Kernel, Laplacian
from vendimeter.results.base import Result
from vendimeter.results.score import Score, number

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["SYMBOLS", "Bandwidths"]

RADIAL: dict[str, type[RBF] | type[Laplacian]] = {"sigma": RBF, "scale": Laplacian}
SYMBOLS = {"sigma": "σ", "scale": "scale"}


@dataclass(frozen=True, repr=False, eq=False)
class Bandwidths(Result):
    """Scores over a range of bandwidths, or under several kernels; and a bandwidth to take.

    Attributes
    ----------
    n : int
        How many items there are: the number of samples, or the sum of the counts.
    items : int
        How many of them the scores are of.
    q : float
        The order of the scores.
    most : float
        The score if no two different items were alike in the least: the number of items that differ, where all have
        the same weight.
    suggested : float
        The scale that is suggested; NaN where none is.
    score : Score or None
        The score at that scale.
    reason : str
        Why this scale, or why none.
    low, high : float
        The informative range: between these scales the score lies above 1.1 and below 0.9 of the highest. NaN where
        there is none, or kernels were compared.
    median : float
        The median distance of different items, which `RBF` and `Laplacian` take by default.
    median_score : float
        The score there.
    parameter : str
        The name of the scale: "sigma" of `RBF`, "scale" of `Laplacian`; empty where kernels were compared.
    names : tuple of str
        The kernel of each score.
    scales : ndarray
        The scale of each score, in rising order; empty where kernels were compared.
    scores : ndarray
        The scores.
    sensitivity : ndarray
        d log score / d log scale: by how many per cent the score changes for one per cent of the scale.
    """

    n: int
    items: int
    q: float
    most: float
    suggested: float
    score: Score | None
    reason: str
    low: float
    high: float
    median: float
    median_score: float
    parameter: str = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    scales: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    sensitivity: np.ndarray = field(repr=False)

    @property
    def kernel(self) -> Kernel | None:
        """The kernel with the scale that is suggested, ready for `vendimeter.score`; None where none is."""
        return None if math.isnan(self.suggested) else RADIAL[self.parameter](self.suggested)

    @property
    def informative(self) -> np.ndarray:
        """For each score, whether it is neither nearly 1 nor nearly the highest."""
        return (self.scores >= LOW) & (self.scores <= HIGH * self.most)

    def summary(self) -> str:
        """The suggestion with its reason, the informative range, the median, and what was computed on."""
        drawn = "" if self.items == self.n else f" Of {self.items:,} of {self.n:,} items, drawn at random."
        if not self.parameter:
            listed = ", ".join(
                f"{name}: {number(s)}" for name, s in zip(self.names, self.scores, strict=True)
            )
            return f"{listed}. {_sentence(self.reason)}{drawn}"
        symbol = SYMBOLS[self.parameter]
        text = (
            "No scale is suggested" if self.score is None else f"{symbol} = {self.suggested:.4g} is suggested"
        )
        if self.score is not None:
            text += f", with a score of {number(self.score)}"
        text += f": {self.reason}."
        if not math.isnan(self.low):
            text += (
                f" The score is informative, between {LOW:g} and {HIGH * self.most:,.4g}, from {symbol} = "
                f"{self.low:.3g} to {self.high:.3g}; at the median distance, {self.median:.4g}, it is "
                f"{number(self.median_score)}."
            )
        return text + drawn

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values ready for JSON, the score with its bounds."""
        kernel = self.kernel
        return super().to_dict() | {
            "q": "inf" if math.isinf(self.q) else self.q,
            "kernel": None if kernel is None else repr(kernel),
        }

    def _columns(self) -> dict[str, Any]:
        """One row a scale, or a kernel."""
        columns = {"score": self.scores, "informative": self.informative}
        if not self.parameter:
            return {"kernel": list(self.names), **columns}
        return {self.parameter: self.scales, **columns, "sensitivity": self.sensitivity}

    def plot(self, ax: Any = None) -> Display:
        """Draw the score against the scale, or a bar a kernel; see `vendimeter.plots`."""
        from vendimeter.plots.bandwidths import plot_bandwidths

        return plot_bandwidths(self, ax)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
