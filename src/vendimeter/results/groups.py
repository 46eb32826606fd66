"""The results of scoring groups: `GroupScores`, and `GroupMeans`, their means with standard errors.

Scores of groups are held in columns, because there may be millions of them; a `Score` is built for a group when one is
asked for. Means compare conditions, such as models, over units that they share, such as prompts: the differences of two
means are paired.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vendimeter.data.arrays import to_list, to_python
from vendimeter.errors import InputError
from vendimeter.messages import brief, unknown
from vendimeter.present.numbers import format_bounds, order_name, short_number
from vendimeter.present.plain import plain, plain_order
from vendimeter.present.tables import data_frame, html_table
from vendimeter.present.text import printable
from vendimeter.results.score import Profile, Score
from vendimeter.solvers.groups import SolvedGroups
from vendimeter.spectrum import Eigenvalues, Level

if TYPE_CHECKING:
    from vendimeter.plots import Display
__all__ = [
    "Difference",
    "GroupMeans",
    "GroupScores",
    "Mean",
    "means_of",
]


class GroupScores:
    """Scores of groups, in columns; a `Score` is built when one is asked for.

    ``groups[label]`` finds a group by label and ``groups.at(i)`` by position; iterating gives the scores in order of
    the first appearance of the labels. With several orders each group has a `Profile` in place of a `Score`.

    Attributes
    ----------
    labels : list
        The labels.
    scores : ndarray, shape (groups,) or (groups, orders)
        The scores; NaN for an empty group.
    low, high : ndarray
        Their bounds, of the same shape.
    sizes : ndarray
        Items in each group.

    Examples
    --------
    >>> import vendimeter as vm
    >>> groups = vm.score_groups({"x": ["a", "b"], "y": ["a", "a"], "z": []}, kernel="match")
    >>> groups.scores
    array([ 2.,  1., nan])
    >>> groups.at(2).level
    'none'
    >>> [round(score, 3) for score in groups]
    [2.0, 1.0, nan]
    """

    def __init__(
        self,
        labels: Sequence[Hashable],
        solved: SolvedGroups,
        kernel: Any,
        several: bool,
        left_out: int = 0,
    ):
        self.labels, self.sizes = list(labels), solved.sizes
        self.q = np.array(solved.orders) if several else solved.orders[0]
        self._solved, self._kernel, self._several, self._left_out = solved, repr(kernel), several, left_out
        for column in (solved.value, solved.low, solved.high, solved.sizes):
            column.flags.writeable = False

    def _squeeze_orders(self, column: np.ndarray) -> np.ndarray:
        """A column without its axis of orders where a single order was asked for."""
        return column if self._several else column[:, 0]

    @property
    def scores(self) -> np.ndarray:
        """The scores, one a group (and an order)."""
        return self._squeeze_orders(self._solved.value)

    @property
    def low(self) -> np.ndarray:
        """Lower bounds."""
        return self._squeeze_orders(self._solved.low)

    @property
    def high(self) -> np.ndarray:
        """Upper bounds."""
        return self._squeeze_orders(self._solved.high)

    @property
    def levels(self) -> list[Level]:
        """What may be claimed of the bounds of each group."""
        return list(self._solved.level)

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {label: i for i, label in enumerate(self.labels)}

    @cached_property
    def _spectrum_of_group(self) -> dict[int, tuple[int, int]]:
        return {
            g: (b, i)
            for b, (groups, _) in enumerate(self._solved.spectra)
            for i, g in enumerate(groups.tolist())
        }

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, label: Any) -> Any:
        try:
            position = self._positions.get(to_python(label))
        except TypeError:  # a list, say
            position = None
        if position is None:
            raise unknown("group", label, self.labels)
        return self.at(position)

    def __contains__(self, label: object) -> bool:
        return label in self._positions

    def __iter__(self) -> Iterator[Any]:
        return (self.at(i) for i in range(len(self)))

    def at(self, position: int) -> Any:
        """The Score (or Profile, with several orders) of the group at this position."""
        try:
            i = range(len(self))[position]
        except (IndexError, TypeError):
            raise IndexError(f"there is no group at {position!r}; there are {len(self)} groups.") from None
        solved = self._solved
        if solved.method[i] == "empty":
            scores = [Score.empty(q) for q in self._solved.orders]
        else:
            batch, row = self._spectrum_of_group[i]
            spectrum = Eigenvalues(
                solved.spectra[batch][1][row],
                float(solved.error[i]),
                solved.level[i],
                solved.confidence[i],
            )
            notes: dict[str, Any] = {"kernel": self._kernel, "group": self.labels[i]}
            if self._left_out:
                notes["left_out"] = self._left_out
            if min(self._solved.orders) < 1:
                notes["rank_threshold"] = spectrum.rank_threshold
            if not math.isnan(solved.removed[i]):
                notes["removed_mass"] = float(solved.removed[i])
            scores = [
                Score(
                    solved.value[i, k],
                    bounds=(float(solved.low[i, k]), float(solved.high[i, k])),
                    level=solved.level[i],
                    q=q,
                    n=int(self.sizes[i]),
                    method=solved.method[i],
                    spectrum=spectrum,
                    diagnostics=notes,
                )
                for k, q in enumerate(self._solved.orders)
            ]
        return Profile(scores) if self._several else scores[0]

    def __repr__(self) -> str:
        order = ", ".join(order_name(q) for q in self._solved.orders)
        first = self._solved.value[:, 0]
        finite = first[np.isfinite(first)]
        if len(self) <= 6 or not len(finite):
            pairs = zip(self.labels[:6], first.tolist(), strict=False)
            shown = ", ".join(f"{printable(label, 40)}: {short_number(value)}" for label, value in pairs)
        else:
            shown = f"{short_number(finite.min())} to {short_number(finite.max())}, mean {short_number(finite.mean())}"
        several = f" at q={order_name(self._solved.orders[0])}" if self._several else ""
        groups = "group" if len(self) == 1 else "groups"
        return f"GroupScores({len(self)} {groups}, q={order}; {shown}{several})"

    def _long(self) -> dict[str, list[Any]]:
        """The columns of a table in long form: one row a group and order."""
        solved = self._solved
        k = len(self._solved.orders)
        projected = not np.isnan(solved.removed).all()
        return {
            "group": [label for label in self.labels for _ in range(k)],
            "n": np.repeat(self.sizes, k).tolist(),
            "q": self._solved.orders * len(self),
            "score": solved.value.ravel().tolist(),
            "low": solved.low.ravel().tolist(),
            "high": solved.high.ravel().tolist(),
            "level": [level for level in solved.level for _ in range(k)],
            **({"removed_mass": np.repeat(solved.removed, k).tolist()} if projected else {}),
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, one entry a group and order, ready for JSON (a missing number is None)."""
        columns = self._long()
        columns["q"] = [plain_order(q) for q in columns["q"]]
        columns = plain(columns)
        names = list(columns)
        return {
            "kernel": self._kernel,
            **({"left_out": self._left_out} if self._left_out else {}),
            "groups": [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        }

    def to_frame(self) -> Any:
        """A pandas frame with one row a group and order."""
        return data_frame(self._long())

    def _repr_html_(self) -> str:
        columns = self._long()
        rows = [
            (label, n, order_name(q), short_number(value), format_bounds((low, high), 9))
            for label, n, q, value, low, high, *_ in zip(*columns.values(), strict=True)
        ]
        more = [(f"… {len(rows) - 50} more", "", "", "", "")] if len(rows) > 50 else []
        return html_table(rows[:50] + more, ("group", "n", "q", "score", "bounds"))

    def plot(self, ax: Any = None) -> Display:
        """Draw the groups ranked by their scores, or the distribution of many; see `vendimeter.plots.groups`."""
        from vendimeter.plots import groups

        return groups(self, ax=ax)

    def mean(self, by: Any = None, unit: Any = None) -> GroupMeans:
        """Means over groups, with standard errors and, where units are shared, paired differences.

        Parameters
        ----------
        by : list, mapping or callable, optional
            What to average within, such as the model behind each group: one entry a group, a mapping from the
            group's label, or a function of it. Without it there is one mean over all groups.
        unit : list, mapping or callable, optional
            What is shared between them, such as the prompt. Two means are then compared on the units they share.
            Several groups of one unit are averaged first.

        Returns
        -------
        GroupMeans
            Empty groups are left out and counted.

        Examples
        --------
        >>> import vendimeter as vm
        >>> answers = {("A", 1): ["x", "y"], ("B", 1): ["x", "x"], ("A", 2): ["x", "y"], ("B", 2): ["u", "v"]}
        >>> groups = vm.score_groups(answers, kernel="match")
        >>> groups.mean(by=lambda label: label[0], unit=lambda label: label[1])
        GroupMeans(A: 2 ± 0 (2), B: 1.5 ± 0.5 (2); A − B: 0.5 ± 0.5 (2 pairs))
        """
        if self._several:
            raise InputError(
                f"these groups have {len(self._solved.orders)} orders; a mean needs one: score them with a single q."
            )
        return means_of(
            self.scores,
            self._names_by_group(by, "by"),
            self._names_by_group(unit, "unit"),
            paired=unit is not None,
        )

    def _names_by_group(self, naming: Any, what: str) -> list[Hashable]:
        """One name a group, of a list of them, a mapping from labels, or a function of the label."""
        if naming is None:
            return list(range(len(self))) if what == "unit" else ["all"] * len(self)
        if callable(naming):
            return _hashable([naming(label) for label in self.labels], what)
        if isinstance(naming, Mapping):
            missing = [label for label in self.labels if label not in naming]
            if missing:
                raise InputError(
                    f"{what} has no entry for group {missing[0]!r}; expected one for each of {len(self)} "
                    "groups."
                )
            return _hashable([naming[label] for label in self.labels], what)
        if isinstance(naming, str | bytes) or not hasattr(naming, "__len__"):
            raise InputError(
                f"{what}={brief(naming)}; expected one entry a group, a mapping from the group's label, or a "
                "function of it."
            )
        naming = _hashable(to_list(naming), what)
        if len(naming) != len(self):
            raise InputError(
                f"{what} has {len(naming)} entries and there are {len(self)} groups; expected one a group."
            )
        return naming


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
        left_out = [f"{self.left_out} empty groups left out"] if self.left_out else []
        return f"GroupMeans({'; '.join(_first_six(means) + _first_six(pairs) + left_out)})"

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
        return {
            "means": [plain(mean._asdict()) for mean in self.means],
            "differences": [plain(pair._asdict()) for pair in self.differences],
            "left_out": self.left_out,
        }

    def to_frame(self, *, differences: bool = False) -> Any:
        """A pandas frame with one row a mean, or one row a paired difference."""
        rows, fields = (self.differences, Difference._fields) if differences else (self.means, Mean._fields)
        return data_frame({name: [getattr(row, name) for row in rows] for name in fields})


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
    means = [Mean(label, *_mean_and_error(list(cells.values()))) for label, cells in averaged.items()]
    differences = []
    for first, second in combinations(averaged, 2) if paired else ():
        shared = [unit for unit in averaged[first] if unit in averaged[second]]
        if shared:
            gaps = [averaged[first][unit] - averaged[second][unit] for unit in shared]
            differences.append(Difference(first, second, *_mean_and_error(gaps)))
    return GroupMeans(means, differences, left_out)


def _mean_and_error(values: list[float]) -> tuple[float, float, int]:
    """The mean of values, its standard error, and their number."""
    if not values:
        return math.nan, math.nan, 0
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return float(np.mean(values)), error, len(values)


def _first_six(texts: list[str]) -> list[str]:
    """The first six texts on one line, with the number of those that are left out."""
    more = [f"… {len(texts) - 6} more"] if len(texts) > 6 else []
    return [", ".join(texts[:6] + more)] if texts else []


def _hashable(names: list[Any], what: str) -> list[Hashable]:
    """Names that can be told apart, or an error that shows the one that cannot."""
    for i, name in enumerate(names):
        try:
            hash(name)
        except TypeError:
            raise InputError(
                f"{what} is {brief(name)} for group {i}; expected a hashable name such as a text."
            ) from None
    return names
