"""Columns of parts of files: one after another, and as what kernels take."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.data.arrays import take
from vendimeter.data.collection import Place
from vendimeter.errors import InputError, brief, digits
from vendimeter.io.base import Part
from vendimeter.io.text_forms import EXPECTED, numbers, vectors

if TYPE_CHECKING:
    from vendimeter.io.reading import Wanted

__all__ = [
    "FORMS",
    "as_numbers",
    "first_text",
    "from_cells",
    "lists_of_texts",
    "sound",
    "stacked",
    "weight_of",
]

FORMS = ("numbers", "vectors")  # what cells may stand for


def from_cells(column: Any, name: str, place: Place, forms: Sequence[str] = FORMS) -> Any:
    """Texts as the numbers or vectors that they stand for, where all of them do; as they are otherwise."""
    found = numbers(column, name, place) if "numbers" in forms else column
    return vectors(found, name, place) if "vectors" in forms else found


def lists_of_texts(cells: Any) -> Any:
    """Cells such as ["fruity", "sweet"] as the lists that they stand for, where all of them do."""
    try:
        found = [json.loads(cell) if cell.strip() else [] for cell in cells]
    except (ValueError, RecursionError):
        return cells
    return found if all(isinstance(item, list) for item in found) else cells


def as_numbers(column: Any) -> np.ndarray | None:
    """A column of single numbers as an array; None where it is none."""
    if isinstance(column, np.ndarray):
        return column if column.ndim == 1 and column.dtype.kind in "buif" else None
    if not all(type(value) in (int, float) for value in column):
        return None
    try:
        return np.array(column, dtype=np.float64)
    except OverflowError:
        return None


def first_text(cells: Any) -> int:
    """The position of the first cell that stands for no number and no vector."""
    for i, cell in enumerate(cells):
        try:
            if not isinstance(from_cells([cell], "", str), np.ndarray):
                return i
        except ValueError:
            return i
    return 0


def stacked(columns: Mapping[str, Any], place: Place) -> np.ndarray:
    """Columns of numbers side by side, as vectors."""
    found = {name: as_numbers(column) for name, column in columns.items()}
    for name, column in columns.items():
        if found[name] is None:
            at = first_text(column) if isinstance(column, list) and isinstance(column[0], str) else 0
            raise InputError(
                f"the column {name!r} holds {brief(column[at])} ({place(at)}); expected numbers in each column of "
                "samples."
            )
    return np.column_stack([column for column in found.values() if column is not None])


# --------------------------------------------------------------------------------------------------------------- sound

# Which records of a part can be used in the roles of their columns: weights, lists of texts, cells, molecules.

Reasons = Iterator[str | None]


def sound(part: Part, wanted: Wanted, most: int | None = None, *, known: bool = False) -> Part:
    """The records that are sound, at most so many of them; what is broken goes to the collector, or is an error.

    With `known`, the kind of the samples is settled, and it is checked what they must be for that.
    """
    count = len(next(iter(part.columns.values()), ()))
    checks = list(_checks_of_kind(part, wanted) if known else _checks(part, wanted))
    if not checks:
        keep = np.arange(count if most is None else min(most, count))
    else:
        found = []
        for i, reasons in enumerate(zip(*checks, strict=True)):
            reason = next((reason for reason in reasons if reason is not None), None)
            if reason is not None:
                wanted.broken.add(part.place(i), reason)
                continue
            found.append(i)
            if len(found) == most:
                break
        keep = np.array(found, dtype=int)
    if len(keep) == count:
        return part
    prefix = len(keep) == 0 or keep[-1] == len(keep) - 1
    columns = {
        name: column[: len(keep)] if prefix else take(column, keep) for name, column in part.columns.items()
    }
    return Part(columns, lambda i: part.place(int(keep[i])))


def _checks(part: Part, wanted: Wanted) -> Iterator[Reasons]:
    weight, name = wanted.roles["weight"], wanted.roles["samples"]
    if weight is not None:
        yield (weight_of(value, weight)[1] for value in _plain(part.columns[weight]))
    if wanted.broken.skip and wanted.takes_numbers:
        for number in wanted.numbers or wanted.rows_of(part.columns):
            yield _not_numbers(part.columns[number], "numbers")
    if name is None:
        return
    samples = part.columns[name]
    if isinstance(samples, list) and samples and isinstance(samples[0], Mapping):
        yield (_no_picture(item) for item in samples)
    if wanted.nesting(samples) and wanted.kind not in ("tags", "tokens"):
        yield (_not_texts(item) for item in samples)
    if wanted.broken.skip and wanted.takes_numbers:
        form = wanted.form_of_cells(name, samples)
        if form != "texts":
            yield _not_numbers(samples, form)


def _checks_of_kind(part: Part, wanted: Wanted) -> Iterator[Reasons]:
    """What a guess rules out; and where broken records are skipped, what else the kernel would refuse."""
    name = wanted.roles["samples"]
    if name is None:
        return
    samples = part.columns[name]
    if wanted.misfit is not None:
        yield map(wanted.misfit, samples)
    if not wanted.broken.skip:
        return
    if wanted.kind == "molecules":
        from vendimeter.data.molecules import parse_all

        yield (reason for _, reason in parse_all(samples))
    elif (
        wanted.kind == "images" and getattr(wanted.form, "kind", None) != "images"
    ):  # folders look at their own
        yield (_no_image(item) for item in samples)


def _plain(column: Any) -> Any:
    return column.tolist() if isinstance(column, np.ndarray) else column


def weight_of(value: Any, name: str) -> tuple[float, str | None]:
    """A weight, and what is wrong with it."""
    try:
        number = float("nan" if isinstance(value, str) and "_" in value else value)
    except (TypeError, ValueError):
        reason = f"has {brief(value)} in the column {name!r} of weights; expected a number from 0 up"
        return 0.0, reason
    except OverflowError:
        number = np.inf
    if not 0 <= number < np.inf:
        return 0.0, f"has the weight {digits(number)}; expected a finite number from 0 up"
    return number, None


def _no_picture(item: Any) -> str | None:
    """A picture by a path: a file may not say which others are opened."""
    if not isinstance(item, Mapping) or not item.keys() <= {"bytes", "path"}:
        return None
    if item.get("path") is None or isinstance(item.get("bytes"), bytes):
        return None
    return f"holds no picture but the path {brief(item['path'])}"


def _no_image(item: Any) -> str | None:
    from vendimeter.data.pictures import decode

    try:
        decode(item)
    except InputError as error:
        return f"cannot be decoded: {str(error).rstrip('.')}"
    return None


def _not_texts(item: Any) -> str | None:
    if not isinstance(item, list):
        return f"holds {brief(item)} where others hold a list of texts"
    odd = next((part for part in item if not isinstance(part, str)), None)
    has_none = any(part is None for part in item)
    if odd is None and not has_none:
        return None
    return f"holds {brief(odd)} in a list of texts"


def _not_numbers(cells: Any, form: str) -> Reasons:
    """For each cell whether it has the form of the first: a number, or a vector of so many numbers."""
    convert = numbers if form == "numbers" else vectors
    width = None
    for cell in cells:
        try:
            found = convert([cell], "", str)
        except ValueError:
            found = None
        if not isinstance(found, np.ndarray):
            yield f"holds {brief(cell)} where {EXPECTED[form]} was expected"
            continue
        width = found.shape[1:] if width is None else width
        if found.shape[1:] != width:
            yield f"holds {found.shape[1]} numbers where others hold {width[0]}"
        else:
            yield None
