"""The command ``vendi select``."""

from __future__ import annotations

from typing import Any

import click

from vendimeter.cli import options
from vendimeter.cli.options import Command, Output, Reading, Running, Similarity, option

__all__ = ["select"]

METHODS = ("vendi", "logdet", "farthest", "facility", "random")  # as in analysis; a test compares them


@click.command(
    cls=Command,
    short_help="A part that keeps the diversity.",
    examples=[
        "vendi select captions.txt -k 100",
        "vendi select embeddings.npy -k 1000 --csv -o chosen.csv",
        "vendi select molecules.smi -k 50 --method facility --json",
    ],
)
@options.files()
@option(
    "Selection", "-k", "count", type=click.IntRange(1), required=True, metavar="N", help="How many items."
)
@option("Selection", "--method", type=click.Choice(METHODS), default="vendi", show_default=True, metavar="NAME",
         help=f"{', '.join(METHODS)}; the others are compared with it.")  # fmt: skip
@option("Selection", "--only", is_flag=True, help="Do not compare with other methods.")
@options.reading_without("weight")
@options.similarity
@options.orders(several=False)
@options.output(["chosen", "methods"])
@options.running
def select(
    files: tuple[str, ...],
    count: int,
    method: str,
    only: bool,
    reading: Reading,
    similarity: Similarity,
    q: str,
    output: Output,
    running: Running,
) -> None:
    """Choose items that are as diverse as so many can be, in order of choice: the first ten are the choice of ten.

    With --by, as many are taken from every group, as nearly as its size allows.
    """
    import vendimeter as vm
    from vendimeter.cli import work
    from vendimeter.cli.output import Answer, check_target, emit
    from vendimeter.errors import InputError
    from vendimeter.present.tables import Sheet

    check_target(output, files)
    order = work.single_order(q)
    if reading.weight is not None:
        raise InputError(
            f"--weight {reading.weight} was given, and items are chosen one by one; leave it away."
        )
    with work.work_session(running) as warning_texts:
        opened = work.open_and_announce(files, reading, similarity, running)
        with work.explain_errors(opened):
            samples = work.read_all(opened, running, reading)
            arguments: dict[str, Any] = {
                "kernel": opened.kernel,
                "method": method,
                "q": order,
                "rng": running.seed,
            }
            arguments["compare"] = not only
            if reading.by:
                quotas = _quotas(list(samples.labels), count)
                result = vm.select(samples, quotas=quotas, by=samples.labels, **arguments)
            else:
                result = vm.select(samples, count, **arguments)
    columns = work.item_columns(samples, result.indices.tolist())
    columns = {"rank": list(range(1, result.k + 1)), **columns, "gain": result.gains.tolist()}
    methods = {"method": list(result.comparison), "score": list(result.comparison.values())}
    sheets = [Sheet("chosen", columns, digits=5, shown=40)]
    if methods["method"]:
        visible = None if len(methods["method"]) > 1 else ()  # with --only the words say it all
        sheets.append(
            Sheet("methods", methods, title="As many items, chosen otherwise", bar="score", visible=visible)
        )
    answer = Answer(
        "select",
        result.to_dict(),
        result.summary("terminal"),
        sheets,
        work.source_of(files, opened, len(samples)),
        running.seed,
    )
    emit(work.add_warnings(answer, warning_texts), output, running.quiet)


def _quotas(labels: list[object], count: int) -> dict[object, int]:
    """As many of each group as come nearest to equal shares; small groups give what they have."""
    from collections import Counter

    from vendimeter.errors import InputError

    try:
        sizes = Counter(labels)
    except TypeError:
        raise InputError(
            "--by names a column of lists, and items of several groups have no quota; expected one label an item."
        ) from None
    if count > len(labels):
        raise InputError(f"-k {count:,} items were asked for and there are {len(labels):,}; expected fewer.")
    quotas = dict.fromkeys(sizes, 0)
    remaining = count
    while remaining:
        open_groups = [label for label in quotas if quotas[label] < sizes[label]]
        for label in open_groups[:remaining] if remaining < len(open_groups) else open_groups:
            equal_share = max(1, remaining // len(open_groups)) if remaining >= len(open_groups) else 1
            added = min(equal_share, sizes[label] - quotas[label], remaining)
            quotas[label] += added
            remaining -= added
    return {label: quota for label, quota in quotas.items() if quota}
