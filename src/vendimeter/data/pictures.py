"""Pictures of every kind as pixels of 8 bits: files, bytes, PIL images, arrays of any library.

A picture is what a viewer shows: its first frame, upright (EXIF), on white where it is transparent, with 8 bits a
channel. Colour profiles (ICC) are ignored: values are taken as they are stored. Arrays need no Pillow unless they are
resized.

Nothing in a file is executed, and no setting of Pillow is changed: it is shared with the rest of the program.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import io
import math
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from vendimeter.data.arrays import as_list, blocks, is_frame_column, is_sparse, to_list
from vendimeter.data.devices import concat, is_foreign, is_torch, local, namespace, numpy_dtype, to_host
from vendimeter.errors import InputError
from vendimeter.messages import about, brief, shape_of
from vendimeter.optional import require
from vendimeter.options import as_number, whole_number
from vendimeter.present.text import printable

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = [
    "LARGEST",
    "as_size",
    "bands",
    "decode",
    "decode_all",
    "eight_bits",
    "file_digest",
    "is_image",
    "levels",
    "map_in_order",
    "on_white",
    "open_image",
    "pictures",
    "pillow",
    "pixels_of",
    "rgb_image",
]

# Pixels of a picture, which takes 4 to 10 bytes for each while it is read, and 12 to 16 in the formats `WIDE`, whose
# readers hold it several times.
LARGEST = 100_000_000
LARGEST_WIDE = LARGEST // 2
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
CHANNELS = (1, 3, 4)  # grey, colour, colour with opacity
LOOK = 8  # pictures that are decoded one by one to see how long they take
# Seconds a picture from which on threads are faster: they share what is Python, and decode side by side.
WORTH = 4e-4
KINDS = "the path or the bytes of a file, a PIL image, an array, or {'bytes': …, 'path': …}"

_huge = threading.Lock()  # held while warnings of large pictures are switched off


class _PixelBudget:
    """A budget of pixels that all threads together may read at a time."""

    def __init__(self, pixels: int):
        self._available, self._total, self._changed = pixels, pixels, threading.Condition()

    @contextmanager
    def reserve(self, pixels: int) -> Iterator[None]:
        """Hold so many pixels of the budget, once they are free."""
        pixels = min(pixels, self._total)
        with self._changed:
            self._changed.wait_for(lambda: self._available >= pixels)
            self._available -= pixels
        try:
            yield
        finally:
            with self._changed:
                self._available += pixels
                self._changed.notify_all()


_budget = _PixelBudget(LARGEST)


# ---------------------------------------------------------------------------------------------------------- collections


def pictures(samples: Any) -> Any:
    """A collection of pictures: a list of items for `decode`, or an array of shape (n, H, W) or (n, H, W, C).

    An array of three axes is n grey pictures, however many, so that a batch of one or three is read as one of five. An
    array of PyTorch has its channels first. One of any other library may have, which is taken to be so where axis 1 has
    1, 3 or 4 entries and the last axis has not. Arrays on a device stay there.

    Examples
    --------
    >>> import numpy as np
    >>> pictures(np.zeros((10, 3, 32, 32), dtype=np.uint8)).shape
    (10, 32, 32, 3)
    """
    if is_image(samples) or isinstance(samples, str | bytes | bytearray | memoryview | os.PathLike):
        raise _single_picture_error(
            brief(samples) if isinstance(samples, str) else f"a {type(samples).__name__}"
        )
    if isinstance(samples, Mapping) and samples and set(samples) <= {"bytes", "path"}:
        raise _single_picture_error("one record with 'bytes' or 'path'")
    if is_frame_column(samples):
        samples = to_list(samples)
    items = as_list(samples, kernel="a kernel of pictures")
    if is_sparse(items):
        raise InputError(
            "samples is sparse; expected pictures: pass samples.toarray() with the shape (n, H, W)."
        )
    if is_foreign(items) or (isinstance(items, np.ndarray) and items.dtype.kind not in "OSU"):
        return _channels_last(items, is_torch(samples))
    return items.tolist() if isinstance(items, np.ndarray) else items


def eight_bits(batch: Any) -> Any:
    """Arrays from `pictures` as uint8 of shape (n, H, W) for grey ones or (n, H, W, 3), where they lie."""
    n, width = int(batch.shape[0]), int(np.prod(batch.shape[1:]))
    if numpy_dtype(batch) != np.uint8 or (batch.ndim == 4 and batch.shape[3] == 4):
        converted = []
        for part in blocks(n, width):
            try:
                converted.append(_opaque_levels(batch[part, ...]))
                continue
            except InputError as error:
                failure = error
            for i in range(part.start, part.stop):  # one by one, for the position of the one that is wrong
                with about(item=i):
                    _opaque_levels(batch[i : i + 1, ...])
            raise failure
        batch = concat(converted)
    return batch[:, :, :, 0] if batch.ndim == 4 and batch.shape[3] == 1 else batch


def decode_all(items: Sequence[Any], size: tuple[int, int] | None) -> Iterator[np.ndarray]:
    """The `bands` of each item in order; an error has the place of its item."""
    with closing(map_in_order(functools.partial(bands, size=size), items)) as decoded:
        for i in range(len(items)):
            with about(item=i):
                picture = next(decoded)
            yield picture


def map_in_order(function: Callable[[Any], Any], items: Sequence[Any]) -> Generator[Any]:
    """The function of each item in order; by several threads, a few items ahead, where that is faster."""
    seconds = 0.0
    for item in items[:LOOK]:
        start = time.perf_counter()
        result = function(item)
        seconds += time.perf_counter() - start
        yield result
    threads = min(8, os.cpu_count() or 1) if seconds > LOOK * WORTH else 0
    from concurrent.futures import ThreadPoolExecutor  # here, since most programs have no pictures

    futures: deque[Future[Any] | None] = deque()
    with ThreadPoolExecutor(max(threads, 1), thread_name_prefix="pictures") as pool:
        try:
            for i, item in enumerate(items[LOOK:], LOOK):
                while len(futures) <= threads and i + len(futures) < len(items):
                    ahead = items[i + len(futures)]
                    # A PIL image may lie in the list twice and is loaded when it is first looked at: not in threads.
                    in_thread = threads and not is_image(ahead)
                    futures.append(pool.submit(function, ahead) if in_thread else None)
                future = futures.popleft()
                yield function(item) if future is None else future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _channels_last(batch: Any, from_torch: bool) -> Any:
    shape = tuple(map(int, batch.shape))
    description = f"samples is an array of shape {shape_of(shape)}"
    if len(shape) == 2:
        raise InputError(
            f"{description}, a single grey picture or rows of vectors; expected pictures of shape (n, H, W) or "
            "(n, H, W, 3). For vectors use kernel='cosine'.",
            option="kernel",
        )
    first = len(shape) == 4 and shape[1] in CHANNELS
    last = len(shape) == 4 and shape[3] in CHANNELS
    if len(shape) not in (3, 4) or (len(shape) == 4 and not (first if from_torch else first or last)):
        hint = " Pass samples.permute(0, 3, 1, 2)." if from_torch and last else ""
        expected = "(n, H, W) or (n, C, H, W)" if from_torch else "(n, H, W), (n, H, W, C) or (n, C, H, W)"
        raise InputError(f"{description}; expected pictures of shape {expected} with C = 1, 3 or 4.{hint}")
    if 0 in shape:
        raise InputError(f"{description}; expected pictures with at least one pixel.")
    channels_first = first and (from_torch or not last)
    return namespace(batch).permute_dims(batch, (0, 2, 3, 1)) if channels_first else batch


def _single_picture_error(what: str) -> InputError:
    return InputError(
        f"samples is {what}, a single picture; expected a collection of them. Put pictures, or the paths of their "
        "files, into a list."
    )


# ----------------------------------------------------------------------------------------------------- a single picture


def decode(item: Any, *, size: int | tuple[int, int] | None = None) -> np.ndarray:
    """A picture as an array of uint8 of shape (H, W, 3).

    Parameters
    ----------
    item : Any
        The path of a file, its bytes, a record ``{"bytes": …, "path": …}`` as Hugging Face's datasets have them, a PIL
        image, or an array of shape (H, W) or (H, W, C): uint8, uint16, bool, or fractions from 0 to 1.
    size : int or (height, width), optional
        Resize to this with Pillow's bicubic filter, which is antialiased; the aspect ratio is not kept.

    Examples
    --------
    >>> import numpy as np
    >>> decode(np.array([[0.0, 1.0]])).tolist()
    [[[0, 0, 0], [255, 255, 255]]]
    """
    pixels = bands(item, as_size(size))
    return pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)


def bands(item: Any, size: tuple[int, int] | None = None) -> np.ndarray:
    """A picture as uint8 of shape (H, W, 3), or (H, W) where it is stored as grey: then all three would be equal."""
    if isinstance(item, np.ndarray) or is_foreign(item):
        pixels = _array_pixels(item)
        if size is None or pixels.shape[:2] == size:
            return pixels
        return pixels_of(_resize(pillow().fromarray(np.ascontiguousarray(pixels)), size))
    with open_image(item) as image:
        return pixels_of(_resize(image, size))


def rgb_image(item: Any) -> Any:
    """A picture as a PIL image of the mode RGB, for libraries that want one."""
    if isinstance(item, np.ndarray) or is_foreign(item):
        return pillow().fromarray(decode(item))
    with open_image(item) as image:
        return image.convert("RGB")


def as_size(size: Any, name: str = "size") -> tuple[int, int] | None:
    """A size as (height, width): one number for both, a pair, or None."""
    if size is None:
        return None
    pair = size if isinstance(size, list | tuple) and len(size) == 2 else (size, size)
    if any(math.isnan(as_number(side)) for side in pair):
        raise InputError(
            f"{name}={brief(size)}; expected a whole number, a pair (height, width), or None.", option=name
        )
    return whole_number(pair[0], name), whole_number(pair[1], name)


def _resize(image: Any, size: tuple[int, int] | None) -> Any:
    if size is None or (image.height, image.width) == size:
        return image
    return image.resize((size[1], size[0]), pillow().Resampling.BICUBIC)


def _array_pixels(item: Any) -> np.ndarray:
    pixels = local(item)
    pixels = to_host(pixels) if is_foreign(pixels) else pixels
    shape = pixels.shape
    if len(shape) == 3 and shape[0] in CHANNELS and (is_torch(item) or shape[2] not in CHANNELS):
        pixels = np.moveaxis(pixels, 0, 2)
    elif len(shape) != 2 and (len(shape) != 3 or shape[2] not in CHANNELS or is_torch(item)):
        expected = "(H, W) or (C, H, W)" if is_torch(item) else "(H, W), (H, W, C) or (C, H, W)"
        raise InputError(f"the picture has shape {shape_of(shape)}; expected {expected} with C = 1, 3 or 4.")
    if 0 in shape:
        raise InputError(f"the picture has shape {shape_of(shape)}; expected at least one pixel.")
    pixels = _opaque_levels(pixels)
    return pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels


# ------------------------------------------------------------------------------------------------- files and PIL images


def pillow() -> Any:
    """The module PIL.Image."""
    return require("PIL.Image", extra="images", purpose="reading and resizing pictures")


def is_image(item: Any) -> bool:
    """Whether this is a PIL image; who has one has imported Pillow already."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(item, module.Image)


