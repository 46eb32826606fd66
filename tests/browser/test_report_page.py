"""The page of the report in a real browser: what it draws, what it answers to, and what it never runs."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter.cli
from browser.report_documents import calm, hostile
from vendimeter.reports.page import render

sync_api = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")

CHROMIUM = os.environ.get("VENDIMETER_TEST_CHROMIUM") or shutil.which("chromium")
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
# What the policy blocks is told here, before the page can do anything.
WATCH = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.__violations.push(event.violatedDirective + " " + event.blockedURI + " " + event.sample));
"""

pytestmark = pytest.mark.skipif(
    CHROMIUM is None,
    reason="Chromium is not installed (apt-get install chromium, or name one in VENDIMETER_TEST_CHROMIUM)",
)


@dataclass
class Opened:
    """A page in the browser, and what it did that it should not have done."""

    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def violations(self) -> list[str]:
        return self.page.evaluate("window.__violations")

    def assert_quiet(self) -> None:
        assert self.errors == []
        assert self.violations() == []
        assert self.dialogs == []
        assert [url for url in self.requests if not url.startswith("data:image/")] == [
            self.page.url.split("#")[0]
        ]
        assert self.page.evaluate("window.__pwned") is None


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests."""
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The two documents as files."""
    folder = tmp_path_factory.mktemp("pages")
    written = {}
    for name, document in (("calm", calm()), ("hostile", hostile())):
        written[name] = folder / f"{name}.html"
        written[name].write_text(render(document), encoding="utf-8")
    return written


@contextmanager
def opened(
    browser: Any, file: Path, *, width: int = 1200, scripts: bool = True, **how: Any
) -> Iterator[Opened]:
    """A file in a window of its own, once its charts are drawn."""
    how.setdefault("reduced_motion", "reduce")  # else the page still scrolls when the pointer has arrived
    context = browser.new_context(
        viewport={"width": width, "height": 900}, java_script_enabled=scripts, **how
    )
    page = context.new_page()
    page.set_default_timeout(10_000)
    found = Opened(page)
    page.on(
        "console", lambda said: found.errors.append(said.text) if said.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: found.errors.append(str(error)))
    page.on("request", lambda request: found.requests.append(request.url))
    page.on("dialog", lambda dialog: (found.dialogs.append(dialog.message), dialog.dismiss()))
    page.add_init_script(WATCH)
    page.goto(file.as_uri())
    if scripts:
        page.wait_for_selector("html[data-ready]")
    try:
        yield found
    finally:
        context.close()


def column(page: Any, table: str, number: int) -> list[str]:
    """The texts of a column of a table, of the rows that are shown."""
    return page.eval_on_selector_all(
        f"{table} tbody tr:not([hidden])", f"rows => rows.map(row => row.cells[{number}].textContent.trim())"
    )


def test_every_chart_in_sight_is_drawn_and_nothing_is_blocked_or_fetched(browser, files):
    with opened(browser, files["calm"]) as found:
        page = found.page
        drawn = page.locator("figure.chart.live:visible")
        assert drawn.count() == page.locator("figure.chart:visible").count() == 4
        bars = page.locator("#chart-1 .drawn-live svg .mark-rect.role-mark path")
        assert bars.count() == 20
        assert page.locator("#chart-1 .drawn").is_hidden()  # the drawing for those without scripts
        # Heights of bars are those of the data: the second is 0.78 of the first.
        heights = bars.evaluate_all("paths => paths.map(path => path.getBBox().height)")
        assert heights[1] / heights[0] == pytest.approx(0.78, abs=0.01)
        # Text of the chart has the colours and the fonts of the page, although styles cannot be written into it.
        assert page.locator("#chart-1 .drawn-live text").first.evaluate(
            "text => getComputedStyle(text).fill"
        ) == ("rgb(87, 96, 106)")
        found.assert_quiet()


