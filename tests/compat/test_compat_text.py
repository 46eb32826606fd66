"""The original's score of texts, against what the original does, done with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.compat import text_utils
from vendimeter.errors import InputError
from vendimeter.kernels import NGram

TEXTS = [
    "a dog runs on the beach",
    "A dog runs on grass, fast",
    "two boats lie at sea",
    "a dog , a dog and a cat",
]
SHORT = [*TEXTS, "two boats", "dog", "", "two boats"]


def original(texts, ns, tokenizer):
    """Count, normalise, multiply, average, eigenvalues, entropy: as vendi_score.text_utils does."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    normalize = pytest.importorskip("sklearn.preprocessing").normalize
    matrices = []
    for n in ns:
        vectorizer = text.CountVectorizer(
            tokenizer=tokenizer, token_pattern=None, ngram_range=(n, n), lowercase=False
        )
        rows = normalize(vectorizer.fit_transform(texts))
        matrices.append((rows @ rows.T).toarray())
    values = np.linalg.eigvalsh(np.mean(matrices, axis=0) / len(texts))
    values = values[values > 0]
    return np.exp(-(values * np.log(values)).sum())


@pytest.mark.parametrize("ns", [[1, 2, 3, 4], [1], [2, 4], (3,), [2, 2, 1]])
@pytest.mark.parametrize("texts", [TEXTS, SHORT], ids=["long", "short"])
@pytest.mark.parametrize("tokenizer", [str.split, list], ids=["words", "characters"])
def test_numbers_are_the_originals(texts, ns, tokenizer):
    found = text_utils.ngram_vendi_score(texts, ns=ns, tokenizer=tokenizer)
    assert found == pytest.approx(original(texts, ns, tokenizer), rel=1e-10)


def test_long_texts_get_a_score_and_short_ones_a_number():
    long = text_utils.ngram_vendi_score(TEXTS, tokenizer=str.split)
    assert isinstance(long, vm.Score)
    assert long == pytest.approx(
        vm.score(TEXTS, NGram(1, 4, tokenizer=str.split, lowercase=False)), rel=1e-10
    )
    short = text_utils.ngram_vendi_score(SHORT, tokenizer=str.split)
    assert type(short) is float
    ours = vm.score(SHORT, NGram(1, 4, tokenizer=str.split, lowercase=False))
    assert abs(short - ours) > 0.1  # no Vendi Score: the diagonal is below 1


def test_options_that_the_original_ignores_are_told():
    with pytest.warns(UserWarning, match="ignores lowercase, as the original does"):
        found = text_utils.ngram_vendi_score(TEXTS, tokenizer=str.split, lowercase=True)
    assert found == text_utils.ngram_vendi_score(TEXTS, tokenizer=str.split)


def test_the_default_tokenizer_is_that_of_nltk(monkeypatch):
    tokenize = pytest.importorskip("nltk.tokenize")
    monkeypatch.setattr(tokenize, "word_tokenize", str.split)
    assert text_utils.ngram_vendi_score(TEXTS) == text_utils.ngram_vendi_score(TEXTS, tokenizer=str.split)


def test_without_the_data_of_nltk_a_tokenizer_is_asked_for(monkeypatch):
    pytest.importorskip("nltk")
    monkeypatch.setattr("nltk.data.path", [])
    with pytest.raises(InputError, match=r"tokenizer=str.split.*punkt_tab"):
        text_utils.ngram_vendi_score(TEXTS)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"sents": TEXTS, "ns": []}, "ns is empty"),
    ({"sents": TEXTS, "ns": [0]}, "ns=0.*from 1 up"),
    ({"sents": TEXTS, "ns": 2}, r"ns=2; expected the lengths.*ns=\[1, 2\]"),
    ({"sents": TEXTS, "ns": "12"}, "ns='12'; expected the lengths"),
    ({"sents": TEXTS, "ns": None}, "ns=None; expected the lengths"),
    ({"sents": ["a b", "c"], "ns": [1, 3]}, r"no text has 3 tokens \(the longest has 2\).*ns up to 2"),
    ({"sents": []}, "empty"),
    ({"sents": ["a", None]}, "item 1 is a NoneType"),
    ({"sents": [["a"], ["b"]]}, "item 0 is.*texts"),
    ({"sents": TEXTS, "tokenizer": "words"}, "tokenizer='words'.*function"),
])  # fmt: skip
def test_bad_input(arguments, message):
    with pytest.raises(InputError, match=message):
        text_utils.ngram_vendi_score(**{"tokenizer": str.split} | arguments)
