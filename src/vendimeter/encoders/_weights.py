"""Weights of PyTorch models in single files: the user's own, or downloaded once into PyTorch's folder for them.

Weights are read as safetensors, or by PyTorch's unpickler that makes tensors and nothing else (`weights_only`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from vendimeter.encoders._hub import file_digest, loading
from vendimeter.errors import InputError, VendimeterError, brief, printable
from vendimeter.optional import require

__all__ = ["downloaded", "read_weights", "weights_file", "weights_identity"]

EXTRA = "vision"


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
        said = printable((str(error).strip().splitlines() or [type(error).__name__])[0], 160)
        raise InputError(
            f"the weights in {brief(path)} cannot be read ({said}); expected tensors alone, as *.safetensors or as a "
            "state that torch.load(…, weights_only=True) reads. Download the file again."
        ) from error
    state = state.get("state_dict", state) if isinstance(state, dict) else state
    if not isinstance(state, dict) or not all(hasattr(value, "shape") for value in state.values()):
        raise InputError(f"{brief(path)} holds a {type(state).__name__}; expected tensors by their names.")
    return state


def downloaded(url: str, model: str) -> dict[str, Any]:
    """The weights at an address, from PyTorch's folder where they are there; an error says how to do without."""
    torch = require("torch", extra=EXTRA, purpose="an encoder of pictures")
    place = Path(torch.hub.get_dir(), "checkpoints", url.rpartition("/")[2])
    if place.is_file():
        return read_weights(str(place))
    why = "HF_HUB_OFFLINE is set, so that nothing is downloaded"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() not in ("1", "ON", "YES", "TRUE"):
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with loading():
                # Written beside its place and moved there only if the digest in its name is right.
                digest = re.search(r"-([0-9a-f]{8,})\.", place.name)
                prefix = None if digest is None else digest[1]
                torch.hub.download_url_to_file(url, str(place), hash_prefix=prefix, progress=False)
            return read_weights(str(place))
        except (OSError, RuntimeError) as error:  # no network, no room, or a wrong digest
            why = printable(str(error).partition("\n")[0] or type(error).__name__, 160)
    raise InputError(
        f"the weights of {model} are not on disk as {printable(str(place), 240)!r}, and could not be downloaded from "
        f"{url} ({why}). Get the file where there is a network, and put it there or pass weights='path of the file'."
    )
