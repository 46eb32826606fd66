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
    from vendimeter import encoders, metrics, plots
    from vendimeter.analysis import family
    from vendimeter.analysis.bandwidths import Bandwidths, bandwidth
    from vendimeter.analysis.comparison import Comparison, compare
    from vendimeter.analysis.decomposition import Contributions, contributions
    from vendimeter.analysis.eigenmodes import Modes, modes
    from vendimeter.analysis.near_copies import Duplicates, duplicates
    from vendimeter.analysis.rarefaction import Rarefaction, rarefy
    from vendimeter.analysis.reweighting import Reweighting, reweight
    from vendimeter.analysis.selection import Selection, select
    from vendimeter.analysis.streamed import WrittenContributions, write_contributions

__version__ = "0.1.0"

__all__ = [
    "Accumulator",
    "Bandwidths",
    "Collection",
    "Comparison",
    "Contributions",
    "Duplicates",
    "GroupAccumulator",
    "GroupMeans",
    "GroupScores",
    "Modes",
    "Profile",
    "Rarefaction",
    "Reweighting",
    "Score",
    "Selection",
    "Spectrum",
    "WrittenContributions",
    "bandwidth",
    "compare",
    "contributions",
    "duplicates",
    "encoders",
    "errors",
    "family",
    "kernels",
    "metrics",
    "modes",
    "plan",
    "plots",
    "profile",
    "rarefy",
    "read",
    "read_batches",
    "reweight",
    "score",
    "score_groups",
    "score_stream",
    "select",
    "write_contributions",
]

# What not all need is imported when it is asked for: models with a database and more, metrics, analyses, pictures.
_MODULES = {"encoders": "encoders", "metrics": "metrics", "plots": "plots", "family": "analysis.family"}
_ANALYSES = {
    "bandwidths": ("Bandwidths", "bandwidth"),
    "comparison": ("Comparison", "compare"),
    "decomposition": ("Contributions", "contributions"),
    "eigenmodes": ("Modes", "modes"),
    "near_copies": ("Duplicates", "duplicates"),
    "rarefaction": ("Rarefaction", "rarefy"),
    "reweighting": ("Reweighting", "reweight"),
    "selection": ("Selection", "select"),
    "streamed": ("WrittenContributions", "write_contributions"),
}
_HOMES = {name: home for home, names in _ANALYSES.items() for name in names}


def __getattr__(name: str) -> object:
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"vendimeter.{_MODULES[name]}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"vendimeter.analysis.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'vendimeter' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
