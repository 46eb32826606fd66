"""The input of a command: files → samples of a kind, with the kernel for it, all at once or in batches.

A kernel on the command line is a text of names, plain values, sums and products. It is parsed, never evaluated.
"""

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
from vendimeter.errors import InputError
from vendimeter.io.columns import as_numbers
from vendimeter.io.kinds import guess
from vendimeter.io.reading import read_batches
from vendimeter.kernels import Embed, Kernel, On, Pixels, RandomFeatures, as_kernel, by_name
from vendimeter.messages import unknown
from vendimeter.present.text import printable

__all__ = ["Input", "bare_samples", "columns_of", "kernel_of", "open_collections", "open_input"]


# --------------------------------------------------------------------------------------------------------- kernel text

MAX_TEXT = 2000  # characters of a kernel: nobody writes more by hand, and deep nesting can crash parsers
MAX_POWER = 64  # of a kernel, which is so many factors


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
        return as_kernel(name) if name not in _examples_with_parameters() else _refuse_bare_name(name)
    try:
        if len(text) > MAX_TEXT:
            raise ValueError
        tree = ast.parse(_replace_hyphens(name), mode="eval").body
        return _kernel_of(tree, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        raise _syntax_error(text) from None


def columns_of(kernel: Kernel) -> list[str]:
    """The columns of a table that a kernel names, each once."""
    column_names = [str(kernel.column)] if isinstance(kernel, On) else []
    return list(dict.fromkeys(column_names + [name for part in kernel.parts for name in columns_of(part)]))


def _encoder(name: str, model: str) -> Kernel:
    from vendimeter import encoders

    encoders_by_name: dict[str, Any] = encoders.by_name()
    if name not in encoders_by_name:
        raise InputError(
            f"--model goes with an encoder, and the kernel is {name!r}; expected {', '.join(encoders_by_name)}."
        )
    return Embed(encoders_by_name[name](model))


def _outer_kernels() -> dict[str, Any]:
    """Kernels that wrap other kernels, by name."""
    return {"on": On, "random-features": RandomFeatures}


def _examples_with_parameters() -> dict[str, str]:
    """Names that need parameters, with an example of each."""
    return {
        "on": "on(colour, match)",
        "random-features": "random-features(rbf(1.0), features=512)",
        "transformer": "transformer('folder/of/the/model')",
        "timm": "timm('folder/of/the/model')",
    }


def _refuse_bare_name(name: str) -> Kernel:
    example = _examples_with_parameters()[name]
    if name in _outer_kernels():
        raise InputError(
            f"--kernel {name!r} stands around another kernel; expected it in brackets, {example!r}."
        )
    raise InputError(
        f"--kernel {name!r} has no usual model; expected one in brackets, {example!r}, or with --model PATH."
    )


def _replace_hyphens(text: str) -> str:
    """Replace hyphens in names, outside quoted texts, by underscores, so that Python can parse the text."""
    quoted = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
    pieces = quoted.split(text)
    return "".join(
        piece if i % 2 else re.sub(r"(?<=[A-Za-z])-(?=[A-Za-z])", "_", piece)
        for i, piece in enumerate(pieces)
    )


def _syntax_error(text: str) -> InputError:
    return InputError(
        f"--kernel {printable(text, 80)!r} cannot be read; expected a name, a name with values in brackets, such as "
        "'ngram(1, 2)', or a sum or product of such."
    )


def _kernel_of(node: ast.expr, text: str) -> Kernel:
    value = _value(node, text)
    if isinstance(value, Kernel):
        return value
    raise _syntax_error(text)


def _value(node: ast.expr, text: str) -> Any:
    """A kernel, or a number in front of one."""
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    ):
        return node.value
    if isinstance(node, ast.Name):
        return _make_kernel(node.id.replace("_", "-"), [], {}, text)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id.replace("_", "-")
        arguments = [
            _argument(part, text, column=name in ("on", "On") and i == 0) for i, part in enumerate(node.args)
        ]
        if any(keyword.arg is None for keyword in node.keywords):
            raise _syntax_error(text)
        _refuse_twice([str(keyword.arg) for keyword in node.keywords], text)
        keywords = {str(keyword.arg): _argument(keyword.value, text) for keyword in node.keywords}
        return _make_kernel(name, arguments, keywords, text)
    operators = {ast.Add: "__add__", ast.Mult: "__mul__", ast.Div: "__truediv__", ast.Pow: "__pow__"}
    if isinstance(node, ast.BinOp) and type(node.op) in operators:
        left, right = _value(node.left, text), _value(node.right, text)
        if isinstance(node.op, ast.Pow) and not (isinstance(right, int) and right <= MAX_POWER):
            raise _syntax_error(text)
        if isinstance(left, Kernel):
            result = getattr(left, operators[type(node.op)])(right)
        elif isinstance(node.op, ast.Mult) and isinstance(right, Kernel):
            result = right * left
        else:
            raise _syntax_error(text)
        if result is NotImplemented:
            raise _syntax_error(text)
        return result
    raise _syntax_error(text)


