"""Bar charts and cumulative curves: sizes of clusters, shares of the entropy, and weights of greatest diversity.

Each draws one kind of result: clusters of near copies (`plot_duplicates`), what each sample contributes to the entropy
(`plot_contributions`, and `plot_written` for contributions that lie in files), and optimal weights (`plot_weights`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.data.arrays import to_list
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.options import whole_number
from vendimeter.plots.style import Display, axes, legend
from vendimeter.present.colours import GREY, PALETTE
from vendimeter.present.numbers import effective_items, order_name, order_suffix, short_number
from vendimeter.results.score import Score

if TYPE_CHECKING:
    from vendimeter.analysis.decomposition.contributions import Contributions
    from vendimeter.analysis.decomposition.streamed import WrittenContributions
    from vendimeter.analysis.near_copies.near_copies import Duplicates
    from vendimeter.analysis.reweighting.reweighting import Reweighting

__all__ = ["plot_contributions", "plot_duplicates", "plot_weights", "plot_written"]


# ---------------------------------------------------------------------------------------------------------- duplicates

MAX_CLUSTER_BARS = 30  # clusters up to which each has a bar of its own


def plot_duplicates(duplicates: Duplicates, ax: Any = None) -> Display:
    """Draw the size of each cluster where they are few, and how many there are of each size where they are many.

    Parameters
    ----------
    duplicates : Duplicates
        From `vendimeter.duplicates`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    """
    ax = axes(ax)
    if not duplicates.clusters:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "no near copies", ha="center", va="center", color=GREY, transform=ax.transAxes)
    elif len(duplicates.clusters) <= MAX_CLUSTER_BARS:
        _draw_cluster_bars(ax, duplicates)
    else:
        _draw_size_counts(ax, duplicates.sizes)
    ax.set_title(_duplicates_title(duplicates), fontsize="medium", loc="left")
    return Display(ax, (ax,))


def _duplicates_title(duplicates: Duplicates) -> str:
    lines = f"{duplicates.copies:,} of {duplicates.n:,} items are near copies "
    lines += f"(joined by similarities ≥ {duplicates.threshold:g})"
    if duplicates.score is not None and duplicates.without is not None and duplicates.copies:
        lines += f"\nscore {short_number(duplicates.score)}, without them {short_number(duplicates.without)}"
    if duplicates.method != "exact":
        lines += f"\nabout {np.floor(1000 * duplicates.recall) / 10:g}% of those at the threshold are found"
    return lines


def _draw_cluster_bars(ax: Any, duplicates: Duplicates) -> None:
    """Draw one bar per cluster, largest first, split into the item that is kept and its copies."""
    positions = np.arange(len(duplicates.sizes))
    ax.bar(positions, duplicates.sizes - 1, bottom=1, color=PALETTE[1], label="copies")
    ax.bar(positions, np.ones(len(positions)), color=PALETTE[0], label="kept")
    kept_items = [f"{members[0]:,}" for members in duplicates.clusters]
    rotated = len(kept_items) > 12 or max(map(len, kept_items)) > 5
    ax.set_xticks(positions, kept_items, rotation=90 if rotated else 0)
    ax.set_xlabel("cluster, by the position of the item that is kept")
    ax.set_ylabel("items")
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.set_ylim(0, 1.15 * duplicates.sizes[0])  # room for the legend
    ax.legend(frameon=False, loc="upper right", ncols=2)


def _draw_size_counts(ax: Any, sizes: np.ndarray) -> None:
    """Draw the number of clusters of each size, on logarithmic axes where sizes differ much."""
    values, counts = np.unique(sizes, return_counts=True)
    if values[-1] <= MAX_CLUSTER_BARS:
        ax.bar(values, counts, color=PALETTE[0])
        ax.set_xticks(values if len(values) <= 15 else values[:: len(values) // 10])
    else:
        ax.plot(values, counts, "o", color=PALETTE[0], markersize=4)
        ax.set_xscale("log")
    if counts.max() > 100 * counts.min() or values[-1] > MAX_CLUSTER_BARS:
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.7)
    ax.set_xlabel("items in a cluster")
    ax.set_ylabel("clusters")


# ------------------------------------------------------------------------------------------------------- contributions

MAX_SHARE_BARS = 60  # samples up to which each has a bar of its own
CURVE_POINTS = 2000  # points of the curve for more samples: no screen shows more


def plot_contributions(
    contributions: Contributions, ax: Any = None, *, names: Any = None, k: int = 3
) -> Display:
    """Draw the shares of the samples in the entropy in ascending order, with the mean, the rarest and most redundant.

    Parameters
    ----------
    contributions : Contributions
        From `vendimeter.contributions`.
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
    count = len(contributions.values)
    item_name = _item_namer(names, count)
    marked_count = whole_number(k, "k")
    ax = axes(ax, width=7.6)
    ascending = np.lexsort((contributions.rarity, contributions.values))
    rank = np.empty(count, dtype=np.int64)
    rank[ascending] = np.arange(1, count + 1)
    _draw_shares(ax, contributions.values[ascending])
    weighted_count = int(np.count_nonzero(contributions.weights))
    mean, top = float(contributions.values.sum()) / weighted_count, float(contributions.values.max())
    handles = [ax.axhline(mean, color=GREY, linewidth=1, linestyle="--", zorder=1)]
    labels = [f"mean: {short_number(mean)}"]
    # Of few samples none is both; of samples that are alike none is rarer than the others.
    marked_count = min(marked_count, weighted_count // 2) if top else 0
    for extreme_items, colour, marker, description in (
        (contributions.rarest, PALETTE[1], "^", "rarest"),
        (contributions.redundant, PALETTE[2], "v", "redundant"),
    ):
        for i in extreme_items(marked_count).tolist() if marked_count else []:
            style = {"color": colour, "markersize": 6, "zorder": 3, "clip_on": False}
            handles += ax.plot(rank[i], contributions.values[i], marker, **style)
            labels.append(f"{description}: {item_name(i)}")
    # Beside the picture: on it there is no place that is free for every collection.
    legend(ax, handles, labels, loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize="small")
    _label_shares(ax, contributions.score, contributions.n, top)
    return Display(ax, (ax,))


def plot_written(written: WrittenContributions, ax: Any = None) -> Display:
    """Draw the shares of rows that were written to files in ascending order, from a random sample of the rows.

    Parameters
    ----------
    written : WrittenContributions
        From `vendimeter.write_contributions`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Display
    """
    ax = axes(ax)
    shares = np.sort(written.sample)
    mean, top = float(np.log(written.score)) / written.rows, float(shares.max())
    ranks = np.linspace(1, written.rows, len(shares))
    ax.fill_between(ranks, shares, color=PALETTE[0], alpha=0.25, linewidth=0)
    ax.plot(ranks, shares, color=PALETTE[0], linewidth=1.5)
    line = ax.axhline(mean, color=GREY, linewidth=1, linestyle="--")
    legend(ax, [line], [f"mean: {short_number(mean)}"], loc="lower right", fontsize="small")
    _label_shares(ax, written.score, written.rows, top)
    ax.set_xlim(1, max(written.rows, 2))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return Display(ax, (ax,))


def _label_shares(ax: Any, score: Score, n: int, top: float) -> None:
    """Label the axes and set the title."""
    ax.set_ylim(0, 1.05 * top or 1.0)
    ax.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=False)
    name = f"entropy{order_suffix(score.q, order_name)}"
    ax.set_xlabel("samples, by their share")
    ax.set_ylabel(f"share of the {name}")
    ax.set_title(effective_items(short_number(score), n), fontsize="medium")


