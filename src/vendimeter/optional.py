"""Optional libraries: imported where they are used, with an error that has the install line."""

from __future__ import annotations

import importlib
from types import ModuleType

from vendimeter.errors import MissingDependencyError

# What the installer calls a library, where that is another name.
_INSTALLED_AS = {"PIL": "pillow", "Bio": "biopython", "sentence_transformers": "sentence-transformers"}


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or say which extra of Vendimeter brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        missing = getattr(error, "name", None) or name  # it may be there, and need another that is not
        name = name if missing.startswith(name) else missing.split(".")[0]
        raise MissingDependencyError(
            f"{purpose} needs the library {_INSTALLED_AS.get(name, name)!r}, which is not installed; install it "
            f"with: pip install 'vendimeter[{extra}]'"
        ) from error
