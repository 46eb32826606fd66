"""What every command that reads does: says what it takes the samples for, works, and says what went otherwise."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

from vendimeter.cli.inputs import Input, opened
from vendimeter.cli.options import METHODS, Reading, Running, Similarity, Solving
from vendimeter.cli.output import Answer, Source
from vendimeter.data.collection import Collection
from vendimeter.errors import CacheWarning, InputError, ToleranceWarning, unknown
from vendimeter.io.sources import File, telling
from vendimeter.kernels import as_kernel
from vendimeter.options import byte_count
from vendimeter.present.progress import showing
from vendimeter.present.terminal import is_terminal, say
from vendimeter.spectrum import parse_orders

__all__ = [
    "check_solving",
    "counted",
    "explained",
    "finished",
    "items_of",
    "looked_at",
    "noted",
    "one_order",
    "orders_of",
    "refuse_groups",
    "source_of",
    "whole",
    "working",
]

OURS = (ToleranceWarning, CacheWarning, UserWarning)


@contextmanager
def working(running: Running) -> Iterator[list[str]]:
    """Work with the progress line that was asked for; warnings are collected, and said at the end."""
    said: list[str] = []
    shown = showing(False if running.quiet else None)
    with warnings.catch_warnings(record=True) as caught, shown, telling(None if running.quiet else _waiting):
        warnings.simplefilter("always")
        try:
            yield said
        finally:
            found = [str(one.message) for one in caught if issubclass(one.category, OURS)]
            said.extend(dict.fromkeys(found))
    for text in said:
        say(f"Warning: {text}", running.quiet)


def _waiting(file: File) -> None:
    """Say what is waited for, so that a pipe that nobody writes to is not taken for a long computation."""
    if file.path is None and is_terminal(sys.stdin):
        end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        say(f"Waiting for {file}: type or paste the samples, and end with {end} on a line of its own.")
    else:
        say(f"Waiting for {file}: nothing has been written to it yet.")


def looked_at(
    files: Sequence[str],
    reading: Reading,
    similarity: Similarity,
    running: Running,
    *,
    columns: Sequence[str] = (),
    lists: bool = False,
) -> Input:
    """Open the files and say what they are taken for, before the work: it may be a mistake."""
    given = opened(files, reading, similarity, columns=columns, lists=lists)
    say(f"{given.first.source}: {given.about}", running.quiet)
    return given


@contextmanager
def explained(given: Input) -> Iterator[None]:
    """Add to an error about the samples what they were taken for, and the way out where there is one."""
    try:
        yield
    except InputError as error:
        if given.guessed:
            error.add_note(f"The samples were {given.about}.")
        if error.option == "skip_broken" and not given.first.skipped.skip:
            error.add_note("With --skip-broken what cannot be read is left out and counted.")
        raise


def whole(given: Input, running: Running, reading: Reading) -> Collection:
    """All samples, and what was read in words."""
    found = Collection.joined(list(given.batches))
    say(noted(given, reading, len(found)), running.quiet)
    return found


def noted(given: Input, reading: Reading, count: int) -> str:
    """How many there are, by what they are grouped and weighted, and what was left out."""
    first = given.first
    about = ""
    if reading.by:
        about += f", grouped by {' and '.join(reading.by)}"
    if first.weights is not None:
        about += f", weighted by {reading.weight}"
    return counted(first, count, about)


def counted(read: Collection, count: int | None = None, more: str = "") -> str:
    """How many there are in what was read, and how many broken records were left out, with the first of them."""
    count = len(read) if count is None else count
    about = f"{count:,} {'list' if read.is_group else 'item'}{'' if count == 1 else 's'}{more}"
    skipped = read.skipped
    if skipped.count:
        place, reason = skipped.records[0]
        were = "record was" if skipped.count == 1 else "records were"
        about += f"\n{skipped.count:,} broken {were} left out, such as this: {place} {reason}"
    return about


def source_of(files: Sequence[str], given: Input, count: int | None) -> Source:
    """What was read, for the result."""
    kernel = repr(as_kernel(given.kernel))
    first = given.first
    return Source(files, first.kind, given.guessed, kernel, count, first.skipped.count)


def orders_of(text: str) -> Any:
    """--q: an order, or a list of them, checked before anything is read."""
    listed = [one.strip() for one in text.split(",")]
    orders = listed[0] if len(listed) == 1 else listed
    parse_orders(orders)
    return orders


def check_solving(solving: Solving) -> None:
    """Refuse what no solver takes, before anything is read."""
    if solving.tol is not None and not 0 < solving.tol < 1:
        raise InputError(
            f"--tol {solving.tol:g}; expected a relative half-width between 0 and 1, such as 1e-3."
        )
    if solving.method is not None and solving.method not in ("auto", *METHODS):
        raise unknown("method", solving.method, METHODS)
    if solving.memory is not None:
        byte_count(solving.memory, "--memory")


def refuse_groups(reading: Reading, instead: str) -> None:
    """Refuse --by where all samples are taken together: it would be read, and not heeded."""
    if reading.by:
        raise InputError(
            f"--by {' and '.join(reading.by)} was given, and all samples are taken together; {instead}"
        )


def one_order(text: str) -> str:
    """--q, where one order is expected."""
    if "," in text:
        raise InputError(f"--q {text} names {text.count(',') + 1} orders; expected one here.")
    return orders_of(text)


def finished(answer: Answer, said: Sequence[str]) -> Answer:
    """The answer with the warnings of the work."""
    answer.warnings.extend(said)
    return answer


def items_of(collection: Collection, positions: Sequence[int]) -> dict[str, list[Any]]:
    """Samples for a table: their positions, where they were read, their labels, and themselves where they are text."""
    places = [int(i) for i in positions]
    columns: dict[str, list[Any]] = {"item": places, "place": [_place(collection, i) for i in places]}
    if collection.labels is not None:
        columns["label"] = [_label(collection.labels[i]) for i in places]
    samples = collection.samples
    if not collection.is_table and isinstance(samples[0], str | bytes | PurePath):
        columns["sample"] = [str(samples[i]) for i in places]
    return columns


def _place(collection: Collection, i: int) -> str:
    name = "" if collection.ids is None else str(collection.ids[i])
    return name if name and not name.isspace() else collection.place(i)


def _label(label: Any) -> str:
    return " / ".join(map(str, label)) if isinstance(label, tuple | list) else str(label)
