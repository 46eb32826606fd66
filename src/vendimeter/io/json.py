"""Files of JSON: a value a line, or one array of them. A record is an object; texts and vectors may stand alone."""

from __future__ import annotations

import codecs
import itertools
import json
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from vendimeter.data.collection import Broken
from vendimeter.errors import InputError, brief
from vendimeter.io.base import Part, Sequential, places
from vendimeter.io.sources import BOM, CHUNK, RECORD_PART, File, guarded, note

__all__ = ["Json", "is_vector"]

_WHITE = re.compile(r"[ \t\n\r]*")
_ENDS = frozenset(",] \t\n\r")  # what may follow an element of an array
# What matters of an element that is passed over: in a text, in lists and objects, and outside of all.
_IN_TEXT, _NESTED, _ENDING = re.compile(r'["\\]'), re.compile(r'["\[\]{}]'), re.compile(r'["\[\]{},]')
LOOKED_AT = 100  # sound records that tell the fields and their types
_LONGEST_TOKEN = 16  # characters: an error this near the end of a piece may come from a token cut in two
_TOO_DEEP = "is nested too deeply to be a sample; expected values, lists and objects a few levels deep"
_TYPES: dict[type, str] = {
    str: "a text", bool: "a truth value", int: "a number", float: "a number", list: "a list", dict: "an object",
}  # fmt: skip
_INFINITE = (math.inf, -math.inf)
_NUMBERS = ({int}, {float}, {int, float})


def is_vector(value: Any) -> bool:
    """Whether this is a list of numbers, with at least one; truth values are none."""
    return isinstance(value, list) and set(map(type, value)) in _NUMBERS


def _most(values: Iterable[Any]) -> Any:
    """The value that comes most often; of several the first."""
    return Counter(values).most_common(1)[0][0]


