"""The commands: `vendi score` and `vendi demo`."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vendimeter import __version__
from vendimeter.cli import terminal
from vendimeter.errors import ToleranceWarning, VendimeterError

if TYPE_CHECKING:
    from vendimeter.cli.inputs import Input


# As in vendimeter.io.kinds and vendimeter.kernels, which are not imported for --help; a test compares them.
KINDS = (
    "vectors", "numbers", "texts", "images", "molecules", "sequences", "probabilities", "tags", "tokens", "categories",
)  # fmt: skip
KERNELS = (
    "cosine", "rbf", "laplacian", "polynomial", "jaccard", "match", "ngram", "probability-product", "pixels",
    "precomputed", "from-distances", "bleu", "kmer", "edit", "alignment", "morgan", "rdkit", "maccs", "tags",
    "sentences", "simcse", "inception", "inception-fid", "dinov2", "clip",
)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="vendi")
def vendi() -> None:
    """Measure diversity: how many different things are in here.

    \b
    vendi score captions.txt
    vendi score digits.npz --by label
    vendi score table.csv --column embedding --q 0,1,2,inf
    """  # noqa: D301 (click reads the backspace)


@vendi.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "--kernel",
    metavar="NAME",
    help="What makes two items similar, by the kind of data if not given: " + ", ".join(KERNELS) + "; with "
    "parameters in brackets: 'ngram(1, 2)'.",
)
@click.option(
    "--model", metavar="PATH", help="The folder or name of the model, for kernels that are encoders."
)
@click.option("--column", metavar="NAME", help="The column with the samples, if the file has several.")
@click.option(
    "--by",
    metavar="NAME",
    multiple=True,
    help="Score each group of this column; twice for combinations of two.",
)
@click.option("--weight", metavar="NAME", help="The column with the weights of the samples.")
@click.option(
    "--kind", metavar="KIND", help="What the samples are, guessed if not given: " + ", ".join(KINDS) + "."
)
@click.option("--format", "form", metavar="ENDING", help="How to read what has no ending, such as jsonl.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Take the first N samples.")
@click.option("--skip-broken", is_flag=True, help="Leave out records that cannot be read, and say how many.")
@click.option("--q", default="1", show_default=True, metavar="ORDERS", help="Orders, such as 1 or 0,1,2,inf.")
@click.option(
    "--tol",
    type=float,
    metavar="SHARE",
    help="How precise, such as 1e-2 for 1 %; default: exact while feasible.",
)
@click.option(
    "--method", metavar="NAME", help="exact, lowrank, lanczos or random-features; default: the cheapest."
)
@click.option("--memory", metavar="SIZE", help="Working memory, such as 2GiB.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def score(
    files: tuple[str, ...],
    kernel: str | None,
    model: str | None,
    column: str | None,
    by: tuple[str, ...],
    weight: str | None,
    kind: str | None,
    form: str | None,
    limit: int | None,
    skip_broken: bool,
    q: str,
    tol: float | None,
    method: str | None,
    memory: str | None,
    as_json: bool,
) -> None:
    """Score what FILE holds, or several of them together.

    Texts (.txt), tables (.csv, .tsv, .jsonl, .parquet, .arrow), vectors (.npy, .npz, .safetensors), molecules (.smi,
    .sdf), sequences (.fasta), a folder of pictures, a Hugging Face dataset on disk, or - for standard input; text files
    may be gzipped. The result goes to standard output, everything else to standard error.

    \b
    vendi score captions.txt
    vendi score answers.jsonl --column answers --by prompt
    vendi score photos/ --by label
    vendi score "shards/*.parquet" --column embedding
    vendi score molecules.smi --skip-broken
    vendi score embeddings.npy --kernel rbf --tol 1e-2
    """  # noqa: D301 (click reads the backspace)
    given = {"tol": tol, "method": method, "memory": memory}
    options = {name: value for name, value in given.items() if value is not None}
    label = (by[0] if len(by) == 1 else list(by)) if by else None
    reading = {"samples": column, "label": label, "weight": weight, "format": form, "limit": limit}
    reading |= {"skip_broken": skip_broken, "model": model}
    run_score(files, kernel, kind, reading, q=q, as_json=as_json, options=options)


@vendi.command()
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Leave the files of the demo in this folder.",
)
def demo(keep: Path | None) -> None:
    """Score handwritten digits and a few dozen captions that come with the project."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise click.ClickException("the demo needs scikit-learn: pip install 'vendimeter[demo]'") from None
    import numpy as np

    with tempfile.TemporaryDirectory() as scratch:
        folder = keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        pixels, digit = load_digits(return_X_y=True)
        digits, captions = folder / "digits.npz", folder / "captions.csv"
        np.savez(digits, pixels=np.asarray(pixels), digit=np.asarray(digit))
        captions.write_bytes(resources.files("vendimeter.cli").joinpath("data/captions.csv").read_bytes())
        click.echo(
            "The score of a collection is the effective number of different items in it: 12 captions that "
            "share\n"
            "nothing score 12, and 12 copies of one caption score 1. What counts as similar is up to the "
            "kernel.\n\n\n"
            "1. Captions: three sets of twelve. Different things, or one thing twelve times?\n\n"
            "$ vendi score captions.csv --column caption --by set\n"
        )
        run_score([str(captions)], reading={"samples": "caption", "label": "set"})
        click.echo(
            "\n\n2. Handwriting: 1,797 scans of digits, compared pixel by pixel. Which digit varies most "
            "from hand to hand?\n\n"
            "$ vendi score digits.npz --by digit\n"
        )
        run_score([str(digits)], reading={"label": "digit"})
        click.echo(
            "\n\n3. All scans together, with the bounds that contain the exact answer.\n\n"
            "$ vendi score digits.npz --column pixels\n"
        )
        run_score([str(digits)], reading={"samples": "pixels"})
    kept = (
        f"The files are in {keep}." if keep else "To keep the files of this demo: vendi demo --keep FOLDER."
    )
    click.echo(f"\n{kept} In Python: vendimeter.score(captions, kernel='ngram').")


