"""Overlap of the texts of a collection with each other: self-BLEU and pairwise BLEU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.tokens import Tokenizer
from vendimeter.errors import EmptyError, InputError, brief
from vendimeter.metrics._grams import Runs, check_length, grams_of, numbered, runs_of
from vendimeter.metrics._texts import Grouped, Overlap, check_pairs, grouped, text_metric
from vendimeter.options import as_number
from vendimeter.results.base import Figure

__all__ = ["PairwiseBLEU", "pairwise_bleu", "self_bleu"]

# --------------------------------------------------------------------------------------------------------- self-BLEU


@text_metric
def self_bleu(
    samples: Any,
    *,
    n: int = 4,
    tokenizer: Tokenizer = None,
    lowercase: bool = False,
    epsilon: float = 0.1,
    by: Any = None,
    groups: bool | None = None,
) -> Overlap:
    """Self-BLEU: the mean over texts of the BLEU of each with all the others as its references.

    BLEU(a | others) = BP · exp(mean over m = 1 … n of log p_m), on the scale 0 … 1. p_m is the fraction of the m-grams
    of a that the others have, each counted up to the most times that one of them has it. BP = exp(1 − r/|a|) where a is
    shorter than r, the length among the others that is nearest to |a| (the shorter one of two). It is 0 where no text
    shares a token with another, and 1 where all are equal: lower is more diverse.

    Parameters
    ----------
    samples : list of texts, Collection, or groups of texts
        As for `ngram_diversity`; two texts at least. With groups: the mean over groups, each text against the others
        of its own group.
    n : int
        The longest m-grams.
    tokenizer : str or callable, optional
        What splits a text, as for `vendimeter.kernels.NGram`: ``"words"`` by default.
    lowercase : bool
        Whether to ignore case. Tokens are taken as they are.
    epsilon : float
        What an order m without a match counts in place of 0 matches, from 0 (then BLEU is 0) to below 1. Texts that
        share no token with others have BLEU 0 whatever it is.
    by, groups
        As for `ngram_diversity`.

    Returns
    -------
    Overlap
        A float, with the figure of each group.

    Notes
    -----
    Of a text with fewer than n tokens the orders that it has are averaged (the "effective order" of sacreBLEU), so that
    short texts that are equal have BLEU 1. For longer ones it equals NLTK's ``sentence_bleu`` with
    ``SmoothingFunction(epsilon).method1``, and sacreBLEU's ``sentence_bleu`` with ``smooth_method="floor"``, which
    reports 0 … 100. NLTK counts orders that a short text does not have as 0 matches of 1. An empty text has BLEU 1 if
    another one is empty, and else 0.

    With more texts there are more references and self-BLEU rises, so that only collections of like size compare. It is
    computed from the two largest counts of each m-gram, in time that grows with the number of m-grams, not of pairs.

    References
    ----------
    Zhu, Lu, Zheng, Guo, Zhang, Wang, Yu: Texygen: a benchmarking platform for text generation models, SIGIR 2018.
    Papineni, Roukos, Ward, Zhu: BLEU, ACL 2002. Chen, Cherry: Smoothing techniques for sentence-level BLEU, WMT 2014
    (method 1).

    Examples
    --------
    >>> from vendimeter.metrics import self_bleu
    >>> round(self_bleu(["a dog runs on the beach", "a dog runs on grass", "two boats at sea"]), 4)
    0.3923
    >>> float(self_bleu(["a dog", "two boats"])), float(self_bleu(["a dog", "a dog"]))
    (0.0, 1.0)
    """
    n, floor = check_length(n, "n"), as_number(epsilon)
    if not 0 <= floor < 1:
        raise InputError(f"epsilon={brief(epsilon)}; expected a number from 0 up and below 1.")
    texts = grouped(samples, "self_bleu", by=by, groups=groups)
    check_pairs(texts, "self-BLEU")
    ids, starts = numbered(texts, tokenizer, lowercase)
    lengths = np.diff(starts)
    logs, none = np.zeros(len(lengths)), lengths < 0
    for m, gram, text in grams_of(ids, starts, n):
        if not len(gram):
            break
        runs = runs_of(gram, text)
        matches = np.bincount(runs.text, weights=_others(runs), minlength=len(lengths))
        has = lengths >= m
        if m == 1:
            none = has & (matches == 0)
        with np.errstate(divide="ignore"):
            logs[has] += np.log(np.maximum(matches[has], floor) / (lengths[has] - m + 1))
    scores = np.exp(logs / np.clip(lengths, 1, n) + _brevity(lengths, texts))
    scores[none] = 0.0
    with np.errstate(invalid="ignore"):
        values = np.bincount(texts.group, weights=scores, minlength=len(texts.labels)) / texts.sizes
    values[texts.sizes < 2] = np.nan
    return Overlap.over(texts, values)


def _others(runs: Runs) -> np.ndarray:
    """The matches of each entry with the others: its count, but for the largest one, which matches the second largest.

    Only the largest count of an m-gram exceeds the most that another text has.
    """
    matches = runs.times.copy()
    last = np.flatnonzero(np.append(np.diff(runs.first) > 0, True)) if len(matches) else np.zeros(0, np.int64)
    matches[last] = np.where(runs.size[last] > 1, runs.times[last - 1], 0)
    return matches


def _brevity(lengths: np.ndarray, texts: Grouped) -> np.ndarray:
    """The logarithm of the brevity penalty of each text, with the other texts of its group as references."""
    group = texts.group
    order = np.lexsort((lengths, group))
    sorted_lengths, same = lengths[order].astype(np.float64), np.diff(group[order]) == 0
    gap = np.where(same, np.diff(sorted_lengths), np.inf)
    below, above = np.append(np.inf, gap), np.append(gap, np.inf)
    # The nearest of the others is next in order; only a longer one, and no shorter one as near, costs anything.
    longer = np.where(above < below, above, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.where(longer > 0, -longer / sorted_lengths, 0.0)
    found = np.empty(len(lengths))
    found[order] = penalty
    return found


# ----------------------------------------------------------------------------------------------------- pairwise BLEU


@dataclass(frozen=True, repr=False, eq=False)
class PairwiseBLEU(Figure):
    """Corpus BLEU over all pairs of texts; a float.

    Attributes
    ----------
    value : float
        The geometric mean of the precisions.
    precisions : tuple of float
        Matches over m-grams for m = 1 … n, over all pairs; NaN where no text has m tokens.
    pairs, texts, groups : int
        How many ordered pairs, texts and groups there are; one collection is one group.
    left_out : int
        Groups of fewer than two texts, which have no pairs.
    """

    value: float
    precisions: tuple[float, ...]
    pairs: int
    texts: int
    groups: int
    left_out: int


@text_metric
def pairwise_bleu(
    samples: Any,
    *,
    n: int = 4,
    tokenizer: Tokenizer = None,
    lowercase: bool = False,
    by: Any = None,
    groups: bool | None = None,
) -> PairwiseBLEU:
    """Pairwise BLEU: the corpus BLEU of every text with every other one of its group as reference.

    It is exp(mean over m = 1 … n of log p_m), on the scale 0 … 1, with p_m = Σ_{i≠j} Σ_g min(c_i(g), c_j(g)) /
    Σ_{i≠j} Σ_g c_i(g), where c_i(g) is how often text i has the m-gram g. Every text is as often a reference as it is
    compared, so that both sides are of one length in all and the brevity penalty is 1. Lower is more diverse.

    Parameters
    ----------
    samples : list of texts, Collection, or groups of texts
        As for `ngram_diversity`. The counts of all groups are added up before the ratio is taken, as is done for the
        hypotheses of many source sentences; a group of one text adds nothing.
    n : int
        The longest m-grams.
    tokenizer : str or callable, optional
        What splits a text, as for `vendimeter.kernels.NGram`: ``"words"`` by default.
    lowercase : bool
        Whether to ignore case. Tokens are taken as they are.
    by, groups
        As for `ngram_diversity`.

    Returns
    -------
    PairwiseBLEU
        A float, with the precision of each order.

    Notes
    -----
    There is no smoothing: where no m-gram of some length is shared it is 0. Orders that no text of a pair has are left
    out. So it is sacreBLEU's ``corpus_score`` of all pairs with ``smooth_method="none", effective_order=True`` (which
    reports 0 … 100; its defaults put something in place of the 0, and give 0 where all texts have fewer than n tokens),
    and NLTK's where every text has n tokens; NLTK counts a miss for each length that a text is too short for. The sum
    over pairs comes from the sorted counts of each m-gram, so that no pair is formed.

    References
    ----------
    Shen, Ott, Auli, Ranzato: Mixture models for diverse machine translation: tricks of the trade, ICML 2019.

    Examples
    --------
    >>> from vendimeter.metrics import pairwise_bleu
    >>> pairwise_bleu(["a dog runs on grass", "a dog runs on sand", "a dog sits"], n=2)
    PairwiseBLEU(0.5547, precisions=(0.615385, 0.5), pairs=6, texts=3, groups=1, left_out=0)
    >>> float(pairwise_bleu(["a dog", "two boats"])), float(pairwise_bleu(["a dog", "a dog"]))
    (0.0, 1.0)
    """
    n = check_length(n, "n")
    texts = grouped(samples, "pairwise_bleu", by=by, groups=groups)
    check_pairs(texts, "pairwise BLEU")
    ids, starts = numbered(texts, tokenizer, lowercase)
    sizes = texts.sizes
    partners = (sizes - 1)[texts.group]
    precisions = np.full(n, np.nan)
    for m, gram, text in grams_of(ids, starts, n):
        total = int(partners[text].sum())
        if not total:
            break
        runs = runs_of(gram, text)
        # In order of their counts, each text has the smaller count of its pairs with those behind it.
        behind = runs.size - 1 - (np.arange(len(runs.first)) - runs.first)
        precisions[m - 1] = 2 * int((runs.times * behind).sum()) / total
    known = precisions[~np.isnan(precisions)]
    if not len(known):
        raise EmptyError(
            "no text of a pair has a token; expected some. Pairwise BLEU of nothing is undefined."
        )
    with np.errstate(divide="ignore"):
        value = float(np.exp(np.log(known).mean()))
    pairs = int((sizes * (sizes - 1)).sum())
    left_out = int((sizes < 2).sum())
    return PairwiseBLEU(value, tuple(precisions.tolist()), pairs, len(texts.texts), len(sizes), left_out)
