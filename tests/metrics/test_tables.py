"""Tables of metrics: what applies, the figures of the functions themselves, formats, and what users write in names."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import vendimeter as vm
from vendimeter import metrics
from vendimeter.data.collection import Collection
from vendimeter.errors import EmptyError, InputError, UnknownNameError
from vendimeter.kernels import RBF, Embed, NGram

RNG = np.random.default_rng(5)
REAL = RNG.normal(size=(80, 6))
MODEL = RNG.normal(size=(60, 6)) * 0.8 + 0.2
CAPTIONS = [
    "a dog runs on the beach",
    "a dog runs on grass",
    "two boats at sea today",
    "a red kite in the sky",
]
GROUPS = [CAPTIONS, ["a cat", "a cat", "one more cat here"], CAPTIONS[::-1]]
ROWS = RNG.dirichlet(np.full(7, 0.2), size=50)


def columns_of(table):
    return [column.name for column in table.columns]


# -------------------------------------------------------------------------------------------------- which metrics apply


def test_vectors_alone_have_no_metric_that_needs_a_reference():
    assert columns_of(metrics.table({"a": REAL})) == ["n", "intdiv", "vendi_score"]


def test_vectors_with_a_reference():
    table = metrics.table({"real": REAL, "model": MODEL}, reference="real")
    assert columns_of(table) == [
        "n", "frechet_distance", "kernel_distance", "precision", "recall", "density", "coverage", "intdiv",
        "vendi_score",
    ]  # fmt: skip
    assert table["real"]["frechet_distance"] is None
    row = table["model"]
    overlap = metrics.precision_recall(MODEL, REAL)
    cover = metrics.density_coverage(MODEL, REAL)
    assert row["frechet_distance"] == metrics.frechet_distance(MODEL, REAL)
    assert row["kernel_distance"] == metrics.kernel_distance(MODEL, REAL)
    assert (row["precision"], row["recall"]) == (overlap.precision, overlap.recall)
    assert (row["density"], row["coverage"]) == (cover.density, cover.coverage)
    assert row["intdiv"] == metrics.intdiv(MODEL)
    assert row["vendi_score"] == vm.score(MODEL)


def test_a_reference_of_its_own_is_compared_with_every_row():
    table = metrics.table({"a": MODEL, "b": REAL}, reference=REAL + 0.5, metrics=["frechet_distance"])
    assert table["a"]["frechet_distance"] == pytest.approx(
        metrics.frechet_distance(MODEL, REAL + 0.5), rel=1e-9
    )
    assert table["b"]["frechet_distance"] == pytest.approx(1.5, rel=1e-9)  # a shift of 0.5 in six columns


def test_texts_use_the_tokens_of_the_kernel():
    kernel = NGram(1, 2, tokenizer="characters", lowercase=False)
    table = metrics.table({"x": CAPTIONS}, kernel)
    assert columns_of(table) == [
        "n", "ngram_diversity", "self_bleu", "compression_ratio", "intdiv", "vendi_score",
    ]  # fmt: skip
    options = {"tokenizer": "characters", "lowercase": False}
    assert table["x"]["ngram_diversity"] == metrics.ngram_diversity(CAPTIONS, low=1, high=2, **options)
    assert table["x"]["self_bleu"] == metrics.self_bleu(CAPTIONS, **options)
    other = metrics.table({"x": CAPTIONS}, kernel, options={"ngram_diversity": {"tokenizer": None}})
    assert other["x"]["ngram_diversity"] == metrics.ngram_diversity(CAPTIONS, low=1, high=2, lowercase=False)


def test_groups_of_texts_are_averaged():
    """The paper's table of captions: means over images, and BLEU with the captions of the same image as references."""
    pytest.importorskip("sacrebleu")
    table = metrics.table(
        {"human": GROUPS, "first": [[g[0]] * 3 for g in GROUPS]}, "ngram", groups=True, reference="human"
    )
    assert columns_of(table) == ["n", "corpus_bleu", "ngram_diversity", "self_bleu", "intdiv", "vendi_score"]
    row = table["human"]
    assert row["n"] == 11
    assert row["vendi_score"] == pytest.approx(np.mean([vm.score(g, "ngram") for g in GROUPS]), rel=1e-12)
    assert row["intdiv"] == pytest.approx(np.mean([metrics.intdiv(g, "ngram") for g in GROUPS]), rel=1e-12)
    each = [metrics.ngram_diversity(g) for g in GROUPS]
    assert row["ngram_diversity"] == pytest.approx(np.mean(each), rel=1e-12)
    assert row["corpus_bleu"] is None
    first = [[group[0]] * 3 for group in GROUPS]
    assert table["first"]["corpus_bleu"] == metrics.corpus_bleu(first, GROUPS, groups=True)
    assert any(note.kind == "means-over-groups" for note in table.notes)
    cell = table.cells[0][-1]
    errors = np.std([vm.score(g, "ngram") for g in GROUPS], ddof=1) / math.sqrt(3)
    assert cell.spread == pytest.approx(errors, rel=1e-9)


def test_a_collection_of_lists_is_groups(tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps({"answers": group}) + "\n" for group in GROUPS))
    answers = vm.read(file, samples="answers")
    table = metrics.table({"model": answers}, "ngram")
    assert table["model"] == metrics.table({"model": GROUPS}, "ngram", groups=True)["model"]


