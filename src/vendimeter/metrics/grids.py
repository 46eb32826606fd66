"""How much of a grid over behaviours is covered, and how well: coverage and QD-score of quality diversity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks
from vendimeter.data.devices import to_host
from vendimeter.data.tables import check_alignment
from vendimeter.errors import InputError
from vendimeter.messages import brief, unknown
from vendimeter.metrics.features import feature_rows, numbers_of, wide_block
from vendimeter.metrics.samples import opened
from vendimeter.options import as_number, whole_number
from vendimeter.present.numbers import digits
from vendimeter.results.base import Figure

__all__ = ["GridCoverage", "grid_coverage"]

OUTSIDE = ("refuse", "clip")
MOST_BINS = 1 << 53  # of a column: beyond, float64 cannot number them


@dataclass(frozen=True, repr=False, eq=False)
class GridCoverage(Figure):
    """The share of cells of a grid that hold a sample, with the QD-score.

    Attributes
    ----------
    value : float
        The share.
    occupied : int
        How many cells hold a sample.
    cells : int
        How many cells the grid has.
    qd_score : float or None
        The sum over occupied cells of the best quality in each less the offset; None without qualities.
    n : int
        How many samples there are.
    clipped : int
        How many of them lay outside the bounds and were counted in the nearest cell.
    counts : ndarray
        How many samples each occupied cell holds, in order of the cells.
    indices : ndarray
        The position of the best sample of each of these cells, the first of several; without qualities that of its
        first.
    """

    value: float
    occupied: int
    cells: int
    qd_score: float | None
    n: int
    clipped: int
    counts: np.ndarray = field(repr=False)
    indices: np.ndarray = field(repr=False)


def grid_coverage(
    samples: Any,
    *,
    bounds: Any,
    bins: Any,
    quality: Any = None,
    offset: float = 0.0,
    outside: str = "refuse",
    features: Any = None,
) -> GridCoverage:
    """Coverage of a grid of behaviours: the share of its cells that hold a sample, and the QD-score beside it.

    Each column is a measure of behaviour, such as the final position of a robot; its range is cut into `bins` of equal
    width, and the cells are all their combinations. The QD-score is the sum over occupied cells of the best quality in
    each, Σ (quality − offset): it rises with more cells and with better samples in them.

    Parameters
    ----------
    samples : array, list or Collection
        Behaviours, a row each; with `features` whatever that takes.
    bounds : pair, or sequence of pairs
        The lowest and the highest value of each column, or of all of them. They are not taken from the samples: the
        grid would shrink with them, and coverages of different samples would be of different grids.
    bins : int, or sequence of int
        Into how many parts each column is cut, or all of them. A value on a boundary counts to the part above it, the
        upper bound to the last.
    quality : array of shape (n,), optional
        How good each sample is; higher is better.
    offset : float
        What is taken away from every quality, the lowest that there can be: with a quality below it a cell would lower
        the QD-score by being found, and that is an error.
    outside : {"refuse", "clip"}
        What to do with samples outside the bounds: an error, or to count them in the nearest cell, as archives of
        MAP-Elites do; `clipped` says how many.
    features : Encoder, str or callable, optional
        What turns samples into rows of behaviours, if they are none.

    Returns
    -------
    GridCoverage
        A float with `occupied`, `cells`, `qd_score`, `counts` and `indices`.

    Notes
    -----
    Both depend on the grid, and coverage rises with n: compare only figures of one grid and one n. Coverage says
    nothing of how evenly the cells are filled; ``hill(found.counts)`` is the effective number of cells. With many
    columns a grid has more cells than there can ever be samples: only those that are occupied are kept in memory.

    Cells are those of ``numpy.histogramdd``. The package pyribs (0.12) adds 10⁻⁶ before it rounds a value down to its
    cell, so that values just below a boundary count to the part above it, clips without a word, and numbers cells by
    32 bits.

    References
    ----------
    Pugh, Soros, Stanley: Quality diversity: a new frontier for evolutionary computation, Frontiers in Robotics and AI
    2016 (QD-score). Mouret, Clune: Illuminating search spaces by mapping elites, arXiv:1504.04909, 2015 (coverage of
    the grid).

    Examples
    --------
    >>> from vendimeter.metrics import grid_coverage
    >>> walks = [[0.1, 0.2], [0.3, 0.4], [0.9, 0.1], [0.9, 0.9]]
    >>> found = grid_coverage(walks, bounds=(0, 1), bins=2, quality=[1.0, 3.0, 2.0, 0.5])
    >>> found
    GridCoverage(0.75, occupied=3, cells=4, qd_score=5.5, n=4, clipped=0)
    >>> found.counts.tolist(), found.indices.tolist()
    ([2, 1, 1], [1, 2, 3])
    """
    if outside not in OUTSIDE:
        raise unknown("way to treat samples outside the bounds", outside, OUTSIDE)
    with opened(samples, "grid_coverage", vectors=features is None) as samples:
        if quality is not None:
            check_alignment(samples, quality, "quality")
        rows = feature_rows(samples, "grid_coverage", features=features)
        n, width = (int(size) for size in rows.shape)
        low, high = _check_bounds(bounds, width)
        sizes = _bin_counts(bins, low, high)
        qualities = None if quality is None else _qualities(quality, as_number(offset), offset, n)
        if qualities is None and as_number(offset) != 0:
            raise InputError(f"offset={brief(offset)} without quality; expected both, or neither.")
        bin_positions, clipped = np.empty((n, width), dtype=np.int64), 0
        for span in blocks(n, width, most=BLOCK_BYTES):
            block = to_host(wide_block(rows, span))
            beyond = (block < low) | (block > high)
            if outside == "refuse" and beyond.any():
                i, j = (int(place) for place in np.argwhere(beyond)[0])
                raise InputError(
                    f"item {i + span.start} has {digits(block[i, j])} in column {j}, outside the bounds "
                    f"{digits(low[j])} to {digits(high[j])}; expected values within them. Pass wider bounds, or "
                    "outside='clip' to count such samples in the nearest cell.",
                    item=i + span.start,
                )
            clipped += int(np.count_nonzero(beyond.any(axis=1)))
            bin_positions[span] = _bin_positions(np.clip(block, low, high), low, high, sizes)
        _, cell, counts = np.unique(bin_positions, axis=0, return_inverse=True, return_counts=True)
        # Samples in order of their cells, within one from the best to the worst, and on ties in their order.
        keys = (np.arange(n), *(() if qualities is None else (-qualities,)), cell.ravel())
        order = np.lexsort(keys)
        indices = order[np.cumsum(counts) - counts]
        cells = math.prod(sizes)
        score = None if qualities is None else math.fsum((qualities[indices]).tolist())
        return GridCoverage(len(counts) / cells, len(counts), cells, score, n, clipped, counts, indices)


def _bin_positions(block: np.ndarray, low: np.ndarray, high: np.ndarray, sizes: list[int]) -> np.ndarray:
    """The bin of each column that a value lies in; boundaries are those of ``numpy.linspace``."""
    last = np.array(sizes) - 1
    step = (high - low) / np.array(sizes)
    positions = np.clip(np.floor((block - low) / step).astype(np.int64), 0, last)
    # Where the division was rounded to the other side of a boundary.
    positions -= (positions > 0) & (block < low + positions * step)
    positions += (positions < last) & (block >= low + (positions + 1) * step)
    return positions


def _check_bounds(bounds: Any, width: int) -> tuple[np.ndarray, np.ndarray]:
    expected = (
        f"bounds={brief(bounds)}; expected the lowest and the highest value of each of {width} columns, such as "
        f"[(0, 1)] * {width}, or one pair for all."
    )
    try:
        array = np.asarray(bounds)
    except (TypeError, ValueError):
        raise InputError(expected) from None
    if array.shape not in ((2,), (width, 2)) or array.dtype.kind not in "buif":
        raise InputError(expected)
    low, high = np.broadcast_to(array.astype(np.float64), (width, 2)).T
    with np.errstate(over="ignore", invalid="ignore"):
        bad = np.flatnonzero(~(np.isfinite(high - low) & (low < high)))
    if len(bad):
        j = int(bad[0])
        raise InputError(
            f"the bounds of column {j} are {digits(low[j])} and {digits(high[j])}; expected two finite numbers, the "
            "lower one first."
        )
    return low, high


def _bin_counts(bins: Any, low: np.ndarray, high: np.ndarray) -> list[int]:
    width = len(low)
    bins = bins.tolist() if hasattr(bins, "tolist") else bins  # an array of any library
    several = isinstance(bins, Sequence) and not isinstance(bins, str)
    sizes = [whole_number(size, "bins") for size in (bins if several else [bins] * width)]
    if len(sizes) != width:
        raise InputError(
            f"bins has {len(sizes)} entries and there are {width} columns; expected one a column."
        )
    if max(sizes) > MOST_BINS:
        raise InputError(f"bins={brief(bins)}; expected {MOST_BINS:,} a column at most.")
    narrow = np.flatnonzero((high - low) / sizes < np.spacing(np.maximum(np.abs(low), np.abs(high))))
    if len(narrow):
        j = int(narrow[0])
        raise InputError(
            f"bins={sizes[j]} of column {j}, from {digits(low[j])} to {digits(high[j])}, are narrower than float64 can "
            "tell apart there; expected fewer."
        )
    return sizes


def _qualities(quality: Any, low: float, offset: Any, n: int) -> np.ndarray:
    """Qualities less the offset."""
    if not math.isfinite(low):
        raise InputError(
            f"offset={brief(offset)}; expected a finite number, the lowest quality there can be."
        )
    values = numbers_of(quality, "quality", "numbers, one a sample, in an array or list")
    if len(values) != n:
        raise InputError(
            f"quality has {len(values)} entries and there are {n} samples; expected one a sample."
        )
    bad = np.flatnonzero(values < low)
    if len(bad):
        value = digits(float(values[bad[0]]))
        raise InputError(
            f"quality[{bad[0]}] is {value}, below the offset {digits(low)}; expected none below it, or a cell "
            "would lower the QD-score by being found. Pass the lowest quality that there can be as offset."
        )
    with np.errstate(over="ignore"):
        above = values - low
        if not np.isfinite(above.sum()):
            raise InputError(
                "quality less offset adds up to more than float64 can hold; expected smaller numbers."
            )
    return above