@contextmanager
def open_image(item: Any) -> Iterator[Any]:
    """A PIL image of the mode L or RGB, upright and opaque, from anything but an array."""
    if is_image(item):
        yield _as_viewed([item], f"the picture ({item.mode}, {item.width}×{item.height})")
        return
    with ExitStack() as stack:
        stream, what = _open_stream(item, stack)
        image = [_identify(stream, what)]
        with _budget.reserve(image[0].width * image[0].height):
            yield _as_viewed(image, what)


def pixels_of(image: Any) -> np.ndarray:
    """An image as an array; a large one band by band, because Pillow would make three copies."""
    if image.width * image.height <= BAND:
        return np.array(image)
    pixels = np.empty((image.height, image.width, *([3] if image.mode == "RGB" else [])), dtype=np.uint8)
    for top, band in _row_bands(image):
        pixels[top : top + band.height] = np.asarray(band)
    return pixels


def file_digest(item: Any) -> bytes | None:
    """A digest of the bytes of a file, or of what was passed as bytes; None for what is neither."""
    if is_image(item) or not isinstance(item, str | os.PathLike | bytes | bytearray | memoryview | Mapping):
        return None
    with ExitStack() as stack:
        return hashlib.file_digest(_open_stream(item, stack)[0], "sha256").digest()  # type: ignore[arg-type]


