"""Precision and recall for distributions (PRD): a curve of one against the other, over clusters by k-means.

The clusters of the points of two sets turn these into two distributions over clusters, and the curve is one of such
distributions; `PrecisionRecallCurve.of` takes them from the user.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import DEVICE_BYTES, is_gpu, move, namespace, no_gradients, to_host, transposed
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.metrics.features import numbers_of, vector_sets, wide_block
from vendimeter.options import as_number, check_progress, check_rng, generator, whole_number
from vendimeter.present.numbers import digits
from vendimeter.present.progress import Progress
from vendimeter.results.base import Figures

__all__ = ["MOST_FITTED", "PrecisionRecallCurve", "cluster_shares", "precision_recall_curve"]

# Points of each set that centres are fitted to, at most.
MOST_FITTED = 5000
# Iterations of k-means, at most.
ROUNDS = 100
# It has converged when no larger share of the points changes its centre.
MOVING_SHARE = 1e-2
# By which probabilities may miss a sum of 1.
TOLERANCE = 1e-6


@dataclass(frozen=True, repr=False, eq=False)
class PrecisionRecallCurve(Figures):
    """The curve of precision and recall of a distribution q against a reference p, and two figures that sum it up.

    Attributes
    ----------
    f_precision : float
        The largest F_{1/β} on the curve, which weighs precision more.
    f_recall : float
        The largest F_β, which weighs recall more.
    highest_precision : float
        The end of the curve where recall is 0: how much of q lies where p is not 0.
    highest_recall : float
        The end where precision is 0: how much of p lies where q is not 0.
    beta : float
        β.
    n, m : int or None
        How many samples there are, and how large the reference is; None for distributions that were given.
    of_samples, of_reference : ndarray of shape (runs, clusters)
        q and p: the share of the samples, and of the reference, in each cluster of each run.
    """

    f_precision: float
    f_recall: float
    highest_precision: float
    highest_recall: float
    beta: float
    n: int | None
    m: int | None
    of_samples: np.ndarray = field(repr=False)
    of_reference: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, samples: Any, reference: Any, *, beta: float = 8) -> PrecisionRecallCurve:
        """The curve of two distributions over the same outcomes: probabilities, which sum to 1.

        Examples
        --------
        >>> from vendimeter.metrics import PrecisionRecallCurve
        >>> PrecisionRecallCurve.of([0.5, 0.5, 0.0], [0.25, 0.25, 0.5])
        PrecisionRecallCurve(f_precision=0.984848, f_recall=0.503876, highest_precision=1, highest_recall=0.5, ...
        """
        weight = _beta(beta)
        of_samples, of_reference = _distribution(samples, "samples"), _distribution(reference, "reference")
        if len(of_samples) != len(of_reference):
            raise InputError(
                f"samples has {len(of_samples)} outcomes and reference {len(of_reference)}; expected one number an "
                "outcome."
            )
        return _curve(of_samples[None], of_reference[None], weight, None, None)

    def at(self, ratios: Any) -> tuple[np.ndarray, np.ndarray]:
        """Precision and recall at ratios λ of the two, from 0 to infinity: Σ min(λp, q) and Σ min(p, q/λ)."""
        try:
            values = np.asarray(ratios, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.array(math.nan)
        if not (values >= 0).all():
            raise InputError(f"ratios={brief(ratios)}; expected numbers from 0 up, which may be infinite.")
        return _points(self.of_samples, self.of_reference, values)

    def points(self, count: int = 1001) -> tuple[np.ndarray, np.ndarray]:
        """Precision and recall from one end of the curve to the other, to be drawn.

        The ratios are the tangents of so many angles, from 0° to 90° in equal steps; recall falls.
        """
        angles = np.linspace(0, math.pi / 2, whole_number(count, "count"))
        return self.at(np.where(angles < math.pi / 2, np.tan(angles), math.inf))


def precision_recall_curve(
    samples: Any,
    reference: Any,
    *,
    clusters: int = 20,
    runs: int = 10,
    beta: float = 8,
    features: Any = None,
    rng: int = 0,
    progress: bool | None = None,
) -> PrecisionRecallCurve:
    """Precision and recall for distributions (PRD): how precision can be had for recall, as a curve.

    The distribution q of the samples has precision α and recall β against the reference p if both hold a part that they
    share: q = α·c + (1 − α)·d and p = β·c + (1 − β)·e. The best such pairs are, for λ from 0 to infinity::

        α(λ) = Σ min(λ p, q),    β(λ) = Σ min(p, q/λ)

    over the clusters of both sets together. Two numbers sum the curve up: its largest F₈, which is near 1 only with
    high recall, and its largest F_{1/8}, with high precision.

    Parameters
    ----------
    samples, reference : array-like of shape (n, d) and (m, d)
        Feature vectors, one a row, on any device; with `features` whatever that takes.
    clusters : int
        How many clusters k-means makes of both sets; at most twice the points of the smaller set, and better far fewer.
    runs : int
        How often, each time from other first centres; curves are averaged over the runs at every λ.
    beta : float
        β of the two numbers, above 1.
    features : Encoder, str or callable, optional
        What turns samples and reference into vectors: an encoder of `vendimeter.encoders`, its name, or a function.
    rng : int
        Seed of the clusters.
    progress : bool, optional
        Show a progress bar on stderr: always or never; by default only on a terminal.

    Returns
    -------
    PrecisionRecallCurve
        With `f_precision` and `f_recall`, from 0 to 1, where more is better, both ends of the curve, and its points by
        `points()` and `at(ratios)`. ``PrecisionRecallCurve.of(q, p)`` is that of distributions that are known.

    Notes
    -----
    This is the precision and recall that the paper on the Vendi Score cites; what it reports is `precision_recall`, by
    nearest neighbours, which needs no clusters and has other values.

    The figures depend on the clusters: more of them, or fewer samples, lower both numbers, for samples of the
    reference's own distribution, too; where one set is small, modes seem to be missing from it that are not, and in
    many columns its points get centres of their own, far from the other set. Compare like with like, sets of one size
    above all, and with held-out data as a baseline. Within a cluster all is alike: a mode that shares its cluster with
    another can be dropped unseen, and so can half of the variance.

    Both numbers are exact: F_β(λ) is largest at one of the ratios q/p, which are all tried; the published code takes
    the largest of 1,001 angles. It clusters with mini-batches, and refuses sets of different sizes, because the larger
    one would decide on the clusters; here k-means is fitted to up to 5,000 points of either set, equally many of both,
    and then all points go to their nearest centre.

    References
    ----------
    Sajjadi, Bachem, Lucic, Bousquet, Gelly: Assessing generative models via precision and recall, NeurIPS 2018:
    definitions 1 and 2, and the algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from vendimeter.metrics import precision_recall_curve
    >>> rng = np.random.default_rng(0)
    >>> modes = np.repeat(np.eye(4) * 100, 50, axis=0) + rng.normal(size=(200, 4))
    >>> found = precision_recall_curve(modes[:100], modes, clusters=4)  # two of four modes
    >>> found
    PrecisionRecallCurve(f_precision=0.984848, f_recall=0.503876, highest_precision=1, highest_recall=0.5, ...
    """
    cluster_count, run_count, weight = (
        whole_number(clusters, "clusters"),
        whole_number(runs, "runs"),
        _beta(beta),
    )
    draws = generator(check_rng(rng), "precision-recall curve")
    check_progress(progress)
    with vector_sets(samples, reference, "precision_recall_curve", features=features) as (left, right):
        n, m = int(left.shape[0]), int(right.shape[0])
        fitted = 2 * min(n, m, MOST_FITTED)
        if cluster_count > fitted:
            raise InputError(
                f"clusters={cluster_count}, of sets of {n} and {m} points; expected {fitted} at most, because centres "
                "are fitted to as many points of either set."
            )
        with no_gradients(), Progress("Precision–recall curve", progress) as bar:
            of_samples, of_reference = cluster_shares(
                {"samples": left, "reference": right}, cluster_count, run_count, draws, bar
            )
        return _curve(of_samples, of_reference, weight, n, m)


def _curve(
    of_samples: np.ndarray, of_reference: np.ndarray, beta: float, n: int | None, m: int | None
) -> PrecisionRecallCurve:
    """The mean curve of runs of (q, p), which is the curve over the clusters of all runs together."""
    shared = (of_reference > 0) & (of_samples > 0)
    with np.errstate(over="ignore"):
        ratios = of_samples[shared] / of_reference[shared]
    ratios = ratios[np.isfinite(ratios)]
    precision, _ = _points(of_samples, of_reference, ratios)
    # F_β = (1 + β²) α/(1 + β² λ), and α is linear in λ between two of the ratios: the largest is at one of them.
    f_recall, f_precision = (
        min(1.0, float(np.max((1 + square) * precision / (1 + square * ratios), initial=0.0)))
        for square in (beta**2, beta**-2)
    )
    precise, complete = (
        min(1.0, math.fsum(shares[shared].tolist()) / len(of_samples))
        for shares in (of_samples, of_reference)
    )
    of_samples.flags.writeable = of_reference.flags.writeable = False
    return PrecisionRecallCurve(
        f_precision, f_recall, precise, complete, beta, n, m, of_samples, of_reference
    )


def _points(
    of_samples: np.ndarray, of_reference: np.ndarray, ratios: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Σ min(λp, q) and Σ min(p, q/λ), by sums over the clusters in order of q/p."""
    in_support = of_reference > 0  # clusters outside the support of p add nothing
    with np.errstate(over="ignore"):
        slopes = of_samples[in_support] / of_reference[in_support]
    order = np.argsort(slopes)
    runs = len(of_samples)
    # q of the clusters with q/p up to a slope, and p of all other clusters.
    below = np.concatenate([[0.0], np.cumsum(of_samples[in_support][order])]) / runs
    above = np.concatenate([np.cumsum(of_reference[in_support][order][::-1])[::-1], [0.0]]) / runs
    position = np.searchsorted(slopes[order], ratios, side="right")
    p_above, q_below = above[position], below[position]
    precision = q_below + np.where(p_above > 0, ratios, 0.0) * p_above
    recall = p_above + q_below / np.where(ratios > 0, ratios, 1.0)
    return np.minimum(precision, 1.0), np.minimum(recall, 1.0)


def _beta(value: Any) -> float:
    beta = as_number(value)
    if not 1 < beta <= 1e6:
        raise InputError(f"beta={brief(value)}; expected a number above 1, such as 8.")
    return beta


def _distribution(numbers: Any, name: str) -> np.ndarray:
    """Probabilities over outcomes, divided by their sum."""
    values = numbers_of(numbers, name, "the probabilities of the outcomes, in an array or list")
    bad = np.flatnonzero(values < 0)
    if len(bad):
        raise InputError(
            f"{name}[{bad[0]}] is {digits(float(values[bad[0]]))}; expected probabilities from 0 up."
        )
    with np.errstate(over="ignore"):
        total = float(values.sum())
    if not abs(total - 1) <= TOLERANCE:
        raise InputError(
            f"{name} sums to {digits(total)}; expected probabilities that sum to 1. Divide counts by their sum."
        )
    return values / total


# ------------------------------------------------------------------------------------------------------------- clusters


def cluster_shares(
    sets: dict[str, Any], clusters: int, runs: int, draws: np.random.Generator, progress: Progress
) -> list[np.ndarray]:
    """The share of each set that lies in each cluster, for several runs of k-means: of shape (runs, clusters) a set.

    Centres are fitted to equally many points of either set, drawn anew for each run, so that the larger set does not
    decide where they lie; then all points go to their nearest centre.

    Parameters
    ----------
    sets : dict
        The rows of two sets by the name of the argument: NumPy's, or both of one other library.
    clusters, runs : int
        How many centres a run has, and how many runs there are.
    draws : Generator
        What draws the points and the first centres.
    progress : Progress
        What is told how far the work is.
    """
    scale = 2.0 ** -max(max(_largest_exponent(rows, name, clusters) for name, rows in sets.items()), -1000)
    size = min(MOST_FITTED, *(int(rows.shape[0]) for rows in sets.values()))
    centres = []
    for run in range(runs):
        progress.step(run / (runs + 1))
        points = []
        for name, rows in sets.items():
            chosen = np.sort(draws.choice(rows.shape[0], size, replace=False))
            points.append(to_host(wide_block(rows, chosen, name)) * scale)
        centres.append(_fit_centres(np.concatenate(points), clusters, draws))
    return [_shares(rows, name, centres, clusters, scale) for name, rows in sets.items()]


def _row_blocks(rows: Any, clusters: int) -> list[slice]:
    width = max(int(rows.shape[1]), clusters)
    return blocks(rows.shape[0], width, most=DEVICE_BYTES if is_gpu(rows) else BLOCK_BYTES)


def _largest_exponent(rows: Any, name: str, clusters: int) -> int:
    """The binary exponent of the largest entry, by which all are divided, so that no square overflows or vanishes."""
    peak = 0.0
    for span in _row_blocks(rows, clusters):
        block = wide_block(rows, span, name)
        peak = max(peak, float(namespace(block).max(namespace(block).abs(block))))
    return math.frexp(peak)[1]


def _fit_centres(points: np.ndarray, clusters: int, draws: np.random.Generator) -> np.ndarray:
    """Centres by Lloyd's iteration from a start by k-means++; fewer of them where there are fewer different points."""
    mean = points.mean(axis=0)
    points -= mean
    parts = _row_blocks(points, clusters)
    chosen, squares = [int(draws.integers(len(points)))], np.full(len(points), np.inf)
    while True:
        for span in parts:
            differences = points[span] - points[chosen[-1]]
            squares[span] = np.minimum(squares[span], np.einsum("ij,ij->i", differences, differences))
        if len(chosen) == clusters or not squares.any():
            break
        sums = np.cumsum(squares)
        chosen.append(int(np.searchsorted(sums, draws.random() * sums[-1], side="right")))
    centres, labels, previous_labels = points[chosen], np.empty(len(points), dtype=np.int64), None
    for _ in range(ROUNDS):
        sums, sizes = np.zeros_like(centres), np.zeros(len(centres))
        for span in parts:
            labels[span] = _nearest(points[span], centres)
            members = (labels[span] == np.arange(len(centres))[:, None]).astype(np.float64)
            sums += members @ points[span]
            sizes += members.sum(axis=1)
        if (
            previous_labels is not None
            and np.count_nonzero(labels != previous_labels) <= len(points) * MOVING_SHARE
        ):
            break
        # The centre of an empty cluster stays where it is.
        previous_labels, nonempty = labels.copy(), sizes > 0
        centres[nonempty] = sums[nonempty] / sizes[nonempty, None]
    return centres + mean


def _nearest(block: Any, centres: Any) -> np.ndarray:
    """The index of the nearest centre of each row, on ties the first."""
    xp = namespace(block)
    return to_host(xp.argmin(xp.sum(centres * centres, axis=1) - 2 * (block @ transposed(centres)), axis=1))


def _shares(rows: Any, name: str, centres: list[np.ndarray], clusters: int, scale: float) -> np.ndarray:
    """The share of the rows nearest to each centre, for every run: an array of shape (runs, clusters)."""
    counts = np.zeros((len(centres), clusters), dtype=np.int64)
    mean_centre = np.mean([run.mean(axis=0) for run in centres], axis=0)
    for span in _row_blocks(rows, clusters):
        block = wide_block(rows, span, name) * scale
        block = block - move(mean_centre, block)
        for run, run_centres in enumerate(centres):
            labels = _nearest(block, move(run_centres - mean_centre, block))
            counts[run] += np.bincount(labels, minlength=clusters)
    return counts / rows.shape[0]
