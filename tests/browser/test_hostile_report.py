"""A report of hostile files, made by the command and opened in a real browser: nothing runs, nothing breaks."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.report_documents import HOSTILE
from browser.test_report_page import ARGUMENTS, CHROMIUM, opened

sync_api = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

# What a page of charts and tables may stumble over, besides markup: names of members, paths, expressions, emptiness.
LABELS = [
    "__proto__",
    "constructor",
    "toString",
    "",
    " ",
    "a.b[0]",
    "datum['layer']",
    "{signal: alert(1)}",
    "{{7*7}}",
    "${alert(1)}",
    "#0072B2",
    "<script>window.__pwned = 1</script>",
    '"><img src=x onerror="window.__pwned = 2">',
    "</script><script>window.__pwned = 3</script>",
    "\u202egnp.exe \u2066hidden",
    "T" * 10_000,
    "T" * 9_999 + "U",
    "null",
    "1e999",
]
NAME = 'a\' "b" <img src=x onerror=window.__pwned=4> {{7*7}} $(touch pwned) `x` \u202e\u2028.jsonl'


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests."""
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


def command(folder: Path, *arguments: str | bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a folder."""
    script = str(Path(sys.executable).with_name("vendi"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [script, "report", *arguments], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of a table with hostile columns and labels, of folders of pictures, and of collections, named alike."""
    folder = tmp_path_factory.mktemp("hostile")
    texts = [text for text in HOSTILE if "\ud800" not in text] + [
        "W" * 10_000,
        "a\x00b",
        "{{7*7}}",
        "=1+1",
        "-",
    ]
    with (folder / NAME).open("w", encoding="utf-8") as file:
        for i in range(200):
            record = {
                "<b>t.x[0]</b>": texts[i % len(texts)] + f" {i % 61}",
                "__proto__": LABELS[i % len(LABELS)],
            }
            file.write(json.dumps(record) + "\n")
    command(folder, NAME, "--column", "<b>t.x[0]</b>", "--by", "__proto__", "-o", "table.html")
    _collections(folder)
    names = [name for name in os.listdir(os.fsencode(folder)) if name.endswith(b".csv")]
    command(folder, *sorted(names), "--column", "t", "--title", "</title><script>window.__pwned = 5</script>",
            "-o", "several.html")  # fmt: skip
    _pictures(folder / "pictures")
    command(folder, "pictures", "-o", "pictures.html")
    assert not (folder / "pwned").exists()
    return {name: folder / f"{name}.html" for name in ("table", "several", "pictures")}


def _collections(folder: Path) -> None:
    names = [
        os.fsencode("<script>window.__pwned = 6</script>.csv".replace("/", "\u2215")),
        b"not utf-8 \xff\xfe.csv",
        os.fsencode("constructor.csv"),
        os.fsencode("--q=7 \u202e.csv".lstrip("-")),
    ]
    for k, name in enumerate(names):
        with open(os.path.join(os.fsencode(folder), name), "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["t"])
            writer.writerows([[f"{HOSTILE[i % 6]} {k} {i % (5 + k)}"] for i in range(40)])


def _pictures(folder: Path) -> None:
    pictures = pytest.importorskip("PIL.Image")
    for label in ("__proto__", "<img src=x onerror=window.__pwned=7>", "'); alert(8); ('"):
        own = folder / label
        own.mkdir(parents=True)
        for i in range(6):
            tone = (40 * i, 255 - 30 * i, 7 * len(label) % 255)
            pictures.new("RGB", (24, 24), tone).save(own / f"&lt;script&gt;{i} \u202e\"'.png")


@pytest.mark.parametrize("name", ["table", "several", "pictures"])
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_nothing_runs_and_nothing_breaks(browser, pages, name, width, scheme):
    with opened(browser, pages[name], width=width, color_scheme=scheme) as found:
        page = found.page
        page.eval_on_selector_all("details", "all => all.forEach(details => (details.open = true))")
        for label in page.locator(".orders label").all():
            label.click()
            page.wait_for_function(
                "() => [...document.querySelectorAll('figure.chart')]"
                ".every(figure => !figure.clientWidth || figure.classList.contains('live'))"
            )
        assert page.locator("figure.chart.live").count() == page.locator("figure.chart").count() > 5
        # Every group and collection has a mark of its own, whatever it is called.
        ranked = page.locator("#about-groups [data-order]:visible figure.chart").first
        dots = ranked.locator(".drawn-live .mark-symbol.role-mark path").count()
        groups = page.locator("#about-groups table").first.locator("tbody tr").count()
        assert dots in (groups, 2 * groups)
        assert dots >= {"table": 15, "several": 4, "pictures": 3}[name]
        for button in page.locator("#about-groups th button").all():
            button.click()
        ranked.locator(".drawn-live .mark-symbol.role-mark path").last.hover()
        page.locator("#tip").wait_for(state="visible")
        across = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert across[0] <= across[1] == width
        text = page.locator("body").inner_text()
        assert "\u202e" not in text
        assert "49" not in page.title()
        assert page.locator("img").count() == page.locator("main img[src^='data:image/']").count()
        assert page.eval_on_selector_all("img", "all => all.every(one => one.naturalWidth > 0)")
        found.assert_quiet()


def test_labels_are_shown_as_they_are(browser, pages):
    with opened(browser, pages["table"]) as found:
        names = found.page.eval_on_selector_all(
            "#about-groups table:first-of-type tbody td:first-child",
            "cells => cells.map(cell => cell.textContent.trim())",
        )
        for label in (
            "__proto__",
            "constructor",
            "a.b[0]",
            "{{7*7}}",
            "${alert(1)}",
            "''",
            "#0072B2",
            "1e999",
        ):
            assert label in names, label
        assert len(set(names)) == len(LABELS)  # long ones are cut, and still differ
        # A label that is a colour is a name all the same: its mark is drawn where the axis says it is.
        axis = found.page.locator("#about-groups figure.chart").first.locator(
            ".drawn-live .role-axis-label text"
        )
        drawn = [name.removesuffix("\u200b") for name in axis.all_text_contents()]
        assert {"#0072B2", "__proto__", "constructor"} <= set(drawn)
        found.assert_quiet()


def test_one_finds_the_command_again(pages):
    import html
    import re
    import shlex

    found = re.search(r"<pre[^>]*><code>(.*?)</code>", pages["table"].read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    words = shlex.split(html.unescape(found[1]))
    assert words[:2] == ["vendi", "report"]
    assert words[3:] == ["--column", "<b>t.x[0]</b>", "--by", "__proto__", "-o", "table.html"]
    assert "\\u202e" in words[2]  # what would turn the line around is shown, and the rest is as it was
    assert words[2].startswith('a\' "b" <img src=x onerror=window.__pwned=4> {{7*7}} $(touch pwned) `x` ')
