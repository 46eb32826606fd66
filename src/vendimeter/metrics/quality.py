"""Quality of texts against references: corpus BLEU, by sacreBLEU."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from vendimeter.data.arrays import as_list, refuse_set
from vendimeter.data.tokens import Tokenizer, check, texts_of, tokens_of
from vendimeter.errors import InputError
from vendimeter.messages import about, brief, in_group, unknown
from vendimeter.metrics.samples import opened, placed
from vendimeter.metrics.texts import Grouped, check_length, grouped
from vendimeter.optional import require
from vendimeter.options import check_flag
from vendimeter.present.progress import Progress
from vendimeter.results.base import Figure

__all__ = ["CorpusBLEU", "corpus_bleu"]

AT_ONCE = 1024  # samples that sacreBLEU gets at a time: it keeps the n-grams of all their references
SMOOTHING = ("exp", "none", "floor", "add-k")


@dataclass(frozen=True, repr=False, eq=False)
class CorpusBLEU(Figure):
    """BLEU of a corpus against references; a float.

    Attributes
    ----------
    value : float
        brevity_penalty times the geometric mean of the precisions, on the scale 0 … 1.
    precisions : tuple of float
        Of m-grams for m = 1 … n, after smoothing.
    brevity_penalty : float
        1 where the samples are as long as their references, below that where they are shorter.
    length, reference_length : int
        Tokens of the samples, and of the references that are nearest in length.
    signature : str
        What sacreBLEU was told, for the paper. It has ``tok:none`` where the texts were split beforehand, by another
        tokenizer than sacreBLEU's.
    """

    value: float
    precisions: tuple[float, ...]
    brevity_penalty: float
    length: int
    reference_length: int
    signature: str


def corpus_bleu(
    samples: Any,
    reference: Any,
    *,
    n: int = 4,
    tokenizer: Tokenizer = None,
    lowercase: bool = False,
    smoothing: str = "exp",
    groups: bool | None = None,
) -> CorpusBLEU:
    """Corpus BLEU: how much of the wording of the samples is in their references, by sacreBLEU.

    BLEU = BP · exp(mean over m = 1 … n of log p_m), on the scale 0 … 1, with the counts of all samples added up before
    the ratios p_m are taken, and BP = exp(1 − r/c) where the samples with c tokens are shorter than their references
    with r. It measures quality, not diversity: higher is better.

    Parameters
    ----------
    samples : list of texts, Collection, or groups of texts
        Strings, or lists of tokens throughout; groups as for `ngram_diversity`.
    reference : list, or mapping
        For each sample a text, or a list of texts, of which there may be different numbers. For each group the texts
        that are the references of every sample in it: a mapping with the labels of the samples, or a list in their
        order. Lists of tokens where the samples are such.
    n : int
        The longest m-grams.
    tokenizer : str or callable, optional
        sacreBLEU's 13a by default, the standard of machine translation; else what splits a text, as for
        `vendimeter.kernels.NGram`.
    lowercase : bool
        Whether to ignore case. Tokens are taken as they are.
    smoothing : str
        What is done where an order has no match at all: ``"exp"``, sacreBLEU's default, ``"floor"``, ``"add-k"``, or
        ``"none"``, which gives 0. Other than add-k, none of them changes anything where every order has a match.
    groups : bool, optional
        Whether each sample is a group; as for `ngram_diversity`.

    Returns
    -------
    CorpusBLEU
        A float, with its parts and the signature.

    Notes
    -----
    sacreBLEU reports 0 … 100. With the same tokens NLTK's ``corpus_bleu`` gives the same figure, where every order has
    a match and every sample n tokens: it counts a miss for each m-gram length that a sample is too short for. Samples
    all of which have fewer than n tokens have BLEU 0, however well they match, but for add-k: choose a smaller n.

    References
    ----------
    Papineni, Roukos, Ward, Zhu: BLEU: a method for automatic evaluation of machine translation, ACL 2002. Post: A call
    for clarity in reporting BLEU scores, WMT 2018 (sacreBLEU).

    Examples
    --------
    >>> from vendimeter.metrics import corpus_bleu
    >>> found = corpus_bleu(["a dog runs on grass"], [["the dog runs on grass", "a dog on sand"]])
    >>> round(found, 4), found.brevity_penalty, found.precisions[0]
    (0.7598, 1.0, 1.0)
    >>> round(corpus_bleu({"image 1": ["a dog runs", "a dog sits"]}, {"image 1": ["a dog runs", "a dog"]}, n=2), 4)
    0.7906
    """
    n = check_length(n, "n")
    check(tokenizer)
    lowercase = check_flag(lowercase, "lowercase")
    if not isinstance(smoothing, str) or smoothing not in SMOOTHING:
        raise unknown("smoothing", smoothing, SMOOTHING)
    refuse_set(samples, "references")
    with placed(samples), opened(reference, "corpus_bleu", "reference", lists=True) as reference:
        texts = grouped(samples, "corpus_bleu", groups=groups)
        owners = texts.group if texts.in_groups else np.arange(len(texts.texts))
        labels = texts.labels if texts.in_groups else range(len(texts.texts))
        references = _references(reference, labels, texts)
        library = require("sacrebleu", extra="text", purpose="corpus BLEU")
        name = "sacrebleu:13a" if tokenizer is None else tokenizer
        if isinstance(name, str) and name.startswith("sacrebleu:") and isinstance(texts.texts[0], str):
            # sacreBLEU splits the texts itself, so that the signature says how.
            hypotheses, split = texts.texts, name.partition(":")[2]
        else:
            hypotheses, references = _number_tokens(texts.texts, references, tokenizer, lowercase)
            split, lowercase = "none", False
        options = {"lowercase": lowercase, "tokenize": split, "max_ngram_order": n, "force": True}
        totals = _count_matches(library.BLEU(smooth_method="none", **options), hypotheses, references, owners)
        return _bleu_of_counts(
            library.BLEU(smooth_method=smoothing, **options), totals, n, {len(texts) for texts in references}
        )


# ----------------------------------------------------------------------------------------------------------- references


def _references(reference: Any, labels: Sequence[Any], texts: Grouped) -> list[list[Any]]:
    """The references of each sample, or of each group, as lists of what the samples are."""
    what = "group" if texts.in_groups else "sample"
    with about("reference"):
        refuse_set(reference, "references")
        if isinstance(reference, Mapping):
            if not texts.in_groups:
                raise InputError("it is a mapping, and samples is one collection; expected a list.")
            missing = next((label for label in labels if label not in reference), None)
            if missing is not None or len(reference) != len(labels):
                raise InputError(
                    f"it has {len(reference)} groups and samples {len(labels)}, "
                    + (f"with {brief(missing)} missing" if missing is not None else "with others among them")
                    + "; expected the same labels."
                )
            items = [reference[label] for label in labels]
        else:
            items = list(as_list(reference, kernel="corpus_bleu"))
    if len(items) != len(labels):
        raise InputError(
            f"samples has {len(labels)} {what}s and reference has {len(items)} entries; expected one text, or one list "
            f"of texts, a {what}. References of all samples together are passed sample by sample, not reference by "
            "reference."
        )
    strings = isinstance(texts.texts[0], str)
    return [_reference_texts(item, label, what, strings) for label, item in zip(labels, items, strict=True)]


def _reference_texts(item: Any, label: Any, what: str, strings: bool) -> list[Any]:
    """The references of one sample or group, as a list of texts."""
    single = isinstance(item, str) or (not strings and not _is_nested(item))
    with about("reference"), in_group(label) if what == "group" else about(f"item {label}"):
        if not single and not isinstance(item, list | tuple | np.ndarray):
            raise InputError(f"it is {brief(item)}; expected a text or a list of texts. Fill or drop it.")
        if not single and not len(item):
            raise InputError("it has no reference; expected one text at least. Drop the sample.")
        texts = texts_of([item] if single else item, "corpus_bleu", who="corpus_bleu")
        if isinstance(texts[0], str) != strings:
            kinds = ("texts", "lists of tokens") if strings else ("lists of tokens", "texts")
            raise InputError(f"it holds {kinds[1]} and samples {kinds[0]}; expected one kind.")
    return texts


def _is_nested(item: Any) -> bool:
    """Whether this is a list of lists of tokens, rather than of tokens."""
    return (
        isinstance(item, list | tuple | np.ndarray)
        and len(item) > 0
        and isinstance(item[0], list | tuple | np.ndarray)
    )


def _number_tokens(
    samples: list[Any], references: list[list[Any]], tokenizer: Tokenizer, lowercase: bool
) -> tuple[list[str], list[list[str]]]:
    """All texts as numbered tokens joined by blanks, so that tokens with blanks in them are not split."""
    all_texts = [*samples, *chain.from_iterable(references)]
    ids, starts, _ = tokens_of(all_texts, tokenizer, lowercase=lowercase)
    cuts = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    texts = iter([" ".join(map(str, ids[start:stop].tolist())) for start, stop in cuts])
    return [next(texts) for _ in samples], [[next(texts) for _ in group] for group in references]


# --------------------------------------------------------------------------------------------------------------- counts


def _count_matches(
    metric: Any, hypotheses: list[str], references: list[list[str]], owners: np.ndarray
) -> np.ndarray:
    """Sums over all samples: tokens of them and of their references, then matches and m-grams of each order."""
    totals = np.zeros(2 + 2 * metric.max_ngram_order, dtype=np.int64)
    with Progress("BLEU") as progress:
        for start in range(0, len(hypotheses), AT_ONCE):
            block = hypotheses[start : start + AT_ONCE]
            block_references = [references[owner] for owner in owners[start : start + AT_ONCE].tolist()]
            max_references = max(map(len, block_references))
            streams = [
                [texts[k] if k < len(texts) else None for texts in block_references]
                for k in range(max_references)
            ]
            score = metric.corpus_score(block, streams)
            totals += np.array([score.sys_len, score.ref_len, *score.counts, *score.totals])
            progress.step((start + len(block)) / len(hypotheses))
    return totals


def _bleu_of_counts(metric: Any, totals: np.ndarray, n: int, reference_counts: set[int]) -> CorpusBLEU:
    """BLEU of the summed counts, smoothed as the metric says; `reference_counts` are references a sample."""
    length, reference_length, *counts = totals.tolist()
    score = metric.compute_bleu(
        counts[:n],
        counts[n:],
        length,
        reference_length,
        smooth_method=metric.smooth_method,
        max_ngram_order=n,
    )
    precisions = tuple(percent / 100 for percent in score.precisions)
    # sacreBLEU takes logarithms of percentages, after which equal texts have a little more than 100.
    logs = sum(map(math.log, precisions)) if all(precisions) else -math.inf
    metric.num_refs = reference_counts.pop() if len(reference_counts) == 1 else -1  # −1 where it varies
    return CorpusBLEU(
        score.bp * math.exp(logs / n),
        precisions,
        score.bp,
        length,
        reference_length,
        str(metric.get_signature()),
    )