def test_molecules_that_are_none_count_for_validity_alone():
    pytest.importorskip("rdkit")
    smiles = ["CCO", "OCC", "c1ccccc1", "C(C", "CC(=O)O"]
    table = metrics.table({"x": smiles}, "morgan", reference=["CCO", "CCN"])
    row = table["x"]
    assert (row["n"], row["validity"], row["uniqueness"]) == (4, 0.8, 0.75)
    assert row["novelty"] == pytest.approx(2 / 3)
    valid = [text for text in smiles if text != "C(C"]
    assert row["vendi_score"] == vm.score(valid, "morgan")
    assert table.notes[0].kind == "no-molecules"
    assert table.notes[0].values == {"collection": "x", "left_out": 1, "n": 5}
    compared = metrics.table({"x": valid}, "morgan", reference=["CCO", "C(C"], metrics=["molecules"])
    assert [note.values for note in compared.notes] == [{"collection": None, "left_out": 1, "n": 2}]


def test_probabilities_by_kernel_or_beside_vectors():
    own_table = metrics.table({"x": ROWS}, "probability-product")
    assert columns_of(own_table) == [
        "n",
        "inception_score",
        "number_of_modes",
        "mode_diversity",
        "intdiv",
        "vendi_score",
    ]
    beside = metrics.table({"x": REAL[:50]}, probabilities={"x": ROWS})
    for name in ("inception_score", "number_of_modes", "mode_diversity"):
        assert own_table["x"][name] == beside["x"][name]
    logits = np.log(ROWS + 1e-300)
    kernel = vm.kernels.ProbabilityProduct(logits=True)
    assert metrics.table({"x": logits}, kernel)["x"]["mode_diversity"] == pytest.approx(
        own_table["x"]["mode_diversity"]
    )


def test_other_kernels_have_what_needs_only_similarities():
    table = metrics.table({"x": ["red", "red", "blue"]}, "match")
    assert columns_of(table) == ["n", "intdiv", "vendi_score"]
    assert table["x"]["intdiv"] == pytest.approx(4 / 9)


def test_every_metric_of_the_package_can_be_asked_for():
    from vendimeter.metrics.registry import METRICS

    functions = {name for name in metrics.__all__ if name.islower()}
    assert functions - set(METRICS) == {"table", "hill", "mean_similarity"}  # of counts, and of single items
    assert set(METRICS) <= functions


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("leinster_cobbold", {"q": 2}), ("log_det", {"shift": 1.0}), ("components", {"threshold": 0.5}),
        ("circles", {"threshold": 0.4}), ("birthday_paradox", {"threshold": 0.95}),
    ],
)  # fmt: skip
def test_metrics_of_similarities_on_request(name, options):
    rows = np.abs(REAL)
    table = metrics.table({"x": rows}, metrics=[name], options={name: options})
    assert (
        table["x"][name] == int(metrics.circles(rows, **options))
        if name == "circles"
        else float(getattr(metrics, name)(rows, **options))
    )


def test_named_after_the_paper_and_on_request():
    """Collisions, grids and the curve of precision and recall: never unasked, each as its function gives it."""
    options = {
        "birthday_paradox": {"threshold": 0.9},
        "grid_coverage": {"bounds": (-6, 6), "bins": 3},
        "precision_recall_curve": {"clusters": 5, "runs": 2},
    }
    collections = {"real": REAL, "model": 0.7 * REAL[:40]}
    unasked = metrics.table(collections, reference="real")
    assert not {"birthday_paradox", "grid_coverage", "f_recall"} & set(columns_of(unasked))
    table = metrics.table(collections, reference="real", metrics=list(options), options=options)
    assert columns_of(table) == [
        "n",
        "birthday_paradox",
        "grid_coverage",
        "f_precision",
        "f_recall",
        "vendi_score",
    ]
    row, result = table["model"], metrics.birthday_paradox(collections["model"], threshold=0.9)
    assert row["birthday_paradox"] == float(result)
    assert table.to_frame().loc[1, "birthday_paradox_high"] == result.high
    assert row["grid_coverage"] == metrics.grid_coverage(collections["model"], bounds=(-6, 6), bins=3)
    curve = metrics.precision_recall_curve(collections["model"], REAL, clusters=5, runs=2)
    assert (row["f_precision"], row["f_recall"]) == (curve.f_precision, curve.f_recall)
    assert table["real"]["f_recall"] is None
    assert table.notes[-1].kind == "plus-minus"
    assert table.notes[-1].values["Birthday paradox"] == "the interval of the sampling error"
    # Nothing collides: an infinite figure and one end of its interval.
    separate = metrics.table(
        {"x": REAL}, metrics=["birthday_paradox"], options={"birthday_paradox": {"threshold": 1}}
    )
    assert separate["x"]["birthday_paradox"] == np.inf
    assert "∞" in separate.to_markdown()
    assert (low := separate.to_dict()["rows"][0]["birthday_paradox_low"]) > 1
    assert separate.notes[0].values == {"column": "Birthday paradox", "low": (low,)}
    shared = {**options["grid_coverage"], "quality": np.ones(len(REAL))}
    with pytest.raises(InputError, match="no QD-score in a table"):
        metrics.table({"x": REAL}, metrics=["grid_coverage"], options={"grid_coverage": shared})


def test_ensembles_in_a_table():
    rows = np.random.default_rng(0).dirichlet(np.ones(4), size=12)
    table = metrics.table({"x": rows}, "probability-product", metrics=["jensen_shannon_diversity"])
    assert table["x"]["jensen_shannon_diversity"] == metrics.jensen_shannon_diversity(rows)
    assert "jensen_shannon_diversity" not in columns_of(metrics.table({"x": rows}, "probability-product"))


def test_weights_of_distributions(tmp_path):
    (tmp_path / "rows.csv").write_text("p,q,w\n0.5,0.5,0.2\n0.9,0.1,0.5\n0.1,0.9,0.3\n")
    rows = vm.read(tmp_path / "rows.csv", samples=["p", "q"], weight="w")
    names = ["jensen_shannon_diversity", "mode_diversity"]
    row = metrics.table({"x": rows}, "probability-product", metrics=names)["x"]
    for name in names:
        as_json = [[0.5, 0.5], [0.9, 0.1], [0.1, 0.9]]
        assert row[name] == getattr(metrics, name)(as_json, weights=[0.2, 0.5, 0.3])
        assert row[name] != getattr(metrics, name)(as_json)


