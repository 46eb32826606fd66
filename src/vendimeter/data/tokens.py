"""Texts as the user has them, and tokenizers: by name, of Hugging Face, or functions of the user's own."""

from __future__ import annotations

import difflib
import functools
import hashlib
import os
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from vendimeter.data.arrays import as_list, is_missing, is_sparse
from vendimeter.data.devices import is_foreign
from vendimeter.errors import InputError
from vendimeter.messages import brief, check_characters, shape_of, unknown
from vendimeter.optional import require
from vendimeter.present.text import printable

__all__ = [
    "SACREBLEU",
    "Texts",
    "Tokenizer",
    "as_text",
    "check",
    "format_tokenizer",
    "identity",
    "split",
    "texts_of",
    "tokens_of",
    "words",
]

Tokenizer = str | Callable[[str], Sequence[Hashable]] | None
Batch = Callable[[list[str]], list[Sequence[Hashable]]]

SACREBLEU = ("13a", "intl", "zh", "char")  # those of its tokenizers that need no model
AT_ONCE = 4096  # texts that a Hugging Face tokenizer gets at a time: what it gives takes much more room than its ids
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_BUILT_IN: dict[str, Callable[[str], list[str]]] = {
    "words": _WORD.findall,
    "characters": list,
    "whitespace": str.split,
}
_NAMES = (*_BUILT_IN, *(f"sacrebleu:{name}" for name in SACREBLEU))


def words(text: str) -> list[str]:
    """Words (with inner apostrophes) and punctuation marks.

    Examples
    --------
    >>> words("Don't stop, now")
    ["Don't", 'stop', ',', 'now']
    """
    return _WORD.findall(text)


# ------------------------------------------------------------------------------------------------------------- texts


class Texts(list[Any]):
    """Texts, as `texts_of` gives them, that keep their tokens as numbers: several questions split them only once.

    Examples
    --------
    >>> calls = []
    >>> def tokenizer(text):
    ...     calls.append(text)
    ...     return text.split()
    >>> texts = Texts(["a b", "b"])
    >>> [tokens_of(texts_of(texts, "ngram"), tokenizer, lowercase=True)[0].tolist() for _ in range(2)], calls
    ([[0, 1, 1], [0, 1, 1]], ['a b', 'b'])
    """

    def __init__(self, texts: Sequence[Any]):
        super().__init__(texts)
        self.tokens: dict[
            tuple[Any, bool], tuple[Tokenizer, tuple[np.ndarray, np.ndarray, list[Hashable]]]
        ] = {}

    @classmethod
    def of(cls, samples: Any, kernel: str) -> Texts:
        """The samples as texts; those that keep their tokens already are themselves."""
        texts = texts_of(samples, kernel)
        return texts if isinstance(texts, Texts) else cls(texts)

    @property
    def bytes(self) -> int:
        """The memory that the numbers of the tokens take."""
        return sum(ids.nbytes + starts.nbytes for _, (ids, starts, _) in self.tokens.values())

    def take(self, positions: np.ndarray) -> Texts:
        """Some of the texts, with their tokens as if these had been numbered anew."""
        texts = Texts([self[int(i)] for i in positions])
        for key, (tokenizer, (ids, starts, vocabulary)) in self.tokens.items():
            of_texts = [ids[starts[i] : starts[i + 1]] for i in positions]
            ends = np.cumsum([0, *map(len, of_texts)])
            used, first, number = np.unique(
                np.concatenate([ids[:0], *of_texts]), return_index=True, return_inverse=True
            )
            in_order = np.argsort(first)
            renumbered = np.empty_like(in_order)
            renumbered[in_order] = np.arange(len(used))
            words_used = [vocabulary[token] for token in used[in_order].tolist()]
            texts.tokens[key] = tokenizer, (renumbered[number].astype(np.int64), ends, words_used)
        return texts


