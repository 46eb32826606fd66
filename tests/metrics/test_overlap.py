"""Self-BLEU, pairwise BLEU, D-Lex-Sim and corpus BLEU: by hand, from the formulas, and against NLTK and sacreBLEU."""

from __future__ import annotations

import gzip
import json
import math
import re
import sys
from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vendimeter.data.collection import Collection
from vendimeter.errors import EmptyError, InputError, MissingDependencyError, UnknownNameError
from vendimeter.kernels import BLEU, FromFunction, NGram
from vendimeter.metrics import overlap, quality
from vendimeter.metrics.overlap import d_lex_sim, pairwise_bleu, self_bleu
from vendimeter.metrics.quality import corpus_bleu

GROUPS = st.lists(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=5), min_size=1, max_size=4)


def counts_of(tokens, m):
    return Counter(tuple(tokens[i : i + m]) for i in range(len(tokens) - m + 1))


def slow_bleu(tokens, others, n, epsilon):
    """BLEU of one text with several references, from its definition."""
    if not tokens:
        return float(any(not other for other in others))
    logs = []
    for m in range(1, min(n, len(tokens)) + 1):
        counts = counts_of(tokens, m)
        best = Counter()
        for other in others:
            best |= counts_of(other, m)
        matches = (counts & best).total()
        if m == 1 and not matches:
            return 0.0
        if not matches and not epsilon:
            return 0.0
        logs.append(math.log((matches or epsilon) / counts.total()))
    nearest = min((abs(len(other) - len(tokens)), len(other)) for other in others)[1]
    return math.exp(sum(logs) / len(logs) + min(0.0, 1 - nearest / len(tokens)))


def slow_self_bleu(group, n, epsilon):
    if len(group) < 2:
        return math.nan
    scores = [slow_bleu(tokens, group[:i] + group[i + 1 :], n, epsilon) for i, tokens in enumerate(group)]
    return sum(scores) / len(scores)


def slow_pairwise(groups, n):
    precisions = []
    for m in range(1, n + 1):
        pairs = [(counts_of(a, m), counts_of(b, m)) for group in groups for a, b in permutations(group, 2)]
        total = sum(a.total() for a, _ in pairs)
        precisions.append(sum((a & b).total() for a, b in pairs) / total if total else math.nan)
    return precisions


@pytest.fixture(scope="module")
def captions(shared_data):
    with gzip.open(shared_data / "text" / "coco_val2017_captions.jsonl.gz", "rt") as lines:
        return [json.loads(line)["captions"] for line in lines]


@pytest.fixture(scope="module")
def answers(shared_data):
    with gzip.open(shared_data / "text" / "noveltybench_curated_gemini15pro.jsonl.gz", "rt") as lines:
        return {row["id"]: row["generations"] for row in map(json.loads, lines)}


def split(groups):
    return [[text.split() for text in group] for group in groups]


# ------------------------------------------------------------------------------------------- what holds for all three

SHARED = [self_bleu, pairwise_bleu, d_lex_sim]


@pytest.mark.parametrize("metric", SHARED)
def test_disjoint_texts_have_nothing_in_common(metric):
    assert metric(["a b c d e", "f g h i j", "k l m n o"]) == 0
    assert metric(["a", "b c"]) == 0
    assert metric({"x": ["a b", "c d"], "y": ["a b", "e f"]}) == 0  # what groups share does not count


@pytest.mark.parametrize("metric", SHARED)
@pytest.mark.parametrize("text", ["a dog runs on grass", "a dog", "a", "the the the the the"])
@pytest.mark.parametrize("count", [2, 5])
def test_equal_texts_have_everything_in_common(metric, text, count):
    assert metric([text] * count) == 1.0
    assert metric({"x": [text] * count, "y": ["other words here are these"] * 2}) == 1.0


