"""The command ``vendi plan``."""

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
    from vendimeter.cli.output import Answer, check_target, emit
    from vendimeter.present.tables import Sheet

    check_target(output, files)
    orders = work.orders_of(q)
    work.refuse_groups(reading, "leave it away: groups are scored one by one, exactly, and need no plan.")
    work.check_solving(solving)
    with work.work_session(running) as warning_texts:
        opened = work.open_and_announce(files, reading, similarity, running)
        with work.explain_errors(opened):
            samples = work.read_all(opened, running, reading)
            chosen_plan = vm.plan(samples, opened.kernel, q=orders, rng=running.seed, **solving.as_keywords)
    plans = [chosen_plan, *chosen_plan.considered]
    columns = {
        "method": [solver_plan.method for solver_plan in plans],
        "chosen": [i == 0 for i in range(len(plans))],
        "matrix": [solver_plan.side for solver_plan in plans],
        "storage": [solver_plan.storage for solver_plan in plans],
        "precision": [solver_plan.precision for solver_plan in plans],
        "operations": [float(solver_plan.flops) for solver_plan in plans],
        "bytes": [float(solver_plan.bytes) for solver_plan in plans],
        "similarities": [float(solver_plan.evaluations) for solver_plan in plans],
    }
    sheet = Sheet("plans", columns, digits=3, visible=() if len(plans) == 1 else None)
    answer = Answer(
        "plan",
        chosen_plan.to_dict(),
        str(chosen_plan),
        [sheet],
        work.source_of(files, opened, len(samples)),
        running.seed,
    )
    emit(work.add_warnings(answer, warning_texts), output, running.quiet)
