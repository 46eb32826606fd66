"""The most redundant and the rarest items: what each adds to the score, and what it would be without."""

from __future__ import annotations

import numpy as np

from vendimeter._report.analyses import Analyses
from vendimeter._report.charts import Axis, Layer, chart
from vendimeter._report.document import Block, ByOrder, Chart, Column, Gallery, Group, Section, Table
from vendimeter._report.words import counted, figure, note, of_order
from vendimeter.analysis.decomposition import Contributions
from vendimeter.results import order_name

__all__ = ["section"]

ITEMS, OTHERS = 10, 5  # of the first order, and of others
BINS = 40


def section(analyses: Analyses) -> Section:
    """Items at both ends, for every order where that is cheap."""
    removed, subject = analyses.removed, analyses.subject
    main = removed.found[analyses.main]
    blocks: list[Block] = [
        ByOrder(
            {
                order_name(q): _ends(analyses, found, ITEMS if q == analyses.main else OTHERS)
                for q, found in removed.found.items()
            }
        )
        if len(removed.found) > 1
        else _ends(analyses, main, ITEMS)
    ]
    if np.ptp(main.rarity[np.isfinite(main.rarity)]) > 1e-9:
        blocks.insert(0, _rarity(main))
    if len(removed.items) < subject.n:
        blocks.append(
            note(
                f"These are of a random sample of {len(removed.items):,} of the {subject.n:,} items, so as not to take "
                "long: changes of the score are those of the score of that sample."
            )
        )
    missing = [q for q in analyses.orders if q not in removed.found]
    if missing and len(analyses.orders) > 1:
        blocks.append(
            note(f"They are given for order {order_name(analyses.main)} alone, so as not to take long.")
        )
    text = _plain(main)
    lead = (
        f"Every item was left out in turn. {text} Items that are missed least are like many others; those that are "
        "missed most have nothing like them, which may mean a rare find or a mistake in the data."
    )
    return Section("items", "Most redundant and rarest items", lead, blocks)


def _plain(found: Contributions) -> str:
    change = found.leave_one_out
    if change is None or not np.isfinite(change).any():
        return ""
    there = change[(found.weights > 0) & np.isfinite(change)]
    low, high = float(there.min()), float(there.max())
    rising = int(np.count_nonzero(there > 1e-12 * float(found.score)))
    return (
        f"Without one of them the score changes by {figure(low, 3)} to {figure(high, 3)}; it rises without any one of "
        f"{rising:,} of {counted(len(there), 'item')}."
    )


def _ends(analyses: Analyses, found: Contributions, count: int) -> Group:
    items, shown = analyses.removed.items, analyses.subject.shown
    change = found.leave_one_out
    assert change is not None
    half = max(1, int(np.count_nonzero(found.weights)) // 2)

    def gallery(places: np.ndarray, title: str, lead: str) -> Gallery:
        made = [shown(int(items[i]), _signed(float(change[i]))) for i in places.tolist()]
        return Gallery(made, title, lead)

    rarest = gallery(
        found.rarest(min(count, half)),
        "Rarest",
        "The score falls most without it; by how much is beside each.",
    )
    blocks: list[Block] = [rarest]
    if len(change) > 1:
        words = "The score rises most, or falls least, without it; by how much is beside each."
        blocks.insert(0, gallery(found.redundant(min(count, half)), "Most redundant", words))
    return Group(f"What the score would lose or gain{of_order(found.q)}", blocks)


def _signed(change: float) -> str:
    if not np.isfinite(change):
        return ""
    return f"{'+' if change >= 0 else '−'}{figure(abs(change), 3)}"


def _rarity(found: Contributions) -> Chart:
    """How rarity is spread over the items."""
    there = found.rarity[(found.weights > 0) & np.isfinite(found.rarity)]
    counts, edges = np.histogram(there, bins=min(BINS, max(5, len(there))))
    rows = [
        {"from": float(a), "to": float(b), "y": int(count)}
        for a, b, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    table = Table(
        [Column("from", "number"), Column("to", "number"), Column("items", "bar")],
        [[row["from"], row["to"], row["y"]] for row in rows],
    )
    mean = float(np.average(there, weights=found.weights[(found.weights > 0) & np.isfinite(found.rarity)]))
    return chart(
        "How rare the items are",
        f"How many items have which rarity; their mean (dashed), {figure(mean)}, is the logarithm of the score"
        f"{of_order(found.q)}.",
        Axis("rarity"),
        Axis("items", zero=True),
        [
            Layer("histogram", rows, {"from": "from", "to": "to", "y": "items"}),
            Layer("rule", [{"x": mean}], {"x": "mean"}),
        ],
        table=table,
        height=220,
    )
