"""The metrics that a table can show: their columns, for which samples they are shown, and how each is computed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vendimeter.data.arrays import length
from vendimeter.errors import EmptyError, InputError
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
from vendimeter.metrics.inputs import CLASSES, MOLECULES, OF_MOLECULES, TEXTS, VECTORS, CollectionView
from vendimeter.metrics.texts import mean_over_groups
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
from vendimeter.results.score import Score, order_name

__all__ = ["METRICS", "SCORE", "Entry", "cell_of", "check_options", "columns_of", "options_of"]


@dataclass(frozen=True)
class Entry:
    """A metric as a table shows it.

    Attributes
    ----------
    columns : tuple of Column
        Its columns.
    compute : callable
        The function that computes the figures of these columns from a `CollectionView` and the options of the metric.
    kinds : tuple of str
        The kinds of samples for which it is shown by default.
    reference : bool
        Whether it needs a reference.
    kernel : bool
        Whether there is a column for each kernel.
    applies : callable
        Whether the metric is defined for a collection.
    name : str
        The name of the metric.
    """

    columns: tuple[Column, ...]
    compute: Callable[..., Sequence[Any]]
    kinds: tuple[str, ...] = ()
    reference: bool = False
    kernel: bool = False
    applies: Callable[[CollectionView], bool] = lambda view: True
    name: str = ""

    def with_title(self, title: str) -> Entry:
        """The metric with the user's title."""
        column, *others = self.columns
        if others:
            raise InputError(
                f"metrics has the title {brief(title)} for {self.name}, which has the columns "
                f"{', '.join(column.title for column in self.columns)}; expected its own name: {{{self.name!r}: None}}."
            )
        return replace(self, columns=(replace(column, name=title, title=title),))


def _kernel_metric(metric: Callable[..., Any], *, weighted: bool = True) -> Callable[..., Sequence[Any]]:
    """Adapt a metric of samples and a kernel."""

    def compute(view: CollectionView, options: dict[str, Any], kernel: Kernel) -> Sequence[Any]:
        samples, kernel = view.compared_by(kernel)
        if view.groups:
            return (_mean_cell(samples, lambda group: metric(group, kernel, **options)),)
        if not weighted:
            view.refuse_weights(metric.__name__)
        elif view.weights is not None:
            options = {"weights": view.weights, **options}
        return (metric(samples, kernel, **options),)

    return compute


def _reference_metric(metric: Callable[..., Any], names: Sequence[str] = ()) -> Callable[..., Sequence[Any]]:
    """Adapt a metric of the vectors of samples and of a reference."""

    def compute(view: CollectionView, options: dict[str, Any]) -> Sequence[Any]:
        reference = view.required_reference(metric.__name__)
        view.refuse_weights(metric.__name__)
        vectors = view.vectors
        with about("reference"):
            reference_vectors = reference.vectors
        result = metric(vectors, reference_vectors, **options)
        return [getattr(result, name) for name in names] if names else (result,)

    return compute


def _class_metric(metric: Callable[..., Any], *, weighted: bool = False) -> Callable[..., Sequence[Any]]:
    """Adapt a metric of class probabilities."""

    def compute(view: CollectionView, options: dict[str, Any]) -> Sequence[Any]:
        if not weighted:
            view.refuse_weights(metric.__name__)
        elif view.weights is not None:
            options = {"weights": view.weights, **options}
        return (metric(view.required_probabilities(metric.__name__), **{"logits": view.logits, **options}),)

    return compute


def _text_metric(metric: Callable[..., Any], *, reference: bool = False) -> Callable[..., Sequence[Any]]:
    """Adapt a metric of texts."""
    parameters = inspect.signature(metric).parameters

    def compute(view: CollectionView, options: dict[str, Any]) -> Sequence[Any]:
        view.refuse_weights(metric.__name__)
        references = (view.required_reference(metric.__name__).samples,) if reference else ()
        defaults = {"groups": view.groups} | _token_options(view.first_kernel(NGram, BLEU), reference)
        defaults = {
            name: value for name, value in defaults.items() if name in parameters and value is not None
        }
        return (metric(view.samples, *references, **{**defaults, **options}),)

    return compute


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


