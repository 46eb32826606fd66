"""What all metrics take: collections with their weights and places, frames, encoders, two sets of one width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import vendimeter as vm
from vendimeter import metrics
from vendimeter.errors import InputError, UnknownNameError

ROWS = np.random.default_rng(2).normal(size=(30, 4))


@pytest.fixture
def weighted(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("x,y,w\n" + "".join(f"{a},{b},{i + 1}\n" for i, (a, b) in enumerate(ROWS[:, :2])))
    return vm.read(file, samples=["x", "y"], weight="w")


def test_weights_of_a_collection_are_those_of_the_metric(weighted):
    p = np.arange(1, 31) / np.arange(1, 31).sum()
    assert metrics.intdiv(weighted) == pytest.approx(metrics.intdiv(ROWS[:, :2], weights=p), rel=1e-12)
    counted = metrics.intdiv(
        weighted, counts=np.ones(30, dtype=int)
    )  # what is said wins over what the file says
    assert counted == pytest.approx(metrics.intdiv(ROWS[:, :2]), rel=1e-12)


def test_weights_are_refused_where_every_sample_counts_once(weighted):
    with pytest.raises(
        InputError, match=r"the collection has weights, and precision_recall counts every sample once"
    ):
        metrics.precision_recall(weighted, ROWS[:, :2])
    with pytest.raises(
        InputError, match=r"the reference has weights, and frechet_distance .* reference\.samples"
    ):
        metrics.frechet_distance(ROWS[:, :2], weighted)


def test_the_place_of_an_item_is_that_in_its_own_file(tmp_path):
    good, bad = tmp_path / "good.csv", tmp_path / "bad.npy"
    good.write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in ROWS[:, :2]))
    rows = ROWS[:, :2].copy()
    rows[7, 1] = np.nan
    np.save(bad, rows)
    samples, reference = vm.read(good, samples=["x", "y"]), vm.read(bad)
    with pytest.raises(InputError, match=r"^reference: item 7 \(.*bad\.npy.*\) holds nan in column 1"):
        metrics.frechet_distance(samples, reference)
    with pytest.raises(InputError, match=r"^item 7 \(.*bad\.npy.*\) holds nan in column 1"):
        metrics.frechet_distance(reference, samples)


def test_a_file_read_without_its_broken_lines_has_no_validity(tmp_path):
    pytest.importorskip("rdkit")
    file = tmp_path / "m.smi"
    file.write_text("CCO\nC(C\nCCN\n")
    with pytest.raises(
        InputError, match="1 records were left out on reading, and molecules counts what is broken"
    ):
        metrics.molecules(vm.read(file, skip_broken=True))
    assert metrics.molecules(["CCO", "C(C", "CCN"]).validity == pytest.approx(2 / 3)


def test_features_by_a_function_and_by_name():
    words = ["a", "bb", "ccc", "dd", "e"]

    def lengths(texts):
        return np.array([[len(text), ord(text[0])] for text in texts], dtype=float)

    direct = metrics.frechet_distance(lengths(words), lengths(words[:3]))
    assert metrics.frechet_distance(words, words[:3], features=lengths) == direct
    with pytest.raises(UnknownNameError, match=r"no encoder 'inceptoin'.*'inception'"):
        metrics.frechet_distance(words, words, features="inceptoin")
    with pytest.raises(InputError, match="features=3; expected an encoder"):
        metrics.frechet_distance(words, words, features=3)


@pytest.mark.parametrize(
    "metric",
    [
        "frechet_distance",
        "kernel_distance",
        "precision_recall",
        "precision_recall_curve",
        "density_coverage",
        "memorization",
    ],
)
@pytest.mark.parametrize(
    ("samples", "reference", "words"),
    [
        (ROWS, ROWS[:, :3], "4 columns and reference .*3"),
        (["a", "b"], ROWS, "strings, and .* compares vectors"),
        (ROWS, ["a", "b"], "^reference: the items are strings"),
        ({"x": [1.0]}, ROWS, "samples is a table.*to_numpy"),
        (ROWS, [], "^reference: samples is empty"),
        (ROWS[:, 0], ROWS, "expected one vector a row"),
        (ROWS, ROWS * np.inf, "^reference: item 0 holds"),
        (ROWS + 1j, ROWS, "complex"),
        (iter([1]), ROWS, "without a length"),
        (None, ROWS, "samples is None"),
        (ROWS, "features.npy", "^reference: samples is 'features.npy'.*vendimeter.read"),
        (Path("features.npy"), ROWS, "vendimeter.read"),
        (np.zeros((3, 8, 8, 3)), ROWS, "Of pictures pass features='inception-fid'"),
        ({"mu": 1, "sigma": 2}, ROWS, "Moments"),
    ],
)  # fmt: skip
def test_bad_sets_are_named(metric, samples, reference, words):
    with pytest.raises(InputError, match=words):
        getattr(metrics, metric)(samples, reference)


def test_frames_of_other_libraries_are_columns_or_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    with pytest.raises(InputError, match=r"frame\.to_numpy\(\)"):
        metrics.precision_recall(frame, frame)
    vectors = pandas.Series(list(ROWS))
    assert metrics.precision_recall(vectors, ROWS) == metrics.precision_recall(ROWS, ROWS)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: metrics.circles(ROWS),
            r"circles\(\) missing 1 required keyword-only argument: 'threshold'",
        ),
        (
            lambda: metrics.precision_recall(ROWS, ROWS, K=5),
            r"precision_recall\(\) got an unexpected keyword",
        ),
        (
            lambda: metrics.frechet_distance(ROWS),
            r"frechet_distance\(\) missing 1 required positional argument: 'reference'",
        ),
    ],
)
def test_wrong_arguments_name_the_function(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_what_mends_a_matrix_is_an_option_of_its_kernel():
    scaled = 5 * np.eye(3)
    for metric in (metrics.intdiv, metrics.log_det, metrics.leinster_cobbold):
        with pytest.raises(
            InputError, match=r"take kernel=vendimeter\.kernels\.Precomputed\(normalize=True\)"
        ):
            metric(scaled, "precomputed")
    mended = metrics.intdiv(scaled, vm.kernels.Precomputed(normalize=True))
    assert mended == pytest.approx(2 / 3)
