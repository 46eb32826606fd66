"""Pictures of modes: their shares, and the items at both ends of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.data.arrays import length
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.options import whole_number
from vendimeter.plots.items import CELLS, Sheet, check_kind, item_at, kind_of
from vendimeter.plots.style import Display, axes, legend
from vendimeter.present.colours import GREY, PALETTE

if TYPE_CHECKING:
    from vendimeter.analysis.eigenmodes import Modes

__all__ = ["exemplars", "modes"]

MARGIN = 0.75  # inches at the left, for the names of the modes
GAP = 0.3  # inches between the two ends
HEADING_HEIGHT = 0.28
# Items at each end, unless more are asked for.
DEFAULT_COUNTS = {"images": 8, "vectors": 4, "molecules": 4, "texts": 3, "other": 3}


def modes(found: Modes, ax: Any = None) -> Display:
    """Bars of the shares of the leading modes, and what they add up to.

    Parameters
    ----------
    found : Modes
        From `vendimeter.modes`.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.

    Returns
    -------
    Display
        Hatched bars are modes whose vectors are arbitrary, because their eigenvalues are as good as equal.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from matplotlib.figure import Figure
    >>> found = vm.modes(["a", "a", "b"], "match")
    >>> [f"{bar.get_height():.3f}" for bar in vm.plots.modes(found, ax=Figure().subplots()).ax_.patches]
    ['0.667', '0.333']
    """
    _check_modes(found)
    ax = axes(ax)
    positions = np.arange(len(found))
    bars = ax.bar(positions, found.shares, color=PALETTE[0], width=0.75)
    for bar, arbitrary in zip(bars, found.degenerate.tolist(), strict=True):
        if arbitrary:
            bar.set(hatch="////", edgecolor="white")
    (line,) = ax.plot(
        positions,
        np.cumsum(found.shares),
        color=PALETTE[1],
        marker="s",
        markersize=4,
        linestyle="--",
        linewidth=1.3,
    )
    ax.set_ylim(0, 1.04)
    if len(found) <= 25:
        ax.set_xticks(positions)
    ax.set_xlabel("mode")
    ax.set_ylabel("share of the spectrum")
    handles, names = [bars[0], line], ["share", "sum so far"]
    if found.degenerate.any():
        first_arbitrary = int(np.flatnonzero(found.degenerate)[0])
        handles.append(bars[first_arbitrary])
        names.append("arbitrary: equal eigenvalues")
        if first_arbitrary == 0:
            handles, names = handles[1:], names[1:]
    legend(ax, handles, names, loc="best")
    return Display(ax, (ax,))


def exemplars(
    found: Modes,
    items: Any = None,
    *,
    modes: int | Sequence[int] = 5,
    count: int | None = None,
    kind: str | None = None,
    ax: Any = None,
) -> Display:
    """The items at both ends of each mode, a row a mode: highest loadings at the left, lowest at the right.

    Parameters
    ----------
    found : Modes
        From `vendimeter.modes`.
    items : array, list or table, optional
        What to draw, one an item, such as the pictures where the samples were their embeddings; the samples themselves
        by default.
    modes : int or list of int
        How many of the leading modes, or which.
    count : int, optional
        How many items at each end; as many as were asked for as exemplars, and have room, by default.
    kind : {"images", "texts", "molecules", "vectors", "other"}, optional
        What the items are; told by the kernel and the items without it.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.

    Returns
    -------
    Display

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023, the figure of cats along the top eigenvectors of two kernels.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from matplotlib.figure import Figure
    >>> found = vm.modes(["one", "one", "two"], "match")
    >>> drawn = vm.plots.exemplars(found, count=1, modes=1, ax=Figure().subplots())
    >>> [text.get_text() for text in drawn.ax_.texts][-2:]
    ['one', 'two']
    """
    _check_modes(found)
    check_kind(kind)
    drawn_items = found.diversity.samples if items is None else items
    if items is not None and length(items) != len(found.weights):
        raise InputError(
            f"items has {length(items)} entries and there are {len(found.weights)} samples; expected one an item."
        )
    selected = _select_modes(found, modes)
    first = item_at(drawn_items, int(found.exemplars(selected[0], 1).high[0]))
    drawn_kind = kind or (found.diversity.kind if items is None and found.diversity.kind in CELLS else None)
    drawn_kind = drawn_kind or kind_of(first, found.diversity.similarity.kernel if items is None else None)
    per_end = min(found.shown, DEFAULT_COUNTS[drawn_kind]) if count is None else whole_number(count, "count")
    width, height = CELLS[drawn_kind]
    ends = [found.exemplars(a, per_end) for a in selected]
    left_count, right_count = (max(len(end[side]) for end in ends) for side in (0, 1))
    right_edge = MARGIN + left_count * width + GAP
    row_height = max(height, 0.4)
    sheet = Sheet(
        ax, max(right_edge + right_count * width, MARGIN + 2.6), HEADING_HEIGHT + row_height * len(selected)
    )
    sheet.write("highest loadings", MARGIN + 0.02, 0.6 * HEADING_HEIGHT, va="center", color=GREY)
    if right_count:
        sheet.write("lowest loadings", right_edge + 0.02, 0.6 * HEADING_HEIGHT, va="center", color=GREY)
        middle = right_edge - GAP / 2
        sheet.line([middle, middle], [HEADING_HEIGHT, HEADING_HEIGHT + row_height * len(selected)])
    for i, (a, end) in enumerate(zip(selected, ends, strict=True)):
        top = HEADING_HEIGHT + i * row_height
        mark = "*" if found.degenerate[a] else ""
        sheet.write(f"mode {a}{mark}\n{found.shares[a]:.1%}", 0.02, top + row_height / 2, va="center")
        for start, positions in ((MARGIN, end.high), (right_edge, end.low)):
            for column, position in enumerate(positions.tolist()):
                sheet.put(
                    item_at(drawn_items, position),
                    drawn_kind,
                    start + column * width,
                    top + (row_height - height) / 2,
                )
    return Display(sheet.ax, (sheet.ax,))


def _select_modes(found: Modes, modes: Any) -> list[int]:
    if isinstance(modes, list | tuple | range | np.ndarray):
        if not len(modes):
            raise InputError("modes is empty; expected how many modes, or which.")
        return [found._check_mode(a) for a in modes]
    return list(range(min(whole_number(modes, "modes"), len(found))))


def _check_modes(found: Any) -> None:
    from vendimeter.analysis.eigenmodes import Modes

    if not isinstance(found, Modes):
        raise InputError(f"found={brief(found)}; expected what vendimeter.modes gives.")
