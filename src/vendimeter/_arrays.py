"""The only file that knows array libraries: what the user passed → rows of numbers.

Today that is NumPy and SciPy sparse. SciPy's sparse package is looked up in `sys.modules`, never imported to find
out whether an object is sparse: who has a sparse array has imported it already.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from vendimeter.errors import EmptyError, InputError

BLOCK_BYTES = 8 << 20  # working blocks are about this large: they fit the cache, and memory stays bounded


def is_sparse(value: Any) -> bool:
    """Whether this is a SciPy sparse array or matrix."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(value)


_TABLES = {"pandas": ("DataFrame",), "polars": ("DataFrame",), "pyarrow": ("Table", "RecordBatch")}
_COLUMNS = {"pandas": ("Series", "Index"), "polars": ("Series",), "pyarrow": ("Array", "ChunkedArray")}


def _is_any(value: Any, classes: dict[str, tuple[str, ...]]) -> bool:
    """Whether `value` is of one of these classes, of libraries that the user has imported already."""
    loaded = ((sys.modules.get(module), names) for module, names in classes.items())
    return any(
        isinstance(value, getattr(library, name, ()))
        for library, names in loaded
        if library
        for name in names
    )


def is_table(value: Any) -> bool:
    """Whether this is a pandas or polars frame or an Arrow table."""
    return _is_any(value, _TABLES)


def is_frame_column(value: Any) -> bool:
    """Whether this is a single column of a frame library (a Series or an Arrow array)."""
    return _is_any(value, _COLUMNS)


def to_numpy(column: Any) -> np.ndarray:
    """A column of any frame library as a NumPy array."""
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return column.to_numpy(zero_copy_only=False)
    return column.to_numpy()


