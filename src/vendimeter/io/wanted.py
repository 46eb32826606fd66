"""Which columns of files are wanted, and as what: parts of files → a Collection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vendimeter._messages import brief, unknown
from vendimeter.errors import InputError
from vendimeter.io.base import Broken, Part, Reader
from vendimeter.io.collection import Collection
from vendimeter.io.columns import as_numbers, from_cells, joined
from vendimeter.io.kinds import KINDS, guess

__all__ = ["Wanted"]


class Wanted:
    """Which columns are wanted and as what; turns parts of files into a collection."""

    def __init__(
        self,
        samples: str | None,
        label: str | None,
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
        roles = {"samples": samples, "label": label, "weight": weight, "id": id}
        for role, name in roles.items():
            if name is not None and not isinstance(name, str):
                raise InputError(f"{role}={brief(name)}; expected the name of a column.")
        if samples is not None and samples in (label, weight):
            raise InputError(
                f"samples and {'label' if samples == label else 'weight'} both name {samples!r}; expected two columns."
            )
        self.roles, self.extra = roles, list(columns or ())
        self.kind = kind
        self.broken = Broken(skip=bool(skip_broken))
        self.told_by: str | None = None  # what told the kind, where it was guessed
        self.table = False
        self.cells = False
        self.numeric: dict[str, bool] = {}  # whether texts stand for numbers, as the first batch has it
        self.names: list[str] = []  # of all columns that are read
        self.form: type[Reader] | None = None  # what reads the first file

    def settle(self, reader: Reader) -> None:
        """What is read, by the first file: the roles that the format itself gives, and the names that are asked for."""
        names = reader.names()
        self.form, self.cells = type(reader), reader.cells
        fixed = {"samples": reader.samples, "label": reader.label, "id": reader.id}
        for role, name in fixed.items():
            if self.roles[role] is None and name in names and name not in self.roles.values():
                self.roles[role] = name
        said = reader.kind if self.roles["samples"] == reader.samples else None
        self.kind = said or self.kind if self.kind in (None, "guess") else self.kind
        named = [name for name in [*self.roles.values(), *self.extra] if name is not None]
        if self.roles["samples"] is None:
            others = [name for name in names if name not in named]
            if len(others) == 1:
                self.roles["samples"] = others[0]
                named.insert(0, others[0])
            else:
                self.table = True
                named = [*names, *named]
        self.names = list(dict.fromkeys(named))
        self.check(reader)

    def look(self, part: Part) -> None:
        """Settle on a kind, where it is to be guessed, by the first samples."""
        if self.kind == "guess":
            self.kind = None
            self.kind, self.told_by = guess(self.collection([part], ""))

    def check(self, reader: Reader) -> None:
        """Every file is of one form and has the columns that are read."""
        if self.form is not type(reader):
            raise InputError(
                f"{reader.file} is of another form than the files before it; expected files of one form. Read them "
                "apart."
            )
        names = reader.names()
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
            columns[weight] = as_numbers(columns[weight], weight, place)
        labels, weights, ids = (None if role is None else columns[role] for role in (label, weight, name))
        rest = {key: value for key, value in columns.items() if key not in (label, weight, name)}
        if self.table:
            held: Any = {key: self._samples(value, key, place) for key, value in rest.items()}
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
        )

    def _samples(self, column: Any, name: str, place: Callable[[int], str]) -> Any:
        """Texts of a .csv file as the numbers they stand for; every batch as the first."""
        if isinstance(column, np.ndarray) and column.dtype.kind == "U":
            return column.tolist()
        if not self.cells:
            return column
        found = from_cells(column, name, place)
        numeric = isinstance(found, np.ndarray)
        if self.numeric.setdefault(name, numeric) != numeric:
            raise InputError(
                f"the column {name!r} holds {'numbers' if not numeric else 'texts'} up to {place(0)} and "
                f"{'numbers' if numeric else 'texts'} from there on; expected one of them. Read the file whole with "
                "vendimeter.read, or mend it."
            )
        return found
