"""How the benchmarks measure: repeats that take turns in one process, the best of each; memory as it grows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DATA = (
    Path(__file__).resolve().parents[2] / "shared" / "data"
)  # real data, beside the repository; not part of it


def best_times(cases: dict[str, Callable[[], Any]], repeats: int = 5) -> dict[str, float]:
    """The best time of each case in seconds; the cases take turns, so that noise of the machine hits them alike."""
    times = dict.fromkeys(cases, float("inf"))
    for _ in range(repeats):
        for name, case in cases.items():
            start = time.perf_counter()
            case()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def resident() -> int:
    """Bytes of this process in memory (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def extra_memory(case: Callable[[], Any]) -> float:
    """MiB by which the process grows at most while the case runs; call it in a fresh process."""
    before, peak, done = resident(), 0, False

    def watch() -> None:
        nonlocal peak
        while not done:
            peak = max(peak, resident())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    case()
    done = True
    watcher.join()
    return max(peak - before, 0) / 2**20


def exponent(sizes: list[int], times: list[float]) -> float:
    """The fitted power p of time ~ size^p."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