def _item_namer(names: Any, count: int) -> Any:
    """A function from the position of a sample to its name."""
    if names is None:
        return lambda i: f"item {i:,}"
    item_names = to_list(names)
    if len(item_names) != count:
        raise InputError(
            f"names={brief(names)} has {len(item_names)} entries and there are {count} samples; expected one a sample."
        )
    return lambda i: item_names[i]


def _draw_shares(ax: Any, shares: np.ndarray) -> None:
    """Draw bars for few samples; for many their outline, at as many points as a screen can tell apart."""
    count = len(shares)
    if count <= MAX_SHARE_BARS:
        ax.bar(np.arange(1, count + 1), shares, color=PALETTE[0], alpha=0.75, width=0.8, zorder=2)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlim(0.4, count + 0.6)
        return
    sampled = np.unique(np.linspace(0, count - 1, min(count, CURVE_POINTS)).round().astype(np.int64))
    ax.fill_between(sampled + 1, shares[sampled], color=PALETTE[0], alpha=0.25, linewidth=0, zorder=2)
    ax.plot(sampled + 1, shares[sampled], color=PALETTE[0], linewidth=1.5, zorder=2)
    ax.set_xlim(1, count)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


# --------------------------------------------------------------------------------------------------------- reweighting

LOG_FROM = 50  # items above which their number is on a logarithmic axis
MARKED_SHARES = ((0.5, "half"), (0.9, "90%"))


def plot_weights(reweighting: Reweighting, ax: Any = None) -> Display:
    """Draw the cumulative weight of the heaviest items against their number.

    Parameters
    ----------
    reweighting : Reweighting
        From `vendimeter.reweight`.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.

    Returns
    -------
    Display

    Examples
    --------
    >>> import vendimeter as vm
    >>> from matplotlib.figure import Figure
    >>> found = vm.reweight(["a", "a", "a", "b"], "match")
    >>> found.plot(ax=Figure().subplots()).ax_.get_xlabel()
    'items, from the heaviest'
    """
    ax = axes(ax)
    from matplotlib.ticker import MaxNLocator  # who has axes has matplotlib

    n = len(reweighting.weights)
    counts = np.arange(n + 1) if n <= LOG_FROM else np.unique(np.geomspace(1, n, 400).astype(np.int64))
    cumulative_weights = np.concatenate([[0.0], np.cumsum(-np.sort(-reweighting.weights))])
    ax.plot(
        counts, counts / n, color=GREY, linestyle="--", linewidth=1.4, label=f"equal weights, of {n:,} items"
    )
    name = (
        f"greatest diversity, score{order_suffix(reweighting.score.q, order_name)}: {short_number(reweighting.score)} "
        f"({short_number(reweighting.uniform)} before)"
    )
    ax.plot(counts, cumulative_weights[counts], color=PALETTE[0], linewidth=2.0, label=name)
    if n > LOG_FROM:
        ax.set_xscale("log")
        ax.set_xlim(1, n)
    else:
        ax.set_xlim(0, n)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    for share, label in MARKED_SHARES:
        item_count = reweighting.items_for(share)
        ax.plot([item_count], [cumulative_weights[item_count]], "o", color=PALETTE[1], markersize=5, zorder=3)
        label_left = item_count > (n**0.6 if n > LOG_FROM else 0.6 * n)  # then there is room on the left
        ax.annotate(
            f"{label} on {item_count:,}",
            (item_count, cumulative_weights[item_count]),
            xytext=(-8 if label_left else 8, -4 if not label_left else 2),
            textcoords="offset points",
            ha="right" if label_left else "left",
            va="top" if not label_left else "bottom",
            fontsize="small",
        )
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("items, from the heaviest")
    ax.set_ylabel("share of the weight together")
    ax.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return Display(ax, (ax,))