def _has_pairs(view: CollectionView) -> bool:
    """Whether there are two texts to compare, in one group where there are groups."""
    return any(len(group) > 1 for group in view.samples) if view.groups else view.n > 1


def _vector_metric(metric: Callable[..., Any]) -> Callable[..., Sequence[Any]]:
    """Adapt a metric of the vectors of samples alone."""

    def compute(view: CollectionView, options: dict[str, Any]) -> Sequence[Any]:
        view.refuse_weights(metric.__name__)
        return (metric(view.vectors, **options),)

    return compute


def _birthday_paradox(view: CollectionView, options: dict[str, Any], kernel: Kernel) -> Sequence[Any]:
    if view.groups:
        raise InputError(
            "birthday_paradox expected independent samples, and those of one group are not; leave it out of metrics=, "
            "or pass one text a group."
        )
    return _kernel_metric(collisions.birthday_paradox, weighted=False)(view, options, kernel)


def _grid_coverage(view: CollectionView, options: dict[str, Any]) -> Sequence[Any]:
    if options.get("quality") is not None:
        raise InputError(
            "grid_coverage shows no QD-score in a table, where quality= would be that of every collection; leave it "
            "out, or pass a function of your own, metrics={'QD-score': lambda samples: …}."
        )
    return _vector_metric(grids.grid_coverage)(view, options)


def _molecule_figures(view: CollectionView, options: dict[str, Any]) -> Sequence[Any]:
    view.refuse_weights("molecules")
    fingerprint = view.first_kernel(*OF_MOLECULES)
    kernel = {} if fingerprint is None else {"kernel": fingerprint}
    reference = None if view.reference is None else view.required_reference("molecules").original
    figures = chemistry.molecules(view.original, reference, **{**kernel, **options})
    need_reference = ("novelty", "nearest_similarity")
    return [
        None if reference is None and column.name in need_reference else getattr(figures, column.name)
        for column in METRICS["molecules"].columns
    ]


