"""Decoders of Friedman and Dieng, The Vendi Score (TMLR 2023): the table of captions, from a small model trained here.

The table scores five captions of an image by beam search, by diverse beam search (DBS) with three penalties γ, and by
people, and averages over images. Claims: every metric of diversity ranks beam search lowest and people highest, and DBS
between them, higher with γ; quality, by BLEU against what people wrote, falls with γ; of five
captions by beam search three are effectively distinct.

The paper's model, vit-gpt2-coco-en-ckpts of ydshieh on Hugging Face, and its captions are not at hand. In its place
`decoders_train.py` trains a transformer on COCO's captions that reads one caption of an image and writes five others,
and this script scores them: five trainings, 750 images that none of them was trained on. BLEU is against the captions
that people wrote, without the one that was read. Texts are split into words in lower case, which is what the model
writes; the kernel is the average of k₁ … k₄, and BLEU beside it.

Besides: samples at three temperatures; and the index of Leinster and Cobbold of order 1 in place of VS, because the
table's column is headed D₁ᴷ, which is how they write it, and that of people's captions is 3.12 to two digits.

    decoders.py --texts FOLDER     what decoders_train.py wrote: seed-0/beam.jsonl, dbs_0.2.jsonl …, seed-1/ …

Lines are {"image_id": …, "captions": [five texts]}, with the "source" that was read where there is one: captions of
another model are scored in the same way. Without them nothing is written: the results of before stay. Half a minute.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import _common as common
import vendimeter as vm
from _captions import FITS, METRICS, PAPER, TEXT, WORDS, Groups, Row, mean_of, metrics_of
from vendimeter.kernels import NGram

CAPTIONS = 5  # of an image; 13 images have more
COLUMNS = METRICS | {"Leinster–Cobbold, order 1": "leinster_cobbold"}
BOTH_ENDS = 0.02  # relative: how near a reading has to be at both ends of the table's column
Runs = list[dict[str, Row]]  # a row for each decoder, for each training


# ------------------------------------------------------------------------------------------------------ numbers


def row_of(groups: Groups, references: Groups | None = None) -> Row:
    index = [vm.metrics.leinster_cobbold(group, NGram(1, 4), q=1) for group in groups]
    return metrics_of(groups, WORDS, references) | {"leinster_cobbold": mean_of(np.array(index))}


def penalty_of(decoder: str) -> float:
    """The number in a decoder's name: the penalty or the temperature."""
    numbers = re.findall(r"\d+(?:\.\d+)?", decoder)
    return float(numbers[-1]) if numbers else 0.0


def read_run(folder: Path, written: dict[str, list[str]]) -> tuple[dict[str, Row], list[str]]:
    """The rows of a training, beam search first and samples last, and the images that were captioned."""
    rows: dict[str, Row] = {}
    images: list[str] = []
    place = {"beam": 0, "dbs": 1, "sampling": 2}
    files = [file for file in folder.glob("*.jsonl") if file.stem.split("_")[0] in place]
    for file in sorted(files, key=lambda file: (place[file.stem.split("_")[0]], penalty_of(file.stem))):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        unknown = [line["image_id"] for line in lines if str(line["image_id"]) not in written]
        if unknown:
            raise SystemExit(f"--texts: {file.name}: image {unknown[0]} is not one of COCO val2017")
        references = [
            [text for text in written[str(line["image_id"])] if text != line.get("source")] for line in lines
        ]
        rows[file.stem] = row_of([line["captions"] for line in lines], references)
        images = images or [str(line["image_id"]) for line in lines]
        if images != [str(line["image_id"]) for line in lines]:
            raise SystemExit(f"--texts: {file.name} has other images than the files before it")
    return rows, images


def runs_of(folder: Path, written: dict[str, list[str]]) -> tuple[Runs, list[Row], list[str]]:
    """Rows by training, what is known of the trainings, and the images."""
    runs, trainings, images = [], [], []
    for part in sorted(folder.glob("seed-*"), key=lambda part: penalty_of(part.name)) or [folder]:
        rows, captioned = read_run(part, written)
        if not {"beam"} < set(rows):
            raise common.Missing(f"--texts: {part.name} has no beam.jsonl beside dbs_….jsonl")
        if runs and (captioned != images or list(rows) != list(runs[0])):
            raise SystemExit(f"--texts: {part.name} has other images or decoders than the folders before it")
        runs.append(rows)
        images = captioned
        known = part / "run.json"
        if known.exists():
            training = json.loads(known.read_text(encoding="utf-8"))
            trainings.append(
                {key: training[key] for key in ("seed", "epoch", "perplexity", "parameters", "words")}
            )
    return runs, trainings, images


