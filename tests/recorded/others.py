"""Cases of sums that grow, streams and files, the report, gradients, and stand-ins for other packages."""

from __future__ import annotations

import dataclasses
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import vendimeter as vm
from recorded import inputs
from recorded.recording import CALLS, Answer, Vowels, add, encoder, halves, near, near_blocks, of
from recorded.scores import of_groups
from vendimeter import kernels as k

ORDERS = (0, 0.5, 1, 2, "inf")


def batches(samples: Any, size: int = 7) -> list[Any]:
    count = samples.shape[0] if hasattr(samples, "shape") else len(samples)
    return [samples[start : start + size] for start in range(0, count, size)]


# --------------------------------------------------------------------------------------------- sums that grow


GROWING: list[tuple[str, Callable[[], Any], Any, tuple[str, ...]]] = [
    ("vectors/cosine", inputs.vectors, "cosine", ()),
    ("vectors/polynomial", inputs.vectors, k.Polynomial(2), ()),
    ("vectors/embed", inputs.vectors, k.Embed(halves), ()),
    ("vectors/random-rbf", inputs.vectors, k.RandomFeatures(k.RBF(1.5), features=32), ()),
    ("sparse_rows/cosine", inputs.sparse_rows, "cosine", ()),
    ("captions/ngram", inputs.captions, k.NGram(1, 2, hashed=64), ()),
    ("captions/embed", inputs.captions, k.Embed(encoder), ()),
    ("dna/kmer", inputs.dna, k.KMer(2, alphabet="dna"), ()),
    ("bits/random-jaccard", inputs.bits, k.RandomFeatures(k.Jaccard(), features=64), ()),
    ("probabilities/product", inputs.probabilities, "probability-product", ()),
    ("tags/vocabulary", inputs.tags, k.Tags(("sweet", "floral", "smoky", "green", "wood")), ()),
    ("pictures/pixels", inputs.pictures, k.Pixels(4), ("PIL",)),
]


def grown(samples: Any, kernel: Any) -> Answer:
    total = vm.Accumulator(kernel)
    halves_of = [vm.Accumulator(kernel), vm.Accumulator(kernel)]
    for i, batch in enumerate(batches(samples)):
        total.update(batch)
        halves_of[i % 2].update(batch)
    merged = halves_of[0] + halves_of[1]
    return {
        "profile": total.score(q=ORDERS),
        "merged": merged.score(),
        **of(total, "n updates mass nbytes held"),
    }


def weighted_growth(name: str) -> Answer:
    total = vm.Accumulator("cosine")
    given = inputs.weights() if name == "weights" else inputs.counts()
    for start in range(0, 40, 8):
        part = slice(start, start + 8)
        total.update(inputs.vectors()[part], **{name: given[part]})
    return {"score": total.score(), "second": total.score(2), **of(total, "n mass")}


def saved_growth() -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        total = vm.Accumulator("cosine")
        total.update(inputs.vectors()[:25])
        total.save(Path(folder) / "sum")
        again = vm.Accumulator.load(Path(folder) / "sum")
        again.update(inputs.vectors()[25:])
        return {"score": again.score(), **of(again, "n updates")}


def single_growth() -> Answer:
    total = vm.Accumulator("cosine", precision="float32")
    for batch in batches(inputs.vectors().astype(np.float32)):
        total.update(batch)
    return {"single": float(total.score()), "level": total.score().level}


def grown_groups(kernel: Any, q: Any, memory: str = "1 GiB", **given: np.ndarray) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        total = vm.GroupAccumulator(kernel, memory=memory, spill=folder)
        other = vm.GroupAccumulator(kernel)
        for start in range(0, 40, 9):
            part = slice(start, start + 9)
            options = {name: values[part] for name, values in given.items()}
            sums = total if start < 30 else other
            sums.update(inputs.vectors()[part], by=inputs.labels()[part], **options)
        total.merge(other)
        return {
            **of_groups(total.score(q)),
            "updates": total.updates,
            "spilled": total.spilled,
            "nbytes": total.nbytes,
        }


