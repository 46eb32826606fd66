"""vendi plan."""

from __future__ import annotations

import click

from vendimeter.cli import options
from vendimeter.cli.options import Command, Output, Reading, Running, Similarity, Solving

__all__ = ["plan"]


@click.command(
    cls=Command,
    short_help="What a score would take, without computing it.",
    examples=["vendi plan molecules.smi --tol 1e-2", "vendi plan embeddings.npy --kernel rbf --memory 2GiB"],
)
@options.files()
@options.reading_without("by")
@options.similarity
@options.orders()
@options.solving
@options.output(["plans"])
@options.running
def plan(
    files: tuple[str, ...],
    reading: Reading,
    similarity: Similarity,
    q: str,
    solving: Solving,
    output: Output,
    running: Running,
) -> None:
    """Say by which method a score would be computed, why, and what it would cost; features are computed for that.

    The samples are looked at once: what a score would refuse in them is an error here, too.
    """
    import vendimeter as vm
    from vendimeter.cli import work
    from vendimeter.cli.output import Answer, Sheet, check_target, emit

    check_target(output, files)
    orders = work.orders_of(q)
    work.refuse_groups(reading, "leave it away: groups are scored one by one, exactly, and need no plan.")
    work.check_solving(solving)
    with work.working(running) as said:
        given = work.looked_at(files, reading, similarity, running)
        with work.explained(given):
            held = work.whole(given, running, reading)
            found = vm.plan(held, given.kernel, q=orders, rng=running.seed, **solving.given)
    plans = [found, *found.considered]
    columns = {
        "method": [one.method for one in plans],
        "chosen": [i == 0 for i in range(len(plans))],
        "matrix": [one.side for one in plans],
        "storage": [one.storage for one in plans],
        "precision": [one.precision for one in plans],
        "operations": [float(one.flops) for one in plans],
        "bytes": [float(one.bytes) for one in plans],
        "similarities": [float(one.evaluations) for one in plans],
    }
    sheet = Sheet("plans", columns, digits=3, visible=() if len(plans) == 1 else None)
    answer = Answer(
        "plan", found.to_dict(), str(found), [sheet], work.source_of(files, given, len(held)), running.seed
    )
    emit(work.finished(answer, said), output, running.quiet)
