"""Cases of analyses: comparisons, rarefaction, contributions, copies, modes, selections and so on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import vendimeter as vm
from recorded import inputs
from recorded.recording import Answer, add, encoder, halves, near, near_blocks, of, score
from vendimeter import kernels as k

TWELFTHS = np.arange(1, 13) / 78

# Over these every analysis runs: a name, the input, the kernel, what it needs.
SETTINGS: list[tuple[str, Callable[[], Any], Any, tuple[str, ...]]] = [
    ("vectors/cosine", inputs.vectors, "cosine", ()),
    ("vectors/rbf", inputs.vectors, k.RBF(1.5), ()),
    ("vectors/embed", inputs.vectors, k.Embed(halves), ()),
    ("wide/rbf", inputs.wide, k.RBF(2.0), ()),
    ("sparse_rows/cosine", inputs.sparse_rows, "cosine", ()),
    ("bits/jaccard", inputs.bits, "jaccard", ()),
    ("captions/ngram", inputs.captions, "ngram", ()),
    ("captions/embed", inputs.captions, k.Embed(encoder, k.RBF(2.0)), ()),
    ("similarity/precomputed", inputs.similarity, "precomputed", ()),
    ("places/function", inputs.places, near, ()),
    ("many_places/blocks", inputs.many_places, k.FromFunction(near_blocks, block=True), ()),
    ("table/sum", inputs.table, 0.5 * k.On("shape", k.Match()) + 0.5 * k.On("text", k.NGram(1, 1)), ()),
    ("smiles/morgan", inputs.smiles, "morgan", ("rdkit",)),
]

Run = Callable[..., Answer]


def over_settings(name: str, run: Run) -> None:
    for setting, samples, kernel, needs in SETTINGS:
        add(f"{name}/{setting}", partial(_run, run, samples, kernel), *needs)


def _run(run: Run, samples: Callable[[], Any], kernel: Any, **options: Any) -> Answer:
    return run(samples(), kernel, **options)


def on_vectors(name: str, run: Run, kernel: Any = "cosine", **options: Any) -> None:
    add(f"{name}/vectors/{name_of(options)}", partial(_run, run, inputs.vectors, kernel, **options))


def name_of(options: dict[str, Any]) -> str:
    """The options in the name of a case: short values as they are, others by name alone."""
    words = [
        f"{name}={value}" if isinstance(value, str | int | float) else name for name, value in options.items()
    ]
    return ",".join(words)


# ------------------------------------------------------------------------------------------------ comparisons


def compared(samples: Any, kernel: Any, *, by: Any = None, **options: Any) -> Answer:
    if by is None and not isinstance(samples, dict):
        count = samples.shape[0] if hasattr(samples, "shape") else len(samples)
        by = ["xyy"[i % 3] for i in range(count)]
    options = {"permutations": 99, "repeats": 5} | options
    found = vm.compare(samples, kernel, by=by, **options)
    names = (
        "sizes scores low high size rarefied rarefied_low rarefied_high used rank alpha beta beta_bounds gamma shares "
        "similarity fair differences.difference differences.difference_low differences.difference_high "
        "differences.ratio differences.ratio_low differences.ratio_high differences.p differences.p_adjusted "
        "differences.shared differences.size differences.tested_size differences.permutations"
    )
    parts = of(found, names)
    parts["groups"] = [str(group) for group in found.differences.groups]
    parts["references"] = [str(group) for group in found.differences.references]
    parts["labels"] = [str(label) for label in found.labels]
    return parts


def comparisons() -> None:
    for setting, samples, kernel, needs in SETTINGS:
        if setting == "table/sum":
            add(f"compare/{setting}", partial(_run, compared, samples, kernel, by="colour"), *needs)
        else:
            add(f"compare/{setting}", partial(_run, compared, samples, kernel), *needs)
    many = partial(_run, compared, inputs.many_vectors, "cosine", by=inputs.many_labels())
    for options in (
        {}, {"q": 2}, {"q": "inf"}, {"q": 0.5}, {"q": 0}, {"reference": "y"}, {"pairs": True}, {"size": 40},
        {"group_weights": "equal"}, {"confidence": 0.8}, {"permutations": 0}, {"similarity": False}, {"rng": 7},
    ):  # fmt: skip
        add(f"compare/many_vectors/{name_of(options)}", partial(many, **options))
    add(
        "compare/many_vectors/rbf",
        partial(_run, compared, inputs.many_vectors, "rbf", by=inputs.many_labels()),
    )
    add("compare/dict", lambda: compared({"x": inputs.captions()[:9], "y": inputs.captions()[9:]}, "ngram"))
    on_vectors("compare", compared, by=inputs.labels(), weights=inputs.weights())
    on_vectors("compare", compared, by=inputs.labels(), counts=inputs.counts())


# ------------------------------------------------------------------------------------------------ rarefaction


def rarefied(samples: Any, kernel: Any, **options: Any) -> Answer:
    found = vm.rarefy(samples, kernel, **{"repeats": 5} | options)
    names = (
        "score growth sizes scores low high truncated truncated_score t q n used repeats groups population.value "
        "population.interval population.standard_error population.confidence population.n population.bias "
        "population.remaining"
    )
    parts = of(found, names)
    return {**parts, "refused": found.population.refused is not None}


def rarefactions() -> None:
    over_settings("rarefy", rarefied)
    many = partial(_run, rarefied, inputs.many_vectors, "cosine")
    for options in (
        {}, {"q": 2}, {"q": 0.5}, {"q": 3}, {"rng": 3}, {"groups": 8}, {"t": 2}, {"confidence": 0.8}, {"repeats": 9},
    ):  # fmt: skip
        add(f"rarefy/many_vectors/{name_of(options)}", partial(many, **options))
    add("rarefy/many_vectors/sizes", partial(many, sizes=[1, 5, 50, 240]))
    add("rarefy/many_vectors/rbf", partial(_run, rarefied, inputs.many_vectors, k.RBF(2.0)))
    add("rarefy/many_vectors/most", partial(_run, rarefied, inputs.many_vectors, k.RBF(2.0), most=120))
    on_vectors("rarefy", rarefied, weights=inputs.weights())
    on_vectors("rarefy", rarefied, counts=inputs.counts())
    add("rarefy/classes/match", partial(_run, rarefied, inputs.classes, "match"))


# ---------------------------------------------------------------------------------------------- contributions


def contributed(samples: Any, kernel: Any, **options: Any) -> Answer:
    found = vm.contributions(samples, kernel, **options)
    return of(found, "score n values rarity leave_one_out mean_similarity weights")


def ends(samples: Any, kernel: Any) -> Answer:
    found = vm.contributions(samples, kernel)
    return {"rarest": found.rarest(3).tolist(), "redundant": found.redundant(3).tolist()}


def contributions() -> None:
    over_settings("contributions", contributed)
    for kernel, name in (("cosine", "cosine"), (k.RBF(1.5), "rbf")):
        for options in (
            {"q": 0}, {"q": 0.5}, {"q": 2}, {"q": 3}, {"q": "inf"}, {"leave_one_out": False},
            {"weights": inputs.weights()}, {"counts": inputs.counts()}, {"weights": inputs.weights(), "q": 2},
        ):  # fmt: skip
            on_vectors(f"contributions/{name}", contributed, kernel, **options)
    add(
        "contributions/indefinite/project",
        partial(_run, contributed, inputs.indefinite, k.Precomputed(project=True)),
    )
    add("contributions/ends/points", lambda: ends(inputs.points(), k.RBF(1.0)))
    add("contributions/ends/captions", lambda: ends(inputs.captions()[:20], "ngram"))
    add("contributions/places/counts", lambda: contributed(inputs.places(), near, counts=list(range(1, 13))))


# ----------------------------------------------------------------------------------------------------- copies


def copied(samples: Any, kernel: Any, **options: Any) -> Answer:
    found = vm.duplicates(samples, kernel, **options)
    names = (
        "n threshold copies identical score without pairs method clusters exact sizes redundant kept positions cost "
        "labels recall.value recall.low recall.high recall.planted recall.checked recall.tables"
    )
    return of(found, names)


def copies() -> None:
    over_settings("duplicates", copied)
    for options in (
        {"threshold": 0.99}, {"threshold": 0.5}, {"threshold": 1}, {"q": 2}, {"weights": inputs.weights()},
        {"counts": inputs.counts()}, {"scores": False}, {"method": "exact"}, {"method": "approximate"},
        {"method": "approximate", "threshold": 0.9, "rng": 4},
    ):  # fmt: skip
        on_vectors("duplicates", copied, **options)
    add("duplicates/captions/ngram,threshold=0.5", lambda: copied(inputs.captions(), "ngram", threshold=0.5))
    add("duplicates/places/threshold=0.9", lambda: copied(inputs.places(), near, threshold=0.9))


# ------------------------------------------------------------------------------------------------------ modes


def moded(samples: Any, kernel: Any, **options: Any) -> Answer:
    """Modes; of those that can be told apart also where items lie on them, with signs that do not matter."""
    found = vm.modes(samples, kernel, **options)
    apart = ~np.asarray(found.degenerate)
    parts = of(found, "n shares weights degenerate shown method settled")
    parts["squares"] = (found.loadings**2).sum(axis=0)
    parts["lengths"] = (found.vectors**2).sum(axis=0)
    parts["loadings"] = np.abs(found.loadings[:, apart])
    if found.composition is not None and found.label_loadings is not None:
        parts["labels"] = [str(label) for label in found.labels or []]
        parts["composition"] = found.composition[apart]
        parts["label_loadings"] = np.abs(found.label_loadings[apart])
    return parts


def modes() -> None:
    over_settings("modes", moded)
    for options in (
        {"k": 2}, {"weights": inputs.weights()}, {"counts": inputs.counts()}, {"by": inputs.labels()},
        {"by": [[label, "all"] for label in inputs.labels()], "k": 3},
    ):  # fmt: skip
        on_vectors("modes", moded, **options)
    add("modes/points/exemplars", lambda: exemplars(inputs.points(), k.RBF(1.0)))


def exemplars(samples: Any, kernel: Any) -> Answer:
    found = vm.modes(samples, kernel, k=3, exemplars=4, by=["xy"[i % 2] for i in range(len(samples))])
    parts: dict[str, Any] = {"order": found.order, "by_labels": found.ordering("labels")}
    parts["one_sided"] = found.one_sided
    for mode in range(3):
        parts[f"high.{mode}"] = found.exemplars(mode).high
        parts[f"low.{mode}"] = found.exemplars(mode).low
    return parts


# ------------------------------------------------------------------------------------------------- selections


def selected(samples: Any, kernel: Any, n: int | None = 5, **options: Any) -> Answer:
    found = vm.select(samples, n, kernel, **options)
    parts = of(
        found, "indices method score n k comparison random_std whole exact_greedy sizes curves gains quality"
    )
    parts["labels"] = None if found.labels is None else [str(label) for label in found.labels]
    return parts


SELECTIONS = ("vendi", "logdet", "farthest", "facility", "random")


def selections() -> None:
    for method in SELECTIONS:
        for setting, samples, kernel, needs in SETTINGS:
            run = partial(_run, selected, samples, kernel, method=method, compare=False)
            add(f"select/{method}/{setting}", run, *needs)
        points = partial(_run, selected, inputs.points, k.RBF(1.0), method=method)
        add(f"select/{method}/points/rbf", partial(points, n=8))
        add(f"select/{method}/points/required", partial(points, n=6, required=[11, 3]))
        add(
            f"select/{method}/points/quotas",
            partial(points, n=6, quotas=2, by=["xyz"[i % 3] for i in range(60)]),
        )
        add(
            f"select/{method}/points/quotas-some",
            partial(points, n=7, quotas={"x": 1, "y": 3}, by=["xyz"[i % 3] for i in range(60)]),
        )
        add(
            f"select/{method}/vectors/all",
            partial(_run, selected, inputs.vectors, "cosine", n=36, method=method),
        )
    points = partial(_run, selected, inputs.points, k.RBF(1.0), n=6)
    quality = 0.2 + (np.arange(60) * 7 % 11) / 11
    for q in (0.5, 1.5, 2):
        add(f"select/vendi/points/q={q}", partial(points, q=q))
    add("select/farthest/points/q=inf", partial(points, q="inf", method="farthest"))
    add("select/vendi/points/quality", partial(points, quality=quality))
    add("select/vendi/points/quality,trade_off=0.3", partial(points, quality=quality, trade_off=0.3))
    add("select/vendi/points/exact", partial(points, exact=True))
    add("select/vendi/points/sampled", partial(points, exact=False, rng=2))
    add("select/random/points/rng=9", partial(points, method="random", rng=9))
    add("select/vendi/points/compare", partial(points, compare=["facility", "random", "whole"]))
    add(
        "select/vendi/table/quotas",
        lambda: selected(inputs.table(), k.On("text", k.NGram(1, 1)), None, quotas=1, by="shape"),
    )


# ------------------------------------------------------------------------------------- weights and bandwidths


def reweighted(samples: Any, kernel: Any, **options: Any) -> Answer:
    """Weights of greatest diversity; what the search has for weights is good to its tolerance."""
    found = vm.reweight(samples, kernel, **options)
    parts = of(found, "weights uniform support met tol")
    parts["search"] = of(found, "gap bounds") | {"iterations": found.iterations}
    parts["search.score"] = float(found.score)
    parts["level"], parts["method"] = found.score.level, found.score.method
    parts["half"] = found.items_for(0.5)
    return parts


def reweightings() -> None:
    over_settings("reweight", reweighted)
    for options in (
        {"q": 0.5}, {"q": 2}, {"q": "inf"}, {"tol": 1e-6}, {"weights": inputs.weights()}, {"counts": inputs.counts()},
    ):  # fmt: skip
        on_vectors("reweight", reweighted, **options)
    add("reweight/many_vectors", partial(_run, reweighted, inputs.many_vectors, "cosine"))


def bandwidths() -> None:
    def scaled(samples: Any, kernel: Any, **options: Any) -> Answer:
        found = vm.bandwidth(samples, kernel, **options)
        names = (
            "n items q most suggested score low high median median_score parameter scales scores sensitivity "
            "informative"
        )
        return of(found, names)

    for kernel in ("rbf", "laplacian"):
        for options in (
            {},
            {"q": 2},
            {"weights": inputs.weights()},
            {"counts": inputs.counts()},
            {"items": 25},
        ):
            on_vectors(f"bandwidth/{kernel}", scaled, kernel, **options)
    on_vectors("bandwidth/scales", scaled, "rbf", scales=[0.5, 1.0, 2.0, 4.0])
    add("bandwidth/many_vectors", partial(_run, scaled, inputs.many_vectors, "rbf"))

    def choice(samples: Any, kernels: Any) -> Answer:
        found = vm.bandwidth(samples, kernels=kernels)
        return of(found, "n items q most scores low high median")

    add(
        "bandwidth/kernels/captions",
        lambda: choice(inputs.captions(), [k.NGram(1, 1), k.NGram(1, 3), k.Embed(encoder)]),
    )
    add("bandwidth/kernels/places", lambda: choice(inputs.places(), {"near": near, "match": k.Match()}))


# ----------------------------------------------------------------------------------------------------- family


def family() -> None:
    def quality(samples: Any, kernel: Any, **options: Any) -> Answer:
        count = samples.shape[0] if hasattr(samples, "shape") else len(samples)
        values = 0.5 + (np.arange(count) * 5 % 7) / 7
        found = vm.family.quality_weighted(samples, values, kernel, **options)
        return {"value": float(found), **of(found, "quality score bounds")}

    def truncated(samples: Any, kernel: Any, t: int = 4, **options: Any) -> Answer:
        return {"score": vm.family.truncated(samples, t, kernel, **options)}

    def joined(samples: Any, kernel: Any, **options: Any) -> Answer:
        count = samples.shape[0] if hasattr(samples, "shape") else len(samples)
        given = [i % 3 for i in range(count)]
        conditional = vm.family.conditional(samples, given, kernel, "match", **options)
        shared = vm.family.information(samples, given, kernel, "match", **options)
        return {
            "conditional": {
                "value": float(conditional),
                **of(conditional, "bounds level confidence joint given"),
            },
            "information": {
                "value": float(shared),
                **of(shared, "bounds level confidence samples given joint"),
            },
        }

    for name, run in (("quality_weighted", quality), ("truncated", truncated), ("conditional", joined)):
        for setting, samples, kernel, needs in SETTINGS:
            if setting != "table/sum":
                add(f"family/{name}/{setting}", partial(_run, run, samples, kernel), *needs)
        for options in (
            {"q": 0.5},
            {"q": 2},
            {"q": "inf"},
            {"weights": inputs.weights()},
            {"counts": inputs.counts()},
        ):
            on_vectors(f"family/{name}", run, k.RBF(1.5), **options)
    add("family/truncated/t=1", lambda: truncated(inputs.vectors(), "cosine", 1))
    add("family/truncated/t=40", lambda: truncated(inputs.vectors(), "cosine", 40))
    add("family/quality_weighted/column", lambda: _column_of_quality())
    rows = inputs.vectors
    add(
        "family/information/two-functions",
        lambda: {"value": float(vm.family.information(inputs.places(), inputs.places()[::-1], near, near))},
    )
    add(
        "family/conditional/self",
        lambda: {"value": float(vm.family.conditional(rows(), rows(), "rbf", "rbf"))},
    )


def _column_of_quality() -> Answer:
    found = vm.family.quality_weighted(inputs.table(), "quality", k.On("text", k.NGram(1, 1)))
    return {"value": float(found), "quality": found.quality, "score": score(found.score)}


for register in (
    comparisons, rarefactions, contributions, copies, modes, selections, reweightings, bandwidths, family,
):  # fmt: skip
    register()
