"""How an item is drawn: pictures, texts, molecules and vectors, each into a box of some axes; all else in brief."""

from __future__ import annotations

import os
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data import tables
from vendimeter.data.arrays import is_sparse
from vendimeter.data.devices import is_foreign, local, to_host
from vendimeter.data.pictures import CHANNELS, bands, is_image
from vendimeter.errors import InputError
from vendimeter.messages import brief, unknown
from vendimeter.optional import require
from vendimeter.plots.style import AS_IT_STANDS, axes, label_text
from vendimeter.present.colours import GREY, SEQUENTIAL
from vendimeter.present.text import printable

__all__ = ["CELLS", "KINDS", "Box", "Sheet", "draw", "item_at", "kind_of"]

# Inches of a cell, width and height, as far as the figure allows.
CELLS = {
    "images": (0.62, 0.62),
    "molecules": (1.25, 0.95),
    "texts": (1.9, 0.62),
    "vectors": (1.2, 0.24),
    "other": (1.9, 0.42),
}
KINDS = tuple(CELLS)
LARGEST_FONT, SMALLEST_FONT = 8.0, 4.5  # points of letters
LETTER_WIDTH, LINE_HEIGHT = 0.56, 1.22  # width of a letter and height of a line, in sizes of the font
MAX_CHARACTERS = 600  # of a text: the rest is not looked at
MOLECULE_PIXELS = (300, 228)


@dataclass(frozen=True)
class Box:
    """Where an item goes: its left and upper edge, width and height, in units of the axes, whose y points down."""

    left: float
    top: float
    width: float
    height: float


# ------------------------------------------------------------------------------------------------- what an item is


def item_at(samples: Any, position: int) -> Any:
    """One item of any collection."""
    if tables.is_records(samples):
        return samples[position]
    if tables.has_columns(samples):
        names = samples if isinstance(samples, Mapping) else getattr(samples, "column_names", None)
        names = getattr(samples, "columns", ()) if names is None else names
        return {name: item_at(tables.column(samples, name), position) for name in names}
    if is_sparse(samples):
        return samples[[position]].toarray()[0]
    if is_foreign(samples):
        return samples[position, ...]
    item = samples.iloc[position] if hasattr(samples, "iloc") else samples[position]
    return item.as_py() if hasattr(item, "as_py") else item  # of Arrow


def kind_of(item: Any, kernel: Any = None) -> str:
    """What an item is drawn as: one of `KINDS`.

    A text is a molecule, or the path of a picture, only where the kernel is one of molecules or pictures.

    Examples
    --------
    >>> import numpy as np
    >>> kind_of("CCO"), kind_of(np.zeros(7)), kind_of(np.zeros((8, 8))), kind_of({"shape": "round"})
    ('texts', 'vectors', 'images', 'other')
    >>> from vendimeter.kernels import Morgan
    >>> kind_of("CCO", Morgan())
    'molecules'
    """
    kernel_kind = _kind_of_kernel(kernel)
    if isinstance(item, str):
        return kernel_kind if kernel_kind in ("molecules", "images") else "texts"
    if is_image(item) or isinstance(item, bytes | os.PathLike):
        return "images"
    if isinstance(item, Mapping):
        return "images" if item and set(item) <= {"bytes", "path"} else "other"
    if type(item).__module__.startswith("rdkit"):
        return "molecules"
    if isinstance(item, np.ndarray) or is_foreign(item):
        return {1: "vectors", 2: "images", 3: "images"}.get(len(item.shape), "other")
    if isinstance(item, Sequence) and len(item):
        if all(isinstance(element, str) for element in item):
            return "texts"
        if all(isinstance(element, int | float) for element in item):
            return "vectors"
    return "other"


def _kind_of_kernel(kernel: Any) -> str | None:
    """The kind of samples that a kernel takes, if it takes only one."""
    from vendimeter.kernels import MACCS, Morgan, Pixels, RDKitFingerprint

    if isinstance(kernel, Morgan | MACCS | RDKitFingerprint):
        return "molecules"
    if isinstance(kernel, Pixels):
        return "images"
    kinds = {_kind_of_kernel(part) for part in getattr(kernel, "parts", ())}
    return kinds.pop() if len(kinds) == 1 else None


def check_kind(kind: Any) -> None:
    """Raise an error for a kind that is none of `KINDS`."""
    if kind is not None and kind not in KINDS:
        raise unknown("kind of item", kind, KINDS)


