"""The most redundant and the rarest items: what each adds to the score, and what it would be without."""

from __future__ import annotations

import numpy as np

from vendimeter.analysis.decomposition.contributions import Contributions
from vendimeter.reports.analyses import Analyses
from vendimeter.reports.charts import Axis, Layer, chart
from vendimeter.reports.document import (
    Block,
    ByOrder,
    Chart,
    Column,
    Gallery,
    Group,
    Paragraph,
    Section,
    Table,
)
from vendimeter.reports.words import figure, note, of_order
from vendimeter.results.score import order_name

__all__ = ["section"]

ROWS, OTHERS = 2, 1  # of the first order, and of others
BINS = 40
NOISE = 1e-10  # of the score: changes below are rounding
LOOKED_AT = 6  # rows of items at an end, of which one is shown: copies of one thing are shown once


def section(analyses: Analyses) -> Section:
    """Items at both ends, for every order where that is cheap."""
    removed, subject = analyses.removed, analyses.subject
    title = "Most redundant and rarest items"
    if len(removed.items) < 2:
        return Section("items", title, "Without its only item nothing would be left to score.")
    main = removed.found[analyses.main]
    if not any(_differ(found) for found in removed.found.values()):
        return Section(
            "items", title, "No item is more redundant or rarer than another: all are missed alike."
        )
    blocks: list[Block] = [
        ByOrder(
            {
                order_name(q): _ends(analyses, found, ROWS if q == analyses.main else OTHERS)
                for q, found in removed.found.items()
            }
        )
        if len(removed.found) > 1
        else _ends(analyses, main, ROWS)
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
            Paragraph(f"They are given for order {order_name(analyses.main)} alone, so as not to take long.")
        )
    text = _plain(main)
    lead = (
        f"Every item was left out in turn. {text} Items that are missed least are like many others; those that are "
        "missed most have nothing like them, which may mean a rare find or a mistake in the data."
    )
    return Section("items", title, lead, blocks)


def _differ(found: Contributions) -> bool:
    """Whether some items are missed more than others, beyond rounding."""
    change = found.leave_one_out
    assert change is not None
    there = change[(found.weights > 0) & np.isfinite(change)]
    return len(there) > 1 and float(np.ptp(there)) > NOISE * float(found.score)


def _plain(found: Contributions) -> str:
    change = found.leave_one_out
    if change is None or not np.isfinite(change).any():
        return ""
    there = change[(found.weights > 0) & np.isfinite(change)]
    low, high = float(there.min()), float(there.max())
    rising = int(np.count_nonzero(there > NOISE * float(found.score)))
    text = (
        f"The score changes by {_signed(low)} without the one that is missed most, and by {_signed(high)} without the "
        "one that is missed least."
    )
    if not rising:
        return f"{text} Without any of them it falls."
    if rising == 1:
        return f"{text} One item is redundant: without it the score rises."
    return f"{text} {rising:,} items are redundant: without any one of them the score rises."


def _ends(analyses: Analyses, found: Contributions, rows: int) -> Group:
    items, shown = analyses.removed.items, analyses.subject.shown
    change, count = found.leave_one_out, rows * shown.row
    assert change is not None
    title = f"What the score{of_order(found.q)} would gain or lose"
    noise = NOISE * float(found.score)
    if not _differ(found):
        one = _signed(float(change[found.weights > 0][0]))
        text = "No item is more redundant or rarer than another"
        text += f": without any one of them the score changes by {one}." if one else "."
        return Group(title, [Paragraph(text)])
    there = change[(found.weights > 0) & np.isfinite(change)]
    most = min(LOOKED_AT * count, max(1, int(np.count_nonzero(found.weights)) // 2))

    def gallery(places: np.ndarray, title: str, lead: str, edge: float) -> Gallery:
        changes = dict(zip(items[places].tolist(), change[places].tolist(), strict=True))
        made = shown.distinct(changes, lambda item: _signed(changes[item]), count)
        tied = int(np.count_nonzero(np.abs(there - edge) <= noise))
        if tied > most:  # these are no more at the end than others are
            lead += f" It is the same, {_signed(edge)}, for {tied:,} items, of which these are some."
        return Gallery(made, title, lead)

    low, high = float(there.min()), float(there.max())
    # An item that is missed as little as any is not at the other end, too, however few there are between.
    redundant = found.redundant(most)
    redundant = redundant[change[redundant] > low + noise]
    rarest = found.rarest(most)
    rarest = rarest[(change[rarest] < high - noise) & ~np.isin(rarest, redundant)]
    rises = "Without them the score rises most, or falls least; by how much is beside each."
    falls = "Without them the score falls most; by how much is beside each."
    blocks: list[Block] = [
        gallery(redundant, "Most redundant", rises, high),
        gallery(rarest, "Rarest", falls, low),
    ]
    return Group(title, blocks)


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
        Axis("items", zero=True, whole=True),
        [
            Layer("histogram", rows, {"from": "from", "to": "to", "y": "items"}),
            Layer("rule", [{"x": mean}], {"x": "mean"}),
        ],
        table=table,
        height=220,
    )
