"""Columns of files: the conversion of their texts, and the checks of their records.

Cells of text become the numbers, vectors and lists that they stand for. `usable_records` leaves out the records of a
part that cannot be used in the roles of their columns: weights that are no numbers, lists that are not of texts, cells
that do not stand for what the others do, molecules and pictures that cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.data.arrays import take
from vendimeter.errors import InputError
from vendimeter.io.base import Part
from vendimeter.io.text_forms import EXPECTED, numbers, vectors
from vendimeter.messages import brief
from vendimeter.present.numbers import digits

if TYPE_CHECKING:
    from vendimeter.io.reading import ColumnSelection

__all__ = [
    "FORMS",
    "as_numbers",
    "first_text_position",
    "parse_cells",
    "parse_lists",
    "parse_weight",
    "stack_columns",
    "usable_records",
]

FORMS = ("numbers", "vectors")  # what cells may stand for
Faults = Iterator[str | None]  # what is wrong with each record of a part, None where nothing is


def parse_cells(column: Any, name: str, place: Callable[[int], str], forms: Sequence[str] = FORMS) -> Any:
    """Texts as the numbers or vectors that they stand for, where all of them do; as they are otherwise."""
    parsed = numbers(column, name, place) if "numbers" in forms else column
    return vectors(parsed, name, place) if "vectors" in forms else parsed


def parse_lists(cells: Any) -> Any:
    """Cells such as ["fruity", "sweet"] as the lists that they stand for, where all of them do."""
    try:
        lists = [json.loads(cell) if cell.strip() else [] for cell in cells]
    except (ValueError, RecursionError):
        return cells
    return lists if all(isinstance(item, list) for item in lists) else cells


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


def first_text_position(cells: Any) -> int:
    """The position of the first cell that stands for no number and no vector."""
    for i, cell in enumerate(cells):
        try:
            if not isinstance(parse_cells([cell], "", str), np.ndarray):
                return i
        except ValueError:
            return i
    return 0


def stack_columns(columns: Mapping[str, Any], place: Callable[[int], str]) -> np.ndarray:
    """Columns of numbers side by side, as vectors."""
    arrays = {name: as_numbers(column) for name, column in columns.items()}
    for name, column in columns.items():
        if arrays[name] is None:
            at = first_text_position(column) if isinstance(column, list) and isinstance(column[0], str) else 0
            raise InputError(
                f"the column {name!r} holds {brief(column[at])} ({place(at)}); expected numbers in each column of "
                "samples."
            )
    return np.column_stack([column for column in arrays.values() if column is not None])


def usable_records(
    part: Part, selection: ColumnSelection, limit: int | None = None, *, kind_settled: bool = False
) -> Part:
    """The usable records of a part, up to a limit; broken ones go to the collector, or are an error.

    With `kind_settled` the samples are checked for what their kind requires; without it, for everything else.
    """
    count = len(next(iter(part.columns.values()), ()))
    checks = list(_kind_faults(part, selection) if kind_settled else _record_faults(part, selection))
    if not checks:
        kept_positions = np.arange(count if limit is None else min(limit, count))
    else:
        usable = []
        for i, reasons in enumerate(zip(*checks, strict=True)):
            reason = next((reason for reason in reasons if reason is not None), None)
            if reason is not None:
                selection.broken.add(part.place(i), reason)
                continue
            usable.append(i)
            if len(usable) == limit:
                break
        kept_positions = np.array(usable, dtype=int)
    if len(kept_positions) == count:
        return part
    prefix = len(kept_positions) == 0 or kept_positions[-1] == len(kept_positions) - 1
    columns = {
        name: column[: len(kept_positions)] if prefix else take(column, kept_positions)
        for name, column in part.columns.items()
    }
    return Part(columns, lambda i: part.place(int(kept_positions[i])))


def _record_faults(part: Part, selection: ColumnSelection) -> Iterator[Faults]:
    """Faults whatever the kind: weights, pictures, lists of texts, and cells that stand for nothing."""
    weight, name = selection.roles["weight"], selection.roles["samples"]
    if weight is not None:
        yield (parse_weight(value, weight)[1] for value in _as_list(part.columns[weight]))
    if selection.broken.skip and selection.takes_numbers:
        for column_name in selection.vector_columns or selection.numeric_table_columns(part.columns):
            yield _number_faults(part.columns[column_name], "numbers")
    if name is None:
        return
    samples = part.columns[name]
    if isinstance(samples, list) and samples and isinstance(samples[0], Mapping):
        yield (_picture_fault(item) for item in samples)
    if selection.is_nested(samples) and selection.kind not in ("tags", "tokens"):
        yield (_list_fault(item) for item in samples)
    if selection.broken.skip and selection.takes_numbers:
        form = selection.form_of_cells(name, samples)
        if form != "texts":
            yield _number_faults(samples, form)


def _kind_faults(part: Part, selection: ColumnSelection) -> Iterator[Faults]:
    """Faults by the kind: texts that do not fit a guess; where those are skipped, what the kernel would refuse."""
    name = selection.roles["samples"]
    if name is None:
        return
    samples = part.columns[name]
    if selection.misfit is not None:
        yield map(selection.misfit, samples)
    if not selection.broken.skip:
        return
    if selection.kind == "molecules":
        from vendimeter.data.molecules import parse_all

        yield (reason for _, reason in parse_all(samples))
    # A folder of pictures decodes them itself.
    elif selection.kind == "images" and getattr(selection.reader_type, "kind", None) != "images":
        yield (_decoding_fault(item) for item in samples)


def _as_list(column: Any) -> Any:
    return column.tolist() if isinstance(column, np.ndarray) else column


def parse_weight(value: Any, name: str) -> tuple[float, str | None]:
    """A weight, and what is wrong with it: None if nothing is."""
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


def _picture_fault(item: Any) -> str | None:
    """What is wrong with a picture that is given by a path: a file may not say which others are opened."""
    if not isinstance(item, Mapping) or not item.keys() <= {"bytes", "path"}:
        return None
    if item.get("path") is None or isinstance(item.get("bytes"), bytes):
        return None
    return f"holds no picture but the path {brief(item['path'])}"


def _decoding_fault(item: Any) -> str | None:
    from vendimeter.data.pictures import decode

    try:
        decode(item)
    except InputError as error:
        return f"cannot be decoded: {str(error).rstrip('.')}"
    return None


def _list_fault(item: Any) -> str | None:
    if not isinstance(item, list):
        return f"holds {brief(item)} where others hold a list of texts"
    first_odd = next((entry for entry in item if not isinstance(entry, str)), None)
    has_none = any(entry is None for entry in item)
    if first_odd is None and not has_none:
        return None
    return f"holds {brief(first_odd)} in a list of texts"


def _number_faults(cells: Any, form: str) -> Faults:
    """What is wrong with cells that are no number, or no vector of the length of the first."""
    convert = numbers if form == "numbers" else vectors
    width = None
    for cell in cells:
        try:
            parsed = convert([cell], "", str)
        except ValueError:
            parsed = None
        if not isinstance(parsed, np.ndarray):
            yield f"holds {brief(cell)} where {EXPECTED[form]} was expected"
            continue
        width = parsed.shape[1:] if width is None else width
        if parsed.shape[1:] != width:
            yield f"holds {parsed.shape[1]} numbers where others hold {width[0]}"
        else:
            yield None
