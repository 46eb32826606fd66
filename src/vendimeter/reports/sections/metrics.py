"""What else is reported beside the score: the metrics that the kernel says apply, each with what it is."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data import tables
from vendimeter.data.arrays import take
from vendimeter.data.collection import Collection
from vendimeter.errors import InputError, MissingDependencyError, VendimeterError
from vendimeter.kernels import BLEU, Embed, NGram, Pixels, ProbabilityProduct
from vendimeter.messages import brief, warn
from vendimeter.metrics.features import _encoder
from vendimeter.metrics.inputs import OF_MOLECULES, OF_VECTORS
from vendimeter.metrics.tables import table
from vendimeter.optional import require
from vendimeter.options import generator
from vendimeter.present.numbers import order_suffix
from vendimeter.present.plain import plain
from vendimeter.present.text import printable
from vendimeter.reports.analyses import Analyses
from vendimeter.reports.charts import distinct_names
from vendimeter.reports.document import Block, Column, Section, Table
from vendimeter.reports.words import note

__all__ = ["check_features", "section"]

MAX_ITEMS = 30_000  # items of a collection that metrics look at
ROUNDING = 1e-12
MAX_GROUPS = 12  # groups that have a row of their own
TABLE_TOLERANCE = 0.05  # tolerance of the score that a table computes besides; the report has a better one
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


@dataclass(frozen=True)
class _Rows:
    """Collections by the names of their rows, and the score of each as the report has it."""

    samples: dict[str, Any]
    scores: list[float | None]
    reference: Any


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


def section(analyses: Analyses, reference: Any, features: Any) -> Section:
    """One table of all that applies."""
    subject = analyses.subject
    by_pixels = False
    if features is None and reference is not None and isinstance(subject.kernel, Pixels):
        features, by_pixels = subject.kernel.vectors, True
    kernel, raw = _kernel(analyses, features)
    rows = _rows(analyses, reference, raw)
    weighted = subject.weights is not None

    def computed(features: Any) -> Any:
        return table(
            rows.samples,
            kernel,
            reference=rows.reference,
            features=features,
            metrics=["intdiv"] if weighted else None,
            q=analyses.first_order,
            tol=TABLE_TOLERANCE,
            rng=subject.rng,
            progress=False,
        )

    failure = ""
    try:
        metric_table = computed(features)
    except MissingDependencyError:
        raise
    except VendimeterError as error:  # what needs no encoder is not lost
        if features is None or by_pixels:
            raise
        metric_table = computed(None)
        failure = "Distances from the reference could not be measured by "
        failure += f"features={brief(features)}: {printable(error)}"
        warn(failure, UserWarning)
    left_out = [
        getattr(getattr(collection.samples, "skipped", None), "count", 0)
        for collection in subject.collections
    ]
    shown_columns = [
        j
        for j, column in enumerate(metric_table.columns)
        if not column.name.startswith("vendi_score")
        and not (column.name == "validity" and any(left_out))
        and not (failure and column.name in OF_FEATURES)
        and any(_cell(row[j].value) is not None for row in metric_table.cells)
    ]
    columns = [Column("collection" if subject.has_several else "items")]
    for j in shown_columns:
        metric = metric_table.columns[j]
        columns.append(
            Column(
                metric.title + ARROWS.get(metric.better, ""),
                "number",
                meaning=_meaning(metric.name),
            )
        )
    columns.append(
        Column("Vendi Score ↑", "number", meaning=f"the score{order_suffix(analyses.first_order)}, as above")
    )
    cells = [
        [str(name), *(_cell(row[j].value) for j in shown_columns), score]
        for name, row, score in zip(metric_table.names, metric_table.cells, rows.scores, strict=True)
    ]
    blocks: list[Block] = [Table(columns, cells)]
    sizes = {
        row[j].value
        for row in metric_table.cells
        for j in range(len(metric_table.columns))
        if metric_table.columns[j].name == "n"
    }
    # The two sizes are those of all items, and of the groups.
    groups_of_equal_size = not subject.has_several and len(metric_table.cells) > 2 and len(sizes) == 2
    blocks += [
        note(text)
        for text in metric_table.notes
        if "± is" not in text and not (groups_of_equal_size and text.startswith("The collections have "))
    ]
    if any(left_out) and any(column.name == "validity" for column in metric_table.columns):
        blocks.append(note(VALIDITY_HIDDEN))
    if by_pixels:
        blocks.append(note(BY_PIXELS))
    if failure:
        blocks.append(note(failure))
    if any(collection.n > MAX_ITEMS for collection in subject.collections) and raw:
        blocks.append(
            note(f"Of larger collections, {MAX_ITEMS:,} random items were looked at for these metrics.")
        )
    lead = (
        "What is usually reported beside it. An arrow says which way is better; each metric answers a question of its "
        "own, and none of them replaces another."
    )
    if rows.reference is not None:
        lead += " Metrics that compare do so with the reference, whose own row stays empty there."
    return Section("metrics", "Other metrics", lead, blocks)


def _meaning(name: str) -> str:
    return MEANINGS.get(name, "")


def _cell(value: Any) -> float | int | None:
    if isinstance(value, int):
        return value
    value = plain(value)
    return 0.0 if value is not None and abs(value) < ROUNDING else value


def _kernel(analyses: Analyses, features: Any) -> tuple[Any, bool]:
    """The kernel of the table; and whether it is one whose samples tell more than their similarities do."""
    kernel = analyses.subject.kernel
    if isinstance(kernel, Embed):
        return kernel.kernel, True
    telling = (NGram, BLEU, ProbabilityProduct, *OF_MOLECULES, *OF_VECTORS)
    if isinstance(kernel, telling) or features is not None:
        return kernel, True
    return analyses.subject.position_kernel, False


def _rows(analyses: Analyses, reference: Any, raw: bool) -> _Rows:
    subject = analyses.subject
    names = distinct_names((subject.name_of(collection) for collection in subject.collections), max_length=60)
    samples = {name: _samples(analyses, i, raw) for i, name in enumerate(names)}
    scores: list[float | None] = [float(profile[analyses.first_order]) for profile in analyses.scores]
    if subject.has_several:
        labels = [collection.label for collection in subject.collections]
        is_collection = subject.is_name(reference) and reference in labels
        row_reference = names[labels.index(reference)] if is_collection else reference
    else:
        row_reference = reference
        group_samples, group_scores = _groups(analyses, samples[names[0]], raw)
        samples, scores = {**samples, **group_samples}, [*scores, *group_scores]
        groups = subject.groups
        if subject.is_name(reference) and groups is not None and reference in groups.labels:
            index = list(groups.labels).index(reference)
            row_reference = list(group_samples)[index] if group_samples else None
    if (
        raw
        and row_reference is not None
        and not isinstance(row_reference, str)
        and isinstance(subject.kernel, Embed)
    ):
        row_reference = subject.kernel.encode(
            row_reference.one() if isinstance(row_reference, Collection) else row_reference
        )
    return _Rows(samples, scores, row_reference if raw else None)


def _samples(analyses: Analyses, i: int, raw: bool) -> Any:
    """The samples of a collection for metrics: as they were given, as vectors, or as positions."""
    subject = analyses.subject
    collection = subject.collections[i]
    positions = collection.items
    if raw and len(positions) > MAX_ITEMS and not subject.nested:
        draws = generator(subject.rng, "report metrics")
        positions = np.sort(draws.choice(positions, MAX_ITEMS, replace=False))
    if not raw:
        selected: Any = positions
    elif subject.vectors is not None:
        selected = take(subject.vectors, positions)
    elif subject.nested:
        return collection.samples
    else:
        samples = (
            collection.samples.samples if isinstance(collection.samples, Collection) else collection.samples
        )
        is_complete = len(positions) == collection.n
        start = sum(earlier.n for earlier in subject.collections[:i])
        selected = samples if is_complete else _select(samples, subject.origin[positions] - start)
    if collection.weights is None:
        return selected
    indices = np.searchsorted(collection.items, positions)
    weights = collection.weights[indices]
    return Collection(selected, weights=weights / weights.sum())


def _select(samples: Any, index: np.ndarray) -> Any:
    if isinstance(samples, Mapping) or tables.is_records(samples):
        records = tables.records(samples)
        return [records[i] for i in index.tolist()]
    return take(samples, index)


def _groups(analyses: Analyses, samples: Any, raw: bool) -> tuple[dict[str, Any], list[float | None]]:
    """Rows for the groups of a collection, where they are few and each item has one label."""
    subject, groups = analyses.subject, analyses.subject.groups
    one_label_each = groups is not None and len(groups.items) == subject.n == len(
        subject.collections[0].items
    )
    if (
        not one_label_each
        or subject.nested
        or subject.weights is not None
        or not 1 < len(groups.labels) <= MAX_GROUPS  # type: ignore[union-attr]
        or subject.n > MAX_ITEMS
        or tables.has_columns(samples)
    ):
        return {}, []
    assert groups is not None
    comparison = analyses.comparison
    assert comparison is not None
    names = distinct_names(["all items", *groups.labels], max_length=60)[1:]
    positions = [groups.items[groups.starts[g] : groups.starts[g + 1]] for g in range(len(groups.labels))]
    return (
        {name: take(samples, members) for name, members in zip(names, positions, strict=True)},
        [plain(score) for score in comparison.scores],
    )
