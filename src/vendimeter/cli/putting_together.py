"""vendi merge."""

from __future__ import annotations

from pathlib import Path

import click

from vendimeter.cli import options
from vendimeter.cli.options import Command, Output, Running, option

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
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
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
    from vendimeter.cli.gates import check, gate_of
    from vendimeter.cli.outputs import Answer, Source, check_target, emit
    from vendimeter.cli.scoring import words_and_tables

    check_target(output)
    with work.working(running) as said:
        result = merging.merge(files, work.orders_of(q), save, output.force, memory=memory)
    words, sheets = words_and_tables(result)
    answer = Answer("merge", result.to_dict(), words, sheets, Source(files), running.seed)
    answer.gate = gate_of(result, fail_under)
    emit(work.finished(answer, said), output)
    check(answer, running)
