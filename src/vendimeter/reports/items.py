"""Samples as items of a report: small pictures, drawn molecules or short texts, each with where it came from."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vendimeter.data.arrays import length
from vendimeter.data.collection import Collection
from vendimeter.data.devices import is_foreign, local, to_host
from vendimeter.data.frames import known
from vendimeter.data.groups import Grouping
from vendimeter.data.molecules import MOST_DRAWN, parse
from vendimeter.data.pictures import bands, pillow
from vendimeter.errors import InputError, MissingDependencyError
from vendimeter.io.kinds import guess
from vendimeter.kernels import Embed, FromDistances, Precomputed
from vendimeter.messages import brief, unknown
from vendimeter.optional import require
from vendimeter.plots.items import item_at, item_text, kind_of, pixels_of
from vendimeter.present.colours import coloured, png
from vendimeter.present.text import label_as_text, printable
from vendimeter.reports.document import Item
from vendimeter.reports.sample import Sample

__all__ = ["ItemRenderer", "renderer_of"]

THUMBNAIL_PIXELS = 96  # longer side of a picture, at most
TEXT_LENGTH, CAPTION_LENGTH, SMILES_LENGTH = 300, 80, 120  # characters
MOLECULE_PIXELS = (240, 240)
MOLECULE_COLOURS = 24  # a third of the bytes, and no difference to see
MAX_NUMBERS = 2304  # of a vector that are drawn: 48×48
PICTURE_BYTES = 900_000  # of all pictures of a report
SMALL_PNG_BYTES = 1200  # above which JPEG is tried
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".avif")
NOTHING = "nothing"  # the kind of items of which there is nothing to show


@dataclass(frozen=True)
class Source:
    """What is shown of the items of one collection, and as what."""

    items: Any
    kind: str
    guess_reason: str = ""  # why it was taken for this kind, where that was guessed


def renderer_of(sample: Sample, show: Any) -> ItemRenderer:
    """What is shown of the items that are looked at, and where each came from."""
    parts, sources = sample.parts, _sources(sample, show)
    starts = np.cumsum([0, *(part.n for part in parts)])
    labels = _labels_of_items(sample.groups, sample.diversity.n)
    namers = [_namer(part.samples, part.n) for part in parts]
    if sample.lists is not None:
        namers = [_numberer(sample.lists)]

    def locate(position: int) -> tuple[int, int]:
        original = int(sample.origin[position])
        part = int(np.searchsorted(starts, original, side="right")) - 1
        return part, original - int(starts[part])

    def caption(position: int) -> str:
        part, index = locate(position)
        words = namers[part](index)
        return words if labels is None else f"{words} · {', '.join(map(label_as_text, labels[position]))}"

    return ItemRenderer(sources, locate, caption)


def _labels_of_items(groups: Grouping | None, n: int) -> list[list[Any]] | None:
    """The labels of each item; None where there are no groups."""
    if groups is None:
        return None
    labels: list[list[Any]] = [[] for _ in range(n)]
    for g, label in enumerate(groups.labels):
        for item in groups.items[groups.starts[g] : groups.starts[g + 1]].tolist():
            labels[item].append(label)
    return labels


def _sources(sample: Sample, show: Any) -> list[Source]:
    """What is shown of each collection."""
    parts, kernel = sample.parts, sample.diversity.kernel
    if [part.label for part in parts] == [None]:
        lists = sample.lists
        samples = parts[0].samples if lists is None else [text for texts in lists for text in texts]
        return [source_of(samples, show, kernel, parts[0].n)]
    names = [part.label for part in parts]
    if show is not None and not isinstance(show, Mapping):
        raise InputError(f"show={brief(show)}; expected a mapping from the names of the collections.")
    unexpected = next((name for name in show or () if name not in names), None)
    if unexpected is not None:
        raise unknown("collection (in show)", unexpected, names)
    return [
        source_of(part.samples, (show or {}).get(part.label), kernel, part.n, f"[{part.label!r}]")
        for part in parts
    ]


def _numberer(lists: Collection) -> Callable[[int], str]:
    """The number of a text in its list."""
    starts = np.cumsum([0, *map(len, lists)])
    return lambda position: f"text {position - starts[np.searchsorted(starts, position, side='right') - 1]}"


def _namer(samples: Any, size: int) -> Callable[[int], str]:
    """What items are called: by their names in the file, their places there, or their numbers.

    Of places in one file it is not said which, and never in which folder it is: who reads the page may not have it.
    """
    if not isinstance(samples, Collection):
        return lambda position: f"item {position}"
    if samples.ids is not None:
        return lambda position: str(samples.ids[position])
    single = samples.place(0).source == samples.place(size - 1).source

    def name(position: int) -> str:
        place = samples.place(position)
        if place.record and single:
            return place.record
        file = _file_name(place.source)
        return f"{place.record} of {file}" if place.record else file

    return name


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def source_of(samples: Any, show: Any, kernel: Any, count: int, name: str = "") -> Source:
    """What to show of the items: what the user gave for that, or the samples themselves."""
    if show is None:
        return _own_source(samples, kernel)
    declared_kind = show.kind if isinstance(show, Collection) else None
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
    if declared_kind in ("images", "molecules", "texts"):
        return Source(items, declared_kind)
    # Texts, SMILES, or paths of pictures: the user is told which they were taken for.
    if isinstance(first, str):
        if first.lower().endswith(SUFFIXES) and _is_file(first):
            return Source(items, "images", "their endings")
        guessed = guess(Collection([item_at(items, i) for i in range(min(count, 100))]))
        if guessed.kind == "molecules":
            return Source(items, "molecules", guessed.reason)
    return Source(items, kind)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def _own_source(samples: Any, kernel: Any) -> Source:
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
class ItemRenderer:
    """Renders items of a report by their positions, on demand and cached, within a budget for pictures.

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
    locate: Callable[[int], tuple[int, int]]
    caption: Callable[[int], str]
    budget: int = PICTURE_BYTES
    left_out: int = 0  # pictures for which there was no room
    missing_libraries: dict[str, None] = field(default_factory=dict)  # libraries that are not there, in words
    _rendered: dict[int, Item] = field(default_factory=dict)

    def __call__(self, position: int, figure: str = "") -> Item:
        """The item at a position."""
        item = self._cached_item(int(position))
        picture = item.picture
        if picture is not None:  # every time that it is shown, it is in the page
            if len(picture) > self.budget:
                picture = None
                self.left_out += 1
            else:
                self.budget -= len(picture)
        if item.text or picture is not None:
            return Item(item.text, picture, item.media_type, item.caption, figure)
        return Item(item.caption, figure=figure)  # where there is nothing else to see

    def distinct(
        self, positions: Iterable[int], figure: Callable[[int], str], count: int | None = None
    ) -> list[Item]:
        """The first items (by default a row of them) that look different, each with its figure."""
        count = self.per_row if count is None else count
        lookalikes: dict[Any, list[int]] = {}
        for position in map(int, positions):
            key = self._appearance_key(position)
            if key not in lookalikes and len(lookalikes) == count:
                break
            lookalikes.setdefault(key, []).append(position)
        return [
            self(
                positions_alike[0],
                figure(positions_alike[0]) + (", and copies" if len(positions_alike) > 1 else ""),
            )
            for positions_alike in lookalikes.values()
        ]

    def content_key(self, position: int) -> Any:
        """A key that is equal for items of equal content: whole texts, all numbers of an array."""
        c, index = self.locate(int(position))
        source = self.sources[c]
        if source.kind == NOTHING:
            return position
        item = item_at(source.items, index)
        if isinstance(item, str | bytes | Path):
            return item
        if isinstance(item, np.ndarray) and item.dtype.kind in "biufc":
            return item.shape, item.tobytes()
        return self._appearance_key(int(position))

    def _appearance_key(self, position: int) -> Any:
        """A key that is equal for items that look the same in the report."""
        c, index = self.locate(position)
        source = self.sources[c]
        if source.kind == NOTHING:
            return position
        if source.kind not in ("images", "vectors"):
            return item_text(item_at(source.items, index))
        rendered = self._cached_item(position)
        return rendered.picture or rendered.text

    def _cached_item(self, position: int) -> Item:
        if position not in self._rendered:
            self._rendered[position] = self._render(position)
        return self._rendered[position]

    @property
    def kinds(self) -> set[str]:
        """What is shown."""
        return {source.kind for source in self.sources}

    @property
    def per_row(self) -> int:
        """How many stand side by side: texts take more room than pictures."""
        return 5 if self.kinds <= {"images", "molecules", "vectors"} else 3

    @property
    def notes(self) -> list[str]:
        """What there is to say of what is shown, and is not."""
        lines = list(self.missing_libraries)
        for source in self.sources:
            if source.guess_reason:
                lines.append(f"What is shown was taken for {source.kind} (a guess: {source.guess_reason}).")
        if "vectors" in self.kinds:
            lines.append(
                "A vector is drawn as its numbers row by row, dark for its lowest and light for its highest; show= "
                "puts something to look at in its place."
            )
        if self.left_out:
            lines.append(f"{self.left_out:,} pictures were left out, so that the page stays small.")
        return list(dict.fromkeys(lines))

    def _render(self, position: int) -> Item:
        c, index = self.locate(position)
        source, caption = self.sources[c], printable(self.caption(position), CAPTION_LENGTH)
        if source.kind == NOTHING:
            return Item(caption=caption)
        item = item_at(source.items, index)
        try:
            if source.kind == "images":
                picture, media_type = _thumbnail(item)
                return Item("", picture, media_type, caption)
            if source.kind == "molecules":
                return Item(_truncate(item_text(item), SMILES_LENGTH), _formula(item), "image/png", caption)
            if source.kind == "vectors":
                return Item("", _vector_png(item), "image/png", caption)
        except MissingDependencyError as error:
            self.missing_libraries[printable(error)] = None
        except InputError as error:
            return Item(_truncate(f"cannot be shown: {error}", TEXT_LENGTH), caption=caption)
        return Item(_truncate(item_text(item), TEXT_LENGTH), caption=caption)


