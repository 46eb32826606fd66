"""What a test knows of the array library that it runs on; see the fixture `library`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Library:
    """An array library: its name and how to make one of its arrays."""

    name: str
    array: Callable[[Any], Any]
