"""The forms of texts: whether they stand for numbers, vectors, molecules or sequences, told by the texts alone."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from vendimeter.errors import InputError, MissingDependencyError
from vendimeter.io.json import is_vector
from vendimeter.messages import brief

__all__ = [
    "AMINO_ACIDS",
    "EXPECTED",
    "HALF",
    "LOOKED_AT",
    "NUCLEOTIDES",
    "SHORTEST_SEQUENCE",
    "form_of",
    "is_marked_smiles",
    "is_sequence",
    "is_smiles",
    "numbers",
    "parse_number",
    "record_kind",
    "stands_for",
    "vectors",
]

LOOKED_AT = 1000  # texts that tell what all of them are
HALF = 0.5  # where more than this share of the texts has a form, those without it are broken
NUCLEOTIDES = frozenset("ACGTUNRYKMSWBDHV")
AMINO_ACIDS = frozenset("ACDEFGHIKLMNPQRSTVWYXBZUO*")
SHORTEST_SEQUENCE = 12  # letters: a shorter run of capitals is as likely a word
LONG_SEQUENCE = 20  # letters: no name of a column is that long, in capitals and of the twenty letters alone
EXPECTED = {
    "numbers": "a finite number",
    "vectors": "a list of finite numbers such as [0.1, 0.2]",
    "molecules": "SMILES",
    "sequences": "letters alone",
}

_CODE = re.compile(r"\s*[-+]?0\d")  # as "007": a number would begin otherwise
_PRINTED = re.compile(r"\[\s*[-+0-9.eE]+(?:\s+[-+0-9.eE]+)+\s*\]")  # as NumPy prints an array
_GAPS = frozenset(("nan", "null", "none", "na", "n/a"))  # in the place of a number
_SMILES = re.compile(r"(?:\[[^\[\]\s]+\]|Br|Cl|[BCNOPSFIbcnops]|[=#$/\\.:()~+*-]|%?\d)+")
_SMILES_MARK = re.compile(r"[=#()\[\]]|[cno]\d|C\d|CC")


def form_of(texts: Iterable[str], forms: Sequence[str]) -> str:
    """Which of these forms, "numbers" and "vectors", most of the first texts with anything in them have; or "texts".

    Codes such as "007" are no numbers, and where there is one the others are codes, too.

    Examples
    --------
    >>> form_of(["[1, 2]", "[NaN, 1]", "none"], ["numbers", "vectors"]), form_of(["1", "2", "007"], ["numbers"])
    ('vectors', 'texts')
    """
    filled = list(itertools.islice((text for text in texts if text.strip()), LOOKED_AT))
    numbers_found = list(filter(_is_finite, filled)) if "numbers" in forms else []
    if len(numbers_found) > HALF * len(filled) and not any(map(_CODE.match, numbers_found)):
        return "numbers"
    if "vectors" in forms and sum(map(_looks_like_vector, filled)) > HALF * len(filled):
        return "vectors"
    return "texts"


def _is_finite(text: str) -> bool:
    return math.isfinite(math.nan if (value := parse_number(text)) is None else value)


def _looks_like_vector(text: str) -> bool:
    """Whether a text is a list of numbers, perhaps with gaps among them, as JSON has it or as NumPy prints it."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return False
    parts = text[1:-1].replace(",", " ").split()
    gap_or_number = (
        part.strip("\"'").lower() in _GAPS or parse_number(part.strip("\"'")) is not None for part in parts
    )
    return any(map(_is_finite, parts)) and all(gap_or_number)


def stands_for(form: str, text: str) -> bool:
    """Whether a text is a finite number, or a vector of such."""
    convert = numbers if form == "numbers" else vectors
    try:
        return isinstance(convert([text], "", str), np.ndarray)
    except ValueError:
        return False


def is_smiles(text: str) -> bool:
    """Whether a text is written with the signs of SMILES alone; so are many words."""
    return _SMILES.fullmatch(text) is not None


def is_marked_smiles(text: str) -> bool:
    """Whether a text has a sign that SMILES have and words do not, such as a bond or a ring."""
    return _SMILES_MARK.search(text) is not None


def is_sequence(text: str, letters: frozenset[str]) -> bool:
    """Whether a text is written with these letters alone; all small or capital for nucleotides, capital for others."""
    cased = text.isupper() or (text.islower() and letters is NUCLEOTIDES)
    return cased and set(text.upper()) <= letters