class Json(Sequential):
    r"""Records in JSON: objects, one a line (.jsonl, .ndjson) or in one array (.json).

    The fields of the first hundred records are the columns, and what most of these records have in a field is its
    type. Lists of numbers become rows of a float64 array and must have one length; other lists stay lists. Every field
    that is wanted must be there, not null, and of its type. Where a line is a text it is in the column "text", where it
    is a number or a list in the column "data".

    Examples
    --------
    >>> import io
    >>> lines = b'{"text": "a dog", "vector": [1, 0]}\n{"text": "a cat", "vector": [0.5, 1]}\n'
    >>> reader = Json(File(None, ".jsonl", io.BytesIO(lines)), Broken())
    >>> reader.names()
    ['text', 'vector']
    >>> next(reader.parts(["vector"], 100)).columns
    {'vector': array([[1. , 0. ], [0.5, 1. ]])}
    """

    def __init__(self, file: File, broken: Broken):
        super().__init__(file, broken)
        self._fault = ""  # of the value that is being decoded
        self._decoder = json.JSONDecoder(object_pairs_hook=self._object, parse_constant=self._constant)
        self._seen: list[
            Any
        ] = []  # the first records, until they are read; from `names` on those of one form
        self._names: list[str] | None = None
        self._usual: list[str] = []

    def names(self) -> list[str]:
        """The fields of the first records, in the order in which they appear."""
        if self._names is None:
            self.first()
            if not self._seen:
                self._names = []
            elif _most(isinstance(value, dict) for value in self._seen):
                self._seen = [value for value in self._seen if isinstance(value, dict)]
                self._names = list(dict.fromkeys(itertools.chain.from_iterable(self._seen)))
                usual = _most(map(frozenset, self._seen))
                self._usual = [name for name in self._names if name in usual]
            else:
                bare = [value for value in self._seen if not isinstance(value, dict)]
                self.samples = "text" if _most(isinstance(value, str) for value in bare) else "data"
                self._seen = [{self.samples: value} for value in bare]
                self._names = self._usual = [self.samples]
        return list(self._names)

    def usual(self) -> list[str]:
        """The fields that most of the first records have, and no others."""
        self.names()
        return list(self._usual)

    def place(self, where: tuple[int, int]) -> str:
        """The line of a record, and which it is where a line may hold several."""
        record, line = where
        return f"record {record} (line {line}) of {self.file}" if record else self.file.line(line)

    def records(self) -> Iterator[tuple[tuple[int, int], Any]]:
        """Values at their places; in a file of lines the number of the record is left 0."""
        listed = self.file.ending == ".json" and self.file.head().removeprefix(BOM).lstrip()[:1] == b"["
        coming = self._elements() if listed else self._lines()
        ahead, trouble = self._look(coming)
        for where, value, fault in itertools.chain(ahead, coming):
            fault = fault or self._unusable(value)
            if fault:
                self.broken.add(self.place(where), fault)
            else:
                yield where, value
        if trouble is not None:
            raise trouble

    def _look(self, coming: Iterator[Any]) -> tuple[list[Any], InputError | None]:
        """What comes first and what ended it; whatever is wrong there is an error only when it is its turn."""
        ahead = []
        try:
            for where, value, fault in coming:
                ahead.append((where, value, fault))
                if not fault and not self._unusable(value):
                    self._seen.append(value)
                elif not self.broken.skip:
                    break  # nothing after it will be read
                if len(self._seen) == LOOKED_AT:
                    break
        except InputError as error:
            return ahead, error
        return ahead, None

    def parts(self, columns: Sequence[str] | None, size: int) -> Iterator[Part]:
        """Parts of at most `size` records; without `columns` they must have the usual fields and no others."""
        names = self.names()
        table = _Table(self._usual if columns is None else columns, columns is None, self._seen, self.strict)
        self._seen = []
        bare, known = bool(self.samples), []
        for where, value in self.remaining():
            if isinstance(value, dict) == bare:
                others = "are none" if bare else "are objects"
                fault = f"is {brief(value)} and other records {others}; expected one form"
            else:
                fault = table.add({names[0]: value} if bare else value)
            if fault:
                self.broken.add(self.place(where), fault)
                continue
            known.append(where)
            if len(known) == size:
                yield Part(table.taken(), places(self, known))
                known = []
        if known:
            yield Part(table.taken(), places(self, known))

    # ------------------------------------------------------------------------------------------------ text → values

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = _most(name for name, _ in pairs)
            self._fault = f"has the field {brief(twice)} twice; expected each field once"
        return found

    def _constant(self, name: str) -> None:
        self._fault = f"holds {name}, which is no JSON; expected finite numbers"

    def _unusable(self, value: Any) -> str:
        """What keeps a value of valid JSON from being a record."""
        if value == {}:
            return "is an object without fields; expected at least one"
        if value is None or isinstance(value, bool):
            return f"is {json.dumps(value)}; expected an object {{…}}, a text, or a list of numbers"
        return ""

    def _halves(self, text: str, value: Any) -> str:
        r"""Half of a pair of escapes, such as \ud83d alone, stands for no character and cannot be written again."""
        if "\\ud" in text or "\\uD" in text:
            try:
                json.dumps(value, ensure_ascii=False).encode("utf-8")
            except UnicodeEncodeError:
                return "holds half of a surrogate pair (\\ud800 … \\udfff), which is no character; expected both halves"
        return ""

    def _lines(self) -> Iterator[tuple[tuple[int, int], Any, str]]:
        plenty = self.file.max_record // RECORD_PART
        for number, line, fault in self.file.lines(b","):
            if not fault and (not line or line.isspace()):
                continue
            value, self._fault = None, ""
            if len(line) > plenty:
                fault = fault or self.file.crowded(line)
            if not fault:
                try:
                    value = self._decoder.decode(line)
                    fault = self._fault or self._halves(line, value)
                except json.JSONDecodeError as error:
                    fault = f"is not valid JSON: {error.msg} (column {error.colno}); expected one value on each line"
                    if line.strip() in ("[", "{"):
                        fault += ", and one array of records in a .json file"
                except RecursionError:
                    fault = _TOO_DEEP
                except ValueError as error:  # a whole number of thousands of digits
                    fault = f"holds a number that cannot be read: {error}"
            yield (0, number), value, fault

    def _elements(self) -> Iterator[tuple[tuple[int, int], Any, str]]:
        """The values of one array, read piece by piece. Where its grammar breaks nothing after can be read."""
        text = _Text(self.file)
        text.next()
        text.at += 1  # the bracket that opens it
        record, after = 0, text.next()
        while after != "]":
            record += 1
            text.next()
            where, self._fault = (record, text.line()), ""
            try:
                value, end = self._element(text)
            except _TooLarge as error:
                yield where, None, str(error)
                text.skip()
                value, end = None, text.at
            except InputError:  # which is a ValueError
                raise
            except RecursionError:
                raise InputError(f"{self.place(where)} {_TOO_DEEP}.") from None
            except ValueError as error:
                why = error.msg if isinstance(error, json.JSONDecodeError) else error
                raise InputError(
                    f"{self.place(where)} is not valid JSON: {why}; expected one array of records, [{{…}}, {{…}}]."
                ) from None
            if end > text.at:
                size, most = end - text.at, self.file.max_record
                fault = self._fault or self._halves(text.buffer[text.at : end], value)
                text.at = end
                yield where, value, self.file.too_large(size) if size > most else fault
            after = text.next()
            if after == ",":
                text.at += 1
            elif after != "]":
                seen = f"goes on with {brief(after)}" if after else "was cut short"
                raise InputError(
                    f"{self.file} {seen} after record {record} (line {text.line()}); expected ',' or the end of the "
                    "array, ']'."
                )
        text.at += 1
        if text.next():
            raise InputError(
                f"{self.file.line(text.line())} goes on after the end of its array; expected one array. If every line "
                "is a record, name the file .jsonl."
            )

    def _element(self, text: _Text) -> tuple[Any, int]:
        while True:
            try:
                value, end = self._decoder.raw_decode(text.buffer, text.at)
                # A number may go on: of 5.25 a piece may hold 5 or 5. as yet.
                sure = text.buffer[end : end + 1] in _ENDS or end <= len(text.buffer) - _LONGEST_TOKEN
                if sure or not text.more():
                    return value, end
            except json.JSONDecodeError as error:
                near = error.pos > len(text.buffer) - _LONGEST_TOKEN or error.msg.startswith(
                    "Unterminated string"
                )
                if not near or not text.more():
                    raise
            self._fault = ""


