"""The function `report`, and the page that it returns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from vendimeter import __version__
from vendimeter.analysis.near_copies.near_copies import SearchOptions
from vendimeter.data import frames, tables
from vendimeter.data.arrays import is_sparse
from vendimeter.data.collection import Collection
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError, MissingDependencyError, ToleranceWarning, VendimeterError
from vendimeter.kernels import FromDistances, Kernel, On, Precomputed, as_kernel
from vendimeter.messages import brief, check_characters, unknown, warn
from vendimeter.options import COSINE, SEED, check_progress
from vendimeter.present.files import write_whole
from vendimeter.present.numbers import count_of, order_name, order_symbol
from vendimeter.present.progress import Progress, showing
from vendimeter.present.text import html_escaped, printable
from vendimeter.reports.document import Document, Paragraph, Section
from vendimeter.reports.findings import Findings
from vendimeter.reports.items import ItemRenderer, renderer_of
from vendimeter.reports.sample import Sample, take_sample
from vendimeter.reports.sections import (
    convergence,
    groups,
    headline,
    items,
    matrix,
    metrics,
    modes,
    near_copies,
    provenance,
    spectrum,
)
from vendimeter.reports.sections.metrics import check_features
from vendimeter.reports.sections.provenance import call_of, method_call_of
from vendimeter.reports.words import note
from vendimeter.spectrum import parse_orders

__all__ = ["Report", "report"]

DEFAULT_ORDERS = (1, 0, 2, "inf")
FOOTER = "Made with Vendimeter: how many different things are in here?"


def page_target(path: Any, overwrite: bool = False) -> Path:
    """The file that a page is written to; an error where it cannot be."""
    target = Path(path)
    if target.is_dir():
        raise InputError(
            f"{brief(str(path))} is a folder; expected the name of a file, such as 'report.html'."
        )
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {brief(str(target.parent))}; expected one to write into.")
    if target.exists() and not overwrite:
        raise _exists(target)
    return target


def _exists(target: Path) -> InputError:
    return InputError(
        f"the file {brief(str(target))} is there already; expected another name, or to replace it the method "
        "write(path, overwrite=True) of the report."
    )


@dataclass(frozen=True, repr=False)
class Report:
    """A report: one HTML page; made by `vendimeter.report`.

    Attributes
    ----------
    document : Document
        What it says, as plain values.
    html : str
        The page, which needs nothing but itself: no network, and no script to be read.

    Examples
    --------
    >>> import vendimeter as vm
    >>> page = vm.report(["a dog", "a dog", "two boats"], "ngram", title="Captions")
    >>> page.document.title, page.html.startswith("<!doctype html>")
    ('Captions', True)
    """

    document: Document
    html: str = field(repr=False)

    def summary(self) -> str:
        """The answer in a sentence."""
        return self.document.headline

    def write(self, path: Any, overwrite: bool = False) -> Path:
        """Write the page to a file, all of it or nothing.

        Parameters
        ----------
        path : str or path
            The file, such as "report.html".
        overwrite : bool
            Whether a file that is there already is replaced; otherwise it is an error.
        """
        target = page_target(path, overwrite)
        try:
            with write_whole(target, overwrite=overwrite) as partial:
                partial.write_text(self.html, encoding="utf-8", newline="\n")
        except FileExistsError:  # made meanwhile
            raise _exists(target) from None
        return target

    def __repr__(self) -> str:
        sections = ", ".join(section.key for section in self.document.sections)
        return f"Report({brief(self.document.title)}, {len(self.html):,} characters; {sections})"

    def _repr_html_(self) -> str:
        # The page itself would put a megabyte into a notebook every time that it is shown.
        text = html_escaped(self.summary())
        return f'<p>{text}</p><p>A page of {len(self.html) / 1e6:.1f} MB: <code>report.write("report.html")</code>.</p>'


def report(
    samples: Any,
    kernel: Any = COSINE,
    *,
    by: Any = None,
    q: Any = DEFAULT_ORDERS,
    weights: Any = None,
    reference: Any = None,
    show: Any = None,
    title: str | None = None,
    features: Any = None,
    threshold: float = 0.95,
    command: str | None = None,
    notes: Sequence[str] = (),
    rng: int = SEED,
    progress: bool | None = None,
) -> Report:
    """A page about a collection: how diverse it is, why, and what is in it; or about several, side by side.

    The page is one file that needs nothing else. It has aggregates and some samples in it, never all of the data.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection, mapping of them, or Diversity
        One collection, as for `vendimeter.score`; what `vendimeter.read` gives, with its labels, weights and places; or
        several collections by name. A dict of columns is one table where the kernel reads columns (`On`).
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    by : list, array, or name of a column, optional
        One label (or set of labels) an item, as for `vendimeter.score_groups`.
    q : float, str or list of them
        The orders that a reader may choose from; the first is shown at first, and is that of the headline.
    weights : array of shape (n,), or mapping of them, optional
        Probabilities of the items; they sum to 1.
    reference : hashable or collection, optional
        What others are compared with: the name of a group or collection, or samples, for the metrics beside the score.
    show : list, array, or mapping of them, optional
        What to show of each item, if the samples are nothing to look at: texts, pictures (files, arrays), SMILES.
    title : str, optional
        The title of the page.
    features : Encoder, str or callable, optional
        What turns samples into the vectors that distances to the reference are measured between.
    threshold : float
        The similarity from which on two items are near copies, as for `vendimeter.duplicates`.
    command : str, optional
        The shell command that makes the same report, to be shown in place of the call.
    notes : list of str
        What a reader should know: what was guessed, what was left out.
    rng : int
        Seed of everything random.
    progress : bool, optional
        Whether to show progress on stderr; by default on a terminal only.

    Returns
    -------
    Report
        With `html`, `write(path)`, and `document`, the same as plain values.

    Notes
    -----
    A report should take a minute or two. Where a kernel has no features, or many, and all items would take longer, the
    report is about a random sample of them, and says so; so do single sections. A section that cannot be made says
    why, with a warning where it was asked for. Pictures are small, and there is room for some hundred of them.

    Examples
    --------
    >>> import vendimeter as vm
    >>> page = report(["a dog", "a dog", "two boats at sea"], "ngram", title="Captions")
    >>> page.summary()
    'As diverse as 1.8899 completely different items, out of 3; exact up to rounding (±...
    >>> [section.key for section in page.document.sections][:3]
    ['answer', 'spectrum', 'convergence']
    """
    arguments = {"kernel": kernel, "by": by, "q": q, "weights": weights, "reference": reference, "show": show}
    arguments |= {"title": title, "features": features, "threshold": threshold, "rng": rng}
    if isinstance(samples, Diversity):
        diversity = diversity_of(samples, kernel, weights=weights, by=by, rng=rng)
    else:
        command = call_of(arguments) if command is None else command
        samples = frames.known(samples)
        if _is_several(samples, as_kernel(kernel)):
            if by is not None:
                raise InputError(
                    "samples is a mapping of several collections, and by= groups the items of one; expected one of the "
                    "two."
                )
            diversity = Diversity.of(samples, kernel, weights=weights, rng=rng)
        else:
            diversity = Diversity(samples, kernel, weights=weights, by=by, rng=rng)
    return diversity.report(
        q=q,
        reference=reference,
        show=show,
        title=title,
        features=features,
        threshold=threshold,
        command=command,
        notes=notes,
        progress=progress,
    )


def _is_several(samples: Any, kernel: Kernel) -> bool:
    """Whether a mapping has a collection for each name; for a kernel that reads columns it is one table."""
    if not isinstance(samples, Mapping) or is_sparse(samples):
        return False
    are_tables = [
        isinstance(collection, Collection) or tables.has_columns(collection)
        for collection in samples.values()
    ]
    return not _reads_columns(kernel) or (len(are_tables) > 0 and all(are_tables))


def _reads_columns(kernel: Kernel) -> bool:
    return isinstance(kernel, On) or any(map(_reads_columns, kernel.parts))


def report_of(
    diversity: Diversity,
    *,
    q: Any,
    reference: Any,
    show: Any,
    title: Any,
    features: Any,
    threshold: Any,
    command: str | None,
    notes: Any,
    progress: Any,
) -> Report:
    """A page about the items; see `report`."""
    if command is None:
        arguments = {"q": q, "reference": reference, "show": show, "title": title, "features": features}
        command = method_call_of(diversity, arguments | {"threshold": threshold})
    orders = parse_orders(q)[0]
    threshold = SearchOptions.of(threshold, "auto", 0.99, False).threshold
    notes = _check_notes(notes)
    if isinstance(title, str):
        check_characters(title, "title")
    check_progress(progress)
    if features is not None:
        check_features(features)
    with Progress("Report", progress) as bar, showing(False), warnings.catch_warnings():
        # Bounds that are wider than they were meant to be are said in the page, with the bounds.
        warnings.simplefilter("ignore", ToleranceWarning)
        bar.step(0.0, "similarities")
        sample = take_sample(diversity, [1.0, *(order for order in orders if order not in (0.0, 1.0))])
        renderer = renderer_of(sample, show)
        reference = _resolve_reference(reference, sample)
        findings = Findings(sample, orders, threshold, reference if sample.is_name(reference) else None)
        document = _build_document(findings, renderer, reference, features, title, command, notes, bar.step)
        bar.step(0.98, "the page")
        from vendimeter.reports.page import render

        return Report(document, render(document))


def _check_notes(notes: Any) -> list[str]:
    if isinstance(notes, str) or not all(isinstance(line, str) for line in notes):
        raise InputError(f"notes={brief(notes)}; expected a list of texts.")
    for line in notes:
        check_characters(line, "a line of notes")
    return list(notes)


def _resolve_reference(reference: Any, sample: Sample) -> Any:
    """The reference; a name is checked to be that of a collection or group."""
    if reference is None or isinstance(reference, Collection):
        return reference
    reference, names = frames.known(reference), sample.names
    if sample.is_name(reference) and reference not in names:
        raise unknown("collection or group (as reference)", reference, names)
    return reference


# ---------------------------------------------------------------------------------------------------------- sections


def _build_document(
    findings: Findings,
    renderer: ItemRenderer,
    reference: Any,
    features: Any,
    title: str | None,
    call: str,
    notes: list[str],
    step: Callable[[float, str], None],
) -> Document:
    sample = findings.sample
    made_at = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    # What everything else builds on: what goes wrong here is an error and no report.
    step(0.05, "scores")
    _ = findings.scores
    # In the order of the page; how far it is with each, of all the work.
    makers: list[tuple[float, str, str, Callable[[], Section | None]]] = [
        (0.15, "answer", "How diverse it is", lambda: headline.section(findings)),
        (0.3, "spectrum", "Spectrum and orders", lambda: spectrum.section(findings)),
        (0.32, "convergence", "Convergence", lambda: convergence.section(findings)),
        (0.34, "groups", "Groups", lambda: groups.section(findings)),
        (0.6, "modes", "What it is made of", lambda: modes.section(findings.modes, renderer)),
        (0.7, "duplicates", "Near copies", lambda: near_copies.section(findings, renderer)),
        (0.8, "items", "Most redundant and rarest items", lambda: items.section(findings, renderer)),
        (0.88, "matrix", "The similarity matrix", lambda: matrix.section(findings)),
        (0.9, "metrics", "Other metrics", lambda: metrics.section(findings, reference, features)),
    ]
    sections: list[Section] = []
    for progress, key, name, make in makers:
        step(progress, name.lower())
        is_requested = _is_requested(key, findings, reference, features)
        section = _build_section(key, name, make, is_requested)
        if section is not None:
            sections.append(section)
    unanswered = [
        f"Order {order_symbol(q)}, the rank, is not here: it needs all eigenvalues, which would take too long for so "
        "many items."
        for q in findings.unanswered
    ]
    all_notes = [*unanswered, *sample.notes, *notes]
    if all_notes:
        sections[0] = Section(
            sections[0].key,
            sections[0].title,
            sections[0].lead,
            [*(note(text) for text in all_notes), *sections[0].blocks],
        )
    sections.append(provenance.section(findings, call, renderer.notes, made_at))
    return Document(
        title=_title(sample) if title is None else "standard input" if title == "-" else title,
        headline=_headline_sentence(findings),
        facts=headline.facts(findings),
        sections=sections,
        orders=[order_name(q) for q in findings.orders],
        subtitle=_subtitle(sample),
        footer=FOOTER,
        meta={"version": __version__, "made": made_at},
    )


def _is_requested(key: str, findings: Findings, reference: Any, features: Any) -> bool:
    """Whether the user asked for what is in a section."""
    requested = {
        "metrics": reference is not None or features is not None,
        "groups": findings.sample.groups is not None,
    }
    return requested.get(key, False)


def _build_section(
    key: str, title: str, make: Callable[[], Section | None], is_requested: bool = False
) -> Section | None:
    """A section, or why there is none; of one that was asked for there is a warning besides."""
    try:
        return make()
    except VendimeterError as error:
        if is_requested and isinstance(error, MissingDependencyError):
            raise
        if is_requested:
            warn(f"the section {title!r} of the report could not be made: {printable(error)}", UserWarning)
        return Section(key, title, "This could not be made.", [Paragraph(printable(error), note=True)])


def _headline_sentence(findings: Findings) -> str:
    try:
        return headline.headline(findings)
    except VendimeterError:  # of several collections that could not be compared
        return f"{len(findings.parts)} collections side by side."


def _title(sample: Sample) -> str:
    if len(sample.parts) > 1:
        names = [part.name for part in sample.parts]
        return "Diversity of " + (", ".join(names) if len(names) <= 4 else f"{len(names)} collections")
    samples = sample.parts[0].samples
    source = samples.source if isinstance(samples, Collection) and sample.parts[0].label is None else ""
    source = "standard input" if source == "-" else source
    return f"Diversity of {source or count_of(sample.total, 'item')}"


def _subtitle(sample: Sample) -> str:
    kernel, groups, samples = sample.kernel, sample.groups, sample.parts[0].samples
    noun, is_matrix = "item", isinstance(kernel, Precomputed | FromDistances)
    kind = samples.kind if isinstance(samples, Collection) and sample.parts[0].label is None else None
    if kind and not is_matrix:
        noun = kind.removesuffix("s") if kind.endswith("s") else "item"
    elif sample.lists is not None:
        noun = "text"
    words = [count_of(sample.total, noun)]
    if len(sample.parts) > 1:
        words.append(f"in {len(sample.parts)} collections")
    elif groups is not None:
        words.append(f"in {count_of(len(groups.labels), 'group' if sample.lists is None else 'list')}")
    matrix_names = {Precomputed: "a matrix of similarities", FromDistances: "a matrix of distances"}
    return f"{' '.join(words)}, compared by {matrix_names.get(type(kernel), repr(kernel))}"
