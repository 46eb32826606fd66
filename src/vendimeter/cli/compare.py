"""The command ``vendi compare``."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from vendimeter.cli import options
from vendimeter.cli.options import Command, Output, Reading, Running, Similarity, option

__all__ = ["compare", "resolve_reference"]


# Groups up to which all pairs are compared: fifteen, among which tests can still find differences.
MAX_ALL_PAIRS = 6


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
    help="Compare all others with this group or collection. Without it all pairs are compared, of more than "
         f"{MAX_ALL_PAIRS} groups all others with the first.",
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
    from vendimeter.cli.inputs import bare_samples, open_collections
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
    arguments: dict[str, Any] = {
        "q": work.single_order(q), "size": size, "confidence": confidence, "permutations": permutations,
        "rng": running.seed, "reference": None,
    }  # fmt: skip
    with work.work_session(running) as warning_texts:
        if reading.by:
            opened = work.open_and_announce(files, reading, similarity, running)
            with work.explain_errors(opened):
                samples: Any = work.read_all(opened, running, reading)
                kernel, count, left_out = opened.kernel, len(samples), samples.skipped.count
                names = _distinct_labels(samples.labels)
                arguments["reference"] = resolve_reference(reference, names)
                arguments["pairs"] = pairs or (reference is None and len(names) <= MAX_ALL_PAIRS)
                result = vm.compare(samples, kernel, **arguments)
        else:
            collections, kernel, opened = open_collections(files, reading, similarity)
            say(f"{opened.first.source}: {opened.about}", running.quiet)
            for name, collection in collections.items():
                say(f"{name}: {work.describe_count(collection)}", running.quiet)
            count = sum(map(len, collections.values()))
            left_out = sum(collection.skipped.count for collection in collections.values())
            arguments["reference"] = resolve_reference(reference, list(collections), files)
            arguments["pairs"] = pairs or (reference is None and len(collections) <= MAX_ALL_PAIRS)
            with work.explain_errors(opened):
                for collection in collections.values():
                    bare_samples(collection)  # refuses what several collections cannot have
                result = vm.compare(collections, kernel, **arguments)
    source = Source(files, opened.first.kind, opened.guessed, repr(as_kernel(kernel)), count, left_out)
    answer = Answer(
        "compare", result.to_dict(), result.summary("terminal"), _sheets(result), source, running.seed
    )
    emit(work.add_warnings(answer, warning_texts), output, running.quiet)


def _distinct_labels(labels: Any) -> list[Any]:
    """All labels without repetition; an item may have several."""
    distinct: dict[Any, None] = {}
    for label in labels:
        for single in label if isinstance(label, list | set) else [label]:
            with contextlib.suppress(TypeError):  # no label at all, as the comparison will say
                distinct[single] = None
    return list(distinct)


def resolve_reference(name: str | None, labels: list[Any], files: tuple[str, ...] = ()) -> Any:
    """The label that a name stands for; a collection may be named by its path, too."""
    from vendimeter.messages import unknown

    if name is None:
        return None
    if name in files:
        return labels[files.index(name)]
    for label in labels:
        label_text = " / ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        if name.rstrip("/") == label_text.rstrip("/"):
            return label
    raise unknown("group", name, labels)


def _sheets(result: Any) -> list[Any]:
    from vendimeter.present.tables import Sheet, ranked

    columns = dict(result._columns())
    columns["rank"] = [None if rank != rank else int(rank) for rank in columns["rank"]]
    compared_column = "score" if result.size is None else "rarefied"
    interval_columns = [] if result.size is None else ["rarefied_low", "rarefied_high"]
    groups = Sheet(
        "groups", columns, digits=4, shown=40, order=ranked(result.fair), bar=compared_column,
        visible=("group", "n", "score", *([] if compared_column == "score" else [compared_column]), *interval_columns),
        headings={"rarefied_low": "low", "rarefied_high": "high"},
    )  # fmt: skip
    differences = result.differences
    if not len(differences):
        return [groups]
    pairs = differences._columns()
    visible = [name for name in ("group", "reference", "difference", "difference_low", "difference_high", "ratio", "p",
                                 "p_adjusted") if name in pairs]  # fmt: skip
    title = f"Differences (group − reference), with intervals of {result.confidence:.0%}"
    headings = {"difference_low": "low", "difference_high": "high", "p_adjusted": "adjusted p"}
    return [
        groups,
        Sheet("differences", pairs, title=title, digits=4, shown=40, visible=visible, headings=headings),
    ]
