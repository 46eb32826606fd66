"""Mode dropping, Friedman and Dieng, The Vendi Score (TMLR 2023), appendix: a score of 1 to 10 classes.

500 items are drawn uniformly from the first i classes, i = 1 … 10, and scored by VS and IntDiv. Claims:

- VS generally increases with the number of classes, and has a stronger correlation with it than IntDiv has;
- MNIST (cosine of pixels): VS increases roughly linearly for the first six digits (0 to 5), and then fluctuates;
- MultiNLI (average of the n-gram kernels k₁ … k₄): VS increases monotonically with the number of genres.

The paper draws one sample of each, in one order of classes. Here 20 samples are drawn in that order (MNIST's test set,
in the order of digits), and one sample in each of 100 random orders, which shows how much the order does.

MultiNLI with genres is not at hand: the file of the data folder has none. XNLI stands in, whose premises were collected
in the same ten genres: other sentences, 250 of each genre, so that 250 are drawn each time (all there are of the first
genre: that point has no spread), and the claims on text can be reproduced in direction at best. For the paper's own:

    mode_dropping.py --multinli multinli_1.0_dev_matched.jsonl multinli_1.0_dev_mismatched.jsonl

(cims.nyu.edu/~sbowman/multinli, or the parquet files of nyu-mll/multi_nli on Hugging Face). The paper says that the
mismatched part has ten genres. It has five, and the matched part the other five, as the number of premises in the data
folder's copy of that part shows: the authors' notebook takes both, and the genres in alphabetical order, of which the
first, facetoface, scores lowest of all. It prints correlations of VS and IntDiv with the number of genres: Spearman
1.000 and 0.939, but Pearson 0.896 and 0.926.

Takes a minute; --orders 20 a quarter of that.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
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
ITEMS, CLASSES = 500, 10
ITEMS_OF_XNLI = 250  # as many premises as a genre has
REPEATS, ORDERS = 20, 100
LINEAR = 0.9  # of the variance: what counts as roughly linear
PIXELS, NGRAMS = vm.kernels.Cosine(), vm.kernels.NGram(1, 4)
COUNTS = np.arange(1, CLASSES + 1)

# Printed in the authors' notebook, of MultiNLI.
PEARSON = {"vs": 0.896, "intdiv": 0.926}
NOTEBOOK = (
    f"stronger for VS; the authors' notebook: Pearson {PEARSON['vs']} for VS, {PEARSON['intdiv']} for IntDiv; Spearman "
    "1.000 and 0.939"
)

Row = dict[str, Any]
Data = Mapping[Any, Any]


# ------------------------------------------------------------------------------------------------------ numbers


def mnist(options: argparse.Namespace) -> Data:
    """Pixels as fractions from 0 to 1, by digit."""
    file = common.file_of(options, "images/mnist_test.npz", "images and labels of MNIST's test set")
    with np.load(file) as held:
        images, labels = held["images"], held["labels"]
    flat = images.reshape(len(images), -1) / 255
    return {int(digit): flat[labels == digit] for digit in np.unique(labels)}


def drawn(data: Data, classes: Sequence[Any], rng: np.random.Generator, items: int) -> Any:
    """So many items in equal parts from the classes, to within one."""
    sizes = np.full(len(classes), items // len(classes))
    sizes[rng.permutation(len(classes))[: items - sizes.sum()]] += 1
    parts = []
    for name, size in zip(classes, sizes, strict=True):
        chosen = rng.choice(len(data[name]), size, replace=False)
        parts.append([data[name][i] for i in chosen])
    items_drawn = [item for part in parts for item in part]
    return items_drawn if isinstance(items_drawn[0], str) else np.array(items_drawn)


def curve(
    data: Data, order: Sequence[Any], kernel: vm.kernels.Kernel, seed: Sequence[int], items: int
) -> np.ndarray:
    """VS (row 0) and IntDiv (row 1) of items of the first 1, 2, … classes."""
    found = np.empty((2, len(order)))
    for i in range(len(order)):
        samples = drawn(data, order[: i + 1], np.random.default_rng([*seed, i]), items)
        found[:, i] = float(vm.score(samples, kernel)), float(vm.metrics.intdiv(samples, kernel))
    return found


def correlations(curves: np.ndarray) -> np.ndarray:
    """Correlations with the number of classes: curve by (VS, IntDiv) by (Pearson, Spearman)."""
    return np.array([
        [[stats.pearsonr(COUNTS, values).statistic, stats.spearmanr(COUNTS, values).statistic] for values in pair]
        for pair in curves
    ])  # fmt: skip


def rounded(values: Any, digits: int = 4) -> Any:
    return np.round(np.asarray(values, dtype=float), digits).tolist()


def experiment(
    data: Data, kernel: vm.kernels.Kernel, seed: int, items: int, options: argparse.Namespace
) -> Row:
    names = list(data)
    order = names[:CLASSES]
    given = np.array([curve(data, order, kernel, [SEED, seed, 0, r], items) for r in range(options.repeats)])
    shuffles = np.random.default_rng([SEED, seed, 1])
    orders = [[names[i] for i in shuffles.permutation(len(names))[:CLASSES]] for _ in range(options.orders)]
    random = np.array([curve(data, own, kernel, [SEED, seed, 2, r], items) for r, own in enumerate(orders)])
    alone = {str(name): curve(data, [name], kernel, [SEED, seed, 3], items)[:, 0] for name in names}
    of_given, of_random = correlations(given), correlations(random)
    of_means = correlations(given.mean(axis=0)[None])[0]
    ahead = (of_random[:, 0] >= of_random[:, 1] - 1e-9).mean(axis=0)
    return {
        "items": items,
        "classes": [str(name) for name in order],
        "alone": {name: {"vs": round(float(vs), 3), "intdiv": round(float(i), 4)} for name, (vs, i) in alone.items()},
        "given": {
            "vs": {"mean": rounded(given[:, 0].mean(axis=0)), "sd": rounded(given[:, 0].std(axis=0, ddof=1))},
            "intdiv": {"mean": rounded(given[:, 1].mean(axis=0), 5), "sd": rounded(given[:, 1].std(axis=0, ddof=1), 5)},
            "pearson": correlated(of_given[:, :, 0], of_means[:, 0]),
            "spearman": correlated(of_given[:, :, 1], of_means[:, 1]),
            "monotone": float(np.mean([common.rising(values) for values in given[:, 0]])),
        },
        "shuffled": {
            "orders": len(orders),
            "vs": {"mean": rounded(random[:, 0].mean(axis=0)), "sd": rounded(random[:, 0].std(axis=0, ddof=1))},
            "intdiv": {"mean": rounded(random[:, 1].mean(axis=0), 5),
                       "sd": rounded(random[:, 1].std(axis=0, ddof=1), 5)},
            "pearson": correlated(of_random[:, :, 0]),
            "spearman": correlated(of_random[:, :, 1]),
            "vs_ahead": {"pearson": round(float(ahead[0]), 3), "spearman": round(float(ahead[1]), 3)},
            "positive": round(float((of_random[:, 0, 1] > 0).mean()), 3),
            "each_pearson": rounded(of_random[:, :, 0], 3),
        },
    }  # fmt: skip


def correlated(values: np.ndarray, of_means: np.ndarray | None = None) -> Row:
    found: Row = {}
    for place, name in enumerate(["vs", "intdiv"]):
        column = values[:, place]
        found[name] = {"mean": round(float(column.mean()), 4), "sd": round(float(column.std(ddof=1)), 4)}
        if of_means is not None:
            found[name]["of_means"] = round(float(of_means[place]), 4)
    return found


# ------------------------------------------------------------------------------------------------------- claims


def listed(values: Sequence[float] | np.ndarray, digits: int = 1) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


def check_digits(row: Row, repeats: int, claims: common.Claims) -> None:
    vs, sd = (np.array(row["given"]["vs"][key]) for key in ("mean", "sd"))
    first, later = vs[:6], vs[5:]
    explained = float(stats.pearsonr(COUNTS[:6], first).statistic ** 2)
    claims.check(
        "MNIST, first six digits", "VS increases roughly linearly for the first six digits (0 to 5).",
        holds=common.rising(first) and explained >= LINEAR, direction=common.rising(first), paper="a curve, no numbers",
        measured=f"VS {listed(first)}: a line explains {explained:.1%} of the variance ({LINEAR:.0%} counts as roughly "
        f"linear); the digits add {listed(np.diff(first))}",
    )  # fmt: skip
    falls = np.diff(later) < -2 * np.hypot(sd[5:-1], sd[6:]) / np.sqrt(repeats)
    spread = float(np.ptp(later) / (first[-1] - first[0]))
    claims.check(
        "MNIST, after six", "With more digits VS then fluctuates.", paper="a curve, no numbers",
        holds=bool(falls.any()) and spread < 0.25, direction=spread < 0.5,
        measured=f"VS {listed(later)} with 6 to 10 digits: {falls.sum()} of four steps fall by more than two standard "
        f"errors, and all stay within {spread:.0%} of the rise before",
    )  # fmt: skip


def check_texts(title: str, row: Row, real: bool, claims: common.Claims) -> None:
    vs, share = row["given"]["vs"]["mean"], row["given"]["monotone"]
    ranks = row["given"]["spearman"]["vs"]["of_means"]
    claims.check(
        f"{title}, monotone",
        "VS increases monotonically with the number of genres.",
        holds=real and common.rising(vs),
        direction=ranks > 0.5,
        paper="a monotone curve; Spearman 1.000 in the authors' notebook",
        measured=f"mean VS {listed(vs)}; rank correlation with the number {ranks:.2f}; "
        f"{share:.0%} of single samples are monotone",
    )  # fmt: skip


def check_both(title: str, row: Row, paper: str, real: bool, claims: common.Claims) -> None:
    given, shuffled = row["given"], row["shuffled"]
    kinds = ["pearson", "spearman"]
    leads = [given[kind]["vs"]["mean"] - given[kind]["intdiv"]["mean"] for kind in kinds]
    claims.check(
        f"{title}, correlation", "VS has a stronger correlation with the number of classes than IntDiv.",
        holds=real and min(leads) >= 0 < max(leads), direction=max(leads) > 0, paper=paper,
        measured="; ".join(
            f"{kind.title()} {given[kind]['vs']['mean']:.2f} ± {given[kind]['vs']['sd']:.2f} for VS and "
            f"{given[kind]['intdiv']['mean']:.2f} ± {given[kind]['intdiv']['sd']:.2f} for IntDiv" for kind in kinds
        ) + " (mean and standard deviation over samples)",
    )  # fmt: skip
    most = [shuffled["vs_ahead"][kind] for kind in kinds]
    claims.check(
        f"{title}, other orders",
        "So it is whatever the order of classes: VS increases, and more consistently than IntDiv.",
        holds=real and min(most) >= 0.9 and shuffled["positive"] >= 0.9,
        direction=min(most) > 0.5 and shuffled["positive"] > 0.5,
        paper="one order only",
        measured=f"in {shuffled['orders']} random orders the mean of VS is {listed(shuffled['vs']['mean'])}; its rank "
        f"correlation with the number of classes is positive in {shuffled['positive']:.0%}, and its correlation at "
        f"least IntDiv's in {most[0]:.0%} (Pearson) and {most[1]:.0%} (Spearman)",
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------- pictures


def draw(rows: dict[str, Row]) -> Figure:
    figure = common.new_figure(13.5, 3.7 * len(rows))
    cells = figure.add_gridspec(len(rows), 3, left=0.05, right=0.985, top=0.955, bottom=0.3 / len(rows), wspace=0.26,
                                hspace=0.42)  # fmt: skip
    for band, (title, row) in enumerate(rows.items()):
        for column, (key, name, colour, marker) in enumerate(
            [("vs", "VS", common.VS_COLOUR, "o"), ("intdiv", "IntDiv", common.INTDIV_COLOUR, "s")]
        ):
            ax = figure.add_subplot(cells[band, column])
            draw_curves(ax, row, key, colour, marker)
            r = row["given"]["pearson"][key]["mean"], row["given"]["spearman"][key]["mean"]
            ax.set(title=f"{title}: {name} (Pearson {r[0]:.2f}, Spearman {r[1]:.2f})", ylabel=name)
            ax.set_xticks(COUNTS, [f"{'+ ' if i else ''}{name}" for i, name in enumerate(row["classes"])],
                          rotation=0 if len(row["classes"][0]) < 3 else 40, ha="center" if len(row["classes"][0]) < 3
                          else "right")  # fmt: skip
            ax.legend(frameon=False, loc="lower right")
        ax = figure.add_subplot(cells[band, 2])
        each = np.array(row["shuffled"]["each_pearson"])
        low = min(-0.2, float(each.min()) - 0.05)
        ax.plot([low, 1], [low, 1], color=common.GREY, linewidth=0.8)
        ax.plot(each[:, 1], each[:, 0], ".", color=common.BLACK, alpha=0.6, label="a random order of classes")
        own = row["given"]["pearson"]
        ax.plot(own["intdiv"]["mean"], own["vs"]["mean"], "D", color=common.ORANGE, markeredgecolor="black",
                label="the order given, mean")  # fmt: skip
        ahead = row["shuffled"]["vs_ahead"]["pearson"]
        ax.set(xlim=(low, 1.02), ylim=(low - 0.3, 1.02), ylabel="of VS")
        ax.set_xlabel("Pearson's correlation of IntDiv with the number of classes")
        ax.set_title(f"VS is ahead (above the line) in {ahead:.0%} of orders")
        ax.legend(frameon=False, loc="lower right")
    return figure


def draw_curves(ax: Axes, row: Row, key: str, colour: str, marker: str) -> None:
    random, given = row["shuffled"][key], row["given"][key]
    mean, sd = np.array(random["mean"]), np.array(random["sd"])
    ax.fill_between(COUNTS, mean - sd, mean + sd, color="#DDDDDD", linewidth=0)
    ax.plot(COUNTS, mean, color=common.GREY, linestyle="--", label="random orders, mean ± sd")
    ax.errorbar(COUNTS, given["mean"], given["sd"], color=colour, marker=marker, markersize=5, capsize=3,
                label="the order given, mean ± sd")  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    parser.add_argument(
        "--multinli", type=Path, nargs="+", help="files of MultiNLI with sentence1 or premise, and genre"
    )
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, help="samples in the order given, two at least"
    )
    parser.add_argument("--orders", type=int, default=ORDERS, help="random orders, two at least")
    options = common.parsed(parser, argv)
    claims = common.Claims()
    rows: dict[str, Row] = {}
    try:
        rows["MNIST"] = experiment(mnist(options), PIXELS, 0, ITEMS, options)
    except common.Missing as missing:
        print(missing)
        claims.not_run(
            "MNIST",
            "VS increases with the number of digits.",
            why="MNIST's test set is not in the data folder",
        )
    else:
        check_digits(rows["MNIST"], options.repeats, claims)
        check_both("MNIST", rows["MNIST"], "stronger for VS, no numbers", True, claims)
    real = bool(options.multinli)
    data, title = ("MultiNLI", "MultiNLI") if real else ("XNLI", "XNLI for MultiNLI")
    matched = options.data / "text/multinli_dev_matched.jsonl.gz"
    premises = len(set(vm.read(matched, samples="premise").samples)) if matched.exists() else None
    try:
        texts, items = genres.by_genre(options), ITEMS if real else ITEMS_OF_XNLI
    except common.Missing as missing:
        print(missing)
        claim, why = "VS increases with the number of genres.", "XNLI by genre is not in the data folder"
        claims.not_run(title, claim, why=why, paper=NOTEBOOK)
    else:
        if len(texts) < CLASSES or min(map(len, texts.values())) < items:
            raise SystemExit(f"{data}: expected {CLASSES} genres with {items} texts each")
        rows[data] = experiment(texts, NGRAMS, 1, items, options)
        check_texts(title, rows[data], real, claims)
        check_both(title, rows[data], NOTEBOOK, real, claims)
    results = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, Figure of mode dropping",
        "parameters": {"seed": SEED, "repeats": options.repeats, "orders": options.orders,
                       "kernels": {"MNIST": repr(PIXELS), "texts": repr(NGRAMS)}},
        "rows": rows,
        "multinli": {"premises_of_the_matched_part": premises, "premises_of_both": genres.NOTEBOOK_PREMISES,
                     "pearson": PEARSON},
        "claims": claims.records,
    }  # fmt: skip
    common.write(options.out, "mode_dropping", results, draw(rows) if rows else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
