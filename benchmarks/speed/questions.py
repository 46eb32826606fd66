"""What each question costs in calls of the user's own code, and in checks of the user's matrix.

One collection of 120 items is asked through four kernels: a function of pairs, an encoder, n-grams with a tokenizer,
and a matrix. All that is counted is needed once: a function for each of the n(n + 1)/2 pairs, encoder and tokenizer
for each item, a check for each of the n² entries. Figures are in these units; above 1, something is computed again.
They are the same on every machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import table
from vendimeter.cli import work
from vendimeter.cli.commands import vendi
from vendimeter.kernels import Embed, FromFunction, NGram, Precomputed
from vendimeter.similarity import checks

N = 120
LABELS = np.arange(N) % 3
METRICS = ["intdiv", "leinster_cobbold", "log_det"]
OF_TEXTS = ["ngram_diversity", "self_bleu", "pairwise_bleu"]


@dataclass
class Counter:
    """How much was done, in how many calls."""

    amount: int = 0
    calls: int = 0

    def add(self, amount: int) -> None:
        """One more call."""
        self.amount += amount
        self.calls += 1


@dataclass(frozen=True)
class Form:
    """The items as one kernel takes them, with that kernel, what it counts, and the amount that is needed once."""

    samples: Any
    kernel: Any
    counter: Counter
    once: int


# ------------------------------------------------------------------------------------------------------------ the forms


def rows() -> np.ndarray:
    """Three clusters of vectors."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((3, 4))[LABELS] + 0.5 * rng.standard_normal((N, 4))


def function() -> Form:
    counter = Counter()

    def similarity(a: np.ndarray, b: np.ndarray) -> float:
        counter.add(1)
        return float(np.exp(-np.sum((a - b) ** 2)))

    return Form(rows(), FromFunction(similarity), counter, N * (N + 1) // 2)


def texts() -> list[str]:
    """Sentences of eight words, a vocabulary a group."""
    rng = np.random.default_rng(0)
    return [" ".join(f"w{word}" for word in rng.integers(20, size=8) + 10 * label) for label in LABELS]


def encoder() -> Form:
    counter = Counter()

    def encode(samples: list[str]) -> np.ndarray:
        counter.add(len(samples))
        return np.array([[text.count(digit) + 1.0 for digit in "0123456789"] for text in samples])

    return Form(texts(), Embed(encode), counter, N)


def tokenizer() -> Form:
    counter = Counter()

    def words(text: str) -> list[str]:
        counter.add(1)
        return text.split()

    return Form(texts(), NGram(1, 2, tokenizer=words), counter, N)


def matrix() -> Form:
    """The checks are in the library; from here on, they are counted."""
    counter, points = Counter(), rows()
    check = checks._check_dense

    def counted(data: Any, *rest: Any) -> Any:
        counter.add(data.shape[0] * data.shape[1])
        return check(data, *rest)

    checks._check_dense = counted
    distances = np.sum((points[:, None] - points) ** 2, axis=2)
    return Form(np.exp(-distances), Precomputed(), counter, N * N)


# -------------------------------------------------------------------------------------------------------- the questions


def explain(samples: Any, kernel: Any) -> None:
    """`vendi explain` of a file, with this kernel in place of one by name."""
    open_input = work.open_and_announce
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(samples, list):
            path = Path(folder) / "items.txt"
            path.write_text("\n".join(samples), encoding="utf-8")
        else:
            path = Path(folder) / "items.npy"
            np.save(path, samples)
        with mock.patch.object(
            work, "open_and_announce", lambda *given: replace(open_input(*given), kernel=kernel)
        ):
            CliRunner().invoke(vendi, ["explain", str(path)], catch_exceptions=False, standalone_mode=False)


NINE: dict[str, Callable[[Any, Any], Any]] = {
    "`score`": vm.score,
    "`profile`": vm.profile,
    "`contributions`": vm.contributions,
    "`duplicates`": vm.duplicates,
    "`modes`": vm.modes,
    "`rarefy`": vm.rarefy,
    "`compare`": lambda samples, kernel: vm.compare(samples, kernel, by=LABELS),
    "`reweight`": vm.reweight,
    "`select`, 10 items": lambda samples, kernel: vm.select(samples, 10, kernel),
}


def nine(samples: Any, kernel: Any) -> None:
    """All nine, each with the samples and the kernel, for nothing is kept from one to the next."""
    for ask in NINE.values():
        ask(samples, kernel)


def figures(samples: Any, kernel: Any) -> None:
    """Three metrics of similarities; of texts three of their n-grams, too."""
    metrics = METRICS + OF_TEXTS if isinstance(kernel, NGram) else METRICS
    vm.metrics.table({"items": samples}, kernel, metrics=metrics)


def nine_of_one(samples: Any, kernel: Any) -> None:
    """All nine, asked of one object, which keeps what they need."""
    d = vm.Diversity(samples, kernel, by=LABELS)
    d.score(), d.profile(), d.contributions(), d.duplicates(), d.modes()
    d.rarefy(), d.compare(), d.reweight(), d.select(10)


QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **NINE,
    "`metrics.intdiv`": vm.metrics.intdiv,
    "`metrics.circles`": lambda samples, kernel: vm.metrics.circles(samples, kernel, threshold=0.5),
    "`metrics.components`": lambda samples, kernel: vm.metrics.components(samples, kernel, threshold=0.5),
    "`metrics.table`, three metrics, of texts six": figures,
    "`report`, three groups": lambda samples, kernel: vm.report(samples, kernel, by=LABELS),
    "`vendi explain`": explain,
    "the first nine, one after another": nine,
    "the same nine, of one `Diversity`": nine_of_one,
}
FORMS: dict[str, Callable[[], Form]] = {
    "calls of a function": function,
    "items encoded": encoder,
    "texts tokenized": tokenizer,
    "entries checked": matrix,
}


def cost(question: str, form: Form) -> float:
    """What a question takes, in units of what is needed once."""
    form.counter.amount = form.counter.calls = 0
    QUESTIONS[question](form.samples, form.kernel)
    return form.counter.amount / form.once


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    cells: dict[str, list[str]] = {name: [] for name in QUESTIONS}
    for make in FORMS.values():
        form = make()
        for name in QUESTIONS:
            cells[name].append(f"{cost(name, form):.2f}")
            if make is matrix:
                cells[name].append(str(form.counter.calls))
    print(table(["", *FORMS, "in so many checks"], [[name, *figures] for name, figures in cells.items()]))


if __name__ == "__main__":
    main()
