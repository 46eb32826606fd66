"""Pictures of every kind as 8-bit pixels: files, bytes, PIL images, arrays of any library.

A picture is what a viewer shows: its first frame, upright (EXIF), on white where it is transparent, with 8 bits a
channel. Colour profiles (ICC) are ignored: values are taken as they are stored. Arrays need no Pillow unless they are
resized.
"""

from __future__ import annotations

import functools
import math
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter._arrays import as_list, blocks, is_frame_column, is_sparse, to_list
from vendimeter._devices import concat, is_foreign, is_torch, local, namespace, numpy_dtype, to_host
from vendimeter._picture_files import is_image, levels, on_white, pillow, pixels_of, shown
from vendimeter.errors import InputError, about, brief, shape_of
from vendimeter.options import as_number, whole_number

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["about", "as_size", "bands", "decode", "decoded", "each", "eight_bits", "pictures", "rgb_image"]

CHANNELS = (1, 3, 4)  # grey, colour, colour with opacity
LOOK = 8  # pictures that are decoded one by one to see how long they take
WORTH = 4e-4  # seconds a picture from which on threads are faster: they share what is Python, and decode side by side

# -------------------------------------------------------------------------------------------------------- collections


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
        raise _single(brief(samples) if isinstance(samples, str) else f"a {type(samples).__name__}")
    if isinstance(samples, Mapping) and samples and set(samples) <= {"bytes", "path"}:
        raise _single("one record with 'bytes' or 'path'")
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


def _single(what: str) -> InputError:
    return InputError(
        f"samples is {what}, a single picture; expected a collection of them. Put pictures, or the paths of their "
        "files, into a list."
    )


def _channels_last(batch: Any, torch: bool) -> Any:
    shape = tuple(map(int, batch.shape))
    seen = f"samples is an array of shape {shape_of(shape)}"
    if len(shape) == 2:
        raise InputError(
            f"{seen}, a single grey picture or rows of vectors; expected pictures of shape (n, H, W) or (n, H, W, 3). "
            "For vectors use kernel='cosine'.",
            option="kernel",
        )
    first, last = len(shape) == 4 and shape[1] in CHANNELS, len(shape) == 4 and shape[3] in CHANNELS
    if len(shape) not in (3, 4) or (len(shape) == 4 and not (first if torch else first or last)):
        turned = " Pass samples.permute(0, 3, 1, 2)." if torch and last else ""
        expected = "(n, H, W) or (n, C, H, W)" if torch else "(n, H, W), (n, H, W, C) or (n, C, H, W)"
        raise InputError(f"{seen}; expected pictures of shape {expected} with C = 1, 3 or 4.{turned}")
    if 0 in shape:
        raise InputError(f"{seen}; expected pictures with at least one pixel.")
    moved = first and (torch or not last)
    return namespace(batch).permute_dims(batch, (0, 2, 3, 1)) if moved else batch


def decoded(items: Sequence[Any], size: tuple[int, int] | None) -> Iterator[np.ndarray]:
    """The `bands` of each item in order; an error has the place of its item."""
    with closing(each(functools.partial(bands, size=size), items)) as found:
        for i in range(len(items)):
            with about(item=i):
                picture = next(found)
            yield picture


def each(function: Callable[[Any], Any], items: Sequence[Any]) -> Generator[Any]:
    """The function of each item in order; by several threads, a few ahead of the one asked for, if that is worth it."""
    spent = 0.0
    for item in items[:LOOK]:
        begun = time.perf_counter()
        found = function(item)
        spent += time.perf_counter() - begun
        yield found
    threads = min(8, os.cpu_count() or 1) if spent > LOOK * WORTH else 0
    from concurrent.futures import ThreadPoolExecutor  # here, since most programs have no pictures

    waiting: deque[Future[Any] | None] = deque()
    with ThreadPoolExecutor(max(threads, 1), thread_name_prefix="pictures") as pool:
        try:
            for i, item in enumerate(items[LOOK:], LOOK):
                while len(waiting) <= threads and i + len(waiting) < len(items):
                    ahead = items[i + len(waiting)]
                    # A PIL image may lie in the list twice and is loaded when it is first looked at: not in threads.
                    plain = threads and not is_image(ahead)
                    waiting.append(pool.submit(function, ahead) if plain else None)
                future = waiting.popleft()
                yield function(item) if future is None else future.result()
        finally:
            pool.shutdown(cancel_futures=True)


# --------------------------------------------------------------------------------------------------- a single picture


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
    found = bands(item, as_size(size))
    return found if found.ndim == 3 else np.repeat(found[:, :, None], 3, axis=2)


def bands(item: Any, size: tuple[int, int] | None = None) -> np.ndarray:
    """A picture as uint8 of shape (H, W, 3), or (H, W) where it is stored as grey: then all three would be equal."""
    if isinstance(item, np.ndarray) or is_foreign(item):
        pixels = _one_array(item)
        if size is None or pixels.shape[:2] == size:
            return pixels
        return pixels_of(_resized(pillow().fromarray(np.ascontiguousarray(pixels)), size))
    with shown(item) as image:
        return pixels_of(_resized(image, size))


def _resized(image: Any, size: tuple[int, int] | None) -> Any:
    if size is None or (image.height, image.width) == size:
        return image
    return image.resize((size[1], size[0]), pillow().Resampling.BICUBIC)


def rgb_image(item: Any) -> Any:
    """A picture as a PIL image of the mode RGB, for libraries that want one."""
    if isinstance(item, np.ndarray) or is_foreign(item):
        return pillow().fromarray(decode(item))
    with shown(item) as image:
        return image.convert("RGB")


# -------------------------------------------------------------------------------------------------------------- arrays


def _one_array(item: Any) -> np.ndarray:
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
    pixels = _flat(pixels)
    return pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels


def eight_bits(batch: Any) -> Any:
    """Arrays from `pictures` as uint8 of shape (n, H, W) for grey ones or (n, H, W, 3), where they lie."""
    n, width = int(batch.shape[0]), int(np.prod(batch.shape[1:]))
    if numpy_dtype(batch) != np.uint8 or (batch.ndim == 4 and batch.shape[3] == 4):
        parts = []
        for part in blocks(n, width):
            try:
                parts.append(_flat(batch[part, ...]))
                continue
            except InputError as error:
                failure = error
            for i in range(part.start, part.stop):  # one by one, for the position of the one that is wrong
                with about(item=i):
                    _flat(batch[i : i + 1, ...])
            raise failure
        batch = concat(parts)
    return batch[:, :, :, 0] if batch.ndim == 4 and batch.shape[3] == 1 else batch


def _flat(pixels: Any) -> Any:
    """Pixels of any accepted dtype as uint8, with opacity on white."""
    values = levels(pixels)
    if values.ndim < 3 or values.shape[-1] != 4:
        return values
    xp = namespace(values)
    wide = xp.astype(values, xp.int32)
    return on_white(wide[..., :3], wide[..., 3:], xp)
