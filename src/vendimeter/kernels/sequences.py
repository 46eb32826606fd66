"""Kernels of sequences, such as DNA and proteins: k-mer spectra, edit distance, alignment."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.tokens import as_text, texts_of, tokens_of
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel
from vendimeter.kernels.kmers import (
    ALPHABETS,
    COMPLEMENTED,
    kmer_codes,
    kmer_counts,
    kmer_width,
    renumber_present,
)
from vendimeter.kernels.text import bags
from vendimeter.kernels.vectors import unit_rows
from vendimeter.messages import brief, unknown
from vendimeter.optional import require
from vendimeter.options import as_number, check_flag, whole_number
from vendimeter.similarity import FeatureRows, Features, Pairwise
from vendimeter.similarity.checks import Policy
from vendimeter.spectrum import UNIT

__all__ = ["Alignment", "Edit", "KMer", "aligner_of", "rounding_of"]

# The rounding of similarities whose scores are exact: two square roots and two divisions, and then some.
EXACT = 16 * UNIT
SERIAL = 4096  # pairs that are not worth starting threads for
STREAMED = 16_384  # columns of features that are accumulated, at most
HIGHEST = 1e100  # the score of a pair of letters: there is room for a sum of many


@dataclass(frozen=True)
class KMer(Kernel):
    """The spectrum kernel: the cosine of counts of k-mers, the subsequences of k letters in a row.

    Case is ignored. A sequence of fewer than k letters has one k-mer, itself. Sequences are texts, or those of
    Biopython.

    Parameters
    ----------
    k : int
        The length of a k-mer.
    alphabet : {"dna", "rna", "protein"}, optional
        The letters that count: ACGT (where U is read as T), ACGU (where T is read as U) or the 20 amino acids. K-mers
        with any other letter (N, X, ambiguity codes) are left out; a sequence of which nothing is left is an error, and
        so are gaps and other characters that are no letters. Columns are then the same for all batches, so that
        sequences can be accumulated, up to 16,384 columns: k up to 6, or 3 for proteins. By default all characters
        count.
    canonical : bool
        Count a k-mer and its reverse complement as one, for DNA and RNA of unknown strand.

    References
    ----------
    Leslie, Eskin, Noble: The spectrum kernel: a string kernel for SVM protein classification, PSB 2002.

    Examples
    --------
    >>> import vendimeter as vm
    >>> genes = ["ACGTACGT", "ACGTACGA", "TTTTGGGG"]
    >>> round(vm.score(genes, vm.kernels.KMer(3, "dna")), 4)
    2.169
    """

    k: int = 3
    alphabet: str | None = None
    canonical: bool = False
    name: ClassVar[str] = "kmer"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole_number(self.k, "k"))
        if self.alphabet is not None and self.alphabet not in ALPHABETS:
            raise unknown("alphabet", self.alphabet, ALPHABETS)
        if check_flag(self.canonical, "canonical") and self.alphabet not in COMPLEMENTED:
            raise InputError(
                f"canonical=True with alphabet={self.alphabet!r}; expected alphabet='dna' or 'rna', which have "
                "complements."
            )
        if self.alphabet is not None and len(ALPHABETS[self.alphabet]) ** self.k >= 2**62:
            raise InputError(
                f"k={self.k} with alphabet={self.alphabet!r}; expected fewer than 2⁶² possible k-mers. Use a smaller "
                "k, or leave alphabet= away.",
                option="k",
            )

    def __repr__(self) -> str:
        arguments = [str(self.k)] + ([] if self.alphabet is None else [repr(self.alphabet)])
        return f"KMer({', '.join(arguments + (['canonical=True'] if self.canonical else []))})"

    @property
    def needs_all(self) -> str | None:
        """Nothing where the alphabet is known."""
        if self.alphabet is None:
            return (
                "its columns are the k-mers that were met, and which there are is known only at the end. Say which "
                "letters there are: alphabet='dna' or 'protein'"
            )
        if (width := kmer_width(self.alphabet, self.k)) > STREAMED:
            largest_k = next(k for k in itertools.count(1) if kmer_width(self.alphabet, k + 1) > STREAMED)
            return (
                f"it has {width:,} columns, one a possible k-mer, and at most {STREAMED:,} are added up. Use "
                f"k={largest_k} or less, or score all items at once"
            )
        return None

    def build(self, samples: Any, rng: int) -> Features:
        """Sparse features: counts of the k-mers that were met."""
        sequences = _as_strings(samples, self.name)
        if self.alphabet is None:
            upper = [sequence.upper() for sequence in sequences]
            ids, starts, _ = tokens_of(upper, "characters", lowercase=False)
            return _unit_features(bags(ids, starts, self.k, self.k)[0], sequences)
        rows, codes = kmer_codes(sequences, self.k, self.alphabet, canonical=self.canonical)
        column, width = renumber_present(codes, kmer_width(self.alphabet, self.k))
        return _unit_features(kmer_counts(rows, column, (len(sequences), width)), sequences)

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """Sparse features whose column is the number of the k-mer."""
        assert self.alphabet is not None  # see needs_all
        sequences = _as_strings(samples, self.name)
        rows, codes = kmer_codes(sequences, self.k, self.alphabet, canonical=self.canonical)
        shape = (len(sequences), kmer_width(self.alphabet, self.k))
        return _unit_features(kmer_counts(rows, codes, shape), sequences).with_kernel(self)


@dataclass(frozen=True)
class Edit(Kernel):
    """Similarity by edit distance: 1 − d(a, b) / max(|a|, |b|), with d of Levenshtein.

    d counts the insertions, deletions and substitutions of characters (code points, case as it is) that turn a into b;
    or of tokens, where all items are lists of tokens. Two empty items are equal.

    Parameters
    ----------
    normalize : {"longest", "metric"}
        What d is divided by: the longer length, or with "metric" 1 − 2d / (|a| + |b| + d), where what is taken from 1
        is a metric.
    project : bool
        Drop negative eigenvalues, which this similarity may have, and record their mass as ``removed_mass`` in the
        diagnostics of the score. That needs all eigenvalues, whatever `tol` is. With False they are an
        `IndefiniteError`, also those of a sum or product that this kernel is a part of.

    References
    ----------
    Levenshtein 1966. Li, Liu: A normalized Levenshtein distance metric, IEEE PAMI 2007 ("metric").

    Examples
    --------
    >>> import vendimeter as vm
    >>> round(vm.score(["kitten", "sitting", "boat"], vm.kernels.Edit()), 4)
    2.6381
    """

    normalize: str = "longest"
    project: bool = True
    name: ClassVar[str] = "edit"

    def __post_init__(self) -> None:
        if self.normalize not in ("longest", "metric"):
            raise InputError(f"normalize={brief(self.normalize)}; expected 'longest' or 'metric'.")
        Policy(project=self.project)

    def __repr__(self) -> str:
        arguments = [] if self.normalize == "longest" else [repr(self.normalize)]
        return f"Edit({', '.join(arguments + ([] if self.project else ['project=False']))})"

    @property
    def needs_all(self) -> str:
        """No finite features."""
        return (
            "it compares sequences in pairs and has no features. Use KMer or NGram(…, hashed=4096), or score a "
            "random sample"
        )

    def build(self, samples: Any, rng: int) -> Pairwise:
        """Blocks of distances by RapidFuzz, on all cores."""
        process = require("rapidfuzz.process", extra="sequences", purpose="the edit kernel")
        distance = require("rapidfuzz.distance", extra="sequences", purpose="the edit kernel").Levenshtein
        texts = texts_of(samples, self.name, as_text=as_text)
        items = texts if isinstance(texts[0], str) else _encode_tokens(texts)
        lengths = np.array([len(item) for item in items], dtype=np.float64)

        def block(i: np.ndarray, j: np.ndarray) -> np.ndarray:
            left = [items[position] for position in i.tolist()]
            # One list for both sides is compared with itself by halves.
            right = left if np.array_equal(i, j) else [items[position] for position in j.tolist()]
            workers = -1 if len(i) * len(j) > SERIAL else 1
            distances = process.cdist(left, right, scorer=distance.distance, dtype=np.int32, workers=workers)
            a, b = lengths[i][:, None], lengths[j]
            normaliser = np.maximum(a, b) if self.normalize == "longest" else (a + b + distances) / 2
            return 1 - distances / np.maximum(normaliser, 1)

        mean = float(lengths.mean())
        return _make_pairwise(self, texts, block, rounding=4 * UNIT, cost=1e3 + 20 * mean + mean**2)


@dataclass(frozen=True)
class Alignment(Kernel):
    """Similarity by alignment: s(a, b) / √(s(a, a) s(b, b)), with s the score of the best alignment.

    Case is ignored. Equal sequences are aligned once.

    Parameters
    ----------
    matrix : str or (match, mismatch)
        What two letters score: a matrix of Biopython by its name (``"BLOSUM62"`` and others for proteins,
        ``"NUC.4.4"`` for DNA), or two numbers. "auto" takes NUC.4.4 where all letters are A, C, G, T, U or N (U as T),
        and BLOSUM62 otherwise; the score's diagnostics say which.
    mode : {"local", "global"}
        Smith–Waterman, or Needleman–Wunsch; where the latter scores below 0, the similarity is 0.
    gap_open, gap_extend : float
        What the first and each further letter of a gap cost, from 0 up; by default as in EMBOSS.
    project : bool
        Drop negative eigenvalues, which this similarity may have, and record their mass as ``removed_mass`` in the
        diagnostics of the score. That needs all eigenvalues, whatever `tol` is. With False they are an
        `IndefiniteError`, also those of a sum or product that this kernel is a part of.

    References
    ----------
    Smith, Waterman: Identification of common molecular subsequences, J Mol Biol 1981. Saigo, Vert, Ueda, Akutsu:
    Protein homology detection using string alignment kernels, Bioinformatics 2004 (why it may have negative
    eigenvalues).

    Examples
    --------
    >>> import vendimeter as vm
    >>> proteins = ["HEAGAWGHEE", "PAWHEAE", "HEAGAWGHE"]
    >>> round(vm.score(proteins, vm.kernels.Alignment(gap_open=8, gap_extend=8)), 4)
    1.8771
    """

    matrix: str | tuple[float, float] = "auto"
    mode: str = "local"
    gap_open: float = 10.0
    gap_extend: float = 0.5
    project: bool = True
    name: ClassVar[str] = "alignment"

    def __post_init__(self) -> None:
        Policy(project=self.project)
        if self.mode not in ("local", "global"):
            raise InputError(f"mode={brief(self.mode)}; expected 'local' or 'global'.")
        for option in ("gap_open", "gap_extend"):
            if not 0 <= as_number(getattr(self, option)) < math.inf:
                raise InputError(
                    f"{option}={brief(getattr(self, option))}; expected what a gap costs, a number from 0 up."
                )
        if isinstance(self.matrix, str):
            return
        pair = self.matrix if isinstance(self.matrix, list | tuple) else ()
        scores = tuple(as_number(score) for score in pair)
        if len(scores) != 2 or not all(map(math.isfinite, scores)) or not scores[0] > max(scores[1], 0):
            raise InputError(
                f"matrix={brief(self.matrix)}; expected the name of a matrix such as 'BLOSUM62', or two numbers: the "
                "score of a match, above 0, and of a mismatch, below it."
            )
        if max(map(abs, scores)) > HIGHEST:
            raise InputError(
                f"matrix={brief(self.matrix)}; expected scores up to {HIGHEST:g}, whose sums are numbers. Divide all "
                "scores and gaps by one number: only their ratios matter.",
                option="matrix",
            )
        object.__setattr__(self, "matrix", scores)

    @property
    def needs_all(self) -> str:
        """No finite features."""
        return "it compares sequences in pairs and has no features. Use KMer, or score a random sample"

    @property
    def fitted(self) -> bool:
        """Whether the matrix is known."""
        return self.matrix != "auto"

    def build(self, samples: Any, rng: int) -> Pairwise:
        """Blocks of scores, one alignment after another."""
        sequences = _as_strings(samples, self.name)
        items = [item.upper() for item in sequences]
        matrix = self.matrix
        if matrix == "auto":
            nucleic = set().union(*items) <= set("ACGTUN")
            matrix = "NUC.4.4" if nucleic else "BLOSUM62"
        if matrix == "NUC.4.4":
            items = [item.replace("U", "T") for item in items]
        gaps = float(self.gap_open), float(self.gap_extend)
        aligner = aligner_of(matrix, self.mode, gaps, items)
        # Filled when needed: to look at the plan should align nothing.
        self_scores = np.full(len(items), math.nan)

        def self_score(i: int) -> float:
            value = aligner.score(items[i], items[i]) if items[i] else 0.0
            if not value > 0:
                raise InputError(
                    f"item {i} ({brief(sequences[i])}) has the alignment score {value:g} with itself; expected one "
                    "above 0. Drop it, or use another matrix.",
                    item=i,
                )
            self_scores[i] = value
            return value

        def roots(positions: np.ndarray) -> np.ndarray:
            for i in positions[np.isnan(self_scores[positions])].tolist():
                self_score(i)
            return np.sqrt(self_scores[positions])

        def block(i: np.ndarray, j: np.ndarray) -> np.ndarray:
            roots_of_sides = roots(i), roots(j)
            half = np.array_equal(i, j)
            scores = np.zeros((len(i), len(j)))
            for a, first in enumerate(i.tolist()):
                for b in range(a if half else 0, len(j)):
                    second = int(j[b])
                    same = first == second
                    scores[a, b] = self_scores[first] if same else aligner.score(items[first], items[second])
            if half:
                scores += np.triu(scores, 1).T
            np.maximum(scores, 0.0, out=scores)
            scores /= roots_of_sides[0][:, None]
            scores /= roots_of_sides[1]
            if half:
                np.fill_diagonal(scores, 1.0)
            return scores

        mean = float(np.mean([len(item) for item in items]))
        rounding = rounding_of(aligner, gaps, items, self_score)
        cost = 2e4 + 50 * mean**2
        similarity = _make_pairwise(self, sequences, block, rounding=rounding, cost=cost, slow=True)
        return similarity.with_kernel(replace(self, matrix=matrix))


def _as_strings(samples: Any, kernel: str) -> list[str]:
    items = texts_of(samples, kernel, as_text=as_text)
    if not isinstance(items[0], str):
        raise InputError(
            f"item 0 is a list of tokens; the {kernel} kernel expected sequences (strings). Join it: ''.join(item)."
        )
    return items


def _unit_features(counts: Any, sequences: list[str]) -> Features:
    unit_rows(counts, np.arange(len(sequences)))
    longest = int(np.diff(counts.indptr).max())
    return FeatureRows(
        counts,
        rounding=(longest / 2 + 4) * UNIT,
        keys=lambda positions: [sequences[position] for position in positions.tolist()],
    )


def _encode_tokens(lists: list[tuple[Hashable, ...]]) -> list[Any]:
    """Lists of tokens as texts, a character a token, which are compared much faster."""
    ids, starts, vocabulary = tokens_of(lists, None, lowercase=False)
    parts = [ids[a:b].tolist() for a, b in itertools.pairwise(starts)]
    # There are 1,114,112 characters; of more tokens, the numbers themselves are compared.
    return ["".join(map(chr, part)) for part in parts] if len(vocabulary) <= 0x110000 else parts


def _make_pairwise(
    kernel: Edit | Alignment,
    items: list[Any],
    block: Any,
    *,
    rounding: float,
    cost: float,
    slow: bool = False,
) -> Pairwise:
    """Blocks of a similarity that is symmetric and 1 for equal items, but may have negative eigenvalues."""
    return Pairwise(
        len(items),
        block,
        rounding=rounding,
        trusted=kernel.project,  # nothing rests on eigenvalues from 0 up where they are looked at and projected
        policy=Policy(project=kernel.project),
        keys=lambda positions: [items[position] for position in positions.tolist()],
        triangle=(lambda positions: block(positions, positions)) if slow else None,
        cost=cost,
    )


# ------------------------------------------------------------------------------------------------- scores of alignments


def aligner_of(
    matrix: str | tuple[float, float], mode: str, gaps: tuple[float, float], items: list[str]
) -> Any:
    """Biopython's aligner for these items, each of which it can read."""
    align = require("Bio.Align", extra="sequences", purpose="the alignment kernel")
    aligner = align.PairwiseAligner()
    if isinstance(matrix, str):
        names = align.substitution_matrices.load()
        if matrix not in names:
            raise unknown("substitution matrix", matrix, names)
        aligner.substitution_matrix = _require_letters(align.substitution_matrices.load(matrix), matrix)
        _check_letters(items, set(aligner.substitution_matrix.alphabet), matrix)
    else:
        aligner.match_score, aligner.mismatch_score = matrix
        for i, item in enumerate(items):
            if item.isascii():
                continue
            surrogate = next((c for c in item if "\ud800" <= c <= "\udfff"), None)
            if surrogate is not None:
                raise InputError(
                    f"item {i} holds {brief(surrogate)}, half of a character (a lone surrogate); the alignment kernel "
                    "expected whole ones. Decode the text anew, or remove it.",
                    item=i,
                )
    aligner.mode = mode
    aligner.open_gap_score, aligner.extend_gap_score = -gaps[0], -gaps[1]
    return aligner


