"""Kernels of text: overlap of n-grams."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vendimeter._arrays import as_list, is_text
from vendimeter._devices import is_foreign
from vendimeter._messages import brief
from vendimeter._options import as_number
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel
from vendimeter.kernels.vectors import unit_rows
from vendimeter.similarity import Features
from vendimeter.spectrum import UNIT

__all__ = ["NGram"]

_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def words(text: str) -> list[str]:
    """Words (with inner apostrophes) and punctuation marks."""
    return _WORD.findall(text)


@dataclass(frozen=True)
class NGram(Kernel):
    """Overlap of n-grams: the cosine of bags of n-grams, averaged over n = low … high.

    A text with fewer than n tokens has one n-gram, itself: two such texts are similar to each other only if they are
    equal, and every text has similarity 1 with itself.

    Parameters
    ----------
    low, high : int
        The shortest and longest n-grams; the paper takes 1 to 4.
    tokenizer : callable, optional
        text → sequence of tokens. By default words and punctuation marks; `list` gives characters.
    lowercase : bool
        Whether to ignore case.

    Examples
    --------
    >>> import vendimeter as vm
    >>> captions = ["a dog runs", "a dog runs fast", "two boats at sea"]
    >>> round(vm.score(captions, vm.kernels.NGram(1, 2)), 4)
    2.2735
    """

    low: int = 1
    high: int = 4
    tokenizer: Callable[[str], Sequence[Hashable]] | None = None
    lowercase: bool = True
    name: ClassVar[str] = "ngram"

    def __post_init__(self) -> None:
        low, high = as_number(self.low), as_number(self.high)
        if not (1 <= low <= high < math.inf and low == int(low) and high == int(high)):
            raise InputError(
                f"NGram({brief(self.low)}, {brief(self.high)}): expected whole numbers with 1 ≤ low ≤ high."
            )
        object.__setattr__(self, "low", int(low))
        object.__setattr__(self, "high", int(high))
        if self.tokenizer is not None and not callable(self.tokenizer):
            raise InputError(
                f"tokenizer={brief(self.tokenizer)}; expected a function from a text to its tokens."
            )

    def __repr__(self) -> str:
        tokenizer = (
            ""
            if self.tokenizer is None
            else f", tokenizer={getattr(self.tokenizer, '__qualname__', 'function')}"
        )
        return f"NGram({self.low}, {self.high}{tokenizer}{'' if self.lowercase else ', lowercase=False'})"

    @property
    def needs_all(self) -> str:
        """A column an n-gram that was met."""
        return (
            "its features are one column an n-gram, and which there are is known only at the end. Hash them into fixed "
            "columns: the mean over n of Embed(HashingVectorizer(ngram_range=(n, n), n_features=2048, "
            "alternate_sign=False).transform) with scikit-learn's is much the same similarity"
        )

    def build(self, samples: Any, rng: int) -> Features:
        """Sparse features: counts of n-grams, each length of gram of equal weight."""
        from scipy import sparse

        texts = as_list(samples, kernel="the ngram kernel")
        if is_foreign(texts):
            raise InputError(f"samples is {brief(texts)}; the ngram kernel expected texts (strings).")
        if not is_text(texts):
            raise InputError(
                f"item 0 is a {type(texts[0]).__name__}; the ngram kernel expected texts (strings)."
            )
        tokenize = self.tokenizer or words
        columns: dict[Hashable, int] = {}
        indices: list[int] = []
        ends = [0]
        orders = range(self.low, self.high + 1)
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(
                    f"item {i} is a {type(text).__name__}; the ngram kernel expected texts (strings)."
                )
            found = tokenize(text.lower() if self.lowercase else text)
            try:
                tokens = tuple(found)
                for n in orders:
                    grams = [tokens[j : j + n] for j in range(len(tokens) - n + 1)] or [tokens]
                    indices.extend(columns.setdefault((n, gram), len(columns)) for gram in grams)
                    ends.append(len(indices))
            except TypeError:
                raise InputError(
                    f"the tokenizer gave {brief(found)} for item {i}; expected a sequence of hashable tokens."
                ) from None
        shape = (len(texts) * len(orders), len(columns))
        bags = sparse.csr_array(
            (np.ones(len(indices)), np.array(indices, dtype=np.int64), np.array(ends)), shape=shape
        )
        bags.sum_duplicates()
        unit_rows(bags, np.arange(shape[0]))
        bags.data /= np.sqrt(len(orders))
        # Grams of different lengths have different columns: the rows of a text lie side by side.
        joined = sparse.csr_array(
            (bags.data, bags.indices, bags.indptr[:: len(orders)]), shape=(len(texts), shape[1])
        )
        joined.sort_indices()
        longest = int(np.diff(joined.indptr).max())
        return Features(
            joined,
            rounding=(longest / 2 + 6) * UNIT,
            keys=lambda places: [texts[place] for place in places.tolist()],
        )