def test_the_policy_blocks_what_is_not_the_pages_own(browser, files):
    with opened(browser, files["calm"]) as found:
        found.page.evaluate(
            """() => {
              document.body.insertAdjacentHTML("beforeend", '<img src="data:," onerror="window.__pwned = 1">');
              document.body.insertAdjacentHTML("beforeend", '<b style="color: red">styled</b>');
              const script = document.createElement("script");
              script.textContent = "window.__pwned = 2";
              document.body.append(script);
              document.body.insertAdjacentHTML("beforeend", '<img src="https://example.org/x.png">');
            }"""
        )
        found.page.wait_for_function("() => window.__violations.length >= 4")
        assert {violation.split()[0] for violation in found.violations()} == {
            "script-src-attr",
            "style-src-attr",
            "script-src-elem",
            "img-src",
        }
        assert found.page.evaluate("window.__pwned") is None


def test_charts_tell_what_the_pointer_is_at(browser, files):
    with opened(browser, files["calm"]) as found:
        found.page.locator("#chart-1 .mark-rect.role-mark path").nth(2).hover()
        tip = found.page.locator("#tip")
        tip.wait_for(state="visible")
        assert tip.locator("span").all_inner_texts() == ["Component", "photograph", "Share", "0.206856"]
        found.page.keyboard.press("Escape")
        assert tip.is_hidden()
        found.assert_quiet()


def test_tables_are_sorted_by_click_and_by_keyboard(browser, files):
    with opened(browser, files["calm"]) as found:
        page = found.page
        table = f"#{page.locator('#about-groups div.table').first.get_attribute('id')}"
        score = page.locator(f"{table} th").nth(2)
        score.get_by_role("button").click()
        assert score.get_attribute("aria-sort") == "descending"
        seen = column(page, table, 2)
        numbers = [float(text) for text in seen if text != "–"]
        assert numbers == sorted(numbers, reverse=True)
        assert seen[-4:] == ["–"] * 4  # what is missing comes last
        score.get_by_role("button").focus()
        page.keyboard.press("Enter")
        assert score.get_attribute("aria-sort") == "ascending"
        seen = column(page, table, 2)
        assert [float(text) for text in seen[:-4]] == sorted(numbers)
        assert seen[-4:] == ["–"] * 4
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Space")
        assert score.get_attribute("aria-sort") is None
        names = column(page, table, 0)
        # "charcoal 20" before "charcoal 100": numbers in words are in their order too.
        assert names[:3] == ["charcoal", "charcoal 20", "charcoal 36"]
        found.assert_quiet()


def test_tables_are_filtered_and_say_how_many_rows_remain(browser, files):
    with opened(browser, files["calm"]) as found:
        page = found.page
        block = page.locator("#about-groups div.table").first
        box = block.get_by_label("Filter")
        box.focus()
        page.keyboard.type("CHARCOAL 36")
        said = block.locator("output")
        assert said.inner_text() == "1 of 60 rows"
        assert said.get_attribute("aria-live") == "polite"
        assert column(page, f"#{block.get_attribute('id')}", 0) == ["charcoal 36"]
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.press("Delete")
        assert said.inner_text() == "60 of 60 rows"
        assert block.get_by_text("1,234 more rows are not shown.").is_visible()
        scroll = block.locator(".scroll")
        assert scroll.evaluate("box => box.scrollHeight > box.clientHeight")  # 60 rows in a box of their own
        assert scroll.get_attribute("tabindex") == "0"


def test_one_choice_switches_every_block_that_depends_on_the_order(browser, files):
    with opened(browser, files["calm"]) as found:
        page = found.page

        def seen() -> list[str]:
            return page.locator(".by-order > [data-order]:visible > .order").all_inner_texts()

        assert seen() == ["q = 1", "q = 1"]
        page.get_by_text("∞", exact=True).first.click()
        assert seen() == ["q = ∞", "q = ∞"]
        assert page.get_by_text("Not computed for this order.").is_visible()
        page.get_by_role("radio", name="∞").focus()
        page.keyboard.press("ArrowLeft")
        assert seen() == ["q = 2", "q = 2"]
        # A chart that could not be seen before is drawn now, as wide as its place.
        figure = page.locator(".by-order [data-order='2'] figure.chart.live")
        figure.wait_for(state="visible")
        assert figure.locator(".drawn-live svg").bounding_box()["width"] > 500
        found.assert_quiet()