# ------------------------------------------------------------------------------------------------------- drawing


def draw(ax: Any, item: Any, kind: str | None = None, box: Box | None = None) -> Any:
    """Draw one item.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The axes.
    item : Any
        A picture (array, PIL image, path, bytes), a text, a molecule (SMILES or RDKit's), a vector, or anything else,
        of which a brief text is drawn.
    kind : {"images", "texts", "molecules", "vectors", "other"}, optional
        What it is; guessed from the item without it.
    box : Box, optional
        Where to; all of the axes without it.

    Returns
    -------
    matplotlib.artist.Artist
        The image or the text.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> draw(Figure().subplots(), "costs $5").get_text()
    'costs $5'
    """
    check_kind(kind)
    kind = kind or kind_of(item)
    if box is None:
        box = Box(0.0, 0.0, *CELLS[kind])
        _prepare_axes(ax, box.width, box.height)
    if kind == "images":
        return _draw_pixels(ax, pixels_of(item), box)
    if kind == "molecules":
        pixels = _molecule_pixels(item)
        return _draw_text(ax, item_text(item), box) if pixels is None else _draw_pixels(ax, pixels, box)
    if kind == "vectors":
        return _draw_vector(ax, item, box)
    return _draw_text(ax, item_text(item), box)


def _prepare_axes(ax: Any, width: float, height: float) -> None:
    ax.set_autoscale_on(False)
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    ax.set_aspect("equal")
    ax.set_axis_off()


def _draw_pixels(ax: Any, pixels: np.ndarray, box: Box, **style: Any) -> Any:
    """Draw pixels within a box in their own proportions."""
    rows, columns = pixels.shape[:2]
    scale = min(box.width / columns, box.height / rows)
    x, y = box.left + (box.width - columns * scale) / 2, box.top + (box.height - rows * scale) / 2
    style = {"cmap": "gray", "vmin": 0, "vmax": 255} | style
    return ax.imshow(pixels, extent=(x, x + columns * scale, y + rows * scale, y), aspect="equal", **style)


def pixels_of(item: Any) -> np.ndarray:
    """A picture as 8 bits; an array whose numbers are beyond 0 to 1 is stretched from its lowest to its highest."""
    try:
        return bands(item)
    except InputError:
        if not (isinstance(item, np.ndarray) or is_foreign(item)):
            raise
        array = to_host(local(item))
        if array.ndim == 3 and array.shape[0] in CHANNELS and array.shape[2] not in CHANNELS:
            array = np.moveaxis(array, 0, 2)
        drawable = array.dtype.kind in "iuf" and array.size and np.isfinite(array).all()
        if not drawable or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in CHANNELS)):
            raise
        values = array.astype(np.float64)
        low, high = (0.0, 255.0) if _are_bytes(array) else (values.min(), values.max())
        return bands((values - low) / max(high - low, 1e-300))


def _are_bytes(pixels: np.ndarray) -> bool:
    return pixels.dtype.kind in "iu" and pixels.min() >= 0 and 16 < pixels.max() <= 255


def _molecule_pixels(item: Any) -> np.ndarray | None:
    """The formula of a molecule in pixels, or None for what RDKit cannot read, or what is too large."""
    from vendimeter.data.molecules import MOST_DRAWN, parse

    molecule, _ = parse(item)
    if molecule is None or molecule.GetNumAtoms() > MOST_DRAWN:
        return None
    drawing = require("rdkit.Chem.Draw.rdMolDraw2D", extra="molecules", purpose="drawing a molecule")
    canvas = drawing.MolDraw2DCairo(*MOLECULE_PIXELS)
    canvas.drawOptions().bondLineWidth = 2
    canvas.drawOptions().minFontSize = 14
    drawing.PrepareAndDrawMolecule(canvas, molecule)
    canvas.FinishDrawing()
    return bands(canvas.GetDrawingText())


def _draw_vector(ax: Any, item: Any, box: Box) -> Any:
    """Draw a vector as a strip of colours, from its lowest number to its highest."""
    numbers = np.asarray(to_host(local(item)) if is_foreign(item) else item, dtype=np.float64).reshape(1, -1)
    extent = (box.left, box.left + box.width, box.top + box.height, box.top)
    return ax.imshow(numbers, extent=extent, aspect="equal", cmap=SEQUENTIAL, interpolation="nearest")


# ---------------------------------------------------------------------------------------------------------- words


