"""The command ``vendi explain``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vendimeter.cli import options
from vendimeter.cli.options import Command, Output, Reading, Running, Similarity, option

if TYPE_CHECKING:
    from vendimeter.data.collection import Collection
    from vendimeter.present.tables import Sheet

__all__ = ["explain"]

ANALYSES = ("contributions", "duplicates", "modes")


@click.command(
    cls=Command,
    short_help="Why the score is what it is: contributions, copies, modes.",
    examples=[
        "vendi explain captions.txt",
        "vendi explain images/ --part duplicates --threshold 0.98 --csv",
        "vendi explain 'shards/*.parquet' --column embedding --write contributions.parquet",
    ],
)
@options.files()
@options.reading
@options.similarity
@options.orders(several=False)
@option("Explanation", "--part", "parts", type=click.Choice(ANALYSES), multiple=True, metavar="NAME",
         help=f"{', '.join(ANALYSES)}; all of them if not given.")  # fmt: skip
@option("Explanation", "--top", type=click.IntRange(1), default=10, show_default=True, metavar="N",
         help="How many items, clusters and modes to list.")  # fmt: skip
@option("Explanation", "--threshold", type=float, default=0.95, show_default=True, metavar="SIMILARITY",
         help="From which on two items are near copies.")  # fmt: skip
@option("Explanation", "--write", type=click.Path(path_type=Path), metavar="FILE",
         help="Write all rows with their contributions to a .parquet file, or a folder of them, in two passes over "
              "files of any size; nothing else is computed.")  # fmt: skip
@options.output(["rarest", "redundant", "copies", "modes"])
@options.running
def explain(
    files: tuple[str, ...],
    reading: Reading,
    similarity: Similarity,
    q: str,
    parts: tuple[str, ...],
    top: int,
    threshold: float,
    write: Path | None,
    output: Output,
    running: Running,
) -> None:
    """Show which items add diversity and which do not, what is there twice, and what the different things are."""
    from vendimeter.cli import work
    from vendimeter.cli.output import Answer, emit

    _check_write_target(write, files, output)
    order = work.single_order(q)
    if write is not None:
        unused = [f"--{name.rstrip('s')}" for name in ("parts", "top", "threshold") if _is_set(name)]
        if unused:
            unused_words = " and ".join(unused)
            raise click.UsageError(
                f"--write writes contributions and nothing else; leave {unused_words} away."
            )
        _write(files, reading, similarity, order, write, output, running)
        return
    with work.work_session(running) as warning_texts:
        opened = work.open_and_announce(files, reading, similarity, running)
        with work.explain_errors(opened):
            samples = work.read_all(opened, running, reading)
            words, sheets, result = _analyse(
                samples,
                opened.kernel,
                order,
                parts or ANALYSES,
                top,
                threshold,
                running.seed,
            )
    answer = Answer(
        "explain", result, words, sheets, work.source_of(files, opened, len(samples)), running.seed
    )
    emit(work.add_warnings(answer, warning_texts), output, running.quiet)


def _check_write_target(write: Path | None, files: tuple[str, ...], output: Output) -> None:
    """Refuse to replace existing files; a folder may exist, if it is empty."""
    from vendimeter.cli.output import check_target
    from vendimeter.errors import InputError

    folder = write is not None and write.is_dir()
    check_target(output, files, None if folder else write)
    if write is not None and folder and not output.force and any(write.iterdir()):
        raise InputError(
            f"{str(write)!r} is a folder that is not empty; expected an empty one. Give another, or replace all that "
            "is in it with --force."
        )


def _is_set(name: str) -> bool:
    """Whether an option was set by the user, even to its default."""
    source = click.get_current_context().get_parameter_source(name)
    return source not in (None, click.core.ParameterSource.DEFAULT)


def _analyse(
    samples: Collection,
    kernel: Any,
    q: str,
    parts: tuple[str, ...],
    top: int,
    threshold: float,
    seed: int,
) -> tuple[str, list[Sheet], dict[str, Any]]:
    import vendimeter as vm
    from vendimeter.cli.work import item_columns
    from vendimeter.present.tables import Sheet

    words: list[str] = []
    sheets: list[Sheet] = []
    result: dict[str, Any] = {}
    samples.one()  # positions of texts in lists would not be those of samples
    diversity = vm.Diversity(samples, kernel, rng=seed)
    if "contributions" in parts:
        contributions = diversity.contributions(q=q)
        words.append(f"Contributions: {contributions.summary()}")
        result["contributions"] = contributions.to_dict()
        for name, positions in (
            ("rarest", contributions.rarest(top)),
            ("redundant", contributions.redundant(top)),
        ):
            columns = item_columns(samples, positions.tolist())
            columns["share"] = contributions.values[positions].tolist()
            if contributions.leave_one_out is not None:
                columns["score without it"] = (
                    float(contributions.score) + contributions.leave_one_out[positions]
                ).tolist()
            title = "Rarest: the score falls most without them" if name == "rarest" else \
                "Most redundant: the score rises most, or falls least, without them"  # fmt: skip
            sheets.append(Sheet(name, columns, title=title, digits=5))
    if "duplicates" in parts:
        copies = diversity.duplicates(threshold=threshold, q=q)
        words.append(f"Copies: {copies.summary()}")
        result["duplicates"] = copies.to_dict()
        first_members = [cluster[0] for cluster in copies.clusters[:top]]
        columns = {"cluster": list(range(1, len(first_members) + 1)), "items": copies.sizes[:top].tolist()}
        columns |= item_columns(samples, first_members)
        columns["others"] = [_position_text(cluster[1:]) for cluster in copies.clusters[:top]]
        sheets.append(
            Sheet("copies", columns, title="Largest clusters of near copies, with their first items")
        )
    if "modes" in parts:
        modes = diversity.modes(k=top)
        words.append(f"Modes: {modes.summary()}")
        # Labels and composition come with groups only.
        result["modes"] = {"labels": None, "composition": None, **modes.to_dict()}
        exemplars = [modes.exemplars(k, 1) for k in range(len(modes))]
        columns = {"mode": list(range(len(modes))), "share": modes.shares.tolist()}
        high = item_columns(samples, [int(end.high[0]) for end in exemplars])
        columns |= {f"{name} (high end)": values for name, values in high.items() if name != "place"}
        one_sided = modes.one_sided.tolist()  # a low end that has nothing of the mode is none
        low = [
            int(end.low[0]) if len(end.low) and not one_sided[k] else None for k, end in enumerate(exemplars)
        ]
        columns["item (low end)"] = low
        if "sample" in high:
            columns["sample (low end)"] = ["" if i is None else str(samples.samples[i]) for i in low]
        sheets.append(
            Sheet("modes", columns, title="Modes, with the items at their ends", digits=4, bar="share")
        )
    return "\n\n".join(words), sheets, result


def _position_text(positions: list[int]) -> str:
    return ", ".join(map(str, positions[:8])) + (
        f", … {len(positions) - 8:,} more" if len(positions) > 8 else ""
    )


def _write(
    files: tuple[str, ...],
    reading: Reading,
    similarity: Similarity,
    q: str,
    write: Path,
    output: Output,
    running: Running,
) -> None:
    """Write contributions beside every row, in two passes, without all rows in memory."""
    import vendimeter as vm
    from vendimeter.cli import work
    from vendimeter.cli.output import Answer, emit
    from vendimeter.present.tables import Sheet
    from vendimeter.present.terminal import say

    with work.work_session(running) as warning_texts:
        opened = work.open_and_announce(files, reading, similarity, running)
        with work.explain_errors(opened):
            read_options = {
                "samples": reading.column, "label": reading.label, "weight": reading.weight, "format": reading.ending,
                "limit": reading.limit, "skip_broken": reading.skip_broken, "kind": opened.first.kind, **reading.budget,
            }  # fmt: skip
            result = vm.write_contributions(
                list(files), write, opened.kernel, q=q, overwrite=output.force, rng=running.seed,
                **{name: value for name, value in read_options.items() if value is not None},
            )  # fmt: skip
    say(f"Written: {write}", running.quiet)
    columns = {name: list(values) for name, values in result._columns().items()}
    sheet = Sheet("rarest", columns, digits=5, shown=40)
    source = work.source_of(files, opened, int(result.score.n))
    answer = Answer("explain", {"written": result.to_dict()}, result.summary(), [sheet], source, running.seed)
    emit(work.add_warnings(answer, warning_texts), output, running.quiet)
