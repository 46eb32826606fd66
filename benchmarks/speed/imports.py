"""What `import vendimeter` and `vendi --help` cost beyond bare NumPy, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measure import best_times, table


def run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def main() -> None:
    times = best_times(
        {
            "python -c 'import numpy'": lambda: run("-c", "import numpy"),
            "python -c 'import vendimeter'": lambda: run("-c", "import vendimeter"),
            "vendi --help": lambda: run("-m", "vendimeter.cli", "--help"),
        },
        repeats=10,
    )
    bare = times["python -c 'import numpy'"]
    print("\nStart-up, best of 10\n")
    print(
        table(["", "seconds", "over NumPy"], [[n, f"{t:.3f}", f"{t - bare:+.3f}"] for n, t in times.items()])
    )


if __name__ == "__main__":
    main()
