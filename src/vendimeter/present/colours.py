"""Colours of all pictures, numbers as colours, and small pictures as PNG without any library."""

from __future__ import annotations

import struct
import zlib

import numpy as np

__all__ = ["DIVERGING", "GREY", "LIGHT", "PALETTE", "SEQUENTIAL", "coloured", "hex_colour", "png"]

# The palette of Okabe and Ito, which stays distinct for colour-blind readers; blue first, which is that of scores.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#F0E442", "#000000")
GREY, LIGHT = "#666666", "#D9D9D9"

# Anchors between which colours are mixed: cividis, even in lightness and for colour-blind readers; and, where numbers
# have two signs, orange to purple with near white in the middle. The names are those of matplotlib.
SEQUENTIAL = "cividis"
DIVERGING = "PuOr"
_ANCHORS = {
    SEQUENTIAL: "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",
    DIVERGING: "7f3b08 b35806 e08214 fdb863 fee0b6 f7f7f7 d8daeb b2abd2 8073ac 542788 2d004b",
}
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def coloured(
    numbers: np.ndarray, *, low: float = 0.0, high: float = 1.0, colours: str = SEQUENTIAL
) -> np.ndarray:
    """Numbers as colours, uint8 of their shape and 3; those beyond the ends have the colour of the end.

    Examples
    --------
    >>> import numpy as np
    >>> coloured(np.array([0.0, 1.0])).tolist()
    [[0, 34, 78], [254, 232, 56]]
    """
    anchors = np.array([list(bytes.fromhex(text)) for text in _ANCHORS[colours].split()], dtype=np.float64)
    shares = np.clip((np.asarray(numbers, dtype=np.float64) - low) / max(high - low, 1e-300), 0.0, 1.0)
    positions = shares * (len(anchors) - 1)
    anchor_indices = np.arange(len(anchors))
    channels = [np.interp(positions, anchor_indices, anchors[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def hex_colour(number: float, *, low: float = 0.0, high: float = 1.0, colours: str = SEQUENTIAL) -> str:
    """A number as a colour in the way of SVG.

    Examples
    --------
    >>> hex_colour(1.0)
    '#fee838'
    """
    return "#" + bytes(coloured(np.array(number), low=low, high=high, colours=colours).tolist()).hex()


def png(pixels: np.ndarray) -> bytes:
    r"""Pixels as a PNG file: uint8 of shape (H, W) for grey ones, or (H, W, 3).

    Examples
    --------
    >>> import numpy as np
    >>> png(np.zeros((2, 3), dtype=np.uint8))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    high, wide = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels, dtype=np.uint8).reshape(high, -1)
    # Each row begins with the number of its filter: none suits flat drawings, the difference to the left photographs.
    step = 1 if pixels.ndim == 2 else 3
    left = rows.copy()
    left[:, step:] -= rows[:, :-step]
    candidates = [_compress(0, rows), _compress(1, left)]
    header = struct.pack(">IIBBBBB", wide, high, 8, 0 if pixels.ndim == 2 else 2, 0, 0, 0)
    data = _chunk(b"IDAT", min(candidates, key=len))
    return _SIGNATURE + _chunk(b"IHDR", header) + data + _chunk(b"IEND", b"")


def _compress(filter_number: int, rows: np.ndarray) -> bytes:
    """Rows, each after the number of its filter, compressed."""
    filter_bytes = np.full((len(rows), 1), filter_number, dtype=np.uint8)
    return zlib.compress(np.hstack([filter_bytes, rows]).tobytes(), 9)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
