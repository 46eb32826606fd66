"""Stacked MNIST of Friedman and Dieng, The Vendi Score (TMLR 2023): modes, Mode Diversity and VS of two GANs.

Three digits, one a colour channel, make a thousand classes. Claims: the original has 1000 modes, Mode Diversity 950.8
and VS 943.7 at 10,000 samples; two GANs that have all the modes are told apart by VS, and are less diverse than the
original; their VS is below their Mode Diversity, so that uneven modes are not all there is to it. Similarity is the
probability product kernel Σ_y √(p(y|x) p(y|x′)) of a digit classifier's answers, channel by channel.

The paper's models were PresGAN and a self-conditioned GAN. The two here, a DCGAN and the same with a bound on its
entropy in the loss, were trained by `stacked_mnist_train.py` for 50 epochs (three minutes on one H200); as in the paper
10,000 samples were scored every five epochs, and the row is that of the epoch with the highest VS. What the classifier
said of the samples of that epoch is in `results/stacked_mnist/` (half precision), so that the table needs no GPU;
--trained FOLDER takes all epochs from a run of one's own, and writes these files anew.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import _common as common
import vendimeter as vm
from vendimeter.kernels import ProbabilityProduct

CLASSES = 1000
SUBSET = 5000  # of the 10,000 samples
PAPER = {
    "Original": {"modes": 1000, "mode_diversity": 950.8, "vs": 943.7},
    "PresGAN": {"modes": 1000, "mode_diversity": 948.7, "vs": 866.6},
    "Self-cond. GAN": {"modes": 1000, "mode_diversity": 921.0, "vs": 746.7},
}
MODELS = {"dcgan": "DCGAN", "entropy": "DCGAN + entropy"}
NEAR = 0.01  # relative: how near the original's row has to be
KERNEL = ProbabilityProduct()
KEPT = common.RESULTS / "stacked_mnist"
ORIGIN = "the folder that stacked_mnist_train.py wrote"

Row = dict[str, Any]


# ------------------------------------------------------------------------------------------------------ numbers


def normalised(probabilities: np.ndarray) -> np.ndarray:
    """Rows that sum to one again, after half precision."""
    wide = probabilities.astype(np.float64)
    return wide / wide.sum(axis=-1, keepdims=True)


def joint(probabilities: np.ndarray) -> np.ndarray:
    """The probabilities of the thousand classes: the product over the channels."""
    red, green, blue = np.moveaxis(probabilities, 1, 0)
    return np.einsum("na,nb,nc->nabc", red, green, blue).reshape(len(red), CLASSES)


def measure(probabilities: np.ndarray) -> Row:
    """The three columns of the table, and what VS would be were the classifier sure of everything."""
    found = normalised(probabilities)
    classes = joint(found)
    score = vm.score(found, KERNEL)
    counts = np.bincount(classes.argmax(axis=1), minlength=CLASSES)
    return {
        "modes": int(vm.metrics.number_of_modes(classes)),
        "mode_diversity": float(vm.metrics.mode_diversity(classes)),
        "vs": float(score),
        "bounds": list(score.bounds),
        "vs_if_sure": float(vm.metrics.hill(counts, q=1)),
        "mean_confidence": float(classes.max(axis=1).mean()),
    }


def taken_over(folder: Path, kept: Path) -> None:
    """The epochs of a training, scored; the probabilities of the best one are kept."""
    kept.mkdir(parents=True, exist_ok=True)
    with np.load(folder / "original.npz") as held:
        np.savez_compressed(
            kept / "original.npz", probabilities=held["probabilities"], accuracy=held["accuracy"]
        )
    for model in MODELS:
        with np.load(folder / f"{model}.npz") as held:
            rows = [measure(one) for one in held["probabilities"]]
            best = int(np.argmax([row["vs"] for row in rows]))
            np.savez_compressed(
                kept / f"{model}.npz",
                probabilities=held["probabilities"][best],
                epochs=held["epochs"],
                best=best,
                seconds=held["seconds"],
                **{name: np.array([row[name] for row in rows]) for name in ("modes", "mode_diversity", "vs")},
            )


def differences(held: dict[str, np.ndarray], size: int) -> dict[str, Row]:
    """What each model lacks of the original's VS in subsets of one size, with an interval for the sampling."""
    found = vm.compare(held, KERNEL, reference="Original", size=size, permutations=0).differences
    gaps = zip(found.groups, found.difference, found.difference_low, found.difference_high, strict=True)
    return {
        str(name): {"difference": float(gap), "low": float(low), "high": float(high)}
        for name, gap, low, high in gaps
    }


