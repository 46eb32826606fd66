"""Near copies: how many there are, what they cost, and the largest clusters of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vendimeter.analysis.near_copies.near_copies import Duplicates
from vendimeter.present.numbers import align_decimals, count_of, order_suffix
from vendimeter.reports.document import Block, Column, Gallery, Section, Table
from vendimeter.reports.findings import Copies, Findings
from vendimeter.reports.items import ItemRenderer
from vendimeter.reports.words import label_name, note
from vendimeter.results.score import Score

__all__ = ["items_of", "section"]

MAX_CLUSTERS = 6  # that are shown
MAX_MEMBERS = 2000  # items of a cluster, for those that differ
MAX_PAIRS = 6  # of collections, whose common items are counted
MAX_SIZE_ROWS = 12  # rows of the table of sizes


def section(findings: Findings, renderer: ItemRenderer) -> Section:
    """Clusters of near copies in each collection."""
    copies = findings.copies
    has_several = findings.has_several
    blocks: list[Block] = []
    if has_several:
        blocks.append(_table(findings))
    elif copies[0].duplicates.copies:
        blocks.append(_sizes(copies[0]))
    per_collection = max(1, MAX_CLUSTERS // len(copies))
    for near_copies in copies:
        blocks += _clusters(findings, renderer, near_copies, per_collection)
    if has_several:
        lead = (
            "Near copies within each collection, and what the score would be without them: of a cluster the first item "
            f"is kept. {_most_affected(findings)} {_shared_sentences(findings)}"
        )
    else:
        lead = _lead(copies[0])
    if any(near_copies.duplicates.method != "exact" and has_several for near_copies in copies):
        blocks.append(
            note("Not all pairs were compared: the search is approximate, and what it finds is true.")
        )
    return Section("duplicates", "Near copies", lead, blocks)


def items_of(copies: Copies) -> str:
    """The number of items that were compared in words: those without weight are excluded."""
    weightless = copies.duplicates.n < copies.part.diversity.n
    return count_of(copies.duplicates.n, "item") + (" that have weight" if weightless else "")


def _lead(copies: Copies) -> str:
    """The number of near copies and their effect on the score, in sentences."""
    duplicates = copies.duplicates
    if duplicates.n < 2:
        return "A single item has no copies."
    items_words = items_of(copies)
    threshold_words = (
        f"a similarity of {duplicates.threshold:g}{' or more' if duplicates.threshold < 1 else ''}"
    )
    if not duplicates.copies:
        return f"None of {items_words} is a near copy of another, at {threshold_words}.{duplicates._found()}"
    is_single = duplicates.copies == 1
    chain_words = "" if duplicates.sizes[0] == 2 else ", directly or by a chain of such"
    identical_words = "it" if is_single else f"{duplicates.identical:,} of them"
    identical_clause = f"the kernel cannot tell {identical_words} from another item (a similarity of 1)"
    text = (
        f"{duplicates.copies:,} of {items_words} {'is a near copy' if is_single else 'are near copies'} of one that "
        "is kept: joined to it by "
        f"{threshold_words}{chain_words}{f'; {identical_clause}' if duplicates.identical else ''}. "
    )
    if len(duplicates.clusters) == 1:
        text += f"They form one cluster of {duplicates.sizes[0]:,}."
    else:
        largest = count_of(int(duplicates.sizes[0]), "item")
        text += f"They form {len(duplicates.clusters):,} clusters, the largest of {largest}."
    return f"{text}{_cost_sentence(duplicates)}{duplicates._found()}"


def _cost_sentence(duplicates: Duplicates) -> str:
    """The score without copies in a sentence, as far as the bounds distinguish it."""
    with_copies, without_copies = duplicates.score, duplicates.without
    if (
        with_copies is None
        or without_copies is None
        or not (math.isfinite(with_copies) and math.isfinite(without_copies))
    ):
        return ""
    order = order_suffix(with_copies.q)
    low, high = sorted((with_copies, without_copies))
    if "none" not in (with_copies.level, without_copies.level) and low.bounds[1] >= high.bounds[0]:
        return f" Without the copies the score{order} would be the same, as far as its bounds tell."
    before, after = align_decimals(with_copies, without_copies)
    text = f" Without the copies the score{order} would be {after} instead of {before}"
    if before == after:
        text = f" Without the copies the score{order} would stay at {before}"
    return (
        f"{text}, both without bounds." if "none" in (with_copies.level, without_copies.level) else f"{text}."
    )


def _most_affected(findings: Findings) -> str:
    largest = max(findings.copies, key=lambda copies: copies.duplicates.copies / max(copies.duplicates.n, 1))
    name = largest.part.name
    if not largest.duplicates.copies:
        return f"There are none at a similarity of {findings.threshold:g}."
    return f"{name} has the largest part of them: {largest.duplicates.copies:,} of {items_of(largest)}."


def _shared_sentences(findings: Findings) -> str:
    """Which collections have copies of each other."""
    counts, collections = findings.shared_counts, findings.parts
    if counts is None:
        return "Copies in one collection of what is in another were not looked for, so as not to take long."
    between = counts[:, :-1]
    threshold_words = f"a similarity of {findings.threshold:g}{' or more' if findings.threshold < 1 else ''}"
    if not between.any():
        return f"No item of a collection is a near copy of one of another, at {threshold_words}."
    sizes = np.array([copies.duplicates.n for copies in findings.copies])
    pairs = np.argwhere(between > 0)
    order = np.argsort([-between[i, j] / sizes[i] for i, j in pairs[::-1]], kind="stable")
    pair_count = len({tuple(sorted(pair)) for pair in pairs.tolist()})
    words, described = [], set()
    for i, j in pairs[::-1][order].tolist():  # of equal ones the later collection as a copy of the earlier
        if (j, i) not in described and len(words) < MAX_PAIRS:
            described.add((i, j))
            verb = "is a near copy" if between[i, j] == 1 else "are near copies"
            words.append(
                f"{between[i, j]:,} of {items_of(findings.copies[i])} of {collections[i].name} "
                f"{verb} of items of {collections[j].name}"
            )
    more = ", and there are more such pairs" if pair_count > len(words) else ""
    return f"Across collections, at {threshold_words}: {'; '.join(words)}{more}."


def _table(findings: Findings) -> Table:
    rows = []
    for copies in findings.copies:
        duplicates = copies.duplicates
        score, without = _value(duplicates.score), _value(duplicates.without)
        rows.append(
            [
                copies.part.name,
                duplicates.n,
                duplicates.copies,
                duplicates.identical,
                len(duplicates.clusters),
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
                meaning=f"items joined to one that is kept at {findings.threshold:g} or more",
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


def _sizes(copies: Copies) -> Table:
    """A table of the number of clusters by size."""
    counts: dict[int, int] = {}
    for size in copies.duplicates.sizes.tolist():
        counts[size] = counts.get(size, 0) + 1
    rows = [[size, counts[size], size * counts[size]] for size in sorted(counts, reverse=True)]
    return Table(
        [Column("items of a cluster", "number"), Column("clusters", "bar"), Column("items in all", "number")],
        rows[:MAX_SIZE_ROWS],
        "Clusters by their size, the largest first.",
        more=max(0, len(rows) - MAX_SIZE_ROWS),
    )


def _clusters(findings: Findings, renderer: ItemRenderer, copies: Copies, max_clusters: int) -> list[Block]:
    """The largest clusters as galleries."""
    duplicates = copies.duplicates
    exact_class = {
        position: number
        for number, equal_positions in enumerate(duplicates.exact)
        for position in equal_positions
    }
    blocks: list[Block] = []
    for cluster in duplicates.clusters[:max_clusters]:
        members = cluster[:MAX_MEMBERS]
        # Of equal items the first one is shown, with how many there are. That the kernel cannot tell two items apart is
        # not enough: molecules may have one fingerprint.
        equal_items: dict[Any, list[int]] = {}
        for position in members:
            class_number = exact_class.get(position)
            key = (
                position
                if class_number is None
                else (class_number, renderer.content_key(int(copies.part.positions[position])))
            )
            equal_items.setdefault(key, []).append(position)
        items = []
        for i, equal_positions in enumerate(list(equal_items.values())[: renderer.per_row]):
            remarks = [] if i else ["kept"]
            remarks += (
                [f"{len(equal_positions):,} times"]
                if len(equal_positions) > 1 and len(members) == len(cluster)
                else []
            )
            items.append(renderer(int(copies.part.positions[equal_positions[0]]), ", ".join(remarks)))
        is_complete = len(members) == len(cluster)
        all_indistinguishable = len({exact_class.get(position, -1 - position) for position in cluster}) == 1
        notes = []
        if all_indistinguishable:
            notes.append(
                "all identical"
                if len(equal_items) == 1 and is_complete
                else "which the kernel cannot tell apart"
            )
        if len(equal_items) > len(items) or not is_complete:
            notes.append(f"of which {len(items)} {'is' if len(items) == 1 else 'are'} shown")
        collection_words = f" of {label_name(copies.part.label)}" if findings.has_several else ""
        blocks.append(
            Gallery(
                items, ", ".join([f"A cluster of {count_of(len(cluster), 'item')}{collection_words}", *notes])
            )
        )
    return blocks
