"""Clusters of the points of two sets by k-means: which share of each set lies in each cluster."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import DEVICE_BYTES, is_gpu, move, namespace, to_host, transposed
from vendimeter.metrics._inputs import wide_block
from vendimeter.present.progress import Progress

__all__ = ["MOST_FITTED", "cluster_shares"]

MOST_FITTED = 5000  # points of each set that centres are fitted to
ROUNDS = 100  # of moving the centres, at most
SETTLED = 1e-2  # of the points may still go to another centre in the last round


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
        What decides on the points and the first centres.
    progress : Progress
        What is told how far the work is.
    """
    scale = 2.0 ** -max(max(_exponent(rows, name, clusters) for name, rows in sets.items()), -1000)
    size = min(MOST_FITTED, *(int(rows.shape[0]) for rows in sets.values()))
    centres = []
    for run in range(runs):
        progress.step(run / (runs + 1))
        points = []
        for name, rows in sets.items():
            chosen = np.sort(draws.choice(rows.shape[0], size, replace=False))
            points.append(to_host(wide_block(rows, chosen, name)) * scale)
        centres.append(_fitted(np.concatenate(points), clusters, draws))
    return [_shares(rows, name, centres, clusters, scale) for name, rows in sets.items()]


def _parts(rows: Any, clusters: int) -> list[slice]:
    width = max(int(rows.shape[1]), clusters)
    return blocks(rows.shape[0], width, most=DEVICE_BYTES if is_gpu(rows) else BLOCK_BYTES)


def _exponent(rows: Any, name: str, clusters: int) -> int:
    """The binary exponent of the largest entry, by which all are divided, so that no square overflows or vanishes."""
    peak = 0.0
    for part in _parts(rows, clusters):
        block = wide_block(rows, part, name)
        peak = max(peak, float(namespace(block).max(namespace(block).abs(block))))
    return math.frexp(peak)[1]


def _fitted(points: np.ndarray, clusters: int, draws: np.random.Generator) -> np.ndarray:
    """Centres that no longer move, from those that k-means++ draws; fewer of them where fewer points differ."""
    middle = points.mean(axis=0)
    points -= middle
    parts = _parts(points, clusters)
    chosen, squares = [int(draws.integers(len(points)))], np.full(len(points), np.inf)
    while True:
        for part in parts:
            apart = points[part] - points[chosen[-1]]
            squares[part] = np.minimum(squares[part], np.einsum("ij,ij->i", apart, apart))
        if len(chosen) == clusters or not squares.any():
            break
        sums = np.cumsum(squares)
        chosen.append(int(np.searchsorted(sums, draws.random() * sums[-1], side="right")))
    centres, labels, before = points[chosen], np.empty(len(points), dtype=np.int64), None
    for _ in range(ROUNDS):
        sums, sizes = np.zeros_like(centres), np.zeros(len(centres))
        for part in parts:
            labels[part] = _nearest(points[part], centres)
            members = (labels[part] == np.arange(len(centres))[:, None]).astype(np.float64)
            sums += members @ points[part]
            sizes += members.sum(axis=1)
        if before is not None and np.count_nonzero(labels != before) <= len(points) * SETTLED:
            break
        before, held = labels.copy(), sizes > 0  # a centre that has lost its points stays where it is
        centres[held] = sums[held] / sizes[held, None]
    return centres + middle


def _nearest(block: Any, centres: Any) -> np.ndarray:
    """The nearest centre of each row, of several the first."""
    xp = namespace(block)
    return to_host(xp.argmin(xp.sum(centres * centres, axis=1) - 2 * (block @ transposed(centres)), axis=1))


def _shares(rows: Any, name: str, centres: list[np.ndarray], clusters: int, scale: float) -> np.ndarray:
    """The share of the rows that is nearest to each centre, of every run."""
    counts = np.zeros((len(centres), clusters), dtype=np.int64)
    middle = np.mean([run.mean(axis=0) for run in centres], axis=0)
    for part in _parts(rows, clusters):
        block = wide_block(rows, part, name) * scale
        block = block - move(middle, block)
        for run, places in enumerate(centres):
            labels = _nearest(block, move(places - middle, block))
            counts[run] += np.bincount(labels, minlength=clusters)
    return counts / rows.shape[0]
