"""The report as a whole: several collections, provenance and the command that repeats it, size, failures, the file."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import vendimeter as vm
from reports.reading import blocks, columns, cosine, hill, section, text_of, titled
from vendimeter.errors import (
    EmptyError,
    InputError,
    MissingDependencyError,
    UnansweredError,
    UnknownNameError,
    VendimeterError,
)
from vendimeter.reports import report as builder
from vendimeter.reports.document import Chart, Code, Gallery, Table
from vendimeter.reports.sections import metrics


def collections() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    real = rng.standard_normal((60, 5)) + 2
    return {
        "real": real,
        "near": real[:50] + 0.1 * rng.standard_normal((50, 5)),
        "dropped": real[:8].repeat(5, axis=0),
    }


@pytest.fixture(scope="module")
def several():
    return vm.report(collections(), reference="real", title="Models")


def test_collections_stand_side_by_side_with_their_scores(several):
    own = collections()
    for order, q in (("1", 1.0), ("2", 2.0)):
        table = columns(blocks(several.document, "answer", Table, order)[0])
        assert table["collection"] == ["real", "near", "dropped"]
        assert table["items"] == [60, 50, 40]
        assert table["score"] == pytest.approx([hill(cosine(rows), q) for rows in own.values()], rel=1e-6)
    facts = [fact.name for fact in several.document.facts.facts]
    assert facts[:3] == ["real: score", "near: score", "dropped: score"]
    fair = vm.compare(np.vstack(list(own.values())), by=np.repeat(list(own), [60, 50, 40]), reference="real")
    at = dict(zip(fair.labels, fair.fair, strict=True))
    assert several.document.headline == (
        f"{max(at, key=at.get)} is the most diverse of 3 collections: at 40 items of each it is as diverse as "
        f"{max(at.values()):.3f} completely different items, and {min(at, key=at.get)}, the least, as "
        f"{min(at.values()):.3f}."
    )
    assert "Differences from real; at the common size" in blocks(several.document, "groups", Table)[1].caption
    curves = titled(several.document, "convergence", Chart, "The score against").table
    assert curves is not None
    assert set(columns(curves)["collection"]) == set(own)


def test_the_metrics_are_those_against_the_reference(several):
    own = collections()
    table = columns(blocks(several.document, "metrics", Table)[0])
    for at, name in ((1, "near"), (2, "dropped")):
        samples, real = own[name], own["real"]
        assert table["FD ↓"][at] == pytest.approx(float(vm.metrics.frechet_distance(samples, real)))
        both = vm.metrics.precision_recall(samples, real)
        assert (table["Precision ↑"][at], table["Recall ↑"][at]) == pytest.approx(
            (both.precision, both.recall)
        )
        # Fréchet's distance by its formula.
        a, b = np.cov(samples.T), np.cov(real.T)
        values = np.linalg.eigvals(a @ b)
        exact = (
            np.square(samples.mean(0) - real.mean(0)).sum()
            + np.trace(a + b)
            - 2 * np.sqrt(values.real.clip(0)).sum()
        )
        assert table["FD ↓"][at] == pytest.approx(exact, rel=1e-6)
    assert table["FD ↓"][0] is None
    assert table["Precision ↑"][1] > 0.9
    assert table["Recall ↑"][2] < table["Recall ↑"][1]


def test_copies_are_counted_within_each_collection(several):
    table = columns(blocks(several.document, "duplicates", Table)[0])
    assert table["collection"] == ["real", "near", "dropped"]
    assert table["same to the kernel"] == [0, 0, 32]
    without = table["without copies"][2]
    found = vm.duplicates(collections()["dropped"])
    assert without == pytest.approx(float(found.without))


def test_copies_across_collections_are_counted(several):
    own = collections()
    said = section(several.document, "duplicates").lead
    matrix = cosine(np.vstack(list(own.values()))) >= 0.95
    labels = connected_components(matrix)[1]
    real, near, dropped = np.split(labels, [60, 110])
    assert "40 of 40 items of dropped are near copies of items of real" in said
    assert f"{int(np.isin(near, real).sum())} of 50 items of near are near copies of items of real" in said
    facts = {fact.name: fact for fact in several.document.facts.facts}
    both = (
        np.isin(real, np.r_[near, dropped]).sum() + np.isin(near, np.r_[real, dropped]).sum() + len(dropped)
    )
    assert facts["Near copies across collections"].value == f"{both}"
    assert "Near copies within a collection" in facts
    assert "Near copies" not in facts
    apart = vm.report({"a": ["one", "one", "two"], "b": ["three", "four"]}, "match").document
    assert "No item of a collection is a near copy of one of another" in section(apart, "duplicates").lead


def test_provenance_says_what_was_done_and_with_what(several):
    table = dict(blocks(several.document, "method", Table)[0].rows)
    assert table["kernel"] == "Cosine()"
    assert table["seed of everything random"] == "0"
    assert table["vendimeter"] == vm.__version__
    assert table["numpy"] == np.__version__
    assert table["Python"] == ".".join(map(str, sys.version_info[:3]))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d \S+", table["made"])
    low, high = re.findall(r"[\d.]+", table["bounds of near"])[:2]
    score = hill(cosine(collections()["near"]))
    assert float(low) == pytest.approx(score, rel=1e-5)
    assert float(high) == pytest.approx(score, rel=1e-5)
    assert blocks(several.document, "method", Code)[0].text == (
        "import vendimeter as vm\n\nvm.report(samples, reference='real', title='Models').write(\"report.html\")"
    )


def test_the_call_that_is_shown_makes_the_same_report(tmp_path):
    samples = ["a dog", "a dog", "two boats at sea", "boats"]
    page = vm.report(samples, "ngram", by=list("aabb"), q=[2, 1], threshold=0.8, rng=3)
    call = blocks(page.document, "method", Code)[0].text
    assert "q=[2, 1]" in call
    assert "threshold=0.8" in call
    assert "rng=3" in call
    target = tmp_path / "report.html"
    exec(call.replace("report.html", str(target)), {"samples": samples, "labels": list("aabb")})
    assert without_time(target.read_text(encoding="utf-8")) == without_time(page.html)


def without_time(text: str) -> str:
    """A page without the times at which, and in which, it was made."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d [A-Z+\-\d:]+", "", text)
    text = re.sub(r"in [\d.,]+ (ms|s|min)\b", "", text)
    return re.sub(r"(>seconds<.*?<bdi>)[^<]*", r"\1", text, flags=re.DOTALL)


