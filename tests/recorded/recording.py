"""How an answer is taken apart into numbers, what must be equal, and how often functions of the user were called."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import vendimeter as vm
from vendimeter.encoders import Encoder

Answer = Mapping[str, Any]
MOST = 8  # entries of an array of numbers that are kept one by one; of longer ones there are sums

CASES: dict[str, Callable[[], Answer]] = {}
NEEDS: dict[str, tuple[str, ...]] = {}  # modules without which a case is skipped
CALLS: Counter[str] = Counter()  # of functions and encoders of the user, in the case that runs


def add(name: str, case: Callable[[], Answer], *needs: str) -> None:
    """Register a case under its name, with the modules that it needs."""
    assert name not in CASES, f"there are two cases {name}"
    CASES[name] = case
    NEEDS[name] = needs


# ------------------------------------------------------------------------- functions and encoders of the user


def near(a: Any, b: Any) -> float:
    """A similarity of two numbers, as users write one."""
    CALLS["pairs"] += 1
    return math.exp(-abs(float(a) - float(b)) / 3)


def near_blocks(a: Any, b: Any) -> np.ndarray:
    """The same of two lists of numbers."""
    CALLS["blocks"] += 1
    CALLS["pairs"] += len(a) * len(b)
    return np.exp(-np.abs(np.subtract.outer(np.asarray(a, float), np.asarray(b, float))) / 3)


def near_lopsided(a: Any, b: Any) -> float:
    """A similarity that is neither symmetric nor 1 of an item with itself."""
    return 2.0 * near(a, b) * (1.01 if float(a) < float(b) else 1.0)


def encoder(texts: Any) -> np.ndarray:
    """How often each vowel is in a text, and how long the text is."""
    CALLS["encodings"] += 1
    CALLS["items"] += len(texts)
    return np.array(
        [[1.0 + text.lower().count(vowel) for vowel in "aeiou"] + [len(text) / 10] for text in texts]
    )


def halves(rows: Any) -> np.ndarray:
    """An encoder of rows of numbers: the first three columns."""
    CALLS["encodings"] += 1
    CALLS["items"] += len(rows)
    return np.asarray(rows)[:, :3]


@dataclass(frozen=True, repr=False)
class Vowels(Encoder):
    """The same as an encoder of this package, with its cache."""

    name: ClassVar[str] = "vowels"

    def load(self) -> Callable[[list[str]], np.ndarray]:
        return encoder

    def identity(self) -> dict[str, str]:
        return {"encoder": self.name}


# ----------------------------------------------------------------------------------------------- taking apart


@dataclass
class Recorded:
    """What a case came to, as it is kept."""

    numbers: dict[str, float]
    exact: dict[str, Any]
    calls: dict[str, int]


def record(case: Callable[[], Answer]) -> Recorded:
    """Run a case."""
    CALLS.clear()
    found = Recorded({}, {}, {})
    for name, value in case().items():
        _put(found, name, value)
    found.calls = dict(sorted(CALLS.items()))
    return found


def _put(found: Recorded, name: str, value: Any) -> None:
    """Numbers apart from what must be equal: whole numbers, texts, truth values and lists of them."""
    if isinstance(value, vm.Score):
        _put_all(found, name, score(value))
    elif isinstance(value, vm.Profile):
        _put_all(found, name, profile(value))
    elif isinstance(value, Mapping):
        _put_all(found, name, value)
    elif isinstance(value, np.ndarray | list | tuple) and _is_numbers(value):
        _put_all(found, name, _of_array(np.asarray(value, dtype=np.float64)))
    elif isinstance(value, np.ndarray | np.generic):
        _put(found, name, value.tolist())
    elif isinstance(value, float):
        found.numbers[name] = float(f"{value:.13g}")
    elif isinstance(value, bool | str | None):
        found.exact[name] = value
    elif isinstance(value, int):
        found.exact[name] = int(value)
    else:
        assert isinstance(value, list | tuple), f"{name} is {value!r}"
        found.exact[name] = _plain(value)


def _put_all(found: Recorded, name: str, values: Mapping[Any, Any]) -> None:
    for key, value in values.items():
        _put(found, f"{name}.{key}", value)


def _is_numbers(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return values.dtype.kind == "f"
    return any(isinstance(value, float | np.floating) or _is_numbers_within(value) for value in values)


def _is_numbers_within(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray) and _is_numbers(value)


def _of_array(array: np.ndarray) -> dict[str, Any]:
    """All entries of a short array; of a longer one sums, one of which tells the order of the entries."""
    flat = array.ravel()
    if flat.size <= MOST:
        return {str(i): float(entry) for i, entry in enumerate(flat)}
    finite = np.where(np.isfinite(flat), flat, 0.0)
    place = np.arange(1, flat.size + 1) / flat.size
    return {
        "shape": list(array.shape),
        "finite": int(np.isfinite(flat).sum()),
        "sum": math.fsum(finite),
        "by_place": math.fsum(finite * place),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


# --------------------------------------------------------------------------------------------- common answers

# What is kept of the diagnostics of a score; times and words are not.
DIAGNOSED = (
    "components", "confidence", "distinct", "evaluations", "largest_component", "left_out", "passes", "precision",
    "probes", "products", "rank", "rank_threshold", "removed_mass", "residual", "storage",
)  # fmt: skip


def score(found: vm.Score) -> dict[str, Any]:
    """A score with what is claimed of it; its bounds where they are more than rounding."""
    parts = {
        "score": float(found),
        "half_width": found.half_width,
        "n": found.n,
        "method": found.method,
        "level": found.level,
    }
    if found.half_width > 1e-8 * abs(found):
        parts |= {"low": found.bounds[0], "high": found.bounds[1]}
    return parts | {name: found.diagnostics[name] for name in DIAGNOSED if name in found.diagnostics}


def profile(found: vm.Profile) -> dict[str, Any]:
    """The scores of a profile with their bounds; what they have in common once."""
    scores = list(found.values())
    parts: dict[str, Any] = {
        f"q={one.q:g}": {"score": float(one), "half_width": one.half_width} for one in scores
    }
    return parts | {name: getattr(scores[0], name) for name in ("n", "method", "level")}


def of(found: Any, names: str) -> dict[str, Any]:
    """Attributes of a result by their names, or dotted names, with blanks between them."""
    parts = {}
    for name in names.split():
        value = found
        for attribute in name.split("."):
            value = getattr(value, attribute)
        parts[name] = value
    return parts
