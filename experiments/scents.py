"""Categories of scents, Friedman and Dieng, The Vendi Score (TMLR 2023): what odour descriptors go with diversity.

GoodScents by Pyrfume: molecules with tags such as "floral, fruity, green". For the seven most common tags VS of 500
random molecules, by Morgan fingerprints (radius 2) and by tags (cosine of indicators). Claims: the two scores are
correlated; "woody" and "green" are used for molecules that vary in both, "waxy" and "fatty" for molecules that are
alike in both; "waxy" comes with the same tags.

The data are those of 2022 (goodscents/*.csv of github.com/pyrfume/pyrfume-data, commit 6851a18). A molecule is there
several times, as materials and as descriptions. Counted by records seven tags have 500, which must be the paper's
reading, and "fatty", of which the text speaks, is the eighth with 474; by molecules, each with all its tags, only six
have 500. So both are done: 500 records of a tag, as in the paper (ten draws; "fatty" with all it has), and molecules,
rarefied to 370 each by `vendimeter.compare`, with intervals. Records repeat molecules, most of all under "waxy".

Seven points say little about a correlation: the p-value is exact, over all orders of the seven. Beside it, the same
for all tags with 100 molecules, ten draws of 100. Half a minute on one core.
"""

from __future__ import annotations

import ast
import csv
import gzip
import sys
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import _common as common
import vendimeter as vm

SEED, REPEATS, SIZE = 2023, 10, 500
KERNELS = {"molecules": vm.kernels.Morgan(radius=2, bits=1024), "tags": vm.kernels.Tags()}
COMMON, NAMED = 7, ["woody", "green", "waxy", "fatty"]  # tags of the figure; those of which the text speaks
HIGH, LOW = NAMED[:2], NAMED[2:]
ODOURLESS = ["odorless", "bland"]  # tags too, which hardly ever have another beside them
MANY, LEVEL = 100, 0.05  # molecules of a tag for the larger comparison; of p-values
ORIGIN = "GoodScents of 2022, from github.com/pyrfume/pyrfume-data, commit 6851a18"
Row = dict[str, Any]


class Molecule(NamedTuple):
    """A molecule under one description, or under all of them."""

    smiles: str
    tags: frozenset[str]


# ------------------------------------------------------------------------------------------------------ data


def table(options: Namespace, name: str) -> Iterator[dict[str, str]]:
    path = common.file_of(options, f"molecules/goodscents_2022_{name}.csv.gz", ORIGIN)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def read(options: Namespace) -> tuple[list[Molecule], list[Molecule]]:
    """Records, one a description and molecule, and molecules with all their tags."""
    smiles = {row["CID"]: row["IsomericSMILES"] for row in table(options, "molecules")}
    of_material: dict[str, dict[str, None]] = defaultdict(dict)  # in their order, each once
    for row in table(options, "identifiers"):
        of_material[row["TGSC ID"]][row["CID"]] = None
    records, together = [], defaultdict(set)
    for row in table(options, "behavior_sparse"):
        tags = frozenset(ast.literal_eval(row["Tags"]))
        for molecule in of_material[row["TGSC ID"]]:
            if molecule in smiles:
                records.append(Molecule(smiles[molecule], tags))
                together[molecule] |= tags
    return records, [Molecule(smiles[one], frozenset(tags)) for one, tags in together.items()]


def most_common(items: Sequence[Molecule], count: int) -> list[str]:
    return [tag for tag, _ in Counter(tag for item in items for tag in sorted(item.tags)).most_common(count)]


def samples_of(items: Sequence[Molecule], kernel: str) -> list[Any]:
    return [item.smiles if kernel == "molecules" else sorted(item.tags) for item in items]


# ------------------------------------------------------------------------------------------------------ numbers


