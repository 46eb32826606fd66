"""How the weights of greatest diversity are spread over the items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.data.arrays import to_list
from vendimeter.errors import InputError, brief
from vendimeter.options import whole_number
from vendimeter.plots.style import GREY, PALETTE, Display, axes, legend
from vendimeter.results.score import Score, number, order_name

if TYPE_CHECKING:
    from vendimeter.analysis.decomposition.contributions import Contributions
    from vendimeter.analysis.decomposition.streamed import WrittenContributions
    from vendimeter.analysis.near_copies.near_copies import Duplicates
    from vendimeter.analysis.reweighting.reweighting import Reweighting

__all__ = ["plot_contributions", "plot_duplicates", "plot_weights", "plot_written"]


# ---------------------------------------------------------------------------------------------------------- duplicates

# Sizes of clusters of near copies.

FEW = 30  # clusters up to which each has a bar of its own


def plot_duplicates(found: Duplicates, ax: Any = None) -> Display:
    """Draw the size of each cluster where they are few, and how many there are of each size where they are many.

    Parameters
    ----------
    found : Duplicates
        What `vendimeter.duplicates` gave.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    """
    ax = axes(ax)
    if not found.clusters:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "no near copies", ha="center", va="center", color=GREY, transform=ax.transAxes)
    elif len(found.clusters) <= FEW:
        _each(ax, found)
    else:
        _counts(ax, found.sizes)
    ax.set_title(_title(found), fontsize="medium", loc="left")
    return Display(ax, (ax,))


def _title(found: Duplicates) -> str:
    lines = f"{found.copies:,} of {found.n:,} items are near copies (joined by similarities ≥ {found.threshold:g})"
    if found.score is not None and found.without is not None and found.copies:
        lines += f"\nscore {number(found.score)}, without them {number(found.without)}"
    if found.method != "exact":
        lines += f"\nabout {np.floor(1000 * found.recall) / 10:g}% of those at the threshold are found"
    return lines


def _each(ax: Any, found: Duplicates) -> None:
    """A bar a cluster, from the largest on; the part that is kept is one item."""
    places = np.arange(len(found.sizes))
    ax.bar(places, found.sizes - 1, bottom=1, color=PALETTE[1], label="copies")
    ax.bar(places, np.ones(len(places)), color=PALETTE[0], label="kept")
    firsts = [f"{members[0]:,}" for members in found.clusters]
    steep = len(firsts) > 12 or max(map(len, firsts)) > 5
    ax.set_xticks(places, firsts, rotation=90 if steep else 0)
    ax.set_xlabel("cluster, by the position of the item that is kept")
    ax.set_ylabel("items")
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.set_ylim(0, 1.15 * found.sizes[0])  # room for the legend
    ax.legend(frameon=False, loc="upper right", ncols=2)


def _counts(ax: Any, sizes: np.ndarray) -> None:
    """How many clusters there are of each size, on logarithmic axes where sizes are many."""
    values, counts = np.unique(sizes, return_counts=True)
    if values[-1] <= FEW:
        ax.bar(values, counts, color=PALETTE[0])
        ax.set_xticks(values if len(values) <= 15 else values[:: len(values) // 10])
    else:
        ax.plot(values, counts, "o", color=PALETTE[0], markersize=4)
        ax.set_xscale("log")
    if counts.max() > 100 * counts.min() or values[-1] > FEW:
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.7)
    ax.set_xlabel("items in a cluster")
    ax.set_ylabel("clusters")


# ------------------------------------------------------------------------------------------------------- contributions

# What each sample contributes, drawn: shares of the entropy in order of their size.

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


# --------------------------------------------------------------------------------------------------------- reweighting

MANY = 50  # items from which they are counted on a logarithmic axis
MARKED = ((0.5, "half"), (0.9, "90%"))


def plot_weights(found: Reweighting, ax: Any = None) -> Display:
    """The share of the weight that the heaviest items hold together, against how many they are.

    Parameters
    ----------
    found : Reweighting
        What `vendimeter.reweight` gave.
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
    >>> vm.plots.reweighting.plot_weights(found, ax=Figure().subplots()).ax_.get_xlabel()
    'items, from the heaviest'
    """
    ax = axes(ax)
    from matplotlib.ticker import MaxNLocator  # who has axes has matplotlib

    n = len(found.weights)
    counts = np.arange(n + 1) if n <= MANY else np.unique(np.geomspace(1, n, 400).astype(np.int64))
    together = np.concatenate([[0.0], np.cumsum(-np.sort(-found.weights))])
    ax.plot(
        counts, counts / n, color=GREY, linestyle="--", linewidth=1.4, label=f"equal weights, of {n:,} items"
    )
    order = "" if found.score.q == 1 else f" of order {order_name(found.score.q)}"
    name = f"greatest diversity, score{order}: {number(found.score)} ({number(found.uniform)} before)"
    ax.plot(counts, together[counts], color=PALETTE[0], linewidth=2.0, label=name)
    if n > MANY:
        ax.set_xscale("log")
        ax.set_xlim(1, n)
    else:
        ax.set_xlim(0, n)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    for share, words in MARKED:
        few = found.items_for(share)
        ax.plot([few], [together[few]], "o", color=PALETTE[1], markersize=5, zorder=3)
        right = few > (n**0.6 if n > MANY else 0.6 * n)  # then there is room on the left
        ax.annotate(
            f"{words} on {few:,}",
            (few, together[few]),
            xytext=(-8 if right else 8, -4 if not right else 2),
            textcoords="offset points",
            ha="right" if right else "left",
            va="top" if not right else "bottom",
            fontsize="small",
        )
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("items, from the heaviest")
    ax.set_ylabel("share of the weight together")
    ax.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return Display(ax, (ax,))