METRICS: dict[str, Entry] = {
    "molecules": Entry(
        (
            Column("validity", "Valid", UP),
            Column("uniqueness", "Unique", UP),
            Column("novelty", "Novel", UP),
            Column("nearest_similarity", "SNN", NEITHER),
            Column("scaffolds", "Scaffolds", UP, whole=True),
        ),
        _molecule_figures,
        (MOLECULES,),
    ),
    "inception_score": Entry(
        (Column("inception_score", "IS", UP),), _class_metric(classes.inception_score), (CLASSES,)
    ),
    "frechet_distance": Entry(
        (Column("frechet_distance", "FD", DOWN),),
        _reference_metric(frechet.frechet_distance),
        (VECTORS,),
        reference=True,
    ),
    "kernel_distance": Entry(
        (Column("kernel_distance", "KD", DOWN),),
        _reference_metric(discrepancy.kernel_distance),
        (VECTORS,),
        reference=True,
    ),
    "precision_recall": Entry(
        (Column("precision", "Precision", UP), Column("recall", "Recall", UP)),
        _reference_metric(manifolds.precision_recall, ("precision", "recall")),
        (VECTORS,),
        reference=True,
    ),
    "density_coverage": Entry(
        (Column("density", "Density", UP), Column("coverage", "Coverage", UP)),
        _reference_metric(manifolds.density_coverage, ("density", "coverage")),
        (VECTORS,),
        reference=True,
    ),
    "memorization": Entry(
        (Column("memorization_rate", "Memorised", DOWN), Column("copies", "Copies", DOWN)),
        _reference_metric(manifolds.memorization, ("rate", "copies")),
        reference=True,
    ),
    "precision_recall_curve": Entry(
        (Column("f_precision", "PRD precision", UP), Column("f_recall", "PRD recall", UP)),
        _reference_metric(precision_curves.precision_recall_curve, ("f_precision", "f_recall")),
        reference=True,
    ),
    "corpus_bleu": Entry(
        (Column("corpus_bleu", "BLEU", UP),),
        _text_metric(quality.corpus_bleu, reference=True),
        reference=True,
    ),
    "ngram_diversity": Entry(
        (Column("ngram_diversity", "N-gram diversity", UP),), _text_metric(lexical.ngram_diversity), (TEXTS,)
    ),
    "self_bleu": Entry(
        (Column("self_bleu", "Self-BLEU", DOWN),),
        _text_metric(overlap.self_bleu),
        (TEXTS,),
        applies=_has_pairs,
    ),
    "pairwise_bleu": Entry(
        (Column("pairwise_bleu", "Pairwise BLEU", DOWN),), _text_metric(overlap.pairwise_bleu)
    ),
    "d_lex_sim": Entry((Column("d_lex_sim", "D-Lex-Sim", DOWN),), _text_metric(overlap.d_lex_sim)),
    "compression_ratio": Entry(
        (Column("compression_ratio", "Compression ratio", DOWN),),
        _text_metric(lexical.compression_ratio),
        (TEXTS,),
    ),
    "number_of_modes": Entry(
        (Column("number_of_modes", "Modes", UP, whole=True),),
        _class_metric(classes.number_of_modes),
        (CLASSES,),
    ),
    "mode_diversity": Entry(
        (Column("mode_diversity", "Mode diversity", UP),),
        _class_metric(classes.mode_diversity, weighted=True),
        (CLASSES,),
    ),
    "jensen_shannon_diversity": Entry(
        (Column("jensen_shannon_diversity", "exp JSD", UP),),
        _class_metric(classes.jensen_shannon_diversity, weighted=True),
    ),
    "effective_rank": Entry(
        (Column("effective_rank", "Effective rank", UP),), _vector_metric(spectra.effective_rank)
    ),
    "grid_coverage": Entry((Column("grid_coverage", "Grid coverage", UP),), _grid_coverage),
    "intdiv": Entry(
        (Column("intdiv", "IntDiv", UP),),
        _kernel_metric(similarities.intdiv),
        (VECTORS, TEXTS, MOLECULES, CLASSES, "others"),
        kernel=True,
    ),
    "leinster_cobbold": Entry(
        (Column("leinster_cobbold", "Leinster–Cobbold", UP),),
        _kernel_metric(similarities.leinster_cobbold),
        kernel=True,
    ),
    "log_det": Entry(
        (Column("log_det", "log det", UP),), _kernel_metric(spectra.log_det, weighted=False), kernel=True
    ),
    "components": Entry(
        (Column("components", "Components", UP, whole=True),),
        _kernel_metric(graphs.components, weighted=False),
        kernel=True,
    ),
    "circles": Entry(
        (Column("circles", "#Circles", UP, whole=True),),
        _kernel_metric(packing.circles, weighted=False),
        kernel=True,
    ),
    "birthday_paradox": Entry(
        (Column("birthday_paradox", "Birthday paradox", UP),), _birthday_paradox, kernel=True
    ),
}
METRICS = {name: replace(entry, name=name) for name, entry in METRICS.items()}
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
    if not metric.kernel or len(kernels) == 1:
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


def check_options(name: str, title: str, options: Mapping[Any, Any]) -> None:
    """Refuse options that a metric does not have, and to do without those that it needs."""
    parameters = options_of(name)
    unknown_option = next((option for option in options if option not in parameters), None)
    if unknown_option is not None:
        raise unknown(f"option of {name} in a table", unknown_option, list(parameters))
    required = (option for option, parameter in parameters.items() if parameter.default is parameter.empty)
    missing = next((option for option in required if option not in options), None)
    if missing is not None:
        raise InputError(
            f"{name} needs the option {missing}; expected options={{{title!r}: {{{missing!r}: …}}}}."
        )


def options_of(name: str) -> dict[str, inspect.Parameter]:
    """The options of a metric that users may set in a table."""
    from vendimeter import metrics

    parameters = inspect.signature(getattr(metrics, name)).parameters
    own_kernel = name == "d_lex_sim"  # its kernel is not one of the table's
    return {
        option: parameter
        for option, parameter in parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY or (own_kernel and option == "kernel")
    }


def _mean_cell(groups: Sequence[Any], metric: Callable[[Any], Any]) -> Cell:
    """The mean of a metric over the groups that have items, with its standard error."""
    values = []
    for g, group in enumerate(groups):
        if length(group):
            with in_group(g):
                values.append(float(metric(group)))
    if not values:
        raise EmptyError("every group is empty; expected at least one item.")
    mean, error, _ = mean_over_groups(np.array(values))
    return Cell(mean, spread=error, behind=OVER_GROUPS)


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