def length(samples: Any) -> int:
    """How many items there are."""
    if is_sparse(samples) or isinstance(samples, np.ndarray):
        if len(samples.shape) == 0:
            raise InputError(f"samples is the single value {samples!r}; expected a collection of items.")
        return int(samples.shape[0])
    if isinstance(samples, dict):
        sizes = {key: length(column) for key, column in samples.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(
                f"the columns of the table have different lengths: {sizes}; expected one length."
            )
        return next(iter(sizes.values()), 0)
    try:
        return len(samples)
    except TypeError:
        raise InputError(
            f"samples is a {type(samples).__name__} without a length; expected an array, a list, a table or "
            "a "
            "sparse array. Turn an iterator into a list first."
        ) from None


def take(samples: Any, index: np.ndarray | slice) -> Any:
    """The items at these positions, in the kind of container they came in."""
    if isinstance(samples, np.ndarray) or is_sparse(samples):
        return samples[index]
    positions = range(*index.indices(len(samples))) if isinstance(index, slice) else index
    return [samples[int(i)] for i in positions]


def is_text(samples: Any) -> bool:
    """Whether the items are strings."""
    if isinstance(samples, np.ndarray):
        return samples.dtype.kind in "US" or (
            samples.dtype == object and samples.size > 0 and isinstance(samples.flat[0], str | bytes)
        )
    return isinstance(samples, Sequence) and len(samples) > 0 and isinstance(samples[0], str | bytes)


def as_list(samples: Any, *, kernel: str) -> Any:
    """Items of any type as a sequence that can be indexed by position."""
    if is_frame_column(samples):
        samples = to_numpy(samples)
    if isinstance(samples, str | bytes):
        raise InputError(
            f"samples is a single text of {len(samples)} characters; {kernel} expected a collection: put "
            "the texts "
            "into a list."
        )
    if is_sparse(samples):
        return samples
    count = length(samples)
    if count == 0:
        raise EmptyError("samples is empty; the diversity of nothing is undefined.")
    if isinstance(samples, np.ndarray | list | tuple):
        return samples
    return list(samples)


def as_rows(samples: Any, *, kernel: str, scalars: bool = False, dense: bool = False) -> Any:
    """Vectors, one a row: a 2-D NumPy array (not copied) or a SciPy CSR array.

    Parameters
    ----------
    samples : Any
        What the user passed.
    kernel : str
        The name of the kernel, for messages.
    scalars : bool
        Whether a 1-D array means one number an item (as it does for RBF), rather than a mistake.
    dense : bool
        Whether sparse rows are of no use to this kernel.
    """
    if is_sparse(samples):
        return _csr(samples, kernel, dense)
    if is_table(samples) or isinstance(samples, dict):
        raise InputError(
            f"samples is a table and {kernel} does not say which column to read; "
            "name it: kernel=On('column', …), or pass the columns as an array."
        )
    if isinstance(samples, np.ma.MaskedArray):
        raise InputError("samples is a masked array; fill or drop the masked values first.")
    if is_frame_column(samples):
        samples = to_numpy(samples)
    if is_text(samples):
        raise InputError(
            f"the items are strings, and {kernel} compares vectors. For text use kernel='ngram' "
            "(vendimeter.kernels.NGram), kernel='match', kernel=Embed(encoder) with your encoder, or a "
            "function k(a, b)."
        )
    rows = samples if isinstance(samples, np.ndarray) else _stack(samples, kernel)
    if rows.dtype == object:
        rows = _stack(list(rows), kernel)
    if rows.dtype.kind not in "buif":
        raise InputError(
            f"samples has dtype {rows.dtype}; {kernel} expected real numbers."
            + (" Split complex numbers into real and imaginary columns." if rows.dtype.kind == "c" else "")
        )
    if rows.ndim == 1 and scalars:
        rows = rows[:, None]
    if rows.ndim != 2:
        shape = "×".join(map(str, rows.shape)) or "a single number"
        hint = "use samples.reshape(len(samples), -1)"
        if rows.ndim < 2:
            hint = "for plain numbers use kernel=vendimeter.kernels.RBF(σ) or Laplacian(scale)"
        raise InputError(f"samples has shape {shape}; {kernel} expected one vector a row: {hint}.")
    if rows.shape[0] == 0:
        raise EmptyError("samples is empty; the diversity of nothing is undefined.")
    if rows.shape[1] == 0:
        raise InputError(
            f"samples has {rows.shape[0]} rows of no columns; {kernel} expected at least one column."
        )
    return rows


def _stack(samples: Any, kernel: str) -> np.ndarray:
    """A list of numbers or vectors as an array, or an error that names the odd one out."""
    samples = as_list(samples, kernel=kernel)
    try:
        rows = np.asarray(samples)
        if rows.dtype != object:
            return rows
    except ValueError:
        pass
    shapes = [np.shape(item) if _numeric(item) else None for item in samples]
    for i, shape in enumerate(shapes):
        if shape is None:
            raise InputError(
                f"item {i} is a {type(samples[i]).__name__}; {kernel} expected vectors of numbers. For "
                "other items "
                "pass a kernel made for them, or a function k(a, b)."
            )
        if shape != shapes[0]:
            raise InputError(
                f"item {i} has shape {shape} and item 0 has shape {shapes[0]}; {kernel} expected vectors of "
                "one length."
            )
    return np.asarray([np.asarray(item) for item in samples])


def _numeric(item: Any) -> bool:
    try:
        return np.asarray(item).dtype.kind in "buif"
    except ValueError:
        return False


def _csr(samples: Any, kernel: str, dense: bool) -> Any:
    from scipy import sparse

    if dense:
        raise InputError(f"samples is sparse and {kernel} needs dense vectors; pass samples.toarray().")
    if len(samples.shape) != 2:
        raise InputError(f"samples has shape {samples.shape}; {kernel} expected one vector a row.")
    if samples.shape[0] == 0:
        raise EmptyError("samples is empty; the diversity of nothing is undefined.")
    if samples.dtype.kind not in "buif":
        raise InputError(f"samples has dtype {samples.dtype}; {kernel} expected real numbers.")
    rows = sparse.csr_array(samples)
    if not rows.has_canonical_format:
        rows = rows.copy()  # summing duplicates in place would change the user's own matrix
        rows.sum_duplicates()
    return rows


def blocks(count: int, width: int, itemsize: int = 8) -> list[slice]:
    """Slices that cut `count` rows into blocks of about BLOCK_BYTES."""
    step = max(1, min(count, BLOCK_BYTES // max(1, width * itemsize)))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]
