"""Fingerprints of what a run reads, and how: two runs whose fingerprints agree get the same batches.

Beside them stands `items_expected`, the number of items that files hold, for the progress of a run: it is read from
their heads, or estimated from some of their bytes.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vendimeter import __version__
from vendimeter.data.collection import Broken
from vendimeter.errors import InputError, MissingDependencyError, VendimeterError
from vendimeter.io.reading import _DATASET as DATASET
from vendimeter.io.reading import _reader as reader_of
from vendimeter.io.sources import GZIP, File, files_of
from vendimeter.kernels import as_kernel
from vendimeter.kernels.description import describe, shown
from vendimeter.messages import brief
from vendimeter.present.text import printable

__all__ = ["difference", "items_expected", "reading_fingerprint"]


# ------------------------------------------------------------------------------------------------------------- amounts

MAX_COUNTED_FILES = 32  # files whose items are counted; the others are taken to have as many per byte
PIECE_COUNT, PIECE_BYTES = 8, 256 << 10  # pieces of a text file that are sampled, and bytes of each
# The bytes that end an item in text files, or begin one.
ITEM_MARKS: dict[str, bytes] = dict.fromkeys((".fasta", ".fa", ".faa", ".fna", ".ffn", ".fas"), b">")
ITEM_MARKS |= dict.fromkeys((".sdf", ".sd"), b"$$$$")
LINE_ENDINGS = (".txt", ".smi", ".smiles", ".csv", ".tsv", ".jsonl", ".ndjson")


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
        all_files = files_of(list(files), form)
        if any(file.is_pipe for file in all_files):
            return None
        sampled_files = all_files[:: -(-len(all_files) // MAX_COUNTED_FILES)]
        counts = [_item_count(file, form) for file in sampled_files]
        if any(count is None for count in counts):
            return None
        items = sum(count for count in counts if count is not None)
        if len(sampled_files) < len(all_files):
            items *= _total_bytes(all_files) / max(1, _total_bytes(sampled_files))
    except (VendimeterError, OSError, ValueError):  # the run itself will say what is wrong
        return None
    return items if limit is None else min(items, float(limit))


def _total_bytes(files: Sequence[File]) -> int:
    return sum(os.path.getsize(file.path) for file in files if file.path is not None)


def _item_count(file: File, form: str | None) -> float | None:
    """The number of items in one file or folder; None where it cannot be told."""
    assert file.path is not None
    reader: Any = reader_of(file, form, Broken())
    if file.is_folder:
        return float(len(reader._found())) if hasattr(reader, "_found") else None
    lengths = reader.lengths() if file.ending in (".npy", ".npz", ".safetensors") else None
    if lengths is not None:
        return float(max(lengths.values(), default=0))
    if file.ending in (".parquet", ".pq"):
        try:
            table = reader._open()
        except MissingDependencyError:
            return None
        if table is None:
            return 0.0
        with table:
            return float(table.metadata.num_rows)
    if file.ending in LINE_ENDINGS or file.ending in ITEM_MARKS:
        return _estimate_marks(file.path, ITEM_MARKS.get(file.ending, b"\n"))
    return None


def _estimate_marks(path: Path, mark: bytes) -> float | None:
    """Estimate how often a mark occurs in a file, from pieces of it; None where it is compressed."""
    size = path.stat().st_size
    bytes_read = marks = 0
    with path.open("rb") as file:
        if file.read(2) == GZIP:
            return None
        for start in range(0, size, max(PIECE_BYTES, size // PIECE_COUNT)):
            file.seek(start)
            piece = file.read(PIECE_BYTES)
            bytes_read, marks = bytes_read + len(piece), marks + piece.count(mark)
    return marks * size / max(1, bytes_read)


# -------------------------------------------------------------------------------------------------------- fingerprints

# A file up to this size is hashed as a whole, as long as all such files together are no larger than the total.
FULL_DIGEST_BYTES, FULL_DIGEST_TOTAL = 16 << 20, 256 << 20
# Bytes hashed at both ends of other files, which are also known by the time of their last change.
END_BYTES = 16 << 10
MAX_LISTED = 5000  # files that are listed in the fingerprint; of more only one digest of all is kept


def reading_fingerprint(
    files: Sequence[str], options: Mapping[str, Any], kernel: Any, checkpoint: Path | None = None
) -> dict[str, Any]:
    """What is read and how, as values that JSON can write; equal for the same files, options and kernel.

    Files are known by their names (with the folder that they lie in, wherever that is), sizes and contents: small ones
    by all of it, others by their first and last bytes and the time of their last change.

    Parameters
    ----------
    files : list of str
        As given to the command: files, folders, patterns. Standard input and pipes are refused, since what was read
        from them cannot be read again.
    options : mapping
        Whatever decides which batches there are and what is in them: columns, labels, weights, format, kind, limit,
        whether broken records are left out, the size of batches, the seed.
    kernel : str or Kernel
        The kernel.
    checkpoint : Path, optional
        Where the run is to be saved; refused where it would be among the files that are read.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "captions.txt")
    >>> _ = path.write_text("a dog")
    >>> before = reading_fingerprint([str(path)], {"by": None}, "cosine")
    >>> _ = path.write_text("a cat")
    >>> difference(before, reading_fingerprint([str(path)], {"by": None}, "cosine")).endswith("has other contents")
    True
    >>> folder.cleanup()
    """
    members = [(name, path) for file in files_of(list(files)) for name, path in _members(file)]
    if checkpoint is not None:
        _refuse_inside(Path(checkpoint), files, [path for _, path in members])
    sizes = [_size(path) for _, path in members]
    is_affordable = sum(size for size in sizes if size <= FULL_DIGEST_BYTES) <= FULL_DIGEST_TOTAL
    entries = [
        _file_entry(name, path, size, is_affordable and size <= FULL_DIGEST_BYTES)
        for (name, path), size in zip(members, sizes, strict=True)
    ]
    listed_files: Any = entries
    if len(entries) > MAX_LISTED:
        text = json.dumps(entries, sort_keys=True)
        listed_files = {
            "count": len(entries),
            "bytes": sum(sizes),
            "digest": hashlib.sha256(text.encode()).hexdigest(),
        }
    return {
        "version": __version__,
        "options": json.loads(json.dumps(dict(options), default=str)),
        "kernel": describe(as_kernel(kernel)),
        "files": listed_files,
    }


def _members(file: File) -> Iterator[tuple[str, Path]]:
    """The files behind a path, each with the name that it is known by, in the order of reading."""
    path = file.path
    if path is None:
        raise InputError(
            "standard input cannot be read a second time, so that a run on it cannot be resumed; expected files. Write "
            "it into a file first, or leave --checkpoint away."
        )
    if not file.is_folder:
        known_path = Path(os.path.abspath(path))
        yield "/".join(known_path.parts[-2:]), path  # a picture has its label from its folder
        return
    known_path = path.resolve().name
    for name in _folder_members(file, path):
        yield f"{known_path}/{name}", path / name


def _folder_members(file: File, folder: Path) -> list[str]:
    """Paths, relative to a folder, of the files that readers take from it."""
    if any((folder / name).exists() for name in DATASET):
        from vendimeter.io.arrow import HuggingFace

        reader = HuggingFace(file, Broken())
        dataset_files = [
            subfolder / name
            for subfolder in dict.fromkeys([folder, *(split_folder for _, split_folder in reader._folders())])
            for name in DATASET
        ]
        return [
            os.path.relpath(path, folder)
            for path in [*filter(Path.is_file, dataset_files), *(path for _, path in reader._shards())]
        ]
    from vendimeter.io.pictures import PictureFolder

    names = (Path(*name) for name in PictureFolder(file, Broken())._found())
    return [name.as_posix() for name in names if not (folder / name).is_dir()]


def _size(path: Path) -> int:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise _open_error(path, error) from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{printable(path)!r} is no plain file but a pipe or a device, which cannot be read a second time, so that "
            "a run on it cannot be resumed; expected files. Write it into a file first, or leave --checkpoint away."
        )
    return status.st_size


def _file_entry(name: str, path: Path, size: int, is_full: bool) -> dict[str, Any]:
    """The fingerprint of one file."""
    try:
        with path.open("rb") as file:
            if is_full:
                return {"name": name, "size": size, "digest": hashlib.file_digest(file, "sha256").hexdigest()}
            ends = hashlib.sha256(file.read(END_BYTES))
            file.seek(max(0, size - END_BYTES))
            ends.update(file.read(END_BYTES))
            modified_ns = os.fstat(file.fileno()).st_mtime_ns
    except OSError as error:
        raise _open_error(path, error) from None
    return {"name": name, "size": size, "ends": ends.hexdigest(), "changed": modified_ns}


def _open_error(path: Path, error: Exception) -> InputError:
    why = getattr(error, "strerror", None) or error
    return InputError(f"{printable(path)!r} could not be opened: {why}. Expected a file that may be read.")


def _refuse_inside(checkpoint: Path, patterns: Sequence[str], paths: Sequence[Path]) -> None:
    """Refuse a checkpoint that is, or would be, one of the files that are read."""
    target = os.path.realpath(checkpoint)
    is_inside = any(os.path.realpath(path) == target for path in paths)
    for pattern in patterns:
        path = os.path.abspath(os.path.expanduser(pattern))
        is_inside = is_inside or target == os.path.realpath(path)
        if not os.path.lexists(path):
            is_inside = is_inside or _matches(Path(target), Path(os.path.realpath(path)))
    if is_inside:
        raise InputError(
            f"the checkpoint {printable(checkpoint)!r} is among the files that are read; expected another place. Give "
            "a name in another folder with --checkpoint."
        )


def _matches(path: Path, pattern: Path) -> bool:
    """Whether a path would be found by a pattern, as far as names tell."""
    if "**" in pattern.parts:
        return fnmatch.fnmatchcase(str(path), str(pattern).replace("/**/", "/*"))
    pairs = zip(path.parts, pattern.parts, strict=False)
    return len(path.parts) == len(pattern.parts) and all(fnmatch.fnmatchcase(*pair) for pair in pairs)


# ---------------------------------------------------------------------------------------------------------- difference


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first thing in which two fingerprints differ, in words; None where they agree.

    Examples
    --------
    >>> difference({"options": {"by": "label", "limit": 5}}, {"options": {"by": None, "limit": 5}})
    "by was 'label' and is not given"
    """
    if before == now:
        return None
    old_version, new_version = before.get("version"), now.get("version")
    if old_version != new_version:
        return f"it was written by Vendimeter {brief(old_version)}, and this is {brief(new_version)}"
    old_options, new_options = before.get("options"), now.get("options")
    if old_options != new_options and isinstance(old_options, dict) and isinstance(new_options, dict):
        name = next(
            name
            for name in sorted({*old_options, *new_options})
            if old_options.get(name) != new_options.get(name)
        )
        old_value, new_value = (
            "not given" if chosen_options.get(name) is None else brief(chosen_options[name])
            for chosen_options in (old_options, new_options)
        )
        return f"{printable(name, 40)} was {old_value} and is {new_value}"
    if before.get("kernel") != now.get("kernel"):
        return f"the kernel was {shown(before.get('kernel'))} and is {shown(now.get('kernel'))}"
    if before.get("seed") != now.get("seed"):
        return f"the seed was {brief(before.get('seed'))} and is {brief(now.get('seed'))}"
    return _file_difference(before.get("files"), now.get("files"))


