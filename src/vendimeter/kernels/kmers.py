"""K-mers of sequences over a known alphabet as whole numbers, whose digits are the letters."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.errors import InputError
from vendimeter.messages import brief

__all__ = ["ALPHABETS", "COMPLEMENTED", "kmer_codes", "kmer_counts", "kmer_width", "renumber_present"]

ALPHABETS = {"dna": "ACGT", "rna": "ACGU", "protein": "ACDEFGHIKLMNPQRSTVWY"}
COMPLEMENTED = {"dna": ("U", "T"), "rna": ("T", "U")}  # the first letter is read as the second
FEW = 1 << 22  # columns that are counted rather than sorted
_OUTSIDE, _NO_LETTER = -1, -2  # a letter that is not of the alphabet, and what is no letter at all


def kmer_width(alphabet: str, k: int) -> int:
    """How many k-mers there are, and sequences shorter than k.

    Examples
    --------
    >>> kmer_width("dna", 2)
    21
    """
    size = len(ALPHABETS[alphabet])
    return (size ** (k + 1) - 1) // (size - 1)


def kmer_codes(
    sequences: list[str], k: int, alphabet: str, *, canonical: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The sequence and the number of every k-mer of letters of the alphabet alone, in the order of the sequences.

    The number has the letters as its digits. A sequence of fewer than k letters has one, itself; those have numbers
    after all k-mers, the longer ones first.

    Examples
    --------
    >>> [part.tolist() for part in kmer_codes(["AACG", "T"], 2, "dna")]
    [[0, 0, 0, 1], [0, 1, 6, 19]]
    """
    digits, starts = _to_digits(sequences, alphabet)
    lengths, size = np.diff(starts), len(ALPHABETS[alphabet])
    code = _number_kmers(digits, k, size, canonical)
    row = np.repeat(np.arange(len(sequences)), lengths)[: len(code)]
    fits = np.arange(len(code)) + k <= starts[1:][row]  # it does not run into the next sequence
    fits &= code >= 0
    rows, codes = row[fits], code[fits]
    shorter = np.unique(lengths[lengths < k]).tolist()
    for short in shorter:
        short_rows = np.flatnonzero(lengths == short)
        letters = digits[(starts[short_rows][:, None] + np.arange(short)).ravel()]
        code = _number_kmers(letters, short, size, canonical)[:: short or 1][: len(short_rows)]
        if not short:  # there is only one empty sequence
            code = np.zeros(len(short_rows), dtype=np.int64)
        rows = np.append(rows, short_rows[code >= 0])
        codes = np.append(codes, code[code >= 0] + sum(size**j for j in range(short + 1, k + 1)))
    missing = np.bincount(rows, minlength=len(sequences)) == 0
    if missing.any():
        i = int(missing.argmax())
        raise InputError(
            f"item {i} ({brief(sequences[i])}) has no {k}-mer of the letters of {alphabet!r} alone; expected at least "
            "one. Drop it, or use a smaller k.",
            item=i,
        )
    if not shorter:
        return rows, codes
    order = np.argsort(rows, kind="stable")
    return rows[order], codes[order]


def _number_kmers(digits: np.ndarray, k: int, size: int, canonical: bool) -> np.ndarray:
    """The number of the k-mer that begins at each place, or −1 where it holds another letter."""
    count = max(len(digits) - k + 1, 0)
    code, reverse_complement = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    is_valid = np.ones(count, dtype=bool)
    for j in range(k):
        digit = digits[j : j + count]
        is_valid &= digit >= 0
        code *= size
        code += digit
        if canonical:  # read backwards; A and T, and C and G, are as far from the two ends of their alphabet
            reverse_complement += (size - 1 - digit.astype(np.int64)) * size**j
    if canonical:
        np.minimum(code, reverse_complement, out=code)
    code[~is_valid] = -1
    return code


def renumber_present(codes: np.ndarray, width: int) -> tuple[np.ndarray, int]:
    """The numbers that occur as columns 0, 1, …, and how many there are."""
    if width > FEW:
        present_codes, column = np.unique(codes, return_inverse=True)
        return column, len(present_codes)
    is_present = np.bincount(codes, minlength=width) > 0
    return (np.cumsum(is_present) - 1)[codes], int(is_present.sum())


def _to_digits(sequences: list[str], alphabet: str) -> tuple[np.ndarray, np.ndarray]:
    """The letters of all sequences as digits, one after another, and where each sequence begins."""
    letters = ALPHABETS[alphabet]
    table = np.full(256, _NO_LETTER, dtype=np.int8)
    for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ*":
        digit = letters.find(letter)
        table[[ord(letter), ord(letter.lower())]] = digit if digit >= 0 else _OUTSIDE
    if alphabet in COMPLEMENTED:
        alias, letter_meant = COMPLEMENTED[alphabet]
        table[[ord(alias), ord(alias.lower())]] = letters.index(letter_meant)
    starts = np.zeros(len(sequences) + 1, dtype=np.int64)
    np.cumsum([len(sequence) for sequence in sequences], out=starts[1:])
    # What is not ASCII becomes "?", which is no letter either.
    digits = table[np.frombuffer("".join(sequences).encode("ascii", "replace"), dtype=np.uint8)]
    is_no_letter = digits == _NO_LETTER
    if is_no_letter.any():
        position = int(is_no_letter.argmax())
        i = int(np.searchsorted(starts, position, side="right")) - 1
        letter = sequences[i][position - starts[i]]
        advice = "Remove gaps first: sequence.replace('-', '')." if letter in "-." else "Remove it."
        raise InputError(
            f"item {i} holds {brief(letter)} at position {position - starts[i]}; the kmer kernel with "
            f"alphabet={alphabet!r} expected letters. {advice}",
            item=i,
        )
    return digits, starts


def kmer_counts(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Any:
    """How often each column occurs in each row; the rows are in order.

    Examples
    --------
    >>> import numpy as np
    >>> kmer_counts(np.array([0, 0, 1]), np.array([1, 1, 0]), (2, 2)).toarray().tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    from scipy import sparse

    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
    counts = sparse.csr_array((np.ones(len(columns)), columns, indptr), shape=shape)
    counts.sum_duplicates()
    return counts
