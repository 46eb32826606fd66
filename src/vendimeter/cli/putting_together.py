"""vendi merge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vendimeter.cli import options
from vendimeter.cli.options import Command, Output, Running, Solving, option

if TYPE_CHECKING:
    from vendimeter.cli.outputs import Source

__all__ = ["merge"]


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
    from vendimeter.cli import merging, work
    from vendimeter.cli.gates import check, check_gate, gate_of
    from vendimeter.cli.outputs import Answer, check_target, emit
    from vendimeter.cli.wording import words_and_tables

    check_target(output, files, save)
    orders = work.orders_of(q)
    work.check_solving(Solving(memory=memory))
    check_gate(fail_under, orders)
    with work.working(running) as said:
        result = merging.merge_files(files, orders, save, output.force, memory=memory)
    words, sheets = words_and_tables(result)
    found = result.to_dict()
    answer = Answer("merge", found, words, sheets, _source(files, found), running.seed)
    answer.gate = gate_of(result, fail_under)
    emit(work.finished(answer, said), output, running.quiet)
    check(answer, running)


def _source(files: tuple[str, ...], found: dict[str, Any]) -> Source:
    """What the files were made from."""
    from vendimeter.cli.outputs import Source

    rows = found.get("groups") or found.get("profile") or [found]
    notes = rows[0].get("diagnostics", {})
    count = sum(row["n"] for row in rows if row["q"] == rows[0]["q"]) if "groups" in found else rows[0]["n"]
    kernel = str(found.get("kernel") or notes.get("kernel", ""))
    left_out = int(found.get("left_out", notes.get("left_out", 0)))
    return Source(files, kernel=kernel, items=count, left_out=left_out)
