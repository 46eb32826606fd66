"""Generative models of molecules, Friedman and Dieng, The Vendi Score (TMLR 2023): a table and kernel matrices.

Table: IntDiv and VS of samples of eight MOSES models and of the data, by Tanimoto similarity of Morgan fingerprints
(radius 2, 1,024 bits). Claim: IntDiv ranks the HMM among the most diverse models and VS as the least diverse, since its
molecules are unlike one another on average, but many are identical. Figure: kernel matrices of 250 molecules of the
HMM, the AAE and the data, sorted by SMILES, in which the copies show.

The samples are those that MOSES published, checked by sha256; only the Combinatorial one was made anew (a few fragments
are written otherwise). They are in the data folder, or in that of --samples: MODEL_3.csv or MODEL/MODEL_3.csv, gzipped
or not, and hmm_1.csv and hmm_2.csv, as in data/samples of github.com/molecularsets/moses after `git lfs pull`, and as
plain files in its history before its samples moved to git-LFS (commits 252353c and 7a2e233; Combinatorial is another
one there). The text says the first 2,500 valid molecules, but the numbers are those of the first 1,500, as the authors'
notebook has it. Its loader leaves out the first line of a file, which is a molecule in jtn_3.csv; so does this script.

Reproduced is within 0.05 %. RDKit writes a few fingerprints otherwise than when the paper was written: by RDKit
2022.9.5 all rows are to the digit (but Combinatorial), by today's N-gram is 0.02 % and HMM 0.06 % off, which is too far
for its row: it is reproduced in direction. What is claimed of the HMM is looked at in all three samples that MOSES
published of it, beside the third ones of the other models: reproduced is what all show, reproduced in direction what
the paper's own sample shows, and another does not.

Beyond the paper: HMMs of characters are fitted here, by Baum and Welch's algorithm, to the first 10,000 molecules of
MOSES' training set (MOSES: 100,000, up to 100 iterations), with 200 states as there, and sampled at several stages, to
see whether their ranks depend on how long they were fitted.

Three minutes on one core, less than one once the HMMs are kept in build/experiments. Products in float32 may sum in
another order on other machines: samples of fitted HMMs are then others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import rdkit
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import _common as common
import _molecules as source
from _molecules import HMM_SAMPLES, KERNEL, NAMES, PAPER, PICTURE, Row

REPRODUCED, NEAR = 0.0005, 0.01  # relative
TOP = 3  # of eight models, the rank by IntDiv that the paper calls "among the most diverse"
REPEATS = 0.9  # repeats: fewer different molecules than this share of what any other model has
ALIKE, LOWER = 0.05, 2 / 3  # kernel matrices: how near IntDiv is, and how far below VS
BAND = "#CFE6F5"
FIRST, DRAWN = "first in the order", "as they come"


# ------------------------------------------------------------------------------------------------------- claims


def check_table(rows: dict[str, Row], missing: dict[str, str], claims: common.Claims) -> None:
    for model, (intdiv, vs) in PAPER.items():
        name, claim = f"table, {NAMES[model]}", f"{NAMES[model]} has IntDiv {intdiv:.3f} and VS {vs:.1f}."
        paper = f"{intdiv:.4f}, {vs:.2f} (authors' notebook)"
        if model not in rows:
            claims.not_run(name, claim, paper=paper, why=missing[model])
            continue
        row = rows[model]
        off = row["vs"] / vs - 1
        furthest = max(abs(off), abs(row["intdiv"] / intdiv - 1))
        claims.check(
            name, claim, paper=paper, holds=furthest < REPRODUCED, direction=furthest < NEAR,
            measured=f"{row['intdiv']:.4f}, {row['vs']:.2f} ({off:+.3%}{to_the_digit(row, vs)}) of the first "
            f"{row['n']:,} valid molecules, RDKit {rdkit.__version__}; {row['is']}{spread_text(row)}"
            + first_line_text(row, vs),
        )  # fmt: skip


def to_the_digit(row: Row, vs: float) -> str:
    return ", to the digit" if round(row["vs"], 2) == vs else ""


def spread_text(row: Row) -> str:
    of = row["of_blocks"]
    return f"; {row['blocks']} blocks have {of['vs']['mean']:.1f} ± {of['vs']['sd']:.1f}" if of else ""


def first_line_text(row: Row, vs: float) -> str:
    whole = row["with_first_line"]
    if not whole:
        return ""
    return (
        "; the file has no header, and the authors' loader drops its first line, a molecule: with it "
        f"{whole['intdiv']:.4f}, {whole['vs']:.2f} ({whole['vs'] / vs - 1:+.3%}{to_the_digit(whole, vs)})"
    )


def check_size(rows: dict[str, Row], claims: common.Claims) -> None:
    larger = {model: row["larger"] for model, row in rows.items() if model in PAPER and row["larger"]}
    fewer = [row for model, row in rows.items() if model in PAPER and not row["larger"]]
    if not larger:
        return
    off = [one["vs"] / PAPER[model][1] - 1 for model, one in larger.items()]
    measured = [
        f"{NAMES[model]} {one['vs']:.1f} (printed {PAPER[model][1]:.1f})" for model, one in larger.items()
    ]
    measured += [
        f"{NAMES[row['sample']]} has no more than {row['valid']:,} valid ones in {row['rows']:,} rows"
        for row in fewer
    ]
    claims.check(
        "table, size", "The numbers are of the first 2,500 valid molecules.",
        paper="2,500 in the text; 1,500 in the authors' notebook",
        holds=not fewer and max(abs(one) for one in off) < REPRODUCED, direction=False,
        measured=f"of {source.TEXT_SIZE:,}: {', '.join(measured)}; all rows are of {source.SIZE:,}",
    )  # fmt: skip


def others_of(rows: dict[str, Row]) -> dict[str, Row]:
    """Models besides the HMM: what was measured, or else what is printed."""
    return {
        model: rows.get(model, {"intdiv": intdiv, "vs": vs})
        for model, (intdiv, vs) in PAPER.items() if model not in ("original", "hmm")
    }  # fmt: skip


def check_original(rows: dict[str, Row], draws: Row, claims: common.Claims) -> None:
    found = [other["vs"] for other in others_of(rows).values()]
    first, least = rows["original"]["vs"], min(found)
    claims.check(
        "table, Original below the models",
        "In the table the original data score lower than every model but the HMM (the text does not speak of it).",
        paper=f"403.9 against {least:.1f} to {max(found):.1f}",
        holds=first < least and draws["vs"]["mean"] + 2 * draws["vs"]["sd"] < least,
        direction=first < least,
        measured=f"{first:.1f} of the first rows of the file, where neighbours are alike; {source.DRAWS} random draws "
        f"of as many have {draws['vs']['mean']:.1f} ± {draws['vs']['sd']:.1f}, IntDiv {draws['intdiv']['mean']:.4f}",
    )


def rank(value: float, of: str, others: dict[str, Row]) -> int:
    return 1 + sum(other[of] > value for other in others.values())


def check_hmm(rows: dict[str, Row], missing: dict[str, str], claims: common.Claims) -> None:
    lowest = "HMM, VS", "VS ranks the HMM as the least diverse model."
    high = "HMM, IntDiv", "IntDiv ranks the HMM among the most diverse models."
    repeated = "HMM, repeats", "The HMM generates clusters of identical molecules."
    if "hmm" not in rows:
        for name, claim in (lowest, high, repeated):
            claims.not_run(name, claim, why=missing["hmm"])
        return
    others = others_of(rows)
    samples = {number: rows[name] for number, name in HMM_SAMPLES.items() if name in rows}  # the paper's last
    for row in samples.values():
        row["rank_vs"], row["rank_intdiv"] = (rank(row[of], of, others) for of in ("vs", "intdiv"))
    models = len(others) + 1
    shows = [row["rank_vs"] == models for row in samples.values()]
    claims.check(
        *lowest, paper=f"250.9, rank 8 of {models}; next 475.3", holds=all(shows), direction=shows[-1],
        measured=f"{each(samples, 'VS {vs:.1f}, rank {rank_vs}')}; the next model has "
        f"{min(other['vs'] for other in others.values()):.1f}",
    )  # fmt: skip
    shows = [row["rank_intdiv"] <= TOP for row in samples.values()]
    claims.check(
        *high, paper=f"0.871, rank 3 of {models}", holds=all(shows), direction=shows[-1],
        measured=f"{each(samples, 'IntDiv {intdiv:.3f}, rank {rank_intdiv}')}: among the first {TOP} in "
        f"{sum(shows)} of {len(shows)} samples; the paper's is sample 3",
    )  # fmt: skip
    least = min((other["unique"] for other in others.values() if "unique" in other), default=1.0)
    shows = [row["unique"] < REPEATS * least for row in samples.values()]
    claims.check(
        *repeated, paper="exact duplicates in the figure", holds=all(shows), direction=shows[-1],
        measured=f"{each(samples, '{unique:.0%} are different, {largest_share:.1%} one molecule')}; of every other "
        f"model at least {least:.0%} are different",
    )  # fmt: skip


def each(samples: dict[int, Row], form: str) -> str:
    return "; ".join(f"sample {number}: {form.format(**row)}" for number, row in samples.items())


def check_fitted(stages: list[Row], rows: dict[str, Row], claims: common.Claims) -> None:
    others = others_of(rows)
    for stage in stages:
        stage["rank_vs"], stage["rank_intdiv"] = (rank(stage[of], of, others) for of in ("vs", "intdiv"))
    fits = [
        [one for one in stages if one["seed"] == seed] for seed in sorted({one["seed"] for one in stages})
    ]
    depends, course = [], []
    for fit in fits:
        iterations, intdiv, ranks = (
            [one[of] for one in fit] for of in ("iteration", "intdiv", "rank_intdiv")
        )
        depends.append(min(ranks) <= TOP < max(ranks))
        course.append(
            f"after {', '.join(map(str, iterations))} iterations IntDiv {', '.join(f'{one:.3f}' for one in intdiv)}, "
            f"rank {', '.join(map(str, ranks))}"
        )
    lowest = all(stage["rank_vs"] == len(others) + 1 for stage in stages)
    validity, vs = ([stage[of] for stage in stages] for of in ("validity", "vs"))
    claims.check(
        *source.FITTED, holds=all(depends) and lowest, direction=any(depends) and lowest,
        measured=f"{'; '.join(course)}; VS {min(vs):.1f} to {max(vs):.1f}; of the strings {min(validity):.1%} to "
        f"{max(validity):.1%} are valid",
    )  # fmt: skip


def check_matrices(matrices: dict[str, Row], missing: dict[str, str], claims: common.Claims) -> None:
    numbers = "kernel matrices, numbers", "250 molecules have the VS and IntDiv that the picture prints."
    differ = (
        "kernel matrices",
        "250 molecules have similar IntDiv scores, but those of the HMM score much lower on VS.",
    )
    printed = "; ".join(f"{NAMES[model]} {vs:.1f}, {intdiv:.3f}" for model, (intdiv, vs) in PICTURE.items())
    if len(matrices) < len(PICTURE):
        why = "; ".join(dict.fromkeys(missing[model] for model in PICTURE if model not in matrices))
        for name, claim in (numbers, differ):
            claims.not_run(name, claim, why=why)
        return
    off = [
        max(0.0, abs(one[FIRST][of] - value) - half) / value
        for model, one in matrices.items()
        for of, value, half in zip(("intdiv", "vs"), PICTURE[model], (0.0005, 0.05), strict=True)
    ]
    ours, theirs = matrices["hmm"], [matrices["aae"], matrices["original"]]
    claims.check(
        *numbers, paper=f"{printed} (the picture of the authors' notebook; the text has none)",
        holds=max(off) < REPRODUCED, direction=max(off) < NEAR,
        measured=f"{each_model(matrices, FIRST)}, RDKit {rdkit.__version__}; of the first {source.PICTURED} of "
        f"{source.SIZE:,} in the order of SMILES, as the notebook has them (beyond its last digit at most "
        f"{max(off):.2%} off)",
    )  # fmt: skip
    alike = [abs(ours[way]["intdiv"] - other[way]["intdiv"]) <= ALIKE for way in ours for other in theirs]
    lower = [ours[way]["vs"] / other[way]["vs"] for way in ours for other in theirs]
    claims.check(
        *differ, paper="HMM, AAE, Original",
        holds=all(alike) and max(lower) < LOWER, direction=max(lower) < 1,
        measured=f"first in the order of SMILES: {each_model(matrices, FIRST)}. As they come: "
        f"{each_model(matrices, DRAWN)} (similar: within {ALIKE}; much lower: below {LOWER:.0%})",
    )  # fmt: skip


def each_model(matrices: dict[str, Row], way: str) -> str:
    return "; ".join(
        f"{NAMES[model]} VS {one[way]['vs']:.2f}, IntDiv {one[way]['intdiv']:.3f}"
        for model, one in matrices.items()
    )


# ----------------------------------------------------------------------------------------------------- pictures


def in_order(molecules: Sequence[str], count: int) -> dict[str, list[str]]:
    """The authors' notebook takes the first of all in the order of SMILES, the text some that are then sorted."""
    return {FIRST: sorted(molecules)[:count], DRAWN: sorted(molecules[:count])}


