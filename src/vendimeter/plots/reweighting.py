"""How the weights of greatest diversity are spread over the items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.plots._style import GREY, PALETTE, Display, axes
from vendimeter.results.score import number, order_name

if TYPE_CHECKING:
    from vendimeter.analysis.reweighting.reweighting import Reweighting

__all__ = ["plot_weights"]

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
