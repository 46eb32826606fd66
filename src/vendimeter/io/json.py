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

from vendimeter.data.collection import Broken, Place
from vendimeter.errors import InputError
from vendimeter.io.base import Part, Sequential, record_places
from vendimeter.io.sources import BOM, CHUNK, RECORD_PART, File, count_values, guarded
from vendimeter.messages import brief

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
    """Whether a value is a list of at least one number; truth values are none."""
    return isinstance(value, list) and set(map(type, value)) in _NUMBERS


def _most_common(values: Iterable[Any]) -> Any:
    """The most common value; of several the first."""
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
        # The first records, until they are read; from `names` on those of one form.
        self._first_values: list[Any] = []
        self._names: list[str] | None = None
        self._common_fields: list[str] = []

    def names(self) -> list[str]:
        """The fields of the first records, in the order in which they appear."""
        if self._names is None:
            self.first()
            if not self._first_values:
                self._names = []
            elif _most_common(isinstance(value, dict) for value in self._first_values):
                self._first_values = [value for value in self._first_values if isinstance(value, dict)]
                self._names = list(dict.fromkeys(itertools.chain.from_iterable(self._first_values)))
                common_fields = _most_common(map(frozenset, self._first_values))
                self._common_fields = [name for name in self._names if name in common_fields]
            else:
                bare = [value for value in self._first_values if not isinstance(value, dict)]
                self.samples = "text" if _most_common(isinstance(value, str) for value in bare) else "data"
                self._first_values = [{self.samples: value} for value in bare]
                self._names = self._common_fields = [self.samples]
        return list(self._names)

    def default_columns(self) -> list[str]:
        """The fields that most of the first records have, and no others."""
        self.names()
        return list(self._common_fields)

    def place(self, locator: tuple[int, int]) -> Place:
        """The line of a record, and which it is where a line may hold several."""
        record, line = locator
        return self.file.place(f"record {record} (line {line})") if record else self.file.line(line)

    def records(self) -> Iterator[tuple[tuple[int, int], Any]]:
        """Values with their locators, record and line; in a file of lines the record is 0."""
        is_array = self.file.ending == ".json" and self.file.head().removeprefix(BOM).lstrip()[:1] == b"["
        values = self._elements() if is_array else self._lines()
        first_values, error = self._look_ahead(values)
        for locator, value, fault in itertools.chain(first_values, values):
            fault = fault or self._value_fault(value)
            if fault:
                self.broken.add(self.place(locator), fault)
            else:
                yield locator, value
        if error is not None:
            raise error

    def _look_ahead(self, values: Iterator[Any]) -> tuple[list[Any], InputError | None]:
        """The first values, and the error that ended them, which is raised only when it is its turn."""
        first_values = []
        try:
            for locator, value, fault in values:
                first_values.append((locator, value, fault))
                if not fault and not self._value_fault(value):
                    self._first_values.append(value)
                elif not self.broken.skip:
                    break  # nothing after it will be read
                if len(self._first_values) == LOOKED_AT:
                    break
        except InputError as error:
            return first_values, error
        return first_values, None

    def parts(self, columns: Sequence[str] | None, size: int) -> Iterator[Part]:
        """Parts of at most `size` records; without `columns` they must have the usual fields and no others."""
        names = self.names()
        builder = _ColumnBuilder(
            self._common_fields if columns is None else columns,
            columns is None,
            self._first_values,
            self.uniform_column,
        )
        self._first_values = []
        is_bare, locations = bool(self.samples), []
        for locator, value in self.remaining():
            if isinstance(value, dict) == is_bare:
                others = "are none" if is_bare else "are objects"
                fault = f"is {brief(value)} and other records {others}; expected one form"
            else:
                fault = builder.add({names[0]: value} if is_bare else value)
            if fault:
                self.broken.add(self.place(locator), fault)
                continue
            locations.append(locator)
            if len(locations) == size:
                yield Part(builder.take_columns(), record_places(self, locations))
                locations = []
        if locations:
            yield Part(builder.take_columns(), record_places(self, locations))

    # ------------------------------------------------------------------------------------------------ text → values

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            repeated_name = _most_common(name for name, _ in pairs)
            self._fault = f"has the field {brief(repeated_name)} twice; expected each field once"
        return fields

    def _constant(self, name: str) -> None:
        self._fault = f"holds {name}, which is no JSON; expected finite numbers"

    def _value_fault(self, value: Any) -> str:
        """Why a value of valid JSON cannot be a record; "" where it can."""
        if value == {}:
            return "is an object without fields; expected at least one"
        if value is None or isinstance(value, bool):
            return f"is {json.dumps(value)}; expected an object {{…}}, a text, or a list of numbers"
        return ""

    def _surrogate_fault(self, text: str, value: Any) -> str:
        r"""What is wrong with half of a surrogate pair, such as \ud83d alone, which is no character."""
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
                fault = fault or self.file.too_many_values(line)
            if not fault:
                try:
                    value = self._decoder.decode(line)
                    fault = self._fault or self._surrogate_fault(line, value)
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
        text = _TextBuffer(self.file)
        text.next()
        text.at += 1  # the bracket that opens it
        record, following = 0, text.next()
        while following != "]":
            record += 1
            text.next()
            locator, self._fault = (record, text.line()), ""
            try:
                value, end = self._element(text)
            except _TooLarge as error:
                yield locator, None, str(error)
                text.skip()
                value, end = None, text.at
            except InputError:  # which is a ValueError
                raise
            except RecursionError:
                raise InputError(f"{self.place(locator)} {_TOO_DEEP}.") from None
            except ValueError as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else error
                raise InputError(
                    f"{self.place(locator)} is not valid JSON: {reason}; expected one array of "
                    f"records, [{{…}}, {{…}}]."
                ) from None
            if end > text.at:
                size, limit = end - text.at, self.file.max_record
                fault = self._fault or self._surrogate_fault(text.buffer[text.at : end], value)
                text.at = end
                yield locator, value, self.file.too_large(size) if size > limit else fault
            following = text.next()
            if following == ",":
                text.at += 1
            elif following != "]":
                seen = f"goes on with {brief(following)}" if following else "was cut short"
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

    def _element(self, text: _TextBuffer) -> tuple[Any, int]:
        while True:
            try:
                value, end = self._decoder.raw_decode(text.buffer, text.at)
                # A number may go on: of 5.25 a piece may hold 5 or 5. as yet.
                is_complete = text.buffer[end : end + 1] in _ENDS or end <= len(text.buffer) - _LONGEST_TOKEN
                if is_complete or not text.more():
                    return value, end
            except json.JSONDecodeError as error:
                is_near_end = error.pos > len(text.buffer) - _LONGEST_TOKEN or error.msg.startswith(
                    "Unterminated string"
                )
                if not is_near_end or not text.more():
                    raise
            self._fault = ""