@pytest.mark.parametrize("metric", SHARED)
def test_a_group_of_one_text_is_left_out(metric):
    groups = {"x": ["a b c", "a b d"], "y": ["a"], "z": []}
    result = metric(groups)
    assert result == metric(groups["x"])
    assert (result.groups, result.texts, result.left_out) == (3, 3, 2)


@pytest.mark.parametrize("metric", SHARED)
def test_groups_in_every_form(metric):
    groups = {"x": ["a b c", "a b d", "a"], "y": ["e f g h", "e f g h i"]}
    lists = list(groups.values())
    texts, labels = [*lists[0], *lists[1]], ["x"] * 3 + ["y"] * 2
    expected = metric(groups)
    assert 0 < expected < 1
    for result in (
        metric(lists, groups=True),
        metric(texts, by=labels),
        metric(pd.Series(texts), by=np.array(labels)),
        metric(Collection(lists)),
        metric(Collection(texts, columns={"prompt": labels}), by="prompt"),
        metric(split(lists), groups=True),
        metric([[texts[i] for i in (2, 0, 1)], [texts[i] for i in (4, 3)]], groups=True),
    ):
        assert result == pytest.approx(expected, rel=1e-14)
    assert metric(split([texts])[0], groups=False) == pytest.approx(metric(texts), rel=1e-14)


@pytest.mark.parametrize("metric", SHARED)
@pytest.mark.parametrize(
    ("samples", "options", "kind", "message"),
    [
        ([], {}, EmptyError, "samples is empty"),
        (["a b"], {}, InputError, "samples has one text;.*expected two at least"),
        ({"x": ["a b"], "y": ["c"]}, {}, InputError, "no group has more than one text"),
        ({}, {}, EmptyError, "no groups"),
        ({"x": []}, {}, EmptyError, "every group is empty"),
        ("a b", {}, InputError, "single text"),
        (["a", 1], {}, InputError, "item 1 is a int"),
        (["a", None], {}, InputError, "item 1 is a NoneType, a missing value"),
        (["a", float("nan")], {}, InputError, "item 1 is a float, a missing value"),
        ([["a", "b"], ["c"]], {}, InputError, "item 0 is a list of strings.*groups=False for tokens"),
        (["a", "b"], {"groups": True}, InputError, "group 0 is 'a'"),
        (["a", "b"], {"groups": 1}, InputError, "groups=1; expected True or False"),
        (["a", "b"], {"by": ["x"]}, InputError, "1 labels and there are 2 items"),
        ({"a", "b"}, {"by": ["x", "y"]}, InputError, "samples is a set, which has no order"),
        ({"x": ["a", "b"]}, {"groups": False}, InputError, "samples is a table"),
        (np.zeros((2, 2)), {}, InputError, r"shape \(2, 2\)"),
        (np.array([["a", "b"]]), {"groups": True}, InputError, r"shape \(1, 2\)"),
        (pd.DataFrame({"t": ["a", "b"]}), {"groups": True}, InputError, "expected groups of texts"),
        (Collection(["a", "b"], weights=[1, 2]), {}, InputError, "the collection has weights"),
    ],
)
def test_bad_samples(metric, samples, options, kind, message):
    with pytest.raises(kind, match=message):
        metric(samples, **options)


@pytest.mark.parametrize("metric", [self_bleu, pairwise_bleu])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n=0; expected a whole number from 1 up"),
        ({"n": 1.5}, "n=1.5"),
        ({"n": 10**12}, "n=1000000000000; expected a whole number from 1 to 1,000"),
        ({"n": True}, "n=True"),
        ({"n": None}, "n=None"),
        ({"lowercase": "no"}, "lowercase='no'; expected True or False"),
        ({"tokenizer": 3}, "tokenizer=3"),
        ({"tokenizer": "caracters"}, "Did you mean 'characters'"),
        ({"tokenizer": len}, "the tokenizer gave 3"),
    ],
)
def test_bad_options(metric, options, message):
    with pytest.raises(InputError, match=message):
        metric(["a b", "a c"], **options)


