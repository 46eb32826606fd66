"""Near copies: how many there are, what they cost, and the largest clusters of them."""

from __future__ import annotations

import math

from vendimeter._report.analyses import Analyses, Copies
from vendimeter._report.document import Block, Column, Gallery, Section, Table
from vendimeter._report.words import apart, counted, named, note, of_order
from vendimeter.analysis.near_copies import Duplicates
from vendimeter.results import Score

__all__ = ["section"]

CLUSTERS = 6  # that are shown
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
        lead = _lead(found[0].found)
    if any(one.found.method != "exact" and several for one in found):
        blocks.append(
            note("Not all pairs were compared: the search is approximate, and what it finds is true.")
        )
    return Section("duplicates", "Near copies", lead, blocks)


def _lead(found: Duplicates) -> str:
    """How many there are, and what they do to the score."""
    if found.n < 2:
        return "A single item has no copies."
    what = f"a similarity of {found.threshold:g}{' or more' if found.threshold < 1 else ''}"
    if not found.copies:
        return f"None of {counted(found.n, 'item')} is a near copy of another, at {what}.{found._found()}"
    one = found.copies == 1
    chain = "" if found.sizes[0] == 2 else ", directly or by a chain of such"
    exact = "it is an exact copy" if one else f"{found.identical:,} are exact copies"
    text = (
        f"{found.copies:,} of {counted(found.n, 'item')} {'is a near copy' if one else 'are near copies'} of one that "
        f"is kept: joined to it by {what}{chain}{f'; {exact}' if found.identical else ''}. "
    )
    if len(found.clusters) == 1:
        text += f"They form one cluster of {found.sizes[0]:,}."
    else:
        text += f"They form {len(found.clusters):,} clusters, the largest of {counted(int(found.sizes[0]), 'item')}."
    return f"{text}{_cost(found)}{found._found()}"


def _cost(found: Duplicates) -> str:
    """What the score would be without copies, as far as the bounds tell."""
    now, then = found.score, found.without
    if now is None or then is None or not (math.isfinite(now) and math.isfinite(then)):
        return ""
    order = of_order(now.q)
    low, high = sorted((now, then))
    if "none" not in (now.level, then.level) and low.bounds[1] >= high.bounds[0]:
        return f" Without the copies the score{order} would be the same, as far as its bounds tell."
    before, after = apart(now, then)
    text = f" Without the copies the score{order} would be {after} instead of {before}"
    if before == after:
        text = f" Without the copies the score{order} would stay at {before}"
    return f"{text}, both without bounds." if "none" in (now.level, then.level) else f"{text}."


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
    # Of identical items the first one is shown, with how many there are.
    first = {place: min(same) for same in found.exact for place in same}
    times = {min(same): len(same) for same in found.exact}
    for cluster in found.clusters[:most]:
        kept = next(iter(cluster))
        places = list(dict.fromkeys(first.get(place, place) for place in cluster))
        places = sorted(places, key=lambda place: place != first.get(kept, kept))
        items = []
        for place in places[: subject.shown.row]:
            said = ["kept"] if place == first.get(kept, kept) else []
            said += [f"{times[place]:,} times"] if place in times else []
            items.append(subject.shown(int(one.part.items[place]), ", ".join(said)))
        left = len(places) - len(items)
        more = f", of which {len(items)} are shown" if left else ", all identical" if len(places) == 1 else ""
        of = f" of {named(one.part.label)}" if subject.several else ""
        blocks.append(Gallery(items, f"A cluster of {counted(len(cluster), 'item')}{of}{more}"))
    return blocks