def test_texts_of_one_group_are_no_independent_samples():
    groups = [["a dog", "a cat"], ["two boats", "a boat"]]
    with pytest.raises(
        InputError, match="birthday_paradox expected independent samples, and those of one group are not"
    ):
        metrics.table(
            {"x": groups},
            "ngram",
            groups=True,
            metrics=["birthday_paradox"],
            options={"birthday_paradox": {"threshold": 0.5}},
        )


def test_texts_take_the_tokens_of_the_first_kernel_of_texts():
    """Not the first of all, which may say nothing of tokens, fingerprints or vectors."""
    kernel = NGram(1, 2, tokenizer="characters")
    table = metrics.table({"x": CAPTIONS}, {"match": "match", "ngram": kernel}, metrics=["ngram_diversity"])
    assert table["x"]["ngram_diversity"] == metrics.ngram_diversity(
        CAPTIONS, low=1, high=2, tokenizer="characters"
    )


def lengths(texts):
    return np.array([[len(text), text.count("a"), text.count("e"), 1] for text in texts], dtype=float)


def test_distances_are_those_of_the_first_kernel_with_vectors():
    kernels = {"match": "match", "lengths": Embed(lengths)}
    chosen = {"metrics": ["precision_recall"], "options": {"precision_recall": {"k": 1}}}
    table = metrics.table({"x": CAPTIONS, "y": CAPTIONS[::-1] * 2}, kernels, reference="x", **chosen)
    expected = metrics.precision_recall(lengths(CAPTIONS[::-1] * 2), lengths(CAPTIONS), k=1)
    assert (table["y"]["precision"], table["y"]["recall"]) == (expected.precision, expected.recall)


def test_molecules_are_compared_by_the_kernel_of_molecules():
    pytest.importorskip("rdkit")
    table = metrics.table(
        {"x": ["CCO", "CCC"]}, {"match": "match", "maccs": "maccs"}, reference=["CCN", "C(C"]
    )
    expected = metrics.molecules(["CCO", "CCC"], ["CCN"], kernel="maccs")
    assert table["x"]["nearest_similarity"] == expected.nearest_similarity
    assert table.notes[0].values == {"collection": None, "left_out": 1, "n": 2}


def test_probabilities_of_what_is_no_molecule_are_left_out():
    pytest.importorskip("rdkit")
    rows = np.eye(3)[[0, 1, 0, 2]]
    table = metrics.table(
        {"x": pa.array(["CCO", "C(C", "CC", "CCC"])},
        "morgan",
        probabilities={"x": rows},
        metrics=["mode_diversity", "number_of_modes"],
    )
    assert table["x"]["number_of_modes"] == 2
    assert table["x"]["mode_diversity"] == metrics.mode_diversity(rows[[0, 2, 3]])


def test_records_that_were_left_out_on_reading_are_missed(tmp_path):
    pytest.importorskip("rdkit")
    file = tmp_path / "some.smi"
    file.write_text("CCO\nC(C\nCC\n")
    with pytest.raises(InputError, match="collection 'x': 1 records were left out on reading"):
        metrics.table({"x": vm.read(file, skip_broken=True)}, "morgan")
    assert metrics.table({"x": vm.read(file)}, "morgan")["x"]["validity"] == pytest.approx(2 / 3)


def test_case_counts_for_bleu_against_a_reference():
    pytest.importorskip("sacrebleu")
    shouted = [text.upper() if i else text for i, text in enumerate(CAPTIONS)]
    table = metrics.table({"x": shouted}, "ngram", reference=CAPTIONS, metrics=["corpus_bleu"])
    assert table["x"]["corpus_bleu"] == metrics.corpus_bleu(shouted, CAPTIONS) < 1
    words = NGram(tokenizer="words")
    table = metrics.table({"x": shouted}, words, reference=CAPTIONS, metrics=["corpus_bleu"])
    assert table["x"]["corpus_bleu"] == 1  # the tokens of that kernel, without case


def test_groups_of_which_some_are_small_and_metrics_of_all_texts():
    groups = [*GROUPS, ["a single one"], []]
    flat = [text for group in groups for text in group]
    kernel = Embed(lengths, kernel=RBF("median"))
    table = metrics.table(
        {"x": groups, "y": GROUPS},
        kernel,
        groups=True,
        reference="y",
        metrics=["intdiv", "self_bleu", "pairwise_bleu", "frechet_distance"],
    )
    result, all_texts = table["x"], [text for group in GROUPS for text in group]
    fitted = RBF("median").fit(lengths(flat + all_texts))  # on texts, not on lists of them
    each = [metrics.intdiv(lengths(group), fitted) for group in groups if group]
    assert result["intdiv"] == pytest.approx(np.mean(each), rel=1e-12)
    scores = [vm.score(lengths(group), fitted) for group in groups if group]
    assert result["vendi_score"] == pytest.approx(np.mean(scores), rel=1e-12)
    assert result["self_bleu"] == metrics.self_bleu(groups, groups=True)
    assert result["pairwise_bleu"] == metrics.pairwise_bleu(groups, groups=True)
    distance = metrics.frechet_distance(lengths(flat), lengths(all_texts))
    assert result["frechet_distance"] == pytest.approx(distance, rel=1e-9)
    assert [(note.kind, dict(note.values)) for note in table.notes[1:]] == [
        ("means-over-groups", {"columns": ("IntDiv", "Self-BLEU", "VS")}),
        ("all-groups-together", {"columns": ("Pairwise BLEU", "FD")}),
        ("small-groups-left-out", {}),
    ]


