"""Bandwidth selection: how the score depends on the scale of a kernel, or on the kernel, and where it is informative.

The distances, the score as a function of the scale, and the rule for a suggestion are in `scale_curves`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.scale_curves import (
    HIGH,
    LOW,
    Curve,
    Suggestion,
    default_scales,
    distances,
    informative_range,
    sensitivity,
    suggest,
)
from vendimeter.data.arrays import as_rows
from vendimeter.data.devices import select, to_host
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError
from vendimeter.kernels import RBF, Kernel, Laplacian, as_kernel
from vendimeter.messages import brief
from vendimeter.options import COSINE, SEED, as_number, generator, whole_number
from vendimeter.present.notes import Note
from vendimeter.present.numbers import short_number
from vendimeter.present.progress import Progress
from vendimeter.present.text import printable
from vendimeter.results.base import Result, frozen
from vendimeter.results.score import Score, scored
from vendimeter.similarity import Matrix
from vendimeter.solvers.options import Solver
from vendimeter.spectrum import UNIT, parse_orders
from vendimeter.spectrum.entropy import hill

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["SYMBOLS", "Bandwidths", "bandwidth"]


KERNEL_CLASSES: dict[str, type[RBF] | type[Laplacian]] = {"sigma": RBF, "scale": Laplacian}
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
    reason : Note
        Why this scale ("plateau" or "contrast"), or why none: "alike", "saturated", "identical", or "kernels" where
        kernels were compared.
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
    reason: Note
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
        return None if math.isnan(self.suggested) else KERNEL_CLASSES[self.parameter](self.suggested)

    @property
    def informative(self) -> np.ndarray:
        """For each score, whether it is neither nearly 1 nor nearly the highest."""
        return (self.scores >= LOW) & (self.scores <= HIGH * self.most)

    def summary(self) -> str:
        """The suggestion with its reason, the informative range, the median, and what was computed on."""
        sampled = "" if self.items == self.n else f" Of {self.items:,} of {self.n:,} items, drawn at random."
        if not self.parameter:
            listed = ", ".join(
                f"{name}: {short_number(s)}" for name, s in zip(self.names, self.scores, strict=True)
            )
            return f"{listed}. {self.reason}{sampled}"
        symbol = SYMBOLS[self.parameter]
        text = (
            "No scale is suggested" if self.score is None else f"{symbol} = {self.suggested:.4g} is suggested"
        )
        if self.score is not None:
            text += f", with a score of {short_number(self.score)}"
        text += f". {self.reason}"
        if not math.isnan(self.low):
            text += (
                f" The score is informative, between {LOW:g} and {HIGH * self.most:,.4g}, from {symbol} = "
                f"{self.low:.3g} to {self.high:.3g}; at the median distance, {self.median:.4g}, it is "
                f"{short_number(self.median_score)}."
            )
        return text + sampled

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values ready for JSON, the score with its bounds."""
        kernel = self.kernel
        return super().to_dict() | {"kernel": None if kernel is None else repr(kernel)}

    def _columns(self) -> dict[str, Any]:
        """One row a scale, or a kernel."""
        columns = {"score": self.scores, "informative": self.informative}
        if not self.parameter:
            return {"kernel": list(self.names), **columns}
        return {self.parameter: self.scales, **columns, "sensitivity": self.sensitivity}

    def plot(self, ax: Any = None) -> Display:
        """Draw the score against the scale, or a bar a kernel; see `vendimeter.plots`."""
        from vendimeter.plots.curves import plot_bandwidths

        return plot_bandwidths(self, ax)


