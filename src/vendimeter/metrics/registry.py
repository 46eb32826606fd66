"""The metrics that a table can show: their columns, for which samples they are shown, and how each is computed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vendimeter.diversity import Diversity
from vendimeter.errors import InputError
from vendimeter.kernels import BLEU, Kernel, NGram
from vendimeter.messages import about, brief, in_group, unknown
from vendimeter.metrics import (
    chemistry,
    classes,
    collisions,
    discrepancy,
    frechet,
    graphs,
    grids,
    lexical,
    manifolds,
    overlap,
    packing,
    precision_curves,
    quality,
    similarities,
    spectra,
)
from vendimeter.metrics.inputs import CLASSES, MOLECULES, OF_MOLECULES, SIMILARITY, TEXTS, VECTORS, Row
from vendimeter.metrics.texts import mean_over_groups
from vendimeter.present.numbers import order_name
from vendimeter.present.tables import (
    COMPUTED,
    DOWN,
    NEITHER,
    OVER_GROUPS,
    OVER_SPLITS,
    SAMPLED,
    UP,
    Cell,
    Column,
)
from vendimeter.results.base import Figures
from vendimeter.results.score import Score

__all__ = ["METRICS", "SCORE", "Entry", "cell_of", "check_options", "columns_of"]


@dataclass(frozen=True)
class Entry:
    """A metric as a table shows it.

    Attributes
    ----------
    metric : callable
        The function of `vendimeter.metrics`.
    reads : str
        What it is a function of: the "similarity" of the samples under each kernel, "vectors", "texts", "molecules",
        or class probabilities ("classes").
    columns : tuple of Column
        Its columns.
    figures : tuple of str
        The attributes of its result that the columns show; empty where they show the result itself.
    default : bool
        Whether it is shown without being asked for, of samples that have what it reads.
    reference : bool
        Whether it compares with a reference.
    weighted : bool
        Whether it takes weights.
    applies : callable
        Whether it is defined for a row.
    check : callable
        Refuses a row, or options, that it takes by itself, but not in a table.
    """

    metric: Callable[..., Any]
    reads: str
    columns: tuple[Column, ...]
    figures: tuple[str, ...] = ()
    default: bool = False
    reference: bool = False
    weighted: bool = False
    applies: Callable[[Row], bool] = lambda row: True
    check: Callable[[Row, Mapping[str, Any]], None] = lambda row, options: None

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.metric.__name__

    def with_title(self, title: str) -> Entry:
        """The metric with the user's title."""
        column, *others = self.columns
        if others:
            raise InputError(
                f"metrics has the title {brief(title)} for {self.name}, which has the columns "
                f"{', '.join(column.title for column in self.columns)}; expected its own name: {{{self.name!r}: None}}."
            )
        return replace(self, columns=(replace(column, name=title, title=title),))

    def options(self) -> dict[str, inspect.Parameter]:
        """The options that users may set in a table: not those that a row, or the table, has already."""
        taken = ("weights", "counts", "rng") if self.reads == SIMILARITY else ()
        own_kernel = self.name == "d_lex_sim"  # its kernel is not one of the table's
        return {
            option: parameter
            for option, parameter in inspect.signature(self.metric).parameters.items()
            if (parameter.kind is parameter.KEYWORD_ONLY or (own_kernel and option == "kernel"))
            and option not in taken
        }

    def figures_of(self, row: Row, options: dict[str, Any]) -> list[Any]:
        """The figures of a row, one a column; of similarities, for each kernel."""
        self.check(row, options)
        if not self.weighted:
            row.refuse_weights(self.name)
        if self.reads == SIMILARITY:
            return [self._of_similarity(row, row.diversity(kernel), options) for kernel in row.kernels]
        reference = row.required_reference(self.name) if self.reference else None
        if self.reads == CLASSES:
            given = {"logits": row.logits} | ({} if row.weights is None else {"weights": row.weights})
            result = self.metric(row.required_probabilities(self.name), **{**given, **options})
        elif self.reads == TEXTS:
            result = self._of_texts(row, reference, options)
        elif self.reads == MOLECULES:
            return self._of_molecules(row, options)
        elif reference is None:
            result = self.metric(row.vectors, **options)
        else:
            vectors = row.vectors
            with about("reference"):
                reference_vectors = reference.vectors
            result = self.metric(vectors, reference_vectors, **options)
        return [getattr(result, name) for name in self.figures] or [result]

    def _of_similarity(self, row: Row, diversity: Diversity, options: dict[str, Any]) -> Any:
        """The figure of the samples as one kernel sees them; of groups the mean, with its standard error."""
        if not row.groups:
            return self.metric(diversity, **options)
        groups, values = diversity.required_groups(), []
        for label, members in zip(groups.labels, np.split(groups.items, groups.starts[1:-1]), strict=True):
            with in_group(label):
                values.append(float(self.metric(diversity.take(members), **options)))
        mean, error, _ = mean_over_groups(np.array(values))
        return Cell(mean, spread=error, behind=OVER_GROUPS)

    def _of_texts(self, row: Row, reference: Row | None, options: dict[str, Any]) -> Any:
        """The figure of texts, with the tokens of the first kernel of texts."""
        parameters = inspect.signature(self.metric).parameters
        given = {"groups": row.groups} | _token_options(row.first_kernel(NGram, BLEU), self.reference)
        given = {name: value for name, value in given.items() if name in parameters and value is not None}
        if reference is not None:
            return self.metric(row.samples, reference.samples, **{**given, **options})
        if "groups" in parameters and not {"by", "groups"} & options.keys():
            given.pop("groups", None)
            return self.metric(row.grouped_texts(self.name), **{**given, **options})
        return self.metric(row.samples, **{**given, **options})

    def _of_molecules(self, row: Row, options: dict[str, Any]) -> list[Any]:
        """The figures of molecules, with the fingerprints of the first kernel of molecules."""
        fingerprint = row.first_kernel(*OF_MOLECULES)
        given = {} if fingerprint is None else {"kernel": fingerprint}
        reference = None if row.reference is None else row.required_reference(self.name).original
        result = self.metric(row.original, reference, **{**given, **options})
        need_reference = ("novelty", "nearest_similarity")
        return [
            None if reference is None and name in need_reference else getattr(result, name)
            for name in self.figures
        ]


