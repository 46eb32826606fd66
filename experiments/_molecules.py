"""Samples of molecules and what they score, for `molecules.py`: the paper's numbers, files, HMMs that are fitted."""

from __future__ import annotations

import gzip
import hashlib
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import _common as common
import _hmm as hmm
import vendimeter as vm

KERNEL = vm.kernels.Morgan(radius=2, bits=1024)
SIZE, TEXT_SIZE, PICTURED = 1500, 2500, 250
BLOCKS, DRAWS = 4, 5  # blocks of valid rows, and random draws from the test set: how much the numbers vary
STAGES = [20, 30, 40, 50, 75, 100]  # iterations after which an HMM is looked at, if it gets that far
AT_ONCE, MOST_STRINGS = 30_000, 1_200_000  # strings drawn from an HMM: MOSES published 30,000 of each model
HMM_VALIDITY = 0.0527

# IntDiv, VS: examples/molecules.ipynb of github.com/vertaix/Vendi-Score, of which the paper prints 3 and 4 digits.
PAPER = {
    "original": (0.8551, 403.93), "aae": (0.8592, 501.05), "char_rnn": (0.8563, 482.44),
    "combinatorial": (0.8729, 536.89), "hmm": (0.8707, 250.89), "jtn": (0.8556, 489.54),
    "latent_gan": (0.8569, 486.40), "ngram": (0.8736, 479.80), "vae": (0.8562, 475.28),
}  # fmt: skip
NAMES = {
    "original": "Original", "aae": "AAE", "char_rnn": "Char-RNN", "combinatorial": "Combinatorial", "hmm": "HMM",
    "jtn": "JTN", "latent_gan": "Latent GAN", "ngram": "N-gram", "vae": "VAE",
}  # fmt: skip
# Of MODEL_3.csv, from the git-LFS pointers of github.com/molecularsets/moses; "original" is its data/test.csv.
SHA256 = {
    "original": "257165e8f1e1be2d5712db51c93d2b1544564b782dc303d7d19c887c21a858e6",
    "aae": "4e4739c904fea1ac01a12f4586d3f8a1a3742348f86ea66c9b247c34fbe15b89",
    "char_rnn": "a9e8ccf1d049560bd1d3c3d0126d8e7e7f353a780cb0427175a3b076e92eb20e",
    "combinatorial": "70e1205a1b8803b0ba0b90075f4d589d671db176cc78df1e9207d025a2c9d433",
    "hmm": "4189f578fe639a985799ba691441144ba5a544268f8452f449e851b886394fb8",
    "jtn": "59bad5460a30bd3ac26bb65290844de5957b338b492aed0f072dd2eea4a53d47",
    "latent_gan": "000c386a79ab4d5c1bb13491b530834dd8c0f70b5e70470524a9fa622ec1d050",
    "ngram": "8a64eaba2247dda0a40cb50a87fd3f527225fd0ab2527982b28cb1ee5939d1ee",
    "vae": "d912e213993129a371dfc169390fed6a40725697be45d0f0580934defa6f6433",
}
HERE = {
    "original": "moses_test.csv.gz", "ngram": "moses_ngram_3.csv.gz",
    "combinatorial": "moses_combinatorial_3_regenerated.csv.gz",
}  # fmt: skip
# The three published samples of the HMM: data/samples/hmm/metrics_hmm_{1,2,3}.csv of the same, commit 3d1fc01.
PUBLISHED_HMM = [
    {"sample": 1, "validity": 0.112700, "unique_at_1000": 0.493, "intdiv": 0.800085},
    {"sample": 2, "validity": 0.062533, "unique_at_1000": 0.640, "intdiv": 0.868956},
    {"sample": 3, "validity": 0.052733, "unique_at_1000": 0.736, "intdiv": 0.870876},
]
POINTER = "a git-LFS pointer"
Row = dict[str, Any]


# ------------------------------------------------------------------------------------------------------ numbers


def scores(molecules: Sequence[str]) -> Row:
    known = vm.metrics.molecules(molecules, unique_at=(1000,), nearest=False)
    return {
        "n": len(molecules),
        "vs": float(vm.score(molecules, KERNEL)),
        "intdiv": float(vm.metrics.intdiv(molecules, KERNEL)),
        "unique": known.uniqueness,
        "unique_at_1000": known.unique_at.get(1000),
        "largest_share": max(Counter(molecules).values()) / len(molecules),
        "mean_length": float(np.mean([len(text) for text in molecules])),
    }


