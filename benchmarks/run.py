"""What takes minutes on any machine, one after the other, each in a process of its own: `make bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = [
    "speed/imports.py",
    "speed/questions.py",
    "speed/embeddings.py",
    "speed/groups.py",
    "speed/files.py",
    "speed/molecules.py",
    "speed/metrics.py",
    "speed/growth.py",
    "calibration/defects.py",
]


def main() -> None:
    folder = Path(__file__).parent
    failed = [
        name for name in SCRIPTS if subprocess.run([sys.executable, folder / name], check=False).returncode
    ]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
