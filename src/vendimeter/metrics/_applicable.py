"""Which metrics a table shows of a collection, in which columns, and how each is computed from what is given."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.kernels import (
    BLEU,
    Kernel,
    NGram,
)
from vendimeter.metrics import (
    chemistry,
    classes,
    discrepancy,
    frechet,
    graphs,
    lexical,
    manifolds,
    overlap,
    packing,
    quality,
    similarities,
    spectra,
    text_pairs,
)
from vendimeter.metrics._given import CLASSES, MOLECULES, OF_MOLECULES, TEXTS, VECTORS, Given
from vendimeter.metrics._rendering import DOWN, NEITHER, UP, Cell, Column
from vendimeter.metrics._results import Figures
from vendimeter.results import Score

__all__ = ["METRICS", "Entry", "cell_of"]


# --------------------------------------------------------------------------------------------------- the metrics


@dataclass(frozen=True)
class Entry:
    """A metric as a table shows it.

    Attributes
    ----------
    columns : tuple of Column
        Its columns.
    compute : callable
        What gives the figures of these columns, of a `Given` and the options of the metric.
    kinds : tuple of str
        The kinds of samples of which it is shown unasked.
    reference : bool
        Whether it needs a reference.
    kernel : bool
        Whether there is one such column a kernel.
    """

    columns: tuple[Column, ...]
    compute: Callable[..., Sequence[Any]]
    kinds: tuple[str, ...] = ()
    reference: bool = False
    kernel: bool = False


def _of_kernel(metric: Callable[..., Any], *, weighted: bool = True) -> Callable[..., Sequence[Any]]:
    """A metric of samples and a kernel, for one kernel."""

    def compute(given: Given, options: dict[str, Any], kernel: Kernel) -> Sequence[Any]:
        if given.groups:
            return (mean_cell([float(metric(group, kernel, **options)) for group in given.samples]),)
        if not weighted:
            given.unweighted(metric.__name__)
        elif given.weights is not None:
            options = {"weights": given.weights, **options}
        samples, kernel = given.under(kernel)
        return (metric(samples, kernel, **options),)

    return compute


def _of_features(
    metric: Callable[..., Any], names: Sequence[str] = (), *, moments: bool = False
) -> Callable[..., Sequence[Any]]:
    """A metric of the vectors of samples and of a reference."""

    def compute(given: Given, options: dict[str, Any]) -> Sequence[Any]:
        reference = given.against(metric.__name__)
        given.unweighted(metric.__name__)
        reference.unweighted(metric.__name__)
        pair = (given.moments, reference.moments) if moments else (given.vectors, reference.vectors)
        found = metric(*pair, **options)
        return [getattr(found, name) for name in names] if names else (found,)

    return compute


def _of_classes(metric: Callable[..., Any]) -> Callable[..., Sequence[Any]]:
    def compute(given: Given, options: dict[str, Any]) -> Sequence[Any]:
        given.unweighted(metric.__name__)
        return (metric(given.classes(metric.__name__), **{"logits": given.logits, **options}),)

    return compute


def _of_texts(metric: Callable[..., Any], *, reference: bool = False) -> Callable[..., Sequence[Any]]:
    known = inspect.signature(metric).parameters

    def compute(given: Given, options: dict[str, Any]) -> Sequence[Any]:
        given.unweighted(metric.__name__)
        others = (given.against(metric.__name__).samples,) if reference else ()
        usual = {"groups": given.groups} | _tokens_of(given.kernel, reference)
        usual = {name: value for name, value in usual.items() if name in known and value is not None}
        return (metric(given.samples, *others, **{**usual, **options}),)

    return compute


def _tokens_of(kernel: Kernel, reference: bool) -> dict[str, Any]:
    """The tokens and n-grams of a kernel, so that the metrics beside it count the same ones.

    BLEU against references has a tokenizer of its own, the standard one.
    """
    if isinstance(kernel, NGram):
        lengths = {"low": kernel.low, "high": kernel.high}
    elif isinstance(kernel, BLEU):
        lengths = {"n": kernel.n}
    else:
        return {}
    own = {} if reference and kernel.tokenizer is None else {"tokenizer": kernel.tokenizer}
    return {**lengths, **own, "lowercase": kernel.lowercase}


def _effective_rank(given: Given, options: dict[str, Any]) -> Sequence[Any]:
    given.unweighted("effective_rank")
    return (spectra.effective_rank(given.vectors, **options),)


def _of_molecules(given: Given, options: dict[str, Any]) -> Sequence[Any]:
    given.unweighted("molecules")
    kernel = {"kernel": given.kernel} if isinstance(given.kernel, OF_MOLECULES) else {}
    reference = None if given.reference is None else given.reference.raw
    found = chemistry.molecules(given.raw, reference, **{**kernel, **options})
    return [getattr(found, column.name) for column in METRICS["molecules"].columns]


METRICS: dict[str, Entry] = {
    "molecules": Entry(
        (
            Column("validity", "Valid", UP),
            Column("uniqueness", "Unique", UP),
            Column("novelty", "Novel", UP),
            Column("nearest_similarity", "SNN", NEITHER),
            Column("scaffolds", "Scaffolds", UP, whole=True),
        ),
        _of_molecules,
        (MOLECULES,),
    ),
    "inception_score": Entry(
        (Column("inception_score", "IS", UP),), _of_classes(classes.inception_score), (CLASSES,)
    ),
    "frechet_distance": Entry(
        (Column("frechet_distance", "FD", DOWN),),
        _of_features(frechet.frechet_distance, moments=True),
        (VECTORS,),
        reference=True,
    ),
    "kernel_distance": Entry(
        (Column("kernel_distance", "KD", DOWN),),
        _of_features(discrepancy.kernel_distance),
        (VECTORS,),
        reference=True,
    ),
    "precision_recall": Entry(
        (Column("precision", "Precision", UP), Column("recall", "Recall", UP)),
        _of_features(manifolds.precision_recall, ("precision", "recall")),
        (VECTORS,),
        reference=True,
    ),
    "density_coverage": Entry(
        (Column("density", "Density", UP), Column("coverage", "Coverage", UP)),
        _of_features(manifolds.density_coverage, ("density", "coverage")),
        (VECTORS,),
        reference=True,
    ),
    "memorization": Entry(
        (Column("memorization_rate", "Memorised", DOWN), Column("copies", "Copies", DOWN)),
        _of_features(manifolds.memorization, ("rate", "copies")),
        reference=True,
    ),
    "corpus_bleu": Entry(
        (Column("corpus_bleu", "BLEU", UP),), _of_texts(quality.corpus_bleu, reference=True), reference=True
    ),
    "ngram_diversity": Entry(
        (Column("ngram_diversity", "N-gram diversity", UP),), _of_texts(lexical.ngram_diversity), (TEXTS,)
    ),
    "self_bleu": Entry((Column("self_bleu", "Self-BLEU", DOWN),), _of_texts(overlap.self_bleu), (TEXTS,)),
    "pairwise_bleu": Entry(
        (Column("pairwise_bleu", "Pairwise BLEU", DOWN),), _of_texts(overlap.pairwise_bleu)
    ),
    "d_lex_sim": Entry((Column("d_lex_sim", "D-Lex-Sim", DOWN),), _of_texts(text_pairs.d_lex_sim)),
    "compression_ratio": Entry(
        (Column("compression_ratio", "Compression ratio", DOWN),),
        _of_texts(lexical.compression_ratio),
        (TEXTS,),
    ),
    "number_of_modes": Entry(
        (Column("number_of_modes", "Modes", UP, whole=True),),
        _of_classes(classes.number_of_modes),
        (CLASSES,),
    ),
    "mode_diversity": Entry(
        (Column("mode_diversity", "Mode diversity", UP),), _of_classes(classes.mode_diversity), (CLASSES,)
    ),
    "effective_rank": Entry((Column("effective_rank", "Effective rank", UP),), _effective_rank),
    "intdiv": Entry(
        (Column("intdiv", "IntDiv", UP),),
        _of_kernel(similarities.intdiv),
        (VECTORS, TEXTS, MOLECULES, CLASSES, "others"),
        kernel=True,
    ),
    "leinster_cobbold": Entry(
        (Column("leinster_cobbold", "Leinster–Cobbold", UP),),
        _of_kernel(similarities.leinster_cobbold),
        kernel=True,
    ),
    "log_det": Entry(
        (Column("log_det", "log det", UP),), _of_kernel(spectra.log_det, weighted=False), kernel=True
    ),
    "components": Entry(
        (Column("components", "Components", UP, whole=True),),
        _of_kernel(graphs.components, weighted=False),
        kernel=True,
    ),
    "circles": Entry(
        (Column("circles", "#Circles", UP, whole=True),),
        _of_kernel(packing.circles, weighted=False),
        kernel=True,
    ),
}


def mean_cell(values: Sequence[float]) -> Cell:
    """The mean of the figures of several groups, with its standard error."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
    return Cell(float(np.mean(values)), spread=error)


def cell_of(found: Any) -> Cell:
    """What a metric gave, as a figure of a table, with what is known of its error."""
    if found is None or isinstance(found, Cell):
        return found or Cell()
    if isinstance(found, packing.Circles):
        middle, width = (found.low + found.high) / 2, (found.high - found.low) / 2
        return Cell(middle if width else found.low, found.low, found.high, width or None)
    if not isinstance(found, Score | Figures):
        return Cell(int(found) if isinstance(found, int | np.integer) else float(found))
    low, high = getattr(found, "bounds", (getattr(found, "low", None), getattr(found, "high", None)))
    if getattr(found, "level", None) == "none" and not hasattr(found, "std"):  # nothing is claimed of it
        low = high = None
    value = float(found)  # type: ignore[arg-type]
    spread = getattr(found, "standard_error", getattr(found, "std", None))
    if low is not None and high is not None and math.isfinite(high - low):
        spread = (high - low) / 2
    return Cell(int(found) if isinstance(found, int) else value, low, high, spread)
