"""The commands: `vendi score` and `vendi demo`."""

from __future__ import annotations

import json
import tempfile
import warnings
from importlib import resources
from pathlib import Path
from typing import Any

import click

from vendimeter import __version__
from vendimeter.cli import terminal
from vendimeter.errors import ToleranceWarning, VendimeterError


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
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--kernel", metavar="NAME", help="What makes two items similar. Guessed from the data if not given."
)
@click.option("--column", metavar="NAME", help="The column with the samples, if the file has several.")
@click.option("--by", metavar="NAME", help="Score each group of this column.")
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
    file: Path,
    kernel: str | None,
    column: str | None,
    by: str | None,
    q: str,
    tol: float | None,
    method: str | None,
    memory: str | None,
    as_json: bool,
) -> None:
    """Score FILE: .npy, .npz, .csv, .tsv, .jsonl or .txt (a sample a line).

    The result goes to standard output, everything else to standard error.

    \b
    vendi score captions.txt
    vendi score digits.npz --by label
    vendi score embeddings.npy --kernel rbf --tol 1e-2
    """  # noqa: D301 (click reads the backspace)
    given = {"tol": tol, "method": method, "memory": memory}
    options = {name: value for name, value in given.items() if value is not None}
    run_score(file, kernel=kernel, column=column, by=by, q=q, as_json=as_json, options=options)


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
        run_score(captions, column="caption", by="set")
        click.echo(
            "\n\n2. Handwriting: 1,797 scans of digits, compared pixel by pixel. Which digit varies most "
            "from hand to hand?\n\n"
            "$ vendi score digits.npz --by digit\n"
        )
        run_score(digits, by="digit")
        click.echo(
            "\n\n3. All scans together, with the bounds that contain the exact answer.\n\n"
            "$ vendi score digits.npz --column pixels\n"
        )
        run_score(digits, column="pixels")
    kept = (
        f"The files are in {keep}." if keep else "To keep the files of this demo: vendi demo --keep FOLDER."
    )
    click.echo(f"\n{kept} In Python: vendimeter.score(captions, kernel='ngram').")


def run_score(
    file: Path,
    *,
    kernel: str | None = None,
    column: str | None = None,
    by: str | None = None,
    q: str = "1",
    as_json: bool = False,
    options: dict[str, Any] | None = None,
) -> None:
    """Read, guess, score, print; bad input becomes a message and exit code 2."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ToleranceWarning)
            result, about = _score(file, kernel, column, by, q, options or {})
    except (VendimeterError, OSError) as error:
        raise click.UsageError(terminal.printable(str(error))) from None
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
    file: Path, kernel: str | None, column: str | None, by: str | None, q: str, options: dict[str, Any]
) -> tuple[Any, str]:
    # Imported here: `vendi --help` has no use for numerics.
    import vendimeter as vm
    from vendimeter._arrays import is_text
    from vendimeter._messages import unknown
    from vendimeter.errors import InputError
    from vendimeter.io.files import read_columns

    columns = read_columns(file)
    for name in (column, by):
        if name is not None and name not in columns:
            raise unknown(f"column in {str(file)!r} called", name, columns)
    if column is not None and column == by:
        raise InputError(
            f"--column and --by both name {column!r}; expected the samples and their labels in two columns."
        )
    samples, what = _samples({name: value for name, value in columns.items() if name != by}, column)
    guessed = kernel is None
    kernel = kernel or ("ngram" if is_text(samples) else "cosine")
    # A cosine kernel that was asked for is meant, also for rows that look like a similarity matrix.
    chosen = kernel if guessed else vm.kernels.as_kernel(kernel)
    orders: Any = [one.strip() for one in q.split(",")]
    orders = orders[0] if len(orders) == 1 else orders
    about = f"{len(samples):,} items: {what}; kernel {kernel}" + (
        " (guessed; --kernel changes it)" if guessed else ""
    )
    if by is None:
        return vm.score(samples, chosen, q=orders, **options), about
    if options:
        given = ", ".join(f"--{name}" for name in options)
        raise InputError(f"{given} and --by were given; groups are scored exactly. Leave {given} away.")
    groups = vm.score_groups(samples, chosen, by=columns[by], q=orders)
    return groups, f"{about}; grouped by {terminal.printable(by)}"


def _samples(columns: dict[str, Any], column: str | None) -> tuple[Any, str]:
    """The samples, and what they are in words."""
    import numpy as np

    from vendimeter.errors import InputError
    from vendimeter.io.files import numbers

    columns = {name: numbers(value, name) for name, value in columns.items()}
    flat = all(
        isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "buif"
        for value in columns.values()
    )
    names = ", ".join(terminal.printable(name, 30) for name in list(columns)[:8]) + (
        ", …" if len(columns) > 8 else ""
    )
    if column is None and len(columns) > 1 and flat:
        return np.column_stack(list(columns.values())), f"rows of the {len(columns)} columns {names}"
    if column is None and len(columns) > 1:
        raise InputError(
            f"the file has several columns ({names}); say which holds the samples with --column."
        )
    name = column or next(iter(columns))
    values = columns[name]
    if isinstance(values, list) and values and isinstance(values[0], list):
        values = _vectors(values, name)
    if isinstance(values, np.ndarray) and values.ndim > 2:
        values = values.reshape(len(values), -1)
    kind = "texts" if isinstance(values, list) else "samples"
    if isinstance(values, np.ndarray) and values.ndim == 2:
        kind = f"vectors of {values.shape[1]} numbers"
    return values, f"{kind} in {terminal.printable(name)!r}"


def _vectors(rows: list[Any], name: str) -> Any:
    """Lists of numbers as an array."""
    import numpy as np

    from vendimeter.errors import InputError

    for i, row in enumerate(rows):
        if not isinstance(row, list) or not all(
            isinstance(x, int | float) and not isinstance(x, bool) for x in row
        ):
            raise InputError(
                f"row {i + 1} of the column {name!r} is not a list of numbers; expected one text or one "
                "vector a row. To score lists of texts, write one text a line with the name of its list in "
                "another column, and use --by."
            )
        if len(row) != len(rows[0]):
            raise InputError(
                f"row {i + 1} of the column {name!r} has {len(row)} numbers and row 1 has {len(rows[0])}; "
                "expected one length."
            )
    return np.array(rows, dtype=float)
