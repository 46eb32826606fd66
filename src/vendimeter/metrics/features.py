"""Feature rows of one or two sets, for the metrics that compare vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from vendimeter.data.arrays import (
    as_rows,
    is_frame_column,
    is_table,
    is_text,
    refuse_masked,
    to_numpy,
    unwrapped,
)
from vendimeter.data.devices import as_like, double, is_foreign, local, namespace, select, to_host
from vendimeter.errors import InputError
from vendimeter.messages import about, brief, shape_of, unknown
from vendimeter.metrics.samples import opened

__all__ = ["feature_rows", "numbers_of", "two_sets", "vector_sets", "wide_block"]


def feature_rows(samples: Any, metric: str, *, features: Any = None) -> Any:
    """The user's vectors, one a row: NumPy's, or on their device.

    Parameters
    ----------
    samples : Any
        Rows of numbers; with `features` anything that it takes.
    metric : str
        The name of the metric, for messages.
    features : Encoder, str or callable, optional
        What turns samples into vectors: an encoder of `vendimeter.encoders`, or its name, or a function of all samples.
    """
    count = None
    if features is not None:
        count = len(samples) if isinstance(samples, list | tuple | np.ndarray) else None
        samples = _encoder(features)(samples)
    else:
        _refuse_non_vectors(samples, metric)
    rows = local(as_rows(samples, kernel=metric, dense=True))
    if count is not None and count != rows.shape[0]:
        raise InputError(
            f"features gave {rows.shape[0]} rows for {count} samples; {metric} expected one row for each."
        )
    return rows if is_foreign(rows) else np.asarray(rows)


def _refuse_non_vectors(samples: Any, metric: str) -> None:
    """Refuse what is not an array of vectors, and say what to pass instead."""
    if samples is None or isinstance(samples, str | bytes | os.PathLike):
        raise InputError(
            f"samples is {brief(samples)}; {metric} expected an array with one vector a row. Read a file first: "
            "vendimeter.read(path)."
        )
    if is_table(samples) or isinstance(samples, Mapping):
        raise InputError(
            f"samples is a table, or a mapping; {metric} expected an array with one vector a row. Pass the columns "
            "that are numbers as one, frame.to_numpy(); for a mean and a covariance, vendimeter.metrics.Moments."
        )
    if is_text(samples):
        raise InputError(
            f"the items are strings, and {metric} compares vectors; expected rows of numbers, or features=, an encoder "
            "such as vendimeter.encoders.Sentences()."
        )
    shape = getattr(samples, "shape", ())
    if len(shape) in (3, 4):
        raise InputError(
            f"samples has shape {shape_of(shape)}; {metric} expected one vector a row. Of pictures pass "
            "features='inception-fid', or another encoder; for their pixels samples.reshape(len(samples), -1)."
        )


def two_sets(samples: Any, reference: Any, metric: str, *, features: Any = None) -> tuple[Any, Any]:
    """The rows of samples and reference, of one width, both on the device of the samples."""
    left = feature_rows(samples, metric, features=features)
    with about("reference"):
        right = feature_rows(reference, metric, features=features)
    if left.shape[1] != right.shape[1]:
        raise InputError(
            f"samples has rows of {left.shape[1]} columns and reference of {right.shape[1]}; {metric} expected "
            "features of one kind, with as many columns."
        )
    return left, as_like(right, left if is_foreign(left) else None)


@contextmanager
def vector_sets(
    samples: Any, reference: Any, metric: str, *, features: Any = None
) -> Iterator[tuple[Any, Any]]:
    """The same of what the user passed, which may be collections or a `Diversity` each."""
    vectors = features is None
    with (
        opened(samples, metric, vectors=vectors) as left,
        opened(reference, metric, "reference", vectors=vectors) as right,
    ):
        yield two_sets(left, right, metric, features=features)


def wide_block(rows: Any, index: slice | np.ndarray, what: str = "samples") -> Any:
    """Some of the rows in float64, which the caller may overwrite on the host; an error where one is not finite."""
    block = double(select(rows, index), copy=False)
    xp = namespace(block)
    if not bool(xp.all(xp.isfinite(block))):
        host = to_host(block)
        i, j = (int(place) for place in np.argwhere(~np.isfinite(host))[0])
        at = i + (index.start or 0) if isinstance(index, slice) else int(index[i])
        raise InputError(
            f"item {at} holds {host[i, j]} in column {j}; expected finite numbers. Fill it, or drop the item.",
            item=at,
            collection=None if what == "samples" else what,
        )
    return block


def numbers_of(numbers: Any, name: str, expected: str) -> np.ndarray:
    """A one-dimensional array of the user's numbers, in float64 on the host; an error where one is not finite."""
    refuse_masked(numbers, name)
    if is_frame_column(numbers):
        numbers = to_numpy(numbers)
    numbers = unwrapped(numbers)
    try:
        array = to_host(local(numbers)) if is_foreign(numbers) else np.asarray(numbers)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind not in "buif" or array.ndim != 1:
        raise InputError(f"{name}={brief(numbers)}; expected {expected}.")
    values = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(f"{name}[{bad[0]}] is {values[bad[0]]}; expected finite numbers.")
    return values


def _encoder(features: Any) -> Callable[[Any], Any]:
    """The function that gives vectors for all samples."""
    if isinstance(features, str):
        from vendimeter import encoders

        encoders_by_name = encoders.by_name()
        if features not in encoders_by_name:
            raise unknown("encoder", features, encoders_by_name)
        return encoders_by_name[features]()
    if isinstance(features, type) or not callable(features):
        description = shape_of(features.shape) if hasattr(features, "shape") else brief(features)
        raise InputError(
            f"features={description}; expected an encoder of vendimeter.encoders, its name, or a function that turns "
            "all samples into an array with one row each."
        )
    return features
