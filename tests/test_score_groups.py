"""Groups: every way to give them, every group a score, and means over them."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter.errors import EmptyError, IndefiniteError, InputError, UnknownNameError
from vendimeter.kernels import RBF, Cosine, Match, NGram, On, Precomputed
from vendimeter.solvers.batched import SMALL

rng = np.random.default_rng(5)
X = rng.standard_normal((60, 6))
LABELS = [f"g{i % 4}" for i in range(60)]


def test_groups_are_found_by_label_and_by_position_in_order_of_appearance():
    groups = vm.score_groups(X, by=LABELS[::-1])
    assert groups.labels == ["g3", "g2", "g1", "g0"]
    assert len(groups) == 4
    assert groups.at(0) == groups["g3"]
    assert groups.at(-1) == groups["g0"]
    assert "g1" in groups
    assert [float(score) for score in groups] == groups.scores.tolist()
    assert groups["g1"].n == 15
    assert groups["g1"].diagnostics["group"] == "g1"
    with pytest.raises(UnknownNameError, match="Did you mean 'g1'"):
        groups["G1"]
    with pytest.raises(IndexError):
        groups.at(4)
    with pytest.raises(ValueError, match="read-only"):
        groups.scores[0] = 1


def test_a_group_score_answers_other_orders():
    groups = vm.score_groups(X, by=LABELS)
    part = X[np.array(LABELS) == "g2"]
    assert groups["g2"].spectrum.score(2).value == pytest.approx(vm.score(part, q=2), rel=1e-12)


def test_several_orders_give_a_profile_a_group():
    groups = vm.score_groups(X, by=LABELS, q=[0, 1, "inf"])
    assert groups.scores.shape == (4, 3)
    assert isinstance(groups["g0"], vm.Profile)
    assert groups["g0"][1] == vm.score_groups(X, by=LABELS)["g0"]
    assert len(groups.to_frame()) == 12
    with pytest.raises(InputError, match="a mean needs one"):
        groups.mean()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_a_table_is_grouped_by_the_name_of_a_column(frame):
    table = frame({"word": ["a", "b", "a", "a"], "who": ["x", "x", "y", "y"]})
    groups = vm.score_groups(table, On("word", Match()), by="who")
    np.testing.assert_allclose(groups.scores, [2, 1])
    records = [{"word": w, "who": who} for w, who in zip("abaa", "xxyy", strict=True)]
    np.testing.assert_allclose(vm.score_groups(records, On("word", Match()), by="who").scores, [2, 1])
    with pytest.raises(UnknownNameError, match="Did you mean 'who'"):
        vm.score_groups(table, On("word", Match()), by="whom")


def test_tags_make_overlapping_groups():
    tags = [{"sweet"}, {"sweet", "green"}, set(), ["green", "green"]]
    groups = vm.score_groups(["a", "b", "c", "d"], Match(), by=tags)
    assert set(groups.labels) == {"sweet", "green"}
    assert groups.sizes.tolist() == [2, 2]
    np.testing.assert_allclose(groups.scores, [2, 2])


def test_sites_by_species_over_one_shared_matrix():
    K = RBF(1.0).similarity(X[:8]).dense()
    counts = rng.integers(0, 4, (30, 8))
    counts[3] = 0
    groups = vm.score_groups(K, "precomputed", counts=counts)
    for i, row in enumerate(counts):
        if row.any():
            assert groups.at(i) == pytest.approx(vm.score(K, "precomputed", counts=row), rel=1e-11)
            assert groups.at(i).n == row.sum()
    assert math.isnan(groups.at(3))
    assert groups.at(3).level == "none"
    assert groups.at(3).to_dict()["score"] is None
    weights = counts[:3] / counts[:3].sum(axis=1, keepdims=True)
    named = vm.score_groups(K, "precomputed", weights=weights, by=["north", "south", "west"])
    np.testing.assert_allclose(named.scores, groups.scores[:3])
    assert named.labels == ["north", "south", "west"]
    with pytest.raises(InputError, match="the weights of group 0 sum to"):
        vm.score_groups(K, "precomputed", weights=counts[:3] * 1.0)


def test_groups_given_one_by_one_and_an_empty_one():
    groups = vm.score_groups({"a": ["x", "y"], "b": [], "c": ["x"]}, Match())
    np.testing.assert_allclose(groups.scores, [2, np.nan, 1])
    assert groups["b"].level == "none"
    assert groups.levels == ["deterministic", "none", "deterministic"]
    assert json.loads(json.dumps(groups.to_dict(), allow_nan=False))["groups"][1]["score"] is None
    assert groups.to_frame()["score"].isna().tolist() == [False, True, False]
    np.testing.assert_allclose(vm.score_groups([["x", "y"], ["x"]], Match()).scores, [2, 1])
    stack = rng.standard_normal((7, 5, 3))
    np.testing.assert_allclose(
        vm.score_groups(stack).scores, [float(vm.score(part)) for part in stack], rtol=1e-12
    )


def test_large_groups_are_scored_where_they_lie_and_small_ones_together():
    parts = {"big": rng.standard_normal((SMALL + 50, 5)), "bigger": rng.standard_normal((3000, 5))}
    groups = vm.score_groups(parts)
    for label, part in parts.items():
        assert groups[label] == vm.score(part)
    mixed = vm.score_groups(parts | {"small": X[:3, :5], "none": X[:0, :5]})
    assert mixed["big"] == pytest.approx(groups["big"], rel=1e-13)
    assert mixed["small"] == pytest.approx(vm.score(X[:3, :5]), rel=1e-13)
    assert math.isnan(mixed["none"])


def test_one_matrix_a_group():
    groups = vm.score_groups({"a": np.eye(3), "b": [[1, 1], [1, 1]]}, "precomputed")
    np.testing.assert_allclose(groups.scores, [3, 1])
    bad = np.array([[1, 2], [2, 1.0]])
    with pytest.raises(IndefiniteError, match="group 'b': "):
        vm.score_groups({"a": np.eye(3), "b": bad}, "precomputed")
    K = np.eye(4)
    K[2, 3] = K[3, 2] = 2
    with pytest.raises(IndefiniteError, match="group 'late': "):
        vm.score_groups(K, "precomputed", by=["early", "early", "late", "late"])
    assert vm.score_groups(K, Precomputed(project=True), by=[0, 0, 1, 1])[1] == 1


def test_sparse_rows_in_thousands_of_groups():
    rows = sparse.random_array((5000, 400), density=0.02, rng=rng, format="csr") + sparse.csr_array(
        np.eye(5000, 400)[np.arange(5000) % 400]
    )
    labels = rng.integers(0, 1000, 5000)
    groups = vm.score_groups(sparse.csr_array(rows), Cosine(), by=labels)
    dense = vm.score_groups(rows.toarray(), Cosine(), by=labels)
    np.testing.assert_allclose(groups.scores, dense.scores, rtol=1e-11)
    assert set(groups.levels) == {"deterministic"}
    assert (groups.low <= groups.scores).all()
    assert (groups.high >= groups.scores).all()


def test_weights_are_normalised_within_each_group():
    weights = rng.dirichlet(np.ones(60))
    groups = vm.score_groups(X, by=LABELS, weights=weights)
    mine = np.array(LABELS) == "g1"
    assert groups["g1"] == pytest.approx(
        vm.score(X[mine], weights=weights[mine] / weights[mine].sum()), rel=1e-11
    )
    counts = rng.integers(0, 3, 60)
    groups = vm.score_groups(X, by=LABELS, counts=counts)
    assert groups["g1"] == pytest.approx(vm.score(np.repeat(X[mine], counts[mine], axis=0)), rel=1e-11)
    assert groups["g1"].n == counts[mine].sum()


@pytest.mark.parametrize(("call", "message"), [
    (lambda: vm.score_groups(X), "by is missing"),
    (lambda: vm.score_groups(X, by=LABELS[:-1]), "59 labels and there are 60 items"),
    (lambda: vm.score_groups(X, by="label"), "expected one label an item"),
    (lambda: vm.score_groups(X, by=[None] * 60), "item 0 has no label"),
    (lambda: vm.score_groups(X, by=[math.nan] * 60), "item 0 has no label"),
    (lambda: vm.score_groups(X, by=[{"a"}] * 59 + ["a"]), "sets throughout"),
    (lambda: vm.score_groups(X, by=[{}] * 60), "hashable label"),
    (lambda: vm.score_groups({"a": "text", "b": "text"}, Match()), "expected a collection of items"),
    (lambda: vm.score_groups({"a": X, "b": X[:, :3]}), "shapes"),
    (lambda: vm.score_groups({"a": X}, weights=np.ones(60) / 60), "go with one collection"),
    (lambda: vm.score_groups(X, by=LABELS, weights=np.ones(60)), "sum to 60"),
    (lambda: vm.score_groups(X, by=LABELS, method="fast"), "no method 'fast'"),
])  # fmt: skip
def test_bad_groups_are_errors_that_say_what_to_do(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_no_groups_and_only_empty_groups():
    with pytest.raises(EmptyError, match="no groups"):
        vm.score_groups({})
    with pytest.raises(EmptyError, match="every group is empty"):
        vm.score_groups({"a": [], "b": []}, Match())


# ----------------------------------------------------------------------------------------------------------- means


def test_means_with_standard_errors_and_paired_differences():
    answers = {}
    for prompt in range(6):
        answers["A", prompt] = [f"w{i}" for i in range(1 + prompt % 3)]
        if prompt != 5:
            answers["B", prompt] = ["w0"]
    answers["B", 9] = []
    groups = vm.score_groups(answers, NGram(1, 1))
    means = groups.mean(by=lambda label: label[0], unit=lambda label: label[1])
    a = [1, 2, 3, 1, 2, 3]
    assert means["A"].mean == pytest.approx(np.mean(a))
    assert means["A"].standard_error == pytest.approx(np.std(a, ddof=1) / math.sqrt(6))
    assert means["A"].units == 6
    assert means["B"].units == 5
    assert means.left_out == 1
    (pair,) = means.differences
    gaps = np.array([1, 2, 3, 1, 2]) - 1
    assert (pair.first, pair.second, pair.units) == ("A", "B", 5)
    assert pair.mean == pytest.approx(gaps.mean())
    assert pair.standard_error == pytest.approx(gaps.std(ddof=1) / math.sqrt(5))
    json.dumps(means.to_dict(), allow_nan=False)
    assert means.to_frame()["mean"].tolist() == [means["A"].mean, means["B"].mean]
    as_list = groups.mean(
        by=[label[0] for label in groups.labels], unit=np.array([label[1] for label in groups.labels])
    )
    assert as_list == means
    as_mapping = groups.mean(
        by={label: label[0] for label in groups.labels}, unit={label: label[1] for label in groups.labels}
    )
    assert as_mapping == means


def test_one_mean_over_all_groups_and_a_single_unit():
    groups = vm.score_groups({"a": ["x", "y"], "b": ["x"]}, Match())
    (mean,) = groups.mean()
    assert (mean.label, mean.mean, mean.units) == ("all", pytest.approx(1.5), 2)
    lone = groups.mean(by=["p", "q"])
    assert math.isnan(lone["p"].standard_error)
    assert lone.differences == []  # different units share nothing
    with pytest.raises(InputError, match="3 entries and there are 2 groups"):
        groups.mean(by=[1, 2, 3])
    with pytest.raises(UnknownNameError):
        groups.mean(by=["p", "q"])["r"]


def test_labels_of_pandas_objects_must_agree():
    names = ["ant", "bee", "cat"]
    K = pd.DataFrame(np.eye(3) * 0.5 + 0.5, index=names, columns=names)
    counts = pd.DataFrame([[1, 2, 3], [0, 1, 1]], index=["north", "south"], columns=names)
    groups = vm.score_groups(K, "precomputed", counts=counts)
    assert groups.labels == ["north", "south"]
    assert groups["north"] == vm.score(K, "precomputed", counts=counts.loc["north"])
    for call in (
        lambda: vm.score(K, "precomputed", counts=counts.loc["north"].iloc[::-1]),
        lambda: vm.score_groups(K, "precomputed", counts=counts[names[::-1]]),
        lambda: vm.score(K.iloc[::-1], "precomputed"),
    ):
        with pytest.raises(InputError, match="another order"):
            call()


def test_combinations_of_columns_make_groups():
    table = pd.DataFrame({"t": ["x", "y", "x", "x", "y"], "model": list("AABBB"), "prompt": [1, 1, 1, 2, 2]})
    groups = vm.score_groups(table, On("t", Match()), by=["model", "prompt"])
    assert groups.labels == [("A", 1), ("B", 1), ("B", 2)]
    np.testing.assert_allclose(groups.scores, [2, 1, 2])


def test_means_can_be_looked_up_and_framed_by_pair():
    groups = vm.score_groups({("A", 1): ["x", "y"], ("B", 1): ["x"]}, Match())
    means = groups.mean(by=lambda label: label[0], unit=lambda label: label[1])
    assert means.difference("A", "B").mean == pytest.approx(1)
    assert means.difference("B", "A").mean == pytest.approx(-1)
    assert means.to_frame(differences=True)["mean"].tolist() == [means.differences[0].mean]
    for by in ("model", 3, lambda label: [label[0]]):
        with pytest.raises(InputError):
            groups.mean(by=by)
    with pytest.raises(UnknownNameError):
        groups[["A"]]


def test_labels_in_a_repr_are_on_one_line_and_plain_in_a_dict():
    groups = vm.score_groups(["a", "b"], Match(), by=["\x1b[31mred\nline", np.int64(3)])
    assert "\n" not in repr(groups)
    assert "\x1b" not in repr(groups)
    json.dumps(groups.to_dict())
    dates = vm.score_groups(
        ["a", "b"], Match(), by=[pd.Timestamp("2026-01-02"), ("x", pd.Timestamp("2026-01-03"))]
    )
    assert "2026-01-02" in json.dumps(dates.to_dict())
    with pytest.raises(ValueError, match="read-only"):
        groups.at(0).spectrum.eigenvalues[0] = 7


def test_one_hot_labels_and_records_without_labels_are_refused():
    with pytest.raises(InputError, match="one-hot"):
        vm.score_groups(X, by=np.eye(60))
    with pytest.raises(InputError, match="by is missing; expected by=labels"):
        vm.score_groups([{"a": "disc"}, {"a": "star"}], On("a", Match()))
    with pytest.raises(InputError, match="group 'k': samples is a symmetric"):
        vm.score_groups({"k": np.eye(3)})
