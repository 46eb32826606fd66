"""Near copies: how many there are, what they cost, and the largest clusters of them."""

from __future__ import annotations

from vendimeter._report.analyses import Analyses, Copies
from vendimeter._report.document import Block, Column, Gallery, Section, Table
from vendimeter._report.words import counted, named, note
from vendimeter.results import Score

__all__ = ["section"]

CLUSTERS, ITEMS = 6, 5  # of which so many are shown
SIZES = 12  # rows of the table of sizes


def section(analyses: Analyses) -> Section:
    """Clusters of near copies in each collection."""
    subject, found = analyses.subject, analyses.copies
    several = subject.several
    blocks: list[Block] = []
    if several:
        blocks.append(_table(analyses))
    elif found[0].found.copies:
        blocks.append(_sizes(found[0]))
    each = max(1, CLUSTERS // len(found))
    for one in found:
        blocks += _clusters(analyses, one, each)
    if several:
        lead = (
            "Near copies within each collection, and what the score would be without them: of a cluster the first item "
            f"is kept. {_most(analyses)}"
        )
    else:
        text = found[0].found.summary()
        lead = f"{text[:1].upper()}{text[1:]}"
    if any(one.found.method != "exact" and several for one in found):
        blocks.append(
            note("Not all pairs were compared: the search is approximate, and what it finds is true.")
        )
    return Section("duplicates", "Near copies", lead, blocks)


def _most(analyses: Analyses) -> str:
    most = max(analyses.copies, key=lambda one: one.found.copies / max(one.found.n, 1))
    name = analyses.subject.what(most.part)
    if not most.found.copies:
        return f"There are none at a similarity of {analyses.threshold:g}."
    return f"{name} has the largest part of them: {most.found.copies:,} of {counted(most.found.n, 'item')}."


def _table(analyses: Analyses) -> Table:
    rows = []
    for one in analyses.copies:
        found = one.found
        score, without = _value(found.score), _value(found.without)
        rows.append(
            [
                analyses.subject.what(one.part),
                found.n,
                found.copies,
                found.identical,
                len(found.clusters),
                score,
                without,
            ]
        )
    return Table(
        [
            Column("collection"),
            Column("items", "number"),
            Column(
                "near copies",
                "bar",
                meaning=f"items joined to one that is kept at {analyses.threshold:g} or more",
            ),
            Column("identical", "number"),
            Column("clusters", "number"),
            Column("score", "number", digits=5),
            Column("without copies", "number", digits=5, meaning="the score of the items that are kept"),
        ],
        rows,
    )


def _value(score: Score | None) -> float | None:
    return None if score is None else float(score)


def _sizes(one: Copies) -> Table:
    """How many clusters have how many items."""
    counts: dict[int, int] = {}
    for size in one.found.sizes.tolist():
        counts[size] = counts.get(size, 0) + 1
    rows = [[size, counts[size], size * counts[size]] for size in sorted(counts, reverse=True)]
    return Table(
        [Column("items of a cluster", "number"), Column("clusters", "bar"), Column("items in all", "number")],
        rows[:SIZES],
        "Clusters by their size, the largest first.",
        more=max(0, len(rows) - SIZES),
    )


def _clusters(analyses: Analyses, one: Copies, most: int) -> list[Block]:
    """The largest clusters as galleries."""
    subject, found = analyses.subject, one.found
    blocks: list[Block] = []
    same = {place for cluster in found.exact for place in cluster}
    for cluster in found.clusters[:most]:
        items = [
            subject.shown(
                int(one.part.items[place]), "kept" if i == 0 else "identical" if place in same else ""
            )
            for i, place in enumerate(cluster[:ITEMS])
        ]
        more = f", of which {len(items)} are shown" if len(cluster) > len(items) else ""
        of = f" of {named(one.part.label)}" if subject.several else ""
        blocks.append(Gallery(items, f"A cluster of {counted(len(cluster), 'item')}{of}{more}"))
    return blocks
