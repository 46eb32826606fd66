"""Kernels of sequences against counting, and against dynamic programming by hand."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import IndefiniteError, InputError, MissingDependencyError, UnknownNameError
from vendimeter.kernels import Alignment, Edit, KMer, Precomputed
from vendimeter.kernels.description import describe, rebuild
from vendimeter.kernels.kmers import kmer_width
from vendimeter.kernels.sequences import STREAMED
from vendimeter.similarity import Features, Pairwise
from vendimeter.streams.accumulator import WIDEST

rng = np.random.default_rng(5)
DNA = ["".join(rng.choice(list("ACGT"), size)) for size in rng.integers(1, 40, 25)]
AMBIGUOUS = [
    "ACGTNNACGTT",
    "acgtRACGTAC",
    "ACG",
    "AC",
    "ca",
    "UUUACG",
    "TTTACG",
    "GGGGG",
    "",
    "",
    "A",
    "u",
    "t",
]
PROTEINS = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), size)) for size in rng.integers(3, 25, 12)]
TURNED = str.maketrans("ACGT", "TGCA")


def spectrum(sequence, k, letters=None, canonical=False):
    """The k-mers of one sequence, counted; a shorter sequence is its own."""
    sequence = sequence.upper()
    if letters == "ACGT":
        sequence = sequence.replace("U", "T")
    found = [sequence[i : i + k] for i in range(len(sequence) - k + 1)] or [sequence]
    if letters is not None:
        found = [kmer for kmer in found if set(kmer) <= set(letters)]
    return Counter(min(kmer, kmer[::-1].translate(TURNED)) if canonical else kmer for kmer in found)


def cosine(a, b):
    dot = sum(count * b[kmer] for kmer, count in a.items())
    return dot / math.sqrt(sum(c * c for c in a.values()) * sum(c * c for c in b.values()))


# ------------------------------------------------------------------------------------------------------------ k-mers


@pytest.mark.parametrize("k", [1, 2, 3, 5, 11])
@pytest.mark.parametrize(("alphabet", "letters", "canonical"), [
    (None, None, False), ("dna", "ACGT", False), ("dna", "ACGT", True),
])  # fmt: skip
def test_kmers_are_counted(k, alphabet, letters, canonical):
    sequences = DNA if k > 3 else DNA + AMBIGUOUS
    kernel = KMer(k, alphabet, canonical)
    bags = [spectrum(sequence, k, letters, canonical) for sequence in sequences]
    expected = np.array([[cosine(a, b) for b in bags] for a in bags])
    similarity = kernel.similarity(sequences)
    assert isinstance(similarity, Features)
    np.testing.assert_allclose(similarity.dense(), expected, rtol=0, atol=4e-15)
    if alphabet is not None:
        fixed = kernel.batch_features(sequences)
        assert fixed.width == kmer_width("dna", k) == sum(4**j for j in range(k + 1))
        rows = fixed.rows(slice(None))
        np.testing.assert_allclose((rows @ rows.T).toarray(), expected, rtol=0, atol=4e-15)


def test_kmers_of_proteins_and_rna():
    bags = [spectrum(protein, 2, "ACDEFGHIKLMNPQRSTVWY") for protein in PROTEINS]
    expected = np.array([[cosine(a, b) for b in bags] for a in bags])
    np.testing.assert_allclose(KMer(2, "protein").similarity(PROTEINS).dense(), expected, atol=4e-15)
    rna = [sequence.replace("T", "U").lower() for sequence in DNA]
    whole = KMer(3, "dna").similarity(DNA).dense()
    for alphabet in ("dna", "rna"):
        np.testing.assert_allclose(KMer(3, alphabet).similarity(rna).dense(), whole, atol=4e-15)
    np.testing.assert_allclose(
        KMer(3, "rna", True).similarity(rna).dense(), KMer(3, "dna", True).similarity(DNA).dense()
    )


def test_a_strand_and_its_reverse_complement_are_one_if_asked():
    pair = [DNA[0] + "ACCGT", (DNA[0] + "ACCGT")[::-1].translate(TURNED)]
    assert vm.score(pair, KMer(4, "dna", canonical=True)) == pytest.approx(1, abs=1e-9)
    assert vm.score(pair, KMer(4, "dna")) > 1.1


def test_the_longest_kmers_that_are_numbers():
    long = ["ACGT" * 10, "TGCA" * 10, "GATTACA" * 6]
    bags = [spectrum(sequence, 30) for sequence in long]
    expected = np.array([[cosine(a, b) for b in bags] for a in bags])
    np.testing.assert_allclose(KMer(30, "dna").similarity(long).dense(), expected, atol=4e-15)
    assert "columns" in str(KMer(30, "dna").needs_all)


def test_kmers_accumulate():
    kernel, whole = KMer(2, "dna"), vm.score(DNA, KMer(2, "dna"))
    total = vm.Accumulator(kernel)
    for start in range(0, len(DNA), 4):
        total.update(DNA[start : start + 4])
    assert float(total.score()) == pytest.approx(float(whole), rel=1e-12)
    with pytest.raises(InputError, match="alphabet='dna'"):
        vm.Accumulator(KMer(2))
    for k, alphabet in ((6, "dna"), (6, "rna"), (3, "protein")):
        assert kmer_width(alphabet, k) <= STREAMED == WIDEST < kmer_width(alphabet, k + 1)
        assert KMer(k, alphabet).needs_all is None
        with pytest.raises(InputError, match=rf"columns, one a possible k-mer.*16,384.*k={k} or less"):
            vm.Accumulator(KMer(k + 1, alphabet))
    for pairs in (Edit(), Alignment()):
        with pytest.raises(InputError, match=r"in pairs.*KMer"):
            vm.Accumulator(pairs)


def test_sequences_of_biopython_are_texts():
    seq = pytest.importorskip("Bio.Seq")
    record = pytest.importorskip("Bio.SeqRecord")
    for kernel, texts in ((KMer(3, "dna"), DNA), (Edit(), DNA), (Alignment(), PROTEINS)):
        expected = kernel.similarity(texts).dense()
        made = [seq.Seq(text) for text in texts]
        np.testing.assert_array_equal(kernel.similarity(made).dense(), expected)
        records = [record.SeqRecord(text) for text in made]
        np.testing.assert_array_equal(kernel.similarity(records).dense(), expected)


# ----------------------------------------------------------------------------------------------------- edit distance


def levenshtein(a, b):
    before = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        now = [i]
        for j, y in enumerate(b, 1):
            now.append(min(now[-1] + 1, before[j] + 1, before[j - 1] + (x != y)))
        before = now
    return before[-1]


EDITED = ["kitten", "sitting", "Kitten", "", "é", "e\u0301", "🙂🙃", "boat", *DNA[:6]]


@pytest.mark.parametrize("normalize", ["longest", "metric"])
def test_edit_distances_are_those_of_dynamic_programming(normalize):
    def k(a, b):
        d, most = levenshtein(a, b), max(len(a), len(b))
        if normalize == "longest":
            return 1 - d / most if most else 1.0
        return 1 - 2 * d / (len(a) + len(b) + d) if most else 1.0

    expected = np.array([[k(a, b) for b in EDITED] for a in EDITED])
    similarity = Edit(normalize).similarity(EDITED)
    assert isinstance(similarity, Pairwise)
    np.testing.assert_allclose(similarity.dense(), expected, rtol=0, atol=1e-15)
    part = similarity.block(np.array([1, 3]), np.array([0, 2, 5]))
    np.testing.assert_allclose(part, expected[[1, 3]][:, [0, 2, 5]], rtol=0, atol=1e-15)
    # Tokens instead of characters; hashes of −1 and −2 are equal in Python, and they are different tokens.
    tokens = {
        letter: token for letter, token in zip("kitens", (-1, -2, "x", 2.5, None, "y"), strict=True) if token
    }
    words = ["kitten", "skin", "sit", "nest"]
    lists = [[tokens.get(letter, letter) for letter in word] for word in words]
    expected = np.array([[k(a, b) for b in words] for a in words])
    np.testing.assert_allclose(Edit(normalize).similarity(lists).dense(), expected, rtol=0, atol=1e-15)


def test_many_pairs_use_threads_and_give_the_same():
    many = ["".join(rng.choice(list("ab"), 6)) for _ in range(130)]
    found = Edit().similarity(many).dense()
    for i, j in rng.integers(130, size=(200, 2)):
        assert found[i, j] == 1 - levenshtein(many[i], many[j]) / 6


# --------------------------------------------------------------------------------------------------------- alignment


def aligned(a, b, score, gap_open, gap_extend, local):
    """The best score with affine gaps (Gotoh), by hand: m ends in a pair, x in a gap of b, y in a gap of a."""
    low = -math.inf
    n, m = len(a), len(b)
    M, X, Y = (np.full((n + 1, m + 1), low) for _ in range(3))
    M[0, 0] = 0
    for i in range(1, n + 1):
        X[i, 0] = -gap_open - (i - 1) * gap_extend
    for j in range(1, m + 1):
        Y[0, j] = -gap_open - (j - 1) * gap_extend
    best = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            before = max(M[i - 1, j - 1], X[i - 1, j - 1], Y[i - 1, j - 1], 0 if local else low)
            M[i, j] = before + score(a[i - 1], b[j - 1])
            X[i, j] = max(M[i - 1, j] - gap_open, Y[i - 1, j] - gap_open, X[i - 1, j] - gap_extend)
            Y[i, j] = max(M[i, j - 1] - gap_open, X[i, j - 1] - gap_open, Y[i, j - 1] - gap_extend)
            best = max(best, M[i, j])
    return best if local else max(M[n, m], X[n, m], Y[n, m])


@pytest.mark.parametrize("mode", ["local", "global"])
@pytest.mark.parametrize(("matrix", "sequences"), [
    ("BLOSUM62", PROTEINS[:7]), ("NUC.4.4", DNA[:7]), ((2, -1), DNA[:7]), ((1.5, -0.5), ["été", "ete", "tte"]),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("gaps", [(10.0, 0.5), (2.0, 1.0)], ids=str)
def test_alignments_are_those_of_dynamic_programming(mode, matrix, sequences, gaps):
    if isinstance(matrix, str):
        table = pytest.importorskip("Bio.Align").substitution_matrices.load(matrix)
        score = lambda a, b: table[a, b]  # noqa: E731
    else:
        score = lambda a, b: matrix[a != b]  # noqa: E731
    upper = [sequence.upper() for sequence in sequences]
    scores = np.array([[aligned(a, b, score, *gaps, mode == "local") for b in upper] for a in upper])
    expected = np.maximum(scores, 0) / np.sqrt(np.outer(np.diag(scores), np.diag(scores)))
    similarity = Alignment(matrix, mode, *gaps).similarity(sequences)
    np.testing.assert_allclose(similarity.dense(), expected, rtol=0, atol=1e-14)
    part = similarity.block(np.array([2, 0]), np.array([0, 1, 2]))
    np.testing.assert_allclose(part, expected[[2, 0]][:, [0, 1, 2]], rtol=0, atol=1e-14)
    if mode == "global":
        assert (scores < 0).any() or matrix == (1.5, -0.5)


def test_equal_sequences_are_aligned_once(monkeypatch):
    align, calls = pytest.importorskip("Bio.Align"), []

    class Counted(align.PairwiseAligner):
        def score(self, a, b):
            calls.append((a, b))
            return super().score(a, b)

    monkeypatch.setattr(align, "PairwiseAligner", Counted)
    vm.plan(PROTEINS, Alignment())
    assert not calls  # a plan aligns nothing
    score = vm.score(PROTEINS[:5] * 4, Alignment())
    assert score.diagnostics["distinct"] == 5
    assert len(calls) == 5 * 6 / 2


def exactly(a, b, score, gap_open, gap_extend, local):
    """The best score in exact fractions, of the floats as they are; a row at a time."""
    low, zero = Fraction(-(10**9)), Fraction(0)
    costs = Fraction(gap_open), Fraction(gap_extend)
    gap = lambda j: -costs[0] - (j - 1) * costs[1] if j else low  # noqa: E731
    M, X, Y = [zero] + [low] * len(b), [low] * (len(b) + 1), [gap(j) for j in range(len(b) + 1)]
    best = zero
    for i, x in enumerate(a, 1):
        m, down, right = [low], [gap(i)], [low]
        for j, y in enumerate(b, 1):
            m.append(max(M[j - 1], X[j - 1], Y[j - 1], zero if local else low) + Fraction(score(x, y)))
            down.append(max(M[j] - costs[0], Y[j] - costs[0], X[j] - costs[1]))
            right.append(max(m[-2] - costs[0], down[-2] - costs[0], right[-1] - costs[1]))
        M, X, Y = m, down, right
        best = max(best, *M)
    return best if local else max(M[-1], X[-1], Y[-1])


LONG = ["".join(rng.choice(list("ACGT"), 60)) for _ in range(3)]
FRACTIONAL = [
    ((0.1, -0.1), [*LONG, LONG[0][:30] + LONG[0][40:]], (0.3, 0.1)),
    ((0.1, 0.03), ["A" * 50, "A" * 37, "ACGT" * 9], (0.7, 0.7)),
    ((1, -1), LONG, (1e300, 0.1)),
    ((3, -2.5), LONG, (0.1, 0.1)),
    ("GONNET1992", PROTEINS[:4], (10.0, 0.5)),
    ("BLOSUM62", [*PROTEINS[:3], "XXWXX", "XWXXXX"], (10.0, 0.1)),
]


@pytest.mark.parametrize("mode", ["local", "global"])
@pytest.mark.parametrize(("matrix", "sequences", "gaps"), FRACTIONAL, ids=str)
def test_fractional_scores_are_within_the_claimed_error(mode, matrix, sequences, gaps):
    mpmath = pytest.importorskip("mpmath")
    if isinstance(matrix, str):
        table = pytest.importorskip("Bio.Align").substitution_matrices.load(matrix)
        score = lambda a, b: float(table[a, b])  # noqa: E731
        sequences = [s for s in sequences if mode == "local" or s.count("X") < 4 or "BLO" not in matrix]
    else:
        score = lambda a, b: matrix[a != b]  # noqa: E731
    similarity = Alignment(matrix, mode, *gaps).similarity(sequences)
    assert 16 * 2.0**-53 < similarity.entry_error < 1e-11
    found = similarity.dense()
    exact = [[exactly(a, b, score, *gaps, mode == "local") for b in sequences] for a in sequences]
    number = lambda f: mpmath.mpf(f.numerator) / f.denominator  # noqa: E731
    with mpmath.workdps(40):
        for i, row in enumerate(exact):
            for j, value in enumerate(row):
                true = number(max(value, Fraction(0))) / mpmath.sqrt(number(exact[i][i] * exact[j][j]))
                assert abs(mpmath.mpf(float(found[i, j])) - true) <= similarity.entry_error


def test_a_long_sequence_of_fractional_scores_has_bounds_that_hold():
    long = "".join(rng.choice(list("ACGT"), 4000))
    similarity = Alignment((0.1, -0.1), gap_open=1, gap_extend=1).similarity([long, long[:1000]])
    off = abs(float(similarity.dense()[0, 1]) - 0.5)  # all letters of the shorter one match: √(1000 / 4000)
    assert 16 * 2.0**-53 < off <= similarity.entry_error < 1e-11
    for q, true in ((2, 1.6), (1, math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25)))):
        low, high = vm.score(
            [long, long[:1000]], Alignment((0.1, -0.1), gap_open=1, gap_extend=1), q=q
        ).bounds
        assert low <= true <= high


@pytest.mark.parametrize(
    "kernel",
    [
        Alignment(),
        Alignment((2, -1)),
        Alignment((0.75, -0.125), "global", 3, 0.5),
        Alignment((2.0**-60, 0), "local", 2.0**-58, 2.0**-59),
    ],
    ids=repr,
)
def test_scores_that_add_exactly_lose_nothing(kernel):
    assert kernel.similarity(PROTEINS).entry_error == 16 * 2.0**-53


# ------------------------------------------------------------------------------------- negative eigenvalues, options

WORDS = ["aa", "ab", "ba", "bb", "aab", "abb", "bba", "baa", "abab", "baba", "aabb", "bbaa"]


@pytest.mark.parametrize("kernel", [Edit(), Alignment((1, -1), "global", 1, 1)], ids=repr)
def test_negative_eigenvalues_are_projected_or_an_error(kernel):
    matrix = kernel.similarity(WORDS).dense()
    values = np.linalg.eigvalsh(matrix / len(matrix))
    assert values[0] < -1e-3
    kept = np.maximum(values, 0) / np.maximum(values, 0).sum()
    for q, expected in ((2, 1 / (kept**2).sum()), ("inf", 1 / kept.max())):
        score = vm.score(WORDS, kernel, q=q)
        assert score == pytest.approx(expected, rel=1e-10)
        assert score.diagnostics["removed_mass"] == pytest.approx(-np.minimum(values, 0).sum(), rel=1e-9)
    groups = vm.score_groups(WORDS * 2, kernel, by=["a"] * 12 + ["b"] * 12)
    assert groups["b"] == pytest.approx(vm.score(WORDS, kernel), rel=1e-12)
    strict = rebuild({**describe(kernel), "parameters": describe(kernel)["parameters"] | {"project": False}})
    for q in (1, 2):
        with pytest.raises(IndefiniteError, match="project=True"):
            vm.score(WORDS, strict, q=q)
    with pytest.raises(IndefiniteError, match="group 'a'"):
        vm.score_groups(WORDS, strict, by=["a"] * 12)


def test_a_sum_projects_only_what_all_of_its_parts_allow():
    strict = Edit(project=False)
    allowed = 0.5 * Edit() + 0.5 * Edit("metric")
    whole = (Edit().similarity(WORDS).dense() + Edit("metric").similarity(WORDS).dense()) / 2
    expected = vm.score(whole, Precomputed(project=True))
    assert vm.score(WORDS, allowed) == pytest.approx(expected, rel=1e-10)
    assert vm.score(WORDS, 0.5 * Edit() + 0.5 * KMer(2)).diagnostics["removed_mass"] > 0  # nothing of KMer's
    same = vm.kernels.FromFunction(lambda a, b: float(a == b))
    for kernel in (
        0.5 * strict + 0.5 * Edit("metric"),
        0.5 * Edit("metric") + 0.5 * strict,
        0.9 * Edit() + 0.1 * same,  # a function may have negative eigenvalues, and this one allows nothing
        strict * Alignment((1, 0.9), "global", 0.1, 0.1),
        0.2 * (Edit("metric") * strict) + 0.8 * Edit(),
    ):
        with pytest.raises(IndefiniteError, match="project=True"):
            vm.score(WORDS, kernel)
        with pytest.raises(IndefiniteError, match="project=True"):
            vm.score_groups(WORDS, kernel, by=["a"] * 12)


BAD = {
    "a gap in DNA": (lambda: vm.score(["ACGT", "AC-GT"], KMer(3, "dna")), "item 1 holds '-' at position 2.*replace"),
    "a digit": (lambda: vm.score(["ACG1"], KMer(3, "dna")), "item 0 holds '1'.*letters"),
    "another script": (lambda: vm.score(["ACGT", "ACГT"], KMer(3, "dna")), "item 1 holds 'Г' at position 2"),
    "nothing left": (lambda: vm.score(["ACGT", "NNNNN"], KMer(3, "dna")), "item 1 .*no 3-mer of the letters of 'dna'"),
    "a short one with nothing left": (lambda: vm.score(["ACGT", "AN"], KMer(3, "dna")), "item 1 .*no 3-mer"),
    "k of 0": (lambda: KMer(0), "k=0.*from 1 up"),
    "a large k": (lambda: KMer(40, "dna"), "k=40.*smaller k"),
    "no strand": (lambda: KMer(3, "protein", True), "canonical=True with alphabet='protein'"),
    "no alphabet for a strand": (lambda: KMer(3, canonical=True), "canonical=True with alphabet=None"),
    "canonical as a number": (lambda: KMer(3, "dna", 2), "canonical=2.*True or False"),
    "tokens": (lambda: vm.score([["A", "C"]], KMer(3)), "item 0 is a list of tokens.*join"),
    "missing": (lambda: vm.score(["ACGT", None], KMer(3, "dna")), "item 1 is a NoneType, a missing value"),
    "bytes": (lambda: vm.score([b"ACGT"], KMer(3, "dna")), "item 0 is a bytes"),
    "missing for edit": (lambda: vm.score(["a", math.nan], "edit"), "item 1 is a float, a missing value"),
    "a norm": (lambda: Edit("shortest"), "normalize='shortest'.*'longest' or 'metric'"),
    "project for edit": (lambda: Edit(project=1), "project=1.*True or False"),
    "large scores": (lambda: Alignment((1e308, -1)), r"matrix=\(1e\+308, -1\).*up to 1e\+100"),
    "half a character": (lambda: vm.score(["ab", "a\ud83d"], Alignment((1, -1))), r"item 1 holds '\\ud83d', half of"),
    "codons": (lambda: vm.score(["ACG"], Alignment("SCHNEIDER")), "'SCHNEIDER' scores 'AAA'.*single letters"),
    "nothing but X": (lambda: vm.score(["ACD", "XXX"], Alignment(gap_extend=0.1)), "item 1 .*score 0 with itself"),
    "a mode": (lambda: Alignment(mode="semi"), "mode='semi'.*'local' or 'global'"),
    "a gap below 0": (lambda: Alignment(gap_open=-10), "gap_open=-10.*costs.*from 0 up"),
    "an extension that is none": (lambda: Alignment(gap_extend="a"), "gap_extend='a'"),
    "a match below a mismatch": (lambda: Alignment((1, 2)), r"matrix=\(1, 2\).*match"),
    "a match of 0": (lambda: Alignment((0, -1)), r"matrix=\(0, -1\)"),
    "one number": (lambda: Alignment(3), "matrix=3.*BLOSUM62"),
    "project for alignment": (lambda: Alignment(project="no"), "project='no'.*True or False"),
    "a letter": (lambda: vm.score(["ACD", "ACJ1"], Alignment()), "item 1 holds the letter 'J'.*BLOSUM62"),
    "a gap in a protein": (lambda: vm.score(["AC-D"], Alignment()), "item 0 holds the letter '-'.*replace"),
    "no score with itself": (lambda: vm.score(["ACD", "XXX"], Alignment()), "item 1 .*score 0 with itself.*Drop"),
    "an empty sequence": (lambda: vm.score(["ACD", ""], Alignment()), "item 1 .*score 0 with itself"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_sequences_and_options(case):
    call, message = BAD[case]
    with pytest.raises(InputError, match=message):
        call()


def test_unknown_names_are_told_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"alphabet 'DNA'.*Did you mean 'dna'"):
        KMer(3, "DNA")
    with pytest.raises(UnknownNameError, match=r"BLOSUM63.*Did you mean 'BLOSUM62'"):
        vm.score(PROTEINS, Alignment("BLOSUM63"))


@pytest.mark.parametrize(
    ("kernel", "module"), [(Edit(), "rapidfuzz.process"), (Alignment(), "Bio.Align")], ids=repr
)
def test_a_missing_library_is_named_with_its_extra(kernel, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"(?i){module.split('.')[0]}.*vendimeter\[sequences\]"):
        vm.score(PROTEINS, kernel)


def test_kernels_are_written_and_read_back():
    kernels = (KMer(4, "dna", True), Edit("metric", project=False), Alignment((2, -1), "global", 3, 1))
    for kernel in kernels:
        assert rebuild(json.loads(json.dumps(describe(kernel)))) == kernel
    assert [repr(kernel) for kernel in kernels[:2]] == [
        "KMer(4, 'dna', canonical=True)",
        "Edit('metric', project=False)",
    ]
    for name in ("kmer", "edit", "alignment"):
        assert vm.score(PROTEINS, name) == vm.score(PROTEINS, vm.kernels.by_name()[name]())


# --------------------------------------------------------------------------------------------------------- real data


def test_orchids(shared_data):
    with open(shared_data / "sequences" / "ls_orchid.fasta") as file:
        records = list(pytest.importorskip("Bio.SeqIO").parse(file, "fasta"))
    assert len(records) == 94
    bags = [spectrum(str(record.seq), 5, "ACGT", canonical=True) for record in records]
    expected = np.array([[cosine(a, b) for b in bags] for a in bags])
    kernel = KMer(5, "dna", canonical=True)
    np.testing.assert_allclose(kernel.similarity(records).dense(), expected, rtol=0, atol=1e-13)
    assert vm.score(records, kernel) == pytest.approx(vm.score(expected, "precomputed"), rel=1e-9)
    edit = Edit().similarity(records).block(np.array([0]), np.array([1]))
    first, second = (str(record.seq) for record in records[:2])
    assert edit[0, 0] == 1 - levenshtein(first, second) / max(len(first), len(second))


def test_coat_proteins(shared_data):
    family = pytest.importorskip("Bio.AlignIO").read(
        shared_data / "sequences" / "PF05371_seed.sth", "stockholm"
    )
    proteins = [str(record.seq).replace("-", "") for record in family]
    with pytest.raises(InputError, match="item 3 holds the letter '-'"):
        vm.score([str(record.seq) for record in family], Alignment())
    table = pytest.importorskip("Bio.Align").substitution_matrices.load("BLOSUM62")
    scores = np.array([
        [aligned(a, b, lambda x, y: table[x, y], 10, 0.5, True) for b in proteins] for a in proteins
    ])  # fmt: skip
    expected = scores / np.sqrt(np.outer(np.diag(scores), np.diag(scores)))
    np.testing.assert_allclose(Alignment().similarity(proteins).dense(), expected, rtol=0, atol=1e-14)
    score = vm.score(proteins, Alignment())
    assert 1 < score < len(proteins)
    assert score == pytest.approx(vm.score(expected, Precomputed(project=True)), rel=1e-9)


def test_the_matrix_of_an_alignment_goes_by_the_letters():
    dna = ["ACGTACGTTTGA", "ACGTACGAAAGA", "GGGGCCCCTTTA", "ACGUACGUUUGA"]
    score = vm.score(dna, vm.kernels.Alignment())
    assert "NUC.4.4" in score.diagnostics["kernel"]
    assert float(score) == float(vm.score(dna, vm.kernels.Alignment("NUC.4.4")))
    assert vm.kernels.Alignment("NUC.4.4").similarity(dna).dense()[0, 3] == pytest.approx(
        1, rel=1e-12
    )  # U is T
    proteins = ["HEAGAWGHEE", "PAWHEAE"]
    score = vm.score(proteins, vm.kernels.Alignment())
    assert "BLOSUM62" in score.diagnostics["kernel"]
    # What all items say holds for every group, whatever its own letters are.
    groups = vm.score_groups(["ACGT", "ACCT", "HEAG", "HEAW"], vm.kernels.Alignment(), by=[0, 0, 1, 1])
    assert groups.scores[0] == float(vm.score(["ACGT", "ACCT"], vm.kernels.Alignment("BLOSUM62")))
