"""The command ``vendi merge``, and the files of accumulators that one run saves and another merges.

The commands are imported for every ``--help``, so that readers and accumulators are imported where they are used.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vendimeter.cli import options
from vendimeter.cli.options import Command, Output, Running, Solving, option
from vendimeter.errors import InputError, MismatchError, SavedStateError
from vendimeter.present.text import printable

if TYPE_CHECKING:
    from vendimeter.cli.output import Source
    from vendimeter.streams.accumulator import Accumulator
    from vendimeter.streams.grouped import GroupAccumulator

__all__ = ["merge", "merge_files", "refuse_existing", "refuse_input", "save"]


# --------------------------------------------------------------------------------------------------------------- files

DEFAULT_MEMORY = "1 GiB"  # for groups, unless the user says otherwise
LEFT_OUT_KEY = "left_out"  # key of the number of broken records in the header


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Refuse to write over a file that is there, unless the user said so; before the work is done."""
    if os.path.lexists(path):
        obstacle = (
            "a folder" if path.is_dir() else "no plain file" if path.exists() and not path.is_file() else ""
        )
        if obstacle or not overwrite:
            raise InputError(
                f"{printable(path)!r} is {obstacle or 'there already'}; expected a new name. Give another"
                f"{'' if obstacle else ', or replace the file with --force'}."
            )
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise InputError(
            f"{printable(path)!r} cannot be written: there is no folder {printable(folder)!r}. Expected a file in a "
            "folder that exists; make it first."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(
            f"{printable(path)!r} cannot be written: nothing may be written to the folder {printable(folder)!r}. "
            "Expected one that may be; give another."
        )


def refuse_input(path: Path, files: Sequence[str]) -> None:
    """Refuse to write over what is read."""
    from vendimeter.io.sources import files_of

    if not files or not path.exists():
        return
    for file in files_of(list(files)):
        if file.path is not None and file.path.exists() and path.samefile(file.path):
            raise InputError(f"{printable(path)!r} is read, and cannot be written; expected another name.")


def save(
    total: Accumulator | GroupAccumulator, path: Path, overwrite: bool = False, *, left_out: int = 0
) -> None:
    """Write an accumulator into a file, all or nothing, with the number of broken records that were left out.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from vendimeter import Accumulator
    >>> folder = tempfile.TemporaryDirectory()
    >>> total = Accumulator()
    >>> total.update(np.eye(4))
    >>> save(total, Path(folder.name, "part.npz"))
    >>> round(merge_files([folder.name + "/part.npz"], 1), 6)
    4.0
    >>> folder.cleanup()
    """
    refuse_existing(path, overwrite)
    total._write(path, {LEFT_OUT_KEY: left_out} if left_out else None, overwrite=overwrite)


def merge_files(
    paths: Sequence[str | Path],
    orders: Any,
    out: Path | None = None,
    overwrite: bool = False,
    *,
    kernel: Any = None,
    memory: int | str | None = None,
) -> Any:
    """Merge the accumulators of several files and score the sum.

    Parameters
    ----------
    paths : list of str or Path
        Files of `save`, `Accumulator.save` or `GroupAccumulator.save`, or checkpoints of runs that are finished; or
        patterns of their names. All of one kind, with one kernel, each named once.
    orders : float, str or list of them
        The orders of the scores.
    out : Path, optional
        Where to write the sum of all.
    overwrite : bool
        Whether a file of that name may be replaced.
    kernel : Kernel, optional
        Needed where it holds a function of the user's own, which no file can hold.
    memory : int or str, optional
        For groups: what may be held; the rest lies in temporary files meanwhile.

    Returns
    -------
    Score, Profile or GroupScores

    Raises
    ------
    MismatchError
        Where two files do not belong together, with their names and what differs.
    InputError
        Where a file is named twice, is the checkpoint of a run that is not finished, or cannot be used.
    """
    from vendimeter.io.sources import files_of

    if out is not None:
        refuse_existing(out, overwrite)
    resolved_paths = [file.path for file in files_of([os.fspath(path) for path in paths])]
    _refuse_twice(resolved_paths)
    memory = DEFAULT_MEMORY if memory is None else memory
    total: Any = None
    left_out = 0
    with tempfile.TemporaryDirectory() as spill:
        for path in resolved_paths:
            assert path is not None
            accumulator, broken = _load(path, kernel, memory, spill)
            left_out += broken
            if total is None:
                total = accumulator
                continue
            if type(accumulator) is not type(total):
                raise MismatchError(
                    f"{printable(resolved_paths[0])!r} holds {_contents(total)} and {printable(path)!r} "
                    f"{_contents(accumulator)}; expected files of one kind. Merge those of each kind by themselves."
                )
            try:
                total.merge(accumulator)
            except MismatchError as error:
                raise MismatchError(
                    f"{printable(path)!r} does not go with {printable(resolved_paths[0])!r}: {error}"
                ) from None
        if out is not None:
            save(total, out, overwrite, left_out=left_out)
        result = total.score(orders)
    return result.noted(left_out=left_out) if left_out and hasattr(result, "noted") else result


def _refuse_twice(paths: Sequence[Path | None]) -> None:
    seen: set[str] = set()
    for path in paths:
        if path is None:
            raise InputError("standard input cannot be merged; expected the paths of files.")
        real_path = os.path.realpath(path)
        if real_path in seen:
            raise InputError(
                f"{printable(path)!r} is named twice, and its items would count twice; expected every file once. Name "
                "it once, or check the patterns."
            )
        seen.add(real_path)


def _contents(total: Any) -> str:
    from vendimeter.streams.grouped import GroupAccumulator

    return "one sum a label" if isinstance(total, GroupAccumulator) else "one sum of all items"


def _load(path: Path, kernel: Any, memory: int | str, spill: str) -> tuple[Any, int]:
    """The accumulator of a file, and how many broken records were left out of it."""
    from vendimeter.cli.checkpoints import RunPosition
    from vendimeter.streams import saved
    from vendimeter.streams.accumulator import Accumulator
    from vendimeter.streams.grouped import GroupAccumulator

    with saved.opened(path, None) as archive:
        position = RunPosition.of(archive)
        if position is not None and not position.finished:
            raise InputError(
                f"{printable(path)!r} is the checkpoint of a run that is not finished, after {position.items:,} items; "
                "expected a finished one. Run its command again, which goes on from there."
            )
        left_out = (
            archive.wholes(LEFT_OUT_KEY, [archive.header.get(LEFT_OUT_KEY, 0)])[0]
            if position is None
            else position.left_out
        )
    try:
        if archive.kind == "group accumulator":
            return GroupAccumulator.load(path, kernel, memory=memory, spill=spill), left_out
        return Accumulator.load(path, kernel), left_out
    except SavedStateError:
        raise  # which names the file
    except InputError as error:
        error.at(collection=repr(printable(path)))
        if not isinstance(error, MismatchError):  # a kernel that cannot be made from what a file holds
            error.add_note("Merge such files in Python.")
        raise


# --------------------------------------------------------------------------------------------------------- the command


@click.command(
    cls=Command,
    short_help="Put sums together that several runs have saved.",
    examples=[
        "vendi score 'part1/*.npy' --save part1.vendi",
        "vendi score 'part2/*.npy' --save part2.vendi",
        "vendi merge part1.vendi part2.vendi",
    ],
)
@options.files()
@options.orders()
@option("Precision", "--memory", metavar="SIZE", help="For groups: what may be held, such as 2GiB.")
@option("Run", "--save", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
         help="Keep the sum of all, to merge it further.")  # fmt: skip
@options.output(["scores"])
@options.gate
@options.running
def merge(
    files: tuple[str, ...],
    q: str,
    memory: str | None,
    save: Path | None,
    output: Output,
    fail_under: float | None,
    running: Running,
) -> None:
    """Score what several runs have seen together, from the files of `vendi score --save`.

    The files hold sums, not samples: their size does not depend on how many samples there were, and the result is that
    of all samples at once. Checkpoints of finished runs, and files of Accumulator.save, are such files too.
    """
    from vendimeter.cli import work
    from vendimeter.cli.output import Answer, check_target, emit
    from vendimeter.cli.score import check_gate, describe_result, enforce_gate, gate_of

    check_target(output, files, save)
    orders = work.orders_of(q)
    work.check_solving(Solving(memory=memory))
    check_gate(fail_under, orders)
    with work.work_session(running) as warning_texts:
        result = merge_files(files, orders, save, output.force, memory=memory)
    words, sheets = describe_result(result)
    plain_result = result.to_dict()
    answer = Answer("merge", plain_result, words, sheets, _source(files, plain_result), running.seed)
    answer.gate = gate_of(result, fail_under)
    emit(work.add_warnings(answer, warning_texts), output, running.quiet)
    enforce_gate(answer, running)


def _source(files: tuple[str, ...], result: dict[str, Any]) -> Source:
    """The source of the merged result, from its own diagnostics."""
    from vendimeter.cli.output import Source

    rows = result.get("groups") or result.get("profile") or [result]
    diagnostics = rows[0].get("diagnostics", {})
    count = sum(row["n"] for row in rows if row["q"] == rows[0]["q"]) if "groups" in result else rows[0]["n"]
    kernel = str(result.get("kernel") or diagnostics.get("kernel", ""))
    left_out = int(result.get("left_out", diagnostics.get("left_out", 0)))
    return Source(files, kernel=kernel, items=count, left_out=left_out)