def test_the_command_that_is_shown_makes_the_same_report(tmp_path):
    rows = [
        {"text": text, "who's": who}
        for text, who in zip(["one cat", "a cat", "boats", "two boats"], "aabb", strict=True)
    ]
    (tmp_path / "a file's.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    where = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{where}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    arguments = [
        "vendi",
        "report",
        "a file's.jsonl",
        "--column",
        "text",
        "--by",
        "who's",
        "--seed",
        "5",
        "-o",
        "r.html",
    ]
    subprocess.run(arguments, cwd=tmp_path, env=environment, check=True, capture_output=True)
    first = (tmp_path / "r.html").read_text(encoding="utf-8")
    shown = re.search(r"<pre[^>]*><code>(.*?)</code>", first, re.DOTALL)
    assert shown is not None
    command = shown[1].replace("&#39;", "'").replace("&#34;", '"').replace("&amp;", "&")
    assert shlex.split(command) == arguments
    (tmp_path / "r.html").unlink()
    subprocess.run(command, shell=True, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert without_time((tmp_path / "r.html").read_text(encoding="utf-8")) == without_time(first)


def test_a_hundred_thousand_long_samples_make_a_small_page():
    rng = np.random.default_rng(0)
    texts = [f"sample {i} " + "dolor " * 400 for i in range(100_000)]
    labels = [f"group {i % 300}" for i in range(100_000)]
    rows = rng.standard_normal((100_000, 4))
    page = vm.report(rows, by=labels, show=texts, threshold=1.0, q=1)
    assert len(page.html.encode()) < 2_000_000
    items = [
        item
        for one in page.document.sections
        for gallery in blocks(page.document, one.key, Gallery)
        for item in gallery.items
    ]
    assert 0 < len(items) < 300
    assert max(len(item.text) for item in items) <= 300
    table = blocks(page.document, "groups", Table)[0]
    assert len(table.rows) == 200
    assert table.more == 100
    assert float(page.document.facts.facts[0].value) == pytest.approx(4, rel=0.01)


def test_a_section_that_fails_says_why(monkeypatch):
    def fails(*_):
        raise InputError("there is\x1b[31m no such <thing>.")

    monkeypatch.setattr(builder.matrix, "section", fails)
    page = vm.report(["a", "b", "b"], "match")
    found = section(page.document, "matrix")
    assert (found.title, found.lead) == ("The similarity matrix", "This could not be made.")
    assert text_of(page.document, "matrix").endswith("there is\\x1b[31m no such <thing>.")
    assert "no such &lt;thing&gt;." in page.html
    assert section(page.document, "metrics").lead.startswith("What is usually reported")

    def breaks(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(builder.matrix, "section", breaks)
    with pytest.raises(ZeroDivisionError):  # a fault of ours is not hidden
        vm.report(["a", "b", "b"], "match")


def test_an_order_that_cannot_be_answered_is_an_error_or_said_first(monkeypatch):
    monkeypatch.setattr("vendimeter.reports.findings.Findings._is_exact", lambda *_: False)
    with pytest.raises(
        UnansweredError, match=r"q=0, the rank, needs all eigenvalues.*--limit.*another order"
    ):
        vm.report(["a", "b", "b"], "match", q=0)
    document = vm.report(["a", "b", "b"], "match", q=[1, 0]).document
    assert document.orders == ["1"]
    assert (
        document.sections[0]
        .blocks[0]
        .text.startswith("Order 0, the rank, is not here: it needs all eigenvalues")
    )


def test_features_are_checked_before_any_work(monkeypatch):
    def works(*_, **__):
        raise AssertionError

    monkeypatch.setattr(builder, "take_sample", works)
    both = {"a": ["one", "two"], "b": ["three", "four"]}
    with pytest.raises(UnknownNameError, match="there is no encoder 'bogus'"):
        vm.report(both, "ngram", reference="a", features="bogus")
    monkeypatch.setitem(metrics.LIBRARIES, "clip", ("vision", "no_such_library"))
    with pytest.raises(MissingDependencyError, match=r"no_such_library.*vision"):
        vm.report(both, "ngram", reference="a", features="clip")
    with pytest.raises(InputError, match="features='timm' needs to be told which model"):
        vm.report(both, "ngram", reference="a", features="timm")


def test_metrics_without_an_encoder_are_not_lost_with_it():
    def fails(samples):
        raise InputError("these are no pictures.")

    both = {"a": ["one cat", "two cats", "a car"], "b": ["three dogs", "four boats", "a cab"]}
    with pytest.warns(UserWarning, match="could not be measured by features=.*these are no pictures"):
        page = vm.report(both, "ngram", reference="a", features=fails)
    table = columns(blocks(page.document, "metrics", Table)[0])
    assert "FD ↓" not in table
    assert len(table) > 3
    assert "these are no pictures" in text_of(page.document, "metrics")


def test_a_section_that_was_asked_for_and_fails_is_a_warning(monkeypatch):
    def fails(*_):
        raise InputError("no such thing.")

    monkeypatch.setattr(builder.metrics, "section", fails)
    vm.report(["a", "b", "b"], "match")  # nothing was asked for
    with pytest.warns(UserWarning, match="'Other metrics' of the report could not be made: no such thing"):
        vm.report({"a": ["x", "y"], "b": ["x", "z"]}, "match", reference="a")

    def misses(*_):
        raise MissingDependencyError("a library is missing.")

    monkeypatch.setattr(builder.metrics, "section", misses)
    with pytest.raises(MissingDependencyError):
        vm.report({"a": ["x", "y"], "b": ["x", "z"]}, "match", reference="a", features=lambda texts: texts)


def test_combined_groups_stand_as_their_labels():
    by = [("y", "p"), ("y", "p"), ("n", "p"), ("n", "q"), ("n", "q")]
    page = vm.report(["one cat", "a dog", "boats at sea", "a tree", "one boat"], "ngram", by=by)
    assert "y / p" in page.html
    assert "(&#39;" not in page.html
    assert "('" not in page.html.partition("<main")[2].partition("<script")[0]
    groups = columns(blocks(page.document, "groups", Table)[0])["group"]
    assert sorted(groups) == ["n / p", "n / q", "y / p"]
    assert "'n / p' has fewer than 2 items" in text_of(page.document, "groups")
    named = vm.report(
        ["one cat", "a dog", "boats at sea", "a tree", "one boat"], "ngram", by=by, reference=("n", "q")
    )
    assert any(
        one.caption.startswith("Differences from n / q;") for one in blocks(named.document, "groups", Table)
    )


def test_standard_input_has_a_name_and_is_to_be_given_again():
    page = vm.report(["a", "b"], "match", title="-", command="vendi report -")
    assert page.document.title == "standard input"
    assert "they have to be given there again" in text_of(page.document, "method")
    other = vm.report(["a", "b"], "match", command="vendi report a-b.txt")
    assert "given there again" not in text_of(other.document, "method")


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (["only one"], "As diverse as 1 completely different item, out of 1"),
        (["same"] * 12, "As diverse as 1 completely different item, out of 12"),
        (["a", "b"], "As diverse as 2 completely different items, out of 2"),
        (["a", "b", "b"], "As diverse as 1.8899 completely different items, out of 3"),
    ],
)
def test_few_items_have_a_report_without_empty_charts(samples, told):
    page = vm.report(samples, "match")
    assert page.document.headline.startswith(told)
    for one in page.document.sections:
        for chart in blocks(page.document, one.key, Chart):
            places = {(row.get("x"), row.get("y")) for row in chart.data}
            assert len(places) > 1, (one.key, chart.title)
        assert all(gallery.items for gallery in blocks(page.document, one.key, Gallery)), one.key
        assert "1 items" not in text_of(page.document, one.key)
        assert not re.search(r"\d{4,}\.\d|0\.000000|e-\d|−0\b(?![.,])", text_of(page.document, one.key)), (
            one.key
        )


