"""The tables of image models: rows against plain numpy, the paper's table against itself, folders of one's own."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from reruns import DATA, RESULTS, rerun, script, verdicts
from scipy.linalg import sqrtm


@pytest.fixture(scope="module")
def fetched(tmp_path_factory):
    """A file like that of CIFAR-10, with pictures of CIFAR-100: of ten classes 15 to train and 10 to test."""
    if not DATA.is_dir():
        pytest.skip("the data folder is not there")
    with np.load(DATA / "images" / "cifar100_test.npz") as file:
        images, labels, classes = file["images"], file["labels"], file["classes"]
    folder, order = tmp_path_factory.mktemp("fetched"), np.random.default_rng(0).permutation
    arrays = {"classes": classes[:10]}
    for split, first, last in (("train", 0, 15), ("test", 15, 25)):
        rows = order(np.concatenate([np.flatnonzero(labels == c)[first:last] for c in range(10)]))
        arrays |= {f"{split}_images": images[rows], f"{split}_labels": labels[rows]}
    np.savez(folder / "cifar10.npz", **arrays)
    return folder


def colours(parts):
    """An encoder that costs nothing: the mean colours of squares of a picture, and classes by some of them."""

    def encode(pictures):
        rgb = [
            np.asarray(picture if picture.ndim == 3 else picture[..., None].repeat(3, 2))
            for picture in pictures
        ]
        small = [
            np.asarray(Image.fromarray(picture).resize((parts, parts), Image.Resampling.BOX))
            for picture in rgb
        ]
        return np.stack(small).reshape(len(small), -1) / 255.0

    names = script("images")
    weight = np.random.default_rng(parts).normal(size=(7, 3 * parts**2)).astype(np.float32)
    return names["Encoder"](f"{parts}² colours", encode, weight, 0.0)


@pytest.fixture(scope="module")
def results(fetched, tmp_path_factory):
    out = tmp_path_factory.mktemp("images")
    names = script("images")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(names["rerun"].__globals__, "encoder_of", lambda options: colours(4))
        patch.setitem(names["rerun"].__globals__, "mobilenet_v2", lambda options: colours(8))
        options = ["--images", "100", "--draws", "4", "--fetched", str(fetched), "--out", str(out)]
        assert names["main"](options) == 0
    assert sorted(path.name for path in out.glob("*.*")) == ["images.json", "images.png"]
    text = (out / "images.json").read_text(encoding="utf-8")
    assert str(out) not in text
    assert str(fetched) not in text
    return json.loads(text)


@pytest.fixture(scope="module")
def kept():
    return json.loads((RESULTS / "images.json").read_text(encoding="utf-8"))


def dense_score(rows):
    rows = np.asarray(rows, dtype=float).reshape(len(rows), -1)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    values = np.linalg.eigvalsh(rows @ rows.T / len(rows))
    values = values[values > 1e-14]
    return np.exp(-np.sum(values * np.log(values)))


def within(points, of):
    """Which points lie in the ball of some point of the other set, by its third nearest neighbour there."""
    own = np.sort(np.linalg.norm(of[:, None] - of, axis=2), axis=1)[:, 3]
    return (np.linalg.norm(points[:, None] - of, axis=2) <= own).any(axis=1).mean()


def test_the_printed_table(results):
    found = verdicts(results)
    for name in ("low resolution", "LSUN, text", "LSUN, VS", "data sets", "agreement"):
        assert found[f"table: {name}"] == "reproduced"
    assert (
        found["table: LSUN, caption"] == "not reproduced"
    )  # ADM has neither the highest IS on cats nor on bedrooms
    assert found["table: models and originals by Inception"] == "reproduced"
    assert found["table: models and originals by pixels"] == "not reproduced"
    said = {claim["name"]: claim["measured"] for claim in results["claims"]}
    above = said["table: models and originals by pixels"]
    assert above.startswith("5 of 12")
    for pair in (
        "4.57 against 4.43",
        "3.27 against 3.1",
        "3.67 against 3.1",
        "4.81 against 4.58",
        "5.83 against 4.58",
    ):
        assert pair in above
    assert [name for name, verdict in found.items() if verdict == "could not be run"] == [
        f"models of {name}" for name in ("ImageNet-64", "CIFAR-10", "LSUN-Cat", "LSUN-Bedroom")
    ]


def test_table_is_typed_in_as_printed():
    originals, models = script("images")["printed"]()
    assert originals["LSUN-Cat"] == {"VS_I": 15.12, "VS_P": 4.58}
    assert sum(map(len, models.values())) == 12
    assert list(models["ImageNet-64"]["DenseFlow"].values()) == [5.62, 102.9, 0.36, 0.17, 12.71, 3.51]
    assert list(models["LSUN-Bedroom"]["RQ-VT"].values()) == [2.56, 3.16, 0.6, 0.5, 8.48, 3.67]


def test_rows_are_those_of_plain_numpy():
    names = script("images")
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (60, 32, 32, 3), dtype=np.uint8)
    vectors, reference = rng.gamma(1.0, size=(60, 5)), rng.gamma(1.2, size=(80, 5))
    weight, bias = rng.normal(size=(7, 5)).astype(np.float32), rng.normal(size=7).astype(np.float32)
    row = names["measure"](pictures, vectors, names["Encoder"]("some", None, weight, bias), reference)
    assert row["VS_I"] == pytest.approx(dense_score(vectors), rel=1e-9)
    assert row["VS_P"] == pytest.approx(dense_score(pictures), rel=1e-9)
    assert row["VS_I_bounds"][0] <= row["VS_I"] <= row["VS_I_bounds"][1]
    first, second = np.cov(vectors.T), np.cov(reference.T)
    gap = ((vectors.mean(axis=0) - reference.mean(axis=0)) ** 2).sum()
    distance = gap + np.trace(first + second - 2 * np.real(sqrtm(first @ second)))
    assert row["FID"] == pytest.approx(distance, rel=1e-6)
    assert (row["precision"], row["recall"]) == (within(vectors, reference), within(reference, vectors))
    logits = vectors.astype(np.float32) @ weight.T + bias
    p = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(float)
    p /= p.sum(axis=1, keepdims=True)
    assert row["IS"] == pytest.approx(np.exp((p * np.log(p / p.mean(axis=0))).sum(axis=1).mean()), rel=1e-5)


def test_concordance_counts_pairs():
    names = script("images")
    rows = [{"VS_I": 1, "FID": 3}, {"VS_I": 2, "FID": 2}, {"VS_I": 3, "FID": 2}, {"VS_I": 0, "FID": 1}]
    assert names["concordance"](rows, "FID") == (2, 5)  # a lower FID is better; one pair is tied


def test_the_original_is_scored_by_pixels(results, fetched):
    with np.load(fetched / "cifar10.npz") as file:
        train, test = file["train_images"], file["test_images"]
    found = results["original"]
    assert found["VS_P"] == pytest.approx(dense_score(train), rel=1e-9)
    assert found["VS_P_bounds"][0] <= found["VS_P"] <= found["VS_P_bounds"][1]
    assert found["batches"]["VS_P"] == pytest.approx(
        [dense_score(part) for part in np.split(train, 5)], rel=1e-9
    )
    assert found["test"] == {"pictures": 100, "VS_P": pytest.approx(dense_score(test), rel=1e-9)}
    assert verdicts(results)["original CIFAR-10"] == "not reproduced"  # these are others


def test_rows_are_of_the_encoder_that_is_named(results, fetched):
    with np.load(fetched / "cifar10.npz") as file:
        train, test, labels = file["train_images"], file["test_images"], file["test_labels"]
    for part, parts in ((results, 4), (results["second"], 8)):
        encode = colours(parts).encode
        assert part["encoder"] == f"{parts}² colours"
        row = part["spoilt"]["originals"]
        assert row["pictures"] == 100
        assert row["VS_I"] == pytest.approx(dense_score(encode(test)), rel=1e-9)
        assert row["precision"] == within(encode(test), encode(train))
        assert row["VS_I"] == part["data_sets"]["CIFAR-10"]["VS_I"]
        alone = [dense_score(encode(test[labels == label])) for label in range(10)]
        one = part["dropped"][0]
        assert (one["classes"], one["pictures"]) == (1, 10)
        assert min(alone) <= one["VS_I"]["mean"] <= max(alone)
    assert results["reference"] == 150


def test_dropped_classes_lower_vs(kept):
    for part in (kept, kept["second"]):
        rows = part["dropped"]
        assert [row["classes"] for row in rows] == [1, 2, 5, 10]
        for column, sign in {"VS_I": 1, "recall": 1, "FID": -1}.items():
            assert (sign * np.diff([row[column]["mean"] for row in rows]) > 0).all()


def test_noise_scores_high_by_pixels_alone(kept, results):
    for part in (kept, kept["second"]):
        rows = part["spoilt"]
        for name in ("uniform noise", "sparse noise"):
            assert rows[name]["VS_P"] > rows["originals"]["VS_P"]
            assert rows[name]["VS_I"] < rows["originals"]["VS_I"]
            assert rows[name]["FID"] > rows["originals"]["FID"]
    # Of n pictures of independent uniform noise: similarity 3/4, so one eigenvalue of 3/4 + 1/4n and n - 1 of 1/4n.
    for found, n in ((kept, 1000), (results, 100)):
        first = 3 / 4 + 1 / (4 * n)
        expected = np.exp(-first * np.log(first) - (n - 1) / (4 * n) * np.log(1 / (4 * n)))
        assert found["spoilt"]["uniform noise"]["VS_P"] == pytest.approx(expected, rel=0.05)


def test_spoilt_pictures_are_what_they_are_said_to_be():
    names = script("images")
    rng = np.random.default_rng(0)
    originals = np.repeat(np.repeat(rng.integers(20, 230, (60, 4, 4, 3)), 8, axis=1), 8, axis=2).astype(
        np.uint8
    )
    sets = names["spoilt"](originals, rng)
    assert all(part.shape == originals.shape and part.dtype == np.uint8 for part in sets.values())
    for name, distinct in {"near copies of 10": 10, "near copies of a third": 20}.items():
        middles = (
            sets[name][:, 4::8, 4::8].reshape(60, -1).astype(float)
        )  # a shift by a pixel changes none of these
        near = np.linalg.norm(middles[:, None] - middles, axis=2) < 12 * 48**0.5 / 2
        assert np.linalg.matrix_rank(near.astype(float)) == distinct
    assert (sets["sparse noise"] > 0).mean() == pytest.approx(0.05, abs=0.005)
    assert set(np.unique(sets["sparse noise"])) == {0, 255}
    spread = [sets[f"blur, σ = {s} px"].std(axis=(1, 2)).mean() for s in (1, 2, 4)]
    assert spread == sorted(spread, reverse=True)


def test_verdicts_turn_with_the_numbers(kept):
    names = script("images")
    verdict = {}

    def check(name, claim, paper, measured, holds, direction):
        verdict[name] = (bool(holds), bool(direction))

    turned = json.loads(json.dumps(kept))
    turned["spoilt"]["uniform noise"]["VS_P"] = turned["spoilt"]["sparse noise"]["VS_P"] = 1.0
    turned["spoilt"]["near copies of 10"]["VS_I"] = 1000.0
    turned["dropped"].reverse()
    names["check_stand_ins"](turned, check)
    for name in ("noise by pixels", "near copies", "dropped classes"):
        assert verdict[f"rerun: {name}"] == (False, False)
    names["check_encoders"](kept, kept, check)
    assert verdict["rerun: another encoder"] == (True, True)
    names["check_encoders"](kept, turned, check)
    assert verdict["rerun: another encoder"] == (False, True)
    for row, other in zip(turned["spoilt"].values(), reversed(kept["spoilt"].values()), strict=True):
        row["VS_I"] = -other["VS_I"]
    for row, other in zip(turned["spoilt"].values(), kept["spoilt"].values(), strict=True):
        row["VS_I"] = 1 / other["VS_I"]
    names["check_encoders"](kept, turned, check)
    assert verdict["rerun: another encoder"] == (False, False)
    for value, expected in ((3.524, (True, True)), (3.526, (False, True)), (3.6, (False, False))):
        names["check_original"](kept["original"] | {"VS_P": value}, check)
        assert verdict["original CIFAR-10"] == expected


def test_kept_results_are_of_cifar_10(kept):
    assert kept["original"]["pictures"] == 50_000
    assert kept["original"]["VS_P"] == pytest.approx(3.5211, abs=5e-5)
    assert f"{kept['original']['VS_P']:.2f}" == "3.52"
    assert (kept["encoder"], kept["second"]["encoder"]) == ("EfficientNet-Lite0", "MobileNetV2")
    assert kept["spoilt"]["originals"]["pictures"] == 1000
    assert kept["reference"] == 2500
    found = verdicts(kept)
    assert found["original CIFAR-10"] == found["rerun: near copies"] == "reproduced"
    assert found["rerun: blur"] == "reproduced in direction"  # precision does not see blur
    for part in (kept, kept["second"]):
        rows = [row for name, row in part["spoilt"].items() if name == "originals" or name.startswith("blur")]
        assert (np.diff([row["VS_I"] for row in rows]) < 0).all()
        assert (np.diff([row["FID"] for row in rows]) > 0).all()


def test_any_folders(tmp_path):
    pytest.importorskip("efficientnet_lite_pytorch")
    rng = np.random.default_rng(0)
    sets = {name: rng.integers(0, 256, (8, 4, 4, 3), dtype=np.uint8) for name in ("real", "model")}
    sets["stuck"] = np.repeat(sets["real"][:1], 8, axis=0)
    for name in ("real", "model"):
        (tmp_path / name).mkdir()
        for i, picture in enumerate(sets[name]):
            Image.fromarray(picture).resize((40, 30)).save(tmp_path / name / f"{i}.png")
    np.savez(tmp_path / "stuck.npz", sets["stuck"])
    options = ["--reference", str(tmp_path / "real"), "--table", "CIFAR-10", "--out", str(tmp_path)]
    options += ["--model", f"IDDPM={tmp_path / 'model'}", "--model", f"stuck={tmp_path / 'stuck.npz'}"]
    assert script("images")["main"]([*options, "--galleries", str(tmp_path / "g")]) == 0
    text = (tmp_path / "images_folders.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    found = json.loads(text)
    rows = found["folders"]
    assert list(rows) == ["reference", "IDDPM", "stuck"]
    assert rows["stuck"]["VS_I"] == pytest.approx(1, abs=1e-5)
    assert rows["stuck"]["VS_P"] == pytest.approx(1, abs=1e-9)
    assert rows["IDDPM"]["VS_P"] > 1.05
    assert found["paper"]["IDDPM"]["FID"] == 4.39
    assert (tmp_path / "images_folders.png").exists()
    with pytest.raises(SystemExit):
        script("images")["main"](["--reference", str(tmp_path), "--model", "no-path"])


def test_without_data(tmp_path):
    none, out = str(tmp_path / "none"), tmp_path / "out"
    found = verdicts(rerun("images", out, "--data", none, "--fetched", none, "--galleries", none))
    assert found["rerun"] == found["original CIFAR-10"] == "could not be run"
    assert found["table: low resolution"] == "reproduced"  # the paper's table needs no data
    assert str(tmp_path) not in (out / "images.json").read_text(encoding="utf-8")
    assert "python experiments/fetch.py" in (out / "images.json").read_text(encoding="utf-8")
    assert not list(out.glob("*.png"))


def test_with_cifar_10_alone(fetched, tmp_path):
    none = str(tmp_path / "none")
    found = verdicts(
        rerun("images", tmp_path, "--data", none, "--fetched", str(fetched), "--galleries", none)
    )
    assert (found["rerun"], found["original CIFAR-10"]) == ("could not be run", "not reproduced")


def test_without_the_other_encoder(fetched, kept, tmp_path):
    names = script("images")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(names["rerun"].__globals__, "encoder_of", lambda options: colours(4))
        patch.setitem(names["rerun"].__globals__, "stand_ins", lambda *given: kept)
        options = ["--images", "100", "--fetched", str(fetched), "--out", str(tmp_path)]
        assert names["main"](options) == 0
    found = json.loads((tmp_path / "images.json").read_text(encoding="utf-8"))
    assert verdicts(found)["rerun: another encoder"] == "could not be run"
    assert verdicts(found)["rerun: near copies"] == verdicts(kept)["rerun: near copies"]
