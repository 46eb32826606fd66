"""What every analysis gives back: a frozen result that can be read, drawn, and turned into a frame or JSON."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter._figures import Figures
from vendimeter.present.text import html_escaped
from vendimeter.results import Score, html_table
from vendimeter.scoring import to_score
from vendimeter.solvers.exact import Solution
from vendimeter.solvers.plan import Plan
from vendimeter.solvers.solve import unclaimed

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["Result", "frozen", "score_of"]

SHOWN = 20  # rows of a table in a notebook


class Result(Figures):
    """A result of an analysis; a subclass is a frozen dataclass, ``@dataclass(frozen=True, repr=False, eq=False)``.

    A subclass says what it found in words (`summary`), as columns (`_columns`, one row an item, group or size), and as
    a picture (`plot`). Fields that are long have ``field(repr=False)``.
    """

    @abstractmethod
    def summary(self) -> str:
        """What was found, in a sentence or a few."""

    @abstractmethod
    def _columns(self) -> dict[str, Any]:
        """The columns of `to_frame`."""

    @abstractmethod
    def plot(self, ax: Any = None) -> Display:
        """Draw it; see `vendimeter.plots`."""

    def to_frame(self) -> Any:
        """A pandas frame of what was found."""
        from vendimeter.results import data_frame

        return data_frame(self._columns())

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values ready for JSON, scores with their bounds (a missing number is None)."""
        found = super().to_dict()
        return found | {"q": "inf"} if getattr(self, "q", None) == math.inf else found

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        columns = {name: list(values[:SHOWN]) for name, values in self._columns().items()}
        rows = [tuple(map(_cell, row)) for row in zip(*columns.values(), strict=True)]
        total = len(next(iter(self._columns().values()), ()))
        if total > SHOWN:
            rows.append((f"… {total - SHOWN:,} more", *[""] * (len(columns) - 1)))
        return f"<p>{html_escaped(self.summary())}</p>{html_table(rows, tuple(columns))}"


def _cell(value: Any) -> Any:
    return f"{value:.5g}" if isinstance(value, float | np.floating) else value


def frozen(array: Any) -> np.ndarray:
    """An array of a result, which nobody may write into."""
    array = np.asarray(array)
    array.flags.writeable = False
    return array


def score_of(solution: Solution, q: float, n: int, kernel: Any, reason: str) -> Score:
    """What a solver found as the score of one order; without bounds where the kernel only stands in for another."""
    if kernel is not None and kernel.approximate:
        solution = unclaimed(solution)
    return to_score(solution, Plan("rows", "float64", reason), q, n, kernel)
