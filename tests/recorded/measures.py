"""Cases of the metrics that are reported beside the score, and of tables of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from recorded import inputs
from recorded.analyses import SETTINGS
from recorded.recording import Answer, Vowels, add, encoder, halves, near, of
from vendimeter import kernels as k
from vendimeter import metrics

GROUPS = [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9, 10, 11]]  # positions of captions


def grouped_captions() -> list[list[str]]:
    return [[inputs.captions()[i] for i in group] for group in GROUPS]


def value_of(found: Any, names: str = "") -> Answer:
    """A figure with its fields."""
    value = int(found) if isinstance(found, int) else float(found)
    return {"value": value, **of(found, names)}


# ---------------------------------------------------------------------------------------------- with a kernel


def of_kernels() -> None:
    def case(name: str, run: Callable[..., Answer], *choices: dict[str, Any], signed: bool = True) -> None:
        for setting, samples, kernel, needs in SETTINGS:
            if not signed and setting in ("vectors/cosine", "vectors/embed"):
                continue  # some of their similarities are negative, which is an error
            for options in choices:
                words = "".join(f",{key}={value}" for key, value in options.items())
                add(
                    f"metrics/{name}/{setting}{words}",
                    lambda run=run, samples=samples, kernel=kernel, options=options: run(
                        samples(), kernel, **options
                    ),
                    *needs,
                )

    case("intdiv", lambda *given, **options: {"value": metrics.intdiv(*given, **options)}, {}, {"p": 2})
    case(
        "mean_similarity",
        lambda *given, **options: {"values": metrics.mean_similarity(*given, **options)},
        {},
    )
    case(
        "log_det",
        lambda *given, **options: value_of(metrics.log_det(*given, **options), LOG_DET),
        {"shift": 0.1},
    )
    case("leinster_cobbold", leinster_cobbold, {"q": (0, 1, 2, "inf")}, signed=False)
    case("components", components, {"threshold": 0.5})
    case("circles", circles, {"threshold": 0.5})
    case("birthday_paradox", birthday_paradox, {"threshold": 0.9})

    rows = inputs.vectors
    add("metrics/intdiv/diagonal", lambda: {"value": metrics.intdiv(rows(), "cosine", diagonal=False)})
    add(
        "metrics/intdiv/weights",
        lambda: {"value": metrics.intdiv(rows(), "cosine", weights=inputs.weights())},
    )
    add("metrics/intdiv/counts", lambda: {"value": metrics.intdiv(rows(), "rbf", counts=inputs.counts())})
    add(
        "metrics/mean_similarity/diagonal",
        lambda: {"values": metrics.mean_similarity(rows(), diagonal=False)},
    )
    add(
        "metrics/mean_similarity/weights",
        lambda: {"values": metrics.mean_similarity(rows(), "rbf", weights=inputs.weights())},
    )
    add("metrics/leinster_cobbold/weights", lambda: leinster_cobbold(rows(), "rbf", weights=inputs.weights()))
    add(
        "metrics/leinster_cobbold/counts",
        lambda: leinster_cobbold(rows(), "rbf", q=2, counts=inputs.counts()),
    )
    add(
        "metrics/log_det/points", lambda: value_of(metrics.log_det(inputs.points()[::6], k.RBF(0.5)), LOG_DET)
    )
    add("metrics/circles/effort=3", lambda: circles(inputs.points(), k.RBF(1.0), threshold=0.8, effort=3))
    add(
        "metrics/components/eigenvalues=4",
        lambda: components(inputs.sparse_similarity(), "precomputed", threshold=0.3, eigenvalues=4),
    )
    add(
        "metrics/birthday_paradox/batch",
        lambda: birthday_paradox(inputs.classes(), "match", threshold=1, batch=12),
    )
    add(
        "metrics/birthday_paradox/confidence",
        lambda: birthday_paradox(inputs.classes(), "match", threshold=1, confidence=0.9, rng=3),
    )
    add("metrics/effective_rank", lambda: {"value": float(metrics.effective_rank(rows()))})
    add(
        "metrics/effective_rank/sparse",
        lambda: {"value": float(metrics.effective_rank(inputs.sparse_rows()))},
    )


LOG_DET = "bounds per_item rank n shift"


def leinster_cobbold(samples: Any, kernel: Any, **options: Any) -> Answer:
    found = metrics.leinster_cobbold(samples, kernel, **options)
    return {"value": float(found)} if isinstance(found, float) else of(found, "n diversities q")


def components(samples: Any, kernel: Any, **options: Any) -> Answer:
    found = metrics.components(samples, kernel, **options)
    return value_of(found, "threshold sizes labels laplacian eigengap clusters")


def circles(samples: Any, kernel: Any, **options: Any) -> Answer:
    return of(metrics.circles(samples, kernel, **options), "low high exact threshold method indices")


def birthday_paradox(samples: Any, kernel: Any, **options: Any) -> Answer:
    found = metrics.birthday_paradox(samples, kernel, **options)
    return value_of(found, "low high support confidence threshold collisions trials n batch even_odds")


# --------------------------------------------------------------------------------------- of classes and grids


def of_classes() -> None:
    shares, raw = inputs.probabilities, inputs.logits
    weights = np.arange(1, 31) / 465
    for q in (0, 0.5, 1, 2, "inf"):
        add(f"metrics/hill/q={q}", lambda q=q: {"value": float(metrics.hill(shares()[0], q=q))})
    add("metrics/hill/rows", lambda: {"values": metrics.hill(shares(), q=2)})
    score = metrics.inception_score
    of_splits = "std splits n"
    add("metrics/inception_score", lambda: value_of(score(shares(), splits=3), of_splits))
    add(
        "metrics/inception_score/logits",
        lambda: value_of(score(raw(), splits=2, logits=True, rng=4), of_splits),
    )
    add("metrics/inception_score/in-order", lambda: value_of(score(shares(), splits=5, rng=None), of_splits))
    diversity = metrics.jensen_shannon_diversity
    add("metrics/jensen_shannon_diversity", lambda: {"value": float(diversity(shares()))})
    add("metrics/jensen_shannon_diversity/logits", lambda: {"value": float(diversity(raw(), logits=True))})
    add(
        "metrics/jensen_shannon_diversity/weights",
        lambda: {"value": float(diversity(shares(), weights=weights))},
    )
    add("metrics/mode_diversity", lambda: {"value": float(metrics.mode_diversity(shares()))})
    add("metrics/mode_diversity/logits", lambda: {"value": float(metrics.mode_diversity(raw(), logits=True))})
    add(
        "metrics/mode_diversity/weights",
        lambda: {"value": float(metrics.mode_diversity(shares(), weights=weights))},
    )
    for least in (1, 5, 9):
        add(
            f"metrics/number_of_modes/least={least}",
            lambda least=least: {"value": metrics.number_of_modes(shares(), least=least)},
        )
    add("metrics/number_of_modes/logits", lambda: {"value": metrics.number_of_modes(raw(), logits=True)})

    fields = "occupied cells qd_score n clipped counts indices"
    grid = metrics.grid_coverage
    quality = 1 + np.arange(60) % 5
    add("metrics/grid_coverage", lambda: value_of(grid(inputs.points(), bounds=(-4, 4), bins=6), fields))
    add(
        "metrics/grid_coverage/quality",
        lambda: value_of(
            grid(
                inputs.points(),
                bounds=[(-1, 1), (-2, 2)],
                bins=(3, 4),
                quality=quality,
                offset=0.5,
                outside="clip",
            ),
            fields,
        ),
    )
    add(
        "metrics/grid_coverage/features",
        lambda: value_of(grid(inputs.captions(), bounds=(0, 30), bins=3, features=encoder), fields),
    )


# ------------------------------------------------------------------------------------------------ of two sets


def of_two_sets() -> None:
    compared: list[tuple[str, Callable[..., Any], str, list[dict[str, Any]]]] = [
        ("frechet_distance", metrics.frechet_distance, "mean_term covariance_term n m columns", [{}]),
        (
            "kernel_distance",
            metrics.kernel_distance,
            "low high std confidence n m subsets spread level",
            [
                {},
                {"degree": 2, "gamma": 0.5, "coef": 0.0},
                {"subsets": 5, "subset_size": 12},
                {"kernel": k.RBF(2.0)},
            ],
        ),
        ("precision_recall", metrics.precision_recall, "precision recall k n m", [{}, {"k": 1}]),
        ("density_coverage", metrics.density_coverage, "density coverage k n m", [{}, {"k": 2}]),
        (
            "memorization",
            metrics.memorization,
            "rate copies authenticity ratio n m nearest indices",
            [{}, {"ratio": 0.6}],
        ),
        (
            "precision_recall_curve",
            metrics.precision_recall_curve,
            "f_precision f_recall highest_precision highest_recall beta n m of_samples of_reference",
            [{}, {"clusters": 6, "runs": 3, "beta": 2, "rng": 5}],
        ),
    ]
    for name, metric, fields, choices in compared:
        for i, options in enumerate(choices):
            add(
                f"metrics/{name}/{i}",
                partial(two_sets, metric, fields, inputs.vectors, inputs.others, options),
            )
        features = {"features": halves}
        add(
            f"metrics/{name}/features",
            partial(two_sets, metric, fields, inputs.vectors, inputs.others, features),
        )
    add("metrics/kernel_distance/function", function_distance)
    add("metrics/moments", moments)


def two_sets(metric: Any, fields: str, samples: Any, reference: Any, options: dict[str, Any]) -> Answer:
    found = metric(samples(), reference(), **options)
    return value_of(found, fields) if isinstance(found, float) else of(found, fields)


def function_distance() -> Answer:
    found = metrics.kernel_distance(inputs.places(), inputs.many_places()[:15], kernel=near)
    return value_of(found, "low high std n m")


def moments() -> Answer:
    whole = metrics.Moments.of(inputs.vectors())
    sums = metrics.Moments.of(inputs.vectors()[:9]) + metrics.Moments.of(inputs.vectors()[9:])
    other = metrics.Moments.of(inputs.others())
    distance = metrics.frechet_distance(sums, other)
    given = metrics.frechet_distance(metrics.Moments(whole.mean, whole.covariance, 40), other)
    fields = "mean_term covariance_term n m columns"
    return {
        "whole": of(whole, "mean covariance n"),
        "sums": of(sums, "mean covariance n"),
        "distance": value_of(distance, fields),
        "given": value_of(given, fields),
    }


# --------------------------------------------------------------------------------------------------- of texts


def of_texts() -> None:
    texts, groups = inputs.captions, grouped_captions
    overlap, pairs = "texts groups left_out standard_error values", "precisions pairs texts groups left_out"
    diversity = "by_length tokens texts groups left_out standard_error values"
    by = [i % 3 for i in range(24)]
    lengths: list[dict[str, Any]] = [{}, {"low": 2, "high": 3}, {"lowercase": False}, {"by": by}]
    cases: list[tuple[str, Callable[..., Any], str, list[dict[str, Any]]]] = [
        ("self_bleu", metrics.self_bleu, overlap, [{}, {"n": 2, "epsilon": 0.5}, {"lowercase": True}, {"by": by}]),
        ("pairwise_bleu", metrics.pairwise_bleu, pairs, [{}, {"n": 2}, {"lowercase": True}, {"by": by}]),
        ("ngram_diversity", metrics.ngram_diversity, diversity, lengths),
        ("d_lex_sim", metrics.d_lex_sim, overlap, [{}, {"kernel": k.NGram(1, 2)}, {"kernel": k.BLEU(2)}, {"by": by}]),
    ]  # fmt: skip
    for name, metric, fields, choices in cases:
        for i, options in enumerate(choices):
            add(f"metrics/{name}/{i}", lambda m=metric, f=fields, o=options: value_of(m(texts(), **o), f))
        add(f"metrics/{name}/groups", lambda m=metric, f=fields: value_of(m(groups(), groups=True), f))
    for method in ("gzip", "xz", "bz2"):
        add(f"metrics/compression_ratio/{method}", partial(compression, method))
    fields = "precisions brevity_penalty length reference_length"
    bleu = metrics.corpus_bleu
    add("metrics/corpus_bleu", lambda: value_of(bleu(texts()[:8], texts()[2:10]), fields))
    add(
        "metrics/corpus_bleu/2",
        lambda: value_of(bleu(texts()[:8], texts()[2:10], n=2, smoothing="floor"), fields),
    )
    add("metrics/corpus_bleu/several", lambda: value_of(bleu(texts()[:3], groups()), fields))


def compression(method: str) -> Answer:
    """The size that is left depends a little on the version of the library that compresses."""
    found = metrics.compression_ratio(inputs.captions(), method=method)
    return {
        "size": found.size,
        "method": found.method,
        "compressed": {"value": float(found), "bytes": float(found.compressed)},
    }


# --------------------------------------------------------------------------------------- molecules and tables


MOLECULES = (
    "n valid validity unique uniqueness unique_at intdiv intdiv2 scaffolds scaffold_diversity novelty "
    "nearest_similarity scaffold_similarity scaffold_novelty reference_valid reference_invalid"
)


def of_molecules() -> None:
    broken = [*inputs.smiles(), "C1CC", ""]
    for name, options in {
        "alone": {},
        "reference": {"reference": inputs.other_smiles()},
        "flat": {"stereo": False, "min_rings": 1, "reference": inputs.other_smiles(), "unique_at": [2, 5]},
        "maccs": {"kernel": "maccs", "nearest": False, "reference": inputs.other_smiles()},
    }.items():
        add(f"metrics/molecules/{name}", partial(molecules, broken, options), "rdkit")


def molecules(samples: list[str], options: dict[str, Any]) -> Answer:
    from rdkit import rdBase

    with rdBase.BlockLogs():
        return of(metrics.molecules(samples, **options), MOLECULES)


def tables() -> None:
    def case(name: str, samples: Callable[[], Any], kernel: Any, *needs: str, **options: Any) -> None:
        add(f"metrics/table/{name}", lambda: cells(metrics.table(samples(), kernel, **options)), *needs)

    both = lambda: {"real": inputs.vectors(), "fake": inputs.others()}  # noqa: E731
    everything = [
        "effective_rank",
        "leinster_cobbold",
        "log_det",
        "components",
        "circles",
        "birthday_paradox",
    ]
    options = {
        "log_det": {"shift": 0.1},
        "components": {"threshold": 0.5},
        "circles": {"threshold": 0.9},
        "birthday_paradox": {"threshold": 0.9},
    }
    case("vectors", both, "cosine")
    case("vectors-reference", both, "cosine", reference="real")
    case("vectors-reference-apart", both, "cosine", reference=inputs.vectors()[::2], q=[0, 1, "inf"])
    case(
        "vectors-everything",
        both,
        k.RBF(1.5),
        metrics=[*everything, "memorization"],
        options=options,
        reference="real",
    )
    case("vectors-features", both, k.Embed(halves), features=halves, reference="real")
    case("vectors-two-kernels", both, {"cosine": k.Cosine(), "rbf": k.RBF("median")}, metrics=["intdiv"])
    case("vectors-by", inputs.vectors, "cosine", by=inputs.labels(), metrics=["intdiv", "effective_rank"])
    case("vectors-tol", both, "rbf", tol=0.01, metrics=["intdiv"])
    case("vectors-own", both, "cosine", metrics={"Mean": lambda rows: float(rows.mean()), "ID": "intdiv"})
    words = lambda: {"x": inputs.captions()[:10], "y": inputs.captions()[10:20]}  # noqa: E731
    texts = ["ngram_diversity", "self_bleu", "pairwise_bleu", "d_lex_sim"]
    case("texts", words, "ngram", metrics=[*texts, "corpus_bleu", "intdiv"], reference="x")
    case(
        "texts-groups",
        lambda: {"x": grouped_captions(), "y": grouped_captions()[:2]},
        "ngram",
        metrics=texts,
        groups=True,
    )
    case("texts-embed", words, k.Embed(encoder))
    case(
        "classes",
        lambda: {"x": inputs.probabilities()[:15], "y": inputs.probabilities()[15:]},
        "probability-product",
    )
    case(
        "classes-beside",
        lambda: {"x": inputs.vectors()[:30]},
        "cosine",
        probabilities={"x": inputs.logits()},
        logits=True,
        metrics=[
            "number_of_modes",
            "mode_diversity",
            "inception_score",
            "jensen_shannon_diversity",
            "vendi_score",
        ],
    )
    case("texts-encoder", words, k.Embed(Vowels(cache=False)))
    case(
        "function",
        lambda: {"x": inputs.places(), "y": inputs.places()[:7]},
        near,
        metrics=everything[1:],
        options=options,
    )
    case(
        "molecules",
        lambda: {"x": inputs.smiles(), "y": inputs.other_smiles()},
        "morgan",
        "rdkit",
        reference="y",
    )


def cells(found: metrics.Table) -> Answer:
    parts: dict[str, Any] = {
        "names": [str(name) for name in found.names],
        "columns": [c.name for c in found.columns],
    }
    parts["better"] = [column.better for column in found.columns]
    for name, row in zip(found.names, found.cells, strict=True):
        for column, cell in zip(found.columns, row, strict=True):
            figures = (cell.value, cell.low, cell.high, cell.spread)
            parts[f"{name}.{column.name}"] = {
                which: figure
                for which, figure in zip(("value", "low", "high", "spread"), figures, strict=True)
                if figure is not None
            }
    return parts


for register in (of_kernels, of_classes, of_two_sets, of_texts, of_molecules, tables):
    register()
