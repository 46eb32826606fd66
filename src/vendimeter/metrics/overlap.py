"""Overlap of the texts of a collection with each other: self-BLEU, pairwise BLEU and D-Lex-Sim."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import blocks
from vendimeter.data.devices import to_host
from vendimeter.data.tokens import Tokenizer, words
from vendimeter.errors import EmptyError, InputError, MissingDependencyError
from vendimeter.kernels import Kernel, as_kernel
from vendimeter.messages import brief
from vendimeter.metrics.samples import placed
from vendimeter.metrics.texts import (
    Grouped,
    Overlap,
    TextCounts,
    check_length,
    check_pairs,
    count_in_texts,
    grouped,
    ngrams_by_length,
    number_tokens,
)
from vendimeter.optional import require
from vendimeter.options import as_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import Figure
from vendimeter.similarity import Pairwise, Similarity

__all__ = ["PairwiseBLEU", "d_lex_sim", "pairwise_bleu", "self_bleu"]

TILE = 1024  # rows and columns of similarities at a time
SMALL = 128  # groups of up to so many texts are compared many at once

# ------------------------------------------------------------------------------------------------------------ self-BLEU


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
    with placed(samples):
        texts = grouped(samples, "self_bleu", by=by, groups=groups)
        check_pairs(texts, "self-BLEU")
        ids, starts = number_tokens(texts, tokenizer, lowercase)
        lengths = np.diff(starts)
        logs, without_match = np.zeros(len(lengths)), lengths < 0
        for m, gram, text in ngrams_by_length(ids, starts, n):
            if not len(gram):
                break
            counts = count_in_texts(gram, text)
            matches = np.bincount(counts.text, weights=_matches_with_others(counts), minlength=len(lengths))
            long_enough = lengths >= m
            if m == 1:
                without_match = long_enough & (matches == 0)
            with np.errstate(divide="ignore"):
                logs[long_enough] += np.log(
                    np.maximum(matches[long_enough], floor) / (lengths[long_enough] - m + 1)
                )
        scores = np.exp(logs / np.clip(lengths, 1, n) + _log_brevity(lengths, texts))
        scores[without_match] = 0.0
        with np.errstate(invalid="ignore"):
            values = np.bincount(texts.group, weights=scores, minlength=len(texts.labels)) / texts.sizes
        values[texts.sizes < 2] = np.nan
        return Overlap.over(texts, values)


def _matches_with_others(counts: TextCounts) -> np.ndarray:
    """The matches of each count of an m-gram with the other texts: the count, or the largest of theirs if that is less.

    Only the largest count of an m-gram exceeds that: it matches the second largest.
    """
    matches = counts.times.copy()
    last = (
        np.flatnonzero(np.append(np.diff(counts.first) > 0, True)) if len(matches) else np.zeros(0, np.int64)
    )
    matches[last] = np.where(counts.size[last] > 1, counts.times[last - 1], 0)
    return matches


def _log_brevity(lengths: np.ndarray, texts: Grouped) -> np.ndarray:
    """The logarithm of the brevity penalty of each text, with the other texts of its group as references."""
    group = texts.group
    order = np.lexsort((lengths, group))
    sorted_lengths, same_group = lengths[order].astype(np.float64), np.diff(group[order]) == 0
    gap = np.where(same_group, np.diff(sorted_lengths), np.inf)
    below, above = np.append(np.inf, gap), np.append(gap, np.inf)
    # The nearest length is next in order. Only a longer one brings a penalty, and only where no shorter one is as near.
    longer = np.where(above < below, above, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.where(longer > 0, -longer / sorted_lengths, 0.0)
    logs = np.empty(len(lengths))
    logs[order] = penalty
    return logs


# -------------------------------------------------------------------------------------------------------- pairwise BLEU


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
    with placed(samples):
        texts = grouped(samples, "pairwise_bleu", by=by, groups=groups)
        check_pairs(texts, "pairwise BLEU")
        ids, starts = number_tokens(texts, tokenizer, lowercase)
        sizes = texts.sizes
        partners = (sizes - 1)[texts.group]
        precisions = np.full(n, np.nan)
        for m, gram, text in ngrams_by_length(ids, starts, n):
            total = int(partners[text].sum())
            if not total:
                break
            counts = count_in_texts(gram, text)
            # In rising order of counts, the minimum of a pair is that of the text that comes first.
            behind = counts.size - 1 - (np.arange(len(counts.first)) - counts.first)
            precisions[m - 1] = 2 * int((counts.times * behind).sum()) / total
        defined = precisions[~np.isnan(precisions)]
        if not len(defined):
            raise EmptyError(
                "no text of a pair has a token; expected some. Pairwise BLEU of nothing is undefined."
            )
        with np.errstate(divide="ignore"):
            value = float(np.exp(np.log(defined).mean()))
        pairs = int((sizes * (sizes - 1)).sum())
        left_out = int((sizes < 2).sum())
        return PairwiseBLEU(value, tuple(precisions.tolist()), pairs, len(texts.texts), len(sizes), left_out)


# ------------------------------------------------------------------------------------------------------------ D-Lex-Sim


def d_lex_sim(
    samples: Any,
    kernel: Any = "bleu",
    *,
    by: Any = None,
    groups: bool | None = None,
) -> Overlap:
    """D-Lex-Sim: the mean similarity of two different texts of a collection.

    D-Lex-Sim = 2/(n(n−1)) Σ_{i<j} k(tᵢ, tⱼ). Lower is more diverse.

    Parameters
    ----------
    samples : list of texts, Collection, or groups of texts
        As for `ngram_diversity`; two texts at least. With groups: the mean over groups, of pairs within them.
    kernel : str, Kernel or callable
        What compares two texts: by default `vendimeter.kernels.BLEU`, the mean of the sentence BLEU in both directions;
        any other kernel of texts, with its own tokenizer, such as ``NGram(1, 4)``; a function k(a, b), called once a
        pair with a before b; or ``"meteor"``, NLTK's METEOR in both directions, averaged.
    by, groups
        As for `ngram_diversity`.

    Returns
    -------
    Overlap
        A float, with the figure of each group.

    Notes
    -----
    Fomicheva et al. compare with METEOR. It needs NLTK and the WordNet data, which is fetched once with ``python -m
    nltk.downloader wordnet``, and gives equal texts a little less than 1. Texts are split into ``"words"`` for it, and
    case is ignored.

    Every pair is compared, in blocks: the time grows with the square of the number of texts, the memory does not.

    References
    ----------
    Fomicheva, Sun, Yankovskaya, Blain, Guzmán, Fishel, Aletras, Chaudhary, Specia: Unsupervised quality estimation for
    neural machine translation, TACL 2020 (D-Lex-Sim).

    Examples
    --------
    >>> from vendimeter.metrics import d_lex_sim
    >>> captions = ["a dog runs on grass", "a dog runs on sand", "two boats"]
    >>> round(d_lex_sim(captions), 4), round(d_lex_sim(captions, "ngram"), 4)
    (0.2229, 0.2264)
    >>> round(d_lex_sim(captions, lambda a, b: len({*a.split()} & {*b.split()}) / 5), 4)
    0.2667
    """
    with placed(samples):
        texts = grouped(samples, "d_lex_sim", by=by, groups=groups)
        check_pairs(texts, "D-Lex-Sim")
        if isinstance(kernel, str) and kernel == "meteor":
            sums = _sum_function(texts, _meteor())
        elif isinstance(kernel, Kernel | str | type) or not callable(kernel):
            sums = _sum_kernel(texts, as_kernel(kernel))
        else:
            sums = _sum_function(texts, kernel)
        pairs = texts.sizes * (texts.sizes - 1) / 2
        values = np.full(len(pairs), np.nan)
        return Overlap.over(texts, np.divide(sums, pairs, out=values, where=pairs > 0))


def _sum_kernel(texts: Grouped, kernel: Kernel) -> np.ndarray:
    """The sum of a kernel over the pairs i < j of each group."""
    similarity = kernel.similarity(texts.texts)
    sums = np.zeros(len(texts.labels))
    entries_done, entries = 0, int((texts.sizes**2).sum())
    with Progress("D-Lex-Sim") as progress:
        for groups, group_sums, count in _partial_sums(similarity, texts):
            if not np.isfinite(group_sums).all():
                raise InputError(f"{kernel!r} gives similarities that are not finite; expected numbers.")
            sums[groups] += group_sums
            entries_done += count
            progress.step(entries_done / entries)
    return sums


def _partial_sums(similarity: Similarity, texts: Grouped) -> Iterator[tuple[Any, Any, int]]:
    """Groups, what to add to their sums, and of how many entries: many small groups at once, large ones in tiles."""
    sizes, starts = texts.sizes, texts.starts
    stacks = isinstance(similarity, Pairwise) and similarity.stacks
    for size in np.unique(sizes[sizes > 1]).tolist():
        groups = np.flatnonzero(sizes == size)
        if not stacks or size > SMALL:
            for g in groups.tolist():
                with texts.naming(g):
                    yield from (
                        (g, *tile) for tile in _tile_sums(similarity, int(starts[g]), int(starts[g + 1]))
                    )
            continue
        upper = np.triu(np.ones((size, size), dtype=bool), 1)
        for block in blocks(len(groups), size * size):
            members = starts[groups[block]][:, None] + np.arange(size)
            values = to_host(similarity.block(members, members))
            yield groups[block], values[:, upper].sum(axis=1), values.size


def _tile_sums(similarity: Similarity, start: int, stop: int) -> Iterator[tuple[float, int]]:
    """Sums over the tiles above the diagonal of a square block, and how many of its entries each tile stands for."""
    for row in range(start, stop, TILE):
        rows = slice(row, min(row + TILE, stop))
        for col in range(row, stop, TILE):
            same = col == row
            tile = to_host(similarity.block(rows, rows if same else slice(col, min(col + TILE, stop))))
            yield float((np.triu(tile, 1) if same else tile).sum()), tile.size * (1 if same else 2)


def _sum_function(texts: Grouped, function: Callable[[Any, Any], Any]) -> np.ndarray:
    """The sum of a function of two texts over the pairs i < j of each group."""
    sums = np.zeros(len(texts.labels))
    pairs_done, pairs = 0, int((texts.sizes * (texts.sizes - 1)).sum()) // 2
    with Progress("D-Lex-Sim") as progress:
        for g in np.flatnonzero(texts.sizes > 1).tolist():
            group = texts.texts[texts.starts[g] : texts.starts[g + 1]]
            with texts.naming(g):
                for i, left in enumerate(group):
                    sums[g] += sum(
                        _finite_number(function(left, group[j]), i, j) for j in range(i + 1, len(group))
                    )
                    pairs_done += len(group) - i - 1
                    progress.step(pairs_done / pairs)
    return sums


def _finite_number(value: Any, i: int, j: int) -> float:
    number = as_number(value)
    if not math.isfinite(number):
        raise InputError(
            f"the function returned {brief(value)} for items {i} and {j}; expected a finite number."
        )
    return number


def _meteor() -> Callable[[Any, Any], float]:
    """METEOR of two texts, the mean of both directions."""
    library = require("nltk.translate.meteor_score", extra="text", purpose="METEOR")

    def score(left: Any, right: Any) -> float:
        sides = [words(text) if isinstance(text, str) else _strings(text) for text in (left, right)]
        try:
            return sum(library.single_meteor_score(*pair) for pair in (sides, sides[::-1])) / 2
        except LookupError:
            raise MissingDependencyError(
                "METEOR needs the WordNet data of NLTK, which is not on this machine; fetch it once with: python -m "
                "nltk.downloader wordnet"
            ) from None

    return score


def _strings(tokens: tuple[Any, ...]) -> tuple[str, ...]:
    other = next((token for token in tokens if not isinstance(token, str)), None)
    if other is not None:
        raise InputError(f"METEOR met the token {brief(other)}; expected tokens that are texts.")
    return tokens
