"""How every example of the gallery starts and ends."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from typing import Any

_running = ExitStack()


def reset(gallery_conf: Any, fname: Any, when: str) -> None:
    """Matplotlib's own settings, pictures that are sharp on any screen; a warning is an error while an example runs."""
    import matplotlib as mpl

    if when == "after":
        _running.close()  # Sphinx has its own way with warnings
        return
    mpl.rcdefaults()
    mpl.use("agg")
    mpl.rcParams.update({"savefig.dpi": 110, "font.size": 9.5})
    _running.enter_context(warnings.catch_warnings())
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message=".*Agg is non-interactive.*")