def test_tokens_have_no_compression_ratio():
    tokens = [["a", "b"], ["a", "c"]]
    table = metrics.table({"x": tokens}, "ngram", groups=False)
    assert columns_of(table) == ["n", "ngram_diversity", "self_bleu", "intdiv", "vendi_score"]


def test_weights_of_a_reference_are_refused():
    weighted = Collection(CAPTIONS, weights=[1, 2, 3, 4])
    with pytest.raises(InputError, match="reference: the collection has weights, and corpus_bleu"):
        metrics.table({"x": CAPTIONS}, "ngram", reference=weighted, metrics=["corpus_bleu"])


# ----------------------------------------------------------------------------------------- what is computed only once

MANY = ["intdiv", "leinster_cobbold", "log_det", "components", "circles"]
OPTIONS = {"components": {"threshold": 0.5}, "circles": {"threshold": 0.5}}


def test_a_function_is_called_once_a_pair():
    """Not once a metric: beside that only a sample of 32 × 32 pairs, which says whether it is symmetric."""
    calls = []

    def near(a, b):
        calls.append((float(a), float(b)))
        return math.exp(-abs(a - b))

    places = {"x": np.arange(120) / 10, "y": np.arange(100) / 7 + 100}
    table = metrics.table(places, near, metrics=MANY, options=OPTIONS, q=[0, 1, 2])
    assert columns_of(table)[1:6] == MANY
    assert len(calls) == 120 * 121 // 2 + 100 * 101 // 2 + 2 * 32**2
    assert all((a < 100) == (b < 100) for a, b in calls)  # no pair of two collections


def test_an_encoder_runs_once_an_item():
    calls = []

    def encoder(texts):
        calls.extend(texts)
        return lengths(texts)

    texts = {"x": CAPTIONS, "y": [text + "!" for text in CAPTIONS]}
    kernels = {"cosine": Embed(encoder), "rbf": Embed(encoder, kernel=RBF("median"))}
    names = ["frechet_distance", "effective_rank", "intdiv", "leinster_cobbold"]
    table = metrics.table(texts, kernels, reference="x", metrics=names, q=[1, 2])
    assert sorted(calls) == sorted(texts["x"] + texts["y"])
    assert table["y"]["vendi_score_cosine"] == vm.score(texts["y"], Embed(lengths))


@pytest.mark.parametrize("groups", [None, True])
def test_texts_are_split_once(groups):
    calls = []

    def tokenizer(text):
        calls.append(text)
        return text.split()

    texts = {"x": GROUPS, "y": GROUPS[:2]} if groups else {"x": CAPTIONS, "y": CAPTIONS[:3]}
    names = ["ngram_diversity", "self_bleu", "pairwise_bleu", "intdiv", "leinster_cobbold"]
    kernels = {"ngram": NGram(1, 2, tokenizer=tokenizer), "short": NGram(1, 1, tokenizer=tokenizer)}
    table = metrics.table(texts, kernels, groups=groups, metrics=names, q=[1, 2])
    items = [text for group in GROUPS + GROUPS[:2] for text in group] if groups else CAPTIONS + CAPTIONS[:3]
    assert sorted(calls) == sorted(items)
    words = {name: replace(kernel, tokenizer="whitespace") for name, kernel in kernels.items()}
    expected = metrics.table(texts, words, groups=groups, metrics=names, q=[1, 2])
    assert [table[name] for name in texts] == [expected[name] for name in texts]
    assert table["y"]["self_bleu"] == metrics.self_bleu(
        texts["y"], tokenizer=str.split, lowercase=True, groups=groups
    )


# ------------------------------------------------------------------------------------------------------ of a Diversity


def known(row):
    return {name: value for name, value in row.items() if value is not None}


def test_each_group_of_a_diversity_is_a_row():
    joined, labels = np.concatenate([REAL, MODEL]), ["real"] * 80 + ["model"] * 60
    expected = metrics.table({"real": REAL, "model": MODEL}, RBF("median"), reference="real", rng=3)
    for diversity in (
        vm.Diversity(joined, RBF("median"), by=labels, rng=3),
        vm.Diversity.of({"real": REAL, "model": MODEL}, RBF("median"), rng=3),
    ):
        table = metrics.table(diversity, reference="real")
        assert (table.names, table.columns, table.notes) == (expected.names, expected.columns, expected.notes)
        for name in table.names:
            assert known(table[name]) == pytest.approx(known(expected[name]), rel=1e-12)
    alone = metrics.table(vm.Diversity(REAL), reference=vm.Diversity(MODEL))
    assert alone.names == ("samples",)
    assert alone["samples"] == pytest.approx(metrics.table({"samples": REAL}, reference=MODEL)["samples"])


def test_diversities_by_name():
    """Such as all items above their groups, which share what was computed."""
    calls = []

    def near(a, b):
        calls.append((a, b))
        return math.exp(-abs(a - b))

    diversity = vm.Diversity(np.arange(80) / 10, near)
    rows = {"all": diversity, "even": diversity.take(slice(None, None, 2))}
    table = metrics.table(rows, metrics=["intdiv", "log_det"])
    assert table.names == ("all", "even")
    assert len(calls) == 80 * 81 // 2 + 32**2
    assert table["even"]["vendi_score"] == pytest.approx(vm.score(np.arange(0, 80, 2) / 10, near), rel=1e-12)
    with pytest.raises(InputError, match=r"collection 'b': it is .*, and others are Diversities"):
        metrics.table({"a": diversity, "b": REAL})
    with pytest.raises(
        InputError, match=r"collection 'b': it has the kernel RBF\(sigma=.*\), and another Diversity Cosine"
    ):
        metrics.table({"a": vm.Diversity(REAL), "b": vm.Diversity(REAL, "rbf")})


