"""What the command reads: files → samples of a kind, with the kernel for it, all at once or in batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter._messages import printable
from vendimeter.errors import InputError
from vendimeter.io.collection import Collection
from vendimeter.io.kinds import KINDS
from vendimeter.io.reading import read_batches
from vendimeter.kernels import Kernel, Pixels, as_kernel

__all__ = ["Input", "opened"]

AT_ONCE = 65_536  # samples that are taken into memory; of more, those of kernels that allow it are streamed
SMALL_SIDE = 32  # pictures up to this size are compared as they are
MOLECULES = ("morgan", "rdkit", "maccs")


@dataclass
class Input:
    """What the files hold: batches of samples, the kernel for them, and both in words."""

    batches: Iterator[Collection]
    kernel: str | Kernel
    about: str

    def head(self) -> tuple[Collection, bool]:
        """The first samples, and whether there are more; they come again among the batches."""
        first = next(self.batches)
        second = next(self.batches, None)
        self.batches = itertools.chain([first] if second is None else [first, second], self.batches)
        return first, second is not None


def opened(files: Sequence[str], kernel: str | None, kind: str | None, **reading: Any) -> Input:
    """Open the files, look at the first samples, and settle on a kind and a kernel."""
    asked = None if kernel is None else as_kernel(kernel)
    if kind is None:
        kind = "molecules" if kernel in MOLECULES else "guess"
    batches = map(_plain, read_batches(list(files), size=AT_ONCE, kind=kind, **reading))
    first = next(batches)
    if asked is not None:
        return Input(itertools.chain([first], batches), asked, f"compared by the kernel {kernel}")
    chosen = _kernel(first)
    about = f"taken for {first.kind}, compared by the kernel {chosen}"
    if first.told_by is None:
        about += " (--kernel changes that)"
    else:
        about += f" (a guess: {first.told_by}; --kind and --kernel change that)"
    return Input(itertools.chain([first], batches), chosen, about)


def _kernel(first: Collection) -> str | Kernel:
    """The kernel that the kind of the samples goes with."""
    assert first.kind is not None
    name = KINDS[first.kind]
    samples = first.samples
    if name == "pixels" and isinstance(samples, np.ndarray) and max(samples.shape[1:3]) <= SMALL_SIDE:
        return Pixels(size=None)
    # By its name, so that rows that look like a similarity matrix are refused.
    return name


def _plain(batch: Collection) -> Collection:
    """The samples as kernels take them: the columns of numbers of a table are vectors, arrays of numbers are rows."""
    samples = batch.samples
    if batch.is_table:
        flat = all(
            isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "buif"
            for column in samples.values()
        )
        names = ", ".join(printable(name, 30) for name in list(samples)[:8])
        if not flat:
            raise InputError(
                f"the file has several columns ({names}{', …' if len(samples) > 8 else ''}); say which holds the "
                "samples with --column."
            )
        batch.samples = np.column_stack(list(samples.values()))
        batch.kind, batch.told_by = "vectors", f"rows of the {len(samples)} columns {names}"
    elif isinstance(samples, np.ndarray) and samples.ndim > 2 and batch.kind == "vectors":
        batch.samples = samples.reshape(len(samples), -1)
    return batch
