"""The metrics that are reported beside the Vendi Score, each with its formula, its reference and its limits.

Functions of one collection take ``(samples, …)``, those that compare two ``(samples, reference, …)``; each of these may
be a `Collection` or a `Diversity`. Of a `Diversity` functions with a kernel take its similarities, weights and seed,
those of vectors what its encoder made, and others its samples. One figure is a float or an int that knows more about
itself; several have names.
"""

from vendimeter.metrics.chemistry import MoleculeFigures, molecules
from vendimeter.metrics.classes import (
    InceptionScore,
    hill,
    inception_score,
    jensen_shannon_diversity,
    mode_diversity,
    number_of_modes,
)
from vendimeter.metrics.collisions import BirthdayParadox, birthday_paradox
from vendimeter.metrics.discrepancy import KernelDistance, kernel_distance
from vendimeter.metrics.frechet import FrechetDistance, frechet_distance
from vendimeter.metrics.graphs import Components, components
from vendimeter.metrics.grids import GridCoverage, grid_coverage
from vendimeter.metrics.lexical import CompressionRatio, NgramDiversity, compression_ratio, ngram_diversity
from vendimeter.metrics.manifolds import (
    DensityCoverage,
    Memorization,
    PrecisionRecall,
    density_coverage,
    memorization,
    precision_recall,
)
from vendimeter.metrics.moments import Moments
from vendimeter.metrics.overlap import PairwiseBLEU, d_lex_sim, pairwise_bleu, self_bleu
from vendimeter.metrics.packing import Circles, circles
from vendimeter.metrics.precision_curves import PrecisionRecallCurve, precision_recall_curve
from vendimeter.metrics.quality import CorpusBLEU, corpus_bleu
from vendimeter.metrics.similarities import SimilarityProfile, intdiv, leinster_cobbold, mean_similarity
from vendimeter.metrics.spectra import LogDet, effective_rank, log_det
from vendimeter.metrics.tables import Table, table
from vendimeter.metrics.texts import Overlap

__all__ = [
    "BirthdayParadox",
    "Circles",
    "Components",
    "CompressionRatio",
    "CorpusBLEU",
    "DensityCoverage",
    "FrechetDistance",
    "GridCoverage",
    "InceptionScore",
    "KernelDistance",
    "LogDet",
    "Memorization",
    "MoleculeFigures",
    "Moments",
    "NgramDiversity",
    "Overlap",
    "PairwiseBLEU",
    "PrecisionRecall",
    "PrecisionRecallCurve",
    "SimilarityProfile",
    "Table",
    "birthday_paradox",
    "circles",
    "components",
    "compression_ratio",
    "corpus_bleu",
    "d_lex_sim",
    "density_coverage",
    "effective_rank",
    "frechet_distance",
    "grid_coverage",
    "hill",
    "inception_score",
    "intdiv",
    "jensen_shannon_diversity",
    "kernel_distance",
    "leinster_cobbold",
    "log_det",
    "mean_similarity",
    "memorization",
    "mode_diversity",
    "molecules",
    "ngram_diversity",
    "number_of_modes",
    "pairwise_bleu",
    "precision_recall",
    "precision_recall_curve",
    "self_bleu",
    "table",
]
