"""Cases of scores: all kernels and orders, all methods, weights, plans, groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import vendimeter as vm
from recorded import inputs
from recorded.recording import Answer, add, encoder, halves, near, near_blocks, near_lopsided, of
from vendimeter import kernels as k

ORDERS = (0, 0.5, 1, 2, 3, "inf")

# Input, name of the kernel, the kernel, what it needs.
KERNELS: list[tuple[Callable[[], Any], str, Any, tuple[str, ...]]] = [
    (inputs.vectors, "cosine", k.Cosine(), ()),
    (inputs.vectors, "rbf", "rbf", ()),
    (inputs.vectors, "rbf-1.5", k.RBF(1.5), ()),
    (inputs.vectors, "laplacian", "laplacian", ()),
    (inputs.vectors, "laplacian-2", k.Laplacian(2.0), ()),
    (inputs.vectors, "polynomial", "polynomial", ()),
    (inputs.vectors, "polynomial-2-0", k.Polynomial(degree=2, offset=0.0), ()),
    (inputs.vectors, "random-rbf", k.RandomFeatures(k.RBF(1.5), features=64, seed=3), ()),
    (inputs.vectors, "random-laplacian", k.RandomFeatures(k.Laplacian(2.0), features=64, seed=3), ()),
    (inputs.vectors, "embed", k.Embed(halves), ()),
    (inputs.vectors, "embed-rbf-in-batches", k.Embed(halves, k.RBF(1.0), batch_size=16), ()),
    (inputs.vectors, "sum", 0.25 * k.Cosine() + 0.75 * k.RBF(2.0), ()),
    (inputs.vectors, "product", k.Cosine() * k.RBF(3.0), ()),
    (inputs.wide, "cosine", k.Cosine(), ()),
    (inputs.wide, "rbf", "rbf", ()),
    (inputs.wide, "laplacian-20", k.Laplacian(20.0), ()),
    (inputs.sparse_rows, "cosine", "cosine", ()),
    (inputs.sparse_rows, "polynomial", k.Polynomial(), ()),
    (inputs.bits, "jaccard", "jaccard", ()),
    (inputs.bits, "random-jaccard", k.RandomFeatures(k.Jaccard(), features=128, seed=1), ()),
    (inputs.sets, "tanimoto", k.Tanimoto(), ()),
    (inputs.classes, "match", "match", ()),
    (inputs.records, "match-fraction", k.Match(fraction=True), ()),
    (inputs.captions, "ngram", "ngram", ()),
    (inputs.captions, "ngram-1-2-hashed", k.NGram(1, 2, hashed=64), ()),
    (inputs.captions, "ngram-2-3-case", k.NGram(2, 3, lowercase=False), ()),
    (inputs.captions, "match", "match", ()),
    (inputs.captions, "bleu", "bleu", ()),
    (inputs.captions, "bleu-2", k.BLEU(n=2, lowercase=True, epsilon=0.2), ()),
    (inputs.captions, "edit", "edit", ("rapidfuzz",)),
    (inputs.captions, "embed", k.Embed(encoder), ()),
    (inputs.captions, "ngram-and-embed", 0.5 * k.NGram(1, 1) + 0.5 * k.Embed(encoder, k.RBF(2.0)), ()),
    (inputs.dna, "kmer", "kmer", ()),
    (inputs.dna, "kmer-2-canonical", k.KMer(2, alphabet="dna", canonical=True), ()),
    (inputs.dna, "edit-metric", k.Edit(normalize="metric"), ("rapidfuzz",)),
    (inputs.dna, "alignment", "alignment", ("Bio",)),
    (inputs.dna, "alignment-global", k.Alignment((2.0, -1.0), mode="global", gap_open=3.0), ("Bio",)),
    (inputs.smiles, "morgan", "morgan", ("rdkit",)),
    (inputs.smiles, "morgan-counts", k.Morgan(radius=3, bits=512, counts=True, chirality=True), ("rdkit",)),
    (inputs.smiles, "rdkit", "rdkit", ("rdkit",)),
    (inputs.smiles, "maccs", "maccs", ("rdkit",)),
    (inputs.similarity, "precomputed", "precomputed", ()),
    (inputs.sparse_similarity, "precomputed", k.Precomputed(), ()),
    (inputs.indefinite, "precomputed-project", k.Precomputed(project=True), ()),
    (inputs.unscaled, "precomputed-normalize", k.Precomputed(normalize=True), ()),
    (inputs.skew, "precomputed-symmetrize", k.Precomputed(symmetrize=True), ()),
    (inputs.distances, "from-distances", "from-distances", ()),
    (inputs.distances, "from-distances-gaussian", k.FromDistances(1.5, "gaussian"), ()),
    (inputs.distances, "from-distances-linear", k.FromDistances(6.0, "linear", project=True), ()),
    (inputs.probabilities, "probability-product", "probability-product", ()),
    (inputs.logits, "probability-product-logits", k.ProbabilityProduct(logits=True), ()),
    (inputs.tags, "tags", "tags", ()),
    (inputs.tags, "tags-vocabulary", k.Tags(("sweet", "floral", "smoky", "green", "wood")), ()),
    (inputs.pictures, "pixels", "pixels", ()),
    (inputs.pictures, "pixels-4", k.Pixels((4, 4)), ()),
    (inputs.table, "shape", k.On("shape", k.Match()), ()),
    (inputs.table, "sum", 0.5 * k.On("shape", k.Match()) + 0.5 * k.On("text", k.NGram(1, 1)), ()),
    (inputs.table, "product", k.On("shape", k.Match()) * k.On("colour", k.Match()), ()),
    (inputs.places, "function", near, ()),
    (inputs.places, "function-blocks", k.FromFunction(near_blocks, block=True), ()),
    (inputs.places, "function-mended", k.FromFunction(near_lopsided, normalize=True, symmetrize=True), ()),
    (inputs.many_places, "function", near, ()),
    (inputs.many_places, "function-blocks", k.FromFunction(near_blocks, block=True), ()),
    (inputs.many_places, "function-symmetrize", k.FromFunction(near, symmetrize=True), ()),
]  # fmt: skip


def scored(samples: Callable[[], Any], kernel: Any, **options: Any) -> Answer:
    return {"score": vm.score(samples(), kernel, **options)}


def each_kernel() -> None:
    for samples, name, kernel, needs in KERNELS:
        for q in ORDERS:
            add(f"score/{samples.__name__}/{name}/q={q}", partial(scored, samples, kernel, q=q), *needs)
        add(f"score/{samples.__name__}/{name}/orders", partial(orders_at_once, samples, kernel), *needs)


def orders_at_once(samples: Callable[[], Any], kernel: Any) -> Answer:
    return {"profile": vm.profile(samples(), kernel, q=[0.5, 1, 1.5, 5, "inf"])}


# -------------------------------------------------------------------------------- methods, weights, precision


def methods() -> None:
    forced: dict[str, tuple[Callable[[], Any], Any, dict[str, Any]]] = {
        "vectors-exact": (inputs.vectors, "cosine", {"method": "exact"}),
        "vectors-rbf-exact": (inputs.vectors, k.RBF(2.0), {"method": "exact"}),
        "points-lowrank": (inputs.points, k.RBF(1.0), {"method": "lowrank"}),
        "points-lowrank-greedy": (inputs.points, k.RBF(1.0), {"method": "lowrank", "pivots": "greedy"}),
        "points-lowrank-tol": (inputs.points, k.RBF(1.0), {"method": "lowrank", "tol": 0.05}),
        "points-lowrank-weights": (inputs.points, k.RBF(1.0), {"method": "lowrank", "weights": _of_points()}),
        "function-lowrank": (inputs.many_places, near, {"method": "lowrank", "tol": 1e-3}),
        "points-lanczos": (inputs.points, k.RBF(0.2), {"method": "lanczos", "tol": 0.05}),
        "points-lanczos-confidence": (
            inputs.points,
            k.RBF(0.2),
            {"method": "lanczos", "tol": 0.05, "confidence": 0.999, "precision": "float64"},
        ),
        "points-lanczos-seed": (inputs.points, k.RBF(0.2), {"method": "lanczos", "tol": 0.1, "rng": 5}),
        "bits-lanczos": (inputs.bits, "jaccard", {"method": "lanczos", "tol": 0.1}),
        "function-lanczos": (inputs.many_places, near, {"method": "lanczos", "tol": 0.1}),
        "points-random-features": (inputs.points, k.RBF(1.0), {"method": "random-features"}),
        "bits-random-features": (inputs.bits, "jaccard", {"method": "random-features", "rng": 2}),
        "points-tol": (inputs.points, k.RBF(1.0), {"tol": 1e-2}),
        "points-memory": (inputs.points, k.RBF(1.0), {"memory": "200 MiB"}),
        "sparse-exact": (inputs.sparse_similarity, "precomputed", {"method": "exact"}),
    }
    for name, (samples, kernel, options) in forced.items():
        for q in (1, 2, "inf"):
            add(f"score/method/{name}/q={q}", partial(scored, samples, kernel, q=q, **options))


def _of_points() -> np.ndarray:
    raw = 1.0 + np.arange(60) % 4
    return raw / raw.sum()


def weighted() -> None:
    for kernel in ("cosine", "rbf"):
        for q in ORDERS:
            add(f"score/weights/{kernel}/q={q}", lambda kernel=kernel, q=q: _weighted(kernel, q))
            add(f"score/counts/{kernel}/q={q}", lambda kernel=kernel, q=q: _counted(kernel, q))
    twelve = np.arange(1, 13) / 78
    add("score/weights/function", partial(scored, inputs.places, near, weights=twelve))
    add("score/counts/function", partial(scored, inputs.places, near, counts=list(range(1, 13))))
    twenty = np.arange(1, 21) / 210
    add("score/weights/precomputed", partial(scored, inputs.similarity, "precomputed", weights=twenty))
    add(
        "score/weights/sparse",
        partial(scored, inputs.sparse_similarity, "precomputed", weights=np.full(24, 1 / 24)),
    )
    add("score/precision/float64", partial(scored, inputs.vectors, precision="float64", kernel="cosine"))
    add("score/precision/float32", lambda: _single(2))
    add("score/precision/float32-orders", lambda: _single(3))
    add("score/collection", lambda: {"score": vm.score(collection(), "cosine")})


def _weighted(kernel: str, q: Any) -> Answer:
    return {"score": vm.score(inputs.vectors(), kernel, q=q, weights=inputs.weights())}


def _counted(kernel: str, q: Any) -> Answer:
    return {"score": vm.score(inputs.vectors(), kernel, q=q, counts=inputs.counts())}


def _single(q: float) -> Answer:
    found = vm.score(inputs.vectors().astype(np.float32), precision="float32", q=[1, q])
    return {"single": {f"q={order:g}": one for order, one in found.items()}}


def collection() -> vm.Collection:
    """The vectors as what is read from a file."""
    return vm.Collection(inputs.vectors(), labels=inputs.labels(), weights=inputs.weights())


# ------------------------------------------------------------------------------------------------------ plans


def plans() -> None:
    big = np.broadcast_to(np.arange(20_000.0)[:, None] % 97 + 1, (20_000, 40))
    asked: dict[str, tuple[Callable[[], Any], Any, dict[str, Any]]] = {
        "vectors": (inputs.vectors, "cosine", {}),
        "vectors-float32": (inputs.vectors, "cosine", {"precision": "float32"}),
        "vectors-rbf": (inputs.vectors, "rbf", {}),
        "vectors-rbf-counts": (inputs.vectors, "rbf", {"counts": inputs.counts()}),
        "points-lowrank": (inputs.points, k.RBF(1.0), {"method": "lowrank"}),
        "points-lanczos": (inputs.points, k.RBF(1.0), {"method": "lanczos"}),
        "points-random-features": (inputs.points, k.RBF(1.0), {"method": "random-features"}),
        "points-tol": (inputs.points, k.RBF(1.0), {"tol": 1e-2}),
        "sparse": (inputs.sparse_similarity, "precomputed", {}),
        "sparse-rows": (inputs.sparse_rows, "cosine", {}),
        "bits": (inputs.bits, "jaccard", {}),
        "function": (inputs.many_places, near, {}),
        "function-tol": (inputs.many_places, near, {"tol": 0.05}),
        "similarity-q2": (inputs.similarity, "precomputed", {"q": 2}),
        "captions": (inputs.captions, "ngram", {}),
        "embed": (inputs.captions, k.Embed(encoder), {}),
        "many-rows": (lambda: big, "cosine", {}),
        "many-rows-rbf": (lambda: big[:9000, :2] + np.arange(9000.0)[:, None], k.RBF(5.0), {}),
        "many-rows-rbf-tol": (lambda: big[:9000, :2] + np.arange(9000.0)[:, None], k.RBF(5.0), {"tol": 0.01}),
        "many-places-large": (lambda: list(range(10_000)), near, {}),
        "many-rows-q2": (lambda: big[:9000, :2] + np.arange(9000.0)[:, None], k.Laplacian(5.0), {"q": 2}),
        "little-memory": (
            lambda: big[:9000, :2] + np.arange(9000.0)[:, None],
            k.Laplacian(5.0),
            {"memory": "150 MiB"},
        ),
    }
    for name, (samples, kernel, options) in asked.items():
        add(f"plan/{name}", partial(planned, samples, kernel, options))


PLANNED = "method side precision storage rank tol flops bytes evaluations"


def planned(samples: Callable[[], Any], kernel: Any, options: dict[str, Any]) -> Answer:
    found = vm.plan(samples(), kernel, **options)
    parts = {"plan": of(found, PLANNED), "considered": [other.method for other in found.considered]}
    for i, other in enumerate(found.considered):
        parts[f"considered.{i}"] = of(other, PLANNED)
    if found.otherwise is not None:
        parts["otherwise"] = of(found.otherwise, PLANNED)
    return parts


# ----------------------------------------------------------------------------------------------------- groups


def of_groups(found: vm.GroupScores) -> Answer:
    parts: dict[str, Any] = {"labels": [str(label) for label in found.labels]}
    parts |= of(found, "scores low high sizes levels")
    parts["methods"] = [(one if isinstance(one, vm.Score) else one[one.q[0]]).method for one in found]
    entries = found.to_dict()["groups"]
    if "removed_mass" in entries[0]:
        parts["removed_mass"] = [entry["removed_mass"] or 0.0 for entry in entries]
    return parts


def groups() -> None:
    def case(
        name: str, samples: Callable[[], Any], kernel: Any = "cosine", *needs: str, **options: Any
    ) -> None:
        def run() -> Answer:
            return of_groups(vm.score_groups(samples(), kernel, **options))

        add(f"groups/{name}", run, *needs)

    rows, names = inputs.vectors, inputs.labels()
    for q in ORDERS:
        case(f"by/q={q}", rows, by=names, q=q)
        case(f"by-rbf/q={q}", rows, "rbf", by=names, q=q)
        case(f"matrices/q={q}", inputs.matrices, "precomputed", q=q)
    case("by-orders", rows, by=names, q=[0, 1, 2, "inf"])
    case("by-sets", rows, by=[[name, "all"] for name in names])
    case("by-weights", rows, by=names, weights=inputs.weights())
    case("by-counts", rows, by=names, counts=inputs.counts(), q=2)
    case("by-float32", rows, by=names, precision="float64", method="exact")
    sites = np.stack([1.0 + np.arange(40) % (3 + g) for g in range(3)])
    case("sites", rows, "rbf", weights=sites / sites.sum(axis=1, keepdims=True), by=["x", "y", "z"])
    case("sites-counts", rows, k.RBF(2.0), counts=np.stack([np.arange(40) % (2 + g) for g in range(3)]))
    case("dict", lambda: {name: rows()[np.array(names) == name] for name in "abcd"})
    case("dict-empty", lambda: {"x": ["red", "blue"], "y": [], "z": ["red"]}, "match")
    case("list", lambda: [inputs.captions()[:5], inputs.captions()[5:7], inputs.captions()[7:]], "ngram")
    case("bleu", lambda: {"x": inputs.captions()[:6], "y": inputs.captions()[6:11]}, "bleu")
    case("stacked", lambda: rows().reshape(8, 5, 6), q=[1, 2])
    case("stacked-rbf", lambda: rows().reshape(8, 5, 6), "rbf")
    case("stacked-matrices", inputs.matrices, "precomputed", q=[0.5, 1])
    case(
        "stacked-matrices-mended",
        lambda: np.stack([inputs.unscaled()[i : i + 6, i : i + 6] for i in (0, 5, 10)]),
        k.Precomputed(normalize=True),
    )
    indefinite = lambda: np.stack([inputs.indefinite()[i : i + 9, i : i + 9] for i in (0, 5, 10)])  # noqa: E731
    case("stacked-matrices-projected", indefinite, k.Precomputed(project=True))
    case("one-matrix", inputs.similarity, "precomputed", by=inputs.similarity_labels())
    case(
        "one-matrix-projected", inputs.indefinite, k.Precomputed(project=True), by=inputs.similarity_labels()
    )
    case("sparse-matrix", inputs.sparse_similarity, "precomputed", by=[i % 4 for i in range(24)])
    case("sparse-rows", inputs.sparse_rows, by=[i % 4 for i in range(30)])
    case("bits", inputs.bits, "jaccard", by=[i % 3 for i in range(30)], q=[0, 1])
    case("table", inputs.table, k.On("text", k.NGram(1, 2)), by="shape")
    case("table-two", inputs.table, k.On("text", k.NGram(1, 2)), by=["shape", "colour"])
    case("function", inputs.places, near, by=[i % 3 for i in range(12)])
    case(
        "function-blocks",
        inputs.places,
        k.FromFunction(near_blocks, block=True),
        by=[i % 3 for i in range(12)],
    )
    case("function-dict", lambda: {i: inputs.many_places()[i::4] for i in range(4)}, near)
    case("encoder", inputs.captions, k.Embed(encoder), by=[i % 3 for i in range(24)])
    case("encoder-dict", lambda: {i: inputs.captions()[i::3] for i in range(3)}, k.Embed(encoder))
    case("edit", inputs.dna, "edit", "rapidfuzz", by=[i // 4 for i in range(16)])
    case("morgan", inputs.smiles, "morgan", "rdkit", by=[i % 2 for i in range(12)])
    case("collection", collection)
    add("groups/means", means)


def means() -> Answer:
    found = vm.score_groups(inputs.vectors(), "cosine", by=[(i % 2, i % 5) for i in range(40)])
    averaged = found.mean(by=lambda label: label[0], unit=lambda label: label[1])
    parts: dict[str, Any] = {"left_out": averaged.left_out}
    for i, mean in enumerate(averaged.means):
        parts[f"mean.{i}"] = of(mean, "mean standard_error units")
    for i, difference in enumerate(averaged.differences):
        parts[f"difference.{i}"] = of(difference, "mean standard_error units")
    return parts


for register in (each_kernel, methods, weighted, plans, groups):
    register()
