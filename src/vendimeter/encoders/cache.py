"""Vectors on disk: one SQLite file for each thing that vectors depend on, with a vector for each digest of a sample.

A vector is written once and never changed, in transactions: what is read was written whole, whoever was killed
meanwhile. Several processes may read and write at once. The rollback journal is used and not the write-ahead log,
because that needs memory shared by all who write: home folders of clusters are network drives, where there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from vendimeter.errors import CacheError, CacheWarning, InputError
from vendimeter.messages import brief, warn
from vendimeter.present.text import printable

__all__ = ["NoVectors", "StoredVectors", "cache_folder"]

FORMAT = 1  # of the tables below; a file of another format is another file, by its name
MARK = int.from_bytes(b"vndi", "big")  # the application_id in the header of the file
PAGE = 16384  # bytes: a vector fits into a page. Rows with an index are written 3 to 5 times as fast as WITHOUT ROWID
KEYS_A_QUERY = 900  # keys in one SELECT; older versions of SQLite take no more than 999
PATIENCE = 60.0  # seconds to wait for others that write
PENDING_SECONDS, PENDING_BYTES = 1.0, 32 << 20  # written together: a commit waits for the disk

_warned: set[tuple[str, str]] = set()


def cache_folder() -> str:
    """The folder that vectors are kept in unless another is named; it can be deleted at any time.

    It is the folder that the environment variable ``VENDIMETER_CACHE`` names, or ``vendimeter`` in the folder that the
    system has for caches: ``$XDG_CACHE_HOME`` or ``~/.cache``, ``~/Library/Caches`` on macOS, ``%LOCALAPPDATA%`` on
    Windows.

    Examples
    --------
    >>> import os
    >>> os.path.isabs(cache_folder())
    True
    """
    try:
        folder = os.environ.get("VENDIMETER_CACHE")
        if folder:
            return str(Path(folder).expanduser().absolute())
        if sys.platform == "win32":
            local_folder = os.environ.get("LOCALAPPDATA")
            base = Path(local_folder) if local_folder else Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            xdg_folder = os.environ.get("XDG_CACHE_HOME", "")
            base = Path(xdg_folder) if os.path.isabs(xdg_folder) else Path.home() / ".cache"
    except RuntimeError:
        raise InputError(
            "there is no home folder to keep vectors in; set the environment variable VENDIMETER_CACHE to a folder, or "
            "pass cache=False to the encoder."
        ) from None
    return str(base / "vendimeter")


class NoVectors:
    """A cache that keeps nothing."""

    width: int | None = None

    def get(self, keys: Sequence[bytes]) -> Iterator[tuple[list[int], np.ndarray]]:
        """No vectors."""
        return iter(())

    def put(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        """Keep nothing."""

    def __enter__(self) -> NoVectors:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class StoredVectors:
    """The vectors of one encoder on disk; use it in a ``with`` block, from one thread.

    Parameters
    ----------
    folder : str
        Where the file lies; made, readable for its owner only, where there is none.
    name : str
        The name of the encoder, for the name of the file.
    identity : str
        Everything that vectors depend on besides the sample. It is stored inside and compared.

    Notes
    -----
    A file that cannot be made, read or written is no reason to lose hours of encoding: there is one `CacheWarning`,
    and encoding goes on without. A file that is damaged is a `CacheError`, because nothing in it can be trusted.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with StoredVectors(folder, "demo", '{"model": "m"}') as stored:
    ...         stored.put([b"a", b"b"], np.eye(2, dtype=np.float32))
    ...     with StoredVectors(folder, "demo", '{"model": "m"}') as stored:
    ...         [(rows, vectors.tolist()) for rows, vectors in stored.get([b"x", b"b"])]
    [([1], [[0.0, 1.0]])]
    """

    def __init__(self, folder: str, name: str, identity: str):
        digest = hashlib.sha256(identity.encode()).hexdigest()
        # What a user calls an encoder may be no name for a file.
        name = re.sub(r"[^\w.-]", "_", name) or "encoder"
        self.path = Path(folder).expanduser().absolute() / f"{name}-{FORMAT}-{digest[:40]}.sqlite"
        self.width: int | None = None
        self._identity = identity
        self._connection: sqlite3.Connection | None = None
        self._pending: list[tuple[bytes, bytes, int]] = []
        self._pending_bytes, self._flushed_at = 0, time.monotonic()
        self._failure: str | None = None  # why nothing more is written

    def __enter__(self) -> StoredVectors:
        try:
            with self._guard("opened"):
                self._open()
        except BaseException:
            self._close()
            raise
        if self._failure is not None:
            self._close()
        return self

    def _open(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._connection = _connect(self.path)
        self._connection.execute(f"PRAGMA page_size={PAGE}")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        if not self._has_tables():
            self._create_tables()
        self.width = self._read_width()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._flush()
        finally:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    # ------------------------------------------------------------------------------------------------ the file

    def _has_tables(self) -> bool:
        """Whether the tables are there; an error where the file is another's."""
        if self._fetch_value("SELECT count(*) FROM sqlite_master") == 0:
            return False
        mark, version = self._fetch_value("PRAGMA application_id"), self._fetch_value("PRAGMA user_version")
        if (mark, version) != (MARK, FORMAT):
            raise self._unusable_error("is not a cache of this version of Vendimeter")
        if self._fetch_value("SELECT value FROM about WHERE name = 'identity'") != self._identity:
            raise self._unusable_error("belongs to another model or other parameters than its name says")
        return True

    def _create_tables(self) -> None:
        assert self._connection is not None
        with self._transaction():
            if self._has_tables():  # another process was quicker
                return
            self._connection.execute(f"PRAGMA application_id={MARK}")
            self._connection.execute(f"PRAGMA user_version={FORMAT}")
            self._connection.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID")
            self._connection.execute(
                "CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, checksum INTEGER NOT NULL)"
            )
            self._connection.execute("INSERT INTO about VALUES ('identity', ?)", (self._identity,))

    def _read_width(self) -> int | None:
        width = self._fetch_value("SELECT value FROM about WHERE name = 'width'")
        if width is None:
            return None
        if not isinstance(width, int) or width < 1:
            raise self._unusable_error(f"is damaged: the width of its vectors is {brief(width)}")
        # Memory is taken for as many numbers: a vector that is there has them, of float16 or float32.
        vector_bytes = self._fetch_value("SELECT length(vector) FROM vectors LIMIT 1")
        if vector_bytes not in (None, 2 * width, 4 * width):
            raise self._unusable_error("is damaged: a vector is not what was written")
        return width

    def _fetch_value(self, query: str) -> Any:
        assert self._connection is not None
        row = self._connection.execute(query).fetchone()
        return None if row is None else row[0]

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        assert self._connection is not None
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    # ---------------------------------------------------------------------------------------------------- vectors

    def get(self, keys: Sequence[bytes]) -> Iterator[tuple[list[int], np.ndarray]]:
        """Those vectors that are there, some at a time, with their positions among the keys."""
        if self._connection is None or self.width is None:
            return
        position = {key: i for i, key in enumerate(keys)}
        sorted_keys = sorted(position)  # neighbours in the index
        for start in range(0, len(sorted_keys), KEYS_A_QUERY):
            batch = sorted_keys[start : start + KEYS_A_QUERY]
            placeholders = ",".join("?" * len(batch))
            fetched: list[tuple[bytes, bytes, int]] = []
            with self._guard("read"):
                fetched = self._connection.execute(
                    f"SELECT key, vector, checksum FROM vectors WHERE key IN ({placeholders})", batch
                ).fetchall()
            if self._failure is not None:
                return
            for key, vector, checksum in fetched:
                has_right_size = isinstance(vector, bytes) and len(vector) in (2 * self.width, 4 * self.width)
                if not has_right_size or _checksum(key, vector) != checksum:
                    raise self._unusable_error("is damaged: a vector is not what was written")
            for size, dtype in ((2 * self.width, "<f2"), (4 * self.width, "<f4")):
                rows = [row for row in fetched if len(row[1]) == size]
                if rows:
                    vectors = np.frombuffer(b"".join(row[1] for row in rows), dtype)
                    yield [position[row[0]] for row in rows], vectors.reshape(len(rows), self.width)

    def put(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        """Keep these vectors, of float16 or float32; they are on disk within about a second, or at the end."""
        if self._connection is None or self._failure is not None:
            return
        dtype = "<f2" if vectors.dtype == np.float16 else "<f4"
        for key, vector in zip(keys, np.ascontiguousarray(vectors, dtype=dtype), strict=True):
            blob = vector.tobytes()
            self._pending.append((key, blob, _checksum(key, blob)))
            self._pending_bytes += len(blob)
        self.width = vectors.shape[1] if self.width is None else self.width
        is_due = time.monotonic() - self._flushed_at > PENDING_SECONDS
        if is_due or self._pending_bytes > PENDING_BYTES:
            self._flush()

    def _flush(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if not pending or self._connection is None or self._failure is not None:
            return
        with self._guard("written"), self._transaction():
            self._connection.execute("INSERT OR IGNORE INTO about VALUES ('width', ?)", (self.width,))
            stored_width = self._read_width()
            if stored_width != self.width:
                raise self._unusable_error(
                    f"holds vectors of {stored_width} numbers, and the same model gave {self.width}"
                )
            self._connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", pending)
        self._flushed_at = time.monotonic()

    # ------------------------------------------------------------------------------------------------- failures

    def _unusable_error(self, flaw: str) -> CacheError:
        return CacheError(
            f"the cache {printable(self.path)} {flaw}. Delete the file: its vectors are then computed again."
        )

    def _guard(self, action: str) -> _Guard:
        return _Guard(self, action)

    def _give_up(self, error: Exception, action: str) -> None:
        """Damage is an error; a file that cannot be used is a warning, and nothing more is written."""
        code = str(getattr(error, "sqlite_errorname", ""))
        if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            raise self._unusable_error(f"is damaged ({printable(error)})") from error
        self._failure = str(error)
        if (str(self.path), action) in _warned:
            return
        _warned.add((str(self.path), action))
        warn(
            f"the cache {printable(self.path)} cannot be {action} ({printable(error)}); encoding goes on without "
            "it. Pass cache= with a folder that can be written, or cache=False.",
            CacheWarning,
        )


class _Guard:
    """A block in which reading or writing the file may fail.

    No generator: contextlib would stand between it and the line of the user's that a warning is to name.
    """

    def __init__(self, stored: StoredVectors, action: str):
        self._stored, self._action = stored, action

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        if not isinstance(error, sqlite3.Error | OSError):
            return False
        self._stored._give_up(error, self._action)
        return True


def _connect(path: Path) -> sqlite3.Connection:
    # Transactions are begun by hand: the module would begin them late, and break off when two upgrade at once.
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)


def _checksum(key: bytes, vector: bytes) -> int:
    return zlib.crc32(vector, zlib.crc32(key))
