"""Checkpoints of long runs: how far a run is and what it has summed up, in one file that is always whole.

A checkpoint is a file of an accumulator with more in its header: the batches that are in it, and what was read. While a
run goes on, its lock, a file that is being written and labels that do not fit into memory lie beside it, under hidden
names made from its own; what a killed run left of them, the next one clears away. A finished checkpoint stays: the same
command then answers from it at once, and with other orders too.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vendimeter.cli.fingerprints import difference, reading_fingerprint
from vendimeter.errors import InputError, MismatchError, SavedStateError
from vendimeter.kernels import Kernel
from vendimeter.messages import brief
from vendimeter.present.text import printable
from vendimeter.streams import saved
from vendimeter.streams.accumulator import Accumulator
from vendimeter.streams.grouped import GroupAccumulator

__all__ = ["Checkpoint", "RunPosition", "reading_fingerprint"]

VERSION = 1  # of the format of what a checkpoint adds to the header of an accumulator
HEADER_KEY = "run"  # its key in the header
MAX_NOTE_BYTES = 200  # of the note in a lock


@dataclass
class RunPosition:
    """How far a run is: the batches and items in its sum, and the broken records that were left out."""

    batches: int = 0  # that are in the sum
    items: int = 0  # in these batches
    finished: bool = False
    left_out: int = 0  # broken records so far …
    records: list[tuple[str, str]] = field(default_factory=list)  # … and the first of them: place, reason

    def to_header(self, reading: Mapping[str, Any]) -> dict[str, Any]:
        """The entry of the file's header, with the fingerprint of what was read."""
        return {
            "checkpoint": VERSION,
            "batches": self.batches,
            "items": self.items,
            "finished": self.finished,
            "left_out": self.left_out,
            "records": self.records,
            "reading": dict(reading),
        }

    @classmethod
    def of(cls, archive: saved.Archive) -> RunPosition | None:
        """The position in the header of a file; None where the file is no checkpoint."""
        header = archive.header.get(HEADER_KEY)
        if header is None:
            return None
        if not isinstance(header, dict):
            raise archive.damaged(f"{HEADER_KEY} is {brief(header)}")
        if header.get("checkpoint") != VERSION:
            raise SavedStateError(
                f"{str(archive.path)!r} has version {brief(header.get('checkpoint'))} of checkpoints and this is "
                f"version {VERSION}; expected the same. Use the release of Vendimeter that wrote it."
            )
        counts = {
            name: archive.wholes(name, [header.get(name)])[0] for name in ("batches", "items", "left_out")
        }
        finished, records, reading = header.get("finished"), header.get("records"), header.get("reading")
        if not isinstance(finished, bool) or not isinstance(records, list) or not isinstance(reading, dict):
            raise archive.damaged(f"{HEADER_KEY} makes no sense")
        return cls(
            **counts, finished=finished, records=[(str(place), str(reason)) for place, reason in records]
        )


