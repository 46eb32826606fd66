"""One pass over more than is held in memory, which can be killed at any moment and goes on from its checkpoint."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from types import FrameType
from typing import Any

from vendimeter.cli.checkpoints import Checkpoint, RunPosition
from vendimeter.cli.commands import Stopped
from vendimeter.cli.fingerprints import items_expected
from vendimeter.cli.inputs import Input
from vendimeter.cli.merge import DEFAULT_MEMORY, refuse_existing, save
from vendimeter.cli.options import Reading, Saving
from vendimeter.data.collection import Collection
from vendimeter.kernels import Kernel
from vendimeter.present.progress import FIRST, Progress
from vendimeter.streams.accumulator import Accumulator
from vendimeter.streams.grouped import GroupAccumulator

__all__ = ["score_batches"]

# Time to the next checkpoint over the time that the last one took, at least: at most 5 % go into them.
SAVE_SPACING = 20
RATE_WINDOW = 10.0  # seconds over which the rate is averaged
STOP_MESSAGE = (
    "\nStopping after this batch, to save it; Ctrl-C again stops at once, at the last checkpoint.\n"
)
NOTHING_SAVED, WHOLE_FILES = Saving(), Reading()


def score_batches(
    opened: Input,
    kernel: Kernel,
    orders: Any,
    *,
    grouped: bool,
    memory: int | str | None = None,
    seed: int = 0,
    quiet: bool = False,
    saving: Saving = NOTHING_SAVED,
    files: Sequence[str] = (),
    reading: Reading = WHOLE_FILES,
) -> tuple[Any, int]:
    """Score what an input gives, batch by batch.

    With a checkpoint, the state is saved after the first batch, every so often, when the run is interrupted, and at its
    end. A run that finds one goes on after the last batch in it: it reads the batches before once more, without
    computing anything, and adds the others in the same order, so that the answer is the same to the last bit (with the
    same number of threads). A finished one answers at once.

    Parameters
    ----------
    opened : Input
        The batches; counts of records that were left out are in ``opened.first.skipped`` afterwards.
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
    quiet : bool
        Show nothing on the way.
    saving : Saving
        The checkpoint and the file of sums, if there are any.
    files, reading
        What is read, as the user named it, for the fraction that is done; without files only the rate is shown.

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
    if saving.sums is not None:
        refuse_existing(saving.sums, saving.overwrite)
    memory = DEFAULT_MEMORY if memory is None else memory
    with ExitStack() as stack:
        run_checkpoint = None
        if saving.checkpoint is not None:
            if saving.fingerprint is None:
                raise TypeError("a checkpoint needs the fingerprint of what is read")
            fingerprint = {**saving.fingerprint, "seed": seed}
            run_checkpoint = stack.enter_context(Checkpoint(saving.checkpoint, fingerprint))
        resumed = (
            None if run_checkpoint is None else run_checkpoint.load(kernel, grouped=grouped, memory=memory)
        )
        total: Any
        total, position = resumed or (None, RunPosition())
        if total is None and grouped:
            spill = (
                stack.enter_context(tempfile.TemporaryDirectory())
                if run_checkpoint is None
                else run_checkpoint.spill
            )
            total = GroupAccumulator(kernel, rng=seed, memory=memory, spill=spill)
        elif total is None:
            total = Accumulator(kernel, rng=seed)
        skipped = opened.first.skipped
        if position.finished:
            skipped.count, skipped.records = position.left_out, position.records
        else:
            show_progress = False if quiet else None
            pace = _Pace(position.items, [] if quiet else files, reading.ending, reading.limit)
            try:
                _run(opened, total, position, run_checkpoint, saving.every, show_progress, pace)
            except KeyboardInterrupt as error:
                if run_checkpoint is not None:
                    error.add_note(run_checkpoint.resume_hint())
                raise
        if saving.sums is not None:
            save(total, saving.sums, saving.overwrite, left_out=skipped.count)
        result: Any = total.score(orders)
    if skipped.count and not grouped:
        result = result.noted(left_out=skipped.count)
    return result, position.items


