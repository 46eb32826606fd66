"""The cosine of pixels against a direct evaluation, from arrays, files and streams."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import EmptyError, InputError
from vendimeter.kernels import Match, On, Pixels
from vendimeter.kernels.description import describe, rebuild

Image = pytest.importorskip("PIL.Image")

rng = np.random.default_rng(11)
COLOUR = rng.integers(0, 256, (9, 10, 14, 3), dtype=np.uint8)
GREY = rng.integers(0, 256, (9, 10, 14), dtype=np.uint8)


def direct(pictures: Any, size: tuple[int, int] | None) -> float:
    """The score by the definition, with pictures resized as the paper's code does."""
    images = [Image.fromarray(picture).convert("RGB") for picture in pictures]
    if size is not None:
        images = [image.resize((size[1], size[0])) for image in images]
    rows = np.stack([np.asarray(image, dtype=float).ravel() for image in images])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    values = np.linalg.eigvalsh(rows @ rows.T / len(rows))
    return math.exp(-sum(value * math.log(value) for value in values if value > 1e-14))


@pytest.mark.parametrize("size", [None, 32, 4, (3, 8), (10, 14)])
@pytest.mark.parametrize("pictures", [COLOUR, GREY], ids=["colour", "grey"])
def test_the_formula(pictures: np.ndarray, size: Any, tmp_path: Path) -> None:
    pair = (size, size) if isinstance(size, int) else size
    expected = direct(pictures, pair)
    for i, picture in enumerate(pictures):
        Image.fromarray(picture).save(tmp_path / f"{i}.png")
    paths = [tmp_path / f"{i}.png" for i in range(len(pictures))]
    ways: list[Any] = [
        pictures,
        list(pictures),
        paths,
        list(map(Image.open, paths)),
        list(map(Path.read_bytes, paths)),
    ]
    ways += [pictures / 255, [*pictures[:4], *paths[4:]]]
    scores = [vm.score(samples, Pixels(size)) for samples in ways]
    assert scores[0] == pytest.approx(expected, rel=1e-12)
    assert len({float(score) for score in scores}) == 1
    assert scores[0].bounds[0] <= expected <= scores[0].bounds[1] * (1 + 1e-13)


def test_the_size_is_not_ignored() -> None:
    # The official package resizes to 32 whatever it is told.
    found = {size: float(vm.score(COLOUR, Pixels(size))) for size in (1, 2, 4, 10, 32)}
    assert len(set(found.values())) == 5
    assert float(vm.score(COLOUR, "pixels")) == found[32]


def test_grey_pictures_take_one_channel_and_score_the_same() -> None:
    tripled = np.stack([GREY] * 3, axis=3)
    one, three = Pixels(None).similarity(GREY), Pixels(None).similarity(tripled)
    assert (one.width, three.width) == (140, 420)  # type: ignore[attr-defined]
    np.testing.assert_allclose(one.dense(), three.dense(), rtol=0, atol=1e-14)
    assert float(vm.score(GREY, Pixels(5))) == pytest.approx(float(vm.score(tripled, Pixels(5))), rel=1e-13)
    # One in colour among grey ones, wherever it stands.
    for place in (0, 4, 8):
        mixed: list[Any] = list(GREY)
        mixed[place] = COLOUR[place]
        expected = tripled.copy()
        expected[place] = COLOUR[place]
        assert float(vm.score(mixed, Pixels(None))) == float(vm.score(expected, Pixels(None)))


def test_columns_mean_the_same_in_every_batch() -> None:
    mixed = [*GREY, *COLOUR]
    expected = vm.score(mixed, Pixels(6))
    for kernel in (Pixels(6), Pixels((6, 6))):
        total = vm.Accumulator(kernel)
        total.update(GREY)  # an array of grey ones, a list of both kinds, and channels first
        total.update([COLOUR[0], COLOUR[1]])
        total.update(np.moveaxis(COLOUR[2:], 3, 1))
        assert float(total.score()) == pytest.approx(float(expected), rel=1e-12)
    stream = vm.score_stream((part for part in (GREY[:5], GREY[5:], COLOUR)), Pixels(6))
    assert float(stream) == pytest.approx(float(expected), rel=1e-12)


def test_grey_batches_of_any_number_are_read_alike() -> None:
    torch = pytest.importorskip("torch")
    expected = vm.score(GREY, Pixels(6))
    for sizes in ([5, 1, 3], [4, 5], [1, 1, 1, 3, 3]):
        for array in (np.array, torch.tensor):
            total, start = vm.Accumulator(Pixels(6)), 0
            for n in sizes:
                total.update(array(GREY[start : start + n]))
                start += n
            assert float(total.score()) == pytest.approx(float(expected), rel=1e-12)


def test_without_a_size_nothing_is_accumulated() -> None:
    # 10×14 and 14×10 pixels are as many columns, which do not mean the same.
    with pytest.raises(InputError, match=r"one batch of pictures might be tall.*Pixels\(28\)"):
        vm.Accumulator(Pixels(None)).update(GREY)


