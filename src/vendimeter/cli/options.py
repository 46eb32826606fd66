"""The options that commands share, in groups: each group reaches a command as one object."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

__all__ = [
    "KERNELS",
    "KINDS",
    "Command",
    "Output",
    "Reading",
    "Running",
    "Similarity",
    "Solving",
    "complete_from",
    "files",
    "gate",
    "option",
    "orders",
    "output",
    "reading",
    "reading_without",
    "running",
    "similarity",
    "solving",
]

# As in vendimeter.io.kinds and vendimeter.kernels, which are not imported for --help; a test compares them.
KINDS = (
    "vectors", "numbers", "texts", "images", "molecules", "sequences", "probabilities", "tags", "tokens", "categories",
)  # fmt: skip
KERNELS = (
    "cosine", "rbf", "laplacian", "polynomial", "jaccard", "match", "ngram", "probability-product", "pixels",
    "precomputed", "from-distances", "bleu", "kmer", "edit", "alignment", "morgan", "rdkit", "maccs", "tags",
    "sentences", "simcse", "inception", "inception-fid", "dinov2", "clip",
)  # fmt: skip
METHODS = ("exact", "lowrank", "lanczos", "random-features")
FORMATS = ("json", "csv", "latex", "markdown")

# The headings of the help.
_DATA, _KERNEL, _PRECISION, _RESULT, _RUN = "Data", "Similarity", "Precision", "Result", "Run"

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    column: str | None = None
    by: tuple[str, ...] = ()
    weight: str | None = None
    kind: str | None = None
    ending: str | None = None
    limit: int | None = None
    skip_broken: bool = False
    max_record: str | None = None

    @property
    def budget(self) -> dict[str, Any]:
        """The most that a record may have, as a keyword, where it was given."""
        if self.max_record is None:
            return {}
        from vendimeter.options import byte_count

        return {"max_record": byte_count(self.max_record, "--max-record")}

    @property
    def label(self) -> str | list[str] | None:
        """The column of the labels, or several whose combinations are labels."""
        return (self.by[0] if len(self.by) == 1 else list(self.by)) if self.by else None


@dataclass(frozen=True)
class Similarity:
    """What makes two items similar."""

    kernel: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class Solving:
    """How precisely, and by what means."""

    tol: float | None = None
    method: str | None = None
    memory: str | None = None

    @property
    def as_keywords(self) -> dict[str, Any]:
        """The options that were set, as keyword arguments."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Output:
    """In what form the result is given, and where to."""

    form: str = "text"
    out: Path | None = None
    force: bool = False
    table: str | None = None


@dataclass(frozen=True)
class Running:
    """How the command behaves."""

    quiet: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Saving:
    """What a streaming run keeps: a checkpoint that it goes on from, and the sums at its end.

    Attributes
    ----------
    checkpoint : Path or None
        The file from which the run goes on, and into which it is saved.
    fingerprint : mapping or None
        What `vendimeter.cli.fingerprints.reading_fingerprint` says of the input; needed with a checkpoint.
    every : float
        Seconds between two checkpoints, at least. Large states come less often: no more than a twentieth of the time
        goes into saving.
    sums : Path or None
        Where to write the accumulator, for `vendimeter.cli.merge.merge_files`.
    overwrite : bool
        Whether a file of that name may be replaced.
    """

    checkpoint: Path | None = None
    fingerprint: Mapping[str, Any] | None = None
    every: float = 30.0
    sums: Path | None = None
    overwrite: bool = False


