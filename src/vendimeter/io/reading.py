"""Reading files into collections: `read`, whole, and `read_batches`, one batch after another.

Each file gets a `Reader` by its ending. The first one settles which columns are read and what the samples are
(`ColumnSelection`); all of them give parts, whose broken records are left out or are an error; and parts become a
`Collection`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from vendimeter.data.arrays import to_list as plain_list
from vendimeter.data.collection import KINDS, Broken, Collection, Place, joined
from vendimeter.errors import EmptyError, InputError
from vendimeter.io.base import Part, Reader
from vendimeter.io.columns import (
    FORMS,
    as_numbers,
    first_text_position,
    parse_cells,
    parse_lists,
    parse_weight,
    stack_columns,
    usable_records,
)
from vendimeter.io.kinds import NOT_NUMBERS, Misfit, guess
from vendimeter.io.pictures import ENDINGS
from vendimeter.io.sources import MAX_RECORD, File, files_of, sniff
from vendimeter.io.text_forms import EXPECTED, form_of, stands_for
from vendimeter.messages import brief, unknown, warn
from vendimeter.options import byte_count, whole_number
from vendimeter.present.text import printable

__all__ = ["ColumnSelection", "read", "read_batches"]

# What texts stand for, by the kind of samples.
NUMERIC_FORMS = {"numbers": "numbers", "vectors": "vectors", "probabilities": "vectors"}
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
    selection = ColumnSelection(samples, label, weight, id, columns, kind, skip_broken)
    readers = _readers(path, format, selection.broken, max_record)
    _refuse_columns(readers, selection, format)
    mapped = _mapped_collection(readers, selection, limit)
    if mapped is not None:
        return mapped
    parts = list(_usable_parts(readers, selection, BATCH, limit))
    collection = selection.collection(parts, _describe_files(readers))
    if not len(collection):
        raise _no_samples_error(readers, selection.broken)
    return collection


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
    selection = ColumnSelection(samples, label, weight, id, columns, kind, skip_broken)
    size = whole_number(size, "size")
    readers = _readers(path, format, selection.broken, max_record)
    _refuse_columns(readers, selection, format)
    return _batches(readers, selection, size, limit)


def _batches(
    readers: list[Reader], selection: ColumnSelection, size: int, limit: int | None
) -> Iterator[Collection]:
    empty = True
    for part in _usable_parts(readers, selection, size, limit):
        batch = selection.collection([part], _describe_files(readers))
        if len(batch):
            empty = False
            yield batch
    if empty:
        raise _no_samples_error(readers, selection.broken)


def _usable_parts(
    readers: list[Reader], selection: ColumnSelection, size: int, limit: int | None
) -> Iterator[Part]:
    """The parts of all files in order, of the selected columns and of usable records only, up to the limit."""
    most_records = None if limit is None else whole_number(limit, "limit")
    record_count = 0
    for reader in readers:
        if not reader.names():
            continue  # it is empty
        if selection.reader_type is None:
            selection.settle_columns(reader)
        else:
            selection.check_columns(reader)
        # No more at a time than are wanted at all: what comes after the limit is not read.
        for part in reader.parts(selection.names, size if most_records is None else min(size, most_records)):
            if not part.columns or not len(next(iter(part.columns.values()))):
                continue
            part = usable_records(part, selection)
            selection.settle_kind(part)
            part = usable_records(
                part,
                selection,
                None if most_records is None else most_records - record_count,
                kind_settled=True,
            )
            record_count += len(next(iter(part.columns.values())))
            yield part
            if most_records is not None and record_count >= most_records:
                return


def _mapped_collection(
    readers: list[Reader], selection: ColumnSelection, limit: int | None
) -> Collection | None:
    """The collection of a single file that can be mapped into memory; None of any other."""
    if len(readers) != 1 or limit is not None or not readers[0].names():
        return None
    selection.settle_columns(readers[0])
    part = readers[0].mapped_part(selection.names)
    if part is None:
        return None
    part = usable_records(part, selection)
    selection.settle_kind(part)
    collection = selection.collection(
        [usable_records(part, selection, kind_settled=True)], _describe_files(readers)
    )
    return collection if len(collection) else None


def _no_samples_error(readers: list[Reader], broken: Broken) -> EmptyError:
    if broken.count:
        place, reason = broken.records[0]
        return EmptyError(
            f"{_describe_files(readers)} holds no samples: all {broken.count:,} records are broken, the first because "
            f"{place} {reason}."
        )
    return EmptyError(f"{_describe_files(readers)} holds no samples; expected at least one.")


def _describe_files(readers: list[Reader]) -> str:
    first, last = str(readers[0].file), str(readers[-1].file)
    return first if len(readers) == 1 else f"{len(readers):,} files ({first} … {last})"


def _readers(path: Any, form: str | None, broken: Broken, max_record: int | str = MAX_RECORD) -> list[Reader]:
    if form is not None and not isinstance(form, str):
        raise InputError(f"format={brief(form)}; expected the ending to go by, such as 'jsonl'.")
    files, record_limit = files_of(path, form), byte_count(max_record, "max_record")
    for file in files:
        file.max_record = record_limit
    if sum(file.path is None for file in files) > 1:
        raise InputError("standard input is named more than once; it can be read only once. Name it once.")
    return [_reader(file, form, broken) for file in files]


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


def _refuse_columns(readers: list[Reader], selection: ColumnSelection, form: str | None) -> None:
    """Lines of standard input have no columns: where some are named, it is a table, and nobody said of what form."""
    file = readers[0].file
    if form is None and file.path is None and file.ending == ".txt" and selection.named_columns:
        raise InputError(
            f"{file} was taken for lines of text, and the column {selection.named_columns[0]!r} is "
            "named; expected a form "
            "with columns. Say which it is with format= (--format), such as csv."
        )


class ColumnSelection:
    """The columns to read and their roles, settled by the first file; turns parts of files into a collection.

    Attributes
    ----------
    roles : dict
        The columns of "samples", "label", "weight" and "id", None where there is none.
    vector_columns, label_columns : list of str
        Several columns of numbers that make up vectors, and several that make up a label.
    extra_columns : list of str
        Columns to read beside those of the roles.
    named_columns : list of str
        All columns that the caller named.
    names : list of str
        All columns that are read.
    interprets_texts : bool
        Whether the caller asked for what texts stand for.
    kind, told_by, misfit
        The kind of the samples, and where it was guessed, the reason and what is wrong with a text of another kind.
    broken : Broken
        The collector of broken records.
    table : bool
        Whether the samples are a table.
    cells : bool
        Whether texts may stand for numbers, as in files without types.
    nested : bool or None
        Whether each sample is a list of texts; None before the first list with anything in it.
    cell_forms : dict
        What the texts of a column stand for.
    numeric : dict
        Whether the texts of a column stand for numbers, as the first batch has it.
    lone_reader : Reader or None
        The reader whose only column was taken for that of the samples, until its name is compared with them.
    reader_type : type or None
        The type of the first file's reader.
    """

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
        self.vector_columns = _check_names(samples, "samples")
        self.label_columns = _check_names(label, "label")
        roles = {
            "samples": None if self.vector_columns else _check_name(samples, "samples"),
            "label": None if self.label_columns else _check_name(label, "label"),
            "weight": _check_name(weight, "weight"),
            "id": _check_name(id, "id"),
        }
        for role in ("label", "weight"):
            sample_columns = [*self.vector_columns, roles["samples"]]
            if samples is not None and roles[role] in sample_columns and roles[role] is not None:
                raise InputError(f"samples and {role} both name {roles[role]!r}; expected two columns.")
        self.roles, self.extra_columns = roles, [*self.vector_columns, *self.label_columns, *(columns or ())]
        self.named_columns = [name for name in [*roles.values(), *self.extra_columns] if name is not None]
        self.kind = kind
        self.interprets_texts = kind in ("guess", *NUMERIC_FORMS)
        self.misfit: Misfit | None = None
        self.broken = Broken(skip=bool(skip_broken))
        self.told_by: str | None = None
        self.table = False
        self.cells = False
        self.nested: bool | None = None
        self.cell_forms: dict[str, str] = {}
        self.numeric: dict[str, bool] = {}
        self.lone_reader: Reader | None = None
        self.names: list[str] = []
        self.reader_type: type[Reader] | None = None

    def settle_columns(self, reader: Reader) -> None:
        """Settle the columns to read by the first file: those that the format has roles for, and those named."""
        names = reader.names()
        self.reader_type, self.cells = (
            type(reader),
            reader.cells or (reader.untyped and self.interprets_texts),
        )
        fixed = {"samples": reader.samples, "label": reader.label, "id": reader.id}
        for role, name in fixed.items():
            if (role == "samples" and self.vector_columns) or (role == "label" and self.label_columns):
                continue
            if self.roles[role] is None and name in names and name not in self.roles.values():
                self.roles[role] = name
        format_kind = reader.kind if self.roles["samples"] == reader.samples else None
        self.kind = format_kind or self.kind if self.kind in (None, "guess") else self.kind
        named = [name for name in [*self.roles.values(), *self.extra_columns] if name is not None]
        default_columns = self._default_columns(reader, named)
        has_samples = self.roles["samples"] is not None or self.vector_columns
        if not has_samples and set(self.extra_columns) - set(self.label_columns):
            self.table = True  # of the columns that are asked for
        elif not has_samples:
            if (header_error := reader.header_error()) is not None:
                raise header_error
            named_set = set(named)
            unnamed = [name for name in default_columns if name not in named_set]
            if len(unnamed) == 1:
                self.roles["samples"] = unnamed[0]
                self.lone_reader = reader if reader.cells else None
                named.insert(0, unnamed[0])
            else:
                self.table = True
                named = [*default_columns, *named]
        self.names = list(dict.fromkeys(named))
        self.check_columns(reader)

    def _default_columns(self, reader: Reader, named: Sequence[str]) -> list[str]:
        """The columns to take where none is named; of arrays of different lengths, those that go with named ones."""
        lengths, default_columns = reader.lengths(), reader.default_columns()
        if lengths is None or len(set(lengths.values())) < 2:
            return default_columns
        named_by_length = {lengths[name]: name for name in named if name in lengths}
        if not named_by_length:
            listed = ", ".join(
                f"{printable(name, 40)} ({count:,})" for name, count in list(lengths.items())[:12]
            )
            raise InputError(
                f"{reader.file} holds arrays of different lengths: {listed}; expected one to be named as that of the "
                "samples, with samples= (--column)."
            )
        if len(named_by_length) > 1:
            (first_length, first), (second_length, second) = list(named_by_length.items())[:2]
            raise InputError(
                f"{brief(first)} in {reader.file} has {first_length:,} rows and {brief(second)} has {second_length:,}; "
                "expected one length."
            )
        return [name for name in default_columns if lengths[name] in named_by_length]

    def settle_kind(self, part: Part) -> None:
        """Guess the kind of the samples by the first of them, where it is to be guessed."""
        reader, name = self.lone_reader, self.roles["samples"]
        self.lone_reader = None
        if (
            reader is not None
            and name is not None
            and (reader.is_header_doubtful() or name in part.columns[name])
        ):
            repetition = "" if reader.is_header_doubtful() else " and comes again as a sample"
            warn(
                f"the first line of {reader.file}, {brief(name)}, was taken for the name of its only column"
                f"{repetition}; is it a sample, too? {reader.header_advice([name])} If it is none, name "
                "the column with "
                "samples= (--column).",
                UserWarning,
            )
        if self.kind == "guess" and len(next(iter(part.columns.values()), ())):
            self.kind = None
            self.kind, self.told_by, self.misfit = guess(self.collection([part], ""), self.forms)
            if reader is not None:
                self.told_by += f", in the column {brief(name)}"

    def is_nested(self, samples: Any) -> bool | None:
        """Whether the samples are lists of texts: the first list with anything in it decides; None before that."""
        if self.nested is None and isinstance(samples, list) and samples:
            lists = all(isinstance(item, list) for item in samples[:1])
            first = next((item for item in samples if isinstance(item, list) and item), None)
            if not lists or first is not None:
                self.nested = lists and first is not None and isinstance(first[0], str)
        return self.nested

    @property
    def forms(self) -> Sequence[str]:
        """What texts may stand for; in files with types, vectors only where asked, and numbers where so said."""
        if self.cells or self.kind == "numbers":
            return FORMS
        return FORMS[1:] if self.interprets_texts and not self.table else ()

    @property
    def takes_numbers(self) -> bool:
        """Whether texts may stand for numbers."""
        return bool(self.forms) and self.kind not in NOT_NUMBERS

    def form_of_cells(self, name: str, cells: Any) -> str:
        """What cells stand for, by the kind or by the first of them; those that do not are broken."""
        if not isinstance(cells, list) or not all(isinstance(cell, str) for cell in cells):
            return "texts"  # they are something else already
        if name == self.roles["samples"] and self.kind in NUMERIC_FORMS:
            return NUMERIC_FORMS[self.kind]
        return self.cell_forms.setdefault(name, form_of(cells, self.forms))

    def numeric_table_columns(self, columns: dict[str, Any]) -> list[str]:
        """The columns of a table that all hold numbers, so that it is one of vectors; [] of any other."""
        roles = {self.roles[role] for role in ("label", "weight", "id")}
        names = (
            [name for name in self.names if name not in {*roles, *self.label_columns}] if self.table else []
        )
        return names if all(self.form_of_cells(name, columns[name]) == "numbers" for name in names) else []

    def check_columns(self, reader: Reader) -> None:
        """Refuse a file of another form than the first, or without a column that is read."""
        if self.reader_type is not type(reader):
            raise InputError(
                f"{reader.file} is of another form than the files before it; expected files of one form. Read them "
                "apart."
            )
        # Lists of tags and tokens are of any length.
        reader.uniform_column = "" if self.kind in ("tags", "tokens") else self.roles["samples"]
        names = set(reader.names())  # a table of genes has tens of thousands
        for name in self.names:
            if names and name not in names:
                raise reader.missing_column_error(name)

    def collection(self, parts: Sequence[Part], source: str) -> Collection:
        """The collection of the records of parts, one part after another."""
        parts = [part for part in parts if part.columns and len(next(iter(part.columns.values())))]
        sizes = [len(next(iter(part.columns.values()))) for part in parts]
        ends = np.cumsum([0, *sizes])

        places = [part.place for part in parts]  # not the parts, whose columns would stay in memory twice

        def place(position: int) -> Place:
            part_index = int(np.searchsorted(ends, position, side="right")) - 1
            return places[part_index](position - int(ends[part_index]))

        if not parts:
            return Collection([], kind=self.kind, skipped=self.broken, source=source)
        columns = {name: joined([part.columns[name] for part in parts], name, place) for name in self.names}
        label, weight, name = (self.roles[role] for role in ("label", "weight", "id"))
        if weight is not None:
            weight_column = columns[weight]
            weight_values = weight_column.tolist() if isinstance(weight_column, np.ndarray) else weight_column
            columns[weight] = np.array([parse_weight(value, weight)[0] for value in weight_values])
        labels, weights, ids = (None if role is None else columns[role] for role in (label, weight, name))
        if self.label_columns:
            labels = list(zip(*(plain_list(columns[level]) for level in self.label_columns), strict=True))
        sample_columns = {key: value for key, value in columns.items() if key not in (label, weight, name)}
        if self.vector_columns:
            samples: Any = stack_columns(
                {name: self._convert_texts(columns[name], name, place) for name in self.vector_columns}, place
            )
        elif self.table:
            samples = self._convert_table(sample_columns, place)
        else:
            samples_name = self.roles["samples"]
            assert samples_name is not None
            samples = columns[samples_name] = self._convert_texts(columns[samples_name], samples_name, place)
        return Collection(
            samples,
            labels=labels,
            weights=weights,
            ids=ids,
            columns=columns | samples if self.table else columns,
            kind=self.kind,
            told_by=self.told_by,
            skipped=self.broken,
            source=source,
            place=place,
            nested=None if self.table else self.is_nested(samples),
        )

    def _convert_table(self, columns: dict[str, Any], place: Callable[[int], str]) -> dict[str, Any]:
        """The columns of a table, converted; a gap among numbers is an error only where all columns are numbers."""
        converted: dict[str, Any] = {}
        gaps: dict[str, InputError] = {}
        for name, column in columns.items():
            try:
                converted[name] = self._convert_texts(column, name, place)
            except InputError as error:
                converted[name], gaps[name] = column, error
        if gaps and all(
            as_numbers(column) is not None for name, column in converted.items() if name not in gaps
        ):
            raise next(iter(gaps.values()))
        first_other = next((name for name, column in converted.items() if as_numbers(column) is None), None)
        if (
            first_other is not None
            and self.interprets_texts
            and first_other in self.numeric_table_columns(columns)
        ):
            advice = "or name the column that holds the samples, with samples= (--column)"
            raise self._not_number_error(columns[first_other], first_other, place, "numbers", advice)
        return converted

    def _not_number_error(
        self, cells: Any, name: str, place: Callable[[int], str], form: str, advice: str
    ) -> InputError:
        """The error for the first cell that does not stand for a number, or a vector, in a column of them."""
        position = next((i for i, cell in enumerate(cells) if not stands_for(form, cell)), 0)
        return InputError(
            f"{place(position)} holds {brief(cells[position])} in the column {brief(name)} of {form}; expected "
            f"{EXPECTED[form]}. Mend it, leave broken records out and count them with skip_broken=True "
            f"(--skip-broken), {advice}.",
            option="skip_broken",
        )

    def _convert_texts(self, column: Any, name: str, place: Callable[[int], str]) -> Any:
        """A column with its texts converted to the numbers that they stand for, in every batch as in the first."""
        if isinstance(column, np.ndarray) and column.dtype.kind == "U":
            column = column.tolist()
        if self.cells and self.kind == "tags":
            return parse_lists(column)
        if not (
            self.takes_numbers and isinstance(column, list) and all(isinstance(cell, str) for cell in column)
        ):
            return column
        parsed = parse_cells(column, name, place, self.forms)
        numeric = isinstance(parsed, np.ndarray)
        form = NUMERIC_FORMS.get(self.kind or "")
        if form is not None and not numeric and name in (self.roles["samples"], *self.vector_columns):
            advice = "or say what all of them are with kind= (--kind), such as texts or categories"
            raise self._not_number_error(column, name, place, form, advice)
        if self.numeric.setdefault(name, numeric) != numeric:
            position = 0 if numeric else first_text_position(column)
            raise InputError(
                f"{place(position)} holds {brief(column[position])} in the column {name!r}, which held "
                f"{'texts' if numeric else 'numbers'} before; expected one of them. Mend it, say what the samples are "
                "with kind= (--kind), such as texts or categories, or leave it out with skip_broken=True "
                "(--skip-broken).",
                option="skip_broken",
            )
        return parsed


def _check_names(names: Any, role: str) -> list[str]:
    """The names of several columns for one role; [] where a single name is given, or none."""
    if names is None or isinstance(names, str):
        return []
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{role}={brief(names)}; expected the name of a column, or a list of names.")
    if len(set(names)) < len(names):
        raise InputError(f"{role}={brief(names)} names a column twice; expected different ones.")
    return list(names)


def _check_name(name: Any, role: str) -> str | None:
    """The name of a column for a role, or None."""
    if name is not None and not isinstance(name, str):
        raise InputError(f"{role}={brief(name)}; expected the name of a column.")
    return name