def test_a_diversity_is_not_computed_anew():
    calls = []

    def encoder(texts):
        calls.extend(texts)
        return lengths(texts)

    diversity = vm.Diversity(CAPTIONS, Embed(encoder), by=["a", "a", "b", "b"])
    diversity.score()
    table = metrics.table(diversity, metrics=["effective_rank", "intdiv"])
    assert calls == CAPTIONS
    assert table["b"]["intdiv"] == pytest.approx(metrics.intdiv(lengths(CAPTIONS[2:])), rel=1e-12)


def test_weights_of_a_diversity_are_used_or_refused():
    diversity = vm.Diversity(CAPTIONS, "ngram", by=["a", "a", "b", "b"], counts=[1, 2, 3, 4])
    table = metrics.table(diversity, metrics=["intdiv"])
    assert table["b"]["intdiv"] == pytest.approx(
        metrics.intdiv(CAPTIONS[2:], "ngram", weights=[3 / 7, 4 / 7])
    )
    assert table["b"]["vendi_score"] == pytest.approx(vm.score(CAPTIONS[2:], "ngram", counts=[3, 4]))
    with pytest.raises(InputError, match="collection 'a': the collection has weights, and ngram_diversity"):
        metrics.table(diversity)


def test_records_that_were_left_out_of_a_diversity_are_missed(tmp_path):
    pytest.importorskip("rdkit")
    file = tmp_path / "some.smi"
    file.write_text("CCO\nC(C\nCC\n")
    with pytest.raises(InputError, match="1 records were left out on reading"):
        metrics.table(vm.Diversity(vm.read(file, skip_broken=True), "morgan"))


# ------------------------------------------------------------------------------------------------------------ options


def test_several_kernels_and_orders():
    kernels = {"cos": "cosine", "rbf": RBF("median")}
    table = metrics.table({"a": REAL, "b": MODEL}, kernels, q=[1, 2])
    assert columns_of(table) == [
        "n", "intdiv_cos", "intdiv_rbf", "vendi_score_cos", "vendi_score_q2_cos", "vendi_score_rbf",
        "vendi_score_q2_rbf",
    ]  # fmt: skip
    fitted = RBF("median").fit(np.concatenate([REAL, MODEL]))  # once, on all collections
    assert table["b"]["vendi_score_q2_rbf"] == vm.score(MODEL, fitted, q=2)
    assert table["a"]["intdiv_rbf"] == metrics.intdiv(REAL, fitted)


def test_labels_go_by_position_whatever_the_index_of_a_column_is():
    texts = pd.Series(["a b", "a b", "c d", "e f"], index=[3, 2, 1, 0])
    table = metrics.table(texts, "ngram", by=["x", "x", "y", "y"], metrics=[])
    assert (table["x"]["vendi_score"], table["y"]["vendi_score"]) == (1.0, 2.0)


def test_a_tensor_is_a_reference_even_beside_names_that_are_numbers():
    torch = pytest.importorskip("torch")
    table = metrics.table({0: MODEL}, reference=torch.from_numpy(REAL), metrics=["frechet_distance"])
    assert table[0]["frechet_distance"] == metrics.frechet_distance(MODEL, REAL)


def test_by_labels_in_order_of_first_appearance():
    joined = np.concatenate([REAL, MODEL])
    table = metrics.table(joined, by=["real"] * 80 + ["model"] * 60)
    assert table.names == ("real", "model")
    assert table["model"] == metrics.table({"model": MODEL})["model"]


def test_a_collection_falls_into_its_labels(tmp_path):
    file = tmp_path / "captions.csv"
    file.write_text(
        "text,model\n" + "".join(f"{text},{'ab'[i % 2]}\n" for i, text in enumerate(CAPTIONS * 2))
    )
    captions = vm.read(file, samples="text", label="model")
    table = metrics.table(captions, "ngram")
    assert table.names == ("a", "b")
    assert table["a"]["vendi_score"] == vm.score((CAPTIONS * 2)[::2], "ngram")
    with pytest.raises(InputError, match=r"the samples are texts|strings"):
        metrics.table(captions)


def test_weights_of_a_collection_are_used_or_refused(tmp_path):
    file = tmp_path / "captions.csv"
    file.write_text("text,times\n" + "".join(f"{text},{i + 1}\n" for i, text in enumerate(CAPTIONS)))
    captions = vm.read(file, samples="text", weight="times")
    table = metrics.table({"x": captions}, "ngram", metrics=["intdiv"])
    assert table["x"]["vendi_score"] == vm.score(captions, "ngram")
    assert table["x"]["intdiv"] == metrics.intdiv(captions, "ngram")
    with pytest.raises(InputError, match="has weights, and ngram_diversity counts every sample once"):
        metrics.table({"x": captions}, "ngram")


def test_functions_of_ones_own():
    table = metrics.table(
        {"x": CAPTIONS},
        "ngram",
        metrics={"Mean length": lambda texts: np.mean([len(t) for t in texts]), "intdiv": None},
    )
    assert columns_of(table) == ["n", "Mean length", "intdiv", "vendi_score"]
    assert table["x"]["Mean length"] == np.mean([len(t) for t in CAPTIONS])


def test_what_stands_behind_plus_minus_is_what_the_function_says():
    own_metrics = {"mine": lambda rows: metrics.kernel_distance(rows, REAL), "inception_score": None}
    table = metrics.table({"x": MODEL[:50]}, metrics=own_metrics, probabilities={"x": ROWS})
    assert [str(note) for note in table.notes] == [
        "± is, for mine: the interval of the sampling error; for IS: the standard deviation over splits."
    ]


