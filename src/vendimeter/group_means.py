"""Means of group scores, with standard errors and paired differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from vendimeter.errors import printable, unknown
from vendimeter.results import data_frame, html_table, none_if_nan

__all__ = ["Difference", "GroupMeans", "Mean", "means_of"]


class Mean(NamedTuple):
    """A mean over units."""

    label: Any
    mean: float
    standard_error: float
    units: int


class Difference(NamedTuple):
    """The mean of first − second over the units that both have."""

    first: Any
    second: Any
    mean: float
    standard_error: float
    units: int


@dataclass(frozen=True)
class GroupMeans:
    """Means of scores with their standard errors, and paired differences; ``means[label]`` finds one.

    The standard error is that of the mean over units (the sample standard deviation over √units); it is NaN for a
    single unit.

    Attributes
    ----------
    means : list of Mean
        label, mean, standard_error, units.
    differences : list of Difference
        first, second, mean, standard_error, units; for every pair that shares a unit.
    left_out : int
        How many groups were empty.
    """

    means: list[Mean]
    differences: list[Difference]
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.means)

    def __iter__(self) -> Iterator[Mean]:
        return iter(self.means)

    def __getitem__(self, label: Any) -> Any:
        for mean in self.means:
            if mean.label == label:
                return mean
        raise unknown("mean", label, [mean.label for mean in self.means])

    def difference(self, first: Any, second: Any) -> Difference:
        """The mean of first − second over the units that both have."""
        for pair in self.differences:
            if (pair.first, pair.second) == (first, second):
                return pair
            if (pair.second, pair.first) == (first, second):
                return Difference(first, second, -pair.mean, pair.standard_error, pair.units)
        known = [f"{pair.first} − {pair.second}" for pair in self.differences]
        raise unknown("difference", f"{first} − {second}", known)

    def __repr__(self) -> str:
        means = [
            f"{printable(m.label, 40)}: {m.mean:.4g} ± {m.standard_error:.2g} ({m.units})" for m in self.means
        ]
        pairs = [
            f"{printable(d.first, 40)} − {printable(d.second, 40)}: {d.mean:.4g} ± {d.standard_error:.2g} "
            f"({d.units} pairs)"
            for d in self.differences
        ]
        left = [f"{self.left_out} empty groups left out"] if self.left_out else []
        return f"GroupMeans({'; '.join(_some(means) + _some(pairs) + left)})"

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [
            (m.label, f"{m.mean:.5g}", f"{m.standard_error:.2g}", m.units) for m in self.means
        ]
        rows += [
            (f"{d.first} − {d.second}", f"{d.mean:.5g}", f"{d.standard_error:.2g}", d.units)
            for d in self.differences
        ]
        if self.left_out:
            rows.append((f"{self.left_out} empty groups left out", "", "", ""))
        return html_table(rows, ("", "mean", "standard error", "units"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (a missing number is None)."""

        def plain(row: Any) -> dict[str, Any]:
            return {k: none_if_nan(v) if isinstance(v, float) else v for k, v in row._asdict().items()}

        return {
            "means": [plain(mean) for mean in self.means],
            "differences": [plain(pair) for pair in self.differences],
            "left_out": self.left_out,
        }

    def to_frame(self, *, differences: bool = False) -> Any:
        """A pandas frame with one row a mean, or one row a paired difference."""
        rows, fields = (self.differences, Difference._fields) if differences else (self.means, Mean._fields)
        return data_frame({name: [getattr(row, name) for row in rows] for name in fields})


def _some(shown: list[str]) -> list[str]:
    """At most six, and how many more there are."""
    more = [f"… {len(shown) - 6} more"] if len(shown) > 6 else []
    return [", ".join(shown[:6] + more)] if shown else []


def means_of(
    scores: np.ndarray, labels: list[Hashable], units: list[Hashable], *, paired: bool
) -> GroupMeans:
    """Means of scores by label over units, one of each a score; scores that are NaN are left out and counted."""
    table: dict[Hashable, dict[Hashable, list[float]]] = {}
    left_out = 0
    for label, unit, value in zip(labels, units, scores.tolist(), strict=True):
        cells = table.setdefault(label, {})
        if math.isnan(value):
            left_out += 1
        else:
            cells.setdefault(unit, []).append(value)
    averaged = {
        label: {unit: float(np.mean(v)) for unit, v in cells.items()} for label, cells in table.items()
    }
    means = [Mean(label, *_mean(list(cells.values()))) for label, cells in averaged.items()]
    differences = []
    for first, second in combinations(averaged, 2) if paired else ():
        shared = [unit for unit in averaged[first] if unit in averaged[second]]
        if shared:
            gaps = [averaged[first][unit] - averaged[second][unit] for unit in shared]
            differences.append(Difference(first, second, *_mean(gaps)))
    return GroupMeans(means, differences, left_out)


def _mean(values: list[float]) -> tuple[float, float, int]:
    if not values:
        return math.nan, math.nan, 0
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return float(np.mean(values)), error, len(values)