def drawn(items: list[Molecule], tags: Sequence[str], repeats: int, size: int) -> list[Row]:
    """Scores of random items of each tag, as in the paper."""
    rows = []
    for tag in tags:
        pool = [item for item in items if tag in item.tags]
        found: dict[str, list[float]] = {"molecules": [], "tags": [], "different": []}
        for repeat in range(repeats):
            rng = np.random.default_rng([SEED, *tag.encode(), repeat])
            some = [pool[i] for i in rng.choice(len(pool), min(size, len(pool)), replace=False)]
            for name, kernel in KERNELS.items():
                found[name].append(float(vm.score(samples_of(some, name), kernel)))
            found["different"].append(len({item.smiles for item in some}))
        means = {
            name: {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1)), "draws": values}
            for name, values in found.items()
        }
        rows.append({"tag": tag, "pool": len(pool), "n": min(size, len(pool)), **means})
    return rows


def rarefied(molecules: list[Molecule], tags: Sequence[str], size: int) -> list[Row]:
    """Mean scores of subsets of one size of the molecules of each tag, with intervals."""
    chosen = [item for item in molecules if item.tags & set(tags)]
    by = [sorted(item.tags & set(tags)) for item in chosen]
    rows: dict[str, Row] = {tag: {"tag": tag, "n": size} for tag in tags}
    for name, kernel in KERNELS.items():
        samples = samples_of(chosen, name)
        found = vm.compare(samples, kernel, by=by, size=size, permutations=0, similarity=False).to_frame()
        for _, group in found.iterrows():
            score = {"mean": "rarefied", "low": "rarefied_low", "high": "rarefied_high"}
            score = {end: float(group[column]) for end, column in score.items()}
            rows[group["group"]] |= {"pool": int(group["n"]), name: score}
    return list(rows.values())


def correlation(rows: Sequence[Row]) -> Row:
    """Spearman's correlation of the two scores, and how often a random order has as much of it."""
    x, y = (stats.rankdata([row[name]["mean"] for row in rows]) for name in KERNELS)
    found = float(np.corrcoef(x, y)[0, 1])
    if len(rows) <= 8:
        orders = np.array(list(permutations(y)))
    else:
        orders = np.random.default_rng(SEED).permuted(np.tile(y, (100_000, 1)), axis=1)
    as_much = orders @ (x - x.mean()) >= y @ (x - x.mean()) - 1e-9
    p = float(as_much.mean()) if len(rows) <= 8 else (float(as_much.sum()) + 1) / (len(orders) + 1)
    return {"tags": len(rows), "spearman": found, "p": p}


def other_tags(molecules: list[Molecule], tag: str, size: int) -> float:
    """The effective number of different tags that stand beside one, of as many molecules of each: a mean over draws."""
    pool, found = [item for item in molecules if tag in item.tags], []
    for repeat in range(REPEATS):
        picked = np.random.default_rng([SEED, *tag.encode(), repeat]).choice(len(pool), size, replace=False)
        found.append(vm.metrics.hill(Counter(other for i in picked for other in pool[i].tags - {tag})))
    return float(np.mean(found))


# ------------------------------------------------------------------------------------------------------- claims


