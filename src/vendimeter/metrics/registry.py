"""Which metrics a table shows of a collection, in which columns, and how each is computed from what is given."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vendimeter.data.arrays import length
from vendimeter.errors import EmptyError, InputError, about, brief, in_group, unknown
from vendimeter.kernels import BLEU, Kernel, NGram
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
from vendimeter.metrics import (
    overlap as text_pairs,
)
from vendimeter.metrics.inputs import CLASSES, MOLECULES, OF_MOLECULES, TEXTS, VECTORS, Given
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
    applies : callable
        Whether a collection has enough for it.
    name : str
        The name of the metric.
    """

    columns: tuple[Column, ...]
    compute: Callable[..., Sequence[Any]]
    kinds: tuple[str, ...] = ()
    reference: bool = False
    kernel: bool = False
    applies: Callable[[Given], bool] = lambda given: True
    name: str = ""

    def titled(self, title: str) -> Entry:
        """The metric under a title of the user's own."""
        column, *others = self.columns
        if others:
            raise InputError(
                f"metrics has the title {brief(title)} for {self.name}, which has the columns "
                f"{', '.join(column.title for column in self.columns)}; expected its own name: {{{self.name!r}: None}}."
            )
        return replace(self, columns=(replace(column, name=title, title=title),))


def _of_kernel(metric: Callable[..., Any], *, weighted: bool = True) -> Callable[..., Sequence[Any]]:
    """A metric of samples and a kernel, for one kernel."""

    def compute(given: Given, options: dict[str, Any], kernel: Kernel) -> Sequence[Any]:
        samples, kernel = given.under(kernel)
        if given.groups:
            return (_mean_cell(samples, lambda group: metric(group, kernel, **options)),)
        if not weighted:
            given.unweighted(metric.__name__)
        elif given.weights is not None:
            options = {"weights": given.weights, **options}
        return (metric(samples, kernel, **options),)

    return compute


def _of_features(metric: Callable[..., Any], names: Sequence[str] = ()) -> Callable[..., Sequence[Any]]:
    """A metric of the vectors of samples and of a reference."""

    def compute(given: Given, options: dict[str, Any]) -> Sequence[Any]:
        reference = given.against(metric.__name__)
        given.unweighted(metric.__name__)
        own = given.vectors
        with about("reference"):
            others = reference.vectors
        found = metric(own, others, **options)
        return [getattr(found, name) for name in names] if names else (found,)

    return compute


def _of_classes(metric: Callable[..., Any], *, weighted: bool = False) -> Callable[..., Sequence[Any]]:
    def compute(given: Given, options: dict[str, Any]) -> Sequence[Any]:
        if not weighted:
            given.unweighted(metric.__name__)
        elif given.weights is not None:
            options = {"weights": given.weights, **options}
        return (metric(given.classes(metric.__name__), **{"logits": given.logits, **options}),)

    return compute


def _of_texts(metric: Callable[..., Any], *, reference: bool = False) -> Callable[..., Sequence[Any]]:
    known = inspect.signature(metric).parameters

    def compute(given: Given, options: dict[str, Any]) -> Sequence[Any]:
        given.unweighted(metric.__name__)
        others = (given.against(metric.__name__).samples,) if reference else ()
        usual = {"groups": given.groups} | _tokens_of(given.first(NGram, BLEU), reference)
        usual = {name: value for name, value in usual.items() if name in known and value is not None}
        return (metric(given.samples, *others, **{**usual, **options}),)

    return compute


def _tokens_of(kernel: NGram | BLEU | None, reference: bool) -> dict[str, Any]:
    """The tokens and n-grams of a kernel, so that the metrics beside it count the same ones.

    BLEU against references keeps its own tokens, the standard ones, unless the kernel was given a tokenizer.
    """
    if kernel is None:
        return {}
    lengths = {"low": kernel.low, "high": kernel.high} if isinstance(kernel, NGram) else {"n": kernel.n}
    if reference and kernel.tokenizer is None:
        return lengths
    return {**lengths, "tokenizer": kernel.tokenizer, "lowercase": kernel.lowercase}