def _run(
    opened: Input,
    total: Any,
    position: RunPosition,
    checkpoint: Checkpoint | None,
    every: float,
    show_progress: bool | None,
    pace: _Pace,
) -> None:
    """Add all batches that are not in the sum yet."""
    batches = iter(opened.batches)
    skipped = opened.first.skipped
    with (
        _DeferredSignals(quiet=show_progress is False) if checkpoint is not None else _NoDeferral() as signals
    ):
        if checkpoint is not None and position.batches:
            _skip_batches(batches, position, checkpoint, signals, show_progress)
        next_save = time.monotonic() if not position.batches else time.monotonic() + every
        with Progress(
            "Items" if not position.items else f"Items after {position.items:,}", show_progress
        ) as progress:
            pace.begin()
            for batch in batches:
                total.update(batch)
                position.batches, position.items = position.batches + 1, position.items + len(batch)
                progress.step(pace.fraction(position.items), pace.note(position.items))
                if checkpoint is not None and (signals.signal_number or time.monotonic() >= next_save):
                    position.left_out, position.records = skipped.count, list(skipped.records)
                    save_start = time.monotonic()
                    checkpoint.save(total, position)
                    save_end = time.monotonic()
                    next_save = save_end + max(every, SAVE_SPACING * (save_end - save_start))
                if signals.signal_number:
                    raise Stopped(signals.signal_number)
        if checkpoint is not None:
            position.left_out, position.records = skipped.count, list(skipped.records)
            position.finished = True
            checkpoint.save(total, position)
            if signals.signal_number:
                raise Stopped(signals.signal_number)


def _skip_batches(
    batches: Iterator[Collection],
    position: RunPosition,
    checkpoint: Checkpoint,
    signals: _NoDeferral,
    show_progress: bool | None,
) -> None:
    """Read and discard the batches that are in the sum already, so that the next one continues the run."""
    items = 0
    with Progress("Reading on to where the run was", show_progress) as progress:
        for number in range(position.batches):
            batch = next(batches, None)
            items += 0 if batch is None else len(batch)
            if signals.signal_number:
                raise Stopped(signals.signal_number)
            if batch is None or items > position.items:
                raise checkpoint.mismatch_error(position, items)
            progress.step((number + 1) / position.batches)
    if items != position.items:
        raise checkpoint.mismatch_error(position, items)


class _Pace:
    """The rate of a run, and the fraction of it that is done."""

    def __init__(self, start: int, files: Sequence[str], form: str | None, limit: int | None):
        self._start = start
        self._reading = (files, form, limit) if files else None
        self._expected: float | None = None
        self._history: deque[tuple[float, int]] = deque([(time.monotonic(), start)])

    def begin(self) -> None:
        """Start the clock."""
        self._history[0] = (time.monotonic(), self._start)

    def fraction(self, items: int) -> float | None:
        """The share of the items of this run (not of those before it was resumed) that is done."""
        # Files are looked at only where the run is long enough for a line to be shown.
        if self._reading is not None and time.monotonic() - self._history[0][0] >= FIRST:
            self._expected, self._reading = items_expected(*self._reading), None
        if self._expected is None or self._expected <= self._start:
            return None
        return (items - self._start) / (self._expected - self._start)

    def note(self, items: int) -> str:
        """The number of items so far, and their rate."""
        now = time.monotonic()
        self._history.append((now, items))
        while len(self._history) > 2 and now - self._history[1][0] >= RATE_WINDOW:
            self._history.popleft()
        window_start, items_before = self._history[0]
        rate = (items - items_before) / max(now - window_start, 1e-9)
        return f"{items:,} items, {rate:,.{0 if rate >= 10 else 1}f} items/s"


class _NoDeferral:
    """A context in which interruptions are not deferred."""

    signal_number: int | None = None  # the number of the signal

    def __enter__(self) -> _NoDeferral:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class _DeferredSignals(_NoDeferral):
    """A context that defers the first interruption to the end of a batch; the second one comes at once."""

    def __init__(self, quiet: bool):
        self._quiet = quiet
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _DeferredSignals:
        if threading.current_thread() is threading.main_thread():  # others may not set handlers
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)  # not every system has all
                # An ignored signal stays ignored, as under nohup or in the background of a script.
                if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number:
            raise Stopped(number)
        self.signal_number = number
        if not self._quiet:
            # Not through sys.stderr, which may be in the middle of a write; and the terminal may be gone.
            with suppress(OSError):
                os.write(2, STOP_MESSAGE.encode())

    def __exit__(self, *_: object) -> None:
        for number, previous in self._before.items():
            signal.signal(number, previous)