def test_pictures_of_several_sizes() -> None:
    mixed = [COLOUR[0], COLOUR[1], COLOUR[2].transpose(1, 0, 2)]
    with pytest.raises(InputError, match=r"item 2 is 10×14 pixels and item 0 is 14×10.*such as Pixels\(32\)"):
        vm.score(mixed, Pixels(None))
    assert 1 < vm.score(mixed, Pixels(8)) < 3


@pytest.mark.parametrize("size", [None, 7, 10])
@pytest.mark.parametrize("place", [0, 5])
def test_a_black_picture_has_no_direction(place: int, size: int | None) -> None:
    black = COLOUR.copy()
    black[place] = 0
    for samples in (black, list(black), black / 255):
        with pytest.raises(InputError, match=rf"^item {place} is a black picture.*Remove it, or"):
            vm.score(samples, Pixels(size))


def test_errors_have_the_place_of_the_picture(tmp_path: Path) -> None:
    path = tmp_path / "half.png"
    Image.fromarray(COLOUR[0]).save(path)
    path.write_bytes(path.read_bytes()[:150])
    with pytest.raises(InputError, match=r"^item 2: the file '.*half\.png' is damaged or cut short"):
        vm.score([COLOUR[0], COLOUR[1], path], Pixels())
    with pytest.raises(InputError, match="kernel='cosine'"):
        vm.score(rng.random((9, 4)), Pixels())
    with pytest.raises(EmptyError):
        vm.score([], Pixels())


@pytest.mark.parametrize("size", [0, 1.5, "32", (1, 2, 3), True])
def test_sizes_that_are_none(size: Any) -> None:
    with pytest.raises(InputError, match="size="):
        Pixels(size)


def test_it_is_written_and_read() -> None:
    for kernel in (Pixels(), Pixels(None), Pixels((3, 4)), Pixels(size=np.int64(8))):
        assert rebuild(describe(kernel)) == kernel
        assert eval(repr(kernel)) == kernel
    assert [repr(kernel) for kernel in (Pixels(None), Pixels())] == ["Pixels(size=None)", "Pixels(32)"]
    assert Pixels((5, 5)) == Pixels(5)


def test_it_combines_with_other_kernels() -> None:
    table = {"image": list(COLOUR), "label": list("aaabbbccc")}
    both = vm.score(table, 0.5 * On("image", Pixels(4)) + 0.5 * On("label", Match()))
    assert vm.score(COLOUR, Pixels(4)) < both < 9


def test_groups() -> None:
    labels = list("aabbccaab")
    found = vm.score_groups(COLOUR, Pixels(4), by=labels)
    for label in "abc":
        chosen = [picture for picture, other in zip(COLOUR, labels, strict=True) if other == label]
        assert float(found[label]) == pytest.approx(direct(chosen, (4, 4)), rel=1e-12)


def test_arrays_of_every_library(library: Any) -> None:
    first = library.name.startswith("torch")
    for given in (COLOUR, COLOUR / 255, np.concatenate([COLOUR, COLOUR[..., :1]], axis=3)):
        samples = library.array(np.moveaxis(given, 3, 1) if first else given)
        for size in (None, (10, 14), 5):
            assert float(vm.score(samples, Pixels(size))) == pytest.approx(
                float(vm.score(given, Pixels(size))), rel=1e-12
            )
    samples = library.array(GREY)
    assert float(vm.score(samples, Pixels(None))) == pytest.approx(
        float(vm.score(GREY, Pixels(None))), rel=1e-12
    )
    features = Pixels((10, 14)).batch_features(samples)
    assert features.width == 420
    assert (features.like is None) == (library.name in ("numpy", "torch shared", "jax shared"))


# ---------------------------------------------------------------------------------------------------------- real data


def test_digits_from_arrays_and_from_files(shared_data: Path, tmp_path: Path) -> None:
    with np.load(shared_data / "images" / "mnist_test.npz") as file:
        digits = file["images"][:1500]
    paths = []
    for i, digit in enumerate(digits):
        paths.append(tmp_path / f"{i}.png")
        Image.fromarray(digit).save(paths[-1])
    expected = vm.score(digits.reshape(1500, 784))
    assert float(vm.score(digits, Pixels(None))) == float(expected)
    assert float(vm.score(paths, Pixels(None))) == float(expected)
    assert float(vm.score(paths, Pixels(28))) == float(expected)


def test_classes_of_photographs_as_in_the_paper(shared_data: Path) -> None:
    with np.load(shared_data / "images" / "cifar100_test.npz") as file:
        images, labels, classes = file["images"], file["labels"], file["classes"]
    with np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as file:
        chosen = np.unique(file["label"])
    rows = np.flatnonzero(np.isin(labels, chosen))
    scores = vm.score_groups(images[rows], "pixels", by=classes[labels[rows]].tolist())
    found = dict(zip(scores.labels, scores.scores, strict=True))
    assert len(found) == 20
    assert min(found, key=found.__getitem__) == "cockroach"
    assert max(found, key=found.__getitem__) == "aquarium_fish"
    assert found["cockroach"] == pytest.approx(1.69, abs=0.005)
    assert found["aquarium_fish"] == pytest.approx(4.62, abs=0.005)
