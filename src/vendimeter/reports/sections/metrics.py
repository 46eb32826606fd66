"""What else is reported beside the score: the metrics that the kernel says apply, each with what it is."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Hashable
from typing import Any

import numpy as np

from vendimeter.data import tables
from vendimeter.data.groups import Grouping
from vendimeter.diversity import Diversity
from vendimeter.errors import InputError, MissingDependencyError, VendimeterError
from vendimeter.kernels import BLEU, Embed, NGram, Pixels, ProbabilityProduct
from vendimeter.messages import brief, warn
from vendimeter.metrics.features import _encoder
from vendimeter.metrics.inputs import OF_MOLECULES, OF_VECTORS, in_collection, table_rows
from vendimeter.metrics.registry import columns_of
from vendimeter.metrics.tables import caveats, choose_metrics, compute_cells
from vendimeter.optional import require
from vendimeter.options import generator
from vendimeter.present.notes import Note
from vendimeter.present.numbers import order_suffix
from vendimeter.present.plain import plain
from vendimeter.present.tables import Cell, notes_on
from vendimeter.present.text import printable
from vendimeter.reports.charts import distinct_names
from vendimeter.reports.document import Block, Column, Section, Table
from vendimeter.reports.findings import Findings
from vendimeter.reports.words import note

__all__ = ["check_features", "section"]

MAX_ITEMS = 30_000  # items of a collection that metrics look at
ROUNDING = 1e-12
MAX_GROUPS = 12  # groups that have a row of their own
# Kernels whose samples tell more than their similarities do.
TELLING = (Embed, NGram, BLEU, ProbabilityProduct, *OF_MOLECULES, *OF_VECTORS)
MEANINGS = {
    "n": "how many items were looked at",
    "validity": "the share of samples that are molecules",
    "uniqueness": "the share of valid molecules that are different",
    "novelty": "the share of different molecules that the reference has not",
    "nearest_similarity": "the mean similarity with the nearest molecule of the reference",
    "scaffolds": "how many different Murcko scaffolds there are",
    "inception_score": "how sure a classifier is of each sample, and how evenly its classes are used",
    "frechet_distance": "the distance of two normal distributions with the means and covariances of the vectors; "
    "0 is the same. It falls with the number of samples",
    "kernel_distance": "the squared maximum mean discrepancy with the reference, by a cubic kernel",
    "precision": "the share of samples that lie near one of the reference: quality",
    "recall": "the share of the reference that lies near a sample: coverage",
    "density": "how many neighbourhoods of the reference a sample lies in, in proportion; may exceed 1",
    "coverage": "the share of the reference that has a sample in its neighbourhood",
    "corpus_bleu": "the n-grams that samples share with their references, with a penalty for short ones",
    "ngram_diversity": "the share of n-grams that are different, in the mean over lengths",
    "self_bleu": "how much of each text's n-grams the others have; low is diverse",
    "compression_ratio": "by how much gzip shrinks the texts; low is diverse",
    "number_of_modes": "how many classes are there at all",
    "mode_diversity": "how evenly classes are used",
    "intdiv": "1 less the mean similarity of two items; it looks at pairs alone, and may stay high for a few modes",
}
BY_PIXELS = (
    "Distances from the reference are measured between pixels, since no encoder was named; they cannot be held against "
    'published figures, which are of Inception\'s features (features="inception-fid", on the command line '
    "--features inception-fid)."
)
VALIDITY_HIDDEN = (
    "Validity is not shown: records that are no molecules were left out before anything was computed."
)
# What is measured between the vectors of an encoder.
OF_FEATURES = ("frechet_distance", "kernel_distance", "precision", "recall", "density", "coverage")
# Encoders: the extra that brings their libraries, and these.
LIBRARIES = {
    "sentences": ("encoders", "torch", "sentence_transformers"),
    "simcse": ("encoders", "torch", "transformers"),
    "transformer": ("encoders", "torch", "transformers"),
    "dinov2": ("encoders", "torch", "transformers"),
    "clip": ("encoders", "torch", "transformers"),
    "inception": ("vision", "torch", "torchvision"),
    "inception-fid": ("vision", "torch", "torch_fidelity"),
    "timm": ("vision", "torch", "timm"),
}
ARROWS = {"up": " ↑", "down": " ↓"}


def check_features(features: Any) -> None:
    """Refuse an encoder that there is not, or whose libraries are not there, before any work."""
    try:
        _encoder(features)
    except TypeError:  # one that has to be told its model
        raise InputError(
            f"features={brief(features)} needs to be told which model; expected the encoder itself, made in Python "
            "with the name of its model, or another name, such as 'inception-fid'."
        ) from None
    name = features if isinstance(features, str) else getattr(features, "name", None)
    extra, *modules = LIBRARIES.get(name if isinstance(name, str) else "", ("",))
    for module in modules:
        if module not in sys.modules and importlib.util.find_spec(module) is None:
            require(module, extra=extra, purpose=f"features={brief(name)}")


def section(findings: Findings, reference: Any, features: Any) -> Section:
    """One table of all that applies."""
    by_pixels, kernel = False, findings.sample.kernel
    if features is None and reference is not None and isinstance(kernel, Pixels):
        features, by_pixels = kernel.vectors, True
    # Of other samples nothing is known but how similar they are, which compares none with a reference.
    is_telling = isinstance(kernel, TELLING) or features is not None
    collections, scores = _rows(findings, is_telling)
    if not is_telling:
        reference = None
    elif findings.sample.is_name(reference):
        reference = _row_name(findings, list(collections), reference)
    failure = ""
    try:
        columns, cells, notes = _figures(findings, collections, reference, features)
    except MissingDependencyError:
        raise
    except VendimeterError as error:  # what needs no encoder is not lost
        if features is None or by_pixels:
            raise
        columns, cells, notes = _figures(findings, collections, reference, None)
        failure = "Distances from the reference could not be measured by "
        failure += f"features={brief(features)}: {printable(error)}"
        warn(failure, UserWarning)
    left_out = any(part.left_out for part in findings.parts)
    shown_columns = [
        j
        for j, column in enumerate(columns)
        if not (column.name == "validity" and left_out)
        and not (failure and column.name in OF_FEATURES)
        and any(_cell(row[j].value) is not None for row in cells)
    ]
    titles = [
        Column("collection" if findings.has_several else "items"),
        *(
            Column(
                columns[j].title + ARROWS.get(columns[j].better, ""),
                "number",
                meaning=_meaning(columns[j].name),
            )
            for j in shown_columns
        ),
        Column("Vendi Score ↑", "number", meaning=f"the score{order_suffix(findings.first_order)}, as above"),
    ]
    lines = [
        [name, *(_cell(row[j].value) for j in shown_columns), score]
        for name, row, score in zip(collections, cells, scores, strict=True)
    ]
    blocks: list[Block] = [Table(titles, lines)]
    sizes = {row[0].value for row in cells}
    # The two sizes are those of all items, and of the groups.
    groups_of_equal_size = not findings.has_several and len(cells) > 2 and len(sizes) == 2
    blocks += [
        note(one.shown("page"))
        for one in notes
        if one.kind != "plus-minus" and not (groups_of_equal_size and one.kind == "sizes-differ")
    ]
    if left_out and any(column.name == "validity" for column in columns):
        blocks.append(note(VALIDITY_HIDDEN))
    if by_pixels:
        blocks.append(note(BY_PIXELS))
    if failure:
        blocks.append(note(failure))
    if is_telling and any(part.n > MAX_ITEMS for part in findings.parts):
        blocks.append(
            note(f"Of larger collections, {MAX_ITEMS:,} random items were looked at for these metrics.")
        )
    lead = (
        "What is usually reported beside it. An arrow says which way is better; each metric answers a question of its "
        "own, and none of them replaces another."
    )
    if reference is not None:
        lead += " Metrics that compare do so with the reference, whose own row stays empty there."
    return Section("metrics", "Other metrics", lead, blocks)


def _figures(
    findings: Findings, collections: dict[Hashable, Any], reference: Any, features: Any
) -> tuple[list[Any], list[list[Any]], list[Note]]:
    """Columns, cells, and notes of all metrics that apply; the score is known already."""
    kernels, weighted = {"": findings.sample.kernel}, findings.diversity.weights is not None
    seed = findings.diversity.rng
    rows, notes = table_rows(collections, kernels, reference, features, (None, False), None, seed)
    chosen = choose_metrics(["intdiv"] if weighted else None, {}, rows)
    del chosen["vendi_score"]
    columns, cells = columns_of(chosen, kernels, []), []
    for name, row in zip(collections, rows, strict=True):
        with in_collection(name):
            figures = [compute_cells(metric, title, row, {}) for title, metric in chosen.items()]
        cells.append([Cell(row.n), *(cell for metric in figures for cell in metric)])
        row.forget()
    group_sizes = [len(group) for row in rows if row.groups for group in row.samples]
    notes += [*caveats(chosen, rows, reference), *notes_on(columns, cells, group_sizes)]
    return columns, cells, notes


def _meaning(name: str) -> str:
    return MEANINGS.get(name, "")


def _cell(value: Any) -> float | int | None:
    if isinstance(value, int):
        return value
    value = plain(value)
    return 0.0 if value is not None and abs(value) < ROUNDING else value


def _rows(findings: Findings, is_telling: bool) -> tuple[dict[Hashable, Any], list[float | None]]:
    """A row for each collection, or all items and the groups; and their scores as the report has them."""
    scores: list[float | None] = [float(profile[findings.first_order]) for profile in findings.scores]
    names = distinct_names((part.name for part in findings.parts), max_length=60)
    if findings.sample.lists is not None and is_telling:
        return {names[0]: findings.sample.lists}, scores
    parts = [_few(part.diversity) if is_telling else part.diversity for part in findings.parts]
    rows: dict[Hashable, Any] = dict(zip(names, parts, strict=True))
    groups = findings.sample.groups
    if groups is None or not _have_rows(findings, groups, is_telling):
        return rows, scores
    assert findings.comparison is not None
    group_names = distinct_names(["all items", *groups.labels], max_length=60)[1:]
    for name, members in zip(group_names, np.split(groups.items, groups.starts[1:-1]), strict=True):
        rows[name] = findings.diversity.take(members)
    return rows, [*scores, *(plain(score) for score in findings.comparison.scores)]


def _few(diversity: Diversity) -> Diversity:
    """A random sample of a large collection."""
    if diversity.n <= MAX_ITEMS:
        return diversity
    draws = generator(diversity.rng, "report metrics")
    return diversity.take(np.sort(draws.choice(diversity.n, MAX_ITEMS, replace=False)))


def _have_rows(findings: Findings, groups: Grouping, is_telling: bool) -> bool:
    """Whether the groups have rows of their own: they are few, and each item has one label."""
    diversity = findings.diversity
    one_label_each = len(groups.items) == diversity.n == len(np.unique(groups.items))
    return (
        one_label_each
        and not findings.has_several
        and not findings.are_lists
        and diversity.weights is None
        and 1 < len(groups.labels) <= MAX_GROUPS
        and diversity.n <= MAX_ITEMS
        and not (is_telling and tables.has_columns(findings.parts[0].samples))
    )


def _row_name(findings: Findings, names: list[Hashable], reference: Any) -> Hashable:
    """The name of the row of a collection or group; None where it has none."""
    if findings.has_several:
        return names[[part.label for part in findings.parts].index(reference)]
    groups = findings.sample.groups
    assert groups is not None
    return names[1 + list(groups.labels).index(reference)] if len(names) > 1 else None
