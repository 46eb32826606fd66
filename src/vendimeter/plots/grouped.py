"""Pictures of the scores of groups: a ranking of some, the distribution of many."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.errors import EmptyError, InputError, brief, unknown
from vendimeter.plots.style import AS_IT_STANDS, GREY, LIGHT, PALETTE, Display, axes, shown, ticks
from vendimeter.results.groups import GroupScores
from vendimeter.results.score import order_name
from vendimeter.spectrum import parse_order

__all__ = ["groups"]

RANKED = 40  # groups up to which each has a line of its own
NAMED = 3  # groups that are named at each end, where there are more


def groups(scores: GroupScores, ax: Any = None, *, q: Any = None) -> Display:
    """The scores of groups: ranked, with their bounds; or their distribution, where there are more than 40.

    Parameters
    ----------
    scores : GroupScores
        From `vendimeter.score_groups`.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.
    q : float or str, optional
        The order, where the groups have several; 1 if it is among them, or else the first.

    Returns
    -------
    Display

    Examples
    --------
    >>> import vendimeter as vm
    >>> from matplotlib.figure import Figure
    >>> scores = vm.score_groups({"x": ["a", "b"], "y": ["a", "a"]}, kernel="match")
    >>> drawn = vm.plots.groups(scores, ax=Figure().subplots())
    >>> [label.get_text() for label in drawn.ax_.get_yticklabels()]
    ['x', 'y']
    """
    if not isinstance(scores, GroupScores):
        raise InputError(f"scores is {brief(scores)}; expected the groups of vendimeter.score_groups.")
    order, column = _column(scores, q)
    value, low, high = (np.asarray(held)[:, column] for held in _tables(scores))
    there = np.flatnonzero(np.isfinite(value))
    if not len(there):
        raise EmptyError("every group is empty; expected one with items, to be drawn.")
    ranked = there[np.argsort(-value[there], kind="stable")]
    what = "Vendi Score" if order == 1 else f"score of order {order_name(order)}"
    if len(ranked) <= RANKED:
        ax = axes(ax, height=max(1.6, 0.9 + 0.24 * len(ranked)))
        _ranking(ax, scores, ranked, value, low, high)
    else:
        ax = axes(ax)
        _distribution(ax, scores, ranked, value)
    ax.set_xlabel(what)
    empty = len(value) - len(there)
    if empty:
        ax.set_title(
            f"{empty:,} empty group{'s' * (empty > 1)} not shown", fontsize="small", color=GREY, loc="right"
        )
    return Display(ax, (ax,))


def _tables(scores: GroupScores) -> tuple[np.ndarray, ...]:
    """Scores and bounds, (groups, orders) each."""
    return tuple(
        held if held.ndim == 2 else held[:, None] for held in (scores.scores, scores.low, scores.high)
    )


def _column(scores: GroupScores, q: Any) -> tuple[float, int]:
    orders = np.atleast_1d(scores.q).tolist()
    if q is None:
        wanted = 1.0 if 1.0 in orders else orders[0]
    else:
        wanted = parse_order(q)
        if wanted not in orders:
            raise unknown("order in these groups", q, map(order_name, orders))
    return wanted, orders.index(wanted)


def _ranking(
    ax: Any, scores: GroupScores, ranked: np.ndarray, value: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    places = np.arange(len(ranked))
    best = value[ranked]
    ax.hlines(places, 0, best, color=LIGHT, linewidth=1.2, zorder=1)
    reach = np.stack([best - low[ranked], high[ranked] - best])
    reach = np.maximum(np.nan_to_num(reach), 0.0)
    ax.errorbar(
        best,
        places,
        xerr=reach,
        fmt="o",
        color=PALETTE[0],
        markersize=5,
        capsize=2.5,
        linewidth=1.4,
        zorder=2,
    )
    for place, at in zip(places.tolist(), ranked.tolist(), strict=True):
        ax.annotate(
            f"{value[at]:.3g}",
            (max(value[at], np.nan_to_num(high[at])), place),
            (7, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
            color=GREY,
        )
    ticks(ax.yaxis, places.tolist(), [scores.labels[at] for at in ranked.tolist()])
    ax.set_ylim(len(ranked) - 0.4, -0.6)
    ax.set_xlim(0, 1.16 * float(np.nanmax(np.append(high[ranked], best))))


def _distribution(ax: Any, scores: GroupScores, ranked: np.ndarray, value: np.ndarray) -> None:
    """A histogram, a tick for every group below it, and the names of those at both ends."""
    found = value[ranked]
    bins = min(40, max(10, round(np.sqrt(len(found)))))
    counts, _, _ = ax.hist(found, bins=bins, color=PALETTE[0], edgecolor="white", linewidth=0.4)
    top = float(counts.max())
    if len(found) <= 5000:
        ax.plot(found, np.full(len(found), -0.03 * top), "|", color=GREY, markersize=5, alpha=0.5)
    ax.set_ylim(-0.06 * top, 1.32 * top)
    mean = float(found.mean())
    ax.axvline(mean, color=PALETTE[1], linestyle="--", linewidth=1.3)
    ax.annotate(f"mean {mean:.3g}", (mean, 1.02 * top), (4, 0), textcoords="offset points", color=PALETTE[1])
    for side, ends in (("left", ranked[::-1][:NAMED]), ("right", ranked[:NAMED])):
        lines = [f"{shown(scores.labels[at], 24)}: {value[at]:.3g}" for at in ends.tolist()]
        heading = "lowest" if side == "left" else "highest"
        ax.text(
            0.01 if side == "left" else 0.99,
            0.99,
            "\n".join([heading, *lines]),
            transform=ax.transAxes,
            ha=side,
            va="top",
            fontsize="small",
            **AS_IT_STANDS,
        )
    ax.set_ylabel(f"groups, of {len(ranked):,}")
