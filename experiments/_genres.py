"""Texts by category, for `mode_dropping.py` and `text_categories.py`: MultiNLI or what stands in, reviews by stars."""

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
NOTEBOOK_PREMISES = (
    6669  # of both parts of MultiNLI's validation set, as it prints: 667 of each genre, 666 of fiction
)

Texts = dict[str, list[str]]


def by_genre(options: argparse.Namespace) -> Texts:
    """Distinct premises by genre, as the authors' code takes them: of MultiNLI where it is named, else of XNLI.

    XNLI's were collected for it in the ten genres of MultiNLI: 250 of each, each in three pairs. Its hypotheses are
    left out: they are written by annotators, in no genre.
    """
    if options.multinli:
        return labelled(options.multinli, ["sentence1", "premise"], "genre")
    file = common.file_of(
        options,
        "research_only/xnli_english_by_genre.jsonl.gz",
        "lines of genre and premise, of XNLI in English",
    )
    return labelled([file], ["premise"], "genre")


def brown(options: argparse.Namespace) -> Texts:
    """700 sentences of each of 15 genres."""
    file = common.file_of(
        options,
        "research_only/brown_sentences_by_genre.jsonl.gz",
        "lines of genre and text, of NLTK's Brown corpus",
    )
    return labelled([file], ["text"], "genre")


def amazon(options: argparse.Namespace) -> Texts:
    """Reviews by their number of stars, as they are: 2,000 of each in the data folder."""
    files = options.amazon or [
        common.file_of(
            options,
            "research_only/amazon_reviews_english.jsonl.gz",
            "lines of stars and review_body, of the Multilingual Amazon Reviews Corpus in English",
        )
    ]
    texts = labelled(files, ["review_body"], "stars", distinct=False)
    return {f"{count} star{'s' * (count != '1')}": own for count, own in texts.items()}


def labelled(files: Sequence[Path], fields: Sequence[str], label: str, *, distinct: bool = True) -> Texts:
    """Texts by label, from the first of the fields that there is; labels in alphabetical order."""
    found: Texts = {}
    for file in files:
        read, refusals = None, []
        for field in fields:
            try:
                read = vm.read(file, samples=field, label=label)
                break
            except VendimeterError as error:
                refusals.append(str(error))
        if read is None:
            raise SystemExit(f"{file.name}: {refusals[-1]}")
        for text, name in zip(read.samples, read.labels, strict=True):
            found.setdefault(str(name), []).append(text)
    return {name: list(dict.fromkeys(found[name])) if distinct else found[name] for name in sorted(found)}
