"""Read one file into columns: .npy, .npz, .csv, .tsv, .jsonl and .txt. Nothing in a file is ever executed."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from vendimeter.errors import EmptyError, InputError

__all__ = ["numbers", "read_columns"]

_ENDINGS = ".npy, .npz, .csv, .tsv, .jsonl, .txt"


def read_columns(path: Path) -> dict[str, Any]:
    """The columns of a file by name.

    A .txt file has the column "text" (one sample a line, empty lines skipped), a .npy file the column "data".
    Columns of a .csv file are texts; `numbers` turns them into numbers where every cell is one.
    """
    readers = {
        ".npy": _npy, ".npz": _npz, ".csv": _csv, ".tsv": _csv, ".jsonl": _jsonl, ".txt": _txt,
    }  # fmt: skip
    reader = readers.get(path.suffix.lower())
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}.")
    if path.is_dir() or reader is None:
        kind = "a folder" if path.is_dir() else f"a file of type {path.suffix or 'unknown'!r}"
        raise InputError(f"{str(path)!r} is {kind}; expected one of {_ENDINGS}.")
    columns = reader(path)
    if not columns or not any(len(column) for column in columns.values()):
        raise EmptyError(f"{str(path)!r} holds no samples.")
    return columns


def _load(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False, mmap_mode="r" if path.suffix.lower() == ".npy" else None)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile):
        raise InputError(
            f"{str(path)!r} could not be read as a NumPy file of plain numbers or texts; expected one "
            "written by np.save or np.savez without objects."
        ) from None


def _npy(path: Path) -> dict[str, Any]:
    array = _load(path)
    if isinstance(array, np.ndarray):
        return {"data": _sized(array, path, "data")}
    return _npz(path)  # an archive under another name


def _npz(path: Path) -> dict[str, Any]:
    archive = _load(path)
    if isinstance(archive, np.ndarray):
        return {"data": _sized(archive, path, "data")}
    try:
        return {name: _sized(archive[name], path, name) for name in archive.files}
    except (ValueError, zipfile.BadZipFile):
        raise InputError(
            f"{str(path)!r} holds objects or is damaged; expected plain numbers or texts."
        ) from None


def _sized(array: np.ndarray, path: Path, name: str) -> np.ndarray:
    if array.ndim == 0:
        raise InputError(
            f"{name!r} in {str(path)!r} is a single value; expected an array with one row a sample."
        )
    return array


def _lines(path: Path) -> list[str]:
    """Lines without their ends; only line feeds and carriage returns end a line, as csv and JSON have it."""
    try:
        with path.open(encoding="utf-8-sig", newline=None) as file:
            return [line.rstrip("\n") for line in file]
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from None


def _txt(path: Path) -> dict[str, Any]:
    return {"text": [line for line in _lines(path) if line.strip()]}


def _csv(path: Path) -> dict[str, Any]:
    """Columns as texts, cell by cell; which of them are numbers is for the reader to say (`numbers`)."""
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    rows = csv.reader((line + "\n" for line in _lines(path)), delimiter=separator)
    try:
        names = next(rows, None)
        if not names:
            return {}
        if len(set(names)) < len(names):
            raise InputError(
                f"{str(path)!r} names a column twice in its first line; expected different names."
            )
        if all(_is_number(name) for name in names):
            raise InputError(
                f"the first line of {str(path)!r} holds numbers; expected the names of the columns there."
            )
        if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
            raise InputError(
                f"the first line of {str(path)!r} is {names[0]!r}; expected columns separated by "
                f"{separator!r}. Save the file as plain .csv (commas) or .tsv (tabs)."
            )
        columns: dict[str, list[str]] = {name: [] for name in names}
        for row in rows:
            if not row:
                continue
            if len(row) != len(names):
                raise InputError(
                    f"line {rows.line_num} of {str(path)!r} has {len(row)} cells and the first line names "
                    f"{len(names)} columns; expected as many."
                )
            for name, cell in zip(names, row, strict=True):
                columns[name].append(cell)
    except csv.Error as error:
        raise InputError(f"line {rows.line_num} of {str(path)!r} is not valid CSV: {error}") from None
    return dict(columns)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def numbers(cells: Any, name: str) -> Any:
    """A column of texts as numbers where every cell is one; a blank among numbers is an error."""
    if not (isinstance(cells, list) and all(isinstance(cell, str) for cell in cells)):
        return cells
    blank = next((i for i, cell in enumerate(cells) if not cell.strip()), None)
    filled = [cell for cell in cells if cell.strip()]
    if not filled or not all(_is_number(cell) for cell in filled):
        return cells
    if blank is not None:
        raise InputError(
            f"row {blank + 1} has no value in the column {name!r} of numbers; fill it, or drop the row."
        )
    return np.array([float(cell) for cell in cells])


def _jsonl(path: Path) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {}
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"line {number} of {str(path)!r} is not valid JSON: {error.msg}.") from None
        except RecursionError:
            raise InputError(f"line {number} of {str(path)!r} is nested too deeply to be a sample.") from None
        if not isinstance(record, dict):
            raise InputError(f"line {number} of {str(path)!r} is not an object; expected {{…}} on each line.")
        if columns and record.keys() != columns.keys():
            odd = sorted(map(str, record.keys() ^ columns.keys()))
            raise InputError(
                f"line {number} of {str(path)!r} differs from the first in its fields: {', '.join(odd)}."
            )
        for name, value in record.items():
            columns.setdefault(name, []).append(value)
    return dict(columns)
