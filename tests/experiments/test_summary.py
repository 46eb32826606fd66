"""The pages that sum the reruns up say what the results say; the findings on the paper are computed."""

from __future__ import annotations

import json
import re

import pytest
from reruns import EXPERIMENTS, RESULTS, rerun, script

TOTAL = 3_000_000  # bytes of all that is kept


def test_the_pages_are_up_to_date(capsys):
    assert script("summary")["main"](["--check"]) == 0, capsys.readouterr().out


def test_every_experiment_is_in_the_summary_and_in_the_makefile():
    parts = list(script("summary")["PARTS"])
    makefile = (EXPERIMENTS.parent / "Makefile").read_text(encoding="utf-8")
    listed = re.search(r"^EXPERIMENTS = ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)
    assert listed is not None
    assert sorted(listed[1].replace("\\\n", " ").split()) == sorted([*parts, "unclear", "summary"])
    scripts = {path.stem for path in EXPERIMENTS.glob("*.py") if not path.name.startswith("_")}
    beside = {"unclear", "summary", "answers", "fetch", "decoders_train", "stacked_mnist_train"}
    assert set(parts) | beside == scripts
    for name in parts:
        assert (RESULTS / f"{name}.json").exists()


def test_results_are_small_and_name_no_place():
    files = [path for path in RESULTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < TOTAL
    for path in files:
        assert path.suffix in (".json", ".png", ".npz")
        if path.suffix == ".json":
            assert not re.search(r'"/\w+/', path.read_text(encoding="utf-8"))


def test_the_readme_says_how_much_rests_on_the_papers_data():
    names = script("summary")
    counts = names["counts_of"](names["results_of"](RESULTS))
    own = sum(
        count
        for (kind, verdict), count in counts.items()
        if kind in ("", "made") and verdict != "could not be run"
    )
    assert names["decided_on_own_data"](counts) == own > 0
    readme = " ".join((EXPERIMENTS.parent / "README.md").read_text(encoding="utf-8").split())
    assert f"{own} of {counts.total()} claims are decided on the paper's own data" in readme


def test_every_claim_has_a_verdict_and_what_it_rests_on():
    verdicts = script("summary")["VERDICTS"]
    for name in script("summary")["PARTS"]:
        claims = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["claims"]
        assert claims, name
        assert len({claim["name"] for claim in claims}) == len(claims)
        for claim in claims:
            assert claim["verdict"] in verdicts
            assert claim["claim"].endswith(".")
            assert claim["measured"]


def test_text_in_tables_stays_in_its_cell():
    assert script("summary")["cell"]("a|b <c> d_e*") == r"a\|b &lt;c> d\_e\*"


def test_findings_are_computed(tmp_path):
    """Each is asserted in the script: the kernel is refused, the bound is broken, the tables disagree."""
    findings = {one["where"]: one for one in rerun("unclear", tmp_path)["findings"]}
    kept = json.loads((RESULTS / "unclear.json").read_text(encoding="utf-8"))["findings"]
    assert list(findings) == [one["where"] for one in kept]
    pixels = findings["Table of image models"]["computed"]
    assert "IDDPM 4.57 > 4.43" in pixels
    assert "RQ-VT 5.83 > 4.58" in pixels
    assert "IndefiniteError" in findings["Section 4.1, the kernel of the normal mixtures"]["computed"]
    assert "= 5 × 667: five genres each" in findings["Appendix, mode dropping, MultiNLI"]["computed"]
    correlations = findings["Appendix, mode dropping, correlations"]["computed"]
    assert "Pearson 0.896 for VS and 0.926 for IntDiv" in correlations


@pytest.mark.parametrize(("values", "verdict"), [
    ((True, True), "reproduced"), ((False, True), "reproduced in direction"), ((False, False), "not reproduced"),
])  # fmt: skip
def test_a_verdict_goes_by_the_numbers(values, verdict):
    claims = script("_common")["Claims"]()
    claims.check("a", "It is so.", holds=values[0], direction=values[1], measured="1", paper="2")
    claims.not_run("b", "It is so.", why="no data")
    assert [record["verdict"] for record in claims.records] == [verdict, "could not be run"]
