"""What in Friedman and Dieng, The Vendi Score (TMLR 2023), does not hold as printed or is unclear, each by computation.

Every finding has what is printed, what was computed, and what is meant instead. Those that need data of other
experiments (captions, molecules) take the numbers from the results of their scripts, which have to be run before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import _common as common
import vendimeter as vm
from _image_models import LSUN, printed
from sample_complexity import SIZES
from vendimeter.errors import VendimeterError

Finding = dict[str, str]
SEED = 2023


def finding(where: str, printed: str, computed: str, meant: str) -> Finding:
    return {"where": where, "printed": printed, "computed": computed, "meant": meant}


def kernel_without_minus() -> Finding:
    x = np.array([0.0, 1.0, 2.0])
    grown = np.exp((x[:, None] - x) ** 2 / 2)
    lowest = float(np.linalg.eigvalsh(grown)[0])
    assert lowest < 0
    try:
        vm.score(grown, kernel="precomputed")
        raise AssertionError("a matrix with a negative eigenvalue was scored")
    except VendimeterError as error:
        refused = type(error).__name__
    score = vm.score(np.exp(-((x[:, None] - x) ** 2) / 2), kernel="precomputed")
    return finding(
        "Section 4.1, the kernel of the normal mixtures",
        "k(x, x′) = exp(‖x − x′‖² / 2σ²)",
        f"of the points 0, 1, 2 with σ = 1: similarities up to {grown.max():.2f}, lowest eigenvalue {lowest:.2f}; it "
        f"is no kernel, and is refused ({refused})",
        f"exp(−‖x − x′‖² / 2σ²), by which these points score {score:.2f}",
    )


def transposed_features() -> Finding:
    X = np.random.default_rng(SEED).standard_normal((200, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    items, columns = X @ X.T, X.T @ X
    assert items.shape == (200, 200)
    top = np.linalg.eigvalsh(items)[-5:]
    gap = float(np.abs(top - np.linalg.eigvalsh(columns)).max())
    return finding(
        "Section 3.3, embeddings",
        "K = XᵀX for X of shape n×d, and the covariance XXᵀ/n",
        f"for X of 200×5, XᵀX is 5×5 and XXᵀ is 200×200; their non-zero eigenvalues agree to {gap:.0e}, which is what "
        f"the passage is about: score {vm.score(X):.4f} either way",
        "K = XXᵀ, and the covariance XᵀX/n",
    )


def highest_similarity() -> Finding:
    axes = vm.score(np.repeat(np.eye(64), 4, axis=0))
    return finding(
        "Section 4.4, image models",
        "the highest possible similarity score is 2048, for cosine similarity of 2048-dimensional vectors",
        "a cosine is at most 1. What the number of dimensions bounds is the Vendi Score: 256 vectors along 64 axes "
        f"score {axes:.4g}",
        "the highest possible Vendi Score is 2048, or n if that is less",
    )


def modes_and_mode_diversity(results: Path) -> Finding | None:
    held = read(results / "stacked_mnist.json")
    if held is None:
        return None
    return finding(
        "Section 4.3, Stacked MNIST",
        "the models score lower on VS than on Mode Diversity, indicating that low scores cannot be entirely attributed "
        "to imbalances in the mode distribution",
        "VS is at most Mode Diversity for any samples, since eigenvalues majorise the diagonal, which is the "
        f"distribution of modes. {found_in(held, 'below mode diversity')}",
        "that it is lower by so much more than for the original",
    )


def last_line_of_the_bound() -> Finding:
    n = np.array(SIZES, dtype=float)
    right, printed = 1 - np.exp(-1 / np.sqrt(n)), 1 - 1 / np.sqrt(n)
    return finding(
        "Appendix, sample complexity, last line",
        "exp(H) − exp(H)/exp(1/√n) = exp(H)(1 − 1/√n)",
        f"at n = {SIZES[0]} the left side is {right[0]:.3f} exp(H), the right one {printed[0]:.3f} exp(H); at "
        f"n = {SIZES[-1]} they are {right[-1]:.3f} and {printed[-1]:.3f}: the printed bound grows with n, to exp(H)",
        "exp(H)(1 − e^(−1/√n)), which is at most exp(H)/√n",
    )


def constant_of_the_bound() -> Finding:
    classes, n = 64, 50
    draws = [np.random.default_rng([SEED, k]).integers(classes, size=n) for k in range(20)]
    mean = float(np.mean([float(vm.score(draw.tolist(), vm.kernels.Match())) for draw in draws]))
    bound = classes * (1 - np.exp(-1 / np.sqrt(n)))
    assert classes - mean > bound
    return finding(
        "Appendix, sample complexity, first line",
        "exp(H) − exp(Ĥ) ≤ exp(H) − exp(H − 1/√n)",
        f"of {classes} equally frequent classes, {n} samples score {mean:.1f} in the mean: {classes - mean:.1f} too "
        f"low, where the bound allows {bound:.1f}",
        "a bound that falls as 1/√n, with a constant that depends on the kernel and the distribution",
    )


def no_model_matches() -> Finding:
    originals, models = printed()
    rows = [(data, model, row) for data, of in models.items() for model, row in of.items()]
    above = [
        f"{model} {row['VS_P']:.2f} > {originals[data]['VS_P']:.2f} on {data}"
        for data, model, row in rows
        if row["VS_P"] > originals[data]["VS_P"]
    ]
    by_encoder = [model for data, model, row in rows if row["VS_I"] > originals[data]["VS_I"]]
    assert above
    assert not by_encoder
    return finding(
        "Table of image models",
        "No model matches the diversity score of the original dataset",
        f"it holds by Inception, and fails by pixels in the paper's own appendix table: {'; '.join(above)}",
        "no model matches it by Inception's similarity",
    )


def inception_score_of_lsun() -> Finding:
    parts = []
    for data in LSUN:
        scores = {model: row["IS"] for model, row in printed()[1][data].items()}
        best = max(scores, key=scores.__getitem__)
        assert best != "ADM"  # the diffusion model
        parts.append(f"on {data} it is {best} with {scores[best]} (ADM has {scores['ADM']})")
    return finding(
        "Table of image models, caption",
        "On the LSUN datasets, the diffusion model gets the highest quality scores as measured by IS",
        f"the highest IS in the table is not ADM's: {'; '.join(parts)}",
        "by precision and recall, as the text says",
    )


def molecules_of_a_row(results: Path) -> Finding | None:
    held = read(results / "molecules.json")
    if held is None:
        return None
    return finding(
        "Table of molecules",
        "the first 2,500 valid molecules in each sample; Original 403.9, N-gram 479.8",
        found_in(held, "size"),
        "the first 1,500, as in the authors' notebook",
    )


def order_of_the_original(results: Path) -> Finding | None:
    held = read(results / "molecules.json")
    if held is None:
        return None
    return finding(
        "Table of molecules, the row Original",
        "Original scores 403.9, less than seven of the eight models",
        found_in(held, "original below"),
        "not stated; a random sample of the test set is about as diverse as the models",
    )


def valid_molecules_of_the_hmm(results: Path) -> Finding | None:
    row = molecule_row(results, "hmm")
    if row is None:
        return None
    assert row["valid"] < 2500
    return finding(
        "Table of molecules, the row HMM",
        "the first 2,500 valid molecules in each sample",
        f"the sample of the HMM that MOSES published has {row['valid']:,} valid molecules in {row['rows']:,} rows, "
        f"{row['valid'] / row['rows']:.2%}; the first {row['n']:,} of them score {row['vs']:.1f}",
        "the first 1,500, which the HMM has, too",
    )


def lost_molecule(results: Path) -> Finding | None:
    row = molecule_row(results, "jtn")
    if row is None or row["with_first_line"] is None:
        return None
    whole = row["with_first_line"]
    return finding(
        "Table of molecules, the row JTN",
        "JTN scores 489.5 (489.54 in the authors' notebook)",
        "the file that MOSES published of the JTN has no header, and the authors' loader drops the first line of every "
        f"file: {row['n']:,} molecules without the first one score {row['vs']:.2f}, with it {whole['vs']:.2f}",
        f"{whole['vs']:.1f}, of the first 1,500 valid molecules",
    )


def order_of_the_kernel_matrices(results: Path) -> Finding | None:
    held = read(results / "molecules.json")
    if held is None:
        return None
    said = next((one for one in held["claims"] if one["name"] == "kernel matrices"), None)
    if said is None or said["verdict"] == common.NOT_RUN:
        return None
    hmm, data = held["matrices"]["hmm"], held["matrices"]["original"]
    behind = [hmm[way]["vs"] / data[way]["vs"] for way in ("first in the order", "as they come")]
    assert behind[0] < behind[1]
    return finding(
        "Figure of the kernel matrices of molecules",
        "the kernel matrices for 250 molecules sampled from the HMM, AAE, and the original dataset, sorted "
        "lexicographically by SMILES",
        f"{said['measured']}; the HMM has {behind[0]:.0%} and {behind[1]:.0%} of the original's VS",
        "the first 250 of 1,500 in the order of SMILES, as in the authors' notebook. Copies are neighbours there and "
        "are picked together, so that the HMM is further behind than with 250 molecules as they come",
    )


def molecule_row(results: Path, sample: str) -> dict[str, Any] | None:
    """What molecules.py found of a sample."""
    rows = (read(results / "molecules.json") or {"rows": []})["rows"]
    return next((row for row in rows if row["sample"] == sample), None)


def captions_of_humans(results: Path) -> Finding | None:
    held = read(results / "captions.json")
    if held is None:
        return None
    readings = [claim for claim in held["claims"] if claim["name"].startswith("reading: ")]
    fits = [one["name"].removeprefix("reading: ") for one in readings if one["verdict"] == common.REPRODUCED]
    return finding(
        "Table of captions and its text",
        "human captions score 3.12 (table) and 4.88 (text), by a BLEU kernel (caption) or by n-grams (text); γ is 0.2, "
        "0.5, 0.5 (table) and 0.2, 0.6, 0.8 (text)",
        found_in(held, "reading"),
        f"{', '.join(fits) + ', perhaps' if fits else 'none of these'}; captions.py computes every reading",
    )


def found_in(held: dict[str, Any], word: str) -> str:
    """What the claims of another script measured that are named so."""
    return "; ".join(record["measured"] for record in held["claims"] if word in record["name"].lower())


def read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


OUT_OF_SCOPE = [
    {
        "what": "GILBO",
        "why": "it bounds the information between latent variables and samples, so that it exists for latent-variable "
        "models only, and needs the model; Vendimeter sees samples",
    },
    {
        "what": "Diversity and inclusion metrics of socially relevant attributes (Mitchell et al. 2020)",
        "why": "they are about how people are represented, by attributes that somebody has to choose and record; a "
        "similarity matrix does not know them. Scores by such attributes are vm.score_groups and kernels on columns",
    },
    {
        "what": "The Jensen–Shannon diversity of ensembles (Kviman et al. 2022)",
        "why": "it is defined for sets of probability distributions, not of samples",
    },
]


def main(argv: Sequence[str] | None = None) -> int:
    options = common.parsed(common.parser_of(__doc__), argv)
    found = [
        kernel_without_minus(),
        transposed_features(),
        molecules_of_a_row(common.RESULTS),
        valid_molecules_of_the_hmm(common.RESULTS),
        lost_molecule(common.RESULTS),
        order_of_the_original(common.RESULTS),
        order_of_the_kernel_matrices(common.RESULTS),
        captions_of_humans(common.RESULTS),
        modes_and_mode_diversity(common.RESULTS),
        highest_similarity(),
        no_model_matches(),
        inception_score_of_lsun(),
        last_line_of_the_bound(),
        constant_of_the_bound(),
    ]
    findings = [one for one in found if one is not None]
    for one in findings:
        print(
            one["where"],
            *(f"  {key + ':':9} {one[key]}" for key in ("printed", "computed", "meant")),
            sep="\n",
        )
    results = {"findings": findings, "out_of_scope": OUT_OF_SCOPE}
    common.write(options.out, "unclear", results, None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
