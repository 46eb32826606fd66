"""Samples of molecules and what they score, for `molecules.py`: the paper's numbers, files, HMMs that are fitted."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import _common as common
import _hmm as hmm
import vendimeter as vm
from vendimeter.errors import VendimeterError

KERNEL = vm.kernels.Morgan(radius=2, bits=1024)
SIZE, TEXT_SIZE, PICTURED = 1500, 2500, 250
BLOCKS, DRAWS = 4, 5  # blocks of valid rows, and random draws from the test set: how much the numbers vary
STAGES = [20, 30, 40, 50]  # iterations after which a fitted HMM is looked at, if it gets that far
AT_ONCE, MOST_STRINGS = (
    30_000,
    240_000,
)  # strings drawn from a fitted HMM: MOSES published 30,000 of each model

# IntDiv, VS: examples/molecules.ipynb of github.com/vertaix/Vendi-Score, of which the paper prints 3 and 4 digits.
PAPER = {
    "original": (0.8551, 403.93), "aae": (0.8592, 501.05), "char_rnn": (0.8563, 482.44),
    "combinatorial": (0.8729, 536.89), "hmm": (0.8707, 250.89), "jtn": (0.8556, 489.54),
    "latent_gan": (0.8569, 486.40), "ngram": (0.8736, 479.80), "vae": (0.8562, 475.28),
}  # fmt: skip
PICTURE = {
    "hmm": (0.853, 55.8),
    "aae": (0.849, 142.1),
    "original": (0.847, 127.7),
}  # in the notebook's picture
NAMES = {
    "original": "Original", "aae": "AAE", "char_rnn": "Char-RNN", "combinatorial": "Combinatorial", "hmm": "HMM",
    "jtn": "JTN", "latent_gan": "Latent GAN", "ngram": "N-gram", "vae": "VAE",
}  # fmt: skip
HMM_SAMPLES = {
    1: "hmm_1",
    2: "hmm_2",
    3: "hmm",
}  # MOSES published three samples a model; the paper has the third
# Of the files, from the git-LFS pointers of github.com/molecularsets/moses; "original" is its data/test.csv.
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
    "hmm_1": "6abe0f5895ab5d3873544e7e975fbed5e85bc5de1f9e06330693333d94926307",
    "hmm_2": "5a0179c53598790c533406a92137d139ab89ee2dc49283c6d1d0a0d03f33c84b",
}
REGENERATED = "moses_combinatorial_3_regenerated.csv.gz"
POINTER = b"version https://git-lfs"
WHERE = (
    "github.com/molecularsets/moses has it in data/samples (the original in data) by git lfs pull, and its history "
    "before git-LFS (commits 252353c and 7a2e233) has all but the Combinatorial one as plain files; name the folder "
    "with --samples"
)
FITTED = (
    "fitted HMM",
    "Whether IntDiv ranks an HMM among the most diverse depends on its fit; by VS it is the least diverse in any case.",
)
Row = dict[str, Any]


# -------------------------------------------------------------------------------------------------------- files


def sample_files(options: Namespace) -> dict[str, Path]:
    """Sample → its file: in the folder of --samples, as MOSES lays them out or all in one, or else among the data."""
    found = {}
    for sample in SHA256:
        stem = {"original": "test", "hmm_1": "hmm_1", "hmm_2": "hmm_2"}.get(sample, f"{sample}_3")
        places = [f"{stem}.csv", "../test.csv" if sample == "original" else f"{stem[:-2]}/{stem}.csv"]
        paths = [
            options.samples / f"{place}{ending}"
            for place in places for ending in ("", ".gz") if options.samples is not None
        ]  # fmt: skip
        name = REGENERATED if sample == "combinatorial" else f"moses_{stem}.csv.gz"
        paths.append(options.data / "molecules" / name)
        first = next((path for path in paths if path.is_file()), None)
        if first is not None:
            found[sample] = first
    return found


def content_of(path: Path) -> bytes:
    """What a file holds, unpacked; an error for a pointer to it."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise common.Missing(f"{path.name} cannot be unpacked ({error})") from None
    if content.startswith(POINTER):
        raise common.Missing(f"{path.name} is a git-LFS pointer and not the sample: {WHERE}")
    return content


def published(sample: str, content: bytes) -> str:
    """Whether a file is the published one."""
    if sample == "original" and content.startswith(b"SMILES\n"):  # the repository's file has another column
        rows = content.removesuffix(b"\n").split(b"\n")
        content = b"SMILES,SPLIT\n" + b"".join(row + b",test\n" for row in rows[1:])
    same = hashlib.sha256(content).hexdigest() == SHA256[sample]
    return "the published file, by sha256" if same else "not the published file: another sha256"