# --------------------------------------------------------------------------------------------------------- self-BLEU


def test_self_bleu_by_hand():
    # "a b c": 2 of 3 tokens and 1 of 2 pairs are in "a b d e"; it is shorter, 1 − 4/3. Back: 2 of 4, 1 of 3.
    forward, back = math.sqrt(2 / 3 * 1 / 2) * math.exp(-1 / 3), math.sqrt(2 / 4 * 1 / 3)
    assert self_bleu(["a b c", "a b d e"], n=2) == pytest.approx((forward + back) / 2, rel=1e-15)
    # Counts are clipped by the most that one other text has: "the" counts 2 of 3 times.
    clipped = self_bleu(["the the the", "the the", "the"], n=1)
    assert clipped == pytest.approx((2 / 3 + 1 + math.exp(1 - 2 / 1)) / 3, rel=1e-15)
    # An order without a match counts epsilon of one.
    assert self_bleu(["a b", "b a"], n=2, epsilon=0.5) == pytest.approx(math.sqrt(0.5), rel=1e-15)
    assert self_bleu(["a b", "b a"], n=2, epsilon=0) == 0
    assert self_bleu(["A b", "a b"], n=1) == 0.5
    assert self_bleu(["A b", "a b"], n=1, lowercase=True) == 1


def test_the_nearest_length_is_that_of_another_text():
    # Of 2 and 6 tokens, which are as near to 4, the shorter one counts: no penalty.
    assert self_bleu(["a b c d", "a b", "a b c d e f"], n=1) == pytest.approx(
        (1 + 1 * math.exp(1 - 4 / 2) + 4 / 6) / 3
    )


def test_empty_texts():
    assert self_bleu(["", "a"]) == 0
    assert self_bleu(["", ""]) == 1
    assert self_bleu(["", "", "a b", "a b"]) == 1
    assert self_bleu([[], [1]], groups=None) == 0


@given(GROUPS, st.integers(1, 5), st.sampled_from([0.0, 0.1, 0.5]))
def test_any_self_bleu_is_that_of_the_definition(groups, n, epsilon):
    expected = np.array([slow_self_bleu(group, n, epsilon) for group in groups])
    if max(map(len, groups)) < 2:
        with pytest.raises(InputError):
            self_bleu(groups, n=n, groups=True)
        return
    score = self_bleu(groups, n=n, epsilon=epsilon, groups=True)
    np.testing.assert_allclose(score.values, expected, rtol=1e-13, atol=1e-300)
    defined = expected[~np.isnan(expected)]
    assert score == pytest.approx(defined.mean(), rel=1e-13)
    if len(defined) > 1:
        assert score.standard_error == pytest.approx(defined.std(ddof=1) / math.sqrt(len(defined)), abs=1e-14)


@pytest.mark.parametrize("n", [2, 5])
def test_self_bleu_is_that_of_nltk(captions, answers, n):
    """All captions of ten images together, and the answers to prompts, which are longer."""
    nltk = pytest.importorskip("nltk.translate.bleu_score")
    smooth = nltk.SmoothingFunction().method1
    texts = [text for group in captions[:10] for text in group]
    groups = [
        texts,
        *([text for text in group if len(text.split()) >= n] for group in list(answers.values())[:2]),
    ]
    for group in (group for group in groups if len(group) > 1):
        lists = [text.split() for text in group]
        theirs = [
            nltk.sentence_bleu(
                lists[:i] + lists[i + 1 :], own, weights=[1 / n] * n, smoothing_function=smooth
            )
            for i, own in enumerate(lists)
        ]
        assert self_bleu(group, n=n, tokenizer="whitespace") == pytest.approx(np.mean(theirs), rel=1e-13)


