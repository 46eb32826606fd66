"""Curves of the score: against the number of samples, of chosen items, and against the bandwidth of a kernel.

Each draws one kind of result: `curve` a rarefaction, `plot_selection` a selection, and `plot_bandwidths` a search for
bandwidths (or bars, where it compared kernels that have none).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.scale_curves import LOW
from vendimeter.analysis.selection.methods import METHODS, NAMES
from vendimeter.plots.style import Display, axes, ticks
from vendimeter.present.colours import GREY, LIGHT, PALETTE
from vendimeter.present.numbers import format_confidence, order_name, order_suffix, short_number

if TYPE_CHECKING:
    from vendimeter.analysis.bandwidths import Bandwidths
    from vendimeter.analysis.rarefaction.rarefaction import Rarefaction
    from vendimeter.analysis.selection.selection import Selection

__all__ = ["curve", "plot_bandwidths", "plot_selection"]


# --------------------------------------------------------------------------------------------------------- rarefaction

POPULATION_OFFSET = 2.2  # x of the population over the largest size


def curve(rarefaction: Rarefaction, ax: Any = None) -> Display:
    """Draw the mean score of subsets against their size with its band, the full score, and the population's estimate.

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
    ax = axes(ax)
    ax.set_xscale("log")
    _size_ticks(ax, rarefaction.n)
    band = ax.fill_between(
        rarefaction.sizes, rarefaction.low, rarefaction.high, color=PALETTE[0], alpha=0.2, linewidth=0
    )
    (mean,) = ax.plot(
        rarefaction.sizes, rarefaction.scores, color=PALETTE[0], marker="o", markersize=3, linewidth=1.4
    )
    weighted = rarefaction.population.n == 0
    subsets = "samples drawn by their weights" if weighted else "random subsets"
    handles, names = [mean, band], [f"{subsets}, mean", "… 5% to 95% of them"]
    if not np.allclose(rarefaction.truncated, rarefaction.scores, rtol=1e-6):
        (line,) = ax.plot(rarefaction.sizes, rarefaction.truncated, color=GREY, linestyle="--", linewidth=1.2)
        handles.append(line)
        names.append(f"truncated to {rarefaction.t:,} eigenvalues")
    (full_score,) = ax.plot(
        [rarefaction.n], [float(rarefaction.score)], "D", color=PALETTE[7], markersize=5, zorder=4
    )
    handles.append(full_score)
    names.append(
        f"all {rarefaction.n:,} {'items with their weights' if weighted else 'samples'}: {rarefaction.score:.4g}"
    )
    _draw_population(ax, rarefaction, handles, names)
    ax.set_xlabel("samples")
    ax.set_ylabel(f"Vendi Score{order_suffix(rarefaction.q, order_name)}")
    ax.grid(axis="y", color=LIGHT, linewidth=0.5)
    ax.set_axisbelow(True)
    ax.legend(handles, names, frameon=False, fontsize="small", loc="best")
    return Display(ax, (ax,))