def bandwidth(
    samples: Any,
    kernel: Any = "rbf",
    *,
    scales: Any = None,
    kernels: Any = None,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    items: int = 1000,
    rng: int = SEED,
) -> Bandwidths:
    """How the score depends on the bandwidth of a kernel, where it says something, and which bandwidth to take.

    At a small scale every item is different from all others and the score is n; at a large one all are alike and it is
    1. Neither says anything. In between, the score counts what differs by more than the scale.

    Parameters
    ----------
    samples : array, list, Collection or Diversity
        The items, as for `vendimeter.score`; rows of numbers for a range of scales. Of a `Diversity` the samples and
        their weights are taken, and not its kernel, which is what varies here.
    kernel : "rbf", "laplacian", RBF or Laplacian
        The kernel whose scale is varied; a scale that it has already does not matter.
    scales : list of float, optional
        The scales. By default 28, evenly spread on a logarithmic axis from where nearly all items count as different
        to where nearly all count as one.
    kernels : list or mapping, optional
        Kernels to compare instead, as for `vendimeter.score`, such as ``[NGram(1, 1), NGram(1, 4)]``; the keys of a
        mapping name them.
    q : float or str
        The order of the scores, above 0.
    weights, counts : array of shape (n,), optional
        Probabilities, or frequencies, of the items, as for `vendimeter.score`.
    items : int
        How many items the scores are of, at most; of more, so many are drawn at random, by their weights if they have
        any.
    rng : int
        Seed of that draw, and of what kernels draw.

    Returns
    -------
    Bandwidths
        `scales`, `scores`, `sensitivity`, the informative range from `low` to `high`, `suggested` with its `reason`,
        `kernel` with that scale, `median`, and a picture.

    Notes
    -----
    The rule for the suggestion: where items form groups that lie apart, the score falls to about the number of groups,
    stays there over a range of scales, and falls on when groups begin to merge. If there is such a plateau within the
    informative range, on which the score changes at most half as fast as somewhere on both sides of it, the
    flattest place of the widest one is suggested. Otherwise no scale is singled out by groups, and the one is suggested
    at which the similarities of two different items vary most. That depends on the distribution of distances and hardly
    on how many items there are.

    For Gaussian blobs whose centres lie more than about ten of their radii apart the score at the suggestion came out
    as 0.9 to 1.3 times the number of blobs (2 to 30 of them, in 2 to 50 dimensions), where the median distance gave
    1.7 to 5.5. Blobs nearer than that, and the Laplacian kernel, show no plateau.

    It can tell scales at which the score is saturated from others, and whether groups single one out. It cannot tell
    which differences matter: how columns are scaled against each other, which encoder made the vectors, or whether a
    kernel of distances is the right one. That is for those who know the data. Scores under different scales cannot
    be compared: choose one scale, on a reference or on all collections together, and pass it to all of them.

    Distances are computed once; each scale is then an exponential and an eigensolve of at most `items` items, about
    a tenth of a second for 1,000.

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023, its limitations: a similarity that is too sensitive makes
    all sets look diverse, one that is not sensitive enough none.
    Garreau, Jitkrittum, Kanagawa: Large sample analysis of the median heuristic, arXiv:1707.07269, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[0, 0], [9, 0], [0, 9], [9, 9]])
    >>> points = np.concatenate([centre + 0.1 * rng.standard_normal((40, 2)) for centre in centres])
    >>> found = vm.bandwidth(points)
    >>> round(found.score, 1), round(found.median_score, 1)
    (4.1, 2.7)
    >>> round(vm.score(points, found.kernel), 1)
    4.1
    >>> captions = ["a dog runs", "a dog runs fast", "two boats at sea"]
    >>> found = vm.bandwidth(captions, kernels=[vm.kernels.NGram(1, 1), vm.kernels.NGram(1, 2)])
    >>> found.scores.round(2)
    array([2.23, 2.27])
    """
    orders, several = parse_orders(q)
    if several or orders[0] == 0:
        raise InputError(
            f"q={brief(q)}; expected one order above 0: at 0, every scale gives the number of items."
        )
    max_items = whole_number(items, "items")
    if kernels is not None and scales is not None:
        raise InputError("both scales and kernels were given; expected one of them.")
    named_kernel = COSINE if isinstance(samples, Diversity) else kernel  # varied, and not that of a Diversity
    diversity = diversity_of(samples, named_kernel, weights=weights, counts=counts, rng=rng)
    with diversity.asked():
        if kernels is not None:
            return _compare_kernels(diversity, _named_kernels(kernels), orders[0], max_items)
        return _vary_scale(diversity, _kernel_class(kernel), scales, orders[0], max_items)


