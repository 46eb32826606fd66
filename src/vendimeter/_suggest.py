"""One way to say «no such name; did you mean …»."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from vendimeter.errors import UnknownNameError


def unknown(what: str, given: object, known: Iterable[object]) -> UnknownNameError:
    """An error for a name that is not among the known ones, with the nearest of them."""
    names = [str(name) for name in known]
    near = difflib.get_close_matches(str(given).lower(), [name.lower() for name in names], n=1, cutoff=0.6)
    hint = next((f" Did you mean {name!r}?" for name in names if near and name.lower() == near[0]), "")
    listed = ", ".join(repr(name) for name in names[:20]) + (", …" if len(names) > 20 else "")
    return UnknownNameError(f"there is no {what} {given!r}.{hint} There are: {listed}.")
