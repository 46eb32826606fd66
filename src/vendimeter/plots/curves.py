"""The score against the bandwidth of a kernel, or under several kernels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.scale_curves import LOW
from vendimeter.analysis.selection.methods import METHODS, NAMES
from vendimeter.plots.style import GREY, LIGHT, PALETTE, Display, axes, ticks
from vendimeter.results.score import number, order_name, percentage

if TYPE_CHECKING:
    from vendimeter.analysis.bandwidths import Bandwidths
    from vendimeter.analysis.rarefaction.rarefaction import Rarefaction
    from vendimeter.analysis.selection.selection import Selection

__all__ = ["curve", "plot_bandwidths", "plot_selection"]


# --------------------------------------------------------------------------------------------------------- rarefaction

# The picture of a rarefaction: the score against the number of samples.

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


# ----------------------------------------------------------------------------------------------------------- selection

# The score that methods reach with a number of chosen items.

STYLES = {"vendi": "-", "logdet": "--", "farthest": "-.", "facility": (0, (5, 1, 1, 1, 1, 1)), "random": ":"}


def plot_selection(selection: Selection, ax: Any = None) -> Display:
    """A curve a method, the one that was used on top, and a line for the whole collection."""
    ax = axes(ax, width=7.6)
    from matplotlib.ticker import MaxNLocator  # who has axes has matplotlib

    sizes = selection.sizes
    for place, method in enumerate(METHODS):
        if method not in selection.curves:
            continue
        own = method == selection.method
        ax.plot(
            sizes,
            selection.curves[method],
            color=GREY if method == "random" else PALETTE[place],
            linestyle=STYLES[method],
            linewidth=2.4 if own else 1.4,
            marker="o" if len(sizes) == 1 else None,
            zorder=3 if own else 2,
            label=NAMES[method] + (" (chosen)" if own else ""),
        )
    if selection.whole is not None:
        ax.axhline(
            float(selection.whole), color="black", linewidth=0.9, zorder=1, label=f"all {selection.n:,} items"
        )
    order = "" if selection.score.q == 1 else f" of order {order_name(selection.score.q)}"
    ax.set_xlabel("items chosen")
    ax.set_ylabel(f"Vendi Score{order}")
    ax.set_ylim(bottom=0)
    ax.set_xlim(0, selection.k + max(1, 0.03 * selection.k))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return Display(ax, (ax,))


# ---------------------------------------------------------------------------------------------------------- bandwidths

TALL = 40  # kernels whose bars still have a name each


def plot_bandwidths(found: Bandwidths, ax: Any = None) -> Display:
    """Draw the score against the scale on logarithmic axes, the informative range shaded; or a bar a kernel.

    Parameters
    ----------
    found : Bandwidths
        What `vendimeter.bandwidth` gave.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    """
    if found.parameter:
        ax = axes(ax)
        _curve(ax, found)
    else:
        ax = axes(ax, height=max(2.0, 0.8 + 0.3 * min(len(found.names), TALL)))
        _bars(ax, found)
    return Display(ax, (ax,))


def _curve(ax: Any, found: Bandwidths) -> None:
    symbol = "σ" if found.parameter == "sigma" else "scale"
    ax.set_xscale("log")
    ax.set_yscale("log")
    if not math.isnan(found.low):
        ax.axvspan(found.low, found.high, color=LIGHT, alpha=0.5, lw=0, label="informative range")
    levels = [(1.0, "all alike", -11)] + [(found.most, "all different", 3)] * (found.most > LOW)
    for level, name, above in levels:
        ax.axhline(level, color=GREY, lw=0.8, ls=":")
        ax.annotate(
            f"{name}: {level:,.4g}",
            (1, level),
            xycoords=("axes fraction", "data"),
            xytext=(-4, above),
            textcoords="offset points",
            ha="right",
            color=GREY,
            fontsize="small",
        )
    ax.plot(found.scales, found.scores, "o-", color=PALETTE[0], ms=3)
    ax.plot(
        found.median,
        found.median_score,
        "s",
        color=PALETTE[3],
        ms=7,
        label=f"median distance, {found.median:.3g}",
    )
    if found.score is not None:
        ax.axvline(found.suggested, color=PALETTE[1], lw=1)
        label = f"suggested, {symbol} = {found.suggested:.3g}: {number(found.score)}"
        ax.plot(found.suggested, found.score, "D", color=PALETTE[1], ms=7, label=label)
    else:
        ax.plot([], [], " ", label="no scale suggested")
    top = max(found.most, float(found.scores.max()))
    ax.set_ylim(min(0.8, top**-0.09), 1.35 * top)
    _plain_ticks(ax, found.most)
    ax.set_xlabel(symbol)
    ax.set_ylabel("score" if found.q == 1 else f"score of order {found.q:g}")
    ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.92), fontsize="small")
    if found.items < found.n:
        ax.set_title(f"{found.items:,} of {found.n:,} items, drawn at random", fontsize="medium", loc="left")


def _plain_ticks(ax: Any, most: float) -> None:
    """Scores as plain numbers, 1, 10, 100; with 2 and 5 between them where the range is short."""
    steps = (1, 10) if most > 200 else (1, 2, 5, 10)
    values = [step * 10.0**k for k in range(9) for step in steps[:-1]]
    shown = [value for value in values if value <= 1.35 * most]
    ax.set_yticks(shown, [f"{value:,.0f}" for value in shown])
    ax.minorticks_off() if len(shown) > 3 else ax.tick_params(axis="y", which="minor", labelleft=False)


def _bars(ax: Any, found: Bandwidths) -> None:
    places = np.arange(len(found.names))[::-1]
    colours = [PALETTE[0] if inside else LIGHT for inside in found.informative]
    ax.barh(places, found.scores, color=colours)
    for place, score in zip(places, found.scores, strict=True):
        ax.annotate(
            number(score),
            (float(score), float(place)),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
    if len(found.names) <= TALL:
        ticks(ax.yaxis, places.tolist(), found.names)
    else:
        ax.set_yticks([])
    for level in (1.0, found.most):
        ax.axvline(level, color=GREY, lw=0.8, ls=":")
    ax.set_xlim(0, 1.12 * max(found.most, float(found.scores.max())))
    ax.set_xlabel(
        f"{'score' if found.q == 1 else f'score of order {found.q:g}'} (dotted: 1 and {found.most:,.4g})"
    )
