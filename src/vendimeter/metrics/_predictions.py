"""What classifiers say of samples: class probabilities block by block, predicted classes, and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vendimeter.data.arrays import (
    BLOCK_BYTES,
    EMPTY,
    blocks,
    is_frame_column,
    is_missing,
    refuse_masked,
    to_list,
)
from vendimeter.data.devices import DEVICE_BYTES, double, is_foreign, local, namespace, select, to_host
from vendimeter.data.frames import known
from vendimeter.errors import EmptyError, InputError, TooLargeError, brief, shape_of
from vendimeter.kernels.base import multiply_features
from vendimeter.kernels.probabilities import channels_of
from vendimeter.options import check_flag
from vendimeter.similarity import FeatureRows, Features, Index

__all__ = ["Rows", "labels_of", "predicted"]

MOST_JOINT = 1 << 20  # joint classes of several classifiers that are written out


class Rows:
    """Class probabilities, block by block in float64; of several classifiers, those of the joint classes."""

    def __init__(self, samples: Any, metric: str, logits: Any):
        channels = _channels(samples, metric, logits)
        self._roots: Features = multiply_features(channels)
        self.n, self.width = self._roots.n, self._roots.width
        if len(channels) > 1 and self.width > MOST_JOINT:
            raise TooLargeError(
                f"the channels have {self.width:,} joint classes, and {metric} writes out {MOST_JOINT:,} at most; "
                "expected fewer. number_of_modes has no such limit."
            )

    def parts(self, count: int) -> list[slice]:
        """Blocks of so many rows."""
        most = BLOCK_BYTES if self._roots.like is None else DEVICE_BYTES
        return blocks(count, self.width, most=most)

    def read(self, index: Index) -> Any:
        """Some rows; each sums to 1."""
        roots = self._roots.rows(index)
        if self._roots.sparse:
            roots = roots.toarray()
        return roots * roots


def predicted(samples: Any, metric: str, logits: Any) -> np.ndarray:
    """The class of each sample as a whole number; of several classifiers, that of their answers together."""
    channels = _channels(samples, metric, logits)
    answers = np.empty((channels[0].n, len(channels)), dtype=np.int64)
    for c, channel in enumerate(channels):
        most = BLOCK_BYTES if channel.like is None else DEVICE_BYTES
        for part in blocks(channel.n, channel.width, most=most):
            channel.rows(part)  # for its checks; the numbers as given rank the classes without rounding
            given = (
                channel.data[part].toarray()
                if channel.sparse
                else double(select(channel.data, part), copy=False)
            )
            answers[part, c] = to_host(namespace(given).argmax(given, axis=1))
    return np.unique(answers, axis=0, return_inverse=True)[1].ravel()


def _channels(samples: Any, metric: str, logits: Any) -> Sequence[FeatureRows]:
    """The square roots of class probabilities, read as the kernel of class probabilities reads them."""
    check_flag(logits, "logits")
    expected = f"{metric} expected class probabilities, one row a sample."
    if isinstance(samples, str | bytes):
        raise InputError(f"samples is the single text {brief(samples)}; {expected}")
    shape = getattr(samples, "shape", None)
    if shape is None and isinstance(samples, Sequence) and len(samples) and np.isscalar(samples[0]):
        shape = (len(samples),)
    plain = not (is_frame_column(samples) or _nested(samples))
    if plain and isinstance(shape, tuple) and len(shape) < 2:
        raise InputError(f"samples has shape {shape_of(shape)}; {expected}")
    return channels_of(samples, logits=bool(logits), reader=metric, instead="For logits pass logits=True.")


def _nested(samples: Any) -> bool:
    return isinstance(samples, np.ndarray) and samples.dtype == object and samples.ndim == 1


# ------------------------------------------------------------------------------------------------------------- labels


def labels_of(samples: Any, metric: str) -> np.ndarray | None:
    """Labels as whole numbers from 0 up, or None where the samples are rows of numbers."""
    refuse_masked(samples, "samples")
    items: Any = local(known(samples))
    if is_frame_column(items):
        items = to_list(items)
    if is_foreign(items) and items.ndim == 1:
        items = to_host(items)
    if isinstance(items, np.ndarray) and items.ndim == 1 and items.dtype == object:
        items = items.tolist()
    if isinstance(items, np.ndarray) and items.ndim == 1:
        if len(items) == 0:
            raise EmptyError(EMPTY)
        if items.dtype.kind not in "biuUS":
            raise _no_labels(f"samples has shape {shape_of(items.shape)} and dtype {items.dtype}", metric)
        return np.unique(items, return_inverse=True)[1]
    if (
        not isinstance(items, list | tuple)
        or not items
        or not (np.isscalar(items[0]) or is_missing(items[0]))
    ):
        return None
    found: dict[Any, int] = {}
    for i, item in enumerate(items):
        if is_missing(item):
            raise InputError(
                f"item {i} is missing ({brief(item)}); {metric} expected a label. Fill or drop it.", item=i
            )
        if not isinstance(item, str | bytes | bool | int | np.integer | np.bool_):
            raise _no_labels(f"item {i} is {brief(item)}", metric).at(item=i)
        found.setdefault(item, len(found))
    return np.array([found[item] for item in items])


def _no_labels(seen: str, metric: str) -> InputError:
    return InputError(
        f"{seen}; {metric} expected labels, whole numbers or texts, or class probabilities, one row a sample."
    )
