"""The summary of all reruns: README.md and unclear.md, from the results that the scripts wrote.

python summary.py            # writes both
python summary.py --check    # exit code 1 where they do not say what the results say
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _common as common

HERE = Path(__file__).resolve().parent

# In the order of the paper: script, what it is of the paper, the data it needs.
PARTS = {
    "figure1": ("Figure 1: shapes and colours", "made"),
    "figure2": ("Figure 2: mixtures of normals", "made"),
    "sample_complexity": ("Sample complexity", "made; MNIST"),
    "molecules": ("Molecules: table and kernel matrices", "MOSES, its published samples; one made anew"),
    "stacked_mnist": ("Stacked MNIST: the table of modes", "in the repository"),
    "images": (
        "Image models: tables",
        "CIFAR-10 (`fetch.py`), CIFAR-100, MNIST, Fashion-MNIST; your folders",
    ),
    "captions": ("Captions: the human row of the table, scatter, examples", "COCO captions"),
    "decoders": ("Captions: the table of decoders", "COCO captions; captions of models by path"),
    "mode_dropping": ("Mode dropping", "MNIST, XNLI; MultiNLI by path"),
    "image_categories": ("Categories of images", "CIFAR-100, Fashion-MNIST, attributes of CelebA"),
    "text_categories": ("Categories of text", "Amazon reviews, XNLI, Brown; MultiNLI by path"),
    "scents": ("Categories of scents", "GoodScents"),
    "eigenvectors": ("Eigenvectors", "CIFAR-100"),
}
VERDICTS = [common.REPRODUCED, common.IN_DIRECTION, common.NOT_REPRODUCED, common.NOT_RUN]
MARKS = dict(zip(VERDICTS, ["✓", "≈", "✗", "–"], strict=True))

# What a claim rests on, by the beginnings of its name; OWN where none fits.
OWN, MADE, STAND_IN, TABLE, BEYOND = "", "made", "stand-in", "own table", "beyond"
RESTS_ON = {
    OWN: "the paper's own data, kernels and models",
    MADE: "data that are made as the paper makes them",
    STAND_IN: "other data, another model or another encoder: *stand-in*",
    TABLE: "the paper's words held against its own table: *own table*",
    BEYOND: "questions that the paper's claims raise: *beyond*",
}
KINDS = {
    "figure1": {"": MADE},
    "figure2": {"": MADE},
    "images": {
        "table:": TABLE,
        "rerun: data sets": BEYOND,
        "rerun: another encoder": BEYOND,
        "rerun:": STAND_IN,
    },
    "eigenvectors": {"LSUN": "", "": STAND_IN},
    "stacked_mnist": {"original": "", "PresGAN": "", "": STAND_IN},
    "molecules": {"table, Combinatorial": MADE, "fitted HMM": BEYOND},
    "decoders": {"sampling": BEYOND, "": STAND_IN},
    "mode_dropping": {"MNIST, other": BEYOND, "XNLI for MultiNLI, other": BEYOND, "XNLI": STAND_IN},
    "text_categories": {"XNLI": STAND_IN, "Brown": STAND_IN, "Amazon, MiniLM": STAND_IN},
    "image_categories": {
        "CIFAR-100 by encoder": STAND_IN,
        "choice of the encoder": BEYOND,
        "choice": STAND_IN,
        "CelebA, pictures": "",
        "CelebA": STAND_IN,
    },
    "scents": {"scents, correlation of all": BEYOND},
    "sample_complexity": {"faster": BEYOND, "MNIST": BEYOND, "": MADE},
}
REMARKS = {
    "images": "VS\\_I, IS and FID of the rerun are by EfficientNet-Lite0, and not comparable with the paper's, which "
    "are by Inception; *another encoder* is MobileNetV2.",
    "stacked_mnist": "VS is below Mode Diversity for any samples: the eigenvalues majorise the diagonal of the matrix "
    "of classes, which is the distribution of modes. What tells something is how far below, beside the original.",
}

HEAD = """# The paper, rerun

The figures and tables of Friedman and Dieng, *The Vendi Score: A Diversity Evaluation Metric for Machine Learning*
(TMLR 2023), through the public API. Each has a script; not each could be rerun on the paper's data, and the table below
counts what rests on what. A script states what the paper claims, computes what bears on it, and says how that went:
✓ reproduced, ≈ reproduced in direction (the numbers move as claimed and are not those of the paper), ✗ not reproduced,
– could not be run. A verdict is computed from the numbers, by thresholds that the scripts state, and what did not work
stays in. Three kinds of rows are marked. *Stand-in*: other data, another model or another encoder stand in for the
paper's; the verdict is about the claim, and not about the paper's numbers. *Own table*: the paper's words held against
its own table, nothing rerun. *Beyond*: not claimed by the paper, but a question that its claims raise.

`make experiments` runs them all, and writes this page from what they found. Scripts take data from a folder
(`--data`), say in their first lines where to get what is missing, and run on it when given the path. Numbers and
pictures of numbers are in `results/`; galleries of pictures, drawn molecules and texts are written to
`build/experiments`, and are not kept. Models are not trained again: for Stacked MNIST the probabilities of the digits
are kept, for the decoders of captions only the rows of the table, which stay as they are until `decoders_train.py` has
written texts. What in the paper does not hold as printed is on [a page of its own](unclear.md).

"""
TAIL = """
## Beside the paper

`answers.py FILE [--model FOLDER]` compares the score of the answers to a prompt with NoveltyBench's count of
different ones (rank correlation 0.67 with n-grams and 0.71 with MiniLM on the 100 curated prompts, ten answers of
Gemini 1.5 Pro each)."""
UNCLEAR = """# What in the paper does not hold as printed, or is unclear