def test_titles_of_ones_own_and_the_place_of_the_score():
    own_metrics = {"FID": "frechet_distance", "Diversity": "vendi_score", "intdiv": None}
    table = metrics.table({"x": MODEL}, reference=REAL, metrics=own_metrics)
    assert [column.title for column in table.columns] == ["n", "FID", "Diversity", "IntDiv"]
    assert columns_of(table) == ["n", "FID", "vendi_score", "intdiv"]
    assert table["x"]["FID"] == metrics.frechet_distance(MODEL, REAL)
    moved = metrics.table({"x": MODEL}, metrics=["vendi_score", "intdiv"])
    assert columns_of(moved) == ["n", "vendi_score", "intdiv"]


def test_errors_are_columns_of_a_frame():
    frame = metrics.table({"x": ROWS}, "probability-product").to_frame()
    assert frame["inception_score_error"][0] == metrics.inception_score(ROWS).std
    grouped = metrics.table({"x": GROUPS}, "ngram", groups=True)
    assert grouped.to_dict()["rows"][0]["vendi_score_error"] > 0


def test_logits_beside_vectors():
    logits = np.log(ROWS + 1e-300)
    table = metrics.table({"x": REAL[:50]}, probabilities={"x": logits}, logits=True)
    assert table["x"]["mode_diversity"] == pytest.approx(metrics.mode_diversity(ROWS), rel=1e-9)


def test_one_text_a_group_has_no_self_bleu():
    """Greedy decoding gives one caption an image; what needs another text stays empty, and the rest is there."""
    single = [[group[0]] for group in GROUPS]
    table = metrics.table({"human": GROUPS, "greedy": single}, "ngram", groups=True, metrics=["self_bleu"])
    assert table["greedy"]["self_bleu"] is None
    assert table["greedy"]["vendi_score"] == pytest.approx(1)
    alone = metrics.table({"greedy": single}, "ngram", groups=True, metrics=["self_bleu"])
    assert alone.notes[0].values == {"columns": ("VS",)}  # nothing is there to say anything of


def test_what_the_figures_leave_open_is_noted():
    small = metrics.table({"x": MODEL[:6]}, reference=REAL[:5], metrics=["frechet_distance"])
    assert {"n": 5, "columns": 6} in [note.values for note in small.notes if note.kind == "few-items"]
    enough = metrics.table({"x": MODEL}, reference=REAL, metrics=["frechet_distance"])
    assert not any(note.kind == "few-items" for note in enough.notes)
    unused = metrics.table({"x": CAPTIONS}, "ngram", reference=CAPTIONS[:2])
    assert any(note.kind == "reference-unused" for note in unused.notes)


def test_options_reach_the_metric():
    table = metrics.table(
        {"x": MODEL}, reference=REAL, metrics=["precision_recall"], options={"precision_recall": {"k": 9}}
    )
    assert table["x"]["recall"] == metrics.precision_recall(MODEL, REAL, k=9).recall


def test_the_seed_reaches_every_metric_that_draws():
    table = metrics.table({"x": ROWS}, "probability-product", metrics=["inception_score"], rng=3)
    assert (
        table["x"]["inception_score"] == metrics.inception_score(ROWS, rng=3) != metrics.inception_score(ROWS)
    )
    own_table = metrics.table(
        {"x": MODEL},
        reference=REAL,
        metrics=["kernel_distance"],
        options={"kernel_distance": {"subsets": 2, "subset_size": 9, "rng": 5}},
        rng=3,
    )
    expected = metrics.kernel_distance(MODEL, REAL, subsets=2, subset_size=9, rng=5)
    assert own_table["x"]["kernel_distance"] == expected
    assert "kernel_distance_error" not in own_table.to_frame()  # there is none


def test_bounds_of_an_approximate_score_are_shown():
    """± takes in both bounds, which need not lie around the figure."""

    def rough(rows):
        return vm.score(rows, RBF(1.0), method="lowrank", tol=0.1)

    table = metrics.table({"x": REAL[:, :3]}, RBF(1.0), metrics={"rough": rough})
    cell, result = table.cells[0][1], rough(REAL[:, :3])
    assert (cell.value, cell.low, cell.high) == (result, *result.bounds)
    assert cell.low < cell.high
    assert cell.spread == max(cell.high - cell.value, cell.value - cell.low) > result.half_width
    assert [note.values for note in table.notes] == [{"rough": "the bounds of the computation"}]
    assert {"rough_low", "rough_high", "vendi_score_low", "vendi_score_high"} <= set(table.to_frame().columns)


# ------------------------------------------------------------------------------------------------------------ formats

NASTY = "a|b_c & 50% <script>\n\x1b[31m$x$ \\input{y}"


def two_rows():
    return metrics.table({NASTY: MODEL, "real": REAL}, reference="real")


def test_latex_takes_no_name_for_an_argument():
    """Behind a row, and behind a rule, LaTeX looks for a star and for a length in brackets."""
    table = metrics.table({"[1] a": REAL, "*b--c": MODEL - 9}, "rbf", metrics={"f": lambda x: np.mean(x)})
    lines = table.to_latex(best=True).split(r"\midrule")[1].splitlines()
    assert lines[1].startswith("{[}1{]} a & 80 & ")
    assert lines[2].startswith("{*}b-{}-c & 60 & $-$8.")


@pytest.mark.parametrize(
    "name", ["a|b", r"a\|b", "*a* _b_", "[x](y)", "`c`", "<i>", "&amp;", "\\", "~~s~~", "![a](b)"]
)
def test_markdown_shows_names_as_they_are(name):
    reader = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])
    page = reader.render(metrics.table({name: REAL, "b": REAL}, metrics=[]).to_markdown())
    cell = re.search(r"<tbody>\s*<tr>\s*<td[^>]*>(.*?)</td>", page, re.DOTALL)
    assert cell is not None
    assert html.unescape(cell[1]) == name
    assert "<" not in cell[1]


