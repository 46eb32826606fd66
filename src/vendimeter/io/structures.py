"""Files of chemical structures: SDF, read by RDKit."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from vendimeter.data.collection import Broken
from vendimeter.data.molecules import MOST_ATOMS, SQUARES, too_many
from vendimeter.errors import InputError, brief, printable
from vendimeter.io.base import Part, Reader
from vendimeter.io.sources import CHUNK, File, guarded, count_values
from vendimeter.optional import require

__all__ = ["Sdf"]

END = b"$$$$"
LONGEST_NAME = 4096  # bytes of the name of a data field: more is no name
OWN = ("molecule", "name")
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
        self._entries = self._split()
        self._first: _Entry | None = None
        self._names: list[str] | None = None

    def names(self) -> list[str]:
        """The molecule, its name, and the fields of the first structure."""
        if self._names is None:
            self._first = next(self._entries, None)
            fields = [] if self._first is None else _fields(self._first.text)
            own = [] if self._first is None else list(OWN)
            self._names = own + [_shown(name) for name in fields]
        return self._names

    def parts(self, columns: Sequence[str] | None, size: int) -> Iterator[Part]:
        """Parts with these columns; structures are parsed whatever is wanted, so that broken ones are left out."""
        names = self.names()
        wanted = names if columns is None else list(columns)
        if self._first is None:
            return
        rows: list[tuple[str, list[Any]]] = []
        held = 0
        entry: _Entry | None = self._first
        while entry is not None:
            place = f"structure {entry.number} (line {entry.line}) of {self.file}"
            found = self._row(entry, wanted, place)
            if found is not None:
                rows.append((place, found))
                held += min(len(entry.text), MOST_ATOMS) ** 2
            entry = next(self._entries, None)
            if rows and (len(rows) == size or held > SQUARES or entry is None):
                yield _part(wanted, rows)
                rows, held = [], 0

    def _row(self, entry: _Entry, wanted: Sequence[str], place: str) -> list[Any] | None:
        """The values of one structure, or None where it is broken."""
        if entry.over:
            self.broken.add(place, self.file.too_large())
            return None
        if not entry.ended and (entry.number > 1 or b"M  END" not in entry.text):
            self.broken.add(place, "has no end ($$$$): the file was cut short", "Get it again.")
            return None
        atoms = _atoms(entry.text)
        if atoms > MOST_ATOMS:
            self.broken.add(place, too_many(atoms))
            return None
        molecule, reason = _parsed(entry.text)
        if molecule is None:
            self.broken.add(place, f"cannot be read by RDKit: {reason}")
            return None
        held: dict[str, Any] = {"molecule": molecule}
        for name in wanted:
            field = name if name == "name" else _field(name)
            try:
                if name == "name":
                    held[name] = molecule.GetProp("_Name") if molecule.HasProp("_Name") else ""
                elif name != "molecule":
                    held[name] = molecule.GetProp(field) if molecule.HasProp(field) else None
            except UnicodeDecodeError:
                self.broken.add(
                    place, f"has a field {brief(name)} that is not UTF-8 text", "Save the file as UTF-8."
                )
                return None
            if name in held and held[name] is None:
                self.broken.add(place, f"has no field {brief(name)}")
                return None
        return [held[name] for name in wanted]

    def _split(self) -> Iterator[_Entry]:
        """Entries with the lines that they begin at, which RDKit does not tell."""
        text = bytearray()  # not a list of lines: those of a few letters take ten times as much
        number, first, held, over = 1, 1, 0, False
        for at, line in enumerate(_lines(self.file), 1):
            if at == 1 and b"\0" in line:
                raise self._junk()
            held += len(line)
            if line.startswith(END):
                text += END + b"\n"
                yield _Entry(number, first, bytes(text), True, over)
                number, first, text, held, over = number + 1, at + 1, bytearray(), 0, False
            elif held <= self.file.max_record:
                text += line
            elif not over:
                over, text = True, text[:HEAD_KEPT]
                if (
                    not self.broken.skip
                ):  # to find the end of the structure, the whole file may have to be read
                    break
        if over or text.strip():
            if b"\0" in text or (over and number == 1 and self.broken.skip):
                raise self._junk()
            yield _Entry(number, first, bytes(text), False, over)

    def _junk(self) -> InputError:
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


def _atoms(text: bytes) -> int:
    """How many atoms the block of a structure says that it has; RDKit reads no more than that.

    In the old form the number has three digits. In the new one a line may go on after a hyphen.
    """
    block = text.partition(b"M  END")[0]
    if len(block) < MOST_ATOMS or b"V30" not in block:
        return 0
    counts = _COUNTS.findall(_GOES_ON.sub(b"", block))
    return max((int(count[:9]) for count in counts), default=0)


def _fields(text: bytes) -> list[str]:
    """The names of the data fields of an entry, in order."""
    found = (_name(line[0]) for line in _FIELD.finditer(text))
    return list(dict.fromkeys(name.decode("utf-8", "replace") for name in found if name))


def _name(line: bytes) -> bytes:
    """The name of the data field that a line begins: what its outermost brackets hold; nothing where it begins none."""
    first, last = line.find(b"<"), line.rfind(b">")
    if first < 0 or b"\r" in line or line.find(b"<", last) >= 0 or last - first > LONGEST_NAME:
        return b""
    return line[first + 1 : last]


def _shown(field: str) -> str:
    return f"{field} (field)" if field in OWN else field


def _field(name: str) -> str:
    return next((own for own in OWN if name == _shown(own)), name)


def _parsed(text: bytes) -> tuple[Any, str]:
    """The molecule of an entry, or None and the reason; RDKit's own log stays silent."""
    chem = require("rdkit.Chem", extra="molecules", purpose="reading SDF files")
    log = require("rdkit.rdBase", extra="molecules", purpose="reading SDF files")
    with log.BlockLogs():
        molecule = next(iter(chem.ForwardSDMolSupplier(io.BytesIO(text))), None)
        if molecule is not None:
            return molecule, ""
        loose = next(iter(chem.ForwardSDMolSupplier(io.BytesIO(text), sanitize=False)), None)
        if loose is None:
            return None, "its block of atoms and bonds is not valid"
        try:
            chem.SanitizeMol(loose)
        except ValueError as error:
            return None, printable(str(error).strip().rstrip("."), 200)
        return None, "it is not a valid molecule"


def _part(wanted: Sequence[str], rows: list[tuple[str, list[Any]]]) -> Part:
    places = [place for place, _ in rows]
    columns = {name: [row[i] for _, row in rows] for i, name in enumerate(wanted)}
    return Part(columns, lambda i: places[i])