def _require_letters(table: Any, name: str) -> Any:
    if not isinstance(table.alphabet, str):
        raise InputError(
            f"matrix={name!r} scores {brief(table.alphabet[0])} and the like, three letters at a time; the alignment "
            "kernel compares single letters. Use a matrix of letters, such as 'NUC.4.4' for DNA or 'BLOSUM62' for "
            "proteins."
        )
    return table


def _check_letters(items: Sequence[str], letters: set[str], name: str) -> None:
    for i, item in enumerate(items):
        unknown_letter = next((letter for letter in item if letter not in letters), None)
        if unknown_letter is not None:
            advice = (
                "Remove gaps first: sequence.replace('-', '')."
                if unknown_letter in "-."
                else "Replace it by X or N."
            )
            raise InputError(
                f"item {i} holds the letter {brief(unknown_letter)}, which {name} does not score; expected "
                f"{''.join(sorted(letters))}. {advice}",
                item=i,
            )


def rounding_of(
    aligner: Any, gaps: tuple[float, float], items: list[str], self_score: Callable[[int], float]
) -> float:
    """A bound on the error of s(a, b) / √(s(a, a) s(b, b)), where the aligner adds in float64.

    Nothing is lost where all that is added is a multiple of one power of two, and sums stay below 2⁵³ of it. Otherwise
    each of up to |a| + |b| additions is off by a unit of the sum up to there. Rounding keeps the order of numbers, so
    that what the aligner finds is the largest of the rounded sums of all alignments. Of one that ends at 0 or above,
    no sum on the way is further from 0 than g(a), what the letters of a can score at most: the rest could not make
    up for it. With γ the units of all additions and r the largest g(a) / s(a, a), the error of s(a, b) is below
    γ r √(s(a, a) s(b, b)), that of the root below it a share γ r, and K is at most r.

    Parameters
    ----------
    aligner : PairwiseAligner
        From `aligner_of`.
    gaps : (float, float)
        What gaps cost.
    items : list of str
        The sequences.
    self_score : callable
        The score of an item with itself, above 0 or an error; asked for where the letters do not show it.
    """
    table = aligner.substitution_matrix
    pair_scores = [aligner.match_score, aligner.mismatch_score]
    if table is not None:
        pair_scores = np.unique(np.asarray(table)).tolist()
    steps = 2 * max(map(len, items))
    if _sums_are_exact([*pair_scores, *gaps], steps):
        return EXACT
    unit = steps * UNIT / (1 - 2 * steps * UNIT)
    upper, lower = _score_bounds(table, items, aligner.match_score)
    ratio = 0.0
    for i, item in enumerate(items):
        if not lower[i] > 2 * unit * upper[i]:  # aligned with itself otherwise than letter by letter
            lower[i] = self_score(i)
        if not lower[i] > 2 * unit * upper[i]:
            raise InputError(
                f"item {i} ({brief(item)}) has the alignment score {lower[i]:g} with itself, which may be rounding "
                "alone; expected more. Drop it, or use another matrix.",
                item=i,
            )
        ratio = max(ratio, upper[i] / (lower[i] - unit * upper[i]))
    return EXACT + unit * ratio * (1 + ratio) / (1 - unit * ratio)


