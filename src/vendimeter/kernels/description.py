"""Kernels as plain values, to write them into a file and to tell whether two are the same.

Everything a kernel holds is in its description: its name, its parameters, the kernels inside it. A function of the
user's own is there by its name only, since code is not data: such a kernel can be compared, but not made from its
description.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from typing import Any

from vendimeter._messages import brief
from vendimeter.errors import InputError
from vendimeter.kernels import by_name
from vendimeter.kernels.base import Kernel, Product, Sum
from vendimeter.kernels.columns import On
from vendimeter.kernels.functions import Embed, FromFunction
from vendimeter.kernels.random_features import RandomFeatures

__all__ = ["describe", "fingerprint", "rebuild", "same"]


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
    parameters = {field.name: _plain(getattr(kernel, field.name)) for field in _fields(kernel)}
    return {"kernel": name, "parameters": parameters}


def _fields(kernel: Kernel) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kernel) if dataclasses.is_dataclass(kernel) else ()


def _plain(value: Any) -> Any:
    if isinstance(value, Kernel):
        return describe(value)
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if callable(value):
        module, called = (
            getattr(value, "__module__", ""),
            getattr(value, "__qualname__", type(value).__qualname__),
        )
        return {"function": f"{module}.{called}"}
    return {"value": repr(value)}


def fingerprint(kernel: Kernel) -> str:
    """A digest of the description: equal for kernels that are the same, in every process and on every machine.

    Examples
    --------
    >>> from vendimeter.kernels import Cosine, RBF
    >>> fingerprint(RBF(1.0)) == fingerprint(RBF(1)), fingerprint(RBF(1.0)) == fingerprint(Cosine())
    (True, False)
    """
    text = json.dumps(describe(kernel), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def same(left: Any, right: Any) -> bool:
    """Whether two kernels are one: equal, or alike down to the code of the functions in them.

    A function that came from another process is another object; it is known again by its name or, where that tells
    nothing (a lambda, a local function), by its code.

    Examples
    --------
    >>> from vendimeter.kernels import Embed
    >>> same(Embed(lambda x: x), Embed(lambda x: x)), same(Embed(lambda x: x), Embed(lambda x: 2 * x))
    (True, False)
    """
    if isinstance(left, Kernel) and isinstance(right, Kernel):
        if type(left) is not type(right):
            return False
        return all(same(getattr(left, field.name), getattr(right, field.name)) for field in _fields(left))
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if callable(left) and callable(right):
        if left is right or _plain(left) != _plain(right):
            return left is right
        return not _anonymous(left) or _code(left) == _code(right)
    return bool(left == right)


def _anonymous(function: Any) -> bool:
    return "<" in getattr(function, "__qualname__", "<")


def _code(function: Any) -> Any:
    code = getattr(function, "__code__", None)
    return None if code is None else (code.co_code, code.co_consts, code.co_names)


def rebuild(description: Any) -> Kernel:
    """The kernel of a description; an error where it holds a function or an unknown name.

    Examples
    --------
    >>> from vendimeter.kernels import RBF
    >>> rebuild(describe(RBF(2.0)))
    RBF(sigma=2.0)
    """
    known = by_name() | {kind.name: kind for kind in (Sum, Product, On, Embed, FromFunction, RandomFeatures)}
    try:
        kind, parameters = known[description["kernel"]], description["parameters"]
        return kind(**{name: _value(value) for name, value in parameters.items()})
    except (KeyError, TypeError, AttributeError):
        raise InputError(
            f"{brief(description)} does not describe a kernel that can be made from its parameters alone; pass the "
            "kernel itself, with kernel=…"
        ) from None


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return rebuild(value)
    return tuple(_value(part) for part in value) if isinstance(value, list) else value