# ---------------------------------------------------------------------------------------------------- a range of scales


def _kernel_class(kernel: Any) -> type[RBF] | type[Laplacian]:
    """The class of a kernel with a bandwidth; its parameters do not matter."""
    parsed = as_kernel(kernel)
    if not isinstance(parsed, RBF | Laplacian):
        raise InputError(
            f"kernel={brief(kernel)} has no bandwidth to vary; expected 'rbf' or 'laplacian'. To compare other "
            "kernels, or bandwidths within a sum or product, pass them as kernels=[…]."
        )
    return type(parsed)


def _check_scales(scales: Any) -> np.ndarray:
    """Check the scales; return them in rising order, each once."""
    values = scales.tolist() if hasattr(scales, "tolist") else scales
    if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
        raise InputError(f"scales={brief(scales)}; expected a list of numbers above 0, such as [0.1, 1, 10].")
    numbers = [as_number(scale) for scale in values]
    invalid = next((i for i, scale in enumerate(numbers) if not 0 < scale < math.inf), None)
    if invalid is not None:
        raise InputError(f"scales[{invalid}] is {brief(values[invalid])}; expected a number above 0.")
    return np.unique(numbers)


def _vary_scale(
    diversity: Diversity, kind: type[RBF] | type[Laplacian], scales: Any, q: float, items: int
) -> Bandwidths:
    """Score the items under a kernel at several scales, and suggest one."""
    grid = None if scales is None else _check_scales(scales)
    at_median = diversity.with_kernel(kind("median"), solver=Solver())
    median = float(getattr(at_median.similarity.kernel, kind.parameter))
    positions, probability, size = _sample_items(at_median, items)
    rows = as_rows(diversity.samples, kernel=f"the {kind.name} kernel", scalars=True, dense=True)
    rows, group = np.unique(to_host(select(rows, positions)), axis=0, return_inverse=True)
    row_weights = np.bincount(group.reshape(-1), probability)
    curve = Curve(distances(rows, kind.metric), row_weights, 2 if kind is RBF else 1)
    highest = float(hill(row_weights, q))
    if grid is None:
        grid = default_scales(curve) if len(rows) > 1 else np.array([median])

    def score_at(scale: float) -> Score:
        rounding = (rows.shape[1] + 8) * UNIT
        matrix = Matrix(curve.kernel(scale), trusted=True, rounding=rounding, kernel=kind(scale))
        return scored(matrix, row_weights, q, size, rng=diversity.rng)

    with Progress("bandwidths") as progress:
        scores = []
        for i, scale in enumerate(grid.tolist()):
            progress.step(i / len(grid))
            scores.append(float(score_at(scale)))
    values = np.array(scores)
    suggestion = suggest(curve, grid, values, highest) if len(rows) > 1 else Suggestion(math.nan, "identical")
    low, high = informative_range(grid, values, highest)
    return Bandwidths(
        at_median.count,
        size,
        q,
        highest,
        suggestion.scale,
        None if math.isnan(suggestion.scale) else score_at(suggestion.scale),
        _reason(suggestion, highest, SYMBOLS[kind.parameter]),
        low,
        high,
        median,
        float(score_at(median)),
        kind.parameter,
        tuple(repr(kind(scale)) for scale in grid.tolist()),
        frozen(grid),
        frozen(values),
        frozen(sensitivity(grid, values)),
    )


