"""What metrics take: collections in place of samples, feature rows of one or two sets, and errors that say whose."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from vendimeter import _frames
from vendimeter._arrays import as_rows
from vendimeter._devices import as_like, double, is_foreign, local, namespace, select, to_host, wide_mode
from vendimeter._messages import brief, shape_of, unknown
from vendimeter.errors import InputError
from vendimeter.io.collection import Collection

__all__ = ["about", "collected", "feature_rows", "two_sets", "wide_block"]

_REFERENCE = "reference: "


@contextmanager
def about(what: str) -> Iterator[None]:
    """Say that an error about samples is one about something else, such as the reference."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{what}: {error}") from None


def collected(function: Callable[..., Any] | None = None, *, groups: bool = False) -> Any:
    """Let a metric take a `Collection` for `samples` and for `reference`, and frames of any library.

    Weights of a collection become the option `weights` where the metric has one, and are refused where it has not. The
    first item that an error names gets its place in the file. With arrays of JAX, its 64-bit mode is on.

    Parameters
    ----------
    function : callable
        A function of (samples, …) or (samples, reference, …).
    groups : bool
        Whether samples may be lists of texts, each a group of its own.
    """
    if function is None:
        return functools.partial(collected, groups=groups)
    signature = inspect.signature(function)

    @functools.wraps(function)
    def taking(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options)
        given = bound.arguments
        sources: dict[str, Collection] = {}
        for name in ("samples", "reference"):
            if isinstance(given.get(name), Collection):
                source = sources[name] = given[name]
                given[name] = source.samples if groups else source.one()
            elif name in given:
                given[name] = _frames.known(given[name])
        if "samples" in sources:
            _fit(sources["samples"], given, signature, function.__name__)
        with wide_mode("float64", given.get("samples"), given.get("reference")), _placed(sources):
            return function(*bound.args, **bound.kwargs)

    return taking


def _fit(source: Collection, given: dict[str, Any], signature: inspect.Signature, metric: str) -> None:
    """The kernel and the weights that belong to a collection, in the arguments of a metric."""
    known = signature.parameters
    if "kernel" in known:
        source.refuse_default(given.get("kernel", known["kernel"].default))
    if source.weights is None:
        return
    if "weights" not in known:
        raise InputError(
            f"the collection has weights, and {metric} counts every sample once; expected samples of equal weight. "
            "Pass collection.samples to leave the weights away."
        )
    if given.get("weights") is None and given.get("counts") is None:
        given["weights"] = source.probabilities()


@contextmanager
def _placed(sources: dict[str, Collection]) -> Iterator[None]:
    """Put the place in the file behind the first item that an error names."""
    try:
        yield
    except InputError as error:
        whose = "reference" if str(error).startswith(_REFERENCE) else "samples"
        if whose not in sources:
            raise
        with sources[whose].placed():
            raise


# ------------------------------------------------------------------------------------------------------ feature rows


def feature_rows(samples: Any, metric: str, *, features: Any = None) -> Any:
    """Vectors, one a row, as the user has them: NumPy's, or on their device.

    Parameters
    ----------
    samples : Any
        Rows of numbers; with `features` anything that it takes.
    metric : str
        The name of the metric, for messages.
    features : Encoder, str or callable, optional
        What turns samples into vectors: an encoder of `vendimeter.encoders`, or its name, or a function of all samples.
    """
    if features is not None:
        samples = _encoder(features)(samples)
    rows = local(as_rows(samples, kernel=metric, dense=True))
    return rows if is_foreign(rows) else np.asarray(rows)


def two_sets(samples: Any, reference: Any, metric: str, *, features: Any = None) -> tuple[Any, Any]:
    """The rows of samples and reference, of one width, where the samples are."""
    left = feature_rows(samples, metric, features=features)
    with about("reference"):
        right = feature_rows(reference, metric, features=features)
    if left.shape[1] != right.shape[1]:
        raise InputError(
            f"samples has rows of {left.shape[1]} columns and reference of {right.shape[1]}; {metric} expected "
            "features of one kind, with as many columns."
        )
    return left, as_like(right, left if is_foreign(left) else None)


def wide_block(rows: Any, index: slice | np.ndarray, what: str = "samples") -> Any:
    """Some of the rows in float64, which the caller may overwrite on the host; an error where one is not finite."""
    block = double(select(rows, index), copy=False)
    xp = namespace(block)
    if not bool(xp.all(xp.isfinite(block))):
        host = to_host(block)
        i, j = (int(place) for place in np.argwhere(~np.isfinite(host))[0])
        at = i + (index.start or 0) if isinstance(index, slice) else int(index[i])
        prefix = "" if what == "samples" else f"{what}: "
        raise InputError(
            f"{prefix}item {at} holds {host[i, j]} in column {j}; expected finite numbers. Fill it, or drop the item."
        )
    return block


def _encoder(features: Any) -> Callable[[Any], Any]:
    """The function that gives vectors for all samples."""
    if isinstance(features, str):
        from vendimeter import encoders

        known = encoders.by_name()
        if features not in known:
            raise unknown("encoder", features, known)
        return known[features]()
    if isinstance(features, type) or not callable(features):
        shown = shape_of(features.shape) if hasattr(features, "shape") else brief(features)
        raise InputError(
            f"features={shown}; expected an encoder of vendimeter.encoders, its name, or a function that turns all "
            "samples into an array with one row each."
        )
    return features
