"""Where a library that does the same falls short of what is written by hand here: one test a reason.

CONTRIBUTING names them in the section "By hand". A test that fails because the library has become better is good news:
what is written by hand can go.
"""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

MIB = 1 << 20


# ----------------------------------------------------------------------------------------------------- pyarrow: batches


def stream_of(column: np.ndarray) -> bytes:
    """An Arrow stream of one packed batch."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import ipc

    table, sink = pa.table({"a": column}), io.BytesIO()
    with ipc.new_stream(sink, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_pyarrow_takes_all_memory_that_a_message_claims():
    """Before it looks at what is there; and it has no option for how much that may be."""
    pa = pytest.importorskip("pyarrow")
    honest = stream_of(np.arange(1000))
    claim = (8000).to_bytes(8, "little")
    assert honest.count(claim) == 1
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    lying = honest.replace(claim, (300 * MIB).to_bytes(8, "little"))
    with pytest.raises(OSError, match="ZSTD"):
        pa.ipc.open_stream(lying, memory_pool=pool).read_all()
    assert len(lying) < 4096
    assert pool.max_memory() >= 300 * MIB


def test_pyarrow_unpacks_a_bomb_of_a_batch():
    pa = pytest.importorskip("pyarrow")
    bomb = stream_of(np.zeros(64 * MIB, np.int8))
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    assert pa.ipc.open_stream(bomb, memory_pool=pool).read_all().num_rows == 64 * MIB
    assert pool.max_memory() >= 10_000 * len(bomb)


# ----------------------------------------------------------------------------------------------------- pyarrow: Parquet


def test_pyarrow_unpacks_a_page_whole_however_few_rows_are_asked_for(tmp_path: Path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "bomb.parquet"
    table = pa.table({"x": ["short", "x" * (64 * MIB)]})
    pq.write_table(table, path, use_dictionary=False, compression="zstd")
    del table
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        next(pq.ParquetFile(path).iter_batches(batch_size=1))
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() >= 10_000 * path.stat().st_size


DAMAGED = """
import io, resource
import pyarrow as pa, pyarrow.parquet as pq
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sink = io.BytesIO()
pq.write_table(pa.table({"x": ["a", "b"], "y": [1, 2]}), sink)
whole = sink.getvalue()
for at in range(len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), len(whole) - 8):
    for bit in range(8):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        try:
            found = pq.ParquetFile(io.BytesIO(bytes(damaged))).metadata
            [found.row_group(i).column(k).data_page_offset
             for i in range(found.num_row_groups) for k in range(found.num_columns)]
        except Exception:
            pass
"""


def test_pyarrow_ends_the_process_where_a_file_is_damaged():
    """When it is asked where the pages of a column are; a flipped bit is enough."""
    pytest.importorskip("pyarrow.parquet")
    done = subprocess.run([sys.executable, "-c", DAMAGED], capture_output=True, text=True, check=False)
    assert done.returncode < 0, "pyarrow gives an error in place of that now"
    assert "parquet::ParquetException" in done.stderr


# --------------------------------------------------------------------------------------------------- NumPy, safetensors


def lying_array(values: int) -> bytes:
    """A .npy file of two values whose header claims many."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({values},), }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(16)


@pytest.mark.parametrize("form", [".npy", ".npz"])
def test_numpy_takes_all_memory_that_a_header_claims(tmp_path: Path, form: str):
    path = tmp_path / f"lying{form}"
    if form == ".npy":
        path.write_bytes(lying_array(32 * MIB))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", lying_array(32 * MIB))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"Failed to read all data|EOF"):
            np.asarray(np.load(path) if form == ".npy" else np.load(path)["x"])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak >= 256 * MIB


BRAIN_FLOAT = """
import sys
from safetensors import safe_open
with safe_open(sys.argv[1], "np") as file:
    print(file.get_tensor("x"))
"""


def test_safetensors_reads_no_bfloat16_into_numpy(tmp_path: Path):
    """What models are saved in most often; with PyTorch it would, or where ml_dtypes was imported."""
    pytest.importorskip("safetensors")
    header = json.dumps({"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    done = subprocess.run(
        [sys.executable, "-c", BRAIN_FLOAT, path], capture_output=True, text=True, check=False
    )
    assert "TypeError" in done.stderr
    assert "bfloat16" in done.stderr


# ----------------------------------------------------------------------------------------------------------- rich, json


def drawn(columns: list[tuple[str, str]], cells: list[str], width: int) -> str:
    """A table of one row as rich draws it, numbers to the right and whole where it can be told to."""
    pytest.importorskip("rich")
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    page = Table(box=None)
    for name, side in columns:
        page.add_column(name, justify=side, no_wrap=side == "right")  # type: ignore[arg-type]
    page.add_row(*map(Text, cells))
    console = Console(file=io.StringIO(), width=width, color_system=None, markup=False)
    console.print(page)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_rich_cuts_numbers_where_a_table_is_too_wide():
    columns = [("group", "left"), *((name, "right") for name in ("n", "score", "lower", "upper", "share"))]
    cells = ["a long name of a group", "1234567", "123.4567", "123.4560", "123.4570", "0.1234"]
    assert "1234567" in drawn(columns, cells, 140)
    assert "1234567" not in drawn(columns, cells, 40)


def test_rich_lets_escape_codes_of_the_text_through():
    assert "\x1b[31m" in drawn([("name", "left")], ["evil\x1b[31m"], 80)


def test_json_of_the_standard_library_writes_what_is_no_json():
    assert json.dumps([float("nan"), float("inf")]) == "[NaN, Infinity]"
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps(np.float32(1))
