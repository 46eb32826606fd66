"""What the experiment scripts share: IntDiv, verdicts on claims, and writing results in one step."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import vendimeter as vm

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "build" / "experiments"

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


class Claims:
    """The claims of a figure, each with what was measured and a verdict on it."""

    def __init__(self) -> None:
        self.records: list[dict[str, str]] = []

    def check(self, name: str, claim: str, *, holds: bool, direction: bool, measured: str) -> None:
        """Record a verdict: `holds` if the numbers are as claimed, `direction` if they at least move that way."""
        verdict = "reproduced" if holds else "reproduced in direction" if direction else "not reproduced"
        self.records.append({"name": name, "claim": claim, "measured": measured, "verdict": verdict})
        print(f"{name}: {verdict}\n  claim:    {claim}\n  measured: {measured}")


def rising(values: Iterable[float]) -> bool:
    """Whether each value is above the one before."""
    return all(a < b for a, b in pairwise(values))


def new_figure(width: float, height: float) -> Figure:
    """A figure drawn by Agg; without pyplot there is no global state and no window."""
    mpl.rcParams.update(STYLE)
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def parse_out(argv: Sequence[str] | None, description: str) -> Path:
    """The output folder from the command line, created if need be."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="output folder (build/experiments)")
    out: Path = parser.parse_args(argv).out
    out.mkdir(parents=True, exist_ok=True)
    return out


def write(out: Path, name: str, results: dict[str, Any], figure: Figure) -> None:
    """Write NAME.json and NAME.png into the folder."""
    text = json.dumps(
        {"vendimeter": vm.__version__, **results}, indent=2, ensure_ascii=False, allow_nan=False
    )
    _replace(out / f"{name}.json", lambda path: path.write_text(text + "\n", encoding="utf-8"))
    _replace(out / f"{name}.png", lambda path: figure.savefig(path, format="png", dpi=160))
    print(f"wrote {name}.json and {name}.png")


def _replace(path: Path, fill: Callable[[Path], Any]) -> None:
    """Fill a temporary file beside the path, then rename it: a reader sees the old file or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        fill(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
