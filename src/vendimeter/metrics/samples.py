"""What metrics are given: samples as such, of a `Collection` or of a `Diversity`; errors say where an item was read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from vendimeter.data import frames
from vendimeter.data.collection import Collection
from vendimeter.data.devices import wide_mode
from vendimeter.diversity import Diversity
from vendimeter.errors import InputError
from vendimeter.intake import weighted_error
from vendimeter.messages import about

__all__ = ["opened", "placed", "refuse_weights", "weights_of"]

REFERENCE = "reference"


@contextmanager
def opened(
    samples: Any,
    metric: str,
    name: str = "samples",
    *,
    vectors: bool = False,
    weighted: bool = False,
    complete: bool = False,
    lists: bool = False,
) -> Iterator[Any]:
    """What a metric computes from: those of a `Collection` or `Diversity`, or frames of any library as a known one.

    Parameters
    ----------
    samples : Any
        As the user passed them.
    metric : str
        The name of the function, for messages.
    name : str
        The argument: "samples" or "reference".
    vectors : bool
        Whether it computes from vectors: those that an encoder made, of a `Diversity` that has one.
    weighted : bool
        Whether samples may have weights.
    complete : bool
        Whether it needs the records that were left out on reading.
    lists : bool
        Whether a sample may be a list of texts.
    """
    with placed(samples, name):
        if not weighted:
            refuse_weights(samples, metric, name)
        if complete:
            _refuse_left_out(samples, metric)
        if isinstance(samples, Diversity):
            encoded = samples.vectors if vectors else None
            yield samples.samples if encoded is None else encoded
        elif isinstance(samples, Collection):
            yield samples.samples if lists else samples.one()
        else:
            yield frames.known(samples)


@contextmanager
def placed(samples: Any, name: str = "samples") -> Iterator[None]:
    """Say in errors where the item that they are about was read; 64-bit numbers for arrays of JAX."""
    place: Any = nullcontext
    if isinstance(samples, Diversity):
        place = samples.asked
    elif isinstance(samples, Collection) and not samples.is_group:  # whose errors are about items of a group
        place = samples.placed
    try:
        with wide_mode("float64", _plain(samples)):
            yield
    except InputError as error:
        if (name == REFERENCE) == (error.collections[:1] == (REFERENCE,)):
            with place():
                raise
        raise


def refuse_weights(samples: Any, metric: str, name: str = "samples") -> None:
    """Refuse a collection or `Diversity` with weights, where a metric counts every sample once."""
    if isinstance(samples, Collection) and samples.weights is not None:
        raise weighted_error(REFERENCE if name == REFERENCE else "collection", metric)
    if isinstance(samples, Diversity):
        with about(REFERENCE) if name == REFERENCE else nullcontext():
            samples.refuse_weights(metric)


def weights_of(samples: Any, weights: Any) -> np.ndarray | None:
    """The weights that were given, or else those of the collection or `Diversity`."""
    if weights is not None or not isinstance(samples, Collection | Diversity):
        return weights
    return samples.probabilities() if isinstance(samples, Collection) else samples.weights


def _refuse_left_out(samples: Any, metric: str) -> None:
    if isinstance(samples, Collection):
        count = samples.skipped.count
    else:
        count = samples.left_out if isinstance(samples, Diversity) else 0
    if count:
        raise InputError(
            f"{count:,} records were left out on reading, and {metric} counts what is broken; expected all of them. "
            "Read the file without skip_broken, or pass collection.samples to count only those that were read."
        )


def _plain(samples: Any) -> Any:
    return samples.samples if isinstance(samples, Collection | Diversity) else samples
