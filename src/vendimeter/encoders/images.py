"""Encoders of pictures: a function of the user's own, and models with the preprocessing each was trained with."""

from __future__ import annotations

import hashlib
import math
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.devices import is_foreign, to_host
from vendimeter.data.pictures import (
    as_size,
    bands,
    eight_bits,
    file_digest,
    map_in_order,
    pictures,
    pillow,
    rgb_image,
)
from vendimeter.encoders.base import Encode, Encoder, pick_device
from vendimeter.encoders.hub import (
    ModelFiles,
    check_model,
    explain_failure,
    find_model,
    load_pretrained,
    silence_libraries,
)
from vendimeter.errors import InputError
from vendimeter.messages import brief, shape_of, unknown
from vendimeter.optional import require
from vendimeter.options import as_number

__all__ = ["CLIP", "DINOv2", "PictureEncoder", "Pictures"]

EXTRA = "encoders"


@dataclass(frozen=True, repr=False)
class PictureEncoder(Encoder):
    """What the encoders of pictures share: what a picture is, and what tells two apart.

    Pictures are passed as for `vendimeter.kernels.Pixels`. A model sees what a viewer shows, as RGB. Files are told
    apart by their bytes, other pictures by their pixels.
    """

    def items(self, samples: Any) -> list[Any]:
        """The pictures as a list."""
        items = pictures(samples)
        if isinstance(items, list | tuple):
            return list(items)
        pixels = eight_bits(items)
        return list(to_host(pixels) if is_foreign(pixels) else pixels)

    def digest(self, sample: Any) -> bytes:
        """Of the bytes of a file, or of the pixels."""
        content_digest = file_digest(sample)
        if content_digest is not None:
            return hashlib.sha256(b"file\0" + content_digest).digest()
        pixels = bands(sample)
        return hashlib.sha256(f"pixels\0{shape_of(pixels.shape)}\0".encode() + pixels.tobytes()).digest()


