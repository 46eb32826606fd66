"""Draw the picture of the README, docs/images/readme.png: sets of captions as matrices, and the head of their report.

It takes the Chromium of the tests: `python scripts/readme_picture.py`.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
import sys
import tempfile
from importlib import resources
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import vendimeter as vm

OUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "readme.png"
CHROMIUM = os.environ.get("VENDIMETER_TEST_CHROMIUM") or shutil.which("chromium")
SAYS = {
    "stuck model": "one thing, twelve times",
    "careful model": "one thing, in twelve ways",
    "twelve photographs": "twelve things",
}
WIDTH, HEIGHT, SCALE, COLOURS = 960, 452, 2, 240
REPORT_WIDTH, REPORT_HEIGHT = 960, 660  # of the page, of which the picture shows the head
PAGE = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; width: 960px; height: 452px; display: flex; gap: 28px; background: #fff; color: #1a1d21;
       font-family: "DejaVu Sans", sans-serif; }
.sets { width: 318px; padding: 8px 0 0 8px; display: flex; flex-direction: column; gap: 9px; }
.set { display: flex; gap: 16px; align-items: center; }
.set img { width: 138px; height: 138px; }
.score { font: 38px "DejaVu Serif", serif; line-height: 1.1; }
.label { font-size: 13px; font-weight: bold; }
.says { font-size: 12.5px; color: #555e68; margin-top: 4px; }
.report { margin: 8px 8px 0 0; width: 598px; height: 432px; border: 1px solid #ccd2d8; border-radius: 8px;
          overflow: hidden; box-shadow: 0 3px 10px #0002; }
.report img { width: 598px; display: block; }
</style><div class="sets">SETS</div><div class="report"><img src="REPORT"></div>"""


def main() -> int:
    """Draw the matrices, open the report, and put both side by side."""
    if CHROMIUM is None:
        sys.exit(
            "Chromium is not installed (apt-get install chromium, or name one in VENDIMETER_TEST_CHROMIUM)."
        )
    path = resources.files("vendimeter.cli") / "data" / "captions.csv"
    captions = vm.read(str(path), samples="caption", label="set")
    scores = vm.score_groups(captions, "ngram")
    sets = ""
    for label, score in zip(scores.labels, scores, strict=True):
        own = [text for text, name in zip(captions.samples, captions.labels, strict=True) if name == label]
        sets += (
            f'<div class="set"><img src="{matrix(own)}"><div><div class="label">{label}</div>'
            f'<div class="score">{score:.1f}</div><div class="says">{SAYS[str(label)]}</div></div></div>'
        )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = Path(folder) / "report.html"
        vm.report(captions, "ngram", title="Three sets of captions").write(page)
        report = as_url(screenshot(browser, page, REPORT_WIDTH, REPORT_HEIGHT))
        together = Path(folder) / "picture.html"
        together.write_text(PAGE.replace("SETS", sets).replace("REPORT", report), encoding="utf-8")
        picture = Image.open(io.BytesIO(screenshot(browser, together, WIDTH, HEIGHT)))
        browser.close()
    few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(OUT, optimize=True)
    print(f"wrote {OUT}, {OUT.stat().st_size / 1024:.0f} KiB")
    return 0


def matrix(texts: list[str]) -> str:
    """The cells of the similarity matrix of some texts, 23 points each, without axes."""
    figure, ax = plt.subplots()
    vm.plots.kernel_matrix(texts, "ngram", order="given", limits=(0, 1), ax=ax)
    (image,) = ax.images
    values = np.asarray(image.get_array())
    cells = Image.fromarray(image.to_rgba(values, bytes=True))
    plt.close(figure)
    drawn = io.BytesIO()
    cells.resize((23 * len(texts), 23 * len(texts)), Image.Resampling.NEAREST).save(drawn, "png")
    return as_url(drawn.getvalue())


def screenshot(browser: Browser, path: Path, width: int, height: int) -> bytes:
    """The head of a page, in twice its size."""
    page = browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=SCALE)
    page.goto(path.as_uri())
    page.wait_for_timeout(1000)
    shot = page.screenshot()
    page.close()
    return shot


def as_url(png: bytes) -> str:
    """A picture inside a page."""
    return "data:image/png;base64," + base64.b64encode(png).decode()


if __name__ == "__main__":
    sys.exit(main())
