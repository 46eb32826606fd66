"""vendi compare."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from vendimeter.cli import options
from vendimeter.cli.options import Command, Output, Reading, Running, Similarity, option

__all__ = ["compare", "named_reference"]


PAIRED = 6  # groups of which all pairs are compared: fifteen, of which tests can still tell some apart


@click.command(
    cls=Command,
    short_help="Groups, or several collections, side by side and fairly.",
    examples=[
        "vendi compare real/ gan/ diffusion/ --reference real",
        "vendi compare answers.csv --column text --by model",
        "vendi compare test.smi generated.smi --skip-broken --csv",
    ],
)
@options.files()
@options.reading
@options.similarity
@options.orders(several=False)
@option(
    "Comparison", "--reference", metavar="NAME",
    help=f"Compare all others with this group or collection. Without it all pairs are compared, of more than {PAIRED} "
         "groups all others with the first.",
)  # fmt: skip
@option("Comparison", "--pairs", is_flag=True, help="Compare all pairs, however many groups there are.")
@option("Comparison", "--size", type=click.IntRange(2), metavar="N",
         help="The number of items at which they are compared; default: that of the smallest.")  # fmt: skip
@option("Comparison", "--confidence", type=float, default=0.95, show_default=True, metavar="P",
         help="Of each interval by itself.")  # fmt: skip
@option("Comparison", "--permutations", type=click.IntRange(0), default=999, show_default=True, metavar="N",
         help="Of the tests; 0 for none.")  # fmt: skip
@options.output(["groups", "differences"])
@options.running
def compare(
    files: tuple[str, ...],
    reading: Reading,
    similarity: Similarity,
    q: str,
    reference: str | None,
    pairs: bool,
    size: int | None,
    confidence: float,
    permutations: int,
    output: Output,
    running: Running,
) -> None:
    """Compare several collections, one a FILE, or with --by the groups of one.

    A larger collection has a larger score for its size alone, so that all are compared at the size of the smallest.
    Intervals and tests are about sampling: what would differ if other items had been drawn.
    """
    import vendimeter as vm
    from vendimeter.cli import work
    from vendimeter.cli.inputs import bare, several
    from vendimeter.cli.output import Answer, Source, check_target, emit
    from vendimeter.kernels import as_kernel
    from vendimeter.present.terminal import say

    check_target(output, files)
    if not reading.by and len(files) < 2:
        raise click.UsageError(
            "One collection was given; expected several, or --by NAME for the groups of one."
        )
    if pairs and reference is not None:
        raise click.UsageError("--pairs and --reference were given; expected one of them.")
    given_options: dict[str, Any] = {
        "q": work.one_order(q), "size": size, "confidence": confidence, "permutations": permutations,
        "rng": running.seed, "reference": None,
    }  # fmt: skip
    with work.working(running) as said:
        if reading.by:
            given = work.looked_at(files, reading, similarity, running)
            with work.explained(given):
                samples: Any = work.whole(given, running, reading)
                kernel, count, left_out = given.kernel, len(samples), samples.skipped.count
                names = _each(samples.labels)
                given_options["reference"] = named_reference(reference, names)
                given_options["pairs"] = pairs or (reference is None and len(names) <= PAIRED)
                result = vm.compare(samples, kernel, **given_options)
        else:
            found, kernel, given = several(files, reading, similarity)
            say(f"{given.first.source}: {given.about}", running.quiet)
            for name, one in found.items():
                say(f"{name}: {work.counted(one)}", running.quiet)
            count, left_out = sum(map(len, found.values())), sum(one.skipped.count for one in found.values())
            given_options["reference"] = named_reference(reference, list(found), files)
            given_options["pairs"] = pairs or (reference is None and len(found) <= PAIRED)
            with work.explained(given):
                result = vm.compare({name: bare(one) for name, one in found.items()}, kernel, **given_options)
    source = Source(files, given.first.kind, given.guessed, repr(as_kernel(kernel)), count, left_out)
    answer = Answer("compare", result.to_dict(), result.summary(), _sheets(result), source, running.seed)
    emit(work.finished(answer, said), output, running.quiet)


def _each(labels: Any) -> list[Any]:
    """Every label once; an item may have several."""
    found: dict[Any, None] = {}
    for label in labels:
        for one in label if isinstance(label, list | set) else [label]:
            with contextlib.suppress(TypeError):  # no label at all, as the comparison will say
                found[one] = None
    return list(found)


def named_reference(name: str | None, labels: list[Any], files: tuple[str, ...] = ()) -> Any:
    """The label that is meant; a collection may be named by its path, too."""
    from vendimeter.errors import unknown

    if name is None:
        return None
    if name in files:
        return labels[files.index(name)]
    for label in labels:
        shown = " / ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        if name.rstrip("/") == shown.rstrip("/"):
            return label
    raise unknown("group", name, labels)


def _sheets(result: Any) -> list[Any]:
    from vendimeter.cli.output import Sheet
    from vendimeter.present.tables import ranked

    columns = dict(result._columns())
    columns["rank"] = [None if rank != rank else int(rank) for rank in columns["rank"]]
    fair = "score" if result.size is None else "rarefied"
    between = [] if result.size is None else ["rarefied_low", "rarefied_high"]
    groups = Sheet(
        "groups", columns, digits=4, shown=40, order=ranked(result.fair), bar=fair,
        visible=("group", "n", "score", *([] if fair == "score" else [fair]), *between),
        headings={"rarefied_low": "low", "rarefied_high": "high"},
    )  # fmt: skip
    found = result.differences
    if not len(found):
        return [groups]
    pairs = found._columns()
    visible = [name for name in ("group", "reference", "difference", "difference_low", "difference_high", "ratio", "p",
                                 "p_adjusted") if name in pairs]  # fmt: skip
    title = f"Differences (group − reference), with intervals of {result.confidence:.0%}"
    short = {"difference_low": "low", "difference_high": "high", "p_adjusted": "adjusted p"}
    return [
        groups,
        Sheet("differences", pairs, title=title, digits=4, shown=40, visible=visible, headings=short),
    ]