def _truncate(words: str, length: int) -> str:
    return words if len(words) <= length else words[: length - 1] + "…"


def _thumbnail(item: Any) -> tuple[bytes, str]:
    """A picture of few bytes, and its media type."""
    pixels = pixels_of(item)
    height, width = pixels.shape[:2]
    if max(height, width) > THUMBNAIL_PIXELS:
        scale = THUMBNAIL_PIXELS / max(height, width)
        try:
            pixels = bands(pixels, (max(1, round(height * scale)), max(1, round(width * scale))))
        except MissingDependencyError:  # an array needs no library to be made out, if not as fine
            step = math.ceil(1 / scale)
            pixels = pixels[::step, ::step]
    lossless = png(pixels)
    if len(lossless) <= SMALL_PNG_BYTES:
        return lossless, "image/png"
    try:
        image = pillow().fromarray(np.ascontiguousarray(pixels))
    except MissingDependencyError:
        return lossless, "image/png"
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85, optimize=True)
    return (lossless, "image/png") if len(lossless) <= file.tell() else (file.getvalue(), "image/jpeg")


def _formula(item: Any) -> bytes | None:
    """The formula of a molecule, or None for what RDKit cannot read, or what is too large."""
    molecule, _ = parse(item)
    if molecule is None or molecule.GetNumAtoms() > MOST_DRAWN:
        return None
    drawing = require("rdkit.Chem.Draw.rdMolDraw2D", extra="molecules", purpose="drawing a molecule")
    canvas = drawing.MolDraw2DCairo(*MOLECULE_PIXELS)
    canvas.drawOptions().bondLineWidth = 2.5
    canvas.drawOptions().minFontSize = 14
    drawing.PrepareAndDrawMolecule(canvas, molecule)
    canvas.FinishDrawing()
    full_png = canvas.GetDrawingText()
    try:
        image = pillow().open(io.BytesIO(full_png), formats=["PNG"]).convert("RGB").quantize(MOLECULE_COLOURS)
    except MissingDependencyError:
        return full_png
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _vector_png(item: Any) -> bytes:
    """A vector as colours, row by row in a square; neighbours of a very long one are taken together."""
    numbers = np.asarray(to_host(local(item)) if is_foreign(item) else item, dtype=np.float64).ravel()
    if len(numbers) > MAX_NUMBERS:
        ends = np.linspace(0, len(numbers), MAX_NUMBERS + 1).round().astype(int)
        numbers = np.add.reduceat(numbers, ends[:-1]) / np.diff(ends)
    width = math.ceil(math.sqrt(max(len(numbers), 1)))
    height = math.ceil(max(len(numbers), 1) / width)
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    pixels = np.full((height * width, 3), 255, dtype=np.uint8)
    pixels[: len(numbers)] = coloured(numbers, low=low, high=high if high > low else low + 1)
    return png(pixels.reshape(height, width, 3))