class Checkpoint:
    """The file of a run, from which it goes on; in a ``with`` block no other process can use it.

    Parameters
    ----------
    path : Path
        The file. It is written by `save`, and nothing is changed before.
    reading : mapping
        The fingerprint of what is read and how, as of `reading_fingerprint`; JSON must be able to write it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> total = Accumulator()
    >>> with Checkpoint(Path(folder.name, "run.npz"), {"files": []}) as checkpoint:
    ...     checkpoint.save(total, RunPosition(batches=3, items=12))
    ...     found = checkpoint.load(total.kernel, grouped=False)
    >>> found is not None and found[1].batches
    3
    >>> os.listdir(folder.name)
    ['run.npz']
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, reading: Mapping[str, Any]):
        self.path = Path(os.path.realpath(path))  # a link stays one when the file is replaced
        self.reading: dict[str, Any] = json.loads(json.dumps(reading))
        self._partial, self._lock, self._spill = (
            self.path.with_name(f".{self.path.name}.{suffix}") for suffix in ("part", "lock", "spill")
        )
        self._open: contextlib.ExitStack | None = None
        self._items: int | None = None  # in the file, as far as it is known

    def __enter__(self) -> Checkpoint:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_hold_lock(self._lock, self.path))
            self._clear()
            stack.callback(self._clear)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _clear(self) -> None:
        """Remove temporary files beside the checkpoint; nobody else uses them while the lock is held."""
        with contextlib.suppress(OSError):
            self._partial.unlink(missing_ok=True)
        shutil.rmtree(self._spill, ignore_errors=True)

    @property
    def spill(self) -> Path:
        """A folder for labels that do not fit into memory, on the disk of the file; it goes with the run."""
        return self._spill

    def save(self, total: Any, position: RunPosition) -> None:
        """Write the state of a run, all or nothing: killed at any moment, the file is the old one or the new one."""
        total._write(self.path, {HEADER_KEY: position.to_header(self.reading)}, partial=self._partial)
        self._items = position.items

    def load(
        self, kernel: Kernel, *, grouped: bool, memory: int | str | None = None
    ) -> tuple[Any, RunPosition] | None:
        """The state of the run that wrote the file, if there is one; an error where it was of another input."""
        if not os.path.lexists(self.path):
            return None
        try:
            with saved.opened(self.path, None) as archive:
                position = RunPosition.of(archive)
                if position is None:
                    raise SavedStateError(
                        f"{printable(self.path)!r} is a saved sum and not of a run; expected a checkpoint. It can be "
                        "given to vendi merge."
                    )
                changed = difference(archive.header[HEADER_KEY]["reading"], self.reading)
                if changed is not None:
                    raise self._other_run_error(changed)
            kind = "group accumulator" if grouped else "accumulator"
            if archive.kind != kind:
                raise self._other_run_error(
                    "groups were asked for" if grouped else "no groups were asked for"
                )
            total: Any = (
                GroupAccumulator.load(self.path, kernel, memory=memory, spill=self.spill)
                if grouped
                else Accumulator.load(self.path, kernel)
            )
            (total._empty if grouped else total).known_files()  # of a model, which lie beside no input
        except (SavedStateError, MismatchError) as error:
            error.add_note(
                "This is about --checkpoint: give another name there, or delete the file to begin anew."
            )
            raise
        self._items = position.items
        return total, position

    def resume_hint(self) -> str:
        """What to do after an interruption."""
        if self._items is None:
            return f"Nothing was saved in {printable(self.path)!r} yet: the same command begins anew."
        return (
            f"The run is saved in {printable(self.path)!r} after {self._items:,} items: the same command goes on from "
            "there."
        )

    def _other_run_error(self, changed: str) -> InputError:
        return InputError(
            f"the checkpoint {printable(self.path)!r} is of another run: {changed}. Expected the files, options and "
            "kernel that it was begun with; to begin anew delete it, or give another name with --checkpoint."
        )

    def mismatch_error(self, position: RunPosition, items: int) -> InputError:
        """The error for an input that gives other batches than those that are in the sum."""
        return self._other_run_error(
            f"its first {position.batches:,} batches held {position.items:,} items, and now they hold {items:,}"
        )


@contextlib.contextmanager
def _hold_lock(path: Path, owner: Path) -> Iterator[None]:
    """Hold a lock, which the system gives back whatever becomes of the process; refuse where another holds it."""
    if sys.platform == "win32":
        raise InputError(
            "--checkpoint needs locks of files as Linux and macOS have them; expected one of these systems. Leave "
            "--checkpoint away, or score parts of the files with --save and put them together with vendi merge."
        )
    handle = _acquire_lock(path, owner)
    while not _is_open_at(handle, path):  # its holder has removed it meanwhile
        os.close(handle)
        handle = _acquire_lock(path, owner)
    try:
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode()[:MAX_NOTE_BYTES])
        yield
    finally:
        # Removed before it is given back: who opens it in between finds out that it is gone.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _acquire_lock(path: Path, owner: Path) -> int:
    """Acquire the lock and return its file descriptor."""
    import fcntl  # which not every system has

    try:
        if owner.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except (OSError, ValueError) as error:
        raise SavedStateError(
            f"the checkpoint {printable(owner)!r} cannot be written: {getattr(error, 'strerror', None) or error}. "
            "Expected a file in a folder that exists and may be written to."
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(handle, MAX_NOTE_BYTES).decode("utf-8", "replace")
        os.close(handle)
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise InputError(
                f"the checkpoint {printable(owner)!r} cannot be locked ({error.strerror}); expected a disk with locks, "
                "so that no two runs share a file. Give a name in another folder with --checkpoint."
            ) from None
        raise InputError(
            f"the checkpoint {printable(owner)!r} is in use by {printable(holder) or 'another process'}; expected one "
            "run at a time. Wait for it, or give another name with --checkpoint."
        ) from None
    return handle


def _is_open_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
