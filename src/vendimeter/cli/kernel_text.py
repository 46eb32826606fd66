"""A kernel as it is written on a command line: names, plain values, sums and products. Parsed, never evaluated."""

from __future__ import annotations

import ast
import re
from typing import Any

from vendimeter.errors import InputError, printable, unknown
from vendimeter.kernels import Embed, Kernel, On, RandomFeatures, as_kernel, by_name

__all__ = ["columns_of", "kernel_of"]

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
