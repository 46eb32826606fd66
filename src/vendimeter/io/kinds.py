"""The kind of samples, guessed from their content where it was asked for, as the command does, which says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vendimeter.data.collection import KINDS, Collection
from vendimeter.data.molecules import LONGEST
from vendimeter.errors import InputError, MissingDependencyError
from vendimeter.io.text_forms import (
    AMINO_ACIDS,
    EXPECTED,
    HALF,
    LOOKED_AT,
    NUCLEOTIDES,
    SHORTEST_SEQUENCE,
    form_of,
    is_marked_smiles,
    is_sequence,
    is_smiles,
    stands_for,
)
from vendimeter.messages import brief

__all__ = ["NOT_NUMBERS", "Guess", "Misfit", "guess"]

NOT_NUMBERS = ("texts", "tokens", "categories", "molecules", "sequences")  # kinds of which "01" is not 1
# From this share of texts with the signs of SMILES on, all are taken for molecules, and RDKit says which are broken, as
# some of a poor model's are. Below it a text without these signs is of another kind.
WELL_FORMED = 0.9
# Texts that RDKit is asked about, and the share of them that it must read: a poor model writes many others.
TRIED, FEWEST = 50, 0.1

Misfit = Callable[[str], str | None]


class Guess(NamedTuple):
    """A kind, the reason for it, and a function that says what is wrong with a text of another kind, if any."""

    kind: str
    reason: str
    misfit: Misfit | None = None


def guess(collection: Collection, forms: Sequence[str] = ()) -> Guess:
    """Guess the kind of samples: what the file says, or what they look like; of texts, what more than half look like.

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
        return _guess_array(samples)
    first_samples = samples[:LOOKED_AT]
    first = first_samples[0]
    if all(isinstance(item, str) for item in first_samples):
        return _guess_texts(first_samples, forms)
    if all(_is_picture(item) for item in first_samples):
        return Guess("images", "pictures")
    if isinstance(first, Sequence) and collection.is_nested:
        return _guess_lists(first_samples, collection.labels)
    if type(first).__module__.startswith("rdkit"):
        return Guess("molecules", "structures")
    if all(isinstance(item, bool | int | float) for item in first_samples):
        return _guess_array(np.asarray(samples))
    raise InputError(
        f"the samples are such as {brief(first)}, which the command cannot tell; expected texts, vectors, pictures or "
        f"lists of texts. Name another column with --column, or the kind with --kind: {', '.join(KINDS)}."
    )


def _guess_array(samples: np.ndarray) -> Guess:
    if samples.dtype.kind in "US":
        return _guess_texts(samples[:LOOKED_AT].tolist(), ())
    if samples.ndim >= 3:
        if samples.ndim <= 4 and samples.dtype == np.uint8:
            return Guess("images", f"bytes in {samples.ndim} axes")
        return Guess("vectors", f"arrays of shape {samples.shape[1:]}")
    if samples.ndim == 1:
        return Guess("categories" if samples.dtype.kind in "biu" else "numbers", "single numbers")
    if samples.dtype == bool:
        return Guess("tags", f"rows of {samples.shape[1]} marks, yes or no")
    first_samples = samples[:LOOKED_AT]
    if first_samples.dtype.kind == "f" and first_samples.shape[1] > 1:
        with np.errstate(over="ignore", invalid="ignore"):
            sums = first_samples.sum(axis=1, dtype=np.float64)
        tolerance = 1e-2 if first_samples.dtype.itemsize == 2 else 1e-4
        if (first_samples >= 0).all() and np.abs(sums - 1).max() <= tolerance:
            return Guess("probabilities", "no number is negative and every row sums to 1")
    return Guess("vectors", f"rows of {samples.shape[1]} numbers")


def _guess_texts(texts: Sequence[str], forms: Sequence[str]) -> Guess:
    form = form_of(texts, forms)
    if form != "texts":
        return Guess(
            form, f"{form} written as texts", _misfit_test(form, lambda text: stands_for(form, text))
        )
    filled = [text.strip() for text in texts if text.strip()]
    formed = sum(1 for text in filled if len(text) <= LONGEST and is_smiles(text))
    marked = sum(map(is_marked_smiles, filled))
    if formed > HALF * len(filled) and marked >= 0.5 * len(filled) and _are_molecules(filled):
        are_well_formed = formed >= WELL_FORMED * len(filled)
        misfit = _misfit_test("molecules", lambda text: not text.strip() or is_smiles(text.strip()))
        return Guess("molecules", "the texts are SMILES", None if are_well_formed else misfit)
    best = max(_sequence_alphabets(filled), key=lambda alphabet: alphabet[0], default=None)
    if best is not None:
        _, letters, alphabet_name = best
        misfit = _misfit_test(
            "sequences", lambda text: not text.strip() or is_sequence(text.strip(), letters), alphabet_name
        )
        return Guess("sequences", f"the texts are {alphabet_name}", misfit)
    single = all(not re.search(r"\s", text) and len(text) <= 40 for text in filled)
    if len(filled) >= 10 and single and len(set(filled)) <= len(filled) // 5:
        return Guess("categories", f"single words, of which {len(set(filled))} are different")
    return Guess("texts", "words and sentences")


def _sequence_alphabets(texts: Sequence[str]) -> Iterator[tuple[float, frozenset[str], str]]:
    """The alphabets in which more than half of the texts are written: share of texts, letters, name."""
    for letters, what in ((NUCLEOTIDES, "nucleotides"), (AMINO_ACIDS, "amino acids")):
        lengths = [len(text) for text in texts if is_sequence(text, letters)]
        if len(lengths) > HALF * len(texts) and np.mean(lengths) >= SHORTEST_SEQUENCE:
            yield len(lengths) / len(texts), letters, what


def _misfit_test(kind: str, fits: Callable[[str], bool], letters: str = "") -> Misfit:
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

        are_readable = [reason is None for _, reason in parse_all(list(texts[:TRIED]))]
    except MissingDependencyError:
        return True
    return sum(are_readable) >= FEWEST * len(are_readable)


def _guess_lists(lists: Sequence[Sequence[str]], labels: Any) -> Guess:
    """Lists of texts are answers, a group each, unless the texts are few, short and come again and again.

    Where each list has a label of its own, such as a prompt, it is a group: no one groups single samples.
    """
    if labels is not None and len(set(map(str, labels[: len(lists)]))) == len(lists) > 1:
        return Guess("texts", "lists of texts, each a group with a label of its own")
    texts = [text for item in lists for text in item]
    short = all(len(text) <= 40 and len(text.split()) <= 3 for text in texts)
    if texts and short and len(set(texts)) <= len(texts) / 2:
        return Guess("tags", "lists of short texts that come again")
    return Guess("texts", "lists of texts, each a group")


def _is_picture(item: Any) -> bool:
    if isinstance(item, Path):
        return True
    if isinstance(item, Mapping):
        return "bytes" in item and "path" in item
    return isinstance(item, bytes) or type(item).__module__.startswith("PIL.")