def test_charts_in_folded_parts_are_drawn_when_these_are_opened(browser, files):
    with opened(browser, files["calm"]) as found:
        page = found.page
        folded = page.locator("details.group").first
        assert folded.locator("figure.chart").is_hidden()
        folded.locator("summary").first.focus()
        page.keyboard.press("Enter")
        folded.locator("figure.chart.live .drawn-live svg").wait_for(state="visible")
        page.set_viewport_size({"width": 500, "height": 900})
        page.wait_for_function(
            "() => [...document.querySelectorAll('.drawn-live svg')].every(svg => !svg.clientWidth || "
            "Number(svg.getAttribute('width')) <= 500)"
        )
        found.assert_quiet()


def test_it_is_read_without_scripts(browser, files):
    with opened(browser, files["calm"], scripts=False) as found:
        page = found.page
        assert page.locator("#chart-1 .drawn svg").is_visible()
        assert page.locator("#chart-1 .drawn svg").bounding_box()["width"] > 300
        assert page.locator("button:visible").count() == 0  # no control that would do nothing
        assert page.locator(
            "#chart-6 table"
        ).is_visible()  # a chart without a drawing: its numbers are unfolded
        label = page.locator(".orders label").filter(has_text="2")
        label.click()
        shown = page.locator(".by-order > [data-order]:visible > .order")
        assert shown.all_inner_texts() == ["q = 2", "q = 2"]
        page.keyboard.press("ArrowLeft")
        assert shown.all_inner_texts() == ["q = 0", "q = 0"]
        page.locator("#chart-1 details.numbers summary").click()
        assert page.locator("#chart-1 td").first.is_visible()


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_hostile_text_runs_nothing_and_fits(browser, files, width):
    with opened(browser, files["hostile"], width=width) as found:
        page = found.page
        page.eval_on_selector_all("details", "all => all.forEach(details => (details.open = true))")
        page.locator("#chart-1 .mark-rect.role-mark path").first.hover()
        page.locator("#tip").wait_for(state="visible")
        assert "0<script>window.__pwned = 1</script>" in page.locator("#tip").inner_text()
        page.locator("th button.sort").first.click()
        page.wait_for_timeout(100)
        across = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert across[0] <= across[1] == width
        # Nothing that is not inside a box that scrolls reaches beyond the window.
        beyond = page.evaluate(
            """() => [...document.querySelectorAll("main *, header *, footer *")]
              .filter(part => !part.closest(".scroll, pre, .plot, .top-title"))
              .filter(part => part.getBoundingClientRect().right > innerWidth + 1)
              .map(part => part.outerHTML.slice(0, 99))"""
        )
        assert beyond == []
        text = page.locator("body").inner_text()
        assert "\\u202eright to left override" in text  # shown, not obeyed
        assert "\u202e" not in text
        assert page.locator("script").count() == page.evaluate("document.scripts.length")
        assert page.title() == "Captions of 0<script>window.__pwned = 1</script>"
        found.assert_quiet()


def test_dark_colours_follow_the_system_and_the_button(browser, files):
    def lightness(page: Any, what: str) -> list[float]:
        ground = page.evaluate(what).removeprefix("rgb(").removesuffix(")").split(",")
        return sum(map(float, ground)) / 3

    ground = "getComputedStyle(document.body).backgroundColor"
    label = "getComputedStyle(document.querySelector('#chart-1 .drawn-live svg text')).fill"
    with opened(browser, files["calm"], color_scheme="dark") as found:
        page = found.page
        assert lightness(page, ground) < 40
        assert lightness(page, label) > 150
        page.get_by_role("button", name="Switch to light colours").focus()
        page.keyboard.press("Enter")
        assert lightness(page, ground) == 255
        assert lightness(page, label) < 120
        page.get_by_role("button", name="Switch to dark colours").click()
        assert lightness(page, ground) < 40
        # On paper it is light all the same.
        page.emulate_media(media="print")
        assert lightness(page, ground) == 255
        assert lightness(page, label) < 120
        found.assert_quiet()


