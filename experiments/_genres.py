"""Texts by category, for `mode_dropping.py` and `text_categories.py`: Brown's genres, or files of the paper's data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import _common as common
import vendimeter as vm
from vendimeter.errors import VendimeterError

# Scores of 667 premises of each genre (666 of fiction) by n-grams, as the authors' notebook prints them: examples/
# text.ipynb of github.com/vertaix/Vendi-Score, commit 5f00dc6. Word pieces of roberta-base, marks of both ends kept.
NOTEBOOK = {
    "facetoface": 444.22, "fiction": 480.25, "government": 509.44, "letters": 492.76, "nineeleven": 473.13,
    "oup": 503.95, "slate": 515.68, "telephone": 491.45, "travel": 495.21, "verbatim": 506.97,
}  # fmt: skip
NO_GENRES = (
    "MultiNLI with genres is not at hand (the file in the data folder has none): get multinli_1.0_dev_matched.jsonl"
    " and multinli_1.0_dev_mismatched.jsonl, or the parquet files of nyu-mll/multi_nli, and name them with --multinli"
)

Texts = dict[str, list[str]]


def brown(options: argparse.Namespace) -> Texts:
    """700 sentences of each of 15 genres."""
    file = common.file_of(
        options,
        "research_only/brown_sentences_by_genre.jsonl.gz",
        "lines of genre and text, of NLTK's Brown corpus",
    )
    return labelled([file], ["text"], "genre")


def labelled(files: Sequence[Path], fields: Sequence[str], label: str) -> Texts:
    """Distinct texts by label, from the first of the fields that there is; labels in alphabetical order."""
    found: dict[str, dict[str, None]] = {}
    for file in files:
        read = None
        for field in fields:
            try:
                read = vm.read(file, samples=field, label=label)
                break
            except VendimeterError as error:
                last = error
        if read is None:
            raise SystemExit(f"{file.name}: {last}")
        for text, name in zip(read.samples, read.labels, strict=True):
            found.setdefault(str(name), {})[text] = None
    return {name: list(found[name]) for name in sorted(found)}


def multinli(files: Sequence[Path]) -> Texts:
    """Distinct premises by genre, as the authors' code takes them."""
    return labelled(files, ["sentence1", "premise"], "genre")
