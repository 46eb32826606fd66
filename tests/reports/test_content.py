"""The figures of a report against the definitions: scores, spectrum, orders, convergence, groups, lists."""

from __future__ import annotations

import math

import numpy as np
import pytest

import vendimeter as vm
from reports.reading import blocks, columns, cosine, drawn, hill, section, text_of, titled
from vendimeter.reports.document import Chart, Facts, Paragraph, Table

ORDERS = {"0": 0.0, "1": 1.0, "2": 2.0, "inf": math.inf}


def clustered(n: int = 90, groups: int = 3, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Vectors around centres of their groups; the later ones are tighter."""
    rng = np.random.default_rng(seed)
    label = np.sort(rng.permutation(np.arange(n) % groups))
    centres = 2 * rng.standard_normal((groups, 6))
    spread = np.array([1.6, 0.8, 0.3])[label % 3]
    return centres[label] + spread[:, None] * rng.standard_normal((n, 6)), label


@pytest.fixture(scope="module")
def grouped():
    rows, label = clustered()
    names = np.array(["wide", "middle", "tight"])[label]
    page = vm.report(rows, by=names, show=[f"row {i}" for i in range(len(rows))], title="Groups")
    return rows, names, page


def test_the_headline_and_the_facts_are_the_score(grouped):
    rows, _, page = grouped
    score = hill(cosine(rows))
    headline = page.document.headline
    assert headline.startswith(f"As diverse as {score:.5g} completely different items, out of 90; exact")
    assert page.summary() == headline
    facts = {fact.name: fact for fact in page.document.facts.facts}
    assert float(facts["Vendi Score"].value) == pytest.approx(score, rel=1e-4)
    assert facts["Items"].value == "90"
    assert facts["Items"].meaning == f"the score is {100 * score / 90:.1f}% of their number"
    assert facts["Groups"].value == "3"


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_has_its_score_in_words(grouped, order):
    rows, _, page = grouped
    said = blocks(page.document, "answer", Paragraph, order)[0].text
    value = hill(cosine(rows), ORDERS[order])
    assert said.startswith(f"As diverse as {float(f'{value:.5g}'):g} completely different item")
    if order != "1":
        assert f"at order {'∞' if order == 'inf' else order}" in said


def test_the_population_is_kept_apart_from_the_bounds(grouped):
    rows, _, page = grouped
    found = vm.rarefy(rows)
    told = [one.text for one in blocks(page.document, "answer", Paragraph) if "population" in one.text]
    assert len(told) == 1
    if found.population.interval is None:
        assert "no interval can be given, because" in told[0]
    else:
        low, high = found.population.interval
        assert (
            f"between {low:.3f} and {high:.3f}" in told[0] or f"between {low:.2f} and {high:.2f}" in told[0]
        )
    assert "population" not in page.document.headline
    assert "%" not in page.document.headline


def test_a_population_has_its_own_interval():
    rng = np.random.default_rng(5)
    rows = np.eye(4)[rng.integers(4, size=400)] + 0.05 * rng.standard_normal((400, 4))
    page = vm.report(rows)
    found = vm.rarefy(rows).population
    assert found.interval is not None
    low, high = found.interval
    fact = next(one for one in page.document.facts.facts if one.name == "Population")
    assert fact.value == f"about {float(found):.3f}"
    assert fact.meaning == f"between {low:.3f} and {high:.3f} with 95% confidence, by sampling"
    assert f"would score about {float(found):.3f}, between {low:.3f} and {high:.3f}" in text_of(
        page.document, "answer"
    )


def test_why_there_is_no_population_without_options():
    labels = np.arange(1200)
    equal = np.equal.outer(labels, labels).astype(float)
    weighted = vm.report(equal[:30, :30], kernel="precomputed", weights=np.full(30, 1 / 30))
    refused = vm.Diversity(labels[:30], "match", weights=np.full(30, 1 / 30)).rarefy().population.refused
    assert refused is not None
    assert text_of(weighted.document, "answer").count(f"because {refused.text}") == 1
    assert "counts=" not in text_of(weighted.document, "answer")
    assert "samples for this" not in text_of(weighted.document, "answer")
    sampled = text_of(vm.report(equal, kernel="precomputed").document, "answer")
    assert "A report looks at 1,024 samples for this" in sampled
    assert "Take " not in sampled


def test_the_spectrum_is_that_of_the_matrix(grouped):
    rows, _, page = grouped
    values = np.linalg.eigvalsh(cosine(rows) / len(rows))[::-1]
    values = values[values > 1e-12]
    chart = titled(page.document, "spectrum", Chart, "Eigenvalues")
    assert [row["y"] for row in drawn(chart, 0)] == pytest.approx(values.tolist(), rel=1e-6)
    assert chart.table is not None
    assert columns(chart.table)["share"] == pytest.approx(values.tolist(), rel=1e-6)
    sums = titled(page.document, "spectrum", Chart, "How much")
    assert [row["y"] for row in drawn(sums, 1)] == pytest.approx(np.cumsum(values).tolist(), rel=1e-6)
    assert drawn(sums, 0)[0]["x"] == pytest.approx(hill(cosine(rows)))
    lead = section(page.document, "spectrum").lead
    half = int(np.searchsorted(np.cumsum(values), 0.5)) + 1
    assert f"The largest holds {100 * values[0]:.1f}% of the whole" in lead
    assert half == 1 or f"{half} dimensions half of it" in lead


def test_the_profile_is_that_of_hill_numbers(grouped):
    rows, _, page = grouped
    table = columns(titled(page.document, "spectrum", Chart, "The score of every order").table)
    assert table["order"] == ["0", "0.5", "1", "1.5", "2", "3", "5", "∞"]
    orders = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, math.inf]
    assert table["score"] == pytest.approx([hill(cosine(rows), q) for q in orders], rel=1e-6)
    for low, value, high in zip(table["at least"], table["score"], table["at most"], strict=True):
        assert low <= value <= high
    assert table["score"] == sorted(table["score"], reverse=True)


def test_the_curve_ends_at_the_score(grouped):
    rows, _, page = grouped
    table = columns(titled(page.document, "convergence", Chart, "The score against").table)
    assert table["items"][-1] == 90
    assert table["mean score"][-1] == pytest.approx(hill(cosine(rows)))
    found = vm.rarefy(rows)
    assert table["mean score"] == pytest.approx(found.scores.tolist())
    assert f"{100 * found.growth:.2g}%" in section(page.document, "convergence").lead


def test_groups_are_those_of_compare(grouped):
    rows, names, page = grouped
    found = vm.compare(rows, by=names, permutations=999)
    order = np.argsort(-found.fair)
    table = columns(blocks(page.document, "groups", Table)[0])
    assert table["group"] == [found.labels[g] for g in order] == ["wide", "middle", "tight"]
    own = [hill(cosine(rows[names == name])) for name in table["group"]]
    assert table["score"] == pytest.approx(own, rel=1e-6)  # of all items of the group, by the definition
    assert table["items"] == [int((names == name).sum()) for name in table["group"]]
    # A group of few effective items may have no interval; what is missing is None.
    low = [
        None if math.isnan(value) else pytest.approx(value) for value in found.rarefied_low[order].tolist()
    ]
    assert table["at least"] == low
    assert low[0] is not None
    assert table["rank"] == [1, 2, 3]
    for title, q in (("q=0", 0.0), ("q=2", 2.0), ("q=∞", math.inf)):
        exact = [hill(cosine(rows[names == name]), q) for name in table["group"]]
        assert table[title] == pytest.approx(exact, rel=1e-6), title
    between = columns(blocks(page.document, "groups", Table)[1])
    assert between["group"] == ["tight", "middle"]
    ratio = dict(zip(found.differences.groups, found.differences.ratio, strict=True))
    assert between["ratio"] == pytest.approx([ratio[name] for name in between["group"]])
    adjusted = dict(zip(found.differences.groups, found.differences.p_adjusted, strict=True))
    assert between["adjusted p"] == pytest.approx([adjusted[name] for name in between["group"]])
    assert "the first group, since none was named" in blocks(page.document, "groups", Table)[1].caption
    lead = section(page.document, "groups").lead
    assert "The largest difference from wide, the first group, is that of tight: its score is" in lead


def test_within_and_between_multiply_to_the_whole(grouped):
    rows, names, page = grouped
    alpha, beta, gamma = (float(fact.value) for fact in blocks(page.document, "groups", Facts)[0].facts)
    assert alpha * beta == pytest.approx(gamma, rel=2e-3)
    assert gamma == pytest.approx(hill(cosine(rows)), rel=1e-3)
    entropies = [math.log(hill(cosine(rows[names == name]))) for name in ("wide", "middle", "tight")]
    assert alpha == pytest.approx(math.exp(np.mean(entropies)), rel=1e-3)


def test_scores_agree_between_sections(grouped):
    _, _, page = grouped
    groups = columns(blocks(page.document, "groups", Table)[0])
    metrics = columns(blocks(page.document, "metrics", Table)[0])
    beside = dict(zip(metrics["items"], metrics["Vendi Score ↑"], strict=True))
    for name, score in zip(groups["group"], groups["score"], strict=True):
        assert beside[name] == pytest.approx(score, rel=1e-9)
    profile = columns(titled(page.document, "spectrum", Chart, "The score of every order").table)
    assert beside["all items"] == pytest.approx(profile["score"][2], rel=1e-12)


def test_unequal_groups_are_compared_at_a_common_size():
    rows, label = clustered(120)
    keep = np.r_[0:40, 40:65, 80:120]
    rows, label = rows[keep], label[keep]
    page = vm.report(rows, by=label)
    table = columns(blocks(page.document, "groups", Table)[0])
    sizes = {int(name): size for name, size in zip(table["group"], table["items"], strict=True)}
    assert sizes == {0: 40, 1: 25, 2: 40}
    fair = vm.compare(rows, by=label)
    assert dict(zip(map(int, table["group"]), table["of 25"], strict=True)) == pytest.approx(
        dict(zip(fair.labels, fair.fair.tolist(), strict=True))
    )
    at = table["group"].index("1")
    assert table["of 25"][at] == pytest.approx(table["score"][at])  # the smallest is compared as it is
    assert all(a <= b for a, b in zip(table["of 25"], table["score"], strict=True))


def test_another_reference_is_the_one_that_others_are_compared_with(grouped):
    rows, names, _ = grouped
    page = vm.report(rows, by=names, reference="tight")
    table = blocks(page.document, "groups", Table)[1]
    assert table.caption.startswith("Differences from tight; at the common size")
    assert (
        "The largest difference from tight is that of wide: its score is"
        in section(page.document, "groups").lead
    )
    assert set(columns(table)["group"]) == {"wide", "middle"}


def test_many_groups_have_no_arbitrary_one_to_compare_with():
    rng = np.random.default_rng(0)
    rows, label = rng.standard_normal((300, 4)), np.arange(300) % 60
    page = vm.report(rows, by=label)
    captions = [one.caption for one in blocks(page.document, "groups", Table)]
    assert not any(caption.startswith("Differences") for caption in captions)
    assert "times that of" not in section(page.document, "groups").lead
    named = vm.report(rows, by=label, reference=7)
    assert any(
        one.caption.startswith("Differences from 7;") for one in blocks(named.document, "groups", Table)
    )


def test_weights_are_those_of_the_definition():
    rng = np.random.default_rng(3)
    rows, weights = rng.standard_normal((30, 4)), rng.dirichlet(np.ones(30))
    page = vm.report(rows, weights=weights)
    matrix = cosine(rows)
    score = hill(matrix, weights=weights)
    assert page.document.headline.startswith(
        f"As diverse as {float(f'{score:.5g}'):g} completely different items"
    )
    assert "out of 30, by their weights" in page.document.headline
    metrics = columns(blocks(page.document, "metrics", Table)[0])
    assert metrics["Vendi Score ↑"] == pytest.approx([score])
    assert metrics["IntDiv ↑"] == pytest.approx([1 - weights @ matrix @ weights])
    assert text_of(page.document, "convergence").startswith("A score of few samples")


def test_a_matrix_of_similarities_is_taken_as_it_is():
    rows, _ = clustered(40)
    matrix = (cosine(rows) + 1) / 2
    page = vm.report(matrix, "precomputed", show=[f"thing {i}" for i in range(40)])
    assert page.document.subtitle == "40 items, compared by a matrix of similarities"
    assert float(page.document.facts.facts[0].value) == pytest.approx(hill(matrix), rel=1e-4)
    assert "thing 3" in page.html


def test_lists_of_texts_are_scored_each_by_itself():
    lists = [["a cat", "a cat", "a dog"], ["one", "two", "three"], ["same", "same", "same"]]
    collection = vm.Collection(lists, labels=["p", "q", "r"], kind="texts")
    page = vm.report(collection, "match")
    own = [vm.score(one, "match") for one in lists]
    assert own == pytest.approx([1.8898815748423097, 3.0, 1.0])
    mean = np.mean(own)
    error = np.std(own, ddof=1) / math.sqrt(3)
    assert page.document.headline == (
        f"A list is as diverse as {mean:.4g} completely different texts: the mean over 3 lists, with a standard error "
        f"of {error:.2g}."
    )
    facts = page.document.facts.facts
    assert (facts[0].name, facts[0].value) == ("Vendi Score of a list", f"{mean:.4g}")
    together = vm.score([text for one in lists for text in one], "match")
    assert (facts[1].name, float(facts[1].value)) == ("All texts together", pytest.approx(together, rel=1e-4))
    assert section(page.document, "groups").title == "Lists"
    table = columns(blocks(page.document, "groups", Table)[0])
    assert dict(zip(table["list"], table["score"], strict=True)) == pytest.approx(
        dict(zip("pqr", own, strict=True))
    )