def growth() -> None:
    for name, samples, kernel, needs in GROWING:
        add(f"accumulator/{name}", lambda samples=samples, kernel=kernel: grown(samples(), kernel), *needs)
    add("accumulator/weights", partial(weighted_growth, "weights"))
    add("accumulator/counts", partial(weighted_growth, "counts"))
    add("accumulator/saved", saved_growth)
    add("accumulator/float32", single_growth)
    for q in ORDERS:
        add(f"group-accumulator/cosine/q={q}", partial(grown_groups, "cosine", q))
    add("group-accumulator/embed", partial(grown_groups, k.Embed(halves), [1, 2]))
    add("group-accumulator/weights", partial(grown_groups, "cosine", 1, weights=inputs.weights()))
    add("group-accumulator/counts", partial(grown_groups, "cosine", 1, counts=inputs.counts()))
    add("group-accumulator/little-memory", partial(grown_groups, k.Polynomial(2), 1, memory="25 kB"))


# ------------------------------------------------------------------------------------------ streams and files


def in_folder(run: Callable[[Path], Answer]) -> Callable[[], Answer]:
    """A case with a folder that holds the vectors and the captions."""

    def case() -> Answer:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.save(folder / "vectors.npy", inputs.vectors())
            np.save(folder / "more.npy", inputs.others())
            lines = [
                f"{label};{i % 4 + 1};{text}"
                for i, (label, text) in enumerate(zip(inputs.labels(), TEXTS, strict=False))
            ]
            (folder / "captions.csv").write_text(
                "\n".join(["set,times,text", *[line.replace(",", " ").replace(";", ",") for line in lines]])
            )
            (folder / "captions.txt").write_text("\n".join(inputs.captions()))
            return run(folder)

    return case


TEXTS = inputs.captions()


def streamed_file(folder: Path) -> Answer:
    both = vm.score_stream([folder / "vectors.npy", folder / "more.npy"], q=[1, 2])
    return {"one": vm.score_stream(folder / "vectors.npy"), "both": both}


def read_texts(folder: Path) -> Answer:
    found = vm.read(folder / "captions.csv", samples="text", label="set", weight="times")
    parts = [len(batch) for batch in vm.read_batches(folder / "captions.csv", samples="text", size=10)]
    return {
        "n": len(found),
        "batches": parts,
        "kind": found.kind,
        "weights": np.asarray(found.weights, dtype=float),
        "score": vm.score(found, "ngram"),
        **{f"groups.{key}": value for key, value in of_groups(vm.score_groups(found, "ngram")).items()},
        "lines": vm.score(vm.read(folder / "captions.txt"), "ngram"),
    }


def written(folder: Path, **options: Any) -> Answer:
    found = vm.write_contributions(folder / "vectors.npy", folder / "out.parquet", **options)
    back = vm.read(folder / "out.parquet", samples="vendi_share", columns=list(found.columns[-4:]))
    parts = of(found, "rows score rarest redundant sample")
    columns = {
        name: np.asarray(back[name], dtype=float) for name in found.columns[-4:] if name.startswith("vendi_")
    }
    return {**parts, "columns": list(found.columns), **columns}


def streams() -> None:
    rows = inputs.vectors
    for q in ORDERS:
        add(f"stream/batches/q={q}", lambda q=q: {"score": vm.score_stream(batches(rows()), q=q)})
    add("stream/array", lambda: {"score": vm.score_stream(rows())})
    add(
        "stream/generator-embed",
        lambda: {"score": vm.score_stream((b for b in batches(TEXTS)), k.Embed(encoder))},
    )
    add("stream/sparse", lambda: {"score": vm.score_stream(inputs.sparse_rows())})
    add("stream/files", in_folder(streamed_file))
    add("read/texts", in_folder(read_texts))
    add("write_contributions/cosine", in_folder(written), "pyarrow")
    add("write_contributions/q=2", in_folder(partial(written, q=2, leave_one_out=True)), "pyarrow")
    add("write_contributions/embed", in_folder(partial(written, kernel=k.Embed(halves))), "pyarrow")


# --------------------------------------------------------------------------------------- encoders and kernels


def kept_vectors(folder: Path) -> Answer:
    """Scores with an encoder that keeps vectors on disk: what is encoded, and what is encoded again."""
    kernel = k.Embed(Vowels(cache=folder / "kept", batch_size=10))
    first = vm.score(TEXTS[:15], kernel)
    encoded = CALLS["items"]
    again = vm.score(TEXTS, kernel)
    return {"first": first, "again": again, "encoded_first": encoded}


