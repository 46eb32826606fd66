"""Kernels as plain values, to write them into a file and to tell whether two are the same.

Everything a kernel holds is in its description: its name, its parameters, the kernels inside it. A function of the
user's own is there by its name only (and a method by its object too, where that prints as its parameters), since code
is not data: such a kernel can be compared, but not made from its description. An encoder of `vendimeter.encoders` is
there by its name and the parameters that its vectors depend on; nothing is loaded for that.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import types
from typing import Any

import numpy as np

from vendimeter.data import tokens
from vendimeter.data.devices import is_foreign, to_host
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel, On, Product, Sum
from vendimeter.kernels.functions import Embed, FromFunction, is_encoder
from vendimeter.kernels.random_features import RandomFeatures
from vendimeter.kernels.registry import by_name
from vendimeter.kernels.text import NGram
from vendimeter.messages import brief
from vendimeter.present.text import printable

__all__ = ["describe", "difference", "fingerprint", "identity", "rebuild", "same", "shown"]

DEEPEST = 100  # levels of objects inside objects that are compared
LONGEST = 240  # characters of a kernel in a message


def describe(kernel: Kernel) -> dict[str, Any]:
    """The kernel as values that JSON can write.

    Examples
    --------
    >>> from vendimeter.kernels import RBF, RandomFeatures
    >>> describe(RandomFeatures(RBF(2.0), features=64))
    {'kernel': 'random-features', 'parameters': {'kernel': {'kernel': 'rbf', 'parameters': {'sigma': 2.0}},
     'features': 64, 'seed': 0}}
    """
    name = kernel.name or type(kernel).__qualname__
    return {
        "kernel": name,
        "parameters": {key: _describe_value(value) for key, value in _parameters(kernel).items()},
    }


def _parameters(kernel: Kernel) -> dict[str, Any]:
    if dataclasses.is_dataclass(kernel):
        return {field.name: getattr(kernel, field.name) for field in dataclasses.fields(kernel)}
    return dict(vars(kernel))


def _describe_value(value: Any) -> Any:
    if isinstance(value, Kernel):
        return describe(value)
    if is_encoder(value):
        parameters = {key: _describe_value(part) for key, part in value.parameters().items()}
        return {"encoder": value.name or type(value).__qualname__, "parameters": parameters}
    if isinstance(value, list | tuple):
        return [_describe_value(part) for part in value]
    if isinstance(value, np.bool_ | np.number):
        value = value.item()
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": f"{value.dtype.str} {value.shape} {digest}"}
    if callable(value):
        return _describe_function(value)
    return {"value": repr(value)}


def _describe_function(value: Any) -> dict[str, Any]:
    if isinstance(value, functools.partial):
        arguments = [
            _describe_value(value.args),
            [[key, _describe_value(part)] for key, part in sorted(value.keywords.items())],
        ]
        return {**_describe_function(value.func), "with": arguments}
    owner = getattr(value, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        owner = None if hasattr(value, "__qualname__") else value
    name = getattr(value, "__qualname__", type(value).__qualname__)
    module = getattr(value, "__module__", None) or ""
    module = "__main__" if module == "__mp_main__" else module  # what workers call the program they belong to
    description = {"function": f"{module}.{name}"}
    # An object that prints as its parameters is told from others by them; an address says nothing in another process.
    owner_text = None if owner is None or isinstance(owner, type) else repr(owner)
    if owner_text is None or " at 0x" in owner_text:
        return description
    if len(owner_text) > 200:
        owner_text = hashlib.sha256(owner_text.encode()).hexdigest()
    return {**description, "of": owner_text}


def fingerprint(kernel: Kernel) -> str:
    """A digest of the description: equal for kernels that are the same, in every process and on every machine.

    Examples
    --------
    >>> from vendimeter.kernels import Cosine, RBF
    >>> fingerprint(RBF(1.0)) == fingerprint(RBF(1)), fingerprint(RBF(1.0)) == fingerprint(Cosine())
    (True, False)
    """
    text = json.dumps(_canonical(describe(kernel)), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """The values with whole numbers as int: 1 and 1.0 are one number."""
    if isinstance(value, dict):
        return {key: _canonical(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_canonical(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


# ------------------------------------------------------------------------------------------------------- equality


def same(left: Any, right: Any) -> bool:
    """Whether two kernels are one: equal in everything they hold, down to the code and the state of functions.

    What came from another process is another object; it is known again by what is in it.

    Examples
    --------
    >>> from vendimeter.kernels import Embed
    >>> same(Embed(lambda x: x), Embed(lambda x: x)), same(Embed(lambda x: x), Embed(lambda x: 2 * x))
    (True, False)
    """
    return _are_equal(left, right, DEEPEST, set())


def _are_equal(left: Any, right: Any, depth: int, seen: set[tuple[int, int]]) -> bool:
    if left is right or (id(left), id(right)) in seen:  # a pair that is being compared further up: a circle
        return True
    if isinstance(left, bool | int | float | np.number) and isinstance(right, bool | int | float | np.number):
        return bool(left == right) or bool(left != left and right != right)
    if type(left) is not type(right) or depth == 0:
        return False
    if isinstance(left, str | bytes | type | types.ModuleType):
        return bool(left == right)
    seen = seen | {(id(left), id(right))}
    left_parts, right_parts = _contents(left), _contents(right)
    if left_parts is None or right_parts is None or len(left_parts) != len(right_parts):
        return False
    return all(_are_equal(a, b, depth - 1, seen) for a, b in zip(left_parts, right_parts, strict=True))


def _contents(value: Any) -> list[Any] | None:
    """What an object is made of, in order; None where that cannot be told, so that it is only ever itself."""
    if isinstance(value, Kernel):
        return _flatten(_parameters(value))
    if is_encoder(value):
        return _flatten(value.parameters())
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, dict):
        return _flatten(value)
    if isinstance(value, set | frozenset):
        return [len(value), *sorted(map(repr, value))]
    if isinstance(value, np.ndarray) or is_foreign(value):
        host = to_host(value)
        return [str(value.dtype), host.shape, host.tolist() if host.dtype == object else host.tobytes()]
    if isinstance(value, types.FunctionType):
        names, defaults = [value.__module__, value.__qualname__], [value.__defaults__, value.__kwdefaults__]
        cells = [_cell_content(cell) for cell in value.__closure__ or ()]
        return [names, defaults, cells, _code_contents(value.__code__)]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if _is_estimator(
        value
    ):  # what it is and what it has learnt; what else it holds may differ from run to run
        learnt = {name: part for name, part in vars(value).items() if _is_learnt(name) or _is_estimator(part)}
        return [value.get_params(deep=False), learnt]
    try:
        # What pickle would write: the class, what it is made with, its state, its items.
        reduced = value.__reduce_ex__(2)
    except Exception:
        return None
    if isinstance(reduced, str):
        return [getattr(value, "__module__", None), reduced]
    return [list(part) if i > 2 and part is not None else part for i, part in enumerate(reduced)]


def _is_estimator(value: Any) -> bool:
    return type(value).__module__.startswith("sklearn.") and hasattr(value, "get_params")


def _is_learnt(name: str) -> bool:
    """scikit-learn's convention for what was fitted."""
    return name.endswith("_") and not name.startswith("_")


