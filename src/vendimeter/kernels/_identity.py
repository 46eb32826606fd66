"""What features depend on beyond the parameters of a kernel: the files of models and tokenizers.

A kernel has the name or folder of a model, and other files can come to lie behind it: features from before and after
that do not belong into one sum.
"""

from __future__ import annotations

from typing import Any

from vendimeter.data import tokens
from vendimeter.errors import brief, printable
from vendimeter.kernels.base import Kernel
from vendimeter.kernels.functions import is_encoder
from vendimeter.kernels.text import NGram

__all__ = ["difference", "identity"]


def identity(kernel: Kernel) -> dict[str, Any] | None:
    """What features depend on beyond the parameters, as JSON has it: the files behind models and tokenizers.

    None where there are none.

    Examples
    --------
    >>> from vendimeter.kernels import Cosine
    >>> identity(Cosine()) is None
    True
    """
    found: dict[str, Any] = {}
    for key, value in vars(kernel).items():
        found[key] = value.lasting_identity() if is_encoder(value) else None
    if isinstance(kernel, NGram):
        found["tokenizer"] = tokens.identity(kernel.tokenizer)
    for i, part in enumerate(kernel.parts):
        found[f"part {i}"] = identity(part)
    return {key: part for key, part in found.items() if part is not None} or None


def difference(left: Any, right: Any) -> str | None:
    """What two identities differ in, in a few words; None where they agree, or one of them is not known.

    Examples
    --------
    >>> difference({"encoder": {"files": "0a", "dtype": "float32"}}, {"encoder": {"files": "1b", "dtype": "float32"}})
    "files '0a' and '1b'"
    """
    if left is None or right is None or left == right:
        return None
    key, one, other = "", left, right
    while isinstance(one, dict) and isinstance(other, dict):
        mine, theirs = one, other
        key = next(key for key in sorted({*mine, *theirs}) if mine.get(key) != theirs.get(key))
        one, other = mine.get(key), theirs.get(key)
    return f"{printable(key, 40)} {_short(one)} and {_short(other)}"


def _short(value: Any) -> str:
    """A value of an identity; of a digest or a commit the beginning, which is enough to tell it from others."""
    digest = isinstance(value, str) and len(value) >= 40 and value.isalnum()
    return brief(value[:12] + "…" if digest else value)
