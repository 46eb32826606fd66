"""Samples as the user passed them → items, or rows of numbers: arrays, sparse arrays, columns of any frame library.

Arrays on a device stay there (see `devices`). Libraries are looked up in `sys.modules`, never imported to find out
what an object is: who has a sparse array or a frame has imported its library already. Frames of libraries beyond
pandas, polars and Arrow become one of these in `frames.known`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vendimeter.data import devices
from vendimeter.data.devices import is_foreign, is_real, local
from vendimeter.data.frames import is_strange_column, is_strange_table, known, vectors
from vendimeter.errors import EmptyError, InputError
from vendimeter.messages import brief, shape_of

__all__ = [
    "BLOCK_BYTES",
    "EMPTY",
    "as_list",
    "as_rows",
    "blocks",
    "csr",
    "is_frame_column",
    "is_missing",
    "is_sparse",
    "is_table",
    "is_text",
    "length",
    "refuse_masked",
    "refuse_set",
    "take",
    "to_list",
    "to_numpy",
    "to_python",
    "unwrapped",
]

# Working blocks are about this large: they fit the cache, and memory stays bounded.
BLOCK_BYTES = 8 << 20

_TABLES = {"pandas": ("DataFrame",), "polars": ("DataFrame",), "pyarrow": ("Table", "RecordBatch")}
_COLUMNS = {
    "pandas": ("Series", "Index", "Categorical"),
    "polars": ("Series",),
    "pyarrow": ("Array", "ChunkedArray"),
}
LONGEST_PATH = 4096  # characters
EMPTY = "samples is empty; the diversity of nothing is undefined."


# ---------------------------------------------------------------------------------------- what the user passed


def is_sparse(value: Any) -> bool:
    """Whether this is a SciPy sparse array or matrix."""
    # While another thread imports it, the module is there and its names are not.
    issparse = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return issparse is not None and issparse(value)


def _is_any(value: Any, classes: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether `value` is of one of these classes, of libraries that the user has imported already."""
    for module, names in classes.items():
        library = sys.modules.get(module)
        if library is not None and any(isinstance(value, getattr(library, name, ())) for name in names):
            return True
    return False


def is_table(value: Any) -> bool:
    """Whether this is a frame of any library: pandas, polars, Arrow, or what `frames` knows."""
    return _is_any(value, _TABLES) or is_strange_table(value)


def is_frame_column(value: Any) -> bool:
    """Whether this is a single column of a frame library (a Series or an Arrow array)."""
    return _is_any(value, _COLUMNS) or is_strange_column(value)


def is_text(samples: Any) -> bool:
    """Whether the items are strings."""
    if isinstance(samples, np.ndarray):
        return samples.dtype.kind in "US" or (
            samples.dtype == object and samples.size > 0 and isinstance(samples.flat[0], str | bytes)
        )
    return isinstance(samples, Sequence) and len(samples) > 0 and isinstance(samples[0], str | bytes)


