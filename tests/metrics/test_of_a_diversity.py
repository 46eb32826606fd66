"""Metrics of a `Diversity`: what they answer of its samples, from what it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter import metrics
from vendimeter.data.collection import Collection
from vendimeter.errors import AsymmetryError, InputError
from vendimeter.kernels import RBF, Embed, FromFunction

RNG = np.random.default_rng(3)
ROWS = np.repeat(np.abs(RNG.standard_normal((30, 4))), 2, axis=0)[:57]
TEXTS = ["a dog", "a dog runs", "two boats at sea", "a boat", "the dog and the boat", "a dog"]
WEIGHTS = {"none": {}, "weights": {"weights": np.arange(1, 58) / 1653}, "counts": {"counts": [1, 2, 4] * 19}}


def near(a: Any, b: Any) -> float:
    return float(np.exp(-np.sum((np.asarray(a) - np.asarray(b)) ** 2)))


KERNELS: dict[str, tuple[Any, Any]] = {
    "features": (ROWS, "cosine"),
    "pairwise": (ROWS, RBF(0.7)),
    "matrix": (RBF(0.7).similarity(ROWS, rng=0).dense(), "precomputed"),
    "function": ([tuple(row) for row in ROWS.tolist()], near),
    "mended": (ROWS, FromFunction(lambda a, b: 2 * near(a, b), normalize=True)),
    "drawn": (ROWS, vm.kernels.RandomFeatures(RBF(1.0), 64)),
}
WEIGHTED: dict[str, Any] = {
    "intdiv": lambda *given, **options: metrics.intdiv(*given, **options),
    "intdiv of others": lambda *given, **options: metrics.intdiv(*given, diagonal=False, **options),
    "intdiv of squares": lambda *given, **options: metrics.intdiv(*given, p=2, **options),
    "mean_similarity": lambda *given, **options: metrics.mean_similarity(*given, **options),
    "leinster_cobbold": lambda *given, **options: metrics.leinster_cobbold(*given, q=2, **options),
}
COUNTING: dict[str, Any] = {
    "log_det": lambda *given: (lambda found: [found, *found.bounds, found.rank])(metrics.log_det(*given, shift=0.5)),
    "components": lambda *given: metrics.components(*given, threshold=0.8, eigenvalues=3).laplacian,
    "circles": lambda *given: metrics.circles(*given, threshold=0.3).indices,
    "birthday_paradox": lambda *given: metrics.birthday_paradox(*given, threshold=0.9).high,
    "birthday_paradox in batches": lambda *given: metrics.birthday_paradox(*given, threshold=0.9, batch=5).low,
}  # fmt: skip


@pytest.mark.parametrize("setting", sorted(KERNELS.keys() - {"drawn"}))  # whose similarities may be negative
@pytest.mark.parametrize("weighting", WEIGHTS)
@pytest.mark.parametrize("metric", WEIGHTED)
def test_metrics_with_weights(metric: str, weighting: str, setting: str) -> None:
    (samples, kernel), options = KERNELS[setting], WEIGHTS[weighting]
    expected = WEIGHTED[metric](samples, kernel, **options)
    d = vm.Diversity(samples, kernel, **options)
    np.testing.assert_allclose(WEIGHTED[metric](d), expected, rtol=1e-9, atol=1e-12)
    d.score(), d.contributions()
    np.testing.assert_allclose(WEIGHTED[metric](d), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("setting", KERNELS)
@pytest.mark.parametrize("metric", COUNTING)
def test_metrics_without(metric: str, setting: str) -> None:
    samples, kernel = KERNELS[setting]
    expected = COUNTING[metric](samples, kernel)
    d = vm.Diversity(samples, kernel)
    np.testing.assert_allclose(COUNTING[metric](d), expected, rtol=1e-9, atol=1e-9)
    d.score(), d.contributions()
    np.testing.assert_allclose(COUNTING[metric](d), expected, rtol=1e-9, atol=1e-9)
    part = d.take(np.arange(0, 57, 2))
    alone = samples[::2] if setting != "matrix" else samples[::2, ::2]
    if setting != "drawn":
        np.testing.assert_allclose(
            COUNTING[metric](part), COUNTING[metric](alone, kernel), rtol=1e-9, atol=1e-9
        )
    with pytest.raises(InputError, match=r"the Diversity has counts, and .* counts every sample once"):
        COUNTING[metric](vm.Diversity(samples, kernel, counts=[2] * 57))


@pytest.mark.parametrize("n", [60, 300])
def test_a_function_is_called_once_a_pair(n: int) -> None:
    x = RNG.random(n)
    for first in (*WEIGHTED.values(), *COUNTING.values()):
        calls = []

        def function(a: float, b: float, calls: list[int] = calls) -> float:
            calls.append(1)
            return float(np.exp(-abs(a - b)))

        d = vm.Diversity(x, function)
        first(d)
        for other in (*WEIGHTED.values(), *COUNTING.values()):
            other(d)
        # Of few items, such as a batch, both orders of each pair are asked for; of more a sample of them.
        assert len(calls) <= (n * n if n <= 64 else n * (n + 1) // 2 + 32 * 32 + 2 * n)


def test_pairs_within_a_threshold_call_a_function_about_once_a_pair() -> None:
    x, calls = RNG.random(400), []

    def function(a: float, b: float) -> float:
        calls.append(1)
        return float(np.exp(-abs(a - b)))

    for metric in (COUNTING["components"], COUNTING["circles"], COUNTING["birthday_paradox"]):
        calls.clear()
        metric(x, function)
        assert len(calls) <= 1.2 * 400 * 401 / 2


def test_a_lopsided_function_is_found_out() -> None:
    for metric in (*WEIGHTED.values(), *COUNTING.values()):
        d = vm.Diversity(RNG.random(100), lambda a, b: float(np.exp(-abs(a - b))) * (1.01 if a < b else 1))
        with pytest.raises(AsymmetryError):
            metric(d)


def test_nothing_is_kept_anew_for_a_second_metric() -> None:
    d = vm.Diversity(ROWS)
    d.score()
    kept = [one.name for one in d.kept()]
    metrics.log_det(d, shift=1), metrics.intdiv(d), metrics.circles(d, threshold=0.5)
    assert [one.name for one in d.kept()] == kept
    assert d.eigenvalues() is d.spectrum()


def test_what_belongs_to_the_object_is_refused_beside_it() -> None:
    d = vm.Diversity(ROWS)
    cases: list[tuple[Any, dict[str, Any]]] = [
        (metrics.intdiv, {"kernel": "rbf"}),
        (metrics.mean_similarity, {"counts": [1] * 57}),
        (metrics.log_det, {"rng": 1}),
        (metrics.circles, {"kernel": "rbf", "threshold": 0.5}),
    ]
    for metric, options in cases:
        with pytest.raises(InputError, match="was given beside a Diversity"):
            metric(d, **options)


# ------------------------------------------------------------------------------------------- vectors and other samples


class Letters:
    """An encoder that counts what it sees."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.seen.extend(texts)
        return np.array([[len(text), *(1.0 + text.count(letter) for letter in "aeo")] for text in texts])


