"""Generative models of molecules, Friedman and Dieng, The Vendi Score (TMLR 2023): a table and kernel matrices.

Table: IntDiv and VS of samples of eight MOSES models and of the data, by Tanimoto similarity of Morgan fingerprints
(radius 2, 1,024 bits). Claim: IntDiv ranks the HMM among the most diverse models and VS as the least diverse, since its
molecules are unlike one another on average, but many are identical. Figure: kernel matrices of 250 molecules of the
HMM, the AAE and the data, sorted by SMILES, in which the copies show.

The text says the first 2,500 valid molecules, but the numbers are those of the first 1,500, as the authors' notebook
has it. At hand: the MOSES test set, the N-gram sample (byte for byte the published one) and the combinatorial one
(made anew; a few fragments are written otherwise). The other samples are in github.com/molecularsets/moses,
data/samples, by git-LFS (`git lfs pull`): `--samples FOLDER` takes MODEL_3.csv of models there and checks the sha256.

For the claim about the HMM a character HMM is fitted here, by Baum and Welch's algorithm: 200 states with an end, as in
MOSES, emissions random and all else uniform at first, on the first 10,000 training molecules (MOSES: 100,000, and up to
100 iterations), three times. It is sampled at several stages of its training until there are 1,500 valid molecules. "At
the published validity" is the stage whose share of valid strings is nearest to that of the published sample, 5.27 %.
Reproduced is what all fits show, there and at the end; reproduced in direction what the fit in the middle shows there.
VS is lowest whatever the fit; the rank by IntDiv is a matter of luck: of eight fits (`--seeds 8`) four had rank 1 to 3,
one each 4 and 5, two 8.

Four and a half minutes on one core, one minute once the HMMs are kept in build/experiments. Products in float32 may
sum in another order on other machines: samples of the HMM are then others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import rdkit
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import _common as common
import _molecules as source
from _molecules import KERNEL, NAMES, PAPER, PUBLISHED_HMM, Row

REPRODUCED = 0.0005  # relative
TOP = 3  # of eight models, the rank by IntDiv that the paper calls "among the most diverse"
BAND = "#CFE6F5"
REPEATS = 0.9  # repeats: fewer different molecules than this share of what the N-gram model has
ALIKE, LOWER = 0.05, 2 / 3  # kernel matrices: how near IntDiv is, and how far below VS
# Of names in the picture that would lie on one another.
PLACES = {
    "aae": (0.852, 548), "jtn": (0.849, 522), "latent_gan": (0.849, 496), "char_rnn": (0.849, 470), "vae": (0.849, 444),
}  # fmt: skip


# ------------------------------------------------------------------------------------------------------- claims


def check_table(rows: dict[str, Row], absent: Sequence[str], claims: common.Claims) -> None:
    for model, row in rows.items():
        vs, intdiv = row["vs"] / row["paper_vs"] - 1, row["intdiv"] / row["paper_intdiv"] - 1
        exact = ", to the digit" if round(row["vs"], 2) == row["paper_vs"] else ""
        claims.check(
            f"table, {NAMES[model]}",
            f"{NAMES[model]} has IntDiv {row['paper_intdiv']:.3f} and VS {row['paper_vs']:.1f}.",
            paper=f"{row['paper_intdiv']:.4f}, {row['paper_vs']:.2f} (authors' notebook)",
            holds=max(abs(vs), abs(intdiv)) < REPRODUCED,
            direction=max(abs(vs), abs(intdiv)) < 20 * REPRODUCED,
            measured=f"{row['intdiv']:.4f}, {row['vs']:.2f} ({vs:+.3%}{exact}) of the first {row['n']:,} valid "
            f"molecules, RDKit {rdkit.__version__}; {row['is']}" + spread_text(row),
        )
    if absent:
        claims.not_run(
            "table, other models",
            f"{', '.join(NAMES[model] for model in absent)}: IntDiv and VS as printed.",
            paper="; ".join("{} {:.3f}, {:.1f}".format(NAMES[model], *PAPER[model]) for model in absent),
            why="their samples are not at hand: github.com/molecularsets/moses, data/samples, git lfs pull; then "
            "molecules.py --samples FOLDER, which checks their sha256",
        )
    both = [row for row in rows.values() if row["model"] in ("original", "ngram")]
    if both:
        off = max(abs(row["larger"]["vs"] / row["paper_vs"] - 1) for row in both)
        said = "; ".join(
            f"{NAMES[row['model']]} {row['larger']['vs']:.1f} of {row['larger']['n']:,} and {row['vs']:.1f} of "
            f"{row['n']:,} (printed {row['paper_vs']:.1f})" for row in both
        )  # fmt: skip
        claims.check(
            "table, size", "The numbers are of the first 2,500 valid molecules.",
            paper="2,500 in the text; 1,500 in the authors' notebook",
            holds=off < REPRODUCED, direction=False, measured=said,
        )  # fmt: skip


def spread_text(row: Row) -> str:
    of = row["of_blocks"]
    return f"; {row['blocks']} blocks have {of['vs']['mean']:.1f} ± {of['vs']['sd']:.1f}" if of else ""


def check_original(rows: dict[str, Row], draws: Row, claims: common.Claims) -> None:
    first, least = (
        rows["original"]["vs"],
        min(vs for model, (_, vs) in PAPER.items() if model not in ("original", "hmm")),
    )
    claims.check(
        "table, Original below the models",
        "In the table the original data score lower than every model but the HMM (the text does not speak of it).",
        paper=f"403.9 against {least:.1f} to {max(vs for _, vs in PAPER.values()):.1f}",
        holds=first < least and draws["vs"]["mean"] + 2 * draws["vs"]["sd"] < least,
        direction=first < least,
        measured=f"{first:.1f} of the first rows of the file, where neighbours are alike; {source.DRAWS} random draws "
        f"of as many have {draws['vs']['mean']:.1f} ± {draws['vs']['sd']:.1f}, IntDiv {draws['intdiv']['mean']:.4f}",
    )


def rank(value: float, of: str, others: dict[str, Row]) -> int:
    return 1 + sum(other[of] > value for other in others.values())


def check_hmm(stages: list[Row], rows: dict[str, Row], claims: common.Claims) -> None:
    others = {
        model: rows.get(model, {"intdiv": intdiv, "vs": vs})
        for model, (intdiv, vs) in PAPER.items() if model not in ("original", "hmm")
    }  # fmt: skip
    for stage in stages:
        stage["rank_intdiv"], stage["rank_vs"] = (rank(stage[of], of, others) for of in ("intdiv", "vs"))
    last = [stage for stage in stages if stage["last"]]
    matched = [stage for stage in stages if stage["matched"]]
    published = [rank(sample["intdiv"], "intdiv", others) for sample in PUBLISHED_HMM]
    note = "an HMM fitted here; other models measured where at hand, else as printed"
    claims.check(
        "HMM, VS", "VS ranks the HMM as the least diverse model.", paper="250.9, rank 8 of 8; next 475.3",
        holds=all(stage["rank_vs"] == len(others) + 1 for stage in stages),
        direction=all(stage["rank_vs"] == len(others) + 1 for stage in matched),
        measured=f"VS {each(matched, 'vs', '.1f')} at the published validity, {each(stages, 'vs', '.1f')} at all "
        f"stages: rank {each(stages, 'rank_vs', 'd')} of {len(others) + 1} ({note})",
    )  # fmt: skip
    claims.check(
        "HMM, IntDiv", "IntDiv ranks the HMM among the most diverse models.", paper="0.871, rank 3 of 8",
        holds=all(stage["rank_intdiv"] <= TOP for stage in [*matched, *last]),
        direction=rank(float(np.median([stage["intdiv"] for stage in matched])), "intdiv", others) <= TOP,
        measured=f"IntDiv {each(matched, 'intdiv', '.3f')}, rank {each(matched, 'rank_intdiv', 'd')}, at the published "
        f"validity; {each(last, 'intdiv', '.3f')}, rank {each(last, 'rank_intdiv', 'd')}, after {last[0]['iteration']} "
        f"iterations. Of the three samples that MOSES published, by its own metrics, the paper's third has rank "
        f"{published[2]}, the second {published[1]} and the first {published[0]} "
        f"({PUBLISHED_HMM[0]['intdiv']:.3f})",
    )  # fmt: skip
    alike = rows.get("ngram", rows.get("original", {"unique": 1.0}))["unique"]
    claims.check(
        "HMM, repeats", "The HMM generates clusters of identical molecules.",
        paper="exact duplicates in the figure; 73.6 % of the first 1,000 are different (MOSES)",
        holds=all(stage["unique"] < REPEATS * alike for stage in stages),
        direction=all(stage["unique"] < alike for stage in matched),
        measured=f"different molecules: {each(matched, 'unique', '.0%')} at the published validity, the commonest one "
        f"{each(matched, 'largest_share', '.1%')} of all; N-gram {alike:.0%}",
    )  # fmt: skip


def each(stages: list[Row], key: str, form: str) -> str:
    low, high = (format(f(stage[key] for stage in stages), form) for f in (min, max))
    return low if low == high else f"{low} to {high}"


def check_matrices(matrices: dict[str, Row], hmm: str, claims: common.Claims) -> None:
    ours, data = matrices[hmm], matrices["Original"]
    measured = [
        f"{name} IntDiv {one[which]['intdiv']:.3f}, VS {one[which]['vs']:.1f}"
        for which in ("first in the order", "at random") for name, one in matrices.items()
    ]  # fmt: skip
    half = len(measured) // 2
    alike = [abs(ours[which]["intdiv"] - data[which]["intdiv"]) <= ALIKE for which in ours]
    lower = [ours[which]["vs"] < LOWER * data[which]["vs"] for which in ours]
    claims.check(
        "kernel matrices", "250 molecules have similar IntDiv scores, but those of the HMM score much lower on VS.",
        paper="HMM, AAE, Original (no numbers in the text)",
        holds=all(alike) and all(lower),
        direction=all(ours[which]["vs"] < data[which]["vs"] for which in ours),
        measured=f"first in the order of SMILES: {'; '.join(measured[:half])}. Drawn as they come: "
        f"{'; '.join(measured[half:])} ({'HMM fitted here; ' if 'here' in hmm else ''}similar: within {ALIKE}, much "
        f"lower: below {LOWER:.0%})",
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------- pictures


def in_order(molecules: Sequence[str], count: int) -> dict[str, list[str]]:
    """The authors' notebook takes the first of all in the order of SMILES, the text some that are then sorted."""
    return {"first in the order": sorted(molecules)[:count], "at random": sorted(molecules[:count])}