def _score_bounds(table: Any, items: list[str], match: float) -> tuple[list[float], list[float]]:
    """An upper bound on what the letters of each item score, and what they score with themselves, letter by letter."""
    if table is None:
        sums = [len(item) * match for item in items]
        return sums, sums.copy()
    scores = np.asarray(table, dtype=np.float64)
    self_scores = np.diagonal(scores)
    # Also an upper bound on the terms of the other sum, for its rounding.
    largest = np.maximum(scores.max(axis=1), np.abs(self_scores))
    upper_bounds, self_sums = [], []
    for values, sums in ((largest, upper_bounds), (self_scores, self_sums)):
        score_of_letter = dict(zip(table.alphabet, values.tolist(), strict=True))
        sums.extend(math.fsum(map(score_of_letter.__getitem__, item)) for item in items)
    return upper_bounds, self_sums


def _sums_are_exact(values: Sequence[float], steps: int) -> bool:
    """Whether sums of this many of these numbers are exact in float64, in whatever order."""
    fractions = [abs(Fraction(value)) for value in values if value]
    if not fractions:
        return True
    # A float is an odd number times a power of two: the least of these powers divides all of them.
    power = min(Fraction(f.numerator & -f.numerator, f.denominator) for f in fractions)
    return steps * max(fractions) < 2**53 * power
