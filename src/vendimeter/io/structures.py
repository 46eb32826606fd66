"""Files of chemical structures: SDF, read by RDKit."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from vendimeter.data.collection import Broken, Place
from vendimeter.data.molecules import MOST_ATOMS, SQUARES, too_many
from vendimeter.errors import InputError
from vendimeter.io.base import Part, Reader
from vendimeter.io.sources import CHUNK, File, count_values, guarded
from vendimeter.messages import brief
from vendimeter.optional import require
from vendimeter.present.text import printable

__all__ = ["Sdf"]

END = b"$$$$"
LONGEST_NAME = 4096  # bytes of the name of a data field: more is no name
FIXED_COLUMNS = ("molecule", "name")
HEAD_KEPT = 8192  # bytes of a structure that is too large: its head, where the fields are not
_COUNTS, _GOES_ON = re.compile(rb"COUNTS\s+(\d+)", re.IGNORECASE), re.compile(rb"-\s*\n\s*M\s+V30\s")
_FIELD = re.compile(rb"^>.*", re.MULTILINE)


class _Entry(NamedTuple):
    number: int  # from 1
    line: int  # where it begins
    text: bytes
    ended: bool  # by its own mark
    over: bool = False  # whether it is too large for a record, of which only the beginning is here


class Sdf(Reader):
    """A file of structures, plain or gzipped.

    Columns are "molecule" (RDKit's), "name" (the title line) and the data fields of the first structure, as texts; a
    field that is itself called "molecule" or "name" is "name (field)".

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from rdkit import Chem
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "a.sdf")
    >>> with Chem.SDWriter(str(path)) as writer:
    ...     for smiles in ("CCO", "c1ccccc1"):
    ...         writer.write(Chem.MolFromSmiles(smiles))
    >>> reader = Sdf(File.of(path), Broken())
    >>> [molecule.GetNumAtoms() for part in reader.parts(["molecule"], 100) for molecule in part.columns["molecule"]]
    [3, 6]
    >>> folder.cleanup()
    """

    samples: str | None = "molecule"
    kind: str | None = "molecules"

    def __init__(self, file: File, broken: Broken):
        super().__init__(file, broken)
        self._entries = self._read_entries()
        self._first: _Entry | None = None
        self._names: list[str] | None = None

    def names(self) -> list[str]:
        """The molecule, its name, and the fields of the first structure."""
        if self._names is None:
            self._first = next(self._entries, None)
            fields = [] if self._first is None else _field_names(self._first.text)
            fixed = [] if self._first is None else list(FIXED_COLUMNS)
            self._names = fixed + [_column_name(name) for name in fields]
        return self._names

    def parts(self, columns: Sequence[str] | None, size: int) -> Iterator[Part]:
        """Parts with these columns; all structures are parsed, whatever is read, so that broken ones are left out."""
        names = self.names()
        columns_read = names if columns is None else list(columns)
        if self._first is None:
            return
        rows: list[tuple[Place, list[Any]]] = []
        atoms_squared = 0
        entry: _Entry | None = self._first
        while entry is not None:
            place = self.file.place(f"structure {entry.number} (line {entry.line})")
            row = self._parse_row(entry, columns_read, place)
            if row is not None:
                rows.append((place, row))
                atoms_squared += min(len(entry.text), MOST_ATOMS) ** 2
            entry = next(self._entries, None)
            if rows and (len(rows) == size or atoms_squared > SQUARES or entry is None):
                yield _part(columns_read, rows)
                rows, atoms_squared = [], 0

    def _parse_row(self, entry: _Entry, columns: Sequence[str], place: str) -> list[Any] | None:
        """The values of one structure, or None where it is broken."""
        if entry.over:
            self.broken.add(place, self.file.too_large())
            return None
        if not entry.ended and (entry.number > 1 or b"M  END" not in entry.text):
            self.broken.add(place, "has no end ($$$$): the file was cut short", "Get it again.")
            return None
        atoms = _atom_count(entry.text)
        if atoms > MOST_ATOMS:
            self.broken.add(place, too_many(atoms))
            return None
        molecule, reason = _parse(entry.text)
        if molecule is None:
            self.broken.add(place, f"cannot be read by RDKit: {reason}")
            return None
        values: dict[str, Any] = {"molecule": molecule}
        for name in columns:
            field = name if name == "name" else _field_name(name)
            try:
                if name == "name":
                    values[name] = molecule.GetProp("_Name") if molecule.HasProp("_Name") else ""
                elif name != "molecule":
                    values[name] = molecule.GetProp(field) if molecule.HasProp(field) else None
            except UnicodeDecodeError:
                self.broken.add(
                    place, f"has a field {brief(name)} that is not UTF-8 text", "Save the file as UTF-8."
                )
                return None
            if name in values and values[name] is None:
                self.broken.add(place, f"has no field {brief(name)}")
                return None
        return [values[name] for name in columns]

    def _read_entries(self) -> Iterator[_Entry]:
        """Entries with the lines that they begin at, which RDKit does not report."""
        text = bytearray()  # not a list of lines: those of a few letters take ten times as much
        number, first_line, entry_bytes, is_too_large = 1, 1, 0, False
        for line_number, line in enumerate(_lines(self.file), 1):
            if line_number == 1 and b"\0" in line:
                raise self._no_structures_error()
            entry_bytes += len(line)
            if line.startswith(END):
                text += END + b"\n"
                yield _Entry(number, first_line, bytes(text), True, is_too_large)
                number, first_line, text, entry_bytes, is_too_large = (
                    number + 1,
                    line_number + 1,
                    bytearray(),
                    0,
                    False,
                )
            elif entry_bytes <= self.file.max_record:
                text += line
            elif not is_too_large:
                is_too_large, text = True, text[:HEAD_KEPT]
                # To find the end of the structure, the whole file may have to be read.
                if not self.broken.skip:
                    break
        if is_too_large or text.strip():
            if b"\0" in text or (is_too_large and number == 1 and self.broken.skip):
                raise self._no_structures_error()
            yield _Entry(number, first_line, bytes(text), False, is_too_large)

    def _no_structures_error(self) -> InputError:
        return InputError(
            f"{self.file} is no SDF file: there is no text in it that ends in a line $$$$. Say with format= (--format) "
            "what it is."
        )


def _lines(file: File) -> Iterator[bytes]:
    """Lines, each with a line feed as its end."""
    rest = b""
    with file.open() as opened:
        while True:
            with guarded(file):
                chunk = opened.read(CHUNK)
            if not chunk:
                break
            count_values(opened, chunk.count(b"\n"))
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if len(rest) > CHUNK:  # more than any line of a structure has: it may as well be several
                lines.append(rest)
                rest = b""
            yield from (line.removesuffix(b"\r") + b"\n" for line in lines)
    if rest:
        yield rest.removesuffix(b"\r") + b"\n"


def _atom_count(text: bytes) -> int:
    """The number of atoms in the head of a structure's block; RDKit reads no more than that.

    In the old form the number has three digits. In the new one a line may go on after a hyphen.
    """
    block = text.partition(b"M  END")[0]
    if len(block) < MOST_ATOMS or b"V30" not in block:
        return 0
    counts = _COUNTS.findall(_GOES_ON.sub(b"", block))
    return max((int(count[:9]) for count in counts), default=0)


def _field_names(text: bytes) -> list[str]:
    """The names of the data fields of an entry, in order."""
    names = (_name_in_header(line[0]) for line in _FIELD.finditer(text))
    return list(dict.fromkeys(name.decode("utf-8", "replace") for name in names if name))


def _name_in_header(line: bytes) -> bytes:
    """The name of the data field that a line begins: what its outermost brackets hold; nothing where it begins none."""
    first, last = line.find(b"<"), line.rfind(b">")
    if first < 0 or b"\r" in line or line.find(b"<", last) >= 0 or last - first > LONGEST_NAME:
        return b""
    return line[first + 1 : last]


def _column_name(field: str) -> str:
    """The name of the column of a data field."""
    return f"{field} (field)" if field in FIXED_COLUMNS else field


def _field_name(name: str) -> str:
    """The name of the data field of a column."""
    return next((fixed for fixed in FIXED_COLUMNS if name == _column_name(fixed)), name)


def _parse(text: bytes) -> tuple[Any, str]:
    """The molecule of an entry, or None and the reason; RDKit's own log stays silent."""
    chem = require("rdkit.Chem", extra="molecules", purpose="reading SDF files")
    log = require("rdkit.rdBase", extra="molecules", purpose="reading SDF files")
    with log.BlockLogs():
        molecule = next(iter(chem.ForwardSDMolSupplier(io.BytesIO(text))), None)
        if molecule is not None:
            return molecule, ""
        unsanitized = next(iter(chem.ForwardSDMolSupplier(io.BytesIO(text), sanitize=False)), None)
        if unsanitized is None:
            return None, "its block of atoms and bonds is not valid"
        try:
            chem.SanitizeMol(unsanitized)
        except ValueError as error:
            return None, printable(str(error).strip().rstrip("."), 200)
        return None, "it is not a valid molecule"


def _part(wanted: Sequence[str], rows: list[tuple[Place, list[Any]]]) -> Part:
    places = [place for place, _ in rows]
    columns = {name: [row[i] for _, row in rows] for i, name in enumerate(wanted)}
    return Part(columns, lambda i: places[i])