def encoders() -> None:
    fresh = k.Embed(Vowels(cache=False))
    add("encoder/score", lambda: {"score": vm.score(TEXTS, fresh)})
    add("encoder/name-free", lambda: {"score": vm.score(TEXTS, Vowels(cache=False))})
    add("encoder/kept", in_folder(kept_vectors))
    add("encoder/groups", lambda: of_groups(vm.score_groups({"x": TEXTS[:9], "y": TEXTS[9:]}, fresh)))
    add(
        "encoder/compare",
        lambda: of(vm.compare({"x": TEXTS[:9], "y": TEXTS[9:]}, fresh), "rarefied alpha beta gamma"),
    )
    add("encoder/contributions", lambda: of(vm.contributions(TEXTS, fresh), "score values"))
    add("encoder/select", lambda: of(vm.select(TEXTS, 4, fresh), "indices score comparison"))
    add("encoder/bandwidth", lambda: of(vm.bandwidth(TEXTS, kernels=[fresh, k.NGram(1, 1)]), "scores"))
    add(
        "kernels/by-name",
        lambda: {"names": sorted(f"{name}: {kind.__name__}" for name, kind in k.by_name().items())},
    )
    add("kernels/as-kernel", lambda: {"kernels": [repr(k.as_kernel(name)) for name in sorted(k.by_name())]})
    add("spectrum/orders", spectra)


def spectra() -> Answer:
    """Orders that are asked of a spectrum after the score."""
    parts: dict[str, Any] = {}
    for name, found in {
        "all": vm.score(inputs.vectors(), "cosine"),
        "lowrank": vm.score(inputs.points(), k.RBF(1.0), method="lowrank"),
        "weights": vm.score(inputs.vectors(), k.RBF(1.5), weights=inputs.weights()),
    }.items():
        assert found.spectrum is not None
        answers = [found.spectrum.score(q) for q in (0.5, 1.0, 2.5, float("inf"))]
        parts[name] = {"width": found.spectrum.width([1.0]), "values": [answer.value for answer in answers]}
    return parts


# ------------------------------------------------------------------------------------------------- the report


def reported(samples: Any, kernel: Any, **options: Any) -> Answer:
    """Sections of a report, the figures on top, and what is in the tables and charts."""
    document = vm.report(samples, kernel, progress=False, **options).document
    parts: dict[str, Any] = {"sections": [section.key for section in document.sections]}
    parts["orders"] = list(document.orders)
    parts["facts"] = {fact.name: re.sub(r"±.*", "", fact.value) for fact in document.facts.facts}
    for section in document.sections:
        found = list(figures_within(section.blocks))
        parts[f"{section.key}.whole"] = [figure for figure in found if isinstance(figure, int)]
        parts[f"{section.key}.figures"] = np.array([figure for figure in found if isinstance(figure, float)])
    return parts


