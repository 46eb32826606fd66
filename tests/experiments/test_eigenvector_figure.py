"""The figure of eigenvectors: spectra and what explains them, against plain numpy."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from reruns import DATA, rerun, script, verdicts

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the data folder is not there")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    if not DATA.is_dir():
        pytest.skip("the data folder is not there")
    pytest.importorskip("efficientnet_lite_pytorch")
    out = tmp_path_factory.mktemp("eigenvectors")
    found = rerun("eigenvectors", out, "--galleries", str(out / "galleries"))
    assert {path.name for path in (out / "galleries").glob("*.png")} == {
        "eigenvectors-efficientnet-lite0.png",
        "eigenvectors-pixels.png",
    }
    assert sorted(path.name for path in out.glob("*.*")) == ["eigenvectors.json", "eigenvectors.png"]
    return found


@pytest.fixture(scope="module")
def pictures():
    with np.load(DATA / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as file:
        vectors, rows, labels = file["emb"].astype(float), file["row"], file["label"]
    with np.load(DATA / "images" / "cifar100_test.npz") as file:
        return {"EfficientNet-Lite0": vectors, "pixels": file["images"][rows].reshape(2000, -1) / 255}, labels


def test_verdicts(results):
    found = verdicts(results)
    assert found.pop("LSUN Cat") == "could not be run"
    names = ["one sign", "top component", "other components", "kinds", "lightness and colour"]
    assert found == dict.fromkeys(names, "reproduced")


@pytest.mark.parametrize("name", ["EfficientNet-Lite0", "pixels"])
def test_components_are_those_of_plain_numpy(results, pictures, name):
    samples, labels = pictures
    rows = samples[name] / np.linalg.norm(samples[name], axis=1, keepdims=True)
    found = results["rows"][name]
    similarity = rows @ rows.T
    assert found["least_similarity"] == pytest.approx(similarity.min(), abs=1e-6)
    assert found["least_similarity"] > 0
    low = rows.shape[1] < len(rows)
    values, vectors = np.linalg.eigh((rows.T @ rows if low else similarity) / len(rows))
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values[values > 1e-14]
    assert found["vs"] == pytest.approx(np.exp(-np.sum(kept * np.log(kept))), rel=1e-6)
    mean = samples["pixels"].mean(axis=1)
    for a, component in enumerate(found["components"]):
        loadings = rows @ vectors[:, a] if low else vectors[:, a] * np.sqrt(len(rows) * values[a])
        assert component["share"] == pytest.approx(values[a], rel=1e-6)
        within = np.mean([loadings[labels == label].var() for label in np.unique(labels)])  # 100 of each
        assert component["by_class"] == pytest.approx(1 - within / loadings.var(), abs=1e-5)
        assert abs(component["lightness"]) == pytest.approx(abs(np.corrcoef(loadings, mean)[0, 1]), abs=1e-5)
        quarters = samples["pixels"].reshape(-1, 2, 16, 2, 16, 3).mean(axis=(2, 4)).reshape(2000, -1)
        centred = quarters - quarters.mean(axis=0)
        basis = np.linalg.svd(centred, full_matrices=False)[0]
        explained = ((basis.T @ (loadings - loadings.mean())) ** 2).sum() / (2000 * loadings.var())
        assert component["by_colour"] == pytest.approx(explained, abs=1e-5)


def test_exemplars_of_one_class_are_alike():
    names, ends = np.array(list("aabbab")), ([0, 1, 4], [2, 3, 5])
    alike = script("eigenvectors")["alike"]
    assert alike(names, ends) == 1
    assert alike(names, ([0, 1, 2], [3, 4, 5])) == pytest.approx(2 / 6)


def test_verdicts_turn_with_the_numbers():
    names = script("eigenvectors")
    claims = names["common"].Claims()

    def row(by_class, by_colour, least):
        part = {
            "positive": 0.5,
            "lightness": 0.0,
            "by_class": by_class,
            "by_colour": by_colour,
            "pairs_alike": 0,
        }
        return {
            "least_similarity": least,
            "top_one_sided": least > 0,
            "top_with_expected_similarity": 0.7,
            "components": [part] * 10,
        }

    encoder = SimpleNamespace(name="some")
    names["check"]({"some": row(0.4, 0.6, -0.1), "pixels": row(0.3, 0.2, 0.1)}, encoder, claims)
    assert {record["name"]: record["verdict"] for record in claims.records} == {
        "one sign": "not reproduced",
        "top component": "reproduced in direction",
        "other components": "reproduced",
        "kinds": "reproduced in direction",
        "lightness and colour": "not reproduced",
    }


@needs_data
def test_ready_vectors_stay_with_their_pictures():
    names = script("eigenvectors")
    seen = []

    def encode(pictures):
        seen.append(len(pictures))
        return pictures.reshape(len(pictures), -1)[:, :1280].astype(np.float32)

    options = argparse.Namespace(data=DATA)
    encoder = names["Encoder"]("EfficientNet-Lite0", encode, np.zeros((1, 1)), 0.0)
    few, vectors, kinds = names["read_cifar"](options, encoder)
    every, all_vectors, all_kinds = names["read_cifar"](options, encoder, every=True)
    assert (len(few), len(every), seen) == (2000, 10_000, [8000])
    for kind in ("castle", "clock"):
        assert np.array_equal(few[kinds == kind], every[all_kinds == kind])
        assert np.array_equal(vectors[kinds == kind], all_vectors[all_kinds == kind])
    other = all_kinds == "oak_tree"
    assert np.array_equal(all_vectors[other], every[other].reshape(100, -1)[:, :1280])
    names["read_cifar"](options, encoder._replace(name="another"))
    assert seen == [8000, 2000]


def test_any_folder(tmp_path):
    """Pictures without classes, and without the encoder: only colours, by a few numbers a picture."""
    pytest.importorskip("efficientnet_lite_pytorch")
    rng = np.random.default_rng(0)
    (tmp_path / "pictures").mkdir()
    for i in range(12):
        colour = rng.integers(40, 255, 3)
        picture = np.clip(colour + rng.normal(scale=9, size=(32, 32, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(picture).save(tmp_path / "pictures" / f"{i}.png")
    options = [
        "--pictures",
        str(tmp_path / "pictures"),
        "--out",
        str(tmp_path),
        "--galleries",
        str(tmp_path / "g"),
    ]
    assert script("eigenvectors")["main"](options) == 0
    text = (tmp_path / "eigenvectors_folder.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert '"name": "kinds"' in text
    assert '"by_class"' not in text


def test_without_data(tmp_path):
    found = rerun(
        "eigenvectors", tmp_path, "--data", str(tmp_path / "none"), "--galleries", str(tmp_path / "g")
    )
    assert set(verdicts(found).values()) == {"could not be run"}
    assert str(tmp_path) not in (tmp_path / "eigenvectors.json").read_text(encoding="utf-8")
    assert not list(tmp_path.glob("*.png"))
