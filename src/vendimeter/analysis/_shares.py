"""What each item has of the entropy, from its coordinates in the eigenbasis: its share, its rarity, what it adds.

Every entropy here is a sum Σ λ g(λ) over the eigenvalues, and λ_a = Σ_i p_i y_ia², so that it is also a sum over the
items, of p_i Σ_a y_ia² g(λ_a). For q = 1, g = −log λ, and an item's sum is −φᵀ log ρ φ. For other orders it is that of
Tsallis, g = (1 − λ^(q−1))/(q − 1), whose shares are multiplied by one number so that they add up to log VS_q. At q = ∞
this would tell no items apart, and g is 0 for the largest eigenvalue and 1 for all others (1 for all, where all are
the largest).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vendimeter.analysis._leave_one_out import Removal, removal
from vendimeter.data.devices import move, namespace, to_host
from vendimeter.solvers.exact import Solution
from vendimeter.spectrum import Eigenvalues

__all__ = ["Shares"]

OUTSIDE = 1e-8  # the part of an item, squared, that may lie beyond the others by rounding
NOTHING = 1e-12  # an entropy up to this is rounding, where there is one eigenvalue to speak of


class Shares:
    """Shares of the entropy of one collection, block by block.

    Parameters
    ----------
    solution : Solution
        All eigenvalues of the collection.
    q : float
        The order.
    least : float
        The least weight above 0 of an item.
    leave_one_out : bool
        Whether to tell what removing an item does to the score.
    """

    def __init__(self, solution: Solution, q: float, least: float, leave_one_out: bool):
        spectrum = solution.spectrum
        assert isinstance(spectrum, Eigenvalues)
        values, threshold = spectrum.eigenvalues, spectrum.rank_threshold
        self.q, self.score = q, spectrum.score(q).value
        self.rank = max(1, int(np.count_nonzero(values > threshold)))
        # Up to which eigenvalue all is counted: below 1 what rounding made would count, from 1 up it does not.
        self._count = self.rank if q < 1 else int(np.count_nonzero(values > 0))
        used = values[: self._count]
        self._total = float(used.sum())
        used, threshold = used / self._total, threshold / self._total
        self._surprise, self._beyond = _surprises(used, q, threshold)
        self.entropy, total = math.log(self.score), float(used @ self._surprise)
        alike = self.rank == 1 and self.entropy < NOTHING
        self._scale = 0.0 if alike or not total > 0 else self.entropy / total
        self._removal: Removal | None = removal(used, q, threshold, least) if leave_one_out else None

    @property
    def removes(self) -> bool:
        """Whether it tells what removing an item does to the score."""
        return self._removal is not None

    @property
    def width(self) -> int:
        """Numbers that are held for an item, besides its coordinates."""
        return self._count + (2 if self._removal is None else self._removal.width)

    def __call__(
        self, coordinates: Any, shares: np.ndarray, taken: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The shares of the entropy, the rarities, and the changes of the score, of some items, on the host.

        Parameters
        ----------
        coordinates : array, shape (items, r)
            Of the items in the eigenbasis.
        shares : ndarray, shape (items,)
            Their probabilities.
        taken : ndarray, shape (items,)
            What of its probability removing an item takes away.
        """
        squares = coordinates * coordinates
        used = squares if squares.shape[1] == self._count else squares[:, : self._count]
        rarity = to_host(used @ move(self._surprise, used)) * (self._scale / self._total)
        absent = np.flatnonzero(shares == 0)
        if len(absent):
            rarity = np.where(shares == 0, self._of_absent(squares), rarity)
        rarity = np.maximum(rarity, 0.0)
        values = np.where(shares > 0, shares * np.where(shares > 0, rarity, 0.0), 0.0)
        if self._removal is None:
            return values, rarity, None
        change = self.score * np.expm1(self._removal(used, taken / self._total))
        return values, rarity, np.rint(change) if self.q == 0 else change

    def _of_absent(self, squares: Any) -> np.ndarray:
        """The rarity of items that have no weight, and so may lie beyond what the others span."""
        part = squares[:, : self.rank]
        outside = np.maximum(1 - to_host(namespace(part).sum(part, axis=1)), 0.0)
        inside = to_host(part @ move(self._surprise[: self.rank], part)) * self._scale
        if self._scale == 0:
            beyond = math.inf if self.q <= 1 else 0.0
            return np.where(outside > OUTSIDE, beyond, 0.0)
        if math.isinf(self._beyond):
            return np.where(outside > OUTSIDE, math.inf, inside)
        return inside + outside * self._beyond * self._scale


def _surprises(values: np.ndarray, q: float, threshold: float) -> tuple[np.ndarray, float]:
    """The function g at the eigenvalues, and at 0."""
    if math.isinf(q):
        others = (values < values[0] - threshold).astype(np.float64)
        return others if others.any() else np.ones_like(values), 1.0
    logs = np.log(values)
    if q == 1:
        return -logs, math.inf
    return -np.expm1((q - 1) * logs) / (q - 1), 1 / (q - 1) if q > 1 else math.inf