def figures_within(value: Any) -> Any:
    """All numbers of tables and charts, in order, but for those that say how things look."""
    if isinstance(value, bool | str | None):
        return
    if isinstance(value, int | float | np.number):
        plain = value.item() if isinstance(value, np.number) else value
        if abs(plain) > 1e-9:  # rounding errors stand among them
            yield plain
    elif isinstance(value, list | tuple) and value and value[0] == "Compression ratio":
        return  # it depends on the version of the library that compresses
    elif isinstance(value, dict):
        for name, entry in value.items():
            if name not in ("spec", "drawn", "height", "digits"):
                yield from figures_within(entry)
    elif isinstance(value, list | tuple | np.ndarray):
        for entry in value:
            yield from figures_within(entry)
    elif dataclasses.is_dataclass(value):
        yield from figures_within(
            {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        )


def reports() -> None:
    needs = ("jinja2", "PIL")
    rows = inputs.vectors
    add("report/vectors", lambda: reported(rows(), "cosine"), *needs)
    add("report/vectors-by", lambda: reported(rows(), "cosine", by=inputs.labels(), q=[1, 2]), *needs)
    add("report/vectors-weights", lambda: reported(rows(), "rbf", weights=inputs.weights()), *needs)
    add("report/captions", lambda: reported(inputs.captions(), "ngram", threshold=0.6), *needs)
    add("report/embed", lambda: reported(inputs.captions(), k.Embed(encoder), rng=2), *needs)
    add("report/function", lambda: reported(inputs.places(), near), *needs)
    add(
        "report/blocks",
        lambda: reported(inputs.places(), k.FromFunction(near_blocks, block=True)),
        *needs,
    )
    both = {"real": inputs.vectors(), "fake": inputs.others()}
    add("report/reference", lambda: reported(both, "cosine", reference="real"), *needs)


# ------------------------------------------------------------------------------- gradients and other packages


def gradients(kernel: str, q: Any, weighted: bool = False) -> Answer:
    import torch

    from vendimeter.integrations.torch import vendi_score

    start = inputs.similarity() if kernel == "precomputed" else inputs.vectors()[:20]
    rows = torch.tensor(start.copy(), requires_grad=True)
    shares = torch.tensor(np.arange(1, 21) / 210, requires_grad=True) if weighted else None
    score = vendi_score(rows, q, kernel=kernel, weights=shares)
    score.backward()
    parts: dict[str, Any] = {"score": float(score.detach()), "gradient": rows.grad.numpy()}  # type: ignore[union-attr]
    return parts if shares is None else {**parts, "of_weights": shares.grad.numpy()}  # type: ignore[union-attr]


def torch_batch() -> Answer:
    import torch

    from vendimeter.integrations.torch import vendi_score

    rows = torch.tensor(inputs.vectors().copy()).reshape(8, 5, 6)
    return {"scores": vendi_score(rows, 2).numpy(), "tensor": float(vm.score(rows.reshape(40, 6), "rbf"))}


def gradient_cases() -> None:
    for kernel in ("cosine", "precomputed"):
        for q in (0.5, 1, 2, 3, "inf"):
            add(f"torch/{kernel}/q={q}", partial(gradients, kernel, q), "torch")
    add("torch/weights", partial(gradients, "cosine", 1, weighted=True), "torch")
    add("torch/batch", torch_batch, "torch")


def compat() -> None:
    from vendimeter.compat import molecule_utils, text_utils, vendi

    shares = np.arange(1, 21) / 210
    matrix, rows = inputs.similarity, inputs.vectors
    places = np.arange(1, 13) / 78

    for q in ORDERS:
        add(f"compat/score_K/q={q}", lambda q=q: {"score": float(vendi.score_K(matrix(), q=q))})
        add(f"compat/score_X/q={q}", lambda q=q: {"score": float(vendi.score_X(rows(), q=q))})
        add(f"compat/score_dual/q={q}", lambda q=q: {"score": float(vendi.score_dual(rows(), q=q))})
        add(f"compat/score/q={q}", lambda q=q: {"score": float(vendi.score(inputs.places(), near, q=q))})
        add(f"compat/entropy_q/q={q}", lambda q=q: {"value": float(vendi.entropy_q(shares, q=q))})
    add("compat/score_K/p", lambda: {"score": float(vendi.score_K(matrix(), p=shares))})
    add(
        "compat/score_K/normalize", lambda: {"score": float(vendi.score_K(inputs.unscaled(), normalize=True))}
    )
    add("compat/score_X/p", lambda: {"score": float(vendi.score_X(rows(), p=inputs.weights()))})
    add("compat/score/p", lambda: {"score": float(vendi.score(inputs.places(), near, p=places))})
    add("compat/intdiv", lambda: {"value": float(vendi.intdiv(inputs.places(), near))})
    add("compat/intdiv/p", lambda: {"value": float(vendi.intdiv(inputs.places(), near, q=2, p=places))})
    add("compat/intdiv_K", lambda: {"value": float(vendi.intdiv_K(matrix(), q=2, p=shares))})
    add("compat/intdiv_X", lambda: {"value": float(vendi.intdiv_X(rows()))})
    add("compat/normalize_K", lambda: {"matrix": vendi.normalize_K(inputs.unscaled())})
    add(
        "compat/weight_K",
        lambda: {"matrix": vendi.weight_K(matrix()), "weighted": vendi.weight_K(matrix(), p=shares)},
    )

    def words(**options: Any) -> Answer:
        return {"score": float(text_utils.ngram_vendi_score(TEXTS, tokenizer=str.split, **options))}

    add("compat/text", words)
    add("compat/text/ns", lambda: words(ns=(1, 2)))
    for fingerprint in ("morgan", "rdk"):
        add(
            f"compat/molecules/{fingerprint}",
            lambda fp=fingerprint: {"matrix": molecule_utils.get_tanimoto_K(inputs.smiles(), fp=fp)},
            "rdkit",
        )


for register in (growth, streams, encoders, reports, gradient_cases, compat):
    register()
