"""Optional libraries: imported where they are used, with an error that has the install line."""

from __future__ import annotations

import importlib
from types import ModuleType

from vendimeter.errors import MissingDependencyError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or say which extra of Vendimeter brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose} needs the library {module.split('.')[0]!r}, which is not installed; install it "
            f"with: pip install 'vendimeter[{extra}]'"
        ) from error
