"""What the command reads: files → samples of a kind, with the kernel for it, all at once or in batches."""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.cli.options import Reading, Similarity
from vendimeter.data.collection import KINDS, Collection
from vendimeter.errors import InputError, printable, unknown
from vendimeter.io.columns import as_numbers
from vendimeter.io.kinds import guess
from vendimeter.io.reading import read_batches
from vendimeter.kernels import Embed, Kernel, On, Pixels, RandomFeatures, as_kernel, by_name

__all__ = ["Input", "bare", "columns_of", "kernel_of", "opened", "several"]


# --------------------------------------------------------------------------------------------------------- kernel text

# A kernel as it is written on a command line: names, plain values, sums and products. Parsed, never evaluated.

LONGEST = 2000  # characters; nobody writes more by hand, and deep nesting is how parsers are brought down
HIGHEST = 64  # power of a kernel, which is so many factors


def kernel_of(text: str, model: str | None = None) -> Kernel:
    """A kernel by its name, with parameters in brackets, or a sum or product of such.

    Parameters
    ----------
    text : str
        ``ngram``, ``ngram(1, 2)``, ``tags(separator=";")``, ``sentences("my/model")``, ``on(colour, match)``,
        ``0.5*on(shape, match) + 0.5*on(colour, match)``, ``random-features(rbf(1.0), features=512)``.
    model : str, optional
        The model of an encoder that is named without one.

    Examples
    --------
    >>> kernel_of("ngram(1, 2)"), kernel_of("0.5*on(shape, match) + 0.5*on(colour, match)")
    (NGram(1, 2), 0.5*On('shape', Match()) + 0.5*On('colour', Match()))
    """
    name = text.strip()
    if model is not None:
        return _encoder(name, model)
    if re.fullmatch(r"[\w-]*", name) and not name[:1].isupper():
        return as_kernel(name) if name not in _needing() else _needs_parameters(name)
    try:
        if len(text) > LONGEST:
            raise ValueError
        tree = ast.parse(_with_plain_names(name), mode="eval").body
        return _kernel_of(tree, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        raise _unread(text) from None


def columns_of(kernel: Kernel) -> list[str]:
    """The columns of a table that a kernel names, each once."""
    own = [str(kernel.column)] if isinstance(kernel, On) else []
    return list(dict.fromkeys(own + [name for part in kernel.parts for name in columns_of(part)]))


def _encoder(name: str, model: str) -> Kernel:
    from vendimeter import encoders

    known: dict[str, Any] = encoders.by_name()
    if name not in known:
        raise InputError(
            f"--model goes with an encoder, and the kernel is {name!r}; expected {', '.join(known)}."
        )
    return Embed(known[name](model))


def _inner() -> dict[str, Any]:
    """What stands around other kernels."""
    return {"on": On, "random-features": RandomFeatures}


def _needing() -> dict[str, str]:
    """What is nothing without parameters, with an example of it."""
    return {
        "on": "on(colour, match)",
        "random-features": "random-features(rbf(1.0), features=512)",
        "transformer": "transformer('folder/of/the/model')",
        "timm": "timm('folder/of/the/model')",
    }


def _needs_parameters(name: str) -> Kernel:
    example = _needing()[name]
    if name in _inner():
        raise InputError(
            f"--kernel {name!r} stands around another kernel; expected it in brackets, {example!r}."
        )
    raise InputError(
        f"--kernel {name!r} has no usual model; expected one in brackets, {example!r}, or with --model PATH."
    )


def _with_plain_names(text: str) -> str:
    """Names with hyphens, outside of quoted texts, as Python would read them: with underscores."""
    quoted = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
    parts = quoted.split(text)
    return "".join(
        part if i % 2 else re.sub(r"(?<=[A-Za-z])-(?=[A-Za-z])", "_", part) for i, part in enumerate(parts)
    )


def _unread(text: str) -> InputError:
    return InputError(
        f"--kernel {printable(text, 80)!r} cannot be read; expected a name, a name with values in brackets, such as "
        "'ngram(1, 2)', or a sum or product of such."
    )


def _kernel_of(node: ast.expr, text: str) -> Kernel:
    found = _value(node, text)
    if isinstance(found, Kernel):
        return found
    raise _unread(text)


def _value(node: ast.expr, text: str) -> Any:
    """A kernel, or a number in front of one."""
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    ):
        return node.value
    if isinstance(node, ast.Name):
        return _made(node.id.replace("_", "-"), [], {}, text)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id.replace("_", "-")
        places = [
            _argument(part, text, column=name in ("on", "On") and i == 0) for i, part in enumerate(node.args)
        ]
        if any(word.arg is None for word in node.keywords):
            raise _unread(text)
        _refuse_twice([str(word.arg) for word in node.keywords], text)
        words = {str(word.arg): _argument(word.value, text) for word in node.keywords}
        return _made(name, places, words, text)
    operators = {ast.Add: "__add__", ast.Mult: "__mul__", ast.Div: "__truediv__", ast.Pow: "__pow__"}
    if isinstance(node, ast.BinOp) and type(node.op) in operators:
        left, right = _value(node.left, text), _value(node.right, text)
        if isinstance(node.op, ast.Pow) and not (isinstance(right, int) and right <= HIGHEST):
            raise _unread(text)
        if isinstance(left, Kernel):
            found = getattr(left, operators[type(node.op)])(right)
        elif isinstance(node.op, ast.Mult) and isinstance(right, Kernel):
            found = right * left
        else:
            raise _unread(text)
        if found is NotImplemented:
            raise _unread(text)
        return found
    raise _unread(text)


def _refuse_twice(names: list[str], text: str) -> None:
    """Of a parameter that is given twice, one value would be thrown away in silence."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--kernel {printable(text, 80)!r} gives {name!r} twice; expected it once.")


def _argument(node: ast.expr, text: str, *, column: bool = False) -> Any:
    """A plain value, a kernel inside another, or the bare name of a column."""
    if column and isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Name) and node.id not in ("inf", "nan"):
        return _made(node.id.replace("_", "-"), [], {}, text)
    if isinstance(node, ast.Call | ast.BinOp):
        return _kernel_of(node, text)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise _unread(text) from None


def _made(name: str, places: list[Any], words: dict[str, Any], text: str) -> Kernel:
    """The kernel of a name, with its parameters."""
    from vendimeter import encoders

    known: dict[str, Any] = {**by_name(), **_inner(), **encoders.by_name()}
    # As results show it, "NGram(1, 4)", it can be given again.
    name = {kernel.__name__: key for key, kernel in known.items() if key != "tanimoto"}.get(name, name)
    if name not in known:
        raise unknown("kernel", name, [*known])
    try:
        found = known[name](*places, **words)
    except TypeError as error:
        raise InputError(
            f"--kernel {printable(text, 80)!r}: {printable(error)}. See: vendi kernels {name}"
        ) from None
    return found if isinstance(found, Kernel) else Embed(found)


# -------------------------------------------------------------------------------------------------------------- inputs

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
