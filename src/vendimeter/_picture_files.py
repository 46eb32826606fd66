"""Files of pictures, and PIL images, as a viewer shows them: a PIL image of the mode L or RGB.

Nothing in a file is executed, and no setting of Pillow's is changed: it is shared with the rest of the program.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from vendimeter._devices import namespace, numpy_dtype, to_host
from vendimeter.errors import InputError, brief, printable
from vendimeter.optional import require

__all__ = ["LARGEST", "file_digest", "is_image", "levels", "on_white", "pillow", "pixels_of", "shown"]

LARGEST = 100_000_000  # pixels of a picture, which takes 4 to 10 bytes for each while it is read …
LARGEST_WIDE = LARGEST // 2  # … and 12 to 16 in formats whose readers hold it several times
WIDE = ("WEBP", "JPEG2000", "AVIF")
BAND = 1 << 20  # pixels that are worked on at a time

# Plain formats only: others run programs (EPS, PS), hold pictures in other formats, or are told by no signature.
FORMATS = {
    "PNG": "PngImagePlugin",
    "JPEG": "JpegImagePlugin",
    "GIF": "GifImagePlugin",
    "WEBP": "WebPImagePlugin",
    "BMP": "BmpImagePlugin",
    "TIFF": "TiffImagePlugin",
    "PPM": "PpmImagePlugin",
    "JPEG2000": "Jpeg2KImagePlugin",
    "AVIF": "AvifImagePlugin",  # from Pillow 11.3 on
}
ADDRESSES = ("http:", "https:", "ftp:", "data:", "s3:", "gs:", "hf:")
KINDS = "the path or the bytes of a file, a PIL image, an array, or {'bytes': …, 'path': …}"

_huge = threading.Lock()


class _Room:
    """So many pixels may be read at a time, by all threads together."""

    def __init__(self, pixels: int):
        self._free, self._most, self._changed = pixels, pixels, threading.Condition()

    @contextmanager
    def taken(self, pixels: int) -> Iterator[None]:
        """Wait until there is room."""
        pixels = min(pixels, self._most)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= pixels)
            self._free -= pixels
        try:
            yield
        finally:
            with self._changed:
                self._free += pixels
                self._changed.notify_all()


_room = _Room(LARGEST)


def pillow() -> Any:
    """The module PIL.Image."""
    return require("PIL.Image", extra="images", purpose="reading and resizing pictures")


def is_image(item: Any) -> bool:
    """Whether this is a PIL image; who has one has imported Pillow already."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(item, module.Image)


@contextmanager
def shown(item: Any) -> Iterator[Any]:
    """A PIL image of the mode L or RGB, upright and opaque, from anything but an array."""
    if is_image(item):
        yield _shown([item], f"the picture ({item.mode}, {item.width}×{item.height})")
        return
    with ExitStack() as stack:
        stream, what = _stream(item, stack)
        image = [_identified(stream, what)]
        with _room.taken(image[0].width * image[0].height):
            yield _shown(image, what)


def pixels_of(image: Any) -> np.ndarray:
    """An image as an array; a large one band by band, because Pillow would make three copies."""
    if image.width * image.height <= BAND:
        return np.array(image)
    found = np.empty((image.height, image.width, *([3] if image.mode == "RGB" else [])), dtype=np.uint8)
    for top, band in _bands(image):
        found[top : top + band.height] = np.asarray(band)
    return found