def _open_stream(item: Any, stack: ExitStack) -> tuple[IO[bytes], str]:
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
        return stack.enter_context(_open_file(data, what)), what
    raise InputError(f"the item is a {type(item).__name__} ({brief(item)}); expected {KINDS}.")


def _open_file(path: Any, what: str) -> IO[bytes]:
    try:
        if Path(path).is_file():  # a pipe or a device might never end
            return open(path, "rb")
        is_folder, exists = Path(path).is_dir(), Path(path).exists()
    except (OSError, ValueError) as error:
        raise InputError(f"{what} cannot be read ({printable(error, 200)}); expected a picture.") from None
    if is_folder:
        raise InputError(f"{what} is a folder; expected a picture. Pass the files in it.")
    hint = "Look at its path"
    if isinstance(path, str) and path.lower().startswith(ADDRESSES):
        hint = "Download it first: nothing is fetched from an address"
    raise InputError(f"{what} is {'no plain file' if exists else 'not there'}; expected a picture. {hint}.")


def _identify(stream: IO[bytes], what: str) -> Any:
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
            raise _damage_error(what, error) from error
    raise InputError(
        f"{what} is not a picture in a known format: it begins with {printable(repr(head[:8]), 60)}; expected "
        f"{', '.join(FORMATS)}. Convert it to PNG, or leave it out.",
        option="skip_broken",
    )


def _damage_error(what: str, error: Exception) -> Exception:
    if isinstance(error, MemoryError):
        return error
    if isinstance(error, pillow().DecompressionBombError):
        return InputError(
            f"{what} is too large ({printable(error, 200).rstrip('.')}). Shrink it, or leave it out."
        )
    message = printable(error, 200) or type(error).__name__
    return InputError(
        f"{what} is damaged or cut short ({message}); expected a whole picture. Get it anew, or leave it out.",
        option="skip_broken",
    )