def _reason(suggestion: Suggestion, highest: float, symbol: str) -> Note:
    """The reason for a suggestion, by its rule."""
    rule, value, (start, end) = suggestion.rule, suggestion.value, suggestion.ends
    if rule == "plateau":
        text = (
            f"From {symbol} = {start:.3g} to {end:.3g} the score changes little, and "
            "faster on both sides, as it does where items form groups that lie apart; there it falls by "
            f"{-value:.2g}% for each 1% of the scale."
        )
        return Note(rule, text, {"from": start, "to": end, "sensitivity": value})
    if rule == "contrast":
        text = (
            "No plateau singles a scale out, and at this one the similarities of two items vary most (standard "
            f"deviation {value:.2g})."
        )
        return Note(rule, text, {"standard_deviation": value})
    if rule == "alike":
        text = (
            f"All distances are alike within 1%, so that the score depends on the scale alone, from {highest:,.4g} "
            "down to 1, and nothing in the items tells where to stop."
        )
        return Note(rule, text, {"highest": highest})
    if rule == "identical":
        return Note(rule, "All items are identical, and the score is 1 at every scale.")
    text = f"At none of the scales does the score lie between {LOW:g} and {HIGH * highest:,.4g}."
    return Note(rule, text, {"low": LOW, "high": HIGH * highest})


def _sample_items(diversity: Diversity, items: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Take all items of positive weight, or a random sample: positions, probabilities, and the number of items."""
    shares = diversity.shares
    present = np.flatnonzero(shares)
    if len(present) <= items:
        return present, shares[present], diversity.count
    random = generator(diversity.rng, "bandwidth")
    if diversity.weights is None:
        return np.sort(random.choice(len(shares), items, replace=False)), np.full(items, 1 / items), items
    frequencies = random.multinomial(items, shares / shares.sum())
    positions = np.flatnonzero(frequencies)
    return positions, frequencies[positions] / items, items


# ------------------------------------------------------------------------------------------------------ several kernels


def _named_kernels(kernels: Any) -> list[tuple[str | None, Kernel]]:
    """Check the kernels to compare; return them with their names, if they have any."""
    pairs = kernels.items() if isinstance(kernels, Mapping) else None
    if pairs is None:
        if isinstance(kernels, str) or not isinstance(kernels, Sequence):
            raise InputError(
                f"kernels={brief(kernels)}; expected a list of kernels, or a mapping from their names."
            )
        pairs = [(None, kernel) for kernel in kernels]
    if not pairs:
        raise InputError("kernels is empty; expected a list of kernels, or a mapping from their names.")
    return [(None if name is None else str(name), as_kernel(kernel)) for name, kernel in pairs]


def _compare_kernels(
    diversity: Diversity, kernels: list[tuple[str | None, Kernel]], q: float, items: int
) -> Bandwidths:
    """Score the items under several kernels."""
    names, scores, highest, n, size = [], [], 1.0, 0, 0
    with Progress("kernels") as progress:
        for i, (name, kernel) in enumerate(kernels):
            progress.step(i / len(kernels), repr(kernel))
            seen = diversity.with_kernel(kernel, solver=Solver())
            similarity, n = seen.similarity, seen.count
            positions, probability, size = _sample_items(seen, items)
            part = similarity if len(positions) == similarity.n else similarity.take(positions)
            part_weights = None if seen.weights is None else probability
            scores.append(float(scored(part, part_weights, q, size, rng=seen.rng)))
            names.append(printable(repr(similarity.kernel) if name is None else name))
            highest = float(hill(probability, q))
    values = np.array(scores)
    informative = [name for name, score in zip(names, values, strict=True) if LOW <= score <= HIGH * highest]
    nan = math.nan
    text = "Kernels measure different things, and no number says which is right; " + (
        f"informative scores, between {LOW:g} and {HIGH * highest:,.4g}, have {', '.join(informative)}."
        if informative
        else f"none of them has a score between {LOW:g} and {HIGH * highest:,.4g}, where it would be informative."
    )
    values_in_text = {"informative": tuple(informative), "low": LOW, "high": HIGH * highest}
    return Bandwidths(
        n,
        size,
        q,
        highest,
        nan,
        None,
        Note("kernels", text, values_in_text),
        nan,
        nan,
        nan,
        nan,
        "",
        tuple(names),
        frozen(np.empty(0)),
        frozen(values),
        frozen(np.empty(0)),
    )
