"""The base class of encoders: models that turn samples into vectors, with a cache on disk.

Equal samples are encoded once, vectors that were computed before are read from the cache, the others are computed in
batches and stored as they come, and every batch is checked.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from vendimeter.data.arrays import as_list, is_frame_column, is_sparse, to_list, to_python
from vendimeter.data.devices import is_foreign, no_gradients, to_host
from vendimeter.encoders.cache import NoVectors, StoredVectors, cache_folder
from vendimeter.encoders.hub import ignore_warnings
from vendimeter.errors import InputError, TooLargeError, VendimeterError
from vendimeter.messages import brief, shape_of
from vendimeter.optional import require
from vendimeter.options import whole_number
from vendimeter.present.progress import Progress
from vendimeter.present.text import printable

__all__ = ["Encoder", "pick_device"]

KEPT = 4  # models that stay loaded; of more than these the one that was used longest ago is dropped
HOW = ("batch_size", "device", "cache")  # how vectors are computed, not what they are

OUT_OF_MEMORY = object()

Encode = Callable[[list[Any]], Any]

_models: OrderedDict[tuple[Any, ...], Encode] = OrderedDict()
_models_lock = threading.RLock()


@dataclass(frozen=True, repr=False, kw_only=True)
class Encoder(ABC):
    """A model that turns samples into vectors; what `vendimeter.kernels.Embed` takes.

    A new encoder is a dataclass, ``@dataclass(frozen=True, repr=False)``, with a `name`, a method `load` and a method
    `identity`; one for other samples than texts, bytes and arrays has its own `items` and `digest` too.

    Parameters
    ----------
    batch_size : int
        How many samples the model sees at a time. Halved where the memory of a GPU does not suffice.
    device : str, optional
        Where the model runs, such as "cpu" or "cuda:1"; by default on a GPU where there is one.
    cache : bool or path
        Where vectors are kept on disk: True for the folder `vendimeter.encoders.cache_folder` names, a path for
        another, False for none. Samples are not stored, only digests of them.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, repr=False)
    ... class Letters(Encoder):
    ...     alphabet: str = "ab"
    ...     name = "letters"
    ...
    ...     def load(self):
    ...         return lambda texts: np.array([[text.count(letter) for letter in self.alphabet] for text in texts])
    ...
    ...     def identity(self):
    ...         return {"encoder": self.name, "alphabet": self.alphabet}
    >>> Letters(cache=False)(["abba", "b"])
    array([[2., 2.],
           [0., 1.]], dtype=float32)
    """

    batch_size: int = 64
    device: str | None = None
    cache: bool | str | os.PathLike[str] = True
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", whole_number(self.batch_size, "batch_size"))
        if self.device is not None and not isinstance(self.device, str):
            object.__setattr__(self, "device", str(self.device))  # a device of PyTorch prints as its name
        if isinstance(self.cache, os.PathLike):
            object.__setattr__(self, "cache", os.fspath(self.cache))
        if not isinstance(self.cache, bool | str) or self.cache == "":
            raise InputError(
                f"cache={brief(self.cache)}; expected the path of a folder, True for the usual one, or False for none."
            )

    def __repr__(self) -> str:
        words = []
        for field in sorted(dataclasses.fields(self), key=lambda field: bool(field.kw_only)):
            value = getattr(self, field.name)
            if value != field.default:
                words.append(f"{field.name}={value!r}" if field.kw_only or words else repr(value))
        return f"{type(self).__name__}({', '.join(words)})"

    def parameters(self) -> dict[str, Any]:
        """The parameters that say what the vectors are, and not where and how they are computed."""
        fields = dataclasses.fields(self)
        return {field.name: getattr(self, field.name) for field in fields if field.name not in HOW}

    # ------------------------------------------------------------------------------------- what an encoder is made of

    @abstractmethod
    def load(self) -> Encode:
        """Load the model; what comes back turns a list of samples into an array or tensor with a row a sample.

        Called once for each `identity` and device, under a lock, and only when there is something to encode.
        """

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Everything the vectors depend on besides the sample, as values that JSON can write.

        The name of the encoder; the model by its commit, or by a digest of its files where they are local;
        preprocessing, pooling, lengths, dtype. Vectors are read from the cache where this is the same.
        """

    def lasting_identity(self) -> dict[str, Any] | None:
        """The `identity` as JSON gives it back, which accumulators keep; None where it holds in this process only."""
        return json.loads(self._identity_text())

    def _identity_text(self) -> str:
        try:
            return canonical(self.identity())
        except (TypeError, ValueError) as error:
            if isinstance(error, VendimeterError):
                raise
            raise InputError(
                f"the identity of the encoder {self!r} cannot be written as JSON ({printable(error, 120)}); expected "
                "texts, finite numbers, truth values, None, and lists and dictionaries of them."
            ) from None

    def items(self, samples: Any) -> list[Any]:
        """The samples as a list, checked."""
        if is_frame_column(samples):
            samples = to_list(samples)
        items = as_list(samples, kernel=f"the encoder {self.name!r}")
        if is_sparse(items):
            raise InputError(f"samples is sparse; the encoder {self.name!r} expected a list of samples.")
        return list(to_host(items)) if is_foreign(items) else list(items)

    def digest(self, sample: Any) -> bytes:
        """A digest of the content of a sample: equal for samples whose vectors are equal, on every machine."""
        sample = to_python(sample) if isinstance(sample, np.generic) else sample
        if isinstance(sample, str):
            return hashlib.sha256(b"text\0" + sample.encode("utf-8", "surrogatepass")).digest()
        if isinstance(sample, bytes):
            return hashlib.sha256(b"bytes\0" + sample).digest()
        if isinstance(sample, np.ndarray) and sample.dtype.kind in "biufc":
            sample = sample.astype(sample.dtype.newbyteorder("<"), copy=False)
            head = f"array\0{sample.dtype.str}{shape_of(sample.shape)}\0".encode()
            return hashlib.sha256(head + sample.tobytes()).digest()
        raise InputError(
            f"it is a {type(sample).__name__}; the encoder {self.name!r} expected a text, bytes or an array of numbers."
        )

    def size(self, sample: Any) -> float:
        """How much work a sample is, beside others: samples of one size share a batch, the largest come first."""
        return 1.0

    # ------------------------------------------------------------------------------------------------- encoding

    def __call__(self, samples: Any) -> np.ndarray:
        """One vector a sample: an array of shape (n, d) of float32."""
        items = self.items(samples)
        with Progress(f"encoding ({self.name})") as progress:
            keys = self._digests(items, progress)
            row_of_key: dict[bytes, int] = {}
            rows = np.array([row_of_key.setdefault(key, len(row_of_key)) for key in keys])
            positions = np.unique(rows, return_index=True)[1]  # where each distinct sample is first met
            distinct = _Vectors(list(row_of_key), positions, self)
            identity = self._identity_text()
            with self._open_cache(identity) as stored:
                distinct.fill_from(stored)
                if distinct.missing.size:
                    self._encode(items, distinct, identity, stored, progress)
        return distinct.vectors if len(row_of_key) == len(items) else distinct.vectors[rows]

    def _digests(self, items: list[Any], progress: Progress) -> list[bytes]:
        keys = []
        try:
            for item in items:
                if len(keys) % 256 == 0:
                    progress.step(None, f"{len(keys):,} of {len(items):,} looked at")
                keys.append(self.digest(item))
        except VendimeterError as error:
            error.at(item=len(keys))
            raise
        return keys

    def _open_cache(self, identity: str) -> StoredVectors | NoVectors:
        if self.cache is False:
            return NoVectors()
        folder = cache_folder() if self.cache is True else os.fspath(self.cache)  # type: ignore[arg-type]
        return StoredVectors(folder, self.name, identity)

    def _encode(
        self, items: list[Any], distinct: _Vectors, identity: str, stored: Any, progress: Progress
    ) -> None:
        progress.step(None, "loading the model")
        encode = self._model(identity)
        sizes = np.array([self.size(items[position]) for position in distinct.positions[distinct.missing]])
        order = np.argsort(-sizes, kind="stable")
        pending, sizes = distinct.missing[order], sizes[order]
        total, batch_size, start = max(float(sizes.sum()), 1e-300), self.batch_size, 0
        while start < len(pending):
            batch = pending[start : start + batch_size]
            output = self._try_batch(encode, items, distinct.positions[batch])
            if output is OUT_OF_MEMORY:
                batch_size = len(batch) // 2
                _free_memory()
                continue
            vectors = distinct.put(batch, output)
            stored.put([distinct.keys[row] for row in batch], vectors)
            start += len(batch)
            progress.step(float(sizes[:start].sum()) / total, f"{start:,} of {len(pending):,}")

    def _try_batch(self, encode: Encode, items: list[Any], positions: np.ndarray) -> Any:
        """The output of the model for the items at these positions; OUT_OF_MEMORY where memory does not suffice."""
        try:
            with no_gradients():
                return encode([items[position] for position in positions])
        except Exception as error:
            if not _is_out_of_memory(error):
                self._blame(error, encode, items, positions)
            if len(positions) == 1:
                raise TooLargeError(
                    f"{self!r} ran out of memory for item {positions[0]} alone. Shorten or shrink it, or take "
                    "device='cpu'.",
                    item=positions[0],
                ) from error
            return OUT_OF_MEMORY  # and nothing holds on to what the batch took

    def _model(self, identity: str) -> Encode:
        """The loaded model. Its key is all that the vectors depend on: a folder with new weights is a new model."""
        key = (type(self), self.device, identity)
        with _models_lock:
            if key not in _models:
                while len(_models) >= KEPT:
                    _models.popitem(last=False)
                _models[key] = self.load()
            _models.move_to_end(key)
            return _models[key]

    def _blame(self, error: Exception, encode: Encode, items: list[Any], positions: np.ndarray) -> NoReturn:
        """Raise the error of a batch, with the item that is to blame: the first that fails alone."""
        if len(positions) > 1:
            for position in positions:
                try:
                    with no_gradients():
                        encode([items[position]])
                except Exception as item_error:
                    if not _is_out_of_memory(item_error):
                        error, positions = item_error, np.array([position])
                        break
        item = int(positions[0]) if len(positions) == 1 else None
        if isinstance(error, VendimeterError):
            error.item = item  # an item that it names already is one of the batch
            raise error if len(positions) == 1 else error.at(collection=_format_items(positions))
        message = printable(str(error) or "no message", 400)
        raise InputError(
            f"the encoder {self!r} failed on {_format_items(positions)}: {type(error).__name__}: {message}",
            item=item,
        ) from error


