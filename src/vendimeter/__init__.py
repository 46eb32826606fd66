"""Vendimeter answers one question: how many different things are in here."""

from vendimeter import errors, kernels
from vendimeter._score import plan, profile, score
from vendimeter._score_groups import score_groups
from vendimeter._score_stream import score_stream
from vendimeter.accumulate import Accumulator
from vendimeter.accumulate_groups import GroupAccumulator
from vendimeter.group_means import GroupMeans
from vendimeter.groups import GroupScores
from vendimeter.results import Profile, Score
from vendimeter.spectrum import Spectrum

__version__ = "0.1.0"

__all__ = [
    "Accumulator",
    "GroupAccumulator",
    "GroupMeans",
    "GroupScores",
    "Profile",
    "Score",
    "Spectrum",
    "errors",
    "kernels",
    "plan",
    "profile",
    "score",
    "score_groups",
    "score_stream",
]
