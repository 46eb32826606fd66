"""The figure of eigenvectors of Friedman and Dieng, The Vendi Score (TMLR 2023): what two similarities are about.

Pictures are projected along the leading eigenvectors of their similarity matrix, by an encoder or by pixels at 32×32.
Claims: for both kernels every similarity is positive, so that all entries of the top eigenvector have one sign, and
the pictures with the highest ones have the highest expected similarity; the others part the pictures. By the encoder,
components correspond to particular kinds (breeds of cats); by pixels, to broad differences in lightness and colour.

LSUN Cat and Inception are not at hand. Here: 2,000 pictures of 20 classes of CIFAR-100, by EfficientNet-Lite0, with
classes in place of breeds. How much of a component its classes explain is η², the share of the variance that lies
between classes; how much lightness and colour explain is R² of a linear fit on the mean red, green and blue of each
quarter of the picture: "corresponds" is more than half of the first five components, and less by the other kernel.
LSUN Cat is at github.com/fyu/lsun; eigenvectors.py --pictures FOLDER [--weights FILE] runs on any folder of pictures
(subfolders are classes), by FID's Inception where its weights are named (torch-fidelity's weights-
inception-2015-12-05-6726825d.pth), and writes eigenvectors_folder.json.

The exemplars at both ends are written as galleries. Ten seconds; other encodings are kept in the folder of galleries.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import _common as common
import vendimeter as vm
from _pictures import PIXELS, Encoder, add_encoder_option, encoder_of, read_cifar

COMPONENTS = 10
JUDGED = 5  # of them, by which the claims about their meaning are checked
EXEMPLARS = 4  # at each end, as in the paper
Row = dict[str, Any]


# ------------------------------------------------------------------------------------------------------ numbers


def explained_by_class(values: np.ndarray, names: np.ndarray) -> float:
    """η²: the share of the variance that lies between classes."""
    groups = [values[names == name] for name in np.unique(names)]
    between = sum(len(group) * (group.mean() - values.mean()) ** 2 for group in groups)
    return float(between / ((values - values.mean()) ** 2).sum())


def explained_by_colour(values: np.ndarray, colours: np.ndarray) -> float:
    """R² of a linear fit on some columns."""
    design = np.column_stack([np.ones(len(values)), colours])
    left = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(1 - (left**2).sum() / ((values - values.mean()) ** 2).sum())


def quarters(pictures: Any) -> np.ndarray:
    """The mean red, green and blue of each quarter of a picture, from 0 to 1."""
    pixels = PIXELS.vectors(pictures).reshape(-1, 2, 16, 2, 16, 3)
    return pixels.mean(axis=(2, 4)).reshape(len(pixels), -1)


def alike(names: np.ndarray, ends: Any) -> float:
    """The share of pairs of exemplars at one end that are of one class."""
    return float(np.mean([names[i] == names[j] for end in ends for i, j in combinations(end, 2)]))


def measure(samples: Any, kernel: vm.kernels.Kernel, colours: np.ndarray, names: Any) -> tuple[Row, Any]:
    found = vm.modes(samples, kernel, k=COMPONENTS, exemplars=EXEMPLARS)
    similarity = kernel.similarity(samples).dense()
    lightness = colours.mean(axis=1)
    score = vm.score(samples, kernel)
    components = []
    for a, values in enumerate(found.loadings.T):
        row = {
            "share": float(found.shares[a]),
            "positive": float((values > 0).mean()),
            "by_colour": explained_by_colour(values, colours),
            "lightness": float(np.corrcoef(values, lightness)[0, 1]),
        }
        if names is not None:
            row |= {
                "by_class": explained_by_class(values, names),
                "pairs_alike": alike(names, found.exemplars(a)),
            }
        components.append(row)
    expected = np.corrcoef(found.loadings[:, 0], vm.metrics.mean_similarity(samples, kernel))[0, 1]
    return {
        "vs": float(score),
        "vs_bounds": list(score.bounds),
        "least_similarity": float(similarity.min()),
        "top_one_sided": bool(found.one_sided[0]),
        "top_with_expected_similarity": float(expected),
        "components": components,
    }, found


def mean_of(row: Row, name: str, first: int = 0) -> float:
    return float(np.mean([part[name] for part in row["components"][first:JUDGED]]))


def check(rows: dict[str, Row], encoder: Encoder, claims: common.Claims) -> None:
    def judge(name: str, claim: str, holds: bool, direction: bool, measured: str) -> None:
        claims.check(name, claim, holds=holds, direction=direction, measured=measured)

    positive, sided = (
        [row[key] > 0 for row in rows.values()] for key in ("least_similarity", "top_one_sided")
    )
    claim = (
        "For both kernels every similarity is positive, so all entries in the top eigenvector have one sign."
    )
    said = [f"by {name} at least {row['least_similarity']:.3f}" for name, row in rows.items()]
    measured = f"similarities are {', '.join(said)}; {sum(sided)} of 2 top eigenvectors have one sign"
    judge("one sign", claim, all(positive) and all(sided), all(sided), measured)

    expected = {name: row["top_with_expected_similarity"] for name, row in rows.items()}
    claim = "The images with the highest weights in the top component have the highest expected similarity."
    measured = "correlation of the two " + ", ".join(
        f"{value:.4f} ({name})" for name, value in expected.items()
    )
    judge("top component", claim, min(expected.values()) > 0.99, min(expected.values()) > 0.5, measured)

    sides = [part["positive"] for row in rows.values() for part in row["components"][1:]]
    claim = "The remaining eigenvectors partition the images along different dimensions."
    measured = f"{min(sides):.0%} to {max(sides):.0%} of entries are positive in components 2 to {COMPONENTS}"
    judge(
        "other components",
        claim,
        0.1 < min(sides) <= max(sides) < 0.9,
        0 < min(sides) <= max(sides) < 1,
        measured,
    )

    by_encoder, by_pixels = rows.values()
    claim = "By the encoder components correspond to particular kinds (cat breeds); by pixels they do not."
    if "by_class" in by_encoder["components"][0]:
        mine, theirs = mean_of(by_encoder, "by_class"), mean_of(by_pixels, "by_class")
        pairs = [mean_of(row, "pairs_alike", 1) for row in rows.values()]
        measured = (
            f"classes explain {mine:.0%} of the first {JUDGED} components by {encoder.name}, {theirs:.0%} by pixels; "
            f"of pairs of exemplars at an end of components 2 to {JUDGED} {pairs[0]:.0%} and {pairs[1]:.0%} are alike"
        )
        judge("kinds", claim, mine >= 0.5 > theirs, mine > theirs, measured)
    else:
        claims.not_run("kinds", claim, why="the pictures have no classes; expected a subfolder for each kind")
    mine, theirs = mean_of(by_pixels, "by_colour"), mean_of(by_encoder, "by_colour")
    light = [row["components"][0]["lightness"] for row in (by_pixels, by_encoder)]
    claim = "By pixels components correspond to broad differences in lightness, darkness and colour."
    measured = (
        f"the mean colours of quarters explain {mine:.0%} of the first {JUDGED} components by pixels, {theirs:.0%} by "
        f"{encoder.name}; the top ones have correlations {light[0]:.2f} and {light[1]:.2f} with lightness"
    )
    judge("lightness and colour", claim, mine >= 0.5 > theirs, mine > theirs, measured)


# ----------------------------------------------------------------------------------------------------- pictures


def draw(rows: dict[str, Row], of: str) -> Figure:
    figure = common.new_figure(11, 3.9)
    axes = figure.subplots(
        1, 3, gridspec_kw={"wspace": 0.28, "left": 0.06, "right": 0.99, "top": 0.75, "bottom": 0.13}
    )
    x = np.arange(1, COMPONENTS + 1)
    panels = {
        "share": "Spectrum\nshare of each component",
        "by_class": "What classes explain\nη² of each component",
        "by_colour": "What lightness and colour explain\nR² on the mean colour of four quarters",
    }
    looks = zip(rows.items(), [(common.BLUE, "o", -0.19), (common.ORANGE, "s", 0.19)], strict=True)
    for (name, row), (colour, marker, shift) in looks:
        label = f"{name}: VS {row['vs']:.2f}"
        shares = [part["share"] for part in row["components"]]
        axes[0].plot(x[: len(shares)], shares, marker + "-", color=colour, label=label, markersize=5)
        for ax, key in zip(axes[1:], ["by_class", "by_colour"], strict=True):
            values = [part.get(key, np.nan) for part in row["components"]]
            ax.bar(x[: len(values)] + shift, values, 0.36, color=colour)
    for ax, title in zip(axes, panels.values(), strict=True):
        ax.set_title(title, loc="left")
        ax.set(xlabel="component", xticks=x)
    ticks = [0.003, 0.01, 0.03, 0.1, 0.3, 1]
    axes[0].set(yscale="log", yticks=ticks, yticklabels=map(str, ticks))
    axes[0].minorticks_off()
    for ax in axes[1:]:
        ax.set(ylim=(0, 1))
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="upper right",
        ncols=2,
        frameon=False,
        bbox_to_anchor=(0.99, 0.99),
    )
    figure.text(0.015, 0.94, of, fontsize=11, fontweight="bold", va="center")
    return figure


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    add_encoder_option(parser)
    parser.add_argument("--pictures", type=Path, help="a folder of pictures, such as LSUN Cat")
    parser.add_argument("--limit", type=int, default=2000, help="pictures of that folder, evenly spaced")
    options = common.parsed(parser, argv)
    claims, name = common.Claims(), "eigenvectors_folder" if options.pictures else "eigenvectors"
    results: Row = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, the figure of LSUN Cat by two kernels"
    }
    figure = None
    try:
        encoder = encoder_of(options)
        if options.pictures:
            read = vm.read(options.pictures)
            chosen = np.linspace(0, len(read) - 1, min(options.limit, len(read))).astype(int)
            pictures = [read[i] for i in chosen.tolist()]
            names = None if read.labels is None else np.array([read.labels[i] for i in chosen.tolist()])
            vectors, of = encoder.encode(pictures), f"{len(pictures)} pictures"
        else:
            pictures, vectors, names = read_cifar(options, encoder)
            of = f"{len(pictures):,} pictures of {len(set(names))} classes of CIFAR-100"
    except common.Missing as missing:
        print(missing)
        why = (
            "CIFAR-100, its vectors or the encoder are not there; see the docstring for where they come from"
        )
        claims.not_run("all", "Two kernels see different things.", why=why)
    else:
        colours = quarters(pictures)
        kinds = names if names is not None and len(set(names)) > 1 else None
        rows, galleries = {}, {}
        given = {encoder.name: (vectors, vm.kernels.Cosine()), "pixels": (pictures, PIXELS)}
        for title, (samples, kernel) in given.items():
            rows[title], galleries[title] = measure(samples, kernel, colours, kinds)
        check(rows, encoder, claims)
        for title, found in galleries.items():
            shown = found.plot_exemplars(list(pictures), modes=JUDGED, count=EXEMPLARS, kind="images")
            where = options.galleries / f"{name}-{title.split()[0].lower()}.png"
            where.parent.mkdir(parents=True, exist_ok=True)
            shown.figure_.savefig(where, dpi=130)
            print(f"gallery: {where.name}")
        results |= {
            "parameters": {
                "pictures": len(pictures),
                "classes": 0 if kinds is None else len(set(kinds)),
                "encoder": encoder.name,
                "components": COMPONENTS,
                "judged": JUDGED,
                "exemplars": EXEMPLARS,
            },
            "rows": rows,
        }
        figure = draw(rows, of)
    if not options.pictures:
        claims.not_run(
            "LSUN Cat",
            "Components by Inception correspond to particular cat breeds.",
            why="neither LSUN Cat nor the weights of FID's Inception are at hand; github.com/fyu/lsun has the pictures "
            "and torch-fidelity the weights: eigenvectors.py --pictures FOLDER --weights FILE",
        )
    common.write(options.out, name, results | {"claims": claims.records}, figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
