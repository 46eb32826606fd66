"""The mean similarity of two texts of a collection."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from vendimeter.data.arrays import blocks
from vendimeter.data.devices import to_host
from vendimeter.data.tokens import words
from vendimeter.errors import InputError, MissingDependencyError, brief
from vendimeter.kernels import Kernel, as_kernel
from vendimeter.metrics._texts import Grouped, Overlap, check_pairs, grouped, text_metric
from vendimeter.optional import require
from vendimeter.options import as_number
from vendimeter.present.progress import Progress
from vendimeter.similarity import Pairwise, Similarity

__all__ = ["d_lex_sim"]

TILE = 1024  # rows and columns of similarities at a time
SMALL = 128  # groups up to this many texts are compared many at once


@text_metric
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
    texts = grouped(samples, "d_lex_sim", by=by, groups=groups)
    check_pairs(texts, "D-Lex-Sim")
    if isinstance(kernel, str) and kernel == "meteor":
        sums = _of_function(texts, _meteor())
    elif isinstance(kernel, Kernel | str | type) or not callable(kernel):
        sums = _of_kernel(texts, as_kernel(kernel))
    else:
        sums = _of_function(texts, kernel)
    pairs = texts.sizes * (texts.sizes - 1) / 2
    values = np.full(len(pairs), np.nan)
    return Overlap.over(texts, np.divide(sums, pairs, out=values, where=pairs > 0))


def _of_kernel(texts: Grouped, kernel: Kernel) -> np.ndarray:
    """The sum of a kernel over the pairs i < j of each group."""
    similarity = kernel.similarity(texts.texts)
    sums = np.zeros(len(texts.labels))
    done, total = 0, int((texts.sizes**2).sum())
    with Progress("D-Lex-Sim") as progress:
        for chosen, part, count in _parts(similarity, texts):
            if not np.isfinite(part).all():
                raise InputError(f"{kernel!r} gives similarities that are not finite; expected numbers.")
            sums[chosen] += part
            done += count
            progress.step(done / total)
    return sums


def _parts(similarity: Similarity, texts: Grouped) -> Iterator[tuple[Any, Any, int]]:
    """Groups, what is added to their sums, and for how many entries: many small groups at once, large ones in tiles."""
    sizes, starts = texts.sizes, texts.starts
    stacks = isinstance(similarity, Pairwise) and similarity.stacks
    for size in np.unique(sizes[sizes > 1]).tolist():
        groups = np.flatnonzero(sizes == size)
        if not stacks or size > SMALL:
            for g in groups.tolist():
                with texts.naming(g):
                    yield from ((g, *part) for part in _tiles(similarity, int(starts[g]), int(starts[g + 1])))
            continue
        above = np.triu(np.ones((size, size), dtype=bool), 1)
        for part in blocks(len(groups), size * size):
            members = starts[groups[part]][:, None] + np.arange(size)
            values = to_host(similarity.block(members, members))
            yield groups[part], values[:, above].sum(axis=1), values.size


def _tiles(similarity: Similarity, start: int, stop: int) -> Iterator[tuple[float, int]]:
    """The sums over the tiles of a square block, of what lies above its diagonal; and how much of it that was."""
    for row in range(start, stop, TILE):
        rows = slice(row, min(row + TILE, stop))
        for col in range(row, stop, TILE):
            same = col == row
            tile = to_host(similarity.block(rows, rows if same else slice(col, min(col + TILE, stop))))
            yield float((np.triu(tile, 1) if same else tile).sum()), tile.size * (1 if same else 2)


def _of_function(texts: Grouped, function: Callable[[Any, Any], Any]) -> np.ndarray:
    """The sum of a function of two texts over the pairs i < j of each group."""
    sums = np.zeros(len(texts.labels))
    done, total = 0, int((texts.sizes * (texts.sizes - 1)).sum()) // 2
    with Progress("D-Lex-Sim") as progress:
        for g in np.flatnonzero(texts.sizes > 1).tolist():
            group = texts.texts[texts.starts[g] : texts.starts[g + 1]]
            with texts.naming(g):
                for i, left in enumerate(group):
                    sums[g] += sum(_number(function(left, group[j]), i, j) for j in range(i + 1, len(group)))
                    done += len(group) - i - 1
                    progress.step(done / total)
    return sums


def _number(value: Any, i: int, j: int) -> float:
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
    odd = next((token for token in tokens if not isinstance(token, str)), None)
    if odd is not None:
        raise InputError(f"METEOR met the token {brief(odd)}; expected tokens that are texts.")
    return tokens