def item_text(item: Any) -> str:
    """The text that stands for an item: a text itself, on one line; of anything else a few words."""
    if isinstance(item, bytes):
        item = item.decode(errors="replace")
    if isinstance(item, str):
        return printable(" ".join(item[:MAX_CHARACTERS].split())) + (
            "…" if len(item) > MAX_CHARACTERS else ""
        )
    if isinstance(item, Mapping):
        return label_text(
            ", ".join(f"{name}: {item_text(value)}" for name, value in list(item.items())[:6]), MAX_CHARACTERS
        )
    if isinstance(item, list | tuple) and all(isinstance(element, str) for element in item):
        return label_text(", ".join(item[:50]), MAX_CHARACTERS)
    return label_text(brief(item), MAX_CHARACTERS)


def _draw_text(ax: Any, words: str, box: Box) -> Any:
    """Draw text in lines that fit the box, as large as that allows; what does not fit is cut, with an ellipsis."""
    scale = _points_per_unit(ax)
    font_size, lines, max_lines = SMALLEST_FONT, [words], 1
    for font_size in np.arange(LARGEST_FONT, SMALLEST_FONT - 0.1, -0.5).tolist():
        lines = wrap_text(words, max(4, int(box.width * scale / (LETTER_WIDTH * font_size))))
        max_lines = max(1, int(box.height * scale / (LINE_HEIGHT * font_size)))
        if len(lines) <= max_lines:
            break
    else:
        lines = lines[:max_lines]
        lines[-1] = lines[-1][: max(1, len(lines[-1]) - 1)] + "…"
    x, y = box.left + box.width / 2, box.top + box.height / 2
    return ax.text(
        x,
        y,
        "\n".join(lines),
        fontsize=font_size,
        ha="center",
        va="center",
        linespacing=1.1,
        clip_on=True,
        **AS_IT_STANDS,
    )


def wrap_text(words: str, width: int) -> list[str]:
    """Break a text into lines; East Asian wide letters count twice.

    Examples
    --------
    >>> wrap_text("a dog on a boat", 7), wrap_text("狗在船上", 4)
    (['a dog', 'on a', 'boat'], ['狗在', '船上'])
    """
    wide_count = sum(unicodedata.east_asian_width(letter) in "WF" for letter in words)
    if wide_count > len(words) / 4:
        width = max(1, width // 2)
    return textwrap.wrap(words, width) or [""]


def _points_per_unit(ax: Any) -> float:
    """Typographic points of one unit of the axes on paper."""
    box, figure = ax.get_window_extent(), ax.figure
    width, height = (abs(b - a) for a, b in (ax.get_xlim(), ax.get_ylim()))
    return 72 / figure.dpi * min(box.width / width, box.height / height)


# --------------------------------------------------------------------------------------------------------- sheets


class Sheet:
    """One pair of axes on which items, headings and lines are laid out in inches, as far as the figure allows.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        The axes to draw on, or None for a new figure of the size of the sheet.
    width, height : float
        In inches.
    """

    def __init__(self, ax: Any, width: float, height: float):
        own_figure = ax is None
        self.ax = axes(ax, width=width + 0.2, height=height + 0.2)
        if own_figure:  # one for the whole sheet: nothing needs to be made room for
            self.ax.figure.set_layout_engine("none")
            self.ax.set_position(
                (0.1 / (width + 0.2), 0.1 / (height + 0.2), width / (width + 0.2), height / (height + 0.2))
            )
        _prepare_axes(self.ax, width, height)

    def put(self, item: Any, kind: str, left: float, top: float) -> Any:
        """Draw an item in a cell of its kind."""
        width, height = CELLS[kind]
        x_gap, y_gap = (0.04, 0.04) if kind == "images" else (0.12, 0.04)  # left free between two cells
        return draw(
            self.ax, item, kind, Box(left + x_gap / 2, top + y_gap / 2, width - x_gap, height - y_gap)
        )

    def write(self, words: str, x: float, y: float, *, size: float = 8.0, **style: Any) -> Any:
        """Write words of any origin at a position, never read as mathematics."""
        scaled = size * min(1.0, _points_per_unit(self.ax) / 72)
        return self.ax.text(x, y, words, fontsize=max(scaled, SMALLEST_FONT), **(AS_IT_STANDS | style))

    def line(self, xs: Sequence[float], ys: Sequence[float]) -> Any:
        """Draw a thin grey line."""
        return self.ax.plot(xs, ys, color=GREY, linewidth=0.6)