def _bands(image: Any) -> Iterator[tuple[int, Any]]:
    """The rows of an image, some at a time, each with the number of the first."""
    step = max(1, BAND // image.width)
    for top in range(0, image.height, step):
        yield top, image.crop((0, top, image.width, min(top + step, image.height)))


def file_digest(item: Any) -> bytes | None:
    """A digest of the bytes of a file, or of what was passed as bytes; None for what is neither."""
    if is_image(item) or not isinstance(item, str | os.PathLike | bytes | bytearray | memoryview | Mapping):
        return None
    with ExitStack() as stack:
        return hashlib.file_digest(_stream(item, stack)[0], "sha256").digest()  # type: ignore[arg-type]


def _stream(item: Any, stack: ExitStack) -> tuple[IO[bytes], str]:
    """The bytes of a picture, and what to call it in a message."""
    data = item
    if isinstance(item, Mapping):
        if not set(item) <= {"bytes", "path"} or not item:
            raise InputError(f"the item is {brief(item)}; expected {KINDS}.")
        data = item.get("bytes")
        data = item.get("path") if data is None else data
        if data is None:
            raise InputError(
                "the item has neither 'bytes' nor a 'path'; expected one of them. Drop such records."
            )
    if isinstance(data, bytes | bytearray | memoryview):
        return io.BytesIO(data), f"the picture ({len(data):,} bytes)"
    if isinstance(data, str | os.PathLike):
        what = f"the file {printable(repr(os.fspath(data)), 240)}"
        return stack.enter_context(_opened(data, what)), what
    raise InputError(f"the item is a {type(item).__name__} ({brief(item)}); expected {KINDS}.")


def _opened(path: Any, what: str) -> IO[bytes]:
    try:
        if Path(path).is_file():  # a pipe or a device might never end
            return open(path, "rb")
        folder, there = Path(path).is_dir(), Path(path).exists()
    except (OSError, ValueError) as error:
        raise InputError(f"{what} cannot be read ({printable(error, 200)}); expected a picture.") from None
    if folder:
        raise InputError(f"{what} is a folder; expected a picture. Pass the files in it.")
    hint = "Look at its path"
    if isinstance(path, str) and path.lower().startswith(ADDRESSES):
        hint = "Download it first: nothing is fetched from an address"
    raise InputError(f"{what} is {'no plain file' if there else 'not there'}; expected a picture. {hint}.")


def _identified(stream: IO[bytes], what: str) -> Any:
    """The picture with its header read, by one of the plain formats.

    `Image.open` would do, but warns of large pictures in words for other programs, and warnings can be held back only
    for the whole process, which has other threads. So the readers it chooses from are asked here, with our limit.
    """
    registered = pillow().OPEN
    head = stream.read(16)
    if not head:
        raise InputError(f"{what} is empty; expected a picture. Get it anew, or leave it out.")
    for name, module in FORMATS.items():
        if name not in registered:
            try:
                importlib.import_module(f"PIL.{module}")
            except ImportError:  # a format that this Pillow does not know
                continue
        factory, accept = registered.get(name, (None, None))
        accepted = accept is not None and accept(head)
        if factory is None or not accepted or isinstance(accepted, str):  # text: why this Pillow cannot
            continue
        stream.seek(0)
        try:
            return factory(stream, "")
        except Exception as error:
            raise _refused(what, error) from error
    raise InputError(
        f"{what} is not a picture in a known format: it begins with {printable(repr(head[:8]), 60)}; expected "
        f"{', '.join(FORMATS)}. Convert it to PNG, or leave it out.",
        option="skip_broken",
    )


def _refused(what: str, error: Exception) -> Exception:
    if isinstance(error, MemoryError):
        return error
    if isinstance(error, pillow().DecompressionBombError):
        return InputError(
            f"{what} is too large ({printable(error, 200).rstrip('.')}). Shrink it, or leave it out."
        )
    said = printable(error, 200) or type(error).__name__
    return InputError(
        f"{what} is damaged or cut short ({said}); expected a whole picture. Get it anew, or leave it out.",
        option="skip_broken",
    )


def _shown(given: list[Any], what: str) -> Any:
    """The image in a list, which it is taken out of, as a viewer shows it, in the mode L or RGB."""
    image = given.pop()
    most = LARGEST_WIDE if image.format in WIDE else LARGEST
    if image.width * image.height > most:
        raise InputError(
            f"{what} has {image.width:,} × {image.height:,} pixels; expected at most {most:,}. Shrink it, or leave "
            "it out."
        )
    if not image.width or not image.height:
        raise InputError(f"{what} has {image.width} × {image.height} pixels; expected at least one.")
    try:
        _load(image)
        way = _turned(image)
        image = _opaque(image)
        return image if way is None else image.transpose(way)
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
    except Exception as error:
        raise _refused(what, error) from error


def _load(image: Any) -> None:
    """Decode. Readers of some formats warn of large pictures once more; what is within our limit is no news."""
    module = pillow()
    if module.MAX_IMAGE_PIXELS is None or image.width * image.height <= module.MAX_IMAGE_PIXELS:
        image.load()
        return
    with _huge, warnings.catch_warnings():
        warnings.simplefilter("ignore", module.DecompressionBombWarning)
        image.load()


def _opaque(image: Any) -> Any:
    """The image on white, with 8 bits a channel, in the mode L or RGB."""
    mode, module = image.mode, pillow()
    if mode.startswith("I") or mode == "F":
        flat = module.new("L", image.size)
        for top, band in _bands(image):
            flat.paste(module.fromarray(_deep(band)), (0, top))
        return flat
    if mode == "1":
        image = image.convert("LA" if "transparency" in image.info else "L")
    if image.has_transparency_data:
        flat = module.new("L" if image.mode in ("L", "LA", "La") else "RGB", image.size)
        for top, band in _bands(image):
            flat.paste(_on_white(band), (0, top))
        return flat
    return image if image.mode in ("L", "RGB") else image.convert("RGB")


def _on_white(image: Any) -> Any:
    grey = image.mode in ("L", "LA", "La")
    both = np.asarray(image.convert("LA" if grey else "RGBA")).astype(np.int32)
    flat = on_white(both[..., :-1], both[..., -1:], np)
    return pillow().fromarray(flat[..., 0] if grey else flat)


def _deep(image: Any) -> np.ndarray:
    """Grey values of more than 8 bits, scaled to 8."""
    values = np.asarray(image)
    if image.mode != "F":  # "I" holds 16 bits in 32
        if values.min() < 0 or values.max() > 65_535:
            raise InputError(
                f"it holds grey values from {values.min()} to {values.max()}; expected 16 bits, 0 to 65,535. Scale "
                "them and pass an array of fractions from 0 to 1."
            )
        key = image.info.get("transparency")
        if isinstance(key, int):  # the one value that stands for nothing: white
            values = np.where(values == key, 65_535, values)
        values = values.astype(np.uint16)
    return levels(values)


def _turned(image: Any) -> Any:
    """How the picture is to be turned, as the EXIF data of the image say; None for not at all."""
    try:
        turned = image.getexif().get(0x0112, 1)
    except Exception:  # no viewer refuses a picture for its EXIF data
        turned = 1
    ways = pillow().Transpose
    return {
        2: ways.FLIP_LEFT_RIGHT, 3: ways.ROTATE_180, 4: ways.FLIP_TOP_BOTTOM, 5: ways.TRANSPOSE,
        6: ways.ROTATE_270, 7: ways.TRANSVERSE, 8: ways.ROTATE_90,
    }.get(turned)  # fmt: skip


# ----------------------------------------------------------------------------------------------- 8 bits, and opaque


def on_white(colours: Any, opacity: Any, xp: Any) -> Any:
    """Colours in front of white, from whole numbers of at least 17 bits."""
    return xp.astype((colours * opacity + 255 * (255 - opacity) + 127) // 255, xp.uint8)


def levels(pixels: Any) -> Any:
    """Values as whole numbers from 0 to 255."""
    xp, dtype = namespace(pixels), numpy_dtype(pixels)
    if dtype == np.uint8:
        return pixels
    if dtype == np.bool_:
        return xp.astype(pixels, xp.uint8) * 255
    if (dtype.kind, dtype.itemsize) == ("u", 2):  # of either byte order
        return xp.astype((xp.astype(pixels, xp.int32) + 128) // 257, xp.uint8)  # 65,535 = 255 · 257
    if dtype.kind != "f":
        raise InputError(
            f"the picture is an array of {dtype}; expected uint8, uint16, bool, or fractions from 0 to 1. For numbers "
            "from 0 to 255 pass pixels.astype('uint8')."
        )
    values = xp.astype(pixels, xp.float64 if dtype.itemsize == 8 else xp.float32)
    right = (values >= 0) & (values <= 1)  # false for NaN too
    if not bool(xp.all(right)):
        worst = to_host(values)[~to_host(right)]
        raise InputError(
            f"the picture holds the value {worst[np.argmax(np.abs(worst))]:.6g}; expected fractions from 0 to 1. Pass "
            "pixels / 255 for values from 0 to 255, (pixels + 1) / 2 for values from −1 to 1, or arrays of uint8."
        )
    return xp.astype(xp.round(values * 255), xp.uint8)
