"""Near copies: how many there are, what they cost, and the largest clusters of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vendimeter.analysis.near_copies.near_copies import Duplicates
from vendimeter.reports.analyses import Analyses, Copies
from vendimeter.reports.document import Block, Column, Gallery, Section, Table
from vendimeter.reports.words import apart, counted, named, note, of_order
from vendimeter.results.score import Score

__all__ = ["items_of", "section"]

CLUSTERS = 6  # that are shown
LOOKED_AT = 2000  # items of a cluster, for those that differ
PAIRS = 6  # of collections, whose common items are counted
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
            f"is kept. {_most(analyses)} {_shared(analyses)}"
        )
    else:
        lead = _lead(found[0])
    if any(one.found.method != "exact" and several for one in found):
        blocks.append(
            note("Not all pairs were compared: the search is approximate, and what it finds is true.")
        )
    return Section("duplicates", "Near copies", lead, blocks)


def items_of(one: Copies) -> str:
    """How many items were looked at: those without weight take no part."""
    weightless = one.found.n < len(one.part.items)
    return counted(one.found.n, "item") + (" that have weight" if weightless else "")


def _lead(copies: Copies) -> str:
    """How many there are, and what they do to the score."""
    found = copies.found
    if found.n < 2:
        return "A single item has no copies."
    many = items_of(copies)
    what = f"a similarity of {found.threshold:g}{' or more' if found.threshold < 1 else ''}"
    if not found.copies:
        return f"None of {many} is a near copy of another, at {what}.{found._found()}"
    one = found.copies == 1
    chain = "" if found.sizes[0] == 2 else ", directly or by a chain of such"
    untold = "it" if one else f"{found.identical:,} of them"
    exact = f"the kernel cannot tell {untold} from another item (a similarity of 1)"
    text = (
        f"{found.copies:,} of {many} {'is a near copy' if one else 'are near copies'} of one that "
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
    return f"{name} has the largest part of them: {most.found.copies:,} of {items_of(most)}."


def _shared(analyses: Analyses) -> str:
    """Which collections have copies of each other."""
    counts, parts = analyses.shared, analyses.subject.parts
    if counts is None:
        return "Copies in one collection of what is in another were not looked for, so as not to take long."
    between = counts[:, :-1]
    what = f"a similarity of {analyses.threshold:g}{' or more' if analyses.threshold < 1 else ''}"
    if not between.any():
        return f"No item of a collection is a near copy of one of another, at {what}."
    sizes = np.array([one.found.n for one in analyses.copies])
    pairs = np.argwhere(between > 0)
    order = np.argsort([-between[i, j] / sizes[i] for i, j in pairs[::-1]], kind="stable")
    several = len({tuple(sorted(pair)) for pair in pairs.tolist()})
    words, said = [], set()
    for i, j in pairs[::-1][order].tolist():  # of equal ones the later collection as a copy of the earlier
        if (j, i) not in said and len(words) < PAIRS:
            said.add((i, j))
            are = "is a near copy" if between[i, j] == 1 else "are near copies"
            words.append(
                f"{between[i, j]:,} of {items_of(analyses.copies[i])} of {analyses.subject.what(parts[i])} {are} of "
                f"items of {analyses.subject.what(parts[j])}"
            )
    more = ", and there are more such pairs" if several > len(words) else ""
    return f"Across collections, at {what}: {'; '.join(words)}{more}."


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
            Column(
                "same to the kernel", "number", meaning="of these, items that it cannot tell from another one"
            ),
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
    alike = {place: number for number, places in enumerate(found.exact) for place in places}
    blocks: list[Block] = []
    for cluster in found.clusters[:most]:
        looked_at = cluster[:LOOKED_AT]
        # Of equal items the first one is shown, with how many there are. That the kernel cannot tell two items apart is
        # not enough: molecules may have one fingerprint.
        same: dict[Any, list[int]] = {}
        for place in looked_at:
            known = alike.get(place)
            key = place if known is None else (known, subject.shown.look(int(one.part.items[place])))
            same.setdefault(key, []).append(place)
        items = []
        for i, places in enumerate(list(same.values())[: subject.shown.row]):
            said = [] if i else ["kept"]
            said += [f"{len(places):,} times"] if len(places) > 1 and len(looked_at) == len(cluster) else []
            items.append(subject.shown(int(one.part.items[places[0]]), ", ".join(said)))
        whole = len(looked_at) == len(cluster)
        untold = len({alike.get(place, -1 - place) for place in cluster}) == 1
        notes = []
        if untold:
            notes.append(
                "all identical" if len(same) == 1 and whole else "which the kernel cannot tell apart"
            )
        if len(same) > len(items) or not whole:
            notes.append(f"of which {len(items)} {'is' if len(items) == 1 else 'are'} shown")
        of = f" of {named(one.part.label)}" if subject.several else ""
        blocks.append(
            Gallery(items, ", ".join([f"A cluster of {counted(len(cluster), 'item')}{of}", *notes]))
        )
    return blocks