def _as_viewed(holder: list[Any], what: str) -> Any:
    """The image in a list, which it is taken out of, as a viewer shows it, in the mode L or RGB."""
    image = holder.pop()
    largest = LARGEST_WIDE if image.format in WIDE else LARGEST
    if image.width * image.height > largest:
        raise InputError(
            f"{what} has {image.width:,} × {image.height:,} pixels; expected at most {largest:,}. Shrink it, or leave "
            "it out."
        )
    if not image.width or not image.height:
        raise InputError(f"{what} has {image.width} × {image.height} pixels; expected at least one.")
    try:
        _load(image)
        transposition = _orientation(image)
        image = _as_opaque(image)
        return image if transposition is None else image.transpose(transposition)
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
    except Exception as error:
        raise _damage_error(what, error) from error


def _load(image: Any) -> None:
    """Decode an image, without the warnings of some readers about large pictures that are within our limit."""
    module = pillow()
    if module.MAX_IMAGE_PIXELS is None or image.width * image.height <= module.MAX_IMAGE_PIXELS:
        image.load()
        return
    with _huge, warnings.catch_warnings():
        warnings.simplefilter("ignore", module.DecompressionBombWarning)
        image.load()


def _as_opaque(image: Any) -> Any:
    """The image on white, with 8 bits a channel, in the mode L or RGB."""
    mode, module = image.mode, pillow()
    if mode.startswith("I") or mode == "F":
        opaque = module.new("L", image.size)
        for top, band in _row_bands(image):
            opaque.paste(module.fromarray(_grey_levels(band)), (0, top))
        return opaque
    if mode == "1":
        image = image.convert("LA" if "transparency" in image.info else "L")
    if image.has_transparency_data:
        opaque = module.new("L" if image.mode in ("L", "LA", "La") else "RGB", image.size)
        for top, band in _row_bands(image):
            opaque.paste(_image_on_white(band), (0, top))
        return opaque
    return image if image.mode in ("L", "RGB") else image.convert("RGB")


def _image_on_white(image: Any) -> Any:
    is_grey = image.mode in ("L", "LA", "La")
    channels = np.asarray(image.convert("LA" if is_grey else "RGBA")).astype(np.int32)
    opaque = on_white(channels[..., :-1], channels[..., -1:], np)
    return pillow().fromarray(opaque[..., 0] if is_grey else opaque)


def _grey_levels(image: Any) -> np.ndarray:
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


def _orientation(image: Any) -> Any:
    """The transposition that brings an image upright, as its EXIF data say; None where it is upright."""
    try:
        orientation = image.getexif().get(0x0112, 1)
    except Exception:  # no viewer refuses a picture for its EXIF data
        orientation = 1
    methods = pillow().Transpose
    return {
        2: methods.FLIP_LEFT_RIGHT, 3: methods.ROTATE_180, 4: methods.FLIP_TOP_BOTTOM, 5: methods.TRANSPOSE,
        6: methods.ROTATE_270, 7: methods.TRANSVERSE, 8: methods.ROTATE_90,
    }.get(orientation)  # fmt: skip


def _row_bands(image: Any) -> Iterator[tuple[int, Any]]:
    """The rows of an image, some at a time, each with the number of the first."""
    step = max(1, BAND // image.width)
    for top in range(0, image.height, step):
        yield top, image.crop((0, top, image.width, min(top + step, image.height)))


# --------------------------------------------------------------------------------------------------------- pixel values


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
    in_range = (values >= 0) & (values <= 1)  # false for NaN too
    if not bool(xp.all(in_range)):
        worst = to_host(values)[~to_host(in_range)]
        raise InputError(
            f"the picture holds the value {worst[np.argmax(np.abs(worst))]:.6g}; expected fractions from 0 to 1. Pass "
            "pixels / 255 for values from 0 to 255, (pixels + 1) / 2 for values from −1 to 1, or arrays of uint8."
        )
    return xp.astype(xp.round(values * 255), xp.uint8)


def _opaque_levels(pixels: Any) -> Any:
    """Pixels of any accepted dtype as uint8, with opacity on white."""
    values = levels(pixels)
    if values.ndim < 3 or values.shape[-1] != 4:
        return values
    xp = namespace(values)
    wide = xp.astype(values, xp.int32)
    return on_white(wide[..., :3], wide[..., 3:], xp)


def on_white(colours: Any, opacity: Any, xp: Any) -> Any:
    """Colours in front of white, from whole numbers of at least 17 bits."""
    return xp.astype((colours * opacity + 255 * (255 - opacity) + 127) // 255, xp.uint8)
