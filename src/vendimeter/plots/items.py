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
from vendimeter.errors import InputError, brief, printable, unknown
from vendimeter.optional import require
from vendimeter.plots.style import AS_IT_STANDS, GREY, SEQUENTIAL, axes, shown

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
LARGEST, SMALLEST = 8.0, 4.5  # points of letters
LETTER, LINE = 0.56, 1.22  # width of a letter and height of a line, in sizes of the font
LONGEST = 600  # characters of a text that are looked at
MOLECULE = (300, 228)  # pixels


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
    found = samples.iloc[position] if hasattr(samples, "iloc") else samples[position]
    return found.as_py() if hasattr(found, "as_py") else found  # of Arrow


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
    told = _told_by(kernel)
    if isinstance(item, str):
        return told if told in ("molecules", "images") else "texts"
    if is_image(item) or isinstance(item, bytes | os.PathLike):
        return "images"
    if isinstance(item, Mapping):
        return "images" if item and set(item) <= {"bytes", "path"} else "other"
    if type(item).__module__.startswith("rdkit"):
        return "molecules"
    if isinstance(item, np.ndarray) or is_foreign(item):
        return {1: "vectors", 2: "images", 3: "images"}.get(len(item.shape), "other")
    if isinstance(item, Sequence) and len(item):
        if all(isinstance(part, str) for part in item):
            return "texts"
        if all(isinstance(part, int | float) for part in item):
            return "vectors"
    return "other"


def _told_by(kernel: Any) -> str | None:
    """What samples are by the kernel that takes them."""
    from vendimeter.kernels import MACCS, Morgan, Pixels, RDKitFingerprint

    if isinstance(kernel, Morgan | MACCS | RDKitFingerprint):
        return "molecules"
    if isinstance(kernel, Pixels):
        return "images"
    told = {_told_by(part) for part in getattr(kernel, "parts", ())}
    return told.pop() if len(told) == 1 else None


def check_kind(kind: Any) -> None:
    """Refuse what is none of `KINDS`."""
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
        _blank(ax, box.width, box.height)
    if kind == "images":
        return _image(ax, _pixels(item), box)
    if kind == "molecules":
        pixels = _molecule(item)
        return _text(ax, _words(item), box) if pixels is None else _image(ax, pixels, box)
    if kind == "vectors":
        return _strip(ax, item, box)
    return _text(ax, _words(item), box)


def _blank(ax: Any, width: float, height: float) -> None:
    ax.set_autoscale_on(False)
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    ax.set_aspect("equal")
    ax.set_axis_off()


def _image(ax: Any, pixels: np.ndarray, box: Box, **how: Any) -> Any:
    """Pixels within the box in their own proportions."""
    high, wide = pixels.shape[:2]
    scale = min(box.width / wide, box.height / high)
    x, y = box.left + (box.width - wide * scale) / 2, box.top + (box.height - high * scale) / 2
    how = {"cmap": "gray", "vmin": 0, "vmax": 255} | how
    return ax.imshow(pixels, extent=(x, x + wide * scale, y + high * scale, y), aspect="equal", **how)


def _pixels(item: Any) -> np.ndarray:
    """A picture as 8 bits; an array whose numbers are beyond 0 to 1 is stretched from its lowest to its highest."""
    try:
        return bands(item)
    except InputError:
        if not (isinstance(item, np.ndarray) or is_foreign(item)):
            raise
        found = to_host(local(item))
        if found.ndim == 3 and found.shape[0] in CHANNELS and found.shape[2] not in CHANNELS:
            found = np.moveaxis(found, 0, 2)
        drawable = found.dtype.kind in "iuf" and found.size and np.isfinite(found).all()
        if not drawable or not (found.ndim == 2 or (found.ndim == 3 and found.shape[2] in CHANNELS)):
            raise
        wide = found.astype(np.float64)
        low, high = (0.0, 255.0) if _are_bytes(found) else (wide.min(), wide.max())
        return bands((wide - low) / max(high - low, 1e-300))


def _are_bytes(pixels: np.ndarray) -> bool:
    return pixels.dtype.kind in "iu" and pixels.min() >= 0 and 16 < pixels.max() <= 255


def _molecule(item: Any) -> np.ndarray | None:
    """The formula of a molecule in pixels, or None for what RDKit cannot read, or what is too large."""
    from vendimeter.data.molecules import MOST_DRAWN, parse

    molecule, _ = parse(item)
    if molecule is None or molecule.GetNumAtoms() > MOST_DRAWN:
        return None
    drawing = require("rdkit.Chem.Draw.rdMolDraw2D", extra="molecules", purpose="drawing a molecule")
    canvas = drawing.MolDraw2DCairo(*MOLECULE)
    canvas.drawOptions().bondLineWidth = 2
    canvas.drawOptions().minFontSize = 14
    drawing.PrepareAndDrawMolecule(canvas, molecule)
    canvas.FinishDrawing()
    return bands(canvas.GetDrawingText())


