"""Files → a Collection, whole or in batches: read and read_batches."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from vendimeter.data.arrays import to_list as plain_list
from vendimeter.data.collection import KINDS, Broken, Collection, joined
from vendimeter.errors import EmptyError, InputError, brief, printable, unknown, warn
from vendimeter.io.base import Part, Reader
from vendimeter.io.columns import (
    FORMS,
    as_numbers,
    first_text,
    from_cells,
    lists_of_texts,
    sound,
    stacked,
    weight_of,
)
from vendimeter.io.kinds import NOT_NUMBERS, Misfit, guess
from vendimeter.io.pictures import ENDINGS
from vendimeter.io.sources import MAX_RECORD, File, files_of, sniff
from vendimeter.io.text_forms import EXPECTED, form_of, stands_for
from vendimeter.options import byte_count, whole_number

__all__ = ["Wanted", "read", "read_batches"]


# -------------------------------------------------------------------------------------------------------------- wanted

# Which columns of files are wanted, and as what: parts of files → a Collection.

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


# ------------------------------------------------------------------------------------------------------------- reading

BATCH = 4096  # records a batch, unless the user says otherwise

_FORMS = {
    "text:Lines": (".txt",),
    "text:Smiles": (".smi", ".smiles"),
    "text:Fasta": (".fasta", ".fa", ".faa", ".fna", ".ffn", ".fas"),
    "json:Json": (".jsonl", ".ndjson", ".json"),
    "text:Delimited": (".csv", ".tsv"),
    "arrays:Npy": (".npy",),
    "arrays:Npz": (".npz",),
    "arrays:Safetensors": (".safetensors",),
    "arrow:Parquet": (".parquet", ".pq"),
    "arrow:Arrow": (".arrow", ".feather", ".ipc"),
    "structures:Sdf": (".sdf", ".sd"),
}
_READERS = {ending: reader for reader, endings in _FORMS.items() for ending in endings}
_PICTURE = "pictures:PictureFile"
_DATASET = ("dataset_info.json", "state.json", "dataset_dict.json")  # what a folder of Hugging Face's has


def read(
    path: Any,
    *,
    samples: str | Sequence[str] | None = None,
    label: str | Sequence[str] | None = None,
    weight: str | None = None,
    id: str | None = None,
    columns: Sequence[str] | None = None,
    kind: str | None = None,
    format: str | None = None,
    limit: int | None = None,
    skip_broken: bool = False,
    max_record: int | str = MAX_RECORD,
) -> Collection:
    r"""Samples from a file, a folder, or several of them.

    .npy (mapped into memory, not loaded), .npz, .safetensors, .csv, .tsv, .jsonl, .json, .parquet, .arrow, .txt
    (a sample a line), .smi, .sdf, .fasta; text files may be gzipped. A folder of pictures, with labels from its
    subfolders; a Hugging Face dataset on disk.

    Parameters
    ----------
    path : str, path or list of them
        A file, a folder, a pattern such as ``"shards/*.parquet"`` (in order of their names), a list of these, or "-"
        for standard input.
    samples, label, weight, id : str, optional
        The columns with the samples, their labels, weights and names. A list of columns of numbers for `samples` makes
        vectors of them, one for `label` combinations. Formats without columns have their own: the lines of a .txt file,
        the pictures of a folder and so on. Without `samples` the collection of a file with several columns is a table,
        for kernels that name columns; and a .csv file whose first line is plainly a record, not names, is an error.
    columns : list of str, optional
        Other columns to keep; they are in ``collection["name"]``. Without `samples`, the columns of the table: a record
        that lacks a value in one that is read is broken.
    kind : str, optional
        What the samples are: "vectors", "texts", "images", "molecules", "sequences", "probabilities", "tags",
        "tokens", "categories"; or "guess", to have it guessed from the first of them: by what most look like, and those
        that do not are broken records. Of "vectors" and "numbers", texts are read as what they stand for. With
        "molecules", texts that RDKit cannot read are broken records too, if those are skipped.
    format : str, optional
        The ending to go by, such as "jsonl", where a name has none; standard input is looked at.
    limit : int, optional
        The most samples; those after are not read.
    skip_broken : bool
        Leave out records that cannot be read, and count them in ``collection.skipped``; without it the first is an
        error that names its line or file.
    max_record : int or str
        The most that one record may have, in bytes or as a text such as "1 GiB": a line, a row with its lists, a
        sequence. A larger one is broken, and is not held. It is also what a packed file may stand for beyond 400 times
        its size, which is an error in any case.

    Returns
    -------
    Collection

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import vendimeter as vm
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "captions.csv"
    >>> _ = path.write_text("caption,set\na dog,x\na cat,x\na cat,y\n")
    >>> captions = vm.read(path, samples="caption", label="set")
    >>> vm.score_groups(captions, "ngram")["x"].n
    2
    >>> folder.cleanup()
    """
    wanted = Wanted(samples, label, weight, id, columns, kind, skip_broken)
    readers = _readers(path, format, wanted.broken, max_record)
    _refuse_columns(readers, wanted, format)
    whole = _whole(readers, wanted, limit)
    if whole is not None:
        return whole
    parts = list(_parts(readers, wanted, BATCH, limit))
    found = wanted.collection(parts, _shown(readers))
    if not len(found):
        raise _nothing(readers, wanted.broken)
    return found


def read_batches(
    path: Any,
    *,
    size: int = BATCH,
    samples: str | Sequence[str] | None = None,
    label: str | Sequence[str] | None = None,
    weight: str | None = None,
    id: str | None = None,
    columns: Sequence[str] | None = None,
    kind: str | None = None,
    format: str | None = None,
    limit: int | None = None,
    skip_broken: bool = False,
    max_record: int | str = MAX_RECORD,
) -> Iterator[Collection]:
    """The same as `read`, batch by batch, so that memory holds one batch; for accumulators and your own loops.

    Parameters
    ----------
    size : int
        The most samples a batch.
    path, samples, label, weight, id, columns, kind, format, limit, skip_broken, max_record
        As for `read`. The batches share one count of broken records.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "vectors.npy"
    >>> np.save(path, np.eye(100, dtype=np.float16))
    >>> total = vm.Accumulator()
    >>> for batch in vm.read_batches(path, size=32):
    ...     total.update(batch)
    >>> round(total.score(), 6)
    100.0
    >>> folder.cleanup()
    """
    wanted = Wanted(samples, label, weight, id, columns, kind, skip_broken)
    size = whole_number(size, "size")
    readers = _readers(path, format, wanted.broken, max_record)
    _refuse_columns(readers, wanted, format)
    return _batches(readers, wanted, size, limit)


def _batches(readers: list[Reader], wanted: Wanted, size: int, limit: int | None) -> Iterator[Collection]:
    empty = True
    for part in _parts(readers, wanted, size, limit):
        batch = wanted.collection([part], _shown(readers))
        if len(batch):
            empty = False
            yield batch
    if empty:
        raise _nothing(readers, wanted.broken)


def _nothing(readers: list[Reader], broken: Broken) -> EmptyError:
    if broken.count:
        place, reason = broken.records[0]
        return EmptyError(
            f"{_shown(readers)} holds no samples: all {broken.count:,} records are broken, the first because "
            f"{place} {reason}."
        )
    return EmptyError(f"{_shown(readers)} holds no samples; expected at least one.")


def _shown(readers: list[Reader]) -> str:
    first, last = str(readers[0].file), str(readers[-1].file)
    return first if len(readers) == 1 else f"{len(readers):,} files ({first} … {last})"


# ------------------------------------------------------------------------------------------------- files → readers


def _readers(path: Any, form: str | None, broken: Broken, max_record: int | str = MAX_RECORD) -> list[Reader]:
    if form is not None and not isinstance(form, str):
        raise InputError(f"format={brief(form)}; expected the ending to go by, such as 'jsonl'.")
    files, most = files_of(path, form), byte_count(max_record, "max_record")
    for file in files:
        file.max_record = most
    if sum(file.path is None for file in files) > 1:
        raise InputError("standard input is named more than once; it can be read only once. Name it once.")
    return [_reader(file, form, broken) for file in files]


def _refuse_columns(readers: list[Reader], wanted: Wanted, form: str | None) -> None:
    """Lines of standard input have no columns: where some are named, it is a table, and nobody said of what form."""
    file = readers[0].file
    if form is None and file.path is None and file.ending == ".txt" and wanted.named:
        raise InputError(
            f"{file} was taken for lines of text, and the column {wanted.named[0]!r} is named; expected a form with "
            "columns. Say which it is with format= (--format), such as csv."
        )


def _reader(file: File, form: str | None, broken: Broken) -> Reader:
    if file.is_folder:
        folder = file.path
        assert folder is not None
        dataset = any((folder / name).exists() for name in _DATASET)
        name = "arrow:HuggingFace" if dataset else "pictures:PictureFolder"
    else:
        if not file.ending:
            file.ending = sniff(file)
        picture = file.ending in ENDINGS
        if file.ending not in _READERS and not picture:
            if form is not None:
                raise unknown("format", form, [ending.lstrip(".") for ending in _READERS])
            raise InputError(
                f"{file} is of type {file.ending!r}; expected one of {', '.join(_READERS)}, the text ones also with "
                ".gz, a picture, or a folder. Say with format= (--format) which it is if the name does not."
            )
        name = _PICTURE if picture else _READERS[file.ending]
    module, _, kind = name.partition(":")
    return getattr(importlib.import_module(f"vendimeter.io.{module}"), kind)(file, broken)


# --------------------------------------------------------------------------------------------- readers → collection


def _parts(readers: list[Reader], wanted: Wanted, size: int, limit: int | None) -> Iterator[Part]:
    """The parts of all files in order, of wanted columns and of whole records only, up to the limit."""
    most = None if limit is None else whole_number(limit, "limit")
    given = 0
    for reader in readers:
        if not reader.names():
            continue  # it is empty
        if wanted.form is None:
            wanted.settle(reader)
        else:
            wanted.check(reader)
        # No more at a time than are wanted at all: what comes after the limit is not read.
        for part in reader.parts(wanted.names, size if most is None else min(size, most)):
            if not part.columns or not len(next(iter(part.columns.values()))):
                continue
            part = sound(part, wanted)
            wanted.look(part)
            part = sound(part, wanted, None if most is None else most - given, known=True)
            given += len(next(iter(part.columns.values())))
            yield part
            if most is not None and given >= most:
                return


def _whole(readers: list[Reader], wanted: Wanted, limit: int | None) -> Collection | None:
    """A single file that can be mapped into memory, as it lies."""
    if len(readers) != 1 or limit is not None or not readers[0].names():
        return None
    wanted.settle(readers[0])
    part = readers[0].whole(wanted.names)
    if part is None:
        return None
    part = sound(part, wanted)
    wanted.look(part)
    found = wanted.collection([sound(part, wanted, known=True)], _shown(readers))
    return found if len(found) else None
