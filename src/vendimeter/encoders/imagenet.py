"""Encoders of pictures by models of torchvision, torch-fidelity and timm, with the preprocessing of each library.

Their weights are single files: the user's own, or downloaded once into PyTorch's folder for them. They are read as
safetensors, or by PyTorch's unpickler that makes tensors and nothing else (`weights_only`).
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.pictures import decode, map_in_order, rgb_image
from vendimeter.encoders.base import Encode, pick_device
from vendimeter.encoders.hub import DTYPES, explain_failure, file_digest, find_model, silence_libraries
from vendimeter.encoders.images import PictureEncoder
from vendimeter.errors import InputError, VendimeterError
from vendimeter.messages import brief, unknown
from vendimeter.optional import require
from vendimeter.present.text import printable

__all__ = [
    "Inception",
    "InceptionFID",
    "Timm",
    "download_weights",
    "read_weights",
    "weights_file",
    "weights_identity",
]

EXTRA = "vision"
# What both libraries download when they are asked for these weights; the digits at the end are checked.
TORCHVISION = "https://download.pytorch.org/models/inception_v3_google-0cc3c7bd.pth"
FIDELITY = "https://github.com/toshas/torch-fidelity/releases/download/v0.2.0/weights-inception-2015-12-05-6726825d.pth"
FILES = (
    "model.safetensors",
    "open_clip_model.safetensors",
    "pytorch_model.bin",
    "open_clip_pytorch_model.bin",
)
PREPROCESSING = (
    "input_size",
    "test_input_size",
    "crop_pct",
    "test_crop_pct",
    "crop_mode",
    "interpolation",
    "mean",
    "std",
)


@dataclass(frozen=True, repr=False)
class WeightsEncoder(PictureEncoder):
    """A model whose weights may be a file of the user's."""

    _: KW_ONLY
    weights: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is not None:
            object.__setattr__(self, "weights", weights_file(self.weights))

    def _state(self, url: str) -> dict[str, Any]:
        if self.weights is None:
            return download_weights(url, type(self).__name__)
        return read_weights(str(self.weights))


@dataclass(frozen=True, repr=False)
class Inception(WeightsEncoder):
    """Embeddings by Inception v3, trained on ImageNet, in torchvision's version: the 2,048 numbers before the classes.

    Pictures are resized to 342 on the shorter side, cropped to 299×299 and normalised, as torchvision says for these
    weights. (The official package resizes to 299 and leaves the normalisation away, so that its numbers differ.)

    Parameters
    ----------
    weights : path, optional
        A file with the weights; by default they are downloaded once, or found where PyTorch keeps them.
    dtype : str
        As for `DINOv2`.
    batch_size, device, cache
        As for `Encoder`.

    Examples
    --------
    >>> import vendimeter as vm
    >>> vm.kernels.Embed(Inception())
    Embed(Inception(), Cosine())
    """

    _: KW_ONLY
    dtype: str = "float32"
    name: ClassVar[str] = "inception"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dtype not in DTYPES:
            raise unknown("dtype", self.dtype, DTYPES)

    def identity(self) -> dict[str, Any]:
        """The weights and the dtype; the preprocessing goes with them."""
        shared = {"encoder": self.name, "version": 1, "dtype": self.dtype, "preprocessing": "IMAGENET1K_V1"}
        return shared | weights_identity(self.weights, TORCHVISION)

    def load(self) -> Encode:
        """Load the model with torchvision."""
        models = require("torchvision.models", extra=EXTRA, purpose="Inception")
        torch = require("torch", extra=EXTRA, purpose="Inception")
        state = self._state(TORCHVISION)
        with explain_failure("Inception"), silence_libraries():
            # transform_input turns ImageNet's normalisation into that of the weights, which come from TensorFlow:
            # torchvision.models.inception_v3 sets it whenever it loads them.
            model = models.inception_v3(
                weights=None, init_weights=False, aux_logits=True, transform_input=True
            )
            model.load_state_dict(state)
            transform = models.Inception_V3_Weights.IMAGENET1K_V1.transforms()
        model.fc = torch.nn.Identity()
        return _encode_with(model, transform, self.device, self.dtype)