def draw_matrices(matrices: dict[str, Row], groups: dict[str, dict[str, list[str]]], size: int) -> Figure:
    figure = common.new_figure(3.1 * len(groups) + 0.5, 3.75)
    which = "first in the order"
    axes = figure.subplots(
        1, len(groups), gridspec_kw={"left": 0.02, "right": 0.92, "bottom": 0.03, "top": 0.82}
    )
    for ax, (name, group) in zip(axes, groups.items(), strict=True):
        similarity = KERNEL.similarity(group[which]).dense()
        image = ax.imshow(
            np.round(similarity * 20) / 20, vmin=0, vmax=1, cmap="inferno", interpolation="nearest"
        )
        score = matrices[name][which]
        ax.set(xticks=[], yticks=[], title=f"{name}\nVS {score['vs']:.1f}   IntDiv {score['intdiv']:.3f}")
    bar = figure.colorbar(image, cax=figure.add_axes((0.935, 0.12, 0.012, 0.6)))
    bar.set_label("Tanimoto similarity")
    count = len(next(iter(groups.values()))[which])
    figure.suptitle(
        f"Similarity matrices: the first {count} of {size:,} molecules in the order of SMILES", fontsize=10
    )
    return figure


def draw(rows: dict[str, Row], stages: list[Row], draws: Row | None) -> Figure:
    figure = common.new_figure(12, 5.3)
    left, right = figure.subplots(
        1, 2, gridspec_kw={"width_ratios": [1.4, 1], "left": 0.055, "right": 0.985, "bottom": 0.21, "top": 0.93}
    )  # fmt: skip
    for model, (intdiv, vs) in PAPER.items():
        left.plot(intdiv, vs, "o", markersize=11, markerfacecolor="none", color=common.BLACK, zorder=3)
        arrow = {"arrowstyle": "-", "linewidth": 0.5, "color": common.GREY} if model in PLACES else None
        left.annotate(
            NAMES[model], (intdiv, vs), PLACES.get(model, (intdiv + 0.003, vs)), arrowprops=arrow, fontsize=8,
            ha="right" if model in PLACES else "left", va="center",
        )  # fmt: skip
    for row in rows.values():
        left.plot(row["intdiv"], row["vs"], "o", markersize=7, color=common.SKY, zorder=4)
    if draws is not None:
        left.plot(
            draws["intdiv"]["mean"], draws["vs"]["mean"], "D", markersize=7, color=common.GREEN, zorder=2
        )
    band = [intdiv for model, (intdiv, _) in PAPER.items() if model not in ("original", "hmm")]
    right.axhspan(min(band), max(band), color=BAND, linewidth=0)
    for seed, mark in zip(sorted({stage["seed"] for stage in stages}), "s^vPX<>" * 9, strict=False):
        course = [stage for stage in stages if stage["seed"] == seed]
        for ax, along, up in ((left, "intdiv", "vs"), (right, "validity", "intdiv")):
            x, y = ([stage[of] * (100 if of == "validity" else 1) for stage in course] for of in (along, up))
            ax.plot(x, y, "-", color=common.VERMILLION, linewidth=0.8)
            for place, stage in enumerate(course):
                size = 9 if stage["matched"] else 5
                ax.plot(x[place], y[place], mark, markersize=size, color=common.VERMILLION, zorder=4)
                ax.annotate(
                    str(stage["iteration"]),
                    (x[place], y[place]),
                    (5, 4),
                    textcoords="offset points",
                    fontsize=7,
                )
    for sample in PUBLISHED_HMM:
        at = (100 * sample["validity"], sample["intdiv"])
        right.plot(*at, "o", markersize=11, markerfacecolor="none", color=common.BLACK, zorder=5)
        place, side = ((9, -3), "left") if sample["sample"] == 2 else ((-9, -3), "right")
        said = f"sample {sample['sample']}"
        right.annotate(said, at, place, textcoords="offset points", fontsize=8, ha=side)
    left.set(xlabel="IntDiv", ylabel="Vendi Score", ylim=(0, 590), title="All models: VS against IntDiv")
    right.set(
        xlabel="valid strings of the HMM (%)", ylabel="IntDiv", title="IntDiv of the HMM depends on its fit"
    )
    looks = [
        ("o", common.BLACK, "none", "published"), ("o", common.SKY, None, "here, the first 1,500 valid molecules"),
        ("D", common.GREEN, None, "here, Original drawn at random"),
        ("s", common.VERMILLION, None, "HMMs fitted here, after … iterations (large: at the published validity)"),
    ]  # fmt: skip
    handles: list[Artist] = [
        Line2D([], [], ls="none", marker=mark, markersize=8, color=colour, markerfacecolor=fill or colour, label=text)
        for mark, colour, fill, text in looks
    ]  # fmt: skip
    handles.append(Patch(color=BAND, label="the other models, published"))
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False)
    return figure


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    parser.add_argument("--samples", type=Path, help="folder of MODEL_3.csv files of MOSES")
    parser.add_argument(
        "--rows", type=int, default=10_000, help="molecules that the HMM is fitted to (10,000)"
    )
    parser.add_argument("--states", type=int, default=200, help="states of the HMM (200)")
    parser.add_argument("--iterations", type=int, default=75, help="iterations of its training (75)")
    parser.add_argument("--seeds", type=int, default=3, help="HMMs that are fitted (3)")
    parser.add_argument("--size", type=int, default=source.SIZE, help="molecules of a row; with fewer than 1,500, a "
                        "quick look, nothing is compared with the paper")  # fmt: skip
    options = common.parsed(parser, argv)
    claims, rows, molecules = common.Claims(), {}, {}
    larger, pictured = (n * options.size // source.SIZE for n in (source.TEXT_SIZE, source.PICTURED))
    files = source.sample_files(options)
    for model, path in files.items():
        if source.published(model, path) == source.POINTER:
            print(f"{path.name} is a git-LFS pointer: git lfs pull brings the file")
        else:
            rows[model], molecules[model] = source.table_row(model, path, options.size, larger)
    draws = source.draws_of(files["original"], options.size) if "original" in rows else None
    stages, ours = source.hmm_stages(options, claims)
    shown = {
        "HMM": molecules.get("hmm"), "HMM, fitted here": ours, "AAE": molecules.get("aae"),
        "N-gram": molecules.get("ngram"), "Original": molecules.get("original"),
    }  # fmt: skip
    groups = {name: in_order(some, pictured) for name, some in shown.items() if some}
    matrices = {
        name: {which: source.scores(some) for which, some in group.items()} for name, group in groups.items()
    }
    if options.size == source.SIZE:
        check_table(rows, [model for model in PAPER if model not in rows], claims)
        if draws:
            check_original(rows, draws, claims)
        if stages:
            check_hmm(stages, rows, claims)
        if "Original" in groups and len(groups.keys() & {"HMM", "HMM, fitted here"}):
            check_matrices(matrices, "HMM" if "HMM" in groups else "HMM, fitted here", claims)
    else:
        why = f"the paper has {source.SIZE:,} molecules a row, not {options.size:,}"
        claims.not_run("all", "IntDiv and VS are as printed.", why=why)
    parameters = {
        "kernel": repr(KERNEL), "rdkit": rdkit.__version__, "size": options.size, "pictured": source.PICTURED,
        "hmm": {key: getattr(options, key) for key in ("rows", "states", "iterations", "seeds")},
        "tolerance": REPRODUCED, "draws": source.DRAWS, "among the most diverse": TOP,
    }  # fmt: skip
    results = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, molecule metrics and molecule kernels",
        "parameters": parameters, "rows": list(rows.values()), "original_at_random": draws, "hmm": stages,
        "hmm_published": PUBLISHED_HMM, "matrices": matrices, "claims": claims.records,
    }  # fmt: skip
    extra = {"kernels": draw_matrices(matrices, groups, options.size)} if groups else {}
    common.write(options.out, "molecules", results, draw(rows, stages, draws), extra)
    return 0


if __name__ == "__main__":
    sys.exit(main())