def check(records: list[Row], eight: list[Row], many: list[Row], beside: Row, claims: common.Claims) -> Row:
    correlations = {
        "seven, by records": correlation(records[:COMMON]),
        "seven without the lowest, by records": correlation(
            sorted(records[:COMMON], key=lambda row: row["molecules"]["mean"])[1:]
        ),
        "eight, by molecules": correlation(eight),
        "all with 100, by molecules": correlation(many),
    }
    seven = correlations["seven, by records"]
    single = [
        correlation([{k: {"mean": row[k]["draws"][i]} for k in KERNELS} for row in records[:COMMON]])[
            "spearman"
        ]
        for i in range(len(records[0]["tags"]["draws"]))
    ]
    seven["single_draws"] = [min(single), max(single)]
    claims.check(
        "scents, correlation",
        "The diversity of molecules and that of odour descriptors are correlated.",
        paper="seven descriptors in a figure, no number",
        holds=seven["spearman"] > 0 and seven["p"] < LEVEL,
        direction=seven["spearman"] > 0,
        measured="Spearman's correlation (one-sided p, by permutation) " + "; ".join(
            f"{one['spearman']:.2f} ({one['p']:.3f}) of {name.replace('all', str(one['tags']), 1)}"
            for name, one in correlations.items()
        ) + f". Of single draws of the seven it is {min(single):.2f} to {max(single):.2f}",
    )  # fmt: skip
    many_one = correlations["all with 100, by molecules"]
    claims.check(
        "scents, correlation of all common tags",
        "The same, of all descriptors with 100 molecules, which is not in the paper.",
        holds=many_one["spearman"] > 0 and many_one["p"] < LEVEL,
        direction=many_one["spearman"] > 0,
        measured=f"{many_one['spearman']:.2f} of {many_one['tags']} descriptors (p {many_one['p']:.1g})",
    )
    readings = {"records": records, "molecules": eight}
    places = {
        (name, kernel, tag): 1 + sum(row[kernel]["mean"] > by_tag[tag][kernel]["mean"] for row in rows)
        for name, rows in readings.items()
        for by_tag in [{row["tag"]: row for row in rows}]
        for kernel in KERNELS
        for tag in NAMED
    }
    half = len(eight) / 2
    above = [
        all(places[name, kernel, tag] <= half for tag in HIGH) for name in readings for kernel in KERNELS
    ]
    below = [all(places[name, kernel, tag] > half for tag in LOW) for name in readings for kernel in KERNELS]
    apart = [
        max(places[name, kernel, tag] for tag in HIGH) < min(places[name, kernel, tag] for tag in LOW)
        for name in readings for kernel in KERNELS
    ]  # fmt: skip
    claims.check(
        "scents, high and low",
        "“Woody” and “green” are used for molecules that vary in structure and odour, “waxy” and “fatty” for molecules "
        "that are alike in both.",
        paper="named in the text, no numbers",
        holds=all(above) and all(below),
        direction=all(apart),
        measured="ranks of eight, by molecules and by tags: " + "; ".join(
            f"{tag} {places[name, 'molecules', tag]} and {places[name, 'tags', tag]}"
            + (f" ({name})" if tag == NAMED[-1] else "") for name in readings for tag in NAMED
        ),
    )  # fmt: skip
    claims.check(
        "scents, tags beside",
        "“Waxy” tends to come with the same tags, “green” with many.",
        paper="examples of tag sets",
        holds=beside["waxy"] in sorted(beside.values())[:2] and beside["green"] in sorted(beside.values())[-2:],
        direction=beside["waxy"] < beside["green"],
        measured="effective number of tags beside, of as many molecules each: " + ", ".join(
            f"{tag} {number:.1f}" for tag, number in sorted(beside.items(), key=lambda pair: pair[1])
        ),
    )  # fmt: skip
    return correlations


# ----------------------------------------------------------------------------------------------------- pictures


def draw(records: list[Row], eight: list[Row], many: list[Row], correlations: Row) -> Figure:
    figure = common.new_figure(13, 4.5)
    axes = figure.subplots(1, 3, gridspec_kw={"left": 0.045, "right": 0.99, "bottom": 0.12, "top": 0.86})
    panels = [
        (records, f"{SIZE} records of a tag, as in the paper (bars: sd of draws)", "seven, by records"),
        (
            eight,
            f"{eight[0]['n']} different molecules of a tag (bars: 95 % intervals)",
            "eight, by molecules",
        ),
        (many, f"{many[0]['n']} different molecules of each tag with as many", "all with 100, by molecules"),
    ]
    for ax, (rows, title, name) in zip(axes, panels, strict=True):
        for row in rows:
            x, y = row["molecules"], row["tags"]
            tag = row["tag"]
            colour = common.VERMILLION if tag in HIGH else common.BLUE if tag in LOW else common.GREY
            if rows is not many:
                across, up = (
                    [[one["sd"]], [one["sd"]]] if "sd" in one
                    else [[one["mean"] - one["low"]], [one["high"] - one["mean"]]] for one in (x, y)
                )  # fmt: skip
                style = {"color": colour, "linewidth": 0.8, "capsize": 2}
                ax.errorbar(x["mean"], y["mean"], up, across, **style)
            ax.plot(x["mean"], y["mean"], "o", markersize=6 if rows is not many else 4.5, color=colour)
            if rows is not many or tag in {*NAMED, *ODOURLESS}:
                full = f"{tag} ({row['n']})" if rows is records and row["n"] < SIZE else tag
                place, side = {"waxy": ((-6, -11), "right"), "woody": ((0, 8), "center")}.get(
                    tag, ((5, 4), "left")
                )
                ax.annotate(full, (x["mean"], y["mean"]), place, textcoords="offset points", ha=side,
                            fontsize=8, color=colour)  # fmt: skip
        one = correlations[name]
        ax.set_title(f"{title}\nSpearman {one['spearman']:.2f}, p {one['p']:.2g} ({one['tags']} tags)")
        ax.set_xlabel("Vendi Score by Morgan fingerprints")
        ax.margins(0.13)
    axes[0].set_ylabel("Vendi Score by odour descriptors")
    return figure


