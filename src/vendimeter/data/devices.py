"""Arrays of other libraries, where they live: PyTorch, CuPy, JAX, and anything that follows the array API standard.

Arrays of PyTorch and JAX in main memory are read there as NumPy arrays, without a copy. All others are computed with by
their own library, on their device, in float64; only eigenvalues and scores come to the host. No library is imported
here to find out what an object is: who has an array has imported its library already.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from vendimeter.errors import InputError

__all__ = [
    "DEVICE_BYTES",
    "as_like",
    "concat",
    "device_of",
    "diagonal",
    "double",
    "evened",
    "gram_product",
    "identity",
    "is_foreign",
    "is_gpu",
    "is_real",
    "is_single",
    "is_torch",
    "largest",
    "local",
    "move",
    "namespace",
    "no_gradients",
    "numpy_dtype",
    "positions",
    "raising",
    "row_norms",
    "select",
    "to_host",
    "transposed",
    "wide_mode",
]

DEVICE_BYTES = 512 << 20  # of float64 rows that are worked on at a time: a GPU wants large blocks
SHARE_HOST = True  # read arrays in main memory as NumPy's; the tests switch it off: all by the library itself


def _library(value: Any) -> str:
    """The library of an array, or of whatever this is; subclasses of tensors are tensors."""
    for name, kind in (("torch", "Tensor"), ("cupy", "ndarray")):
        module = sys.modules.get(name)
        if module is not None and isinstance(value, getattr(module, kind, ())):
            return name
    return type(value).__module__.partition(".")[0]


def is_foreign(value: Any) -> bool:
    """Whether this is a dense array of another library than NumPy."""
    if isinstance(value, np.ndarray | np.generic | list | tuple | str | dict):
        return False
    if hasattr(type(value), "__array_namespace__") and hasattr(value, "shape"):
        return True
    library = _library(value)  # two of them follow the standard without saying so
    return hasattr(value, "shape") and library in ("torch", "cupy") and hasattr(value, "dtype")


def is_torch(value: Any) -> bool:
    """Whether this is a tensor of PyTorch."""
    return _library(value) == "torch"


def _is_jax(value: Any) -> bool:
    return _library(value) in ("jax", "jaxlib")


def local(value: Any) -> Any:
    """The array to compute with: NumPy's view of one in main memory, or the array itself, cut off from any gradient.

    What is not an array of another library is returned as it is.
    """
    library = _library(value)
    if library == "cupyx" and hasattr(value, "get") and hasattr(value, "tocsr"):
        raise InputError(
            f"the {type(value).__name__} is a sparse array on a GPU, which is not supported; expected a dense one, or "
            "a SciPy sparse array: pass samples.get()."
        )
    if not is_foreign(value):
        return value
    if library == "sparse":
        raise InputError(
            "samples is an array of the library sparse; expected SciPy's format: pass samples.tocsr()."
        )
    if is_torch(value):
        return _local_torch(value)
    return _local_jax(value) if _is_jax(value) else value


def _local_torch(value: Any) -> Any:
    torch = sys.modules["torch"]
    if value.layout != torch.strided or value.is_nested or value.is_quantized:
        description = f"of layout {value.layout}"
        if value.is_nested or value.is_quantized:
            description = "nested" if value.is_nested else "quantized"
        raise InputError(
            f"the tensor is {description}, which is not supported; expected a dense one of plain numbers: pass "
            "samples.to_dense(), samples.dequantize(), or a SciPy sparse array."
        )
    if value.device.type == "meta":
        raise InputError("the tensor lies on the device 'meta' and holds no data; expected one with data.")
    value = value.detach()
    if value.device.type != "cpu" or not SHARE_HOST or _is_short(value):
        return value
    return value.resolve_conj().resolve_neg().numpy()


def _is_short(tensor: Any) -> bool:
    """Whether the tensor is of bfloat16 or shorter, which NumPy does not have: PyTorch upcasts it block by block."""
    torch = sys.modules["torch"]
    return tensor.dtype.is_floating_point and tensor.dtype not in (
        torch.float16,
        torch.float32,
        torch.float64,
    )


def _local_jax(value: Any) -> Any:
    jax = sys.modules["jax"]
    if isinstance(value, jax.core.Tracer):
        raise InputError(
            "samples is a JAX tracer, which stands for an array inside jit, grad or vmap and holds no numbers; "
            "expected an array: score it outside, or through jax.pure_callback."
        )
    if not SHARE_HOST or any(device.platform != "cpu" for device in value.devices()):
        return value
    return _as_known_dtype(np.asarray(value))


def _as_known_dtype(host: np.ndarray) -> np.ndarray:
    """An array that NumPy can compute with: bfloat16 and shorter become float32, which holds all their values."""
    return host if host.dtype.kind in "biufc" else host.astype(np.float32)


@contextmanager
def wide_mode(precision: str, *arrays: Any) -> Iterator[None]:
    """JAX's 64-bit mode, for as long as this lasts, where precision="float64" asks for it for arrays of JAX."""
    jax = sys.modules.get("jax")
    if precision != "float64" or jax is None or jax.config.jax_enable_x64 or not any(map(_holds_jax, arrays)):
        yield
        return
    is_experimental = not hasattr(jax, "enable_x64")
    with jax.experimental.enable_x64(True) if is_experimental else jax.enable_x64(True):
        yield