def _strip(ax: Any, item: Any, box: Box) -> Any:
    """A vector as a strip of colours, from its lowest number to its highest."""
    numbers = np.asarray(to_host(local(item)) if is_foreign(item) else item, dtype=np.float64).reshape(1, -1)
    extent = (box.left, box.left + box.width, box.top + box.height, box.top)
    return ax.imshow(numbers, extent=extent, aspect="equal", cmap=SEQUENTIAL, interpolation="nearest")


# ---------------------------------------------------------------------------------------------------------- words


def _words(item: Any) -> str:
    """What is written of an item: a text as it stands, on one line; of anything else a few words."""
    if isinstance(item, bytes):
        item = item.decode(errors="replace")
    if isinstance(item, str):
        return printable(" ".join(item[:LONGEST].split())) + ("…" if len(item) > LONGEST else "")
    if isinstance(item, Mapping):
        return shown(", ".join(f"{name}: {_words(value)}" for name, value in list(item.items())[:6]), LONGEST)
    if isinstance(item, list | tuple) and all(isinstance(part, str) for part in item):
        return shown(", ".join(item[:50]), LONGEST)
    return shown(brief(item), LONGEST)


def _text(ax: Any, words: str, box: Box) -> Any:
    """Words in lines that fit the box, as large as that allows; what does not fit is left out, with an ellipsis."""
    scale = _points(ax)
    size, lines, most = SMALLEST, [words], 1
    for size in np.arange(LARGEST, SMALLEST - 0.1, -0.5).tolist():
        lines = wrapped(words, max(4, int(box.width * scale / (LETTER * size))))
        most = max(1, int(box.height * scale / (LINE * size)))
        if len(lines) <= most:
            break
    else:
        lines = lines[:most]
        lines[-1] = lines[-1][: max(1, len(lines[-1]) - 1)] + "…"
    x, y = box.left + box.width / 2, box.top + box.height / 2
    return ax.text(
        x,
        y,
        "\n".join(lines),
        fontsize=size,
        ha="center",
        va="center",
        linespacing=1.1,
        clip_on=True,
        **AS_IT_STANDS,
    )


def wrapped(words: str, width: int) -> list[str]:
    """Lines of a text; letters of Chinese and its like, which are twice as wide, count twice.

    Examples
    --------
    >>> wrapped("a dog on a boat", 7), wrapped("狗在船上", 4)
    (['a dog', 'on a', 'boat'], ['狗在', '船上'])
    """
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in words)
    if wide > len(words) / 4:
        width = max(1, width // 2)
    return textwrap.wrap(words, width) or [""]


def _points(ax: Any) -> float:
    """Points that a unit of the axes takes on paper."""
    box, figure = ax.get_window_extent(), ax.figure
    wide, high = (abs(b - a) for a, b in (ax.get_xlim(), ax.get_ylim()))
    return 72 / figure.dpi * min(box.width / wide, box.height / high)


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
        new = ax is None
        self.ax = axes(ax, width=width + 0.2, height=height + 0.2)
        if new:  # one for the whole sheet: nothing needs to be made room for
            self.ax.figure.set_layout_engine("none")
            self.ax.set_position(
                (0.1 / (width + 0.2), 0.1 / (height + 0.2), width / (width + 0.2), height / (height + 0.2))
            )
        _blank(self.ax, width, height)

    def put(self, item: Any, kind: str, left: float, top: float) -> Any:
        """Draw an item in a cell of its kind."""
        width, height = CELLS[kind]
        x, y = (0.04, 0.04) if kind == "images" else (0.12, 0.04)  # what is left free between two
        return draw(self.ax, item, kind, Box(left + x / 2, top + y / 2, width - x, height - y))

    def write(self, words: str, x: float, y: float, *, size: float = 8.0, **how: Any) -> Any:
        """Words of any origin at a place, never read as mathematics."""
        scaled = size * min(1.0, _points(self.ax) / 72)
        return self.ax.text(x, y, words, fontsize=max(scaled, SMALLEST), **(AS_IT_STANDS | how))

    def line(self, xs: Sequence[float], ys: Sequence[float]) -> Any:
        """A thin grey line."""
        return self.ax.plot(xs, ys, color=GREY, linewidth=0.6)
