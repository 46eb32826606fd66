"""python -m vendimeter.cli."""

from vendimeter.cli import main

main()
