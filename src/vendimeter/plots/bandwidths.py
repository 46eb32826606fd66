"""The score against the bandwidth of a kernel, or under several kernels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.scale_curves import LOW
from vendimeter.plots._style import GREY, LIGHT, PALETTE, Display, axes, ticks
from vendimeter.results.score import number

if TYPE_CHECKING:
    from vendimeter.analysis.bandwidths import Bandwidths

__all__ = ["plot_bandwidths"]

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