def _file_difference(old: Any, new: Any) -> str:
    if not isinstance(old, list) or not isinstance(new, list):
        counts = [
            len(entries) if isinstance(entries, list) else (entries or {}).get("count")
            for entries in (old, new)
        ]
        if counts[0] != counts[1]:
            return f"there were {counts[0]} files and there are {counts[1]}"
        return f"one of the {counts[1]} files has another name, size, content or time of change"
    old_names, new_names = [entry["name"] for entry in old], [entry["name"] for entry in new]
    if old_names != new_names:
        for entries, others, word in (
            (new_names, old_names, "was not there"),
            (old_names, new_names, "is not there any more"),
        ):
            extra = next((name for name in entries if name not in set(others)), None)
            if extra is not None:
                return f"there were {len(old):,} files and there are {len(new):,}; {extra!r} {word}"
        return "the files come in another order, or another number of times"
    old_entry, new_entry = next(pair for pair in zip(old, new, strict=True) if pair[0] != pair[1])
    if old_entry["size"] != new_entry["size"]:
        return f"{new_entry['name']!r} had {old_entry['size']:,} bytes and has {new_entry['size']:,}"
    same_ends = old_entry.get("ends") == new_entry.get("ends")
    if old_entry.get("changed") != new_entry.get("changed") and same_ends:
        return f"{new_entry['name']!r} has been written since"
    return f"{new_entry['name']!r} has other contents"
