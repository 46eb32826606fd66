"""What else is reported beside the score: the metrics that the kernel says apply, each with what it is."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data import tables as _tables
from vendimeter.data.arrays import take
from vendimeter.data.collection import Collection
from vendimeter.errors import InputError, MissingDependencyError, VendimeterError, brief, printable, warn
from vendimeter.kernels import BLEU, Embed, NGram, Pixels, ProbabilityProduct
from vendimeter.metrics.features import _encoder
from vendimeter.metrics.inputs import OF_MOLECULES, OF_VECTORS
from vendimeter.metrics.tables import table
from vendimeter.optional import require
from vendimeter.options import generator
from vendimeter.reports.analyses import Analyses
from vendimeter.reports.charts import distinct_names
from vendimeter.reports.document import Block, Column, Section, Table
from vendimeter.reports.words import finite, note, of_order

__all__ = ["check_features", "section"]

MOST = 30_000  # items of a collection that metrics look at
ROUNDING = 1e-12
GROUPS = 12  # groups that have a row of their own
ROUGH = 0.05  # tolerance of the score that a table computes besides; the report has a better one
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
VALID = "Validity is not shown: records that are no molecules were left out before anything was computed."
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
            q=analyses.main,
            tol=ROUGH,
            rng=subject.rng,
            progress=False,
        )

    failed = ""
    try:
        found = computed(features)
    except MissingDependencyError:
        raise
    except VendimeterError as error:  # what needs no encoder is not lost
        if features is None or by_pixels:
            raise
        found = computed(None)
        failed = f"Distances from the reference could not be measured by features={brief(features)}: {printable(error)}"
        warn(failed, UserWarning)
    left_out = [getattr(getattr(part.samples, "skipped", None), "count", 0) for part in subject.parts]
    kept = [
        j
        for j, column in enumerate(found.columns)
        if not column.name.startswith("vendi_score")
        and not (column.name == "validity" and any(left_out))
        and not (failed and column.name in OF_FEATURES)
        and any(_cell(row[j].value) is not None for row in found.cells)
    ]
    columns = [Column("collection" if subject.several else "items")]
    for j in kept:
        one = found.columns[j]
        columns.append(Column(one.title + ARROWS.get(one.better, ""), "number", meaning=_meaning(one.name)))
    columns.append(Column("Vendi Score ↑", "number", meaning=f"the score{of_order(analyses.main)}, as above"))
    cells = [
        [str(name), *(_cell(row[j].value) for j in kept), score]
        for name, row, score in zip(found.names, found.cells, rows.scores, strict=True)
    ]
    blocks: list[Block] = [Table(columns, cells)]
    sizes = {
        row[j].value for row in found.cells for j in range(len(found.columns)) if found.columns[j].name == "n"
    }
    same = (
        not subject.several and len(found.cells) > 2 and len(sizes) == 2
    )  # all items, and groups of one size
    blocks += [
        note(text)
        for text in found.notes
        if "± is" not in text and not (same and text.startswith("The collections have "))
    ]
    if any(left_out) and any(column.name == "validity" for column in found.columns):
        blocks.append(note(VALID))
    if by_pixels:
        blocks.append(note(BY_PIXELS))
    if failed:
        blocks.append(note(failed))
    if any(part.n > MOST for part in subject.parts) and raw:
        blocks.append(note(f"Of larger collections, {MOST:,} random items were looked at for these metrics."))
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
    value = finite(value)
    return 0.0 if value is not None and abs(value) < ROUNDING else value


def _kernel(analyses: Analyses, features: Any) -> tuple[Any, bool]:
    """The kernel of the table; and whether it is one whose samples tell more than their similarities do."""
    kernel = analyses.subject.kernel
    if isinstance(kernel, Embed):
        return kernel.kernel, True
    telling = (NGram, BLEU, ProbabilityProduct, *OF_MOLECULES, *OF_VECTORS)
    if isinstance(kernel, telling) or features is not None:
        return kernel, True
    return analyses.subject.held, False


def _rows(analyses: Analyses, reference: Any, raw: bool) -> _Rows:
    subject = analyses.subject
    names = distinct_names((subject.what(part) for part in subject.parts), most=60)
    samples = {name: _samples(analyses, i, raw) for i, name in enumerate(names)}
    scores: list[float | None] = [float(profile[analyses.main]) for profile in analyses.scores]
    if subject.several:
        labels = [part.label for part in subject.parts]
        named = subject.is_name(reference) and reference in labels
        other = names[labels.index(reference)] if named else reference
    else:
        other = reference
        own, found = _groups(analyses, samples[names[0]], raw)
        samples, scores = {**samples, **own}, [*scores, *found]
        groups = subject.groups
        if subject.is_name(reference) and groups is not None and reference in groups.labels:
            at = list(groups.labels).index(reference)
            other = list(own)[at] if own else None
    if raw and other is not None and not isinstance(other, str) and isinstance(subject.kernel, Embed):
        other = subject.kernel.encode(other.one() if isinstance(other, Collection) else other)
    return _Rows(samples, scores, other if raw else None)


def _samples(analyses: Analyses, i: int, raw: bool) -> Any:
    """The samples of a collection for metrics: as they were given, as vectors, or as positions."""
    subject = analyses.subject
    part = subject.parts[i]
    positions = part.items
    if raw and len(positions) > MOST and not subject.nested:
        draws = generator(subject.rng, "report metrics")
        positions = np.sort(draws.choice(positions, MOST, replace=False))
    if not raw:
        found: Any = positions
    elif subject.vectors is not None:
        found = take(subject.vectors, positions)
    elif subject.nested:
        return part.samples
    else:
        held = part.samples.samples if isinstance(part.samples, Collection) else part.samples
        whole = len(positions) == part.n
        start = sum(other.n for other in subject.parts[:i])
        found = held if whole else _taken(held, subject.origin[positions] - start)
    if part.weights is None:
        return found
    at = np.searchsorted(part.items, positions)
    weights = part.weights[at]
    return Collection(found, weights=weights / weights.sum())


def _taken(samples: Any, index: np.ndarray) -> Any:
    if isinstance(samples, Mapping) or _tables.is_records(samples):
        records = _tables.records(samples)
        return [records[i] for i in index.tolist()]
    return take(samples, index)


def _groups(analyses: Analyses, whole: Any, raw: bool) -> tuple[dict[str, Any], list[float | None]]:
    """Rows for the groups of a collection, where they are few and each item has one label."""
    subject, groups = analyses.subject, analyses.subject.groups
    plain = groups is not None and len(groups.items) == subject.n == len(subject.parts[0].items)
    if (
        not plain
        or subject.nested
        or subject.weights is not None
        or not 1 < len(groups.labels) <= GROUPS  # type: ignore[union-attr]
        or subject.n > MOST
        or _tables.has_columns(whole)
    ):
        return {}, []
    assert groups is not None
    comparison = analyses.comparison
    assert comparison is not None
    names = distinct_names(["all items", *groups.labels], most=60)[1:]
    places = [groups.items[groups.starts[g] : groups.starts[g + 1]] for g in range(len(groups.labels))]
    return (
        {name: take(whole, place) for name, place in zip(names, places, strict=True)},
        [finite(score) for score in comparison.scores],
    )