@dataclass(frozen=True, repr=False)
class Pictures(PictureEncoder):
    """Any function of a batch of pictures, with the preprocessing that it needs.

    Parameters
    ----------
    function : callable
        An array of shape (N, 3, H, W) of float32 → one vector a picture. A module of PyTorch must be in its mode for
        evaluation.
    resize : int or (height, width), optional
        What pictures are resized to, by Pillow's bicubic filter; with None they must be of one size already.
    mean, std : sequence of 3 numbers
        The function is given (x − mean) / std for red, green and blue x from 0 to 1. Models that want (x − 127) / 128
        for x from 0 to 255 have the mean 127/255 and the deviation 128/255.
    fit : str
        "stretch" resizes without regard to proportions; "crop" resizes the shorter side and cuts off what is
        too long, the same at both ends.
    arrays : str
        "torch" for tensors, "numpy" for arrays.
    version : str or int, optional
        A name for the function and its weights. Code is not data: vectors are kept on disk only where it has a name.
    device : str, optional
        Where tensors are put; by default where the parameters of a module are, and in main memory for other functions.
    batch_size, cache
        As for `Encoder`.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> colours = Pictures(lambda batch: batch.mean((2, 3)), resize=8, arrays="numpy")
    >>> red, blue = np.zeros((2, 10, 10, 3), dtype=np.uint8)
    >>> red[..., 0], blue[..., 2] = 255, 255
    >>> round(vm.score([red, red, blue, blue], vm.kernels.Embed(colours)), 9)
    2.0
    """

    function: Callable[[Any], Any]
    _: KW_ONLY
    resize: int | tuple[int, int] | None = 224
    mean: Sequence[float] = (0.0, 0.0, 0.0)
    std: Sequence[float] = (1.0, 1.0, 1.0)
    fit: str = "stretch"
    arrays: str = "torch"
    version: str | int | None = None
    name: ClassVar[str] = "pictures"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise InputError(
                f"Pictures got {brief(self.function)}; expected a function from a batch to vectors."
            )
        size = as_size(self.resize, "resize")
        object.__setattr__(self, "resize", size[0] if size is not None and size[0] == size[1] else size)
        for option, low in (("mean", -math.inf), ("std", 0.0)):
            value = getattr(self, option)
            numbers = tuple(map(as_number, value)) if isinstance(value, Sequence | np.ndarray) else ()
            if len(numbers) != 3 or not all(low < number < math.inf for number in numbers):
                above = " above 0" if option == "std" else ""
                raise InputError(
                    f"{option}={brief(value)}; expected 3 numbers{above}, for red, green and blue."
                )
            object.__setattr__(self, option, numbers)
        if self.fit not in ("stretch", "crop"):
            raise unknown("way to fit pictures", self.fit, ("stretch", "crop"))
        if self.fit == "crop" and size is None:
            raise InputError("fit='crop' was given with resize=None; expected a size to crop to.")
        if self.arrays not in ("torch", "numpy"):
            raise unknown("kind of arrays", self.arrays, ("torch", "numpy"))
        if getattr(self.function, "training", False) is True:
            raise InputError(
                f"the model {type(self.function).__name__} is in its mode for training, in which a vector depends on "
                "the other pictures of its batch; expected it in the other one: call model.eval() first."
            )
        if isinstance(self.version, Integral) and not isinstance(self.version, bool):
            object.__setattr__(self, "version", int(self.version))
        elif self.version is not None and not (isinstance(self.version, str) and self.version):
            raise InputError(
                f"version={brief(self.version)}; expected a name for the function, as a text or a whole number."
            )
        if self.version is None:
            if not isinstance(self.cache, bool):
                raise InputError(
                    f"cache={brief(self.cache)} was given without a version, and in a file a function cannot be told "
                    "from another; expected a name for it, such as version='resnet50 of May'."
                )
            object.__setattr__(self, "cache", False)

    def identity(self) -> dict[str, Any]:
        """The preprocessing, and the name of the function, or where it lies in this process."""
        function = self.version if self.version is not None else [os.getpid(), id(self.function)]
        preprocessing = {
            name: value for name, value in self.parameters().items() if name not in ("function", "version")
        }
        return {"encoder": self.name, "version": 1, "function": function} | preprocessing

    def lasting_identity(self) -> dict[str, Any] | None:
        """The identity where the function has a name; None where it is known by its place in this process."""
        return None if self.version is None else super().lasting_identity()

    def load(self) -> Encode:
        """The function, after the preprocessing."""
        mean, std = (
            np.array(channels, dtype=np.float32)[:, None, None] for channels in (self.mean, self.std)
        )
        as_tensors = self.arrays == "torch"
        torch = require("torch", extra=EXTRA, purpose="Pictures with arrays='torch'") if as_tensors else None
        device = pick_device(self.device or _device_of(self.function), extra=EXTRA) if as_tensors else None

        def prepare(item: Any) -> np.ndarray:
            pixels = self._fit_picture(item).transpose(2, 0, 1)
            return (pixels.astype(np.float32) / np.float32(255) - mean) / std

        def encode(batch: list[Any]) -> Any:
            prepared = list(map_in_order(prepare, batch))
            shapes = {picture.shape[1:] for picture in prepared}
            if len(shapes) > 1:
                sizes = " and ".join(f"{width}×{height}" for height, width in sorted(shapes)[:2])
                raise InputError(
                    f"the pictures are of sizes {sizes}; expected one size. Pass resize=224, say."
                )
            stack = np.stack(prepared)
            return self.function(stack if torch is None else torch.from_numpy(stack).to(device))

        return encode

    def _fit_picture(self, item: Any) -> np.ndarray:
        """The picture in the size that the function wants, (H, W, 3)."""
        size = as_size(self.resize)
        if self.fit == "stretch" or size is None:
            pixels = bands(item, size)
            return pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)
        image, (height, width) = rgb_image(item), size
        scale = max(height / image.height, width / image.width)
        full_width = max(width, round(image.width * scale))
        full_height = max(height, round(image.height * scale))
        left, top = (full_width - width) // 2, (full_height - height) // 2
        if (full_width, full_height) != image.size:
            image = image.resize((full_width, full_height), pillow().Resampling.BICUBIC)
        return np.array(image.crop((left, top, left + width, top + height)))


def _device_of(function: Any) -> str:
    """Where the parameters of a module are; main memory for anything else."""
    first = next(function.parameters(), None) if hasattr(function, "parameters") else None
    return "cpu" if first is None else str(first.device)


# ------------------------------------------------------------------------------------------------- models of the hub


@dataclass(frozen=True, repr=False)
class HubPictureEncoder(PictureEncoder):
    """A model of the library transformers, with the image processor among its files."""

    model: str = ""
    _: KW_ONLY
    revision: str | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_model(self)

    def _files(self) -> ModelFiles:
        return find_model(self.model, self.revision, extra=EXTRA)

    def identity(self) -> dict[str, Any]:
        """The model's commit or files, with the preprocessing among them, and the dtype."""
        return {"encoder": self.name, "version": 1, "dtype": self.dtype} | self._files().identity

    def load(self) -> Encode:
        """Load the model and its image processor with transformers."""
        torch = require("torch", extra=EXTRA, purpose=type(self).__name__)
        device, files = pick_device(self.device, extra=EXTRA), self._files()
        processor = _load_processor(files, self.model)
        model = load_pretrained("AutoModel", files, self.model, extra=EXTRA, unused=self._unused)
        self._check(model)
        dtype = getattr(torch, self.dtype)
        model = model.to(device=device, dtype=dtype)

        def encode(batch: list[Any]) -> Any:
            images = list(map_in_order(rgb_image, batch))
            pixels = processor(images=images, return_tensors="pt")["pixel_values"]
            with torch.inference_mode():
                return self._vectors(model, pixels.to(device=device, dtype=dtype)).float()

        return encode

    _unused: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def _check(self, model: Any) -> None:
        """Raise an error if the model is not one of this kind."""

    @abstractmethod
    def _vectors(self, model: Any, pixels: Any) -> Any:
        """The vectors of a batch."""


