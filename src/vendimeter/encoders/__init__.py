"""Encoders: models that turn samples into vectors, for `vendimeter.kernels.Embed`.

Each is a small frozen object with parameters; its model is loaded when it is needed, once. Vectors are kept on disk.
"""

from __future__ import annotations

from vendimeter.encoders.base import Encoder
from vendimeter.encoders.cache import cache_folder
from vendimeter.encoders.imagenet import Inception, InceptionFID, Timm
from vendimeter.encoders.images import CLIP, DINOv2, Pictures
from vendimeter.encoders.text import Sentences, SimCSE, Transformer

__all__ = [
    "CLIP",
    "DINOv2",
    "Encoder",
    "Inception",
    "InceptionFID",
    "Pictures",
    "Sentences",
    "SimCSE",
    "Timm",
    "Transformer",
    "by_name",
    "cache_folder",
]

_NAMED: tuple[type[Encoder], ...] = (
    Sentences, Transformer, SimCSE, Inception, InceptionFID, DINOv2, CLIP, Timm, Pictures,
)  # fmt: skip


def by_name() -> dict[str, type[Encoder]]:
    """The encoders by their names.

    Examples
    --------
    >>> by_name()["simcse"]()
    SimCSE()
    """
    return {encoder.name: encoder for encoder in _NAMED}
