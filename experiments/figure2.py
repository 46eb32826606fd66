"""Figure 2 of Friedman and Dieng, The Vendi Score (TMLR 2023): mixtures of univariate normals.

Claim: VS can be read as the effective number of modes, between one and five as components are added (row 1) or as the
mixture evens out (row 2), and from five to seven as the modes widen (row 3); IntDiv is relatively insensitive to the
width of the modes and has diminishing returns with more of them.

The paper gives neither bandwidth nor spacing nor variances. Here lengths are in units of the RBF bandwidth σ = 1:

- means 4 apart, so that items of different modes have mean similarity below 0.002 at any width used;
- standard deviation 0.05 in rows 1 and 2, so that a mode counts as one thing;
- in row 2 a share t of the samples spread evenly over five components and the rest in the first, t from 0 to 1;
- standard deviation 0.05 to 0.33 in row 3. The range was chosen to end near seven, so the seven itself is no evidence;
  that VS starts at five and rises steadily while IntDiv hardly moves is.

The paper prints the kernel without the minus sign of its exponent; it is exp(−(x − x′)² / 2σ²).

500 samples from each mixture, ten times over with fixed seeds; points are means, bars the range of the ten. Dashed:
the values for infinitely many samples and modes far apart. The spectrum of the RBF kernel over one normal is then
geometric (Zhu, Williams, Rohwer and Morciniec 1998), and that of the mixture the union over its modes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import _common as common
import vendimeter as vm

SEED = 2023
SAMPLES = 500
REPEATS = 10
SIGMA = 1.0
SPACING = 4.0
NARROW = 0.05
COMPONENTS = 5
EVENNESS = [0.0, 0.25, 0.5, 0.75, 1.0]  # 0: all in one component; 1: uniform over the five
WIDTHS = [0.05, 0.12, 0.19, 0.26, 0.33]
TOLERANCE = 0.05  # relative: how near "one", "five" and "seven" have to be

KERNEL = vm.kernels.RBF(SIGMA)
Row = dict[str, Any]


# ------------------------------------------------------------------------------------------------------ numbers


def dataset(setting: Row, repeat: int) -> np.ndarray:
    """One of the datasets drawn from a mixture; each has a seed of its own, so that none depends on the others."""
    rng = np.random.default_rng([*setting["seed"], repeat])
    component = rng.choice(len(setting["proportions"]), size=SAMPLES, p=setting["proportions"])
    return SPACING * component + rng.normal(scale=setting["width"], size=SAMPLES)


def expected_scores(proportions: Sequence[float], width: float) -> tuple[float, float]:
    """VS and IntDiv of infinitely many samples whose modes do not overlap."""
    p = np.array([share for share in proportions if share > 0])
    a, b = 1 / (4 * width**2), 1 / (2 * SIGMA**2)
    ratio = b / (a + b + np.sqrt(a**2 + 2 * a * b))  # eigenvalues of one mode: (1 − ratio) ratioᵏ
    within = -np.log1p(-ratio) - ratio / (1 - ratio) * np.log(ratio)
    vs = np.exp(within - np.sum(p * np.log(p)))
    intdiv = 1 - np.sum(p**2) / np.sqrt(1 + 2 * width**2 / SIGMA**2)
    return float(vs), float(intdiv)


def settings() -> dict[str, list[Row]]:
    """The mixtures of each row: what is varied, the proportions, the standard deviation within a mode, the seed."""
    uniform, first = np.full(COMPONENTS, 1 / COMPONENTS), np.eye(COMPONENTS)[0]
    mixtures = {
        "components": [(k, [1 / k] * k, NARROW) for k in range(1, COMPONENTS + 1)],
        "proportions": [(t, ((1 - t) * first + t * uniform).tolist(), NARROW) for t in EVENNESS],
        "width": [(width, uniform.tolist(), width) for width in WIDTHS],
    }
    return {
        name: [
            {"varied": varied, "proportions": proportions, "width": width, "seed": [SEED, band, place]}
            for place, (varied, proportions, width) in enumerate(row)
        ]
        for band, (name, row) in enumerate(mixtures.items())
    }


def measure(setting: Row) -> Row:
    proportions, width = setting["proportions"], setting["width"]
    datasets = [dataset(setting, repeat) for repeat in range(REPEATS)]
    scores = {
        "vs": [float(vm.score(samples, KERNEL)) for samples in datasets],
        "intdiv": [common.internal_diversity(samples, KERNEL) for samples in datasets],
    }
    p = np.array([share for share in proportions if share > 0])
    result: Row = {**setting, "effective_modes": float(np.exp(-np.sum(p * np.log(p))))}
    for (name, values), expected in zip(scores.items(), expected_scores(proportions, width), strict=True):
        result[name] = {
            "mean": float(np.mean(values)),
            "low": min(values),
            "high": max(values),
            "expected": expected,
        }
    return result


def means(rows: Sequence[Row], name: str) -> list[float]:
    return [row[name]["mean"] for row in rows]


def near(value: float, target: float) -> bool:
    return abs(value - target) <= TOLERANCE * target


def check(rows: dict[str, list[Row]], claims: common.Claims) -> None:
    for name, figure_row, varied in [
        ("components", "row 1", "the number of components"),
        ("proportions", "row 2", "the evenness of the mixture"),
    ]:
        vs = means(rows[name], "vs")
        effective = [row["effective_modes"] for row in rows[name]]
        claims.check(
            f"2 {figure_row}, VS",
            f"VS is the effective number of modes and ranges between one and five with {varied}.",
            holds=common.rising(vs) and all(near(v, e) for v, e in zip(vs, effective, strict=True)),
            direction=common.rising(vs),
            measured="VS " + _listed(vs) + " against effective numbers of modes " + _listed(effective),
        )
    vs, intdiv = means(rows["width"], "vs"), means(rows["width"], "intdiv")
    claims.check(
        "2 row 3, VS",
        "VS increases from five to seven as the within-mode variance grows.",
        holds=False,  # the seven is where our widths were chosen to end
        direction=common.rising(vs) and near(vs[0], 5),
        measured=f"VS {_listed(vs)} (the range of widths is ours, chosen to end near seven)",
    )
    vs_rise, intdiv_rise = vs[-1] / vs[0] - 1, intdiv[-1] / intdiv[0] - 1
    claims.check(
        "2 row 3, IntDiv",
        "IntDiv is relatively insensitive to within-mode variance.",
        holds=abs(intdiv_rise)
        < vs_rise / 10,  # our reading of "relatively": less than a tenth of the rise of VS
        direction=abs(intdiv_rise) < vs_rise,
        measured=f"IntDiv {_listed(intdiv, 3)}, a rise of {intdiv_rise:.1%}, where VS rises by {vs_rise:.0%}",
    )
    intdiv = means(rows["components"], "intdiv")
    gains = np.diff(intdiv)
    claims.check(
        "2 row 1, IntDiv",
        "Additional modes bring IntDiv diminishing returns.",
        holds=common.rising(intdiv) and common.rising(-gains),
        direction=bool(gains[-1] < gains[0]),
        measured=f"IntDiv {_listed(intdiv, 3)}; each further mode adds {_listed(gains, 3)}",
    )


def _listed(values: Sequence[float] | np.ndarray, digits: int = 2) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


# ----------------------------------------------------------------------------------------------------- pictures


def draw(rows: dict[str, list[Row]]) -> Figure:
    figure = common.new_figure(13.5, 8.4)
    outer = figure.add_gridspec(
        3, 2, width_ratios=[7.4, 4.4], left=0.05, right=0.985, top=0.9, bottom=0.07, hspace=0.75, wspace=0.12
    )
    looks = {
        "components": ("More components", "number of components", "{:d} component{s}"),
        "proportions": (
            "From one component (evenness 0) to a uniform mixture of five (evenness 1)",
            "evenness of the mixture",
            "evenness = {:g}",
        ),
        "width": ("Five components that widen", "standard deviation of a mode / σ", "std = {:g} σ"),
    }
    for band, (name, (heading, label, title)) in enumerate(looks.items()):
        top = outer[band, 0].get_position(figure).y1
        figure.text(0.015, top + 0.04, heading, fontsize=11, fontweight="bold", va="bottom")
        # Bins with the means in their middle; finer ones where the width of the modes is the matter.
        bin_width = 0.2 if name == "width" else 0.4
        edges = np.arange(bin_width / 2 - 2, SPACING * (COMPONENTS - 1) + 2, bin_width)
        cells = outer[band, 0].subgridspec(1, 5, wspace=0.12)
        heights = [np.histogram(dataset(row, 0), edges)[0] / SAMPLES for row in rows[name]]
        for place, (row, height) in enumerate(zip(rows[name], heights, strict=True)):
            ax = figure.add_subplot(cells[place])
            ax.stairs(height, edges, fill=True, color=common.BLACK)
            ax.set_title(title.format(row["varied"], s="" if row["varied"] == 1 else "s"))
            ax.set(xlim=(edges[0], edges[-1]), ylim=(0, 1.05 * max(h.max() for h in heights)))
            ax.set_xticks([SPACING * k for k in range(COMPONENTS)])
            ax.set_xlabel("x / σ", labelpad=1)
            if place:
                ax.tick_params(labelleft=False)
            else:
                ax.set_ylabel("share of samples")
        left, right = (figure.add_subplot(cell) for cell in outer[band, 1].subgridspec(1, 2, wspace=0.28))
        x = [row["varied"] for row in rows[name]]
        for ax, key, colour, marker, metric in [
            (left, "vs", common.VS_COLOUR, "o", "Vendi Score"),
            (right, "intdiv", common.INTDIV_COLOUR, "s", "IntDiv"),
        ]:
            draw_scores(ax, x, [row[key] for row in rows[name]], colour, marker)
            ax.set(title=metric, xticks=x)
            ax.set_xlabel(label)
        left.set(ylim=(0, 7.5), yticks=[0, 1, 3, 5, 7])
        right.set(ylim=(0, 1), yticks=[0, 0.2, 0.4, 0.6, 0.8, 1])
    figure.text(
        0.985, 0.965, f"points: mean of {REPEATS} datasets of {SAMPLES};  bars: their range;  "
        "dashed: infinitely many samples, modes far apart", ha="right", fontsize=8,
    )  # fmt: skip
    return figure


def draw_scores(ax: Any, x: Sequence[float], scores: Sequence[Row], colour: str, marker: str) -> None:
    mean = np.array([score["mean"] for score in scores])
    low, high = (np.array([score[end] for score in scores]) for end in ("low", "high"))
    ax.plot(x, [score["expected"] for score in scores], color="black", linewidth=1, linestyle="--")
    # The range of ten seeds need not be even about the mean, nor, by rounding, quite contain it when all are equal.
    spread = np.maximum([mean - low, high - mean], 0)
    style = {"marker": marker, "markersize": 5, "linestyle": "none", "capsize": 3}
    ax.errorbar(x, mean, spread, color=colour, clip_on=False, zorder=3, **style)


def main(argv: Sequence[str] | None = None) -> int:
    out = common.parse_out(argv, "Figure 2 of the Vendi Score paper: VS and IntDiv on mixtures of normals.")
    claims = common.Claims()
    rows = {name: [measure(setting) for setting in row] for name, row in settings().items()}
    check(rows, claims)
    parameters = {
        "seed": SEED, "samples": SAMPLES, "repeats": REPEATS, "kernel": repr(KERNEL), "spacing": SPACING,
        "narrow_width": NARROW, "tolerance": TOLERANCE,
    }  # fmt: skip
    results = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, Figure 2",
        "parameters": parameters,
        "rows": rows,
        "claims": claims.records,
    }
    common.write(out, "figure2", results, draw(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
