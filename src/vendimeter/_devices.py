"""Arrays of other libraries, where they live: PyTorch, CuPy, JAX, and anything that follows the array API standard.

Arrays of PyTorch and JAX in main memory are read there as NumPy arrays, without a copy. All others are computed with by
their own library, on their device, in float64; only eigenvalues and scores come to the host. No library is imported
here to find out what an object is: who has an array has imported its library already.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from vendimeter.errors import InputError

__all__ = [
    "DEVICE_BYTES",
    "as_like",
    "concat",
    "diagonal",
    "double",
    "is_foreign",
    "is_gpu",
    "is_real",
    "is_single",
    "is_torch",
    "local",
    "move",
    "namespace",
    "numpy_dtype",
    "row_norms",
    "select",
    "to_host",
    "transposed",
    "wide_mode",
]  # fmt: skip

DEVICE_BYTES = 512 << 20  # of float64 rows that are worked on at a time: a GPU wants large blocks
SHARE_HOST = (
    True  # read arrays in main memory as NumPy's; the tests switch it off, and all is done by the library
)


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def is_foreign(value: Any) -> bool:
    """Whether this is a dense array of another library than NumPy."""
    if isinstance(value, np.ndarray | np.generic | list | tuple | str | dict):
        return False
    library = _library(value)
    if library in ("torch", "cupy"):  # these two follow the standard without saying so
        return isinstance(
            value, sys.modules[library].Tensor if library == "torch" else sys.modules[library].ndarray
        )
    return hasattr(type(value), "__array_namespace__") and hasattr(value, "shape")


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
    if value.layout != torch.strided:
        raise InputError(
            f"the tensor has the layout {value.layout}, which is not supported; expected a dense tensor: pass "
            "samples.to_dense(), or a SciPy sparse array."
        )
    if value.device.type == "meta":
        raise InputError("the tensor lies on the device 'meta' and holds no data; expected one with data.")
    value = value.detach()
    if value.device.type != "cpu" or not SHARE_HOST:
        return value
    if value.dtype.is_floating_point and value.dtype not in (torch.float16, torch.float32, torch.float64):
        value = value.to(torch.float32)  # NumPy has no bfloat16; float32 holds all its values
    return value.resolve_conj().resolve_neg().numpy()


def _local_jax(value: Any) -> Any:
    jax = sys.modules["jax"]
    if isinstance(value, jax.core.Tracer):
        raise InputError(
            "samples is a JAX tracer, which stands for an array inside jit, grad or vmap and holds no numbers; "
            "expected an array: score it outside, or through jax.pure_callback."
        )
    if not SHARE_HOST or any(device.platform != "cpu" for device in value.devices()):
        return value
    host = np.asarray(value)
    return host if host.dtype.kind in "biufc" else host.astype(np.float32)  # bfloat16 and smaller


@contextmanager
def wide_mode(precision: str) -> Iterator[None]:
    """JAX's 64-bit mode, for as long as this lasts, where precision="float64" asks for it in so many words."""
    jax = sys.modules.get("jax")
    if precision != "float64" or jax is None or jax.config.jax_enable_x64:
        yield
        return
    with jax.enable_x64(True):
        yield


# ------------------------------------------------------------------------------------------- what the standard lacks


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
    name = str(array.dtype).rpartition(".")[2]
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(np.float16)


def to_host(array: Any) -> np.ndarray:
    """The array in main memory, as NumPy's."""
    if isinstance(array, np.ndarray):
        return array
    if is_torch(array):
        torch = sys.modules["torch"]
        array = array.detach()
        if array.dtype.is_floating_point and array.dtype not in (torch.float16, torch.float32, torch.float64):
            array = array.to(torch.float32)
        return array.cpu().resolve_conj().resolve_neg().numpy()
    if _library(array) == "cupy":
        return array.get()
    return np.asarray(array) if hasattr(array, "__array__") else np.from_dlpack(array)


def move(host: Any, like: Any) -> Any:
    """A NumPy array on the device of another; that of NumPy and SciPy is main memory."""
    if not is_foreign(like):
        return host
    from array_api_compat import device

    return namespace(like).asarray(host, device=device(like))


def as_like(array: Any, like: Any) -> Any:
    """An array of any library in the library and on the device of `like` (None for the host)."""
    if like is None:
        return to_host(array)
    same = is_foreign(array) and namespace(array) is namespace(like) and _device(array) == _device(like)
    return array if same else move(to_host(array), like)


def _device(array: Any) -> Any:
    from array_api_compat import device

    return device(array)


def is_single(array: Any) -> bool:
    """Whether the array is float32 and its library divides it by float64 in one pass, as CuPy does."""
    return _library(array) == "cupy" and array.dtype == np.float32


def _narrow(array: Any) -> bool:
    return _is_jax(array) and not sys.modules["jax"].config.jax_enable_x64


def double(array: Any, *, copy: bool = True) -> Any:
    """The array in float64; a copy, which the caller may overwrite, unless that is waived."""
    if isinstance(array, np.ndarray):
        return np.array(array, dtype=np.float64, order="C")
    xp = namespace(array)
    if _narrow(array):
        raise InputError(
            "JAX is in its 32-bit mode and a score needs float64; expected jax.config.update('jax_enable_x64', True) "
            "at the start of the program. Or pass precision='float64' to switch it on for this call alone, or "
            "numpy.asarray(samples) to compute on the host."
        )
    try:
        return xp.astype(array, xp.float64, copy=copy)
    except (TypeError, RuntimeError, AttributeError) as error:
        raise InputError(
            f"the device {_device(array)} has no float64, which a score needs ({error}); move the samples to main "
            "memory first, for PyTorch with samples.cpu()."
        ) from error


def select(array: Any, index: slice | np.ndarray) -> Any:
    """Rows by position."""
    if isinstance(array, np.ndarray):
        return array[index]
    if isinstance(index, slice):
        return array[index, ...]
    return namespace(array).take(array, move(index, array), axis=0)


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


def gram_product(rows: Any) -> Any:
    """RᵀR of the rows R."""
    return _jax_jitted("product")(rows) if _is_jax(rows) else transposed(rows) @ rows


@functools.cache
def _jax_jitted(name: str) -> Any:
    """Compiled, JAX makes one pass over the rows where it would make several."""
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
