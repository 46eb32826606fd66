"""The score that methods reach with a number of chosen items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vendimeter.analysis.selection.methods import METHODS, NAMES
from vendimeter.plots._style import GREY, PALETTE, Display, axes
from vendimeter.results.score import order_name

if TYPE_CHECKING:
    from vendimeter.analysis.selection.selection import Selection

__all__ = ["plot_selection"]

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
