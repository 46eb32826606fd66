"""Kernels as no one should write them: parsed, never evaluated, and refused in one message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.command_runs import Warm, check_refused

KERNELS: list[Any] = [
    ("", "no kernel ''"),
    ("ngrams", "Did you mean 'ngram'"),
    ("__import__('os').system('touch hacked')", "cannot be read"),
    ("ngram(__import__('os').system('touch hacked'))", "cannot be read"),
    ("ngram(open('hacked', 'w'))", "open"),
    ("ngram.__class__", "cannot be read"),
    ("ngram(1)[0]", "cannot be read"),
    ("lambda: 1", "cannot be read"),
    ("f'{1}'", "cannot be read"),
    ("[x for x in (1,)]", "cannot be read"),
    ("ngram(*[1, 2])", "cannot be read"),
    ("ngram(**{'low': 1})", "cannot be read"),
    ("ngram(1; 2)", "cannot be read"),
    ("ngram(1)\nngram(2)", "cannot be read"),
    ("ngram(", "cannot be read"),
    ("ngram(low=1, low=2)", "gives 'low' twice"),
    ("ngram(size=1)", "size"),
    ("ngram(1, 2, 3, 4, 5, 6, 7)", "See: vendi kernels ngram"),
    ("ngram(0)", "1 ≤ low ≤ high"),
    ("ngram(1.5)", "1 ≤ low ≤ high"),
    ("ngram(1e400)", "1 ≤ low ≤ high"),
    ("ngram(99999999999999999999)", "1 ≤ low ≤ high"),
    ("(" * 10_000 + ")" * 10_000, "cannot be read"),
    ("[" * 10_000, "cannot be read"),
    ("ngram(" + "-" * 1_500 + "1)", "cannot be read"),
    ("+".join(["match"] * 1_000), "cannot be read"),
    ("match**1e400", "cannot be read"),
    ("match**99999999", "cannot be read"),
    ("match**0", "power 0"),
    ("1e400*match", "multiplied by inf"),
    ("0*match", "multiplied by 0"),
    ("match+1", "cannot be read"),
    ("match@ngram", "cannot be read"),
    ("match<ngram", "cannot be read"),
    ("match, ngram", "cannot be read"),
    ("'match'", "cannot be read"),
    ("\x1b[31mred", r"\\x1b[31mred"),
    ("on", "on(colour, match)"),
    ("on(a)", "See: vendi kernels on"),
    ("on(a, b)", "no kernel 'b'"),
    ("random-features", "random-features(rbf(1.0)"),
    ("random-features(cosine)", "Cosine()"),
    ("timm", "no usual model"),
    ("rbf(-1)", "sigma=-1"),
    ("cosine", "the items are strings"),
    ("on(a, match)", "called 'a'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "seen"), KERNELS, ids=[text[:40].encode("unicode_escape") for text, _ in KERNELS]
)
def test_kernels(kernel: str, seen: str, broken: Path, warm: Warm) -> None:
    check_refused(warm("score", "good.txt", "--quiet", "--kernel", kernel, cwd=broken), seen)
    assert not (broken / "hacked").exists()
