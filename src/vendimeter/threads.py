"""Two Python threads with one BLAS thread each beat one Python thread with two BLAS threads.

A pass over the data alternates between BLAS (which could use all cores) and element-wise work (which uses one). With a
Python thread a core, each with single-threaded BLAS, all of it runs on all cores. The switch for that lies in NumPy's
OpenBLAS and is reached through ctypes; where there is none (another BLAS), one Python thread is used and BLAS keeps its
own threads.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import numpy as np

_lock = threading.Lock()


@cache
def _switch() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """(get, set) for the number of threads of NumPy's OpenBLAS, or None."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return None
    # The symbols are found through the extension module, which is linked to its own copy of OpenBLAS.
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", "_64", ""):
            try:
                get = getattr(library, f"{prefix}_get_num_threads{suffix}")
                put = getattr(library, f"{prefix}_set_num_threads{suffix}")
            except AttributeError:
                continue
            get.restype, get.argtypes = ctypes.c_int, []
            put.restype, put.argtypes = None, [ctypes.c_int]
            return get, put
    return None


_saved = 0  # the number of BLAS threads to restore, while it is set to 1


@contextmanager
def workers(most: int) -> Iterator[int]:
    """How many Python threads to use, `most` at most; if more than one, BLAS has a single thread meanwhile.

    The number is the one BLAS was allowed, so that OMP_NUM_THREADS and threadpoolctl are respected. The switch is
    process-wide: only one such context is open at a time, and a second one gets a single worker and leaves BLAS alone.
    """
    global _saved
    switch = _switch()
    if switch is None or most <= 1 or not _lock.acquire(blocking=False):
        yield 1
        return
    get, put = switch
    try:
        _saved = get()
        count = max(1, min(_saved, most))
        if count > 1:
            put(1)
        yield count
    finally:
        if get() == 1:  # unless someone else has set it meanwhile
            put(_saved)
        _saved = 0
        _lock.release()


def _after_fork() -> None:
    """A child of a fork in the middle of a pass has no worker threads: it gets its BLAS threads and a new lock."""
    global _lock, _saved
    _lock = threading.Lock()
    switch = _switch()
    if switch is not None and _saved:
        switch[1](_saved)
    _saved = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run(tasks: list[Callable[[], None]]) -> None:
    """Run the tasks side by side, the first in this thread; the first error is raised when all have ended."""
    with ThreadPoolExecutor(max(len(tasks) - 1, 1)) as pool:
        others = [pool.submit(task) for task in tasks[1:]]
        tasks[0]()
        for other in others:
            other.result()