def is_missing(value: Any) -> bool:
    """Whether this is a gap: None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA refuses to be a truth value
        return type(value).__name__ == "NAType"
    except (ValueError, RuntimeError):  # an array is not a gap
        return False


def refuse_set(samples: Any, what: str) -> None:
    """Refuse a set where weights or labels go by position, which its items do not have."""
    if isinstance(samples, set | frozenset):
        raise InputError(f"samples is a set, which has no order, and {what} go by position; expected a list.")


def refuse_masked(value: Any, what: str, option: str | None = None) -> None:
    """Refuse masked arrays, whose mask would be dropped in silence."""
    is_list = isinstance(value, list | tuple)
    if isinstance(value, np.ma.MaskedArray) or (
        is_list and any(isinstance(v, np.ma.MaskedArray) for v in value)
    ):
        raise InputError(f"{what} is a masked array; fill or drop the masked values first.", option=option)


# ------------------------------------------------------------------------------- columns, positions and blocks


def to_numpy(column: Any) -> np.ndarray:
    """A column of any frame library as a NumPy array."""
    column = known(column)
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return column.to_numpy(zero_copy_only=False)
    return np.asarray(column) if type(column).__name__ == "Categorical" else column.to_numpy()


def to_list(column: Any) -> list[Any]:
    """A column, array or sequence as a list of plain Python values."""
    column = known(column)
    if is_frame_column(column):
        for name in ("to_pylist", "to_list", "tolist"):
            if hasattr(column, name):
                return getattr(column, name)()
    column = local(column)
    if is_foreign(column):
        column = devices.to_host(column)
    if isinstance(column, np.ndarray):
        return column.astype(str).tolist() if column.dtype.kind in "mM" else column.tolist()
    return [to_python(value) for value in column]


def to_python(value: Any) -> Any:
    """A scalar or array of any library as a plain value or list, which can be compared and hashed by content."""
    if is_foreign(value):
        return devices.to_host(local(value)).tolist()
    scalar = isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)
    return value.item() if scalar else value


def unwrapped(items: Any) -> Any:
    """A list of arrays of other libraries as one array where library, shape and dtype agree; else as NumPy arrays."""
    if not isinstance(items, list | tuple) or not any(is_foreign(item) for item in items):
        return items
    items = [local(item) for item in items]
    one_library = (
        all(is_foreign(item) for item in items) and len({devices.namespace(item) for item in items}) == 1
    )
    if one_library and len({(tuple(item.shape), item.dtype) for item in items}) == 1:
        return devices.namespace(items[0]).stack(items)
    return [devices.to_host(item) if is_foreign(item) else item for item in items]


def length(samples: Any) -> int:
    """How many items there are."""
    samples = known(samples)
    if is_sparse(samples) or isinstance(samples, np.ndarray) or is_foreign(samples):
        if len(samples.shape) == 0:
            raise InputError(f"samples is the single value {brief(samples)}; expected a collection of items.")
        return int(samples.shape[0])
    if isinstance(samples, Mapping):
        sizes = {key: length(column) for key, column in samples.items()}
        odd = next((key for key, size in sizes.items() if size != next(iter(sizes.values()))), None)
        if odd is not None:
            first = next(iter(sizes))
            raise InputError(
                f"column {brief(first)} has {sizes[first]} entries and column {brief(odd)} has "
                f"{sizes[odd]}; expected columns of one length."
            )
        return next(iter(sizes.values()), 0)
    try:
        return len(samples)
    except TypeError:
        raise InputError(
            f"samples is a {type(samples).__name__} without a length; expected an array, a list, a table or "
            "a sparse array. Turn an iterator into a list first."
        ) from None


def take(samples: Any, index: np.ndarray | slice) -> Any:
    """The items at these positions, in the kind of container they came in."""
    if isinstance(samples, np.ndarray) or is_sparse(samples):
        return samples[index]
    if is_foreign(samples):
        return devices.select(samples, index)
    positions = range(*index.indices(len(samples))) if isinstance(index, slice) else index
    return [samples[int(i)] for i in positions]


def blocks(count: int, width: int, itemsize: int = 8, most: int = BLOCK_BYTES) -> list[slice]:
    """Slices that cut `count` rows into blocks of about `most` bytes."""
    step = max(1, min(count, most // max(1, width * itemsize)))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


# ------------------------------------------------------------------------------------------------- items and rows


def as_list(samples: Any, *, kernel: str) -> Any:
    """Items of any type as an array, a list or CSR rows: something that can be indexed by position."""
    samples = known(samples)
    samples = to_numpy(samples) if is_frame_column(samples) else local(samples)
    refuse_masked(samples, "samples")
    if isinstance(samples, str | bytes):
        if (
            isinstance(samples, str)
            and len(samples) < LONGEST_PATH
            and "\0" not in samples
            and os.path.exists(samples)
        ):
            raise InputError(
                f"samples is {brief(samples)}, the path of something; {kernel} expected a collection. Read it first: "
                "vendimeter.read(path)."
            )
        raise InputError(
            f"samples is a single text of {len(samples)} characters; {kernel} expected a collection: put "
            "the texts into a list."
        )
    if is_sparse(samples):  # before tables, because one sparse format is a dict
        if samples.shape[0] == 0:
            raise EmptyError(EMPTY)
        return csr(samples)
    if is_table(samples) or isinstance(samples, Mapping):
        raise _unnamed_column_error(kernel)
    if length(samples) == 0:
        raise EmptyError(EMPTY)
    if is_foreign(samples):
        return samples
    if isinstance(samples, np.matrix) or (
        hasattr(samples, "__array__") and not isinstance(samples, np.ndarray)
    ):
        return np.asarray(samples)  # arrays of other libraries that live in main memory
    if isinstance(samples, np.ndarray | list | tuple):
        return samples
    try:
        return list(samples)
    except TypeError:
        raise InputError(
            f"samples is a {type(samples).__name__} that cannot be iterated over; {kernel} expected an array or a list."
        ) from None


def _unnamed_column_error(kernel: str) -> InputError:
    if not _names_kernel(kernel):
        return InputError(
            f"samples is a table, and {kernel} takes one collection; expected a column of it, such as table['text'], "
            "or an array of its numbers."
        )
    return InputError(
        f"samples is a table and {kernel} does not say which column to read; name it: kernel=On('column', "
        "…), or pass the column itself.",
        option="kernel",
    )


def as_rows(samples: Any, *, kernel: str, scalars: bool = False, dense: bool = False) -> Any:
    """Vectors, one a row: a 2-D array (not copied; of another library where it lies on a device) or a SciPy CSR array.

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
    if isinstance(samples, str):
        raise _strings_error(kernel)
    samples = known(samples)
    is_column = is_frame_column(samples) and len(samples) > 0
    vector_rows = vectors(samples, kernel) if is_column else None
    items = as_list(samples, kernel=kernel) if vector_rows is None else vector_rows
    if is_sparse(items):
        return _check_sparse(items, kernel, dense)
    if is_text(items):
        raise _strings_error(kernel)
    is_array = is_foreign(items) or (isinstance(items, np.ndarray) and items.dtype != object)
    rows = items if is_array else _stack(items, kernel)
    if not is_real(rows):
        advice = (
            " Split complex numbers into real and imaginary columns." if "complex" in str(rows.dtype) else ""
        )
        raise InputError(f"samples has dtype {rows.dtype}; {kernel} expected real numbers.{advice}")
    if rows.ndim == 1 and scalars:
        rows = rows[:, None]
    if rows.ndim != 2:
        hint = "use samples.reshape(len(samples), -1)"
        if isinstance(samples, list | tuple):
            hint = "join a list of arrays first, with numpy.concatenate or torch.cat, or pass the one with the samples"
        if rows.ndim < 2:
            hint = "for plain numbers use kernel=vendimeter.kernels.RBF(σ) or Laplacian(scale)"
            hint = (
                hint if _names_kernel(kernel) else "pass samples[:, None] if each is a vector of one number"
            )
        raise InputError(
            f"samples has shape {shape_of(rows.shape)}; {kernel} expected one vector a row: {hint}.",
            option="kernel" if rows.ndim < 2 and _names_kernel(kernel) else None,
        )
    if rows.shape[1] == 0:
        raise InputError(
            f"samples has {rows.shape[0]} rows of no columns; {kernel} expected at least one column."
        )
    return rows


