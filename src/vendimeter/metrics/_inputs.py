"""What metrics take: collections in place of samples, feature rows of one or two sets, and errors that say whose."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from vendimeter import _frames
from vendimeter._arrays import as_rows, is_table, is_text
from vendimeter._devices import as_like, double, is_foreign, local, namespace, select, to_host, wide_mode
from vendimeter._messages import brief, shape_of, unknown
from vendimeter.errors import InputError, MatrixError
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


def collected(
    function: Callable[..., Any] | None = None, *, groups: bool = False, complete: bool = False
) -> Any:
    """Let a metric take a `Collection` for `samples` and for `reference`, and frames of any library.

    Weights of a collection become the option `weights` where the metric has one, and are refused where it has not. The
    first item that an error names gets its place in the file. With arrays of JAX, its 64-bit mode is on.

    Parameters
    ----------
    function : callable
        A function of (samples, …) or (samples, reference, …).
    groups : bool
        Whether samples may be lists of texts, each a group of its own.
    complete : bool
        Whether the metric needs the records that were left out on reading.
    """
    if function is None:
        return functools.partial(collected, groups=groups, complete=complete)
    signature = inspect.signature(function)
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    plain = inspect.Signature(bare)

    @functools.wraps(function)
    def taking(*args: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}; it is {function.__name__}{plain}") from None
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
            if complete and sources["samples"].skipped.count:
                raise InputError(
                    f"{sources['samples'].skipped.count:,} records were left out on reading, and {function.__name__} "
                    "counts what is broken; expected all of them. Read the file without skip_broken, or pass "
                    "collection.samples to count only those that were read."
                )
        if "reference" in sources and sources["reference"].weights is not None:
            raise _weighted("reference", function.__name__)
        wide = wide_mode("float64", given.get("samples"), given.get("reference"))
        with wide, _placed(sources), _mended_by_kernels():
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
        raise _weighted("collection", metric)
    if given.get("weights") is None and given.get("counts") is None:
        given["weights"] = source.probabilities()


def _weighted(what: str, metric: str) -> InputError:
    return InputError(
        f"the {what} has weights, and {metric} counts every sample once; expected samples of equal weight. Pass "
        f"{what}.samples to leave the weights away."
    )


@contextmanager
def _mended_by_kernels() -> Iterator[None]:
    """Where a score would take normalize=True or symmetrize=True, a metric leaves that to its kernel."""
    try:
        yield
    except MatrixError as error:
        text = str(error)
        for option in ("normalize", "symmetrize"):
            text = text.replace(
                f"pass {option}=True", f"take kernel=vendimeter.kernels.Precomputed({option}=True)"
            )
        raise type(error)(text) from None


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
    count = None
    if features is not None:
        count = len(samples) if isinstance(samples, list | tuple | np.ndarray) else None
        samples = _encoder(features)(samples)
    else:
        _refuse_others(samples, metric)
    rows = local(as_rows(samples, kernel=metric, dense=True))
    if count is not None and count != rows.shape[0]:
        raise InputError(
            f"features gave {rows.shape[0]} rows for {count} samples; {metric} expected one row for each."
        )
    return rows if is_foreign(rows) else np.asarray(rows)


def _refuse_others(samples: Any, metric: str) -> None:
    """Refuse what is no array of vectors, with what to do about it."""
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