class _Vectors:
    """The vectors of distinct samples: a row a sample, with its digest and the position where it is first met."""

    def __init__(self, keys: list[bytes], positions: np.ndarray, encoder: Encoder):
        self.keys, self.positions, self.encoder = keys, positions, encoder
        self.vectors = np.empty((0, 0), dtype=np.float32)
        self.missing = np.arange(len(keys))

    def fill_from(self, stored: Any) -> None:
        """Fill in the vectors that the cache has, and note the rows that are missing."""
        is_stored = np.zeros(len(self.keys), dtype=bool)
        if stored.width is not None:
            self._widen(stored.width)
            for rows, vectors in stored.get(self.keys):
                self.vectors[rows] = vectors
                is_stored[rows] = True
        self.missing = np.flatnonzero(~is_stored)

    def put(self, rows: np.ndarray, output: Any) -> np.ndarray:
        """Fill in the output of the model for these rows; an error where it cannot be right."""
        count, encoder, positions = len(rows), self.encoder, self.positions[rows]
        vectors = to_host(output) if is_foreign(output) else np.asarray(output)
        if vectors.ndim != 2 or vectors.shape[0] != count or not vectors.shape[1]:
            raise InputError(
                f"the encoder {encoder!r} gave an array of shape {shape_of(vectors.shape)} for "
                f"{_format_items(positions)}; expected one vector a sample, an array of shape ({count}, d)."
            )
        if vectors.dtype.kind not in "biuf":
            raise InputError(
                f"the encoder {encoder!r} gave an array of {vectors.dtype}; expected real numbers."
            )
        if vectors.dtype != np.float16:
            with np.errstate(over="ignore"):  # what overflows is found below
                vectors = vectors.astype(np.float32, copy=False)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            is_half = vectors.dtype == np.float16
            raise InputError(
                f"the encoder {encoder!r} gave a vector with NaN or infinity for item {positions[~finite][0]}; "
                f"expected finite numbers. {'Take dtype=bfloat16 or float32' if is_half else 'Look at that item'}.",
                item=positions[~finite][0],
            )
        if self.vectors.shape[1] not in (0, vectors.shape[1]):
            raise InputError(
                f"the encoder {encoder!r} gave vectors of {vectors.shape[1]} numbers for {_format_items(positions)} "
                f"and of {self.vectors.shape[1]} before; expected one width."
            )
        self._widen(vectors.shape[1])
        self.vectors[rows] = vectors
        return vectors

    def _widen(self, width: int) -> None:
        if not self.vectors.shape[1]:
            self.vectors = np.empty((len(self.keys), width), dtype=np.float32)