def _refuse_twice(keyword_names: list[str], text: str) -> None:
    """Raise an error for a parameter that is given twice, of which one value would be ignored."""
    for name in keyword_names:
        if keyword_names.count(name) > 1:
            raise InputError(f"--kernel {printable(text, 80)!r} gives {name!r} twice; expected it once.")


def _argument(node: ast.expr, text: str, *, column: bool = False) -> Any:
    """A plain value, a kernel inside another, or the bare name of a column."""
    if column and isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Name) and node.id not in ("inf", "nan"):
        return _make_kernel(node.id.replace("_", "-"), [], {}, text)
    if isinstance(node, ast.Call | ast.BinOp):
        return _kernel_of(node, text)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise _syntax_error(text) from None


def _make_kernel(name: str, arguments: list[Any], keywords: dict[str, Any], text: str) -> Kernel:
    """Construct the kernel of a name with its parameters."""
    from vendimeter import encoders

    classes: dict[str, Any] = {**by_name(), **_outer_kernels(), **encoders.by_name()}
    # As results show it, "NGram(1, 4)", it can be given again.
    name = {kernel.__name__: key for key, kernel in classes.items() if key != "tanimoto"}.get(name, name)
    if name not in classes:
        raise unknown("kernel", name, [*classes])
    try:
        instance = classes[name](*arguments, **keywords)
    except TypeError as error:
        raise InputError(
            f"--kernel {printable(text, 80)!r}: {printable(error)}. See: vendi kernels {name}"
        ) from None
    return instance if isinstance(instance, Kernel) else Embed(instance)


# -------------------------------------------------------------------------------------------------------------- inputs

# More than this is streamed, if the kernel allows it.
MAX_ITEMS_IN_MEMORY, MAX_BYTES_IN_MEMORY = 65_536, 512 << 20
# Pictures of one size up to this are compared as they are, others at this size, as in the paper.
PICTURE_SIDE = 32
MAX_PICTURES_CHECKED = 100  # pictures whose size is looked at
# The kind of samples, for kernels that imply it.
KERNEL_KINDS = {
    "morgan": "molecules", "rdkit": "molecules", "maccs": "molecules", "match": "categories", "ngram": "texts",
    "bleu": "texts", "edit": "texts", "kmer": "sequences", "alignment": "sequences", "tags": "tags", "pixels": "images",
}  # fmt: skip


@dataclass
class Input:
    """Batches of samples, the kernel for them, and both in words."""

    first: Collection
    batches: Iterator[Collection]  # the first one among them
    kernel: str | Kernel
    about: str
    guessed: bool = False  # the kind of the samples
    guessed_kernel: bool = False  # it goes by their kind, because none was asked for

    def exceeds_memory(self) -> bool:
        """Whether there are more samples than are kept in memory at once; reads so many batches ahead."""
        batches_read: list[Collection] = []
        count = size = 0
        exceeds = False
        for batch in self.batches:
            batches_read.append(batch)
            count, size = count + len(batch), size + getattr(batch.samples, "nbytes", 0)
            exceeds = count > MAX_ITEMS_IN_MEMORY or size > MAX_BYTES_IN_MEMORY
            if exceeds:
                break
        self.batches = itertools.chain(batches_read, self.batches)
        return exceeds


def open_input(
    files: Sequence[str],
    reading: Reading,
    similarity: Similarity,
    *,
    columns: Sequence[str] = (),
    lists: bool = False,
) -> Input:
    """Open the files and choose a kind and a kernel by the first samples (of lists, by their elements)."""
    parsed_kernel = _parse_kernel(similarity)
    kernel_columns = [] if parsed_kernel is None else columns_of(parsed_kernel)
    if kernel_columns and reading.column is not None:
        raise InputError(
            f"--kernel names columns ({', '.join(kernel_columns)}), and so does --column {reading.column}; expected "
            "one of them."
        )
    kind = reading.kind
    if kind is None:
        kind = KERNEL_KINDS.get(getattr(parsed_kernel, "name", ""), "guess")
    if kernel_columns:
        kind = None  # a record a sample, of the columns that the kernel names
    options: dict[str, Any] = {"samples": reading.column, "label": reading.label, "weight": reading.weight}
    options |= {"format": reading.ending, "limit": reading.limit, "skip_broken": reading.skip_broken}
    options |= reading.budget
    columns_read = list(dict.fromkeys([*kernel_columns, *columns])) or None
    # Lists of short texts are no tags where each is said to be a group.
    guess_inside = lists and kind == "guess"
    read = read_batches(list(files), kind="texts" if guess_inside else kind, columns=columns_read, **options)
    batches = read if kernel_columns else map(_to_kernel_samples, read)
    first = next(batches)
    if guess_inside and first.is_group:
        _guess_inside(first)
    batches = itertools.chain([first], batches)
    if parsed_kernel is not None:
        return Input(first, batches, parsed_kernel, f"compared by the kernel {parsed_kernel!r}")
    kernel = _default_kernel(first)
    about = f"taken for {first.kind}, compared by the kernel {as_kernel(kernel)!r}"
    if first.told_by is None:
        about += " (--kernel changes that)"
    else:
        about += f" (a guess: {first.told_by}; --kind and --kernel change that)"
    return Input(first, batches, kernel, about, guessed=first.told_by is not None, guessed_kernel=True)


