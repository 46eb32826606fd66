"""The commands: `vendi score` and `vendi demo`."""

from __future__ import annotations

import json
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import click

from vendimeter import __version__
from vendimeter.cli import terminal
from vendimeter.errors import VendimeterError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="vendi")
def vendi() -> None:
    r"""Measure diversity: how many different things are in here.

    \b
    vendi score captions.txt
    vendi score digits.npz --by label
    vendi score table.csv --column embedding --q 0,1,2,inf
    """


@vendi.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--kernel", metavar="NAME", help="What makes two items similar. Guessed from the data if not given."
)
@click.option("--column", metavar="NAME", help="The column with the samples, if the file has several.")
@click.option("--by", metavar="NAME", help="Score each group of this column.")
@click.option("--q", default="1", show_default=True, metavar="ORDERS", help="Orders, such as 1 or 0,1,2,inf.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def score(file: Path, kernel: str | None, column: str | None, by: str | None, q: str, as_json: bool) -> None:
    r"""Score FILE: .npy, .npz, .csv, .tsv, .jsonl or .txt (a sample a line).

    The result goes to standard output, everything else to standard error.

    \b
    vendi score captions.txt
    vendi score digits.npz --by label
    """
    run_score(file, kernel=kernel, column=column, by=by, q=q, as_json=as_json)


@vendi.command()
def demo() -> None:
    """Score handwritten digits and a few dozen captions that come with the project."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise click.ClickException("the demo needs scikit-learn: pip install 'vendimeter[demo]'") from None
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        pixels, digit = load_digits(return_X_y=True)
        path = Path(folder) / "digits.npz"
        np.savez(path, pixels=np.asarray(pixels), digit=np.asarray(digit))
        click.echo("1. Handwriting: 1,797 scans of digits. Which digit do people write in the most ways?\n")
        click.echo("$ vendi score digits.npz --by digit\n")
        run_score(path, by="digit")
        captions = Path(folder) / "captions.csv"
        captions.write_text(
            resources.files("vendimeter.cli").joinpath("data/captions.csv").read_text("utf-8"),
            encoding="utf-8",
        )
        click.echo(
            "\n\n2. Captions: three sets of twelve. Does a model say different things, or one thing twelve "
            "times?\n"
        )
        click.echo("$ vendi score captions.csv --column caption --by set\n")
        run_score(captions, column="caption", by="set")
    click.echo(
        "\nEach score is the effective number of different items: 12 captions that share nothing\n"
        "score 12, and 12 copies of one caption score 1. In Python: vendimeter.score(captions, "
        "kernel='ngram')."
    )


def run_score(
    file: Path,
    *,
    kernel: str | None = None,
    column: str | None = None,
    by: str | None = None,
    q: str = "1",
    as_json: bool = False,
) -> None:
    """Read, guess, score, print; bad input becomes a message and exit code 2."""
    try:
        result, about = _score(file, kernel, column, by, q)
    except (VendimeterError, OSError) as error:
        raise click.UsageError(terminal.printable(str(error))) from None
    click.echo(about, err=True)
    click.echo("", err=True)
    click.echo(
        json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False)
        if as_json
        else terminal.table(result)
    )


def _score(file: Path, kernel: str | None, column: str | None, by: str | None, q: str) -> tuple[Any, str]:
    # Imported here: `vendi --help` has no use for numerics.
    import vendimeter as vm
    from vendimeter._messages import unknown
    from vendimeter.io.files import read_columns

    columns = read_columns(file)
    for name in (column, by):
        if name is not None and name not in columns:
            raise unknown(f"column in {str(file)!r}", name, columns)
    samples, what = _samples({name: value for name, value in columns.items() if name != by}, column)
    texts = isinstance(samples, list)
    guessed = kernel is None
    kernel = kernel or ("ngram" if texts else "cosine")
    # A cosine kernel that was asked for is meant, also for rows that look like a similarity matrix.
    chosen = kernel if guessed else vm.kernels.as_kernel(kernel)
    orders: Any = [one.strip() for one in q.split(",")]
    orders = orders[0] if len(orders) == 1 else orders
    about = f"{len(samples):,} items: {what}; kernel {kernel}" + (
        " (guessed; --kernel changes it)" if guessed else ""
    )
    if by is None:
        return vm.score(samples, chosen, q=orders), about
    labels = columns[by]
    if (
        not texts
        and getattr(labels, "dtype", None) is not None
        and labels.dtype.kind == "f"
        and not (labels % 1).any()
    ):
        labels = labels.astype(int)
    return vm.score_groups(
        samples, chosen, by=labels, q=orders
    ), f"{about}; grouped by {terminal.printable(by)}"


def _samples(columns: dict[str, Any], column: str | None) -> tuple[Any, str]:
    """The samples, and what they are in words."""
    import numpy as np

    from vendimeter.errors import InputError

    if (
        column is None
        and len(columns) > 1
        and all(isinstance(c, np.ndarray) and c.ndim == 1 for c in columns.values())
    ):
        return np.column_stack(list(columns.values())), f"rows of {len(columns)} columns"
    if column is None and len(columns) > 1:
        names = ", ".join(terminal.printable(name) for name in columns)
        raise InputError(
            f"the file has several columns ({names}); say which holds the samples with --column."
        )
    name = column or next(iter(columns))
    values = columns[name]
    if isinstance(values, list) and isinstance(values[0], list):
        values = np.array(values, dtype=float) if len({len(row) for row in values}) == 1 else values
    if isinstance(values, np.ndarray) and values.ndim > 2:
        values = values.reshape(len(values), -1)
    kind = (
        "texts" if isinstance(values, list) else "vectors of " + "×".join(map(str, values.shape[1:] or (1,)))
    )
    return values, f"{kind} in {terminal.printable(name)!r}"