def canonical(identity: Any) -> str:
    """The identity as text, the same wherever it is the same."""
    return json.dumps(
        identity,
        sort_keys=True,
        ensure_ascii=True,
        allow_nan=False,
        separators=(",", ":"),
        default=_to_python,
    )


def _to_python(value: Any) -> Any:
    """A number of NumPy as Python has it."""
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    raise TypeError(f"it holds {brief(value)}")


def pick_device(device: str | None, *, extra: str) -> Any:
    """The device of PyTorch to compute on: the one that was asked for, or a GPU where there is one.

    Examples
    --------
    >>> pick_device("cpu", extra="encoders").type
    'cpu'
    """
    torch = require("torch", extra=extra, purpose="a neural encoder")
    kinds = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    if device is None:
        with ignore_warnings():  # an old driver is a warning, and no GPU
            device = next((kind for kind, is_available in kinds.items() if is_available()), "cpu")
    try:
        torch_device = torch.device(device)
        torch.empty(0, device=torch_device)
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        gpus = (repr(kind) for kind, is_available in kinds.items() if is_available())
        available = ", ".join(["'cpu'", *gpus])
        raise InputError(
            f"device={brief(device)} cannot be used ({printable(str(error).partition(chr(10))[0], 120)}); "
            f"expected a device that PyTorch has here: {available}."
        ) from None
    return torch_device


def _is_out_of_memory(error: Exception) -> bool:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(error, getattr(torch, "OutOfMemoryError", ())):
        return True
    phrases = ("out of memory", "can't allocate memory")  # MPS and the CPU say it in words only
    return isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in phrases)


def _free_memory() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _format_items(positions: Sequence[int] | np.ndarray) -> str:
    """Items by their positions, in words."""
    listed = ", ".join(str(position) for position in sorted(map(int, positions))[:5])
    if len(positions) == 1:
        return f"item {listed}"
    return f"items {listed}" + (f", … ({len(positions)} items)" if len(positions) > 5 else "")