def _flatten(items: dict[Any, Any]) -> list[Any]:
    return [part for key in sorted(items, key=repr) for part in (key, items[key])]


def _cell_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return None


def _code_contents(code: types.CodeType) -> list[Any]:
    """What a function does, without where it stands in its file."""
    constants = [_code_contents(c) if isinstance(c, types.CodeType) else c for c in code.co_consts]
    return [code.co_code, code.co_names, code.co_varnames, constants]


# ------------------------------------------------------------------------------------ kernels from descriptions


def _kernels_by_name() -> dict[str, type[Kernel]]:
    return by_name() | {kind.name: kind for kind in (Sum, Product, On, Embed, FromFunction, RandomFeatures)}


def rebuild(description: Any, load: str = "load") -> Kernel:
    """The kernel of a description; an error where it holds a function or an unknown name, with the call to `load` it.

    Examples
    --------
    >>> from vendimeter.kernels import RBF
    >>> rebuild(describe(RBF(2.0)))
    RBF(sigma=2.0)
    """
    functions = _function_names(description)
    if functions:
        several, them = ("functions", "them") if len(functions) > 1 else ("function", "it")
        names = printable(", ".join(functions), LONGEST)
        raise InputError(
            f"the kernel holds your own {several} ({names}), which no file can hold: "
            f"pass {them}, {load}(path, kernel={shown(description, yours=True)}).",
            option="kernel",
        )
    try:
        return _make(description, _kernels_by_name())
    except (KeyError, TypeError, AttributeError):
        raise InputError(
            f"{shown(description)} does not describe a kernel that can be made from its parameters alone; expected one "
            f"of Vendimeter's. Pass the kernel itself, {load}(path, kernel=your_kernel).",
            option="kernel",
        ) from None


