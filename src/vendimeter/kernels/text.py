"""Kernels of text: overlap of n-grams, and BLEU.

N-grams are counted in whole arrays: a token is a number, and an n-gram a pair of an (n−1)-gram and a token.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.arrays import to_python
from vendimeter.data.tokens import Tokenizer, check, format_tokenizer, texts_of, tokens_of
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel
from vendimeter.kernels.vectors import unit_rows
from vendimeter.messages import brief
from vendimeter.options import as_number, whole_number
from vendimeter.similarity import FeatureRows, Features, Pairwise
from vendimeter.similarity.checks import Policy
from vendimeter.spectrum import UNIT

__all__ = ["BLEU", "NGram", "bags", "hashes", "unroll"]

LONGEST = 1000  # letters or words of an n-gram
STREAMED = 16_384  # columns of features that are accumulated, at most
MOST = 1 << 24  # columns of hashed n-grams; memory grows with them, whether they are used or not
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHORT = np.uint64(0x5851F42D4C957F2D)  # tells a text that is too short from an n-gram


@dataclass(frozen=True)
class NGram(Kernel):
    """Overlap of n-grams: the cosine of bags of n-grams, averaged over n = low … high.

    A text with fewer than n tokens has one n-gram, itself: two such texts are similar to each other only if they are
    equal, and every text has similarity 1 with itself. Items may also be lists of tokens, all of them; these are taken
    as they are.

    Parameters
    ----------
    low, high : int
        The shortest and longest n-grams; the paper takes 1 to 4.
    tokenizer : str or callable, optional
        What splits a text: ``"words"`` (the default: words and punctuation marks), ``"characters"`` (Unicode code
        points as they are, not normalised: a letter with a combining accent is two), ``"whitespace"``;
        ``"sacrebleu:13a"`` (or intl, zh, char); a Hugging Face tokenizer by its name on the hub
        (``"bert-base-uncased"``), its folder or its file tokenizer.json, without the special tokens of a model; or a
        function text → sequence of tokens.
    lowercase : bool
        Whether to ignore case: texts are turned to lower case before any tokenizer sees them, those of Hugging Face
        included.
    hashed : int, optional
        Put the n-grams of each length into this many columns by their hash, rather than into one column each. Then
        batches can be accumulated, up to 16,384 columns in all. N-grams that share a column count as one, so that
        similarities come out too high and the score too low: with 2,000 captions by 11 %
        with 2,048 columns a length, 6 % with 4,096 and 1.5 % with 16,384. The diagonal stays 1.

    Examples
    --------
    >>> import vendimeter as vm
    >>> captions = ["a dog runs", "a dog runs fast", "two boats at sea"]
    >>> round(vm.score(captions, vm.kernels.NGram(1, 2)), 4)
    2.2735
    >>> round(vm.score(captions, vm.kernels.NGram(3, 3, tokenizer="characters")), 4)
    2.3736
    """

    low: int = 1
    high: int = 4
    tokenizer: Tokenizer = None
    lowercase: bool = True
    hashed: int | None = None
    name: ClassVar[str] = "ngram"

    def __post_init__(self) -> None:
        low, high = as_number(self.low), as_number(self.high)
        if not (1 <= low <= high < math.inf and low == int(low) and high == int(high)):
            raise InputError(
                f"NGram({brief(self.low)}, {brief(self.high)}): expected whole numbers with 1 ≤ low ≤ high."
            )
        if high > LONGEST:
            raise InputError(
                f"NGram({brief(self.low)}, {brief(self.high)}): expected lengths up to {LONGEST}; longer n-grams are "
                "hardly ever shared."
            )
        object.__setattr__(self, "low", int(low))
        object.__setattr__(self, "high", int(high))
        check(self.tokenizer)
        if self.hashed is not None:
            object.__setattr__(self, "hashed", whole_number(self.hashed, "hashed"))
            if self.hashed > MOST:
                raise InputError(
                    f"hashed={self.hashed}; expected at most {MOST} columns for each length of gram.",
                    option="hashed",
                )

    def __repr__(self) -> str:
        arguments = [str(self.low), str(self.high), *_format_options(self, lowercase=True)]
        return f"NGram({', '.join(arguments + ([f'hashed={self.hashed}'] if self.hashed else []))})"

    @property
    def needs_all(self) -> str | None:
        """A column an n-gram that was met, unless they are hashed."""
        if self.hashed is not None:
            width = self.hashed * (self.high - self.low + 1)
            if width <= STREAMED:
                return None
            return (
                f"it has {width:,} columns, and at most {STREAMED:,} are added up. Use "
                f"hashed={STREAMED // (self.high - self.low + 1)} or less, or score all items at once"
            )
        return (
            "its features are one column an n-gram, and which there are is known only at the end. Hash them into fixed "
            f"columns: NGram({self.low}, {self.high}, hashed=4096), or Embed with scikit-learn's HashingVectorizer; "
            "grams that share a column lower the score by a few per cent"
        )

    def build(self, samples: Any, rng: int) -> Features:
        """Sparse features: counts of n-grams, each length of gram of equal weight."""
        from scipy import sparse

        texts = texts_of(samples, self.name)
        ids, starts, vocabulary = tokens_of(texts, self.tokenizer, lowercase=self.lowercase)
        hashed = None if self.hashed is None else (hashes(vocabulary), self.hashed)
        counts = bags(ids, starts, self.low, self.high, hashed=hashed)
        for bag in counts:
            unit_rows(bag, np.arange(len(texts)))
            bag.data /= np.sqrt(len(counts))
        # Grams of different lengths have different columns: the rows of a text lie side by side.
        bag_of_all = counts[0] if len(counts) == 1 else sparse.csr_array(sparse.hstack(counts, format="csr"))
        longest = int(np.diff(bag_of_all.indptr).max())
        return FeatureRows(
            bag_of_all,
            rounding=(longest / 2 + 6) * UNIT,
            keys=lambda positions: [texts[position] for position in positions.tolist()],
        )


@dataclass(frozen=True)
class BLEU(Kernel):
    """Sentence BLEU, made symmetric: the mean of BLEU(a | b) and BLEU(b | a).

    BLEU(a | b) is the geometric mean over m = 1 … n of the fraction of the m-grams of a that occur in b (each as often
    as it occurs in b), times exp(1 − |b|/|a|) where a is the shorter one. Where no m-gram is shared, `epsilon` of one
    counts as shared, and texts that share no token have similarity 0.

    Parameters
    ----------
    n : int
        The longest m-grams.
    tokenizer : str or callable, optional
        As for `NGram`; ``"sacrebleu:13a"`` is that of machine translation.
    lowercase : bool
        Whether to ignore case.
    epsilon : float
        What an order without a match counts; above 0 and below 1.
    project : bool
        Drop negative eigenvalues, which BLEU does have, and record their mass as ``removed_mass`` in the diagnostics
        of the score. That needs all eigenvalues, whatever `tol` is. With False they are an `IndefiniteError`, also
        those of a sum or product that this kernel is a part of.

    Notes
    -----
    The same as NLTK's ``sentence_bleu`` with ``SmoothingFunction(epsilon).method1``, with one exception: a text with
    fewer than m tokens has one m-gram here, itself, so that equal texts have similarity 1 however short they are.
    sacreBLEU's ``sentence_bleu`` with ``smooth_method="floor"`` agrees for texts of at least n tokens; it gives 0
    for shorter ones.

    References
    ----------
    Papineni, Roukos, Ward, Zhu: BLEU: a method for automatic evaluation of machine translation, ACL 2002. Chen, Cherry:
    A systematic comparison of smoothing techniques for sentence-level BLEU, WMT 2014 (method 1).

    Examples
    --------
    >>> import vendimeter as vm
    >>> captions = ["a dog runs on the beach", "a dog runs on grass", "two boats at sea"]
    >>> score = vm.score(captions, vm.kernels.BLEU())
    >>> round(score, 4), round(score.diagnostics["removed_mass"], 4)
    (2.7206, 0.0)
    """

    n: int = 4
    tokenizer: Tokenizer = None
    lowercase: bool = False
    epsilon: float = 0.1
    project: bool = True
    name: ClassVar[str] = "bleu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", whole_number(self.n, "n"))
        check(self.tokenizer)
        if not 0 < as_number(self.epsilon) < 1:
            raise InputError(
                f"epsilon={brief(self.epsilon)}; expected a number above 0 and below 1.", option="epsilon"
            )
        Policy(project=self.project)

    def __repr__(self) -> str:
        arguments = [] if self.n == 4 else [str(self.n)]
        arguments += _format_options(self, lowercase=False)
        arguments += [] if self.epsilon == 0.1 else [f"epsilon={self.epsilon}"]
        return f"BLEU({', '.join(arguments + ([] if self.project else ['project=False']))})"

    @property
    def needs_all(self) -> str:
        """No finite features."""
        return "it compares texts in pairs and has no features. Use NGram(1, 4, hashed=4096), or score a random sample"

    def build(self, samples: Any, rng: int) -> Pairwise:
        """Blocks of BLEU, the matches by sparse products."""
        texts = texts_of(samples, self.name)
        ids, starts, _ = tokens_of(texts, self.tokenizer, lowercase=self.lowercase)
        orders = [unroll(bag) for bag in bags(ids, starts, 1, self.n)]
        lengths = np.diff(starts).astype(np.float64)
        totals = np.array([np.diff(order.indptr) for order in orders])
        # Matches are whole numbers, and their logarithms are looked up: of a text with itself they are those of its
        # own totals to the last bit, so that the diagonal is exactly 1.
        logs = np.log(np.concatenate([[self.epsilon], np.arange(1.0, totals.max() + 1)]))
        self_logs = logs[totals].sum(axis=0)

        def block(i: np.ndarray, j: np.ndarray) -> np.ndarray:
            shared = np.zeros((*i.shape, j.shape[-1]))
            shares_none = np.zeros(shared.shape, dtype=bool)
            for m, order in enumerate(orders):
                matches = _inner_products(order, i, j)
                if m == 0:
                    shares_none = matches == 0
                shared += logs[matches]
            of_rows, of_columns = (..., slice(None), None), (..., None, slice(None))
            mean = one_way(shared, self_logs[i][of_rows], lengths[i][of_rows], lengths[j][of_columns])
            mean += one_way(shared, self_logs[j][of_columns], lengths[j][of_columns], lengths[i][of_rows])
            mean *= 0.5
            mean[shares_none] = 0.0
            return mean

        def one_way(shared: Any, self_logs: Any, length: Any, other: Any) -> np.ndarray:
            """BLEU of texts of one length, with those of another length as references."""
            brevity = np.where(length < other, 1 - other / np.maximum(length, 1e-300), 0.0)
            return np.exp((shared - self_logs) / self.n + brevity)

        def keys(positions: np.ndarray) -> list[Hashable]:
            return [texts[position] for position in positions.tolist()]

        # Two sums of n logarithms, divided by n: each term is off by a unit, and so is each addition of n of them.
        largest = float(np.abs(logs).max())
        return Pairwise(
            len(texts),
            block,
            rounding=(2 * (self.n + 2) * largest + 16) * UNIT,
            trusted=self.project,
            policy=Policy(project=self.project),
            keys=keys,
            stacks=True,
            cost=200.0 * self.n,
        )


def _format_options(kernel: NGram | BLEU, *, lowercase: bool) -> list[str]:
    """The options that differ from the usual ones, as they are written."""
    options = [] if kernel.tokenizer is None else [f"tokenizer={format_tokenizer(kernel.tokenizer)}"]
    return options if kernel.lowercase == lowercase else [*options, f"lowercase={kernel.lowercase}"]


def _inner_products(rows: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Inner products of binary rows, as whole numbers; for stacks of positions those within each group."""
    from scipy import sparse

    if i.ndim == 1:
        return (rows[i] @ rows[j].T.tocsr()).toarray().astype(np.int64)
    count, height, width = len(i), i.shape[1], j.shape[1]
    # Each group gets its own copies of the columns, so that one product does all of them and they do not mix.
    sides = []
    for positions in (i, j):
        side = rows[positions.ravel()]
        group = np.repeat(np.repeat(np.arange(count), positions.shape[1]), np.diff(side.indptr))
        sides.append((side, group.astype(np.int64) * rows.shape[1] + side.indices))
    distinct_columns = np.unique(np.concatenate([group_columns for _, group_columns in sides]))
    left, right = (
        sparse.csr_array(
            (side.data, np.searchsorted(distinct_columns, group_columns), side.indptr),
            shape=(side.shape[0], len(distinct_columns)),
        )
        for side, group_columns in sides
    )
    product = (left @ right.T.tocsr()).tocoo()
    stack = np.zeros((count, height, width), dtype=np.int64)
    stack[product.row // height, product.row % height, product.col % width] = product.data
    return stack


# ---------------------------------------------------------------------------------------------------- counts of n-grams


def bags(
    ids: np.ndarray,
    starts: np.ndarray,
    low: int,
    high: int,
    *,
    hashed: tuple[np.ndarray, int] | None = None,
) -> list[Any]:
    """How often each n-gram occurs in each text: a CSR array of float64 counts for every n = low … high.

    A text with fewer than n tokens has one n-gram, itself, which is equal only to that of an equal text.

    Parameters
    ----------
    ids, starts : ndarray
        The tokens of all texts as whole numbers from 0 up, one after another, and where each text begins (and the last
        one ends).
    low, high : int
        The shortest and the longest n-grams.
    hashed : tuple of ndarray and int, optional
        The hash of each token, and a number of columns: n-grams go into columns by their hash, rather than as met.

    Examples
    --------
    >>> import numpy as np
    >>> [bag.toarray().tolist() for bag in bags(np.array([0, 1, 0, 1]), np.array([0, 3, 4]), 1, 2)]
    [[[2.0, 1.0], [0.0, 1.0]], [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]
    """
    lengths = np.diff(starts)
    begins = np.arange(len(ids))
    remaining = np.repeat(starts[1:], lengths) - begins  # tokens from here to the end of the text
    tokens = ids if hashed is None else hashed[0][ids]
    distinct = int(ids.max(initial=-1)) + 1
    gram = tokens
    text_gram = np.zeros(
        len(lengths), dtype=tokens.dtype
    )  # the number of the one gram of a text that is too short
    text_gram_count, counts = 0, []
    for n in range(1, high + 1):
        short_texts = np.flatnonzero(lengths == n - 1)
        if len(short_texts):
            # Its one gram is the (n−1)-gram that it begins with; of an empty text there is only one kind.
            numbers = gram[np.searchsorted(begins, starts[short_texts])] if n > 1 else text_gram[short_texts]
            if hashed is None:
                distinct_numbers, numbers = np.unique(numbers, return_inverse=True)
                text_gram[short_texts] = text_gram_count + numbers
                text_gram_count += len(distinct_numbers)
            else:
                text_gram[short_texts] = _mix(numbers ^ _SHORT)
        if n > 1:
            keep = remaining >= n
            begins, remaining = begins[keep], remaining[keep]
            last = tokens[begins + (n - 1)]
            if hashed is None:  # there are fewer grams than tokens, so that the number of a pair is below 2⁶³
                gram = np.unique(gram[keep] * distinct + last, return_inverse=True)[1]
            else:
                gram = _mix(gram[keep] * _ODD + last)
        if n >= low:
            columns = None if hashed is None else hashed[1]
            counts.append(_count_grams(lengths, n, gram, text_gram, text_gram_count, columns))
    return counts


def _count_grams(
    lengths: np.ndarray,
    n: int,
    gram: np.ndarray,
    text_gram: np.ndarray,
    text_gram_count: int,
    columns: int | None,
) -> Any:
    """The n-grams of all texts, one after another, as counts."""
    from scipy import sparse

    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.maximum(lengths - n + 1, 1), out=indptr[1:])
    short_texts = np.flatnonzero(lengths < n)
    is_gram = np.ones(indptr[-1], dtype=bool)
    is_gram[indptr[short_texts]] = False
    indices = np.empty(indptr[-1], dtype=np.int64)
    if columns is None:
        grams = int(gram.max(initial=-1)) + 1
        width = max(grams + text_gram_count, 1)
        indices[is_gram], indices[~is_gram] = gram, grams + text_gram[short_texts]
    else:
        width = columns
        size = np.uint64(columns)
        indices[is_gram], indices[~is_gram] = gram % size, text_gram[short_texts] % size
    counts = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(lengths), width))
    counts.sum_duplicates()
    return counts


