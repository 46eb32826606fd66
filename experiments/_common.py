"""What the experiment scripts share: where data lies, verdicts on claims, and writing results in one step.

A script states claims of the paper, computes what bears on them through the public API, and writes NAME.json (numbers
and verdicts) and NAME.png (a picture of numbers). `summary.py` puts all of them together. Pictures that show samples of
data sets are galleries: they are written beside, and never kept in the repository.
"""

from __future__ import annotations

import argparse
import io
import json
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

import vendimeter as vm

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"  # numbers and pictures of numbers, in the repository
GALLERIES = ROOT / "build" / "experiments"  # samples of data sets, which are not ours to give on
DATA = ROOT.parent / "shared" / "data"
DIGITS = 12  # of numbers in results
COLOURS = 64  # of a picture that is kept: a third of the bytes, and no difference to see

REPRODUCED, IN_DIRECTION, NOT_REPRODUCED = "reproduced", "reproduced in direction", "not reproduced"
NOT_RUN = "could not be run"

# The palette of Okabe and Ito, which stays distinct for colour-blind readers.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#666666"
VS_COLOUR, INTDIV_COLOUR = BLUE, VERMILLION

STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
}


def internal_diversity(samples: Any, kernel: vm.kernels.Kernel) -> float:
    """IntDiv, one minus the mean similarity over all n² pairs, each item with itself included."""
    mean = float(kernel.similarity(samples).dense().mean())
    return max(0.0, 1.0 - mean)  # no similarity exceeds 1, but rounding may take the mean a hair above


class Missing(Exception):
    """Data that is not there, with where to get it."""


class Claims:
    """The claims of a figure or table, each with the paper's number, what was measured, and a verdict on it."""

    def __init__(self) -> None:
        self.records: list[dict[str, str]] = []

    def check(
        self, name: str, claim: str, *, holds: bool, direction: bool, measured: str, paper: str = ""
    ) -> None:
        """Record a verdict: `holds` if the numbers are as claimed, `direction` if they at least move that way."""
        verdict = REPRODUCED if holds else IN_DIRECTION if direction else NOT_REPRODUCED
        self._record(name, claim, paper, measured, verdict)

    def not_run(self, name: str, claim: str, *, why: str, paper: str = "") -> None:
        """Record a claim that could not be looked at, and why."""
        self._record(name, claim, paper, why, NOT_RUN)

    def _record(self, name: str, claim: str, paper: str, measured: str, verdict: str) -> None:
        record = {"name": name, "claim": claim, "measured": measured, "verdict": verdict}
        if paper:
            record["paper"] = paper
        self.records.append(record)
        print(f"{name}: {verdict}\n  claim:    {claim}")
        if paper:
            print(f"  paper:    {paper}")
        print(f"  measured: {measured}")


def file_of(options: argparse.Namespace, name: str, origin: str) -> Path:
    """A file of the data folder; where it is not there, an error that says where it comes from."""
    path = options.data / name
    if not path.exists():
        raise Missing(f"{name} is not in the folder of data; expected {origin}. Name the folder with --data.")
    return path


def rising(values: Iterable[float]) -> bool:
    """Whether each value is above the one before."""
    return all(a < b for a, b in pairwise(values))


def new_figure(width: float, height: float) -> Figure:
    """A figure drawn by Agg; without pyplot there is no global state and no window."""
    mpl.rcParams.update(STYLE)
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The options that all scripts have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of results (experiments/results)")
    parser.add_argument("--galleries", type=Path, default=GALLERIES,
                        help="folder of pictures that show samples (build/experiments)")  # fmt: skip
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    return parser


def parsed(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """The options; the folders of results exist then."""
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def parse_out(argv: Sequence[str] | None, description: str) -> Path:
    """The output folder of a script that needs no data, created if need be."""
    out: Path = parsed(parser_of(description), argv).out
    return out


def write(
    out: Path,
    name: str,
    results: dict[str, Any],
    figure: Figure | None,
    extra: dict[str, Figure] | None = None,
) -> None:
    """Write NAME.json, NAME.png, and NAME-KEY.png for each further figure, into the folder."""
    text = json.dumps(
        {"vendimeter": vm.__version__, **_rounded(results)}, indent=1, ensure_ascii=False, allow_nan=False
    )
    _replace(out / f"{name}.json", lambda path: path.write_text(text + "\n", encoding="utf-8"))
    figures = {} if figure is None else {name: figure}
    figures |= {f"{name}-{key}": one for key, one in (extra or {}).items()}
    for stem, one in figures.items():
        picture(out / f"{stem}.png", one)
    print("wrote " + ", ".join([f"{name}.json", *(f"{stem}.png" for stem in figures)]))


def _rounded(value: Any) -> Any:
    """Numbers without the digits that differ from machine to machine, so that a rerun changes nothing else."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def picture(path: Path, figure: Figure, dpi: int = 130) -> None:
    """Write a figure, in few colours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    image = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    _replace(path, lambda there: image.save(there, format="PNG", optimize=True))


def _replace(path: Path, fill: Callable[[Path], Any]) -> None:
    """Fill a temporary file beside the path, then rename it: a reader sees the old file or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        fill(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