def draw_matrices(matrices: dict[str, Row], groups: dict[str, dict[str, list[str]]], size: int) -> Figure:
    figure = common.new_figure(3.1 * len(groups) + 0.5, 3.95)
    axes = figure.subplots(
        1, len(groups), squeeze=False, gridspec_kw={"left": 0.02, "right": 0.92, "bottom": 0.03, "top": 0.78}
    )  # fmt: skip
    for ax, (model, group) in zip(axes[0], groups.items(), strict=True):
        similarity = KERNEL.similarity(group[FIRST]).dense()
        ax.imshow(np.round(similarity * 20) / 20, vmin=0, vmax=1, cmap="inferno", interpolation="nearest")
        score, (intdiv, vs) = matrices[model][FIRST], PICTURE[model]
        ax.set(xticks=[], yticks=[], title=f"{NAMES[model]}\nhere: VS {score['vs']:.1f}, IntDiv {score['intdiv']:.3f}\n"
               f"notebook: VS {vs:.1f}, IntDiv {intdiv:.3f}")  # fmt: skip
    bar = figure.colorbar(axes[0, 0].images[0], cax=figure.add_axes((0.935, 0.12, 0.012, 0.56)))
    bar.set_label("Tanimoto similarity")
    count = len(next(iter(groups.values()))[FIRST])
    figure.suptitle(
        f"Similarity matrices: the first {count} of {size:,} molecules in the order of SMILES", fontsize=10
    )
    return figure


