"""Small files that stand for far more than the memory holds: seconds and memory of ``vendi score`` on each.

Each file is read in a process of its own, which may take 12 GiB of address space and two minutes. Memory is what the
process takes beyond one that scores three words. ``--only WORD`` runs the cases whose name holds it, ``--folder`` keeps
the files. The exit code is 1 if a case takes more than 1 GiB or 30 seconds.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measure import table

MIB = 1 << 20
MOST_SECONDS, MOST_MIB = 30, 1024  # that a case may take
KILLED_AT, ADDRESSES = 120, 12 << 30
CASES: dict[str, tuple[Callable[[Path], Path], list[str]]] = {}


def case(name: str, *options: str) -> Callable[[Callable[[Path], Path]], Callable[[Path], Path]]:
    def kept(write: Callable[[Path], Path]) -> Callable[[Path], Path]:
        CASES[name] = (write, list(options))
        return write

    return kept


def packed(path: Path, *pieces: tuple[bytes, int]) -> Path:
    """A gzipped file of pieces of about a mebibyte, each so many times; one member for each 32 of them."""
    with path.open("wb") as file:
        for piece, times in pieces:
            member = gzip.compress(piece * min(times, 32), mtime=0)
            file.write(member * -(-times // 32))
    return path


def text(path: Path, *pieces: tuple[bytes, int]) -> Path:
    with path.open("wb") as file:
        for piece, times in pieces:
            for _ in range(times):
                file.write(piece)
    return path


# --------------------------------------------------------------------------------------------------------------- text


@case("txt.gz, one line of 8 GiB")
def _(folder: Path) -> Path:
    return packed(folder / "line.txt.gz", (b"a" * MIB, 8192))


@case("txt.gz, one line of 8 GiB, skipped", "--skip-broken")
def _(folder: Path) -> Path:
    return packed(folder / "skipped.txt.gz", (b"a" * MIB, 8192))


@case("txt.gz, 400 million lines")
def _(folder: Path) -> Path:
    return packed(folder / "lines.txt.gz", (b"ab\n" * (MIB // 3), 1200))


@case("txt, 4 lines of 90 MiB, skipped", "--skip-broken")
def _(folder: Path) -> Path:
    return text(folder / "long.txt", *[(b"a " * (MIB // 2), 90), (b"\nshort\n", 1)] * 4)


@case("csv.gz, a quote that is never closed", "--column", "a")
def _(folder: Path) -> Path:
    return packed(folder / "quote.csv.gz", (b'a,b\n1,"', 1), (b"x\n" * (MIB // 2), 4096))


@case("csv, 30 million names of columns")
def _(folder: Path) -> Path:
    return text(folder / "names.csv", (b"".join(b"c%d," % i for i in range(100_000)), 100), (b"x\n", 1))


@case("csv, a row of 20 million cells", "--column", "a")
def _(folder: Path) -> Path:
    return text(folder / "cells.csv", (b"a,b\n", 1), (b"ab," * (MIB // 3), 60), (b"x\n1,2\n", 1))


@case("jsonl, a record of 20 million lists", "--column", "a")
def _(folder: Path) -> Path:
    return text(folder / "lists.jsonl", (b'{"a": [', 1), (b"[]," * (MIB // 3), 60), (b"[]]}\n", 1))


@case("json.gz, an element of 8 GiB", "--column", "a")
def _(folder: Path) -> Path:
    return packed(folder / "element.json.gz", (b'[{"a": "', 1), (b"x" * MIB, 8192))


@case("json, an element of 200 MiB, skipped", "--column", "a", "--skip-broken")
def _(folder: Path) -> Path:
    rest = b'"}, {"a": "a dog"}, {"a": "a cat"}]'
    return text(folder / "skipped.json", (b'[{"a": "', 1), (b"x" * MIB, 200), (rest, 1))


@case("fasta.gz, a sequence of 4 GiB")
def _(folder: Path) -> Path:
    return packed(folder / "sequence.fasta.gz", (b">a\n", 1), (b"ACGTACG\n" * (MIB // 8), 4096))


# ---------------------------------------------------------------------------------------------------------- molecules


@case("smi, 100,000 atoms")
def _(folder: Path) -> Path:
    return text(folder / "chain.smi", (b"C" * 100_000 + b"\nCCO\n", 1))


@case("smi, a ring of 50,000 atoms", "--skip-broken")
def _(folder: Path) -> Path:
    return text(folder / "ring.smi", (b"C1" + b"C" * 50_000 + b"1\nCCO\nCCN\n", 1))


@case("smi, 300 rings of 990 atoms")
def _(folder: Path) -> Path:
    return text(folder / "rings.smi", (b"C1" + b"C" * 988 + b"1\n", 300))


@case("smi, one line of 60 MiB")
def _(folder: Path) -> Path:
    return text(folder / "long.smi", (b"C" * MIB, 60), (b"\nCCO\n", 1))


@case("smi, ten atoms, each bound to each", "--kernel", "rdkit")
def _(folder: Path) -> Path:
    bonds = [f"{i:02d}{j:02d}" for i in range(10) for j in range(i)]
    names = {bond: f"%{10 + i}" for i, bond in enumerate(bonds)}
    atoms = [
        "*" + "".join(names[bond] for bond in bonds if f"{i:02d}" in (bond[:2], bond[2:])) for i in range(10)
    ]
    return text(folder / "cage.smi", (".".join(atoms).encode() + b"\nCCO\n", 1))


@case("sdf, 100,000 atoms", "--skip-broken")
def _(folder: Path) -> Path:
    atoms = b"".join(b"M  V30 %d C 0 0 0 0\n" % i for i in range(1, 100_001))
    bonds = b"".join(b"M  V30 %d 1 %d %d\n" % (i, i, i + 1) for i in range(1, 100_000))
    head = b"\n\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 100000 99999 0 0 0\n"
    block = head + b"M  V30 BEGIN ATOM\n" + atoms + b"M  V30 END ATOM\nM  V30 BEGIN BOND\n" + bonds
    return text(folder / "chain.sdf", (block + b"M  V30 END BOND\nM  V30 END CTAB\nM  END\n$$$$\n", 1))


@case("sdf.gz, a structure of 4 GiB")
def _(folder: Path) -> Path:
    return packed(folder / "endless.sdf.gz", (b"x\n" * (MIB // 2), 4096))


# ------------------------------------------------------------------------------------------------------------- arrays


@case("npy, rows of 2 GiB")
def _(folder: Path) -> Path:
    path = folder / "rows.npy"
    np.lib.format.open_memmap(path, "w+", np.float64, (3, 1 << 28))
    return path


@case("npz, 3 GiB of zeros")
def _(folder: Path) -> Path:
    path = folder / "zeros.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (3 << 17, 1024)}
    )
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as file,
    ):
        file.write(header.getvalue())
        for _ in range(3 << 10):
            file.write(bytes(MIB))
    return path


@case("npz, 20 million texts")
def _(folder: Path) -> Path:
    np.savez_compressed(folder / "texts.npz", x=np.full(20_000_000, b"ab"))
    return folder / "texts.npz"


@case("npz.gz, an archive in an archive")
def _(folder: Path) -> Path:
    inner = io.BytesIO()
    np.savez_compressed(inner, **{f"x{i}": np.zeros((60_000, 100)) for i in range(40)})
    (folder / "nested.npz.gz").write_bytes(gzip.compress(inner.getvalue()))
    return folder / "nested.npz.gz"


@case("safetensors, rows of 2 GiB")
def _(folder: Path) -> Path:
    header = json.dumps({"x": {"dtype": "F32", "shape": [2, 1 << 29], "data_offsets": [0, 1 << 32]}}).encode()
    path = folder / "rows.safetensors"
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + (1 << 32))
    return path


# ------------------------------------------------------------------------------------------------------------ Parquet


def parquet(path: Path, columns: dict[str, object], **options: object) -> Path:
    pq.write_table(pa.table(columns), path, **{"row_group_size": 1 << 30, **options})
    return path


def repeated(count: int, entry: object) -> pa.DictionaryArray:
    indices = pa.array(np.zeros(count, np.int8) if count < 1 << 31 else [])
    return pa.DictionaryArray.from_arrays(indices, pa.array([entry, "b"]))


@case("parquet, a text of 1 MiB in a million rows")
def _(folder: Path) -> Path:
    return parquet(folder / "text.parquet", {"t": repeated(1_000_000, "ab " * (MIB // 3))})


@case("parquet, texts of 1 MiB beside others", "--column", "t")
def _(folder: Path) -> Path:
    rows = [f"text {i} " * 3 for i in range(70_000)]
    path = folder / "beside.parquet"
    texts = pa.array(["x" * (MIB // 2)] + ["x" * (MIB // 2)] * 3000 + rows)
    return parquet(path, {"t": texts}, compression="zstd")


@case("parquet, texts that repeat the one before", "--column", "t")
def _(folder: Path) -> Path:
    texts = pa.array(["x" * (MIB // 2)] * 4000)
    options = {"use_dictionary": False, "column_encoding": {"t": "DELTA_BYTE_ARRAY"}, "compression": "none"}
    return parquet(folder / "front.parquet", {"t": texts}, **options)


@case("parquet, a text of 1.5 GiB in one page", "--column", "t")
def _(folder: Path) -> Path:
    texts = pa.array(["x" * (1536 * MIB), "y"], pa.large_string())
    return parquet(folder / "page.parquet", {"t": texts}, use_dictionary=False, compression="zstd")


@case("parquet, 300 million equal numbers")
def _(folder: Path) -> Path:
    return parquet(folder / "numbers.parquet", {"x": pa.array(np.zeros(300_000_000, np.int32))})


@case("parquet, a list of 200 million numbers", "--column", "v")
def _(folder: Path) -> Path:
    ends = pa.array([0, 200_000_000, 200_000_001], pa.int32())
    lists = pa.ListArray.from_arrays(ends, pa.array(np.zeros(200_000_001, np.int8)).cast(pa.int32()))
    return parquet(folder / "list.parquet", {"v": lists})


@case("parquet, lists of texts of 1 MiB", "--column", "t")
def _(folder: Path) -> Path:
    lists = pa.ListArray.from_arrays(
        pa.array(np.arange(0, 100_001, 100, dtype=np.int32)), repeated(100_000, "x" * MIB)
    )
    return parquet(folder / "lists.parquet", {"t": lists})


# -------------------------------------------------------------------------------------------------------------- Arrow


def arrow(path: Path, column: pa.Array, compression: str | None = None) -> Path:
    kept = pa.table({"t": column})
    with pa.ipc.new_file(
        path, kept.schema, options=pa.ipc.IpcWriteOptions(compression=compression, allow_64bit=True)
    ) as file:
        file.write_table(kept)
    return path


@case("arrow, a text of 1 MiB in a million rows")
def _(folder: Path) -> Path:
    return arrow(folder / "text.arrow", repeated(1_000_000, "ab " * (MIB // 3)))


@case("arrow, 2 GiB of zeros")
def _(folder: Path) -> Path:
    return arrow(folder / "zeros.arrow", pa.array(np.zeros(1 << 28)), "zstd")


@case("arrow, a run of 100 million texts of 1 MiB")
def _(folder: Path) -> Path:
    return arrow(folder / "run.arrow", pa.RunEndEncodedArray.from_arrays([100_000_000], ["x" * MIB]))


@case("arrow, a million views of one text")
def _(folder: Path) -> Path:
    view = np.array([(MIB, b"xxxx", 0, 0)], dtype="<i4,S4,<i4,<i4").repeat(1_000_000)
    buffers = [None, pa.py_buffer(view.tobytes()), pa.py_buffer(b"x" * MIB)]
    return arrow(folder / "views.arrow", pa.Array.from_buffers(pa.string_view(), len(view), buffers))


@case("arrow, a million views of one list")
def _(folder: Path) -> Path:
    starts, sizes = np.zeros(1_000_000, np.int32), np.full(1_000_000, 1_000_000, np.int32)
    views = pa.ListViewArray.from_arrays(
        pa.array(starts), pa.array(sizes), pa.array(np.zeros(1_000_000, np.int8))
    )
    return arrow(folder / "lists.arrow", views)


@case("arrow, a dictionary of one long list")
def _(folder: Path) -> Path:
    entries = pa.array([list(range(1_000_000))], pa.list_(pa.int32()))
    return arrow(
        folder / "vectors.arrow",
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int8)), entries),
    )


@case("arrow, a trillion gaps", "--skip-broken")
def _(folder: Path) -> Path:
    return arrow(folder / "gaps.arrow", pa.Array.from_buffers(pa.null(), 10**12, [None]))


@case("a dataset of Hugging Face, a text of 1 MiB in a million rows")
def _(folder: Path) -> Path:
    own = folder / "dataset"
    own.mkdir()
    kept = pa.table({"t": repeated(1_000_000, "ab " * (MIB // 3))})
    with pa.ipc.new_stream(str(own / "data.arrow"), kept.schema) as file:
        file.write_table(kept)
    (own / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    return own


# ----------------------------------------------------------------------------------------------------------- pictures


def png(path: Path, side: int, kind: int, channels: int) -> Path:
    """A picture of zeros, packed row by row."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + bytes([8, kind, 0, 0, 0])
    pack = zlib.compressobj(1)
    rows = b"".join(pack.compress(bytes(1 + channels * side)) for _ in range(side)) + pack.flush()
    path.parent.mkdir()
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))
    return path.parent


