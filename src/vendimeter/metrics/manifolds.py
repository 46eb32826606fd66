"""How two sets of feature vectors lie to each other: precision and recall, density and coverage, memorisation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.data.devices import no_gradients
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.metrics.distances import Space
from vendimeter.metrics.features import vector_sets
from vendimeter.metrics.neighbours import Balls, fill_balls, nearest_neighbours
from vendimeter.options import as_number, byte_count, check_progress, whole_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import Figures

__all__ = [
    "DensityCoverage",
    "Memorization",
    "PrecisionRecall",
    "density_coverage",
    "memorization",
    "precision_recall",
]


@dataclass(frozen=True, repr=False)
class PrecisionRecall(Figures):
    """Improved precision and recall.

    Attributes
    ----------
    precision : float
        The share of samples that lie in the manifold of the reference.
    recall : float
        The share of the reference that lies in the manifold of the samples.
    k : int
        Which neighbour gives the radius of a ball.
    n, m : int
        How many samples there are, and how large the reference is.
    """

    precision: float
    recall: float
    k: int
    n: int
    m: int


@dataclass(frozen=True, repr=False)
class DensityCoverage(Figures):
    """Density and coverage.

    Attributes
    ----------
    density : float
        In how many balls of the reference a sample lies, on average, over k; it can exceed 1.
    coverage : float
        The share of balls of the reference that hold a sample.
    k : int
        Which neighbour gives the radius of a ball.
    n, m : int
        How many samples there are, and how large the reference is.
    """

    density: float
    coverage: float
    k: int
    n: int
    m: int


@dataclass(frozen=True, repr=False, eq=False)
class Memorization(Figures):
    """How near samples are to single points of the reference.

    Attributes
    ----------
    rate : float
        The share of samples that count as memorised.
    copies : float
        The share of samples that equal a point of the reference.
    authenticity : float
        The share of samples that are farther from their nearest point of the reference than that is from the rest.
    ratio : float
        How much nearer than the second nearest point the nearest one of a memorised sample is.
    n, m : int
        How many samples there are, and how large the reference is.
    nearest : ndarray of shape (n,)
        The distance of each sample to the nearest point of the reference.
    indices : ndarray of shape (n,)
        The position of that point in the reference; of several the first.
    """

    rate: float
    copies: float
    authenticity: float
    ratio: float
    n: int
    m: int
    nearest: np.ndarray = field(repr=False)
    indices: np.ndarray = field(repr=False)


def precision_recall(
    samples: Any,
    reference: Any,
    *,
    k: int = 3,
    features: Any = None,
    memory: int | str | None = None,
    progress: bool | None = None,
) -> PrecisionRecall:
    """Improved precision and recall: how much of one set lies in the manifold of the other.

    The manifold of a set is the union of closed balls, one round each of its points, that reach to the k-th nearest
    other point of the set. Precision is the share of samples in the manifold of the reference (are they realistic?),
    recall the share of the reference in the manifold of the samples (is everything there?)::

        precision = 1/n Σ_i [min_j (‖x_i − r_j‖ − NND_k(r_j)) ≤ 0]

    and recall is the same with the roles exchanged.

    Parameters
    ----------
    samples, reference : array-like of shape (n, d) and (m, d)
        Feature vectors, one a row, on any device; with `features` whatever that takes. Each set has more than k of
        them.
    k : int
        The neighbour that gives the radius.
    features : Encoder, str or callable, optional
        What turns samples and reference into vectors: an encoder of `vendimeter.encoders`, its name, or a function.
    memory : int or str, optional
        Working memory beside the vectors, in bytes or as a text such as "1 GiB"; 256 MiB by default (4 GiB on a GPU).
        A few numbers for each vector and each of its k neighbours come on top.
    progress : bool, optional
        Show a progress bar on stderr: always or never; by default only on a terminal.

    Returns
    -------
    PrecisionRecall
        With `precision` and `recall`, from 0 to 1, where more is better.

    Notes
    -----
    Distances are those of the formula √Σ(x−y)² in float64, differences first, ties included; whether a point lies on
    the rim of a ball does not depend on block sizes, on the array library or on the rounding of a matrix product. A
    point is not its own neighbour, but an equal one is, at distance 0. (Differences below 10⁻¹⁵⁰ of the largest entry
    may count as 0.)

    Both grow with k, and both depend on n and m: compare only figures of equal k, n and m. One outlier with a large
    ball can raise either of them; `density_coverage` is less sensitive to that. The package prdc takes open balls, and
    distances of equal points that rounding makes positive: a set of equal points has precision 0 with itself there, and
    1 here.

    The time is that of (n + m)²/2 products of vectors, on the host mostly in float32.

    These are the precision and recall of Kynkäänniemi et al., which the paper on the Vendi Score reports: they are what
    the code that it takes them from computes. Those of Sajjadi et al., whom it cites, are `precision_recall_curve`.

    References
    ----------
    Kynkäänniemi, Karras, Laine, Lehtinen, Aila (2019), Improved precision and recall metric for assessing generative
    models, NeurIPS, equations 1–3.

    Examples
    --------
    >>> from vendimeter.metrics import precision_recall
    >>> precision_recall([[0.0], [1.0], [9.0]], [[0.0], [2.0], [3.0]], k=1)
    PrecisionRecall(precision=0.666667, recall=1, k=1, n=3, m=3)
    """
    k = whole_number(k, "k")
    budget = _memory_budget(memory, progress)
    with vector_sets(samples, reference, "precision_recall", features=features) as (left, right):
        n, m = _sizes(left, right)
        _check_size(n, k, "samples")
        _check_size(m, k, "reference")
        with no_gradients(), Progress("Precision and recall", progress) as bar:
            space = Space({"samples": left, "reference": right}, budget, bar, pairs=n * n + m * m + n * m)
            x, r = space.sets
            manifolds = [
                Balls(space, r, x, _squared_radii(space, r, k), axis=1, counted=False),
                Balls(space, x, r, _squared_radii(space, x, k), axis=0, counted=False),
            ]
            fill_balls(space, x, r, manifolds)
        precision, recall = (float(np.mean(manifold.inside)) for manifold in manifolds)
        return PrecisionRecall(precision, recall, k=k, n=n, m=m)


def density_coverage(
    samples: Any,
    reference: Any,
    *,
    k: int = 5,
    features: Any = None,
    memory: int | str | None = None,
    progress: bool | None = None,
) -> DensityCoverage:
    """Density and coverage: in how many balls of the reference samples lie, and how many of them hold a sample.

    Round each point r_j of the reference lies a closed ball B_j that reaches to the k-th nearest other point::

        density  = 1/(k n) Σ_i Σ_j [x_i ∈ B_j]
        coverage = 1/m Σ_j [some x_i ∈ B_j]

    Parameters
    ----------
    samples, reference : array-like of shape (n, d) and (m, d)
        Feature vectors, one a row, on any device; with `features` whatever that takes. The reference has more than k
        of them.
    k : int
        The neighbour that gives the radius.
    features : Encoder, str or callable, optional
        What turns samples and reference into vectors: an encoder of `vendimeter.encoders`, its name, or a function.
    memory : int or str, optional
        Working memory beside the vectors, in bytes or as a text such as "1 GiB"; 256 MiB by default (4 GiB on a GPU).
        A few numbers for each vector and each of its k neighbours come on top.
    progress : bool, optional
        Show a progress bar on stderr: always or never; by default only on a terminal.

    Returns
    -------
    DensityCoverage
        With `density`, from 0 up and about 1 for two sets of one distribution, and `coverage`, from 0 to 1, where more
        is better.

    Notes
    -----
    Two sets of n points each from one continuous distribution have an expected density of 1 and an expected coverage of
    about 1 − 2⁻ᵏ, so that k=5 leaves little to gain. Density above 1 says that samples crowd where the reference is
    dense. Distances and ties are as in `precision_recall`. The radii come from the reference alone, so that outliers
    among the samples do no harm.

    References
    ----------
    Naeem, Oh, Uh, Choi, Yoo (2020), Reliable fidelity and diversity metrics for generative models, ICML.

    Examples
    --------
    >>> from vendimeter.metrics import density_coverage
    >>> density_coverage([[0.0], [1.0], [9.0]], [[0.0], [2.0], [3.0]], k=1)
    DensityCoverage(density=1, coverage=0.666667, k=1, n=3, m=3)
    """
    k = whole_number(k, "k")
    budget = _memory_budget(memory, progress)
    with vector_sets(samples, reference, "density_coverage", features=features) as (left, right):
        n, m = _sizes(left, right)
        _check_size(m, k, "reference")
        with no_gradients(), Progress("Density and coverage", progress) as bar:
            space = Space({"samples": left, "reference": right}, budget, bar, pairs=m * m + n * m)
            x, r = space.sets
            balls = Balls(space, r, x, _squared_radii(space, r, k), axis=1, counted=True)
            fill_balls(space, x, r, [balls])
        return DensityCoverage(balls.pairs / (k * n), float(np.mean(balls.holding)), k=k, n=n, m=m)


def memorization(
    samples: Any,
    reference: Any,
    *,
    ratio: float = 1 / 3,
    features: Any = None,
    memory: int | str | None = None,
    progress: bool | None = None,
) -> Memorization:
    """Memorisation: how many samples lie next to one single point of the reference, say of the training set.

    With d₁ and d₂ the distances of a sample to its nearest and second nearest points of the reference, and d′ that of
    the nearest one to its own nearest other point::

        rate         = share of samples with d₁ < ratio·d₂, or with d₁ = 0
        copies       = share of samples with d₁ = 0
        authenticity = share of samples with d₁ > d′

    Parameters
    ----------
    samples, reference : array-like of shape (n, d) and (m, d)
        Feature vectors, one a row, on any device; with `features` whatever that takes. The reference has two of them
        at least.
    ratio : float
        How much nearer than the second nearest point the nearest one of a memorised sample is, above 0 and up to 1.
    features : Encoder, str or callable, optional
        What turns samples and reference into vectors: an encoder of `vendimeter.encoders`, its name, or a function.
    memory : int or str, optional
        Working memory beside the vectors, in bytes or as a text such as "1 GiB"; 256 MiB by default (4 GiB on a GPU).
        A few numbers a vector come on top.
    progress : bool, optional
        Show a progress bar on stderr: always or never; by default only on a terminal.

    Returns
    -------
    Memorization
        With `rate` and `copies`, where less is better, `authenticity`, where more is better, and for each sample the
        distance to the nearest point and its position.

    Notes
    -----
    Where a point is twice in the reference, d₁ = d₂ for any sample near it and the ratio of the two says nothing: a
    near copy of a duplicated point is not found by `rate`, whereas an exact copy always is, and is never authentic
    (0/0 counts as memorised, and d′ = 0). Remove duplicates from the reference, or look at `nearest`.

    What is near depends on the features: on pixels a shift of one pixel is far. For a baseline pass held-out data as
    samples. The code published with Alaa et al. goes from each real point to its nearest synthetic one and then takes
    that position for one in the real set, so that many copies of one point have an authenticity near 1; here, as in the
    paper, it goes from each sample to its nearest real point, and theirs is 0.

    References
    ----------
    Yoon, Choi, Kwon, Ryu (2023), Diffusion probabilistic models generalize when they fail to memorize, ICML workshop on
    structured probabilistic inference and generative modeling (the rate, with ratio 1/3).
    Alaa, van Breugel, Saveliev, van der Schaar (2022), How faithful is your synthetic data? Sample-level metrics for
    evaluating and auditing generative models, ICML (authenticity).

    Examples
    --------
    >>> from vendimeter.metrics import memorization
    >>> found = memorization([[0.0], [4.0], [20.0], [0.5]], [[0.0], [5.0], [6.0]])
    >>> found
    Memorization(rate=0.5, copies=0.25, authenticity=0.25, ratio=0.333333, n=4, m=3)
    >>> found.nearest, found.indices
    (array([ 0. ,  1. , 14. ,  0.5]), array([0, 1, 2, 0]))
    """
    ratio_limit = as_number(ratio)
    if not 0 < ratio_limit <= 1:
        raise InputError(f"ratio={brief(ratio)}; expected a number above 0 and up to 1, such as 1/3.")
    budget = _memory_budget(memory, progress)
    with vector_sets(samples, reference, "memorization", features=features) as (left, right):
        n, m = _sizes(left, right)
        if m < 2:
            raise InputError(
                "reference has 1 item, and memorization compares the nearest with the second nearest; expected 2 or "
                "more."
            )
        with no_gradients(), Progress("Memorization", progress) as bar:
            space = Space({"samples": left, "reference": right}, budget, bar, pairs=m * m + n * m)
            x, r = space.sets
            own_squares = _squared_radii(space, r, 1)
            neighbours = nearest_neighbours(space, x, r, 2)
    first, second = neighbours.squares.T
    indices = neighbours.indices[:, 0].copy()
    # The inverse of 1/3 is 3 in floating point too, so that ties of whole numbers are ties. That of a tiny ratio may be
    # infinite, and 0·∞ is NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        memorised = (first == 0) | (first * (1 / ratio_limit) < second / (1 / ratio_limit))
    return Memorization(
        rate=float(np.mean(memorised)),
        copies=float(np.mean(first == 0)),
        authenticity=float(np.mean(first > own_squares[indices])),
        ratio=ratio_limit,
        n=n,
        m=m,
        nearest=space.lengths(first),
        indices=indices,
    )


def _squared_radii(space: Space, points: Any, k: int) -> np.ndarray:
    """The squared distance of each point to its k-th nearest other one."""
    return nearest_neighbours(space, points, points, k).squares[:, -1].copy()


def _memory_budget(memory: Any, progress: Any) -> int | None:
    check_progress(progress)
    return None if memory is None else byte_count(memory, "memory")


def _sizes(left: Any, right: Any) -> tuple[int, int]:
    return int(left.shape[0]), int(right.shape[0])


def _check_size(size: int, k: int, name: str) -> None:
    if size <= k:
        raise InputError(
            f"k={k} and {name} has {size} {'item' if size == 1 else 'items'}; expected more than k of them, so that "
            "each has a k-th nearest other one."
        )
