"""What samples are, guessed from their content: for the command, which says so. The library itself never guesses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vendimeter.data.collection import KINDS, Collection
from vendimeter.data.molecules import LONGEST
from vendimeter.errors import InputError, MissingDependencyError, brief
from vendimeter.io.text_forms import (
    AMINO_ACIDS,
    EXPECTED,
    HALF,
    NUCLEOTIDES,
    SHORTEST_SEQUENCE,
    form_of,
    is_marked_smiles,
    is_sequence,
    is_smiles,
    stands_for,
)

__all__ = ["Guess", "guess"]


NOT_NUMBERS = ("texts", "tokens", "categories", "molecules", "sequences")  # kinds of which "01" is not 1

LOOKED_AT = 1000  # samples that are looked at

WELL_FORMED = (
    0.9  # of the molecules of a poor model no more may be well formed; RDKit says which of them are none
)
TRIED, FEWEST = (
    50,
    0.1,
)  # texts that RDKit is asked about; the share it must read: a poor model writes many others


Misfit = Callable[[str], str | None]


class Guess(NamedTuple):
    """A kind, what told it, and what is wrong with a text that is not of this kind, where that can be told."""

    kind: str
    reason: str
    misfit: Misfit | None = None


def guess(collection: Collection, forms: Sequence[str] = ()) -> Guess:
    """What the samples are: what the file says, or what they look like; of texts, what more than half look like.

    Parameters
    ----------
    collection : Collection
        The samples.
    forms : sequence of str
        What the texts among them may stand for: "numbers", "vectors".

    Examples
    --------
    >>> guess(Collection(["CC(=O)Oc1ccccc1C(=O)O", "c1ccccc1", "CCO"]))
    Guess(kind='molecules', reason='the texts are SMILES', misfit=None)
    >>> guess(Collection(["a dog", "two boats at sea"])).kind
    'texts'
    """
    if collection.kind is not None:
        return Guess(collection.kind, "so said")
    if collection.is_table:
        return Guess("table", "several columns")
    samples = collection.samples
    if isinstance(samples, np.ndarray):
        return _of_array(samples)
    seen = samples[:LOOKED_AT]
    first = seen[0]
    if all(isinstance(item, str) for item in seen):
        return _of_texts(seen, forms)
    if all(_is_picture(item) for item in seen):
        return Guess("images", "pictures")
    if isinstance(first, Sequence) and collection.is_nested:
        return _of_lists(seen, collection.labels)
    if type(first).__module__.startswith("rdkit"):
        return Guess("molecules", "structures")
    if all(isinstance(item, bool | int | float) for item in seen):
        return _of_array(np.asarray(samples))
    raise InputError(
        f"the samples are such as {brief(first)}, which the command cannot tell; expected texts, vectors, pictures or "
        f"lists of texts. Name another column with --column, or the kind with --kind: {', '.join(KINDS)}."
    )


def _of_array(samples: np.ndarray) -> Guess:
    if samples.dtype.kind in "US":
        return _of_texts(samples[:LOOKED_AT].tolist(), ())
    if samples.ndim >= 3:
        if samples.ndim <= 4 and samples.dtype == np.uint8:
            return Guess("images", f"bytes in {samples.ndim} axes")
        return Guess("vectors", f"arrays of shape {samples.shape[1:]}")
    if samples.ndim == 1:
        return Guess("categories" if samples.dtype.kind in "biu" else "numbers", "single numbers")
    if samples.dtype == bool:
        return Guess("tags", f"rows of {samples.shape[1]} marks, yes or no")
    seen = samples[:LOOKED_AT]
    if seen.dtype.kind == "f" and seen.shape[1] > 1:
        with np.errstate(over="ignore", invalid="ignore"):
            sums = seen.sum(axis=1, dtype=np.float64)
        tolerance = 1e-2 if seen.dtype.itemsize == 2 else 1e-4
        if (seen >= 0).all() and np.abs(sums - 1).max() <= tolerance:
            return Guess("probabilities", "no number is negative and every row sums to 1")
    return Guess("vectors", f"rows of {samples.shape[1]} numbers")


def _of_texts(texts: Sequence[str], forms: Sequence[str]) -> Guess:
    form = form_of(texts, forms)
    if form != "texts":
        return Guess(form, f"{form} written as texts", _misfit(form, lambda text: stands_for(form, text)))
    filled = [text.strip() for text in texts if text.strip()]
    formed = sum(1 for text in filled if len(text) <= LONGEST and is_smiles(text))
    marked = sum(map(is_marked_smiles, filled))
    if formed > HALF * len(filled) and marked >= 0.5 * len(filled) and _are_molecules(filled):
        enough = formed >= WELL_FORMED * len(filled)
        misfit = _misfit("molecules", lambda text: not text.strip() or is_smiles(text.strip()))
        return Guess("molecules", "the texts are SMILES", None if enough else misfit)
    found = max(_sequences(filled), key=lambda one: one[0], default=None)
    if found is not None:
        _, letters, what = found
        misfit = _misfit(
            "sequences", lambda text: not text.strip() or is_sequence(text.strip(), letters), what
        )
        return Guess("sequences", f"the texts are {what}", misfit)
    single = all(not re.search(r"\s", text) and len(text) <= 40 for text in filled)
    if len(filled) >= 10 and single and len(set(filled)) <= len(filled) // 5:
        return Guess("categories", f"single words, of which {len(set(filled))} are different")
    return Guess("texts", "words and sentences")


def _sequences(texts: Sequence[str]) -> Iterator[tuple[float, frozenset[str], str]]:
    """The letters with which more than half of the texts are written, with the share of those."""
    for letters, what in ((NUCLEOTIDES, "nucleotides"), (AMINO_ACIDS, "amino acids")):
        lengths = [len(text) for text in texts if is_sequence(text, letters)]
        if len(lengths) > HALF * len(texts) and np.mean(lengths) >= SHORTEST_SEQUENCE:
            yield len(lengths) / len(texts), letters, what


def _misfit(kind: str, fits: Callable[[str], bool], letters: str = "") -> Misfit:
    expected = f"the letters of {letters}" if letters else EXPECTED[kind]
    kinds = {"numbers": "categories or texts", "vectors": "texts"}.get(kind, f"{kind} all the same, or texts")
    return lambda text: (
        None
        if fits(text)
        else f"holds {brief(text)} where most samples are {kind}; expected {expected}. Say with kind= (--kind) if all "
        f"of them are {kinds}"
    )


def _are_molecules(texts: Sequence[str]) -> bool:
    """Whether RDKit, where it is installed, can read some of them: a telephone number is made of the same signs."""
    try:
        from vendimeter.data.molecules import parse_all

        found = [reason is None for _, reason in parse_all(list(texts[:TRIED]))]
    except MissingDependencyError:
        return True
    return sum(found) >= FEWEST * len(found)


def _of_lists(lists: Sequence[Sequence[str]], labels: Any) -> Guess:
    """Lists of texts are answers, a group each, unless the texts are few, short and come again and again.

    Where each list has a label of its own, such as a prompt, it is a group: no one groups single samples.
    """
    if labels is not None and len(set(map(str, labels[: len(lists)]))) == len(lists) > 1:
        return Guess("texts", "lists of texts, each a group with a label of its own")
    parts = [part for item in lists for part in item]
    short = all(len(part) <= 40 and len(part.split()) <= 3 for part in parts)
    if parts and short and len(set(parts)) <= len(parts) / 2:
        return Guess("tags", "lists of short texts that come again")
    return Guess("texts", "lists of texts, each a group")


def _is_picture(item: Any) -> bool:
    if isinstance(item, Path):
        return True
    if isinstance(item, Mapping):
        return "bytes" in item and "path" in item
    return isinstance(item, bytes) or type(item).__module__.startswith("PIL.")