def unroll(counts: Any) -> Any:
    """Counts as binary columns [c ≥ 1], [c ≥ 2], …, as many for each as it needs: Σ min is then an inner product.

    Examples
    --------
    >>> from scipy import sparse
    >>> unroll(sparse.csr_array([[2.0, 0.0], [1.0, 1.0]])).toarray().tolist()
    [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    from scipy import sparse

    repeats = counts.data.astype(np.int64)
    largest = np.zeros(counts.shape[1], dtype=np.int64)
    np.maximum.at(largest, counts.indices, repeats)
    first = np.cumsum(largest) - largest
    entry_ends = np.cumsum(repeats)
    level = np.arange(entry_ends[-1]) - np.repeat(entry_ends - repeats, repeats)
    indices = np.repeat(first[counts.indices], repeats) + level
    indptr = np.concatenate([[0], entry_ends])[counts.indptr]
    shape = (counts.shape[0], int(largest.sum()))
    return sparse.csr_array((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=shape)


def hashes(vocabulary: Sequence[Hashable]) -> np.ndarray:
    """A number for each token, the same in every process: Python's own hash of a text is not.

    A whole number is one, of whatever type it is: NumPy's are those that lists in a column of a frame hold.

    Examples
    --------
    >>> hashes(["a", "b"]).tolist() == hashes(["a", "b"]).tolist(), len(set(hashes(["a", "b", 1]).tolist()))
    (True, 3)
    """
    numbers = np.empty(len(vocabulary), dtype=np.uint64)
    for i, token in enumerate(map(to_python, vocabulary)):
        if not isinstance(token, str | int):
            raise InputError(
                f"hashed= met the token {brief(token)}; expected tokens that are texts or whole numbers."
            )
        kind = "s" if isinstance(token, str) else "i"
        data = f"{kind}{token if kind == 's' else int(token)}".encode("utf-8", "surrogatepass")
        numbers[i] = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
    return numbers


def _mix(values: np.ndarray) -> np.ndarray:
    """Mix the bits of numbers, so that each bit depends on all of its number (the end of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
