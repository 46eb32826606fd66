"""Sizes of clusters of near copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.plots._style import GREY, PALETTE, Display, axes
from vendimeter.results.score import number

if TYPE_CHECKING:
    from vendimeter.analysis.near_copies.near_copies import Duplicates

__all__ = ["plot_duplicates"]

FEW = 30  # clusters up to which each has a bar of its own


def plot_duplicates(found: Duplicates, ax: Any = None) -> Display:
    """Draw the size of each cluster where they are few, and how many there are of each size where they are many.

    Parameters
    ----------
    found : Duplicates
        What `vendimeter.duplicates` gave.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    """
    ax = axes(ax)
    if not found.clusters:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "no near copies", ha="center", va="center", color=GREY, transform=ax.transAxes)
    elif len(found.clusters) <= FEW:
        _each(ax, found)
    else:
        _counts(ax, found.sizes)
    ax.set_title(_title(found), fontsize="medium", loc="left")
    return Display(ax, (ax,))


def _title(found: Duplicates) -> str:
    lines = f"{found.copies:,} of {found.n:,} items are near copies (joined by similarities ≥ {found.threshold:g})"
    if found.score is not None and found.without is not None and found.copies:
        lines += f"\nscore {number(found.score)}, without them {number(found.without)}"
    if found.method != "exact":
        lines += f"\nabout {np.floor(1000 * found.recall) / 10:g}% of those at the threshold are found"
    return lines


def _each(ax: Any, found: Duplicates) -> None:
    """A bar a cluster, from the largest on; the part that is kept is one item."""
    places = np.arange(len(found.sizes))
    ax.bar(places, found.sizes - 1, bottom=1, color=PALETTE[1], label="copies")
    ax.bar(places, np.ones(len(places)), color=PALETTE[0], label="kept")
    firsts = [f"{members[0]:,}" for members in found.clusters]
    steep = len(firsts) > 12 or max(map(len, firsts)) > 5
    ax.set_xticks(places, firsts, rotation=90 if steep else 0)
    ax.set_xlabel("cluster, by the position of the item that is kept")
    ax.set_ylabel("items")
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.set_ylim(0, 1.15 * found.sizes[0])  # room for the legend
    ax.legend(frameon=False, loc="upper right", ncols=2)


def _counts(ax: Any, sizes: np.ndarray) -> None:
    """How many clusters there are of each size, on logarithmic axes where sizes are many."""
    values, counts = np.unique(sizes, return_counts=True)
    if values[-1] <= FEW:
        ax.bar(values, counts, color=PALETTE[0])
        ax.set_xticks(values if len(values) <= 15 else values[:: len(values) // 10])
    else:
        ax.plot(values, counts, "o", color=PALETTE[0], markersize=4)
        ax.set_xscale("log")
    if counts.max() > 100 * counts.min() or values[-1] > FEW:
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.7)
    ax.set_xlabel("items in a cluster")
    ax.set_ylabel("clusters")