@case("png, 14,000 × 14,000 pixels")
def _(folder: Path) -> Path:
    return png(folder / "huge" / "a.png", 14_000, 2, 3)


@case("png, 9,900 × 9,900 pixels")
def _(folder: Path) -> Path:
    return png(folder / "large" / "a.png", 9_900, 2, 3)


@case("png, 9,900 × 9,900 pixels with opacity")
def _(folder: Path) -> Path:
    return png(folder / "clear" / "a.png", 9_900, 6, 4)


# ---------------------------------------------------------------------------------------------------------------- run


def measured(path: Path, options: list[str]) -> tuple[float, float, int, str]:
    """Seconds, MiB at the most, the exit code, and the last line that was said."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))

    command = [sys.executable, "-m", "vendimeter.cli", "score", str(path), *options]
    start = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, preexec_fn=limited)
        while True:
            done, status, usage = os.wait4(child.pid, os.WNOHANG)
            if done:
                break
            if time.perf_counter() - start > KILLED_AT:
                child.kill()
            time.sleep(0.01)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
    return seconds, usage.ru_maxrss / 1024, child.returncode, lines[-1] if lines else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        print(CASES[options.write][0](options.folder))
        return
    rows, bad = [], 0
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        folder.mkdir(exist_ok=True)
        (folder / "words.txt").write_text("a\nb\nc\n")
        (folder / "some.smi").write_text("CCO\nCCN\n")
        pq.write_table(pa.table({"t": ["a", "b"]}), folder / "some.parquet")
        plain = {"": "words.txt", "smi": "some.smi", "sdf": "some.smi"}
        plain |= dict.fromkeys(("parquet", "arrow", "a dataset"), "some.parquet")
        usual = {start: measured(folder / name, [])[1] for start, name in plain.items()}
        for name, (_, more) in CASES.items():
            if options.only not in name:
                continue
            # By a process of its own: what this one took would be counted as the child's.
            command = [sys.executable, __file__, "--write", name, "--folder", str(folder)]
            path = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
            size = sum(one.stat().st_blocks * 512 for one in ([path] if path.is_file() else path.iterdir()))
            seconds, memory, code, said = measured(path, more)
            memory -= max(value for start, value in usual.items() if name.startswith(start))
            bad += seconds > MOST_SECONDS or memory > MOST_MIB
            ended = "killed" if code in (-9, -6, -11) else str(code)
            rows.append(
                [name, f"{size / MIB:.3g}", f"{seconds:.1f}", f"{max(0, memory):,.0f}", ended, said[:110]]
            )
            print(rows[-1], file=sys.stderr, flush=True)
            if options.folder is None and path.is_file():
                path.unlink()
    print(table(["", "MiB on disk", "seconds", "MiB in memory", "exit code", "said"], rows))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
