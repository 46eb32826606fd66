"""Scores of alignments: Biopython's aligner, and how far rounding may put what it gives off."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from vendimeter.errors import InputError, brief, unknown
from vendimeter.optional import require
from vendimeter.spectrum import UNIT

__all__ = ["aligner_of", "rounding_of"]

EXACT = 16 * UNIT  # where scores are exact: two square roots and two divisions, and then some


def aligner_of(
    matrix: str | tuple[float, float], mode: str, gaps: tuple[float, float], items: list[str]
) -> Any:
    """Biopython's aligner for these items, each of which it can read."""
    align = require("Bio.Align", extra="sequences", purpose="the alignment kernel")
    aligner = align.PairwiseAligner()
    if isinstance(matrix, str):
        known = align.substitution_matrices.load()
        if matrix not in known:
            raise unknown("substitution matrix", matrix, known)
        aligner.substitution_matrix = _of_letters(align.substitution_matrices.load(matrix), matrix)
        _check_letters(items, set(aligner.substitution_matrix.alphabet), matrix)
    else:
        aligner.match_score, aligner.mismatch_score = matrix
        for i, item in enumerate(items):
            half = next((c for c in item if "\ud800" <= c <= "\udfff"), None) if not item.isascii() else None
            if half is not None:
                raise InputError(
                    f"item {i} holds {brief(half)}, half of a character (a lone surrogate); the alignment kernel "
                    "expected whole ones. Decode the text anew, or remove it.",
                    item=i,
                )
    aligner.mode = mode
    aligner.open_gap_score, aligner.extend_gap_score = -gaps[0], -gaps[1]
    return aligner


def _of_letters(table: Any, name: str) -> Any:
    if not isinstance(table.alphabet, str):
        raise InputError(
            f"matrix={name!r} scores {brief(table.alphabet[0])} and the like, three letters at a time; the alignment "
            "kernel compares single letters. Use a matrix of letters, such as 'NUC.4.4' for DNA or 'BLOSUM62' for "
            "proteins."
        )
    return table


def _check_letters(items: Sequence[str], letters: set[str], name: str) -> None:
    for i, item in enumerate(items):
        odd = next((letter for letter in item if letter not in letters), None)
        if odd is not None:
            advice = (
                "Remove gaps first: sequence.replace('-', '')." if odd in "-." else "Replace it by X or N."
            )
            raise InputError(
                f"item {i} holds the letter {brief(odd)}, which {name} does not score; expected "
                f"{''.join(sorted(letters))}. {advice}",
                item=i,
            )


def rounding_of(
    aligner: Any, gaps: tuple[float, float], items: list[str], own: Callable[[int], float]
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
    own : callable
        The score of an item with itself, above 0 or an error; asked for where the letters do not show it.
    """
    table = aligner.substitution_matrix
    pair = [aligner.match_score, aligner.mismatch_score]
    steps = 2 * max(map(len, items))
    if _adds_exactly([*(pair if table is None else np.unique(np.asarray(table)).tolist()), *gaps], steps):
        return EXACT
    unit = steps * UNIT / (1 - 2 * steps * UNIT)
    most, least = _sums(table, items, pair[0])
    ratio = 0.0
    for i, item in enumerate(items):
        if not least[i] > 2 * unit * most[i]:  # aligned with itself otherwise than letter by letter
            least[i] = own(i)
        if not least[i] > 2 * unit * most[i]:
            raise InputError(
                f"item {i} ({brief(item)}) has the alignment score {least[i]:g} with itself, which may be rounding "
                "alone; expected more. Drop it, or use another matrix.",
                item=i,
            )
        ratio = max(ratio, most[i] / (least[i] - unit * most[i]))
    return EXACT + unit * ratio * (1 + ratio) / (1 - unit * ratio)


def _sums(table: Any, items: list[str], match: float) -> tuple[list[float], list[float]]:
    """What the letters of each item score at most, and with themselves, letter by letter."""
    if table is None:
        sums = [len(item) * match for item in items]
        return sums, sums.copy()
    scores = np.asarray(table, dtype=np.float64)
    own = np.diagonal(scores)
    most = np.maximum(scores.max(axis=1), np.abs(own))  # also of the terms of the other sum, for its rounding
    tables = [dict(zip(table.alphabet, values.tolist(), strict=True)) for values in (most, own)]
    sums_of_most, sums_of_own = ([math.fsum(map(of.__getitem__, item)) for item in items] for of in tables)
    return sums_of_most, sums_of_own


def _adds_exactly(values: Sequence[float], steps: int) -> bool:
    """Whether sums of this many of these numbers are exact in float64, in whatever order."""
    exact = [abs(Fraction(value)) for value in values if value]
    if not exact:
        return True
    # A float is an odd number times a power of two: the least of these powers divides all of them.
    power = min(Fraction(part.numerator & -part.numerator, part.denominator) for part in exact)
    return steps * max(exact) < 2**53 * power