def sample_files(options: Namespace) -> dict[str, Path]:
    """Model → its sample: from --samples, or else from the data folder."""
    found = {model: options.data / "molecules" / name for model, name in HERE.items()}
    if options.samples is not None:
        for model in PAPER:
            name = "test.csv" if model == "original" else f"{model}_3.csv"
            for path in (options.samples / name, options.samples / model / name):
                if path.exists():
                    found[model] = path
    return {model: path for model, path in found.items() if path.exists()}


def published(model: str, path: Path) -> str:
    """Whether a file is the published one, or a pointer to it."""
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    if content.startswith(b"version https://git-lfs"):
        return POINTER
    if path.name == HERE["original"]:  # the repository's file has another column
        content = b"".join(line + b",test\n" for line in content.split(b"\n")[:-1]).replace(
            b",test", b",SPLIT", 1
        )
    same = hashlib.sha256(content).hexdigest() == SHA256[model]
    return "the published file, by sha256" if same else "not the published file: another sha256"


def table_row(model: str, path: Path, size: int, larger: int) -> tuple[Row, list[str]]:
    data = vm.read(
        path, samples="SMILES", kind="molecules", skip_broken=True, limit=max(larger, BLOCKS * size)
    )
    molecules = [str(one) for one in data]
    blocks = [scores(molecules[first : first + size]) for first in range(0, len(molecules) - size + 1, size)]
    rest = {
        key: {"mean": float(np.mean(of)), "sd": float(np.std(of, ddof=1))}
        for key in ("vs", "intdiv") if len(of := [block[key] for block in blocks]) > 1
    }  # fmt: skip
    row = {"model": model, "file": path.name, "is": published(model, path), **scores(molecules[:size])}
    row |= {"blocks": len(blocks), "of_blocks": rest, "larger": scores(molecules[:larger])}
    return row | dict(zip(("paper_intdiv", "paper_vs"), PAPER[model], strict=True)), molecules[:size]


def hmm_stages(options: Namespace, claims: common.Claims) -> tuple[list[Row], list[str]]:
    """Scores of HMMs at the stages of their training, and the molecules of the first one at the published validity."""
    path = options.data / "molecules" / "moses_train_first10000.csv.gz"
    if not path.exists():
        why = f"{path.name}, the start of MOSES' training set, is not in the data folder: PyPI, molsets 0.3.1"
        claims.not_run("HMM", "IntDiv ranks the HMM among the most diverse models, VS as the least.", why=why)
        return [], []
    data = vm.read(path, samples="SMILES", kind="texts", limit=options.rows)
    texts = [str(one) for one in data]
    numbers = sorted({*(i for i in STAGES if i < options.iterations), options.iterations})
    stages, kept = [], {}
    for seed in range(1, options.seeds + 1):
        models = hmm.trained(texts, options.states, seed, numbers, options.galleries)
        course = []
        for i, model in models.items():
            valid, drawn = valid_molecules(model, options.size, [seed, i])
            if len(valid) < options.size:
                print(
                    f"HMM, seed {seed}, iteration {i}: {len(valid)} valid of {drawn:,}, too few to be compared"
                )
                continue
            kept[seed, i] = valid[: options.size]
            course.append({"seed": seed, "iteration": i, "last": i == options.iterations, "drawn": drawn,
                           "validity": len(valid) / drawn, **scores(valid[: options.size])})  # fmt: skip
        nearest = min(course, key=lambda row: abs(np.log(row["validity"] / HMM_VALIDITY)), default=None)
        stages += [row | {"matched": row is nearest} for row in course]
    return stages, next((kept[row["seed"], row["iteration"]] for row in stages if row["matched"]), [])


def valid_molecules(model: hmm.Model, size: int, seed: Sequence[int]) -> tuple[list[str], int]:
    """Valid molecules of a model, as many as asked for, and more from the last strings; how many strings were drawn."""
    rng, valid, drawn = np.random.default_rng(seed), [], 0
    while len(valid) < size and drawn < MOST_STRINGS:
        texts = hmm.strings(model, AT_ONCE, rng)
        valid += [text for text, sound in zip(texts, KERNEL.valid(texts), strict=True) if sound]
        drawn += AT_ONCE
    return valid, drawn


def draws_of(path: Path, size: int) -> Row:
    """The scores of random molecules of a file, in place of its first ones."""
    data = vm.read(path, samples="SMILES", kind="texts")
    found = []
    for seed in range(DRAWS):
        picked = np.random.default_rng([7, seed]).choice(len(data), size, replace=False)
        found.append(scores([str(data[int(i)]) for i in picked]))
    return {
        key: {"mean": float(np.mean(of)), "sd": float(np.std(of, ddof=1))}
        for key in ("vs", "intdiv") for of in [[one[key] for one in found]]
    }  # fmt: skip