def _holds_jax(value: Any) -> bool:
    """Whether this is an array of JAX, or a list or table with one."""
    if isinstance(value, Mapping):
        return any(map(_is_jax, value.values()))
    return _is_jax(value[0] if isinstance(value, list | tuple) and value else value)


# ------------------------------------------------------------- operations that the array API standard lacks


def namespace(array: Any) -> Any:
    """The functions for this array: NumPy itself, or those of its library by the names of the standard."""
    if isinstance(array, np.ndarray):
        return np
    from array_api_compat import array_namespace

    return array_namespace(array)


def is_gpu(array: Any) -> bool:
    """Whether many small operations are slow on the array's device and few large ones fast."""
    if is_torch(array):
        return array.device.type != "cpu"
    if _is_jax(array):
        return any(device.platform != "cpu" for device in array.devices())
    return _library(array) == "cupy"


def is_real(array: Any) -> bool:
    """Whether the array, dense or sparse, holds real numbers or truth values."""
    if not is_foreign(array):
        return array.dtype.kind in "buif"
    return bool(namespace(array).isdtype(array.dtype, ("bool", "integral", "real floating")))


def numpy_dtype(array: Any) -> np.dtype:
    """The dtype in NumPy's terms; what NumPy does not know is at most as precise as float16."""
    dtype = array.dtype
    if not isinstance(dtype, np.dtype):
        try:
            dtype = np.dtype(str(dtype).rpartition(".")[2])
        except TypeError:
            return np.dtype(np.float16)
    is_extension = dtype.kind == "V"  # bfloat16, where a library has taught it to NumPy
    return np.dtype(np.float16) if is_extension else dtype


def to_host(array: Any) -> np.ndarray:
    """The array in main memory, as NumPy's."""
    if isinstance(array, np.ndarray):
        return array
    if is_torch(array):
        array = array.detach()
        array = array.to(sys.modules["torch"].float32) if _is_short(array) else array
        return array.cpu().resolve_conj().resolve_neg().numpy()
    if _library(array) == "cupy":
        return array.get()
    return _as_known_dtype(np.asarray(array) if hasattr(array, "__array__") else np.from_dlpack(array))


def move(host: Any, like: Any) -> Any:
    """A NumPy array on the device of another; that of NumPy and SciPy is main memory."""
    if not is_foreign(like):
        return host
    if isinstance(host, np.ndarray) and not (host.flags.c_contiguous and host.flags.writeable):
        host = host.copy()
    if _is_jax(like):  # follows what it is combined with, which may lie on several devices
        return namespace(like).asarray(host)
    return namespace(like).asarray(host, device=device_of(like))


def identity(size: int, like: Any) -> Any:
    """The identity matrix in float64 on the device of an array."""
    xp = namespace(like)
    return (
        xp.eye(size, dtype=xp.float64)
        if _is_jax(like)
        else xp.eye(size, dtype=xp.float64, device=device_of(like))
    )


def as_like(array: Any, like: Any) -> Any:
    """An array of any library in the library and on the device of `like` (None for the host)."""
    if like is None:
        return to_host(array)
    is_there = (
        is_foreign(array) and namespace(array) is namespace(like) and device_of(array) == device_of(like)
    )
    return array if is_there else move(to_host(array), like)


def device_of(array: Any) -> Any:
    """The device of an array."""
    from array_api_compat import device

    return device(array)


def is_single(array: Any) -> bool:
    """Whether the array is float32 and its library divides it by float64 in one pass, as CuPy does."""
    return _library(array) == "cupy" and array.dtype == np.float32


def _is_narrow_jax(array: Any) -> bool:
    """Whether this is an array of JAX in its 32-bit mode."""
    return _is_jax(array) and not sys.modules["jax"].config.jax_enable_x64


def double(array: Any, *, copy: bool = True) -> Any:
    """The array in float64; a copy, which the caller may overwrite, unless that is waived."""
    if isinstance(array, np.ndarray):
        return np.array(array, dtype=np.float64, order="C")
    xp = namespace(array)
    if _is_narrow_jax(array):
        raise InputError(
            "JAX is in its 32-bit mode and a score needs float64; expected jax.config.update('jax_enable_x64', True) "
            "at the start of the program. Or pass precision='float64' to switch it on for this call alone, or "
            "numpy.asarray(samples) to compute on the host."
        )
    try:
        return xp.astype(array, xp.float64, copy=copy)
    except (TypeError, AttributeError) as error:
        raise InputError(
            f"the device {device_of(array)} has no float64, which a score needs ({error}); move the samples to main "
            "memory first, for PyTorch with samples.cpu()."
        ) from error


