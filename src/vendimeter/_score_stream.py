"""The front door for what does not fit into memory: score_stream."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vendimeter._arrays import blocks, csr, is_sparse, is_table
from vendimeter._devices import DEVICE_BYTES, is_foreign, local
from vendimeter._messages import brief, shape_of
from vendimeter.accumulate import Accumulator
from vendimeter.errors import InputError

__all__ = ["score_stream"]

BATCH_BYTES = 64 << 20  # of a file or array that are read at a time


def score_stream(
    source: Any, kernel: Any = "cosine", *, q: Any = 1, precision: str = "float64", rng: int = 0
) -> Any:
    """The score of more items than fit into memory, in one pass over them.

    Parameters
    ----------
    source : path, array, list of these, or iterable of batches
        A .npy file (it is read in pieces, never whole), an array (a memory-mapped one, say), a list of such shards; or
        anything that gives batches one after another, such as a generator or a data loader, each of them
        what the kernel takes.
    kernel : str or Kernel
        One that can be accumulated; see `Accumulator`.
    q : float, str or list of them
        The order or orders.
    precision, rng
        As for `Accumulator`, which also takes weights, can be saved half-way, and merges.

    Returns
    -------
    Score or Profile

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> rng = np.random.default_rng(0)
    >>> round(vm.score_stream(rng.standard_normal((500, 8)) for _ in range(20)), 2)
    8.0
    """
    total = Accumulator(kernel, precision=precision, rng=rng)
    for batch in batches(source):
        total.update(batch)
    return total.score(q)


def batches(source: Any) -> Iterator[Any]:
    """Batches of a file, an array, a list of them, or of anything that gives batches."""
    source = local(source)
    if isinstance(source, str | os.PathLike):
        yield from _file(Path(source))
    elif isinstance(source, np.ndarray) or is_foreign(source) or is_sparse(source):
        yield from _array(source)
    elif isinstance(source, list | tuple):
        for i, shard in enumerate(source):
            shard = local(shard)
            one = isinstance(shard, np.ndarray) or is_foreign(shard) or is_sparse(shard)
            if not one and not isinstance(shard, str | os.PathLike):
                raise InputError(
                    f"shard {i} is {brief(shard)}; expected the path of a .npy file, or an array of shape (n, d). To "
                    "score a list of items use vendimeter.score."
                )
            yield from batches(shard)
    elif (
        isinstance(source, Iterable)
        and not isinstance(source, Mapping | set | frozenset)
        and not is_table(source)
    ):
        yield from source
    else:
        raise InputError(
            f"source is {brief(source)}; expected the path of a .npy file, an array, a list of these, or an iterable "
            "of batches."
        )


def _file(path: Path) -> Iterator[np.ndarray]:
    try:
        whole = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(
            f"there is no file {str(path)!r}; expected the path of a .npy file. Check its name and folder."
        ) from None
    except PermissionError:
        raise InputError(f"{str(path)!r} may not be read; expected a file with leave to do so.") from None
    except (ValueError, OSError, EOFError):
        whole = None
    if isinstance(whole, np.lib.npyio.NpzFile):
        whole.close()
    if not isinstance(whole, np.ndarray):
        raise InputError(
            f"{str(path)!r} is not a .npy file of numbers; expected one written by np.save. Read other files piece "
            "by piece and pass an iterator of batches."
        )
    if whole.ndim != 2 or not whole.flags.c_contiguous or not isinstance(whole, np.memmap) or not whole.size:
        yield from _array(whole)
        return
    # A map of its own for every piece: pages of the one before are given back, so that memory does not fill up.
    row = whole.shape[1] * whole.dtype.itemsize
    for part in blocks(whole.shape[0], whole.shape[1], whole.dtype.itemsize, most=BATCH_BYTES):
        shape = (part.stop - part.start, whole.shape[1])
        yield np.memmap(path, whole.dtype, "r", offset=whole.offset + part.start * row, shape=shape)


def _array(rows: Any) -> Iterator[Any]:
    if len(rows.shape) != 2:
        raise InputError(
            f"an array of shape {shape_of(rows.shape)} was given; expected one vector a row, of shape (n, d)."
        )
    if is_sparse(rows):
        rows = csr(rows)
        width = 1 + 2 * rows.nnz // max(1, rows.shape[0])  # a position and a value an entry
    else:
        width = int(rows.shape[1])
    most = DEVICE_BYTES if is_foreign(rows) else BATCH_BYTES
    for part in blocks(int(rows.shape[0]), width, most=most):
        yield rows[part] if is_sparse(rows) else rows[part, ...]