class HeadedOption(click.Option):
    """An option that is listed under the heading of its group in the help."""

    def __init__(self, *args: Any, heading: str = "Options", **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.heading = heading


class Command(click.Command):
    """A command whose options are listed under headings, and whose examples come last."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.examples = list(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options by heading, then the examples."""
        records_by_heading: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            # Arguments stand in the first line.
            if record is not None and isinstance(parameter, click.Option):
                records_by_heading.setdefault(getattr(parameter, "heading", _RUN), []).append(record)
        for heading in sorted(records_by_heading, key=lambda title: title == _RUN):  # that one comes last
            records = records_by_heading[heading]
            with formatter.section(heading):
                formatter.write_dl(records)
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def _option_group(kind: type, name: str, options: Sequence[Decorator]) -> Decorator:
    """A decorator that adds options, and passes their values to the command as one object of a class."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        fields = list(kind.__dataclass_fields__)

        @functools.wraps(function)
        def with_group(*args: Any, **values: Any) -> Any:
            group_values = {field: values.pop(field) for field in fields if field in values}
            return function(*args, **values, **{name: kind(**group_values)})

        decorated: Callable[..., Any] = with_group
        for add in reversed(options):
            decorated = add(decorated)
        return decorated

    return decorate


def option(heading: str, *names: str, **attributes: Any) -> Decorator:
    """An option of one command, under a heading."""
    return click.option(*names, cls=HeadedOption, heading=heading, **attributes)


def _form_options(heading: str) -> Decorator:
    """A decorator that adds --json, --csv and so on; several of them together are refused, not silently ignored."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_form(*args: Any, **values: Any) -> Any:
            requested_forms = [form for form in FORMATS if values.pop(f"as_{form}")]
            if len(requested_forms) > 1:
                requested_words = " and ".join(f"--{form}" for form in requested_forms)
                raise click.UsageError(
                    f"{requested_words} were given together; expected one form of the result."
                )
            return function(*args, **values, form=requested_forms[0] if requested_forms else "text")

        texts = {
            "json": "JSON; its schema: vendi schema.",
            "csv": "CSV for spreadsheets; text that begins like a formula gets a ' in front.",
            "latex": "A LaTeX table (package booktabs).",
            "markdown": "A Markdown table.",
        }
        decorated: Callable[..., Any] = with_form
        for form in reversed(FORMATS):
            decorated = option(heading, f"--{form}", f"as_{form}", is_flag=True, help=texts[form])(decorated)
        return decorated

    return decorate


def complete_from(names: Sequence[str]) -> Callable[..., list[str]]:
    """A shell completion from a list of names, by prefix; an option may take other values too."""
    return lambda context, parameter, incomplete: [name for name in names if name.startswith(incomplete)]


def files(metavar: str = "FILE…") -> Decorator:
    """The files that are read; a shell proposes all there are, since patterns and folders are fine, too."""

    def complete_file(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]

    return click.argument("files", nargs=-1, required=True, metavar=metavar, shell_complete=complete_file)


reading = _option_group(Reading, "reading", [
    option(_DATA, "--column", metavar="NAME", help="The column with the samples, if there are several."),
    option(_DATA, "--by", metavar="NAME", multiple=True,
            help="The column with the groups ('folder' for pictures); twice for combinations of two."),
    option(_DATA, "--weight", metavar="NAME", help="The column with the weights of the samples."),
    option(_DATA, "--kind", metavar="KIND", shell_complete=complete_from(KINDS),
            help="What the samples are, guessed if not given: " + ", ".join(KINDS) + "."),
    option(_DATA, "--format", "ending", metavar="ENDING",
            help="How to read what has no ending, such as jsonl."),
    option(_DATA, "--limit", type=click.IntRange(1), metavar="N", help="Take the first N samples."),
    option(_DATA, "--skip-broken", is_flag=True,
            help="Leave out records that cannot be read, and say how many."),
    option(_DATA, "--max-record", metavar="SIZE",
            help="The most that one record may have, such as 1GiB; 64MiB if not given."),
])  # fmt: skip


def reading_without(*names: str) -> Decorator:
    """The options of reading; those named are in no help, and refused by the command with what to do instead."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        decorated = reading(function)
        for parameter in decorated.__click_params__:  # type: ignore[attr-defined]
            if parameter.name in names:
                parameter.hidden = True
        return decorated

    return decorate


similarity = _option_group(Similarity, "similarity", [
    option(_KERNEL, "--kernel", metavar="KERNEL", shell_complete=complete_from(KERNELS),
            help="What makes two items similar, by the kind of data if not given; with parameters in brackets, "
                 "'ngram(1, 2)', or combined, '0.5*on(shape, match) + 0.5*on(colour, match)'. "
                 "All of them: vendi kernels."),
    option(_KERNEL, "--model", metavar="PATH",
            help="The folder or name of the model, for kernels that are encoders."),
])  # fmt: skip
solving = _option_group(Solving, "solving", [
    option(_PRECISION, "--tol", type=float, metavar="SHARE",
            help="How precise, such as 1e-2 for 1 %; default: exact while feasible."),
    option(_PRECISION, "--method", metavar="NAME", shell_complete=complete_from(METHODS),
            help=f"{', '.join(METHODS)}; default: the cheapest."),
    option(_PRECISION, "--memory", metavar="SIZE", help="Working memory, such as 2GiB."),
])  # fmt: skip
running = _option_group(Running, "running", [
    option(_RUN, "--seed", type=click.IntRange(0), default=0, show_default=True, metavar="N",
            help="Seed of everything that is random."),
    option(_RUN, "--quiet", is_flag=True, help="Say nothing but the result, and errors."),
])  # fmt: skip


def output(tables: Sequence[str] = ()) -> Decorator:
    """The options of the result; `tables` are those that a command has, if it has several."""
    options = [
        option(_RESULT, "-o", "--output", "out", type=click.Path(path_type=Path, dir_okay=False),
                metavar="FILE", help="Write the result there instead of to standard output."),
        option(_RESULT, "--force", is_flag=True, help="Overwrite files that exist."),
    ]  # fmt: skip
    if len(tables) > 1:
        options.insert(0, option(_RESULT, "--table", type=click.Choice(list(tables)), metavar="NAME",
            help=f"Which table --csv, --latex and --markdown give: {', '.join(tables)}."))  # fmt: skip
    group = _option_group(Output, "output", options)
    return lambda function: _form_options(_RESULT)(group(function))


def orders(several: bool = True) -> Decorator:
    """--q: one order, or several."""
    text = "Orders, such as 1 or 0,1,2,inf." if several else "The order: 0, 1, 2, inf, …"
    metavar = "ORDERS" if several else "ORDER"
    return option(_PRECISION, "--q", default="1", show_default=True, metavar=metavar, help=text)


gate = option(
    _RESULT, "--fail-under", type=float, metavar="SCORE",
    help="Exit with code 3 unless the lower bound of the score (of every group) is at least this.",
)  # fmt: skip
