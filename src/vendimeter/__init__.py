"""Vendimeter answers one question: how many different things are in here."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vendimeter import encoders, errors, kernels, metrics, plots
    from vendimeter.analysis import family
    from vendimeter.analysis.bandwidths import Bandwidths, bandwidth
    from vendimeter.analysis.comparison.comparison import Comparison, compare
    from vendimeter.analysis.decomposition.contributions import Contributions, contributions
    from vendimeter.analysis.decomposition.streamed import WrittenContributions, write_contributions
    from vendimeter.analysis.eigenmodes import Modes, modes
    from vendimeter.analysis.near_copies.near_copies import Duplicates, duplicates
    from vendimeter.analysis.rarefaction.rarefaction import Rarefaction, rarefy
    from vendimeter.analysis.reweighting.reweighting import Reweighting, reweight
    from vendimeter.analysis.selection.selection import Selection, select
    from vendimeter.data.collection import Collection
    from vendimeter.diversity import Diversity
    from vendimeter.io.reading import read, read_batches
    from vendimeter.reports.report import Report, report
    from vendimeter.results.groups import GroupMeans, GroupScores
    from vendimeter.results.score import Profile, Score
    from vendimeter.scoring import plan, profile, score, score_groups
    from vendimeter.solvers.options import Solver
    from vendimeter.spectrum import Spectrum
    from vendimeter.streams.accumulator import Accumulator
    from vendimeter.streams.grouped import GroupAccumulator
    from vendimeter.streams.scores import score_stream

__version__ = "0.1.0"

__all__ = [
    "Accumulator",
    "Bandwidths",
    "Collection",
    "Comparison",
    "Contributions",
    "Diversity",
    "Duplicates",
    "GroupAccumulator",
    "GroupMeans",
    "GroupScores",
    "Modes",
    "Profile",
    "Rarefaction",
    "Report",
    "Reweighting",
    "Score",
    "Selection",
    "Solver",
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
    "report",
    "reweight",
    "score",
    "score_groups",
    "score_stream",
    "select",
    "write_contributions",
]

# Everything is imported when it is asked for: `vendi --help` needs no numerics, and few need all of it.
_MODULES = {name: name for name in ("encoders", "errors", "kernels", "metrics", "plots")} | {
    "family": "analysis.family"
}
_HOMES = {
    name: home
    for home, names in {
        "analysis.bandwidths": ("Bandwidths", "bandwidth"),
        "analysis.comparison.comparison": ("Comparison", "compare"),
        "analysis.decomposition.contributions": ("Contributions", "contributions"),
        "analysis.decomposition.streamed": ("WrittenContributions", "write_contributions"),
        "analysis.eigenmodes": ("Modes", "modes"),
        "analysis.near_copies.near_copies": ("Duplicates", "duplicates"),
        "analysis.rarefaction.rarefaction": ("Rarefaction", "rarefy"),
        "analysis.reweighting.reweighting": ("Reweighting", "reweight"),
        "analysis.selection.selection": ("Selection", "select"),
        "data.collection": ("Collection",),
        "diversity": ("Diversity",),
        "io.reading": ("read", "read_batches"),
        "reports.report": ("Report", "report"),
        "results.groups": ("GroupMeans", "GroupScores"),
        "results.score": ("Profile", "Score"),
        "scoring": ("plan", "profile", "score", "score_groups"),
        "solvers.options": ("Solver",),
        "spectrum": ("Spectrum",),
        "streams.accumulator": ("Accumulator",),
        "streams.grouped": ("GroupAccumulator",),
        "streams.scores": ("score_stream",),
    }.items()
    for name in names
}


def __getattr__(name: str) -> object:
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"vendimeter.{_MODULES[name]}")
    if name in _HOMES:
        found = getattr(importlib.import_module(f"vendimeter.{_HOMES[name]}"), name)
        globals()[name] = found  # the next time there is nothing to look up
        return found
    raise AttributeError(f"module 'vendimeter' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
