"""The command ``vendi demo``."""

from __future__ import annotations

import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import click

from vendimeter.cli.options import Command, Reading, Running, Similarity, option

__all__ = ["demo"]

HEAD_BYTES = 1 << 16  # bytes of a page, in which it says what made it
PAGE, DIGITS, CAPTIONS = "vendimeter-demo.html", "digits.npz", "captions.csv"


@click.command(
    cls=Command,
    short_help="A tour with data that comes with the project.",
    examples=["vendi demo", "vendi demo --keep demo/"],
)
@option("Files", "--keep", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
         help="Leave the data of the demo in this folder.")  # fmt: skip
@option("Files", "--report", "page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
         help=f"Where the report goes; default: {PAGE}. An older report is replaced, and nothing else.")  # fmt: skip
@option("Files", "--force", is_flag=True, help="Overwrite files that exist.")
def demo(keep: Path | None, page: Path | None, force: bool) -> None:
    """Score handwritten digits and a few dozen captions that come with the project, and write a report."""
    from vendimeter.cli.merge import refuse_existing

    page = page or Path(PAGE)
    refuse_existing(page, force or _is_own_report(page))  # before the tour, which ends with it
    if keep is not None and keep.is_dir():
        for name in (DIGITS, CAPTIONS):
            refuse_existing(keep / name, force)
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise click.ClickException("the demo needs scikit-learn: pip install 'vendimeter[demo]'") from None
    import numpy as np

    from vendimeter.cli.output import write_atomically
    from vendimeter.cli.report import PageOptions, write_report

    with tempfile.TemporaryDirectory() as scratch:
        folder = keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        scans: Any = load_digits()
        digits, captions = folder / DIGITS, folder / CAPTIONS
        pictures = np.asarray(np.round(scans.images * 255 / 16), dtype=np.uint8)
        with write_atomically(digits, overwrite=force) as partial, partial.open("wb") as file:
            np.savez(file, picture=pictures, digit=np.asarray(scans.target))
        with write_atomically(captions, overwrite=force) as partial:
            partial.write_bytes(resources.files("vendimeter.cli").joinpath("data/captions.csv").read_bytes())
        click.echo(
            "The score of a collection is the effective number of different items in it: 12 captions that share\n"
            "nothing score 12, and 12 copies of one caption score 1. What counts as similar is up to the kernel.\n\n\n"
            "1. Captions: three sets of twelve. Different things, or one thing twelve times?\n\n"
            "$ vendi score captions.csv --column caption --by set\n"
        )
        _score(captions, Reading(column="caption", by=("set",)))
        click.echo(
            "\n\n2. Handwriting: 1,797 scans of digits, compared pixel by pixel. Which digit varies most from hand to "
            "hand?\n\n"
            "$ vendi score digits.npz --by digit\n"
        )
        _score(digits, Reading(column="picture", by=("digit",)))
        click.echo(
            "\n\n3. All scans together, with the bounds that contain the exact answer.\n\n"
            "$ vendi score digits.npz --column picture\n"
        )
        _score(digits, Reading(column="picture"))
        click.echo(
            "\n\n4. A page for colleagues: modes, near copies, the rarest scans, digit by digit.\n\n"
            f"$ vendi report digits.npz --column picture --by digit --threshold 0.98 -o {page}\n"
        )
        command = f"vendi report digits.npz --column picture --by digit --threshold 0.98 -o {page.name}"
        write_report(
            (str(digits),), Reading(column="picture", by=("digit",)), Similarity(), Running(quiet=True), out=page,
            force=True, page=PageOptions("Handwritten digits", threshold=0.98, command=command),
        )  # fmt: skip
    click.echo(f"The report is in {page.absolute()}: open it in a browser.")
    data_words = (
        f"The data are in {keep}." if keep else "To keep the data of this demo: vendi demo --keep FOLDER."
    )
    click.echo(f"{data_words} In Python: vendimeter.score(captions, kernel='ngram').")


def _is_own_report(page: Path) -> bool:
    """Whether a file is a report of Vendimeter's, such as an earlier demo left behind."""
    if not page.is_file():
        return False
    with page.open("rb") as file:
        return b'<meta name="generator" content="Vendimeter">' in file.read(HEAD_BYTES)


def _score(path: Path, reading: Reading) -> None:
    from vendimeter.cli.options import Output
    from vendimeter.cli.output import emit
    from vendimeter.cli.score import answer_of

    emit(answer_of((str(path),), reading, Similarity(), Running(quiet=True)), Output())