def test_markdown_has_one_line_a_row_and_no_markup_of_users():
    text = two_rows().to_markdown()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 4
    cells = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert cells == {11}
    assert "\x1b" not in text
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "Precision ↑" in lines[0]
    assert "FD ↓" in lines[0]


def test_latex_escapes_names_and_marks_the_best():
    text = two_rows().to_latex(best=True, caption="50% of it", label="tab:it")
    assert r"a\textbar{}b\_c \& 50\% \textless{}script\textgreater{}" in text
    assert r"\$x\$ \textbackslash{}input\{y\}" in text
    assert r"\caption{50\% of it}" in text
    assert r"\label{tab:it}" in text
    assert r"FD $\downarrow$" in text
    assert r"\textbf{" not in text  # one row is the reference, and one alone is not the best
    three = metrics.table({"a": MODEL, "b": MODEL + 1, "real": REAL}, reference="real", metrics=["intdiv"])
    lines = three.to_latex(best=True).splitlines()
    assert sum(line.count(r"\textbf{") for line in lines if line.startswith("real")) == 0
    assert sum(line.count(r"\textbf{") for line in lines) == 2
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {9}
    assert all(line.endswith(r"\\") for line in body)
    assert text.startswith(r"\begin{table}")
    assert two_rows().to_latex().startswith(r"\begin{tabular}{l")


def test_notebooks_get_escaped_text_and_terminals_no_escape_codes():
    table = two_rows()
    assert "<script>" not in table._repr_html_()
    assert "&lt;script&gt;" in table._repr_html_()
    assert "\x1b" not in repr(table)
    assert len(repr(table).splitlines()) == 3 + len(table.notes)


def test_a_frame_has_a_row_a_collection():
    frame = two_rows().to_frame()
    assert list(frame["collection"]) == [NASTY, "real"]
    assert math.isnan(frame["frechet_distance"][1])
    assert frame["kernel_distance_low"][0] < frame["kernel_distance"][0] < frame["kernel_distance_high"][0]


def test_plain_values_are_ready_for_json():
    as_json = json.loads(json.dumps(two_rows().to_dict()))
    assert as_json["rows"][1]["frechet_distance"] is None
    assert as_json["rows"][0]["collection"] == NASTY
    assert as_json["notes"][0]["values"] == {"smallest": 60, "largest": 80}
    dates = metrics.table({pd.Timestamp("2020"): REAL, ("a", 1): REAL}, metrics=[])
    rows = json.loads(json.dumps(dates.to_dict()))["rows"]
    assert [row["collection"] for row in rows] == ["2020-01-01 00:00:00", ["a", 1]]


@pytest.mark.parametrize(
    ("values", "digits", "shown"),
    [
        ([921.0, 746.72, 943.7], 4, ["921.0", "746.7", "943.7"]),
        ([40.05, 4.394], 3, ["40.05", "4.39"]),
        ([0.8551, 0.8736], 4, ["0.8551", "0.8736"]),
        ([0.01, 0.07, 0.0], 4, ["0.010", "0.070", "0.000"]),
        ([0.0, 0.25], 3, ["0.00", "0.25"]),
        ([float("nan"), 1.0], 3, ["–", "1.00"]),
        ([float("-inf"), 1.0], 3, ["−∞", "1.00"]),
        ([None, 12.0], 3, ["", "12.0"]),
        ([1e-9, 1.0], 3, ["0.00", "1.00"]),
        ([-1e-16, 0.25], 3, ["0.00", "0.25"]),
    ],
)
def test_digits_of_a_column(values, digits, shown):
    from vendimeter.present.tables import Cell, Column, grid

    result = grid([Column("x", "x")], [[Cell(value)] for value in values], digits)
    assert [row[0][0] for row in result] == shown