@dataclass(frozen=True, repr=False)
class InceptionFID(WeightsEncoder):
    """Embeddings by the Inception of 2015 that FID is defined with: 2,048 numbers, as torch-fidelity computes them.

    Pictures of any size are resized to 299×299 inside the model as TensorFlow 1 did it, without antialiasing, which is
    part of the definition.

    Parameters
    ----------
    weights : path, optional
        A file with torch-fidelity's weights; by default they are downloaded once, or found where PyTorch keeps them.
    batch_size, device, cache
        As for `Encoder`.

    References
    ----------
    Obukhov et al.: High-fidelity performance metrics for generative models in PyTorch, 2020.

    Examples
    --------
    >>> InceptionFID(batch_size=32)
    InceptionFID(batch_size=32)
    """

    name: ClassVar[str] = "inception-fid"

    def identity(self) -> dict[str, Any]:
        """The weights; the preprocessing is in the model."""
        return {"encoder": self.name, "version": 1, "features": "2048"} | weights_identity(
            self.weights, FIDELITY
        )

    def load(self) -> Encode:
        """Load the model with torch-fidelity."""
        purpose = "InceptionFID"
        library = require("torch_fidelity.feature_extractor_inceptionv3", extra=EXTRA, purpose=purpose)
        torch = require("torch", extra=EXTRA, purpose=purpose)
        device = pick_device(self.device, extra=EXTRA)
        buffer = io.BytesIO()
        torch.save(self._state(FIDELITY), buffer)
        buffer.seek(0)
        with explain_failure("InceptionFID"), silence_libraries():
            # It would read a file with an unpickler that runs code. What it is given are tensors that were read
            # without, written again.
            model = library.FeatureExtractorInceptionV3("inception-v3-compat", ["2048"], buffer)
        model = model.to(device).eval()

        def encode(batch: list[Any]) -> Any:
            pictures = map_in_order(decode, batch)
            pixels = [torch.from_numpy(np.ascontiguousarray(picture)) for picture in pictures]
            vectors: list[Any] = [None] * len(pixels)
            with torch.inference_mode():
                for shape in dict.fromkeys(picture.shape for picture in pixels):  # those of one size together
                    positions = [i for i, picture in enumerate(pixels) if picture.shape == shape]
                    stack = torch.stack([pixels[i] for i in positions]).permute(0, 3, 1, 2).to(device)
                    for i, vector in zip(positions, model(stack)[0], strict=True):
                        vectors[i] = vector
            return torch.stack(vectors)

        return encode


@dataclass(frozen=True, repr=False)
class Timm(WeightsEncoder):
    """Embeddings by a model of timm: its features before the classes, with the preprocessing it was trained with.

    Parameters
    ----------
    model : str
        Its name in timm, such as "resnet50.a1_in1k" or "vit_base_patch14_dinov2.lvd142m".
    revision : str, optional
        The commit, branch or tag of the weights on the hub; the newest by default.
    weights : path, optional
        A file with weights of this model, instead of those on the hub.
    dtype : str
        As for `DINOv2`.
    batch_size, device, cache
        As for `Encoder`.

    Examples
    --------
    >>> Timm("resnet50.a1_in1k")
    Timm('resnet50.a1_in1k')
    """

    model: str
    _: KW_ONLY
    revision: str | None = None
    dtype: str = "float32"
    name: ClassVar[str] = "timm"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.model, str) or not self.model:
            raise InputError(
                f"Timm got the model {brief(self.model)}; expected its name, such as 'resnet50.a1_in1k'."
            )
        if self.revision is not None and (not isinstance(self.revision, str) or self.weights is not None):
            raise InputError(
                f"revision={brief(self.revision)}; expected a commit, a branch or a tag of the hub, and none where "
                "weights is given."
            )
        if self.dtype not in DTYPES:
            raise unknown("dtype", self.dtype, DTYPES)

    def identity(self) -> dict[str, Any]:
        """The name of the model, its commit or the digest of its weights, the preprocessing and the dtype."""
        config = self._pretrained_config().to_dict()
        preprocessing = {key: config[key] for key in PREPROCESSING if key in config}
        if self.weights is not None or not self._repository():
            weights = weights_identity(self.weights, config.get("url") or "")
        else:
            weights = find_model(self._repository(), self.revision, extra=EXTRA).identity
        return {
            "encoder": self.name,
            "version": 1,
            "dtype": self.dtype,
            "name": self.model,
            **weights,
            "as": preprocessing,
        }

    def _pretrained_config(self) -> Any:
        """What timm knows of the pretrained model."""
        timm = require("timm", extra=EXTRA, purpose="Timm")
        architecture = self.model.partition(".")[0]
        if not timm.is_model(architecture):
            raise unknown("model of timm", architecture, timm.list_models())
        try:
            config = timm.models.get_pretrained_cfg(self.model)
        except RuntimeError:  # no such tag
            config = None
        if config is None or (self.weights is None and not config.has_weights):
            tags = list(timm.list_pretrained(f"{architecture}.*"))
            alternatives = f"one of {printable(', '.join(tags), 200)}" if tags else "another architecture"
            raise InputError(
                f"timm has no pretrained weights for {brief(self.model)}; expected {alternatives}, or a file: weights=…"
            )
        return config

    def _repository(self) -> str:
        return self._pretrained_config().hf_hub_id or ""

    def _timm_state(self) -> dict[str, Any]:
        config = self._pretrained_config()
        if self.weights is not None or not self._repository():
            return self._state(config.url or "")
        folder = find_model(self._repository(), self.revision, extra=EXTRA).folder
        file_name = config.hf_hub_filename
        for name in (*FILES[:2], *([file_name] if file_name else []), *FILES[2:]):
            if Path(folder, name).is_file():
                return read_weights(str(Path(folder, name)))
        raise InputError(
            f"{printable(self._repository(), 100)!r} on the hub has no weights under a known name; expected one of "
            f"{', '.join(FILES)}. Download the file and pass weights='path of the file'."
        )

    def load(self) -> Encode:
        """Load the model with timm."""
        timm = require("timm", extra=EXTRA, purpose="Timm")
        state = self._timm_state()
        with explain_failure(self.model), silence_libraries():
            model = timm.create_model(
                self.model, pretrained=True, num_classes=0, pretrained_cfg_overlay={"state_dict": state}
            )
            transform = timm.data.create_transform(
                **timm.data.resolve_model_data_config(model), is_training=False
            )
        return _encode_with(model, transform, self.device, self.dtype)


