"""Pictures of groups side by side: their ranking, their differences, and how alike they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.errors import EmptyError
from vendimeter.plots.style import AS_IT_STANDS, Display, axes, label_text, legend, ticks
from vendimeter.present.colours import GREY, LIGHT, PALETTE, SEQUENTIAL
from vendimeter.present.numbers import format_confidence, order_name, order_suffix

if TYPE_CHECKING:
    from vendimeter.analysis.comparison.comparison import Comparison
    from vendimeter.analysis.comparison.differences import Differences

__all__ = ["differences", "ranking", "similarity"]

MAX_LINES = 40  # lines of a picture
MAX_NAMED = 60  # groups whose names have room beside a matrix
MAX_NUMBERED = 10  # groups up to which a matrix has its numbers in it
NAME_LENGTH, PAIRED_NAME_LENGTH = 24, 14  # characters of a label, alone and beside another
LOG_SCALE_RATIO = 1.6  # largest ratio over smallest ratio from which the scale is logarithmic


def ranking(comparison: Comparison, ax: Any = None) -> Display:
    """Draw groups by rank: the rarefied score as a dot with its interval, the score of all items as a hollow mark.

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
    rarefied = comparison.fair
    order = np.argsort(-rarefied, kind="stable")[: np.count_nonzero(~np.isnan(rarefied))]  # NaN is last
    if not len(order):
        raise EmptyError("no group has a score at the common size; expected one, to be drawn.")
    drawn, places, gap = _top_and_bottom(order)
    ax = axes(ax, height=1.3 + 0.24 * (len(drawn) + (gap is not None)))
    values, raw = rarefied[drawn], comparison.scores[drawn]
    weighted = comparison.size is None
    ax.hlines(places, np.minimum(values, raw), np.maximum(values, raw), color=LIGHT, linewidth=1.2, zorder=1)
    # Where all groups have the common size there is nothing to tell apart.
    differs = np.ones(len(raw), dtype=bool) if weighted else np.abs(raw - values) > 1e-9 * values
    handles, names = [], []
    if differs.any():
        handles = ax.plot(
            raw[differs],
            np.asarray(places)[differs],
            "o",
            markerfacecolor="white",
            markeredgecolor=GREY,
            markersize=5,
            zorder=2,
        )
        names = ["all items of the group"]
    if not weighted:
        error_bars = np.stack(
            [values - comparison.rarefied_low[drawn], comparison.rarefied_high[drawn] - values]
        )
        has_intervals = not np.isnan(error_bars).all()
        dots = ax.errorbar(
            values,
            places,
            xerr=np.maximum(np.nan_to_num(error_bars), 0.0),
            fmt="o",
            color=PALETTE[0],
            markersize=5,
            capsize=2.5 if has_intervals else 0,
            linewidth=1.4,
            zorder=3,
        )
        interval = f", {format_confidence(comparison.confidence)} interval" if has_intervals else ""
        handles, names = [dots, *handles], [f"{comparison.size:,} items of each{interval}", *names]
    labels = [
        f"{label_text(comparison.labels[g], NAME_LENGTH)} ({comparison.sizes[g]:,})" for g in drawn.tolist()
    ]
    ticks(ax.yaxis, places, labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(places[-1] + 0.7, -0.7)
    if gap is not None:
        _mark_gap(ax, gap, len(order) - len(drawn), "groups")
    ax.grid(axis="x", color=LIGHT, linewidth=0.5)
    ax.set_axisbelow(True)
    score_name = f"Vendi Score{order_suffix(comparison.q, order_name)}"
    missing = len(rarefied) - len(order)
    if missing:
        score_name += f" ({missing:,} group{'s' * (missing > 1)} of fewer items not shown)"
    ax.set_xlabel(score_name)
    _legend_above(ax, handles, names)
    return Display(ax, (ax,))


def differences(comparisons: Differences, ax: Any = None) -> Display:
    """Draw the ratios of pairs of groups with their intervals, highest first; filled where significant.

    Parameters
    ----------
    comparisons : Differences
        Of a `Comparison`. Of more than 40 comparisons the highest 20 and the lowest 20 are drawn.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.
    """
    if not len(comparisons):
        raise EmptyError("no two groups were compared; expected a comparison, to be drawn.")
    drawn, places, gap = _top_and_bottom(np.argsort(-comparisons.ratio, kind="stable"))
    ax = axes(ax, height=1.3 + 0.24 * (len(drawn) + (gap is not None)))
    ratio = comparisons.ratio[drawn]
    error_bars = np.stack([ratio - comparisons.ratio_low[drawn], comparisons.ratio_high[drawn] - ratio])
    significant = comparisons.p_adjusted[drawn] <= 1 - comparisons.confidence + 1e-12
    handles, names = [], []
    for selected, fill, name in (
        (significant, PALETTE[0], f"p ≤ {1 - comparisons.confidence:.2g}, adjusted"),
        (~significant, "white", f"p > {1 - comparisons.confidence:.2g}"),
    ):
        if selected.any():
            line = ax.errorbar(
                ratio[selected],
                np.asarray(places)[selected],
                xerr=np.maximum(np.nan_to_num(error_bars[:, selected]), 0.0),
                fmt="o",
                color=PALETTE[0],
                markerfacecolor=fill,
                markersize=5,
                capsize=2.5 if not np.isnan(error_bars).all() else 0,
                linewidth=1.4,
            )
            handles, names = [*handles, line], [*names, name]
    ax.axvline(1, color=GREY, linewidth=1, zorder=0)
    same_reference = all(reference == comparisons.references[0] for reference in comparisons.references)
    labels = [
        label_text(comparisons.groups[i], NAME_LENGTH if same_reference else PAIRED_NAME_LENGTH)
        for i in drawn.tolist()
    ]
    if not same_reference:
        others = [label_text(comparisons.references[i], PAIRED_NAME_LENGTH) for i in drawn.tolist()]
        labels = [f"{label} / {other}" for label, other in zip(labels, others, strict=True)]
    ticks(ax.yaxis, places, labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(places[-1] + 0.7, -0.7)
    if gap is not None:
        _mark_gap(ax, gap, len(comparisons) - len(drawn), "comparisons")
    _scale_ratios(ax, np.concatenate([comparisons.ratio_low, comparisons.ratio_high, comparisons.ratio]))
    reference = f" to {label_text(comparisons.references[0], NAME_LENGTH)}" if same_reference else ""
    ax.set_xlabel(f"ratio of Vendi Scores{reference}", **AS_IT_STANDS)
    if not np.isnan(comparisons.p).all():
        _legend_above(ax, handles, names)
    return Display(ax, (ax,))


def similarity(matrix: np.ndarray, labels: Sequence[Any], ax: Any = None) -> Display:
    """Draw the similarity matrix of groups, similar groups next to each other.

    Parameters
    ----------
    matrix : ndarray of shape (groups, groups)
        Their similarity, from 0 to 1; empty groups, which have none, are left away.
    labels : sequence
        Their labels.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.
    """
    filled = np.flatnonzero(~np.isnan(np.diagonal(matrix)))
    if not len(filled):
        raise EmptyError("every group is empty; expected one with items, to be drawn.")
    order = filled[neighbour_order(matrix[np.ix_(filled, filled)])]
    ordered = matrix[np.ix_(order, order)]
    count = len(order)
    side = min(9.0, 3.2 + (0.2 * count if count <= MAX_NAMED else 2.5))
    ax = axes(ax, width=side + 1.1, height=side)
    for spine in ax.spines.values():
        spine.set_visible(False)
    image = ax.imshow(ordered, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0)
    if count <= MAX_NAMED:
        names = [label_text(labels[g], NAME_LENGTH) for g in order.tolist()]
        size = "medium" if count <= 20 else "small" if count <= 35 else "x-small"
        ticks(ax.yaxis, range(count), names, fontsize=size)
        ticks(ax.xaxis, range(count), names, fontsize=size, rotation=90)
        ax.tick_params(length=0)
    else:
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel(f"{count:,} groups, like ones beside each other")
    if count <= MAX_NUMBERED:
        for i, j in np.ndindex(count, count):
            dark = ordered[i, j] < 0.6
            ax.text(j, i, f"{ordered[i, j]:.2f}", ha="center", va="center", fontsize="small",
                    color="white" if dark else "black")  # fmt: skip
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    bar.set_label("similarity of groups")
    bar.outline.set_visible(False)
    return Display(ax, (ax, bar.ax))


def _top_and_bottom(order: np.ndarray) -> tuple[np.ndarray, list[float], float | None]:
    """The first and last of a ranking, the lines they are drawn on, and the line of the gap between them, if any."""
    if len(order) <= MAX_LINES:
        return order, list(map(float, range(len(order)))), None
    half = MAX_LINES // 2
    places = [*map(float, range(half)), *(half + 1.0 + i for i in range(half))]
    return np.concatenate([order[:half], order[-half:]]), places, float(half)


def _mark_gap(ax: Any, place: float, count: int, plural: str) -> None:
    ax.axhline(place, color=GREY, linewidth=0.8, linestyle=(0, (2, 4)))
    ax.annotate(f"{count:,} more {plural}", (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center",
                fontsize="small", color=GREY, backgroundcolor="white")  # fmt: skip


def _legend_above(ax: Any, handles: list[Any], names: list[str]) -> None:
    legend(ax, handles, names, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize="small",
           columnspacing=1.2, handletextpad=0.4)  # fmt: skip


def _scale_ratios(ax: Any, values: np.ndarray) -> None:
    """Set a log scale with plain numbers where ratios are far apart."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not len(positive) or positive.max() < LOG_SCALE_RATIO * positive.min():
        return
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    low, high = min(positive.min(), 1.0), max(positive.max(), 1.0)
    ax.set_xscale("log")
    steps = [s * 10.0**k for k in range(-6, 7) for s in (1, 2, 5)]
    marks = [s for s in steps if low * 0.99 <= s <= high * 1.01]
    if len(marks) < 3:
        marks = [float(m) for m in MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high) if m > 0]
    ax.set_xticks(marks)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_xlim(low / 1.1, high * 1.1)


def neighbour_order(matrix: np.ndarray) -> np.ndarray:
    """An order with similar groups next to each other: the leaves of an average-linkage tree."""
    if len(matrix) < 3:
        return np.arange(len(matrix))
    from scipy.cluster.hierarchy import leaves_list, linkage

    distances = np.maximum(1 - matrix[np.triu_indices(len(matrix), 1)], 0.0)
    return leaves_list(linkage(distances, "average", optimal_ordering=len(matrix) <= 200))
