"""Metrics of the similarities themselves: internal diversity, mean similarity, and Leinster and Cobbold's diversity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError
from vendimeter.messages import brief, unknown
from vendimeter.options import COSINE, SEED, as_number, check_flag
from vendimeter.present.numbers import digits, order_name, short_number
from vendimeter.present.plain import plain_order
from vendimeter.present.tables import data_frame, html_table
from vendimeter.solvers.sums import noise_of, power_sum, present, row_sums
from vendimeter.spectrum import parse_order, parse_orders

__all__ = ["SimilarityProfile", "intdiv", "leinster_cobbold", "mean_similarity"]


def intdiv(
    samples: Any,
    kernel: Any = COSINE,
    *,
    p: float = 1,
    diagonal: bool = True,
    weights: Any = None,
    counts: Any = None,
    rng: int = SEED,
) -> float:
    """Internal diversity: 1 less the mean similarity of all pairs of items.

    IntDiv_p = 1 − (Σ wᵢ wⱼ k(xᵢ, xⱼ)^p)^(1/p) over all pairs, those of an item with itself among them; w = 1/n unless
    given. It is 0 where all items are alike, and higher the more they differ; 1 − 1/n, with p = 1, where none is like
    another.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items, as for `vendimeter.score`.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    p : float
        The power of the similarities, from 1 up: a high one minds close pairs most. Other powers than whole ones need
        similarities from 0 up.
    diagonal : bool
        Whether an item makes a pair with itself. Without these pairs the sum is divided by 1 − Σ w², the weight of the
        others.
    weights : array of shape (n,), optional
        Probabilities of the items; they sum to 1.
    counts : array of shape (n,), optional
        How often each item occurs. Copies of an item are different items with similarity 1: of N in all there are
        N(N − 1) pairs without the diagonal.
    rng : int
        Seed of what is random in a kernel.

    Notes
    -----
    With vectors (a kernel that has features) p = 1 takes O(nd) operations and p = 2 O(nd²); nothing n×n is built. Other
    kernels and powers take the similarities of all pairs, block by block. The matrix of a user's function is kept to
    be checked, as long as it fits 4 GiB. MOSES takes a root for each molecule, 1 − meanᵢ (meanⱼ k²)^½, which is never
    less than this: 0.8450 against 0.8433 for the first 1,500 molecules of its test set.

    References
    ----------
    Benhenda: ChemGAN challenge for drug discovery, arXiv:1708.08227, 2017 (p = 1). Polykovskiy et al.: Molecular Sets
    (MOSES), Frontiers in Pharmacology 11, 2020 (p = 1 and 2). Friedman and Dieng: The Vendi Score, TMLR 2023, in the
    experiments: 1 − (1/n²) Σ k(xᵢ, xⱼ).

    Examples
    --------
    >>> from vendimeter.metrics import intdiv
    >>> intdiv(["a", "a", "b", "b"], "match")
    0.5
    >>> round(intdiv(["a", "a", "b", "b"], "match", diagonal=False), 4)
    0.6667
    >>> intdiv([[1, 0.5], [0.5, 1]], "precomputed", p=2, diagonal=False)
    0.5
    """
    power = as_number(p)
    if not 1 <= power < math.inf:
        raise InputError(f"p={brief(p)}; expected the power of the similarities, a number from 1 up.")
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, rng=rng)
    with diversity.asked():
        shares, own_shares = diversity.shares, _own_shares(diversity, diagonal)
        pairs = float(shares @ _total_weights(shares, own_shares))
        if not pairs > 0:
            raise InputError(
                "there is one item, and diagonal=False leaves out its similarity with itself; expected two items or "
                "more."
            )
        scale, total = power_sum(diversity.similarity, shares, own_shares, power)
        mean = total / pairs
        if power == 1:
            return 1 - mean
        root = scale * abs(mean) ** (1 / power)
        if mean >= 0 or root <= noise_of(
            diversity.similarity
        ):  # similarities of 0 that rounding has made negative
            return 1 - root
        raise InputError(
            f"the mean of the similarities to the power p={power:g} is ({digits(-root)})^{power:g}, and has no root; "
            "expected similarities from 0 up, or p=1 or 2."
        )


def mean_similarity(
    samples: Any,
    kernel: Any = COSINE,
    *,
    diagonal: bool = True,
    weights: Any = None,
    counts: Any = None,
    rng: int = SEED,
) -> np.ndarray:
    """How similar each item is to all items in the mean: (Kw)ᵢ = Σⱼ wⱼ k(xᵢ, xⱼ), with w = 1/n unless given.

    The highest are the most typical items, the lowest the most unusual ones. The Vendi Score's paper shows examples in
    decreasing order of it: ``numpy.argsort(-mean_similarity(samples))``. Ecology calls it ordinariness.

    Parameters
    ----------
    samples, kernel, weights, counts, rng
        As for `intdiv`. An item of no weight is compared with the others and counts for none of them.
    diagonal : bool
        Whether an item is compared with itself, too. If not, the sum is divided by 1 − wᵢ, the weight of the others;
        with counts the other copies of an item are others.

    Returns
    -------
    ndarray of shape (n,)
        On the host, in float64, in the order of the samples. Its mean under w is 1 − IntDiv.

    Notes
    -----
    O(nd) for vectors, X(Xᵀw); all pairs, block by block, for other kernels.

    References
    ----------
    Leinster and Cobbold: Measuring diversity: the importance of species similarity, Ecology 93, 2012, where it is
    (Zp)ᵢ. Friedman and Dieng: The Vendi Score, TMLR 2023, the figures of images by average similarity.

    Examples
    --------
    >>> from vendimeter.metrics import mean_similarity
    >>> mean_similarity(["a", "a", "a", "b"], "match")
    array([0.75, 0.75, 0.75, 0.25])
    >>> mean_similarity(["a", "b"], "match", counts=[3, 1], diagonal=False).round(4)
    array([0.6667, 0.    ])
    """
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, rng=rng)
    with diversity.asked():
        shares, own_shares = diversity.shares, _own_shares(diversity, diagonal)
        others = _total_weights(shares, own_shares)
        if not others.min() > 0:
            raise InputError(
                f"item {int(others.argmin())} has all the weight, and diagonal=False leaves out its similarity with "
                "itself; expected two items of positive weight or more.",
                item=int(others.argmin()),
            )
        return row_sums(diversity.similarity, shares, own_shares) / others


def leinster_cobbold(
    samples: Any,
    kernel: Any = COSINE,
    *,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    rng: int = SEED,
) -> float | SimilarityProfile:
    """The similarity-sensitive diversity of Leinster and Cobbold: an effective number of items.

    D_q = (Σ pᵢ (Kp)ᵢ^(q−1))^(1/(1−q)) over the items with pᵢ > 0; exp(−Σ pᵢ log (Kp)ᵢ) for q = 1, and 1/max (Kp)ᵢ for
    q = ∞. It is 1 where all items are alike, and where none is like another it is the Hill number of p, which is n for
    equal weights.

    Parameters
    ----------
    samples, kernel, weights, counts, rng
        As for `intdiv`. A similarity matrix (``kernel="precomputed"``) must be symmetric with a diagonal of 1, but need
        not be positive semidefinite.
    q : float, str or list of them
        The order, from 0 up to ``"inf"``: how little rare items count. A list gives a `SimilarityProfile`.

    Returns
    -------
    float or SimilarityProfile

    Notes
    -----
    Similarities should lie between 0 and 1. An item whose similarities with the others have a negative mean is an
    error, because the diversity may then exceed the number of items, or not exist. For similarities between 0 and 1,
    D_q is at most the Vendi Score of the same order, for q from 0 to 2 and for ∞: ⟨φ|ρ|φ⟩ = Σ pⱼ kᵢⱼ² ≤ (Kp)ᵢ, and
    Jensen's inequality.

    References
    ----------
    Leinster and Cobbold: Measuring diversity: the importance of species similarity, Ecology 93, 2012: the diversity of
    order q, with Z for K. Reeve et al.: How to partition diversity, arXiv:1404.6520, 2014.

    Examples
    --------
    >>> from vendimeter.metrics import leinster_cobbold
    >>> K = [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]
    >>> round(leinster_cobbold(K, "precomputed", q=2), 4)
    2.25
    >>> leinster_cobbold(["a", "a", "b", "c"], "match", q=[0, 1, 2, "inf"])
    SimilarityProfile({0: 3, 1: 2.82843, 2: 2.66667, inf: 2}, n=4)
    """
    orders, several = parse_orders(q)
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, rng=rng)
    with diversity.asked():
        similarity, positions = present(diversity.similarity, diversity.shares)
        shares = diversity.shares[positions]
        mean_similarities = row_sums(similarity, shares, shares, positions)
        # From similarities with others that are not negative, (Kp)ᵢ is at least pᵢ, and D_q at most n.
        low = mean_similarities < np.maximum(shares - noise_of(similarity), shares / 2)
        if low.any():
            i = int(np.flatnonzero(low)[0])
            raise InputError(
                f"item {positions[i]} has a mean similarity of {digits(mean_similarities[i])} with all items, itself "
                f"among them with {digits(shares[i])}, because some of its similarities are negative; expected "
                "similarities from 0 up. Use another kernel, such as RBF().",
                item=positions[i],
            )
        diversities = {order: _power_mean(shares, mean_similarities, order) for order in orders}
    return SimilarityProfile(diversities, diversity.count) if several else diversities[orders[0]]


def _power_mean(shares: np.ndarray, mean_similarities: np.ndarray, q: float) -> float:
    """(Σ p x^(q−1))^(1/(1−q)), for every order without over- or underflow, and stable near 1."""
    if math.isinf(q):
        return float(1 / mean_similarities.max())
    if abs(q - 1) >= 0.5 and q <= 16:  # the formula itself is exact where the sum is: 1/(¼ + ¼) is 2
        return float(np.sum(shares * mean_similarities ** (q - 1)) ** (1 / (1 - q)))
    logs = np.log(mean_similarities)
    centre, t = float(shares @ logs), q - 1
    exponents = t * (logs - centre)
    if np.abs(exponents).max() <= 0.5:  # their mean is 0, so that the logarithm is of second order in t
        correction = math.log1p(float(shares @ np.expm1(exponents))) / t if t else 0.0
    else:
        top = float(exponents.max())
        correction = (top + math.log(float(shares @ np.exp(exponents - top)))) / t
    return math.exp(-centre - correction)


class SimilarityProfile(Mapping[float, float]):
    """Leinster and Cobbold's diversities of several orders: a mapping from the order; `profile["inf"]` works too.

    Attributes
    ----------
    n : int
        How many items there are; with counts, their sum.

    Examples
    --------
    >>> from vendimeter.metrics import leinster_cobbold
    >>> profile = leinster_cobbold(["a", "b", "b"], "match", q=[0, "inf"])
    >>> profile["inf"], profile.q, profile.diversities
    (1.5, array([ 0., inf]), array([2. , 1.5]))
    """

    def __init__(self, diversities: Mapping[float, float], n: int):
        self._diversities, self.n = dict(diversities), n

    def __getitem__(self, q: float | str) -> float:
        order = parse_order(q)
        if order not in self._diversities:
            raise unknown("order in this profile", q, map(order_name, self._diversities))
        return self._diversities[order]

    def __iter__(self) -> Iterator[float]:
        return iter(self._diversities)

    def __len__(self) -> int:
        return len(self._diversities)

    @property
    def q(self) -> np.ndarray:
        """The orders."""
        return np.array(list(self._diversities))

    @property
    def diversities(self) -> np.ndarray:
        """The diversities, one an order."""
        return np.array(list(self._diversities.values()))

    def _formatted_rows(self) -> list[tuple[object, ...]]:
        return [(order_name(q), short_number(diversity)) for q, diversity in self._diversities.items()]

    def __repr__(self) -> str:
        entries = ", ".join(f"{q}: {diversity}" for q, diversity in self._formatted_rows())
        return f"SimilarityProfile({{{entries}}}, n={self.n})"

    def _repr_html_(self) -> str:
        return html_table(self._formatted_rows(), ("q", "diversity"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values ready for JSON."""
        entries = [{"q": plain_order(q), "diversity": d} for q, d in self._diversities.items()]
        return {"n": self.n, "profile": entries}

    def to_frame(self) -> Any:
        """A pandas frame with one row an order."""
        return data_frame({"q": self.q, "diversity": self.diversities})


# -------------------------------------------------------------------------------------------------------------- weights


def _total_weights(shares: np.ndarray, own_shares: np.ndarray) -> np.ndarray:
    """The total weight of the similarities of each item: those with others, and its own."""
    totals, top = 1 - shares, int(shares.argmax())
    totals[top] = shares[:top].sum() + shares[top + 1 :].sum()  # 1 − w would be rounding where w is nearly 1
    return totals + own_shares


def _own_shares(diversity: Diversity, diagonal: Any) -> np.ndarray:
    """The weight of the similarity of each item with itself."""
    shares = diversity.shares
    if check_flag(diagonal, "diagonal"):
        return shares
    if diversity.weighting == "counts":
        return np.maximum(shares - 1 / diversity.count, 0.0)
    return np.zeros_like(shares)
