"""Where data lies that comes beside the repository, for tests that are skipped without it."""

from __future__ import annotations

from pathlib import Path

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
