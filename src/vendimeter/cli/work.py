"""Steps that all reading commands share: open the input, say what it was taken for, collect warnings, check options."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

from vendimeter.cli.inputs import Input, open_input
from vendimeter.cli.options import METHODS, Reading, Running, Similarity, Solving
from vendimeter.cli.output import Answer, Source
from vendimeter.data.collection import Collection
from vendimeter.errors import CacheWarning, InputError, ToleranceWarning
from vendimeter.io.sources import File, telling
from vendimeter.kernels import as_kernel
from vendimeter.messages import unknown
from vendimeter.options import byte_count
from vendimeter.present.numbers import count_of, records_left_out
from vendimeter.present.progress import showing
from vendimeter.present.terminal import is_terminal, say
from vendimeter.present.text import label_as_text
from vendimeter.spectrum import parse_orders

__all__ = [
    "add_warnings",
    "check_solving",
    "describe_count",
    "describe_reading",
    "explain_errors",
    "item_columns",
    "open_and_announce",
    "orders_of",
    "read_all",
    "refuse_groups",
    "single_order",
    "source_of",
    "work_session",
]

OWN_WARNINGS = (ToleranceWarning, CacheWarning, UserWarning)


@contextmanager
def work_session(running: Running) -> Iterator[list[str]]:
    """Show progress unless quiet, and collect warnings into the list that it yields; they are printed at the end."""
    texts: list[str] = []
    progress = showing(False if running.quiet else None)
    with (
        warnings.catch_warnings(record=True) as caught,
        progress,
        telling(None if running.quiet else _announce_wait),
    ):
        warnings.simplefilter("always")
        try:
            yield texts
        finally:
            messages = [
                str(warning.message) for warning in caught if issubclass(warning.category, OWN_WARNINGS)
            ]
            texts.extend(dict.fromkeys(messages))
    for text in texts:
        say(f"Warning: {text}", running.quiet)


def _announce_wait(file: File) -> None:
    """Say what is waited for, so that a pipe that nobody writes to is not taken for a long computation."""
    if file.path is None and is_terminal(sys.stdin):
        end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        say(f"Waiting for {file}: type or paste the samples, and end with {end} on a line of its own.")
    else:
        say(f"Waiting for {file}: nothing has been written to it yet.")


def open_and_announce(
    files: Sequence[str],
    reading: Reading,
    similarity: Similarity,
    running: Running,
    *,
    columns: Sequence[str] = (),
    lists: bool = False,
) -> Input:
    """Open the files and say what they are taken for, before the work: it may be a mistake."""
    opened = open_input(files, reading, similarity, columns=columns, lists=lists)
    say(f"{opened.first.source}: {opened.about}", running.quiet)
    return opened


@contextmanager
def explain_errors(opened: Input) -> Iterator[None]:
    """Add to errors about the samples what these were taken for, and the way out where there is one."""
    try:
        yield
    except InputError as error:
        if opened.guessed:
            error.add_note(f"The samples were {opened.about}.")
        if error.option == "skip_broken" and not opened.first.skipped.skip:
            error.add_note("With --skip-broken what cannot be read is left out and counted.")
        raise


def read_all(opened: Input, running: Running, reading: Reading) -> Collection:
    """Read all samples, and say how many there are."""
    samples = Collection.joined(list(opened.batches))
    say(describe_reading(opened, reading, len(samples)), running.quiet)
    return samples


def describe_reading(opened: Input, reading: Reading, count: int) -> str:
    """The number of samples in words, with their grouping, weights, and what was left out."""
    first = opened.first
    about = ""
    if reading.by:
        about += f", grouped by {' and '.join(reading.by)}"
    if first.weights is not None:
        about += f", weighted by {reading.weight}"
    return describe_count(first, count, about)


def describe_count(collection: Collection, count: int | None = None, more: str = "") -> str:
    """The number of samples in words, and of broken records that were left out, with the first of them."""
    count = len(collection) if count is None else count
    about = count_of(count, "list" if collection.is_group else "item") + more
    skipped = collection.skipped
    if skipped.count:
        place, reason = skipped.records[0]
        about += f"\n{records_left_out(skipped.count)}, such as this: {place} {reason}"
    return about


def source_of(files: Sequence[str], opened: Input, count: int | None) -> Source:
    """The source of a result: files, kind, kernel and counts."""
    kernel = repr(as_kernel(opened.kernel))
    first = opened.first
    return Source(files, first.kind, opened.guessed, kernel, count, first.skipped.count)


def orders_of(text: str) -> Any:
    """Parse --q: an order, or a list of them, checked before anything is read."""
    parts = [part.strip() for part in text.split(",")]
    orders = parts[0] if len(parts) == 1 else parts
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


def single_order(text: str) -> str:
    """Parse --q where one order is expected."""
    if "," in text:
        raise InputError(f"--q {text} names {text.count(',') + 1} orders; expected one here.")
    return orders_of(text)


def add_warnings(answer: Answer, warning_texts: Sequence[str]) -> Answer:
    """Add warnings to an answer, and return it."""
    answer.warnings.extend(warning_texts)
    return answer


def item_columns(collection: Collection, positions: Sequence[int]) -> dict[str, list[Any]]:
    """Columns of a table of samples: positions, places in files, labels, and the samples where they are text."""
    indices = [int(i) for i in positions]
    columns: dict[str, list[Any]] = {"item": indices, "place": [_place(collection, i) for i in indices]}
    if collection.labels is not None:
        columns["label"] = [label_as_text(collection.labels[i]) for i in indices]
    samples = collection.samples
    if not collection.is_table and isinstance(samples[0], str | bytes | PurePath):
        columns["sample"] = [str(samples[i]) for i in indices]
    return columns


def _place(collection: Collection, i: int) -> str:
    name = "" if collection.ids is None else str(collection.ids[i])
    return name if name and not name.isspace() else collection.place(i)