def read_sample(path: Path, content: bytes, most: int) -> tuple[list[str], bool, int]:
    """The first valid molecules of a file, whether its first line is one of them, and how many rows are not valid.

    A file without a column SMILES is a list of molecules, as MOSES' jtn_3.csv is, in which the header is missing.
    """
    first = content.split(b"\n", 1)[0].strip().removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    headed = "SMILES" in first.split(",")
    form: Row = {"samples": "SMILES"} if headed else {"format": "smi"}
    try:
        data = vm.read(path, kind="molecules", skip_broken=True, limit=most, **form)
    except VendimeterError as error:
        seen = str(error).replace(str(path), path.name)
        raise common.Missing(
            f"{path.name} is no sample of molecules, with or without a column SMILES: {seen}"
        ) from None
    molecules = [str(one) for one in data]
    return molecules, not headed and molecules[0] == first, data.skipped.count


# ------------------------------------------------------------------------------------------------------ numbers


def scores(molecules: Sequence[str]) -> Row:
    similarity = KERNEL.similarity(molecules).dense()
    return {
        "n": len(molecules),
        "vs": float(vm.score(similarity, "precomputed")),
        "intdiv": float(vm.metrics.intdiv(similarity, "precomputed")),
    }


def repeats(molecules: Sequence[str]) -> Row:
    return {
        "unique": vm.metrics.molecules(molecules, nearest=False).uniqueness,
        "largest_share": max(Counter(molecules).values()) / len(molecules),
    }


def spread(found: Sequence[Row]) -> Row:
    """Mean and standard deviation of several scores."""
    return {
        key: {"mean": float(np.mean(of)), "sd": float(np.std(of, ddof=1))}
        for key in ("vs", "intdiv") for of in [[one[key] for one in found]]
    }  # fmt: skip


def table_row(sample: str, path: Path, size: int, larger: int) -> tuple[Row, list[str]]:
    """What the first valid molecules of a sample score, as the authors' loader reads them: without the first line."""
    content = content_of(path)
    most = max(larger, BLOCKS * size) + 1
    whole, lost, invalid = read_sample(path, content, most)
    molecules = whole[lost:]
    if len(molecules) < size:
        raise common.Missing(
            f"{path.name} has {len(molecules):,} valid molecules, and a row of the table needs {size:,}"
        )
    blocks = [
        scores(molecules[at : at + size])
        for at in range(0, BLOCKS * size, size)
        if at + size <= len(molecules)
    ]
    row = {
        "sample": sample,
        "file": path.name,
        "is": published(sample, content),
        **blocks[0],
        **repeats(molecules[:size]),
        "with_first_line": scores(whole[:size]) if lost else None,
        "blocks": len(blocks),
        "of_blocks": spread(blocks) if len(blocks) > 1 else None,
        "larger": scores(molecules[:larger]) if len(molecules) >= larger else None,
    }
    if len(whole) < most:  # the file was read to its end
        row |= {"valid": len(whole), "rows": len(whole) + invalid}
    return row, molecules[:size]


def draws_of(path: Path, size: int) -> Row:
    """The scores of random molecules of a file, in place of its first ones."""
    data = vm.read(path, samples="SMILES", kind="texts")
    found = []
    for seed in range(DRAWS):
        picked = np.random.default_rng([7, seed]).choice(len(data), size, replace=False)
        found.append(scores([str(data[int(i)]) for i in picked]))
    return spread(found)


# --------------------------------------------------------------------------------------------------- fitted HMMs


def hmm_stages(options: Namespace, claims: common.Claims) -> list[Row]:
    """Scores of HMMs fitted here, at stages of their training."""
    if not options.seeds:
        return []
    path = options.data / "molecules" / "moses_train_first10000.csv.gz"
    if not path.exists():
        why = f"{path.name}, the start of MOSES' training set, is not in the data folder: PyPI, molsets 0.3.1"
        claims.not_run(*FITTED, why=why)
        return []
    data = vm.read(path, samples="SMILES", kind="texts", limit=options.rows)
    texts = [str(one) for one in data]
    numbers = sorted({*(i for i in STAGES if i < options.iterations), options.iterations})
    stages = []
    for seed in range(1, options.seeds + 1):
        models = hmm.trained(texts, options.states, seed, numbers, options.galleries)
        for i, model in models.items():
            valid, drawn = valid_molecules(model, options.size, [seed, i])
            stage = {"seed": seed, "iteration": i, "drawn": drawn, "validity": len(valid) / drawn}
            if len(valid) >= options.size:
                stages.append(stage | scores(valid[: options.size]))
            else:
                print(
                    f"HMM, seed {seed}, iteration {i}: {len(valid)} valid of {drawn:,}, too few to be compared"
                )
    return stages


def valid_molecules(model: hmm.Model, size: int, seed: Sequence[int]) -> tuple[list[str], int]:
    """Valid molecules of a model, as many as asked for, and more from the last strings; how many strings were drawn."""
    rng, valid, drawn = np.random.default_rng(seed), [], 0
    while len(valid) < size and drawn < MOST_STRINGS:
        texts = hmm.strings(model, AT_ONCE, rng)
        valid += [text for text, sound in zip(texts, KERNEL.valid(texts), strict=True) if sound]
        drawn += AT_ONCE
    return valid, drawn
