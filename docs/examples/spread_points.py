"""Points in a disc, spread apart by gradient ascent on the Vendi Score: draws docs/images/spread.png."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from vendimeter.integrations.torch import vendi_score

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "images" / "spread.png"
COUNT, SIGMA, STEPS = 60, 0.125, 300
BLUE, VERMILLION, GREY = (
    "#0072B2",
    "#D55E00",
    "#666666",
)  # of Okabe and Ito, distinct for colour-blind readers


def spread(steps: int = STEPS) -> tuple[torch.Tensor, torch.Tensor, list[float]]:
    """The points before and after, and the score before each step and at the end."""
    generator = torch.Generator().manual_seed(1)
    start = 0.15 * torch.randn(COUNT, 2, generator=generator, dtype=torch.float64) + torch.tensor([-0.3, 0.2])
    points = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([points], lr=0.02)
    # Smaller steps towards the end, so that the points come to rest.
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    scores = []
    for _ in range(steps):
        score = vendi_score(rbf(points), kernel="precomputed")
        scores.append(score.item())
        optimiser.zero_grad()
        (-score).backward()
        optimiser.step()
        schedule.step()
        with torch.no_grad():  # whoever left the disc is put back on its edge
            points /= points.norm(dim=1, keepdim=True).clamp(min=1)
    end = points.detach()
    scores.append(vendi_score(rbf(end), kernel="precomputed").item())
    return start, end, scores


def rbf(points: torch.Tensor) -> torch.Tensor:
    """The similarity matrix, exp(−‖a − b‖²/2σ²)."""
    return torch.exp(-(points[:, None] - points).square().sum(-1) / (2 * SIGMA**2))


def draw(start: torch.Tensor, end: torch.Tensor, scores: list[float]) -> Figure:
    """Start, end, and the score along the way."""
    mpl.rcParams.update({"font.size": 9, "axes.titlesize": 10, "axes.linewidth": 0.8})
    figure = Figure(figsize=(9.2, 3.5), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr]
    figure.suptitle(f"{COUNT} points spread apart by gradient ascent on their Vendi Score", fontsize=11)
    before, after, curve = figure.subplots(1, 3, width_ratios=[1, 1, 1.15])
    draw_points(before, start, VERMILLION, f"start: score {scores[0]:.1f}")
    draw_points(after, end, BLUE, f"after {len(scores) - 1} steps: score {scores[-1]:.1f}")
    curve.axhline(COUNT, color=GREY, linestyle=":", linewidth=1)
    curve.annotate(
        f"{COUNT} points, all different", (len(scores) - 1, COUNT), (0, 4), textcoords="offset points",
        ha="right", color=GREY, fontsize=8,
    )  # fmt: skip
    curve.plot(scores, color="black", linewidth=1.5)
    curve.plot(0, scores[0], "s", color=VERMILLION, markersize=6, clip_on=False)
    curve.plot(len(scores) - 1, scores[-1], "o", color=BLUE, markersize=6, clip_on=False)
    curve.set(
        xlabel="step",
        ylabel="Vendi Score",
        title="score along the way",
        ylim=(0, 1.1 * COUNT),
        xlim=(-0.03 * len(scores), 1.03 * len(scores)),
    )
    curve.spines[["top", "right"]].set_visible(False)
    return figure


def draw_points(axes: Axes, points: torch.Tensor, colour: str, title: str) -> None:
    """The points in their disc."""
    axes.add_patch(Circle((0, 0), 1, facecolor="#f5f5f5", edgecolor=GREY, linewidth=0.8))
    x, y = points.T.tolist()
    axes.plot(
        x,
        y,
        "s" if colour == VERMILLION else "o",
        color=colour,
        markersize=4.5,
        alpha=0.85,
        markeredgewidth=0,
    )
    axes.set(title=title, xlim=(-1.06, 1.06), ylim=(-1.06, 1.06), aspect="equal")
    axes.axis("off")


def main(argv: Sequence[str] | None = None) -> int:
    """Run and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="the picture (docs/images/spread.png)")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"steps of ascent ({STEPS})")
    options = parser.parse_args(argv)
    start, end, scores = spread(options.steps)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    draw(start, end, scores).savefig(options.out, dpi=150, metadata={"Software": None})
    print(f"score {scores[0]:.2f} → {scores[-1]:.2f} in {options.steps} steps; wrote {options.out}")
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)  # the matrices are small, and threads would only wait for each other
    sys.exit(main())