def test_other_kinds_of_samples():
    table = {"shape": ["round", "round", "star"], "colour": ["red", "blue", "red"], "note": ["x", "y", "z"]}
    kernel = 0.5 * vm.kernels.On("shape", vm.kernels.Match()) + 0.5 * vm.kernels.On(
        "colour", vm.kernels.Match()
    )
    page = vm.report(table, kernel)
    exact = hill(np.array([[1, 0.5, 0.5], [0.5, 1, 0], [0.5, 0, 1]]))
    assert float(page.document.facts.facts[0].value) == pytest.approx(exact, rel=1e-4)
    assert "shape: round, colour: red" in page.html
    sequences = vm.report(["ACGTACGT", "ACGTACGA", "TTTTTTTT"], "kmer")
    assert "TTTTTTTT" in sequences.html


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        (([],), EmptyError, "samples is empty"),
        (([[1.0, float("nan")], [1.0, 2.0]],), InputError, "nan|NaN|finite"),
        ((["a"], "no such kernel"), VendimeterError, "kernel"),
        (({"a": [[1.0, 2.0]], "b": [[1.0, 2.0, 3.0]]},), InputError, "item 1 has shape"),
    ],
)
def test_bad_samples_are_errors_and_no_page(given, error, match):
    with pytest.raises(error, match=match):
        vm.report(*given)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"q": -1}, "q=-1"),
        ({"threshold": 0.0}, "threshold"),
        ({"rng": "x"}, "rng"),
        ({"notes": "one"}, "expected a list of texts"),
        ({"progress": 2}, "progress=2"),
        ({"by": ["x", "y"]}, "by"),
        ({"by": ["x", "y", "y"], "reference": "z"}, "'z'"),
        ({"weights": [1.0, 2.0, 3.0]}, "sum to 1|sum"),
    ],
)
def test_bad_options_are_errors(options, match):
    with pytest.raises(VendimeterError, match=match):
        vm.report(["a", "b", "c"], "match", **options)


