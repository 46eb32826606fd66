"""What each sample contributes, drawn: shares of the entropy in order of their size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.data.arrays import to_list
from vendimeter.errors import InputError, brief
from vendimeter.options import whole_number
from vendimeter.plots._style import GREY, PALETTE, Display, axes, legend
from vendimeter.results.score import Score, number, order_name

if TYPE_CHECKING:
    from vendimeter.analysis.decomposition.contributions import Contributions
    from vendimeter.analysis.decomposition.streamed import WrittenContributions

__all__ = ["plot_contributions", "plot_written"]

BARS = 60  # samples up to which each has a bar of its own
POINTS = 2000  # of the curve for more of them: no screen shows more


def plot_contributions(found: Contributions, ax: Any = None, *, names: Any = None, k: int = 3) -> Display:
    """The shares of the samples in the entropy from small to large, with their mean, the rarest and the most redundant.

    Parameters
    ----------
    found : Contributions
        What `vendimeter.contributions` gave.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    names : list, optional
        A name for each sample; the ones that are pointed out are listed by it, else by their positions.
    k : int
        How many of the rarest, and of the most redundant, are pointed out.

    Returns
    -------
    Display

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import vendimeter as vm
    >>> colours = ["red", "red", "blue", "green"]
    >>> display = vm.contributions(colours, "match").plot(names=colours)
    >>> display.ax_.get_ylabel()
    'share of the entropy'
    >>> matplotlib.pyplot.close(display.figure_)
    """
    count = len(found.values)
    called = _called(names, count)
    several = whole_number(k, "k")
    ax = axes(ax, width=7.6)
    order = np.lexsort((found.rarity, found.values))
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(1, count + 1)
    _curve(ax, found.values[order])
    there = int(np.count_nonzero(found.weights))
    mean, top = float(found.values.sum()) / there, float(found.values.max())
    handles = [ax.axhline(mean, color=GREY, linewidth=1, linestyle="--", zorder=1)]
    listed = [f"mean: {number(mean)}"]
    # Of few samples none is both; of samples that are alike none is rarer than the others.
    several = min(several, there // 2) if top else 0
    for chosen, colour, marker, what in (
        (found.rarest, PALETTE[1], "^", "rarest"),
        (found.redundant, PALETTE[2], "v", "redundant"),
    ):
        for i in chosen(several).tolist() if several else []:
            how = {"color": colour, "markersize": 6, "zorder": 3, "clip_on": False}
            handles += ax.plot(place[i], found.values[i], marker, **how)
            listed.append(f"{what}: {called(i)}")
    # Beside the picture: on it there is no place that is free for every collection.
    legend(ax, handles, listed, loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize="small")
    _label(ax, found.score, found.n, top)
    return Display(ax, (ax,))


def plot_written(found: WrittenContributions, ax: Any = None) -> Display:
    """The shares of rows that were written to files, from small to large, by a sample of them.

    Parameters
    ----------
    found : WrittenContributions
        What `vendimeter.write_contributions` gave.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Display
    """
    ax = axes(ax)
    shares = np.sort(found.sample)
    mean, top = float(np.log(found.score)) / found.rows, float(shares.max())
    places = np.linspace(1, found.rows, len(shares))
    ax.fill_between(places, shares, color=PALETTE[0], alpha=0.25, linewidth=0)
    ax.plot(places, shares, color=PALETTE[0], linewidth=1.5)
    line = ax.axhline(mean, color=GREY, linewidth=1, linestyle="--")
    legend(ax, [line], [f"mean: {number(mean)}"], loc="lower right", fontsize="small")
    _label(ax, found.score, found.rows, top)
    ax.set_xlim(1, max(found.rows, 2))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return Display(ax, (ax,))


def _label(ax: Any, score: Score, n: int, top: float) -> None:
    """Axes and title."""
    ax.set_ylim(0, 1.05 * top or 1.0)
    ax.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=False)
    name = "entropy" if score.q == 1 else f"entropy of order {order_name(score.q)}"
    ax.set_xlabel("samples, by their share")
    ax.set_ylabel(f"share of the {name}")
    ax.set_title(f"{number(score)} effectively different items of {n:,}", fontsize="medium")


def _called(names: Any, count: int) -> Any:
    """Position → what to call the sample."""
    if names is None:
        return lambda i: f"item {i:,}"
    given = to_list(names)
    if len(given) != count:
        raise InputError(
            f"names={brief(names)} has {len(given)} entries and there are {count} samples; expected one a sample."
        )
    return lambda i: given[i]


def _curve(ax: Any, shares: np.ndarray) -> None:
    """Bars for few samples; for many the outline that they would make, at as many places as can be told apart."""
    count = len(shares)
    if count <= BARS:
        ax.bar(np.arange(1, count + 1), shares, color=PALETTE[0], alpha=0.75, width=0.8, zorder=2)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlim(0.4, count + 0.6)
        return
    at = np.unique(np.linspace(0, count - 1, min(count, POINTS)).round().astype(np.int64))
    ax.fill_between(at + 1, shares[at], color=PALETTE[0], alpha=0.25, linewidth=0, zorder=2)
    ax.plot(at + 1, shares[at], color=PALETTE[0], linewidth=1.5, zorder=2)
    ax.set_xlim(1, count)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
