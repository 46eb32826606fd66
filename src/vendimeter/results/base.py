"""Base classes of results: records of figures, numbers with further fields, and results of analyses.

`Figures` is the base of all of them: a frozen dataclass with a short representation and a form for JSON. `Figure` and
`Count` are numbers too, a float and an int. `Result` is what every analysis gives back: it can be read, drawn, and
turned into a frame or JSON.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.present.numbers import short_number
from vendimeter.present.plain import plain
from vendimeter.present.tables import data_frame, html_table
from vendimeter.present.text import html_escaped
from vendimeter.results.score import Score, to_score
from vendimeter.solvers.exact import Solution
from vendimeter.solvers.plan import Plan
from vendimeter.solvers.solve import unclaimed

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["Count", "Figure", "Figures", "Result", "frozen", "score_of"]

ROWS_SHOWN = 20  # of a table in a notebook


class Figures:
    """Several figures of one computation; a subclass is a frozen dataclass, and long fields have ``repr=False``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, repr=False)
    ... class Pair(Figures):
    ...     left: float
    ...     right: float
    >>> Pair(1 / 3, 2.0), Pair(1.0, float("nan")).to_dict()
    (Pair(left=0.333333, right=2), {'left': 1.0, 'right': None})
    """

    def _fields(self) -> list[tuple[str, Any, bool]]:
        """The fields: name, value, and whether it is short enough to be shown."""
        return [(field.name, getattr(self, field.name), field.repr) for field in dataclasses.fields(self)]  # type: ignore[arg-type]

    def __repr__(self) -> str:
        shown_fields = [f"{name}={_format_field(value)}" for name, value, short in self._fields() if short]
        return f"{type(self).__name__}({', '.join(shown_fields)})"

    def _repr_html_(self) -> str:
        rows = [(name, _format_field(value)) for name, value, short in self._fields() if short]
        return f"<p>{html_escaped(type(self).__name__)}</p>{html_table(rows)}"

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values ready for JSON (a missing or infinite number is None, a score has its bounds)."""
        return {name: plain(value) for name, value, _ in self._fields()}


class Figure(float, Figures):
    """A figure that is a float, its first field `value`, with what else is known of it as further fields.

    A subclass is a frozen dataclass, ``@dataclass(frozen=True, repr=False, eq=False)``, so that it compares and hashes
    as the float it is. Arithmetic on it gives plain floats.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, repr=False, eq=False)
    ... class Mean(Figure):
    ...     value: float
    ...     std: float
    >>> mean = Mean(1 / 3, std=0.5)
    >>> mean, mean.std, mean * 3
    (Mean(0.333333, std=0.5), 0.5, 1.0)
    """

    def __new__(cls, value: float, *args: Any, **fields: Any) -> Figure:
        """Make the float of this value; the dataclass sets the fields."""
        return float.__new__(cls, value)

    def __repr__(self) -> str:
        return _repr_with_value(self, short_number(self))

    __str__ = float.__repr__


class Count(int, Figures):
    """A count that is an int, its first field `value`, with what else is known of it, as for `Figure`."""

    def __new__(cls, value: int, *args: Any, **fields: Any) -> Count:
        """Make the int of this value; the dataclass sets the fields."""
        return int.__new__(cls, value)

    def __repr__(self) -> str:
        return _repr_with_value(self, str(int(self)))

    __str__ = int.__repr__


def _repr_with_value(figure: Figures, value: str) -> str:
    """The representation of a number with further fields: its value without a name, then the short fields."""
    shown_fields = [f"{name}={_format_field(field)}" for name, field, short in figure._fields()[1:] if short]
    return f"{type(figure).__name__}({', '.join([value, *shown_fields])})"


def _format_field(value: Any) -> str:
    """The value of a field as text for people."""
    if isinstance(value, float):
        return short_number(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_format_field, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_format_field(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, np.ndarray):
        return f"<{len(value)} values>" if value.ndim else short_number(value.item())
    return repr(value)


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
        return data_frame(self._columns())

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values ready for JSON, scores with their bounds (a missing number is None)."""
        fields = super().to_dict()
        return fields | {"q": "inf"} if getattr(self, "q", None) == math.inf else fields

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        columns = {name: list(values[:ROWS_SHOWN]) for name, values in self._columns().items()}
        rows = [tuple(map(_format_cell, row)) for row in zip(*columns.values(), strict=True)]
        total = len(next(iter(self._columns().values()), ()))
        if total > ROWS_SHOWN:
            rows.append((f"… {total - ROWS_SHOWN:,} more", *[""] * (len(columns) - 1)))
        return f"<p>{html_escaped(self.summary())}</p>{html_table(rows, tuple(columns))}"


def _format_cell(value: Any) -> Any:
    return f"{value:.5g}" if isinstance(value, float | np.floating) else value


def frozen(array: Any) -> np.ndarray:
    """An array of a result, which nobody may write into."""
    array = np.asarray(array)
    array.flags.writeable = False
    return array


def score_of(solution: Solution, q: float, n: int, kernel: Any, reason: str) -> Score:
    """The score of one order from a solution; without bounds where the kernel only approximates another."""
    if kernel is not None and kernel.approximate:
        solution = unclaimed(solution)
    return to_score(solution, Plan("rows", "float64", reason), q, n, kernel)
