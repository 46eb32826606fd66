"""What the command reads: files → samples of a kind, with the kernel for it, all at once or in batches."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.cli.kernel_text import columns_of, kernel_of
from vendimeter.cli.options import Reading, Similarity
from vendimeter.data.collection import Collection
from vendimeter.errors import InputError, printable
from vendimeter.io.columns import as_numbers
from vendimeter.io.kinds import KINDS, guess
from vendimeter.io.reading import read_batches
from vendimeter.kernels import Kernel, Pixels, as_kernel

__all__ = ["Input", "bare", "opened", "several"]

# So much is taken into memory; of more, the samples of kernels that allow it are streamed.
AT_ONCE, AT_ONCE_BYTES = 65_536, 512 << 20
SMALL_SIDE = (
    32  # pictures of one size up to this are compared as they are, larger ones at this size, as in the paper
)
LOOKED_AT = 100  # pictures whose size is looked at
# What samples are for kernels that say it.
KIND_OF = {
    "morgan": "molecules", "rdkit": "molecules", "maccs": "molecules", "match": "categories", "ngram": "texts",
    "bleu": "texts", "edit": "texts", "kmer": "sequences", "alignment": "sequences", "tags": "tags", "pixels": "images",
}  # fmt: skip


@dataclass
class Input:
    """What the files hold: batches of samples, the kernel for them, and both in words."""

    first: Collection
    batches: Iterator[Collection]  # the first one among them
    kernel: str | Kernel
    about: str
    guessed: bool = False

    @property
    def guessed_kernel(self) -> bool:
        """Whether the kernel goes by the kind of the samples, because none was asked for."""
        return not self.about.startswith("compared")

    def is_much(self) -> bool:
        """Whether there is more than is well held at once."""
        taken: list[Collection] = []
        count = size = 0
        more = False
        for batch in self.batches:
            taken.append(batch)
            count, size = count + len(batch), size + getattr(batch.samples, "nbytes", 0)
            more = count > AT_ONCE or size > AT_ONCE_BYTES
            if more:
                break
        self.batches = itertools.chain(taken, self.batches)
        return more


def opened(
    files: Sequence[str],
    reading: Reading,
    similarity: Similarity,
    *,
    columns: Sequence[str] = (),
    lists: bool = False,
) -> Input:
    """Open the files, look at the first samples, and settle on a kind and a kernel; of lists, by what is in them."""
    asked = _asked(similarity)
    table = [] if asked is None else columns_of(asked)
    if table and reading.column is not None:
        raise InputError(
            f"--kernel names columns ({', '.join(table)}), and so does --column {reading.column}; expected one of them."
        )
    kind = reading.kind
    if kind is None:
        kind = KIND_OF.get(getattr(asked, "name", ""), "guess")
    if table:
        kind = None  # a record a sample, of the columns that the kernel names
    options: dict[str, Any] = {"samples": reading.column, "label": reading.label, "weight": reading.weight}
    options |= {"format": reading.ending, "limit": reading.limit, "skip_broken": reading.skip_broken}
    options |= reading.budget
    wanted = list(dict.fromkeys([*table, *columns])) or None
    inside = lists and kind == "guess"  # lists of short texts are no tags where each is said to be a group
    found = read_batches(list(files), kind="texts" if inside else kind, columns=wanted, **options)
    batches = found if table else map(_plain, found)
    first = next(batches)
    if inside and first.is_group:
        _guess_inside(first)
    batches = itertools.chain([first], batches)
    if asked is not None:
        return Input(first, batches, asked, f"compared by the kernel {asked!r}")
    chosen = _kernel(first)
    about = f"taken for {first.kind}, compared by the kernel {as_kernel(chosen)!r}"
    if first.told_by is None:
        about += " (--kernel changes that)"
    else:
        about += f" (a guess: {first.told_by}; --kind and --kernel change that)"
    return Input(first, batches, chosen, about, guessed=first.told_by is not None)


def _guess_inside(lists: Collection) -> None:
    """Lists of texts are of texts, unless all of these are molecules or sequences."""
    texts = [text for one in lists.samples for text in one][:1000] or [""]
    found = guess(Collection(texts))
    fit = found.misfit is None or all(found.misfit(text) is None for text in texts)
    lists.kind = found.kind if fit and found.kind in ("molecules", "sequences") else "texts"
    lists.told_by = f"lists of texts, each a group{'' if lists.kind == 'texts' else f'; {found.reason}'}"


def _asked(similarity: Similarity) -> Kernel | None:
    if similarity.kernel is not None:
        return kernel_of(similarity.kernel, similarity.model)
    if similarity.model is not None:
        raise InputError(
            "--model was given without --kernel; expected an encoder, such as --kernel sentences."
        )
    return None


def several(
    files: Sequence[str], reading: Reading, similarity: Similarity, *, columns: Sequence[str] = ()
) -> tuple[dict[str, Collection], str | Kernel, Input]:
    """Each file, folder or pattern as a collection of its own, all with one kernel; and the first as it is."""
    names = _names(files)
    found: dict[str, Collection] = {}
    first: Input | None = None
    for name, file in zip(names, files, strict=True):
        given = opened([file], reading, similarity, columns=columns)
        if first is None:
            first = given
        elif first.first.kind != given.first.kind:
            raise InputError(
                f"{files[0]} was taken for {first.first.kind} and {file} for {given.first.kind}; expected one kind of "
                "samples. Say which with --kind."
            )
        found[name] = Collection.joined(list(given.batches))
    assert first is not None
    return found, _common(first, found), first


def bare(collection: Collection) -> Any:
    """The samples of one of several collections, without labels of their own, such as folders of pictures have."""
    if collection.weights is not None:
        raise InputError(
            "--weight was given with several collections, whose samples count the same; expected groups of one "
            "collection, with --by, or no weights."
        )
    return collection.one()


def _common(first: Input, found: dict[str, Collection]) -> str | Kernel:
    """The kernel of all: pictures whose sizes differ between collections are compared at one size."""
    if not first.guessed_kernel or not isinstance(first.kernel, Pixels):
        return first.kernel
    kernels = {_kernel(collection) for collection in found.values()}
    return kernels.pop() if len(kernels) == 1 else Pixels(size=SMALL_SIDE)


def _names(files: Sequence[str]) -> list[str]:
    """Short names of paths: their last parts, as many of them as tell the paths apart."""
    places = [file if file == "-" else os.path.realpath(file) for file in files]
    if len(set(places)) < len(files):
        twice = next(file for file, place in zip(files, places, strict=True) if places.count(place) > 1)
        raise InputError(f"{twice} is named twice; expected collections that differ. Name it once.")
    parts = [
        [part for part in file.replace("\\", "/").split("/") if part not in ("", ".")] or [file]
        for file in files
    ]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return list(files)


def _kernel(first: Collection) -> str | Kernel:
    """The kernel that the kind of the samples goes with; by its name, so that a similarity matrix is refused."""
    assert first.kind is not None
    name = KINDS[first.kind]
    if name != "pixels":
        return name
    from vendimeter.data.pictures import decode

    sizes: set[tuple[int, int]] = set()
    for i, picture in enumerate(first.samples[:LOOKED_AT]):
        try:
            height, width, _ = decode(picture).shape
        except InputError as error:
            error.add_note("With --skip-broken what cannot be read is left out and counted.")
            error.at(place=first.place(i))
            raise
        sizes.add((height, width))
        if len(sizes) > 1 or max(max(sizes)) > SMALL_SIDE:
            return Pixels(size=SMALL_SIDE)
    return Pixels(size=sizes.pop())


def _plain(batch: Collection) -> Collection:
    """The samples as kernels take them: the columns of numbers of a table are vectors, arrays of numbers are rows."""
    samples = batch.samples
    if batch.is_table:
        numbers = [as_numbers(column) for column in samples.values()]
        flat = all(column is not None for column in numbers)
        names = ", ".join(printable(name, 30) for name in list(samples)[:8]) + (
            ", …" if len(samples) > 8 else ""
        )
        if not flat:
            raise InputError(
                f"the file has several columns ({names}); say which holds the samples with --column."
            )
        batch.samples = np.column_stack([column for column in numbers if column is not None])
        if batch.kind == "table":  # so it was guessed
            batch.kind = guess(Collection(batch.samples)).kind
            batch.told_by = f"rows of the {len(samples)} columns {names}"
    elif isinstance(samples, np.ndarray) and samples.ndim > 2 and batch.kind == "vectors":
        batch.samples = samples.reshape(len(samples), -1)
    return batch
