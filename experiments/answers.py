"""Answers to a prompt: how well the score agrees with a benchmark's count of different ones.

Takes a file of NoveltyBench (scores.jsonl of an evaluation: a line a prompt, with "generations" and "partition"),
scores the answers to each prompt with n-grams and, where a model is given, with a sentence encoder, and prints the
rank correlations with the number of classes that the benchmark found.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy import stats

import vendimeter as vm


def correlations(path: str, model: str | None = None) -> dict[str, tuple[float, float]]:
    """Kernel → Spearman's correlation of its scores with the numbers of classes, and the mean score."""
    prompts = vm.read(path, samples="generations", columns=["partition"])
    classes = [len(set(partition)) for partition in prompts["partition"]]
    kernels: dict[str, Any] = {"ngram": vm.kernels.NGram(1, 4)}
    if model is not None:
        kernels["sentences"] = vm.kernels.Embed(vm.encoders.Sentences(model))
    found = {"classes": (1.0, float(np.mean(classes)))}
    for name, kernel in kernels.items():
        scores = vm.score_groups(prompts, kernel).scores
        found[name] = (float(stats.spearmanr(scores, classes).statistic), float(scores.mean()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", help="the file, .jsonl or .jsonl.gz")
    parser.add_argument("--model", help="a sentence encoder: a folder or a name")
    options = parser.parse_args()
    for name, (correlation, mean) in correlations(options.path, options.model).items():
        print(f"{name:10}  rank correlation {correlation:.3f}  mean {mean:.2f}")


if __name__ == "__main__":
    main()
