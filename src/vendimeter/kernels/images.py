"""Kernels of pictures: the cosine of their pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.arrays import blocks
from vendimeter.data.devices import is_foreign, namespace, to_host
from vendimeter.data.pictures import as_size, decode_all, eight_bits, pictures
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel
from vendimeter.kernels.vectors import unit_rows
from vendimeter.present.progress import Progress
from vendimeter.similarity import FeatureRows, Features
from vendimeter.spectrum import UNIT

__all__ = ["Pixels"]


@dataclass(frozen=True)
class Pixels(Kernel):
    """Cosine similarity of pixels, red, green and blue, from 0 to 255.

    Pictures are paths of files, their bytes, PIL images, arrays of shape (H, W) or (H, W, C), records with "bytes" or
    "path" as Hugging Face's datasets have them, or all of them in one array of shape (n, H, W), (n, H, W, C) or
    (n, C, H, W); an array of three axes is n grey pictures, never one in colour. They are taken as a viewer shows
    them, with 8 bits a channel: the first frame, upright, on white where they are transparent, without regard to colour
    profiles. Arrays hold uint8, uint16, bool or fractions from 0 to 1.

    Parameters
    ----------
    size : int or (height, width), optional
        What pictures are resized to, by Pillow's bicubic filter, without regard to their proportions; the paper takes
        32. With None they are left as they are and must be of one size.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> left, right = np.zeros((2, 4, 4), dtype=np.uint8)
    >>> left[:, :2], right[:, 2:] = 255, 255
    >>> round(vm.score([left, left, right], vm.kernels.Pixels(size=None)), 4)
    1.8899
    """

    size: int | tuple[int, int] | None = 32
    name: ClassVar[str] = "pixels"

    def __post_init__(self) -> None:
        size = as_size(self.size)
        object.__setattr__(self, "size", size[0] if size is not None and size[0] == size[1] else size)

    def __repr__(self) -> str:
        return f"Pixels({'size=None' if self.size is None else self.size})"

    @property
    def needs_all(self) -> str | None:
        """Nothing where there is a size: then columns of different batches mean the same."""
        if self.size is not None:
            return None
        return (
            "without a size, one batch of pictures might be tall and the next wide with as many pixels. Name the size "
            "they all have, such as Pixels(28) or Pixels((218, 178)): those that have it already are left as they are"
        )

    def build(self, samples: Any, rng: int) -> Features:
        """Features: the pixels in a row, normalised; one channel where all pictures are grey, with the same cosines."""
        return _cosine_features(self._rows(samples)[0])

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """Features: always three channels, since the next batch may have colours."""
        rows, grey = self._rows(samples)
        return _cosine_features(_repeat_channels(rows) if grey else rows).with_kernel(self)

    def vectors(self, samples: Any) -> np.ndarray:
        """The pixels of each picture in a row, red, green and blue, from 0 to 1: for metrics that take features.

        Examples
        --------
        >>> import numpy as np
        >>> Pixels(2).vectors(np.full((1, 2, 2), 51, dtype=np.uint8)).round(3)
        array([[0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]], dtype=float32)
        """
        rows, grey = self._rows(samples)
        rows = _repeat_channels(rows) if grey else rows
        return np.asarray(to_host(rows), dtype=np.float32) / np.float32(255)

    def _rows(self, samples: Any) -> tuple[Any, bool]:
        """A row of uint8 a picture, and whether there is one column a pixel, or three."""
        items, size = pictures(samples), as_size(self.size)
        if not isinstance(items, list | tuple):
            if size is None or tuple(items.shape[1:3]) == size:
                batch = eight_bits(items)
                rows = namespace(batch).reshape(batch, (int(batch.shape[0]), -1))
                _refuse_black(rows)
                return rows, batch.ndim == 3
            # Pillow resizes one by one, on the host.
            items = list(to_host(items) if is_foreign(items) else items)
        rows, grey = _stack_pictures(items, size)
        _refuse_black(rows)
        return rows, grey


def _stack_pictures(items: Any, size: tuple[int, int] | None) -> tuple[np.ndarray, bool]:
    """Decode all of them into one array, which has one channel until a picture has three."""
    rows, grey, shape = np.empty((0, 0), dtype=np.uint8), True, (0, 0)
    with Progress("Pictures") as progress:
        for i, picture in enumerate(decode_all(items, size)):
            if i == 0:
                shape, grey = picture.shape[:2], picture.ndim == 2
                rows = np.empty((len(items), picture.size), dtype=np.uint8)
            if picture.shape[:2] != shape:
                (h, w), (height, width) = shape, picture.shape[:2]
                raise InputError(
                    f"item {i} is {width}×{height} pixels and item 0 is {w}×{h}; expected pictures of one size. Name "
                    "one that they are resized to, such as Pixels(32).",
                    item=i,
                )
            if grey and picture.ndim == 3:
                rows, grey = _repeat_channels(rows), False
            rows[i] = picture.ravel() if grey or picture.ndim == 3 else np.repeat(picture.ravel(), 3)
            progress.step((i + 1) / len(items), f"{i + 1:,} of {len(items):,}")
    return rows, grey


def _repeat_channels(rows: Any) -> Any:
    """Grey pixels as red, green and blue."""
    if isinstance(rows, np.ndarray):
        return np.repeat(rows, 3, axis=1)
    xp = namespace(rows)
    return xp.reshape(xp.stack([rows] * 3, axis=2), (int(rows.shape[0]), -1))


def _refuse_black(rows: Any) -> None:
    xp = namespace(rows)
    for part in blocks(int(rows.shape[0]), int(rows.shape[1]), itemsize=1):
        has_light = xp.any(rows[part, :] != 0, axis=1)
        if not bool(xp.all(has_light)):
            position = part.start + int(np.argmin(to_host(has_light)))
            raise InputError(
                f"item {position} is a black picture, all zeros, and the cosine similarity with it is undefined. "
                "Remove it, or compare the pixels by distance: pass them as rows, with "
                "kernel=vendimeter.kernels.RBF().",
                item=position,
                option="kernel",
            )


def _cosine_features(rows: Any) -> Features:
    return FeatureRows(rows, unit_rows, rounding=(int(rows.shape[1]) / 2 + 4) * UNIT, upcasts=True)