def texts_of(
    samples: Any, kernel: str, *, as_text: Callable[[Any], Any] | None = None, who: str | None = None
) -> list[Any]:
    """Texts as strings, or all of them as tuples of tokens; anything else is an error that names the item.

    Parameters
    ----------
    samples : Any
        What the user passed.
    kernel : str
        The name of the kernel, for messages.
    as_text : callable, optional
        Turns items that stand for a text into it.
    who : str, optional
        What wants the texts, for messages, where that is no kernel.

    Examples
    --------
    >>> texts_of(("a b", "c"), "ngram"), texts_of([["a", "b"], ["c"]], "ngram")
    (['a b', 'c'], [('a', 'b'), ('c',)])
    """
    if isinstance(samples, Texts) and as_text is None:
        return samples
    who = who or f"the {kernel} kernel"
    what = f"{who} expected texts (strings), or lists of tokens throughout"
    items = as_list(samples, kernel=who)
    if is_foreign(items) or is_sparse(items):
        raise InputError(f"samples is {brief(items)}; {what}.")
    if isinstance(items, np.ndarray):
        if items.ndim != 1:
            raise InputError(
                f"samples has shape {shape_of(items.shape)}; {what}. For rows of tokens pass samples.tolist()."
            )
        items = items.tolist()
    items = list(items) if as_text is None else [as_text(item) for item in items]
    if all(isinstance(item, str) for item in items):
        return items
    converted = [
        tuple(item) if isinstance(item, list | tuple) or _is_token_array(item) else item for item in items
    ]
    if all(isinstance(item, tuple) for item in converted):
        return converted
    kind = str if isinstance(converted[0], str) else tuple
    i = next(i for i, item in enumerate(converted) if not isinstance(item, kind))
    gap = ", a missing value" if is_missing(items[i]) else ""
    advice = " Fill or drop it." if gap else " Decode bytes first." if isinstance(items[i], bytes) else ""
    raise InputError(f"item {i} is a {type(items[i]).__name__}{gap}; {what}.{advice}", item=i)


def _is_token_array(item: Any) -> bool:
    """Whether this is a row of tokens as the columns of frames hold them."""
    return isinstance(item, np.ndarray) and item.ndim == 1


def as_text(item: Any) -> Any:
    """Sequences of Biopython as texts; anything else as it is."""
    if type(item).__module__.partition(".")[0] != "Bio":
        return item
    return str(getattr(item, "seq", item))


# -------------------------------------------------------------------------------------------------------- tokenizers


def check(tokenizer: Any) -> None:
    """Refuse what is no tokenizer, and misspelt names, before anything is loaded."""
    if tokenizer is None or (callable(tokenizer) and not isinstance(tokenizer, str)):
        return
    if not isinstance(tokenizer, str) or not tokenizer.strip():
        raise InputError(
            f"tokenizer={brief(tokenizer)}; expected a function from a text to its tokens, or a name: 'words', "
            "'characters', 'whitespace', 'sacrebleu:13a', or a Hugging Face tokenizer by its name or folder."
        )
    if tokenizer in _NAMES or os.path.exists(tokenizer):
        return
    if tokenizer.lower() in SACREBLEU:
        raise InputError(
            f"there is no tokenizer {brief(tokenizer)}; expected 'sacrebleu:{tokenizer.lower()}'."
        )
    near = difflib.get_close_matches(tokenizer.lower(), _NAMES, n=1, cutoff=0.75)
    if near or tokenizer.lower().startswith("sacrebleu:"):
        raise unknown("tokenizer", tokenizer, _NAMES)


def format_tokenizer(tokenizer: Tokenizer) -> str:
    """The tokenizer in the text of a kernel."""
    if isinstance(tokenizer, str):
        return repr(printable(tokenizer))
    return getattr(tokenizer, "__qualname__", "function")


def identity(tokenizer: Tokenizer) -> str | None:
    """A digest of the file of a Hugging Face tokenizer, which its name or folder may not stay with; else None."""
    if not isinstance(tokenizer, str) or tokenizer in _NAMES:
        return None
    return _load(tokenizer)[1]