VECTORS: dict[str, Any] = {
    "frechet_distance": metrics.frechet_distance,
    "kernel_distance": metrics.kernel_distance,
    "precision_recall": lambda *given: metrics.precision_recall(*given, k=1),
    "density_coverage": lambda *given: metrics.density_coverage(*given, k=1),
    "memorization": lambda *given: metrics.memorization(*given).nearest.tolist(),
    "precision_recall_curve": lambda *given: metrics.precision_recall_curve(*given, clusters=2).f_recall,
}


@pytest.mark.parametrize("metric", VECTORS)
def test_vectors_are_those_of_the_encoder(metric: str) -> None:
    encoder = Letters()
    d, reference = vm.Diversity(TEXTS, Embed(encoder)), vm.Diversity(TEXTS[:4], Embed(encoder))
    d.score(), reference.score()
    assert VECTORS[metric](d, reference) == VECTORS[metric](Letters()(TEXTS), Letters()(TEXTS[:4]))
    assert encoder.seen == TEXTS + TEXTS[:4]
    rows = vm.Diversity(ROWS, "rbf")
    assert VECTORS[metric](rows, ROWS[::2]) == VECTORS[metric](ROWS, ROWS[::2])
    with pytest.raises(InputError, match=r"^reference: the Diversity has counts, and"):
        VECTORS[metric](ROWS, vm.Diversity(ROWS, counts=[2] * 57))
    with pytest.raises(InputError, match=r"strings, and .* compares vectors"):
        VECTORS[metric](vm.Diversity(TEXTS, "ngram"), ROWS)


def test_metrics_of_vectors_alone() -> None:
    d = vm.Diversity(TEXTS, Embed(Letters()))
    assert metrics.effective_rank(d) == metrics.effective_rank(Letters()(TEXTS))
    grid = {"bounds": (0, 30), "bins": 3}
    assert metrics.grid_coverage(d, **grid) == metrics.grid_coverage(Letters()(TEXTS), **grid)
    assert metrics.grid_coverage(d, features=Letters(), **grid) == metrics.grid_coverage(d, **grid)
    np.testing.assert_allclose(metrics.Moments.of(d).mean, Letters()(TEXTS).mean(axis=0), rtol=1e-12)