def _make(description: Any, known: dict[str, type[Kernel]]) -> Kernel:
    def to_value(part: Any) -> Any:
        if isinstance(part, dict):
            if "encoder" in part:
                from vendimeter.encoders.base import HOW

                # A file may come from anywhere: it says what is computed, never where, nor what is written where.
                return construct(_encoders()[part["encoder"]], part["parameters"], HOW)
            return _make(part, known)
        return tuple(map(to_value, part)) if isinstance(part, list) else part

    def construct(kind: Any, parameters: Any, without: tuple[str, ...] = ()) -> Any:
        if not {field.name for field in dataclasses.fields(kind)}.difference(without).issuperset(parameters):
            raise TypeError(f"{kind.__name__} has no such parameters")
        return kind(**{name: to_value(part) for name, part in parameters.items()})

    return construct(known[description["kernel"]], description["parameters"])


def _encoders() -> dict[str, Any]:
    from vendimeter.encoders import by_name  # only where a description holds one

    return by_name()


def _function_names(description: Any) -> list[str]:
    """The names of the functions in a description, each once."""
    if isinstance(description, dict):
        if isinstance(description.get("function"), str):
            return [_function_text(description)]
        description = list(description.values())
    if not isinstance(description, list):
        return []
    return list(dict.fromkeys(name for part in description for name in _function_names(part)))


# --------------------------------------------------------------------------------- descriptions in messages


def shown(description: Any, *, yours: bool = False) -> str:
    """The kernel of a description as one would write it, on one line; with `yours`, with a place for each function.

    A description may come from a file, so that anything may be in it.

    Examples
    --------
    >>> from vendimeter.kernels import Cosine, Embed, On, Polynomial
    >>> shown(describe(0.5 * On("a", Cosine()) + 0.5 * Embed(len, Polynomial(2))))
    "0.5*On('a', Cosine()) + 0.5*Embed(builtins.len, Polynomial(2))"
    >>> shown(describe(Embed(len)), yours=True)
    'Embed(your_encoder)'
    """
    try:
        text = _kernel_text(description, yours)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        return brief(description)
    return printable(text, LONGEST)


def _kernel_text(description: Any, yours: bool) -> str:
    name, parameters = description["kernel"], description["parameters"]
    kind: Any = _kernels_by_name().get(name)
    if kind is Sum:
        return " + ".join(f"{weight:g}*{_parenthesize(part, yours)}" for weight, part in parameters["terms"])
    if kind is Product:
        return "*".join(_parenthesize(part, yours) for part in parameters["factors"])
    return _call_text(name, kind, parameters, yours)