def split(texts: Sequence[Any], tokenizer: Tokenizer, *, lowercase: bool) -> list[Sequence[Hashable]]:
    """The tokens of each text; texts that came as tokens are taken as they are.

    Examples
    --------
    >>> split(["A b", "c"], "characters", lowercase=True)
    [['a', ' ', 'b'], ['c']]
    """
    if not texts or not isinstance(texts[0], str):
        if tokenizer is not None:
            raise InputError(
                f"the items are lists of tokens already, and tokenizer={brief(tokenizer)} splits texts; expected one "
                "or the other. Leave tokenizer= away, or pass the texts."
            )
        return list(texts)
    cased = [text.lower() for text in texts] if lowercase else list(texts)
    if tokenizer is None:
        return list(map(words, cased))
    return _tokenizer_by_name(tokenizer)(cased) if isinstance(tokenizer, str) else _apply(tokenizer, cased)


def tokens_of(
    texts: Sequence[Any], tokenizer: Tokenizer, *, lowercase: bool
) -> tuple[np.ndarray, np.ndarray, list[Hashable]]:
    """The tokens of all texts as whole numbers, one after another; where each text begins; and the tokens by number.

    Examples
    --------
    >>> ids, starts, vocabulary = tokens_of(["a b a", "", "b"], None, lowercase=True)
    >>> ids.tolist(), starts.tolist(), vocabulary
    ([0, 1, 0, 1], [0, 3, 3, 4], ['a', 'b'])
    """
    kept = texts.tokens if isinstance(texts, Texts) else {}
    key = (tokenizer if isinstance(tokenizer, str) else id(tokenizer), lowercase)
    if key not in kept:  # with the tokenizer, so that no other one gets its id
        kept[key] = tokenizer, _number_tokens(texts, tokenizer, lowercase)
    return kept[key][1]


def _number_tokens(
    texts: Sequence[Any], tokenizer: Tokenizer, lowercase: bool
) -> tuple[np.ndarray, np.ndarray, list[Hashable]]:
    from collections import defaultdict
    from itertools import chain

    lists = split(texts, tokenizer, lowercase=lowercase)
    starts = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)), out=starts[1:])
    id_of_token: defaultdict[Hashable, int] = defaultdict()
    id_of_token.default_factory = id_of_token.__len__  # a token that was not met before gets the next number
    try:
        ids = np.fromiter(map(id_of_token.__getitem__, chain.from_iterable(lists)), np.int64, int(starts[-1]))
    except TypeError:
        i = next(i for i, tokens in enumerate(lists) if not _hashable(tokens))
        raise _not_tokens_error(lists[i], i, tokenizer) from None
    vocabulary = list(id_of_token)
    if any(is_missing(token) for token in vocabulary):
        i = next(i for i, tokens in enumerate(lists) if any(is_missing(token) for token in tokens))
        raise InputError(
            f"item {i} holds a missing token; expected tokens throughout. Fill or drop it.", item=i
        )
    return ids, starts, vocabulary


def _hashable(tokens: Sequence[Any]) -> bool:
    try:
        return hash(tuple(tokens)) is not None
    except TypeError:
        return False


def _not_tokens_error(value: Any, i: int, tokenizer: Tokenizer) -> InputError:
    source = f"item {i} is" if tokenizer is None else f"the tokenizer gave {brief(value)} for item {i}:"
    content = f" {brief(value)};" if tokenizer is None else ""
    return InputError(f"{source}{content} expected a sequence of hashable tokens.", item=i)


def _apply(tokenizer: Callable[[str], Any], texts: list[str]) -> list[Sequence[Hashable]]:
    """The tokens of each text by a function of the user's own, called once a text."""
    lists: list[Sequence[Hashable]] = []
    for i, text in enumerate(texts):
        tokens = tokenizer(text)
        try:
            lists.append(tuple(tokens))
        except TypeError:
            raise _not_tokens_error(tokens, i, tokenizer) from None
    return lists