def check(
    rows: dict[str, Row], gaps: dict[str, Row], runs: dict[str, Row], size: int, claims: common.Claims
) -> None:
    sure = ", ".join(f"{row['vs_if_sure']:.1f} ({name})" for name, row in rows.items())
    doubt = ", ".join(f"{row['mean_confidence']:.2f}" for row in rows.values())
    of_gap = " and ".join(
        f"{(row['vs_if_sure'] - row['vs']) / (row['mode_diversity'] - row['vs']):.0%}"
        for row in (rows[name] for name in MODELS.values())
    )
    moves = [np.abs(np.diff(run["vs"][2:])) / np.mean(run["vs"][2:]) for run in runs.values()]
    moved = float(np.mean(moves))
    original, models = rows["Original"], {name: rows[name] for name in MODELS.values()}

    def triple(row: Row) -> str:
        return f"{row['modes']}, {row['mode_diversity']:.1f}, {row['vs']:.1f}"

    def each(key: str, digits: int = 1) -> str:
        return ", ".join(f"{name} {row[key]:.{digits}f}" for name, row in models.items())

    published = PAPER["Original"]
    apart = [abs(original[key] / published[key] - 1) for key in published]
    claims.check(
        "original",
        "Of the data set itself, 10,000 samples have 1000 modes, Mode Diversity 950.8 and VS 943.7.",
        holds=max(apart) < NEAR and original["modes"] == published["modes"],
        direction=max(apart) < 10 * NEAR,
        paper=triple(published),
        measured=f"{triple(original)} (another draw of triples, and a classifier of our own)",
    )
    claims.check(
        "modes",
        "Both GANs capture all 1000 modes: the number of modes cannot tell them apart.",
        holds=all(row["modes"] == CLASSES for row in models.values()),
        direction=all(row["modes"] > 0.99 * CLASSES for row in models.values()),
        paper="1000 and 1000 (PresGAN, self-conditioned GAN)",
        measured=each("modes", 0),
    )
    claims.check(
        "less diverse",
        "VS reveals that both GANs are less diverse than the original.",
        holds=all(gap["high"] < 0 for gap in gaps.values()),
        direction=all(gap["difference"] < 0 for gap in gaps.values()),
        paper="866.6 and 746.7 against 943.7",
        measured="; ".join(f"{name} {models[name]['vs']:.1f}" for name in gaps)
        + f" against {original['vs']:.1f}; of {size:,} samples the difference is "
        + "; ".join(
            f"{gap['difference']:.0f} ({gap['low']:.0f} to {gap['high']:.0f})" for gap in gaps.values()
        ),
    )
    first, second = models.values()
    apart_vs, apart_modes = abs(first["vs"] / second["vs"] - 1), abs(first["modes"] / second["modes"] - 1)
    claims.check(
        "told apart",
        "VS makes distinctions between the two models that the number of modes does not.",
        holds=apart_vs > 0.05 and apart_modes < 0.005,
        direction=apart_vs > apart_modes,
        paper="VS apart by 14 %, modes by nothing",
        measured=f"VS apart by {apart_vs:.1%}, modes by {apart_modes:.1%}; one run each, whose own VS moves by "
        f"{moved:.1%} from one fifth epoch to the next (mean, from epoch 15 on)",
    )
    claims.check(
        "below Mode Diversity",
        "The models score lower on VS than on Mode Diversity: the lack is not all due to uneven modes.",
        holds=all(row["mode_diversity"] - row["vs"] > 2 * (original["mode_diversity"] - original["vs"]) > 0
                  for row in models.values()),
        direction=all(row["vs"] < row["mode_diversity"] for row in models.values()),
        paper="866.6 < 948.7, 746.7 < 921.0 (and 943.7 < 950.8 of the original)",
        measured=f"VS: {each('vs')}; Mode Diversity: {each('mode_diversity')}; of the original "
        f"{original['vs']:.1f} < {original['mode_diversity']:.1f}. Were the classifier sure of every digit, VS were "
        f"{sure}: {of_gap} of the models' gaps are its doubt (mean confidence {doubt})",
    )  # fmt: skip
    claims.not_run(
        "PresGAN above self-conditioned",
        "PresGAN is more diverse than the self-conditioned GAN by VS.",
        paper="866.6 > 746.7",
        why="of both models the code is published (github.com/adjidieng/PresGANs, github.com/stevliu/self-conditioned-"
        "gan), and no samples; neither was trained here, the two that were are others",
    )


