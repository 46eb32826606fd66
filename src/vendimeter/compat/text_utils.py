"""A stand-in for `ngram_vendi_score` of the module `text_utils` of vendi-score 0.0.3, with the original's numbers.

`vendimeter.kernels.NGram` is the better choice for new code. It differs where a text has fewer than n tokens: there the
text is its own n-gram, while here it has none, its similarity with itself is below 1, and the eigenvalues do not
sum to 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from vendimeter.compat import vendi
from vendimeter.data.tokens import texts_of, tokens_of
from vendimeter.errors import InputError
from vendimeter.kernels.text import bags
from vendimeter.kernels.vectors import unit_rows
from vendimeter.messages import brief
from vendimeter.optional import require
from vendimeter.options import whole_number

__all__ = ["ngram_vendi_score"]


def ngram_vendi_score(
    sents: Sequence[str],
    ns: Sequence[int] = (1, 2, 3, 4),
    tokenizer: Callable[[str], Sequence[str]] | None = None,
    **kwargs: Any,
) -> float:
    """The score of texts under the mean cosine of their bags of n-grams, as the original computes it.

    Parameters
    ----------
    sents : sequence of str
        The texts; case matters.
    ns : sequence of int
        The lengths of n-grams.
    tokenizer : callable, optional
        text → tokens; by default ``nltk.word_tokenize``, which needs NLTK with its data punkt_tab.
    **kwargs
        Ignored with a warning, as the original ignores them without one.

    Returns
    -------
    float
        A `Score` where every text has at least max(ns) tokens. Otherwise a plain float, exp(−Σ λ log λ) of eigenvalues
        that sum to less than 1: the original's number, but no Vendi Score.

    Notes
    -----
    The original joins tokens by spaces, so that ("a b", "c") and ("a", "b c") are one n-gram to it; here they are two.

    Examples
    --------
    >>> from vendimeter.compat import text_utils
    >>> texts = ["a dog runs", "a dog runs fast", "two boats at sea"]
    >>> round(text_utils.ngram_vendi_score(texts, ns=[1, 2, 3], tokenizer=str.split), 4)
    2.3532
    """
    if kwargs:
        warnings.warn(
            f"ngram_vendi_score ignores {', '.join(sorted(kwargs))}, as the original does; do it in the tokenizer.",
            UserWarning,
            stacklevel=2,
        )
    texts = texts_of(sents, "ngram")
    if not isinstance(texts[0], str):
        raise InputError(f"item 0 is {brief(sents[0])}; ngram_vendi_score expected texts (strings).")
    if isinstance(ns, str) or not isinstance(ns, Iterable):
        raise InputError(f"ns={brief(ns)}; expected the lengths of n-grams in a list, such as ns=[1, 2].")
    orders = [whole_number(n, "ns") for n in ns]
    if not orders:
        raise InputError("ns is empty; expected at least one length of n-grams, such as ns=[1, 2].")
    ids, starts, _ = tokens_of(texts, _resolve_tokenizer(tokenizer), lowercase=False)
    lengths = np.diff(starts)
    if lengths.max() < max(orders):
        raise InputError(
            f"no text has {max(orders)} tokens (the longest has {lengths.max()}), and the original has no answer "
            f"then; expected longer texts, or ns up to {lengths.max()}."
        )
    matrix = np.zeros((len(texts), len(texts)))
    for n in orders:
        counts = bags(ids, starts, n, n)[0]
        unit_rows(counts, np.arange(len(texts)))
        counts.data[np.repeat(lengths < n, np.diff(counts.indptr))] = 0.0  # too short: no n-gram at all
        matrix += (counts @ counts.T).toarray() / len(orders)
    if lengths.min() >= max(orders):
        np.fill_diagonal(matrix, 1.0)  # which it is, up to rounding
        return vendi.score_K(matrix)
    values = np.linalg.eigvalsh(matrix / len(texts))
    values = values[values > 0]
    return float(np.exp(-np.sum(values * np.log(values))))


def _resolve_tokenizer(tokenizer: Any) -> Any:
    """The tokenizer, or NLTK's with an error that says what it lacks."""
    if tokenizer is not None:
        if not callable(tokenizer):
            raise InputError(
                f"tokenizer={brief(tokenizer)}; ngram_vendi_score expected a function from a text to its tokens."
            )
        return tokenizer
    tokenize = require(
        "nltk.tokenize", extra="text", purpose="the original's default tokenizer"
    ).word_tokenize

    def word_tokenize(text: str) -> list[str]:
        try:
            return tokenize(text)
        except LookupError:
            raise InputError(
                "tokenizer is missing, and NLTK's word_tokenize, the original's default, has no data on this machine; "
                "expected a tokenizer such as tokenizer=str.split, or the data: nltk.download('punkt_tab')."
            ) from None

    return word_tokenize