class _TooLarge(Exception):
    """What is wrong with an element that is too large for a record."""


class _Text:
    """The text of a file from a place on that moves, with as much of what follows as was asked for."""

    def __init__(self, file: File):
        self._file, self._pieces = file, self._decoded()
        self.buffer, self.at = "", 0
        self._line, self._counted = 1, 0

    def _decoded(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        try:
            with self._file.open() as source, guarded(self._file):
                while chunk := source.read(CHUNK):
                    note(source, chunk.count(b","))
                    self._file.packed = getattr(source, "packed_bytes", None)
                    yield decoder.decode(chunk)
                yield decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise InputError(f"{self._file} is not UTF-8 text; expected UTF-8. Save it as UTF-8.") from None

    def more(self) -> bool:
        """Read on, as much again as is held; whether there was something."""
        self.line()
        held = [self.buffer[self.at :]]
        fault = self._file.too_large() if len(held[0]) > self._file.most else self._file.crowded(held[0])
        if fault:
            raise _TooLarge(fault)
        wanted = max(1, min(len(held[0]), self._file.max_record + CHUNK - len(held[0])))
        while wanted > 0 and (piece := next(self._pieces, None)) is not None:
            held.append(piece)
            wanted -= len(piece)
        grown = any(held[1:])
        self.buffer, self.at, self._counted = "".join(held), 0, 0
        return grown

    def skip(self) -> None:
        """Go behind the value at this place, whatever its size, without holding it."""
        depth, inside = 0, False
        while True:
            found = (_IN_TEXT if inside else _NESTED if depth else _ENDING).search(self.buffer, self.at)
            if found is None:
                self.line()
                piece = next(self._pieces, None)
                self.buffer, self.at, self._counted = piece or "", 0, 0
                if piece is None:
                    return
                continue
            mark, self.at = found[0], found.end()
            if mark == "\\":  # the next character stands for itself
                self.at += 1
                if self.at > len(self.buffer):
                    self.line()
                    self.buffer, self.at, self._counted = next(self._pieces, ""), 1, 0
            elif mark == '"':
                inside = not inside
            elif mark in "[{":
                depth += 1
            elif depth:
                depth -= 1
            else:  # what ends the value stays
                self.at -= 1
                return

    def line(self) -> int:
        """The number of the line at this place."""
        self._line += self.buffer.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def next(self) -> str:
        """The next character that is no white space, where the place is then; "" at the end."""
        while True:
            found = _WHITE.match(self.buffer, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if not self.more():
                return ""


class _Table:
    """Columns that grow by records; most of those that were seen before say what each column holds."""

    def __init__(
        self, wanted: Sequence[str], exactly: bool, seen: Sequence[dict[str, Any]], strict: str | None = None
    ):
        self._wanted = list(wanted)
        self._strict = self._wanted[0] if strict is None and len(self._wanted) == 1 else strict
        self._exactly = frozenset(wanted) if exactly else None
        self._types: dict[str, str] = {}
        self._widths: dict[str, int] = {}  # of the columns of vectors
        self._held: dict[str, Any] = {}
        for name in self._wanted:
            self._learn(name, [record[name] for record in seen if record.get(name) is not None])

    def _learn(self, name: str, values: Sequence[Any]) -> None:
        if not values:
            return
        self._types[name] = _most(_TYPES[type(value)] for value in values)
        lists = [value for value in values if isinstance(value, list)]
        if self._types[name] == "a list" and _most(map(is_vector, lists)):
            widths = [len(value) for value in lists if is_vector(value)]
            # Lists beside the samples stay lists, and those of a table if it is plain that they are no vectors.
            if name == self._strict or (self._strict is None and len(set(widths)) == 1):
                self._widths[name] = _most(widths)

    def add(self, record: dict[str, Any]) -> str:
        """Take a record, all of it or nothing; what is wrong with it, "" as a rule."""
        if self._exactly is not None and record.keys() != self._exactly:
            odd = ", ".join(sorted(map(brief, record.keys() ^ self._exactly))[:8])
            return f"differs from other records in its fields: {odd}; expected the same fields"
        for name in self._wanted:
            value = record.get(name)
            if type(value) is str and self._types.get(name) == "a text":
                continue  # most values by far
            fault = self._fault(name, value, name in record)
            if fault:
                return fault
        if len(self._types) < len(self._wanted):  # of some no value was seen
            for name in self._wanted:
                if name not in self._types:
                    self._learn(name, [record[name]])
        for name in self._wanted:
            if name in self._widths:
                self._held.setdefault(name, array("d")).extend(record[name])
            else:
                self._held.setdefault(name, []).append(record[name])
        return ""

    def _fault(self, name: str, value: Any, there: bool) -> str:
        if value is None:
            seen = f"has null in the field {brief(name)}" if there else f"has no field {brief(name)}"
            return f"{seen}; expected a value"
        kind = _TYPES[type(value)]
        if kind != self._types.get(name, kind):
            return (
                f"has {kind}, {brief(value)}, in the field {brief(name)} and other records {self._types[name]}; "
                "expected one type"
            )
        numeric = is_vector(value)
        width = self._widths.get(name)
        if width is not None and (not numeric or len(value) != width):
            seen = f"{len(value)} numbers" if numeric else f"{brief(value)}, which is no list of numbers,"
            return f"has {seen} in the field {brief(name)} and other records {width} numbers; expected one length"
        try:
            finite = (
                all(map(math.isfinite, value)) if numeric else not (kind == "a number" and value in _INFINITE)
            )
        except OverflowError:
            finite = False
        return "" if finite else f"holds a number in the field {brief(name)} that is beyond any float64"

    def taken(self) -> dict[str, Any]:
        """The columns, which begin anew."""
        held, self._held = self._held, {}
        return {
            name: np.frombuffer(held[name]).reshape(-1, self._widths[name])
            if name in self._widths
            else held[name]
            for name in self._wanted
        }
