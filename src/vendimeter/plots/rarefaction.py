"""The picture of a rarefaction: the score against the number of samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.plots._style import GREY, LIGHT, PALETTE, Display, axes
from vendimeter.results.score import order_name, percentage

if TYPE_CHECKING:
    from vendimeter.analysis.rarefaction.rarefaction import Rarefaction

__all__ = ["curve"]

BEYOND = 2.2  # how far right of the last size the population stands, as a factor


def curve(rarefaction: Rarefaction, ax: Any = None) -> Display:
    """The mean score of subsets against their size with its band, the score, and the population beside it.

    Parameters
    ----------
    rarefaction : Rarefaction
        From `vendimeter.rarefy`.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from matplotlib.figure import Figure
    >>> drawn = vm.rarefy([1, 2, 3, 3, 4] * 40, "match").plot(ax=Figure().subplots())
    >>> drawn.ax_.get_xscale(), drawn.ax_.get_xlabel()
    ('log', 'samples')
    """
    found = rarefaction
    ax = axes(ax)
    ax.set_xscale("log")
    _plain_numbers(ax, found.n)
    band = ax.fill_between(found.sizes, found.low, found.high, color=PALETTE[0], alpha=0.2, linewidth=0)
    (mean,) = ax.plot(found.sizes, found.scores, color=PALETTE[0], marker="o", markersize=3, linewidth=1.4)
    weighted = found.population.n == 0
    what = "samples drawn by their weights" if weighted else "random subsets"
    handles, names = [mean, band], [f"{what}, mean", "… 5% to 95% of them"]
    if not np.allclose(found.truncated, found.scores, rtol=1e-6):
        (line,) = ax.plot(found.sizes, found.truncated, color=GREY, linestyle="--", linewidth=1.2)
        handles.append(line)
        names.append(f"truncated to {found.t:,} eigenvalues")
    (own,) = ax.plot([found.n], [float(found.score)], "D", color=PALETTE[7], markersize=5, zorder=4)
    handles.append(own)
    names.append(
        f"all {found.n:,} {'items with their weights' if weighted else 'samples'}: {found.score:.4g}"
    )
    _population(ax, found, handles, names)
    order = "" if found.q == 1 else f" of order {order_name(found.q)}"
    ax.set_xlabel("samples")
    ax.set_ylabel(f"Vendi Score{order}")
    ax.grid(axis="y", color=LIGHT, linewidth=0.5)
    ax.set_axisbelow(True)
    ax.legend(handles, names, frameon=False, fontsize="small", loc="best")
    return Display(ax, (ax,))


def _plain_numbers(ax: Any, most: int) -> None:
    """Numbers of samples as 20, 50 and 100, up to those there are: beyond stands the population."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:,.0f}" if 1 <= value <= 1.2 * most else "")
    )
    ax.xaxis.set_minor_formatter(NullFormatter())


def _population(ax: Any, found: Rarefaction, handles: list[Any], names: list[str]) -> None:
    """The estimate for the population with its interval, right of all sizes: its number of samples is infinite."""
    population, place = found.population, BEYOND * found.n
    if math.isnan(population):
        return
    if population.interval is None:
        (mark,) = ax.plot(
            [place],
            [population.estimate],
            "s",
            markerfacecolor="white",
            markeredgecolor=PALETTE[1],
            markersize=6,
        )
        names.append(f"population: {population:.4g} by extrapolation, no interval")
    else:
        low, high = population.interval
        reach = [[population.estimate - low], [high - population.estimate]]
        mark = ax.errorbar(
            [place], [population.estimate], yerr=reach, fmt="s", color=PALETTE[1], markersize=5, capsize=4
        )
        sure = percentage(population.confidence)
        names.append(f"population: {population:.4g}, {sure} interval {low:.4g} … {high:.4g}")
    handles.append(mark)
    ax.axvline(math.sqrt(BEYOND) * found.n, color=LIGHT, linewidth=1, zorder=0)
    ax.annotate(
        "∞", (place, 0), xycoords=("data", "axes fraction"), xytext=(0, -8), textcoords="offset points",
        ha="center", va="top", color=PALETTE[1],
    )  # fmt: skip
