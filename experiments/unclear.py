"""What in Friedman and Dieng, The Vendi Score (TMLR 2023), does not hold as printed or is unclear, each by computation.

Every finding has what is printed, what was computed, and what is meant instead. Those that need data of other
experiments (captions, decoders, mode dropping, molecules, sample complexity) take the numbers from the results of their
scripts, which have to be run before.
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
from _captions import TABLE, TEXT
from _image_models import LSUN, printed
from sample_complexity import SHALLOW, SIZES
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


def index_of_the_heading(results: Path) -> Finding | None:
    captions, decoders = read(results / "captions.json"), read(results / "decoders.json")
    if captions is None or decoders is None:
        return None
    verdicts = {one["name"]: one["verdict"] for one in decoders["claims"]}
    neither = verdicts["table, column"] == common.NOT_REPRODUCED
    return finding(
        "Table of captions, heading of its last column",
        "D₁ᴷ, which is how Leinster and Cobbold write their index of order 1 (the other tables have VS); the caption "
        "says VS with a BLEU kernel",
        f"human captions by that index: {found_in(captions, 'by d₁ᴷ')}. Beside beam search: "
        f"{found_in(decoders, 'column')}",
        "not known" + ("; no formula at hand gives both ends of the column" if neither else ""),
    )


def correlation_of_both(results: Path) -> Finding | None:
    held = read(results / "mode_dropping.json")
    if held is None or "XNLI" not in held["rows"]:
        return None
    own, printed = held["rows"]["XNLI"]["given"], held["multinli"]["pearson"]
    means = {
        kind: " and ".join(
            f"{own[kind][key]['mean']:.3f} ± {own[kind][key]['sd']:.3f} for {name}"
            for key, name in (("vs", "VS"), ("intdiv", "IntDiv"))
        )
        for kind in ("pearson", "spearman")
    }
    digits = held["rows"]["MNIST"]["given"]["pearson"]
    assert printed["vs"] < printed["intdiv"]
    assert digits["vs"]["mean"] > digits["intdiv"]["mean"]
    return finding(
        "Appendix, mode dropping, correlations",
        "In both cases, VS has a stronger correlation with the number of modes compared to IntDiv",
        f"the authors' notebook prints, of MultiNLI, Pearson {printed['vs']} for VS and {printed['intdiv']} for "
        f"IntDiv: weaker for VS, which is ahead by Spearman only. Of XNLI in its place, Pearson {means['pearson']}, "
        f"Spearman {means['spearman']}",
        "in both cases by rank correlation; by Pearson's for MNIST only",
    )


def genres_of_the_mismatched_part(results: Path) -> Finding | None:
    held = read(results / "mode_dropping.json")
    if held is None or held["multinli"]["premises_of_the_matched_part"] is None:
        return None
    matched, both = (held["multinli"][f"premises_of_{part}"] for part in ("the_matched_part", "both"))
    assert (matched, both - matched) == (4 * 667 + 666, 5 * 667)
    return finding(
        "Appendix, mode dropping, MultiNLI",
        "the premise sentences from the validation split (mismatched), which are drawn from one of ten genres",
        f"the authors' notebook takes both parts of the validation split and counts {both:,} premises, 667 of each of "
        f"ten genres but 666 of fiction. The matched part alone has {matched:,} = 4 × 667 + 666 different ones, which "
        f"leaves {both - matched:,} = 5 × 667: five genres each",
        "both parts, of five genres each",
    )


def diamonds_and_spade() -> Finding:
    kernel = (
        vm.kernels.On("shape", vm.kernels.Match()) * 0.5 + vm.kernels.On("colour", vm.kernels.Match()) * 0.5
    )

    def score(shapes: list[str], colours: list[str], weights: list[float] | None = None) -> float:
        return float(vm.score({"shape": shapes, "colour": colours}, kernel, weights=weights))

    sample = score(["diamond"] * 90 + ["square"] * 10, ["blue"] * 90 + ["yellow"] * 10)
    weighted = {
        shape: score([shape, "square"], ["blue", "yellow"], [0.9, 0.1]) for shape in ("diamond", "spade")
    }
    apart = score(["diamond", "spade"], ["blue", "blue"])
    assert np.isclose(sample, weighted["diamond"])
    assert np.isclose(sample, weighted["spade"])
    return finding(
        "Section 3.2, identical elements",
        "a sample of 90 blue diamonds and 10 yellow squares is equivalent to one blue spade and one yellow square with "
        "p = (0.9, 0.1)",
        f"by shape and colour the sample scores {sample:.6f}, and so does one blue diamond with one yellow square "
        f"({weighted['diamond']:.6f}); one blue spade does, too ({weighted['spade']:.6f}), because neither shape is a "
        f"square. But a spade is no diamond: the two score {apart:.4f}",
        "one blue diamond, which is identical to the ninety",
    )


def terms_of_the_weighted_score() -> Finding:
    p = np.array([0.5, 0.3, 0.2])
    terms = -p * np.log(p)
    score = float(vm.score(np.eye(3), "precomputed", weights=p))
    assert np.isclose(score, np.exp(terms.sum()))
    assert not np.isclose(score, np.exp(terms[:2].sum()))
    return finding(
        "Appendix, definition A.1 and the proof of lemma A.1",
        "exp(−Σ λᵢ log λᵢ), with a sum over i = 1 … S, and eigenvalues λ₁ … λ_S",
        "S is not defined; the matrix is n×n. Of three dissimilar elements with p = (0.5, 0.3, 0.2) all n terms give "
        f"{score:.6f}, which is exp H(p), as lemma A.1 has it; the first two of them give "
        f"{np.exp(terms[:2].sum()):.6f}",
        "n, the number of elements (S is the number of species where ecology writes such a sum)",
    )


def precision_and_recall() -> Finding:
    n = 400
    reference = np.random.default_rng([SEED, 0]).uniform(size=(n, 1))  # one half on either side of 0.5
    samples = np.random.default_rng([SEED, 1]).uniform(size=(n, 1))
    samples[: 9 * n // 10] /= 2  # of the samples more than nine tenths are on the left
    one = vm.metrics.precision_recall(samples, reference, k=3)
    shares = [np.array([np.mean(x < 0.5), np.mean(x >= 0.5)]) for x in (reference, samples)]
    curve = [
        (
            float(np.minimum(slope * shares[0], shares[1]).sum()),
            float(np.minimum(shares[0], shares[1] / slope).sum()),
        )
        for slope in (0.25, 1.0, 4.0)
    ]
    return finding(
        "Section 4.4, image models: precision and recall",
        "Precision and Recall (Sajjadi et al. 2018), one number of each for a model",
        "those of Sajjadi and others are a curve of pairs, from how the two distributions are spread over bins; the "
        "paper's are from the evaluation code of Dhariwal and Nichol, which computes a single pair from balls around "
        "points with radii to the third neighbour, as Kynkäänniemi and others do (2019). They differ: of points on a "
        f"line, spread evenly in the reference, with {shares[1][0]:.0%} of the samples in its left half, the curve "
        f"over the two halves has (precision, recall) {', '.join(f'({a:.2f}, {b:.2f})' for a, b in curve)} at slopes "
        f"¼, 1 and 4, and the single pair is ({one.precision:.2f}, {one.recall:.2f})",
        "improved precision and recall (Kynkäänniemi et al. 2019), which vm.metrics.precision_recall computes",
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


def rate_of_the_bound(results: Path) -> Finding | None:
    held = read(results / "sample_complexity.json")
    if held is None:
        return None
    slopes = {name: row["slope"] for name, row in held["rows"].items()}
    slow = [f"{slope:.2f} ({name})" for name, slope in slopes.items() if slope > SHALLOW]
    fast = [slope for slope in slopes.values() if slope <= SHALLOW]
    assert slow
    return finding(
        "Section 3 and appendix, sample complexity: the rate",
        "the empirical estimator has a convergence rate proportional to 1/√n (Bach 2022); no condition is named",
        f"at n = {SIZES[1]} to {SIZES[-1]:,} the bias of the score falls as n to the power {'; '.join(slow)}: slower "
        "than 1/√n, as does the share of the classes that a sample lacks, n^(1/s − 1) for frequencies ∝ 1/k^s. Of the "
        f"other {len(fast)} populations of sample_complexity.py the power is {min(fast):.2f} to {max(fast):.2f}",
        "1/√n, but for a factor of log n, where the spectrum of the population falls fast enough, as Bach's theorem "
        "has it",
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
        "a bound with a constant that depends on the kernel and the distribution, for those whose spectrum falls fast "
        "enough",
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
    fits = {
        target: dict.fromkeys(row["kernel"] for row in held["readings"] if target in row["fits"])
        for target in (TABLE, TEXT)
    }
    return finding(
        "Table of captions and its text",
        "human captions score 3.12 (table) and 4.88 (text), by a BLEU kernel (caption) or by n-grams (text); γ is 0.2, "
        "0.5, 0.5 (table) and 0.2, 0.6, 0.8 (text)",
        f"{found_in(held, 'by bleu')}; {found_in(held, 'by n-grams')}",
        "not known. Of all readings that captions.py computes these fit: "
        + "; ".join(f"{target}: {', '.join(kernels) or 'none'}" for target, kernels in fits.items()),
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
]


def main(argv: Sequence[str] | None = None) -> int:
    options = common.parsed(common.parser_of(__doc__), argv)
    found = [
        kernel_without_minus(),
        diamonds_and_spade(),
        transposed_features(),
        molecules_of_a_row(common.RESULTS),
        valid_molecules_of_the_hmm(common.RESULTS),
        lost_molecule(common.RESULTS),
        order_of_the_original(common.RESULTS),
        order_of_the_kernel_matrices(common.RESULTS),
        captions_of_humans(common.RESULTS),
        index_of_the_heading(common.RESULTS),
        modes_and_mode_diversity(common.RESULTS),
        highest_similarity(),
        precision_and_recall(),
        no_model_matches(),
        inception_score_of_lsun(),
        terms_of_the_weighted_score(),
        genres_of_the_mismatched_part(common.RESULTS),
        correlation_of_both(common.RESULTS),
        last_line_of_the_bound(),
        constant_of_the_bound(),
        rate_of_the_bound(common.RESULTS),
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
