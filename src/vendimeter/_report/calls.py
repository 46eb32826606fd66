"""The call that makes a report again, as far as it can be written down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vendimeter.kernels import Kernel
from vendimeter.results.score import order_name
from vendimeter.spectrum import parse_orders

__all__ = ["call_of"]

USUAL = {"kernel": "cosine", "q": (1, 0, 2, "inf"), "threshold": 0.95, "rng": 0}
# What stands for data that a call cannot hold.
NAMES = {
    "by": "labels",
    "weights": "weights",
    "reference": "reference",
    "show": "to_show",
    "features": "features",
    "kernel": "kernel",
}


def call_of(given: Mapping[str, Any]) -> str:
    """The call of `vendimeter.report`, without options that are as usual.

    Examples
    --------
    >>> print(call_of({"kernel": "ngram", "by": None, "q": [1, 2], "rng": 0}))
    import vendimeter as vm
    <BLANKLINE>
    vm.report(samples, kernel='ngram', q=[1, 2]).write("report.html")
    """
    words = ["samples"]
    for name, value in given.items():
        if value is None or (name in USUAL and _same(value, USUAL[name])):
            continue
        words.append(f"{name}={_written(name, value)}")
    return f'import vendimeter as vm\n\nvm.report({", ".join(words)}).write("report.html")'


def _same(value: Any, usual: Any) -> bool:
    try:
        return type(value) is type(usual) and bool(value == usual)
    except (TypeError, ValueError):
        return False


def _written(name: str, value: Any) -> str:
    if name == "q":
        orders = [order_name(q) for q in parse_orders(value)[0]]
        shown = ["'inf'" if order == "inf" else order for order in orders]
        return f"[{', '.join(shown)}]" if len(shown) > 1 else shown[0]
    if isinstance(value, str | int | float):
        return repr(value)
    if isinstance(value, Kernel):
        return repr(value)
    if isinstance(value, list | tuple) and len(value) <= 4 and all(isinstance(one, str) for one in value):
        return repr(value)
    return NAMES.get(name, name)
