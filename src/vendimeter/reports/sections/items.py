"""The most redundant and the rarest items: what each adds to the score, and what it would be without."""

from __future__ import annotations

import numpy as np

from vendimeter.analysis.decomposition.contributions import Contributions
from vendimeter.present.numbers import format_number, order_name, order_suffix
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
from vendimeter.reports.findings import Findings
from vendimeter.reports.items import ItemRenderer
from vendimeter.reports.words import note

__all__ = ["section"]

MAIN_ROWS, OTHER_ROWS = 2, 1  # of the first order, and of others
BINS = 40
NOISE = 1e-10  # of the score: changes below are rounding
ROWS_SEARCHED = 6  # rows of items at an end, of which one is shown: copies of one thing are shown once


def section(findings: Findings, renderer: ItemRenderer) -> Section:
    """Items at both ends, for every order where that is cheap."""
    contributions = findings.contributions
    title = "Most redundant and rarest items"
    if len(contributions.items) < 2:
        return Section("items", title, "Without its only item nothing would be left to score.")
    main_contributions = contributions.by_order[findings.first_order]
    if not any(
        _has_differences(order_contributions) for order_contributions in contributions.by_order.values()
    ):
        return Section(
            "items", title, "No item is more redundant or rarer than another: all are missed alike."
        )
    blocks: list[Block] = [
        ByOrder(
            {
                order_name(q): _extremes(
                    findings,
                    renderer,
                    order_contributions,
                    MAIN_ROWS if q == findings.first_order else OTHER_ROWS,
                )
                for q, order_contributions in contributions.by_order.items()
            }
        )
        if len(contributions.by_order) > 1
        else _extremes(findings, renderer, main_contributions, MAIN_ROWS)
    ]
    if np.ptp(main_contributions.rarity[np.isfinite(main_contributions.rarity)]) > 1e-9:
        blocks.insert(0, _rarity_histogram(main_contributions))
    n = findings.diversity.n
    if len(contributions.items) < n:
        blocks.append(
            note(
                f"These are of a random sample of {len(contributions.items):,} of the {n:,} items, so as not "
                "to take long: changes of the score are those of the score of that sample."
            )
        )
    missing = [q for q in findings.orders if q not in contributions.by_order]
    if missing and len(findings.orders) > 1:
        blocks.append(
            Paragraph(
                f"They are given for order {order_name(findings.first_order)} alone, so as not to take long."
            )
        )
    range_words = _change_sentences(main_contributions)
    lead = (
        f"Every item was left out in turn. {range_words} Items that are missed least are like many others; those that "
        "are missed most have nothing like them, which may mean a rare find or a mistake in the data."
    )
    return Section("items", title, lead, blocks)


def _has_differences(contributions: Contributions) -> bool:
    """Whether leaving out one item changes the score more than leaving out another, beyond rounding."""
    change = contributions.leave_one_out
    assert change is not None
    finite_change = change[(contributions.weights > 0) & np.isfinite(change)]
    return len(finite_change) > 1 and float(np.ptp(finite_change)) > NOISE * float(contributions.score)


def _change_sentences(contributions: Contributions) -> str:
    change = contributions.leave_one_out
    if change is None or not np.isfinite(change).any():
        return ""
    finite_change = change[(contributions.weights > 0) & np.isfinite(change)]
    low, high = float(finite_change.min()), float(finite_change.max())
    rising = int(np.count_nonzero(finite_change > NOISE * float(contributions.score)))
    text = (
        f"The score changes by {_signed(low)} without the one that is missed most, and by {_signed(high)} without the "
        "one that is missed least."
    )
    if not rising:
        return f"{text} Without any of them it falls."
    if rising == 1:
        return f"{text} One item is redundant: without it the score rises."
    return f"{text} {rising:,} items are redundant: without any one of them the score rises."


def _extremes(findings: Findings, renderer: ItemRenderer, contributions: Contributions, rows: int) -> Group:
    items, change = findings.contributions.items, contributions.leave_one_out
    count = rows * renderer.per_row
    assert change is not None
    title = f"What the score{order_suffix(contributions.q)} would gain or lose"
    noise = NOISE * float(contributions.score)
    if not _has_differences(contributions):
        common_change = _signed(float(change[contributions.weights > 0][0]))
        text = "No item is more redundant or rarer than another"
        text += f": without any one of them the score changes by {common_change}." if common_change else "."
        return Group(title, [Paragraph(text)])
    finite_change = change[(contributions.weights > 0) & np.isfinite(change)]
    max_positions = min(ROWS_SEARCHED * count, max(1, int(np.count_nonzero(contributions.weights)) // 2))

    def gallery(positions: np.ndarray, title: str, lead: str, edge: float) -> Gallery:
        changes = dict(zip(items[positions].tolist(), change[positions].tolist(), strict=True))
        items_shown = renderer.distinct(changes, lambda item: _signed(changes[item]), count)
        tied = int(np.count_nonzero(np.abs(finite_change - edge) <= noise))
        if tied > max_positions:  # these are no more at the end than others are
            lead += f" It is the same, {_signed(edge)}, for {tied:,} items, of which these are some."
        return Gallery(items_shown, title, lead)

    low, high = float(finite_change.min()), float(finite_change.max())
    # An item that is missed as little as any is not at the other end, too, however few there are between.
    redundant = contributions.redundant(max_positions)
    redundant = redundant[change[redundant] > low + noise]
    rarest = contributions.rarest(max_positions)
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
    return f"{'+' if change >= 0 else '−'}{format_number(abs(change), 3)}"


def _rarity_histogram(contributions: Contributions) -> Chart:
    """A histogram of the rarity of the items."""
    rarity = contributions.rarity[(contributions.weights > 0) & np.isfinite(contributions.rarity)]
    counts, edges = np.histogram(rarity, bins=min(BINS, max(5, len(rarity))))
    rows = [
        {"from": float(a), "to": float(b), "y": int(count)}
        for a, b, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    table = Table(
        [Column("from", "number"), Column("to", "number"), Column("items", "bar")],
        [[row["from"], row["to"], row["y"]] for row in rows],
    )
    mean = float(
        np.average(
            rarity,
            weights=contributions.weights[(contributions.weights > 0) & np.isfinite(contributions.rarity)],
        )
    )
    return chart(
        "How rare the items are",
        f"How many items have which rarity; their mean (dashed), {format_number(mean)}, is the logarithm of the score"
        f"{order_suffix(contributions.q)}.",
        Axis("rarity"),
        Axis("items", zero=True, whole=True),
        [
            Layer("histogram", rows, {"from": "from", "to": "to", "y": "items"}),
            Layer("rule", [{"x": mean}], {"x": "mean"}),
        ],
        table=table,
        height=220,
    )