def test_an_error_shows_with_two_digits():
    from vendimeter.present.tables import Cell, Column, grid

    cells = [[Cell(0.38123, spread=0.117)], [Cell(0.0912, spread=0.0611)]]
    assert grid([Column("x", "x")], cells, 4) == [[("0.38", "0.12")], [("0.09", "0.06")]]
    assert grid([Column("x", "x")], [[Cell(7.5, spread=1e-13)]], 4) == [[("7.500", "")]]


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: metrics.table({}), EmptyError, "no collections"),
        (lambda: metrics.table(REAL), InputError, "expected a collection for each name"),
        (lambda: metrics.table({"a": []}), EmptyError, "collection 'a': there are no samples"),
        (lambda: metrics.table({"a": REAL}, metrics=["fid"]), UnknownNameError, "no metric 'fid'"),
        (lambda: metrics.table({"a": REAL}, metrics="intdiv"), InputError, "expected a list of names"),
        (lambda: metrics.table({"a": REAL}, metrics=["circles"]), InputError, "circles needs the option threshold"),
        (lambda: metrics.table({"a": REAL}, metrics={"x": "precision_recall"}, reference=REAL), InputError, "columns"),
        (lambda: metrics.table({"a": CAPTIONS}, reference=CAPTIONS), InputError, "kernel='ngram'"),
        (lambda: metrics.table({"a": REAL}, logits=1), InputError, "logits=1"),
        (lambda: metrics.table({"a": REAL}, metrics={"f": 3}), InputError, "a function of samples, or None"),
        (lambda: metrics.table({"a": REAL}, metrics={"f": lambda x: "no"}), InputError, "gave 'no'; expected a number"),
        (lambda: metrics.table({"a": REAL}, reference="b"), UnknownNameError, r"collection \(as reference\) 'b'"),
        (lambda: metrics.table({1: REAL}, reference=2), UnknownNameError, r"collection \(as reference\) 2"),
        (lambda: metrics.table({"a": REAL}, logits=True), InputError, "logits=True without probabilities"),
        (lambda: metrics.table({"a": REAL}, RBF(1.0), metrics=["leinster_cobbold"],
                               options={"leinster_cobbold": {"q": [1, 2]}}),
         InputError, "collection 'a': leinster_cobbold, with these options, gave .*; expected a number"),
        (lambda: metrics.table({"a": REAL}, options={"precision_recall": {"k": 3}}), UnknownNameError, "in options"),
        (lambda: metrics.table({"a": REAL}, options={"intdiv": 3}), InputError, "expected a mapping"),
        (lambda: metrics.table({"a": REAL}, probabilities={"b": ROWS}), UnknownNameError, "in probabilities"),
        (lambda: metrics.table({"a": REAL}, probabilities=ROWS), InputError, "expected a mapping"),
        (lambda: metrics.table({"a": REAL}, kernel={}), InputError, "at least one kernel"),
        (lambda: metrics.table({"a": CAPTIONS}, "ngram", groups=True), InputError, "list of lists of texts"),
        (lambda: metrics.table({"a": GROUPS}, "ngram"), InputError, "groups=True"),
        (lambda: metrics.table({"a": REAL}, groups="yes"), InputError, "groups='yes'"),
        (lambda: metrics.table(REAL, by=["x"]), InputError, "1 labels and there are 80 items"),
        (lambda: metrics.table(REAL, by=["x", None] * 40), InputError, "item 1 has no label"),
        (lambda: metrics.table(REAL, by=[{}] * 80), InputError, "hashable label"),
        (lambda: metrics.table({"a b", "c d"}, "ngram", by=["x", "y"]), InputError, "set"),
        (lambda: metrics.table({"x": {"a"}}, "ngram", probabilities={"x": [[1.0]]}), InputError, "set"),
        (lambda: metrics.table(REAL, by=3), InputError, "by=3; expected one label"),
        (lambda: metrics.table({"a": np.eye(3)}), InputError, "collection 'a': .*looks like a similarity matrix"),
        (lambda: metrics.table({"a": REAL}, reference=REAL * np.nan), InputError, "collection 'a': reference: item 0"),
        (lambda: metrics.table({"a": REAL}, reference=[]), EmptyError, "^reference: there are no samples"),
        (lambda: metrics.table({"a": REAL}, probabilities={"a": ROWS}), InputError, "'a'.* there are 80 samples"),
        (lambda: metrics.table({"a": CAPTIONS}, "ngram", features=lambda x: REAL, reference=CAPTIONS), InputError,
         "80 rows for 4 samples"),
        (lambda: metrics.table({"a": REAL}, {1: "cosine", "1": "rbf"}), InputError, "have one name"),
        (lambda: metrics.table({"a": REAL}, metrics=[["intdiv"]]), InputError, "names that are texts"),
        (lambda: metrics.table({"a": REAL}, metrics={3: len}), InputError, "names that are texts"),
        (lambda: metrics.table({"a": REAL}, metrics={"n": len}), InputError, "two columns would have the name 'n'"),
        (lambda: metrics.table({"a": REAL}, metrics={"collection": len}), InputError, "the name 'collection'"),
        (lambda: metrics.table({"a": REAL}, metrics={"f": lambda x: "3"}), InputError, "gave '3'; expected a number"),
        (lambda: metrics.table({"a": REAL}, options={"intdiv": {"r": 3}}), UnknownNameError, "option of intdiv"),
        (lambda: metrics.table({"a": REAL}, options=[]), InputError, "expected a mapping"),
        (lambda: metrics.table({"a": REAL}, groups=np.ones(2)), InputError, "groups=<ndarray"),
        (lambda: metrics.table({"a": REAL}, progress="x"), InputError, "progress='x'"),
        (lambda: metrics.table({"a": Collection(GROUPS), "b": CAPTIONS}, "ngram"), InputError, "expected one kind"),
        (lambda: metrics.table({"a": Collection(GROUPS, weights=[1, 2, 3])}, "ngram"), InputError, "one weight a list"),
        (lambda: metrics.table({"a": REAL}, metrics=["inception_score"]), InputError, "needs the probabilities"),
        (lambda: metrics.table({"a": REAL * np.nan}), InputError, "collection 'a'"),
        (lambda: metrics.table({"a": REAL}, reference=REAL[:, :3]), InputError, "columns"),
        (lambda: metrics.table({"a": ["C(C"]}, "morgan"), EmptyError, "none of the samples is a molecule"),
        (lambda: metrics.table({"a": REAL}, metrics=["frechet_distance"]), InputError, "compares with a reference"),
        (lambda: metrics.table(vm.Diversity(REAL), "rbf"), InputError, "kernel= was given beside a Diversity"),
        (lambda: metrics.table(vm.Diversity(REAL), by=[0] * 80), InputError, "by= was given beside a Diversity"),
        (lambda: metrics.table(vm.Diversity(GROUPS, "ngram"), groups=True), InputError, "groups=True was given"),
        (lambda: metrics.table({"a": REAL}, options={"intdiv": {"weights": [1]}}), UnknownNameError, "of intdiv"),
        (lambda: metrics.table({"a": [[], []]}, "ngram", groups=True), EmptyError, "'a': every group is empty"),
        (lambda: two_rows().to_latex(label="x}y"), InputError, "label="),
        (lambda: two_rows().to_markdown(digits=0), InputError, "digits=0"),
        (lambda: two_rows()["z"], UnknownNameError, "collection in this table"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
