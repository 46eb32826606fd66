"""Read one file into columns: .npy, .npz, .csv, .tsv, .jsonl and .txt. Nothing in a file is ever executed."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from vendimeter.errors import EmptyError, InputError

__all__ = ["read_columns"]

_ENDINGS = ".npy, .npz, .csv, .tsv, .jsonl, .txt"


def read_columns(path: Path) -> dict[str, Any]:
    """The columns of a file by name.

    A .txt file has the column "text" (one sample a line, empty lines skipped), a .npy file the column "data".
    Columns of a .csv file are numbers where every cell is one.
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
        return np.load(path, allow_pickle=False, mmap_mode="r" if path.suffix == ".npy" else None)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{str(path)!r} could not be read as a NumPy file: {error}") from None


def _npy(path: Path) -> dict[str, Any]:
    array = _load(path)
    if array.ndim == 0:
        raise InputError(f"{str(path)!r} holds a single value; expected an array with one row a sample.")
    return {"data": array}


def _npz(path: Path) -> dict[str, Any]:
    archive = _load(path)
    try:
        return {name: archive[name] for name in archive.files}
    except ValueError as error:
        raise InputError(f"{str(path)!r} could not be read as a NumPy file: {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from None


def _txt(path: Path) -> dict[str, Any]:
    return {"text": [line for line in _text(path).splitlines() if line.strip()]}


def _csv(path: Path) -> dict[str, Any]:
    rows = csv.reader(_text(path).splitlines(keepends=True), delimiter="\t" if path.suffix == ".tsv" else ",")
    try:
        names = next(rows, None)
        if not names:
            return {}
        columns: dict[str, list[str]] = {name: [] for name in names}
        if len(columns) < len(names):
            raise InputError(
                f"{str(path)!r} names a column twice in its first line; expected different names."
            )
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
    return {name: _numbers(cells) for name, cells in columns.items()}


def _numbers(cells: list[str]) -> Any:
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:
        return cells


def _jsonl(path: Path) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {}
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"line {number} of {str(path)!r} is not valid JSON: {error.msg}.") from None
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