def test_a_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    page = vm.report(["a", "b", "b"], "match")
    target = tmp_path / "report.html"
    assert page.write(target) == target
    assert target.read_text(encoding="utf-8") == page.html
    assert oct(target.stat().st_mode & 0o777) == oct(0o666 & ~_mask())
    other = vm.report(["a", "b", "c"], "match")
    with pytest.raises(InputError, match=r"is there already; .*overwrite=True"):
        other.write(target)
    assert target.read_text(encoding="utf-8") == page.html

    def fails(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="the disk is full"):
        other.write(target, overwrite=True)
    assert target.read_text(encoding="utf-8") == page.html
    assert os.listdir(tmp_path) == ["report.html"]  # nothing is left behind
    monkeypatch.undo()
    other.write(target, overwrite=True)
    assert target.read_text(encoding="utf-8") == other.html
    with pytest.raises(InputError, match="is a folder"):
        page.write(tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        page.write(tmp_path / "no" / "report.html")


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_link_is_written_through_and_notebooks_show_a_line(tmp_path):
    page = vm.report(["a", "b", "b"], "match", title="<Title>")
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.write_text("old", encoding="utf-8")
    link.symlink_to(real)
    page.write(link, overwrite=True)
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == page.html
    assert len(page._repr_html_()) < 500
    assert "As diverse as" in page._repr_html_()
    assert repr(page).startswith("Report('<Title>'")