def _tokenizer_by_name(name: str) -> Batch:
    """The tokenizer of this name, for many texts at once."""
    check(name)
    if name in _BUILT_IN:
        split_text = _BUILT_IN[name]
        return lambda texts: list(map(split_text, texts))
    if name in _NAMES:
        return _sacrebleu(name.partition(":")[2])
    return functools.partial(_encode, _load(name)[0])


def _load(name: str) -> tuple[Any, str]:
    """The tokenizer of Hugging Face with this name or folder, and a digest of its file."""
    file = _find_file(name)
    status = os.stat(file)
    return _load_cached(file, (status.st_size, status.st_mtime_ns, status.st_ino))


@functools.cache
def _sacrebleu(name: str) -> Batch:
    sacrebleu = require("sacrebleu", extra="text", purpose=f"the tokenizer 'sacrebleu:{name}'")
    mark_tokens = sacrebleu.BLEU(tokenize=name).tokenizer
    return lambda texts: [mark_tokens(text.rstrip()).split() for text in texts]


def _encode(tokenizer: Any, texts: list[str]) -> list[Sequence[Hashable]]:
    lists: list[Sequence[Hashable]] = []
    for start in range(0, len(texts), AT_ONCE):
        try:
            encodings = tokenizer.encode_batch(texts[start : start + AT_ONCE], add_special_tokens=False)
        except TypeError:
            _check_unicode(texts)
            raise
        lists.extend(encoding.ids for encoding in encodings)
    return lists


def _check_unicode(texts: list[str]) -> None:
    """Refuse texts that are no valid Unicode, which the library takes for no texts at all."""
    for i, text in enumerate(texts):
        check_characters(text, f"item {i}", item=i)


@functools.lru_cache(maxsize=8)
def _load_cached(file: str, state: tuple[int, int, int]) -> tuple[Any, str]:
    """The tokenizer of a file and its digest, loaded once as long as the file stays as it is."""
    library = require("tokenizers", extra="text", purpose="a Hugging Face tokenizer")
    try:
        with open(file, "rb") as opened:
            content = opened.read()
        tokenizer = library.Tokenizer.from_buffer(content)
    except Exception as error:  # the library raises nothing narrower
        raise InputError(
            f"{brief(file)} is not a tokenizer that the library tokenizers can read ({printable(error, 120)}); "
            "expected the file tokenizer.json that save_pretrained(folder) writes."
        ) from None
    tokenizer.no_truncation()  # what was saved for a model cuts long texts …
    tokenizer.no_padding()  # … and fills short ones
    return tokenizer, hashlib.sha256(content).hexdigest()


def _find_file(name: str) -> str:
    """The file tokenizer.json of a folder, or of the Hugging Face hub, where a copy on this machine comes first."""
    if os.path.isfile(name):
        return os.path.abspath(name)
    folder = os.path.join(name, "tokenizer.json")
    if os.path.isfile(folder):
        return os.path.abspath(folder)
    if os.path.isdir(name):
        raise InputError(
            f"the folder {brief(name)} holds no tokenizer.json; expected one. Write it with transformers: "
            "AutoTokenizer.from_pretrained(folder, use_fast=True).save_pretrained(folder)."
        )
    hub = require("huggingface_hub", extra="text", purpose=f"the tokenizer {brief(name)}")
    try:
        try:
            return hub.hf_hub_download(name, "tokenizer.json", local_files_only=True)
        except FileNotFoundError:
            return hub.hf_hub_download(name, "tokenizer.json")
    except Exception as error:  # no connection, no such model, no right to it, a name that cannot be one
        names = ", ".join(map(repr, _NAMES))
        raise InputError(
            f"the tokenizer {brief(name)} is neither on this machine nor could it be fetched from the Hugging Face hub "
            f"({printable(' '.join(str(error).split()), 120)}); expected {names}, or a Hugging Face tokenizer. "
            "Without a connection, save it elsewhere with save_pretrained(folder) and pass tokenizer='path/to/folder'."
        ) from None