Found while rerunning it; each is shown by a computation, of `unclear.py` or of the script that is named.
None of them changes what the score is, or its properties.

"""


def cell(text: str) -> str:
    """Text as a cell of a table."""
    return (
        text.replace("|", "\\|")
        .replace("<", "&lt;")
        .replace("*", "\\*")
        .replace("_", "\\_")
        .replace("\n", " ")
    )


def results_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The results that are there, in the order of the paper."""
    found = {}
    for name in PARTS:
        path = folder / f"{name}.json"
        if path.exists():
            found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def kind_of(name: str, claim: str) -> str:
    """What a claim rests on."""
    return next((kind for start, kind in KINDS.get(name, {}).items() if claim.startswith(start)), OWN)


def counts_of(held: dict[str, dict[str, Any]]) -> Counter[tuple[str, str]]:
    """How many claims there are of each kind with each verdict."""
    return Counter(
        (kind_of(name, claim["name"]), claim["verdict"])
        for name, one in held.items()
        for claim in one["claims"]
    )


def table(head: Sequence[str], rows: Sequence[tuple[Sequence[str], Sequence[int]]]) -> str:
    """A table of texts, then a column of counts for each verdict; none is left blank."""
    lines = [f"| {' | '.join([*head, *MARKS.values()])} |", "|" + ":---|" * len(head) + "---:|" * len(MARKS)]
    lines += [f"| {' | '.join([*said, *(str(count or '') for count in counts)])} |" for said, counts in rows]
    return "\n".join(lines)


def decided_on_own_data(counts: Counter[tuple[str, str]]) -> int:
    """How many claims have a verdict that rests on the paper's own data, or on data made as the paper makes them."""
    return sum(
        counts[kind, verdict] for kind in (OWN, MADE) for verdict in VERDICTS if verdict != common.NOT_RUN
    )


def overview(held: dict[str, dict[str, Any]]) -> str:
    counts = counts_of(held)
    totals = [sum(counts[kind, verdict] for kind in RESTS_ON) for verdict in VERDICTS]
    said = ", ".join(f"{total} {verdict}" for total, verdict in zip(totals, VERDICTS, strict=True))
    kinds = [([what], [counts[kind, verdict] for verdict in VERDICTS]) for kind, what in RESTS_ON.items()]
    scripts = []
    for name, one in held.items():
        title, data = PARTS[name]
        of = Counter(claim["verdict"] for claim in one["claims"])
        scripts.append(
            ([f"[{title}](#{anchor(title)})", f"`{name}.py`", data], [of[verdict] for verdict in VERDICTS])
        )
    lead = (
        f"{sum(totals)} claims: {said}. {decided_on_own_data(counts)} were decided on the paper's own data, or on data "
        "made as the paper makes them."
    )
    return "\n\n".join(
        [lead, table(["what a claim rests on"], kinds), table(["of the paper", "script", "data"], scripts)]
    )


def anchor(title: str) -> str:
    """What a heading is called in links."""
    return "".join(mark for mark in title.lower().replace(" ", "-") if mark.isalnum() or mark in "-_")


def section(name: str, one: dict[str, Any], folder: Path) -> str:
    title, _ = PARTS[name]
    lines = [f"## {title}\n"]
    for path in sorted(folder.glob(f"{name}.png")) + sorted(folder.glob(f"{name}-*.png")):
        lines.append(f"![{title}, as computed by {name}.py](results/{path.name})\n")
    if name in REMARKS:
        lines.append(f"{REMARKS[name]}\n")
    lines += ["| claim | in the paper | here | |", "|:---|:---|:---|:---|"]
    for claim in one["claims"]:
        parts = [cell(part) for part in (claim["claim"], claim.get("paper", ""), claim["measured"])]
        parts[0] = f"**{cell(claim['name'])}** {parts[0]}"
        kind = kind_of(name, claim["name"])
        marked = kind not in (OWN, MADE) and claim["verdict"] != common.NOT_RUN
        mark = MARKS[claim["verdict"]] + (f" *{kind}*" if marked else "")
        lines.append(f"| {' | '.join(parts)} | {mark} |")
    return "\n".join(lines)


def unclear_page(held: dict[str, Any]) -> str:
    lines = []
    for one in held["findings"]:
        lines.append(f"## {one['where']}\n")
        lines.append(f"- **Printed:** {cell(one['printed'])}.")
        lines.append(f"- **Computed:** {cell(one['computed'])}.")
        lines.append(f"- **Meant, it seems:** {cell(one['meant'])}.\n")
    lines.append("## Out of scope\n")
    lines += [f"- **{one['what']}:** {cell(one['why'])}." for one in held["out_of_scope"]]
    return UNCLEAR + "\n".join(lines) + "\n"


def pages(folder: Path) -> dict[Path, str]:
    """What each page should say."""
    held = results_of(folder)
    parts = [overview(held), *(section(name, one, folder) for name, one in held.items())]
    found = {HERE / "README.md": HEAD + "\n\n".join(parts) + "\n" + TAIL + "\n"}
    unclear = folder / "unclear.json"
    if unclear.exists():
        found[HERE / "unclear.md"] = unclear_page(json.loads(unclear.read_text(encoding="utf-8")))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, and say whether the pages are up to date"
    )
    options = parser.parse_args(argv)
    stale = [
        path for path, text in pages(common.RESULTS).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]  # fmt: skip
    for path in stale:
        print(f"{path.name} {'does not say what the results say' if options.check else 'written'}")
        if not options.check:
            path.write_text(pages(common.RESULTS)[path], encoding="utf-8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
