"""Vendimeter answers one question: how many different things are in here."""

from typing import TYPE_CHECKING

from vendimeter import errors, kernels
from vendimeter._score import plan, profile, score
from vendimeter._score_groups import score_groups
from vendimeter._score_stream import score_stream
from vendimeter.accumulate import Accumulator
from vendimeter.accumulate_groups import GroupAccumulator
from vendimeter.group_means import GroupMeans
from vendimeter.groups import GroupScores
from vendimeter.io.collection import Collection
from vendimeter.io.reading import read, read_batches
from vendimeter.results import Profile, Score
from vendimeter.spectrum import Spectrum

if TYPE_CHECKING:
    from vendimeter import encoders, metrics

__version__ = "0.1.0"

__all__ = [
    "Accumulator",
    "Collection",
    "GroupAccumulator",
    "GroupMeans",
    "GroupScores",
    "Profile",
    "Score",
    "Spectrum",
    "encoders",
    "errors",
    "kernels",
    "metrics",
    "plan",
    "profile",
    "read",
    "read_batches",
    "score",
    "score_groups",
    "score_stream",
]


def __getattr__(name: str) -> object:
    """Encoders, with a database and more, and metrics are not needed by all: they are imported when asked for."""
    if name in ("encoders", "metrics"):
        import importlib

        return importlib.import_module(f"vendimeter.{name}")
    raise AttributeError(f"module 'vendimeter' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
