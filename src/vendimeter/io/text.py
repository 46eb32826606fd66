"""Files of text: lines, SMILES, FASTA and tables of cells; those of JSON are in `json`.

All are read line by line, gzipped or not, from files or standard input; a broken record is named by its line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from vendimeter.data.collection import Broken
from vendimeter.errors import InputError, UnknownNameError
from vendimeter.io.base import Sequential
from vendimeter.io.sources import RAISED, RECORD_PART, File, begins_object
from vendimeter.io.text_forms import parse_number, record_kind
from vendimeter.messages import brief
from vendimeter.present.numbers import format_bytes

__all__ = ["Delimited", "Fasta", "Lines", "Smiles"]

_NO_LETTER = re.compile(r"[^A-Za-z]")
_GAPS = "-.~"
MOST_PIECES = 1 << 20  # pieces of a text that are held: each takes 50 bytes and more, however short it is
# Words in the first line of a single column from which on it may be a sample and not a name.
SENTENCE = 4


class Lines(Sequential):
    r"""One text a line; empty lines are skipped.

    Examples
    --------
    >>> import io
    >>> file = File(None, ".txt", io.BytesIO(b"a dog\n\ntwo boats\n"))
    >>> part = next(Lines(file, Broken()).parts(["text"], 100))
    >>> part.columns, part.place(1)
    ({'text': ['a dog', 'two boats']}, 'line 3 of standard input')
    """

    samples = "text"
    untyped = True

    def names(self) -> list[str]:
        """The column "text"."""
        return [] if self.first() is None else ["text"]

    def records(self) -> Iterator[tuple[int, tuple[str]]]:
        """Lines that are not blank."""
        for number, line, fault in self.file.lines():
            if fault:
                self.broken.add(self.file.line(number), fault)
            elif line and not line.isspace():
                yield number, (line,)


class Smiles(Sequential):
    r"""One molecule a line: its SMILES and, after white space, its name, which is all the rest of the line or "".

    A first line that names its columns ("SMILES", "canonical_smiles ID") and lines that begin with "#", as no SMILES
    does, are skipped. Whether a SMILES makes sense is for the kernel to say.

    Examples
    --------
    >>> import io
    >>> file = File(None, ".smi", io.BytesIO(b"smiles name\nCCO ethanol\nc1ccccc1\tbenzene ring\n"))
    >>> next(Smiles(file, Broken()).parts(None, 100)).columns
    {'smiles': ['CCO', 'c1ccccc1'], 'name': ['ethanol', 'benzene ring']}
    """

    samples = "smiles"
    id = "name"
    kind = "molecules"

    def names(self) -> list[str]:
        """The columns "smiles" and "name"."""
        return [] if self.first() is None else ["smiles", "name"]

    def records(self) -> Iterator[tuple[int, tuple[str, str]]]:
        """SMILES and names."""
        head = True
        for number, line, fault in self.file.lines():
            if fault:
                self.broken.add(self.file.line(number), fault)
                continue
            words = line.split(None, 1)
            if not words or words[0].startswith("#"):
                continue
            if head and words[0].strip('"').lower().endswith("smiles"):
                head = False
                continue
            head = False
            if "," in words[0]:
                self.broken.add(
                    self.file.line(number),
                    f"has a comma in {brief(words[0])}, and no SMILES has one; expected white space before the name",
                    "A table with commas is a .csv file.",
                )
                continue
            yield number, (words[0], words[1].rstrip() if len(words) > 1 else "")


class Fasta(Sequential):
    r"""Sequences under headers: ">id description", then lines of letters.

    The text is kept as it is, in upper or lower case, without white space and without a "*" at its end. Gaps are an
    error: what is compared are sequences, and the gaps of an alignment are no part of them. Lines that begin with ";"
    are comments.

    Examples
    --------
    >>> import io
    >>> file = File(None, ".fasta", io.BytesIO(b">sp1 a peptide\nMKV\nLA*\n>sp2\nMKVT\n"))
    >>> part = next(Fasta(file, Broken()).parts(None, 100))
    >>> part.columns
    {'sequence': ['MKVLA', 'MKVT'], 'id': ['sp1', 'sp2'], 'description': ['a peptide', '']}
    >>> part.place(1)
    'line 4 of standard input'
    """

    samples = "sequence"
    id = "id"
    kind = "sequences"

    def names(self) -> list[str]:
        """The columns "sequence", "id" and "description"."""
        return [] if self.first() is None else ["sequence", "id", "description"]

    def records(self) -> Iterator[tuple[int, tuple[str, str, str]]]:
        """Sequences with what their headers say, at the lines of the headers."""
        start, header, pieces, is_sound, size = 0, "", [], True, 0
        small_size = self.file.max_record // RECORD_PART
        for number, line, fault in self.file.lines():
            if line.startswith(">") or (fault and not start):
                if start and is_sound and self._check_complete(start, pieces):
                    yield start, _parse_entry(header, pieces)
                start, header, pieces, is_sound, size = number, line[1:], [], True, 0
            elif line.startswith(";"):
                continue
            elif is_sound and not fault:
                piece = "".join(line.split())
                if not start and piece:
                    start, is_sound = number, False  # what follows belongs to no header: one broken record
                    self.broken.add(
                        self.file.line(number),
                        f"is {brief(line)} and stands before any header; expected a line with '>' and a name first",
                    )
                elif piece:
                    pieces.append(piece)
                    size += len(piece)
                    is_sound = self._check_letters(number, piece, pieces)
                    if len(pieces) > MOST_PIECES:
                        pieces = ["".join(pieces)]
                    if size > small_size and is_sound and size > self.file.record_limit:
                        is_sound, pieces = False, []
                        self.broken.add(self.file.line(start), self.file.too_large())
            if fault and is_sound:
                is_sound = False
                self.broken.add(self.file.line(number), fault)
        if start and is_sound and self._check_complete(start, pieces):
            yield start, _parse_entry(header, pieces)

    def _check_letters(self, number: int, piece: str, pieces: list[str]) -> bool:
        """Whether a line holds letters; a "*" at its end is sound if nothing follows it."""
        other = _NO_LETTER.search(piece.removesuffix("*"))
        mark = other[0] if other else "*" if len(pieces) > 1 and pieces[-2].endswith("*") else ""
        if not mark:
            return True
        advice = "Take the gaps of an alignment out first." if mark in _GAPS else ""
        where = "inside a sequence" if mark == "*" else "in a sequence"
        self.broken.add(self.file.line(number), f"has {mark!r} {where}; expected letters alone", advice)
        return False

    def _check_complete(self, start: int, pieces: list[str]) -> bool:
        if pieces and pieces != ["*"]:
            return True
        self.broken.add(
            self.file.line(start), "is a header without a sequence; expected one on the lines after it"
        )
        return False


def _parse_entry(header: str, pieces: list[str]) -> tuple[str, str, str]:
    words = header.split(None, 1)
    return (
        "".join(pieces).removesuffix("*"),
        words[0] if words else "",
        words[1].strip() if len(words) > 1 else "",
    )


class Delimited(Sequential):
    r"""A table with commas (.csv) or tabs (.tsv) between its cells and the names of its columns in the first line.

    Cells stay texts; `numbers` and `vectors` turn columns of them into what they stand for. A cell in double quotes may
    hold separators, line breaks (they become line feeds) and, doubled, quotes (RFC 4180). Empty lines are skipped.

    Examples
    --------
    >>> import io
    >>> file = File(None, ".csv", io.BytesIO(b'text,n\n"a dog, a cat",1\n"a ""boat"" at sea",2\n'))
    >>> next(Delimited(file, Broken()).parts(None, 100)).columns
    {'text': ['a dog, a cat', 'a "boat" at sea'], 'n': ['1', '2']}
    """

    cells = True

    def __init__(self, file: File, broken: Broken):
        super().__init__(file, broken)
        self._separator = "\t" if file.ending == ".tsv" else ","
        self._names: list[str] | None = None
        self._head = 1  # the line with the names
        self._quotes = False  # whether there were any so far

    def names(self) -> list[str]:
        """The first line's cells."""
        self.first()
        return self._names or []

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Rows of cells below the first line, at the lines where they begin."""
        for number, cells, fault in self._rows():
            if self._names is None:
                self._names, self._head = self._check_names(number, cells, fault), number
                continue
            if not fault and len(cells) != len(self._names):
                fault = f"has {len(cells)} cells and the first line names {len(self._names)} columns; expected as many"
                advice = f"Put a cell that holds {self._separator!r} into double quotes."
                self.broken.add(self.file.line(number), fault, advice)
            elif fault:
                self.broken.add(self.file.line(number), fault)
            else:
                yield number, cells

    def header_error(self) -> InputError | None:
        """The error for a first line that is a record: taken for names, it would be lost in silence."""
        seen = self._header_as_record()
        if seen is None:
            return None
        return InputError(
            f"{self._no_header_text(seen)} If it is a name after all, ask for the column by it, with "
            "samples= (--column)."
        )

    def missing_column_error(self, name: str) -> InputError:
        """The error for a column that is missing; where the first line is a record and no header, it says so."""
        seen = self._header_as_record() or ("a sentence" if self.is_header_doubtful() else None)
        if seen is None:
            return super().missing_column_error(name)
        return UnknownNameError(f"there is no column {brief(name)}: {self._no_header_text(seen)}")

    def is_header_doubtful(self) -> bool:
        """Whether the name of the only column is as long as a sentence, and may be one."""
        names = self.names()
        return len(names) == 1 and len(names[0].split()) >= SENTENCE

    def _header_as_record(self) -> str | None:
        """The kind of record that the first line is, where it is plainly one like that below it; None otherwise."""
        first_record = self.first()
        if first_record is None:
            return None
        kinds = (record_kind(*pair) for pair in zip(self.names(), first_record, strict=True))
        return next((one for one in kinds if one is not None), None)

    def _no_header_text(self, seen: str) -> str:
        names = self.names()
        header = brief(self._separator.join(names))
        columns = "the name of a column" if len(names) == 1 else "names of columns"
        return (
            f"{self.file.line(self._head)} is {header}, which looks like {seen} and not like {columns}: the file seems "
            f"to have no header. {self.header_advice(names)}"
        )

    def header_advice(self, names: list[str]) -> str:
        """What to do about a file without a header."""
        name = "a name" if len(names) == 1 else "names"
        if len(names) > 1 or self._quotes:
            return f"Write {name} above it."
        return f"Write {name} above it, or read every line as a sample, with format='txt' (--format txt)."

    def _check_names(self, number: int, names: list[str], fault: str) -> list[str]:
        place = self.file.line(number)
        if fault:
            raise InputError(f"{place} {fault}. Mend it: it names the columns.")
        repeated_name = next((name for name, count in Counter(names).items() if count > 1), None)
        if repeated_name is not None:
            raise InputError(
                f"{place} names the column {brief(repeated_name)} twice; expected different names."
            )
        if all(value is not None and value == value for value in map(parse_number, names)):
            raise InputError(
                f"{place} holds numbers; expected the names of the columns in the first line. "
                f"{self.header_advice(names)}"
            )
        if len(names) == 1 and any(mark in names[0] for mark in {",", ";", "\t", "|"} - {self._separator}):
            raise InputError(
                f"{place} is {brief(names[0])}; expected columns separated by {self._separator!r}. Save the file as "
                "plain .csv (commas) or .tsv (tabs)."
            )
        return names

    def _rows(self) -> Iterator[tuple[int, list[str], str]]:
        """Rows with the line where each begins and what is wrong with it.

        Not by the csv module: its limit on the length of a cell belongs to the whole process.
        """
        lines, small_size = self.file.lines(self._separator.encode()), self.file.max_record // RECORD_PART
        for number, line, fault in lines:
            if len(line) > small_size:
                fault = fault or self.file.too_many_values(line, self._separator)
            if self._names is None and begins_object(line):
                raise InputError(
                    f"{self.file.line(number)} is {brief(line)}, as in a file of JSON lines; expected the names of "
                    'columns. Read it with format="jsonl" (--format jsonl).'
                )
            if '"' not in line:
                if line or fault:
                    yield number, [] if fault else line.split(self._separator), fault
                continue
            self._quotes = True
            cells, position, size = [], 0, len(line)
            while True:
                if line.startswith('"', position):
                    cell, line, position, quoted_fault, size = self._quoted_cell(
                        number, line, position + 1, lines, size
                    )
                    fault = fault or quoted_fault
                    end = line.find(self._separator, position)
                    rest = line[position : end if end >= 0 else None]
                    if rest:
                        fault = fault or (
                            f"has {brief(rest)} after the quote that ends a cell; expected {self._separator!r} there, "
                            "and quotes inside a quoted cell doubled"
                        )
                else:
                    end = line.find(self._separator, position)
                    cell = line[position : end if end >= 0 else None]
                if not fault:
                    cells.append(cell)
                if end < 0:
                    break
                position = end + 1
            yield number, cells, fault

    def _quoted_cell(
        self, number: int, line: str, at: int, lines: Iterator[tuple[int, str, str]], size: int
    ) -> tuple[str, str, int, str, int]:
        """A cell from after its first quote; the line on which it ends, where it goes on there, and what is wrong.

        `size` is that of the row so far. What is too large for a record is not kept.
        """
        pieces, fault = [], ""
        while True:
            if len(pieces) > MOST_PIECES:
                pieces = ["".join(pieces)]
            end = line.find('"', at)
            if end < 0:
                pieces += [line[at:], "\n"]
                following = next(lines, None)
                if following is None:
                    raise InputError(
                        f"{self.file.line(number)} opens a quote that is never closed, so that the rows after it "
                        "cannot be told apart; expected a second one. Close it, or double a quote that is part of a "
                        "quoted cell."
                    )
                _, line, line_fault = following
                at, size, fault = 0, size + 1 + len(line), fault or line_fault
                if size > self.file.record_limit:
                    pieces, limit = [], format_bytes(self.file.record_limit)
                    fault = fault or (
                        f"goes on for more than {limit} in a quoted cell; expected the quote to be "
                        "closed, and a record "
                        f"of at most {limit}, unless {RAISED}"
                    )
                    if not self.broken.skip:  # to find the end of the row, the whole file may have to be read
                        self.broken.add(self.file.line(number), fault)
            elif line.startswith('"', end + 1):
                pieces.append(line[at : end + 1])
                at = end + 2
            else:
                pieces.append(line[at:end])
                return "".join(pieces), line, end + 1, fault, size