def test_texts() -> None:
    d = vm.Diversity(TEXTS, "ngram", by=["x", "y"] * 3)
    groups = {"x": TEXTS[::2], "y": TEXTS[1::2]}
    for metric in (metrics.ngram_diversity, metrics.self_bleu, metrics.pairwise_bleu, metrics.d_lex_sim):
        assert metric(d) == metric(TEXTS)
        assert metric(d, groups=True) == metric(groups)
        assert metric(d, by=["x", "y"] * 3) == metric(groups)
        with pytest.raises(InputError, match="there are no groups"):
            metric(vm.Diversity(TEXTS, "ngram"), groups=True)
        with pytest.raises(InputError, match="the Diversity has counts"):
            metric(vm.Diversity(TEXTS, "ngram", counts=[1] * 6))
    assert metrics.compression_ratio(d) == metrics.compression_ratio(TEXTS)
    tokens = [text.split() for text in TEXTS]
    assert metrics.ngram_diversity(vm.Diversity(tokens, "ngram")) == metrics.ngram_diversity(TEXTS)
    nested = Collection([TEXTS[:3], TEXTS[3:]])
    assert metrics.self_bleu(vm.Diversity(nested, "ngram"), groups=True) == metrics.self_bleu(nested)


def test_references_of_texts() -> None:
    pytest.importorskip("sacrebleu")
    d = vm.Diversity(TEXTS, "ngram")
    assert metrics.corpus_bleu(d, vm.Diversity(TEXTS[::-1], "ngram")) == metrics.corpus_bleu(
        TEXTS, TEXTS[::-1]
    )
    grouped = vm.Diversity(TEXTS, "ngram", by=["x", "y"] * 3)
    references = {"x": TEXTS[1:3], "y": TEXTS[:1]}
    expected = metrics.corpus_bleu({"x": TEXTS[::2], "y": TEXTS[1::2]}, references)
    assert metrics.corpus_bleu(grouped, references, groups=True) == expected


def test_classes() -> None:
    rows = RNG.dirichlet(np.ones(4), size=9)
    weights = np.arange(1, 10) / 45
    d, weighted = vm.Diversity(rows, "rbf"), vm.Diversity(rows, "rbf", weights=weights)
    for metric in (metrics.mode_diversity, metrics.jensen_shannon_diversity):
        assert metric(d) == metric(rows)
        assert metric(weighted) == metric(rows, weights=weights)
        assert metric(Collection(rows, weights=9 * weights)) == pytest.approx(metric(weighted), rel=1e-12)
    assert metrics.number_of_modes(d) == metrics.number_of_modes(rows)
    assert metrics.inception_score(d, splits=2) == metrics.inception_score(rows, splits=2)
    assert metrics.hill(d).tolist() == metrics.hill(rows).tolist()
    for metric in (metrics.number_of_modes, metrics.inception_score, metrics.hill):
        with pytest.raises(InputError, match="the Diversity has weights"):
            metric(weighted)


def test_molecules() -> None:
    pytest.importorskip("rdkit")
    smiles = ["CCO", "OCC", "Cc1ccccc1"]
    d = vm.Diversity(smiles, "morgan")
    assert metrics.molecules(d, vm.Diversity(["CCO", "CCCC"], "morgan")) == metrics.molecules(
        smiles, ["CCO", "CCCC"]
    )


def test_molecules_that_were_left_out(tmp_path: Any) -> None:
    pytest.importorskip("rdkit")
    (tmp_path / "m.smi").write_text("CCO\nC(C\nCCN\n")
    d = vm.Diversity(vm.read(tmp_path / "m.smi", skip_broken=True), "morgan")
    with pytest.raises(
        InputError, match="1 records were left out on reading, and molecules counts what is broken"
    ):
        metrics.molecules(d)


def test_errors_say_where_an_item_was_read(tmp_path: Any) -> None:
    rows = ROWS.copy()
    rows[7, 1] = np.nan
    np.save(tmp_path / "bad.npy", rows)
    d = vm.Diversity(vm.read(tmp_path / "bad.npy"), "cosine")
    with pytest.raises(InputError, match=r"^reference: item 7 \(.*bad\.npy.*\) holds nan in column 1"):
        metrics.frechet_distance(ROWS, d)
    with pytest.raises(InputError, match=r"^item 7 \(.*bad\.npy.*\) holds nan in column 1"):
        metrics.frechet_distance(d, ROWS)
    with pytest.raises(InputError, match=r"^item 7 \(.*bad\.npy.*\)"):
        metrics.intdiv(d)
