"""5,000 groups of 5 sparse rows (n-grams of made-up captions) beside the official package, a group at a time."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import best_times, table


def captions(count: int, rng: np.random.Generator) -> list[str]:
    """Texts of 8 to 14 words with the frequencies of a language: a few words often, many rarely."""
    ranks = np.arange(1, 6001)
    share = 1 / ranks**1.05
    words = rng.choice(ranks, size=(count, 14), p=share / share.sum())
    lengths = rng.integers(8, 15, count)
    return [" ".join(f"w{w}" for w in row[:length]) for row, length in zip(words, lengths, strict=True)]


def main() -> None:
    texts = captions(25_000, np.random.default_rng(0))
    labels = np.repeat(np.arange(5_000), 5)
    rows = vm.kernels.NGram(1, 4).similarity(texts).data
    cases = {
        "sparse rows → scores": lambda: vm.score_groups(rows, vm.kernels.Cosine(), by=labels),
        "texts → scores": lambda: vm.score_groups(texts, vm.kernels.NGram(1, 4), by=labels),
        "a vm.score a group": lambda: [
            vm.score(rows[i : i + 5], vm.kernels.Cosine()) for i in range(0, 25_000, 5)
        ],
    }
    try:
        from vendi_score import vendi
    except ImportError:
        print("The official package is not installed; `make bench` installs it.", file=sys.stderr)
    else:
        # The official package cannot score sparse features; the kernel matrix of each group is handed to it ready made.
        cases["official score_K a group (K given)"] = lambda: [
            vendi.score_K((rows[i : i + 5] @ rows[i : i + 5].T).toarray()) for i in range(0, 25_000, 5)
        ]
    times = best_times(cases, 3)
    fastest = times["sparse rows → scores"]
    print("\n5,000 groups of 5 texts, best of 3\n")
    print(
        table(
            ["", "seconds", "ratio"], [[name, f"{t:.3f}", f"{t / fastest:.1f}×"] for name, t in times.items()]
        )
    )


if __name__ == "__main__":
    main()