def _several(given: Given) -> bool:
    """Whether a text has another one beside it."""
    return any(len(group) > 1 for group in given.samples) if given.groups else given.n > 1


def _of_vectors(metric: Callable[..., Any]) -> Callable[..., Sequence[Any]]:
    """A metric of the vectors of samples alone."""

    def compute(given: Given, options: dict[str, Any]) -> Sequence[Any]:
        given.unweighted(metric.__name__)
        return (metric(given.vectors, **options),)

    return compute


def _birthday_paradox(given: Given, options: dict[str, Any], kernel: Kernel) -> Sequence[Any]:
    if given.groups:
        raise InputError(
            "birthday_paradox expected independent samples, and those of one group are not; leave it out of metrics=, "
            "or pass one text a group."
        )
    return _of_kernel(collisions.birthday_paradox, weighted=False)(given, options, kernel)


def _grid_coverage(given: Given, options: dict[str, Any]) -> Sequence[Any]:
    if options.get("quality") is not None:
        raise InputError(
            "grid_coverage shows no QD-score in a table, where quality= would be that of every collection; leave it "
            "out, or pass a function of your own, metrics={'QD-score': lambda samples: …}."
        )
    return _of_vectors(grids.grid_coverage)(given, options)


def _of_molecules(given: Given, options: dict[str, Any]) -> Sequence[Any]:
    given.unweighted("molecules")
    own = given.first(*OF_MOLECULES)
    kernel = {} if own is None else {"kernel": own}
    reference = None if given.reference is None else given.against("molecules").raw
    found = chemistry.molecules(given.raw, reference, **{**kernel, **options})
    compared = ("novelty", "nearest_similarity")
    return [
        None if reference is None and column.name in compared else getattr(found, column.name)
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
        _of_molecules,
        (MOLECULES,),
    ),
    "inception_score": Entry(
        (Column("inception_score", "IS", UP),), _of_classes(classes.inception_score), (CLASSES,)
    ),
    "frechet_distance": Entry(
        (Column("frechet_distance", "FD", DOWN),),
        _of_features(frechet.frechet_distance),
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
    "precision_recall_curve": Entry(
        (Column("f_precision", "PRD precision", UP), Column("f_recall", "PRD recall", UP)),
        _of_features(precision_curves.precision_recall_curve, ("f_precision", "f_recall")),
        reference=True,
    ),
    "corpus_bleu": Entry(
        (Column("corpus_bleu", "BLEU", UP),), _of_texts(quality.corpus_bleu, reference=True), reference=True
    ),
    "ngram_diversity": Entry(
        (Column("ngram_diversity", "N-gram diversity", UP),), _of_texts(lexical.ngram_diversity), (TEXTS,)
    ),
    "self_bleu": Entry(
        (Column("self_bleu", "Self-BLEU", DOWN),), _of_texts(overlap.self_bleu), (TEXTS,), applies=_several
    ),
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
        (Column("mode_diversity", "Mode diversity", UP),),
        _of_classes(classes.mode_diversity, weighted=True),
        (CLASSES,),
    ),
    "jensen_shannon_diversity": Entry(
        (Column("jensen_shannon_diversity", "exp JSD", UP),),
        _of_classes(classes.jensen_shannon_diversity, weighted=True),
    ),
    "effective_rank": Entry(
        (Column("effective_rank", "Effective rank", UP),), _of_vectors(spectra.effective_rank)
    ),
    "grid_coverage": Entry((Column("grid_coverage", "Grid coverage", UP),), _grid_coverage),
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
    "birthday_paradox": Entry(
        (Column("birthday_paradox", "Birthday paradox", UP),), _birthday_paradox, kernel=True
    ),
}
METRICS = {name: replace(entry, name=name) for name, entry in METRICS.items()}
SCORE = object()  # stands among them for the Vendi Score itself


