"""What a run reads, and how, in a few plain values: two runs that agree in them get the same batches."""

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
from vendimeter.errors import InputError, MissingDependencyError, VendimeterError, brief, printable
from vendimeter.io.reading import _DATASET as DATASET
from vendimeter.io.reading import _reader as reader_of
from vendimeter.io.sources import GZIP, File, files_of
from vendimeter.kernels import as_kernel
from vendimeter.kernels.description import describe, shown

__all__ = ["difference", "items_expected", "reading_fingerprint"]


# ------------------------------------------------------------------------------------------------------------- amounts

# How many items files hold, for the progress of a run: told by their heads, or estimated from some of their bytes.

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


# -------------------------------------------------------------------------------------------------------- fingerprints

WHOLE = 16 << 20  # bytes of a file that are read to the last to know it again …
WHOLE_TOGETHER = 256 << 20  # … as long as all such files have no more than this: a fraction of a second
ENDS = 16 << 10  # bytes at both ends of the others, which are also known by the time of their last change
LISTED = 5000  # files that are told apart in the fingerprint; of more only the digest of all is kept


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
    found = [(name, path) for file in files_of(list(files)) for name, path in _members(file)]
    if checkpoint is not None:
        _refuse_inside(Path(checkpoint), files, [path for _, path in found])
    sizes = [_size(path) for _, path in found]
    whole = sum(size for size in sizes if size <= WHOLE) <= WHOLE_TOGETHER
    entries = [
        _entry(name, path, size, whole and size <= WHOLE)
        for (name, path), size in zip(found, sizes, strict=True)
    ]
    listed: Any = entries
    if len(entries) > LISTED:
        text = json.dumps(entries, sort_keys=True)
        listed = {
            "count": len(entries),
            "bytes": sum(sizes),
            "digest": hashlib.sha256(text.encode()).hexdigest(),
        }
    return {
        "version": __version__,
        "options": json.loads(json.dumps(dict(options), default=str)),
        "kernel": describe(as_kernel(kernel)),
        "files": listed,
    }


def _members(file: File) -> Iterator[tuple[str, Path]]:
    """The files that are behind one that was named, each with the name that it is known by, in the order of reading."""
    path = file.path
    if path is None:
        raise InputError(
            "standard input cannot be read a second time, so that a run on it cannot be resumed; expected files. Write "
            "it into a file first, or leave --checkpoint away."
        )
    if not file.is_folder:
        own = Path(os.path.abspath(path))
        yield "/".join(own.parts[-2:]), path  # a picture has its label from its folder
        return
    own = path.resolve().name
    for name in _in_folder(file, path):
        yield f"{own}/{name}", path / name


def _in_folder(file: File, folder: Path) -> list[str]:
    """Paths of what the readers take from a folder, below it."""
    if any((folder / name).exists() for name in DATASET):
        from vendimeter.io.arrow import HuggingFace

        reader = HuggingFace(file, Broken())
        beside = [
            held / name for held in {folder: 0, **{f: 0 for _, f in reader._folders()}} for name in DATASET
        ]
        return [
            os.path.relpath(path, folder)
            for path in [*filter(Path.is_file, beside), *(path for _, path in reader._shards())]
        ]
    from vendimeter.io.pictures import PictureFolder

    names = (Path(*name) for name in PictureFolder(file, Broken())._found())
    return [name.as_posix() for name in names if not (folder / name).is_dir()]


def _size(path: Path) -> int:
    try:
        held = path.stat()
    except (OSError, ValueError) as error:
        raise _unread(path, error) from None
    if not stat.S_ISREG(held.st_mode):
        raise InputError(
            f"{printable(path)!r} is no plain file but a pipe or a device, which cannot be read a second time, so that "
            "a run on it cannot be resumed; expected files. Write it into a file first, or leave --checkpoint away."
        )
    return held.st_size


def _entry(name: str, path: Path, size: int, whole: bool) -> dict[str, Any]:
    """What a file is known by."""
    try:
        with path.open("rb") as file:
            if whole:
                return {"name": name, "size": size, "digest": hashlib.file_digest(file, "sha256").hexdigest()}
            ends = hashlib.sha256(file.read(ENDS))
            file.seek(max(0, size - ENDS))
            ends.update(file.read(ENDS))
            changed = os.fstat(file.fileno()).st_mtime_ns
    except OSError as error:
        raise _unread(path, error) from None
    return {"name": name, "size": size, "ends": ends.hexdigest(), "changed": changed}


def _unread(path: Path, error: Exception) -> InputError:
    why = getattr(error, "strerror", None) or error
    return InputError(f"{printable(path)!r} could not be opened: {why}. Expected a file that may be read.")


def _refuse_inside(checkpoint: Path, given: Sequence[str], found: Sequence[Path]) -> None:
    """Refuse a checkpoint that is, or would be, one of the files that are read."""
    own = os.path.realpath(checkpoint)
    inside = any(os.path.realpath(path) == own for path in found)
    for one in given:
        path = os.path.abspath(os.path.expanduser(one))
        inside = inside or own == os.path.realpath(path)
        if not os.path.lexists(path):
            inside = inside or _matches(Path(own), Path(os.path.realpath(path)))
    if inside:
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


# --------------------------------------------------------------------------------------------------- what has changed?


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first thing in which two fingerprints differ, in words; None where they agree.

    Examples
    --------
    >>> difference({"options": {"by": "label", "limit": 5}}, {"options": {"by": None, "limit": 5}})
    "by was 'label' and is not given"
    """
    if before == now:
        return None
    mine, theirs = before.get("version"), now.get("version")
    if mine != theirs:
        return f"it was written by Vendimeter {brief(mine)}, and this is {brief(theirs)}"
    old, new = before.get("options"), now.get("options")
    if old != new and isinstance(old, dict) and isinstance(new, dict):
        name = next(name for name in sorted({*old, *new}) if old.get(name) != new.get(name))
        was, is_now = ("not given" if one.get(name) is None else brief(one[name]) for one in (old, new))
        return f"{printable(name, 40)} was {was} and is {is_now}"
    if before.get("kernel") != now.get("kernel"):
        return f"the kernel was {shown(before.get('kernel'))} and is {shown(now.get('kernel'))}"
    if before.get("seed") != now.get("seed"):
        return f"the seed was {brief(before.get('seed'))} and is {brief(now.get('seed'))}"
    return _other_files(before.get("files"), now.get("files"))


def _other_files(old: Any, new: Any) -> str:
    if not isinstance(old, list) or not isinstance(new, list):
        counts = [len(one) if isinstance(one, list) else (one or {}).get("count") for one in (old, new)]
        if counts[0] != counts[1]:
            return f"there were {counts[0]} files and there are {counts[1]}"
        return f"one of the {counts[1]} files has another name, size, content or time of change"
    names, own = [entry["name"] for entry in old], [entry["name"] for entry in new]
    if names != own:
        for one, other, word in ((own, names, "was not there"), (names, own, "is not there any more")):
            extra = next((name for name in one if name not in set(other)), None)
            if extra is not None:
                return f"there were {len(old):,} files and there are {len(new):,}; {extra!r} {word}"
        return "the files come in another order, or another number of times"
    was, entry = next((was, entry) for was, entry in zip(old, new, strict=True) if was != entry)
    if was["size"] != entry["size"]:
        return f"{entry['name']!r} had {was['size']:,} bytes and has {entry['size']:,}"
    if was.get("changed") != entry.get("changed") and was.get("ends") == entry.get("ends"):
        return f"{entry['name']!r} has been written since"
    return f"{entry['name']!r} has other contents"