def _names_kernel(name: str) -> bool:
    """Whether the name in a message is that of a kernel, in whose place another can be taken, and not of a metric."""
    return name.endswith("kernel") or name.startswith(
        ("a kernel", "a function", "the function", "the encoder")
    )


def _strings_error(kernel: str) -> InputError:
    if not _names_kernel(kernel):
        return InputError(
            f"the items are strings, and {kernel} compares vectors; expected rows of numbers, such as an encoder of "
            "vendimeter.encoders gives."
        )
    return InputError(
        f"the items are strings, and {kernel} compares vectors. For text use kernel='ngram' "
        "(vendimeter.kernels.NGram), kernel='match', kernel=Embed(encoder) with your encoder, or a "
        "function k(a, b).",
        option="kernel",
    )


def _stack(items: Any, kernel: str) -> Any:
    """A list of numbers or vectors as an array, or an error that names the odd one out."""
    items = unwrapped(items)
    if is_foreign(items):
        return items
    # A column of pandas holds arrays or lists as objects; as a list they become one array in one go.
    is_object_column = isinstance(items, np.ndarray) and items.ndim == 1
    try:
        rows = np.asarray(items.tolist() if is_object_column else items)
        if rows.dtype.kind in "buif" if is_object_column else rows.dtype != object:
            return rows
    except ValueError:
        pass
    if isinstance(items, np.ndarray) and items.ndim > 1:
        items = list(items)
    first_shape = None
    for i, item in enumerate(items):
        if is_missing(item):
            raise InputError(
                f"item {i} is missing ({brief(item)}); {kernel} expected numbers. Fill or drop it.", item=i
            )
        if isinstance(item, str | bytes):
            raise _strings_error(kernel)
        try:
            vector = np.asarray(item)
        except ValueError:
            vector = np.array(None)
        if vector.dtype == object and vector.ndim == 1:  # numbers in an object array, or a gap among them
            gap = next((value for value in item if is_missing(value)), vector)
            if gap is not vector:
                raise InputError(
                    f"item {i} holds {brief(gap)}; {kernel} expected numbers. Fill it, or drop the item.",
                    item=i,
                )
            vector = _as_numbers(vector)
        if vector.dtype.kind not in "buif":
            raise InputError(
                f"item {i} is a {type(item).__name__}; {kernel} expected vectors of numbers."
                + (
                    " For other items pass a kernel made for them, or a function k(a, b)."
                    if _names_kernel(kernel)
                    else ""
                ),
                item=i,
            )
        first_shape = vector.shape if first_shape is None else first_shape
        if vector.shape != first_shape:
            raise InputError(
                f"item {i} has shape {shape_of(vector.shape)} and item 0 has shape {shape_of(first_shape)}; "
                f"{kernel} expected vectors of one length."
                + (
                    " Of a batch with labels pass the samples alone, batch[0]."
                    if len(first_shape) > 1
                    else ""
                ),
                item=i,
            )
    return np.asarray([_as_numbers(np.asarray(item)) for item in items])


def _as_numbers(vector: np.ndarray) -> np.ndarray:
    """An object array of plain numbers as an array of numbers."""
    if vector.dtype != object:
        return vector
    try:
        return np.asarray(vector.tolist())
    except ValueError:
        return vector


def _check_sparse(rows: Any, kernel: str, dense: bool) -> Any:
    if dense:
        raise InputError(f"samples is sparse and {kernel} needs dense vectors; pass samples.toarray().")
    if len(rows.shape) != 2:
        raise InputError(f"samples has shape {shape_of(rows.shape)}; {kernel} expected one vector a row.")
    if rows.dtype.kind not in "buif":
        raise InputError(f"samples has dtype {rows.dtype}; {kernel} expected real numbers.")
    return rows


def csr(matrix: Any) -> Any:
    """A sparse array of any format as CSR without duplicate entries; the user's own is left as it is."""
    from scipy import sparse

    if len(matrix.shape) != 2:
        return matrix
    rows = sparse.csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()  # summing duplicates in place would change the user's own matrix
        rows.sum_duplicates()
    return rows
