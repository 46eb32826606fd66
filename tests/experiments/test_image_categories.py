"""The figures of categories: scores by class and by attribute, against plain numpy."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pytest
from PIL import Image
from reruns import DATA, RESULTS, rerun, script, verdicts


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    if not (DATA / "research_only").is_dir():
        pytest.skip("the data folder is not there")
    pytest.importorskip("efficientnet_lite_pytorch")
    out = tmp_path_factory.mktemp("image_categories")
    options = ["--ready", "--fashion", "8", "--repeats", "3", "--galleries", str(out / "galleries")]
    options += ["--fetched", str(out / "none")]
    found = rerun("image_categories", out, *options)
    assert len(list((out / "galleries").glob("*.png"))) == 4
    assert sorted(path.name for path in out.glob("*.*")) == ["image_categories.json", "image_categories.png"]
    return found


@pytest.fixture(scope="module")
def faces():
    if not (DATA / "research_only").is_dir():
        pytest.skip("the data folder is not there")
    with np.load(DATA / "research_only" / "celeba_attributes.npz") as file:
        return file["attributes"], file["names"].tolist()


def score(rows):
    rows = rows.astype(float)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    product = rows.T @ rows if rows.shape[1] < len(rows) else rows @ rows.T
    values = np.linalg.eigvalsh(product / len(rows))
    values = values[values > 1e-14]
    return np.exp(-np.sum(values * np.log(values)))


def test_verdicts(results):
    assert (
        verdicts(results)
        == {
            "CIFAR-100 by pixels": "reproduced",
            "CIFAR-100 by pixels, why": "reproduced in direction",  # aquarium fish vary in colour and not in brightness
            "CIFAR-100 by encoder": "reproduced",  # of 20 classes
            "CIFAR-100 by encoder, why": "not reproduced",
            "CIFAR-100 by encoder, MobileNetV2": "could not be run",
            "CIFAR-100 by encoder, MobileNetV2, why": "could not be run",
            "choice of the encoder": "could not be run",
            "choice of similarity": verdicts(results)["choice of similarity"],  # of 8 pictures a class here
            "CelebA": "reproduced",
            "CelebA, pictures": "could not be run",
            "Inception": "could not be run",
        }
    )


def test_kept_results_have_all_classes():
    kept = json.loads((RESULTS / "image_categories.json").read_text(encoding="utf-8"))
    assert len(kept["pictures"]["CIFAR-100"]["by_encoder"]) == 100
    assert kept["other"]["encoder"] == "MobileNetV2"
    assert len(kept["other"]["pictures"]["CIFAR-100"]["by_encoder"]) == 100
    found = verdicts(kept)
    assert found["CIFAR-100 by pixels"] == "reproduced"
    names = list(kept["pictures"]["CIFAR-100"]["by_pixels"])
    assert names[:3] == ["cockroach", "plain", "sea"]
    assert names[-3:] == ["orchid", "man", "aquarium_fish"]
    assert (
        found["CIFAR-100 by encoder"] == "reproduced in direction"
    )  # keyboard is in the middle of 100 classes


def test_classes_of_cifar_100(results):
    found = results["pictures"]["CIFAR-100"]
    with np.load(DATA / "images" / "cifar100_test.npz") as file:
        images, names = file["images"], file["classes"][file["labels"]]
    for name in ("cockroach", "aquarium_fish", "castle"):
        part = images[names == name]
        assert found["by_pixels"][name] == pytest.approx(score(part.reshape(100, -1)), rel=1e-6)
        assert found["white"][name] == pytest.approx((part >= 230).all(axis=3).mean())
        assert found["dark"][name] == pytest.approx((part < 40).all(axis=3).mean())
    assert min(found["by_pixels"].values()) == pytest.approx(1.69, abs=0.005)
    assert max(found["by_pixels"].values()) == pytest.approx(4.62, abs=0.005)
    assert len(found["by_pixels"]) == 100
    with np.load(DATA / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as file:
        vectors, names = file["emb"], file["classes"][file["label"]]
    for name in ("castle", "keyboard", "clock"):
        assert found["by_encoder"][name] == pytest.approx(score(vectors[names == name]), rel=1e-6)
    assert list(found["by_encoder"].values()) == sorted(found["by_encoder"].values())


def test_men_score_above_women(results, faces):
    attributes, names = faces
    male = attributes[:, names.index("Male")]
    men, women = (
        score(attributes[male]),
        score(attributes[~male]),
    )  # of all faces: a little above samples of 500
    cosine = results["men_and_women"]["cosine"]
    for found, whole in ((cosine["men"]["mean"], men), (cosine["women"]["mean"], women)):
        assert 0.93 * whole < found < whole
    assert men > 1.5 * women
    assert all(row["ratio"]["mean"] > 1 for row in results["men_and_women"].values())
    by_attribute = results["attributes"]
    assert len(by_attribute) == 41
    assert by_attribute["not Male"]["faces"] == (~male).sum()
    blond = attributes[attributes[:, names.index("Blond_Hair")]]
    assert by_attribute["Blond_Hair"]["mean"] == pytest.approx(score(blond), rel=0.07)
    assert next(reversed(by_attribute)) == "Male"
    assert next(iter(by_attribute)) == "Rosy_Cheeks"


def test_matched_faces_have_as_many_attributes(faces):
    attributes, names = faces
    male = attributes[:, names.index("Male")]
    number = np.delete(attributes, names.index("Male"), axis=1).sum(axis=1)
    sides = [np.flatnonzero(male), np.flatnonzero(~male)]
    men, women = script("image_categories")["draw_faces"](sides, number, np.random.default_rng(0))
    assert male[men].all()
    assert not male[women].any()
    assert len(set(men)) == len(set(women)) == 500
    assert sorted(number[men]) == sorted(number[women])


def test_verdicts_turn_with_the_numbers():
    names = script("image_categories")
    found = {}

    def check(name, holds, direction, measured):
        found[name] = (holds, direction)

    scores = {
        "castle": 3.0,
        "sea": 2.0,
        "clock": 4.0,
        "keyboard": 5.0,
        "wolf": 1.0,
        "apple": 2.5,
        "lamp": 6.0,
    }
    doubt = {name: -score for name, score in scores.items()}
    ordered = dict(sorted(scores.items(), key=lambda pair: pair[1]))
    part = {"by_encoder": ordered, "in_doubt": doubt, "recognised": {}, "halves_by_encoder": 1.0}
    names["check_encoder"](part, check)
    assert found == {"CIFAR-100 by encoder": (False, False), "CIFAR-100 by encoder, why": (False, False)}
    other = {
        "by_encoder": dict(sorted(doubt.items(), key=lambda pair: pair[1])),
        "in_doubt": doubt,
        "recognised": {},
    }
    other["halves_by_encoder"] = 1.0
    for turned, expected in ((part, (True, True)), (other, (False, False))):
        results = {"encoder": "one", "pictures": {"CIFAR-100": part}}
        names["check_other"](
            results | {"other": {"encoder": "two", "pictures": {"CIFAR-100": turned}}}, check
        )
        assert found["choice of the encoder"] == expected
    lowest, highest = names["PIXEL_ENDS"]
    classes = [*lowest, "wolf", "apple", *highest]
    for order, expected in (
        (classes, (True, True)),
        ([classes[1], classes[0], *classes[2:]], (False, True)),
        (classes[::-1], (False, False)),
    ):
        scores = {name: float(place) for place, name in enumerate(order)}
        cifar = dict.fromkeys(("dark", "white", "colour_spread", "brightness_spread"), scores)
        names["check_pixels"](cifar | {"by_pixels": scores, "halves_by_pixels": 1.0}, check)
        assert found["CIFAR-100 by pixels"] == expected
    ratio = {"mean": 1.2, "se": 0.1}
    row = {"men": {"mean": 2.0, "se": 0.1}, "women": {"mean": 1.0, "se": 0.1}, "ratio": ratio}
    names["check_faces"]({"cosine": row}, check)
    assert found["CelebA"] == (False, False)  # two standard errors are too few


def test_faces_by_pictures(tmp_path, faces):
    names = script("image_categories")
    names["by_pictures"].__globals__["SHOWN"] = 20
    rng = np.random.default_rng(0)
    (tmp_path / "faces").mkdir()
    male = faces[0][:80, faces[1].index("Male")]
    for i in range(80):  # men are pictures of noise, women of one colour
        picture = rng.integers(1, 255, (8, 8, 3)) if male[i] else np.full((8, 8, 3), rng.integers(50, 200))
        Image.fromarray(picture.astype(np.uint8)).resize((32, 32), 0).save(
            tmp_path / "faces" / f"{i + 1:06d}.jpg"
        )
    options = argparse.Namespace(data=DATA, celeba=tmp_path / "faces", galleries=tmp_path / "galleries")

    class Encoder:
        @staticmethod
        def encode(paths):
            return np.stack([np.asarray(Image.open(path), dtype=float).reshape(-1) for path in paths])

    found = names["by_pictures"](options, Encoder)
    for by in ("by_encoder", "by_pixels"):
        assert found[by]["Male"] > 1.5
        assert found[by]["not Male"] == pytest.approx(1, abs=0.02)
        assert "Bald" not in found[by]  # of too few
    assert len(list((tmp_path / "galleries").glob("*.png"))) == 2


def test_without_data(tmp_path):
    options = ["--data", str(tmp_path / "none"), "--galleries", str(tmp_path / "g")]
    options += ["--fetched", str(tmp_path / "none")]
    found = rerun("image_categories", tmp_path, *options)
    assert set(verdicts(found).values()) == {"could not be run"}
    assert len(found["claims"]) == 11
    assert str(tmp_path) not in (tmp_path / "image_categories.json").read_text(encoding="utf-8")
    assert not list(tmp_path.glob("*.png"))
