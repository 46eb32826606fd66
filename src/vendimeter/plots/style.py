"""What all pictures share: axes, colours, and text of the user's that is drawn as it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.optional import require
from vendimeter.present.text import printable

__all__ = [
    "AS_IT_STANDS",
    "Display",
    "axes",
    "hide_frame_edges",
    "label_text",
    "legend",
    "ticks",
]

LABEL_LENGTH = 32  # characters of a label
# How text of the user's is drawn, never as mathematics or TeX: ``ax.set_title(label_text(name), **AS_IT_STANDS)``.
AS_IT_STANDS: dict[str, Any] = {"parse_math": False, "usetex": False}


def label_text(value: Any, length: int = LABEL_LENGTH) -> str:
    """A user's text without control characters, cut to a length; an empty one in quotes."""
    return printable(value, length) or "''"


@dataclass(frozen=True)
class Display:
    """A picture that was drawn.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes it was drawn on; of several, the first.
    axes_ : tuple
        All of them.
    """

    ax_: Any
    axes_: tuple[Any, ...] = ()

    @property
    def figure_(self) -> Any:
        """The figure, such as ``figure_.savefig("scores.png")``."""
        return self.ax_.figure


def axes(ax: Any = None, *, width: float = 6.4, height: float = 4.0) -> Any:
    """The axes to draw on: those given, or of a new figure."""
    if ax is not None:
        if not hasattr(ax, "spines") or not hasattr(ax, "figure"):
            raise InputError(f"ax={brief(ax)}; expected axes of matplotlib, or None for a new figure.")
        return ax
    pyplot = require("matplotlib.pyplot", extra="plots", purpose="plot()")
    _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    hide_frame_edges(ax)
    return ax


def hide_frame_edges(ax: Any) -> None:
    """Hide the frame's upper and right edge."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _disable_markup(text: Any) -> Any:
    """A matplotlib text that is no longer read as mathematics or TeX."""
    text.set_parse_math(False)
    text.set_usetex(False)
    return text


def ticks(axis: Any, places: Sequence[float], names: Iterable[Any], **style: Any) -> None:
    """Set ticks with names of the user's at positions of an axis, ``ax.xaxis`` or ``ax.yaxis``."""
    axis.set_ticks(list(places), [label_text(name) for name in names], **style)
    for label in axis.get_ticklabels():
        _disable_markup(label)


def legend(ax: Any, handles: Sequence[Any], names: Sequence[Any], **style: Any) -> Any:
    """Draw a legend with names of the user's, which may begin with an underscore: matplotlib would leave those out."""
    drawn_legend = ax.legend(handles, [f"{i}" for i in range(len(handles))], frameon=False, **style)
    for label, name in zip(drawn_legend.get_texts(), names, strict=True):
        _disable_markup(label).set_text(label_text(name))
    return drawn_legend
