"""One pass over more than is held in memory, which can be killed at any moment and goes on from its checkpoint."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from vendimeter.cli.checkpoints import Checkpoint, Place
from vendimeter.cli.commands import Stopped
from vendimeter.cli.fingerprints import items_expected
from vendimeter.cli.inputs import Input
from vendimeter.cli.merge import refuse_existing, save
from vendimeter.data.collection import Collection
from vendimeter.kernels import Kernel
from vendimeter.present.progress import FIRST, Progress
from vendimeter.streams.accumulator import Accumulator
from vendimeter.streams.grouped import GroupAccumulator

__all__ = ["streamed"]

MEMORY = "1 GiB"  # for groups, unless the user says otherwise
SPACING = (
    20  # times as long as the last one took, at least, until the next checkpoint: at most 5 % go into them
)
WINDOW = 10.0  # seconds over which the rate is taken
STOPPING = "\nStopping after this batch, to save it; Ctrl-C again stops at once, at the last checkpoint.\n"


def streamed(
    given: Input,
    kernel: Kernel,
    orders: Any,
    *,
    grouped: bool,
    memory: int | str | None = None,
    seed: int = 0,
    checkpoint: Path | None = None,
    every: float = 30.0,
    fingerprint: Mapping[str, Any] | None = None,
    quiet: bool = False,
    files: Sequence[str] = (),
    form: str | None = None,
    limit: int | None = None,
    save_to: Path | None = None,
    overwrite: bool = False,
) -> tuple[Any, int]:
    """Score what an input gives, batch by batch.

    With a checkpoint, the state is saved after the first batch, every so often, when the run is interrupted, and at its
    end. A run that finds one goes on after the last batch in it: it reads the batches before once more, without
    computing anything, and adds the others in the same order, so that the answer is the same to the last bit (with the
    same number of threads). A finished one answers at once.

    Parameters
    ----------
    given : Input
        The batches; counts of records that were left out are in ``given.first.skipped`` afterwards.
    kernel : Kernel
        One that can be accumulated.
    orders : float, str or list of them
        The orders of the scores.
    grouped : bool
        Whether a score a label is asked for.
    memory : int or str, optional
        For groups: what may be held; the rest lies in files for the time of the run, beside the checkpoint if there is
        one.
    seed : int
        Seed of random numbers.
    checkpoint : Path, optional
        The file from which the run goes on, and into which it is saved.
    every : float
        Seconds between two checkpoints, at least. Large states come less often: no more than a twentieth of the time
        goes into saving.
    fingerprint : mapping, optional
        What `vendimeter.cli.checkpoints.reading_fingerprint` says of the input; needed with a checkpoint.
    quiet : bool
        Show nothing on the way.
    files, form, limit
        What is read, as the user named it, for the fraction that is done; without it only the rate is shown.
    save_to : Path, optional
        Where to write the accumulator, for `vendimeter.cli.merge.merge_files`.
    overwrite : bool
        Whether a file of that name may be replaced.

    Returns
    -------
    tuple
        A Score, Profile or GroupScores, and the number of items.

    Raises
    ------
    InputError
        Where the checkpoint is of another input, damaged, or in use.
    KeyboardInterrupt
        When told to stop by SIGINT (Ctrl-C), SIGTERM or SIGHUP: with a checkpoint after it was saved at the end of the
        batch (then it is a Stopped, which knows the signal), the second time at once. A note at it says how to go on.
    """
    if save_to is not None:
        refuse_existing(save_to, overwrite)
    memory = MEMORY if memory is None else memory
    with ExitStack() as stack:
        saved = None
        if checkpoint is not None:
            if fingerprint is None:
                raise TypeError("a checkpoint needs the fingerprint of what is read")
            saved = stack.enter_context(Checkpoint(checkpoint, {**fingerprint, "seed": seed}))
        found = None if saved is None else saved.load(kernel, grouped=grouped, memory=memory)
        total: Any
        total, place = found or (None, Place())
        if total is None and grouped:
            spill = stack.enter_context(tempfile.TemporaryDirectory()) if saved is None else saved.spill
            total = GroupAccumulator(kernel, rng=seed, memory=memory, spill=spill)
        elif total is None:
            total = Accumulator(kernel, rng=seed)
        skipped = given.first.skipped
        if place.finished:
            skipped.count, skipped.records = place.left_out, place.records
        else:
            shown = False if quiet else None
            pace = _Pace(place.items, [] if quiet else files, form, limit)
            try:
                _run(given, total, place, saved, every, shown, pace)
            except KeyboardInterrupt as error:
                if saved is not None:
                    error.add_note(saved.how_to_go_on())
                raise
        if save_to is not None:
            save(total, save_to, overwrite, left_out=skipped.count)
        result: Any = total.score(orders)
    if skipped.count and not grouped:
        result = result.noted(left_out=skipped.count)
    return result, place.items


def _run(
    given: Input,
    total: Any,
    place: Place,
    saved: Checkpoint | None,
    every: float,
    shown: bool | None,
    pace: _Pace,
) -> None:
    """Add all batches that are not in the sum yet."""
    batches = iter(given.batches)
    skipped = given.first.skipped
    with _Stops(quiet=shown is False) if saved is not None else _Never() as stops:
        if saved is not None and place.batches:
            _pass_over(batches, place, saved, stops, shown)
        due = time.monotonic() if not place.batches else time.monotonic() + every
        with Progress("Items" if not place.items else f"Items after {place.items:,}", shown) as progress:
            pace.begin()
            for batch in batches:
                total.update(batch)
                place.batches, place.items = place.batches + 1, place.items + len(batch)
                progress.step(pace.fraction(place.items), pace.note(place.items))
                if saved is not None and (stops.asked or time.monotonic() >= due):
                    place.left_out, place.records = skipped.count, list(skipped.records)
                    begin = time.monotonic()
                    saved.save(total, place)
                    end = time.monotonic()
                    due = end + max(every, SPACING * (end - begin))
                if stops.asked:
                    raise Stopped(stops.asked)
        if saved is not None:
            place.left_out, place.records = skipped.count, list(skipped.records)
            place.finished = True
            saved.save(total, place)
            if stops.asked:
                raise Stopped(stops.asked)


def _pass_over(
    batches: Iterator[Collection], place: Place, saved: Checkpoint, stops: _Never, shown: bool | None
) -> None:
    """Read the batches that are in the sum already: what comes after them is then what came after them before."""
    items = 0
    with Progress("Reading on to where the run was", shown) as progress:
        for number in range(place.batches):
            batch = next(batches, None)
            items += 0 if batch is None else len(batch)
            if stops.asked:
                raise Stopped(stops.asked)
            if batch is None or items > place.items:
                raise saved.misread(place, items)
            progress.step((number + 1) / place.batches)
    if items != place.items:
        raise saved.misread(place, items)


class _Pace:
    """How quick the run is, and how far."""

    def __init__(self, start: int, files: Sequence[str], form: str | None, limit: int | None):
        self._start = start
        self._reading = (files, form, limit) if files else None
        self._expected: float | None = None
        self._seen: deque[tuple[float, int]] = deque([(time.monotonic(), start)])

    def begin(self) -> None:
        """From now on time counts."""
        self._seen[0] = (time.monotonic(), self._start)

    def fraction(self, items: int) -> float | None:
        """The share of what this run has to do that is done, from which the time left follows, resumed or not."""
        # Files are looked at only where the run is long enough for a line to be shown.
        if self._reading is not None and time.monotonic() - self._seen[0][0] >= FIRST:
            self._expected, self._reading = items_expected(*self._reading), None
        if self._expected is None or self._expected <= self._start:
            return None
        return (items - self._start) / (self._expected - self._start)

    def note(self, items: int) -> str:
        """Items so far, and how many a second."""
        now = time.monotonic()
        self._seen.append((now, items))
        while len(self._seen) > 2 and now - self._seen[1][0] >= WINDOW:
            self._seen.popleft()
        begin, before = self._seen[0]
        rate = (items - before) / max(now - begin, 1e-9)
        return f"{items:,} items, {rate:,.{0 if rate >= 10 else 1}f} items/s"


class _Never:
    """No interruption is waited for: it comes at once."""

    asked: int | None = None  # the number of the signal

    def __enter__(self) -> _Never:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class _Stops(_Never):
    """Interruptions wait for the end of a batch within this block, once; the second comes at once."""

    def __init__(self, quiet: bool):
        self._quiet = quiet
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Stops:
        if threading.current_thread() is threading.main_thread():  # others may not set handlers
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)  # not every system has all
                # An ignored signal stays ignored, as under nohup or in the background of a script.
                if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise Stopped(number)
        self.asked = number
        if not self._quiet:
            # Not through sys.stderr, which may be in the middle of a write; and the terminal may be gone.
            with suppress(OSError):
                os.write(2, STOPPING.encode())

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