def _size_ticks(ax: Any, largest: int) -> None:
    """Set ticks at 20, 50, 100, … up to the number of samples: the population stands beyond it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:,.0f}" if 1 <= value <= 1.2 * largest else "")
    )
    ax.xaxis.set_minor_formatter(NullFormatter())


def _draw_population(ax: Any, rarefaction: Rarefaction, handles: list[Any], names: list[str]) -> None:
    """Draw the estimate for the population with its interval, right of all sizes: its number of samples is infinite."""
    population, x = rarefaction.population, POPULATION_OFFSET * rarefaction.n
    if math.isnan(population):
        return
    if population.interval is None:
        (mark,) = ax.plot(
            [x],
            [population.estimate],
            "s",
            markerfacecolor="white",
            markeredgecolor=PALETTE[1],
            markersize=6,
        )
        names.append(f"population: {population:.4g} by extrapolation, no interval")
    else:
        low, high = population.interval
        error_bars = [[population.estimate - low], [high - population.estimate]]
        mark = ax.errorbar(
            [x], [population.estimate], yerr=error_bars, fmt="s", color=PALETTE[1], markersize=5, capsize=4
        )
        confidence = format_confidence(population.confidence)
        names.append(f"population: {population:.4g}, {confidence} interval {low:.4g} … {high:.4g}")
    handles.append(mark)
    ax.axvline(math.sqrt(POPULATION_OFFSET) * rarefaction.n, color=LIGHT, linewidth=1, zorder=0)
    ax.annotate(
        "∞", (x, 0), xycoords=("data", "axes fraction"), xytext=(0, -8), textcoords="offset points",
        ha="center", va="top", color=PALETTE[1],
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- selection

STYLES = {"vendi": "-", "logdet": "--", "farthest": "-.", "facility": (0, (5, 1, 1, 1, 1, 1)), "random": ":"}


def plot_selection(selection: Selection, ax: Any = None) -> Display:
    """Draw a curve per method, the one that was used on top, and a line for the whole collection."""
    ax = axes(ax, width=7.6)
    from matplotlib.ticker import MaxNLocator  # who has axes has matplotlib

    sizes = selection.sizes
    for i, method in enumerate(METHODS):
        if method not in selection.curves:
            continue
        is_used = method == selection.method
        ax.plot(
            sizes,
            selection.curves[method],
            color=GREY if method == "random" else PALETTE[i],
            linestyle=STYLES[method],
            linewidth=2.4 if is_used else 1.4,
            marker="o" if len(sizes) == 1 else None,
            zorder=3 if is_used else 2,
            label=NAMES[method] + (" (chosen)" if is_used else ""),
        )
    if selection.whole is not None:
        ax.axhline(
            float(selection.whole), color="black", linewidth=0.9, zorder=1, label=f"all {selection.n:,} items"
        )
    ax.set_xlabel("items chosen")
    ax.set_ylabel(f"Vendi Score{order_suffix(selection.score.q, order_name)}")
    ax.set_ylim(bottom=0)
    ax.set_xlim(0, selection.k + max(1, 0.03 * selection.k))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return Display(ax, (ax,))


# ---------------------------------------------------------------------------------------------------------- bandwidths

MAX_NAMED_KERNELS = 40  # kernels whose bars still have a name each


def plot_bandwidths(bandwidths: Bandwidths, ax: Any = None) -> Display:
    """Draw the score against the scale on logarithmic axes, the informative range shaded; or a bar a kernel.

    Parameters
    ----------
    bandwidths : Bandwidths
        From `vendimeter.bandwidth`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    """
    if bandwidths.parameter:
        ax = axes(ax)
        _draw_scale_curve(ax, bandwidths)
    else:
        ax = axes(ax, height=max(2.0, 0.8 + 0.3 * min(len(bandwidths.names), MAX_NAMED_KERNELS)))
        _draw_kernel_bars(ax, bandwidths)
    return Display(ax, (ax,))


def _draw_scale_curve(ax: Any, bandwidths: Bandwidths) -> None:
    symbol = "σ" if bandwidths.parameter == "sigma" else "scale"
    ax.set_xscale("log")
    ax.set_yscale("log")
    if not math.isnan(bandwidths.low):
        ax.axvspan(bandwidths.low, bandwidths.high, color=LIGHT, alpha=0.5, lw=0, label="informative range")
    levels = [(1.0, "all alike", -11)] + [(bandwidths.most, "all different", 3)] * (bandwidths.most > LOW)
    for level, name, offset in levels:
        ax.axhline(level, color=GREY, lw=0.8, ls=":")
        ax.annotate(
            f"{name}: {level:,.4g}",
            (1, level),
            xycoords=("axes fraction", "data"),
            xytext=(-4, offset),
            textcoords="offset points",
            ha="right",
            color=GREY,
            fontsize="small",
        )
    ax.plot(bandwidths.scales, bandwidths.scores, "o-", color=PALETTE[0], ms=3)
    ax.plot(
        bandwidths.median,
        bandwidths.median_score,
        "s",
        color=PALETTE[3],
        ms=7,
        label=f"median distance, {bandwidths.median:.3g}",
    )
    if bandwidths.score is not None:
        ax.axvline(bandwidths.suggested, color=PALETTE[1], lw=1)
        label = f"suggested, {symbol} = {bandwidths.suggested:.3g}: {short_number(bandwidths.score)}"
        ax.plot(bandwidths.suggested, bandwidths.score, "D", color=PALETTE[1], ms=7, label=label)
    else:
        ax.plot([], [], " ", label="no scale suggested")
    top = max(bandwidths.most, float(bandwidths.scores.max()))
    ax.set_ylim(min(0.8, top**-0.09), 1.35 * top)
    _score_ticks(ax, bandwidths.most)
    ax.set_xlabel(symbol)
    ax.set_ylabel(f"score{order_suffix(bandwidths.q, order_name)}")
    ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.92), fontsize="small")
    if bandwidths.items < bandwidths.n:
        ax.set_title(
            f"{bandwidths.items:,} of {bandwidths.n:,} items, drawn at random", fontsize="medium", loc="left"
        )


def _score_ticks(ax: Any, top: float) -> None:
    """Set ticks at scores of 1, 10, 100; with 2 and 5 between them where the range is short."""
    steps = (1, 10) if top > 200 else (1, 2, 5, 10)
    values = [step * 10.0**k for k in range(9) for step in steps[:-1]]
    ticks_shown = [value for value in values if value <= 1.35 * top]
    ax.set_yticks(ticks_shown, [f"{value:,.0f}" for value in ticks_shown])
    ax.minorticks_off() if len(ticks_shown) > 3 else ax.tick_params(axis="y", which="minor", labelleft=False)


def _draw_kernel_bars(ax: Any, bandwidths: Bandwidths) -> None:
    positions = np.arange(len(bandwidths.names))[::-1]
    colours = [PALETTE[0] if inside else LIGHT for inside in bandwidths.informative]
    ax.barh(positions, bandwidths.scores, color=colours)
    for position, score in zip(positions, bandwidths.scores, strict=True):
        ax.annotate(
            short_number(score),
            (float(score), float(position)),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
    if len(bandwidths.names) <= MAX_NAMED_KERNELS:
        ticks(ax.yaxis, positions.tolist(), bandwidths.names)
    else:
        ax.set_yticks([])
    for level in (1.0, bandwidths.most):
        ax.axvline(level, color=GREY, lw=0.8, ls=":")
    ax.set_xlim(0, 1.12 * max(bandwidths.most, float(bandwidths.scores.max())))
    ax.set_xlabel(f"score{order_suffix(bandwidths.q, order_name)} (dotted: 1 and {bandwidths.most:,.4g})")