def means(runs: Runs, key: str, decoders: Sequence[str]) -> np.ndarray:
    """A metric by training (rows) and decoder (columns)."""
    return np.array([[rows[name][key]["mean"] for name in decoders] for rows in runs])


def spread(values: np.ndarray) -> str:
    """The mean over trainings of each decoder, and the least and the greatest where there are several."""
    ends = zip(values.mean(0), values.min(0), values.max(0), strict=True)
    if len(values) == 1:
        return ", ".join(f"{mean:.2f}" for mean, _, _ in ends)
    return ", ".join(f"{mean:.2f} ({low:.2f}–{high:.2f})" for mean, low, high in ends)


# ------------------------------------------------------------------------------------------------------- claims


def check_order(runs: Runs, human: Row, searches: list[str], claims: common.Claims) -> None:
    holds, direction, said = [], [], []
    for name, key in METRICS.items():
        values = means(runs, key, searches)
        people = human[key]["mean"]
        holds += [common.rising([*row, people]) for row in values]
        average = [*values.mean(0), people]
        direction.append(average[0] < min(average[1:]) and people > max(average[:-1]))
        said.append(f"{name} {spread(values)}; {people:.2f}")
    claims.check(
        "table, decoders",
        "All diversity metrics rank beam search lowest, human captions highest, diverse beam search between them, and "
        "there they increase with the penalty.",
        holds=all(holds), direction=all(direction),
        paper="n-gram diversity, VS: " + "; ".join(f"{name} {d}, {vs}" for name, (d, vs, _) in PAPER.items()),
        measured=f"{', '.join(searches)}; human: " + ". ".join(said)
        + f". So ordered by {sum(holds)} of {len(holds)}: {len(METRICS)} metrics, {len(runs)} trainings",
    )  # fmt: skip


def check_quality(runs: Runs, searches: list[str], claims: common.Claims) -> None:
    values = np.array([[rows[name]["bleu"] for name in searches] for rows in runs])
    falling = [common.rising(-row) for row in values]
    claims.check(
        "table, quality",
        "A higher penalty leads to a lower quality, by BLEU.",
        holds=all(falling), direction=values.mean(0)[-1] < values.mean(0)[0],
        paper="; ".join(f"{name} {bleu}" for name, (_, _, bleu) in PAPER.items() if bleu),
        measured=f"{', '.join(searches)}: {spread(values)}; it falls all the way in {sum(falling)} of {len(runs)}",
    )  # fmt: skip


def check_column(runs: Runs, human: Row, searches: list[str], claims: common.Claims) -> None:
    """Whether one formula gives both ends of the table's column: beam search and people."""
    ends = PAPER["beam search"][1], PAPER["human"][1]
    said, near = [], {}
    for name, key in COLUMNS.items():
        if key == "ngram_diversity":
            continue
        least, most = float(means(runs, key, searches[:1]).mean()), human[key]["mean"]
        said.append(f"{name} {least:.2f} and {most:.2f}")
        near[name] = max(abs(least - ends[0]) / ends[0], abs(most - ends[1]) / ends[1])
    diversities = float(means(runs, "ngram_diversity", searches[:1]).mean()), human["ngram_diversity"]["mean"]
    nearest = min(near, key=near.__getitem__)
    off = near[nearest]
    claims.check(
        "table, column",
        f"The column of the table is VS: {ends[0]} for beam search, {ends[1]} for people.",
        holds=off <= BOTH_ENDS, direction=off <= 0.1,
        paper=f"{ends[0]} and {ends[1]}; n-gram diversity {PAPER['beam search'][0]} and "
        f"{PAPER['human'][0]}",
        measured=f"{', '.join(said)}; n-gram diversity {diversities[0]:.2f} and {diversities[1]:.2f}. Nearest at both "
        f"ends is {nearest}, off by {off:.0%}" + (": none of them gives both" if off > BOTH_ENDS else ""),
    )  # fmt: skip


