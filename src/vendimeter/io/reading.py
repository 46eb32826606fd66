"""Files → a Collection, whole or in batches: read and read_batches."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from vendimeter.data.collection import Collection
from vendimeter.errors import EmptyError, InputError, brief, unknown
from vendimeter.io.base import Broken, Part, Reader
from vendimeter.io.picture_files import ENDINGS
from vendimeter.io.sound import sound
from vendimeter.io.sources import MAX_RECORD, File, files_of, sniff
from vendimeter.io.wanted import Wanted
from vendimeter.options import byte_count, whole_number

__all__ = ["read", "read_batches"]

BATCH = 4096  # records a batch, unless the user says otherwise

_FORMS = {
    "text_files:Lines": (".txt",),
    "text_files:Smiles": (".smi", ".smiles"),
    "text_files:Fasta": (".fasta", ".fa", ".faa", ".fna", ".ffn", ".fas"),
    "json_files:Json": (".jsonl", ".ndjson", ".json"),
    "text_files:Delimited": (".csv", ".tsv"),
    "array_files:Npy": (".npy",),
    "array_files:Npz": (".npz",),
    "array_files:Safetensors": (".safetensors",),
    "arrow_files:Parquet": (".parquet", ".pq"),
    "arrow_files:Arrow": (".arrow", ".feather", ".ipc"),
    "structure_files:Sdf": (".sdf", ".sd"),
}
_READERS = {ending: reader for reader, endings in _FORMS.items() for ending in endings}
_PICTURE = "picture_files:PictureFile"
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
        name = "arrow_files:HuggingFace" if dataset else "picture_files:PictureFolder"
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
