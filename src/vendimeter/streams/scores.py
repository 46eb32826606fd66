"""`score_stream`: the score of data that do not fit into memory, in one pass over their batches."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Number
from typing import Any

import numpy as np

from vendimeter.data.arrays import blocks, csr, is_sparse, is_table
from vendimeter.data.collection import Broken, Collection
from vendimeter.data.devices import DEVICE_BYTES, is_foreign, local
from vendimeter.errors import EmptyError, InputError
from vendimeter.io.reading import read_batches
from vendimeter.messages import brief, shape_of
from vendimeter.streams.accumulator import Accumulator

__all__ = ["score_stream"]

BATCH_BYTES = 64 << 20  # of an array that are worked on at a time


def score_stream(
    source: Any,
    kernel: Any = "cosine",
    *,
    q: Any = 1,
    precision: str = "float64",
    rng: int = 0,
    **reading: Any,
) -> Any:
    """The score of more items than fit into memory, in one pass over them.

    Parameters
    ----------
    source : path, array, list of these, or iterable of batches
        A file, a folder or a pattern such as ``"shards/*.parquet"`` (read in pieces, never whole; see
        `vendimeter.read`), an array (a memory-mapped one, say), a list of such shards; or anything that gives batches
        one after another, such as a generator: each is what the kernel takes, or a path. A PyTorch data loader must
        give samples alone; where it gives labels too, pass ``(batch[0] for batch in loader)``.
    kernel : str or Kernel
        One that can be accumulated; see `Accumulator`.
    q : float, str or list of them
        The order or orders.
    precision, rng
        As for `Accumulator`, which also takes weights, can be saved half-way, and merges.
    **reading
        How files are read, as for `vendimeter.read_batches`: ``samples="embedding"`` names the column, and so on.

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
    if reading.get("label") is not None:
        raise InputError(
            "label= was given, and a stream gives one score of all; expected none. For a score a label give the "
            "batches of vendimeter.read_batches to a GroupAccumulator."
        )
    total = Accumulator(kernel, precision=precision, rng=rng)
    left_out: dict[int, Broken] = {}  # of each source of its own
    for place, batch in pieces(source, reading):
        with in_place(place, batch):
            total.update(batch)
        if isinstance(batch, Collection):
            left_out[id(batch.skipped)] = batch.skipped
    if not total.updates:
        raise EmptyError(
            "the source gave no batch, and the diversity of nothing is undefined; expected at least one. An iterator "
            "can be read only once: make a new one."
        )
    count = sum(broken.count for broken in left_out.values())
    return total.score(q).noted(left_out=count) if count else total.score(q)


def pieces(source: Any, reading: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Batches of a file, an array, a list of them, or of anything that gives batches, each with its place."""
    source = local(source)
    is_list = isinstance(source, list | tuple) and len(source) > 0
    # A limit holds for all files together; without one each is read for itself, of whatever form it is.
    all_paths = is_list and "limit" in reading and all(isinstance(path, str | os.PathLike) for path in source)
    if isinstance(source, str | os.PathLike) or all_paths:
        yield from _file_batches(source, reading, alone=True)
        return
    if reading and (isinstance(source, Collection) or not _gives_batches(source) or _is_array(source)):
        raise InputError(
            f"{', '.join(f'{name}=' for name in reading)} says how files are read, and the source is no file; expected "
            "a path, or leave it away."
        )
    if isinstance(source, Collection):
        yield "", source
    elif _is_array(source):
        yield from _array_batches(source, "")
    elif isinstance(source, list | tuple):
        for i, shard in enumerate(source):
            shard = local(shard)
            if _is_array(shard):
                yield from _array_batches(shard, f"shard {i}")
            elif isinstance(shard, str | os.PathLike):
                yield from _file_batches(shard, reading)
            elif isinstance(shard, Collection):
                yield f"shard {i}", shard
            elif isinstance(shard, list | tuple) and not (shard and isinstance(shard[0], Number)):
                yield f"batch {i}", _samples_of_batch(shard, i, False)
            else:
                raise InputError(
                    f"shard {i} is {brief(shard)}; expected the path of a file, an array of shape (n, d), or a "
                    "list of items. To score a list of items use vendimeter.score."
                )
    elif _gives_batches(source):
        loader = _is_loader(source)
        for i, batch in enumerate(source):
            if isinstance(batch, os.PathLike):
                yield from _file_batches(batch, reading)
            else:
                yield f"batch {i}", _samples_of_batch(batch, i, loader)
    else:
        raise InputError(
            f"source is {brief(source)}; expected the path of a file, an array, a list of these, or an iterable "
            "of batches."
        )


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or is_foreign(value) or is_sparse(value)


def _gives_batches(source: Any) -> bool:
    return (
        isinstance(source, Iterable)
        and not isinstance(source, Mapping | set | frozenset)
        and not is_table(source)
    )


def _is_loader(source: Any) -> bool:
    """Whether this is a data loader of PyTorch, which wraps every batch in a list."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(source, data.DataLoader)


def _samples_of_batch(batch: Any, i: int, loader: bool) -> Any:
    """The samples of a batch; a data loader gives lists of the samples and what goes with them."""
    first_entry = batch[0] if isinstance(batch, list | tuple) and batch else None
    if first_entry is None or not _is_array(first_entry) or not (loader or len(first_entry.shape) > 1):
        return batch
    if len(batch) == 1:
        return batch[0]
    raise InputError(
        f"batch {i} is a list of {len(batch)} arrays, as a data loader gives samples with their labels; expected the "
        "samples alone. Pass (batch[0] for batch in loader), or labels and all to a GroupAccumulator."
    )


@contextmanager
def in_place(place: str, batch: Any) -> Iterator[None]:
    """Say of errors which batch they are about, unless they have a place in a file already."""
    try:
        yield
    except InputError as error:
        if place and error.place is None:
            error.at(collection=place)
            if _is_array(batch) and len(batch.shape) == 1:
                error.add_note(
                    "If the batches are single rows, pass the array itself, or several rows at a time."
                )
        raise


def _file_batches(path: Any, reading: Mapping[str, Any], *, alone: bool = False) -> Iterator[tuple[str, Any]]:
    """Batches of a file or folder, or of those that match a pattern; an empty one among others is fine."""
    try:
        for batch in read_batches(path, **reading):
            yield f"from {batch.place(0)}", batch
    except EmptyError:
        if alone:
            raise


def _array_batches(rows: Any, name: str) -> Iterator[tuple[str, Any]]:
    if len(rows.shape) != 2:
        raise InputError(
            f"an array of shape {shape_of(rows.shape)} was given; expected one vector a row, of shape (n, d)."
        )
    if is_sparse(rows):
        rows = csr(rows)
        width = 1 + 2 * rows.nnz // max(1, rows.shape[0])  # a position and a value an entry
    else:
        width = int(rows.shape[1])
    block_bytes = DEVICE_BYTES if is_foreign(rows) else BATCH_BYTES
    for block in blocks(int(rows.shape[0]), width, most=block_bytes):
        place = f"{name or 'the array'}, rows from {block.start}" if block.start else name
        yield place, rows[block] if is_sparse(rows) else rows[block, ...]