def check_distinct(runs: Runs, human: Row, searches: list[str], claims: common.Claims) -> None:
    """What the text says of the two ends: their numbers are not those of the table."""
    ends = {
        name: (float(means(runs, key, searches[:1]).mean()), human[key]["mean"])
        for name, key in METRICS.items() if name.startswith("VS")
    }  # fmt: skip
    three = {name: round(least) == 3 for name, (least, _) in ends.items()}
    both = [name for name, (_, most) in ends.items() if three[name] and abs(most - TEXT) <= FITS]
    claims.check(
        "text, distinct captions",
        f"Of five captions beam search returns effectively three distinct ones, and people nearly five ({TEXT}).",
        holds=bool(both), direction=any(three.values()),
        paper=f"three and {TEXT} in the text; {PAPER['beam search'][1]} and {PAPER['human'][1]} in the table",
        measured="; ".join(f"{name} {least:.2f} and {most:.2f}" for name, (least, most) in ends.items())
        + f". Both numbers of the text {'by ' + ' and '.join(both) if both else 'by neither'}",
    )  # fmt: skip


def check_penalties(runs: Runs, searches: list[str], claims: common.Claims) -> None:
    claims.not_run(
        "table, penalties",
        "The penalty γ takes three values.",
        paper="0.2, 0.5 and 0.5 in the table; 0.2, 0.6 and 0.8 in the text",
        why="which γ its rows have cannot be told from the table: two rows with one γ would have the same numbers, and "
        f"theirs differ, n-gram diversity {PAPER['DBS, γ 0.5'][0]} and {PAPER['DBS, second γ 0.5'][0]}. Ours, by "
        + ", ".join(searches)
        + f": {spread(means(runs, 'ngram_diversity', searches))}",
    )


def check_sampling(runs: Runs, human: Row, samplings: list[str], claims: common.Claims) -> None:
    values = {name: means(runs, key, samplings) for name, key in METRICS.items()}
    risen = [common.rising(row) for found in values.values() for row in found]
    bleus = np.array([[rows[name]["bleu"] for name in samplings] for rows in runs])
    above = {
        name: bool((found[:, -1] > human[METRICS[name]]["mean"]).all()) for name, found in values.items()
    }
    claims.check(
        "sampling",
        "Samples are the more diverse, and the farther from what people wrote, the higher the temperature.",
        holds=all(risen) and all(common.rising(-row) for row in bleus),
        direction=all(common.rising(found.mean(0)) for found in values.values()),
        measured=f"{', '.join(samplings)}: "
        + "; ".join(f"{name} {spread(found)}" for name, found in values.items())
        + f"; BLEU {spread(bleus)}. At the highest temperature every training is above people by "
        + (", ".join(name for name, found in above.items() if found) or "none of them")
        + (": diversity alone is not quality" if any(above.values()) else ""),
    )


# ------------------------------------------------------------------------------------------------------ picture

LOOKS = {"beam": (common.BLACK, "s"), "dbs": (common.VS_COLOUR, "o"), "sampling": (common.GREEN, "^")}
LABELS = {
    "beam": "beam search",
    "dbs": "diverse beam search, γ beside",
    "sampling": "samples, temperature beside",
}


def draw(results: Row) -> Figure:
    figure = common.new_figure(13, 4.9)
    cells = figure.add_gridspec(1, 2, left=0.05, right=0.985, top=0.85, bottom=0.11, wspace=0.16)
    draw_diversities(figure.add_subplot(cells[0]), results)
    draw_quality(figure.add_subplot(cells[1]), results)
    title = (
        f"Captions by decoder: {len(results['runs'])} trainings of a small model, beside the paper's table"
    )
    figure.text(0.012, 0.945, title, fontsize=12, fontweight="bold")
    return figure


