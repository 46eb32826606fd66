"""Kernels of functions that the user has: of two items, of blocks of them, or an encoder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from vendimeter.data import tables
from vendimeter.data.arrays import as_list, is_sparse, length, take, unwrapped
from vendimeter.data.devices import (
    as_like,
    concat,
    double,
    is_foreign,
    is_real,
    is_torch,
    local,
    no_gradients,
    numpy_dtype,
)
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel, kernel_by_name
from vendimeter.kernels.vectors import Cosine
from vendimeter.messages import brief, shape_of
from vendimeter.options import whole_number
from vendimeter.present.progress import Progress
from vendimeter.similarity import Calls, Features, Pairwise, Similarity, row_keys
from vendimeter.similarity.checks import Policy

__all__ = ["Embed", "FromFunction", "is_encoder"]


@dataclass(frozen=True)
class FromFunction(Kernel):
    """A similarity function of the user's own.

    Parameters
    ----------
    function : callable
        k(a, b) → number for two items; or with ``block=True``, k(A, B) → array of shape (len(A), len(B)) for two
        collections of items (arrays if the samples are an array, lists otherwise).
    block : bool
        Whether `function` compares collections rather than two items.
    normalize, symmetrize, project : bool
        As for `Precomputed`. With ``symmetrize=True`` the function is called for both orders of each pair.

    Notes
    -----
    Up to 64 items a function is called for both orders of each pair, and its symmetry checked on all of them. Beyond
    that it is called once a pair, n(n+1)/2 times, and its symmetry checked on 1,024 pairs drawn at random. Items that
    are equal (texts, whole numbers, rows of an array) are taken as identical and compared once.

    Examples
    --------
    >>> import math
    >>> import vendimeter as vm
    >>> round(vm.score([0, 0, 10, 10, 20, 20], vm.kernels.FromFunction(lambda a, b: math.exp(-abs(a - b)))), 6)
    3.0
    """

    function: Callable[[Any, Any], Any]
    block: bool = False
    normalize: bool = False
    symmetrize: bool = False
    project: bool = False
    name: ClassVar[str] = "from-function"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"FromFunction got {brief(self.function)}; expected a function k(a, b).")

    def __repr__(self) -> str:
        function_name = getattr(self.function, "__qualname__", type(self.function).__name__)
        flags = [flag for flag in ("block", "normalize", "symmetrize", "project") if getattr(self, flag)]
        return f"FromFunction({', '.join([function_name, *(f'{flag}=True' for flag in flags)])})"

    @property
    def needs_all(self) -> str:
        """A function of pairs has no features."""
        return (
            "it compares items in pairs and has no features. Use Embed(encoder) with an encoder that stands for the "
            "same similarity, or score a random sample"
        )

    def build(self, samples: Any, rng: int) -> Pairwise:
        """Blocks of calls of the function."""
        items = _as_items(samples, "the function")
        policy = Policy(self.normalize, self.symmetrize, self.project)
        evaluate = self._evaluate_blocks if self.block else self._evaluate_pairs
        like = items if self.block and is_foreign(local(items)) else None
        counter = Calls()

        def block(rows: np.ndarray, cols: np.ndarray) -> Any:
            similarities = as_like(evaluate(items, rows, cols), like)
            counter.add(len(rows) * len(cols), numpy_dtype(similarities))
            return double(similarities)

        def triangle(positions: np.ndarray) -> np.ndarray:
            similarities = self._evaluate_pairs(items, positions, positions, half=True)
            counter.add(len(positions) * (len(positions) + 1) // 2, numpy_dtype(similarities))
            return double(similarities)

        def keys(index: np.ndarray) -> list[Hashable] | None:
            return _item_keys(take(local(items), index))

        return Pairwise(
            length(items),
            block,
            trusted=False,
            policy=policy,
            keys=keys,
            triangle=None if self.block else triangle,
            like=like,
            cost=1e3 if self.block else 1e5,  # a call takes a microsecond, at the least
            counter=counter,
        )

    def _evaluate_blocks(self, items: Any, rows: np.ndarray, cols: np.ndarray) -> Any:
        similarities = local(self.function(take(items, rows), take(items, cols)))
        if not is_foreign(similarities):
            try:
                similarities = np.asarray(similarities)
            except ValueError:  # a ragged list
                similarities = np.array(None)
        if tuple(similarities.shape) != (len(rows), len(cols)) or not is_real(similarities):
            raise InputError(
                f"the block function returned {similarities.dtype} of shape {shape_of(similarities.shape)} for "
                f"{len(rows)} and {len(cols)} items; expected numbers of shape {(len(rows), len(cols))}. For a "
                "function of two items leave block=True away."
            )
        return similarities

    def _evaluate_pairs(
        self, items: Any, rows: np.ndarray, cols: np.ndarray, *, half: bool = False
    ) -> np.ndarray:
        left, right = _as_sequence(take(items, rows)), _as_sequence(take(items, cols))
        similarities = np.zeros((len(rows), len(cols)))
        coarsest = similarities.dtype
        for a, i in enumerate(rows.tolist()):
            for b in range(a if half else 0, len(cols)):
                value = self.function(left[a], right[b])
                similarities[a, b] = self._as_number(value, i, int(cols[b]))
                dtype = numpy_dtype(value) if hasattr(value, "dtype") else coarsest
                if dtype.kind == "f" and dtype.itemsize < coarsest.itemsize:
                    coarsest = dtype
        return similarities.astype(coarsest)

    @staticmethod
    def _as_number(value: Any, i: int, j: int) -> float:
        try:
            return float(local(value))
        except (TypeError, ValueError):
            raise InputError(
                f"the function returned {brief(value)} for items {i} and {j}; expected a number. For a "
                "function of whole blocks use vendimeter.kernels.FromFunction(f, block=True)."
            ) from None


def _as_sequence(items: Any) -> Any:
    """Items one by one: the standard has no plain index for the rows of an array."""
    return [items[i, ...] for i in range(items.shape[0])] if is_foreign(items) else items


def _item_keys(items: Any) -> list[Hashable] | None:
    if is_foreign(items):
        return None
    if isinstance(items, np.ndarray) and items.dtype != object:
        return row_keys(items)
    # Only values that are equal exactly when they look equal; 1 == 1.0 == True would merge what a function tells apart.
    return (
        [(type(item), item) for item in items]
        if all(isinstance(item, str | bytes | int) for item in items)
        else None
    )


def _as_items(samples: Any, kernel: str) -> Any:
    """Items for a user's function: arrays of the library they came in, and rows of a table as records."""
    if is_foreign(samples):
        as_list(samples, kernel=kernel)  # for its checks alone
        return samples.detach() if is_torch(samples) else samples
    return tables.records(samples) if tables.has_columns(samples) else as_list(samples, kernel=kernel)


