"""Stand-ins for other packages: their names and signatures, this package's answers."""

from vendimeter.compat import vendi

__all__ = ["vendi"]