def columns_of(
    chosen: Mapping[str, Any], kernels: Mapping[str, Kernel], orders: Sequence[float]
) -> list[Column]:
    """All columns; no two of them have one name."""
    columns = [Column("n", "n", whole=True)]
    for title, metric in chosen.items():
        if metric is not SCORE:
            columns += _titled(metric, title, kernels)
            continue
        for name in kernels:
            columns += _score_columns(name, orders, alone=len(kernels) == 1)
        if title != "vendi_score" and len(kernels) == len(orders) == 1:
            columns[-1] = replace(columns[-1], title=title)
    names = ["collection", *(column.name for column in columns)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"two columns would have the name {brief(twice)}; expected different ones. Give your metric, or your "
            "kernel, another name."
        )
    return columns


def _titled(metric: Any, title: str, kernels: Mapping[str, Kernel]) -> list[Column]:
    """The columns of a metric; one a kernel where it depends on that."""
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
        order = "" if q == 1 else f"_q{order_name(q)}"
        shown = "VS" if q == 1 else f"VS q={order_name(q)}"
        columns.append(
            Column(
                f"vendi_score{order}" + ("" if alone else f"_{title}"),
                shown if alone else f"{shown} ({title})",
                UP,
            )
        )
    return columns


def check_options(name: str, title: str, options: Mapping[Any, Any]) -> None:
    """Refuse options that a metric does not have, and to do without those that it needs."""
    known = options_of(name)
    odd = next((option for option in options if option not in known), None)
    if odd is not None:
        raise unknown(f"option of {name} in a table", odd, list(known))
    needed = (option for option, one in known.items() if one.default is one.empty)
    missing = next((option for option in needed if option not in options), None)
    if missing is not None:
        raise InputError(
            f"{name} needs the option {missing}; expected options={{{title!r}: {{{missing!r}: …}}}}."
        )


def options_of(name: str) -> dict[str, inspect.Parameter]:
    """The options of a metric that a table leaves to the user."""
    from vendimeter import metrics

    known = inspect.signature(getattr(metrics, name)).parameters
    texts = name == "d_lex_sim"  # the kernel of which is not one of the table's
    return {
        option: one
        for option, one in known.items()
        if one.kind is one.KEYWORD_ONLY or (texts and option == "kernel")
    }


def _mean_cell(groups: Sequence[Any], metric: Callable[[Any], Any]) -> Cell:
    """The mean of the figures of the groups that have items, with its standard error."""
    values = []
    for g, group in enumerate(groups):
        if length(group):
            with in_group(g):
                values.append(float(metric(group)))
    if not values:
        raise EmptyError("every group is empty; expected at least one item.")
    mean, error, _ = mean_over_groups(np.array(values))
    return Cell(mean, spread=error, behind=OVER_GROUPS)


def cell_of(found: Any) -> Cell:
    """What a metric gave, as a figure of a table, with what is known of its error."""
    if found is None or isinstance(found, Cell):
        return found or Cell()
    if isinstance(found, packing.Circles):
        middle, width = (found.low + found.high) / 2, (found.high - found.low) / 2
        return Cell(middle if width else found.low, found.low, found.high, width or None, COMPUTED)
    if not isinstance(found, Score | Figures):
        return Cell(int(found) if isinstance(found, int | np.integer) else float(found))
    value = int(found) if isinstance(found, int) else float(found)  # type: ignore[arg-type]
    if hasattr(found, "standard_error"):
        return Cell(value, spread=found.standard_error, behind=OVER_GROUPS)  # type: ignore[union-attr]
    low, high = getattr(found, "bounds", (getattr(found, "low", None), getattr(found, "high", None)))
    if low is None or high is None or math.isnan(high - low) or getattr(found, "level", None) == "none":
        std = getattr(found, "std", math.nan)
        return Cell(value) if math.isnan(std) else Cell(value, spread=std, behind=OVER_SPLITS)
    # Bounds need not lie around the figure: ± takes in both.
    spread = max(high - value, value - low)
    sampled = isinstance(found, discrepancy.KernelDistance | collisions.BirthdayParadox)
    return Cell(value, low, high, spread, SAMPLED if sampled else COMPUTED)