class _TooLarge(Exception):
    """What is wrong with an element that is too large for a record."""


class _TextBuffer:
    """The text of a file from the current position on, as far as it was read."""

    def __init__(self, file: File):
        self._file, self._pieces = file, self._decoded()
        self.buffer, self.at = "", 0
        self._line, self._counted_to = 1, 0

    def _decoded(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        try:
            with self._file.open() as source, guarded(self._file):
                while chunk := source.read(CHUNK):
                    count_values(source, chunk.count(b","))
                    self._file.packed = getattr(source, "packed_bytes", None)
                    yield decoder.decode(chunk)
                yield decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise InputError(f"{self._file} is not UTF-8 text; expected UTF-8. Save it as UTF-8.") from None

    def more(self) -> bool:
        """Read on, as much again as the buffer holds; False at the end of the file."""
        self.line()
        pieces = [self.buffer[self.at :]]
        fault = (
            self._file.too_large()
            if len(pieces[0]) > self._file.record_limit
            else self._file.too_many_values(pieces[0])
        )
        if fault:
            raise _TooLarge(fault)
        missing = max(1, min(len(pieces[0]), self._file.max_record + CHUNK - len(pieces[0])))
        while missing > 0 and (piece := next(self._pieces, None)) is not None:
            pieces.append(piece)
            missing -= len(piece)
        has_grown = any(pieces[1:])
        self.buffer, self.at, self._counted_to = "".join(pieces), 0, 0
        return has_grown

    def skip(self) -> None:
        """Skip the value at the current position, whatever its size, without holding it."""
        depth, in_text = 0, False
        while True:
            match = (_IN_TEXT if in_text else _NESTED if depth else _ENDING).search(self.buffer, self.at)
            if match is None:
                self.line()
                piece = next(self._pieces, None)
                self.buffer, self.at, self._counted_to = piece or "", 0, 0
                if piece is None:
                    return
                continue
            mark, self.at = match[0], match.end()
            if mark == "\\":  # the next character stands for itself
                self.at += 1
                if self.at > len(self.buffer):
                    self.line()
                    self.buffer, self.at, self._counted_to = next(self._pieces, ""), 1, 0
            elif mark == '"':
                in_text = not in_text
            elif mark in "[{":
                depth += 1
            elif depth:
                depth -= 1
            else:  # what ends the value stays
                self.at -= 1
                return

    def line(self) -> int:
        """The number of the line at the current position."""
        self._line += self.buffer.count("\n", self._counted_to, self.at)
        self._counted_to = self.at
        return self._line

    def next(self) -> str:
        """Move to the next character that is no white space, and return it; "" at the end."""
        while True:
            match = _WHITE.match(self.buffer, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if not self.more():
                return ""


class _ColumnBuilder:
    """Columns that grow by records; the type of each is what most of the first records have in it."""

    def __init__(
        self,
        names: Sequence[str],
        only_these: bool,
        first_records: Sequence[dict[str, Any]],
        uniform_column: str | None = None,
    ):
        self._names = list(names)
        self._uniform_column = (
            self._names[0] if uniform_column is None and len(self._names) == 1 else uniform_column
        )
        self._expected_fields = frozenset(names) if only_these else None
        self._types: dict[str, str] = {}
        self._widths: dict[str, int] = {}  # of the columns of vectors
        self._values: dict[str, Any] = {}
        for name in self._names:
            self._learn_type(name, [record[name] for record in first_records if record.get(name) is not None])

    def _learn_type(self, name: str, values: Sequence[Any]) -> None:
        if not values:
            return
        self._types[name] = _most_common(_TYPES[type(value)] for value in values)
        lists = [value for value in values if isinstance(value, list)]
        if self._types[name] == "a list" and _most_common(map(is_vector, lists)):
            widths = [len(value) for value in lists if is_vector(value)]
            # Lists beside the samples stay lists, and those of a table if it is plain that they are no vectors.
            if name == self._uniform_column or (self._uniform_column is None and len(set(widths)) == 1):
                self._widths[name] = _most_common(widths)

    def add(self, record: dict[str, Any]) -> str:
        """Add a record, all of it or nothing, and return what is wrong with it: "" if nothing is."""
        if self._expected_fields is not None and record.keys() != self._expected_fields:
            differing = ", ".join(sorted(map(brief, record.keys() ^ self._expected_fields))[:8])
            return f"differs from other records in its fields: {differing}; expected the same fields"
        for name in self._names:
            value = record.get(name)
            if type(value) is str and self._types.get(name) == "a text":
                continue  # most values by far
            fault = self._fault(name, value, name in record)
            if fault:
                return fault
        if len(self._types) < len(self._names):  # of some no value was seen
            for name in self._names:
                if name not in self._types:
                    self._learn_type(name, [record[name]])
        for name in self._names:
            if name in self._widths:
                self._values.setdefault(name, array("d")).extend(record[name])
            else:
                self._values.setdefault(name, []).append(record[name])
        return ""

    def _fault(self, name: str, value: Any, is_present: bool) -> str:
        if value is None:
            description = (
                f"has null in the field {brief(name)}" if is_present else f"has no field {brief(name)}"
            )
            return f"{description}; expected a value"
        kind = _TYPES[type(value)]
        if kind != self._types.get(name, kind):
            return (
                f"has {kind}, {brief(value)}, in the field {brief(name)} and other records {self._types[name]}; "
                "expected one type"
            )
        numeric = is_vector(value)
        width = self._widths.get(name)
        if width is not None and (not numeric or len(value) != width):
            description = (
                f"{len(value)} numbers" if numeric else f"{brief(value)}, which is no list of numbers,"
            )
            return (
                f"has {description} in the field {brief(name)} and other records {width} numbers; "
                "expected one length"
            )
        try:
            finite = (
                all(map(math.isfinite, value)) if numeric else not (kind == "a number" and value in _INFINITE)
            )
        except OverflowError:
            finite = False
        return "" if finite else f"holds a number in the field {brief(name)} that is beyond any float64"

    def take_columns(self) -> dict[str, Any]:
        """The columns so far; new ones are begun."""
        values, self._values = self._values, {}
        return {
            name: np.frombuffer(values[name]).reshape(-1, self._widths[name])
            if name in self._widths
            else values[name]
            for name in self._names
        }