class DataError(click.ClickException):
    """Bad input: a message without the usage, which was right, and exit code 2."""

    exit_code = 2


def run_score(
    files: Sequence[str],
    kernel: str | None = None,
    kind: str | None = None,
    reading: dict[str, Any] | None = None,
    *,
    q: str = "1",
    as_json: bool = False,
    options: dict[str, Any] | None = None,
) -> None:
    """Read, guess, score, print; bad input becomes a message and exit code 2."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ToleranceWarning)
            result, about = _score(files, kernel, kind, reading or {}, q, options or {})
    except (VendimeterError, OSError) as error:
        notes = " ".join(getattr(error, "__notes__", ()))
        raise DataError(terminal.printable(f"{error} {notes}".strip())) from None
    click.echo(about, err=True)
    for warning in caught:
        if issubclass(warning.category, ToleranceWarning):
            click.echo(f"Warning: {warning.message}", err=True)
    click.echo("", err=True)
    click.echo(
        json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False)
        if as_json
        else terminal.table(result)
    )


def _score(
    files: Sequence[str],
    kernel: str | None,
    kind: str | None,
    reading: dict[str, Any],
    q: str,
    options: dict[str, Any],
) -> tuple[Any, str]:
    # Imported here: `vendi --help` has no use for numerics.
    from vendimeter.cli.inputs import opened
    from vendimeter.errors import InputError

    given = opened(files, kernel, kind, **reading)
    click.echo(
        terminal.printable(f"{given.first.source}: {given.about}"), err=True
    )  # before the work: it may be a mistake
    try:
        return _scored(given, reading, q, options)
    except InputError as error:
        if given.guessed:
            error.add_note(f"The samples were {given.about}.")
        if given.first.kind in ("molecules", "images") and not given.first.skipped.skip:
            error.add_note("With --skip-broken what cannot be read is left out and counted.")
        raise


def _scored(given: Input, reading: dict[str, Any], q: str, options: dict[str, Any]) -> tuple[Any, str]:
    import vendimeter as vm
    from vendimeter.errors import InputError
    from vendimeter.io.collection import Collection

    first, more = given.first, given.is_much()
    orders: Any = [one.strip() for one in q.split(",")]
    orders = orders[0] if len(orders) == 1 else orders
    by = reading.get("label")
    grouped = by is not None or first.is_group
    if grouped and (unused := options.keys() - {"memory"}):
        named = ", ".join(f"--{name}" for name in sorted(unused))
        raise InputError(f"{named} and groups were asked for; groups are scored exactly. Leave {named} away.")
    chosen = vm.kernels.as_kernel(given.kernel)
    if more and chosen.needs_all is None and not first.is_group and "method" not in options:
        # More than is well held in memory, and features that add up: one pass.
        with tempfile.TemporaryDirectory() as spill:
            memory = options.get("memory", "1 GiB")
            total: Any = (
                vm.GroupAccumulator(chosen, memory=memory, spill=spill) if grouped else vm.Accumulator(chosen)
            )
            count = 0
            for batch in given.batches:
                total.update(batch)
                count += len(batch)
            result = total.score(orders)
        if first.skipped.count and not grouped:
            result = result.noted(left_out=first.skipped.count)
    else:
        whole = Collection.joined(list(given.batches))
        count = len(whole)
        result = (
            vm.score_groups(whole, given.kernel, q=orders)
            if grouped
            else vm.score(whole, given.kernel, q=orders, **options)
        )
    noun = "list" if first.is_group else "item"
    about = f"{count:,} {noun}{'' if count == 1 else 's'}"
    if by is not None:
        about += f", grouped by {' and '.join([by] if isinstance(by, str) else by)}"
    if first.weights is not None:
        about += f", weighted by {reading['weight']}"
    skipped = first.skipped
    if skipped.count:
        place, reason = skipped.records[0]
        were = "record was" if skipped.count == 1 else "records were"
        about += f"\n{skipped.count:,} broken {were} left out, such as this: {place} {reason}"
    return result, terminal.printable_lines(about)