def draw_diversities(ax: Axes, results: Row) -> None:
    runs, human = results["runs"], results["human"]
    for kind, (colour, marker) in LOOKS.items():
        names = [name for name in runs[0] if name.startswith(kind)]
        x, y = means(runs, "ngram_diversity", names), means(runs, "vs_ngram", names)
        ax.plot(x.T, y.T, color=colour, linewidth=0.5, alpha=0.6)
        ax.plot(x.ravel(), y.ravel(), marker, color=colour, markersize=5, linestyle="", label=LABELS[kind])
        for name, one, two in zip(names, x.mean(0), y.mean(0), strict=True):
            if kind != "beam":
                ax.annotate(
                    f"{penalty_of(name):g}", (one, two), (5, -10), textcoords="offset points", fontsize=7
                )
        other = means(runs, "leinster_cobbold", names)
        ax.plot(x.ravel(), other.ravel(), "x", color=common.GREY, markersize=5,
                label="the same, Leinster–Cobbold of order 1" if kind == "beam" else "_")  # fmt: skip
    ax.plot(human["ngram_diversity"]["mean"], human["vs_ngram"]["mean"], "*", color=common.VERMILLION, markersize=12,
            label="people")  # fmt: skip
    ax.plot(human["ngram_diversity"]["mean"], human["leinster_cobbold"]["mean"], "x", color=common.VERMILLION,
            label="people, Leinster–Cobbold of order 1")  # fmt: skip
    ax.plot([d for d, _, _ in PAPER.values()], [vs for _, vs, _ in PAPER.values()], "D", color=common.PURPLE,
            linestyle=":", markersize=5, label="the paper's table: beam search, DBS, people")  # fmt: skip
    ax.set(xlabel="mean n-gram diversity", ylabel="mean VS (average of k₁ … k₄)", ylim=(1, 5.6),
           title="VS against n-gram diversity")  # fmt: skip
    ax.legend(loc="upper left", frameon=False)


def draw_quality(ax: Axes, results: Row) -> None:
    runs = results["runs"]
    for kind, (colour, marker) in LOOKS.items():
        names = [name for name in runs[0] if name.startswith(kind)]
        x = means(runs, "vs_ngram", names)
        y = np.array([[rows[name]["bleu"] for name in names] for rows in runs])
        ax.plot(x.T, y.T, color=colour, linewidth=0.5, alpha=0.6)
        ax.plot(x.ravel(), y.ravel(), marker, color=colour, markersize=5, linestyle="")
    ax.axvline(results["human"]["vs_ngram"]["mean"], color=common.VERMILLION, linestyle="--", linewidth=1)
    ax.text(results["human"]["vs_ngram"]["mean"] - 0.02, ax.get_ylim()[1], "people", ha="right", va="top",
            color=common.VERMILLION)  # fmt: skip
    ax.set(xlabel="mean VS", ylabel="BLEU", title="Quality against VS")


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    parser.add_argument("--texts", type=Path, default=common.GALLERIES / "decoders",
                        help="folder of captions by decoders (build/experiments/decoders)")  # fmt: skip
    options = common.parsed(parser, argv)
    try:
        file = common.file_of(
            options, "text/coco_val2017_captions.jsonl.gz", "captions_val2017 of COCO, as lines"
        )
        read = vm.read(file, samples="captions", label="image_id")
        written = {
            str(image): list(texts[:CAPTIONS]) for image, texts in zip(read.labels, read.samples, strict=True)
        }
        runs, trainings, images = runs_of(options.texts, written)
    except common.Missing as missing:
        print(
            f"{missing}\nCaptions are made by decoders_train.py. Nothing was written; the results of before stay."
        )
        return 0
    claims = common.Claims()
    searches = [name for name in runs[0] if not name.startswith("sampling")]
    samplings = [name for name in runs[0] if name.startswith("sampling")]
    human = row_of([written[image] for image in images])
    check_order(runs, human, searches, claims)
    check_quality(runs, searches, claims)
    check_column(runs, human, searches, claims)
    check_distinct(runs, human, searches, claims)
    check_penalties(runs, searches, claims)
    if samplings:
        check_sampling(runs, human, samplings, claims)
    results = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, Table of caption diversity: decoders",
        "parameters": {"images": len(images), "captions": CAPTIONS, "kernel": "average of k₁ … k₄, words, lower case"},
        "paper": {name: {"ngram_diversity": d, "vs": vs, "bleu": bleu} for name, (d, vs, bleu) in PAPER.items()},
        "trainings": trainings, "human": human, "runs": runs, "claims": claims.records,
    }  # fmt: skip
    common.write(options.out, "decoders", results, draw(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
