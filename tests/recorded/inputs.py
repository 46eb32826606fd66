"""Small inputs of every kind, made from fixed seeds; nothing changes them, and arrays refuse to be written to."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


@cache
def vectors() -> np.ndarray:
    """40 rows in four clusters of 15, 11, 8 and 6, among them copies of rows 0, 15 and 26 and a near copy of row 1."""
    rng = np.random.default_rng(101)
    centres = 2.0 * rng.standard_normal((4, 6))
    rows = np.repeat(centres, [15, 11, 8, 6], axis=0) + 0.5 * rng.standard_normal((40, 6))
    rows[[14, 25, 33]] = rows[[0, 15, 26]]
    rows[13] = rows[1] + 1e-3
    return _frozen(rows)


@cache
def labels() -> list[str]:
    """The clusters of the vectors."""
    return [name for name, size in zip("abcd", (15, 11, 8, 6), strict=True) for _ in range(size)]


@cache
def weights() -> np.ndarray:
    """Probabilities of the vectors; two of them are zero."""
    raw = 1.0 + np.arange(40) % 7
    raw[[5, 30]] = 0
    return _frozen(raw / raw.sum())


@cache
def counts() -> np.ndarray:
    """How often each of the vectors occurs."""
    return _frozen(1 + np.arange(40) % 3)


@cache
def others() -> np.ndarray:
    """30 rows beside the vectors: three of the clusters, moved a little, and one row of the vectors."""
    rng = np.random.default_rng(102)
    rows = vectors()[np.arange(30) % 26] + 0.4 * rng.standard_normal((30, 6)) + 0.1
    rows[7] = vectors()[3]
    return _frozen(rows)


@cache
def many_vectors() -> np.ndarray:
    """240 rows of 5 columns in three clusters: enough for intervals and tests."""
    rng = np.random.default_rng(103)
    centres = 1.5 * rng.standard_normal((3, 5))
    return _frozen(np.repeat(centres, 80, axis=0) + 0.6 * rng.standard_normal((240, 5)))


@cache
def many_labels() -> list[str]:
    """Two groups of unlike size and a third, small one."""
    return ["x"] * 100 + ["y"] * 110 + ["z"] * 30


@cache
def points() -> np.ndarray:
    """60 different points in a plane."""
    return _frozen(np.random.default_rng(104).standard_normal((60, 2)))


@cache
def wide() -> np.ndarray:
    """30 rows of 300 columns, where distances come of products of matrices; one is a copy."""
    rows = np.random.default_rng(115).standard_normal((30, 300)) / 10
    rows[29] = rows[4]
    return _frozen(rows)


@cache
def captions() -> list[str]:
    subjects = ["a man riding a wave", "two dogs run on the beach", "an octopus opens a jar", "a red bus"]
    ends = ["", " in the sun", " at night while people watch", " near two big dogs", ", again and again"]
    texts = [subject + end for subject in subjects for end in ends]
    return [*texts, "a red bus", "An Octopus opens a jar", "two boats at sea", "rain"]


@cache
def dna() -> list[str]:
    """16 sequences: four ancestors, each with changed, shortened and copied ones."""
    rng = np.random.default_rng(105)
    ancestors = ["".join("ACGT"[i] for i in rng.integers(4, size=24)) for _ in range(4)]
    return [s for a in ancestors for s in (a, a[:10] + "T" + a[11:], a[3:20], a[:12] + a[:12])]


def smiles() -> list[str]:
    """12 molecules: one of them twice, and a pair of mirror images."""
    return [
        "CCO", "CCCO", "OCC", "c1ccccc1", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O", "CC(=O)Nc1ccc(O)cc1", "C1CCCCC1",
        "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "c1ccc2ccccc2c1",
    ]  # fmt: skip


def other_smiles() -> list[str]:
    return ["CCO", "CCN", "c1ccccc1C", "CC(=O)Oc1ccccc1", "O=C(O)c1ccccc1O", "C1CCCC1"]


@cache
def similarity() -> np.ndarray:
    """A similarity matrix of 20 items in the groups of `similarity_labels`."""
    rows = np.random.default_rng(106).standard_normal((20, 3)) + 2 * (np.arange(20) % 3)[:, None]
    squared = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    return _frozen(np.exp(-squared / 4))


@cache
def similarity_labels() -> list[int]:
    return [i % 3 for i in range(20)]


@cache
def distances() -> np.ndarray:
    """Euclidean distances of 20 points."""
    rows = np.random.default_rng(107).standard_normal((20, 3))
    return _frozen(np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2)))


@cache
def indefinite() -> np.ndarray:
    """A symmetric matrix with a diagonal of 1 and some negative eigenvalues."""
    wave = 0.05 * np.cos(np.add.outer(np.arange(20), np.arange(20)) ** 2)
    np.fill_diagonal(wave, 0)
    return _frozen(similarity() + wave)


@cache
def unscaled() -> np.ndarray:
    """A similarity matrix whose diagonal is not 1."""
    scale = 1 + np.arange(20) / 10
    return _frozen(similarity() * np.outer(scale, scale))


@cache
def skew() -> np.ndarray:
    """A similarity matrix that is not symmetric."""
    wave = 0.01 * np.sin(np.subtract.outer(np.arange(20), np.arange(20)))
    return _frozen(similarity() + wave * similarity())


@cache
def matrices() -> np.ndarray:
    """A stack of four similarity matrices of 6 items."""
    return _frozen(np.stack([similarity()[i : i + 6, i : i + 6] for i in (0, 3, 7, 11)]))


@cache
def sparse_similarity() -> Any:
    """A sparse similarity matrix of 24 items in connected parts of 1 to 7."""
    from scipy import sparse

    starts = [0, 1, 3, 6, 10, 17, 20]
    blocks = [similarity()[i:j, i:j] for i, j in pairwise(starts)]
    return sparse.csr_array(sparse.block_diag([*blocks, np.eye(4)], format="csr"))


@cache
def sparse_rows() -> Any:
    """30 sparse rows of 40 columns."""
    from scipy import sparse

    rng = np.random.default_rng(108)
    return sparse.csr_array(rng.random((30, 40)) * (rng.random((30, 40)) < 0.2) + np.eye(30, 40))


@cache
def bits() -> np.ndarray:
    """30 binary rows, two of them copies."""
    rows = np.random.default_rng(109).random((30, 16)) < 0.3
    rows[:, 0] |= ~rows.any(axis=1)
    rows[[28, 29]] = rows[[0, 4]]
    return _frozen(rows)


@cache
def sets() -> list[set[int]]:
    """The binary rows as sets of what is in them."""
    return [set(np.flatnonzero(row).tolist()) for row in bits()]


@cache
def logits() -> np.ndarray:
    return _frozen(2 * np.random.default_rng(110).standard_normal((30, 5)))


@cache
def probabilities() -> np.ndarray:
    """30 rows of the probabilities of 5 classes."""
    raised = np.exp(logits())
    return _frozen(raised / raised.sum(axis=1, keepdims=True))


@cache
def table() -> dict[str, Any]:
    """18 records with two columns of names, one of texts and two of numbers."""
    return {
        "shape": [("disc", "star", "ring")[i % 3] for i in range(18)],
        "colour": [("red", "blue")[i // 5 % 2] for i in range(18)],
        "text": captions()[:18],
        "size": [float(i * i % 11) for i in range(18)],
        "quality": [0.5 + (i * 5 % 7) / 7 for i in range(18)],
    }


def records() -> list[tuple[str, str]]:
    """The names in the table, a pair a record."""
    return list(zip(table()["shape"], table()["colour"], strict=True))


@cache
def tags() -> list[list[str]]:
    names = ["sweet", "floral", "smoky", "green", "wood"]
    lists = [[names[i % 5], names[i * i % 5], names[(i + 2) * 3 % 5]] for i in range(15)]
    return [*lists, [], ["sweet"]]


@cache
def pictures() -> list[np.ndarray]:
    """10 grey pictures of 8×8 pixels."""
    rng = np.random.default_rng(111)
    return [_frozen(rng.integers(256, size=(8, 8)).astype(np.uint8)) for _ in range(10)]


@cache
def classes() -> list[int]:
    """120 numbers of 7 classes, rare and common."""
    return [min(6, int(v)) for v in np.random.default_rng(112).geometric(0.35, size=120)]


@cache
def places() -> list[float]:
    """12 numbers, two of them alike, to be compared by a function."""
    return [round(float(v), 3) for v in np.random.default_rng(113).uniform(0, 8, size=11)] + [2.5]


@cache
def many_places() -> list[int]:
    """90 whole numbers, some alike, to be compared by a function."""
    return np.random.default_rng(114).integers(0, 600, size=90).tolist()
