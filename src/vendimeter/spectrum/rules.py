"""Lanczos runs as quadrature rules, Gauss and Gauss–Radau, and what they say of the largest eigenvalue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["NOTHING", "Runs", "ceiling"]

NOTHING = 1e-14  # a node below this part of the largest cannot be told from 0


@dataclass(frozen=True)
class Runs:
    """Tridiagonal matrices of Lanczos runs, one a start vector: all of the same number of steps.

    Attributes
    ----------
    diagonal, beside : ndarray, shape (runs, steps)
        α₁ … α_k, and β₁ … β_k of which the last leads out of the k×k matrix.
    mass : ndarray, shape (runs,)
        The squared lengths of the start vectors.
    """

    diagonal: np.ndarray
    beside: np.ndarray
    mass: np.ndarray

    @property
    def count(self) -> int:
        """How many runs."""
        return len(self.mass)

    @property
    def steps(self) -> int:
        """How many Lanczos steps each."""
        return self.diagonal.shape[1]

    def _matrices(self) -> np.ndarray:
        k = self.steps
        stack = np.zeros((self.count, k, k))
        at = np.arange(k)
        stack[:, at, at] = self.diagonal
        stack[:, at[1:], at[:-1]] = stack[:, at[:-1], at[1:]] = self.beside[:, :-1]
        return stack

    @cached_property
    def gauss(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights, (runs, steps) each, of Gauss quadrature."""
        nodes, vectors = np.linalg.eigh(self._matrices())
        return nodes, vectors[:, 0, :] ** 2 * self.mass[:, None]

    @cached_property
    def radau(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights, (runs, steps + 1) each, of Gauss–Radau quadrature with a node at 0."""
        k = self.steps
        small = self._matrices()
        nodes, vectors = np.linalg.eigh(small)
        # The last diagonal entry that makes 0 an eigenvalue; never above the largest eigenvalue of A but by rounding.
        # Where a node is at 0 already, because the rank is exhausted, the Gauss rule is a Radau rule as it stands.
        top = np.maximum(nodes[:, -1:], 1e-200)
        there = nodes[:, 0] <= NOTHING * top[:, 0]
        inverse = np.sum(vectors[:, -1, :] ** 2 / np.maximum(nodes, NOTHING * top), axis=1)
        own = np.minimum(self.beside[:, -1] ** 2 * inverse, 4 * top[:, 0])
        stack = np.zeros((self.count, k + 1, k + 1))
        stack[:, :k, :k] = small
        stack[:, k, k - 1] = stack[:, k - 1, k] = np.where(there, 0.0, self.beside[:, -1])
        stack[:, k, k] = np.where(there, 0.0, own)
        nodes, vectors = np.linalg.eigh(stack)
        nodes = np.where(nodes > NOTHING * top, nodes, 0.0)
        nodes[:, 0] = 0.0  # exactly: powers below 1 feel what rounding leaves there
        return nodes, vectors[:, 0, :] ** 2 * self.mass[:, None]

    @property
    def largest(self) -> float:
        """The largest Ritz value."""
        return float(self.gauss[0].max())

    @property
    def smallest(self) -> float:
        """The smallest Ritz value: below 0 only by rounding, or for a matrix that is indefinite."""
        return float(self.gauss[0].min())


def ceiling(runs: Sequence[Runs], size: int, failure: float) -> float:
    """M with λ_max(A) ≤ M but for a probability of `failure`; `size` is the dimension of A."""
    from scipy.special import betaincinv

    top = max(max(run.largest for run in runs), 0.0)
    steps, count = min(run.steps for run in runs), sum(run.count for run in runs)
    if size <= steps or top == 0:
        return top * (1 + 1e-9)
    # All of them must have started with so small a component: the probabilities multiply.
    component = math.sqrt(float(betaincinv(0.5, (size - 1) / 2, failure ** (1 / count))))
    root = math.tanh(math.acosh(1 / component) / (2 * steps - 1))
    return top / max(1 - root**2, 1e-15)
