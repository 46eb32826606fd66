"""The command ``vendi kernels``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click

from vendimeter.cli import options
from vendimeter.cli.options import Command, Output

if TYPE_CHECKING:
    from vendimeter.present.tables import Sheet

__all__ = ["kernels"]

# What a kernel is for, and the extra that it needs; a test compares the names with those that there are.
ABOUT: dict[str, tuple[str, str]] = {
    "cosine": ("vectors", ""),
    "rbf": ("vectors, numbers", ""),
    "laplacian": ("vectors, numbers", ""),
    "polynomial": ("vectors", ""),
    "jaccard": ("bits, sets", ""),
    "match": ("categories", ""),
    "ngram": ("texts, tokens", ""),
    "bleu": ("texts, tokens", ""),
    "edit": ("texts", "sequences"),
    "kmer": ("sequences", ""),
    "alignment": ("sequences", "sequences"),
    "pixels": ("images", "images"),
    "morgan": ("molecules", "molecules"),
    "rdkit": ("molecules", "molecules"),
    "maccs": ("molecules", "molecules"),
    "tags": ("tags", ""),
    "probability-product": ("probabilities", ""),
    "precomputed": ("a similarity matrix", ""),
    "from-distances": ("a distance matrix", ""),
    "sentences": ("texts", "encoders"),
    "transformer": ("texts", "encoders"),
    "simcse": ("texts", "encoders"),
    "inception": ("images", "vision"),
    "inception-fid": ("images", "vision"),
    "dinov2": ("images", "encoders"),
    "clip": ("images", "encoders"),
    "timm": ("images", "vision"),
    "on": ("one column of a table", ""),
    "random-features": ("stands in for a kernel without short features", ""),
}
# The library that each extra is looked for by.
LIBRARY = {
    "sequences": "rapidfuzz",
    "images": "PIL",
    "molecules": "rdkit",
    "encoders": "transformers",
    "vision": "torchvision",
}

HEADING = (
    "Kernels, by name; those with a * are taken for their kind of data if none is named.\n"
    "Parameters of one: vendi kernels NAME. Several combine: '0.5*on(shape, match) + 0.5*on(colour, match)'."
)


@click.command(
    cls=Command,
    short_help="What makes two items similar: all kernels, and what each needs.",
    examples=["vendi kernels", "vendi kernels ngram", "vendi kernels --json"],
)
@click.argument("name", required=False, shell_complete=options.complete_from(options.KERNELS))
@options.output(["kernels"])
def kernels(name: str | None, output: Output) -> None:
    """List the kernels, or tell all about the one called NAME.

    They are written on the command line as in 'ngram(1, 2)', with parameters in brackets, and combine:
    '0.5*on(shape, match) + 0.5*on(colour, match)'. In Python every function of two items is a kernel.
    """
    from vendimeter.cli.output import Answer, check_target, emit
    from vendimeter.messages import unknown
    from vendimeter.present.tables import Sheet

    check_target(output)
    classes = _kernel_classes()
    if name is not None and name not in classes:
        raise unknown("kernel", name, list(classes))
    names = list(ABOUT) if name is None else [name]
    rows = [_kernel_row(kernel_name, classes[kernel_name]) for kernel_name in names]
    answer = Answer("kernels", {"kernels": rows}, HEADING)
    if output.form == "text" and name is None:
        answer.sheets = [_overview(rows)]
    else:
        answer.sheets = [Sheet("kernels", {key: [row[key] for row in rows] for key in rows[0]})]
        answer.text = None if name is None else _full_text(rows[0], classes[name])
    emit(answer, output)


def _kernel_classes() -> dict[str, Any]:
    from vendimeter import encoders
    from vendimeter.kernels import On, RandomFeatures, by_name

    classes: dict[str, Any] = {**by_name(), **encoders.by_name(), "on": On, "random-features": RandomFeatures}
    return {name: classes[name] for name in ABOUT}


def _kernel_row(name: str, kind: Any) -> dict[str, Any]:
    from importlib.util import find_spec

    from vendimeter.data.collection import KINDS

    samples, extra = ABOUT[name]
    return {
        "kernel": name,
        "for": samples,
        "default": name in KINDS.values(),
        "needs": f"vendimeter[{extra}]" if extra else "",
        "installed": not extra or find_spec(LIBRARY[extra]) is not None,
        "parameters": _parameters(kind),
        "about": inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", " ").replace("``", ""),
    }


def _parameters(kind: Any) -> str:
    parameters = []
    for parameter in inspect.signature(kind).parameters.values():
        default = parameter.default
        parameters.append(parameter.name if default is parameter.empty else f"{parameter.name}={default!r}")
    return ", ".join(parameters)


def _overview(rows: list[dict[str, Any]]) -> Sheet:
    """An overview in two columns, which fit a terminal."""
    from vendimeter.present.tables import Sheet

    about = []
    for row in rows:
        needs = f" ({row['needs']}{'' if row['installed'] else ', not installed'})" if row["needs"] else ""
        about.append(f"{row['for']}{needs}. {row['about']}")
    names = [row["kernel"] + ("*" if row["default"] else "") for row in rows]
    return Sheet("kernels", {"kernel": names, "for": about})


def _full_text(row: dict[str, Any], kind: Any) -> str:
    from vendimeter.present.terminal import printable_lines

    needs = ""
    if row["needs"]:
        missing = "" if row["installed"] else f", which is not installed: pip install {row['needs']!r}"
        needs = f"\nNeeds {row['needs']}{missing}"
    head = f"{row['kernel']}({row['parameters']})\nFor {row['for']}.{needs}"
    return printable_lines(f"{head}\n\n{inspect.cleandoc(kind.__doc__ or '')}")
