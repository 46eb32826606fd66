"""The items that a report shows: ends of modes, near copies, redundant and rare ones; the matrix; pictures."""

from __future__ import annotations

import functools
import io
import math

import numpy as np
import pytest

import vendimeter as vm
from reports.reading import blocks, columns, cosine, drawn, hill, section, text_of, texts, titled
from vendimeter.errors import InputError
from vendimeter.reports.document import Chart, Gallery, Group, Table
from vendimeter.reports.items import PICTURE_BYTES, ItemRenderer

PIL = pytest.importorskip("PIL.Image")
MINUS = "−"


def planted(seed: int = 2) -> tuple[np.ndarray, list[str]]:
    """Vectors with near copies of the items 0 and 5, exact ones of the item 7, and one item apart from all others."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((40, 24)) + 0.5
    near = rows[[0, 0, 5]] + 1e-3 * rng.standard_normal((3, 24))
    rare = np.tile([[-9.0, 4.0]], 12)
    rows = np.vstack([rows, near, rows[[7, 7, 7]], rare])
    return rows, [f"thing {i}" for i in range(len(rows))]


@pytest.fixture(scope="module")
def page():
    rows, names = planted()
    return vm.report(rows, show=names)


def test_the_copies_that_were_planted_are_shown(page):
    clusters = [
        one for one in blocks(page.document, "duplicates", Gallery) if one.title.startswith("A cluster")
    ]
    assert [one.title for one in clusters] == [
        "A cluster of 4 items, which the kernel cannot tell apart, of which 3 are shown",
        "A cluster of 3 items",
        "A cluster of 2 items",
    ]
    assert [set(texts(one)) for one in clusters] == [
        {"thing 7", "thing 43", "thing 44"},
        {"thing 0", "thing 40", "thing 41"},
        {"thing 5", "thing 42"},
    ]
    assert [[item.figure for item in one.items] for one in clusters] == [
        ["kept", "", ""],  # their texts differ, so that they are no copies of one item
        ["kept", "", ""],
        ["kept", ""],
    ]
    sizes = columns(blocks(page.document, "duplicates", Table)[0])
    assert sizes == {"items of a cluster": [4, 3, 2], "clusters": [1, 1, 1], "items in all": [4, 3, 2]}


def test_only_equal_samples_are_called_identical():
    # Three fatty acids have one fingerprint, and so have the two alanines, without chirality.
    pytest.importorskip("rdkit")
    acids = ["CCCCCCCC(=O)O", "CCCCCCCCCC(=O)O", "CCCCCCCCCCCCCC(=O)O"]
    alanines = ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"]
    document = vm.report([*acids, "c1cc[nH]c1", *alanines], "morgan").document
    clusters = blocks(document, "duplicates", Gallery)
    assert [texts(one) for one in clusters] == [acids, alanines]
    assert [one.title for one in clusters] == [
        "A cluster of 3 items, which the kernel cannot tell apart",
        "A cluster of 2 items, which the kernel cannot tell apart",
    ]
    assert [item.figure for one in clusters for item in one.items] == ["kept", "", "", "kept", ""]
    said = text_of(document, "duplicates")
    assert "the kernel cannot tell 3 of them from another item (a similarity of 1)" in said
    assert "identical" not in said
    assert "exact cop" not in said

    # Equal ones are one item, with how often it is there; a rearranged text is another to the eye.
    document = vm.report(
        ["ab ba", "ab ba", "ba ab", "else"], lambda a, b: float(sorted(a) == sorted(b))
    ).document
    (cluster,) = blocks(document, "duplicates", Gallery)
    assert [(item.text, item.figure) for item in cluster.items] == [("ab ba", "kept, 2 times"), ("ba ab", "")]
    rows = np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 4.0], [-3.0, 1.0]])  # a multiple has the same direction
    (cluster,) = blocks(vm.report(rows).document, "duplicates", Gallery)
    assert [item.figure for item in cluster.items] == ["kept, 2 times", ""]
    (cluster,) = blocks(vm.report(rows[[0, 1, 3]]).document, "duplicates", Gallery)
    assert cluster.title == "A cluster of 2 items, all identical"


def test_copies_among_items_with_weight_are_counted_among_these():
    weights = np.zeros(8)
    weights[[0, 1, 2, 3]] = 0.25
    document = vm.report(["a", "a", "b", "c", "d", "e", "f", "g"], "match", weights=weights).document
    assert section(document, "duplicates").lead.startswith("1 of 4 items that have weight is a near copy")
    fact = next(one for one in document.facts.facts if one.name == "Near copies")
    assert fact.meaning == "25.0% of the 4 items that have weight, at a similarity of 0.95 or more"


def test_what_the_copies_cost_is_the_score_without_them(page):
    rows, _ = planted()
    kept = np.delete(rows, [40, 41, 42, 43, 44, 45], axis=0)
    now, then = hill(cosine(rows)), hill(cosine(kept))
    lead = section(page.document, "duplicates").lead
    assert lead.startswith("6 of 47 items are near copies of one that is kept")
    assert "the kernel cannot tell 3 of them from another item" in lead
    assert f"Without the copies the score would be {then:.2f} instead of {now:.2f}." in lead
    fact = next(one for one in page.document.facts.facts if one.name == "Near copies")
    assert (fact.value, fact.meaning) == ("6", "12.8% of the items, at a similarity of 0.95 or more")


def test_a_higher_threshold_finds_exact_copies_only():
    rows, names = planted()
    found = vm.report(rows, show=names, threshold=1.0).document
    assert [set(texts(one)) for one in blocks(found, "duplicates", Gallery)] == [
        {"thing 7", "thing 43", "thing 44"}
    ]
    assert "3 of 47 items are near copies" in section(found, "duplicates").lead


def test_the_rarest_and_the_most_redundant_are_those_of_leaving_each_out(page):
    rows, names = planted()
    matrix = cosine(rows)
    whole = hill(matrix)
    change = np.array([hill(np.delete(np.delete(matrix, i, 0), i, 1)) - whole for i in range(len(rows))])
    rarest = titled(page.document, "items", Gallery, "Rarest", "1")
    assert texts(rarest) == [names[i] for i in np.argsort(change)[: len(rarest.items)]]
    assert rarest.items[0].figure == f"{MINUS}{abs(change.min()):.3g}"
    redundant = titled(page.document, "items", Gallery, "Most redundant", "1")
    shown = [names.index(name) for name in texts(redundant)]
    assert len(shown) == len(set(shown)) == len(redundant.items)
    expected = np.sort(change)[::-1]
    assert [change[i] for i in shown] == pytest.approx(expected[: len(shown)].tolist(), abs=1e-9)
    rising = int((change > 1e-9).sum())
    assert rising > 1
    assert f"{rising} items are redundant" in section(page.document, "items").lead
    for order, q in (("0", 0.0), ("2", 2.0), ("inf", math.inf)):
        whole = hill(matrix, q)
        other = [hill(np.delete(np.delete(matrix, i, 0), i, 1), q) - whole for i in range(len(rows))]
        if np.ptp(other) > 1e-9:
            first = titled(page.document, "items", Gallery, "Rarest", order).items[0]
            assert other[names.index(first.text)] == pytest.approx(min(other), abs=1e-9), order


def test_ties_are_said_and_no_item_is_at_both_ends():
    samples = [f"{i} words" for i in range(12)] + ["copy", "copy"]
    document = vm.report(samples, "match", q=[0, 1]).document
    redundant, rarest = (
        titled(document, "items", Gallery, name, "0") for name in ("Most redundant", "Rarest")
    )
    assert texts(redundant) == ["copy"]
    assert rarest.lead.endswith(f"It is the same, {MINUS}1, for 12 items, of which these are some.")
    for order in ("0", "1"):
        ends = [
            set(texts(titled(document, "items", Gallery, name, order)))
            for name in ("Most redundant", "Rarest")
        ]
        assert ends[0]
        assert ends[1]
        assert not ends[0] & ends[1]
    rows = np.random.default_rng(0).standard_normal((12, 12))  # none is a combination of others
    document = vm.report(rows, q=[1, 0]).document
    said = text_of(document, "items", "0")
    assert f"without any one of them the score changes by {MINUS}1." in said
    assert [one.title for one in blocks(document, "items", Gallery, "0")] == []


def test_rarities_are_counted_and_their_mean_is_the_entropy(page):
    rows, _ = planted()
    chart = titled(page.document, "items", Chart, "How rare")
    assert chart.table is not None
    assert sum(columns(chart.table)["items"]) == len(rows)
    assert drawn(chart, 1)[0]["x"] == pytest.approx(math.log(hill(cosine(rows))))


def test_exemplars_are_those_of_modes_without_copies(page):
    rows, names = planted()
    found = vm.modes(rows, k=8)
    groups = blocks(page.document, "modes", Group)
    assert len(groups) == len(found) == 8
    shares = np.linalg.eigvalsh(cosine(rows) / len(rows))[::-1][:8]
    for mode, group in enumerate(groups):
        assert group.title == f"Mode {mode + 1}: {100 * shares[mode]:.1f}% of the whole"
        high, low = (one for one in group.blocks if isinstance(one, Gallery))
        loadings = found.loadings[:, mode]
        for gallery, sign in ((high, -1), (low, 1)):
            order = np.argsort(sign * loadings, kind="stable")
            shown = [names.index(text) for text in texts(gallery)]
            assert sorted(loadings[shown] * sign) == pytest.approx((loadings[shown] * sign).tolist())
            assert loadings[shown[0]] == pytest.approx(loadings[order[0]])
            said = gallery.items[0].figure.split(",")[0].replace(MINUS, "-")
            assert said == f"loading {loadings[shown[0]]:.2f}"
    table = columns(titled(page.document, "modes", Chart, "Shares of the modes").table)
    assert table["share"] == pytest.approx(shares.tolist(), rel=1e-6)
    assert table["sum so far"] == pytest.approx(np.cumsum(shares).tolist(), rel=1e-6)


def test_copies_of_one_thing_are_shown_once():
    samples = ["glass half full"] * 30 + ["glass half empty"] * 3 + ["a boat at sea", "some other words"]
    document = vm.report(samples, "ngram").document
    for gallery in blocks(document, "modes", Gallery) + blocks(document, "items", Gallery):
        assert len(set(texts(gallery))) == len(gallery.items), gallery.title
    first = blocks(document, "modes", Gallery)[0].items[0]
    assert first.text == "glass half full"
    assert first.figure.endswith(", and copies")


def test_the_matrix_is_drawn_group_by_group():
    rows, names = planted()
    rows = np.abs(rows)  # similarities of one sign, whose colours grow lighter
    label = np.array(["b", "a"])[np.arange(len(rows)) % 2]
    document = vm.report(rows, by=label, show=names).document
    said = text_of(document, "matrix")
    assert "From the top: b (rows 1 to 24), a (rows 25 to 47)." in said
    matrix = cosine(rows)
    mean = matrix[np.triu_indices(len(rows), 1)]
    assert (
        f"The mean similarity of two different items is {mean.mean():.3g}, the median {np.median(mean):.3g}."
        in said
    )
    picture, strip = blocks(document, "matrix", Gallery)
    pixels = np.asarray(PIL.open(io.BytesIO(picture.items[0].picture)).convert("RGB"))
    scale = len(pixels) // len(rows)
    assert pixels.shape == (len(rows) * scale, len(rows) * scale, 3)
    small = pixels[::scale, ::scale]
    assert (small == small.transpose(1, 0, 2)).all()
    light = small.sum(axis=2).astype(int)
    assert (np.diagonal(light) == light.max()).all()  # an item is most similar to itself
    order = np.concatenate([np.flatnonzero(label == "b"), np.flatnonzero(label == "a")])
    # Lightness rises with similarity: the mean within each block is that of the matrix, in order.
    cells = [(0, 0), (0, 24), (24, 24)]
    means = [light[i : i + 23, j : j + 23].mean() for i, j in cells]
    exact = [matrix[np.ix_(order[i : i + 23], order[j : j + 23])].mean() for i, j in cells]
    assert np.argsort(means).tolist() == np.argsort(exact).tolist()
    assert strip.items[0].caption.startswith("the colours")


def test_pictures_are_small_and_can_be_decoded():
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 255, size=(30, 300, 200, 3), dtype=np.uint8)
    document = vm.report(pictures, "pixels").document
    items = [
        item
        for one in document.sections
        for gallery in blocks(document, one.key, Gallery)
        for item in gallery.items
    ]
    shown = [item for item in items if item.caption.startswith("item ")]
    assert len(shown) > 20
    for item in shown:
        assert item.picture is not None
        decoded = PIL.open(io.BytesIO(item.picture))
        decoded.load()
        assert max(decoded.size) == 96
        assert decoded.size == (64, 96)
        assert item.media_type == f"image/{decoded.format.lower()}"
    assert sum(len(item.picture) for item in shown) <= PICTURE_BYTES


def test_there_is_room_for_so_many_pictures_and_no_more(monkeypatch):
    monkeypatch.setattr(
        "vendimeter.reports.items.ItemRenderer", functools.partial(ItemRenderer, budget=20_000)
    )
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 255, size=(40, 64, 64, 3), dtype=np.uint8)
    page = vm.report(pictures, "pixels")
    document = page.document
    items = [
        item
        for one in document.sections
        for gallery in blocks(document, one.key, Gallery)
        for item in gallery.items
    ]
    assert (
        sum(len(item.picture) for item in items if item.caption.startswith("item ") and item.picture)
        <= 20_000
    )
    assert "pictures were left out, so that the page stays small" in text_of(document, "method")
    assert all(item.picture or item.text for item in items)


def test_molecules_are_drawn():
    pytest.importorskip("rdkit")
    molecules = [
        "CCO",
        "CCN",
        "c1ccccc1O",
        "CC(=O)Oc1ccccc1C(=O)O",
        "CCCCCCCC",
        "C1CCCCC1",
        "O=C=O",
        "c1ccncc1",
    ]
    document = vm.report(molecules, "morgan").document
    first = blocks(document, "modes", Gallery)[0].items
    for item in first:
        assert item.text in molecules
        drawn_one = PIL.open(io.BytesIO(item.picture)).convert("L")
        assert drawn_one.size == (240, 240)
        assert 0.001 < (np.asarray(drawn_one) < 128).mean() < 0.3  # lines on white
    metrics = columns(blocks(document, "metrics", Table)[0])
    assert metrics["Valid ↑"] == [1.0]
    assert "Novel ↑" not in metrics  # there is nothing to be new against


def test_what_cannot_be_shown_is_said_where_it_would_be():
    rows, _ = planted()
    document = vm.report(rows, show=[f"no such file {i}.png" for i in range(len(rows))]).document
    assert blocks(document, "items", Gallery)[0].items[0].text.startswith("no such file")
    with pytest.raises(InputError, match="show has 3 entries and there are 47 items"):
        vm.report(rows, show=["a", "b", "c"])
    with pytest.raises(InputError, match="show is a str; expected a list"):
        vm.report(rows, show="abc")


def test_vectors_are_drawn_where_there_is_nothing_better():
    rows, _ = planted()
    document = vm.report(rows).document
    item = blocks(document, "modes", Gallery)[0].items[0]
    assert PIL.open(io.BytesIO(item.picture)).size == (5, 5)  # 24 numbers and a blank
    assert "A vector is drawn as its numbers row by row" in text_of(document, "method")


def test_of_a_matrix_the_names_of_items_are_shown_once():
    rows, _ = planted()
    document = vm.report(cosine(rows) * 0.5 + 0.5, "precomputed").document
    item = blocks(document, "items", Gallery)[0].items[0]
    assert item.text.startswith("item ")
    assert item.caption == ""
