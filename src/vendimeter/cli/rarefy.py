"""The command ``vendi rarefy``."""

from __future__ import annotations

import click

from vendimeter.cli import options
from vendimeter.cli.options import Command, Output, Reading, Running, Similarity, option

__all__ = ["rarefy"]


@click.command(
    cls=Command,
    short_help="Would more samples change the score? And the population's.",
    examples=["vendi rarefy captions.txt", "vendi rarefy embeddings.npy --q 2 --csv"],
)
@options.files()
@options.reading_without("by")
@options.similarity
@options.orders(several=False)
@option("Rarefaction", "--repeats", type=click.IntRange(2), default=20, show_default=True, metavar="N",
         help="Random subsets of each size.")  # fmt: skip
@option("Rarefaction", "--confidence", type=float, default=0.95, show_default=True, metavar="P",
         help="Of the interval for the population.")  # fmt: skip
@options.output(["curve"])
@options.running
def rarefy(
    files: tuple[str, ...],
    reading: Reading,
    similarity: Similarity,
    q: str,
    repeats: int,
    confidence: float,
    output: Output,
    running: Running,
) -> None:
    """Score subsets of all sizes, and estimate the score of the population that the samples were drawn from.

    The interval of the population is about sampling, and refused where so few samples cannot tell; the bounds of the
    score are about the computation. They are never mixed.
    """
    import vendimeter as vm
    from vendimeter.cli import work
    from vendimeter.cli.output import Answer, check_target, emit
    from vendimeter.present.tables import Sheet

    check_target(output, files)
    order = work.single_order(q)
    work.refuse_groups(reading, "leave it away, or take vendi compare, which compares groups at one size.")
    with work.work_session(running) as warning_texts:
        opened = work.open_and_announce(files, reading, similarity, running)
        with work.explain_errors(opened):
            samples = work.read_all(opened, running, reading)
            result = vm.rarefy(
                samples, opened.kernel, q=order, repeats=repeats, confidence=confidence, rng=running.seed
            )
    columns = {name: list(values) for name, values in result._columns().items()}
    curve = Sheet("curve", columns, digits=5, bar="score", visible=("size", "score", "low", "high"),
                  title="Mean score of random subsets, with the 5 % and 95 % quantiles among them")  # fmt: skip
    source = work.source_of(files, opened, len(samples))
    answer = Answer("rarefy", result.to_dict(), result.summary("terminal"), [curve], source, running.seed)
    emit(work.add_warnings(answer, warning_texts), output, running.quiet)
