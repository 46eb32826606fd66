"""Kernels of text: n-grams against counting one by one, BLEU against NLTK and sacreBLEU, tokenizers by name."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter.data import tokens as tokens_module
from vendimeter.errors import IndefiniteError, InputError, MissingDependencyError, TooLargeError
from vendimeter.kernels import BLEU, Edit, Match, NGram, On, Precomputed
from vendimeter.kernels.description import describe, rebuild
from vendimeter.kernels.text import STREAMED, hashes
from vendimeter.kernels.vectors import unit_rows
from vendimeter.similarity import Features
from vendimeter.solvers.plan import DENSE_LIMIT
from vendimeter.streams.accumulator import WIDEST

TEXTS = [
    "a man riding a wave on top of a surfboard",
    "A man riding a big wave, on a board!",
    "two boats at sea",
    "two boats",
    "Boats",
    "boats two",
    "",
    "the the the the the cat",
    "the the cat",
    "don't stop now",
    "a b c d e f g",
    "a b c d x f g",
]


def random_texts(count, words, longest, seed=0):
    rng = np.random.default_rng(seed)
    vocabulary = [f"w{i}" for i in range(words)]
    return [" ".join(rng.choice(vocabulary, size)) for size in rng.integers(0, longest, count)]


def counted(texts, low, high, tokenize):
    """Features of n-grams, one gram after another: what the kernel is, without any trick."""
    columns, indices, ends = {}, [], [0]
    for text in texts:
        tokens = tuple(tokenize(text.lower()))
        for n in range(low, high + 1):
            grams = [tokens[j : j + n] for j in range(len(tokens) - n + 1)] or [tokens]
            indices.extend(columns.setdefault((n, gram), len(columns)) for gram in grams)
            ends.append(len(indices))
    orders = high - low + 1
    shape = (len(texts) * orders, len(columns))
    bags = sparse.csr_array((np.ones(len(indices)), np.array(indices), np.array(ends)), shape=shape)
    bags.sum_duplicates()
    unit_rows(bags, np.arange(shape[0]))
    bags.data /= np.sqrt(orders)
    return sparse.csr_array((bags.data, bags.indices, bags.indptr[::orders]), shape=(len(texts), shape[1]))


def by_words(text):
    return re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text)


# ----------------------------------------------------------------------------------------------------------- n-grams


@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 4), (2, 3), (4, 4), (3, 9)])
@pytest.mark.parametrize(
    "texts", [TEXTS, random_texts(60, 3, 7), random_texts(80, 30, 25)], ids=["own", "short", "long"]
)
def test_features_are_those_of_counting_one_by_one(texts, low, high):
    features = NGram(low, high).similarity(texts)
    expected = counted(texts, low, high, by_words)
    assert isinstance(features, Features)
    assert features.width == expected.shape[1]
    np.testing.assert_allclose(features.dense(), (expected @ expected.T).toarray(), rtol=0, atol=4e-15)
    np.testing.assert_allclose(np.diag(features.dense()), 1, rtol=0, atol=4e-15)


@pytest.mark.parametrize(("name", "tokenize"), [
    ("words", by_words), ("characters", list), ("whitespace", str.split), (list, list), (None, by_words),
])  # fmt: skip
def test_tokenizers_by_name(name, tokenize):
    texts = [*TEXTS, "caf\u00e9", "cafe\u0301", "🙂🙃 \ud800"]
    expected = counted(texts, 1, 2, tokenize)
    found = NGram(1, 2, tokenizer=name).similarity(texts).dense()
    np.testing.assert_allclose(found, (expected @ expected.T).toarray(), atol=1e-15)
    if name == "characters":  # é in one code point and in two are different texts
        assert found[len(TEXTS), len(TEXTS) + 1] < 1


def test_tokens_may_be_given():
    lists = [text.split() for text in TEXTS]
    expected = NGram(1, 3, tokenizer="whitespace", lowercase=False).similarity(TEXTS).dense()
    column = np.empty(len(lists), dtype=object)
    column[:] = [np.array(tokens, dtype=object) for tokens in lists]
    numbers = {word: i for i, word in enumerate({word for tokens in lists for word in tokens})}
    for given in (
        lists,
        tuple(map(tuple, lists)),
        column,
        pd.Series(lists),
        pl.Series(lists),
        pa.array(lists),
    ):
        np.testing.assert_allclose(NGram(1, 3).similarity(given).dense(), expected, atol=1e-15)
    ids = [[numbers[word] for word in tokens] for tokens in lists]
    np.testing.assert_allclose(NGram(1, 3).similarity(ids).dense(), expected, atol=1e-15)
    assert vm.score(lists, NGram(1, 3)) == pytest.approx(
        vm.score(TEXTS, NGram(1, 3, tokenizer=str.split, lowercase=False)), rel=1e-12
    )
    doubled = vm.score(lists * 2, BLEU())  # equal lists are one item
    assert doubled.diagnostics["distinct"] == len(lists)
    assert doubled == pytest.approx(vm.score(TEXTS, BLEU(tokenizer="whitespace")), rel=1e-12)


@pytest.mark.parametrize(
    "make", [list, tuple, np.array, lambda x: np.array(x, dtype=object), pd.Series, pl.Series, pa.array]
)
def test_texts_in_any_container(make):
    expected = counted(TEXTS, 1, 4, by_words)
    np.testing.assert_allclose(
        NGram().similarity(make(TEXTS)).dense(), (expected @ expected.T).toarray(), atol=1e-15
    )


BAD = {
    "None": (["a", None], "item 1 is a NoneType, a missing value.*Fill or drop"),
    "NaN": (["a", "b", float("nan")], "item 2 is a float, a missing value.*Fill or drop"),
    "pandas' NA": (pd.Series(["a", pd.NA], dtype=object), "item 1 is a NAType, a missing value"),
    "a gap in Arrow": (pa.array(["a", None]), "item 1 is a NoneType, a missing value"),
    "bytes": ([b"a"], "item 0 is a bytes.*texts.*Decode"),
    "bytes further on": (["a", b"a"], "item 1 is a bytes"),
    "numbers": ([1, 2], "item 0 is a int.*texts"),
    "a text among tokens": ([["a"], "a"], "item 1 is a str.*lists of tokens throughout"),
    "tokens among texts": (["a", ["a"]], "item 1 is a list.*texts"),
    "a matrix of texts": (np.array([["a", "b"]]), r"shape \(1, 2\).*tolist"),
    "tokens that are lists": ([["a"], [["b"]]], "item 1 .*hashable tokens"),
    "a missing token": ([["a"], ["b", None]], "item 1 holds a missing token"),
    "sparse": (sparse.eye_array(3), "csr_array.*texts"),
    "nothing": ([], "empty"),
    "one text": ("a b c", "single text"),
}  # fmt: skip


@pytest.mark.parametrize("kernel", [NGram(), BLEU()], ids=repr)
@pytest.mark.parametrize("case", BAD)
def test_bad_texts_are_named(case, kernel):
    samples, message = BAD[case]
    with pytest.raises(InputError, match=message):
        vm.score(samples, kernel)


@pytest.mark.parametrize("kernel", [NGram(), BLEU(), Edit()], ids=repr)
def test_tensors_of_several_lengths_are_no_lists_of_tokens(kernel):
    torch = pytest.importorskip("torch")
    for samples in ([torch.arange(2), torch.arange(3)], [torch.ones(2, 2), torch.ones(1, 2)]):
        with pytest.raises(InputError, match=r"item 0 is a Tensor.*lists of tokens"):
            vm.score(samples, kernel)


BAD_OPTIONS = {
    "a number": (lambda: NGram(tokenizer=5), "tokenizer=5.*function.*'words'"),
    "an empty name": (lambda: NGram(tokenizer=" "), "tokenizer=' '.*name"),
    "a misspelt name": (lambda: NGram(tokenizer="charcters"), "Did you mean 'characters'"),
    "the wrong number": (lambda: BLEU(tokenizer="word"), "Did you mean 'words'"),
    "a name of sacreBLEU alone": (lambda: NGram(tokenizer="13a"), "expected .sacrebleu:13a."),
    "no tokenizer of sacreBLEU": (lambda: NGram(tokenizer="sacrebleu:14b"), "sacrebleu:13a"),
    "tokens and a tokenizer": (lambda: vm.score([["a"]], NGram(tokenizer="words")), "already.*Leave tokenizer="),
    "a tokenizer without tokens": (lambda: vm.score(["a"], BLEU(tokenizer=lambda text: 3)), "gave 3 for item 0"),
    "tokens that cannot be hashed": (
        lambda: vm.score(["a", "b"], NGram(tokenizer=lambda t: [[1]] if t == "b" else t)),
        r"gave \(\[1\],\) for item 1.*hashable",
    ),
    "no columns": (lambda: NGram(hashed=0), "hashed=0.*from 1 up"),
    "too many columns": (lambda: NGram(hashed=2**25), "hashed=33554432.*at most 16777216"),
    "tokens without a hash of ours": (lambda: vm.score([[(1, 2)]], NGram(hashed=8)), "token.*texts or whole numbers"),
    "BLEU of no grams": (lambda: BLEU(0), "n=0"),
    "no epsilon": (lambda: BLEU(epsilon=0), "epsilon=0.*above 0"),
    "a large epsilon": (lambda: BLEU(epsilon=1.0), "epsilon=1.0.*below 1"),
    "project as a text": (lambda: BLEU(project="yes"), "project='yes'.*True or False"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options(case):
    call, message = BAD_OPTIONS[case]
    with pytest.raises(InputError, match=message):
        call()


def test_kernels_are_written_and_read_back():
    kernels = (
        NGram(2, 3, tokenizer="characters", lowercase=False, hashed=16),
        BLEU(2, tokenizer="sacrebleu:13a", lowercase=True, epsilon=0.5, project=False),
    )
    for kernel in kernels:
        assert rebuild(json.loads(json.dumps(describe(kernel)))) == kernel
    assert [repr(kernel) for kernel in (*kernels, NGram(), BLEU(), NGram(1, 2, tokenizer=str.split))] == [
        "NGram(2, 3, tokenizer='characters', lowercase=False, hashed=16)",
        "BLEU(2, tokenizer='sacrebleu:13a', lowercase=True, epsilon=0.5, project=False)",
        "NGram(1, 4)",
        "BLEU()",
        "NGram(1, 2, tokenizer=str.split)",
    ]


# ----------------------------------------------------------------------------------------------------------- hashing


def test_hashed_ngrams_in_many_columns_are_the_ngrams():
    texts = [text for text in TEXTS if text] + random_texts(40, 20, 9)
    exact, hashed = NGram(1, 3).similarity(texts), NGram(1, 3, hashed=1 << 22).similarity(texts)
    np.testing.assert_allclose(hashed.dense(), exact.dense(), atol=1e-15)


def test_hashed_ngrams_in_few_columns():
    texts = random_texts(50, 30, 12)
    exact, hashed = NGram(1, 2).similarity(texts).dense(), NGram(1, 2, hashed=64).similarity(texts)
    assert hashed.width == 128
    found = hashed.dense()
    np.testing.assert_allclose(np.diag(found), 1, atol=1e-14)
    assert found.min() >= 0
    assert found.max() <= 1 + 1e-14
    assert (found - exact).mean() > 0.01  # grams that share a column make texts more alike
    finer = NGram(1, 2, hashed=2048).similarity(texts).dense()
    assert np.abs(finer - exact).mean() < 0.2 * np.abs(found - exact).mean()


def test_whole_numbers_of_any_type_are_hashed_alike():
    numbers = [[3, 1, 2], [2, 1], [70, 3]]
    expected = NGram(1, 2, hashed=512).similarity(numbers).dense()
    for given in (
        [np.array(row, dtype=np.int32) for row in numbers],
        [list(np.array(row, dtype=np.uint8)) for row in numbers],
        pa.array(numbers),
        pl.Series(numbers),
        pd.Series(numbers),
    ):
        np.testing.assert_array_equal(NGram(1, 2, hashed=512).similarity(given).dense(), expected)
    with pytest.raises(InputError, match="texts or whole numbers"):
        vm.score([np.array([1.5, 2.0])], NGram(hashed=8))


def test_hashed_columns_beyond_what_is_accumulated():
    assert STREAMED == WIDEST
    assert NGram(1, 4, hashed=4096).needs_all is None
    with pytest.raises(InputError, match=r"16,388 columns.*16,384.*hashed=4096 or less"):
        vm.Accumulator(NGram(1, 4, hashed=4097))


def test_hashes_are_the_same_everywhere():
    assert hashes(["a", 1, "é"]).tolist() == [1410542633125930404, 778860755400141486, 17581330670247589818]


def test_hashed_ngrams_accumulate():
    texts, kernel = random_texts(90, 20, 12), NGram(1, 2, hashed=128)
    total = vm.Accumulator(kernel)
    for start in range(0, 90, 20):
        total.update(texts[start : start + 20])
    whole = vm.score(texts, kernel)
    assert float(total.score()) == pytest.approx(float(whole), rel=1e-12)
    assert float(vm.score_stream((texts[i : i + 7] for i in range(0, 90, 7)), kernel)) == pytest.approx(
        float(whole)
    )
    with pytest.raises(InputError, match=r"NGram\(1, 2, hashed=4096\)"):
        vm.Accumulator(NGram(1, 2))
    with pytest.raises(InputError, match=r"in pairs.*hashed"):
        vm.Accumulator(BLEU())


# ------------------------------------------------------------------------------------------- Hugging Face, sacreBLEU


@pytest.fixture(scope="module")
def trained():
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=60, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[PAD]"], show_progress=False
    )
    made.train_from_iterator([text.lower() for text in TEXTS], trainer)
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return made


@pytest.mark.parametrize("how", ["folder", "file", "pretrained"])
def test_hugging_face_tokenizers_from_a_folder(trained, tmp_path, how):
    pieces = [trained.encode(text.lower(), add_special_tokens=False).ids for text in TEXTS]
    assert any(len(ids) > len(text.split()) for ids, text in zip(pieces, TEXTS, strict=True))
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    if how == "pretrained":
        transformers = pytest.importorskip("transformers")
        fast = transformers.PreTrainedTokenizerFast(
            tokenizer_object=trained, unk_token="[UNK]", pad_token="[PAD]"
        )
        fast.save_pretrained(folder)
    else:
        saved = type(trained).from_str(trained.to_str())
        saved.enable_truncation(3)  # as for a model; a text is not cut
        saved.enable_padding(length=40)
        saved.save(str(folder / "tokenizer.json"))
    name = str(folder / "tokenizer.json") if how == "file" else str(folder)
    expected = NGram(1, 4).similarity(pieces).dense()
    np.testing.assert_allclose(NGram(1, 4, tokenizer=name).similarity(TEXTS).dense(), expected, atol=1e-15)
    loads = tokens_module._load_cached.cache_info().misses
    np.testing.assert_allclose(
        BLEU(tokenizer=name, lowercase=True).similarity(TEXTS).dense(), BLEU().similarity(pieces).dense()
    )
    assert tokens_module._load_cached.cache_info().misses == loads  # loaded once
    kernel = rebuild(describe(NGram(tokenizer=name)))
    assert vm.score(TEXTS, kernel) == vm.score(TEXTS, NGram(tokenizer=name))


def test_a_tokenizer_that_is_not_there(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    asked = []

    def unreachable(name, file, local_files_only=False):
        asked.append((name, file, local_files_only))
        raise FileNotFoundError("no connection,\nno copy")

    monkeypatch.setattr(hub, "hf_hub_download", unreachable)
    with pytest.raises(
        InputError,
        match=r"'some-model'.*no connection, no copy.*save_pretrained\(folder\).*tokenizer='path/to/folder'",
    ):
        vm.score(TEXTS, NGram(tokenizer="some-model"))
    assert asked == [("some-model", "tokenizer.json", True), ("some-model", "tokenizer.json", False)]
    with pytest.raises(InputError, match=r"holds no tokenizer.json.*AutoTokenizer"):
        vm.score(TEXTS, NGram(tokenizer=str(tmp_path)))
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="not a tokenizer that the library tokenizers can read"):
        vm.score(TEXTS, NGram(tokenizer=str(tmp_path)))


def test_a_copy_of_the_hub_on_this_machine_is_enough(trained, tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    trained.save(str(tmp_path / "tokenizer.json"))

    def cached(name, file, local_files_only=False):
        assert local_files_only
        return str(tmp_path / file)

    monkeypatch.setattr(hub, "hf_hub_download", cached)
    assert vm.score(TEXTS, NGram(tokenizer="some/model")) == vm.score(TEXTS, NGram(tokenizer=str(tmp_path)))


@pytest.mark.parametrize("name", tokens_module.SACREBLEU)
def test_tokenizers_of_sacrebleu(name):
    sacrebleu = pytest.importorskip("sacrebleu")
    split = sacrebleu.BLEU(tokenize=name).tokenizer
    texts = [*TEXTS, "Hello, world's 3.5%; end.", "世界 hello"]
    expected = NGram(1, 2).similarity([split(text).split() for text in texts]).dense()
    found = NGram(1, 2, tokenizer=f"sacrebleu:{name}", lowercase=False).similarity(texts).dense()
    np.testing.assert_allclose(found, expected, atol=1e-15)


@pytest.mark.parametrize(
    ("tokenizer", "library"), [("sacrebleu:13a", "sacrebleu"), ("a/b", "huggingface_hub")]
)
def test_a_missing_library_is_named_with_its_extra(tokenizer, library, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, library, None)
    tokens_module._sacrebleu.cache_clear()
    with pytest.raises(MissingDependencyError, match=rf"{library}.*vendimeter\[text\]"):
        vm.score(TEXTS, NGram(tokenizer=tokenizer))


# -------------------------------------------------------------------------------------------------------------- BLEU

LONG = [text for text in random_texts(45, 5, 16, seed=1) if len(text.split()) >= 4]


def nltk_kernel(lists, n=4, epsilon=0.1):
    bleu_score = pytest.importorskip("nltk.translate.bleu_score")
    smooth = bleu_score.SmoothingFunction(epsilon=epsilon).method1
    weights = (1 / n,) * n

    def one_way(a, b):
        return float(bleu_score.sentence_bleu([b], a, weights=weights, smoothing_function=smooth))

    return np.array([[(one_way(a, b) + one_way(b, a)) / 2 for b in lists] for a in lists])


@pytest.mark.parametrize(("n", "epsilon"), [(4, 0.1), (2, 0.1), (1, 0.1), (3, 0.02)])
def test_bleu_is_that_of_nltk(n, epsilon):
    lists = [text.split() for text in LONG]
    assert len(lists) > 20
    found = BLEU(n, epsilon=epsilon).similarity(lists).dense()
    np.testing.assert_allclose(found, nltk_kernel(lists, n, epsilon), rtol=0, atol=1e-12)
    assert (np.diag(found) == 1).all()
    assert (found == found.T).all()


def test_bleu_of_short_texts_differs_from_nltk_only_on_equal_ones():
    lists = [text.split() for text in TEXTS if text]
    found, expected = BLEU().similarity(lists).dense(), nltk_kernel(lists)
    apart = np.abs(found - expected) > 1e-12
    assert [lists[i] for i in np.flatnonzero(apart.any(axis=0))] == [
        tokens for tokens in lists if len(tokens) < 4
    ]
    assert not apart[~np.eye(len(lists), dtype=bool)].any()
    with_empty = BLEU().similarity([*lists, [], []]).dense()
    assert (np.diag(with_empty) == 1).all()
    np.testing.assert_array_equal(with_empty[-1], [0.0] * len(lists) + [1.0, 1.0])


def test_bleu_is_that_of_sacrebleu_for_long_enough_texts():
    sacrebleu = pytest.importorskip("sacrebleu")
    scorer = sacrebleu.BLEU(smooth_method="floor", smooth_value=0.1, tokenize="none", effective_order=False)

    def one_way(a, b):
        return scorer.sentence_score(a, [b]).score / 100

    expected = np.array([[(one_way(a, b) + one_way(b, a)) / 2 for b in LONG] for a in LONG])
    np.testing.assert_allclose(
        BLEU(tokenizer="whitespace").similarity(LONG).dense(), expected, rtol=0, atol=1e-12
    )
    assert one_way("two boats", "two boats") == pytest.approx(0, abs=1e-9)  # where we say 1


def test_blocks_and_stacks_of_bleu_are_parts_of_the_whole():
    similarity = BLEU().similarity(LONG)
    whole = similarity.dense()
    rows, cols = np.array([3, 0, 5]), np.array([1, 3])
    np.testing.assert_array_equal(similarity.block(rows, cols), whole[np.ix_(rows, cols)])
    members = np.array([[0, 4, 2], [7, 7, 1]])
    stack = similarity.block(members, members)
    for part, group in zip(stack, members, strict=True):
        np.testing.assert_array_equal(part, whole[np.ix_(group, group)])


# All texts of five letters a and b: their BLEU has negative eigenvalues.
INDEFINITE = [" ".join(p) for p in itertools.product("ab", repeat=5)]


def test_negative_eigenvalues_of_bleu_are_projected_and_told():
    matrix = BLEU().similarity(INDEFINITE).dense()
    values = np.linalg.eigvalsh(matrix / len(matrix))
    assert values[0] < -1e-3
    kept = np.maximum(values, 0) / np.maximum(values, 0).sum()
    expected = math.exp(-sum(x * math.log(x) for x in kept if x > 0))
    score = vm.score(INDEFINITE, BLEU())
    assert score == pytest.approx(expected, rel=1e-10)
    removed = -np.minimum(values, 0).sum()
    assert score.diagnostics["removed_mass"] == pytest.approx(removed, rel=1e-9)
    for q in (2, "inf"):
        single = vm.score(INDEFINITE, BLEU(), q=q)
        assert single == pytest.approx(1 / (kept**2).sum() if q == 2 else 1 / kept.max(), rel=1e-10)
        assert single.diagnostics["removed_mass"] == pytest.approx(removed, rel=1e-9)
    profile = vm.profile(INDEFINITE, BLEU(), q=[0, 1, 2])
    assert profile[1] == pytest.approx(expected, rel=1e-10)
    weights = np.arange(1.0, len(INDEFINITE) + 1)
    weights /= weights.sum()
    values = np.linalg.eigvalsh(np.sqrt(weights)[:, None] * matrix * np.sqrt(weights))
    kept = np.maximum(values, 0) / np.maximum(values, 0).sum()
    weighted = vm.score(INDEFINITE, BLEU(), weights=weights, q=2)
    assert weighted == pytest.approx(1 / (kept**2).sum(), rel=1e-10)


@pytest.mark.parametrize("q", [1, 2, "inf"])
def test_without_projection_they_are_an_error(q):
    with pytest.raises(IndefiniteError, match=r"negative eigenvalues hold.*project=True"):
        vm.score(INDEFINITE, BLEU(project=False), q=q)


def test_groups_of_bleu():
    texts = INDEFINITE + LONG[:10]
    labels = ["indefinite"] * len(INDEFINITE) + ["a", "b"] * 5
    groups = vm.score_groups(texts, BLEU(), by=labels)
    alone = vm.score(INDEFINITE, BLEU())
    assert groups["indefinite"] == pytest.approx(alone, rel=1e-12)
    assert groups["indefinite"].diagnostics["removed_mass"] == pytest.approx(
        alone.diagnostics["removed_mass"], rel=1e-9
    )
    assert groups["b"] == pytest.approx(vm.score(LONG[1:10:2], BLEU()), rel=1e-12)
    large = vm.score_groups(texts * 5, BLEU(), by=labels * 5)  # beyond what is stacked
    assert large["indefinite"] == pytest.approx(alone, rel=1e-12)
    with pytest.raises(IndefiniteError, match="group 'indefinite'"):
        vm.score_groups(texts, BLEU(project=False), by=labels)
    weighted = vm.score_groups(texts, BLEU(), by=labels, weights=np.linspace(1, 2, len(texts)) / 63)
    share = np.linspace(1, 2, len(texts))[: len(INDEFINITE)]
    assert weighted["indefinite"] == pytest.approx(
        vm.score(INDEFINITE, BLEU(), weights=share / share.sum()), rel=1e-12
    )


def test_bleu_in_sums_and_products():
    table = {"text": INDEFINITE, "kind": list("xy" * 16)}
    text = BLEU().similarity(INDEFINITE).dense()
    kind = np.equal.outer(table["kind"], table["kind"]).astype(float)
    bags = NGram(1, 2).similarity(INDEFINITE).dense()
    for kernel, samples, matrix in (
        (0.75 * On("text", BLEU()) + 0.25 * On("kind", Match()), table, 0.75 * text + 0.25 * kind),
        (On("text", BLEU()) * On("kind", Match()), table, text * kind),
        (0.5 * BLEU() + 0.5 * NGram(1, 2), INDEFINITE, 0.5 * text + 0.5 * bags),
        (0.5 * BLEU() + 0.5 * BLEU(2), INDEFINITE, 0.5 * text + 0.5 * BLEU(2).similarity(INDEFINITE).dense()),
    ):
        expected = vm.score(matrix, Precomputed(project=True))
        found = vm.score(samples, kernel)
        assert found == pytest.approx(expected, rel=1e-10)
        assert found.diagnostics["removed_mass"] == pytest.approx(
            expected.diagnostics["removed_mass"], abs=1e-12
        )
        groups = vm.score_groups(samples, kernel, by=["all"] * 32)
        assert groups["all"] == pytest.approx(expected, rel=1e-10)


def test_projection_needs_all_eigenvalues_and_says_so():
    plan = vm.plan(random_texts(4000, 50, 12), BLEU(), tol=1e-2)
    assert plan.method == "exact"
    assert "project=True needs all eigenvalues" in plan.reason
    with pytest.raises(
        TooLargeError, match=r"more memory, or fewer items: this kernel.*random sample.*NGram"
    ):
        vm.score(random_texts(4000, 50, 12), BLEU(), tol=1e-2, memory="100 MB")
    with pytest.raises(TooLargeError, match=r"drops negative eigenvalues itself.*random sample.*NGram"):
        vm.score([str(i) for i in range(DENSE_LIMIT + 1)], BLEU())
    with pytest.raises(InputError, match="cannot drop negative eigenvalues"):
        vm.score(INDEFINITE, BLEU(), method="lanczos")
    assert "project" not in vm.plan(random_texts(4000, 50, 12), NGram(), tol=1e-2).reason


# --------------------------------------------------------------------------------------------------------- real data


@pytest.fixture(scope="module")
def captions(shared_data):
    with gzip.open(shared_data / "text" / "coco_val2017_captions.jsonl.gz", "rt") as file:
        return [json.loads(line)["captions"] for line in file]


def test_captions(captions):
    texts = [text for group in captions for text in group]
    features, expected = NGram().similarity(texts), counted(texts, 1, 4, by_words)
    assert features.width == expected.shape[1]
    assert features.data.nnz == expected.nnz
    some = np.random.default_rng(0).integers(len(texts), size=400)
    np.testing.assert_allclose(
        features.block(some, some), (expected[some] @ expected[some].T).toarray(), rtol=0, atol=1e-15
    )
    groups = vm.score_groups(captions[:300], NGram())
    bleu = vm.score_groups(captions[:300], BLEU())
    for g in (0, 7, 299):
        assert groups[g] == pytest.approx(vm.score(captions[g], NGram()), rel=1e-12)
        lists = [by_words(text) for text in captions[g]]
        assert min(map(len, lists)) >= 4
        assert bleu[g] == pytest.approx(vm.score(nltk_kernel(lists), "precomputed"), rel=1e-9)