def draw_gallery(options: Namespace, molecules: list[Molecule], rows: list[Row]) -> None:
    """A hundred molecules of the lowest and the highest tag, most typical first: beside, never kept."""
    ordered = sorted(rows, key=lambda row: row["molecules"]["mean"])
    tags = [ordered[0]["tag"], ordered[-1]["tag"]]
    chosen = [(item.smiles, tag) for tag in tags for item in molecules if tag in item.tags]
    shown = vm.plots.gallery(
        [smiles for smiles, _ in chosen], KERNELS["molecules"], by=[tag for _, tag in chosen], classes=tags,
        count=100, columns=10, kind="molecules",
    )  # fmt: skip
    path = options.galleries / "scents-gallery.png"
    common.picture(path, shown.figure_, dpi=100)
    print(f"wrote {path.name}, a gallery of “{tags[0]}” and “{tags[1]}”, which is not kept in the repository")


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    parser.add_argument("--quick", action="store_true", help="two draws of each, no intervals, no gallery")
    options = common.parsed(parser, argv)
    claims, repeats = common.Claims(), 2 if options.quick else REPEATS
    results: Row = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, categories of GoodScents (appendix)"
    }
    figure = None
    try:
        records, molecules = read(options)
    except common.Missing:
        claim = "The diversity of molecules and that of odour descriptors are correlated."
        claims.not_run("scents", claim, why=f"the files are not in the data folder: {ORIGIN}")
    else:
        tags = list(dict.fromkeys([*most_common(records, COMMON), *NAMED]))
        per_tag = Counter(tag for item in molecules for tag in item.tags)
        size = min(per_tag[tag] for tag in tags) // 10 * 10
        rows = drawn(records, tags, repeats, SIZE)
        eight = drawn(molecules, tags, repeats, size) if options.quick else rarefied(molecules, tags, size)
        often = sorted(tag for tag, count in per_tag.items() if count >= MANY)
        many = drawn(molecules, often, repeats, MANY)
        beside = {tag: other_tags(molecules, tag, size) for tag in tags}
        correlations = check(rows, eight, many, beside, claims)
        for row in many:
            for name in KERNELS:
                del row[name]["draws"]
        results |= {
            "parameters": {"kernels": {name: repr(kernel) for name, kernel in KERNELS.items()}, "seed": SEED,
                           "size": SIZE, "repeats": repeats, "level": LEVEL, "of_molecules": size,
                           "many": MANY},
            "counts": {"records": len(records), "molecules": len(molecules), "tags": len(per_tag)},
            "records": rows, "molecules": eight, "all_tags": many, "effective_tags_beside": beside,
            "correlations": correlations,
        }  # fmt: skip
        figure = draw(rows, eight, many, correlations)
        if not options.quick:
            draw_gallery(options, molecules, eight)
    common.write(options.out, "scents", {**results, "claims": claims.records}, figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