def _as_vectors(output: Any) -> Any:
    """The output of an encoder as an array, on the device where it is."""
    output = unwrapped(local(output))
    if is_sparse(output) or (is_foreign(output) and output.ndim > 0):
        return output
    try:
        vectors = np.asarray(output)
    except ValueError:
        vectors = np.array(None)
    if vectors.dtype == object or vectors.ndim == 0:
        raise InputError(
            f"the encoder gave {brief(output)}; expected an array with one vector of numbers a sample."
        )
    return vectors


def is_encoder(value: Any) -> bool:
    """Whether this is one of Vendimeter's encoders; who has one has imported them, so nothing is imported for it."""
    base = sys.modules.get("vendimeter.encoders.base")
    return base is not None and isinstance(value, base.Encoder)


@dataclass(frozen=True)
class Embed(Kernel):
    """An encoder in front of a kernel of vectors.

    Parameters
    ----------
    encoder : Encoder or callable
        One of `vendimeter.encoders`, which keeps vectors on disk; or a function of your own: a list (or array) of
        samples, as they were passed → one vector a sample, as an array of any library or a list of vectors. PyTorch
        computes no gradients meanwhile; a module is called in the mode it is in, so call its ``eval()`` first where
        that matters. What a function gives is never kept.
    kernel : Kernel
        What compares the vectors; cosine by default.
    batch_size : int, optional
        Call a function with this many samples at a time; with all at once by default. An encoder has its own.

    Examples
    --------
    >>> import vendimeter as vm
    >>> def encoder(words):
    ...     return [[word.count(letter) for letter in "ab"] for word in words]
    >>> round(vm.score(["aa", "ab", "bb"], vm.kernels.Embed(encoder)), 4)
    1.8899
    """

    encoder: Callable[[Any], Any]
    kernel: Kernel = field(default_factory=Cosine)
    batch_size: int | None = None
    name: ClassVar[str] = "embed"

    def __post_init__(self) -> None:
        if not callable(self.encoder):
            raise InputError(f"Embed got {brief(self.encoder)}; expected a function from samples to vectors.")
        if isinstance(self.kernel, str):
            object.__setattr__(self, "kernel", kernel_by_name(self.kernel))
        if not isinstance(self.kernel, Kernel):
            raise InputError(
                f"Embed got the kernel {brief(self.kernel)}; expected one such as Cosine() or RBF()."
            )
        if self.batch_size is not None:
            object.__setattr__(self, "batch_size", whole_number(self.batch_size, "batch_size"))
            if is_encoder(self.encoder):
                raise InputError(
                    f"Embed got batch_size={self.batch_size} with {self.encoder!r}, which makes its own batches; pass "
                    "batch_size to the encoder."
                )

    def __repr__(self) -> str:
        function_name = getattr(self.encoder, "__qualname__", type(self.encoder).__name__)
        return f"Embed({repr(self.encoder) if is_encoder(self.encoder) else function_name}, {self.kernel!r})"

    def encode(self, samples: Any) -> Any:
        """The vectors of the samples, a row each."""
        if is_encoder(self.encoder):
            return self.encoder(samples)  # it checks what goes in and what comes out
        items = _as_items(samples, "the encoder")
        count = length(items)
        step = self.batch_size or count
        parts = []
        # A score has no gradients, and a graph over all samples would fill the memory.
        with no_gradients(), Progress("encoding") as progress:
            for start in range(0, count, step):
                parts.append(_as_vectors(self.encoder(take(items, slice(start, start + step)))))
                done = min(start + step, count)
                progress.step(done / count, f"{done:,} of {count:,}")
        widths = {part.shape[1:] for part in parts}
        if len(widths) > 1:
            shapes = ", ".join(sorted(shape_of(width) for width in widths))
            raise InputError(f"the encoder gave vectors of shapes {shapes}; expected one shape.")
        if all(is_sparse(part) for part in parts):
            from scipy import sparse

            vectors: Any = sparse.csr_array(sparse.vstack(parts, format="csr"))
        else:
            vectors = concat(parts)
        if len(vectors.shape) < 1 or vectors.shape[0] != count:
            raise InputError(
                f"the encoder gave an array of shape {shape_of(vectors.shape)} for {count} samples; "
                "expected one vector a sample."
            )
        return vectors

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernel behind the encoder."""
        return (self.kernel,)

    def build(self, samples: Any, rng: int) -> Similarity:
        """Encode, then compare."""
        return self._with_kernel(self.kernel.similarity(self.encode(samples), rng=rng))

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """Encode, then take the features of the vectors."""
        return self._with_kernel(self.kernel.batch_features(self.encode(samples), rng=rng))

    def _with_kernel(self, similarity: Any) -> Any:
        return similarity.with_kernel(replace(self, kernel=similarity.kernel))
