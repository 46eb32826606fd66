"""The command ``vendi report``."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from vendimeter.cli import options
from vendimeter.cli.options import Command, Reading, Running, Similarity, option
from vendimeter.present.numbers import records_left_out

__all__ = ["report", "write_report"]


@click.command(
    cls=Command,
    short_help="One page about a collection, or several side by side.",
    examples=[
        "vendi report captions.txt",
        "vendi report digits.npz --by digit -o digits.html",
        "vendi report embeddings.parquet --column embedding --show caption -o shown.html",
        "vendi report real/ gan/ diffusion/ --reference real/ -o models.html",
    ],
)
@options.files("DATA…")
@option("Page", "-o", "--output", "out", type=click.Path(path_type=Path, dir_okay=False), default="report.html",
         show_default=True, metavar="FILE", help="The page to write.")  # fmt: skip
@option("Page", "--force", is_flag=True, help="Overwrite a file that exists.")
@option("Page", "--title", metavar="TEXT", help="The title of the page.")
@option("Page", "--show", metavar="NAME",
         help="The column to show items by where the samples cannot be read, such as the captions or the paths of the "
              "pictures behind vectors.")  # fmt: skip
@option("Page", "--reference", metavar="NAME",
         help="The collection, or with --by the group, that the others are held against.")  # fmt: skip
@option("Page", "--features", metavar="NAME",
         help="With --reference: the encoder that distances are measured by, such as inception-fid.")  # fmt: skip
@option("Page", "--threshold", type=float, default=0.95, show_default=True, metavar="SIMILARITY",
         help="From which on two items are near copies.")  # fmt: skip
@options.reading
@options.similarity
@option("Precision", "--q", default="1,0,2,inf", show_default=True, metavar="ORDERS",
         help="The orders that a reader can switch between; the headline has the first.")  # fmt: skip
@options.running
def report(
    files: tuple[str, ...],
    out: Path,
    force: bool,
    title: str | None,
    show: str | None,
    reference: str | None,
    features: str | None,
    threshold: float,
    reading: Reading,
    similarity: Similarity,
    q: str,
    running: Running,
) -> None:
    """Write one self-contained HTML page about DATA, or about several collections side by side.

    The score in words with its bounds, the spectrum, convergence, groups, modes with real samples, near copies, rare
    and redundant items, companion metrics, and how it was computed. It needs no network, and holds samples only where
    it shows them.
    """
    from vendimeter.present.terminal import is_terminal
    from vendimeter.present.text import printable

    words = ["vendi", *sys.argv[1:]]
    page = PageOptions(title, show, reference, features, threshold, q, shlex.join(words))
    write_report(files, reading, similarity, running, out=out, force=force, page=page)
    if is_terminal(sys.stdout):
        click.echo(printable(str(out)))
    else:  # a program wants the path as it is
        click.echo(str(out), color=True)


@dataclass(frozen=True)
class PageOptions:
    """What is on the page, as the options of ``vendi report`` say; `command` is shown as how it was made."""

    title: str | None = None
    show: str | None = None
    reference: str | None = None
    features: str | None = None
    threshold: float = 0.95
    q: str = "1,0,2,inf"
    command: str = ""


def write_report(
    files: tuple[str, ...],
    reading: Reading,
    similarity: Similarity,
    running: Running,
    *,
    out: Path,
    force: bool = False,
    page: PageOptions,
) -> None:
    """Read the collections, analyse them, and write the page."""
    import vendimeter as vm
    from vendimeter.cli import work
    from vendimeter.cli.commands import check_interrupted
    from vendimeter.cli.compare import resolve_reference
    from vendimeter.cli.inputs import bare_samples, open_collections
    from vendimeter.cli.merge import refuse_existing, refuse_input
    from vendimeter.data.groups import read
    from vendimeter.errors import InputError
    from vendimeter.messages import brief
    from vendimeter.optional import require
    from vendimeter.present.terminal import encodable, say
    from vendimeter.present.text import printable

    require("jinja2", extra="report", purpose="the HTML report")  # before an hour of reading, not after it
    if page.title is not None and not encodable(page.title, None):
        raise InputError(f"--title {brief(page.title)} is not UTF-8 text; expected UTF-8.")
    refuse_existing(out, force)
    refuse_input(out, files)
    if page.reference is not None and len(files) == 1 and not reading.by:
        raise InputError(
            "--reference was given with one collection; expected several, and it is one of them, or groups, with --by."
        )
    if page.features is not None and page.reference is None:
        raise InputError("--features was given without --reference; expected both, or neither.")
    if reading.by and len(files) > 1:
        raise InputError(
            f"--by and {len(files)} collections were given; expected groups of one, or several without --by."
        )
    orders = work.orders_of(page.q)
    extra = [page.show] if page.show is not None else []
    with work.work_session(running):
        collections, kernel, opened = open_collections(files, reading, similarity, columns=extra)
        say(f"{opened.first.source}: {opened.about}", running.quiet)
        notes = [f"The samples were {opened.about}."] if opened.guessed else []
        for name, collection in collections.items():
            prefix = "" if len(collections) == 1 else f"{printable(name)}: "
            skipped = collection.skipped.count
            if skipped:
                notes.append(f"{prefix}{records_left_out(skipped)}.")
            say(f"{prefix}{work.describe_count(collection)}", running.quiet)
        shown_columns: dict[str, Any] = (
            {name: collection[page.show] for name, collection in collections.items()}
            if page.show is not None
            else {}
        )
        with work.explain_errors(opened):
            if len(collections) == 1:
                ((name, samples),) = collections.items()
                by = samples.labels if reading.by else None
                if by is None and not _has_folders(samples):
                    samples.labels = None
                groups = [] if page.reference is None else list(read(by, len(samples), None).labels)
                written_page = vm.report(
                    samples, kernel, by=by, q=orders, show=shown_columns.get(name), features=page.features,
                    reference=resolve_reference(page.reference, groups), title=page.title or printable(name),
                    threshold=page.threshold, command=page.command or None, notes=notes, rng=running.seed,
                )  # fmt: skip
            else:
                for collection in collections.values():
                    bare_samples(collection)  # refuses what several collections cannot have
                    collection.labels = None
                written_page = vm.report(
                    collections, kernel, q=orders, show=shown_columns or None, features=page.features,
                    reference=resolve_reference(page.reference, list(collections), files), threshold=page.threshold,
                    title=page.title or printable(" · ".join(collections)), command=page.command or None, notes=notes,
                    rng=running.seed,
                )  # fmt: skip
    check_interrupted()
    written_page.write(out, overwrite=force)


def _has_folders(samples: Any) -> bool:
    """Whether the labels are folders of pictures, of which there are several: groups that nobody has to ask for."""
    return samples.kind == "images" and samples.labels is not None and len(set(samples.labels)) > 1
