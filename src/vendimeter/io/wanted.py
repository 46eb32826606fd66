"""Which columns of files are wanted, and as what: parts of files → a Collection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vendimeter.data.arrays import to_list as plain_list
from vendimeter.data.collection import Collection
from vendimeter.errors import InputError, brief, printable, unknown, warn
from vendimeter.io.base import Broken, Part, Reader
from vendimeter.io.columns import FORMS, as_numbers, first_text, from_cells, joined, lists_of_texts, stacked
from vendimeter.io.kinds import KINDS, NOT_NUMBERS, Misfit, guess
from vendimeter.io.sound import weight_of
from vendimeter.io.text_forms import EXPECTED, form_of, stands_for

__all__ = ["Wanted"]

OF_NUMBERS = {
    "numbers": "numbers",
    "vectors": "vectors",
    "probabilities": "vectors",
}  # what texts of a kind stand for


def _several(given: Any, role: str) -> list[str]:
    """The names of several columns for one role, where that is what was given."""
    if given is None or isinstance(given, str):
        return []
    if not isinstance(given, list | tuple) or not given or not all(isinstance(name, str) for name in given):
        raise InputError(f"{role}={brief(given)}; expected the name of a column, or a list of names.")
    if len(set(given)) < len(given):
        raise InputError(f"{role}={brief(given)} names a column twice; expected different ones.")
    return list(given)


def _name(given: Any, role: str) -> str | None:
    if given is not None and not isinstance(given, str):
        raise InputError(f"{role}={brief(given)}; expected the name of a column.")
    return given


class Wanted:
    """Which columns are wanted and as what; turns parts of files into a collection."""

    def __init__(
        self,
        samples: str | Sequence[str] | None,
        label: str | Sequence[str] | None,
        weight: str | None,
        id: str | None,
        columns: Sequence[str] | None,
        kind: str | None,
        skip_broken: bool,
    ):
        if isinstance(columns, str):
            raise InputError(
                f"columns={columns!r} is a text; expected a list of names, such as [{columns!r}]."
            )
        if kind is not None and kind not in (*KINDS, "guess"):
            raise unknown("kind", kind, [*KINDS, "guess"])
        self.numbers = _several(samples, "samples")  # columns of numbers that make up vectors
        self.levels = _several(label, "label")  # columns that make up a label
        roles = {
            "samples": None if self.numbers else _name(samples, "samples"),
            "label": None if self.levels else _name(label, "label"),
            "weight": _name(weight, "weight"),
            "id": _name(id, "id"),
        }
        for role in ("label", "weight"):
            if (
                samples is not None
                and roles[role] in [*self.numbers, roles["samples"]]
                and roles[role] is not None
            ):
                raise InputError(f"samples and {role} both name {roles[role]!r}; expected two columns.")
        self.roles, self.extra = roles, [*self.numbers, *self.levels, *(columns or ())]
        self.named = [name for name in [*roles.values(), *self.extra] if name is not None]  # by the caller
        self.kind = kind
        self.asked = kind in ("guess", *OF_NUMBERS)  # whether it was asked what texts stand for
        self.misfit: Misfit | None = None  # what is wrong with a text, where the kind was guessed
        self.broken = Broken(skip=bool(skip_broken))
        self.told_by: str | None = None  # what told the kind, where it was guessed
        self.table = False
        self.cells = False
        self.nested: bool | None = (
            None  # whether each sample is a list of texts; None as long as nobody knows
        )
        self.cell_forms: dict[str, str] = {}
        self.numeric: dict[str, bool] = {}  # whether texts stand for numbers, as the first batch has it
        self.alone: Reader | None = (
            None  # whose only column was taken for that of the samples, until it is looked at
        )
        self.names: list[str] = []  # of all columns that are read
        self.form: type[Reader] | None = None  # what reads the first file

    def settle(self, reader: Reader) -> None:
        """What is read, by the first file: the roles that the format itself gives, and the names that are asked for."""
        names = reader.names()
        self.form, self.cells = type(reader), reader.cells or (reader.untyped and self.asked)
        fixed = {"samples": reader.samples, "label": reader.label, "id": reader.id}
        for role, name in fixed.items():
            if (role == "samples" and self.numbers) or (role == "label" and self.levels):
                continue
            if self.roles[role] is None and name in names and name not in self.roles.values():
                self.roles[role] = name
        said = reader.kind if self.roles["samples"] == reader.samples else None
        self.kind = said or self.kind if self.kind in (None, "guess") else self.kind
        named = [name for name in [*self.roles.values(), *self.extra] if name is not None]
        usual = self._usual(reader, named)
        if self.roles["samples"] is None and not self.numbers and set(self.extra) - set(self.levels):
            self.table = True  # of the columns that are asked for
        elif self.roles["samples"] is None and not self.numbers:
            if (nameless := reader.no_names()) is not None:
                raise nameless
            taken = set(named)
            others = [name for name in usual if name not in taken]
            if len(others) == 1:
                self.roles["samples"] = others[0]
                self.alone = reader if reader.cells else None
                named.insert(0, others[0])
            else:
                self.table = True
                named = [*usual, *named]
        self.names = list(dict.fromkeys(named))
        self.check(reader)

    def _usual(self, reader: Reader, named: Sequence[str]) -> list[str]:
        """The columns to take where none is named; of arrays of different lengths, those that go with named ones."""
        lengths, usual = reader.lengths(), reader.usual()
        if lengths is None or len(set(lengths.values())) < 2:
            return usual
        found = {lengths[name]: name for name in named if name in lengths}
        if not found:
            listed = ", ".join(
                f"{printable(name, 40)} ({count:,})" for name, count in list(lengths.items())[:12]
            )
            raise InputError(
                f"{reader.file} holds arrays of different lengths: {listed}; expected one to be named as that of the "
                "samples, with samples= (--column)."
            )
        if len(found) > 1:
            (one, first), (other, second) = list(found.items())[:2]
            raise InputError(
                f"{brief(first)} in {reader.file} has {one:,} rows and {brief(second)} has {other:,}; expected one "
                "length."
            )
        return [name for name in usual if lengths[name] in found]

    def look(self, part: Part) -> None:
        """Settle on a kind, where it is to be guessed, by the first samples."""
        only, name = self.alone, self.roles["samples"]
        self.alone = None
        if only is not None and name is not None and (only.is_doubtful() or name in part.columns[name]):
            again = "" if only.is_doubtful() else " and comes again as a sample"
            warn(
                f"the first line of {only.file}, {brief(name)}, was taken for the name of its only column{again}; "
                f"is it a sample, too? {only.way_out([name])} If it is none, name the column with samples= (--column).",
                UserWarning,
            )
        if self.kind == "guess" and len(next(iter(part.columns.values()), ())):
            self.kind = None
            self.kind, self.told_by, self.misfit = guess(self.collection([part], ""), self.forms)
            if only is not None:
                self.told_by += f", in the column {brief(name)}"

    def nesting(self, samples: Any) -> bool | None:
        """Whether the samples are lists of texts: the first list with anything in it decides; None before that."""
        if self.nested is None and isinstance(samples, list) and samples:
            lists = all(isinstance(item, list) for item in samples[:1])
            first = next((item for item in samples if isinstance(item, list) and item), None)
            if not lists or first is not None:
                self.nested = lists and first is not None and isinstance(first[0], str)
        return self.nested

    @property
    def forms(self) -> Sequence[str]:
        """What texts may stand for; in files with types for vectors if that was asked, for numbers if it was said."""
        if self.cells or self.kind == "numbers":
            return FORMS
        return FORMS[1:] if self.asked and not self.table else ()

    @property
    def takes_numbers(self) -> bool:
        """Whether texts may stand for numbers."""
        return bool(self.forms) and self.kind not in NOT_NUMBERS

    def form_of_cells(self, name: str, cells: Any) -> str:
        """What cells stand for, by the kind that was said or by the first of them; broken ones can be told by that."""
        if not isinstance(cells, list) or not all(isinstance(cell, str) for cell in cells):
            return "texts"  # they are something else already
        if name == self.roles["samples"] and self.kind in OF_NUMBERS:
            return OF_NUMBERS[self.kind]
        return self.cell_forms.setdefault(name, form_of(cells, self.forms))

    def rows_of(self, columns: dict[str, Any]) -> list[str]:
        """The columns of a table that all hold numbers, so that it is one of vectors; [] of any other."""
        roles = {self.roles[role] for role in ("label", "weight", "id")}
        names = [name for name in self.names if name not in {*roles, *self.levels}] if self.table else []
        return names if all(self.form_of_cells(name, columns[name]) == "numbers" for name in names) else []

    def check(self, reader: Reader) -> None:
        """Every file is of one form and has the columns that are read."""
        if self.form is not type(reader):
            raise InputError(
                f"{reader.file} is of another form than the files before it; expected files of one form. Read them "
                "apart."
            )
        # Lists of tags and tokens are of any length.
        reader.strict = "" if self.kind in ("tags", "tokens") else self.roles["samples"]
        names = set(reader.names())  # a table of genes has tens of thousands
        for name in self.names:
            if names and name not in names:
                raise reader.no_column(name)

    def collection(self, parts: Sequence[Part], source: str) -> Collection:
        """The parts, one after another."""
        parts = [part for part in parts if part.columns and len(next(iter(part.columns.values())))]
        sizes = [len(next(iter(part.columns.values()))) for part in parts]
        ends = np.cumsum([0, *sizes])

        places = [part.place for part in parts]  # not the parts, whose columns would stay in memory twice

        def place(position: int) -> str:
            at = int(np.searchsorted(ends, position, side="right")) - 1
            return places[at](position - int(ends[at]))

        if not parts:
            return Collection([], kind=self.kind, skipped=self.broken, source=source)
        columns = {name: joined([part.columns[name] for part in parts], name, place) for name in self.names}
        label, weight, name = (self.roles[role] for role in ("label", "weight", "id"))
        if weight is not None:
            given = columns[weight]
            plain = given.tolist() if isinstance(given, np.ndarray) else given
            columns[weight] = np.array([weight_of(value, weight)[0] for value in plain])
        labels, weights, ids = (None if role is None else columns[role] for role in (label, weight, name))
        if self.levels:
            labels = list(zip(*(plain_list(columns[level]) for level in self.levels), strict=True))
        rest = {key: value for key, value in columns.items() if key not in (label, weight, name)}
        if self.numbers:
            held: Any = stacked(
                {name: self._samples(columns[name], name, place) for name in self.numbers}, place
            )
        elif self.table:
            held = self._table(rest, place)
        else:
            chosen = self.roles["samples"]
            assert chosen is not None
            held = columns[chosen] = self._samples(columns[chosen], chosen, place)
        return Collection(
            held,
            labels=labels,
            weights=weights,
            ids=ids,
            columns=columns | held if self.table else columns,
            kind=self.kind,
            told_by=self.told_by,
            skipped=self.broken,
            source=source,
            place=place,
            nested=None if self.table else self.nesting(held),
        )

    def _table(self, columns: dict[str, Any], place: Callable[[int], str]) -> dict[str, Any]:
        """The columns of a table; a gap among numbers matters only where all columns are numbers, as vectors are."""
        found: dict[str, Any] = {}
        gaps: dict[str, InputError] = {}
        for name, column in columns.items():
            try:
                found[name] = self._samples(column, name, place)
            except InputError as error:
                found[name], gaps[name] = column, error
        if gaps and all(as_numbers(column) is not None for name, column in found.items() if name not in gaps):
            raise next(iter(gaps.values()))
        odd = next((name for name, column in found.items() if as_numbers(column) is None), None)
        if odd is not None and self.asked and odd in self.rows_of(columns):
            advice = "or name the column that holds the samples, with samples= (--column)"
            raise self._no_number(columns[odd], odd, place, "numbers", advice)
        return found

    def _no_number(
        self, cells: Any, name: str, place: Callable[[int], str], form: str, advice: str
    ) -> InputError:
        """The error for the first cell that does not stand for a number, or a vector, in a column of them."""
        at = next((i for i, cell in enumerate(cells) if not stands_for(form, cell)), 0)
        return InputError(
            f"{place(at)} holds {brief(cells[at])} in the column {brief(name)} of {form}; expected {EXPECTED[form]}. "
            f"Mend it, leave broken records out and count them with skip_broken=True (--skip-broken), {advice}.",
            option="skip_broken",
        )

    def _samples(self, column: Any, name: str, place: Callable[[int], str]) -> Any:
        """Texts of a .csv file as the numbers they stand for; every batch as the first."""
        if isinstance(column, np.ndarray) and column.dtype.kind == "U":
            column = column.tolist()
        if self.cells and self.kind == "tags":
            return lists_of_texts(column)
        if not (
            self.takes_numbers and isinstance(column, list) and all(isinstance(cell, str) for cell in column)
        ):
            return column
        found = from_cells(column, name, place, self.forms)
        numeric = isinstance(found, np.ndarray)
        said = OF_NUMBERS.get(self.kind or "")
        if said is not None and not numeric and name in (self.roles["samples"], *self.numbers):
            advice = "or say what all of them are with kind= (--kind), such as texts or categories"
            raise self._no_number(column, name, place, said, advice)
        if self.numeric.setdefault(name, numeric) != numeric:
            at = 0 if numeric else first_text(column)
            raise InputError(
                f"{place(at)} holds {brief(column[at])} in the column {name!r}, which held "
                f"{'texts' if numeric else 'numbers'} before; expected one of them. Mend it, say what the samples are "
                "with kind= (--kind), such as texts or categories, or leave it out with skip_broken=True "
                "(--skip-broken).",
                option="skip_broken",
            )
        return found