# ----------------------------------------------------------------------------------------------------- pictures


def draw(rows: dict[str, Row], runs: dict[str, Row]) -> Figure:
    figure = common.new_figure(9.6, 3.9)
    left, right = figure.subplots(1, 2, width_ratios=[1.35, 1])
    figure.subplots_adjust(left=0.07, right=0.985, top=0.84, bottom=0.2, wspace=0.2)
    bars = [("ours", name, rows[name]) for name in rows]
    bars += [("paper", name, row) for name, row in PAPER.items()]
    for place, (whose, _, row) in enumerate(bars):
        shift = place + (0.6 if whose == "paper" else 0)
        for part, (key, colour) in enumerate([("mode_diversity", common.ORANGE), ("vs", common.VS_COLOUR)]):
            at = shift + 0.4 * part - 0.2
            left.bar(at, row[key], 0.38, color=colour, alpha=1 if whose == "ours" else 0.45)
            left.text(at, row[key] + 8, f"{row[key]:.0f}", ha="center", fontsize=7)
    left.set_xticks([i + (0.6 if whose == "paper" else 0) for i, (whose, _, _) in enumerate(bars)],
                    [name.replace(" + ", " +\n").replace("cond. ", "cond.\n") for _, name, _ in bars])  # fmt: skip
    left.set(ylim=(0, 1090), ylabel="effective number of classes")
    left.text(1, 1050, "here", ha="center", fontweight="bold")
    left.text(4.6, 1050, "in the paper", ha="center", fontweight="bold")
    least = min(row["modes"] for row in [*rows.values(), *PAPER.values()])
    left.set_title(f"All have {'all 1,000' if least == CLASSES else f'{least:,} to 1,000'} modes", pad=10)
    styles = {"dcgan": ("-", "o"), "entropy": ("--", "s")}
    for model, run in runs.items():
        line, marker = styles[model]
        for key, colour, label in [
            ("mode_diversity", common.ORANGE, "Mode Diversity"),
            ("vs", common.VS_COLOUR, "Vendi Score"),
        ]:
            right.plot(run["epochs"], run[key], line, marker=marker, markersize=4, color=colour,
                       label=f"{label}, {MODELS[model]}")  # fmt: skip
        best = run["best"]
        label = "best VS: the row" if model == "dcgan" else None
        style = {"marker": "*", "markersize": 12, "color": common.BLACK, "linestyle": "none"}
        right.plot(run["epochs"][best], run["vs"][best], label=label, **style)
    right.set(xlabel="epoch", ylim=(400, 1000))
    right.set_title("While they are trained", pad=10)
    right.legend(loc="lower right", frameon=False, fontsize=7)
    handles = [left.bar(0, 0, color=colour) for colour in (common.ORANGE, common.VS_COLOUR)]
    left.legend(handles, ["Mode Diversity", "Vendi Score"], ncols=2, frameon=False, loc="upper center",
                bbox_to_anchor=(0.5, -0.13))  # fmt: skip
    return figure


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    parser.add_argument("--trained", type=Path, metavar="FOLDER", help=ORIGIN)
    parser.add_argument("--kept", type=Path, default=KEPT, help="folder of the class probabilities")
    parser.add_argument(
        "--subset", type=int, default=SUBSET, help=f"samples for the differences ({SUBSET:,})"
    )
    options = common.parsed(parser, argv)
    if options.trained is not None:
        taken_over(options.trained, options.kept)
    held, runs, rows = {}, {}, {}
    with np.load(options.kept / "original.npz") as file:
        held["Original"], accuracy = normalised(file["probabilities"]), float(file["accuracy"])
    rows["Original"] = measure(held["Original"])
    for model, name in MODELS.items():
        with np.load(options.kept / f"{model}.npz") as file:
            held[name] = normalised(file["probabilities"])
            keys = ("epochs", "modes", "mode_diversity", "vs")
            runs[model] = {key: file[key].tolist() for key in keys} | {"best": int(file["best"])}
        rows[name] = measure(held[name])
    claims = common.Claims()
    gaps = differences(held, options.subset)
    check(rows, gaps, runs, options.subset, claims)
    results = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, table of modes on Stacked MNIST",
        "parameters": {
            "samples": 10_000,
            "kernel": repr(KERNEL),
            "classifier_accuracy": accuracy,
            "near": NEAR,
        },
        "paper": PAPER,
        "rows": rows,
        "differences": gaps,
        "epochs": runs,
        "claims": claims.records,
    }
    common.write(options.out, "stacked_mnist", results, draw(rows, runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