def _encode_with(model: Any, transform: Callable[[Any], Any], device: str | None, dtype: str) -> Encode:
    """A module behind a transform of PIL images into tensors."""
    torch = require("torch", extra=EXTRA, purpose="an encoder of pictures")
    torch_device, torch_dtype = pick_device(device, extra=EXTRA), getattr(torch, dtype)
    model = model.to(device=torch_device, dtype=torch_dtype).eval()

    def encode(batch: list[Any]) -> Any:
        pixels = torch.stack(list(map_in_order(lambda item: transform(rgb_image(item)), batch)))
        with torch.inference_mode():
            return model(pixels.to(device=torch_device, dtype=torch_dtype)).float()

    return encode


# ----------------------------------------------------------------------------------------------------- files of weights


def weights_file(weights: Any) -> str:
    """The path of a file of weights, checked."""
    if not isinstance(weights, str | os.PathLike) or not str(weights):
        raise InputError(f"weights={brief(weights)}; expected the path of a file, or None to download them.")
    path = os.path.expanduser(os.fspath(weights))
    if not os.path.isfile(path):
        raise InputError(f"weights={brief(weights)} is no file; expected *.safetensors, or *.pth of PyTorch.")
    return path


def weights_identity(weights: str | os.PathLike[str] | None, url: str) -> dict[str, str]:
    """What tells weights from others: a digest of the user's file, or the name of the one that is downloaded."""
    if weights is None:
        return {"weights": url}  # such names end with the digest of the file, which is checked
    return {"weights": file_digest(Path(weights_file(weights))).hex()}


def read_weights(path: str) -> dict[str, Any]:
    """The tensors in a file by their names."""
    torch = require("torch", extra=EXTRA, purpose="an encoder of pictures")
    try:
        if path.endswith(".safetensors"):
            library = require("safetensors.torch", extra=EXTRA, purpose="weights in safetensors")
            return library.load_file(path, device="cpu")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (VendimeterError, MemoryError):
        raise
    except Exception as error:  # what unpicklers raise has no common type
        message = printable((str(error).strip().splitlines() or [type(error).__name__])[0], 160)
        raise InputError(
            f"the weights in {brief(path)} cannot be read ({message}); expected tensors alone, as *.safetensors or as "
            "a state that torch.load(…, weights_only=True) reads. Download the file again."
        ) from error
    state = state.get("state_dict", state) if isinstance(state, dict) else state
    if not isinstance(state, dict) or not all(hasattr(value, "shape") for value in state.values()):
        raise InputError(f"{brief(path)} holds a {type(state).__name__}; expected tensors by their names.")
    return state


def download_weights(url: str, model: str) -> dict[str, Any]:
    """The weights at an address, from PyTorch's folder where they are there; an error says how to do without."""
    torch = require("torch", extra=EXTRA, purpose="an encoder of pictures")
    path = Path(torch.hub.get_dir(), "checkpoints", url.rpartition("/")[2])
    if path.is_file():
        return read_weights(str(path))
    reason = "HF_HUB_OFFLINE is set, so that nothing is downloaded"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() not in ("1", "ON", "YES", "TRUE"):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with silence_libraries():
                # Written beside its place and moved there only if the digest in its name is right.
                digest = re.search(r"-([0-9a-f]{8,})\.", path.name)
                prefix = None if digest is None else digest[1]
                torch.hub.download_url_to_file(url, str(path), hash_prefix=prefix, progress=False)
            return read_weights(str(path))
        except (OSError, RuntimeError) as error:  # no network, no room, or a wrong digest
            reason = printable(str(error).partition("\n")[0] or type(error).__name__, 160)
    raise InputError(
        f"the weights of {model} are not on disk as {printable(str(path), 240)!r}, and could not be downloaded from "
        f"{url} ({reason}). Get the file where there is a network, and put it there or pass weights='path of the file'."
    )