def _guess_inside(lists: Collection) -> None:
    """Lists of texts are of texts, unless all of these are molecules or sequences."""
    texts = [text for texts_of_item in lists.samples for text in texts_of_item][:1000] or [""]
    guessed = guess(Collection(texts))
    fits = guessed.misfit is None or all(guessed.misfit(text) is None for text in texts)
    lists.kind = guessed.kind if fits and guessed.kind in ("molecules", "sequences") else "texts"
    lists.told_by = f"lists of texts, each a group{'' if lists.kind == 'texts' else f'; {guessed.reason}'}"


def _parse_kernel(similarity: Similarity) -> Kernel | None:
    if similarity.kernel is not None:
        return kernel_of(similarity.kernel, similarity.model)
    if similarity.model is not None:
        raise InputError(
            "--model was given without --kernel; expected an encoder, such as --kernel sentences."
        )
    return None


def open_collections(
    files: Sequence[str], reading: Reading, similarity: Similarity, *, columns: Sequence[str] = ()
) -> tuple[dict[str, Collection], str | Kernel, Input]:
    """Read each file, folder or pattern as its own collection; return them, their kernel, and the first input."""
    names = _short_names(files)
    collections: dict[str, Collection] = {}
    first: Input | None = None
    for name, file in zip(names, files, strict=True):
        opened = open_input([file], reading, similarity, columns=columns)
        if first is None:
            first = opened
        elif first.first.kind != opened.first.kind:
            raise InputError(
                f"{files[0]} was taken for {first.first.kind} and {file} for {opened.first.kind}; expected one kind of "
                "samples. Say which with --kind."
            )
        collections[name] = Collection.joined(list(opened.batches))
    assert first is not None
    return collections, _common_kernel(first, collections), first


def bare_samples(collection: Collection) -> Any:
    """The samples of one of several collections, without labels of their own, such as folders of pictures have."""
    if collection.weights is not None:
        raise InputError(
            "--weight was given with several collections, whose samples count the same; expected groups of one "
            "collection, with --by, or no weights."
        )
    return collection.one()


def _common_kernel(first: Input, collections: dict[str, Collection]) -> str | Kernel:
    """The kernel of all collections: pictures whose sizes differ between them are compared at one size."""
    if not first.guessed_kernel or not isinstance(first.kernel, Pixels):
        return first.kernel
    kernels = {_default_kernel(collection) for collection in collections.values()}
    return kernels.pop() if len(kernels) == 1 else Pixels(size=PICTURE_SIDE)


def _short_names(files: Sequence[str]) -> list[str]:
    """Short names of paths: as many of their last parts as it takes to distinguish them."""
    resolved = [file if file == "-" else os.path.realpath(file) for file in files]
    if len(set(resolved)) < len(files):
        repeated = next(file for file, path in zip(files, resolved, strict=True) if resolved.count(path) > 1)
        raise InputError(f"{repeated} is named twice; expected collections that differ. Name it once.")
    components = [
        [component for component in file.replace("\\", "/").split("/") if component not in ("", ".")]
        or [file]
        for file in files
    ]
    for count in range(1, max(map(len, components)) + 1):
        names = ["/".join(component[-count:]) for component in components]
        if len(set(names)) == len(names):
            return names
    return list(files)


def _default_kernel(first: Collection) -> str | Kernel:
    """The default kernel of a kind of samples; by its name, so that a similarity matrix is refused."""
    assert first.kind is not None
    name = KINDS[first.kind]
    if name != "pixels":
        return name
    from vendimeter.data.pictures import decode

    sizes: set[tuple[int, int]] = set()
    for i, picture in enumerate(first.samples[:MAX_PICTURES_CHECKED]):
        try:
            height, width, _ = decode(picture).shape
        except InputError as error:
            error.add_note("With --skip-broken what cannot be read is left out and counted.")
            error.at(place=first.place(i))
            raise
        sizes.add((height, width))
        if len(sizes) > 1 or max(max(sizes)) > PICTURE_SIDE:
            return Pixels(size=PICTURE_SIDE)
    return Pixels(size=sizes.pop())


def _to_kernel_samples(batch: Collection) -> Collection:
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