def _call_text(name: str, kind: Any, parameters: Any, yours: bool) -> str:
    """The call that makes a kernel or an encoder, without arguments that are as by default."""
    defaults = {}
    if kind is not None:
        for field in dataclasses.fields(kind):
            has_factory = field.default_factory is not dataclasses.MISSING
            defaults[field.name] = _describe_value(field.default_factory() if has_factory else field.default)  # type: ignore[misc]
    arguments, needs_name = [], kind is None
    for key, value in parameters.items():
        if key in defaults and defaults[key] == value:
            needs_name = True  # what comes after one that is left out needs its name
            continue
        placeholder = "your_encoder" if key == "encoder" else "your_function"
        is_own = yours and isinstance(value, dict) and "function" in value
        text = placeholder if is_own else _value_text(value, yours)
        # A second number says little without its name.
        needs_name = needs_name or (bool(arguments) and not isinstance(value, dict))
        arguments.append(f"{key}={text}" if needs_name else text)
    return f"{name if kind is None else kind.__name__}({', '.join(arguments)})"


def _parenthesize(description: Any, yours: bool) -> str:
    text = _kernel_text(description, yours)
    return f"({text})" if description["kernel"] == Sum.name else text


def _function_text(value: dict[str, Any]) -> str:
    return str(value["function"]).removeprefix(".")  # a method of a built-in type has no module


def _value_text(value: Any, yours: bool) -> str:
    if isinstance(value, list):
        return f"({', '.join(_value_text(part, yours) for part in value)}{',' if len(value) == 1 else ''})"
    if not isinstance(value, dict):
        return brief(value)
    if "kernel" in value:
        return _kernel_text(value, yours)
    if "encoder" in value:
        return _call_text(value["encoder"], _encoders().get(value["encoder"]), value["parameters"], yours)
    if "function" in value:
        text = _function_text(value)
        if "with" in value:
            positional, names = value["with"]
            arguments = [_value_text(part, yours) for part in positional]
            text = f"partial({', '.join([text, *arguments, *(f'{k}={_value_text(v, yours)}' for k, v in names)])})"
        owner = str(value.get("of", ""))
        digest = len(owner) == 64 and owner.isalnum()  # of a text that is longer than the file should hold
        return text + (
            f" of an object that prints as {owner[:8]}…" if digest else f" of {owner}" if owner else ""
        )
    if "array" in value:
        *kind, digest = str(value["array"]).split(" ")
        return f"<array {' '.join(kind)} {digest[:8]}…>"
    return str(value.get("value", brief(value)))


# ------------------------------------------------------------------------------------------------------------ identity


def identity(kernel: Kernel) -> dict[str, Any] | None:
    """What features depend on beyond the parameters, as JSON has it: the files of models and tokenizers, if any.

    A kernel has the name or folder of a model, and other files can come to lie behind it: features from before and
    after that do not belong into one sum. None where there are no such files.

    Examples
    --------
    >>> from vendimeter.kernels import Cosine
    >>> identity(Cosine()) is None
    True
    """
    identities: dict[str, Any] = {}
    for key, value in vars(kernel).items():
        identities[key] = value.lasting_identity() if is_encoder(value) else None
    if isinstance(kernel, NGram):
        identities["tokenizer"] = tokens.identity(kernel.tokenizer)
    for i, part in enumerate(kernel.parts):
        identities[f"part {i}"] = identity(part)
    return {key: part for key, part in identities.items() if part is not None} or None


def difference(left: Any, right: Any) -> str | None:
    """What two identities differ in, in a few words; None where they agree, or one of them is not known.

    Examples
    --------
    >>> difference({"encoder": {"files": "0a", "dtype": "float32"}}, {"encoder": {"files": "1b", "dtype": "float32"}})
    "files '0a' and '1b'"
    """
    if left is None or right is None or left == right:
        return None
    key, a, b = "", left, right
    while isinstance(a, dict) and isinstance(b, dict):
        ours, theirs = a, b
        key = next(key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key))
        a, b = ours.get(key), theirs.get(key)
    return f"{printable(key, 40)} {_abbreviate(a)} and {_abbreviate(b)}"


def _abbreviate(value: Any) -> str:
    """A value of an identity; of a digest or a commit the beginning, which is enough to tell it from others."""
    digest = isinstance(value, str) and len(value) >= 40 and value.isalnum()
    return brief(value[:12] + "…" if digest else value)
