"""Pictures of the scores of groups: a ranking of some, the distribution of many."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.errors import EmptyError, InputError
from vendimeter.messages import brief, unknown
from vendimeter.plots.style import AS_IT_STANDS, Display, axes, label_text, ticks
from vendimeter.present.colours import GREY, LIGHT, PALETTE
from vendimeter.present.numbers import order_name
from vendimeter.results.groups import GroupScores
from vendimeter.spectrum import parse_order

__all__ = ["groups"]

MAX_RANKED = 40  # groups up to which each has a line of its own
NAMED_AT_ENDS = 3  # groups that are named at each end, where there are more


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
    order, column = _order_column(scores, q)
    value, low, high = (np.asarray(table)[:, column] for table in _score_tables(scores))
    filled = np.flatnonzero(np.isfinite(value))
    if not len(filled):
        raise EmptyError("every group is empty; expected one with items, to be drawn.")
    ranked = filled[np.argsort(-value[filled], kind="stable")]
    label = "Vendi Score" if order == 1 else f"score of order {order_name(order)}"
    if len(ranked) <= MAX_RANKED:
        ax = axes(ax, height=max(1.6, 0.9 + 0.24 * len(ranked)))
        _draw_ranking(ax, scores, ranked, value, low, high)
    else:
        ax = axes(ax)
        _draw_distribution(ax, scores, ranked, value)
    ax.set_xlabel(label)
    empty = len(value) - len(filled)
    if empty:
        ax.set_title(
            f"{empty:,} empty group{'s' * (empty > 1)} not shown", fontsize="small", color=GREY, loc="right"
        )
    return Display(ax, (ax,))


def _score_tables(scores: GroupScores) -> tuple[np.ndarray, ...]:
    """Scores, lower and upper bounds, each of shape (groups, orders)."""
    return tuple(
        table if table.ndim == 2 else table[:, None] for table in (scores.scores, scores.low, scores.high)
    )


def _order_column(scores: GroupScores, q: Any) -> tuple[float, int]:
    orders = np.atleast_1d(scores.q).tolist()
    if q is None:
        order = 1.0 if 1.0 in orders else orders[0]
    else:
        order = parse_order(q)
        if order not in orders:
            raise unknown("order in these groups", q, map(order_name, orders))
    return order, orders.index(order)


def _draw_ranking(
    ax: Any, scores: GroupScores, ranked: np.ndarray, value: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    lines = np.arange(len(ranked))
    ranked_scores = value[ranked]
    ax.hlines(lines, 0, ranked_scores, color=LIGHT, linewidth=1.2, zorder=1)
    error_bars = np.stack([ranked_scores - low[ranked], high[ranked] - ranked_scores])
    error_bars = np.maximum(np.nan_to_num(error_bars), 0.0)
    ax.errorbar(
        ranked_scores,
        lines,
        xerr=error_bars,
        fmt="o",
        color=PALETTE[0],
        markersize=5,
        capsize=2.5,
        linewidth=1.4,
        zorder=2,
    )
    for line, g in zip(lines.tolist(), ranked.tolist(), strict=True):
        ax.annotate(
            f"{value[g]:.3g}",
            (max(value[g], np.nan_to_num(high[g])), line),
            (7, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
            color=GREY,
        )
    ticks(ax.yaxis, lines.tolist(), [scores.labels[g] for g in ranked.tolist()])
    ax.set_ylim(len(ranked) - 0.4, -0.6)
    ax.set_xlim(0, 1.16 * float(np.nanmax(np.append(high[ranked], ranked_scores))))


def _draw_distribution(ax: Any, scores: GroupScores, ranked: np.ndarray, value: np.ndarray) -> None:
    """Draw a histogram, a tick for every group below it, and the names of those at both ends."""
    ranked_scores = value[ranked]
    bins = min(40, max(10, round(np.sqrt(len(ranked_scores)))))
    counts, _, _ = ax.hist(ranked_scores, bins=bins, color=PALETTE[0], edgecolor="white", linewidth=0.4)
    top = float(counts.max())
    if len(ranked_scores) <= 5000:
        ax.plot(
            ranked_scores, np.full(len(ranked_scores), -0.03 * top), "|", color=GREY, markersize=5, alpha=0.5
        )
    ax.set_ylim(-0.06 * top, 1.32 * top)
    mean = float(ranked_scores.mean())
    ax.axvline(mean, color=PALETTE[1], linestyle="--", linewidth=1.3)
    ax.annotate(f"mean {mean:.3g}", (mean, 1.02 * top), (4, 0), textcoords="offset points", color=PALETTE[1])
    for side, ends in (("left", ranked[::-1][:NAMED_AT_ENDS]), ("right", ranked[:NAMED_AT_ENDS])):
        lines = [f"{label_text(scores.labels[g], 24)}: {value[g]:.3g}" for g in ends.tolist()]
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
