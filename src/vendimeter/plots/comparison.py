"""Pictures of groups side by side: their ranking, their differences, and how alike they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.errors import EmptyError
from vendimeter.plots.style import (
    AS_IT_STANDS,
    GREY,
    LIGHT,
    PALETTE,
    SEQUENTIAL,
    Display,
    axes,
    legend,
    shown,
    ticks,
)
from vendimeter.results.score import order_name, percentage

if TYPE_CHECKING:
    from vendimeter.analysis.comparison.comparison import Comparison
    from vendimeter.analysis.comparison.differences import Differences

__all__ = ["differences", "ranking", "similarity"]

MOST = 40  # lines of a picture
NAMED = 60  # groups whose names have room beside a matrix
WRITTEN = 10  # groups up to which a matrix has its numbers in it
NAME, PAIRED = 24, 14  # characters of a label, alone and beside another
SEVERAL = 1.6  # ratios over so many times each other are on a log scale


def ranking(comparison: Comparison, ax: Any = None) -> Display:
    """Groups by rank: the rarefied score as a dot with its interval, the score as it is as a hollow mark.

    Parameters
    ----------
    comparison : Comparison
        From `vendimeter.compare`. Of more than 40 groups the highest 20 and the lowest 20 are drawn.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from matplotlib.figure import Figure
    >>> found = vm.compare({"x": ["a", "a", "b"], "y": ["a", "b", "c"]}, "match")
    >>> drawn = found.plot(ax=Figure().subplots())
    >>> [label.get_text() for label in drawn.ax_.get_yticklabels()]
    ['y (3)', 'x (3)']
    """
    fair = comparison.fair
    order = np.argsort(-fair, kind="stable")[: np.count_nonzero(~np.isnan(fair))]  # NaN is last
    if not len(order):
        raise EmptyError("no group has a score at the common size; expected one, to be drawn.")
    chosen, places, cut = _ends(order)
    ax = axes(ax, height=1.3 + 0.24 * (len(chosen) + (cut is not None)))
    values, raw = fair[chosen], comparison.scores[chosen]
    weighted = comparison.size is None
    ax.hlines(places, np.minimum(values, raw), np.maximum(values, raw), color=LIGHT, linewidth=1.2, zorder=1)
    # Where all groups have the common size there is nothing to tell apart.
    apart = np.ones(len(raw), dtype=bool) if weighted else np.abs(raw - values) > 1e-9 * values
    handles, names = [], []
    if apart.any():
        handles = ax.plot(
            raw[apart],
            np.asarray(places)[apart],
            "o",
            markerfacecolor="white",
            markeredgecolor=GREY,
            markersize=5,
            zorder=2,
        )
        names = ["all items of the group"]
    if not weighted:
        reach = np.stack(
            [values - comparison.rarefied_low[chosen], comparison.rarefied_high[chosen] - values]
        )
        known = not np.isnan(reach).all()
        dots = ax.errorbar(
            values,
            places,
            xerr=np.maximum(np.nan_to_num(reach), 0.0),
            fmt="o",
            color=PALETTE[0],
            markersize=5,
            capsize=2.5 if known else 0,
            linewidth=1.4,
            zorder=3,
        )
        interval = f", {percentage(comparison.confidence)} interval" if known else ""
        handles, names = [dots, *handles], [f"{comparison.size:,} items of each{interval}", *names]
    labels = [f"{shown(comparison.labels[g], NAME)} ({comparison.sizes[g]:,})" for g in chosen.tolist()]
    ticks(ax.yaxis, places, labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(places[-1] + 0.7, -0.7)
    if cut is not None:
        _gap(ax, cut, len(order) - len(chosen), "groups")
    ax.grid(axis="x", color=LIGHT, linewidth=0.5)
    ax.set_axisbelow(True)
    what = "Vendi Score" if comparison.q == 1 else f"Vendi Score of order {order_name(comparison.q)}"
    missing = len(fair) - len(order)
    if missing:
        what += f" ({missing:,} group{'s' * (missing > 1)} of fewer items not shown)"
    ax.set_xlabel(what)
    _key(ax, handles, names)
    return Display(ax, (ax,))


def differences(found: Differences, ax: Any = None) -> Display:
    """The ratios of pairs of groups with their intervals, from the highest down; filled where the test says so.

    Parameters
    ----------
    found : Differences
        Of a `Comparison`. Of more than 40 comparisons the highest 20 and the lowest 20 are drawn.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.
    """
    if not len(found):
        raise EmptyError("no two groups were compared; expected a comparison, to be drawn.")
    chosen, places, cut = _ends(np.argsort(-found.ratio, kind="stable"))
    ax = axes(ax, height=1.3 + 0.24 * (len(chosen) + (cut is not None)))
    ratio = found.ratio[chosen]
    reach = np.stack([ratio - found.ratio_low[chosen], found.ratio_high[chosen] - ratio])
    sure = found.p_adjusted[chosen] <= 1 - found.confidence + 1e-12
    handles, names = [], []
    for which, fill, name in (
        (sure, PALETTE[0], f"p ≤ {1 - found.confidence:.2g}, adjusted"),
        (~sure, "white", f"p > {1 - found.confidence:.2g}"),
    ):
        if which.any():
            line = ax.errorbar(
                ratio[which],
                np.asarray(places)[which],
                xerr=np.maximum(np.nan_to_num(reach[:, which]), 0.0),
                fmt="o",
                color=PALETTE[0],
                markerfacecolor=fill,
                markersize=5,
                capsize=2.5 if not np.isnan(reach).all() else 0,
                linewidth=1.4,
            )
            handles, names = [*handles, line], [*names, name]
    ax.axvline(1, color=GREY, linewidth=1, zorder=0)
    one = all(reference == found.references[0] for reference in found.references)
    labels = [shown(found.groups[i], NAME if one else PAIRED) for i in chosen.tolist()]
    if not one:
        others = [shown(found.references[i], PAIRED) for i in chosen.tolist()]
        labels = [f"{label} / {other}" for label, other in zip(labels, others, strict=True)]
    ticks(ax.yaxis, places, labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(places[-1] + 0.7, -0.7)
    if cut is not None:
        _gap(ax, cut, len(found) - len(chosen), "comparisons")
    _ratio_scale(ax, np.concatenate([found.ratio_low, found.ratio_high, found.ratio]))
    reference = f" to {shown(found.references[0], NAME)}" if one else ""
    ax.set_xlabel(f"ratio of Vendi Scores{reference}", **AS_IT_STANDS)
    if not np.isnan(found.p).all():
        _key(ax, handles, names)
    return Display(ax, (ax,))


def similarity(matrix: np.ndarray, labels: Sequence[Any], ax: Any = None) -> Display:
    """How alike any two groups are, like groups beside each other.

    Parameters
    ----------
    matrix : ndarray of shape (groups, groups)
        Their similarity, from 0 to 1; empty groups, which have none, are left away.
    labels : sequence
        Their labels.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.
    """
    there = np.flatnonzero(~np.isnan(np.diagonal(matrix)))
    if not len(there):
        raise EmptyError("every group is empty; expected one with items, to be drawn.")
    order = there[_beside(matrix[np.ix_(there, there)])]
    values = matrix[np.ix_(order, order)]
    count = len(order)
    side = min(9.0, 3.2 + (0.2 * count if count <= NAMED else 2.5))
    ax = axes(ax, width=side + 1.1, height=side)
    for spine in ax.spines.values():
        spine.set_visible(False)
    image = ax.imshow(values, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0)
    if count <= NAMED:
        names = [shown(labels[g], NAME) for g in order.tolist()]
        size = "medium" if count <= 20 else "small" if count <= 35 else "x-small"
        ticks(ax.yaxis, range(count), names, fontsize=size)
        ticks(ax.xaxis, range(count), names, fontsize=size, rotation=90)
        ax.tick_params(length=0)
    else:
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel(f"{count:,} groups, like ones beside each other")
    if count <= WRITTEN:
        for i, j in np.ndindex(count, count):
            dark = values[i, j] < 0.6
            ax.text(j, i, f"{values[i, j]:.2f}", ha="center", va="center", fontsize="small",
                    color="white" if dark else "black")  # fmt: skip
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    bar.set_label("similarity of groups")
    bar.outline.set_visible(False)
    return Display(ax, (ax, bar.ax))


def _ends(order: np.ndarray) -> tuple[np.ndarray, list[float], float | None]:
    """What is drawn, the lines it is drawn on, and where the rest is left away."""
    if len(order) <= MOST:
        return order, list(map(float, range(len(order)))), None
    half = MOST // 2
    places = [*map(float, range(half)), *(half + 1.0 + i for i in range(half))]
    return np.concatenate([order[:half], order[-half:]]), places, float(half)


def _gap(ax: Any, place: float, count: int, what: str) -> None:
    ax.axhline(place, color=GREY, linewidth=0.8, linestyle=(0, (2, 4)))
    ax.annotate(f"{count:,} more {what}", (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center",
                fontsize="small", color=GREY, backgroundcolor="white")  # fmt: skip


def _key(ax: Any, handles: list[Any], names: list[str]) -> None:
    legend(ax, handles, names, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize="small",
           columnspacing=1.2, handletextpad=0.4)  # fmt: skip


def _ratio_scale(ax: Any, values: np.ndarray) -> None:
    """A log scale with plain numbers where ratios are far apart."""
    known = values[np.isfinite(values) & (values > 0)]
    if not len(known) or known.max() < SEVERAL * known.min():
        return
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    low, high = min(known.min(), 1.0), max(known.max(), 1.0)
    ax.set_xscale("log")
    steps = [s * 10.0**k for k in range(-6, 7) for s in (1, 2, 5)]
    marks = [s for s in steps if low * 0.99 <= s <= high * 1.01]
    if len(marks) < 3:
        marks = [float(m) for m in MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high) if m > 0]
    ax.set_xticks(marks)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_xlim(low / 1.1, high * 1.1)


def _beside(matrix: np.ndarray) -> np.ndarray:
    """An order in which like groups are beside each other: that of the leaves of a tree of averages."""
    if len(matrix) < 3:
        return np.arange(len(matrix))
    from scipy.cluster.hierarchy import leaves_list, linkage

    apart = np.maximum(1 - matrix[np.triu_indices(len(matrix), 1)], 0.0)
    return leaves_list(linkage(apart, "average", optimal_ordering=len(matrix) <= 200))