def _load_processor(files: ModelFiles, model: str) -> Any:
    """The image processor of a model, of the kind that resizes with Pillow.

    Models were trained and published with that kind. The other, with torchvision, gives other pixels, and which is
    taken would depend on what is installed.
    """
    auto = require("transformers", extra=EXTRA, purpose="a model of the hub").AutoImageProcessor
    with explain_failure(model), silence_libraries():
        # From transformers 5 on the choice is called `backend`; each version ignores the name it does not know.
        processor = auto.from_pretrained(
            files.folder, backend="pil", use_fast=False, local_files_only=True, trust_remote_code=False
        )
    names = [kind.__name__ for kind in type(processor).__mro__]
    if any("Torchvision" in name or name.endswith("Fast") for name in names):
        raise InputError(
            f"the model {brief(model)} has only an image processor that needs torchvision ({names[0]}); expected "
            "one that resizes with Pillow. Use it through Pictures(function, …)."
        )
    return processor


@dataclass(frozen=True, repr=False)
class DINOv2(HubPictureEncoder):
    """Embeddings by DINOv2: the class token after the last normalisation, as its authors evaluate it.

    Parameters
    ----------
    model : str or path
        The name of the model on the hub, such as "facebook/dinov2-large", or a folder with its files.
    revision : str, optional
        The commit, branch or tag; the newest by default. A commit makes a score repeatable.
    dtype : str
        "float32", or "float16" or "bfloat16" to compute faster on a GPU and less precisely. Whether a GPU rounds the
        factors of float32 convolutions to 11 bits (TF32) is left to the settings of PyTorch.
    batch_size, device, cache
        As for `Encoder`.

    References
    ----------
    Oquab et al.: DINOv2: Learning robust visual features without supervision, 2023. Stein et al.: Exposing flaws of
    generative model evaluation metrics, 2023, who find that it sees what people see.

    Examples
    --------
    >>> import vendimeter as vm
    >>> vm.kernels.Embed(DINOv2(batch_size=32))
    Embed(DINOv2(batch_size=32), Cosine())
    """

    model: str = "facebook/dinov2-base"
    name: ClassVar[str] = "dinov2"
    _unused: ClassVar[tuple[str, ...]] = ("mask_token",)  # for training only

    def _check(self, model: Any) -> None:
        kind = model.config.model_type
        if not kind.startswith(("dinov2", "dinov3_vit")):
            raise InputError(
                f"the model {brief(self.model)} is a {brief(kind)}; DINOv2 expected one of that kind."
            )

    def _vectors(self, model: Any, pixels: Any) -> Any:
        return model(pixel_values=pixels).last_hidden_state[:, 0]


@dataclass(frozen=True, repr=False)
class CLIP(HubPictureEncoder):
    """Embeddings by CLIP: what it compares with texts, not normalised, since a cosine needs no norm.

    Parameters
    ----------
    model : str or path
        The name of the model on the hub, such as "openai/clip-vit-large-patch14", or a folder with its files.
    revision, dtype
        As for `DINOv2`.
    batch_size, device, cache
        As for `Encoder`.

    References
    ----------
    Radford et al.: Learning transferable visual models from natural language supervision, ICML 2021.

    Examples
    --------
    >>> CLIP("openai/clip-vit-large-patch14", revision="32bd64288804d66eefd0ccbe215aa642df71cc41")
    CLIP('openai/clip-vit-large-patch14', revision='32bd64288804d66eefd0ccbe215aa642df71cc41')
    """

    model: str = "openai/clip-vit-base-patch32"
    name: ClassVar[str] = "clip"

    def _check(self, model: Any) -> None:
        if not hasattr(model, "get_image_features"):
            kind = model.config.model_type
            raise InputError(
                f"the model {brief(self.model)} is a {brief(kind)}, without features of images beside those of texts; "
                "CLIP expected one of its kind."
            )

    def _vectors(self, model: Any, pixels: Any) -> Any:
        features = model.get_image_features(pixel_values=pixels)
        return getattr(features, "pooler_output", features)  # from transformers 5 on in an output with more
