"""Reports of real collections: how long each takes to build, and how large its page is.

Captions by their n-grams, digits by class, generated molecules beside a test set, photographs by class; and vectors,
many of them, that are made up. With --keep the pages are written to a folder.

The real data is read from ../shared/data, beside the repository: text/coco_val2017_captions.jsonl.gz (a record an
image: image_id, captions), images/mnist_test.npz and images/cifar100_test.npz (images, labels, classes), and
molecules/moses_test.csv.gz and moses_ngram_3.csv.gz (a column SMILES). What is not there is skipped, and said to be.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from measure import DATA, table
from vendimeter import report


def captions() -> vm.Report:
    with gzip.open(DATA / "text/coco_val2017_captions.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [text for line in file for text in json.loads(line)["captions"]]
    return report(texts, "ngram", title="Captions of COCO's validation set")


def lists_of_captions() -> vm.Report:
    path = DATA / "text/coco_val2017_captions.jsonl.gz"
    return report(
        vm.read(path, samples="captions", label="image_id"), "ngram", title="Captions, image by image"
    )


def pictures(name: str) -> tuple[np.ndarray, Any]:
    with np.load(DATA / f"images/{name}.npz") as held:
        labels = held["labels"]
        return held["images"], held["classes"][labels] if "classes" in held else labels


def digits() -> vm.Report:
    images, labels = pictures("mnist_test")
    rows = images.reshape(len(images), -1).astype(np.float32)
    return report(rows, by=labels, show=images, title="MNIST by digit")


def photographs() -> vm.Report:
    images, labels = pictures("cifar100_test")
    rows = images.reshape(len(images), -1).astype(np.float32)
    return report(rows, by=labels, show=images, title="CIFAR-100 by class")


def smiles(name: str, most: int) -> list[str]:
    with gzip.open(DATA / f"molecules/{name}.csv.gz", "rt", encoding="utf-8") as file:
        return [row["SMILES"] for row, _ in zip(csv.DictReader(file), range(most), strict=False)]


def molecules(most: int = 30_000) -> vm.Report:
    test, sample = smiles("moses_test", most), smiles("moses_ngram_3", most)
    kernel = vm.kernels.Morgan()
    keep = kernel.valid(sample)  # a model writes some that are no molecules
    valid = [text for text, good in zip(sample, keep, strict=True) if good]
    left = f"{len(sample) - len(valid):,} samples of the model are no molecules, and were left out."
    collections = {"test set": test, "n-gram model": valid}
    return report(collections, kernel, reference="test set", notes=[left], title="Molecules: MOSES")


def embeddings(n: int = 100_000, columns: int = 256) -> vm.Report:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((50, columns), dtype=np.float32)
    label = rng.integers(50, size=n)
    rows = centres[label] + rng.standard_normal((n, columns), dtype=np.float32)
    return report(rows, by=label, show=[f"row {i}" for i in range(n)], title="Made-up vectors")


CASES: dict[str, tuple[str, Callable[[], vm.Report], str]] = {
    "captions": ("25,014 captions, n-grams", captions, "text/coco_val2017_captions.jsonl.gz"),
    "lists": ("the same, a list an image", lists_of_captions, "text/coco_val2017_captions.jsonl.gz"),
    "mnist": ("MNIST, 10,000 × 784, by digit", digits, "images/mnist_test.npz"),
    "cifar": ("CIFAR-100, 10,000 × 3,072, by class", photographs, "images/cifar100_test.npz"),
    "moses": ("MOSES, 30,000 of the test set, and of a model", molecules, "molecules/moses_ngram_3.csv.gz"),
    "vectors": ("made-up vectors, 100,000 × 256, 50 groups", embeddings, ""),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"some of {', '.join(CASES)}; all of them by default")
    parser.add_argument("--keep", type=Path, help="a folder for the pages")
    options = parser.parse_args()
    rows = []
    for name in options.cases or CASES:
        words, make, needed = CASES[name]
        if needed and not (DATA / needed).exists():
            print(f"{words}: skipped, since {needed} is not there", file=sys.stderr)
            continue
        began = time.perf_counter()
        page = make()
        rows.append([words, f"{time.perf_counter() - began:.0f}", f"{len(page.html.encode()) / 1e6:.2f}"])
        print(f"{words}: {rows[-1][1]} s, {rows[-1][2]} MB. {page.summary()}", file=sys.stderr, flush=True)
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            page.write(options.keep / f"{name}.html", overwrite=True)
    print(table(["", "seconds", "MB"], rows))


if __name__ == "__main__":
    main()
