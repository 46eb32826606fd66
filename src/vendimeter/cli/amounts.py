"""How many items files hold, for the progress of a run: told by their heads, or estimated from some of their bytes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vendimeter.errors import MissingDependencyError, VendimeterError
from vendimeter.io.base import Broken
from vendimeter.io.reading import _reader as reader_of
from vendimeter.io.sources import GZIP, File, files_of

__all__ = ["items_expected"]

LOOKED_AT = 32  # files whose items are counted; those of others are taken to be as many a byte
PIECES, PIECE = 8, 256 << 10  # places of a text file that are looked at, and bytes at each
# What ends an item in text files, or begins one.
MARKS: dict[str, bytes] = dict.fromkeys((".fasta", ".fa", ".faa", ".fna", ".ffn", ".fas"), b">")
MARKS |= dict.fromkeys((".sdf", ".sd"), b"$$$$")
LINES = (".txt", ".smi", ".smiles", ".csv", ".tsv", ".jsonl", ".ndjson")


def items_expected(files: Sequence[str], form: str | None = None, limit: int | None = None) -> float | None:
    r"""About how many items the files hold; None where that cannot be told without reading them.

    It is an estimate for a progress line: broken records count too, and of many files only some are looked at.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = Path(folder.name, "a.txt").write_text("a dog\na cat\ntwo boats\n")
    >>> items_expected([folder.name + "/a.txt"])
    3.0
    >>> folder.cleanup()
    """
    try:
        found = files_of(list(files), form)
        if any(file.is_pipe for file in found):
            return None
        counted = found[:: -(-len(found) // LOOKED_AT)]
        parts = [_items(file, form) for file in counted]
        if any(part is None for part in parts):
            return None
        items = sum(part for part in parts if part is not None)
        if len(counted) < len(found):
            items *= _bytes(found) / max(1, _bytes(counted))
    except (VendimeterError, OSError, ValueError):  # the run itself will say what is wrong
        return None
    return items if limit is None else min(items, float(limit))


def _bytes(files: Sequence[File]) -> int:
    return sum(os.path.getsize(file.path) for file in files if file.path is not None)


def _items(file: File, form: str | None) -> float | None:
    """How many items one file or folder holds."""
    assert file.path is not None
    reader: Any = reader_of(file, form, Broken())
    if file.is_folder:
        return float(len(reader._found())) if hasattr(reader, "_found") else None
    lengths = reader.lengths() if file.ending in (".npy", ".npz", ".safetensors") else None
    if lengths is not None:
        return float(max(lengths.values(), default=0))
    if file.ending in (".parquet", ".pq"):
        try:
            opened = reader._open()
        except MissingDependencyError:
            return None
        if opened is None:
            return 0.0
        with opened:
            return float(opened.metadata.num_rows)
    if file.ending in LINES or file.ending in MARKS:
        return _marks(file.path, MARKS.get(file.ending, b"\n"))
    return None


def _marks(path: Path, mark: bytes) -> float | None:
    """About how often a mark occurs in a file, from pieces of it; None where it is packed."""
    size = path.stat().st_size
    seen = count = 0
    with path.open("rb") as file:
        if file.read(2) == GZIP:
            return None
        for start in range(0, size, max(PIECE, size // PIECES)):
            file.seek(start)
            piece = file.read(PIECE)
            seen, count = seen + len(piece), count + piece.count(mark)
    return count * size / max(1, seen)