def select(array: Any, index: slice | np.ndarray) -> Any:
    """Rows by position; a stack of rows for a stack of positions."""
    if isinstance(array, np.ndarray):
        return array[index]
    if isinstance(index, slice):
        return array[index, ...]
    xp = namespace(array)
    rows = xp.take(array, move(index.ravel(), array), axis=0)
    return rows if index.ndim == 1 else xp.reshape(rows, (*index.shape, *array.shape[1:]))


def row_norms(rows: Any) -> Any:
    """Euclidean norms of float64 rows (in CuPy, of float32 ones too), as a column, in one pass over them."""
    if _library(rows) == "cupy":
        return _cupy_norms()(rows, axis=1, keepdims=True)
    if _is_jax(rows):
        return _jax_jitted("norms")(rows)
    return namespace(rows).linalg.vector_norm(rows, axis=1, keepdims=True)


@functools.cache
def _cupy_norms() -> Any:
    kernel = sys.modules["cupy"].ReductionKernel
    return kernel("T x", "float64 y", "(double)x * (double)x", "a + b", "y = sqrt(a)", "0", "row_norms")


def positions(mask: Any) -> np.ndarray:
    """Where a mask is true, row after row, as positions on the host."""
    if isinstance(mask, np.ndarray) or _is_jax(mask):  # JAX would compile it anew for every number of them
        return np.flatnonzero(to_host(mask))
    xp = namespace(mask)
    return to_host(xp.nonzero(xp.reshape(mask, (-1,)))[0])


def evened(index: np.ndarray, like: Any) -> np.ndarray:
    """Positions; for JAX, which compiles anew for every number of them, the last one repeated up to a power of two."""
    size = len(index)
    padding = (1 << (size - 1).bit_length()) - size if size and _is_jax(like) else 0
    return np.concatenate([index, np.repeat(index[-1:], padding)]) if padding else index


def largest(array: Any, count: int) -> Any:
    """The `count` largest numbers of each row of a matrix, in no order; the standard can only sort."""
    if isinstance(array, np.ndarray):
        # A transposed matrix is ten times as fast once its rows are together.
        ordered = np.array(array, order="C")
        ordered.partition(array.shape[1] - count, axis=1)
        return ordered[:, array.shape[1] - count :]
    if is_torch(array):
        return array.topk(count, dim=1, sorted=False).values
    if _is_jax(array):
        return sys.modules["jax"].lax.top_k(array, count)[0]
    xp = namespace(array)
    ordered = xp.partition(array, -count, axis=1) if _library(array) == "cupy" else xp.sort(array, axis=1)
    return ordered[:, array.shape[1] - count :]


def no_gradients() -> AbstractContextManager[Any]:
    """PyTorch without gradients, where it is there at all."""
    torch = sys.modules.get("torch")
    return nullcontext() if torch is None else torch.no_grad()


@contextmanager
def raising(array: Any) -> Iterator[None]:
    """Let a factorisation that fails raise in CuPy too, which says so only if it is asked to."""
    if _library(array) != "cupy":
        yield
        return
    with importlib.import_module("cupyx").errstate(linalg="raise"):  # a part of CuPy
        yield


def gram_product(rows: Any) -> Any:
    """RᵀR of the rows R."""
    return _jax_jitted("product")(rows) if _is_jax(rows) else transposed(rows) @ rows


@functools.cache
def _jax_jitted(name: str) -> Any:
    """A compiled function of rows: JAX then makes one pass over them where it would make several."""
    jax = sys.modules["jax"]
    xp = jax.numpy
    functions = {
        "norms": lambda rows: xp.sqrt(xp.sum(rows * rows, axis=1, keepdims=True)),
        "product": lambda rows: rows.T @ rows,
    }
    return jax.jit(functions[name])


def transposed(array: Any) -> Any:
    """The last two axes swapped."""
    return (
        array.swapaxes(-1, -2) if isinstance(array, np.ndarray) else namespace(array).matrix_transpose(array)
    )


def diagonal(array: Any) -> np.ndarray:
    """The diagonal on the host, in float64."""
    if isinstance(array, np.ndarray):
        return np.array(np.diagonal(array), dtype=np.float64)
    return to_host(namespace(array).linalg.diagonal(array)).astype(np.float64)


def concat(parts: list[Any], axis: int = 0) -> Any:
    """Arrays of one library joined along an axis."""
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=axis)