def test_self_bleu_is_that_of_sacrebleu(captions):
    sacrebleu = pytest.importorskip("sacrebleu")
    metric = sacrebleu.BLEU(smooth_method="floor", smooth_value=0.1, effective_order=True)
    for group in captions[:40]:
        theirs = [
            metric.sentence_score(text, group[:i] + group[i + 1 :]).score for i, text in enumerate(group)
        ]
        assert self_bleu(group, tokenizer="sacrebleu:13a") == pytest.approx(np.mean(theirs) / 100, rel=1e-13)


def test_short_texts_where_nltk_differs():
    """NLTK takes the orders that a short text does not have for misses."""
    nltk = pytest.importorskip("nltk.translate.bleu_score")
    theirs = nltk.sentence_bleu(
        [["a", "dog"]], ["a", "dog"], smoothing_function=nltk.SmoothingFunction().method1
    )
    assert theirs == pytest.approx(math.sqrt(0.1), rel=1e-12)
    assert self_bleu(["a dog", "a dog"]) == 1


def test_self_bleu_of_all_captions(captions):
    texts = [text for group in captions for text in group]
    score = self_bleu(texts)
    assert (score.texts, score.groups) == (25014, 1)
    assert score == pytest.approx(0.605, abs=1e-3)
    per_image = self_bleu(captions, groups=True)
    assert per_image == pytest.approx(0.1564, abs=1e-4)
    first_groups = [
        slow_self_bleu([re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", t) for t in g], 4, 0.1) for g in captions[:40]
    ]
    np.testing.assert_allclose(per_image.values[:40], first_groups, rtol=1e-13)


@pytest.mark.parametrize("epsilon", [1, -0.1, math.nan, "0.1", None, True])
def test_bad_epsilon(epsilon):
    with pytest.raises(InputError, match=f"epsilon={epsilon!r}; expected a number from 0 up and below 1"):
        self_bleu(["a", "b"], epsilon=epsilon)


# ----------------------------------------------------------------------------------------------------- pairwise BLEU


@given(GROUPS, st.integers(1, 5))
def test_any_pairwise_bleu_is_that_of_the_definition(groups, n):
    expected = slow_pairwise(groups, n)
    if all(map(math.isnan, expected)):
        with pytest.raises(InputError):
            pairwise_bleu(groups, n=n, groups=True)
        return
    score = pairwise_bleu(groups, n=n, groups=True)
    np.testing.assert_allclose(score.precisions, expected, rtol=1e-14)
    defined = [p for p in expected if not math.isnan(p)]
    assert score == pytest.approx(math.prod(defined) ** (1 / len(defined)), rel=1e-12)
    assert score.pairs == sum(len(list(permutations(group, 2))) for group in groups)


def test_pairwise_bleu_is_that_of_nltk_and_sacrebleu(captions, answers):
    nltk = pytest.importorskip("nltk.translate.bleu_score")
    sacrebleu = pytest.importorskip("sacrebleu")
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    for groups in (captions[:60], list(answers.values())[:5]):
        pairs = [pair for group in groups for pair in permutations(group, 2)]
        ours = pairwise_bleu(groups, tokenizer="whitespace", groups=True)
        first = nltk.corpus_bleu([[b.split()] for _, b in pairs], [a.split() for a, _ in pairs])
        second = metric.corpus_score([a for a, _ in pairs], [[b for _, b in pairs]])
        if min(len(text.split()) for group in groups for text in group) >= 4:
            assert ours == pytest.approx(first, rel=1e-13)
        else:  # NLTK counts one m-gram, a miss, for each text that is too short for any
            assert first < ours
        assert ours == pytest.approx(second.score / 100, rel=1e-13)
        assert ours.precisions == pytest.approx([p / 100 for p in second.precisions], rel=1e-13)
        assert (second.bp, ours.pairs) == (1, len(pairs))
        assert 0 < ours < 1


def test_orders_that_no_text_has_are_left_out_of_pairwise_bleu():
    sacrebleu = pytest.importorskip("sacrebleu")
    texts = ["a b", "a c", "a b", ""]
    left, right = zip(*permutations(texts, 2), strict=True)
    scores = {}
    for effective in (True, False):
        metric = sacrebleu.BLEU(
            tokenize="none", smooth_method="none", force=True, effective_order=effective, max_ngram_order=4
        )
        scores[effective] = metric.corpus_score(left, [right]).score / 100
    score = pairwise_bleu(texts)
    assert (
        score == pytest.approx(scores[True], rel=1e-13) == pytest.approx(math.sqrt(8 / 18 * 2 / 9), rel=1e-13)
    )
    assert scores[False] == 0
    assert corpus_bleu(left, right, smoothing="none", tokenizer="whitespace") == 0  # as sacreBLEU has it


def test_pairwise_bleu_pools_the_counts():
    groups = {"x": ["a b c", "a b c"], "y": ["a b", "c d"]}
    score = pairwise_bleu(groups, n=2)
    assert score.precisions == (6 / 10, 4 / 6)
    assert score != (pairwise_bleu(groups["x"], n=2) + pairwise_bleu(groups["y"], n=2)) / 2


def test_pairwise_bleu_of_no_tokens():
    with pytest.raises(EmptyError, match="no text of a pair has a token"):
        pairwise_bleu(["", " "])
    assert pairwise_bleu({"x": ["", ""], "y": ["a b", "a c"]}, n=1) == 0.5


# --------------------------------------------------------------------------------------------------------- D-Lex-Sim


@pytest.mark.parametrize("kernel", ["bleu", BLEU(2, tokenizer="whitespace"), "ngram", NGram(1, 2)])
@pytest.mark.parametrize("tile", [1, 3, 1024])
def test_d_lex_sim_is_the_mean_over_pairs(captions, kernel, tile, monkeypatch):
    monkeypatch.setattr(overlap, "TILE", tile)
    monkeypatch.setattr(overlap, "SMALL", 5)
    groups = [
        [*captions[0], *captions[1]],
        captions[2][:5],
        captions[3][:5],
        captions[4][:1],
        captions[5][:2],
    ]
    score = d_lex_sim(groups, kernel, groups=True)
    by_name = {"bleu": BLEU(), "ngram": NGram()}.get(kernel, kernel) if isinstance(kernel, str) else kernel
    for value, group in zip(score.values, groups, strict=True):
        matrix = by_name.similarity(group).dense()
        pairs = list(combinations(range(len(group)), 2))
        expected = sum(matrix[i, j] for i, j in pairs) / len(pairs) if pairs else math.nan
        assert value == pytest.approx(expected, rel=1e-12, nan_ok=True)
    assert score.left_out == 1
    assert d_lex_sim(groups[0], kernel) == pytest.approx(score.values[0], rel=1e-12)


def test_d_lex_sim_against_nltk(captions):
    """Both directions of NLTK's sentence BLEU, averaged over the pairs of long enough captions."""
    nltk = pytest.importorskip("nltk.translate.bleu_score")
    smooth = nltk.SmoothingFunction().method1
    for group in captions[:20]:
        lists = [text.split() for text in group]
        theirs = [nltk.sentence_bleu([b], a, smoothing_function=smooth) for a, b in permutations(lists, 2)]
        assert d_lex_sim(group, BLEU(tokenizer="whitespace")) == pytest.approx(np.mean(theirs), rel=1e-12)


def test_d_lex_sim_of_a_function_calls_it_once_a_pair():
    calls = []

    def first(a, b):
        calls.append((a, b))
        return np.float32(0.5) if a == "x" else 1

    assert d_lex_sim(["x", "y", "z"], first) == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert calls == [("x", "y"), ("x", "z"), ("y", "z")]
    calls.clear()
    assert d_lex_sim({"a": ["x", "y"], "b": ["y", "z"], "c": ["q"]}, first).values[:2].tolist() == [0.5, 1]
    assert calls == [("x", "y"), ("y", "z")]
    assert d_lex_sim([[1, 2], [1, 3]], lambda a, b: float(a[0] == b[0])) == 1
    assert d_lex_sim(["x", "y"], FromFunction(lambda a, b: float(a == b))) == 0


@pytest.mark.parametrize(
    ("kernel", "kind", "message"),
    [
        ("blue", UnknownNameError, "no kernel 'blue'. Did you mean 'bleu'"),
        (None, InputError, "kernel=None; expected a name"),
        (BLEU, InputError, r"kernel is the class BLEU; expected an instance"),
        (
            lambda a, b: None,
            InputError,
            "the function returned None for items 0 and 1; expected a finite number",
        ),
        (lambda a, b: math.nan, InputError, "returned nan for items 0 and 1"),
        (lambda a, b: "0.5", InputError, "returned '0.5'"),
        (FromFunction(lambda a, b: math.nan, block=False), InputError, "not finite"),
        ("cosine", InputError, "the items are strings"),
    ],
)
def test_bad_kernels(kernel, kind, message):
    with pytest.raises(kind, match=message):
        d_lex_sim(["a b", "a c"], kernel)
    with pytest.raises(kind, match=message):
        d_lex_sim({"x": ["a b", "a c"], "y": ["a"]}, kernel)


class NoSynonyms:
    """WordNet without an entry: METEOR by words and stems alone."""

    @staticmethod
    def synsets(word):
        return []


def test_meteor_in_both_directions(monkeypatch):
    meteor = pytest.importorskip("nltk.translate.meteor_score")
    single = meteor.single_meteor_score
    monkeypatch.setattr(meteor, "single_meteor_score", lambda a, b: single(a, b, wordnet=NoSynonyms))
    texts = ["a dog runs on grass", "dogs run on the grass", "Two boats"]
    lists = [text.split() for text in texts]
    expected = np.mean([single(a, b, wordnet=NoSynonyms) for a, b in permutations(lists, 2)])
    assert d_lex_sim(texts, "meteor") == pytest.approx(expected, rel=1e-14)
    assert d_lex_sim(lists, "meteor", groups=False) == pytest.approx(expected, rel=1e-14)
    assert 0.9 < d_lex_sim([texts[0]] * 2, "meteor") < 1
    with pytest.raises(InputError, match="METEOR met the token 1"):
        d_lex_sim([[1], [2]], "meteor")


def test_meteor_without_its_data(monkeypatch):
    meteor = pytest.importorskip("nltk.translate.meteor_score")

    def missing(*sides):
        raise LookupError("wordnet")

    monkeypatch.setattr(meteor, "single_meteor_score", missing)
    with pytest.raises(MissingDependencyError, match=r"WordNet.*nltk\.downloader wordnet"):
        d_lex_sim(["a", "b"], "meteor")
    monkeypatch.setitem(sys.modules, "nltk.translate.meteor_score", None)
    with pytest.raises(MissingDependencyError, match=r"METEOR needs the library 'nltk'.*vendimeter\[text\]"):
        d_lex_sim(["a", "b"], "meteor")


# ------------------------------------------------------------------------------------------------------- corpus BLEU


@pytest.fixture
def sacrebleu():
    return pytest.importorskip("sacrebleu")


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("at_once", [7, 1024])
def test_corpus_bleu_is_that_of_sacrebleu(captions, sacrebleu, lowercase, at_once, monkeypatch):
    """One caption of each image against the others, of which there are four, five or six."""
    monkeypatch.setattr(quality, "AT_ONCE", at_once)
    chosen = captions[:150] + [group for group in captions if len(group) > 5]
    samples, reference = [group[0] for group in chosen], [group[1:] for group in chosen]
    streams = [[texts[k] if k < len(texts) else None for texts in reference] for k in range(6)]
    metric = sacrebleu.BLEU(lowercase=lowercase)
    theirs = metric.corpus_score(samples, streams)
    score = corpus_bleu(samples, reference, lowercase=lowercase)
    assert score == pytest.approx(theirs.score / 100, rel=1e-13)
    assert score.precisions == pytest.approx([p / 100 for p in theirs.precisions], rel=1e-15)
    assert (score.length, score.reference_length) == (theirs.sys_len, theirs.ref_len)
    assert score.brevity_penalty == theirs.bp
    assert score.signature == str(metric.get_signature())
    assert "nrefs:var" in score.signature


@pytest.mark.parametrize("n", [2, 4])
def test_corpus_bleu_is_that_of_nltk(captions, sacrebleu, n):
    nltk = pytest.importorskip("nltk.translate.bleu_score")
    chosen = [group[:5] for group in captions[:200]]
    lists = split(chosen)
    theirs = nltk.corpus_bleu(
        [group[1:] for group in lists], [group[0] for group in lists], weights=[1 / n] * n
    )
    samples, reference = [group[0] for group in chosen], [group[1:] for group in chosen]
    assert corpus_bleu(samples, reference, n=n, tokenizer="whitespace") == pytest.approx(theirs, rel=1e-13)
    tokens = corpus_bleu([g[0] for g in lists], [g[1:] for g in lists], n=n, groups=False)
    assert tokens == pytest.approx(theirs, rel=1e-13)
    assert "nrefs:4" in tokens.signature
    assert "tok:none" in tokens.signature
    by_name = corpus_bleu(
        ["a dog runs here", "a cat"], ["a dog runs here", "a cat"], tokenizer="sacrebleu:intl"
    )
    assert "tok:intl" in by_name.signature


def test_corpus_bleu_of_groups(captions, sacrebleu):
    """As in the paper's table of captions: each of several hypotheses against the human captions of its image."""
    samples = {f"image {i}": group[:2] for i, group in enumerate(captions[:60])}
    reference = {f"image {i}": group[2:] for i, group in enumerate(captions[:60])}
    flat = [text for group in samples.values() for text in group]
    each = [texts for label, texts in reference.items() for _ in samples[label]]
    expected = corpus_bleu(flat, each)
    backwards = dict(reversed(reference.items()))
    lists = list(samples.values()), list(reference.values())
    for result in (
        corpus_bleu(samples, backwards),
        corpus_bleu(*lists, groups=True),
        corpus_bleu(Collection(lists[0]), lists[1]),
        corpus_bleu(Collection(lists[0]), Collection(lists[1])),
        corpus_bleu(lists[0], pd.Series(lists[1]), groups=True),
    ):
        assert result == expected
        assert result.signature == expected.signature
    assert 0.05 < expected < 0.5


def test_corpus_bleu_of_one_reference_each(sacrebleu):
    samples, reference = ["a dog runs on grass", "two boats"], ["a dog runs on sand", "two boats at sea"]
    theirs = sacrebleu.corpus_bleu(samples, [reference])
    for given_reference in (
        reference,
        np.array(reference),
        pd.Series(reference),
        [[text] for text in reference],
    ):
        assert corpus_bleu(samples, given_reference) == pytest.approx(theirs.score / 100, rel=1e-14)
    tokens = corpus_bleu([[1, 2, 3], [4, 5]], [[1, 2, 3], [[4, 5], [6]]], n=2)
    assert tokens == 1.0


def test_equal_texts_have_exactly_one(sacrebleu):
    texts = ["a dog runs on grass", "two boats at sea today"]
    assert corpus_bleu(texts, texts) == 1.0
    assert sacrebleu.corpus_bleu(texts, [texts]).score > 100  # by rounding
    assert corpus_bleu(texts, texts[::-1]) == 0
    assert corpus_bleu([""], ["a"]) == 0
    assert corpus_bleu(["a b"], ["a b"]) == 0  # no text has four tokens
    assert corpus_bleu(["a b"], ["a b"], n=2) == 1.0


def test_tokens_with_blanks_stay_whole(sacrebleu):
    assert corpus_bleu([["New York", "a"]], [["New", "York a"]], n=1, groups=False) == 0
    assert corpus_bleu(["a b"], ["b a"], n=3, tokenizer="characters", smoothing="none") == 0
    assert corpus_bleu(["a b"], ["b a"], n=1, tokenizer="characters") == 1


@pytest.mark.parametrize("smoothing", ["exp", "none", "floor", "add-k"])
def test_smoothing_is_that_of_sacrebleu(sacrebleu, smoothing):
    samples, reference = (
        ["a dog runs on grass today", "two boats at sea"],
        ["a dog sits on grass", "two cats at home"],
    )
    theirs = sacrebleu.corpus_bleu(samples, [reference], smooth_method=smoothing)
    score = corpus_bleu(samples, reference, smoothing=smoothing)
    assert score == pytest.approx(theirs.score / 100, rel=1e-13, abs=1e-300)
    assert (score == 0) == (smoothing == "none")
    assert f"smooth:{smoothing}" in score.signature


BAD_CORPUS = {
    "lengths": ((["a", "b"], ["a"]), {}, "2 samples and reference has 1 entries"),
    "streams": ((["a", "b", "c"], [["a", "b", "c"]]), {}, "sample by sample, not reference by reference"),
    "groups": (([["a"], ["b"]], [["a"]]), {"groups": True}, "2 groups and reference has 1"),
    "labels": (({"x": ["a"]}, {"y": ["a"]}), {}, "reference: it has 1 groups and samples 1, with 'x' missing"),
    "more labels": (({"x": ["a"]}, {"x": ["a"], "y": ["a"]}), {}, "with others among them"),
    "a set": (({"a", "b"}, ["a", "b"]), {}, "samples is a set, which has no order, and references go by position"),
    "a set of references": ((["a", "b"], {"a", "b"}), {}, "reference: samples is a set"),
    "a mapping": ((["a"], {"x": ["a"]}), {}, "reference: it is a mapping, and samples is one collection"),
    "no reference": ((["a", "b"], ["a", []]), {}, "reference: item 1: it has no reference"),
    "no reference of a group": (({"x": ["a"]}, {"x": []}), {}, "reference: group 'x': it has no reference"),
    "a gap": ((["a", "b"], ["a", None]), {}, "reference: item 1: it is None"),
    "a gap within": ((["a"], [["a", None]]), {}, "reference: item 0: item 1 is a NoneType"),
    "a number": ((["a"], [5]), {}, "reference: item 0: it is 5"),
    "one text": ((["a"], "a"), {}, "reference: samples is a single text"),
    "nothing": ((["a"], None), {}, "reference: samples is a NoneType"),
    "nothing to measure": (([], []), {}, "samples is empty"),
    "two kinds": (([[1, 2]], ["a"]), {}, "it holds texts and samples lists of tokens"),
    "the other way": ((["a b"], [[["a", "b"]]]), {}, "it holds lists of tokens and samples texts"),
    "texts or tokens?": (([["a"], ["b"]], ["a", "b"]), {}, "groups=False for tokens"),
    "n": ((["a"], ["a"]), {"n": 0}, "n=0"),
    "smoothing": ((["a"], ["a"]), {"smoothing": "flor"}, "Did you mean 'floor'"),
    "no smoothing": ((["a"], ["a"]), {"smoothing": None}, "no smoothing None"),
    "lowercase": ((["a"], ["a"]), {"lowercase": 1}, "lowercase=1"),
    "tokenizer": ((["a"], ["a"]), {"tokenizer": "sacrebleu:13b"}, "no tokenizer 'sacrebleu:13b'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_CORPUS)
def test_bad_input_for_corpus_bleu(name):
    pair, options, message = BAD_CORPUS[name]
    with pytest.raises(InputError, match=message):
        corpus_bleu(*pair, **options)


def test_corpus_bleu_without_sacrebleu(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(
        MissingDependencyError, match=r"corpus BLEU needs the library 'sacrebleu'.*vendimeter\[text\]"
    ):
        corpus_bleu(["a"], ["a"])
