"""How samples are shown: as a picture of few bytes, a drawn molecule or some words, each with where it came from."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vendimeter.data.arrays import length
from vendimeter.data.collection import Collection
from vendimeter.data.devices import is_foreign, local, to_host
from vendimeter.data.frames import known
from vendimeter.data.molecules import MOST_DRAWN, parse
from vendimeter.data.pictures import bands, pillow
from vendimeter.errors import InputError, MissingDependencyError, printable
from vendimeter.io.kinds import guess
from vendimeter.kernels import Embed, FromDistances, Precomputed
from vendimeter.optional import require
from vendimeter.plots.items import item_at, item_text, kind_of, pixels_of
from vendimeter.present.colours import coloured, png
from vendimeter.reports.document import Item

__all__ = ["Shown", "Source", "source_of"]

SIDE = 96  # pixels of a picture, at most
LETTERS = 300  # of a text
CAPTION = 80
SMILES = 120
MOLECULE = (240, 240)  # pixels
COLOURS = 24  # of a drawn molecule: a third of the bytes, and no difference to see
NUMBERS = 2304  # of a vector that are drawn: 48×48
PICTURES = 900_000  # bytes of all pictures of a report
SMALL = 1200  # bytes of a PNG above which JPEG is tried
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".avif")
NOTHING = "nothing"  # the kind of items of which there is nothing to show


@dataclass(frozen=True)
class Source:
    """What is shown of the items of one collection, and as what."""

    items: Any
    kind: str
    told_by: str = ""  # what told the kind, where it was guessed


def source_of(samples: Any, show: Any, kernel: Any, count: int, name: str = "") -> Source:
    """What to show of the items: what the user gave for that, or the samples themselves."""
    if show is None:
        return _own(samples, kernel)
    told = show.kind if isinstance(show, Collection) else None
    items = known(show.samples if isinstance(show, Collection) else show)
    if isinstance(items, str | bytes) or not hasattr(items, "__len__"):
        raise InputError(
            f"show{name} is a {type(items).__name__}; expected a list or an array, one entry an item."
        )
    if length(items) != count:
        raise InputError(
            f"show{name} has {length(items):,} entries and there are {count:,} items; expected one an item."
        )
    first = item_at(items, 0)
    kind = kind_of(first)
    if told in ("images", "molecules", "texts"):
        return Source(items, told)
    if isinstance(
        first, str
    ):  # texts, SMILES, or the paths of pictures: the user is told which they were taken for
        if first.lower().endswith(SUFFIXES) and _is_file(first):
            return Source(items, "images", "their endings")
        found = guess(Collection([item_at(items, i) for i in range(min(count, 100))]))
        if found.kind == "molecules":
            return Source(items, "molecules", found.reason)
    return Source(items, kind)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def _own(samples: Any, kernel: Any) -> Source:
    """The samples themselves; of a matrix there is nothing to see."""
    kind = samples.kind if isinstance(samples, Collection) else None
    items = samples.samples if isinstance(samples, Collection) else samples
    if isinstance(kernel, Precomputed | FromDistances):
        return Source(items, NOTHING)
    if kind in ("images", "molecules", "texts"):
        return Source(items, kind)
    first = item_at(items, 0)
    if isinstance(kernel, Embed) and isinstance(first, str):
        from vendimeter.encoders import images

        if isinstance(kernel.encoder, images.PictureEncoder):
            return Source(items, "images")
    return Source(items, kind_of(first, kernel))


@dataclass
class Shown:
    """Items of a report by their positions, each made when it is asked for, as long as there is room for pictures.

    Attributes
    ----------
    sources : list of Source
        What is shown of each collection.
    place : callable
        Position → (collection, position in it).
    caption : callable
        Position → where the item came from.
    """

    sources: Sequence[Source]
    place: Callable[[int], tuple[int, int]]
    caption: Callable[[int], str]
    room: int = PICTURES
    left_out: int = 0  # pictures for which there was no room
    missing: dict[str, None] = field(default_factory=dict)  # libraries that are not there, in words
    _made: dict[int, Item] = field(default_factory=dict)

    def __call__(self, position: int, figure: str = "") -> Item:
        """The item at a position."""
        made = self._item(int(position))
        picture = made.picture
        if picture is not None:  # every time that it is shown, it is in the page
            if len(picture) > self.room:
                picture = None
                self.left_out += 1
            else:
                self.room -= len(picture)
        if made.text or picture is not None:
            return Item(made.text, picture, made.media_type, made.caption, figure)
        return Item(made.caption, figure=figure)  # where there is nothing else to see

    def distinct(
        self, positions: Iterable[int], figure: Callable[[int], str], count: int | None = None
    ) -> list[Item]:
        """So many items (a row), the first ones that look different, each with its figure."""
        count = self.row if count is None else count
        found: dict[Any, list[int]] = {}
        for position in map(int, positions):
            look = self._look(position)
            if look not in found and len(found) == count:
                break
            found.setdefault(look, []).append(position)
        return [
            self(same[0], figure(same[0]) + (", and copies" if len(same) > 1 else ""))
            for same in found.values()
        ]

    def look(self, position: int) -> Any:
        """What two items share that are the same in all that can be shown: whole texts, all numbers of an array."""
        part, own = self.place(int(position))
        source = self.sources[part]
        if source.kind == NOTHING:
            return position
        item = item_at(source.items, own)
        if isinstance(item, str | bytes | Path):
            return item
        if isinstance(item, np.ndarray) and item.dtype.kind in "biufc":
            return item.shape, item.tobytes()
        return self._look(int(position))

    def _look(self, position: int) -> Any:
        """What two items share that look the same."""
        part, own = self.place(position)
        source = self.sources[part]
        if source.kind == NOTHING:
            return position
        if source.kind not in ("images", "vectors"):
            return item_text(item_at(source.items, own))
        made = self._item(position)
        return made.picture or made.text

    def _item(self, position: int) -> Item:
        if position not in self._made:
            self._made[position] = self._make(position)
        return self._made[position]

    @property
    def kinds(self) -> set[str]:
        """What is shown."""
        return {source.kind for source in self.sources}

    @property
    def row(self) -> int:
        """How many stand side by side: texts take more room than pictures."""
        return 5 if self.kinds <= {"images", "molecules", "vectors"} else 3

    @property
    def notes(self) -> list[str]:
        """What there is to say of what is shown, and is not."""
        found = list(self.missing)
        for source in self.sources:
            if source.told_by:
                found.append(f"What is shown was taken for {source.kind} (a guess: {source.told_by}).")
        if "vectors" in self.kinds:
            found.append(
                "A vector is drawn as its numbers row by row, dark for its lowest and light for its highest; show= "
                "puts something to look at in its place."
            )
        if self.left_out:
            found.append(f"{self.left_out:,} pictures were left out, so that the page stays small.")
        return list(dict.fromkeys(found))

    def _make(self, position: int) -> Item:
        part, own = self.place(position)
        source, caption = self.sources[part], printable(self.caption(position), CAPTION)
        if source.kind == NOTHING:
            return Item(caption=caption)
        item = item_at(source.items, own)
        try:
            if source.kind == "images":
                picture, media = _thumbnail(item)
                return Item("", picture, media, caption)
            if source.kind == "molecules":
                return Item(_cut(item_text(item), SMILES), _formula(item), "image/png", caption)
            if source.kind == "vectors":
                return Item("", _folded(item), "image/png", caption)
        except MissingDependencyError as error:
            self.missing[printable(error)] = None
        except InputError as error:
            return Item(_cut(f"cannot be shown: {error}", LETTERS), caption=caption)
        return Item(_cut(item_text(item), LETTERS), caption=caption)


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def _thumbnail(item: Any) -> tuple[bytes, str]:
    """A picture of few bytes, and its media type."""
    pixels = pixels_of(item)
    high, wide = pixels.shape[:2]
    if max(high, wide) > SIDE:
        scale = SIDE / max(high, wide)
        try:
            pixels = bands(pixels, (max(1, round(high * scale)), max(1, round(wide * scale))))
        except MissingDependencyError:  # an array needs no library to be made out, if not as fine
            step = math.ceil(1 / scale)
            pixels = pixels[::step, ::step]
    exact = png(pixels)
    if len(exact) <= SMALL:
        return exact, "image/png"
    try:
        image = pillow().fromarray(np.ascontiguousarray(pixels))
    except MissingDependencyError:
        return exact, "image/png"
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85, optimize=True)
    return (exact, "image/png") if len(exact) <= file.tell() else (file.getvalue(), "image/jpeg")


def _formula(item: Any) -> bytes | None:
    """The formula of a molecule, or None for what RDKit cannot read, or what is too large."""
    molecule, _ = parse(item)
    if molecule is None or molecule.GetNumAtoms() > MOST_DRAWN:
        return None
    drawing = require("rdkit.Chem.Draw.rdMolDraw2D", extra="molecules", purpose="drawing a molecule")
    canvas = drawing.MolDraw2DCairo(*MOLECULE)
    canvas.drawOptions().bondLineWidth = 2.5
    canvas.drawOptions().minFontSize = 14
    drawing.PrepareAndDrawMolecule(canvas, molecule)
    canvas.FinishDrawing()
    drawn = canvas.GetDrawingText()
    try:
        image = pillow().open(io.BytesIO(drawn), formats=["PNG"]).convert("RGB").quantize(COLOURS)
    except MissingDependencyError:
        return drawn
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _folded(item: Any) -> bytes:
    """A vector as colours, row by row in a square; neighbours of a very long one are taken together."""
    numbers = np.asarray(to_host(local(item)) if is_foreign(item) else item, dtype=np.float64).ravel()
    if len(numbers) > NUMBERS:
        ends = np.linspace(0, len(numbers), NUMBERS + 1).round().astype(int)
        numbers = np.add.reduceat(numbers, ends[:-1]) / np.diff(ends)
    wide = math.ceil(math.sqrt(max(len(numbers), 1)))
    high = math.ceil(max(len(numbers), 1) / wide)
    low, top = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    pixels = np.full((high * wide, 3), 255, dtype=np.uint8)
    pixels[: len(numbers)] = coloured(numbers, low=low, high=top if top > low else low + 1)
    return png(pixels.reshape(high, wide, 3))