def _token_options(kernel: NGram | BLEU | None, reference: bool) -> dict[str, Any]:
    """The options of tokens and n-grams of a kernel, so that the metrics beside it count the same ones.

    BLEU against references keeps its own tokens, the standard ones, unless the kernel was given a tokenizer.
    """
    if kernel is None:
        return {}
    lengths = {"low": kernel.low, "high": kernel.high} if isinstance(kernel, NGram) else {"n": kernel.n}
    if reference and kernel.tokenizer is None:
        return lengths
    return {**lengths, "tokenizer": kernel.tokenizer, "lowercase": kernel.lowercase}


def _has_pairs(row: Row) -> bool:
    """Whether there are two texts to compare, in one group where there are groups."""
    return any(len(group) > 1 for group in row.samples) if row.groups else row.n > 1


def _refuse_groups(row: Row, options: Mapping[str, Any]) -> None:
    if row.groups:
        raise InputError(
            "birthday_paradox expected independent samples, and those of one group are not; leave it out of metrics=, "
            "or pass one text a group."
        )


def _refuse_quality(row: Row, options: Mapping[str, Any]) -> None:
    if options.get("quality") is not None:
        raise InputError(
            "grid_coverage shows no QD-score in a table, where quality= would be that of every collection; leave it "
            "out, or pass a function of your own, metrics={'QD-score': lambda samples: …}."
        )