def test_it_is_printed_without_controls(browser, files):
    with opened(browser, files["calm"]) as found:
        page = found.page
        page.emulate_media(media="print")
        for control in (".top", "nav", ".tools", ".copy", ".contents-folded"):
            assert page.locator(f"{control}:visible").count() == 0
        heads = page.locator("#about-groups th").first  # without buttons, for browsers do not repeat those
        assert heads.inner_text() == "Group"
        assert page.locator("th button:visible").count() == 0
        paper = page.pdf(format="A4")
        assert paper.startswith(b"%PDF")
        assert paper.count(b"/Type /Page\n") > 2
        found.assert_quiet()


def test_the_keyboard_reaches_the_content_at_once(browser, files):
    with opened(browser, files["calm"], reduced_motion="reduce") as found:
        page = found.page
        page.keyboard.press("Tab")
        link = page.get_by_role("link", name="Skip to the content")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.wait_for_function("() => document.querySelector('.skip').getBoundingClientRect().top >= 0")
        assert link.evaluate("link => getComputedStyle(link).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
        page.locator("nav.contents a").nth(2).click()
        current = page.locator("nav.contents a[aria-current]")
        page.wait_for_function(
            "() => document.querySelector('nav.contents a[aria-current]')?.textContent === 'Groups'"
        )
        assert current.count() == 1
        page.set_viewport_size({"width": 700, "height": 900})
        assert page.locator("nav.contents").is_hidden()
        page.locator(".contents-folded summary").focus()
        page.keyboard.press("Enter")
        assert page.locator(".contents-folded a").first.is_visible()


@pytest.mark.parametrize(("name", "scheme"), [("hostile", "light"), ("calm", "dark")])
def test_axe_finds_no_serious_fault(browser, files, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with opened(browser, files[name], color_scheme=scheme) as found:
        found.page.eval_on_selector_all("details", "all => all.forEach(details => (details.open = true))")
        found.page.locator("details.group figure.chart.live").first.wait_for()
        result = axe.run(found.page).response
        grave = [
            (fault["id"], fault["nodes"][0]["html"][:200], fault["nodes"][0]["failureSummary"])
            for fault in result["violations"]
            if fault["impact"] in ("serious", "critical")
        ]
        assert grave == []
        assert len(result["passes"]) > 20  # it has looked


def test_a_report_of_real_captions_is_drawn_whole(browser, tmp_path):
    from vendimeter.reports.report import report

    captions = Path(vendimeter.cli.__file__).parent / "data" / "captions.csv"
    with captions.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    made = report(
        [row["caption"] for row in rows], vendimeter.kernels.NGram(1, 4), by=[row["set"] for row in rows]
    )
    path = made.write(tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000
    with opened(browser, path) as found:
        page = found.page
        page.eval_on_selector_all("details", "all => all.forEach(details => (details.open = true))")
        for label in page.locator(".orders label").all():
            label.click()
            page.wait_for_function(
                "() => [...document.querySelectorAll('figure.chart')]"
                ".every(figure => !figure.clientWidth || figure.classList.contains('live'))"
            )
            assert page.locator("figure.chart.live:visible").count() > 5
        found.assert_quiet()


def test_without_scripts_no_text_leaves_its_chart(browser, tmp_path):
    from vendimeter.reports.report import report

    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 8)) * np.geomspace(1, 0.003, 8)  # small shares have long labels
    names = np.array(["a group with a rather long name", "WWWWWWWWWWWWWWWWWWWW", "b"])[np.arange(400) % 3]
    path = report(rows, by=names).write(tmp_path / "report.html")
    with opened(browser, path, scripts=False) as found:
        page = found.page
        for details in page.locator("details:not([open]) > summary").all():
            if details.is_visible():
                details.click()
        drawn = page.evaluate(
            """() => [...document.querySelectorAll(".drawn svg")].filter(svg => svg.clientWidth).map(svg => {
              const box = svg.getBoundingClientRect();
              const texts = [...svg.querySelectorAll("text")];
              const beyond = texts.filter(text => {
                const own = text.getBoundingClientRect();
                return own.left < box.left - 1 || own.right > box.right + 1
                  || own.top < box.top - 1 || own.bottom > box.bottom + 1;
              });
              return [texts.length, beyond.map(text => text.textContent)];
            })"""
        )
        assert len(drawn) > 4
        assert all(count for count, _ in drawn)
        assert [beyond for _, beyond in drawn if beyond] == []
