"""Pictures of scores and results, drawn with matplotlib.

Here are those that belong to no single analysis; every result has a method ``plot(ax=None)`` for its own. Each takes
the axes to draw on, or makes a figure, and gives back a `Display` with ``ax_`` and ``figure_``. Colours are told apart
by colour-blind readers; text of the user's is drawn as it stands, never as mathematics or markup.
"""

from vendimeter.plots.galleries import gallery
from vendimeter.plots.grouped import groups
from vendimeter.plots.items import draw
from vendimeter.plots.matrices import kernel_matrix
from vendimeter.plots.mode_ends import exemplars, modes
from vendimeter.plots.spectra import profile, spectrum
from vendimeter.plots.style import Display
from vendimeter.present.colours import PALETTE

__all__ = [
    "PALETTE",
    "Display",
    "draw",
    "exemplars",
    "gallery",
    "groups",
    "kernel_matrix",
    "modes",
    "profile",
    "spectrum",
]
