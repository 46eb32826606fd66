"""What the command reads: files → samples of a kind, with the kernel for it, all at once or in batches."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter._messages import printable
from vendimeter.errors import InputError
from vendimeter.io.collection import Collection
from vendimeter.io.columns import as_numbers
from vendimeter.io.kinds import KINDS, guess
from vendimeter.io.reading import read_batches
from vendimeter.kernels import Embed, Kernel, Pixels, as_kernel, by_name

__all__ = ["Input", "kernel_of", "opened"]

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
    files: Sequence[str], kernel: str | None, kind: str | None, model: str | None = None, **reading: Any
) -> Input:
    """Open the files, look at the first samples, and settle on a kind and a kernel."""
    asked = None if kernel is None else kernel_of(kernel, model)
    if kernel is None and model is not None:
        raise InputError(
            "--model was given without --kernel; expected an encoder, such as --kernel sentences."
        )
    if kind is None:
        kind = KIND_OF.get(getattr(asked, "name", ""), "guess")
    batches = map(_plain, read_batches(list(files), kind=kind, **reading))
    first = next(batches)
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


def kernel_of(text: str, model: str | None = None) -> Kernel:
    """A kernel by its name, with parameters in brackets: ``ngram(1, 2)``, ``tags(separator=";")``.

    Only plain values are read; nothing is executed.

    Examples
    --------
    >>> kernel_of("ngram(1, 2)"), kernel_of("match")
    (NGram(1, 2), Match())
    """
    name, bracket, _ = text.partition("(")
    name = name.strip()
    if model is not None:
        from vendimeter import encoders

        known: dict[str, Any] = encoders.by_name()
        if name not in known or bracket:
            raise InputError(
                f"--model goes with an encoder, and the kernel is {text!r}; expected {', '.join(known)}."
            )
        return Embed(known[name](model))
    if not bracket:
        return as_kernel(name)
    try:
        call = ast.parse("f(" + text.partition("(")[2], mode="eval").body
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)  # noqa: PT018
        places = [ast.literal_eval(value) for value in call.args]
        options = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, AssertionError, RecursionError, MemoryError):
        raise InputError(
            f"--kernel {text!r} cannot be read; expected a name, or a name with values in brackets, such as "
            "'ngram(1, 2)'."
        ) from None
    as_kernel(name)  # an error that lists the names, if there is none of this one
    kind: Any = by_name().get(name)
    try:
        if kind is None:
            from vendimeter import encoders

            return Embed(encoders.by_name()[name](*places, **options))  # type: ignore[call-arg]
        return kind(*places, **options)
    except TypeError as error:
        raise InputError(f"--kernel {text!r}: {printable(error)}.") from None


def _kernel(first: Collection) -> str | Kernel:
    """The kernel that the kind of the samples goes with; by its name, so that a similarity matrix is refused."""
    assert first.kind is not None
    name = KINDS[first.kind]
    if name != "pixels":
        return name
    from vendimeter._pictures import decode

    sizes: set[tuple[int, int]] = set()
    for i, picture in enumerate(first.samples[:LOOKED_AT]):
        try:
            height, width, _ = decode(picture).shape
        except InputError as error:
            raise InputError(
                f"{first.place(i)}: {error} With --skip-broken what cannot be read is left out and counted."
            ) from None
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
            batch.kind, batch.told_by = guess(Collection(batch.samples))
            batch.told_by = f"rows of the {len(samples)} columns {names}"
    elif isinstance(samples, np.ndarray) and samples.ndim > 2 and batch.kind == "vectors":
        batch.samples = samples.reshape(len(samples), -1)
    return batch