def draw(rows: dict[str, Row], stages: list[Row], draws: Row | None) -> Figure:
    figure = common.new_figure(12, 4.6)
    axes = figure.subplots(
        1, 3, gridspec_kw={"width_ratios": [1.2, 1, 1], "left": 0.115, "right": 0.985, "bottom": 0.24, "top": 0.92}
    )  # fmt: skip
    order = [
        "original",
        *sorted((set(PAPER) - {"original"}), key=lambda model: -PAPER[model][1]),
        "hmm_2",
        "hmm_1",
    ]
    names = NAMES | {name: f"HMM, sample {number}" for number, name in HMM_SAMPLES.items()}
    printed = {"mfc": "none", "color": common.BLACK, "ms": 11, "zorder": 3}
    for ax, of, at in ((axes[0], "vs", 1), (axes[1], "intdiv", 0)):
        for y, sample in enumerate(order):
            if sample in PAPER:
                ax.plot(PAPER[sample][at], y, "o", **printed)
            if sample in rows:
                ax.plot(rows[sample][of], y, "o", ms=6, color=common.SKY, zorder=4)
            if of == "vs" and sample in rows and rows[sample]["larger"]:
                ax.plot(rows[sample]["larger"][of], y, "|", ms=10, mew=2, color=common.GREY)
        ax.grid(axis="y", linewidth=0.4, color="#DDDDDD")
        ax.set_yticks(range(len(order)), [names[sample] for sample in order] if at else [""] * len(order))
        ax.set_ylim(len(order) - 0.5, -0.5)
    if draws is not None:
        axes[0].plot(draws["vs"]["mean"], 0, "D", ms=6, color=common.GREEN)
    axes[0].set(xlabel="Vendi Score", xlim=(0, None), title="VS of all samples")
    axes[1].set(xlabel="IntDiv", title="IntDiv of all samples")
    others = others_of(rows).values()
    band = [other["intdiv"] for other in others]
    axes[2].axhspan(min(band), max(band), color=BAND, linewidth=0)
    for seed, mark in zip(sorted({stage["seed"] for stage in stages}), "s^vPX<>" * 9, strict=False):
        course = [stage for stage in stages if stage["seed"] == seed]
        along = [[100 * stage["validity"] for stage in course], [stage["intdiv"] for stage in course]]
        axes[2].plot(*along, "-", marker=mark, markersize=6, color=common.VERMILLION, linewidth=0.8)
    for number, name in HMM_SAMPLES.items():
        if name in rows and "valid" in rows[name]:
            x, y = 100 * rows[name]["valid"] / rows[name]["rows"], rows[name]["intdiv"]
            axes[2].plot(x, y, "o", ms=6, color=common.SKY, zorder=4)
            place, side = ((8, -3), "left") if number == 2 else ((-8, -3), "right")
            axes[2].annotate(
                f"sample {number}", (x, y), place, textcoords="offset points", fontsize=8, ha=side
            )
    axes[2].set(
        xlabel="valid strings of the HMM (%)",
        ylabel="IntDiv",
        title="IntDiv of HMMs, by how long they were fitted",
    )
    steps = sorted({stage["iteration"] for stage in stages})
    looks = [
        ("o", {"mfc": "none", "color": common.BLACK, "ms": 9}, "printed"),
        ("o", {"color": common.SKY}, "here, the first 1,500 valid molecules of a published sample"),
        ("|", {"color": common.GREY, "ms": 10, "mew": 2}, "here, the first 2,500"),
        ("D", {"color": common.GREEN}, "here, 1,500 of the original at random"),
        (
            "s",
            {"color": common.VERMILLION},
            f"HMMs fitted here: {', '.join(map(str, steps))} iterations, from the top left",
        ),
    ]
    handles = [Line2D([], [], ls="none", marker=mark, label=text, **look) for mark, look, text in looks]
    figure.legend(
        handles=[*handles, Patch(color=BAND, label="IntDiv of the other models")],
        loc="lower center",
        ncols=3,
        frameon=False,
    )
    return figure


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    parser.add_argument(
        "--samples", type=Path, help="folder of MODEL_3.csv or MODEL/MODEL_3.csv, as data/samples of MOSES"
    )
    parser.add_argument(
        "--rows", type=int, default=10_000, help="molecules that an HMM is fitted to (10,000)"
    )
    parser.add_argument("--states", type=int, default=200, help="states of the HMMs (200)")
    parser.add_argument("--iterations", type=int, default=50, help="iterations of their training (50)")
    parser.add_argument("--seeds", type=int, default=3, help="HMMs that are fitted (3)")
    parser.add_argument("--size", type=int, default=source.SIZE, help="molecules of a row; with fewer than 1,500, a "
                        "quick look, nothing is compared with the paper")  # fmt: skip
    options = common.parsed(parser, argv)
    claims, rows, molecules, missing = common.Claims(), {}, {}, {}
    larger, pictured = (n * options.size // source.SIZE for n in (source.TEXT_SIZE, source.PICTURED))
    files = source.sample_files(options)
    if options.samples is not None and not any(options.samples in path.parents for path in files.values()):
        parser.error(
            f"--samples {options.samples}: there is no sample; expected files such as aae_3.csv or aae/aae_3.csv"
        )
    for sample in source.SHA256:
        try:
            if sample not in files:
                raise common.Missing(f"the sample is not there: {source.WHERE}")
            rows[sample], molecules[sample] = source.table_row(sample, files[sample], options.size, larger)
        except common.Missing as error:
            missing[sample] = str(error)
            print(f"{sample}: {error}")
    draws = source.draws_of(files["original"], options.size) if "original" in rows else None
    stages = source.hmm_stages(options, claims)
    groups = {model: in_order(molecules[model], pictured) for model in PICTURE if model in molecules}
    matrices = {
        model: {way: source.scores(some) for way, some in group.items()} for model, group in groups.items()
    }
    if options.size == source.SIZE:
        check_table(rows, missing, claims)
        check_size(rows, claims)
        if draws:
            check_original(rows, draws, claims)
        check_hmm(rows, missing, claims)
        check_matrices(matrices, missing, claims)
        if stages:
            check_fitted(stages, rows, claims)
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
        "parameters": parameters, "rows": list(rows.values()), "original_at_random": draws, "fitted": stages,
        "matrices": matrices, "claims": claims.records,
    }  # fmt: skip
    extra = {"kernels": draw_matrices(matrices, groups, options.size)} if groups else {}
    common.write(options.out, "molecules", results, draw(rows, stages, draws), extra)
    return 0


if __name__ == "__main__":
    sys.exit(main())
