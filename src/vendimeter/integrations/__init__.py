"""Vendimeter inside other libraries; each module here needs its library and is imported by name."""
