"""From files to scores: captions of 5,000 pictures in a .jsonl.gz, and 1,000,000 vectors in Parquet shards.

``--captions FILE`` takes captions of your own (a line an image, a list of texts in "captions"), such as those of COCO;
made-up ones otherwise. ``--vectors N`` is how many vectors the shards hold. Each case of the shards runs in a process
of its own, which reports by how much it grew.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vendimeter as vm
from groups import captions as made_up
from measure import best_times, extra_memory, table

COLUMNS = 256
SHARDS = 8


def write_captions(path: Path) -> None:
    texts = made_up(25_000, np.random.default_rng(0))
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for i in range(0, len(texts), 5):
            file.write(json.dumps({"image_id": i // 5, "captions": texts[i : i + 5]}) + "\n")


def official(groups: list[list[str]]) -> list[float] | None:
    """The official n-gram score of each group; SciPy has dropped what it calls, so that is put back first."""
    try:
        from scipy import sparse
        from vendi_score.text_utils import ngram_vendi_score
    except ImportError as error:
        print(f"The official package is left out: {error}", file=sys.stderr)
        return None
    sparse.csr_matrix.A = property(lambda matrix: matrix.toarray())
    scores = []
    for group in groups:
        try:
            scores.append(float(ngram_vendi_score(group, tokenizer=str.split)))
        except ValueError:  # no text of the group has n tokens
            scores.append(float("nan"))
    return scores


def caption_cases(path: Path) -> None:
    ngram = vm.kernels.NGram(1, 4, tokenizer=str.split, lowercase=False)
    images = vm.read(path, samples="captions", label="image_id")
    texts = [text for group in images.samples for text in group]
    scores: dict[str, list[float] | None] = {}

    def ours() -> None:
        scores["ours"] = vm.score_groups(
            vm.read(path, samples="captions", label="image_id"), ngram
        ).scores.tolist()

    cases = {
        "file → scores": ours,
        "reading the file": lambda: vm.read(path, samples="captions", label="image_id"),
        f"n-gram features of {len(texts):,} captions": lambda: ngram.similarity(texts),
    }
    times = best_times(cases, 3)
    start = time.perf_counter()
    scores["official"] = official(images.samples)
    if scores["official"] is not None:
        times["official, texts → scores"] = time.perf_counter() - start
    fastest = times["file → scores"]
    print(f"\n{len(images):,} images, {len(texts):,} captions\n")
    print(table(["", "seconds", "ratio"], [[k, f"{t:.2f}", f"{t / fastest:.2f}×"] for k, t in times.items()]))
    if scores["official"] is not None and scores["ours"] is not None:
        gap = np.abs(np.array(scores["ours"]) / np.array(scores["official"]) - 1)
        print(
            f"\nof {len(gap):,} scores {int((gap < 1e-9).sum()):,} agree to nine digits; the others have short texts"
        )


def write_shards(folder: Path, count: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    basis = rng.standard_normal((COLUMNS, COLUMNS), dtype=np.float32) / np.arange(1, COLUMNS + 1)[:, None]
    for shard in range(SHARDS):
        rows = rng.standard_normal((count // SHARDS, COLUMNS), dtype=np.float32) @ basis
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.astype(np.float16).ravel()), COLUMNS)
        names = pa.array([f"row {shard} {i}" for i in range(len(rows))])
        parquet.write_table(pa.table({"name": names, "vector": vectors}), folder / f"{shard}.parquet")


def shard_cases(count: int) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write_shards(Path(folder), count)
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
        for case in ("stream", "whole", "decode"):
            command = [sys.executable, __file__, "--case", case, "--folder", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append([NAMES[case], *done.stdout.strip().split("|")])
    print(f"\n{count:,} float16 vectors of {COLUMNS} numbers in {SHARDS} Parquet files, {size:.0f} MiB\n")
    print(table(["", "seconds", "extra MiB", "score"], rows))


NAMES = {
    "stream": '`score_stream("*.parquet")`, batch by batch',
    "whole": "`read`, then `score`",
    "decode": "pyarrow decoding the column alone",
}


def shard_case(case: str, folder: str) -> None:
    pattern = f"{folder}/*.parquet"
    answer: list[str] = []

    def work() -> None:
        if case == "stream":
            answer.append(f"{vm.score_stream(pattern, samples='vector'):.4f}")
        elif case == "whole":
            answer.append(f"{vm.score(vm.read(pattern, samples='vector')):.4f}")
        else:
            from pyarrow import parquet

            for path in sorted(Path(folder).glob("*.parquet")):
                for _ in parquet.ParquetFile(path).iter_batches(columns=["vector"]):
                    pass
            answer.append("–")

    vm.score(np.random.default_rng(0).standard_normal((5000, COLUMNS)))  # imports and thread buffers first
    start = time.perf_counter()
    memory = extra_memory(work)
    print(f"{time.perf_counter() - start:.2f}|{memory:.0f}|{answer[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captions", type=Path)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        shard_case(options.case, options.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = options.captions or Path(folder) / "captions.jsonl.gz"
        if options.captions is None:
            write_captions(path)
        caption_cases(path)
    shard_cases(options.vectors)


if __name__ == "__main__":
    main()