def record_kind(name: str, below: str) -> str | None:
    """The kind of record that the name of a column is, if it is plainly one like that below it; None as a rule.

    Examples
    --------
    >>> record_kind("Cc1ccccc1Br", "COc1ccccc1"), record_kind("SMILES", "COc1ccccc1"), record_kind("[0.5, 1]", "[2, 3]")
    ('a molecule', None, 'a vector')
    """
    if _looks_like_vector(name) and _looks_like_vector(below):
        return "a vector"
    if all(is_smiles(text) and is_marked_smiles(text) for text in (name, below)) and _is_molecule(name):
        return "a molecule"
    standard = AMINO_ACIDS - set("BOUXZ*")
    for letters, shortest in ((frozenset("ACGTUN"), SHORTEST_SEQUENCE), (standard, LONG_SEQUENCE)):
        if len(name) >= shortest and is_sequence(name, letters) and is_sequence(below, AMINO_ACIDS):
            return "a sequence"
    return None


def _is_molecule(text: str) -> bool:
    """Whether RDKit, where it is installed, can read a text."""
    try:
        from vendimeter.data.molecules import parse

        return parse(text)[1] is None
    except MissingDependencyError:
        return True


def parse_number(cell: str) -> float | None:
    """A number, NaN for a gap (an empty cell or "nan"), or None for any other text."""
    try:
        return None if "_" in cell else float(cell)  # Python reads 1_2 as 12, and here it is a name
    except ValueError:
        return None if cell.strip() else math.nan


def numbers(cells: Any, name: str, place: Callable[[int], str]) -> Any:
    """A column of texts as numbers where every cell is one, and as it is elsewhere; a gap among numbers is an error.

    Codes such as "007" are no numbers.

    Examples
    --------
    >>> numbers(["1", "2.5"], "weight", lambda i: f"row {i}")
    array([1. , 2.5])
    >>> numbers(["1", "two"], "weight", lambda i: f"row {i}")
    ['1', 'two']
    """
    if not isinstance(cells, list) or not all(isinstance(cell, str) for cell in cells):
        return cells
    values = np.empty(len(cells))
    for i, cell in enumerate(cells):
        value = None if _CODE.match(cell) else parse_number(cell)
        if value is None:
            return cells
        values[i] = value
    if not np.isfinite(values).any():
        return cells
    gaps = np.isnan(values)
    if gaps.any():
        raise InputError(
            f"{place(int(gaps.argmax()))} has no value in the column {brief(name)} of numbers; expected one in every "
            "row. Fill it, or drop the row."
        )
    if not np.isfinite(values).all():
        position = int(np.isinf(values).argmax())
        raise InputError(
            f"{place(position)} has {brief(cells[position])} in the column {brief(name)} of numbers; "
            "expected a finite number."
        )
    return values


def vectors(cells: Any, name: str, place: Callable[[int], str]) -> Any:
    """A column of texts as rows of an array where every cell is a list of numbers in JSON; as it is elsewhere.

    Examples
    --------
    >>> vectors(["[1, 0]", "[0.5, 2]"], "embedding", lambda i: f"row {i}")
    array([[1. , 0. ],
           [0.5, 2. ]])
    >>> vectors(["[sigh]", "a dog"], "text", lambda i: f"row {i}")
    ['[sigh]', 'a dog']
    """
    if not isinstance(cells, list) or not cells or not all(isinstance(cell, str) for cell in cells):
        return cells
    if not all(cell.lstrip().startswith("[") for cell in cells if cell.strip()):
        return cells
    first = next((i for i, cell in enumerate(cells) if cell.strip()), None)
    if first is None or (
        _parse_vector(cells[first]) is None and not _PRINTED.fullmatch(cells[first].strip())
    ):
        return cells
    rows = []
    for i, cell in enumerate(cells):
        row = _parse_vector(cell)
        if row is None:
            printed = _PRINTED.fullmatch(cell.strip()) is not None
            advice = " NumPy's way to print an array rounds it and leaves numbers out; write tolist()."
            raise InputError(
                f"{place(i)} has {brief(cell)} in the column {brief(name)} of vectors; expected {EXPECTED['vectors']}."
                f"{advice if printed else ''} Mend it, leave broken records out and count them "
                "with skip_broken=True (--skip-broken), or say with kind='texts' (--kind) that all of them are texts.",
                option="skip_broken",
            )
        if rows and len(row) != len(rows[0]):
            raise InputError(
                f"{place(i)} has a vector of {len(row)} numbers in the column {brief(name)} and {place(0)} one of "
                f"{len(rows[0])}; expected one length. Mend it, leave broken records out and count them with "
                "skip_broken=True (--skip-broken), or say with kind= (--kind) what all of them are, such as tokens or "
                "texts.",
                option="skip_broken",
            )
        rows.append(np.array(row, dtype=np.float64))
    return np.stack(rows)


def _parse_vector(cell: str) -> list[float] | None:
    try:
        values = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    try:
        return values if is_vector(values) and all(map(math.isfinite, values)) else None
    except OverflowError:
        return None