METRICS = {
    entry.name: entry
    for entry in (
        Entry(
            chemistry.molecules,
            MOLECULES,
            (
                Column("validity", "Valid", UP),
                Column("uniqueness", "Unique", UP),
                Column("novelty", "Novel", UP),
                Column("nearest_similarity", "SNN", NEITHER),
                Column("scaffolds", "Scaffolds", UP, whole=True),
            ),
            figures=("validity", "uniqueness", "novelty", "nearest_similarity", "scaffolds"),
            default=True,
        ),
        Entry(classes.inception_score, CLASSES, (Column("inception_score", "IS", UP),), default=True),
        Entry(
            frechet.frechet_distance,
            VECTORS,
            (Column("frechet_distance", "FD", DOWN),),
            default=True,
            reference=True,
        ),
        Entry(
            discrepancy.kernel_distance,
            VECTORS,
            (Column("kernel_distance", "KD", DOWN),),
            default=True,
            reference=True,
        ),
        Entry(
            manifolds.precision_recall,
            VECTORS,
            (Column("precision", "Precision", UP), Column("recall", "Recall", UP)),
            figures=("precision", "recall"),
            default=True,
            reference=True,
        ),
        Entry(
            manifolds.density_coverage,
            VECTORS,
            (Column("density", "Density", UP), Column("coverage", "Coverage", UP)),
            figures=("density", "coverage"),
            default=True,
            reference=True,
        ),
        Entry(
            manifolds.memorization,
            VECTORS,
            (Column("memorization_rate", "Memorised", DOWN), Column("copies", "Copies", DOWN)),
            figures=("rate", "copies"),
            reference=True,
        ),
        Entry(
            precision_curves.precision_recall_curve,
            VECTORS,
            (Column("f_precision", "PRD precision", UP), Column("f_recall", "PRD recall", UP)),
            figures=("f_precision", "f_recall"),
            reference=True,
        ),
        Entry(quality.corpus_bleu, TEXTS, (Column("corpus_bleu", "BLEU", UP),), reference=True),
        Entry(
            lexical.ngram_diversity, TEXTS, (Column("ngram_diversity", "N-gram diversity", UP),), default=True
        ),
        Entry(
            overlap.self_bleu,
            TEXTS,
            (Column("self_bleu", "Self-BLEU", DOWN),),
            default=True,
            applies=_has_pairs,
        ),
        Entry(overlap.pairwise_bleu, TEXTS, (Column("pairwise_bleu", "Pairwise BLEU", DOWN),)),
        Entry(overlap.d_lex_sim, TEXTS, (Column("d_lex_sim", "D-Lex-Sim", DOWN),)),
        Entry(
            lexical.compression_ratio,
            TEXTS,
            (Column("compression_ratio", "Compression ratio", DOWN),),
            default=True,
        ),
        Entry(
            classes.number_of_modes,
            CLASSES,
            (Column("number_of_modes", "Modes", UP, whole=True),),
            default=True,
        ),
        Entry(
            classes.mode_diversity,
            CLASSES,
            (Column("mode_diversity", "Mode diversity", UP),),
            default=True,
            weighted=True,
        ),
        Entry(
            classes.jensen_shannon_diversity,
            CLASSES,
            (Column("jensen_shannon_diversity", "exp JSD", UP),),
            weighted=True,
        ),
        Entry(spectra.effective_rank, VECTORS, (Column("effective_rank", "Effective rank", UP),)),
        Entry(
            grids.grid_coverage,
            VECTORS,
            (Column("grid_coverage", "Grid coverage", UP),),
            check=_refuse_quality,
        ),
        Entry(
            similarities.intdiv, SIMILARITY, (Column("intdiv", "IntDiv", UP),), default=True, weighted=True
        ),
        Entry(
            similarities.leinster_cobbold,
            SIMILARITY,
            (Column("leinster_cobbold", "Leinster–Cobbold", UP),),
            weighted=True,
        ),
        Entry(spectra.log_det, SIMILARITY, (Column("log_det", "log det", UP),)),
        Entry(graphs.components, SIMILARITY, (Column("components", "Components", UP, whole=True),)),
        Entry(packing.circles, SIMILARITY, (Column("circles", "#Circles", UP, whole=True),)),
        Entry(
            collisions.birthday_paradox,
            SIMILARITY,
            (Column("birthday_paradox", "Birthday paradox", UP),),
            check=_refuse_groups,
        ),
    )
}
SCORE = object()  # the sentinel of the Vendi Score among the metrics


