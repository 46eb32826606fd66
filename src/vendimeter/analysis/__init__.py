"""Why a score is what it is, how sure it is, and what to do about it; all of it is reached as ``vendimeter.…``."""
