"""Halves of characters (lone surrogates), for which no UTF-8 stands: refused where somebody writes for others to read,
shown as an escape where they come with the data, and in no output that cannot be written.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import InputError

HALF = "caf\ud83d \udcff"  # half of a pair, and a byte of a file name that is no UTF-8
SHOWN = r"caf\ud83d \udcff"
ROWS = np.random.default_rng(0).standard_normal((12, 3))
TEXTS = [f"a text, {i % 5} {HALF}" for i in range(12)]
LABELS = [f"{'abc'[i % 3]} {HALF}" for i in range(12)]
COLUMN = f"x {HALF}"

RESULTS: dict[str, Callable[[], Any]] = {
    "score": lambda: vm.score(TEXTS, "ngram"),
    "kernel of a column": lambda: vm.score({COLUMN: LABELS}, vm.kernels.On(COLUMN, vm.kernels.Match())),
    "profile": lambda: vm.profile(TEXTS, "match"),
    "groups": lambda: vm.score_groups(ROWS, by=LABELS),
    "means": lambda: vm.score_groups(ROWS, by=list(zip(LABELS, range(12), strict=True))).mean(by=LABELS, unit=None),
    "comparison": lambda: vm.compare(ROWS, by=LABELS, permutations=9),
    "modes": lambda: vm.modes(TEXTS, "ngram", k=2, by=LABELS),
    "duplicates": lambda: vm.duplicates(TEXTS, "ngram", threshold=0.5),
    "contributions": lambda: vm.contributions(TEXTS, "ngram"),
    "selection": lambda: vm.select(TEXTS, 3, "ngram", by=LABELS, quotas=1),
    "table": lambda: vm.metrics.table({f"a {HALF}": ROWS[:6], f"b {HALF}": ROWS[6:]}),
    "collection": lambda: vm.Collection(TEXTS, labels=LABELS, columns={COLUMN: LABELS}, source=HALF),
}  # fmt: skip


def written(result: Any) -> Iterator[tuple[str, str]]:
    """All texts that a result gives for people."""
    yield "str", str(result)
    yield "repr", repr(result)
    for name in ("_repr_html_", "summary", "to_markdown", "to_latex"):
        if hasattr(result, name):
            yield name, getattr(result, name)()


@pytest.mark.parametrize("name", RESULTS)
def test_what_comes_with_the_data_is_shown_as_an_escape(name: str) -> None:
    result = RESULTS[name]()
    texts = dict(written(result))
    for how, text in texts.items():
        assert text.encode(), how
    if name in ("groups", "comparison", "table"):
        plain = texts["_repr_html_"].replace("&#x27;", "'")
        assert SHOWN in plain
    if hasattr(result, "to_dict"):  # plain values as they are, which JSON can write
        assert json.dumps(result.to_dict()).isascii()


@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_pictures_can_be_written(form: str) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for result in (RESULTS["groups"](), RESULTS["comparison"](), RESULTS["modes"]()):
        result.plot()
        sink = io.BytesIO()
        pyplot.gcf().savefig(sink, format=form)
        pyplot.close("all")
        if form == "svg":
            sink.getvalue().decode()


def test_a_report_shows_what_data_hold_and_refuses_what_is_written_for_it(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    page = vm.report(TEXTS, "ngram", by=LABELS, title="Captions", command=f"vendi report {HALF}")
    path = page.write(tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    assert text.count(SHOWN) > 3
    assert page._repr_html_().encode()
    for options in ({"title": HALF}, {"notes": ["good", HALF]}):
        with pytest.raises(
            InputError, match=r"holds half of a character \(a lone surrogate, '.ud83d' at position 3"
        ):
            vm.report(TEXTS, "ngram", **options)  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == ["page.html"]


def test_sums_by_label_are_kept_with_their_labels(tmp_path: Path) -> None:
    total = vm.GroupAccumulator()
    total.update(ROWS, by=LABELS)
    total.save(tmp_path / "sums.npz")
    found = vm.GroupAccumulator.load(tmp_path / "sums.npz").score()
    assert list(found.labels) == sorted(set(LABELS))
    assert found[LABELS[0]] == vm.score_groups(ROWS, by=LABELS)[LABELS[0]]
