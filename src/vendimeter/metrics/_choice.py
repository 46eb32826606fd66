"""Which metrics a table shows, asked or unasked, and the figures of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vendimeter.errors import InputError, brief, unknown
from vendimeter.kernels import Kernel
from vendimeter.metrics._applicable import METRICS, SCORE, Entry, cell_of, check_options, options_of
from vendimeter.metrics._given import Given, kinds_of
from vendimeter.present.tables import OVER_GROUPS, Cell
from vendimeter.scoring import score, score_groups

__all__ = ["caveats", "chosen_metrics", "computed", "is_reference", "scores"]


def chosen_metrics(
    metrics: Any, options: Mapping[str, Any], givens: Sequence[Given], kernels: list[Kernel]
) -> dict[str, Any]:
    """The metrics of the table by their names: entries, or functions of the user's own."""
    if not isinstance(options, Mapping) or not all(isinstance(one, Mapping) for one in options.values()):
        raise InputError(
            f"options={brief(options)}; expected a mapping from the name of a metric to its options, such as "
            "{'precision_recall': {'k': 5}}."
        )
    compared = any(given.reference is not None for given in givens)
    if metrics is None:
        kinds = set().union(*(kinds_of(kernels, given) for given in givens)) or {"others"}
        chosen: dict[str, Any] = {
            name: entry
            for name, entry in METRICS.items()
            if kinds & set(entry.kinds) and (compared or not entry.reference)
        }
        if compared and any(given.groups for given in givens):
            chosen = {"corpus_bleu": METRICS["corpus_bleu"], **chosen}
        # Tokens have no compression ratio, and that of a few texts is that of the header.
        if "compression_ratio" in chosen and any(given.lists for given in givens):
            del chosen["compression_ratio"]
    else:
        if isinstance(metrics, str) or not isinstance(metrics, Sequence | Mapping):
            raise InputError(
                f"metrics={brief(metrics)}; expected a list of names, such as ['intdiv', 'precision_recall']."
            )
        if not all(isinstance(name, str) for name in metrics):
            raise InputError(f"metrics={brief(metrics)}; expected names that are texts.")
        own = dict(metrics) if isinstance(metrics, Mapping) else dict.fromkeys(metrics)
        chosen = {
            title: _metric(title, title if given is None else given, compared) for title, given in own.items()
        }
    if SCORE not in chosen.values():
        chosen["vendi_score"] = SCORE
    odd = next((name for name in options if name not in chosen or chosen[name] is SCORE), None)
    if odd is not None:
        raise unknown(
            "metric in this table (in options)", odd, [name for name in chosen if chosen[name] is not SCORE]
        )
    for title, metric in chosen.items():
        if isinstance(metric, Entry):
            check_options(metric.name, title, options.get(title, {}))
    return chosen


def _metric(title: str, given: Any, compared: bool) -> Any:
    """An entry, the score, or a function of the user's own."""
    if callable(given):
        return given
    if not isinstance(given, str):
        raise InputError(
            f"metrics[{title!r}] is {brief(given)}; expected the name of a metric, a function of samples, or None."
        )
    if given == "vendi_score":
        return SCORE
    if given not in METRICS:
        raise unknown("metric", given, [*METRICS, "vendi_score"])
    entry = METRICS[given]
    if entry.reference and not compared:
        raise InputError(
            f"{given} compares with a reference, and there is none; expected reference=, samples or the name of a "
            "collection in the table."
        )
    return entry if title == given else entry.titled(title)


def is_reference(given: Given, givens: Sequence[Given]) -> bool:
    """Whether the others of the table are compared with this one."""
    return given.reference is None and any(other.reference is not None for other in givens)


def caveats(chosen: Mapping[str, Any], givens: Sequence[Given], reference: Any) -> list[str]:
    """What the choice of metrics leaves open."""
    entries = [metric for metric in chosen.values() if isinstance(metric, Entry)]
    notes = []
    if reference is not None and not any(entry.reference or entry.name == "molecules" for entry in entries):
        notes.append(
            "Nothing here compares with the reference: name such metrics in metrics=, or what turns samples into "
            "vectors in features=."
        )
    if any(entry.name == "frechet_distance" for entry in entries):
        pairs = [(given.vectors, given.reference.vectors) for given in givens if given.reference is not None]
        few = [(min(own.shape[0], other.shape[0]), own.shape[1]) for own, other in pairs]
        if any(n <= columns for n, columns in few):
            n, columns = min(few)
            notes.append(
                f"FD is of as few as {n:,} items in {columns:,} columns: with no more items than columns its "
                "bias can outweigh the difference."
            )
    return notes


def computed(
    metric: Any, title: str, given: Given, options: dict[str, Any], kernels: Mapping[str, Kernel], rng: int
) -> list[Cell]:
    """The figures of a metric, an entry or a function of the user's own."""
    if not isinstance(metric, Entry):
        return [_cell(metric(given.samples, **options), f"the function {title!r}")]
    if (metric.reference and given.reference is None) or not metric.applies(given):
        return [Cell() for _ in metric.columns]
    if "rng" in options_of(metric.name):
        options = {"rng": rng, **options}
    if metric.kernel:
        found = [cell for one in kernels.values() for cell in metric.compute(given, options, one)]
    else:
        found = metric.compute(given, options)
    return [_cell(one, f"{metric.name}, with these options,") for one in found]


def _cell(found: Any, what: str) -> Cell:
    try:
        if isinstance(found, str | bytes | bool) or getattr(found, "shape", ()) != ():
            raise TypeError
        return cell_of(found)
    except (TypeError, ValueError):
        raise InputError(f"{what} gave {brief(found)}; expected a number.") from None


def scores(given: Given, kernel: Kernel, orders: Sequence[float], tol: float | None, rng: int) -> list[Cell]:
    """The Vendi Score of each order; of groups their mean, with its standard error."""
    samples, kernel = given.under(kernel)
    if given.groups:
        means = [score_groups(samples, kernel, q=q, rng=rng).mean().means[0] for q in orders]
        return [Cell(mean.mean, spread=mean.standard_error, behind=OVER_GROUPS) for mean in means]
    found = score(samples, kernel, q=list(orders), weights=given.weights, tol=tol, rng=rng, progress=False)
    return [cell_of(found[q]) for q in orders]
