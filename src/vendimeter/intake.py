"""What metrics and analyses take: collections in place of samples, weights or counts, and errors that say whose."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from vendimeter.data import frames
from vendimeter.data.arrays import csr, is_sparse, is_table, refuse_set
from vendimeter.data.collection import Collection
from vendimeter.data.devices import (
    diagonal,
    double,
    is_foreign,
    is_real,
    local,
    namespace,
    transposed,
    wide_mode,
)
from vendimeter.data.tables import check_alignment
from vendimeter.data.weights import probabilities
from vendimeter.errors import InputError
from vendimeter.kernels import Kernel, as_kernel
from vendimeter.options import check_rng
from vendimeter.similarity import Similarity

__all__ = ["collected", "measured", "refuse_matrix", "similarity_of"]


def collected(
    function: Callable[..., Any] | None = None, *, groups: bool = False, complete: bool = False
) -> Any:
    """Let a metric take a `Collection` for `samples` and for `reference`, and frames of any library.

    Weights of a collection become the option `weights` where the metric has one, and are refused where it has not. The
    item that an error is about gets its place in the file. With arrays of JAX, its 64-bit mode is on.

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
                given[name] = frames.known(given[name])
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
        with wide:
            try:
                return function(*bound.args, **bound.kwargs)
            except InputError as error:
                source = sources.get("reference" if "reference" in error.collections[:1] else "samples")
                if source is not None:
                    source.locate(error)
                raise

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


def measured(
    samples: Any, kernel: Any, weights: Any, counts: Any, rng: Any
) -> tuple[Similarity, np.ndarray, int]:
    """The similarities of the samples, the probability of each, and how many items they stand for."""
    name, given = ("weights", weights) if counts is None else ("counts", counts)
    if given is not None:
        refuse_set(samples, name)
        check_alignment(samples, given, name)
    similarity = similarity_of(samples, kernel, check_rng(rng))
    shares, n = probabilities(weights, counts, similarity.n)
    return similarity, np.full(n, 1 / n) if shares is None else shares, n


def similarity_of(samples: Any, kernel: Any, rng: int) -> Similarity:
    """The similarities of the samples, after the checks that only the default kernel makes."""
    if isinstance(kernel, str) and kernel == "cosine":
        refuse_matrix(samples)
    chosen: Kernel = as_kernel(kernel)
    return chosen.similarity(samples, rng=rng)


def refuse_matrix(samples: Any) -> None:
    """Rows of a matrix of similarities or distances are no embeddings; under the default kernel it is a mistake."""
    rows = _square(samples)
    if rows is None:
        return
    sparse, xp = is_sparse(rows), None if is_sparse(rows) else namespace(rows)
    own = rows.diagonal() if sparse else diagonal(rows)
    if is_foreign(rows):  # not all libraries find the largest of all dtypes
        rows = double(rows, copy=False)
    highest = float(rows.max() if sparse else xp.max(rows))  # type: ignore[union-attr]
    like_one, like_zero = np.allclose(own, 1, rtol=0, atol=1e-6), np.abs(own).max() <= 1e-6 * highest
    if not (like_one or like_zero):
        return
    wide = rows.astype(np.float64) if sparse else double(rows)
    gap = abs(wide - (wide.T if sparse else transposed(wide)))
    if not float(gap.max() if sparse else xp.max(gap)) <= 1e-6:  # type: ignore[union-attr]
        return
    lowest = float(rows.min() if sparse else xp.min(rows))  # type: ignore[union-attr]
    size = f"{rows.shape[0]}×{rows.shape[1]}"
    if like_one:
        raise InputError(
            f"samples is a symmetric {size} array with a diagonal of 1, which looks like a similarity "
            "matrix; the default kernel expected embeddings. Pass kernel='precomputed', or "
            "kernel=vendimeter.kernels.Cosine() if its rows are embeddings.",
            option="kernel",
        )
    if lowest > -1e-6 and highest > 0:
        raise InputError(
            f"samples is a symmetric {size} array with a diagonal of 0, which looks like distances; the "
            "default kernel expected embeddings. Pass kernel=vendimeter.kernels.FromDistances(), or "
            "Cosine() if its rows are embeddings.",
            option="kernel",
        )


def _square(samples: Any) -> Any:
    """The samples as a square array of numbers, if they are one; the first item of a list tells at once."""
    if is_sparse(samples):
        rows = csr(samples)
    elif is_foreign(samples):
        rows = local(samples)
    elif isinstance(samples, np.ndarray) or is_table(samples):
        rows = np.asarray(samples)
    elif isinstance(samples, list | tuple) and samples and isinstance(samples[0], list | tuple | np.ndarray):
        try:
            rows = np.asarray(samples) if len(samples[0]) == len(samples) else np.empty(0)
        except (ValueError, TypeError):
            return None
    else:
        return None
    square = len(rows.shape) == 2 and rows.shape[0] == rows.shape[1] > 1
    return rows if square and is_real(rows) else None
