"""Diversity of classes: Hill numbers of counts, modes, Mode Diversity, Inception Score and Jensen–Shannon diversity.

All but Hill numbers are of what classifiers say of the samples: class probabilities, which are read block by block in
float64, or labels.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.data import tables
from vendimeter.data.arrays import (
    BLOCK_BYTES,
    EMPTY,
    blocks,
    csr,
    is_frame_column,
    is_missing,
    is_sparse,
    is_table,
    refuse_masked,
    refuse_set,
    to_list,
    to_numpy,
    unwrapped,
)
from vendimeter.data.devices import (
    DEVICE_BYTES,
    double,
    is_foreign,
    is_real,
    local,
    move,
    namespace,
    select,
    to_host,
)
from vendimeter.data.frames import known
from vendimeter.data.weights import probabilities
from vendimeter.errors import EmptyError, InputError, TooLargeError
from vendimeter.kernels.base import multiply_features
from vendimeter.kernels.probabilities import channels_of
from vendimeter.messages import brief, shape_of
from vendimeter.metrics.samples import opened, weights_of
from vendimeter.options import check_flag, check_rng, generator, whole_number
from vendimeter.present.numbers import digits
from vendimeter.results.base import Figure
from vendimeter.similarity import FeatureRows, Features, Index
from vendimeter.spectrum import hill as hill_number
from vendimeter.spectrum import parse_orders

__all__ = [
    "ClassProbabilities",
    "InceptionScore",
    "hill",
    "inception_score",
    "jensen_shannon_diversity",
    "label_codes",
    "mode_diversity",
    "number_of_modes",
    "predicted_classes",
]

# Joint classes of several classifiers that are written out, at most.
MOST_JOINT = 1 << 20


# --------------------------------------------------------------------------------------------------------- Hill numbers


def hill(samples: Any, *, q: Any = 1) -> float | np.ndarray:
    """Hill numbers: how many equally common species would be as diverse as these counts.

    (Σ p^q)^(1/(1−q)) with p = counts / their sum: the number of species at q = 0, the exponential of Shannon's entropy
    at q = 1, the inverse of Simpson's index at q = 2 and 1/max p at q = ∞. It lies between 1 and the number of species.

    Parameters
    ----------
    samples : array, sparse array, list, mapping or table
        Counts or abundances, from 0 up; a species with 0 is absent. One number a species, a `collections.Counter`, or
        a row of them a site. Labels have to be counted first: ``hill(Counter(labels))``.
    q : float, str or list of them
        The order, from 0 up to ``"inf"``.

    Returns
    -------
    float or ndarray
        One number; an array with one a site; and with several orders an array with the orders on its last axis.

    Notes
    -----
    Near q = 1 the formula is a power of almost 1 with a huge exponent, and is evaluated in a form that loses nothing:
    for counts of 1, 2, 3, 4 the number at q = 1 + 10⁻¹⁴ is 3.59612, and scikit-bio 0.7.4 gives 3.58866. At q = 2,000
    its sum underflows and it gives infinity for 2.50115. It gives NaN where counts are NaN or all 0; here that is an
    error.

    References
    ----------
    Hill: Diversity and evenness: a unifying notation and its consequences, Ecology 1973.
    Jost: Entropy and diversity, Oikos 2006.

    Examples
    --------
    >>> from vendimeter.metrics import hill
    >>> round(hill([2, 1, 1, 0]), 4)
    2.8284
    >>> hill([[2, 1, 1, 0], [5, 5, 5, 5]], q=[0, 2]).round(4)
    array([[3.    , 2.6667],
           [4.    , 4.    ]])
    """
    orders, several = parse_orders(q)
    with opened(samples, "hill") as samples:
        rows, single = _sites(samples)
        numbers = np.empty((rows.shape[0], len(orders)))
        for span in blocks(rows.shape[0], rows.shape[1], most=BLOCK_BYTES):
            block = rows[span].toarray() if is_sparse(rows) else to_host(select(rows, span))
            with np.errstate(
                over="ignore"
            ):  # numbers too large for float64 become infinite, which is an error below
                counts = block.astype(np.float64)
            _check_counts(counts, span.start, single)
            counts /= counts.max(axis=1, keepdims=True)  # so that no sum overflows
            numbers[span] = np.stack([_hill(block, counts, order) for order in orders], axis=-1)
        if not several:
            numbers = numbers[:, 0]
        return (numbers[0] if several else float(numbers[0])) if single else numbers


def _hill(raw_counts: np.ndarray, counts: np.ndarray, q: float) -> np.ndarray:
    if q == 0:  # of the raw counts: dividing by the largest may have made the smallest 0
        return np.count_nonzero(raw_counts, axis=1).astype(np.float64)
    return hill_number(counts, q)


def _sites(samples: Any) -> tuple[Any, bool]:
    """Counts on their device, a row a site; and whether they were a single site of one dimension."""
    refuse_masked(samples, "samples")
    expected = "hill expected counts of species: numbers in a list, a Counter, or a row of them a site"
    refuse_set(samples, "counts")
    if isinstance(samples, Mapping) and not is_sparse(samples):
        nested = next((key for key, count in samples.items() if hasattr(count, "__len__")), None)
        if nested is not None:
            raise InputError(f"samples[{brief(nested)}] is {brief(samples[nested])}; {expected}.")
        samples = list(samples.values())
    elif is_table(samples):
        samples = tables.matrix(samples)
    elif is_frame_column(samples):
        samples = to_numpy(samples)
    if isinstance(samples, str | bytes) or not (hasattr(samples, "__len__") or hasattr(samples, "shape")):
        raise InputError(f"samples is {brief(samples)}; {expected}.")
    rows = csr(samples) if is_sparse(samples) else local(unwrapped(samples))
    if not is_sparse(rows) and not is_foreign(rows):
        try:
            rows = np.asarray(rows)
        except ValueError:
            raise InputError(f"samples is a list of rows of different lengths; {expected}.") from None
    if 0 in rows.shape:
        raise EmptyError(EMPTY)
    if not is_real(rows):
        raise InputError(
            f"samples has dtype {rows.dtype}; {expected}. Count labels first: hill(collections.Counter(labels))."
        )
    if rows.ndim not in (1, 2):
        raise InputError(f"samples has shape {shape_of(rows.shape)}; {expected}.")
    return (rows[None, :], True) if rows.ndim == 1 else (rows, False)


def _check_counts(counts: np.ndarray, first: int, single: bool) -> None:
    """Refuse counts that are not finite, negative, or all 0."""
    bad = ~(np.isfinite(counts) & (counts >= 0))
    if bad.any():
        site, species = (int(k) for k in np.argwhere(bad)[0])
        at = f"{species}" if single else f"{site + first}, {species}"
        raise InputError(
            f"samples[{at}] is {digits(counts[site, species])}; expected a finite count or abundance from 0 up."
        )
    empty = np.flatnonzero(counts.max(axis=1) == 0)
    if len(empty):
        whose = "samples" if single else f"row {int(empty[0]) + first} of samples"
        raise EmptyError(f"{whose} holds only zeros; the diversity of nothing is undefined. Leave it out.")


# ---------------------------------------------------------------------------------------------------------------- modes


def number_of_modes(samples: Any, *, logits: bool = False, least: int = 1) -> int:
    """NOM: how many different classes a classifier predicts for the samples.

    The class of a sample is the one with the largest probability, the first of several.

    Parameters
    ----------
    samples : array or list
        Class probabilities, of shape (n, classes); of several classifiers that look at different parts of an item,
        (n, channels, classes), such as the three digits of Stacked MNIST; or labels, one an item: whole numbers, texts
        or truth values.
    logits : bool
        Whether the numbers are logits.
    least : int
        How many samples a class needs to count as a mode.

    Notes
    -----
    It is 1 at the least, and rises with n: a class that is rare, or mistaken for another once in a thousand times, is
    met sooner or later. `mode_diversity` tells how evenly the classes are met.

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023, section 5, the experiment with Stacked MNIST.

    Examples
    --------
    >>> from vendimeter.metrics import number_of_modes
    >>> number_of_modes([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.8, 0.1, 0.1]])
    2
    >>> number_of_modes(["cat", "dog", "cat"], least=2)
    1
    """
    min_count = whole_number(least, "least")
    with opened(samples, "number_of_modes") as samples:
        labels = label_codes(samples, "number_of_modes")
        if labels is None:
            labels = predicted_classes(samples, "number_of_modes", logits)
        else:
            check_flag(logits, "logits")
        return int(np.count_nonzero(np.bincount(labels) >= min_count))


def mode_diversity(samples: Any, *, logits: bool = False, weights: Any = None) -> float:
    """Mode Diversity: exp H(p̄), the effective number of classes of the mean of the class probabilities.

    p̄ = (1/n) Σ p_i, and H its entropy. It lies between 1 and the number of classes. Labels count as probabilities of
    1: then it is the exponential of the entropy of their frequencies.

    Parameters
    ----------
    samples : array or list
        Class probabilities or labels, as for `number_of_modes`.
    logits : bool
        Whether the numbers are logits.
    weights : array of shape (n,), optional
        Probabilities of the samples; they sum to 1.

    Notes
    -----
    A classifier that is unsure of everything scores as high as one that is sure of different things: compare
    `inception_score`, which divides the two.

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023, section 5, the experiment with Stacked MNIST.

    Examples
    --------
    >>> from vendimeter.metrics import mode_diversity
    >>> round(mode_diversity([[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]]), 4)
    2.7495
    >>> round(mode_diversity(["cat", "dog", "cat", "cow"]), 4)
    2.8284
    """
    weights = weights_of(samples, weights)
    with opened(samples, "mode_diversity", weighted=True) as samples:
        labels = label_codes(samples, "mode_diversity")
        if labels is not None:
            check_flag(logits, "logits")
            shares, _ = probabilities(weights, None, len(labels))
            return float(hill_number(np.bincount(labels, weights=shares).astype(np.float64), 1))
        rows = ClassProbabilities(samples, "mode_diversity", logits)
        shares, n = probabilities(weights, None, rows.n)
        total = np.zeros(rows.width)
        for span in rows.parts(rows.n):
            block = rows.read(span)
            xp = namespace(block)
            total += to_host(
                xp.sum(block, axis=0) / n if shares is None else move(shares[span], block) @ block
            )
        return float(hill_number(total, 1))


# -------------------------------------------------------------------------------------------- divergences from the mean


@dataclass(frozen=True, repr=False, eq=False)
class InceptionScore(Figure):
    """The mean Inception Score over splits, with their standard deviation.

    Attributes
    ----------
    value : float
        The mean.
    std : float
        The standard deviation over the splits, dividing by their number as the original code does.
    splits : ndarray
        The score of each split.
    n : int
        How many samples there are.
    """

    value: float
    std: float
    splits: np.ndarray = field(repr=False)
    n: int


def inception_score(
    samples: Any, *, splits: int = 10, logits: bool = False, rng: int | None = 0
) -> InceptionScore:
    """Inception Score: exp of the mean divergence of the class probabilities from their mean.

    exp((1/n) Σ_i KL(p_i ‖ p̄)) within each split of the samples, and the mean of that over the splits. It lies between
    1 and the number of classes, and is high where single predictions are sure and together cover many classes.

    Parameters
    ----------
    samples : array
        Class probabilities, of shape (n, classes) or (n, channels, classes).
    splits : int
        How many parts the samples are cut into, whose sizes differ by at most one. None of them is lost.
    logits : bool
        Whether the numbers are logits.
    rng : int or None
        Seed of the shuffle before the cut; None keeps the order, as the original code does. Without a shuffle, samples
        that are sorted by class give splits with few classes each and a score that is far too low.

    Returns
    -------
    InceptionScore
        A float with `std`, `splits` and `n`.

    Notes
    -----
    A split cannot score above its number of samples, and scores rise with that number: compare only scores of equal n
    and splits. The score says nothing of classes that the classifier does not know, nor of variety within one.

    torchmetrics 1.9 cuts with ``chunk``, so that 12 samples in 10 splits become 6; shuffles without a seed of its own;
    divides by one less for the standard deviation, which is NaN for one split; and gives NaN where a class has a
    probability of 0 throughout.

    References
    ----------
    Salimans et al.: Improved techniques for training GANs, NeurIPS 2016, section 4.
    Barratt and Sharma: A note on the Inception Score, ICML workshop 2018, for its limits.

    Examples
    --------
    >>> from vendimeter.metrics import inception_score
    >>> inception_score([[1, 0], [0, 1], [1, 0], [0, 1]], splits=1)
    InceptionScore(2, std=0, n=4)
    >>> round(inception_score([[0.9, 0.1], [0.1, 0.9]], splits=1), 4)
    1.4449
    """
    count = whole_number(splits, "splits")
    if rng is not None:
        rng = check_rng(rng)
    with opened(samples, "inception_score") as samples:
        rows = ClassProbabilities(samples, "inception_score", logits)
        if count > rows.n:
            raise InputError(f"splits={count} and there are {rows.n} samples; expected at least one a split.")
        order = np.arange(rows.n) if rng is None else generator(rng, "inception score").permutation(rows.n)
        cuts = [i * rows.n // count for i in range(count + 1)]
        values = np.array([_exp_divergence(rows, np.sort(order[a:b])) for a, b in itertools.pairwise(cuts)])
        return InceptionScore(float(values.mean()), float(values.std()), values, rows.n)


def jensen_shannon_diversity(samples: Any, *, weights: Any = None, logits: bool = False) -> float:
    """The exponential of the Jensen–Shannon divergence of an ensemble of distributions: how many different ones.

    exp(H(Σ wᵢ pᵢ) − Σ wᵢ H(pᵢ)), with H Shannon's entropy and w = 1/n unless given. It is 1 where all distributions are
    equal, and exp H(w), which is n for equal weights, where no two share an outcome. The divergence itself, in nats, is
    its logarithm.

    Parameters
    ----------
    samples : array or list
        The distributions, a row each, over the same outcomes, of shape (n, outcomes): the policies of several agents in
        one state, or what the members of an ensemble predict for one input. As for `inception_score`, (n, channels,
        outcomes) are products of independent distributions.
    weights : array of shape (n,), optional
        Probabilities of the distributions; they sum to 1.
    logits : bool
        Whether the numbers are logits.

    Notes
    -----
    `inception_score` with ``splits=1`` is the same number of the class probabilities of n samples. The Vendi Score of
    the same rows with `vendimeter.kernels.ProbabilityProduct` is never less (Holevo's bound).

    The distributions are over one finite set. Kviman et al. take the divergence of continuous ones, an ensemble of
    variational approximations, which has to be estimated from samples and their densities; that is not done here.

    References
    ----------
    Lin: Divergence measures based on the Shannon entropy, IEEE Transactions on Information Theory 1991, section V, the
    divergence of several distributions. Kviman, Melin, Koptagel, Elvira, Lagergren: Multiple importance sampling ELBO
    and deep ensembles of variational approximations, AISTATS 2022.

    Examples
    --------
    >>> from vendimeter.metrics import jensen_shannon_diversity
    >>> round(jensen_shannon_diversity([[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]]), 4)
    2.1822
    >>> round(jensen_shannon_diversity([[1, 0], [0, 1]], weights=[0.9, 0.1]), 4)
    1.3841
    """
    weights = weights_of(samples, weights)
    with opened(samples, "jensen_shannon_diversity", weighted=True) as samples:
        rows = ClassProbabilities(samples, "jensen_shannon_diversity", logits)
        shares, _ = probabilities(weights, None, rows.n)
        return _exp_divergence(rows, np.arange(rows.n), shares)


def _exp_divergence(
    rows: ClassProbabilities, positions: np.ndarray, shares: np.ndarray | None = None
) -> float:
    """exp(H(p̄) − the mean of H(p_i)), the exponential of the mean divergence of rows from their mean p̄."""
    total, negative_entropy = np.zeros(rows.width), 0.0
    for span in rows.parts(len(positions)):
        block = rows.read(positions[span])
        xp = namespace(block)
        terms = block * xp.log(xp.where(block > 0, block, xp.ones_like(block)))  # 0 log 0 = 0
        if shares is None:
            total += to_host(xp.sum(block, axis=0)) / len(positions)
            negative_entropy += float(xp.sum(terms)) / len(positions)
        else:
            weights = move(shares[span], block)
            total += to_host(weights @ block)
            negative_entropy += float(weights @ xp.sum(terms, axis=1))
    divergence = float(np.log(hill_number(total, 1))) + negative_entropy
    # The divergence lies between 0 and the logarithm of the upper bound; beyond is rounding.
    upper_bound = len(positions) if shares is None else float(hill_number(shares, 1))
    return float(np.clip(np.exp(divergence), 1.0, min(upper_bound, rows.width)))


# --------------------------------------------------------------------------------------- class probabilities and labels


class ClassProbabilities:
    """Class probabilities, block by block in float64; of several classifiers, those of the joint classes."""

    def __init__(self, samples: Any, metric: str, logits: Any):
        channels = _channels(samples, metric, logits)
        self._roots: Features = multiply_features(channels)
        self.n, self.width = self._roots.n, self._roots.width
        if len(channels) > 1 and self.width > MOST_JOINT:
            raise TooLargeError(
                f"the channels have {self.width:,} joint classes, and {metric} writes out {MOST_JOINT:,} at most; "
                "expected fewer. number_of_modes has no such limit."
            )

    def parts(self, count: int) -> list[slice]:
        """Blocks of so many rows."""
        max_bytes = BLOCK_BYTES if self._roots.like is None else DEVICE_BYTES
        return blocks(count, self.width, most=max_bytes)

    def read(self, index: Index) -> Any:
        """Some rows; each sums to 1."""
        roots = self._roots.rows(index)
        if self._roots.sparse:
            roots = roots.toarray()
        return roots * roots


def predicted_classes(samples: Any, metric: str, logits: Any) -> np.ndarray:
    """The most probable class of each sample as a whole number; of several classifiers, the joint class."""
    channels = _channels(samples, metric, logits)
    answers = np.empty((channels[0].n, len(channels)), dtype=np.int64)
    for c, channel in enumerate(channels):
        max_bytes = BLOCK_BYTES if channel.like is None else DEVICE_BYTES
        for span in blocks(channel.n, channel.width, most=max_bytes):
            channel.rows(span)  # for its checks; the user's numbers rank the classes without rounding
            block = (
                channel.data[span].toarray()
                if channel.sparse
                else double(select(channel.data, span), copy=False)
            )
            answers[span, c] = to_host(namespace(block).argmax(block, axis=1))
    return np.unique(answers, axis=0, return_inverse=True)[1].ravel()


def _channels(samples: Any, metric: str, logits: Any) -> Sequence[FeatureRows]:
    """The square roots of class probabilities, read as the kernel of class probabilities reads them."""
    check_flag(logits, "logits")
    expected = f"{metric} expected class probabilities, one row a sample."
    if isinstance(samples, str | bytes):
        raise InputError(f"samples is the single text {brief(samples)}; {expected}")
    shape = getattr(samples, "shape", None)
    if shape is None and isinstance(samples, Sequence) and len(samples) and np.isscalar(samples[0]):
        shape = (len(samples),)
    is_array = not (is_frame_column(samples) or _nested(samples))
    if is_array and isinstance(shape, tuple) and len(shape) < 2:
        raise InputError(f"samples has shape {shape_of(shape)}; {expected}")
    return channels_of(samples, logits=bool(logits), reader=metric, instead="For logits pass logits=True.")


def _nested(samples: Any) -> bool:
    return isinstance(samples, np.ndarray) and samples.dtype == object and samples.ndim == 1


def label_codes(samples: Any, metric: str) -> np.ndarray | None:
    """Labels as whole numbers from 0 up, or None where the samples are rows of numbers."""
    refuse_masked(samples, "samples")
    items: Any = local(known(samples))
    if is_frame_column(items):
        items = to_list(items)
    if is_foreign(items) and items.ndim == 1:
        items = to_host(items)
    if isinstance(items, np.ndarray) and items.ndim == 1 and items.dtype == object:
        items = items.tolist()
    if isinstance(items, np.ndarray) and items.ndim == 1:
        if len(items) == 0:
            raise EmptyError(EMPTY)
        if items.dtype.kind not in "biuUS":
            raise _label_error(f"samples has shape {shape_of(items.shape)} and dtype {items.dtype}", metric)
        return np.unique(items, return_inverse=True)[1]
    if (
        not isinstance(items, list | tuple)
        or not items
        or not (np.isscalar(items[0]) or is_missing(items[0]))
    ):
        return None
    codes: dict[Any, int] = {}
    for i, item in enumerate(items):
        if is_missing(item):
            raise InputError(
                f"item {i} is missing ({brief(item)}); {metric} expected a label. Fill or drop it.", item=i
            )
        if not isinstance(item, str | bytes | bool | int | np.integer | np.bool_):
            raise _label_error(f"item {i} is {brief(item)}", metric).at(item=i)
        codes.setdefault(item, len(codes))
    return np.array([codes[item] for item in items])


def _label_error(seen: str, metric: str) -> InputError:
    return InputError(
        f"{seen}; {metric} expected labels, whole numbers or texts, or class probabilities, one row a sample."
    )