def columns_of(
    chosen: Mapping[str, Any], kernels: Mapping[str, Kernel], orders: Sequence[float]
) -> list[Column]:
    """All columns; no two of them have one name."""
    columns = [Column("n", "n", whole=True)]
    for title, metric in chosen.items():
        if metric is not SCORE:
            columns += _metric_columns(metric, title, kernels)
            continue
        for name in kernels:
            columns += _score_columns(name, orders, alone=len(kernels) == 1)
        if title != "vendi_score" and len(kernels) == len(orders) == 1:
            columns[-1] = replace(columns[-1], title=title)
    names = ["collection", *(column.name for column in columns)]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise InputError(
            f"two columns would have the name {brief(duplicate)}; expected different ones. Give your metric, or your "
            "kernel, another name."
        )
    return columns


def _metric_columns(metric: Any, title: str, kernels: Mapping[str, Kernel]) -> list[Column]:
    """The columns of a metric, for each kernel where it depends on that."""
    if not isinstance(metric, Entry):
        return [Column(title, title)]
    if metric.reads != SIMILARITY or len(kernels) == 1:
        return list(metric.columns)
    return [
        replace(column, name=f"{column.name}_{name}", title=f"{column.title} ({name})")
        for name in kernels
        for column in metric.columns
    ]


def _score_columns(title: str, orders: Sequence[float], *, alone: bool) -> list[Column]:
    columns = []
    for q in orders:
        suffix = "" if q == 1 else f"_q{order_name(q)}"
        header = "VS" if q == 1 else f"VS q={order_name(q)}"
        columns.append(
            Column(
                f"vendi_score{suffix}" + ("" if alone else f"_{title}"),
                header if alone else f"{header} ({title})",
                UP,
            )
        )
    return columns


def check_options(entry: Entry, title: str, options: Mapping[Any, Any]) -> None:
    """Refuse options that a metric does not have in a table, and to do without those that it needs."""
    parameters = entry.options()
    unknown_option = next((option for option in options if option not in parameters), None)
    if unknown_option is not None:
        raise unknown(f"option of {entry.name} in a table", unknown_option, list(parameters))
    required = (option for option, parameter in parameters.items() if parameter.default is parameter.empty)
    missing = next((option for option in required if option not in options), None)
    if missing is not None:
        raise InputError(
            f"{entry.name} needs the option {missing}; expected options={{{title!r}: {{{missing!r}: …}}}}."
        )


def cell_of(figure: Any) -> Cell:
    """The cell of a table for a figure that a metric returned, with its bounds or its standard deviation."""
    if figure is None or isinstance(figure, Cell):
        return figure or Cell()
    if isinstance(figure, packing.Circles):
        centre, width = (figure.low + figure.high) / 2, (figure.high - figure.low) / 2
        return Cell(centre if width else figure.low, figure.low, figure.high, width or None, COMPUTED)
    if not isinstance(figure, Score | Figures):
        return Cell(int(figure) if isinstance(figure, int | np.integer) else float(figure))
    value = int(figure) if isinstance(figure, int) else float(figure)  # type: ignore[arg-type]
    if hasattr(figure, "standard_error"):
        return Cell(value, spread=figure.standard_error, behind=OVER_GROUPS)  # type: ignore[union-attr]
    low, high = getattr(figure, "bounds", (getattr(figure, "low", None), getattr(figure, "high", None)))
    if low is None or high is None or math.isnan(high - low) or getattr(figure, "level", None) == "none":
        std = getattr(figure, "std", math.nan)
        return Cell(value) if math.isnan(std) else Cell(value, spread=std, behind=OVER_SPLITS)
    # Bounds need not be symmetric about the figure: ± is the larger distance.
    spread = max(high - value, value - low)
    sampled = isinstance(figure, discrepancy.KernelDistance | collisions.BirthdayParadox)
    return Cell(value, low, high, spread, SAMPLED if sampled else COMPUTED)
